# SPDX-License-Identifier: Apache-2.0
"""Commands that outlive `atoll exec`: started apart, listed, come back to, and left by keys."""
import json
import signal
import subprocess

import pexpect
import pytest

from atoll import wait_until

LONG = 60
LOOP = "echo early; while read line; do echo got $line; done; echo bye; exit 3"


@pytest.fixture
def box(sandbox):
    """One that runs, for all of a test."""
    policy = sandbox.policy("atoll: 1\nextends: medium\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n")
    started = sandbox.run_atoll("run", "-d", "-p", str(policy), "--", "sleep", "1000")
    assert started.code == 0, started
    yield Box(sandbox, started.out.split()[-1])
    sandbox.run_atoll("stop", "-t", "0s", started.out.split()[-1])


class Box:
    def __init__(self, sandbox, session):
        self.sandbox, self.session = sandbox, session

    def atoll(self, *words, code=0, **more):
        result = self.sandbox.run_atoll(*words, **more)
        assert result.code == code, (words, result)
        return result

    def detach(self, *words):
        return self.atoll("exec", "-d", *words[:-1], self.session, "--", "sh", "-c", words[-1]).out.strip()

    def rows(self, *words):
        return json.loads(self.atoll("ps", "-ca", "--json", *words).out)

    def row(self, number):
        return next(row for row in self.rows(self.session) if row["number"] == int(number))

    def on_terminal(self, *words, size=(24, 80)):
        return self.sandbox.spawn([str(self.sandbox.programs.atoll), *words], outside=True, size=size)


def finish(child):
    child.expect(pexpect.EOF, timeout=LONG)
    child.close()
    return child.exitstatus


def test_a_detached_command_loses_nothing_and_its_status_is_there_afterwards(box):
    number = box.detach("--tag", "loop", LOOP)
    row = box.row(number)
    assert row["session"] == box.session and row["lasts"] and not row["main"] and row["tag"] == "loop", row
    assert row["argv"] == ["sh", "-c", LOOP] and row["cwd"] == str(box.sandbox.project) and row["attached"] == 0, row
    assert [row["main"] for row in box.rows()] == [True, False]
    table = box.atoll("ps", "--commands").out.splitlines()
    assert [line.split()[:3] for line in table[1:]] == [[box.session, "1", "running"], [box.session, number, "running"]]
    seen = box.atoll("attach", "-c", "loop", box.session, stdin=b"one\ntwo\n", code=3)
    assert seen.out == "early\ngot one\ngot two\nbye\n"
    assert box.row(number)["ended"] == "exit" and box.row(number)["status"] == 3
    assert box.atoll("attach", "-c", number, box.session, code=3).out == ""
    assert len(box.atoll("ps", "-c").out.splitlines()) == 2, "it has ended"


def test_what_cannot_be_started_or_is_not_there_is_said(box):
    nothing = box.atoll("exec", "-d", box.session, "--", "/nowhere", code=127)
    assert "/nowhere cannot be started" in nothing.err and nothing.out == ""
    for words, said in ((("attach", "-c", "77", box.session), "has no command 77"),
                        (("attach", "-c", "1", box.session), "does not last"),
                        (("attach", box.session), "no command of sandbox"),
                        (("attach", "nosuch"), "nosuch"), (("attach", "a", "b"), "-c"),
                        (("attach", "--detach-keys", "ctrl-7", box.session), "names no keys"),
                        (("exec", "--tty", box.session, "--", "true"), "--detach"),
                        (("exec", "--json", box.session, "--", "true"), "--detach"),
                        (("exec", "--detach-keys", "a", box.session, "--", "true"), "--keep"),
                        (("ps", "nosuch"), "--commands"), (("ps", "-c", "nosuch"), "nosuch")):
        if words[0] == "attach" and "--detach-keys" in words:
            box.detach("--tag", "any", "sleep 1000")
        result = box.atoll(*words, code=125)
        assert said in result.err, (words, result)


def test_json_names_the_session_and_the_command(box):
    printed = json.loads(box.atoll("exec", "-d", "--json", box.session, "--", "true").out)
    assert printed == {"session": box.session, "command": 2}


