# SPDX-License-Identifier: Apache-2.0
"""atolld: what its front can ask for, and what it cannot. The test is the front."""
import base64
import errno
import hashlib
import fcntl
import json
import os
import subprocess
import time

import pytest

from atoll import wait_until
from gate import LOOPBACK, Web, policy_text, test_hosts
from service import OPERATIONS, Service

DEGRADE = "degrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n"


@pytest.fixture
def service(sandbox):
    made = Service(sandbox)
    yield made.start()
    made.end()


def test_a_sandbox_is_made_used_and_killed(service):
    made = service.create(metadata=["app", "test"], timeout_ms=60000)
    assert made["template"] == "base" and made["state"] == "running" and len(made["token"]) == 64
    assert service.run(made, "echo $HOME; pwd; echo out; exit 3") == ("/home/user\n/home/user\nout\n", 3)
    assert [row["sandbox"] for row in service.list()] == [made["sandbox"]]
    assert service.ask("KILL", sandbox=made["sandbox"]).status == 204
    assert service.ask("KILL", sandbox=made["sandbox"]).status == 404
    assert service.list() == []


def test_files_are_carried_by_snapshots_and_forks(service):
    first = service.create()
    assert service.run(first, "whoami; echo one > ~/a; stat -c %U ~/a; ls -A /home/user") == ("user\nuser\na\n", 0)
    reply = service.ask("FORK", sandbox=first["sandbox"], count=2)
    assert reply.status == 201 and len(reply.rows) == 2 and all(row["files_only"] == 1 for row in reply.rows), reply
    for row in reply.rows:
        assert service.run(row, "cat ~/a; echo other > ~/a") == ("one\n", 0)
    assert service.run(first, "cat ~/a") == ("one\n", 0)
    taken = service.ask("SNAPSHOT", sandbox=first["sandbox"], name="mine")
    assert taken.status == 201 and taken["names"] == ["mine"], taken
    assert service.ask("KILL", sandbox=first["sandbox"]).status == 204
    for template in (taken["snapshot"], "mine"):
        made = service.create(template=template)
        assert service.run(made, "cat ~/a") == ("one\n", 0) and made["template"] == template
    assert [row["snapshot"] for row in service.ask("SNAPSHOTS").rows] == [taken["snapshot"]]
    assert service.ask("TEMPLATE_DELETE", template="mine").status == 204
    assert service.ask("CREATE", template="mine").status == 404


def test_attributes_of_a_program_inside_hide_no_directory(service):
    """More than a reply can have, of each file and of all together."""
    made = service.create()
    script = """import os
os.makedirs("d/" + "n" * 200)
for i in range(200):
    name = "d/" + "n" * 200 + "/" + "m" * 200 + str(i)
    open(name, "w").close()
    os.setxattr(name, "user.e2b.k", b"v" * 2000)
open("d/many", "w").close()
for i in range(40):
    os.setxattr("d/many", "user.e2b.%d" % i, b"v")
"""
    assert service.run(made, f"cd && python3 -c '{script}'") == ("", 0)
    own = {"key": None, "sandbox": made["sandbox"], "token": made["token"]}
    found, following = [], None
    while following != "":
        reply = service.ask("READDIR", path="~/d", depth=3, next=following, **own)
        assert reply.status == 200 and reply.rows, reply
        found += [row["name"] for row in reply.rows]
        following = reply.values.get("next", "")
    assert len(found) == len(set(found)) == 202
    listed = service.ask("READDIR", path="~/d", **own)
    assert [len(row["metadata"]) for row in listed.rows if row["name"] == "many"] == [64], listed
    # A tmpfs keeps more of one file than a row takes, since Linux 6.6.
    script = """import os
os.makedirs("/tmp/d/below")
open("/tmp/d/much", "w").close()
try:
    os.setxattr("/tmp/d/much", "user.e2b.k", b"v" * 45000)
    os.setxattr("/tmp/d/below", "user.e2b.k", b"v")
    print("much")
except OSError as error:
    print(error.errno)
"""
    said = service.run(made, f"python3 -c '{script}'")
    if said == ("much\n", 0):
        rows = {row["name"]: row for row in service.ask("READDIR", path="/tmp/d", **own).rows}
        assert set(rows) == {"much", "below"} and "metadata" not in rows["much"], rows
        assert rows["below"]["metadata"] == ["k", "v"]
    else:
        assert said in ((f"{errno.EOPNOTSUPP}\n", 0), (f"{errno.ENOSPC}\n", 0)), said
    seen = service.ask("STAT", path="~/d/many", **own)
    assert seen.status == 200 and len(seen["metadata"]) == 64, seen


