# SPDX-License-Identifier: Apache-2.0
"""time.rate and time.cooldown: what is too much fails with EAGAIN, is told once, and works again."""
import json

TRY = """
import os, sys, time
def run(program="/bin/true"):
    pid = os.fork()
    if not pid:
        try: os.execv(program, [program])
        except OSError as error: os._exit(error.errno)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
PYTHON = "/usr/bin/python3"
EAGAIN = 11


def policy(sandbox, text):
    return sandbox.policy(f"atoll: 1\nextends: medium\n{text}\n")


def limit_hits(sandbox, done):
    lines = map(json.loads, sandbox.audit_log(done.session).read_text().splitlines())
    return [entry["rule"] for entry in lines if entry["type"] == "limit.hit"]


def test_programs_have_a_pace(sandbox):
    script = TRY + """
print(*[run() for _ in range(9)])
print(open("/run/atoll/denials.jsonl").read(), end="")
print(open("/run/atoll/limits.md").read())
"""
    done = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox, "time: {rate: {exec: 5/h}}"))
    lines = done.out.splitlines()
    # The interpreter itself is the first of the five.
    assert lines[0].split() == ["0"] * 4 + [str(EAGAIN)] * 5, done
    told = json.loads(lines[1])
    assert (told["kind"], told["rule"]) == ("exec", "time.rate.exec") and "5/h" in told["reason"], done
    assert not lines[2].startswith("{") and "programs started: 5/h" in done.out, done
    assert limit_hits(sandbox, done) == done.report["limits_hit"] == ["time.rate.exec"], done
    done = sandbox.run([PYTHON, "-c", TRY + "print(*[run() for _ in range(9)])"], policy=policy(sandbox, ""))
    assert done.out.split() == ["0"] * 9, done


def test_a_rate_refills(sandbox):
    script = TRY + """
print(run(), run())
end = time.monotonic() + 20
while run() and time.monotonic() < end: time.sleep(.1)
print(time.monotonic() < end)
"""
    done = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox, "time: {rate: {exec: 2/s}}"))
    assert done.out.splitlines()[1] == "True", done


def test_what_a_project_asks_for_is_explained(sandbox):
    text = policy(sandbox, "time: {rate: {exec: 60/min}, cooldown: {denials: 5, within: 1s, pause: 2s}}")
    done = sandbox.run_atoll("policy", "explain", "-p", text, "exec", "/bin/true", cwd=sandbox.project)
    assert "limit:   rate 60/min (time)" in done.out, done
    done = sandbox.run_atoll("policy", "show", "-p", text, cwd=sandbox.project)
    assert "  rate:\n    exec: 60/min\n  cooldown: {denials: 5, within: 1s, pause: 2s}\n" in done.out, done


def test_files_have_a_pace(sandbox):
    script = """
import json, os
def attempt(number):
    try: open(f"file{number}", "w").close(); return 0
    except OSError as error: return error.errno
print(*[attempt(n) for n in range(8)])
print(open("/etc/passwd").read() != "", len(os.listdir(".")))
print(json.loads(open("/run/atoll/denials.jsonl").readline())["rule"])
"""
    done = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox, "time: {rate: {file.write: 6/h}}"),
                       env={"PYTHONDONTWRITEBYTECODE": "1"})
    first = done.out.splitlines()[0].split()
    made = first.count("0")
    # What starts the command may have opened one to write.
    assert 4 <= made <= 6 and first == ["0"] * made + [str(EAGAIN)] * (8 - made), done
    assert done.out.splitlines()[1:] == [f"True {made}", "time.rate.file.write"], done
    assert done.report["limits_hit"] == ["time.rate.file.write"], done


def test_why_can_be_read_while_nothing_else_can(sandbox):
    """Where reads are mediated they have a pace and pauses too, but for what atoll tells the agent."""
    script = """
import json
def attempt(path):
    try: return open(path).read()
    except OSError as error: return error.errno
for _ in range(9): attempt("data")
print(attempt("/etc/hostname"), attempt("/proc/self/root/etc/hostname"))
told = attempt("/run/atoll/denials.jsonl").splitlines()
print(json.loads(told[-1])["rule"], "time" in attempt("/run/atoll/limits.md"))
"""
    sandbox.write(sandbox.project / "data", "DATA")
    for text, rule in (("time: {cooldown: {denials: 3, within: 10s, pause: 60s}}", "time.cooldown"),
                       ("time: {rate: {file.read: 200/h}}", "time.rate.file.read")):
        reads = script if "cooldown" in text else script.replace("range(9)", "range(400)")
        done = sandbox.run([PYTHON, "-c", reads], policy=policy(sandbox, f"files: {{ask: [data]}}\n{text}"))
        assert done.out.splitlines() == [f"{EAGAIN} {EAGAIN}", f"{rule} True"], done
