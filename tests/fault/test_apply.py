# SPDX-License-Identifier: Apache-2.0
"""The process is killed at a system call of apply, of undo, and of the recovery itself: after the next recovery the
tree is all old or all new to the byte, and an undo still gives the old one back.

A sample by default (the seed is in the failure); ATOLL_FAULT_FULL=1 (make check-fault) takes every system call.
"""
import collections
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

BUDGET_SECONDS = float(os.environ.get("ATOLL_FAULT_SECONDS", "4"))
FULL = os.environ.get("ATOLL_FAULT_FULL") == "1"
SEED = fault_seed()
LEFT_OUT = {"exit_group", "exit"}

AGENT = """
echo after >edited; echo new >added; rm deleted; rm -r gone; rm file; mkdir file; echo x >file/child; rm -r dir
echo now >dir; mkdir -p made/below; echo a >made/below/a; ln made/below/a made/link; ln -s nowhere symlink
chmod 700 kept; echo y >kept/y; mkdir made/closed; echo z >made/closed/z; chmod 555 made/closed
touch -d 2001-01-01 made edited
"""

pytestmark = [pytest.mark.needs("strace"), pytest.mark.only("root", "user")]


class Crashing:
    def __init__(self, sandbox, tree):
        self.sandbox, self.tree, self.template = sandbox, tree, sandbox.base / "template"
        for name, content in {"edited": "before", "deleted": "d", "gone/a": "a", "gone/deep/b": "b", "file": "f",
                              "dir/in/it": "i", "kept/x": "x", "same": "same"}.items():
            sandbox.write(self.template / name, content)
        subprocess.run(["cp", "-a", f"{self.template}/.", str(tree)], check=True)
        self.layered = Layered(sandbox, trees=[tree])
        self.layered.inside(AGENT)
        self.renew()
        self.old = describe(tree)
        self.must("apply")
        self.new = describe(tree)
        assert self.new != self.old and b"made/closed/z" in self.new
        self.must("undo")
        assert describe(tree) == self.old

    def renew(self):
        """The tree and the session as before the first apply."""
        shutil.rmtree(self.layered.directory / "applies", ignore_errors=True)
        for entry in os.scandir(self.tree):
            subprocess.run(["rm", "-rf", entry.path], check=True)
        subprocess.run(["cp", "-a", f"{self.template}/.", str(self.tree)], check=True)
        self.layered.start()

    def words(self, verb, *options):
        return [str(self.sandbox.programs.atoll.parent / "atoll-stage"), verb, "--state",
                str(self.sandbox.state / "atoll"), "--session", self.layered.session, *options]

    def run(self, verb, *options, strace=()):
        prefix = ["strace", "-f", "-qq", *strace] if strace else []
        return self.sandbox.run_outside([*prefix, *self.words(verb, *options)], timeout=60)

    def must(self, verb, *options):
        done = self.run(verb, *options)
        assert done.code == 0, done

    def points(self, verb, *options):
        """(system call, n) of a whole run: the process can be killed right before each."""
        log = self.sandbox.base / "trace"
        done = self.run(verb, *options, strace=["-o", str(log)])
        assert done.code == 0, done
        counts = collections.Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text(errors="replace"), re.M))
        return [(name, number) for name, count in sorted(counts.items()) if name not in LEFT_OUT
                for number in range(1, count + 1)]

    def kill(self, point, verb, *options):
        name, number = point
        done = self.run(verb, *options,
                        strace=["-o", "/dev/null", "-e", f"inject={name}:signal=KILL:when={number}"])
        assert done.code in (-signal.SIGKILL, 128 + signal.SIGKILL, 0), (point, done)

    def state(self):
        now = describe(self.tree)
        assert now in (self.old, self.new), (difference(self.old, now), difference(self.new, now))
        assert not [name for name in now if name.startswith(b".atoll")]
        return "old" if now == self.old else "new"

    def check(self):
        """Recovers; all old or all new; and from there both ways still work."""
        self.must("apply", "--resume")
        state = self.state()
        if state == "old":
            self.must("apply")
            assert self.state() == "new"
        self.must("undo")
        assert self.state() == "old"
        return state


@pytest.fixture(params=["near", "far"])
def crashing(request, sandbox):
    """near: the session lies on the file system of the tree. far: it does not, so contents are copied."""
    if request.param == "near":
        yield Crashing(sandbox, sandbox.project)
        return
    tree = sandbox.base.__class__(f"/dev/shm/atoll-crash-{os.getpid()}-{time.monotonic_ns()}")
    tree.mkdir()
    sandbox.own(tree)
    try:
        yield Crashing(sandbox, tree)
    finally:
        subprocess.run(["rm", "-rf", str(tree)], check=True)


