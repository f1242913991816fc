# SPDX-License-Identifier: Apache-2.0
"""Speaks to a box over its control socket as a client of ours would, and as none of ours would."""
import os
import socket
import struct

MAGIC, VERSION, HEADER = 0x6c6f7461, 1, 16
EXEC, SIGNAL, CONTINUE, STATUS, STOP, FREEZE, THAW = range(1, 8)
STARTED, EXITED, STOPPED, STATUS_JSON, DONE, ERROR = range(64, 70)


def u32(value):
    return b"\1" + struct.pack("=I", value)


def string(text):
    return b"\5" if text is None else b"\4" + struct.pack("=I", len(text) + 1) + text + b"\0"


def vector(words):
    return b"\6" + struct.pack("=I", len(words)) + b"".join(string(word) for word in words)


def frame(kind, *fields):
    body = b"".join(fields)
    return struct.pack("=IHHII", MAGIC, VERSION, kind, HEADER + len(body), 0) + body


def exec_frame(words):
    return frame(EXEC, u32(0), u32(0), string(None), vector(words), vector([]), vector([]))


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
