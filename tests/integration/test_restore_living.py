# SPDX-License-Identifier: Apache-2.0
"""`atoll restore` while the session lives: what programs inside see afterwards is what the snapshot holds."""
import json
import os
import random
import signal
import subprocess

import pytest

from atoll import ROOT, wait_until
from seeds import seeds
from staged import Staged
from tree_state import GID, LINKS, MTIME, UID, differences, without

LIBRARY = ROOT / "tests" / "lib"
PYTHON = "/usr/bin/python3"


@pytest.fixture
def staged(sandbox):
    staged = Staged(sandbox)
    yield staged
    if staged.session:
        sandbox.run_atoll("stop", staged.session)


def restore(staged, name, code=0):
    return staged.atoll("restore", staged.session, name, code=code)


def test_what_was_written_since_is_gone_and_comes_back(staged):
    session = staged.detach()
    staged.exec(session, """echo one >a; mkdir d; echo x >d/x; ln -s a link; mkfifo pipe; echo s >script
        chmod 755 script""")
    staged.atoll("snapshot", session, "one")
    staged.exec(session, """echo two >a; rm -r d; echo now-a-file >d; rm link; mkdir link; echo y >link/y; rm pipe
        echo new >new; rm -r directory; echo changed >host; chmod 600 script; rm script; touch script""")
    said = restore(staged, "one").out
    assert f"atoll restore {session} before-restore-1" in said and "keeps the old one" in said, said
    assert staged.exec(session, "cat a d/x host directory/file; readlink link; test -p pipe && echo pipe; ls; "
                                "stat -c %a script") == \
        "one\nx\nhost\nhost file\na\npipe\na\nd\ndirectory\nhost\nlink\npipe\nscript\n755\n"
    restore(staged, "before-restore-1")
    seen = staged.exec(session, "cat a d link/y new host; ls; test ! -e directory/file && test ! -s script; echo $?")
    assert seen == "two\nnow-a-file\ny\nnew\nchanged\na\nd\nhost\nlink\nnew\nscript\n0\n"
    assert "holds already" in restore(staged, "before-restore-1").out
    names = [item["name"] for item in staged.snapshots(session)]
    assert names == ["one", "before-restore-1", "before-restore-2"], names
    assert (staged.sandbox.project / "host").read_text() == "host\n"


def test_after_it_the_session_ends_and_is_reviewed_as_ever(staged):
    session = staged.detach()
    staged.exec(session, "echo one >a; rm host")
    staged.atoll("snapshot", session, "one")
    shown = staged.show(session)
    staged.exec(session, "rm a; echo other >host; echo b >b; rm -r directory")
    restore(staged, "one")
    assert staged.show(session) == shown
    staged.atoll("stop", session)
    assert staged.show(session) == shown
    staged.atoll("apply", session)
    assert (staged.sandbox.project / "a").read_text() == "one\n"
    assert not (staged.sandbox.project / "host").exists()
    assert (staged.sandbox.project / "directory" / "file").read_text() == "host file\n"


def test_an_open_file_is_not_rewritten_under_its_program(staged):
    session = staged.detach()
    staged.exec(session, "echo one >a")
    staged.atoll("snapshot", session, "one")
    staged.exec(session, "echo two >a")
    with subprocess.Popen([staged.sandbox.programs.atoll, "exec", session, "--", "bash", "-c",
                           "exec 3<a; echo open >opened; until test -e go; do sleep 0.1; done; cat <&3; cat a"],
                          stdout=subprocess.PIPE, text=True, **staged.sandbox.popen_keywords()) as holder:
        wait_until(lambda: staged.exec(session, "ls").count("opened"), 30, "the program that opens it")
        restore(staged, "one")
        staged.exec(session, "touch go")
        assert holder.communicate(timeout=20)[0] == "two\none\n"


def test_names_of_one_file_attributes_and_closed_directories(staged):
    session = staged.detach()
    staged.exec(session, """echo one >a; ln a b; mkdir closed; echo x >closed/x; chmod 0 closed; echo s >s
        chmod 711 s; touch -d @1000 s; python3 -c 'import os; os.setxattr("a", "user.k", b"v")'""")
    staged.atoll("snapshot", session, "one")
    staged.exec(session, """rm b; echo other >a; chmod 755 closed; rm -r closed; mkdir -p gone/deep; chmod 0 gone/deep
        chmod 0 gone; chmod 600 s; touch s""")
    restore(staged, "one")
    seen = staged.exec(session, """test a -ef b && echo linked; cat b; stat -c '%a %Y' s; stat -c %a closed
        chmod 700 closed; cat closed/x; ls -d gone 2>&1; python3 -c 'import os; print(os.getxattr("a", "user.k"))'""")
    assert seen == "linked\none\n711 1000\n0\nx\nls: cannot access 'gone': No such file or directory\nb'v'\n", seen


