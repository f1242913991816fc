# SPDX-License-Identifier: Apache-2.0
"""What mediation costs: one open beside the kernel's own price, real jobs, a flood of events, questions that wait, and
one decision."""
import os
import shutil
import subprocess

import workloads
from contenders import Unusable
from workloads import IN_PLACE

HERE = os.path.dirname(os.path.abspath(__file__))
DEPTHS = ("off", "writes", "all")
EVENTS = 50000


def quantile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def median(values):
    return quantile(values, 0.5)


def policy(place, name, text):
    path = os.path.join(place.home, f"mediation-{name}.yaml")
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, 0o644)
    return path


def run_atoll(place, name, text, *options):
    return [place.atoll, "run", "-q", "-p", policy(place, name, text), *options, "--"]


def compile_programs(place):
    multiarch = subprocess.check_output(["gcc", "-print-multiarch"], text=True).strip()
    place.compile("opens", ["musl-gcc", "-O2", "-static", "-idirafter", "/usr/include", "-idirafter",
                            "/usr/include/" + multiarch, os.path.join(HERE, "opens.c")])
    # The libraries that atoll is linked with.
    libraries = [os.path.join(place.build, "musl", name) for name in ("libpolicy.a", "libbase.a")]
    place.compile("decide", ["musl-gcc", "-O2", "-static", "-D_GNU_SOURCE", "-I", os.path.join(HERE, "../../src"),
                             os.path.join(HERE, "decide.c"), *libraries])
    shutil.copy(place.path("opens"), os.path.join(place.project, "opens"))


def numbers(place, command, **options):
    run = place.run(command, **options)
    if run.returncode != 0:
        raise Unusable(f"{command[0]}: {run.stderr.strip()[-300:] or run.returncode}")
    return [int(word) for word in run.stdout.split()]


# ---- one open ---------------------------------------------------------------------------------------------------
def measure_open(place, report, rounds):
    file, count = "/usr/include/stdio.h", str(20 * rounds)
    inside = {f"inside, {depth}": [*run_atoll(place, depth, f"{IN_PLACE}audit: {{files: {depth}}}\n"),
                                   "./opens", "time", count, file] for depth in DEPTHS}
    place.settle()
    medians = {"outside": [], "floor: goes on at once": [], "floor: made by a supervisor": [],
               **{name: [] for name in inside}}
    for _ in range(7):
        medians["outside"] += numbers(place, [place.path("opens"), "time", count, file])
        goes_on, made = numbers(place, [place.path("opens"), "floor", count, file])
        medians["floor: goes on at once"].append(goes_on)
        medians["floor: made by a supervisor"].append(made)
        for name, command in inside.items():
            medians[name] += numbers(place, command)
    floor = medians["floor: made by a supervisor"]
    rows = [[name, f"{min(values) / 1000:.1f}", f"{median(values) / 1000:.1f}", f"{median(values) / median(floor):.2f}"]
            for name, values in medians.items()]
    report.table(place, "One open of a file (audit.files)", ["", "least µs", "median µs", "× floor"], rows,
                 f"medians of {count} opens, seven times in turn; the floor knows what to open and writes nothing down")
    report.budget(place, "an open with audit.files: all, in µs", min(medians["inside, all"]) / 1000, 12)
    return medians


# ---- jobs -------------------------------------------------------------------------------------------------------
class Npm(workloads.Work):
    name = "npm run"
    weight = 3

    def prepare(self, place):
        if not shutil.which("npm"):
            raise Unusable("npm is not installed")
        self.write(place, "npm/package.json",
                   '{"name": "bench", "version": "1.0.0", "scripts": {"job": "node job.js"}}\n')
        self.write(place, "npm/job.js", "for (const name of require('fs').readdirSync('.')) console.log(name);\n")

    def argv(self, place):
        return [shutil.which("npm"), "--prefix", os.path.join(place.project, "npm"), "run", "--silent", "job"]


class Pytest(workloads.Work):
    name = "pytest, 100 tests in 20 files"
    weight = 3

    def prepare(self, place):
        for i in range(20):
            self.write(place, f"pytest/test_{i}.py",
                       "".join(f"def test_{k}(tmp_path):\n    (tmp_path / 'x').write_text('{k}')\n" for k in range(5)))

    def argv(self, place):
        return ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider",
                os.path.join(place.project, "pytest")]


