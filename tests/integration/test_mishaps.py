# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around atoll and is not its fault: a directory that is gone, files that take no more, low limits.
Each ends with a line that says so, and nothing looks as if it had gone well."""
import os
import pathlib
import signal
import subprocess

import pexpect
import pytest

from atoll import DEFAULT_TIMEOUT, wait_until


def shell(sandbox, script, *arguments, timeout=DEFAULT_TIMEOUT):
    """A bash script outside the sandbox, in which $ATOLL is the program."""
    return sandbox.run_outside(["bash", "-c", script, "bash", *arguments], env={"ATOLL": str(sandbox.programs.atoll)},
                               timeout=timeout)


def line_of(result, *words):
    """The one line on stderr, with these words in it."""
    lines = result.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("atoll: "), result
    assert all(word in lines[0] for word in words), result
    return lines[0]


# --- A working directory that is gone: which project's session is meant is not guessed. ---

@pytest.mark.parametrize("verb", ["diff", "apply", "discard", "snapshot", "undo", "log", "log verify", "alerts",
                                  "policy test medium", "exec -- true", "fork -- true", "baseline"])
def test_without_a_working_directory_no_session_is_meant(sandbox, verb):
    assert sandbox.run("echo staged >made").code == 0
    gone = sandbox.home / "gone"
    result = shell(sandbox, f'mkdir "$1" && cd "$1" && rmdir "$1" && exec "$ATOLL" {verb}', str(gone))
    assert result.code == 125 and result.out == "", result
    line_of(result, "working directory does not exist")
    assert not (sandbox.project / "made").exists()
    assert sandbox.run_atoll("diff").out.count("made") == 1


def test_a_session_that_is_named_needs_no_working_directory(sandbox):
    session = sandbox.run("echo staged >made").session
    result = shell(sandbox, 'mkdir gone && cd gone && rmdir ../gone && exec "$ATOLL" diff "$1"', session)
    assert result.code == 0 and "made" in result.out, result


# --- Files that take no more: what the command wrote is lost, and that is said. ---

def test_output_that_a_full_disk_did_not_take_is_no_success(sandbox):
    for script in ('/bin/echo hi >/dev/full', '"$ATOLL" run -q -- echo hi >/dev/full'):
        assert shell(sandbox, script).code != 0
    result = shell(sandbox, '"$ATOLL" run -q -- echo hi >/dev/full')
    assert result.code == 125, result
    line_of(result, "stdout cannot be written", "No space left on device", "lost")


def test_lost_output_does_not_hide_the_commands_own_status(sandbox):
    result = shell(sandbox, '"$ATOLL" run -q -- sh -c "echo hi; exit 3" >/dev/full')
    assert result.code == 3, result
    line_of(result, "stdout cannot be written")


def test_lost_output_is_not_applied(sandbox):
    result = shell(sandbox, '"$ATOLL" run --apply-on-success -- sh -c "echo x >made; echo hi" >/dev/full')
    assert result.code == 125, result
    assert not (sandbox.project / "made").exists()


def test_exec_tells_of_lost_output_too(sandbox):
    assert sandbox.run_atoll("run", "-q", "-d", "-n", "box").code == 0
    try:
        result = shell(sandbox, '"$ATOLL" exec box -- echo hi >/dev/full')
        assert result.code == 125, result
        line_of(result, "stdout cannot be written", "No space left on device")
        own = shell(sandbox, '"$ATOLL" exec box -- sh -c "echo hi; exit 3" >/dev/full')
        assert own.code == 3, own
        assert sandbox.run_atoll("exec", "box", "--", "echo", "hi").out == "hi\n"
    finally:
        sandbox.run_atoll("stop", "-t", "0s", "--all")


def test_a_reader_that_leaves_is_no_loss(sandbox):
    result = shell(sandbox, '"$ATOLL" run -q -- sh -c "sleep 0.2; echo hi" | true; exit ${PIPESTATUS[0]}')
    assert result.code in (0, 141) and result.err == "", result


# --- Low limits. ---

def test_a_limit_on_the_size_of_files_is_said_and_kills_nothing(sandbox):
    sandbox.run("true")
    result = shell(sandbox, 'ulimit -f 0; "$ATOLL" run -q -- true')
    assert result.code == 125, result
    line_of(result, "EFBIG", "ulimit -f")


def test_output_beyond_a_limit_on_the_size_of_files(sandbox):
    out = sandbox.own(sandbox.write(sandbox.home / "out"))
    result = shell(sandbox, 'ulimit -f 400; "$ATOLL" run -q -- head -c 1000000 /dev/zero >"$1"', str(out))
    assert result.code != 0, result
    line_of(result, "stdout cannot be written", "File too large")
    assert out.stat().st_size == 400 << 10


@pytest.mark.parametrize("size, works", [(64, False), (256, False), (512, True)])
def test_a_small_stack_is_named(sandbox, size, works):
    result = shell(sandbox, f'ulimit -s {size}; exec "$ATOLL" run -q -- echo ran')
    if works:
        assert (result.code, result.out) == (0, "ran\n"), result
    else:
        assert result.code == 125, result
        line_of(result, f"a stack of {size} KiB", "ulimit -s")


@pytest.mark.only("user")
def test_no_more_processes_is_said(sandbox):
    result = shell(sandbox, 'ulimit -u 1; exec "$ATOLL" run -q -- true')
    assert result.code == 125, result
    line_of(result, "ulimit -u")


# --- A command that is there outside only. ---

def test_a_program_that_the_policy_does_not_show_is_named(sandbox):
    tool = sandbox.write(sandbox.home / "venv/bin/tool", "#!/bin/sh\necho outside\n", 0o755)
    for script, said in (('"$ATOLL" run -q -- "$1"', f"the policy does not show {tool}"),
                         ('PATH=$(dirname "$1"):$PATH; "$ATOLL" run -q -- tool', f"{tool.parent} is in PATH but not")):
        result = shell(sandbox, script, str(tool))
        assert result.code == 127, result
        line_of(result, f"not found in the sandbox: {said}", "files")


def test_a_masked_program_is_said_to_be_masked(sandbox):
    tool = sandbox.write(sandbox.home / ".ssh/tool", "#!/bin/sh\n", 0o755)
    result = shell(sandbox, '"$ATOLL" run -q -- "$1"', str(tool))
    assert result.code == 127 and "files.read" not in line_of(result, f"the policy masks {tool}")


def test_a_script_whose_interpreter_is_missing_inside_is_not_said_to_be_missing(sandbox):
    sandbox.write(sandbox.home / "venv/bin/tool", "#!/bin/sh\n", 0o755)
    script = sandbox.write(sandbox.project / "script", f"#!{sandbox.home}/venv/bin/tool\n", 0o755)
    result = shell(sandbox, '"$ATOLL" run -q -- ./script')
    assert result.code == 127
    line_of(result, f"{script} is there", "first line")


def test_a_program_that_is_nowhere_is_only_not_found(sandbox):
    result = shell(sandbox, '"$ATOLL" run -q -- no-such-program')
    assert result.code == 127 and "does not show" not in line_of(result, "not found in the sandbox, and not in a")


def test_a_program_that_is_nowhere_is_not_found_each_time_where_the_box_looks_into_the_sandbox(sandbox):
    """It fails at once, maybe before the box has opened the root of the sandbox's first process."""
    policies = [sandbox.policy(f"atoll: 1\nextends: medium\n{line}\n", name) for name, line in (
        ("files.yaml", "audit: {files: all}"), ("exec.yaml", "exec: {ask: [/usr/bin/who]}"))]
    for policy in policies:
        results = [sandbox.run(["no-such-program"], policy=policy) for _ in range(15)]
        assert [result.code for result in results] == [127] * len(results), results


