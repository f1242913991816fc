# SPDX-License-Identifier: Apache-2.0
"""`atoll policy learn` under a policy that takes things away: what it masks, refuses, asks about, imitates and bounds
must not come back in the proposal, whatever the command does to make that wide."""
import pytest

from test_policy_learn import proposal

SECRETS = """atoll: 1
extends: medium
files:
  read: ["{home}/data"]
  mask: ["{home}/data/secret", sub/hidden, /etc/networks]
  ask: ["{home}/data/asked"]
  protect: [special]
"""
# Eight of one directory make it the directory, and one write makes the project a tree.
WIDEN = "cat ~/data/[0-9] >/dev/null; echo made >made; true"


@pytest.fixture
def secrets(sandbox):
    for number in range(9):
        sandbox.write(sandbox.home / "data" / str(number), "x")
    for path in (sandbox.home / "data" / "secret", sandbox.home / "data" / "asked", sandbox.project / "sub" / "hidden"):
        sandbox.write(path, "SECRET")
    return sandbox.policy(SECRETS.format(home=sandbox.home), "secrets.yaml")


def is_read(sandbox, policy, path):
    return sandbox.run(f"cat {path} >/dev/null", policy=policy).code == 0


def explained(sandbox, policy, kind, *subject):
    return sandbox.run_atoll("policy", "-p", str(policy), "explain", kind, *map(str, subject)).code


def test_what_is_masked_or_asked_about_stays_so(sandbox, secrets):
    learnt = proposal(sandbox, WIDEN, secrets)
    text = learnt.read_text()
    assert '"~/data"  #' in text and '- "."  #' in text, text
    for path in ("~/data/secret", "~/data/asked", "sub/hidden", "/etc/networks"):
        # The control: without those lines the very same proposal shows it.
        lines = text.splitlines()
        named = [line for line in lines if path.replace("~", str(sandbox.home)) in line and "{path: " in line]
        assert named, (path, text)
        without = "\n".join(line for line in lines if line not in named).replace("  ask:\n  protect:", "  protect:")
        bare = sandbox.policy(without + "\n", "bare.yaml")
        assert is_read(sandbox, bare, path) or path == "/etc/networks", path
        assert not is_read(sandbox, learnt, path), path
    assert "special" in text, text


def test_masks_that_nothing_would_show_are_not_repeated(sandbox, secrets):
    text = proposal(sandbox, "true", secrets).read_text()
    assert "data/secret" not in text and "sub/hidden" in text, text


def test_what_is_read_only_or_private_in_a_tree_stays_so(sandbox):
    sandbox.write(sandbox.project / "vendor" / "code", "old")
    sandbox.write(sandbox.project / "private" / "key", "SECRET")
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles: {read: [{path: vendor, exec: false}], "
                            "scratch: [private]}\n")
    learnt = proposal(sandbox, "echo made >made", policy)
    whole = sandbox.policy("atoll: 1\nextends: medium\n", "whole.yaml")
    script = "echo new >vendor/code"
    assert sandbox.run(script, policy=whole).code == 0 and sandbox.run(script, policy=learnt).code != 0
    assert is_read(sandbox, whole, "private/key") and not is_read(sandbox, learnt, "private/key")


def test_arguments_that_are_refused_stay_so(sandbox):
    rule = 'exec: {deny: [{argv: [git, push, "**"]}], ask: [{argv: [git, remote, "**"]}]}'
    policy = sandbox.policy(f"atoll: 1\nextends: medium\n{rule}\n")
    learnt = proposal(sandbox, "git --version", policy)
    assert explained(sandbox, learnt, "exec", "/usr/bin/git", "status") == 0
    assert explained(sandbox, learnt, "exec", "/usr/bin/git", "push", "x") == 1
    assert sandbox.run("git push x || git remote show || exit 7", policy=learnt).code == 7
    made = proposal(sandbox, "cp /usr/bin/git ./mine; ./mine --version", policy, "made.yaml")
    assert "No list of programs" in made.read_text()
    assert explained(sandbox, made, "exec", "/usr/bin/git", "push", "x") == 1


@pytest.mark.parametrize("rules, kind, subject", [
    ("default: deny, allow: [{host: api.example, ports: [443]}], "
     "deny: [{host: api.example, http: [{methods: [DELETE]}]}]", "http.request", ["DELETE", "https://api.example/x"]),
    ("default: deny, ask: [{host: api.example, ports: [443]}]", "net.connect", ["api.example:443"]),
    ("default: deny, simulate: [{host: api.example, ports: [443], answer: {status: 200, body: no}}]", "net.connect",
     ["api.example:443"]),
])
def test_hosts_are_reached_as_they_were(sandbox, rules, kind, subject):
    policy = sandbox.policy(f"atoll: 1\nextends: medium\nnetwork: {{{rules}, limits: {{total: 5MiB}}}}\n")
    learnt = proposal(sandbox, "getent hosts api.example; true", policy)
    wide = sandbox.policy("atoll: 1\nextends: none\nnetwork: {allow: [{host: api.example, ports: [443]}]}\n",
                          "wide.yaml")
    of_wide, had, has = (sandbox.run_atoll("policy", "-p", str(of), "explain", kind, *subject).out.split(":")[0]
                         for of in (wide, policy, learnt))
    # Where nobody could be asked it was refused.
    assert has == ("deny" if had == "ask" else had) != of_wide == "allow", (had, has, of_wide, learnt.read_text())
    assert "total: 5MiB" in learnt.read_text(), learnt.read_text()


def test_what_is_watched_and_looked_for_stays_so(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: medium\ndata: {outgoing: deny, canaries: [~/.aws/credentials]}\n"
                            "verify: {low: deny}\nmonitor: {baseline: true}\ntime: {rate: {exec: 600/min}}\n")
    shown = sandbox.run_atoll("policy", "-p", str(proposal(sandbox, "true", policy)), "show").out
    for line in ("outgoing: deny", "/.aws/credentials", "verify: {low: deny", "monitor: {baseline: true", "rate:"):
        assert line in shown, (line, shown)
