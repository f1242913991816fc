# SPDX-License-Identifier: Apache-2.0
"""The shipped rules on tests/corpus: what was reached must not be lost. The floors stand a little
below what is reached. That the tool tells numbers that are not reached is tried in test_verify_report.py."""
import os
import subprocess

from atoll import ROOT

FLOORS = "detection=0.96,false-alarms=0.01"


def test_the_rules_find_what_is_risky_and_little_else():
    atoll = os.path.join(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin"), "atoll")
    done = subprocess.run([ROOT / "tools" / "report-verify", "--atoll", atoll, "--set", "develop", "--require", FLOORS],
                          text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
