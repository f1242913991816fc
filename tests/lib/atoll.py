# SPDX-License-Identifier: Apache-2.0
"""Drives the real programs as a person would: one Sandbox per test, with a home, a project and XDG directories of
its own.

A test says what is to run inside and looks at effects: exit status, output, the report, the host's files and processes.
"""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pexpect

import mounts

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULT_TIMEOUT = 60
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class Result:
    """What a run of `atoll` left: exit status, both outputs, the report."""

    def __init__(self, code, stdout, stderr, report):
        self.code, self.bytes, self.error_bytes, self.report = code, stdout, stderr, report

    @property
    def out(self):
        return self.bytes.decode(errors="replace")

    @property
    def err(self):
        return self.error_bytes.decode(errors="replace")

    @property
    def session(self):
        return self.report["session"]

    def __repr__(self):
        return (f"<exit {self.code}\n--- stdout\n{self.out[-3000:]}\n--- stderr\n{self.err[-3000:]}\n--- report "
                f"{self.report}>")


class Sandbox:
    """A place to start sandboxes from, as one identity. Everything that it makes is below self.base."""

    def __init__(self, programs, identity, base):
        self.programs, self.identity, self.base = programs, identity, base
        self.home = base / "home"
        self.project = self.home / "project"
        self.outside = self.home / "outside"
        self.state = base / "state"
        self.runtime = base / "run"
        self.children, self.terminals = [], []
        self.reports = 0
        self.has_own_mounts = False
        for directory in (self.home, self.project, self.outside, self.state, self.runtime, base / "cache",
                base / "config"):
            self.make_directory(directory)
        os.chmod(self.runtime, 0o700)

    # --- Files that belong to the identity. ---

    def own(self, path):
        os.chown(path, self.identity.uid, self.identity.gid, follow_symlinks=False)
        return path

    def make_directory(self, path, mode=0o755):
        for parent in reversed([path, *path.parents]):
            if not parent.exists() and self.base in [parent, *parent.parents]:
                parent.mkdir(mode)
                self.own(parent)
        return path

    def write(self, path, content="", mode=0o644):
        path = pathlib.Path(path)
        self.make_directory(path.parent)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content)
        path.chmod(mode)
        return self.own(path)

    def copy(self, source, path, mode=0o755):
        self.make_directory(pathlib.Path(path).parent)
        shutil.copyfile(source, path)
        os.chmod(path, mode)
        return self.own(path)

    def git_project(self):
        for words in (["init", "-q"], ["config", "user.name", "Test"], ["config", "user.email", "test@example.org"]):
            self.run_outside(["git", *words], cwd=self.project, check=True)
        return self.project

    # --- Environment and command line. ---

    @property
    def environment(self):
        return {
            "HOME": str(self.home), "PATH": PATH, "LANG": "C.UTF-8", "TERM": "xterm-256color",
            "USER": self.identity.name, "LOGNAME": self.identity.name, "SHELL": "/bin/bash",
            "XDG_STATE_HOME": str(self.state), "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_CACHE_HOME": str(self.base / "cache"), "XDG_CONFIG_HOME": str(self.base / "config"),
            "ATOLL_REVIEW_PROMPT": "off",
        }

    def full_environment(self, env=None):
        merged = {**self.environment, **(env or {})}
        return {name: value for name, value in merged.items() if value is not None}

    def policy(self, text, name="test.yaml"):
        """Writes a policy file outside of the project; its path is for run(policy=…)."""
        return self.write(self.base / "config" / name, text)

    def command_line(self, command, policy=None, trust=None, options=(), report=None):
        words = [str(self.programs.atoll), "run"]
        if policy:
            words += ["-p", str(policy)]
        if trust:
            words += ["-t", trust]
        if report:
            words += ["--report", str(report)]
        return words + [str(option) for option in options] + ["--"] + [os.fspath(word) for word in command]

    def popen_keywords(self, cwd=None, env=None, **more):
        keywords = {"cwd": str(cwd or self.project), "env": self.full_environment(env), **more}
        if self.has_own_mounts and os.getuid() == 0:
            return {**keywords, "preexec_fn": self.enter_own_mounts}
        return {**keywords, **self.identity.popen_keywords()}

    def enter_own_mounts(self):
        mounts.enter_own_mounts()
        self.identity.become()

    # --- Running. ---

    def run_outside(self, command, stdin=None, timeout=DEFAULT_TIMEOUT, check=False, **keywords):
        """The positive control: the same command as the same user, without a boundary."""
        done = subprocess.run([os.fspath(word) for word in command], input=stdin, capture_output=True, timeout=timeout,
                              stdin=subprocess.DEVNULL if stdin is None else None, check=check,
                              **self.popen_keywords(**keywords))
        return Result(done.returncode, done.stdout, done.stderr, None)

    def run_atoll(self, *words, **keywords):
        """Any other verb: run_atoll("log", "verify", id)."""
        return self.run_outside([self.programs.atoll, *words], **keywords)

    def report_path(self):
        self.reports += 1
        return self.base / f"report-{self.reports}.json"

    def popen(self, command, policy=None, trust=None, options=(), report=None, cwd=None, env=None, **keywords):
        """Starts `atoll run` and leaves it running; ended with the test."""
        keywords = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **keywords}
        child = subprocess.Popen(self.command_line(command, policy, trust, options, report), start_new_session=True,
                                 **keywords, **self.popen_keywords(cwd, env))
        self.children.append(child)
        return child

    def run(self, command, policy=None, trust=None, stdin=None, options=(), cwd=None, env=None,
            timeout=DEFAULT_TIMEOUT, **keywords):
        """Runs command inside and waits. A string is a bash script."""
        if isinstance(command, str):
            command = ["bash", "-c", command]
        report = self.report_path()
        self.own_parent(report)
        if stdin is not None:
            keywords["stdin"] = subprocess.PIPE
        child = self.popen(command, policy, trust, options, report, cwd, env, **keywords)
        try:
            out, err = child.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            raise AssertionError(f"still running after {timeout} s\n{out!r}\n{err!r}") from None
        return Result(child.returncode, out or b"", err or b"", self.read_report(report))

    def own_parent(self, path):
        self.own(path.parent)

    @staticmethod
    def read_report(path):
        try:
            return json.loads(path.read_text())
        except FileNotFoundError:
            return None

    def spawn(self, command, policy=None, trust=None, options=(), cwd=None, env=None, size=(24, 80), outside=False,
              is_own_terminal=True):
        """On a terminal: a pexpect child. outside: the same command without the boundary. A login gives the terminal
        to its
        user, su does not (is_own_terminal=False)."""
        words = [os.fspath(word) for word in command]
        if not outside:
            words = self.command_line(words, policy, trust, options)
        keywords = self.popen_keywords(cwd, env)

        def become():
            if is_own_terminal:
                os.fchown(0, self.identity.uid, self.identity.gid)
            self.identity.become()

        child = pexpect.spawn(words[0], words[1:], cwd=keywords["cwd"], env=keywords["env"], dimensions=size,
                              timeout=15, preexec_fn=become, encoding=None)
        child.delaybeforesend = None
        self.terminals.append(child)
        return child

    # --- The end. ---

    def sessions(self):
        root = self.state / "atoll" / "sessions"
        return sorted(entry.name for entry in root.iterdir()) if root.is_dir() else []

    def staged(self, name="", session=None, tree=0):
        """Where a session (the newest one) keeps what was written under this name of a staged tree."""
        root = self.state / "atoll" / "sessions"
        if session is None:
            session = max((entry for entry in root.iterdir()), key=lambda entry: entry.stat().st_ctime_ns).name
        return root / session / "stage" / "live" / str(tree) / "upper" / name

    def audit_log(self, session):
        return self.state / "atoll" / "sessions" / session / "audit.jsonl"

    def end(self):
        for child in self.terminals:
            child.close(force=True)
        for child in self.children:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream:
                    stream.close()


def someone_listens(sandbox):
    """Whether somebody who answers questions holds the lock: that its file is there says less."""
    for path in sandbox.runtime.rglob("listeners.lock"):
        with path.open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


def wait_until(condition, seconds=30, what="condition"):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")
