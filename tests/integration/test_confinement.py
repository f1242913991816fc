# SPDX-License-Identifier: Apache-2.0
"""Our own programs that read what a sandbox wrote, where a wall around them cannot be put up: they read nothing. What
they cannot do behind the walls is tests/unit/confine's."""
import pytest

pytestmark = [pytest.mark.needs("strace")]
VERBS = {
    "log": ["log"], "verify": ["log", "verify"], "policy": ["policy", "show"], "secret": ["secret", "list"],
    "token": ["token", "list"],
    "diff": ["diff"], "apply": ["apply"], "discard": ["discard"],
    "top": ["top", "--once"],
}


@pytest.fixture
def staged(sandbox):
    assert sandbox.run("echo new >file").code == 0
    assert sandbox.run_atoll("secret", "set", "key", stdin=b"value").code == 0
    assert sandbox.run_atoll("token", "mint", "--allow", "file.read=/x").code == 0
    return sandbox


def on_a_kernel_that_refuses(sandbox, call, words):
    return sandbox.run_outside(["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call}:error=EIO",
                                sandbox.programs.atoll, *words], cwd=sandbox.project)


@pytest.mark.parametrize("name", VERBS)
def test_a_program_that_cannot_confine_itself_reads_nothing(staged, name):
    words = VERBS[name]
    for call in ("landlock_restrict_self", "prlimit64"):
        done = on_a_kernel_that_refuses(staged, call, words)
        assert done.code == 125 and not done.out and "cannot confine itself" in done.err, done
        assert not (staged.project / "file").exists()
    # The positive control: with the same program in the way, but nothing refused that is asked for.
    done = on_a_kernel_that_refuses(staged, "acct", words)
    assert done.code == 0 and "confine" not in done.err, done
