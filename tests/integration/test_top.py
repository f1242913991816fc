# SPDX-License-Identifier: Apache-2.0
"""`atoll top`: one table for scripts, and the screen as a person has it, in tmux."""
import json
import os
import re
import time

import pytest

from atoll import wait_until

EVIL = "x\x1b]0;owned\x07\u202e\x9b31m"


@pytest.fixture
def running(sandbox):
    """Two sandboxes: a quiet one, and one that is busy, changed a file and has words that no terminal shall obey."""
    policy = sandbox.policy("atoll: 1\nextends: medium\nresources: {processes: 50}\n")
    ids = []
    for name, command in (("quiet", ["sleep", "600"]),
                          ("busy", ["sh", "-c", "echo 1 >new; while :; do :; done", EVIL])):
        done = sandbox.run_outside(sandbox.command_line(command, policy, options=["-d", "-n", name]))
        assert done.code == 0, done
        ids.append(done.out.split()[-1])
    yield ids
    sandbox.run_atoll("stop", "-t", "0s", "--all")


class Screen:
    """A terminal in tmux with `atoll top` on it."""

    def __init__(self, sandbox, words, env, size):
        self.sandbox = sandbox
        self.tmux_words = ["tmux", "-L", f"atolltest{os.getpid()}", "-f", "/dev/null"]
        assignments = [f"{name}={value}" for name, value in env.items()]
        command = ["env", *assignments, str(sandbox.programs.atoll), "top", *words]
        script = " ".join(f"'{word}'" for word in command) + "; echo status=$?; exec sleep 60"
        self.tmux("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), script)

    def tmux(self, *words):
        done = self.sandbox.run_outside([*self.tmux_words, *words], env={"TMUX_TMPDIR": str(self.sandbox.base),
                                                                         "TMUX": None})
        assert done.code == 0, done
        return done.out

    def text(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def wait_for(self, pattern):
        def found():
            text = self.text()
            return text if re.search(pattern, text) else None
        return wait_until(found, 30, f"{pattern} on\n{self.text()}")

    def end(self):
        self.sandbox.run_outside([*self.tmux_words, "kill-server"], env={"TMUX_TMPDIR": str(self.sandbox.base)})


@pytest.fixture
def screen(sandbox):
    made = []

    def start(*words, size=(100, 24), **env):
        made.append(Screen(sandbox, words, env, size))
        return made[-1]
    yield start
    for one in made:
        one.end()


def test_a_table_and_json_for_scripts(sandbox, running):
    quiet, busy = running
    done = sandbox.run_atoll("top", "-s", "name")
    lines = done.out.splitlines()
    assert done.code == 0 and lines[0].split()[:3] == ["ID", "NAME", "PROJECT"], done
    assert lines[1].startswith(busy) and lines[2].startswith(quiet) and len(lines) == 3, done.out
    assert "\x1b" not in done.out and "\u202e" not in done.out and "\x9b" not in done.out

    def look():
        told = {one["session"]: one for one in json.loads(sandbox.run_atoll("top", "--json").out)}
        is_seen = told[busy]["cpu_percent"] > 1 > told[quiet]["cpu_percent"] and told[busy]["changes"]["paths"]
        return told if is_seen else None
    told = wait_until(look, 30, "the busy one is busy, the quiet one quiet")
    assert told[busy]["answers"] and told[quiet]["answers"]
    changes = told[busy]["changes"]
    assert changes.pop("bytes") > 0 and changes == {"paths": 1, "at_least": False}
    assert told[busy]["limits"]["processes"] == 50 and told[busy]["processes"] >= 1
    assert told[busy]["name"] == "busy" and told[quiet]["command"] == "sleep 600"
    one = sandbox.run_atoll("top", "--once", "--filter", "QUIET", "--sort", "name")
    assert one.code == 0 and quiet in one.out and busy not in one.out


def test_no_sandbox_and_wrong_words(sandbox):
    assert json.loads(sandbox.run_atoll("top", "--json").out) == []
    for words, said in ((["--sort", "colour"], "no column named colour"), (["--delay", "1ms"], "100ms to 1h"),
                        (["work"], "takes no names")):
        done = sandbox.run_atoll("top", *words)
        assert done.code == 125 and said in done.err, done


@pytest.mark.needs("tmux")
def test_the_screen(sandbox, running, screen):
    quiet, busy = running
    top = screen("-d", "300ms", LANG="C.UTF-8", TERM="screen-256color")
    text = top.wait_for(r"(?s)2 sandboxes.*-CPU%.*sleep 600")
    assert re.search(r"\\+u\{202E\}", text) or "…" in text
    # Sorting, by a column and the other way round.
    top.keys("N")
    text = top.wait_for(r"\+NAME")
    assert text.index(busy) < text.index(quiet)
    top.keys("r")
    text = top.wait_for(r"-NAME")
    assert text.index(quiet) < text.index(busy)
    # Nothing was selected: it is the first one. Its limits, and its log as it comes.
    top.keys("r", "Enter")
    top.wait_for(rf"(?s){busy} busy  \S+ \(medium\).*processes +\d+ of 50 .*LOG\n.*exec.start +allow")
    assert sandbox.run_atoll("exec", "busy", "--", "sh", "-c", "true later").code == 0
    top.wait_for(r"true later")
    top.keys("Escape")
    top.wait_for(r"\? help")
    # A filter, and a small terminal.
    top.keys("/", "quie")
    top.wait_for(r"/quie_")
    top.keys("Enter")
    assert busy not in top.wait_for(r"filter: quie")
    top.tmux("resize-window", "-x", "40", "-y", "10")
    text = top.wait_for(rf"(?m)^{quiet}[^\n]*sleep 600$")
    assert max(len(line) for line in text.splitlines()) <= 40
    top.keys("?")
    assert "stop it" not in top.wait_for(r"(?m)^keys \(up, down: more; others: back\)")
    top.keys("Down")
    seen = top.wait_for(r"back\)\n  down, j +the sandbox below")
    for _ in range(4):
        top.keys("PageDown")
        time.sleep(0.5)
        seen += top.text()
    for words in ("once more: back", "stop it", "this help", "q           quit", "command"):
        assert words in seen, (words, seen)
    assert max(len(line) for line in seen.splitlines()) <= 40
    top.keys("Home")
    top.wait_for(r"up, k +the sandbox above")
    top.tmux("resize-window", "-x", "100", "-y", "40")
    top.wait_for(r"any key goes back")
    top.keys("Down")
    top.wait_for("filter: quie")
    top.tmux("resize-window", "-x", "40", "-y", "10")
    top.keys("?")
    top.wait_for(r"others: back")
    top.keys("q")
    # It asks before it stops one, and takes no other answer than yes.
    top.keys("x")
    top.wait_for(rf"stop {quiet}")
    top.keys("n")
    top.wait_for(r"filter: quie")
    top.keys("x", "y")
    top.wait_for(rf"(?s)no sandbox fits.*{quiet} was stopped")
    assert sandbox.run_atoll("ps", "-q").out.split() == [busy]
    top.keys("q")
    top.wait_for(r"status=0")


@pytest.mark.only("user")
@pytest.mark.needs("tmux")
def test_without_colours_and_characters(running, screen):
    top = screen("-f", "busy", LC_ALL="C", TERM="screen-256color", NO_COLOR="1")
    assert top.wait_for(r"(?s)2 sandboxes.*busy").isascii()
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|4[0-7]|38|48)[;m]", top.text("-e"))
    top.keys("C-c")
    top.wait_for(r"status=130")


@pytest.mark.only("user")
@pytest.mark.needs("tmux")
def test_with_colours(running, screen):
    """The positive control of the one before."""
    top = screen(LANG="C.UTF-8", TERM="screen-256color")
    top.wait_for(r"2 sandboxes")
    assert re.search(r"\x1b\[[0-9;]*36[;m]", top.text("-e"))
    top.keys("q")
    top.wait_for(r"status=0")


@pytest.mark.needs("tmux")
def test_a_question_is_answered_by_a_key(sandbox, screen):
    """Listed as refused at first, since nobody hears; the answer is for the next time."""
    policy = sandbox.policy("atoll: 1\nextends: medium\nexec:\n  ask: [{program: /usr/bin/id}]\n")
    done = sandbox.run_outside(sandbox.command_line([], policy, options=["-d", "-n", "asks"]))
    assert done.code == 0, done
    refused = sandbox.run_atoll("exec", "asks", "--", "sh", "-c", "/usr/bin/id -un; true")
    assert "Permission" in refused.err or "denied" in refused.err or not refused.out, refused
    top = screen("-d", "200ms", "-f", "asks", LANG="C.UTF-8", TERM="screen-256color", size=(120, 30))
    top.keys("Enter")
    top.wait_for(r"ASKS \d+ .*exec /usr/bin/id")
    top.keys("y")
    top.wait_for(r"read the question first|has your answer")
    time.sleep(1.1)  # what has just come into sight is not answered yet
    top.keys("y")
    top.wait_for(r"has your answer|a sandbox that asks")
    allowed = sandbox.run_atoll("exec", "asks", "--", "sh", "-c", "/usr/bin/id -un; true")
    assert allowed.out.split(), allowed
    top.keys("q")
    top.wait_for(r"status=0")
    sandbox.run_atoll("stop", "-t", "0s", "--all")
