# SPDX-License-Identifier: Apache-2.0
"""atolld: what its front can ask for, and what it cannot. The test is the front."""
import os

import pytest

from service import Service


@pytest.fixture
def service(sandbox):
    made = Service(sandbox)
    yield made.start()
    made.end()


def test_a_sandbox_is_made_used_and_killed(service):
    made = service.create(metadata=["app", "test"], timeout_ms=60000)
    assert made["template"] == "base" and made["state"] == "running" and len(made["token"]) == 64
    assert service.run(made, "echo $HOME; pwd; echo out; exit 3") == ("/home/user\n/home/user\nout\n", 3)
    assert [row["sandbox"] for row in service.list()] == [made["sandbox"]]
    assert service.ask("KILL", sandbox=made["sandbox"]).status == 204
    assert service.ask("KILL", sandbox=made["sandbox"]).status == 404
    assert service.list() == []


def test_files_are_carried_by_snapshots_and_forks(service):
    first = service.create()
    assert service.run(first, "whoami; echo one > ~/a; stat -c %U ~/a; ls -A /home/user") == ("user\nuser\na\n", 0)
    reply = service.ask("FORK", sandbox=first["sandbox"], count=2)
    assert reply.status == 201 and len(reply.rows) == 2 and all(row["files_only"] == 1 for row in reply.rows), reply
    for row in reply.rows:
        assert service.run(row, "cat ~/a; echo other > ~/a") == ("one\n", 0)
    assert service.run(first, "cat ~/a") == ("one\n", 0)
    taken = service.ask("SNAPSHOT", sandbox=first["sandbox"], name="mine")
    assert taken.status == 201 and taken["names"] == ["mine"], taken
    assert service.ask("KILL", sandbox=first["sandbox"]).status == 204
    for template in (taken["snapshot"], "mine"):
        made = service.create(template=template)
        assert service.run(made, "cat ~/a") == ("one\n", 0) and made["template"] == template
    assert [row["snapshot"] for row in service.ask("SNAPSHOTS").rows] == [taken["snapshot"]]
    assert service.ask("TEMPLATE_DELETE", template="mine").status == 204
    assert service.ask("CREATE", template="mine").status == 404


def test_a_pause_without_memory_keeps_the_files(service):
    made = service.create()
    assert service.run(made, "echo kept > ~/a; echo lost > /tmp/a") == ("", 0)
    assert service.ask("PAUSE", sandbox=made["sandbox"], memory=0).status == 204
    assert service.ask("GET", sandbox=made["sandbox"])["state"] == "paused"
    assert service.start_command(made, ["true"]).status == 502
    assert service.ask("CONNECT", sandbox=made["sandbox"]).status == 201
    assert service.run(made, "cat ~/a; cat /tmp/a 2>&1 | wc -l; test -e /tmp/a") == ("kept\n1\n", 1)
    assert service.ask("PAUSE", sandbox=made["sandbox"], memory=0).status == 204
    assert service.ask("KILL", sandbox=made["sandbox"]).status == 204


def test_a_pause_with_memory_keeps_processes(service):
    made = service.create()
    counter = service.start_command(made, ["/bin/bash", "-c", "for i in $(seq 1000); do echo $i; sleep 0.02; done"])
    assert os.read(counter.fds["stdout"], 2) == b"1\n"
    assert service.ask("PAUSE", sandbox=made["sandbox"]).status == 204
    assert service.ask("PAUSE", sandbox=made["sandbox"]).status == 409
    assert service.ask("GET", sandbox=made["sandbox"])["state"] == "paused"
    assert service.ask("CONNECT", sandbox=made["sandbox"]).status == 201
    seen = b""
    while b"\n50\n" not in seen:
        seen += os.read(counter.fds["stdout"], 4096)
    counter.close()
    assert service.ask("CONNECT", sandbox=made["sandbox"]).status == 200
