# SPDX-License-Identifier: Apache-2.0
"""The section `gate` of the benchmark: what the network gate costs at the start, and what goes through it, beside a
connection without any boundary."""
import json
import os
import socket
import threading

from contenders import TRUE, Unusable

POLICY = "atoll: 1\nextends: low\ndegrade: [disk, cgroup.memory, cgroup.pids, cgroup.cpu]\n{network}"
OPEN = "network:\n  allow: [{{host: bench.test, ports: [{port}]}}, {{cidr: 127.0.0.0/8}}]\n"
# One measurement in a process of its own: what it does is the first byte that the server gets.
CLIENT = r"""
import json, socket, sys, time
host, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
def begin(what):
    made = socket.create_connection((host, port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.sendall(what)
    return made
def rate(work):
    start, units = time.perf_counter(), 0
    while (now := time.perf_counter()) - start < seconds:
        units += work()
    return units / (now - start)
block, found = b"x" * (1 << 20), {}
made = begin(b"d"); found["down"] = rate(lambda: len(made.recv(1 << 20))); made.close()
made = begin(b"u"); found["up"] = rate(lambda: made.send(block)); made.close()
made = begin(b"p"); found["trips"] = rate(lambda: len((made.sendall(b"x"), made.recv(1))[1])); made.close()
def connect():
    made = begin(b"p"); made.sendall(b"x"); made.recv(1); made.close()
    return 1
found["connections"] = rate(connect)
print(json.dumps(found))
"""


class Server:
    """Serves each connection as its first byte says: d(ownload), u(pload), p(ing)."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    @staticmethod
    def serve(connection):
        block = b"x" * (1 << 20)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            what = connection.recv(1)
            while what == b"d":
                connection.sendall(block)
            while part := connection.recv(1 << 20 if what == b"u" else 64):
                if what == b"p":
                    connection.sendall(part)
        except OSError:
            pass
        connection.close()

    def close(self):
        self.socket.close()


def write_policy(place, name, network=""):
    path = os.path.join(place.home, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(POLICY.format(network=network))
    os.chmod(path, 0o644)
    return path


def start_times(place, report, rounds):
    closed, opened = write_policy(place, "closed.yaml"), write_policy(place, "open.yaml", OPEN.format(port=1))
    commands = {name: [place.atoll, "run", "-p", path, "--", TRUE]
                for name, path in (("no network", closed), ("network gate", opened))}
    place.settle()
    times = place.latency(commands, rounds)
    middle = {name: sorted(values)[len(values) // 2] for name, values in times.items()}
    rows = [[name, len(times[name]), f"{value / 1e6:.2f}", f"{value / middle['no network']:.2f}"]
            for name, value in middle.items()]
    report.table(place, "Start of `true` with network rules", ["", "n", "median ms", "× none"], rows)
    report.budget(place, "start with the network gate", middle["network gate"] / middle["no network"], 1.5)
    return times


def traffic(place, report, seconds):
    server = Server()
    client = ["/usr/bin/python3", "-c", CLIENT]
    policy = write_policy(place, "traffic.yaml", OPEN.format(port=server.port))
    commands = {
        "direct": [*client, "127.0.0.1"],
        "network gate": [place.atoll, "run", "-p", policy, "--", *client, "bench.test"],
    }
    found = {}
    for name, command in commands.items():
        environment = {**place.environment, "ATOLL_TEST_HOSTS": "bench.test=127.0.0.1"}
        run = place.run([*command, str(server.port), str(seconds)], env=environment)
        try:
            found[name] = json.loads(run.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            report.absent(place, {name: run.stderr.strip()[-200:] or f"ended with {run.returncode}"})
    server.close()
    if "network gate" not in found:
        raise Unusable("nothing went through the gate")
    rows = [[name, f"{one['down'] / 1e6:.0f}", f"{one['up'] / 1e6:.0f}", f"{1e6 / one['trips']:.1f}",
             f"{1e6 / one['connections']:.0f}"] for name, one in found.items()]
    report.table(place, "TCP from inside to a server of this machine",
                 ["", "MB/s in", "MB/s out", "round trip µs", "connection µs"], rows)
    return found


def section_gate(place, report, rounds):
    return {"start": start_times(place, report, rounds), "traffic": traffic(place, report, 2 if rounds > 50 else 0.5)}