def test_a_command_that_exec_may_not_start_says_where_to_look(sandbox):
    session = sandbox.run_atoll("run", "-q", "-d", "-n", "box").out.strip()
    try:
        sandbox.write(sandbox.project / "plain", "no program\n")
        result = sandbox.run_atoll("exec", "box", "--", "./plain")
        assert result.code == 126
        line_of(result, "Permission denied", f"atoll log --denied {session}")
    finally:
        sandbox.run_atoll("stop", "-t", "0s", "--all")


# --- Nothing to show. ---

@pytest.mark.parametrize("words, said", [(["alerts"], b"nothing of that is in the log"),
                                         (["log", "--denied"], b"nothing of that is in the log"),
                                         (["grants"], b"nothing was allowed or refused"),
                                         (["ask", "--once"], b"nothing is open")])
def test_nothing_is_said_to_a_person_and_shown_to_no_program(sandbox, words, said):
    assert sandbox.run("true").code == 0
    piped = sandbox.run_atoll(*words)
    assert (piped.code, piped.out, piped.err) == (0, "", "")
    child = sandbox.spawn([sandbox.programs.atoll, *words], outside=True)
    child.expect(said)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_a_list_fits_the_terminal(sandbox):
    """Long policies, projects and commands would wrap each line; a program gets all of it."""
    project = sandbox.make_directory(sandbox.home / ("deep/" * 12 + "project"))
    policy = sandbox.policy("atoll: 1\nextends: medium\n", "a-name-that-is-rather-long-for-a-policy.yaml")
    assert sandbox.run(["echo", "caf\u00e9" * 30], cwd=project, policy=policy).code == 0
    whole = sandbox.run_atoll("ps", "-a")
    assert "deep/project  " in whole.out and len(whole.out.splitlines()[1]) > 130, whole
    child = sandbox.spawn([sandbox.programs.atoll, "ps", "-a"], outside=True, size=(24, 130))
    child.expect(pexpect.EOF)
    child.close()
    lines = child.before.decode().splitlines()
    assert len(lines) == 2 and all(len(line) <= 130 for line in lines), lines
    assert "\u2026" in lines[1] and "/project " in lines[1] and "echo caf\u00e9" in lines[1], lines


