# SPDX-License-Identifier: Apache-2.0
"""The F cases that staging, masks and apply decide: what the sandbox does reaches the host by `apply` alone, never
through a link, never under a masked name, and what runs programs later only when a person names it."""
import os
import subprocess

import pytest

from atoll import wait_until
from stage import Staged, attempts, is_refused, only, staging_policy, verdicts
from tree_state import differences, tree_state

SECRET = "the secret\n"


def hidden(sandbox):
    """A place of the user that no policy here names."""
    place = sandbox.make_directory(sandbox.home / "hidden")
    sandbox.write(place / "id", SECRET, 0o600)
    return place


def test_a_run_leaves_the_host_byte_identical(sandbox):
    """F42, F26: whatever was done inside; contents, modes, times in ns, xattrs, names; the home too."""
    sandbox.git_project()
    for name in ("a", "dir/b", "dir/c", ".gitignore"):
        os.setxattr(sandbox.write(sandbox.project / name, name), "user.x", b"y")
    os.link(sandbox.project / "a", sandbox.project / "hard")
    staged = Staged(sandbox)
    before = tree_state(sandbox.home)
    script = ("echo x >>a; rm dir/b; chmod 600 dir/c; mkdir -p n/e/w; touch n/e/w/f; rm -rf dir; ln -s / dir; "
              "mv hard e; mkfifo p; git add -A; git -c user.name=a -c user.email=a@b commit -qm x; "
              "touch ~/.bash_profile ~/.mcp.json; "
              "setfattr -n user.x -v z a; ls -A")
    control = sandbox.base / "control"
    subprocess.run(["cp", "-a", sandbox.project, control], check=True)
    sandbox.run_outside(["sh", "-c", script], cwd=control, env={"HOME": str(sandbox.base / "cache")})
    assert differences(before, tree_state(control)), "the control changes nothing"
    done = staged.run(script)
    assert "dir" in done.out and "hard" not in done.out.split(), done
    assert differences(before, tree_state(sandbox.home)) == []
    staged.diff()
    staged.verb("diff", staged.session, "-p")
    assert differences(before, tree_state(sandbox.home)) == []


def test_a_link_made_inside_leads_nowhere(sandbox):
    """F1, F16: read and written through, then reviewed and applied: the link itself, and nothing behind it."""
    secret = hidden(sandbox)
    sandbox.write(sandbox.project / "dir/id", "own\n")
    staged = Staged(sandbox)
    script = attempts(link=f"ln -s {secret} out", dir=f"rm -rf dir && ln -s {secret} dir",
                      file=f"ln -s {secret}/id file",
                      read="grep secret out/id", read_dir="grep secret dir/id", read_file="grep secret file",
                      append="echo x >>out/id", new="echo x >out/authorized_keys", through="echo x >>file",
                      made="mkdir -p out/sub && echo x >out/sub/y")
    done = staged.run(script)
    assert verdicts(done) == {"link": True, "dir": True, "file": True, "read": False, "read_dir": False,
                              "read_file": False, "append": False, "new": False, "through": False, "made": False}, done
    before = tree_state(secret)
    patch = staged.verb("diff", staged.session, "-p")
    assert "secret\n" not in patch.out.replace(str(secret), ""), patch
    staged.apply()
    assert os.readlink(sandbox.project / "out") == os.readlink(sandbox.project / "dir") == str(secret)
    assert tree_state(secret) == before
    # A second run over the links that are now on the host, and its review.
    second = Staged(sandbox)
    assert not any(verdicts(second.run(attempts(read="grep secret out/id", write="echo x >>out/id", file="cat file")))
                   .values())
    staged.undo()
    assert tree_state(secret) == before and (sandbox.project / "dir/id").read_text() == "own\n"
    assert sandbox.run_outside(["sh", "-c", f"ln -s {secret} out && echo x >out/new"]).code == 0    # the control
    assert (secret / "new").exists()


