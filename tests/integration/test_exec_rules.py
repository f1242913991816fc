# SPDX-License-Identifier: Apache-2.0
"""Where programs are judged, those that may run behave as ever: threads, signals, jobs, storms, builds."""
import json

import pytest

PYTHON = "/usr/bin/python3"
RULES = 'exec: {deny: ["**/nothing", {argv: [git, push, "**"]}]}'


def policy(sandbox, text=RULES):
    return sandbox.policy(f"atoll: 1\nextends: medium\n{text}\n")


def test_storms_of_programs(sandbox):
    script = r"""
import os, threading
def spawn(count, failed):
    for _ in range(count):
        pid = os.posix_spawn("/usr/bin/true", ["true"], os.environ)
        failed.append(os.waitpid(pid, 0)[1])
failed = []
threads = [threading.Thread(target=spawn, args=(125, failed)) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(failed), sum(failed))
"""
    done = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox))
    assert done.out.split() == ["1000", "0"], done


def test_any_thread_can_become_a_program(sandbox):
    """The thread takes the number of its process, and all others end; a failing exec leaves them all alone."""
    script = r"""
import os, threading, time
def become():
    try: os.execv("/usr/bin/nowhere", ["x"])
    except OSError: pass
    try: os.execv("/etc/passwd", ["x"])
    except OSError: pass
    os.execv("/bin/sh", ["sh", "-c", "echo $$ $PPID; grep -E 'Tracer|Threads' /proc/$$/status"])
for _ in range(3): threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
print(os.getpid(), os.getppid(), flush=True)
threading.Thread(target=become).start()
time.sleep(30)
"""
    done = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox))
    first, second, *rest = done.out.splitlines()
    assert first == second and [line.split() for line in rest] == [["TracerPid:", "0"], ["Threads:", "1"]], done


def test_jobs_and_signals(sandbox):
    script = r"""
import os, signal, subprocess, time
def wait(): return os.waitpid(pid, os.WUNTRACED | os.WCONTINUED)[1]
pid = os.posix_spawn("/usr/bin/sleep", ["sleep", "30"], os.environ)
os.kill(pid, signal.SIGSTOP); print(os.WIFSTOPPED(wait()))
os.kill(pid, signal.SIGCONT); print(os.WIFCONTINUED(wait()))
os.kill(pid, signal.SIGTERM); print(os.WTERMSIG(wait()))
# Stopped before its exec is through, and killed at any time.
for delay in range(40):
    pid = os.posix_spawn("/usr/bin/sleep", ["sleep", "30"], os.environ)
    time.sleep(delay / 20000)
    os.kill(pid, signal.SIGSTOP); stopped = os.WIFSTOPPED(wait())
    os.kill(pid, signal.SIGKILL)
    while not os.WIFSIGNALED(wait()): pass
    assert stopped
print(subprocess.run(["bash", "-c", "exec -a name bash -c 'echo $0; kill -USR1 $$'"]).returncode, flush=True)
"""
    done = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox))
    assert sorted(done.out.split()) == sorted(["True", "True", "15", "name", "-10"]), done


@pytest.mark.needs("gcc", "make", "git")
def test_real_builds(sandbox):
    sandbox.write(sandbox.project / "Makefile", "all: $(foreach n,1 2 3 4 5 6,p$(n))\np%: p%.c\n\tgcc -o $@ $<\n")
    for number in range(1, 7):
        sandbox.write(sandbox.project / f"p{number}.c", f"int main(void) {{ return {number}; }}\n")
    script = """make -s -j4 && for n in 1 2 3 4 5 6; do ./p$n; printf '%s ' $?; done
git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm x && git log --oneline | wc -l
git push x 2>&1; /usr/bin/git push; echo $?"""
    done = sandbox.run(script, policy=policy(sandbox))
    assert done.out.split()[:7] == ["1", "2", "3", "4", "5", "6", "1"] and done.out.split()[-1] == "126", done
    assert any(entry["rule"] == "exec.deny[1]" for entry in done.report["denials"]), done


@pytest.mark.parametrize("how, count", [("shell", 1), ("python", 1), ("env", 1), ("two processes", 2), ("again", 2),
                                        ("other words", 2)])
