# SPDX-License-Identifier: Apache-2.0
"""N1 to N21 where a network gate is open: what is not listed stays out of reach by every road, what is listed works."""
import os
import pathlib
import socket
import subprocess

import pytest

from atoll import wait_until
from gate import LOOPBACK, NAMES, Listener, Web, gate_of, policy_text, test_hosts
from outside import Outside, parse_probe

pytestmark = pytest.mark.needs("openssl", "curl")
PYTHON = "/usr/bin/python3"


@pytest.fixture
def listener():
    server = Listener()
    yield server
    server.close()


def policy_for(sandbox, *rules, more="", loopback=True):
    return sandbox.policy(policy_text([*rules, *(LOOPBACK if loopback else ())], more))


def rules_of(done):
    return {(entry["kind"], entry["subject"]): entry["rule"] for entry in done.report["denials"]}


QUERY = """
import socket, struct, sys
def ask(name, kind=1, raw=None):
    labels = raw if raw is not None else b"".join(bytes([len(l)]) + l.encode() for l in name.split(".") if l) + b"\\0"
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
    s.connect(("198.18.0.1", 53))
    s.send(struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + labels + struct.pack(">2H", kind, 1))
    answer = s.recv(2000)
    return answer[3] & 15, struct.unpack(">H", answer[6:8])[0]
"""


def test_n1_names_with_odd_bytes_are_no_names(sandbox):
    """A NUL or a dot within a label reads as the allowed name to whoever stops there."""
    script = QUERY + """
assert ask("web.test") == (0, 1)
for raw in (b"\\x0eevil.com\\0.web.t\\4test\\0", b"\\x08web.test\\0", b"\\x09web.test\\0\\0",
            b"\\x03web\\x05test\\0\\0",
            b"\\x07evil\\0we\\3web\\4test\\0", b"\\xc0\\x0c"):
    print(raw, ask("", raw=raw))
"""
    done = sandbox.run([PYTHON, "-c", script], policy=policy_for(sandbox, "web.test"))
    rows = done.out.splitlines()
    assert done.code == 0 and len(rows) == 6 and all("(3, 0)" in row or "(1, 0)" in row for row in rows), done


@pytest.mark.parametrize("rules", ["network: {allow: [], limits: {total: 1GiB}}", "network: {deny: [web.test]}",
        "network: {default: deny, ask: [web.test]}", "network: {default: ask}"])
def test_n2_an_empty_list_allows_nothing(sandbox, listener, rules):
    script = (f"curl -sS -m 5 http://web.test:{listener.port}/; curl -sS -m 5 http://127.0.0.1:{listener.port}/; "
              "getent hosts web.test")
    done = sandbox.run(script, policy=sandbox.policy(f"atoll: 1\nextends: low\n{rules}\n"), env=test_hosts())
    assert not listener.heard and "198.18" not in done.out and "fd61" not in done.out, (done, listener.heard)
    assert sandbox.run_outside(["curl", "-s", "-m", "2", f"http://127.0.0.1:{listener.port}/"]) and listener.heard


def test_n3_only_the_exact_labels_match(sandbox, listener):
    """Suffixes, prefixes, users, spellings of numbers: none of them is the listed host."""
    others = ["evilweb.test", "web.test.evil.com", "xwild.test", "wild.test", "web.test.", "web.tes", "eb.test",
              "xn--web-test", "a.b.web.test"]
    script = f"""
import socket
for name in {others!r}:
    try: print("resolved", name, socket.getaddrinfo(name, {listener.port})[0][4]) if name != "web.test." else None
    except OSError as e: print("not", name)
for name in ("web.test", "WEB.Test", "a.wild.test", "a.b.wild.test", "web.test."):
    s = socket.create_connection((name, {listener.port})); s.sendall(b"hello " + name.encode()); s.close()
"""
    env = test_hosts(names=[*NAMES, "a.b.wild.test", *(name for name in others if name[-1] != ".")])
    done = sandbox.run([PYTHON, "-c", script], policy=policy_for(sandbox, "web.test", "\"*.wild.test\""), env=env)
    assert done.code == 0 and "resolved" not in done.out and done.out.count("not ") == len(others) - 1, done
    wait_until(lambda: len(listener.heard) == 5)
    urls = [f"http://evil@other.test:{listener.port}/", f"http://2130706433:{listener.port}/",
            f"http://0177.0.0.1:{listener.port}/", f"http://0x7f.1:{listener.port}/",
            f"http://[::ffff:7f00:1]:{listener.port}/",
            f"http://web.test%00.evil.com:{listener.port}/", f"http://[64:ff9b::7f00:1]:{listener.port}/",
            f"http://[2002:7f00:1::]:{listener.port}/"]
    done = sandbox.run(["bash", "-c", "for url; do curl -gsS -m 4 $url; done", "x", *urls],
                       policy=policy_for(sandbox, "web.test", loopback=False), env=test_hosts())
    assert len(listener.heard) == 5, (done, listener.heard)


