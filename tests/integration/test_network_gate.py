# SPDX-License-Identifier: Apache-2.0
"""network.allow: any program reaches what is listed, by its name, without being told of a proxy."""
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest

from atoll import wait_until
from gate import LOOPBACK, Listener, Web, gate_of, policy_text, test_hosts

pytestmark = pytest.mark.needs("openssl", "curl")


@pytest.fixture
def plain():
    server = Web()
    yield server
    server.close()


@pytest.fixture
def secure(certificates):
    server = Web(certificates.context())
    yield server
    server.close()


def allow(sandbox, *ports, host="web.test", more="", rules=()):
    """The policy of a test: this host with these ports."""
    return sandbox.policy(policy_text([f"{{host: {host}, ports: [{', '.join(map(str, ports))}]}}", *rules, *LOOPBACK],
                                      more))


def give_ca(sandbox, certificates):
    return sandbox.copy(certificates.ca, sandbox.project / "ca.pem", 0o644)


def records(sandbox, done, family="net"):
    lines = sandbox.audit_log(done.session).read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["type"].startswith(family)]


# --- Clients. ---

PYTHON = """
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[2]) if len(sys.argv) > 2 else None
print(urllib.request.urlopen(sys.argv[1], context=context, timeout=10).read().decode())
"""
NODE = "fetch(process.argv[1]).then(r => r.text()).then(console.log)"
JAVA = """
import java.net.*; import java.net.http.*;
public class Client {
    public static void main(String[] args) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        System.out.println(client.send(HttpRequest.newBuilder(URI.create(args[0])).build(),
            HttpResponse.BodyHandlers.ofString()).body());
    }
}
"""
STATIC = r"""
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG }, *found;
	char request[200], answer[2000];
	int fd, n;
	if (getaddrinfo(argv[1], argv[2], &hints, &found) != 0)
		return 2;
	fd = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
	if (connect(fd, found->ai_addr, found->ai_addrlen) < 0)
		return 3;
	snprintf(request, sizeof request, "GET /static HTTP/1.0\r\nHost: %s\r\n\r\n", argv[1]);
	write(fd, request, strlen(request));
	while ((n = read(fd, answer, sizeof answer)) > 0)
		write(1, answer, n);
	return 0;
}
"""


@pytest.mark.parametrize("client", ["curl", "curl -4", "curl -6", "wget", "python3", "node", "java", "static"])
def test_a_client_reaches_a_listed_host(sandbox, plain, client):
    url = f"http://web.test:{plain.port}/page"
    program = client.split()[0]
    if program != "static" and not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    commands = {
        "curl": [*client.split(), "-sS", "-m", "20", url], "wget": ["wget", "-qO-", "-T", "20", url],
        "python3": ["/usr/bin/python3", "-c", PYTHON, url], "node": ["node", "-e", NODE, url],
    }
    if program == "java":
        sandbox.write(sandbox.project / "Client.java", JAVA)
        commands["java"] = ["java", "Client.java", url]
    if program == "static":
        source = sandbox.write(sandbox.project / "client.c", STATIC)
        subprocess.run(["musl-gcc", "-static", "-o", sandbox.project / "client", source], check=True)
        commands["static"] = ["./client", "web.test", str(plain.port)]
    done = sandbox.run(commands[program], policy=allow(sandbox, plain.port), env=test_hosts(), timeout=120)
    assert done.code == 0 and "hello from /" in done.out, done
    assert plain.requests[0][0].startswith("web.test")
    assert done.report["network"]["connections"] >= 1 and done.report["usage"]["net_in"] > 0, done


@pytest.mark.parametrize("client", ["curl", "wget", "python3", "node", "git"])
def test_a_client_speaks_tls_to_a_listed_host(sandbox, certificates, client):
    if not shutil.which(client):
        pytest.skip(f"{client} is not installed")
    directory = None
    if client == "git":
        directory = sandbox.make_directory(sandbox.home / "served")
        for words in (["init", "-q", "r"], ["-C", "r", "-c", "user.name=T", "-c", "user.email=t@example.org", "commit",
                "-q", "--allow-empty", "-m", "one"], ["-C", "r", "update-server-info"]):
            sandbox.run_outside(["git", *words], cwd=directory, check=True)
    server = Web(certificates.context(), directory=directory)
    ca, url = give_ca(sandbox, certificates), f"https://web.test:{server.port}/page"
    commands = {
        "curl": ["curl", "-sS", "-m", "20", "--cacert", ca, url],
        "wget": ["wget", "-qO-", "-T", "20", f"--ca-certificate={ca}", url],
        "python3": ["/usr/bin/python3", "-c", PYTHON, url, str(ca)],
        "node": ["env", f"NODE_EXTRA_CA_CERTS={ca}", "node", "-e", NODE, url],
        "git": ["bash", "-c", f"git -c http.sslCAInfo={ca} clone -q https://web.test:{server.port}/r/.git cloned && "
                "git -C cloned log --format=%s"],
    }
    done = sandbox.run([str(word) for word in commands[client]], policy=allow(sandbox, server.port), env=test_hosts(),
                       timeout=60)
    assert done.code == 0 and server.requests, done
    assert ("one" if client == "git" else "hello from /page") in done.out, done
    server.close()


