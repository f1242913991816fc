# SPDX-License-Identifier: Apache-2.0
"""The section `gate` of the benchmark: what the network gate costs at the start, and what goes through it, beside
pasta, slirp4netns and a connection without any boundary, all of them round-robin."""
import os
import socket
import time

import talkers
from contenders import TRUE, Unusable

POLICY = "atoll: 1\nextends: low\ndegrade: [disk, cgroup.memory, cgroup.pids, cgroup.cpu]\n{network}"
OPEN = ("files: {{read: [{program}]}}\n"
        "network:\n  allow: [{more}{{host: bench.test, ports: [{port}]{http}}}, {{cidr: 127.0.0.0/8}}]\n")
SERVE = "files: {{read: [{files}]}}\n"
READ = ", http: [{methods: [GET], paths: [\"/small\"]}]"
BYTES = ("down", "up", "tls-down", "tls-up")
TIMES = ("trips", "connections")
MANY = 10000
HELD = 1000


def median(values):
    return sorted(values)[len(values) // 2]


def write_policy(place, name, network=""):
    path = os.path.join(place.home, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(POLICY.format(network=network))
    os.chmod(path, 0o644)
    return path


def open_policy(place, name, server, rules=0, http=""):
    more = "".join(f"n{i}.example.org, " for i in range(rules))
    return write_policy(place, name, OPEN.format(program=server.program, port=server.port, more=more, http=http))


def start_times(place, report, rounds, opened):
    closed = write_policy(place, "closed.yaml")
    commands = {name: [place.atoll, "run", "-p", path, "--", TRUE]
                for name, path in (("no network", closed), ("network gate", opened))}
    place.settle()
    times = place.latency(commands, rounds)
    middle = {name: median(values) for name, values in times.items()}
    rows = [[name, len(times[name]), f"{value / 1e6:.2f}", f"{value / middle['no network']:.2f}"]
            for name, value in middle.items()]
    report.table(place, "Start of `true` with network rules", ["", "n", "median ms", "× none"], rows)
    report.budget(place, "start with the network gate", middle["network gate"] / middle["no network"], 1.5)
    return times


def take_turns(clients, lines, rounds, ms):
    """{(line, name): [the first figure of each round]}"""
    found = {(line, name): [] for line in lines for name in clients}
    for _ in range(rounds):
        for line in lines:
            for name, client in clients.items():
                found[line, name].append(client.ask(f"{line} {ms}")[0])
    return found


def traffic(place, report, rounds, server, opened):
    clients = talkers.start_all(place, server, opened, report)
    try:
        found = take_turns(clients, (*BYTES, *TIMES), rounds, 200)
    finally:
        for client in clients.values():
            client.close()
    middle = {key: median(values) for key, values in found.items()}
    rows = [[name, *(f"{middle[line, name] / 1e6:.0f}" for line in BYTES),
             *(f"{middle[line, name] / 1e3:.1f}" for line in TIMES)] for name in clients]
    report.table(place, "TCP from inside to a server of this machine",
                 ["", "MB/s in", "out", "TLS in", "TLS out", "round trip µs", "connection + trip µs"], rows,
                 "medians of slices of 200 ms, all in turn")
    peers = [name for name in clients if name in talkers.PEERS]
    for line, what in zip(BYTES, ("in", "out", "in, TLS", "out, TLS")):
        for peer in peers:
            report.budget(place, f"bytes a second {what}, against {peer}",
                          middle[line, "network gate"] / middle[line, peer], 1, at_least=True)
    if "pasta" in peers:
        for line, what in zip(TIMES, ("round trip", "connection and round trip")):
            report.budget(place, f"{what} against pasta", middle[line, "network gate"] / middle[line, "pasta"], 1.1)
    return {f"{line} {name}": values for (line, name), values in found.items()}


def lookups(place, report, rounds, server, few, many):
    """DNS, and what the number of rules costs."""
    clients = {"direct": talkers.behind_nothing(place, server), "10 rules": talkers.behind_gate(place, server, few),
               f"{MANY:,} rules": talkers.behind_gate(place, server, many)}
    try:
        found = take_turns(clients, ("look", "connections"), rounds, 100)
    finally:
        for client in clients.values():
            client.close()
    middle = {key: median(values) / 1e3 for key, values in found.items()}
    rows = [[name, f"{middle['look', name]:.1f}", f"{middle['connections', name]:.1f}"] for name in clients]
    report.table(place, "Look-ups and connections by number of rules", ["", "look-up µs", "connection + trip µs"], rows,
                 "direct: a datagram to a server that sends it back")
    report.budget(place, "DNS answer", middle["look", "10 rules"], 100, "µs")
    for line, what in (("look", "look-up"), ("connections", "connection")):
        report.budget(place, f"{what} with {MANY:,} rules against 10",
                      middle[line, f"{MANY:,} rules"] / middle[line, "10 rules"], 1.1)
    return {f"{line} {name}": values for (line, name), values in found.items()}


def pss_of_gate(place):
    """In KiB, of the one gate of this place that runs."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == os.path.join(place.bin, "atoll-egress"):
                with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                    return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            continue
    raise Unusable("no gate runs")


def memory(place, report, server, opened):
    """The gate shares its pages with nobody while it is the only one."""
    client = talkers.behind_gate(place, server, opened)
    try:
        client.ask("look 1")
        time.sleep(0.5)
        found = {"idle": pss_of_gate(place)}
        client.ask(f"hold {HELD}")
        found[f"{HELD:,} connections"] = pss_of_gate(place)
    finally:
        client.close()
    report.table(place, "Memory of the network gate, PSS", ["", "KiB"], [[name, kib] for name, kib in found.items()])
    report.budget(place, "network gate, idle", found["idle"] / 1024, 4, "MiB")
    report.budget(place, f"network gate, {HELD:,} connections", found[f"{HELD:,} connections"] / 1024, 64, "MiB")
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def published(place, report, rounds, server):
    """From outside to a server inside."""
    policy = write_policy(place, "publish.yaml", SERVE.format(files=", ".join(
        (server.program, server.ca, server.key))))
    ports = {"direct": server.port}
    servers, clients = [], {}
    try:
        for name, start in (("published", lambda port: talkers.inside_gate(place, server, policy, port)),
                            ("pasta", lambda port: talkers.inside_pasta(place, server, port))):
            try:
                port = free_port()
                servers.append(start(port))
                ports[name] = port
            except (Unusable, OSError) as why:
                report.absent(place, {f"{name}, to the inside": str(why)})
        clients.update((name, talkers.to_port(place, server, port)) for name, port in ports.items())
        found = take_turns(clients, ("down", "up", *TIMES), rounds, 200)
    finally:
        for talker in (*clients.values(), *servers):
            talker.close()
    middle = {key: median(values) for key, values in found.items()}
    report.table(place, "TCP from this machine to a published port",
                 ["", "MB/s out of it", "into it", "round trip µs", "connection + trip µs"],
                 [[name, *(f"{middle[line, name] / 1e6:.0f}" for line in ("down", "up")),
                   *(f"{middle[line, name] / 1e3:.1f}" for line in TIMES)] for name in clients])
    if {"published", "pasta"} <= set(clients):
        for line, what in (("down", "bytes a second out of a published port"), ("up", "bytes a second into it")):
            report.budget(place, f"{what}, against pasta", middle[line, "published"] / middle[line, "pasta"], 1,
                          at_least=True)
        report.budget(place, "round trip to a published port against pasta",
                      middle["trips", "published"] / middle["trips", "pasta"], 1.1)
    return {f"{line} {name}": values for (line, name), values in found.items()}


def requests(place, report, rounds, server, read):
    """Small ones on one connection that is kept: intercepted, against TLS to the server itself, and against what TLS to
    both sides costs whoever does nothing else."""
    relay = talkers.Relay(place, server)
    clients = {"direct": talkers.behind_nothing(place, server), "relay": talkers.to_port(place, server, relay.port),
               "intercepted": talkers.behind_gate(place, server, read)}
    try:
        found = take_turns(clients, ("tls-requests",), rounds, 200)
    finally:
        for client in clients.values():
            client.close()
        relay.close()
    middle = {name: median(values) for (_, name), values in found.items()}
    report.table(place, "HTTP/1.1 over TLS, small requests on one connection", ["", "µs", "a second", "× direct"],
                 [[name, f"{value / 1e3:.1f}", f"{1e9 / value:.0f}", f"{middle['direct'] / value:.2f}"]
                  for name, value in middle.items()],
                 "relay: tls-relay.c, the floor of an interception; it reads no HTTP, judges and logs nothing")
    report.budget(place, "intercepted requests a second, against direct", middle["direct"] / middle["intercepted"], 0.5,
                  at_least=True)
    report.budget(place, "intercepted requests a second, against a bare relay of TLS",
                  middle["relay"] / middle["intercepted"], 0.7, at_least=True)
    return {name: values for (_, name), values in found.items()}


def section_gate(place, report, rounds):
    server = talkers.Server(place)
    turns = max(5, rounds // 6)
    try:
        opened = open_policy(place, "open.yaml", server)
        few, many = (open_policy(place, f"rules-{n}.yaml", server, n - 2) for n in (10, MANY))
        read = open_policy(place, "read.yaml", server, http=READ)
        results = {"start": start_times(place, report, rounds, opened)}
        for name, work in (("traffic", lambda: traffic(place, report, turns, server, opened)),
                           ("published", lambda: published(place, report, turns, server)),
                           ("rules", lambda: lookups(place, report, turns, server, few, many)),
                           ("memory", lambda: memory(place, report, server, opened)),
                           ("requests", lambda: requests(place, report, turns, server, read))):
            try:
                results[name] = work()
            except (Unusable, OSError) as why:
                report.absent(place, {f"gate, {name}": str(why)})
    finally:
        server.close()
    return results
