# SPDX-License-Identifier: Apache-2.0
"""The n-th system call fails while the jail is being built: one clear line, status 125, nothing left; or the same
walls as ever.

A sample by default; ATOLL_FAULT_FULL=1 (make check-fault) takes every call and every n.
"""
import collections
import os
import random
import re
import subprocess
import time

import pytest

import leaks
from seeds import fault_seed

# A run under strace takes some 0.3 s: the sample of a check is drawn until this many seconds are over.
BUDGET_SECONDS = float(os.environ.get("ATOLL_FAULT_SECONDS", "30"))
FULL = os.environ.get("ATOLL_FAULT_FULL") == "1"
# What strace cannot make fail in a meaningful way: some have no error, some end the process, and a close that fails
# has closed all the same, unlike strace's, which is not done at all: the peer waits for an end of file for ever.
LEFT_OUT = {"exit", "exit_group", "close", "getpid", "gettid", "getuid", "getgid", "geteuid", "getegid", "getppid",
            "umask", "rt_sigreturn", "restart_syscall", "brk", "set_tid_address", "arch_prctl", "alarm"}
COMMAND = ["/bin/busybox", "true"]
# The walls are made by these, so they fail with EPERM too, as where a security module refuses.
REFUSABLE = ("clone", "clone3", "unshare", "mount", "move_mount", "fsopen", "fsmount", "fsconfig", "open_tree",
        "mount_setattr", "pivot_root",
             "setns", "prctl", "capset", "seccomp", "landlock_create_ruleset", "landlock_add_rule",
             "landlock_restrict_self", "openat2",
             "setresuid", "setresgid", "setgroups", "umount2", "sethostname", "prlimit64", "setrlimit", "keyctl",
             "execve", "execveat")

pytestmark = [pytest.mark.needs("strace", "busybox")]


def traced(sandbox, options, timeout=12):
    report = sandbox.report_path()
    words = ["strace", "-f", "-qq", *options, *sandbox.command_line(COMMAND, options=["-q"], report=report)]
    done = sandbox.run_outside(words, timeout=timeout)
    done.report = sandbox.read_report(report)
    return done


def calls_of_a_run(sandbox):
    """{system call: the most often that one process makes it} of a whole run."""
    log = sandbox.base / "trace"
    done = traced(sandbox, ["-o", str(log)])
    assert done.code == 0, done
    counts = collections.Counter()
    for line in log.read_text(errors="replace").splitlines():
        match = re.match(r"(\d+) +(\w+)\(", line)
        if match:
            counts[match.groups()] += 1
    most = {}
    for (_, name), count in counts.items():
        most[name] = max(count, most.get(name, 0))
    return {name: count for name, count in most.items() if name not in LEFT_OUT}, done


def cases(calls):
    for name, count in sorted(calls.items()):
        numbers = range(1, count + 1) if FULL else sorted({1, 2, (count + 1) // 2, count} & set(range(1, count + 1)))
        for number in numbers:
            yield name, number, "ENOMEM"
        if name in REFUSABLE:
            for number in numbers if FULL else numbers[:1]:
                yield name, number, "EPERM"


def walls(report):
    held = dict(report["enforcement"])
    # Held by a cgroup where the policy asks for fewer than the machine has, else by the machine itself.
    held["limits"] = {key: value for key, value in held["limits"].items() if key != "cpus"}
    return held


def is_weaker(now, wanted):
    """A wall is gone that the policy (its degrade list) does not let go, or that the report does not name."""
    gone = {key for key in wanted if now.get(key) != wanted[key] and key != "missing"}
    named = "".join(now["missing"]).replace("-", "_").replace("pids", "processes")
    now_limits, limits = now.get("limits", {}), wanted.get("limits", {})
    if "limits" in gone and all(key in named for key in limits if now_limits.get(key) != limits[key]):
        gone.discard("limits")
    return any(key not in named for key in gone)


def kill_what_is_left(sandbox):
    """Ends it, so that one finding does not become many; what was left, as text."""
    left = leaks.wait_for_none(sandbox, seconds=3)
    for pid, _ in left.get("processes", []):
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    return {f"{kind}: {what}" for kind, found in left.items() for what in found}


def test_a_failing_call_never_weakens_the_jail(sandbox):
    calls, whole = calls_of_a_run(sandbox)
    assert "mount" in calls or "move_mount" in calls, calls
    wanted, wrong, tried, known = walls(whole.report), [], 0, set()
    drawn = list(cases(calls))
    random.Random(fault_seed()).shuffle(drawn)
    end = time.monotonic() + BUDGET_SECONDS
    for name, number, error in drawn:
        if not FULL and time.monotonic() > end:
            break
        tried += 1
        what = f"{name}:error={error}:when={number}"
        try:
            done = traced(sandbox, ["-o", "/dev/null", "-e", f"inject={what}"])
        except subprocess.TimeoutExpired:
            wrong.append(f"{what}: hangs")
            known |= kill_what_is_left(sandbox)
            continue
        if done.code == 0:
            if done.report and is_weaker(walls(done.report), wanted):
                wrong.append(f"{what}: went on with {walls(done.report)}")
        elif done.code == 125:
            # The loader of the dynamic compiler has its own words.
            lines = [line for line in done.err.strip().splitlines() if "while loading shared libraries" not in line]
            if len(lines) != 1 or not lines[0].startswith("atoll"):
                wrong.append(f"{what}: {len(lines)} lines: {done.err[:300]!r}")
        elif done.code < 0 or done.code in (134, 139):
            wrong.append(f"{what}: died with {done.code}: {done.err[:300]!r}")
        left = kill_what_is_left(sandbox) - known
        if left:
            wrong.append(f"{what}: left {left}")
            known |= left
    assert not wrong, f"{len(wrong)} of {tried} tried, {len(drawn)} in all:\n" + "\n".join(wrong)


def test_a_path_that_cannot_be_opened_ends_the_start_in_words(sandbox):
    """The programs that are refused were looked for by a plan whose input was gone: SIGSEGV, in half of the starts."""
    for _ in range(6):
        done = traced(sandbox, ["-o", "/dev/null", "-e", "inject=openat2:error=ENOMEM:when=2"])
        assert done.code == 125 and done.err.startswith("atoll: "), done
