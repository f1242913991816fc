# SPDX-License-Identifier: Apache-2.0
"""What was made of the rules is kept from one sandbox to the next, while they are the same; and who needs no judge has
none."""
import collections
import os
import re
import struct
import time

import pytest

from control import HEADER
from test_verify_gate import DEED, policy, records, verifier

OWN = """atoll-verify: 1
rules: [{{id: own.{0}, class: evade, severity: critical, match: {{kind: command, program: {0}}}, reason: no}}]
"""
ASKED = "verify: {critical: deny, unknown: deny}"


def kept(sandbox):
    return sorted((sandbox.state / "atoll/verify").glob("*.bin"))


def judged(sandbox, command, *rules):
    """The command is refused by one of these rules; by none: it runs."""
    done = sandbox.run(command, policy=policy(sandbox, ASKED))
    assert {one["rule"] for one in done.report["denials"]} == set(rules), done
    assert done.code == (126 if rules else 0), done


def let_a_tick_pass():
    """Of what was written just now (rules, and those installed for this test) nothing is taken for what it was: its
    time may not tell the next change from this one."""
    time.sleep(2.2)


def test_the_second_sandbox_takes_what_the_first_one_made(sandbox):
    let_a_tick_pass()
    judged(sandbox, ["sh", "-c", DEED], "verify.destructive.remove-system")
    (path,) = kept(sandbox)
    assert os.stat(path).st_mode & 0o7777 == 0o600
    first = os.stat(path)
    judged(sandbox, ["sh", "-c", DEED], "verify.destructive.remove-system")
    judged(sandbox, ["sh", "-c", "true"])
    (again,) = kept(sandbox)
    assert again == path and os.stat(again).st_ino == first.st_ino, "it was made again"


def test_rules_that_changed_hold_at_once(sandbox):
    own = sandbox.base / "config/atoll/verify"
    judged(sandbox, ["who"])
    sandbox.write(own / "a.yaml", OWN.format("who"))
    judged(sandbox, ["who"], "verify.own.who")
    judged(sandbox, ["id"])
    let_a_tick_pass()
    judged(sandbox, ["who"], "verify.own.who")
    before = os.stat(kept(sandbox)[0]).st_ino
    judged(sandbox, ["who"], "verify.own.who")
    assert os.stat(kept(sandbox)[0]).st_ino == before
    # One more file; another content of the same size; one file less.
    sandbox.write(own / "b.yaml", OWN.format("id"))
    judged(sandbox, ["id"], "verify.own.id")
    let_a_tick_pass()
    judged(sandbox, ["id"], "verify.own.id")
    text = OWN.format("id").replace("program: id", "program: tr")
    times = os.stat(own / "b.yaml")
    sandbox.write(own / "b.yaml", text)
    os.utime(own / "b.yaml", ns=(times.st_atime_ns, times.st_mtime_ns))
    judged(sandbox, ["id"])
    os.unlink(own / "a.yaml")
    judged(sandbox, ["who"])


def test_rules_with_errors_are_never_kept(sandbox):
    judged(sandbox, ["true"])
    sandbox.write(sandbox.base / "config/atoll/verify/own.yaml", "atoll-verify: 1\nrules: [{id: x}]\n")
    let_a_tick_pass()
    for _ in range(2):
        judged(sandbox, ["/bin/true"], "verify.unknown.rules")


@pytest.mark.parametrize("how", ["mode", "link", "cut", "index", "empty"])
def test_a_kept_file_that_is_not_ours_or_not_whole_is_made_again(sandbox, how):
    judged(sandbox, ["sh", "-c", DEED], "verify.destructive.remove-system")
    (path,) = kept(sandbox)
    good = path.read_bytes()
    if how == "mode":
        os.chmod(path, 0o644)
    elif how == "link":
        os.link(path, path.with_name("other"))
    else:
        damaged = {"cut": good[:40], "empty": b"", "index": good[:HEADER] + b"\x7f" + good[HEADER + 1:]}[how]
        path.write_bytes(damaged)
    judged(sandbox, ["sh", "-c", DEED], "verify.destructive.remove-system")
    assert path.read_bytes()[HEADER:] == good[HEADER:] and os.stat(path).st_mode & 0o7777 == 0o600


def test_damaged_rules_judge_nothing_once(sandbox):
    """The part that the box does not look into: atoll-verify refuses it, so nothing can be judged, and it is gone."""
    let_a_tick_pass()
    judged(sandbox, ["sh", "-c", "true"])
    (path,) = kept(sandbox)
    bytes_ = bytearray(path.read_bytes())
    index = struct.unpack_from("=I", bytes_, 8)[0]
    bytes_[index + HEADER + 1] ^= 0xff
    path.write_bytes(bytes_)
    judged(sandbox, ["sh", "-c", "true"], "verify.unknown.rules")
    judged(sandbox, ["sh", "-c", "true"])
    judged(sandbox, ["sh", "-c", DEED], "verify.destructive.remove-system")


def test_nothing_inside_sees_or_changes_what_is_kept(sandbox):
    judged(sandbox, ["true"])
    (path,) = kept(sandbox)
    assert sandbox.run_outside(["cat", path]).code == 0
    for level in ("medium", "high", "full"):
        done = sandbox.run(["sh", "-c", f"cat {path}; echo >{path}; rm -f {path}; test ! -e {path.parent.parent}"],
                           policy=sandbox.policy(f"atoll: 1\nextends: {level}\n", "level.yaml"))
        assert "atol" not in done.out, done
    assert path.exists() and os.path.getsize(path) > 1000


