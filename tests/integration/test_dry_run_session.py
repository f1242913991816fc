# SPDX-License-Identifier: Apache-2.0
"""`atoll dry-run ID`: a trial on what a session holds, and what becomes of it there."""
import os
import signal
import subprocess
import threading

import pexpect
import pytest

from trial import Trials, changes, effects


@pytest.fixture
def trials(sandbox):
    return Trials(sandbox)


@pytest.fixture
def ended(trials):
    """A session that has ended and holds one file."""
    trials.run("echo one > a")
    return trials.session


@pytest.fixture
def live(trials):
    session = trials.detach()
    trials.exec(session, "echo one > a")
    yield session
    trials.sandbox.run_atoll("stop", session)


def test_what_was_shown_becomes_the_state_and_restore_takes_it_back(trials, ended):
    before, host = trials.show(ended), trials.host()
    told = trials.tell("cat a; echo two > a; echo b > b", session=ended, code=1)
    assert told["of"] == ended and changes(told) == {"a": "modified", "b": "added"}, told
    assert trials.show(ended) == before
    trials.accept(told["trial"])
    assert trials.show(ended).keys() == {"a", "b"} and trials.host() == host
    assert sorted(trials.names(ended)) == ["before-restore-1", "done-1", "dry-run-1"]
    assert trials.fork([ended], "cat a b") == "two\nb\n"
    trials.atoll("restore", ended, "dry-run-1")
    assert trials.show(ended) == before
    # What was taken over stays whole though its trial is dropped and collected.
    trials.atoll("gc")
    trials.atoll("restore", ended, "done-1")
    assert trials.fork([ended], "cat a b") == "two\nb\n"


def test_a_session_that_moved_since_is_not_overwritten(trials, ended):
    told = trials.tell("echo b > b", session=ended)
    trials.atoll("discard", ended, trials.project / "a")
    trials.run("echo c > c", options=["--continue", ended])
    moved = trials.show(ended)
    done = trials.accept(told["trial"], code=1)
    # It was done again on what the session holds now; that differs from what was shown, and waits.
    assert "differs" in done.err and "- a" in done.err, done
    assert trials.show(ended) == moved


def test_what_takes_back_all_that_was_staged_is_a_change(trials, ended):
    """The trial ends as the host is, and unlike the session: it is told, it is not clean, and it is done."""
    told = trials.tell("rm a", "--if-clean", session=ended, code=1)
    assert changes(told) == {"a": "deleted"} and not told["clean"] and told["done"] == "undecided", told
    assert trials.show(ended).keys() == {"a"}
    trials.accept(told["trial"])
    assert trials.show(ended) == {} and trials.fork([ended], "ls") == "directory\nhost\n"
    # The same done a second time, for it reached for something.
    trials.atoll("restore", ended, "dry-run-1")
    told = trials.tell("getent hosts unlisted.example; rm a", "--yes", session=ended, code=0)
    assert told["done"] == "done-again" and changes(told) == {"a": "deleted"} and not told["difference"], told
    assert trials.show(ended) == {}


def test_what_takes_back_all_that_a_running_session_staged_is_a_change(trials, live):
    told = trials.tell("rm a", "--if-clean", session=live, code=1)
    assert changes(told) == {"a": "deleted"} and not told["clean"] and trials.exec(live, "cat a") == "one\n", told


def test_done_again_where_something_was_asked(trials, ended):
    """It reached for the network, so that nothing is taken over; alike, the second run becomes the state."""
    told = trials.tell("getent hosts unlisted.example; echo b > b", "--yes", session=ended, code=0)
    assert effects(told, "asked") and told["done"] == "done-again" and told["session"] == ended, told
    assert trials.show(ended).keys() == {"a", "b"} and "done-1" in trials.names(ended)


def test_a_session_that_runs(trials, live):
    host = trials.host()
    told = trials.tell("echo two > a; echo x > b; echo said", "--yes", session=live, code=0)
    assert told["done"] == "done-again" and not told["difference"], told
    assert trials.exec(live, "cat a b") == "two\nx\n" and trials.host() == host


def test_a_session_that_runs_is_not_touched_by_the_trial(trials, live):
    trials.tell("echo two > a; rm host", session=live, code=1)
    assert trials.exec(live, "cat a host") == "one\nhost\n"


def test_another_outcome_and_the_way_back(trials, live):
    done = trials.dry("date +%s%N > date", "--yes", session=live, code=1)
    assert "differs from what was shown" in done.err and "~ date" in done.err, done
    assert trials.exec(live, "ls") == "a\ndate\ndirectory\nhost\n"
    (back,) = [line for line in done.err.splitlines() if line.startswith("  back")]
    for words in back.split("back", 1)[1].split(";"):
        trials.atoll(*words.split()[1:])
    assert trials.show(live).keys() == {"a"}


def test_going_back_at_once_on_a_terminal(trials, live):
    child = trials.sandbox.spawn([str(trials.sandbox.programs.atoll), *map(str, trials.words(
        "date +%s%N > date", session=live))], outside=True)
    for question, answer in ((b"for real", b"y"), (b"all right", b"n"), (b"what it was before", b"y")):
        child.expect(question + b"\\? \\[y/N\\] ", timeout=20)
        child.sendline(answer)
    child.expect(b"is what it was before")
    child.expect(pexpect.EOF)
    assert child.wait() == 1 and trials.show(live).keys() == {"a"}


