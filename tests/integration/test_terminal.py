# SPDX-License-Identifier: Apache-2.0
"""Programs on a terminal: job control, sizes, keys, full-screen programs. Each first runs without the boundary."""
import hashlib
import os
import re
import shlex
import time

import pexpect
import pytest

pytestmark = pytest.mark.parametrize("outside", [True, False], ids=["outside", "inside"])
PROMPT = b"@@ "


@pytest.fixture
def shell(sandbox, outside):
    """An interactive bash with a prompt that is easy to wait for."""
    child = sandbox.spawn(["bash", "--norc", "--noprofile", "-i"], outside=outside, env={"PS1": None})
    child.sendline(b"PS1='@''@ '; bind 'set enable-bracketed-paste off'; stty -echo")
    child.expect(PROMPT)
    time.sleep(0.1)
    yield child
    child.close(force=True)


def say(child, line, expected=None):
    child.sendline(line)
    if expected is not None:
        child.expect(expected)
    child.expect(PROMPT)
    return child.before


def finish(child):
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus if child.exitstatus is not None else 128 + child.signalstatus


def test_it_is_a_terminal(shell):
    say(shell, b"tty && test -t 0 -a -t 1 -a -t 2 && echo is-a-tty", rb"is-a-tty")
    say(shell, b"test -e $(tty) && echo it-exists", rb"it-exists")
    say(shell, b"echo hello >/dev/tty", rb"hello")
    say(shell, b"(exit 5); echo status=$?", rb"status=5")
    shell.sendline(b"exit 5")
    assert finish(shell) == 5


def test_job_control(shell):
    say(shell, b"set -o | grep monitor", rb"monitor\s+on")
    shell.sendline(b"sleep 60")
    time.sleep(0.4)
    shell.sendcontrol("z")
    shell.expect(rb"Stopped")
    say(shell, b"jobs", rb"Stopped\s+sleep 60")
    say(shell, b"bg; jobs", rb"Running\s+sleep 60")
    shell.sendline(b"fg")
    time.sleep(0.4)
    shell.sendcontrol("c")
    shell.expect(PROMPT)
    say(shell, b"echo status=$?", rb"status=130")
    say(shell, b"sleep 0.1 & wait; echo waited", rb"waited")


def test_interrupt_quit_and_end_of_file(shell):
    shell.sendline(b"cat")
    time.sleep(0.3)
    shell.sendcontrol("c")
    shell.expect(PROMPT)
    say(shell, b"echo status=$?", rb"status=130")
    shell.sendline(b"cat")
    time.sleep(0.3)
    shell.sendcontrol("d")
    shell.expect(PROMPT)
    say(shell, b"echo status=$?", rb"status=0")
    shell.sendline(b"sleep 60")
    time.sleep(0.3)
    shell.sendcontrol("\\")
    shell.expect(PROMPT)
    say(shell, b"echo status=$?", rb"status=131")


def test_window_size(shell):
    say(shell, b"stty size", rb"24 80")
    say(shell, b"trap 'echo size-changed' WINCH; echo set", rb"set")
    shell.setwinsize(40, 120)
    shell.expect(rb"size-changed")
    shell.sendline(b"")
    time.sleep(0.2)
    say(shell, b"stty size", rb"40 120")


def test_raw_mode_and_restored_settings(sandbox, shell):
    before = say(shell, b"stty -g", None)
    script = ("import sys,termios,tty\nold=termios.tcgetattr(0)\ntty.setraw(0)\n"
            "sys.stdout.write('raw>');sys.stdout.flush()\n"
              "c=sys.stdin.buffer.raw.read(1)\ntermios.tcsetattr(0,termios.TCSADRAIN,old)\nprint('got',c)")
    sandbox.write(sandbox.project / "raw.py", script)
    shell.sendline(b"python3 raw.py")
    shell.expect(rb"raw>")
    shell.send(b"\x03")
    shell.expect(rb"got b'\\x03'")
    shell.expect(PROMPT)
    after = say(shell, b"stty -g", None)
    assert re.findall(rb"[0-9a-f:]{20,}", before) == re.findall(rb"[0-9a-f:]{20,}", after)


def test_colours_and_terminal_type(shell):
    say(shell, b"echo $TERM; tput colors", rb"256")
    say(shell, b"printf '\\033[38;5;208mcolour\\033[0m\\n'", rb"\x1b\[38;5;208mcolour\x1b\[0m")


def test_ctrl_c_ends_a_plain_command(sandbox, outside):
    child = sandbox.spawn(["sh", "-c", "echo ready; sleep 60"], outside=outside)
    child.expect(rb"ready")
    time.sleep(0.3)
    child.sendcontrol("c")
    assert finish(child) == 130


def test_suspend_and_resume_from_the_callers_shell(sandbox, outside):
    """Ctrl-Z stops the whole run, `fg` in the outer shell brings it back, and its terminal is as it was."""
    words = " ".join(["cat"] if outside else [str(word) for word in sandbox.command_line(["cat"], options=["-q"])])
    child = sandbox.spawn(["bash", "--norc", "--noprofile", "-i"], outside=True)
    child.sendline(b"PS1='@''@ '; bind 'set enable-bracketed-paste off'")
    child.expect(PROMPT)
    time.sleep(0.2)
    child.sendline(words.encode())
    time.sleep(0.8)
    child.sendline(b"first")
    child.expect(rb"first\r\nfirst")
    child.sendcontrol("z")
    child.expect(rb"Stopped")
    child.expect(PROMPT)
    child.sendline(b"echo outer")
    child.expect(rb"outer\r\nouter")
    child.expect(PROMPT)
    child.sendline(b"fg")
    time.sleep(0.5)
    child.sendline(b"second")
    child.expect(rb"second\r\nsecond")
    child.sendcontrol("d")
    child.expect(PROMPT)
    child.sendline(b"echo status=$?; exit")
    child.expect(rb"status=0")
    child.close(force=True)


