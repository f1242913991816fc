# SPDX-License-Identifier: Apache-2.0
"""The host's tree changes under a running apply: directories become links to a place outside and back, again and again.
Nothing outside is ever written, and nothing of the host's is lost."""
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from overlay import Layered

DIRECTORIES, FILES = 20, 20

# Exchanges each directory of the tree ($1) with a link to the place outside ($2), as fast as it can.
SWAPPER = textwrap.dedent("""
    import ctypes, os, sys
    tree, outside, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    libc = ctypes.CDLL(None, use_errno=True)
    for n in range(count):
        os.symlink(outside, f"{tree}/link{n}")
    print("ready", flush=True)
    while True:
        for n in range(count):
            for _ in range(2):
                libc.renameat2(-100, f"{tree}/d{n}".encode(), -100, f"{tree}/link{n}".encode(), 2)
""")

# What is fooled: it walks by names.
NAIVE = textwrap.dedent("""
    import os, shutil, sys
    upper, tree = sys.argv[1:]
    for directory, _, files in os.walk(upper):
        target = os.path.join(tree, os.path.relpath(directory, upper))
        for name in files:
            try:
                shutil.copyfile(os.path.join(directory, name), os.path.join(target, name))
            except OSError:
                pass
""")


@pytest.fixture
def raced(sandbox):
    for n in range(DIRECTORIES):
        sandbox.write(sandbox.project / f"d{n}" / "there", "host")
    layered = Layered(sandbox)
    layered.inside(f"for d in $(seq 0 {DIRECTORIES - 1}); do for f in $(seq {FILES}); do echo agent >d$d/planted$f;"
                   "done; echo agent >d$d/there; done")
    return layered


def swapping(layered, outside):
    sandbox = layered.sandbox
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, str(sandbox.project), str(outside), str(DIRECTORIES)],
                               stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, **sandbox.popen_keywords())
    assert swapper.stdout.readline() == b"ready\n"
    return swapper


def end(swapper):
    swapper.kill()
    swapper.wait()
    swapper.stdout.close()


def test_control_a_naive_copier_is_fooled(sandbox, raced):
    outside = sandbox.make_directory(sandbox.base / "elsewhere")
    swapper = swapping(raced, outside)
    try:
        for _ in range(50):
            sandbox.run_outside([sys.executable, "-c", NAIVE, raced.upper, sandbox.project])
            if os.listdir(outside):
                break
    finally:
        end(swapper)
    assert os.listdir(outside)


def test_nothing_outside_is_written(sandbox, raced):
    outside = sandbox.make_directory(sandbox.base / "elsewhere")
    sandbox.write(outside / "there", "outside")
    before = os.stat(outside)
    swapper, applied = swapping(raced, outside), 0
    try:
        for _ in range(4):
            done = sandbox.run_atoll("apply", raced.session, timeout=60)
            assert done.code in (0, 1, 125), done
            applied += done.out.startswith("applied")
            sandbox.run_atoll("undo", raced.session, timeout=60)
    finally:
        end(swapper)
    assert os.listdir(outside) == ["there"] and (outside / "there").read_text() == "outside"
    after = os.stat(outside)
    assert (after.st_mtime_ns, after.st_mode) == (before.st_mtime_ns, before.st_mode)
    # It was no empty victory.
    assert applied


# Writes every file of the tree anew, by rename and in place, with content of its own that names the writer.
WRITER = textwrap.dedent("""
    import os, sys
    tree, count = sys.argv[1], int(sys.argv[2])
    print("ready", flush=True)
    number = 0
    while True:
        for n in range(count):
            number += 1
            path = f"{tree}/d{n}/there"
            with open(path + ".tmp", "w") as file:
                file.write(f"host {number}")
            os.rename(path + ".tmp", path)
            with open(f"{tree}/log", "w") as file:
                file.write(f"{n} {number}")
""")


def test_a_write_of_the_host_meanwhile_is_never_lost(sandbox, raced):
    """The last write of the host to each path is there, or kept by the session for an undo."""
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(sandbox.project), str(DIRECTORIES)],
                                  stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, **sandbox.popen_keywords())
        try:
            writer.stdout.readline()
            done = sandbox.run_atoll("apply", raced.session, timeout=60)
            assert done.code in (0, 1), done
        finally:
            end(writer)
        for n in range(DIRECTORIES):
            # Whoever comes last wins, as with any two programs that rename; but the agent's content stands only where
            # the host had not written since the judgement, so a conflict is what every path must be.
            assert (sandbox.project / f"d{n}" / "there").read_text().startswith("host"), n
        for entry in os.scandir(sandbox.project):
            if entry.name.startswith(".atoll"):
                shutil.rmtree(entry.path)
                raise AssertionError("left behind")
        sandbox.run_atoll("undo", raced.session)
