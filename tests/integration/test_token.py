# SPDX-License-Identifier: Apache-2.0
"""Capability tokens from the command line: minted, narrowed, presented; and refused where they must be, before anything
runs."""
import json
import re
import subprocess

import pytest

TEXT = re.compile(r"^atoll1\.[A-Za-z0-9_-]+\n$")


def mint(sandbox, *options, env=None):
    done = sandbox.run_atoll("token", "mint", *options, env=env)
    assert done.code == 0 and TEXT.match(done.out), done
    return done.out


def told(sandbox, token, verb="show", *options):
    done = sandbox.run_atoll("token", verb, "--json", *options, "-", stdin=token.encode())
    assert done.code == 0, done
    return json.loads(done.out)


def refused(sandbox, token, reason, *place):
    """By verify (where place says), and by a run, which begins nothing."""
    path = sandbox.write(sandbox.base / "refused-token", token, 0o600)
    done = sandbox.run_atoll("token", "verify", *place, str(path))
    assert done.code == 125 and reason in done.err and token[:20] not in done.err, done
    done = sandbox.run(["touch", "began"], options=["--token", path])
    assert done.code == 125 and reason in done.err and not done.report, done


def test_minted_narrowed_and_presented(sandbox):
    token = mint(sandbox, "--allow", "file.read=/data/**", "--allow", "net.connect=*.example.org:443",
                 "--limit", "memory=200MiB", "--limit", "processes=77", "--uses", "3")
    assert told(sandbox, token)["allows"] == ["file.read=/data/**", "net.connect=*.example.org:443"]
    narrow = sandbox.run_atoll("token", "narrow", "--allow", "file.read=/data/a", "--expires", "5m", "--seal",
                               stdin=token.encode())
    assert told(sandbox, narrow.out)["allows"] == ["file.read=/data/a"] and told(sandbox, narrow.out)["sealed"]
    done = sandbox.run_atoll("token", "narrow", "--allow", "file.read=/etc", stdin=token.encode())
    assert done.code != 0 and "does not allow that itself" in done.err
    # Presented: the grants stand in the log under its id, and the limits hold.
    path = sandbox.write(sandbox.base / "token", narrow.out, 0o600)
    done = sandbox.run("ulimit -a >/dev/null; echo ran", options=["--token", path])
    assert done.code == 0 and done.out == "ran\n", done
    log = sandbox.audit_log(done.report["session"]).read_text()
    granted = [json.loads(line) for line in log.splitlines() if '"policy.change"' in line]
    assert [one["subject"] for one in granted] == ["/data/a"]
    assert told(sandbox, narrow.out)["token"] in log and "atoll1." not in log
    done = sandbox.run_outside(sandbox.command_line(["sleep", "60"], options=["-d", "-n", "t", "--token", path]))
    assert done.code == 0, done
    status = json.loads(sandbox.run_atoll("top", "--json").out)[0]
    assert status["limits"]["memory"] == 200 << 20 and status["limits"]["processes"] == 77
    sandbox.run_atoll("stop", "-t", "0s", "--all")
    # Both count for the one that they were made from: one use is left of three, and then none.
    assert sandbox.run(["true"], options=["--token", "-"], stdin=token.encode()).code == 0
    refused(sandbox, token, "as often as it may be")
    refused(sandbox, narrow.out, "as often as it may be")
    lines = [json.loads(line) for line in
             (sandbox.state / "atoll" / "tokens" / "log.jsonl").read_text().splitlines()]
    assert [line["verdict"] for line in lines].count("allow") == 3
    assert {line["fault"] for line in lines if line["verdict"] == "deny"} == {"used-up"}


