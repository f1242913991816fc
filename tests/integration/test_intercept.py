# SPDX-License-Identifier: Apache-2.0
"""Interception between real clients and real servers: rules, credentials, streams, both versions of HTTP."""
import os
import pathlib
import re
import select
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest

SECRET = "sk-real-0123456789"
NGINX = """worker_processes 1; daemon off; pid {root}/pid; error_log {root}/error.log;
events {{ worker_connections 512; }}
http {{ access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fcgi;
uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi; client_max_body_size 100m; keepalive_requests 1000000;
server {{ listen 127.0.0.1:{port} ssl{http2}; ssl_certificate {certificate}; ssl_certificate_key {key}; root {root};
location /allowed/echo {{ return 200 "$http_authorization $server_protocol $request_method $request_uri\\n"; }}
location /allowed/away {{ return 302 https://evil.example/?$http_authorization; }}
location / {{ return 200 "reached $request_uri\\n"; }}
location /allowed/files/ {{ }} }} }}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_certificate(directory, name):
    key, certificate = directory / f"{name}.key", directory / f"{name}.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-keyout", str(key), "-out", str(certificate), "-subj", f"/CN={name}", "-addext",
                    f"subjectAltName=DNS:{name}"], check=True, capture_output=True)
    return certificate, key


class Gate:
    """intercept-server in front of a server, and clients that trust it."""

    def __init__(self, directory, server_port, bundle, patience_ms=60000):
        default = pathlib.Path(__file__).parents[2] / "build" / "bin"
        built = pathlib.Path(os.environ.get("ATOLL_BIN", default)).resolve()
        program = built.parent / "host" / "tests" / "unit" / "egress" / "http" / "intercept-server"
        if not program.exists():
            pytest.skip(f"{program} is not built")
        self.authority = directory / f"authority-{server_port}.pem"
        self.child = subprocess.Popen([str(program), str(self.authority), str(server_port), str(bundle),
                                       str(patience_ms)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.port = int(self.child.stdout.readline().split()[1])
        self.url = f"https://localhost:{self.port}"

    def curl(self, path, *options):
        return subprocess.run(["curl", "-sS", "--path-as-is", "-m", "30", "--cacert", str(self.authority), *options,
                               self.url + path], capture_output=True, timeout=60)

    def connect(self, *protocols):
        context = ssl.create_default_context(cafile=str(self.authority))
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.port), timeout=20),
                                   server_hostname="localhost")

    def ask(self, text):
        """Everything that comes for this, until the connection ends."""
        with self.connect() as connection:
            connection.sendall(text)
            answer = b""
            while True:
                try:
                    piece = connection.recv(65536)
                except (ConnectionResetError, ssl.SSLError):
                    return answer
                if not piece:
                    return answer
                answer += piece

    def end(self):
        alive = self.child.poll() is None
        self.child.stdin.close()
        out, err = self.child.stdout.read(), self.child.stderr.read()
        code = self.child.wait(timeout=10)
        self.child.stdout.close()
        self.child.stderr.close()
        assert alive and code == 0, err
        assert SECRET.encode() not in out + err


@pytest.fixture(scope="module", params=["http2", "http1"])
def nginx(request, tmp_path_factory):
    if not shutil.which("nginx", path="/usr/sbin:/usr/bin"):
        pytest.skip("nginx is not installed")
    root, port = tmp_path_factory.mktemp("nginx"), free_port()
    certificate, key = make_certificate(root, "localhost")
    (root / "allowed" / "files").mkdir(parents=True)
    (root / "allowed" / "files" / "large").write_bytes(os.urandom(20 << 20))
    user = "user root;\n" if os.geteuid() == 0 else ""
    (root / "nginx.conf").write_text(user + NGINX.format(root=root, port=port, certificate=certificate, key=key,
                                                        http2=" http2" if request.param == "http2" else ""))
    child = subprocess.Popen(["/usr/sbin/nginx", "-c", str(root / "nginx.conf"), "-p", str(root)],
                             stderr=subprocess.DEVNULL)
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    gate = Gate(root, port, certificate)
    gate.root, gate.version = root, request.param
    gate.server_port, gate.certificate = port, certificate
    yield gate
    child.terminate()
    child.wait(timeout=10)
    gate.end()


def test_a_connection_of_http2_that_is_kept_is_let_go(nginx, tmp_path):
    gate = Gate(tmp_path, nginx.server_port, nginx.certificate, patience_ms=1000)
    with gate.connect("h2", "http/1.1") as connection:
        is_http2 = connection.selected_alpn_protocol() == "h2"
        if is_http2:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        said = b""
        while piece := connection.recv(65536):
            said += piece
    gate.end()
    # SETTINGS (4) first, GOAWAY (7) in the end.
    assert is_http2 == (nginx.version == "http2") and (not is_http2 or (said[3] == 4 and said[-14] == 7)), said


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_the_credential_arrives_and_is_not_inside(nginx, version):
    done = nginx.curl("/allowed/echo?x=1", version, "-H", "Authorization: Bearer placeholder")
    spoken = "HTTP/2.0" if nginx.version == "http2" and version == "--http2" else "HTTP/1.1"
    assert done.stdout.decode() == f"Bearer {SECRET} {spoken} GET /allowed/echo?x=1\n", done
    # The server repeats it in a redirect: the client does not see it.
    away = nginx.curl("/allowed/away", version, "-i")
    assert b"302" in away.stdout.split(b"\r\n")[0] and SECRET.encode() not in away.stdout.split(b"\r\n\r\n")[0]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("path", ["/", "/other", "/allowed/../other", "/allowed/%2e%2e/other", "/allowed/..%2fother",
                                  "//allowed/../x", "/Allowed/echo", "/allowed/%252e%252e/other"])
def test_refused(nginx, version, path):
    done = nginx.curl(path, version, "-i")
    assert b" 403" in done.stdout.split(b"\r\n")[0] and b"refused by atoll" in done.stdout, done
    assert b"reached" not in done.stdout


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_large_bodies(nginx, version):
    done = nginx.curl("/allowed/files/large", version)
    assert done.returncode == 0 and done.stdout == (nginx.root / "allowed" / "files" / "large").read_bytes()
    if nginx.version == "http2" and version == "--http2":
        return   # curl itself waits for ever for a server that answers such an upload without reading it
    large = f"@{nginx.root}/allowed/files/large"
    for more in ([], ["-H", "Transfer-Encoding: chunked"] if version == "--http1.1" else []):
        done = nginx.curl("/allowed/echo", version, "--data-binary", large, *more)
        assert done.returncode == 0 and b"POST" in done.stdout, done


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_many_requests_of_one_connection(nginx, version):
    urls = [f"{nginx.url}/{'allowed/echo' if n % 5 else 'other'}?{n}" for n in range(50)]
    words = ["curl", "-sS", "-Z", "--parallel-max", "10", version, "--cacert", str(nginx.authority), *urls]
    done = subprocess.run(words, capture_output=True, timeout=60)
    assert done.stdout.count(SECRET.encode()) == 40 and done.stdout.count(b"refused by atoll") == 10, done


def test_node(nginx):
    if not shutil.which("node"):
        pytest.skip("node is not installed")
    script = ("fetch(process.argv[1], {method: 'POST', body: 'x'}).then(r => r.text())"
              ".then(t => process.stdout.write(t))")
    done = subprocess.run(["node", "-e", script, nginx.url + "/allowed/echo"], capture_output=True, timeout=30,
                          env={**os.environ, "NODE_EXTRA_CA_CERTS": str(nginx.authority)})
    assert f"Bearer {SECRET}" in done.stdout.decode(), done


@pytest.mark.parametrize("request_text", [
    b"GET /allowed/echo HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    b"GET https://evil.example/allowed/echo HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n",
    b"GET /allowed/echo HTTP/1.1\r\nHost: localhost:PORT\r\nHost: evil.example\r\n\r\n",
    b"POST /allowed/echo HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\n",
    b"GET /allowed/echo HTTP/1.1\r\nHost: localhost:PORT\r\nX: 1\r\n folded\r\n\r\n",
    b"GET /allowed/echo HTTP/1.1\nHost: localhost:PORT\n\n",
    b"GET /allowed/echo\r\n\r\n", b"\x00" * 100 + b"\r\n\r\n", b"GET /" + b"a" * 70000,
])
def test_smuggling_and_garbage(nginx, request_text):
    answer = nginx.ask(request_text.replace(b"PORT", str(nginx.port).encode()))
    assert answer.startswith(b"HTTP/1.1 400 ") and SECRET.encode() not in answer


def test_one_byte_at_a_time(nginx):
    with nginx.connect() as connection:
        for byte in f"GET /allowed/echo HTTP/1.1\r\nHost: localhost:{nginx.port}\r\n\r\n".encode():
            connection.sendall(bytes([byte]))
        answer = b""
        while SECRET.encode() not in answer:
            answer += connection.recv(65536)


def test_clients_that_leave(nginx):
    """At every stage; the gate goes on."""
    text = f"GET /allowed/files/large HTTP/1.1\r\nHost: localhost:{nginx.port}\r\n\r\n".encode()
    for _ in range(20):
        socket.create_connection(("127.0.0.1", nginx.port)).close()
        nginx.connect().close()
        with nginx.connect() as connection:
            connection.sendall(text[:30])
        with nginx.connect() as connection:
            connection.sendall(text)
            connection.recv(100)
    assert nginx.curl("/allowed/echo").returncode == 0


class PlainServer:
    """One TLS connection after the other to a handler of the test's own."""

    def __init__(self, certificate, key, handler):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, args=(context, handler), daemon=True)
        self.thread.start()

    def serve(self, context, handler):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(connection, server_side=True) as secured:
                    handler(secured)
            except OSError:
                pass

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(timeout=5)


