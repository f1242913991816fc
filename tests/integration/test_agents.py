# SPDX-License-Identifier: Apache-2.0
"""Real agents start under the policies that are shipped for them, and work with keys that stay outside (make
check-agents; needs the npm registry)."""
import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time
import urllib.parse

import pytest
import yaml
from pexpect import EOF, TIMEOUT

from atoll import ROOT, wait_until
from gate import LOOPBACK, Web, policy_text, test_hosts
from issuer import ACCOUNT, Issuer, challenge_of
from model import SENTENCE, Model

PLACE = pathlib.Path(os.environ.get("ATOLL_AGENTS", ROOT / "build" / "agents"))
# Shipped policy: npm package, program.
AGENTS = {
    "claude": ("@anthropic-ai/claude-code", "claude"),
    "codex": ("@openai/codex", "codex"),
    "gemini": ("@google/gemini-cli", "gemini"),
    "opencode": ("opencode-ai", "opencode"),
}

pytestmark = [
    pytest.mark.needs("npm", "node"),
    pytest.mark.skipif(os.environ.get("ATOLL_TESTS_AGENTS") != "1", reason="make check-agents runs these"),
]


@pytest.fixture(scope="session")
def packages():
    """Installed once, outside of the repository's own files."""
    missing = [package for package, program in AGENTS.values() if not (PLACE / "node_modules/.bin" / program).exists()]
    if missing:
        PLACE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--prefix", str(PLACE), "--no-audit", "--no-fund", *missing], check=True,
                timeout=900)
    return PLACE / "node_modules"


@pytest.fixture
def installed(sandbox, packages):
    """As a person installs them: below the home, in the prefix of `npm install -g`."""
    place = sandbox.home / ".local" / "lib" / "node_modules"
    sandbox.make_directory(place.parent)
    # A gigabyte: linked where that can be, as an administrator's files that everybody may read.
    if subprocess.run(["cp", "-al", str(packages), str(place)], check=False, capture_output=True).returncode != 0:
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run(["cp", "-a", str(packages), str(place)], check=True)
    bin_directory = sandbox.make_directory(sandbox.home / ".local" / "bin")
    for _, program in AGENTS.values():
        link = bin_directory / program
        link.symlink_to(os.path.join("../lib/node_modules/.bin", program))
        sandbox.own(link)
    yield bin_directory
    shutil.rmtree(sandbox.home / ".local")


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_prints_its_version_and_help(sandbox, installed, agent):
    program = AGENTS[agent][1]
    env = {"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin"}
    for word in ("--version", "--help"):
        outside = sandbox.run_outside([program, word], env=env, timeout=120)
        if outside.code != 0:
            pytest.skip(f"{program} {word} does not work without a sandbox either: {outside.err[-200:]}")
        done = sandbox.run([program, word], policy=agent, env=env, timeout=120, options=["-q"])
        assert done.code == 0, (word, done)
        assert (done.out + done.err).split()[:1] == (outside.out + outside.err).split()[:1], (word, outside, done)


# How each one is told to write a file, where its server is, and what its key is called.
TASKS = {
    "claude": {
        "words": ["claude", "-p", "write the file", "--permission-mode", "acceptEdits"],
        "url": "ANTHROPIC_BASE_URL=https://web.test:{port}", "inject": "header: x-api-key",
        "env": "ANTHROPIC_API_KEY", "key": "sk-ant-api03-Zk3vQ9mB7xLpT2wRfYcD8hJn", "header": "x-api-key",
    },
    "codex": {
        "words": ["codex", "exec", "--skip-git-repo-check",
                  "-m", "gpt-4.1", "-c", "model_provider=test", "-c", "model_providers.test.name=test",
                  "-c", "model_providers.test.base_url=https://web.test:{port}/v1",
                  "-c", "model_providers.test.env_key=OPENAI_API_KEY", "-c", "model_providers.test.wire_api=responses",
                  "write the file"],
        "url": "CODEX_QUIET_MODE=1", "inject": "header: Authorization, kind: bearer",
        "env": "OPENAI_API_KEY", "key": "sk-proj-Hn4cT8wQm2LxVb7yRf3pKd9sJz", "header": "authorization",
    },
    "opencode": {
        "words": ["opencode", "run", "-m", "anthropic/claude-sonnet-4-5", "write the file"],
        "url": "OPENCODE_QUIET=1", "inject": "header: x-api-key",
        "env": "ANTHROPIC_API_KEY", "key": "sk-ant-api03-Wq8nT4vKx2LmB7yRf3pZd9sJ", "header": "x-api-key",
    },
    "gemini": {
        "words": ["gemini", "-y", "-p", "write the file", "-m", "gemini-2.5-flash"],
        "url": "GOOGLE_GEMINI_BASE_URL=https://web.test:{port}", "inject": "header: x-goog-api-key",
        "env": "GEMINI_API_KEY", "key": "AIzaSyD3kQm9Lx2VbT7yRf4pKc8sJzHn5wE6uG", "header": "x-goog-api-key",
    },
}


