# SPDX-License-Identifier: Apache-2.0
"""network.host_ports and `atoll run --host-port`: a server of this machine at localhost inside, and nothing more."""
import json
import socket
import subprocess

import pytest

from atoll import wait_until
from gate import Listener, Web, policy_text, test_hosts

PYTHON = "/usr/bin/python3"
CURL = "curl -sS -m 10 -o /dev/null -w '%{http_code}\\n'"


@pytest.fixture
def web():
    server = Web()
    yield server
    server.close()


@pytest.fixture
def other():
    server = Web()
    yield server
    server.close()


def ports_policy(ports, more="", extends="medium"):
    return f"atoll: 1\nextends: {extends}\nnetwork:\n  host_ports: [{ports}]\n{more}"


def codes(done):
    return done.out.split()


def records(sandbox, report, kind="net.connect"):
    lines = sandbox.audit_log(report["session"]).read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["type"] == kind]


def denials(report):
    return [(entry["kind"], entry["rule"]) for entry in report["denials"]]


def curls(*urls):
    return ["bash", "-c", "; ".join(f"{CURL} {url} || echo refused" for url in urls)]


@pytest.mark.needs("curl")
def test_a_server_is_reached_by_each_name_of_localhost(sandbox, web):
    """That port alone, over both families, by the name that was given, and it is in the log, with who it was."""
    urls = [f"http://{host}:{web.port}/x" for host in ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "model.local")]
    done = sandbox.run(curls(*urls), options=["--host-port", f"{web.port}=model.local"])
    assert codes(done) == ["200"] * 5 and [path for _, path in web.requests] == ["/x"] * 5, done
    report = done.report
    entries = records(sandbox, report)
    assert {(entry["subject"], entry["detail"]["port"], entry["rule"], entry["verdict"]) for entry in entries
            if entry["verdict"] != "-"} >= {("localhost", web.port, "run.host-port", "allow")}, entries
    assert all(entry["pid"] for entry in entries), entries
    assert report["usage"]["net_in"] > 0 and report["network"]["connections"] == 5, report


@pytest.mark.needs("curl")
def test_a_server_on_ipv6_alone_is_reached(sandbox):
    server = Web(address="::1")
    done = sandbox.run(curls(f"http://localhost:{server.port}/six"), options=["--host-port", str(server.port)])
    server.close()
    assert codes(done) == ["200"] and server.requests, done


@pytest.mark.needs("curl")
def test_nothing_else_of_the_machine_is_reached(sandbox, web, other):
    """Neither another port, nor that port by another address, nor by a name that leads to loopback outside."""
    sandbox_urls = [f"http://localhost:{other.port}/", f"http://127.0.0.2:{web.port}/",
                    f"http://web.test:{web.port}/", f"http://other.test:{web.port}/"]
    policy = sandbox.policy(ports_policy(web.port, f"  allow: [{{host: web.test, ports: [{web.port}]}}]\n"))
    done = sandbox.run(curls(*sandbox_urls, f"http://localhost:{web.port}/in"), policy=policy, env=test_hosts())
    assert codes(done)[-1] == "200" and "200" not in codes(done)[:-1], done
    assert [path for _, path in web.requests] == ["/in"] and not other.requests, (web.requests, other.requests)
    assert ("net.connect", "builtin.private") in denials(done.report), done.report


@pytest.mark.needs("curl")
def test_a_redirect_leads_nowhere_else(sandbox, web, other):
    """The server of the port sends its client to another one of the machine; where that port is listed it arrives."""
    def answer(connection):
        connection.recv(4096)
        connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{other.port}/stolen\r\n"
                           "Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
    first = Listener(answer)
    command = ["bash", "-c", f"{CURL} -L http://localhost:{first.port}/ || echo refused"]
    done = sandbox.run(command, options=["--host-port", str(first.port)])
    assert not other.requests and "refused" in done.out, done
    done = sandbox.run(command, options=["--host-port", str(first.port), "--host-port", str(other.port)])
    assert codes(done) == ["200"] and other.requests, done
    first.close()


