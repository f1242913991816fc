# SPDX-License-Identifier: Apache-2.0
"""What a program could do to a supervisor that asks people for it: memory that changes under the question, places that
are not what they are called, a supervisor that dies or cannot write while somebody waits. Each runs first where nothing
is in its way."""
import json
import os
import signal
import socket
import subprocess

import pytest

from atoll import wait_until
from loop import Loop
from person import ONCE, Person

PYTHON = "/usr/bin/python3"
MEDIATED = "atoll: 1\nextends: medium\naudit: {files: all}\n"
ASKED = "atoll: 1\nextends: medium\nfiles: {ask: [data]}\nexec: {ask: [/usr/bin/id]}\nask: {timeout: 60s}\n"

# Where a path leads that is not what it is called: the same answers with and without a supervisor.
PLACES = r"""
import errno, os
def say(name, what):
    try: print(name, what())
    except OSError as error: print(name, errno.errorcode[error.errno])
def first(path): return lambda: open(path).read(9)
os.makedirs("gone/below"); open("here", "w").write("here"); fd = os.open(".", os.O_PATH)
top = os.getcwd()
for path in ("/proc/self/cwd/here", "/proc/self/root/etc/os-release", f"/proc/self/fd/{fd}/here",
             "/proc/self/root/../../etc/os-release", "/proc/thread-self/cwd/here", "/proc/self/cwd/../../../../../here",
             f"/proc/self/root/proc/self/fd/{fd}/here", "/proc/self/task/../cwd/here", "/proc/1/cwd/here",
             "/proc/self/fd/999/here", "/proc/self/exe/here"):
    say(path.replace(top, "TOP"), first(path))
os.chdir("gone/below"); os.rmdir("../../gone/below")
say("deleted", lambda: os.open("new", os.O_CREAT | os.O_WRONLY))
say("deleted .", lambda: os.path.isdir("/proc/self/cwd") and os.close(os.open(".", os.O_RDONLY)))
say("deleted ..", first("../here")); say("deleted mkdir", lambda: os.mkdir("x"))
say("deleted /", first("/etc/os-release"))
say("deleted rename", lambda: os.rename("../here", "there")); say("deleted chmod", lambda: os.chmod("x", 0o600))
os.chdir(top)
say("chroot", lambda: os.chroot("."))
for size in (4095, 4096, 5000):
    path = "/" * (size - 4) + "here"
    say(size, lambda: open("." + path[1:] if size < 4096 else path).read(4))
deep = "/".join(["d" * 200] * 19)
os.makedirs(deep); open(deep + "/leaf", "w").write("leaf"); say("deep", first(deep + "/leaf"))
say("too deep", first(os.path.join(top, deep, "e" * 255, "f" * 255)))
"""


def test_places_that_are_not_what_they_are_called(sandbox):
    said = {}
    for depth in ("off", "all"):
        policy = sandbox.policy(MEDIATED.replace("all", depth), f"{depth}.yaml")
        script = f"import os; os.mkdir('/tmp/here'); os.chdir('/tmp/here')\n{PLACES}"
        done = sandbox.run([PYTHON, "-c", script], policy=policy)
        assert done.code == 0, done
        said[depth] = done.out.splitlines()
    assert said["all"] == said["off"]
    assert "/proc/self/cwd/here here" in said["all"] and "deleted .. here" not in said["all"], said
    assert any(line.startswith("deleted ENOENT") for line in said["all"]) and "deep leaf" in said["all"], said


