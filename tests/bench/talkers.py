# SPDX-License-Identifier: Apache-2.0
"""The two ends of the section `gate`: a server of this machine, and clients that live behind the network gate, behind
its peers or behind nothing, and measure when they are told to (traffic.c)."""
import os
import select
import shutil
import subprocess
import time

from contenders import HERE, Unusable

NAME = "bench.test"
# A node of the tunnel device that everybody may open, as most systems have it; then the user.
TUNNEL = ("mount -t tmpfs tmpfs /mnt && mknod -m 666 /mnt/tun c 10 200 && mount --bind /mnt/tun /dev/net/tun && "
          "exec setpriv --reuid {uid} --regid {gid} --clear-groups \"$@\"")


class Server:
    """traffic serve, with a certificate for NAME; lives as long as its standard input."""

    def __init__(self, place):
        self.ca, self.key = place.path("chain.pem"), place.path("key.pem")
        self.program = place.path("traffic")
        place.compile("traffic", ["gcc", "-O2", os.path.join(HERE, "traffic.c"), "-lssl", "-lcrypto"])
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}",
                        "-keyout", self.key, "-out", self.ca], check=True, capture_output=True)
        for path in (self.ca, self.key):
            os.chmod(path, 0o644)
        self.process = subprocess.Popen([self.program, "serve", self.ca, self.key], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.port = int(self.process.stdout.readline())

    def client(self, host, port=None):
        return [self.program, "client", host, str(port or self.port)]

    def serve(self, port):
        return [self.program, "serve", self.ca, self.key, str(port)]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)


class Talker:
    """A client that obeys one line at a time. A session of its own: the scheduler shares by session."""

    def __init__(self, command, place, environment=None, follow=None, **options):
        self.process = subprocess.Popen(command, cwd=place.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, start_new_session=True,
                                        env={**place.environment, **(environment or {})}, **options)
        self.others = [follow(self.process.pid)] if follow else []
        self.hear()

    def hear(self, seconds=60):
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            self.close()
            raise Unusable("said nothing")
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(timeout=20)
            raise Unusable(self.process.stderr.read().strip()[-200:] or "ended")
        return line.split()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return [float(word) for word in self.hear()]

    def close(self):
        for process in (self.process, *self.others):
            process.terminate()
        for process in (self.process, *self.others):
            process.wait(timeout=20)


def behind_gate(place, server, policy):
    environment = {"ATOLL_TEST_HOSTS": f"{NAME}=127.0.0.1", "SSL_CERT_FILE": server.ca}
    return Talker([place.atoll, "run", "-q", "-p", policy, "--", *server.client(NAME)], place, environment,
                  **place.as_user())


def with_tunnel(place):
    """(the words before a command that needs the tunnel device, options of Popen)"""
    if place.uid == os.getuid():
        return [], {}
    if os.getuid() != 0:
        return [], place.as_user()
    return ["unshare", "--mount", "sh", "-c", TUNNEL.format(uid=place.uid, gid=place.gid), "sh"], {}


def own_user(place):
    return ["unshare", "--user", "--map-root-user"] if place.uid else []


def behind_pasta(place, server):
    """Its fastest way: loopback of both sides spliced together, no packet anywhere."""
    prefix, options = with_tunnel(place)
    return Talker([*prefix, *own_user(place), "pasta", "-f", "--config-net", "--netns-only", "--runas", "0:0",
                   "-t", "none", "-u", "none", "-U", "none", "-T", str(server.port), "--",
                   *server.client("127.0.0.1")], place, **options)


WAIT_FOR_ROUTE = "until ip route | grep -q default; do sleep 0.05; done; exec \"$@\""


def behind_slirp(place, server):
    prefix, options = with_tunnel(place)

    def configure(pid):
        """From outside, once the namespace is another than ours: it would make its device here."""
        until = time.monotonic() + 10
        while os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            if time.monotonic() > until:
                raise Unusable("no network namespace")
            time.sleep(0.02)
        return subprocess.Popen([*prefix, "slirp4netns", "--configure", "--mtu=65520", "--disable-dns", str(pid),
                                 "tap0"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, start_new_session=True, **options)

    return Talker([*prefix, *own_user(place), "unshare", "--net", "sh", "-c", WAIT_FOR_ROUTE, "sh",
                   *server.client("10.0.2.2")], place, follow=configure, **options)


def behind_nothing(place, server):
    return Talker(server.client("127.0.0.1"), place, **place.as_user())


def inside_gate(place, server, policy, port):
    """A server behind the network gate, on a published port of this number on both sides."""
    options = ["-q", "-p", policy, "--publish", f"{port}:{port}"]
    return Talker([place.atoll, "run", *options, "--", *server.serve(port)], place, **place.as_user())


def inside_pasta(place, server, port):
    prefix, options = with_tunnel(place)
    return Talker([*prefix, *own_user(place), "pasta", "-f", "--config-net", "--netns-only", "--runas", "0:0",
                   "-t", f"127.0.0.1/{port}", "-u", "none", "-U", "none", "-T", "none", "--", *server.serve(port)],
                  place, **options)


def to_port(place, server, port):
    return Talker(server.client("127.0.0.1", port), place, **place.as_user())


class Relay:
    """The least that stands between two who both speak TLS (tls-relay.c): the floor of an interception."""

    def __init__(self, place, server):
        program = place.path("tls-relay")
        place.compile("tls-relay", ["gcc", "-O2", os.path.join(HERE, "tls-relay.c"), "-lssl", "-lcrypto"])
        self.process = subprocess.Popen([program, server.ca, server.key, str(server.port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.port = int(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)


PEERS = {"pasta": behind_pasta, "slirp4netns": behind_slirp}


def start_all(place, server, policy, report):
    """{name: talker}; who is not installed or does not start here is named in the report."""
    talkers = {"direct": behind_nothing(place, server), "network gate": behind_gate(place, server, policy)}
    for name, start in PEERS.items():
        try:
            if not shutil.which(name):
                raise Unusable("not installed")
            talkers[name] = start(place, server)
        except (Unusable, OSError, subprocess.SubprocessError) as why:
            report.absent(place, {name: str(why)})
    return talkers
