# SPDX-License-Identifier: Apache-2.0
"""`atoll apply --commit`: real git sees a commit on the checked-out branch and a clean work tree, what the person had
staged is staged still, and what a repository can have git run, or convert, is refused by name."""
import os

import pytest

from overlay import Layered
from test_apply_git import HOSTILE, WORK, Repository, committed, in_hostile

pytestmark = pytest.mark.needs("git")


@pytest.fixture
def repository(sandbox):
    repository = Repository(sandbox)
    repository.git("config", "--unset", "user.name")
    repository.git("config", "--unset", "user.email")
    sandbox.write(sandbox.home / ".gitconfig", "[user]\n\tname = A Person\n\temail = person@example.org\n")
    return repository


def commit(sandbox, layered, *words, code=0):
    done = sandbox.run_atoll("apply", "--commit", *words, layered.session)
    assert done.code == code, done
    return done


def check_sound(repository):
    assert repository.git("fsck", "--strict", "--no-dangling") == ""
    assert not [path for path in (repository.path / ".git").rglob("*.lock")]
    # What git itself would write is what is there.
    assert repository.git("diff-index", "--cached", "HEAD") == ""


def test_the_branch_has_the_changes_and_the_work_tree_is_clean(sandbox, repository):
    layered = Layered(sandbox)
    layered.inside(WORK)
    before = repository.git("rev-parse", "HEAD").strip()
    done = commit(sandbox, layered, "-m", "what the agent did\n\nand why")
    assert "on main with 8 files" in done.out and "4 new files" in done.out, done
    assert repository.git("status", "--porcelain") == ""
    names = repository.git("diff", "--name-status", "-z", before, "main").split("\0")
    assert sorted(zip(names[1::2], names[0::2])) == sorted([
        ("binary", "A"), ("deep/only-here", "A"), ("gone", "D"), ("keep.log", "A"), ("new/file", "A"),
        ("new/link", "A"), ("odd\nname", "A"), ("text", "M")]), names
    assert repository.git("log", "-1", "--format=%an|%ae|%cn|%s|%b|%P").strip() == (
        f"A Person|person@example.org|A Person|what the agent did|and why\n|{before}")
    assert "100755" in repository.git("ls-tree", "main", "new/file")
    logs = repository.git("reflog", "--format=%gs", "main").splitlines(), repository.git("reflog", "--format=%gs")
    assert logs[0][0] == "commit: what the agent did" == logs[1].splitlines()[0], logs
    check_sound(repository)
    # git goes on from there.
    sandbox.write(repository.path / "text", "by hand\n")
    repository.git("commit", "-q", "-a", "-m", "next")
    check_sound(repository)


def test_what_was_staged_before_stays_staged(sandbox, repository):
    sandbox.write(repository.path / "mine", "staged by the person\n")
    sandbox.write(repository.path / "deep/in/file", "changed and staged\n")
    repository.git("add", "mine", "deep")
    sandbox.write(repository.path / "deep/in/file", "changed again\n")
    repository.git("update-index", "--assume-unchanged", ".gitignore")
    before = repository.git("status", "--porcelain"), repository.git("diff", "--cached"), repository.git("diff")
    layered = Layered(sandbox)
    layered.inside("echo four >>text; echo n >new")
    commit(sandbox, layered)
    after = repository.git("status", "--porcelain"), repository.git("diff", "--cached"), repository.git("diff")
    assert after == before and after[0], after
    assert repository.git("ls-files", "-v", ".gitignore").startswith("h ")
    assert repository.git("show", "--name-only", "--format=", "HEAD").split() == ["new", "text"]
    assert repository.git("fsck", "--strict", "--no-dangling") == ""


def test_a_file_that_changed_in_the_moment_of_the_index_is_seen_still(sandbox, repository):
    """Racily clean: as old as the index and as long as before, so that git would believe it unchanged."""
    index, file = repository.path / ".git/index", repository.path / "gone"
    repository.git("update-index", "--refresh")
    status = index.stat()
    sandbox.write(file, "X\n")
    os.utime(file, ns=(status.st_mtime_ns, status.st_mtime_ns))
    repository.git("update-index", "--assume-unchanged", "gone")
    repository.git("update-index", "--no-assume-unchanged", "gone")
    layered = Layered(sandbox)
    layered.inside("echo n >new")
    commit(sandbox, layered)
    assert repository.git("status", "--porcelain") == " M gone\n"


