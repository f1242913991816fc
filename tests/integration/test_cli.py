# SPDX-License-Identifier: Apache-2.0
"""The command line itself: bad input ends with one clear line and the right status, and leaves nothing half-made."""
import base64
import hashlib
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import time

import pytest

from atoll import ROOT, wait_until

VERBS = ["doctor", "exec", "help", "log", "policy", "ps", "run", "stop", "version"]


def assert_one_line(result, *words, code=125):
    """One line on stderr, from atoll, with what went wrong; nothing on stdout; the right status."""
    assert result.code == code, result
    lines = result.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("atoll: "), result
    for word in words:
        assert word in lines[0], result
    assert result.out == "", result


def shell(sandbox, script, *arguments, **keywords):
    """A bash script outside the sandbox, in which $ATOLL is the program."""
    env = {"ATOLL": str(sandbox.programs.atoll), **keywords.pop("env", {})}
    return sandbox.run_outside(["bash", "-c", script, "bash", *arguments], env=env, **keywords)


def doctor_places():
    """What doctors keep in /tmp while they work; another one may be at work beside this test."""
    return set(pathlib.Path("/tmp").glob("atoll-doctor-*")) | set(pathlib.Path("/var/tmp").glob("atoll-doctor-*"))


def cached(sandbox):
    return sorted((sandbox.state / "atoll" / "policy").glob("*.bin"))


# --- What is typed. ---

def test_nothing_prints_help(sandbox):
    result = sandbox.run_atoll()
    assert result.code == 0 and result.err == ""
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", result.out, re.M), result


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_explains_itself(sandbox, verb):
    asked = sandbox.run_atoll(verb, "--help")
    assert asked.code == 0 and asked.err == "" and f"atoll {verb}" in asked.out
    assert sandbox.run_atoll("help", verb).out == asked.out


def test_version(sandbox):
    result = sandbox.run_atoll("--version")
    assert result.code == 0 and re.fullmatch(r"atoll \d+\.\d+\.\d+\n", result.out)


@pytest.mark.parametrize("words, expected", [
    (["rn"], ["rn is not a verb", "atoll run"]),
    (["frobnicate"], ["not a verb", "atoll help"]),
    (["\033[31mevil"], ["not a verb"]),
    (["run"], ["no command", "atoll run --"]),
    (["run", "--"], ["no command"]),
    (["run", "--polcy", "x", "true"], ["--polcy", "--policy"]),
    (["run", "-p"], ["--policy needs a value"]),
    (["run", "-t", "hihg", "true"], ["hihg is not a trust level", "high"]),
    (["run", "-t", "", "true"], ["not a trust level"]),
    (["run", "--report", "-", "true"], ["--report needs a file"]),
    (["run", "--report", "", "true"], ["--report needs a file"]),
    (["run", "--json", "true"], ["--json is only for --detach"]),
    (["run", "-n", "../x", "true"], ["cannot be the name"]),
    (["run", "-n", "", "true"], ["cannot be the name"]),
    (["run", "-e", "1X=2", "true"], ["names no variable"]),
    (["run", "-e", "=2", "true"], ["names no variable"]),
    (["run", "--quiet=yes", "true"], ["--quiet takes no value"]),
    (["run", "--project", "/nonexistent\n/x", "true"], ["--project", "No such file", "\\x0a"]),
    (["run", "--project", "/etc/passwd", "true"], ["--project", "Not a directory"]),
    (["run", "-C", "/nonexistent", "true"], ["--cwd", "No such file"]),
    (["exec", "nosuchsession", "--", "true"], ["no running session nosuchsession", "atoll ps"]),
    (["exec", "--", "true"], ["no running session"]),
    (["exec"], ["no command"]),
    (["stop", "nosuchsession"], ["no running session nosuchsession"]),
    (["stop"], ["which session? atoll stop ID"]),
    (["stop", "--all", "x"], ["--all cannot be used with names"]),
    (["stop", "-t", "5", "x"], ["--time needs a duration up to 24h, not 5"]),
    (["log", "nosuchsession"], ["no session nosuchsession"]),
    (["ps", "x"], ["takes no names"]),
    (["doctor", "x"], ["takes no arguments"]),
    (["help", "rn"], ["rn is not a verb", "atoll help run"]),
    (["--hlep"], ["not a verb", "did you mean `atoll help`?"]),
    (["policy", "shwo"], ["shwo is not a verb", "did you mean `atoll policy show`?"]),
    (["policy", "frobnicate"], ["check, diff, explain"]),
    (["secret", "sett"], ["did you mean `atoll secret set`?"]),
    (["token", "mitn"], ["did you mean `atoll token mint`?"]),
    (["exec", "box", "-C", "/", "--", "true"], ["-C stands after the session", "options come first"]),
    (["help", "--completion", "csh"], ["no completion for csh"]),
])
def test_wrong_words_end_with_one_line(sandbox, words, expected):
    result = sandbox.run_atoll(*words)
    assert_one_line(result, *expected)
    assert "\033" not in result.err
    assert sandbox.sessions() == []


