# SPDX-License-Identifier: Apache-2.0
"""What is done with staged changes stands in the session's log: who, what was asked, what it was; and what cannot be
logged is not done."""
import json
import os
import resource
import signal
import subprocess

import pytest

from stage import Staged
from staged import Staged as Sessions
from tree_state import tree_state


def reviews(sandbox, session):
    records = [json.loads(line) for line in sandbox.audit_log(session).read_bytes().splitlines()]
    return [record for record in records if record["type"].startswith("stage.")]


def phases(records):
    return [(record["type"], record["detail"]["phase"]) for record in records]


@pytest.fixture
def staged(sandbox):
    sandbox.write(sandbox.project / "kept", "old\n")
    sandbox.write(sandbox.project / "other", "old\n")
    staged = Staged(sandbox)
    staged.run(["sh", "-c", "echo new >kept; echo new >other; echo new >added"])
    return staged


def test_apply_undo_and_discard_are_logged_behind_the_end(sandbox, staged):
    sandbox.write(staged.project / "other", "the host's\n")
    staged.apply(code=1)
    staged.undo("kept")
    staged.verb("discard", staged.session)
    records = reviews(sandbox, staged.session)
    assert phases(records) == [(f"stage.{verb}", phase) for verb in ("apply", "undo", "discard")
                               for phase in ("begun", "done")]
    begun, done = (record["detail"] for record in records[:2])
    assert (begun["uid"], begun["added"], begun["modified"], begun["apply"]) == (sandbox.identity.uid, 1, 1, 1)
    assert begun["conflicts"] == [str(staged.project / "other")] and done["left"] == 1
    assert begun["list_hash"].startswith("sha256:") and begun["hashed_bytes"] == 8
    undo = records[2]["detail"]
    assert undo["asked"] == [str(staged.project / "kept")] and (undo["apply"], undo["undo"]) == (1, 2)
    verified = sandbox.run_atoll("log", "verify", staged.session)
    assert verified.code == 0 and "(6 of them since the session ended)" in verified.out, verified


def test_the_end_of_the_run_vouches_for_what_came_before_it_only(sandbox, staged):
    head = sandbox.run_atoll("log", "verify", "--json", staged.session)
    staged.apply()
    at_the_end = json.loads(head.out)["head"]
    assert sandbox.run_atoll("log", "verify", staged.session, "--head", at_the_end).code == 0
    log = sandbox.audit_log(staged.session)
    lines = log.read_bytes().splitlines(keepends=True)
    # Neither may one of the records of the review be changed, nor one of another kind stand there.
    log.write_bytes(b"".join(lines[:-2]) + lines[-2].replace(b'"phase":"begun"', b'"phase":"done"') + lines[-1])
    assert "was altered" in sandbox.run_atoll("log", "verify", staged.session).out
    log.write_bytes(b"".join(lines[:-2]))
    assert sandbox.run_atoll("log", "verify", staged.session).code == 0
    log.write_bytes(b"".join(lines[:-3]))
    assert "is missing" in sandbox.run_atoll("log", "verify", staged.session).out


def test_snapshot_and_restore_are_logged(sandbox, staged):
    staged.verb("snapshot", staged.session, "one")
    staged.verb("restore", staged.session, "one")
    records = reviews(sandbox, staged.session)
    assert phases(records) == [("stage.snapshot", "begun"), ("stage.snapshot", "done"),
                               ("stage.restore", "begun"), ("stage.restore", "done")]
    assert {record["subject"] for record in records} == {"one"}


def test_while_the_session_lives_its_box_writes(sandbox):
    sessions = Sessions(sandbox)
    session = sessions.detach()
    sessions.exec(session, "echo made >made")
    done = sandbox.run_atoll("apply", session)
    assert done.code == 0 and (sandbox.project / "made").exists(), done
    records = [record for record in reviews(sandbox, session) if record["type"] == "stage.apply"]
    assert phases(records) == [("stage.apply", "begun"), ("stage.apply", "done")]
    assert records[0]["detail"]["uid"] == sandbox.identity.uid and records[0]["pid"]
    assert sandbox.run_atoll("stop", session).code == 0
    assert sandbox.run_atoll("undo", session).code == 0
    verified = sandbox.run_atoll("log", "verify", session)
    assert verified.code == 0 and "(2 of them since the session ended)" in verified.out, verified


