# SPDX-License-Identifier: Apache-2.0
"""`inject:`: a secret of the vault goes into the requests that the rule names, over TLS, and is never inside."""
import base64
import contextlib
import gzip
import html
import json
import os
import pathlib
import threading
import time
import urllib.parse

import pytest

from atoll import wait_until
from gate import LOOPBACK, Listener, Web, gate_of, policy_text, test_hosts
from library import host, needs_library  # noqa: F401
from model import Model

pytestmark = pytest.mark.needs("openssl", "curl")

KEY = "sk-ant-api03-Zk3vQ9mB7xLpT2wRfYcD8hJn"
LOGIN = "alice:correct horse battery"


class Server(Web):
    """Keeps what it is sent, and repeats what `?echo` asks for; `/away` leads to where `away` says."""

    def __init__(self, context):
        super().__init__(context)
        self.seen, self.away, self.says, self.lock = [], "", b"", threading.Lock()
        outer, base = self, self.server.RequestHandlerClass

        class Handler(base):
            def read_chunks(self):
                body = b""
                while size := int(self.rfile.readline() or b"0", 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def handle_any(self):
                body = self.read_chunks() if "Transfer-Encoding" in self.headers else \
                    self.rfile.read(int(self.headers.get("Content-Length") or 0))
                with outer.lock:
                    outer.seen.append((self.command, self.path, dict(self.headers), body))
                answer = b"ok\n"
                if "echo-body" in self.path:
                    answer = repr(sorted(self.headers.items())).encode() + body
                if "told" in self.path: # by whoever got it elsewhere
                    answer = f"it is {KEY}.\n".encode()
                if "says" in self.path:
                    answer = outer.says
                if "gzip" in self.path: # whatever the client accepts
                    answer = gzip.compress(answer)
                self.send_response(302 if self.path.startswith("/away") else 200)
                if self.path.startswith("/away"):
                    self.send_header("Location", outer.away)
                if "gzip" in self.path:
                    self.send_header("Content-Encoding", "gzip")
                if "told" in self.path:
                    self.send_header(KEY, KEY)
                if "echo" in self.path:
                    self.send_header("X-Echo", self.headers.get("x-api-key", "") + "|" +
                                     self.headers.get("authorization", ""))
                    self.send_header("X-Hex", self.headers.get("x-api-key", "").encode().hex() + ".")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = handle_any

        self.server.RequestHandlerClass = Handler


@pytest.fixture
def server(certificates):
    made = Server(certificates.context())
    yield made
    made.close()


def keep(sandbox, name="model", value=KEY):
    done = sandbox.run_atoll("secret", "set", name, stdin=value.encode())
    assert done.code == 0, done


def rule(server, inject="header: x-api-key, secret: model, env: MODEL_KEY", host="web.test", more=""):
    return f"{{host: {host}, ports: [{server.port}], {more} inject: {{{inject}}}}}"


def policy(sandbox, *rules, more=""):
    return sandbox.policy(policy_text([*rules, *LOOPBACK], more))


def outside(certificates, names=("web.test", "other.test")):
    return {**test_hosts("127.0.0.1", names), "SSL_CERT_FILE": str(certificates.ca)}


def entries(sandbox, done, kind):
    lines = sandbox.audit_log(done.session).read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["type"] == kind]


def test_it_arrives_and_is_not_inside(sandbox, certificates, server):
    keep(sandbox)
    script = f"echo $MODEL_KEY; curl -sS -D- -H \"x-api-key: $MODEL_KEY\" https://web.test:{server.port}/v1/echo"
    done = sandbox.run(script, policy=policy(sandbox, rule(server)), options=("-e", "MODEL_KEY=added"),
                       env={**outside(certificates), "MODEL_KEY": "the caller's"})
    assert done.code == 0, done
    (method, path, headers, _), = server.seen
    assert (method, path, headers["x-api-key"]) == ("GET", "/v1/echo", KEY)
    placeholder = done.out.splitlines()[0]
    assert placeholder.startswith("sk-ant-api03-") and len(placeholder) == len(KEY) and placeholder != KEY
    assert "[redacted by atoll]" in done.out.replace("\r", ""), done
    entry, = entries(sandbox, done, "net.http")
    assert entry["verdict"] == "allow" and entry["detail"]["secrets"] == ["model"]
    log = sandbox.audit_log(done.session).read_text()
    # A person reads which secret went out, and by which rule.
    text = sandbox.run_atoll("log", done.session).out
    line, = [line for line in text.splitlines() if "; secret: model" in line]
    assert f"[{entry['rule']}]" in line and entry["rule"].startswith("network.allow["), line
    assert KEY not in done.out + done.err + log + json.dumps(done.report) + text
    assert not entries(sandbox, done, "alert")


