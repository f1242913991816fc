# SPDX-License-Identifier: Apache-2.0
"""The code interpreter of `atoll serve` with runtimes that wait: the first cell after a create, and a hundred sandboxes
at once that each import a module. The client is one loop over raw sockets, whose own work counts as well."""
import json
import os
import pathlib
import re
import selectors
import socket
import time

from contenders import Unusable
from parking import quantile
from serving import POLICY, Client, Server

AT_ONCE, WAIT_S = 100, 120
END = b'"end_of_execution"'


class Creation:
    """A create and one cell, over one connection."""

    def __init__(self, client, code):
        self.client, self.code, self.text, self.made = client, code, b"", None
        self.began = time.monotonic()
        host, port = client.address.split(":")
        self.socket = socket.create_connection((host, int(port)), 120)
        self.send("/v2/sandboxes", client.headers, {"templateID": "code-interpreter-v1", "timeout": 3600})

    def send(self, path, headers, body):
        body = json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", f"Host: {self.client.address}", f"Content-Length: {len(body)}",
                 *(f"{name}: {value}" for name, value in headers.items())]
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def go_on(self):
        """True at its end."""
        piece = self.socket.recv(65536)
        self.text += piece
        if not piece or b"HTTP/1.1 4" in self.text or b"HTTP/1.1 5" in self.text:
            raise Unusable(f"the service: {self.text[-300:]!r}")
        if not self.made:
            found = re.search(rb'"sandboxID":"(\w+)"', self.text), re.search(rb'"envdAccessToken":"(\w+)"', self.text)
            if all(found) and self.text.rstrip().endswith(b"}"):
                self.made, token = (one.group(1).decode() for one in found)
                self.created, self.text = time.monotonic(), b""
                self.send("/execute", {"E2b-Sandbox-Id": self.made, "E2b-Sandbox-Port": "49999",
                                       "X-Access-Token": token}, {"code": self.code})
            return False
        if b'"error"' in self.text:
            raise Unusable(f"the code: {self.text[-300:]!r}")
        self.ended = time.monotonic()
        return END in self.text


def create_at_once(client, count, code):
    """The creations, done, and milliseconds of all together."""
    began = time.monotonic()
    with selectors.DefaultSelector() as selector:
        made = [Creation(client, code) for _ in range(count)]
        for one in made:
            selector.register(one.socket, selectors.EVENT_READ, one)
        left = count
        while left:
            for key, _ in selector.select(WAIT_S):
                if key.data.go_on():
                    selector.unregister(key.fileobj)
                    left -= 1
    return made, (time.monotonic() - began) * 1e3


def count_warm(place):
    """How many sandboxes of the service wait with a Python that sleeps."""
    waiting = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            state = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        waiting += words[:2] == [b"python3", b"-c"] and b"source" in words[2] and state == "S"
    return waiting


def kill(client, made):
    for one in made:
        one.socket.close()
        client.kill(one.made)


def wait_for_warm(place, count):
    end = time.monotonic() + WAIT_S
    while count_warm(place) < count:
        if time.monotonic() > end:
            raise Unusable(f"only {count_warm(place)} of {count} wait")
        time.sleep(0.5)
    time.sleep(2)


def measure(place, client, rounds, module):
    """The first cell of one after the other, and of AT_ONCE at once; the first burst has as many wait."""
    found = {"create": [], "cell": [], "burst": []}
    kill(client, create_at_once(client, AT_ONCE, "1 + 1")[0])
    for _ in range(5):
        wait_for_warm(place, AT_ONCE)
        made, ms = create_at_once(client, AT_ONCE, f"import {module}")
        found["burst"].append(ms)
        kill(client, made)
    wait_for_warm(place, AT_ONCE)
    for _ in range(rounds):
        made, _ = create_at_once(client, 1, "1 + 1")
        found["create"].append((made[0].created - made[0].began) * 1e3)
        found["cell"].append((made[0].ended - made[0].created) * 1e3)
        kill(client, made)
        time.sleep(0.1)
    return found


def section_interpreter(place, report, rounds):
    policy, config = place.path("serve.yaml"), place.path("preload.yaml")
    pathlib.Path(policy).write_text(POLICY, encoding="utf-8")
    has_numpy = place.run(["python3", "-c", "import numpy"]).returncode == 0
    for module in ("json", "numpy") if has_numpy else ("json",):
        pathlib.Path(config).write_text(f"preload: [{module}]\n", encoding="utf-8")
        words = [place.atoll, "serve", "--listen", "127.0.0.1:0", "--json", "--policy", policy, "--sandboxes", "2000",
                 "--pool", str(AT_ONCE), "--config", config]
        place.settle()
        with Server(place, words) as server:
            client = Client(place, json.loads(server.said)["url"], module)
            found = measure(place, client, rounds, module)
            client.again()
        report.table(place, f"The code interpreter, Pythons that wait with {module}",
                     ["", "n", "median ms", "p95 ms"],
                     [[name, len(times), f"{quantile(times, .5):.2f}", f"{quantile(times, .95):.2f}"]
                      for name, times in (("create", found["create"]), ("the first runCode('1 + 1')", found["cell"]),
                                          (f"{AT_ONCE} creates at once, each `import {module}`", found["burst"]))],
                     f"load average {os.getloadavg()[0]:.1f}; the client is one loop in Python")
        report.budget(place, f"first runCode('1 + 1') after create, warm with {module}, p50",
                      quantile(found["cell"], .5), 10, "ms")
        report.budget(place, f"{AT_ONCE} creates at once, each `import {module}`, all of them",
                      quantile(found["burst"], .5), 200, "ms")
