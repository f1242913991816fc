# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all Python tests: the programs, the identities, a fresh Sandbox per test, and the check for what it
left."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))

import leaks  # noqa: E402
from atoll import ROOT, Sandbox  # noqa: E402
from gate import Certificates  # noqa: E402
from identity import Programs, TestUser, root_identity, self_identity  # noqa: E402

MUST_RUN = os.environ.get("ATOLL_TESTS_MUST_RUN") == "1"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A skip says why; where everything must run it is a failure."""
    result = yield
    report = result.get_result()
    if MUST_RUN and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"must run, but: {reason}"


def end_by_signal(number, frame):
    """An end from outside is one with an end: users, places, programs and whole sandboxes are not left behind."""
    raise KeyboardInterrupt(f"signal {number}")


def pytest_configure(config):
    signal.signal(signal.SIGTERM, end_by_signal)
    config.addinivalue_line("markers", "needs(program, …): skipped where one of these programs is not installed")
    config.addinivalue_line("markers", "only(identity): runs as this identity alone")
    config.addinivalue_line("markers", "may_leak(reason): the test itself leaves processes or looks after them")


def pytest_collection_modifyitems(config, items):
    """Leaves out what means nothing: tests of one identity as the other, and controls without a boundary twice."""
    kept, left_out = [], []
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        identity = parameters.get("identity")
        alone = [name for mark in item.iter_markers("only") for name in mark.args]
        is_second_control = parameters.get("outside") is True and identity == "root"
        (left_out if (identity and alone and identity not in alone) or is_second_control else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_runtest_setup(item):
    for mark in item.iter_markers("needs"):
        for program in mark.args:
            if shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
                pytest.skip(f"{program} is not installed")


@pytest.fixture(scope="session")
def certificates():
    """An authority, and a certificate for all names of servers that tests have on the host."""
    made = Certificates()
    yield made
    shutil.rmtree(made.directory)


@pytest.fixture(scope="session")
def programs():
    source = pathlib.Path(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin")).resolve()
    if not (source / "atoll").exists() or not (source / "atoll-init").exists():
        pytest.skip(f"atoll is not built in {source}")
    made = Programs(source)
    yield made
    made.remove()


@pytest.fixture(scope="session")
def identities():
    made, users = {}, []
    if os.geteuid() == 0:
        made["root"] = root_identity()
        users.append(TestUser())
        made["user"] = users[0].identity
    else:
        made["user"] = self_identity()
    yield made
    for identity in made.values():
        shutil.rmtree(identity.place, ignore_errors=True)
    for user in users:
        user.remove()


@pytest.fixture(params=["root", "user"])
def identity(request, identities):
    if request.param not in identities:
        pytest.skip("the tests do not run as root, so they cannot become another user")
    return identities[request.param]


@pytest.fixture
def sandbox(request, programs, identity):
    number = getattr(request.config, "sandbox_number", 0) + 1
    request.config.sandbox_number = number
    base = identity.place / f"t{number}"
    base.mkdir(mode=0o755)
    os.chown(base, identity.uid, identity.gid)
    box = Sandbox(programs, identity, base)
    yield box
    box.end()
    left = leaks.wait_for_none(box)
    for pid, _ in left.get("processes", []):
        subprocess.run(["kill", "-KILL", str(pid)], check=False)
    shutil.rmtree(base, ignore_errors=True)
    assert not left or request.node.get_closest_marker("may_leak"), f"left behind: {left}"