def test_a_host_link_where_a_directory_was_is_not_followed(sandbox):
    """F16: the agent writes into a directory, the host makes it a link; apply, undo and diff stay in the tree."""
    secret = hidden(sandbox)
    sandbox.write(sandbox.project / "out/a", "a\n")
    staged = Staged(sandbox)
    staged.run("echo x >out/id; echo x >out/authorized_keys; echo b >>out/a; echo y >fine")
    before = tree_state(secret)
    (sandbox.project / "out").rename(sandbox.project / "kept")
    os.symlink(secret, sandbox.project / "out")
    changes = staged.diff()
    assert all(changes[name]["state"] == "conflict" for name in changes if name.startswith("out/")), changes
    staged.apply(code=1)
    assert tree_state(secret) == before
    assert (sandbox.project / "fine").read_text() == "y\n", "the rest was not applied"
    staged.apply("--", sandbox.project / "out/authorized_keys", code=None)
    assert tree_state(secret) == before


def test_undo_goes_through_no_link(sandbox):
    """F38: after an apply the host's directory becomes a link; taking the apply back must not write through it."""
    secret = hidden(sandbox)
    sandbox.write(sandbox.project / "out/id", "old\n")
    staged = Staged(sandbox)
    staged.run("echo new >out/id; echo x >out/more; rm -f out/none")
    staged.apply()
    assert (sandbox.project / "out/id").read_text() == "new\n"
    before = tree_state(secret)
    (sandbox.project / "out").rename(sandbox.project / "kept")
    os.symlink(secret, sandbox.project / "out")
    staged.undo(code=1)
    assert tree_state(secret) == before


# F2, F7, F21, F22, F23, F25: what the host runs later. Each name is new or changed inside, by each way to make it.
RUN_LATER = {
    ".git/hooks/pre-commit": "x", ".git/config": "[core]\n\tfsmonitor = ./x\n", ".git/config.worktree": "[core]\n",
    ".git/info/attributes": "* filter=x\n", "sub/.git/hooks/post-checkout": "x",
    "sub/.git/config": "[alias]\n\ta = !x\n",
    ".gitmodules": "[submodule \"x\"]\n\tupdate = !x\n", ".gitattributes": "* filter=x\n",
    ".claude/settings.json": "{}", "deep/er/.claude/settings.json": "{}", ".mcp.json": "{}", ".cursor/mcp.json": "{}",
    ".vscode/tasks.json": "{}", ".idea/workspace.xml": "<x/>", ".envrc": "x", "sub/.envrc": "x",
    "package.json": "{\"bin\": 1}", "Makefile": "all:", "sub/makefile": "all:", ".git/commondir": "../x\n",
    "CLAUDE.local.md": "x", ".hg/hgrc": "x", ".git/rebase-merge/git-rebase-todo": "exec x\n",
    "conftest.py": "x", "pkg/sitecustomize.py": "x",
    ".venv/bin/python": "x", "venv/lib/x.pth": "import os", "lib/x.pyc": "x", ".github/workflows/x.yml": "x",
    ".gitlab-ci.yml": "x", ".atoll.yaml": "atoll: 1\n", ".mise/config.toml": "x", ".Rprofile": "x",
}
WAYS = {
    "write": "printf %s \"$2\" >\"$1\"",
    "move": "printf %s \"$2\" >moved; mv moved \"$1\"",
    "link": "printf %s \"$2\" >linked; rm -f \"$1\"; ln linked \"$1\"; rm linked",
    "directory": "mkdir -p new; printf %s \"$2\" >new/\"${1##*/}\"; d=$(dirname \"$1\"); "
                 "if [ \"$d\" = . ]; then mv new/* new/.[!.]* . 2>/dev/null; else rm -rf \"$d\"; mv new \"$d\"; fi; "
                 "rm -rf new",
    "exchange": "printf %s \"$2\" >ex$((++n)); : >\"$1\"; echo \"ex$n $1\" >>list",
}
# RENAME_EXCHANGE, of all of them at once.
EXCHANGE = """
import ctypes, os
for line in open("list").read().splitlines():
    one, other = line.split(" ", 1)
    assert ctypes.CDLL(None).renameat2(-100, one.encode(), -100, other.encode(), 2) == 0 and os.path.getsize(other)
    os.unlink(one)
os.unlink("list")
"""


def inside_for(way):
    lines = []
    for name, content in RUN_LATER.items():
        parent = os.path.dirname(name) or "."
        lines.append(f"mkdir -p '{parent}'; make '{name}' '{content}'")
    lines += [f"/usr/bin/python3 -c '{EXCHANGE}'"] * (way == "exchange")
    return f"make() {{ {WAYS[way]}; }}\n" + "\n".join(lines)


