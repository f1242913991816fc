# SPDX-License-Identifier: Apache-2.0
"""What people run must simply work inside, at the default level, as root and as an ordinary user."""
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import time

import pytest


def works(done, *expected):
    assert done.code == 0, done
    for text in expected:
        assert text in done.out, done
    return done


# --- Pipes, redirections, streams. ---

def test_pipes_and_redirections(sandbox):
    script = """
    set -eu
    echo one | tr a-z A-Z | tee out.txt >/dev/null
    cat <out.txt; cat <<<two; cat < <(echo three); diff <(echo a) <(echo a) && echo same
    echo four >&2 2>err.txt || true; exec 5>five.txt; echo five >&5; exec 5>&-; cat five.txt
    mkfifo pipe; (echo six >pipe &) ; cat pipe; rm pipe
    coproc cat; echo seven >&"${COPROC[1]}"; read -r line <&"${COPROC[0]}"; echo "$line"
    seq 100000 | head -1; yes | head -c 3 | wc -c
    """
    works(sandbox.run(script), "ONE", "two", "three", "same", "five", "six", "seven")


def test_streams_by_name(sandbox):
    """/dev/stdin and its like open the pipe anew; as root that failed, since the pipe is not what is inside owns."""
    script = "echo out >/dev/stdout; echo err >/dev/stderr; cat /dev/stdin; echo more | tee /proc/self/fd/2 >/dev/fd/1"
    words = shlex.join(sandbox.command_line(["sh", "-c", script], options=("-q",)))
    sandbox.write(sandbox.project / "in", "given\n")
    for given in (f"echo given | {words}", f"{words} <in"):
        done = sandbox.run_outside(["bash", "-c", f"{{ {given}; }} | cat"])
        assert done.code == 0 and done.out == "out\ngiven\nmore\n" and done.err == "err\nmore\n", done


def test_a_fifo_of_the_user_keeps_its_mode(sandbox):
    path = sandbox.home / "fifo"
    os.mkfifo(path, 0o600)
    os.chown(path, sandbox.identity.uid, sandbox.identity.gid)
    with open(os.open(path, os.O_RDWR), "rb") as fifo:
        os.write(fifo.fileno(), b"line\n")
        child = sandbox.popen(["head", "-1"], stdin=open(path, "rb"))
        assert child.communicate(timeout=20)[0] == b"line\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_stdin(sandbox):
    data = os.urandom(3 << 20)
    done = sandbox.run(["sha256sum"], stdin=data)
    assert done.out.split()[0] == hashlib.sha256(data).hexdigest(), done


def test_stdin_at_its_end(sandbox):
    works(sandbox.run(["sh", "-c", "cat; read x || echo ended"], stdin=b""), "ended")
    works(sandbox.run(["sh", "-c", "cat; echo ended"]), "ended")


def test_stdin_from_a_file_and_a_slow_pipe(sandbox):
    path = sandbox.write(sandbox.project / "in", "from a file\n")
    with open(path, "rb") as file:
        child = sandbox.popen(["cat"], stdin=file)
        assert child.communicate(timeout=20)[0] == b"from a file\n"
    child = sandbox.popen(["cat"], stdin=subprocess.PIPE)
    for word in (b"one\n", b"two\n"):
        child.stdin.write(word)
        child.stdin.flush()
        assert child.stdout.readline() == word
    child.stdin.close()
    assert child.wait(timeout=10) == 0


def test_a_reader_that_goes_away(sandbox):
    """`atoll run -- yes | head -1` ends, with the status of a broken pipe."""
    words = " ".join(f"'{word}'" for word in sandbox.command_line(["yes"]))
    started = time.monotonic()
    done = sandbox.run_outside(["bash", "-c", f"{words} 2>/dev/null | head -1; echo ${{PIPESTATUS[0]}}"], timeout=30)
    assert done.out.split()[0] == "y" and done.out.split()[1] in ("141", "1"), done
    assert time.monotonic() - started < 10


