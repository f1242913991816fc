# SPDX-License-Identifier: Apache-2.0
"""A person who hears the questions of a session and answers them, over its control socket."""
import struct
import threading

import control

ASKS, ANSWER, GRANTS, REVOKE = range(10, 14)
QUESTIONS, ANSWERED, GRANTED = range(71, 74)
ONCE, USES, TIME, SESSION = range(4)
LIST, FOLLOW, GLANCE, FIND = range(4)


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

    @property
    def is_at_end(self):
        return self.at == len(self.bytes)


def u64(value):
    return b"\2" + struct.pack("=Q", value)


def blob(bytes_):
    return b"\3" + struct.pack("=I", len(bytes_)) + bytes_


QUESTION = ("number", "hash", "state", "waiting", "times", "pid", "asked_ns", "left_ms", "is_allowed", "kind", "flags",
            "subject", "argv", "method", "path", "program", "cwd", "port", "rule", "why", "words")


def take_questions(bytes_):
    """The generation that a frame tells, and its questions."""
    reader = Reader(bytes_)
    after, questions = reader.field(), []
    while not reader.is_at_end:
        questions.append({name: reader.field() for name in QUESTION})
    return after, questions


def find_questions(sandbox, session):
    """What is asked, without anybody being shown it."""
    with control.Control(sandbox, session) as other:
        kind, rest = other.ask(ASKS, u64(0), control.u32(FIND))
    assert kind == QUESTIONS
    return take_questions(rest)[1]


class Person:
    """Follows the questions of a session from a thread; seen has each as it was first told."""

    def __init__(self, sandbox, session, answer=None):
        """answer(question): (is_allowed, scope, amount), or None for silence."""
        self.sandbox, self.session, self.answer = sandbox, session, answer
        self.seen, self.errors = {}, []
        self.control = control.Control(sandbox, session, timeout=60)
        self.control.send(control.frame(ASKS, u64(0), control.u32(FOLLOW)))
        # The box serves who spoke first: from this answer on it knows that somebody listens.
        with control.Control(sandbox, session) as other:
            other.ask(control.STATUS)
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self):
        while True:
            try:
                answer = self.control.receive()
            except OSError:
                return
            if answer is None or answer[0] != QUESTIONS:
                return
            after, questions = take_questions(answer[1])
            for question in questions:
                if question["number"] in self.seen:
                    continue
                self.seen[question["number"]] = question
                said = self.answer(question) if self.answer else None
                if said:
                    self.say(question, *said)
            try:
                self.control.send(control.frame(ASKS, u64(after), control.u32(FOLLOW)))
            except OSError:
                return

    def say(self, question, is_allowed, scope=ONCE, amount=0):
        """The box's answer: the number of the grant, or what it says against it (bytes of struct err)."""
        with control.Control(self.sandbox, self.session) as other:
            kind, rest = other.ask(ANSWER, control.u32(question["number"]), blob(question["hash"]),
                                   control.u32(is_allowed), control.u32(scope), u64(amount))
        if kind == ANSWERED:
            return Reader(rest).field()
        self.errors.append(rest.decode(errors="replace"))
        return None

    def revoke(self, grant):
        with control.Control(self.sandbox, self.session) as other:
            return other.ask(REVOKE, control.u32(grant))[0]

    def close(self):
        self.control.socket.shutdown(2)
        self.thread.join(timeout=5)
        self.control.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
