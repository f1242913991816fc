# SPDX-License-Identifier: Apache-2.0
"""tests/corpus: its form, its numbers, and that every text is what its language can parse. Nothing of it is run."""
import collections
import hashlib
import json
import pathlib
import re
import subprocess
import warnings

import pytest

CORPUS = pathlib.Path(__file__).resolve().parents[2] / "corpus"
PREFIX = {"shell": "sh", "python": "py", "javascript": "js"}
LETTER = {"destructive": "d", "exfiltrate": "e", "persist": "p", "privilege": "v", "exhaust": "x", "obfuscate": "o",
          "none": "h"}
KEYS = ["id", "language", "label", "class", "set", "text", "why"]
# What follows the label in the name of a file -> how many cases of each label such files have at least. Two are the
# odd and the even numbers of what was written without the rules; the last two were written so later, each whole.
WANTED = {"": 480, "-develop3": 210, "-heldout": 210, "-blind": 180, "-blind2": 120}
HALVES = {"-develop3": 1, "-heldout": 0}
# What follows the language in the ids of such files, where it is not nothing.
GENERATION = {"-develop3": "2", "-heldout": "2", "-blind": "3", "-develop4": "4", "-blind2": "5"}
# Written together with rules, in as many files and cases as these needed.
GROWING = ("-develop4",)
# Those with as many cases of each language; in the others half is shell.
EVEN = ("-blind", "-blind2")
# Those whose harmless cases are drawn from what is run, and not for being near: how many of them only look risky.
DRAWN = {"-blind2": 40}
LABELS = ("risky", "harmless")
LONG_LINES = 10
# Of any files: how many cases of each label are long, how many only look risky, how many are of each class.
WANTED_LONG, WANTED_NEAR_MISSES, WANTED_A_CLASS = 25, 60, 20

# Reads [[id, text], …] and prints the ids that are neither a script nor a module. The constructors only parse.
PARSE_JAVASCRIPT = """
const vm = require('vm'), { wrap } = require('module');
const cases = JSON.parse(require('fs').readFileSync(0));
const parses = (make) => { try { make(); return true; } catch (e) { return false; } };
const bad = cases.filter(([, text]) => {
  const code = text.replace(/^#!.*/, '');
  return !parses(() => new vm.Script(wrap(code))) && !parses(() => new vm.SourceTextModule(code));
});
console.log(JSON.stringify(bad.map(([id]) => id)));
"""


def files():
    return sorted(CORPUS.glob("*.jsonl"))


def part(path):
    """"-heldout" of shell-risky-heldout, nothing of shell-risky."""
    return "".join(f"-{name}" for name in path.stem.split("-")[2:])


def read(path):
    with open(path, encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


def cases(of_part=None):
    return [case for path in files() if of_part in (None, part(path)) for case in read(path)]


def of(language):
    return [case for case in cases() if case["language"] == language]


def lines(case):
    return len(case["text"].splitlines())


def parses_as_shell(text):
    done = subprocess.run(["bash", "--norc", "--noprofile", "-n", "/dev/stdin"], input=text.encode(),
                          capture_output=True, check=False)
    return done.returncode == 0 and not done.stderr


def parses_as_python(text):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "case", "exec", dont_inherit=True)
        return True
    except (SyntaxError, ValueError):
        return False


