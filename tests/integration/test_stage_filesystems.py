# SPDX-License-Identifier: Apache-2.0
"""Staging on the file systems that people have: project and state on each, on two different ones, several trees, nested
mounts, submodules, worktrees. Loop images, so root makes them; the runs are of both identities."""
import os
import pathlib
import re
import subprocess
import time

import pytest

from loop import KINDS, Loop, need, unmount
from stage import Staged, only
from tree_state import differences, tree_state

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="file systems in loop images need root")

WORK = """
echo new >changed; rm -rf gone; mkdir -p made/it; echo x >made/it/x; mv move moved; ln -s made link
truncate -s 1M sparse
echo y >>sparse; chmod 600 mode; setfattr -n user.x -v y made/it/x; ln made/it/x hard; rm was; mkdir was; echo z >was/z
touch -d 2001-02-03T04:05:06.123456789 mode; mv dir renamed
"""


def fill(sandbox, place):
    for name in ("changed", "gone/a", "move", "mode", "was", "dir/a", "dir/b/c", "untouched"):
        path = sandbox.write(place / name, f"{name}\n")
        os.utime(path, ns=(10 ** 18, 10 ** 18 + 123456789))


def check_work(staged, place, before, left_out=()):
    """What WORK did is applied, and undone exactly."""
    assert differences(before, tree_state(place, left_out=left_out)) == [], "the run changed the host"
    staged.apply()
    assert (place / "changed").read_text() == "new\n" and not (place / "gone").exists()
    assert (place / "made/it/x").read_text() == "x\n" and (place / "was/z").read_text() == "z\n"
    assert os.stat(place / "hard").st_ino == os.stat(place / "made/it/x").st_ino
    assert os.getxattr(place / "hard", "user.x") == b"y"
    assert os.stat(place / "mode").st_mode & 0o777 == 0o600
    assert os.stat(place / "mode").st_mtime_ns % 10 ** 9 == 123456789
    assert (place / "renamed/b/c").read_text() == "dir/b/c\n" and os.readlink(place / "link") == "made"
    assert staged.diff() == {}
    staged.undo()
    assert differences(before, tree_state(place, left_out=left_out)) == []


@pytest.mark.needs("setfattr")
@pytest.mark.parametrize("kind", KINDS)
def test_project_and_state_on(sandbox, kind):
    need(kind)
    with Loop(kind, sandbox.base / "disk", sandbox.identity) as disk:
        sandbox.project = sandbox.make_directory(disk / "project")
        sandbox.state = sandbox.make_directory(disk / "state")
        fill(sandbox, sandbox.project)
        staged = Staged(sandbox)
        before = staged.state()
        done = staged.run(WORK)
        assert done.code == 0, done
        check_work(staged, sandbox.project, before)


@pytest.mark.needs("setfattr")
@pytest.mark.parametrize("kind", KINDS)
def test_a_home_that_holds_the_state_on(sandbox, kind):
    need(kind)
    with Loop(kind, sandbox.base / "disk", sandbox.identity) as disk:
        sandbox.home = sandbox.project = sandbox.make_directory(disk / "home")
        sandbox.state = sandbox.make_directory(sandbox.home / ".local/state", 0o700)
        fill(sandbox, sandbox.home)
        sandbox.write(sandbox.home / ".ssh/id", "secret\n")
        staged = Staged(sandbox)
        left_out = (".local",)
        before = staged.state(left_out=left_out)
        done = staged.run(f"cat .ssh/id .local/state/atoll/*; {WORK}", options=["--project", sandbox.home])
        assert done.code == 0 and done.out == "", done
        check_work(staged, sandbox.home, before, left_out)


def is_shared(path):
    """Whether every extent of a file is one of another file's, too; the inode's own number is none."""
    lines = [line for line in subprocess.run(["filefrag", "-v", path], capture_output=True, text=True,
                                             check=True).stdout.splitlines() if re.match(r" +\d+: ", line)]
    return bool(lines) and all("shared" in line for line in lines)


