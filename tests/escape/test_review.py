# SPDX-License-Identifier: Apache-2.0
"""Neighbours of the published cases: holes that a review of atoll found, each by the symptom that it had."""
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import time

import pytest

from atoll import wait_until

DEGRADE = "degrade: [cgroup.memory, cgroup.pids, cgroup.cpu]\n"
LOADER = "/lib64/ld-linux-x86-64.so.2"

MEMFD = """
import os, sys
fd = os.memfd_create("x", int(sys.argv[1]))
program = open("/bin/echo", "rb").read()
while program:
    program = program[os.write(fd, program):]
os.execve(fd, ["echo", "it ran"], {})
"""


def low_policy(sandbox):
    return sandbox.policy("atoll: 1\nextends: low\n" + ("" if sandbox.identity.is_root else DEGRADE))


@pytest.mark.parametrize("flags", [0, 0x10, 0x3], ids=["old", "MFD_EXEC", "sealing"])
def test_no_new_program_in_a_memory_file(sandbox, flags):
    """X1: a file without a name is on no mount that could be noexec."""
    sandbox.write(sandbox.project / "memfd.py", MEMFD)
    attack = ["/usr/bin/python3", "memfd.py", str(flags)]
    control = sandbox.run_outside(attack)
    if flags & 0x10 and control.code:
        pytest.skip("MFD_EXEC needs Linux 6.3")
    assert control.out == "it ran\n", control
    assert sandbox.run(attack).out == "it ran\n"
    done = sandbox.run(attack, policy=low_policy(sandbox))
    assert done.code != 0 and "it ran" not in done.out, done
    assert done.report["enforcement"]["seccomp"].startswith("strict-noexec"), done


@pytest.mark.skipif(not os.path.exists(LOADER), reason=f"{LOADER} is not there")
@pytest.mark.parametrize("place", ["/dev/shm", "/tmp", "."])
def test_no_new_program_by_the_loader(sandbox, place):
    """X1 X3: ld.so maps a file that may not be executed by name."""
    new = f"{place}/new-{os.getpid()}"
    attack = f"cp /bin/echo {new}; {LOADER} {new} it ran; r=$?; rm {new}; exit $r"
    assert sandbox.run_outside(["sh", "-c", attack]).out == "it ran\n"
    done = sandbox.run(attack, policy=low_policy(sandbox))
    assert done.code != 0 and "it ran" not in done.out, done


SET_GROUP_ID = """
import os
def attempt(name, call):
    try:
        call()
        print(name, "done")
    except OSError as error:
        print(name, error.errno)
os.umask(0)
open("by-chmod", "w").close()
attempt("chmod", lambda: os.chmod("by-chmod", 0o2755))
fd = os.open("by-chmod", os.O_RDONLY)
attempt("fchmod", lambda: os.fchmod(fd, 0o2755))
attempt("open", lambda: os.open("by-open", os.O_CREAT | os.O_WRONLY, 0o2755))
attempt("mknod", lambda: os.mknod("by-mknod", 0o102755))
"""


def test_no_set_group_id_program_is_left_behind(sandbox):
    """A set-group-ID file of root's group, left in a project of root, would be anybody's way to that group."""
    sandbox.write(sandbox.project / "attack.py", SET_GROUP_ID)
    control = sandbox.run_outside(["/usr/bin/python3", "attack.py"])
    assert control.out.count("done") == 4, control
    for name in ("by-chmod", "by-open", "by-mknod"):
        assert (sandbox.project / name).stat().st_mode & stat.S_ISGID
        (sandbox.project / name).unlink()
    done = sandbox.run(["/usr/bin/python3", "attack.py"])
    assert "done" not in done.out, done
    for path in sandbox.project.iterdir():
        assert not path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID), path


FILE_CAPABILITIES = """
import ctypes, os, shutil, struct
libc = ctypes.CDLL(None, use_errno=True)
uid, gid = os.getuid(), os.getgid()
if uid and libc.unshare(0x10000000) == 0:
    for name, line in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)
with open("/proc/self/status") as file:
    print(next(line for line in file if line.startswith("CapEff:")).split()[1] != "0" * 16)
shutil.copyfile("/bin/echo", "trap")
os.setxattr("trap", "security.capability", struct.pack("<IIIII", 0x02000001, 1 << 7, 0, 0, 0))
"""