def test_into_a_running_sandbox(sandbox):
    started = sandbox.run_outside(sandbox.command_line(["sleep", "60"], options=["-d", "-n", "t"]))
    session = started.out.split()[-1]
    token = mint(sandbox, "--allow", "file.read=/data/**", "--agent", "t")
    done = sandbox.run_atoll("exec", "--token", "-", "t", "--", "echo", "ran", stdin=token.encode())
    assert done.code == 0 and done.out == "ran\n", done
    assert told(sandbox, token)["token"] in sandbox.audit_log(session).read_text()
    less = mint(sandbox, "--allow", "file.read=/data/**", "--limit", "memory=1MiB")
    done = sandbox.run_atoll("exec", "--token", "-", "t", "--", "echo", "ran", stdin=less.encode())
    assert done.code == 125 and "higher limit" in done.err and not done.out, done
    elsewhere = mint(sandbox, "--allow", "file.read=/data/**", "--agent", "somebody")
    done = sandbox.run_atoll("exec", "--token", "-", "t", "--", "echo", "ran", stdin=elsewhere.encode())
    assert done.code == 125 and "another project or agent" in done.err and not done.out, done
    sandbox.run_atoll("stop", "-t", "0s", "--all")


def test_what_does_not_hold_begins_nothing(sandbox):
    token = mint(sandbox, "--allow", "file.read=/data/**")
    # The positive control.
    assert sandbox.run(["true"], options=["--token", "-"], stdin=token.encode()).code == 0
    refused(sandbox, token[:-40] + "\n", "no token, or a part of one")
    flipped = token[:120] + ("A" if token[120] != "A" else "B") + token[121:]
    done = sandbox.run_atoll("token", "verify", "-", stdin=flipped.encode())
    assert done.code == 125 and re.search("signature|no token|issuer", done.err), done
    refused(sandbox, mint(sandbox, "--allow", "file.read=/x", "--not-before", "1h", "--expires", "2h"), "not valid yet")
    refused(sandbox, mint(sandbox, "--allow", "file.read=/x", "--expires", "0s"), "expired")
    refused(sandbox, mint(sandbox, "--allow", "file.read=/x", "--agent", "nobody"), "another project or agent",
            "--agent", "medium")
    sandbox.make_directory(sandbox.base / "other")
    there = mint(sandbox, "--allow", "file.read=/x", "--project", str(sandbox.base / "other"))
    refused(sandbox, there, "another project", "--project", str(sandbox.project))
    here = mint(sandbox, "--allow", "file.read=/x", "--project", str(sandbox.project))
    assert sandbox.run(["true"], options=["--token", "-"], stdin=here.encode()).code == 0
    # Of somebody else, until they are trusted.
    other = {"XDG_CONFIG_HOME": str(sandbox.base / "config-of-other"), "XDG_STATE_HOME": str(sandbox.base / "s2")}
    foreign = mint(sandbox, "--allow", "file.read=/x", env=other)
    refused(sandbox, foreign, "not one that you trust")
    key = sandbox.run_atoll("token", "key", env=other).out.strip()
    assert sandbox.run_atoll("token", "trust", key, "the other").code == 0
    assert sandbox.run(["true"], options=["--token", "-"], stdin=foreign.encode()).code == 0
    assert sandbox.run_atoll("token", "trust", "--remove", key).code == 0
    refused(sandbox, foreign, "not one that you trust")
    # Revoked by its id, with what was made from it.
    child = sandbox.run_atoll("token", "narrow", "--expires", "1m", stdin=token.encode()).out
    assert sandbox.run_atoll("token", "revoke", told(sandbox, token)["token"]).code == 0
    refused(sandbox, token, "revoked")
    refused(sandbox, child, "revoked")


def test_one_use_is_one_run(sandbox):
    token = mint(sandbox, "--allow", "file.read=/data/**", "--uses", "1")
    path = sandbox.write(sandbox.base / "token", token, 0o600)
    runs = [sandbox.popen(["true"], options=["-q", "--token", path]) for _ in range(4)]
    codes = sorted(run.wait(60) for run in runs)
    assert codes == [0, 125, 125, 125]


