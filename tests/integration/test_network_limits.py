# SPDX-License-Identifier: Apache-2.0
"""network.limits, the limits of rules and the pause after a burst of refusals: each holds, is told once, and ends."""
import json

import pytest

from gate import LOOPBACK, NAMES, Listener, Web, policy_text, test_hosts

PYTHON = "/usr/bin/python3"


@pytest.fixture
def server():
    listener = Listener(lambda connection: (connection.recv(100), connection.sendall(b"y" * 100000))[0])
    yield listener
    listener.close()


def policy(sandbox, limits="", rules=("web.test", "other.test", "\"*.wild.test\"")):
    return sandbox.policy(policy_text([*rules, *LOOPBACK], f"  limits: {{{limits}}}\n" if limits else ""))


def run(sandbox, script, port, names=NAMES, **keywords):
    prelude = f"""
import socket, sys, time
PORT = {port}
def get(host="web.test", port=PORT, hold=False):
    try:
        s = socket.create_connection((host, port), timeout=10)
        s.sendall(b"x"); size = 0
        while not hold and (part := s.recv(1 << 16)): size += len(part)
        return s if hold else size
    except OSError as error: return error.__class__.__name__
"""
    return sandbox.run([PYTHON, "-c", prelude + script], env=test_hosts(names=names), **keywords)


def limit_records(sandbox, done):
    lines = map(json.loads, sandbox.audit_log(done.session).read_text().splitlines())
    return [(entry["rule"], entry["detail"]["limit"]) for entry in lines if entry["type"] == "limit.hit"]


def denied(done):
    return {(entry["subject"], entry["rule"]): entry for entry in done.report["denials"]}


@pytest.mark.parametrize("limits, rule, expected", [
    ("in: 150kB", "network.limits.in", "100000 ConnectionResetError ConnectionResetError"),
    ("out: 1", "network.limits.out", "100000 ConnectionResetError ConnectionResetError"),
    ("hosts: 1", "network.limits.hosts", "100000 100000 ConnectionResetError"),
    ("new_connections: 2/h", "network.limits.new_connections", "100000 100000 ConnectionResetError"),
])
def test_a_limit_of_the_session(sandbox, server, limits, rule, expected):
    script = "print(get(), get(), get('other.test'))"
    done = run(sandbox, script, server.port, policy=policy(sandbox, limits))
    assert done.out.split() == expected.split(), done
    assert done.report["limits_hit"] == [rule] and [name for name, _ in limit_records(sandbox, done)] == [rule], done
    assert any(entry["rule"] == rule and entry["hint"] for entry in done.report["denials"]), done
    done = run(sandbox, script, server.port, policy=policy(sandbox))
    assert done.out.split() == ["100000"] * 3 and not done.report["limits_hit"], done


# A hundred bytes each of the sandbox's own choice, which whoever answers for wild.test would hear.
SAYING = [f"{number:02}{58 * 'x'}.{39 * 'y'}.wild.test" for number in range(50)]


@pytest.mark.parametrize("rule, session, passing, limit", [
    ("\"*.wild.test\"", "", 40, "network.allow[0].limits.labels"),
    ("{host: \"*.wild.test\", limits: {labels: unlimited}}", "", 50, None),     # the control: nothing else counts them
    ("{host: \"*.wild.test\", limits: {labels: 1KiB}}", "", 10, "network.allow[0].limits.labels"),
    ("\"*.wild.test\"", "labels: 500", 5, "network.limits.labels"),
    ("{host: \"*.wild.test\", limits: {labels: unlimited}}", "out: 1KiB", 10, "network.limits.out")])
def test_n44_what_is_said_by_names_is_counted(sandbox, server, rule, session, passing, limit):
    script = f"first = [get(name) for name in {SAYING}]\nprint(first.count(100000), get({SAYING[0]!r}))"
    done = run(sandbox, script, server.port, names=SAYING, policy=policy(sandbox, session, rules=(rule,)))
    # What was said once says nothing new, but for bytes that go out.
    again = "ConnectionResetError" if session.startswith("out") else "100000"
    assert done.out.split() == [str(passing), again], done
    refused = [entry for entry in done.report["denials"] if entry["rule"] == limit]
    assert sum(entry["count"] for entry in refused) >= 50 - passing, done.report["denials"]
    assert done.report["limits_hit"] == ([limit] if limit else []), done
    if limit and limit.endswith("labels"):
        assert "listed by their full names" in refused[0]["hint"], refused