def test_stdout_and_stderr_keep_their_order(sandbox):
    script = "for i in $(seq 200); do echo out$i; echo err$i >&2; done"
    done = sandbox.run(["bash", "-c", script], stderr=subprocess.STDOUT)
    expected = [word for i in range(1, 201) for word in (f"out{i}", f"err{i}")]
    assert [word for word in done.out.split() if word[:3] in ("out", "err")] == expected


def test_streams_are_not_mixed(sandbox):
    done = sandbox.run(["sh", "-c", "echo out; echo err >&2"])
    assert done.out == "out\n" and "err\n" in done.err and "out\n" not in done.err


def test_100_megabytes_through_stdout(sandbox):
    """Whole, and not much slower than without a boundary."""
    script = "import sys\nblock = bytes(range(256)) * 4096\nfor _ in range(100): sys.stdout.buffer.write(block)"
    policy = sandbox.policy("atoll: 1\nextends: medium\nresources: {output: 1GiB}\n")
    expected = hashlib.sha256(bytes(range(256)) * 4096 * 100).hexdigest()
    seconds = []
    for start in (lambda: subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
            **sandbox.popen_keywords()),
                  lambda: sandbox.popen(["python3", "-c", script], policy=policy, stderr=subprocess.DEVNULL)):
        begun = time.monotonic()
        child = start()
        digest, size = hashlib.sha256(), 0
        while block := child.stdout.read1(1 << 20):
            digest.update(block)
            size += len(block)
        assert child.wait(timeout=10) == 0
        assert (size, digest.hexdigest()) == (100 << 20, expected)
        child.stdout.close()
        seconds.append(time.monotonic() - begun)
    assert seconds[1] < 5, seconds


def test_binary_output_is_untouched(sandbox):
    data = bytes(range(256)) * 100 + b"\x1b]52;c;eHh4\x07\r\n\0\xff"
    sandbox.write(sandbox.project / "data", data)
    assert sandbox.run(["cat", "data"]).bytes == data


def test_arguments_arrive_exactly(sandbox):
    arguments = ["", " ", "a b", "'", '"', "\\", "\n", "*", "$HOME", "-x", "--", "ä€𝄞", "\udcff\udcfe", "x" * 100000]
    done = sandbox.run(["python3", "-c",
            "import sys, os\nfor a in sys.argv[1:]: sys.stdout.buffer.write(os.fsencode(a) + b'\\0')", *arguments])
    assert done.bytes.split(b"\0")[:-1] == [os.fsencode(argument) for argument in arguments]


# --- Languages. ---

@pytest.mark.needs("python3")
def test_python(sandbox):
    script = """
import asyncio, concurrent.futures, json, multiprocessing, os, sqlite3, ssl
import subprocess, sys, tempfile, threading
def square(x): return x * x
if __name__ == "__main__":
    print(subprocess.run(["echo", "sub"], capture_output=True, text=True).stdout.strip())
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool: print(method, pool.map(square, range(4)))
    queue = multiprocessing.Queue(); p = multiprocessing.Process(target=queue.put, args=("queued",))
    p.start(); print(queue.get()); p.join()
    from multiprocessing import shared_memory
    block = shared_memory.SharedMemory(create=True, size=100); block.buf[0] = 7
    block.close(); block.unlink(); print("shared")
    lock = multiprocessing.Lock(); lock.acquire(); lock.release(); print("locked")
    async def run():
        process = await asyncio.create_subprocess_exec("echo", "async", stdout=asyncio.subprocess.PIPE)
        return (await process.communicate())[0].decode().strip()
    print(asyncio.run(run()))
    with concurrent.futures.ThreadPoolExecutor(8) as pool: print(sum(pool.map(square, range(10))))
    with tempfile.NamedTemporaryFile() as file: file.write(b"x"); file.flush(); print("temporary")
    base = sqlite3.connect("base.db"); base.execute("pragma journal_mode=wal")
    base.execute("create table t(x)"); base.commit(); print("database")
    print(len(os.sched_getaffinity(0)) > 0, os.cpu_count() > 0, os.getloadavg() is not None)
    os.posix_spawn("/bin/echo", ["echo", "spawned"], os.environ); os.wait()
"""
    sandbox.write(sandbox.project / "script.py", script)
    works(sandbox.run(["python3", "script.py"], timeout=90), "sub", "fork [0, 1, 4, 9]", "spawn [0, 1, 4, 9]",
            "forkserver [0, 1, 4, 9]",
          "queued", "shared", "locked", "async", "285", "temporary", "database", "spawned")