def test_a_pause_without_memory_keeps_the_files(service):
    made = service.create()
    assert service.run(made, "echo kept > ~/a; echo lost > /tmp/a") == ("", 0)
    assert service.ask("PAUSE", sandbox=made["sandbox"], memory=0).status == 204
    assert service.ask("GET", sandbox=made["sandbox"])["state"] == "paused"
    assert service.start_command(made, ["true"]).status == 502
    assert service.ask("CONNECT", sandbox=made["sandbox"]).status == 201
    assert service.run(made, "cat ~/a; cat /tmp/a 2>&1 | wc -l; test -e /tmp/a") == ("kept\n1\n", 1)
    assert service.ask("PAUSE", sandbox=made["sandbox"], memory=0).status == 204
    assert service.ask("KILL", sandbox=made["sandbox"]).status == 204


def test_a_kill_wins_over_what_is_under_way(service):
    """Whichever comes first, both are answered and nothing stays."""
    for values in ({"memory": 0}, {"memory": 1}):
        for _ in range(4):
            made = service.create()
            pause = service.send("PAUSE", key=service.key, sandbox=made["sandbox"], **values)
            kill = service.send("KILL", key=service.key, sandbox=made["sandbox"])
            again = service.send("CONNECT", key=service.key, sandbox=made["sandbox"])
            assert service.wait(kill).status == 204
            assert service.wait(pause).status in (204, 404, 502)
            assert service.wait(again).status in (404, 409, 502)
            assert service.ask("GET", sandbox=made["sandbox"]).status == 404
    assert service.list() == []


def test_a_pause_with_memory_keeps_processes(service):
    made = service.create()
    counter = service.start_command(made, ["/bin/bash", "-c", "for i in $(seq 1000); do echo $i; sleep 0.02; done"])
    assert os.read(counter.fds["stdout"], 2) == b"1\n"
    assert service.ask("PAUSE", sandbox=made["sandbox"]).status == 204
    assert service.ask("PAUSE", sandbox=made["sandbox"]).status == 409
    assert service.ask("GET", sandbox=made["sandbox"])["state"] == "paused"
    assert service.ask("CONNECT", sandbox=made["sandbox"], memory=0).status == 501
    assert service.ask("CONNECT", sandbox=made["sandbox"]).status == 201
    seen = b""
    while b"\n50\n" not in seen:
        seen += os.read(counter.fds["stdout"], 4096)
    counter.close()
    assert service.ask("CONNECT", sandbox=made["sandbox"]).status == 200


def test_it_wakes_by_itself_where_it_was_made_so(service):
    made = service.create(timeout_ms=1000, auto_pause=1, auto_resume=1)
    assert service.run(made, "echo kept > /tmp/a") == ("", 0)
    service.event("PAUSED", sandbox=made["sandbox"])
    assert service.ask("GET", sandbox=made["sandbox"])["state"] == "paused"
    assert service.ask("HEALTH", key=None, sandbox=made["sandbox"]).status == 502
    assert service.run(made, "cat /tmp/a") == ("kept\n", 0)
    other = service.create(timeout_ms=500, auto_pause=1)
    service.event("PAUSED", sandbox=other["sandbox"])
    assert service.start_command(other, ["true"]).status == 502


def key_of(service, name, *options):
    done = service.sandbox.run_outside([service.directory / "atolld", "key", "add", name, *options, *service.options])
    assert done.code == 0, done
    return done.out.strip()


