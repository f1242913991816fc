# SPDX-License-Identifier: Apache-2.0
"""`atoll policy set`: the network of a session goes by another policy, and is never open in between (N19)."""
import json
import subprocess

import pytest

from atoll import wait_until
from gate import LOOPBACK, Listener, policy_text, test_hosts

PYTHON = "/usr/bin/python3"
CLIENT = """
import socket, sys
for line in sys.stdin:
    host, port = line.split()
    try:
        s = socket.create_connection((host, int(port)), timeout=5); s.sendall(b"x")
        print(s.recv(10).decode() or "cut", flush=True)
    except OSError as error: print(error.__class__.__name__, flush=True)
"""


@pytest.fixture
def server():
    listener = Listener(lambda connection: (connection.recv(10), connection.sendall(b"answer"), connection.recv(10))[0])
    yield listener
    listener.close()


class Session:
    """A sandbox in the background, and policies for it by the lines of their network.allow."""

    def __init__(self, box):
        self.box, self.id = box, None

    def start(self, rules, more="", options=()):
        line = self.box.command_line([], policy=self.policy(rules, more), options=["-d", *options])
        done = self.box.run_outside(line, env=test_hosts())
        assert done.code == 0, done
        self.id = done.out.strip()

    def policy(self, rules, more="", name="test.yaml"):
        return self.box.policy(policy_text([*rules, *LOOPBACK], more), name)

    def set(self, rules, more="", options=()):
        return self.set_path(self.policy(rules, more, "next.yaml"), options)

    def set_path(self, path, options=()):
        return self.box.run_atoll("policy", *options, "set", self.id, str(path))

    def get(self, *hosts, port):
        lines = "".join(f"{host} {port}\n" for host in hosts)
        done = self.box.run_atoll("exec", self.id, "--", PYTHON, "-c", CLIENT, stdin=lines.encode())
        return done.out.split()

    def records(self, kind):
        entries = map(json.loads, self.box.audit_log(self.id).read_text().splitlines())
        return [entry for entry in entries if entry["type"] == kind]

    def stop(self):
        assert not self.id or self.box.run_atoll("stop", self.id).code == 0
        self.id = None

    def popen(self, script):
        return subprocess.Popen([self.box.programs.program("atoll"), "exec", self.id, "--", PYTHON, "-c", script],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, **self.box.popen_keywords())


@pytest.fixture
def session(sandbox):
    made = Session(sandbox)
    yield made
    made.stop()


def test_what_is_listed_now_is_what_counts(sandbox, session, server):
    session.start(["web.test"])
    assert session.get("web.test", "other.test", port=server.port) == ["answer", "gaierror"]
    # The client is gone, but the gate may hold its connection for a while yet, and would end it: that counts as one.
    wait_until(lambda: session.records("net.close"), what="the end of the connection")
    done = session.set(["other.test"], options=["--json"])
    assert json.loads(done.out)["session"] == session.id and json.loads(done.out)["ended"] == 0, done
    assert session.get("web.test", "other.test", port=server.port) == ["gaierror", "answer"]
    wait_until(lambda: session.records("policy.change"), what="the record")
    entry, = session.records("policy.change")
    started, = session.records("session.start")
    detail = entry["detail"]
    assert detail["from_hash"] == started["detail"]["policy_hash"] != detail["policy_hash"], entry
    assert [change["subject"] for change in detail["allows"]] == [f"other.test:{port}" for port in (22, 80, 443)], entry
    assert {change["subject"] for change in detail["denies"]} == {f"web.test:{port}" for port in (22, 80, 443)}, entry
    assert detail["uid"] == sandbox.identity.uid and detail["asked_by"] > 1, entry
    listed = json.loads(sandbox.run_atoll("ps", "--json").out)
    assert [entry["policy"] for entry in listed if entry["session"] == session.id][0].endswith("next.yaml"), listed
    assert sandbox.run_atoll("log", "verify", session.id).code == 0


