# SPDX-License-Identifier: Apache-2.0
"""The service on a machine that lacks something: a state disk that is full, processes, memory, descriptors."""
import contextlib
import json
import os
import subprocess

import pytest

from atoll import wait_until
from loop import Loop
from service import Service

CONFIG = "pool: 0\ndisk: 16MiB\nretain: %s\n"


@pytest.fixture
def disk(sandbox):
    """A small one of its own for the state; a file in it takes the space."""
    if os.getuid() != 0:
        pytest.skip("only root can mount one")
    place = sandbox.state / "atoll"
    with Loop("tmpfs", place, sandbox.identity):
        yield place


def free(place):
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize


def fill(place, left):
    """Takes what is free but for so many bytes."""
    with open(place / "ballast", "ab", buffering=0) as file, contextlib.suppress(OSError):
        while free(place) > left:
            file.write(b"x" * min(1 << 20, free(place) - left))
    assert free(place) <= left


def empty(place):
    (place / "ballast").unlink()


def configured(sandbox, retain):
    return str(sandbox.write(sandbox.base / "serve.yaml", CONFIG % retain))


def session_of(service, made):
    return next(row["session"] for row in json.loads(service.sandbox.run_atoll("ps", "-a", "--json").out)
                if row["name"] == made["sandbox"])


def notes(service):
    place = service.sandbox.state / "atoll" / "service" / "audit"
    return [record["detail"]["message"] for path in sorted(place.glob("*.jsonl"))
            for record in map(json.loads, path.read_text().splitlines()) if record["rule"] == "tidy.disk"]


def ended_one(service):
    made = service.create()
    session = session_of(service, made)
    assert service.ask("KILL", sandbox=made["sandbox"]).status == 204
    wait_until(lambda: session_of(service, made) and "session.end" in service.sandbox.run_atoll("log", session).out, 60)
    return session


def creates(service):
    """The answer to a create; what came of it is killed."""
    reply = service.ask("CREATE")
    if reply.status == 201:
        assert service.ask("KILL", sandbox=reply["sandbox"]).status == 204
    return reply


def test_what_has_ended_goes_when_the_disk_is_nearly_full(sandbox, disk):
    service = Service(sandbox, ["--config", configured(sandbox, "1h")]).start()
    try:
        running, ended = service.create(), ended_one(service)
        session = session_of(service, running)
        fill(disk, 8 << 20)
        # It looks at the disk at most twice a second.
        wait_until(lambda: creates(service).status == 507, 20)
        refused = service.ask("CREATE")
        assert "disk" in refused["message"] and refused["retry_after"] > 0, refused
        assert service.run(running, "echo still") == ("still\n", 0)
        # What is younger than it retains stays, and the log says that nothing could be removed.
        wait_until(lambda: "nothing could be removed" in notes(service), 60)
        assert ended in sandbox.sessions() and not any("tidied" in note for note in notes(service))
        service.stop()
        configured(sandbox, "0s")
        service.start()
        wait_until(lambda: ended not in sandbox.sessions(), 60, "what has ended goes")
        wait_until(lambda: any("tidied up by itself" in note for note in notes(service)), 60)
        assert session in sandbox.sessions() and service.run(running, "echo still") == ("still\n", 0)
        assert "sh" in sandbox.run_atoll("log", session).out
        empty(disk)
        wait_until(lambda: creates(service).status == 201, 20)
    finally:
        with contextlib.suppress(FileNotFoundError):
            empty(disk)
        service.end()


def test_a_disk_that_takes_nothing_ends_what_cannot_be_logged(sandbox, disk):
    service = Service(sandbox, ["--config", configured(sandbox, "1h")]).start()
    try:
        running = service.create()
        assert service.run(running, "echo before") == ("before\n", 0)
        fill(disk, 0)
        # Its log takes no more: it ends, sooner or later by how much room its last block had.
        for _ in range(2000):
            reply = service.start_command(running, ["/bin/true"])
            reply.close()
            if reply.status != 200:
                break
        assert reply.status in (404, 500, 502, 507), reply
        wait_until(lambda: session_is_over(service, running), 60, "the sandbox has ended")
        assert service.ask("CREATE").status == 507
        empty(disk)
        # Nothing is started anew, and yet all goes on, the log too.
        wait_until(lambda: creates(service).status == 201, 20)
        made = service.create()
        assert service.run(made, "echo after") == ("after\n", 0)
        files = list((disk / "service" / "audit").glob("*.jsonl"))
        assert any(made["sandbox"] in path.read_text() for path in files)
    finally:
        with contextlib.suppress(FileNotFoundError):
            empty(disk)
        service.end()


def session_is_over(service, made):
    return all(row["state"] not in ("running", "frozen")
               for row in json.loads(service.sandbox.run_atoll("ps", "-a", "--json").out)
               if row["name"] == made["sandbox"])


@pytest.mark.needs("strace")
@pytest.mark.parametrize("call, error", [("clone", "EAGAIN"), ("clone", "ENOMEM"), ("memfd_create", "ENOMEM"),
                                         ("socketpair", "EMFILE")])
def test_what_the_machine_lacks_is_said_and_may_be_tried_again(sandbox, call, error):
    service = Service(sandbox, ["--config", str(sandbox.write(sandbox.base / "serve.yaml", "pool: 0\n"))]).start()
    try:
        with subprocess.Popen(["strace", "-p", str(service.process.pid), "-e", f"trace={call}", "-e",
                               f"inject={call}:error={error}"], stderr=subprocess.PIPE, text=True) as tracer:
            assert "attached" in tracer.stderr.readline()
            refused = service.ask("CREATE")
            tracer.terminate()
            tracer.communicate()
        assert refused.status == 503 and refused["retry_after"] > 0 and refused["message"], refused
        assert service.list() == [] and creates(service).status == 201
    finally:
        service.end()