@pytest.mark.parametrize("way", WAYS)
def test_what_runs_later_is_flagged_and_left(sandbox, way):
    """Flagged, shown, and not applied unless named; the host has none of it."""
    control = sandbox.make_directory(sandbox.base / "control")
    sandbox.run_outside(["bash", "-c", inside_for(way)], cwd=control)
    made = [name for name in RUN_LATER if os.path.lexists(control / name)]
    assert len(made) > 8, made
    staged = Staged(sandbox)
    assert "Traceback" not in staged.run(inside_for(way) + "\necho fine >fine").err
    changes = staged.diff()
    # The project's own policy may be read-only inside, which is as good.
    assert set(made) - set(changes) <= {".atoll.yaml"}, changes
    made = [name for name in made if name in changes]
    assert [name for name in made if not changes[name]["flagged"]] == []
    result = staged.apply(code=1)
    assert (sandbox.project / "fine").read_text() == "fine\n"
    for name in made:
        assert not os.path.lexists(sandbox.project / name), f"{name} was applied"
    assert "--allow-flagged" in result.out + result.err, result


def test_an_existing_hook_and_configuration_stay(sandbox):
    """F7, F22: also where the host has them; by RENAME_EXCHANGE too; git goes on working inside."""
    project = sandbox.git_project()
    hook = sandbox.write(project / ".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n", 0o755)
    sandbox.write(project / "file", "one\n")
    exchange = ("import ctypes, os\nopen('evil', 'w').write('evil')\n"
                "r = ctypes.CDLL(None, use_errno=True).renameat2(-100, b'evil', -100, b'.git/hooks/pre-commit', 2)\n"
                "raise SystemExit(-r)\n")
    assert sandbox.run_outside(["/usr/bin/python3", "-c", exchange]).code == 0 and hook.read_text() == "evil"
    sandbox.write(hook, "#!/bin/sh\nexit 0\n", 0o755)
    (project / "evil").unlink()
    before = tree_state(project)
    staged = Staged(sandbox)
    git = "git -c user.name=a -c user.email=a@b"
    keys = ("core.fsmonitor ./x", "core.hooksPath .", "core.sshCommand ./x", "core.pager ./x", "diff.external ./x",
            "filter.f.clean ./x", "diff.d.textconv ./x", "alias.st '!x'", "include.path ../x", "credential.helper ./x")
    done = staged.run(f"{git} add file && {git} commit -qm one && {git} log --format=%s\n"
                      f"/usr/bin/python3 -c \"{exchange}\"\n" + "\n".join(f"git config {key}" for key in keys))
    assert done.out.startswith("one\n"), done
    changes = staged.diff()
    assert changes[".git/hooks/pre-commit"]["flagged"] and changes[".git/config"]["flagged"], changes
    assert tree_state(project) == before
    staged.apply(code=1)
    after = tree_state(project)
    for name in (".git/config", ".git/hooks/pre-commit"):
        assert after[name] == before[name]
    assert sandbox.run_outside(["git", "log", "--format=%s"]).out == "one\n"
    # The control: named, it is applied.
    staged.apply("--allow-flagged", project / ".git/config", code=1)
    assert "hooksPath" in (project / ".git/config").read_text()
    assert hook.read_text() == "#!/bin/sh\nexit 0\n"


HOME_FILES = (".bashrc", ".profile", ".bash_profile", ".zshrc", ".gitconfig", ".config/autostart/x.desktop",
              ".config/systemd/user/x.service", ".local/bin/ls", ".config/git/config", ".vimrc", ".npmrc",
              ".config/fish/config.fish", ".pam_environment", ".claude/settings.json")


