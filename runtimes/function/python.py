# SPDX-License-Identifier: Apache-2.0
"""Runs one function of Python once: loads it, says that it is ready, and calls it with the event that comes then."""
import asyncio.coroutines
import importlib.util
import json
import os
import sys
import time
import traceback
import types


def fail(text):
    print(text, file=sys.stderr)
    leave(1)


def leave(status):
    """Nothing that the function left behind has a say in how this ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
    os._exit(status)


def load(entry):
    path, _, name = entry.rpartition(":")
    if not path or not name:
        fail("the entry point of a Python function is FILE:FUNCTION, such as main.py:handler")
    if not os.path.isfile(path):
        fail(f"the archive has no file {path}")
    sys.path.insert(0, os.getcwd())
    specification = importlib.util.spec_from_file_location("function", os.path.abspath(path))
    if specification is None:
        fail(f"{path} is no file of Python: its name ends in .py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["function"] = module
    specification.loader.exec_module(module)
    handler = getattr(module, name, None)
    if not callable(handler):
        fail(f"{path} has no function {name}")
    return handler


def read(fd, size):
    """An event that did not come as a whole is none: its client has gone away."""
    text = b""
    while piece := os.read(fd, 1 << 16):
        text += piece
    if len(text) != size:
        leave(1)
    return text


def read_line(fd):
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(fd, 1)
        if not byte:
            leave(1)
        line += byte
    return line.decode()


def main():
    # A log in which what was written first stands first.
    sys.stdout.reconfigure(line_buffering=True)
    result, events = os.dup(3), os.dup(0)
    os.close(3)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    try:
        handler = load(sys.argv[1])
    except BaseException:  # whatever a module does when it is loaded
        traceback.print_exc()
        leave(1)
    timeout_ms = int(os.environ.get("ATOLL_TIMEOUT_MS", "0"))
    os.write(result, b"\x06")
    invocation, size = read_line(events).split()
    until = time.monotonic() + timeout_ms / 1000
    context = types.SimpleNamespace(
        invocation=invocation, function=os.environ.get("ATOLL_FUNCTION", ""),
        remaining_ms=lambda: max(0, int((until - time.monotonic()) * 1000)))
    try:
        text = read(events, int(size))
        answer = handler(json.loads(text) if text.strip() else None, context)
        if asyncio.coroutines.iscoroutine(answer):
            answer = asyncio.run(answer)
        out = memoryview(json.dumps(answer, allow_nan=False).encode())
        while out:
            out = out[os.write(result, out):]
    except BaseException:  # SystemExit of the function's own, too: it gave no result
        traceback.print_exc()
        leave(1)
    leave(0)


main()
