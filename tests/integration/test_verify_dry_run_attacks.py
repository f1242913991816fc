# SPDX-License-Identifier: Apache-2.0
"""`verify: dry-run` against an agent: what it brings along reaches no program of ours, and what the trial could not
have, or did not see, is no reason to let a program start."""
import json
import os
import subprocess
import time

import pytest

from atoll import wait_until
from test_verify_dry_run import DEED, phases, policy, records, start


@pytest.fixture
def session(sandbox):
    name = start(sandbox, policy=policy(sandbox))
    yield name
    sandbox.run_atoll("stop", name)


def trials(sandbox):
    told = json.loads(sandbox.run_atoll("ps", "-a", "--json").out)
    return [one["session"] for one in told if str(one.get("name") or "").startswith("trial-")]


def tried(sandbox, session):
    details = [one["detail"] for one in records(sandbox, session)]
    return [detail for detail in details if detail["phase"] == "tried"]


def written(sandbox):
    """What trials wrote, and is still there."""
    roots = [sandbox.state / "atoll" / "sessions" / trial / "stage" for trial in trials(sandbox)]
    # Not rglob(): what is being removed must not stop the look.
    return [os.path.join(folder, "made") for root in roots for place in ("live", "layers")
            for folder, _, files in os.walk(root / place) if "made" in files]


def python(sandbox, session, text):
    script = sandbox.write(sandbox.project / "outer.py", text)
    return sandbox.run_atoll("exec", session, "--", "python3", str(script))


def test_its_variables_reach_no_program_outside(sandbox, session):
    """A trial ends with the programs that every session ends with: they have the variables of the person."""
    here = sandbox.make_directory(sandbox.outside / "linker")
    variables = ["-e", "LD_DEBUG=files", "-e", f"LD_DEBUG_OUTPUT={here}/seen"]
    day = sandbox.state / "atoll" / "gc"
    sandbox.write(day, "", 0o600)
    os.utime(day, (1, 1))
    done = sandbox.run_atoll("exec", *variables, session, "--", "/bin/sh", "-c", f"echo 1 >made; {DEED}")
    assert done.code == 0, done
    wait_until(lambda: ("tried", "clean", "allow") in phases(sandbox, session), 30, "it was tried")
    wait_until(lambda: day.stat().st_mtime > 1, 30, "it was tidied up")
    wait_until(lambda: not written(sandbox), 30, "the trial is gone")
    assert not os.listdir(here)
    # Positive control: the same program with these variables leaves its mark there.
    sandbox.run_outside([str(sandbox.programs.atoll.parent / "atoll-stage")],
                        env={"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": f"{here}/seen"})
    assert os.listdir(here)


@pytest.mark.parametrize("kept", [True, False])
def test_what_has_more_than_its_streams_is_asked_about(sandbox, session, kept):
    """`while read -u 3` reads nothing in a trial; for real it reads a list."""
    done = python(sandbox, session, f"""
import os, subprocess, sys
read_fd, write_fd = os.pipe()
os.write(write_fd, b"touch ran\\n")
os.close(write_fd)
command = ["/bin/sh", "-c", 'test -e /dev/fd/%d && . /dev/fd/%d; {DEED}' % (read_fd, read_fd)]
sys.exit(subprocess.run(command, pass_fds=[read_fd] if {kept} else [], stdin=subprocess.DEVNULL).returncode)
""")
    # The script was tried as well, and could start.
    wait_until(lambda: len(tried(sandbox, session)) == 2, 30, "both were tried")
    outer, inner = tried(sandbox, session)
    assert outer["result"] == "clean" and (inner["result"] == "failed") == kept, (done, outer, inner)
    assert ("descriptors" in inner["text"]) == kept, inner
    assert not sandbox.staged("ran", session).exists()


def test_a_trial_is_for_nobody_else(sandbox, session):
    """One with no input is tried and killed meanwhile; the next with the same words has an input."""
    done = python(sandbox, session, f"""
import os, subprocess, sys, time
command = ["/bin/sh", "-c", 'sleep 3; read x; {DEED}; $x; true']
pid = os.fork()
if pid == 0:
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.execv(command[0], command)
time.sleep(2)
os.kill(pid, 9)
os.waitpid(pid, 0)
read_fd, write_fd = os.pipe()
os.write(write_fd, b"touch ran\\n")
os.close(write_fd)
child = os.fork()
if child == 0:
    os.dup2(read_fd, 0)
    os.close(read_fd)
    try:
        os.execv(command[0], command)
    except OSError as error:
        os._exit(error.errno)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert done.code == 13 and not sandbox.staged("ran", session).exists(), (done, tried(sandbox, session))
    wait_until(lambda: any("reads its input" in one["text"] for one in tried(sandbox, session)), 30, "it is told")


def test_a_thread_that_starts_it_is_asked_about(sandbox, session):
    """It could not be compared afterwards: its number is that of no process then."""
    python(sandbox, session, f"""
import os, threading
os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
starting = threading.Thread(target=os.execv, args=("/bin/sh", ["/bin/sh", "-c", '{DEED}']))
starting.start()
starting.join()
""")
    wait_until(lambda: any("a thread starts it" in one["text"] for one in tried(sandbox, session)), 30, "it is told")


def test_nothing_is_left_of_a_trial_for_which_nobody_waits(sandbox, session):
    """What an agent could have left behind again and again would fill the disk."""
    words = [str(sandbox.programs.atoll), "exec", session, "--", "/bin/sh", "-c", f"echo 1 >made; sleep 90; {DEED}"]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, **sandbox.popen_keywords()) as running:
        wait_until(lambda: written(sandbox), 30, "it is tried")
        sandbox.run_atoll("stop", session)
        wait_until(lambda: not written(sandbox), 40, "it is gone with the box")
        running.kill()


def test_who_tries_without_end_is_asked_about(sandbox, session):
    """Each trial leaves a record with its log on the host, and the agent says how often: 30, and one more a minute."""
    loop = f"for i in $(seq 40); do /bin/sh -c '{DEED}; : $0' $i >/dev/null 2>&1; echo $?; done"
    script = sandbox.write(sandbox.project / "outer.sh", loop, 0o755)
    begun = time.monotonic()
    done = sandbox.run_atoll("exec", session, "--", "/bin/bash", str(script), timeout=300)
    most = 30 + (time.monotonic() - begun) / 60 + 1
    codes = done.out.split()
    # The log may still be on its way.
    wait_until(lambda: len(tried(sandbox, session)) == 41, 30, "all of it is written down")
    results = [one["result"] for one in tried(sandbox, session)]
    # The control: those before were tried, and started.
    assert 20 <= results.count("clean") <= most and len(trials(sandbox)) <= most, (results, most, done)
    untried = [one["text"] for one in tried(sandbox, session) if one["result"] == "failed"]
    assert len(codes) == 40 and codes.count("126") == len(untried) >= 40 - most, (codes, untried)
    # Some meet others that are just being removed.
    assert set(untried) - {"too many trials run at one time"} == {"too much was tried lately"}, untried
