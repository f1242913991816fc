# SPDX-License-Identifier: Apache-2.0
"""Snapshots, restores, forks and flattening of what sessions stage."""
import fcntl
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from atoll import wait_until
from staged import Staged


@pytest.fixture
def staged(sandbox):
    return Staged(sandbox)


def test_restore_goes_back_and_can_be_taken_back(staged):
    staged.run("echo one > a; rm host")
    first = staged.session
    assert staged.atoll("snapshot", first, "before", "-m", "as it was").out == "before\n"
    staged.fork([first, "before"], "echo two > a; echo b > b; mkdir host; echo x > host/x")
    second = staged.session
    staged.atoll("snapshot", second, "after")
    begun, grown = staged.show(first), staged.show(second)
    assert grown != begun and "b" in grown
    # In one session: back to what its fork point was, and forth again.
    assert staged.snapshots(first)[-1]["message"] == "as it was"
    staged.run("echo c > c", options=["--continue", second])
    third = staged.session
    newest = staged.show(third)
    staged.atoll("snapshot", third, "third")
    assert "before-restore" not in staged.atoll("restore", third, "third").out
    assert staged.show(third) == newest
    for session, shown in ((first, begun), (second, grown)):
        assert staged.show(session) == shown
    assert (staged.sandbox.project / "host").read_text() == "host\n"


def test_restore_of_an_ended_session(staged):
    """Snapshots of a session while it ran are states that it can go back to when it has ended."""
    session = staged.detach()
    staged.exec(session, "echo one > a")
    staged.atoll("snapshot", session, "one")
    staged.exec(session, "echo two > a; rm -r directory")
    staged.atoll("stop", session)
    newest = staged.show(session)
    assert newest["directory"][0] == "deleted"
    said = staged.atoll("restore", session, "one").out
    assert "before-restore-1" in said
    assert staged.show(session).keys() == {"a"}
    assert staged.fork([session], "cat a; ls -d directory") == "one\ndirectory\n"
    staged.atoll("restore", session, "before-restore-1")
    assert staged.show(session) == newest


def test_names(staged):
    staged.run("echo one > a")
    session = staged.session
    assert staged.atoll("snapshot", session).out == "snapshot-1\n"
    assert staged.atoll("snapshot", session).out == "snapshot-2\n"
    for name in ("../x", ".x", "-x", "x/y", "x" * 65, "a\nb", ""):
        done = staged.sandbox.run_atoll("snapshot", session, "--", name)
        assert done.code == 125, (name, done)
    again = staged.sandbox.run_atoll("snapshot", session, "snapshot-1")
    assert again.code == 125 and "already" in again.err
    gone = staged.sandbox.run_atoll("restore", session, "nothing")
    assert gone.code == 125 and "no such snapshot" in gone.err
    assert [item["name"] for item in staged.snapshots(session)] == ["snapshot-1", "snapshot-2"]


def test_remove_forgets_a_snapshot(staged):
    staged.run("echo one > a")
    session = staged.session
    staged.atoll("snapshot", session, "x")
    staged.atoll("discard", session)
    assert staged.layers(session) == [1]
    staged.atoll("snapshot", "--remove", session, "x")
    assert staged.snapshots(session) == []
    assert staged.sandbox.run_atoll("snapshot", "--remove", session, "x").code == 125
    assert staged.sandbox.run_atoll("snapshot", "--remove", session).code == 125
    staged.atoll("gc")
    assert staged.layers(session) == []


def test_message_is_escaped_and_exact(staged):
    staged.run("echo one > a")
    message = b"\x1b[31mred\n\xff"
    staged.atoll("snapshot", staged.session, "x", "-m", message)
    shown = staged.atoll("snapshot", "--list", staged.session)
    assert b"\x1b" not in shown.bytes and b"\xff" not in shown.bytes and b"\\x1b" in shown.bytes
    assert staged.snapshots(staged.session)[0]["message"] == {"b64": "G1szMW1yZWQK/w=="}


