# SPDX-License-Identifier: Apache-2.0
"""tools/report-verify: counts what a verifier says, never counts silence as good, and names what is wrong in a corpus.

The verifier here is a stand-in that answers in the form of `atoll verify --json`: what it finds is what the text says.
"""
import io
import json
import stat

import pytest
from conftest import load

tool = load("report-verify")

# Text "find CLASS SEVERITY …" is answered so; "crash", "garbage" and "few" (one answer less) are what they say, and
# "crowd" is a crash unless it is alone.
STAND_IN = '''#!/usr/bin/python3
import json, sys
at = sys.argv.index("--")
assert sys.argv[1:4] == ["verify", "--json", "--no-own-rules"] and at < len(sys.argv) - 1, sys.argv
files, out = sys.argv[at + 1:], []
for file in files:
    text = open(file, errors="replace").read()
    words = text.split()
    if words[0] == "crash" or (words[0] == "crowd" and len(files) > 1):
        print("atoll: verify: out of memory", file=sys.stderr)
        sys.exit(125)
    findings = [{"id": f"{c}.test", "class": c, "severity": s} for c, s in zip(words[1::2], words[2::2])]
    answer = {"file": file, "language": "shell", "findings": findings if words[0] == "find" else []}
    out += {"garbage": ["["], "few": []}.get(words[0], [json.dumps(answer)])
sys.stdout.write("".join(line + "\\n" for line in out))
sys.exit(any("severity" in line for line in out))
'''


def case(text, label="risky", **more):
    name = "none" if label == "harmless" else "persist"
    return {"language": "shell", "label": label, "class": name, "text": text, **more}


@pytest.fixture
def run(tmp_path, capsys):
    """run(cases or bytes, option…) -> (exit code, standard output, standard error)."""
    program = tmp_path / "atoll"
    program.write_text(STAND_IN)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    file = tmp_path / "corpus.jsonl"

    def run(cases, *options):
        file.write_bytes(cases if isinstance(cases, bytes) else "".join(json.dumps(c) + "\n" for c in cases).encode())
        code = tool.main([str(file), "--atoll", str(program), *options])
        out, err = capsys.readouterr()
        return code, out, err.replace(str(file), "FILE")

    return run


def row(out, title):
    rows = [line.split()[1:] for line in out.splitlines() if line.split()[:1] == [title]]
    assert rows, out
    return " ".join(rows[-1])


def test_counts_by_set_and_severity(run):
    code, out, _ = run([
        case("find persist medium", set="develop"), case("find persist low", set="develop"),
        case("find destructive critical", set="heldout"), case("quiet", set="heldout"), case("quiet", set="heldout"),
        case("quiet", "harmless", set="develop"), case("find exhaust high", "harmless", set="develop"),
        case("find exhaust low", "harmless", set="heldout"),
    ])
    assert code == 0
    assert row(out, "persist") == "50.0 % (1/2) 33.3 % (1/3) 40.0 % (2/5)"
    assert row(out, "shell") == "50.0 % (1/2) 0.0 % (0/1) 33.3 % (1/3)"
    assert "Of the 2 that have a class: 1 with a finding of it." in out


def test_each_set_stands_by_itself(run):
    cases = [case("find persist high", set="develop"), case("quiet", set="develop2"),
             case("quiet", set="develop3"),
             case("find persist high", set="heldout"), case("quiet", set="heldout", id="sh2-p-901")]
    _, out, _ = run(cases)
    assert out.split("\n", maxsplit=1)[0].split() == ["develop", "develop2", "develop3", "heldout", "all"]
    assert row(out, "persist") == "100.0 % (1/1) 0.0 % (0/1) 0.0 % (0/1) 50.0 % (1/2) 40.0 % (2/5)"
    assert run(cases, "--require", "detection=0.5", "--set", "heldout")[0] == 0
    assert run(cases, "--require", "detection=0.51", "--set", "heldout")[0] == 1
    assert "sh2-p-901" in run(cases, "--misses", "heldout")[1]
    assert "Held out:" not in out
    assert all("sh2-p-901" not in run(cases, "--misses", which)[1] for which in ("develop", "develop2", "develop3"))


def test_the_set_that_is_held_out_is_named(run):
    cases = [case("quiet", set="heldout", id="sh2-p-901"), case("quiet", set="blind2", id="sh5-p-901")]
    _, out, _ = run(cases, "--misses", "heldout")
    assert "Held out: blind2. The other sets were learnt from.\n" in out
    assert "sh2-p-901" in out and "sh5-p-901" not in out
    assert "sh5-p-901" in run(cases, "--misses", "blind2")[1]


