# SPDX-License-Identifier: Apache-2.0
"""Who starts the sandboxes: root, and an ordinary user that exists for this test session only."""
import contextlib
import fcntl
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("atoll", "atoll-desk", "atoll-egress", "atoll-files", "atoll-init", "atoll-judge", "atoll-learn",
            "atoll-notify", "atoll-oci", "atoll-policy",
            "atoll-log", "atoll-request", "atoll-stage", "atoll-secret", "atoll-probe", "atoll-template",
            "atoll-token", "atoll-top",
            "atoll-verify", "atoll-front", "atoll-function", "atolld")


class Identity:
    def __init__(self, name, uid, gid, place):
        self.name, self.uid, self.gid, self.place = name, uid, gid, pathlib.Path(place)

    @property
    def is_root(self):
        return self.uid == 0

    def popen_keywords(self):
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def become(self):
        """For preexec_fn where popen_keywords() cannot be used."""
        if self.uid != os.geteuid():
            os.setgroups([])
            os.setgid(self.gid)
            os.setuid(self.uid)


@contextlib.contextmanager
def users_lock():
    """useradd and userdel do not wait for one another: the second of two gives up. Ours wait here."""
    fd = os.open("/run/lock/atolltest-users", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def change_users(words, is_done, seconds=20):
    """Runs it until is_done(): somebody else may be changing /etc/passwd, which useradd(8) ends for."""
    end = time.monotonic() + seconds
    while True:
        with users_lock():
            done = subprocess.run(words, check=False, capture_output=True, stdin=subprocess.DEVNULL)
        if is_done():
            return
        if time.monotonic() > end:
            raise AssertionError(f"{words}: exit {done.returncode}: {done.stderr.decode(errors='replace')}")
        time.sleep(0.05)


class TestUser:
    """useradd and userdel around a session. Only names that begin with atolltest are ever removed."""

    __test__ = False

    def __init__(self):
        self.name = f"atolltest{os.getpid()}"
        change_users(["useradd", "--create-home", "--shell", "/bin/bash", self.name], self.exists)
        entry = pwd.getpwnam(self.name)
        self.identity = Identity(self.name, entry.pw_uid, entry.pw_gid, entry.pw_dir)

    def exists(self):
        try:
            return os.path.isdir(pwd.getpwnam(self.name).pw_dir)
        except KeyError:
            return False

    def remove(self):
        change_users(["userdel", "--remove", self.name], lambda: not self.exists())


def root_identity():
    place = tempfile.mkdtemp(prefix="atolltest-root-", dir="/home")
    os.chmod(place, 0o755)
    return Identity("root", 0, 0, place)


def self_identity():
    entry = pwd.getpwuid(os.getuid())
    place = tempfile.mkdtemp(prefix="atolltest-", dir=entry.pw_dir)
    return Identity(entry.pw_name, entry.pw_uid, entry.pw_gid, place)


class Programs:
    """
    The built programs where every user can read them: the checkout may lie below a directory that others may not enter,
    so they are copied, with the policies, into a directory of this session.
    """

    def __init__(self, source):
        self.source = pathlib.Path(source)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="atolltest-bin-", dir="/tmp"))
        os.chmod(self.directory, 0o755)
        for name in PROGRAMS:
            if (self.source / name).exists():
                shutil.copyfile(self.source / name, self.directory / name)
                os.chmod(self.directory / name, 0o755)
        shutil.copytree(self.source / "policies", self.directory / "policies")
        subprocess.run(["chmod", "-R", "a+rX", str(self.directory / "policies")], check=True)

    @property
    def atoll(self):
        return self.directory / "atoll"

    def program(self, name):
        return self.directory / name

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)