def test_keys_see_their_own_sandboxes_and_do_what_their_role_may(service):
    made = service.create()
    stranger, friend, reader, admin = (key_of(service, "stranger"), key_of(service, "friend", "--owner", "first"),
        key_of(service, "reader", "--owner", "first", "--role", "read-only"), key_of(service, "root", "--role",
	"admin"))
    about = ["GET", "KILL", "PAUSE", "CONNECT", "FORK", "SNAPSHOT", "LOGS", "METRICS", "NETWORK"]
    unknown = {name: service.ask(name, sandbox="i" + "0" * 19) for name in about}
    for name in about:
        foreign = service.ask(name, key=stranger, sandbox=made["sandbox"])
        assert foreign.status == unknown[name].status == 404, (name, foreign)
        assert foreign["message"].replace(made["sandbox"], "ID") == unknown[name]["message"].replace(
            "i" + "0" * 19, "ID")
    assert service.list(key=stranger) == []
    for key in (friend, reader, admin):
        assert [row["sandbox"] for row in service.list(key=key)] == [made["sandbox"]]
    seen = service.ask("GET", key=reader, sandbox=made["sandbox"])
    assert seen.status == 200 and "token" not in seen.values and "traffic_token" not in seen.values, seen
    assert service.ask("GET", key=friend, sandbox=made["sandbox"])["token"] == made["token"]
    for name in ("CREATE", "KILL", "PAUSE", "SNAPSHOT"):
        values = {} if name == "CREATE" else {"sandbox": made["sandbox"]}
        assert service.ask(name, key=reader, **values).status == 403, name
    assert service.ask("WHOAMI", key=reader).values == {"name": "reader", "role": "read-only"}
    done = service.sandbox.run_outside([service.directory / "atolld", "key", "revoke", "friend"])
    assert done.code == 0, done
    assert service.ask("LIST", key=friend).status == 401
    listed = service.sandbox.run_outside([service.directory / "atolld", "key", "list", "--json"])
    assert friend[4:] not in listed.out and reader[12:] not in listed.out and '"revoked":true' in listed.out
    kept = b"".join(path.read_bytes() for path in (service.sandbox.state / "atoll" / "service").glob("service.db*"))
    assert reader.encode() not in kept and b"reader" in kept


def test_without_a_right_credential_nothing_is_said(service):
    made, other = service.create(), service.create()
    assert service.ask("LIST", key=None).status == 401
    assert service.ask("LIST", key="e2b_" + "0" * 40).status == 401
    for token in (None, "0" * 64, other["token"], service.key):
        for sandbox in (made["sandbox"], "i" + "0" * 19):
            reply = service.ask("EXEC", key=None, sandbox=sandbox, token=token, argv=["true"])
            assert reply.status == 401, (token, sandbox, reply)
    # The key is no token, and the other way round.
    assert service.ask("COMMANDS", sandbox=made["sandbox"]).status == 401
    assert service.ask("GET", key=made["token"], sandbox=made["sandbox"]).status == 401


def signed(box, path, mode="read", user="", expires=None):
    """The credentials of a URL, as the client of E2B makes them."""
    said = f"{path}:{mode}:{user}:{box['token']}" + (f":{expires}" if expires else "")
    mark = base64.b64encode(hashlib.sha256(said.encode()).digest()).decode().rstrip("=")
    return {"key": None, "signature": "v1_" + mark, "signed": path, "signed_user": user, "expires": expires}


def test_a_signed_url_finds_its_sandbox(service):
    first, second = service.create(), service.create()
    for box, word in ((first, "one"), (second, "two")):
        assert service.run(box, f"echo -n {word} > ~/a") == ("", 0)
    later = int(time.time()) + 60
    for box, word in ((first, b"one"), (second, b"two")):
        for url in (signed(box, "a"), signed(box, "a", expires=later)):
            reply = service.ask("OPEN", path="a", **url)
            assert reply.status == 200 and os.read(reply.fds["file"], 9) == word
            reply.close()
    reply = service.ask("OPEN", path="b", write=1, **signed(first, "", "write", expires=later))
    assert reply.status == 200 and os.write(reply.fds["file"], b"new") == 3
    reply.close()
    assert service.run(first, "cat ~/b") == ("new", 0) and service.run(second, "cat ~/b 2>/dev/null")[1] == 1
    old = service.ask("OPEN", path="a", **signed(first, "a", expires=int(time.time()) - 60))
    assert (old.status, old["message"]) == (401, "signature is already expired")
    # Of another path, for another use, later than it says, of no sandbox, and without any.
    for wrong in ({"path": "b", **signed(first, "a")}, {"path": "a", "write": 1, **signed(first, "a")},
                  {"path": "a", **signed(first, "a", expires=later), "expires": later + 1},
                  {"path": "a", **signed({"token": "0" * 64}, "a")}, {"path": "a", "key": None},
                  {"path": "a", "key": None, "token": first["token"]}):
        assert service.ask("OPEN", **wrong).status == 401, wrong
    assert service.ask("KILL", sandbox=first["sandbox"]).status == 204
    assert service.ask("OPEN", path="a", **signed(first, "a")).status == 401


