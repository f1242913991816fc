# SPDX-License-Identifier: Apache-2.0
"""What a newcomer types after reading README: run, diff, apply in part, undo, snapshot, restore, fork, gc, in a fresh
home, piped and on a terminal. Reads wording, exit status, colours, escaped names."""
import json
import os
import re
import subprocess

import pexpect
import pytest

from stage import staging_policy
from tree_state import differences, tree_state

SUMMARY = re.compile(r"atoll: ([a-z0-9]{12}): (\d+) files? changed \(([^)]*)\)(?:, (\d+) flagged)?; "
                     r"nothing on disk has changed yet\n"
                     r"  review  atoll diff        keep  atoll apply        drop  atoll discard\n")
ESCAPE = re.compile(rb"\033\[[0-9;]*[A-Za-z]")


class Newcomer:
    """Types `atoll …` in the project, as the README has it: no policy, no session id."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        project = sandbox.git_project()
        for name in ("src/main.c", "src/old.c", "README", "data.bin"):
            sandbox.write(project / name, f"{name}\nline\n")
        sandbox.write(project / "data.bin", bytes(range(256)))
        sandbox.run_outside(["sh", "-c", "git add -A && git commit -qm start"], check=True)

    def atoll(self, *words, **keywords):
        return self.sandbox.run_atoll(*words, **keywords)

    def run(self, script, *options):
        return self.atoll("run", *options, "--", "sh", "-c", script)

    def terminal(self, *words, env=None):
        """What the terminal shows, and the status."""
        box = self.sandbox
        keywords = box.popen_keywords(env=env)
        child = pexpect.spawn(str(box.programs.atoll), [str(word) for word in words], cwd=keywords["cwd"],
                              env=keywords["env"], dimensions=(40, 100), timeout=20, encoding=None,
                              preexec_fn=box.identity.become)
        box.terminals.append(child)
        child.expect(pexpect.EOF)
        child.close()
        return child.before, child.exitstatus


AGENT = ("echo changed >>src/main.c; rm src/old.c; mkdir src/new; echo 1 >src/new/a.c; echo 2 >src/new/b.log; "
         "printf '\\001\\002' >>data.bin; echo '#!/bin/sh' >.git/hooks/pre-commit; "
         "echo x >\"$(printf 'e\\033[31mvil')\"")


@pytest.fixture
def newcomer(sandbox):
    return Newcomer(sandbox)


def test_run_says_what_to_do_next(newcomer):
    done = newcomer.run(AGENT)
    assert done.code == 0, done
    found = SUMMARY.search(done.err)
    assert found, done
    assert found[3].split(", ") == ["2 modified", "4 added", "1 deleted"] or sum(
        int(part.split()[0]) for part in found[3].split(", ")) == int(found[2]), done
    assert found[4] == "1", done
    assert done.out == ""


def test_nothing_changed_nothing_said(newcomer):
    done = newcomer.run("cat README >/dev/null; echo scratch >/tmp/x")
    assert done.code == 0 and "changed" not in done.err, done
    diff = newcomer.atoll("diff")
    assert diff.out == "" and len(diff.err.splitlines()) <= 1, diff
    session, = newcomer.sandbox.sessions()
    stage = newcomer.sandbox.state / "atoll/sessions" / session / "stage"
    assert not stage.exists() or not any(files for _, _, files in os.walk(stage / "live")), "empty layers are kept"


def test_the_tour(newcomer):
    project = newcomer.sandbox.project
    before = tree_state(project)
    assert newcomer.run(AGENT).code == 0
    assert tree_state(project) == before
    # Review. The flagged one comes first; the binary file by its size; every name escaped.
    shown = newcomer.atoll("diff")
    assert shown.code == 0 and "\033" not in shown.out, shown
    lines = shown.out.splitlines()
    assert ".git/hooks/pre-commit" in "\n".join(lines[:3]), shown
    for name in ("src/main.c", "src/old.c", "src/new/a.c", "data.bin", "vil"):
        assert name in shown.out, (name, shown)
    patch = newcomer.atoll("diff", "-p", "src")
    assert "+changed" in patch.out and "--- " in patch.out and "data.bin" not in patch.out, patch
    check = newcomer.sandbox.base / "check"
    subprocess.run(["cp", "-a", project, check], check=True)
    applied = subprocess.run(["git", "apply", "--check", "-p1", "-"], cwd=check, input=patch.bytes, capture_output=True,
                             check=False)
    assert applied.returncode == 0, (applied.stderr, patch)
    binary = newcomer.atoll("diff", "-p", "data.bin")
    assert "\x01" not in binary.out and "inary" in binary.out, binary
    # Keep a part.
    part = newcomer.atoll("apply", "src/", "-x", "*.log")
    assert part.code in (0, 1), part
    assert (project / "src/new/a.c").exists() and not (project / "src/new/b.log").exists(), part
    assert not (project / "src/old.c").exists() and (project / "data.bin").read_bytes() == bytes(range(256))
    # The rest; the hook is left, and said.
    rest = newcomer.atoll("apply")
    assert rest.code == 1 and ".git/hooks/pre-commit" in rest.out + rest.err, rest
    assert "--allow-flagged" in rest.out + rest.err, rest
    assert (project / "src/new/b.log").exists() and not (project / ".git/hooks/pre-commit").exists()
    left = newcomer.atoll("diff")
    assert "pre-commit" in left.out and "main.c" not in left.out, left
    # Take both back.
    listed = newcomer.atoll("undo", "--list")
    assert listed.code == 0 and len(listed.out.strip().splitlines()) >= 2, listed
    assert newcomer.atoll("undo").code == 0
    assert (project / "src/new/a.c").exists() and not (project / "src/new/b.log").exists()
    assert newcomer.atoll("undo").code == 0
    assert differences(before, tree_state(project)) == []
    again = newcomer.atoll("undo")
    assert again.code in (1, 127) and len(again.err.strip().splitlines()) == 1, again


def test_discard(newcomer):
    assert newcomer.run(AGENT).code == 0
    part = newcomer.atoll("discard", "src/main.c")
    assert part.code == 0, part
    shown = newcomer.atoll("diff").out
    assert "main.c" not in shown and "a.c" in shown
    assert newcomer.atoll("discard").code == 0
    assert newcomer.atoll("diff").out == ""
    assert newcomer.atoll("apply").code in (0, 125)
    assert newcomer.sandbox.run_outside(["git", "--no-optional-locks", "status", "--porcelain"]).out == ""


def test_snapshot_restore_and_fork(newcomer):
    newcomer.run("echo one >>README")
    assert newcomer.atoll("snapshot", "before-refactor", "-m", "it works").code == 0
    listed = newcomer.atoll("snapshot", "--list")
    assert "before-refactor" in listed.out and "it works" in listed.out, listed
    as_json = json.loads(newcomer.atoll("snapshot", "--list", "--json").out)
    assert "before-refactor" in json.dumps(as_json)
    first, = newcomer.sandbox.sessions()
    more = newcomer.run("echo two >>README; rm src/main.c; cat README", "--continue", first)
    assert more.out.endswith("one\ntwo\n"), more
    fork = newcomer.atoll("fork", first, "before-refactor", "--", "sh", "-c", "cat README; ls src; echo fork >>README")
    assert fork.code == 0, fork
    assert "one\n" in fork.out and "two" not in fork.out and "main.c" in fork.out, fork
    sessions = {newcomer.atoll("diff", session, "-p").out for session in newcomer.sandbox.sessions()}
    assert any("+fork" in text and "+two" not in text for text in sessions)
    assert any("+two" in text and "+fork" not in text for text in sessions)
    assert newcomer.sandbox.run_outside(["git", "--no-optional-locks", "status", "--porcelain"]).out == ""


def test_restore_can_be_taken_back(newcomer):
    """A sandbox that stays: a snapshot while it runs, one more command, back, stopped, and back again."""
    started = newcomer.atoll("run", "-d", "-n", "work", "--", "sleep", "60")
    assert started.code == 0, started
    assert newcomer.atoll("exec", "work", "--", "sh", "-c", "echo one >>README").code == 0
    taken = newcomer.atoll("snapshot", "work", "good")
    assert taken.code == 0, taken
    assert newcomer.atoll("exec", "work", "--", "sh", "-c", "echo two >>README").code == 0
    assert newcomer.atoll("restore", "work", "good").code == 0
    inside = newcomer.atoll("exec", "work", "--", "cat", "README").out
    assert inside.endswith("one\n"), inside
    assert newcomer.atoll("stop", "work").code == 0
    patch = newcomer.atoll("diff", "work", "-p").out
    assert "+one" in patch and "+two" not in patch
    listed = newcomer.atoll("snapshot", "work", "--list").out
    back = re.search(r"before-restore-\d+", listed)
    assert back, listed
    assert newcomer.atoll("restore", "work", back[0]).code == 0
    assert "+two" in newcomer.atoll("diff", "work", "-p").out
    unknown = newcomer.atoll("restore", "work", "no-such-name")
    assert unknown.code == 125 and "no such snapshot" in unknown.err and len(unknown.err.splitlines()) == 1, unknown


@pytest.mark.parametrize("option, code, applied", [("--apply-on-success", 0, True), ("--apply-on-success", 3, False),
                                                   ("--discard", 0, False), ("--keep", 0, False)])
def test_what_happens_at_the_end_can_be_said_before(newcomer, option, code, applied):
    done = newcomer.run(f"echo x >made; exit {code}", option)
    assert done.code == code, done
    assert (newcomer.sandbox.project / "made").exists() == applied, done
    shown = newcomer.atoll("diff").out
    assert ("made" in shown) == (not applied and option != "--discard"), shown


def test_merge(newcomer):
    project = newcomer.sandbox.project
    text = "".join(f"line {i}\n" for i in range(20))
    newcomer.sandbox.write(project / "text", text)
    newcomer.sandbox.run_outside(["sh", "-c", "git add -A; git commit -qm text"], check=True)
    newcomer.run("sed -i 's/line 2$/inside/' text; sed -i 's/line 1$/inside/' README; echo inside >>README")
    newcomer.sandbox.write(project / "text", text.replace("line 17\n", "host\n"))
    plain = newcomer.atoll("apply", "text")
    assert plain.code == 1 and "text" in plain.out + plain.err and "--merge" in plain.out + plain.err, plain
    merged = newcomer.atoll("apply", "--merge", "text")
    content = (project / "text").read_text()
    assert merged.code in (0, 1), merged
    assert "host\n" in content, "the host's change was lost"
    if merged.code == 0:
        assert "inside\n" in content


def test_gc(newcomer):
    for i in range(3):
        newcomer.run(f"echo {i} >>README")
    assert len(newcomer.sandbox.sessions()) == 3
    dry = newcomer.atoll("gc", "--keep", "1", "--dry-run")
    assert dry.code == 0 and len(newcomer.sandbox.sessions()) == 3, dry
    done = newcomer.atoll("gc", "--keep", "1")
    assert done.code == 0, done
    assert "+2" in newcomer.atoll("diff", "-p").out, "the newest session was taken"
    assert newcomer.atoll("gc", "--older-than", "30d").code == 0
    bad = newcomer.atoll("gc", "--older-than", "x")
    assert bad.code == 125 and len(bad.err.splitlines()) == 1, bad


def test_on_a_terminal(newcomer):
    """Colours there and nowhere else, unless NO_COLOR is set; a name cannot colour anything."""
    newcomer.run(AGENT)
    env = {"PAGER": "cat", "ATOLL_PAGER": "cat"}
    shown, status = newcomer.terminal("diff", env=env)
    assert status == 0 and b"e\\x1b[31mvil" in ESCAPE.sub(b"", shown), shown
    patch, status = newcomer.terminal("diff", "-p", env=env)
    assert status == 0 and b"\033[32m" in patch and b"\033[31m" in patch, patch
    plain, status = newcomer.terminal("diff", "-p", env={**env, "NO_COLOR": "1"})
    assert status == 0 and b"\033" not in plain and b"+changed" in plain, plain
    assert "\033" not in newcomer.atoll("diff", "-p").out
    applied, status = newcomer.terminal("apply", env={"NO_COLOR": "1"})
    assert status == 1 and b"pre-commit" in applied and b"\033" not in applied.replace(b"\033[K", b""), applied


def test_the_pager_gets_long_reviews_and_only_on_a_terminal(newcomer):
    newcomer.run("seq 3000 >long")
    mark = newcomer.sandbox.base / "paged"
    pager = newcomer.sandbox.write(newcomer.sandbox.base / "pager", f"#!/bin/sh\ncat >{mark}\n", 0o755)
    piped = newcomer.atoll("diff", "-p", env={"PAGER": str(pager)})
    assert "+2999" in piped.out and not mark.exists()
    newcomer.terminal("diff", "-p", env={"PAGER": str(pager)})
    assert mark.exists() and "+2999" in mark.read_text()


@pytest.mark.parametrize("words, expected", [
    (["diff", "nosuchsession"], "nosuchsession"), (["apply", "zzzzzzzzzzzz"], "zzzzzzzzzzzz"),
    (["diff", "--jsn"], "--jsn"), (["apply", "--allow-flagged"], "--allow-flagged"), (["restore"], "restore"),
    (["fork", "x"], "command"), (["undo", "--list", "--bad"], "--bad"), (["snapshot", "../x"], "cannot have this name"),
    (["gc", "--keep", "-1"], "--keep"), (["gc", "--max-size", "x"], "--max-size")])
def test_wrong_words_end_with_one_line(newcomer, words, expected):
    newcomer.run("echo x >>README")
    done = newcomer.atoll(*words)
    assert done.code == (127 if expected in ("nosuchsession", "zzzzzzzzzzzz") else 125), done
    assert expected in done.err and len(done.err.strip().splitlines()) == 1, done
    assert newcomer.sandbox.run_outside(["git", "--no-optional-locks", "status", "--porcelain"]).out == ""


@pytest.mark.parametrize("verb", ["diff", "apply", "undo", "discard", "snapshot", "restore"])
def test_without_a_session_there_is_one_line(sandbox, verb):
    done = sandbox.run_atoll(verb, *(["x"] if verb == "restore" else []))
    assert done.code == 125 and len(done.err.strip().splitlines()) == 1 and "atoll: " in done.err, done


def test_the_verbs_are_in_the_help(sandbox):
    text = sandbox.run_atoll("help").out
    for verb in ("diff", "apply", "undo", "discard", "snapshot", "restore", "fork", "gc"):
        assert re.search(rf"^  {verb} ", text, re.M), verb
        assert f"atoll {verb}" in sandbox.run_atoll(verb, "--help").out


def test_a_crashed_run_is_offered_for_review(newcomer):
    """SIGKILL of the whole run: what it had written is still there to review."""
    child = newcomer.sandbox.popen(["sh", "-c", "echo x >>README; echo ready; sleep 60"], policy=staging_policy(
        newcomer.sandbox))
    assert child.stdout.readline() == b"ready\n"
    child.kill()
    child.wait()
    shown = newcomer.atoll("diff", "-p")
    assert shown.code == 0 and "+x" in shown.out, shown
    assert newcomer.atoll("apply").code == 0
    assert (newcomer.sandbox.project / "README").read_text().endswith("x\n")
