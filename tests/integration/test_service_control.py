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
