# SPDX-License-Identifier: Apache-2.0
"""A random sequence of file operations, the same for the same seed, on the working directory; then the state of it.

Sent to Python inside a sandbox (after tree_state.py) and run on a plain copy outside: operations.py SEED COUNT.
Whatever fails, fails on both sides in the same way: the outcome of every operation is part of the result.
"""
import errno
import json
import os
import random
import shutil
import stat
import sys

from tree_state import tree_state  # inside: defined above, and this line is taken out

NAMES = ("a", "b", "c", "d.txt", "e", "with space", "new\nline", "\udcff\udcfe", "esc\033[31m", "ü", "." + "x" * 60)


class Operations:
    """Each method is one operation; it draws what it needs from self.random before it touches anything."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.number = 0

    # Choices. What exists is listed in sorted order, so that both sides draw the same.
    def entries(self, want):
        found = []
        for directory, directories, files in os.walk("."):
            directories[:] = sorted(name for name in directories if not self.is_left_alone(directory, name))
            for name in sorted(directories + files):
                path = os.path.join(directory, name)
                if not self.is_left_alone(directory, name) and want(os.lstat(path)):
                    found.append(path)
        return sorted(found, key=os.fsencode)

    @staticmethod
    def is_left_alone(directory, name):
        return name == ".git"

    def pick(self, want=lambda status: True):
        found = self.entries(want)
        return self.random.choice(found) if found else "./nothing"

    def file(self):
        return self.pick(lambda status: stat.S_ISREG(status.st_mode))

    def directory(self):
        found = [".", *self.entries(lambda status: stat.S_ISDIR(status.st_mode))]
        return self.random.choice(found)

    def new(self):
        return os.path.join(self.directory(), self.random.choice(NAMES))

    def bytes(self):
        return self.random.randbytes(self.random.choice((0, 1, 100, 5000, 70000)))

    # Operations.
    def create(self):
        path, content = self.new(), self.bytes()
        with open(path, "xb") as file:
            file.write(content)

    def write(self):
        path, content = self.file(), self.bytes()
        with open(path, "r+b") as file:
            file.write(content)

    def append(self):
        path, content = self.file(), self.bytes()
        with open(path, "ab") as file:
            file.write(content)

    def truncate(self):
        path, size = self.file(), self.random.choice((0, 1, 4096, 1 << 20))
        os.truncate(path, size)

    def rename(self):
        source, target = self.pick(), self.new()
        if are_linked(source, target):
            return
        try:
            os.rename(source, target)
        except OSError as error:
            # A directory that has something below it in the overlay: the caller copies, as mv does.
            if error.errno != errno.EXDEV:
                raise
            move(source, target)

    def exchange(self):
        source, target = self.file(), self.file()
        if are_linked(source, target):
            return
        os.rename(source, target)

    def link(self):
        """Of a new file: a file below that gets a second name is two inodes with stale attributes in an overlay."""
        source, target, content = self.new(), self.new(), self.bytes()
        with open(source, "xb") as file:
            file.write(content)
        os.link(source, target)

    def symlink(self):
        target, path = self.random.choice(("a", "../..", "/etc/passwd", "missing", "\udcff")), self.new()
        os.symlink(target, path)

    def unlink(self):
        os.unlink(self.file())

    def unlink_link(self):
        os.unlink(self.pick(lambda status: stat.S_ISLNK(status.st_mode)))

    def mkdir(self):
        os.mkdir(self.new())

    def rmdir(self):
        path = self.pick(lambda status: stat.S_ISDIR(status.st_mode))
        os.rmdir(path)

    def remove_tree(self):
        path = self.pick(lambda status: stat.S_ISDIR(status.st_mode))
        if self.random.random() < 0.5:
            shutil.rmtree(path)

    def chmod(self):
        path, mode = self.file(), self.random.choice((0o600, 0o644, 0o755, 0o400, 0o444))
        os.chmod(path, mode)

    def chmod_directory(self):
        path = self.pick(lambda status: stat.S_ISDIR(status.st_mode))
        os.chmod(path, self.random.choice((0o700, 0o755, 0o750)))

    def utime(self):
        path, when = self.file(), self.random.randrange(10 ** 18)
        os.utime(path, ns=(when, when))

    def xattr(self):
        path, name = self.file(), "user." + self.random.choice(("one", "two", "mime_type"))
        os.setxattr(path, name, self.random.randbytes(20))

    def remove_xattr(self):
        path = self.file()
        for name in os.listxattr(path):
            os.removexattr(path, name)

    def xattr_directory(self):
        path = self.pick(lambda status: stat.S_ISDIR(status.st_mode))
        os.setxattr(path, "user." + self.random.choice(("one", "two")), self.random.randbytes(20))

    def remove_xattr_directory(self):
        path = self.pick(lambda status: stat.S_ISDIR(status.st_mode))
        for name in os.listxattr(path):
            os.removexattr(path, name)

    def rename_and_edit(self):
        """In place, so that the file stays the one that was copied up, under another name."""
        source, target, content = self.file(), self.new(), self.bytes()
        if are_linked(source, target) or os.path.isdir(target):
            return
        os.rename(source, target)
        with open(target, "ab") as file:
            file.write(content)

    def directory_for_file(self):
        path = self.file()
        os.unlink(path)
        os.mkdir(path)
        with open(os.path.join(path, "inner"), "wb") as file:
            file.write(b"inner\n")

    def file_for_directory(self):
        path, content = self.pick(lambda status: stat.S_ISDIR(status.st_mode)), self.bytes()
        shutil.rmtree(path)
        with open(path, "wb") as file:
            file.write(content)

    def link_for_directory(self):
        path = self.pick(lambda status: stat.S_ISDIR(status.st_mode))
        if self.random.random() < 0.3:
            shutil.rmtree(path)
            os.symlink("/", path)

    def sparse(self):
        path = self.new()
        with open(path, "xb") as file:
            file.seek(1 << 20)
            file.write(b"end")

    def atomic_write(self):
        """What editors do."""
        path, content = self.file(), self.bytes()
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        with open(path + "~", "wb") as file:
            file.write(content)
        os.chmod(path + "~", mode)
        os.rename(path + "~", path)

    ALL = ("create", "create", "write", "append", "truncate", "rename", "rename", "exchange", "link", "symlink",
           "unlink", "unlink_link",
           "mkdir", "rmdir", "remove_tree", "chmod", "chmod_directory", "utime", "xattr", "remove_xattr",
           "xattr_directory", "remove_xattr_directory", "rename_and_edit", "rename_and_edit",
           "directory_for_file", "file_for_directory", "link_for_directory", "sparse", "atomic_write")

    def once(self):
        name = self.random.choice(self.ALL)
        # Drawn apart: an operation that draws more on one side than on the other does not shift the rest.
        state = self.random.getrandbits(64)
        self.random, kept = random.Random(state), self.random
        try:
            getattr(self, name)()
            outcome = 0
        except OSError as error:
            outcome = error.errno
        self.random = kept
        return f"{name} {outcome}"


def are_linked(one, other):
    """Two names of one file, perhaps: an overlay may say ESTALE where rename(2) has nothing to do."""
    return all(os.path.lexists(path) and os.lstat(path).st_nlink > 1 and not stat.S_ISDIR(os.lstat(path).st_mode)
               for path in (one, other))


def move(source, target):
    """As rename(2) would have left it: the same files, modes and hard links. Files can be renamed, so they are."""
    if os.path.lexists(target):
        os.rmdir(target)     # rename(2) of a directory replaces an empty one
    os.mkdir(target)
    for name in sorted(os.listdir(source)):
        old, new = os.path.join(source, name), os.path.join(target, name)
        if stat.S_ISDIR(os.lstat(old).st_mode):
            move(old, new)
        else:
            os.rename(old, new)
    shutil.copystat(source, target)
    os.rmdir(source)


def run(seed, count):
    operations = Operations(seed)
    return [operations.once() for _ in range(count)]


if __name__ == "__main__":
    os.umask(0o022)
    print(json.dumps({"outcomes": run(int(sys.argv[1]), int(sys.argv[2])), "state": tree_state(".")}))