@pytest.mark.needs("filefrag")
@pytest.mark.parametrize("kind", ["xfs", "btrfs"])
def test_a_running_session_is_copied_by_reference(sandbox, kind):
    """Where the file system can, the snapshot of what still runs takes no second space."""
    need(kind)
    with Loop(kind, sandbox.base / "disk", sandbox.identity) as disk:
        sandbox.state = sandbox.make_directory(disk / "state")
        staged = Staged(sandbox)
        session = sandbox.run_atoll("run", "-d", "-p", staged.policy).out.strip()
        done = sandbox.run_atoll("exec", session, "--", "sh", "-c", "head -c 4000000 /dev/urandom >big; sync big")
        assert done.code == 0, done
        staged.session = session
        assert not is_shared(staged.upper / "big")
        staged.verb("snapshot", session, "now")
        copy = staged.directory / "layers/1/0/big"
        assert is_shared(copy) and copy.read_bytes() == (staged.upper / "big").read_bytes()
        # What goes on does not reach the snapshot.
        sandbox.run_atoll("exec", session, "--", "sh", "-c", "echo x >big")
        assert copy.stat().st_size == 4000000
        sandbox.run_atoll("stop", session)


@pytest.mark.needs("setfattr")
@pytest.mark.parametrize("project, state", [("xfs", "ext4"), ("btrfs", "xfs"), ("tmpfs", "btrfs"), ("ext4", "tmpfs")])
def test_the_state_lies_on_another_file_system(sandbox, project, state):
    """Nothing can be renamed from the layers into the tree: it is copied beside it first."""
    need(project)
    need(state)
    with Loop(project, sandbox.base / "disk1", sandbox.identity) as disk, \
            Loop(state, sandbox.base / "disk2", sandbox.identity) as other:
        sandbox.project = sandbox.make_directory(disk / "project")
        sandbox.state = sandbox.make_directory(other / "state")
        fill(sandbox, sandbox.project)
        staged = Staged(sandbox)
        before = staged.state()
        assert staged.run(WORK).code == 0
        check_work(staged, sandbox.project, before)
        assert not [name for name in os.listdir(sandbox.project) if name.startswith(".atoll")]


def test_a_renamed_and_edited_file_applies_in_parts(sandbox):
    """What apply prepares in the root of the tree comes and goes there: that is no change of the host's."""
    need("tmpfs")
    with Loop("tmpfs", sandbox.base / "disk", sandbox.identity) as disk:
        sandbox.project = sandbox.make_directory(disk / "project")
        for name in ("a", "b", "d/c"):
            sandbox.write(sandbox.project / name, f"{name}\n")
        staged = Staged(sandbox)
        before = staged.state()
        assert staged.run("mv a a2; echo x >>a2; mv d/c c2; echo x >>c2; mv b d/b2; echo x >>d/b2").code == 0
        for name in ("a", "d/c", "b", "d/b2", "c2", "a2"):
            staged.apply(str(sandbox.project / name))
        assert staged.diff() == {} and (sandbox.project / "a2").read_text() == "a\nx\n"
        for _ in range(6):
            staged.undo()
        assert differences(before, staged.state()) == []
        staged.apply()
        assert staged.diff() == {}
        staged.undo()
        # A change of the host's in the same directory is one still.
        sandbox.write(sandbox.project / "other", "the host's\n")
        assert staged.diff()["a2"]["reason"] == "host-deleted"


def test_the_agent_takes_the_names_that_apply_uses(sandbox):
    """Where apply prepares its files beside the tree, a staged directory of that name must not come in its way."""
    need("tmpfs")
    with Loop("tmpfs", sandbox.base / "disk", sandbox.identity) as disk:
        sandbox.project = sandbox.make_directory(disk / "project")
        sandbox.write(sandbox.project / "f", "old\n")
        staged = Staged(sandbox)
        before = staged.state()
        done = staged.run("for n in 1 2 3; do mkdir .atoll-$ATOLL_SESSION-$n; "
                          "echo evil >.atoll-$ATOLL_SESSION-$n/0; done; "
                          "ln -s /etc .atoll-$ATOLL_SESSION; echo new >f; ls -A")
        assert ".atoll-" in done.out, done
        staged.apply(code=None)
        assert (sandbox.project / "f").read_text() in ("old\n", "new\n")
        staged.apply(code=None)
        assert (sandbox.project / "f").read_text() == "new\n", staged.verb("diff", code=None)
        while staged.undo(code=None).code == 0 and staged.state() != before:
            pass
        assert differences(before, staged.state()) == []


