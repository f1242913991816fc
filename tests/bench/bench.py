#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""atoll beside its peers on this machine, as ratios (doc/bench.md says how to read them).

  bench.py --build build [--quick] [--ahead] [--as root|user|both] [--json FILE] [SECTION…]

Sections: start rules exec exec-gate rate parked memory work gate mediation monitor interpreter service functions fair
stage stages verify (none named: all of these), and density. All contenders of a table run round-robin in one run, so
that drift hits all alike. Nothing here fails for a missed budget.
"""
import argparse
import atexit
import ctypes
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import density
import gate
import interpreting
import invoking
import mediation
import monitoring
import parking
import serving
import staging
import verifying
import workloads
from contenders import TRUE, Place, Unusable

FAST = ("plain", "floor", "floor+duties", "atoll bare", "atoll", "bwrap", "bwrap+seccomp", "unshare")
SLOW = ("firejail", "crun", "runc", "runsc", "podman")


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def median(values):
    return quantile(values, 0.5)


class Report:
    """What is printed, and the same as JSON."""

    def __init__(self):
        self.tables, self.budgets, self.missing = [], [], {}

    def table(self, place, title, heads, rows, note=""):
        cells = [[str(cell) for cell in row] for row in rows]
        widths = [max(len(row[i]) for row in [heads, *cells]) for i in range(len(heads))]
        print(f"\n{title} ({place.name})")
        for row in [heads, *cells]:
            print("  " + "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                                   for i, (cell, width) in enumerate(zip(row, widths))))
        if note:
            print("  " + note)
        sys.stdout.flush()
        self.tables.append({"user": place.name, "title": title, "heads": heads, "rows": rows, "note": note})

    def budget(self, place, what, value, limit, unit="×", at_least=False):
        is_met = value >= limit if at_least else value <= limit
        self.budgets.append({"user": place.name, "what": what, "value": round(value, 4), "limit": limit, "unit": unit,
                             "at_least": at_least, "met": is_met})

    def absent(self, place, missing):
        for name, why in missing.items():
            if self.missing.setdefault(place.name, {}).get(name) != why:
                self.missing[place.name][name] = why
                print(f"  left out: {name} ({place.name}): {why}")

    def print_budgets(self):
        print("\nBudgets")
        for row in self.budgets:
            sign = "≥" if row["at_least"] else "≤"
            print(f"  {'met   ' if row['met'] else 'MISSED'}  {row['value']:>8.3f} {row['unit']:<4} "
                  f"{sign} {row['limit']:<6} {row['what']} ({row['user']})")
        if not self.budgets:
            print("  none was measured")


def latency_rows(times, base):
    rows = []
    for name, values in times.items():
        rows.append([name, len(values), f"{min(values) / 1e6:.3f}", f"{median(values) / 1e6:.3f}",
                     f"{quantile(values, .95) / 1e6:.3f}", f"{median(values) / median(times[base]):.2f}"])
    return rows


LATENCY_HEADS = ["", "n", "min ms", "median ms", "p95 ms", "× plain"]


def without_unified_cgroup(place):
    """crun refuses hybrid hosts; the container runtimes are measured where the v2 tree is not mounted."""
    if place.uid != 0 or not os.path.ismount("/sys/fs/cgroup/unified"):
        return ()
    return ("/usr/bin/unshare", "--mount", "/bin/sh", "-c", "umount /sys/fs/cgroup/unified; exec \"$@\"", "sh")


def section_start(place, report, rounds):
    commands, missing = place.usable(FAST, [TRUE])
    times = place.latency(commands, rounds)
    # The slow ones in rounds of their own: 200 starts of each would take minutes.
    prefix = without_unified_cgroup(place)
    slow, more_missing = place.usable(SLOW, [TRUE], prefix)
    report.absent(place, {**missing, **more_missing})
    if slow:
        times.update(place.latency(slow, max(5, rounds // 10), prefix))
    where = "read from a real run" if place.plan.is_measured else "atoll does not run: a written-down list"
    report.table(place, "Cold start to exit of `true`", LATENCY_HEADS, latency_rows(times, "plain"),
                 f"root of floor and peers: {len(place.plan.mounts)} mounts and links ({where}); "
                 f"floor: {place.plan.landlock_rules} Landlock rules, {place.plan.filter_size} filter instructions")
    # What a staged tree and the gate may cost beyond this is in `stage` and `gate`: 1.15 × and 1.5 × of it.
    for contender, factor in (("atoll bare", 1), ("atoll", 1.15 * 1.5)):
        for name, limit in (("bwrap", 0.5), ("floor", 1.5)):
            if contender in times and name in times:
                ratio = median(times[contender]) / median(times[name])
                report.budget(place, f"cold start of `true`, {contender} against {name}", ratio,
                              round(limit * factor, 2))
    return times


RULE_KINDS = (
    ("files.read", lambda i: f"/usr/share/atoll-bench/{i}"),
    ("files.mask", lambda i: f"~/.atoll-bench/{i}"),
    ("exec.deny", lambda i: f"{{program: /usr/bin/atoll-bench-{i}}}"),
)


def policy_with(rules):
    sections = {}
    for i in range(rules):
        key, text = RULE_KINDS[i % len(RULE_KINDS)]
        section, kind = key.split(".")
        sections.setdefault(section, {}).setdefault(kind, []).append(text(i))
    lines = ["atoll: 1", "extends: medium"]
    for section, kinds in sections.items():
        lines.append(f"{section}:")
        lines += [f"  {kind}: [{', '.join(texts)}]" for kind, texts in kinds.items()]
    return "\n".join(lines) + "\n"


def section_rules(place, report, rounds):
    commands = {}
    for rules in (0, 1000):
        path = os.path.join(place.home, f"policy-{rules}.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write(policy_with(rules))
        os.chmod(path, 0o644)
        commands[f"{rules} rules"] = [place.atoll, "run", "-p", path, "--", TRUE]
    place.settle()
    for name, command in commands.items():
        run = place.run(command)
        if run.returncode != 0:
            raise Unusable(f"atoll run with {name}: {run.stderr.strip()[-300:] or run.returncode}")
    times = place.latency({"plain": [TRUE], **commands}, rounds)
    report.table(place, "Policy rules (a third each of files.read, files.mask, exec.deny)", LATENCY_HEADS,
                 latency_rows(times, "plain"))
    report.budget(place, "1,000 rules against 0", median(times["1000 rules"]) / median(times["0 rules"]), 1.05)
    return times


class Live:
    """A sandbox that lives in the background while it is measured."""

    def __init__(self, place):
        self.place = place
        run = place.run([place.atoll, "run", "-d", "--", "/bin/sleep", "600"])
        words = run.stdout.split()
        if run.returncode != 0 or not words:
            raise Unusable(f"atoll run -d: {run.stderr.strip()[-300:] or run.returncode}")
        self.id = words[0]

    def __enter__(self):
        return self.id

    def __exit__(self, *_):
        self.place.run([self.place.atoll, "stop", self.id])


def section_exec(place, report, rounds):
    with Live(place) as session:
        command = [place.atoll, "exec", session, "--", TRUE]
        run = place.run(command)
        if run.returncode != 0:
            raise Unusable(f"atoll exec: {run.stderr.strip()[-300:] or run.returncode}")
        times = place.latency({"plain": [TRUE], "atoll exec": command}, rounds)
    report.table(place, "`true` in a live sandbox", LATENCY_HEADS, latency_rows(times, "plain"))
    report.budget(place, "`atoll exec` of `true` against fork+exec outside",
                  median(times["atoll exec"]) / median(times["plain"]), 1.5)
    return times


# Starts programs one after the other; each that has ended counts, and so the tracer's work at its end.
SPAWNS = """
import os, sys, time
times = []
for _ in range(int(sys.argv[1])):
    start = time.perf_counter_ns()
    os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)
    times.append((time.perf_counter_ns() - start) / 1000)
