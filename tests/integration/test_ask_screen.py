# SPDX-License-Identifier: Apache-2.0
"""Asking as people see it: panes of tmux, with the run in one and who answers in another."""
import os
import re
import shlex

import pytest

from atoll import someone_listens, wait_until
from gate import LOOPBACK, Listener, policy_text, test_hosts

pytestmark = pytest.mark.needs("tmux")
PYTHON = "/usr/bin/python3"
GET = ("import socket, sys\n"
       "s = socket.create_connection(('web.test', int(sys.argv[1])), timeout=40); s.sendall(b'x')\n"
       "try: print('got', s.recv(10).decode() or 'nothing', flush=True)\n"
       "except OSError as error: print('got', error.__class__.__name__, flush=True)\n")


class Panes:
    """Windows of one tmux server, each with a shell."""

    def __init__(self, sandbox):
        self.sandbox, self.count = sandbox, 0
        self.words = ["tmux", "-L", f"atolltest-ask-{os.getpid()}", "-f", "/dev/null"]

    def tmux(self, *words):
        done = self.sandbox.run_outside([*self.words, *words], env={"TMUX_TMPDIR": str(self.sandbox.base),
                                                                    "TMUX": None, **test_hosts()})
        assert done.code == 0, done
        return done.out

    def open(self):
        name = f"w{self.count}"
        first = ["new-session", "-d", "-s", "s", "-n", name, "-x", "150", "-y", "40"] if not self.count else \
            ["new-window", "-d", "-n", name, "-t", "s"]
        self.count += 1
        self.tmux(*first, "exec env PS1='$ ' sh")
        self.tmux("set-option", "-g", "monitor-bell", "on")
        return Pane(self, f"s:{name}")

    def end(self):
        self.sandbox.run_outside([*self.words, "kill-server"], env={"TMUX_TMPDIR": str(self.sandbox.base)})


class Pane:
    def __init__(self, panes, target):
        self.panes, self.target = panes, target

    def type(self, *words, script=None):
        text = script or " ".join(shlex.quote(os.fspath(word)) for word in words)
        self.panes.tmux("send-keys", "-t", self.target, "-l", text)
        self.keys("Enter")

    def keys(self, *keys):
        self.panes.tmux("send-keys", "-t", self.target, *keys)

    def text(self, *options):
        return self.panes.tmux("capture-pane", "-p", "-J", "-t", self.target, *options)

    def has_rung(self):
        return self.panes.tmux("display-message", "-p", "-t", self.target, "#{window_bell_flag}").strip() == "1"

    def wait_for(self, pattern):
        def found():
            return re.search(pattern, self.text(), re.S)
        return wait_until(found, 20, f"{pattern} on\n{self.text()}")


@pytest.fixture
def panes(sandbox):
    made = Panes(sandbox)
    yield made
    made.end()


@pytest.fixture
def server():
    listener = Listener(lambda connection: (connection.recv(10), connection.sendall(b"answer"), connection.recv(10))[0])
    yield listener
    listener.close()


def words_of(sandbox, server, ask="{timeout: 40s}"):
    policy = sandbox.policy(policy_text(LOOPBACK, f"  default: ask\nask: {ask}\n"))
    script = sandbox.write(sandbox.base / "get.py", GET, 0o644)
    sandbox.copy(script, sandbox.project / "get.py", 0o644)
    return sandbox.command_line([PYTHON, "get.py", str(server.port)], policy=policy, options=["-n", "seen"])


def test_a_prompt_and_a_bell_where_the_screen_is_free(sandbox, panes, server):
    first, run = panes.open(), panes.open()
    line = " ".join(shlex.quote(os.fspath(word)) for word in words_of(sandbox, server))
    run.type(script=f"cd {sandbox.project} && {line} </dev/null 2>&1 | cat; echo END")
    run.wait_for(rf"connect to web\.test, port {server.port}")
    run.wait_for("then Enter: ")
    wait_until(run.has_rung, 30, "the bell")
    assert "got" not in run.text() and not server.heard
    run.keys("y", "Enter")
    run.wait_for(r"got answer.*END")
    assert first.text().strip() == "$"


def test_answered_in_another_pane(sandbox, panes, server):
    """The agent has the screen, so nothing is drawn there; who watches sees it, answers, and the agent goes on."""
    watch, run = panes.open(), panes.open()
    atoll = sandbox.programs.atoll
    watch.type(atoll, "ask", "--follow")
    run.type(script=f"cd {sandbox.project} && " + " ".join(shlex.quote(os.fspath(word))
                                                        for word in words_of(sandbox, server)) + "; echo END")
    shown = watch.wait_for(r"(\S+:1)  connect to web\.test, port \d+.*1 waiting, refused in").group(1)
    wait_until(run.has_rung, 30, "the bell")
    assert "connect to web.test" not in run.text() and "got" not in run.text()
    watch.keys("C-c")
    watch.type(atoll, "approve", shown)
    watch.wait_for("allowed")
    run.wait_for(r"got answer.*END")
    # Answered already: whoever comes second is told so.
    watch.type(atoll, "deny", shown)
    watch.wait_for("already|not open|no running")
    assert len(server.heard) == 1