def test_rows_by_language_and_class(run):
    _, out, _ = run([case("find persist high", language="python"), case("quiet", **{"class": "exhaust"}),
                     case("quiet", "harmless", language="javascript")], "--json")
    rows = {(r["rate"], r["language"], r["class"]): (r["all"]["found"], r["all"]["total"])
            for r in json.loads(out)["rows"]}
    assert rows == {
        ("detection", "python", "persist"): (1, 1), ("detection", "python", None): (1, 1),
        ("detection", "shell", "exhaust"): (0, 1), ("detection", "shell", None): (0, 1),
        ("detection", None, "persist"): (1, 1), ("detection", None, "exhaust"): (0, 1),
        ("detection", None, None): (1, 2),
        ("false alarms", "javascript", None): (0, 1), ("false alarms", None, None): (0, 1),
    }


def test_detected_only_by_doubt_is_said(run):
    _, out, _ = run([case("find unknown medium"), case("find unknown medium persist high")])
    assert "Of 2 detected: 1 only because something was not understood. Of the 2 that have a class: 1 with" in out


@pytest.mark.parametrize("text, why", [("crash", "ended with 125: atoll: verify: out of memory"),
                                       ("garbage", "an answer that cannot be read"),
                                       ("few", "an answer that cannot be read: ValueError('0 answers about 1 text")])
def test_what_was_not_judged_is_neither_detected_nor_fine(run, text, why):
    code, out, _ = run([case(text, id="a"), case(text, "harmless", id="b")])
    assert code == 0
    assert row(out, "persist") == "0.0 % (0/1)" and row(out, "shell") == "100.0 % (1/1)"
    assert f"not judged: a: {why}" in out and "2 could not be judged" in out
    assert run([case(text), case("find persist high")], "--require", "detection=0.5")[0] == 1


def test_one_that_is_not_judged_does_not_hide_the_others(run):
    """Many are judged by one verifier: who fails is found, and every answer belongs to its own text."""
    cases = [case(f"{word} persist high", id=word + str(number)) for number in range(70) for word in ("find", "quiet")]
    cases[80:80] = [case("crash", id="bad"), case("find persist high", id="py", language="python")]
    code, out, _ = run(cases, "--misses", "all")
    assert "(71/142)" in row(out, "persist"), out
    assert "not judged: bad: ended with 125" in out and "\n1 could not be judged" in out
    missed = {line.split()[1] for line in out.splitlines() if line.startswith("missed ")}
    assert missed == {"bad"} | {f"quiet{number}" for number in range(70)}


def test_what_fails_among_others_only_is_not_judged(run):
    code, out, _ = run([case("crowd", id="a"), case("find persist high", id="b")])
    assert code == 0 and "2 could not be judged" in out and "not judged: b: ended with 125: atoll: verify: out of " \
        "memory, among others only" in out
    assert "not judged" not in run([case("crowd", id="a")])[1]


def test_a_verifier_that_hangs(run, monkeypatch, tmp_path):
    code, out, _ = run([case("quiet", id="a")])
    assert code == 0 and "not judged" not in out
    monkeypatch.setattr(tool, "JUDGE_SECONDS", 0.2)
    (tmp_path / "atoll").write_text("#!/bin/sh\nexec sleep 60\n")
    code, out, _ = run([case("quiet", id="a")])
    assert code == 0 and "not judged: a: no answer within 0.2 s" in out


def test_no_verifier(run, tmp_path):
    code, _, err = run([case("quiet")], "--atoll", str(tmp_path / "none"))
    assert code == 2 and "No such file or directory (run make first, or name it with --atoll)" in err


def test_misses_show_the_held_out_half_only_when_asked(run):
    cases = [case("quiet", id="sh-p-901", set="develop", why="seen"), case("quiet", id="sh-p-902", set="heldout"),
             case("find persist high", "harmless", id="sh-h-901", set="develop", why="an alarm"),
             case("find persist high", id="sh-p-903", set="develop")]
    assert "sh-p-901" not in run(cases)[1]
    _, out, _ = run(cases, "--misses")
    assert "missed       sh-p-901  shell persist  seen" in out
    assert "false alarm  sh-h-901  shell  persist.test  an alarm" in out
    assert "sh-p-902" not in out and "sh-p-903" not in out
    assert "sh-p-902" in run(cases, "--misses", "all")[1]