def test_forks_of_forks_go_their_own_ways(staged):
    staged.run("echo 0 > n; mkdir deep; echo x > deep/x")
    origin = staged.session
    shown = {origin: staged.show(origin)}
    for generation in range(1, 5):
        out = staged.fork([staged.session], f"cat n; echo {generation} > n; echo > only-{generation}; rm -rf deep")
        assert out == f"{generation - 1}\n"
        shown[staged.session] = staged.show(staged.session)
    for session, before in shown.items():
        assert staged.show(session) == before
    left, right = staged.fork([origin], "echo left > n"), staged.fork([origin], "cat n deep/x")
    assert (left, right) == ("", "0\nx\n")


def test_fork_of_a_running_session(staged):
    session = staged.detach()
    staged.exec(session, "echo one > a; rm host")
    assert staged.fork([session], "cat a; test -e host || echo gone; echo two > a") == "one\ngone\n"
    assert staged.exec(session, "cat a") == "one\n"
    staged.atoll("stop", session)


LINKS = "mkdir -p d/e; echo one > d/e/a; ln d/e/a b; ln b 'd/c c'; echo x > x; ln x y; echo alone > alone; chmod 750 d"
LOOK = "cat b 'd/c c' d/e/a; stat -c '%h %i' b 'd/c c' d/e/a | sort -u | wc -l; stat -c %h b x"


def test_a_fork_keeps_files_of_several_names_together(staged):
    staged.run(LINKS)
    origin, shown = staged.session, staged.show(staged.session)
    assert staged.fork([origin], "echo two > d/e/a; " + LOOK) == "two\ntwo\ntwo\n1\n3\n2\n"
    forked = staged.session
    assert staged.show(origin) == shown
    # A fork of the fork; a name that goes and one that comes; the layers joined.
    assert staged.fork([forked], f"rm b; ln x b; echo three >> y; cat b; cat 'd/c c'; stat -c %h 'd/c c' y") == \
        "x\nthree\ntwo\n2\n3\n"
    last = staged.session
    staged.atoll("discard", last, "alone")
    assert staged.fork([last], "echo four > b; cat x y; stat -c '%h %a' x d") == "four\nfour\n3 644\n1 750\n"
    # What is applied is one file, too, and the directories kept their times.
    staged.atoll("apply", staged.session, "-q")
    project = staged.sandbox.project
    assert (project / "x").samefile(project / "b") and (project / "d/c c").samefile(project / "d/e/a")
    assert (project / "y").read_text() == "four\n" and not (project / "alone").exists()


def test_a_fork_of_links_that_writes_nothing_is_what_it_stands_on(staged):
    staged.run(LINKS + "; rm -r directory; mkdir directory; ln x directory/x; touch -d 2001-01-01 d/e d")
    origin, before = staged.session, staged.show(staged.session)
    times = "stat -c %Y d d/e b; ls directory"
    said = staged.atoll("fork", origin, "--", "sh", "-c", "cat b x >/dev/null; " + times)
    assert "nothing was changed; the layers below stay as they were" in said.err, said
    assert said.out == staged.fork([origin], times)
    assert said.out.split()[:2] == ["978307200"] * 2 and said.out.split()[-1] == "x"
    assert staged.show(staged.session) == before


def test_a_fork_of_a_running_session_and_a_trial_keep_links(staged):
    session = staged.detach()
    staged.exec(session, LINKS)
    assert staged.fork([session], "echo two > b; cat d/e/a") == "two\n"
    staged.atoll("stop", session)
    assert staged.fork([session], "echo two > y; cat x; rm y; stat -c %h x") == "two\n1\n"


def test_what_is_too_much_to_keep_together_is_told(staged):
    staged.run("dd if=/dev/urandom of=a bs=1M count=257 status=none; ln a b; echo x > x; ln x y")
    said = staged.atoll("fork", staged.session, "--", "sh", "-c", "echo 1 > x; cat y; : > a; stat -c %s a b")
    assert said.out == f"1\n0\n{257 << 20}\n"
    assert "the hard links of 1 staged file cannot be kept: too much to copy" in said.err


