# SPDX-License-Identifier: Apache-2.0
"""A running sandbox stands still for a snapshot: all of it, for a bounded time, and goes on as if nothing had been."""
import json
import os
import subprocess
import time

import pytest

import control
import leaks
from atoll import wait_until
from control import Control, Link

# Counts in a file of its own as fast as it can, through forks, threads and a vfork that never ends by itself.
COUNTERS = r"""
for name in one two; do
  ( n=0; while :; do n=$((n+1)); echo $n > count-$name; done ) &
done
( while :; do /bin/true; date +%s%N > count-fork; done ) &
python3 - <<'END' &
import threading, time
def count(name):
    n = 0
    while True:
        n += 1
        with open(f"count-{name}", "w") as out:
            out.write(str(n))
for name in ("thread-a", "thread-b"):
    threading.Thread(target=count, args=(name,)).start()
END
echo ready
exec sleep 1000
"""
NAMES = ["one", "two", "fork", "thread-a", "thread-b"]


def running(sandbox, script=COUNTERS):
    """A sandbox that writes in place, so that its files can be watched from outside."""
    child = sandbox.popen(["bash", "-c", script], trust="high")
    assert child.stdout.readline() == b"ready\n", child.stderr.read()
    return child, sandbox.sessions()[-1]


def counts(sandbox):
    return [(sandbox.project / f"count-{name}").read_bytes() for name in NAMES]


def stamps(sandbox):
    return [os.stat(sandbox.project / f"count-{name}").st_mtime_ns for name in NAMES]


def wait_for_counters(sandbox):
    wait_until(lambda: all((sandbox.project / f"count-{name}").exists() for name in NAMES), 20, "counters")


def freeze(client, name=b"test"):
    return client.ask(control.FREEZE, control.string(name))


def test_nothing_moves_while_frozen(sandbox):
    child, session = running(sandbox)
    wait_for_counters(sandbox)
    for _ in range(5):
        with Control(sandbox, session) as client:
            assert freeze(client)[0] == control.DONE
            before = stamps(sandbox), counts(sandbox)
            time.sleep(0.1)
            assert (stamps(sandbox), counts(sandbox)) == before
            assert client.ask(control.THAW) == (control.DONE, control.u32(0))
            wait_until(lambda: all(now != then for now, then in zip(stamps(sandbox), before[0])), 30, "all go on")
    def snapshots():
        records = [json.loads(line) for line in sandbox.audit_log(session).read_text().splitlines()]
        return [record for record in records if record["type"] == "stage.snapshot"]

    # Records are written together: the last may take a moment.
    wait_until(lambda: len(snapshots()) == 5, 30, "all are in the log")
    frozen = snapshots()
    assert frozen[0]["subject"] == "test" and frozen[0]["detail"]["frozen_us"] >= 100000
    assert child.poll() is None


def test_client_that_goes_away_thaws(sandbox):
    _, session = running(sandbox)
    wait_for_counters(sandbox)
    client = Control(sandbox, session)
    assert freeze(client, None)[0] == control.DONE
    before = stamps(sandbox)
    client.close()
    wait_until(lambda: all(now != then for now, then in zip(stamps(sandbox), before)), 30, "all go on")


def test_only_one_holds_it(sandbox):
    _, session = running(sandbox, "echo ready; exec sleep 1000")
    with Control(sandbox, session) as first, Control(sandbox, session) as second:
        assert freeze(first)[0] == control.DONE
        kind, rest = freeze(second)
        assert kind == control.ERROR and b"is frozen already" in rest
        assert first.ask(control.THAW) == (control.DONE, control.u32(0))
    with Control(sandbox, session) as third:
        assert freeze(third)[0] == control.DONE


def test_thaw_out_of_turn_is_cut_off(sandbox):
    child, session = running(sandbox, "echo ready; exec sleep 1000")
    with Control(sandbox, session) as client:
        assert client.ask(control.THAW) is None
    with Control(sandbox, session) as client:
        assert freeze(client, b"x" * 300) is None
    assert child.poll() is None


def test_stop_ends_a_freeze(sandbox):
    child, session = running(sandbox)
    with Control(sandbox, session) as client:
        assert freeze(client)[0] == control.DONE
        began = time.monotonic()
        assert sandbox.run_atoll("stop", "-t", "200ms", session).code == 0
        assert time.monotonic() - began < 5
    assert child.wait(timeout=5) != 0


@pytest.mark.may_leak("the box was killed: its guardian needs a moment")
def test_end_of_the_box_ends_a_freeze(sandbox):
    child, session = running(sandbox)
    with Control(sandbox, session) as client:
        assert freeze(client)[0] == control.DONE
        child.kill()
        child.wait(timeout=5)
        left = leaks.wait_for_none(sandbox, 10)
        assert not left