def test_files_are_told_as_clients_expect_them(service):
    box = service.create()
    own = {"key": None, "sandbox": box["sandbox"], "token": box["token"]}
    assert service.run(box, "mkdir d; echo x > a; ln -s a link; ln -s ../a d/up; ln -s /etc far") == ("", 0)
    targets = {path: service.ask("STAT", path=path, **own)["target"] for path in ("link", "d/up", "far")}
    assert targets == {"link": "/home/user/a", "d/up": "/home/user/a", "far": "/etc"}
    # What is written anew says what the old one has, so that the front can take it away.
    assert service.ask("SETATTR", path="a", metadata=["by", "me"], **own)["metadata"] == ["by", "me"]
    again = service.ask("OPEN", path="a", write=1, **own)
    assert again["metadata"] == ["by", "me"]
    again.close()
    assert service.ask("REMOVE", path="a", **own).status == 204
    assert service.run(box, "test -e a") == ("", 1)
    assert service.ask("REMOVE", path="a", **own).status == 204
    refused = service.ask("OPEN", path="/usr/none", write=1, **own)
    assert refused.status in (400, 403) and "may only read" in refused["message"], refused
    watch = service.ask("WATCH", path="d", **own)
    assert watch["path"] == "/home/user/d"
    since = service.ask("GET", sandbox=box["sandbox"])["started_ms"]
    assert [row["sandbox"] for row in service.list(started_after_ms=since)] == [box["sandbox"]]
    assert service.list(started_after_ms=since + 1) == []


def test_pages_filters_and_order(service):
    ids = []
    for number in range(5):
        ids.append(service.create(metadata=["n", str(number % 2)])["sandbox"])
        # Those of one millisecond stand in the order of their ids.
        time.sleep(0.002)
    assert [row["sandbox"] for row in service.list()] == ids[::-1]
    assert [row["sandbox"] for row in service.list(ascending=1)] == ids
    assert {row["sandbox"] for row in service.list(metadata=["n", "1"])} == {ids[1], ids[3]}
    assert service.list(metadata=["n", "2"]) == [] and service.list(template="other") == []
    seen, following = [], None
    while True:
        page = service.ask("LIST", limit=2, next=following)
        seen += [row["sandbox"] for row in page.rows]
        following = page.values.get("next")
        if not following:
            break
    assert seen == ids[::-1]
    assert service.ask("PAUSE", sandbox=ids[0]).status == 204
    assert [row["sandbox"] for row in service.list(states=["paused"])] == [ids[0]]
    assert service.ask("LIST", next="x").status == 400


def test_a_network_rule_only_takes_away(service):
    closed = service.create(internet=0)
    reach = "exec 3<>/dev/tcp/{}/80 && echo open"
    out, code = service.run(closed, reach.format("203.0.113.1") + " 2>&1")
    assert code != 0 and "open" not in out
    listed = service.ask("GET", sandbox=closed["sandbox"])
    assert listed["internet"] == 0
    assert service.create(deny_out=["0.0.0.0/0"], allow_out=["example.com"]).status == 201
    assert service.create(deny_out=["0.0.0.0/0"], allow_out=["1.1.1.1", "8.8.8.0/24"]).status == 201
    for wrong, what in (({"allow_out": ["10.0.0.0/8"], "internet": 0}, "10.0.0.0/8"),
                        ({"allow_out": ["127.0.0.1"], "deny_out": ["0.0.0.0/0"]}, "127.0.0.1"),
                        ({"deny_out": ["nonsense/x"]}, "nonsense/x"),
                        ({"rules": ["*.a.example", "X-A", "b"]}, "*.a.example"),
                        ({"rules": ["a.example", "X A", "b"]}, "X A"),
                        ({"rules": ["a.example", "Host", "b"]}, "Host"),
                        ({"rules": ["a.example", "X-A", "b\r\nX-B: c"]}, "X-A"),
                        ({"rules": ["a.example", "X-A", "b"] * 65}, "too many")):
        reply = service.ask("CREATE", **wrong)
        assert reply.status == 400 and what in reply["message"], reply
    # Nothing reads requests under this policy, and nothing of the client's has them read.
    reply = service.ask("CREATE", rules=["a.example", "X-A", "b"])
    assert reply.status == 403 and "a.example" in reply["message"], reply
    reply = service.ask("NETWORK", sandbox=closed["sandbox"], rules=["a.example", "X-A", "b"])
    assert reply.status == 403 and service.ask("GET", sandbox=closed["sandbox"])["internet"] == 0
    assert service.ask("CREATE", rules=["a.example", "X-A", "${e2b.secrets.mine}"]).status == 400
    assert service.ask("NETWORK", sandbox=closed["sandbox"], internet=1).status == 204
    assert service.ask("GET", sandbox=closed["sandbox"])["internet"] == 1
    assert len(service.list()) == 3


