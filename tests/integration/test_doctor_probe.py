# SPDX-License-Identifier: Apache-2.0
"""`atoll doctor --probe`: it has something to attack, judges by the policy, and leaves nothing."""
import glob
import json
import os
import re
import signal
import subprocess
import time

import pytest

from atoll import wait_until


def rows_of(result):
    """{name: (outcome, note)} of the table."""
    found = re.findall(r"^(held|broke|n/a) +(\S+) +[^\n]*?(?: \(([^\n]*)\))?$", result.out, re.M)
    return {name: (outcome, note) for outcome, name, note in found}


def made_by(sandbox):
    """What a probe of this user has made and not removed."""
    places = [*glob.glob("/var/tmp/atoll-doctor-*"), *glob.glob("/tmp/atoll-doctor-*"),
              *glob.glob("/dev/shm/atoll-doctor-*"), *glob.glob(str(sandbox.state / "atoll" / "doctor-*"))]
    return {place for place in places if owner_of(place) == sandbox.identity.uid}


def owner_of(place):
    try:
        return os.lstat(place).st_uid
    except FileNotFoundError:
        return None   # another doctor's, and gone by now


def test_what_is_attacked_is_there(sandbox):
    """An attempt on a file that does not exist fails whatever the boundary does."""
    result = sandbox.run_atoll("doctor", "--probe", timeout=120)
    rows = rows_of(result)
    assert result.code == 0 and not [name for name, row in rows.items() if row[0] == "broke"], result
    for name in ("readonly.open-write", "readonly.unlink", "hidden.open-write", "hidden.list", "unix.path",
                 "unix.sendto", "unix.abstract", "connect.tcp", "posix.shm"):
        assert rows[name][0] == "held", (name, rows[name])
    assert rows["readonly.open-write"][1] == "EROFS" and rows["readonly.unlink"][1] == "EROFS", result
    assert len([name for name, row in rows.items() if row[0] == "held"]) > 500, result


@pytest.mark.parametrize("level", ["medium", "full"])
def test_nothing_breaks_that_the_policy_allows(sandbox, level):
    """Also where root's control sockets lie below /run/atoll, which is the name of the sandbox's own directory."""
    result = sandbox.run_atoll("doctor", "--probe", "-t", level, timeout=120, env={"XDG_RUNTIME_DIR": None})
    rows = rows_of(result)
    assert result.code == 0 and not [name for name, row in rows.items() if row[0] == "broke"], result
    assert rows["control.reach"][0] == "held"
    assert rows["system/etc/shadow"][0] == "held"
    log = rows["system/var/log/dpkg.log"]
    assert log[0] == ("n/a" if level == "full" and os.path.exists("/var/log/dpkg.log") else "held"), log


def test_the_table_for_programs_says_the_same(sandbox):
    result = sandbox.run_atoll("doctor", "--probe", "--json", timeout=120)
    found = json.loads(result.out)
    assert result.code == 0 and found["broke"] == 0
    outcomes = {attempt["name"]: attempt["outcome"] for attempt in found["attempts"]}
    assert outcomes["readonly.open-write"] == outcomes["unix.path"] == "held"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("wait", [0.02, 0.1])
def test_an_interrupted_probe_leaves_nothing(sandbox, number, wait):
    before = made_by(sandbox)
    child = subprocess.Popen([str(sandbox.programs.atoll), "doctor", "--probe"], start_new_session=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **sandbox.popen_keywords())
    time.sleep(wait)
    os.killpg(child.pid, number)
    assert child.wait(timeout=30) in (-number, 0)   # 0: it was done already
    # Other probes of this user may run beside it, and come and go: what is left stays.
    wait_until(lambda: made_by(sandbox) <= before, what="nothing is left")


def test_a_signal_to_the_probe_alone_ends_it_too(sandbox):
    before = made_by(sandbox)
    child = subprocess.Popen([str(sandbox.programs.atoll), "doctor", "--probe"], start_new_session=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **sandbox.popen_keywords())
    time.sleep(0.1)
    child.terminate()
    assert child.wait(timeout=30) in (-signal.SIGTERM, 0)
    # Other probes of this user may run beside it, and come and go: what is left stays.
    wait_until(lambda: made_by(sandbox) <= before, what="nothing is left")
