# SPDX-License-Identifier: Apache-2.0
"""What a program that the box starts beside it finds, looked at from within: one in its place writes that down and
becomes the real one. Whoever starts atoll hands over what nobody is to get."""
import os
import signal
import subprocess

import pytest

from gate import test_hosts
from identity import Programs

pytestmark = [pytest.mark.needs("gcc")]
NAMES = ("atoll-egress", "atoll-desk", "atoll-judge", "atoll-notify", "atoll-token", "atoll-verify")

LOOKER = r"""
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void put_file(FILE *out, const char *key, const char *path)
{
	FILE *in = fopen(path, "r");
	int byte;

	fprintf(out, "%s=", key);
	while (in && (byte = getc(in)) != EOF)
		fprintf(out, "%02x", byte);
	fprintf(out, "\n");
	if (in)
		fclose(in);
}

int main(int argc, char **argv, char **env)
{
	char name[PATH_MAX], path[2 * PATH_MAX], link[PATH_MAX], real[2 * PATH_MAX];
	int fds[1024], count = 0, death = 0;
	ssize_t n = readlink("/proc/self/exe", name, sizeof name - 1);
	FILE *out;

	/* Before anything is opened here. */
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			fds[count++] = fd;
	name[n] = 0;
	snprintf(path, sizeof path, "%s/%s-%d", PLACE, strrchr(name, '/') + 1, (int)getpid());
	umask(022);
	out = fopen(path, "we");
	prctl(PR_GET_PDEATHSIG, &death);
	fprintf(out, "death=%d\nleads=%d\n", death, getsid(0) == getpid());
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fds[i]);
		n = readlink(path, link, sizeof link - 1);
		link[n < 0 ? 0 : n] = 0;
		fprintf(out, "fd%d=%s\n", fds[i], link);
	}
	put_file(out, "argv", "/proc/self/cmdline");
	put_file(out, "env", "/proc/self/environ");
	put_file(out, "status", "/proc/self/status");
	fprintf(out, "whole=1\n");
	fclose(out);
	snprintf(real, sizeof real, "%s%s", REAL, strrchr(name, '/'));
	execve(real, argv, env);
	return 99;
}
"""

# One of each: a name is looked up, the socket for requests is connected to and shown a token, programs start.
AGENT = """
import json, os, socket, subprocess
try: socket.create_connection(("a.test", 80), 3).close()
except OSError: pass
s = socket.socket(socket.AF_UNIX); s.connect("/run/atoll/ask.sock"); f = s.makefile("rw")
f.write(json.dumps({"token": "atoll1." + "A" * 200}) + "\\n"); f.flush(); f.readline()
subprocess.run(["sh", "-c", "echo ran"])
try: subprocess.run(["/usr/bin/who"], capture_output=True)
except OSError: pass
"""


class Seen:
    def __init__(self, text):
        values = dict(line.split("=", 1) for line in text.splitlines())
        self.death, self.leads = int(values["death"]), values["leads"] == "1"
        self.fds = {int(key[2:]): value for key, value in values.items() if key[2:].isdigit()}
        self.argv = bytes.fromhex(values["argv"]).decode().split("\0")[:-1]
        self.env = bytes.fromhex(values["env"])
        status = bytes.fromhex(values["status"]).decode()
        self.status = {line.split(":")[0]: line.split(":", 1)[1].split() for line in status.splitlines()}
        self.blocked, self.ignored = int(self.status["SigBlk"][0], 16), int(self.status["SigIgn"][0], 16)


@pytest.fixture
def looked(sandbox, programs, monkeypatch):
    """A copy of the programs with lookers among them, and a function for what those saw."""
    own = Programs(programs.source)
    place = sandbox.make_directory(sandbox.base / "seen", 0o777)
    place.chmod(0o777)
    source = sandbox.write(sandbox.base / "looker.c", "#include <fcntl.h>\n" + LOOKER)
    looker = sandbox.base / "looker"
    subprocess.run(["gcc", "-static", "-O1", f'-DPLACE="{place}"', f'-DREAL="{programs.directory}"', "-o", looker,
                    source], check=True)
    for name in NAMES:
        sandbox.copy(looker, own.directory / name)
    monkeypatch.setattr(sandbox, "programs", own)

    def seen():
        files = [path for path in sorted(place.iterdir()) if path.read_text().endswith("whole=1\n")]
        return {path.name.rsplit("-", 1)[0]: Seen(path.read_text()) for path in files}
    yield seen
    own.remove()