def test_a_fork_of_many_files_without_links_looks_at_none(staged):
    """The note alone says so; a session that made a link has its layers walked."""
    staged.run("for i in $(seq 300); do echo $i >f$i; done")
    note = staged.stage(staged.session) / "linked"
    assert not note.exists()
    staged.run("ln host linked", options=["--continue", staged.session])
    assert (staged.stage(staged.session) / "linked").exists()


def test_ps_shows_changes_and_origins(staged):
    staged.run("echo one > a")
    origin = staged.session
    staged.fork([origin], "echo two > a")
    child = staged.session
    listed = {item["session"]: item for item in json.loads(staged.atoll("ps", "-a", "--json").out)}
    assert listed[origin]["staged"] and listed[origin]["origin"] is None
    assert listed[child]["staged"] and listed[child]["origin"] == origin
    shown = staged.atoll("ps", "-a").out.splitlines()
    assert [line for line in shown if line.startswith(child)][0].count(f"yes, from {origin}") == 1
    staged.atoll("discard", child)
    staged.atoll("discard", origin)
    listed = {item["session"]: item for item in json.loads(staged.atoll("ps", "-a", "--json").out)}
    assert not listed[origin]["staged"] and not listed[child]["staged"]


def test_fork_needs_its_separator(staged):
    staged.run("echo one > a")
    for words in (["fork"], ["fork", "x"], ["fork", staged.session, "ls"], ["fork", "a", "b", "c", "--", "ls"],
                  ["fork", staged.session, "--continue", staged.session, "--", "ls"]):
        assert staged.sandbox.run_atoll(*words).code == 125, words


def test_fork_after_the_policy_file_is_gone(staged):
    staged.run("echo one > a")
    os.unlink(staged.policy)
    assert staged.fork([staged.session], "cat a") == "one\n"


WRITER = """
i=0
while :; do
  i=$((i + 1))
  echo $i > first; echo $i > second; mkdir -p d$((i % 7)); mv first first.tmp; mv first.tmp first; ln -f second third
done
"""


def test_snapshot_of_a_running_writer_has_one_moment(staged):
    """`first` is written before `second`, and both before `third`: so they are one step apart at most."""
    session = staged.detach()
    writer = staged.sandbox.run_atoll("exec", session, "--", "bash", "-c",
                                      f"( {WRITER} ) >/dev/null 2>&1 </dev/null & sleep 0.3")
    assert writer.code == 0, writer
    for number in range(5):
        staged.atoll("snapshot", session, f"s{number}")
    values = []
    for number in range(5):
        out = staged.fork([session, f"s{number}"],
                          "cat first 2>/dev/null || cat first.tmp; cat second third; stat -c %h second")
        words = [int(word) for word in out.split()]
        # Truncated and not yet written is one moment, too: a number is missing then.
        if len(words) == 4:
            first, second, third, _ = words
            assert 0 <= first - second <= 1 and 0 <= second - third <= 1, words
            values.append(first)
    assert values == sorted(values)
    records = [json.loads(line) for line in staged.sandbox.audit_log(session).read_text().splitlines()]
    assert len([record for record in records if record["type"] == "stage.snapshot"]) == 5
    staged.atoll("stop", session)


def test_auto_snapshots(sandbox):
    staged = Staged(sandbox, more="stage: {auto: exec}")
    session = staged.detach()
    for number in range(3):
        staged.exec(session, f"echo {number} > n")
    assert [item["name"] for item in staged.snapshots(session)] == ["auto-1", "auto-2", "auto-3"]
    staged.atoll("stop", session)
    staged.atoll("restore", session, "auto-3")
    assert staged.fork([session], "cat n") == "1\n"
    staged.atoll("restore", session, "auto-1")
    assert staged.show(session) == {}


