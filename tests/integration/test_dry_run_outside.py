# SPDX-License-Identifier: Apache-2.0
"""What a trial of `atoll dry-run` would reach outside: hosts, people, verifiers, records. Nothing of it is reached."""
import os

import pytest

from gate import LOOPBACK, Listener, Web, policy_text, test_hosts
from trial import Trials, changes, effects

STAGED = "files: {stage: [.]}\ndrop: [.]\n"


@pytest.fixture
def trials(sandbox):
    return Trials(sandbox)


def rules(sandbox, *hosts, more=""):
    return sandbox.policy(policy_text([*hosts, *LOOPBACK], STAGED + more), "network.yaml")


def outside(certificates):
    return {**test_hosts(), "SSL_CERT_FILE": str(certificates.ca)}


@pytest.mark.needs("openssl", "curl")
def test_a_request_is_held_back_and_sent_for_real(trials, certificates):
    web = Web(certificates.context())
    policy = rules(trials.sandbox, f"{{host: web.test, ports: [{web.port}], http: [{{methods: [GET]}}]}}")
    script = f"curl -sS https://web.test:{web.port}/secret > got; true"
    try:
        told = trials.tell(script, "--if-clean", policy=policy, env=outside(certificates), code=1)
        assert not web.requests and told["done"] == "undecided" and not told["clean"], told
        # One thing that goes out is one line: the request, and not its connection too.
        assert effects(told, "outgoing") == [f"http.request GET https://web.test:{web.port}/secret"], told
        done = trials.accept(told["trial"], code=1, env=outside(certificates))
        assert web.requests and web.requests[0][1] == "/secret", done
        assert "differs from what was shown" in done.err and "~ got" in done.err, done
    finally:
        web.close()


def test_a_connection_is_held_back(trials):
    listener = Listener()
    policy = rules(trials.sandbox, f"{{host: web.test, ports: [{listener.port}]}}")
    script = f"exec 3<>/dev/tcp/web.test/{listener.port} && echo out >&3; echo done > a; sleep 0.2"
    try:
        told = trials.tell(script, policy=policy, env=test_hosts())
        assert not listener.heard and effects(told, "outgoing") == [f"net.connect web.test:{listener.port}"], told
        trials.tell(script, "--yes", policy=policy, env=test_hosts())
        assert listener.heard == [b"out\n"]
    finally:
        listener.close()


def test_an_unlisted_host_is_refused_as_it_would_be(trials):
    policy = rules(trials.sandbox, more="")
    policy.write_text(policy.read_text().replace("network:\n", "network:\n  default: deny\n"))
    told = trials.tell("getent hosts other.test; echo a > a", "--if-clean", policy=policy, env=test_hosts(), code=1)
    assert any("net.dns other.test" in line for line in effects(told, "refused")), told
    assert not effects(told, "outgoing") and not effects(told, "asked") and told["done"] == "undecided", told
    # What the policy refuses it refuses for real as well: the trial is what would come of it.
    assert trials.tell("getent hosts other.test; echo a > a", "--yes", policy=policy)["done"] == "taken-over"


def test_who_logs_no_connections_shows_them_all_the_same(trials):
    listener = Listener()
    policy = rules(trials.sandbox, f"{{host: web.test, ports: [{listener.port}]}}", more="audit: {network: off}\n")
    try:
        told = trials.tell(f"exec 3<>/dev/tcp/web.test/{listener.port} && echo out >&3; true", "--if-clean",
                           policy=policy, env=test_hosts(), code=1)
        assert effects(told, "outgoing") and told["done"] == "undecided" and not listener.heard, told
    finally:
        listener.close()


def test_a_network_that_is_shared_is_none(trials):
    listener = Listener()
    policy = trials.sandbox.policy("atoll: 1\nextends: medium\n" + STAGED + "network: {default: allow, host: true}\n",
                                   "shared.yaml")
    script = f"exec 3<>/dev/tcp/127.0.0.1/{listener.port} && echo out >&3; echo a > a; sleep 0.2"
    try:
        told = trials.tell(script, "--if-clean", policy=policy, code=1)
        assert not listener.heard and told["writes_host"] and not told["clean"], told
        far = trials.tell("exec 3<>/dev/tcp/192.0.2.1/9; true", "--if-clean", policy=policy, code=1)
        assert effects(far, "outgoing") == ["net.connect 192.0.2.1:9"] and not effects(far, "refused"), far
        trials.tell(script, "--yes", policy=policy)
        assert listener.heard == [b"out\n"]
    finally:
        listener.close()


@pytest.mark.needs("openssl", "curl")
def test_a_recording_answers_the_trial(trials, certificates):
    web = Web(certificates.context())
    policy = rules(trials.sandbox, f"{{host: web.test, ports: [{web.port}], http: [{{methods: [GET]}}]}}")
    script = f"curl -sS https://web.test:{web.port}/page > got"
    tape = trials.sandbox.outside / "tape.jsonl"
    try:
        done = trials.sandbox.run(script, policy=policy, env=outside(certificates), options=["--record", tape])
        assert done.code == 0 and len(web.requests) == 1, done
    finally:
        web.close()
    told = trials.tell(script, "--replay", tape, policy=policy)
    assert told["exit"] == 0 and changes(told) == {"got": "added"} and effects(told, "outgoing"), told
    refused = trials.dry(script, "--replay", "/nowhere", policy=policy, code=125)
    assert refused.err.count("\n") <= 2, refused


