# SPDX-License-Identifier: Apache-2.0
"""Review as a person does it: what a run and an apply say to go on with, and `atoll apply -i`."""
import io
import json
import os
import re
import shlex

import pexpect
import pytest

from overlay import Layered

LINES = [f"line {number}\n" for number in range(1, 41)]


def changed(lines, **by_number):
    """The text with some lines changed: line_3="new"."""
    result = list(lines)
    for name, text in by_number.items():
        result[int(name.split("_")[1]) - 1] = text + "\n"
    return "".join(result)


@pytest.fixture
def layered(sandbox):
    sandbox.write(sandbox.project / "text", "".join(LINES))
    return Layered(sandbox)


class Review:
    """A person at `atoll apply -i` on a terminal."""

    def __init__(self, sandbox, session, *words):
        self.shown = io.BytesIO()
        self.child = sandbox.spawn(["atoll", "apply", "-i", session, *words], outside=True,
                                   env={"PATH": f"{sandbox.programs.directory}:/usr/bin:/bin", "NO_COLOR": "1"},
                                   size=(40, 120))
        self.child.logfile_read = self.shown

    def question(self):
        """What it shows up to its next question; None at the end."""
        if self.child.expect([rb"\[[a-z,]+\?\]\? ", pexpect.EOF], timeout=60) == 1:
            return None
        return (self.child.before + self.child.after).decode().replace("\r\n", "\n")

    def answer(self, keys):
        for key in keys:
            assert self.question() is not None, (key, self.text())
            self.child.sendline(key)
        return self

    def end(self):
        self.child.expect(pexpect.EOF, timeout=60)
        self.child.close()
        return self.child.exitstatus

    def text(self):
        return self.shown.getvalue().decode().replace("\r\n", "\n")


def test_hunks_are_taken_one_by_one_and_the_rest_stays_staged(sandbox, layered):
    layered.inside("sed -i 's/^line 3$/three/; s/^line 20$/twenty/; s/^line 38$/last/' text")
    review = Review(sandbox, layered.session).answer("yny")
    assert review.end() == 0, review.text()
    assert (sandbox.project / "text").read_text() == changed(LINES, line_3="three", line_38="last")
    # What was not taken is no conflict: it is what is left to be reviewed, and can be applied later.
    shown = sandbox.run_atoll("diff", "-p", layered.session)
    assert "+twenty" in shown.out and "three" not in shown.out and "conflict" not in shown.out, shown
    assert sandbox.run_atoll("apply", layered.session).code == 0
    assert (sandbox.project / "text").read_text() == changed(LINES, line_3="three", line_20="twenty", line_38="last")
    # Each undo takes one apply back.
    assert sandbox.run_atoll("undo", layered.session).code == 0
    assert (sandbox.project / "text").read_text() == changed(LINES, line_3="three", line_38="last")
    assert sandbox.run_atoll("undo", layered.session).code == 0
    assert (sandbox.project / "text").read_text() == "".join(LINES)


@pytest.mark.parametrize("keys,taken", [
    ("nnn", {}), ("q", {}), ("a", {"line_3": "three", "line_20": "twenty", "line_38": "last"}), ("d", {}),
    ("na", {"line_20": "twenty", "line_38": "last"}), ("yd", {"line_3": "three"}), ("yq", {"line_3": "three"}),
    ("jy", None), ("ykn", None), ("?zny?q", {"line_20": "twenty"}),
])
def test_the_keys_of_git_add_patch(sandbox, layered, keys, taken):
    layered.inside("sed -i 's/^line 3$/three/; s/^line 20$/twenty/; s/^line 38$/last/' text")
    if taken is None:
        keys, taken = {"jy": ("jyn", {"line_20": "twenty"}), "ykn": ("yknnn", {})}[keys]
    review = Review(sandbox, layered.session).answer(keys)
    assert review.end() == 0, review.text()
    assert (sandbox.project / "text").read_text() == changed(LINES, **taken), review.text()


