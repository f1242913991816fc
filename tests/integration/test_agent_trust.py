# SPDX-License-Identifier: Apache-2.0
"""`trust:` and `atoll trust`: the level of an agent moves by what its runs do, and what it has is what it can do."""
import json
import os
import signal
import subprocess

import pytest

from atoll import someone_listens, wait_until

PYTHON = "/usr/bin/python3"
BURSTS = """
import os, socket, sys, time
def find(name):
    try: return socket.getaddrinfo(name, 443)[0][4][0]
    except OSError: return "nothing"
print("before", find("pypi.org") != "nothing", flush=True)
for burst in range(int(sys.argv[1])):
    for i in range(8): find(f"{os.urandom(4).hex()}.example.org")
    time.sleep(.3)
print("after", find("pypi.org") != "nothing", flush=True)
"""


def policy(sandbox, trust, more="", extends="medium", name="test.yaml"):
    text = f"atoll: 1\nextends: {extends}\ntrust: {{{trust}}}\n{more}\n"
    return sandbox.policy(text + "time: {cooldown: {denials: 5, within: 10s, pause: 100ms}}\n", name)


def trust(sandbox, agent, *options):
    done = sandbox.run_atoll("trust", agent, "--json", *options)
    assert done.code == 0, done
    return json.loads(done.out)


def records(sandbox, done):
    lines = map(json.loads, sandbox.audit_log(done.session).read_text().splitlines())
    return [entry for entry in lines if entry["type"] == "trust.change"]


def level_of(sandbox, done):
    lines = map(json.loads, sandbox.audit_log(done.session).read_text().splitlines())
    return next(entry["detail"]["level"] for entry in lines if entry["type"] == "session.start")


def has_toolchain(sandbox, options=(), **keywords):
    """What level medium has in view and low has not."""
    sandbox.write(sandbox.home / ".gitconfig", "[user]\n")
    done = sandbox.run("test -e ~/.gitconfig && echo there || echo away", options=options, **keywords)
    assert done.out.strip() in ("there", "away"), done
    return done.out.strip() == "there", done


def test_a_probation_is_earned(sandbox):
    path = policy(sandbox, "agent: new, probation: {sessions: 2, at: low}")
    seen, done = has_toolchain(sandbox, policy=path)
    assert not seen and "agent new runs at low, not medium: 0 of the 2 clean sessions" in done.err, done
    assert level_of(sandbox, done) == "low"
    assert [entry["detail"]["event"] for entry in records(sandbox, done)] == ["session-begun", "session-clean"]
    assert not has_toolchain(sandbox, policy=path)[0]
    seen, done = has_toolchain(sandbox, policy=path)
    assert seen and "runs at" not in done.err and level_of(sandbox, done) == "medium", done
    shown = trust(sandbox, "new")
    assert shown["level"] == shown["granted"] == "medium" and shown["history"][3]["to"] == "medium"
    assert [entry["event"] for entry in shown["history"][:2]] == ["session-begun", "session-clean"]
    people = sandbox.run_atoll("trust", "new").out
    assert "agent new: medium" in people and "what would change it" in people and "3 bursts of refusals: low" in people
    assert [agent["agent"] for agent in json.loads(sandbox.run_atoll("trust", "--json").out)] == ["new"]


def test_runs_without_an_agent_leave_no_record(sandbox):
    assert has_toolchain(sandbox)[0]
    assert "no agent has a record yet" in sandbox.run_atoll("trust").out
    assert not (sandbox.state / "atoll" / "trust").exists()


def test_what_is_not_clean_counts_for_nothing(sandbox):
    path = policy(sandbox, "agent: slow, probation: {sessions: 1, at: low}", "resources: {processes: 20}")
    # Bursts (where there is a network), a limit; the control is the last one.
    other = policy(sandbox, "agent: slow, start: low", "network: {allow: [a.org]}", name="other.yaml")
    sandbox.run([PYTHON, "-c", BURSTS, "1"], policy=other)
    assert trust(sandbox, "slow")["level"] == "low"
    sandbox.run("for i in $(seq 40); do sleep 1 & done; wait", policy=path)
    shown = trust(sandbox, "slow")
    assert shown["level"] == "low" and shown["clean"] == 0, shown
    assert {"deny-burst", "limit-hit"} <= {entry["event"] for entry in shown["history"]}, shown
    assert sandbox.run(["/bin/true"], policy=path).code == 0
    assert trust(sandbox, "slow")["level"] == "medium"