def test_a_staged_home_keeps_what_a_login_runs(sandbox):
    """F26: the home is staged; start-up files, programs on PATH and settings are flagged, secrets look absent."""
    sandbox.write(sandbox.home / ".bashrc", "original\n")
    sandbox.write(sandbox.home / ".ssh/id_rsa", SECRET, 0o600)
    for name in (".config/gh", ".local/share/keyrings", ".config/autostart", ".local/bin"):
        sandbox.make_directory(sandbox.home / name)
    before = tree_state(sandbox.home)
    policy = sandbox.policy("atoll: 1\nextends: none\n"
                            "verify: {low: off, medium: off, high: off, critical: off, unknown: off}\n"
                            "drop: [., \"~\"]\nfiles: {stage: [\"~\", .]}\n"
                            "degrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n")
    staged = Staged(sandbox, policy)
    script = "\n".join(f"mkdir -p $(dirname ~/{name}); echo hostile >>~/{name}" for name in HOME_FILES)
    done = staged.run(f"{script}\necho plain >~/notes\n" +
                      attempts(secret="cat ~/.ssh/id_rsa", new="echo x >~/.ssh/authorized_keys"))
    assert not any(verdicts(done).values()), done
    assert tree_state(sandbox.home) == before
    staged.project = sandbox.home
    changes = staged.diff()
    # Where the home has no ~/.config, the masks below it take the whole name.
    assert [name for name in HOME_FILES
            if not (name in changes and changes[name]["flagged"]) and not is_refused(changes, name)] == []
    staged.apply(code=1)
    assert (sandbox.home / "notes").read_text() == "plain\n"
    assert (sandbox.home / ".bashrc").read_text() == "original\n"
    assert [name for name in HOME_FILES[1:] if os.path.lexists(sandbox.home / name)] == []


def test_the_projects_policy_is_not_changed_by_apply(sandbox):
    """F30, F32: a policy that the agent writes is flagged; one that widens is refused by the next run."""
    staged = Staged(sandbox)
    staged.run("printf 'atoll: 1\\nfiles:\\n  write: [/]\\n' >.atoll.yaml; echo x >fine")
    staged.apply(code=None)
    assert not (sandbox.project / ".atoll.yaml").exists() and (sandbox.project / "fine").exists()


@pytest.mark.parametrize("text", ["files: {stage: [~]}", "files: {stage: [/]}", "drop: [files.protect]",
                                  "files: {write: [.]}", "drop: [\"**/.git/hooks/**\"]", "drop: [.env]"])
def test_a_projects_policy_does_not_widen_staging(sandbox, text):
    """F32: no other tree, no write where it was staged, no protection less."""
    sandbox.write(sandbox.project / ".env", SECRET)
    sandbox.write(sandbox.project / ".atoll.yaml", f"atoll: 1\n{text}\n")
    done = sandbox.run("cat .env; touch it-ran", policy=staging_policy(sandbox))
    assert done.code == 125 and ".atoll.yaml:2" in done.err and SECRET not in done.out, done


def test_rules_end_at_component_boundaries(sandbox):
    """F27: staged, masked and applied names say nothing about names that begin with them."""
    for name in ("work/a/f", "work/ab/f"):
        sandbox.write(sandbox.home / name, "old\n")
    for name in ("src/f", "src2/f", "tok", "token"):
        sandbox.write(sandbox.project / name, "old\n")
    staged = Staged(sandbox, stage=["~/work/a"], lines="")
    staged.policy = sandbox.policy(staged.policy.read_text().replace("stage:", "mask: [tok], stage:"), "masked.yaml")
    done = staged.run(attempts(staged="echo new >~/work/a/f", longer="echo new >~/work/ab/f", masked="cat tok",
                               unmasked="cat token", src="echo new >src/f; echo new >src2/f"))
    assert verdicts(done) == {"staged": True, "longer": False, "masked": False, "unmasked": True, "src": True}, done
    staged.apply("src")
    assert (sandbox.project / "src/f").read_text() == "new\n" and (sandbox.project / "src2/f").read_text() == "old\n"
    assert (sandbox.home / "work/a/f").read_text() == "old\n"
    staged.apply()
    assert (sandbox.home / "work/a/f").read_text() == "new\n" and (sandbox.home / "work/ab/f").read_text() == "old\n"


@pytest.mark.parametrize("spelling", ["./src/../src//f", "../project/src/f", "{project}/./src/f", "src/f/", "src//./f"])
def test_spellings_of_a_path_mean_the_same(sandbox, spelling):
    """F29: apply takes the path that was meant, or says that there is none; never another one, never all."""
    for name in ("src/f", "other"):
        sandbox.write(sandbox.project / name, "old\n")
    staged = Staged(sandbox)
    staged.run("echo new >src/f; echo new >other")
    done = staged.apply("--", spelling.format(project=sandbox.project), code=None)
    assert done.code in (0, 1, 125) and (sandbox.project / "other").read_text() == "old\n", done
    if not spelling.endswith("/"):
        assert done.code == 0 and (sandbox.project / "src/f").read_text() == "new\n", done


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside", "../project2", "src/../../outside", ""])
def test_paths_outside_of_what_is_staged_are_an_error(sandbox, path):
    """F29: and nothing is applied, shown or dropped. (A directory above the tree means all of it.)"""
    sandbox.write(sandbox.project / "f", "old\n")
    staged = Staged(sandbox)
    staged.run("echo new >f")
    for verb in ("apply", "diff", "discard"):
        done = staged.verb(verb, staged.session, "--", path, code=None)
        assert done.code == 125 and len(done.err.strip().splitlines()) == 1, (verb, done)
        assert (sandbox.project / "f").read_text() == "old\n", (verb, done)
    assert "f" in staged.diff()


