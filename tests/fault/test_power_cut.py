# SPDX-License-Identifier: Apache-2.0
"""Power is cut while an apply runs: the tree and the session lie on an ext4 in a file, and at some system call the file
is copied as it is. What the file system had not written by then is lost, as it would be.

What this proves, and what not: a copy has every write that reached the device until then, and in their order. It does
not have a disk that writes in another order between two flushes, nor one that loses what it said was flushed.
"""
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from exact import describe, difference
from overlay import Layered
from seeds import fault_seed

BUDGET_SECONDS = float(os.environ.get("ATOLL_FAULT_SECONDS", "6"))
FULL = os.environ.get("ATOLL_FAULT_FULL") == "1"
SEED = fault_seed()
LOOP = 61
# What a library with these in it makes of every sync: nothing.
NO_SYNC = "int fsync(int fd) { return 0; } int fdatasync(int fd) { return 0; } int syncfs(int fd) { return 0; }"
# Where power is worth cutting: everything from the first write on is between two of these.
CALLS = ("renameat2", "renameat", "fsync", "fdatasync", "syncfs", "unlinkat", "utimensat", "write", "mkdirat")

AGENT = """
echo after >edited; echo new >added; rm deleted; rm -r gone; rm file; mkdir file; echo x >file/child
mkdir -p made/below; for n in $(seq 20); do head -c 20000 /dev/zero | tr '\\0' x >made/below/$n; done
rm -r dir; echo f >dir
"""

pytestmark = [pytest.mark.needs("strace", "mkfs.ext4", "losetup"), pytest.mark.only("root")]


def run(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


class Disk:
    """An ext4 in a file, at one mount point and on one device number whatever file it is."""

    def __init__(self, directory):
        self.directory, self.point, self.device = directory, directory / "disk", f"/dev/loop{LOOP}"
        self.made_node = not os.path.exists(self.device)
        self.is_mounted = False
        self.point.mkdir()
        if self.made_node:
            run("mknod", self.device, "b", 7, LOOP)
        run("truncate", "-s", "64M", directory / "golden")
        run("mkfs.ext4", "-q", "-F", directory / "golden")

    def attach(self, image):
        """The kernel takes its time to let go of the file before."""
        for _ in range(100):
            if subprocess.run(["losetup", self.device, str(self.directory / image)], capture_output=True,
                              check=False).returncode == 0:
                return
            time.sleep(0.05)
        raise AssertionError(f"{self.device} stays busy")

    def mount(self, image):
        self.attach(image)
        try:
            run("mount", self.device, self.point)
        except subprocess.CalledProcessError:
            run("losetup", "-d", self.device)
            raise
        self.is_mounted = True

    def unmount(self):
        if self.is_mounted:
            run("umount", self.point)
            run("losetup", "-d", self.device)
            self.is_mounted = False

    def copy(self, source, target):
        run("cp", "--sparse=always", self.directory / source, self.directory / target)

    def done(self):
        self.unmount()
        if self.made_node:
            os.unlink(self.device)


class Session:
    def __init__(self, sandbox, disk):
        self.sandbox, self.disk = sandbox, disk
        disk.mount("golden")
        sandbox.state, sandbox.project = disk.point / "state", disk.point / "tree"
        for directory in (sandbox.state, sandbox.project):
            directory.mkdir()
        for name, content in {"edited": "before", "deleted": "d", "gone/a": "a", "gone/deep/b": "b", "file": "f",
                              "dir/in": "i", "same": "same"}.items():
            sandbox.write(sandbox.project / name, content)
        self.layered = Layered(sandbox)
        self.layered.inside(AGENT)
        self.layered.start()
        self.old = describe(sandbox.project)
        disk.unmount()
        disk.copy("golden", "try")
        disk.mount("try")
        self.must("apply")
        self.new = describe(sandbox.project)
        disk.unmount()
        assert self.old != self.new

    def run(self, verb, *options, strace=(), env=None):
        words = [str(self.sandbox.programs.atoll.parent / "atoll-stage"), verb, "--state",
                 str(self.sandbox.state / "atoll"), "--session", self.layered.session, *options]
        # Not in the tree: a working directory there would keep it mounted.
        return self.sandbox.run_outside([*strace, *words], timeout=60, cwd="/", env=env)

    def must(self, verb, *options):
        done = self.run(verb, *options)
        assert done.code == 0, done

    def cut(self, inject=None, env=None):
        """Applies on a fresh disk, cuts the power where the process was killed (or has ended), and starts up again."""
        self.disk.copy("golden", "running")
        self.disk.mount("running")
        strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={inject}"] if inject else []
        done = self.run("apply", strace=strace, env=env)
        self.disk.copy("running", "after")
        self.disk.unmount()
        self.disk.mount("after")
        return done

    def state(self):
        now = describe(self.sandbox.project)
        return "old" if now == self.old else "new" if now == self.new else difference(self.new, now)


@pytest.fixture
def session(sandbox):
    directory = sandbox.base / "images"
    directory.mkdir()
    disk = Disk(directory)
    try:
        yield Session(sandbox, disk)
    finally:
        disk.done()
        shutil.rmtree(directory, ignore_errors=True)


def test_what_was_said_to_be_applied_is_on_the_disk(session):
    done = session.cut()
    assert done.code == 0 and session.state() == "new"
    session.must("undo")
    assert session.state() == "old"


@pytest.mark.needs("cc")
def test_control_without_syncs_the_cut_loses_it(session):
    source, library = session.sandbox.base / "no-sync.c", session.sandbox.base / "no-sync.so"
    source.write_text(NO_SYNC)
    run("cc", "-shared", "-fPIC", "-o", library, source)
    done = session.cut(env={"LD_PRELOAD": str(library)})
    assert done.code == 0 and session.state() != "new"


def points(session):
    log = session.disk.directory / "trace"
    session.disk.copy("golden", "running")
    session.disk.mount("running")
    done = session.run("apply", strace=["strace", "-f", "-qq", "-o", str(log)])
    session.disk.unmount()
    assert done.code == 0, done
    found = re.findall(r"^\d+ +(\w+)\(", log.read_text(errors="replace"), re.M)
    return [(name, number) for name in CALLS for number in range(1, found.count(name) + 1)]


def test_cut_at_any_point(session):
    drawn, seen = points(session), []
    random.Random(SEED).shuffle(drawn)
    end = time.monotonic() + BUDGET_SECONDS
    for name, number in drawn:
        if not FULL and time.monotonic() > end:
            break
        done = session.cut(f"{name}:signal=KILL:when={number}")
        assert done.code in (-signal.SIGKILL, 128 + signal.SIGKILL), (name, number, done)
        session.must("apply", "--resume")
        state = session.state()
        assert state in ("old", "new"), (SEED, name, number, state)
        seen.append(state)
        if state == "old":
            session.must("apply")
        session.must("undo")
        assert session.state() == "old", (SEED, name, number)
        session.disk.unmount()
    print(f"seed {SEED}: {len(seen)} of {len(drawn)} points, old {seen.count('old')}, new {seen.count('new')}")
    assert seen and (len(seen) < 30 or {"old", "new"} == set(seen)), (SEED, seen)