def test_the_port_cannot_be_taken_inside(sandbox, web):
    """By no address and no option of the socket: what answers at localhost there is the machine's server."""
    script = f"""
import socket
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::1"),
                        (socket.AF_INET6, "::"), (socket.AF_INET, "127.0.0.9")):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try: s.bind((address, {web.port})); s.listen(1); print("bound", address)
    except OSError as error: print(error.errno, address)
"""
    done = sandbox.run([PYTHON, "-c", script], options=["--host-port", str(web.port)])
    assert done.out.splitlines() == ["98 127.0.0.1", "98 0.0.0.0", "98 ::1", "98 ::", "bound 127.0.0.9"], done
    denied = [entry for entry in done.report["denials"] if entry["kind"] == "net.listen"]
    assert denied and denied[0]["hint"] == "listen on another port", done.report
    done = sandbox.run([PYTHON, "-c", script])
    assert done.out.count("bound") == 5, done


@pytest.mark.needs("curl")
def test_what_is_around_connect_does_not_get_there(sandbox, web):
    """TCP fast open connects by sendto(2), which nobody leads anywhere: the port that is held inside refuses it."""
    script = f"""
import socket
s = socket.socket()
try:
    s.sendto(b"GET /around HTTP/1.0\\r\\n\\r\\n", 0x20000000, ("127.0.0.1", {web.port}))
    s.settimeout(5); print(s.recv(9))
except OSError as error: print("refused", error.errno)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(("127.0.0.1", {web.port}))
try: u.send(b"x"); u.settimeout(1); print(u.recv(9))
except OSError as error: print("refused")
"""
    done = sandbox.run([PYTHON, "-c", script], options=["--host-port", str(web.port)])
    assert done.out.count("refused") == 2 and not web.requests, done


@pytest.mark.needs("curl")
def test_no_port_of_atoll_is_reached(sandbox):
    """A published port is a sandbox's own: neither at the start nor once the sandbox is there, and by no way around."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = ["bash", "-c", f"echo ready; read line; {CURL} http://localhost:{port}/; {CURL} http://web.test:{port}/; "
               "grep -o builtin.own_port /run/atoll/denials.jsonl"]
    policy = sandbox.policy(ports_policy(port, f"  allow: [{{host: web.test, ports: [{port}]}}, "
                                         "{cidr: 127.0.0.0/8}]\n"))
    # Positive control: what is not atoll's is reached.
    server = Listener(lambda connection: (connection.recv(4096), connection.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")), port=port)
    done = sandbox.run(command, policy=policy, stdin=b"\n", env=test_hosts())
    assert codes(done) == ["ready", "200", "200"], done
    server.socket.shutdown(socket.SHUT_RDWR)
    server.close()
    early = sandbox.popen(command, policy=policy, stdin=subprocess.PIPE, env=test_hosts())
    assert early.stdout.readline() == b"ready\n"
    serve = """
import socket
s = socket.socket(); s.bind(('127.0.0.1', 8080)); s.listen(8); print('serving', flush=True)
while True:
    c, _ = s.accept()
    try: c.recv(99); c.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\n')
    except OSError: pass
    c.close()
"""
    publisher = sandbox.popen([PYTHON, "-c", serve], options=["--publish", f"{port}:8080"])
    assert publisher.stdout.readline() == b"serving\n"
    subprocess.run(["curl", "-sS", "-m", "5", f"http://127.0.0.1:{port}/"], check=True, capture_output=True)
    out, err = early.communicate(b"\n", timeout=30)
    assert b"200" not in out and out.count(b"builtin.own_port") == 2, (out, err)
    late = sandbox.run(["true"], options=["--host-port", str(port)])
    assert late.code == 125 and "atoll itself listens" in late.err and "atoll ps" in late.err, late
    publisher.terminate()
    publisher.wait(timeout=20)


def test_a_port_is_not_both_published_and_led_outside(sandbox):
    done = sandbox.run(["true"], options=["--publish", "0:8123", "--host-port", "8123"])
    assert done.code == 125 and "port 8123 of this machine cannot be reached" in done.err, done


def test_wrong_ports_are_refused_with_a_way_out(sandbox):
    for text in ("x", "0", "70000", "53", "80=*.x", "80=localhost", "1.2.3.4:80"):
        done = sandbox.run(["true"], options=["--host-port", text])
        assert done.code == 125 and f"--host-port needs a port of this machine, not {text}" in done.err, done
    done = sandbox.run(["true"], options=["--host-port", "53"])
    assert "names" in done.err, done
    path = sandbox.policy(ports_policy("53"))
    done = sandbox.run_atoll("policy", "check", "-p", path)
    assert done.code == 1 and "past the rules" in done.err + done.out, done


@pytest.mark.needs("curl")
def test_a_connection_ends_with_the_rule(sandbox, web):
    """`atoll policy set` closes the port, for connections that are open too, and cannot open another."""
    held = Listener(lambda connection: (connection.sendall(b"open"), connection.recv(1))[1])
    policy = sandbox.policy(ports_policy(f"{held.port}, {web.port}", "  allow: []\n"))
    closed = sandbox.policy(ports_policy(str(web.port), "  allow: []\n"), name="closed.yaml")
    wider = sandbox.policy(ports_policy(f"{held.port}, {web.port}, 9", "  allow: []\n"), name="wider.yaml")
    done = sandbox.run_outside(sandbox.command_line([], policy=policy, options=["-d"]))
    session = done.out.strip()
    script = f"""
