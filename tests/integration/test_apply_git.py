# SPDX-License-Identifier: Apache-2.0
"""`atoll apply --branch` and `--patch`: real git sees a commit or takes a patch, the work tree and the index stay as
they are, and nothing that a repository can have git run is run."""
import hashlib
import os
import shlex
import subprocess

import pytest

from overlay import Layered

pytestmark = pytest.mark.needs("git")


class Repository:
    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.path = sandbox.project
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A Person")
        self.git("config", "user.email", "person@example.org")
        for name, content in {"text": "one\ntwo\nthree\n", "gone": "g\n", "deep/in/file": "f\n",
                              ".gitignore": "node_modules/\n*.log\n!keep.log\n/only-here\n"}.items():
            sandbox.write(self.path / name, content)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")

    def git(self, *words, check=True, cwd=None):
        done = self.sandbox.run_outside(["git", *words], cwd=cwd or self.path, env=self.sandbox.full_environment())
        assert not check or done.code == 0, done
        return done.out

    def state(self):
        """All that a person has there but for objects and the new branch: bytes of the index, refs, files."""
        index = hashlib.sha256((self.path / ".git/index").read_bytes()).hexdigest()
        files = sorted((str(path.relative_to(self.path)), path.read_bytes()) for path in self.path.rglob("*")
                       if path.is_file() and ".git" not in path.parts)
        return index, files, (self.path / ".git/HEAD").read_text(), self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(sandbox):
    return Repository(sandbox)


WORK = r"""echo four >>text; rm gone; mkdir -p new; echo n >new/file; chmod 755 new/file; ln -s file new/link
mkdir -p node_modules/p deep/node_modules; echo 1 >node_modules/p/index.js; echo 1 >deep/node_modules/x; echo l >x.log
echo k >keep.log; echo o >only-here; echo o >deep/only-here; printf 'a\0b' >binary; echo x >"$(printf 'odd\nname')"
"""


def test_a_branch_has_the_changes_and_the_person_has_what_was_there(sandbox, repository):
    layered = Layered(sandbox)
    sandbox.write(repository.path / "mine", "staged by the person\n")
    repository.git("add", "mine")
    layered.inside(WORK)
    before = repository.state()
    done = sandbox.run_atoll("apply", "--branch", "agent/work", "-m", "what the agent did", layered.session)
    assert done.code == 0 and "agent/work" in done.out, done
    assert repository.state() == before
    names = repository.git("diff", "--name-status", "-z", "main", "agent/work").split("\0")
    assert sorted(zip(names[1::2], names[0::2])) == sorted([
        ("binary", "A"), ("deep/only-here", "A"), ("gone", "D"), ("keep.log", "A"), ("new/file", "A"),
        ("new/link", "A"), ("odd\nname", "A"), ("text", "M")]), names
    assert repository.git("log", "-1", "--format=%an|%ae|%s|%P", "agent/work").strip() == (
        f"A Person|person@example.org|what the agent did|{before[3].strip()}")
    assert "100755" in repository.git("ls-tree", "agent/work", "new/file")
    assert repository.git("cat-file", "blob", "agent/work:new/link") == "file"
    repository.git("fsck", "--strict")
    # Nothing was applied: it can be still.
    assert sandbox.run_atoll("apply", layered.session).code == 0 and (repository.path / "new/file").exists()
    assert repository.git("merge-base", "--is-ancestor", "main", "agent/work") == ""
    log = sandbox.audit_log(layered.session).read_text()
    assert "--branch" in log and "agent/work" in log


def test_flagged_paths_need_their_own_yes_for_a_branch_too(sandbox, repository):
    layered = Layered(sandbox)
    layered.inside("mkdir -p .vscode; echo '{}' >.vscode/tasks.json; echo x >fine; echo evil >.git/hooks/post-merge")
    done = sandbox.run_atoll("apply", "--branch", "one", layered.session)
    assert done.code == 1 and "tasks.json" in done.err, done
    assert repository.git("diff", "--name-only", "main", "one").split() == ["fine"]
    done = sandbox.run_atoll("apply", "--branch", "two", "--allow-flagged", repository.path, layered.session)
    assert repository.git("diff", "--name-only", "main", "two").split() == [".vscode/tasks.json", "fine"], done
    assert not (repository.path / ".git/hooks/post-merge").exists()


