# SPDX-License-Identifier: Apache-2.0
"""`atoll policy test`: what another policy would have decided about what a session did."""
import json
import os

import pytest

RECORDED = "atoll: 1\nextends: medium\naudit: {files: all}\n"


def compared(sandbox, policy, *sessions, code=1):
    done = sandbox.run_atoll("policy", "test", str(policy), *sessions, "--json")
    assert done.code == code, done
    return [json.loads(line) for line in done.out.splitlines()]


def actions(comparison):
    return {entry["action"]: (entry["before"], entry["after"], entry["count"]) for entry in comparison["differences"]}


def run_recorded(sandbox, script, more=""):
    done = sandbox.run(script, policy=sandbox.policy(RECORDED + more, "recorded.yaml"))
    assert done.session, done
    return done


def test_the_same_policy_decides_the_same(sandbox):
    done = run_recorded(sandbox, "echo 1 >a; mv a b; cat b; rm b; getent hosts no.example; cat ~/.ssh/id_rsa; true",
                        "exec: {deny: [{program: /usr/bin/tac}]}\n")
    same, = compared(sandbox, sandbox.base / "config" / "recorded.yaml", done.session, code=0)
    assert same["different"] == 0 and same["differences"] == [] and same["same"] > 5 and same["unreadable"] == 0, same
    assert same["reads_recorded"] and same["ended"] and not same["policy_changed"], same


def test_each_kind_of_difference_is_told(sandbox):
    sandbox.write(sandbox.project / "secret.txt", "x")
    script = ("cat secret.txt secret.txt; tac secret.txt; getent hosts listed.example; echo y >made;"
              " mv made moved; true")
    done = run_recorded(sandbox, script, "network: {allow: [{host: listed.example, ports: [443]}]}\n")
    other = sandbox.policy(RECORDED + f"""files: {{mask: ["{sandbox.project}/secret.txt"], read: ["{sandbox.project}"]}}
drop: ["."]
exec: {{deny: [{{program: /usr/bin/tac}}]}}
""", "other.yaml")
    comparison, = compared(sandbox, other, done.session)
    found = actions(comparison)
    project = sandbox.project
    assert found[f"file.read {project}/secret.txt"] == ("allow", "deny", 3), found
    assert found[f"exec /usr/bin/tac secret.txt"] == ("allow", "deny", 1), found
    assert found["net.dns listed.example"][:2] == ("allow", "ask"), found
    assert found[f"file.write {project}/made"] == ("stage", "deny", 2), found      # made, and renamed away
    assert found[f"file.write {project}/moved"][:2] == ("stage", "deny"), found    # a rename has two names
    assert not [action for action in found if "/usr/lib" in action], found
    first = next(entry for entry in comparison["differences"] if entry["action"].startswith("exec"))
    lines = other.read_text().splitlines()
    assert first["file"] == str(other) and "tac" in lines[first["line"] - 1] and first["rule"] == "exec.deny[0]", first
    text = sandbox.run_atoll("policy", "test", str(other), done.session)
    assert text.code == 1 and "allow → deny  exec /usr/bin/tac secret.txt" in text.out, text
    assert f"{other}:{first['line']}" in text.out, text


def test_what_was_not_recorded_is_said(sandbox):
    done = sandbox.run("cat /etc/hostname")
    text = sandbox.run_atoll("policy", "test", "none", done.session)
    assert "not seen: files that were read" in text.out, text
    comparison, = compared(sandbox, "medium", done.session, code=0)
    assert not comparison["reads_recorded"] and comparison["complete"]       # the rules about reading are the same
    assert comparison["unrecorded"] == {"reads": "same-rules", "writes": "same-rules"}, comparison


