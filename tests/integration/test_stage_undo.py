# SPDX-License-Identifier: Apache-2.0
"""What an undo gives back and what it leaves to the host, where names, modes and times make that hard to tell."""
import os

import pytest

from stage import Staged
from tree_state import differences, tree_state


def keep_times(path, change):
    """As an editor does that sets the times again."""
    status = os.stat(path)
    change(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_an_edit_of_a_linked_file_is_never_undone(sandbox):
    """Of the same size and mtime, under either name: only the ctime tells, and our own renames move that, too."""
    for name in ("one", "two"):
        sandbox.write(sandbox.project / name / "a", "old\n")
        os.link(sandbox.project / name / "a", sandbox.project / name / "b")
        sandbox.write(sandbox.project / name / "alone", "old\n")
    staged = Staged(sandbox)
    before = staged.state()
    assert staged.run("for d in one two; do rm $d/b; echo new >$d/a; ln $d/a $d/b; echo new >$d/alone; done").code == 0
    staged.apply()
    for name in ("one/b", "two/alone"):
        keep_times(sandbox.project / name, lambda path: path.write_text("her\n"))
    done = staged.undo(code=1)
    assert {name: (sandbox.project / name).read_text() for name in ("one/a", "one/b", "one/alone")} == {
        "one/a": "her\n", "one/b": "her\n", "one/alone": "old\n"}, done
    assert {name: (sandbox.project / name).read_text() for name in ("two/a", "two/b", "two/alone")} == {
        "two/a": "old\n", "two/b": "old\n", "two/alone": "her\n"}, done
    # Nobody wrote to this pair: its names are one file again, with the time of before.
    after = staged.state()
    assert after["two/a"] == before["two/a"]


def test_a_pair_is_undone_name_by_name(sandbox):
    """What the first undo does to the other name is no change of the host's."""
    for name in ("a", "b"):
        sandbox.write(sandbox.project / name, "old\n")
    staged = Staged(sandbox)
    before = staged.state()
    assert staged.run("rm b; echo new >a; ln a b").code == 0
    staged.apply()
    staged.undo("--", sandbox.project / "a")
    assert (sandbox.project / "a").read_text() == "old\n" and (sandbox.project / "b").read_text() == "new\n"
    staged.undo("--", sandbox.project / "b")
    assert differences(before, staged.state()) == []


def test_a_directory_that_the_host_touched_stays(sandbox):
    """One that an apply made: an attribute, a mode, a file that came and went."""
    sandbox.write(sandbox.project / "kept", "old\n")
    staged = Staged(sandbox)
    before = staged.state()
    assert staged.run("mkdir alone mode attribute visited; mkdir -p deep/er/closed; chmod 555 deep/er/closed").code == 0
    staged.apply()
    os.setxattr(sandbox.project / "attribute", "user.host", b"1")
    (sandbox.project / "mode").chmod(0o700)
    (sandbox.project / "visited/file").write_text("x")
    (sandbox.project / "visited/file").unlink()
    staged.undo(code=1)
    assert sorted(set(staged.state()) - set(before)) == ["attribute", "mode", "visited"]
    assert os.getxattr(sandbox.project / "attribute", "user.host") == b"1"


def test_a_file_that_became_a_closed_directory(sandbox):
    """Its mode was set last, on a path that is a file again when the undo comes to it."""
    for name in ("a", "b", "d/inner"):
        sandbox.write(sandbox.project / name, "old\n")
    os.setxattr(sandbox.project / "d", "user.before", b"1")
    staged = Staged(sandbox)
    before = staged.state()
    assert staged.run("rm a b; mkdir a b; echo x >a/inner; ln -s /etc b/link; chmod 555 a; chmod 500 b; "
                      "setfattr -n user.x -v y d; chmod 555 d").code == 0
    staged.apply()
    done = staged.undo()
    assert "failed" not in done.out, done
    assert differences(before, tree_state(sandbox.project)) == []



WORK = {
    "one": "echo 1 >d/one; echo n >d/new; rm three; rm -r gone emptied/*; chmod 700 mode; "
           "setfattr -n user.x -v 1 mode; mv d/moved d/away; rm odd; mkdir odd; echo x >odd/x",
    "two": "echo 2 >d/one; echo 2 >d/two; rm -r gone; echo 3 >three; mkdir z; echo z >z/z; rm -r emptied; "
           "echo m >mode/m; chmod 750 mode; echo 2 >>d/moved; rm odd; mv top d/top; echo x >>d/top",
}


def fill(sandbox):
    for name in ("d/one", "d/two", "d/moved", "three", "gone/deep/x", "emptied/a", "mode/x", "odd", "top"):
        sandbox.write(sandbox.project / name, "old\n")


def test_what_another_session_took_back_is_as_it_was(sandbox):
    """F45: apply one, undo it, apply the other: no conflict, and neither where the undo came in parts."""
    fill(sandbox)
    one, two = Staged(sandbox), Staged(sandbox)
    before = one.state()
    assert one.run(WORK["one"]).code == 0 and two.run(WORK["two"]).code == 0
    wanted = [sorted(two.diff())]
    one.apply()
    # Control: while it stands, it is a change of the host's.
    assert {name for name, change in two.diff(code=None).items() if change["state"] == "conflict"} >= {
        "d/one", "three", "odd"}
    one.undo("--", sandbox.project / "d/new")
    one.undo("--", sandbox.project / "gone")
    one.undo()
    assert differences(before, one.state()) == []
    assert [name for name, change in two.diff().items() if change["state"] != "clean"] == []
    assert sorted(two.diff()) == wanted[0]
    two.apply()
    assert two.diff() == {} and (sandbox.project / "d/moved").read_text() == "old\n2\n"
    two.undo()
    # And round again, over what the other one gave back.
    one.apply()
    one.undo()
    two.apply()
    two.undo()
    assert differences(before, one.state()) == []


def test_what_was_applied_before_the_start_is_no_base_once_it_is_gone(sandbox):
    """The second session began while the first was applied, and saw that."""
    fill(sandbox)
    one, two = Staged(sandbox), Staged(sandbox)
    one.run(WORK["one"])
    one.apply()
    two.run("echo 2 >>d/one; rm d/new; rm -r odd; echo x >>three")
    one.undo()
    before = one.state()
    two.apply(code=1)
    assert {name for name, change in two.diff(code=None).items() if change["state"] == "conflict"} >= {"d/one", "odd"}
    assert differences({name: entry for name, entry in before.items() if name != "."},
                       {name: entry for name, entry in one.state().items() if name in before and name != "."}) == []


def test_an_edit_after_the_undo_is_a_conflict(sandbox):
    """What another session gave back counts as old while nobody touches it."""
    fill(sandbox)
    one, two = Staged(sandbox), Staged(sandbox)
    one.run(WORK["one"])
    two.run(WORK["two"])
    one.apply()
    (sandbox.project / "d/between").write_text("x")
    one.undo()
    keep_times(sandbox.project / "d/one", lambda path: path.write_text("her\n"))
    keep_times(sandbox.project / "gone/deep/x", lambda path: path.write_text("her\n"))
    (sandbox.project / "d/moved").unlink()
    conflicts = {name for name, change in two.diff(code=None).items() if change["state"] == "conflict"}
    # Of d/top nobody can say whether it was there: something was deleted in its directory.
    assert conflicts == {"d/one", "gone/deep/x", "gone/deep", "gone", "d/moved", "d/top"}
    two.apply(code=1)
    assert (sandbox.project / "d/one").read_text() == (sandbox.project / "gone/deep/x").read_text() == "her\n"
    assert not (sandbox.project / "d/moved").exists()


@pytest.mark.needs("git")
def test_the_index_of_git_after_the_undo_of_a_commit(sandbox):
    """git status outside writes the index anew: it stays, names blobs that are gone, and undo says what to do."""
    project = sandbox.git_project()
    sandbox.write(project / "f", "old\n")
    sandbox.run_outside(["sh", "-c", "git add f && git commit -qm one"], check=True)
    staged = Staged(sandbox)
    before = sandbox.run_outside(["git", "rev-parse", "HEAD"]).out
    git = "git -c user.name=a -c user.email=a@b"
    assert staged.run(f"echo new >f; echo n >new; git add new; {git} commit -qam two").code == 0
    staged.apply()
    # Each look at a file whose time the index does not have makes git write it.
    os.utime(project / "f")
    assert sandbox.run_outside(["git", "status", "--porcelain"]).out == ""
    done = staged.undo(code=1)
    assert ".git/index" in done.out and "git -C" in done.out, done
    command = done.out.splitlines()[-1].partition("with: ")[2]
    assert sandbox.run_outside(["git", "fsck", "--strict", "--cache"]).code != 0
    assert sandbox.run_outside(["sh", "-c", command]).code == 0, command
    assert sandbox.run_outside(["git", "rev-parse", "HEAD"]).out == before
    assert sandbox.run_outside(["git", "fsck", "--strict"]).code == 0
