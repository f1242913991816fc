# SPDX-License-Identifier: Apache-2.0
"""Programs that use libatoll, run by the user who starts the sandboxes: what the tests of the library share."""
import os
import pathlib
import subprocess
import textwrap

import pytest

from atoll import ROOT

LIBRARY = pathlib.Path(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin")).resolve().parent / "lib"
HEADER = ROOT / "src" / "client" / "atoll.h"

needs_library = pytest.mark.skipif(not (LIBRARY / "libatoll.so").exists(), reason=f"libatoll is not built in {LIBRARY}")

DEGRADED = "atoll: 1\nextends: medium\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n"

PRELUDE = """
import ctypes, os, select, signal, sys, time
from libatoll import *
project = os.getcwd()
context = Context()
MEDIUM = {"policy": "/".join(project.split("/")[:-2]) + "/config/degraded.yaml", "project": project}
"""


class Host:
    """Where the programs of one test are, readable by who runs them."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        sandbox.policy(DEGRADED, "degraded.yaml")
        self.directory = sandbox.make_directory(sandbox.base / "host")
        for source in (LIBRARY / "libatoll.so.0", ROOT / "tests" / "lib" / "libatoll.py"):
            sandbox.copy(source, self.directory / source.name)
        self.env = {"LIBATOLL": str(self.directory / "libatoll.so.0"), "PYTHONPATH": str(self.directory),
                    "PATH": f"{sandbox.programs.directory}:/usr/bin:/bin"}

    def program(self, text, timeout=60, prelude=PRELUDE):
        """Runs a Python program; what it says. It must end well."""
        result = self.sandbox.run_outside(["/usr/bin/python3", "-c", prelude + textwrap.dedent(text)], env=self.env,
                                          cwd=self.sandbox.project, timeout=timeout)
        assert result.code == 0, result
        assert result.err == "", result.err
        return result.out

    def build(self, source, name, words=()):
        out = self.directory / name
        subprocess.run(["cc", "-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{HEADER.parent}", source,
                        "-o", out, *words], check=True)
        out.chmod(0o755)
        return out


@pytest.fixture
def host(sandbox):
    return Host(sandbox)