def test_a_no_leaves_nothing_in_the_session(trials, ended):
    child = trials.sandbox.spawn([str(trials.sandbox.programs.atoll), *map(str, trials.words(
        "echo b > b", session=ended))], outside=True)
    child.expect(b"\\[y/N\\] ", timeout=20)
    child.sendline(b"n")
    child.expect(b"is dropped")
    child.expect(pexpect.EOF)
    assert trials.names(ended) == [] and trials.show(ended).keys() == {"a"}
    told = trials.tell("echo b > b", session=ended)
    assert trials.names(ended) == ["dry-run-1"]
    trials.atoll("discard", told["trial"])
    assert trials.names(ended) == [] and trials.show(ended).keys() == {"a"}


def test_two_at_once(trials, ended):
    """Both are tried on the same state; one becomes it, and the other does not undo that unseen."""
    told = [trials.tell(f"echo {name} > {name}", session=ended) for name in ("left", "right")]
    trials.accept(told[0]["trial"])
    second = trials.accept(told[1]["trial"], code=1)
    assert "differs" in second.err, second
    assert trials.show(ended).keys() == {"a", "left"}
    results, words = [], [trials.words(f"echo {n} > n{n}", "--yes", session=ended) for n in range(3)]
    threads = [threading.Thread(target=lambda w=w: results.append(trials.sandbox.run_atoll(*w).code)) for w in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 in results and set(results) <= {0, 1, 125}, results
    assert len([name for name in trials.show(ended) if name.startswith("n")]) == results.count(0)
    trials.atoll("log", "verify", ended)


def test_a_session_that_is_applied_in_between(trials, ended):
    told = trials.tell("echo b > b", session=ended)
    trials.atoll("apply", ended)
    trials.accept(told["trial"])
    assert (trials.project / "a").read_text() == "one\n" and not (trials.project / "b").exists()
    assert "b" in trials.show(ended)


def test_an_origin_that_is_gone(trials, ended):
    told = trials.tell("echo b > b", session=ended)
    trials.atoll("snapshot", "--remove", ended, "dry-run-1")
    refused = trials.accept(told["trial"], code=125)
    assert refused.err.count("\n") <= 2 and "cannot be" in refused.err or "no such snapshot" in refused.err, refused
    trials.atoll("discard", told["trial"])


def test_a_trial_of_a_trial(trials):
    first = trials.tell("echo one > one")
    second = trials.tell("cat one; echo two > two", "--yes", session=first["trial"], code=0)
    assert changes(second) == {"two": "added"} and trials.show(first["trial"]).keys() == {"one", "two"}
    # The first was shown without that.
    assert "changed meanwhile" in trials.accept(first["trial"], code=125).err


def test_nothing_staged_is_refused(trials):
    trials.run("true")
    done = trials.dry("true", session=trials.session, code=125)
    assert "no staged changes" in done.err and done.err.count("\n") == 1, done


def test_killed_during_a_trial_of_a_session(trials, ended):
    before = trials.show(ended)
    child = subprocess.Popen([str(word) for word in [trials.sandbox.programs.atoll, *trials.words(
        "echo b > b; echo ready; sleep 1", session=ended)]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, start_new_session=True, **trials.sandbox.popen_keywords())
    trials.sandbox.children.append(child)
    assert child.stdout.readline() == b"ready\n"
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert trials.show(ended) == before
    told = trials.tell("echo b > b", "--yes", session=ended, code=0)
    assert told["done"] == "taken-over" and trials.show(ended).keys() == {"a", "b"}


# What the trial does, what is done for real, and what of it is told; {} is the same outcome.
OUTCOMES = [
    ("echo a > x", "echo a > x", {}),
    ("echo a > x", "echo b > x", {"x": "modified"}),
    ("echo a > x", "true", {"x": "deleted"}),
    ("true", "echo a > x", {"x": "added"}),
    ("echo a > x; chmod 600 x", "echo a > x; chmod 644 x", {"x": "modified"}),
    ("ln -s a x", "ln -s b x", {"x": "modified"}),
    ("ln -s a x", "ln -s a x", {}),
    ("mkdir x", "echo > x", {"x": "modified"}),
    ("rm host", "true", {"host": "added"}),
    ("true", "rm host", {"host": "deleted"}),
    ("rm host", "rm host", {}),
    ("echo a > x; touch -d 2001-01-01 x", "echo a > x", {}),
    ("touch -d 2001-01-01 host", "true", {}),
    ("rm -r directory; mkdir directory", "rm directory/file", {}),
    ("rm -r directory", "rm directory/file", {"directory": "added"}),
    ("mv host x", "cp host x; rm host", {}),
    ("setfattr -n user.a -v 1 host", "setfattr -n user.a -v 1 host", {}),
    ("setfattr -n user.a -v 1 host", "setfattr -n user.a -v 2 host", {"host": "modified"}),
    ("true", "setfattr -n user.a -v 2 host; touch host", {"host": "modified"}),
    ("mkdir x; setfattr -n user.a -v 1 x", "mkdir x", {"x": "modified"}),
]


@pytest.mark.needs("setfattr")
def test_each_difference_is_told(trials):
    """Inside, the session is the origin for real, and another one in the trial: so each of them does its own."""
    for trial, real, expected in OUTCOMES:
        session = trials.detach()
        try:
            told = trials.tell(f'if [ "$ATOLL_SESSION" = {session} ]; then {real}; else {trial}; fi', "--yes",
                               session=session)
            differs = {change["path"].split("/project/")[-1]: change["kind"] for change in told["difference"] or []}
            assert differs == expected and told["exit"] == 0, (trial, real, told)
            assert told["done"] == ("differs" if expected else "done-again"), (trial, real, told)
        finally:
            trials.sandbox.run_atoll("stop", "-t", "0s", session)