def test_a_hunk_is_split(sandbox, layered):
    layered.inside("sed -i 's/^line 10$/ten/; s/^line 13$/thirteen/' text")
    review = Review(sandbox, layered.session)
    question = review.question()
    assert "(1/1)" in question and "+ten" in question and "+thirteen" in question and ",s," in question, question
    review.child.sendline("s")
    first = review.question()
    assert "(1/2)" in first and "+ten" in first and "+thirteen" not in first and ",s," not in first, first
    review.child.sendline("n")
    second = review.question()
    assert "(2/2)" in second and "+thirteen" in second and "+ten" not in second, second
    review.child.sendline("y")
    assert review.end() == 0
    assert (sandbox.project / "text").read_text() == changed(LINES, line_13="thirteen")


def test_what_is_no_text_is_one_question(sandbox, layered):
    sandbox.write(sandbox.project / "goes", "old\n")
    sandbox.write(sandbox.project / "link-to-be", "x\n")
    sandbox.write(sandbox.project / "mode", "#!/bin/sh\n")
    layered.start()
    layered.inside(r"""printf 'a\0b' >binary; rm goes; rm link-to-be; ln -s /etc/passwd link-to-be; chmod 755 mode
        mkdir -p big/deep; for i in 1 2 3; do echo $i >big/$i; done; echo d >big/deep/file; echo one >fresh""")
    review = Review(sandbox, layered.session)
    seen = {}
    while (question := review.question()) is not None:
        name = re.search(r"(?:of|to|in) (\S+) \[[a-z,?]+\]\? $", question).group(1)
        seen[name] = question
        review.child.sendline({"binary": "y", "goes": "y", "big": "s", "big/2": "n", "mode": "y"}.get(name, "y"))
        if len(seen) > 20:
            break
    assert review.end() == 0, review.text()
    assert "4 files" in seen["big"] and "binary file" in seen["binary"] and "/etc/passwd" in seen["link-to-be"], seen
    assert "0755" in seen["mode"], seen
    project = sandbox.project
    assert not (project / "goes").exists() and (project / "binary").read_bytes() == b"a\0b"
    assert os.readlink(project / "link-to-be") == "/etc/passwd" and os.access(project / "mode", os.X_OK)
    assert sorted(os.listdir(project / "big")) == ["1", "3", "deep"], review.text()


def test_the_mode_of_a_text_is_a_question_of_its_own(sandbox, layered):
    layered.inside("sed -i 's/^line 3$/three/' text; chmod 755 text")
    review = Review(sandbox, layered.session).answer("ny")
    assert review.end() == 0, review.text()
    assert (sandbox.project / "text").read_text() == changed(LINES, line_3="three")
    assert (sandbox.project / "text").stat().st_mode & 0o777 == 0o644
    review = Review(sandbox, layered.session).answer("y")
    assert review.end() == 0, review.text()
    assert (sandbox.project / "text").stat().st_mode & 0o777 == 0o755


def test_a_text_without_a_last_newline(sandbox, layered):
    sandbox.write(sandbox.project / "bare", "one\ntwo")
    layered.start()
    layered.inside(r"printf 'ONE\ntwo\nthree' >bare")
    review = Review(sandbox, layered.session)
    assert "No newline" in review.question()
    review.child.sendline("y")
    assert review.end() == 0
    assert (sandbox.project / "bare").read_text() == "ONE\ntwo\nthree"


def test_a_flagged_path_is_asked_about_as_such(sandbox, layered):
    sandbox.make_directory(sandbox.project / ".git" / "hooks")
    layered.start()
    layered.inside("mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; echo fine >fine")
    review = Review(sandbox, layered.session)
    flagged = review.question()
    assert "flagged" in flagged and ".git/hooks/pre-commit" in flagged and "+evil" in flagged, flagged
    review.child.sendline("n")
    review.answer("y")
    assert review.end() == 0, review.text()
    assert (sandbox.project / "fine").exists() and not (sandbox.project / ".git/hooks/pre-commit").exists()
    review = Review(sandbox, layered.session).answer("y")
    assert review.end() == 0, review.text()
    assert (sandbox.project / ".git/hooks/pre-commit").read_text() == "evil\n"


def test_a_new_directory_taken_whole_brings_nothing_flagged(sandbox, layered):
    layered.inside("mkdir -p new/.vscode; echo 1 >new/a; echo 2 >new/b; echo '{}' >new/.vscode/tasks.json")
    review = Review(sandbox, layered.session)
    first = review.question()
    assert "2 files" in first and "tasks.json" not in first, first
    review.child.sendline("y")
    assert "flagged" in review.question()
    review.child.sendline("n")
    assert review.end() == 0, review.text()
    assert sorted(os.listdir(sandbox.project / "new")) == ["a", "b"], review.text()


