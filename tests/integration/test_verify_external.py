# SPDX-License-Identifier: Apache-2.0
"""`verify.external`: a command, or a model, has a second opinion on what rules let happen. It can only tighten."""
import json
import os
import pathlib
import subprocess
import time

import pytest

from atoll import someone_listens, wait_until
from verifier import model  # noqa: F401, a fixture

WHO, ID = "/usr/bin/who", "/usr/bin/id"
ASK_WHO = "exec: {ask: [{program: /usr/bin/who}]}\n"


def verifier(box, body, name="verifier"):
    """A command of the user that answers as body says; it has the case as `case`."""
    return box.write(box.base / "config" / name, "#!/usr/bin/python3\nimport json, sys, time, os\n"
                     f"case = json.load(sys.stdin)\n{body}\n", mode=0o755)


def policy_of(box, external, more=""):
    return box.policy(f"atoll: 1\nextends: medium\n{more}ask: {{timeout: 15s}}\nverify: {{external: {{{external}}}}}\n")


def records(box, session, kind):
    entries = map(json.loads, box.audit_log(session).read_text().splitlines())
    return [entry for entry in entries if entry["type"] == kind]


def opinions(box, done):
    return [(pathlib.Path(entry["subject"]).name, entry["detail"]["opinion"])
            for entry in records(box, done.session, "verify.external")]


SAY = "print(json.dumps({'verdict': %s, 'reason': 'because'}))"
DENY_ID = SAY % "'deny' if case['action']['subject'].endswith('/id') else 'allow'"


def test_a_denial_of_the_verifier_denies_what_rules_allow(sandbox):
    command = verifier(sandbox, DENY_ID)
    plain = sandbox.run(f"{ID} -u; {WHO} > /dev/null; echo $?", policy=sandbox.policy("atoll: 1\nextends: medium\n"))
    assert plain.out.split()[1:] == ["0"], plain
    done = sandbox.run(f"{ID} -u || echo refused; {WHO} > /dev/null; echo $?",
                       policy=policy_of(sandbox, f'command: ["{command}"], when: all'))
    assert done.out.split() == ["refused", "0"], done
    assert ("id", "deny") in opinions(sandbox, done) and ("who", "allow") in opinions(sandbox, done)
    denial = next(entry for entry in done.report["denials"] if entry["subject"].endswith("id"))
    assert denial["rule"] == "verify.external" and "because" in denial["reason"], denial
    assert done.report["external"]["deny"] == 1 and done.report["external"]["stops"] == 0


def test_the_verifiers_command_ignores_no_signal(sandbox):
    """A verifier is a program of the user, started as a shell would start it."""
    command = sandbox.write(sandbox.base / "config" / "verifier", """#!/bin/sh
cat >/dev/null
for name in PIPE XFSZ; do sh -c "kill -$name \\$\\$"; seen="$seen $?"; done
printf '{"verdict": "deny", "reason": "ended%s"}' "$seen"
""", 0o755)
    assert "ended 141 153" in sandbox.run_outside([command]).out
    done = sandbox.run(f"{ID} -u || echo refused", policy=policy_of(sandbox, f'command: ["{command}"], when: all'))
    assert any("ended 141 153" in entry["reason"] for entry in done.report["denials"]), done


def test_the_verifier_sees_action_and_task_and_is_no_part_of_the_sandbox(sandbox):
    command = verifier(sandbox, "open('/dev/null', 'w'); seen = dict(case, writes=os.access('/tmp', os.W_OK))\n"
                       "try: open(os.path.expanduser('~/touched'), 'w'); wrote = True\n"
                       "except OSError: wrote = False\n"
                       "print(json.dumps({'verdict': 'deny', 'reason': json.dumps([case['task'], "
                       "case['action']['argv'], case['action']['cwd'], case['verdict'], case['findings'], "
                       "wrote])[:200]}))")
    done = sandbox.run(f"exec {ID} -u 'a \"b'", policy=policy_of(sandbox, f'command: ["{command}"], when: all'),
                       options=["--task", "say who I am"])
    # The shell itself is refused, and so all of it: the first program is one like any other.
    reason = records(sandbox, done.session, "verify.external")[0]["detail"]["reason"]
    told = json.loads(reason.replace("\\\\", "\\"))
    assert told[0] == "say who I am" and told[1][0] == "bash" and told[3] == "allow" and told[4:] == [[], False], told
    assert told[2] == str(sandbox.project)
    assert records(sandbox, done.session, "session.start")[0]["detail"]["task"] == "say who I am"
    assert not (sandbox.home / "touched").exists()


@pytest.mark.parametrize("body", [
    "print('yes')", "pass", "print(json.dumps({'verdict': 'sure'}))",
    "print(json.dumps({'verdict': 'allow', 'more': 1}))",
    SAY % "'allow'" + "; sys.exit(3)", "print('{' * 100000)", "sys.stdout.write(' ' * (1 << 20))", SAY % "'unclear'",
    "os.kill(os.getpid(), 9)", "print(json.dumps([{'verdict': 'allow'}]))",
    "print(json.dumps({'verdict': 'allow'})); print(json.dumps({'verdict': 'allow'}))"])
