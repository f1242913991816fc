# SPDX-License-Identifier: Apache-2.0
"""Functions of `atoll serve`: what they are given and give back, what they cannot do, and that nothing passes from one
invocation to the next."""
import base64
import contextlib
import http.client
import io
import json
import subprocess
import tarfile
import threading
import time
import urllib.error
import urllib.request

import pytest

from atoll import wait_until

# Users of a machine that has no limits for them. What a function may reach, it says itself.
POLICY = """atoll: 1
extends: service-base
degrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]
"""
ECHO = "def handler(event, context):\n    return event\n"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def message(self):
        return self.json()["message"]


def archive(files):
    """name: text, or (text, mode), or TarInfo."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                made.addfile(content)
                continue
            text, mode = content if isinstance(content, tuple) else (content, 0o644)
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text.encode()), mode
            made.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


class Service:
    def __init__(self, said, sandbox):
        self.url, self.key, self.sandbox = said["url"], said["key"], sandbox

    def call(self, method, path, body=None, key=None):
        request = urllib.request.Request(self.url + path, body, {"X-API-KEY": key or self.key}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def deploy(self, name, files, runtime="python", entry="main.py:handler", key=None, **more):
        if isinstance(files, str):
            files = {"main.py": files}
        packed = files if isinstance(files, bytes) else archive(files)
        body = {"name": name, "runtime": runtime, "entry": entry, "archive": base64.b64encode(packed).decode(), **more}
        return self.call("POST", "/functions", json.dumps(body).encode(), key)

    def invoke(self, name, event=None, key=None):
        return self.call("POST", f"/functions/{name}/invoke", b"" if event is None else json.dumps(event).encode(), key)

    def result(self, name, event=None):
        answer = self.invoke(name, event)
        assert answer.status == 200, answer.body
        return answer.json()

    def wait_warm(self, name):
        end = time.monotonic() + 60
        while not self.call("GET", f"/functions/{name}").json()["warm"]:
            assert time.monotonic() < end, self.call("GET", f"/functions/{name}").body
            time.sleep(0.05)

    def add_key(self, name, *words):
        done = subprocess.run([str(self.sandbox.programs.atoll), "serve", "key", "add", name, *words], check=True,
                              capture_output=True, text=True, **self.sandbox.popen_keywords())
        return done.stdout.strip()


@contextlib.contextmanager
def served(sandbox, key=None):
    policy = sandbox.policy(POLICY, "functions.yaml")
    words = [str(sandbox.programs.atoll), "serve", "--listen", "127.0.0.1:0", "--json", "--policy", str(policy)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **sandbox.popen_keywords()) as server:
        made = Service({"key": key, **json.loads(server.stdout.readline())}, sandbox)
        made.policy, made.process = policy, server
        yield made
        if server.poll() is None:
            server.terminate()
            assert server.wait(60) == 0


@pytest.fixture
def service(sandbox):
    with served(sandbox) as made:
        yield made


def test_each_runtime(service):
    files = {"main.py": "import os, sys\n"
             "async def handler(event, context):\n"
             "    print('out', context.invocation); print('error', file=sys.stderr)\n"
             "    return [event, os.environ['MINE'], context.function, 0 < context.remaining_ms() <= 30000]\n",
             "main.js": "exports.handler = async (event, context) => {\n"
             "  console.log('out', context.invocation)\n"
             "  return [event, process.env.MINE, context.function, context.remainingMs() > 0] }\n",
             "main.mjs": "export const handler = (event) => event\n",
             "bin/run": ("#!/bin/sh\necho out $ATOLL_INVOCATION >&2\n"
                         "printf '%s %s ' \"$MINE\" \"$ATOLL_FUNCTION\"\ncat\n", 0o755)}
    env = {"MINE": "a b"}
    for runtime, entry in (("python", "main.py:handler"), ("javascript", "main.js:handler")):
        made = service.deploy(runtime, files, runtime, entry, envVars=env)
        assert made.status == 201, made.body
        assert made.json()["envNames"] == ["MINE"] and made.json()["timeoutMs"] == 30000
        answer = service.invoke(runtime, {"a": [1, "ü"]})
        assert answer.status == 200 and answer.headers["Content-Type"] == "application/json", answer.body
        assert answer.json() == [{"a": [1, "ü"]}, "a b", runtime, True]
        first = service.call("GET", f"/functions/{runtime}/logs").json()["invocations"][0]
        assert first["log"].startswith(f"out {answer.headers['X-Atoll-Invocation']}\n"), first
        assert first["ended"] == "exit" and first["exit"] == 0 and first["durationUs"] > 0
    assert service.deploy("module", files, "javascript", "main.mjs:handler").status == 201
    assert service.result("module", 7) == 7
    assert service.deploy("exec", files, "exec", "bin/run", envVars=env).status == 201
    answer = service.invoke("exec", "x")
    assert answer.status == 200 and answer.body == b'a b exec "x"', answer.body
    assert answer.headers["Content-Type"] == "application/octet-stream"
    listed = {row["name"]: row for row in service.call("GET", "/functions").json()}
    assert set(listed) == {"python", "javascript", "module", "exec"}
    assert listed["exec"]["invocations"] == 1 and listed["exec"]["errors"] == 0 and listed["exec"]["p95Us"] > 0
    assert service.call("DELETE", "/functions/exec").status == 204
    assert service.call("GET", "/functions/exec").status == 404 and service.invoke("exec").status == 404


def test_nothing_passes_from_one_invocation_to_the_next(service):
    code = ("import os, random, subprocess, uuid\nseen = []\n"
            "def handler(event, context):\n"
            "    seen.append(event)\n"
            "    names = sorted(os.listdir('/tmp')) + [n for n in os.listdir('/home/user') if n == 'left']\n"
            "    for place in ('/tmp/left', '/home/user/left', 'left', '/dev/shm/left'):\n"
            "        open(place, 'x').write('x')\n"
            "    subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
            "    others = [p for p in os.listdir('/proc') if p.isdigit() and\n"
            "              open(f'/proc/{p}/comm').read() == 'sleep\\n']\n"
            "    return [seen, names, len(others), random.random(), str(uuid.uuid4()), hash('a')]\n")
    assert service.deploy("state", code).status == 201
    answers = []
    for number in range(3):
        service.wait_warm("state")
        seen, names, others, *values = service.result("state", number)
        assert seen == [number] and names == [] and others <= 1, (seen, names, others)
        answers.append(values)
    for column in zip(*answers):
        assert len(set(column)) == len(answers), column


def test_a_function_reaches_no_network_unless_it_says_so(service):
    # The gate has an address of its own for each name that is allowed, and asks nobody for it.
    code = ("import socket\n"
            "def handler(event, context):\n"
            "    def find(name):\n"
            "        try:\n            return socket.gethostbyname(name).startswith('198.1')\n"
            "        except OSError:\n            return False\n"
            "    return [find('one.example.org'), find('two.example.org')]\n")
    assert service.deploy("closed", code).json()["allowInternetAccess"] is False
    assert service.result("closed") == [False, False]
    assert service.deploy("open", code, allowInternetAccess=True).json()["allowInternetAccess"] is True
    assert service.result("open") == [True, True]
    assert service.deploy("some", code, allowOut=["two.example.org"]).json()["allowOut"] == ["two.example.org"]
    assert service.result("some") == [False, True]
    # What is wider than the policy is refused.
    wide = service.deploy("wide", code, memoryMB=1 << 20)
    assert wide.status == 400 and "memory" in wide.message(), wide.body


WRONG = {
    "syntax": ({"main.py": "def handler(:\n"}, "python", "main.py:handler", "SyntaxError"),
    "missing file": ({"main.py": ECHO}, "python", "other.py:handler", "no file other.py"),
    "missing function": ({"main.py": ECHO}, "python", "main.py:other", "no function other"),
    "raises": ({"main.py": "raise ValueError('at load')\n"}, "python", "main.py:handler", "at load"),
    "exits": ({"main.py": "import os\nos._exit(0)\n"}, "python", "main.py:handler", "cannot be loaded"),
    "no export": ({"main.js": "exports.x = 1\n"}, "javascript", "main.js:handler", "no function handler"),
    "not executable": ({"run": "#!/bin/sh\n"}, "exec", "run", "no executable file run"),
    "no archive": (b"this is no archive", "python", "main.py:handler", "cannot be unpacked"),
    "empty": (b"", "python", "main.py:handler", "archive"),
    "runtime": ({"main.py": ECHO}, "ruby", "main.py:handler", "python, javascript or exec"),
    "outside": ({"main.py": ECHO}, "python", "../main.py:handler", "entry"),
}


def test_what_cannot_be_loaded_is_not_served(service):
    for name, (files, runtime, entry, said) in WRONG.items():
        answer = service.deploy("wrong", files, runtime, entry)
        assert answer.status == 400 and said in answer.message(), (name, answer.body)
    assert service.deploy("bad name", ECHO).status == 400
    assert service.deploy("wrong", ECHO, timeoutMs=10**9).status == 400
    assert service.call("GET", "/functions").json() == []
    # What is served goes on where its next version cannot be loaded, and is replaced by one that can.
    assert service.deploy("kept", ECHO).status == 201
    assert service.deploy("kept", "def handler(:\n").status == 400
    assert service.result("kept", 1) == 1
    assert service.deploy("kept", "handler = lambda event, context: 'new'\n").status == 201
    assert service.result("kept", 1) == "new"
    assert len(service.call("GET", "/functions").json()) == 1


def test_an_archive_that_escapes_stays_in_its_sandbox(service, sandbox):
    outside = sandbox.base / "outside"
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, str(sandbox.base)
    files = {"main.py": ECHO, "link": link, "link/outside": "x", "../../../../../../.." + str(outside): "x"}
    answer = service.deploy("escape", files)
    assert answer.status in (201, 400), answer.body
    assert not outside.exists()


ATTACKS = {
    "endless": ("while True: pass", 504, "within its time"),
    "raises": ("raise ValueError('mine')", 502, "exit code 1"),
    "exits": ("os._exit(0)", 502, "without a result"),
    "ends itself": ("os.kill(os.getpid(), 9)", 502, "signal 9"),
    "ends all": ("os.kill(-1, 9)", 502, "exit code 1"),
    "closes everything": ("os.closerange(0, 1024)", 502, "exit code"),
    "is too large": ("return 'x' * (7 << 20)", 502, "larger than"),
    "leaves daemons": ("[subprocess.Popen(['sleep', '1000'], start_new_session=True) for _ in range(20)]; return 1",
                       200, None),
    "forges": ("[forge(fd) for fd in range(64)]; os._exit(0)", 200, None),
    "not JSON": ("return {1, 2}", 502, "exit code 1"),
}


def test_attacks_harm_the_function_alone(service):
    """Each has its error, and the next invocation is as the first."""
    code = ("import os, subprocess\n"
            "def forge(fd):\n    try:\n        os.write(fd, b'{\"forged\":1}')\n    except OSError:\n        pass\n"
            "def handler(event, context):\n"
            "    scope = {'os': os, 'subprocess': subprocess, 'forge': forge}\n"
            "    exec('def run():\\n ' + event, scope)\n"
            "    return scope['run']()\n")
    assert service.deploy("attacked", code, timeoutMs=5000, concurrency=2).status == 201
    assert service.deploy("beside", ECHO).status == 201
    for name, (line, status, said) in ATTACKS.items():
        answer = service.invoke("attacked", line)
        assert answer.status == status, (name, answer.status, answer.body[:300])
        assert said is None or said in answer.message(), (name, answer.body[:300])
        assert service.result("attacked", "return 5") == 5, name
    assert service.result("beside", 6) == 6
    told = service.call("GET", "/functions/attacked").json()
    assert told["running"] == 0 and told["errors"] == sum(s != 200 for _, s, _ in ATTACKS.values()), told


def test_a_flood_of_output_is_bounded(service):
    code = "import os\ndef handler(event, context):\n    for _ in range(16000):\n        os.write(2, b'x' * 65536)\n"
    assert service.deploy("floods", code, timeoutMs=300000).status == 201
    answer = service.invoke("floods")
    assert answer.status == 200 and answer.body == b"null", answer.body[:300]
    row = service.call("GET", "/functions/floods/logs").json()["invocations"][0]
    assert row["dropped"] > 10**9 and len(row["log"]) <= 8192


def test_limits_of_concurrency_and_of_clients_that_go_away(service):
    code = "import time\ndef handler(event, context):\n    time.sleep(event)\n    return 1\n"
    assert service.deploy("sleeps", code, concurrency=1, timeoutMs=60000).status == 201
    long = threading.Thread(target=service.invoke, args=("sleeps", 8))
    long.start()
    end = time.monotonic() + 60
    while not service.call("GET", "/functions/sleeps").json()["running"]:
        assert time.monotonic() < end
    refused = service.invoke("sleeps", 0)
    assert refused.status == 429 and refused.headers["Retry-After"] == "1", refused.body
    long.join()
    assert service.result("sleeps", 0) == 1
    # Whoever goes away ends what it asked for.
    request = urllib.request.Request(service.url + "/functions/sleeps/invoke", b"50", {"X-API-KEY": service.key})
    with pytest.raises(OSError):
        urllib.request.urlopen(request, timeout=3).read()
    end = time.monotonic() + 40
    while service.call("GET", "/functions/sleeps").json()["running"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert service.call("GET", "/functions/sleeps/logs").json()["invocations"][0]["ended"] == "cancelled"


def test_what_runs_ends_by_the_code_that_it_began_with(service):
    code = "import time\ndef handler(event, context):\n    time.sleep(event)\n    return 'old'\n"
    assert service.deploy("name", code).status == 201
    answers = []
    runs = threading.Thread(target=lambda: answers.append(service.invoke("name", 4)))
    runs.start()
    end = time.monotonic() + 60
    while not service.call("GET", "/functions/name").json()["running"]:
        assert time.monotonic() < end
    assert service.deploy("name", "handler = lambda event, context: 'new'\n").status == 201
    assert service.result("name", 0) == "new"
    runs.join()
    assert answers[0].status == 200 and answers[0].json() == "old", answers[0].body
    # What is removed ends at once.
    assert service.deploy("name", code).status == 201
    runs = threading.Thread(target=lambda: answers.append(service.invoke("name", 25)))
    runs.start()
    while not service.call("GET", "/functions/name").json()["running"]:
        assert time.monotonic() < end
    assert service.call("DELETE", "/functions/name").status == 204
    runs.join()
    assert answers[1].status == 502 and "removed" in answers[1].message(), answers[1].body


def test_functions_outlive_the_service(sandbox):
    with served(sandbox) as first:
        assert first.deploy("kept", ECHO, envVars={"A": "b"}).status == 201
        assert first.deploy("gone", ECHO).status == 201
        assert first.call("DELETE", "/functions/gone").status == 204
    with served(sandbox, first.key) as second:
        rows = second.call("GET", "/functions").json()
        assert [(row["name"], row["envNames"], row["invocations"]) for row in rows] == [("kept", ["A"], 0)]
        answer = second.invoke("kept", 3)
        assert answer.status == 200 and answer.json() == 3 and answer.headers["X-Atoll-Cold"] == "1"


def running(sandbox):
    return {row["name"] for row in json.loads(sandbox.run_atoll("ps", "--json").out) if row["state"] == "running"}


def attempt(act, *arguments, **keywords):
    try:
        return act(*arguments, **keywords)
    except (OSError, http.client.HTTPException):
        return None


def test_a_killed_service_leaves_no_sandbox_of_a_function(sandbox):
    """One that waits, one that is busy and one whose deployment is tried. What is a client's lives on."""
    sleeps = "import time\ndef handler(event, context):\n    time.sleep(300)\n"
    with served(sandbox) as first:
        mine = first.call("POST", "/sandboxes", json.dumps({"templateID": "base", "timeout": 600}).encode())
        assert mine.status == 201, mine.body
        mine = mine.json()["sandboxID"]
        before = running(sandbox)
        for name, code in (("waits", ECHO), ("busy", sleeps)):
            assert first.deploy(name, code, timeoutMs=600000).status == 201
        threads = [threading.Thread(target=attempt, args=(first.invoke, "busy", 1)),
                   threading.Thread(target=attempt, args=(first.deploy, "tried", "import time\ntime.sleep(300)\n"))]
        for thread in threads:
            thread.start()
        wait_until(lambda: first.call("GET", "/functions/busy").json()["running"] == 1 and
                   len(running(sandbox) - before) >= 3, 60, "the instances")
        first.process.kill()
        first.process.wait()
        for thread in threads:
            thread.join()
        left = running(sandbox)
        assert mine in left and len(left - before) >= 3, left
    with served(sandbox, first.key) as second:
        wait_until(lambda: not (left - before) & running(sandbox), 60, "the ends of what was left")
        assert mine in running(sandbox)
        assert second.result("waits", 1) == 1
        assert second.call("DELETE", f"/sandboxes/{mine}").status == 204