def test_colour_only_on_a_terminal(sandbox):
    with_terminal = ["script", "-qec", f"{sandbox.programs.atoll} rn", "/dev/null"]
    assert "\033[1;31matoll:" in sandbox.run_outside(with_terminal).out
    assert "\033[1;31m" not in sandbox.run_outside(with_terminal, env={"NO_COLOR": "1"}).out
    assert "\033" not in sandbox.run_atoll("rn").err


def test_help_to_a_full_disk_fails(sandbox):
    assert shell(sandbox, '"$ATOLL" help >/dev/full').code == 125


# --- Where it is typed. ---

@pytest.mark.parametrize("place", ["home", "above", "root"])
def test_home_and_root_are_no_project_unless_named(sandbox, place):
    cwd = {"home": sandbox.home, "above": sandbox.home.parent, "root": "/"}[place]
    assert_one_line(sandbox.run_atoll("run", "true", cwd=cwd), "is no project", "--project")
    assert sandbox.sessions() == []


def test_home_is_refused_behind_a_link_too(sandbox):
    os.symlink(sandbox.home, sandbox.base / "link")
    result = sandbox.run_atoll("run", "true", cwd=sandbox.home, env={"HOME": str(sandbox.base / "link")})
    assert_one_line(result, "is no project")


def test_home_said_twice_is_a_project(sandbox):
    result = sandbox.run(["pwd"], cwd=sandbox.home, options=["--project", sandbox.home])
    assert result.code == 0 and result.out.strip() == str(sandbox.home), result


def test_a_marked_home_does_not_swallow_what_is_below(sandbox):
    sandbox.write(sandbox.home / ".atoll.yaml", "atoll: 1\n")
    below = sandbox.make_directory(sandbox.home / "notes")
    result = sandbox.run("touch here; touch ../there; true", cwd=below)
    assert result.code == 0, result
    assert sandbox.staged("here", result.session).exists() and not (below / "here").exists()
    assert not (sandbox.home / "there").exists()


def test_deleted_working_directory(sandbox):
    result = shell(sandbox, 'mkdir gone && cd gone && rmdir ../gone && exec "$ATOLL" run true')
    assert_one_line(result, "working directory does not exist")


def test_deleted_working_directory_does_not_matter_when_the_project_is_named(sandbox):
    result = shell(sandbox, 'mkdir gone && cd gone && rmdir ../gone && exec "$ATOLL" run -q --project "$1" pwd',
                   str(sandbox.project))
    assert result.code == 0 and result.out.strip() == str(sandbox.project), result


def test_working_directory_with_a_path_of_more_than_4095_bytes(sandbox):
    result = shell(sandbox, 'n=$(printf d%.0s {1..200}); for i in {1..25}; do mkdir $n && cd -P $n 2>/dev/null ||'
                            ' exit 9; done; exec "$ATOLL" run true')
    assert_one_line(result, "longer than 4095 bytes")


