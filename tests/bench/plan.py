# SPDX-License-Identifier: Apache-2.0
"""The mounts of atoll's default level, as every contender gets them.

They are read from /proc/self/mountinfo inside a real `atoll run`, so that the floor and the peers build the
same root that atoll builds today. Where atoll does not run, a written-down list stands in, and the output
says so.
"""
import os
import re
import shutil
import subprocess
from typing import NamedTuple

ATTRIBUTES = {"ro": "MOUNT_ATTR_RDONLY", "nosuid": "MOUNT_ATTR_NOSUID", "nodev": "MOUNT_ATTR_NODEV",
              "noexec": "MOUNT_ATTR_NOEXEC"}
SYSTEM_LINKS = ("bin", "lib", "lib32", "lib64", "sbin")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


class Mount(NamedTuple):
    kind: str            # bind, tmpfs, proc, devpts, mqueue, cover, link
    source: str          # host path, text of a link, or ""
    target: str          # absolute, inside
    options: tuple       # of ATTRIBUTES
    is_directory: bool


class Plan(NamedTuple):
    mounts: list
    landlock_rules: int
    filter_size: int
    is_measured: bool    # read from a real run; else the written-down list


def links():
    return [Mount("link", os.readlink("/" + name), "/" + name, (), False)
            for name in SYSTEM_LINKS if os.path.islink("/" + name)]


def written_down(project, home):
    safe = ("nosuid", "nodev")
    mounts = links()
    for path in ("/usr", "/etc"):
        mounts.append(Mount("bind", path, path, ("ro",) + safe, True))
    for path in ("/tmp", "/run", "/var", home):
        mounts.append(Mount("tmpfs", "", path, safe, True))
    mounts.append(Mount("tmpfs", "", "/dev", ("nosuid",), True))
    mounts += [Mount("bind", f"/dev/{name}", f"/dev/{name}", ("nosuid",), False) for name in DEVICES]
    mounts.append(Mount("devpts", "", "/dev/pts", ("nosuid", "noexec"), True))
    mounts.append(Mount("tmpfs", "", "/dev/shm", safe, True))
    mounts.append(Mount("proc", "", "/proc", safe + ("noexec",), True))
    mounts.append(Mount("bind", project, project, safe, True))
    return Plan(mounts, 16, 180, False)


def unescape(text):
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal.group(1), 8)), text)


def parse_mountinfo(text):
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        fields = left.split()
        if separator and len(fields) >= 6:
            yield {"device": fields[2], "root": unescape(fields[3]), "target": unescape(fields[4]),
                   "options": fields[5].split(","), "type": right.split()[0]}


def host_path(entry, host):
    """Where the host has what is mounted here, or None: a file system that only the sandbox has."""
    for mount in host:
        if mount["device"] != entry["device"]:
            continue
        below = mount["root"].rstrip("/")
        if entry["root"] != mount["root"] and not entry["root"].startswith(below + "/"):
            continue
        path = (mount["target"].rstrip("/") + entry["root"][len(below):]) or "/"
        if os.path.exists(path):
            return os.path.normpath(path)
    return None


def from_mountinfo(inside, outside):
    host = list(parse_mountinfo(outside))
    private, mounts = set(), links()
    for entry in parse_mountinfo(inside):
        options = tuple(option for option in entry["options"] if option in ATTRIBUTES)
        target = entry["target"]
        if target == "/":
            private.add(entry["device"])     # every contender's own root
            continue
        # A staged tree lies at its own path; the others bind it.
        source = target if entry["type"] == "overlay" else host_path(entry, host)
        if entry["type"] in ("proc", "devpts", "mqueue") and entry["root"] == "/":
            mounts.append(Mount(entry["type"], "", target, options, True))
        elif source is not None and entry["type"] != "proc":
            mounts.append(Mount("bind", source, target, options, os.path.isdir(source)))
        elif entry["type"] == "tmpfs" and entry["device"] not in private and entry["root"] == "/":
            private.add(entry["device"])
            mounts.append(Mount("tmpfs", "", target, options, True))
        elif not target.startswith("/proc/") or os.path.exists(target):
            mounts.append(Mount("cover", "", target, options, os.path.isdir(target)))
    # The list is by mount id, which says when a tree was made, not when it was attached: parents come first.
    return sorted(mounts, key=lambda mount: (mount.kind != "link", mount.target.split("/")))