def test_the_sandboxs_own_files_are_out_of_reach(sandbox):
    """F30: the state directory lies in the staged project: its layers, journal and log are not there inside."""
    state = sandbox.project / "state"
    sandbox.make_directory(state)
    script = attempts(list="ls state/atoll/sessions/*", journal="echo x >$(ls -d state/atoll/sessions/*)/stage/chain",
                      log="echo x >>$(ls -d state/atoll/sessions/*)/audit.jsonl",
                      upper="ls state/atoll/sessions/*/stage/live/0/upper")
    done = sandbox.run(script, policy=staging_policy(sandbox), env={"XDG_STATE_HOME": str(state)})
    if done.code == 125:
        assert "state" in done.err, done      # refusing to keep it there is as good
        return
    seen = verdicts(done)
    assert seen and not any(seen.values()), done


def test_no_set_id_and_no_device_reaches_the_host(sandbox):
    """F11, and the neighbours of it: set-id bits, nodes, file capabilities."""
    program = "import os, stat\n" + "\n".join(
        f"try:\n    {call}\n    print('{name}', 'done')\nexcept OSError as e:\n    print('{name}', e.errno)"
        for name, call in {
            "char": "os.mknod('char', stat.S_IFCHR | 0o666, os.makedev(1, 3))",
            "block": "os.mknod('block', stat.S_IFBLK | 0o666, os.makedev(8, 0))",
            "whiteout": "os.mknod('w', stat.S_IFCHR, os.makedev(0, 0))",
            "setuid": "open('s', 'w').close(); os.chmod('s', 0o6755)",
        }.items())
    if sandbox.identity.is_root:
        assert sandbox.run_outside(["/usr/bin/python3", "-c", program]).out.count("done") == 4
        for name in ("char", "block", "w", "s"):
            (sandbox.project / name).unlink()
    staged = Staged(sandbox)
    done = staged.run(["/usr/bin/python3", "-c", program])
    assert "done" not in done.out, done
    staged.plant("setid", b"x", 0o6755)
    if os.geteuid() == 0:
        os.mknod(staged.upper / "null", 0o20666, os.makedev(1, 3))
        staged.own(staged.upper / "null")
    staged.apply(code=1 if os.geteuid() == 0 else 0)
    assert not os.path.lexists(sandbox.project / "null")
    assert (sandbox.project / "setid").stat().st_mode & 0o7777 == 0o755


def test_sockets_and_pipes_are_listed_and_left(sandbox):
    """F15: apply neither blocks on them nor copies them; also where a file was."""
    sandbox.write(sandbox.project / "was", "file\n")
    staged = Staged(sandbox)
    done = staged.run("mkfifo pipe; rm was; mkfifo was; mkdir d; mkfifo d/inner; echo x >d/fine; /usr/bin/python3 -c '"
                      "import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"sock\")'; ls")
    assert "sock" in done.out and "pipe" in done.out, done
    changes = staged.diff()
    for name in ("pipe", "was", "d/inner", "sock"):
        assert changes[name]["state"] == "refused" and changes[name]["reason"], changes
    staged.verb("diff", staged.session, "-p", timeout=10)
    staged.apply(code=1, timeout=10)
    assert sorted(os.listdir(sandbox.project)) == ["d", "was"] and os.listdir(sandbox.project / "d") == ["fine"]
    assert (sandbox.project / "was").read_text() == "file\n"


# --- Conflicts and crashes. ---

