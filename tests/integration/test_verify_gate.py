# SPDX-License-Identifier: Apache-2.0
"""Commands are judged before they run: what the policy makes of findings, and what happens when nobody can judge."""
import json
import os
import signal
import subprocess
import time

import pytest

from atoll import wait_until
from person import Person

STRICT = "verify: {low: note, medium: note, high: {possible: note, likely: ask, certain: deny}, critical: deny}"
DEED = "rm -rf /etc/not-there"   # what rules find, and what does nothing


def policy(sandbox, text=STRICT, name="test.yaml"):
    return sandbox.policy(f"atoll: 1\nextends: medium\nask: {{timeout: 30s}}\n{text}\n", name)


def records(sandbox, session, kind="exec.verify"):
    lines = sandbox.audit_log(session).read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["type"] == kind]


@pytest.mark.parametrize("how", ["path", "search", "unanswered", "modes"])
def test_a_refused_command_names_the_rule_also_where_nothing_else_is_said(sandbox, how):
    text, mode = ("true", 0o644) if how == "modes" else (DEED, 0o755)
    program = sandbox.write(sandbox.project / "deed.sh", f"#!/bin/sh\n{text}\n", mode)
    asks = "verify: {low: note, medium: note, high: note, critical: ask}"
    command = {"search": ["sh", "-c", DEED]}.get(how, [str(program)])
    done = sandbox.run(command, policy=policy(sandbox, asks if how == "unanswered" else STRICT), options=["-q"])
    said = [line for line in done.err.splitlines() if line.startswith(f"atoll: {command[0]}: ")]
    assert done.code == 126 and len(said) == 1 and " refused:\n" not in done.err, done
    if how == "modes":
        assert said[0].endswith(": cannot be run in the sandbox: Permission denied"), said
        return
    denial = done.report["denials"][-1]
    assert denial["rule"] == "verify.destructive.remove-system" and denial["reason"], denial
    assert said[0] == (f"atoll: {command[0]}: refused: {denial['reason']} [{denial['rule']}]; "
                       f"more: atoll log --denied {done.session}"), said


@pytest.mark.parametrize("how", ["inline", "script", "program", "env", "stdin"])
def test_what_rules_refuse_does_not_run(sandbox, how):
    script = sandbox.write(sandbox.project / "deed.sh", f"#!/bin/sh\ntouch ran\n{DEED}\n", 0o755)
    command = {
        "inline": ["sh", "-c", f"touch ran; {DEED}"], "script": ["sh", "deed.sh"], "program": [str(script)],
        "env": ["/usr/bin/env", "A=1", "nice", "sh", "-c", f"touch ran; {DEED}"],
        "stdin": ["sh", "-c", f"touch ran; echo '{DEED}' | sh"],
    }[how]
    plain = sandbox.run(command, policy=policy(sandbox, "", "plain.yaml"))
    assert plain.code == 0 and sandbox.staged("ran", plain.session).exists(), plain
    done = sandbox.run(command, policy=policy(sandbox))
    assert done.code == 126 and not sandbox.staged("ran", done.session).exists(), done
    (denial,) = {(one["rule"], one["reason"], one["hint"]) for one in done.report["denials"]}
    assert denial[0] == "verify.destructive.remove-system" and "removes" in denial[1] and denial[2]
    found = records(sandbox, done.session)[0]
    assert found["verdict"] == "deny" and found["detail"]["findings"][0]["severity"] == "critical", found


def test_what_is_harmless_runs_and_says_nothing(sandbox):
    done = sandbox.run("set -e; echo 'echo hello' >x.sh; sh x.sh; /usr/bin/env sh -c 'ls >/dev/null'; mkdir a; rm -r a",
                       policy=policy(sandbox))
    assert done.code == 0 and done.out == "hello\n", done
    assert not [one for one in records(sandbox, done.session) if one["verdict"] != "allow"]
    assert not done.report["denials"]


def test_noted_findings_run_and_are_in_the_log(sandbox):
    done = sandbox.run(["sh", "-c", DEED], policy=policy(sandbox, "verify: {critical: note}"))
    assert done.code == 0, done
    found = records(sandbox, done.session)
    assert [one["verdict"] for one in found][:1] == ["allow"], found
    assert found[0]["rule"] == "verify.destructive.remove-system"