def test_hunks_are_chosen_for_a_branch(sandbox, repository):
    sandbox.write(repository.path / "long", "".join(f"{number}\n" for number in range(40)))
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "long")
    layered = Layered(sandbox)
    layered.inside("sed -i 's/^3$/three/; s/^30$/thirty/' long")
    done = sandbox.run_atoll("apply", "-i", "--branch", "part", layered.session, stdin=b"y\nn\n")
    assert done.code == 0, done
    shown = repository.git("show", "part:long")
    assert "three" in shown and "thirty" not in shown
    assert "three" not in (repository.path / "long").read_text()


@pytest.mark.parametrize("name", ["", "-x", "..", "a..b", "a/../../../hooks/x", "/abs", "x.lock", "a b", "@{-1}",
                                  "HEAD", "a\nb", "refs/../x", ".x", "a//b", "x" * 300])
def test_a_name_that_is_none_makes_nothing(sandbox, repository, name):
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    before = sorted(os.walk(repository.path / ".git"))
    done = sandbox.run_atoll("apply", f"--branch={name}", layered.session)
    assert done.code == 125, done
    assert sorted(os.walk(repository.path / ".git")) == before


def test_a_branch_that_is_there_stays(sandbox, repository):
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    repository.git("branch", "taken")
    repository.git("branch", "packed/one")
    repository.git("pack-refs", "--all")
    kept = repository.git("for-each-ref")
    for name in ("taken", "packed/one", "packed", "main", "main/below"):
        done = sandbox.run_atoll("apply", "--branch", name, layered.session)
        assert done.code == 125 or name in ("packed", "main/below"), (name, done)
    assert repository.git("for-each-ref").startswith(kept.split("\n")[0])
    assert repository.git("rev-parse", "taken") == repository.git("rev-parse", "main")


def test_first_commit_detached_head_packed_and_linked_work_trees(sandbox, repository):
    repository.git("gc", "-q")
    repository.git("checkout", "-q", "--detach")
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    assert sandbox.run_atoll("apply", "--branch", "detached", layered.session).code == 0
    assert repository.git("diff", "--name-only", "main", "detached").split() == ["x"]
    repository.git("checkout", "-q", "--orphan", "fresh")
    assert sandbox.run_atoll("apply", "--branch", "root", layered.session).code == 0
    assert repository.git("log", "--format=%P", "root").strip() == ""


# What git runs, and what makes it: each writes the marker.
HOSTILE = {
    "hooks": "for h in pre-commit post-commit prepare-commit-msg commit-msg reference-transaction post-index-change "
             "post-checkout; do cp $EVIL .git/hooks/$h; done",
    "hooksPath": "mkdir hooks; for h in pre-commit reference-transaction; do cp $EVIL hooks/$h; done; "
                 "git config core.hooksPath hooks",
    "fsmonitor": "git config core.fsmonitor $EVIL",
    "filter": "git config filter.x.clean $EVIL; git config filter.x.process $EVIL; git config filter.x.smudge $EVIL; "
              "git config filter.x.required true; echo '* filter=x' >.git/info/attributes; "
              "echo '* filter=x' >.gitattributes",
    "textconv": "git config diff.x.textconv $EVIL; git config diff.x.command $EVIL; git config diff.external $EVIL; "
                "echo '* diff=x' >.git/info/attributes",
    "gpg": "git config commit.gpgSign true; git config gpg.program $EVIL; git config user.signingKey x",
    "editor": "git config core.editor $EVIL; git config sequence.editor $EVIL; git config core.pager $EVIL",
    "alias": "git config alias.commit '!'$EVIL; git config alias.write-tree '!'$EVIL",
    "include": "git config include.path ../evil.config; printf '[core]\\n\\tfsmonitor = %s\\n' $EVIL >evil.config",
    "ssh": "git config core.sshCommand $EVIL; git config credential.helper '!'$EVIL; git config core.askPass $EVIL; "
           "git config remote.origin.url ext::$EVIL; git config remote.origin.promisor true; "
           "git config protocol.ext.allow always",
    "alternate refs": "git config core.alternateRefsCommand $EVIL; mkdir -p .git/objects/info; "
                      "echo $PWD/elsewhere >.git/objects/info/alternates",
    "uploadpack": "git config uploadpack.packObjectsHook $EVIL; git config gc.recentObjectsHook $EVIL",
}
CONTROLS = {"hooks", "hooksPath", "fsmonitor", "filter", "gpg", "include"}


