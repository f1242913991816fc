# SPDX-License-Identifier: Apache-2.0
"""`atoll log`: every record one harmless line, filters that filter, -f that ends, verify against the right witness."""
import json
import subprocess
import time

import pytest

HOSTILE = b"a\n\x1b[2J\x1b]0;owned\x07\r\xff\xc2\x9b31m\xe2\x80\xae"


@pytest.fixture
def logged(sandbox):
    """A session with programs that started and ended."""
    done = sandbox.run(["sh", "-c", "/bin/true; /bin/false; exit 3"])
    assert done.code == 3
    return done


def start_following(sandbox, session):
    return subprocess.Popen([str(sandbox.programs.atoll), "log", "-f", session], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **sandbox.popen_keywords())


def wait_for_session(sandbox, known):
    for _ in range(200):
        new = [name for name in sandbox.sessions() if name not in known]
        if new and sandbox.audit_log(new[0]).exists() and sandbox.audit_log(new[0]).stat().st_size:
            return new[0]
        time.sleep(0.05)
    raise AssertionError("no session began")


def test_one_line_for_each_record(sandbox, logged):
    shown = sandbox.run_atoll("log", logged.session)
    lines = shown.out.splitlines()
    assert shown.code == 0 and len(lines) == logged.report["audit"]["records"]
    assert " session.start " in lines[0] and " session.end " in lines[-1]
    assert any(" exec.start " in line and " true " in line for line in lines)
    assert any(" exec.end " in line and "exit: 1" in line for line in lines)
    assert "\x1b" not in shown.out


def test_the_newest_session_of_the_project(sandbox, logged):
    assert sandbox.run_atoll("log").out == sandbox.run_atoll("log", logged.session).out
    assert sandbox.run_atoll("log", logged.session[:6]).out == sandbox.run_atoll("log").out


def test_json_is_the_log(sandbox, logged):
    shown = sandbox.run_atoll("log", "--json", logged.session)
    assert shown.bytes == sandbox.audit_log(logged.session).read_bytes()
    assert [json.loads(line)["seq"] for line in shown.out.splitlines()] == list(range(1, shown.out.count("\n") + 1))


@pytest.mark.parametrize("options, keep", [
    (["-t", "session"], lambda r: r["type"].startswith("session.")),
    (["-t", "exec.end", "-t", "session.end"], lambda r: r["type"] in ("exec.end", "session.end")),
    (["--denied"], lambda r: r.get("verdict") == "deny"),
    (["--since", "1h"], lambda r: True),
    (["--since", "2999-01-01"], lambda r: False),
    (["-t", "exec.start", "--since", "2001"], lambda r: r["type"] == "exec.start"),
])
def test_filters(sandbox, logged, options, keep):
    everything = [json.loads(line) for line in sandbox.audit_log(logged.session).read_text().splitlines()]
    shown = sandbox.run_atoll("log", "--json", *options, logged.session)
    assert [json.loads(line) for line in shown.out.splitlines()] == [r for r in everything if keep(r)]
    last = sandbox.run_atoll("log", "--json", *options, "-n", "1", logged.session)
    assert last.out.splitlines() == shown.out.splitlines()[-1:]


@pytest.mark.parametrize("words, text", [
    (["-t", "exce.start"], "did you mean exec.start?"),
    (["--since", "yesterday"], "neither a duration nor a time"),
    (["-n", "many"], "not a number"),
    (["--head", "sha256:00"], "--head is for verify"),
    (["verify", "-f"], "verify checks the whole log"),
    (["verify", "--head", "sha256:00"], "64 hex digits"),
])
def test_wrong_usage(sandbox, logged, words, text):
    done = sandbox.run_atoll("log", *words)
    assert done.code == 125 and text in done.err and done.err.count("\n") == 1 and not done.out