def test_n5_there_is_no_other_way(sandbox, listener):
    """A listed name opens nothing else: numbers, the host's own addresses, its loopback, interfaces, raw routes."""
    local = ["127.0.0.1", "::1", "0.0.0.0", *os.popen("hostname -I").read().split()]
    foreign = ["198.18.0.1", "198.18.0.77", "fd61:746f:6c6c::77", "10.0.0.1", "169.254.169.254"]
    script = f"""
import socket, sys
for address in sys.argv[1:]:
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET); s.settimeout(4)
    try:
        s.connect((address, {listener.port})); s.sendall(b"escaped"); print("connected", address, s.recv(10))
    except OSError as e: print("refused", address, e)
"""
    done = sandbox.run([PYTHON, "-c", script, *local, *foreign],
                       policy=policy_for(sandbox, "web.test", loopback=False),
                       env={**test_hosts(), "http_proxy": "http://127.0.0.1:1", "no_proxy": "*"})
    assert done.code == 0 and "connected" not in done.out and not listener.heard, (done, listener.heard)
    # The positive control asks this machine alone.
    sandbox.run_outside([PYTHON, "-c", script, *local])
    assert wait_until(lambda: b"escaped" in listener.heard, what="the control")
    entries = [line.split() for line in sandbox.run("cat /proc/net/dev", policy=policy_for(sandbox, "web.test"))
               .out.splitlines()[2:]]
    assert [entry[0] for entry in entries] == ["lo:"], entries


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "169.254.169.254", "10.1.2.3", "100.64.1.1", "192.168.1.1",
        "0.0.0.0", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fd00:ec2::254", "fe80::1", "2002:7f00:1::", "224.0.0.1"])
def test_n7_a_name_that_leads_to_a_private_address(sandbox, listener, address):
    """Refused after the resolution, before the dial; with a cidr rule for that address it is reached."""
    script = f"curl -sS -m 8 http://web.test:{listener.port}/"
    done = sandbox.run(script, policy=policy_for(sandbox, "web.test", loopback=False), env=test_hosts(address))
    assert done.code != 0 and not listener.heard, (done, listener.heard)
    denied = rules_of(done)
    assert denied.get(("net.connect", f"web.test:{listener.port}")) == "builtin.private", done
    if address == "127.0.0.1":
        sandbox.run(script, policy=policy_for(sandbox, "web.test"), env=test_hosts(address))
        assert listener.heard


def test_n7_the_open_default_is_the_public_internet(sandbox, listener):
    policy = sandbox.policy("atoll: 1\nextends: medium\nnetwork: {default: allow}\n")
    done = sandbox.run(f"curl -sS -m 5 http://any.name.test:{listener.port}/; curl -sS -m 5 http://10.9.9.9/;"
                       "curl -sS -m 5 http://169.254.169.254/latest/", policy=policy,
                       env=test_hosts(names=["any.name.test"]))
    denied = rules_of(done)
    assert not listener.heard, done
    for subject in (f"any.name.test:{listener.port}", "10.9.9.9:80", "169.254.169.254:80"):
        assert denied.get(("net.connect", subject)) == "builtin.private", done


TLS = """
import socket, ssl, sys
context = ssl._create_unverified_context()
s = socket.create_connection(("web.test", int(sys.argv[1])))
s.settimeout(8)
try:
    t = context.wrap_socket(s, server_hostname=sys.argv[2] or None)
    t.sendall(b"GET / HTTP/1.0\\r\\nHost: hidden\\r\\n\\r\\n"); print("answer", t.recv(100))
except OSError as e:
    print("refused", type(e).__name__)
"""


@pytest.mark.parametrize("name,rule", [("web.test", None), ("WEB.TEST", None), ("other.test", "builtin.server_name"),
        ("", "builtin.server_name"), ("web.test.", "builtin.server_name"), ("xweb.test", "builtin.server_name")])