print(*times)
"""
EXEC_RULES = {"one pattern": ['"**/nothing"'], "with arguments": ['{argv: [git, push, "**"]}'],
              "10,000 paths": [f"/opt/bench/bin/tool{i}" for i in range(10000)]}


def section_exec_gate(place, report, rounds):
    command = ["/usr/bin/python3", "-c", SPAWNS, str(rounds)]
    commands = {"outside": command, "inside, no rules": [place.atoll, "run", "-q", "--", *command]}
    for name, rules in EXEC_RULES.items():
        path = os.path.join(place.home, f"exec-{len(commands)}.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"atoll: 1\nextends: medium\nexec: {{deny: [{', '.join(rules)}]}}\n")
        os.chmod(path, 0o644)
        commands[f"inside, {name}"] = [place.atoll, "run", "-q", "-p", path, "--", *command]
    if shutil.which("strace"):
        commands["strace -f -e execve"] = ["strace", "-f", "-qq", "-e", "trace=execve", "-o", "/dev/null", *command]
    times = {name: [] for name in commands}
    for _ in range(3):
        for name, words in commands.items():
            run = place.run(words)
            if run.returncode != 0:
                raise Unusable(f"{name}: {run.stderr.strip()[-300:] or run.returncode}")
            times[name] += map(float, run.stdout.split())
    rows = [[name, f"{median(values):.0f}", f"{quantile(values, .95):.0f}",
             f"{median(values) / median(times['inside, no rules']):.2f}"] for name, values in times.items()]
    report.table(place, "Starting `true` from one process", ["where", "median µs", "p95 µs", "x"], rows)
    return times


def section_rate(place, report, duration_ms):
    commands, missing = place.usable(("atoll bare", "atoll", "bwrap", "floor", "unshare"), [TRUE])
    report.absent(place, missing)
    rates, failures = {name: {} for name in commands}, {}
    for jobs in (1, 2, 8, 32):
        samples = {name: [] for name in commands}
        for _ in range(3):
            for name, command in commands.items():
                good, failed, ns = place.throughput(command, jobs, duration_ms // 3)
                samples[name].append(good / (ns / 1e9))
                failures[name] = failures.get(name, 0) + failed
        for name, values in samples.items():
            rates[name][jobs] = median(values)
    rows = [[name, *(f"{rate:.0f}" for rate in by_jobs.values()), failures[name]] for name, by_jobs in rates.items()]
    report.table(place, "Sandboxes a second by number of starters", ["", "1", "2", "8", "32", "failed"], rows,
                 "median of three slices, the contenders in turn")
    if "atoll bare" in rates and "bwrap" in rates:
        for jobs in (1, 2, 8, 32):
            report.budget(place, f"sandboxes a second with {jobs} starters, atoll bare against bwrap",
                          rates["atoll bare"][jobs] / rates["bwrap"][jobs], 2, at_least=True)
        report.budget(place, "sandboxes a second with 8 starters, atoll against bwrap",
                      rates["atoll"][8] / rates["bwrap"][8], 1, at_least=True)
    return {"rates": rates, "failed": failures}


def processes_below(root):
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    text = file.read()
                parent = int(text[text.rindex(")") + 2:].split()[1])
                parents[int(name)] = parent, text[text.index("(") + 1:text.rindex(")")]
            except (OSError, ValueError):
                continue
    found, grew = {root}, True
    while grew:
        more = {pid for pid, (parent, _) in parents.items() if parent in found} - found
        found |= more
        grew = bool(more)
    return {pid: parents[pid][1] for pid in found if pid in parents}


def pss_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))


def shares_memory(pid, others):
    """kcmp(2), KCMP_VM: the guardian sleeps in the box's memory, which would else be counted twice."""
    number = {"x86_64": 312, "aarch64": 272}.get(os.uname().machine)
    libc = ctypes.CDLL(None)
    return number is not None and any(libc.syscall(number, pid, other, 1, 0, 0) == 0 for other in others)


