# SPDX-License-Identifier: Apache-2.0
"""What a review sees of what was staged, whole: attributes beside contents, times, what the host took away, what the
agent closed."""
import json
import os
import struct
import subprocess

import pytest

from atoll import wait_until
from stage import Staged
from trial import Trials, changes

BOTH = """
import os
open("written", "a").write("more\\n"); os.setxattr("written", "user.inside", b"1")
open("replaced~", "w").write("new\\n"); os.chmod("replaced~", 0o600); os.rename("replaced~", "replaced")
open("plain", "a").write("more\\n")
open("tight", "a").write("more\\n"); os.chmod("tight", 0o600)
"""


def test_attributes_that_change_together_with_the_content_are_shown(sandbox):
    for name in ("written", "replaced", "plain", "tight"):
        sandbox.write(sandbox.project / name, "old\n", 0o644)
    os.setxattr(sandbox.project / "replaced", "user.host", b"1")
    staged = Staged(sandbox)
    assert staged.run(["/usr/bin/python3", "-c", BOTH]).code == 0
    differs = {name: set(change["differs"]) - {"mtime"} for name, change in staged.diff().items()}
    assert differs == {"written": {"content", "xattrs"}, "replaced": {"content", "mode", "xattrs"},
                       "plain": {"content"}, "tight": {"content", "mode"}}
    lines = {line.split("|")[0].strip(): line for line in staged.verb("diff", staged.session).out.splitlines()}
    assert "1 +, extended attributes" in lines["M written"] and "extended" not in lines["M plain"], lines
    assert "mode 0644 → 0600, extended attributes" in lines["M replaced"], lines
    patch = staged.verb("diff", "-p", staged.session).out
    assert "extended attributes differ\ndiff --git a/written b/written\n" in patch
    assert "mode 0644 → 0600\nextended attributes differ\ndiff --git a/replaced" in patch
    staged.apply()
    assert os.listxattr(sandbox.project / "written") == ["user.inside"]
    assert os.listxattr(sandbox.project / "replaced") == []


def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.mark.only("user")
def test_an_acl_that_comes_with_a_new_content_is_shown(sandbox):
    value = acl(*((tag, mode, 0xFFFFFFFF) for tag, mode in ((1, 6), (4, 4), (16, 6), (32, 4))))
    sandbox.write(sandbox.project / "file", "old\n", 0o664)
    staged = Staged(sandbox)
    done = staged.run(["/usr/bin/python3", "-c", "import os; open('file', 'a').write('more\\n'); "
                       f"os.setxattr('file', 'system.posix_acl_access', {value!r})"])
    if done.code:
        pytest.skip(f"no ACLs inside: {done.err.splitlines()[-1]}")
    assert {"content", "xattrs"} <= set(staged.diff()["file"]["differs"])


@pytest.mark.only("root")
def test_a_file_that_becomes_the_tree_owners_says_so(sandbox):
    """As root a file that was written into, or moved, stays its owner's; one that was made anew is the tree's."""
    for name in ("written", "replaced", "moved"):
        os.chown(sandbox.write(sandbox.project / name, "old\n", 0o666), 4242, 4242)
    staged = Staged(sandbox)
    assert staged.run("echo more >>written; echo new >r; mv r replaced; mv moved moved2").code == 0
    assert {name: "owner" in change["differs"] for name, change in staged.diff().items()} == {
        "written": False, "replaced": True, "moved": False, "moved2": False}
    assert "owner 4242 → 0\ndiff --git a/replaced" in staged.verb("diff", "-p", staged.session).out
    staged.apply()
    assert [os.stat(sandbox.project / name).st_uid for name in ("written", "replaced", "moved2")] == [4242, 0, 4242]


@pytest.mark.only("user")
def test_a_file_that_becomes_ones_own_says_so(sandbox):
    """What an ordinary user applies is his, whose file it was before."""
    if os.geteuid() != 0:
        pytest.skip("only root makes files of others")
    os.chown(sandbox.write(sandbox.project / "others", "old\n", 0o666), 4242, 4242)
    sandbox.write(sandbox.project / "own", "old\n")
    staged = Staged(sandbox)
    assert staged.run("echo new >n; mv -f n others; echo more >>own").code == 0
    assert {name: "owner" in change["differs"] for name, change in staged.diff().items()} == {
        "others": True, "own": False}
    owner = os.stat(sandbox.project / "own").st_uid
    assert f"owner 4242 → {owner}" in staged.verb("diff", staged.session).out
    assert f"owner 4242 → {owner}\ndiff --git a/others" in staged.verb("diff", "-p", staged.session).out
    staged.apply()
    assert os.stat(sandbox.project / "others").st_uid == owner