def test_a_file_system_that_keeps_whole_seconds(sandbox):
    """ctimes without nanoseconds: a change of the host within the second of the start is still a conflict."""
    need("ext4")
    with Loop("ext4", sandbox.base / "disk", sandbox.identity, options=["-I", "128"]) as disk:
        sandbox.project = sandbox.make_directory(disk / "project")
        fill(sandbox, sandbox.project)
        time.sleep(1.1)
        staged = Staged(sandbox)
        assert staged.run("echo inside >changed; echo inside >mode").code == 0
        sandbox.write(sandbox.project / "changed", "host\n")
        assert os.stat(sandbox.project / "changed").st_ctime_ns % 10 ** 9 == 0
        assert staged.diff()["changed"]["state"] == "conflict"
        staged.apply(code=1)
        assert (sandbox.project / "changed").read_text() == "host\n"
        assert (sandbox.project / "mode").read_text() == "inside\n"


def test_no_room_on_the_disk_of_the_project(sandbox):
    """ENOSPC in the middle of an apply: the tree is as it was, or the path is whole; nothing is half."""
    need("ext4")
    with Loop("ext4", sandbox.base / "disk", sandbox.identity) as disk:
        sandbox.project = sandbox.make_directory(disk / "project")
        for i in range(4):
            sandbox.write(sandbox.project / f"f{i}", f"old {i}\n")
        staged = Staged(sandbox)
        before = staged.state()
        assert staged.run("for i in 0 1 2 3; do head -c 20000000 /dev/zero | tr '\\0' $i >f$i; done").code == 0
        done = staged.apply(code=None, timeout=60)
        assert done.code in (1, 125), done
        for i in range(4):
            path = sandbox.project / f"f{i}"
            assert path.stat().st_size in (20000000, len(f"old {i}\n")), path
        assert "space" in (done.out + done.err).lower(), done
        assert not [name for name in os.listdir(sandbox.project) if name.startswith(".atoll")]
        staged.undo(code=None)
        assert differences(before, staged.state()) == []


def test_a_state_directory_on_an_overlay(sandbox):
    """As in a container: refused before anything starts, with the ways out; or done by other means."""
    lower, upper, work, merged = (sandbox.make_directory(sandbox.base / "o" / name) for name in "luwm")
    with Loop("tmpfs", sandbox.base / "disk", sandbox.identity) as disk:
        upper, work = sandbox.make_directory(disk / "u"), sandbox.make_directory(disk / "w")
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}",
                        merged], check=True)
        try:
            os.chown(merged, sandbox.identity.uid, sandbox.identity.gid)
            sandbox.state = sandbox.make_directory(merged / "state")
            sandbox.write(sandbox.project / "f", "old\n")
            staged = Staged(sandbox)
            done = sandbox.run("echo new >f; touch it-ran; echo ran", policy=staged.policy)
            assert (sandbox.project / "f").read_text() == "old\n" and not (sandbox.project / "it-ran").exists()
            if done.code == 125:
                assert "ran" not in done.out, done
                assert "XDG_STATE_HOME" in done.err and "overlay" in done.err, done
            else:
                assert done.out == "ran\n", done
                staged.session = done.session
                staged.apply()
                assert (sandbox.project / "f").read_text() == "new\n"
        finally:
            unmount(merged)


def test_a_project_on_an_overlay(sandbox):
    """The lower of ours may be an overlay itself (a project in a container, the state on a volume)."""
    lower, merged = (sandbox.make_directory(sandbox.base / "o" / name) for name in "lm")
    sandbox.write(lower / "project/changed", "old\n")
    with Loop("tmpfs", sandbox.base / "disk", sandbox.identity) as disk:
        upper, work = sandbox.make_directory(disk / "u"), sandbox.make_directory(disk / "w")
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}",
                        merged], check=True)
        try:
            sandbox.project = merged / "project"
            staged = Staged(sandbox)
            before = staged.state()
            done = sandbox.run("echo new >changed; echo x >added", policy=staged.policy)
            if done.code == 125:
                assert len(done.err.strip().splitlines()) == 1, done
                assert before == staged.state()
                return
            staged.session = done.session
            assert before == staged.state()
            staged.apply()
            assert (sandbox.project / "changed").read_text() == "new\n" and (sandbox.project / "added").exists()
            staged.undo()
            assert differences(before, staged.state()) == []
        finally:
            unmount(merged)


