# SPDX-License-Identifier: Apache-2.0
"""Random operations inside a sandbox and on a plain copy: after a full apply the trees are the same, after undo the
original is byte-identical. Seeds: tests/lib/seeds.py; ATOLL_OPERATIONS=N makes the sequences longer."""
import json
import os
import random
import subprocess

import pytest

from atoll import ROOT
from seeds import seeds
from stage import Staged
from tree_state import GID, LINKS, MTIME, UID, differences, without

COUNT = int(os.environ.get("ATOLL_OPERATIONS", "60"))
LIBRARY = ROOT / "tests" / "lib"
PLAIN_UID = 54321      # the operations of root's plain copy: as inside, no privilege helps


def operations_source():
    """One text for standard input: the sandbox sees no file of the tests."""
    state = (LIBRARY / "tree_state.py").read_text()
    operations = (LIBRARY / "operations.py").read_text()
    lines = [line for line in operations.splitlines() if not line.startswith("from tree_state")]
    return (state.split("if __name__")[0] + "\n".join(lines) + "\n").encode()


SOURCE = operations_source()


def make_tree(sandbox, seed):
    """The project before the run."""
    chance = random.Random(seed)
    for i in range(30):
        directory = "/".join(chance.choice(("src", "doc", "a", "b", "deep/er")) for _ in range(chance.randrange(4)))
        path = sandbox.project / directory / f"file{i}"
        if any(parent.is_file() for parent in path.parents):
            continue
        sandbox.write(path, chance.randbytes(chance.choice((0, 10, 5000))), chance.choice((0o644, 0o755, 0o600)))
        if chance.random() < 0.3:
            os.setxattr(path, "user.before", b"x")
            if path.parent != sandbox.project:     # the root of a tree has only its mode to change
                os.setxattr(path.parent, "user.one", b"before")
        os.utime(path, ns=(chance.randrange(10 ** 18),) * 2)
    link = sandbox.project / "link"
    link.symlink_to("src")
    sandbox.own(link)
    os.truncate(sandbox.write(sandbox.project / "sparse", b"begin"), 1 << 20)


def run_plain(sandbox, copy, words):
    keywords = sandbox.popen_keywords(cwd=copy)
    if sandbox.identity.is_root:
        subprocess.run(["chown", "-R", f"{PLAIN_UID}:{PLAIN_UID}", copy], check=True)
        keywords.update({"user": PLAIN_UID, "group": PLAIN_UID, "extra_groups": []})
    done = subprocess.run(["/usr/bin/python3", "-", *words], input=SOURCE, capture_output=True, check=True, timeout=60,
                          **keywords)
    return json.loads(done.stdout)


def same_as_inside(inside, applied):
    left_out = (UID, GID, LINKS)
    return differences(without(inside["state"], *left_out, of_directories=(MTIME,)),
                       without(applied, *left_out, of_directories=(MTIME,)))


def links_among(changed, state):
    """{path: its other names} of what is applied. A file that nothing changed but its number of names stays apart."""
    groups = {path: [name for name in entry[LINKS].split(" = ") if name in changed]
              for path, entry in state.items() if path in changed}
    return {path: names for path, names in groups.items() if len(names) > 1}


def check_owner(sandbox, state):
    owners = {tuple(entry[UID:GID + 1]) for entry in state.values()}
    assert owners == {(sandbox.identity.uid, sandbox.identity.gid)}, owners


@pytest.mark.parametrize("seed", seeds(5))
def test_apply_gives_what_a_plain_run_gives_and_undo_takes_it_back(sandbox, seed):
    make_tree(sandbox, seed)
    staged = Staged(sandbox)
    copy = sandbox.base / "copy"
    subprocess.run(["cp", "-a", sandbox.project, copy], check=True)
    before = staged.state()
    words = [str(seed), str(COUNT)]
    inside = json.loads(staged.run(["/usr/bin/python3", "-", *words], stdin=SOURCE).bytes)
    assert differences(before, staged.state()) == [], "the run changed the host"
    plain = run_plain(sandbox, copy, words)
    assert inside["outcomes"] == plain["outcomes"]
    # Times are those of the run inside; which names are one file only the plain run says, since an overlay shows two
    # numbers for a file below that was linked.
    left_out = (UID, GID, LINKS)
    assert differences(without(plain["state"], MTIME, *left_out), without(inside["state"], MTIME, *left_out)) == []
    changed = set(staged.diff())
    staged.apply()
    applied = staged.state()
    assert same_as_inside(inside, applied) == [], staged.verb("diff", code=None)
    assert differences(links_among(changed, plain["state"]), links_among(changed, applied)) == []
    check_owner(sandbox, applied)
    assert staged.diff() == {}, "something is left after a full apply"
    staged.undo()
    assert differences(before, staged.state()) == []


@pytest.mark.parametrize("seed", seeds(1, 3352732710))
def test_what_is_applied_in_parts_adds_up(sandbox, seed):
    """One apply per path, in random order; then each undone, the last first."""
    make_tree(sandbox, seed)
    staged = Staged(sandbox)
    before = staged.state()
    inside = json.loads(staged.run(["/usr/bin/python3", "-", str(seed), str(COUNT // 3)], stdin=SOURCE).bytes)
    chance, applies = random.Random(seed), 0
    for _ in range(200):
        changes = sorted(staged.diff(), key=os.fsencode)
        if not changes:
            break
        path = chance.choice(changes)
        staged.apply("--", os.path.join(staged.project, path), code=None)
        applies += 1
    # Also of a file that was renamed and then changed: nothing but our own applies has touched its directory.
    assert staged.diff() == {}
    assert same_as_inside(inside, staged.state()) == []
    for _ in range(applies):
        if staged.undo(code=None).code != 0:
            break
    assert differences(before, staged.state()) == []


@pytest.mark.parametrize("seed", seeds(2))
def test_a_chain_of_snapshots_is_one_tree(sandbox, seed):
    """Three runs, each on the layers of the one before, with a snapshot between: the same tree as inside."""
    make_tree(sandbox, seed)
    staged = Staged(sandbox)
    before = staged.state()
    staged.run(["/usr/bin/python3", "-", str(seed), str(COUNT // 3)], stdin=SOURCE)
    for i in range(2):
        staged.verb("snapshot", staged.session, f"step{i}")
        inside = json.loads(staged.run(["/usr/bin/python3", "-", str(seed + i + 1), str(COUNT // 3)], stdin=SOURCE,
                                       options=["--continue", staged.session]).bytes)
    staged.apply()
    assert same_as_inside(inside, staged.state()) == []
    staged.undo()
    assert differences(before, staged.state()) == []


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