def test_a_run_that_comes_to_nothing_names_trust_and_the_way_out(sandbox):
    """After a canary each later run failed, and said nothing but that its program was not there."""
    path = policy(sandbox, "agent: low")
    sandbox.run_atoll("trust", "low", "--lower", "none", "--reason", "test")
    way_out = "atoll trust low --raise medium --reason"
    for words in (["nowhere"], [str(sandbox.project / "nowhere")]):
        done = sandbox.run(words, policy=path, options=["-q"])
        assert done.code == 127 and "trusted with none only" in done.err and way_out in done.err, done
    refused = sandbox.run(["true"], policy=path, options=["-q", "--project", "/"])
    assert refused.code == 125 and way_out in refused.err, refused
    sandbox.run_atoll("trust", "low", "--raise", "medium", "--reason", "test")
    done = sandbox.run(["nowhere"], policy=path)
    assert done.code == 127 and "trusted" not in done.err, done


@pytest.mark.parametrize("on_fall, after", [("note", True), ("ask", False), ("tighten", False)])
def test_a_fall_reaches_the_session(sandbox, on_fall, after):
    path = policy(sandbox, f"agent: bad, on_fall: {on_fall}", "ask: {timeout: 1s, prompt: false}")
    done = sandbox.run([PYTHON, "-c", BURSTS, "4"], policy=path)
    assert done.out.split() == ["before", "True", "after", str(after)], done
    assert "agent bad fell to low (a burst of refusals: 5 refusals within 10 s)" in done.err, done
    fall = next(entry["detail"] for entry in records(sandbox, done) if entry["detail"]["to"] == "low")
    assert (fall["event"], fall["from"], fall["on_fall"]) == ("deny-burst", "medium", on_fall), fall
    seen, done = has_toolchain(sandbox, policy=path)
    assert not seen and "runs at low, not medium: a burst of refusals" in done.err, done
    assert sandbox.run_atoll("log", "verify", done.session).code == 0


def test_two_bursts_are_no_fall(sandbox):
    path = policy(sandbox, "agent: good, on_fall: tighten")
    done = sandbox.run([PYTHON, "-c", BURSTS, "2"], policy=path)
    assert done.out.split() == ["before", "True", "after", "True"] and "fell" not in done.err, done
    assert has_toolchain(sandbox, policy=path)[0]


