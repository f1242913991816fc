# SPDX-License-Identifier: Apache-2.0
"""What the sandboxes of the service leave behind: bounded, and nothing that is still needed goes."""
import contextlib
import json
import os
import sqlite3
import time

import pytest

import leaks
from atoll import wait_until
from service import Service


@pytest.fixture
def service(sandbox):
    config = sandbox.write(sandbox.base / "serve.yaml", "kept: 5\nsnapshots: 2\npool: 0\n")
    made = Service(sandbox, ["--config", str(config)])
    yield made.start()
    made.end()


def test_a_database_that_takes_nothing_is_named(service):
    """As on a full disk; here somebody else holds it."""
    made = service.create()
    with contextlib.closing(sqlite3.connect(service.sandbox.state / "atoll" / "service" / "service.db")) as held:
        held.execute("BEGIN IMMEDIATE")
        for what, values in (("PAUSE", {"sandbox": made["sandbox"]}), ("CREATE", {}),
                             ("TIMEOUT", {"sandbox": made["sandbox"], "timeout_ms": 60000})):
            refused = service.ask(what, **values)
            assert refused.status == 500 and "the database cannot be written" in refused["message"], refused
    assert service.run(made, "echo still") == ("still\n", 0)
    assert service.ask("PAUSE", sandbox=made["sandbox"]).status == 204


def test_nothing_is_made_while_memory_is_short(sandbox):
    """With the bound at nothing any machine is short of it."""
    config = sandbox.write(sandbox.base / "serve.yaml", "pressure: 0\n")
    service = Service(sandbox, ["--config", str(config)]).start()
    try:
        refused = service.ask("CREATE")
        assert refused.status == 503 and "memory" in refused["message"] and refused["retry_after"] > 0, refused
        assert service.list() == [] and sandbox.sessions() == []
    finally:
        service.end()


def layers(service, session):
    place = service.sandbox.state / "atoll" / "sessions" / session / "stage" / "layers"
    return sorted(os.listdir(place)) if place.exists() else []


def session_of(service, made):
    return next(row["session"] for row in json.loads(service.sandbox.run_atoll("ps", "-a", "--json").out)
                if row["name"] == made["sandbox"])


def make_old(service, session):
    """Layers that somebody may be about to build on are left alone for ten minutes."""
    lock = service.sandbox.state / "atoll" / "sessions" / session / "stage" / "lock"
    if lock.exists():
        os.utime(lock, (time.time() - 3600,) * 2)


def gc(service):
    said = json.loads(service.sandbox.run_atoll("gc", "--older-than", "0s", "--unreviewed", "--json").out)
    return {row["session"]: row["fate"] for row in said["sessions"]}


def test_logs_of_the_last_are_kept_and_nothing_else(service):
    done = service.sandbox.run_outside([service.directory / "atolld", "key", "add", "busy", "--rate", "100000",
                                        *service.options])
    busy, before = done.out.strip(), len(os.listdir(f"/proc/{service.process.pid}/fd"))
    others = service.sandbox.run("true").session
    for _ in range(270):
        made = service.ask("CREATE", key=busy)
        assert made.status == 201, made
        assert service.ask("KILL", key=busy, sandbox=made["sandbox"]).status == 204
    wait_until(lambda: len(service.sandbox.sessions()) < 256, 60, "what 256 sandboxes left is tidied up")
    service.stop()
    assert others in service.sandbox.sessions()
    assert not leaks.wait_for_none(service.sandbox)
    # What ended before the start is tidied up after it.
    service.start()
    wait_until(lambda: len(service.sandbox.sessions()) <= 6, 60, "five of the service are left")
    assert others in service.sandbox.sessions()
    last, = [row for row in json.loads(service.sandbox.run_atoll("ps", "-a", "--json").out)
             if row["name"] == made["sandbox"]]
    assert "session.end" in service.sandbox.run_atoll("log", last["session"]).out
    wait_until(lambda: len(os.listdir(f"/proc/{service.process.pid}/fd")) <= before, 20, "no descriptor is left")


def test_what_a_template_needs_stays_and_goes_with_it(service):
    made = service.create()
    session = session_of(service, made)
    assert service.run(made, "head -c 1M /dev/urandom > ~/big") == ("", 0)
    taken = service.ask("SNAPSHOT", sandbox=made["sandbox"], name="first")
    assert taken.status == 201 and service.ask("SNAPSHOT", sandbox=made["sandbox"]).status == 201
    full = service.ask("SNAPSHOT", sandbox=made["sandbox"])
    assert full.status == 429 and "(2)" in full["message"], full
    assert service.ask("KILL", sandbox=made["sandbox"]).status == 204
    wait_until(lambda: gc(service).get(session) == "held", 20)
    assert service.run(service.create(template="first"), "stat -c %s ~/big") == ("1048576\n", 0)
    for template in service.ask("TEMPLATES").rows:
        assert service.ask("TEMPLATE_DELETE", template=template["template"]).status == 204
    # Somebody stands on it; then nobody does.
    assert gc(service)[session] == "used"
    for row in service.list():
        assert service.ask("KILL", sandbox=row["sandbox"]).status == 204
    wait_until(lambda: make_old(service, session) or gc(service).get(session, "removed") == "removed", 30)
    assert session not in service.sandbox.sessions()


def test_a_fork_leaves_no_snapshot_in_what_it_was_made_from(service):
    made = service.create()
    session = session_of(service, made)
    assert service.run(made, "echo one > ~/a") == ("", 0)
    forks = service.ask("FORK", sandbox=made["sandbox"], count=2)
    assert [service.run(row, "cat ~/a") for row in forks.rows] == [("one\n", 0)] * 2
    wait_until(lambda: service.sandbox.run_atoll("snapshot", session, "--list", "--json").out == "[]\n", 20)
    assert layers(service, session)
    for row in forks.rows:
        assert service.ask("KILL", sandbox=row["sandbox"]).status == 204
    # The next fork has it tidied up, also while it runs.
    make_old(service, session)
    assert service.ask("FORK", sandbox=made["sandbox"]).status == 201
    wait_until(lambda: make_old(service, session) or len(layers(service, session)) < 2, 30)
    assert service.run(made, "cat ~/a") == ("one\n", 0)


def test_a_stored_sandbox_is_not_tidied_away(service):
    made = service.create()
    assert service.run(made, "echo kept > ~/a") == ("", 0)
    assert service.ask("PAUSE", sandbox=made["sandbox"], memory=0).status == 204
    session, = service.sandbox.sessions()
    assert gc(service) == {session: "held"}
    service.kill()
    service.start()
    assert service.ask("CONNECT", sandbox=made["sandbox"]).status == 201
    assert service.run(made, "cat ~/a") == ("kept\n", 0)
    assert service.ask("PAUSE", sandbox=made["sandbox"], memory=0).status == 204
    assert service.ask("KILL", sandbox=made["sandbox"]).status == 204
    wait_until(lambda: "held" not in gc(service).values(), 20)
