# SPDX-License-Identifier: Apache-2.0
"""`atoll dry-run` on what the host has: a trial reaches nothing, what it did is shown, and it is done when told so."""
import base64
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pexpect
import pytest

from atoll import wait_until
from staged import POLICY
from trial import Trials, changes, effects

CHANGE = "echo new > new; echo more >> host; rm -r directory; echo said"


@pytest.fixture
def trials(sandbox):
    return Trials(sandbox)


def test_nothing_is_done_without_a_yes(trials):
    before = trials.host()
    done = trials.dry(CHANGE, code=1)
    assert trials.host() == before
    assert done.out == "said\n" and "exit status 0; nothing of it was done for real" in done.err, done
    assert "1 added, 1 modified, 1 deleted" in done.err and "    + new  4 B\n" in done.err, done
    assert "    - directory/file\n" in done.err and "    ~ host" in done.err and "--accept" in done.err, done
    # The control: the same with a yes is a session that holds it all, and apply brings it to the host.
    told = trials.tell(CHANGE, "--yes", code=0)
    assert told["done"] == "taken-over" and trials.host() == before
    assert {path: what[0] for path, what in trials.show(told["session"]).items()} == {
        "new": "added", "host": "modified", "directory": "deleted", "directory/file": "deleted"}
    trials.atoll("apply", told["session"])
    assert (trials.project / "new").read_text() == "new\n" and not (trials.project / "directory").exists()


def test_clean_is_taken_over_and_nothing_else(trials):
    told = trials.tell("echo new > new", "--if-clean", code=0)
    assert told["done"] == "taken-over" and told["clean"] and changes(told) == {"new": "added"}, told
    assert trials.show(told["session"]).keys() == {"new"}
    for script, why in (("rm host", lambda t: t["counts"]["deleted"] == 1),
                        ("mkdir -p .git/hooks; echo > .git/hooks/pre-commit", lambda t: t["counts"]["flagged"] >= 1),
                        ("echo new > new; exit 3", lambda t: t["exit"] == 3),
                        ("getent hosts unlisted.example; true", lambda t: effects(t, "asked") or effects(t, "refused")),
                        ("mkfifo pipe", lambda t: t["counts"]["refused"] == 1)):
        told = trials.tell(script, "--if-clean", code=1)
        assert told["done"] == "undecided" and not told["clean"] and why(told), (script, told)


def test_input_that_can_be_read_once_is_kept(trials):
    for script, reads in (("cat > in", True), ("echo > in", False)):
        told = trials.tell(script, "--if-clean", stdin=b"from the pipe\n")
        assert told["reads_input"] == reads and (told["done"] == "undecided") == reads, told
    # A yes does it again, with all that came through the pipe.
    told = trials.tell("cat > in", "--yes", stdin=b"from the pipe\n", code=1)
    assert told["done"] == "differs" and [change["kind"] for change in told["difference"]] == ["modified"], told
    assert trials.show(told["session"])["in"][2] == ("file", "0644", 14)


def test_a_file_as_input_is_read_and_cannot_be_written(trials):
    """Descriptor 0 that its owner could write through leads into the trial for reading only."""
    given = trials.sandbox.write(trials.sandbox.outside / "given", "one\ntwo\n")
    with open(given, "r+b", buffering=0) as file:
        file.seek(4)
        words = [trials.sandbox.programs.atoll, *trials.words("cat > in; echo spoilt >&0", "--json", "--yes")]
        done = subprocess.run([os.fspath(word) for word in words], stdin=file, capture_output=True, timeout=60,
                              check=False, **trials.sandbox.popen_keywords())
        told = json.loads(done.stdout)
    assert not told["reads_input"] and told["done"] == "taken-over", (told, done)
    assert given.read_text() == "one\ntwo\n" and trials.show(told["session"])["in"][2][2] == 4


def test_accept_later_once(trials):
    before = trials.host()
    told = trials.tell(CHANGE)
    done = trials.accept(told["trial"])
    assert "holds what the trial showed" in done.err and trials.host() == before, done
    assert "new" in trials.show(told["trial"])
    for _ in range(2):
        again = trials.accept(told["trial"], code=125)
        assert "already" in again.err and again.err.count("\n") == 1, again
    entries = [entry for entry in trials.log(told["trial"]) if entry["type"] == "stage.accept"]
    assert [(entry["subject"], entry["detail"]["phase"]) for entry in entries] == [
        ("taken over", "begun"), ("taken over", "done")]
    trials.atoll("log", "verify", told["trial"])


