# SPDX-License-Identifier: Apache-2.0
"""What a tree looks like, exactly: names as bytes, types, modes, owners, times in ns, content, xattrs, hard links.

Also runs inside a sandbox (the tests send this source through standard input), so it needs nothing but Python.
"""
import contextlib
import hashlib
import json
import os
import stat
import sys

XATTR_LEFT_OUT = ("security.", "system.")


@contextlib.contextmanager
def readable(name, parent, status):
    """An owner may have taken his own right to read away; it is there for the moment of the look only."""
    is_own = status.st_uid == os.geteuid() != 0
    is_closed = is_own and stat.S_ISREG(status.st_mode) and not status.st_mode & stat.S_IRUSR
    if is_closed:
        os.chmod(name, stat.S_IMODE(status.st_mode) | stat.S_IRUSR, dir_fd=parent)
    try:
        yield
    finally:
        if is_closed:
            os.chmod(name, stat.S_IMODE(status.st_mode), dir_fd=parent)


def content_of(name, parent, status):
    """What the file holds, as text that is equal only for equal content."""
    if stat.S_ISLNK(status.st_mode):
        return "-> " + os.fsdecode(os.readlink(name, dir_fd=parent))
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        return f"device {os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    if not stat.S_ISREG(status.st_mode):
        return ""
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NOATIME * (os.geteuid() == 0), dir_fd=parent)
    try:
        digest = hashlib.sha256()
        while block := os.read(fd, 1 << 20):
            digest.update(block)
        return digest.hexdigest()
    finally:
        os.close(fd)


def xattrs_of(path, is_link):
    """Symbolic links cannot have user xattrs. A path of /proc/self/fd, so that no name is followed."""
    if is_link:
        return []
    try:
        return sorted([name, os.getxattr(path, name).hex()] for name in os.listxattr(path)
                      if not name.startswith(XATTR_LEFT_OUT))
    except OSError:
        return []


class Walk:
    def __init__(self, left_out=()):
        self.seen, self.links, self.left_out = {}, {}, set(left_out)

    def add(self, path, name, parent):
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode) and status.st_nlink > 1:
            self.links.setdefault((status.st_dev, status.st_ino), []).append(path)
        with readable(name, parent, status):
            content = content_of(name, parent, status)
            xattrs = xattrs_of(f"/proc/self/fd/{parent}/{os.fsdecode(name)}", stat.S_ISLNK(status.st_mode))
        self.seen[path] = [oct(status.st_mode), status.st_uid, status.st_gid, status.st_mtime_ns, content, xattrs, ""]
        return stat.S_ISDIR(status.st_mode)

    @staticmethod
    def exists(name, parent):
        """An overlay lists whiteouts in a directory that only its top layer has, and finds nothing there."""
        try:
            os.stat(name, dir_fd=parent, follow_symlinks=False)
            return True
        except FileNotFoundError:
            return False

    def directory(self, prefix, fd):
        for name in sorted(os.listdir(fd)):
            path = f"{prefix}{name}"
            if path in self.left_out or not self.exists(name, fd) or not self.add(path, name, fd):
                continue
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
            try:
                self.directory(path + "/", inner)
            finally:
                os.close(inner)

    def finish(self):
        for paths in self.links.values():
            for path in paths:
                self.seen[path][6] = " = ".join(sorted(paths)) if len(paths) > 1 else ""
        return self.seen


def tree_state(root, left_out=()):
    """{relative path: [mode, uid, gid, mtime ns, content, xattrs, hard links]}; undecodable bytes as surrogates.
    "." is the root itself. left_out: relative paths that are not looked at."""
    walk = Walk(left_out)
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        walk.add(".", ".", fd)
        walk.directory("", fd)
    finally:
        os.close(fd)
    return walk.finish()


MODE, UID, GID, MTIME, CONTENT, XATTRS, LINKS = range(7)


def without(state, *fields, of_directories=()):
    """A copy in which these fields are not compared; of_directories: those of directories alone."""
    made = {}
    for path, entry in state.items():
        left_out = set(fields)
        if entry[MODE].startswith("0o4"):
            left_out.update(of_directories)
        made[path] = [None if i in left_out else value for i, value in enumerate(entry)]
    return made


def differences(one, other, limit=12):
    """Lines for people: what differs between two states."""
    lines = []
    for path in sorted(set(one) | set(other)):
        if one.get(path) != other.get(path):
            lines.append(f"{path!r}: {one.get(path)} | {other.get(path)}")
    return lines[:limit] + ([f"… {len(lines)} in all"] if len(lines) > limit else [])


if __name__ == "__main__" and len(sys.argv) > 1 and sys.argv[1] == "--state":
    print(json.dumps(tree_state(sys.argv[2])))
