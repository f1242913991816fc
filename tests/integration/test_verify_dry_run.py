# SPDX-License-Identifier: Apache-2.0
"""`verify: dry-run`: a program is tried before it starts; what was shown is what is done, or it is asked again."""
import json
import os
import subprocess

import pytest

from atoll import wait_until
from person import Person

# Found, and never done: what it stands beside is all that happens.
DEED = "{ false && rm -rf /etc/not-there || true; }"


def policy(sandbox, more="", name="tried.yaml"):
    return sandbox.policy(f"atoll: 1\nextends: medium\nask: {{timeout: 30s}}\n{more}\n"
                          "verify: {low: note, medium: note, high: note, critical: dry-run, unknown: note}\n", name)


def records(sandbox, session, kind="exec.trial"):
    lines = sandbox.audit_log(session).read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["type"] == kind]


def phases(sandbox, session):
    return [(one["detail"]["phase"], one["detail"]["result"], one["verdict"]) for one in records(sandbox, session)]


def start(sandbox, **more):
    started = sandbox.run_outside(sandbox.command_line([], options=["-d"], **more))
    assert started.code == 0, started
    return started.out.strip()


@pytest.fixture
def session(sandbox):
    name = start(sandbox, policy=policy(sandbox))
    yield name
    sandbox.run_atoll("stop", name)


def test_a_clean_trial_lets_it_start_and_is_what_is_done(sandbox, session):
    done = sandbox.run_atoll("exec", session, "--", "/bin/sh", "-c", f"echo new >made; {DEED}; cat made")
    assert done.code == 0 and done.out == "new\n", done
    assert sandbox.staged("made", session).read_text() == "new\n"
    wait_until(lambda: len(records(sandbox, session)) == 2, 30, "it is compared")
    assert phases(sandbox, session) == [("tried", "clean", "allow"), ("same", "clean", "allow")]
    assert records(sandbox, session)[0]["detail"]["text"] == "1 added"
    # Nothing is left of the trial: its layers, the name of the state before.
    names = ["snapshot", "--list", "--json", session]
    wait_until(lambda: not json.loads(sandbox.run_atoll(*names).out), 30, "it is tidied")
    assert not records(sandbox, session, "alert")


def test_what_deletes_is_asked_about_with_what_was_seen(sandbox, session):
    """All that was staged goes: nothing differs from the host then, and everything from what the session held."""
    sandbox.run_atoll("exec", session, "--", "/bin/sh", "-c", "echo 1 >a; echo 2 >b")
    silent = sandbox.run_atoll("exec", session, "--", "/bin/sh", "-c", f"rm a b; {DEED}")
    assert silent.code == 126 and sandbox.staged("a", session).exists(), silent
    log = sandbox.audit_log(session).read_text()[-4000:]
    assert phases(sandbox, session) == [("tried", "told", "ask")], (silent, log)
    with Person(sandbox, session, lambda question: (True, 0, 0)) as person:
        allowed = sandbox.run_atoll("exec", session, "--", "/bin/sh", "-c", f"rm a; {DEED}; echo yes")
        assert allowed.code == 0 and allowed.out == "yes\n", allowed
        question = list(person.seen.values())[-1]
    assert "1 deleted" in question["why"] and "tried as" in question["why"], question
    wait_until(lambda: ("same", "told", "allow") in phases(sandbox, session), 30, "it is compared")


def test_nothing_goes_out_while_it_is_tried(sandbox, session):
    """The trial meets a closed network; positive control: the same program in the session reaches its own loopback."""
    ask = ("import socket, sys; s = socket.socket(); s.settimeout(3); "
           "sys.exit(0 if s.connect_ex(('192.0.2.1', 9)) else 7)")
    done = sandbox.run_atoll("exec", session, "--", "/bin/sh", "-c", f"python3 -c \"{ask}\"; {DEED}")
    assert done.code == 126, done
    assert len(records(sandbox, session)) == 1, (done, sandbox.audit_log(session).read_text()[-4000:])
    (tried,) = records(sandbox, session)
    assert tried["detail"]["result"] == "told" and "refused" in tried["detail"]["text"], tried


@pytest.mark.parametrize("command, why", [
    ("echo touch ran | sh -c 'read x; " + DEED + "; $x'", "reads its input"),
    ("exec -a other /bin/sh -c '" + DEED + "'", "under a name that is not its own"),
])
def test_what_a_trial_cannot_show_is_asked_about(sandbox, session, command, why):
    script = sandbox.write(sandbox.project / "outer.sh", f"touch here; {command}\n", 0o755)
    done = sandbox.run_atoll("exec", session, "--", "/bin/bash", str(script))
    told = wait_until(lambda: [one for one in records(sandbox, session) if one["verdict"] == "ask"], 30, "a question")
    assert done.code == 126 and any(why in one["detail"]["text"] for one in told), told
    assert not sandbox.staged("ran", session).exists()