def test_no_command_runs_without_the_snapshot_that_the_policy_wants(sandbox):
    staged = Staged(sandbox, more="stage: {auto: exec}")
    session = staged.detach()
    staged.exec(session, "echo 1 > n")
    layers = staged.stage(session) / "layers"
    layers.rename(layers.with_name("away"))
    layers.write_text("no directory")
    refused = staged.atoll("exec", session, "--", "touch", "it-ran", code=125)
    assert "stage.auto" in refused.err and "atoll snapshot" in refused.err, refused
    layers.unlink()
    layers.with_name("away").rename(layers)
    staged.exec(session, "echo 2 > n")
    assert set(staged.show(session)) == {"n"}
    assert [item["name"] for item in staged.snapshots(session)] == ["auto-1", "auto-2"]
    staged.atoll("stop", session)


def test_auto_snapshots_are_thinned(sandbox):
    staged = Staged(sandbox, more="stage: {auto: exec}")
    session = staged.detach()
    for number in range(53):
        staged.exec(session, f"echo {number} > n")
    names = [item["name"] for item in staged.snapshots(session)]
    assert names == [f"auto-{number}" for number in range(4, 54)]
    assert len(staged.layers(session)) == 50
    staged.atoll("stop", session)


@pytest.mark.only("root")
@pytest.mark.needs("strace")
def test_a_command_that_comes_while_nothing_was_there_has_its_snapshot_too(sandbox):
    """The supervisor looks whether there is a message, and hears the next: one that comes in between was not looked
    at. Here each look takes 50 ms more, and a client says the next thing 30 ms after the last."""
    staged = Staged(sandbox, more="stage: {auto: exec}")
    session = staged.detach()
    pid = str(json.loads(sandbox.run_atoll("ps", "--json").out)[0]["pid"])
    log = sandbox.base / "trace"
    with subprocess.Popen(["strace", "-qq", "-o", log, "-e", "trace=recvfrom",
                           "-e", "inject=recvfrom:delay_exit=50000", "-p", pid]) as trace:
        wait_until(lambda: "TracerPid:\t0\n" not in pathlib.Path(f"/proc/{pid}/status").read_text())
        try:
            for number in range(5):
                done = sandbox.run_outside(["strace", "-f", "-qq", "-o", "/dev/null", "-e",
                                            "inject=sendmsg:delay_enter=30000", sandbox.programs.atoll, "exec", session,
                                            "--", "sh", "-c", f"echo {number} > n"])
                assert done.code == 0, done
            names = [item["name"] for item in staged.snapshots(session)]
        finally:
            staged.atoll("stop", session)
            trace.wait(30)
    assert names == [f"auto-{number}" for number in range(1, 6)]
    assert "EAGAIN" in log.read_text(), "it never looked while nothing was there"


def calls(staged, *words):
    """The system calls that a verb makes."""
    trace = staged.sandbox.base / "trace"
    staged.sandbox.own(trace.parent)
    done = staged.sandbox.run_outside(["strace", "-f", "-o", trace, staged.sandbox.programs.atoll, *words])
    assert done.code == 0, done
    lines = [line.split(None, 1)[1] for line in trace.read_text().splitlines()]
    return [line for line in lines if "(" in line and "resumed" not in line]


@pytest.mark.needs("strace")
def test_cost_does_not_depend_on_the_size(staged):
    """Snapshot, restore and a fork that writes nothing make the same calls for 10 files and for 3,000."""
    counts = []
    for files in (10, 3000):
        staged.run(f"mkdir many; cd many; for i in $(seq {files}); do echo $i > $i; done")
        session = staged.session
        snapshot = len(calls(staged, "snapshot", session, "x"))
        # Whoever walks layers asks for the status of each file; the supervisor, which looks about in /proc as often
        # as it has time to, does not.
        fork = sum(call.startswith("newfstatat") for call in
                   calls(staged, "fork", session, "x", "-q", "--", "true"))
        staged.fork([session, "x"], "echo more > more")
        child = staged.session
        staged.atoll("snapshot", child, "y")
        other = staged.atoll("snapshot", child, "z").out
        assert other == "z\n"
        restore = len(calls(staged, "restore", session, "x"))
        counts.append((snapshot, restore, fork))
    *verbs, forks = zip(*counts)
    assert all(abs(few - many) <= 3 for few, many in verbs), counts
    assert abs(forks[0] - forks[1]) < 500, counts


