# SPDX-License-Identifier: Apache-2.0
"""F21 to F25, F43: what the host runs later. Each row of the table that a program here can show is shown by running the
program over it; what of all that is staged is flagged, and nothing of it runs on the host after an apply."""
import shlex

import pytest

from runlater import CASES, example, rows
from stage import Staged

# What `make check` has anyway: rows of other programs name a source, so that nothing rests on what a machine has.
ALWAYS = {"git", "make", "python3", "npm", "perl"}


def write_files(sandbox, directory, case):
    for name, text in case.files.items():
        sandbox.write(directory / name, text, 0o755)


def show(sandbox, directory, case):
    sandbox.make_directory(directory)
    if case.before:
        sandbox.run_outside(["sh", "-c", case.before], cwd=directory, check=True)
    return sandbox.run_outside(["sh", "-c", case.command], cwd=directory, env=case.env)


def is_there(sandbox, program):
    return sandbox.run_outside(["sh", "-c", f"command -v {program}"]).code == 0


@pytest.mark.only("user")
@pytest.mark.parametrize("name", CASES)
def test_a_row_is_what_a_program_runs(sandbox, name):
    """The positive control: without the row's files nothing runs, with them it does."""
    case = CASES[name]
    if not is_there(sandbox, case.needs):
        assert case.needs not in ALWAYS, "a package of `make check` is missing"
        assert all(has_source for row, has_source in rows() if row in case.rows), "a row that nothing here shows"
        return
    if not (set(case.rows) & {"**/*.pyc"}):
        show(sandbox, sandbox.base / "without", case)
        assert not (sandbox.base / "without/ran").exists()
    directory = sandbox.make_directory(sandbox.base / "with")
    if case.before:
        sandbox.run_outside(["sh", "-c", case.before], cwd=directory, check=True)
    write_files(sandbox, directory, case)
    done = sandbox.run_outside(["sh", "-c", case.command], cwd=directory, env=case.env)
    assert (directory / "ran").exists(), done


def test_each_row_is_shown_or_names_its_source():
    shown = {row for case in CASES.values() if case.needs in ALWAYS for row in case.rows}
    own = {"**/.atoll.yaml"}    # tests/escape/test_stage_review.py
    assert [row for row, has_source in rows() if not has_source and row not in shown | own] == []
    assert shown <= {row for row, _ in rows()}


def test_all_rows_are_flagged(sandbox):
    """Also where a directory of packages is left out of a row, and what only looks alike."""
    names = [f"n{index}/{example(row)}" for index, (row, _) in enumerate(rows()) if row.startswith("**/")]
    names = [name for name in names if not name.endswith((".atoll.yaml", "/package.json"))]
    names.append("n/package.json")
    plain = ["makefiles/x", "src/makefile.c", "envrc", "node_modules/x/package.json", "node_modules/x/Makefile",
             "node_modules/x/.travis.yml", "node_modules/x/.github/workflows/x.yml", "node_modules/x/.npmrc",
             "tools/pre-commit/README", "commit-msg/x", ".venv/lib/python3.11/site-packages/x/x.pyc",
             ".venv/lib/python3.11/site-packages/x/setup.py"]
    script = "\n".join(f"mkdir -p {shlex.quote(name.rpartition('/')[0])}; echo '{{\"bin\": \"x\"}}' "
                       f">{shlex.quote(name)}" for name in names + plain)
    staged = Staged(sandbox)
    done = staged.run(["sh", "-c", script])
    changes = staged.diff()
    assert [name for name in names if not changes[name]["flagged"]] == []
    assert [name for name in [*plain, "tools/pre-commit", "commit-msg"] if changes[name]["flagged"]] == []
    assert done.report["changes"]["flagged"] == sum(change["flagged"] for change in changes.values())
    staged.apply(code=1)
    assert [name for name in names if (sandbox.project / name).exists()] == []
    assert all((sandbox.project / name).exists() for name in plain)


