# SPDX-License-Identifier: Apache-2.0
"""Unmodified E2B clients from npm against `atoll serve` (make check-agents; needs the npm registry)."""
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading
import urllib.request

import pytest

from service import DEGRADED, make_authority
from test_template import system, tar

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = pathlib.Path(os.environ.get("ATOLL_CLIENTS", ROOT / "build" / "clients"))
SCRIPT = ROOT / "tests" / "clients" / "e2b.mjs"
# The newest, and two that programs still carry.
VERSIONS = ("2.51.0", "2.38.3", "2.19.0")
TEMPLATE_SCRIPT = ROOT / "tests" / "clients" / "template.mjs"
INTERPRETER = "@e2b/code-interpreter"
INTERPRETER_SCRIPT = ROOT / "tests" / "clients" / "interpreter.mjs"
INTERPRETER_VERSION = "2.8.0"
# The requests to one host are read, so that a client may set headers of them.
READING = "network: {allow: [{host: read.example, ports: [443], http: [{methods: [GET]}]}]}\n"

STARTS = ("In the cloud the start command runs during the build, and its memory is part of the template. Here it runs "
          "anew in each sandbox: `Sandbox.create()` returns when the ready command has ended with 0. Images are those "
          "that `atoll template import` made; nothing is fetched from a registry.")

pytestmark = [
    pytest.mark.needs("npm", "node"),
    pytest.mark.skipif(os.environ.get("ATOLL_TESTS_AGENTS") != "1", reason="make check-agents runs these"),
]


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """Directory of a version of a package, installed once."""
    def install(version, name="e2b"):
        place = PLACE / name.replace("/", "-") / version
        if not (place / "node_modules" / name).exists():
            place.mkdir(parents=True, exist_ok=True)
            subprocess.run(["npm", "install", "--prefix", str(place), "--no-audit", "--no-fund", f"{name}@{version}"],
                           check=True, timeout=600)
        return place / "node_modules" / name
    return install


def word(line):
    return "-" if line.get("detail") == "not in this version" else "yes" if line["ok"] else "no"


@pytest.fixture(scope="session")
def results():
    """What each version could do; written as doc/e2b-clients.md where ATOLL_CLIENT_TABLE=1 (one process of pytest)."""
    seen = {}
    yield seen
    if os.environ.get("ATOLL_CLIENT_TABLE") != "1":
        return
    calls = [line["call"] for line in seen[VERSIONS[0]]]
    text = ("# What the npm package e2b can do\n\nMade by `ATOLL_CLIENT_TABLE=1` and `make check-agents`: "
            "each call of tests/clients/e2b.mjs against `atoll serve`.\n\n"
            f"| call | {' | '.join(VERSIONS)} |\n|---|{'---|' * len(VERSIONS)}\n")
    for at, call in enumerate(calls):
        text += f"| {call} | {' | '.join(word(seen[version][at]) for version in VERSIONS)} |\n"
    text += ("\nThe command line `@e2b/cli` 2.19.0 lists sandboxes, runs commands in them, measures and kills them, "
             "and shows their logs.\n")
    text += f"\n## Templates\n\nEach call of tests/clients/template.mjs.\n\n| call | {VERSIONS[0]} |\n|---|---|\n"
    for line in seen["templates"]:
        text += f"| {line['call']} | {word(line)} |\n"
    text += f"\n{STARTS}\n"
    text += (f"\n## {INTERPRETER}\n\nEach call of tests/clients/interpreter.mjs.\n\n"
             f"| call | {INTERPRETER_VERSION} |\n|---|---|\n")
    for line in seen[INTERPRETER]:
        text += f"| {line['call']} | {line.get('detail') or word(line)} |\n"
    (ROOT / "doc" / "e2b-clients.md").write_text(text, encoding="utf-8")


@pytest.fixture
def served(sandbox):
    """Variables for a client of `atoll serve`."""
    text = "atoll: 1\nextends: service-base\n" if sandbox.identity.is_root else DEGRADED
    policy = sandbox.policy(text + READING, "service-test.yaml")
    words = [str(sandbox.programs.atoll), "serve", "--listen", "127.0.0.1:0", "--json", "--policy", str(policy)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **sandbox.popen_keywords()) as server:
        said = json.loads(server.stdout.readline())
        yield {"E2B_API_KEY": said["key"], "E2B_API_URL": said["url"], "E2B_SANDBOX_URL": said["url"]}
        server.terminate()
        assert server.wait(30) == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_of_this_version(served, package, version, results):
    done = subprocess.run(["node", str(SCRIPT), str(package(version))], env={**os.environ, **served}, check=False,
                          capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) > 30, done.stderr
    results[version] = lines
    assert not [line for line in lines if not line["ok"]]


def test_a_client_of_the_code_interpreter(served, package, results):
    place = package(INTERPRETER_VERSION, INTERPRETER)
    done = subprocess.run(["node", str(INTERPRETER_SCRIPT), str(place)], env={**os.environ, **served}, check=False,
                          capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) > 20, done.stderr
    results[INTERPRETER] = lines
    assert not [line for line in lines if not line["ok"]]