def test_hostile_names_and_contents_are_escaped(sandbox, layered):
    layered.inside(r"""printf 'a\033]0;owned\007b\033[2J\rx\n' >>text; printf x >"$(printf 'n\033[2Jame\nline')" """)
    review = Review(sandbox, layered.session).answer("yy")
    assert review.end() == 0, review.text()
    assert "\x1b]0" not in review.text() and "\x1b[2J" not in review.text() and "\\x1b]0;owned" in review.text()


def test_what_changes_meanwhile_is_left(sandbox, layered):
    sandbox.write(sandbox.project / "other", "o\n")
    layered.start()
    layered.inside("sed -i 's/^line 3$/three/; s/^line 30$/thirty/' text; echo changed >other; echo new >staged-later")
    review = Review(sandbox, layered.session)
    review.answer("y")
    # The host's file changes while the person reads, and so does what was staged.
    sandbox.write(sandbox.project / "text", "mine\n")
    (layered.upper / "staged-later").write_text("swapped after it was shown\n")
    while not review.child.eof():
        review.child.sendline("y")
        if review.question() is None:
            break
    review.child.close()
    assert (sandbox.project / "text").read_text() == "mine\n", review.text()
    assert not (sandbox.project / "staged-later").exists() or \
        (sandbox.project / "staged-later").read_text() == "new\n", review.text()
    assert review.child.exitstatus == 1 and "left" in review.text(), review.text()


def test_no_answer_applies_nothing(sandbox, layered):
    layered.inside("sed -i 's/^line 3$/three/; s/^line 30$/thirty/' text")
    done = sandbox.run_atoll("apply", "-i", layered.session, stdin=b"y\n")
    assert done.code == 125 and "no answer" in done.err, done
    assert (sandbox.project / "text").read_text() == "".join(LINES)
    done = sandbox.run_atoll("apply", "-i", layered.session, stdin=b"y\nn\n")
    assert done.code == 0 and (sandbox.project / "text").read_text() == changed(LINES, line_3="three"), done


def test_a_dry_run_asks_and_does_nothing(sandbox, layered):
    layered.inside("sed -i 's/^line 3$/three/; s/^line 30$/thirty/' text")
    done = sandbox.run_atoll("apply", "-i", "--dry-run", layered.session, stdin=b"y\nn\n")
    assert done.code == 0 and "would apply" in done.out and (sandbox.project / "text").read_text() == "".join(LINES)
    assert sandbox.run_atoll("apply", "-i", "--json", layered.session).code == 125


def flagged_command(done):
    """The words of the command that an apply prints for what it left."""
    line = re.search(r"^then apply them with: +(atoll apply .*)$", done.out, re.M)
    assert line, done
    return shlex.split(line.group(1))[1:]


def test_flagged_paths_come_with_the_command_that_applies_them(sandbox, layered):
    layered.inside("""mkdir -p .vscode .git/hooks; echo '{}' >.vscode/tasks.json; echo 1 >fine
        echo x >".git/hooks/it's a hook\"""")
    done = sandbox.run_atoll("apply", layered.session)
    assert done.code == 1 and (sandbox.project / "fine").exists(), done
    rest = sandbox.run_atoll(*flagged_command(done))
    assert rest.code == 0, rest
    assert (sandbox.project / ".vscode/tasks.json").exists() and (sandbox.project / ".git/hooks/it's a hook").exists()
    assert "allow-flagged" not in rest.out


def test_many_flagged_paths_are_one_short_command(sandbox, layered):
    layered.inside("""for i in $(seq 60)
        do mkdir -p node_modules/p$i/.vscode; echo '{}' >node_modules/p$i/.vscode/tasks.json; done
        mkdir -p .vscode; printf '{}' >".vscode/$(printf 'od\\033d')"; echo '{}' >.vscode/tasks.json""")
    done = sandbox.run_atoll("apply", layered.session)
    words = flagged_command(done)
    assert done.code == 1 and words.count("--allow-flagged") <= 8, done
    assert sandbox.run_atoll(*words).code == 0
    assert sandbox.run_atoll("apply", layered.session).out == "nothing to apply\n"


