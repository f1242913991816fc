# SPDX-License-Identifier: Apache-2.0
"""What a file call costs that the supervisor makes: one open, and a job beside itself unmediated and under strace."""
import os
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))

# Prints the median of an open in ns, and the time of a job that opens every file of a tree.
SCRIPT = """
import os, sys, time
times = []
for i in range(int(sys.argv[1])):
    begin = time.perf_counter_ns(); fd = os.open(sys.argv[2], os.O_RDONLY); times.append(time.perf_counter_ns() - begin)
    os.close(fd)
begin = time.perf_counter_ns()
for base, _, names in os.walk("/usr/include"):
    for name in names:
        try: os.close(os.open(os.path.join(base, name), os.O_RDONLY))
        except OSError: pass
print(sorted(times)[len(times) // 2], time.perf_counter_ns() - begin)
"""


def policy(place, depth):
    path = os.path.join(place.home, f"mediation-{depth}.yaml")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"atoll: 1\nextends: medium\naudit: {{files: {depth}}}\n")
    os.chmod(path, 0o644)
    return path


def measure_decision(place):
    """ns, with the libraries that atoll is linked with."""
    libraries = [os.path.join(place.build, "musl/src", name) for name in ("policy/libpolicy.a", "base/libbase.a")]
    place.compile("decide", ["musl-gcc", "-O2", "-static", "-D_GNU_SOURCE", "-I", os.path.join(HERE, "../../src"),
                             os.path.join(HERE, "decide.c"), *libraries])
    return int(place.run([place.path("decide"), "10000"]).stdout)


def section_mediation(place, report, rounds):
    script = ["/usr/bin/python3", "-c", SCRIPT, str(10 * rounds), "/usr/include/stdio.h"]
    commands = {depth: [place.atoll, "run", "-p", policy(place, depth), "--", *script]
                for depth in ("off", "writes", "all")}
    if shutil.which("strace"):
        commands["strace, outside"] = ["strace", "-f", "-e", "trace=file", "-o", "/dev/null", *script]
    raw = {name: [] for name in commands}
    for _ in range(3):
        for name, command in commands.items():
            words = place.run(command).stdout.split()
            if len(words) == 2:
                raw[name].append([int(word) for word in words])
    best = {name: [min(column) for column in zip(*runs)] for name, runs in raw.items() if runs}
    rows = [[name, f"{one / 1000:.1f}", f"{job / 1e6:.1f}", f"{job / best['off'][1]:.2f}"]
            for name, (one, job) in best.items()]
    report.table(place, "File calls that the supervisor makes (audit.files)",
                 ["", "open µs", "a tree of opens ms", "× off"], rows,
                 "least of 3 runs, in Python")
    report.budget(place, "an open with audit.files: all, in µs", best["all"][0] / 1000, 12)
    raw["decision"] = measure_decision(place)
    report.budget(place, "a decision with 10,000 rules, 256 masks and 256 questions by glob, in µs",
                  raw["decision"] / 1000, 2)
    return raw
