# SPDX-License-Identifier: Apache-2.0
"""R1: every form of taking more than was given ends, and the report names the limit. Nothing survives."""
import json
import pathlib
import textwrap
import time

import pytest

import leaks

LIMITS = """\
atoll: 1
extends: medium
resources: {{memory: {memory}, processes: 40, cpus: 1, disk: 256MiB, inodes: 5k, open_files: 64, output: {output}}}
time: {{wall: {wall}, cpu: {cpu}}}
"""


def limits(sandbox, memory="96MiB", output="16MiB", wall="20s", cpu="10s", more=""):
    return sandbox.policy(LIMITS.format(memory=memory, output=output, wall=wall, cpu=cpu) + more)


MEMORY = {
    "anonymous": "b = bytearray(400 << 20); print('got it')",
    "anonymous-in-children": """
        import os, time
        for _ in range(8):
            if os.fork() == 0:
                b = bytearray(60 << 20)
                time.sleep(6)
                os._exit(0)
        for _ in range(8): os.wait()
        os._exit(0)   # the kernel takes the children; the report tells
        """,
    "memfd": """
        import os
        fd = os.memfd_create("x")
        for _ in range(400): os.write(fd, bytes(1 << 20))
        print("got it")
        """,
    "dev-shm": """
        with open("/dev/shm/big", "wb") as f:
            for _ in range(400): f.write(bytes(1 << 20))
        print("got it")
        """,
    "tmpfs": """
        with open("/tmp/big", "wb") as f:
            for _ in range(400): f.write(bytes(1 << 20))
        print("got it")
        """,
    "shared-mapping": """
        import mmap
        m = mmap.mmap(-1, 400 << 20)
        for i in range(0, 400 << 20, 4096): m[i] = 1
        print("got it")
        """,
    "sysv": """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        for _ in range(40):
            i = libc.shmget(0, 10 << 20, 0o1600)
            a = libc.shmat(i, None, 0)
            if i < 0 or a in (None, 2**64 - 1): raise SystemExit(9)
            ctypes.memset(a, 1, 10 << 20)
        print("got it")
        """,
    "page-tables": """
        import mmap
        maps = []
        # One page in every 2 MiB: 4 KiB of data for 4 KiB of page table.
        m = mmap.mmap(-1, 120 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
        for i in range(0, 120 << 30, 2 << 20): m[i] = 1
        print("got it")
        """,
    "pipes": """
        import os, fcntl
        ends = []
        for _ in range(2000):
            r, w = os.pipe()
            fcntl.fcntl(w, 1031, 1 << 20)
            os.set_blocking(w, False)
            ends.append((r, w))
            try:
                while True: os.write(w, bytes(1 << 16))
            except BlockingIOError: pass
        print("got it")
        """,
    "sockets": """
        import socket
        pairs = []
        for _ in range(2000):
            a, b = socket.socketpair()
            a.setblocking(False); pairs.append((a, b))
            try:
                while True: a.send(bytes(1 << 16))
            except BlockingIOError: pass
        print("got it")
        """,
}


@pytest.mark.parametrize("form", MEMORY)
def test_memory(sandbox, form):
    script = textwrap.dedent(MEMORY[form])
    done = sandbox.run(["python3", "-c", script + "\nimport time; time.sleep(4); print('kept it')"],
            policy=limits(sandbox))
    assert "kept it" not in done.out, done
    if done.report["enforcement"]["limits"]["memory"] != "cgroup":
        # Supervised: what was taken at once is taken away soon.
        assert done.code != 0, done
        return
    assert "got it" not in done.out, done
    assert done.code != 0 or "memory" in json.dumps(done.report["limits_hit"]), done
    assert done.report["ended"] in ("memory", "exit", "signal", "disk"), done
    if done.report["ended"] == "memory":
        assert done.code == 137, done
    # An own exit means that the kernel refused a request; the peak stays at the limit in every case.
    assert done.report["usage"]["memory_peak"] <= 130 << 20, done


