# SPDX-License-Identifier: Apache-2.0
"""Templates that clients of `atoll serve` build, by HTTP as their clients speak it (the npm package itself:
test_service_clients.py)."""
import hashlib
import io
import json
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from atoll import wait_until
from service import DEGRADED

WAIT_S = 120


class Server:
    """One `atoll serve`, and a key of its owner."""

    def __init__(self, sandbox, config=""):
        self.sandbox = sandbox
        text = "atoll: 1\nextends: service-base\n" if sandbox.identity.is_root else DEGRADED
        file = sandbox.base / "serve.yaml"
        file.write_text(f"policy: {sandbox.policy(text, 'service-test.yaml')}\n{config}", encoding="utf-8")
        sandbox.own(file)
        self.words = [str(sandbox.programs.atoll), "serve", "--listen", "127.0.0.1:0", "--json", "--config", str(file)]
        self.key, self.boxes = None, []
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True,
                                        **self.sandbox.popen_keywords())
        said = json.loads(self.process.stdout.readline())
        self.url, self.key = said["url"], said.get("key", self.key)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(60)
        self.process.stdout.close()

    def make_key(self, *words):
        done = self.sandbox.run_atoll("serve", "key", "add", *words)
        assert done.code == 0, done.err
        return re.search("e2b_[0-9a-f]+", done.out).group()

    def ask(self, method, path, body=None, key=None, headers=None):
        """(status, what the answer says)"""
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        headers = {"X-API-KEY": key or self.key, **(headers or {})}
        url = path if path.startswith("http") else self.url + path
        try:
            request = urllib.request.Request(url, data, headers, method=method)
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def request(self, name, **values):
        status, made = self.ask("POST", "/v3/templates", {"name": name, **values})
        assert status == 202, made
        return made

    def path_of(self, made):
        return f"/templates/{made['templateID']}/builds/{made['buildID']}"

    def wait(self, made):
        """The last status, with the whole log."""
        entries, until = [], time.monotonic() + WAIT_S
        while time.monotonic() < until:
            status, said = self.ask("GET", f"{self.path_of(made)}/status?logsOffset={len(entries)}")
            assert status == 200, said
            entries += said["logEntries"]
            if said["status"] in ("ready", "error") and not said["logEntries"]:
                return {**said, "text": "\n".join(entry["message"] for entry in entries)}
            time.sleep(0.05)
        raise AssertionError(f"it does not end: {entries}")

    def build(self, name, *steps, made=None, **values):
        """values: of the build. What became of it."""
        made = made or self.request(name)
        base = {} if "fromImage" in values else {"fromTemplate": "base"}
        status, said = self.ask("POST", "/v2" + self.path_of(made), {**base, "steps": list(steps), **values})
        if status != 202:
            return {"status": status, "reason": said, "text": ""}
        return {**self.wait(made), **{"made": made}}

    def upload(self, made, content, digest=None):
        """Sends an archive; the hash that a COPY names."""
        digest = digest or hashlib.sha256(content).hexdigest()
        status, said = self.ask("GET", f"/templates/{made['templateID']}/files/{digest}")
        assert status == 201, said
        if not said["present"]:
            assert self.ask("PUT", said["url"], content)[0] == 200
        return digest

    def create(self, template):
        status, said = self.ask("POST", "/v2/sandboxes", {"templateID": template})
        assert status == 201, said
        self.boxes.append(said["sandboxID"])
        return said

    def read(self, box, path):
        headers = {"E2b-Sandbox-Id": box["sandboxID"], "E2b-Sandbox-Port": "49983",
                   "X-Access-Token": box["envdAccessToken"]}
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/files?path={path}", headers=headers),
                                    timeout=WAIT_S) as answer:
            return answer.read().decode()


@pytest.fixture
def serve(sandbox):
    servers = []

    def start(config=""):
        servers.append(Server(sandbox, config))
        return servers[-1]
    yield start
    for server in servers:
        if server.process.returncode is None:
            for box in server.boxes:
                server.ask("DELETE", f"/sandboxes/{box}")
            server.end()