def sample(points):
    drawn = list(points)
    random.Random(SEED).shuffle(drawn)
    end = time.monotonic() + BUDGET_SECONDS
    for point in drawn:
        if not FULL and time.monotonic() > end:
            return
        yield point


def check_sample(seen):
    """Both sides of the commit were hit, where the sample is not so small that it may miss one."""
    assert sum(seen.values()) and (sum(seen.values()) < 30 or set(seen) == {"old", "new"}), (SEED, seen)


def test_killed_at_any_call_of_apply(crashing):
    crashing.renew()
    points, seen = crashing.points("apply"), collections.Counter()
    for point in sample(points):
        crashing.renew()
        crashing.kill(point, "apply")
        try:
            seen[crashing.check()] += 1
        except AssertionError as error:
            raise AssertionError(f"seed {SEED}, killed before {point}: {error}") from error
    print(f"seed {SEED}: {sum(seen.values())} of {len(points)} points, {dict(seen)}")
    check_sample(seen)


def test_killed_at_any_call_of_undo(crashing):
    crashing.renew()
    crashing.must("apply")
    points, seen = crashing.points("undo"), collections.Counter()
    for point in sample(points):
        crashing.renew()
        crashing.must("apply")
        crashing.kill(point, "undo")
        try:
            crashing.must("apply", "--resume")
            state = crashing.state()
            seen[state] += 1
            if state == "new":
                crashing.must("undo")
            assert crashing.state() == "old"
            crashing.must("apply")
            assert crashing.state() == "new"
        except AssertionError as error:
            raise AssertionError(f"seed {SEED}, killed before {point}: {error}") from error
    check_sample(seen)


def edit_host(crashing):
    """What both sides changed: a file, one that the session deleted, one in a directory that it removed."""
    crashing.renew()
    time.sleep(0.02)
    for name in ("edited", "deleted", "gone/a"):
        (crashing.tree / name).write_text("host")
        os.utime(crashing.tree / name, (10 ** 9, 10 ** 9))
    for name in ("gone", "."):
        os.utime(crashing.tree / name, (10 ** 9, 10 ** 9))


def test_killed_while_conflicts_are_settled(crashing):
    """All is settled or nothing is; the undo gives back what the host had, which is a conflict again."""
    edit_host(crashing)
    crashing.old = describe(crashing.tree)
    points = crashing.points("apply", "--theirs")
    crashing.new = describe(crashing.tree)
    assert crashing.new != crashing.old and b"gone/a" not in crashing.new
    for point in points if FULL else random.Random(SEED).sample(points, 6):
        edit_host(crashing)
        crashing.kill(point, "apply", "--theirs")
        crashing.must("apply", "--resume")
        if crashing.state() == "old":
            crashing.must("apply", "--theirs")
        assert crashing.state() == "new", (SEED, point)
        crashing.must("undo")
        assert crashing.state() == "old", (SEED, point)
        assert crashing.run("apply", "--dry-run").code == 1, (SEED, point)


def test_killed_again_while_it_recovers(crashing):
    """A crash in the middle of the renames, then one at any call of the recovery, then another recovery."""
    crashing.renew()
    renames = [point for point in crashing.points("apply") if point[0] == "renameat2"]
    middle = renames[len(renames) * 2 // 3]
    crashing.renew()
    crashing.kill(middle, "apply")
    points = crashing.points("apply", "--resume")
    for point in sample(points):
        crashing.renew()
        crashing.kill(middle, "apply")
        crashing.kill(point, "apply", "--resume")
        try:
            assert crashing.check() == "new"
        except AssertionError as error:
            raise AssertionError(f"seed {SEED}, killed before {middle}, then {point}: {error}") from error


def test_an_edit_between_crash_and_recovery_is_not_undone(crashing):
    """What stands there by then is a person's, not what the apply left."""
    crashing.renew()
    last = [point for point in crashing.points("apply") if point[0] == "renameat2"][-1]
    crashing.renew()
    crashing.kill(last, "apply")
    edited = crashing.tree / "edited"
    assert edited.read_text() == "after\n"
    with open(edited, "a") as file:
        file.write("a person's\n")
    crashing.must("apply", "--resume")
    undone = crashing.run("undo")
    assert undone.code == 1 and str(edited) in undone.out + undone.err, undone
    assert edited.read_text() == "after\na person's\n" and (crashing.tree / "deleted").read_text() == "d"