def test_a_conflict_is_per_path(sandbox):
    """F39: edited on both sides: reported and left, whatever the host did; the rest is applied."""
    names = ("both", "gone", "mode", "type", "dir/inner", "same", "only-inside", "replaced")
    for name in names:
        sandbox.write(sandbox.project / name, "old\n")
    staged = Staged(sandbox)
    staged.run("for f in both gone mode type dir/inner same only-inside replaced; do echo inside >$f; done; "
               "echo inside >new; rm -rf removed")
    sandbox.write(sandbox.project / "both", "host\n")
    (sandbox.project / "gone").unlink()
    (sandbox.project / "mode").chmod(0o600)
    (sandbox.project / "type").unlink()
    sandbox.make_directory(sandbox.project / "type")
    sandbox.write(sandbox.project / "dir/inner", "host\n")
    sandbox.write(sandbox.project / "same", "inside\n")
    sandbox.write(sandbox.project / "tmp", "host\n").rename(sandbox.project / "replaced")
    sandbox.write(sandbox.project / "new", "host\n")
    changes = staged.diff()
    conflicts = {name for name, change in changes.items() if change["state"] == "conflict"}
    assert conflicts == {"both", "gone", "mode", "type", "dir/inner", "replaced", "new"}, changes
    before = staged.state()
    done = staged.apply(code=1)
    for name in conflicts:
        assert name in done.out + done.err, (name, done)
    after = staged.state()
    for name in conflicts - {"gone"}:
        assert after[name] == before[name], name
    assert not (sandbox.project / "gone").exists()
    assert (sandbox.project / "only-inside").read_text() == "inside\n"


def test_deletions_conflict_too(sandbox):
    """F39: removed inside, changed or added to outside."""
    for name in ("file", "dir/a", "dir/b", "whole/a", "opaque/a"):
        sandbox.write(sandbox.project / name, "old\n")
    staged = Staged(sandbox)
    staged.run("rm -rf file dir whole opaque; mkdir opaque; echo x >opaque/mine")
    sandbox.write(sandbox.project / "file", "host\n")
    sandbox.write(sandbox.project / "dir/new", "host\n")
    sandbox.write(sandbox.project / "opaque/new", "host\n")
    staged.apply(code=1)
    assert (sandbox.project / "file").read_text() == "host\n"
    assert (sandbox.project / "dir/new").read_text() == "host\n"
    assert (sandbox.project / "opaque/new").read_text() == "host\n"
    assert not (sandbox.project / "whole").exists() and not (sandbox.project / "opaque/a").exists()


def test_a_directory_that_the_host_made_in_place_of_a_file_stays(sandbox):
    """F39: changed and removed inside, an empty directory on the host: nothing below it says so, its own ctime does."""
    for name in ("changed", "gone", "dir/a"):
        sandbox.write(sandbox.project / name, "old\n")
    staged = Staged(sandbox)
    staged.run("echo inside >changed; rm -r gone dir")
    for name in ("changed", "gone"):
        (sandbox.project / name).unlink()
        sandbox.make_directory(sandbox.project / name)
    (sandbox.project / "dir/a").unlink()
    staged.apply(code=1)
    assert (sandbox.project / "changed").is_dir() and (sandbox.project / "gone").is_dir()
    # Somebody has changed it, and an empty directory does not say what.
    assert (sandbox.project / "dir").is_dir()


@pytest.mark.parametrize("path", [None, "src/changed"])
def test_a_directory_that_the_host_moved_into_place_is_not_the_base(sandbox, path):
    """F39: mv src away; mv other src. The files of the other one are as old as those that the sandbox saw."""
    for name in ("src", "other"):
        for inner in ("changed", "gone", "deep/er/gone", "whole/a"):
            sandbox.write(sandbox.project / name / inner, f"{name}\n")
    staged = Staged(sandbox)
    staged.run("echo inside >src/changed; rm src/gone src/deep/er/gone; rm -r src/whole; echo new >src/new; "
               "echo x >fine")
    (sandbox.project / "src").rename(sandbox.project / "kept")
    (sandbox.project / "other").rename(sandbox.project / "src")
    before = tree_state(sandbox.project / "src")
    staged.apply(*(["--", path] if path else []), code=1)
    after = tree_state(sandbox.project / "src")
    assert differences(before, {name: entry for name, entry in after.items() if name in before and name != "."}
                       | {".": before["."]}) == []
    assert path or (sandbox.project / "fine").exists()


KILLED = """
for i in $(seq 40); do echo new >f$i; done; rm -rf gone; mkdir -p made/it; echo x >made/it/x; rm swap; mkdir swap;
echo y >swap/y; rm -rf was; echo z >was
"""