def test_a_trial_shows_times_that_an_apply_would_carry(sandbox):
    trials = Trials(sandbox)
    (trials.project / "link").symlink_to("host")
    sandbox.own(trials.project / "link")
    done = trials.dry("touch -d 2001-01-01 host directory; touch -h -d 2001-01-01 link", code=1)
    assert "    ~ host  5 B  time of last change only\n    ~ link  time of last change only\n" in done.err, done
    assert "changes: 2 modified\n" in done.err, done
    told = trials.tell("touch -d 2001-01-01 host; touch -h -d 2001-01-01 link; echo x >new", "--yes", code=0)
    assert changes(told) == {"host": "modified", "link": "modified", "new": "added"}, told
    assert {each["path"]: each["time_only"] for each in told["changes"]} == {
        str(trials.project / "host"): True, str(trials.project / "link"): True, str(trials.project / "new"): False}
    shown = {path: change for path, change in Review(sandbox, told["session"]).items()}
    assert "mtime" in shown["host"]["differs"] and shown["link"]["differs"] == ["mtime"]
    # In a session: against what that holds. What runs a second time may have another time and is the same.
    again = trials.tell("touch -d 2002-02-02 new", "--yes", code=0, session=told["session"])
    assert changes(again) == {"new": "modified"} and again["changes"][0]["time_only"] and not again["difference"], again
    trials.atoll("apply", told["session"])
    times = [os.lstat(trials.project / name).st_mtime for name in ("host", "link", "new")]
    assert times[0] == times[1] < times[2] < 1.1e9


class Review(dict):
    """What a session would change."""

    def __init__(self, sandbox, session):
        done = sandbox.run_atoll("diff", "--json", session)
        prefix = str(sandbox.project) + "/"
        super().__init__((change["path"].removeprefix(prefix), change) for change in json.loads(done.out)["changes"])


MOUNTED = """
import errno, os, sys
project = sys.argv[1]; above = os.path.dirname(project)
def attempt(what, *words):
    try: what(*words); return "done"
    except OSError as error: return errno.errorcode[error.errno]
os.mkdir(above + "/plain"); os.mkdir(above + "/other"); os.mkdir(above + "/empty")
print(attempt(os.rename, above + "/plain", above + "/renamed"), attempt(os.rmdir, above + "/other"))
print(attempt(os.rename, project, above + "/away"), attempt(os.rename, above + "/empty", project),
      attempt(os.rmdir, project), os.listdir(project))
"""


@pytest.mark.parametrize("lines", ["", "audit: {files: all}"])
def test_the_root_of_a_staged_tree_is_not_renamed_away(sandbox, lines):
    """The directory above it is writable inside. A mount point stays where it is, as it does without us."""
    staged = Staged(sandbox, lines=lines)
    sandbox.write(sandbox.project / "file", "host\n")
    done = staged.run(["/usr/bin/python3", "-c", MOUNTED, str(sandbox.project)])
    assert done.out == "done done\nEBUSY EBUSY EBUSY ['file']\n", done


REWRITTEN = "echo 1 >>appended; printf new >t; mv t renamed; sed -i s/x/y/ edited; rm again; echo z >again; rm gone; " \
            "rm linked; ln -s gone linked; echo n >new"
NAMES = ("appended", "renamed", "edited", "again", "linked")


def test_what_the_sandbox_rewrote_and_the_host_deleted_is_a_conflict(sandbox):
    """However it was rewritten; and the other way round. Control: what is new is none, nor is what the host left."""
    for name in (*NAMES, "gone", "left"):
        sandbox.write(sandbox.project / "d" / name, "x\n" * 5)
    staged = Staged(sandbox)
    assert staged.run(f"cd d; {REWRITTEN}; echo more >>left").code == 0
    for name in NAMES:
        (sandbox.project / "d" / name).unlink()
    sandbox.write(sandbox.project / "d" / "gone", "changed\n")
    found = {path.removeprefix("d/"): (change["kind"], change["reason"]) for path, change in staged.diff().items()}
    assert found == {**{name: ("added", "host-deleted") for name in NAMES}, "gone": ("deleted", "host-changed"),
                     "left": ("modified", None), "new": ("added", None)}
    assert "6 paths" in staged.apply(code=1).out
    assert sorted(os.listdir(sandbox.project / "d")) == ["gone", "left", "new"]
    staged.apply("--theirs")
    assert sorted(os.listdir(sandbox.project / "d")) == sorted([*NAMES, "left", "new"])
    staged.undo()
    assert sorted(os.listdir(sandbox.project / "d")) == ["gone", "left", "new"]