@pytest.mark.needs("nginx")
def test_nginx_with_http2_and_large_bodies(sandbox, certificates):
    root = sandbox.make_directory(sandbox.base / "nginx")
    data = os.urandom(8 << 20)
    sandbox.write(root / "www" / "data", data)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    user = f"user {sandbox.identity.name};" if os.geteuid() == 0 and sandbox.identity.is_root else ""
    sandbox.write(root / "nginx.conf", f"""{user}
daemon off; pid {root}/pid; error_log {root}/error.log; events {{}}
http {{ access_log off; client_body_temp_path {root}/b; proxy_temp_path {root}/p; fastcgi_temp_path {root}/f;
    uwsgi_temp_path {root}/u; scgi_temp_path {root}/s; client_max_body_size 64m;
    server {{ listen 127.0.0.1:{port} ssl http2; server_name web.test; root {root}/www;
        ssl_certificate {certificates.chain}; ssl_certificate_key {certificates.key}; }} }}
""")
    nginx = subprocess.Popen(["/usr/sbin/nginx", "-c", root / "nginx.conf"], **sandbox.popen_keywords())
    try:
        wait_until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)), what="nginx")
        ca = give_ca(sandbox, certificates)
        script = (f"for i in 1 2 3; do curl -sS -m 30 --http2 --cacert {ca} -w '%{{stderr}}%{{http_version}}\\n' "
                  f"https://web.test:{port}/data | sha256sum; done")
        done = sandbox.run(script, policy=allow(sandbox, port), env=test_hosts())
    finally:
        nginx.terminate()
        nginx.wait()
    assert done.code == 0 and done.out.count(hashlib.sha256(data).hexdigest()) == 3, done
    assert "2\n" in done.err and done.report["usage"]["net_in"] > 3 * len(data), done


def test_a_server_that_speaks_first(sandbox):
    server = Listener(lambda connection: (connection.sendall(b"220 ready\r\n"), connection.recv(100))[1])
    script = ("import socket\ns = socket.create_connection(('web.test', %d)); print(s.recv(100)); s.sendall(b'QUIT')"
              % server.port)
    done = sandbox.run(["/usr/bin/python3", "-c", script], policy=allow(sandbox, server.port), env=test_hosts())
    assert "220 ready" in done.out, done
    wait_until(lambda: server.heard == [b"QUIT"])
    server.close()


def echo_all(connection):
    """Reads to the end, then answers: the client's half-close must come through."""
    hasher, size = hashlib.sha256(), 0
    while part := connection.recv(1 << 16):
        hasher.update(part)
        size += len(part)
    connection.sendall(hasher.hexdigest().encode())
    return size


def test_half_close_and_many_bytes(sandbox):
    server = Listener(echo_all)
    script = f"""
import hashlib, os, socket
s = socket.create_connection(('web.test', {server.port}))
data = os.urandom(1 << 20)
for _ in range(24):
    s.sendall(data)
s.shutdown(socket.SHUT_WR)
print(s.recv(100).decode() == hashlib.sha256(data * 24).hexdigest())
"""
    done = sandbox.run(["/usr/bin/python3", "-c", script], policy=allow(sandbox, server.port), env=test_hosts())
    assert done.out == "True\n" and server.heard == [24 << 20], done
    assert done.report["usage"]["net_out"] == 24 << 20 and done.report["usage"]["net_in"] == 64, done
    server.close()


def test_a_slow_reader_holds_back_the_sender(sandbox):
    """Bounded memory: what the client does not read stays with the server."""
    sent = []

    def flood(connection):
        try:
            while True:
                sent.append(connection.send(b"x" * 65536))
        except OSError:
            return sum(sent)

    server = Listener(flood)
    script = ("import socket, time\ns = socket.create_connection(('web.test', %d)); print('there', flush=True)\n"
              "time.sleep(4)" % server.port)
    child = sandbox.popen(["/usr/bin/python3", "-c", script], policy=allow(sandbox, server.port), env=test_hosts())
    assert child.stdout.readline() == b"there\n"
    time.sleep(2)
    pid, = gate_of(sandbox)
    resident = int(pathlib.Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])
    assert resident < 16 << 10, f"{resident} KiB"
    before = sum(sent)
    time.sleep(1)
    assert sum(sent) == before, "nobody reads, and the bytes still go somewhere"
    child.communicate(timeout=20)
    server.close()


