# SPDX-License-Identifier: Apache-2.0
"""Some 550 attempts to get out (src/prog/atoll-probe), inside at every level and, as the positive control, outside."""
import os

import pexpect
import pytest

import expected_outside
from outside import SECRET_ENVIRONMENT, Outside, parse_probe



@pytest.fixture
def outside(sandbox):
    with Outside(sandbox, sandbox.base.name + str(os.getpid())) as made:
        yield made


def hostile_environment(outside):
    plain = {name: value for name, value in SECRET_ENVIRONMENT.items() if name not in ("LD_PRELOAD", "LD_AUDIT")}
    return {**plain, "LD_PRELOAD": "/nonexistent/preload.so", "LD_AUDIT": "/nonexistent/audit.so",
            "SSH_AUTH_SOCK": str(outside.socket)}


def test_every_attempt_gets_through_outside(sandbox, outside):
    """The positive control: an attempt that fails without a boundary proves nothing about the boundary."""
    leaked = os.open("/", os.O_RDONLY)
    try:
        done = sandbox.run_outside([outside.probe, *outside.options(noexec=1)], pass_fds=(leaked,),
                                   env=hostile_environment(outside))
    finally:
        os.close(leaked)
    rows = parse_probe(done.out)
    assert sorted(rows) == sorted(outside.names)
    unexplained = [f"{name}: {note}" for name, (_, outcome, note) in rows.items()
                   if outcome != "broke" and not expected_outside.reason(name, note, sandbox.identity.is_root)]
    assert not unexplained
    broke = sum(outcome == "broke" for _, outcome, _ in rows.values())
    assert broke > 250, "hardly anything works outside: this machine can test little"


POLICY = """\
atoll: 1
extends: {level}
files:
  read: [{readonly}, {tools}]
"""
# Of a staged home all can be read that is not masked.
STAGED_HOME = "  mask: [{hidden}]\n"
# Levels that demand a hard memory limit, which an ordinary user without a delegated cgroup cannot have.
DEGRADE = "degrade: [cgroup.memory, cgroup.pids, cgroup.cpu]\n"

# What gets through and is meant to: a name and the reason, which SECURITY.md states too.
ACCEPTED = {"speculation.store-bypass": "its mitigation slows every program down, and the attack stays within one "
        "process"}


# medium, and programs may mount: then the mounts alone keep files apart. The kernel refuses who has no rights to do so.
MOUNTS = "exec: {namespaces: mounts}\nresources: {memory: unlimited}\n"


ASKED_OF_THE_KERNEL = {"mount.bind", "mount.remount", "mount.shared", "umount", "umount.proc-mask"}


def is_accepted(level, name, note):
    return name in ACCEPTED or (level == "mounts" and name in ASKED_OF_THE_KERNEL and
                                note.startswith("the kernel's own code answered E"))


def level_policy(outside, level):
    if level == "mounts":
        text = POLICY.format(level="medium", readonly=outside.readonly, tools=outside.tools)
        return outside.sandbox.policy(text + MOUNTS + DEGRADE)
    text = POLICY + (STAGED_HOME if level == "high" else "")
    text = text.format(level=level, readonly=outside.readonly, tools=outside.tools, hidden=outside.hidden)
    return outside.sandbox.policy(text + ("" if outside.sandbox.identity.is_root else DEGRADE))


@pytest.mark.parametrize("level", ["none", "low", "medium", "high", "mounts"])
def test_nothing_gets_through_inside(sandbox, outside, level):
    policy = level_policy(outside, level)
    more = {"none": {"noexec": 1}, "low": {"noexec": 1}, "high": {"user-namespaces": 1},
            "mounts": {"user-namespaces": 1}}.get(level, {})
    options = outside.options(**more)
    leaked = os.open("/", os.O_RDONLY)
    try:
        done = sandbox.run([outside.probe, *options], policy=policy, pass_fds=(leaked,),
                env=hostile_environment(outside))
    finally:
        os.close(leaked)
    rows = parse_probe(done.out)
    assert sorted(rows) == sorted(outside.names), done
    broke = [f"{name} ({cases}): {note}" for name, (cases, outcome, note) in rows.items()
             if outcome == "broke" and not is_accepted(level, name, note)]
    assert not broke, "\n".join(broke)
    # What was attacked is as it was.
    assert outside.secret.read_text() == "the secret\n"
    for directory in (outside.readonly, outside.hidden):
        victims = [f"{directory.name}" in name.split(".")[0] and name for name in outside.names]
        for name in filter(None, victims):
            assert (directory / f"victim-{name}").read_text() == "v" * 64


def test_on_a_terminal_the_attempts_fail_too(sandbox, outside):
    """X18: with a terminal there is something to type into."""
    policy = level_policy(outside, "medium")
    child = sandbox.spawn([outside.probe, "--only=tty"], policy=policy)
    child.expect(b"tty.others[^\n]*\n")
    rows = parse_probe((child.before + child.after).decode().replace("\r\n", "\n"))
    child.expect(pexpect.EOF)
    child.close()
    assert rows["tty.foreign"][1] == "held", rows
    assert not [name for name, row in rows.items() if row[1] == "broke"], rows
