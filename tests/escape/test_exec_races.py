# SPDX-License-Identifier: Apache-2.0
"""What a program can do in the moments in which another one's start is judged, held, and let go."""
import json

import pytest

PYTHON = "/usr/bin/python3"
RULES = "atoll: 1\nextends: medium\nexec: {deny: [\"**/id\"], namespaces: %s}\n"

# An exec that is let through and fails comes back to its program while the supervisor still traces it.
TRACED_CHILD = r"""
import ctypes, json, os, time
libc = ctypes.CDLL(None, use_errno=True)
EXECVE, CLONE = (59, 56) if os.uname().machine == "x86_64" else (221, 220)
CLONE_PTRACE, SIGCHLD = 0x2000, 17
program = (ctypes.c_char_p * 2)(b"true", None)
result = {"stuck": 0, "errno": []}
for _ in range(20):
    libc.syscall(EXECVE, b"/usr/bin/true", program, ctypes.c_void_p(8))
    pid = libc.syscall(CLONE, CLONE_PTRACE | SIGCHLD, 0, 0, 0, 0)
    if not pid:
        os._exit(7)
    if pid < 0:
        result["errno"].append(ctypes.get_errno())
        continue
    end = time.monotonic() + 3
    while not (done := os.waitpid(pid, os.WNOHANG)[0]) and time.monotonic() < end:
        time.sleep(0.001)
    result["stuck"] += not done
    if not done:
        break
print(json.dumps(result))
"""


@pytest.mark.parametrize("nested", [False, True])
def test_no_child_inherits_the_supervisor_as_its_tracer(sandbox, nested):
    """It would stop for a tracer that does not know it, and the sandbox would never end."""
    outside = sandbox.run_outside([PYTHON, "-c", TRACED_CHILD])
    assert json.loads(outside.out) == {"stuck": 0, "errno": []}, outside
    policy = sandbox.policy(RULES % str(nested).lower())
    done = sandbox.run([PYTHON, "-c", TRACED_CHILD], policy=policy, timeout=30)
    assert json.loads(done.out) == {"stuck": 0, "errno": [1] * 20}, done
