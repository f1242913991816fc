# SPDX-License-Identifier: Apache-2.0
"""The whole system, staged: a package is installed and looked at, and the system stays as it is until it is applied."""
import os
import pathlib
import subprocess

import pytest

import mounts
from loop import Loop
from stage import Staged

POLICY = "atoll: 1\nextends: system\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n"


@pytest.fixture
def staged(sandbox):
    """A user cannot stage what another test has just mounted something below, in its home; root can."""
    sandbox.has_own_mounts = not sandbox.identity.is_root
    return Staged(sandbox, sandbox.policy(POLICY + "network: {default: deny}\n"))


def make_package(sandbox, name):
    place = sandbox.base / "package"
    sandbox.write(place / f"opt/{name}/file", "hello\n")
    sandbox.write(place / "DEBIAN/control", f"Package: {name}\nVersion: 1\nArchitecture: all\nDescription: a test\n"
                  "Maintainer: a test <test@example.org>\n")
    sandbox.write(place / "DEBIAN/postinst", f"#!/bin/sh\nid -u >/opt/{name}/postinst\n", 0o755)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", place, sandbox.project / "x.deb"], check=True,
                   capture_output=True)


@pytest.mark.only("root")
@pytest.mark.needs("dpkg", "dpkg-deb")
def test_a_package_is_installed_reviewed_applied_and_dropped(sandbox, staged):
    name = f"atolltest-{os.getpid()}"
    make_package(sandbox, name)
    status = pathlib.Path("/var/lib/dpkg/status").stat()
    done = staged.run(f"id -u; dpkg -i x.deb >/dev/null && dpkg -s {name} | grep Status; cat /opt/{name}/postinst")
    assert done.out.split("\n")[:3] == ["0", "Status: install ok installed", "0"], done
    assert not pathlib.Path(f"/opt/{name}").exists()
    assert pathlib.Path("/var/lib/dpkg/status").stat().st_mtime_ns == status.st_mtime_ns
    changes = staged.diff()
    assert {f"/opt/{name}/file", "/var/lib/dpkg/status", f"/var/lib/dpkg/info/{name}.list"} <= set(changes), changes
    # No more than its own directory: the rest would be a package of this machine.
    staged.apply("--", f"/opt/{name}")
    file = pathlib.Path(f"/opt/{name}/file")
    try:
        assert file.read_text() == "hello\n" and (file.stat().st_uid, file.stat().st_gid) == (0, 0)
        staged.undo()
        assert not file.parent.exists()
    finally:
        subprocess.run(["rm", "-rf", file.parent], check=True)
    staged.verb("discard", staged.session)
    assert staged.diff() == {}


def test_what_is_absent(sandbox, staged):
    """Masked files, the state, what runs on the host; and files of a user's that nobody else may read."""
    names = ["/etc/shadow", "/etc/gshadow", str(sandbox.state / "atoll/sessions"), "/var/backups/x", "/run/lock"]
    done = staged.run("for name in " + " ".join(names) + "; do ls $name; done 2>&1 | grep -vc 'No such file'; "
                      "ls /usr/bin/env; ls /proc | grep -c '^[0-9]'")
    found, env, processes = done.out.split()
    assert found == "0" and env == "/usr/bin/env" and int(processes) < 10, done


@pytest.mark.only("root")
def test_uid_0_inside_is_a_number(sandbox, staged):
    """It has no capability and gets none, owns nothing that is the host's, and changes no setting of the kernel."""
    done = staged.run("grep -E 'Cap(Inh|Prm|Eff|Amb)|NoNewPrivs' /proc/self/status | awk '{ print $2 }'; "
                      "for f in /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/hostname /proc/sysrq-trigger; do "
                      "echo 1 2>/dev/null >$f && echo wrote $f; done; chroot / true 2>/dev/null && echo chroot; "
                      "mount -t tmpfs x /mnt 2>/dev/null && echo mounted; "
                      "chmod 4755 /usr/bin/env 2>/dev/null && echo setuid")
    assert done.out.split() == ["0" * 16] * 4 + ["1"], done


@pytest.mark.only("root")
def test_other_file_systems(sandbox, staged):
    """One that a layer can lie on is staged as well; a process list that somebody mounted in a chroot is not there."""
    with Loop("tmpfs", sandbox.base / "disk", sandbox.identity) as disk:
        sandbox.write(disk / "file", "old\n")
        place = sandbox.make_directory(sandbox.base / "chroot/proc")
        subprocess.run(["mount", "-t", "proc", "proc", place], check=True)
        try:
            done = staged.run(f"echo new >{disk}/file; cat {disk}/file; ls {place} | wc -l")
        finally:
            subprocess.run(["umount", place], check=True)
        assert done.out == "new\n0\n" and (disk / "file").read_text() == "old\n", done


@pytest.mark.only("user")
def test_a_user_can_change_what_is_the_users(sandbox, staged):
    if [place for place in mounts.places() if not place.startswith(mounts.TESTS)
            and place.split("/")[1] in ("home", "var", "usr", "etc", "opt", "srv")]:
        pytest.skip("this machine has something mounted below /home, /var, …, which a user cannot stage")
    done = staged.run("id -u; echo mine >~/new; cat ~/new; echo x >>/etc/hosts || echo refused")
    assert done.out == f"{sandbox.identity.uid}\nmine\nrefused\n" and not (sandbox.home / "new").exists(), done
