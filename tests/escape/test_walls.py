# SPDX-License-Identifier: Apache-2.0
"""Fail closed: each wall is removed in turn, and the run is refused by its name."""
import json
import re

import pytest

from atoll import ROOT

WALLS = re.findall(r'\[WALL_\w+\] = "([a-z.-]+)"',
        "".join(path.read_text() for path in (ROOT / "src/policy").glob("*.c")))
# Walls that only stand where the policy asks for them or the machine has them; see the single tests.
CONDITIONAL = {"mask.late", "disk", "cgroup.memory", "cgroup.pids", "cgroup.cpu", "core-sched", "landlock.scope",
        "speculation", "cgroupns"}

# How the message calls a wall, where not by its name in policies.
WORDS = {"userns": "user namespace", "mounts": "root", "pidns": "PID namespace", "netns": "network namespace",
        "ipc": "IPC namespace",
         "uts": "UTS namespace", "cgroupns": "cgroup namespace", "landlock": "andlock", "landlock.scope": "andlock"}
DEGRADE = "degrade: [cgroup.memory, cgroup.pids, cgroup.cpu]\n"


def test_the_list_of_walls_is_there():
    assert len(WALLS) >= 15 and {"userns", "netns", "seccomp", "landlock"} <= set(WALLS)


@pytest.mark.parametrize("wall", WALLS)
def test_a_missing_wall_ends_the_run(sandbox, wall):
    """No command runs, status 125, one line that names the wall."""
    level = "high" if wall == "mask.late" else "low"  # it is about trees that are written in place
    policy = sandbox.policy(f"atoll: 1\nextends: {level}\n" + ("" if sandbox.identity.is_root else DEGRADE))
    done = sandbox.run(["touch", "it-ran"], env={"ATOLL_TEST_BREAK": wall}, policy=policy, options=["-q"])
    ran = (sandbox.project / "it-ran").exists()
    if done.code == 0 and wall in CONDITIONAL:
        # Only where the report says that the wall is missing or was never asked for.
        assert done.report and wall in json.dumps(done.report["enforcement"]), (wall, done)
        return
    assert done.code == 125, (wall, done)
    assert not ran, "the command ran without the wall"
    lines = done.err.strip().splitlines()
    assert len(lines) == 1 and WORDS.get(wall, wall) in lines[0], (wall, done)


@pytest.mark.parametrize("wall", ["seccomp", "landlock", "netns", "userns", "mounts", "pidns", "ipc"])
def test_a_policy_may_let_a_wall_go_only_in_words(sandbox, wall):
    policy = sandbox.policy(f"atoll: 1\nextends: medium\ndegrade: [{wall}]\n")
    done = sandbox.run(["true"], policy=policy, env={"ATOLL_TEST_BREAK": wall})
    if done.code == 0:
        assert wall in done.err, done
        assert wall in json.dumps(done.report["enforcement"]), done
    else:
        assert done.code == 125 and WORDS.get(wall, wall) in done.err, done


UNENFORCED = {
    "data": "data: {secrets: mask}",
}


@pytest.mark.parametrize("what", UNENFORCED)
def test_what_cannot_be_enforced_is_refused_by_name(sandbox, what):
    policy = sandbox.policy(f"atoll: 1\nextends: medium\n{UNENFORCED[what]}\n")
    done = sandbox.run(["touch", "it-ran"], policy=policy)
    assert done.code == 125, (what, done)
    assert "test.yaml:3" in done.err, (what, done)
    assert not (sandbox.project / "it-ran").exists()


def test_a_missing_part_of_atoll_ends_the_run(sandbox, programs):
    """PID 1 is needed; there is no fallback to running without it."""
    path = programs.program("atoll-init")
    kept = path.with_name("atoll-init.kept")
    path.rename(kept)
    try:
        done = sandbox.run(["touch", "it-ran"])
    finally:
        kept.rename(path)
    assert done.code == 125 and "atoll-init" in done.err, done
    assert not (sandbox.project / "it-ran").exists()
