# SPDX-License-Identifier: Apache-2.0
"""Functions of `atoll serve`: what an invocation costs its client, with and without an instance that waits."""
import base64
import io
import json
import pathlib
import shutil
import tarfile
import time

from contenders import Unusable
from parking import quantile
from serving import POLICY, Client, Server

FUNCTIONS = {"exec": ("main", "#!/bin/sh\ncat\n"),
             "python": ("main.py:handler", "handler = lambda event, context: event\n"),
             "javascript": ("main.js:handler", "exports.handler = (event) => event\n")}


def deploy(client, runtime):
    entry, text = FUNCTIONS[runtime]
    packed, member = io.BytesIO(), tarfile.TarInfo(entry.split(":")[0])
    member.size, member.mode = len(text), 0o755
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(member, io.BytesIO(text.encode()))
    client.ask("POST", "/functions", {"name": runtime, "runtime": runtime, "entry": entry,
                                      "archive": base64.b64encode(packed.getvalue()).decode()})


def invoke(client, runtime):
    began = time.monotonic_ns()
    client.ask("POST", f"/functions/{runtime}/invoke", 1)
    return time.monotonic_ns() - began


def wait_warm(client, runtime):
    end = time.monotonic() + 30
    while not client.ask("GET", f"/functions/{runtime}")["warm"]:
        if time.monotonic() > end:
            raise Unusable(f"no instance of the function {runtime} waits")
        time.sleep(.02)


def section_functions(place, report, rounds):
    """Invocations that find an instance, and, with no pool, those that find none beside creates that find none."""
    pathlib.Path(place.path("serve.yaml")).write_text(POLICY, encoding="utf-8")
    words = [place.atoll, "serve", "--listen", "127.0.0.1:0", "--json", "--policy", place.path("serve.yaml")]
    runtimes = [name for name in FUNCTIONS if name != "javascript" or shutil.which("node")]
    times = {}
    for is_cold in (False, True):
        place.settle()
        with Server(place, words + ["--pool", "0"] * is_cold) as server:
            client = Client(place, json.loads(server.said)["url"], f"functions-{is_cold}")
            for runtime in runtimes:
                deploy(client, runtime)
                invoke(client, runtime)
            # One after the other: what starts ahead for one is not in the way of another.
            for runtime in () if is_cold else runtimes:
                for _ in range(rounds):
                    wait_warm(client, runtime)
                    times.setdefault(f"{runtime}, warm", []).append(invoke(client, runtime))
            for _ in range(rounds if is_cold else 0):
                for runtime in runtimes:
                    times.setdefault(f"{runtime}, cold", []).append(invoke(client, runtime))
                began = time.monotonic_ns()
                made = client.create()
                times.setdefault("create, cold", []).append(time.monotonic_ns() - began)
                client.kill(made)
            for runtime in runtimes:
                client.ask("DELETE", f"/functions/{runtime}")
            client.again()
    report.table(place, "Functions, by a connection that is kept", ["", "n", "median ms", "p95 ms"], [
        [name, len(found), *(f"{quantile(found, part) / 1e6:.2f}" for part in (.5, .95))]
        for name, found in times.items()])
    for runtime in runtimes:
        report.budget(place, f"an invocation that finds an instance: {runtime}, p50",
                      quantile(times[f"{runtime}, warm"], .5) / 1e6, 5, "ms")
    report.budget(place, "a cold invocation of a program against a cold create",
                  quantile(times["exec, cold"], .5) / quantile(times["create, cold"], .5), 2)
    return times
