# SPDX-License-Identifier: Apache-2.0
"""Real clients and real servers through the network gate, spliced: nothing of them knows that it is there."""
import base64
import contextlib
import hashlib
import http.server
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import urllib.parse
import zipfile

import pytest

from atoll import wait_until
from gate import LOOPBACK, Web, policy_text, serve_beside, test_hosts


def allow(sandbox, *ports, more=""):
    return sandbox.policy(policy_text([f"{{host: web.test, ports: [{', '.join(map(str, ports))}]}}", *LOOPBACK], more))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def running(sandbox, command, port):
    """A server of the host, as the test's user, for as long as the block."""
    log = sandbox.base / "server.log"
    with open(log, "wb") as file:
        server = subprocess.Popen([str(word) for word in command], **{**sandbox.popen_keywords(), "stdout": file,
                                                                      "stderr": file})
    try:
        wait_until(lambda: answers(port) or server.poll() is not None, seconds=20, what=str(command[0]))
        assert server.poll() is None, log.read_text()
        yield
    finally:
        server.terminate()
        server.wait(timeout=20)


def connects(sandbox, done):
    lines = sandbox.audit_log(done.session).read_text().splitlines()
    return [(entry["subject"], entry["detail"]["port"], entry["verdict"]) for entry in map(json.loads, lines)
            if entry["type"] == "net.connect"]


# --- ssh ---

def start_sshd(sandbox, port):
    directory = sandbox.make_directory(sandbox.base / "sshd", 0o700)
    for name in ("host", "client"):
        sandbox.run_outside(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / name], check=True)
    sandbox.write(directory / "config", f"""Port {port}
ListenAddress 127.0.0.1
HostKey {directory}/host
AuthorizedKeysFile {directory}/client.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
""")
    if sandbox.identity.is_root:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    return directory, running(sandbox, ["/usr/sbin/sshd", "-D", "-e", "-f", directory / "config"], port)


@pytest.mark.needs("ssh", "/usr/sbin/sshd", "git")
def test_git_over_ssh(sandbox):
    """The server speaks first, both speak at once, and the session ends by half-closes."""
    port = free_port()
    directory, server = start_sshd(sandbox, port)
    served = sandbox.make_directory(sandbox.home / "served")
    for words in (["init", "-q", "r"], ["-C", "r", "-c", "user.name=T", "-c", "user.email=t@example.org", "commit",
                                        "-q", "--allow-empty", "-m", "one"],
                  ["-C", "r", "config", "receive.denyCurrentBranch", "ignore"]):
        sandbox.run_outside(["git", *words], cwd=served, check=True)
    sandbox.copy(directory / "client", sandbox.project / "key", 0o600)
    sandbox.write(sandbox.project / "known", f"[web.test]:{port} {(directory / 'host.pub').read_text()}")
    script = f"""
export GIT_SSH_COMMAND="ssh -F none -i $PWD/key -o IdentitiesOnly=yes -o UserKnownHostsFile=$PWD/known"
git clone -q ssh://{sandbox.identity.name}@web.test:{port}{served}/r cloned && cd cloned && git log --format=%s
git -c user.name=T -c user.email=t@example.org commit -q --allow-empty -m two && git push -q origin HEAD && echo pushed
"""
    with server:
        done = sandbox.run(script, policy=allow(sandbox, port), env=test_hosts(), timeout=60)
        other = sandbox.run(f"ssh -F none -p {port} -o BatchMode=yes other.test true", policy=allow(sandbox, port),
                            env=test_hosts(), timeout=30)
    assert done.code == 0 and done.out.split() == ["one", "pushed"], done
    log = sandbox.run_outside(["git", "-C", served / "r", "log", "--format=%s"], check=True).out
    assert log.split() == ["two", "one"], log
    assert connects(sandbox, done) == [("web.test", port, "allow")] * 2
    assert other.code == 255 and "resolve" in other.err, other


# --- PostgreSQL ---

POSTGRES = "/usr/lib/postgresql/15/bin"


@pytest.mark.only("user")
@pytest.mark.needs("psql", f"{POSTGRES}/initdb")
def test_psql_with_and_without_tls(sandbox, certificates):
    """It asks for TLS in its own words first (SSLRequest): the hello comes later, and is not looked at."""
    port, data = free_port(), sandbox.base / "pg"
    sandbox.run_outside([f"{POSTGRES}/initdb", "-D", data, "-A", "trust", "-U", "tester", "--no-sync", "-E", "UTF8",
                         "--locale=C"], check=True, timeout=60)
    key = sandbox.copy(certificates.key, data / "server.key", 0o600)
    options = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": data, "fsync": "off",
               "ssl": "on", "ssl_key_file": key, "ssl_cert_file": certificates.chain, "shared_buffers": "1MB"}
    sandbox.copy(certificates.ca, sandbox.project / "ca.pem", 0o644)
    words = f"psql -X -At -h web.test -p {port} -U tester -d postgres"
    query = "select count(*) from pg_stat_ssl join pg_stat_activity using (pid) where ssl and pid = pg_backend_pid()"
    script = f"""
PGSSLMODE=disable {words} -c "{query}"
PGSSLMODE=verify-full PGSSLROOTCERT=$PWD/ca.pem {words} -c "{query}"
PGSSLMODE=disable {words} -c "select repeat('x', 3000000)" | wc -c
"""
    with running(sandbox, [f"{POSTGRES}/postgres", "-D", data,
                           *(word for name, value in options.items() for word in ("-c", f"{name}={value}"))], port):
        done = sandbox.run(script, policy=allow(sandbox, port), env=test_hosts(), timeout=60)
    assert done.out.split() == ["0", "1", "3000001"], done