def test_what_a_session_goes_by_is_shown_whatever_its_files_say_since(sandbox, session, server):
    def shown(*words):
        done = sandbox.run_atoll("policy", "--session", id, "show", *words)
        assert done.code == 0, done
        return done.out

    session.start(["web.test"])
    id = session.id
    before = shown()
    assert "web.test" in before and "other.test" not in before, before
    session.set(["other.test"])
    session.policy(["third.test"], name="next.yaml")
    after = shown()
    assert "other.test" in after and "web.test" not in after and "third.test" not in after, after
    session.stop()
    assert shown() == after
    assert "other.test" in str(json.loads(shown("--json"))["network"]), shown("--json")
    path = sandbox.write(sandbox.project / "again.yaml", after)
    assert sandbox.run_atoll("policy", "check", path).code == 0
    for words in (["check"], ["show", "medium"], ["-t", "low", "show"]):
        assert sandbox.run_atoll("policy", "--session", id, *words).code == 125
    sandbox.audit_log(id).with_name("policy.bin").write_bytes(b"damaged")
    done = sandbox.run_atoll("policy", "--session", id, "show")
    assert done.code == 125 and "policy.bin cannot be read" in done.err and not done.out, done


def test_connections_that_are_not_allowed_any_more_are_ended(sandbox, session, server):
    session.start(["web.test", "other.test"])
    script = f"""
import socket, sys
held = [socket.create_connection((host, {server.port}), timeout=20) for host in ("web.test", "other.test")]
for s in held: s.sendall(b"x"); s.recv(10)
print("held", flush=True); sys.stdin.readline()
for s in held:
    try: s.sendall(b"y"); print(len(s.recv(10)), flush=True)
    except OSError as error: print(error.__class__.__name__, flush=True)
"""
    child = session.popen(script)
    assert child.stdout.readline() == b"held\n"
    done = session.set(["other.test"])
    assert "ended: 1" in done.out, done
    out, _ = child.communicate(b"\n", timeout=20)
    assert out.split()[0] in (b"ConnectionResetError", b"BrokenPipeError") and out.split()[1] == b"0", out
    wait_until(lambda: ("web.test", "the policy has changed") in [
        (entry["subject"], entry["detail"]["error"]) for entry in session.records("net.close")], what="the record")


def test_what_was_not_read_is_ended_by_rules_about_requests_though_recorded(sandbox, session, server):
    read = f"{{host: read.test, ports: [{server.port}], http: [{{}}]}}"
    session.start(["web.test", read], options=["--record", str(sandbox.outside / "tape.jsonl")])
    child = session.popen(f"""
import socket, sys
s = socket.create_connection(("web.test", {server.port}), timeout=20); s.sendall(b"x"); s.recv(10)
print("held", flush=True); sys.stdin.readline()
try: s.sendall(b"y"); print(len(s.recv(10)), flush=True)
except OSError as error: print(error.__class__.__name__, flush=True)
""")
    assert child.stdout.readline() == b"held\n"
    assert "ended: 0" in session.set(["web.test", "other.test", read]).out
    done = session.set([read, read.replace("read.test", "web.test")])
    assert "ended: 1" in done.out, done
    out, _ = child.communicate(b"\n", timeout=20)
    assert out.split()[0] in (b"ConnectionResetError", b"BrokenPipeError"), out


def test_n19_the_gate_is_never_open_in_between(sandbox, session, server):
    """Change after change, while something inside knocks on what no policy lists."""
    forbidden = Listener()
    session.start(["{host: web.test, ports: [1, %d]}" % server.port])
    script = f"""
import socket, threading
stop = []
def knock(target):
    while not stop:
        try: socket.create_connection(target, timeout=2).sendall(b"in between")
        except OSError: pass
threads = [threading.Thread(target=knock, args=(t,)) for t in (("web.test", {forbidden.port}), ("127.9.9.9", 9),
           ("evil.test", {server.port}), ("198.18.0.9", {forbidden.port}))]
for t in threads: t.start()
print("knocking", flush=True); input(); stop.append(1)
"""
    child = session.popen(script)
    assert child.stdout.readline() == b"knocking\n"
    for i in range(8):
        done = session.set(["{host: web.test, ports: [%d, %d]}" % (i + 1, server.port), *["x%d.test" % i] * (i % 2)])
        assert done.code == 0, done
    broken = session.set_path(sandbox.write(sandbox.base / "broken.yaml", "atoll: 1\nnetwork: {allow: [\"*\"]}\n"))
    assert broken.code == 1, broken
    child.communicate(b"\n", timeout=30)
    assert forbidden.heard == [], forbidden.heard
    assert session.get("web.test", port=server.port) == ["answer"]
    # The positive control: it is the policy that held it back.
    assert session.set(["web.test"]).code == 0
    assert session.get("web.test", port=forbidden.port) == ["cut"] and forbidden.heard == [b"x"]
    forbidden.close()


