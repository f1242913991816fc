# SPDX-License-Identifier: Apache-2.0
"""F cases that need more than one attempt: spellings of the policy, races, planted programs, the sandbox's own
files."""
import hashlib
import os
import shutil
import subprocess
import sys
import time

import pytest

from atoll import wait_until


def tree(root, left_out=()):
    """What a tree looks like: names, types, modes, content. For "the host is byte-identical"."""
    seen = {}
    for directory, directories, files in os.walk(root):
        directories[:] = sorted(name for name in directories if os.path.join(directory, name) not in left_out)
        for name in sorted(directories + files):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            content = os.readlink(path) if os.path.islink(path) else ""
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            seen[path] = (oct(status.st_mode), status.st_uid, status.st_gid, content)
    return seen


def verdicts(result):
    """name=0|1 lines of a hostile script: {name: succeeded}."""
    return {line.split("=")[0]: line.endswith("=0") for line in result.out.splitlines() if "=" in line}


def attempts(**commands):
    return "\n".join(f"( {command} ) >/dev/null 2>&1; echo {name}=$?" for name, command in commands.items())


def test_rules_end_at_component_boundaries(sandbox):
    """F27: a rule for a name says nothing about names that begin with it."""
    home = sandbox.home
    for name in ("shared/a/file", "shared/ab/file", "kept/a/file", "kept/ab/file", "kept/a.bak"):
        sandbox.write(home / name, "content\n")
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles:\n  read: [~/shared/a]\n  write: [~/kept/a]\n")
    script = attempts(read=f"cat {home}/shared/a/file", read_longer=f"cat {home}/shared/ab/file",
                      write=f"echo x >>{home}/kept/a/file", write_longer=f"echo x >>{home}/kept/ab/file",
                      write_sibling=f"echo x >>{home}/kept/a.bak", list_parent=f"ls {home}/shared | grep ab")
    assert all(verdicts(sandbox.run_outside(["bash", "-c", script])).values())
    for name in ("kept/a/file", "kept/ab/file", "kept/a.bak"):
        sandbox.write(home / name, "content\n")
    seen = verdicts(sandbox.run(script, policy=policy))
    # What is beside a listed name is the private home's: a new file there is thrown away.
    del seen["write_sibling"]
    assert seen == {"read": True, "read_longer": False, "write": True, "write_longer": False, "list_parent": False}
    assert (home / "kept/ab/file").read_text() == "content\n"
    assert (home / "kept/a.bak").read_text() == "content\n"
    assert (home / "kept/a/file").read_text() == "content\nx\n"


@pytest.mark.parametrize("spelling", ["~/x/../shared/a", "~//shared/./a/", "{home}/shared/a/.", "../shared/a",
        "./../shared//a/"])
def test_spellings_mean_the_same(sandbox, spelling):
    """F29: in the policy and in the request."""
    home = sandbox.home
    sandbox.write(home / "shared/a/file", "content\n")
    sandbox.write(home / "shared/b", "content\n")
    policy = sandbox.policy(f"atoll: 1\nextends: medium\nfiles:\n  read: ['{spelling.format(home=home)}']\n")
    script = attempts(plain=f"cat {home}/shared/a/file", dots=f"cat {home}/shared/a/../a/./file",
                      slashes=f"cat {home}//shared///a/file", relative="cat ../shared/a/file", other="cat ../shared/b",
                      write=f"echo x >{home}/shared/a/file")
    assert verdicts(sandbox.run(script, policy=policy)) == {
        "plain": True, "dots": True, "slashes": True, "relative": True, "other": False, "write": False}


