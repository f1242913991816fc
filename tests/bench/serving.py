# SPDX-License-Identifier: Apache-2.0
"""`atoll serve` as a program sees it that uses the npm package e2b, beside a stub in Node with the same client."""
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import time

from contenders import HERE, TRUE, Unusable
from parking import quantile

VERSION = "2.51.0"
POLICY = "atoll: 1\nextends: service-base\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n"
LIMITS = (("create", .5, 3, "ms"), ("create", .95, 8, "ms"))


def package():
    root = pathlib.Path(os.environ.get("ATOLL_CLIENTS", pathlib.Path(HERE).parents[1] / "build" / "clients"))
    found = root / "e2b" / VERSION / "node_modules" / "e2b"
    if not found.exists():
        raise Unusable(f"there is no {found}: make check-agents installs it")
    if not shutil.which("node"):
        raise Unusable("there is no node")
    return found


class Server:
    """Says its address, or an object that has it, in its first line."""

    def __init__(self, place, words):
        self.process = subprocess.Popen(words, env=place.environment, cwd=place.project, stdout=subprocess.PIPE,
                                        text=True, **place.as_user())
        self.said = self.process.stdout.readline().strip()

    def __enter__(self):
        if not self.said:
            raise Unusable(f"{self.process.args[:2]} does not serve")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=60)
        self.process.stdout.close()


class Client:
    """An owner who may make as many as he likes. A connection is new where the service closed the last one."""

    def __init__(self, place, url, name):
        run = place.run([place.atoll, "serve", "key", "add", name, "--sandboxes", "100000", "--rate", "1000000",
                         "--policy", place.path("serve.yaml")], env=place.environment)
        if run.returncode != 0:
            raise Unusable(f"atoll serve key add: {run.stderr.strip()[-300:]}")
        self.address = url.split("//")[1]
        self.headers = {"X-API-KEY": run.stdout.strip(), "Content-Type": "application/json"}
        self.connection = http.client.HTTPConnection(self.address, timeout=120)

    def ask(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body) if body is not None else None, self.headers)
        reply = self.connection.getresponse()
        text = reply.read()
        if reply.status >= 300:
            raise Unusable(f"{method} {path}: {reply.status} {text[:200]!r}")
        return json.loads(text) if text else None

    def create(self):
        return self.ask("POST", "/sandboxes", {"templateID": "base", "timeout": 3600})["sandboxID"]

    def kill(self, sandbox):
        self.ask("DELETE", f"/sandboxes/{sandbox}")

    def again(self):
        self.connection.close()


def measure(place, atoll, stub, rounds):
    said = json.loads(atoll.said)
    environment = {**place.environment, "ATOLL_URL": said["url"], "ATOLL_KEY": said["key"], "STUB_URL": stub.said}
    run = place.run(["node", os.path.join(HERE, "serving.mjs"), str(package()), str(rounds)], env=environment,
                    timeout=1200)
    if run.returncode != 0:
        raise Unusable(f"the client: {run.stderr.strip()[-400:] or run.returncode}")
    return json.loads(run.stdout)


def creations(place):
    """What the service's own log says of each one that was made, in order."""
    logs = sorted(pathlib.Path(place.path("state/atoll/service/audit")).glob("*.jsonl"))
    records = (json.loads(line) for log in logs for line in log.read_text(encoding="utf-8").splitlines())
    return [record["detail"] for record in records
            if record.get("rule") == "sandbox.create" and record["detail"]["status"] == 201]


def show_steps(place, report, name, made):
    """The steps of creations inside the server: from the front's question to the reply that is logged and sent."""
    rows = []
    for step, key in (("atolld reads it", "read_us"), ("its start is asked for", "started_us"),
                      ("it is ready", "ready_us"), ("the reply is logged", "us")):
        times = [detail[key] / 1e3 for detail in made]
        rows.append([step, len(times), f"{quantile(times, .5):.3f}", f"{quantile(times, .95):.3f}"])
    report.table(place, f"Inside the server: {name}, from the front's question", ["", "n", "median ms", "p95 ms"], rows)


