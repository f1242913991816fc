# SPDX-License-Identifier: Apache-2.0
"""--record keeps the HTTP exchanges of a run, --replay answers from them with no network, simulate answers by rule."""
import http.server
import json
import os
import shutil
import subprocess
import time

import pytest

from atoll import wait_until
from gate import LOOPBACK, Listener, Web, policy_text, serve_beside, test_hosts

pytestmark = pytest.mark.needs("openssl", "curl")

SECRET = "sk-live-4f9a8b7c6d5e"


class Handler(http.server.BaseHTTPRequestHandler):
    """A model API in small: answers that differ each time, streams, bytes, cookies."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, body, *headers, chunked=False):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header(*(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body)))))
        self.end_headers()
        if self.command == "HEAD":
            return
        if not chunked:
            self.wfile.write(body)
            return
        for line in body.splitlines(keepends=True):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        self.server.count += 1
        if self.path == "/bytes":
            self.send(200, bytes(range(256)) * 1000, ("Content-Type", "application/octet-stream"))
        elif self.path == "/events":
            body = b"".join(b"data: {\"n\": %d, \"at\": %d}\n\n" % (n, self.server.count) for n in range(20))
            self.send(200, body, ("Content-Type", "text/event-stream"), chunked=True)
        elif self.path == "/missing":
            self.send(404, b"no\n", ("Content-Type", "text/plain"))
        elif self.path.startswith("/login"):
            self.send(200, b"welcome\n", ("Set-Cookie", f"session={SECRET}; Path=/"), ("X-Api-Key", SECRET))
        else:
            self.send(200, json.dumps({"path": self.path, "count": self.server.count}).encode())

    do_HEAD = do_GET

    def do_POST(self):
        self.server.count += 1
        self.server.keys.append(self.headers.get("X-Api-Key"))
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = {"count": self.server.count, "echo": asked, "stop": len(asked["messages"]) > 4}
        self.send(200, json.dumps(body).encode(), ("Content-Type", "application/json"))


class Api:
    def __init__(self, context, port=0):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.server.handle_error = lambda *_: None
        self.server.count, self.server.keys = 0, []
        self.port = self.server.server_address[1]
        serve_beside(self.server)

    @property
    def count(self):
        return self.server.count

    def close(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
        self.server = None


@pytest.fixture
def api(certificates):
    server = Api(certificates.context())
    yield server
    server.close()


def rules(sandbox, *hosts, more=""):
    return sandbox.policy(policy_text([*hosts, *LOOPBACK], more))


def outside(certificates):
    return {**test_hosts(), "SSL_CERT_FILE": str(certificates.ca)}


def records(sandbox, done, kind="net.http"):
    lines = sandbox.audit_log(done.session).read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["type"] == kind]


class Taped:
    """Runs a command twice: recorded against a server, and answered from the recording with nobody there."""

    def __init__(self, sandbox, certificates, api, policy=None):
        self.sandbox, self.certificates, self.api = sandbox, certificates, api
        self.policy = policy or rules(sandbox, f"{{host: web.test, ports: [{api.port}]}}")
        self.file = sandbox.outside / "recording.jsonl"
        self.port = api.port

    def record(self, command, file=None):
        done = self.sandbox.run(command, policy=self.policy, env=outside(self.certificates),
                                options=["--record", file or self.file])
        assert done.code == 0, done
        return done

    def replay(self, command, code=0):
        """Without a name that anybody could resolve, and with a listener in the server's place that nobody may call."""
        self.api.close()    # also a second time
        listener = Listener(port=self.port)
        try:
            done = self.sandbox.run(command, policy=self.policy, options=["--replay", self.file])
        finally:
            listener.close()
        assert done.code == code and not listener.heard, (done, listener.heard)
        return done

    def lines(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()]


CURL = """
u=https://web.test:{port}
curl -sSi --http1.1 $u/a $u/b $u/a
curl -sSi $u/missing; curl -sSI $u/head; curl -sSN $u/events; curl -sS $u/bytes | sha256sum
curl -sSi -d '{{"messages": [1]}}' $u/v1; curl -sSi -H 'Expect: 100-continue' -d '{{"messages": [2]}}' $u/v1
"""
PYTHON = """
import json, sys, urllib.request
def ask(path, body=None):
    request = urllib.request.Request(sys.argv[1] + path, json.dumps(body).encode() if body else None)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return sorted(answer.headers.items()), answer.read()
print(ask("/a"), ask("/a"), ask("/events"), ask("/v1", {"messages": [1]}), ask("/v1", {"messages": [2]}))
"""
NODE = """
const u = process.argv[1];
(async () => {
  for (const path of ["/a", "/a", "/events", "/bytes"]) {
    const r = await fetch(u + path);
    console.log(r.status, [...r.headers], Buffer.from(await r.arrayBuffer()).toString("hex").slice(0, 3000));
  }
  const r = await Promise.all([1, 2, 3].map(n => fetch(u + "/v1", {method: "POST",
    body: JSON.stringify({messages: [n]})}).then(r => r.text())));
  console.log(r);
})();
"""


