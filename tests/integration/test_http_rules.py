# SPDX-License-Identifier: Apache-2.0
"""`http:` rules: each request of an intercepted host is judged by itself, for any program, and written down."""
import contextlib
import http.server
import json
import os
import re
import shutil
import socket
import subprocess

import pytest

from atoll import wait_until
from gate import LOOPBACK, Web, policy_text, serve_beside, test_hosts

pytestmark = pytest.mark.needs("openssl", "curl")


@pytest.fixture
def secure(certificates):
    server = Web(certificates.context())
    yield server
    server.close()


@pytest.fixture
def plain():
    server = Web()
    yield server
    server.close()


def rules(sandbox, port, http="{methods: [GET], paths: [\"/v1/**\"]}", host="web.test", more="", others=()):
    """The policy of a test: web.test with these http rules."""
    return sandbox.policy(policy_text([f"{{host: {host}, ports: [{port}], http: [{http}]}}", *others, *LOOPBACK], more))


def outside(certificates, names=("web.test", "other.test"), address="127.0.0.1"):
    """The environment of a host that trusts the authority of the tests."""
    return {**test_hosts(address, names), "SSL_CERT_FILE": str(certificates.ca)}


class Counting(http.server.BaseHTTPRequestHandler):
    """Answers with the path and the length of the body."""
    protocol_version = "HTTP/1.1"

    def answer(self):
        left = size = int(self.headers.get("Content-Length", 0))
        while left:
            left -= len(self.rfile.read(min(left, 65536)))
        body = f"{self.path} {size}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def counting():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    serve_beside(server)
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def http2_in_plain_text(sandbox, behind):
    """A server of HTTP/2 alone in front of another; its port."""
    root = sandbox.make_directory(sandbox.base / "nginx")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    user = f"user {sandbox.identity.name};" if sandbox.identity.is_root else ""
    sandbox.write(root / "nginx.conf", f"""{user}
daemon off; pid {root}/pid; error_log {root}/error.log; events {{}}
http {{ access_log off; client_body_temp_path {root}/b; proxy_temp_path {root}/p; fastcgi_temp_path {root}/f;
    uwsgi_temp_path {root}/u; scgi_temp_path {root}/s; client_max_body_size 64m;
    server {{ listen 127.0.0.1:{port} http2; location / {{ proxy_pass http://127.0.0.1:{behind}; }} }} }}
""")
    nginx = subprocess.Popen(["/usr/sbin/nginx", "-c", root / "nginx.conf"], **sandbox.popen_keywords())
    try:
        wait_until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)), what="nginx")
        yield port
    finally:
        nginx.terminate()
        nginx.wait()


def records(sandbox, done, kind="net.http"):
    lines = sandbox.audit_log(done.session).read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["type"] == kind]


def test_what_is_listed_is_answered_and_the_rest_is_told_why(sandbox, certificates, secure):
    url = f"https://web.test:{secure.port}"
    done = sandbox.run(f"curl -sS {url}/v1/models; curl -sS -w '%{{http_code}}\\n' {url}/admin",
                       policy=rules(sandbox, secure.port), env=outside(certificates))
    answer = done.out.splitlines()
    assert len(answer) == 3, done
    assert answer[0] == "hello from /v1/models" and answer[2] == "403", done
    refusal = json.loads(answer[1])
    assert refusal["error"] == "refused by atoll" and refusal["rule"] == "network.default", refusal
    assert "`atoll approve 1` lets the next try through" in refusal["hint"], refusal
    assert [path for _, path in secure.requests] == ["/v1/models"]
    kept = [(entry["verdict"], entry["detail"]["method"], entry["subject"], entry["detail"]["path"],
             entry["detail"]["status"]) for entry in records(sandbox, done)]
    assert kept == [("allow", "GET", "web.test", "/v1/models", 200), ("deny", "GET", "web.test", "/admin", 403)]
    assert done.report["network"]["requests"] == 2
    shown = sandbox.run_atoll("log", "--net", done.session).out
    assert re.search(rf"net.http +allow .* GET web.test:{secure.port}/v1/models 200 in 22 out 0 \d+ ms "
                     r"\[network.allow\[0\]\]\n", shown), shown
    assert re.search(rf"net.http +deny .* GET web.test:{secure.port}/admin 403 in 0 out 0 \d+ ms "
                     r"\[network.default\]\n", shown), shown
    denial, = done.report["denials"]
    assert denial["kind"] == "http.request" and denial["subject"] == f"GET web.test:{secure.port}/admin", denial