def prepare(sandbox, agent, model):
    """What an agent takes from its settings alone: how it logs in, where its server is."""
    if agent == "gemini":
        sandbox.write(sandbox.home / ".gemini" / "settings.json", json.dumps(
            {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}}))
    if agent == "opencode":
        sandbox.write(sandbox.home / ".config" / "opencode" / "opencode.json", json.dumps(
            {"provider": {"anthropic": {"options": {"baseURL": f"https://web.test:{model.port}/v1"}}}}))


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("agent", TASKS)
def test_an_agent_does_a_task_with_a_key_that_it_does_not_have(sandbox, installed, certificates, agent):
    task = TASKS[agent]
    wanted = sandbox.project / "hello.py"
    model = Model(certificates.context(), wanted, "print('hello')\n")
    try:
        kept = sandbox.run_atoll("secret", "set", "model", stdin=task["key"].encode())
        assert kept.code == 0, kept
        rule = (f"{{host: web.test, ports: [{model.port}], inject: {{{task['inject']}, secret: model, "
                f"env: {task['env']}}}}}")
        policy = sandbox.policy(policy_text([rule, *LOOPBACK], extends=agent))
        prepare(sandbox, agent, model)
        done = sandbox.run([word.format(port=model.port) for word in task["words"]], policy=policy, timeout=150,
                           options=["-e", task["url"].format(port=model.port)],
                           env={"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin", **test_hosts(),
                                "SSL_CERT_FILE": str(certificates.ca), task["env"]: "the caller's own"})
        assert done.code == 0, (done, [path for path, _, _ in model.seen])
        assert model.seen and all(task["key"] in headers.get(task["header"], "") for _, headers, _ in model.seen), (
            done, model.seen)
        # Staged, then applied: the host has it only now.
        assert not wanted.exists()
        applied = sandbox.run_atoll("apply", done.session)
        assert applied.code == 0 and wanted.read_text() == "print('hello')\n", (applied, done)
        # And taken back.
        undone = sandbox.run_atoll("undo", done.session)
        assert undone.code == 0 and not wanted.exists(), undone
        # The key is in nothing that the agent said or left, nor in the log, which names it.
        log = sandbox.audit_log(done.session).read_text()
        assert task["key"] not in done.out + done.err + log and '"secrets":["model"]' in log
        left = [path for path in sandbox.base.rglob("*") if path.is_file() and not path.is_symlink()
                and ".local" not in path.parts and task["key"].encode() in path.read_bytes()]
        assert not left, left
    finally:
        model.close()


# --- The first log-in: by a browser, which comes back to a port inside, and by a code. ---

ISSUER = "127.0.45.3"