def test_memory_below_the_limit_is_granted(sandbox):
    """The control: what fits is given."""
    done = sandbox.run(["python3", "-c", "b = bytearray(32 << 20); print('got it')"], policy=limits(sandbox))
    assert done.code == 0 and "got it" in done.out, done


FORK_BOMB = """
import os, time
made = 0
for _ in range(500):
    try:
        if os.fork() == 0:
            time.sleep(4)
            os._exit(0)
        made += 1
    except BlockingIOError:
        break
print("made", made, flush=True)
"""


def test_processes(sandbox):
    outside = sandbox.run_outside(["python3", "-c", FORK_BOMB.replace("500", "100")])
    assert "made 100" in outside.out
    if not sandbox.identity.is_root:
        time.sleep(4.2)   # the control's own children are gone before leaks are looked for
    done = sandbox.run(["python3", "-c", FORK_BOMB], policy=limits(sandbox))
    made = int(done.out.split()[1])
    assert 5 < made < 45, done
    assert done.report["usage"]["processes_peak"] <= 45, done


def test_fork_bomb_of_bash(sandbox):
    """The classic. It ends with the wall clock at the latest, and the host stays usable."""
    started = time.monotonic()
    done = sandbox.run("b() { b | b & }; b; sleep 30", policy=limits(sandbox, wall="3s"), timeout=30)
    assert time.monotonic() - started < 15
    assert done.report["ended"] in ("time", "exit", "signal", "memory"), done
    assert not leaks.wait_for_none(sandbox)


def test_threads_count_as_processes(sandbox):
    script = ("import threading, time\nmade = 0\ntry:\n for _ in range(300):\n  "
            "threading.Thread(target=time.sleep, args=(2,), daemon=True).start(); made += 1\nexcept RuntimeError: "
                    "pass\nprint('made', made)")
    done = sandbox.run(["python3", "-c", script], policy=limits(sandbox))
    assert int(done.out.split()[1]) < 45, done


CPU = {
    "burn": "while True: pass",
    "children": "import os\nfor _ in range(3):\n  if os.fork() == 0:\n    while True: pass\nos.wait()",
    "short-children": "import os\nwhile True:\n  p = os.fork()\n  if p == 0:\n    for _ in range(10**6): pass\n   "
            " os._exit(0)\n  os.waitpid(p, 0)",
    "stop-and-continue": """
import os, signal, time
def burn():
    while True: pass
children = []
for _ in range(2):
    p = os.fork()
    if p == 0: burn()
    children.append(p)
while True:
    for p in children: os.kill(p, signal.SIGSTOP)
    time.sleep(0.005)
    for p in children: os.kill(p, signal.SIGCONT)
    time.sleep(0.05)
""",
    "orphans": "import os\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    while True: pass\n  "
            "os._exit(0)\nos.wait()\nimport time; time.sleep(60)",
}


@pytest.mark.parametrize("form", CPU)
def test_cpu_time(sandbox, form):
    started = time.monotonic()
    done = sandbox.run(["python3", "-c", CPU[form]], policy=limits(sandbox, cpu="1s", wall="15s"), timeout=30)
    assert done.code == 124 and done.report["ended"] == "time", done
    assert time.monotonic() - started < 12, "the wall clock ended it, not the CPU clock"
    assert done.report["usage"]["cpu_ms"] < 4000, done


ESCAPERS = {
    "ignores TERM": "trap '' TERM HUP INT; while :; do sleep 1; done",
    "stops itself": "kill -STOP $$; sleep 60",
    "daemon": "setsid sh -c 'trap \"\" TERM; sleep 60' >/dev/null 2>&1 & sleep 60",
    "nohup": "nohup sleep 60 >/dev/null 2>&1 & sleep 60",
}


@pytest.mark.parametrize("how", ESCAPERS)
def test_wall_time(sandbox, how):
    started = time.monotonic()
    done = sandbox.run(ESCAPERS[how], policy=limits(sandbox, wall="1s"), timeout=20)
    assert done.code == 124 and done.report["ended"] == "time", done
    assert time.monotonic() - started < 8


