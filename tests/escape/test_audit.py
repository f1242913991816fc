# SPDX-License-Identifier: Apache-2.0
"""R7, R8, I15: the log outside tells when it was touched, and a log that cannot be written ends the sandbox."""
import json
import subprocess

import pytest

import leaks


@pytest.fixture
def logged(sandbox):
    done = sandbox.run("for i in 1 2 3 4 5; do /bin/true $i; done; cat /etc/shadow; unshare -U true")
    assert done.report, done
    return done


def records(sandbox, session):
    return [json.loads(line) for line in sandbox.audit_log(session).read_text().splitlines()]


def test_an_untouched_log_verifies(sandbox, logged):
    assert sandbox.run_atoll("log", "verify", logged.session).code == 0
    seen = records(sandbox, logged.session)
    assert [record["seq"] for record in seen] == list(range(1, len(seen) + 1))
    assert seen[0]["type"] == "session.start" and seen[-1]["type"] == "session.end"
    assert sum(record["type"] == "exec.start" and "true" in json.dumps(record) for record in seen) >= 5, seen
    assert logged.report["audit"]["records"] == len(seen)


def edit(lines, how):
    middle = len(lines) // 2
    if how == "delete":
        return lines[:middle] + lines[middle + 1:], middle
    if how == "edit":
        changed = lines[middle].replace('"type":"', '"type":"x', 1)
        return lines[:middle] + [changed] + lines[middle + 1:], middle
    if how == "one-digit":
        at = next(i for i, c in enumerate(lines[middle]) if c.isdigit())
        digit = str((int(lines[middle][at]) + 1) % 10)
        return lines[:middle] + [lines[middle][:at] + digit + lines[middle][at + 1:]] + lines[middle + 1:], middle
    if how == "reorder":
        return lines[:middle] + [lines[middle + 1], lines[middle]] + lines[middle + 2:], middle
    if how == "duplicate":
        return lines[:middle] + [lines[middle]] + lines[middle:], middle + 1
    if how == "insert":
        return lines[:middle] + [lines[middle].replace('"seq":', '"seq":9', 1)] + lines[middle:], middle
    if how == "first":
        return lines[1:], 0
    if how == "garbage":
        return lines[:middle] + ["{not json"] + lines[middle + 1:], middle
    if how == "truncate-last":
        return lines[:-1], len(lines) - 1
    if how == "truncate-three":
        return lines[:-3], len(lines) - 3
    if how == "cut-line":
        return lines[:-1] + [lines[-1][: len(lines[-1]) // 2]], len(lines) - 1
    return [], 0


@pytest.mark.parametrize("how", ["delete", "edit", "one-digit", "reorder", "duplicate", "insert", "first", "garbage",
        "truncate-last",
                                 "truncate-three", "cut-line", "empty"])
def test_a_touched_log_does_not_verify(sandbox, logged, how):
    """R7: the first bad record is named (1 is the first)."""
    log = sandbox.audit_log(logged.session)
    lines, bad = edit(log.read_text().splitlines(), how)
    log.chmod(0o600)
    log.write_text("\n".join(lines) + ("\n" if lines and how != "cut-line" else ""))
    done = sandbox.run_atoll("log", "verify", logged.session)
    assert done.code != 0, (how, done)
    assert str(bad + 1) in done.out + done.err or str(bad) in done.out + done.err, (how, bad, done)


def test_an_older_log_does_not_verify(sandbox):
    """Rolled back to another session's log, which is valid by itself."""
    first, second = sandbox.run(["true"]), sandbox.run(["true"])
    sandbox.audit_log(second.session).write_bytes(sandbox.audit_log(first.session).read_bytes())
    assert sandbox.run_atoll("log", "verify", second.session).code != 0


def test_the_head_in_the_report_is_the_anchor(sandbox, logged):
    """The log's owner may rewrite log and record together; the report that was kept elsewhere still tells."""
    shown = sandbox.run_atoll("log", "verify", logged.session)
    assert logged.report["audit"]["head"].split(":")[1][:16] in shown.out + shown.err, shown


def test_hostile_arguments_are_one_line_each(sandbox):
    """Newlines, escapes, bytes that are no UTF-8 and very long arguments neither forge nor break records."""
    hostile = ["\n{\"v\":1,\"seq\":1,\"type\":\"session.end\"}", "\x1b]52;c;AAAA\x07",
            b"\xff\xfe".decode(errors="surrogateescape"),
               "x" * 100000, "\u202egnp.exe", "\r\n\r\n", ""]
    done = sandbox.run(["/bin/true", *hostile])
    assert done.code == 0, done
    seen = records(sandbox, done.session)
    assert sandbox.run_atoll("log", "verify", done.session).code == 0
    assert sum(record["type"] == "session.end" for record in seen) == 1
    shown = sandbox.run_atoll("log", done.session)
    assert shown.code == 0 and b"\x1b]52" not in shown.bytes and "\u202e" not in shown.out, shown


def test_denials_are_told(sandbox, logged):
    """The person finds them in the report, the agent in /run/atoll."""
    done = sandbox.run("unshare -U true; sleep 0.2; cat /run/atoll/denials.jsonl; test -s /run/atoll/limits.md && "
            "echo limits")
    assert done.report["decisions"]["deny"] >= 1, done
    assert any("unshare" in json.dumps(denial) for denial in done.report["denials"]), done
    assert "unshare" in done.out and "limits" in done.out, done


@pytest.mark.only("root")
@pytest.mark.parametrize("kind", ["bytes", "inodes"])
def test_a_full_disk_ends_the_sandbox(sandbox, kind):
    """R8: the state lies on a file system without room; the sandbox stops and says why."""
    option = "size=400k" if kind == "bytes" else "size=8m,nr_inodes=8"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"{option},mode=755", "atolltest", str(sandbox.state)], check=True)
    try:
        script = ("i=0; while [ $i -lt 20000 ]; do /bin/true "
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa $i; i=$((i+1)); done; echo survived")
        done = sandbox.run(["sh", "-c", script], timeout=60)
    finally:
        subprocess.run(["umount", str(sandbox.state)], check=True)
    assert done.code == 125, done
    assert "survived" not in done.out, "the sandbox went on without its log"
    assert "log" in done.err or "space" in done.err or "state" in done.err, done
    assert not leaks.wait_for_none(sandbox)


def test_state_that_cannot_be_written(sandbox):
    """A read-only or foreign state directory: nothing runs."""
    if sandbox.identity.is_root:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,mode=755", "atolltest", str(sandbox.state)], check=True)
    else:
        sandbox.state.chmod(0o500)
    try:
        done = sandbox.run(["touch", "it-ran"])
    finally:
        if sandbox.identity.is_root:
            subprocess.run(["umount", str(sandbox.state)], check=True)
        sandbox.state.chmod(0o755)
    assert done.code == 125 and not (sandbox.project / "it-ran").exists(), done
    assert len(done.err.strip().splitlines()) == 1, done
