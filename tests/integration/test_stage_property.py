# SPDX-License-Identifier: Apache-2.0
"""Random operations inside a sandbox against the same ones on a plain copy, on every file system, as both identities:
after a full apply the trees are the same, after undo the original is. Then the same while the host goes on with its own
work: what the host did stays, what the sandbox did arrives or is listed. The oracle is Python and the plain copy.

A seed is a small project of its own with its own operations. Many of them are directories of one staged tree, since a
start costs more than they do; what is done with the whole (how many runs, one apply or more) is drawn for each batch.
ATOLL_ROUNDS=N takes N new seeds in all, ATOLL_SEED=N repeats one batch, ATOLL_OPERATIONS=N makes sequences longer."""
import json
import os
import random
import shutil
import subprocess

import pytest

from atoll import ROOT
from loop import KINDS, Loop, need
from seeds import fresh, seeds
from stage import Staged, from_json
from tree_state import CONTENT, GID, LINKS, MODE, MTIME, UID, XATTRS, differences, tree_state, without

COUNT = int(os.environ.get("ATOLL_OPERATIONS", "25"))
HOST_COUNT = 5
BATCH = 10             # seeds in one tree; 32 batches of them are in every `make check`
LIBRARY = ROOT / "tests" / "lib"
PLAIN_UID = 54321      # the operations of root's plain copy: as inside, no privilege helps
IS_ROOT = os.geteuid() == 0
PLACES = ("home", *KINDS) if not IS_ROOT else tuple(KINDS)


def operations_source():
    """One text for standard input: the sandbox sees no file of the tests."""
    state = (LIBRARY / "tree_state.py").read_text()
    operations = (LIBRARY / "operations.py").read_text()
    lines = [line for line in operations.splitlines() if not line.startswith("from tree_state")]
    return (state.split("if __name__")[0] + "\n".join(lines) + "\n").encode()


SOURCE = operations_source()
PYTHON = ["/usr/bin/python3", "-"]


def make_project(sandbox, place, chance, has_links):
    """What a seed begins with."""
    sandbox.make_directory(place)
    for i in range(chance.randrange(4, 16)):
        directory = "/".join(chance.choice(("src", "doc", "a", "b", "deep/er")) for _ in range(chance.randrange(4)))
        path = place / directory / f"file{i}"
        if any(parent.is_file() for parent in path.parents):
            continue
        sandbox.write(path, chance.randbytes(chance.choice((0, 10, 10, 5000))), chance.choice((0o644, 0o755, 0o600)))
        if chance.random() < 0.3:
            os.setxattr(path, "user.before", b"x")
            os.setxattr(path.parent, "user.one", b"before")
        os.utime(path, ns=(chance.randrange(10 ** 18),) * 2)
        if chance.random() < 0.1:
            path.chmod(0)
        if has_links and chance.random() < 0.4 and not (place / f"linked{i}").exists():
            os.link(path, place / f"linked{i}")
    sandbox.own(make_link(place / "link"))
    if chance.random() < 0.2:
        os.truncate(sandbox.write(place / "sparse", b"begin"), 1 << 20)


def make_link(path):
    path.symlink_to("src")
    return path


def marks_of(root):
    """{path: (inode, ctime)}: what tells whether the host has touched something."""
    marks = {}
    for place, names, files in os.walk(root):
        for path in [place, *(os.path.join(place, name) for name in names + files)]:
            status = os.lstat(path)
            marks[os.path.relpath(path, root)] = (status.st_ino, status.st_ctime_ns)
    return marks


def above(path):
    """The directories that hold it, the project of its seed last."""
    parts = path.split("/")
    return ["/".join(parts[:i]) for i in range(len(parts) - 1, 0, -1)]


def newer(state, made, seeds):
    """What is known of all, once these have been at work again."""
    worked = {f"s{seed}" for seed in seeds}
    return {**{path: entry for path, entry in state.items() if path.split("/")[0] not in worked}, **made}


