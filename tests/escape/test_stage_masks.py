# SPDX-License-Identifier: Apache-2.0
"""Masks in staged trees: a masked name looks absent, now and later, under every other name and for every call; what is
made under it stays in the layer."""
import os
import subprocess

from stage import Staged, attempts, is_refused, staging_policy, verdicts
from tree_state import differences, tree_state

SECRET = "the secret\n"


def masked_policy(sandbox, *masks):
    text = staging_policy(sandbox).read_text().replace("stage:", f"mask: [{', '.join(masks)}], stage:")
    return sandbox.policy(text, "masked.yaml")


def test_a_masked_name_stays_absent_when_the_host_makes_it(sandbox):
    """F3: the name was not there at the start, nor was its directory."""
    staged = Staged(sandbox, masked_policy(sandbox, "conf/token", "later/deep/token", "secrets.txt"))
    sandbox.make_directory(sandbox.project / "conf")
    child = sandbox.popen(["sh", "-c", "echo ready; while ! read -r line; do :; done; "
                           "cat conf/token later/deep/token secrets.txt; cat plain; ls -R ."], policy=staged.policy,
                          stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    for name in ("conf/token", "later/deep/token", "secrets.txt", "plain"):
        sandbox.write(sandbox.project / name, "plain\n" if name == "plain" else SECRET)
    assert sandbox.run_outside(["cat", "secrets.txt"]).out == SECRET
    out, _ = child.communicate(b"go\n", timeout=20)
    assert b"plain\n" in out and b"secret" not in out.replace(b"secrets.txt", b""), out
    assert b"token" not in out and b"secrets.txt" not in out, out


def test_a_file_that_the_host_replaces_stays_masked(sandbox):
    """F3: editors outside rename a new file over the masked one."""
    path = sandbox.write(sandbox.project / ".env", "old\n")
    staged = Staged(sandbox)
    child = sandbox.popen(["sh", "-c", "echo ready; read -r line; cat .env; ls -A"], policy=staged.policy,
                          stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    sandbox.write(sandbox.project / ".new", SECRET).rename(path)
    out, _ = child.communicate(b"go\n", timeout=20)
    assert b"secret" not in out and b".env" not in out, out


def test_mask_globs_hold(sandbox):
    """F4: `**/.env` that is made after the start, by the host, in a new directory."""
    policy = masked_policy(sandbox, "'**/.env'")
    child = sandbox.popen(["sh", "-c", "echo ready; read -r line; cat new/dir/.env"], policy=policy,
                          stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    sandbox.write(sandbox.project / "new/dir/.env", SECRET)
    out, err = child.communicate(b"go\n", timeout=20)
    assert b"secret" not in out and b"No such file" in err, (out, err)


def test_a_masked_file_stays_masked_under_every_name(sandbox):
    """F9, F10, F18: links, moved parents, descriptors, aliases of /proc, and each call that takes a name."""
    sandbox.write(sandbox.project / "conf/token", SECRET, 0o644)
    sandbox.write(sandbox.project / "plain", "plain\n")
    staged = Staged(sandbox, masked_policy(sandbox, "conf/token"))
    commands = dict(
        plain="cat plain", read="cat conf/token", link="ln conf/token x", symlink="ln -s conf/token y && cat y",
        move="mv conf/token z", parent="mv conf conf2 && cat conf2/token; mv conf2 conf && false",
        root="cat /proc/self/root$PWD/conf/token", cwd="cat /proc/self/cwd/conf/token",
        thread="cat /proc/thread-self/root$PWD/conf/token", fd="exec 5<conf; cat /proc/self/fd/5/token",
        dev="exec 5<conf; cat /dev/fd/5/token", dots="cat conf/../conf/./token", slashes="cat .//conf///token",
        copy="cp -a conf c && cat c/token", stat="stat conf/token", chmod="chmod 777 conf/token",
        truncate="truncate -c -s 0 conf/token && stat conf/token", touch="touch -c conf/token && stat conf/token",
        xattr="setfattr -n user.x -v y conf/token", exec="./conf/token", readlink="realpath -e conf/token",
        cd="cd conf && cat token", tar="tar c conf | grep -a secret", find="find . -name token | grep .",
        list="ls -a conf | grep token", rm="rm conf/token", acl="getfattr -d conf/token")
    control = {name: command for name, command in commands.items() if name not in ("exec", "dev", "thread")}
    probe = sandbox.base / "control"
    subprocess.run(["cp", "-a", sandbox.project, probe], check=True)
    # One at a time, each on a tree of its own: most of them change it.
    for name in ("read", "link", "root", "cwd", "fd", "dots", "stat", "tar", "find", "list", "xattr", "readlink"):
        assert verdicts(sandbox.run_outside(["bash", "-c", attempts(**{name: control[name]})], cwd=probe))[name], name
    done = staged.run(attempts(**commands))
    assert [name for name, succeeded in verdicts(done).items() if succeeded] == ["plain"], done
    assert SECRET not in done.out
    assert (sandbox.project / "conf/token").read_text() == SECRET


def test_calls_on_a_masked_name_find_nothing(sandbox, programs):
    """F10: every call that atoll-probe knows to try on a hidden path, on one that a whiteout hides."""
    probe = sandbox.copy(programs.program("atoll-probe"), sandbox.home / "tools/atoll-probe")
    names = [name for name in sandbox.run_outside([probe, "--list"]).out.split() if name.startswith("hidden.")]
    place = sandbox.make_directory(sandbox.project / "private")
    secret = sandbox.write(place / "id", SECRET, 0o600)
    for name in names:
        sandbox.write(place / f"victim-{name}", "v" * 64)
        sandbox.make_directory(place / f"victim-{name}.d")
    before = tree_state(place)
    text = masked_policy(sandbox, "private").read_text().replace("stage:", "read: [~/tools], stage:")
    policy = sandbox.policy(text, "probe.yaml")
    words = [probe, f"--hidden={place}", f"--secret={secret}", f"--scratch={sandbox.project}"]
    done = sandbox.run([*words, "--only=hidden"], policy=policy)
    rows = [line.split("\t") for line in done.out.splitlines()]
    held = {row[0]: row[2] for row in rows if len(row) == 5}
    assert len(held) >= len(names) > 10, done
    assert [name for name, outcome in held.items() if outcome == "broke"] == [], done
    assert differences(before, tree_state(place)) == []
    control = sandbox.run_outside([*words, "--only=hidden"])
    assert sum("\tbroke\t" in line for line in control.out.splitlines()) > 10, control


def test_a_masked_directory_swallows_no_write(sandbox):
    """F12: a write into it fails, or is listed as what will never be applied; it does not vanish."""
    sandbox.write(sandbox.project / "private/key", SECRET)
    staged = Staged(sandbox, masked_policy(sandbox, "private"))
    done = staged.run(attempts(write="echo x >private/new", read="cat private/key", list="ls private",
                               rename="mv private elsewhere", made="mkdir private && echo x >private/new"))
    seen = verdicts(done)
    made = seen.pop("made")
    assert not any(seen.values()), done
    if made:
        changes = staged.diff()
        assert is_refused(changes, "private/new", "masked"), changes
        staged.apply(code=1)
    assert os.listdir(sandbox.project / "private") == ["key"]
    assert (sandbox.project / "private/key").read_text() == SECRET


def test_what_is_made_under_a_masked_name_is_never_applied(sandbox):
    """F3, F7: .env written, moved, linked and made a directory inside; the host's stays what it is, or absent."""
    sandbox.write(sandbox.project / "conf/token", SECRET)
    staged = Staged(sandbox, masked_policy(sandbox, "conf/token", "absent", "dir"))
    staged.run("echo evil >conf/token; echo evil >a; mv a absent; mkdir dir; echo evil >dir/inner; echo x >fine")
    changes = staged.diff()
    for name in ("conf/token", "absent", "dir/inner"):
        assert is_refused(changes, name, "masked"), changes
    staged.apply(code=1)
    staged.apply("--allow-flagged", sandbox.project / "absent", "--", sandbox.project / "absent", code=None)
    assert sorted(os.listdir(sandbox.project)) == ["conf", "fine"]
    assert (sandbox.project / "conf/token").read_text() == SECRET


def test_deleting_around_a_mask_deletes_nothing_masked(sandbox):
    """F3: the directory that holds a masked name is removed inside, or replaced by a file."""
    for name in ("conf/token", "conf/plain", "two/token", "two/plain"):
        sandbox.write(sandbox.project / name, SECRET if name.endswith("token") else "plain\n")
    staged = Staged(sandbox, masked_policy(sandbox, "conf/token", "two/token"))
    done = staged.run("rm -rf conf two; echo x >two; ls -A")
    assert done.out == "two\n", done
    staged.apply(code=1)
    for name in ("conf/token", "two/token"):
        assert (sandbox.project / name).read_text() == SECRET, name
    assert not (sandbox.project / "conf/plain").exists()


def test_a_mask_below_a_directory_that_is_missing_hides_that_name_only(sandbox):
    """The host has no conf yet: what the agent makes there can be applied, but for the masked names."""
    staged = Staged(sandbox, masked_policy(sandbox, "conf/foo/secret", '"other/keys/*"'))
    staged.run("mkdir -p conf/foo other/keys; echo 1 >conf/x; echo 2 >conf/foo/y; echo 3 >conf/foo/secret; "
               "echo 4 >other/z; echo 5 >other/keys/k")
    refused = {path for path, change in staged.diff().items() if change["reason"] == "masked"}
    assert refused == {"conf/foo/secret", "other/keys/k"}, staged.diff()
    staged.apply(code=1)
    project = sandbox.project
    assert (project / "conf/x").read_text() == "1\n" and (project / "conf/foo/y").exists()
    assert (project / "other/z").exists() and not (project / "conf/foo/secret").exists()
    assert not (project / "other/keys/k").exists()
    staged.undo()
    assert not (project / "conf").exists()