@pytest.mark.parametrize("level", ["high", "full"])
def test_no_capable_program_is_left_behind(sandbox, level):
    """In a user namespace inside, the kernel lets files have capabilities, and the idmap made them root's own."""
    sandbox.write(sandbox.project / "attack.py", FILE_CAPABILITIES)
    control = sandbox.run_outside(["/usr/bin/python3", "attack.py"])
    assert control.code == 0 and "security.capability" in os.listxattr(sandbox.project / "trap"), control
    (sandbox.project / "trap").unlink()
    done = sandbox.run(["/usr/bin/python3", "attack.py"], trust=level)
    assert done.out == "True\n" and done.code != 0, done
    assert os.listxattr(sandbox.project / "trap") == []


def test_directories_of_a_shared_project_stay_shared(sandbox):
    """What set-group-ID is good for goes on working: new directories inherit it."""
    sandbox.project.chmod(0o2775)
    done = sandbox.run("mkdir -p a/b && cp -r a c && touch a/b/f && git init -q r && stat -c %a a a/b c")
    assert done.code == 0, done
    assert all(mode.startswith("2") for mode in done.out.split()), done


HIDDEN_ARGUMENTS = """
import ctypes, mmap, os, struct
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(447, 0)
if fd < 0:
    raise SystemExit("memfd_secret: " + os.strerror(ctypes.get_errno()))
os.ftruncate(fd, 4096)
memory = mmap.mmap(fd, 4096)
base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
memory[0:10] = b"/bin/echo\\0"
memory[16:23] = b"hidden\\0"
memory[64:88] = struct.pack("QQQ", base, base + 16, 0)
libc.execve(ctypes.c_void_p(base), ctypes.c_void_p(base + 64), None)
"""


def test_no_exec_with_arguments_that_cannot_be_read(sandbox):
    """R7: the log said that "" was executed, since the pages of memfd_secret are closed to the supervisor."""
    sandbox.write(sandbox.project / "attack.py", HIDDEN_ARGUMENTS)
    control = sandbox.run_outside(["/usr/bin/python3", "attack.py"])
    if "memfd_secret" in control.err:
        pytest.skip("this kernel has no memfd_secret")
    assert control.out == "hidden\n", control
    done = sandbox.run(["/usr/bin/python3", "attack.py"])
    assert "hidden" not in done.out, done
    records = [json.loads(line) for line in sandbox.audit_log(done.session).read_text().splitlines()]
    assert all(record["subject"] for record in records if record["type"] == "exec.start"), records


CRASH = """
import os, resource, signal, sys
if len(sys.argv) > 1:
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (int(sys.argv[1]), int(sys.argv[1])))
    except (ValueError, OSError):
        pass
print(*resource.getrlimit(resource.RLIMIT_CORE), flush=True)
os.kill(os.getpid(), signal.SIGSEGV)
"""
PATTERN = pathlib.Path("/proc/sys/kernel/core_pattern")
FIRST_PID_NAMESPACE = "pid:[4026531836]"     # PROC_PID_INIT_INO


@pytest.mark.only("root")
@pytest.mark.skipif(os.readlink("/proc/self/ns/pid") != FIRST_PID_NAMESPACE,
                    reason="the kernel runs its crash handlers where this machine began, and the tests are elsewhere")
def test_a_crash_inside_starts_no_program_outside(sandbox):
    """A core_pattern with a pipe runs a program as the host's root, also with a core limit of 0."""
    seen = sandbox.base / "seen"
    handler = sandbox.write(sandbox.base / "handler", f"#!/bin/sh\ncat >/dev/null\necho $1 $2 >>{seen}\n", 0o755)
    sandbox.write(sandbox.project / "crash.py", CRASH)
    attack = ["/usr/bin/python3", "crash.py"]
    before = PATTERN.read_text()
    try:
        PATTERN.write_text(f"|{handler} %P %e")
        control = sandbox.run_outside([*attack, "0"])
        wait_until(seen.exists, what="the handler outside")
        assert control.code == -signal.SIGSEGV, control
        wait_until(lambda: seen.read_text().count("\n"), what="its record")
        seen.unlink()
        for words in ([], ["0"], ["1"]):
            done = sandbox.run([*attack, *words])
            assert done.code == 128 + signal.SIGSEGV and done.out == "1 1\n", done
        time.sleep(0.5)
        assert not seen.exists(), seen.read_text()
    finally:
        PATTERN.write_text(before)


