# SPDX-License-Identifier: Apache-2.0
"""A staged home that holds atoll's own state, as at level high: what the agent does in it waits for `apply`, what is
masked in it is absent under every name, and the state is no part of it (F1 to F3, F9, F18, F26, F30, F34, F42)."""
import os

import pytest

from stage import Staged, attempts, verdicts
from tree_state import differences, tree_state

POLICY = "atoll: 1\nextends: high\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk, mask.late]\n"


@pytest.fixture
def home(sandbox):
    """The state where it is by default: root's own would lie elsewhere."""
    sandbox.state = sandbox.make_directory(sandbox.home / ".local/state", 0o700)
    for name in (".bashrc", ".ssh/id", ".aws/credentials", "notes/a", "notes/b", ".config/tool", ".netrc", "doomed"):
        sandbox.write(sandbox.home / name, f"{name}\n", 0o600)
    sandbox.write(sandbox.project / "file", "file\n")
    os.symlink("../.ssh/id", sandbox.project / "key")
    return Staged(sandbox, sandbox.policy(POLICY))


def picture(sandbox):
    """The home without what atoll keeps of itself there."""
    return {path: seen for path, seen in tree_state(sandbox.home).items() if not path.startswith(".local")}


def test_the_project_is_written_and_the_home_is_staged(sandbox, home):
    before = picture(sandbox)
    done = home.run("echo new >inplace; cd; echo more >>notes/a; rm doomed; mkdir made; echo x >made/x; "
                    "mv notes/b made/")
    assert done.code == 0, done
    assert (sandbox.project / "inplace").read_text() == "new\n"
    (sandbox.project / "inplace").unlink()
    os.utime(sandbox.project, ns=(0, before["project"][3]))
    assert differences(before, picture(sandbox)) == []
    home.apply()
    assert (sandbox.home / "notes/a").read_text() == "notes/a\nmore\n" and not (sandbox.home / "doomed").exists()
    assert (sandbox.home / "made/b").read_text() == "notes/b\n" and (sandbox.home / "made/x").exists()
    home.undo()
    assert differences(before, picture(sandbox)) == []


def test_the_state_is_absent(sandbox, home):
    """F30: by its name, after its parents moved, and in mounts; what the agent puts there stays away from it."""
    tries = attempts(list="ls ~/.local/state/atoll", log="cat ~/.local/state/atoll/sessions/*/audit.jsonl",
                     root="ls /proc/self/root$HOME/.local/state/atoll", home="ls ~/notes",
                     moved="mv ~/.local ~/l && ls ~/l/state/atoll", back="mv ~/l ~/.local")
    seen = verdicts(home.run(tries))
    assert seen.pop("home") and seen.pop("back") and not seen.pop("moved") and not any(seen.values()), seen
    assert verdicts(sandbox.run_outside(["bash", "-c", attempts(list="ls ~/.local/state/atoll")]))["list"]
    done = home.run("rm -rf ~/.local; mkdir -p ~/.local/state/atoll/sessions/aaaaaaaaaaaa; "
                    "echo x >~/.local/state/atoll/x")
    assert done.code == 0, done
    logs = [sandbox.audit_log(session).read_bytes() for session in sandbox.sessions()]
    home.apply("--allow-flagged", sandbox.home, code=None)
    assert logs == [sandbox.audit_log(session).read_bytes()[:len(log)] for session, log in
                    zip(sandbox.sessions(), logs)]
    assert not (sandbox.state / "atoll/x").exists() and "aaaaaaaaaaaa" not in sandbox.sessions()
    assert home.verb("log", "verify", home.session).code == 0


def test_masked_credentials_are_absent_under_every_name(sandbox, home):
    """F1, F9, F18; and F3: the host makes one after the start of the policy that names it."""
    ways = attempts(ssh="cat ~/.ssh/id", link="cat key", hard="ln ~/.ssh/id ~/h && cat ~/h", root="cat "
                    "/proc/self/root$HOME/.ssh/id", aws="cat ~/.aws/credentials", netrc="cat ~/.netrc",
                    dots="cat ~/notes/../.ssh/id", cwd="cd ~/notes && cat ../.ssh/id")
    assert all(verdicts(sandbox.run_outside(["bash", "-c", ways])).values())
    os.unlink(sandbox.home / "h")
    assert not any(verdicts(home.run(ways)).values())
    sandbox.write(sandbox.home / ".git-credentials", "SECRET\n")
    assert home.run("cat ~/.git-credentials; ls -A ~").out.count("credentials") == 0
    done = home.run("mkdir ~/.ssh && echo evil >~/.ssh/authorized_keys")
    assert done.code == 0, done
    home.apply("--allow-flagged", sandbox.home, code=1)
    assert os.listdir(sandbox.home / ".ssh") == ["id"]


def test_what_starts_at_the_next_login_is_flagged(sandbox, home):
    """F26: nothing of it is applied unless it is named."""
    names = [".bashrc", ".profile", ".zshrc", ".gitconfig", ".config/autostart/x.desktop", ".config/systemd/user/x",
             ".local/bin/ls"]
    home.run("cd; " + "; ".join(f"mkdir -p $(dirname {name}); echo evil >>{name}" for name in names) + "; echo x >fine")
    changes = {path: change for path, change in home.diff().items() if path.endswith(tuple(names))}
    assert len(changes) == len(names) and all(change["flagged"] for change in changes.values()), changes
    home.apply(code=1)
    assert (sandbox.home / "fine").exists() and (sandbox.home / ".bashrc").read_text() == ".bashrc\n"
    assert not any((sandbox.home / name).exists() for name in names[1:])


def test_layers_of_a_home(sandbox, home):
    """Snapshot, restore and fork stand on layers that lie in the tree that they are layers of."""
    home.run("cd; echo one >>notes/a; rm doomed")
    home.verb("snapshot", home.session, "first")
    forked = sandbox.run_atoll("fork", home.session, "--", "bash", "-c",
                               "cd; cat notes/a; ls doomed; echo two >>notes/a")
    assert forked.out == "notes/a\none\n" and "doomed" in forked.err, forked
    assert (sandbox.home / "notes/a").read_text() == "notes/a\n" and (sandbox.home / "doomed").exists()
    home.apply()
    assert (sandbox.home / "notes/a").read_text() == "notes/a\none\n" and not (sandbox.home / "doomed").exists()


def test_the_state_directory_itself_is_never_staged(sandbox, home):
    home.run("true")
    policy = sandbox.policy("atoll: 1\nextends: none\nfiles: {stage: [~/.local/state/atoll/sessions]}\n", "state.yaml")
    done = sandbox.run("ls ~/.local/state/atoll/sessions", policy=policy)
    assert done.code != 0 and done.out == "", done