def test_one_search_along_path_is_one_refusal_for_people(sandbox, how, count):
    """Two directories of PATH that are the same one: each attempt is in the log, and the summary counts the search."""
    tool = sandbox.write(sandbox.project / "a" / "tool", "#!/bin/sh\necho ran\n", 0o755)
    (sandbox.project / "b").symlink_to("a")
    places = [f"{sandbox.project}/{name}/tool" for name in "ab"]
    search = f"PATH={sandbox.project}/a:{sandbox.project}/b"
    tries = {"again": [(places[0], "")] * 2, "other words": [(places[0], ""), (places[1], "x")]}.get(how, ())
    script = f"import os\nfor path, word in {list(tries)}:\n try: os.execv(path, ['tool', word])\n except OSError: pass"
    find = "import os\ntry: os.execvp('tool', ['tool'])\nexcept OSError: pass"
    command = {"shell": ["/usr/bin/dash", "-c", f"{search} tool"], "env": ["/usr/bin/env", search, "tool"],
               "python": ["/usr/bin/env", search, PYTHON, "-c", find],
               "two processes": ["/usr/bin/dash", "-c", "; ".join(places)]}.get(how, [PYTHON, "-c", script])
    plain = sandbox.run([str(tool)], policy=policy(sandbox, ""))
    assert plain.out == "ran\n", plain
    done = sandbox.run(command, policy=policy(sandbox, 'exec: {deny: ["**/tool"]}'))
    entries = map(json.loads, sandbox.audit_log(done.session).read_text().splitlines())
    tried = [entry["subject"] for entry in entries if entry["type"] == "exec.start" and entry["verdict"] == "deny"]
    assert tried == (places[:1] * 2 if how == "again" else places), (tried, done)
    assert sum(entry["count"] for entry in done.report["denials"]) == 2, done.report["denials"]
    lines = [line.split() for line in done.err.splitlines()]
    assert [line[2] for line in lines if line[-1:] == ["refused:"]] == [str(count)], done
    said = [line for line in lines if line[:1] == ["exec"]]
    assert [line[1] for line in said] == (places[:1] if count == 1 or how == "again" else places), done
    assert ("(2 times)" in done.err) == (how == "again"), done


def test_what_mounts_refuse_to_execute_is_told(sandbox):
    """`exec.new_binaries: false`, and programs that mounts took away: the kernel refused them, and nobody said so."""
    blind = sandbox.policy("atoll: 1\nextends: medium\nexec: {new_binaries: false}\nverify: {low: off, medium: off, "
                           "high: off, critical: off, unknown: off}\n")
    script = r"""
cp /usr/bin/true made; ./made; ln -s made link; ./link; echo 'echo hi' >text; ./text
printf '#!/bin/sh\necho hi\n' >script; chmod +x script; ./script; sh script; /usr/bin/su -c id; /usr/bin/true
cat /run/atoll/denials.jsonl
"""
    done = sandbox.run(script, policy=blind)
    told = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    project = str(sandbox.project)
    assert [(one["subject"].replace(project, "."), one["rule"].split("[")[0]) for one in told] == [
        ("./made", "exec.new_binaries"), ("./link", "exec.new_binaries"), ("./script", "exec.new_binaries"),
        ("/usr/bin/su", "exec.deny")], told
    assert done.out.startswith("hi\n") and done.report["decisions"]["deny"] == 4, done


def test_the_agent_and_people_are_told(sandbox):
    text = "exec: {default: deny, allow: [/bin/sh, /usr/bin/cat]}"
    done = sandbox.run(["sh", "-c", "id; cat /run/atoll/denials.jsonl /run/atoll/limits.md"],
                       policy=policy(sandbox, text))
    entry = json.loads(done.out.splitlines()[0])
    assert (entry["kind"], entry["subject"], entry["rule"]) == ("exec", "/usr/bin/id", "exec.default"), done
    assert "allow: `/usr/bin/cat`" in done.out and "no other program" in done.out, done
    done = sandbox.run_atoll("policy", "explain", "-p", policy(sandbox, text), "exec", "/usr/bin/id",
                             cwd=sandbox.project)
    assert "exec.default" in done.out and "deny" in done.out, done


def test_refusals_at_any_gate_pause_all(sandbox):
    """After a burst of them nothing starts for a while, and then again."""
    script = r"""
import os, time
def run(program):
    pid = os.fork()
    if not pid:
        try: os.execv(program, [program])
        except OSError as error: os._exit(error.errno)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(*[run("/usr/bin/id") for _ in range(3)], run("/usr/bin/true"))
end = time.monotonic() + 20
while run("/usr/bin/true") and time.monotonic() < end: time.sleep(.1)
print(run("/usr/bin/true"))
"""
    text = 'exec: {deny: ["**/id"]}\ntime: {cooldown: {denials: 3, within: 20s, pause: 2s}}'
    done = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox, text))
    assert done.out.split() == ["13", "13", "13", "11", "0"], done
    assert done.report["limits_hit"] == ["time.cooldown"], done


LEASE = r"""
import fcntl, os, shutil, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
shutil.copy("/usr/bin/true", "leased")
fd = os.open("leased", os.O_RDONLY)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
begun = time.monotonic()
pid = os.fork()
if not pid:
    try: os.execv("./leased", ["leased"])
    except OSError as error: os._exit(error.errno)
time.sleep(1)
other = os.posix_spawn("/usr/bin/true", ["true"], os.environ)
print("other", os.waitpid(other, 0)[1], time.monotonic() - begun < 10)
done, status = os.waitpid(pid, os.WNOHANG)
print("stands" if not done else os.waitstatus_to_exitcode(status))
os.kill(pid, signal.SIGKILL)
"""


def test_a_lease_holds_nobody_but_who_asks(sandbox):
    """Who opens a file that another process has a lease on waits for up to 45 s: that must not be the supervisor."""
    sandbox.write(sandbox.project / "lease.py", LEASE)
    control = sandbox.run_outside([PYTHON, "lease.py"], cwd=sandbox.project)
    assert control.out.splitlines() == ["other 0 True", "stands"], control
    done = sandbox.run([PYTHON, "lease.py"], policy=policy(sandbox))
    assert done.out.splitlines() == ["other 0 True", "26"], done