def test_same_path_in_two_classes_is_an_error_however_it_is_spelt(sandbox):
    """F29: "write: [~/a]" and "read: [~//a/]" are one path."""
    sandbox.make_directory(sandbox.home / "a")
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles:\n  read: [~//a/]\n  write: [~/x/../a]\n")
    done = sandbox.run(["true"], policy=policy)
    assert done.code == 125 and "test.yaml:" in done.err, done


EXCHANGE = ("import ctypes, sys; a, b = (name.encode() for name in sys.argv[1:]); "
            "sys.exit(ctypes.CDLL(None).renameat2(-100, a, -100, b, 2) and 1)")
# Of a file that the policy masks; one after another, in this order.
MASKED_WAYS = {
    "read": "grep secret conf/token", "link": "ln conf/token x && grep secret x",
    "symlink": "ln -s conf/token y && grep secret y", "move": "mv conf/token z && grep secret z",
    "exchange": f"echo new >n; /usr/bin/python3 -c '{EXCHANGE}' n conf/token && grep secret n",
    "root": "grep secret /proc/self/root$PWD/conf/token", "cwd": "grep secret /proc/self/cwd/conf/token",
    "descriptor": "exec 5<conf; grep secret /proc/self/fd/5/token",
    "parent": "mv conf conf2 && grep secret conf2/token", "back": "mv conf2 conf; grep secret conf/token",
    "copy": "cp -a conf c && grep secret c/token", "unmount": "umount conf/token", "write": "echo x >conf/token",
    "remove": "rm -f conf/token && test ! -e conf/token", "fd": "exec 6<conf/token; grep secret <&6",
}


def works_outside(sandbox, name):
    place = sandbox.base / "control" / name
    sandbox.write(place / ("conf2" if name == "back" else "conf") / "token", "the secret\n", 0o600)
    return sandbox.run_outside(["bash", "-c", MASKED_WAYS[name]], cwd=place).code == 0


@pytest.mark.parametrize("trust", ["medium", "high"])
def test_mask_holds_under_every_name(sandbox, trust):
    """F9, F18: a masked file stays masked when its directory moves, by links and by descriptors."""
    # The control: each of them alone, in a tree of its own. To unmount there must be a mount.
    assert [name for name in MASKED_WAYS if not works_outside(sandbox, name)] == ["unmount"]
    secret = sandbox.write(sandbox.project / "conf/token", "the secret\n", 0o600)
    sandbox.write(sandbox.project / "plain", "plain\n")
    policy = sandbox.policy(f"atoll: 1\nextends: {trust}\nfiles:\n  mask: [conf/token]\n")
    seen = verdicts(sandbox.run(attempts(plain="cat plain", **MASKED_WAYS), policy=policy))
    assert seen.pop("plain") and seen.pop("back") is False
    if trust == "medium":  # staged: the name is free, and what is written there stays in the sandbox
        assert seen.pop("write") and seen.pop("remove")
    assert not [name for name, succeeded in seen.items() if succeeded], seen
    found = [path for path in (secret, sandbox.project / "conf2/token") if path.exists()]
    assert found and found[0].read_text() == "the secret\n"


def test_mask_of_a_directory_does_not_swallow_writes(sandbox):
    """F12: a write into a masked directory fails; it does not succeed into nowhere."""
    sandbox.write(sandbox.project / "private/key", "the secret\n")
    script = attempts(write="echo x >private/new", read="cat private/key", list="test -n \"$(ls private)\"",
                      rename="mv private elsewhere")
    control = verdicts(sandbox.run(script))
    assert len(control) == 4 and all(control.values()), control
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles:\n  mask: [private]\n")
    seen = verdicts(sandbox.run(script, policy=policy))
    assert len(seen) == 4 and not any(seen.values()), seen
    assert (sandbox.project / "private/key").read_text() == "the secret\n"
    assert os.listdir(sandbox.project / "private") == ["key"]


def test_a_written_link_is_not_followed_at_the_next_start(sandbox):
    """F1: the sandbox replaces a directory that its policy lets it write by a link to a secret place."""
    sandbox.write(sandbox.home / "hidden/id", "the secret\n", 0o600)
    sandbox.make_directory(sandbox.project / "out")
    sandbox.write(sandbox.project / "cache/x", "x")
    policy = sandbox.policy("atoll: 1\nextends: high\ndrop: ['~']\nfiles:\n  scratch: ['~']\n  write: [./out]\n"
                            "  read: [./cache]\n")
    first = sandbox.run(f"rm -rf out cache; ln -s {sandbox.home}/hidden out; ln -s {sandbox.home}/hidden cache; ls -l",
                        policy=policy)
    second = sandbox.run(attempts(read="cat out/id", write="echo x >>out/id", read_cache="cat cache/id",
                                  new="echo x >out/authorized_keys"), policy=policy)
    assert not any(verdicts(second).values()), (first, second)
    assert (sandbox.home / "hidden/id").read_text() == "the secret\n"
    assert os.listdir(sandbox.home / "hidden") == ["id"]


SWAPPER = r"""
import os, sys, time
place, target = sys.argv[1:3]
while True:
    time.sleep(0.0003)
    try:
        os.rename(place, place + ".real")
        os.symlink(target, place)
        time.sleep(0.0003)
        os.unlink(place)
        os.rename(place + ".real", place)
    except OSError:
        pass
"""


def met_directory(ends):
    return any(code == 1 and text == "plain\n" for code, text, _ in ends)


def met_link(ends):
    return any(code == 125 and "symbolic link" in error for code, _, error in ends)


def test_a_link_swapped_during_the_start_is_not_followed(sandbox):
    """F1: a process outside (left from another tool) swaps a policy path while mounts are being made."""
    sandbox.write(sandbox.home / "hidden/id", "the secret\n", 0o600)
    out = sandbox.make_directory(sandbox.project / "out")
    sandbox.write(out / "id", "plain\n")
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles:\n  write: [./out]\n")
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, str(out), str(sandbox.home / "hidden")],
                               **sandbox.popen_keywords())
    ends = []
    try:
        # The control: whoever follows what is there gets one or the other.
        outside = set()
        wait_until(lambda: outside.add(sandbox.run_outside(["cat", "out/id"], cwd=sandbox.project).out) or
                   {"plain\n", "the secret\n"} <= outside, 20, "it is followed outside")
        begun = time.monotonic()
        # Some meet the directory and some the link, which ends the run.
        while time.monotonic() < begun + 4 or not (met_directory(ends) and met_link(ends)):
            assert time.monotonic() < begun + 30, ends
            done = sandbox.run(["cat", "out/id", f"{sandbox.home}/hidden/id"], policy=policy)
            assert "the secret" not in done.out, done
            ends.append((done.code, done.out, done.err))
    finally:
        swapper.kill()
        swapper.wait()


