# SPDX-License-Identifier: Apache-2.0
"""`atoll apply` and `atoll undo` over a real overlay: what the sandbox did arrives, what the host did stays, and an
undo gives back every byte, mode, time and attribute."""
import io
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import threading
import time

import pexpect
import pytest

from exact import describe, without_times
from overlay import Layered


def fill(sandbox):
    for name, content in {"same": "same", "edited": "before", "deleted": "d", "keep/inner": "inner", "gone/a": "a",
                          "gone/deep/b": "b", "becomes-dir": "file", "becomes-link": "file", "emptied/x": "x",
                          "mode": "mode", "b\nline\x1b[2J": "odd", "dir-to-file/y": "y"}.items():
        sandbox.write(sandbox.project / name, content)
    bad = os.fsencode(sandbox.project) + b"/\xff\xfe"
    with open(bad, "wb") as file:
        file.write(b"not utf-8")
    sandbox.own(bad)


AGENT = r"""
echo after >edited; rm deleted; echo new >keep/new; echo changed >keep/inner; rm -r gone
rm becomes-dir; mkdir becomes-dir; echo c >becomes-dir/child; rm becomes-link; ln -s /etc/shadow becomes-link
rm emptied/x; chmod 750 mode; rm -r dir-to-file; echo f >dir-to-file; chmod 710 keep
mkdir -p made/a/b; echo 1 >made/a/b/c; ln made/a/b/c made/a/linked; truncate -s 8M made/sparse; mv same renamed
printf x >"$(printf 'new\nname')"; printf x >"$(printf '\377new')"; rm "$(printf '\377\376')"
touch -d 2001-02-03T04:05:06.123456789 made/a; touch -d 1999-01-01 edited
mkdir closed; echo in >closed/in; chmod 555 closed
"""


@pytest.fixture
def layered(sandbox):
    fill(sandbox)
    return Layered(sandbox)


def changed(layered):
    shown = layered.sandbox.run_atoll("diff", "--json", layered.session)
    assert shown.code == 0, shown
    return json.loads(shown.out)["changes"]


def test_all_of_it_and_back_and_again(sandbox, layered):
    before = describe(sandbox.project)
    plain = sandbox.base / "plain"
    subprocess.run(["cp", "-a", str(sandbox.project), str(plain)], check=True)
    layered.inside(AGENT)
    assert describe(sandbox.project) == before
    subprocess.run(["sh", "-ec", AGENT], cwd=plain, check=True, **sandbox.identity.popen_keywords())
    done = sandbox.run_atoll("apply", layered.session)
    assert done.code == 0 and "applied" in done.out and "atoll undo" in done.out, done
    after = describe(sandbox.project)
    assert without_times(after) == without_times(describe(plain))
    assert after[b"made/a"][2] == 981173106123456789 and after[b"edited"][2] == describe(plain)[b"edited"][2]
    assert os.stat(sandbox.project / "made/sparse").st_blocks < 100
    assert changed(layered) == []
    assert sandbox.run_atoll("apply", layered.session).out == "nothing to apply\n"
    undone = sandbox.run_atoll("undo", layered.session)
    assert undone.code == 0, undone
    assert describe(sandbox.project) == before
    again = sandbox.run_atoll("apply", layered.session)
    assert again.code == 0 and describe(sandbox.project) == after
    assert sandbox.run_atoll("undo", layered.session).code == 0 and describe(sandbox.project) == before
    nothing = sandbox.run_atoll("undo", layered.session)
    assert nothing.code != 0 and "nothing is applied" in nothing.err
    assert not [name for name in os.listdir(sandbox.project) if name.startswith(".atoll")]


def test_undo_gives_back_the_same_inodes(sandbox, layered):
    layered.inside("echo x >edited; rm -r gone")
    inodes = {path: os.lstat(sandbox.project / path).st_ino for path in ("edited", "gone", "gone/deep/b")}
    sandbox.run_atoll("apply", layered.session)
    assert not (sandbox.project / "gone").exists()
    sandbox.run_atoll("undo", layered.session)
    assert {path: os.lstat(sandbox.project / path).st_ino for path in inodes} == inodes