def test_headers_of_a_client_are_the_gates_business(service):
    """What requests get them, tests/integration/test_inject.py shows."""
    text = policy_text(["{host: web.test, ports: [443], http: [{methods: [GET]}]}"], extends="service-base",
                       more="  default: deny\n" + ("" if service.sandbox.identity.is_root else DEGRADE))
    added = service.sandbox.run_outside([service.directory / "atolld", "key", "add", "reads", *service.options,
                                         "--policy", service.sandbox.policy(text, "reads.yaml")])
    key = added.out.strip()
    value = "Bearer sk-of-the-client-0123456789"

    def names(box):
        """Of each time that its headers were set."""
        found = json.loads(service.sandbox.run_atoll("ps", "--json").out)
        session, = [one["session"] for one in found if one.get("name") == box["sandbox"]]
        lines = [json.loads(line) for line in service.sandbox.audit_log(session).read_text().splitlines()]
        return [[(one["host"], one["name"]) for one in line["detail"]["headers"]] for line in lines
                if line["type"] == "policy.change" and line["detail"].get("change") == "headers"]
    assert service.ask("CREATE", key=key, internet=0, allow_out=["web.test"]).status == 201
    assert service.ask("CREATE", key=key, internet=0, allow_out=["other.test"]).status == 400
    made = service.ask("CREATE", key=key, rules=["WEB.test", "X-Mine", value, "web.test", "X-Second", "2"])
    assert made.status == 201, made
    own = {"sandbox": made["sandbox"], "key": key}
    first = [("web.test", "X-Mine"), ("web.test", "X-Second")]
    assert names(made) == [first]
    refused = service.ask("NETWORK", rules=["other.test", "X-Mine", "3"], **own)
    assert refused.status == 403 and "other.test" in refused["message"], refused
    assert names(made) == [first]
    assert service.ask("NETWORK", rules=["web.test", "X-Second", "4"], **own).status == 204
    assert service.ask("NETWORK", internet=0, **own).status == 204
    assert names(made) == [first, first[1:], []]
    assert service.ask("NETWORK", rules=["web.test", "X-Second", "4"], **own).status == 204
    fork = service.ask("FORK", **own).rows[0]
    assert names(fork) == [first[1:]]
    # The next daemon leaves them there; what begins again gets them again. They are told to nobody.
    service.kill()
    service.start()
    own["sandbox"] = fork["sandbox"]
    assert names(fork) == [first[1:]]
    assert service.ask("PAUSE", memory=0, **own).status == 204
    assert service.ask("CONNECT", **own).status == 201
    assert names(fork) == [first[1:]]
    assert "rules" not in service.ask("GET", **own).values
    logs = [path.read_text() for path in (service.sandbox.state / "atoll").glob("**/*.jsonl")]
    assert len(logs) > 2 and not any("sk-of-the-client" in log for log in logs)


@pytest.mark.needs("curl")
def test_no_internet_closes_what_the_policy_lists(sandbox):
    """By the words that the service writes (tests/unit/service/launcher/store/test-narrowing.c)."""
    web = Web()
    policy = sandbox.policy(policy_text([f"{{host: web.test, ports: [{web.port}]}}", *LOOPBACK]))
    try:
        for deny, wanted in (("", "200"), ('  deny: [{cidr: "0.0.0.0/0"}, {cidr: "::/0"}]\n', "000")):
            sandbox.write(sandbox.project / ".atoll.yaml", "atoll: 1\nnetwork:\n  default: deny\n" + deny)
            done = sandbox.run(f"curl -s -o /dev/null -w '%{{http_code}}' http://web.test:{web.port}/", policy=policy,
                               env=test_hosts())
            assert done.out == wanted, done
    finally:
        web.close()