REPLACER = """
import os, sys
while True:
    with open(sys.argv[1] + ".new", "w") as f:
        f.write(sys.argv[2])
    os.rename(sys.argv[1] + ".new", sys.argv[1])
"""


def test_a_masked_file_that_the_host_replaces_during_the_start_does_not_end_the_run(sandbox):
    """useradd renames a new /etc/shadow over the old one. Open holes: what is replaced afterwards (SECURITY.md)."""
    secret = sandbox.write(sandbox.home / "tools/secret", "the secret", 0o600)
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles:\n  read: [~/tools]\n  mask: [~/tools/secret]\n")
    replacer = subprocess.Popen([sys.executable, "-c", REPLACER, str(secret), "the secret"], **sandbox.popen_keywords())
    try:
        for _ in range(12):
            done = sandbox.run(["true"], policy=policy)
            assert done.code == 0, done
    finally:
        replacer.kill()
        replacer.wait()


def test_a_file_that_atoll_mounts_on_is_replaced_during_the_start(sandbox):
    """The same with /etc/passwd, which has a file of atoll's over it inside: in an /etc of the test's own."""
    if sandbox.identity.uid:
        pytest.skip("only root has a mount namespace of its own to put another /etc into")
    copy = sandbox.base / "etc"
    subprocess.run(["cp", "-a", "/etc", copy], check=True)
    script = ("mount --bind \"$1\" /etc || exit 9\n"
              "\"$2\" -c \"$3\" /etc/passwd root:x:0:0:root:/root:/bin/sh & loop=$!\n"
              "for i in {1..40}; do \"$4\" run -- true || break; done\n"
              "kill $loop; echo runs: $i")
    done = sandbox.run_outside(["unshare", "-m", "bash", "-c", script, "bash", copy, sys.executable, REPLACER,
                                sandbox.programs.atoll], timeout=60)
    assert "runs: 40" in done.out and not done.err, done


PLANTED = "#!/bin/sh\ntouch {mark}\nexit 0\n"


def test_planted_programs_are_never_run(sandbox):
    """F31: by cwd, PATH, or a variable that names them."""
    mark = sandbox.home / "planted-ran"
    bin_directory = sandbox.make_directory(sandbox.project / "bin")
    names = ("atoll-box", "atoll-init", "atoll-policy", "atoll-log", "atoll", "bwrap", "newuidmap", "newgidmap",
            "systemd-run", "sh", "mount")
    for directory in (sandbox.project, bin_directory):
        for name in names:
            sandbox.write(directory / name, PLANTED.format(mark=mark), 0o755)
    env = {"PATH": f"{bin_directory}:.:/usr/bin:/bin", "BWRAP_BIN": str(bin_directory / "bwrap"),
            "ATOLL_BOX": "./atoll-box",
           "ATOLL_BIN": str(bin_directory), "ATOLL_INIT": "./atoll-init", "ATOLL_POLICY": "./atoll-policy",
           "LD_PRELOAD": "./x.so"}
    assert sandbox.run_outside(["sh", "-c", "bwrap"], env={**env, "LD_PRELOAD": None}).code == 0 and mark.exists()
    mark.unlink()
    policy = sandbox.policy("atoll: 1\nextends: medium\nresources: {memory: 1GiB}\n")
    for options in ({}, {"policy": policy}):
        assert sandbox.run(["/bin/true"], env=env, **options).code == 0
    for words in (["ps"], ["log"], ["policy", "show", "medium"], ["doctor"]):
        sandbox.run_atoll(*words, env=env)
    assert not mark.exists()


