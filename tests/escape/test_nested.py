# SPDX-License-Identifier: Apache-2.0
"""User namespaces of a program's own (exec.namespaces): all capabilities in one reach nothing that was closed before.

Each attempt is made outside first, in the same kind of namespace, where it gets through.
"""
import json

import pytest

PYTHON = "/usr/bin/python3"
POLICY = "atoll: 1\nextends: medium\nfiles: {mask: [~/project/masked.txt]}\nexec: {namespaces: true}\n"

# Makes user, mount, network and IPC namespaces, is root in them with all capabilities, and tries; prints what got
# through as a JSON object.
ATTEMPTS = r"""
import ctypes, json, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWNET, NEWCGROUP = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x40000000, 0x2000000
uid, gid = os.getuid(), os.getgid()
got = {}

def call(number, *arguments):
    return libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]) >= 0

def attempt(name, what):
    try:
        got[name] = bool(what())
    except OSError as error:
        got[name] = False

got["namespaces"] = libc.unshare(NEWUSER | NEWNS | NEWNET | NEWIPC | NEWUTS) == 0
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
    with open(f"/proc/self/{name}", "w") as file:
        file.write(text)
effective = next(line for line in open("/proc/self/status") if line.startswith("CapEff")).split()[1]
got["capabilities"] = int(effective, 16) >> 21 & 1 == 1

def mount(source, target, kind, flags=0, data=None):
    return libc.mount(source, target, kind, flags, data) == 0

os.makedirs("/tmp/nested/a", exist_ok=True)
os.makedirs("/tmp/nested/b", exist_ok=True)
attempt("mount.tmpfs", lambda: mount(b"none", b"/tmp/nested/a", b"tmpfs"))
attempt("mount.bind", lambda: mount(b"/usr", b"/tmp/nested/b", None, 4096))
attempt("mount.overlay", lambda: mount(b"none", b"/tmp/nested/a", b"overlay", 0, b"lowerdir=/usr:/etc"))
attempt("mount.remount", lambda: mount(None, b"/tmp", None, 32 | 4096))
attempt("mount.umount", lambda: libc.umount2(b"/tmp", 2) == 0)
attempt("mount.fsopen", lambda: call(430, b"tmpfs", 0))
attempt("mount.open_tree", lambda: call(428, -100, b"/usr", 1))
attempt("mount.setattr", lambda: call(442, -100, b"/tmp", 0, ctypes.c_char_p(struct.pack("4Q", 1, 0, 0, 0)), 32))
attempt("pivot_root", lambda: libc.pivot_root(b"/tmp/nested", b"/tmp/nested/a") == 0)
attempt("socket.packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
attempt("socket.raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("netlink.netfilter", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12))
attempt("netlink.xfrm", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 6))
attempt("netlink.generic", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 16))
attempt("sethostname", lambda: libc.sethostname(b"nested", 6) == 0)
attempt("add_key", lambda: call(248, b"user", b"nested", b"x", 1, -2))
attempt("handle", lambda: call(303, -100, b"/usr", ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + b"\0" * 128),
                               ctypes.byref(ctypes.c_int()), 0))

def read(path):
    with open(path, "rb") as file:
        return file.read(1)

for path in sys.argv[1:]:
    attempt(f"read {os.path.basename(path)}", lambda: read(path))
attempt("write.usr", lambda: open("/usr/nested", "w"))
attempt("write.sys", lambda: open("/proc/sys/kernel/hostname", "w").write("x"))
attempt("chmod.suid", lambda: (open("suid", "w").close(), os.chmod("suid", 0o4755)))
CAPABLE = struct.pack("<5I", 0x2000001, 1, 0, 0, 0)
attempt("xattr.capability", lambda: os.setxattr("suid", "security.capability", CAPABLE) is None)
def second():
    os.chroot("/tmp")
    return os.path.exists("/usr") or read(sys.argv[1])
attempt("chroot.out", second)
print(json.dumps(got))
"""

# What the machine of a test need not let through outside, and is still tried inside.
NOT_EVERYWHERE = {"mount.overlay", "mount.umount", "mount.remount", "mount.setattr", "pivot_root", "write.usr",
                  "write.sys", "chroot.out", "netlink.xfrm", "read shadow", "xattr.capability"}
# Harmless, or the point of it.
GRANTED = {"namespaces", "capabilities"}


@pytest.fixture
def place(sandbox):
    sandbox.write(sandbox.project / "masked.txt", "masked\n")
    sandbox.write(sandbox.home / "hidden.txt", "hidden\n")
    return sandbox


def words(place):
    return [PYTHON, "-c", ATTEMPTS, place.project / "masked.txt", place.home / "hidden.txt", "/etc/shadow"]


@pytest.mark.only("user")
def test_a_namespace_of_its_own_opens_nothing(place):
    outside = place.run_outside(words(place))
    assert outside.code == 0, outside
    control = json.loads(outside.out)
    missing = {name for name, through in control.items() if not through} - NOT_EVERYWHERE
    assert not missing, f"the attempt proves nothing here: {missing}"
    (place.project / "suid").unlink()
    done = place.run(words(place), policy=place.policy(POLICY))
    assert done.code == 0, done
    through = {name for name, was in json.loads(done.out).items() if was}
    assert through == GRANTED, through - GRANTED
    assert not (place.project / "suid").exists()


@pytest.mark.only("user")
def test_without_the_word_there_is_no_namespace(place):
    done = place.run(words(place), policy=place.policy(POLICY.replace("exec: {namespaces: true}\n", "")))
    assert done.code != 0 and "PermissionError" in done.err, done
