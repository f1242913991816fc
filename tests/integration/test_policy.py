# SPDX-License-Identifier: Apache-2.0
"""`atoll policy`: questions about policies, answered by the program that a run would use."""
import json
import os
import re
import subprocess

import pytest

from atoll import ROOT


def explain(sandbox, *words):
    result = sandbox.run_atoll("policy", "explain", "--json", *words, cwd=sandbox.project)
    return result.code, json.loads(result.out)


@pytest.mark.parametrize("words, verdict, rule", [
    (["net.connect", "pastebin.com:443"], "ask", "network.default"),
    (["file.write", "~/.ssh/authorized_keys"], "deny", "files.mask"),
    (["file.read", ".env"], "deny", "files.mask"),
    (["file.write", "src//./x"], "stage", "files.stage"),
    (["file.write", ".git/hooks/pre-commit"], "stage", "files.stage"),
    (["file.apply", "src//./x"], "allow", "files.stage"),
    (["file.apply", ".git/hooks/pre-commit"], "ask", "files.protect"),
    (["file.read", "~/.config/atoll/policy.yaml"], "deny", "builtin.state"),
    (["exec", "/usr/bin/env", "ls"], "allow", "exec.default"),
    (["env", "LD_PRELOAD"], "deny", "env.default"),
    (["net.listen", "8080"], "allow", "builtin.loopback"),
    (["net.listen", ":8080"], "allow", "builtin.loopback"),
    (["net.listen", "[::1]:8080"], "allow", "builtin.loopback"),
])
def test_explain_answers(sandbox, words, verdict, rule):
    code, answer = explain(sandbox, *words)
    assert answer["verdict"] == verdict and answer["rule"].startswith(rule), answer
    assert code == (0 if verdict in ("allow", "stage") else 1)
    assert answer["reason"]
    if rule.startswith("files."):
        assert answer["file"].endswith(".yaml") and answer["line"] > 1


@pytest.mark.parametrize("words", [
    ["net.connect", "a.bücher.dev:443"],
    ["net.connect", "A.BU\u0308CHER.dev"],
    ["net.dns", "a.xn--bcher-kva.dev"],
    ["http.request", "GET", "https://a.bücher.dev/"],
])
def test_explain_knows_a_host_as_a_rule_spells_it(sandbox, words):
    """An international name was refused as no name at all, while the rule about it was in force."""
    policy = sandbox.policy('atoll: 1\nextends: medium\nnetwork: {allow: ["*.BÜCHER.dev"]}\n')
    code, answer = explain(sandbox, "-p", str(policy), *words)
    assert (code, answer["verdict"], answer["rule"]) == (0, "allow", "network.allow[0]"), answer
    other = words[-1].replace("dev", "org")
    assert explain(sandbox, "-p", str(policy), *words[:-1], other)[1]["rule"] == "network.default"


@pytest.mark.parametrize("path, verdict, reading", [
    ("/v1/models?limit=3", "allow", None),
    ("/v1/..%2fadmin/x", "deny", "/admin/x"),
    ("/v1/../admin", "deny", "/admin"),
    ("/v1/..%2fadmin/;/..%2fv1/y", "deny", "/admin/v1/y"),
    ("/v1/..%2fadmin/x%252f..%252f..%252fv1%252fy", "deny", "/admin/x%252f..%252f..%252fv1%252fy"),
    ("/v1/group%2Fproject", "allow", None),
    ("/g/a%2fb", "allow", None),
    ("/v1/x%00", "deny", "/"),
    ("/v1/x?a=/../../../admin", "deny", "/"),
])
def test_explain_reads_a_path_as_servers_do(sandbox, path, verdict, reading):
    """What the gate refused, it allowed."""
    rule = '{host: web.test, ports: [443], http: [{methods: [GET], paths: ["/v1/**", "/g/*%2F*"]}]}'
    policy = sandbox.policy(f"atoll: 1\nextends: medium\nnetwork: {{default: deny, allow: [{rule}]}}\n")
    words = ["-p", str(policy), "http.request", "GET", f"https://web.test{path}"]
    code, answer = explain(sandbox, *words)
    assert (code, answer["verdict"]) == (0 if verdict == "allow" else 1, verdict), answer
    assert answer.get("read_as", answer.get("read_below")) == reading, answer
    shown = sandbox.run_atoll("policy", "explain", *words, cwd=sandbox.project)
    assert (f"read as: {reading}" in shown.out) == bool(reading), shown