def test_several_trees_in_one_run(sandbox):
    """Each has its own layers; one command reviews them all, and a path says which."""
    need("xfs")
    with Loop("xfs", sandbox.base / "disk", sandbox.identity) as disk:
        trees = [sandbox.home / "one", sandbox.home / "two/deep", disk / "three"]
        for place in trees:
            sandbox.write(place / "f", "old\n")
        sandbox.write(sandbox.project / "f", "old\n")
        staged = Staged(sandbox, stage=[str(place) for place in trees])
        script = "".join(f"echo new >{place}/f; echo x >{place}/added\n" for place in [sandbox.project, *trees])
        before = [tree_state(place) for place in [sandbox.project, *trees]]
        assert staged.run(script).code == 0
        assert before == [tree_state(place) for place in [sandbox.project, *trees]]
        assert len(staged.diff()) == 8
        staged.apply("--", trees[1])
        assert (trees[1] / "f").read_text() == "new\n" and (trees[0] / "f").read_text() == "old\n"
        staged.apply("--", trees[2] / "f")
        assert (trees[2] / "f").read_text() == "new\n" and not (trees[2] / "added").exists()
        staged.apply()
        assert all((place / "added").exists() for place in [sandbox.project, *trees])
        for _ in range(3):
            staged.undo()
        assert [differences(*pair) for pair in
                zip(before, [tree_state(place) for place in [sandbox.project, *trees]])] == [[]] * 4


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_mount_below_the_project(sandbox, kind):
    """It becomes a staged tree of its own, or the run is refused; it is never written in place."""
    need(kind)
    sandbox.write(sandbox.project / "f", "old\n")
    with Loop(kind, sandbox.project / "mnt/inner", sandbox.identity) as inner:
        sandbox.write(inner / "g", "old\n")
        (sandbox.project / "mnt").chmod(0o755)
        sandbox.own(sandbox.project / "mnt")
        staged = Staged(sandbox)
        before = tree_state(inner)
        done = sandbox.run("echo new >f; echo new >mnt/inner/g; echo x >mnt/inner/h; cat mnt/inner/g; mv f mnt/inner/f",
                           policy=staged.policy)
        assert differences(before, tree_state(inner)) == [], "the nested mount was written"
        assert (sandbox.project / "f").read_text() == "old\n"
        if done.code == 125:
            assert "mnt" in done.err or "mount" in done.err, done
            return
        assert done.out == "new\n", done
        staged.session = done.session
        staged.apply()
        assert (inner / "g").read_text() == "new\n" and (inner / "f").read_text() == "new\n"
        assert not (sandbox.project / "f").exists()
        staged.undo()
        assert differences(before, tree_state(inner)) == [] and (sandbox.project / "f").read_text() == "old\n"


def test_a_mount_made_after_the_start_is_not_written(sandbox):
    """Somebody mounts over a directory that has staged changes: apply does not go there."""
    sandbox.write(sandbox.project / "dir/f", "old\n")
    staged = Staged(sandbox)
    assert staged.run("echo new >dir/f; echo x >dir/added; echo y >fine").code == 0
    place = sandbox.project / "dir"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "atolltest", place], check=True)
    try:
        staged.apply(code=1)
        assert os.listdir(place) == [] and (sandbox.project / "fine").exists()
    finally:
        unmount(place)
    assert (place / "f").read_text() == "old\n"


@pytest.mark.parametrize("kind", ["ext4", "btrfs"])
def test_a_tree_that_was_mounted_anew_is_the_same(sandbox, kind):
    """After a reboot its device has another number; and another file system may have that number at the same place."""
    need(kind)
    with Loop(kind, sandbox.base / "other", sandbox.identity), \
            Loop(kind, sandbox.base / "disk", sandbox.identity) as disk:
        sandbox.project = sandbox.make_directory(disk / "project")
        sandbox.write(sandbox.project / "f", "old\n")
        staged = Staged(sandbox)
        assert staged.run("echo new >f").code == 0
        copy = disk.with_name("copy.img")
        subprocess.run(["umount", disk], check=True)
        subprocess.run(["umount", sandbox.base / "other"], check=True)
        try:
            # The number that was free first is the other's: two images are mounted in the other order.
            subprocess.run(["mount", "-o", "loop", disk.with_name("disk.img"), disk], check=True)
            subprocess.run(["mount", "-o", "loop", disk.with_name("other.img"), sandbox.base / "other"], check=True)
            staged.apply()
            assert (sandbox.project / "f").read_text() == "new\n"
            staged.undo()
        finally:
            unmount(disk)
        made = Loop(kind, copy.with_name("copy"), sandbox.identity)
        with made as place:
            sandbox.write(sandbox.make_directory(place / "project") / "f", "another\n")
            subprocess.run(["mount", "--bind", place, disk], check=True)
            try:
                staged.apply(code=125)
                assert (disk / "project/f").read_text() == "another\n"
            finally:
                unmount(disk)


