# SPDX-License-Identifier: Apache-2.0
"""atolld with a front that the test is: a program in the place of atoll-front hands its socket to the test, which then
says what a front may say (wire/service.h), and what none of ours would."""
import array
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import time

from atoll import ROOT
from control import Reader, blob, frame, string, u32, u64, vector

HEADER = (ROOT / "src" / "wire" / "service.h").read_text()
SETUP, READY, REQUEST, REPLY, EVENT = range(160, 165)
U64, STRING, BYTES, STRINGS, FD = range(1, 6)
# Users of a machine that has no limits for them.
DEGRADED = "atoll: 1\nextends: service-base\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n"
FRONT = """#!/usr/bin/python3
import array, os, signal, socket, time
place = socket.socket(socket.AF_UNIX)
place.connect({place!r})
place.sendmsg([b"front"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [3]))])
os.close(3)
place.recv(1)
"""


def make_authority(sandbox, hosts):
    """A directory with a CA of our own (ca.pem), and what it signed for these names (certificate.pem, key.pem)."""
    place = sandbox.make_directory(sandbox.base / "tls")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    (place / "names").write_text(f"subjectAltName={','.join(f'DNS:{host}' for host in hosts)}\n")
    for words in (
            ["req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test"],
            ["req", *curve, "-keyout", "key.pem", "-out", "asked.pem", "-subj", f"/CN={hosts[0]}"],
            ["x509", "-req", "-in", "asked.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
             "-extfile", "names", "-out", "certificate.pem"]):
        subprocess.run(["openssl", *words], cwd=place, check=True, capture_output=True)
    for path in place.iterdir():
        sandbox.own(path)
    return place


def names(prefix, first):
    """The constants of an enum in the header, by name without its prefix, from its first one on."""
    body = HEADER[HEADER.index(first + " = 1"):]
    found = re.findall(rf"^\s*{prefix}([A-Z_]+)(?: = 1)?,", body[:body.index("};")], re.M)
    return {name: number for number, name in enumerate(found, 1)}


OPERATIONS = names("SERVICE_", "SERVICE_WHOAMI")
EVENTS = {number: name for name, number in names("SERVICE_", "SERVICE_EXIT").items()}


def field(key, value):
    head = string(key.encode())
    if isinstance(value, bool) or isinstance(value, int):
        return head + u32(U64) + u64(int(value))
    if isinstance(value, str):
        return head + u32(STRING) + string(value.encode())
    if isinstance(value, bytes):
        return head + u32(BYTES) + blob(value)
    return head + u32(STRINGS) + vector([one.encode() for one in value])


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def read_fields(reader):
    values, rows = {}, []
    while reader.at < len(reader.bytes):
        key, kind, value = text(reader.field()), reader.field(), reader.field()
        if key == "row":
            rows.append(read_fields(Reader(value[16:]))[0])
        elif kind == STRINGS:
            values[key] = [text(one) for one in value]
        else:
            values[key] = text(value) if kind == STRING else value
            if kind == FD:
                values[key] = Descriptor(value)
    return values, rows


class Descriptor(int):
    """The index of a descriptor that came with the frame."""


class Reply:
    def __init__(self, status, values, rows, fds):
        self.status, self.values, self.rows = status, values, rows
        self.fds = {key: fds[value] for key, value in values.items() if isinstance(value, Descriptor)}

    def __getitem__(self, key):
        return self.values[key]

    def close(self):
        for fd in self.fds.values():
            os.close(fd)
        self.fds = {}

    def __repr__(self):
        return f"<{self.status} {self.values} {self.rows}>"