def test_ipv6_outside(sandbox):
    server = Web(address="::1")
    done = sandbox.run(["curl", "-sS", "-m", "10", f"http://six.test:{server.port}/"],
                       policy=allow(sandbox, server.port, host="six.test"), env=test_hosts("::1", ["six.test"]))
    assert done.code == 0 and "hello" in done.out, done
    server.close()


def test_the_next_address_is_tried_when_one_does_not_answer(sandbox, plain):
    """RFC 8305: a dead first address costs a moment and no more."""
    env = {"ATOLL_TEST_HOSTS": "web.test=127.0.0.2,web.test=::1,web.test=127.0.0.1"}
    done = sandbox.run(["curl", "-sS", "-m", "10", f"http://web.test:{plain.port}/"],
                       policy=allow(sandbox, plain.port), env=env)
    assert done.code == 0 and "hello" in done.out, done


def test_cidr_rules_open_addresses(sandbox, plain):
    """By number, beyond loopback: an address of this machine that only the host's network has."""
    address = os.popen("hostname -I").read().split()
    if not address or ":" in address[0]:
        pytest.skip("this machine has no IPv4 address beyond loopback")
    server = Web(address=address[0])
    policy = sandbox.policy(policy_text([f"{{cidr: {address[0]}/32, ports: [{server.port}]}}"]))
    done = sandbox.run(["curl", "-sS", "-m", "10", f"http://{address[0]}:{server.port}/"], policy=policy)
    assert done.code == 0 and "hello" in done.out, done
    done = sandbox.run(["curl", "-sS", "-m", "10", f"http://{address[0]}:{plain.port}/"], policy=policy)
    assert done.code != 0 and done.report["denials"][0]["subject"] == f"{address[0]}:{plain.port}", done
    server.close()


@pytest.mark.parametrize("rule", ["*.bücher.test", "*.BU\u0308CHER.test", "*.xn--bcher-kva.test"])
def test_an_international_name_is_one_however_it_is_written(sandbox, plain, rule):
    """In the policy as in the program that looks it up: composed, decomposed, in capitals, or encoded already."""
    policy = sandbox.policy(policy_text([f'{{host: "{rule}", ports: [{plain.port}]}}', *LOOPBACK]))
    names = ("a.xn--bcher-kva.test", "xn--bcher-kva.test", "a.xn--bucher-6za.test", "a.bucher.test")
    script = f"""
import urllib.request
for name in ("a.bücher.test", "A.BÜCHER.test", "a.xn--bcher-kva.test", "bücher.test", "a.bucher.test", "a.buchér.test"):
    try: print(urllib.request.urlopen("http://%s:{plain.port}/" % name.encode("idna").decode(), timeout=9).status)
    except OSError as error: print("none" if "Name or service" in str(error) else error)
"""
    done = sandbox.run(["/usr/bin/python3", "-c", script], policy=policy, env=test_hosts("127.0.0.1", names))
    assert done.out.split() == ["200"] * 3 + ["none"] * 3, done
    shown = sandbox.run_atoll("policy", "-p", policy, "show").out
    assert "*.xn--bcher-kva.test" in shown and "ü" not in shown.split("#")[0], shown


# --- Through the host's own proxy. ---

def proxy_to(port, asked):
    """A CONNECT proxy that leads everywhere to one port; asked gets the head of each request."""
    def serve(connection):
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1)
        asked.append(head.decode())
        with socket.create_connection(("127.0.0.1", port)) as server:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            server.sendall(connection.recv(65536))
            while part := server.recv(65536):
                connection.sendall(part)
    return Listener(serve)


def test_the_gate_goes_out_through_the_hosts_proxy(sandbox, plain):
    asked = []
    proxy = proxy_to(plain.port, asked)
    env = {"HTTPS_PROXY": f"http://user:pass@127.0.0.1:{proxy.port}"}
    command = ["curl", "-sS", "-m", "10", "-H", "Connection: close", "http://web.test:8081/"]
    done = sandbox.run(command, policy=allow(sandbox, 8081), env={**env, **test_hosts()})
    assert done.code == 0 and "hello" in done.out, done
    assert asked[0].startswith("CONNECT web.test:8081 HTTP/1.1\r\n") and "Basic dXNlcjpwYXNz" in asked[0], asked
    assert "pass" not in sandbox.audit_log(done.session).read_text()
    # What this machine knows to lead to a private address is not asked of the proxy.
    policy = sandbox.policy(policy_text(["{host: web.test, ports: [8081]}"]))
    done = sandbox.run(command, policy=policy, env={**env, **test_hosts("10.1.2.3")})
    assert done.code != 0 and len(asked) == 1, (done, asked)
    # Nor is a host of NO_PROXY.
    done = sandbox.run(["curl", "-sS", "-m", "10", f"http://web.test:{plain.port}/"],
                       policy=allow(sandbox, plain.port), env={**env, **test_hosts(), "NO_PROXY": "x,.test"})
    assert done.code == 0 and len(asked) == 1, (done, asked)
    proxy.close()