def wait_for_running(server, count):
    """Until so many sandboxes run on this machine for this user, that wait in no pool."""
    until = time.monotonic() + WAIT_S
    while True:
        done = server.sandbox.run_atoll("ps", "--json")
        assert done.code == 0, done.err
        rows = json.loads(done.out)
        running = [row for row in rows if row["state"] == "running"]
        if len(running) == count:
            return
        assert time.monotonic() < until, running
        time.sleep(0.2)


def step(kind, *arguments, **values):
    return {"type": kind, "args": list(arguments), "force": False, **values}


def archive(*entries, mode="w:gz"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as made:
        for name, content in entries:
            item = tarfile.TarInfo(name)
            item.mtime = 1600000000
            item.size, item.mode = len(content), 0o644
            made.addfile(item, io.BytesIO(content))
    return out.getvalue()


def test_a_template_is_built_and_used(serve):
    server = serve()
    made = server.request("mine:v1", tags=["stable"])
    assert made["tags"] == ["v1", "stable"] and made["names"] == ["mine"]
    digest = server.upload(made, archive(("app/a", b"of a"), ("app/sub/b", b"of b")))
    one = server.upload(made, archive(("run.sh", b"#!/bin/sh\necho ran\n"), mode="w"))
    steps = [
        step("ENV", "FIRST", "1", "SECOND", "${FIRST}-2"), step("WORKDIR", "/home/user/work"),
        step("COPY", "app", "to/", "", "", filesHash=digest),
        step("COPY", "run.sh", "bin/run", "", "0755", filesHash=one),
        step("RUN", "echo $SECOND >env; pwd >>env; bin/run >>env; echo said; echo wrong >&2"),
    ]
    commands = {"startCmd": "echo $SECOND >started; sleep 1; echo up >ready; sleep 1000",
                "readyCmd": "grep -q up ready"}
    done = server.build("mine", *steps, made=made, **commands)
    assert done["status"] == "ready", done
    assert "said" in done["text"] and "wrong" in done["text"] and "CACHED" not in done["text"]
    again = server.build("mine", *steps, **commands)
    assert again["status"] == "ready" and again["text"].count("CACHED") == len(steps), again
    # What is behind a step that changed is done again, and no more.
    other = server.build("mine", *steps[:-1], step("RUN", "echo other >env"))
    assert other["status"] == "ready" and other["text"].count("CACHED") == len(steps) - 1, other
    forced = server.build("mine", *steps, force=True, **commands)
    assert forced["status"] == "ready" and "CACHED" not in forced["text"], forced
    box = server.create("mine:v1")
    assert server.read(box, "/home/user/work/env") == "1-2\n/home/user/work\nran\n"
    assert server.read(box, "/home/user/work/to/sub/b") == "of b"
    # The start command ran in this sandbox, and was waited for.
    assert server.read(box, "/home/user/work/started") == "1-2\n"
    assert server.read(box, "/home/user/work/ready") == "up\n"
    # A template on top of it has all of that.
    more = server.build("more", step("RUN", "echo $FIRST >first"), fromTemplate="mine:stable")
    assert more["status"] == "ready", more
    assert server.read(server.create("more"), "/home/user/work/first") == "1\n"
    # The sandboxes of builds were nobody's, and are gone.
    wait_for_running(server, 2)
    listed = server.ask("GET", "/v2/sandboxes")[1]
    assert len(listed) == 2, listed


def test_names_and_tags(serve):
    server = serve()
    assert server.ask("GET", "/templates/aliases/mine")[0] == 404
    done = server.build("mine")
    assert done["status"] == "ready", done
    made = done["made"]
    status, alias = server.ask("GET", "/templates/aliases/mine")
    assert (status, alias["templateID"]) == (200, made["templateID"])
    assert [tag["tag"] for tag in server.ask("GET", "/templates/mine/tags")[1]] == ["default"]
    status, tagged = server.ask("POST", "/templates/tags", {"target": "mine", "tags": ["one", "two"]})
    assert (status, tagged) == (201, {"buildID": made["buildID"], "tags": ["one", "two"]})
    server.create("mine:two")
    assert server.ask("DELETE", "/templates/tags", {"name": "mine", "tags": ["two"]})[0] == 204
    assert server.ask("POST", "/v2/sandboxes", {"templateID": "mine:two"})[0] == 404
    assert server.ask("POST", "/templates/tags", {"target": "mine:none", "tags": ["a"]})[0] == 404
    assert server.ask("POST", "/templates/tags", {"target": "mine", "tags": ["a b"]})[0] == 400
    assert any("mine" in row["names"] for row in server.ask("GET", "/templates")[1])
    # Another owner sees nothing of it, and has its own of the same name.
    key = server.make_key("other")
    assert server.ask("GET", "/templates/aliases/mine", key=key)[0] == 404
    assert server.ask("POST", "/v2/sandboxes", {"templateID": "mine"}, key=key)[0] == 404
    assert server.ask("GET", server.path_of(made) + "/status", key=key)[0] == 404
    assert server.ask("DELETE", "/templates/mine", key=key)[0] == 404
    status, own = server.ask("POST", "/v3/templates", {"name": "mine"}, key=key)
    assert status == 202 and own["templateID"] != made["templateID"]
    reader = server.make_key("reader", "--role", "read-only")
    assert server.ask("POST", "/v3/templates", {"name": "third"}, key=reader)[0] == 403
    for bad in ("", "a b", "a/b", "a:", "base", "x" * 100, "a:" + "y" * 100):
        assert server.ask("POST", "/v3/templates", {"name": bad})[0] in (400, 409), bad
    assert server.ask("DELETE", "/templates/mine")[0] == 204
    assert server.ask("POST", "/v2/sandboxes", {"templateID": "mine"})[0] == 404
    assert server.ask("GET", "/templates/aliases/" + made["templateID"])[0] == 404
    assert server.ask("GET", "/templates/aliases/mine", key=key)[0] == 200


def test_a_name_is_its_owners_alone(serve, sandbox):
    """An admin sees all templates, by their ids: a name that somebody else took first leads nowhere."""
    server = serve()
    words = ["--policy", str(sandbox.base / "config" / "service-test.yaml")]
    theirs, boss = server.make_key("theirs", *words), server.make_key("boss", "--role", "admin", *words)
    server.key, mine = theirs, server.key
    assert server.build("taken")["status"] == "ready"
    built = server.ask("GET", "/templates/aliases/taken")[1]["templateID"]
    box = server.create("taken")
    status, snapshot = server.ask("POST", f"/sandboxes/{box['sandboxID']}/snapshots", {"name": "kept"})
    assert status == 201, snapshot
    for name in ("taken", "kept"):
        assert server.ask("POST", "/v2/sandboxes", {"templateID": name}, key=boss)[0] == 404
        assert server.ask("DELETE", f"/templates/{name}", key=boss)[0] == 404
        server.create(name)
    assert built in [row["templateID"] for row in server.ask("GET", "/templates", key=boss)[1]]
    status, made = server.ask("POST", "/v2/sandboxes", {"templateID": built}, key=boss)
    assert status == 201, made
    server.boxes.append(made["sandboxID"])
    assert server.ask("DELETE", f"/templates/{built}", key=boss)[0] == 204
    server.key = boss
    for box in server.boxes:
        server.ask("DELETE", f"/sandboxes/{box}")
    server.key = mine


def test_what_fails_is_said_with_its_step(serve):
    server = serve("ready: 1\n")
    failed = server.build("bad", step("RUN", "true"), step("RUN", "echo why >&2; exit 7"))
    assert failed["status"] == "error" and failed["reason"] == {
        "message": "the command ended with exit code 7", "step": "2"} and "why" in failed["text"], failed
    assert server.ask("POST", "/v2/sandboxes", {"templateID": "bad"})[0] == 404
    # The steps before it are not done again.
    mended = server.build("bad", step("RUN", "true"), step("RUN", "exit 0"))
    assert mended["status"] == "ready" and mended["text"].count("CACHED") == 1, mended
    endless = server.build("endless", startCmd="sleep 1000", readyCmd="sleep 1000")
    assert endless["status"] == "error" and endless["reason"] == {
        "message": "the ready command did not succeed in its time", "step": "finalize"}, endless
    never = server.build("never", readyCmd="false")
    assert never["status"] == "error" and never["reason"]["step"] == "finalize", never
    absent = server.build("absent", fromImage="python:3")
    assert absent["status"] == 400 and "atoll template import" in absent["reason"]["message"], absent
    assert server.build("absent", fromTemplate="nobody")["status"] == 400
    for bad in (step("FROM", "a"), step("RUN"), step("ENV", "A"), step("ENV", "A=B", "c"), step("COPY", "a", "b")):
        refused = server.build("wrong", bad)
        assert refused["status"] == 400 and "step 1" in refused["reason"]["message"], refused
    user = server.build("user", step("RUN", "true"), step("USER", "root"))
    assert user["status"] == "error" and user["reason"]["step"] == "2" and "uid 0" in user["reason"]["message"], user
    missing = server.build("missing", step("COPY", "a", "b", "", "", filesHash="0" * 64))
    assert missing["status"] == "error" and "not uploaded" in missing["reason"]["message"], missing
    # One that was started is not started again.
    assert server.build("user", made=user["made"])["status"] == 409
    assert server.ask("GET", "/v2/sandboxes")[1] == []


def test_hostile_archives(serve):
    server = serve()
    made = server.request("hostile")
    broken = server.upload(made, b"\x1f\x8bno archive at all")
    failed = server.build("hostile", step("COPY", "a", "b", "", "", filesHash=broken), made=made)
    assert failed["status"] == "error" and failed["reason"]["step"] == "1", failed
    # What leads out does not come to anywhere but the files that the step names.
    escaping = server.upload(made, archive(("../../home/user/evil", b"x"), ("good", b"g")))
    failed = server.build("hostile", step("COPY", "good", "here/", "", "", filesHash=escaping))
    assert failed["status"] == "error" and failed["reason"]["step"] == "1" and ".." in failed["text"], failed
    escaping = server.upload(made, archive(("/home/user/worse", b"x"), ("evil", b"x"), ("good", b"g")))
    done = server.build("hostile", step("COPY", "good", "here/", "", "", filesHash=escaping),
                        step("RUN", "cat here/good; ls -a ~ >seen"))
    assert done["status"] == "ready", done
    box = server.create("hostile")
    seen = server.read(box, "/home/user/seen").split()
    assert "here" in seen and "evil" not in seen and "worse" not in seen, seen
    many = archive(*((f"many/{at}", b"") for at in range(10000)))
    digest = server.upload(made, many)
    done = server.build("hostile", step("COPY", "many", "many", "", "", filesHash=digest),
                        step("RUN", "ls many | wc -l >count"))
    assert done["status"] == "ready", done
    assert server.read(server.create("hostile"), "/home/user/count").strip() == "10000"
    flood = server.build("flood", step("RUN", "yes | head -c 50000000"))
    assert flood["status"] == "ready" and len(flood["text"]) < 4 << 20 and "is full" in flood["text"]
    # Only this service signs, for this archive of this template.
    url = server.ask("GET", f"/templates/{made['templateID']}/files/{'1' * 64}")[1]["url"]
    for wrong in (url[:-1] + ("0" if url[-1] != "0" else "1"), url.replace("1" * 64, "2" * 64), url.split("?")[0]):
        assert server.ask("PUT", wrong, b"x")[0] == 401, wrong
    assert server.ask("PUT", url, b"x")[0] == 200
    assert server.ask("GET", f"/templates/{made['templateID']}/files/{'1' * 64}")[1]["present"] is True
    assert server.ask("GET", f"/templates/{made['templateID']}/files/nohash")[0] == 400


def test_what_is_asked_for_is_bounded(serve):
    server = serve("snapshots: 2\n")
    made = [server.request("one") for _ in range(101)]
    statuses = [server.ask("GET", server.path_of(one) + "/status")[0] for one in (made[0], made[1], made[-1])]
    assert statuses == [404, 200, 200], "the oldest that was never started goes"
    server.request("two")
    status, said = server.ask("POST", "/v3/templates", {"name": "three"})
    assert status == 429 and "as many templates" in said["message"], said


def test_a_build_does_not_outlive_its_service(serve):
    server = serve()
    made = server.request("cut")
    assert server.ask("POST", "/v2" + server.path_of(made), {
        "fromTemplate": "base", "steps": [step("RUN", "echo begun; sleep 1000")]})[0] == 202
    until = time.monotonic() + WAIT_S
    while not any(entry["message"] == "begun" for entry in
                  server.ask("GET", server.path_of(made) + "/status")[1]["logEntries"]):
        assert time.monotonic() < until
        time.sleep(0.1)
    server.end(signal.SIGKILL)
    server.start()
    said = server.ask("GET", server.path_of(made) + "/status")[1]
    assert said["status"] == "error" and "started again" in said["reason"]["message"], said
    wait_for_running(server, 0)
    # What was built before is there, and what was not is built.
    assert server.build("cut", step("RUN", "true"))["status"] == "ready"


def parts(server):
    """Archives that are not whole."""
    return [path for path in server.sandbox.base.rglob("archives/*/*") if len(path.name) != 64]


def begin_upload(server, made, digest):
    """One that has sent the first of its bytes."""
    url = urllib.parse.urlsplit(server.ask("GET", f"/templates/{made['templateID']}/files/{digest}")[1]["url"])
    sender = socket.create_connection((url.hostname, url.port))
    sender.sendall(f"PUT {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Length: 20\r\n\r\n"
                   .encode() + b"x" * 10)
    return sender


def finish_upload(sender):
    sender.sendall(b"x" * 10)
    return int(sender.recv(4096).split()[1])


def test_what_was_not_sent_whole_is_not_kept(serve):
    server = serve()
    made = server.request("parts")
    digests = [f"{number:064x}" for number in range(1, 8)]
    # One whose client goes away; while it is there, so is the part.
    sender = begin_upload(server, made, digests[0])
    wait_until(lambda: len(parts(server)) == 1)
    sender.close()
    wait_until(lambda: not parts(server))
    # So many at once: the oldest goes.
    senders = []
    for digest in digests[:5]:
        senders.append(begin_upload(server, made, digest))
        wait_until(lambda: [path.stat().st_size for path in parts(server)] == [10] * min(len(senders), 4))
        time.sleep(0.05)                   # the clock of a file system ticks a hundred times a second, or more
    assert finish_upload(senders[0]) == 400 and finish_upload(senders[4]) == 200
    wait_until(lambda: len(parts(server)) == 3)
    # Those of a service that was killed.
    server.end(signal.SIGKILL)
    assert len(parts(server)) == 3
    server.start()
    assert parts(server) == []
    assert server.ask("GET", f"/templates/{made['templateID']}/files/{digests[4]}")[1]["present"]
    for sender in senders:
        sender.close()


def test_a_build_whose_sandbox_cannot_be_made_has_failed(serve, sandbox):
    server = serve("pool: 0\n")

    def run(word):
        return {"type": "RUN", "args": [f"echo {word} > ~/a"]}

    assert server.build("first", run("first"))["status"] == "ready"
    assert server.build("second", run("second"), fromTemplate="first")["status"] == "ready"
    for session in (sandbox.state / "atoll" / "sessions").iterdir():
        shutil.rmtree(session)
    made = server.request("third")
    status, said = server.ask("POST", "/v2" + server.path_of(made), {"fromTemplate": "first", "steps": [run("third")]})
    ended = server.wait(made)
    assert status >= 400 and ended["status"] == "error" and ended["reason"]["message"], (status, said, ended)
    # It is none of those that run.
    for number in range(5):
        assert server.build(f"other{number}", run(number))["status"] == "ready"