def test_n8_the_server_name_of_tls_is_the_name_that_was_looked_up(sandbox, certificates, name, rule):
    server = Web(certificates.context())
    done = sandbox.run([PYTHON, "-c", TLS, str(server.port), name],
                       policy=policy_for(sandbox, "web.test", "other.test"), env=test_hosts())
    assert ("answer" in done.out) == (rule is None), done
    assert bool(server.requests) == (rule is None), server.requests
    if rule:
        assert rules_of(done).get(("net.connect", f"web.test:{server.port}")) == rule, done
    server.close()


def test_n8_bytes_one_by_one_are_looked_at_all_the_same(sandbox, certificates):
    """A hello in many segments and records; the server hears nothing before it is whole, and nothing of a wrong one."""
    server = Listener(lambda connection: connection.recv(1 << 16))
    script = f"""
import socket, ssl, struct, time
for name in ("web.test", "other.test"):
    i, o = ssl.MemoryBIO(), ssl.MemoryBIO()
    t = ssl._create_unverified_context().wrap_bio(i, o, server_hostname=name)
    try: t.do_handshake()
    except ssl.SSLWantReadError: pass
    body = o.read()[5:]
    s = socket.create_connection(("web.test", {server.port})); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for at in range(0, len(body), 20):
            record = b"\\x16\\3\\1" + struct.pack(">H", len(body[at:at + 20])) + body[at:at + 20]
            for byte in record: s.sendall(bytes([byte]))
        s.shutdown(socket.SHUT_WR); s.recv(10)
        print("sent", name)
    except OSError as e: print("cut", name)
"""
    done = sandbox.run([PYTHON, "-c", script], policy=policy_for(sandbox, "web.test"), env=test_hosts())
    assert "sent web.test" in done.out and "cut other.test" in done.out, done
    wait_until(lambda: len(server.heard) == 2)
    whole, = (heard for heard in server.heard if isinstance(heard, bytes) and heard)
    assert len(whole) > 100 and server.heard.count(whole) == 1, server.heard
    server.close()


BY_NUMBER = """
import socket, ssl, sys
context = ssl._create_unverified_context()
for name in ("web.test", "six.test", "other.test", None):
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=8)
    try:
        t = context.wrap_socket(s, server_hostname=name)
        t.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print("answer", name, len(t.recv(100)) > 0)
    except OSError as e: print("refused", name)
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=8)
s.sendall(b"plain"); s.settimeout(3)
try: print("heard", s.recv(10) != b"")
except OSError: print("cut")
"""


@pytest.mark.parametrize("default,refused", [("allow", ["web.test", "six.test"]), ("deny", [])])
def test_n8_a_name_that_is_denied_is_not_had_by_its_number(sandbox, certificates, default, refused):
    """What an open network denies by name, or reads the requests of, is not reached by who knows its address."""
    addresses = [address for address in os.popen("hostname -I").read().split() if "." in address]
    if not addresses:
        pytest.skip("this machine has no IPv4 address beyond loopback")
    server = Web(certificates.context(), address=addresses[0])
    words = [PYTHON, "-c", BY_NUMBER, addresses[0], str(server.port)]
    outside = sandbox.run_outside(words).out
    assert outside.count("answer") == 4, outside
    rules = [f"{{cidr: {addresses[0]}/32}}", "{host: six.test, http: [{methods: [GET]}]}"]
    done = sandbox.run(words, policy=sandbox.policy(policy_text(rules, f"  default: {default}\n  deny: [web.test]\n")),
                       env={**test_hosts(), "SSL_CERT_FILE": str(certificates.ca)})
    assert [line.split()[1] for line in done.out.splitlines() if line.startswith("refused")] == refused, done
    assert done.out.count("answer") == 4 - len(refused) and done.out.splitlines()[-1] == outside.splitlines()[-1], done
    denied = {("net.connect", f"{addresses[0]}:{server.port}"): "builtin.server_name"} if refused else {}
    assert rules_of(done) == denied, done
    server.close()