import socket
s = socket.create_connection(("localhost", {held.port}), 10); print(s.recv(9).decode(), flush=True)
s.settimeout(20)
try: print("end" if not s.recv(1) else "more", flush=True)
except OSError: print("cut", flush=True)
for port in ({held.port}, {web.port}):
    try:
        s = socket.create_connection(("localhost", port), 5)
        s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); s.settimeout(5); print(s.recv(12).decode() or "nothing", flush=True)
    except OSError as error: print("refused", flush=True)
"""
    child = subprocess.Popen([sandbox.programs.program("atoll"), "exec", session, "--", PYTHON, "-c", script],
                             stdout=subprocess.PIPE, **sandbox.popen_keywords())
    assert child.stdout.readline() == b"open\n"
    done = sandbox.run_atoll("policy", "set", session, wider)
    assert done.code == 125 and "network.host_ports" in done.err, done
    done = sandbox.run_atoll("policy", "set", session, closed, "--json")
    assert done.code == 0 and json.loads(done.out)["ended"] == 1, done
    out, _ = child.communicate(timeout=40)
    assert out.split() == [b"cut", b"refused", b"HTTP/1.1", b"200"], out
    assert sandbox.run_atoll("stop", session).code == 0
    held.close()


@pytest.mark.needs("curl")
def test_rules_about_requests_hold_there_too(sandbox, web):
    """By each name that the port has; what is not listed is refused before the server hears of it."""
    policy = sandbox.policy(ports_policy(
        f"{web.port}=model", f"  allow: [{{host: localhost, ports: [{web.port}], http: [{{methods: [GET], paths: "
        "[/api/*]}]}]\n"))
    urls = [f"http://{host}:{web.port}/{path}" for host in ("localhost", "127.0.0.1", "'[::1]'", "model")
            for path in ("api/tags", "admin")]
    done = sandbox.run(curls(*urls), policy=policy)
    assert codes(done) == ["200", "403"] * 4, done
    assert {path for _, path in web.requests} == {"/api/tags"}, web.requests


def test_limits_count_what_goes_there(sandbox):
    server = Listener(lambda connection: (connection.recv(10), connection.sendall(b"x" * 300000))[0])
    policy = sandbox.policy(ports_policy(str(server.port), "  limits: {in: 100KiB}\n"))
    script = f"import socket\ns = socket.create_connection(('localhost', {server.port})); s.sendall(b'a')\nn = 0\n" \
             "try:\n while part := s.recv(1 << 16): n += len(part)\nexcept OSError: pass\nprint(n)"
    done = sandbox.run([PYTHON, "-c", script], policy=policy)
    assert 0 < int(done.out) <= 100 << 10 and done.report["limits_hit"], done
    server.close()


def test_only_the_person_opens_a_port(sandbox, web):
    """A project's own file cannot, at any level; a rule that denies localhost wins over the list."""
    sandbox.write(sandbox.project / ".atoll.yaml", f"atoll: 1\nnetwork: {{host_ports: [{web.port}]}}\n")
    done = sandbox.run(["true"])
    assert done.code == 125 and "a port of this machine would be reached" in done.err, done
    policy = sandbox.policy(ports_policy(str(web.port)))
    assert sandbox.run(["true"], policy=policy).code == 0, "what the policy has anyway may be said again"
    (sandbox.project / ".atoll.yaml").write_text(
        f"atoll: 1\nnetwork: {{deny: [{{host: localhost, ports: [{web.port}]}}]}}\n")
    script = f"import socket; s = socket.create_connection(('localhost', {web.port}), 5); print(s.recv(1))"
    assert sandbox.run([PYTHON, "-c", script], policy=policy).code == 1 and not web.requests