def test_policies_are_compiled_beside_the_loop(service):
    """Who asks for another thing meanwhile need not wait, and each gets the network that it asked for."""
    first = service.create()
    wanted = [f"203.0.113.{at}" for at in range(8)]
    begun = [service.send("CREATE", key=service.key, deny_out=[address]) for address in [*wanted, wanted[-1]]]
    wrong = service.send("CREATE", key=service.key, internet=0, allow_out=["10.0.0.0/8"])
    changed = service.send("NETWORK", key=service.key, sandbox=first["sandbox"], deny_out=["203.0.113.77"])
    looked = service.send("GET", key=service.key, sandbox=first["sandbox"])
    assert service.wait(looked).status == 200
    assert begun[-1] not in service.replies and changed not in service.replies
    for ticket, address in zip(begun, [*wanted, wanted[-1]]):
        reply = service.wait(ticket)
        assert reply.status == 201, reply
        assert service.ask("GET", sandbox=reply["sandbox"])["deny_out"] == [address]
    refused = service.wait(wrong)
    assert refused.status == 400 and "10.0.0.0/8" in refused["message"], refused
    assert service.wait(changed).status == 204
    assert service.ask("GET", sandbox=first["sandbox"])["deny_out"] == ["203.0.113.77"]
    assert not (service.sandbox.state / "atoll" / "service" / "project" / ".atoll.yaml").exists()
    # A sandbox that has gone when its policy is there, and a daemon that ends before.
    late = service.send("NETWORK", key=service.key, sandbox=first["sandbox"], deny_out=["203.0.113.78"])
    gone = service.send("KILL", key=service.key, sandbox=first["sandbox"])
    assert service.wait(gone).status == 204 and service.wait(late).status in (204, 404, 502)
    for at in range(4):
        service.send("CREATE", key=service.key, deny_out=[f"203.0.113.{100 + at}"])
    service.stop()
    service.start()
    assert service.create(deny_out=["203.0.113.100"]).status == 201


def test_changes_of_the_network_have_a_rate(service):
    key = key_of(service, "changes", "--rate", "3")
    made = service.ask("CREATE", key=key)
    assert made.status == 201
    own = {"sandbox": made["sandbox"], "key": key}
    replies = [service.ask("NETWORK", deny_out=[f"198.51.100.{at}"], **own) for at in range(3)]
    assert [reply.status for reply in replies] == [204, 204, 429] and replies[-1]["retry_after"] >= 1, replies
    # What is compiled already costs nothing.
    assert service.ask("NETWORK", deny_out=["198.51.100.0"], **own).status == 204


def test_a_fork_has_the_network_of_its_parent(service):
    made = service.create()
    assert service.ask("NETWORK", sandbox=made["sandbox"], internet=0).status == 204
    fork = service.ask("FORK", sandbox=made["sandbox"]).rows[0]
    assert service.ask("GET", sandbox=fork["sandbox"])["internet"] == 0
    again = service.ask("FORK", sandbox=fork["sandbox"]).rows[0]
    assert service.ask("GET", sandbox=again["sandbox"])["internet"] == 0


def test_quotas_hold(service):
    slow = key_of(service, "slow", "--rate", "2")
    assert [service.ask("CREATE", key=slow).status for _ in range(3)] == [201, 201, 429]
    assert service.ask("CREATE", key=slow)["retry_after"] > 0
    few = key_of(service, "few", "--sandboxes", "1")
    made = service.ask("CREATE", key=few)
    assert service.ask("CREATE", key=few).status == 429
    assert service.ask("KILL", key=few, sandbox=made["sandbox"]).status == 204
    made = service.ask("CREATE", key=few)
    assert made.status == 201 and service.ask("FORK", key=few, sandbox=made["sandbox"]).status == 429
    some = key_of(service, "some", "--sandboxes", "4", "--rate", "6")
    made = service.ask("CREATE", key=some)
    assert service.ask("FORK", key=some, sandbox=made["sandbox"], count=4).status == 429
    # Those that are asked for at once are counted together.
    asked = [service.send("FORK", key=some, sandbox=made["sandbox"], count=2) for _ in range(2)]
    forks = [row for ticket in asked for row in service.wait(ticket).rows]
    assert len([row for row in forks if "token" in row]) == 3 == len(service.list(key=some)) - 1, forks
    for row in service.list(key=some)[:3]:
        assert service.ask("KILL", key=some, sandbox=row["sandbox"]).status == 204
    assert service.ask("FORK", key=some, sandbox=service.list(key=some)[0]["sandbox"], count=3)["retry_after"] > 0
    small = key_of(service, "small", "--memory", "2GiB")
    for _ in range(2):
        one = service.ask("CREATE", key=small)
        wait_until(lambda made=one: service.ask("GET", key=small,
	sandbox=made["sandbox"]).values.get("memory_mb") == 1024)
    assert service.ask("CREATE", key=small).status == 429
    for row in service.list(key=slow) + service.list(key=few) + service.list(key=some) + service.list(key=small):
        assert service.ask("KILL", key=key_of(service, "a" + row["sandbox"], "--role", "admin"),
                           sandbox=row["sandbox"]).status == 204