# A server that takes no key of the first hello asks for a second one, and goes by the name in that (RFC 8446 4.1.4).
RETRY = """
import socket, ssl, sys
first = sys.argv[3]
for second in sys.argv[4:]:
    i, o = ssl.MemoryBIO(), ssl.MemoryBIO()
    t = ssl._create_unverified_context().wrap_bio(i, o, server_hostname=first)
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=8)
    hellos = 0
    try:
        while True:
            try: t.do_handshake(); break
            except ssl.SSLWantReadError:
                said = o.read(); hellos += 1
                if hellos == 2: said = said.replace(first.encode(), second.encode())
                s.sendall(said)
                i.write(s.recv(65536) or sys.exit("cut"))
        s.sendall(o.read()); print("answer", second, "after", hellos)
    except OSError as e: print("refused", second, type(e).__name__)
"""


@pytest.mark.parametrize("by", ["name", "number"])
def test_n42_the_second_hello_names_the_same_server(sandbox, certificates, by):
    addresses = [address for address in os.popen("hostname -I").read().split() if "." in address]
    if by == "number" and not addresses:
        pytest.skip("this machine has no IPv4 address beyond loopback")
    address, names = addresses[0] if by == "number" else "127.0.0.1", []
    context = certificates.context()
    context.set_ecdh_curve("secp384r1")
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    server = Web(context, address=address)
    # Of one length, so that nothing else of the hello changes.
    first, denied = "web.test", "six.test"
    words = [PYTHON, "-c", RETRY, address, str(server.port), first, first, denied]
    outside = sandbox.run_outside(words).out
    # The control: the server takes the name of the second hello, and an honest client is served.
    assert f"answer {first} after" in outside and names == [first, first, first, denied], (outside, names)
    names.clear()
    if by == "name":
        words[3], policy = "web.test", policy_for(sandbox, "web.test")
    else:
        policy = sandbox.policy(policy_text([f"{{cidr: {address}/32}}"], f"  default: allow\n  deny: [{denied}]\n"))
    done = sandbox.run(words, policy=policy, env=test_hosts())
    assert f"answer {first} after" in done.out and f"answer {denied}" not in done.out, done
    assert names == [first, first, first], names
    subject = f"web.test:{server.port}" if by == "name" else f"{address}:{server.port}"
    assert rules_of(done) == {("net.connect", subject): "builtin.server_name"}, done
    server.close()


# What is marked as urgent lies beside the stream to whoever does not ask for it (SO_OOBINLINE), until more is marked.
URGENT = """
import socket, ssl, sys, time
incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
t = ssl._create_unverified_context().wrap_bio(incoming, outgoing, server_hostname="other.test")
s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=8)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
def step(call):
    while True:
        try: return call()
        except ssl.SSLWantReadError:
            s.sendall(outgoing.read()) if outgoing.pending else None
            incoming.write(s.recv(65536) or sys.exit("cut"))
try:
    try: t.do_handshake()
    except ssl.SSLWantReadError: hello = outgoing.read()
    if sys.argv[3] == "urgent":
        s.send(hello[:1], socket.MSG_OOB); s.sendall(hello[1:]); time.sleep(1)
    else:
        s.sendall(hello)
    step(t.do_handshake)
    t.write(b"GET / HTTP/1.0\\r\\n\\r\\n"); s.sendall(outgoing.read())
    print("answer", step(lambda: t.read(100)))
except OSError as e:
    print("refused", type(e).__name__)
"""


def test_n8_a_byte_that_is_marked_as_urgent_is_looked_at(sandbox, certificates):
    """Left out when the first bytes are judged and there when they are sent on, it would make of one hello another."""
    server = Web(certificates.context())
    outside = sandbox.run_outside([PYTHON, "-c", URGENT, "127.0.0.1", str(server.port), "plain"])
    assert "answer" in outside.out and len(server.requests) == 1, outside
    for how in ("plain", "urgent"):
        done = sandbox.run([PYTHON, "-c", URGENT, "web.test", str(server.port), how],
                           policy=policy_for(sandbox, "web.test", "other.test"), env=test_hosts())
        assert "answer" not in done.out and len(server.requests) == 1, (done, server.requests)
        assert rules_of(done) == {("net.connect", f"web.test:{server.port}"): "builtin.server_name"}, done
    server.close()


@pytest.mark.only("root")
@pytest.mark.parametrize("port,sent,passes", [(443, b"GET / HTTP/1.1\r\n\r\n", False), (443, b"SSH-2.0-x\r\n", False),
        (8080, b"GET / HTTP/1.1\r\n\r\n", True)])