def test_conflicts_are_left_and_the_rest_applied(sandbox, layered):
    layered.inside("echo agent >edited; rm deleted; rm -r gone; echo fine >keep/inner")
    time.sleep(0.02)
    for path in ("edited", "deleted", "gone/deep/b"):
        with open(sandbox.project / path, "a") as file:
            file.write("host\n")
    done = sandbox.run_atoll("apply", "--json", layered.session)
    told = json.loads(done.out)
    assert done.code == 1
    assert {os.path.relpath(each["path"], sandbox.project): each["why"] for each in told["left"]} == {
        "edited": "conflict", "deleted": "conflict", "gone/deep/b": "conflict", "gone/deep": "conflict",
        "gone": "conflict"}
    assert (sandbox.project / "edited").read_text() == "beforehost\n"
    assert (sandbox.project / "gone/deep/b").read_text() == "bhost\n" and not (sandbox.project / "gone/a").exists()
    assert (sandbox.project / "keep/inner").read_text() == "fine\n"


def test_paths_excludes_and_dry_run(sandbox, layered):
    layered.inside("echo 1 >keep/a.log; echo 1 >keep/b; mkdir -p n/m; echo 1 >n/m/o; echo 1 >edited")
    before = describe(sandbox.project)
    dry = sandbox.run_atoll("apply", "--dry-run", layered.session)
    assert "would apply" in dry.out and dry.code == 0 and describe(sandbox.project) == before
    done = sandbox.run_atoll("apply", layered.session, "keep", "-x", "*.log", cwd=sandbox.project)
    assert done.code == 0, done
    assert (sandbox.project / "keep/b").exists() and not (sandbox.project / "keep/a.log").exists()
    assert (sandbox.project / "edited").read_text() == "before"
    assert sandbox.run_atoll("apply", layered.session, "n/m/o", cwd=sandbox.project).code == 0
    assert (sandbox.project / "n/m/o").exists()
    assert {os.path.basename(each["path"]) for each in changed(layered)} == {"a.log", "edited"}
    assert sandbox.run_atoll("undo", layered.session, "n/m/o", cwd=sandbox.project).code == 0
    assert not (sandbox.project / "n/m/o").exists() and (sandbox.project / "n/m").exists()
    elsewhere = sandbox.run_atoll("apply", layered.session, "/usr")
    assert elsewhere.code == 125 and "not in a staged tree" in elsewhere.err


def test_flagged_paths_need_to_be_named(sandbox):
    sandbox.write(sandbox.project / ".git/config", "[core]\n")
    layered = Layered(sandbox)
    layered.inside("mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; echo fine >README")
    done = sandbox.run_atoll("apply", layered.session)
    assert done.code == 1 and "flagged" in done.out and "pre-commit" in done.out
    assert (sandbox.project / "README").exists() and not (sandbox.project / ".git/hooks/pre-commit").exists()
    named = sandbox.run_atoll("apply", layered.session, "--allow-flagged", ".git/hooks/pre-commit",
                              cwd=sandbox.project)
    assert named.code == 0 and (sandbox.project / ".git/hooks/pre-commit").read_text() == "evil\n", named


def test_what_is_never_applied_is_listed(sandbox, layered):
    layered.inside("mkfifo pipe; rm edited; mkfifo edited; echo x >ok; chmod 6755 ok")
    done = sandbox.run_atoll("apply", layered.session, timeout=20)
    assert done.code == 1 and "pipe" in done.out and "FIFO" in done.out
    assert not (sandbox.project / "pipe").exists() and (sandbox.project / "edited").read_text() == "before"
    assert stat.S_IMODE(os.stat(sandbox.project / "ok").st_mode) == 0o755 and "set-id" in done.out


def test_names_reach_a_terminal_escaped(sandbox, layered):
    layered.inside(r"""mkfifo "$(printf 'a\n\033[2J\377')" """)
    done = sandbox.run_atoll("apply", layered.session)
    assert "\x1b" not in done.out and r"\x1b" in done.out and r"\xff" in done.out
    told = json.loads(sandbox.run_atoll("apply", "--json", layered.session).out)
    assert "b64" in told["left"][0]["path"]