def test_in_the_background_it_runs_on_while_somebody_types(sandbox, outside):
    """What is typed then is the shell's: to read it from the background stops the whole run, which wants none of it."""
    word = "worked"
    command = ["sh", "-c", f"sleep 1.5; echo {word[:3]}''{word[3:]}; read line; echo got=$line"]
    words = command if outside else sandbox.command_line(command, options=["-q"])
    child = sandbox.spawn(["bash", "--norc", "--noprofile", "-i"], outside=True)
    child.sendline(b"PS1='@''@ '; bind 'set enable-bracketed-paste off'; stty -echo")
    child.expect(PROMPT)
    time.sleep(0.2)
    child.sendline(shlex.join(map(str, words)).encode() + b" &")
    child.expect(PROMPT)
    time.sleep(0.5)
    for number in range(4):
        child.sendline(b"echo outer-$((1 + %d))" % number)
        child.expect(b"outer-%d" % (number + 1))
        time.sleep(0.1)
    child.expect(word.encode())
    child.sendline(b"fg")
    child.expect(b"sh -c")
    time.sleep(0.8)
    child.sendline(b"line")
    child.expect(b"got=line")
    child.expect(PROMPT)
    child.close(force=True)


def test_the_callers_terminal_is_restored(sandbox, outside):
    """Also when the command left it in raw mode and died."""
    words = ["sh", "-c", "stty raw -echo; kill -KILL $$"]
    line = " ".join(f"'{word}'" for word in (words if outside else sandbox.command_line(words, options=["-q"])))
    child = sandbox.spawn(["bash", "--norc", "--noprofile", "-c", f"stty -g; {line}; echo; stty -g"], outside=True)
    child.expect(pexpect.EOF)
    settings = re.findall(rb"(?m)^\s*([0-9a-f:]{40,})\s*$", child.before)
    child.close()
    assert len(settings) == 2, child.before
    if not outside:
        assert settings[0] == settings[1]


@pytest.mark.needs("vim")
def test_vim(sandbox, outside):
    child = sandbox.spawn(["vim", "-u", "NONE", "-N", "file.txt"], outside=outside)
    time.sleep(1.2)
    child.send(b"ihello from vim\x1b")
    time.sleep(0.3)
    child.send(b":set lines? columns?\r")
    child.expect(rb"lines=24")
    child.send(b"\r:wq\r")
    assert finish(child) == 0
    written = sandbox.project / "file.txt" if outside else sandbox.staged("file.txt")
    assert written.read_text() == "hello from vim\n"


@pytest.mark.needs("less")
def test_less(sandbox, outside):
    sandbox.write(sandbox.project / "long", "".join(f"line {i}\n" for i in range(1, 500)))
    child = sandbox.spawn(["less", "long"], outside=outside)
    child.expect(rb"line 23")
    child.send(b"G")
    child.expect(rb"line 499")
    child.send(b"?line 250\r")
    child.expect(rb"line 250")
    child.send(b"q")
    assert finish(child) == 0


@pytest.mark.needs("tmux")
def test_tmux(sandbox, outside):
    child = sandbox.spawn(["tmux", "-L", f"atolltest{os.getpid()}", "-f", "/dev/null", "new", "sh", "-c",
                           "echo in-$TERM-$((6*7)); read x; echo got-$x; sleep 0.5"], outside=outside)
    child.expect(rb"in-[a-z0-9-]+-42")
    child.sendline(b"word")
    child.expect(rb"got-word")
    assert finish(child) == 0


def test_a_terminal_of_somebody_else(sandbox, outside):
    """As after `su`: the descriptors are open, the device may not be opened again."""
    child = sandbox.spawn(["sh", "-c", "tty; read x; echo got-$x"], outside=outside, is_own_terminal=False)
    child.expect(rb"/dev/pts")
    child.sendline(b"word")
    child.expect(rb"got-word")
    assert finish(child) == 0


def test_script_starts_a_terminal_of_its_own(sandbox, outside):
    child = sandbox.spawn(["script", "-qec", "tty; echo inner; exit 3", "/dev/null"], outside=outside)
    child.expect(rb"inner")
    assert finish(child) == 3


def test_a_long_paste_arrives_whole(sandbox, outside):
    """More than the line discipline's 4096 bytes, in lines."""
    child = sandbox.spawn(["sh", "-c", "stty -echo; echo ready; sha256sum"], outside=outside)
    child.expect(rb"ready")
    time.sleep(0.2)
    text = b"".join(b"%060d\n" % i for i in range(1500))
    for at in range(0, len(text), 610):
        child.send(text[at:at + 610])
        time.sleep(0.002)
    child.sendeof()
    child.expect(hashlib.sha256(text).hexdigest().encode())
    assert finish(child) == 0


def test_much_output_to_a_terminal(sandbox, outside):
    child = sandbox.spawn(["seq", "1", "200000"], outside=outside)
    child.expect(rb"200000\r\n", timeout=60)
    lines = child.before.replace(b"\r", b"").split(b"\n")
    assert [line for line in lines if line.isdigit()][-1] == b"199999"
    assert sum(line.isdigit() for line in lines) == 199999
    assert finish(child) == 0
