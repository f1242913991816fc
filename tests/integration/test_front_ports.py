# SPDX-License-Identifier: Apache-2.0
"""What is for a server inside, through atoll-front: by name and by headers, HTTP, events and upgraded connections."""
import contextlib
import http.client
import json
import os
import pathlib
import socket
import socketserver
import ssl
import subprocess
import threading
import time

import pytest

from connect import request
from front import Failed, Fd, Front

BIN = pathlib.Path(os.environ.get("ATOLL_BIN", pathlib.Path(__file__).resolve().parents[2] / "build" / "bin"))
NAMED = {"Host": "8080-abc.localhost:3000"}


def until(condition, patience_s=20):
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


class Server(socketserver.ThreadingTCPServer):
    """A server "inside": reads the head of a request and hands it with the connection to `answer`."""
    allow_reuse_address = daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.heads, self.bodies = [], []
        self.answer = lambda server, link, head: link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = self.request.recv(65536)
            if not piece:
                return
            data += piece
        head, _, self.server.rest = data.partition(b"\r\n\r\n")
        self.server.heads.append(head.decode())
        with contextlib.suppress(OSError):
            self.server.answer(self.server, self.request, head.decode())


@pytest.fixture
def server():
    with Server() as one:
        yield one
        one.shutdown()


@pytest.fixture
def front(tmp_path, server):
    one = Front(BIN / "atoll-front", tmp_path)
    one.ports = {8080: server.server_address[1], 8081: 1}
    yield one
    assert one.close() == 0


def fds(front):
    return len(os.listdir(f"/proc/{front.process.pid}/fd"))


@pytest.mark.parametrize("headers", [
    NAMED, {"Host": "localhost", "E2b-Sandbox-Id": "abc", "E2b-Sandbox-Port": "8080"}])
def test_a_request_goes_on_and_its_answer_comes_back(front, server, headers):
    server.answer = lambda server, link, head: link.sendall(
        b"HTTP/1.1 203 Fine\r\nX-Own: 1\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
        b"Content-Length: 2\r\n\r\nhi")
    more = {**headers, "Cookie": "x=y", "Origin": "null"}
    status, got, body = request(front, "GET", "/a%20b/../c?d=%2F", headers=more)
    assert (status, body) == (203, b"hi")
    assert got["X-Own"] == "1" and got.get_all("Set-Cookie") == ["a=b", "c=d"] and got["X-Hop"] is None
    # Nothing of ours is added to what is another's.
    assert got["X-Content-Type-Options"] is None and got["Access-Control-Allow-Origin"] is None
    assert server.heads[0].split("\r\n")[0] == "GET /a%20b/../c?d=%2F HTTP/1.1"
    assert "Cookie: x=y" in server.heads[0] and f"Host: {headers['Host']}" in server.heads[0]


def test_credentials_of_the_service_stay_outside(front, server):
    request(front, "GET", "/", headers={**NAMED, "X-API-KEY": "k", "X-Access-Token": "t",
                                        "E2b-Traffic-Access-Token": "tt",
                                        "Authorization": "Bearer own", "X-Forwarded-For": "1.2.3.4"})
    assert front.wait_asked("DIAL")["traffic_token"] == "tt"
    head = server.heads[0].lower()
    assert "authorization: bearer own" in head
    for word in ("x-api-key", "x-access-token", "e2b-", "1.2.3.4"):
        assert word not in head


def test_the_host_is_masked_where_it_was_asked_for(front, server):
    front.mask_host = "localhost:${PORT}"
    request(front, "GET", "/", headers=NAMED)
    assert "\r\nHost: localhost:8080\r\n" in server.heads[0]


def read_body(server, link, size):
    data = server.rest
    while len(data) < size:
        data += link.recv(65536)
    return data


def test_bodies_go_on_as_they_come(front, server):
    data = os.urandom(3 << 20)

    def answer(server, link, head):
        assert f"Content-Length: {len(data)}" in head
        server.bodies.append(read_body(server, link, len(data)))
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    server.answer = answer
    assert request(front, "PUT", "/", data, NAMED)[2] == data
    assert server.bodies == [data]


def test_chunked_bodies_both_ways(front, server):
    def answer(server, link, head):
        assert "Transfer-Encoding: chunked" in head
        stream = link.makefile("rb")
        data, rest = b"", server.rest
        source = [rest]

        def line():
            while b"\r\n" not in source[0]:
                source[0] += stream.read1(65536)
            taken, _, source[0] = source[0].partition(b"\r\n")
            return taken

        def take(size):
            while len(source[0]) < size:
                source[0] += stream.read1(65536)
            taken, source[0] = source[0][:size], source[0][size:]
            return taken
        while True:
            size = int(line(), 16)
            piece = take(size + 2)[:-2]
            if not size:
                break
            data += piece
        server.bodies.append(data)
        link.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Trailer: 1\r\n\r\n")
    server.answer = answer
    pieces = [os.urandom(70000) for _ in range(20)]
    status, headers, got = request(front, "POST", "/", iter(pieces), NAMED)
    assert (status, got) == (200, b"abcdefg") and headers["X-Trailer"] is None
    assert server.bodies == [b"".join(pieces)]