@pytest.mark.parametrize("level", ["none", "low", "medium", "high"])
@pytest.mark.needs("curl")
def test_each_level_may_have_one(sandbox, web, level):
    """What limits.md says of it there, explain says before."""
    text = ports_policy(f"{web.port}=model", extends=level)
    policy = sandbox.policy(text + "degrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n")
    done = sandbox.run(["bash", "-c", f"{CURL} http://model:{web.port}/; cat /run/atoll/limits.md"], policy=policy)
    assert done.out.startswith("200\n"), done
    assert f"`localhost:{web.port}` (also `model:{web.port}`) leads to a server of the machine outside" in done.out
    done = sandbox.run_atoll("policy", "explain", "-p", policy, "net.connect", f"localhost:{web.port}")
    assert done.code == 0 and "host_ports[0]" in done.out, done
    done = sandbox.run_atoll("policy", "explain", "-t", level, "net.connect", f"localhost:{web.port}")
    assert done.code == 0 and "a loopback of its own" in done.out and "network.host_ports" in done.out, done


def test_what_people_write_instead_is_explained(sandbox):
    policy = sandbox.policy(policy_text(["{host: localhost, ports: [11434]}", "{cidr: 127.0.0.1/32}"]))
    done = sandbox.run_atoll("policy", "check", "-p", policy)
    assert done.code == 0 and (done.out + done.err).count("host_ports: [PORT]") == 2, done
    rule = "{host: localhost, ports: [11434], http: [{paths: [/x]}]}"
    fine = sandbox.policy(ports_policy("11434", f"  allow: [{rule}]\n"))
    done = sandbox.run_atoll("policy", "check", "-p", fine)
    assert done.code == 0 and "warning" not in done.out + done.err, done


@pytest.mark.needs("curl")
def test_diff_show_and_learn_know_it(sandbox, web):
    policy = sandbox.policy(ports_policy(f"{web.port}=model", "  allow: []\n"))
    done = sandbox.run_atoll("policy", "diff", "medium", policy)
    assert f"localhost:{web.port} of this machine" in done.out, done
    done = sandbox.run_atoll("policy", "show", "-p", policy)
    assert f"- {web.port}=model" in done.out, done
    done = sandbox.run_atoll("policy", "learn", "-p", policy, "--", *curls(f"http://localhost:{web.port}/"))
    assert f"- {web.port}=model" in done.out and "host: localhost" not in done.out, done


# A user and a network namespace of its own, with its loopback up; then each port that is named.
NESTED = """
import ctypes, fcntl, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x10000000 | 0x40000000):
    sys.exit("unshare: " + os.strerror(ctypes.get_errno()))
probe = socket.socket()
fcntl.ioctl(probe, 0x8914, struct.pack("16sh14x", b"lo", 1))
for port in sys.argv[1:]:
    try:
        connection = socket.create_connection(("127.0.0.1", int(port)), 5)
        connection.sendall(b"GET /nested HTTP/1.0\\r\\n\\r\\n")
        print("answer" if b"200" in connection.recv(100) else "other")
    except OSError as error: print("refused")
"""


def test_a_nested_network_namespace_opens_no_other_door(sandbox, web, other):
    """There the port is refused, or led to the same door: what arrives is in the log, with the rule."""
    policy = sandbox.policy(ports_policy(web.port, "exec: {namespaces: true}\n"))
    script = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"
    assert sandbox.run([PYTHON, "-c", script, str(web.port)], policy=policy).code == 0, "the control"
    reached = len(web.requests)
    done = sandbox.run([PYTHON, "-c", NESTED, str(web.port), str(other.port)], policy=policy)
    assert done.code == 0 and len(codes(done)) == 2 and codes(done)[1] == "refused", done
    assert not other.requests, other.requests
    logged = [entry for entry in records(sandbox, done.report) if entry["rule"] == "run.host-port" or
              "host_ports" in entry["rule"]]
    assert (codes(done)[0] == "answer") == bool(web.requests[reached:]) == bool(logged), (done, logged)