def test_what_is_denied_does_not_go_through_the_hosts_proxy(sandbox, plain):
    asked = []
    proxy = proxy_to(plain.port, asked)
    place = f"http://127.0.0.1:{proxy.port}"
    env = {**test_hosts(), "HTTPS_PROXY": place, "HTTP_PROXY": place}
    get = "curl -sS -m 10 http://web.test:8081/"
    done = sandbox.run(["sh", "-c", get], policy=allow(sandbox, 8081), env=env)
    assert done.code == 0 and len(asked) == 1, (done, asked)
    # By name, by address, and to the proxy itself, which is outside.
    script = (f"env | grep -i proxy; {get}; curl -sS -m 10 http://203.0.113.1/; "
              f"curl -sS -m 10 -x {place} https://web.test:8081/")
    for denied in (policy_text([], "  default: deny\n"),
                   policy_text(["{host: web.test, ports: [8081]}", *LOOPBACK],
                               "  default: deny\n  deny: [{cidr: \"0.0.0.0/0\"}, {cidr: \"::/0\"}]\n")):
        done = sandbox.run(["sh", "-c", script], policy=sandbox.policy(denied), env=env)
        assert done.code != 0 and done.out == "" and len(asked) == 1 == len(plain.requests), (done, asked)
    proxy.close()


def test_a_half_close_goes_through_the_hosts_proxy(sandbox):
    server = Listener(echo_all)

    def serve(connection):
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1)
        with socket.create_connection(("127.0.0.1", server.port)) as onward:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while part := connection.recv(1 << 16):
                onward.sendall(part)
            onward.shutdown(socket.SHUT_WR)
            while part := onward.recv(1 << 16):
                connection.sendall(part)

    proxy = Listener(serve)
    script = """
import hashlib, os, socket
s = socket.create_connection(("web.test", 8081)); data = os.urandom(1 << 20)
s.sendall(data); s.shutdown(socket.SHUT_WR)
print(s.recv(100).decode() == hashlib.sha256(data).hexdigest())
"""
    done = sandbox.run(["/usr/bin/python3", "-c", script], policy=allow(sandbox, 8081),
                       env={**test_hosts(), "HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"})
    assert done.out == "True\n" and server.heard == [1 << 20], done
    proxy.close()
    server.close()


def test_a_proxy_that_cannot_be_used_is_said(sandbox, plain):
    done = sandbox.run(["curl", "-sS", "-m", "10", f"http://web.test:{plain.port}/"], policy=allow(sandbox, plain.port),
                       env={**test_hosts(), "https_proxy": "socks5://127.0.0.1:1"})
    assert done.code != 0 and "network gate failed" in done.err and not plain.requests, done
    assert "HTTPS_PROXY is not of the form http://" in done.report["network"]["failure"], done.report["network"]
    assert "HTTPS_PROXY" in done.err and "socks5" not in done.err, done