def test_what_the_host_deletes_while_the_run_goes_on_is_a_conflict_too(sandbox):
    """Once somebody has looked what is staged: the baseline of an agent does, and `atoll top`."""
    for name in (*NAMES, "gone"):
        sandbox.write(sandbox.project / "d" / name, "x\n" * 5)
    staged = Staged(sandbox)
    done = staged.verb("run", "-d", "-p", staged.policy)
    staged.session = done.out.strip()
    staged.verb("exec", staged.session, "--", "sh", "-c", f"cd d; {REWRITTEN}")
    assert staged.session in staged.verb("top", "--once").out
    for name in NAMES:
        (sandbox.project / "d" / name).unlink()
    staged.verb("stop", staged.session)
    assert {path.removeprefix("d/"): change["reason"] for path, change in staged.diff().items()} == {
        **{name: "host-deleted" for name in NAMES}, "gone": None, "new": None}


CLOSED = """mkdir -p a/b/c; echo x >a/f; echo y >a/b/c/g; chmod 0 a/b/c; chmod 111 a/b; chmod 0 a
echo more >>old/x; chmod 0 old; rm -r opaque; mkdir opaque; echo z >opaque/new; chmod 444 opaque; chmod 0 empty"""


@pytest.fixture
def closed(sandbox):
    for name in ("old/x", "opaque/gone", "empty/x"):
        sandbox.write(sandbox.project / name, "host\n")
    staged = Staged(sandbox)
    assert staged.run(CLOSED).code == 0
    return staged


def modes(top):
    return {str(path.relative_to(top)): path.stat().st_mode & 0o7777 for path in top.rglob("*") if path.is_dir()}


def test_a_directory_that_the_sandbox_closed_is_reviewed_applied_and_undone(closed):
    before, inside = closed.state(), modes(closed.upper)
    expected = {name: ("added", "clean") for name in ("a", "a/f", "a/b", "a/b/c", "a/b/c/g", "opaque/new")} | {
        name: ("modified", "clean") for name in ("old", "old/x", "opaque", "empty")} | {
        "opaque/gone": ("deleted", "clean")}
    changes = closed.diff()
    assert {path: (change["kind"], change["state"]) for path, change in changes.items()} == expected
    assert [changes[name]["staged"]["mode"] for name in ("a", "a/b", "a/b/c", "old", "opaque", "empty")] == [
        "0000", "0111", "0000", "0000", "0444", "0000"]
    assert "+more" in closed.verb("diff", "-p", closed.session).out and modes(closed.upper) == inside
    closed.apply()
    assert modes(closed.upper) == inside
    found = modes(closed.project)
    assert {name: found[name] for name in ("a", "a/b", "a/b/c", "old", "opaque", "empty")} == {
        "a": 0, "a/b": 0o111, "a/b/c": 0, "old": 0, "opaque": 0o444, "empty": 0}
    assert (closed.project / "a/b/c/g").read_text() == "y\n"
    assert (closed.project / "old/x").read_text() == "host\nmore\n"
    closed.undo()
    assert closed.state() == before


def test_who_closed_the_project_itself_hides_nothing(sandbox):
    sandbox.write(sandbox.project / "file", "host\n")
    staged = Staged(sandbox)
    done = staged.run("mkdir -p .git/hooks; echo x >.git/hooks/pre-commit; chmod 0 .")
    assert done.code == 0 and "refused" not in done.err, done
    changes = staged.diff()
    assert changes[".git/hooks/pre-commit"]["flagged"] and changes[str(sandbox.project)]["differs"] == ["mode"], changes
    staged.run("true", options=["--continue", staged.session])


@pytest.mark.only("user")
def test_modes_come_back_when_a_review_is_cut_off(closed):
    """Lent while the output waits for its reader, and given back when that goes or the program is killed."""
    closed.plant("a/big", b"x\n" * (1 << 20))
    os.chmod(os.path.join(closed.upper, "a"), 0)
    inside = modes(closed.upper)
    for end in (lambda shown: shown.stdout.close(), lambda shown: shown.kill()):
        words = [closed.sandbox.programs.atoll, "diff", "-p", closed.session]
        with subprocess.Popen(words, stdout=subprocess.PIPE, **closed.sandbox.popen_keywords()) as shown:
            assert shown.stdout.read(1) and modes(closed.upper) != inside
            busy = closed.verb("diff", closed.session, code=125)
            assert "another command reads directories that the sandbox closed" in busy.err, busy
            end(shown)
            shown.wait()
        wait_until(lambda: modes(closed.upper) == inside)
    assert closed.diff() and modes(closed.upper) == inside
