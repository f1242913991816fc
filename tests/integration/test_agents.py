# SPDX-License-Identifier: Apache-2.0
"""Real agents start under the policies that are shipped for them (make check-agents; needs the npm registry)."""
import os
import pathlib
import shutil
import subprocess

import pytest

from atoll import ROOT

PLACE = pathlib.Path(os.environ.get("ATOLL_AGENTS", ROOT / "build" / "agents"))
# Shipped policy: npm package, program.
AGENTS = {
    "claude": ("@anthropic-ai/claude-code", "claude"),
    "codex": ("@openai/codex", "codex"),
    "gemini": ("@google/gemini-cli", "gemini"),
    "opencode": ("opencode-ai", "opencode"),
}

pytestmark = [
    pytest.mark.needs("npm", "node"),
    pytest.mark.skipif(os.environ.get("ATOLL_TESTS_AGENTS") != "1", reason="make check-agents runs these"),
]


@pytest.fixture(scope="session")
def packages():
    """Installed once, outside of the repository's own files."""
    missing = [package for package, program in AGENTS.values() if not (PLACE / "node_modules/.bin" / program).exists()]
    if missing:
        PLACE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--prefix", str(PLACE), "--no-audit", "--no-fund", *missing], check=True,
                timeout=900)
    return PLACE / "node_modules"


@pytest.fixture
def installed(sandbox, packages):
    """As a person installs them: below the home, in the prefix of `npm install -g`."""
    place = sandbox.home / ".local" / "lib" / "node_modules"
    sandbox.make_directory(place.parent)
    # A gigabyte: linked where that can be, as an administrator's files that everybody may read.
    if subprocess.run(["cp", "-al", str(packages), str(place)], check=False, capture_output=True).returncode != 0:
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run(["cp", "-a", str(packages), str(place)], check=True)
    bin_directory = sandbox.make_directory(sandbox.home / ".local" / "bin")
    for _, program in AGENTS.values():
        link = bin_directory / program
        link.symlink_to(os.path.join("../lib/node_modules/.bin", program))
        sandbox.own(link)
    yield bin_directory
    shutil.rmtree(sandbox.home / ".local")


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_prints_its_version_and_help(sandbox, installed, agent):
    program = AGENTS[agent][1]
    env = {"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin"}
    for word in ("--version", "--help"):
        outside = sandbox.run_outside([program, word], env=env, timeout=120)
        if outside.code != 0:
            pytest.skip(f"{program} {word} does not work without a sandbox either: {outside.err[-200:]}")
        done = sandbox.run([program, word], policy=agent, env=env, timeout=120, options=["-q"])
        assert done.code == 0, (word, done)
        assert (done.out + done.err).split()[:1] == (outside.out + outside.err).split()[:1], (word, outside, done)
