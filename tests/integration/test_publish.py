# SPDX-License-Identifier: Apache-2.0
"""network.publish and `atoll run --publish`: a port of the sandbox on a loopback port of the host, and nothing more."""
import hashlib
import json
import os
import socket
import subprocess

import pytest

from atoll import wait_until
from gate import Listener, policy_text, test_hosts

PYTHON = "/usr/bin/python3"
# Echoes what it gets after the end of it, on the address and port that it is told.
SERVER = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family); s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(8)
print("serving", flush=True)
for _ in range(int(sys.argv[3])):
    c, _ = s.accept(); data = b""
    while part := c.recv(1 << 16): data += part
    c.sendall(b"echo " + data); c.close()
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, data=b"hello", address="127.0.0.1"):
    with socket.create_connection((address, port), timeout=10) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
        return answer


def start(sandbox, command, options, **keywords):
    report = sandbox.report_path()
    sandbox.own_parent(report)
    child = sandbox.popen(command, options=options, report=report, **keywords)
    child.report = report
    return child


def serve(sandbox, options, count=1, address="127.0.0.1", inside=8080, **keywords):
    child = start(sandbox, [PYTHON, "-c", SERVER, address, str(inside), str(count)], options, **keywords)
    assert child.stdout.readline() == b"serving\n"
    return child


def finish(sandbox, child):
    out, err = child.communicate(timeout=20)
    return child.returncode, out.decode(), err.decode(), sandbox.read_report(child.report)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "0.0.0.0"])
def test_a_server_inside_is_reached_from_outside(sandbox, address):
    """Whatever loopback it listens on; both ends hear each other's half-close."""
    port = free_port()
    child = serve(sandbox, ["--publish", f"{port}:8080"], count=2, address=address)
    data = os.urandom(3 << 20)
    assert hashlib.sha256(ask(port, data)[5:]).digest() == hashlib.sha256(data).digest()
    assert ask(port) == b"echo hello"
    code, _, err, report = finish(sandbox, child)
    assert code == 0 and f"port 8080 of the sandbox is 127.0.0.1:{port}" in err, err
    assert report["network"]["published"] == [{"port": 8080, "host": f"127.0.0.1:{port}", "connections": 2}], report
    assert report["usage"]["net_in"] == len(data) + 5 and report["usage"]["net_out"] == len(data) + 15, report
    entries = [json.loads(line) for line in sandbox.audit_log(report["session"]).read_text().splitlines()]
    listens = [entry for entry in entries if entry["type"] == "net.listen"]
    assert [(entry["subject"], entry["rule"]) for entry in listens] == [(f"127.0.0.1:{port}", "run.publish")], listens
    visits = [entry for entry in entries if entry["type"] == "net.connect"]
    assert len(visits) == 2 and all(entry["detail"]["from"].startswith("127.0.0.1:") for entry in visits), visits
    assert {entry["detail"]["published"] for entry in visits} == {f"127.0.0.1:{port}"}, visits
    with pytest.raises(ConnectionRefusedError):
        ask(port)


def test_more_visitors_than_sockets_are_made_at_a_time(sandbox):
    """The box keeps some in stock: each is used once, and new ones are made when they are gone."""
    port, count = free_port(), 20
    child = serve(sandbox, ["--publish", f"{port}:8080"], count=count)
    assert [ask(port, b"%d" % number) for number in range(count)] == [b"echo %d" % number for number in range(count)]
    code, _, _, report = finish(sandbox, child)
    assert code == 0 and report["network"]["published"][0]["connections"] == count, report