def test_connections_at_one_time(sandbox, server):
    done = run(sandbox, "held = [get(hold=True) for _ in range(2)]\nprint(get())\nheld[0].close(); time.sleep(.5)\n"
               "print(get())", server.port, policy=policy(sandbox, "connections: 2"))
    assert done.out.split() == ["ConnectionResetError", "100000"], done
    assert limit_records(sandbox, done) == [("network.limits.connections", 2)], done


def test_a_rule_has_limits_of_its_own(sandbox, server):
    rules = ("{host: web.test, limits: {in: 150kB}}", "{host: \"*.test\", limits: {in: 300kB}}")
    done = run(sandbox, "print(get(), get(), get('other.test'), get('other.test'))", server.port,
               policy=policy(sandbox, rules=rules))
    # Both rules cover web.test: what it used is gone from the wider one as well.
    assert done.out.split()[0:3] == ["100000", "ConnectionResetError", "100000"], done
    assert done.out.split()[3] == "ConnectionResetError", done
    assert sorted(done.report["limits_hit"]) == ["network.allow[0].limits.in", "network.allow[1].limits.in"], done


@pytest.mark.needs("openssl", "curl")
@pytest.mark.parametrize("where", ["session", "rule"])
def test_requests_have_a_pace(sandbox, certificates, where):
    """Each request counts, also those of one connection; who is too fast is told when to come back."""
    server = Web(certificates.context())
    own, of_all = ("", "  limits: {requests: 3/min}\n") if where == "session" else (", limits: {requests: 3/min}", "")
    rule = f'{{host: web.test, ports: [{server.port}], http: [{{paths: ["/v1/**"]}}]{own}}}'
    url = f"https://web.test:{server.port}/v1"
    script = (f"curl -sS {url}/1 {url}/2; curl -sS {url}/3; "
              f"curl -sS -D - -o answer -w '%{{http_code}}\\n' {url}/4; cat answer")
    done = sandbox.run(script, policy=sandbox.policy(policy_text([rule, *LOOPBACK], of_all)),
                       env={**test_hosts(), "SSL_CERT_FILE": str(certificates.ca)})
    assert [path for _, path in server.requests] == ["/v1/1", "/v1/2", "/v1/3"], done
    lines = done.out.splitlines()
    wait = next(line for line in lines if line.lower().startswith("retry-after:"))
    assert 15 <= int(wait.split(":")[1]) <= 21 and "429" in lines, done
    refusal = json.loads(lines[-1])
    name = "network.limits.requests" if where == "session" else "network.allow[0].limits.requests"
    assert limit_records(sandbox, done) == [(name, 3)], done
    # One name everywhere: for the client, in its list of refusals, in the log and in the report.
    assert refusal["rule"] == name and "too many requests" in refusal["reason"], refusal
    assert done.report["limits_hit"] == [name], done
    assert any(rule == name and "/v1/4" in subject for subject, rule in denied(done)), done
    server.close()


def test_a_burst_of_refusals_is_followed_by_a_pause(sandbox, server):
    script = """
def lookup(name):
    try: return socket.getaddrinfo(name, 80) and "found"
    except OSError as error: return {socket.EAI_NONAME: "none", socket.EAI_AGAIN: "later"}.get(error.errno, error)
print(get(), lookup("web.test"))
held = get(hold=True)
print(*[lookup(f"guess{i}.example") for i in range(4)])
time.sleep(.2)
print(lookup("web.test"), lookup("other.test"), len(held.recv(1000)) > 0)
time.sleep(.3)   # the box writes when it hears of it
print(open("/run/atoll/denials.jsonl").read().count("another"))
time.sleep(2.8)
print(get(), lookup("other.test"))
"""
    limits = "cooldown: {denials: 4, within: 10s, pause: 3s}"
    done = run(sandbox, script, server.port, policy=policy(sandbox, limits))
    words = done.out.split()
    # Both questions of a name (A, AAAA) are one denial, unless they come apart.
    assert words.pop(9) in ("2", "3", "4"), done
    assert words == ["100000", "found", "none", "none", "none", "none", "later", "later", "True",
                     "100000", "found"], done
    assert limit_records(sandbox, done) == [("network.limits.cooldown", 4)], done
    entry = denied(done)["web.test", "network.limits.cooldown"]
    assert "for another" in entry["reason"] and entry["reason"].endswith(("2s", "3s")), entry
    done = run(sandbox, "[get(f'guess{i}.example') for i in range(9)]\nprint(get())", server.port,
               policy=policy(sandbox))
    assert done.out == "100000\n", done
