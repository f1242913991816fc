# SPDX-License-Identifier: Apache-2.0
"""The code interpreter in real sandboxes of `atoll serve`: those whose driver was started ahead, and that they share
nothing."""
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import pytest

# Users of a machine that has no limits for them; no network, which the interpreter does not need.
POLICY = """atoll: 1
extends: service-base
network: {default: deny}
degrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]
"""
# How long ago the driver began, in seconds; and what must differ from one sandbox to the next.
AGE = ("start = int(open('/proc/self/stat').read().rsplit(')', 1)[1].split()[19])\n"
       "import os; float(open('/proc/uptime').read().split()[0]) - start / os.sysconf('SC_CLK_TCK')")
VALUES = ("import os, random, ssl, tempfile, uuid\n[random.random(), str(uuid.uuid4()), os.urandom(8).hex(), "
          "hash('a'), ssl.RAND_bytes(8).hex(), tempfile.mktemp(), str(uuid.uuid1()), "
          "os.path.exists('/home/user/left')]")


class Service:
    def __init__(self, said):
        self.url, self.key = said["url"], said["key"]

    def call(self, method, path, body=None, headers=None):
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(),
                                         headers or {"X-API-KEY": self.key}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def create(self, **more):
        status, made = self.call("POST", "/v2/sandboxes", {"templateID": "code-interpreter-v1", "timeout": 300, **more})
        assert status == 201, made
        return json.loads(made)

    def run(self, made, code, **more):
        """The text of the value of the code."""
        status, lines = self.call("POST", "/execute", {"code": code, **more}, {
            "E2b-Sandbox-Id": made["sandboxID"], "E2b-Sandbox-Port": "49999",
            "X-Access-Token": made["envdAccessToken"]})
        assert status == 200, lines
        lines = [json.loads(line) for line in lines.splitlines()]
        assert not [line for line in lines if line["type"] == "error"], lines
        return next(line["text"] for line in lines if line["type"] == "result")

    def create_warm(self, **more):
        """One whose driver is older than the request for it: by and by there is one."""
        for _ in range(60):
            before = time.monotonic()
            made = self.create(**more)
            if float(self.run(made, AGE)) > time.monotonic() - before + 0.05:
                return made
            assert self.call("DELETE", "/sandboxes/" + made["sandboxID"])[0] == 204
            time.sleep(1)
        raise AssertionError("none was started ahead")


@pytest.fixture
def service(sandbox):
    policy = sandbox.policy(POLICY, "interpreter.yaml")
    words = [str(sandbox.programs.atoll), "serve", "--listen", "127.0.0.1:0", "--json", "--policy", str(policy)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **sandbox.popen_keywords()) as server:
        yield Service(json.loads(server.stdout.readline()))
        server.terminate()
        assert server.wait(60) == 0


CELLS = {"javascript": ("node", "const x = 20; x + 1", "21"), "r": ("R", "x <- 20; x + 1", "[1] 21"),
         "java": ("jshell", "int x = 20; x + 1", "21")}


def test_languages_of_the_host(service):
    """Those that are there; the others are tried where they are."""
    made = service.create()
    assert service.run(made, "1 + 1") == "2"
    for language, (program, code, wanted) in CELLS.items():
        if shutil.which(program):
            assert service.run(made, code, language=language) == wanted
    assert service.call("DELETE", "/sandboxes/" + made["sandboxID"])[0] == 204


def test_drivers_that_were_started_ahead_share_nothing(service, sandbox):
    seen = []
    for _ in range(3):
        made = service.create_warm()
        values = service.run(made, VALUES)
        assert service.run(made, "open('/home/user/left', 'w').write('x'); os.getcwd()") == "/home/user"
        assert service.call("DELETE", "/sandboxes/" + made["sandboxID"])[0] == 204
        *values, has_left = json.loads(values.replace("'", '"').replace("False", "false").replace("True", "true"))
        assert not has_left
        seen.append(values)
    for column in zip(*seen):
        assert len(set(column)) == len(seen), column
    # A variable for the whole sandbox comes to no driver that runs already.
    made = service.create(envVars={"MINE": "yes"})
    assert service.run(made, "import os; os.environ.get('MINE')") == "yes"
    assert service.call("DELETE", "/sandboxes/" + made["sandboxID"])[0] == 204
    # Its time is that of its client, and not that of those who wait.
    short = service.create_warm(timeout=8)
    end = time.monotonic() + 60
    while service.call("GET", "/sandboxes/" + short["sandboxID"])[0] == 200:
        assert time.monotonic() < end
        time.sleep(0.2)
    assert service.call("GET", "/sandboxes/nosuch")[0] == 404 and sandbox.project.exists()
