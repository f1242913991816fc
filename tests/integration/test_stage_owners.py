# SPDX-License-Identifier: Apache-2.0
"""As root: a staged tree with files of several owners. The modes hold as for the owner of the tree; nothing fails for
the kernel knowing no id, and on the host everything stays whose it was."""
import os
import subprocess

import pytest

from tree_state import GID, MODE, UID, tree_state

pytestmark = pytest.mark.only("root")

# Root itself, a daemon, the number that the sandbox's own user has inside, a login, a directory service.
OWNERS = ((0, 0), (33, 44), (1000, 1000), (1234, 5678), (99999, 100001), (10 ** 7, 10 ** 7))

TREE = 4321

# In the directory of one owner: written, replaced, renamed, removed, made; d is his own, open to all.
WORK = """
set -e
echo more >>open; echo new >t; mv t replaced; mv moved moved2; rm gone; chmod 600 mine; ln open link
echo x >d/new; mv d/in d/in2; mkdir d/sub; mv whole whole2; mv d d2
"""


def fill(project):
    os.chown(project, TREE, TREE)
    for uid, gid in OWNERS:
        place = project / f"u{uid}"
        for directory in (place, place / "d", place / "whole"):
            directory.mkdir()
        for name in ("open", "replaced", "moved", "gone", "mine", "d/in", "whole/in"):
            (place / name).write_text(name)
            os.chmod(place / name, 0o666 if name == "open" else 0o644)
            os.chown(place / name, uid, gid)
        os.chown(place, TREE, TREE)
        os.chown(place / "mine", TREE, gid)
        os.chmod(place / "d", 0o777)
        os.chown(place / "d", uid, gid)
        os.chown(place / "whole", uid, gid)
    return {f"u{uid}" for uid, _ in OWNERS}


def owners(state):
    return {path: (row[MODE], row[UID], row[GID]) for path, row in state.items()}


def test_files_of_several_owners(sandbox):
    places = fill(sandbox.project)
    control = sandbox.base / "control"
    subprocess.run(["cp", "-a", str(sandbox.project), str(control)], check=True)
    before = tree_state(sandbox.project)
    done = sandbox.run("for p in u*; do (cd $p" + WORK + ") || echo FAILED $p; done; stat -c %u u1234/d2 u0/open")
    assert done.code == 0 and done.out == "1234\n0\n" and "FAILED" not in done.out, done
    # A file that nobody may write but its owner stays so.
    refused = sandbox.run("echo x >>u33/moved")
    assert refused.code != 0 and "Permission denied" in refused.err, refused
    sandbox.run_atoll("discard", refused.session)
    assert tree_state(sandbox.project) == before
    # The same without a sandbox, as the one whose tree it is: a new file is his.
    for place in places:
        subprocess.run(["bash", "-c", WORK], cwd=control / place, check=True)
        for name in ("replaced", "d2/new", "d2/sub"):
            os.chown(control / place / name, TREE, TREE)
    applied = sandbox.run_atoll("apply", done.session)
    assert applied.code == 0, applied
    found, expected = owners(tree_state(sandbox.project)), owners(tree_state(control))
    for place in places:   # what is replaced keeps the host's group
        path = f"{place}/replaced"
        expected[path] = (*expected[path][:2], before[path][GID])
    assert found == expected
    assert sandbox.run_atoll("undo", done.session).code == 0
    assert owners(tree_state(sandbox.project)) == owners(before)


def test_a_fork_keeps_the_owners(sandbox):
    fill(sandbox.project)
    first = sandbox.run("mv u33/moved u33/m2; echo a >>u33/open")
    fork = sandbox.run_atoll("fork", first.session, "--", "sh", "-c", "mv u33/m2 u33/m3; echo b >>u33/open")
    assert fork.code == 0, fork
    applied = sandbox.run_atoll("apply")
    assert applied.code == 0, applied
    for name, text in (("m3", "moved"), ("open", "opena\nb\n")):
        status = os.lstat(sandbox.project / "u33" / name)
        assert (status.st_uid, status.st_gid) == (33, 44), name
        assert (sandbox.project / "u33" / name).read_text() == text


IN_PLACE = """atoll: 1
extends: medium
drop: [.]
files: {write: [.]}
degrade: [cgroup.memory, cgroup.pids, cgroup.cpu, mask.late, disk]
"""


@pytest.mark.parametrize("owner", [0, TREE])
def test_written_in_place_modes_decide_as_for_the_owner_of_the_tree(sandbox, owner):
    """A file that its owner alone may write is his, also where the tree is root's: nobody inside is root."""
    project = sandbox.project
    fill(project)
    os.chown(project, owner, owner)
    script = "id -u; for f in u33/moved u33/d/in; do (echo x >>$f) 2>/dev/null || echo $f: no; done; echo x >>u33/open"
    done = sandbox.run(script, policy=sandbox.policy(IN_PLACE, "in-place.yaml"))
    assert done.code == 0 and done.out.splitlines()[1:] == ["u33/moved: no", "u33/d/in: no"], done
    assert done.out.splitlines()[0] != "0"
    # The control: the owner of the tree without a sandbox, where he is not root.
    outside = subprocess.run(["sh", "-c", script], cwd=project, user=TREE, group=TREE, extra_groups=[],
                             capture_output=True, text=True, check=True)
    assert outside.stdout.splitlines()[1:] == ["u33/moved: no", "u33/d/in: no"]
    assert (project / "u33/open").read_text() == "openx\nx\n"
    assert (os.lstat(project / "u33/open").st_uid, os.lstat(project / "u33/moved").st_size) == (33, 5)