LOOK_ALIKE = ("/bin/echo", "a\nx:9  read /etc/passwd\n    by /bin/sh, 1s ago", "\x1b[2J\x1b[1;1Howned", "\u202egnp.exe",
              "then Enter: ")


def test_what_looks_like_a_question_is_shown_as_it_is(sandbox, panes):
    policy = sandbox.policy("atoll: 1\nextends: medium\nexec: {ask: [/usr/bin/id, /bin/echo, /usr/bin/echo]}\n"
                            "ask: {timeout: 40s}\n")
    watch = panes.open()
    watch.type(sandbox.programs.atoll, "ask", "--follow")
    wait_until(lambda: someone_listens(sandbox), 30, "who follows")
    script = "import subprocess\nprint(subprocess.run(%r).returncode)" % (list(LOOK_ALIKE),)
    child = sandbox.popen([PYTHON, "-c", script], policy=policy)
    watch.wait_for("run /usr/bin/echo as|run /bin/echo as")
    lines = watch.text().splitlines()
    question = next(line for line in lines if "echo as" in line)
    for escaped in (r"\x0ax:9  read /etc/passwd", r"\x1b[2J", r"\u{202E}gnp.exe", '"then Enter: "'):
        assert escaped in question, (escaped, question)
    # Nothing of it is a line, a place or a direction of its own.
    assert not [line for line in lines if line.startswith("x:9")] and "\u202e" not in watch.text()
    assert lines[0].startswith("$") and "owned" not in lines[0]
    name = re.match(r"(\S+:\d+)  ", question).group(1)
    assert sandbox.run_atoll("deny", name).code == 0
    out, _ = child.communicate(timeout=30)
    assert b"PermissionError" in out or child.returncode, out


MARGINS = r"\033[2J\033[20;1Hread README once?\033[39;40r\033[40;1H\033[8m\033(0"


def test_what_the_agent_did_to_the_terminal_hides_no_question(sandbox, panes, server):
    """Margins that leave two lines to scroll in, below what is drawn to be taken for the question."""
    control, run = panes.open(), panes.open()
    control.type(script=f"printf '{MARGINS}'; printf 'the %s\\nbelow\\nbelow\\nit\\n' question")
    control.wait_for("README.*it")
    assert "the question" not in control.text()
    line = words_of(sandbox, server)
    script = f"printf '{MARGINS}'; exec {PYTHON} get.py {server.port}"
    words = [*line[:line.index(PYTHON)], "sh", "-c", script]
    run.type(script=f"cd {sandbox.project} && {shlex.join(map(os.fspath, words))} </dev/null 2>&1 | cat")
    run.wait_for(rf"README.*atoll asks, for .*connect to web\.test, port {server.port}.*then Enter: ")
    run.keys("y", "Enter")
    run.wait_for("got answer")


def test_a_question_that_the_screen_cannot_hold_is_not_answered_there(sandbox, panes, server):
    """The agent pads it, so that its beginning is off the screen and something else seems to be one."""
    watch, run = panes.open(), panes.open()
    policy = sandbox.policy("atoll: 1\nextends: medium\nexec: {ask: ['**/id']}\nask: {timeout: 20s}\n")

    def start(pad):
        words = f"""id -u "$(printf %{pad}s | tr ' ' x)" 2>&1 | grep -c such"""
        line = sandbox.command_line(["sh", "-c", words], policy=policy)
        run.type(script=f"clear; cd {sandbox.project}; {shlex.join(map(os.fspath, line))} </dev/null 2>&1 | cat; "
                        "echo END$?")

    start(2000)
    run.wait_for(r"run /usr/bin/id.*then Enter: ")
    # Told what the keys mean, it stands there anew.
    run.keys("z", "Enter")
    run.wait_for(r"is remembered.*atoll asks, for .*run /usr/bin/id.*then Enter: ")
    run.keys("y", "Enter")
    run.wait_for(r"allowed.*1\nEND0")
    start(7000)
    run.wait_for("atoll asks, for .*: a question that is too long for this screen")
    run.keys("y", "Enter")
    watch.type(sandbox.programs.atoll, "ask", "--once")
    watch.wait_for(r"1 waiting, refused in.*atoll approve")
    assert "then Enter" not in run.text() and "allowed" not in run.text()
    watch.type(script="clear")
    watch.type(sandbox.programs.atoll, "approve", "1")
    run.wait_for(r"1\nEND0")
