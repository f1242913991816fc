# SPDX-License-Identifier: Apache-2.0
"""tools/bench-verify: what it reads out of checkouts, how it counts, and that it shows nothing of the other half."""
import hashlib
import io
import json
import tarfile
import textwrap

import pytest
from conftest import load

tool = load("bench-verify")
sources = tool.verify_sources


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))


def texts(cases):
    return [(case.label, case.language, case.text) for case in cases]


def test_redcode_has_its_label_from_the_scenario(tmp_path):
    for number, folder in ((1, "py"), (2, "py"), (3, "bash")):
        write(tmp_path, f"dataset/RedCode-Exec/{folder}2text_dataset_json/index{number}_30_codes_full.json",
              json.dumps([{"Code": f"x = {number}"}]))
    assert sorted(texts(sources.redcode(tmp_path))) == [
        ("edge", "python", "x = 2"), ("harmless", "shell", "x = 3"), ("risky", "python", "x = 1")]


def test_atomic_takes_tests_for_linux_with_their_defaults(tmp_path):
    write(tmp_path, "atomics/Indexes/Indexes-CSV/linux-index.csv",
          "Tactic,Technique #,Test GUID\nimpact,T1,a\ndiscovery,T1,b\n")
    write(tmp_path, "atomics/T1/T1.yaml", """
        atomic_tests:
        - {auto_generated_guid: a, supported_platforms: [linux], executor: {name: sh, command: "rm #{what}"},
           input_arguments: {what: {default: /etc/x}}}
        - {auto_generated_guid: b, supported_platforms: [linux, macos], executor: {name: bash, command: "uname"}}
        - {auto_generated_guid: c, supported_platforms: [windows], executor: {name: powershell, command: "dir"}}
        """)
    assert texts(sources.atomic(tmp_path)) == [("risky", "shell", "bash -c 'rm /etc/x'\n"),
                                               ("edge", "shell", "bash -c uname\n")]


def test_gtfobins_with_sudo(tmp_path):
    write(tmp_path, "_gtfobins/x", """
        functions:
          shell: [{code: x sh, contexts: {sudo: null, unprivileged: null}}]
          reverse-shell: [{code: x 1.2.3.4}]
        """)
    assert texts(sources.gtfobins(tmp_path)) == [
        ("edge", "shell", "bash -c 'x sh'\n"), ("edge", "shell", "bash -c 'sudo x sh'\n"),
        ("risky", "shell", "bash -c 'x 1.2.3.4'\n")]


def test_sheets_of_shells_are_read_block_by_block_and_counted_across_sources(tmp_path):
    write(tmp_path, "docs/shell-reverse-cheatsheet.md", """
        ## Reverse Shell

        ```bash
        a

        b
        ```

        ```java
        c
        ```

        ## Spawn TTY Shell

        ```bash
        d
        ```
        """)
    cases = list(sources.cheatsheets(tmp_path))
    assert texts(cases) == [("risky", "shell", "bash -c a\n"), ("risky", "shell", "bash -c 'b\n'\n")]
    rows = tool.rows([tool.Judged(case, tool.digest_of(case.text), found=case.text == "bash -c a\n") for case in cases],
                     False)
    assert [(row["of"], row["n"], row["found"]["count"]) for row in rows][-1] == ("of all: shells", 2, 1)


def test_tldr_and_nl2bash(tmp_path):
    write(tmp_path, "pages/common/x.md", "# x\n\n- Do it:\n\n`x {{[-a|--all]}} {{file|url}} {{y}}`\n")
    write(tmp_path, "data/bash/all.cm", "ls -l\n")
    assert texts(sources.tldr(tmp_path)) == [("harmless", "shell", "bash -c 'x --all file y'\n")]
    assert texts(sources.nl2bash(tmp_path)) == [("harmless", "shell", "bash -c 'ls -l'\n")]


def test_a_project(tmp_path):
    write(tmp_path, ".github/workflows/ci.yml", """
        jobs: {x: {steps: [{run: "make ${{ env.WHAT }} ${{ matrix.x }}"}, {run: dir, shell: pwsh}, {uses: y}]}}
        """)
    write(tmp_path, "Makefile", "all:\n\t@echo $(X) $$HOME \\\n\t  more\n\t# no\n")
    write(tmp_path, "Dockerfile", "FROM x\nRUN --mount=type=cache,target=/y a && \\\n    b\nRUN [\"c\"]\n")
    write(tmp_path, "package.json", '{"scripts": {"test": "node t.js"}}')
    write(tmp_path, "node_modules/y/package.json", '{"scripts": {"test": "not mine"}}')
    assert [text for _, _, text in texts(sources.project(tmp_path))] == [
        sources.as_command(text) for text in ("make ${WHAT} value", "echo ${X} $HOME \\\n\t  more", "a && \\\n    b",
                                              "node t.js")]