def test_whatever_is_not_clear_is_asked(sandbox, body):
    """Nobody hears, so it is refused; a person can let the next try through."""
    command = verifier(sandbox, "if not case['action']['subject'].endswith('/id'): " + SAY % "'allow'" +
                       "; sys.exit(0)\n" + body)
    done = sandbox.run(f"{ID} -u || echo refused", policy=policy_of(sandbox, f'command: ["{command}"], when: all'))
    assert done.out.split() == ["refused"], done
    assert ("id", "unclear") in opinions(sandbox, done), opinions(sandbox, done)
    assert [entry["rule"] for entry in records(sandbox, done.session, "ask.open")] == ["verify.external"]


def test_a_verifier_that_hangs_ends_with_its_time_and_its_children(sandbox):
    marker = f"97{os.getpid() % 1000:03d}.25"
    command = verifier(sandbox, "if not case['action']['subject'].endswith('/id'): " + SAY % "'allow'" +
                       f"; sys.exit(0)\nos.system('sleep {marker} & sleep {marker}')")
    begun = time.monotonic()
    done = sandbox.run(f"{ID} -u || echo refused",
                       policy=policy_of(sandbox, f'command: ["{command}"], when: all, timeout: 1s'))
    assert done.out.split() == ["refused"] and time.monotonic() - begun < 15, done
    assert ("id", "unclear") in opinions(sandbox, done)
    found = subprocess.run(["pgrep", "-f", f"sleep {marker}"], capture_output=True, text=True, check=False)
    assert not found.stdout, found


def test_a_person_decides_what_is_not_clear(sandbox):
    command = verifier(sandbox, SAY % "'unclear' if case['action']['subject'].endswith('/id') else 'allow'")
    follower = subprocess.Popen([str(sandbox.programs.atoll), "ask", "--follow", "--json"], stdout=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, start_new_session=True, **sandbox.popen_keywords())
    sandbox.children.append(follower)
    wait_until(lambda: someone_listens(sandbox))
    child = sandbox.popen(["sh", "-c", f"{ID} -u && echo ran"],
                          policy=policy_of(sandbox, f'command: ["{command}"], when: all'))
    question = json.loads(follower.stdout.readline())
    assert question["state"] == "waiting" and question["rule"] == "verify.external", question
    assert "not sure" in question["reason"] and "because" in question["reason"], question
    assert sandbox.run_atoll("approve", f"{question['session']}:{question['number']}").code == 0
    assert b"ran" in child.communicate(timeout=30)[0]


def test_only_what_rules_ask_about_is_brought_before_it_unless_all_is_said(sandbox):
    command = verifier(sandbox, SAY % "'deny'")
    done = sandbox.run(f"{ID} -u; {WHO} || echo refused", policy=policy_of(sandbox, f'command: ["{command}"]', ASK_WHO))
    assert done.out.split()[1:] == ["refused"] and opinions(sandbox, done) == [("who", "deny")], done
    # A denial needs no person, and an allowance gives nothing that a person was to give.
    assert records(sandbox, done.session, "ask.open") == []
    command = verifier(sandbox, SAY % "'allow'")
    done = sandbox.run(f"{WHO} || echo refused", policy=policy_of(sandbox, f'command: ["{command}"]', ASK_WHO))
    assert done.out.split() == ["refused"] and opinions(sandbox, done) == [("who", "allow")], done
    assert len(records(sandbox, done.session, "ask.open")) == 1


def test_findings_of_the_rules_reach_it(sandbox):
    """What the rules for commands would ask a person about is brought before it first, with what they found."""
    command = verifier(sandbox, "found = case['findings']\nprint(json.dumps({'verdict': 'deny' if found else 'allow', "
                       "'reason': json.dumps([entry['id'] for entry in found])}))")
    policy = sandbox.policy("atoll: 1\nextends: medium\nverify: {high: ask, critical: ask, unknown: note, "
                            f'external: {{command: ["{command}"]}}}}\n')
    assert sandbox.run("echo fine", policy=policy).out == "fine\n"
    done = sandbox.run('rm -rf "$HOME"', policy=policy)
    assert done.code == 126 and (sandbox.home / "project").exists(), done
    said = records(sandbox, done.session, "verify.external")
    # One for each place of PATH that has it.
    assert {entry["detail"]["opinion"] for entry in said} == {"deny"}, said
    assert "destructive" in said[0]["detail"]["reason"], said
    assert records(sandbox, done.session, "ask.open") == []


def test_the_breaker_ends_the_agent(sandbox):
    command = verifier(sandbox, DENY_ID)
    policy = policy_of(sandbox, f'command: ["{command}"], when: all, breaker: {{denials: 3, within: 1m, action: end}}')
    done = sandbox.run(f"{ID}; echo 1; {ID}; echo 2; {ID}; sleep 5; echo 3", policy=policy)
    assert done.out.split()[:2] == ["1", "2"] and "3" not in done.out and done.code >= 125, done
    assert done.report["ended"] == "stopped" and "verify.external.breaker" in done.err, done
    assert done.report["external"]["stops"] == 1