def test_command_waits_for_the_end_of_a_freeze(sandbox):
    _, session = running(sandbox, "echo ready; exec sleep 1000")
    with Control(sandbox, session) as holder:
        assert freeze(holder)[0] == control.DONE
        words = [sandbox.programs.atoll, "exec", session, "--", "/bin/echo", "x" * 60000]
        clients = [subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                    **sandbox.popen_keywords()) for _ in range(4)]
        gone = clients.pop()
        time.sleep(0.5)
        gone.kill()
        gone.wait()
        assert all(client.poll() is None for client in clients)
        with Link(sandbox, session) as other:
            assert other.status()["commands"] == 1
        assert holder.ask(control.THAW) == (control.DONE, control.u32(0))
        for client in clients:
            assert client.communicate(timeout=20)[0] == b"x" * 60000 + b"\n" and client.returncode == 0


def test_messages_end_a_freeze_before_the_box_hangs(sandbox):
    _, session = running(sandbox, "echo ready; exec sleep 1000")
    with Control(sandbox, session) as holder, Link(sandbox, session, events=1 << control.STARTED) as runner, \
            open(os.devnull, "r+") as null:
        loop = [b"/bin/bash", b"-c", b"trap : WINCH; while :; do sleep 0.05; done"]
        code, result = runner.request(control.RUN, *control.run_fields(loop), fds=[null.fileno()] * 3)
        assert code == 0, result
        # That of the first command may come late.
        while runner.until(control.STARTED)["command"] != result["command"]:
            pass
        assert freeze(holder)[0] == control.DONE
        for _ in range(1000):
            runner.request(control.KILL, control.u64(result["command"]), control.u64(28))
        assert holder.ask(control.THAW) == (control.DONE, control.u32(1))