def test_working_directory_that_is_not_in_the_view(sandbox):
    """It is not the command that is missing, so the message must not say that."""
    outside = sandbox.make_directory(sandbox.home / "elsewhere")
    words = ["run", "--project", sandbox.project, "-C"]
    assert sandbox.run_atoll(*words, sandbox.project, "--", "true").code == 0
    done = sandbox.run_atoll(*words, outside, "--", "true")
    assert done.code == 125 and str(outside) in done.err and "-C" in done.err and "true" not in done.err, done


@pytest.mark.only("user")
def test_working_directory_that_cannot_be_entered(sandbox):
    result = shell(sandbox, 'mkdir closed && cd closed && chmod 0 . && exec "$ATOLL" run true')
    (sandbox.project / "closed").chmod(0o700)
    assert_one_line(result, "cannot be entered")


@pytest.mark.parametrize("name", ["with space", "new\nline", "qu'ote\"s", "-dash", "caf\u00e9", b"not\xffutf8",
                                  "\u202ebidi"])
def test_projects_of_any_name(sandbox, name):
    project = os.path.join(os.fsencode(sandbox.home), os.fsencode(name))
    os.mkdir(project)
    os.chown(project, sandbox.identity.uid, sandbox.identity.gid)
    done = subprocess.run([os.fspath(sandbox.programs.atoll), "run", "-q", "--", "sh", "-c", "pwd; echo x >made"],
                          capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
                          **{**sandbox.popen_keywords(), "cwd": project})
    assert done.returncode == 0, done
    assert done.stdout == project + b"\n"
    assert os.listdir(project) == [] and sandbox.staged("made").read_text() == "x\n"
    listed = sandbox.run_atoll("ps", "-a")
    assert listed.code == 0 and len(listed.out.splitlines()) == 2, listed
    record = json.loads(sandbox.run_atoll("ps", "-a", "--json").out)[0]
    if isinstance(name, str):
        assert record["project"] == project.decode()
    else:
        assert base64.b64decode(record["project"]["b64"]) == project


# --- Who types it. ---

def test_no_home(sandbox):
    assert sandbox.run(["true"], env={"HOME": None}).code == 0
    assert sandbox.run(["true"], env={"HOME": "relative"}).code == 0


def test_no_environment_at_all(sandbox):
    result = shell(sandbox, 'exec env -i XDG_STATE_HOME="$1" "$ATOLL" run -q /bin/true', str(sandbox.state))
    assert result.code == 0, result


@pytest.mark.only("user")
def test_no_home_and_no_state_directory_in_reach(sandbox):
    result = shell(sandbox, 'exec env -u XDG_STATE_HOME HOME=/proc/nowhere "$ATOLL" run true')
    assert_one_line(result, "state directory", "XDG_STATE_HOME")


@pytest.mark.only("root")
def test_root_says_which_state_directory_it_does_not_use(sandbox):
    wide = sandbox.make_directory(sandbox.base / "wide")
    wide.chmod(0o777)
    for ignored in (wide, sandbox.base / "missing", "relative"):
        result = shell(sandbox, 'XDG_STATE_HOME="$1" exec "$ATOLL" ps', str(ignored))
        line, = result.err.splitlines()
        assert "XDG_STATE_HOME is not used" in line and str(ignored) in line and "/var/lib/atoll" in line, result
    assert "XDG_STATE_HOME" not in shell(sandbox, 'exec "$ATOLL" ps').err


@pytest.mark.only("user")
def test_read_only_state_directory(sandbox):
    (sandbox.state / "atoll").mkdir(mode=0o700)
    sandbox.own(sandbox.state / "atoll").chmod(0o500)
    assert_one_line(sandbox.run_atoll("run", "true"), "state directory", "cannot be written", "XDG_STATE_HOME")
    (sandbox.state / "atoll").chmod(0o700)
    assert sandbox.run_atoll("run", "-q", "true").code == 0


def test_state_directory_that_is_a_file(sandbox):
    sandbox.write(sandbox.state / "atoll", "x")
    assert_one_line(sandbox.run_atoll("run", "true"), "state directory")