def test_a_directory_in_the_place_of_a_hook_takes_it_away(sandbox):
    """Its name is no hook's, but the hook that goes is one; and what is no directory is flagged whatever it is."""
    sandbox.write(sandbox.project / "tools/pre-push", "true\n", 0o755)
    sandbox.make_directory(sandbox.project / "was/pre-push")
    staged = Staged(sandbox)
    staged.run("rm tools/pre-push; mkdir tools/pre-push; rmdir was/pre-push; echo x >was/pre-push; "
               "ln -s was commit-msg")
    flagged = {path for path, change in staged.diff().items() if change["flagged"]}
    assert flagged == {"tools/pre-push", "was/pre-push", "commit-msg"}


GIT_CASES = [name for name in CASES if name.startswith("git-")]


@pytest.mark.parametrize("name", GIT_CASES)
def test_nothing_of_git_runs_after_an_apply(sandbox, name):
    """F43. Made inside, applied with all that is not flagged: the command runs nothing on the host."""
    case = CASES[name]
    if case.before:
        sandbox.run_outside(["sh", "-c", case.before], cwd=sandbox.project, check=True)
    staged = Staged(sandbox)
    inside = sandbox.base / "made"
    write_files(sandbox, inside, case)
    script = "\n".join(f"mkdir -p $(dirname {path}); printf %s {shlex.quote(text)} >{path}; chmod 755 {path}"
                       for path, text in case.files.items())
    staged.run(script + "\necho x >fine")
    assert any(change["flagged"] for change in staged.diff().values())
    staged.apply(code=1)
    assert (sandbox.project / "fine").exists()
    sandbox.run_outside(["sh", "-c", case.command], cwd=sandbox.project, env=case.env)
    assert not (sandbox.project / "ran").exists()


def test_a_repository_is_not_made_of_two_applies(sandbox):
    """The configuration comes unseen while there is no repository; then what makes it one is flagged."""
    first = Staged(sandbox)
    first.run("mkdir docs; echo 'ref: refs/heads/x' >docs/HEAD; "
              "printf '[core]\\n\\tbare = false\\n\\tworktree = ..\\n\\tfsmonitor = touch ran; false\\n' >docs/config")
    first.apply()
    second = Staged(sandbox)
    second.run("mkdir docs/objects docs/refs; touch docs/objects/x docs/refs/x")
    changes = second.diff()
    assert changes["docs/objects"]["flagged"] and changes["docs/refs"]["flagged"], changes
    second.apply(code=1)
    sandbox.run_outside(["sh", "-c", "cd docs && git status"], cwd=sandbox.project)
    assert not (sandbox.project / "ran").exists() and not (sandbox.project / "docs/objects").exists()


POISON = """
import subprocess, sys, zlib
body = b"all:\\n\\ttouch ran\\n"
name = subprocess.run(["git", "rev-parse", "HEAD:Makefile"], capture_output=True, text=True, check=True).stdout.strip()
path = f".git/objects/{name[:2]}/{name[2:]}"
subprocess.run(["chmod", "u+w", path], check=True)
open(path, "wb").write(zlib.compress(b"blob %d\\0" % len(body) + body))
"""


