# SPDX-License-Identifier: Apache-2.0
"""tools/count-results: what failed is never counted as passed, and nothing is never counted as good."""
import json

import pytest
from conftest import load

CMOCKA = "[==========] 5 test(s) run.\n[  PASSED  ] {} test(s).\n"


@pytest.fixture
def count(tmp_path, monkeypatch):
    monkeypatch.delenv("ATOLL_TESTS_MUST_RUN", raising=False)
    (tmp_path / "log").write_text("first\nlast words\n")

    def run(code=0, junit=None, meson=None):
        if junit is not None:
            (tmp_path / "junit.xml").write_text(junit)
        if meson is not None:
            (tmp_path / "meson.json").write_text("".join(json.dumps(test) + "\n" for test in meson))
        counts = load("count-results").count_suite("suite", code, str(tmp_path))
        return (counts.passed, counts.failed, counts.skipped), (tmp_path / "summary").read_text()

    return run


def test_exit_code_alone(count):
    assert count(0)[0] == (1, 0, 0)
    counts, summary = count(2)
    assert counts == (0, 1, 0) and "exit code 2" in summary and "last words" in summary


def test_junit(count):
    counts, summary = count(1, junit='<testsuites><testsuite><testcase classname="a" name="good"/>'
                            '<testcase classname="a" name="bad"><failure message="x"/></testcase>'
                            '<testcase classname="a" name="broken"><error/></testcase>'
                            '<testcase classname="a" name="left"><skipped message="no node"/></testcase>'
                            "</testsuite></testsuites>")
    assert counts == (1, 2, 1)
    assert "FAILED a::bad" in summary and "skipped 1: no node" in summary


def test_a_known_hole_is_told_and_left_out_nowhere(count, monkeypatch):
    monkeypatch.setenv("ATOLL_TESTS_MUST_RUN", "1")
    counts, summary = count(0, junit='<testsuites><testsuite><testcase classname="a" name="good"/>'
                            '<testcase classname="a" '
                            'name="hole"><skipped type="pytest.xfail" message="SECURITY.md: a pipe"/></testcase>'
                            "</testsuite></testsuites>")
    assert counts == (1, 0, 1) and "skipped 1: SECURITY.md: a pipe" in summary


def test_cmocka_cases_are_counted(count):
    meson = [{"name": "one", "result": "OK", "stdout": CMOCKA.format(5)},
             {"name": "two", "result": "FAIL", "stderr": CMOCKA.format(3)
              + "[  FAILED  ] 2 test(s), listed below:\n[  FAILED  ] first_case\n[  FAILED  ] second_case\n"},
             {"name": "plain", "result": "OK", "stdout": ""}]
    counts, summary = count(1, meson=meson)
    assert counts == (9, 2, 0)
    assert "two (FAIL) first_case second_case" in summary


def test_a_crash_is_one_failure(count):
    assert count(1, meson=[{"name": "one", "result": "FAIL", "stdout": "[ RUN      ] x\n"}])[0] == (0, 1, 0)
    assert count(1, meson=[{"name": "one", "result": "TIMEOUT", "stdout": CMOCKA.format(5)}])[0] == (5, 1, 0)


def test_skips_of_cmocka(count):
    output = CMOCKA.format(3) + "[  SKIPPED ] 2 test(s), listed below:\n"
    assert count(0, meson=[{"name": "one", "result": "OK", "stdout": output}])[0] == (3, 0, 2)
    assert count(0, meson=[{"name": "one", "result": "SKIP", "stdout": "needs root"}])[0] == (0, 0, 1)


def test_skips_are_failures_where_all_must_run(count, monkeypatch):
    monkeypatch.setenv("ATOLL_TESTS_MUST_RUN", "1")
    assert count(0, meson=[{"name": "one", "result": "SKIP", "stdout": "needs root"}])[0] == (0, 1, 0)


@pytest.mark.parametrize("arguments", [
    {"junit": "<testsuites/>"}, {"meson": []}, {"junit": "<testsuites><broken"}, {"meson": [{"no": "name"}]},
])
def test_nothing_is_a_failure(count, arguments):
    assert count(0, **arguments)[0][1] == 1


def test_all_good_but_the_runner_failed(count):
    assert count(3, junit='<testsuite><testcase classname="a" name="b"/></testsuite>')[0] == (1, 1, 0)
