# SPDX-License-Identifier: Apache-2.0
"""Hostile messages to the network gate, from both sides: queries of the sandbox, answers of the resolver outside."""
import pathlib
import socket
import struct
import subprocess
import time

import pytest

from atoll import wait_until
from gate import LOOPBACK, Listener, cpu_ticks, gate_of, policy_text, test_hosts

PYTHON = "/usr/bin/python3"

# Each is a whole message; what must come of it: an answer with this code, or none.
QUERIES = r"""
import socket, struct
def head(flags=0x100, counts=(1, 0, 0, 0)): return struct.pack("!6H", 7, flags, *counts)
name, tail = b"\3web\4test\0", struct.pack("!2H", 1, 1)
good = head() + name + tail
cases = {
    "good": good, "itself": head() + b"\xc0\x0c" + tail, "header": head() + b"\3web\xc0\x00" + tail,
    "chain": head() + b"".join(b"\xc0" + bytes([14 + 2 * i]) for i in range(100)) + b"\0" + tail,
    "no question": head(counts=(0, 0, 0, 0)), "two questions": head(counts=(2, 0, 0, 0)) + name + tail,
    "65535 questions": head(counts=(65535, 0, 0, 0)) + name + tail,
    "65535 answers": head(counts=(1, 65535, 0, 0)) + name + tail,
    "65535 more": head(counts=(1, 0, 0, 65535)) + name + tail,
    "an answer": head(0x8180) + name + tail, "cut": good[:-3], "labels": head() + b"\1a" * 200 + b"\0" + tail,
    "label of 64": head() + b"\x40" + b"a" * 64 + b"\0" + tail, "no end": head() + b"\3web",
}
def say(what, answer): print(what, "-" if not answer else answer[3] & 15, flush=True)
for what, message in cases.items():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as u:
        u.settimeout(0.3 if what != "good" else 5)  # the gate starts with the first
        u.sendto(message, ("198.18.0.1", 53))
        try: say(what, u.recv(4096))
        except TimeoutError: say(what, b"")
def stream(what, data):
    with socket.create_connection(("198.18.0.1", 53)) as t:
        t.settimeout(3)
        try:
            t.sendall(data)
            say(what, t.recv(4096)[2:])
        except TimeoutError: print(what, "?")
        except OSError: say(what, b"")
framed = struct.pack("!H", len(good)) + good
stream("stream", framed)
stream("stream of 64 KB", struct.pack("!H", 65535) + good + bytes(65535 - len(good)))
stream("stream of nothing", b"\0\0" * 1000)
stream("two at once", framed + framed)
with socket.create_connection(("198.18.0.1", 53)) as t:
    for byte in framed: t.sendall(bytes([byte]))
    say("byte by byte", t.recv(4096)[2:])
"""
FORMERR = 1


def test_malformed_queries(sandbox):
    """Compression loops, wrong counts, 64 KB, pieces: each is refused by itself, and the next one is served."""
    done = sandbox.run([PYTHON, "-c", QUERIES], policy=sandbox.policy(policy_text(["{host: web.test}", *LOOPBACK])),
                       env=test_hosts())
    found = dict(line.rsplit(" ", 1) for line in done.out.splitlines())
    # What a query adds behind its question (EDNS) is not looked at.
    for what in ("good", "stream", "two at once", "byte by byte", "65535 more"):
        assert found.pop(what) == "0", (what, done)
    for what in ("an answer", "stream of 64 KB", "stream of nothing"):
        assert found.pop(what) == "-", (what, done)
    assert set(found.values()) == {str(FORMERR)} and len(found) == 11, done
    assert done.report["network"]["gate"] == "ready"


# Answers as a hostile or broken resolver gives them, by the first label of the name.
RESOLVER = r"""
import random, socket, struct
random.seed(3)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 53))
turn = 0
def address(text): return b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + socket.inet_aton(text)
while True:
    query, peer = u.recvfrom(4096)
    label = query[13:13 + query[12]].decode().lower()
    end = query.index(b"\0", 12) + 5
    kind, question = struct.unpack("!H", query[end - 4:end - 2])[0], query[12:end]
    def head(counts, flags=0x8180): return query[:2] + struct.pack("!5H", flags, 1, *counts)
    if kind != 1: answer = head((0, 0, 0)) + question
    elif label == "garbage": answer = query[:2] + random.randbytes(400)
    elif label == "loop": answer = head((1, 0, 0)) + question + bytes([0xc0, end]) + address("127.0.0.1")[2:]
    elif label == "counts": answer = head((65535, 65535, 65535)) + question + address("127.0.0.1")
    elif label == "short": answer = head((1, 0, 0)) + question + address("127.0.0.1")[:-2]
    elif label == "other": answer = head((1, 0, 0)) + b"\4evil\4test\0\0\1\0\1" + address("127.0.0.1")
    elif label == "many": answer = head((200, 0, 0)) + question + address("10.1.2.3") * 200
    elif label == "turn":
        answer = head((1, 0, 0)) + question + address(("127.0.0.1", "10.1.2.3", "169.254.169.254")[turn % 3])
        turn += 1
    else: answer = head((1, 0, 0)) + question + address("127.0.0.1")
    u.sendto(answer, peer)
"""
BAD = ("garbage", "loop", "short", "other", "many")