def test_what_is_asked_about_waits_for_a_person(sandbox):
    asks = policy(sandbox, "verify: {critical: ask}")
    silent = sandbox.run(["sh", "-c", f"touch ran; {DEED}"], policy=asks)
    assert silent.code == 126 and not sandbox.staged("ran", silent.session).exists(), silent
    started = sandbox.run_outside(sandbox.command_line([], policy=asks, options=["-d"]))
    session = started.out.strip()
    allowed = []
    with Person(sandbox, session, lambda question: (allowed.pop(), 0, 0)) as person:
        for answer, code in ((True, 0), (False, 126)):
            allowed.append(answer)
            done = sandbox.run_atoll("exec", session, "--", "/bin/rm", "-rf", f"/etc/not-{code}")
            assert done.code == code, done
        questions = list(person.seen.values())
    assert questions[0]["rule"] == "verify.destructive.remove-system" and "removes" in questions[0]["why"], questions
    assert questions[0]["argv"] == ["/bin/rm", "-rf", "/etc/not-0"]
    sandbox.run_atoll("stop", session)


def verifier(sandbox):
    """The process that judges for this sandbox's programs."""
    mine = str(sandbox.programs.atoll.parent) + "/atoll-verify" if hasattr(sandbox.programs.atoll, "parent") else \
        os.path.join(os.path.dirname(str(sandbox.programs.atoll)), "atoll-verify")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == mine:
                return int(pid)
        except OSError:
            continue
    return None


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_nobody_can_judge(sandbox, how):
    """The command could not be judged, which the policy says is refused; the next one finds a new judge."""
    denies = policy(sandbox, "verify: {critical: deny, unknown: deny}")
    session = sandbox.run_outside(sandbox.command_line([], policy=denies, options=["-d"])).out.strip()
    assert sandbox.run_atoll("exec", session, "--", "sh", "-c", "echo fine").out == "fine\n"
    judge = verifier(sandbox)
    assert judge
    os.kill(judge, signal.SIGSTOP)
    child = subprocess.Popen([str(sandbox.programs.atoll), "exec", session, "--", "/bin/sh", "-c", "echo unjudged"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             start_new_session=True, **sandbox.popen_keywords())
    sandbox.children.append(child)
    if how == "killed":
        time.sleep(1)
        os.kill(judge, signal.SIGKILL)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 126 and "unjudged" not in out, (out, err)
    found = [one for one in records(sandbox, session) if one["rule"] == "verify.unknown.verifier"]
    assert found and found[0]["verdict"] == "deny", found
    (finding,) = found[0]["detail"]["findings"]
    why = {"killed": "has failed", "stopped": "does not answer"}
    assert finding["reason"] == f"the check of commands {why[how]}", found
    assert sandbox.run_atoll("exec", session, "--", "sh", "-c", "echo again").out == "again\n"
    assert verifier(sandbox) != judge
    sandbox.run_atoll("stop", session)
    wait_until(lambda: not verifier(sandbox), 30, "the judge outlives the sandbox")


def stopped_at_its_start(sandbox):
    """The first command of a session, whose judge stands still before it has read its rules; and both."""
    denies = policy(sandbox, "verify: {critical: deny, unknown: deny}")
    rule = "  - {{id: own.n{0}, class: evade, severity: low, match: {{program: no-such-tool-{0}}}, reason: no}}\n"
    rules = "".join(rule.format(n) for n in range(1000))
    # So many take longer to read than to be seen reading.
    sandbox.write(sandbox.base / "config/atoll/verify/many.yaml", f"atoll-verify: 1\nrules:\n{rules}")
    for _ in range(10):
        session = sandbox.run_outside(sandbox.command_line([], policy=denies, options=["-d"])).out.strip()
        child = subprocess.Popen([str(sandbox.programs.atoll), "exec", session, "--", "sh", "-c", "echo waited"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True, **sandbox.popen_keywords())
        sandbox.children.append(child)
        judge = wait_until(lambda: verifier(sandbox), 30, "the first command starts the judge")
        os.kill(judge, signal.SIGSTOP)
        kept = list((sandbox.state / "atoll" / "verify").glob("*.bin"))
        if not kept:
            return session, child, judge
        sandbox.run_atoll("stop", session)
        for one in kept:
            one.unlink()
    raise AssertionError("the judge is always faster")


def test_a_judge_that_starts_slowly_is_waited_for(sandbox):
    """Where the processor is slow or busy, the rules take long to read: longer than one judgement may take."""
    session, child, judge = stopped_at_its_start(sandbox)
    time.sleep(7)
    assert child.poll() is None
    os.kill(judge, signal.SIGCONT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (0, "waited\n"), err
    assert verifier(sandbox) == judge
    sandbox.run_atoll("stop", session)


def test_a_judge_that_is_given_little_time_has_not_failed(sandbox):
    """On a busy machine a text takes many times as long: who computes at all is waited for, and the answer counts."""
    sandbox.write(sandbox.project / "slow.sh", "exit 0\n" + "a|" * 20000 + "a\n")
    denies = policy(sandbox, "verify: {critical: deny, unknown: note}")
    session = sandbox.run_outside(sandbox.command_line([], policy=denies, options=["-d"])).out.strip()
    assert sandbox.run_atoll("exec", session, "--", "sh", "-c", "echo fine").out == "fine\n"
    judge = verifier(sandbox)
    os.kill(judge, signal.SIGSTOP)
    child = subprocess.Popen([str(sandbox.programs.atoll), "exec", session, "--", "sh", "slow.sh"],
                             stdin=subprocess.DEVNULL, start_new_session=True, **sandbox.popen_keywords())
    sandbox.children.append(child)
    # A few thousandths of a second in each one, for longer than it may stand still.
    for _ in range(10):
        time.sleep(1)
        os.kill(judge, signal.SIGCONT)
        time.sleep(0.002)
        os.kill(judge, signal.SIGSTOP)
    os.kill(judge, signal.SIGCONT)
    assert child.wait(timeout=60) == 0
    assert verifier(sandbox) == judge
    reasons = [finding["reason"] for entry in records(sandbox, session) for finding in entry["detail"]["findings"]]
    assert not [one for one in reasons if one.startswith("the check of commands")], reasons
    sandbox.run_atoll("stop", session)


def test_a_judge_with_much_to_do_has_not_failed(sandbox):
    """What waits too long could not be judged; who works on what came before is neither ended nor counted as a fall."""
    sandbox.write(sandbox.project / "slow.sh", "exit 0\n" + "a|" * 8000 + "a\n")
    notes = policy(sandbox, "verify: {critical: deny, unknown: note}")
    session = sandbox.run_outside(sandbox.command_line([], policy=notes, options=["-d"])).out.strip()
    assert sandbox.run_atoll("exec", session, "--", "sh", "-c", "echo fine").out == "fine\n"
    judge = verifier(sandbox)
    # More than may wait at one time, each of which takes some tenths of a second of the processor.
    script = "for i in {1..110}; do sh slow.sh & done; wait; echo all"
    done = sandbox.run_atoll("exec", session, "--", "bash", "-c", script, timeout=90)
    assert done.out == "all\n" and verifier(sandbox) == judge, done
    reasons = [finding["reason"] for entry in records(sandbox, session) for finding in entry["detail"]["findings"]]
    assert "too many commands wait to be judged" in reasons, reasons
    assert not [one for one in reasons if one.startswith("the check of commands")], reasons
    # What it was told before is worked off, and then it judges as ever.
    wait_until(lambda: sandbox.run_atoll("exec", session, "--", "sh", "-c", DEED).code == 126, 60, "it judges again")
    sandbox.run_atoll("stop", session)


def test_rules_with_errors_judge_nothing(sandbox):
    own = sandbox.base / "config/atoll/verify/own.yaml"
    sandbox.write(own, "atoll-verify: 1\nrules: [{id: x}]\n")
    done = sandbox.run(["sh", "-c", "echo ran"], policy=policy(sandbox, "verify: {critical: deny, unknown: deny}"))
    assert done.code == 126 and done.report["denials"][0]["rule"] == "verify.unknown.rules", done
    sandbox.write(own, """atoll-verify: 1
rules: [{id: own.echo, class: evade, severity: critical, match: {program: "true"}, reason: no}]
""")
    done = sandbox.run(["/bin/true"], policy=policy(sandbox))
    assert done.code == 126 and done.report["denials"][0]["rule"] == "verify.own.echo", done


def test_a_script_that_is_no_file_is_not_judged_as_harmless(sandbox):
    script = "mkfifo f; (echo 'echo ran' >f) & sh f"
    assert sandbox.run(script, policy=policy(sandbox, "", "plain.yaml")).out == "ran\n"
    done = sandbox.run(script, policy=policy(sandbox, "verify: {critical: deny, unknown: deny}"))
    assert "ran" not in done.out, done
    assert "verify.unknown.file" in {one["rule"] for one in done.report["denials"]}, done.report["denials"]


def test_beside_rules_about_programs(sandbox):
    both = policy(sandbox, STRICT + '\nexec: {deny: ["**/nothing", {argv: [git, push, "**"]}]}')
    done = sandbox.run("echo hello; /usr/bin/env sh -c 'echo there'", policy=both)
    assert done.code == 0 and done.out == "hello\nthere\n", done
    done = sandbox.run(["sh", "-c", f"touch ran; {DEED}"], policy=both)
    assert done.code == 126 and not sandbox.staged("ran", done.session).exists(), done


def test_a_project_can_only_tighten_it(sandbox):
    base = policy(sandbox, "verify: {high: ask, critical: ask}")
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nverify: {critical: deny}\n")
    assert "critical: deny" in sandbox.run_atoll("policy", "show", "-p", base, cwd=sandbox.project).out
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nverify: {critical: note}\n")
    done = sandbox.run(["/bin/true"], policy=base)
    assert done.code == 125 and "verify.critical" in done.err and "tighten" in done.err, done


UNJUDGED = "verify: {low: note, medium: note, high: deny, critical: deny, unknown: deny}"
BY_NUMBER = """
import os, sys
fd = os.open("deed", os.O_RDONLY)
os.set_inheritable(fd, True)
os.execv(sys.argv[1] % fd, ["deed"])
"""
FAR = """
import os
here = os.getcwd()
text = open("deed").read().replace("touch ran", f"touch {here}/ran")
for i in range(20):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
open("deed", "w").write(text)
os.chmod("deed", 0o755)
os.execv("./deed", ["deed"])
"""
LEASED = """
import fcntl, os, shutil, signal, time
shutil.copy("deed", "/tmp/leased")
ready, tell = os.pipe()
if os.fork() == 0:
    fd = os.open("/tmp/leased", os.O_RDWR)
    signal.signal(signal.SIGIO, lambda *_: (os.close(fd), os._exit(0)))
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    os.write(tell, b"x")
    time.sleep(10)
    os._exit(0)
os.read(ready, 1)
os.execv("/tmp/leased", ["leased"])
"""


@pytest.mark.parametrize("how", ["plain", "proc", "dev", "far", "leased", "link", "path", "long"])
def test_what_the_judge_is_not_shown_plainly(sandbox, how):
    """A script is judged before its first command, however it is named, or counts as what could not be judged."""
    for name, text in (("deed", f"#!/bin/sh\ntouch ran\n{DEED}\n"), ("plain", f"touch ran\n{DEED}\n"),
                       ("bin/hidden", f"touch ran\n{DEED}\n"), ("number.py", BY_NUMBER), ("far.py", FAR),
                       ("leased.py", LEASED)):
        sandbox.write(sandbox.project / name, text, 0o755)
    os.symlink("/bin/sh", sandbox.project / "other")
    command = {
        "plain": ["bash", "-c", "./plain"], "far": ["python3", "far.py"], "leased": ["python3", "leased.py"],
        "proc": ["python3", "number.py", "/proc/self/fd/%d"], "dev": ["python3", "number.py", "/dev/fd/%d"],
        "link": ["sh", "-c", "/usr/bin/env true; ./other plain"],
        "path": ["env", "PATH=bin:/usr/bin:/bin", "bash", "hidden"],
        "long": ["sh", "-c", f": {'x' * 120000}; touch ran; {DEED}"],
    }[how]
    free = sandbox.run(command, policy=policy(sandbox, "", "plain.yaml"))
    assert sandbox.staged("ran", free.session).exists(), free
    done = sandbox.run(command, policy=policy(sandbox, UNJUDGED))
    assert not sandbox.staged("ran", done.session).exists(), done


@pytest.mark.parametrize("many", [1, 40])
def test_what_is_unknown_is_not_hidden_behind_much_that_is_worse(sandbox, many):
    sandbox.write(sandbox.base / "config/atoll/verify/own.yaml", """atoll-verify: 1
rules: [{id: own.high, class: evade, severity: high, match: {program: hightool}, reason: no}]
""")
    worse = b"".join(b"hightool %d\n" % i for i in range(many))
    sandbox.write(sandbox.project / "s", b"touch ran\n" + worse + b"echo \xff\n")
    done = sandbox.run(["sh", "s"], policy=policy(sandbox, "verify: {critical: deny, unknown: deny}"))
    assert not sandbox.staged("ran", done.session).exists(), done
    assert "verify.unknown.encoding" in {one["rule"] for one in done.report["denials"]}, done


TELLING = """atoll-verify: 1
rules: [{id: own.telling, class: evade, severity: high, match: {kind: command, arguments: [telling-word]}, reason: no}]
"""


def test_a_telling_word_behind_many_others_is_judged(sandbox):
    """The record keeps 256 arguments and 32 KiB of an exec; what rules are about may stand behind that."""
    sandbox.write(sandbox.base / "config/atoll/verify/own.yaml", TELLING)
    cases = {"near": ["a", "telling-word"], "many": ["a"] * 300 + ["telling-word"],
             "large": ["a" * 40000, "telling-word"], "cut": ["a" * (32 << 10), "b", "telling-word", "c"]}
    for judged, code in (("verify: {high: deny, unknown: note}", 126), ("verify: {high: off, unknown: note}", 0)):
        started = sandbox.run_outside(sandbox.command_line([], policy=policy(sandbox, judged), options=["-d"]))
        session = started.out.strip()
        # From the first judgement on it is known which commands are worth one.
        assert sandbox.run_atoll("exec", session, "--", "sh", "-c", ":").code == 0
        for how, words in cases.items():
            assert sandbox.run_atoll("exec", session, "--", "/usr/bin/true", *words).code == code, how
        sandbox.run_atoll("stop", session)
        found = [one["rule"] for one in records(sandbox, session)]
        assert found.count("verify.own.telling") == (len(cases) if code else 0), found


def test_many_words_that_tell_nothing_are_not_asked_about(sandbox):
    """But where there are more than anybody looks through, nobody knows."""
    denies = policy(sandbox, "verify: {critical: deny, unknown: deny}")
    session = sandbox.run_outside(sandbox.command_line([], policy=denies, options=["-d"])).out.strip()
    assert sandbox.run_atoll("exec", session, "--", "sh", "-c", ":").code == 0
    for count, code in ((300, 0), (4000, 0), (9000, 126)):
        assert sandbox.run_atoll("exec", session, "--", "/usr/bin/true", *["a"] * count).code == code, count
    sandbox.run_atoll("stop", session)
    assert {one["rule"] for one in records(sandbox, session)} == {"verify.unknown.arguments"}


# One thread lets the program come and go while others start it: what is there after the look must not run unlooked at.
COMES_AND_GOES = """
import os, subprocess, sys, threading, time
end = time.monotonic() + float(sys.argv[1])
def goes_on():
    return time.monotonic() < end and not os.path.exists("ran")
def flip():
    while goes_on():
        os.link("kept", "flipped"); os.unlink("flipped")
def starts():
    while goes_on():
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", "i=0; while [ $i -lt 50 ]; do ./flipped; i=$((i+1)); done"],
                             os.environ)
        os.waitpid(pid, 0)
threads = [threading.Thread(target=flip)] + [threading.Thread(target=starts) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.parametrize("text, ran", [("exit 0", True), (DEED, False)])
def test_what_comes_after_the_look_does_not_run(sandbox, text, ran):
    """Positive control: a harmless program that comes and goes is started now and then."""
    sandbox.write(sandbox.project / "kept", f"#!/bin/sh\necho >>ran\n{text}\n", 0o755)
    seconds = "20" if ran else "2"   # the first start that comes about is the last
    done = sandbox.run(["python3", "-c", COMES_AND_GOES, seconds], policy=policy(sandbox), stderr=subprocess.DEVNULL)
    assert sandbox.staged("ran", done.session).exists() == ran, done