# --- Names, both families ---

GO = """package main
import ("bufio"; "fmt"; "net"; "os"; "time")
func main() {
    c, err := net.DialTimeout("tcp", os.Args[1], 10*time.Second)
    if err != nil { fmt.Println(err); os.Exit(1) }
    fmt.Fprintf(c, "GET /go HTTP/1.0\\r\\nHost: web.test\\r\\n\\r\\n")
    for s := bufio.NewScanner(c); s.Scan(); { fmt.Println(s.Text()) }
}
"""


@pytest.fixture(scope="module")
def go_client(tmp_path_factory):
    """A static program with a resolver of its own, which asks for both families at once."""
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    directory = tmp_path_factory.mktemp("go")
    (directory / "client.go").write_text(GO)
    subprocess.run(["go", "build", "-o", "client", "client.go"], cwd=directory, check=True, capture_output=True,
                   env={**os.environ, "CGO_ENABLED": "0", "GOCACHE": str(directory / "cache"), "GOFLAGS": "-p=1",
                        "HOME": str(directory)}, timeout=300)
    return directory / "client"


def test_a_static_go_program(sandbox, go_client):
    server = Web()
    sandbox.copy(go_client, sandbox.project / "client")
    done = sandbox.run(f"./client web.test:{server.port}; ./client other.example:{server.port}",
                       policy=allow(sandbox, server.port), env=test_hosts(), timeout=60)
    assert "hello from /go" in done.out and "no such host" in done.out, done
    assert len(server.requests) == 1
    server.close()


def test_python_requests_with_a_session(sandbox, certificates):
    server = Web(certificates.context())
    sandbox.copy(certificates.ca, sandbox.project / "ca.pem", 0o644)
    script = f"""
import requests
with requests.Session() as session:
    session.verify = "ca.pem"
    for i in range(3): print(session.get("https://web.test:{server.port}/%d" % i, timeout=10).text.strip())
try: requests.get("https://other.test:{server.port}/", timeout=10)
except requests.ConnectionError as error: print("refused")
"""
    done = sandbox.run(["/usr/bin/python3", "-c", script], policy=allow(sandbox, server.port), env=test_hosts())
    assert done.out.splitlines() == ["hello from /0", "hello from /1", "hello from /2", "refused"], done
    assert len(connects(sandbox, done)) == 1, "it keeps its connection"
    server.close()


@pytest.mark.parametrize("dead", ["::1", "127.0.0.2"])
def test_one_family_or_address_that_is_dead_costs_a_moment(sandbox, dead):
    """RFC 8305, outside as well as inside: the client has two addresses of ours, of which both work."""
    server = Web()
    hosts = {"ATOLL_TEST_HOSTS": f"web.test={dead},web.test=127.0.0.1"}
    for family in ("-4", "-6"):
        done = sandbox.run(["curl", family, "-sS", "-m", "10", "-w", "%{time_total}",
                            f"http://web.test:{server.port}/"], policy=allow(sandbox, server.port), env=hosts)
        assert done.code == 0 and float(done.out.split()[-1]) < 2, done
    server.close()


# --- Package managers ---