PRIVATE = """
import json, os, socket, subprocess, sys, threading, time
atoll, policy, project = sys.argv[1:4]
subprocess.run("ip link set lo up; ip addr add 10.77.0.1/32 dev lo; ip addr add 10.77.0.2/32 dev lo", shell=True,
               check=True)
heard = []
def serve(address):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((address, 8099)); s.listen(9)
    while True:
        c, _ = s.accept(); heard.append(address); c.recv(9); c.sendall(b"here"); c.close()
for address in ("10.77.0.1", "10.77.0.2", "127.0.0.1"):
    threading.Thread(target=serve, args=(address,), daemon=True).start()
os.chdir(project)
os.environ["ATOLL_TEST_HOSTS"] = ("mirror.test=10.77.0.1,moved.test=10.77.0.2,evil.test=127.0.0.1,"
                                  "meta.test=169.254.169.254")
session = subprocess.run([atoll, "run", "-d", "-p", policy], check=True, capture_output=True, text=True).stdout.strip()
asker = subprocess.Popen([atoll, "ask", session, "--follow", "--json"], stdout=subprocess.DEVNULL,
                         stdin=subprocess.DEVNULL)
time.sleep(0.5)
GET = '''
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 20); s.sendall(b"x")
    print(s.recv(9).decode() or "cut")
except OSError as error: print(type(error).__name__)
'''
def get(host, port, verb):
    child = subprocess.Popen([atoll, "exec", session, "--", "/usr/bin/python3", "-c", GET, host, str(port)],
                             stdout=subprocess.PIPE, text=True)
    asked, deadline = [], time.monotonic() + 25
    while child.poll() is None and time.monotonic() < deadline:
        listed = subprocess.run([atoll, "ask", session, "--once", "--json"], capture_output=True, text=True).stdout
        for q in json.loads(listed or "[]"):
            if q["state"] == "waiting" and q["number"] not in [n for n, *_ in asked]:
                asked.append((q["number"], q["subject"], q.get("port"), q["reason"]))
                question = session + ":" + str(q["number"])
                subprocess.run([atoll, verb, question] + ["--session"] * (verb == "approve"), check=True,
                               capture_output=True)
        time.sleep(0.05)
    return child.communicate()[0].strip(), [entry[1:] for entry in asked], list(heard)
result = []
for row in json.loads(sys.argv[4]):
    heard.clear()
    result.append(get(*row))
asker.terminate()
subprocess.run([atoll, "stop", session], capture_output=True)
print(json.dumps(result))
"""


@pytest.mark.only("root")
@pytest.mark.needs("unshare", "ip")
@pytest.mark.parametrize("rules", ["  default: ask\n", "  default: deny\n  ask: [\"*.test\"]\n", "  default: allow\n"])
def test_a_private_address_is_reached_where_a_person_says_so(sandbox, rules):
    """The question says what it is; the yes is for that address and port. Loopback and metadata are refused."""
    policy = sandbox.policy(f"atoll: 1\nextends: medium\nnetwork:\n{rules}ask: {{timeout: 15s, prompt: false}}\n")
    rows = [("mirror.test", 8099, "approve"), ("mirror.test", 8099, "deny"), ("moved.test", 8099, "deny"),
            ("evil.test", 8099, "approve"), ("meta.test", 8099, "approve")]
    if "deny" not in rules:
        rows += [("10.77.0.1", 8099, "deny"), ("10.77.0.3", 8098, "deny")]
    done = sandbox.run_outside(["unshare", "-n", PYTHON, "-c", PRIVATE, str(sandbox.programs.atoll), str(policy),
                                str(sandbox.project), json.dumps(rows)], timeout=120)
    assert done.code == 0, done
    result = json.loads(done.out)
    answers = [answer for answer, _, _ in result]
    assert answers[0] == answers[1] == "here" and "here" not in answers[2:5], result
    subjects = [[entry[0] for entry in asked] for _, asked, _ in result]
    by_name = [] if "allow" in rules else ["mirror.test"]
    assert subjects[0] == [*by_name, "10.77.0.1"], result
    assert result[0][1][-1][1] == 8099 and "private address" in result[0][1][-1][2], result
    assert "mirror.test leads to it" in result[0][1][-1][2], result
    assert subjects[1] == [], "the answer was for the session"
    assert "127.0.0.1" not in subjects[3] and "169.254.169.254" not in subjects[4], result
    assert result[2][2] == result[3][2] == result[4][2] == [], "nobody was connected to before a person said yes"
    if "deny" not in rules:
        assert answers[5] == "here" and subjects[5] == [], "that address and port was allowed"
        assert subjects[6] == ["10.77.0.3"] and "here" != answers[6], "another is asked about anew"
