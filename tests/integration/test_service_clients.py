# SPDX-License-Identifier: Apache-2.0
"""Unmodified E2B clients from npm against `atoll serve` (make check-agents; needs the npm registry)."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = pathlib.Path(os.environ.get("ATOLL_CLIENTS", ROOT / "build" / "clients"))
SCRIPT = ROOT / "tests" / "clients" / "e2b.mjs"
# The newest, and two that programs still carry.
VERSIONS = ("2.51.0", "2.38.3", "2.19.0")
# What is answered with 501 so far.
UNSERVED = {"files.watchDir", "getMetrics"}
# Users of a machine that has no limits for them.
DEGRADED = "atoll: 1\nextends: service-base\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n"

pytestmark = [
    pytest.mark.needs("npm", "node"),
    pytest.mark.skipif(os.environ.get("ATOLL_TESTS_AGENTS") != "1", reason="make check-agents runs these"),
]


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """Directory of a version of the package, installed once."""
    def install(version):
        place = PLACE / version
        if not (place / "node_modules" / "e2b").exists():
            place.mkdir(parents=True, exist_ok=True)
            subprocess.run(["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", f"e2b@{version}"],
                           check=True, timeout=600)
        return place / "node_modules" / "e2b"
    return install


@pytest.fixture
def served(sandbox):
    """Variables for a client of `atoll serve`."""
    words = [str(sandbox.programs.atoll), "serve", "--listen", "127.0.0.1:0", "--json"]
    if not sandbox.identity.is_root:
        words += ["--policy", str(sandbox.policy(DEGRADED, "service-test.yaml"))]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **sandbox.popen_keywords()) as server:
        said = json.loads(server.stdout.readline())
        yield {"E2B_API_KEY": said["key"], "E2B_API_URL": said["url"], "E2B_SANDBOX_URL": said["url"]}
        server.terminate()
        assert server.wait(30) == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_of_this_version(served, package, version):
    done = subprocess.run(["node", str(SCRIPT), str(package(version))], env={**os.environ, **served}, check=False,
                          capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) > 30, done.stderr
    if os.environ.get("ATOLL_CLIENT_TABLE"):
        with open(os.environ["ATOLL_CLIENT_TABLE"], "a", encoding="utf-8") as table:
            for line in lines:
                table.write(json.dumps({"version": version, **line}) + "\n")
    failed = [line for line in lines if not line["ok"]]
    assert not [line for line in failed if line["call"] not in UNSERVED or "not served" not in line["detail"]]
