# SPDX-License-Identifier: Apache-2.0
"""Streams, versions, attacks and bad servers on hosts with `http:` rules, through the gate of a real run."""
import hashlib
import json
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import pytest

from gate import LOOPBACK, Listener, policy_text, test_hosts

pytestmark = pytest.mark.needs("openssl", "curl")


def rules(sandbox, *ports, more="", http="{paths: [\"/v1/**\"]}", host="web.test"):
    words = f"{{host: {host}, ports: [{', '.join(map(str, ports))}], http: [{http}]}}"
    return sandbox.policy(policy_text([words, *LOOPBACK], more))


def outside(certificates, names=("web.test", "other.test")):
    return {**test_hosts("127.0.0.1", names), "SSL_CERT_FILE": str(certificates.ca)}


def records(sandbox, done, kind="net.http"):
    lines = sandbox.audit_log(done.session).read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["type"] == kind]


def read_head(connection):
    """Up to the empty line, never a byte more."""
    head = b""
    while b"\r\n\r\n" not in head:
        byte = connection.recv(1)
        if not byte:
            raise ConnectionResetError("the peer left within the head")
        head += byte
    return head


class Secure:
    """A TLS server whose connections go to serve(connection, head), one head after the other; heads has them all."""

    def __init__(self, context, serve):
        self.serve, self.heads, self.context = serve, [], context
        self.listener = Listener(self.talk)
        self.port = self.listener.port

    def talk(self, connection):
        with self.context.wrap_socket(connection, server_side=True) as secured:
            secured.settimeout(20)
            while True:
                head = read_head(secured)
                self.heads.append(head)
                if self.serve(secured, head) is False:
                    return

    def close(self):
        self.listener.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
nudged = threading.Semaphore(0)


def read_chunk(connection):
    size = b""
    while not size.endswith(b"\r\n"):
        size += connection.recv(1)
    body = b""
    while len(body) < int(size, 16) + 2:
        body += connection.recv(int(size, 16) + 2 - len(body))
    return body[:-2]


def serve_events(connection, _head):
    connection.sendall(CHUNKED + b"\r\n")
    for number in range(3):
        connection.sendall(b"9\r\ndata: %d\n\n\r\n" % number)
        # Not before the client has seen it, and said so on another connection.
        assert nudged.acquire(timeout=10)
    connection.sendall(b"0\r\n\r\n")


def serve_echo(connection, _head):
    connection.sendall(CHUNKED + b"Trailer: X-Sum\r\n\r\n")
    while True:
        piece = read_chunk(connection)
        if not piece:
            break
        connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece[::-1]))
    connection.sendall(b"0\r\nX-Sum: 7\r\n\r\n")


def serve_socket(connection, head):
    if b"websocket" not in head.lower():
        connection.sendall(OK)
        return None
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    while True:
        got = connection.recv(1000)
        if not got:
            return False
        connection.sendall(got[::-1])


def serve_continue(connection, head):
    size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    while size:
        size -= len(connection.recv(min(size, 65536)))
    connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK)


SERVED = {b"/v1/events": serve_events, b"/v1/echo": serve_echo, b"/v1/socket": serve_socket,
          b"/v1/continue": serve_continue}


def serve_all(connection, head):
    path = head.split(b" ")[1]
    if path == b"/v1/nudge":
        nudged.release()
    if path in SERVED:
        return SERVED[path](connection, head)
    connection.sendall(OK)
    return None


@pytest.fixture
def secure(certificates):
    server = Secure(certificates.context(), serve_all)
    yield server
    server.close()