def test_nobody_is_asked(trials):
    """Somebody listens to all questions of this user; a trial's are written down, and asked when it is real."""
    policy = trials.sandbox.policy("atoll: 1\nextends: medium\n" + STAGED + "exec: {ask: [{argv: [touch, '**']}]}\n",
                                   "ask.yaml")
    told = trials.tell("touch a; echo b > b", "--if-clean", policy=policy, code=1)
    assert effects(told, "asked") and changes(told) == {"b": "added"} and not told["clean"], told


def test_findings_are_shown_and_run_in_the_trial(trials):
    policy = trials.sandbox.policy("atoll: 1\nextends: medium\n" + STAGED +
                                   "verify: {critical: deny, high: ask, low: note}\n", "verify.yaml")
    told = trials.tell("mkdir -p d/x; bash -c 'rm -rf ~/'; true", "--if-clean", policy=policy, code=1)
    assert effects(told, "found") and not told["clean"], told


def test_a_verifier_is_not_told_of_a_trial(trials):
    """For real it is, so that nothing is taken over without it."""
    sandbox = trials.sandbox
    is_id = "case['action']['subject'].endswith('/id')"
    say = f"print(json.dumps({{'verdict': 'deny' if {is_id} else 'allow', 'reason': 'because'}}))"
    judge = sandbox.write(sandbox.base / "config" / "judge", "#!/usr/bin/python3\nimport json, sys\n"
                          f"case = json.load(sys.stdin)\n{say}\n", mode=0o755)
    policy = sandbox.policy("atoll: 1\nextends: medium\n" + STAGED +
                            f"verify: {{external: {{command: ['{judge}'], when: all}}}}\n", "judge.yaml")
    script = "/usr/bin/id > /dev/null && echo a > a; true"
    told = trials.tell(script, "--if-clean", policy=policy, code=1)
    assert changes(told) == {"a": "added"} and told["writes_host"] and not told["clean"], told
    assert "verify.external" not in {entry["type"] for entry in trials.log(told["trial"])}
    told = trials.tell(script, "--yes", policy=policy, code=1)
    assert told["done"] == "differs", told
    assert "verify.external" in {entry["type"] for entry in trials.log(told["session"])}


def test_a_touched_canary_is_shown(trials):
    policy = trials.sandbox.policy("atoll: 1\nextends: medium\n" + STAGED + "data: {canaries: [~/.aws/credentials]}\n"
                                   "monitor: {canary: freeze}\n", "canary.yaml")
    told = trials.tell("cat ~/.aws/credentials > /dev/null; echo a > a", "--if-clean", policy=policy, code=1)
    assert any("canary.touched" in line for line in effects(told, "found")) and not told["clean"], told
    # Nothing stood still: in a trial there is nobody to answer.
    assert told["exit"] == 0 and changes(told) == {"a": "added"}, told


def test_a_trial_is_held_against_nobody(trials):
    """Neither the record of its agent nor what is usual in this project takes notice; a run does."""
    policy = trials.sandbox.policy("atoll: 1\nextends: medium\n" + STAGED + "trust: {agent: bob, start: medium}\n"
                                   "monitor: {baseline: true, budget: 1/100, learn: 5}\n", "agent.yaml")
    script = "getent hosts unlisted.example; sudo true; echo a > a"

    def kept():
        root = trials.sandbox.state / "atoll"
        return {str(path.relative_to(root)): path.read_bytes() for name in ("trust", "baselines")
                for path in sorted((root / name).rglob("*")) if path.is_file()}

    before = kept()
    trials.tell(script, policy=policy)
    assert kept() == before
    trials.sandbox.run(script, policy=policy)
    assert kept() != before


def test_no_port_is_published_and_no_device_is_there(trials):
    policy = trials.sandbox.policy("atoll: 1\nextends: medium\n" + STAGED + "devices: [fuse]\n"
                                   "network: {publish: [{port: 8080, host: \"[::1]:0\"}]}\n", "doors.yaml")
    told = trials.tell("ls /dev/fuse; ss -ltn 2>/dev/null | wc -l; test -e /dev/fuse && echo > device; true",
                       policy=policy)
    assert "device" not in changes(told), told
    kinds = {entry["type"] for entry in trials.log(told["trial"])}
    assert "net.listen" not in kinds, kinds
    if os.path.exists("/dev/fuse"):
        done = trials.sandbox.run("test -e /dev/fuse", policy=policy)
        assert done.code == 0 and "net.listen" in {entry["type"] for entry in trials.log(done.session)}, done
        assert told["writes_host"]


def test_a_token_is_not_used_up_from_inside(trials):
    token = trials.sandbox.run_atoll("token", "mint", "--allow", "exec=/usr/bin/touch", "--uses", "1").out
    script = f"printf %s '{token.strip()}' | /run/atoll/bin/atoll-request token && echo taken > taken; true"
    told = trials.tell(script)
    assert not changes(told), told
    ledger = trials.sandbox.state / "atoll" / "tokens" / "log.jsonl"
    assert not ledger.exists() or '"allow"' not in ledger.read_text()
    # The control: it is taken once, in a run.
    done = trials.sandbox.run(script + "; cat taken", policy=trials.policy)
    assert "taken" in done.out, done
    assert '"allow"' in ledger.read_text()


def test_the_log_says_that_it_is_a_trial(trials):
    told = trials.tell("true")
    start = trials.log(told["trial"])[0]
    assert start["detail"]["trial"] is True and start["detail"]["tape"] == "replay", start
    assert "trial" not in trials.log(trials.run("true").session)[0]["detail"]
