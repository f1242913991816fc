# SPDX-License-Identifier: Apache-2.0
"""`atoll serve` as a program sees it that uses the npm package e2b, beside a stub in Node with the same client."""
import json
import os
import pathlib
import shutil
import subprocess

from contenders import HERE, Unusable
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


def measure(place, atoll, stub, rounds):
    said = json.loads(atoll.said)
    environment = {**place.environment, "ATOLL_URL": said["url"], "ATOLL_KEY": said["key"], "STUB_URL": stub.said}
    run = place.run(["node", os.path.join(HERE, "serving.mjs"), str(package()), str(rounds)], env=environment,
                    timeout=1200)
    if run.returncode != 0:
        raise Unusable(f"the client: {run.stderr.strip()[-400:] or run.returncode}")
    return json.loads(run.stdout)


def section_service(place, report, rounds):
    policy = place.path("serve.yaml")
    pathlib.Path(policy).write_text(POLICY, encoding="utf-8")
    words = [place.atoll, "serve", "--listen", "127.0.0.1:0", "--json", "--policy", policy, "--sandboxes", "2000"]
    stub_words = ["node", os.path.join(HERE, "serving-stub.mjs"), "0.5.7"]
    package()
    with Server(place, words) as atoll, Server(place, stub_words) as stub:
        found = measure(place, atoll, stub, rounds)
    rows, ratios = [], {}
    for name, times in found["times"].items():
        ratios[name] = quantile(times["atoll"], .5) / quantile(times["stub"], .5)
        rows.append([name, len(times["atoll"]), *(f"{quantile(times['atoll'], part):.2f}" for part in (.5, .95)),
                     f"{quantile(times['stub'], .5):.2f}", f"{ratios[name]:.2f}"])
    report.table(place, "The service, by the npm client", ["", "n", "median ms", "p95 ms", "stub ms", "× stub"], rows,
                 f"burst: {found['burst_ms']['atoll']:.0f} ms, stub {found['burst_ms']['stub']:.0f} ms, "
                 f"{len(found['failures'])} failures")
    for name, part, limit, unit in LIMITS:
        report.budget(place, f"npm client: {name}, p{part * 100:.0f}", quantile(found["times"][name]["atoll"], part),
                      limit, unit)
    report.budget(place, "npm client: commands.run('true') against a stub", ratios["commands.run('true')"], 1.3)
    for name in ("files.write, 16 MiB", "files.read, 16 MiB"):
        report.budget(place, f"npm client: {name}, speed against a stub", 1 / ratios[name], 0.8, at_least=True)
    report.budget(place, "npm client: failures of a burst with 50 clients", len(found["failures"]), 0, "")
    return found
