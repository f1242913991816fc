# SPDX-License-Identifier: Apache-2.0
"""Real work, timed inside and outside in turn by the same stopwatch."""
import os
import subprocess

from contenders import Unusable

# The project in place, so that what is measured is the walls and not staging, which has a section of its own.
IN_PLACE = "atoll: 1\nextends: medium\ndrop: [.]\nfiles: {write: [.]}\ndegrade: [mask.late]\n"
GIT = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]


def c_source(index):
    functions = "\n".join(
        f"int f{index}_{i}(const char *text)\n{{\n\tint sum = {i};\n\n\tfor (size_t k = 0; k < strlen(text); k++)\n"
        f"\t\tsum = sum * 31 + text[k] % {i + 2};\n\tprintf(\"%d\\n\", sum);\n\treturn sum;\n}}\n" for i in range(40))
    return f"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n{functions}"


class Work:
    name = ""
    weight = 1           # rounds are divided by it
    options = ()         # of `atoll run`
    beside = ()          # nanoseconds of the last measure() with a prefix

    def argv(self, place):
        raise NotImplementedError

    def prepare(self, place):
        """Makes what argv() needs below the project."""

    def write(self, place, path, text):
        path = os.path.join(place.project, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def measure(self, place, rounds, prefix=None):
        """
        (inside, outside, whole) nanoseconds. inside: by the stopwatch within a sandbox that is up. With a prefix, a
        command that runs the rest of its words, `beside` gets what the stopwatch says there, in the same rounds.
        """
        self.prepare(place)
        if place.uid != os.getuid():
            subprocess.run(["chown", "-R", f"{place.uid}:{place.gid}", place.project], check=True)
        stopwatch = os.path.join(place.project, "spawn")
        if not os.path.exists(stopwatch):
            with open(place.path("spawn"), "rb") as source, open(stopwatch, "wb") as target:
                target.write(source.read())
            os.chmod(stopwatch, 0o755)
        argv = self.argv(place)
        plan = os.path.join(place.project, ".plan")
        with open(plan, "w", encoding="utf-8") as file:
            file.write("\x1f".join(argv) + "\n")
        os.chmod(plan, 0o644)
        inside, outside, whole, self.beside = [], [], [], []
        once = [stopwatch, "lat", plan, "2"]   # the first start warms the second
        for _ in range(max(3, rounds // self.weight)):
            outside.append(self.second(place, once))
            if prefix:
                self.beside.append(self.second(place, [*prefix, *once]))
            inside.append(self.second(place, [place.atoll, "run", *self.options, "--", *once]))
            whole += place.latency_of([place.atoll, "run", *self.options, "--", *argv])
        return inside, outside, whole

    @staticmethod
    def second(place, command):
        run = place.run(command, timeout=600)
        rows = [line.split() for line in run.stdout.splitlines()]
        if run.returncode != 0 or len(rows) != 2 or rows[1][1] != "0":
            said = (run.stderr.strip() or run.stdout.strip())[-300:]
            raise Unusable(f"{' '.join(command[:3])}…: {said or run.returncode}")
        return int(rows[1][2])


class GitStatus(Work):
    name = "git status on 10,000 files"

    def prepare(self, place):
        if os.path.isdir(os.path.join(place.project, ".git")):
            return
        for i in range(10000):
            self.write(place, f"tree/{i % 100}/{i}.txt", f"file {i}\n")
        self.write(place, ".gitignore", "spawn\n.plan\nobjects/\nsource/\n")
        if place.uid != os.getuid():
            subprocess.run(["chown", "-R", f"{place.uid}:{place.gid}", place.project], check=True)
        for arguments in (["init", "-q"], ["add", "."], [*GIT, "commit", "-q", "-m", "ten thousand files"]):
            if place.run(["git", *arguments]).returncode != 0:
                raise Unusable("git does not work here")

    def argv(self, place):
        return ["/usr/bin/git", "-C", place.project, "status", "--porcelain"]


class Build(Work):
    name = "a C build of 12 files"
    weight = 3

    def prepare(self, place):
        for i in range(12):
            self.write(place, f"source/part{i}.c", c_source(i))
        objects = " ".join(f"objects/part{i}.o" for i in range(12))
        self.write(place, "source/Makefile", f"all: {objects}\nobjects/%.o: source/%.c\n\t@mkdir -p objects\n"
                                             "\t@gcc -O1 -c -o $@ $<\n")

    def argv(self, place):
        return ["/usr/bin/make", "-s", "-B", "-j2", "-C", place.project, "-f", "source/Makefile"]


class Import(Work):
    name = "python3 -c 'import json'"

    def argv(self, place):
        return ["/usr/bin/python3", "-c", "import json"]


ALL = (GitStatus(), Build(), Import())
