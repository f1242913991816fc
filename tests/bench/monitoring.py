# SPDX-License-Identifier: Apache-2.0
"""What counting and comparing costs: a C build, and the shortest run, with a baseline and canaries beside the same
without."""
import os
import statistics
import subprocess
import time

import workloads

POLICIES = {
    "off": "atoll: 1\nextends: medium\n",
    "baseline": "atoll: 1\nextends: medium\nmonitor: {baseline: true, learn: 5}\n",
    "on": "atoll: 1\nextends: medium\nmonitor: {baseline: true, learn: 5}\n"
          "data: {canaries: [~/.aws/credentials, ./.env]}\n",
}


def policy(place, name):
    path = os.path.join(place.home, f"monitor-{name}.yaml")
    with open(path, "w", encoding="ascii") as file:
        file.write(POLICIES[name])
    os.chmod(path, 0o644)
    return path


def measure(place, words, rounds):
    """Whole runs in turn, in ns, by the name of the policy."""
    commands = {name: [place.atoll, "run", "-q", "--discard", "-p", policy(place, name), "--", *words]
                for name in POLICIES}
    raw = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            begin = time.perf_counter_ns()
            done = place.run(command, timeout=600)
            if done.returncode != 0:
                raise workloads.Unusable(f"{name}: {done.stderr.strip()[-300:]}")
            raw[name].append(time.perf_counter_ns() - begin)
    return raw


def show(place, report, title, raw):
    rows = [[name, f"{min(times) / 1e6:.2f}", f"{statistics.median(times) / 1e6:.2f}",
             f"{statistics.median(times) / statistics.median(raw['off']):.3f}"] for name, times in raw.items()]
    report.table(place, title, ["monitor", "least ms", "median ms", "× off"], rows, "whole runs in turn")


def section_monitor(place, report, rounds):
    build = workloads.Build()
    build.prepare(place)
    if place.uid != os.getuid():
        subprocess.run(["chown", "-R", f"{place.uid}:{place.gid}", place.project], check=True)
    short = measure(place, ["/bin/true"], max(40, 8 * rounds))
    show(place, report, "The shortest run with monitoring", short)
    raw = measure(place, build.argv(place), max(7, rounds))
    show(place, report, "A C build with monitoring", raw)
    report.budget(place, "a C build with a baseline and two canaries against without",
                  statistics.median(raw["on"]) / statistics.median(raw["off"]), 1.01)
    return {"short": short, "build": raw}