@pytest.mark.needs("git")
def test_no_object_of_git_gets_another_content_unseen(sandbox):
    """A commit that the person knows by its name would hold what the agent wrote: git believes the name."""
    sandbox.write(sandbox.project / "poison.py", POISON)
    setup = "git init -q . && git config user.name a && git config user.email a@b && " \
            "printf 'all:\\n\\ttrue\\n' >Makefile && git add Makefile && git commit -qm one"
    sandbox.run_outside(["sh", "-c", setup], cwd=sandbox.project, check=True)
    checkout = ["sh", "-c", "rm Makefile; git checkout -q HEAD -- Makefile; cat Makefile"]
    copy = sandbox.base / "control"
    sandbox.run_outside(["cp", "-a", str(sandbox.project), str(copy)], check=True)
    sandbox.run_outside(["/usr/bin/python3", "poison.py"], cwd=copy, check=True)
    assert "touch ran" in sandbox.run_outside(checkout, cwd=copy).out
    staged = Staged(sandbox)
    done = staged.run("/usr/bin/python3 poison.py; git commit -q --allow-empty -m two; "
                      "find .git/objects -type f -path '*/??/*' | head -1 >which; touch $(cat which)")
    flagged = [path for path, change in staged.diff().items() if change["flagged"]]
    assert len(flagged) == 1 and flagged[0].startswith(".git/objects/"), flagged
    assert done.report["changes"]["flagged"] == 1
    staged.apply(code=1)
    assert "touch ran" not in sandbox.run_outside(checkout, cwd=sandbox.project).out
    assert sandbox.run_outside(["git", "fsck", "--full"], cwd=sandbox.project).code == 0


# Git checks no name that it reads from an index. Names of equal length keep the index whole but for its checksum.
INDEX = """git config user.name a; git config user.email a@b
printf '#!/bin/sh\\ntouch ran\\n' >made
git update-index --index-version {version} --add --cacheinfo 100755,$(git hash-object -w made),{fair}
cat >edit.py <<'end'
import hashlib
text = open('.git/index', 'rb').read()[:-20]
assert {fair!r}.encode() in text
text = text.replace({fair!r}.encode(), {unfair!r}.encode())
open('.git/index', 'wb').write(text + hashlib.sha1(text).digest())
end
/usr/bin/python3 edit.py
"""


@pytest.mark.parametrize("version", [2, 4])
@pytest.mark.parametrize("fair, unfair, made", [
    ("agit/hooks/post-checkout", ".git/hooks/post-checkout", "ran"),
    ("aa/outside-of-it", "../outside-of-it", "../outside-of-it"),
])
def test_no_index_leads_out_of_its_tree(sandbox, version, fair, unfair, made):
    """`git checkout .` writes what the index names: hooks, and runs them, and what lies beside the project."""
    script = INDEX.format(version=version, fair=fair, unfair=unfair)
    control = sandbox.make_directory(sandbox.base / "control/project")
    sandbox.run_outside(["sh", "-c", f"git init -q && {script} git checkout ."], cwd=control)
    assert (control / made).exists()
    staged = Staged(sandbox)
    sandbox.git_project()
    done = staged.run(script)
    changes = staged.diff()
    assert changes[".git/index"]["flagged"], changes
    assert done.report["changes"]["flagged"] == sum(change["flagged"] for change in changes.values())
    staged.apply(code=1)
    sandbox.run_outside(["sh", "-c", "git checkout ."], cwd=sandbox.project)
    assert not (sandbox.project / made).exists()


def flagged(sandbox, script, **keywords):
    """The names that are flagged after the script inside, which is a success."""
    staged = Staged(sandbox)
    done = staged.run("set -e\n" + script, **keywords)
    assert done.code == 0, done
    names = sorted(name for name, change in staged.diff().items() if change["flagged"])
    assert done.report["changes"]["flagged"] == len(names)
    staged.verb("discard", staged.session)
    return names


def test_work_with_git_is_not_flagged(sandbox):
    """No crying wolf: what an agent does all day."""
    project = sandbox.git_project()
    git = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n"
    sandbox.write(project / "f", "1\n")
    sandbox.run_outside(["sh", "-c", git + "git add f && git commit -qm one && git branch side"], cwd=project,
                        check=True)
    assert flagged(sandbox, git + "echo 2 >>f; git commit -qam two; git tag -am t t; git gc -q; git reflog >o") == []
    assert flagged(sandbox, git + "git checkout -q side; echo g >g; git add g; git commit -qm g; "
                   "git checkout -q master; echo 2 >>f; git commit -qam two; git merge -q -m m side; "
                   "git reset -q --hard HEAD~1; git rebase -q side; git revert --no-edit HEAD >o; "
                   "git cherry-pick HEAD~1 >o") == []
    assert flagged(sandbox, git + "echo 3 >>f; git stash -q; git stash apply -q; git checkout -q --detach") == []
    assert flagged(sandbox, git + "git worktree add -q w side; cd w; echo 4 >f; git commit -qam four") == ["w/.git"]
    assert flagged(sandbox, "git init -q new") == ["new/.git", "new/.git/config"]
    assert flagged(sandbox, "git init -q --bare new") == ["new", "new/config"]


