# SPDX-License-Identifier: Apache-2.0
"""R5: whoever of us dies at whatever moment, nothing of the sandbox survives; and signals stay inside."""
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

import leaks
from atoll import wait_until

ROUNDS = int(os.environ.get("ATOLL_TEST_KILL_ROUNDS", "12"))


def ours(sandbox, name):
    """pids of the programs of this session's copy with this name."""
    path = str(sandbox.programs.program(name))
    return [pid for pid, exe in leaks.processes(sandbox.programs, ()) if exe == path]


BUSY = "setsid sleep 77 & (setsid setsid sleep 77 &) ; trap '' TERM; echo ready; while :; do sleep 0.01; done"


def named(sandbox, comm):
    """pids of the copies of atoll that call themselves that: atoll-box (who supervises), atoll-guardian."""
    found = []
    for pid in ours(sandbox, "atoll"):
        try:
            if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == comm:
                found.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def victims(sandbox, child, which):
    """pids: `atoll run` becomes the box; its guardian cleans up behind it."""
    return {"box": [child.pid], "guardian": named(sandbox, "atoll-guardian"),
            "init": ours(sandbox, "atoll-init"), "all": [pid for pid, _ in leaks.processes(sandbox.programs,
            ())]}[which]


def kill(pids, number=signal.SIGKILL):
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def children(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(word) for word in words]


