# SPDX-License-Identifier: Apache-2.0
"""Generated layers against the kernel: what `apply` makes of an upper layer is what the overlay of the kernel shows of
it. Seeds: tests/lib/seeds.py."""
import os
import random
import stat
import subprocess

import pytest

from seeds import seeds
from stage import Staged
from tree_state import GID, LINKS, MTIME, UID, differences, tree_state, without

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="whiteouts and mounts of an overlay need root")

NAMES = ("a", "b", "c", "d", "new\nline", "\udcff", "-x")


class Generator:
    """Random trees: plain ones for the host, and such as only hostile hands would make for a layer."""

    def __init__(self, seed, owner):
        self.random, self.owner = random.Random(seed), owner

    def own(self, path):
        os.chown(path, *self.owner, follow_symlinks=False)

    def file(self, path):
        with open(path, "wb") as file:
            file.write(self.random.randbytes(self.random.choice((0, 3, 5000))))
        os.chmod(path, self.random.choice((0o644, 0o600, 0o755)))
        if self.random.random() < 0.2:
            os.setxattr(path, "user.mark", b"x")
        when = self.random.randrange(10 ** 18)
        os.utime(path, ns=(when, when))

    def link(self, path):
        os.symlink(self.random.choice(("/etc", "a", "../../..", "missing")), path)

    def whiteout(self, path):
        os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))

    def hard(self, path):
        if not self.files:
            return self.file(path)
        return os.link(self.random.choice(self.files), path)

    def fill(self, place, depth, is_layer):
        for name in self.random.sample(NAMES, self.random.randrange(len(NAMES) + 1)):
            path = os.path.join(place, name)
            kinds = [self.file, self.file, self.link] + ([self.whiteout, self.whiteout, self.hard] if is_layer else [])
            if depth and self.random.random() < 0.5:
                os.mkdir(path, self.random.choice((0o755, 0o700)))
                if is_layer and self.random.random() < 0.3:
                    os.setxattr(path, "user.overlay.opaque", b"y")
                self.fill(path, depth - 1, is_layer)
            else:
                self.random.choice(kinds)(path)
                if os.path.isfile(path) and not os.path.islink(path):
                    self.files.append(path)
            self.own(path)

    def make(self, place, is_layer):
        self.files = []
        self.fill(place, 3, is_layer)


def merged_by_the_kernel(lower, upper, place):
    """The state of the overlay of both, mounted from copies: mounting writes into an upper."""
    for name in ("l", "u", "w", "m"):
        os.makedirs(place / name)
    subprocess.run(["cp", "-a", f"{lower}/.", place / "l"], check=True)
    subprocess.run(["cp", "-a", f"{upper}/.", place / "u"], check=True)
    options = f"userxattr,lowerdir={place}/l,upperdir={place}/u,workdir={place}/w"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, place / "m"], check=True)
    try:
        return tree_state(place / "m")
    finally:
        subprocess.run(["umount", place / "m"], check=True)


@pytest.mark.parametrize("seed", seeds(4))
def test_a_generated_layer_applies_as_the_kernel_shows_it(sandbox, seed):
    identity = sandbox.identity
    Generator(seed, (identity.uid, identity.gid)).make(str(sandbox.project), is_layer=False)
    staged = Staged(sandbox)
    staged.run("touch .seed")
    (staged.upper / ".seed").unlink()
    status = os.stat(staged.upper)
    Generator(seed + 1, (status.st_uid, status.st_gid)).make(str(staged.upper), is_layer=True)
    expected = merged_by_the_kernel(sandbox.project, staged.upper, sandbox.base / "kernel")
    before = staged.state()
    staged.apply()
    # The overlay shows attributes of the layer's own under no name; numbers of inodes and times of directories are
    # not what is compared here.
    left_out = (UID, GID, LINKS)
    expected = without(expected, *left_out, of_directories=(MTIME,))
    assert differences(expected, without(staged.state(), *left_out, of_directories=(MTIME,))) == []
    owners = {tuple(entry[UID:GID + 1]) for entry in staged.state().values()}
    assert owners == {(identity.uid, identity.gid)}
    assert staged.diff() == {}
    if differences(before, staged.state()):
        staged.undo()
    assert differences(before, staged.state()) == []