def test_links_that_lead_elsewhere_are_replaced_and_not_followed(staged):
    """What the agent puts in the place of a directory, and under the name that a restored file has at first."""
    outside = staged.sandbox.make_directory(staged.sandbox.base / "outside")
    staged.sandbox.write(outside / "x", "the person's\n")
    session = staged.detach()
    staged.exec(session, "mkdir -p d/e; echo mine >d/x; echo mine >d/e/x; echo 1 >a")
    staged.atoll("snapshot", session, "one")
    staged.exec(session, f"""rm -r d; ln -s {outside} d; mkdir /tmp/other; echo theirs >/tmp/other/x; mkdir d2
        for i in 0 1 2; do ln -s /tmp/other/x .atoll-restore-$i; done; rm a; ln -s /tmp/other/x a; cat a""")
    # The link does lead there, for whoever follows it.
    assert (staged.sandbox.staged("d", session)).resolve() == outside
    restore(staged, "one")
    assert staged.exec(session, "cat d/x d/e/x a /tmp/other/x; ls -A | grep -c atoll; true") == \
        "mine\nmine\n1\ntheirs\n0\n"
    assert (outside / "x").read_text() == "the person's\n" and [path.name for path in outside.iterdir()] == ["x"]


def test_a_restore_that_is_killed_leaves_the_name_of_what_was_there(staged):
    """The box lets everything go on, and the checkpoint leads back."""
    session = staged.detach()
    staged.exec(session, "mkdir many; seq 3000 | sed s,^,many/, | xargs touch; echo one >a")
    staged.atoll("snapshot", session, "one")
    staged.exec(session, "rm -r many; echo two >a; mkdir other; seq 3000 | sed s,^,other/, | xargs touch")
    environment = staged.sandbox.popen_keywords()
    taking = subprocess.Popen([staged.sandbox.programs.atoll, "restore", session, "one"], start_new_session=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **environment)
    snapshots = staged.stage(session) / "snapshots"
    while taking.poll() is None and not (snapshots / "before-restore-1").exists():
        pass
    os.killpg(taking.pid, signal.SIGKILL)
    taking.wait()
    wait_until(lambda: staged.sandbox.run_atoll("exec", session, "--", "true").code == 0, 30, "that all goes on")
    wait_until(lambda: staged.sandbox.run_atoll("restore", session, "before-restore-1").code == 0, 30, "the way back")
    assert staged.exec(session, "cat a; ls | tr '\n' ' '; ls other | wc -l") == "two\na directory host other 3000\n"


@pytest.mark.only("root")
@pytest.mark.needs("chattr")
def test_what_fails_in_the_middle_takes_back_what_it_did(staged):
    """The host holds z fast, which comes after a and before zz: the restore of a is taken back."""
    session = staged.detach()
    staged.exec(session, "echo one >a; echo one >z; echo one >zz")
    staged.atoll("snapshot", session, "one")
    staged.exec(session, "echo two >a; echo two >>z; echo two >zz")
    held = staged.sandbox.staged("z", session)
    if subprocess.run(["chattr", "+i", held], check=False, capture_output=True).returncode:
        pytest.skip("this file system has no immutable files")
    try:
        done = staged.sandbox.run_atoll("restore", session, "one")
    finally:
        subprocess.run(["chattr", "-i", held], check=True)
    assert done.code == 125 and "Everything is as it was before" in done.err, done
    assert staged.exec(session, "cat a z zz") == "two\none\ntwo\ntwo\n"
    # The control: nothing else was in the way.
    restore(staged, "one")
    assert staged.exec(session, "cat a z zz") == "one\none\none\n"


def test_a_fork_goes_back_over_the_layers_of_its_origin(staged):
    first = staged.detach()
    staged.exec(first, "mkdir d; echo 1 >d/x; echo 2 >d/y; rm -r directory")
    staged.atoll("stop", first)
    started = staged.atoll("run", "-d", "-p", staged.policy, "--continue", first)
    session = staged.session = started.out.strip()
    staged.exec(session, "echo 3 >d/z; rm d/y")
    staged.atoll("snapshot", session, "one")
    staged.exec(session, "rm -r d; mkdir directory; echo new >directory/new; echo d >d")
    restore(staged, "one")
    assert staged.exec(session, "cd d; head *; test -e ../directory; echo $?") == "==> x <==\n1\n\n==> z <==\n3\n1\n"
    restore(staged, "before-restore-1")
    assert staged.exec(session, "cat d; ls directory") == "d\nnew\n"


def test_the_log_says_so_and_nothing_stands_still_afterwards(staged):
    session = staged.detach()
    staged.exec(session, "echo one >a")
    staged.atoll("snapshot", session, "one")
    staged.exec(session, "echo two >a")
    restore(staged, "one")
    staged.exec(session, "echo alive >b")
    log = staged.atoll("log", "--json", session).out
    events = [json.loads(line) for line in log.splitlines()]
    told = [(event["type"], event["subject"]) for event in events if event["type"].startswith("stage.")]
    assert ("stage.restore", "one") in told and ("stage.snapshot", "before-restore-1") in told, told
    assert staged.atoll("log", "verify", session).code == 0