DAEMONS = """
import os, sys, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in (0, 1, 2): os.close(fd)
            try: os.prctl
            except AttributeError: pass
            time.sleep(120)
        os._exit(0)
    os.wait()
print("left 3", flush=True)
"""


def test_nothing_outlives_the_command(sandbox):
    """Double fork, setsid, closed descriptors: all end with the command, at once."""
    started = time.monotonic()
    done = sandbox.run(["python3", "-c", DAEMONS])
    assert done.code == 0 and "left 3" in done.out and time.monotonic() - started < 10, done
    assert not leaks.wait_for_none(sandbox)


def test_output(sandbox):
    done = sandbox.run(["sh", "-c", "yes 2>&1; yes >&2"], policy=limits(sandbox, output="1MiB"))
    assert done.report["ended"] == "output", done
    # What a pipe holds may come on top of the limit, never more.
    assert len(done.bytes) + len(done.error_bytes) < (1 << 20) + (192 << 10)


def test_output_to_a_reader_that_does_not_read(sandbox):
    """A blocked stdout does not stop the clocks."""
    started = time.monotonic()
    child = sandbox.popen(["yes"], policy=limits(sandbox, wall="2s", output="64MiB"))
    while child.poll() is None and time.monotonic() - started < 12:
        time.sleep(0.1)
    assert child.returncode == 124, child.returncode


def test_idle_time(sandbox):
    policy = limits(sandbox, more="")
    policy.write_text(policy.read_text().replace("time: {", "time: {idle: 1s, "))
    done = sandbox.run(["sleep", "15"], policy=policy)
    assert done.code == 124 and done.report["ended"] == "time", done


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "$HOME"])
def test_scratch_space(sandbox, place):
    """Private trees end at the disk budget (or the memory that holds them), never at the host's disk."""
    done = sandbox.run(f"dd if=/dev/zero of={place}/big bs=1M count=600 2>/dev/null && echo got it",
            policy=limits(sandbox, memory="64MiB"))
    assert "got it" not in done.out, done


def test_inodes(sandbox):
    script = ("import os\nmade = 0\ntry:\n for i in range(100000):\n  os.close(os.open(f'/tmp/f{i}', os.O_CREAT | "
            "os.O_WRONLY)); made += 1\nexcept OSError as e: print(e)\nprint('made', made)")
    done = sandbox.run(["python3", "-c", script], policy=limits(sandbox, memory="512MiB"))
    assert done.report["ended"] == "memory" or int(done.out.split()[-1]) < 20000, done


def test_open_files(sandbox):
    script = ("import os\nmade = 0\ntry:\n while made < 5000: os.open('/dev/null', os.O_RDONLY); made += 1\nexcept "
            "OSError: pass\nprint('made', made)")
    done = sandbox.run(["python3", "-c", script], policy=limits(sandbox))
    assert int(done.out.split()[-1]) < 70, done


def test_a_second_run_inherits_nothing(sandbox):
    """R3: limits, files, processes, names of the first run are gone in the second."""
    hostile = ("touch /tmp/left /dev/shm/left ~/left; ulimit -n 10; ulimit -t 7; nice -n 19 sleep 100 & ipcmk -M "
               "4096; umask 777; until ps -eo comm= | grep -qx sleep; do :; done; ")
    look = ("ls /tmp /dev/shm ~ | grep -c left; ulimit -n; ulimit -t; umask; ipcs -m | grep -c 4096; "
            "ps -eo comm= | grep -cx sleep")
    before = pathlib.Path("/proc/self/limits").read_text()
    # The control: who looks in the first run sees all of it.
    first = sandbox.run(hostile + look + "; wait", policy=limits(sandbox, wall="2s"))
    assert first.out.split()[-6:] == ["3", "10", "7", "0777", "1", "1"], first
    done = sandbox.run(look)
    words = done.out.split()
    assert len(words) == 6 and words[0] == "0" and words[4:] == ["0", "0"], done
    assert words[1] != "10" and words[2] != "7" and words[3] != "0777", done
    assert pathlib.Path("/proc/self/limits").read_text() == before