@pytest.mark.parametrize("shape", ["packed", "detached", "unborn", "deep branch", "version 4", "no reflog"])
def test_heads_and_indexes(sandbox, repository, shape):
    if shape == "packed":
        repository.git("pack-refs", "--all")
        repository.git("gc", "-q")
        assert not (repository.path / ".git/refs/heads/main").exists()
    elif shape == "detached":
        repository.git("checkout", "-q", "--detach")
    elif shape == "unborn":
        repository.git("checkout", "-q", "--orphan", "fresh")
        repository.git("rm", "-q", "-r", "--cached", ".")
        for name in ("text", "gone", "deep/in/file", ".gitignore"):
            (repository.path / name).unlink()
    elif shape == "deep branch":
        repository.git("checkout", "-q", "-b", "a/b/c")
        repository.git("pack-refs", "--all")
    elif shape == "version 4":
        repository.git("update-index", "--index-version", "4")
    else:
        for path in (repository.path / ".git/logs").rglob("*"):
            if path.is_file():
                path.unlink()
    before = repository.git("rev-parse", "main").strip()
    layered = Layered(sandbox)
    layered.inside("echo x >x; mkdir -p d; echo y >d/y")
    done = commit(sandbox, layered)
    assert repository.git("status", "--porcelain") == "", done
    assert repository.git("show", "--name-only", "--format=%P", "HEAD").split() == (
        ["d/y", "x"] if shape == "unborn" else [before, "d/y", "x"])
    if shape == "detached":
        assert repository.git("rev-parse", "main").strip() == before and "detached" in done.out
    check_sound(repository)


@pytest.mark.parametrize("state, said", [
    ("echo mine >>text", "not committed"),
    ("echo mine >>text; git add text", "git add"),
    ("rm text; mkdir text; echo x >text/y", "not committed"),
    ("git rm -q --cached text", "git add"),
    ("chmod 755 text", "not committed"),
    ("git mv text other; cp other text", "git add"),
])
def test_changes_of_the_person_in_the_same_file_are_refused(sandbox, repository, state, said):
    """Before anything is applied: nobody wants half of somebody's own work in a commit of the agent's."""
    done = sandbox.run_outside(["sh", "-ec", state], cwd=repository.path, env=sandbox.full_environment())
    assert done.code == 0, done
    layered = Layered(sandbox)
    layered.inside("rm -rf text; echo agent >text; echo x >x")
    before = repository.state()
    done = commit(sandbox, layered, code=125)
    assert "text" in done.err and said in done.err, done
    assert repository.state() == before
    layered_only = sandbox.run_atoll("apply", "--commit", "-x", "text", layered.session)
    assert repository.git("show", "--name-only", "--format=", "HEAD").split() == ["x"], layered_only


ODD = {
    "a merge": ("git checkout -q -b o; echo o >text; git commit -q -a -m o; git checkout -q main; echo m >text; "
                "git commit -q -a -m m; git merge -q o || true", "merge"),
    "alternates": ("git clone -q -s . ../shared; rm -rf .git; mv ../shared/.git .git", "alternates"),
    "split index": ("git update-index --split-index", "split"),
    "sparse index": ("mkdir s; echo x >s/x; git add s; git commit -q -m s; "
                     "git sparse-checkout set --cone --sparse-index deep", "sparse"),
    "hooksPath": ("git config core.hooksPath hooks", "core.hookspath"),
    "hook": ("printf '#!/bin/sh\\n' >.git/hooks/commit-msg; chmod 755 .git/hooks/commit-msg", "commit-msg"),
    "signatures": ("git config commit.gpgSign true", "commit.gpgsign"),
    "include": ("git config include.path ../x", "include.path"),
    "lock": ("touch .git/index.lock", "index.lock"),
    "own name": ("git config user.email other@example.org", "GIT_AUTHOR_EMAIL"),
    "sha256": ("rm -rf .git; git init -q --object-format=sha256; git add text; git commit -q -m x", ""),
    "no branch": ("git update-ref refs/remotes/o/x HEAD; git symbolic-ref HEAD refs/remotes/o/x", "names no branch"),
    "ref lock": ("touch .git/refs/heads/main.lock", "at work"),
    "bare": ("git config core.bare true", "core.bare"),
    "rebase": ("mkdir .git/rebase-merge", "rebase"),
}