GIT = "git -c user.name=a -c user.email=a@b -c protocol.file.allow=always"


@pytest.mark.needs("git")
def test_submodules_and_worktrees(sandbox):
    """A submodule and a worktree below the project: work in each is staged, reviewed and applied; git agrees."""
    sandbox.git_project()
    git = GIT
    sandbox.write(sandbox.home / "origin/f", "one\n")
    script = (f"cd ../origin && git init -q && git add f && {git} commit -qm one && cd ../project && "
              f"{git} submodule --quiet add ../origin sub && git add -A && {git} commit -qm one && "
              "git worktree add -q tree -b branch")
    made = sandbox.run_outside(["sh", "-c", script])
    assert made.code == 0, made
    staged = Staged(sandbox)
    before = staged.state()
    done = staged.run(f"cd sub && echo two >f && {git} commit -qam two && git rev-parse HEAD && cd ../tree && "
                      f"echo t >t && git add t && {git} commit -qm t && git rev-parse HEAD")
    assert done.code == 0, done
    assert differences(before, staged.state()) == []
    staged.apply()
    outside = sandbox.run_outside(["sh", "-c", "git -C sub rev-parse HEAD; git -C tree rev-parse HEAD"])
    assert outside.out == done.out
    assert sandbox.run_outside(["git", "--no-optional-locks", "-C", "tree", "status", "--porcelain"]).out == ""
    shown = sandbox.run_outside(["git", "--no-optional-locks", "status", "--porcelain", "--ignore-submodules=dirty"])
    assert shown.out.split() == ["M", "sub", "??", "tree/"]
    staged.undo()
    assert differences(before, staged.state()) == []


def repository_elsewhere(sandbox, kind):
    """A project whose repository lies beside it: a worktree, or a submodule; the path of that repository."""
    main = sandbox.make_directory(sandbox.home / "main")
    script = f"cd {main} && git init -q && echo x >f && git add f && {GIT} commit -qm one && "
    if kind == "worktree":
        script += f"git worktree add -q {sandbox.home}/worktree -b w"
    else:
        script += f"{GIT} clone -q . ../origin && {GIT} submodule --quiet add ../origin sub && " \
                  f"{GIT} commit -qam sub"
    made = sandbox.run_outside(["sh", "-c", script])
    assert made.code == 0, made
    sandbox.project = sandbox.home / "worktree" if kind == "worktree" else main / "sub"
    return main / ".git" if kind == "worktree" else main / ".git" / "modules" / "sub"


@pytest.mark.needs("git")
@pytest.mark.parametrize("kind", ["worktree", "submodule"])
def test_a_worktree_whose_repository_is_elsewhere(sandbox, kind):
    """It is staged with the project: git works inside, and what it did arrives by apply and goes by undo."""
    repository = repository_elsewhere(sandbox, kind)
    staged = Staged(sandbox)
    before, project = tree_state(repository), staged.state()
    done = staged.run(f"echo y >g; git add g; {GIT} commit -qm two || exit 9; git rev-parse HEAD; "
                      f"echo x >{repository}/hooks/post-commit; echo x >.git; ls {repository.parents[0]}")
    assert done.code == 0 and "Read-only file system" in done.err, done
    head = done.out.split()[0]
    # What lies beside the repository is not in the view.
    assert "f" not in done.out.split()
    assert differences(before, tree_state(repository)) == [] and differences(project, staged.state()) == []
    done = sandbox.run_atoll("apply", done.session)
    assert done.code == 1 and "flagged" in done.out and "post-commit" in done.out and "conflict" not in done.out, done
    assert not (repository / "hooks" / "post-commit").exists()
    git = ["git", "--no-optional-locks"]
    assert sandbox.run_outside([*git, "rev-parse", "HEAD"]).out.strip() == head
    assert sandbox.run_outside([*git, "status", "--porcelain", "--untracked-files=no"]).out == ""
    staged.undo()
    assert differences(before, tree_state(repository)) == [] and differences(project, staged.state()) == []


@pytest.mark.needs("git")
def test_a_file_that_claims_to_be_a_worktree_shows_nothing(sandbox):
    """A project may lead to any directory: that one has to say so too."""
    repository = repository_elsewhere(sandbox, "worktree")
    staged = Staged(sandbox)
    look = f"git log --oneline; ls {repository}"
    # Positive control.
    assert "HEAD" in staged.run(look).out.split()
    (repository / "worktrees" / "worktree" / "gitdir").write_text(f"{sandbox.home}/another/.git\n")
    done = staged.run(look)
    assert done.out == "" and "not a git repository" in done.err, done
    keys = sandbox.make_directory(sandbox.home / "keys")
    sandbox.write(keys / "id", "secret\n")
    (sandbox.project / ".git").write_text(f"gitdir: {keys}\n")
    done = staged.run(f"cat {keys}/id")
    assert done.out == "" and "No such file" in done.err, done


