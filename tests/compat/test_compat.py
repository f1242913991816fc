# SPDX-License-Identifier: Apache-2.0
"""Suites that nobody here wrote, inside against outside (`make check-compat`): CPython's regression suite, stress-ng,
and git's own tests. Walls are compared, not the guard rails of `verify:`. Every difference stands in differences.table
with its reason; any other fails, and so does a row that no longer differs."""
import fnmatch
import json
import os
import pathlib
import re
import shutil

import pytest

HERE = pathlib.Path(__file__).resolve().parent
REASONS = ("security", "kernel")
TRIES = int(os.environ.get("ATOLL_COMPAT_TRIES", "3"))
GIT = os.environ.get("ATOLL_COMPAT_GIT")

POLICY = """atoll: 1
extends: medium
files: {read: [%s]}
resources: {memory: unlimited, processes: unlimited, open_files: unlimited, file_size: unlimited, inodes: unlimited}
time: {wall: 1h, cpu: 2h, idle: 1h, command: 1h}
verify: {low: off, medium: off, high: off, critical: off, unknown: off, contained: off}
degrade: [cgroup.memory, cgroup.pids, cgroup.cpu]
"""

# Modules about what a sandbox touches: files, processes, sockets, signals, memory, time.
PYTHON = """
test_os test_posix test_posixpath test_shutil test_tempfile test_pathlib test_glob test_stat test_fileio test_io
test_file test_largefile test_fcntl test_mmap test_zipfile test_tarfile test_gzip test_netrc test_pwd test_grp
test_subprocess test_signal test_threadsignals test_fork1 test_wait3 test_wait4 test_popen test_pty test_openpty
test_tty test_select test_selectors test_poll test_epoll test_socket test_socketserver test_ssl test_httplib
test_httpservers test_ftplib test_smtplib test_urllib test_urllib2_localnet test_asyncore test_asyncio.test_events
test_asyncio.test_subprocess test_asyncio.test_unix_events test_asyncio.test_streams test_asyncio.test_base_events
test_multiprocessing_fork test_multiprocessing_spawn test_concurrent_futures test_resource test_platform test_uuid
test_venv test_sqlite3 test_dbm test_shelve test_mailbox test_fileinput test_filecmp test_compileall test_py_compile
test_importlib test_zipimport test_site test_getpass test_locale test_time test_thread test_threading
""".split()

STRESSORS = """
access affinity af-alg aio aiol alarm atomic bad-altstack brk cap chattr chdir chmod chown clock clone close
context copy-file cpu-online daemon dentry dev-shm dir dirdeep dirmany dnotify dup dynlib enosys env epoll eventfd
exec exit-group fallocate fanotify fault fcntl fiemap fifo file-ioctl filename flock fork fp-error fpunch fstat futex
get getrandom handle hdd hrtimers inode-flags inotify io iomix itimer judy kcmp kill landlock lease link
locka lockbus lockf lockofd madvise mcontend membarrier memfd memthrash mincore misaligned mknod mlock mmap mmapaddr
mmapfixed mmapfork mprotect mq mremap msg msync msyncmany munmap mutex nanosleep netlink-task nice null opcode open
pageswap personality pidfd pipe pipeherd poll prctl prefetch procfs pthread ptrace pty randlist readahead remap rename
resched resources revio rlimit rmap rseq rtc schedpolicy seal seccomp secretmem seek sem sem-sysv sendfile session set
shm shm-sysv sigabrt sigchld sigfd sigfpe sigio signal sigpending sigpipe sigq sigrt sigsegv sigsuspend sigtrap sleep
sock sockabuse sockdiag sockfd sockmany sockpair splice stack stackmmap switch symlink sync-file syncload sysbadaddr
sysinfo tee timer timerfd tlb-shootdown tun udp unshare urandom userfaultfd usersyscall utime
vdso verity vfork vm-splice wait xattr yield zero zombie
""".split()

GIT_TESTS = """
t0001-init t0003-attributes t0005-signals t0006-date t0021-conversion t0050-filesystem t0060-path-utils
t0061-run-command t0090-cache-tree t0110-urlmatch-normalization t0410-partial-clone t1006-cat-file t1300-config
t1301-shared-repo t1304-default-acl t1400-update-ref t1401-symbolic-ref t1450-fsck t1500-rev-parse t1501-work-tree
t1600-index t2000-conflict-when-checking-files-out t2007-checkout-symlink t2013-checkout-submodule
t2201-add-update-typechange t2400-worktree-add t3000-ls-files-others t3200-branch t3301-notes t3420-rebase-autostash
t3501-revert-cherry-pick t3600-rm t3700-add t3903-stash t3905-stash-include-untracked t4001-diff-rename
t4014-format-patch t4150-am t5300-pack-object t5304-prune t5310-pack-bitmaps t5400-send-pack t5500-fetch-pack
t5510-fetch t5516-fetch-push t5601-clone t5604-clone-reference t6030-bisect-porcelain t6300-for-each-ref t7001-mv
t7004-tag t7006-pager t7101-reset-empty-subdirs t7102-reset t7300-clean t7400-submodule-basic t7402-submodule-rebase
t7501-commit-basic-functionality t7502-commit-porcelain t7508-status t7512-status-help t7519-status-fsmonitor
t7600-merge t7610-mergetool t7700-repack t7800-difftool t7810-grep t7900-maintenance t9300-fast-import
""".split()


