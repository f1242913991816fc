# SPDX-License-Identifier: Apache-2.0
"""atoll-front with a launcher that is none: what it asks for is done here, by this process, in a directory of the test.

The other end of its socket (src/wire/service.h) is a thread. Sandboxes are names in a dictionary; files lie below a
directory; commands are children of this process. Each operation can be replaced by a test.
"""
import array
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import threading

from control import MAGIC, VERSION, HEADER, u32, u64, string, vector, blob

SETUP, READY, REQUEST, REPLY, EVENT, ROW = 160, 161, 162, 163, 164, 191
def words_of(name):
    """Numbers of an enum of src/wire/service.h: they count on from its first."""
    text = (pathlib.Path(__file__).resolve().parents[2] / "src/wire/service.h").read_text(encoding="utf-8")
    body = re.search(rf"enum {name} \{{(.*?)\}};", text, re.S).group(1)
    return re.findall(r"^\s*SERVICE_(\w+)(?: = 1)?,", body, re.M)


OPERATIONS = words_of("service_operation")
NUMBER = {name: at for at, name in enumerate(OPERATIONS, 1)}
EVENTS = {name: at for at, name in enumerate(words_of("service_event"), 1)}
EXIT, CHANGED, LOST, GONE = (EVENTS[name] for name in ("EXIT", "CHANGED", "LOST", "GONE"))
U64, STRING, BYTES, STRINGS, FD = range(1, 6)
KEY, TOKEN = "e2b_00", "token"


class Fd:
    """A descriptor in a frame; closed once it was sent."""

    def __init__(self, fd):
        self.fd = fd


class Failed(Exception):
    def __init__(self, status, message="no", connect=None):
        super().__init__(message)
        self.status, self.fields = status, {"message": message}
        if connect:
            self.fields["connect"] = connect


def put_fields(fields, fds):
    out = b""
    for key, value in fields.items() if isinstance(fields, dict) else fields:
        if value is None:
            continue
        head = string(key.encode())
        if isinstance(value, Fd):
            out += head + u32(FD) + u64(len(fds))
            fds.append(value.fd)
        elif isinstance(value, (bool, int)):
            out += head + u32(U64) + u64(int(value))
        elif isinstance(value, str):
            out += head + u32(STRING) + string(value.encode())
        elif isinstance(value, bytes):
            out += head + u32(BYTES) + blob(value)
        else:
            out += head + u32(STRINGS) + vector([text.encode() for text in value])
    return out


def frame(kind, body):
    return struct.pack("=IHHII", MAGIC, VERSION, kind, HEADER + len(body), 0) + body


def row(fields):
    return frame(ROW, put_fields(fields, []))


class Reader:
    def __init__(self, data):
        self.kind = struct.unpack_from("=IHHII", data)[2]
        self.data, self.at = data, HEADER

    def take(self, form):
        value = struct.unpack_from("=" + form, self.data, self.at)[0]
        self.at += struct.calcsize("=" + form)
        return value

    def value(self):
        tag = self.take("B")
        if tag == 1:
            return self.take("I")
        if tag == 2:
            return self.take("Q")
        if tag == 5:
            return None
        size = self.take("I")
        if tag == 6:
            return [self.value() for _ in range(size)]
        raw = self.data[self.at:self.at + size]
        self.at += size
        return raw if tag == 3 else raw[:-1].decode()

    def fields(self):
        found = {}
        while self.at < len(self.data):
            key = self.value()
            self.value()
            found[key] = self.value()
        return found


