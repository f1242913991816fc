# SPDX-License-Identifier: Apache-2.0
"""N21: what a few bytes of HTTP/2 make a reader keep: fields of the table are repeated by a byte each (RFC 7541)."""
import pathlib
import socket
import struct
import subprocess
import threading
import time

import pytest

from atoll import wait_until
from gate import LOOPBACK, Listener, gate_of, policy_text, test_hosts

pytestmark = [pytest.mark.needs("openssl"), pytest.mark.only("root")]   # what bounds it is the same for every user
PYTHON = "/usr/bin/python3"
PEAK_MAX_KIB = 96 << 10
HTTP2 = pathlib.Path(__file__).parents[1] / "lib" / "http2.py"

FRAMES = r"""
import struct
def frame(kind, flags, stream, data):
    return struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + data
def text(content):
    size, out = len(content), bytearray()
    if size < 127: return bytes([size]) + content
    size -= 127; out.append(127)
    while size >= 128: out.append(size % 128 + 128); size //= 128
    return bytes([*out, size]) + content
def literal(name, value): return b"\0" + text(name) + text(value)
# The first of a connection: from then on the table has it as its newest field.
def kept(size): return b"\x40" + text(b"x-large") + text(size * b"v")
NEWEST, SETTINGS = bytes([0x80 | 62]), frame(4, 0, 0, b"")
"""

# Requests with bodies that do not come, from a client that takes no answers: its window is none.
CLIENT = FRAMES + r"""
import socket, ssl, sys
port, connections, repeated = map(int, sys.argv[1:])
context = ssl._create_unverified_context(); context.set_alpn_protocols(["h2"])
held = []
for _ in range(connections):
    s = context.wrap_socket(socket.create_connection(("web.test", port), timeout=20), server_hostname="web.test")
    s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"\0\4\0\0\0\0") + frame(4, 1, 0, b""))
    for i in range(100):
        block = b"\x83\x87\x84" + literal(b":authority", b"web.test:%d" % port)
        s.sendall(frame(1, 4, 1 + 2 * i, block + (b"" if i else kept(4000)) + repeated * NEWEST))
    held.append(s)
print("sent", flush=True); sys.stdin.read(1)
"""

# One request; nothing is read before somebody says so.
PATIENT = FRAMES + r"""
import socket, ssl, sys
port = int(sys.argv[1])
context = ssl._create_unverified_context(); context.set_alpn_protocols(["h2"])
s = context.wrap_socket(socket.create_connection(("web.test", port), timeout=20), server_hostname="web.test")
s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS + frame(4, 1, 0, b"") +
          frame(1, 5, 1, b"\x82\x87\x84" + literal(b":authority", b"web.test:%d" % port)))
print("sent", flush=True); sys.stdin.read(1)
stream, blocks = s.makefile("rb"), []
while True:
    head = stream.read(9); data = stream.read(int.from_bytes(head[:3], "big"))
    if head[3] == 1: blocks.append(data)
    if head[5:] == b"\0\0\0\1" and head[4] & 1 and head[3] in (0, 1): break
print(len(blocks), b"whole" in data, flush=True)
"""


class Server:
    """HTTP/2 as far as it is heard: requests and bytes say how many came; answer() is sent to each request."""

    def __init__(self, certificates, answer=lambda: b""):
        self.context, self.answer, self.requests, self.bytes = certificates.context(), answer, 0, 0
        self.context.set_alpn_protocols(["h2"])
        self.listener = Listener(self.serve)

    def serve(self, connection):
        with self.context.wrap_socket(connection, server_side=True) as secure, secure.makefile("rb") as stream:
            secure.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            stream.read(24)
            while len(head := stream.read(9)) == 9:
                self.bytes += 9 + len(stream.read(int.from_bytes(head[:3], "big")))
                self.requests += head[3] == 1
                if head[3] == 1:
                    secure.sendall(self.answer())


def peak_kib(pid):
    return int(pathlib.Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0])


def peak_after(pid, seconds):
    time.sleep(seconds)
    return peak_kib(pid)


def start(sandbox, certificates, script, *words, limits=""):
    rules = ["{host: web.test, http: [{methods: [GET, POST]}]}", *LOOPBACK]
    policy = sandbox.policy(policy_text(rules, limits))
    return sandbox.popen([PYTHON, "-c", script, *map(str, words)], policy=policy, stdin=subprocess.PIPE,
                         env={**test_hosts(), "SSL_CERT_FILE": str(certificates.ca)})