SET = """
box = context.find({session!r})
try:
    box.request("set_headers", (ctypes.c_char_p * {count})(*{headers!r}, None))
    print("set")
except Error as error:
    print(error.code, error)
"""


@needs_library
def test_headers_of_the_owner_come_and_go(sandbox, certificates, server, host):
    """By libatoll, while it runs; the policy has the requests read, and says nothing of these headers."""
    keep(sandbox)
    value = "sk-of-the-owner-0123456789"
    rules = (f"{{host: web.test, ports: [{server.port}], http: [{{methods: [GET]}}]}}",
             f"{{host: other.test, ports: [{server.port}]}}",
             rule(server, "header: x-api-key, secret: model", more="http: [{methods: [GET]}],"))
    line = sandbox.command_line([], policy=policy(sandbox, *rules), options=["-d"])
    session = sandbox.run_outside(line, env=outside(certificates)).out.strip()

    def set_headers(*headers):
        words = [one.encode() for one in headers]
        return host.program(SET.format(session=session, count=len(words) + 1, headers=words)).strip()

    def get(path="/a", name="web.test", scheme="https", options=""):
        done = sandbox.run_atoll("exec", session, "--", "curl", "-sSi", "-H", "authorization: of the sandbox",
                                 *options.split(), f"{scheme}://{name}:{server.port}{path}")
        return done.out.replace("\r", "")
    try:
        assert set_headers("web.test", "Authorization", value, "web.test", "x-second", "2",
                           "web.test", "x-api-key", "not the secret of the policy") == "set"
        said = get("/echo")
        assert said.endswith("ok\n") and "[redacted by atoll]" in said and value not in said, said
        seen = {key.lower(): text for key, text in server.seen[-1][2].items()}
        assert (seen["authorization"], seen["x-second"], seen["x-api-key"]) == (value, "2", KEY)
        # The same by HTTP/1.1 and by HTTP/2 from inside.
        assert "ok\n" in get(options="--http1.1") and server.seen[-1][2]["Authorization"] == value
        # They are of this host; what the policy refuses it refuses as before.
        assert "ok\n" in get(name="other.test", options="-k")
        assert value not in str(server.seen[-1]) and "of the sandbox" in str(server.seen[-1])
        count = len(server.seen)
        assert " 403" in get(options="-X POST").splitlines()[0] and len(server.seen) == count
        for wrong in (("other.test", "x-a", "b"), ("*.web.test", "x-a", "b"), ("web.test", "host", "b"),
                      ("web.test", "x-a", "b\nc: d"), ("web.test", "x-a")):
            assert not set_headers(*wrong).startswith("set"), wrong
        assert "ok\n" in get() and server.seen[-1][2]["x-second"] == "2"
        assert set_headers("web.test", "x-second", "3") == "set" and "ok\n" in get()
        assert server.seen[-1][2]["x-second"] == "3" and "of the sandbox" in str(server.seen[-1])
        assert set_headers() == "set" and "ok\n" in get() and "x-second" not in server.seen[-1][2]
        log = sandbox.audit_log(session).read_text()
        assert value not in log and '"headers":[{"host":"web.test","name":"Authorization"}' in log
    finally:
        sandbox.run_atoll("stop", session)


@pytest.mark.parametrize("inject, value, path, header, wanted", [
    ("header: Authorization, kind: bearer", KEY, "/x", "Authorization", f"Bearer {KEY}"),
    ("header: Authorization, kind: basic", LOGIN, "/x", "Authorization",
     "Basic " + base64.b64encode(LOGIN.encode()).decode()),
    ("query: key", "a+b/c=d&e%f", "/x?key=mine&a=1", None, "/x?a=1&key=a%2Bb%2Fc%3Dd%26e%25f"),
])
def test_kinds(sandbox, certificates, server, inject, value, path, header, wanted):
    keep(sandbox, value=value)
    done = sandbox.run(f"curl -sS --http1.1 'https://web.test:{server.port}{path}'", env=outside(certificates),
                       policy=policy(sandbox, rule(server, f"{inject}, secret: model")))
    assert done.out == "ok\n", done
    (_, seen, headers, _), = server.seen
    assert (headers[header] if header else seen) == wanted


