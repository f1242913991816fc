# SPDX-License-Identifier: Apache-2.0
"""N21: more connections than the gate has room for, and ends that come as resets: bounded, said, and survived."""
import contextlib
import os
import pathlib
import resource
import socket
import subprocess
import time

import pytest

from atoll import wait_until
from gate import LOOPBACK, Listener, Web, cpu_ticks, gate_of, policy_text, test_hosts

PYTHON = "/usr/bin/python3"


def answer(connection):
    heard = connection.recv(100)
    connection.sendall(heard)
    return heard


@pytest.fixture
def listener():
    server = Listener(answer)
    yield server
    server.close()


def policy_for(sandbox):
    return sandbox.policy(policy_text(["web.test", *LOOPBACK]))


def resident_kib(pid):
    return int(pathlib.Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


CONCURRENT = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
made = [socket.create_connection(("web.test", int(sys.argv[1])), timeout=30) for _ in range(1000)]
for s in made: s.sendall(b"x")
print(sum(s.recv(10) == b"answer" for s in made), flush=True); sys.stdin.read(1)
"""


@pytest.mark.only("root")
def test_a_thousand_connections_at_one_time(sandbox):
    """All of them open and used, in less than 64 MiB of the gate."""
    server = Listener(lambda connection: (connection.recv(10), connection.sendall(b"answer"), connection.recv(10)))
    child = sandbox.popen([PYTHON, "-c", CONCURRENT, str(server.port)], policy=policy_for(sandbox), env=test_hosts(),
                          stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"1000\n", child.stderr.read()
    pid, = gate_of(sandbox)
    assert resident_kib(pid) < 64 << 10, resident_kib(pid)
    print("gate with 1,000 connections:", resident_kib(pid), "KiB")
    child.communicate(b"x", timeout=20)
    server.close()


RESETS = """
import resource, socket, struct, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
port, made = int(sys.argv[1]), 0
for batch in range(50):
    held = []
    for i in range(200):
        s = socket.socket(); s.setblocking(False)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        made += s.connect_ex(ADDRESS) in (0, 115); held.append(s)
    for s in held: s.close()
print("made", made, flush=True); sys.stdin.read(1)
# Until there is an answer: on a busy machine those before are open in the gate for a while, and count.
for _ in range(300):
    try:
        with socket.create_connection(("web.test", port), timeout=60) as s:
            s.sendall(b"still alive")
            if s.recv(1): break
    except OSError: pass
    time.sleep(0.1)
"""


@pytest.mark.only("root")   # what bounds it is the same for every user
def test_ten_thousand_connections_that_are_reset(sandbox, listener):
    script = RESETS.replace("ADDRESS", "address").replace(
        "port, made", "address = socket.getaddrinfo('web.test', int(sys.argv[1]), socket.AF_INET)[0][4]\nport, made")
    child = sandbox.popen([PYTHON, "-c", script, str(listener.port)], policy=policy_for(sandbox), env=test_hosts(),
                          stdin=subprocess.PIPE)
    line = child.stdout.readline().split()
    assert line and int(line[1]) >= 9000, (line, child.stderr.read() if not line else "")
    pid, = gate_of(sandbox)
    assert resident_kib(pid) < 64 << 10
    out, err = child.communicate(b"x", timeout=120)
    assert child.returncode == 0 and b"network gate failed" not in err, (out, err)
    wait_until(lambda: b"still alive" in listener.heard, 30)


# Hellos that go no further, requests cut in their heads and bodies, ends of one side; most of them end by a reset.
READ = """
import json, random, resource, socket, ssl, struct, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
random.seed(11)
port, held = int(sys.argv[1]), []
host = f"Host: web.test:{port}\\r\\n".encode()
def connect():
    s = socket.create_connection(("web.test", port), timeout=20)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", random.randrange(2), 0))
    return s
outgoing = ssl.MemoryBIO()
try: ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="web.test").do_handshake()
except ssl.SSLWantReadError: pass
hello = outgoing.read()
for i in range(300):
    s = connect()
    s.sendall(hello[:random.choice((len(hello), len(hello), 1, 50))])
    held.append(s) if i % 3 else s.close()
context = ssl._create_unverified_context()
for text in (b"", b"GET /v1/x HT", b"GET /v1/x HTTP/1.1\\r\\n" + host, b"POST /v1/x HTTP/1.1\\r\\n" + host +
             b"Content-Length: 9999\\r\\n\\r\\nhalf", b"GET /v1/x HTTP/1.1\\r\\n" + host + b"\\r\\n") * 20:
    with context.wrap_socket(connect(), server_hostname="web.test") as s:
        s.sendall(text)
        if len(held) % 2: s.shutdown(socket.SHUT_WR)
    held.append(connect())