@pytest.mark.parametrize("repeated,passes", [(8, True), (120, False)])
def test_heads_that_a_client_repeats_by_their_number(sandbox, certificates, repeated, passes):
    server = Server(certificates)
    child = start(sandbox, certificates, CLIENT, server.listener.port, 6, repeated)
    assert child.stdout.readline() == b"sent\n", child.stderr.read()
    pid, = gate_of(sandbox)
    if passes:
        wait_until(lambda: server.requests == 600)
    assert peak_after(pid, 2) < PEAK_MAX_KIB, peak_kib(pid)
    assert passes or not server.requests, server.requests
    child.communicate(b"x", timeout=20)
    server.listener.close()


INTERIM = 5000


@pytest.mark.parametrize("repeated,passes", [(0, True), (15, False)])
def test_interim_answers_that_nobody_reads(sandbox, certificates, repeated, passes):
    """None of them waits for a window, so all of them would wait in the gate."""
    names = {}
    exec(FRAMES, names)  # pylint: disable=exec-used
    frame, literal = names["frame"], names["literal"]

    def answer():
        head, final = literal(b":status", b"103"), frame(1, 4, 1, b"\x88") + frame(0, 1, 1, b"whole")
        if passes:
            return 20 * frame(1, 4, 1, head) + final
        return (frame(1, 4, 1, head + names["kept"](4000)) +
                INTERIM * frame(1, 4, 1, head + repeated * names["NEWEST"]) + final)

    server = Server(certificates, answer)
    child = start(sandbox, certificates, PATIENT, server.listener.port)
    assert child.stdout.readline() == b"sent\n", child.stderr.read()
    pid, = gate_of(sandbox)
    wait_until(lambda: server.requests == 1)
    assert peak_after(pid, 2) < PEAK_MAX_KIB, peak_kib(pid)
    out, err = child.communicate(b"x", timeout=20)
    assert out == (b"21 True\n" if passes else b"3 False\n"), (out, err)
    server.listener.close()


# As much of four bodies on each connection as the windows let go, then a request of another server.
BODIES = """
import http.client, sys, time
import http2
port, other, connections = map(int, sys.argv[1:])
# Two may have everything, and wait for it; of many the gate stops reading some.
patience, held, sent = (20, 20) if connections == 2 else (1, 0.05), [], 0
for _ in range(connections):
    c = http2.Connection("web.test", port, "-")
    held.append(c)
    try:
        for _ in range(3): c.hear(patience[0])
        c.socket.settimeout(patience[1])
        for stream in (1, 3, 5, 7): c.open(stream, "/", 1 << 20)
    except OSError: pass
    sent += sum(c.sent.values())
print("sent", sent, flush=True); sys.stdin.read(1)
h = http.client.HTTPConnection("web.test", other, timeout=20); h.request("POST", "/", b"x" * 200000)
print(h.getresponse().status, flush=True)
"""


@pytest.mark.parametrize("connections", [2, 160])
def test_bodies_for_a_server_that_does_not_read(sandbox, certificates, connections):
    """It opens no window, so all that the gate's own windows let come waits in the gate."""
    over = threading.Event()

    def stall(connection):
        connection.sendall(b"\0\0\6\4\0\0\0\0\0" + struct.pack(">HI", 4, 0))
        over.wait(60)

    server, other = Listener(stall), Listener(lambda connection: connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" if connection.recv(1 << 20, socket.MSG_WAITALL) else b""))
    sandbox.copy(HTTP2, sandbox.project / "http2.py", 0o644)
    child = start(sandbox, certificates, BODIES, server.port, other.port, connections)
    said = child.stdout.readline().split()
    assert said[:1] == [b"sent"], child.stderr.read()
    pid, = gate_of(sandbox)
    # The control: two may have all that the windows let go.
    assert int(said[1]) >= (2 << 20 if connections == 2 else 32 << 20), said
    assert peak_after(pid, 1) < PEAK_MAX_KIB, peak_kib(pid)
    out, err = child.communicate(b"x", timeout=60)
    assert out == b"200\n", (out, err)
    over.set()
    server.close()
    other.close()


@pytest.mark.parametrize("limits", ["", "  limits: {out: 1MiB}\n"])
def test_bytes_that_grow_on_their_way_out_are_counted(sandbox, certificates, limits):
    """A hundred requests of 50 KB, said in 10 KB in all."""
    server = Server(certificates)
    child = start(sandbox, certificates, CLIENT, server.listener.port, 1, 12, limits=limits)
    child.stdout.readline()
    if limits:
        wait_until(lambda: server.listener.heard)
        assert 500_000 < server.bytes < 2 << 20, server.bytes
    else:
        wait_until(lambda: server.bytes > 4 << 20)
    child.communicate(b"x", timeout=20)
    server.listener.close()