@pytest.mark.parametrize("client", ["curl", "python3", "node"])
def test_the_answers_are_the_same_byte_for_byte(sandbox, certificates, api, client):
    if not shutil.which(client):
        pytest.skip(f"{client} is not installed")
    url = f"https://web.test:{api.port}"
    command = {"curl": CURL.format(port=api.port), "python3": ["/usr/bin/python3", "-c", PYTHON, url],
               "node": ["node", "-e", NODE, url]}[client]
    tape = Taped(sandbox, certificates, api)
    first = tape.record(command)
    asked = api.count
    assert asked >= 5 and "count" in first.out, first
    # Positive control: asked again, the server says something else.
    second = tape.record(command, sandbox.outside / "second.jsonl")
    assert second.bytes != first.bytes and api.count == 2 * asked, second
    again = tape.replay(command)
    assert again.bytes == first.bytes, (first, again)
    assert again.report["network"]["replayed"] == asked == again.report["network"]["requests"]
    assert {entry["verdict"] for entry in records(sandbox, again)} == {"replay"}
    assert {entry["detail"]["address"] for entry in records(sandbox, again, "net.close")} == {None}
    start, = records(sandbox, again, "session.start")
    assert start["detail"]["tape"] == "replay"
    assert records(sandbox, first, "session.start")[0]["detail"]["tape"] == "record"


AGENT = """
import json, ssl, sys, http.client
connection = http.client.HTTPSConnection(*sys.argv[1].split(":"), timeout=20)
def ask(method, path, body=None):
    connection.request(method, path, json.dumps(body) if body else None, {"X-Api-Key": "KEY"})
    return connection.getresponse().read().decode()
print(ask("GET", "/v1/models"))
messages = [{"role": "user", "content": "task"}]
while True:
    said = json.loads(ask("POST", "/v1/messages", {"messages": messages}))
    print(said["count"], len(said["echo"]["messages"]))
    if said["stop"]:
        break
    for line in ask("GET", "/events").splitlines():
        if line:
            messages.append({"role": "tool", "content": json.loads(line[6:])["at"]})
            break
print(json.dumps(messages))
"""


def test_an_agent_runs_again_without_its_server(sandbox, certificates, api):
    tape = Taped(sandbox, certificates, api)
    command = ["/usr/bin/python3", "-c", AGENT.replace("KEY", SECRET), f"web.test:{api.port}"]
    first = tape.record(command)
    assert api.count == 10, first
    # Every answer went into the next question: one that differs would lead elsewhere.
    assert tape.replay(command).bytes == first.bytes
    assert tape.replay(command).bytes == first.bytes


def test_nothing_else_is_answered(sandbox, certificates, api):
    policy = rules(sandbox, f"{{host: web.test, ports: [{api.port}, 80]}}", "{host: other.test}")
    tape = Taped(sandbox, certificates, api, policy)
    tape.record(f"curl -sS https://web.test:{api.port}/a")
    done = tape.replay(f"curl -sSw '%{{http_code}}\\n' https://web.test:{api.port}/other; "
                       f"curl -sSo /dev/null -w '%{{http_code}}\\n' https://other.test/a; "
                       "curl -sSo /dev/null -w '%{http_code}\\n' http://web.test/a; curl -sS https://evil.test/", 6)
    answer = done.out.splitlines()
    assert json.loads(answer[0])["rule"] == "builtin.replay" and answer[1:] == ["403", "403", "403"], done
    denied = {denial["subject"]: denial["rule"] for denial in done.report["denials"]}
    assert denied == {f"GET web.test:{api.port}/other": "builtin.replay", "GET other.test:443/a": "builtin.replay",
                      "GET web.test:80/a": "builtin.replay", "evil.test": "network.default"}, denied