def test_state_directory_that_others_can_write(sandbox):
    (sandbox.state / "atoll").mkdir()
    sandbox.own(sandbox.state / "atoll").chmod(0o777)
    assert_one_line(sandbox.run_atoll("run", "true"), "can be written by others")


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_streams(sandbox, closed):
    """Nothing that atoll opens may land on a number that the command believes to be its stdout."""
    result = shell(sandbox, f'"$ATOLL" run -q -- sh -c "echo x; exit 7" {closed}')
    assert result.code == 7, result


@pytest.mark.parametrize("inherited", [[], [3, 4, 5, 9, 15]])
def test_few_descriptors(sandbox, inherited):
    opened = " ".join(f"{fd}</etc/passwd" for fd in inherited)
    script = (f"exec {opened}; " if opened else "") + 'ulimit -n 16; exec "$ATOLL" run -q -- ls /proc/self/fd'
    result = shell(sandbox, script)
    if result.code == 125:
        assert_one_line(result, "ulimit -n")   # too few is an answer, as long as it is said
    else:
        assert result.code == 0 and result.out.split() == ["0", "1", "2", "3"], result


def test_too_few_descriptors_are_named(sandbox):
    """They run out in many places, of which none is to blame."""
    outcomes = {}
    for limit in range(8, 65):
        result = shell(sandbox, f'ulimit -n {limit}; exec "$ATOLL" run -q true')
        outcomes.setdefault(result.code, []).append(result)
    assert set(outcomes) == {125, 0}, outcomes
    for result in outcomes[125]:
        assert_one_line(result, "ulimit -n")


@pytest.mark.parametrize("name", [".", "..", "folder", "folder/", "missing/r.json"])
def test_report_that_cannot_be_written_there(sandbox, name):
    """Said before the command runs: nothing of what it did would be told."""
    sandbox.make_directory(sandbox.project / "folder")
    result = sandbox.run_atoll("run", "-q", "--report", name, "--", "sh", "-c", "echo ran")
    assert_one_line(result, "cannot write the report")
    assert not result.out and "ran" not in result.err, result


def test_little_memory(sandbox):
    """From where the kernel can load atoll (with less, execve ends the process by SIGSEGV) to where it is enough."""
    outcomes = {}
    for kib in (*range(2560, 4096, 32), *range(4096, 9216, 512)):
        result = sandbox.run_outside(["prlimit", f"--as={kib << 10}", sandbox.programs.atoll, "run", "-q", "true"])
        outcomes.setdefault(result.code, []).append(result)
    assert set(outcomes) <= {-signal.SIGSEGV, 125, 0} and 125 in outcomes and 0 in outcomes, outcomes
    for result in outcomes[125]:
        assert result.err.splitlines() and result.err.splitlines()[-1].startswith("atoll: "), result


def test_environment_larger_than_a_request(sandbox):
    huge = {f"V{i}": "x" * 100_000 for i in range(15)}
    assert sandbox.run_atoll("run", "-q", "true", env=huge).code == 0
    result = sandbox.run_atoll("run", "-q", "sh", "-c", "echo ${#V0}", env=huge)
    assert result.out == "0\n", result


def test_added_variables_reach_the_command_and_others_do_not(sandbox):
    result = sandbox.run('echo "$GIVEN,$TAKEN,$SECRET,$MISSING"', env={"TAKEN": "t", "SECRET": "s"},
                         options=["-e", "GIVEN=a b=c", "-e", "TAKEN", "-e", "MISSING"])
    assert result.out == "a b=c,t,,\n", result


# --- Policies. ---

def test_a_policy_that_is_not_there(sandbox):
    result = sandbox.run_atoll("run", "-p", "nosuchpolicy", "true")
    assert result.code == 125 and "nosuchpolicy" in result.err and sandbox.sessions() == []
    result = sandbox.run_atoll("run", "-p", "./no/such.yaml", "true")
    assert result.code == 125 and "no/such.yaml" in result.err