@pytest.mark.parametrize("text", [
    "files: {read: [/]}", "files: {write: [~]}", "files: {read: [~/.ssh]}", "network: {default: allow, host: true}",
    "network: {default: allow}",
    "extends: full", "extends: high", "resources: {memory: unlimited}", "time: {wall: unlimited}", "env: {pass: ['*']}",
    "env: {pass: [GITHUB_TOKEN]}", "env: {set: {LD_PRELOAD: /tmp/x.so}}", "devices: [kvm]", "exec: {namespaces: true}",
    "degrade: [seccomp]", "degrade: [landlock, netns]", "drop: [files.mask]", "audit: {files: off, exec: off}",
])
def test_a_projects_policy_only_tightens(sandbox, text):
    """F32: whatever widens is refused, with the line that does it."""
    sandbox.write(sandbox.home / ".ssh/id", "the secret\n", 0o600)
    sandbox.write(sandbox.project / ".atoll.yaml", f"atoll: 1\n{text}\n")
    done = sandbox.run(["cat", str(sandbox.home / ".ssh/id")], env={"GITHUB_TOKEN": "planted"})
    assert "the secret" not in done.out
    assert done.code == 125, done
    assert ".atoll.yaml:2" in done.err, done


def test_a_projects_policy_tightens(sandbox):
    """F32's control: a policy of the project that tightens is in force."""
    sandbox.write(sandbox.project / "token", "the secret\n")
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nfiles: {mask: [token]}\nresources: {processes: 64}\n")
    assert sandbox.run(["true"]).code == 0
    assert "the secret" not in sandbox.run(["cat", "token"]).out


def test_wide_places_are_no_project(sandbox):
    """F34: / and the home are a project only when that is said."""
    sandbox.write(sandbox.home / ".ssh/id", "the secret\n", 0o600)
    for place in ("/", str(sandbox.home), str(sandbox.home) + "/.", "/home/.."):
        done = sandbox.run(["cat", str(sandbox.home / ".ssh/id")], cwd=place)
        assert done.code == 125, (place, done)
        assert len(done.err.strip().splitlines()) == 1, done
        assert "--project" in done.err, done


def test_the_sandboxs_own_files_are_out_of_reach(sandbox):
    """F30: policy, state and log, also where they lie inside the project."""
    project = sandbox.git_project()
    rules = "atoll: 1\nfiles: {mask: [token]}\n"
    sandbox.write(project / ".atoll.yaml", rules)
    sandbox.write(project / "token", "the secret\n")
    own = sandbox.write(project / "policies/mine.yaml", "atoll: 1\nextends: medium\n")
    state = project / "state"
    script = attempts(append="echo '# x' >>.atoll.yaml", replace="echo 'atoll: 1' >n; mv -f n .atoll.yaml",
            remove="rm -f .atoll.yaml",
                      link="ln -sf /dev/null .atoll.yaml", rename="mv .atoll.yaml y",
                              policy="echo x >>policies/mine.yaml",
                      policy_replace="echo x >n && mv -f n policies/mine.yaml",
                              policy_remove="rm -f policies/mine.yaml",
                      list="ls state/atoll/sessions/*", write="echo x >state/atoll/x",
                              tamper="echo x >>$(ls -d state/atoll/sessions/*)/audit.jsonl")
    done = sandbox.run(script, policy=own, env={"XDG_STATE_HOME": str(state)})
    if done.code == 125:
        # Refusing to keep the state inside the project is as good.
        assert "state" in done.err, done
        done = sandbox.run(script, policy=own)
        # What the refusal left there is no state of anything.
        assert "write=" in done.out
        done.bytes = done.bytes.replace(b"write=0", b"write=1")
    seen = verdicts(done)
    assert seen and not any(seen.values()), (seen, done)
    assert (project / ".atoll.yaml").read_text() == rules
    assert own.read_text() == "atoll: 1\nextends: medium\n"


