# SPDX-License-Identifier: Apache-2.0
"""The section `stage` of the benchmark: what staging costs at the start, while working, and in each review verb."""
import os
import shutil
import subprocess

import workloads
from contenders import TRUE, Unusable

POLICY = "atoll: 1\nextends: medium\ndrop: [.]\nfiles: {{{kind}: [.]}}\n" \
         "degrade: [mask.late, disk, cgroup.memory, cgroup.pids, cgroup.cpu]\n{lines}"
WIDE = "resources: {inodes: unlimited, disk: unlimited}\n"
MAKE = """
import os, sys
top, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for i in range(count):
    if i % 1000 == 0:
        directory = os.path.join(top, f"d{i // 1000}")
        os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, f"f{i}"), "wb") as file:
        file.write(b"%d\\n" % i * (size // 8))
"""


def median(values):
    return sorted(values)[len(values) // 2]


def own(place, path):
    if place.uid != os.getuid():
        subprocess.run(["chown", "-R", f"{place.uid}:{place.gid}", path], check=True)


def write_policy(place, name, kind, lines=""):
    path = os.path.join(place.home, name)
    with open(path, "w", encoding="ascii") as file:
        file.write(POLICY.format(kind=kind, lines=lines))
    os.chmod(path, 0o644)
    return path


def tree_of(place, count):
    """A project of this many files, made once."""
    path = os.path.join(place.home, f"tree-{count}")
    if not os.path.isdir(path):
        os.mkdir(path)
        subprocess.run(["/usr/bin/python3", "-c", MAKE, path, str(count), "80"], check=True)
        own(place, path)
    return path


def must(place, command, **keywords):
    run = place.run(command, timeout=600, **keywords)
    if run.returncode != 0:
        raise Unusable(f"{' '.join(command[1:4])}…: {run.stderr.strip()[-300:] or run.returncode}")
    return run


def once(place, command):
    """Nanoseconds of one start, without a warming one before it: these commands do something only once."""
    (_, status, taken), = place.spawn(["lat", place.write_plan([command]), "1"])
    if status != 0:
        raise Unusable(f"{' '.join(command[1:4])}… ended with wait status {status}")
    return taken


class Review:
    """A session with changes in the project, and its verbs."""

    def __init__(self, place, policy):
        self.place, self.policy = place, policy
        self.root = os.path.join(place.environment["XDG_STATE_HOME"], "atoll", "sessions")

    def sessions(self):
        return set(os.listdir(self.root)) if os.path.isdir(self.root) else set()

    def run(self, argv, project=None):
        """Runs argv staged; the id of the session that it leaves."""
        before = self.sessions()
        options = ["--project", project, "-C", project] if project else []
        must(self.place, [self.place.atoll, "run", "-q", "-p", self.policy, *options, "--", *argv])
        new = self.sessions() - before
        if len(new) != 1:
            raise Unusable("a staged run that changed files left no session")
        return new.pop()

    def make_files(self, count, size=80, project=None):
        return self.run(["/usr/bin/python3", "-c", MAKE, "made", str(count), str(size)], project)

    def timed(self, *words):
        return once(self.place, [self.place.atoll, *words])


def start_times(place, report, rounds, is_quick):
    policies = {"written": write_policy(place, "written.yaml", "write"),
                "staged": write_policy(place, "staged.yaml", "stage")}
    large = 20_000 if is_quick else 200_000
    small_tree, large_tree = tree_of(place, 10), tree_of(place, large)

    def command(policy, tree):
        return [place.atoll, "run", "-p", policies[policy], "--project", tree, "-C", tree, "--", TRUE]

    commands = {"plain": [TRUE], "project written in place": command("written", small_tree),
                "project staged, 10 files": command("staged", small_tree),
                f"project staged, {large:,} files": command("staged", large_tree)}
    place.settle()
    # The journal of the disk is busy with the files of the trees for a while.
    os.sync()
    for argv in commands.values():
        must(place, argv)
    times = place.latency(commands, rounds)
    rows = [[name, len(values), f"{median(values) / 1e6:.3f}",
             f"{median(values) / median(times['project written in place']):.3f}"] for name, values in times.items()]
    report.table(place, "Start to exit of `true` with a staged tree", ["", "n", "median ms", "× written"], rows)
    written, small, many = (median(times[name]) for name in list(commands)[1:])
    report.budget(place, "start with a staged tree against one written in place", small / written, 1.15)
    report.budget(place, f"start with {large:,} files in the tree against 10", many / small, 1.05)
    return times


OVERLAY = """
layers=$1 project=$2 options=$3
shift 3
mkdir -p "$layers/upper" "$layers/work" || exit
mount -t overlay -o "lowerdir=$project,upperdir=$layers/upper,workdir=$layers/work$options" overlay "$project" || exit
cd "$project" && exec "$@"
"""


def overlay_alone(place):
    """A prefix that gives its command the project through the kernel's overlay, and nothing else of a sandbox."""
    layers = os.path.join(place.home, "layers")
    own_namespace = ["--mount"] if place.uid == 0 else ["--user", "--map-root-user", "--mount"]
    options = "" if place.uid == 0 else ",userxattr"
    prefix = ["/usr/bin/unshare", *own_namespace, "/bin/sh", "-c", OVERLAY, "sh", layers, place.project, options]
    run = place.run([*prefix, TRUE])
    if run.returncode == 0:
        return prefix
    raise Unusable(f"the kernel's overlay alone: {run.stderr.strip()[-300:] or run.returncode}")


def work_times(place, report, rounds, policy):
    rows, raw, prefix = [], {}, None
    try:
        prefix = overlay_alone(place)
    except Unusable as why:
        report.absent(place, {"stage: overlay": str(why)})
    for work in (workloads.GitStatus(), workloads.Build()):
        work.options = ("-q", "-p", policy)
        inside, outside, whole = work.measure(place, max(3, rounds // 6), prefix)
        ratio = median(inside) / median(outside)
        raw[work.name] = {"inside": inside, "outside": outside, "whole": whole, "overlay": list(work.beside)}
        report.budget(place, f"{work.name}, staged against outside", ratio, 1.05)
        overlay = ["", ""]
        if work.beside:
            overlay = [f"{median(work.beside) / 1e6:.2f}", f"{median(work.beside) / median(outside):.3f}"]
            report.budget(place, f"{work.name}, staged against the kernel's overlay alone",
                          median(inside) / median(work.beside), 1.05)
        rows.append([work.name, len(inside), f"{median(outside) / 1e6:.2f}", *overlay, f"{median(inside) / 1e6:.2f}",
                     f"{ratio:.3f}"])
    report.table(place, "Real work in a staged tree",
                 ["", "n", "outside ms", "overlay ms", "ratio", "staged ms", "ratio"], rows,
                 "overlay: the project through the kernel's overlay, and nothing else of a sandbox")
    return raw


def verb_times(place, report, policy, is_quick):
    """snapshot, restore, fork with a small and a large upper: a new session for each, since one seals only once."""
    review, rows, raw = Review(place, policy), [], {}
    baseline = [place.latency_of([place.atoll, "run", "-q", "-p", policy, "--", TRUE])[0] for _ in range(5)]
    for count, size in ((10, 80), (2_000 if is_quick else 20_000, 4096)):
        times = {"snapshot": [], "restore": [], "fork": []}
        for _ in range(3 if is_quick else 7):
            session = review.make_files(count, size)
            times["snapshot"].append(review.timed("snapshot", session, "point"))
            times["fork"].append(review.timed("fork", session, "point", "--", TRUE) - median(baseline))
            times["restore"].append(review.timed("restore", session, "point"))
            discard(review, session)
        for verb, values in times.items():
            rows.append([f"{verb}, {count:,} files of {size} bytes staged", len(values), f"{median(values) / 1e6:.2f}"])
            report.budget(place, f"{verb} with {count:,} files staged", median(values) / 1e6, 5, "ms")
        raw[count] = times
    report.table(place, "Snapshots, nothing running (fork: beyond a plain start of `true`)", ["", "n", "median ms"],
                 rows)
    return raw


def discard(review, session):
    """What a session staged, so that the next one does not wait for the disk of this one."""
    review.place.run([review.place.atoll, "discard", session], timeout=120)
    shutil.rmtree(os.path.join(review.root, session), ignore_errors=True)


def diff_times(place, report, policy, is_quick):
    count = 10_000 if is_quick else 100_000
    review = Review(place, policy)
    tree = tree_of(place, count)
    changed = review.run(["/usr/bin/python3", "-c", MAKE, ".", str(count), "88"], tree)
    times = [review.timed("diff", changed, "--stat") for _ in range(5)]
    discard(review, changed)
    tree = tree_of(place, 10_000)
    changed = review.run(["/usr/bin/python3", "-c", MAKE, ".", "10000", "88"], tree)
    patches = [review.timed("diff", "-p", changed) for _ in range(5)]
    discard(review, changed)
    report.table(place, "Review", ["", "n", "median ms"],
                 [[f"`atoll diff` of {count:,} changed files", len(times), f"{median(times) / 1e6:.1f}"],
                  ["`atoll diff -p` of 10,000 changed files", len(patches), f"{median(patches) / 1e6:.1f}"]])
    report.budget(place, f"diff of {count:,} changed files", median(times) / 1e9 * (100_000 / count), 1, "s")
    report.budget(place, "diff -p of 10,000 changed files", median(patches) / 1e9, 2, "s")
    return {"list": times, "patch": patches}


def apply_times(place, report, policy, is_quick):
    """The same files to the same disk by each, in turn; each ends when they are on the disk."""
    count = 1_000 if is_quick else 10_000
    review = Review(place, policy)
    session = review.make_files(count, 4096)
    made = os.path.join(place.project, "made")
    source = os.path.join(place.home, "source")
    subprocess.run(["/usr/bin/python3", "-c", MAKE, os.path.join(source, "made"), str(count), "4096"], check=True)
    own(place, source)
    script = {"cp -a, then sync": "cp -a \"$1\" \"$2\" && sync -f \"$2\"",
              "rsync -a --fsync": "rsync -a --fsync \"$1/\" \"$2\""}
    times = {"atoll apply": [], "atoll undo": [], **{name: [] for name in script}, "git stash -u, then sync": []}
    if shutil.which("rsync") is None:
        report.absent(place, {"rsync": "not installed"})
        del times["rsync -a --fsync"]
    stash = os.path.join(place.home, "stash")
    os.makedirs(stash, exist_ok=True)
    own(place, stash)
    git = "git -c user.name=b -c user.email=b@example.org"
    must(place, ["/bin/sh", "-c", f"cd {stash} && git init -q && {git} commit -q --allow-empty -m start"])
    for _ in range(3 if is_quick else 7):
        times["atoll apply"].append(review.timed("apply", "-q", session))
        times["atoll undo"].append(review.timed("undo", "-q", session))
        for name in set(times) & set(script):
            command = ["/bin/sh", "-c", script[name], "sh", os.path.join(source, "made"), made]
            times[name].append(once(place, command))
            shutil.rmtree(made)
        must(place, ["/bin/cp", "-a", os.path.join(source, "made"), stash])
        times["git stash -u, then sync"].append(once(
            place, ["/bin/sh", "-c", f"cd {stash} && {git} stash -q -u && sync -f ."]))
    discard(review, session)
    base = median(times["cp -a, then sync"])
    rows = [[name, len(values), f"{median(values) / 1e6:.1f}", f"{median(values) / base:.2f}"]
            for name, values in times.items()]
    report.table(place, f"{count:,} new files of 4 KiB reach the disk", ["", "n", "median ms", "× cp -a"], rows)
    report.budget(place, f"apply of {count:,} small files against cp -a and sync",
                  median(times["atoll apply"]) / base, 2)
    report.budget(place, f"undo of {count:,} small files against their apply",
                  median(times["atoll undo"]) / median(times["atoll apply"]), 1.2)
    return times


def section_stage(place, report, rounds):
    is_quick = rounds < 50
    policy = write_policy(place, "review.yaml", "stage", WIDE)
    place.settle()
    raw = {}
    parts = {"start": lambda: start_times(place, report, rounds, is_quick),
             "work": lambda: work_times(place, report, rounds, policy),
             "verbs": lambda: verb_times(place, report, policy, is_quick),
             "diff": lambda: diff_times(place, report, policy, is_quick),
             "apply": lambda: apply_times(place, report, policy, is_quick)}
    for name, part in parts.items():
        try:
            raw[name] = part()
        except (Unusable, OSError, subprocess.SubprocessError) as why:
            report.absent(place, {f"stage: {name}": str(why)})
    return raw