def test_aws(sandbox, certificates, server):
    keep(sandbox, value="AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    script = ("echo $AWS_ACCESS_KEY_ID $AWS_SECRET_ACCESS_KEY; curl -sS -H \"authorization: AWS4-HMAC-SHA256 "
              f"Credential=$AWS_ACCESS_KEY_ID/x\" https://web.test:{server.port}/bucket/object")
    done = sandbox.run(script, env=outside(certificates), policy=policy(sandbox, rule(
        server, "aws: {service: s3, region: eu-central-1}, secret: model, env: AWS")))
    identity, key = done.out.split()[:2]
    assert identity.startswith("AKIA") and len(identity) == 20 and len(key) == 40 and "wJalr" not in done.out, done
    (_, _, headers, _), = server.seen
    sent = headers["Authorization"]
    assert sent.startswith("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/") and "/eu-central-1/s3/aws4_" in sent
    assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=" in sent and identity not in sent


def test_only_what_the_rule_names_gets_it(sandbox, certificates, server):
    keep(sandbox)
    narrow = "http: [{methods: [POST], paths: [\"/v1/**\"]}],"
    url = f":{server.port}"
    script = (f"curl -sS https://web.test{url}/v1/a; curl -sS -d x https://web.test{url}/v2/b; "
              f"curl -sS -d x https://other.test{url}/v1/c; curl -sS -d x https://web.test{url}/v1/d")
    done = sandbox.run(script, env=outside(certificates),
                       policy=policy(sandbox, rule(server, more=narrow), f"{{host: web.test, ports: [{server.port}]}}",
                                     f"{{host: other.test, ports: [{server.port}]}}"))
    assert done.out == "ok\n" * 4, done
    got = {path: headers.get("x-api-key") for _, path, headers, _ in server.seen}
    assert got == {"/v1/a": None, "/v2/b": None, "/v1/c": None, "/v1/d": KEY}


def test_a_redirect_does_not_take_it_along(sandbox, certificates, server):
    keep(sandbox)
    server.away = f"https://other.test:{server.port}/there"
    done = sandbox.run(f"curl -sSL https://web.test:{server.port}/away; "
                       f"curl -sSL -H \"x-api-key: $MODEL_KEY\" https://web.test:{server.port}/away",
                       env=outside(certificates),
                       policy=policy(sandbox, rule(server), f"{{host: other.test, ports: [{server.port}], "
                                     "http: [{paths: [\"/**\"]}]}"))
    assert done.out.startswith("ok\n"), done
    # curl takes a header that it was given to the other host: what stands in it is told, and stays here.
    assert "builtin.secrets" in done.out and "another host" in done.out, done
    got = [(path, headers.get("x-api-key")) for _, path, headers, _ in server.seen]
    assert got == [("/away", KEY), ("/there", None), ("/away", KEY)]
    alert, = entries(sandbox, done, "alert")
    assert alert["subject"] == "other.test" and alert["detail"]["alert"] == "placeholder", alert
    assert alert["detail"]["secret"] == "model" and alert["detail"]["where"] == "a header", alert
    denial, = done.report["denials"]
    assert denial["rule"] == "builtin.secrets", denial


def test_an_answer_does_not_bring_it_in(sandbox, certificates, server):
    keep(sandbox)
    done = sandbox.run(f"curl -sS --compressed https://web.test:{server.port}/echo-body -d mine",
                       env=outside(certificates), policy=policy(sandbox, rule(server)))
    assert "('x-api-key', '" + "*" * len(KEY) + "')" in done.out and done.out.endswith("mine"), done
    assert "('accept-encoding', 'identity')" in done.out and KEY not in done.out
    done = sandbox.run(f"curl -sSi https://web.test:{server.port}/echo", env=outside(certificates),
                       policy=policy(sandbox, rule(server)))
    assert "[redacted by atoll]" in done.out and KEY.encode().hex() not in done.out, done
    other = f"{{host: other.test, ports: [{server.port}], http: [{{}}]}}"
    done = sandbox.run(f"curl -sSi -H 'x-api-key: mine' https://other.test:{server.port}/echo",
                       env=outside(certificates), policy=policy(sandbox, rule(server), other))
    assert b"mine".hex() + "." in done.out, done
    # Another name, another port: whoever got it knows it everywhere.
    done = sandbox.run(f"curl -sSi https://other.test:{server.port}/told", env=outside(certificates),
                       policy=policy(sandbox, rule(server), other))
    assert done.out.endswith(f"\nit is {'*' * len(KEY)}.\n") and KEY not in done.out, done
    assert "redacted-by-atoll: [redacted by atoll]" in done.out, done