class Registry:
    """Files of a dictionary over HTTP, as the registries of npm, PyPI and Debian are in the end."""

    def __init__(self):
        files, asked = self.files, self.asked = {}, []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                path = urllib.parse.unquote(self.path)
                asked.append(path)
                kind, body = files.get(path, ("text/plain", None))
                self.send_response(404 if body is None else 200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        serve_beside(self.server)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def registry():
    made = Registry()
    yield made
    made.close()


def tarball(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def publish_to_npm(registry, name, version):
    package = {"name": name, "version": version, "main": "index.js"}
    packed = tarball({"package/package.json": json.dumps(package), "package/index.js": "module.exports = () => 42\n"})
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    dist = {"tarball": f"http://web.test:{registry.port}/{name}/-/{name}-{version}.tgz", "integrity": integrity}
    registry.files[f"/{name}"] = ("application/json", json.dumps(
        {"name": name, "dist-tags": {"latest": version}, "versions": {version: {**package, "dist": dist}}}).encode())
    registry.files[f"/{name}/-/{name}-{version}.tgz"] = ("application/octet-stream", packed)


@pytest.mark.needs("npm")
def test_npm_install_from_the_registry_of_its_own_configuration(sandbox, registry):
    """The rule is what `npm config get registry` says, no more."""
    publish_to_npm(registry, "small", "1.2.3")
    sandbox.write(sandbox.project / ".npmrc", f"registry=http://web.test:{registry.port}/\n")
    said = sandbox.run_outside(["npm", "config", "get", "registry"], cwd=sandbox.project, check=True).out
    place = urllib.parse.urlsplit(said.strip())
    rule = f"{{host: {place.hostname}, ports: [{place.port}]}}"
    script = ("npm install --no-audit --no-fund --no-update-notifier --fetch-retries=0 small >npm.log 2>&1 || "
              "grep code npm.log; node -p 'require(\"small\")()'")
    done = sandbox.run(script, policy=sandbox.policy(policy_text([rule, *LOOPBACK])), env=test_hosts(), timeout=90)
    assert done.out.split()[-1:] == ["42"], done
    assert registry.asked == ["/small", "/small/-/small-1.2.3.tgz"], registry.asked
    registry.asked.clear()
    # Without the rule the name does not exist, and npm says so.
    done = sandbox.run(script, policy=sandbox.policy(policy_text(LOOPBACK)), env=test_hosts(), timeout=90)
    assert done.code != 0 and "code ENOTFOUND" in done.out and not registry.asked, (done, registry.asked)


def wheel(name, version):
    packed = io.BytesIO()
    info = f"{name}-{version}.dist-info"
    files = {f"{name}.py": "answer = 42\n",
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))
    return packed.getvalue()


def test_pip_install_from_a_local_index(sandbox, registry):
    if subprocess.run(["/usr/bin/python3", "-c", "import pip"], capture_output=True, check=False).returncode != 0:
        pytest.skip("pip of the system's python3 is not installed")
    registry.files["/simple/small/"] = ("text/html", b'<a href="/f/small-1.0-py3-none-any.whl">small</a>')
    registry.files["/f/small-1.0-py3-none-any.whl"] = ("application/octet-stream", wheel("small", "1.0"))
    script = (f"/usr/bin/python3 -m pip install -q --no-cache-dir --disable-pip-version-check --target there "
              f"--retries 0 --trusted-host web.test --index-url http://web.test:{registry.port}/simple small && "
              f"PYTHONPATH=there /usr/bin/python3 -c 'import small; print(small.answer)'")
    done = sandbox.run(script, policy=allow(sandbox, registry.port), env=test_hosts(), timeout=60)
    assert done.out.split() == ["42"], done


@pytest.mark.needs("apt-get", "dpkg-deb")
def test_apt_from_a_local_repository(sandbox, registry):
    """Its downloads are made by a program of their own, which knows nothing of proxies or of us."""
    tree = sandbox.make_directory(sandbox.base / "deb" / "DEBIAN").parent
    control = "Package: small\nVersion: 1.0\nArchitecture: all\nMaintainer: T <t@example.org>\nDescription: a test\n"
    sandbox.write(tree / "DEBIAN" / "control", control)
    sandbox.run_outside(["dpkg-deb", "-b", "--root-owner-group", tree, sandbox.base / "small.deb"], check=True)
    packed = (sandbox.base / "small.deb").read_bytes()
    index = (f"{control}Filename: ./small.deb\nSize: {len(packed)}\nSHA256: {hashlib.sha256(packed).hexdigest()}\n\n")
    registry.files["/./Packages"] = ("text/plain", index.encode())
    registry.files["/./small.deb"] = ("application/octet-stream", packed)
    sandbox.write(sandbox.project / "sources", f"deb [trusted=yes] http://web.test:{registry.port} ./\n")
    script = """
mkdir -p apt/lists/partial apt/archives/partial && touch apt/status
cat >apt.conf <<END
Dir::State "$PWD/apt"; Dir::State::lists "lists"; Dir::State::status "$PWD/apt/status"; Dir::Cache "$PWD/apt";
Dir::Etc::sourcelist "$PWD/sources"; Dir::Etc::sourceparts "-"; APT::Sandbox::User ""; Acquire::Retries "0";
Dir::Log "$PWD/apt"; Acquire::Languages "none"; Acquire::GzipIndexes "false"; APT::Architecture "amd64";
END
export APT_CONFIG=$PWD/apt.conf
apt-get -q update >log 2>&1 && apt-get -q download small >>log 2>&1 || cat log
dpkg-deb -f small_1.0_all.deb Package
"""
    done = sandbox.run(script, policy=allow(sandbox, registry.port), env=test_hosts(), timeout=60)
    assert done.out.split() == ["small"], (done, registry.asked)