def test_long_chains_are_flattened(staged):
    staged.run("echo 0 > n; rm host")
    for number in range(1, 19):
        staged.run(f"echo {number} > n; echo > f{number}; rm -f f{number - 3}", options=["-q", "--continue",
                                                                                         staged.session])
    session, before = staged.session, staged.show(staged.session)
    assert staged.atoll("snapshot", session, "long").out == "long\n"
    assert staged.snapshots(session)[-1]["layers"] >= 17

    def is_flat():
        name = staged.atoll("snapshot", session).out.strip()
        return [item for item in staged.snapshots(session) if item["name"] == name][0]["layers"] == 1
    wait_until(is_flat, 20, "a flat chain")
    assert staged.show(session) == before
    assert staged.fork([session], "cat n; ls f*; test -e host || echo gone") == "18\nf16\nf17\nf18\ngone\n"
    staged.atoll("restore", session, "long")
    assert staged.show(session) == before


RANDOM = r"""
import os, random, shutil, sys
random.seed(int(sys.argv[1]))
names = ["a", "b", "c", "d", "directory", "host"]
def some():
    return "/".join(random.choice(names) for _ in range(random.randint(1, 3)))
def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
for _ in range(25):
    path, other, what = some(), some(), random.randrange(9)
    try:
        if what <= 2:
            open(path, "w").write(str(random.random()))
        elif what == 3:
            os.makedirs(path)
        elif what == 4:
            remove(path)
        elif what == 5:
            os.rename(path, other)
        elif what == 6:
            os.symlink(other, path)
        elif what == 7:
            # A directory without x cannot be entered by its owner either, in whatever layer.
            os.chmod(path, 0o700 if os.path.isdir(path) else random.choice([0o600, 0o644, 0o755]))
        else:
            os.link(path, other)
    except OSError:
        pass
"""
TREE = ("find . -path ./.git -prune -o -printf '%P %y %m %s %l\\n' | sort; "
        "find . -path ./.git -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum 2>/dev/null; true")


@pytest.mark.parametrize("seed", range(3))
def test_flatten_keeps_the_merged_content(staged, seed):
    """Random operations in a chain of sessions; the tree that the sandbox sees is the same on one layer as on many."""
    program = staged.sandbox.write(staged.sandbox.project / "program.py", RANDOM)
    staged.run(f"echo > begun; python3 {program} {seed}0")
    for number in range(1, 5):
        staged.run(f"python3 {program} {seed}{number}", options=["-q", "--continue", staged.session])
    session = staged.session
    seen = staged.fork([session], TREE)
    judged = staged.show(session)
    # A path that does not exist: dropping it writes the chain anew, as flattening does.
    done = staged.sandbox.run_atoll("discard", session, staged.sandbox.project / "no-such-path")
    assert done.code == 1, done
    assert len(staged.snapshots(session)) and staged.show(session) == judged
    assert staged.fork([session], TREE) == seen


def test_closed_directories_are_no_hindrance(staged):
    """What the sandbox forbids its user it must not forbid us: a snapshot, a dropped path, a flat chain."""
    session = staged.detach()
    staged.exec(session, "mkdir -p d/e; echo x > d/e/x; echo y > y; chmod 0 y d/e; chmod 0600 d")
    staged.atoll("snapshot", session, "s")
    staged.atoll("stop", session)
    staged.atoll("restore", session, "s")
    assert staged.fork([session], "stat -c %a d y; chmod 700 d d/e; cat d/e/x") == "600\n0\nx\n"
    done = staged.sandbox.run_atoll("discard", session, "y")
    assert done.code == 0, done
    assert staged.fork([session], "stat -c %a d; chmod 700 d; stat -c %a d/e; ls") == "600\n0\nd\ndirectory\nhost\n"


