# SPDX-License-Identifier: Apache-2.0
"""What SECURITY.md names among the things that are not a boundary, and a program can see: each of these gets through
today. The day one does not, its test says so (strict), and the page has to say so too."""
import os
import subprocess
import time

import pytest

import control
from atoll import wait_until


class GotThrough(Exception):
    """Raised by nothing else, so that no other failure passes for the known one."""


def known_hole(reason):
    return pytest.mark.xfail(raises=GotThrough, strict=True, reason=f"SECURITY.md: {reason}")


@pytest.mark.only("user")
@known_hole("a pipe that you hand in as standard input")
def test_standard_input_is_not_written_back(sandbox):
    """The pipe is the caller's own, and the kernel asks for the owner only when it is opened again."""
    inside = " ".join(sandbox.command_line(["sh", "-c", "'echo planted >/proc/self/fd/0'"], options=["-q"]))
    done = sandbox.run_outside(["sh", "-c", f"echo line | {{ read first; {inside}; cat; }}"], cwd=sandbox.project)
    if "planted" in done.out:
        raise GotThrough(done.out)


def replaced_while_it_runs(sandbox, name, before, after, command):
    """Runs command in a project that is written in place, before and after the host puts a new file over name."""
    file = sandbox.write(sandbox.project / name, before)
    child = sandbox.popen(["sh", "-c", f"{command}; echo first; read x; {command}; echo second"], trust="high",
                          stdin=subprocess.PIPE)
    held = b""
    while not held.endswith(b"first\n"):
        held += child.stdout.readline()
    os.rename(sandbox.write(sandbox.project / f"{name}.new", after), file)
    out, err = child.communicate(b"\n", timeout=30)
    assert child.returncode == 0 and out.endswith(b"second\n"), (out, err)
    return held, out, file


@known_hole("a file that the host replaces while a sandbox runs")
def test_a_mask_holds_for_what_replaces_the_file(sandbox):
    held, out, _ = replaced_while_it_runs(sandbox, ".env", "old secret\n", "new secret\n", "cat .env 2>/dev/null")
    assert held == b"first\n", "masked before it was replaced"
    if b"new secret" in out:
        raise GotThrough(out)


def test_what_is_read_only_stays_so_when_it_is_replaced(sandbox):
    """It was a hole once: the mount is gone, and the file gate refuses."""
    sandbox.write(sandbox.project / ".git" / "HEAD", "ref: refs/heads/main\n")
    held, _, file = replaced_while_it_runs(sandbox, ".git/config", "[core]\n", "[core]\n",
                                           "(echo planted >>.git/config) 2>/dev/null")
    assert held == b"first\n" and "planted" not in file.read_text()


def test_a_directory_keeps_its_mask(sandbox):
    """The way out that SECURITY.md names: a directory that is masked keeps what is replaced in it."""
    policy = sandbox.policy("atoll: 1\nextends: high\nfiles:\n  mask: [./private]\n")
    file = sandbox.write(sandbox.project / "private" / "env", "old secret\n")
    child = sandbox.popen(["sh", "-c", "echo ready; read x; cat private/env; echo second"], policy=policy,
                          stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    os.rename(sandbox.write(sandbox.project / "private" / "new", "new secret\n"), file)
    wait_until(lambda: file.read_text() == "new secret\n")
    out, _ = child.communicate(b"\n", timeout=30)
    assert out == b"second\n"


WAKES_ITSELF = r"""
import ctypes, os, signal
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int),
                ("rest", ctypes.c_char * 48)]
libc = ctypes.CDLL(None)
signal.signal(signal.SIGCONT, lambda *_: None)
timer, file = ctypes.c_int(), open("count", "w")
# timer_create(2), timer_settime(2).
assert libc.syscall(222, 1, ctypes.byref(Event(signal=signal.SIGCONT)), ctypes.byref(timer)) == 0
assert libc.syscall(223, timer, 0, (ctypes.c_long * 4)(0, 100000000, 0, 100000000), None) == 0
for number in range(1, 1 << 60):
    os.pwrite(file.fileno(), b"%20d" % number, 0)
"""


def count_during_a_freeze(sandbox):
    """What a program that wakes itself has counted when everything stands still, and at most two seconds later."""
    file = sandbox.project / "count"
    child = sandbox.popen(["python3", "-c", WAKES_ITSELF], trust="high")
    wait_until(lambda: file.exists() and file.read_text(), 20, "the counter")
    session = sandbox.sessions()[-1]
    try:
        with control.Control(sandbox, session) as client:
            assert client.ask(control.FREEZE, control.string(b"test"))[0] == control.DONE
            first = last = file.read_text()
            end = time.monotonic() + 2
            while last == first and time.monotonic() < end:
                time.sleep(0.05)
                last = file.read_text()
            assert client.ask(control.THAW)[0] == control.DONE
    finally:
        sandbox.run_atoll("stop", session)
        child.communicate()
    return first, last


@pytest.mark.only("user")
@known_hole("standing still without a freezer")
def test_who_wakes_itself_stands_still(sandbox):
    first, last = count_during_a_freeze(sandbox)
    if first != last:
        raise GotThrough(f"{first} {last}")


@pytest.mark.only("root")
def test_who_wakes_itself_stands_still_in_a_control_group(sandbox):
    first, last = count_during_a_freeze(sandbox)
    assert first == last
