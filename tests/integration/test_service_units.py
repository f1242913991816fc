# SPDX-License-Identifier: Apache-2.0
"""The units of the service, as systemd reads them."""
import os
import pathlib
import subprocess

import pytest

from atoll import ROOT

UNITS = {"system": "atolld.service", "user": "atolld.user.service"}


def verify(place, manager, text):
    """What systemd has to say of a unit, which is nothing of a good one."""
    unit = place / "atolld.service"
    unit.write_text(text)
    runtime = place / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    # Manual pages are looked up with man(1), which finds none of a tree that is not installed.
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", f"--{manager}", str(unit)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "SYSTEMD_UNIT_PATH": f"{place}:"})
    # Of units of this machine nothing is claimed.
    return done.returncode, [line for line in done.stdout.splitlines() if "atolld" in line]


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("manager", UNITS)
def test_systemd_takes_the_units(tmp_path, manager):
    programs = pathlib.Path(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin")).resolve()
    (tmp_path / "bin").symlink_to(programs)
    text = (ROOT / "packaging" / "systemd" / UNITS[manager]).read_text().replace("@PREFIX@", str(tmp_path))
    assert "@" not in text
    assert verify(tmp_path, manager, text) == (0, [])
    # The control: a word that is none, and a program that is not there.
    for wrong in (text.replace("KillMode=", "KilMode="), text.replace("/bin/atoll serve", "/bin/atol serve")):
        assert wrong != text and verify(tmp_path, manager, wrong)[1]