def comm(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def makers(box):
    """Who makes the jail: the process that makes namespaces ahead, then the first process, until it is atoll-init."""
    return [pid for pid in children(box) if comm(pid) != "atoll-guardian"]


def guardians(box):
    return [pid for pid in children(box) if comm(pid) == "atoll-guardian"]


def assert_nothing_is_left(sandbox, which):
    """Where even the guardian was killed, names of cgroups may stay until the next run, but no process."""
    left = leaks.wait_for_none(sandbox, seconds=2 if which == "all" else 4)
    if which == "all":
        assert not {kind: what for kind, what in left.items() if kind != "cgroups"}
        assert sandbox.run(["true"]).code == 0
        # Each of those that were lost is looked for in all groups.
        left = leaks.wait_for_none(sandbox, 4 + ROUNDS / 5)
    assert not left, left


@pytest.mark.parametrize("which", ["box", "guardian", "init", "all"])
def test_killed_in_the_middle(sandbox, which):
    """SIGKILL of the supervisor, its guardian or PID 1 while the command runs."""
    child = sandbox.popen(["bash", "-c", BUSY])
    assert child.stdout.readline() == b"ready\n"
    pids = victims(sandbox, child, which)
    assert pids
    kill(pids)
    if which == "guardian":
        time.sleep(0.3)
        child.send_signal(signal.SIGKILL)
        which = "all"
    child.wait(timeout=10)
    assert child.returncode != 0
    assert_nothing_is_left(sandbox, which)
    # The next run says what happened before, or at least works.
    assert sandbox.run(["true"]).code == 0


def groups_of(sandbox):
    return [pathlib.Path(path) for path in leaks.cgroups(sandbox.sessions())]


def end_with_held_groups(sandbox, before_the_end=lambda child: None):
    """A run whose cgroups are kept busy (by a group below each) for longer than its box waits."""
    child = sandbox.popen(["sh", "-c", "echo ready; exec sleep 77"])
    assert child.stdout.readline() == b"ready\n"
    groups = groups_of(sandbox)
    if not groups:
        pytest.skip("no cgroup can be made here")
    before_the_end(child)
    holds = [group / "held" for group in groups]
    for hold in holds:
        hold.mkdir()
    try:
        child.terminate()
        child.wait(timeout=20)
        # The control: the box is gone, and could not remove them.
        assert groups_of(sandbox)
    finally:
        for hold in holds:
            hold.rmdir()


@pytest.mark.only("root")
def test_a_group_that_is_held_for_longer_than_a_box_waits_goes_all_the_same(sandbox):
    """It outlives the box; its guardian has more patience."""
    end_with_held_groups(sandbox)
    assert not leaks.wait_for_none(sandbox, 8)


@pytest.mark.only("root")
def test_groups_that_neither_box_nor_guardian_removed_go_with_the_next_run(sandbox):
    """A box that could not remove its groups, or was killed before, leaves the name by which it is found."""
    end_with_held_groups(sandbox, lambda child: kill(guardians(child.pid)))
    assert sandbox.run(["true"]).code == 0
    assert not leaks.wait_for_none(sandbox, 8)
    assert not list((sandbox.runtime / "atoll").glob("*.sock"))


def test_a_session_that_was_lost_while_its_record_was_written_is_tidied(sandbox):
    """Box and guardian were killed between the making of the file and its content."""
    child = sandbox.popen(["sh", "-c", "echo ready; exec sleep 77"])
    assert child.stdout.readline() == b"ready\n"
    pids = [child.pid, *guardians(child.pid)]
    kill(pids, signal.SIGSTOP)
    kill(pids)
    child.wait(timeout=10)
    session = sandbox.audit_log(sandbox.sessions()[0]).parent
    os.truncate(session / "session.bin", 0)
    # The control: nobody was left to remove it.
    assert list((sandbox.runtime / "atoll").glob("*.sock"))
    time.sleep(3)
    assert sandbox.run(["true"]).code == 0
    wait_until(lambda: not list((sandbox.runtime / "atoll").glob("*.sock")), 30, "the name of its socket goes")
    assert not leaks.wait_for_none(sandbox, 8)


@pytest.mark.only("root")
def test_groups_of_a_lost_session_of_another_login_go_with_the_next_run(sandbox):
    """Box and guardian were killed; the next run is started from a group beside theirs, as another login has one."""
    here = next((line.split(":", 2)[2] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
                 if ":memory:" in line), None)
    if here is None:
        pytest.skip("no v1 hierarchy, whose groups stand below those of each login, is mounted here")
    login = pathlib.Path(f"/sys/fs/cgroup/memory{here}") / f"login-{os.getpid()}"
    login.mkdir()
    try:
        script = f"echo 0 >{login}/tasks; exec \"$@\""
        words = sandbox.command_line(["sh", "-c", "echo ready; sleep 77"])
        child = subprocess.Popen(["sh", "-c", script, "sh", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 stdin=subprocess.DEVNULL, start_new_session=True, **sandbox.popen_keywords())
        sandbox.children.append(child)
        assert child.stdout.readline() == b"ready\n"
        # All are stopped before the first dies: a guardian that lives a moment longer than its box removes them.
        pids = victims(sandbox, child, "all")
        kill(pids, signal.SIGSTOP)
        kill(pids)
        child.wait(timeout=10)
        wait_until(lambda: not leaks.processes(sandbox.programs, ()), what="all are dead")
        # The control: nobody was left to remove them.
        assert [path for path in login.iterdir() if path.is_dir()]
        assert sandbox.run(["true"]).code == 0
        assert not leaks.wait_for_none(sandbox)
    finally:
        for path in [*login.glob("atoll-*"), login]:
            path.rmdir()


@pytest.mark.parametrize("which", ["box", "init", "all"])
def test_killed_at_random_moments(sandbox, which):
    """At every stage of building the jail and of running, also between clone and PR_SET_PDEATHSIG."""
    generator = random.Random(7)
    for _ in range(ROUNDS):
        child = sandbox.popen(["bash", "-c", "sleep 77 & sleep 78"])
        time.sleep(generator.random() * 0.03)
        kill(victims(sandbox, child, which))
        time.sleep(0.05)
        kill([child.pid])
        child.wait(timeout=15)
        child.stdout.close()
        child.stderr.close()
    assert_nothing_is_left(sandbox, which)


def wait_beside(seconds):
    """Busily, since the steps of a start take less than what a sleep oversleeps."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        continue


@pytest.mark.parametrize("which", ["maker", "guardian, then box", "guardian and box", "all children"])
def test_killed_while_the_jail_is_made(sandbox, which):
    """At every stage from the first process beside the box to the command. Whoever lost one sees that by itself."""
    generator = random.Random(23)
    find = {"maker": makers, "all children": children}.get(which, guardians)
    ended = []
    for _ in range(ROUNDS * 2):
        child = sandbox.popen(["true"])
        end = time.monotonic() + 5
        while not find(child.pid) and child.poll() is None and time.monotonic() < end:
            continue
        wait_beside(generator.random() * generator.choice([0.0003, 0.003, 0.02]))
        kill([*find(child.pid), *([child.pid] if which == "guardian and box" else [])])
        if which == "guardian, then box":
            wait_beside(generator.random() * 0.01)
            kill([child.pid])
        ended.append(child.wait(timeout=15))
        child.stdout.close()
        child.stderr.close()
    assert any(ended), "some were killed in time"
    assert_nothing_is_left(sandbox, "box" if which == "maker" else "all")


MEDIATED = "atoll: 1\nextends: medium\naudit: {files: all}\n"

# Some that open a FIFO and are killed meanwhile, again and again, so that the box starts and ends who opens for them.
OPENERS = r"""
import os, random, signal, time
for number in range(6):
    if os.fork():
        continue
    name = f"/tmp/fifo{number}"; os.mkfifo(name)
    while True:
        pid = os.fork()
        if not pid:
            os.open(name, os.O_RDONLY)
        time.sleep(0.003 + random.random() * 0.003); os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
print("ready", flush=True)
signal.pause()
"""


def test_who_waits_for_a_fifo_goes_with_the_box(sandbox):
    """Where the box opens files for others, a process of its own waits for the other end. It outlives no box, whose end
    its guardian would not hear of as long as anybody else has the box's descriptors."""
    policy = sandbox.policy(MEDIATED)
    generator = random.Random(11)
    for _ in range(ROUNDS * 2):
        child = sandbox.popen(["python3", "-c", OPENERS], policy=policy)
        assert child.stdout.readline() == b"ready\n"
        time.sleep(0.05 + generator.random() * 0.05)
        kill([child.pid])
        child.wait(timeout=15)
    assert_nothing_is_left(sandbox, "box")


def test_who_waits_for_a_fifo_holds_nothing_else(sandbox):
    child = sandbox.popen(["sh", "-c", "mkfifo /tmp/fifo; cat /tmp/fifo & sleep 77"], policy=sandbox.policy(MEDIATED))

    def waiting():
        return [pid for pid in named(sandbox, "atoll-box") if pid != child.pid]

    def held(pid):
        try:
            return sorted(os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd"))
        except (FileNotFoundError, ProcessLookupError):
            return []

    wait_until(lambda: ["/tmp/fifo", "anon_inode:seccomp notify"] in [held(pid) for pid in waiting()],
               what="a process that waits, with what it needs")
    # The control: the box itself has more.
    assert len(held(child.pid)) > 8
    kill([child.pid])
    child.wait(timeout=15)
    assert_nothing_is_left(sandbox, "box")


def builders(box):
    """pids of a box's children in a user namespace of their own: those that build the jail, and init. A look takes
    some 0.1 ms."""
    found = []
    try:
        for word in pathlib.Path(f"/proc/{box}/task/{box}/children").read_text().split():
            if os.readlink(f"/proc/{word}/ns/user") != os.readlink("/proc/self/ns/user"):
                found.append(int(word))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        pass
    return found


@pytest.mark.parametrize("which", ["any", "guardian"])
def test_one_of_those_that_build_the_jail_is_killed(sandbox, which):
    """The process that makes the namespaces ahead, the first, init; alone, or with the guardian: the box, which nobody
    kills, says so, ends by itself and leaves nothing."""
    generator = random.Random(11)
    ends = []
    for _ in range(4 * ROUNDS):
        child = sandbox.popen(["sh", "-c", "echo ran; exec sleep 77"])
        guardian, until = [], time.monotonic() + generator.random() * 0.012
        while not (pids := builders(child.pid)) or time.monotonic() < until:
            assert child.poll() is None
        if which == "guardian":
            guardian = named(sandbox, "atoll-guardian")
            pids = builders(child.pid)
        kill([*guardian, *pids[:1], *pids[1 + generator.randrange(2):]])
        # Whoever was killed at the end of its work was not missed: then it is init's turn.
        if child.stdout.readline():
            kill(builders(child.pid))
        said = child.communicate(timeout=15)[1]
        ends.append(child.returncode)
        assert child.returncode in (125, 137) and said, (child.returncode, said)
    assert 125 in ends, ends
    assert_nothing_is_left(sandbox, which)


def test_box_and_guardian_are_killed_at_once(sandbox):
    """At every stage of the start: nobody is left to tidy up, and still no process lives, nor a mount."""
    generator = random.Random(13)
    pairs = 0
    for _ in range(2 * ROUNDS):
        child = sandbox.popen(["sh", "-c", "exec sleep 77"])
        time.sleep(generator.random() * 0.02)
        guardians = named(sandbox, "atoll-guardian")
        pairs += len(guardians) == 1
        kill([*guardians, child.pid])
        child.communicate(timeout=15)
    assert pairs, "the guardian was never there yet"
    assert_nothing_is_left(sandbox, "all")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_ended_by_a_signal(sandbox, number):
    """The caller's signal ends the command; the status is 128 + N, or the command's own answer to it."""
    # Not bash: it ignores SIGQUIT until it has become sleep.
    child = sandbox.popen(["sh", "-c", "echo ready; exec sleep 77"])
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(number)
    assert child.wait(timeout=10) == 128 + number
    assert not leaks.wait_for_none(sandbox)


def test_a_signal_reaches_the_commands_handler(sandbox):
    child = sandbox.popen(["bash", "-c", "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.05; done"])
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=10) == 7
    assert b"caught" in child.stdout.read()


def test_kill_everything_stays_inside(sandbox):
    """X19: kill -9 -1, and every process id that there may be, from inside."""
    victim = subprocess.Popen(["sleep", "77"], **sandbox.popen_keywords())
    script = ("import os\nfor pid in list(range(2, 40000)) + [-1]:\n  if pid != os.getpid():\n    try: "
            "os.kill(pid, 9)\n    except OSError: pass\nprint('done')")
    try:
        done = sandbox.run(["python3", "-c", script])
        assert "done" in done.out or done.code == 137, done
        assert victim.poll() is None, "a process outside was killed"
    finally:
        victim.kill()
        victim.wait()


def test_killing_the_parent_and_pid_1(sandbox):
    """PID 1 does not die by its children's hands, so the supervisor keeps its eyes."""
    done = sandbox.run("for s in KILL TERM INT HUP QUIT SEGV ABRT STOP USR1 USR2 PIPE ALRM; do kill -$s 1; done; "
            "sleep 0.1; echo alive")
    assert done.code == 0 and "alive" in done.out, done


def test_a_dead_command_with_a_living_child(sandbox):
    """The end of the command is the end, whoever still holds stdout."""
    started = time.monotonic()
    done = sandbox.run("(sleep 60; echo late) & echo early")
    assert done.code == 0 and done.out == "early\n", done
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("code", [0, 1, 2, 77, 124, 125, 126, 127, 137, 255])
def test_own_exit_status(sandbox, code):
    done = sandbox.run(["sh", "-c", f"exit {code}"])
    assert done.code == code and done.report["exit"] == code, done


def test_statuses_of_atoll(sandbox):
    sandbox.write(sandbox.project / "plain", "not a program\n")
    sandbox.make_directory(sandbox.project / "directory")
    assert sandbox.run(["no-such-program"]).code == 127
    assert sandbox.run(["./no-such-program"]).code == 127
    assert sandbox.run(["./plain"]).code == 126
    assert sandbox.run(["./directory"]).code == 126
    killed = sandbox.run(["sh", "-c", "kill -KILL $$"])
    assert killed.code == 137 and killed.report["signal"] == 9 and killed.report["ended"] == "signal", killed
    assert sandbox.run(["sh", "-c", "kill -SEGV $$"]).code == 139


def test_detached_sessions_live_and_end(sandbox):
    started = sandbox.run_outside(sandbox.command_line(["sleep", "77"], options=["-d"]))
    assert started.code == 0, started
    session = started.out.split()[-1]
    assert session in sandbox.sessions()
    assert session in sandbox.run_atoll("ps").out
    inside = sandbox.run_atoll("exec", session, "--", "sh", "-c", "echo $ATOLL_SESSION; exit 9")
    assert inside.code == 9 and inside.out.strip() == session, inside
    stopped = sandbox.run_atoll("stop", session)
    assert stopped.code == 0, stopped
    assert not leaks.wait_for_none(sandbox)


def test_a_killed_detached_box_leaves_nothing(sandbox):
    started = sandbox.run_outside(sandbox.command_line(["sleep", "77"], options=["-d"]))
    assert started.code == 0, started
    boxes = named(sandbox, "atoll-box")
    assert boxes
    kill(boxes)
    wait_until(lambda: not ours(sandbox, "atoll-init"), what="the sandbox dies with its supervisor")
    assert not leaks.wait_for_none(sandbox)
    listed = sandbox.run_atoll("ps")
    assert listed.code == 0, listed


@pytest.mark.needs("strace")
def test_a_run_does_not_look_for_lost_sessions_among_those_that_live(sandbox):
    """Only where somebody's box is dead: of 32 starters each would look at 31 others, and start a program for that."""
    def execs():
        """Programs that the run executes, but for the compiler. A user's tracer cannot read the guardian's words."""
        trace = sandbox.base / "trace"
        words = ["strace", "-f", "-qq", "-e", "trace=execve", "-e", "status=successful", "-o", trace,
                 sandbox.programs.atoll, "run", "--", "/bin/true"]
        assert sandbox.run_outside(words).code == 0
        return len([line for line in trace.read_text().splitlines() if "execve" in line and "atoll-policy" not in line])

    alone = execs()
    started = sandbox.run_outside(sandbox.command_line(["sleep", "77"], options=["-d"]))
    assert started.code == 0, started
    assert execs() == alone
    # The control: it is killed, and so is who would have tidied.
    kill(pid for pid, _ in leaks.processes(sandbox.programs, ()))
    wait_until(lambda: not leaks.processes(sandbox.programs, ()), what="all are dead")
    assert execs() == alone + 1
    assert not leaks.wait_for_none(sandbox)


def test_another_user_cannot_reach_a_session(sandbox, identities):
    """F35, N17: the control socket and the state are the owner's (and root's)."""
    if sandbox.identity.is_root or "root" not in identities:
        pytest.skip("needs an ordinary user's session and root to become a third one")
    started = sandbox.run_outside(sandbox.command_line(["sleep", "77"], options=["-d"]))
    session = started.out.split()[-1]
    try:
        done = subprocess.run([str(sandbox.programs.atoll), "exec", session, "--", "id"], env=sandbox.environment,
                user=65534,
                              group=65534, extra_groups=[], capture_output=True, cwd="/", check=False)
        assert done.returncode != 0 and b"uid=" not in done.stdout
        for path in (sandbox.state / "atoll", sandbox.runtime / "atoll"):
            assert not path.stat().st_mode & 0o077, path
    finally:
        sandbox.run_atoll("stop", session)


def test_files_made_inside_belong_to_the_owner_of_the_tree(sandbox):
    """As root the sandbox runs as an unprivileged uid of the host; its files are the project owner's all the same."""
    done = sandbox.run("touch made; mkdir d; touch d/made; stat -c %u made; id -u; sleep 0.3 & cat "
            "/proc/self/uid_map; wait", trust="high")
    assert done.code == 0, done
    for name in ("made", "d", "d/made"):
        status = (sandbox.project / name).stat()
        assert (status.st_uid, status.st_gid) == (sandbox.identity.uid, sandbox.identity.gid), name


@pytest.mark.only("root")
def test_root_never_runs_as_the_hosts_root(sandbox):
    child = sandbox.popen(["sh", "-c", "echo ready; exec sleep 77"])
    assert child.stdout.readline() == b"ready\n"
    found = []
    time.sleep(0.5)
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and b"77" in pathlib.Path(f"/proc/{entry.name}/cmdline").read_bytes().split(b"\0"):
                status = pathlib.Path(f"/proc/{entry.name}/status").read_text()
                found.append(status.split("Uid:\t")[1].split("\n")[0].split() +
                             status.split("Gid:\t")[1].split("\n")[0].split())
        except OSError:
            continue
    child.terminate()
    child.wait(timeout=10)
    inside = [ids for ids in found if "0" not in ids]
    assert inside and all(int(number) > 65535 or int(number) > 0 for number in inside[0]), found