@pytest.mark.needs("python3")
def test_python_virtual_environment(sandbox):
    done = sandbox.run("python3 -m venv --without-pip venv && . venv/bin/activate && python -c 'import sys; "
            "print(sys.prefix)' && "
                       "python -m venv --without-pip venv2 && venv2/bin/python -c 'print(\"nested\")'", timeout=90)
    works(done, f"{sandbox.project}/venv", "nested")


@pytest.mark.needs("python3")
def test_pytest_itself(sandbox):
    sandbox.write(sandbox.project / "test_it.py",
            "def test_it(tmp_path, capfd):\n    (tmp_path / 'x').write_text('y')\n    assert 1\n")
    works(sandbox.run(["/usr/bin/python3", "-m", "pytest", "-q"], timeout=90), "1 passed")


@pytest.mark.needs("node")
def test_node(sandbox):
    script = """
const { execSync, fork, spawn } = require('child_process');
const fs = require('fs'), http = require('http'), os = require('os');
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (!isMainThread) { parentPort.postMessage('worker'); return; }
if (process.argv[2] == 'child') { process.send('forked'); return; }
console.log(execSync('echo sub').toString().trim(), os.cpus().length > 0, os.tmpdir(),
  os.hostname().length > 0, os.totalmem() > 0);
console.log(JSON.stringify(Object.keys(os.networkInterfaces())), os.userInfo().username.length > 0);
new Worker(__filename).on('message', console.log);
fork(__filename, ['child']).on('message', console.log);
fs.watch('.', () => {}).close();
fs.promises.readFile(__filename).then(b => console.log('read', b.length > 100));
const server = http.createServer((q, a) => a.end('served')).listen(0, '127.0.0.1', () =>
  http.get({ port: server.address().port }, a => a.on('data', d => { console.log(d.toString()); server.close(); })));
"""
    sandbox.write(sandbox.project / "script.js", script)
    works(sandbox.run(["node", "script.js"], timeout=90), "sub true", "worker", "forked", "read true", "served")


@pytest.mark.needs("npm")
def test_npm_runs_a_script(sandbox):
    sandbox.write(sandbox.project / "package.json",
                  '{"name":"x","version":"1.0.0","scripts":{"hello":"node -e '
                          '\\"console.log(process.env.npm_package_name, 6*7)\\""}}')
    works(sandbox.run(["npm", "run", "hello"], timeout=90), "x 42")


@pytest.mark.needs("git")
def test_git_knows_what_it_knew_outside(sandbox):
    """The tree looks copied to git: another owner as root, other inodes. It must not read every file anew for that."""
    project = sandbox.git_project()
    for i in range(20):
        sandbox.write(project / f"{i}.txt", f"{i:02}\n")
    for words in (["add", "."], ["commit", "-qm", "first"]):
        sandbox.run_outside(["git", *words], cwd=project, check=True)
    time.sleep(1.1)
    sandbox.run_outside(["git", "status"], cwd=project, check=True)
    done = sandbox.run("printf 'xx\\n' >3.txt; git status --short; git diff-files --name-only | wc -l; "
                       "env -u GIT_CONFIG_COUNT git diff-files --name-only | wc -l")
    works(done)
    lines = done.out.split()
    assert lines[:3] == ["M", "3.txt", "1"], done
    # The control: by all that it can look at, everything differs where the owner does.
    assert int(lines[3]) == (20 if sandbox.identity.is_root else 1), done