@pytest.fixture
def plain(tmp_path):
    """plain(handler, name="localhost", trusted=True, …): a gate in front of such a server."""
    made = []

    def make(handler, name="localhost", trusted=True, **more):
        certificate, key = make_certificate(tmp_path, name)
        other = certificate if trusted else make_certificate(tmp_path, "other")[0]
        server = PlainServer(certificate, key, handler)
        gate = Gate(tmp_path, server.port, other, **more)
        made.append((server, gate))
        return gate

    yield make
    for server, gate in made:
        server.end()
        gate.end()


def read_head(connection):
    """Up to the empty line. A peer that leaves before is an error and no loop: such a thread would burn a processor
    beside all tests that follow."""
    head = b""
    while b"\r\n\r\n" not in head:
        byte = connection.recv(1)
        if not byte:
            raise ConnectionResetError("the peer left within the head")
        head += byte
    return head


def test_events_come_as_they_are_sent(plain):
    go_on = threading.Event()

    def handler(connection):
        read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(3):
            connection.sendall(b"9\r\ndata: %d\n\n\r\n" % number)
            go_on.wait(10)
            go_on.clear()
        connection.sendall(b"0\r\n\r\n")

    gate = plain(handler)
    with gate.connect() as connection:
        connection.sendall(f"GET /allowed/ HTTP/1.1\r\nHost: localhost:{gate.port}\r\n\r\n".encode())
        assert b"event-stream" in read_head(connection)
        for number in range(3):
            seen = b""
            while b"data: %d" % number not in seen:
                assert connection.pending() or select.select([connection], [], [], 5)[0], seen
                byte = connection.recv(1)
                assert byte, seen
                seen += byte
            go_on.set()