SPELLINGS = {
    "plain": str.encode,
    "capitals": lambda text: text.upper().encode(),
    "small letters": lambda text: text.lower().encode(),
    "UTF-16": lambda text: text.encode("utf-16-le"),
    "UTF-16, the other way round": lambda text: text.encode("utf-16-be"),
    "JSON": lambda text: json.dumps(text).encode(),
    "JSON, all escaped": lambda text: "".join(f"\\u{ord(c):04x}" for c in text).encode(),
    "JSON, some escaped": lambda text: text.replace("-", "\\u002d").replace(" ", "\\u0020").encode(),
    "HTML": lambda text: html.escape(text).replace("-", "&#45;").replace(" ", "&#x20;").encode(),
    "percent": lambda text: urllib.parse.quote(text, safe="").encode(),
    "percent, all": lambda text: "".join(f"%{ord(c):02X}" for c in text).encode(),
    "a form": lambda text: urllib.parse.quote_plus(text).encode(),
    "hexadecimal": lambda text: text.encode().hex().encode(),
    "hexadecimal with colons": lambda text: text.encode().hex(":").upper().encode(),
    "base64": lambda text: base64.b64encode(b"it is " + text.encode() + b"."),
    "base64 in a URL": lambda text: base64.urlsafe_b64encode(b"behold: " + text.encode()),
}


@pytest.mark.only("root")
def test_no_spelling_of_it_comes_in_or_is_recorded(sandbox, certificates, server):
    """Nor of a password that is short: eight bytes are enough."""
    keep(sandbox)
    keep(sandbox, "login", "alice:S3-cret pw")
    hidden = {(name, what): spell(what) for name, spell in SPELLINGS.items() for what in (KEY, "S3-cret pw")}
    server.says = b"".join(b"<%d>%b</>\n" % (i, spelled) for i, spelled in enumerate(hidden.values())) + b"alice pw\n"
    url = f"https://web.test:{server.port}/says"
    plain = f"{{host: web.test, ports: [{server.port}], http: [{{}}]}}"
    # The control: where no rule has a secret, everything comes in.
    done = sandbox.run(f"curl -sS {url} | base64 -w0", env=outside(certificates), policy=policy(sandbox, plain))
    assert base64.b64decode(done.out) == server.says, done
    login = "header: authorization, kind: basic, secret: login"
    recording = sandbox.base / "recording"
    done = sandbox.run(f"curl -sS {url} | base64 -w0", env=outside(certificates), options=("--record", recording),
                       policy=policy(sandbox, rule(server), rule(server, login)))
    shown = base64.b64decode(done.out)
    assert len(shown) == len(server.says) and shown.endswith(b"</>\nalice pw\n"), done
    kept = recording.read_text()
    for i, ((name, what), spelled) in enumerate(hidden.items()):
        line = shown.split(b"<%d>" % i)[1].split(b"</>")[0]
        # Of base64 what stands around it stays.
        rest = 16 if name.startswith("base64") else 2
        assert len(line.replace(b"*", b"").strip(b'"\0')) <= rest, (name, what, line)
        assert spelled not in shown and json.dumps(spelled.decode("latin-1"))[1:-1] not in kept, (name, what)
    assert "**********" in kept


def test_an_answer_that_nobody_can_look_into_is_ended(sandbox, certificates, server):
    keep(sandbox)
    url = f"https://web.test:{server.port}/echo-body-gzip"
    plain = f"{{host: web.test, ports: [{server.port}], http: [{{}}]}}"
    for rules, is_whole in ((rule(server), False), (plain, True)):
        done = sandbox.run(f"curl -sS -H 'Range: bytes=0-9' -H 'x-api-key: mine' {url} | gunzip -c",
                           env=outside(certificates), policy=policy(sandbox, rules))
        assert ("x-api-key" in done.out) == is_whole and KEY not in done.out, done
    assert [("Range" in head or "range" in head) for *_, head, _ in server.seen] == [False, True]


