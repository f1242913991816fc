# SPDX-License-Identifier: Apache-2.0
"""Staged sessions made by hand: a real overlay of the kernel, mounted in a user namespace over a tree of the host, and
the records that atoll keeps beside its layers. So the review verbs are tested without the box."""
import os
import pathlib
import struct
import subprocess
import time

TREES_FRAME, CHAIN_FRAME = 60, 57

# What runs in the namespaces: $1 the mount point, $2 its options, $3 the script.
MOUNT = 'mount -t overlay overlay -o "$2" "$1" && cd "$1" && exec sh -ec "$3"'


def frame(kind, *fields):
    """One frame as wire/frame.h writes it: str and bytes are strings, ints in tuples (bits, value)."""
    body = b""
    for field in fields:
        if isinstance(field, tuple):
            bits, value = field
            body += bytes([1]) + struct.pack("=I", value) if bits == 32 else bytes([2]) + struct.pack("=Q", value)
        else:
            text = os.fsencode(field) + b"\0"
            body += bytes([4]) + struct.pack("=I", len(text)) + text
    return struct.pack("=IHHII", 0x6c6f7461, 1, kind, 16 + len(body), 0) + body


def birth_of(path):
    """In nanoseconds; 0 where the file system keeps none."""
    done = subprocess.run(["stat", "-c", "%.9W", str(path)], capture_output=True, check=True)
    return int(done.stdout.replace(b".", b""))


class Layered:
    """A session whose first staged tree is the sandbox's project."""

    def __init__(self, sandbox, policy=None, trees=None):
        self.sandbox = sandbox
        done = sandbox.run(["true"], policy=policy)
        assert done.code == 0 and done.report, done
        self.session = done.session
        self.trees = [pathlib.Path(tree) for tree in trees or [sandbox.project]]
        self.directory = sandbox.state / "atoll" / "sessions" / self.session / "stage"
        self.chain = []
        for index in range(len(self.trees)):
            for part in ("upper", "work"):
                self.own_directory(self.directory / "live" / str(index) / part)
        self.start()

    def own_directory(self, path):
        path.mkdir(parents=True, exist_ok=True)
        for each in [path, *path.parents]:
            if self.directory not in [each, *each.parents]:
                break
            self.sandbox.own(each)
        return path

    @property
    def upper(self):
        return self.directory / "live" / "0" / "upper"

    def start(self, realtime_ns=None, boottime_ns=None):
        """Writes the record. The run begins now: what the host does from here on is a change."""
        boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        if realtime_ns is None:
            # Inodes are stamped with the coarse clock, whose ticks are up to 10 ms long.
            time.sleep(0.02)
            realtime_ns, boottime_ns = time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            time.sleep(0.02)
        uid, gid = self.sandbox.identity.uid, self.sandbox.identity.gid
        fields = [self.session, self.session, (64, realtime_ns), (64, boottime_ns), boot_id, (32, len(self.trees))]
        for tree in self.trees:
            status = tree.stat()
            fields += [str(tree), (64, status.st_dev), (64, status.st_ino), (64, birth_of(tree)),
                       (64, os.statvfs(tree).f_fsid)] + [(32, uid), (32, gid)] * 2
        self.put("trees", frame(TREES_FRAME, *fields))

    def put(self, name, content):
        path = self.directory / name
        path.write_bytes(content)
        path.chmod(0o600)
        self.sandbox.own(path)

    def inside(self, script, tree=0):
        """Runs a shell script in the overlay of a tree, as the identity, with the kernel's own copy-up."""
        point = self.own_directory(self.directory / "merged")
        live = self.directory / "live" / str(tree)
        layers = [str(self.directory / "layers" / str(number) / str(tree)) for number in reversed(self.chain)]
        mask = self.directory / "mask" / str(tree)
        lower = ":".join([*layers, *([str(mask)] if mask.exists() else []), str(self.trees[tree])])
        options = f"userxattr,lowerdir={lower},upperdir={live}/upper,workdir={live}/work"
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh", str(point), options, script],
            stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120,
            cwd=str(self.trees[tree]), **self.sandbox.identity.popen_keywords())
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done.stdout

    def seal(self):
        """What a snapshot does while nothing runs: the uppers become a layer of the chain."""
        number = len(self.chain) + 1
        for index in range(len(self.trees)):
            layers = self.own_directory(self.directory / "layers" / str(number))
            os.rename(self.directory / "live" / str(index) / "upper", layers / str(index))
            self.own_directory(self.directory / "live" / str(index) / "upper")
        self.chain.append(number)
        fields = [(64, 0), "", (32, len(self.chain))]
        for each in self.chain:
            fields += [self.session, (32, each)]
        self.put("chain", frame(CHAIN_FRAME, *fields))