class Service:
    """One atolld of a test, and the test as its front."""

    def __init__(self, sandbox, options=(), env=None):
        self.sandbox, self.options, self.env = sandbox, list(options), env or {}
        self.directory = sandbox.make_directory(sandbox.base / "programs")
        for entry in pathlib.Path(sandbox.programs.directory).iterdir():
            to = self.directory / entry.name
            if entry.is_dir():
                shutil.copytree(entry, to, dirs_exist_ok=True)
            elif not to.exists():
                shutil.copy2(entry, to)
        if not (self.directory / "policies").exists():
            shutil.copytree(ROOT / "policies", self.directory / "policies")
        if not sandbox.identity.is_root:
            self.options += ["--policy", str(sandbox.policy(DEGRADED, "service-test.yaml"))]
        self.place = sandbox.base / "front.sock"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.place))
        sandbox.own(self.place)
        self.listener.listen(16)
        front = self.directory / "atoll-front"
        front.unlink(missing_ok=True)
        front.write_text(FRONT.format(place=str(self.place)))
        front.chmod(0o755)
        self.process = self.front = self.alive = None
        self.key = self.url = None
        self.tickets, self.events, self.replies = 0, [], {}

    # --- The processes. ---

    def start(self, *options, ready=True):
        words = [str(self.directory / "atolld"), "--json", "--listen", "127.0.0.1:0", *self.options, *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        stdin=subprocess.DEVNULL, **self.sandbox.popen_keywords(env=self.env))
        if ready:
            self.take_front()
            self.say_ready()
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read().decode()
            said = json.loads(line)
            self.url = said["url"]
            self.key = said.get("key", self.key)
        return self

    def take_front(self, seconds=10):
        """The socket of the next front that atolld starts."""
        assert select.select([self.listener], [], [], seconds)[0], self.said()
        self.alive, _ = self.listener.accept()
        _, control, _, _ = self.alive.recvmsg(16, socket.CMSG_SPACE(4))
        fds = array.array("i")
        fds.frombytes(control[0][2])
        self.front = socket.socket(fileno=fds[0])
        self.setup = self.receive()

    def say_ready(self):
        self.front.send(frame(READY))

    def said(self):
        if self.process.poll() is None:
            return "it runs"
        os.set_blocking(self.process.stderr.fileno(), False)
        return (self.process.stderr.read() or b"").decode()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.end_front()
        self.finish()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=20)
        said = self.said()
        self.finish()
        self.end_front()
        assert code == 0, said[-3000:]

    def finish(self):
        self.process.wait(timeout=20)
        self.process.stdout.close()
        self.process.stderr.close()

    def end_front(self):
        for one in (self.front, self.alive):
            if one:
                one.close()
        self.front = self.alive = None

    def end(self):
        """Everything that clients have is ended, then the daemon."""
        if self.process and self.process.poll() is None:
            if self.front and self.key:
                for row in self.list():
                    self.ask("KILL", sandbox=row["sandbox"])
            self.stop()
        self.listener.close()
        self.end_front()

    # --- Frames. ---

    def send(self, operation, ticket=None, **values):
        if ticket is None:
            self.tickets += 1
            ticket = self.tickets
        fields = [field(key, value) for key, value in values.items() if value is not None]
        self.front.send(frame(REQUEST, u64(ticket), u32(OPERATIONS[operation]), *fields))
        return ticket

    def receive(self, seconds=20):
        """The next frame: its values; a reply or an event is put to the others."""
        assert select.select([self.front], [], [], seconds)[0], self.said()
        bytes_, control, _, _ = self.front.recvmsg(1 << 18, socket.CMSG_SPACE(4 * 16))
        assert bytes_, f"the front was ended: {self.said()}"
        fds = array.array("i")
        for _, _, passed in control:
            fds.frombytes(passed[:len(passed) - len(passed) % 4])
        kind = struct.unpack_from("=H", bytes_, 6)[0]
        reader = Reader(bytes_[16:])
        if kind == REPLY:
            ticket, _, status = reader.field(), reader.field(), reader.field()
            self.replies[ticket] = Reply(status, *read_fields(reader), fds)
        elif kind == EVENT:
            event = EVENTS[reader.field()]
            self.events.append((event, read_fields(reader)[0]))
        else:
            return read_fields(reader)[0]
        return None

    def wait(self, ticket, seconds=20):
        while ticket not in self.replies:
            self.receive(seconds)
        return self.replies.pop(ticket)

    def ask(self, operation, key="own", **values):
        """A request with the first key (key=None: without one), and its reply."""
        return self.wait(self.send(operation, key=self.key if key == "own" else key, **values))

    def event(self, name, seconds=20, **wanted):
        """The next event of this name with these values; those before it are dropped."""
        end = time.monotonic() + seconds
        while True:
            while self.events:
                found, values = self.events.pop(0)
                if found == name and all(values.get(key) == value for key, value in wanted.items()):
                    return values
            self.receive(max(0.01, end - time.monotonic()))

    # --- What tests mostly do. ---

    def create(self, **values):
        reply = self.ask("CREATE", **values)
        assert reply.status == 201, reply
        return reply

    def list(self, **values):
        reply = self.ask("LIST", **values)
        assert reply.status == 200, reply
        return reply.rows

    def start_command(self, box, argv, **values):
        values = {"stdin": 0, **values}
        return self.ask("EXEC", key=None, sandbox=box["sandbox"], token=box["token"], argv=argv, **values)

    def run(self, box, script, **values):
        """What a script writes, and its exit code."""
        reply = self.start_command(box, ["/bin/bash", "-c", script], **values)
        assert reply.status == 200, reply
        out = b""
        while True:
            some = os.read(reply.fds["stdout"], 65536)
            if not some:
                break
            out += some
        reply.close()
        ended = self.event("EXIT", command=reply["command"], sandbox=box["sandbox"])
        return out.decode(), ended.get("exit", -ended.get("signal", 0))