def test_a_websocket_does_not_bring_it_in(sandbox, certificates):
    """Of a server that repeats what it was sent when the protocol was switched."""
    asked = []

    def talk(connection):
        with certificates.context().wrap_socket(connection, server_side=True) as secured:
            asked.append(head := secured.recv(4096).lower())
            key = head.split(b"x-api-key: ")[1].split(b"\r")[0]
            secured.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            secured.recv(4096)
            for message in (b"hello", b"<" + key + b">"):
                secured.sendall(bytes([0x81, len(message)]) + message)
                time.sleep(0.05)
            return secured.recv(10)

    keep(sandbox)
    server = Listener(talk)
    client = ("import socket, ssl\n"
              f"s = socket.create_connection(('web.test', {server.port}), timeout=20)\n"
              "s = ssl._create_unverified_context().wrap_socket(s, server_hostname='web.test')\n"
              f"s.sendall(b'GET /x HTTP/1.1\\r\\nHost: web.test:{server.port}\\r\\nUpgrade: websocket\\r\\n'\n"
              "          b'Connection: Upgrade\\r\\nSec-WebSocket-Extensions: permessage-deflate\\r\\n'\n"
              "          b'X-API-Key: mine'\n"
              "          b'\\r\\n\\r\\n')\n"
              "got = s.recv(4096)\n"
              "s.sendall(b'x')\n"
              "while not got.endswith(b'>'): got += s.recv(4096)\n"
              "print(got.split(b'\\r\\n\\r\\n')[1])\n")
    plain = f"{{host: web.test, ports: [{server.port}], http: [{{}}]}}"
    try:
        for rules, shown in ((rule(server), b"*" * len(KEY)), (plain, b"mine")):
            done = sandbox.run(["/usr/bin/python3", "-c", client], env=outside(certificates),
                               policy=policy(sandbox, rules))
            size = len(shown) + 2
            assert done.out == repr(b"\x81\x05hello" + bytes([0x81, size]) + b"<" + shown + b">") + "\n", done
    finally:
        server.close()
    assert [b"permessage-deflate" in head for head in asked] == [False, True]
    assert KEY.lower().encode() in asked[0]


def test_a_header_that_names_another_path_is_refused(sandbox, certificates, server):
    url = f"https://web.test:{server.port}/v1/x"
    judged = f"{{host: web.test, ports: [{server.port}], http: [{{methods: [GET], paths: [\"/v1/**\"]}}]}}"
    refused = ("X-HTTP-Method-Override: DELETE", "x-original-url: /admin", "X_Forwarded_Uri: /admin",
               # gunicorn takes this off the path of /v1/admin.
               "SCRIPT_NAME: /v1", "X-Script-Name: /v1", "Destination: /admin", "x-amz-copy-source: other/secret",
               "X-Amz-Copy-Source: /v1/../other", f"Destination: https://other.test:{server.port}/v1/y")
    passes = ("X-Other: DELETE", "Destination: /v1/y", f"Destination: {url}", "x-amz-copy-source: v1/y")
    curl = "curl -sk -o /dev/null -w '%{http_code} '"
    script = "".join(f"{curl} -H '{field}' {url}; " for field in (*refused, *passes))
    done = sandbox.run(script, env=outside(certificates), policy=policy(sandbox, judged))
    assert done.out == len(refused) * "502 " + len(passes) * "200 ", done
    assert len(server.seen) == len(passes)
    # The control: where requests are not judged nobody minds.
    done = sandbox.run(script, env=outside(certificates), policy=policy(
        sandbox, f"{{host: web.test, ports: [{server.port}]}}"))
    assert len(server.seen) == 2 * len(passes) + len(refused), done