def test_websocket(plain):
    def handler(connection):
        head = read_head(connection)
        assert SECRET.encode() in head and b"Upgrade: websocket" in head
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        while True:
            got = connection.recv(1000)
            if not got:
                return
            connection.sendall(got[::-1])

    gate = plain(handler)
    with gate.connect() as connection:
        connection.sendall((f"GET /allowed/ws HTTP/1.1\r\nHost: localhost:{gate.port}\r\nConnection: Upgrade\r\n"
                            "Upgrade: websocket\r\n\r\n").encode())
        assert b" 101 " in read_head(connection)
        for text in (b"hello", b"\x00\x01GET / HTTP/1.1\r\n\r\n"):
            connection.sendall(text)
            assert connection.recv(1000) == text[::-1]


def test_continue(plain):
    def handler(connection):
        head = read_head(connection)
        size = int(re.search(rb"Content-Length: (\d+)", head).group(1))
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = b""
        while len(body) < size:
            piece = connection.recv(65536)
            assert piece, "the peer left within the body"
            body += piece
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    done = plain(handler).curl("/allowed/", "--http1.1", "-H", "Expect: 100-continue", "-d", "x" * 100000)
    assert done.stdout == b"ok", done


def answer_of(gate, sent):
    """Of a gate that has so little patience that it may give a slow test up before it has begun."""
    answer = b""
    for _ in range(20):
        try:
            answer = answer or gate.ask(sent)
        except OSError:
            pass
    return answer