def test_undo_refuses_what_the_host_changed_since(sandbox, layered):
    layered.inside("echo agent >edited; echo agent >added; rm deleted; echo x >keep/inner")
    sandbox.run_atoll("apply", layered.session)
    (sandbox.project / "edited").write_text("mine")
    (sandbox.project / "deleted").write_text("mine")
    undone = sandbox.run_atoll("undo", layered.session)
    assert undone.code == 1 and undone.out.count("changed on the host") == 2, undone
    assert (sandbox.project / "edited").read_text() == "mine" and (sandbox.project / "deleted").read_text() == "mine"
    assert (sandbox.project / "keep/inner").read_text() == "inner" and not (sandbox.project / "added").exists()
    shown = sandbox.run_atoll("undo", "--list", layered.session)
    assert "4 paths, 2 of them taken back" in shown.out


def test_layers_of_a_chain_are_applied(sandbox, layered):
    layered.inside("echo one >edited; echo one >first")
    layered.seal()
    layered.inside("echo two >edited; rm gone/a")
    assert sandbox.run_atoll("apply", layered.session).code == 0
    assert (sandbox.project / "edited").read_text() == "two\n" and (sandbox.project / "first").exists()
    assert not (sandbox.project / "gone/a").exists()


def git(sandbox, *words):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words], cwd=sandbox.project,
                   check=True, capture_output=True, **sandbox.identity.popen_keywords())


@pytest.fixture
def repository(sandbox):
    sandbox.write(sandbox.project / "text", "".join(f"line {n}\n" for n in range(20)))
    git(sandbox, "init", "-q")
    git(sandbox, "add", ".")
    git(sandbox, "commit", "-qm", "first")
    return Layered(sandbox)


def test_a_merge_takes_both_sides(sandbox, repository):
    repository.inside("sed -i 's/line 3$/agent 3/' text")
    time.sleep(0.02)
    path = sandbox.project / "text"
    path.write_text(path.read_text().replace("line 17\n", "host 17\n"))
    path.chmod(0o600)
    os.setxattr(path, "user.host", b"stays")
    assert sandbox.run_atoll("apply", repository.session).code == 1
    done = sandbox.run_atoll("apply", "--merge", repository.session)
    # What the host closed meanwhile stays closed.
    assert path.stat().st_mode & 0o7777 == 0o600 and os.getxattr(path, "user.host") == b"stays"
    assert done.code == 0 and "merged" in done.out, done
    assert "agent 3\n" in path.read_text() and "host 17\n" in path.read_text()
    assert sandbox.run_atoll("undo", repository.session).code == 0
    assert "line 3\n" in path.read_text() and "host 17\n" in path.read_text()
    # The merge was neither side alone, and what the host has is its own again: never simply overwritten.
    assert sandbox.run_atoll("apply", repository.session).code == 1 and "host 17\n" in path.read_text()


def test_what_an_undo_takes_off_the_host_stays_only_where_it_is_little(sandbox, layered):
    """Removing a file can cost more than all else of an undo. What is kept is bounded, and in nobody's way."""
    for script, kept in (("for i in $(seq 50); do echo $i >n$i; done", 50), ("truncate -s 65M large", 0)):
        layered.inside(script)
        assert sandbox.run_atoll("apply", layered.session).code == 0
        before = {entry.name for entry in (layered.directory / "applies").iterdir()}
        assert sandbox.run_atoll("undo", layered.session).code == 0
        undo, = {entry.name for entry in (layered.directory / "applies").iterdir()} - before
        files = [path for path in (layered.directory / "applies" / undo / "slots").rglob("*") if path.is_file()]
        assert len(files) == kept and not (sandbox.project / "n1").exists()
    assert sandbox.run_atoll("apply", layered.session).code == 0
    assert sandbox.run_atoll("undo", layered.session).code == 0 and not (sandbox.project / "large").exists()