@pytest.mark.only("root")
@pytest.mark.needs("unshare", "ip", "curl")
def test_answers_of_a_hostile_resolver(sandbox):
    """Garbage leads nowhere and harms nobody; a name that changes its address is judged at each connection."""
    resolv = sandbox.write(sandbox.base / "resolv", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    rules = [f"{{host: {name}.example, ports: [8088]}}" for name in (*BAD, "counts", "turn", "good")]
    policy = sandbox.policy(policy_text([*rules, "{cidr: 127.0.0.1/32}"]))
    inner = "".join(f"curl -4 -sS -m 4 -o /dev/null http://{name}.example:8088/ && echo reached {name}\n"
                    for name in (*BAD, "counts", "turn", "turn", "turn", "good"))
    path = sandbox.report_path()
    script = f"""
ip link set lo up
mount --bind {resolv} $(readlink -f /etc/resolv.conf)
{PYTHON} -c "$RESOLVER" & resolver=$!
cd {sandbox.project}; {PYTHON} -m http.server --bind 127.0.0.1 8088 >/dev/null 2>&1 & web=$!
for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:8088/ && break; sleep 0.05; done
{' '.join(map(str, sandbox.command_line(['bash', '-c', '"$INNER"'], policy=policy, report=path)))}
kill $resolver $web
"""
    done = sandbox.run_outside(["unshare", "-n", "-m", "bash", "-c", script], timeout=60,
                               env={"INNER": inner, "RESOLVER": RESOLVER, "ATOLL_TEST_HOSTS": None})
    reached = [line.split()[1] for line in done.out.splitlines() if line.startswith("reached")]
    assert reached in (["turn", "good"], ["counts", "turn", "good"]), done
    report = sandbox.read_report(path)
    private = {entry["subject"] for entry in report["denials"] if entry["rule"] == "builtin.private"}
    assert private == {"many.example:8088", "turn.example:8088"} and report["network"]["gate"] == "ready", report


def test_a_server_that_answers_with_garbage(sandbox):
    """Spliced, it is the client's to judge; after a reset in the middle the next connection is served."""
    noise = bytes(range(256)) * 4096

    def serve(connection):
        connection.sendall(noise)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    server = Listener(serve)
    script = f"""
import socket
for i in range(20):
    with socket.create_connection(("web.test", {server.port})) as s:
        size = 0
        try:
            while part := s.recv(1 << 16): size += len(part)
        except ConnectionResetError: size = -1
        print(size)
"""
    done = sandbox.run([PYTHON, "-c", script], env=test_hosts(),
                       policy=sandbox.policy(policy_text([f"{{host: web.test, ports: [{server.port}]}}", *LOOPBACK])))
    sizes = {int(line) for line in done.out.split()}
    assert len(done.out.split()) == 20 and sizes <= {-1, len(noise)}, done
    assert done.report["network"]["connections"] == 20, done
    server.close()


SLOW = r"""
import socket, sys
held = []
for i in range(300):
    s = socket.create_connection(("web.test", 443 if i % 2 else int(sys.argv[1])))
    s.sendall(b"\x16\x03\x01\x02")
    held.append(s)
print("held", flush=True)
sys.stdin.read(1)
with socket.create_connection(("web.test", int(sys.argv[1]))) as s:
    s.sendall(b"plain"); print(s.recv(10))
"""


def test_clients_that_never_say_their_name_hold_no_memory(sandbox):
    """Slowloris: the beginning of a TLS hello stays in the kernel, nothing of it leaves, and others are served."""
    server = Listener(lambda connection: connection.sendall(b"there") if connection.recv(10) else None)
    policy = sandbox.policy(policy_text([f"{{host: web.test, ports: [443, {server.port}]}}", *LOOPBACK]))
    child = sandbox.popen([PYTHON, "-c", SLOW, str(server.port)], policy=policy, env=test_hosts(),
                          stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"held\n", child.stderr.read()
    pid, = gate_of(sandbox)
    resident = int(pathlib.Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])
    assert resident < 16 << 10, f"{resident} KiB"
    assert not server.heard, "bytes left before the name was known"
    out, err = child.communicate(b"\n", timeout=30)
    assert b"there" in out, (out, err)
    server.close()


# A sender that marks a byte as urgent (TCP) and goes on; a receiver that takes what comes as one stream.
MARKED = """
import socket, sys, time
def send(s):
    s.sendall(b"plain "); time.sleep(0.3)
    s.send(b"urgenT", socket.MSG_OOB); s.sendall(b" more")
def hear(s):
    s.settimeout(6); s.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1); got = b""
    while not got.endswith(b"more") and (piece := s.recv(100)): got += piece
    return got
s = socket.create_connection(("web.test", int(sys.argv[1])), timeout=10)
try: print(send(s) if sys.argv[2] == "out" else hear(s), flush=True)
except OSError as e: print(type(e).__name__, flush=True)
sys.stdin.read(1)
"""


@pytest.mark.only("root")
@pytest.mark.parametrize("way", ["out", "in"])
def test_a_byte_that_is_marked_as_urgent_passes_and_holds_up_nothing(sandbox, way):
    """splice(2) stops before it and the socket stays readable: a loop without end, at the cost of one byte."""
    names = {}
    exec(MARKED.split("s = ", 1)[0], names)  # pylint: disable=exec-used
    server = Listener(lambda connection: (names["hear" if way == "out" else "send"](connection), connection.recv(1))[0])
    child = sandbox.popen([PYTHON, "-c", MARKED, str(server.port), way], env=test_hosts(), stdin=subprocess.PIPE,
                          policy=sandbox.policy(policy_text(["web.test", *LOOPBACK])))
    said = child.stdout.readline()
    pid, = gate_of(sandbox)
    before = cpu_ticks(pid)
    time.sleep(1.5)
    assert cpu_ticks(pid) - before < 30, (before, cpu_ticks(pid))
    _, err = child.communicate(b"x", timeout=20)
    wait_until(lambda: server.heard)
    assert (server.heard[0] if way == "out" else eval(said)) == b"plain urgenT more", (said, server.heard, err)
    server.close()