@pytest.mark.needs("busybox")
def test_templates_of_the_newest_client(sandbox, served, package, results):
    """Built through the package, on this machine's system and on an imported one, which is used by its name as well."""
    file = sandbox.base / "own.tar"
    file.write_bytes(tar(*system()))
    sandbox.own(file)
    assert sandbox.run_atoll("template", "import", str(file), "own").code == 0
    done = subprocess.run(["node", str(TEMPLATE_SCRIPT), str(package(VERSIONS[0])), "own"], check=False,
                          env={**os.environ, **served}, capture_output=True, text=True, timeout=600)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) > 12, done.stderr
    results["templates"] = lines
    assert not [line for line in lines if not line["ok"]]


def test_the_newest_client_by_tls(sandbox, package):
    """It believes a CA of ours, and is told nothing else."""
    place = make_authority(sandbox, ["localhost"])
    words = [str(sandbox.programs.atoll), "serve", "--listen", "127.0.0.1:0", "--json",
             "--policy", str(sandbox.policy(DEGRADED + READING, "service-test.yaml")),
             "--tls-cert", str(place / "certificate.pem"), "--tls-key", str(place / "key.pem")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **sandbox.popen_keywords()) as server:
        said = json.loads(server.stdout.readline())
        url = said["url"].replace("127.0.0.1", "localhost")
        environment = {**os.environ, "E2B_API_KEY": said["key"], "E2B_API_URL": url, "E2B_SANDBOX_URL": url}
        words = ["node", str(SCRIPT), str(package(VERSIONS[0]))]
        done = subprocess.run(words, env={**environment, "NODE_EXTRA_CA_CERTS": str(place / "ca.pem")}, check=False,
                              capture_output=True, text=True, timeout=300)
        refused = subprocess.run(words, env=environment, check=False, capture_output=True, text=True, timeout=300)
        server.terminate()
        assert server.wait(60) == 0
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) > 30, done.stderr
    assert not [line for line in lines if not line["ok"]]
    first = json.loads(refused.stdout.splitlines()[0])
    assert first["call"] == "create" and not first["ok"], first


class Model(http.server.BaseHTTPRequestHandler):
    """Asks for each command in turn, and answers with what the last one wrote."""
    commands = ("seq 1 100 >numbers; whoami", "exit 3", "awk '{s+=$1} END {print s}' numbers")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.headers["Authorization"], body))
        results = [json.loads(one["content"]) for one in body["messages"] if one["role"] == "tool"]
        message = {"role": "assistant", "content": f"The sum is {results[-1]['stdout'].strip()}." if results else ""}
        if len(results) < len(self.commands):
            arguments = json.dumps({"command": self.commands[len(results)]})
            message = {"role": "assistant", "content": None, "tool_calls": [
                {"id": f"call-{len(results)}", "type": "function",
                 "function": {"name": "shell", "arguments": arguments}}]}
        text = json.dumps({"choices": [{"message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def test_the_agent_of_the_examples(served, package, tmp_path):
    """doc/examples/agent.mjs beside the package, as a newcomer has it; the model is ours."""
    shutil.copy(ROOT / "doc" / "examples" / "agent.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(package(VERSIONS[0]).parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model) as model:
        model.seen = []
        threading.Thread(target=model.serve_forever, daemon=True).start()
        environment = {**os.environ, **served, "MODEL_KEY": "sk-of-the-model",
                       "MODEL_URL": f"http://127.0.0.1:{model.server_address[1]}/v1"}
        done = subprocess.run(["node", "agent.mjs", "Add the numbers up to 100."], cwd=tmp_path, env=environment,
                              check=False, capture_output=True, text=True, timeout=300)
        model.shutdown()
    assert (done.returncode, done.stdout) == (0, "The sum is 5050.\n"), done
    assert [line[2:] for line in done.stderr.splitlines()] == list(Model.commands)
    results = [json.loads(one["content"]) for one in model.seen[-1][1]["messages"] if one["role"] == "tool"]
    assert results[0] == {"exit": 0, "stdout": "user\n", "stderr": ""} and results[1]["exit"] == 3, results
    assert model.seen[0][0] == "Bearer sk-of-the-model"
    request = urllib.request.Request(served["E2B_API_URL"] + "/v2/sandboxes",
                                     headers={"X-API-KEY": served["E2B_API_KEY"]})
    with urllib.request.urlopen(request) as answer:
        assert json.load(answer) == [], "it was killed"


def test_the_command_line_of_e2b(served, package, tmp_path):
    program = package("2.19.0", "@e2b/cli").parents[1] / ".bin" / "e2b"
    environment = {**os.environ, **served, "HOME": str(tmp_path)}

    def run(*words):
        done = subprocess.run([program, *words], env=environment, check=False, capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout + done.stderr
    request = urllib.request.Request(served["E2B_API_URL"] + "/v2/sandboxes", b'{"templateID":"base"}',
                                     {"X-API-KEY": served["E2B_API_KEY"], "Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        name = json.load(answer)["sandboxID"]
    status, listed = run("sandbox", "list", "--format", "json")
    assert status == 0 and [one["sandboxId"] for one in json.loads(listed)] == [name]
    assert run("sandbox", "exec", name, "echo hi") == (0, "hi\n")
    assert run("sandbox", "metrics", name)[0] == 0
    status, logs = run("sandbox", "logs", name, "--format", "json")
    assert status == 0 and {"session.start"} <= {json.loads(line)["message"].split()[0].rstrip(":")
                                                 for line in logs.splitlines() if line}, logs
    status, said = run("sandbox", "kill", name)
    assert status == 0 and "killed" in said
    assert json.loads(run("sandbox", "list", "--format", "json")[1]) == []
