# SPDX-License-Identifier: Apache-2.0
"""N2, N5, N6, N10: without a network there is none, by any road; what stays inside works."""
import socket
import threading
import time

import pytest


@pytest.fixture
def listener():
    """A TCP and a UDP server of the host on every address of it."""
    heard = []
    tcp = socket.socket(socket.AF_INET6)
    tcp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    tcp.bind(("::", 0))
    tcp.listen(16)
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    udp.bind(("::", tcp.getsockname()[1]))

    def accept():
        while True:
            try:
                connection, address = tcp.accept()
            except OSError:
                return
            heard.append(address)
            connection.close()

    def receive():
        while True:
            try:
                heard.append(udp.recvfrom(100)[1])
            except OSError:
                return

    for target in (accept, receive):
        threading.Thread(target=target, daemon=True).start()
    yield tcp.getsockname()[1], heard
    for sock in (tcp, udp):
        sock.shutdown(socket.SHUT_RDWR) if sock is tcp else None
        sock.close()


CALLS = """
import socket, sys
port = int(sys.argv[1])
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "{own}"),
                        (socket.AF_INET, "0.0.0.0")):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(family, kind)
        s.settimeout(1)
        try:
            s.connect((address, port))
            s.send(b"hello")
            print("reached", address, kind)
        except OSError as error:
            print("refused", address, error)
"""


def own_address():
    """An address of the host beyond loopback (no packet is sent by connecting a datagram socket)."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.connect(("192.0.2.1", 9))
        return sock.getsockname()[0]
    except OSError:
        return "127.0.0.2"
    finally:
        sock.close()


@pytest.mark.parametrize("rules", ["", "network: {default: deny}\n", "network: {default: deny, allow: []}\n",
        "network: {allow: []}\n"])
def test_the_host_hears_nothing(sandbox, listener, rules):
    """N2: an empty list of what is allowed allows nothing."""
    port, heard = listener
    script = ["python3", "-c", CALLS.format(own=own_address()), str(port)]
    assert "reached" in sandbox.run_outside(script).out
    time.sleep(0.3)   # what the control sent is heard by then
    heard.clear()
    done = sandbox.run(script, policy=sandbox.policy(f"atoll: 1\nextends: medium\n{rules}"))
    assert done.code == 0 and "refused" in done.out, done
    assert not heard, heard


def test_names_are_not_resolved(sandbox):
    """N6: no resolver, fast."""
    script = ("import socket, time\nt = time.monotonic()\ntry: print('resolved', "
            "socket.getaddrinfo('secret.example.org', 80))\nexcept OSError as e: print('failed', e)\n"
                    "print(time.monotonic() - t < 3)")
    done = sandbox.run(["python3", "-c", script], timeout=30)
    assert "resolved" not in done.out and "True" in done.out, done


def test_what_stays_inside_works(sandbox):
    """Servers and clients of one sandbox reach each other: TCP of both families, UDP, unix sockets that connect."""
    script = """
import os, socket, tempfile
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    server = socket.socket(family); server.bind((address, 0)); server.listen()
    client = socket.create_connection(server.getsockname()[:2]); other, _ = server.accept()
    client.send(b"x"); assert other.recv(1) == b"x"
    box = socket.socket(family, socket.SOCK_DGRAM); box.bind((address, 0))
    socket.socket(family, socket.SOCK_DGRAM).sendto(b"y", box.getsockname()); assert box.recv(1) == b"y"
for place in (tempfile.mkdtemp(), "/dev/shm"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        server = socket.socket(socket.AF_UNIX, kind); server.bind(place + f"/s{int(kind)}"); server.listen()
        client = socket.socket(socket.AF_UNIX, kind); client.connect(place + f"/s{int(kind)}")
        other, _ = server.accept(); client.send(b"x"); assert other.recv(1) == b"x"
server = socket.socket(socket.AF_UNIX); server.bind("\\0inside"); server.listen()
socket.socket(socket.AF_UNIX).connect("\\0inside")
print(socket.gethostbyname("localhost"))
print("all works")
"""
    done = sandbox.run(["python3", "-c", script])
    assert "all works" in done.out, done


@pytest.mark.parametrize("level", ["high", "full"])
def test_a_hosts_socket_in_the_project_is_no_way_out(sandbox, level):
    """I1, I2, I5: a bind mount carries connect(); the host's daemon may listen right in the project."""
    heard = []
    server = socket.socket(socket.AF_UNIX)
    path = sandbox.project / "daemon.sock"
    server.bind(str(path))
    path.chmod(0o777)
    server.listen()
    threading.Thread(target=lambda: heard.append(server.accept()), daemon=True).start()
    script = ["python3", "-c", "import socket\nsocket.socket(socket.AF_UNIX).connect('daemon.sock')"]
    done = sandbox.run(script, trust=level)
    assert done.code != 0 and not heard, (done, heard)
    assert sandbox.run_outside(script).code == 0
    server.close()


SWAP = """
import ctypes, mmap, os, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
memory = mmap.mmap(-1, 4096)
place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
local = struct.pack("=H14s", socket.AF_UNIX, b"daemon.sock")
inet = struct.pack("=HH4s8s", socket.AF_INET, 0x900, bytes([127, 0, 0, 1]), bytes(8))
if os.fork() == 0:
    until = time.monotonic() + 3
    while time.monotonic() < until:
        memory[:16] = local
        memory[:16] = inet
    os._exit(0)
client = socket.socket(socket.AF_UNIX)
client.setblocking(False)
until = time.monotonic() + 2
while time.monotonic() < until:
    if libc.connect(client.fileno(), ctypes.c_void_p(place), 16) == 0:
        print("connected")
        break
"""


@pytest.mark.parametrize("level", ["high", "full"])
def test_an_address_that_is_swapped_after_the_look_is_no_way_out(sandbox, level):
    """I1, I2, I5: judged as an address of loopback, a path when the kernel reads it."""
    with socket.socket(socket.AF_UNIX) as server:
        path = sandbox.project / "daemon.sock"
        server.bind(str(path))
        path.chmod(0o777)
        server.listen(64)
        server.setblocking(False)
        done = sandbox.run(["python3", "-c", SWAP], trust=level)
        assert done.code == 0 and "connected" not in done.out, done
        with pytest.raises(BlockingIOError):
            server.accept()
        assert "connected" in sandbox.run_outside(["/usr/bin/python3", "-c", SWAP]).out
        server.accept()[0].close()


def test_descriptors_do_not_cross_through_a_socket_of_the_project(sandbox):
    """SCM_RIGHTS into the sandbox would carry in what the view does not have; the other way it is only our own."""
    path = sandbox.project / "passing.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    path.chmod(0o777)
    server.listen()
    server.settimeout(3)
    script = ("import socket\ns = socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect('passing.sock')\n"
            "print(socket.recv_fds(s, 10, 1))")
    child = sandbox.popen(["python3", "-c", script])
    try:
        connection, _ = server.accept()
        with open("/etc/hostname") as file:
            socket.send_fds(connection, [b"x"], [file.fileno()])
        connection.close()
    except TimeoutError:
        pass
    out, _ = child.communicate(timeout=20)
    assert b"b'x'" not in out, "a descriptor of the host came in"
    server.close()