def measure_job(place, work, rounds):
    """{contender: [ns]}, in turn; each run's second start counts, by the stopwatch that is inside too."""
    work.prepare(place)
    if place.uid != os.getuid():
        subprocess.run(["chown", "-R", f"{place.uid}:{place.gid}", place.project], check=True)
    shutil.copy(place.path("spawn"), os.path.join(place.project, "spawn"))
    plan = os.path.join(place.project, ".plan")
    with open(plan, "w", encoding="utf-8") as file:
        file.write("\x1f".join(work.argv(place)) + "\n")
    once = [os.path.join(place.project, "spawn"), "lat", plan, "2"]
    prefixes = {"outside": [], **{depth: run_atoll(place, f"job-{depth}", f"{IN_PLACE}audit: {{files: {depth}}}\n")
                                  for depth in DEPTHS}}
    if shutil.which("strace"):
        prefixes["strace"] = ["strace", "-f", "-qq", "-e", "trace=file", "-o", "/dev/null"]
    place.settle()
    times = {name: [] for name in prefixes}
    for _ in range(max(3, rounds // 20 // work.weight)):
        for name, prefix in prefixes.items():
            times[name].append(work.second(place, [*prefix, *once]))
    return times


def measure_jobs(place, report, rounds):
    raw, rows = {}, []
    for work in (workloads.GitStatus(), workloads.Build(), Npm(), Pytest()):
        try:
            times = measure_job(place, work, rounds)
        except (Unusable, subprocess.SubprocessError) as why:
            report.absent(place, {work.name: str(why)})
            continue
        # Of each turn, so that a busy moment is in both.
        ratios = {name: median([a / b for a, b in zip(values, times["outside"])]) for name, values in times.items()}
        raw[work.name] = times
        rows.append([work.name, f"{median(times['outside']) / 1e6:.1f}",
                     *(f"{ratios[name]:.2f}" if name in ratios else "-" for name in (*DEPTHS, "strace")),
                     f"{ratios['all'] / ratios['strace']:.2f}" if "strace" in ratios else "-"])
        for depth, limit in (("writes", 1.03), ("all", 1.08)):
            report.budget(place, f"{work.name}, audit.files: {depth}, against outside", ratios[depth], limit)
    report.table(place, "Jobs with their file calls mediated, × outside (audit.files; the project in place)",
                 ["", "outside ms", *DEPTHS, "strace -f -e trace=file", "all / strace"], rows,
                 "medians of the ratios of each turn")
    return raw


# ---- a flood ----------------------------------------------------------------------------------------------------
def measure_flood(place, report, rounds):
    """As many different calls as it can make: each has its record, or the sandbox waits."""
    count = EVENTS if rounds >= 200 else EVENTS // 10
    command = run_atoll(place, "flood", f"{IN_PLACE}audit: {{files: all}}\n", "--name", "flood")
    (ns,) = numbers(place, [*command, "./opens", "many", str(count), "/tmp"], timeout=600)
    log = place.run([place.atoll, "log", "flood", "--json"], timeout=600).stdout
    records = len({line.split('"subject":"', 1)[1].split('"', 1)[0] for line in log.splitlines()
                   if '"subject":"/tmp/' in line})
    is_whole = place.run([place.atoll, "log", "verify", "flood"], timeout=600).returncode == 0
    report.table(place, f"{count} files made by one program, audit.files: all",
                 ["calls a second", "µs each", "records", "log verify"],
                 [[f"{count / ns * 1e9:.0f}", f"{ns / count / 1000:.1f}", records, "whole" if is_whole else "broken"]])
    report.budget(place, "calls of a flood that are in the log", records / count * is_whole, 1, at_least=True)
    return {"ns": ns, "calls": count, "records": records}


# ---- questions --------------------------------------------------------------------------------------------------
PENDING = """import os, resource, select, socket, sys, time
count, names = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
kept = []
for number in range(count):
    kept.append(socket.create_connection((f"h{number % names}.test", 9), timeout=60))
time.sleep(0.5)
assert not select.select(kept, [], [], 0)[0], "some wait no longer"
os.spawnv(os.P_WAIT, sys.argv[3], sys.argv[3:])
assert not select.select(kept, [], [], 0)[0], "some wait no longer"
"""
PENDING_COUNT, PENDING_NAMES = 1000, 90


def measure_pending(place, report, rounds):
    """Connections that wait for a person, beside a program that opens files and asks nobody. Nothing resolves the names
    before somebody says yes; a sandbox has 100 questions at once, so that many wait in each."""
    with open(os.path.join(place.project, "pending.py"), "w", encoding="ascii") as file:
        file.write(PENDING)
    text = (f"{IN_PLACE}audit: {{files: all}}\nresources: {{open_files: 8192}}\nask: {{timeout: 10m}}\n"
            "network: {default: ask, allow: [{cidr: 127.0.0.0/8}]}\n")
    command = run_atoll(place, "pending", text)
    file, count = "/usr/include/stdio.h", str(20 * rounds)
    follower = place.popen([place.atoll, "ask", "--follow", "--json"])
    medians = {0: [], PENDING_COUNT: []}
    try:
        place.settle()
        for _ in range(5):
            for waiting, values in medians.items():
                words = ["python3", "pending.py", str(waiting), str(PENDING_NAMES), "./opens", "time", count, file]
                values += numbers(place, [*command, *words], timeout=300)
    finally:
        follower.terminate()
        follower.wait()
    ratio = min(medians[PENDING_COUNT]) / min(medians[0])
    rows = [[str(waiting), f"{min(values) / 1000:.1f}", f"{median(values) / 1000:.1f}"]
            for waiting, values in medians.items()]
    report.table(place, f"One open while connections wait in {PENDING_NAMES} questions (audit.files: all)",
                 ["waiting", "least µs", "median µs"], rows, f"medians of {count} opens, five times in turn")
    report.budget(place, "an open while 1,000 wait for a person, against none", ratio, 1.1)
    return {str(waiting): values for waiting, values in medians.items()}


def section_mediation(place, report, rounds):
    compile_programs(place)
    raw = {"open": measure_open(place, report, rounds), "jobs": measure_jobs(place, report, rounds),
           "flood": measure_flood(place, report, rounds), "pending": measure_pending(place, report, rounds),
           "decision": numbers(place, [place.path("decide"), "10000"])[0]}
    report.budget(place, "a decision with 10,000 rules, 256 masks and 256 questions by glob, in µs",
                  raw["decision"] / 1000, 2)
    return raw