print(len(held), flush=True); sys.stdin.read(1)
with context.wrap_socket(connect(), server_hostname="web.test") as s:
    s.sendall(b"GET /v1/last HTTP/1.1\\r\\n" + host + b"Connection: close\\r\\n\\r\\n")
    print(s.recv(100).split(b"\\r\\n")[0].decode(), flush=True)
"""


@pytest.mark.only("root")
@pytest.mark.needs("openssl")
def test_storms_on_a_host_that_is_read(sandbox, certificates):
    """The same where TLS ends in the gate: bounded, each request that was begun is told, and the next one is served."""
    server = Web(certificates.context())
    policy = sandbox.policy(policy_text([f"{{host: web.test, ports: [{server.port}], http: [{{paths: [/v1/**]}}]}}",
                                         *LOOPBACK]))
    child = sandbox.popen([PYTHON, "-c", READ, str(server.port)], policy=policy, stdin=subprocess.PIPE,
                          env={**test_hosts(), "SSL_CERT_FILE": str(certificates.ca)})
    line = child.stdout.readline()
    assert line == b"300\n", (line, child.stderr.read() if not line else "")
    pid, = gate_of(sandbox)
    assert resident_kib(pid) < 64 << 10, resident_kib(pid)
    out, err = child.communicate(b"x", timeout=120)
    assert child.returncode == 0 and b"200 OK" in out and b"network gate failed" not in err, (out, err)
    server.close()


HELD = """
import socket, sys
held, refused = [], 0
for i in range(400):
    try:
        s = socket.create_connection(("web.test", int(sys.argv[1])), timeout=10); s.sendall(b"x"); held.append(s)
    except OSError: refused += 1
for s in held: s.settimeout(3)
alive = 0
for s in held:
    try: s.sendall(b"y"); alive += 1
    except OSError: pass
for s in held: s.close()
import time; time.sleep(.5)
s = socket.create_connection(("web.test", int(sys.argv[1])), timeout=10); s.sendall(b"after"); s.close()
print(alive, flush=True)
"""


def test_few_descriptors_are_few_connections_and_no_end(sandbox):
    """The gate knows how many it may have, refuses the others by name, and serves again when some are free."""
    server = Listener(lambda connection: connection.recv(100) and connection.recv(100) or b"")
    words = sandbox.command_line([PYTHON, "-c", HELD, str(server.port)], policy=policy_for(sandbox))
    done = sandbox.run_outside(["bash", "-c", 'ulimit -n 700; exec "$0" "$@"', *map(str, words)], env=test_hosts())
    assert done.code == 0 and "network gate failed" not in done.err, done
    assert 10 < int(done.out) < 400, done
    session, = sandbox.sessions()
    assert '"rule":"network.limits"' in sandbox.audit_log(session).read_text(), done
    server.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_answered(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as visitor:
        visitor.sendall(b"last")
        return visitor.recv(10) == b"answer"


VISITED = """
import socket, sys
s = socket.socket(); s.bind(("127.0.0.1", 8080)); s.listen(512)
print("serving", flush=True); sys.stdin.readline()
while c := s.accept()[0]:
    if c.recv(10) == b"last": c.sendall(b"answer")
