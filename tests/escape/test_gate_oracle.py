# SPDX-License-Identifier: Apache-2.0
"""N40: whoever guesses a secret of the vault, one character more at a time, learns nothing before it is whole: neither
from what a server gets, nor from what comes back, nor from flow control. tests/unit/egress/flow/test-oracle.c does it
ten thousand times on each channel; this is the same through a real run, on the channels with the most between them."""
import json
import threading
import time

import pytest

from gate import LOOPBACK, Listener, policy_text, test_hosts

pytestmark = [pytest.mark.needs("openssl"), pytest.mark.only("root")]   # the gate is the same for every user

KEY = "sk-ant-api03-Zk3vQ9mB7xLpT2wRfYcD8hJnW5sG1eUa"

FRAMES = r"""
import struct
def frame(kind, flags, stream, data):
    return struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data
def literal(name, value):
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
def read_frame(stream):
    head = stream.read(9)
    return head[3:4], int.from_bytes(head[5:9], "big"), stream.read(int.from_bytes(head[:3], "big"))
"""

# Guesses in pairs, right and wrong. How long a guess may take is not looked at: it comes, or it never does.
CLIENT = FRAMES + r"""
import json, socket, ssl, sys
port, key, patience = int(sys.argv[1]), sys.argv[2].encode(), 8
host = b"web.test:%d" % port

def connect(protocol):
    context = ssl._create_unverified_context()
    context.set_alpn_protocols([protocol])
    return context.wrap_socket(socket.create_connection(("web.test", port), timeout=patience),
                               server_hostname="web.test")

def guesses():
    for known in [0, 1, *range(3, len(key) - 1, 3)]:
        for right in (True, False):
            yield key[:known] + (key[known:known + 1] if right else b"@"), right

def read_chunk(stream):
    size = int(stream.readline(), 16)
    return stream.read(size + 2)[:-2]

# What is sent in chunks comes back from the server, which has got it then: both ways let all of it through.
def echoes():
    with connect("http/1.1") as s:
        s.sendall(b"POST /echo HTTP/1.1\r\nHost: " + host + b"\r\nTransfer-Encoding: chunked\r\n\r\n")
        stream = s.makefile("rb")
        while stream.readline() != b"\r\n": pass
        for guess, right in guesses():
            s.sendall(b"%x\r\n%s\r\n" % (len(guess), guess))
            back = b""
            try:
                while len(back) < len(guess): back += read_chunk(stream)
            except TimeoutError:
                return [len(guess), right, len(back)]
            assert back == guess, (back, guess)
    return []

# So many bytes with the guess that the window of the stream is opened again, if all of them are let through.
def windows():
    half, id = 128 << 10, 1
    s = connect("h2")
    stream = s.makefile("rb")
    s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(4, 1, 0, b""))
    for guess, right in list(guesses())[::4] + list(guesses())[1::4]:
        s.sendall(frame(1, 4, id, b"\x83\x87" + literal(b":path", b"/take") + literal(b":authority", host)))
        rest = half - len(guess)
        while rest:
            size = min(rest, 16384)
            s.sendall(frame(0, 0, id, b"\n" * size))
            rest -= size
        s.sendall(frame(0, 0, id, guess))
        try:
            while True:
                kind, which, data = read_frame(stream)
                if kind == b"\x08" and which == id: break
        except TimeoutError:
            return [len(guess), right]
        s.sendall(frame(3, 0, id, struct.pack(">I", 8)))
        id += 2
    return []

# The control: the whole key is told at once.
def whole():
    with connect("http/1.1") as s:
        s.sendall(b"POST /take HTTP/1.1\r\nHost: " + host + b"\r\nContent-Length: 10000\r\n\r\nis " + key)
        return s.makefile("rb").readline().decode()

# What comes until the answer, or the connection, ends.
def content(stream):
    got = b""
    try:
        while piece := read_chunk(stream): got += piece
    except (ValueError, OSError): pass
    return got.decode()

def begin(s, path):
    s.sendall(b"POST " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\nTransfer-Encoding: chunked\r\n\r\n")
    stream = s.makefile("rb")
    first = stream.readline().decode()
    while stream.readline() not in (b"\r\n", b""): pass
    return stream, first

# What SECURITY.md says of a secret that pauses in the middle: on its way out, in an answer; in one behind more; and
# where the answer waits for the rest of a request that does not come, with nothing missing but the last byte.
def pauses():
    half, found = len(key) // 2, {}
    with connect("http/1.1") as s:
        stream, _ = begin(s, b"/echo")
        s.sendall(b"%x\r\n%s\r\n" % (half, key[:half]))
        assert read_chunk(stream) == key[:half]
        s.sendall(b"%x\r\n%s\r\n" % (len(key) - half, key[half:]))
        found["out"] = content(stream)
    with connect("http/1.1") as s:
        stream, _ = begin(s, b"/burst")
        found["burst"] = content(stream)
    with connect("http/1.1") as s:
        stream, _ = begin(s, b"/most/burst")
        found["most"] = content(stream)
    with connect("http/1.1") as s:
        stream, _ = begin(s, b"/halves")
        assert read_chunk(stream) == key[:half]
        s.sendall(b"2\r\ngo\r\n")
        found["in"] = content(stream)
    with connect("http/1.1") as s:
        found["later"] = begin(s, b"/burst")[1]
    return found

print(json.dumps({"echoes": echoes(), "windows": windows(), "whole": whole(), "pauses": pauses()}))
"""