@contextlib.contextmanager
def alone(name):
    """One test at a time: a program has one port for this, whoever runs it."""
    with open(f"/tmp/atolltest-{name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def login(sandbox, installed, certificates, words, browser):
    """Runs it; browser(line of output) is called for each. The port is 443, as the policy has it: needs root."""
    policy = sandbox.policy("atoll: 1\nextends: codex\ndrop: [auth.openai.com]\nnetwork:\n  allow:\n"
                            "    - {host: auth.openai.com, ports: [443], http: [{paths: [\"/**\"]}]}\n"
                            "    - {cidr: 127.0.0.0/8}\n")
    child = sandbox.popen(words, policy=policy, stderr=subprocess.STDOUT,
                          env={"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE": certificates.ca,
                               "ATOLL_TEST_HOSTS": f"auth.openai.com={ISSUER}"})
    said = []
    timer = threading.Timer(40, child.kill)
    timer.start()
    for line in child.stdout:
        said.append(line.decode())
        browser(said[-1])
    timer.cancel()
    return child.wait(), "".join(said)


@pytest.mark.only("user")
@pytest.mark.parametrize("agent", AGENTS)
def test_a_policy_alone_starts_its_agent(sandbox, installed, agent):
    """`atoll run -p claude`: no command, no flag; what it keeps is there afterwards."""
    child = sandbox.spawn([], policy=agent, env={"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin"}, size=(40, 160))
    child.expect({"claude": b"Claude", "codex": b"Codex|ChatGPT", "gemini": b"Gemini|Google|auth",
                  "opencode": b"opencode|models|Ask"}[agent], timeout=60)
    child.close(force=True)
    kept = {"claude": ".claude.json", "codex": ".codex", "gemini": ".gemini", "opencode": ".local/share/opencode"}
    assert (sandbox.home / kept[agent]).exists()


def check_login(sandbox, installed, code, said, issuer):
    assert code == 0, (said, issuer.seen)
    # It is on the host, closed to others, and there at the next start.
    kept = sandbox.home / ".codex" / "auth.json"
    assert json.loads(kept.read_text())["tokens"]["account_id"] == ACCOUNT and kept.stat().st_mode & 0o77 == 0
    done = sandbox.run(["codex", "login", "status"], policy="codex",
                       env={"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin"})
    assert done.code == 0 and "Logged in using ChatGPT" in done.out + done.err, done


@pytest.mark.needs("openssl")
def test_codex_logs_in_by_a_browser_of_the_host(sandbox, installed, certificates):
    visits = []

    def browser(line):
        found = re.search(r"https://auth\.openai\.com/oauth/authorize\?(\S+)", line)
        if not found:
            return
        query = dict(urllib.parse.parse_qsl(found[1]))
        back = urllib.parse.urlsplit(query["redirect_uri"])
        where = f"{back.path}?" + urllib.parse.urlencode({"code": "code-1", "state": query["state"]})
        while where:
            visit = http.client.HTTPConnection("127.0.0.1", back.port, timeout=20)
            visit.request("GET", where)
            answer = visit.getresponse()
            visits.append((answer.status, query["code_challenge"]))
            onward = urllib.parse.urlsplit(answer.headers.get("Location") or "")
            where = f"{onward.path}?{onward.query}" if onward.path else None

    with alone("login"):
        issuer = Issuer(certificates.context(), ISSUER, 443)
        try:
            code, said = login(sandbox, installed, certificates, ["codex", "login"], browser)
            check_login(sandbox, installed, code, said, issuer)
            status, challenge = visits[-1]
            exchanged, = issuer.exchanged()
            assert status == 200 and challenge_of(exchanged["code_verifier"]) == challenge
            assert "port 1455 of the sandbox is 127.0.0.1:1455" in said
        finally:
            issuer.close()


@pytest.mark.needs("openssl")
def test_codex_logs_in_by_a_device_code(sandbox, installed, certificates):
    with alone("login"):
        issuer = Issuer(certificates.context(), ISSUER, 443)
        try:
            code, said = login(sandbox, installed, certificates, ["codex", "login", "--device-auth"], lambda line: None)
            check_login(sandbox, installed, code, said, issuer)
            assert "ABCD-12345" in said
        finally:
            issuer.close()


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("agent", TASKS)
def test_an_agent_takes_a_checkpoint_at_the_end_of_its_turn(sandbox, installed, certificates, agent):
    """By its own hook: the shipped policy sets it up, for Gemini CLI where it makes the settings."""
    task = TASKS[agent]
    model = Model(certificates.context(), sandbox.project / "hello.py", "print('hello')\n")
    try:
        assert sandbox.run_atoll("secret", "set", "model", stdin=task["key"].encode()).code == 0
        rule = (f"{{host: web.test, ports: [{model.port}], inject: {{{task['inject']}, secret: model, "
                f"env: {task['env']}}}}}")
        if agent == "gemini":
            # Of the settings that the first start makes only the way to log in is another one here.
            shipped = yaml.safe_load((ROOT / "policies" / "agents" / "gemini-key.yaml").read_text())
            state, = [entry for entry in shipped["agent"]["state"] if entry["path"] == "~/.gemini/settings.json"]
            sandbox.write(sandbox.home / ".gemini" / "settings.json", state["content"])
            sandbox.write(sandbox.home / ".gemini" / "trustedFolders.json",
                          json.dumps({str(sandbox.project): "TRUST_FOLDER"}))
        if agent == "opencode":
            own = sandbox.home / ".config" / "opencode" / "own.js"
            sandbox.write(own, 'export const Own = async () => { require("fs").writeFileSync("own", ""); return {} }\n')
            sandbox.write(own.parent / "opencode.json", json.dumps(
                {"provider": {"anthropic": {"options": {"baseURL": f"https://web.test:{model.port}/v1"}}},
                 "plugin": [f"file://{own}"]}))
        done = sandbox.run([word.format(port=model.port) for word in task["words"]], timeout=150,
                           policy=sandbox.policy(policy_text([rule, *LOOPBACK], extends=agent)),
                           options=["-e", task["url"].format(port=model.port)],
                           env={"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin", **test_hosts(),
                                "SSL_CERT_FILE": str(certificates.ca), task["env"]: "the caller's own"})
        assert done.code == 0, done
        listed = json.loads(sandbox.run_atoll("checkpoints", "--json", done.session).out)
        changed = {change["path"] for turn in listed for change in turn["changes"]}
        # What the person has of plugins is there beside it.
        wanted = {"hello.py", "own"} if agent == "opencode" else {"hello.py"}
        assert {str(sandbox.project / name) for name in wanted} <= changed, (listed, done)
    finally:
        model.close()


# How each one is let run a command without asking its user, and what a result is called that it sends to its model.
RUNS = {"claude": ("--allowedTools=Bash", "tool_result"), "codex": (None, "function_call_output"),
        "opencode": (None, "tool_result"), "gemini": (None, "functionResponse")}


def answer_questions(sandbox, host, child):
    """Yes to what is asked about this host, by `atoll ask` in another terminal (user) or `atoll approve` (root)."""
    def questions():
        listed = json.loads(sandbox.run_atoll("ask", "--once", "--json").out or "[]")
        return [question for question in listed if host in question["subject"]]

    if sandbox.identity.is_root:
        wait_until(questions, 60, "the question is there")
        said = sandbox.run_atoll("approve", questions()[0]["question"])
        assert said.code == 0, said
        return
    asking = sandbox.spawn([sandbox.programs.atoll, "ask"], outside=True, size=(40, 160))
    while child.poll() is None:
        # Agents ask for other hosts as well.
        if asking.expect([rb"([a-z0-9]{12}:[0-9]+): y yes", TIMEOUT], timeout=1) == 0:
            number = asking.match[1].decode()
            asking.sendline(b"y" if number in [question["question"] for question in questions()] else b"n")
    asking.close(force=True)


@pytest.mark.needs("openssl", "curl")
@pytest.mark.parametrize("agent", TASKS)
def test_an_agent_is_refused_asks_and_goes_on(sandbox, installed, certificates, agent):
    """A host is refused and why is in its view; it asks, a person says yes, and the same command works."""
    task, (option, kind) = TASKS[agent], RUNS[agent]
    web = Web()
    fetch = f"curl -sS http://other.test:{web.port}/data"
    ask = f"/run/atoll/bin/atoll-request net.connect other.test:{web.port} -r 'the data of the task'"
    # The reason is where limits.md says that it is; until somebody listens there is nobody to ask.
    model = Model(certificates.context(), "", "", commands=[
        f"{fetch} || grep other.test /run/atoll/denials.jsonl",
        f"until {ask}; do sleep 1; done", fetch])
    try:
        kept = sandbox.run_atoll("secret", "set", "model", stdin=task["key"].encode())
        assert kept.code == 0, kept
        rule = (f"{{host: web.test, ports: [{model.port}], inject: {{{task['inject']}, secret: model, "
                f"env: {task['env']}}}}}")
        policy = sandbox.policy(policy_text([rule, *LOOPBACK], extends=agent))
        prepare(sandbox, agent, model)
        words = [word.format(port=model.port) for word in task["words"]] + [option] * bool(option)
        child = sandbox.popen(words, policy=policy,
                              options=["-e", task["url"].format(port=model.port)],
                              env={"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin", **test_hosts(),
                                   "SSL_CERT_FILE": str(certificates.ca), task["env"]: "the caller's own"})
        timer = threading.Timer(150, child.kill)
        timer.start()
        wait_until(lambda: model.results(kind), 100, "the refusal is known")
        answer_questions(sandbox, "other.test", child)
        out, err = child.communicate()
        timer.cancel()
        told = model.results(kind)
        assert child.returncode == 0 and told, (out, err, [path for path, _, _ in model.seen])
        # Each result as the model heard it: the reason and the way out, the yes, the data.
        assert "network.default" in told[0] and "hello from" not in told[0], told[0][-1500:]
        assert "a person allowed this" in told[-1] and "hello from /data" in told[-1], told[-1][-1500:]
        assert len(web.requests) == 1 and SENTENCE.encode() in out, (web.requests, out, err)
    finally:
        model.close()
        web.close()


@pytest.mark.needs("openssl")
def test_claude_logs_in_by_a_code_that_is_pasted(sandbox, installed, certificates):
    rules = "".join(f"    - {{host: {host}, ports: [443], http: [{{paths: [\"/**\"]}}]}}\n"
                    for host in ("platform.claude.com", "api.anthropic.com"))
    policy = sandbox.policy("atoll: 1\nextends: claude\ndrop: [platform.claude.com, api.anthropic.com]\nnetwork:\n"
                            f"  allow:\n{rules}    - {{cidr: 127.0.0.0/8}}\n")
    env = {"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE": str(certificates.ca),
           "ATOLL_TEST_HOSTS": f"platform.claude.com={ISSUER},api.anthropic.com={ISSUER}"}
    with alone("login"):
        issuer = Issuer(certificates.context(), ISSUER, 443)
        try:
            child = sandbox.spawn(["claude", "auth", "login"], policy=policy, env=env, size=(40, 2000))
            child.expect(rb"state=([A-Za-z0-9_-]+)", timeout=40)
            state = child.match[1].decode()
            child.expect(b"Paste code here", timeout=20)
            child.sendline(f"code-1#{state}".encode())
            child.expect(EOF, timeout=40)
            child.close()
            assert issuer.exchanged(), (child.before, issuer.seen)
            kept = json.loads((sandbox.home / ".claude" / ".credentials.json").read_text())
            assert kept["claudeAiOauth"]["refreshToken"] == "refresh-atolltest"
            done = sandbox.run(["claude", "auth", "status"], policy=policy, env=env)
            assert done.code == 0 and "user@example.org" in done.out, done
        finally:
            issuer.close()


@pytest.mark.needs("openssl")
def test_gemini_logs_in_by_a_code_that_is_pasted(sandbox, installed, certificates):
    policy = sandbox.policy("atoll: 1\nextends: gemini\ndrop: [oauth2.googleapis.com]\nnetwork:\n  allow:\n"
                            "    - {host: oauth2.googleapis.com, ports: [443], http: [{paths: [\"/**\"]}]}\n"
                            "    - {cidr: 127.0.0.0/8}\n")
    env = {"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE": str(certificates.ca),
           "ATOLL_TEST_HOSTS": f"oauth2.googleapis.com={ISSUER}"}
    with alone("login"):
        issuer = Issuer(certificates.context(), ISSUER, 443)
        try:
            child = sandbox.spawn([], policy=policy, env=env, size=(40, 2000))
            child.expect(b"authorization code", timeout=60)
            time.sleep(1)
            child.send(b"code-1\r")
            kept = sandbox.home / ".gemini" / "oauth_creds.json"
            wait_until(lambda: kept.exists() and kept.stat().st_size, 40, "the log-in is kept")
            assert json.loads(kept.read_text())["refresh_token"] == "refresh-atolltest"
            assert kept.stat().st_mode & 0o77 == 0 and issuer.exchanged()
            child.close(force=True)
        finally:
            issuer.close()


def opencode_kept(sandbox, installed, provider):
    """What it kept, closed to others, and there at the next start."""
    kept = sandbox.home / ".local" / "share" / "opencode" / "auth.json"
    assert kept.stat().st_mode & 0o77 == 0
    done = sandbox.run(["opencode", "auth", "list"], policy="opencode",
                       env={"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin"})
    assert done.code == 0 and "1 credentials" in done.out + done.err, done
    return json.loads(kept.read_text())[provider]


def test_opencode_takes_a_key_that_is_pasted(sandbox, installed):
    env = {"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin"}
    child = sandbox.spawn(["opencode", "auth", "login"], policy="opencode", env=env, size=(40, 160))
    child.expect(b"Select provider", timeout=60)
    # It draws the list again for each letter.
    for letter in "anthropic":
        child.send(letter)
        child.expect(letter.encode(), timeout=20)
    child.expect(rb"2 matches", timeout=20)
    child.send(b"\r")
    child.expect(b"Enter your API key", timeout=20)
    child.send(TASKS["opencode"]["key"].encode() + b"\r")
    child.expect(EOF, timeout=40)
    assert opencode_kept(sandbox, installed, "anthropic") == {"type": "api", "key": TASKS["opencode"]["key"]}


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("way", ["headless", "browser"])
def test_opencode_logs_in_with_chatgpt(sandbox, installed, certificates, way):
    """By a device code, or by a browser of the host, which comes back to a port inside."""
    policy = sandbox.policy("atoll: 1\nextends: opencode\ndrop: [auth.openai.com]\nnetwork:\n  allow:\n"
                            "    - {host: auth.openai.com, ports: [443], http: [{paths: [\"/**\"]}]}\n"
                            "    - {cidr: 127.0.0.0/8}\n")
    env = {"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE": str(certificates.ca),
           "ATOLL_TEST_HOSTS": f"auth.openai.com={ISSUER}"}
    with alone("login"):
        issuer = Issuer(certificates.context(), ISSUER, 443)
        try:
            child = sandbox.spawn(["opencode", "auth", "login", "-p", "openai", "-m", f"ChatGPT Pro/Plus ({way})"],
                                  policy=policy, env=env, size=(40, 2000))
            if way == "headless":
                child.expect(b"ABCD-12345", timeout=60)
            else:
                child.expect(rb"https://auth\.openai\.com/oauth/authorize\?(\S+)", timeout=60)
                query = dict(urllib.parse.parse_qsl(child.match[1].decode()))
                back = urllib.parse.urlsplit(query["redirect_uri"])
                where = f"{back.path}?" + urllib.parse.urlencode({"code": "code-1", "state": query["state"]})
                wait_until(lambda: answers(back.port, where), 20, "the port is open")
            child.expect(EOF, timeout=60)
            kept = opencode_kept(sandbox, installed, "openai")
            assert kept["type"] == "oauth" and kept["refresh"] == "refresh-atolltest" and issuer.exchanged(), kept
        finally:
            issuer.close()


def answers(port, where):
    """A browser of this machine: False as long as nobody listens."""
    visit = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        visit.request("GET", where)
        return visit.getresponse().status == 200
    except OSError:
        return False


@pytest.mark.needs("openssl")
def test_claude_asks_its_first_questions_once(sandbox, installed, certificates):
    """How it shall look, whether it may use the key that it sees, whether the folder is trusted."""
    sandbox.run_atoll("secret", "set", "anthropic", stdin=TASKS["claude"]["key"].encode())
    policy = sandbox.policy("atoll: 1\nextends: claude-key\ndrop: [platform.claude.com]\nnetwork:\n  allow:\n"
                            "    - {host: platform.claude.com, ports: [443], http: [{paths: [\"/**\"]}]}\n"
                            "    - {cidr: 127.0.0.0/8}\n")
    env = {"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin", "SSL_CERT_FILE": str(certificates.ca),
           "ATOLL_TEST_HOSTS": f"platform.claude.com={ISSUER},api.anthropic.com={ISSUER}"}
    # A word of each screen, for it moves the cursor between words; and what answers it.
    questions = [(b"Syntax", b"\r"), (b"Detected", b"\x1b[A"), (b"confirm", b"\r"), (b"continue", b"\r"),
                 (b"Accessing", b"\r")]
    with alone("login"):
        issuer = Issuer(certificates.context(), ISSUER, 443)
        try:
            first = sandbox.spawn([], policy=policy, env=env, size=(50, 140))
            for word, key in questions:
                first.expect(word, timeout=40)
                time.sleep(1)
                first.send(key)
            first.expect(b"shortcuts", timeout=40)
            first.close(force=True)
            again = sandbox.spawn([], policy=policy, env=env, size=(50, 140))
            again.expect(b"shortcuts", timeout=40)
            assert not [word for word, _ in questions if word in again.before], again.before[-2000:]
            again.close(force=True)
        finally:
            issuer.close()


@pytest.mark.only("user")
@pytest.mark.needs("bwrap")
def test_codex_keeps_its_own_sandbox_where_a_policy_says_so(sandbox, installed):
    """It starts commands in bwrap: what it closes is closed, as outside."""
    env = {"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin"}
    words = ["codex", "sandbox", "--", "sh", "-c", "touch here /tmp/there || echo closed; grep -c . /proc/mounts"]
    outside = sandbox.run_outside(words, env=env, timeout=60)
    assert outside.code == 0 and outside.out.startswith("closed\n"), outside
    policy = sandbox.policy("atoll: 1\nextends: codex\nexec: {namespaces: mounts}\nresources: {memory: unlimited}\n")
    done = sandbox.run(words, policy=policy, env=env, timeout=60)
    assert done.code == 0 and done.out.startswith("closed\n"), done
    refused = sandbox.run(words, policy="codex", env=env, timeout=60)
    assert refused.code != 0 and "closed" not in refused.out, refused


# A word of each question at the first start with its answer, and of the screen where it takes work.
FIRST = {"codex": ([], b"anything"), "gemini": ([(b"Don't trust", b"\r"), (b"restarting", b"")], b"Authenticated with")}


@pytest.mark.only("user")
@pytest.mark.parametrize("agent", FIRST)
def test_an_agent_asks_its_first_questions_once(sandbox, installed, agent):
    env = {"PATH": f"{installed}:/usr/local/bin:/usr/bin:/bin"}
    questions, ready = FIRST[agent]
    policy = agent
    if agent == "gemini":
        sandbox.run_atoll("secret", "set", "gemini", stdin=TASKS["gemini"]["key"].encode())
        policy = "gemini-key"
    else:
        done = sandbox.run(["codex", "login", "--with-api-key"], policy=policy, env=env,
                           stdin=TASKS["codex"]["key"].encode())
        assert done.code == 0, done
    for start in (questions, []):
        child = sandbox.spawn([], policy=policy, env=env, size=(50, 140))
        for word, key in start:
            child.expect(word, timeout=60)
            time.sleep(1)
            child.send(key)
        # A terminal says where its cursor is.
        while child.expect([ready, b"\x1b\\[6n"], timeout=60):
            child.send(b"\x1b[1;1R")
        assert not [word for word, _ in questions if not start and word in child.before], child.before[-2000:]
        assert b"Trust" not in child.before or start, child.before[-2000:]
        child.close(force=True)
    # Only inside: the host's own settings say nothing of it.
    if agent == "codex":
        assert (sandbox.home / ".codex" / "config.toml").read_text() == ""
