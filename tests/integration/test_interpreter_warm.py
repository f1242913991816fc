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
VALUES = ("import json, os, random, ssl, sys, tempfile, uuid\n"
          "fds = [os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd') if int(fd) > 90]\n"
          "drawn = sys.modules['numpy'].random.random() if 'numpy' in sys.modules else random.random()\n"
          "print(json.dumps([random.random(), str(uuid.uuid4()), os.urandom(8).hex(), "
          "hash('a'), ssl.RAND_bytes(8).hex(), tempfile.mktemp(), str(uuid.uuid1()), "
          "drawn, str(sorted(fds)[:3]), os.path.exists('/home/user/left')]))")
# The same of other languages, and how long ago their driver began, in seconds.
DRAWN = {"javascript": "const { randomBytes, randomUUID } = require('crypto');\n"
                       "`${Math.random()} ${randomUUID()} ${randomBytes(8).toString('hex')}`",
         "bash": "echo $RANDOM$RANDOM$RANDOM $SRANDOM $(mktemp -u)"}
SECONDS = {"javascript": "process.uptime()", "bash": "read -r -a s </proc/$$/stat; read -r u _ </proc/uptime; "
                   "a=$((10#${u/./} - s[21])); printf '%d.%02d' $((a / 100)) $((a % 100))"}


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

    @staticmethod
    def port(made):
        return {"E2b-Sandbox-Id": made["sandboxID"], "E2b-Sandbox-Port": "49999",
                "X-Access-Token": made["envdAccessToken"]}

    def run(self, made, code, **more):
        """The text of the value of the code, or what it wrote."""
        status, lines = self.call("POST", "/execute", {"code": code, **more}, self.port(made))
        assert status == 200, lines
        lines = [json.loads(line) for line in lines.splitlines()]
        assert not [line for line in lines if line["type"] == "error"], lines
        return "".join(line["text"] for line in lines if line["type"] in ("result", "stdout"))

    def create_warm(self, age=AGE, wanted=None, **more):
        """One whose driver is older than the request for it: by and by there is one."""
        for _ in range(60):
            before = time.monotonic()
            made = self.create(**more)
            if float(self.run(made, age, **(wanted or {}))) > time.monotonic() - before + 0.05:
                return made
            assert self.call("DELETE", "/sandboxes/" + made["sandboxID"])[0] == 204
            time.sleep(1)
        raise AssertionError("none was started ahead")


@pytest.fixture
def service(sandbox):
    policy = sandbox.policy(POLICY, "interpreter.yaml")
    config = sandbox.project.parent / "preload.yaml"
    config.write_text("preload: [numpy, no.such.module]\n", encoding="utf-8")
    words = [str(sandbox.programs.atoll), "serve", "--listen", "127.0.0.1:0", "--json", "--policy", str(policy),
             "--config", str(config)]
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
        has_numpy = service.run(made, "import importlib.util\n"
                                "'numpy' in sys.modules, importlib.util.find_spec('numpy') is not None")
        assert has_numpy in ("(True, True)", "(False, False)"), "it was not loaded ahead"
        assert service.run(made, "open('/home/user/left', 'w').write('x'); os.getcwd()") == "/home/user"
        assert service.call("DELETE", "/sandboxes/" + made["sandboxID"])[0] == 204
        *values, has_left = json.loads(values)
        assert not has_left
        seen.append(values)
    # Nor do contexts of one sandbox.
    made = service.create_warm()
    for _ in range(2):
        status, context = service.call("POST", "/contexts", {"language": "python"}, service.port(made))
        assert status == 200
        *values, _ = json.loads(service.run(made, VALUES, context_id=json.loads(context)["id"]))
        seen.append(values)
    assert service.call("DELETE", "/sandboxes/" + made["sandboxID"])[0] == 204
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


@pytest.mark.parametrize("language", [pytest.param("javascript", marks=pytest.mark.needs("node")), "bash"])
def test_a_language_that_was_wanted_is_started_ahead(service, language):
    """From the second sandbox on, and what is drawn by chance there is its own."""
    wanted, seen = {"language": language}, set()
    for _ in range(2):
        made = service.create_warm(age=SECONDS[language], wanted=wanted)
        seen |= set(service.run(made, DRAWN[language], **wanted).split())
        # That of Python is there as well.
        assert service.run(made, "1 + 1") == "2"
        assert service.call("DELETE", "/sandboxes/" + made["sandboxID"])[0] == 204
    assert len(seen) == 6