class Batch:
    """One staged tree with the projects of many seeds, and the plain copy of it."""

    def __init__(self, sandbox, seed, has_links, size=BATCH):
        self.sandbox, self.seed = sandbox, seed
        self.chance = random.Random(f"batch {seed}")
        self.seeds = [str(seed * 1000 + i) for i in range(size)]
        for one in self.seeds:
            make_project(sandbox, sandbox.project / f"s{one}", random.Random(f"project {one}"), has_links)
        self.staged = Staged(sandbox)
        self.is_far = os.stat(sandbox.state).st_dev != os.stat(sandbox.project).st_dev
        self.copy = sandbox.project.with_name("copy")
        subprocess.run(["cp", "-a", sandbox.project, self.copy], check=True)
        self.before = self.staged.state()

    def end(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.sandbox.project, self.copy], check=True)
        subprocess.run(["rm", "-rf", self.copy], check=True)

    def operate(self, kind, place, uid=None, seeds=None):
        """The operations of these seeds, or all, outside of any sandbox."""
        keywords = self.sandbox.popen_keywords(cwd=place)
        if uid:
            subprocess.run(["chown", "-R", f"{uid}:{uid}", place], check=True)
            keywords.update({"user": uid, "group": uid, "extra_groups": []})
        words = [*PYTHON, kind, str(HOST_COUNT if kind == "host" else COUNT), *(seeds or self.seeds)]
        done = subprocess.run(words, input=SOURCE, capture_output=True, check=True, timeout=300, **keywords)
        return json.loads(done.stdout)

    def steps(self, runs):
        """[(kind, seeds)] of so many runs: each does a share of the seeds, or goes on with all of them."""
        if runs > 1 and self.chance.random() < 0.5:
            return [(f"inside{i}", self.seeds) for i in range(runs)]
        share = len(self.seeds) // runs + 1
        return [("inside", self.seeds[i * share:(i + 1) * share]) for i in range(runs)]

    def run_steps(self, steps):
        """Each run on the layers of the one before: their outcomes, and the state in the end."""
        outcomes, state = [], {}
        for i, (kind, seeds) in enumerate(steps):
            options = ["--continue", self.staged.session] if i else []
            if i and self.chance.random() < 0.5:
                self.staged.verb("snapshot", self.staged.session, f"step{i}")
            done = self.staged.run([*PYTHON, kind, str(COUNT), *seeds], stdin=SOURCE, options=options, timeout=300)
            made = json.loads(done.bytes)
            outcomes.append(made["outcomes"])
            state = newer(state, made["state"], seeds)
        return {"outcomes": outcomes, "state": state}

    def run_inside(self, kind="inside"):
        return self.run_steps([(kind, self.seeds)])

    def operate_steps(self, steps, place, uid):
        """The same outside."""
        outcomes, state = [], {}
        for kind, seeds in steps:
            made = self.operate(kind, place, uid, seeds)
            outcomes.append(made["outcomes"])
            state = newer(state, made["state"], seeds)
        return {"outcomes": outcomes, "state": state}

    def apply_in_parts(self):
        """Some seeds by themselves first, in any order, the rest at once; the number of applies."""
        parts = self.chance.sample(self.seeds, min(len(self.seeds), self.chance.choice((0, 0, 1, 3))))
        applies = 0
        for one in parts:
            place = self.sandbox.project / f"s{one}"
            done = self.staged.apply("--json", "--", place, code=None)
            assert done.code in (0, 1), done
            applies += json.loads(done.out)["apply"] is not None
        return applies

    def undo_all(self, applies):
        for _ in range(applies):
            self.staged.undo()


def same_as_inside(inside, applied):
    left_out, applied = (UID, GID, LINKS), {path: entry for path, entry in applied.items() if path != "."}
    return differences(without(inside["state"], *left_out, of_directories=(MTIME,)),
                       without(applied, *left_out, of_directories=(MTIME,)))