class Server:
    """HTTP/1.1: sends what comes in chunks back in chunks. HTTP/2: takes all. seen has the bytes of HTTP/1.1."""

    def __init__(self, context):
        self.context, self.seen, self.lock = context, b"", threading.Lock()
        context.set_alpn_protocols(["h2", "http/1.1"])
        self.listener = Listener(self.talk)
        self.port = self.listener.port

    def talk(self, connection):
        with self.context.wrap_socket(connection, server_side=True) as secured:
            if secured.selected_alpn_protocol() == "h2":
                self.take(secured)
            else:
                self.echo(secured)

    @staticmethod
    def chunk(connection, piece):
        connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))

    def cut(self, connection, head, stream):
        """The key in two pieces: behind more, or not before the client has seen the first one."""
        key = KEY.encode()
        half = len(key) - 1 if b"/most" in head else len(key) // 2
        self.chunk(connection, (b"x" * 600 if b"/burst" in head else b"") + key[:half])
        if b"/burst" in head and b"/most" not in head:
            time.sleep(0.05)
        elif not stream.readline():
            return
        self.chunk(connection, key[half:])
        connection.sendall(b"0\r\n\r\n")

    def echo(self, connection):
        stream = connection.makefile("rb")
        head = stream.readline()
        while stream.readline() not in (b"\r\n", b""):
            pass
        if b"/take" not in head:
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        if any(path in head for path in (b"/burst", b"/halves", b"/most")):
            self.cut(connection, head, stream)
            return
        while size := stream.readline() if b"/echo" in head else b"":
            piece = stream.read(int(size, 16) + 2)[:-2]
            with self.lock:
                self.seen += piece
            self.chunk(connection, piece)
        while piece := stream.read1(65536):
            with self.lock:
                self.seen += piece

    @staticmethod
    def take(connection):
        library = {}
        exec(FRAMES, library)   # pylint: disable=exec-used
        stream, frame = connection.makefile("rb"), library["frame"]
        stream.read(24)
        connection.sendall(frame(4, 0, 0, b"\0\4\0\x7f\0\0") + frame(4, 1, 0, b"") + frame(8, 0, 0, b"\0\x7f\0\0"))
        while library["read_frame"](stream)[0]:
            pass


def test_guesses_look_alike(sandbox, certificates):
    server = Server(certificates.context())
    done = sandbox.run_atoll("secret", "set", "model", stdin=KEY.encode())
    assert done.code == 0, done
    rules = [f"{{host: web.test, ports: [{server.port}], inject: {{header: x-api-key, secret: model}}}}", *LOOPBACK]
    sandbox.write(sandbox.project / "guess.py", CLIENT)
    try:
        done = sandbox.run(["/usr/bin/python3", "guess.py", str(server.port), KEY], policy=sandbox.policy(
            policy_text(rules)), env={**test_hosts("127.0.0.1", ("web.test",)), "SSL_CERT_FILE": str(certificates.ca)})
    finally:
        server.listener.close()
    assert done.code == 0, done
    found = json.loads(done.out)
    assert found["echoes"] == [] and found["windows"] == [], found
    assert " 403 " in found["whole"] and KEY.encode() not in server.seen, found
    # Every guess has come whole, and of the secret itself nothing.
    assert KEY[:-2].encode() in server.seen and b"is sk-ant" not in server.seen
    assert KEY[len(KEY) // 2:].encode() not in server.seen
    alerts = [json.loads(line) for line in sandbox.audit_log(done.session).read_text().splitlines()
              if '"alert"' in line]
    where = [entry["detail"]["where"] for entry in alerts if entry["type"] == "alert"]
    pauses = found["pauses"]
    assert pauses["out"] == "", found
    assert pauses["burst"] == "x" * 600 + "*" * len(KEY), found
    assert set(pauses["most"]) <= {"x"}, found
    assert pauses["in"] == "" and " 502 " in pauses["later"], found
    # Guesses with most of it are told as well.
    assert [place for place in where if "long part" not in place] == [
        "the body", "the body", "an answer (it stopped in the middle)",
        "an answer (a part of it came in)"], where
