# SPDX-License-Identifier: Apache-2.0
"""The control socket: no client makes what runs inside wait, and none is left without an answer."""
import time

import pytest

from atoll import wait_until
from control import ERROR, STATUS, Control, Link

SERVED, PATIENCE_S = 64, 20
AUDIT = "atoll: 1\nextends: high\naudit: {files: all}\n"

# Opens a file again and again, which the box does for it, and says each second how long the slowest of them took.
OPENER = """
import os, time
while True:
    slowest, until = 0, time.monotonic() + 1
    while time.monotonic() < until:
        begun = time.monotonic()
        os.close(os.open("read", os.O_RDONLY))
        slowest = max(slowest, time.monotonic() - begun)
    print(slowest, flush=True)
"""


@pytest.fixture
def opening(sandbox):
    """A sandbox in which one program makes mediated calls all the time."""
    sandbox.write(sandbox.project / "read", "x")
    sandbox.write(sandbox.project / "opener.py", OPENER)
    child = sandbox.popen(["python3", "opener.py"], policy=sandbox.policy(AUDIT))
    assert float(child.stdout.readline()), child.stderr.read()
    return child


def test_a_client_that_does_not_read_makes_no_call_inside_wait(sandbox, opening):
    """It asks for more than its socket holds: the box gives the client up instead of waiting for it."""
    session = sandbox.sessions()[-1]
    with Link(sandbox, session) as stuck:
        stuck.socket.setblocking(False)
        until = time.monotonic() + PATIENCE_S
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while time.monotonic() < until:
                try:
                    stuck.begin(STATUS)
                except BlockingIOError:
                    time.sleep(0.01)
        assert all(float(opening.stdout.readline()) < 1 for _ in range(6))
    with Link(sandbox, session) as other:
        assert other.status()


def test_a_client_too_many_is_told_so(sandbox, opening):
    session = sandbox.sessions()[-1]
    clients = []
    for _ in range(SERVED):
        clients.append(Link(sandbox, session))
        assert clients[-1].status()
    with Control(sandbox, session) as another:
        kind, rest = another.receive()
        assert kind == ERROR and b"64 programs are connected to this sandbox already" in rest
    done = sandbox.run_atoll("exec", session, "--", "true")
    assert done.code != 0 and "programs are connected to this sandbox already" in done.err, done
    clients.pop().close()
    wait_until(lambda: sandbox.run_atoll("exec", session, "--", "true").code == 0, 30, "a free place")
    for client in clients:
        client.close()