# What runs inside begins with this.
CLIENT = r"""
import json, socket, ssl, sys
port = int(sys.argv[1])
host = f"Host: web.test:{port}\r\n".encode()
context = ssl.create_default_context()

def connect(name="web.test"):
    raw = socket.create_connection(("web.test", port), timeout=5)
    return context.wrap_socket(raw, server_hostname=name)

def read_head(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        byte = connection.recv(1)
        assert byte, head
        head += byte
    return head

def read_to(connection, wanted):
    seen = b""
    while wanted not in seen:
        byte = connection.recv(1)
        assert byte, seen
        seen += byte
    return seen

def everything(connection):
    seen = b""
    try:
        while True:
            piece = connection.recv(65536)
            if not piece:
                return seen
            seen += piece
    except (ConnectionResetError, ssl.SSLError):
        return seen
"""
STREAMS = CLIENT + r"""
found = {}
with connect() as events, connect() as nudge:
    events.sendall(b"GET /v1/events HTTP/1.1\r\n" + host + b"\r\n")
    assert b"event-stream" in read_head(events)
    for number in range(3):
        read_to(events, b"data: %d" % number)
        nudge.sendall(b"GET /v1/nudge HTTP/1.1\r\n" + host + b"\r\n")
        read_to(nudge, b"\r\n\r\nok")
    read_to(events, b"0\r\n\r\n")
    # The same connection goes on, and each request is judged by itself.
    events.sendall(b"GET /v1/next HTTP/1.1\r\n" + host + b"\r\n")
    read_to(events, b"\r\n\r\nok")
    events.sendall(b"GET /other HTTP/1.1\r\n" + host + b"\r\n")
    found["refused"] = everything(events).decode()
with connect() as echo:
    echo.sendall(b"POST /v1/echo HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n")
    read_head(echo)
    for word in (b"one", b"three", b"x" * 3000):
        echo.sendall(b"%x\r\n%s\r\n" % (len(word), word))
        read_to(echo, word[::-1])
    echo.sendall(b"0\r\n\r\n")
    found["trailers"] = read_to(echo, b"X-Sum: 7\r\n\r\n").decode()
with connect() as web:
    web.sendall(b"GET /v1/socket HTTP/1.1\r\n" + host + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    found["upgrade"] = read_head(web).decode()
    for word in (b"hello", b"\x00\x01GET /other HTTP/1.1\r\n\r\n"):
        web.sendall(word)
        read_to(web, word[::-1])
with connect() as slow:
    slow.sendall(b"PUT /v1/continue HTTP/1.1\r\n" + host + b"Expect: 100-continue\r\nContent-Length: 200000\r\n\r\n")
    found["continue"] = read_head(slow).decode()
    slow.sendall(b"x" * 200000)
    found["hints"] = read_head(slow).decode()
    read_to(slow, b"\r\n\r\nok")
print(json.dumps(found))
"""


def test_streams(sandbox, certificates, secure):
    sandbox.write(sandbox.project / "streams.py", STREAMS)
    done = sandbox.run(["/usr/bin/python3", "streams.py", str(secure.port)], policy=rules(sandbox, secure.port),
                       env=outside(certificates))
    assert done.code == 0, done
    found = json.loads(done.out)
    assert found["refused"].startswith("HTTP/1.1 403 ") and "refused by atoll" in found["refused"], found
    assert "101 Switching" in found["upgrade"] and " 100 " in found["continue"] and " 103 " in found["hints"], found
    assert not [head for head in secure.heads if b"/other" in head]
    kept = {(entry["detail"]["path"], entry["detail"].get("status")): entry["detail"]
            for entry in records(sandbox, done)}
    assert kept["/v1/echo", 200]["out_bytes"] == kept["/v1/echo", 200]["in_bytes"] == 3008
    assert kept["/v1/socket", 101]["out_bytes"] == kept["/v1/socket", 101]["in_bytes"] == 30
    assert kept["/v1/continue", 200]["out_bytes"] == 200000 and kept["/other", 403]["in_bytes"] == 0
    events = kept["/v1/events", 200]["connection"], kept["/v1/next", 200]["connection"]
    assert events[0] == events[1] and ("/v1/nudge", 200) in kept


BROKEN = CLIENT + r"""
import struct
for path in (b"/v1/slow", b"/v1/slower"):
    connection = connect()
    connection.sendall(b"POST " + path + b" HTTP/1.1\r\n" + host + b"Content-Length: 100\r\n\r\nsecret")
    read_to(connection, b"begun")
    if path == b"/v1/slow":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket(fileno=connection.detach()).close()
"""