def unparsed_javascript(rows):
    texts = json.dumps([[case["id"], case["text"]] for case in rows])
    done = subprocess.run(["node", "--no-warnings", "--experimental-vm-modules", "-e", PARSE_JAVASCRIPT], input=texts,
                          capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def broken(rows):
    return {case["id"] for case in rows if case.get("broken")}


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_form(path):
    language, label = path.stem.split("-")[:2]
    prefix = PREFIX[language] + GENERATION.get(part(path), "")
    for number, case in enumerate(read(path), 1):
        where = f"{path.name}:{number}"
        keys = KEYS + ["broken"] if "broken" in case else KEYS
        assert list(case) == keys, where
        assert case.get("broken", True) is True, where
        assert all(isinstance(case[key], str) and case[key].strip() for key in KEYS), where
        assert (case["language"], case["label"]) == (language, label), where
        assert case["class"] in LETTER and (case["class"] == "none") == (label == "harmless"), where
        assert re.fullmatch(f"{prefix}-{LETTER[case['class']]}-[0-9]{{3}}", case["id"]), where
        assert "\n" not in case["why"], where


def test_there_is_one_file_per_language_label_and_part():
    wanted = {f"{p}-{label}{name}" for p in PREFIX for label in LABELS for name in WANTED}
    assert {path.stem for path in files() if part(path) not in GROWING} == wanted


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_with_rules_is_a_set_of_its_own(name):
    assert {case["set"] for case in cases(name)} == {name[1:]}


@pytest.mark.parametrize("key", ["id", "text"])
def test_nothing_stands_twice(key):
    seen = collections.Counter(" ".join(case[key].split()) for case in cases())
    assert [value for value, count in seen.items() if count > 1] == []


def test_the_half_is_drawn_by_the_id():
    """Of what rules were written with. What is held out has files of its own."""
    for case in cases(""):
        odd = hashlib.sha256(case["id"].encode()).digest()[0] & 1
        assert case["set"] == ("develop2" if odd else "develop"), case["id"]


@pytest.mark.parametrize("name", HALVES)
def test_the_half_that_is_held_out_is_drawn_by_the_number(name):
    for case in cases(name):
        assert case["set"] == name[1:]
        assert int(case["id"].rsplit("-", 1)[1]) % 2 == HALVES[name], case["id"]


@pytest.mark.parametrize("name", EVEN)
def test_what_is_blind_is_of_no_other_set(name):
    assert {case["set"] for case in cases(name)} == {name[1:]}
    assert not [case["id"] for other in WANTED if other != name for case in cases(other) if case["set"] == name[1:]]


@pytest.mark.parametrize("path", [path for path in files() if not part(path)], ids=lambda path: path.stem)
def test_each_half_has_about_half_of_each_file(path):
    rows = read(path)
    share = sum(case["set"] == "develop2" for case in rows) / len(rows)
    assert 0.4 < share < 0.6


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("name", WANTED)
def test_numbers_of_a_label(name, label):
    rows = [case for case in cases(name) if case["label"] == label]
    assert len(rows) >= WANTED[name]
    assert sum(lines(case) > LONG_LINES for case in rows) >= WANTED_LONG
    shares = collections.Counter(case["language"] for case in rows)
    shell, least = (3, 3) if name in EVEN else (2, 4)
    assert shares["shell"] >= WANTED[name] / shell and min(shares.values()) >= WANTED[name] / least


@pytest.mark.parametrize("name", WANTED)
def test_numbers_of_classes_and_near_misses(name):
    count = collections.Counter(case["class"] for case in cases(name))
    assert min(count[letter] for letter in LETTER) >= WANTED_A_CLASS
    assert sum(case["why"].startswith("near miss: ") for case in cases(name)) >= DRAWN.get(name, WANTED_NEAR_MISSES)


@pytest.mark.parametrize("language, parses", [("shell", parses_as_shell), ("python", parses_as_python)],
                         ids=["shell", "python"])
def test_texts_parse(language, parses):
    rows = of(language)
    assert {case["id"] for case in rows if not parses(case["text"])} == broken(rows)


@pytest.mark.needs("node")
def test_texts_parse_as_javascript():
    rows = of("javascript")
    assert unparsed_javascript(rows) == broken(rows)


def test_hosts_are_those_kept_for_examples():
    """A text names no machine that somebody could have: no address outside of the documentation's networks."""
    kept = re.compile(r"127\.|10\.0\.0\.|0\.0\.0\.0|169\.254\.|192\.0\.2\.|198\.51\.100\.|203\.0\.113")
    for case in cases():
        for address in re.findall(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])", case["text"]):
            is_address = all(int(part) < 256 for part in address.split("."))
            assert not is_address or kept.match(address), f"{case['id']}: {address}"