@pytest.mark.only("user")
def test_no_token_in_arguments_and_no_key_for_others(sandbox):
    token = mint(sandbox, "--allow", "file.read=/data/**").strip()
    done = sandbox.run_atoll("token", "show", token)
    assert done.code == 125 and "cannot be an argument" in done.err and token not in done.err
    assert sandbox.run_atoll("token", "show", env={"ATOLL_TOKEN": token}).code == 0
    key = sandbox.base / "config" / "atoll" / "tokens" / "key"
    assert key.stat().st_mode & 0o777 == 0o600 and key.parent.stat().st_mode & 0o777 == 0o700
    assert not (sandbox.run(["env"], env={"ATOLL_TOKEN": token}).out.count(token))
    key.chmod(0o644)
    done = sandbox.run_atoll("token", "mint", "--allow", "file.read=/x")
    assert done.code == 125 and "by others" in done.err
    key.chmod(0o600)
    good = ["mint", "--allow", "file.read=/x"]
    for words in (["mint"], ["mint", "--allow", "file.read=x"], ["mint", "--allow", "env=HOME"], ["burn"], [],
                  ["list", "--uses", "3"], [*good, "--uses", "0"], [*good, "--limit", "cpus=2"]):
        assert sandbox.run_atoll("token", *words, stdin=b"").code == 125, words


def test_an_unreadable_memory_takes_no_token(sandbox):
    token = mint(sandbox, "--allow", "file.read=/data/**", "--uses", "5")
    ledger = sandbox.state / "atoll" / "tokens" / "ledger"
    subprocess.run(["truncate", "-s", "30", str(ledger)], check=True)
    done = sandbox.run(["touch", "began"], options=["--token", "-"], stdin=token.encode())
    assert done.code == 125 and "damaged" in done.err and not done.report


def test_minted_of_a_policy(sandbox):
    """What the policy lets happen beyond its level, and nothing that a token cannot say exactly."""
    sandbox.make_directory(sandbox.home / "data")
    policy = sandbox.policy(f"""atoll: 1
extends: medium
files: {{read: [{sandbox.home}/data], ask: [{sandbox.home}/asked, "{sandbox.home}/**/x.*"]}}
exec: {{ask: [{{program: /usr/bin/git, argv: [git, push]}}, "**/sudo"]}}
network:
  allow: [{{host: api.example, ports: [443, 8443]}}, {{host: pypi.org, ports: [443]}}, {{cidr: 192.0.2.0/24}},
          {{host: web.example, ports: [443], http: [{{methods: [GET], paths: ["/v1/**", "/a*b"]}}]}}]
""")
    done = sandbox.run_atoll("token", "mint", "-p", str(policy), "--allow", "file.read=/more", "--uses", "2")
    assert done.code == 0 and TEXT.match(done.out), done
    allows = told(sandbox, done.out)["allows"]
    assert sorted(allows) == sorted([
        "file.read=/more", f"file.read={sandbox.home}/data/**", f"file.write={sandbox.home}/asked/**",
        "exec=/usr/bin/git push", "net.connect=api.example:443", "net.connect=api.example:8443",
        "http.request=GET web.example:443/v1/**"]), allows
    left_out = [line for line in done.err.splitlines() if "is left out" in line]
    assert len(left_out) == 4 and "network.allow[2]" in done.err and "files.ask[1]" in done.err, done.err
    # Presented under the level it answers what that asks about; the control: without it nobody can be asked.
    for options, allowed in (([], False), (["--token", "-"], True)):
        ran = sandbox.run(f"/run/atoll/bin/atoll-request net.connect api.example:443; echo $?",
                          options=options, stdin=done.out.encode())
        assert ran.out.splitlines()[-1] == ("0" if allowed else "3"), ran
    for words in (["mint", "-p", "medium"], ["mint", "-p", "no-such-policy"], ["narrow", "-p", "medium"]):
        refused_ = sandbox.run_atoll("token", *words, stdin=done.out.encode())
        assert refused_.code != 0 and not refused_.out, (words, refused_)