@pytest.mark.needs("strace")
def test_killed_copy_of_a_running_session_lets_it_go_on(staged):
    """Wherever the snapshot of a running session is killed: the sandbox runs on, and no half snapshot has a name."""
    session = staged.detach()
    staged.exec(session, "mkdir d; for i in 1 2 3 4; do echo $i > d/$i; done; echo x > x")
    taken = 0
    for number in range(1, 400, 1 if os.environ.get("ATOLL_FAULT_FULL") else 11):
        done = staged.sandbox.run_outside(["strace", "-f", "-qq", "-o", "/dev/null", "-e",
                                           f"inject={CUT},sendmsg,recvmsg,syncfs:signal=KILL:when={number}",
                                           staged.sandbox.programs.atoll, "snapshot", session, f"s{number}"])
        assert staged.exec(session, "cat x") == "x\n"
        names = [item["name"] for item in staged.snapshots(session)]
        taken += done.code == 0
        if done.code == 0:
            assert f"s{number}" in names
            break
    assert taken
    for name in names:
        assert staged.fork([session, name], "cat d/1 d/2 d/3 d/4 x") == "1\n2\n3\n4\nx\n"
    staged.atoll("stop", session)
    before = len(staged.layers(session))
    staged.atoll("gc")
    os.utime(staged.stage(session) / "lock", (0, 0))
    staged.atoll("gc")
    assert len(staged.layers(session)) == len(names) <= before


def test_discard_paths(staged):
    staged.run("echo one > a; mkdir -p new/deep; echo x > new/deep/x; rm -r directory; echo changed > host")
    session = staged.session
    project = staged.sandbox.project
    inside = staged.sandbox.run_atoll("discard", session, project / "directory" / "file")
    assert inside.code == 125 and "as a whole" in inside.err and f"atoll discard {project}/directory" in inside.err
    staged.atoll("discard", session, "new", "directory")
    assert staged.show(session).keys() == {"a", "host"}
    staged.atoll("discard", session, "host")
    assert staged.show(session).keys() == {"a"}
    assert staged.fork([session], "cat host directory/file a") == "host\nhost file\none\n"
    assert staged.sandbox.run_atoll("discard", session, "/etc/passwd").code == 125


def test_discard_all_leaves_snapshots(staged):
    staged.run("echo one > a")
    session = staged.session
    staged.atoll("snapshot", session, "kept")
    assert "1 snapshot" in staged.atoll("discard", session).out
    assert staged.show(session) == {}
    staged.atoll("restore", session, "kept")
    assert staged.show(session).keys() == {"a"}


def test_discard_removes_what_nobody_names(staged):
    staged.run("echo secret > a; head -c 100000 /dev/zero > big")
    session = staged.session
    staged.atoll("discard", session)
    assert staged.layers(session) == []
    assert not [path for path in staged.stage(session).rglob("*") if path.name in ("a", "big")]


def test_run_discard_keeps_nothing(staged):
    done = staged.run("echo one > a; exit 3", options=["--discard"])
    assert done.code == 3
    assert not (staged.sandbox.project / "a").exists()
    assert not list(staged.stage(staged.session).rglob("a"))


def test_a_fork_that_writes_nothing_is_what_it_stands_on(staged):
    staged.run("echo one > a")
    origin = staged.session
    report = staged.sandbox.report_path()
    done = staged.atoll("fork", origin, "--report", report, "--", "true")
    assert "nothing was changed; the layers below stay as they were" in done.err
    said = json.loads(report.read_text())
    assert said["changes"] == {**said["changes"], "added": 0, "kept": True, "as_origin": True}
    assert staged.show(said["session"]) == staged.show(origin) != {}
    # It is applied all the same where that was wished for.
    staged.atoll("fork", said["session"], "-q", "--apply-on-success", "--", "true")
    assert (staged.sandbox.project / "a").read_text() == "one\n"