def test_what_it_cannot_do_is_said_and_changes_nothing(staged):
    session = staged.detach()
    staged.exec(session, "echo one >a")
    gone = staged.atoll("restore", session, "nothing", code=125)
    assert "no such snapshot" in gone.err
    assert staged.snapshots(session) == []
    assert staged.exec(session, "cat a") == "one\n"


def test_masked_names_and_what_is_written_in_place_stay_as_they_are(sandbox):
    sandbox.write(sandbox.project / "straight" / "s", "host\n")
    sandbox.write(sandbox.project / ".env", "SECRET\n")
    staged = Staged(sandbox)
    staged.policy = sandbox.policy("""
atoll: 1
extends: medium
drop: [.]
files: {stage: [.], write: [straight], mask: ["**/.env"]}
""", "places.yaml")
    session = staged.detach()
    try:
        staged.exec(session, "echo one >a; mkdir sub")
        staged.atoll("snapshot", session, "one")
        staged.exec(session, "echo two >a; echo in-place >straight/s; rmdir sub; touch b")
        restore(staged, "one")
        seen = staged.exec(session, "cat a straight/s; ls; cat .env 2>&1; true")
        assert seen.startswith("one\nin-place\na\ndirectory\nhost\nstraight\nsub\n"), seen
        assert "SECRET" not in seen
        assert (sandbox.project / "straight" / "s").read_text() == "in-place\n"
        assert (sandbox.project / ".env").read_text() == "SECRET\n"
    finally:
        sandbox.run_atoll("stop", session)


def test_a_full_disk_leaves_what_was_there(sandbox):
    """The checkpoint or the files find no room: the state of before stays, and the session goes on."""
    staged = Staged(sandbox, "resources: {disk: 3MiB}")
    session = staged.detach()
    try:
        staged.exec(session, "head -c 2000000 /dev/urandom >big; echo one >a")
        staged.atoll("snapshot", session, "one")
        staged.exec(session, "rm big; echo two >a")
        before = staged.exec(session, "ls; cat a")
        done = sandbox.run_atoll("restore", session, "one")
        after = staged.exec(session, "ls; cat a")
        if done.code == 0:
            assert "big" in after
        else:
            assert done.code == 125 and after == before, (done, after)
    finally:
        sandbox.run_atoll("stop", session)


def source():
    """For standard input: the sandbox sees no file of the tests."""
    state = (LIBRARY / "tree_state.py").read_text()
    lines = [line for line in (LIBRARY / "operations.py").read_text().splitlines()
             if not line.startswith("from tree_state")]
    return (state.split("if __name__")[0] + "\n".join(lines) + "\n").encode()


def operate(staged, session, kind, count, seed):
    done = staged.sandbox.run_atoll("exec", session, "--", PYTHON, "-", kind, str(count), str(seed), stdin=source(),
                                    timeout=120)
    assert done.code == 0, done
    return json.loads(done.out)["state"]


def make_project(sandbox, place, chance):
    for i in range(chance.randrange(4, 16)):
        directory = "/".join(chance.choice(("src", "doc", "a", "b", "deep/er")) for _ in range(chance.randrange(4)))
        path = place / directory / f"file{i}"
        if any(parent.is_file() for parent in path.parents):
            continue
        sandbox.write(path, chance.randbytes(chance.choice((0, 10, 10, 5000))), chance.choice((0o644, 0o755, 0o600)))
        if chance.random() < 0.3:
            os.setxattr(path, "user.before", b"x")
        os.utime(path, ns=(chance.randrange(10 ** 18),) * 2)


@pytest.mark.parametrize("seed", seeds(6))
def test_the_tree_inside_is_the_one_of_the_snapshot(staged, seed):
    """Random operations, a snapshot after each batch, then back and forth between them: each time the state is
    exactly what it was when the snapshot was taken."""
    chance = random.Random(f"restore {seed}")
    place = staged.sandbox.project / f"s{seed}"
    staged.sandbox.make_directory(place)
    make_project(staged.sandbox, place, chance)
    session = staged.detach()
    if seed % 2:
        operate(staged, session, "before", 20, seed)
        staged.atoll("stop", session)
        session = staged.session = staged.atoll("run", "-d", "-p", staged.policy, "--continue", session).out.strip()
    states = []
    for step in range(4):
        states.append(operate(staged, session, f"inside{step}", 20, seed))
        staged.atoll("snapshot", session, f"step{step}")
    for _ in range(6):
        wanted = chance.randrange(4)
        restore(staged, f"step{wanted}")
        found = operate(staged, session, "nothing", 0, seed)
        assert differences(without(states[wanted], UID, GID, LINKS), without(found, UID, GID, LINKS)) == [], wanted
        if chance.random() < 0.4:
            operate(staged, session, f"more{_}", 10, seed)