def times_of_new(before, state):
    """Of directories that the sandbox made."""
    return {path: entry[MTIME] for path, entry in state.items()
            if entry[MODE].startswith("0o4") and not before.get(path, [""])[MODE].startswith("0o4")}


def links_among(changed, state):
    """{path: its other names} of what is applied. A file that nothing changed but its number of names stays apart."""
    groups = {path: [name for name in entry[LINKS].split(" = ") if name in changed]
              for path, entry in state.items() if path in changed}
    return {path: names for path, names in groups.items() if len(names) > 1}


def check_owner(sandbox, state):
    owners = {tuple(entry[UID:GID + 1]) for entry in state.values()}
    assert owners == {(sandbox.identity.uid, sandbox.identity.gid)}, owners


def check_alone(batch):
    """Nobody else at work: apply gives what the plain run gave, undo what was there."""
    sandbox, staged = batch.sandbox, batch.staged
    steps = batch.steps(batch.chance.choice((1, 1, 2, 3)))
    inside = batch.run_steps(steps)
    assert differences(batch.before, staged.state()) == [], "the run changed the host"
    plain = batch.operate_steps(steps, batch.copy, PLAIN_UID if sandbox.identity.is_root else None)
    assert inside["outcomes"] == plain["outcomes"]
    # Times are those of the run inside; which names are one file only the plain run says, since an overlay shows two
    # numbers for a file below that was linked.
    left_out = (UID, GID, LINKS)
    assert differences(without(plain["state"], MTIME, *left_out), without(inside["state"], MTIME, *left_out)) == []
    changed = set(staged.diff())
    applies = batch.apply_in_parts()
    applies += json.loads(staged.apply("--json").out)["apply"] is not None
    applied = staged.state()
    assert same_as_inside(inside, applied) == [], staged.verb("diff", code=None)
    assert differences(times_of_new(batch.before, inside["state"]), times_of_new(batch.before, applied)) == []
    assert differences(links_among(changed, plain["state"]), links_among(changed, applied)) == []
    check_owner(sandbox, applied)
    assert staged.diff() == {}, "something is left after a full apply"
    batch.undo_all(applies)
    assert differences(batch.before, staged.state()) == []


def same(one, other, fields=(MODE, CONTENT, XATTRS)):
    return one is other is None or (one is not None and other is not None and
                                    all(one[field] == other[field] for field in fields))


class Sides:
    """One path as it was, as the sandbox left it, as the host did, and after the apply."""

    def __init__(self, path, before, inside, host, after):
        self.path = path
        self.before, self.inside, self.host, self.after = (
            state.get(path) for state in (before, inside, host, after))

    def is_directory(self, side):
        return side is not None and side[MODE].startswith("0o4")

    def fault(self, touched, is_listed):
        """What is wrong, or None. touched: by the host, since the start."""
        is_touched = self.path in touched
        staged = not same(self.inside, self.before) or (
            self.inside is not None and not self.is_directory(self.inside) and self.inside[MTIME] != self.before[MTIME])
        if is_touched and self.host is not None and self.is_directory(self.host):
            kept = self.is_directory(self.after) and (same(self.after, self.host) or same(self.after, self.inside))
            return None if kept else "a directory of the host's is gone or another"
        if is_touched and self.host is not None:
            return None if same(self.after, self.host, (MODE, CONTENT, XATTRS, MTIME)) else "the host's work is lost"
        if is_touched:
            # A file that looks as if the sandbox had renamed it is listed as added.
            is_made = is_listed and same(self.after, self.inside)
            return None if self.after is None or is_made else "what the host deleted is back"
        if not staged:
            return None if same(self.after, self.host) else "changed by nobody, and another"
        if same(self.after, self.inside):
            return None
        # It goes back under this name, and somebody has written to it under another.
        if self.inside is not None and touched & set(self.inside[LINKS].split(" = ")):
            return None
        return None if same(self.after, self.host) and is_listed else "neither applied nor listed"