CARELESSLY_IGNORED = signal.SIGCHLD, signal.SIGUSR2, signal.SIGRTMIN


def block_and_ignore():
    """What a careless caller leaves behind."""
    for number in CARELESSLY_IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])


def start_carelessly(sandbox, policy):
    """A descriptor, a variable, an ignored signal and a blocked one that are nobody's business."""
    secret = os.memfd_create("secret", 0)
    os.dup2(secret, 77)
    child = sandbox.popen(["python3", "-c", AGENT], policy=policy, env={"SECRET": "of the caller", **test_hosts()},
                          pass_fds=[secret, 77], preexec_fn=block_and_ignore)
    os.close(secret)
    os.close(77)
    out, err = child.communicate(timeout=60)
    return child.returncode, out, err


STREAMS = {0: "/dev/null", 1: "/dev/null", 2: "/dev/null"}
# What the box ignores for itself: its own writes fail instead.
OF_THE_BOX = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1


def test_companions_find_what_they_were_given_and_nothing_else(sandbox, looked):
    verifier = sandbox.write(sandbox.base / "config" / "verifier",
                             "#!/bin/sh\ncat >/dev/null\necho '{\"verdict\": \"allow\", \"reason\": \"\"}'\n", 0o755)
    policy = sandbox.policy(
        "atoll: 1\nextends: medium\nnetwork: {allow: [a.test]}\nexec: {ask: [{program: /usr/bin/who}]}\n"
        'ask: {timeout: 2s, webhook: "http://127.0.0.1:9/hook"}\n'
        f'verify: {{external: {{command: ["{verifier}"], when: all}}}}\n')
    code, out, err = start_carelessly(sandbox, policy)
    seen = looked()
    assert code == 0 and b"ran" in out and set(seen) == set(NAMES), (code, out, err, set(seen))
    # The control: a program that nobody looks after has what the caller left.
    control = subprocess.run(["grep", "SigIgn", "/proc/self/status"], preexec_fn=block_and_ignore, check=True,
                             capture_output=True, text=True)
    for number in CARELESSLY_IGNORED:
        assert int(control.stdout.split()[-1], 16) & 1 << number - 1
    for name, one in seen.items():
        given = {number: what for number, what in one.fds.items() if number > 3}
        streams = {number: one.fds[number] for number in STREAMS}
        assert streams == (STREAMS if name != "atoll-token" else {**STREAMS, 0: streams[0]}), (name, one.fds)
        assert one.fds[3].startswith("socket:"), (name, one.fds)
        assert list(given) == ([4] if name == "atoll-egress" else []), (name, one.fds)
        assert all("secret" not in what for what in one.fds.values()), (name, one.fds)
        assert one.argv[0] == name and one.env == b"", (name, one.argv, one.env)
        assert one.death == signal.SIGKILL and one.leads, name
        assert not one.blocked and not one.ignored & ~OF_THE_BOX, (name, one.status)
    users(sandbox, seen)


def users(sandbox, seen):
    """As root each has a user of its own (but who must be root for what it does), else all are the caller's."""
    uids = {name: {int(uid) for uid in one.status["Uid"]} for name, one in seen.items()}
    if not sandbox.identity.is_root:
        assert all(found == {sandbox.identity.uid} for found in uids.values()), uids
        return
    assert uids.pop("atoll-token") == {0}, "it writes what root keeps"
    assert all(len(found) == 1 and min(found) >= 0x70000000 for found in uids.values()), uids
    assert len(set.union(*uids.values())) == len(uids), uids
    assert all(not seen[name].status["Groups"] for name in uids), seen
