# SPDX-License-Identifier: Apache-2.0
"""What SECURITY.md names among the things that are not a boundary, and a program can see: each of these gets through
today. The day one does not, its test says so (strict), and the page has to say so too."""
import os
import subprocess

import pytest

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