def test_diff_shows_what_listed_requests_close(sandbox):
    rule = '{host: web.test, ports: [443], http: [{methods: [GET], paths: ["/v1/**"]}]}'
    paths = [sandbox.policy(f"atoll: 1\nextends: medium\nnetwork: {{default: allow{rules}}}\n", name)
             for name, rules in (("open.yaml", ""), ("listed.yaml", f", allow: [{rule}]"))]
    result = sandbox.run_atoll("policy", "diff", *map(str, paths), cwd=sandbox.project)
    assert result.out.splitlines() == [
        "- net.connect  web.test:22  (allow -> deny)", "- net.connect  web.test:80  (allow -> deny)",
        "- http.request others of web.test:443  (allow -> deny)"], result


def test_explain_says_what_no_policy_lets_through(sandbox):
    for url in ("https://web.test/v1/%zz", "https://web.test/a#b"):
        result = sandbox.run_atoll("policy", "explain", "http.request", "GET", url, cwd=sandbox.project)
        assert result.code == 2 and "400" in result.err, result


def test_a_path_with_half_an_escape_is_an_error(sandbox):
    """It matched nothing, in silence."""
    policy = sandbox.policy("atoll: 1\nnetwork: {allow: [{host: web.test, http: [{paths: [\"/v1/100%\"]}]}]}\n")
    result = sandbox.run_atoll("policy", "check", str(policy), cwd=sandbox.project)
    assert result.code == 1 and "%25" in result.err, result


def test_explain_of_nothing_is_usage(sandbox):
    result = sandbox.run_atoll("policy", "explain", "net.conect", "x", cwd=sandbox.project)
    assert result.code == 2 and "net.connect" in result.err
    result = sandbox.run_atoll("policy", "explain", "nothing.known", "x", cwd=sandbox.project)
    assert result.code == 2 and "file.apply, exec, net.connect, net.listen" in result.err, result
    result = sandbox.run_atoll("policy", "explain", "net.listen", "", cwd=sandbox.project)
    assert result.code == 2, result


