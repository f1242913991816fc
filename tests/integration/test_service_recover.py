# SPDX-License-Identifier: Apache-2.0
"""atolld is killed at every moment of what it does: what clients were told of is there again, and nothing else is."""
import json
import os
import random
import time

import pytest

import leaks
from atoll import wait_until
from service import Service

ROUNDS = int(os.environ.get("ATOLL_ROUNDS", "6"))


@pytest.fixture
def service(sandbox):
    made = Service(sandbox)
    yield made.start()
    made.end()


def living(sandbox):
    """What `atoll ps` shows: name by id."""
    listed = sandbox.run_atoll("ps", "--json")
    return {row["name"] for row in json.loads(listed.out)}


def drain(service):
    """What the daemon said before it was killed."""
    try:
        while True:
            service.receive(0)
    except (AssertionError, OSError):
        pass


def restart(service):
    service.process.kill()
    drain(service)
    service.end_front()
    service.finish()
    service.start()


def test_a_sandbox_outlives_the_daemon(service):
    made = service.create(metadata=["a", "b"], timeout_ms=600000)
    running = service.start_command(made, ["/bin/bash", "-c", "read line; echo got $line"], stdin=1, tag="mine")
    assert running.status == 200
    running.close()
    restart(service)
    assert [(row["sandbox"], row["metadata"]) for row in service.list()] == [(made["sandbox"], ["a", "b"])]
    listed = service.ask("COMMANDS", key=None, sandbox=made["sandbox"], token=made["token"])
    assert [(row["tag"], row["pid"]) for row in listed.rows] == [("mine", running["pid"])], listed
    again = service.ask("ATTACH", key=None, sandbox=made["sandbox"], token=made["token"], tag="mine")
    assert again.status == 200, again
    os.write(again.fds["stdin"], b"word\n")
    wait_until(lambda: os.read(again.fds["stdout"], 100) == b"got word\n")
    again.close()
    assert service.event("EXIT", sandbox=made["sandbox"])["exit"] == 0
    assert service.run(made, "echo still") == ("still\n", 0)


def test_what_is_paused_stays_so(service):
    made, stored = service.create(), service.create()
    assert service.run(stored, "echo kept > ~/a") == ("", 0)
    assert service.ask("PAUSE", sandbox=made["sandbox"]).status == 204
    assert service.ask("PAUSE", sandbox=stored["sandbox"], memory=0).status == 204
    restart(service)
    assert {row["state"] for row in service.list()} == {"paused"}
    for one in (made, stored):
        assert service.ask("CONNECT", sandbox=one["sandbox"]).status == 201
    assert service.run(stored, "cat ~/a") == ("kept\n", 0)
    assert service.run(made, "echo up") == ("up\n", 0)


def test_the_time_of_a_sandbox_is_over_while_no_daemon_is_there(service, sandbox):
    made = service.create(timeout_ms=1500)
    service.process.kill()
    service.end_front()
    service.finish()
    wait_until(lambda: made["sandbox"] not in living(sandbox), 30, "the end of its time")
    service.start()
    wait_until(lambda: service.list() == [], what="that it is forgotten")


def test_a_second_daemon_is_refused(service):
    second = service.sandbox.run_outside([service.directory / "atolld", "-l", "127.0.0.1:0", *service.options])
    assert second.code == 125 and "another atolld" in second.err, second
    assert service.ask("LIST").status == 200


def told(service, tickets):
    """Sandboxes by the replies that came: those that were made, and those that were ended."""
    made = {service.replies[ticket]["sandbox"] for ticket in tickets["CREATE"]
            if ticket in service.replies and service.replies[ticket].status == 201}
    killed = {sandbox for ticket, sandbox in tickets["KILL"].items() if ticket in service.replies}
    return made, killed


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_without_an_owner_whenever_the_daemon_dies(service, sandbox, seed):
    rng = random.Random(seed)
    there = {}
    for _ in range(ROUNDS):
        tickets = {"CREATE": [], "KILL": {}}
        service.replies.clear()
        for _ in range(rng.randrange(1, 4)):
            tickets["CREATE"].append(service.send("CREATE", key=service.key))
        for one in [one for one in there if rng.random() < 0.4]:
            tickets["KILL"][service.send("KILL", key=service.key, sandbox=one)] = one
        for one, token in there.items():
            if one not in tickets["KILL"].values() and rng.random() < 0.5:
                service.send("EXEC", sandbox=one, token=token, argv=["sleep", "0.05"], stdin=0)
        time.sleep(rng.random() * 0.12)
        service.process.kill()
        drain(service)
        made, killed = told(service, tickets)
        tokens = {reply["sandbox"]: reply["token"] for reply in service.replies.values()
                  if reply.status == 201}
        for reply in service.replies.values():
            reply.close()
        service.end_front()
        service.finish()
        service.start()
        there.update({one: tokens[one] for one in made})
        listed = {row["sandbox"] for row in service.list()}
        # A kill that was not answered may have happened, and a sandbox that nobody was told of may be there.
        maybe = set(tickets["KILL"].values())
        assert set(there) - maybe <= listed, "a sandbox is lost"
        assert not killed & listed, "a sandbox that was killed is there"
        for one in listed - set(there):
            there[one] = None
        there = {one: token for one, token in there.items() if one in listed}
        wait_until(lambda: living(sandbox) == {row["sandbox"] for row in service.list()}, 45,
                   "that nothing lives which is not in the list")
        for one, token in there.items():
            if token:
                assert service.run({"sandbox": one, "token": token}, "echo ok") == ("ok\n", 0)
    for one in list(there):
        assert service.ask("KILL", sandbox=one).status == 204
    service.stop()
    assert leaks.wait_for_none(sandbox) == {}