def test_who_holds_a_connection_and_does_nothing_is_let_go(plain):
    """Each of them would else hold a place for ever: a head that comes byte by byte (either way), a kept connection of
    which nobody asks anything, an answer that never comes, a body that stops."""
    def handler(connection):
        head = read_head(connection)
        if b"/half-head" in head:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")
        elif b"/half-body" in head:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        elif b"/half-stream" in head:
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf")
        elif b"/kept" in head:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        connection.recv(1)

    gate = plain(handler, patience_ms=100)
    host = f"Host: localhost:{gate.port}\r\n"
    assert b" 408 " in answer_of(gate, b"GET /allowed/ HTTP/1.1\r\nHos")
    for path, ending, expected, seconds in (
            ("half-head", "", b" 504 ", 0.1), ("nothing", "", b" 504 ", 1.2), ("half-body", "", b"half", 0.5),
            ("half-stream", "", b"half", 1.2), ("slow-body", "Content-Length: 9\r\n", b" 408 ", 0.5),
            ("slow-stream", "Transfer-Encoding: chunked\r\n", b" 504 ", 1.2), ("kept", "", b"ok", 0.2)):
        began = time.monotonic()
        answer = answer_of(gate, f"POST /allowed/{path} HTTP/1.1\r\n{host}{ending}\r\n".encode())
        assert expected in answer and (path == "slow-body" or b"TTP/1.1 4" not in answer), (path, answer)
        # What was asked for has longer than a connection that is merely kept.
        assert time.monotonic() - began >= seconds, path


@pytest.mark.parametrize("framing", ["until-end", "chunked"])
def test_a_stream_that_moves_is_not_given_up(plain, framing):
    """Its length was not announced, so it may take its time."""
    def handler(connection):
        read_head(connection)
        if framing == "chunked":
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        else:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for _ in range(20):
            time.sleep(0.2)
            connection.sendall(b"1\r\nx\r\n" if framing == "chunked" else b"x")
        connection.sendall(b"0\r\n\r\n" if framing == "chunked" else b"")

    # Longer than nothing may move, so that a busy machine keeps up.
    gate = plain(handler, patience_ms=200)
    host = f"Host: localhost:{gate.port}\r\nConnection: close\r\n"
    head, _, body = answer_of(gate, f"GET /allowed/ HTTP/1.1\r\n{host}\r\n".encode()).partition(b"\r\n\r\n")
    assert b" 200 OK" in head and body.count(b"x") == 20, (head, body)
    assert framing == "until-end" or body.endswith(b"0\r\n\r\n"), body