def test_one_search_along_path_is_one_denial_for_the_breaker(sandbox):
    """Each place of PATH is judged; a shell that looked at three of them for one command had tripped it."""
    command = verifier(sandbox, SAY % "'deny' if case['action']['subject'].endswith('/tool') else 'allow'")
    policy = policy_of(sandbox, f'command: ["{command}"], when: all, breaker: {{denials: 2, within: 1m, action: end}}')
    for name in "abc":
        sandbox.write(sandbox.project / name / "tool", "#!/bin/sh\necho ran\n", 0o755)
    places = ":".join(f"{sandbox.project}/{name}" for name in "abc")
    done = sandbox.run(["/usr/bin/dash", "-c", f"PATH={places} tool; echo on"], policy=policy)
    assert done.out == "on\n" and done.report["external"]["deny"] == 3, done
    assert done.report["external"]["stops"] == 0, done
    again = sandbox.run(["/usr/bin/dash", "-c", f"PATH={places} tool; PATH={places} tool x; sleep 5; echo on"],
                        policy=policy)
    assert again.report["external"]["stops"] == 1 and "on" not in again.out, again


@pytest.mark.parametrize("answer", ["approve", "deny", "nothing"])
def test_the_breaker_freezes_and_asks(sandbox, answer):
    command = verifier(sandbox, DENY_ID)
    policy = policy_of(sandbox, f'command: ["{command}"], when: all, breaker: {{denials: 2, within: 1m}}')
    words = [str(sandbox.programs.atoll), "ask", "--follow", "--json"]
    if answer != "nothing":
        follower = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True,
                                    **sandbox.popen_keywords())
        sandbox.children.append(follower)
        wait_until(lambda: someone_listens(sandbox))
    report = sandbox.report_path()
    sandbox.own_parent(report)
    child = sandbox.popen(["sh", "-c", f"{ID}; {ID}; sleep 1; echo on; {WHO} >/dev/null && echo more"], policy=policy,
                          report=report)
    if answer != "nothing":
        question = json.loads(follower.stdout.readline())
        assert question["kind"] == "alert" and "2 commands" in question["subject"], question
        time.sleep(2)
        assert child.poll() is None
        assert sandbox.run_atoll(answer, f"{question['session']}:{question['number']}").code == 0
    out = child.communicate(timeout=40)[0].decode().split()
    told = json.loads(report.read_text())
    assert out == (["on", "more"] if answer == "approve" else []), out
    assert told["ended"] == ("exit" if answer == "approve" else "stopped"), told
    assert told["external"]["stops"] == 1


# ---- a model ----


def deny_id(handler, case):
    verdict = "deny" if case["action"]["subject"].endswith("/id") else "allow"
    handler.say(json.dumps({"verdict": verdict, "reason": "r"}))


def test_a_model_is_asked_with_the_secret(sandbox, model):
    assert sandbox.run_atoll("secret", "set", "llm", stdin=b"sk-test").code == 0
    model.answer = deny_id
    done = sandbox.run(f"{ID} -u || echo refused; {WHO} >/dev/null; echo $?", options=["--task", "look"],
                       policy=policy_of(sandbox, f'url: "{model.url}", model: m1, secret: llm, when: all'))
    assert done.out.split() == ["refused", "0"], done
    authorization, body = model.heard[0]
    assert authorization == "Bearer sk-test" and body["model"] == "m1" and body["messages"][0]["role"] == "system"
    case = json.loads(body["messages"][1]["content"])
    assert case["task"] == "look" and case["action"]["kind"] == "exec" and case["findings"] == []


@pytest.mark.parametrize("answer", [
    lambda handler, case: handler.send(500, {}), lambda handler, case: handler.send(200, b"\x00garbage"),
    lambda handler, case: handler.say("I think it is fine: {\"verdict\": \"allow\"}"),
    lambda handler, case: handler.send(200, {"choices": [{"message": {"content": "{\"verdict\":\"allow\"}"}}] * 2}),
    lambda handler, case: handler.send(200, b" " * (100 << 20)), lambda handler, case: time.sleep(30),
    lambda handler, case: handler.send(307, b"")])
def test_a_model_that_is_no_help_is_no_leave(sandbox, model, answer):
    model.answer = answer
    begun = time.monotonic()
    done = sandbox.run(f"{WHO} || echo refused",
                       policy=policy_of(sandbox, f'url: "{model.url}", model: m, timeout: 2s', ASK_WHO))
    assert done.out.split() == ["refused"] and time.monotonic() - begun < 15, done
    assert opinions(sandbox, done) == [("who", "unclear")]


def test_a_project_cannot_name_a_verifier(sandbox):
    sandbox.write(sandbox.project / ".atoll.yaml", 'atoll: 1\nverify: {external: {command: [/usr/bin/true]}}\n')
    done = sandbox.run("true")
    assert done.code == 125 and ".atoll.yaml:2" in done.err and "widens" in done.err, done