def test_explain_names_walls_that_may_be_missing_where_they_count(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: medium\ndegrade: [netns, cgroup.cpu]\n")
    for words, is_said in ((["net.connect", "pastebin.com:443"], True), (["net.connect", "pypi.org:443"], False),
                           (["file.read", ".env"], False), (["env", "LD_PRELOAD"], False)):
        done = sandbox.run_atoll("policy", "-p", str(policy), "explain", *words, cwd=sandbox.project)
        assert ("walls that this policy lets be missing: netns\n" in done.out) is is_said, done
        assert ("lets be missing" in done.out) is is_said, done


def test_check_of_a_projects_file_says_that_it_tightens(sandbox):
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nfiles: {mask: [kept]}\n")
    done = sandbox.run_atoll("policy", "check", ".atoll.yaml", cwd=sandbox.project)
    assert done.code == 0 and done.out.startswith(".atoll.yaml only tightens"), done
    done = sandbox.run_atoll("policy", "check", "low", cwd=sandbox.project)
    assert done.code == 0 and done.out.startswith("the policy is valid: low, trust level low"), done


def test_check_says_all_errors_at_once(sandbox):
    policy = sandbox.policy("atoll: 1\nfiels: {}\ntime: {wall: 60}\n")
    result = sandbox.run_atoll("policy", "check", str(policy), cwd=sandbox.project)
    assert result.code == 1
    assert [line.split(": ")[0] for line in result.err.splitlines()] == [f"{policy}:2:1", f"{policy}:3:14"]
    as_json = sandbox.run_atoll("policy", "check", "--json", str(policy), cwd=sandbox.project)
    assert as_json.code == 1 and len(json.loads(as_json.out)["errors"]) == 2


def test_check_warns_of_listed_requests_that_another_rule_lets_through(sandbox):
    """Rules of allow add up: what the extended policy allows as a whole, a list cannot narrow."""
    text = """atoll: 1
extends: medium
network:
  allow:
    - {host: registry.npmjs.org, ports: [443], http: [{methods: [GET]}]}
    - {host: "*.sub.test", http: [{methods: [GET]}]}
    - {host: web.test, ports: [443], http: [{methods: [GET]}]}
    - {host: web.test, ports: [80]}
    - "*.test"
"""
    policy = sandbox.policy(text)
    done = sandbox.run_atoll("policy", "check", str(policy), cwd=sandbox.project)
    lines = done.out.splitlines()
    assert done.code == 0 and [line.split(": warning: ")[0] for line in lines[1:]] == \
        [f"{policy}:{line}:14" for line in (5, 6, 7)], done
    assert "medium.yaml" in lines[1] and "network.allow[4]" in lines[2] and "network.allow[4]" in lines[3], done
    fine = sandbox.policy(text.rpartition("    - ")[0].replace("registry.npmjs.org", "api.test"))
    done = sandbox.run_atoll("policy", "check", str(fine), cwd=sandbox.project)
    assert done.code == 0 and "warning" not in done.out, done


def test_check_warns_of_arguments_that_allow_any_file_of_a_name(sandbox):
    """Of rules that allow, and of no others; the policy is valid, and there is no warning of what one says to write."""
    text = """atoll: 1
extends: medium
exec:
  default: deny
  deny: [{argv: [rm, "**"]}]
  ask: [{argv: [git, push, "**"]}]
  allow:
    - /usr/bin/cat
    - {argv: [git, "**"]}
    - {program: /usr/bin/git, argv: [git, "**"]}
    - argv: ["a\\x1bJ*", x]
"""
    policy = sandbox.policy(text)
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nfiles: {mask: [kept]}\n")
    done = sandbox.run_atoll("policy", "check", str(policy), cwd=sandbox.project)
    lines = done.out.splitlines()
    assert done.code == 0 and not done.err and lines[0].startswith("the policy is valid: ") and len(lines) == 3, done
    assert lines[1] == (f'{policy}:9:7: warning: without "program" any file that is called "git" may run; name the '
                        "program by its path: {program: /usr/bin/git, argv: [...]}"), lines
    assert lines[2].startswith(f"{policy}:11:7: warning: without ") and '"a\\x1bJ*"' in lines[2], lines
    as_json = sandbox.run_atoll("policy", "check", "--json", str(policy), cwd=sandbox.project)
    result = json.loads(as_json.out)
    assert as_json.code == 0 and result["valid"] and not result["errors"], result
    assert [(one["file"], one["line"], one["column"]) for one in result["warnings"]] == [(str(policy), 9, 7),
                                                                                       (str(policy), 11, 7)], result
    on_top = sandbox.run_atoll("policy", "-p", str(policy), "check", ".atoll.yaml", cwd=sandbox.project)
    assert on_top.code == 0 and on_top.out.count(": warning: ") == 2, on_top
    wrong = sandbox.run_atoll("policy", "check", "--json", str(sandbox.policy(text + "fiels: {}\n", "wrong.yaml")))
    assert wrong.code == 1 and json.loads(wrong.out)["warnings"] == [], wrong
    shipped = sandbox.run_atoll("policy", "check", "low", cwd=sandbox.project)
    assert shipped.code == 0 and "warning" not in shipped.out, shipped


CONTRADICTIONS = """atoll: 1
extends: medium
fiels: {}
files:
  read: [/opt]
trust: {start: high, ceiling: low}
data:
  canaries: [/opt/canary]
network:
  allow:
    - {host: a.test, ports: [443], inject: {header: Authorization, secret: one}}
    - {host: a.test, ports: [443], inject: {header: Authorization, secret: two}}
"""


def test_check_says_contradictions_beside_errors_of_syntax(sandbox):
    def lines(text):
        policy = sandbox.policy(text)
        done = sandbox.run_atoll("policy", "check", str(policy), cwd=sandbox.project)
        return [int(line.removeprefix(f"{policy}:").split(":")[0]) for line in done.err.splitlines()]

    assert lines(CONTRADICTIONS) == [3, 6, 8, 12]
    assert lines(CONTRADICTIONS.replace("fiels: {}", "")) == [6, 8, 12]
    # What follows from another error alone is not said.
    assert lines(CONTRADICTIONS.replace("medium", "medim")) == [2, 3, 8, 12]


def test_what_show_prints_is_the_same_policy(sandbox):
    shown = sandbox.run_atoll("policy", "show", cwd=sandbox.project)
    assert shown.code == 0
    policy = sandbox.policy(shown.out)
    result = sandbox.run_atoll("policy", "diff", "medium", str(policy), cwd=sandbox.project)
    assert result.code == 0 and result.out == "no difference\n"


def test_a_level_allows_more_than_the_one_below_and_never_less(sandbox):
    levels = ["none", "low", "medium", "high", "full"]
    for low, high in zip(levels, levels[1:]):
        result = sandbox.run_atoll("policy", "diff", "--json", low, high, cwd=sandbox.project)
        answer = json.loads(result.out)
        # What is written in place is refused outright where what is staged only needs a person's explicit yes.
        assert answer["allows"] and all(change["from"] in ("stage", "ask") for change in answer["denies"]), answer


def test_a_project_that_widens_is_refused_with_the_line(sandbox):
    sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nfiles:\n  read: [.]\n  write: [/etc]\n")
    result = sandbox.run_atoll("policy", "show", cwd=sandbox.project)
    assert result.code == 1 and f"{sandbox.project}/.atoll.yaml:4:11" in result.err and "widens" in result.err


def test_a_pipe_in_the_place_of_a_policy_holds_nothing_up(sandbox):
    os.mkfifo(sandbox.project / ".atoll.yaml")
    result = sandbox.run_atoll("policy", "show", cwd=sandbox.project, timeout=10)
    assert result.code == 1 and ".atoll.yaml" in result.err


def test_the_compiler_confines_itself(sandbox):
    """The filter is loaded before the first policy is opened."""
    trace = sandbox.base / "trace"
    command = ["strace", "-o", str(trace), str(sandbox.programs.atoll.parent / "atoll-policy"), "show",
               "--project", str(sandbox.project), "--home", str(sandbox.home)]
    if subprocess.run(["sh", "-c", "command -v strace"], capture_output=True, check=False).returncode:
        pytest.skip("strace is not installed")
    assert sandbox.run_outside(command).code == 0
    lines = trace.read_text().splitlines()
    filtered = next(i for i, line in enumerate(lines) if "SECCOMP_SET_MODE_FILTER" in line and line.endswith("= 0"))
    opened = next(i for i, line in enumerate(lines) if ".yaml" in line and line.startswith("open"))
    assert filtered < opened
    assert any("PR_SET_NO_NEW_PRIVS" in line for line in lines[:filtered])


def examples_of_the_page():
    """(first line, text) of each policy in atoll-policy(5); a part of one gets what a policy begins with."""
    page = (ROOT / "doc" / "man" / "atoll-policy.5.scd").read_text(encoding="utf-8")
    for text in re.findall(r"^```\n(.*?)^```", page, re.S | re.M):
        if not text.startswith("$"):
            begin = "" if "atoll: 1" in text else "atoll: 1\n"
            yield begin + ("" if "extends:" in text else "extends: medium\n") + text


@pytest.mark.parametrize("number", range(len(list(examples_of_the_page()))))
def test_the_examples_of_the_man_page_are_correct_policies(sandbox, number):
    text = list(examples_of_the_page())[number]
    done = sandbox.run_atoll("policy", "check", sandbox.policy(text, "example.yaml"))
    assert done.code == 0 and "is valid" in done.out, (text, done)