def test_keep_follows_until_the_client_is_killed_and_the_command_goes_on(box):
    environment = box.sandbox.popen_keywords()
    words = [str(box.sandbox.programs.atoll), "exec", "--keep", "--tag", "kept", box.session, "--", "sh", "-c", LOOP]
    client = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **environment)
    assert client.stdout.readline() == b"early\n"
    client.stdin.write(b"one\n")
    client.stdin.flush()
    assert client.stdout.readline() == b"got one\n"
    client.kill()
    client.communicate(timeout=LONG)
    number = next(row["number"] for row in box.rows() if row["tag"] == "kept")
    wait_until(lambda: box.row(number)["attached"] == 0, LONG)
    assert box.row(number)["ended"] is None
    # The positive control: without --keep the same ends with its client.
    words[2:5] = ["exec"][1:]
    plain = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **environment)
    assert plain.stdout.readline() == b"early\n"
    other = max(row["number"] for row in box.rows())
    plain.kill()
    plain.communicate(timeout=LONG)
    wait_until(lambda: all(row["number"] != other or row["ended"] for row in box.rows()), LONG)
    assert box.atoll("attach", box.session, stdin=b"two\n", code=3).out == "got two\nbye\n", "the newest that lasts"


def test_signals_reach_it_or_leave_it(box):
    number = box.detach("trap 'echo interrupted' INT; echo ready; while :; do sleep 0.05; done")
    words = [str(box.sandbox.programs.atoll), "attach", "-c", number, box.session, "--no-stdin"]
    client = subprocess.Popen(words, stdout=subprocess.PIPE, **box.sandbox.popen_keywords())
    assert client.stdout.readline() == b"ready\n"
    client.send_signal(signal.SIGINT)
    assert client.stdout.readline() == b"interrupted\n"
    client.send_signal(signal.SIGHUP)
    assert client.wait(LONG) == 0
    client.stdout.close()
    leaver = subprocess.Popen([*words, "--no-signals"], stderr=subprocess.PIPE, **box.sandbox.popen_keywords())
    wait_until(lambda: box.row(number)["attached"] == 1, LONG)
    leaver.send_signal(signal.SIGINT)
    assert f"left command {number}" in leaver.communicate(timeout=LONG)[1].decode() and leaver.returncode == 0
    assert box.row(number)["ended"] is None


def test_a_terminal_is_left_by_keys_and_found_again(box):
    number = box.detach("-t", "--tag", "shell", "echo early; while read -r line; do stty size; echo \"<$line>\"; done")
    child = box.on_terminal("attach", "-c", "shell", box.session, size=(30, 90))
    child.expect(rb"early\r\n", timeout=LONG)
    child.send(b"one\x10two\r")                    # the beginning of the keys, and something else
    child.expect(rb"30 90\r\n<one\x10two>\r\n", timeout=LONG)
    child.setwinsize(31, 91)
    wait_until(lambda: box.row(number)["attached"] == 1, LONG)
    child.send(b"x\r")
    child.expect(rb"<x>\r\n", timeout=LONG)
    child.send(b"half\x10")
    child.send(b"\x11")
    child.expect(rb"left command %d" % int(number), timeout=LONG)
    assert finish(child) == 0
    assert box.row(number)["ended"] is None and box.row(number)["terminal"]
    again = box.on_terminal("attach", "--detach-keys", "ctrl-a,d", "-c", number, box.session, size=(20, 70))
    again.send(b"\x10q\r")                         # no keys now
    again.expect(rb"20 70\r\n<half\x10q>\r\n", timeout=LONG)
    again.send(b"\x01\x01d")
    assert finish(again) == 0
    last = box.on_terminal("attach", "--detach-keys", "", "-c", number, box.session)
    last.send(b"\r")
    last.expect(rb"<\x01>\r\n", timeout=LONG)
    last.send(b"\x04")
    assert finish(last) == 0
    assert box.row(number)["ended"] == "exit"


def test_hostile_words_and_tags_do_not_reach_the_terminal(box):
    box.detach("--tag", "\x1b[31mred", "sleep 1000; : '\x1b]0;title\x07'")
    shown = box.atoll("ps", "-c").out
    assert "red" in shown and "\x1b" not in shown and "\x07" not in shown