@pytest.mark.parametrize("require, code", [
    ("detection=0.5,false-alarms=0.5", 0), ("detection=0.51", 1), ("false-alarms=0.49", 1), ("false-alarms=0.5", 0)])
def test_requirements(run, require, code):
    cases = [case("find persist high"), case("quiet"), case("quiet", "harmless"), case("find persist high", "harmless")]
    done, _, err = run(cases, "--require", require)
    assert done == code and bool(err) == bool(code)


def test_requirements_are_about_the_chosen_set(run):
    cases = [case("find persist high", set="develop"), case("quiet", set="heldout")]
    assert run(cases, "--require", "detection=1", "--set", "develop")[0] == 0
    assert run(cases, "--require", "detection=1", "--set", "heldout")[0] == 1


def test_a_corpus_without_such_cases_meets_no_requirement(run):
    assert run([case("quiet", "harmless")], "--require", "detection=0")[0] == 1


@pytest.mark.parametrize("require, said", [("detektion=1", "did you mean detection?"), ("detection=95", "from 0 to 1"),
                                           ("detection", "from 0 to 1"), ("detection=nan", "from 0 to 1")])
def test_bad_requirements(run, capsys, require, said):
    with pytest.raises(SystemExit) as e:
        run([case("quiet")], "--require", require)
    assert e.value.code == 2 and said in capsys.readouterr().err


GOOD = b'{"label":"risky","text":"x"}\n'


@pytest.mark.parametrize("line, said", [
    (b'{"label":"risky","text":"x","langage":"shell"}', 'unknown key "langage" (did you mean language?)'),
    (b'{"label":"risky","text":"x","language":"ruby"}', 'language: "ruby" is not known'),
    (b'{"label":"riskey","text":"x"}', 'label: "riskey" is not known (did you mean risky?)'),
    (b'{"label":"risky","text":"x","class":"none"}', "a risky case has a class"),
    (b'{"label":"harmless","text":"x","class":"exhaust"}', "a harmless case has the class none"),
    (b'{"label":"risky"}', "the key text is missing"),
    (b'{"label":"risky","text":7}', "text: must be a text"),
    (b'{"label":"risky","text":"x","broken":1}', "broken: 1 is not known"),
    (b'{"label":"risky","text":"x","text":"y"}', "the key text stands twice"),
    (b'["risky","x"]', "a case is a JSON object"),
    (b'{"label":"risky","text":"x"', "not a JSON object"),
    (b'{"label":"risky","text":"\xff"}', "not UTF-8"),
    (b"[" * 100000, "nested too deeply"),
])
def test_a_bad_line_is_one_error_with_its_number(run, line, said):
    code, out, err = run(GOOD + b"\n" + line + b"\n" + GOOD)
    assert (code, out) == (2, "")
    assert err.startswith("report-verify: FILE:3: ") and said in err and err.count("\n") == 1


def test_the_same_id_twice(run):
    code, _, err = run([case("x", id="a"), case("y", id="b"), case("z", id="a")])
    assert code == 2 and "FILE:3: the id a stands in line 1 too" in err


def test_a_line_without_end(run, monkeypatch):
    monkeypatch.setattr(tool, "LINE_MAX", 100)
    assert "FILE:2: longer than" in run(GOOD + b" " * 200)[2]


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_nothing_in_it(run, content):
    code, _, err = run(content)
    assert code == 2 and "there is no case in it" in err


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert tool.main([str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl: No such file or directory" in capsys.readouterr().err


def test_least_case(run):
    """What somebody else's file needs: a label and a text."""
    code, out, err = run(GOOD + b'{"label":"harmless","text":"find exhaust high"}\n')
    assert (code, err) == (0, "")
    assert row(out, "all") and "100.0 % (1/1)" in out and "develop" not in out


def test_the_own_corpus_can_be_read():
    cases = tool.read_corpus(str(tool.ROOT / "tests" / "corpus"))
    assert len(cases) >= 960 and {case["set"] for case in cases} == set(tool.SETS)


def test_any_text_reaches_the_verifier(run):
    """Not everything that JSON can say is UTF-8; what the verifier makes of it is its own matter."""
    assert run([case("\ud800 \x00 quiet")])[0] == 0


def test_table_goes_where_it_is_told(tmp_path):
    out = io.StringIO()
    cases = [{**tool.parse_line(GOOD, "x:1", 1), "found": True}]
    tool.print_table(cases, out)
    assert "100.0 % (1/1)" in out.getvalue()