@pytest.mark.needs("git")
@pytest.mark.parametrize("trust", ["medium", "high"])
def test_git(sandbox, trust):
    project = sandbox.git_project()
    sandbox.write(project / "a.txt", "one\n")
    done = sandbox.run("""
    set -eu
    git status --short; git add a.txt; git commit -qm first; echo two >>a.txt; git diff --stat; git commit -qam second
    git log --oneline | wc -l
    git checkout -qb branch; git stash list; git gc -q; git fsck; git rebase -q HEAD~1; git checkout -q -
    git clone -q . /tmp/clone; git -C /tmp/clone log -1 --format=%s
    git blame a.txt | wc -l; git merge-base HEAD master 2>/dev/null || git merge-base HEAD main
    """, timeout=90, trust=trust)
    works(done, "?? a.txt", "second")
    # Where it is written in place a person is asked about new worktrees and repositories.
    more = sandbox.run("""set -eu; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
    git worktree add -q tree HEAD; ls -d tree/.git; git worktree remove tree
    git clone -q . clone; git -C clone log -1 --format=%s""", timeout=90, trust=trust)
    assert (more.code, more.out) == (0, "tree/.git\nx\n") if trust == "medium" else more.code != 0, more
    if trust == "medium":  # staged
        assert sandbox.run_outside(["git", "status", "--short"]).out == "?? a.txt\n"
        assert sandbox.run_outside(["git", "log", "--oneline"]).code == 128
        return
    assert sandbox.run_outside(["git", "log", "--oneline"]).out.count("\n") == 3
    assert not sandbox.run_outside(["git", "status", "--porcelain", "--untracked-files=no"]).out


MAIN_C = ('#include <stdio.h>\n#include <threads.h>\nint f(void);\nint main(void) { printf("built %d\\n", f()); '
        'return 0; }\n')


def c_project(sandbox):
    sandbox.write(sandbox.project / "main.c", MAIN_C.replace("#include <threads.h>\n", ""))
    sandbox.write(sandbox.project / "f.c", "int f(void) { return 42; }\n")
    sandbox.write(sandbox.project / "Makefile", "main: main.o f.o\n\t$(CC) -o $@ $^\n")
    sandbox.write(sandbox.project / "meson.build", "project('x', 'c')\ntest('t', executable('mm', 'main.c', 'f.c'))\n")


@pytest.mark.needs("gcc", "make")
def test_make(sandbox):
    c_project(sandbox)
    before = sorted(os.listdir(sandbox.project))
    done = sandbox.run("make -j4 && ./main", timeout=90)
    works(done, "built 42")
    assert sorted(os.listdir(sandbox.project)) == before
    assert sandbox.staged("main", done.session).stat().st_size > 1000
    works(sandbox.run("make -j4 && ./main", timeout=90, trust="high"), "built 42")
    assert sandbox.run_outside(["./main"]).out == "built 42\n"


@pytest.mark.needs("meson", "ninja", "gcc")
def test_meson_and_ninja(sandbox):
    c_project(sandbox)
    works(sandbox.run("meson setup build && ninja -C build && meson test -C build && build/mm", timeout=120),
            "built 42")


@pytest.mark.needs("cargo")
def test_cargo_offline(sandbox):
    if not os.path.realpath(shutil.which("cargo")).startswith("/usr/"):
        pytest.skip("cargo is installed in the home of somebody else")
    sandbox.write(sandbox.project / "Cargo.toml", '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n')
    sandbox.write(sandbox.project / "src/main.rs", 'fn main() { println!("built {}", 42); }\n')
    works(sandbox.run("cargo build --offline && target/debug/x", timeout=120), "built 42")


@pytest.mark.needs("javac")
def test_java(sandbox):
    sandbox.write(sandbox.project / "Main.java", """
public class Main { public static void main(String[] a) throws Exception {
  Thread t = new Thread(() -> System.out.println("threaded")); t.start(); t.join();
  System.out.println("built " + 42 + " " + (Runtime.getRuntime().maxMemory() > 0)); } }
""")
    works(sandbox.run("javac Main.java && java -Xmx128m Main", timeout=120), "built 42 true", "threaded")


@pytest.mark.needs("busybox")
def test_static_programs(sandbox):
    works(sandbox.run(["busybox", "sh", "-c", "echo static; busybox ls /usr | head -1"]), "static")


