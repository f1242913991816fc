# SPDX-License-Identifier: Apache-2.0
"""Speaks to a box over its control socket as a client of ours would, and as none of ours would."""
import json
import os
import socket
import struct

MAGIC, VERSION, HEADER = 0x6c6f7461, 1, 16
FREEZE, THAW = 6, 7
DONE, ERROR = 68, 69
# Of clients that speak of more than one thing at a time (wire/link.h).
(HELLO, CREDIT, SUBSCRIBE, RUN, KILL, STOP) = range(32, 38)
(SAMPLE, QUESTIONS, ANSWER, GRANTS, REVOKE, ASKS, STATUS, HOLD) = range(42, 50)
WELCOME, REPLY, EVENT = range(96, 99)
STARTED, EXIT = 3, 6
PROTOCOL = 4


def u32(value):
    return b"\1" + struct.pack("=I", value)


def u64(value):
    return b"\2" + struct.pack("=Q", value)


def blob(bytes_):
    return b"\3" + struct.pack("=I", len(bytes_)) + bytes_


def string(text):
    return b"\5" if text is None else b"\4" + struct.pack("=I", len(text) + 1) + text + b"\0"


def vector(words):
    return b"\6" + struct.pack("=I", len(words)) + b"".join(string(word) for word in words)


def frame(kind, *fields):
    body = b"".join(fields)
    return struct.pack("=IHHII", MAGIC, VERSION, kind, HEADER + len(body), 0) + body


class Reader:
    """Takes the fields of a frame apart."""

    def __init__(self, bytes_):
        self.bytes, self.at = bytes_, 0

    def take(self, size):
        taken = self.bytes[self.at:self.at + size]
        assert len(taken) == size
        self.at += size
        return taken

    def field(self):
        tag = self.take(1)[0]
        if tag == 1:
            return struct.unpack("=I", self.take(4))[0]
        if tag == 2:
            return struct.unpack("=Q", self.take(8))[0]
        if tag == 3:
            return self.take(struct.unpack("=I", self.take(4))[0])
        if tag == 4:
            return self.take(struct.unpack("=I", self.take(4))[0])[:-1].decode(errors="replace")
        if tag == 5:
            return None
        assert tag == 6, tag
        return [self.field() for _ in range(struct.unpack("=I", self.take(4))[0])]

    def named(self):
        """What is left, as values with names."""
        found = {}
        while not self.is_at_end:
            key, _ = self.field(), self.field()
            found[key] = self.field()
        return found

    @property
    def is_at_end(self):
        return self.at == len(self.bytes)


class Control:
    """One connection. The peer must be the owner of the session, so it is made by the test's own root."""

    def __init__(self, sandbox, session, timeout=10):
        directory = os.open(sandbox.runtime / "atoll", os.O_PATH)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(timeout)
        self.socket.connect(f"/proc/self/fd/{directory}/{session}.sock")
        os.close(directory)

    def send(self, bytes_, fds=()):
        socket.send_fds(self.socket, [bytes_], list(fds))

    def receive(self):
        """(type, rest), or None when the box closed the connection."""
        bytes_ = self.socket.recv(1 << 17)
        if not bytes_:
            return None
        return struct.unpack("=IHHII", bytes_[:HEADER])[2], bytes_[HEADER:]

    def ask(self, kind, *fields):
        self.send(frame(kind, *fields))
        return self.receive()

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Link(Control):
    """A client as libatoll is one. events: bits of those that it hears."""

    def __init__(self, sandbox, session, timeout=10, events=0, protocol=(1, PROTOCOL)):
        super().__init__(sandbox, session, timeout)
        self.tickets, self.events = 1, []
        self.send(frame(HELLO, *[u32(number) for number in protocol]))
        answer = self.receive()
        if answer and answer[0] == WELCOME:
            self.protocol = Reader(answer[1]).field()
        else:
            self.protocol, self.refusal = None, answer
        if events:
            self.request(SUBSCRIBE, u64(events))

    def begin(self, kind, *fields, fds=()):
        self.tickets += 1
        self.send(frame(kind, u64(self.tickets), *fields), fds)
        return self.tickets

    def step(self):
        """The next reply, (ticket, code, values), or None: an event was heard instead."""
        answer = self.receive()
        if answer is None:
            raise ConnectionResetError("the box hung up")
        kind, rest = answer
        reader = Reader(rest)
        first, second = reader.field(), reader.field()
        if kind == EVENT:
            self.events.append((second, reader.named()))
            return None
        assert kind == REPLY, kind
        return first, second, reader.named()

    def reply(self, ticket):
        while True:
            reply = self.step()
            if reply and reply[0] == ticket:
                return reply[1:]

    def request(self, kind, *fields, fds=()):
        """(code, values): code 0, and what was asked for; else what there is against it."""
        return self.reply(self.begin(kind, *fields, fds=fds))

    def until(self, event):
        """The values of the next event of that type."""
        while True:
            for index, (kind, values) in enumerate(self.events):
                if kind == event:
                    del self.events[:index + 1]
                    return values
            self.step()

    def status(self):
        code, values = self.request(STATUS)
        assert code == 0, values
        return json.loads(values["status"])


def run_fields(words):
    """Of RUN, which takes three descriptors."""
    return string(b"argv"), u32(4), vector(words)