def trickle(connection, seconds=20):
    """A byte now and then; how long the other side bore it, and what it said."""
    began, said = time.monotonic(), b""
    try:
        while time.monotonic() - began < seconds and not said:
            connection.sendall(b"x")
            if select.select([connection], [], [], 0.1)[0]:
                said = connection.recv(65536)
                break
    except OSError:
        pass
    return time.monotonic() - began, said


def test_a_body_that_trickles_is_given_up(plain):
    """Both ways: more than a fifth of patience lies between two bytes of what was announced as large."""
    heard = []

    def handler(connection):
        head = read_head(connection)
        if b"/up" in head:
            try:
                while piece := connection.recv(65536):
                    heard.append(piece)
            except OSError:
                heard.append(b"reset")
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        heard.append(trickle(connection)[0])

    gate = plain(handler, patience_ms=200)
    host = f"Host: localhost:{gate.port}\r\n"
    with gate.connect() as connection:
        connection.sendall(f"POST /allowed/up HTTP/1.1\r\n{host}Content-Length: 1000000\r\n\r\n".encode())
        seconds, said = trickle(connection)
    assert b" 408 " in said and b"the body of the request comes too slowly" in said and 0.8 < seconds < 15, said
    assert b"".join(heard).startswith(b"x")
    heard.clear()
    began = time.monotonic()
    answer = answer_of(gate, f"GET /allowed/down HTTP/1.1\r\n{host}\r\n".encode())
    assert b" 200 OK" in answer and answer.endswith(b"x") and 0.8 < time.monotonic() - began < 15, answer


def test_a_body_that_the_other_side_does_not_take_is_not_slow(plain):
    """Whoever waits for somebody that reads late does not trickle: here both ends sleep for longer than they may."""
    size = 40 << 20

    def handler(connection):
        head = read_head(connection)
        if b"/down" in head:
            connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode() + bytes(size))
            return
        time.sleep(3)
        left = size
        while left:
            left -= len(connection.recv(1 << 20))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nover")

    gate = plain(handler, patience_ms=400)
    host = f"Host: localhost:{gate.port}\r\nConnection: close\r\n"
    head = f"POST /allowed/up HTTP/1.1\r\n{host}Content-Length: {size}\r\n\r\n".encode()
    assert gate.ask(head + bytes(size)).endswith(b"over")
    with gate.connect() as connection:
        connection.sendall(f"GET /allowed/down HTTP/1.1\r\n{host}\r\n".encode())
        time.sleep(3)
        got = 0
        while piece := connection.recv(1 << 20):
            got += len(piece)
    assert got > size


@pytest.mark.parametrize("answer", [
    b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70000,
    b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n",
])
def test_servers_that_answer_garbage(plain, answer):
    def handler(connection):
        read_head(connection)
        connection.sendall(answer)

    done = plain(handler).curl("/allowed/", "--http1.1", "-i")
    assert done.stdout.startswith(b"HTTP/1.1 502 ") and b"refused by atoll" in done.stdout, done


def test_an_answer_that_is_cut_off_is_no_whole_one(plain):
    def handler(connection):
        read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart")

    done = plain(handler).curl("/allowed/", "--http1.1")
    assert done.returncode != 0 and done.stdout == b"part", done


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("name, trusted, why", [("localhost", False, "self-signed certificate"),
                                                ("elsewhere.example", True, "hostname mismatch")])
def test_certificates_of_the_server(plain, version, name, trusted, why):
    def handler(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    done = plain(handler, name, trusted).curl("/allowed/", version, "-i")
    assert b" 502" in done.stdout.split(b"\r\n")[0], done
    assert re.search(rf"no TLS with localhost:\d+: {why}".encode(), done.stdout), done


def test_http2_alone_where_the_server_has_none(plain):
    def handler(connection):
        read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    gate = plain(handler)
    assert gate.curl("/allowed/", "--http2").stdout == b"ok"
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        gate.connect("h2").recv(1)
