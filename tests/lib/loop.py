# SPDX-License-Identifier: Apache-2.0
"""File systems in loop images, mounted for one test."""
import os
import pathlib
import shutil
import subprocess
import time

import pytest

KINDS = {
    "ext4": (64, ["mkfs.ext4", "-q", "-F"]),
    "xfs": (320, ["mkfs.xfs", "-q", "-f"]),
    "btrfs": (128, ["mkfs.btrfs", "-q", "-f"]),
    "tmpfs": (64, None),
}

FILESYSTEMS = pathlib.Path("/proc/filesystems")


def has_kind(kind):
    return kind in FILESYSTEMS.read_text().split()


def need(kind):
    """Skips with the reason where this machine lacks the file system or its tool."""
    make = KINDS[kind][1]
    if make and shutil.which(make[0], path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
        pytest.skip(f"{make[0]} is not installed")
    if not has_kind(kind) and shutil.which("modprobe"):
        subprocess.run(["modprobe", kind], check=False, capture_output=True)
    if not has_kind(kind):
        pytest.skip(f"this kernel has no {kind}")


def unmount(place, seconds=4):
    """What supervises a sandbox may hold the place for a moment more. A mount that is left is named by the fixture."""
    end = time.monotonic() + seconds
    while subprocess.run(["umount", place], check=False, capture_output=True).returncode != 0:
        if time.monotonic() > end:
            break
        time.sleep(0.05)


class Loop:
    """A context: `place` is a directory of its owner on a file system of this kind."""

    def __init__(self, kind, place, owner, options=()):
        self.kind, self.place, self.owner, self.options = kind, place, owner, list(options)
        self.image = place.with_name(place.name + ".img")

    def __enter__(self):
        size, make = KINDS[self.kind]
        if make and not os.path.exists("/dev/loop-control"):
            pytest.skip("there are no loop devices here (/dev/loop-control)")
        self.place.mkdir(parents=True, exist_ok=True)
        if make:
            with open(self.image, "wb") as file:
                file.truncate(size << 20)
            self.call([*make, *self.options, self.image])
            self.call(["mount", "-o", "loop", self.image, self.place])
        else:
            self.call(["mount", "-t", "tmpfs", "-o", f"size={size}m,mode=755", "atolltest", self.place])
        os.chown(self.place, self.owner.uid, self.owner.gid)
        return self.place

    @staticmethod
    def call(words):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              check=False)
        if done.returncode != 0:
            raise OSError(f"{words[0]}: {done.stderr.strip()}")

    def __exit__(self, *_):
        unmount(self.place)
        if self.image.exists():
            self.image.unlink()