@pytest.mark.parametrize("more, what", [
    ("files: {scratch: [/atolltest]}\n", "files"), ("env: {set: {A: b}}\n", "env"),
    ("resources: {memory: 2GiB}\n", "resources"),
    ("  publish: [8080]\n", "publish"),
])
def test_the_rest_cannot_change(sandbox, session, server, more, what):
    session.start(["web.test"])
    done = session.set(["web.test", "other.test"], more)
    assert done.code == 125 and what in done.err and "stays" in done.err, done
    assert session.get("web.test", "other.test", port=server.port) == ["answer", "gaierror"]
    assert not session.records("policy.change")


def test_before_the_gate_has_begun_and_after_what_was_used(sandbox, session, server):
    session.start(["web.test"], "  limits: {hosts: 1}\n")
    assert session.set(["other.test", "web.test"], "  limits: {hosts: 2}\n").code == 0
    assert session.get("other.test", "web.test", port=server.port) == ["answer", "answer"]
    assert session.set(["other.test", "web.test", "a.wild.test"], "  limits: {hosts: 2}\n").code == 0
    assert session.get("a.wild.test", "web.test", port=server.port) == ["ConnectionResetError", "answer"]


@pytest.mark.only("root")   # the level wants limits that a user may not have here
def test_a_session_without_a_network_says_what_to_do(sandbox):
    done = sandbox.run_outside(sandbox.command_line([], trust="none", options=["-d"]))
    session = done.out.strip()
    path = sandbox.policy("atoll: 1\nextends: none\nnetwork: {allow: [web.test]}\n")
    done = sandbox.run_atoll("policy", "set", session, str(path))
    assert done.code == 125 and "without any network" in done.err and "new run" in done.err, done
    sandbox.run_atoll("stop", session)


def test_the_projects_own_file_only_tightens(sandbox, session, server):
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nnetwork: {deny: [nothing.test]}\n")
    session.start(["web.test"])
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nnetwork: {deny: [other.test]}\n")
    assert session.set(["web.test", "other.test"]).code == 0
    assert session.get("web.test", "other.test", port=server.port) == ["answer", "gaierror"]
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nnetwork: {allow: [evil.test]}\n")
    done = session.set(["web.test", "other.test"])
    assert done.code == 1 and "widens" in done.err, done


TRUST = "trust: {agent: set}\n"


@pytest.mark.parametrize("is_fork", [False, True])
def test_a_session_whose_agent_is_trusted_less_takes_its_own_policy(sandbox, session, server, is_fork):
    """It runs at low: its policy at its own level, medium, would be another in much more than the network."""
    assert sandbox.run_atoll("trust", "set", "--lower", "low").code == 0
    session.start(["web.test"], TRUST)
    assert sandbox.run_atoll("ps", "--json").out.count('"level":"low"') == 1
    if is_fork:
        assert sandbox.run_atoll("exec", session.id, "--", "touch", "made", cwd=sandbox.project).code == 0
        origin = session.id
        session.stop()
        done = sandbox.run_outside([sandbox.programs.program("atoll"), "fork", origin, "-d", "--", "sleep", "60"],
                                   env=test_hosts())
        assert done.code == 0, done
        session.id = done.out.split()[-1]
    assert session.get("web.test", "other.test", port=server.port) == ["answer", "gaierror"]
    done = session.set(["other.test"], TRUST)
    assert done.code == 0, done
    assert session.get("web.test", "other.test", port=server.port) == ["gaierror", "answer"]
    # What only medium lists stays away.
    assert session.get("pypi.org", port=server.port) == ["gaierror"]


def test_a_session_at_its_own_level_takes_no_higher_policy_for_less(sandbox, session, server):
    session.start(["web.test"], TRUST)
    done = session.set_path(sandbox.policy(policy_text(["web.test", *LOOPBACK], TRUST, "high"), "high.yaml"))
    assert done.code == 125 and "only the network can change" in done.err, done
