# SPDX-License-Identifier: Apache-2.0
"""`atoll gc` removes what is old and nobody's, and nothing else."""
import json
import os
import time

import pytest

from atoll import wait_until
from staged import Staged


@pytest.fixture
def staged(sandbox):
    return Staged(sandbox)


def gc(staged, *words, code=0):
    said = json.loads(staged.atoll("gc", "--json", *words, code=code).out)
    return {item["session"]: item["fate"] for item in said["sessions"]}, said


def sessions(staged):
    return set(staged.sandbox.sessions())


def test_young_sessions_stay(staged):
    staged.run("true")
    fates, _ = gc(staged)
    assert fates == {staged.session: "young"} and sessions(staged) == {staged.session}


def test_sessions_without_changes_go(staged):
    """They pile up otherwise: each run leaves one."""
    for _ in range(3):
        staged.run("true")
    plain = staged.sandbox.run("true", trust="high").session
    fates, said = gc(staged, "--older-than", "0s")
    assert set(fates.values()) == {"removed"} and plain in fates
    assert sessions(staged) == set() and said["freed"] > 0


def test_unreviewed_changes_stay_unless_told(staged):
    staged.run("echo one > a")
    fates, _ = gc(staged, "--older-than", "0s")
    assert fates == {staged.session: "unreviewed"}
    assert staged.show(staged.session).keys() == {"a"}
    shown = staged.atoll("gc", "--older-than", "0s").out
    assert "atoll diff" in shown and "--unreviewed" in shown
    fates, _ = gc(staged, "--older-than", "0s", "--unreviewed")
    assert fates == {staged.session: "removed"} and not sessions(staged)


@pytest.mark.parametrize("script", (
    "mkdir -p 0/1; echo one > 0/1/a", "mkfifo 0; echo one > a", "mkdir 0", "chmod 700 directory"))
def test_no_kind_of_change_hides_the_others(staged, script):
    """Whatever comes first in the walk: a directory, or what nobody can apply."""
    staged.run(script)
    assert gc(staged, "--older-than", "0s")[0] == {staged.session: "unreviewed"}


@pytest.mark.parametrize("names", (("session.bin", "ended.bin"), ("policy.bin",)))
def test_what_cannot_be_read_is_not_taken_for_nothing(staged, names):
    """A damaged disk must not make gc throw away what nobody has seen."""
    staged.run("echo one > a")
    directory = staged.stage(staged.session).parent
    for name in names:
        (directory / name).unlink()
    os.utime(directory, (0, 0))
    fates, _ = gc(staged, "--older-than", "0s")
    assert fates[staged.session] != "removed" and directory.is_dir()


def test_dropped_changes_are_reviewed(staged):
    staged.run("echo one > a")
    staged.atoll("discard", staged.session)
    assert gc(staged, "--keep", "0")[0] == {staged.session: "removed"}


def test_applied_changes_are_reviewed(staged):
    staged.run("echo one > a; echo two > b; rm host")
    session = staged.session
    staged.atoll("apply", session, "a")
    assert gc(staged, "--keep", "0")[0] == {session: "unreviewed"}
    staged.atoll("apply", session)
    assert (staged.sandbox.project / "b").read_text() == "two\n"
    assert gc(staged, "--keep", "0")[0] == {session: "removed"}


@pytest.mark.needs("strace")
def test_apply_that_was_cut_off_stays(staged):
    """Its journal and the old files in the session are what finishes it or takes it back."""
    staged.run("echo one > a; echo changed > host")
    session = staged.session
    done = staged.sandbox.run_outside(["strace", "-f", "-qq", "-o", "/dev/null", "-e",
                                       "inject=renameat2:signal=KILL:when=4",
                                       staged.sandbox.programs.atoll, "apply", session])
    assert done.code != 0
    assert list((staged.stage(session) / "applies").iterdir())
    assert gc(staged, "--keep", "0", "--unreviewed")[0] == {session: "unfinished"}
    staged.atoll("apply", session)
    assert (staged.sandbox.project / "host").read_text() == "changed\n"
    assert gc(staged, "--keep", "0")[0] == {session: "removed"}