def test_a_case_insensitive_directory(sandbox):
    """F28: `.GIT/config` is `.git/config` there. Staging it is refused, or the other spelling is flagged as well."""
    need("ext4")
    config = pathlib.Path("/sys/fs/ext4/features/casefold")
    if not config.exists():
        pytest.skip("this kernel's ext4 has no case-insensitive directories (CONFIG_UNICODE)")
    with Loop("ext4", sandbox.base / "disk", sandbox.identity, options=["-O", "casefold"]) as disk:
        sandbox.project = sandbox.make_directory(disk / "project")
        subprocess.run(["chattr", "+F", sandbox.project], check=True)
        sandbox.write(sandbox.project / ".git/config", "old\n")
        staged = Staged(sandbox)
        done = sandbox.run("echo evil >.GIT/CONFIG; mkdir -p .Cursor; echo evil >.Cursor/MCP.json; cat .git/config",
                           policy=staged.policy)
        if done.code == 125:
            assert len(done.err.strip().splitlines()) == 1, done
            return
        staged.session = done.session
        changes = staged.diff()
        plain = [name for name, change in changes.items() if not change["flagged"] and name.lower() != ".cursor"]
        assert changes and plain == [], changes
        staged.apply(code=1)
        assert (sandbox.project / ".git/config").read_text() == "old\n"


@pytest.mark.parametrize("limit, script", [
    ("disk: 8MiB", "head -c 4G /dev/zero >big; echo $?"),
    ("inodes: 500", "for i in $(seq 2000); do : >n$i || break; done; ls | wc -l"),
])
def test_budgets_of_the_upper_hold(sandbox, limit, script):
    """What is staged counts: the run ends or writes fail inside, and the host has nothing of it."""
    staged = Staged(sandbox, lines=f"resources: {{{limit}}}\n")
    staged.policy.write_text(staged.policy.read_text().replace(", disk]", "]"))
    before = staged.state()
    done = sandbox.run(f"{script}; sleep 8", policy=staged.policy, timeout=60)
    held = done.code == 137 or "No space" in done.err or "quota" in done.err.lower() or "too large" in done.err
    assert held, done
    assert differences(before, staged.state()) == []


def test_a_state_directory_with_a_size_is_a_hard_limit(sandbox):
    """What supervision cannot hold to the byte, a file system of its own does: ENOSPC inside, nothing on the host. The
    log lies there too: where a record falls into that moment, the run is ended."""
    need("tmpfs")
    with Loop("tmpfs", sandbox.base / "disk", sandbox.identity) as disk:
        subprocess.run(["mount", "-o", "remount,size=16m", disk], check=True)
        sandbox.state = sandbox.make_directory(disk / "state")
        sandbox.write(sandbox.project / "f", "old\n")
        staged = Staged(sandbox)
        before = staged.state()
        done = sandbox.run("head -c 64000000 /dev/zero >big || echo full; : >big; echo new >f && read x <f && echo $x",
                           policy=staged.policy)
        assert differences(before, staged.state()) == []
        if done.code == 125:
            assert "log could not be written (ENOSPC)" in done.err, done
            return
        assert "No space left" in done.err and done.out == "full\nnew\n", done
        staged.session = done.session
        staged.apply()
        assert (sandbox.project / "f").read_text() == "new\n"


def test_kinds_of_changes_across_file_systems(sandbox):
    """The same judgement with numbers of inodes and devices that differ: nothing unchanged is listed."""
    need("btrfs")
    with Loop("btrfs", sandbox.base / "disk", sandbox.identity) as disk:
        sandbox.project = sandbox.make_directory(disk / "project")
        fill(sandbox, sandbox.project)
        staged = Staged(sandbox)
        staged.run("touch -r untouched r; cat untouched >copy; cat copy >untouched; touch -r r untouched; rm r copy; "
                   "chmod 600 mode; chmod 644 mode; echo x >added; rm move")
        changes = staged.diff()
        kinds = [only(changes, kind) for kind in ("added", "modified", "deleted")]
        assert kinds == [["added"], [], ["move"]], changes