def test_a_wrong_policy_is_refused_with_its_place(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: medium\nresuorces: {memory: 1GiB}\n")
    result = sandbox.run_atoll("run", "-p", policy, "true")
    assert result.code == 125 and f"{policy}:3:1" in result.err and "resources" in result.err, result
    assert sandbox.sessions() == []


def test_what_cannot_be_enforced_is_refused_by_name(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: medium\nnetwork:\n  allow:\n"
                            "    - {host: example.org}\ndata:\n  pii: flag\n")
    assert_one_line(sandbox.run_atoll("run", "-p", policy, "true"), "cannot enforce yet", "data.pii", f"{policy}:")
    assert sandbox.sessions() == []


def test_an_unchanged_policy_is_compiled_once(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: medium\n")
    os.utime(policy)
    time.sleep(2.5)   # younger sources are never trusted: they could change again within the clock's tick
    sandbox.run(["true"], policy=policy)
    before = [(path, path.stat().st_mtime_ns) for path in cached(sandbox)]
    assert len(before) == 1 and stat.S_IMODE(before[0][0].stat().st_mode) == 0o600
    again = sandbox.run(["true"], policy=policy)
    assert again.code == 0
    assert [(path, path.stat().st_mtime_ns) for path in cached(sandbox)] == before
    # The log names it by its hash, which comes out of the cache as well.
    start = json.loads(sandbox.audit_log(again.session).read_text().splitlines()[0])
    enforced = (sandbox.audit_log(again.session).parent / "policy.bin").read_bytes()
    assert start["detail"]["policy_hash"] == "sha256:" + hashlib.sha256(enforced).hexdigest()


def test_a_changed_policy_is_compiled_again(sandbox):
    """Also within the same clock tick, with the size and the time of the old one."""
    yes = "atoll: 1\nextends: medium\nenv: {set: {SAYS: yes}}\n"
    no = "atoll: 1\nextends: medium\nenv: {set: {SAYS: no_}}\n"
    policy = sandbox.policy(yes)
    assert sandbox.run("echo $SAYS", policy=policy).out == "yes\n"
    times = (policy.stat().st_atime_ns, policy.stat().st_mtime_ns)
    policy.write_text(no)
    os.utime(policy, ns=times)
    assert sandbox.run("echo $SAYS", policy=policy).out == "no_\n"


def test_a_project_policy_that_appears_is_seen(sandbox):
    time.sleep(2.5)
    assert sandbox.run("echo $SAYS").out == "\n"
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nresources: {open_files: 99}\n")
    assert sandbox.run("ulimit -n").out == "99\n"


@pytest.mark.parametrize("damage", ["truncated", "bytes", "empty", "mode", "link", "directory"])
def test_a_damaged_cache_is_not_believed(sandbox, damage):
    assert sandbox.run(["true"]).code == 0
    path, = cached(sandbox)
    content = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(content[:-7])
    elif damage == "bytes":
        path.write_bytes(content[:64] + b"\xff" * 64 + content[128:])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "mode":
        path.chmod(0o666)
    elif damage == "link":
        path.rename(path.with_suffix(".moved"))
        path.symlink_to(path.with_suffix(".moved"))
    else:
        path.unlink()
        path.mkdir()
    assert sandbox.run(["true"]).code == 0
    if damage != "directory":
        assert path.is_file() and not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_bytes() == content


def test_a_cache_that_cannot_be_written_is_no_error(sandbox):
    (sandbox.state / "atoll").mkdir(mode=0o700)
    sandbox.own(sandbox.state / "atoll")
    sandbox.write(sandbox.state / "atoll" / "policy", "in the way")
    assert sandbox.run(["true"]).code == 0


def test_programs_that_are_missing_are_named(sandbox, tmp_path):
    alone = sandbox.copy(sandbox.programs.atoll, sandbox.base / "alone" / "atoll")
    result = sandbox.run_outside([alone, "run", "true"])
    assert_one_line(result, "atoll-policy", "install atoll again")


# --- Live sessions. ---

@pytest.fixture
def live(sandbox):
    started = sandbox.run_atoll("run", "-q", "-d", "-n", "box")
    assert started.code == 0, started
    session = started.out.strip()
    yield sandbox, session
    sandbox.run_atoll("stop", "-t", "0s", "--all")


def test_a_detached_sandbox_is_listed_used_and_stopped(live):
    sandbox, session = live
    assert re.fullmatch(r"[a-z0-9]{12}", session)
    assert sandbox.run_atoll("ps", "-q").out == session + "\n"
    record, = json.loads(sandbox.run_atoll("ps", "--json").out)
    assert record["session"] == session and record["state"] == "running" and record["name"] == "box"
    assert record["project"] == str(sandbox.project)
    done = sandbox.run_atoll("exec", session, "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.code, done.out, done.err) == (3, "out\n", "err\n"), done
    assert sandbox.run_atoll("stop", session).code == 0
    assert sandbox.run_atoll("ps", "-q").out == ""
    assert sandbox.run_atoll("ps", "-a", "-q").out == session + "\n"
    assert_one_line(sandbox.run_atoll("exec", session, "--", "true"), "no running session")


@pytest.mark.parametrize("which", ["name", "prefix", "project"])
def test_a_session_has_many_names(live, which):
    sandbox, session = live
    words = {"name": ["box"], "prefix": [session[:5]], "project": []}[which]
    assert sandbox.run_atoll("exec", *words, "--", "printenv", "ATOLL_SESSION").out == session + "\n"


def test_exec_has_the_variables_of_the_run(sandbox):
    """`git commit` in a session failed for want of HOME."""
    env = {"USER": "ann", "LOGNAME": "ann", "LANG": "C.UTF-8", "NOT_LISTED": "x"}
    session = sandbox.run_outside(sandbox.command_line([], options=["-d", "-e", "DEBUG=1"]), env=env).out.strip()
    shown = sandbox.run(["env"], options=["-e", "DEBUG=1"], env=env)
    atoll = str(sandbox.programs.atoll)
    later = sandbox.run_atoll("exec", session, "--", "env", env=env)
    bare = shell(sandbox, f"exec env -i XDG_STATE_HOME='{sandbox.state}' XDG_RUNTIME_DIR=\"$XDG_RUNTIME_DIR\" "
                          f"USER=other '{atoll}' exec {session} -- /usr/bin/env")
    for done in (later, bare):
        assert done.code == 0, done
        differs = set(done.out.splitlines()) ^ set(shown.out.splitlines())
        assert all(line.startswith(("ATOLL_SESSION=", "TERM=")) for line in differs), differs
    assert {"HOME=" + str(sandbox.home), "USER=ann", "DEBUG=1"} <= set(later.out.splitlines()), later
    sandbox.run_atoll("stop", session)


def test_exec_passes_streams_status_and_directory(live):
    sandbox, session = live
    below = sandbox.make_directory(sandbox.project / "sub dir")
    assert sandbox.run_atoll("exec", "box", "--", "pwd", cwd=below).out == f"{below}\n"
    assert sandbox.run_atoll("exec", "box", "--", "pwd", cwd="/").out == f"{sandbox.project}\n"
    assert sandbox.run_atoll("exec", "-C", str(below), "box", "--", "pwd").out == f"{below}\n"
    data = os.urandom(300_000)
    assert sandbox.run_atoll("exec", "box", "--", "cat", stdin=data).bytes == data
    assert sandbox.run_atoll("exec", "box", "--", "sh", "-c", "kill -TERM $$").code == 143
    assert sandbox.run_atoll("exec", "box", "--", "/nonexistent").code == 127
    assert sandbox.run_atoll("exec", "box", "--", "/etc/passwd").code == 126


def test_exec_adds_variables_and_passes_no_others(live):
    sandbox, _ = live
    done = sandbox.run_atoll("exec", "-e", "GIVEN=1", "box", "--", "sh", "-c", 'echo "$GIVEN,$SECRET,${PATH:+path}"',
                             env={"SECRET": "s"})
    assert done.out == "1,,path\n", done


def test_exec_passes_signals_on(live):
    sandbox, _ = live
    script = "trap 'echo got; exit 9' TERM; echo ready; while :; do sleep 0.1; done"
    child = subprocess.Popen([str(sandbox.programs.atoll), "exec", "box", "--", "bash", "-c", script],
                             stdout=subprocess.PIPE, **sandbox.popen_keywords())
    assert child.stdout.readline() == b"ready\n"
    child.terminate()
    assert child.stdout.read() == b"got\n" and child.wait(timeout=10) == 9


def test_exec_ends_when_the_session_does(live):
    sandbox, _ = live
    child = subprocess.Popen([str(sandbox.programs.atoll), "exec", "box", "--", "sh", "-c", "echo ready; sleep 99"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, **sandbox.popen_keywords())
    assert child.stdout.readline() == b"ready\n"
    assert sandbox.run_atoll("stop", "-t", "0s", "box").code == 0
    assert child.wait(timeout=10) != 0
    child.communicate()


def test_stopping_several_goes_on_behind_a_missing_one(live):
    sandbox, session = live
    other = sandbox.run_atoll("run", "-q", "-d").out.strip()
    result = sandbox.run_atoll("stop", "-t", "0s", "nosuch", session, other)
    assert result.code == 125 and "nosuch" in result.err and len(result.err.splitlines()) == 1, result
    assert sandbox.run_atoll("ps", "-q").out == ""


def test_a_session_whose_box_died_is_lost_and_not_live(live):
    sandbox, session = live
    record, = json.loads(sandbox.run_atoll("ps", "--json").out)
    os.kill(record["pid"], 9)
    wait_until(lambda: sandbox.run_atoll("ps", "-q").out == "", what="the session to be gone")
    assert json.loads(sandbox.run_atoll("ps", "-a", "--json").out)[0]["state"] == "lost"
    assert_one_line(sandbox.run_atoll("exec", session, "--", "true"), "no running session")


# --- Completion, doctor, installation. ---

@pytest.mark.parametrize("shell_name, file", [("bash", "atoll.bash"), ("zsh", "_atoll"), ("fish", "atoll.fish")])
@pytest.mark.only("root", "user")
def test_completions_are_those_of_the_program(sandbox, shell_name, file):
    printed = sandbox.run_atoll("help", "--completion", shell_name)
    assert printed.code == 0
    assert printed.out == (ROOT / "completions" / file).read_text(), \
        f"make them anew: build/bin/atoll help --completion {shell_name} >completions/{file}"


@pytest.mark.parametrize("line, expected", [
    (["atoll", "ru"], ["run"]),
    (["atoll", "run", "--tr"], ["--trust"]),
    (["atoll", "run", "-t", "me"], ["medium"]),
    (["atoll", "help", "--completion", ""], ["bash", "zsh", "fish"]),
    (["atoll", "run", "--report", "with"], ["with space"]),
])
def test_bash_completes(sandbox, line, expected):
    sandbox.write(sandbox.project / "with space", "")
    script = ('source "$1"; shift; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _atoll;'
              'printf "%s\\n" "${COMPREPLY[@]}"')
    result = sandbox.run_outside(["bash", "-c", script, "bash", ROOT / "completions" / "atoll.bash", *line])
    assert result.err == "" and result.out.splitlines() == expected, result


def test_doctor_says_what_holds_here(sandbox):
    before = doctor_places()
    result = sandbox.run_atoll("doctor", "--json")
    found = json.loads(result.out)
    assert found["enforceable"] is (result.code == 0)
    by_name = {check["what"]: check for check in found["checks"]}
    for name in ("kernel", "namespaces", "landlock", "seccomp", "pidfd", "openat2", "limits", "boundary"):
        assert name in by_name, found
    for check in found["checks"]:
        assert check["state"] in ("ok", "note", "weak", "missing")
        assert bool(check["consequence"]) is (check["state"] in ("weak", "missing")), check
    text = sandbox.run_atoll("doctor")
    assert text.code == result.code and all(name in text.out for name in by_name)
    # What the doctor believes is what `atoll run` does.
    assert (sandbox.run_atoll("run", "-q", "true").code == 0) is found["enforceable"]
    assert doctor_places() <= before


def test_doctor_sees_a_wall_that_is_missing(sandbox):
    result = sandbox.run_atoll("doctor", "--json", env={"ATOLL_TEST_BREAK": "seccomp"})
    found = json.loads(result.out)
    assert result.code == 1 and found["enforceable"] is False
    boundary, = [check for check in found["checks"] if check["what"] == "boundary"]
    assert boundary["state"] == "missing" and "seccomp" in boundary["detail"]


@pytest.mark.only("user")
def test_doctor_names_the_sysctl_that_forbids_namespaces(sandbox):
    """A user namespace in which no further one may be made stands in for a machine where none may."""
    script = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$ATOLL" doctor --json'
    if sandbox.run_outside(["unshare", "-Ur", "true"]).code:
        pytest.skip("this user cannot make the user namespace that the test needs")
    result = sandbox.run_outside(["unshare", "-Ur", "bash", "-c", script], env={"ATOLL": str(sandbox.programs.atoll)})
    found = json.loads(result.out)
    namespaces, = [check for check in found["checks"] if check["what"] == "namespaces"]
    assert result.code == 1 and namespaces["state"] == "missing"
    assert namespaces["fix"] == "sudo sysctl -w user.max_user_namespaces=15000"


def test_an_empty_command_is_no_program(sandbox):
    done = sandbox.run([""])
    assert done.code == 127 and "the command is an empty word" in done.err, done
    done = sandbox.run(["nothing-of-that-name"])
    assert done.code == 127 and "nothing-of-that-name: not found in the sandbox" in done.err, done


def test_doctor_probes_from_inside(sandbox):
    before = doctor_places()
    result = sandbox.run_atoll("doctor", "--probe", timeout=120)
    held, broke = (len(re.findall(rf"^{word} ", result.out, re.M)) for word in ("held", "broke"))
    assert result.code == (1 if broke else 0) and broke == 0 and held > 50, result
    assert re.search(r"^\d+ tried: \d+ held, 0 broke, \d+ could not be tried here$", result.out, re.M)
    assert doctor_places() <= before
    assert not list((sandbox.state / "atoll").glob("doctor-*"))


@pytest.mark.only("root")
def test_installation_is_whole_and_removes_itself(sandbox):
    build, dest = sandbox.programs.source.parent, sandbox.base / "opt"
    if not (build / "bin" / "atoll").exists():
        pytest.skip("the programs are not in a build directory")
    (dest / "bin").mkdir(parents=True)
    (dest / "bin" / "other").write_text("of somebody else")
    done = subprocess.run([ROOT / "tools" / "install-files", build, dest], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    assert os.readlink(dest / "bin" / "atoll") == "../libexec/atoll/atoll"
    assert sandbox.run_outside([dest / "bin" / "atoll", "version"]).code == 0
    assert sandbox.run_outside([dest / "bin" / "atoll", "run", "-q", "true"]).code == 0
    for path in ("share/man/man1/atoll-run.1", "share/bash-completion/completions/atoll", "share/doc/atoll/README.md",
                 "libexec/atoll/policies/levels/medium.yaml"):
        assert (dest / path).is_file(), path
    profile = (dest / "share/atoll/apparmor/atoll").read_text()
    assert f"{dest}/libexec/atoll/" in profile and "@PREFIX@" not in profile
    done = subprocess.run([ROOT / "tools" / "install-files", "--remove", build, dest], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done
    left = sorted(str(path.relative_to(dest)) for path in dest.rglob("*") if not path.is_dir())
    assert left == ["bin/other"]
    assert not (dest / "libexec" / "atoll").exists() and not (dest / "share" / "atoll").exists()