def test_run_discard_keeps_what_was_named_meanwhile(staged):
    session = staged.sandbox.run_atoll("run", "-d", "--discard", "-p", staged.policy).out.strip()
    staged.exec(session, "echo one > a")
    staged.atoll("snapshot", session, "named")
    staged.exec(session, "echo two > b")
    staged.atoll("stop", session)
    assert staged.show(session) == {}
    assert wait_until(lambda: not list(staged.stage(session).parent.rglob("b")))
    staged.atoll("restore", session, "named")
    assert staged.show(session).keys() == {"a"}


def test_run_discard_takes_nothing_from_a_command_that_is_at_work(staged):
    """An apply that goes on while its run ends keeps its journal, and so its undo."""
    session = staged.sandbox.run_atoll("run", "-d", "--discard", "-p", staged.policy).out.strip()
    staged.exec(session, "echo one > a")
    fd = os.open(staged.stage(session), os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)
    staged.atoll("stop", session)
    os.close(fd)
    assert staged.show(session).keys() == {"a"}
    records = [json.loads(line) for line in staged.sandbox.audit_log(session).read_bytes().splitlines()]
    assert [record["detail"]["phase"] for record in records if record["type"] == "stage.discard"] == \
        ["begun", "failed"]
    staged.atoll("apply", session)
    staged.atoll("undo", session)


def test_what_becomes_of_changes_excludes_itself(staged):
    done = staged.sandbox.run_atoll("run", "--keep", "--discard", "--", "true")
    assert done.code == 125 and "exclude each other" in done.err


CUT = "mkdirat,mkdir,openat,renameat,renameat2,rename,fsync,fdatasync,unlinkat,unlink,fchmod,utimensat,linkat,write," \
      "fsetxattr,rmdir,fchown"


@pytest.mark.needs("strace")
@pytest.mark.parametrize("verb", ["snapshot", "restore", "discard"])
def test_killed_at_any_call_leaves_a_valid_session(staged, verb):
    """
    After a kill at each of a bounded number of calls that change something the session holds what it held, or what it
    shall hold, and the verb can be given again.
    """
    staged.run("echo one > a; mkdir d; echo x > d/x; rm host")
    origin = staged.session
    staged.atoll("snapshot", origin, "first")
    staged.fork([origin, "first"], "echo two > a; echo b > b")
    sample = staged.session
    staged.atoll("snapshot", sample, "newest")
    sessions = staged.sandbox.state / "atoll" / "sessions"
    kept = staged.sandbox.base / "kept"
    copy(sessions, kept)
    words = {"snapshot": ["snapshot", sample, "again"], "restore": ["restore", origin, "first"],
             "discard": ["discard", sample, "d"]}[verb]
    session = words[1]
    old = staged.show(session)
    seen = set()
    for number in range(1, 400, 1 if os.environ.get("ATOLL_FAULT_FULL") else 7):
        copy(kept, sessions)
        done = staged.sandbox.run_outside(["strace", "-f", "-qq", "-o", "/dev/null", "-e",
                                           f"inject={CUT}:signal=KILL:when={number}",
                                           staged.sandbox.programs.atoll, *words])
        shown = staged.show(session)
        seen.add(str(sorted(shown.items())))
        assert staged.sandbox.run_atoll("snapshot", "--list", session).code == 0
        again = staged.sandbox.run_atoll(*words)
        assert again.code in (0, 1) or "already" in again.err, (number, again)
        new = staged.show(session)
        assert shown in (old, new), number
        if done.code == 0:
            break
    else:
        pytest.fail("the verb never came to its end")


def copy(source, target):
    """With owners, device nodes and attributes; of directories that overlayfs closed (work/work) nothing matters."""
    shutil.rmtree(target, ignore_errors=True)
    for work in source.glob("*/stage/live/*/work/work"):
        work.chmod(0o700)
    subprocess.run(["cp", "-a", source, target], check=True, capture_output=True)