def touched_by(batch, work):
    """What work() did to the tree: the state afterwards, and the paths whose inodes it touched."""
    before = marks_of(batch.sandbox.project)
    work()
    after = marks_of(batch.sandbox.project)
    return batch.staged.state(), {path for path in {*before, *after} if before.get(path) != after.get(path)}


def told_of(batch, done, what):
    """{path: what is told of it} of what an apply or undo did, or left."""
    assert done.code in (0, 1), done
    prefix = str(batch.staged.project) + "/"
    return {from_json(item["path"]).removeprefix(prefix): item for item in json.loads(done.out)[what]}


def left_of(batch, done):
    return told_of(batch, done, "left")


def is_in(path, paths):
    return any(name in paths for name in [path, *above(path)])


def no_wolves(left, touched, *states):
    """What is left has to do with something that the host touched."""
    def has_reason(path):
        linked = {name for state in states for name in state.get(path, [""] * 7)[LINKS].split(" = ")}
        return is_in(path, touched) or any(name.startswith(path + "/") for name in touched) or linked & touched

    wolves = [left[path] for path in left if not has_reason(path)]
    assert wolves == [], wolves


def check_sides(left, done, touched, *states):
    faults = []
    for path in sorted(set().union(*states) - {"."}):
        sides = Sides(path, *states)
        fault = sides.fault(touched, is_in(path, left) or path in done)
        if fault:
            faults.append(f"{path!r}: {fault}: {sides.before} | wanted {sides.inside} | host {sides.host} | "
                          f"after {sides.after} | {left.get(path)}")
    assert faults == [], "\n".join(faults[:8])


def check_with_host(batch):
    """The host works meanwhile: none of that is lost, and all of the sandbox's arrives or is listed as left."""
    staged = batch.staged
    inside = batch.run_inside()["state"]
    host, touched = touched_by(batch, lambda: batch.operate("host", batch.sandbox.project))
    done = staged.apply("--json", code=None)
    left = left_of(batch, done)
    check_sides(left, told_of(batch, done, "applied"), touched, batch.before, inside, host, staged.state())
    no_wolves(left, touched, batch.before, host)
    if json.loads(done.out)["apply"] is not None:
        staged.undo()
    # From another file system a copy goes back: it is no name of a file that the apply left where it was.
    left_out = (LINKS,) if batch.is_far else ()
    assert differences(without(host, *left_out), without(staged.state(), *left_out)) == []


def check_undo(batch):
    """The host works between the apply and the undo: none of that is lost, and all else is as it was."""
    staged = batch.staged
    batch.run_inside()
    staged.apply()
    applied = staged.state()
    host, touched = touched_by(batch, lambda: batch.operate("host", batch.sandbox.project))
    done = staged.undo("--json", code=None)
    left = left_of(batch, done)
    check_sides(left, told_of(batch, done, "undone"), touched, applied, batch.before, host, staged.state())
    no_wolves(left, touched, applied, host)


def check_two_sessions(batch):
    """What one applied and took back is no conflict for the other, which began at the same state."""
    one = batch.staged
    batch.run_inside()
    two = batch.staged = Staged(batch.sandbox, policy=one.policy)
    inside = batch.run_inside(kind="other")
    one.apply()
    for one_seed in batch.chance.sample(batch.seeds, batch.chance.choice((0, 3))):
        one.undo("--", batch.sandbox.project / f"s{one_seed}", code=None)
    one.undo(code=None)
    assert differences(batch.before, one.state()) == []
    assert left_of(batch, two.apply("--json")) == {}
    assert same_as_inside(inside, two.state()) == []
    two.undo()
    assert differences(batch.before, two.state()) == []


CHECKS = {"alone": check_alone, "with-host": check_with_host, "undo": check_undo, "two": check_two_sessions}


