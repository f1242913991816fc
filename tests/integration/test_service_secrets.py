# SPDX-License-Identifier: Apache-2.0
"""Secrets of the service's clients: sealed, shown to nobody, and put into requests at the network gate."""
import contextlib
import os

import pytest

from atoll import wait_until
from gate import policy_text
from service import Service
from test_service_control import DEGRADE

VALUE = "sk-client-Zk3vQ9mB7xLpT2wRfYcD8hJn"
SECOND = "sk-second-7xLpT2wRfYcD8hJnZk3vQ9mB"


@pytest.fixture
def service(sandbox):
    made = Service(sandbox)
    yield made.start()
    made.end()


def add_key(service, *words):
    added = service.sandbox.run_outside([service.directory / "atolld", "key", "add", *words])
    assert added.code == 0, added
    return added.out.strip()


def files_with(service, value):
    return [path for path in service.sandbox.state.rglob("*") if path.is_file() and value.encode() in path.read_bytes()]


def test_a_secret_is_kept_and_never_shown(service):
    made = service.ask("SECRET_CREATE", name="My-Key", value=VALUE, metadata=["team", "a", "empty", ""])
    assert made.status == 201 and made["name"] == "my-key" and made["version"] == 1, made
    assert made["metadata"] == ["team", "a", "empty", ""] and made["secret"].startswith("sec_")
    assert service.ask("SECRET_CREATE", name="my-key", value="x").status == 409
    for wanted in ("my-key", "MY-KEY", made["secret"]):
        assert service.ask("SECRET_GET", secret=wanted)["secret"] == made["secret"], wanted
    later = service.ask("SECRET_UPDATE", secret="my-key", value=SECOND)
    assert later.status == 200 and later["version"] == 2 and "metadata" not in later.values
    assert later["updated_ms"] >= later["created_ms"] == made["created_ms"]
    for name, value in (("", "x"), ("sec_x", "x"), ("a{b", "x"), ("a/b", "x"), ("n" * 129, "x"), ("a", "two\nlines"),
                        ("a", "")):
        reply = service.ask("SECRET_CREATE", name=name, value=value) if name else None
        assert reply is None or reply.status == 400, reply

    # Nobody else's key knows of it, whatever it is called by.
    other, looker = add_key(service, "other"), add_key(service, "looks", "--owner", "default", "--role", "read-only")
    for wanted in ("my-key", made["secret"]):
        for operation, values in (("SECRET_GET", {}), ("SECRET_UPDATE", {"value": "x"}), ("SECRET_DELETE", {})):
            assert service.ask(operation, key=other, secret=wanted, **values).status == 404, operation
    assert service.ask("SECRETS", key=other).rows == []
    assert service.ask("SECRET_CREATE", key=other, name="my-key", value="another").status == 201
    assert service.ask("SECRET_CREATE", key=looker, name="mine", value="x").status == 403

    for at in range(3):
        assert service.ask("SECRET_CREATE", name=f"more-{at}", value="x").status == 201
    page = service.ask("SECRETS", limit=3)
    rest = service.ask("SECRETS", limit=3, next=page["next"])
    assert [row["name"] for row in page.rows + rest.rows] == ["my-key", "more-0", "more-1", "more-2"]
    assert "next" not in rest.values and not any("value" in row for row in page.rows)
    assert files_with(service, "more-1") and not files_with(service, VALUE) and not files_with(service, SECOND)

    # It outlives the service.
    service.kill()
    service.start()
    assert service.ask("SECRET_GET", secret="my-key")["version"] == 2
    assert service.ask("SECRET_DELETE", secret="my-key").status == 204
    assert service.ask("SECRET_DELETE", secret="my-key").status == 404
    assert service.ask("SECRET_GET", key=other, secret="my-key").status == 200


def test_there_is_an_end_to_their_number(service):
    for at in range(64):
        assert service.ask("SECRET_CREATE", name=f"s{at}", value="x").status == 201
    reply = service.ask("SECRET_CREATE", name="one-more", value="x")
    assert reply.status == 429 and "64" in reply["message"], reply
    assert service.ask("SECRET_DELETE", secret="s0").status == 204
    assert service.ask("SECRET_CREATE", name="one-more", value="x").status == 201


def gates(service):
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if os.readlink(f"{entry.path}/exe") == str(service.directory / "atoll-egress"):
                yield entry.name


def memory_has(pid, text):
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            place, mode, *_ = line.split()
            begin, end = (int(part, 16) for part in place.split("-"))
            if mode[0] != "r":
                continue
            try:
                memory.seek(begin)
                if text.encode() in memory.read(end - begin):
                    return True
            except OSError:
                continue
    return False


def test_it_gets_to_the_gate_and_not_inside(service):
    """What requests get the gate's headers, tests/integration/test_inject.py shows."""
    text = policy_text(["{host: web.test, ports: [443], http: [{methods: [GET]}]}"], extends="service-base",
                       more="  default: deny\n" + ("" if service.sandbox.identity.is_root else DEGRADE))
    policy = str(service.sandbox.policy(text, "reads.yaml"))
    key, other = add_key(service, "reads", "--policy", policy), add_key(service, "other", "--policy", policy)
    rules = ["web.test", "Authorization", "Bearer ${e2b.secrets.MINE}; ${e2b.secrets.second}!"]
    missing = service.ask("CREATE", key=key, rules=rules)
    assert missing.status == 400 and "MINE" in missing["message"], missing
    for name, value in (("mine", VALUE), ("second", SECOND)):
        assert service.ask("SECRET_CREATE", key=key, name=name, value=value).status == 201
    # The names of another owner's secrets mean nothing.
    assert service.ask("CREATE", key=other, rules=rules).status == 400
    assert service.ask("CREATE", key=key, rules=["web.test", "X-A", "${e2b.secrets.mine"]).status == 400
    assert service.ask("CREATE", key=key, rules=["web.test", "X-A", "${e2b.identity.tokens.t}"]).status == 501
    assert service.ask("CREATE", key=key, rules=["other.test", "X-A", "${e2b.secrets.mine}"]).status == 403

    made = service.create(key=key, rules=rules)
    own = {"key": key, "sandbox": made["sandbox"]}

    def at_the_gate(header):
        """Only root may look into the gate."""
        return os.geteuid() != 0 or any(memory_has(pid, header) for pid in gates(service))
    assert wait_until(lambda: at_the_gate(f"Bearer {VALUE}; {SECOND}!"))
    out, _ = service.run(made, "env; cat /run/atoll/limits.md; cat /proc/*/environ | tr '\\0' '\\n'")
    assert "HOME=" in out and VALUE not in out and SECOND not in out and VALUE not in str(service.ask("GET", **own))

    # A new value counts from when rules are set again; one that is gone is refused then.
    assert service.ask("SECRET_UPDATE", key=key, secret="second", value="another-value").status == 200
    assert service.ask("NETWORK", rules=rules, **own).status == 204
    assert wait_until(lambda: at_the_gate(f"Bearer {VALUE}; another-value!"))
    assert service.ask("SECRET_DELETE", key=key, secret="second").status == 204
    assert service.ask("NETWORK", rules=rules, **own).status == 400
    assert not files_with(service, VALUE) and files_with(service, "e2b.secrets.MINE")
