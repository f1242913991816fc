# SPDX-License-Identifier: Apache-2.0
"""The records of fixed runs come in a fixed order: what detection and limits add stands where it always stood."""
import json
from itertools import groupby

PYTHON = "/usr/bin/python3"
FIND = """
import socket, sys
for name in sys.argv[1:]:
    try: socket.getaddrinfo(name, 443, socket.AF_INET)
    except OSError: pass
"""
TOKEN = "t=$(sed -n s/^aws_secret_access_key.=.//p ~/.aws/credentials)"


def is_fixed(entry):
    """Not so are the ends of processes, what inotify tells, and which files a program of the host's opens."""
    return entry["type"] != "exec.end" and (entry.get("detail") or {}).get("alert") != "canary.touched" and not (
        entry["type"] == "file.open" and not (entry.get("subject") or "").endswith("seen"))


def order(sandbox, done):
    """One line a record: type, verdict, kind of event, and the last part of its subject."""
    for entry in filter(is_fixed, map(json.loads, sandbox.audit_log(done.session).read_text().splitlines())):
        subject = (entry.get("subject") or "").rsplit("/", 1)[-1].replace(done.session, "ID")
        detail = entry.get("detail") or {}
        words = [entry["type"], entry.get("verdict"), detail.get("event"), detail.get("alert"), subject]
        yield " ".join(filter(None, words))


def run(sandbox, script, more, **keywords):
    text = sandbox.policy(f"atoll: 1\nextends: medium\n{more}\n")
    # Who gets no answer to a look-up may ask again.
    return [line for line, _ in groupby(order(sandbox, sandbox.run(["bash", "-c", script], policy=text, **keywords)))]


def test_an_alert_about_an_exec_stands_behind_the_exec(sandbox):
    script = f"{TOKEN}; /bin/true $t; touch new"
    more = "data: {canaries: [~/.aws/credentials]}\nverify: {critical: note}"
    assert run(sandbox, script, more, options=["--discard"]) == [
        "session.start ID", "exec.start allow bash", "exec.start allow sed",
        "exec.start allow true", "alert canary.sent credentials",
        "exec.start allow touch", "stage.discard ID", "session.end ID"]


def test_a_burst_strains_the_agent_before_the_pause(sandbox):
    more = "network: {default: deny}\ntrust: {agent: x}\ntime: {cooldown: {denials: 3, within: 60s, pause: 60s}}"
    assert run(sandbox, f"{PYTHON} -c '{FIND}' a.example b.example c.example d.example; /bin/true", more) == [
        "session.start ID", "trust.change session-begun x", "exec.start allow bash", "exec.start allow python3",
        "net.dns deny a.example", "net.dns deny b.example", "net.dns deny c.example",
        "trust.change deny-burst x", "limit.hit deny time.cooldown",
        # Programs are refused meanwhile as well, which is no record of its own.
        "net.dns deny d.example", "trust.change session-ended x", "session.end ID"]


def test_a_limit_stands_before_what_it_costs_the_agent(sandbox):
    more = 'exec: {deny: ["**/true"]}\ntime: {rate: {exec: 4/h}}\naudit: {files: all}\ntrust: {agent: x}'
    assert run(sandbox, "echo >seen; /bin/true; /bin/true; cat seen; /usr/bin/id; read a <seen", more) == [
        "session.start ID", "trust.change session-begun x", "exec.start allow bash", "file.write stage seen",
        "exec.start deny true", "exec.start allow cat", "file.open allow seen",
        "limit.hit deny time.rate.exec", "trust.change limit-hit x", "file.open allow seen",
        "trust.change session-ended x", "session.end ID"]