def test_a_client_of_a_model_works_and_its_file_is_applied(sandbox, certificates):
    """What an agent does, without one: make check-agents has real ones."""
    model = Model(certificates.context(), sandbox.project / "hello.py", "print('hello')\n")
    client = ("import json, os, urllib.request\n"
              "def ask(messages):\n"
              "    body = {'model': 'm', 'stream': True, 'tools': [{'name': 'Write'}], 'messages': messages}\n"
              f"    request = urllib.request.Request('https://web.test:{model.port}/v1/messages',\n"
              "        json.dumps(body).encode(), {'x-api-key': os.environ['MODEL_KEY']})\n"
              "    for line in urllib.request.urlopen(request):\n"
              "        if line.startswith(b'data: '):\n"
              "            yield json.loads(line[6:])\n"
              "for event in ask([]):\n"
              "    if event['type'] == 'content_block_delta':\n"
              "        what = json.loads(event['delta']['partial_json'])\n"
              "        open(what['file_path'], 'w').write(what['content'])\n"
              "print([event['delta']['text'] for event in ask([{'content': [{'type': 'tool_result'}]}])\n"
              "       if event['type'] == 'content_block_delta'])\n")
    try:
        keep(sandbox)
        done = sandbox.run(["/usr/bin/python3", "-c", client], policy=policy(sandbox, rule(model)),
                           env=outside(certificates))
        assert done.code == 0 and "The file is written." in done.out, done
        assert [headers["x-api-key"] for _, headers, _ in model.seen] == [KEY, KEY]
        assert sandbox.run_atoll("apply", done.session).code == 0
        assert (sandbox.project / "hello.py").read_text() == "print('hello')\n"
    finally:
        model.close()


def test_never_without_tls(sandbox, certificates, server):
    keep(sandbox)
    plain = Web()
    try:
        done = sandbox.run(f"curl -sS http://web.test:{plain.port}/x", env=outside(certificates),
                           policy=policy(sandbox, rule(plain)))
        assert "TLS only" in done.out and not plain.requests, done
        # The same without inject: gets through.
        done = sandbox.run(f"curl -sS http://web.test:{plain.port}/x", env=outside(certificates),
                           policy=policy(sandbox, f"{{host: web.test, ports: [{plain.port}]}}"))
        assert done.out == "hello from /x\n", done
    finally:
        plain.close()


@pytest.mark.parametrize("value, says", [(None, "atoll secret set model"), ("no-colon", "user:password")])
def test_refused_before_anything_runs(sandbox, server, value, says):
    if value:
        keep(sandbox, value=value)
    done = sandbox.run("echo started >ran", policy=policy(sandbox, rule(
        server, "header: authorization, kind: basic, secret: model")))
    assert done.code == 125 and says in done.err and "model" in done.err, done
    assert not (sandbox.project / "ran").exists() and "started" not in done.out


def test_what_was_found_inside_does_not_leave(sandbox, certificates, server):
    keep(sandbox)
    keep(sandbox, "canary", "canary-0123456789")
    url = f"https://web.test:{server.port}"
    encoded = base64.b64encode(b"xx" + KEY.encode() + b"y").decode()
    script = (f"curl -sS -H 'x-mine: {KEY}' {url}/a; curl -sS '{url}/b?q={encoded}'; "
              f"curl -sS -H 'cookie: canary-0123456789' {url}/c; curl -sS {url}/d")
    done = sandbox.run(script, env=outside(certificates),
                       policy=policy(sandbox, rule(server), more="data: {canaries: [canary]}\n"))
    assert [path for _, path, _, _ in server.seen] == ["/d"], done
    assert [(entry["detail"]["secret"], entry["detail"]["where"]) for entry in entries(sandbox, done, "alert")] == [
        ("model", "a header"), ("model", "the URL"), ("canary", "a header")]
    # A person hears of them as of other alerts, and the report has them.
    told = [(entry["kind"], "was refused" in entry["text"]) for entry in done.report["alerts"]["list"]]
    assert told == [("secret", True)] * 3 and done.report["alerts"]["total"] == 3, done
    assert "secret model was in a header to web.test" in done.err and "canary of the vault canary" in done.err, done
    rules = [entry["rule"] for entry in entries(sandbox, done, "alert")]
    assert rules == ["builtin.secrets", "builtin.secrets", "data.canaries"], done
    post = "curl -sS --data-binary @body"
    done = sandbox.run(f"printf 'x%.0s' {{1..70000}} >body; printf '%s' '{KEY}' >>body; {post} {url}/f; "
                       f"{post} --http1.1 -H 'transfer-encoding: chunked' {url}/g; "
                       f"printf '%s' $MODEL_KEY >body; {post} {url}/h", env=outside(certificates),
                       policy=policy(sandbox, rule(server)))
    assert done.out.count("carries a secret out") == 2 and done.out.endswith("ok\n"), done
    # A server may see that a request began: without the secret, and never whole.
    assert not [body for _, _, _, body in server.seen if b"sk-ant-api03-Zk3v" in body], done
    assert [entry["detail"]["where"] for entry in entries(sandbox, done, "alert")] == ["the body"] * 2
    done = sandbox.run(f"printf 'a {KEY} b' >body; {post} {url}/i", env=outside(certificates),
                       policy=policy(sandbox, rule(server), more="data: {outgoing: mask}\n"))
    assert server.seen[-1][3] == b"a " + b"*" * len(KEY) + b" b" and len(entries(sandbox, done, "alert")) == 1, done
    done = sandbox.run(f"curl -sS -H 'x-mine: {KEY}' {url}/e", env=outside(certificates),
                       policy=policy(sandbox, rule(server), more="data: {outgoing: flag}\n"))
    assert server.seen[-1][2]["x-mine"] == KEY and len(entries(sandbox, done, "alert")) == 1, done
    assert "1 alert:" in done.err and "refused" not in done.report["alerts"]["list"][0]["text"], done


