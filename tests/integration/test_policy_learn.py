# SPDX-License-Identifier: Apache-2.0
"""`atoll policy learn`: the smallest policy that would have allowed what a command did, and nothing beside it."""
import os
import re

import pytest

BASE = """atoll: 1
extends: medium
files: {{read: ["{home}/data", "{home}/other"]}}
network:
  default: deny
  allow: [{{host: listed.example, ports: [443, 80]}}, {{host: "*.wild.example", ports: [443]}}]
"""
JOB = ("cat ~/data/one >/dev/null; echo made >made; mv made moved; tac moved >/dev/null;"
       " getent hosts a.wild.example; true")


@pytest.fixture
def base(sandbox):
    for name in ("data/one", "data/two", "other/three"):
        sandbox.write(sandbox.home / name, name)
    return sandbox.policy(BASE.format(home=sandbox.home), "base.yaml")


def learn(sandbox, command, *options, policy=None, code=0):
    words = ["policy", "learn", *(["-p", str(policy)] if policy else []), *options, "--", "bash", "-c", command]
    done = sandbox.run_atoll(*words)
    assert done.code == code, done
    return done


def proposal(sandbox, command, policy, name="learnt.yaml"):
    done = learn(sandbox, command, policy=policy)
    return sandbox.policy(done.out[done.out.index("# Proposed"):], name)


def test_a_second_run_passes_and_nothing_else_does(sandbox, base):
    learnt = proposal(sandbox, JOB, base)
    again = sandbox.run(JOB, policy=learnt)
    assert again.code == 0 and not again.report["denials"], (again, again.report["denials"])
    # What the base allows, and the command did not use: the control, and the refusal.
    for script, kind in (("cat ~/data/two", "file"), ("cat ~/other/three", "file"), ("sha1sum /etc/hostname", "exec"),
                         ("getent hosts listed.example", "net")):
        assert sandbox.run(script, policy=base).code == 0, script
        refused = sandbox.run(script, policy=learnt)
        assert refused.code != 0, (script, refused)
    assert "wild.example" in learnt.read_text() and "*.wild" not in learnt.read_text()


def test_each_line_has_its_evidence_and_is_needed(sandbox, base):
    learnt = proposal(sandbox, JOB, base)
    lines = learnt.read_text().splitlines()
    rules = [number for number, line in enumerate(lines) if line.startswith("    - ")]
    assert len(rules) >= 5, lines
    session = re.search(r"session (\w{12})", lines[0]).group(1)
    for number in rules:
        assert re.search(r"# \d+ times?( by \S+)?, first record \d+", lines[number]), lines[number]
        rest = lines[:number] + lines[number + 1:]
        at = number - 1
        if rest[at].endswith(":") and not rest[at + 1].startswith("    -"):
            del rest[at]                       # a list without an entry
            if re.match(r"\w+:$", rest[at - 1]) and not rest[at].startswith("  "):
                del rest[at - 1]               # a section without a list
        shorter = sandbox.policy("\n".join(rest) + "\n", "shorter.yaml")
        tried = sandbox.run_atoll("policy", "test", str(shorter), session)
        assert tried.code == 1, (lines[number], tried)


def test_many_files_of_one_directory_are_the_directory(sandbox, base):
    for number in range(9):
        sandbox.write(sandbox.home / "data" / "many" / str(number), "x")
    for number in range(7):
        sandbox.write(sandbox.home / "data" / "few" / str(number), "x")
    learnt = proposal(sandbox, "cat ~/data/many/* ~/data/few/* >/dev/null", base)
    text = learnt.read_text()
    assert '"~/data/many"  #' in text and "stands for 9 files of it" in text and "data/many/3" not in text, text
    assert '"~/data/few"' not in text and '"~/data/few/3"' in text, text
    assert '"~/data"' not in text and '"~"' not in text, text


def test_what_was_refused_stays_so_and_is_told(sandbox, base):
    learnt = proposal(sandbox, "cat ~/.ssh/id_rsa /etc/shadow; getent hosts unlisted.example; true", base)
    text = learnt.read_text()
    assert re.search(r"^#   file.read \S+/.ssh/id_rsa \(record \d+\)$", text, re.M), text
    assert re.search(r"^#   net.dns unlisted.example \(record \d+\)$", text, re.M), text
    rules = [line for line in text.splitlines() if not line.startswith("#")]
    assert not [line for line in rules if "unlisted" in line or ".ssh" in line], text


def test_programs_that_were_made_cannot_be_listed(sandbox, base):
    learnt = proposal(sandbox, "cp /usr/bin/true ./mine && ./mine", base)
    text = learnt.read_text()
    assert "new_binaries: true" in text and "default: deny" not in text, text
    assert sandbox.run("cp /usr/bin/true ./mine && ./mine", policy=learnt).code == 0


@pytest.mark.parametrize("name", ['a b', 'a"b', "a'b", "a\\b", "a*b", "a[b]", "a{b}", "a: b", "#a", "a\nb", "a\x1b[2Jb",
                                  "é", "-", "&a", "!a", "%"])
def test_names_are_text_and_nothing_else(sandbox, base, name):
    sandbox.write(sandbox.home / "data" / name, "x")
    learnt = proposal(sandbox, f"cat ~/data/{name!r}".replace("~", str(sandbox.home)) if name.isascii() and
                      name.isprintable() and "'" not in name and "\\" not in name else "cat ~/data/*", base)
    assert "\x1b" not in learnt.read_text()
    checked = sandbox.run_atoll("policy", "check", str(learnt))
    assert checked.code == 0, (checked, learnt.read_text())


def test_a_name_that_is_no_text_is_a_comment(sandbox, base):
    path = os.fsencode(sandbox.home / "data") + b"/\xff\xfe"
    with open(path, "wb") as file:
        file.write(b"x")
    sandbox.own(path)
    done = learn(sandbox, "cat ~/data/* >/dev/null", policy=base, code=1)
    assert "cannot be in a policy" in done.out and "allow → " in done.err, done


def test_output_is_made_and_never_replaced(sandbox, base):
    target = sandbox.base / "config" / "out.yaml"
    done = learn(sandbox, "true", "-o", str(target), policy=base)
    assert "# Proposed" not in done.out and target.read_text().startswith("# Proposed"), done
    before, count = target.read_text(), len(sandbox.sessions())
    refused = learn(sandbox, "true", "-o", str(target), policy=base, code=125)
    assert "exists already" in refused.err and target.read_text() == before
    assert len(sandbox.sessions()) == count, "nothing is run for nothing"


def test_bad_input_is_one_clear_error(sandbox, base):
    for words, told in (([], "there is no command"), (["-p", str(base), "-t", "low", "--", "true"], "not both"),
                        (["--json", "--", "true"], "cannot be used with --json"),
                        (["-p", "nosuch", "--", "true"], "no policy"),
                        (["--", "./nosuch"], "nothing was started")):
        done = sandbox.run_atoll("policy", "learn", *words)
        assert done.code == 125 and told in done.err and "# Proposed" not in done.out, (words, done)
    left = [name for name in os.listdir(sandbox.state / "atoll") if name.startswith("learn")]
    assert left == [], left


def test_a_failing_command_is_learnt_from_too(sandbox, base):
    done = learn(sandbox, "cat ~/data/one; exit 3", policy=base)
    assert '"~/data/one"' in done.out, done