@pytest.mark.parametrize("kind", ODD)
def test_repositories_that_it_does_not_know_are_refused_by_name(sandbox, repository, kind):
    script, said = ODD[kind]
    done = sandbox.run_outside(["sh", "-ec", script], cwd=repository.path, env=sandbox.full_environment())
    assert done.code == 0, done
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    done = commit(sandbox, layered, code=125)
    assert said in done.err and not (repository.path / "x").exists(), done
    assert len(done.err.strip().splitlines()) == 1, done


# Each sets core.hooksPath for git, and looks like something else to a reader that goes by lines or strings.
SPELLINGS = [b"\xef\xbb\xbf[core]\nhooksPath = hooks\n", b"\r[core]\nhooksPath = hooks\n",
             b"[user][core] hooksPath = hooks\n", b"[core]\nx = a\\\n[user]\nhooksPath = hooks\n",
             b"[core]\nx = a\\\r\n[user]\r\nhooksPath = hooks\r\n", b"[user \"a]\"][core] hooksPath = hooks\n",
             b"#\0\n[core]\nhooksPath = hooks\n", b"[CORE]\r\n\r hooksPATH=hooks"]


def test_no_spelling_hides_a_setting(sandbox, repository):
    file = repository.path / ".git" / "config"
    original = file.read_bytes()
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    for spelling in SPELLINGS:
        file.write_bytes(spelling + b"\n" + original)
        # The control: git obeys it.
        assert repository.git("config", "core.hooksPath").strip() == "hooks", spelling
        done = commit(sandbox, layered, code=125)
        assert "core.hookspath" in done.err or b"\0" in spelling and "toolarge" in done.err, (spelling, done)
    file.write_bytes(original)
    commit(sandbox, layered)
    assert (repository.path / "x").exists()


def test_a_linked_work_tree_and_a_project_without_git_are_refused(sandbox, repository):
    linked = repository.path / "linked"
    repository.git("worktree", "add", "-q", str(linked), "-b", "side")
    done = sandbox.run(["sh", "-c", "echo x >x"], cwd=linked, options=["-q"])
    made = sandbox.run_atoll("apply", "--commit", done.session, cwd=linked)
    assert made.code == 125 and "linked work tree" in made.err and "--branch" in made.err, made


CONVERTED = {
    "lfs": ("echo '*.bin filter=lfs diff=lfs -text' >.gitattributes", "printf x >a.bin", "the filter lfs"),
    "macro": ("echo '[attr]big filter=lfs' >.gitattributes", "printf x >a.bin", "filter"),
    "in a directory": ("mkdir -p d; echo 'a.bin filter=x' >d/.gitattributes", "mkdir -p d; printf x >d/a.bin",
                       "filter x"),
    "info": ("mkdir -p .git/info; echo '* filter=x' >.git/info/attributes", "printf x >a", "filter x"),
    "line ends": ("echo '* text=auto' >.gitattributes", "printf 'a\\r\\nb\\r\\n' >a", "line ends"),
    "autocrlf": ("git config core.autocrlf input", "printf 'a\\r\\n' >a", "line ends"),
    "encoding": ("echo '*.txt working-tree-encoding=UTF-16' >.gitattributes", "printf a >a.txt", "encoding"),
    "ident": ("echo '* ident' >.gitattributes", "printf '$Id$' >a", "ident"),
    "staged by the agent": ("true", "echo '* filter=x' >.gitattributes; echo x >a", "filter x"),
}


@pytest.mark.parametrize("kind", CONVERTED)
def test_files_that_git_would_convert_are_refused_by_name(sandbox, repository, kind):
    script, inside, said = CONVERTED[kind]
    done = sandbox.run_outside(["sh", "-ec", f"{script}; git add -A; git commit -q -m attributes --allow-empty"],
                               cwd=repository.path, env=sandbox.full_environment())
    assert done.code == 0, done
    layered = Layered(sandbox)
    layered.inside(inside)
    before = repository.state()
    done = commit(sandbox, layered, "--allow-flagged", repository.path, code=125)
    assert said in done.err and repository.state() == before, done


