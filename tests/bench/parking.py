# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that are parked (atoll_park, atoll_take): how long a program waits for one, how many a second a full pool
gives, and what one costs that waits."""
import os
import subprocess
import time

from contenders import HERE, TRUE, Unusable

SLICES = 4


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


class Client:
    """tests/bench/parked.c, for an empty project of its own."""

    def __init__(self, place):
        self.place = place
        self.project = place.path("empty")
        os.makedirs(self.project, exist_ok=True)
        os.chown(self.project, place.uid, place.gid)
        library = os.path.join(place.build, "lib")
        if not os.path.exists(os.path.join(library, "libatoll.so")):
            raise Unusable(f"libatoll is not built in {library}")
        place.compile("parked", ["gcc", "-O2", "-I", os.path.join(HERE, "../../src/client"),
                                 os.path.join(HERE, "parked.c"), os.path.join(library, "libatoll.a")])
        path = f"{os.path.dirname(place.atoll)}:{place.environment['PATH']}"
        self.environment = {**place.environment, "PATH": path}

    def words(self, mode, count):
        return [self.place.path("parked"), "medium", self.project, mode, str(count)]

    def run(self, mode, count):
        run = self.place.run(self.words(mode, count), env=self.environment, timeout=600)
        if run.returncode != 0:
            raise Unusable(f"parked {mode}: {run.stderr.strip()[-300:] or run.returncode}")
        return [[float(word) for word in line.split()] for line in run.stdout.splitlines()]


def available_kib():
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable:"))


def kib_each(client, count):
    """By the fall of MemAvailable, between two looks that are near each other."""
    subprocess.run(["sync"], check=False)
    before = available_kib()
    child = subprocess.Popen(client.words("hold", count), env=client.environment, cwd=client.place.project,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **client.place.as_user())
    try:
        if child.stdout.readline() != "parked\n":
            raise Unusable("parked hold: nothing came of it")
        time.sleep(1)
        return (before - available_kib()) / count
    finally:
        child.stdin.close()
        child.wait(timeout=120)


def section_parked(place, report, rounds):
    client = Client(place)
    commands, missing = place.usable(("bwrap",), [TRUE])
    report.absent(place, missing)
    commands["atoll run"] = [place.atoll, "run", "-q", "--", TRUE]
    times = {"atoll_create to READY": [], "atoll_take to READY": [], "taken, with `true`, to its end": [],
             "atoll run to exit of `true`": []}
    for _ in range(SLICES):
        times["atoll_create to READY"] += [row[0] for row in client.run("cold", max(5, rounds // SLICES))]
        times["atoll_take to READY"] += [row[0] for row in client.run("taken", max(5, rounds // SLICES))]
        times["taken, with `true`, to its end"] += [row[0] for row in client.run("run", max(5, rounds // SLICES))]
        for name, latency in place.latency(commands, max(5, rounds // SLICES)).items():
            times.setdefault(f"{name} to exit of `true`", []).extend(ns / 1e3 for ns in latency)
    create, take = (quantile(times[name], .5) for name in list(times)[:2])
    rows = [[name, len(values), f"{min(values) / 1e3:.3f}", f"{quantile(values, .5) / 1e3:.3f}",
             f"{quantile(values, .95) / 1e3:.3f}", f"{quantile(values, .5) / create:.3f}"]
            for name, values in times.items()]
    report.table(place, "A sandbox for a program, without a command", ["", "n", "min ms", "median ms", "p95 ms",
                                                                       "× atoll_create"], rows)
    bursts = [(count, client.run("burst", count)[0]) for count in (10, 100, 5 * rounds)]
    report.table(place, "Taken out of a full pool, all at once", ["", "calls ms", "all READY ms", "a second"],
                 [[f"{count} parked", f"{row[0] / 1e3:.2f}", f"{row[1] / 1e3:.2f}", f"{count / row[1] * 1e6:.0f}"]
                  for count, row in bursts])
    count = 5 * rounds
    sustained = count / client.run("sustain", count)[0][0] * 1e6
    report.table(place, "Taken, ended and parked anew, for long", ["", "a second"],
                 [[f"{count}, out of four that wait, one starter", f"{sustained:.0f}"]])
    each = quantile([kib_each(client, count) for _ in range(SLICES + 1)], .5)
    report.table(place, "What one costs that waits", ["", "KiB"], [[f"by MemAvailable, {count} parked", f"{each:.0f}"]])
    report.budget(place, "atoll_take() to READY", take / 1e3, 0.5, "ms")
    report.budget(place, "taken a second out of a full pool", bursts[-1][0] / bursts[-1][1][1] * 1e6, 2500, "/s",
                  at_least=True)
    if "bwrap" in commands:
        report.budget(place, "taken, with `true`, to its end, against bwrap",
                      quantile(times["taken, with `true`, to its end"], .5) /
                      quantile(times["bwrap to exit of `true`"], .5), 0.5)
        report.budget(place, "atoll_take() to READY against bwrap's start of `true`",
                      take / quantile(times["bwrap to exit of `true`"], .5), 0.5)
    return {"times": times, "bursts": bursts, "sustained": sustained, "kib": each}