def test_invocations_count_as_sandboxes_of_their_key(service):
    """Also those that wait for an instance, all of which come at once."""
    code = "import time\ndef handler(event, context):\n    time.sleep(event)\n    return 1\n"
    few = service.add_key("few", "--sandboxes", "2", "--policy", str(service.policy))
    names = ["one", "two", "three"]
    for key, most in ((few, 2), (service.key, 6)):
        for name in names:
            made = service.deploy(name, code, key=key, concurrency=2, timeoutMs=60000)
            assert made.status == 201, made.body
        answers = []
        threads = [threading.Thread(target=lambda name=name: answers.append(service.invoke(name, 6, key).status))
                   for name in 2 * names]
        for thread in threads:
            thread.start()
        wait_until(lambda: sum(service.call("GET", f"/functions/{name}", key=key).json()["running"]
                               for name in names) == most, 60, "so many at once")
        if most == 2:
            made = service.call("POST", "/sandboxes", b'{"templateID": "base"}', key)
            assert made.status == 429, made.body
        for thread in threads:
            thread.join()
        assert sorted(answers) == [200] * most + [429] * (6 - most), answers
    made = service.call("POST", "/sandboxes", b'{"templateID": "base"}', few)
    assert made.status == 201 and service.call("DELETE", f"/sandboxes/{made.json()['sandboxID']}").status == 204