@pytest.mark.needs("strace")
@pytest.mark.parametrize("verb", ["apply", "undo"])
@pytest.mark.parametrize("when", ["renameat2:1", "renameat2:7", "renameat2:30", "unlinkat:1", "syncfs:1", "fsync:1",
                                  "openat2:40", "mkdirat:1"])
def test_a_killed_apply_is_finished_or_taken_back(sandbox, verb, when):
    """F40: SIGKILL in the middle; after the next verb each path is all-old or all-new, and undo still works."""
    for i in range(1, 41):
        sandbox.write(sandbox.project / f"f{i}", f"old {i}\n")
    for name in ("gone/a", "gone/b", "swap", "was/a"):
        sandbox.write(sandbox.project / name, "old\n")
    staged = Staged(sandbox)
    before = staged.state()
    staged.run(KILLED)
    if verb == "undo":
        staged.apply()
    call, number = when.split(":")
    words = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={number}",
             sandbox.programs.atoll, verb, staged.session]
    killed = sandbox.run_outside(words)
    if killed.code == 0:
        pytest.skip(f"{verb} makes no {number} calls of {call}")
    names = before.keys()
    recovered = staged.verb("apply", staged.session, "--resume", code=None)
    assert recovered.code in (0, 1), (killed, recovered)
    after = staged.state()
    assert not [name for name in after if ".atoll-" in name], sorted(after)
    for name in names:
        if name.startswith("f"):
            text = (sandbox.project / name).read_text()
            assert text in ("new\n", f"old {name[1:]}\n"), (name, text)
    # Whatever was decided: all of it can be applied, and all of it taken back.
    staged.apply(code=None)
    assert staged.diff() == {}
    for _ in range(4):
        if differences(before, staged.state()) == [] or staged.undo(code=None).code != 0:
            break
    assert differences(before, staged.state()) == []


def test_restore_is_exact_and_follows_no_link(sandbox):
    """F38: ignored files are part of a snapshot, and a link in a layer is a link."""
    secret = hidden(sandbox)
    sandbox.git_project()
    sandbox.write(sandbox.project / ".gitignore", "ignored\n")
    staged = Staged(sandbox)
    staged.run(f"echo one >ignored; ln -s {secret} out; echo kept >file")
    staged.verb("snapshot", staged.session, "first")
    before = tree_state(secret)
    staged.run(f"rm out; mkdir out; echo evil >out/id; echo two >ignored; rm file; ln -s {secret}/id file",
               options=["--continue", staged.session])
    staged.verb("restore", staged.session, "first", code=None)
    done = staged.run("cat ignored file; readlink out; cat out/id", options=["--continue", staged.session])
    assert tree_state(secret) == before
    assert SECRET not in done.out, done


def test_a_live_session_is_reviewed_without_harm(sandbox):
    """A file that changes while it is read: diff and apply end, and what is applied is one state of it."""
    staged = Staged(sandbox)
    child = sandbox.popen(["sh", "-c", "while :; do for c in a b c; do head -c 300000 /dev/zero | tr '\\0' $c >big; "
                           "echo $c >small; done; done"], policy=staged.policy)
    wait_until(lambda: list((sandbox.state / "atoll/sessions").glob("*/stage/live/0/upper/big")), what="a live upper")
    staged.session, = sandbox.sessions()
    for words in (["diff"], ["diff", "-p"], ["diff", "--json"], ["apply"], ["diff"]):
        done = staged.verb(words[0], staged.session, *words[1:], code=None, timeout=20)
        assert done.code in (0, 1, 125), done
    if (sandbox.project / "small").exists():
        assert (sandbox.project / "small").read_text() in ("", "a\n", "b\n", "c\n")
    child.terminate()
    child.wait(10)


def test_kinds_are_told_apart(sandbox):
    """The review says what happened: added, modified, deleted."""
    for name in ("changed", "gone"):
        sandbox.write(sandbox.project / name, "old\n")
    staged = Staged(sandbox)
    staged.run("echo new >changed; rm gone; echo x >made; cat changed >/dev/null; touch -c nothing")
    changes = staged.diff()
    assert (only(changes, "added"), only(changes, "modified"), only(changes, "deleted")) == \
        (["made"], ["changed"], ["gone"])
