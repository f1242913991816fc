# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around atoll and is not its fault: a directory that is gone, files that take no more, low limits.
Each ends with a line that says so, and nothing looks as if it had gone well."""
import pytest

from atoll import DEFAULT_TIMEOUT


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