@pytest.mark.parametrize("verb", ["apply", "discard", "snapshot", "restore"])
def test_what_cannot_be_logged_is_not_done(sandbox, staged, verb):
    staged.verb("snapshot", staged.session, "there")
    before, log = tree_state(staged.project), sandbox.audit_log(staged.session)
    moved = log.with_suffix(".moved")
    os.rename(log, moved)
    words = {"snapshot": ["new"], "restore": ["there"]}.get(verb, [])
    refused = sandbox.run_atoll(verb, staged.session, *words)
    assert refused.code == 125 and "log cannot be" in refused.err, refused
    assert tree_state(staged.project) == before
    assert [item["name"] for item in json.loads(sandbox.run_atoll("snapshot", "--list", "--json",
                                                                  staged.session).out)] == ["there"]
    os.rename(moved, log)
    staged.apply()
    assert tree_state(staged.project) != before


def test_a_full_disk_for_the_log_stops_the_apply(sandbox, staged):
    before, log = tree_state(staged.project), sandbox.audit_log(staged.session)
    limit = log.stat().st_size

    def cap():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    refused = subprocess.run([sandbox.programs.atoll, "apply", staged.session], capture_output=True, text=True,
                             **{**sandbox.popen_keywords(), "preexec_fn": cap})
    assert refused.returncode == 125 and tree_state(staged.project) == before, refused
    assert sandbox.run_atoll("log", "verify", staged.session).code == 0
    staged.apply()


def test_a_torn_last_line_is_kept_and_said(sandbox, staged):
    log = sandbox.audit_log(staged.session)
    with open(log, "ab") as file:
        file.write(b'{"v":1,"seq":')
    staged.apply()
    lines = log.read_bytes().splitlines()
    assert lines[-3] == b'{"v":1,"seq":' and [json.loads(line)["seq"] for line in lines[-2:]] == \
        [len(lines) - 1, len(lines)]
    faulty = sandbox.run_atoll("log", "verify", staged.session)
    assert faulty.code == 1 and f"record {len(lines) - 2} is not an audit record" in faulty.out, faulty


def test_run_discard_is_logged_before_it_happens(sandbox):
    staged = Staged(sandbox)
    staged.run("echo new >added; rm -f kept", options=["--discard"])
    records = reviews(sandbox, staged.session)
    assert phases(records) == [("stage.discard", "begun"), ("stage.discard", "done")]
    assert records[0]["detail"]["added"] == 1 and records[0]["detail"]["uid"] == sandbox.identity.uid
    assert not staged.directory.exists()
    assert sandbox.run_atoll("log", "verify", staged.session).code == 0
    # Nothing is told where there was nothing to drop.
    staged.run("true", options=["--discard"])
    assert reviews(sandbox, staged.session) == []


def test_the_removal_of_a_snapshot_is_logged(sandbox, staged):
    for name in ("one", "two"):
        staged.verb("snapshot", staged.session, name)
    staged.verb("snapshot", "--remove", staged.session, "one")
    records = [record for record in reviews(sandbox, staged.session) if record["type"] == "stage.forget"]
    assert phases(records) == [("stage.forget", "begun"), ("stage.forget", "done")]
    assert {record["subject"] for record in records} == {"one"}
    log = sandbox.audit_log(staged.session)
    moved = log.with_suffix(".moved")
    os.rename(log, moved)
    refused = staged.verb("snapshot", "--remove", staged.session, "two", code=125)
    assert "log cannot be" in refused.err
    os.rename(moved, log)
    shown = json.loads(staged.verb("snapshot", "--list", "--json", staged.session).out)
    assert [item["name"] for item in shown] == ["two"]
    assert sandbox.run_atoll("log", "verify", staged.session).code == 0
