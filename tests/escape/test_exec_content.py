# SPDX-License-Identifier: Apache-2.0
"""A program is judged by its content: what somebody does to that content meanwhile neither passes for another program
nor holds up the judge. Each attack first works where nothing judges."""
import os

import pytest

from loop import Loop

PYTHON = "/usr/bin/python3"
# Nothing else looks at the programs.
MEDIUM = """
atoll: 1
extends: medium
verify: {low: off, medium: off, high: off, critical: off, contained: off, unknown: off}
"""

# A copy of a listed program in an overlay, mapped shared by a descriptor that is closed: the kernel executes it all
# the same, and pages that are dirty already change without its change time.
MAPPED = r"""
import ctypes, os, shutil, subprocess, time
def run(*words):
    try: done = subprocess.run(words, capture_output=True)
    except OSError as error: return error.__class__.__name__
    return "id" if b"uid=" in done.stdout else "find" if b"find" in done.stdout else "killed"
libc = ctypes.CDLL(None); libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
shutil.copy("/usr/bin/find", "tool"); os.chmod("tool", 0o755); evil = open("/usr/bin/id", "rb").read()
for attempt in range(12):
    # Where these pages are written back meanwhile, the change time moves once more: not so on a tmpfs.
    fd = os.open("tool", os.O_RDWR); size = os.fstat(fd).st_size
    memory = (ctypes.c_char * size).from_address(libc.mmap(None, size, 3, 1, fd, 0)); os.close(fd)
    good = open("/usr/bin/find", "rb").read()
    memory[:size] = good
    for at in range(0, size, 4096): memory[at] = memory[at]
    time.sleep(1.1)
    before = os.stat("tool").st_ctime_ns; first = run("./tool", "--version")
    memory[:len(evil)] = evil
    is_hidden = os.stat("tool").st_ctime_ns == before
    second = run("./tool")
    libc.munmap(ctypes.c_void_p(ctypes.addressof(memory)), ctypes.c_size_t(size))
    if is_hidden: break
print(run("/usr/bin/id"), first, is_hidden, second)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system for the layers")
def test_what_is_mapped_does_not_pass_for_what_it_was(sandbox):
    with Loop("tmpfs", sandbox.base / "disk", sandbox.identity) as disk:
        sandbox.state = sandbox.make_directory(disk / "state")
        control = sandbox.run([PYTHON, "-c", MAPPED], policy=sandbox.policy(MEDIUM, "plain.yaml"))
        assert control.out.split() == ["id", "find", "True", "id"], control
        policy = sandbox.policy(f"{MEDIUM}exec: {{default: deny, allow: [/usr/bin/python3, /usr/bin/find]}}\n")
        done = sandbox.run([PYTHON, "-c", MAPPED], policy=policy)
        assert done.out.split() == ["PermissionError", "find", "True", "PermissionError"], done


# A file of the size of a denied program, which somebody makes 16 GiB of nothing as soon as the judge looks at it, and
# leaves so as long as the judge reads.
GROWN = r"""
import ctypes, mmap, os, signal, time
size = os.stat("/usr/bin/id").st_size; os.chdir(os.environ.get("TMPDIR", "/tmp"))
open("x", "wb").write(b"\x7fELF" + b"\1" * (size - 4)); os.chmod("x", 0o755)
libc = ctypes.CDLL(None); attempt = mmap.mmap(-1, 4096)
grower = os.fork()
if not grower:
    fd = os.open("x", os.O_RDWR); last, delay = None, 0
    while True:
        if attempt[:8] == last: time.sleep(0.0005); continue
        last = attempt[:8]; os.ftruncate(fd, size); delay = (delay + 7) % 400
        for _ in range(delay): pass
        os.ftruncate(fd, 16 << 30)
argv = (ctypes.c_char_p * 2)(b"x", None); worst, count, until = 0, 0, time.monotonic() + 3
while time.monotonic() < until:
    count += 1; attempt[:8] = count.to_bytes(8, "little")
    begun = time.monotonic(); libc.execve(b"./x", argv, None); worst = max(worst, time.monotonic() - begun)
os.kill(grower, signal.SIGKILL)
print(count > 20, round(worst))
"""


def test_what_grows_meanwhile_does_not_hold_up_the_judge(sandbox):
    control = sandbox.run([PYTHON, "-c", GROWN], policy=sandbox.policy(MEDIUM, "plain.yaml"))
    assert control.out.split()[0] == "True", control
    policy = sandbox.policy(f'{MEDIUM}exec: {{deny: ["**/id"]}}\n')
    done = sandbox.run([PYTHON, "-c", GROWN], policy=policy, timeout=30)
    count, worst = done.out.split()
    assert count == "True" and int(worst) < 5, done
