# SPDX-License-Identifier: Apache-2.0
"""What a sandbox must not leave behind: processes, cgroups, mounts. Looks only at what belongs to the tests."""
import os
import pathlib
import time

CGROUPS = pathlib.Path("/sys/fs/cgroup")


def processes(programs, sessions, uids=()):
    """(pid, why) of processes that belong to these sessions, run these programs, or run as these users."""
    found = []
    wanted = [b"ATOLL_SESSION=" + session.encode() for session in sessions]
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            exe = os.readlink(f"/proc/{entry.name}/exe")
            status = pathlib.Path(f"/proc/{entry.name}/status").read_text()
            environ = pathlib.Path(f"/proc/{entry.name}/environ").read_bytes()
        except OSError:
            continue
        if "State:\tZ" in status:
            continue
        uid = int(status.split("Uid:\t")[1].split()[0])
        if exe.startswith(str(programs.directory) + "/"):
            found.append((int(entry.name), exe))
        elif any(word in environ for word in wanted):
            found.append((int(entry.name), f"{exe} of a session"))
        elif uid in uids:
            found.append((int(entry.name), f"{exe} as uid {uid}"))
    return found


def groups_below(directory):
    """Every cgroup, without a look at the files: a directory without others has two links."""
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                if not entry.is_dir(follow_symlinks=False):
                    continue
                yield entry.path
                if entry.stat(follow_symlinks=False).st_nlink > 2:
                    yield from groups_below(entry.path)
            except FileNotFoundError:
                continue


def cgroups(sessions):
    names = {f"atoll-{session}" for session in sessions}
    return [path for path in groups_below(CGROUPS) if os.path.basename(path).partition(".")[0] in names]


def mounts(places):
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if any(f" {place}/" in line or f" {place} " in line for place in places)]


def all_leaks(sandbox):
    sessions = sandbox.sessions()
    uids = () if sandbox.identity.is_root else (sandbox.identity.uid,)
    return {
        "processes": processes(sandbox.programs, sessions, uids),
        "cgroups": cgroups(sessions),
        "mounts": mounts([sandbox.base]),
    }


def wait_for_none(sandbox, seconds=4):
    """{} when nothing is left (or soon is not any more), else what is."""
    end = time.monotonic() + seconds
    while True:
        left = {kind: what for kind, what in all_leaks(sandbox).items() if what}
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.05)