"""


@pytest.mark.only("root")
def test_more_visitors_than_descriptors_are_let_go(sandbox):
    """Whoever on the host can connect to a published port could else end the network of the sandbox."""
    port = free_port()
    child = sandbox.popen([PYTHON, "-c", VISITED], policy=policy_for(sandbox), stdin=subprocess.PIPE,
                          options=["--publish", f"{port}:8080"],
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)))
    assert child.stdout.readline() == b"serving\n", child.stderr.read()
    held = []
    for _ in range(250):
        held.append(socket.create_connection(("127.0.0.1", port), timeout=20))
        time.sleep(0.002)
    pid, = gate_of(sandbox)
    before = cpu_ticks(pid)
    time.sleep(1)
    assert cpu_ticks(pid) - before < 30, (before, cpu_ticks(pid))
    for visitor in held:
        visitor.close()
    child.stdin.write(b"\n"), child.stdin.flush()

    assert wait_until(lambda: is_answered(port), 30)
    child.kill()


HOLDS = """
import socket, sys, time
held = [socket.create_connection(("web.test", int(sys.argv[1]))) for _ in range(20)]
resolver = open("/etc/resolv.conf").read().split()[1], 53
# Whoever came when one descriptor was left is let go by and by: then the first query takes that one too.
time.sleep(1)
queries = [socket.create_connection(resolver, 20) for _ in range(4)]
waiting = [socket.socket() for _ in range(5)]
for s in waiting: s.settimeout(20); s.connect(("web.test", int(sys.argv[1])))
print("waiting", flush=True); sys.stdin.readline()
for s in held: s.close()
for s in waiting: s.sendall(b"hi")
print(sum(s.recv(10) == b"hi" for s in waiting), flush=True)
question = b"\\0\\x1a\\0\\1\\1\\0\\0\\1" + bytes(6) + b"\\3web\\4test\\0\\0\\1\\0\\1"
question = len(question[2:]).to_bytes(2, "big") + question[2:]
for s in queries: s.sendall(question)
print(sum(len(s.recv(100)) > len(question) for s in queries), flush=True)
"""


@pytest.mark.only("root")
def test_clients_that_wait_without_descriptors_cost_nothing_and_are_served_after(sandbox):
    """A socket that nobody can be taken from stays readable: the gate turned for nothing, as long as it lasted."""
    def echo(connection):
        while data := connection.recv(100):
            connection.sendall(data)
    server, port, descriptors = Listener(echo), free_port(), 44
    child = sandbox.popen([PYTHON, "-c", HOLDS, str(server.port)], policy=policy_for(sandbox), env=test_hosts(),
                          stdin=subprocess.PIPE, options=["--publish", f"{port}:8080"],
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)))
    assert child.stdout.readline() == b"waiting\n", child.stderr.read()
    pid, = gate_of(sandbox)
    with socket.create_connection(("127.0.0.1", port), timeout=20):
        assert wait_until(lambda: len(os.listdir(f"/proc/{pid}/fd")) == descriptors, 30)
        before = cpu_ticks(pid)
        time.sleep(1)
        assert cpu_ticks(pid) - before < 15, (before, cpu_ticks(pid))
        child.stdin.write(b"\n"), child.stdin.flush()
        assert [child.stdout.readline() for _ in range(2)] == [b"5\n", b"4\n"], child.stderr.read()
    child.kill()
    server.close()


@contextlib.contextmanager
def silent(address, port):
    """It listens, and takes no more connections: who connects gets no answer."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind((address, port))
        listening.listen(0)
        for _ in range(3):
            full = stack.enter_context(socket.socket())
            full.setblocking(False)
            full.connect_ex((address, port))
        yield


def count_sockets(pid):
    return sum(os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:") for fd in os.listdir(f"/proc/{pid}/fd"))


DIALS = """
import socket, sys
s = socket.socket(); s.setblocking(False); address = socket.gethostbyname(sys.argv[1])
print("connecting", flush=True); sys.stdin.readline()
s.connect_ex((address, int(sys.argv[2]))); s.settimeout(25)
try: print(s.recv(10).decode(), flush=True)
except OSError as error: print(error, flush=True)
"""


@pytest.mark.only("root")
@pytest.mark.parametrize("name", ["web.test", "other.test"])
def test_a_host_with_many_silent_addresses_has_few_descriptors(sandbox, name):
    """web.test is silent everywhere; of other.test the sixth address answers, and is reached all the same."""
    server = Listener(lambda connection: connection.sendall(b"reached"), address="127.0.0.18")
    addresses = {"web.test": range(11, 18), "other.test": (11, 12, 13, 14, 15, 18)}
    hosts = ",".join(f"{host}=127.0.0.{last}" for host, all_of in addresses.items() for last in all_of)
    with contextlib.ExitStack() as stack:
        for last in range(11, 18):
            stack.enter_context(silent(f"127.0.0.{last}", server.port))
        policy = sandbox.policy(policy_text(["web.test", "other.test", *LOOPBACK]))
        child = sandbox.popen([PYTHON, "-c", DIALS, name, str(server.port)], policy=policy,
                              env={"ATOLL_TEST_HOSTS": hosts}, stdin=subprocess.PIPE)
        assert child.stdout.readline() == b"connecting\n", child.stderr.read()
        pid, = gate_of(sandbox)
        before, counts, end = count_sockets(pid), [], time.monotonic() + 3.5
        child.stdin.write(b"\n"), child.stdin.flush()
        while time.monotonic() < end:
            counts.append(count_sockets(pid) - before)
            time.sleep(0.02)
        assert max(counts) == 6, counts
        if name == "other.test":
            assert child.stdout.readline() == b"reached\n"
        child.kill()
    server.close()