def test_a_policy_publishes_and_ps_says_where(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: medium\nnetwork: {publish: [{port: 8080, host: \"[::1]:0\"}, 81]}\n")
    done = sandbox.run_outside(sandbox.command_line([], policy=policy, options=["-d"]))
    session = done.out.strip()
    listed, = [entry for entry in json.loads(sandbox.run_atoll("ps", "--json").out) if entry["session"] == session]
    hosts = {entry["port"]: entry["host"] for entry in listed["published"]}
    assert hosts[8080].startswith("[::1]:") and hosts[81].startswith("127.0.0.1:"), listed
    child = subprocess.Popen([sandbox.programs.program("atoll"), "exec", session, "--", PYTHON, "-c", SERVER,
                              "127.0.0.1", "8080", "1"], stdout=subprocess.PIPE, **sandbox.popen_keywords())
    assert child.stdout.readline() == b"serving\n"
    assert ask(int(hosts[8080].rsplit(":", 1)[1]), address="::1") == b"echo hello"
    child.communicate(timeout=20)
    assert sandbox.run_atoll("stop", session).code == 0


def test_nothing_listens_inside(sandbox):
    """The client is cut, the run goes on, and the log says why."""
    port = free_port()
    child = start(sandbox, ["cat"], ["--publish", f"{port}:8080"], stdin=subprocess.PIPE)
    wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
    with pytest.raises(ConnectionResetError):
        ask(port)
    child.stdin.close()
    child.stdin = None
    code, _, _, report = finish(sandbox, child)
    assert code == 0, report
    assert '"error":"ECONNREFUSED"' in sandbox.audit_log(report["session"]).read_text()


def test_a_port_that_is_taken_ends_the_run_before_it_begins(sandbox):
    taken = Listener()
    done = sandbox.run(["touch", "made"], options=["--publish", f"{taken.port}:80"])
    assert done.code == 125 and "EADDRINUSE" in done.err and not (sandbox.project / "made").exists(), done
    for text in ("0.0.0.0:80:80", "x", "70000", "1:2:3:4"):
        assert sandbox.run(["touch", "made"], options=["--publish", text]).code == 125, text
    assert not (sandbox.project / "made").exists()
    taken.close()


def test_a_published_port_opens_nothing_else(sandbox):
    """Neither the host's loopback, nor what another sandbox publishes, nor any host."""
    host = Listener()
    port, other = free_port(), free_port()
    neighbour = serve(sandbox, ["--publish", f"{other}:8080"])
    script = f"""
import socket
def reach(address, port):
    try: socket.create_connection((address, port), timeout=3).sendall(b"x"); return "reached"
    except OSError as error: return error.__class__.__name__
print(*[reach(a, p) for a in ("127.0.0.1", "::1", "198.18.0.1") for p in ({host.port}, {other}, {port})])
"""
    done = sandbox.run([PYTHON, "-c", script], options=["--publish", f"{port}:8080"])
    assert done.code == 0 and "reached" not in done.out and len(done.out.split()) == 9, done
    assert host.heard == []
    # The positive controls: both are there for whoever is outside.
    assert ask(other) == b"echo hello"
    socket.create_connection(("127.0.0.1", host.port)).close()
    wait_until(lambda: host.heard)
    finish(sandbox, neighbour)
    host.close()


def test_bytes_count_against_the_limits(sandbox):
    port = free_port()
    policy = sandbox.policy(policy_text([], f"  limits: {{total: 100kB}}\n  publish: [\"{port}:8080\"]\n"))
    child = serve(sandbox, [], policy=policy, env=test_hosts())
    with pytest.raises(OSError):
        assert len(ask(port, b"z" * 300000)) < 100000
        raise ConnectionResetError
    child.kill()
    child.communicate(timeout=20)


def on_demand(sandbox, port, more=""):
    return sandbox.policy(f"atoll: 1\nextends: medium\nnetwork: {{publish: [{{port: 8080, host: '127.0.0.1:{port}', "
                          f"on_demand: true}}]}}\n{more}")


def test_on_demand_the_port_is_open_once_something_listens(sandbox):
    port = free_port()
    child = start(sandbox, [PYTHON, "-c", "import sys, time; print('there', flush=True); sys.stdin.readline(); " +
                            f"sys.argv = ['', '127.0.0.1', '8080', '1']; exec({SERVER!r})"], [],
                  policy=on_demand(sandbox, port), stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"there\n"
    with pytest.raises(ConnectionRefusedError):
        ask(port)
    child.stdin.write(b"go\n")
    child.stdin.flush()
    assert child.stdout.readline() == b"serving\n"
    assert ask(port) == b"echo hello"
    code, _, err, report = finish(sandbox, child)
    assert code == 0 and f"port 8080 of the sandbox is 127.0.0.1:{port}" in err, err
    assert report["network"]["published"] == [{"port": 8080, "host": f"127.0.0.1:{port}", "connections": 1}]
    log = [json.loads(line) for line in sandbox.audit_log(report["session"]).read_text().splitlines()]
    assert [entry["subject"] for entry in log if entry["type"] == "net.listen"] == [f"127.0.0.1:{port}"]


def test_on_demand_a_taken_port_is_said_and_the_run_goes_on(sandbox):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        child = start(sandbox, [PYTHON, "-c", "import socket\nfor _ in range(3):\n    s = socket.socket(); "
                                "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(('127.0.0.1', 8080)); "
                                "s.listen(1); s.close()\nprint('done')"], [], policy=on_demand(sandbox, port))
        code, out, err, report = finish(sandbox, child)
    assert code == 0 and out == "done\n" and err.count("cannot be reached from this machine") == 1, err
    assert "EADDRINUSE" in err and report["network"]["published"] == []


def test_on_demand_a_thread_that_listens_counts(sandbox):
    port = free_port()
    child = start(sandbox, [PYTHON, "-c", "import sys, threading; sys.argv = ['', '127.0.0.1', '8080', '1']; "
                            f"threading.Thread(target=exec, args=({SERVER!r}, {{}})).start()"], [],
                  policy=on_demand(sandbox, port))
    assert child.stdout.readline() == b"serving\n"
    assert ask(port) == b"echo hello" and finish(sandbox, child)[0] == 0


def test_on_demand_is_about_that_port_alone(sandbox):
    port = free_port()
    child = serve(sandbox, [], inside=8081, policy=on_demand(sandbox, port))
    with pytest.raises(ConnectionRefusedError):
        ask(port)
    child.kill()
