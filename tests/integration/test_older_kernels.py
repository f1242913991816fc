# SPDX-License-Identifier: Apache-2.0
"""What kernels from 5.15 on lack, forced by answers that such a kernel gives: the same walls, or said by name."""
import pytest

pytestmark = [pytest.mark.needs("strace")]
WORK = """
echo x >file && mkdir -p into && mv file into/ && cat into/file
ln into/file linked 2>/dev/null && echo linked || echo not linked
cat ~/outside/secret 2>/dev/null || true
"""


def run_as_on(sandbox, answers, command, **keywords):
    """A run where the kernel answers so; the report, what it printed, and the trace."""
    log, report = sandbox.base / "trace", sandbox.report_path()
    words = ["strace", "-f", "-qq", "-o", log, "-e", f"trace={answers.split(':')[0]}", "-e", f"inject={answers}",
             *sandbox.command_line(["sh", "-c", command], options=["-q"], report=report, **keywords)]
    done = sandbox.run_outside(words, cwd=sandbox.project)
    done.report = sandbox.read_report(report)
    return done, log.read_text(errors="replace")


@pytest.mark.parametrize("abi", [1, 2, 3, 5])
def test_an_older_landlock(sandbox, abi):
    """5.15 has ABI 1, 5.19 has 2, 6.2 has 3, 6.10 has 5: the rights that it knows, and the report says which it was."""
    sandbox.write(sandbox.outside / "secret", "the secret\n")
    done, trace = run_as_on(sandbox, f"landlock_create_ruleset:retval={abi}:when=1", WORK)
    assert done.code == 0 and "INJECTED" in trace, (done, trace)
    assert done.report["enforcement"]["landlock"] == abi and "landlock.scope" in done.report["enforcement"]["missing"]
    # ABI 1 refuses what changes the directory; mv(1) copies then.
    assert done.out.split("\n")[:2] == ["x", "linked" if abi > 1 else "not linked"], done
    assert "the secret" not in done.out


def test_no_landlock_is_refused_where_it_is_demanded(sandbox):
    done, _ = run_as_on(sandbox, "landlock_create_ruleset:error=ENOSYS", "echo ran")
    assert done.code == 125 and "Landlock" in done.err and "ran" not in done.out, done


@pytest.mark.parametrize("abi, said", [(1, "moved or linked into another directory"), (4, "use Linux 6.12")])
def test_the_doctor_says_what_is_missing(sandbox, abi, said):
    done = sandbox.run_outside(["strace", "-f", "-qq", "-o", "/dev/null", "-e",
                                f"inject=landlock_create_ruleset:retval={abi}", sandbox.programs.atoll, "doctor"])
    assert f"ABI {abi}" in done.out and said in " ".join(done.out.split()), done
