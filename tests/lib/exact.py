# SPDX-License-Identifier: Apache-2.0
"""What a tree looks like to the byte, for comparing before and after."""
import os
import stat


def describe(top):
    """{path: what can be told about it} of a tree, the top itself included."""
    found, links = {}, {}
    top = os.fsencode(top)
    for directory, directories, files in os.walk(top):
        directories.sort()
        files.sort()
        for name in [b"", *directories, *files] if directory == top else [*directories, *files]:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            kind = stat.S_IFMT(status.st_mode)
            content = None
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            attributes = {key: os.getxattr(path, key, follow_symlinks=False)
                          for key in os.listxattr(path, follow_symlinks=False) if key.startswith("user.")}
            shown = os.path.relpath(path, top)
            first = None
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                first = links.setdefault(status.st_ino, shown)
            found[shown] = (kind, status.st_mode, status.st_mtime_ns, content, attributes, status.st_uid,
                            status.st_gid, first)
    return found


def without_times(described):
    return {path: value[:2] + value[3:] for path, value in described.items()}


def difference(one, other):
    """The paths that differ, with what differs of them, for a failing test."""
    found = {}
    for path in sorted({*one, *other}):
        a, b = one.get(path), other.get(path)
        if a and b and a != b:
            found[path] = [(x, y) for x, y in zip(a, b) if x != y]
        elif a != b:
            found[path] = "only before" if a else "only now"
    return found