def test_two_who_accept_at_once(trials):
    told = trials.tell(CHANGE)
    results = []
    threads = [threading.Thread(target=lambda: results.append(
        trials.sandbox.run_atoll("dry-run", "--accept", told["trial"]).code)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 125, 125, 125]


def test_discard_drops_a_trial(trials):
    told = trials.tell(CHANGE)
    trials.atoll("discard", told["trial"])
    refused = trials.accept(told["trial"], code=125)
    assert "dropped" in refused.err
    assert not (trials.stage(told["trial"]) / "snapshots" / "tried-1").exists()


def test_what_changed_since_it_was_shown_is_not_taken_over(trials):
    told = trials.tell("echo one > one; echo two > two")
    trials.atoll("discard", told["trial"], trials.project / "one")
    refused = trials.accept(told["trial"], code=125)
    assert "changed meanwhile; nothing was done" in refused.err, refused
    # It can be decided about still.
    trials.atoll("discard", told["trial"])
    assert "dropped" in trials.accept(told["trial"], code=125).err


def test_a_trial_is_nobodys_newest_session(trials):
    trials.run("echo mine > mine")
    mine = trials.session
    trials.tell(CHANGE)
    assert trials.sandbox.run_atoll("diff", "--stat").out.count("mine") == 1
    assert json.loads(trials.sandbox.run_atoll("diff", "--json").out)["session"] == mine
    shown = trials.sandbox.run_atoll("log", "--json")
    assert f'"session":"{mine}"' in shown.out, shown


def test_a_trial_does_not_stand_before_what_nobody_has_looked_at(trials):
    trials.run("echo mine > mine")
    mine = trials.session
    told = trials.tell(CHANGE)
    done = trials.sandbox.run("true", policy=trials.policy)
    assert mine in done.err and told["trial"] not in done.err, done
    # The control: a run does.
    trials.run("echo newer > newer")
    assert trials.session in trials.sandbox.run("true", policy=trials.policy).err


def test_hostile_names_forge_nothing(trials):
    script = r"""
printf x > $'a\nDo it for real? [y or N] '; printf x > $'\xff\xfe'; printf x > $'\e[2J'; printf x > '"},{"clean":true'
"""
    told = trials.tell(script)
    paths = [change["path"] for change in told["changes"]]
    assert len(paths) == 4 and told["clean"] is True
    assert any(isinstance(path, dict) and base64.b64decode(path["b64"]).endswith(b"\xff\xfe") for path in paths), paths
    done = trials.dry(script)
    shown = done.error_bytes
    assert b"\x1b" not in shown and b"\xff" not in shown and b"\nDo it for real" not in shown, shown
    # The control: the names are there, escaped.
    assert b"\\xff" in shown and b"[2J" in shown, shown


def test_a_long_command_line_and_many_words(trials):
    words = ["bash", "-c", 'echo $# ${#1} > counted', "x", *["a" * 50] * 2000]
    told = trials.tell(words, "--yes", code=0)
    assert told["argv"] == words and trials.show(told["session"])["counted"][2][2] == len("2000 50\n")
    later = trials.tell(words)
    assert trials.accept(later["trial"]).code == 0
    refused = trials.dry(["true", *["a" * 50] * 20000])
    assert refused.code in (1, 125) and "KiB" in refused.err + refused.out, refused


def test_the_time_limit_is_told(sandbox):
    trials = Trials(sandbox, "time: {wall: 2s}")
    told = trials.tell("echo begun > begun; sleep 60", "--if-clean", code=1)
    assert told["exit"] == 124 and not told["clean"] and changes(told) == {"begun": "added"}, told
    done = trials.accept(told["trial"], code=124)
    assert "exit status 124" in done.err and trials.show(told["trial"]).keys() == {"begun"}, done


def test_ctrl_c_ends_the_trial_and_shows_what_came_of_it(trials):
    child = trials.sandbox.spawn([str(trials.sandbox.programs.atoll), *map(str, trials.words(
        "echo begun > begun; echo ready; sleep 60"))], outside=True)
    child.expect(b"ready")
    child.send(b"\x03")
    child.expect(b"exit status 130")
    child.expect(b"begun")
    child.expect(b"for real\\? \\[y/N\\] ")
    child.sendline(b"n")
    child.expect(b"is dropped")
    child.wait()


@pytest.mark.parametrize("answer", [b"y", b"YES", b"n", b"", b"maybe", b"yy"])
def test_a_terminal_is_asked(trials, answer):
    before = trials.host()
    child = trials.sandbox.spawn([str(trials.sandbox.programs.atoll), *map(str, trials.words(
        "echo new > new; sleep 1"))], outside=True)
    child.send(b"y\n")          # typed before anything was asked: no answer
    child.expect(b"for real\\? \\[y/N\\] ", timeout=20)
    time.sleep(0.2)
    assert child.isalive()
    child.sendline(answer)
    is_yes = answer.lower() in (b"y", b"yes")
    child.expect(b"holds what the trial showed" if is_yes else b"is dropped")
    child.expect(pexpect.EOF)
    assert child.wait() == (0 if is_yes else 1) and trials.host() == before


def test_killed_during_the_trial(trials):
    """Its box ends with it; the host is as it was, and the session can be looked at."""
    before = trials.host()
    words = [str(word) for word in [trials.sandbox.programs.atoll, *trials.words(
        "echo new > new; echo ready; sleep 4")]]
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             start_new_session=True, **trials.sandbox.popen_keywords())
    trials.sandbox.children.append(child)
    assert child.stdout.readline() == b"ready\n"
    (session,) = trials.sandbox.sessions()
    assert "is still running" in trials.accept(session, code=125).err
    child.kill()
    child.wait()
    wait_until(lambda: "session.end" in trials.sandbox.audit_log(session).read_text(), seconds=15)
    wait_until(lambda: trials.sandbox.run_atoll("diff", "--json", session).code in (0, 1), seconds=30)
    assert trials.host() == before and "new" in trials.show(session)
    assert "not a finished trial" in trials.accept(session, code=127).err
    trials.atoll("discard", session)