PERSISTENCE = (".bashrc", ".profile", ".bash_profile", ".zshrc", ".gitconfig", ".config/autostart/x.desktop",
        ".config/systemd/user/x.service",
               ".ssh/authorized_keys", ".local/bin/ls", ".config/git/config", ".npmrc", ".mcp.json",
               ".claude/settings.json",
               ".vimrc", ".pam_environment", ".config/fish/config.fish", ".local/share/applications/x.desktop")


def test_the_home_is_byte_identical_afterwards(sandbox):
    """F26, F42: nothing that a later login would run is written, and no empty names are left."""
    sandbox.git_project()
    for name in PERSISTENCE[:4]:
        sandbox.write(sandbox.home / name, "original\n")
    before = tree(sandbox.home, left_out=(str(sandbox.project),))
    script = "\n".join(f"mkdir -p $(dirname ~/{name}); echo hostile >>~/{name}; ln -sf /bin/sh ~/{name}.link"
                       for name in PERSISTENCE)
    done = sandbox.run(f"{script}\ngit config --global alias.st '!sh'\necho x >inside\n")
    after = tree(sandbox.home, left_out=(str(sandbox.project),))
    assert after == before
    assert sandbox.staged("inside", done.session).read_text() == "x\n"
    assert os.listdir(sandbox.project) == [".git"], "the run left names in the project"


def repository_at(sandbox, name):
    """A new repository in the project, and what its .git/config says."""
    place = sandbox.make_directory(sandbox.project / name)
    sandbox.run_outside(["git", "init", "-q", "."], cwd=place, check=True)
    return place, (place / ".git/config").read_bytes()


def assert_attack_works_outside(sandbox):
    """The control: every line of it does its work where nothing is in its way."""
    place, before = repository_at(sandbox, "control")
    sandbox.run_outside(["bash", "-c", script_against("control")])
    assert (place / ".git/config").read_bytes() != before and planted_hooks(place / ".git")
    shutil.rmtree(place)


@pytest.mark.needs("git")
@pytest.mark.parametrize("trust", ["medium", "high"])
def test_git_hooks_and_configuration_are_protected(sandbox, trust):
    """F2, F7, F22: what git or an editor would run outside is not the sandbox's to write, while git works; also where
    the project is written in place."""
    assert_attack_works_outside(sandbox)
    project = sandbox.git_project()
    sandbox.write(project / "file", "one\n")
    before = (project / ".git/config").read_bytes()
    done = sandbox.run(script_against(".") + "\necho x >written", trust=trust)
    assert done.code == 0 and (project / "written").exists() == (trust == "high"), done
    assert (project / ".git/config").read_bytes() == before
    assert not planted_hooks(project / ".git")
    done = sandbox.run("git add file && git commit -qm one && git log --oneline", trust=trust)
    assert done.code == 0, done


@pytest.mark.needs("git")
def test_nested_repositories_are_protected(sandbox):
    """F21: where the project is staged. Where it is written in place: test_known_holes.py."""
    assert_attack_works_outside(sandbox)
    sandbox.git_project()
    sub, before = repository_at(sandbox, "sub")
    sandbox.run(script_against("sub"))
    assert (sub / ".git/config").read_bytes() == before
    assert not planted_hooks(sub / ".git")


def script_against(repository):
    """Every way to a hook or a setting of this repository that runs a program."""
    return f"cd {repository}\n" + attempts(
        hook="echo x >.git/hooks/pre-commit", moved="echo x >a; mv a .git/hooks/pre-commit",
                linked="echo x >b; ln b .git/hooks/post-commit",
        symlinked="ln -s /bin/sh .git/hooks/pre-push", config="git config core.fsmonitor ./x",
                pager="git config core.pager ./x",
        directory="mv .git/hooks .git/h && mkdir .git/hooks && echo x >.git/hooks/pre-commit",
        hookspath="git config core.hooksPath .", alias="git config alias.st '!x'",
                worktree="git config --worktree core.pager ./x",
        exchanged="mkdir -p e/hooks; echo x >e/hooks/pre-commit; mv -T .git g && mkdir .git && cp -r g/* .git; "
                "echo x >.git/hooks/pre-commit")


def planted_hooks(directory):
    return [name for name in os.listdir(directory / "hooks") if not name.endswith(".sample")]
