# SPDX-License-Identifier: Apache-2.0
"""What comes in with the start: environment, descriptors, arguments; and what is left outside to be seen."""
import os
import pathlib
import signal
import socket

import pytest

from atoll import wait_until
from outside import SECRET_ENVIRONMENT


def test_only_listed_variables_come_in(sandbox):
    """I14, X6."""
    env = {**SECRET_ENVIRONMENT, "LD_PRELOAD": None, "LD_AUDIT": None, "LD_LIBRARY_PATH": None,
            "HARMLESS_UNKNOWN": "planted"}
    assert "planted" in sandbox.run_outside(["env"], env=env).out
    for level in ("none", "low", "medium", "high"):
        policy = sandbox.policy(f"atoll: 1\nextends: {level}\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu]\n")
        done = sandbox.run(["env", "-0"], policy=policy, env=env)
        names = {line.split("=")[0] for line in done.out.split("\0") if line}
        assert done.code == 0, done
        assert "planted" not in done.out, (level, done)
        assert {"PATH", "HOME", "ATOLL_SESSION"} <= names, (level, names)


def test_a_listed_variable_comes_in(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: medium\nenv: {pass: [GITHUB_TOKEN, 'MY_*'], set: {CI: \"1\"}}\n")
    done = sandbox.run(["env"], policy=policy, env={"GITHUB_TOKEN": "g", "MY_A": "a", "MYB": "b"})
    assert "GITHUB_TOKEN=g" in done.out and "MY_A=a" in done.out and "CI=1" in done.out and "MYB" not in done.out


def test_hostile_variables_do_not_crash_the_start(sandbox):
    """Names without =, huge values, bytes that are no UTF-8."""
    env = {"BIG": "x" * 100000, "PATH": os.environ["PATH"], "LANG": "C.UTF-8\udcff"}
    assert sandbox.run(["true"], env=env).code == 0


def test_inherited_descriptors_are_closed(sandbox):
    """I4: files, directories, sockets, pipes; also with 0, 1, 2 closed."""
    held = [os.open("/etc/shadow" if os.geteuid() == 0 else "/etc/passwd", os.O_RDONLY), os.open("/", os.O_RDONLY),
            socket.socket(socket.AF_UNIX).detach(), *os.pipe()]
    script = ["python3", "-c",
            "import os\nfor fd in range(3, 300):\n  try: os.fstat(fd); print(fd)\n  except OSError: pass"]
    try:
        outside = sandbox.run_outside(script, pass_fds=held)
        assert all(str(fd) in outside.out.split() for fd in held)
        done = sandbox.run(script, pass_fds=held)
    finally:
        for fd in held:
            os.close(fd)
    assert done.code == 0 and not done.out, done


def test_closed_standard_descriptors(sandbox):
    """Opens must not land on 0, 1, 2: what is printed goes nowhere, the command's status comes back."""
    words = " ".join(f"'{word}'" for word in sandbox.command_line(["sh", "-c", "echo out; echo err >&2; exit 3"]))
    for closing in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        assert sandbox.run_outside(["bash", "-c", f"{words} {closing}"]).code == 3, closing


@pytest.mark.parametrize("detach", [False, True])
def test_no_secret_on_a_command_line(sandbox, detach):
    """F20: other users read /proc/PID/cmdline of every process."""
    policy = sandbox.policy("atoll: 1\nextends: medium\nenv: {pass: [MY_TOKEN], set: {MY_OTHER: planted-two}}\n")
    length = f"60.{os.getpid()}{sandbox.base.name[1:]}"
    env = {"MY_TOKEN": "planted-one"}
    child = sandbox.popen(["sleep", length], policy=policy, env=env, options=["-d"] if detach else [])
    try:
        # The command itself, not the line of who is asked to run it.
        pid = wait_until(lambda: running(["sleep", length]), what="the command runs")
        # The control: it has both, as anything inside that is started with them has.
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        assert b"planted-one" in environment and b"planted-two" in environment
        seen = b"".join(command for _, command in commands())
        assert length.encode() in seen and b"planted-one" not in seen and b"planted-two" not in seen
    finally:
        if detach:
            child.wait()
            sandbox.run_atoll("stop", sandbox.sessions()[-1])
        else:
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(timeout=10)


def commands():
    """(pid, command line) of every process but this one."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                found.append((int(entry.name), pathlib.Path(f"/proc/{entry.name}/cmdline").read_bytes()))
            except OSError:
                pass
    return found


def running(words):
    """The pid of the process with exactly these words; None."""
    wanted = b"".join(word.encode() + b"\0" for word in words)
    return next((pid for pid, command in commands() if command == wanted), None)


def test_umask_and_working_directory_are_the_callers(sandbox):
    sub = sandbox.make_directory(sandbox.project / "deep" / "er")
    done = sandbox.run("pwd; umask", cwd=sub)
    assert done.out.split() == [str(sub), "0022"] or done.out.split()[0] == str(sub), done


def test_the_inside_sees_itself_alone(sandbox):
    """The inside knows its own hostname and processes only."""
    script = ("uname -n; cat /proc/sys/kernel/hostname; python3 -c 'import socket; print(socket.gethostname())'; "
              "ls /proc | grep -c '^[0-9]'")
    control = sandbox.run_outside(["sh", "-c", script]).out.split()
    assert control[:3] == [socket.gethostname()] * 3 and int(control[3]) >= 8, control
    done = sandbox.run(script)
    words = done.out.split()
    assert len(words) == 4 and socket.gethostname() not in words, done
    assert int(words[3]) < 8, done