def test_a_second_run_says_once_what_it_does_not_see_and_how_to_go_on(sandbox):
    first = sandbox.run(["sh", "-c", "echo 1 >made"])
    assert "are not applied, so this run does not see them" not in first.err, first
    second = sandbox.run(["sh", "-c", "test -e made && echo seen; echo 2 >second"])
    told = re.search(r"to continue with them: (atoll run --continue (\S+) -- .*)$", second.err, re.M)
    assert told and told.group(2) == first.session and "seen" not in second.out, second
    # Said before anything runs, once, and the command is one to be copied.
    assert second.err.index("to continue with them") < second.err.index("nothing on disk has changed yet"), second
    assert second.err.count(first.session) == 3, second
    words = shlex.split(told.group(1))
    again = sandbox.run_atoll(*words[1:])
    assert again.code == 0 and again.out == "seen\n", again
    # Of the newest one the next run says it, and the run behind that does not say it again.
    assert "to continue with them" in sandbox.run(["true"]).err
    assert "to continue with them" not in sandbox.run(["true"]).err
    assert "to continue with them" not in sandbox.run(["true"], options=["-q"]).err


def test_a_session_that_was_applied_is_not_told_of(sandbox):
    first = sandbox.run(["sh", "-c", "echo 1 >made"])
    assert sandbox.run_atoll("apply", first.session).code == 0
    assert "to continue with them" not in sandbox.run(["true"]).err


def test_rehearse_says_what_can_be_taken_back_and_changes_nothing(sandbox, layered):
    sandbox.write(sandbox.project / "other", "o\n")
    layered.start()
    assert sandbox.run_atoll("undo", "--rehearse", layered.session).code == 127
    layered.inside("echo changed >text; echo changed >other")
    assert sandbox.run_atoll("apply", layered.session).code == 0
    whole = sandbox.run_atoll("undo", "--rehearse", layered.session)
    assert whole.code == 0 and whole.out.startswith("yes") and "2 paths" in whole.out, whole
    assert (sandbox.project / "text").read_text() == "changed\n"
    doctor = sandbox.run_atoll("doctor")
    assert re.search(r"^undo +ok", doctor.out, re.M), doctor
    sandbox.write(sandbox.project / "other", "mine\n")
    part = sandbox.run_atoll("undo", "--rehearse", layered.session)
    assert part.code == 1 and "other" in part.out and "cannot be taken back" in part.out, part
    told = json.loads(sandbox.run_atoll("undo", "--rehearse", "--json", layered.session).out)
    assert told["undoable"] is False and len(told["left"]) == 1 and told["undo"] is None, told
    doctor = sandbox.run_atoll("doctor", "--json")
    found = [check for check in json.loads(doctor.out)["checks"] if check["what"] == "undo"]
    assert found and found[0]["state"] == "weak" and layered.session in found[0]["fix"], doctor
    assert (sandbox.project / "text").read_text() == "changed\n"
    # What it names is what an undo does.
    assert sandbox.run_atoll("undo", layered.session).code == 1
    assert (sandbox.project / "text").read_text() == "".join(LINES)


def test_rehearse_leaves_an_interrupted_apply_as_it_is(sandbox, layered):
    layered.inside("echo changed >text")
    assert sandbox.run_atoll("apply", layered.session).code == 0
    # Cut before its end: as a crash leaves it.
    journal = layered.directory / "applies" / "1" / "journal"
    journal.write_bytes(journal.read_bytes()[:-40])
    before = journal.read_bytes()
    done = sandbox.run_atoll("undo", "--rehearse", layered.session)
    assert done.code == 125 and "--resume" in done.err and journal.read_bytes() == before, done


def test_one_env_file_is_unmasked_by_a_policy(sandbox):
    sandbox.write(sandbox.project / ".env", "KEY=1\n")
    sandbox.write(sandbox.project / ".env.local", "KEY=2\n")
    policy = sandbox.policy("atoll: 1\nextends: medium\ndrop: [.env]\n")
    assert sandbox.run(["cat", ".env"]).code == 1
    told = sandbox.run_atoll("policy", "explain", "file.read", ".env")
    assert "--unmask PATH" in told.out and "drop: [PATH]" in told.out, told
    done = sandbox.run(["sh", "-c", "cat .env; ! cat .env.local"], policy=policy)
    assert done.code == 0 and done.out == "KEY=1\n", done
    limits = sandbox.run(["cat", "/run/atoll/limits.md"]).out
    assert "drop: [.env]" in limits and "--unmask .env" in limits