def test_other_hosts_keep_their_own_certificate(sandbox, certificates, secure):
    policy = rules(sandbox, secure.port, host="other.test", others=[f"{{host: web.test, ports: [{secure.port}]}}"])
    words = "curl -sSv --cacert ca.pem"
    sandbox.copy(certificates.ca, sandbox.project / "ca.pem", 0o644)
    done = sandbox.run(f"{words} https://web.test:{secure.port}/x; {words} https://other.test:{secure.port}/v1/y",
                       policy=policy, env=outside(certificates))
    assert "hello from /x" in done.out and "issuer: CN=test CA" in done.err, done
    # The other one is the gate's, whom only the session trusts.
    assert "/v1/y" not in done.out and "atoll session" not in done.out, done
    assert not records(sandbox, done)


def test_the_key_is_nowhere_inside(sandbox, certificates, secure):
    done = sandbox.run("cat /run/atoll/ca.pem; grep -rls 'PRIVATE KEY' /run/atoll /etc/ssl /proc/*/environ; "
                       "ls /run/atoll", policy=rules(sandbox, secure.port), env=outside(certificates))
    assert done.out.startswith("-----BEGIN CERTIFICATE-----"), done
    assert done.out.endswith("ca-bundle.jks\nca-bundle.pem\nca.pem\ndenials.jsonl\nlimits.md\n") or \
        done.out.endswith("ca-bundle.pem\nca.pem\ndenials.jsonl\nlimits.md\n"), done
    assert done.out.count("\n") < 30


# As much at once as goes into the connection, before the gate has looked at a byte of it.
UPLOAD = """
import socket, sys
size = 5 << 20
for _ in range(4):
    s = socket.create_connection(("web.test", int(sys.argv[1])), timeout=30)
    s.sendall(b"POST /v1/up HTTP/1.1\\r\\nHost: web.test:%s\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n"
              % (sys.argv[1].encode(), size) + b"x" * size)
    answer = b""
    while part := s.recv(65536): answer += part
    print(answer.rsplit(b"\\r\\n", 1)[-1].decode().strip())
"""


@pytest.mark.needs("nginx")
def test_plain_text_in_both_versions_and_large_bodies(sandbox, certificates, counting):
    """HTTP/2 with prior knowledge, as gRPC without TLS speaks it, and bodies that are there before they are read."""
    http = '{methods: [GET, POST], paths: ["/v1/**"]}'
    with http2_in_plain_text(sandbox, counting) as port:
        url, curl = f"http://web.test:{port}", "curl -sS --http2-prior-knowledge -w '%{http_version} %{http_code}\\n'"
        script = (f"{curl} {url}/v1/a; {curl} {url}/other; head -c 3000000 /dev/zero | "
                  f"{curl} --data-binary @- {url}/v1/b; /usr/bin/python3 -c '{UPLOAD}' {counting}")
        others = [f"{{host: web.test, ports: [{counting}], http: [{http}]}}"]
        done = sandbox.run(script, policy=rules(sandbox, port, http, others=others), env=outside(certificates))
    lines = done.out.splitlines()
    assert lines[:2] == ["/v1/a 0", "2 200"] and lines[2].startswith("{") and lines[3] == "2 403", done
    assert lines[4:] == ["/v1/b 3000000", "2 200", *["/v1/up 5242880"] * 4], done
    assert [(entry["verdict"], entry["detail"]["path"]) for entry in records(sandbox, done)] == \
        [("allow", "/v1/a"), ("deny", "/other"), ("allow", "/v1/b"), *[("allow", "/v1/up")] * 4], done


def test_plain_text_is_judged_as_well(sandbox, certificates, plain):
    url = f"http://web.test:{plain.port}"
    done = sandbox.run(f"curl -sS {url}/v1/a {url}/v1/b; curl -sS {url}/other; exec 3<>/dev/tcp/web.test/{plain.port}; "
                       "printf 'SSH-2.0-x\\r\\n' >&3; head -1 <&3", policy=rules(sandbox, plain.port),
                       env=outside(certificates))
    assert done.out.startswith("hello from /v1/a\nhello from /v1/b\n{") and "400 Bad Request" in done.out, done
    assert [path for _, path in plain.requests] == ["/v1/a", "/v1/b"]
    kept = records(sandbox, done)
    assert [(entry["verdict"], entry["detail"]["path"]) for entry in kept] == \
        [("allow", "/v1/a"), ("allow", "/v1/b"), ("deny", "/other"), ("deny", "")], kept
    assert kept[0]["detail"]["connection"] == kept[1]["detail"]["connection"] != kept[2]["detail"]["connection"]