class Front:
    """The front under test, and what it asks. `asked` has (operation, fields) of every request, in order."""

    def __init__(self, program, place, setup=None, wrapper=()):
        self.place = str(place)
        self.asked, self.changed = [], threading.Condition()
        self.lock = threading.Lock()
        self.sandboxes, self.commands, self.watches = {"abc": {}}, {}, {}
        self.next_command = 1
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.end, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = self.start(program, theirs, wrapper)
        theirs.close()
        self.send(SETUP, b"", {"domain": "localhost", "listen": Fd(os.dup(self.listener.fileno())), **(setup or {})})
        ready = self.end.recv(1 << 17)
        assert ready and Reader(ready).kind == READY
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    @staticmethod
    def start(program, theirs, wrapper):
        # dup2() onto 3 in the child, before exec.
        number = theirs.fileno()

        def prepare():
            if number == 3:
                os.set_inheritable(3, True)
            else:
                os.dup2(number, 3)
        return subprocess.Popen([*wrapper, str(program)], preexec_fn=prepare, close_fds=False, env={})

    def close(self):
        self.end.shutdown(socket.SHUT_RDWR)
        self.end.close()
        status = self.process.wait(20)
        self.listener.close()
        for command in list(self.commands.values()):
            if command["process"].poll() is None:
                command["process"].kill()
                command["process"].wait()
        return status

    def send(self, kind, head, fields):
        fds = []
        data = frame(kind, head + put_fields(fields, fds))
        with self.lock:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            self.end.sendmsg([data], ancillary)
        for fd in fds:
            os.close(fd)

    def tell(self, event, **fields):
        self.send(EVENT, u32(event), fields)

    def serve(self):
        while True:
            try:
                data = self.end.recv(1 << 17)
            except OSError:
                return
            if not data:
                return
            reader = Reader(data)
            assert reader.kind == REQUEST
            ticket, number = reader.value(), reader.value()
            self.answer(ticket, number, reader.fields())

    def answer(self, ticket, number, fields):
        name = OPERATIONS[number - 1]
        with self.changed:
            self.asked.append((name, fields))
            self.changed.notify_all()
        try:
            self.check(name, fields)
            status, reply = getattr(self, "do_" + name.lower(), self.do_nothing)(fields)
        except Failed as failed:
            status, reply = failed.status, failed.fields
        except FileNotFoundError as error:
            status, reply = 404, {"message": str(error), "connect": "not_found"}
        except OSError as error:
            status, reply = 400, {"message": str(error), "connect": "invalid_argument"}
        if status is None:
            return
        try:
            self.send(REPLY, u64(ticket) + u32(number) + u32(status), reply)
        except OSError:
            pass
        for after in fields.pop("after", []):
            after()

    def check(self, name, fields):
        if NUMBER[name] < NUMBER["HEALTH"]:
            if fields.get("key") != KEY:
                raise Failed(401, "the key is not known")
        elif name not in ("HEALTH", "DIAL", "INTERPRET") and fields.get("token") != TOKEN and "signature" not in fields:
            raise Failed(401, "the token is wrong", "unauthenticated")
        if "sandbox" in fields and fields["sandbox"] not in self.sandboxes:
            raise Failed(404 if NUMBER[name] < NUMBER["HEALTH"] else 502, "The sandbox was not found")

    def wait_asked(self, name, timeout=20):
        with self.changed:
            assert self.changed.wait_for(lambda: any(asked == name for asked, _ in self.asked), timeout), self.asked
            return [fields for asked, fields in self.asked if asked == name][-1]

    # Operations. Each returns a status and values.

    def do_nothing(self, fields):
        return 501, {"message": "not in this test"}

    def sandbox_values(self, name):
        return {"sandbox": name, "template": "base", "state": "running", "started_ms": 1000, "end_ms": 301000,
                "cpu_count": 2, "memory_mb": 512, "disk_mb": 1024, "token": TOKEN,
                "metadata": [word for pair in self.sandboxes[name].items() for word in pair]}

    def do_create(self, fields):
        name = f"s{len(self.sandboxes)}"
        words = fields.get("metadata") or []
        self.sandboxes[name] = dict(zip(words[::2], words[1::2]))
        return 201, self.sandbox_values(name)

    def do_connect(self, fields):
        return 200, self.sandbox_values(fields["sandbox"])

    do_get = do_connect

    def do_list(self, fields):
        names, limit = sorted(self.sandboxes), fields.get("limit", 64)
        first = int(fields.get("next", 0))
        reply = [("row", row(self.sandbox_values(name))) for name in names[first:first + limit]]
        if first + limit < len(names):
            reply.append(("next", str(first + limit)))
        return 200, reply

    def do_kill(self, fields):
        del self.sandboxes[fields["sandbox"]]
        fields["after"] = [lambda: self.tell(GONE, sandbox=fields["sandbox"], ended="killed")]
        return 204, {}

    def do_timeout(self, fields):
        return 204, {}

    do_pause = do_network = do_timeout

    def do_health(self, fields):
        return 204, {}

    def do_exec(self, fields):
        argv = fields["argv"]
        if not shutil.which(argv[0]):
            raise Failed(400, f"{argv[0]}: no such file or directory", "invalid_argument")
        number, self.next_command = self.next_command, self.next_command + 1
        env = {"PATH": os.environ["PATH"], **dict(word.split("=", 1) for word in fields.get("env") or [])}
        options = {"cwd": fields.get("cwd") or self.place, "env": env, "start_new_session": True}
        reply = {"command": number}
        if fields.get("pty"):
            master, slave = pty.openpty()
            process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, **options)
            os.close(slave)
            keep = {"terminal": master}
        else:
            has_stdin = fields.get("stdin", 1)
            process = subprocess.Popen(argv, stdin=subprocess.PIPE if has_stdin else subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **options)
            keep = {"stdin": process.stdin, "stdout": process.stdout, "stderr": process.stderr}
            keep = {key: os.dup(pipe.fileno()) for key, pipe in keep.items() if pipe}
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()
        self.commands[number] = {"process": process, "fields": fields, "keep": {}}
        reply.update({key: Fd(fd) for key, fd in keep.items()}, pid=process.pid, tag=fields.get("tag"))
        # Never before the reply.
        fields["after"] = [threading.Thread(target=self.follow, args=(number, fields), daemon=True).start]
        return 200, reply

    def follow(self, number, fields):
        process, timeout = self.commands[number]["process"], fields.get("timeout_ms")
        try:
            status = process.wait(timeout / 1000 if timeout else None)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        if status is None:
            ended = {"signal": 9, "ended": "time"}
        else:
            ended = {"signal": -status} if status < 0 else {"exit": status}
        self.commands[number]["ended"] = ended
        try:
            self.tell(EXIT, sandbox=fields["sandbox"], command=number, **ended)
        except OSError:
            pass

    def command(self, fields):
        for number, command in self.commands.items():
            if command["fields"]["sandbox"] == fields["sandbox"] and (
                    command["process"].pid == fields.get("pid") or
                    (fields.get("tag") and command["fields"].get("tag") == fields["tag"])):
                return number, command
        raise Failed(404, "there is no such process", "not_found")

    def do_attach(self, fields):
        number, command = self.command(fields)
        reply = {"command": number, "pid": command["process"].pid, "tag": command["fields"].get("tag")}
        if "ended" in command:
            reply.update(exited=1, **command["ended"])
        return 200, reply

    def do_interpret(self, fields):
        if TOKEN not in (fields.get("token"), fields.get("traffic_token")):
            raise Failed(401, "a token is needed")
        return 204, {}

    def do_signal(self, fields):
        command = self.commands[fields["command"]] if "command" in fields else self.command(fields)[1]
        os.killpg(command["process"].pid, fields["signal"])
        return 200, {}

    def do_close_input(self, fields):
        self.command(fields)
        return 204, {}

    def do_resize(self, fields):
        self.command(fields)
        return 200, {}

    def do_commands(self, fields):
        return 200, [("row", row({"command": number, "pid": command["process"].pid, "tag": command["fields"].get("tag"),
                                  "argv": command["fields"]["argv"], "env": command["fields"].get("env")}))
                     for number, command in self.commands.items() if "ended" not in command]

    # Files, below the test's directory.

    def path_of(self, path):
        return os.path.join(self.place, path.lstrip("/").replace("~/", ""))

    def file_values(self, path, seen):
        info = os.lstat(path)
        kind = {stat.S_IFREG: 1, stat.S_IFDIR: 2, stat.S_IFLNK: 3}.get(stat.S_IFMT(info.st_mode), 0)
        values = {"name": os.path.basename(seen), "type": kind, "path": seen, "size": info.st_size,
                  "mode": stat.S_IMODE(info.st_mode), "owner": "user", "group": "user", "modified_ns": info.st_mtime_ns}
        metadata = []
        for name in sorted(os.listxattr(path, follow_symlinks=False)):
            if name.startswith("user.e2b."):
                metadata += [name[len("user.e2b."):], os.getxattr(path, name, follow_symlinks=False).decode()]
        if metadata:
            values["metadata"] = metadata
        if kind == 3:
            values["target"] = os.readlink(path)
        return values

    def do_open(self, fields):
        path = self.path_of(fields["path"])
        if os.path.isdir(path):
            raise Failed(400, "it is a directory", "invalid_argument")
        flags = os.O_RDONLY
        if fields.get("write"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
        return 200, {"file": Fd(fd), **self.file_values(path, "/" + fields["path"].lstrip("/"))}

    def do_stat(self, fields):
        return 200, self.file_values(self.path_of(fields["path"]), "/" + fields["path"].lstrip("/"))

    def do_setattr(self, fields):
        path = self.path_of(fields["path"])
        for name in os.listxattr(path):
            if name.startswith("user.e2b."):
                os.removexattr(path, name)
        words = fields.get("metadata") or []
        for key, value in zip(words[::2], words[1::2]):
            os.setxattr(path, "user.e2b." + key, value.encode())
        return self.do_stat(fields)

    def do_readdir(self, fields):
        # In no order, as the kernel has them.
        path, limit = self.path_of(fields["path"]), fields.get("limit", 64)
        if not os.path.isdir(path):
            os.stat(path)
            raise Failed(400, "it is no directory", "invalid_argument")
        names = sorted(os.listdir(path), reverse=True)
        first = int(fields.get("next", 0))
        reply = [("row", row(self.file_values(os.path.join(path, name),
                                              "/" + os.path.join(fields["path"], name).lstrip("/"))))
                 for name in names[first:first + limit]]
        if first + limit < len(names):
            reply.append(("next", str(first + limit)))
        return 200, reply

    def do_mkdir(self, fields):
        path = self.path_of(fields["path"])
        if os.path.isdir(path):
            raise Failed(409, "it is there", "already_exists")
        os.makedirs(path)
        return self.do_stat(fields)

    def do_move(self, fields):
        os.rename(self.path_of(fields["from"]), self.path_of(fields["to"]))
        return self.do_stat({"path": fields["to"]})

    def do_remove(self, fields):
        path = self.path_of(fields["path"])
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
        return 200, {}

    def do_watch(self, fields):
        number = len(self.watches) + 1
        os.stat(self.path_of(fields["path"]))
        self.watches[number] = fields
        return 200, {"watch": number, "path": "/watched"}

    def do_unwatch(self, fields):
        self.watches.pop(fields["watch"], None)
        return 200, {}

    def do_dial(self, fields):
        link = socket.create_connection(("127.0.0.1", self.ports[fields["port"]]) if fields["port"] in self.ports
                                        else ("127.0.0.1", 1))
        return 200, {"socket": Fd(link.detach()), "mask_host": self.mask_host}

    ports, mask_host = {}, None
