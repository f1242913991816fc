# SPDX-License-Identifier: Apache-2.0
"""`atoll serve` with a certificate and a domain of its own: clients that check both, and a server inside behind it."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess

import pytest

from atoll import wait_until
from service import DEGRADED, make_authority

pytestmark = pytest.mark.needs("openssl", "curl")
DOMAIN = "sandboxes.test"
SERVER = r"""
import base64, hashlib, re, socket, threading, time
def serve(link):
    head = b""
    while b"\r\n\r\n" not in head:
        head += link.recv(4096)
    if head.startswith(b"GET /events "):
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for number in range(3):
            link.sendall(b"data: %d\n\n" % number)
            link.recv(1) if number == 2 else time.sleep(0.2)
    elif b"Upgrade: websocket" in head:
        key = re.search(rb"Sec-WebSocket-Key: (\S+)", head)[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key).digest())
        link.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        while data := link.recv(65536):
            link.sendall(data)
    else:
        host = re.search(rb"Host: (\S+)", head)[1]
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(host), host))
    link.close()
listener = socket.create_server(("127.0.0.1", 8000))
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()
"""


@pytest.fixture
def authority(sandbox):
    return make_authority(sandbox, ["localhost", DOMAIN, f"*.{DOMAIN}"])


class Served:
    def __init__(self, sandbox, place, said, daemon):
        self.sandbox, self.place, self.key, self.daemon = sandbox, place, said["key"], daemon
        self.said, self.url, self.port = said, said["url"], int(said["url"].rsplit(":", 1)[1])

    def curl(self, url, *words, code=0):
        """As one who believes our CA alone; every name of the domain is this machine."""
        done = subprocess.run(["curl", "-sS", "--max-time", "60", "--cacert", self.place / "ca.pem",
                               "--connect-to", f"::127.0.0.1:{self.port}", *words, url],
                              capture_output=True, check=False)
        assert done.returncode == code, (url, words, done)
        return done.stdout.decode()

    def api(self, path, *words):
        return json.loads(self.curl(f"https://api.{DOMAIN}:{self.port}{path}", "-H", f"X-API-KEY: {self.key}", *words))

    def inside(self, name):
        return f"https://8000-{name}.{DOMAIN}:{self.port}"

    def connect(self, host):
        context = ssl.create_default_context(cafile=str(self.place / "ca.pem"))
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), timeout=60),
                                   server_hostname=host)


@pytest.fixture
def served(sandbox, authority):
    words = [str(sandbox.programs.atoll), "serve", "--listen", "127.0.0.1:0", "--json", "--domain", DOMAIN,
             "--tls-cert", str(authority / "certificate.pem"), "--tls-key", str(authority / "key.pem"),
             "--policy", str(sandbox.policy(DEGRADED, "service-test.yaml"))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **sandbox.popen_keywords()) as server:
        one = Served(sandbox, authority, json.loads(server.stdout.readline()), server.pid)
        yield one
        server.terminate()
        assert server.wait(60) == 0


@pytest.fixture
def name(served):
    """A sandbox with a server at its port 8000."""
    made = served.api("/sandboxes", "-X", "POST", "-H", "Content-Type: application/json", "-d",
                      '{"templateID":"base","timeout":600}')
    started = served.sandbox.run_atoll("exec", "-d", made["sandboxID"], "--", "python3", "-c", SERVER)
    assert started.code == 0, started
    seen = served.sandbox.popen_keywords()
    with subprocess.Popen([str(served.sandbox.programs.atoll), "attach", "--no-stdin", made["sandboxID"]],
                          stdout=subprocess.PIPE, **seen) as follower:
        assert follower.stdout.readline() == b"ready\n"
        follower.kill()
    assert made["domain"] == DOMAIN or made["domain"] is None, made
    yield made["sandboxID"]
    assert served.sandbox.run_atoll("stop", "-t", "0s", made["sandboxID"]).code == 0


def test_the_service_and_what_is_inside_have_the_domain_and_its_certificate(served, name):
    assert served.url == f"https://api.{DOMAIN}:{served.port}" and served.said["domain"] == DOMAIN
    assert served.said["sandbox_url"] == f"https://sandbox.{DOMAIN}:{served.port}"
    by_headers = ["-H", f"E2b-Sandbox-Id: {name}", "-H", "E2b-Sandbox-Port: 8000"]
    assert served.curl(served.said["sandbox_url"] + "/", *by_headers) == f"sandbox.{DOMAIN}:{served.port}"
    assert [row["sandboxID"] for row in served.api("/v2/sandboxes")] == [name]
    host = f"8000-{name}.{DOMAIN}:{served.port}"
    assert served.curl(served.inside(name) + "/") == host
    # Who does not know the CA goes away, and so does who asks for a name that it did not sign.
    assert "certificate" in subprocess.run(["curl", "-sS", "--resolve", f"{DOMAIN}:{served.port}:127.0.0.1",
                                            f"https://{DOMAIN}:{served.port}/health"], capture_output=True,
                                           check=False, text=True).stderr
    served.curl(f"https://8000-{name}.other.test:{served.port}/", code=60)
    # No name but ours is answered, whatever the certificate says; and nothing without TLS.
    assert "Host" in served.curl(served.inside(name) + "/", "-H", f"Host: 8000-{name}.other.test")
    plain = subprocess.run(["curl", "-s", "--max-time", "60", f"http://127.0.0.1:{served.port}/health"],
                           capture_output=True, check=False)
    assert plain.returncode != 0 and b"HTTP" not in plain.stdout


def test_doctor_says_that_it_runs_and_what_waits(served, name):
    def doctor():
        return json.loads(served.sandbox.run_atoll("doctor", "--json", timeout=120).out)["checks"]

    def detail():
        return next(one["detail"] for one in doctor() if one["what"] == "service")
    # The first create found none, and had one built for the next.
    wait_until(lambda: "atolld runs; 1 sandbox waits" in detail(), 120)
    os.kill(served.daemon, signal.SIGTERM)
    wait_until(lambda: "does not run now" in detail(), 120)


def front_of(served):
    """The process that speaks TLS: a child of the daemon."""
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            status = (path / "status").read_text()
            if f"PPid:\t{served.daemon}\n" in status and "Name:\tatoll-front\n" in status:
                return int(path.name)
    return None


def test_the_next_front_has_the_certificate_too(served):
    first = front_of(served)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: front_of(served) not in (None, first), 60)
    assert served.api("/v2/sandboxes") == []


def test_events_come_one_by_one(served, name):
    with served.connect(f"8000-{name}.{DOMAIN}") as link:
        link.sendall(f"GET /events HTTP/1.1\r\nHost: 8000-{name}.{DOMAIN}:{served.port}\r\n\r\n".encode())
        got = b""
        # The server waits for us behind the last: what is not passed on at once never comes.
        while b"data: 2\n\n" not in got:
            piece = link.recv(65536)
            assert piece, got
            got += piece
        assert got.startswith(b"HTTP/1.1 200 ") and b"text/event-stream" in got and b"data: 0\n\n" in got


def test_a_websocket_carries_bytes_both_ways(served, name):
    with served.connect(f"8000-{name}.{DOMAIN}") as link:
        link.sendall(f"GET / HTTP/1.1\r\nHost: 8000-{name}.{DOMAIN}:{served.port}\r\nConnection: Upgrade\r\n"
                     "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        got = b""
        while b"\r\n\r\n" not in got:
            got += link.recv(65536)
        assert got.startswith(b"HTTP/1.1 101 ") and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in got, got
        for size in (1, 1000, 200000):
            sent, back = os.urandom(size), b""
            link.sendall(sent)
            while len(back) < size:
                back += link.recv(65536)
            assert back == sent


def test_a_certificate_that_is_none_is_said_at_the_start(sandbox, authority):
    bad = sandbox.write(authority / "bad.pem", "no certificate\n")
    for certificate, key, said in ((bad, authority / "key.pem", "certificate"),
                                   (authority / "certificate.pem", None, "--tls-key"),
                                   (authority / "nowhere.pem", authority / "key.pem", "nowhere.pem")):
        words = ["serve", "--listen", "127.0.0.1:0", "--json", "--tls-cert", str(certificate)]
        result = sandbox.run_atoll(*words, *(["--tls-key", str(key)] if key else []), timeout=60)
        assert result.code == 125 and said in result.err, (words, result)