def test_apply_on_success(staged):
    done = staged.run("echo one > a; exit 3", options=["--apply-on-success"])
    assert done.code == 3 and not (staged.sandbox.project / "a").exists()
    done = staged.run("echo one > a; exit 0", options=["--apply-on-success"])
    assert done.code == 0 and (staged.sandbox.project / "a").read_text() == "one\n"


def test_running_sessions_stay(staged):
    session = staged.detach()
    staged.exec(session, "echo one > a")
    fates, _ = gc(staged, "--older-than", "0s", "--keep", "0", "--unreviewed", "--max-size", "1kB")
    assert fates == {session: "live"}
    assert staged.exec(session, "cat a") == "one\n"
    staged.atoll("stop", session)


def untouch(staged, session):
    """As if the fork had been some time ago."""
    lock = staged.stage(session) / "lock"
    if lock.exists():
        os.utime(lock, (0, 0))


def test_origin_stays_until_its_fork_is_gone(staged):
    staged.run("echo one > a")
    origin = staged.session
    staged.fork([origin], "cat a; echo two > b")
    child = staged.session
    fates, _ = gc(staged, "--keep", "1", "--unreviewed")
    assert fates[origin] in ("used", "touched")
    untouch(staged, origin)
    fates, said = gc(staged, "--keep", "1", "--unreviewed")
    assert fates == {child: "young", origin: "used"}
    assert [item.get("user") for item in said["sessions"] if item["session"] == origin] == [child]
    assert staged.fork([child], "cat a b") == "one\ntwo\n"
    staged.atoll("discard", staged.session)
    for session in (origin, child):
        untouch(staged, session)
    fates, _ = gc(staged, "--keep", "0", "--unreviewed")
    assert set(fates.values()) == {"removed"} and not sessions(staged)


def test_session_that_is_being_forked_stays(staged):
    staged.run("echo one > a")
    staged.atoll("snapshot", staged.session, "x")
    os.utime(staged.stage(staged.session) / "lock")
    assert gc(staged, "--keep", "0", "--unreviewed")[0] == {staged.session: "touched"}


def test_layers_that_nobody_names_go_and_others_stay(staged):
    staged.run("echo one > a")
    session = staged.session
    staged.atoll("snapshot", session, "named")
    (staged.stage(session) / "layers" / "77" / "0").mkdir(parents=True)
    staged.sandbox.own(staged.stage(session) / "layers" / "77")
    staged.sandbox.own(staged.stage(session) / "layers" / "77" / "0")
    (staged.stage(session) / "layers" / "78.gone").mkdir()
    staged.sandbox.own(staged.stage(session) / "layers" / "78.gone")
    _, said = gc(staged)
    assert said["layers"] == 2 and staged.layers(session) == [1]
    assert staged.show(session).keys() == {"a"}


def test_nothing_goes_while_something_is_unreadable(staged):
    staged.run("echo one > a")
    broken = staged.session
    staged.atoll("snapshot", broken, "x")
    staged.run("echo one > a")
    session = staged.session
    staged.atoll("snapshot", session, "x")
    layer = staged.stage(session) / "layers" / "77"
    layer.mkdir()
    staged.sandbox.own(layer)
    (staged.stage(broken) / "chain").write_bytes(b"nonsense")
    fates, said = gc(staged, "--keep", "0", "--unreviewed")
    assert said["layers"] == 0 and layer.exists()
    assert fates[session] == "used"


def test_dry_run_changes_nothing(staged):
    staged.run("echo one > a")
    staged.run("true")
    before = sessions(staged)
    fates, said = gc(staged, "--keep", "0", "--unreviewed", "--dry-run")
    assert set(fates.values()) == {"removed"} and said["dry_run"] and sessions(staged) == before