def test_keys_see_their_own(service):
    other = service.add_key("other", "--policy", str(service.policy))
    looks = service.add_key("looks", "--owner", "first", "--role", "read-only", "--policy", str(service.policy))
    assert service.deploy("mine", ECHO).status == 201
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/invoke"), ("GET", "/logs")):
        assert service.call(method, "/functions/mine" + path, b"1" if method == "POST" else None, other).status == 404
    assert service.call("GET", "/functions", key=other).json() == []
    assert service.call("GET", "/functions", key="e2b_" + "0" * 40).status == 401
    assert service.call("GET", "/functions/mine", key=looks).status == 200
    assert service.invoke("mine", 1, key=looks).status == 403
    assert service.deploy("mine", ECHO, key=looks).status == 403
    # The same name is another function of another owner.
    assert service.deploy("mine", "handler = lambda event, context: 'other'\n", key=other).status == 201
    assert service.result("mine", 1) == 1 and service.invoke("mine", 1, key=other).json() == "other"


def test_the_command_line(service, sandbox):
    def atoll(*words, event="", key=service.key, url=service.url, status=0):
        env = {"E2B_API_KEY": key, "E2B_API_URL": url}
        done = subprocess.run([str(sandbox.programs.atoll), "function", *words], input=event, capture_output=True,
                              text=True, check=False, timeout=120, **sandbox.popen_keywords(env=env))
        assert done.returncode == status, done
        return done.stdout if status == 0 else done.stderr

    place = sandbox.make_directory(sandbox.base / "code")
    for name, text in (("main.py", "from lib import one\ndef handler(event, context):\n    return one.value(event)\n"),
                       ("lib/one.py", "import os\nvalue = lambda event: [event, os.environ['MINE']]\n"),
                       ("fails.py", "def handler(event, context):\n    raise ValueError('mine')\n"),
                       ("run.sh", "#!/bin/sh\ncat\n")):
        sandbox.make_directory((place / name).parent)
        (place / name).write_text(text)
        sandbox.own(place / name)
    (place / "run.sh").chmod(0o755)
    (place / "link").symlink_to("main.py")
    made = atoll("deploy", "--name", "first", "--entry", "link:handler", "--runtime", "exec", str(place), status=125)
    assert "no executable file" in made, made
    made = atoll("deploy", "-n", "first", "--entry", "lib/one.py:other", str(place), status=125)
    assert "no function other" in made, made
    (place / "wrong.py").write_text("def handler(:\n")
    made = atoll("deploy", "-n", "first", "--entry", "wrong.py:handler", str(place), status=125)
    assert "\nSyntaxError" in made and made.endswith("the function cannot be loaded\n"), made
    assert "30000 ms" in atoll("deploy", "-n", "first", "--entry", "main.py:handler", "-e", "MINE=a=b", str(place))
    assert json.loads(atoll("invoke", "first", event='{"x":1}')) == [{"x": 1}, "a=b"]
    assert json.loads(atoll("invoke", "--data", "2", "first")) == [2, "a=b"]
    atoll("deploy", "-n", "second", "--entry", "run.sh", "--timeout", "5s", "--memory", "64MiB", str(place))
    assert atoll("invoke", "second", event="any bytes") == "any bytes"
    assert json.loads(atoll("show", "second", "--json"))["timeoutMs"] == 5000
    atoll("deploy", "-n", "third", "--entry", "fails.py:handler", str(place))
    failed = atoll("invoke", "third", status=1)
    assert "ValueError: mine" in failed and "exit code 1" in failed, failed
    assert {row["name"] for row in json.loads(atoll("list", "--json"))} == {"first", "second", "third"}
    assert "third" in atoll("list") and "ValueError: mine" in atoll("logs", "third")
    atoll("remove", "first", "third")
    assert "first" not in atoll("list")
    assert "no function" in atoll("invoke", "first", status=127)
    assert "cannot be opened" in atoll("deploy", "-n", "x", "--entry", "a.py:b", str(place / "none"), status=127)
    assert "--name and --entry" in atoll("deploy", str(place), status=125)
    assert "E2B_API_KEY" in atoll("list", key="", status=125)
    assert "atoll serve" in atoll("list", url="http://127.0.0.1:1", status=125)
