# SPDX-License-Identifier: Apache-2.0
"""The n-th system call fails while the jail is being built: one clear line, status 125, nothing left; or the same walls as ever.

A sample by default; ATOLL_FAULT_FULL=1 (make check-fault) takes every call and every n.
"""
import collections
import os
import re

import pytest

import leaks

FULL = os.environ.get("ATOLL_FAULT_FULL") == "1"
# What strace cannot make fail in a meaningful way: the first has no error, the others end the process.
LEFT_OUT = {"exit", "exit_group", "getpid", "gettid", "getuid", "getgid", "geteuid", "getegid", "getppid", "umask", "rt_sigreturn",
            "restart_syscall", "brk", "set_tid_address", "arch_prctl", "alarm"}
COMMAND = ["/bin/busybox", "true"]
# The walls are made by these, so they fail with EPERM too, as where a security module refuses.
REFUSABLE = ("clone", "clone3", "unshare", "mount", "move_mount", "fsopen", "fsmount", "fsconfig", "open_tree", "mount_setattr", "pivot_root",
             "setns", "prctl", "capset", "seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "openat2",
             "setresuid", "setresgid", "setgroups", "umount2", "sethostname", "prlimit64", "setrlimit", "keyctl", "execve", "execveat")

pytestmark = [pytest.mark.needs("strace", "busybox")]


def traced(sandbox, options, timeout=30):
    report = sandbox.report_path()
    words = ["strace", "-f", "-qq", *options, *sandbox.command_line(COMMAND, report=report)]
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
    return {key: value for key, value in report["enforcement"].items() if key not in ("stages", "time", "stage_ms")}


def test_a_failing_call_never_weakens_the_jail(sandbox):
    calls, whole = calls_of_a_run(sandbox)
    assert "mount" in calls or "move_mount" in calls, calls
    wanted, wrong = walls(whole.report), []
    for name, number, error in cases(calls):
        what = f"{name}:error={error}:when={number}"
        try:
            done = traced(sandbox, ["-o", "/dev/null", "-e", f"inject={what}"])
        except Exception as failure:  # a hang is a finding like others
            wrong.append(f"{what}: {type(failure).__name__}")
            continue
        if done.code == 0:
            if done.report and walls(done.report) != wanted:
                wrong.append(f"{what}: went on with {walls(done.report)}")
        elif done.code == 125:
            lines = done.err.strip().splitlines()
            if len(lines) != 1 or not lines[0].startswith("atoll"):
                wrong.append(f"{what}: {len(lines)} lines: {done.err[:300]!r}")
        elif done.code < 0 or done.code in (134, 139):
            wrong.append(f"{what}: died with {done.code}: {done.err[:300]!r}")
        left = leaks.wait_for_none(sandbox, seconds=3)
        if left:
            wrong.append(f"{what}: left {left}")
            for pid, _ in left.get("processes", []):
                os.kill(pid, 9)
    assert not wrong, f"{len(wrong)} of {len(list(cases(calls)))}:\n" + "\n".join(wrong)
