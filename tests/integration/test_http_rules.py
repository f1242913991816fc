# SPDX-License-Identifier: Apache-2.0
"""`http:` rules: each request of an intercepted host is judged by itself, for any program, and written down."""
import json
import shutil

import pytest

from gate import LOOPBACK, Certificates, Web, policy_text, test_hosts

pytestmark = pytest.mark.needs("openssl", "curl")


@pytest.fixture(scope="module")
def certificates():
    made = Certificates()
    yield made
    shutil.rmtree(made.directory)


@pytest.fixture
def secure(certificates):
    server = Web(certificates.context())
    yield server
    server.close()


def rules(sandbox, port, http="{methods: [GET], paths: [\"/v1/**\"]}", host="web.test", more="", others=()):
    """The policy of a test: web.test with these http rules."""
    return sandbox.policy(policy_text([f"{{host: {host}, ports: [{port}], http: [{http}]}}", *others, *LOOPBACK], more))


def outside(certificates, names=("web.test", "other.test"), address="127.0.0.1"):
    """The environment of a host that trusts the authority of the tests."""
    return {**test_hosts(address, names), "SSL_CERT_FILE": str(certificates.ca)}


def records(sandbox, done, kind="net.http"):
    lines = sandbox.audit_log(done.session).read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["type"] == kind]


def test_what_is_listed_is_answered_and_the_rest_is_told_why(sandbox, certificates, secure):
    url = f"https://web.test:{secure.port}"
    done = sandbox.run(f"curl -sS {url}/v1/models; curl -sS -w '%{{http_code}}\\n' {url}/admin",
                       policy=rules(sandbox, secure.port), env=outside(certificates))
    answer = done.out.splitlines()
    assert len(answer) == 3, done
    assert answer[0] == "hello from /v1/models" and answer[2] == "403", done
    refusal = json.loads(answer[1])
    assert refusal["error"] == "refused by atoll" and refusal["rule"] == "network.default", refusal
    assert "http" in refusal["hint"], refusal
    assert [path for _, path in secure.requests] == ["/v1/models"]
    kept = [(entry["verdict"], entry["detail"]["method"], entry["subject"], entry["detail"]["path"],
             entry["detail"]["status"]) for entry in records(sandbox, done)]
    assert kept == [("allow", "GET", "web.test", "/v1/models", 200), ("deny", "GET", "web.test", "/admin", 403)]
    assert done.report["network"]["requests"] == 2
    denial, = done.report["denials"]
    assert denial["kind"] == "http.request" and denial["subject"] == f"GET web.test:{secure.port}/admin", denial


def test_other_hosts_keep_their_own_certificate(sandbox, certificates, secure):
    policy = rules(sandbox, secure.port, host="other.test", others=[f"{{host: web.test, ports: [{secure.port}]}}"])
    words = "curl -sSv --cacert ca.pem"
    sandbox.copy(certificates.ca, sandbox.project / "ca.pem", 0o644)
    done = sandbox.run(f"{words} https://web.test:{secure.port}/x; {words} https://other.test:{secure.port}/v1/y",
                       policy=policy, env=outside(certificates))
    assert "hello from /x" in done.out and "issuer: CN=test CA" in done.err, done
    # The other one is the gate's, whom only the session trusts.
    assert "/v1/y" not in done.out and "atoll session" not in done.out, done
    assert not records(sandbox, done)


def test_the_key_is_nowhere_inside(sandbox, certificates, secure):
    done = sandbox.run("cat /run/atoll/ca.pem; grep -rls 'PRIVATE KEY' /run/atoll /etc/ssl /proc/*/environ; "
                       "ls /run/atoll", policy=rules(sandbox, secure.port), env=outside(certificates))
    assert done.out.startswith("-----BEGIN CERTIFICATE-----"), done
    assert done.out.endswith("ca-bundle.jks\nca-bundle.pem\nca.pem\ndenials.jsonl\nlimits.md\n") or \
        done.out.endswith("ca-bundle.pem\nca.pem\ndenials.jsonl\nlimits.md\n"), done
    assert done.out.count("\n") < 30