def test_the_hint_of_a_masked_path_names_a_way_that_works(sandbox):
    """Of ~/.ssh it said `drop: [.env]`, which shows another file."""
    def told(path, policy=None):
        words = ["-p", policy] if policy else []
        return sandbox.run_atoll("policy", *words, "explain", "file.read", path).out

    home = sandbox.home / ".ssh"
    home.mkdir(exist_ok=True)
    sandbox.write(home / "known_hosts", "host\n")
    hint = told(home / "known_hosts")
    assert ".env" not in hint and "--unmask" not in hint and "`files: {read: …}`" in hint, hint
    shown = sandbox.policy("atoll: 1\nextends: medium\ndrop: [~/.ssh]\nfiles: {read: [~/.ssh]}\n")
    assert sandbox.run(["cat", home / "known_hosts"]).code == 1
    assert sandbox.run(["cat", home / "known_hosts"], policy=shown).out == "host\n"
    sandbox.write(sandbox.project / "keys/a", "a\n")
    masks = sandbox.policy("atoll: 1\nextends: medium\nfiles: {mask: [keys]}\n", "masks.yaml")
    assert "--unmask DIRECTORY" in told(sandbox.project / "keys/a", masks)
    assert sandbox.run(["cat", "keys/a"], policy=masks, options=["--unmask", "keys"]).out == "a\n"
    # What no option and no policy of one's own can show has no such hint.
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nfiles: {mask: [keys]}\n")
    hint = told(sandbox.project / "keys/a")
    assert "masked" in hint and "--unmask" not in hint and "drop:" not in hint, hint
    # Nor has what both mask, in whichever words each of them does.
    for own, project in (("keys", "keys"), ("keys/a", "keys"), ("keys", "k*s"), ("keys/a", "**/a")):
        sandbox.write(sandbox.project / ".atoll.yaml", f"atoll: 1\nfiles: {{mask: [\"{project}\"]}}\n")
        masks = sandbox.policy(f"atoll: 1\nextends: medium\nfiles: {{mask: [{own}]}}\n", "masks.yaml")
        hint = told(sandbox.project / "keys/a", masks)
        assert ".atoll.yaml masks it" in hint and "--unmask" not in hint, (own, project, hint)


def test_one_env_file_is_unmasked_by_an_option(sandbox):
    for name in (".env", ".env.local"):
        sandbox.write(sandbox.project / name, f"{name}\n")
    shown = sandbox.run(["sh", "-c", "cat .env; ! cat .env.local"], options=["--unmask", ".env"])
    assert shown.code == 0 and shown.out == ".env\n", shown
    # For that run alone: the compiled policy that is kept is another.
    assert sandbox.run(["cat", ".env"]).code == 1
    both = sandbox.run(["cat", ".env", ".env.local"], options=["--unmask", ".env", "--unmask", ".env.local"])
    assert both.code == 0, both
    none = sandbox.run(["true"], options=["--unmask", "text"])
    assert none.code == 125 and "names exactly this path" in none.err, none
    assert sandbox.run(["true"], options=["--unmask", "/etc/shadow"], trust="low").code in (0, 125)
    # What the project itself masks stays masked, and so does what a pattern covers.
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nfiles: {mask: [.env]}\n")
    assert sandbox.run(["cat", ".env"], options=["--unmask", ".env"]).code == 1
    (sandbox.project / ".atoll.yaml").unlink()
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles: {mask: ['**/.env']}\n")
    assert sandbox.run(["cat", ".env"], policy=policy, options=["--unmask", ".env"]).code == 1
    # Atoll's own files are out of reach for every option.
    own = sandbox.run(["true"], options=["--unmask", sandbox.state / "atoll"])
    assert own.code == 125, own