def test_what_cannot_be_known_has_a_status_of_its_own(sandbox):
    """`none of N would differ` of a session that recorded no files said nothing about its files."""
    blind = sandbox.policy("atoll: 1\nextends: medium\naudit: {files: off, exec: off, network: off}\n", "blind.yaml")
    done = sandbox.run("echo 1 > made; cat made; true", policy=blind)
    for text, kinds in (
        (f"drop: ['.']\nfiles: {{read: ['{sandbox.project}']}}\n", {"writes"}),
        (f"files: {{mask: ['{sandbox.project}/made']}}\n", {"reads", "writes"}),
        ("files: {mask: ['**/mad[e]']}\n", {"reads", "writes"}),
        ("exec: {deny: [{program: /usr/bin/cat}]}\n", {"programs"}),
        ("network: {allow: [{host: unlisted.example, ports: [443]}]}\n", {"network"}),
    ):
        other = sandbox.policy("atoll: 1\nextends: medium\n" + text, "other.yaml")
        comparison, = compared(sandbox, other, done.session, code=3)
        told = comparison["unrecorded"]
        assert told.keys() == {"reads", "writes", "programs", "network"} and not comparison["complete"], comparison
        assert {kind for kind in told if told[kind] == "may-differ"} == kinds, (text, told)
    text = sandbox.run_atoll("policy", "test", str(other), done.session)
    assert text.code == 3 and "the session did not record them" in text.out, text
    assert "policies differ about some" in text.out, text
    # The same rules decide the same about whatever it was.
    comparison, = compared(sandbox, "medium", done.session, code=0)
    assert comparison["complete"], comparison


def test_several_sessions_and_one_that_differs(sandbox):
    first, second = run_recorded(sandbox, "true"), run_recorded(sandbox, "tac /dev/null")
    other = sandbox.policy(RECORDED + "exec: {deny: [{program: /usr/bin/tac}]}\n", "other.yaml")
    one, two = compared(sandbox, other, first.session, second.session)
    assert (one["session"], one["different"]) == (first.session, 0)
    assert (two["session"], two["different"]) == (second.session, 1)
    newest = sandbox.run_atoll("policy", "test", str(other))
    assert newest.code == 1 and newest.out.startswith(second.session), newest


def test_hostile_names_stay_in_their_line(sandbox):
    name = "a\x1b[2J\nsession: none of 9 decisions\u202e"
    done = run_recorded(sandbox, f"printf x >\"$(printf '%s' {name!r})\"".replace("\\n", "\n").replace("\\x1b", "\x1b")
                        .replace("\\u202e", "\u202e"))
    other = sandbox.policy(RECORDED + f"drop: ['.']\nfiles: {{read: [\"{sandbox.project}\"]}}\n", "other.yaml")
    text = sandbox.run_atoll("policy", "test", str(other), done.session)
    assert text.code == 1 and "\x1b" not in text.out and "\u202e" not in text.out, text
    assert not [line for line in text.out.splitlines() if line.startswith("session: none")], text


@pytest.mark.parametrize("damage, told", [
    (lambda log: log + b"not json\n", "cannot be decided about: 1"),
    (lambda log: log + b'{"type":"exec.start","subject":7}\n', "cannot be decided about: 1"),
    (lambda log: log + b'{"type":"file.open","subject":{"b64":"AAAA"}}\n', "cannot be decided about: 1"),
    (lambda log: log + b"[" * 60000 + b"\n", "cannot be decided about: 1"),
    (lambda log: log[:log.rindex(b"\n", 0, -1) + 1], "has not ended"),
])
def test_a_damaged_log_is_said_to_be(sandbox, damage, told):
    done = run_recorded(sandbox, "true")
    log = sandbox.audit_log(done.session)
    log.write_bytes(damage(log.read_bytes()))
    text = sandbox.run_atoll("policy", "test", "medium", done.session)
    assert text.code == (3 if "decided about" in told else 0) and told in text.out, text


def test_bad_input_is_one_clear_error(sandbox):
    done = sandbox.run(["true"])
    nothing = sandbox.run_atoll("policy", "test")
    assert nothing.code == 125 and "test takes a policy" in nothing.err, nothing
    wrong = sandbox.run_atoll("policy", "test", str(sandbox.policy("atoll: 1\nextend: medium\n", "wrong.yaml")))
    assert wrong.code == 125 and "extends" in wrong.err and wrong.out == "", wrong
    none = sandbox.run_atoll("policy", "test", "medium", "nosuchsession")
    assert none.code == 125 and "there is no session" in none.err, none
    option = sandbox.run_atoll("policy", "test", "medium", "-t", "low")
    assert option.code == 125 and "test takes the policy as an argument" in option.err, option
    os.unlink(sandbox.audit_log(done.session))
    gone = sandbox.run_atoll("policy", "test", "medium", done.session)
    assert gone.code != 0 and "No such file" in gone.err, gone