def test_frozen_until_a_person_raises_it(sandbox):
    path = policy(sandbox, "agent: ice, on_fall: freeze",
                  "ask: {timeout: 1m, prompt: false}\nexec: {ask: [/usr/bin/tac]}")
    script = ("import os, time\nif not os.fork(): os.execv('/usr/bin/tac', ['tac'])\n"
              "print('on', flush=True)\nfor i in range(600): time.sleep(.05); print(i, flush=True)\n")
    follower = subprocess.Popen([str(sandbox.programs.atoll), "ask", "--follow", "--json"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, start_new_session=True, **sandbox.popen_keywords())
    sandbox.children.append(follower)
    wait_until(lambda: someone_listens(sandbox))
    child = sandbox.popen([PYTHON, "-c", script], policy=path)
    assert child.stdout.readline() == b"on\n"
    wait_until(lambda: b"tac" in sandbox.run_atoll("ask", "--json").bytes, 30, "the question")
    os.set_blocking(child.stdout.fileno(), False)
    assert sandbox.run_atoll("trust", "ice", "--lower", "none").code == 0

    def rest():
        return b"".join(iter(lambda: child.stdout.read() or b"", b""))

    def is_still():
        rest()
        try:
            child.wait(0.6)
        except subprocess.TimeoutExpired:
            pass
        return child.poll() is None and not rest()
    wait_until(is_still, 30, "it stands still")
    (shown,) = json.loads(sandbox.run_atoll("ps", "--json").out)
    assert shown["state"] == "frozen" and "frozen" in sandbox.run_atoll("ps").out, shown
    # Who waits for an answer gets it all the same, when it goes on.
    denied = sandbox.run_atoll("deny", "1")
    assert denied.code == 0 and denied.out.startswith("denied") and not denied.err, denied
    refused = sandbox.run_atoll("trust", "ice", "--raise", "medium")
    assert refused.code != 0 and "needs --reason" in refused.err, refused
    assert sandbox.run_atoll("trust", "ice", "--raise", "medium", "--reason", "looked at it").code == 0
    wait_until(rest, 30, "it goes on")
    assert json.loads(sandbox.run_atoll("ps", "--json").out)[0]["state"] == "running"
    assert sandbox.run_atoll("trust", "ice", "--lower", "none").code == 0
    wait_until(is_still, 30, "it stands still again")
    child.send_signal(signal.SIGTERM)
    assert child.wait(10) == 128 + signal.SIGTERM


def test_a_killed_session_is_not_clean(sandbox):
    path = policy(sandbox, "agent: killed, probation: {sessions: 1, at: low}")
    child = sandbox.popen(["sh", "-c", "echo on; exec sleep 1000"], policy=path)
    assert child.stdout.readline() == b"on\n"
    child.kill()
    child.wait()
    wait_until(lambda: not json.loads(sandbox.run_atoll("ps", "--json").out), 30, "it is gone")
    done = sandbox.run(["/bin/true"], policy=path)
    assert done.code == 0, done
    shown = trust(sandbox, "killed")
    assert [entry["event"] for entry in shown["history"]] == ["session-begun", "session-killed", "session-begun",
                                                               "session-clean"], shown
    assert shown["strain"] > 19


def explain(sandbox, path, *words):
    done = sandbox.run_atoll("policy", "-p", path, "explain", "trust", *words)
    told = sandbox.run_atoll("policy", "-p", path, "--json", "explain", "trust", *words)
    assert done.code == 0 and told.code == 0, (done, told)
    return done.out, json.loads(told.out)


def test_a_policy_explains_what_trust_comes_to(sandbox):
    path = policy(sandbox, "agent: new, probation: {sessions: 2, at: low}, floor: none, ceiling: medium")
    text, told = explain(sandbox, path)
    assert text.startswith("agent new would run at low, not medium: 0 of the 2 clean sessions"), text
    assert "none yet, so it comes to low" in text and "2 clean sessions in a row at low give one level more" in text
    assert told["level"] == "low" and told["runs_at"] == {
        "none": "none", "low": "low", "medium": "medium", "high": "medium", "full": "medium"}, told
    # What it says is what a run does, of each record and with each confidence.
    for level in ("none", "low", "medium", "full"):
        assert sandbox.run_atoll("trust", "new", "--raise", "full", "--reason", "x").code == 0
        assert level in ("medium", "full") or sandbox.run_atoll("trust", "new", "--lower", level).code == 0
        text, told = explain(sandbox, path)
        done = sandbox.run(["/bin/true"], policy=path)
        assert told["level"] == told["runs_at"][level] == level_of(sandbox, done), (told, done)
        assert told["record"]["usable"] and told["record"]["exists"]
    for name, least in told["confidence"].items():
        for confidence in (least, least - 0.001):
            done = sandbox.run(["/bin/true"], policy=policy(sandbox, "agent: any", extends="full", name="full.yaml"),
                               options=["--confidence", f"{confidence:.3f}"])
            assert (level_of(sandbox, done) == name) == (confidence == least), (name, confidence, done)
    # Another agent, nobody, and a record that is no use.
    assert explain(sandbox, path, "another")[1]["record"]["exists"] is False
    nobody, told = explain(sandbox, policy(sandbox, "start: low", name="nobody.yaml"))
    assert nobody.startswith("a run without an agent is at medium") and told["agent"] is None and not told["record"]
    sandbox.write(sandbox.state / "atoll" / "trust" / "new.bin", "damaged", 0o600)
    text, told = explain(sandbox, path)
    assert told["level"] == "none" and not told["record"]["usable"] and "--reset" in text, text
    shown = sandbox.run_atoll("policy", "-p", path, "show").out
    assert "probation: {sessions: 2, at: low}" in shown and "atoll policy explain trust [AGENT]" in shown
    # What show prints is a policy: it extends no level that trust could lower.
    assert sandbox.run_atoll("policy", "check", sandbox.write(sandbox.project / "shown.yaml", shown)).code == 0


def test_two_at_once_share_one_record(sandbox):
    path = policy(sandbox, "agent: twins, on_fall: tighten")
    children = [sandbox.popen([PYTHON, "-c", BURSTS, "2"], policy=path) for _ in range(2)]
    outs = [child.communicate(timeout=60) for child in children]
    shown = trust(sandbox, "twins")
    # Two each: neither falls alone, together they do, and both notice.
    assert [entry["event"] for entry in shown["history"]].count("deny-burst") == 4, shown
    assert shown["level"] == "low", shown
    assert all(b"agent twins fell to low" in err for _, err in outs), outs


def test_a_record_that_was_tampered_with(sandbox):
    path = policy(sandbox, "agent: spoilt")
    assert has_toolchain(sandbox, policy=path)[0]
    record = sandbox.state / "atoll" / "trust" / "spoilt.bin"
    old = record.read_bytes()
    assert sandbox.run_atoll("trust", "spoilt", "--lower", "low").code == 0
    sandbox.write(record, old, 0o600)
    for content, why in ((old, "older than what was last written"), (old[:-1], "damaged"), (b"", "damaged"),
                         (None, "it has gone")):
        if content is None:
            record.unlink()
        else:
            sandbox.write(record, content, 0o600)
        seen, done = has_toolchain(sandbox, policy=path)
        assert not seen and level_of(sandbox, done) == "none", done
        assert "its record cannot be used" in done.err and why in done.err and "--reset" in done.err, done
        assert records(sandbox, done)[0]["detail"]["event"] == "record-unusable", done
        refused = sandbox.run_atoll("trust", "spoilt", "--raise", "medium", "--reason", "x")
        assert refused.code == 125 and "--reset" in refused.err, refused
    assert trust(sandbox, "spoilt")["usable"] is False
    assert sandbox.run_atoll("trust", "spoilt", "--reset").code == 0
    assert has_toolchain(sandbox, policy=path)[0]


def test_a_record_that_goes_bad_during_a_session(sandbox):
    path = policy(sandbox, "agent: rotten, on_fall: tighten")
    script = BURSTS.replace("for burst", "open('begun', 'w'); time.sleep(2)\nfor burst")
    child = sandbox.popen([PYTHON, "-c", script, "1"], policy=path)
    assert child.stdout.readline() == b"before True\n"
    record = sandbox.state / "atoll" / "trust" / "rotten.bin"
    content = bytearray(record.read_bytes())
    content[200] ^= 1
    sandbox.write(record.with_suffix(".new"), bytes(content), 0o600)
    os.rename(record.with_suffix(".new"), record)
    out, err = child.communicate(timeout=30)
    assert out == b"after False\n" and b"fell to none (it is damaged)" in err, (out, err)


def test_where_the_record_cannot_be_written(sandbox):
    path = policy(sandbox, "agent: full")
    sandbox.make_directory(sandbox.state / "atoll", 0o700)
    sandbox.write(sandbox.state / "atoll" / "trust", "no directory")
    done = sandbox.run("echo ran", policy=path)
    assert done.code == 125 and "the record of agent full cannot be" in done.err, done
    (sandbox.state / "atoll" / "trust").unlink()
    assert sandbox.run("echo ran", policy=path).out == "ran\n"


def test_confidence_only_tightens(sandbox):
    for confidence, level in (("low", "low"), ("0.05", "none"), ("0.5", "medium"), ("high", "medium"), ("1", "medium")):
        done = sandbox.run(["/bin/true"], options=["--confidence", confidence])
        assert done.code == 0 and level_of(sandbox, done) == level, done
        assert ("because of the low confidence" in done.err) == (level != "medium"), done
    path = policy(sandbox, "agent: sure, start: low")
    done = sandbox.run(["/bin/true"], policy=path, options=["--confidence", "1"])
    assert level_of(sandbox, done) == "low", done
    # The user's own default, and a level by name, are lowered as such.
    policy(sandbox, "start: medium", "files: {read: [~/own]}", name="atoll/policy.yaml")
    sandbox.write(sandbox.home / "own" / "file", "own\n")
    done = sandbox.run("cat ~/own/file", options=["--confidence", "low"])
    assert done.out == "own\n" and level_of(sandbox, done) == "low", done
    done = sandbox.run(["/bin/true"], options=["--confidence", "medium"], trust="high")
    assert done.code == 0 and level_of(sandbox, done) == "medium", done
    for wrong in ("", "2", "-1", "sure"):
        done = sandbox.run(["/bin/true"], options=["--confidence", wrong])
        assert done.code != 0 and "is not a confidence" in done.err, done


def test_the_ceiling_is_above_everything(sandbox):
    path = policy(sandbox, "agent: bound, ceiling: low")
    assert sandbox.run_atoll("trust", "bound", "--raise", "full", "--reason", "x").code == 0
    for keywords in ({}, {"trust": "high"}):
        done = sandbox.run(["/bin/true"], policy=path, **keywords)
        assert level_of(sandbox, done) == "low" and "the policy's ceiling" in done.err, done


def test_a_task_and_a_token_lend_a_level(sandbox):
    path = policy(sandbox, "agent: helper, start: low, floor: none")
    task = policy(sandbox, "agent: helper, start: low, raise: medium", name="task.yaml")
    assert not has_toolchain(sandbox, policy=path)[0]
    seen, done = has_toolchain(sandbox, policy=task)
    assert seen and "lent" in [entry["detail"]["event"] for entry in records(sandbox, done)], done
    minted = sandbox.run_atoll("token", "mint", "--allow", "trust=medium", "--agent", "helper")
    assert minted.code == 0, minted
    token = sandbox.write(sandbox.base / "token", minted.out, 0o600)
    seen, done = has_toolchain(sandbox, policy=path, options=["--token", token])
    assert seen and any("token" in entry["detail"].get("cause", "") for entry in records(sandbox, done)), done
    # For another agent it does not hold, and without it the record is as before.
    other = policy(sandbox, "agent: other, start: low", name="other.yaml")
    refused = sandbox.run(["/bin/true"], policy=other, options=["--token", token])
    assert refused.code == 125 and "for another project or agent" in refused.err, refused
    assert not has_toolchain(sandbox, policy=path)[0]
    # The first thing that speaks against it ends what was lent.
    done = sandbox.run([PYTHON, "-c", BURSTS, "1"], policy=policy(
        sandbox, "agent: helper, start: low, raise: medium, on_fall: tighten", name="task.yaml"))
    assert done.out.split() == ["before", "True", "after", "False"], done


def test_a_project_cannot_widen_it(sandbox):
    path = policy(sandbox, "agent: mine, ceiling: medium, start: low")
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\ntrust: {agent: yours, start: medium}\n")
    done = sandbox.run(["/bin/true"], policy=path)
    assert done.code == 125 and done.err.count("widens the policy") == 2, done
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\ntrust: {ceiling: none}\n")
    done = sandbox.run(["/bin/true"], policy=path)
    assert done.code == 0 and level_of(sandbox, done) == "none", done


def test_what_the_policy_adds_stays(sandbox):
    sandbox.write(sandbox.home / "own" / "file", "x\n")
    path = policy(sandbox, "agent: lean, start: none", "drop: [~/.nvm]\nfiles: {read: [~/own]}")
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nexec: {new_binaries: true}\nfiles: {mask: [hidden]}\n")
    sandbox.write(sandbox.project / "hidden", "x")
    done = sandbox.run("cat ~/own/file; cat hidden; echo x >new || echo read-only", policy=path)
    assert done.out.split() == ["x", "read-only"] and level_of(sandbox, done) == "none", done


@pytest.mark.parametrize("words, what", [
    (["trust", "a b"], "cannot be the name of an agent"),
    (["trust", "--raise", "low"], "name the agent whose level"),
    (["trust", "x", "--raise", "lo", "--reason", "y"], "did you mean low"),
    (["trust", "x", "--raise", "low", "--lower", "none"], "exclude each other"),
    (["trust", "nobody"], "no record of an agent nobody"),
    (["trust", "a", "b"], "at most one agent"),
    (["policy", "explain", "trust", "a", "b"], "one agent at most"),
    (["policy", "explain", "trust", "../x"], "cannot be the name of an agent"),
    (["run", "--agent", "../x", "--", "true"], "cannot be the name of an agent"),
])
def test_errors_say_what_to_do(sandbox, words, what):
    done = sandbox.run_atoll(*words)
    assert done.code != 0 and what in done.err and done.err.startswith("atoll: "), done


def test_nothing_inside_reaches_the_record(sandbox):
    path = policy(sandbox, "agent: inmate")
    state = sandbox.state / "atoll" / "trust"
    assert sandbox.run(["/bin/true"], policy=path).code == 0
    assert sandbox.run_outside(["ls", state]).code == 0
    for level in ("medium", "high", "full"):
        wide = policy(sandbox, "agent: inmate", "degrade: [disk, mask.late]", extends=level)
        done = sandbox.run(f"ls {state}; echo x >>{state}/inmate.bin", policy=wide)
        assert done.code != 0 and "inmate" not in done.out, done
    assert trust(sandbox, "inmate")["usable"] is True