class Ending:
    """An interactive run, at the question of its end."""

    def __init__(self, sandbox, script="echo made >made; exit 3", options=(), env=None):
        self.shown = io.BytesIO()
        self.child = sandbox.spawn(["sh", "-c", script], options=options, size=(40, 160),
                                   env={"ATOLL_REVIEW_PROMPT": None, "NO_COLOR": "1", "PAGER": "cat", **(env or {})})
        self.child.logfile_read = self.shown

    def answer(self, *lines):
        for line in lines:
            self.child.expect([rb"rop them\? $", rb"drop all of it\? \[y/N\] $"], timeout=8)
            self.child.sendline(line)
        return self

    def end(self):
        self.child.expect(pexpect.EOF, timeout=8)
        self.child.close()
        return self.child.exitstatus

    def text(self):
        return self.shown.getvalue().decode().replace("\r\n", "\n")


@pytest.mark.parametrize("lines,is_applied,is_staged", [
    (["k"], False, True), ([""], False, True), (["r", "a"], True, None), (["apply"], True, None),
    (["what", "", ], False, True), (["d", "n", "k"], False, True), (["d", "y"], False, False), (["i", "y"], True, None),
])
def test_an_interactive_run_ends_with_a_question(sandbox, lines, is_applied, is_staged):
    ending = Ending(sandbox)
    if lines == ["i", "y"]:
        ending.answer("i").child.expect(rb"\[y,n,q,\?\]\? ", timeout=8)
        ending.child.sendline("y")
    else:
        ending.answer(*lines)
    # The status is the command's own.
    assert ending.end() == 3, ending.text()
    assert (sandbox.project / "made").exists() == is_applied, ending.text()
    if "r" in lines:
        assert "+made" in ending.text()
    if is_staged is not None:
        held = sandbox.run_atoll("diff", "--json")
        assert (held.code == 0 and bool(json.loads(held.out)["changes"])) == is_staged, held


@pytest.mark.parametrize("options,env", [
    (["-q"], {}), (["--keep"], {}), (["--no-review-prompt"], {}), (["--discard"], {}),
    ([], {"ATOLL_REVIEW_PROMPT": "off"}),
    ([], {"TERM": "dumb"}),
])
def test_nothing_is_asked_where_it_was_said_before(sandbox, options, env):
    ending = Ending(sandbox, options=options, env=env)
    assert ending.end() == 3 and "rop them?" not in ending.text(), ending.text()
    assert not (sandbox.project / "made").exists()


def test_a_policy_asks_nothing_at_the_end(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: medium\nask: {review: false}\n")
    ending = Ending(sandbox, options=["-p", policy])
    assert ending.end() == 3 and "rop them?" not in ending.text(), ending.text()
    assert json.loads(sandbox.run_atoll("diff", "--json").out)["changes"]
    shown = sandbox.run_atoll("policy", "show", "-p", policy)
    assert shown.code == 0 and "review: false" in shown.out, shown
    # The project's own file: only to less.
    project = sandbox.project / ".atoll.yaml"
    sandbox.write(project, "atoll: 1\nask: {review: true}\n")
    refused = sandbox.run(["true"], policy=policy)
    assert refused.code == 125 and "nobody is asked at the end of a run there" in refused.err, refused
    sandbox.write(project, "atoll: 1\nask: {review: false}\n")
    ending = Ending(sandbox)
    assert ending.end() == 3 and "rop them?" not in ending.text(), ending.text()


def test_scripts_are_never_asked(sandbox):
    done = sandbox.run(["sh", "-c", "echo made >made"], stdin=b"a\n", env={"ATOLL_REVIEW_PROMPT": None})
    assert done.code == 0 and "rop them?" not in done.err + done.out and not (sandbox.project / "made").exists(), done
    assert sandbox.run_atoll("review", done.session, stdin=b"a\n").code == 125
    # Nothing was changed: nothing is to be decided.
    ending = Ending(sandbox, "true")
    assert ending.end() == 0 and "rop them?" not in ending.text()


def test_what_was_there_before_the_question_is_no_answer(sandbox):
    # The agent makes the terminal say something, which then stands in its input as if it was typed.
    ending = Ending(sandbox, "echo made >made")
    ending.child.expect(rb"nothing on disk has changed yet", timeout=8)
    ending.child.send("apply\napply\n")
    ending.answer("k")
    assert ending.end() == 0 and not (sandbox.project / "made").exists(), ending.text()