def test_n8_ports_of_tls_speak_tls(sandbox, port, sent, passes):
    """An open port 443 is no tunnel for another protocol. On an address of loopback that nobody else uses."""
    address = "127.44.3.1"
    server = Listener(address=address, port=port)
    script = (f"import socket\ns = socket.create_connection(('web.test', {port}))\n"
              f"s.sendall({sent!r}); s.settimeout(5)\n"
              "try: s.recv(10)\nexcept OSError as e: print(type(e).__name__)")
    done = sandbox.run([PYTHON, "-c", script], policy=policy_for(sandbox, "web.test"), env=test_hosts(address))
    assert (server.heard == [sent]) == passes, (done, server.heard)
    if not passes:
        assert not server.heard and rules_of(done) == {("net.connect", "web.test:443"): "builtin.tls"}, done
    server.close()


def test_n10_nothing_but_tcp_leaves(sandbox, listener):
    """UDP, fast open around the supervisor, other families; the same by TCP is the control."""
    heard = []
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", listener.port))
    udp.settimeout(0.5)
    script = f"""
import socket, sys
address = socket.getaddrinfo("web.test", {listener.port}, socket.AF_INET)[0][4]
for target in (address, ("127.0.0.1", {listener.port}), ("198.18.0.1", {listener.port}), ("8.8.8.8", 53)):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5)
    try: s.sendto(b"datagram", target); print(s.recv(10))
    except OSError as e: print("refused", target, e)
for target in (address, ("198.18.0.1", 1)):
    s = socket.socket(); s.settimeout(6)
    try: s.sendto(b"fast open", socket.MSG_FASTOPEN, target); print("answer", s.recv(10))
    except OSError as e: print("refused", target, e)
for arguments in ((socket.AF_INET, socket.SOCK_STREAM, 262), (socket.AF_INET, socket.SOCK_STREAM, 132),
                  (socket.AF_INET, socket.SOCK_SEQPACKET, 132), (socket.AF_INET, socket.SOCK_DGRAM, 1),
                  (socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_PACKET, socket.SOCK_RAW, 0), (40, 1, 0), (38, 5, 0),
                  (44, 3, 0), (30, 2, 0), (31, 1, 0), (15, 3, 0)):
    try: socket.socket(*arguments); print("made", arguments)
    except OSError as e: print("refused", arguments, e)
s = socket.create_connection(("web.test", {listener.port})); s.sendall(b"by tcp"); s.close()
"""
    done = sandbox.run([PYTHON, "-c", script], policy=policy_for(sandbox, "web.test"), env=test_hosts())
    wait_until(lambda: listener.heard)
    try:
        while True:
            heard.append(udp.recv(100))
    except TimeoutError:
        pass
    assert done.code == 0 and not heard and listener.heard == [b"by tcp"], (done, heard, listener.heard)
    assert "made" not in done.out and "datagram" not in done.out, done
    udp.close()


def test_n11_the_walls_stand_where_the_gate_is_open(sandbox):
    """Every attempt of the probe, beside an open gate: the same outcomes as without."""
    with Outside(sandbox, "gate") as outside:
        command = [outside.probe, *outside.options()]
        files = f"files:\n  read: [{outside.readonly}, {outside.tools}]\n"
        closed = parse_probe(sandbox.run(command, policy=sandbox.policy(f"atoll: 1\nextends: medium\n{files}"),
                                         timeout=120).out)
        text = policy_text(["web.test"]) + files
        opened = parse_probe(sandbox.run(command, policy=sandbox.policy(text), timeout=120, env=test_hosts()).out)
    assert closed and opened.keys() == closed.keys()
    differ = {name: (closed[name], opened[name]) for name in closed if closed[name][1] != opened[name][1]}
    # A second address on lo is what the gate is; programs ask for one of global scope.
    assert set(differ) <= {"interfaces.addresses", "route.addresses"}, differ


def test_n17_the_gate_and_its_sockets_are_out_of_reach(sandbox, listener):
    """No descriptor of it is inherited, its port takes no other program's word, and it cannot be seen or signalled."""
    script = f"""
import os, socket
print(sorted(os.listdir("/proc/self/fd")), [p for p in os.listdir("/proc") if p.isdigit()
      and b"egress" in open(f"/proc/{{p}}/comm", "rb").read()])
for port in (1, 53):
    for address in ("198.18.0.1", "0.0.0.0"):
        try: socket.socket().bind((address, port)); print("bound", address, port)
        except OSError as e: print("refused", address, port)
s = socket.socket(); s.settimeout(6)
try: s.connect(("198.18.0.1", 1)); s.sendall(b"to nowhere"); print("answer", s.recv(10))
except OSError as e: print("refused", e)
socket.create_connection(("web.test", {listener.port})).sendall(b"control")
"""
    done = sandbox.run([PYTHON, "-c", script], policy=policy_for(sandbox, "web.test"), env=test_hosts())
    assert done.code == 0 and "[]" in done.out and "bound" not in done.out, done
    assert "answer b''" in done.out or done.out.count("refused") == 5, done
    wait_until(lambda: listener.heard == [b"control"])