def test_packages_are_read_from_archives_and_folders(tmp_path):
    with tarfile.open(tmp_path / "a-1.tar.gz", "w:gz") as archive:
        for name, content in (("a/setup.py", b"x = 1"), ("a/data.bin", b"\0"), ("a/package.json",
                              b'{"scripts": {"install": "node x"}}')):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    (tmp_path / "broken.zip").write_bytes(b"PK\3\4 no")
    write(tmp_path, "b/setup.py", "y = 2\n")
    cases = list(sources.malicious(tmp_path))
    assert [(case.package, case.language, case.label) for case in cases] == [
        ("a-1.tar.gz", "python", "risky"), ("a-1.tar.gz", "shell", "risky"), ("b", "python", "risky")]


@pytest.mark.parametrize("name", ["redcode", "atomic", "gtfobins", "nl2bash", "tldr", "malicious"])
def test_a_directory_of_something_else_is_said(tmp_path, name, capsys):
    assert tool.main([f"{name}={tmp_path}"]) == 2
    assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize("word", ["redcode", "unknown=/tmp", "redcode=/no/such/place"])
def test_wrong_words_are_said(word, capsys):
    assert tool.main([word]) == 2
    assert "bench-verify: " in capsys.readouterr().err


@pytest.mark.parametrize("found, total, low, high",
                         [(0, 100, 0, 0.0370), (50, 100, 0.4038, 0.5962), (100, 100, 0.963, 1)])
def test_bounds(found, total, low, high):
    assert tool.wilson(found, total) == pytest.approx((low, high), abs=1e-4)


def finding(of="exfiltrate", severity="critical", confidence="certain"):
    return {"class": of, "severity": severity, "confidence": confidence, "id": f"{of}.x"}


@pytest.mark.parametrize("level, one, action", [
    ("medium", finding(), "ask"), ("medium", finding(confidence="likely"), "note"),
    ("medium", finding("destructive"), "note"),
    ("medium", {**finding("destructive"), "leaves": True}, "ask"), ("medium", finding(severity="low"), "off"),
    ("low", finding(), "deny"), ("low", finding("unknown", "medium"), "ask"),
    ("none", finding(severity="medium"), "ask"),
])
def test_a_level_does_what_its_policy_says(level, one, action):
    assert tool.ACTIONS[tool.Level(level).action(one)] == action


class Said:
    """Stands for atoll: finds what has "bad" in it."""

    def judge(self, cases):
        return [({"findings": [finding()] if "bad" in case["text"] else [], "computed_us": 3000}, None)
                for case in cases]


def judged(*cases):
    return tool.judge(Said(), tool.Level("medium"), list(cases), 1)


def test_a_package_is_found_where_one_file_is():
    rows = {row["of"]: row for row in tool.rows(judged(
        sources.Case("p", "python", "python", "risky", "good", "a"),
        sources.Case("p", "python", "python", "risky", "bad", "a"),
        sources.Case("p", "python", "python", "risky", "good", "b")), False)}
    assert rows["all"]["n"] == 2 and rows["all"]["found"]["count"] == 1 and rows["all"]["asked"]["per_1000"] == 500


def test_misses_of_the_other_half_are_not_shown():
    out, halves = io.StringIO(), {0: [], 1: []}
    for number in range(40):
        text = f"good {number}"
        halves[hashlib.sha256(text.encode()).digest()[0] % 2].append(text)
    tool.print_misses(judged(*(sources.Case("x", "y", "shell", "risky", text) for half in halves.values()
                               for text in half)), out)
    assert [json.loads(line)["text"] for line in out.getvalue().splitlines()] == halves[0]
    assert halves[1]


def test_equal_texts_count_once():
    case = sources.Case("x", "y", "shell", "risky", "same")
    assert len(tool.gather([case, case, sources.Case("z", "y", "shell", "risky", "same")])) == 1