@pytest.mark.parametrize("place", [".local/bin", ".cargo/bin", ".nvm/versions/node/v1.0.0/bin"])
def test_programs_of_the_home(sandbox, place):
    """What people install for themselves is found and runs; it cannot be replaced from inside."""
    tool = sandbox.write(sandbox.home / place / "mytool", "#!/bin/sh\necho tool runs\n", 0o755)
    env = {"PATH": f"{tool.parent}:/usr/bin:/bin"}
    policies = {".cargo/bin": "rust", ".nvm/versions/node/v1.0.0/bin": "node"}
    policy = None
    if place in policies and (sandbox.programs.directory / "policies").is_dir():
        names = [path.stem for path in (sandbox.programs.directory / "policies").rglob(f"{policies[place]}.yaml")]
        policy = names[0] if names else None
    done = sandbox.run("mytool; echo x >>$(command -v mytool)", env=env, policy=policy)
    assert "tool runs" in done.out, done
    assert tool.read_text() == "#!/bin/sh\necho tool runs\n"


def test_a_project_with_an_awkward_name(sandbox):
    for name in ("with space", "with\nnewline", "ä€", "\udcff\udcfe", "-dash", "$(touch x)", "'quote\""):
        project = sandbox.make_directory(sandbox.home / name)
        sandbox.own(project)
        done = sandbox.run("echo x >file; pwd", cwd=os.fsencode(project).decode(errors="surrogateescape"))
        assert done.code == 0, (name, done)
        assert not (project / "file").exists()
        assert sandbox.staged("file", done.session).read_text() == "x\n"


def test_a_project_at_any_depth(sandbox):
    deep = sandbox.home / "/".join(["d" * 100] * 25)
    sandbox.make_directory(deep)
    assert sandbox.run("echo x >file", cwd=deep, trust="high").code == 0
    assert (deep / "file").exists()
    done = sandbox.run("echo y >file", cwd=deep)
    assert done.code == 0 and (deep / "file").read_text() == "x\n"
    assert sandbox.staged("file", done.session).read_text() == "y\n"


def test_usual_places_look_usual(sandbox):
    done = sandbox.run("""
    id -un; id -gn; getent passwd $(id -u); echo ~; hostname; tty || true
    ls /dev | sort | tr '\\n' ' '; date; locale 2>/dev/null | head -1
    test -w /tmp && test -w /dev/shm && test -w /var/tmp; echo tmp=$?
    cat /etc/os-release | head -1; df / >/dev/null; uname -a; nproc; free >/dev/null
    ps -ef | tail -2; cat /proc/self/status | head -1; ls -l /proc/self/exe
    getconf PAGESIZE; head -c 4 /dev/urandom | wc -c; echo x >/dev/null; mount | wc -l
    """)
    works(done, "tmp=0", sandbox.home.name)


# --- Servers on unix sockets. ---

UNIX_SERVERS = """
import asyncio, multiprocessing, os, socket, struct, tempfile, threading, time
place = tempfile.mkdtemp()
with multiprocessing.Manager() as manager:
    shared = manager.list(); shared.append("managed"); print(list(shared)[0])

async def main():
    async def echo(reader, writer):
        credentials = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        assert struct.unpack("iII", credentials)[1:] == (os.getuid(), os.getgid())
        writer.write(await reader.readexactly(6)); await writer.drain(); writer.close()
    await asyncio.start_unix_server(echo, place + "/echo")
    reader, writer = await asyncio.open_unix_connection(place + "/echo")
    writer.write(b"echoed"); print((await reader.read()).decode())

asyncio.run(main())
server = socket.socket(socket.AF_UNIX); server.bind(place + "/full"); server.listen(0)
threading.Thread(target=lambda: (time.sleep(0.3), [server.accept() for _ in range(4)]), daemon=True).start()
for _ in range(4):
    socket.socket(socket.AF_UNIX).connect(place + "/full")
print("waited")
"""


def test_servers_on_unix_sockets(sandbox):
    works(sandbox.run(["/usr/bin/python3", "-c", UNIX_SERVERS]), "managed", "echoed", "waited")
