# SPDX-License-Identifier: Apache-2.0
"""`atoll ask`, `approve`, `deny` and `grants`: what a policy asks a person about, with the network as what is asked."""
import json
import os
import signal
import subprocess

import pytest

from atoll import wait_until
from control import STATUS, STATUS_JSON, Control
from gate import LOOPBACK, Listener, policy_text, test_hosts

PYTHON = "/usr/bin/python3"
GET = """
import socket, sys
for word in sys.argv[1:]:
    host, port = word.rsplit(":", 1)
    try:
        s = socket.create_connection((host, int(port)), timeout=20); s.sendall(b"x")
        print(s.recv(10).decode() or "cut", flush=True)
    except OSError as error: print(error.__class__.__name__, flush=True)
"""


@pytest.fixture
def server():
    listener = Listener(lambda connection: (connection.recv(10), connection.sendall(b"answer"), connection.recv(10))[0])
    yield listener
    listener.close()


class Session:
    """A sandbox in the background whose network is asked about, and people who answer."""

    def __init__(self, box, more="", ask="{timeout: 20s}"):
        self.box, self.followers = box, []
        policy = box.policy(policy_text(LOOPBACK, f"  default: ask\n{more}ask: {ask}\n"))
        done = box.run_outside(box.command_line([], policy=policy, options=["-d"]), env=test_hosts())
        assert done.code == 0, done
        self.id = done.out.strip()

    def popen(self, *targets):
        words = [str(self.box.programs.atoll), "exec", self.id, "--", PYTHON, "-c", GET, *targets]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                 start_new_session=True, **self.box.popen_keywords())
        self.box.children.append(child)
        return child

    def stop(self):
        self.box.run_atoll("stop", "-t", "0s", self.id)

    def get(self, *targets):
        out, err = self.popen(*targets).communicate(timeout=60)
        return out.decode().split() or err

    def follow(self):
        """Somebody who hears: what he is told, one object a line."""
        words = [str(self.box.programs.atoll), "ask", self.id, "--follow", "--json"]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                 start_new_session=True, **self.box.popen_keywords())
        self.box.children.append(child)
        return child

    def questions(self, state=None):
        done = self.box.run_atoll("ask", self.id, "--once", "--json")
        assert done.code == 0, done
        return [entry for entry in json.loads(done.out) if state in (None, entry["state"])]

    def wait_for(self, subject, state="waiting"):
        return wait_until(lambda: next((q for q in self.questions(state) if q["subject"] == subject), None), 15,
                          f"a question about {subject}")

    def answer(self, verb, question, *options):
        return self.box.run_atoll(verb, f"{self.id}:{question['number']}", *options)

    def grants(self):
        return json.loads(self.box.run_atoll("grants", self.id, "--json").out)

    def records(self, kind):
        entries = map(json.loads, self.box.audit_log(self.id).read_text().splitlines())
        return [entry for entry in entries if entry["type"] == kind]

    def heard(self):
        """Waits until the box knows that somebody follows."""
        follower = self.follow()
        self.followers.append(follower)
        wait_until(lambda: self.status()["is_followed"])
        return follower

    def status(self):
        with Control(self.box, self.id) as control:
            kind, rest = control.ask(STATUS)
        assert kind == STATUS_JSON
        return json.loads(rest[5:])


@pytest.fixture
def session_of(sandbox):
    """Makes sessions that end with the test."""
    made = []

    def make(*words, **keywords):
        made.append(Session(sandbox, *words, **keywords))
        return made[-1]

    yield make
    for session in made:
        session.stop()


def test_nobody_hears_so_it_is_refused_listed_and_grantable(session_of, server):
    session, target = session_of(), f"web.test:{server.port}"
    assert session.get(target) == ["gaierror"]
    question = session.wait_for("web.test", "listed")
    assert question["rule"] == "network.default" and question["port"] is None and question["kind"] == "net.connect"
    done = session.answer("approve", question)
    assert done.code == 0 and "for the next try" in done.out, done
    assert session.get(target, target) == ["answer", "gaierror"]
    assert [entry["verdict"] for entry in session.records("ask.answer")] == ["allow"]
    assert [entry["subject"] for entry in session.records("ask.open")].count("web.test") >= 1
    wait_until(lambda: len(server.heard) == 1)


def test_a_connection_waits_while_others_go_on(session_of, server):
    session, target = session_of(), f"web.test:{server.port}"
    session.heard()
    waiting = session.popen(target)
    question = session.wait_for("web.test")
    assert question["port"] == server.port and question["program"].startswith("/usr/bin/python3")
    assert question["left_ms"] > 0 and question["waiting"] == 1
    assert session.get(f"127.0.0.1:{server.port}") == ["ConnectionRefusedError"]
    assert not server.heard and waiting.poll() is None
    assert session.answer("approve", question, "--session").code == 0
    assert waiting.communicate(timeout=30)[0].split() == [b"answer"]
    # For the session: nobody is asked again.
    assert session.get(target) == ["answer"]
    assert [(entry["scope"], entry["allows"], entry["used"]) for entry in session.grants()] == [("session", True, 2)]


def start_piped(sandbox, server, target, ask="{timeout: 20s}", script="{get}"):
    """A run whose streams are no terminal, started from one."""
    policy = sandbox.policy(policy_text(LOOPBACK, f"  default: ask\nask: {ask}\n"))
    line = sandbox.command_line([PYTHON, "-c", GET, target], policy=policy)
    words = " ".join(f"'{word}'" for word in line[:-2]) + f" \"$GET\" {target} </dev/null 2>&1 | cat; echo END"
    return sandbox.spawn(["sh", "-c", words], outside=True, env={**test_hosts(), "GET": GET})


@pytest.mark.parametrize("key, answer, got", [("y", b"allowed", b"answer"), ("n", b"denied", b"ConnectionResetError"),
                                              ("s", b"allowed", b"answer")])
def test_a_prompt_where_the_streams_are_no_terminal(sandbox, server, key, answer, got):
    child = start_piped(sandbox, server, f"web.test:{server.port}")
    child.expect_exact(f"connect to web.test, port {server.port}".encode())
    child.expect_exact(b"then Enter: ")
    child.send(f"{key}\n")
    child.expect_exact(answer)
    child.expect_exact(got)
    child.expect_exact(b"END")
    assert bool(server.heard) == (got == b"answer") or wait_until(lambda: server.heard)