def batches(index):
    """The seeds of the batches of one set of parameters."""
    if "ATOLL_SEED" in os.environ:
        return [int(os.environ["ATOLL_SEED"])]
    rounds = os.environ.get("ATOLL_ROUNDS")
    if rounds:
        return [fresh() for _ in range(-(-int(rounds) // (BATCH * 2 * len(CHECKS) * len(PLACES))))]
    return [index + 1]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("kind", PLACES)
def test_operations_inside_against_the_same_outside(sandbox, kind, check):
    index = list(CHECKS).index(check) * len(PLACES) + PLACES.index(kind)
    home, state = sandbox.project, sandbox.state
    for seed in batches(index):
        sandbox.state = state
        if kind == "home":
            run_batch(sandbox, home, seed, CHECKS[check])
            shutil.rmtree(home)
            continue
        need(kind)
        with Loop(kind, sandbox.base / "disk", sandbox.identity) as disk:
            run_batch(sandbox, disk / "project", seed, CHECKS[check])


def run_batch(sandbox, project, seed, check):
    chance = random.Random(f"place {seed}")
    sandbox.project = sandbox.make_directory(project)
    if chance.random() < 0.5:
        sandbox.state = sandbox.make_directory(project.with_name("state"))
    batch = Batch(sandbox, seed, check in (check_with_host, check_undo))
    try:
        check(batch)
    except AssertionError as error:
        raise AssertionError(f"ATOLL_SEED={seed}: {error}") from error
    finally:
        batch.end()


@pytest.mark.parametrize("seed", seeds(1, 3352732710))
def test_what_is_applied_path_by_path_adds_up(sandbox, seed):
    """One apply per path, in random order; then each undone, the last first."""
    batch = Batch(sandbox, seed, False, size=1)
    staged, chance, applies = batch.staged, batch.chance, 0
    inside = batch.run_inside()
    for _ in range(200):
        changes = sorted(staged.diff(), key=os.fsencode)
        if not changes:
            break
        staged.apply("--", os.path.join(staged.project, chance.choice(changes)), code=None)
        applies += 1
    # Also of a file that was renamed and then changed: nothing but our own applies has touched its directory.
    assert staged.diff() == {}
    assert same_as_inside(inside, staged.state()) == []
    for _ in range(applies):
        if staged.undo(code=None).code != 0:
            break
    assert differences(batch.before, staged.state()) == []
    batch.end()


GIT_WORK = """
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
set -e
for i in 1 2 3; do echo $i >new$i; git add new$i; git commit -qm new$i; done
git checkout -qb other HEAD~1
git rm -q src/one
echo changed >>src/two
git commit -qam changed
git checkout -q -
git merge -q --no-edit other
git tag v1
git stash list
echo more >>new1; git stash -q; git stash pop -q
git gc -q --prune=now
git status --porcelain >/dev/null
"""


@pytest.mark.needs("git")
def test_git_work_applies_whole(sandbox):
    """Commits, branches, a merge, a repack: git outside finds the repository in order, and as it was after undo."""
    project = sandbox.git_project()
    for name in ("src/one", "src/two"):
        sandbox.write(project / name, name)
    sandbox.run_outside(["sh", "-c", "git add . && git commit -qm start"], check=True)
    staged = Staged(sandbox)
    before = staged.state()
    identity = "git config --file /tmp/g user.name T; git config --file /tmp/g user.email t@example.org; " \
               "export GIT_CONFIG_GLOBAL=/tmp/g\n"
    done = staged.run(identity + GIT_WORK + "git rev-parse HEAD v1 other")
    assert done.code == 0, done
    assert staged.state() == before
    staged.apply()
    outside = sandbox.run_outside(["git", "rev-parse", "HEAD", "v1", "other"])
    assert outside.out == done.out
    assert sandbox.run_outside(["git", "fsck", "--full", "--strict"]).code == 0
    assert sandbox.run_outside(["git", "--no-optional-locks", "status", "--porcelain"]).out == " M new1\n"
    staged.undo()
    assert differences(before, staged.state()) == []
    assert sandbox.run_outside(["git", "--no-optional-locks", "status", "--porcelain"]).out == ""