def test_keep_and_size_take_the_oldest(staged):
    made = []
    for _ in range(3):
        staged.run("head -c 300000 /dev/urandom > a")
        made.append(staged.session)
    fates, _ = gc(staged, "--keep", "2", "--unreviewed")
    assert fates == {made[0]: "removed", made[1]: "young", made[2]: "young"}
    fates, _ = gc(staged, "--max-size", "500kB", "--unreviewed")
    assert fates == {made[1]: "removed", made[2]: "young"}


def test_hostile_upper_can_be_removed(staged):
    """Deep beyond any path, closed directories, names that hurt terminals: the session goes all the same."""
    script = r"""
import os
for i in range(1500):
    open("\n\033[31m\udcff" + "x" * 200, "w").close()
    os.mkdir("d")
    os.chdir("d")
    if i % 100 == 99:
        os.chmod("..", 0)
os.mkfifo("fifo")
"""
    staged.sandbox.write(staged.sandbox.project / "deep.py", script)
    staged.run("python3 deep.py")
    fates, _ = gc(staged, "--keep", "0", "--unreviewed")
    assert set(fates.values()) == {"removed"} and not sessions(staged)
    assert not list((staged.sandbox.state / "atoll" / "sessions").iterdir())


def test_words_that_make_no_sense(staged):
    for words in (["x"], ["--keep", "-1"], ["--older-than", "soon"], ["--max-size", "big"]):
        assert staged.sandbox.run_atoll("gc", *words).code == 125, words


@pytest.mark.needs("strace")
def test_killed_gc_is_taken_up(staged):
    """Whatever call it is killed at, the next one finishes, and what is named is still whole."""
    staged.run("echo one > a")
    kept = staged.session
    staged.atoll("snapshot", kept, "x")
    shown = staged.show(kept)
    for number in range(1, 200, 9):
        doomed = staged.run("mkdir -p d/e; echo x > d/e/f").session
        done = staged.sandbox.run_outside(["strace", "-f", "-qq", "-o", "/dev/null", "-e",
                                           f"inject=unlinkat,renameat,renameat2,mkdirat:signal=KILL:when={number}",
                                           staged.sandbox.programs.atoll, "gc", "--keep", "0"])
        staged.atoll("discard", doomed, code=0) if doomed in sessions(staged) else None
        gc(staged, "--keep", "0")
        assert sessions(staged) == {kept} and staged.show(kept) == shown, number
        if done.code == 0:
            break


def age(sandbox, days):
    """As if the last time had been so long ago."""
    stamp = sandbox.state / "atoll" / "gc"
    moment = time.time() - days * 86400
    os.utime(stamp, (moment, moment))
    return stamp


@pytest.mark.parametrize("wanted, is_removed", [(None, False), ("0s", True), ("off", False), ("nonsense", False)])
def test_it_starts_by_itself_once_a_day(sandbox, wanted, is_removed):
    """Old sessions go, those that hold changes stay, and the next run says so, once."""
    env = {"ATOLL_GC": wanted} if wanted else {}
    staged = Staged(sandbox)
    staged.run("true")
    empty, stamp = staged.session, sandbox.state / "atoll" / "gc"
    assert stamp.stat().st_size == 0, "the first run only begins to count"
    staged.run("echo x >changed", env={"ATOLL_GC": "0s"})
    changed, sessions = staged.session, sandbox.state / "atoll" / "sessions"
    assert (sessions / empty).exists(), "a day has not passed"
    age(sandbox, 2)
    staged.run("true", env=env)
    if is_removed:
        wait_until(lambda: stamp.stat().st_size, what="the line of gc")
    assert (sessions / empty).exists() != is_removed and (sessions / changed / "stage").exists()
    assert stamp.stat().st_mtime > time.time() - 3600 or wanted in ("off", "nonsense")
    said = [staged.run("true").err for _ in range(2)]
    assert ["tidied up by itself: " in text for text in said] == [is_removed, False], said
