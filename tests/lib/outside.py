# SPDX-License-Identifier: Apache-2.0
"""What stands outside and is attacked: sockets, queues, shared memory, a process, secrets, files. Owned by the
identity."""
import os
import shutil
import socket
import subprocess
import sys

# Runs as the identity, so that everything is within its reach without a boundary.
SERVER = r"""
import ctypes, os, socket, sys, threading
path, abstract, datagram, key, queue, shm = sys.argv[1:7]
libc = ctypes.CDLL(None, use_errno=True)
key = int(key)
made = (libc.shmget(key, 4096, 0o1600), libc.semget(key, 1, 0o1600), libc.msgget(key, 0o1600))
mq = ctypes.CDLL("librt.so.1", use_errno=True).mq_open(queue.encode(), os.O_CREAT | os.O_RDWR, 0o600, None)
with open("/dev/shm/" + shm, "w") as file:
    file.write("host")
streams = [socket.socket(socket.AF_UNIX) for _ in range(2)]
streams[0].bind(path)
streams[1].bind("\0" + abstract)
tcp = socket.socket(socket.AF_INET6)
tcp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
tcp.bind(("::", 0))
heard = []
def serve(sock):
    sock.listen(64)
    while True:
        connection, _ = sock.accept()
        heard.append(sock.getsockname())
        connection.close()
for sock in streams + [tcp]:
    threading.Thread(target=serve, args=(sock,), daemon=True).start()
box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
box.bind(datagram)
print(os.getpid(), tcp.getsockname()[1], *made, mq, flush=True)
sys.stdin.read()
for kind, number in zip((libc.shmctl, libc.msgctl), (made[0], made[2])):
    kind(number, 0, 0)
libc.semctl(made[1], 0, 0)
ctypes.CDLL("librt.so.1").mq_unlink(queue.encode())
os.unlink("/dev/shm/" + shm)
"""


class Outside:
    """A context: the targets are there while it lasts. options() are the arguments of atoll-probe."""

    def __init__(self, sandbox, mark):
        self.sandbox, self.mark = sandbox, mark
        home = sandbox.home
        self.hidden = home / "hidden"
        self.readonly = home / "readonly"
        self.scratch = sandbox.project / "scratch"
        self.secret = self.hidden / "id_secret"
        self.socket = sandbox.project / "host.sock"
        self.datagram = sandbox.project / "host.dgram"
        self.abstract = f"atolltest-{mark}"
        self.queue, self.shm = f"/atolltest-{mark}", f"atolltest-{mark}"
        self.key = 0x41540000 + os.getpid() % 0xffff
        self.tools = home / "tools"
        self.server = None

    def __enter__(self):
        box, home = self.sandbox, self.sandbox.home
        for directory in (self.hidden, self.readonly, self.scratch, self.tools):
            box.make_directory(directory)
        box.write(self.secret, "the secret\n", 0o600)
        self.probe = box.copy(box.programs.program("atoll-probe"), self.tools / "atoll-probe")
        names = subprocess.run([str(self.probe), "--list"], capture_output=True, text=True, check=True).stdout.split()
        self.names = names
        for name in names:
            place = {"readonly": self.readonly, "hidden": self.hidden}.get(name.split(".")[0])
            if place:
                victim = box.write(place / f"victim-{name}", "v" * 64, 0o644)
                os.setxattr(victim, "user.atollset", b"x")
                box.make_directory(place / f"victim-{name}.d")
        self.make_privileged()
        for name in SECRET_FILES:
            box.write(home / name, "planted\n", 0o600)
        for directory in (box.state, box.runtime):
            box.make_directory(directory / "atoll", 0o700)
        self.plant_sockets()
        self.server = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(self.socket), self.abstract, str(self.datagram), str(self.key),
                    self.queue,
             self.shm], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **box.popen_keywords())
        words = self.server.stdout.readline().split()
        assert len(words) == 6 and b"-1" not in words, f"the outside could not be made: {words}"
        self.pid, self.port = int(words[0]), int(words[1])
        return self

    def make_privileged(self):
        """Copies of the probe that gain something where nothing holds them: setuid root, and with file capabilities."""
        self.setuid, self.capable = self.tools / "setuid-probe", self.tools / "capable-probe"
        if os.geteuid() != 0:
            return
        for path in (self.setuid, self.capable):
            self.sandbox.copy(self.probe, path)
            os.chown(path, 0, 0)
        os.chmod(self.setuid, 0o4755)
        # struct vfs_cap_data, revision 2, effective: cap_net_raw (linux/capability.h).
        os.setxattr(self.capable, "security.capability", bytes.fromhex("0100000200200000" + "00" * 12))

    def plant_sockets(self):
        """Listeners where the desktop's are, for the test's own user alone: nobody else has this uid."""
        uid, self.planted = self.sandbox.identity.uid, []
        if os.geteuid() != 0 or uid == 0:
            return
        for name in (f"/run/user/{uid}/bus", f"/run/user/{uid}/wayland-0", f"/run/user/{uid}/gnupg/S.gpg-agent",
                     f"/run/user/{uid}/podman/podman.sock", f"/run/user/{uid}/keyring/ssh", f"/tmp/tmux-{uid}/default"):
            os.makedirs(os.path.dirname(name), exist_ok=True)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(name)
            listener.listen(16)
            os.chmod(name, 0o777)
            self.planted.append(listener)

    def remove_sockets(self):
        uid = self.sandbox.identity.uid
        for listener in self.planted:
            listener.close()
        if self.planted:
            shutil.rmtree(f"/run/user/{uid}", ignore_errors=True)
            shutil.rmtree(f"/tmp/tmux-{uid}", ignore_errors=True)

    def options(self, **more):
        options = {
            "secret": self.secret, "hidden": self.hidden, "readonly": self.readonly, "scratch": self.scratch,
            "socket": self.socket, "datagram": self.datagram, "abstract": self.abstract, "mqueue": self.queue,
            "shm-file": self.shm, "sysv-key": self.key, "setuid-program": self.setuid, "capable-program": self.capable,
            "control": self.sandbox.runtime / "atoll", "state": self.sandbox.state / "atoll",
            "host-pid": self.pid, "port": self.port, **more,
        }
        return [f"--{name}={value}" for name, value in options.items()]

    def __exit__(self, *_):
        self.remove_sockets()
        if self.server:
            self.server.stdin.close()
            self.server.wait()
            self.server.stdout.close()


SECRET_FILES = (".ssh/id_rsa", ".ssh/authorized_keys", ".aws/credentials", ".gnupg/private.key", ".netrc", ".npmrc",
                ".docker/config.json", ".kube/config", ".git-credentials", ".bash_history", ".config/gh/hosts.yml",
                ".mozilla/profile")


def parse_probe(text):
    """{name: (cases, outcome, note)} of the lines that atoll-probe prints."""
    rows = {}
    for line in text.splitlines():
        words = line.split("\t")
        if len(words) == 5:
            rows[words[0]] = (words[1], words[2], words[3])
    return rows


SECRET_ENVIRONMENT = {
    name: "planted" for name in (
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "NPM_TOKEN",
        "GOOGLE_APPLICATION_CREDENTIALS", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY",
        "TMUX",
        "DOCKER_HOST", "KUBECONFIG", "NODE_OPTIONS", "BUN_OPTIONS", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT",
        "BASH_ENV", "ENV", "PROMPT_COMMAND", "BASH_FUNC_ls%%", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "SUDO_ASKPASS",
        "PLANTED_SECRET", "LD_LIBRARY_PATH", "LD_AUDIT", "PYTHONPATH", "LD_PRELOAD")
}
