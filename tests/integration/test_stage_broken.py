# SPDX-License-Identifier: Apache-2.0
"""Sessions that another version of atoll staged, or that are damaged: nothing but that one is in the way of nobody, and
it can be thrown away."""
import os
import random
import shutil
import struct
import subprocess

import pytest

from stage import Staged

NOISE = random.Random(1).randbytes(300)


def put(name, data):
    def do(stage):
        path = stage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        for made in (path, *path.relative_to(stage).parents):
            os.chown(stage / made, os.stat(stage).st_uid, os.stat(stage).st_gid)
    return do


def old_record(number):
    """As builds before type 60 wrote it: the type is at byte 6 of the frame."""
    def do(stage):
        frame = bytearray((stage / "trees").read_bytes())
        assert frame[6:8] == struct.pack("<H", 60)
        frame[6:8] = struct.pack("<H", number)
        put("trees", bytes(frame))(stage)
    return do


def special(make):
    def do(stage):
        (stage / "trees").unlink()
        make(stage / "trees")
    return do


# What no verb can read, and only discard and gc may take.
UNREADABLE = {
    "type-56": old_record(56), "type-58": old_record(58), "trees-noise": put("trees", NOISE),
    "trees-empty": put("trees", b""), "trees-fifo": special(os.mkfifo), "trees-directory": special(os.mkdir),
    "trees-link": special(lambda path: path.symlink_to("/etc/passwd")),
    "chain-noise": put("chain", NOISE), "no-live": lambda stage: shutil.rmtree(stage / "live"),
}


@pytest.fixture
def staged(sandbox):
    sandbox.write(sandbox.project / "file", "host\n")
    staged = Staged(sandbox)
    staged.run("echo agent >>file")
    return staged


def listed(staged):
    return staged.session in staged.verb("ps", "-a").out


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_says_so_and_can_be_thrown_away(staged, name):
    UNREADABLE[name](staged.directory)
    for verb in ("diff", "apply", "undo"):
        done = staged.verb(verb, staged.session, code=125)
        assert f"the staged changes of session {staged.session} cannot be read" in done.err or name == "no-live", done
        assert f"atoll discard {staged.session}" in done.err, done
    assert staged.verb("snapshot", staged.session, code=125).err and listed(staged)
    assert (staged.project / "file").read_text() == "host\n"
    done = staged.verb("gc", "--keep", "0")
    assert f"{staged.session} stays: it " in done.out and "--unreviewed" in done.out, done
    done = staged.verb("discard", staged.session)
    assert done.out == f"{staged.session} holds no staged changes any more\n" and not staged.directory.exists()
    assert listed(staged)
    staged.verb("gc", "--keep", "0")
    assert not (staged.directory.parent).exists() and not listed(staged)


@pytest.mark.parametrize("name", [*UNREADABLE, "policy", "journal", "snapshot", "session"])
def test_gc_takes_it_when_told_to(staged, name):
    others = {"policy": put("../policy.bin", NOISE), "journal": put("applies/1/journal", NOISE),
              "snapshot": put("snapshots/x", NOISE), "session": put("../session.bin", NOISE)}
    {**UNREADABLE, **others}[name](staged.directory)
    if name == "session":
        os.utime(staged.directory.parent, (0, 0))   # a session without a record may be one that begins
    assert listed(staged)
    staged.verb("gc", "--keep", "0", "--unreviewed")
    assert not staged.directory.parent.exists()


def test_one_that_cannot_be_read_keeps_nothing_that_it_cannot_stand_on(staged):
    """Its chain may name any layer that was ever sealed: those stay; who sealed none goes."""
    broken = staged.directory
    put("chain", NOISE)(broken)
    names = {}
    for name in ("plain", "sealed"):
        staged.run("echo more >>file")
        staged.verb("apply" if name == "plain" else "discard", staged.session)
        names[name] = staged.directory.parent
    done = staged.verb("gc", "--keep", "0")
    assert not names["plain"].exists() and names["sealed"].exists(), done
    assert f"atoll discard {broken.parent.name}" in done.out, done
    staged.verb("discard", broken.parent.name)
    staged.verb("gc", "--keep", "0")
    assert not names["sealed"].exists() and not broken.parent.exists()


def test_who_stands_on_it_goes_first(staged):
    origin = staged.session
    fork = staged.sandbox.run_atoll("fork", origin, "-q", "--", "sh", "-c", "echo fork >>file")
    assert fork.code == 0, fork
    put("trees", NOISE)(staged.directory)
    done = staged.verb("discard", origin, code=125)
    other = done.err.split("session ")[1].split()[0]
    assert other != origin and f"first run: atoll discard {other}" in done.err, done
    staged.verb("discard", other)
    staged.verb("discard", origin)
    assert not staged.directory.exists()


def test_what_cannot_be_removed_keeps_nothing_else(staged):
    """The leftover of a removal that still cannot be made; a mount is in it."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts")
    sessions = staged.directory.parents[1]
    stuck = sessions / "0123456789ab.gone" / "mounted"
    stuck.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", stuck], check=True)
    try:
        done = staged.verb("gc", "--keep", "0", "--unreviewed", code=1)
        assert not staged.directory.parent.exists() and "could not be removed" in done.out, done
    finally:
        subprocess.run(["umount", stuck], check=True)