def left_of(done):
    return {os.path.basename(left["path"]): left for left in json.loads(done.out)["left"]}


def states(layered):
    """{path relative to the project: (state, settled)} of what is shown."""
    prefix = str(layered.sandbox.project) + "/"
    return {each["path"].removeprefix(prefix): (each["state"], each.get("settled", False)) for each in changed(layered)}


def test_a_merge_with_contradictions_is_made_only_when_markers_are_asked_for(sandbox, repository):
    repository.inside("sed -i 's/line 3$/agent 3/' text")
    time.sleep(0.02)
    path = sandbox.project / "text"
    path.write_text(path.read_text().replace("line 3\n", "host 3\n"))
    host = path.read_text()
    done = sandbox.run_atoll("apply", "--merge", "--json", repository.session)
    assert done.code == 1 and path.read_text() == host and "same lines" in left_of(done)["text"]["text"], done
    done = sandbox.run_atoll("apply", "--merge", "--markers", "--json", repository.session)
    applied, = json.loads(done.out)["applied"]
    assert done.code == 1 and applied["markers"] and applied["settled"] == "merge", done
    assert "<<<<<<< host\nhost 3\n=======\nagent 3\n>>>>>>> session\n" in path.read_text()
    # It is settled, and does not come back; the undo gives back the conflict.
    assert states(repository) == {"text": ("conflict", True)}
    assert sandbox.run_atoll("apply", repository.session).code == 0
    assert sandbox.run_atoll("undo", repository.session).code == 0 and path.read_text() == host
    assert states(repository) == {"text": ("conflict", False)}


def test_without_a_base_nothing_is_merged_by_guess(sandbox, layered):
    """No repository, so nobody knows what both began from."""
    layered.inside(r"echo agent >>edited; echo agent >>same; printf 'a\0agent' >keep/inner")
    time.sleep(0.02)
    for name, content in (("edited", b"host\nbefore"), ("same", b""), ("keep/inner", b"a\0host")):
        (sandbox.project / name).write_bytes(content)
    done = sandbox.run_atoll("apply", "--merge", "--json", layered.session)
    left = left_of(done)
    assert done.code == 1 and sorted(left) == ["edited", "inner", "same"], done
    assert "began from is not known" in left["edited"]["text"] and "--ours" in left["edited"]["text"]
    assert "no text on both sides" in left["inner"]["text"]
    # With markers all that differs is shown; what one side emptied is not filled again.
    done = sandbox.run_atoll("apply", "--merge", "--markers", "--json", layered.session)
    assert done.code == 1 and sorted(left_of(done)) == ["inner", "same"], done
    text = (sandbox.project / "edited").read_bytes()
    assert text.startswith(b"<<<<<<< host\nhost\nbefore\n=======\nbeforeagent\n") and b">>>>>>> session" in text, text
    assert (sandbox.project / "same").read_bytes() == b""


def make_conflicts(sandbox, layered):
    """Each way in which both sides can differ; a link and a directory's mode among them."""
    layered.inside("echo agent >edited; rm same; echo the agent >deleted; echo agent >new; chmod 700 keep; rm -r gone; "
                   "rm becomes-link; ln -s agent becomes-link; rm becomes-dir; mkdir becomes-dir; "
                   "echo agent >becomes-dir/f; echo agent >clean")
    time.sleep(0.02)
    project = sandbox.project
    for name in ("edited", "same", "new", "becomes-link", "becomes-dir", "gone/a"):
        (project / name).write_text("host\n")
    (project / "deleted").unlink()
    (project / "keep").chmod(0o711)


CONFLICTS = ["becomes-dir", "becomes-dir/f", "becomes-link", "deleted", "edited", "gone", "gone/a", "keep", "new",
             "same"]


def unsettled(layered):
    return sorted(path for path, (state, settled) in states(layered).items() if state == "conflict" and not settled)