def test_a_recording_holds_no_credential(sandbox, certificates, api):
    tape = Taped(sandbox, certificates, api)
    command = (f"curl -sSi -H 'Authorization: Bearer {SECRET}' -H 'Cookie: a={SECRET}' -H 'X-Api-Key: {SECRET}' "
               f"'https://web.test:{api.port}/login?access_token={SECRET}&b=visible'")
    assert tape.record(command).out.count(SECRET) == 2
    text = tape.file.read_text()
    assert SECRET not in text and "visible" in text and "session=redacted-by-atoll; Path=/" in text
    assert tape.file.stat().st_mode & 0o7777 == 0o600 and tape.file.stat().st_uid == sandbox.identity.uid
    # With another key it is the same request; what was left out is what the sandbox gets.
    again = tape.replay(command.replace(SECRET, "other"))
    assert "session=redacted-by-atoll; Path=/" in again.out and again.out.endswith("welcome\n"), again


def test_a_recording_holds_no_secret_of_the_vault(sandbox, certificates, api):
    assert sandbox.run_atoll("secret", "set", "model", stdin=SECRET.encode()).code == 0
    rule = f"{{host: web.test, ports: [{api.port}], inject: {{header: x-api-key, secret: model, env: MODEL_KEY}}}}"
    tape = Taped(sandbox, certificates, api, sandbox.policy(
        policy_text([rule, *LOOPBACK]) + "data: {outgoing: flag}\n"))
    keys = api.server.keys   # what arrived
    # It goes out in the header; here the sandbox knows it too, sends it and gets it back.
    command = (f"curl -sS -H \"X-Api-Key: $MODEL_KEY\" -H 'X-Note: {SECRET}' -d '{{\"messages\": [\"{SECRET}\"]}}' "
               f"'https://web.test:{api.port}/v1?note={SECRET}'")
    done = tape.record(command)
    assert keys == [SECRET] and '"count": 1' in done.out, (keys, done)
    text = tape.file.read_text()
    assert SECRET not in text and '\\"count\\": 1' in text and "*" * len(SECRET) in text
    assert '"count": 1' in tape.replay(command).out


NGINX = """worker_processes 1; daemon off; pid {root}/pid; error_log {root}/error.log;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fcgi;
uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi;
server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {chain}; ssl_certificate_key {key}; root {root};
location /echo {{ return 200 "$request_id $request_method $server_protocol\\n"; }} }} }}
"""


@pytest.mark.needs("nginx")
def test_http2_stays_http2(sandbox, certificates, tmp_path, api):
    api.close()
    user = "user root;\n" if os.geteuid() == 0 else ""
    (tmp_path / "nginx.conf").write_text(user + NGINX.format(root=tmp_path, port=api.port, chain=certificates.chain,
                                                            key=certificates.key))
    (tmp_path / "large").write_bytes(bytes(range(256)) * 8192)
    nginx = subprocess.Popen(["/usr/sbin/nginx", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)],
                             stderr=subprocess.DEVNULL)
    url = f"https://web.test:{api.port}"
    command = (f"curl -sSi {url}/echo {url}/echo -w '%{{http_version}}\\n'; curl -sS --http1.1 -i {url}/echo; "
               f"curl -sSI {url}/large; curl -sSZ -o 1 {url}/large -o 2 {url}/large; sha256sum 1 2; "
               f"curl -sSi -d abc {url}/echo")
    tape = Taped(sandbox, certificates, api)
    try:
        time.sleep(0.3)
        first = tape.record(command)
    finally:
        nginx.terminate()
        nginx.wait(timeout=10)
    assert "HTTP/2 200" in first.out and "HTTP/1.1 200" in first.out and "POST HTTP/2.0" in first.out, first
    assert tape.replay(command).bytes == first.bytes
    assert {line["request"]["http"] for line in tape.lines()[1:]} == {"2", "1.1"}


def test_rules_answer_in_the_place_of_a_server(sandbox, certificates, api):
    sandbox.write(sandbox.base / "config" / "answer.bin", bytes(range(256)))
    policy = rules(sandbox, f"{{host: web.test, ports: [{api.port}]}}", more=f"""  simulate:
    - {{host: gone.test, answer: {{status: 503, headers: {{Retry-After: "7"}}, body: "later\\n"}}}}
    - {{host: web.test, ports: [{api.port}], http: [{{methods: [POST], paths: ["/v1/**"]}}],
       answer: {{body_file: answer.bin}}}}
""")
    url = f"https://web.test:{api.port}"
    done = sandbox.run(f"for v in --http1.1 --http2; do curl -sS $v -i https://gone.test/any/thing; "
                       f"curl -sS $v -d x {url}/v1/pay | sha256sum; curl -sS $v -o /dev/null -w '%{{http_code}}\\n' "
                       f"{url}/v1/pay; done; cat /run/atoll/limits.md", policy=policy, env=outside(certificates))
    assert done.code == 0 and done.out.count("later\n") == 2 and done.out.lower().count("retry-after: 7") == 2, done
    assert "HTTP/2 503" in done.out and "HTTP/1.1 503 Service Unavailable" in done.out, done
    assert done.out.count("40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880") == 2, done
    # What no rule answers went to the server, and nothing else did.
    assert done.out.count("200\n") == 2 and api.count == 2, done
    assert "simulate" not in done.out
    verdicts = [(entry["subject"], entry["verdict"], entry["detail"]["method"]) for entry in records(sandbox, done)]
    assert verdicts == 2 * [("gone.test", "simulate", "GET"), ("web.test", "simulate", "POST"),
                            ("web.test", "allow", "GET")]
    connects = {(entry["subject"], entry["verdict"]) for entry in records(sandbox, done, "net.connect")}
    assert connects == {("gone.test", "simulate"), ("web.test", "allow")}
    assert done.report["network"]["simulated"] == 4


