# SPDX-License-Identifier: Apache-2.0
"""What was made of the rules is kept from one sandbox to the next, while they are the same; and who needs no judge has
none."""
import os
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