def test_clocks_stand_still(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: high\ntime: {wall: 2s, idle: 1s}\n")
    child = sandbox.popen(["bash", "-c", "echo ready; exec sleep 1000"], policy=policy)
    assert child.stdout.readline() == b"ready\n", child.stderr.read()
    session = sandbox.sessions()[-1]
    with Control(sandbox, session) as client:
        assert freeze(client)[0] == control.DONE
        time.sleep(2.6)
        assert child.poll() is None
        assert client.ask(control.THAW) == (control.DONE, control.u32(0))
    assert child.wait(timeout=5) == 124


def test_stopped_process_stays_stopped(sandbox):
    script = ("sleep 1000 & kill -STOP $!; until grep -q 'T (stopped)' /proc/$!/status; do sleep 0.01; done; "
              "echo $! > stopped; echo ready; exec sleep 1000")
    _, session = running(sandbox, script)
    inner = (sandbox.project / "stopped").read_text().strip()
    with Control(sandbox, session) as client:
        assert freeze(client)[0] == control.DONE
        assert client.ask(control.THAW) == (control.DONE, control.u32(0))
    seen = sandbox.run_atoll("exec", session, "--", "cut", "-d ", "-f3", f"/proc/{inner}/stat")
    assert seen.out.strip() == "T", seen


VFORK = r"""
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	puts("ready");
	fflush(stdout);
	if (vfork() == 0)
		for (;;)
			usleep(1000);
	return 0;
}
"""


def test_vfork_in_flight_does_not_hinder(sandbox):
    """A parent in vfork can neither run nor stop until its child, which is stopped, goes on."""
    source = sandbox.write(sandbox.project / "v.c", VFORK)
    made = sandbox.run_outside(["gcc", "-w", "-o", sandbox.project / "v", source])
    assert made.code == 0, made
    _, session = running(sandbox, "exec ./v")
    time.sleep(0.1)
    with Control(sandbox, session) as client:
        kind, rest = freeze(client)
        assert kind == control.DONE, rest
        assert client.ask(control.THAW) == (control.DONE, control.u32(0))


WAKERS = r"""
import os, signal, time
for _ in range(6):
    if os.fork() == 0:
        while True:
            try:
                os.kill(-1, signal.SIGCONT)
            except OSError:
                pass
print("ready", flush=True)
time.sleep(1000)
"""


def test_processes_that_wake_each_other_are_stopped(sandbox):
    """SIGCONT to everybody, without pause, from several: none of them outlives the freeze for long."""
    sandbox.write(sandbox.project / "wakers.py", WAKERS)
    child, session = running(sandbox, "exec python3 wakers.py")
    for _ in range(3):
        with Control(sandbox, session) as client:
            kind, rest = freeze(client)
            assert kind == control.DONE, rest
            assert client.ask(control.THAW) == (control.DONE, control.u32(0))
    assert child.poll() is None


# A timer of its own sends SIGCONT, which ends a stop by a signal; the kernel sends it while nobody runs.
TIMERS = r"""
import ctypes, os, signal
class Event(ctypes.Structure):
    _fields_ = [("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int),
                ("rest", ctypes.c_char * 48)]
libc = ctypes.CDLL(None)
# timer_create(2), timer_settime(2).
def timer_new(number):
    timer = ctypes.c_int()
    assert libc.syscall(222, 1, ctypes.byref(Event(signal=number)), ctypes.byref(timer)) == 0
    return timer
def timer_set(timer, period_ns, first_ns):
    first = divmod(first_ns, 10**9)
    assert libc.syscall(223, timer, 0, (ctypes.c_long * 4)(0, period_ns, *first), None) == 0
def count(each=lambda: None):
    with open("count", "w") as file:
        for number in range(1, 1 << 60):
            os.pwrite(file.fileno(), b"%20d" % number, 0)
            each()
"""
WAKES_ITSELF = TIMERS + r"""
print("ready", flush=True)
signal.signal(signal.SIGCONT, lambda *_: None)
timer_set(timer_new(signal.SIGCONT), 5000000, 5000000)
count()
"""
# As a debugger does it. With an argument the tracer ends a second after it stood still, by SIGKILL of a timer of its
# own, and the one that it traced is sent SIGCONT by some then.
TRACED = TIMERS + r"""
import sys, time
def trace(request, pid):
    assert libc.ptrace(request, pid, None, None) == 0
child = os.fork()
if child == 0:
    timers = [timer_new(signal.SIGCONT) for _ in sys.argv[1:] * 20]
    def put_off():
        for number, timer in enumerate(timers):
            timer_set(timer, 0, 900000000 + number * 20000000)
    trace(0, 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    count(put_off)
assert os.WIFSTOPPED(os.waitpid(child, 0)[1])
trace(7, child)
print("ready", flush=True)
kill = timer_new(signal.SIGKILL) if sys.argv[1:] else None
while True:
    if kill is not None:
        timer_set(kill, 0, 10**9)
    if os.waitpid(child, os.WNOHANG | os.WUNTRACED)[0]:
        trace(7, child)
    time.sleep(0.02)
"""


def python_that_counts(sandbox, source, *arguments):
    sandbox.write(sandbox.project / "counts.py", source)
    child, session = running(sandbox, " ".join(["exec python3 counts.py", *arguments]))
    wait_for_count(sandbox)
    return child, session


def count(sandbox):
    return (sandbox.project / "count").read_text()


def wait_for_count(sandbox, but=""):
    wait_until(lambda: (sandbox.project / "count").exists() and count(sandbox) not in ("", but), 20, "the counter")


@pytest.mark.parametrize("source", [WAKES_ITSELF, TRACED], ids=["wakes itself", "traced"])
def test_it_stands_still_and_goes_on(sandbox, source):
    """
    Who sends itself SIGCONT every 5 ms does not go on, and the freeze begins all the same. What a debugger inside
    holds cannot be held by anybody else; its tracer can.
    """
    child, session = python_that_counts(sandbox, source)
    for _ in range(3):
        with Control(sandbox, session) as client:
            kind, rest = freeze(client)
            assert kind == control.DONE, rest
            before = count(sandbox)
            time.sleep(0.5)
            assert count(sandbox) == before
            assert client.ask(control.THAW) == (control.DONE, control.u32(0))
            wait_for_count(sandbox, before)
    assert child.poll() is None


def test_who_was_freed_by_the_end_of_its_tracer_is_noticed(sandbox):
    """It is let go inside, while all stand still: it stops again, and the end of the freeze says so."""
    _, session = python_that_counts(sandbox, TRACED, "ends")
    with Control(sandbox, session) as client:
        kind, rest = freeze(client)
        assert kind == control.DONE, rest
        if sandbox.identity.is_root:
            assert client.ask(control.THAW) == (control.DONE, control.u32(0))
            return
        before = count(sandbox)
        end = time.monotonic() + 5
        # Mostly it runs for some time; at best it was held again before it could.
        wait_until(lambda: count(sandbox) != before or time.monotonic() > end, 20)
        stopped = wait_for_same_count(sandbox)
        time.sleep(0.5)
        assert count(sandbox) == stopped
        assert client.ask(control.THAW) == (control.DONE, control.u32(1))


def wait_for_same_count(sandbox):
    def is_same():
        first = count(sandbox)
        time.sleep(0.2)
        return count(sandbox) == first
    wait_until(is_same, 20, "it stands still")
    return count(sandbox)


CONNECT = r"""
import os, socket, threading, time
server = socket.socket(socket.AF_UNIX)
server.bind("/tmp/full")
server.listen(0)
def connect():
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("/tmp/full")
        client.recv(1)
for _ in range(4):
    threading.Thread(target=connect).start()
time.sleep(0.3)
print("ready", flush=True)
while not os.path.exists("go"):
    time.sleep(0.05)
for _ in range(4):
    server.accept()[0].sendall(b"x")
open("all", "w").close()
time.sleep(1000)
"""


@pytest.mark.only("root")
def test_connects_that_wait_are_made_again(sandbox):
    """
    A caller whose connect waits for our answer can be killed, but not frozen: the call goes back and is made anew.
    (Where there is no freezer, as for this user, such a snapshot is refused.)
    """
    sandbox.write(sandbox.project / "connect.py", CONNECT)
    _, session = running(sandbox, "exec python3 connect.py")
    for _ in range(3):
        with Control(sandbox, session) as client:
            kind, rest = freeze(client)
            assert kind == control.DONE, rest
            assert client.ask(control.THAW) == (control.DONE, control.u32(0))
    sandbox.write(sandbox.project / "go")
    wait_until(lambda: (sandbox.project / "all").exists(), 30, "all connects")