def traced(argv, env, folder):
    """(Landlock rules, filter instructions) of one run as strace sees them; None where it cannot."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    trace = os.path.join(folder, "trace")
    subprocess.run([strace, "-f", "-o", trace, "-e", "trace=landlock_add_rule,seccomp", *argv], env=env,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    try:
        with open(trace, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    sizes = [int(size) for size in re.findall(r"SECCOMP_SET_MODE_FILTER.*?len=(\d+)", text)]
    rules = len(re.findall(r"landlock_add_rule\(.*= 0", text))
    return (rules, max(sizes)) if sizes else None


def of_atoll(atoll, project, home, env, folder):
    """The plan of a real run, or the written-down one."""
    run = subprocess.run([atoll, "run", "--", "/bin/cat", "/proc/self/mountinfo"], env=env, cwd=project,
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                         timeout=60) if os.access(atoll, os.X_OK) else None
    if run is None or run.returncode != 0 or " - " not in run.stdout:
        return written_down(project, home)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        mounts = from_mountinfo(run.stdout, file.read())
    seen = traced([atoll, "run", "--", "/bin/true"], env, folder)
    rules, size = seen or (sum(mount.kind in ("bind", "tmpfs") for mount in mounts), 180)
    return Plan(mounts, rules, size, True)


def quote(text):
    return '"' + "".join(c if 32 <= ord(c) < 127 and c not in '"\\' else "".join(f"\\{b:03o}" for b in c.encode())
                         for c in text) + '"'


def header(plan, project):
    rows = []
    for mount in plan.mounts:
        attributes = " | ".join(ATTRIBUTES[option] for option in mount.options) or "0"
        source = quote(mount.source) if mount.source else "NULL"
        rows.append(f"\t{{ {mount.kind.upper()}, {source}, {quote(mount.target[1:])}, {attributes}, "
                    f"{int(mount.is_directory)} }},\n")
    return ("static const struct plan_mount plan[] = {\n" + "".join(rows) + "};\n"
            f"#define FLOOR_PROJECT {quote(project)}\n"
            f"#define FLOOR_LANDLOCK_RULES {plan.landlock_rules}u\n"
            f"#define FLOOR_FILTER_SIZE {plan.filter_size}u\n")


def bwrap_arguments(plan, project):
    out = ["--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    for mount in plan.mounts:
        if mount.kind == "link":
            out += ["--symlink", mount.source, mount.target]
        elif mount.target.startswith("/dev/") or mount.kind in ("cover", "mqueue", "devpts"):
            continue
        elif mount.target == "/dev":
            out += ["--dev", "/dev"]
        elif mount.kind == "proc":
            out += ["--proc", mount.target]
        elif mount.kind == "tmpfs":
            out += ["--tmpfs", mount.target]
        else:
            out += ["--ro-bind" if "ro" in mount.options else "--bind", mount.source, mount.target]
    return out + ["--chdir", project]


def oci_config(plan, project, argv, uid, gid):
    """config.json of an OCI bundle with the same root; a user namespace only where the caller is no root."""
    mounts = []
    for mount in plan.mounts:
        if mount.kind == "link" or mount.target.startswith("/dev/") or mount.kind in ("cover", "mqueue", "devpts"):
            continue
        options = [option for option in mount.options if option in ("nosuid", "nodev", "noexec")]
        row = {"destination": mount.target, "type": mount.kind, "source": mount.kind, "options": options}
        if mount.kind == "bind":
            row["source"] = mount.source
            row["options"] = ["rbind", "ro" if "ro" in mount.options else "rw"] + options
        mounts.append(row)
    mounts.append({"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                   "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]})
    namespaces = [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup")]
    linux = {"namespaces": namespaces, "maskedPaths": ["/proc/kcore", "/proc/keys"], "readonlyPaths": ["/proc/sys"]}
    if uid != 0:
        namespaces.append({"type": "user"})
        linux["uidMappings"] = [{"containerID": 0, "hostID": uid, "size": 1}]
        linux["gidMappings"] = [{"containerID": 0, "hostID": gid, "size": 1}]
    return {"ociVersion": "1.0.2", "root": {"path": "rootfs", "readonly": True}, "hostname": "bench",
            "process": {"user": {"uid": 0, "gid": 0}, "args": argv, "cwd": project, "noNewPrivileges": True,
                        "env": ["PATH=/usr/bin:/bin"], "capabilities": {}},
            "mounts": mounts, "linux": linux}
