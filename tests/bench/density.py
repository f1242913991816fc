# SPDX-License-Identifier: Apache-2.0
"""Thousands of sandboxes of `atoll serve` on one machine: what they cost while nothing happens in them, what somebody
else's run costs beside them, and what is left when five times as many were made and killed."""
import json
import os
import pathlib
import time

from contenders import TRUE, Unusable
from parking import available_kib, quantile
from serving import POLICY, Client, Server

SETTLE_S, LOOK_S, RUNS = 45, 30, 30
QUIET_ONES = 8
WILD = {"nobody is wild": None,
        "eight busy loops": "for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; wait",
        "a fork bomb": "bomb() { bomb | bomb & }; while :; do bomb; sleep 0.01; done",
        "memory taken without end": "while :; do python3 -c 'kept = []\nwhile True: kept.append(bytearray(1 << 20))'; "
                                    "done"}


def processes(place):
    """pid → program, of this place's copies."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            program = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            continue
        if program.startswith(place.bin + "/"):
            found[int(pid)] = os.path.basename(program)
    return found


def cpu_ns(pids):
    total = 0
    for pid in pids:
        try:
            total += int(pathlib.Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0])
        except OSError:
            continue
    return total


def run_ms(place):
    times = []
    for _ in range(RUNS):
        began = time.monotonic()
        if place.run([place.atoll, "run", "-q", "--", TRUE], env=place.environment).returncode:
            raise Unusable("atoll run failed beside them")
        times.append((time.monotonic() - began) * 1e3)
    return times


def state(place, pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    groups = sum(name.startswith("atoll-") for _, names, _ in os.walk("/sys/fs/cgroup") for name in names)
    return {"processes": len(processes(place)), "cgroups": groups,
            "descriptors of atolld": len(os.listdir(f"/proc/{pid}/fd")),
            "RSS of atolld, KiB": int(status.split("VmRSS:")[1].split()[0]),
            "sessions": len(os.listdir(place.path("state/atoll/sessions")))}


def idle(place, client, count, pid):
    """What `count` cost that do nothing, and the times of runs beside them."""
    before, made = available_kib(), []
    try:
        for _ in range(count):
            made.append(client.create())
        client.again()
        time.sleep(SETTLE_S)
        each, pids = (before - available_kib()) / count, processes(place)
        began = cpu_ns(pids)
        time.sleep(LOOK_S)
        used = (cpu_ns(pids) - began) / LOOK_S / 1e7
        return {"kib": each, "cpu": used, "rss": state(place, pid)["RSS of atolld, KiB"], "runs": run_ms(place)}
    finally:
        client.again()
        for sandbox in made:
            client.kill(sandbox)
        client.again()


def section_density(place, report, count):
    pathlib.Path(place.path("serve.yaml")).write_text(POLICY, encoding="utf-8")
    words = [place.atoll, "serve", "--listen", "127.0.0.1:0", "--json", "--policy", place.path("serve.yaml")]
    with Server(place, words) as server:
        client = Client(place, json.loads(server.said)["url"], "density")
        pid = next(pid for pid, program in processes(place).items() if program == "atolld")
        empty = run_ms(place)
        client.kill(client.create())
        start = state(place, pid)
        found = idle(place, client, count, pid)
        for _ in range(5 * count):
            client.kill(client.create())
        client.again()
        time.sleep(SETTLE_S)
        end = state(place, pid)
    ratio = quantile(found["runs"], .95) / quantile(empty, .95)
    report.table(place, f"{count} sandboxes in which nothing happens", ["", ""], [
        ["each, by the fall of MemAvailable", f"{found['kib']:.0f} KiB"],
        ["all together", f"{found['cpu']:.2f} % of a core"], ["atolld", f"{found['rss'] / 1024:.1f} MiB"],
        ["`atoll run -- true` beside them, p95", f"{quantile(found['runs'], .95):.1f} ms"],
        ["the same beside none", f"{quantile(empty, .95):.1f} ms"]])
    report.table(place, f"After {5 * count} more were made and killed", ["", "before", "after"],
                 [[name, start[name], end[name]] for name in start],
                 "the pool may wait; sessions are kept up to `kept` of the service's configuration")
    report.budget(place, "an idle sandbox, by MemAvailable", found["kib"], 1024, "KiB")
    report.budget(place, f"{count} idle sandboxes", found["cpu"], 2, "%")
    report.budget(place, f"atolld with {count} sandboxes", found["rss"] / 1024, 64, "MiB")
    report.budget(place, "p95 of a run beside them, against beside none", ratio, 5)
    return {"empty": empty, "idle": found, "start": start, "end": end}


def exec_ms(place, sandboxes, rounds):
    """Commands in sandboxes that did nothing wrong, one after the other, in turn."""
    times = []
    for at in range(rounds):
        command = [place.atoll, "exec", sandboxes[at % len(sandboxes)], "--", TRUE]
        began = time.monotonic()
        run = place.run(command, env=place.environment, timeout=120)
        if run.returncode:
            raise Unusable(f"atoll exec: {run.stderr.strip()[-300:] or run.returncode}")
        times.append((time.monotonic() - began) * 1e3)
    return times


def taken(before):
    """Processes and MiB that the machine has less of than it had."""
    count = sum(name.isdigit() for name in os.listdir("/proc"))
    return count - before[0], (before[1] - available_kib()) // 1024


def beside(place, client, script, quiet, rounds):
    """The same beside one sandbox in which this script runs, and what that took; it may not live through it."""
    before = (sum(name.isdigit() for name in os.listdir("/proc")), available_kib())
    if not script:
        return exec_ms(place, quiet, rounds), taken(before)
    wild = client.create()
    try:
        run = place.run([place.atoll, "exec", "-d", wild, "--", "/bin/bash", "-c", script], env=place.environment)
        if run.returncode:
            raise Unusable(f"atoll exec -d: {run.stderr.strip()[-300:] or run.returncode}")
        time.sleep(2)
        seen = taken(before)
        return exec_ms(place, quiet, rounds), seen
    finally:
        place.run([place.atoll, "stop", "-t", "0s", wild], env=place.environment)


def section_fair(place, report, rounds):
    """What one sandbox that takes all it gets costs the others. Bounds are cgroups: for root alone."""
    if place.uid:
        raise Unusable("without cgroups of one's own nothing bounds a sandbox's processes together")
    pathlib.Path(place.path("serve.yaml")).write_text("atoll: 1\nextends: service-base\n", encoding="utf-8")
    words = [place.atoll, "serve", "--listen", "127.0.0.1:0", "--json", "--policy", place.path("serve.yaml")]
    times, seen = {}, {}
    with Server(place, words) as server:
        client = Client(place, json.loads(server.said)["url"], "fair")
        quiet = [client.create() for _ in range(QUIET_ONES)]
        for name, script in WILD.items():
            times[name], seen[name] = beside(place, client, script, quiet, rounds)
            client.again()
        for sandbox in quiet:
            client.kill(sandbox)
    base = quantile(times["nobody is wild"], .95)
    report.table(place, f"`atoll exec` of `true` in {QUIET_ONES} sandboxes, beside one that is wild",
                 ["", "processes more", "MiB less", "n", "median ms", "p95 ms", "× p95"],
                 [[name, *seen[name], len(found), f"{quantile(found, .5):.2f}", f"{quantile(found, .95):.2f}",
                   f"{quantile(found, .95) / base:.2f}"] for name, found in times.items()])
    for name in list(WILD)[1:]:
        report.budget(place, f"p95 of a command in another sandbox, {name}", quantile(times[name], .95) / base, 5)
    return times
