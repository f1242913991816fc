# SPDX-License-Identifier: Apache-2.0
"""Real programs trust a session's authority by the files and variables of src/egress/tls/certificates.c, else not."""
import os
import pathlib
import shutil
import subprocess
import time

import pytest

NODE = ("fetch(process.argv[1]).then(r => r.text()).then(t => process.stdout.write(t),"
        " e => { console.error(e.cause || e); process.exit(1) })")
URLLIB = "import sys,urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1]).read().decode())"
REQUESTS = "import sys,requests; sys.stdout.write(requests.get(sys.argv[1]).text)"
JAVA = """import java.net.*; import java.net.http.*;
public class Get { public static void main(String[] a) throws Exception {
System.out.print(HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(a[0])).build(),
HttpResponse.BodyHandlers.ofString()).body()); } }
"""
GO = """package main
import ("fmt"; "io"; "net/http"; "os")
func main() {
	r, err := http.Get(os.Args[1])
	if err != nil { panic(err) }
	b, _ := io.ReadAll(r.Body)
	fmt.Print(string(b))
}
"""
# A client in Go that Debian has built, so that Go's own TLS is tried without its compiler.
GO_BUILT = ("printf '/\\n' >DIR/words && gobuster fuzz -u URL/FUZZ -w DIR/words -q --no-color |"
            " grep -q Status=200 && printf trusted")
# What to run, the program that it needs, and whether variables alone are enough.
CLIENTS = {
    "curl": (["curl", "-sS", "URL"], True),
    "wget": (["wget", "-qO-", "URL"], False),
    "git": (["git", "ls-remote", "URL"], True),
    "openssl": (["sh", "-c", "printf 'GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n' | openssl s_client -quiet "
                 "-verify_return_error -verify_hostname localhost -connect ${0#https://}", "URL"], True),
    "python": (["/usr/bin/python3", "-c", URLLIB, "URL"], True),
    "requests": (["/usr/bin/python3", "-c", REQUESTS, "URL"], True),
    "node": (["node", "-e", NODE, "URL"], True),
    "java": (["java", "DIR/Get.java", "URL"], False),
    "go": (["go", "run", "DIR/get.go", "URL"], True),
    "gobuster": (["sh", "-c", GO_BUILT], True),
}


class Server:
    def __init__(self, program, directory):
        self.directory = directory
        self.child = subprocess.Popen([str(program), str(directory), "localhost"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        self.variables, self.places, self.port = {}, {}, None
        for line in self.child.stdout:
            kind, *words = line.split()
            if kind == "variable":
                self.variables[words[0]] = words[1]
            elif kind == "place" and os.path.exists(words[0]):
                self.places[words[0]] = words[1]
            elif kind == "port":
                self.port = words[0]
                break
        assert self.port
        (directory / "Get.java").write_text(JAVA)
        (directory / "get.go").write_text(GO)

    def end(self):
        self.child.stdin.close()
        self.child.wait(timeout=10)
        self.child.stdout.close()

    def ask(self, words, variables, places):
        """What the client says; with places it runs in a mount namespace where the files are mounted over them."""
        url = f"https://localhost:{self.port}"
        words = [word.replace("DIR", str(self.directory)).replace("URL", url) for word in words]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "GOCACHE": str(self.directory / "go")}
        if variables:
            environment.update(self.variables)
        if places:
            script = "".join(f"mount --bind '{file}' '{place}' && " for place, file in self.places.items())
            words = ["unshare", "--mount", "sh", "-c", script + 'exec "$@"', "sh", *words]
        return subprocess.run(words, env=environment, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    built = pathlib.Path(os.environ.get("ATOLL_BIN", pathlib.Path(__file__).parents[2] / "build" / "bin")).resolve()
    program = built.parent / "host" / "tests" / "unit" / "egress" / "tls" / "trust-server"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    made = Server(program, tmp_path_factory.mktemp("trust"))
    yield made
    made.end()


def need(name):
    if name == "requests":
        if subprocess.run(["/usr/bin/python3", "-c", "import requests"], capture_output=True).returncode:
            pytest.skip("Python's requests is not installed")
    elif name != "python" and not shutil.which(name):
        pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("name", CLIENTS)
def test_by_variables(server, name):
    need(name)
    words, is_enough = CLIENTS[name]
    without = server.ask(words, False, False)
    assert b"trusted" not in without.stdout and without.returncode != 0
    done = server.ask(words, True, False)
    assert (b"trusted" in done.stdout) == is_enough, done


@pytest.mark.parametrize("name", CLIENTS)
def test_by_variables_and_mounted_files(server, name):
    need(name)
    if os.geteuid() != 0:
        pytest.skip("only root mounts over files of the system")
    done = server.ask(CLIENTS[name][0], True, True)
    assert b"trusted" in done.stdout, done


@pytest.mark.parametrize("hours, is_trusted", [(-23, True), (0, True), (23, True), (28 * 24, True), (-49, False),
                                               (40 * 24, False)])
def test_by_clients_whose_clock_is_wrong(server, hours, is_trusted):
    """Certificates begin a day ago and last for weeks; the last two are the controls: the clock is looked at."""
    request = "printf 'GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'"
    client = f"openssl s_client -quiet -verify_return_error -attime {int(time.time()) + hours * 3600}"
    done = server.ask(["sh", "-c", f"{request} | {client} -connect ${{0#https://}}", "URL"], True, False)
    assert (b"trusted" in done.stdout) == is_trusted, done
    assert is_trusted or b"not yet valid" in done.stderr or b"expired" in done.stderr, done


def test_the_system_s_authorities_are_still_trusted(server):
    system = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
    if not system.exists():
        pytest.skip("no bundle of the system")
    begin = "-----BEGIN CERTIFICATE-----"
    count = system.read_text().count(begin)
    assert (server.directory / "bundle.pem").read_text().count(begin) == count + 1
    assert (server.directory / "authority.pem").read_text().count(begin) == 1
    if shutil.which("keytool"):
        done = subprocess.run(["keytool", "-list", "-keystore", str(server.directory / "bundle.jks"), "-storepass",
                               "changeit"], capture_output=True, text=True)
        assert done.returncode == 0 and f"contains {count + 1} entries" in done.stdout, done


def test_no_key_is_written(server):
    for path in server.directory.iterdir():
        if path.is_file():
            assert b"PRIVATE" not in path.read_bytes()