def test_requests_to_an_address_are_judged_alike(sandbox):
    """A header could name another path there: rules about blocks of addresses did not count as being about requests."""
    addresses = [address for address in os.popen("hostname -I").read().split() if "." in address]
    if not addresses:
        pytest.skip("this machine has no IPv4 address beyond loopback")
    server = Web(address=addresses[0])
    rule = f'{{cidr: {addresses[0]}/32, ports: [{server.port}], http: [{{methods: [GET], paths: ["/v1/**"]}}]}}'
    url, words = f"http://{addresses[0]}:{server.port}", "curl -sS -o /dev/null -w '%{http_code}\\n'"
    header = "-H 'X-Original-URL: /admin'"
    done = sandbox.run(f"{words} {url}/v1/x; {words} {url}/v1/..%2fadmin; {words} {header} {url}/v1/y",
                       policy=sandbox.policy(policy_text([rule])))
    server.close()
    assert done.out.split() == ["200", "403", "502"], done
    assert [path for _, path in server.requests] == ["/v1/x"]


def test_the_agent_is_told_what_it_may_ask_for(sandbox, certificates, secure):
    done = sandbox.run("cat /run/atoll/limits.md", policy=rules(sandbox, secure.port), env=outside(certificates))
    assert f"- allow: `web.test` ports {secure.port}; these requests:\n  - `GET` of `/v1/**`\n" in done.out, done


# --- Real clients, none of which is told anything. ---

NODE = ("fetch(process.argv[1]).then(r => r.text()).then(t => process.stdout.write(t), "
        "e => { console.log(e.cause || e); process.exit(1) })")
HTTPS = ("require('https').get(process.argv[1], r => r.pipe(process.stdout)).on('error', e => console.log(String(e)))")
URLLIB = "import sys, urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1], timeout=20).read().decode())"
REQUESTS = "import sys, requests; sys.stdout.write(requests.get(sys.argv[1], timeout=20).text)"
HTTPX = "import sys, httpx; sys.stdout.write(httpx.get(sys.argv[1], timeout=20).text)"
JAVA = """import java.net.*; import java.net.http.*;
public class Get { public static void main(String[] a) throws Exception {
System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(),
HttpResponse.BodyHandlers.ofString()).body()); } }
"""
CLIENTS = {
    "curl": "curl -sS $URL",
    "wget": "wget -qO- $URL",
    "openssl": "(printf 'GET /v1/openssl HTTP/1.1\\r\\nHost: web.test:%s\\r\\nConnection: close\\r\\n\\r\\n' $PORT; "
               "sleep 1) | timeout 10 openssl s_client -quiet -verify_return_error -verify_hostname web.test "
               "-servername web.test -connect web.test:$PORT 2>/dev/null",
    "git": "git ls-remote $URL 2>&1",
    "node": f"node -e \"{NODE}\" $URL",
    "https": f"node -e \"{HTTPS}\" $URL",
    "python3": f"/usr/bin/python3 -c '{URLLIB}' $URL",
    "requests": f"/usr/bin/python3 -c '{REQUESTS}' $URL",
    "httpx": f"/usr/bin/python3 -c '{HTTPX}' $URL",
    "java": "java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC Get.java $URL 2>&1",
}
PROGRAMS = {"https": "node", **dict.fromkeys(("requests", "httpx", "python3"), "/usr/bin/python3")}


def test_programs_trust_the_session_without_being_told(sandbox, certificates, secure):
    """One run for all of them, at the same time."""
    names = [name for name in CLIENTS if shutil.which(PROGRAMS.get(name, name))]
    if sandbox.identity.name == "root":
        names = [name for name in names if name != "java"]   # slow, and no different
    assert {"curl", "wget", "git", "openssl", "python3"} <= set(names)
    sandbox.write(sandbox.project / "Get.java", JAVA)
    lines = [f"(export URL=https://web.test:{secure.port}/v1/{name} PORT={secure.port}; {CLIENTS[name]}) "
             f">/tmp/{name} &" for name in names]
    shows = [f"echo '== {name}'; cat /tmp/{name}; echo" for name in names]
    policy = rules(sandbox, secure.port, more="resources: {memory: 4GiB, processes: 2000}\n")
    done = sandbox.run("\n".join([*lines, "wait", *shows]), policy=policy, env=outside(certificates))
    said = dict(part.split("\n", 1) for part in done.out.split("== ")[1:])
    wrong = {name: said[name] for name in names if f"hello from /v1/{name}" not in said[name] and name != "git"}
    assert not wrong, (wrong, done)
    # It wants to be told of refs, and is past the handshake when it finds none.
    assert "not a git repository" in said["git"] or "not valid" in said["git"], said["git"]
    assert {path.split("/")[2] for _, path in secure.requests} == set(names)
    assert {entry["detail"]["path"].split("/")[2] for entry in records(sandbox, done)} == set(names)
