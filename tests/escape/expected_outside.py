# SPDX-License-Identifier: Apache-2.0
"""The positive control's table: which attempts of atoll-probe do not get through outside either, and why.

Whatever is not named here must break through outside. Names may be patterns of fnmatch.
"""
import fnmatch

# The thing that is attacked is not on every machine; the note says so.
ABSENT = {
    "ENOENT": ("device/*", "socket.*", "runtime-directory", "read/*", "write/*", "system/*", "link/*", "cgroup.*"),
    "ENOTDIR": ("device/*", "socket.*"),
    "ECONNREFUSED": ("socket.*",),
    "ENXIO": ("device/*",), "ENODEV": ("socket-family.*", "device/*", "vsock.*"),
    "EIO": ("write/sys/*", "read/*"),
    "ENOSYS": ("kexec*", "*_module", "iopl", "ioperm", "lookup_dcookie", "nfsservctl", "uselib", "_sysctl", "sysfs",
    "modify_ldt",
               "x32.*", "int80.*", "compat.*", "userfaultfd*", "io_uring.*", "bpf.*", "perf.*", "acct", "quotactl*",
               "swap*",
               "fanotify_init", "move_pages", "migrate_pages", "*setxattrat", "*file_setattr", "*fchmodat2",
               "open_tree_attr",
               "lsm_set_self_attr", "keyctl.*", "add_key", "request_key", "kcmp.*", "vhangup"),
    "EAFNOSUPPORT": ("socket-family.*", "vsock.*"),
    "EPROTONOSUPPORT": ("socket-family.*",), "ESOCKTNOSUPPORT": ("socket-family.*",),
    "EINVAL": ("socket-family.dccp",),
    "EOPNOTSUPP": ("readonly.*", "hidden.*"),
    # SIGILL: AMD's processors have no SYSENTER below a 64-bit kernel.
    "ended with -4": ("compat.sysenter",),
}

ALWAYS = {
    "PID 1 of the host is not the identity's own process": (
        "*/proc/1/*", "read//proc/./1/*", "*.init", "proc.init.exe", "setns.init-*"),
    "only a sandbox of atoll has it": ("inside/*",),
    "it looks at a state that a plain process does not have": (
        "status.cap-inheritable", "status.cap-ambient", "mount.propagation", "tty.foreign", "tty.others",
        "speculation.*"),
    "needs a capability that root in a container or a virtual machine may lack": ("rlimit.*", "device/dev/*"),
    "the kernel asks for membership of a group": ("socket-family.icmp*",),
    "settings of the kernel that differ between machines": (
        "write/proc/sys/user/max_user_namespaces", "perf.*", "io_uring.*", "userfaultfd*", "bpf.*", "tty.sti*",
        "unshare.user*",
        "clone.user*", "clone3.user*", "read/proc/*"),
    "planted for the ordinary user alone, whose uid nobody shares": ("runtime-directory", "socket.*"),
}

NEEDS_ROOT = (
    "acct", "ambient", "bind.privileged", "bpf.*", "capset", "cgroup.mkdir", "chroot.*", "clone.mount", "clone.net",
    "device.make-name", "device/*", "exec.run", "fanotify_init", "fsmount", "fsopen.*", "fspick", "handle.guessed",
    "interfaces.change", "mark.*setxattr", "mknod.*", "mount.unknown-type", "mount_setattr*", "move_mount",
    "move_pages",
    "open_tree.clone*", "pivot_root", "process_madvise.host", "read/proc/*", "reboot", "secret.handle", "securebits",
    "setfsuid", "setgid.*", "setgroups", "sethostname", "setns.*", "setuid.*", "socket-family.old-packet",
    "socket-family.packet*", "socket-family.raw*", "socket-family.xdp", "status.cap-*", "swapo*", "syslog.read",
    "system/etc/gshadow", "system/etc/shadow*", "system/root/*", "system/etc/sudoers", "tty.cons", "unshare.*",
    "vhangup",
    "write/*", "open_tree_attr", "readonly.inode-flags", "hidden.inode-flags",
)


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def reason(name, note, is_root):
    """Why this attempt may fail outside, or None when it has to succeed."""
    for why, patterns in ALWAYS.items():
        if matches(name, patterns):
            return why
    for errno, patterns in ABSENT.items():
        if errno in note and matches(name, patterns):
            return f"not on this machine ({errno})"
    if not is_root and matches(name, NEEDS_ROOT):
        return "needs root"
    return None