def test_attributes_that_change_nothing_are_no_obstacle(sandbox, repository):
    sandbox.write(repository.path / ".gitattributes",
                  "* text=auto eol=crlf\n*.png filter=lfs\n*.png -filter\n*.sh text eol=lf\nother filter=x\n"
                  "*.bat -text\n")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "attributes")
    layered = Layered(sandbox)
    layered.inside(r"echo a >a; printf 'b\0\r\n' >b.png; echo c >c.sh; printf 'd\r\n' >d.bat")
    commit(sandbox, layered)
    assert repository.git("status", "--porcelain") == ""
    check_sound(repository)


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_of_the_repository_runs(sandbox, repository, kind):
    """Refused or not. That each of these does run something by git's own hand is shown in test_apply_git.py."""
    layered, marker = in_hostile(sandbox, repository, kind)
    done = sandbox.run_atoll("apply", "--commit", layered.session)
    assert not marker.exists() and done.code in (0, 125), (kind, done)
    if done.code == 0:
        assert committed(sandbox, repository, "main:x") == "x\n"


def test_submodules_and_what_is_gits_own_stay_out(sandbox, repository):
    head = repository.git("rev-parse", "HEAD").strip()
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    repository.git("commit", "-q", "-m", "sub")
    layered = Layered(sandbox)
    layered.inside("mkdir -p sub; echo x >sub/file; echo z >z; git status >/dev/null 2>&1; "
                   "git config --local a.b c; true")
    done = commit(sandbox, layered)
    assert "belong to another repository: 1 file" in done.out and "leaves .git to git" in done.out, done
    assert repository.git("diff", "--name-only", "HEAD~1", "HEAD").split() == ["z"]
    assert "160000" in repository.git("ls-tree", "HEAD", "sub")
    assert "[a]" not in (repository.path / ".git/config").read_text()


def test_undo_says_what_becomes_of_the_commit(sandbox, repository):
    layered = Layered(sandbox)
    layered.inside("echo four >>text; echo x >x")
    commit(sandbox, layered, "-m", "one")
    made = repository.git("rev-parse", "HEAD").strip()
    done = sandbox.run_atoll("undo", layered.session)
    assert done.code == 0 and made[:12] in done.out and "git reset" in done.out and "git revert" in done.out, done
    repository.git("reset", "-q", f"{made}~1")
    assert repository.git("status", "--porcelain") == ""


def test_a_dry_run_and_wrong_words(sandbox, repository):
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    before = repository.state()
    assert commit(sandbox, layered, "--dry-run").code == 0
    assert repository.state() == before
    for words in (["--branch", "b"], ["--patch", "-"], ["--resume"]):
        assert commit(sandbox, layered, *words, code=125).err
    assert repository.state() == before


def test_hunks_are_chosen_for_a_commit(sandbox, repository):
    sandbox.write(repository.path / "long", "".join(f"{number}\n" for number in range(40)))
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "long")
    layered = Layered(sandbox)
    layered.inside("sed -i 's/^3$/three/; s/^30$/thirty/' long")
    done = sandbox.run_atoll("apply", "-i", "--commit", layered.session, stdin=b"y\nn\n")
    shown = repository.git("show", "HEAD:long")
    assert "three" in shown and "thirty" not in shown, done
    assert repository.git("status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["HEAD", "refs/heads/main", "index"])
def test_links_in_the_git_directory_are_not_followed(sandbox, repository, name):
    target = sandbox.base / "target"
    path = repository.path / ".git" / name
    sandbox.write(target, path.read_bytes())
    path.unlink()
    path.symlink_to(target)
    before = target.read_bytes()
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    done = sandbox.run_atoll("apply", "--commit", layered.session)
    assert target.read_bytes() == before and done.code in (0, 125), done


@pytest.mark.parametrize("name", [".git/HEAD", ".git/config", ".git/commondir", ".git/packed-refs", ".git/logs/HEAD",
                                  ".git/logs/refs/heads/main", ".git/refs/heads/main", ".git/index",
                                  ".git/info/attributes", ".git/info/exclude", ".gitattributes"])
def test_a_fifo_in_the_repository_holds_nobody_up(sandbox, repository, name):
    """git itself waits for somebody to write into it, for some of them."""
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    path = repository.path / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    done = sandbox.run_atoll("apply", "--commit", layered.session, timeout=30)
    assert done.code in (0, 125), done
    assert done.code == 0 or "commit" in done.err or "git" in done.err, done
    assert not [lock for lock in (repository.path / ".git").rglob("*.lock")]