def read_table():
    rows = []
    for number, line in enumerate((HERE / "differences.table").read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            suite, item, name, reason, text = (part.strip() for part in line.split("|"))
            assert reason in REASONS and text, f"differences.table:{number}"
            rows.append((suite, item, name, reason))
    return rows


ROWS = read_table()


def compare(suite, item, outside, inside):
    """Both say how each test ended. What differs must be in the table, and what is in the table must differ."""
    rows = [name for row_suite, row_item, name, _ in ROWS if (row_suite, row_item) == (suite, item)]
    differing = {name for name in {**outside, **inside} if outside.get(name) != inside.get(name)}
    unknown = sorted(name for name in differing if not any(fnmatch.fnmatchcase(name, row) for row in rows))
    stale = sorted(row for row in rows if not any(fnmatch.fnmatchcase(name, row) for name in differing))
    return ([f"{name}: {outside.get(name)} outside, {inside.get(name)} inside" for name in unknown],
            [f"{row}: no longer differs" for row in stale])


def check(suite, item, run):
    """Twice where something is not as the table has it: a loaded machine makes tests fail on either side."""
    for _ in range(TRIES):
        outside = run(False)
        # The control: most of it works where nothing holds it.
        assert sum(str(state) in ("ok", "0", "ended") for state in outside.values()) >= len(outside) / 4, outside
        unknown, stale = compare(suite, item, outside, run(True))
        if not unknown and not stale:
            return
    assert not unknown and not stale, "\n".join(unknown + stale)


@pytest.fixture
def sides(sandbox):
    """run(inside, words): in an empty directory, outside or as a session whose changes are dropped."""
    tree = sandbox.base / "compat"
    # Of one length: sockets have short paths.
    places = {False: sandbox.make_directory(sandbox.home / "without"), True: sandbox.project}

    def run(inside, words, read=HERE, cwd=None, env=None):
        place = places[inside]
        shutil.rmtree(place)
        sandbox.make_directory(place)
        if not inside:
            return sandbox.run_outside(words, cwd=cwd or place, env=env, timeout=900)
        done = sandbox.run(words, policy=sandbox.policy(POLICY % read), cwd=cwd or place, env=env, timeout=900)
        sandbox.run_atoll("discard", done.session)
        return done

    shutil.copytree(HERE, tree)
    return run, tree, places


@pytest.mark.only("user")
@pytest.mark.parametrize("module", PYTHON)
def test_python(sides, module):
    run, tree, _ = sides

    def outcomes(inside):
        done = run(inside, ["/usr/bin/python3", str(tree / "module.py"), module], read=tree,
                   env={"PYTHONDONTWRITEBYTECODE": "1"})
        lines = [line[2:] for line in done.out.splitlines() if line.startswith("@@")]
        found = dict(json.loads(line) for line in lines if line != "end")
        return {**found, "(the whole)": "ended" if "end" in lines else f"exit {done.code}"}

    if not pathlib.Path("/usr/lib/python3.11/test/test_os.py").exists():
        pytest.skip("libpython3.11-testsuite is not installed")
    check("python", module, outcomes)


@pytest.mark.only("user")
@pytest.mark.needs("stress-ng")
@pytest.mark.parametrize("stressor", STRESSORS)
def test_stress(sides, stressor):
    run, _, _ = sides

    def outcomes(inside):
        done = run(inside, ["stress-ng", f"--{stressor}", "1", "-t", "1", "--temp-path", ".", "--log-brief",
                            "--no-rand-seed"])
        return {"exit": done.code}

    check("stress-ng", stressor, outcomes)


@pytest.mark.only("user")
@pytest.mark.parametrize("script", GIT_TESTS)
def test_git(sides, script):
    if not GIT:
        pytest.skip("git's sources are not there: make check-compat fetches them")
    run, _, places = sides

    def outcomes(inside):
        script_words = ["env", "GIT_TEST_INSTALLED=/usr/bin", f"TEST_OUTPUT_DIRECTORY={places[inside]}",
                        "sh", f"./{script}.sh", f"--root={places[inside]}", "--no-chain-lint"]
        done = run(inside, script_words, read=GIT, cwd=f"{GIT}/t")
        found = {name: state for state, name in re.findall(r"^((?:not )?ok) \d+ - (.*?)(?: # .*)?$", done.out, re.M)}
        found = {name.replace(str(places[inside]), "PLACE"): state for name, state in found.items()}
        return {**found, "(the whole)": done.code}

    check("git", script, outcomes)