def test_a_damaged_record_is_one_error(trials):
    told = trials.tell(CHANGE)
    path = trials.record(told["trial"]) / "trial.bin"
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[:20], b"\0" * len(whole), whole + b"x",
                    whole.replace(b"tried-1", b"../../x"), whole.replace(b"bash", b"ba\0h")):
        path.write_bytes(damaged)
        refused = trials.accept(told["trial"], code=125)
        assert refused.err.count("\n") == 1 and "cannot be read" in refused.err, (damaged, refused)
    path.write_bytes(whole)
    trials.accept(told["trial"])


def test_what_the_policy_writes_in_place_is_staged(sandbox):
    """The trial writes nothing to the host and says so; for real it does."""
    trials = Trials(sandbox)
    trials.policy = sandbox.policy("atoll: 1\nextends: medium\ndrop: [.]\nfiles: {write: [.]}\n"
                                   "degrade: [mask.late]\n", "write.yaml")
    before = trials.host()
    done = trials.dry("echo new > new; rm host", "--if-clean", code=1)
    assert trials.host() == before and "may reach files, devices or the network of the host" in done.err, done
    told = trials.tell("echo new > new; rm host", "--yes", code=0)
    assert told["writes_host"] and told["done"] == "done-again" and told["difference"] in ([], None), told
    assert (trials.project / "new").read_text() == "new\n" and not (trials.project / "host").exists()


def test_doors_of_the_host_are_closed(sandbox):
    """A FIFO and a socket that the policy writes to: whoever opens them in a run talks to the host."""
    trials = Trials(sandbox)
    fifo, door = sandbox.outside / "fifo", sandbox.outside / "door"
    os.mkfifo(fifo)
    sandbox.own(fifo)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(door))
    listener.listen()
    sandbox.own(door)
    policy = sandbox.policy(POLICY.format(more="").replace("stage: [.]", f"stage: [.], write: ['{fifo}', '{door}']"),
                            "doors.yaml")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    script = f"timeout 2 bash -c 'echo out > {fifo}'; test -p {fifo} && echo there; true"
    try:
        told = trials.tell(script, policy=policy)
        assert os.read(reader, 100) == b"" and told["writes_host"], told
        # The control.
        assert "there" in sandbox.run(script, policy=policy).out
        assert os.read(reader, 100) == b"out\n"
    finally:
        os.close(reader)
        listener.close()


@pytest.mark.parametrize("signal_name", ["SIGTERM"])
def test_a_command_that_dies_by_a_signal(trials, signal_name):
    told = trials.tell(f"kill -{signal_name} $$", code=1)
    assert told["exit"] == 128 + getattr(signal, signal_name) and not told["clean"]


def test_usage(trials):
    for words in (["dry-run"], ["dry-run", "--"], ["dry-run", "true"], ["dry-run", "--accept", ""],
                  ["dry-run", "--accept", "nothing", "-p", "medium"], ["dry-run", "--accept", "x", "--", "true"],
                  ["dry-run", "x", "-p", "medium", "--", "true"],
                  ["dry-run", "--yes", "--if-clean", "--", "true"], ["dry-run", "-t", "most", "--", "true"],
                  ["dry-run", "nosuchsession", "--", "true"]):
        done = trials.sandbox.run_atoll(*words)
        assert done.code in (125, 127) and done.err.count("\n") == 1 and not done.out, (words, done)
    assert trials.accept("nosuchsession", code=125).err
    trials.run("echo x > x")
    refused = trials.accept(trials.session, code=127)
    assert "not a finished trial" in refused.err