def section_memory(place, report, _):
    commands, missing = place.usable(("atoll", "bwrap"), [TRUE])
    report.absent(place, missing)
    rows, totals = [], {}
    for name in commands:
        process = place.popen(place.command_of(name, ["/bin/sleep", "30"]))
        try:
            time.sleep(2)
            own = {pid: comm for pid, comm in processes_below(process.pid).items() if comm != "sleep"}
            sizes = {}
            for pid in sorted(own):
                sizes[pid] = 0 if shares_memory(pid, sizes) else pss_kib(pid)
        except (OSError, StopIteration) as error:
            report.absent(place, {f"memory of {name}": f"smaps_rollup: {error}"})
            continue
        finally:
            process.terminate()
            process.wait(timeout=20)
        totals[name] = sum(sizes.values())
        rows.append([name, totals[name], ", ".join(f"{own[pid]} {size}" for pid, size in sorted(sizes.items()))])
    report.table(place, "Memory of what stays beside a sleeping command, PSS in KiB", ["", "KiB", "of which"], rows)
    if "atoll" in totals:
        report.budget(place, "supervisor + init, idle", totals["atoll"], 600, "KiB")
    return totals


def section_work(place, report, rounds):
    rows, raw = [], {}
    policy = os.path.join(place.home, "work.yaml")
    with open(policy, "w", encoding="ascii") as file:
        file.write(workloads.IN_PLACE)
    os.chmod(policy, 0o644)
    place.settle()
    for work in workloads.ALL:
        work.options = ("-q", "-p", policy)
        try:
            inside, outside, whole = work.measure(place, rounds)
        except Unusable as why:
            report.absent(place, {work.name: str(why)})
            continue
        ratio = median(inside) / median(outside)
        rows.append([work.name, len(inside), f"{median(outside) / 1e6:.2f}", f"{median(inside) / 1e6:.2f}",
                     f"{ratio:.3f}", f"{median(whole) / median(outside):.3f}"])
        raw[work.name] = {"inside": inside, "outside": outside, "whole": whole}
        report.budget(place, f"{work.name}, inside against outside", ratio, 1.03)
    report.table(place, "Real work", ["", "n", "outside ms", "inside ms", "ratio", "with start"], rows,
                 "the project in place (`stage` has the same in a staged tree); ratio: timed inside a sandbox that is "
                 "up; with start: a whole `atoll run` against the command")
    return raw