# Two threads: one calls, the other changes what its pointers show. What comes of it is one of both, judged as that.
FLIP = r"""
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
allowed, secret = b"/tmp/f/allowed\0", sys.argv[1].encode() + b"\0"
os.makedirs("/tmp/f/d", exist_ok=True)
size = max(len(allowed), len(secret))
path = ctypes.create_string_buffer(size + 1)
how = (ctypes.c_uint64 * 3)(0, 0, 0)
running = True
def flip():
    while running:
        ctypes.memmove(path, allowed, len(allowed)); how[0] = os.O_RDONLY
        ctypes.memmove(path, secret, len(secret)); how[0] = os.O_RDWR
threading.Thread(target=flip, daemon=True).start()
sys.setswitchinterval(1e-6)
got, tries, until = set(), 0, time.monotonic() + 3
while time.monotonic() < until:
    tries += 1
    open("/tmp/f/allowed", "w").write("allowed")
    fd = libc.syscall(437, -100, path, how, 24)                       # openat2
    if fd >= 0:
        got.add(os.pread(fd, 7, 0)); os.close(fd)
    open("/tmp/f/x", "w").write("moved")
    if libc.syscall(82, b"/tmp/f/x\0", path) == 0: got.add(b"renamed")  # rename, by its second pointer
    libc.syscall(280, -100, path, ctypes.c_void_p(8), 0)                # utimensat from where nothing is
    if libc.syscall(437, -100, ctypes.c_void_p(8), how, 24) >= 0: got.add(b"unmapped")
    if libc.syscall(437, -100, path, ctypes.c_void_p(8), 24) >= 0: got.add(b"unmapped")
running = False
print(tries, sorted(word.decode() for word in got))
"""


def test_two_threads_and_every_pointer(sandbox):
    """The secret is denied by a rule that only the supervisor knows; nothing that flips gets it, or writes it."""
    secret = sandbox.write(sandbox.project / "data/secret", "SECRET\n")
    control = sandbox.run_outside([PYTHON, "-c", FLIP.replace("/tmp/f", str(sandbox.base / "f")), str(secret)])
    assert "SECRET" in control.out or "renamed" in control.out, control
    sandbox.write(secret, "SECRET\n")
    policy = sandbox.policy(ASKED)
    done = sandbox.run([PYTHON, "-c", FLIP, str(secret)], policy=policy)
    # Both were met: what is allowed happened, and what is asked about was refused.
    assert done.code == 0 and ("allowed" in done.out or "renamed" in done.out) and done.report["denials"], done
    assert "SECRET" not in done.out and "unmapped" not in done.out, done
    assert secret.read_text() == "SECRET\n" and "data/secret" not in sandbox.run_atoll("diff").out


# A datagram whose header and address change, or are not there.
MESSAGE = r"""
import ctypes, errno, os, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
class Vector(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
class Header(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_size", ctypes.c_uint32), ("vector", ctypes.POINTER(Vector)),
                ("count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_size", ctypes.c_size_t),
                ("flags", ctypes.c_int)]
def address(host, port): return (b"\x02\x00" + port.to_bytes(2, "big") + socket.inet_aton(host)).ljust(16, b"\0")
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
near, far = address("127.0.0.1", int(sys.argv[1])), address(sys.argv[2], int(sys.argv[1]))
name = ctypes.create_string_buffer(16); data = ctypes.create_string_buffer(b"out")
header = Header(ctypes.addressof(name), 16, ctypes.pointer(Vector(ctypes.addressof(data), 3)), 1, None, 0, 0)
running, seen, until = True, set(), time.monotonic() + 2
def flip():
    while running:
        ctypes.memmove(name, near, 16); header.name_size = 16; header.name = ctypes.addressof(name)
        ctypes.memmove(name, far, 16); header.name = 8; header.name_size = 2**31
threading.Thread(target=flip, daemon=True).start()
sys.setswitchinterval(1e-6)
while time.monotonic() < until:
    for r in (libc.sendmsg(s.fileno(), ctypes.byref(header), 0), libc.sendto(s.fileno(), data, 3, 0, name, 16)):
        seen.add("sent" if r >= 0 else errno.errorcode[ctypes.get_errno()])
    r = libc.connect(s.fileno(), ctypes.c_void_p(8), 16); seen.add("unmapped" if r >= 0 else "EFAULT")
running = False
print(sorted(seen))
"""