def in_hostile(sandbox, repository, kind):
    """Two changes, staged in a repository of this kind, and the file that is there once something of it ran."""
    marker, evil = sandbox.base / "marker", sandbox.base / "evil"
    sandbox.write(evil, f"#!/bin/sh\necho ran >>{shlex.quote(str(marker))}\ncat\n", mode=0o755)
    made = sandbox.run_outside(["sh", "-ec", HOSTILE[kind]], cwd=repository.path,
                               env=sandbox.full_environment({"EVIL": str(evil)}))
    assert made.code == 0, made
    marker.unlink(missing_ok=True)
    layered = Layered(sandbox)
    layered.inside("echo x >x; echo y >>text")
    return layered, marker


def committed(sandbox, repository, name):
    """The bytes of BRANCH:PATH, with nothing of the repository's own asked."""
    return sandbox.run_outside(["git", "--no-pager", "-c", "core.fsmonitor=false", "cat-file", "blob", name],
                               cwd=repository.path, env=sandbox.full_environment()).out


@pytest.mark.parametrize("kind", HOSTILE)
def test_nothing_of_the_repository_runs(sandbox, repository, kind):
    layered, marker = in_hostile(sandbox, repository, kind)
    done = sandbox.run_atoll("apply", "--branch", "safe", layered.session)
    patch = sandbox.run_atoll("apply", "--patch", "-", layered.session)
    assert not marker.exists(), (kind, done)
    assert done.code == 0 and patch.code == 0 and "+y" in patch.out, (done, patch)
    # The bytes are those of the session, whatever a filter would have made of them.
    assert committed(sandbox, repository, "safe:x") == "x\n"
    if kind in CONTROLS:
        marker.unlink(missing_ok=True)
        sandbox.write(repository.path / "x", "by hand\n")
        sandbox.run_outside(["sh", "-c", "git add -A; git commit -q -m control"], cwd=repository.path,
                            env=sandbox.full_environment(), timeout=60)
        assert marker.exists(), f"the control of {kind} ran nothing"


def test_a_git_directory_that_leads_elsewhere_is_not_followed(sandbox, repository):
    other = sandbox.make_directory(sandbox.base / "other")
    subprocess.run(["cp", "-a", f"{repository.path}/.git", f"{other}/.git"], check=True)
    subprocess.run(["rm", "-rf", f"{repository.path}/.git"], check=True)
    before = sorted(os.walk(other))
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    git = repository.path / ".git"
    for make in (lambda: sandbox.write(git, f"gitdir: {other}/.git\n"), lambda: git.symlink_to(other / ".git")):
        make()
        done = sandbox.run_atoll("apply", "--branch", "stray", layered.session)
        assert done.code == 125 and "--patch" in done.err, done
        assert sorted(os.walk(other)) == before
        git.unlink()
    # Objects and refs that are links out of it.
    for name in ("objects", "refs"):
        subprocess.run(["cp", "-a", f"{other}/.git", str(git)], check=True)
        subprocess.run(["rm", "-rf", str(git / name)], check=True)
        (git / name).symlink_to(other / ".git" / name)
        assert sandbox.run_atoll("apply", "--branch", "stray", layered.session).code == 125
        assert sorted(os.walk(other)) == before
        subprocess.run(["rm", "-rf", str(git)], check=True)