def test_clients_that_break_off_are_written_down(sandbox, certificates):
    """By a reset, and by the end of the run in the middle of an answer, which it does not hold up."""
    def serve(connection, head):
        connection.sendall(CHUNKED + b"\r\n5\r\nbegun\r\n")
        while connection.recv(1000):
            pass

    server = Secure(certificates.context(), serve)
    sandbox.write(sandbox.project / "broken.py", BROKEN)
    try:
        done = sandbox.run(["/usr/bin/python3", "broken.py", str(server.port)], policy=rules(sandbox, server.port),
                           env=outside(certificates))
    finally:
        server.close()
    assert done.code == 0, done
    kept = {entry["detail"]["path"]: entry["detail"] for entry in records(sandbox, done)}
    assert set(kept) == {"/v1/slow", "/v1/slower"}, kept
    assert all(entry["out_bytes"] == 6 and entry["error"] for entry in kept.values()), kept


ATTACKS = CLIENT + r"""
attacks = json.loads(sys.argv[2])
answers = []
for text in attacks:
    with connect() as connection:
        connection.sendall(text.encode("latin-1").replace(b"PORT", str(port).encode()))
        try:
            answers.append(everything(connection).decode("latin-1"))
        except TimeoutError:
            answers.append("time-out")
try:
    connect("other.test").close()
    answers.append("fronted")
except OSError as error:
    answers.append("cut off")
print(json.dumps(answers))
"""
HOST = "Host: web.test:PORT\r\n"
MALFORMED = [
    f"POST /v1/a HTTP/1.1\r\n{HOST}Content-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    f"POST /v1/a HTTP/1.1\r\n{HOST}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    f"POST /v1/a HTTP/1.1\r\n{HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    f"POST /v1/a HTTP/1.1\r\n{HOST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    f"GET /v1/a HTTP/1.1\r\n{HOST}X: 1\r\n folded\r\n\r\n",
    "GET /v1/a HTTP/1.1\nHost: web.test:PORT\n\n",
    f"GET /v1/a HTTP/1.1\r\n{HOST}Host: other.test\r\n\r\n",
    "GET /v1/a HTTP/1.1\r\nHost: other.test\r\n\r\n",
    f"GET https://other.test/v1/a HTTP/1.1\r\n{HOST}\r\n",
    f"GET http://web.test:PORT/v1/a HTTP/1.1\r\n{HOST}\r\n",
    "GET /v1/a HTTP/1.1\r\n\r\n",
    f"CONNECT other.test:443 HTTP/1.1\r\n{HOST}\r\n",
    f"GET /v1/\x01 HTTP/1.1\r\n{HOST}\r\n",
    f"GET /v1/a\0 HTTP/1.1\r\n{HOST}\r\n",
    "GET /v1/" + "a" * 70000,
    f"GET /v1/a HTTP/1.1\r\n{HOST}" + "".join(f"X-{i}: y\r\n" for i in range(200)) + "\r\n",
    "\x16\x03\x01" * 50 + "\r\n\r\n",
]
REFUSED = [f"{line} HTTP/1.1\r\n{HOST}\r\n" for line in (
    "GET /other", "GET /v1/../other", "GET /v1/%2e%2e/other", "GET /v1/..%2fother", "GET /v1/%252e%252e/other",
    "GET /v1/..;/other", "GET /v1/..\\other", "GET /V1/a", "GET //v1/a", "GET /v11", "GET https://web.test:PORT/other",
    "OPTIONS *", "get /v1/a/../../other")]
PASSED = [f"{line} HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n" for line in (
    "GET /v1/a", "GET /v1/%61", "GET /v1/x/../a", "GET https://WEB.test:PORT/v1/a", "GET /v1/a?q=/../other",
    "DELETE /v1//a")]


def test_attacks(sandbox, certificates, secure):
    sandbox.write(sandbox.project / "attacks.py", ATTACKS)
    done = sandbox.run(["/usr/bin/python3", "attacks.py", str(secure.port), json.dumps(MALFORMED + REFUSED + PASSED)],
                       policy=rules(sandbox, secure.port), env=outside(certificates))
    assert done.code == 0, done
    answers = json.loads(done.out)
    for text, answer in zip(MALFORMED, answers):
        assert answer.startswith("HTTP/1.1 400 ") and "refused by atoll" in answer, (text[:100], answer)
    for text, answer in zip(REFUSED, answers[len(MALFORMED):]):
        assert answer.startswith(("HTTP/1.1 403 ", "HTTP/1.1 400 ")), (text, answer)
    for text, answer in zip(PASSED, answers[len(MALFORMED) + len(REFUSED):]):
        assert answer == OK.decode(), (text, answer)
    assert answers[-1] == "cut off", answers[-1]
    # Nothing but what was allowed came through: as many heads, of this host, as it was judged.
    assert len(secure.heads) == len(PASSED), secure.heads
    for head in secure.heads:
        assert head.split(b" ")[1].startswith(b"/v1/") and head.count(b"Host: ") == 1, head
    kept = records(sandbox, done)
    assert len(kept) == len(answers) - 1
    assert [entry["verdict"] for entry in kept].count("allow") == len(PASSED)
    assert all(entry["rule"] == "builtin.http" for entry in kept if entry["detail"]["path"] == ""), kept
    fronted, = [entry for entry in records(sandbox, done, "net.connect") if entry["verdict"] == "deny"]
    assert fronted["rule"] == "builtin.server_name" and fronted["detail"]["server_name"] == "other.test"


# --- Servers that are not as they should be. ---

BAD = {
    b"/v1/garbage": b"\x00\x01 nothing of HTTP\r\n\r\n",
    b"/v1/two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    b"/v1/lines": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    b"/v1/large": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70000 + b"\r\n\r\n",
    b"/v1/nothing": b"",
    b"/v1/half": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
}


def serve_badly(connection, head):
    connection.sendall(BAD[head.split(b" ")[1]])
    return False


def test_servers_that_answer_badly(sandbox, certificates):
    server = Secure(certificates.context(), serve_badly)
    lines = "".join(f"echo; echo == {path.decode()}; curl -sS -m 10 -w '%{{http_code}}' $URL{path.decode()} 2>&1;"
                    for path in BAD)
    try:
        done = sandbox.run(f"URL=https://web.test:{server.port}; {lines} true",
                           policy=rules(sandbox, server.port), env=outside(certificates))
    finally:
        server.close()
    said = dict(part.split("\n", 1) for part in done.out.split("== ")[1:])
    half = said.pop("/v1/half")
    assert "half" in half and "curl: (" in half, done
    for path, answer in said.items():
        assert answer.strip().endswith("502") and "refused by atoll" in answer, (path, answer)
    errors = {entry["detail"]["path"]: entry["detail"]["error"] for entry in records(sandbox, done)}
    assert errors["/v1/nothing"] == "the server closed the connection without an answer", errors
    assert errors["/v1/half"] == "the answer ends in the middle" and len(set(errors.values())) >= 5, errors


def test_servers_that_cannot_be_trusted(sandbox, certificates, secure, tmp_path):
    """Whoever the host does not trust is not trusted for the sandbox, and both the client and the log are told why."""
    certificate, key = tmp_path / "own.pem", tmp_path / "own.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-keyout", str(key), "-out", str(certificate), "-subj", "/CN=web.test", "-addext",
                    "subjectAltName=DNS:web.test"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    own = Secure(context, serve_all)
    words = "curl -sS -w '\\n%{http_code}\\n'"
    text = policy_text([f"{{host: {host}, ports: [{own.port}, {secure.port}], http: [{{paths: [\"/v1/**\"]}}]}}"
                        for host in ("web.test", "another.test")] + list(LOOPBACK))
    try:
        done = sandbox.run(f"{words} https://web.test:{own.port}/v1/a; "
                           f"{words} --http2 https://web.test:{own.port}/v1/b; "
                           f"{words} https://another.test:{secure.port}/v1/c; "
                           f"{words} https://web.test:{secure.port}/v1/d", policy=sandbox.policy(text),
                           env=outside(certificates, ("web.test", "another.test")))
    finally:
        own.close()
    lines = done.out.splitlines()
    assert [lines[at] for at in (2, 5, 8)] == ["502"] * 3 and lines[9:] == ["ok", "200"], done
    reasons = [f"no TLS with web.test:{own.port}: self-signed certificate"] * 2
    reasons.append(f"no TLS with another.test:{secure.port}: hostname mismatch")
    assert [json.loads(lines[at])["reason"] for at in (0, 3, 6)] == reasons, done
    assert not own.heads and [head.split(b" ")[1] for head in secure.heads] == [b"/v1/d"]
    errors = [entry["detail"].get("error") for entry in records(sandbox, done)]
    assert errors == [*reasons, None], errors
    assert f": 3 requests not sent: {reasons[0]}, …; more: atoll log --net {done.session}\n" in done.err, done


# --- A real server, in both versions of HTTP. ---

NGINX = """worker_processes 1; daemon off; pid {root}/pid; error_log {root}/error.log;
events {{ worker_connections 512; }}
http {{ access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fcgi;
uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi; client_max_body_size 100m; http2_max_concurrent_streams 32;
ssl_certificate {certificates}/chain.pem; ssl_certificate_key {certificates}/key.pem;
server {{ listen 127.0.0.1:{new} ssl http2; root {root};
location = /v1/who {{ return 200 "$server_protocol $request_uri\\n"; }} }}
server {{ listen 127.0.0.1:{old} ssl; root {root};
location = /v1/who {{ return 200 "$server_protocol $request_uri\\n"; }} }} }}
"""
LARGE = 8 << 20


def free_ports(count):
    with socket.socket() as one, socket.socket() as two:
        probes = (one, two)[:count]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


@pytest.fixture(scope="module")
def nginx(certificates):
    """On two ports: one that speaks HTTP/2, one that does not."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="atolltest-nginx-", dir="/tmp"))
    new, old = free_ports(2)
    (root / "v1").mkdir()
    (root / "v1" / "large").write_bytes(bytes(range(256)) * (LARGE // 256))
    for number in range(40):
        (root / "v1" / f"file-{number}").write_text(f"{number}\n")
    root.chmod(0o755)
    (root / "conf").write_text(NGINX.format(root=root, new=new, old=old, certificates=certificates.directory))
    child = subprocess.Popen(["/usr/sbin/nginx", "-c", str(root / "conf"), "-e", str(root / "error.log")],
                             stderr=subprocess.PIPE)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", old), timeout=1).close()
            break
        except OSError:
            time.sleep(0.05)
    yield new, old
    child.terminate()
    child.wait(timeout=10)
    shutil.rmtree(root)


@pytest.mark.needs("nginx")
def test_both_versions_of_http(sandbox, certificates, nginx):
    new, old = nginx
    show = "-sS -w '%{http_version} %{num_connects} %{http_code}\\n'"
    done = sandbox.run(
        f"N=https://web.test:{new} O=https://web.test:{old}\n"
        f"curl --http2 {show} $N/v1/who; curl --http1.1 {show} $N/v1/who; curl --http2 {show} $O/v1/who\n"
        f"curl --http2 -sS -o /dev/null -w '%{{http_code}}\\n' $N/other\n"
        f"for u in $N $O; do curl --http2 -sS $u/v1/large | sha256sum; done\n"
        "curl --http2 -sSZ --parallel-max 40 " + " ".join(f"$N/v1/file-{number}" for number in range(40)) +
        " | sort -n | tr '\\n' ' '", policy=rules(sandbox, new, old), env=outside(certificates))
    lines = done.out.splitlines()
    assert lines[0:2] == ["HTTP/2.0 /v1/who", "2 1 200"] and lines[2:4] == ["HTTP/1.1 /v1/who", "1.1 1 200"], done
    assert lines[4:6] == ["HTTP/1.1 /v1/who", "1.1 1 200"] and lines[6] == "403", done
    digest = hashlib.sha256(bytes(range(256)) * (LARGE // 256)).hexdigest()
    assert lines[7].startswith(digest) and lines[8].startswith(digest), done
    assert lines[-1].split() == [str(number) for number in range(40)], done
    kept = records(sandbox, done)
    files = {entry["detail"]["connection"] for entry in kept if "/file-" in entry["detail"]["path"]}
    assert len(files) == 1 and len(kept) == 46, (files, len(kept))
    assert sum(entry["detail"]["in_bytes"] for entry in kept) > 2 * LARGE
    # Clients that have what they wanted close as they please: that is no fault of a connection.
    closed = [entry["detail"]["error"] for entry in records(sandbox, done, "net.close")]
    assert closed == [None] * 7, closed