def test_a_lock_that_a_dying_child_holds_is_waited_for(service):
    """After a kill -9 a child that atolld had just forked held it a moment longer, and the next start gave up."""
    service.kill()
    with open(service.sandbox.state / "atoll" / "service" / "lock", "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        service.start(ready=False)
        with pytest.raises(subprocess.TimeoutExpired):
            service.process.wait(timeout=0.3)
    service.take_front()
    service.say_ready()
    service.key = None
    assert service.process.stdout.readline()


def test_a_front_that_breaks_the_table_is_ended_and_no_sandbox_with_it(service):
    made = service.create()
    for bytes_ in (b"nonsense", b"\0" * 16, b"atol" * 9):
        service.front.send(bytes_)
        assert service.front.recv(1 << 17) == b""
        service.end_front()
        service.take_front()
        service.say_ready()
        assert service.run(made, "echo still") == ("still\n", 0)


def test_a_front_that_ends_is_started_again_and_replies_go_to_who_asked(service):
    made = service.create()
    running = service.start_command(made, ["/bin/bash", "-c", "sleep 1; echo done > /tmp/a"])
    running.close()
    service.send("CREATE", key=service.key)
    service.end_front()
    service.take_front()
    service.say_ready()
    assert service.ask("GET", sandbox=made["sandbox"]).status == 200
    wait_until(lambda: service.run(made, "cat /tmp/a 2>/dev/null") == ("done\n", 0), 30)
    assert not service.replies


def test_every_call_is_in_the_log_of_the_service(service):
    made = service.create(client="192.0.2.7")
    assert service.ask("GET", key="e2b_" + "1" * 40, sandbox=made["sandbox"]).status == 401
    logs = sorted((service.sandbox.state / "atoll" / "service" / "audit").glob("*.jsonl"))
    text = logs[-1].read_text()
    assert '"rule":"sandbox.create"' in text and '"client":"192.0.2.7"' in text and '"status":401' in text
    assert service.key not in text and made["token"] not in text and "1" * 40 not in text


def test_what_is_not_served_says_so(service):
    assert service.ask("VOLUMES").status == 501
    assert service.ask("CREATE", volumes=["v", "/mnt"]).status == 501
    made = service.create()
    for user, status in (("root", 401), ("nobody", 401), ("user", 200)):
        reply = service.start_command(made, ["true"], user=user)
        assert reply.status == status and (status == 200 or user in reply["message"]), reply
        reply.close()
    reply = service.start_command(made, ["/nonexistent"])
    assert reply.status == 400 and "nonexistent" in reply["message"]
    assert service.start_command(made, ["true"], cwd="/nonexistent").status == 400


def test_ids_of_another_form_end_the_front(service):
    for wrong in ("../x", "A", "a-b", ""):
        service.send("GET", key=service.key, sandbox=wrong)
        assert service.front.recv(1 << 17) == b""
        service.end_front()
        service.take_front()
        service.say_ready()
    assert OPERATIONS["GET"] and service.list() == []


def test_many_commands_at_once_are_all_told_of(service):
    made = service.create()
    tickets = [service.send("EXEC", sandbox=made["sandbox"], token=made["token"], argv=["true"], stdin=0)
               for _ in range(150)]
    replies = [service.wait(ticket) for ticket in tickets]
    assert {reply.status for reply in replies} == {200}
    wanted = {reply["command"] for reply in replies}
    for reply in replies:
        reply.close()
    while wanted:
        wanted.discard(service.event("EXIT")["command"])


def test_the_home_that_all_begin_with_is_never_written(service, sandbox):
    made = service.create()["sandbox"]
    inside = sandbox.run_atoll("exec", made, "--", "sh", "-c", "pwd; echo mine > ~/a")
    assert (inside.code, inside.out) == (0, "/home/user\n"), inside
    for words in (("apply", made), ("apply", "--patch", "-", made), ("undo", made), ("fork", made, "--", "true")):
        done = sandbox.run_atoll(*words)
        assert done.code == 125 and "sandbox of `atoll serve`" in done.err, (words, done)
    assert not list(sandbox.base.rglob("service/home/*"))
    assert service.run(service.create(), "ls -A ~") == ("", 0)
    # What the refusal says to do instead.
    out = sandbox.home / "out"
    assert sandbox.run_atoll("cp", f"{made}:/home/user/a", str(out)).code == 0 and out.read_text() == "mine\n"
    assert sandbox.run_atoll("snapshot", made).code == 0


def test_metrics_and_logs_are_of_the_sandbox(service):
    made = service.create()
    assert service.run(made,
	"for i in $(seq 20000); do :; done; head -c 20M /dev/zero | tail -c 1 | wc -c") == ("1\n", 0)
    shown = wait_until(lambda: service.ask("GET", sandbox=made["sandbox"]).values.get("memory_mb") and
                       service.ask("GET", sandbox=made["sandbox"]))
    assert shown["cpu_count"] == 2 and shown["memory_mb"] == 1024 and shown["disk_mb"] == 4096
    looks = service.ask("METRICS", sandbox=made["sandbox"]).rows
    looks = service.ask("METRICS", sandbox=made["sandbox"]).rows
    assert len(looks) >= 2 and looks[-1]["mem_total"] == 1 << 30 and looks[-1]["cpu_count"] == 2
    assert [look["time_ms"] for look in looks] == sorted(look["time_ms"] for look in looks)
    assert [row["sandbox"] for row in service.ask("METRICS", sandboxes=[made["sandbox"], "i" + "0" * 19]).rows] == [
        made["sandbox"]]
    assert service.run(made, "head -c 5M /dev/urandom > ~/large") == ("", 0)
    used = wait_until(lambda: [row["disk_used"] for row in service.ask("METRICS", sandbox=made["sandbox"]).rows
                               if row["disk_used"] > 5 << 20])
    assert max(used) < 64 << 20
    page = service.ask("LOGS", sandbox=made["sandbox"], limit=2)
    assert page.rows[0]["message"].startswith("session.start") and len(page.rows) == 2
    rest = service.ask("LOGS", sandbox=made["sandbox"], next=page["next"])
    assert rest.rows and not any(row["message"].startswith("session.start") for row in rest.rows)
    found = service.ask("LOGS", sandbox=made["sandbox"], search="session.start")
    assert len(found.rows) == 1
    check_logs_backward(service, made["sandbox"])


def check_logs_backward(service, sandbox):
    def all_rows(**how):
        rows, after = [], {}
        while True:
            page = service.ask("LOGS", sandbox=sandbox, **how, **after)
            rows += page.rows
            if "next" not in page.values:
                return rows
            after = {"next": page["next"]}

    forward = all_rows()
    assert len(forward) > 5
    backward = all_rows(backward=1, limit=2)
    newer = len(backward) - len(forward)
    assert newer >= 0 and backward[newer:] == forward[::-1]
    middle = forward[2]["time_ms"]
    older = all_rows(backward=1, start_ms=middle)
    assert older == [row for row in backward if row["time_ms"] <= middle] and len(older) < len(forward)
    assert service.ask("LOGS", sandbox=sandbox, next="99999999999").status == 404


def test_who_has_no_cgroup_is_told_what_a_policy_can_say(sandbox):
    """No option of `atoll run` helps a client of the service."""
    policy = "atoll: 1\nextends: service-base\ndegrade: [cgroup.pids, cgroup.cpu, disk]\n"
    made = Service(sandbox)
    made.options = ["--policy", str(sandbox.policy(policy, "limits.yaml"))]
    service = made.start()
    reply = service.ask("CREATE")
    said = str(reply.values)
    made.end()
    assert "atoll run --degrade" not in said
    assert reply.status == 201 or ("no cgroup" in said and "degrade: [cgroup.memory" in said), said