@pytest.mark.parametrize("reaction", ["note", "freeze"])
def test_a_canary_of_the_vault_holds_back_what_would_be_applied(sandbox, certificates, server, reaction):
    keep(sandbox, "canary", "canary-0123456789")
    more = f"data: {{canaries: [canary]}}\nmonitor: {{canary: {reaction}}}\n"
    rules = policy(sandbox, f"{{host: web.test, ports: [{server.port}], http: [{{}}]}}", more=more)
    done = sandbox.run(f"echo x >made; curl -sS -H 'cookie: canary-0123456789' https://web.test:{server.port}/c",
                       env=outside(certificates), policy=rules, options=("--apply-on-success",))
    assert done.code == 0 and not server.seen and done.report["alerts"]["total"] == 1, done
    assert (sandbox.project / "made").exists() == (reaction == "note"), done


def family(pid):
    """pid and all that it started, by /proc."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def search_memory(pid, needles):
    """Those that lie anywhere in the memory of a process, in its environment and arguments too."""
    found = set()
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            start, end = (int(number, 16) for number in line.split()[0].split("-"))
            if line.split()[1][0] != "r" or end - start > 256 << 20:
                continue
            with contextlib.suppress(OSError, ValueError, OverflowError):
                memory.seek(start)
                content = memory.read(end - start)
                found |= {needle for needle in needles if needle in content}
    return found


@pytest.mark.skipif(os.getuid() != 0, reason="only root reads the memory of all of them")
def test_the_value_is_in_no_memory_and_no_file(sandbox, certificates, server):
    keep(sandbox)
    script = (f"curl -sS --fail -d x -H \"x-api-key: $MODEL_KEY\" -o answer https://web.test:{server.port}/echo-body "
              "&& env >environment && read -r line <answer; touch ready; exec 9<answer; sleep 60")
    child = sandbox.popen(["bash", "-c", script], policy=policy(sandbox, rule(server)), env=outside(certificates),
                          options=("--discard",))
    wait_until(lambda: server.seen, 20, "the request")
    assert server.seen[0][2]["x-api-key"] == KEY
    time.sleep(1)
    gate, = set(gate_of(sandbox)) & family(child.pid)
    needles = [KEY.encode(), base64.b64encode(KEY.encode()), KEY.encode().hex().encode(), KEY.encode("utf-16-le")]
    others = family(child.pid) - {gate}
    inside = [pid for pid in others if "sleep" in pathlib.Path(f"/proc/{pid}/cmdline").read_text()]
    # The controls: it lies where it must, what stands for it lies where it may, and both are found.
    assert KEY.encode() in search_memory(gate, needles)
    assert len(others) >= 4 and inside
    assert any(search_memory(pid, [b"MODEL_KEY=sk-ant-api03-"]) for pid in inside)
    for pid in others:
        assert not search_memory(pid, needles), pathlib.Path(f"/proc/{pid}/cmdline").read_text()
    places = [path for path in sandbox.base.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any(b"[redacted" in path.read_bytes() or b"******" in path.read_bytes() for path in places)
    assert not [path for path in places if any(needle in path.read_bytes() for needle in needles)]
    # Nobody else may look into the gate.
    status = pathlib.Path(f"/proc/{gate}/status").read_text()
    assert "Seccomp:\t2" in status
    child.terminate()
    child.wait(20)