def test_an_answer_that_ends_with_its_connection(front, server):
    server.answer = lambda server, link, head: link.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 500000)
    assert request(front, "GET", "/", headers=NAMED)[2] == b"x" * 500000


HEAD = b"POST /a HTTP/1.1\r\nHost: 8080-abc.localhost\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nX: y"
TWICE = [
    HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n1d\r\n" + SMUGGLED + b"\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n1d\r\n" + SMUGGLED + b"\r\n0\r\n\r\n",
    HEAD + b"Content-Length: 2\r\nContent-Length: 31\r\n\r\nab" + SMUGGLED,
    HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    HEAD + b"Host: 8081-abc.localhost\r\nContent-Length: 0\r\n\r\n",
    b"GET http://10.0.0.1/ HTTP/1.1\r\nHost: 8080-abc.localhost\r\n\r\n",
    b"CONNECT 10.0.0.1:22 HTTP/1.1\r\nHost: 8080-abc.localhost\r\n\r\n",
]


@pytest.mark.parametrize("text", TWICE, ids=map(str, range(len(TWICE))))
def test_what_can_be_read_in_two_ways_is_not_passed_on(front, server, text):
    """Request smuggling: what one reader takes for a body is a request of its own for the next one."""
    with socket.create_connection(("127.0.0.1", front.port), timeout=10) as link:
        link.sendall(text)
        assert link.recv(65536).startswith(b"HTTP/1.1 400 "), text
    assert not server.heads
    with socket.create_connection(("127.0.0.1", front.port), timeout=10) as link:
        link.sendall(HEAD + b"Content-Length: 2\r\n\r\nab")
        assert link.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert len(server.heads) == 1 and server.heads[0].startswith("POST /a HTTP/1.1\r\n")


def test_head_and_no_content(front, server):
    server.answer = lambda server, link, head: link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")
    status, headers, body = request(front, "HEAD", "/", headers=NAMED)
    assert (status, headers["Content-Length"], body) == (200, "1234", b"")
    server.answer = lambda server, link, head: link.sendall(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")
    assert request(front, "OPTIONS", "/", headers=NAMED)[0] == 204


def test_events_come_one_by_one(front, server):
    go = threading.Event()

    def answer(server, link, head):
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        go.wait(20)
        link.sendall(b"data: 2\n\n")
    server.answer = answer
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=20)
    connection.request("GET", "/", headers=NAMED)
    events = connection.getresponse()
    assert events.read(9) == b"data: 1\n\n"
    go.set()
    assert events.read() == b"data: 2\n\n"
    connection.close()


def test_a_client_that_goes_away_ends_its_connection_inside(front, server):
    ended = threading.Event()

    def answer(server, link, head):
        link.sendall(b"HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n")
        if link.recv(1) == b"":
            ended.set()
    server.answer = answer
    before = fds(front)
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=20)
    connection.request("GET", "/", headers=NAMED)
    events = connection.getresponse()
    events.read(9)
    events.close()
    connection.close()
    assert ended.wait(20)
    until(lambda: fds(front) <= before)


def test_a_client_that_never_reads_holds_its_server_up(front, server):
    sent = [0]

    def answer(server, link, head):
        link.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1000):
            link.sendall(b"x" * 65536)
            sent[0] += 65536
    server.answer = answer
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=20)
    connection.request("GET", "/", headers=NAMED)
    time.sleep(1)
    assert sent[0] < 32 << 20
    assert len(connection.getresponse().read()) == 65536000
    connection.close()


UPGRADE = (b"GET /ws HTTP/1.1\r\nHost: 8080-abc.localhost\r\nConnection: keep-alive, Upgrade\r\n"
           b"Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")


def upgrade(front):
    link = socket.create_connection(("127.0.0.1", front.port), timeout=20)
    link.sendall(UPGRADE)
    return link


def read_to(link, mark):
    data = b""
    while mark not in data:
        piece = link.recv(65536)
        assert piece, data
        data += piece
    return data


def echo(server, link, head):
    assert "Connection: Upgrade" in head and "Upgrade: websocket" in head and "Sec-WebSocket-Key:" in head
    link.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nfirst")
    if server.rest:
        link.sendall(server.rest)
    while True:
        data = link.recv(65536)
        if not data:
            link.sendall(b"bye")
            return
        link.sendall(data)