# --- An installation that is not whole. ---

def test_a_shipped_policy_that_is_gone_is_not_a_misspelt_one(sandbox):
    there = sandbox.make_directory(sandbox.base / "bin")
    for program in sandbox.programs.directory.iterdir():
        if program.is_file():
            sandbox.copy(program, there / program.name)
    result = sandbox.run_outside([there / "atoll", "run", "-q", "--", "true"])
    assert result.code == 125, result
    assert "did you mean" not in line_of(result, '"medium" is missing below', "install atoll again")


def test_a_path_of_the_policy_that_is_not_there(sandbox):
    text = "atoll: 1\nextends: medium\nfiles:\n  read: [{{path: {0}{1}}}]\n"
    refused = sandbox.run(["true"], policy=sandbox.policy(text.format("/srv/not-there", "")))
    assert refused.code == 125 and "/srv/not-there (files.read[0])" in refused.err, refused
    assert "optional: true" in refused.err and refused.err.count("\n") == 1, refused
    assert sandbox.run(["true"], policy=sandbox.policy(text.format("/srv/not-there", ", optional: true"))).code == 0


# --- The first process inside is killed, when the box has not looked at it yet. ---

# Of x86-64: poll, ppoll, or clone, clone3 and vfork, by which it waits for the exec that waits for the box.
WAITS = ("7", "271", "56", "435", "58")


def init_below(pid):
    """atoll-init among the descendants of this process, once it waits for what the box wants."""
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            number, rest = stat.read_text().split(" (", 1)
            name, fields = rest.rsplit(") ", 1)
            if name != "atoll-init":
                continue
            above = int(fields.split()[1])
            while above > 1 and above != pid:
                above = int(pathlib.Path(f"/proc/{above}/stat").read_text().rsplit(") ", 1)[1].split()[1])
            if above == pid and (stat.parent / "syscall").read_text().split()[0] in WAITS:
                return int(number)
        except (OSError, ValueError):
            continue
    return None


@pytest.mark.needs("strace")
@pytest.mark.parametrize("more", ["audit: {files: all}", "exec: {deny: [{program: '**/nobody', argv: [x]}]}"])
def test_a_first_process_that_is_killed_at_once_was_killed(sandbox, more):
    """Not "a wall failed": what the box needs of its root came with its first message."""
    policy = sandbox.policy(f"atoll: 1\nextends: medium\n{more}\n")
    slow = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=recvmsg", "-e", "inject=recvmsg:delay_exit=1500000:when=1"]
    running = subprocess.Popen([*slow, sandbox.programs.atoll, "run", "-p", policy, "--", "sleep", "60"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               **sandbox.popen_keywords(cwd=sandbox.project))
    assert wait_until(lambda: init_below(running.pid))
    os.kill(init_below(running.pid), signal.SIGKILL)
    _, said = running.communicate(timeout=DEFAULT_TIMEOUT)
    assert running.returncode == 137, said
    assert "mediate" not in said and "looked up" not in said, said