def test_a_linked_work_tree_gets_the_branch_in_its_repository(sandbox, repository):
    linked = repository.path / "linked"
    repository.git("worktree", "add", "-q", str(linked), "-b", "side")
    done = sandbox.run(["sh", "-c", "echo x >x"], cwd=linked, options=["-q"])
    assert done.code == 0, done
    made = sandbox.run_atoll("apply", "--branch", "from-linked", done.session, cwd=linked)
    assert made.code == 0, made
    assert repository.git("diff", "--name-only", "side", "from-linked").split() == ["x"]


def test_submodules_and_repositories_inside_stay_out(sandbox, repository):
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{repository.git('rev-parse', 'HEAD').strip()},sub")
    repository.git("commit", "-q", "-m", "sub")
    layered = Layered(sandbox)
    layered.inside("mkdir -p sub nested; echo x >sub/file; git init -q nested 2>/dev/null || mkdir nested/.git; "
                   "echo y >nested/file; echo z >z")
    done = sandbox.run_atoll("apply", "--branch", "b", layered.session)
    assert repository.git("diff", "--name-only", "main", "b").split() == ["z"], done
    assert "160000" in repository.git("ls-tree", "b", "sub")


def test_who_it_is_by(sandbox, repository):
    repository.git("config", "--unset", "user.name")
    repository.git("config", "--unset", "user.email")
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    nobody = sandbox.run_atoll("apply", "--branch", "b", layered.session)
    assert nobody.code == 125 and "user.name" in nobody.err, nobody
    sandbox.write(sandbox.home / ".gitconfig",
                  '[core]\n\teditor = x\n[user]\n\tname = "Ö \\"N\\" # x" ; c\n\temail=o@example.org\n')
    assert sandbox.run_atoll("apply", "--branch", "b", layered.session).code == 0
    assert repository.git("log", "-1", "--format=%an|%ae", "b").strip() == 'Ö "N" # x|o@example.org'
    given = sandbox.run_atoll("apply", "--branch", "c", layered.session,
                              env={"GIT_AUTHOR_NAME": "E\nnv <x>", "GIT_AUTHOR_EMAIL": "e@example.org"})
    assert given.code == 0 and repository.git("log", "-1", "--format=%ae", "c").strip() == "e@example.org", given


def test_a_patch_is_one_that_git_takes(sandbox, repository):
    layered = Layered(sandbox)
    layered.inside(WORK + "mkdir -p .vscode; echo '{}' >.vscode/tasks.json")
    patch = repository.path.parent / "changes.patch"
    done = sandbox.run_atoll("apply", "--patch", patch, layered.session, cwd=repository.path)
    assert f"take it with: git apply {patch}" in done.err and "git apply" not in done.out, done
    assert done.code == 1 and "tasks.json" in done.err and done.out == "", done
    assert "tasks.json" not in patch.read_text(errors="replace")
    again = sandbox.run_atoll("apply", "--patch", patch, layered.session)
    assert again.code == 125 and "cannot be made" in again.err, again
    repository.git("apply", "--index", str(patch))
    assert (repository.path / "text").read_text().endswith("four\n") and not (repository.path / "gone").exists()
    assert (repository.path / "binary").read_bytes() == b"a\0b" and os.readlink(repository.path / "new/link") == "file"


def test_without_a_repository_it_says_what_to_do(sandbox):
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    done = sandbox.run_atoll("apply", "--branch", "b", layered.session)
    assert done.code == 125 and "--patch" in done.err, done


@pytest.mark.only("root")
def test_a_repository_of_another_user_is_left_alone(sandbox, repository):
    layered = Layered(sandbox)
    layered.inside("echo x >x")
    os.chown(repository.path / ".git", 12345, 12345)
    before = sorted(os.walk(repository.path / ".git"))
    done = sandbox.run_atoll("apply", "--branch", "b", layered.session)
    assert done.code == 125 and "another user" in done.err, done
    assert sorted(os.walk(repository.path / ".git")) == before
    os.chown(repository.path / ".git", 0, 0)
    assert sandbox.run_atoll("apply", "--branch", "b", layered.session).code == 0