@pytest.mark.parametrize("degrade", ["[]", "[netns]"])
def test_n19_without_a_namespace_there_is_no_run(sandbox, degrade):
    """Even where the policy lets the wall go: rules that only proxy variables would hold are no rules."""
    policy = sandbox.policy(policy_text(["web.test"], extends="medium") + f"degrade: {degrade}\n")
    done = sandbox.run(["touch", "it-ran"], policy=policy, env={"ATOLL_TEST_BREAK": "netns"})
    assert done.code == 125 and "network" in done.err and not (sandbox.project / "it-ran").exists(), done
    assert sandbox.run(["true"], policy=policy).code == 0


def test_n20_a_drop_box_is_bounded_and_written_down(sandbox):
    def swallow(connection):
        size = 0
        try:
            while part := connection.recv(1 << 16):
                size += len(part)
        except OSError:
            pass
        return size

    server = Listener(swallow)
    script = f"""
import socket
for i in range(5):
    try:
        s = socket.create_connection(("web.test", {server.port}))
        for _ in range(64): s.sendall(b"secret" * 10000)
        s.shutdown(socket.SHUT_WR)
        s.recv(1) # buffers may take all of it before the gate looks
    except OSError as e: print(type(e).__name__)
"""
    policy = policy_for(sandbox, "web.test", more="  limits: {total: 1MiB}\n")
    done = sandbox.run([PYTHON, "-c", script], policy=policy, env=test_hosts())
    wait_until(lambda: server.heard)
    assert sum(server.heard) <= 1 << 20 and "Error" in done.out, (done, server.heard)
    assert "network.limits.total" in done.report["limits_hit"], done
    server.heard.clear()
    sandbox.run([PYTHON, "-c", script], policy=policy_for(sandbox, "web.test"), env=test_hosts())
    wait_until(lambda: sum(server.heard) == 5 * 64 * 60000)
    server.close()


STORM = """
import os, random, resource, socket, struct, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
random.seed(7)
port = int(sys.argv[1])
for i in range(3000):
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.connect(("198.18.0.1", 53))
    try: u.send(random.randbytes(random.randrange(600)))
    except OSError: pass
    u.close()
held = []
for i in range(2000):
    try:
        s = socket.create_connection(("web.test", port), timeout=5)
        s.sendall(random.choice((b"\\x16", b"\\x16\\3\\1\\x40\\0\\1\\0\\x3f\\xf0" + random.randbytes(9000),
                                 random.randbytes(40), b"")))
        if i % 3 == 0:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); s.close()
        else:
            held.append(s)
    except OSError: pass
t = [socket.create_connection(("198.18.0.1", 53)) for _ in range(50)]
for s in t:
    try: s.sendall(random.randbytes(5000))
    except OSError: pass
print("stormed", len(held), flush=True)
sys.stdin.read(1)
for s in held + t: s.close()
s = socket.create_connection(("web.test", port)); s.sendall(b"still alive"); s.close()
"""


def test_n21_garbage_and_thousands_of_connections(sandbox):
    """Bounded memory, no way through, and it still serves."""
    server = Listener(lambda connection: connection.recv(100))
    child = sandbox.popen([PYTHON, "-c", STORM, str(server.port)], policy=policy_for(sandbox, "web.test"),
                          env=test_hosts(), stdin=subprocess.PIPE)
    line = child.stdout.readline()
    assert b"stormed" in line, (line, child.stderr.read())
    pid, = gate_of(sandbox)
    resident = int(pathlib.Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])
    assert resident < 64 << 10, f"{resident} KiB"
    child.stdin.write(b"x")
    child.stdin.flush()
    wait_until(lambda: b"still alive" in server.heard, seconds=20)
    out, err = child.communicate(timeout=30)
    assert child.returncode == 0 and b"network gate failed" not in err, (out, err)
    server.close()