def test_theirs_takes_the_sessions_side_and_undo_brings_the_hosts_back(sandbox, layered):
    make_conflicts(sandbox, layered)
    assert unsettled(layered) == CONFLICTS
    before = without_times(describe(sandbox.project))
    done = sandbox.run_atoll("apply", "--theirs", "--json", layered.session)
    told = json.loads(done.out)
    assert done.code == 0 and not told["left"], done
    assert {each.get("settled") for each in told["applied"]} == {"theirs", None}
    project = sandbox.project
    for name in ("edited", "deleted", "new", "becomes-dir/f", "clean"):
        assert "agent" in (project / name).read_text(), name
    assert not (project / "same").exists() and not (project / "gone").exists()
    assert os.readlink(project / "becomes-link") == "agent"
    assert stat.S_IMODE((project / "keep").stat().st_mode) == 0o700
    assert not changed(layered)
    assert sandbox.run_atoll("undo", layered.session).code == 0
    assert without_times(describe(project)) == before
    # What the host had is its own again: a plain apply does not take it for ours.
    assert unsettled(layered) == CONFLICTS
    assert sandbox.run_atoll("apply", layered.session).code == 1 and (project / "edited").read_text() == "host\n"


def test_ours_keeps_the_hosts_side_until_one_of_both_changes(sandbox, layered):
    make_conflicts(sandbox, layered)
    before = describe(sandbox.project)
    done = sandbox.run_atoll("apply", "--ours", "-x", "clean", "-x", "deep", "--json", layered.session)
    told = json.loads(done.out)
    assert done.code == 0 and not told["left"] and not told["applied"], done
    assert len(told["kept"]) == len(CONFLICTS), done
    assert describe(sandbox.project) == before and not unsettled(layered)
    assert "conflicts that were settled" in sandbox.run_atoll("diff", layered.session).out
    # It does not come back, until a side changes.
    done = sandbox.run_atoll("apply", layered.session)
    assert done.code == 0 and (sandbox.project / "clean").exists(), done
    assert (sandbox.project / "edited").read_text() == "host\n"
    (sandbox.project / "edited").write_text("host again\n")
    layered.inside("echo more >>new")
    assert unsettled(layered) == ["edited", "new"]
    # What was decided can be decided otherwise by name, and taken back.
    assert sandbox.run_atoll("apply", "--theirs", layered.session, "same").code == 0
    assert not (sandbox.project / "same").exists()
    assert sandbox.run_atoll("undo", layered.session).code == 0 and (sandbox.project / "same").exists()
    applies = json.loads(sandbox.run_atoll("undo", "--list", "--json", layered.session).out)["applies"]
    first = min(each["apply"] for each in applies)
    assert sandbox.run_atoll("undo", "-n", str(first), layered.session).code == 0
    assert unsettled(layered) == CONFLICTS


def test_conflicts_are_settled_by_path(sandbox, layered):
    make_conflicts(sandbox, layered)
    assert sandbox.run_atoll("apply", "--take-session", layered.session, "edited").code == 0
    assert sandbox.run_atoll("apply", "--keep-host", layered.session, "new").code == 0
    assert (sandbox.project / "edited").read_text() == "agent\n" and (sandbox.project / "new").read_text() == "host\n"
    assert unsettled(layered) == [path for path in CONFLICTS if path not in ("edited", "new")]
    # A file is not given up for the sake of what the session has below a directory of that name.
    done = sandbox.run_atoll("apply", "--theirs", "--json", layered.session, "becomes-dir/f")
    assert done.code == 1 and left_of(done)["f"]["why"] == "held", done
    assert (sandbox.project / "becomes-dir").read_text() == "host\n"
    log = sandbox.run_atoll("log", layered.session, "--json").out
    assert '"taken":["' in log.replace(" ", "") and '"kept":["' in log.replace(" ", "")
    for words in (("--ours", "--theirs"), ("--markers",), ("--merge", "--ours")):
        done = sandbox.run_atoll("apply", *words, layered.session)
        assert done.code == 125 and "--markers needs --merge" in done.err or "only one of" in done.err, done


