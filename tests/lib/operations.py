# SPDX-License-Identifier: Apache-2.0
"""Random sequences of file operations, the same for the same seed, each in a directory of its own: sSEED below the
working directory; then the state of them.

Sent to Python inside a sandbox (after tree_state.py) and run on a plain copy outside: operations.py KIND COUNT SEED…
KIND: `inside`, what an agent does, or `host`, what its person does meanwhile. Whatever fails, fails on both sides in
the same way: the outcome of every operation is part of the result.
"""
import errno
import json
import os
import random
import stat
import sys

from tree_state import tree_state  # inside: defined above, and this line is taken out

NAMES = ("a", "b", "c", "d.txt", "e", "with space", "new\nline", "\udcff\udcfe", "esc\033[31m", "ü", "." + "x" * 60)


class Operations:
    """Each method is one operation; it draws what it needs from self.random before it touches anything."""

    def __init__(self, kind, seed):
        self.random = random.Random(f"{kind} {seed}")
        self.names = self.HOST if kind == "host" else self.INSIDE

    # Choices. What exists is listed in sorted order, so that both sides draw the same.
    def entries(self, want):
        found, places = [], ["."]
        for place in places:
            for name in listed(place):
                path = f"{place}/{name}"
                status = os.lstat(path)
                if want(status):
                    found.append(path)
                if stat.S_ISDIR(status.st_mode):
                    places.append(path)
        return sorted(found, key=os.fsencode)

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
        if are_linked(source, target) or has_closed(source):
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
            remove(path)

    def chmod(self):
        path, mode = self.file(), self.random.choice((0o600, 0o644, 0o755, 0o400, 0o444, 0))
        os.chmod(path, mode)

    def chmod_directory(self):
        path = self.pick(lambda status: stat.S_ISDIR(status.st_mode))
        os.chmod(path, self.random.choice((0o700, 0o755, 0o750, 0o555)))

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
        remove(path)
        with open(path, "wb") as file:
            file.write(content)

    def link_for_directory(self):
        path = self.pick(lambda status: stat.S_ISDIR(status.st_mode))
        if self.random.random() < 0.3:
            remove(path)
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

    # Of the host alone: what looks as if nothing had changed.
    def write_and_set_times(self):
        """The same inode, size and mtime."""
        path = self.file()
        status = os.lstat(path)
        with open(path, "r+b") as file:
            file.write(self.random.randbytes(min(status.st_size, 50)))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def rename_over(self):
        """Another file of the same size and mtime."""
        path, target = self.file(), self.file()
        if are_linked(path, target):
            return
        status = os.lstat(target)
        os.truncate(path, status.st_size)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.rename(path, target)

    def move_over(self):
        """Another directory, whose files are as old as those of the first; something may come into it."""
        source, target, chance = self.inner_directory(), self.inner_directory(), self.random.random()
        if (source + "/").startswith(target + "/") or (target + "/").startswith(source + "/"):
            return
        remove(target)
        os.rename(source, target)
        self.disturb(target, chance)

    def swap(self):
        source, target, chance = self.inner_directory(), self.inner_directory(), self.random.random()
        if (source + "/").startswith(target + "/") or (target + "/").startswith(source + "/"):
            return
        os.rename(source, "swapped")
        os.rename(target, source)
        os.rename("swapped", target)
        self.disturb(target, chance)

    def inner_directory(self):
        return self.pick(lambda status: stat.S_ISDIR(status.st_mode))

    def disturb(self, path, chance):
        status = os.lstat(path)
        if chance < 0.6:
            with open(path + "/disturbed", "w", encoding="ascii") as file:
                file.write("host\n")
        if chance < 0.3:
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    BOTH = ("create", "create", "write", "append", "truncate", "rename", "rename", "link", "symlink", "unlink",
            "unlink_link", "mkdir", "rmdir", "remove_tree", "chmod", "chmod_directory", "utime", "xattr",
            "remove_xattr", "xattr_directory", "remove_xattr_directory", "directory_for_file", "file_for_directory",
            "sparse", "atomic_write")
    INSIDE = (*BOTH, "exchange", "rename_and_edit", "rename_and_edit", "link_for_directory")
    HOST = (*BOTH, "write_and_set_times", "rename_over", "move_over", "move_over", "swap")

    def once(self):
        name = self.random.choice(self.names)
        # Drawn apart: an operation that draws more on one side than on the other does not shift the rest.
        state = self.random.getrandbits(64)
        self.random, kept = random.Random(state), self.random
        try:
            getattr(self, name)()
            outcome = 0
        except OSError as error:
            # One file system says that a name is there, another that the directory is not empty.
            outcome = errno.EEXIST if error.errno == errno.ENOTEMPTY else error.errno
        self.random = kept
        return f"{name} {outcome}"


def are_linked(one, other):
    """Two names of one file, perhaps: an overlay may say ESTALE where rename(2) has nothing to do."""
    return all(os.path.lexists(path) and os.lstat(path).st_nlink > 1 and not stat.S_ISDIR(os.lstat(path).st_mode)
               for path in (one, other))


def has_closed(path):
    """A directory that its owner may not write, somewhere in it: it can be renamed along, but not copied."""
    return any(not os.lstat(place).st_mode & stat.S_IWUSR for place, _, _ in os.walk(path))


def listed(place):
    """Sorted; nothing where the directory may not be read, and nothing that an overlay lists and does not have."""
    try:
        return [name for name in sorted(os.listdir(place)) if os.path.lexists(f"{place}/{name}")]
    except OSError:
        return []


def remove(path):
    """rm -r in a fixed order, so that what stops it leaves the same on both sides."""
    for name in sorted(os.listdir(path)):
        inner = os.path.join(path, name)
        if stat.S_ISDIR(os.lstat(inner).st_mode):
            remove(inner)
        else:
            os.unlink(inner)
    os.rmdir(path)


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
    status = os.lstat(source)
    for name in os.listxattr(source):
        os.setxattr(target, name, os.getxattr(source, name))
    os.chmod(target, stat.S_IMODE(status.st_mode))
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.rmdir(source)


def run(kind, count, seeds):
    """{directory: outcomes}"""
    outcomes, home = {}, os.getcwd()
    for seed in seeds:
        os.chdir(f"s{seed}")
        operations = Operations(kind, seed)
        outcomes[f"s{seed}"] = [operations.once() for _ in range(count)]
        os.chdir(home)
    return outcomes


def states(seeds):
    """Only of those that were at work: a look at an unreadable file writes to it, which parts names in a layer."""
    found = {}
    for seed in seeds:
        for path, entry in tree_state(f"s{seed}").items():
            name = f"s{seed}" if path == "." else f"s{seed}/{path}"
            found[name] = [*entry[:-1], " = ".join(f"s{seed}/{other}" for other in entry[-1].split(" = ") if other)]
    return found


if __name__ == "__main__":
    os.umask(0o022)
    print(json.dumps({"outcomes": run(sys.argv[1], int(sys.argv[2]), sys.argv[3:]), "state": states(sys.argv[3:])}))