WATCHES = """
import ctypes, errno, sys, time
libc = ctypes.CDLL(None, use_errno=True)
count = 0
while count < 100000 and libc.inotify_init() >= 0:
    count += 1
print(count, ctypes.get_errno() == errno.EMFILE, flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.only("user")
def test_watches_of_the_user_cannot_be_used_up(sandbox):
    """The sandbox counts as its user: without a limit of its own, nothing outside could watch files any more."""
    sandbox.write(sandbox.project / "watches.py", WATCHES)
    hog = sandbox.popen(["/usr/bin/python3", "watches.py", "20"])
    assert hog.stdout.readline().split()[1] == b"True"
    after = sandbox.run_outside(["/usr/bin/python3", "watches.py", "0"])
    assert int(after.out.split()[0]) > 10, after


LINGER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int client;
static volatile int go;
static long delay_ns;

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *closer(void *unused)
{
	long start;

	while (!go)
		;
	for (start = now_ns(); now_ns() - start < delay_ns;)
		;
	close(client);
	return unused;
}

static void attempt(struct sockaddr_in *address, int i)
{
	static char bytes[1 << 16];
	struct linger linger = { 1, 30000 };
	pthread_t thread;

	client = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(client, (void *)address, sizeof *address))
		_exit(1);
	fcntl(client, F_SETFL, O_NONBLOCK);
	while (write(client, bytes, sizeof bytes) > 0)
		;
	setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	delay_ns = i * 977 % 150000;
	pthread_create(&thread, NULL, closer, NULL);
	usleep(200);
	go = 1;
	listen(client, 1);
	_exit(0);
}

int main(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	int server = socket(AF_INET, SOCK_STREAM, 0);
	long end = now_ns() + 6000000000L;

	bind(server, (void *)&address, size);
	listen(server, 1000);
	fcntl(server, F_SETFL, O_NONBLOCK); /* an attempt may be killed before it connects */
	getsockname(server, (void *)&address, &size);
	for (int i = 0; now_ns() < end; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			close(server);
			attempt(&address, i);
		}
		usleep(8000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(accept(server, NULL, NULL));
	}
	puts("tried");
	return 0;
}
"""


@pytest.mark.needs("gcc")
def test_the_supervisor_does_not_wait_for_a_lingering_socket(sandbox):
    """A socket that the caller closes while its listen() is looked at must not hold the clocks and `atoll stop` up."""
    source = sandbox.write(sandbox.project / "linger.c", LINGER)
    subprocess.run(["gcc", "-O1", "-pthread", "-o", sandbox.project / "linger", source], check=True)
    sandbox.own(sandbox.project / "linger")
    done = sandbox.run(["./linger"], timeout=40)
    assert done.out == "tried\n", done


def test_the_report_follows_no_link_from_inside(sandbox):
    """R9: the directory of the report was changed for a link while the sandbox ran."""
    target = sandbox.make_directory(sandbox.outside / "target")
    report = sandbox.make_directory(sandbox.project / "out") / "report.json"
    swap = f"mv out kept && ln -s {target} out"
    assert sandbox.run_outside(["sh", "-c", f"{swap} && touch out/x && rm out out/x -f && mv kept out"]).code == 0
    for name in target.iterdir():
        name.unlink()
    child = sandbox.popen(["sh", "-c", swap], report=report, trust="high")
    assert child.wait(30) == 0
    assert not list(target.iterdir())
    assert json.loads((sandbox.project / "kept" / "report.json").read_text())["exit"] == 0
    # The link that is there from the last run.
    child = sandbox.popen(["touch", "it-ran"], report=report, trust="high")
    assert child.wait(30) == 125 and b"leads out of" in child.stderr.read()
    assert not list(target.iterdir()) and not (sandbox.project / "it-ran").exists()