def test_a_host_that_a_rule_answers_for_speaks_the_same_in_a_replay(sandbox, certificates, api):
    """It spoke HTTP/2 live, and HTTP/1.1 in the replay: a program could tell one from the other."""
    policy = rules(sandbox, f"{{host: web.test, ports: [{api.port}]}}",
                   more="  simulate:\n    - {host: gone.test, answer: {status: 503, body: later}}\n")
    tape = Taped(sandbox, certificates, api, policy)
    command = f"curl -sSi https://gone.test/; curl -sSi https://web.test:{api.port}/v1/pay; true"
    first = tape.record(command)
    assert first.out.startswith("HTTP/2 503") and "HTTP/1.1 200" in first.out, first
    assert tape.replay(command).bytes == first.bytes


def test_files_that_cannot_be_used(sandbox, certificates, api):
    policy = rules(sandbox, f"{{host: web.test, ports: [{api.port}]}}")
    there = sandbox.write(sandbox.outside / "there.jsonl", "{}\n")
    inside = sandbox.write(sandbox.project / "inside.jsonl", '{"atoll":"recording","v":1}\n')
    rows = [
        (["--record", there], "there.jsonl cannot be made: File exists", policy),
        (["--record", sandbox.project / "new.jsonl"], "lies where the sandbox can read it", policy),
        (["--record", sandbox.outside / "a", "--replay", there], "exclude each other", policy),
        (["--replay", there], "the recording cannot be replayed: it is malformed (line 1)", policy),
        (["--replay", sandbox.outside / "none"], "cannot be read: No such file", policy),
        (["--replay", "/dev/null"], "is not a regular file", policy),
        (["--record", ""], "not an empty name", policy),
        (["--record", sandbox.outside / "b"], "it has no network",
         sandbox.policy("atoll: 1\nextends: none\n", "n.yaml")),
    ]
    for options, text, used in rows:
        done = sandbox.run("true", policy=used, options=options, env=outside(certificates))
        assert done.code == 125 and text in done.err, (options, done)
    assert there.read_text() == "{}\n" and not (sandbox.project / "new.jsonl").exists()
    # Read only, what the project has may be answered from.
    assert sandbox.run("true", policy=policy, options=["--replay", inside]).code == 0


def test_plain_text_is_recorded_too(sandbox, certificates, api):
    plain = Web()
    tape = Taped(sandbox, certificates, api, rules(sandbox, f"{{host: web.test, ports: [{plain.port}]}}"))
    first = tape.record(f"curl -sSi http://web.test:{plain.port}/page")
    plain.close()
    tape.port = plain.port
    assert "hello from /page" in first.out and len(tape.lines()) == 2
    assert tape.replay(f"curl -sSi http://web.test:{plain.port}/page").bytes == first.bytes


def test_other_protocols_pass_while_recording(sandbox, certificates, api):
    """A server that speaks first is not kept waiting, and nothing of it is kept."""
    listener = Listener(lambda connection: connection.sendall(b"220 ready\r\n") or connection.recv(100))
    tape = Taped(sandbox, certificates, api, rules(sandbox, f"{{host: web.test, ports: [{listener.port}]}}"))
    done = tape.record(["/usr/bin/python3", "-c", "import socket, sys\n"
                        "s = socket.create_connection(('web.test', int(sys.argv[1])), 20)\n"
                        "print(s.recv(100)); s.sendall(b'QUIT')", str(listener.port)])
    wait_until(lambda: listener.heard, 30, "what the server heard")
    listener.close()
    assert "220 ready" in done.out and listener.heard == [b"QUIT"]
    assert len(tape.lines()) == 1