def test_a_flagged_conflict_needs_its_name(sandbox):
    sandbox.write(sandbox.project / ".envrc", "before\n")
    layered = Layered(sandbox)
    layered.inside("echo agent >.envrc")
    time.sleep(0.02)
    (sandbox.project / ".envrc").write_text("host\n")
    assert sandbox.run_atoll("apply", "--theirs", layered.session).code == 1
    assert (sandbox.project / ".envrc").read_text() == "host\n"
    assert sandbox.run_atoll("apply", "--theirs", "--allow-flagged", ".envrc", layered.session).code == 0
    assert (sandbox.project / ".envrc").read_text() == "agent\n"


def test_attributes_come_along_and_go_back(sandbox, layered):
    try:
        os.setxattr(sandbox.project / "edited", "user.host", b"1")
    except OSError:
        pytest.skip("the file system of the tests has no user attributes")
    layered.start()
    before = describe(sandbox.project)
    layered.inside("""python3 -c 'import os; os.setxattr("edited", "user.agent", b"2")' """)
    assert sandbox.run_atoll("apply", layered.session).code == 0
    attributes = {key: os.getxattr(sandbox.project / "edited", key) for key in os.listxattr(sandbox.project / "edited")}
    assert attributes == {"user.host": b"1", "user.agent": b"2"}
    assert sandbox.run_atoll("undo", layered.session).code == 0 and describe(sandbox.project) == before


@pytest.mark.only("root")
def test_a_tree_on_another_file_system(sandbox):
    """What was replaced is copied to the session, and comes back from there."""
    far = sandbox.base / "far"
    far.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(far)], check=True)
    try:
        shutil.copytree(sandbox.project, far / "tree")
        for name in ("edited", "gone"):
            (far / "tree" / name).write_text(name)
        layered = Layered(sandbox, trees=[far / "tree"])
        before = describe(far / "tree")
        layered.inside("echo x >edited; rm gone; mkdir d; echo y >d/e")
        assert sandbox.run_atoll("apply", layered.session).code == 0
        assert sorted(os.listdir(far / "tree")) == ["d", "edited"]
        assert sandbox.run_atoll("undo", layered.session).code == 0
        assert describe(far / "tree") == before
    finally:
        subprocess.run(["umount", str(far)], check=True)


def children_of(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *children_of(int(child))]
    return found


def hold_up(child, shown):
    """Lets the program and what it started run for a twentieth of the time, until it said twice how far it is."""
    while child.isalive() and shown.getvalue().count(b" of ") < 2:
        try:
            pids = [child.pid, *children_of(child.pid)]
            for word, seconds in ((signal.SIGSTOP, 0.1), (signal.SIGCONT, 0.005)):
                for pid in pids:
                    os.kill(pid, word)
                time.sleep(seconds)
        except (ProcessLookupError, FileNotFoundError):
            continue


def applied_on_a_terminal(sandbox, layered, is_held_up):
    child = sandbox.spawn([sandbox.programs.atoll, "apply", layered.session], outside=True)
    shown = io.BytesIO()
    child.logfile_read = shown
    holder = threading.Thread(target=hold_up, args=[child, shown]) if is_held_up else None
    if holder:
        holder.start()
    child.expect(pexpect.EOF, timeout=120)
    if holder:
        holder.join()
    child.close()
    assert child.exitstatus == 0, shown.getvalue()
    return shown.getvalue().decode()


def test_long_work_shows_how_far_it_is_on_a_terminal(sandbox, layered):
    layered.inside("mkdir many; cd many; seq 8000 | xargs touch")
    shown = applied_on_a_terminal(sandbox, layered, True)
    told = re.findall(r"\r\x1b\[Katoll: (\w+) (\d+) of (\d+)", shown)
    assert len(told) > 1, shown
    assert all(int(done) <= int(total) for _, done, total in told), told
    # Erased before the result is said.
    assert shown.rindex("\r\x1b[K") > shown.rindex(" of ") and "applied" in shown[shown.rindex("\r\x1b[K"):], shown


def test_short_work_says_only_what_came_of_it(sandbox, layered):
    layered.inside("echo after >edited")
    assert "\x1b[K" not in applied_on_a_terminal(sandbox, layered, False)
