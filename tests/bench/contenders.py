# SPDX-License-Identifier: Apache-2.0
"""Who is measured: one place per user (root, an ordinary user), and the command lines of atoll and its peers."""
import atexit
import json
import os
import shutil
import subprocess
import tempfile
import time

import plan as plans

HERE = os.path.dirname(os.path.abspath(__file__))
TRUE = "/bin/true"
# What the kernel's floor is compared with: the project in place, no network rules, all else as in the default level.
BARE = "atoll: 1\nextends: low\ndrop: [.]\nfiles: {write: [.]}\n" \
       "degrade: [mask.late, disk, cgroup.memory, cgroup.pids, cgroup.cpu]\n"
PEERS = ("bwrap", "unshare", "firejail", "crun", "runc", "runsc", "podman")


class Unusable(Exception):
    """Something that cannot be measured here, with the reason in words."""


class Place:
    """A user with a home, a project, copies of the programs, and the plan of mounts as that user gets them."""

    def __init__(self, folder, build, name, uid, gid):
        self.name, self.uid, self.gid = name, uid, gid
        self.build = build
        self.folder = os.path.join(folder, name)
        self.home = os.path.join(self.folder, "home")
        self.project = os.path.join(self.home, "project")
        self.bin = os.path.join(self.folder, "bin")
        self.atoll = os.path.join(self.bin, "atoll")
        # The run-time directory of a login is a tmpfs (XDG base directory specification).
        self.runtime = tempfile.mkdtemp(prefix="atoll-bench.", dir="/dev/shm" if os.path.ismount("/dev/shm") else None)
        atexit.register(shutil.rmtree, self.runtime, ignore_errors=True)
        for path in (self.folder, self.home, self.project, self.bin, self.path("state"), self.runtime):
            os.makedirs(path, exist_ok=True)
            os.chmod(path, 0o755)
            os.chown(path, uid, gid)
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8",
                            "HOME": self.home,
                            "XDG_STATE_HOME": self.path("state"), "XDG_RUNTIME_DIR": self.runtime,
                            "XDG_CACHE_HOME": self.path("cache"), "USER": name, "LOGNAME": name}
        os.chmod(self.runtime, 0o700)
        programs = os.path.join(build, "bin")
        if os.path.isdir(programs):
            shutil.copytree(programs, self.bin, dirs_exist_ok=True)
        with open(self.path("bare.yaml"), "w", encoding="ascii") as file:
            file.write(BARE)
        self.settle()
        self.compile("spawn", ["gcc", "-O2", os.path.join(HERE, "spawn.c")])
        self.plan = plans.of_atoll(self.atoll, self.project, self.home, self.environment, self.folder) \
            if uid == os.getuid() else self.in_child(lambda: plans.of_atoll(
                self.atoll, self.project, self.home, self.environment, self.path("state")))
        with open(self.path("floor-plan.h"), "w", encoding="ascii") as file:
            file.write(plans.header(self.plan, self.project))
        multiarch = subprocess.check_output(["gcc", "-print-multiarch"], text=True).strip()
        self.compile("floor", ["musl-gcc", "-O2", "-static", "-idirafter", "/usr/include", "-idirafter",
                               "/usr/include/" + multiarch, "-I", self.folder, os.path.join(HERE, "floor.c")])
        self.run([self.path("floor"), "--dump-filter", self.path("state/filter")])

    @staticmethod
    def settle():
        """atoll does not cache what it compiled from a file that changed within two seconds of it."""
        time.sleep(2.2)

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, name, argv):
        subprocess.run([*argv, "-o", self.path(name)], check=True)

    def as_user(self):
        return {} if self.uid == os.getuid() else {"user": self.uid, "group": self.gid, "extra_groups": []}

    def in_child(self, work):
        """work() with this place's user as the effective one: what it starts must not be root."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            os.setgroups([])
            os.setgid(self.gid)
            os.setuid(self.uid)
            os.write(write, json.dumps(work()).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as file:
            data = file.read()
        os.waitpid(pid, 0)
        mounts, rules, size, is_measured = json.loads(data)
        return plans.Plan([plans.Mount(kind, source, target, tuple(options), is_directory)
                           for kind, source, target, options, is_directory in mounts], rules, size, is_measured)

    def run(self, argv, **options):
        return subprocess.run(argv, **{"cwd": self.project, "env": self.environment, "stdin": subprocess.DEVNULL,
                                       "capture_output": True, "text": True, "errors": "replace", "timeout": 120,
                                       # A session of its own, as a sandbox has: the scheduler shares by session.
                                       "start_new_session": True, **self.as_user(), **options})

    def popen(self, argv):
        return subprocess.Popen(argv, cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.as_user())

    # ---- the stopwatch ------------------------------------------------------------------------------------
    def write_plan(self, commands):
        handle, path = tempfile.mkstemp(dir=self.folder)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines("\x1f".join(argv) + "\n" for argv in commands)
        os.chmod(path, 0o644)
        return path

    def spawn(self, arguments, prefix=()):
        environment = {**self.environment, "SPAWN_FD9": self.path("state/filter")}
        run = self.run([*prefix, self.path("spawn"), *arguments], env=environment, timeout=900)
        if run.returncode != 0:
            raise Unusable(run.stderr.strip() or f"spawn ended with {run.returncode}")
        return [[int(field) for field in line.split()] for line in run.stdout.splitlines()]

    def latency(self, commands, rounds, prefix=()):
        """{name: [nanoseconds]} of all commands round-robin; a command that fails once is dropped with a word."""
        names, warm = list(commands), 2
        rows = self.spawn(["lat", self.write_plan(commands.values()), str(rounds + warm)], prefix)
        times = {name: [] for name in names}
        for at, (index, status, ns) in enumerate(rows):
            if status != 0:
                raise Unusable(f"{names[index]} ended with wait status {status}")
            if at >= warm * len(names):
                times[names[index]].append(ns)
        return times

    def latency_of(self, command, rounds=1):
        return self.latency({"command": command}, rounds)["command"]

    def throughput(self, command, jobs, duration_ms):
        (good, failed, ns), = self.spawn(["par", self.write_plan([command]), "0", str(jobs), str(duration_ms)])
        return good, failed, ns

    # ---- the contenders -----------------------------------------------------------------------------------
    def bundle(self, name):
        folder = self.path("state/" + name)
        rootfs = os.path.join(folder, "rootfs")
        os.makedirs(rootfs, exist_ok=True)
        for mount in self.plan.mounts:
            target = rootfs + mount.target
            if mount.kind == "link":
                os.symlink(mount.source, target)
            elif mount.is_directory:
                os.makedirs(target, exist_ok=True)
        for path in ("proc", "dev", "sys"):
            os.makedirs(os.path.join(rootfs, path), exist_ok=True)
        config = plans.oci_config(self.plan, self.project, [TRUE], self.uid, self.gid)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        if self.uid != os.getuid():
            subprocess.run(["chown", "-R", f"{self.uid}:{self.gid}", folder], check=True)
        return folder

    def sessions(self):
        """As atoll has it: the directory of sessions spreads its entries over the disk (os/path.h)."""
        path = self.path("state/floor-sessions")
        if not os.path.isdir(path):
            os.mkdir(path)
            os.chown(path, self.uid, self.gid)
            subprocess.run(["chattr", "+T", path], check=False, stderr=subprocess.DEVNULL)
        return path

    def groups(self):
        """The control groups that a start of atoll's makes: below our own, where root may."""
        if self.uid != 0:
            return []
        found = []
        with open("/proc/self/cgroup", encoding="ascii") as file:
            for line in file:
                _, names, path = line.rstrip("\n").split(":", 2)
                roots = [f"/sys/fs/cgroup/{names}"] if names else ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
                if names in ("", "memory", "pids"):
                    found += [root + path for root in roots if os.path.exists(root + path + "/cgroup.procs")][:1]
        return [word for path in found for word in ("--group", path.rstrip("/"))]

    def command_of(self, name, argv):
        """The command line that runs argv in this contender; Unusable where it is not installed."""
        bwrap = [shutil.which("bwrap") or "", *plans.bwrap_arguments(self.plan, self.project)]
        state = os.path.join(self.runtime, "oci-" + name)
        table = {
            "plain": lambda: list(argv),
            "floor": lambda: [self.path("floor"), *argv],
            "floor+duties": lambda: [self.path("floor"), "--log", self.sessions(), *self.groups(), *argv],
            "atoll": lambda: [self.atoll, "run", "--", *argv],
            "atoll bare": lambda: [self.atoll, "run", "-p", self.path("bare.yaml"), "--", *argv],
            "bwrap": lambda: [*bwrap, *argv],
            "bwrap+seccomp": lambda: [*bwrap, "--seccomp", "9", *argv],
            "unshare": lambda: ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--net", "--ipc",
                                "--uts", "--cgroup", "--mount-proc", *argv],
            "firejail": lambda: ["firejail", "--quiet", "--noprofile", "--net=none", "--private-tmp", "--private-dev",
                                 "--caps.drop=all", "--seccomp", "--nonewprivs", *argv],
            "crun": lambda: ["crun", "--cgroup-manager=disabled", "--root", state, "run",
                             "--bundle", self.bundle("crun"), "{id}"],
            "runc": lambda: ["runc", "--root", state, "run", "--bundle", self.bundle("runc"), "{id}"],
            "runsc": lambda: ["runsc", "--rootless" if self.uid else "--ignore-cgroups", "--network=none", "do", *argv],
            "podman": lambda: ["podman", "run", "--rm", "--network=none", "--ulimit=nofile=1024:1024",
                               "--ulimit=nproc=4096:4096", "--volume=/usr:/usr:ro", "--rootfs",
                               os.path.join(self.bundle("podman"), "rootfs"), *argv],
        }
        program = name.split("+")[0]
        if program in PEERS and shutil.which(program, path=self.environment["PATH"]) is None:
            raise Unusable("not installed")
        command = table[name]()
        if "/" not in command[0]:
            command[0] = shutil.which(command[0], path=self.environment["PATH"])
        if not os.access(command[0], os.X_OK):
            raise Unusable(f"{command[0]} is not built")
        return command

    def usable(self, names, argv, prefix=()):
        """({name: command}, {name: why not}) after one real start of each."""
        commands, missing = {}, {}
        for name in names:
            try:
                command = self.command_of(name, argv)
                errors = os.path.join(self.folder, "state", "errors")
                if os.path.exists(errors):
                    os.unlink(errors)
                (_, status, _), = self.spawn_once(command, errors, prefix)
                if status != 0:
                    with open(errors, encoding="utf-8", errors="replace") as file:
                        said = file.read().strip().splitlines()
                    missing[name] = f"does not run here: {said[-1][:160] if said else f'wait status {status}'}"
                else:
                    commands[name] = command
            except (Unusable, OSError, subprocess.SubprocessError) as error:
                missing[name] = str(error)
        return commands, missing

    def spawn_once(self, command, errors, prefix):
        run = self.run([*prefix, self.path("spawn"), "lat", self.write_plan([command]), "1"],
                       env={**self.environment, "SPAWN_FD9": self.path("state/filter"), "SPAWN_STDERR": errors})
        return [[int(field) for field in line.split()] for line in run.stdout.splitlines()]
