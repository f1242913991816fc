# SPDX-License-Identifier: Apache-2.0
"""What a run leaves for the next one, and ways around a protected name in a written tree (F1, F2, F7, F16, F22)."""
import pytest


def test_renaming_the_directory_above_a_protected_name(sandbox):
    """A read-only .git/hooks moved along with .git, which could then be made anew with hooks of one's own."""
    sandbox.git_project()
    hooks = sandbox.project / ".git/hooks"
    assert hooks.is_dir()
    script = ("mv .git .moved; mv .git/hooks .git/moved; mkdir -p .git/hooks; echo 'echo run' >.git/hooks/pre-commit; "
              "ln -sfn /tmp .git/hooks; rm -rf .git/hooks; echo x >.git/config; cp /dev/null .git/config; true")
    sandbox.run(script, trust="high")
    assert (sandbox.project / ".git").is_dir() and not (sandbox.project / ".moved").exists()
    assert not (hooks / "pre-commit").exists() and not hooks.is_symlink()
    assert "[core]" in (sandbox.project / ".git/config").read_text()
    # The control: without the boundary the same lines do their work.
    sandbox.run_outside(["sh", "-c", script])
    assert (hooks / "pre-commit").exists() or (sandbox.project / ".moved").exists()


def test_git_still_works_where_its_hooks_are_protected(sandbox):
    sandbox.git_project()
    result = sandbox.run("echo 1 >file && git add file && git -c user.name=a -c user.email=a@b commit -qm one && "
                         "git log --format=%s -1 && git status --short")
    assert (result.code, result.out.strip()) == (0, "one")


@pytest.mark.parametrize("name", [".vscode", ".git/hooks", ".claude/hooks", ".envrc"])
def test_a_planted_link_is_not_followed_by_the_next_run(sandbox, name):
    """The next run would have mounted what the link leads to, and the sandbox could have read it there."""
    secret = sandbox.home / "private"
    sandbox.write(secret / "key", "SECRET\n")
    link = sandbox.project / name
    plant = f"mkdir -p $(dirname {name}); ln -s {secret} {name}; readlink {name}"
    assert sandbox.run(plant).out.strip() == str(secret)
    assert not link.is_symlink(), "it was staged only"
    first = sandbox.run(plant, trust="high")
    assert first.out == "" and not link.is_symlink(), first
    sandbox.run_outside(["sh", "-c", plant], check=True)
    second = sandbox.run(f"cat {name}/key {name}/* {name}", trust="high")
    assert second.code == 125 and "symbolic link" in second.err and name in second.err
    assert "SECRET" not in second.out
    assert sandbox.run_outside(["cat", str(link / "key")]).out == "SECRET\n"


def test_a_planted_policy_only_tightens(sandbox):
    """F32, from inside: what the agent writes into .atoll.yaml cannot open anything for the next run."""
    sandbox.write(sandbox.home / "private/key", "SECRET\n")
    plant = "printf 'atoll: 1\\nfiles:\\n  read: [\"~/private\"]\\n' >.atoll.yaml"
    sandbox.run(plant)
    assert not (sandbox.project / ".atoll.yaml").exists()
    sandbox.run(plant, trust="high")
    assert not (sandbox.project / ".atoll.yaml").exists()
    sandbox.run_outside(["sh", "-c", plant], check=True)
    result = sandbox.run("cat ~/private/key")
    assert result.code == 125 and ".atoll.yaml:3" in result.err