def test_messages_whose_address_changes_or_is_not_there(sandbox):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
        heard.bind(("127.0.0.1", 0))
        heard.settimeout(0.2)
        port = str(heard.getsockname()[1])
        control = sandbox.run_outside([PYTHON, "-c", MESSAGE, port, "127.0.0.1"])
        assert "sent" in control.out and heard.recv(10) == b"out", control
        while True:
            try:
                heard.recv(10)
            except TimeoutError:
                break
        done = sandbox.run([PYTHON, "-c", MESSAGE, port, "127.0.0.1"])
        assert done.code == 0 and "unmapped" not in done.out, done
        with pytest.raises(TimeoutError):
            heard.recv(10)


class Session:
    def __init__(self, sandbox, policy=ASKED, state=None):
        self.sandbox = sandbox
        sandbox.write(sandbox.project / "data/one", "ONE\n")
        self.env = {"XDG_STATE_HOME": str(state)} if state else {}
        done = sandbox.run_outside(sandbox.command_line([], policy=sandbox.policy(policy), options=["-d"]),
                                   cwd=sandbox.project, env=self.env)
        assert done.code == 0, done
        self.id = done.out.strip()

    def popen(self, script):
        words = [str(self.sandbox.programs.atoll), "exec", self.id, "--", "sh", "-c", script]
        child = subprocess.Popen(words, stdout=-1, stderr=-1, stdin=-3, start_new_session=True,
                                 **self.sandbox.popen_keywords(env=self.env))
        self.sandbox.children.append(child)
        return child

    def supervisor(self):
        listed = json.loads(self.sandbox.run_atoll("ps", "--json", env=self.env).out)
        return next((entry["pid"] for entry in listed if entry["session"] == self.id), None)


@pytest.mark.parametrize("script, subject", [("cat data/one; echo went on", "/data/one"),
                                             ("id -u; echo went on", "/usr/bin/id"),
                                             ("/run/atoll/bin/atoll-request file.read /srv; echo went on", "/srv")])
def test_the_supervisor_is_killed_while_a_question_waits(sandbox, script, subject):
    session = Session(sandbox)
    with Person(sandbox, session.id) as person:
        waiting = session.popen(script)
        wait_until(lambda: [q for q in person.seen.values() if q["subject"].endswith(subject)], 30, "the question")
        os.kill(session.supervisor(), signal.SIGKILL)
        out, _ = waiting.communicate(timeout=30)
    # Nothing was let through, and nothing lives on.
    assert b"ONE" not in out and b"went on" not in out, out
    wait_until(lambda: session.supervisor() is None, 30, "the end of the session")


@pytest.mark.only("root")
def test_the_disk_is_full_when_the_answer_comes(sandbox):
    """A small file system: what the log cannot have nobody was allowed, and the sandbox ends with it."""
    count = 40
    with Loop("ext4", sandbox.base / "small", sandbox.identity) as small:
        for number in range(count):
            sandbox.write(sandbox.project / f"data/{number}", "READ\n")
        session = Session(sandbox, state=small)
        waiting = session.popen(f"n=0; while [ $n -lt {count} ]; do cat data/$n & n=$((n + 1)); done; wait; echo end")
        log = small / "atoll" / "sessions" / session.id / "audit.jsonl"
        with Person(sandbox, session.id) as person:
            wait_until(lambda: len(person.seen) == count, 20, "the questions")
            # The control: while there is room, an answer counts.
            questions = list(person.seen.values())
            assert person.say(questions[0], True, ONCE) is not None
            wait_until(lambda: '"ask.answer"' in log.read_text(), 30)
            with open(small / "ballast", "wb", buffering=0) as ballast:
                for size in (65536, 1):
                    with pytest.raises(OSError):
                        while True:
                            ballast.write(b"x" * size)
            # Answers fill what is left of the last block, until one finds no room.
            for question in questions[1:]:
                try:
                    person.say(question, True, ONCE)
                except (OSError, AssertionError, TypeError):
                    break
            out, _ = waiting.communicate(timeout=30)
        lines = log.read_text().split("\n")[:-1]
        allowed = [line for line in lines if '"ask.answer"' in line and '"allow"' in line]
        assert 0 < out.count(b"READ") <= len(allowed) < count and b"end" not in out, (out, len(allowed))
        wait_until(lambda: session.supervisor() is None, 30, "the end of the session")