def test_an_upgraded_connection(front, server):
    server.answer = echo
    before = fds(front)
    link = upgrade(front)
    head = read_to(link, b"first")
    assert head.startswith(b"HTTP/1.1 101 ") and b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
    link.sendall(b"ping")
    assert read_to(link, b"ping") == b"ping"
    data, got = os.urandom(4 << 20), b""
    sender = threading.Thread(target=link.sendall, args=(data,))
    sender.start()
    pieces = []
    while sum(map(len, pieces)) < len(data):
        pieces.append(link.recv(1 << 20))
    got = b"".join(pieces)
    sender.join()
    assert got == data
    # An end of one direction is passed on.
    link.shutdown(socket.SHUT_WR)
    assert read_to(link, b"bye") == b"bye" and link.recv(1) == b""
    link.close()
    until(lambda: fds(front) <= before)


def test_upgraded_connections_that_break_off(front, server):
    server.answer = echo
    before = fds(front)
    for _ in range(20):
        link = upgrade(front)
        read_to(link, b"first")
        link.close()
    until(lambda: fds(front) <= before)


def test_who_was_not_asked_does_not_change_the_protocol(front, server):
    server.answer = lambda server, link, head: link.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
    assert request(front, "GET", "/", headers=NAMED)[0] == 502


@pytest.mark.parametrize("answer", [
    b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200000,
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
], ids=["nothing", "nonsense", "half", "other", "large", "two"])
def test_servers_that_speak_no_http(front, server, answer):
    server.answer = lambda server, link, head: link.sendall(answer)
    status, _, body = request(front, "GET", "/", headers=NAMED)
    error = json.loads(body)
    assert (status, error["code"], error["port"], error["sandboxId"]) == (502, 502, 8080, "abc")
    server.answer = lambda server, link, head: link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    assert request(front, "GET", "/", headers=NAMED)[2] == b"hi"


def test_an_answer_cut_short_is_seen_as_such(front, server):
    server.answer = lambda server, link, head: link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        request(front, "GET", "/", headers=NAMED)


@pytest.mark.parametrize("body", [None, b"x" * 1000, b"x" * 1000000])
def test_failures_of_the_launcher_are_passed_on(front, monkeypatch, body):
    def refuse(fields):
        raise Failed(403, "the token for this port is missing or wrong")
    status, _, answer = request(front, "POST", "/", body, {"Host": "9-abc.localhost"})
    assert status in (400, 502)
    status, _, answer = request(front, "POST", "/", body, {"Host": "8080-other.localhost"})
    assert status == 502 and json.loads(answer)["sandboxId"] == "other"
    monkeypatch.setattr(front, "do_dial", refuse)
    status, _, answer = request(front, "POST", "/", body, NAMED)
    assert status == 403 and json.loads(answer)["code"] == 403


def test_an_early_answer(front, server):
    def answer(server, link, head):
        link.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        time.sleep(0.2)
    server.answer = answer
    assert request(front, "POST", "/", b"x" * (8 << 20), NAMED)[::2] == (413, b"no")


def test_nothing_stays(front, server):
    before = fds(front)
    for _ in range(100):
        assert request(front, "GET", "/", headers=NAMED)[0] == 200
    until(lambda: fds(front) <= before)


def test_all_of_it_by_tls(tmp_path, server):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost,DNS:8080-abc.localhost"], check=True, capture_output=True)
    one = Front(BIN / "atoll-front", tmp_path, {
        "certificate": Fd(os.open(certificate, os.O_RDONLY)), "private_key": Fd(os.open(key, os.O_RDONLY))})
    one.ports = {8080: server.server_address[1]}
    context = ssl.create_default_context(cafile=certificate)

    def connect(name):
        return context.wrap_socket(socket.create_connection(("127.0.0.1", one.port), timeout=20), server_hostname=name)
    link = connect("localhost")
    link.sendall(b"GET /sandboxes/abc HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: e2b_00\r\n\r\n")
    assert read_to(link, b"}").startswith(b"HTTP/1.1 200 ")
    link.close()
    server.answer = echo
    link = connect("8080-abc.localhost")
    link.sendall(UPGRADE)
    assert read_to(link, b"first").startswith(b"HTTP/1.1 101 ")
    link.sendall(b"x" * 100000)
    got = b""
    while len(got) < 100000:
        got += link.recv(65536)
    assert got == b"x" * 100000
    link.close()
    # Who speaks without it is not served.
    plain = socket.create_connection(("127.0.0.1", one.port), timeout=20)
    plain.sendall(b"GET /sandboxes/abc HTTP/1.1\r\nHost: localhost\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        assert b"HTTP/1.1 200" not in plain.recv(1000)
    plain.close()
    assert one.close() == 0
