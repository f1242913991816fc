# SPDX-License-Identifier: Apache-2.0
"""What judging costs: a script of 100 lines in atoll-verify as it runs beside a sandbox, and an exec that is judged."""
import glob
import os
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import control   # noqa: E402

START, RULES, JUDGE = 1, 2, 3
JUDGED = 66
PART = """set -eu
name=part{i}
if [ ! -d "build/$name" ]; then
	mkdir -p "build/$name"
fi
for file in src/*.c; do
	gcc -O2 -Wall -c "$file" -o "build/$name/$(basename "$file" .c).o"
done
echo "built $name" | tee -a build/log
tar czf "dist/$name.tar.gz" -C "build/$name" .
"""
SCRIPT = "".join(PART.format(i=i) for i in range(10))
# The level as it is, and as it would be if nothing were judged.
PLAIN_POLICY = "atoll: 1\nextends: medium\nverify: {medium: off, high: off, critical: off, unknown: off}\n"
JUDGED_POLICY = "atoll: 1\nextends: medium\n"
LOOP = ("import subprocess, time\nfor i in range(%d):\n    begun = time.perf_counter_ns()\n    subprocess.run(%r)\n"
        "    print(time.perf_counter_ns() - begun)\n")


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


class Judge:
    """atoll-verify as the box starts it."""

    def __init__(self, bin_directory):
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        files = sorted(glob.glob(os.path.join(bin_directory, "policies/verify/*.yaml")))
        fields = [control.u32(len(files))]
        for path in files:
            with open(path, "rb") as file:
                text = file.read()
            fields += [control.string(path.encode()), b"\3" + struct.pack("=I", len(text)) + text]
        rules = self.memfd(control.frame(RULES, *fields))
        script = "exec 3<&%d; exec \"$0\" --served" % far.fileno()
        self.process = subprocess.Popen(["bash", "-c", script, os.path.join(bin_directory, "atoll-verify")],
                                        pass_fds=[far.fileno()])
        far.close()
        self.socket = near
        compiled = self.memfd(b"")
        socket.send_fds(near, [control.frame(START)], [rules, compiled])
        near.recv(1 << 20)

    @staticmethod
    def memfd(content):
        fd = os.memfd_create("bench", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(fd, content)
        return fd

    def judge(self, text):
        """µs that it says it took for the text of an executed script."""
        fd = self.memfd(text.encode())
        question = control.frame(JUDGE, control.u32(1), control.vector([b"./build.sh"]), control.u32(0),
                                 control.u32(1), control.string(b"build.sh"))
        socket.send_fds(self.socket, [question], [fd])
        os.close(fd)
        answer = self.socket.recv(1 << 20)
        assert struct.unpack_from("=H", answer, 6)[0] == JUDGED
        return struct.unpack_from("=Q", answer, control.HEADER + 2 * 5 + 1)[0]

    def close(self):
        self.socket.close()
        self.process.wait()


def measure_script(place, report, rounds):
    judge = Judge(os.path.dirname(place.atoll))
    took = [judge.judge(SCRIPT) for _ in range(rounds + 5)][5:]
    judge.close()
    report.table(place, f"{len(SCRIPT.splitlines())} lines of shell, parsed and judged",
                 ["min µs", "median µs", "p95 µs"],
                 [[str(min(took)), str(median(took)), str(sorted(took)[int(len(took) * .95)])]])
    report.budget(place, "parse and judge a script of 100 lines, in ms", median(took) / 1000, 2)
    return took


def run_execs(place, policy, command, rounds):
    done = place.run([place.atoll, "run", "-q", "-p", policy, "--", "/usr/bin/python3", "-c", LOOP % (rounds, command)],
                     timeout=600)
    return [int(line) for line in done.stdout.split()]


def write_policy(place, name, text):
    path = os.path.join(place.home, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(path, 0o644)
    return path


def measure_exec(place, report, rounds):
    unjudged = write_policy(place, "plain.yaml", PLAIN_POLICY)
    judging = write_policy(place, "judged.yaml", JUDGED_POLICY)
    rows, worst, raw = [], 0, {}
    for name, command in (("sh -c :", ["/bin/sh", "-c", ":"]), ("rm -f nothing", ["/bin/rm", "-f", "nothing"]),
                          ("true (not looked at)", ["/bin/true"])):
        plain, judged = [], []
        for _ in range(3):
            plain += run_execs(place, unjudged, command, rounds)
            judged += run_execs(place, judging, command, rounds)
        added = (median(judged) - median(plain)) / 1e6
        worst = max(worst, added)
        raw[name] = {"plain": plain, "judged": judged}
        rows.append([name, f"{median(plain) / 1e6:.2f}", f"{median(judged) / 1e6:.2f}", f"{added:+.2f}"])
    report.table(place, "an exec inside, level medium without judging, and as it is",
                 ["command", "plain ms", "judged ms", "added ms"], rows)
    report.budget(place, "what being judged adds to an exec, in ms", worst, 3)
    return raw


def measure_first(place, report, rounds):
    """A whole run: what its first judgement costs, and what a run that has none pays for being able to judge."""
    policies = {"plain": write_policy(place, "plain.yaml", PLAIN_POLICY),
                "judged": write_policy(place, "judged.yaml", JUDGED_POLICY)}
    rows, raw = [], {}
    for name, command in (("sh -c :", ["/bin/sh", "-c", ":"]), ("true (not looked at)", ["/bin/true"])):
        took = {"plain": [], "judged": []}
        for _ in range(rounds):
            for which, policy in policies.items():
                begun = time.perf_counter_ns()
                place.run([place.atoll, "run", "-q", "-p", policy, "--", *command], timeout=60)
                took[which].append(time.perf_counter_ns() - begun)
        # The first runs compile the policy, and the rules.
        raw[name] = {which: values[3:] for which, values in took.items()}
        plain, judged = (median(raw[name][which]) / 1e6 for which in ("plain", "judged"))
        rows.append([name, f"{plain:.2f}", f"{judged:.2f}", f"{judged - plain:+.2f}"])
    report.table(place, "a run of level medium without judging, and as it is", ["command", "plain ms", "judged ms",
                                                                               "added ms"], rows)
    report.budget(place, "what its first judgement adds to a run, in ms", float(rows[0][3]), 5)
    return raw


def section_verify(place, report, rounds):
    return {"script_us": measure_script(place, report, rounds), "exec": measure_exec(place, report, rounds),
            "first": measure_first(place, report, max(rounds // 4, 13))}
