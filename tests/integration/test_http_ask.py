# SPDX-License-Identifier: Apache-2.0
"""Requests that a policy asks about wait for the answer, in both versions of HTTP, and hold up nothing else."""
import http.server
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import pytest

from atoll import wait_until
from gate import LOOPBACK, policy_text, serve_beside, test_hosts
from person import ONCE, SESSION, USES, Person

pytestmark = pytest.mark.needs("openssl", "curl", "nginx")
PYTHON = "/usr/bin/python3"
CLIENT = pathlib.Path(__file__).parents[1] / "lib" / "http2.py"
CONF = """worker_processes 1; daemon off; pid {root}/pid; error_log {root}/error.log;
events {{ worker_connections 512; }}
http {{ access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fcgi;
uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi; client_max_body_size 100m; keepalive_timeout {keep}s;
server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {certificates}/chain.pem;
ssl_certificate_key {certificates}/key.pem; location / {{ proxy_pass http://127.0.0.1:{behind}; }} }} }}
"""


class Behind(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        size = len(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        self.server.got.append((self.command, self.path, size))
        body = f"{self.command} {self.path} {size}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def behind():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Behind)
    server.got = []
    serve_beside(server)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def nginx(certificates, behind):
    started = []

    def start(keep=75):
        root = pathlib.Path(tempfile.mkdtemp(prefix="atolltest-nginx-", dir="/tmp"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        root.chmod(0o755)
        (root / "conf").write_text(CONF.format(root=root, port=port, behind=behind.server_address[1], keep=keep,
                                               certificates=certificates.directory))
        child = subprocess.Popen(["/usr/sbin/nginx", "-c", str(root / "conf"), "-e", str(root / "error.log")],
                                 stderr=subprocess.DEVNULL)
        started.append((child, root))
        wait_until(lambda: socket.create_connection(("127.0.0.1", port), timeout=1).close() is None
                   if (root / "pid").exists() else False, 10, "nginx")
        return port
    yield start
    for child, root in started:
        child.terminate()
        child.wait(timeout=10)
        shutil.rmtree(root)


class Session:
    def __init__(self, box, certificates, port, ask="{timeout: 30s}"):
        rule = f'{{host: web.test, ports: [{port}], http: [{{methods: [GET], paths: ["/free/**"]}}]}}'
        policy = box.policy(policy_text([rule, *LOOPBACK], f"  default: ask\nask: {ask}\n"))
        env = {**test_hosts(names=("web.test",)), "SSL_CERT_FILE": str(certificates.ca)}
        done = box.run_outside(box.command_line([], policy=policy, options=["-d"]), env=env)
        assert done.code == 0, done
        self.box, self.id, self.url = box, done.out.strip(), f"https://web.test:{port}"
        box.copy(CLIENT, box.project / "http2.py", 0o644)
        self.port = port

    def popen(self, *words):
        child = subprocess.Popen([str(self.box.programs.atoll), "exec", self.id, "--", *words], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True,
                                 **self.box.popen_keywords())
        self.box.children.append(child)
        return child

    def curl(self, *words):
        return self.popen("curl", "-sS", "-w", "%{http_code}", *words)

    def http2(self, *lines):
        return self.popen("sh", "-c", 'exec "$0" http2.py "$1" "$2" "$SSL_CERT_FILE" "${@:3}"'.replace("${@:3}", "$3")
                          if len(lines) == 1 else 'p=$0 h=$1 q=$2; shift 2; exec "$p" http2.py "$h" "$q" '
                          '"$SSL_CERT_FILE" "$@"', PYTHON, "web.test", str(self.port), *lines)

    def records(self, kind="net.http"):
        entries = map(json.loads, self.box.audit_log(self.id).read_text().splitlines())
        return [entry for entry in entries if entry["type"] == kind]

    def states(self):
        done = self.box.run_atoll("ask", self.id, "--once", "--json")
        return {(entry["path"], entry["state"]): entry for entry in json.loads(done.out)}

    def stop(self):
        self.box.run_atoll("stop", "-t", "0s", self.id)


@pytest.fixture
def session(sandbox, certificates, nginx):
    made = []

    def start(keep=75, **keywords):
        made.append(Session(sandbox, certificates, nginx(keep), **keywords))
        return made[-1]
    yield start
    for one in made:
        one.stop()


def seen(person, path):
    return wait_until(lambda: next((q for q in person.seen.values() if q["path"] == path), None), 30, path)


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_a_request_waits_and_goes_on(sandbox, session, behind, version):
    inside = session()
    sandbox.write(sandbox.project / "body", "x" * 700000)
    with Person(sandbox, inside.id) as person:
        waiting = inside.curl(version, "--data-binary", "@body", f"{inside.url}/paid?secret=1")
        question = seen(person, "/paid")
        assert question["method"] == "POST" and question["subject"] == "web.test" and question["waiting"] == 1
        assert question["program"].endswith("/curl")
        # Others go on meanwhile, and nothing of it has left.
        free = inside.curl(version, f"{inside.url}/free/a")
        assert free.communicate(timeout=30)[0].decode() == "GET /free/a 0\n200"
        assert waiting.poll() is None and [path for _, path, _ in behind.got] == ["/free/a"]
        person.say(question, True, ONCE)
        assert waiting.communicate(timeout=30)[0].decode() == "POST /paid?secret=1 700000\n200"
        # Once is once: the next one is asked about anew, and refused.
        again = inside.curl(version, "--data-binary", "small", f"{inside.url}/paid")
        second = wait_until(lambda: next((q for q in person.seen.values() if q["number"] > question["number"]), None),
                            15, "another question")
        person.say(second, False)
        out, err = map(bytes.decode, again.communicate(timeout=30))
        assert out.endswith("403") and "a person refused this" in out, (out, err)
        assert [path for _, path, _ in behind.got] == ["/free/a", "/paid?secret=1"]
    wait_until(lambda: len(inside.records()) == 3)
    told = {(entry["detail"]["path"], entry["verdict"], entry["detail"]["status"]) for entry in inside.records()}
    assert told == {("/free/a", "allow", 200), ("/paid", "allow", 200), ("/paid", "deny", 403)}


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_who_disconnects_is_not_asked_for_any_more(sandbox, session, behind, version):
    inside = session()
    with Person(sandbox, inside.id) as person:
        gone = inside.curl(version, "-m", "1.5", f"{inside.url}/paid")
        seen(person, "/paid")
        assert ("/paid", "waiting") in inside.states()
        assert gone.wait(timeout=30) == 28
        wait_until(lambda: ("/paid", "listed") in inside.states(), 30, "the end of the question")
        wait_until(lambda: [entry["verdict"] for entry in inside.records()] == ["deny"], 30)
        # An answer now is for the next try.
        person.say(next(iter(person.seen.values())), True, ONCE)
        assert inside.curl(version, f"{inside.url}/paid").communicate(timeout=30)[0].decode() == "GET /paid 0\n200"
    assert len(behind.got) == 1


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_silence_and_nobody(sandbox, session, behind, version):
    inside = session(ask="{timeout: 1s}")
    begun = time.monotonic()
    out = inside.curl(version, f"{inside.url}/paid").communicate(timeout=30)[0].decode()
    assert out.endswith("403") and "nobody can be asked" in out and "atoll approve" in out, out
    assert time.monotonic() - begun < 10
    with Person(sandbox, inside.id):
        out = inside.curl(version, f"{inside.url}/other").communicate(timeout=30)[0].decode()
    assert out.endswith("403") and "did not answer in time" in out and "atoll approve" in out, out
    assert not behind.got


def test_uses_are_counted_once(sandbox, session, behind):
    inside = session()
    with Person(sandbox, inside.id) as person:
        waiting = inside.curl("--http1.1", f"{inside.url}/paid")
        person.say(seen(person, "/paid"), True, USES, 5)
        assert waiting.communicate(timeout=30)[0].decode().endswith("200")
        script = f"for i in 1 2 3 4 5 6; do curl -sS -m 2 -o /dev/null -w '%{{http_code}} ' {inside.url}/paid; done"
        out = inside.popen("sh", "-c", script).communicate(timeout=60)[0].decode().split()
        assert out == ["200"] * 4 + ["000"] * 2, out
    assert len(behind.got) == 5
    wait_until(lambda: len(inside.records()) == 7)
    assert [entry["rule"] for entry in inside.records() if entry["verdict"] == "allow"] == ["ask.grant[1]"] * 5


def test_streams_wait_one_by_one(sandbox, session, behind):
    """Bodies of those that wait stay within their windows, and leave room for the others on the connection."""
    inside = session()
    size = 1500000
    lines = [f"open {stream} /paid/{stream} {size}" for stream in (1, 3, 5, 7, 9)]
    with Person(sandbox, inside.id) as person:
        client = inside.http2(*lines, "open 11 /free/x", "status 11", "sleep 1.5", "sent 1", "sent 9", "reset 3",
                              "status 1", "status 9", "sleep 0.5", "gone")
        for stream in (1, 3, 5, 7, 9):
            seen(person, f"/paid/{stream}")
        assert client.stdout.readline() == b"11 200\n"
        for stream in (b"1", b"9"):
            words = client.stdout.readline().split()
            assert words[0] == stream and int(words[2]) <= 256 << 10, words
        wait_until(lambda: ("/paid/3", "listed") in inside.states(), 30, "the end of the question of 3")
        person.say(seen(person, "/paid/1"), True, ONCE)
        assert client.stdout.readline() == b"1 200\n"
        person.say(seen(person, "/paid/9"), False)
        assert client.stdout.readline() == b"9 403\n"
        # And those whose client is gone wait no longer.
        wait_until(lambda: not [key for key in inside.states() if key[1] == "waiting"], 30, "the end of all questions")
        assert client.wait(timeout=30) == 0, client.stderr.read()
    assert sorted(behind.got) == [("GET", "/free/x", 0), ("POST", "/paid/1", size)]


def test_a_server_that_ends_the_connection_meanwhile(sandbox, session, behind):
    inside = session(keep=1)
    with Person(sandbox, inside.id) as person:
        # The connection was used already, so that the server ends it after a second of silence.
        for version in ("--http1.1", "--http2"):
            waiting = inside.curl(version, f"{inside.url}/free/a", f"{inside.url}/paid{version}")
            question = seen(person, f"/paid{version}")
            assert waiting.poll() is None
            out, err = map(bytes.decode, waiting.communicate(timeout=30))
            assert out.endswith("503") and "ended the connection while a person was asked" in out, (out, err)
            wait_until(lambda: (f"/paid{version}", "listed") in inside.states(), 30)
            person.say(question, True, SESSION)
            out = inside.curl(version, f"{inside.url}/paid{version}").communicate(timeout=30)[0].decode()
            assert out.endswith("200"), out