def test_a_package_is_flagged_where_what_it_runs_differs(sandbox):
    sandbox.write(sandbox.project / "package.json", '{"name": "x", "version": "1", "scripts": {"test": "true"}}')
    assert flagged(sandbox, """sed -i 's/"1"/"2", "dependencies": {"y": "^1"}/' package.json""") == []
    assert flagged(sandbox, "sed -i s/true/false/ package.json") == ["package.json"]
    assert flagged(sandbox, """sed -i 's/"1"/"1", "bin": ".x"/' package.json""") == ["package.json"]
    assert flagged(sandbox, "echo '{' >package.json") == ["package.json"]
    assert flagged(sandbox, "ln -sf x package.json") == ["package.json"]


IN_PLACE = ["sub/.git/hooks/post-checkout", "sub/.git/config", "sub/.git/commondir", ".git/commondir", ".envrc",
            ".mise/config.toml", "CLAUDE.local.md", "AGENTS.override.md", ".vscode/tasks.json", "deep/.mcp.json",
            ".hg/hgrc", ".git/worktrees/w/commondir", "new/.git/config", ".cargo/config.toml", ".pdbrc"]
PLAIN = ["Makefile", "src/main.c", "build.rs", "package.json", ".git/index", "envrc", "sub/.git/refs/heads/x"]


@pytest.mark.parametrize("level", ["high", "full"])
def test_what_is_written_in_place_is_refused_where_nobody_is_asked(sandbox, level):
    """The same table where nothing is staged: by writing, by moving a file or its directory there, by links."""
    project = sandbox.git_project()
    sandbox.run_outside(["git", "init", "-q", "sub"], cwd=project, check=True)
    config = (project / "sub/.git/config").read_text()
    ways = "\n".join(f"""(mkdir -p $(dirname {name}); echo evil >{name}) 2>/dev/null
        echo evil >moved; mv -f moved {name}; echo evil >linked; ln -f linked {name}; ln -sf linked {name}
        mkdir -p d{index}; echo evil >d{index}/{name.rpartition('/')[2]}; mv d{index} $(dirname {name})
        rm -f moved linked""" for index, name in enumerate(IN_PLACE))
    plain = "\n".join(f"mkdir -p $(dirname {name}); echo fine >>{name}" for name in PLAIN)
    control = sandbox.make_directory(sandbox.base / "control")
    sandbox.run_outside(["sh", "-c", ways], cwd=control)
    assert all((control / name).exists() or (control / name).is_symlink() for name in IN_PLACE)
    done = sandbox.run(f"{{ {ways}\n}} 2>/dev/null\nset -e\n{plain}", trust=level)
    assert done.code == 0, done
    made = [name for name in IN_PLACE if (project / name).is_symlink() or (project / name).exists()]
    assert made == ["sub/.git/config"] and (project / "sub/.git/config").read_text() == config
    assert all("fine" in (project / name).read_text(errors="replace") for name in PLAIN)


def test_a_namespace_can_be_made_where_files_are_mediated(sandbox):
    """Level high: uid_map and its like ask in whose namespace they were opened, which is not the supervisor's."""
    done = sandbox.run("unshare --user --map-root-user sh -c 'id -u; cat /proc/self/setgroups'", trust="high")
    assert done.out == "0\ndeny\n", done