def test_variables_and_directory_are_those_of_the_caller(sandbox, session):
    """`rm "$WHAT"` with another variable would show nothing, and then delete."""
    sandbox.run_atoll("exec", session, "--", "/bin/sh", "-c", "mkdir d; echo 1 >d/kept")
    inner = f"rm -f \"$WHAT\"; {DEED}"
    done = sandbox.run_atoll("exec", session, "--", "/bin/sh", "-c",
                             f"cd d; WHAT=kept; export WHAT; exec /bin/sh -c '{inner}'")
    assert done.code == 126, done
    assert all("1 deleted" in one["detail"]["text"] for one in records(sandbox, session)), records(sandbox, session)
    assert sandbox.staged("d/kept", session).exists()


def test_what_comes_out_otherwise_stops_everything_and_can_be_taken_back(sandbox, session):
    """Something else inside changes what the program goes by, after its trial and before it gets there."""
    sandbox.run_atoll("exec", session, "--", "/bin/sh", "-c", "echo 1 >kept; echo 2 >marked")
    words = [str(sandbox.programs.atoll), "exec", session, "--", "/bin/sh", "-c", "sleep 2; echo other >marked"]
    trick = f"sleep 3; test \"$(cat marked)\" = 2 || rm kept; {DEED}"
    with Person(sandbox, session, lambda question: (True, 0, 0) if question["kind"] == "alert" else None), \
            subprocess.Popen(words, stdin=subprocess.DEVNULL, **sandbox.popen_keywords()):
        done = sandbox.run_atoll("exec", session, "--", "/bin/sh", "-c", trick)
        wait_until(lambda: records(sandbox, session, "alert"), 30, "it is told")
    assert phases(sandbox, session) == [("tried", "clean", "allow"), ("differs", "clean", "ask")], done
    alert = records(sandbox, session, "alert")[0]
    assert alert["detail"]["alert"] == "trial.otherwise" and alert["rule"] == "verify.dry-run", alert
    back = alert["detail"]["where"].split("back: ")[1].split("; ")
    sandbox.run_atoll("stop", session)
    assert not sandbox.staged("kept", session).exists()
    restored = sandbox.run_atoll(*back[1].split()[1:])
    assert restored.code == 0 and "kept" in sandbox.run_atoll("diff", session).out, restored


def test_a_killed_trial_is_a_question(sandbox, session):
    seen = []
    (box,) = [one["pid"] for one in json.loads(sandbox.run_atoll("ps", "--json").out) if one["session"] == session]

    def kill():
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")[0] == b"atoll-trial" and \
                        int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1]) == box:
                    os.kill(int(pid), 9)
                    seen.append(pid)
            except OSError:
                continue
        return bool(seen)

    command = [str(sandbox.programs.atoll), "exec", session, "--", "/bin/sh", "-c", f"sleep 3; {DEED}"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, **sandbox.popen_keywords()) as running:
        wait_until(kill, 30, "the trial is there")
        code = running.wait(timeout=60)
    assert code == 126
    assert wait_until(lambda: phases(sandbox, session), 30, "it is told")[0][1:] == ("failed", "ask")


def test_a_session_that_stages_nothing_is_asked_about(sandbox):
    head = "atoll: 1\nextends: none\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n"
    text = sandbox.policy(head + "verify: {critical: dry-run}\n", "none.yaml")
    done = sandbox.run(["sh", "-c", DEED], policy=text)
    assert done.code == 126, done
    assert "stages nothing" in records(sandbox, done.session)[0]["detail"]["text"]
    control = sandbox.run(["sh", "-c", DEED], policy=sandbox.policy(
        head + "verify: {critical: note}\n", "noted.yaml"))
    assert control.code != 126, control


def test_more_at_one_time_than_can_be_tried(sandbox, session):
    command = "; ".join(f"(sh -c 'sleep 2; {DEED}; echo {i} >made{i}') &" for i in range(7)).replace(";;", ";")
    script = sandbox.write(sandbox.project / "many.sh", command.replace("&;", "&") + "\nwait\n", 0o755)
    sandbox.run_atoll("exec", session, "--", "/bin/bash", str(script))
    texts = [one["detail"]["text"] for one in records(sandbox, session) if one["detail"]["phase"] == "tried"]
    assert any("too many trials" in text for text in texts), texts