def test_hostile_arguments_do_not_reach_the_terminal(sandbox):
    done = sandbox.run([b"/bin/echo", HOSTILE])
    assert HOSTILE in done.bytes
    for options in ([], ["--json"]):
        shown = sandbox.run_atoll("log", *options, done.session)
        assert shown.code == 0
        assert not [byte for byte in shown.bytes if (byte < 0x20 and byte != 0x0a) or byte == 0x7f]
        assert b"\xc2\x9b" not in shown.bytes and b"\xe2\x80\xae" not in shown.bytes
        assert shown.bytes.count(b"\n") == done.report["audit"]["records"]
    assert "\\x1b[2J" in sandbox.run_atoll("log", done.session).out


def test_colours_on_a_terminal_only_and_not_against_the_will(sandbox):
    # connect() to anywhere is refused: a record with "deny".
    done = sandbox.run("exec 3<>/dev/tcp/192.0.2.1/80")
    words = f"{sandbox.programs.atoll} log --denied {done.session}"
    terminal = sandbox.spawn(["script", "-qc", words, "/dev/null"], outside=True)
    terminal.expect(rb"\x1b\[31mdeny")
    plain = sandbox.spawn(["env", "NO_COLOR=1", "script", "-qc", words, "/dev/null"], outside=True)
    plain.expect(rb" deny ")
    assert b"\x1b[31m" not in plain.before + plain.after
    assert b"\x1b" not in sandbox.run_atoll("log", "--denied", done.session).bytes


def test_follow_shows_what_comes_and_ends_with_the_session(sandbox):
    child = sandbox.popen(["sh", "-c", "sleep 1; /bin/true"])
    session = wait_for_session(sandbox, [])
    follower = start_following(sandbox, session)
    out, err = follower.communicate(timeout=20)
    assert child.wait(timeout=10) == 0
    lines = out.decode().splitlines()
    assert follower.returncode == 0 and " session.end " in lines[-1] and not err
    assert any(" true " in line for line in lines)


def test_follow_ends_when_the_supervisor_was_killed(sandbox):
    child = sandbox.popen(["sleep", "60"])
    session = wait_for_session(sandbox, [])
    follower = start_following(sandbox, session)
    time.sleep(0.5)
    assert follower.poll() is None
    child.kill()
    out, _ = follower.communicate(timeout=20)
    assert follower.returncode == 0 and b"session.end" not in out


def test_who_hears_that_a_command_is_over_finds_it_in_the_log(sandbox):
    started = sandbox.run_outside(sandbox.command_line(["sleep", "600"], options=["-d"]))
    session = started.out.strip()
    try:
        for status in range(20):
            done = sandbox.run_atoll("exec", session, "--", "sh", "-c", f"exit {status}")
            log = sandbox.audit_log(session).read_text().splitlines()
            assert done.code == status
            last = json.loads(log[-1])
            assert last["type"] == "exec.end" and last["detail"]["exit"] == status, last
    finally:
        sandbox.run_atoll("stop", session)


def test_the_reader_is_confined(sandbox):
    sandbox.popen(["sleep", "30"])
    session = wait_for_session(sandbox, [])
    follower = start_following(sandbox, session)
    for _ in range(100):
        with open(f"/proc/{follower.pid}/status", encoding="utf-8") as stream:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in stream if ":\t" in line)
        if status["Seccomp"].strip() == "2":
            break
        time.sleep(0.05)
    assert status["Name"] == "atoll-log" and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    follower.kill()
    follower.communicate()


def test_verify_wants_the_head_of_the_report(sandbox, logged):
    head = logged.report["audit"]["head"]
    good = sandbox.run_atoll("log", "verify", "--head", head, logged.session)
    assert good.code == 0 and head in good.out
    wrong = head[:-1] + ("0" if head[-1] != "0" else "1")
    bad = sandbox.run_atoll("log", "verify", "--head", wrong, logged.session)
    assert bad.code == 1 and "not the recorded end" in bad.out
    result = json.loads(sandbox.run_atoll("log", "verify", "--json", "--head", wrong, logged.session).out)
    assert result["whole"] is False and result["fault"] == "head"