def measure_cold(place, report, rounds):
    """Creates with no pool, beside `atoll run` under the same policy, in turn; what is taken is no part of it."""
    policy, times = place.path("serve.yaml"), {"create, cold": [], "atoll run": []}
    words = [place.atoll, "serve", "--listen", "127.0.0.1:0", "--json", "--policy", policy, "--pool", "0"]
    before, each = len(creations(place)), max(5, rounds // 4)
    place.settle()
    with Server(place, words) as server:
        client = Client(place, json.loads(server.said)["url"], "cold")
        client.kill(client.create())
        for _ in range(4):
            for _ in range(each):
                began = time.monotonic_ns()
                made = client.create()
                times["create, cold"].append(time.monotonic_ns() - began)
                client.kill(made)
            times["atoll run"] += place.latency_of(
                [place.atoll, "run", "-q", "-C", "/tmp", "-p", policy, "--", TRUE], each)
        client.again()
    made = creations(place)[before:]
    if any(detail["from"] != "cold" for detail in made):
        raise Unusable("a create with no pool was none of a cold start")
    ratio = quantile(times["create, cold"], .5) / quantile(times["atoll run"], .5)
    report.table(place, "Cold creates, by a connection that is kept", ["", "n", "median ms", "p95 ms"], [
        [name, len(found), *(f"{quantile(found, part) / 1e6:.2f}" for part in (.5, .95))]
        for name, found in times.items()], "atoll run: `true` under the same policy, from start to end")
    show_steps(place, report, "a cold create", made)
    report.budget(place, "a cold create against `atoll run` of `true`", ratio, 2)
    return times


def section_service(place, report, rounds):
    policy = place.path("serve.yaml")
    pathlib.Path(policy).write_text(POLICY, encoding="utf-8")
    words = [place.atoll, "serve", "--listen", "127.0.0.1:0", "--json", "--policy", policy, "--sandboxes", "2000"]
    stub_words = ["node", os.path.join(HERE, "serving-stub.mjs"), "0.5.7"]
    package()
    with Server(place, words) as atoll, Server(place, stub_words) as stub:
        found = measure(place, atoll, stub, rounds)
    # Behind the first of all and five that warm up.
    pooled = [detail for detail in creations(place)[6:6 + rounds] if detail["from"] == "pool"]
    rows, ratios = [], {}
    for name, times in found["times"].items():
        ratios[name] = quantile(times["atoll"], .5) / quantile(times["stub"], .5)
        rows.append([name, len(times["atoll"]), *(f"{quantile(times['atoll'], part):.2f}" for part in (.5, .95)),
                     f"{quantile(times['stub'], .5):.2f}", f"{ratios[name]:.2f}"])
    report.table(place, "The service, by the npm client", ["", "n", "median ms", "p95 ms", "stub ms", "× stub"], rows,
                 f"burst: {found['burst_ms']['atoll']:.0f} ms, stub {found['burst_ms']['stub']:.0f} ms, "
                 f"{len(found['failures'])} failures")
    if pooled:
        show_steps(place, report, "a create out of the pool", pooled)
        report.budget(place, "a create out of the pool, inside the server, p50",
                      quantile([detail["us"] / 1e3 for detail in pooled], .5), 0.5, "ms")
    report.budget(place, "creates that found the pool empty", 1 - len(pooled) / rounds, 0.05, "")
    for name, part, limit, unit in LIMITS:
        report.budget(place, f"npm client: {name}, p{part * 100:.0f}", quantile(found["times"][name]["atoll"], part),
                      limit, unit)
    report.budget(place, "npm client: commands.run('true') against a stub", ratios["commands.run('true')"], 1.3)
    for name in ("files.write, 16 MiB", "files.read, 16 MiB"):
        report.budget(place, f"npm client: {name}, speed against a stub", 1 / ratios[name], 0.8, at_least=True)
    report.budget(place, "npm client: Template.build of unchanged steps, p50", quantile(found["builds_ms"], .5), 50,
                  "ms")
    report.budget(place, "npm client: failures of a burst with 50 clients", len(found["failures"]), 0, "")
    return {**found, "cold": measure_cold(place, report, rounds)}