def test_who_needs_no_judge_has_none(sandbox):
    let_a_tick_pass()
    judged(sandbox, ["true"])
    session = sandbox.run_outside(sandbox.command_line([], policy=policy(sandbox, ASKED), options=["-d"])).out.strip()
    for command in (["true"], ["ls", "/"], ["gcc", "--version"], ["cat", "/proc/self/status"]):
        sandbox.run_atoll("exec", session, "--", *command)
        assert not verifier(sandbox), command
    assert sandbox.run_atoll("exec", session, "--", "sh", "-c", DEED).code == 126
    assert verifier(sandbox)
    sandbox.run_atoll("stop", session)


def test_an_argument_that_a_rule_is_about_is_enough(sandbox):
    """Rules may be about whatever program it is: this one says what it mines, and has a name of its own."""
    sandbox.write(sandbox.project / "harmless.c", "int main(void) { return 0; }\n")
    sandbox.run_outside(["gcc", "-o", "worker", "harmless.c"], cwd=sandbox.project, check=True)
    judged(sandbox, ["./worker", "-o", "pool.example.test"])
    judged(sandbox, ["./worker", "-o", "Stratum+tcp://pool.example.test:3333"], "verify.exhaust.mining")
    session = sandbox.run(["./worker", "rx/0"], policy=policy(sandbox, ASKED)).session
    assert records(sandbox, session)


def test_the_rules_of_a_sandbox_are_those_of_its_start(sandbox):
    """What changes before its first command is as what changes before its second: the next sandbox has it."""
    own = sandbox.base / "config/atoll/verify"
    sandbox.write(own / "a.yaml", OWN.format("who"))
    let_a_tick_pass()
    judged(sandbox, ["who"], "verify.own.who")
    strict = policy(sandbox, ASKED)
    session = sandbox.run_outside(sandbox.command_line([], policy=strict, options=["-d"])).out.strip()
    os.unlink(own / "a.yaml")
    sandbox.write(own / "b.yaml", OWN.format("id"))
    for _ in range(2):
        assert sandbox.run_atoll("exec", session, "--", "who").code == 126
        assert sandbox.run_atoll("exec", session, "--", "id").code == 0
        assert sandbox.run_atoll("exec", session, "--", "sh", "-c", DEED).code == 126
    sandbox.run_atoll("stop", session)
    judged(sandbox, ["who"])
    judged(sandbox, ["id"], "verify.own.id")


def box_calls(sandbox, policy_file):
    """(name, how many of that name its process made before, the rest of the line) of each call of the box that it
    makes before it hears of the first exec, and the same of those afterwards."""
    trace = sandbox.base / "trace"
    done = sandbox.run_outside(["strace", "-f", "-qq", "-s", "4096", "-o", trace, *sandbox.command_line(
        ["sh", "-c", DEED], policy=policy_file, options=["-q"])], timeout=30)
    assert done.code == 126, done
    calls, counts, box = ([], []), collections.Counter(), None
    for pid, name, rest in re.findall(r"(?m)^(\d+) +(\w+)\((.*)$", trace.read_text(errors="replace")):
        box = box or pid
        if pid == box:
            counts[name] += 1
            calls[counts["hears"] > 0].append((name, counts[name], rest))
            counts["hears"] += "SECCOMP_IOCTL_NOTIF_RECV" in rest
    assert calls[1], "it never heard of one"
    return calls


def is_about_rules(call):
    return "atoll-verify" in call[2] or "/verify" in call[2]


@pytest.mark.needs("strace")
def test_what_is_kept_is_looked_up_before_anything_runs(sandbox):
    """And where that fails, in whatever way, the command is judged all the same, or nothing starts."""
    let_a_tick_pass()
    judged(sandbox, ["sh", "-c", DEED], "verify.destructive.remove-system")
    strict = policy(sandbox, ASKED)
    early, late = box_calls(sandbox, strict)
    about = [at for at, call in enumerate(early) if is_about_rules(call)]
    assert {early[at][0] for at in about} & {"open", "openat"}, early
    # Only the program itself, which is started for this command.
    assert not [call for call in late if "policies/verify" in call[2] or "/verify/" in call[2]], late
    calls = {name: number for name, number, _ in early[about[0] - 1:about[-1] + 4]}
    assert len(calls) > 3, calls
    for name, number in calls.items():
        done = sandbox.run_outside(["strace", "-f", "-qq", "-o", "/dev/null", "-e",
            f"inject={name}:error=ENOMEM:when={number}", *sandbox.command_line(
                ["sh", "-c", f"touch ran; {DEED}"], policy=strict, options=["-q"])], timeout=30)
        assert done.code in (125, 126), (name, number, done)


@pytest.mark.needs("strace")
def test_where_nothing_is_judged_nothing_is_looked_up(sandbox):
    judged(sandbox, ["true"])
    off = policy(sandbox, "verify: {low: off, medium: off, high: off, critical: off, unknown: off}")
    done = sandbox.run_outside(["strace", "-f", "-qq", "-s", "4096", "-o", sandbox.base / "trace",
                                *sandbox.command_line(["true"], policy=off, options=["-q"])], timeout=30)
    text = (sandbox.base / "trace").read_text(errors="replace")
    assert done.code == 0 and "/sessions/" in text and "/verify" not in text and "atoll-verify" not in text, done