def test_what_the_hosts_proxy_does_wrong_is_said_of_it(sandbox, plain):
    """Else a person looks for the fault at the host, which nobody has asked."""
    def refuse(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

    refusing, silent = Listener(refuse), Listener(lambda connection: connection.recv(4096))
    gone = Listener()
    gone.close()
    rows = [(refusing, "the host's proxy refuses it"), (silent, "the host's proxy has hung up"),
            (gone, "the host's proxy cannot be reached")]
    for proxy, why in rows:
        done = sandbox.run(["curl", "-4", "-sS", "-m", "10", f"http://web.test:{plain.port}/"],
                           policy=allow(sandbox, plain.port),
                           env={**test_hosts(), "HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"})
        errors = [entry["detail"]["error"] for entry in records(sandbox, done) if entry["type"] == "net.close"]
        assert done.code != 0 and errors == [why] and not plain.requests, (done, errors)
    refusing.close()
    silent.close()


# --- What is told. ---

def test_records_and_report(sandbox, plain):
    script = (f"curl -sS -m 10 http://web.test:{plain.port}/ && curl -sS -m 10 http://web.test:1/; "
              f"curl -sS -m 10 http://pastebin.test/")
    done = sandbox.run(script, policy=allow(sandbox, plain.port), env=test_hosts())
    found = {(entry["type"], entry["subject"], entry.get("verdict")): entry for entry in records(sandbox, done)}
    assert ("net.dns", "web.test", "allow") in found and ("net.dns", "pastebin.test", "deny") in found, done
    opened = found["net.connect", "web.test", "allow"]
    closed = found["net.close", "web.test", None]["detail"]
    assert opened["detail"]["port"] == plain.port and opened["rule"] == "network.allow[0]" and opened["pid"] > 1
    assert closed["connection"] == opened["detail"]["connection"] and closed["address"] == "127.0.0.1"
    assert closed["in_bytes"] == done.report["usage"]["net_in"] > 0 and closed["error"] is None
    assert closed["out_bytes"] == done.report["usage"]["net_out"] > 0
    assert found["net.connect", "web.test", "deny"]["detail"]["port"] == 1
    denied = {(entry["kind"], entry["subject"]): entry for entry in done.report["denials"]}
    assert ("net.connect", "web.test:1") in denied and ("net.dns", "pastebin.test") in denied, denied
    assert "atoll ask" in denied["net.dns", "pastebin.test"]["hint"]
    assert sandbox.run_atoll("log", "verify", done.session).code == 0
    table = sandbox.run_atoll("log", "--net", done.session).out
    assert "net.close" in table and "exec.start" not in table and str(plain.port) in table, table


def test_a_record_comes_before_the_connection(sandbox):
    """The log fails closed: what cannot be written down does not go out."""
    server = Listener()
    policy = allow(sandbox, server.port)
    child = sandbox.popen(["bash", "-c", f"read x; exec 3<>/dev/tcp/web.test/{server.port}; echo hi >&3; sleep 1"],
                          policy=policy, env=test_hosts(), stdin=subprocess.PIPE)
    wait_until(lambda: sandbox.sessions())
    child.stdin.write(b"\n")
    child.stdin.flush()
    wait_until(lambda: server.heard, what="the connection")
    entries = [json.loads(line) for line in sandbox.audit_log(sandbox.sessions()[0]).read_text().splitlines()]
    assert any(entry["type"] == "net.connect" and entry["subject"] == "web.test" for entry in entries) or \
        wait_until(lambda: "net.connect" in sandbox.audit_log(sandbox.sessions()[0]).read_text())
    child.communicate(timeout=20)
    server.close()


def test_nothing_is_started_for_a_run_that_stays_inside(sandbox, plain):
    child = sandbox.popen(["bash", "-c", "echo there; read x"], policy=allow(sandbox, plain.port),
                          stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"there\n"
    assert not gate_of(sandbox)
    child.stdin.close()
    assert child.wait(timeout=20) == 1


def test_exec_in_a_detached_session_uses_the_same_gate(sandbox, plain):
    done = sandbox.run_outside(sandbox.command_line([], policy=allow(sandbox, plain.port), options=["-d"]),
                               env=test_hosts())
    assert done.code == 0, done
    session = done.out.strip()
    for _ in range(2):
        inner = sandbox.run_atoll("exec", session, "--", "curl", "-sS", "-m", "10", f"http://web.test:{plain.port}/")
        assert inner.code == 0 and "hello" in inner.out, inner
    assert len(gate_of(sandbox)) == 1
    assert sandbox.run_atoll("stop", session).code == 0


# --- Limits. ---

def serve_bytes(size):
    def serve(connection):
        connection.recv(100)
        try:
            connection.sendall(b"x" * size)
        except OSError:
            return "cut"
        return "whole"
    return serve


READ = """
import socket, time
s = socket.create_connection(('web.test', %d)); s.sendall(b'go')
start, size = time.monotonic(), 0
try:
    while part := s.recv(1 << 16):
        size += len(part)
except OSError as error:
    print(type(error).__name__)
print(size, time.monotonic() - start)
"""


def test_a_rate_is_kept(sandbox):
    server = Listener(serve_bytes(3 << 20))
    policy = allow(sandbox, server.port, more="  limits: {rate: 1MiB/s}\n")
    done = sandbox.run(["/usr/bin/python3", "-c", READ % server.port], policy=policy, env=test_hosts())
    size, seconds = done.out.split()
    assert int(size) == 3 << 20 and 2.2 < float(seconds) < 8, done
    fast = sandbox.run(["/usr/bin/python3", "-c", READ % server.port], policy=allow(sandbox, server.port),
                       env=test_hosts())
    assert float(fast.out.split()[1]) < 1.5, fast
    server.close()


def test_a_total_ends_all_connections(sandbox):
    """N20: an allowed host as a drop box is bounded by bytes."""
    server = Listener(serve_bytes(64 << 20))
    policy = allow(sandbox, server.port, more="  limits: {total: 1MiB}\n")
    done = sandbox.run(["/usr/bin/python3", "-c", READ % server.port + READ % server.port], policy=policy,
                       env=test_hosts())
    assert "ConnectionResetError" in done.out, done
    # The server hears of it when its own thread gets to it.
    assert wait_until(lambda: server.heard, what="the server's end")[0] == "cut", done
    used = done.report["usage"]["net_in"] + done.report["usage"]["net_out"]
    assert used <= 1 << 20 and "network.limits.total" in done.report["limits_hit"], done
    assert any(entry["rule"] == "network.limits.total" for entry in done.report["denials"]), done
    server.close()


def test_many_connections_at_once(sandbox):
    server = Listener(lambda connection: (connection.recv(10), connection.sendall(b"answer"))[0])
    script = f"""
import socket
made = [socket.create_connection(('web.test', {server.port})) for _ in range(300)]
for s in made: s.sendall(b'x')
print(sum(s.recv(10) == b'answer' for s in made))
"""
    done = sandbox.run(["/usr/bin/python3", "-c", script], policy=allow(sandbox, server.port), env=test_hosts())
    assert done.out == "300\n", done
    server.close()


# --- The gate itself. ---

def with_gate(sandbox, server, rest):
    """A run that has used the network once, says so, and then does the rest."""
    script = f"curl -sS -m 10 -o /dev/null http://web.test:{server.port}/ && echo used; read x; {rest}"
    report = sandbox.report_path()
    child = sandbox.popen(["bash", "-c", script], policy=allow(sandbox, server.port), env=test_hosts(),
                          stdin=subprocess.PIPE, report=report)
    assert child.stdout.readline() == b"used\n"
    return child, report


def test_the_gate_confines_itself(sandbox, plain):
    child, _ = with_gate(sandbox, plain, "true")
    pid, = gate_of(sandbox)
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    assert status["Seccomp"].strip() == "2" and status["NoNewPrivs"].strip() == "1", status
    uids = {int(uid) for uid in status["Uid"].split()}
    assert 0 not in uids and (sandbox.identity.is_root or uids == {sandbox.identity.uid}), status
    assert int(status["CapEff"], 16) == 0 and int(status["CapPrm"], 16) == 0, status
    if os.geteuid() == 0:
        open_files = {os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{pid}/fd")}
        assert open_files <= {"socket", "pipe", "anon_inode", "/dev/null"}, open_files
    child.communicate(b"\n", timeout=20)
    assert not gate_of(sandbox)


def test_the_death_of_the_gate_ends_the_network_and_nothing_else(sandbox, plain):
    child, report = with_gate(sandbox, plain,
                              f"curl -sS -m 5 http://web.test:{plain.port}/ || echo no network; echo alive")
    pid, = gate_of(sandbox)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not gate_of(sandbox))
    out, err = child.communicate(b"\n", timeout=30)
    assert child.returncode == 0 and b"no network" in out and b"alive" in out, (out, err)
    assert b"network gate failed" in err, err
    network = json.loads(report.read_text())["network"]
    assert network["gate"] == "failed" and "unexpectedly" in network["failure"], network
    assert len(plain.requests) == 1


def test_the_gate_ends_with_a_box_that_is_killed(sandbox, plain):
    child, _ = with_gate(sandbox, plain, "true")
    assert len(gate_of(sandbox)) == 1
    os.kill(child.pid, signal.SIGKILL)
    child.wait(timeout=10)
    # A dead one has no program; when PID 1 takes it off the list is not up to us.
    wait_until(lambda: not gate_of(sandbox), seconds=2)


@pytest.mark.only("root")
def test_an_idle_gate_is_small(sandbox, plain):
    child, _ = with_gate(sandbox, plain, "true")
    pid, = gate_of(sandbox)
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    proportional = int(rollup.split("Pss:")[1].split()[0])
    child.communicate(b"\n", timeout=20)
    assert proportional < 4 << 10, f"{proportional} KiB"


def test_the_last_of_ten_thousand_rules_holds_too(sandbox, plain):
    rules = [f"n{i}.example.org" for i in range(9999)]
    policy = sandbox.policy(policy_text([*rules, "web.test"]), "rules.yaml")
    script = """
import socket
print(len(socket.getaddrinfo("web.test", 80, socket.AF_INET, socket.SOCK_STREAM)))
print(len(socket.getaddrinfo("n9998.example.org", 80, socket.AF_INET, socket.SOCK_STREAM)))
try: socket.getaddrinfo("n9999.example.org", 80, socket.AF_INET, socket.SOCK_STREAM)
except OSError as error: print(error.errno == socket.EAI_NONAME)
"""
    done = sandbox.run(["/usr/bin/python3", "-c", script], policy=policy, env=test_hosts())
    assert done.out.split() == ["1", "1", "True"], done


def test_a_burst_of_connections_beside_busy_ones(sandbox):
    """The box and the gate answer each other without waiting: neither takes the other for dead."""
    server = Listener(serve_bytes(4 << 20))
    script = f"""
import socket, threading
done = []
def one():
    try:
        s = socket.create_connection(("web.test", {server.port})); s.sendall(b"go"); size = 0
        while part := s.recv(1 << 16): size += len(part)
        done.append(size)
    except OSError as e: done.append(e)
threads = [threading.Thread(target=one) for _ in range(400)]
for t in threads: t.start()
for t in threads: t.join()
print(done.count(4 << 20), [d for d in done if d != 4 << 20][:3])
"""
    done = sandbox.run(["/usr/bin/python3", "-c", script], policy=allow(sandbox, server.port), env=test_hosts())
    assert done.out.startswith("400 "), done
    server.close()


LAG = """
import socket, sys
address = socket.gethostbyname("web.test"), {port}
def trip(s):
    try: s.sendall(b"go"); return s.recv(4) == b"xxxx"
    except OSError: return False
print(trip(socket.create_connection(address)), flush=True); sys.stdin.readline()
made = [socket.create_connection(address) for _ in range(400)]
print(sum(map(trip, made)), flush=True)
"""


def test_a_gate_that_lags_loses_no_connection(sandbox):
    """One that does not run for a while, as on a busy machine: what the box has to say to it is more than its socket
    takes, so that whoever connects waits."""
    server = Listener(serve_bytes(4))
    child = sandbox.popen(["/usr/bin/python3", "-c", LAG.format(port=server.port)],
                          policy=allow(sandbox, server.port), env=test_hosts(), stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"True\n"
    gate, = gate_of(sandbox)
    os.kill(gate, signal.SIGSTOP)
    child.stdin.write(b"\n")
    child.stdin.flush()
    time.sleep(1)
    os.kill(gate, signal.SIGCONT)
    out, err = child.communicate(timeout=60)
    assert out == b"400\n", (out, err)
    server.close()


def test_a_gate_that_is_missing_is_said_before_anything_runs(sandbox, plain):
    directory = sandbox.make_directory(sandbox.base / "bin")
    shutil.copytree(sandbox.programs.directory, directory, dirs_exist_ok=True)
    os.unlink(directory / "atoll-egress")
    done = sandbox.run_outside([directory / "atoll", "run", "-p", allow(sandbox, plain.port), "--", "touch", "made"])
    assert done.code == 125 and "network gate" in done.err and not (sandbox.project / "made").exists(), done


def test_the_hook_of_the_tests_is_never_silent(sandbox, plain):
    done = sandbox.run(["true"], policy=allow(sandbox, plain.port), env=test_hosts(), options=["-q"])
    assert "ATOLL_TEST_HOSTS" in done.err, done


def test_a_host_that_is_not_there_is_named_at_the_end(sandbox, plain):
    """Inside, the connection stands before the host is looked for, and then breaks: as if atoll were at fault."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        policy = allow(sandbox, port, plain.port)
        done = sandbox.run(f"curl -sS http://web.test:{port}/; true", policy=policy, env=test_hosts())
    said = f"connected, but no server answered: web.test:{port}: ECONNREFUSED; more: atoll log --net {done.session}"
    assert said in done.err, done
    there = sandbox.run(f"curl -sS http://web.test:{plain.port}/", policy=policy, env=test_hosts())
    assert there.code == 0 and "no server answered" not in there.err, there


def test_a_library_without_its_fixes_is_refused(sandbox):
    """libevent as it was before September 2026: the gate does not read a byte with it, and says what to upgrade."""
    policy = sandbox.policy(policy_text(["{host: web.test, http: [{methods: [GET]}]}", *LOOPBACK]))
    line = sandbox.command_line(["true"], policy=policy)
    others = sandbox.base / "programs"
    shutil.copytree(sandbox.programs.atoll.parent, others)
    gate, name = others / "atoll-egress", b"evhttp_check_transfer_encoding_"
    assert sandbox.run_outside([others / "atoll", *line[1:]]).code == 0
    # It looks for what came with them under another name, which is as if it were not there.
    gate.write_bytes(gate.read_bytes().replace(name, name.upper()))
    done = sandbox.run_outside([others / "atoll", *line[1:]])
    assert done.code == 125 and "lacks its security fixes of September 2026" in done.err, done
    assert "upgrade libevent-core" in done.err, done


# --- The resolver outside. ---

@pytest.mark.only("root")
@pytest.mark.needs("dnsmasq", "unshare", "ip")
def test_names_are_resolved_by_the_hosts_resolver_when_they_are_used(sandbox):
    """N6 with a resolver that writes down what it is asked: only what is allowed, and only at the connection."""
    log, resolv = sandbox.base / "queries", sandbox.write(sandbox.base / "resolv", "nameserver 127.0.0.1\n")
    policy = sandbox.policy(policy_text(["{host: named.example, ports: [8088]}", *LOOPBACK]))
    inner = ("curl -sS -m 3 http://secret.evil.example/; curl -sS -m 3 http://x.named.example/; "
             "getent hosts named.example; cat /proc/uptime >/dev/null; echo looked; "
             "curl -sS -m 10 http://named.example:8088/")
    script = f"""
ip link set lo up
mount --bind {resolv} $(readlink -f /etc/resolv.conf)
dnsmasq -k --no-resolv --no-hosts --no-daemon --log-queries --log-facility={log} --listen-address=127.0.0.1 \
    --bind-interfaces --address=/named.example/127.0.0.1 --user=root &
dnsmasq=$!
cd {sandbox.project}; python3 -m http.server --bind 127.0.0.1 8088 >/dev/null 2>&1 &
web=$!
for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:8088/ && break; sleep 0.05; done
{' '.join(map(str, sandbox.command_line(['bash', '-c', '"$INNER"'], policy=policy)))}
kill $dnsmasq $web
"""
    done = sandbox.run_outside(["unshare", "-n", "-m", "bash", "-c", script],
                               env={"INNER": inner, "ATOLL_TEST_HOSTS": None})
    asked = log.read_text().lower()   # the resolver plays with the case of names, against forged answers
    assert "looked" in done.out and "Directory listing" in done.out, (done, asked)
    assert "query[a] named.example" in asked, asked
    assert "evil" not in asked and "x.named.example" not in asked, asked
    assert asked.count("query[a] named.example") == 1, "looking a name up inside asks nobody outside"


@pytest.mark.only("root")
@pytest.mark.needs("unshare", "ip", "curl")
def test_a_name_of_the_hosts_own_file_is_reached_by_its_rule(sandbox):
    """/etc/hosts is a resolver too: inside it would turn a name into an address that no rule lists."""
    hosts = sandbox.write(sandbox.base / "hosts", "127.0.0.1 localhost filed.example secret.internal\n")
    policy = sandbox.policy(policy_text(["{host: filed.example, ports: [8088]}", *LOOPBACK]))
    inner = ("curl -sS -m 10 http://filed.example:8088/; getent hosts secret.internal || echo unknown; "
             'getent hosts localhost "$(uname -n)"')
    script = f"""
ip link set lo up
mount --bind {hosts} /etc/hosts
cd {sandbox.project}; python3 -m http.server --bind 127.0.0.1 8088 >/dev/null 2>&1 &
web=$!
for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:8088/ && break; sleep 0.05; done
getent hosts secret.internal
{' '.join(map(str, sandbox.command_line(['bash', '-c', '"$INNER"'], policy=policy)))}
kill $web
"""
    done = sandbox.run_outside(["unshare", "-n", "-m", "bash", "-c", script],
                               env={"INNER": inner, "ATOLL_TEST_HOSTS": None})
    assert "Directory listing" in done.out and "unknown" in done.out, done
    assert done.out.count("secret.internal") == 1, "outside alone"
    assert "127.0.1.1" in done.out, "its own name, which Java and sudo look up"


@pytest.mark.only("root")
@pytest.mark.needs("unshare", "ip", "curl")
def test_a_host_without_a_file_of_hosts_has_a_gate(sandbox):
    """Small systems and containers have no /etc/hosts: inside is one, which leads nobody past the gate."""
    etc = sandbox.base / "etc"
    policy = sandbox.policy(policy_text(["{host: web.test, ports: [8088]}", *LOOPBACK]))
    script = f"""
ip link set lo up
cp -a /etc {etc}; rm {etc}/hosts; mount --bind {etc} /etc
cd {sandbox.project}; python3 -m http.server --bind 127.0.0.1 8088 >/dev/null 2>&1 &
web=$!
for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:8088/ && break; sleep 0.05; done
{' '.join(map(str, sandbox.command_line(['bash', '-c', '"$INNER"'], policy=policy)))}
kill $web
"""
    done = sandbox.run_outside(["unshare", "-n", "-m", "bash", "-c", script],
                               env={"INNER": "grep -v ^127 /etc/hosts; curl -sS -m 10 http://web.test:8088/",
                                    "ATOLL_TEST_HOSTS": "web.test=127.0.0.1"})
    listed, page = done.out.split("<!DOCTYPE", 1)
    assert "Directory listing" in page and all("localhost" in line for line in listed.splitlines()), done