def test_a_report_goes_through_links_of_the_user(sandbox):
    """Outside of the project links are the user's own."""
    kept = sandbox.make_directory(sandbox.outside / "kept")
    link = sandbox.outside / "link"
    link.symlink_to(kept)
    sandbox.own(link)
    child = sandbox.popen(["true"], report=link / "report.json")
    assert child.wait(30) == 0 and (kept / "report.json").exists()


def test_programs_that_the_sandbox_could_replace_are_no_boundary(sandbox, programs):
    """F30: atoll in the project that it runs in. The next run would be the agent's own atoll."""
    place = sandbox.make_directory(sandbox.project / "bin")
    for name in ("atoll", "atoll-egress", "atoll-init", "atoll-policy"):
        sandbox.copy(programs.program(name), place / name)
    shutil.copytree(programs.program("policies"), place / "policies")
    done = sandbox.run_outside([place / "atoll", "run", "-t", "high", "--", "echo", "ran"])
    assert done.code == 125 and "could replace" in done.err and "make install" in done.err and not done.out, done
    # Staged it is only a change that waits to be looked at, and elsewhere there is nothing to say.
    staged = sandbox.run_outside([place / "atoll", "run", "-q", "-t", "medium", "--", "true"])
    assert staged.code == 0 and "replace" not in staged.err, staged
    assert "replace" not in sandbox.run(["true"], trust="high").err


def test_no_policy_is_planted_for_the_next_run(sandbox):
    """F2 F30: the directory of the user's policies did not exist, so nothing masked it in a written home."""
    config = sandbox.home / ".config" / "atoll"
    attack = ("mkdir -p ~/.config/atoll ~/.local/state/atoll/policy; cd ~/.config && mv atoll old; mv ~/.config ~/old; "
              "echo 'extends: full' >~/.config/atoll/policy.yaml; touch ~/.local/state/atoll/policy/x; "
              "ls -d ~/old ~/.config/old")
    env = {"XDG_CONFIG_HOME": None}
    assert not config.exists()
    control = "mkdir -p ~/.config/atoll && touch ~/.config/atoll/policy.yaml"
    sandbox.run_outside(["sh", "-c", control], env=env, check=True)
    sandbox.run_outside(["rm", "-r", sandbox.home / ".config"], check=True)
    done = sandbox.run(attack, trust="full", env=env)
    assert done.out == "", done
    assert list(config.iterdir()) == []
    assert not (sandbox.home / ".local/state/atoll/policy").exists()


def test_a_flood_of_refusals_does_not_fill_the_disk(sandbox):
    """R8: the log is written outside, where no limit of the sandbox held it."""
    policy = sandbox.policy("atoll: 1\nextends: medium\nresources: {disk: 4MiB}\ntime: {wall: 50s}\n")
    flood = "import ctypes\nlibc = ctypes.CDLL(None)\nwhile True:\n    libc.mount(b'a', b'b', b'c', 0, None)\n"
    done = sandbox.run(["/usr/bin/python3", "-c", flood], policy=policy)
    assert done.code == 137 and done.report["ended"] == "disk", done
    assert done.report["limits_hit"] == ["resources.disk"], done
    assert (4 << 20) < sandbox.audit_log(done.session).stat().st_size < (6 << 20)


@pytest.mark.parametrize("name", [".env", ".git/config"])
def test_a_file_that_the_host_replaces_stays_covered(sandbox, name):
    """F3: an editor outside renames a new file over the one that is masked or read-only inside."""
    path = sandbox.write(sandbox.project / name, "old\n")
    attack = f"echo ready; read go; cat .env; echo evil >>{name}"
    child = sandbox.popen(["sh", "-c", attack], stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    sandbox.write(path.with_name("new"), "new\n").rename(path)
    out, _ = child.communicate(b"go\n", timeout=20)
    assert b"new" not in out and path.read_text() == "new\n", out