def section_stages(place, report, rounds):
    path, stages, names = os.path.join(place.home, "report.json"), {}, []
    for _ in range(max(10, rounds // 4)):
        run = place.run([place.atoll, "run", "--report", path, "--", TRUE])
        if run.returncode != 0:
            raise Unusable(f"atoll run --report: {run.stderr.strip()[-300:] or run.returncode}")
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        if "stages" not in data:
            raise Unusable("the report has no `stages`")
        for stage in data["stages"]:
            if stage["name"] not in stages:
                names.append(stage["name"])
            stages.setdefault(stage["name"], []).append(stage["us"])
    # "jail.mounts" is a part of "jail", shown below it and counted once.
    whole = sum(median(stages[name]) for name in names if "." not in name)
    rows = []
    for name in names:
        low, middle, high = min(stages[name]), median(stages[name]), quantile(stages[name], .95)
        rows.append(["  " * name.count(".") + name, f"{low:.0f}", f"{middle:.0f}", f"{high:.0f}",
                     f"{100 * middle / whole:.0f}"])
    heads = ["stage", "min µs", "median µs", "p95 µs", "%"]
    report.table(place, "Where the time of `atoll run -- true` goes", heads, rows,
                 f"sum of the medians: {whole:.0f} µs")
    return stages


SECTIONS = {"start": (section_start, 200, 30), "rules": (section_rules, 200, 30), "exec": (section_exec, 300, 50),
            "exec-gate": (section_exec_gate, 400, 100), "rate": (section_rate, 2400, 600),
            "density": (density.section_density, 2000, 200),
            "fair": (density.section_fair, 100, 30),
            "parked": (parking.section_parked, 100, 20),
            "memory": (section_memory, 1, 1), "work": (section_work, 15, 9), "gate": (gate.section_gate, 100, 20),
            "mediation": (mediation.section_mediation, 200, 50),
            "monitor": (monitoring.section_monitor, 25, 7),
            "interpreter": (interpreting.section_interpreter, 100, 10),
            "service": (serving.section_service, 100, 20),
            "functions": (invoking.section_functions, 60, 15),
            "stage": (staging.section_stage, 100, 15), "stages": (section_stages, 200, 40),
            "verify": (verifying.section_verify, 200, 50)}

# Left out where none is named: it takes minutes and gigabytes.
ON_WISH = ("density",)


def make_user():
    name = f"atolltest{os.getpid()}"
    subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/sh", name], check=True)
    user = pwd.getpwnam(name)
    atexit.register(remove_user, user)
    return user


def remove_user(user):
    """Podman leaves a process behind, and userdel refuses users that have one. All of them are of this run."""
    for pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        try:
            if os.stat(f"/proc/{pid}").st_uid == user.pw_uid:
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    time.sleep(0.2)
    subprocess.run(["userdel", user.pw_name], check=True)


def make_places(folder, build, who):
    if os.getuid() != 0:
        yield Place(folder, build, "user", os.getuid(), os.getgid())
        return
    if who in ("root", "both"):
        yield Place(folder, build, "root", 0, 0)
    if who in ("user", "both"):
        user = make_user()
        yield Place(folder, build, "user", user.pw_uid, user.pw_gid)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    model = models[0] if models else os.uname().machine
    return {"kernel": os.uname().release, "cpu": model, "cpus": os.cpu_count(), "load": os.getloadavg()[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--quick", action="store_true", help="few rounds: a look, not a measurement")
    parser.add_argument("--ahead", action="store_true",
                        help="ahead of everything else that runs (SCHED_RR): for a busy machine, by root alone")
    parser.add_argument("--as", dest="who", choices=("root", "user", "both"), default="both",
                        help="who runs, where root starts this")
    parser.add_argument("--json", default=None, help="default BUILD/bench.json")
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], default=[])
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))   # or the user and the folder would stay
    about, report, results = machine(), Report(), {}
    if options.ahead:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))   # all contenders inherit it
    print(f"{about['cpus']} × {about['cpu']}, Linux {about['kernel']}, load {about['load']:.2f}"
          + (" (busy: figures will be coarse)" if about["load"] > about["cpus"] / 2 else ""))
    folder = tempfile.mkdtemp(prefix="atoll-bench.", dir="/var/tmp")
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.chmod(folder, 0o755)
    for place in make_places(folder, os.path.abspath(options.build), options.who):
        for name in options.sections or (name for name in SECTIONS if name not in ON_WISH):
            section, full, quick = SECTIONS[name]
            try:
                results.setdefault(place.name, {})[name] = section(place, report, quick if options.quick else full)
            except (Unusable, OSError, subprocess.SubprocessError) as why:
                report.absent(place, {f"section {name}": str(why)})
    report.print_budgets()
    path = options.json or os.path.join(options.build, "bench.json")
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"machine": about, "quick": options.quick, "ahead": options.ahead,
                   "budgets": report.budgets, "missing": report.missing,
                   "tables": report.tables, "raw": results}, file, indent=1)
    print(f"\nall figures: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
