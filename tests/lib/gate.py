# SPDX-License-Identifier: Apache-2.0
"""Servers of the host for the tests of the network gate, what they heard, and policies that lead to them."""
import contextlib
import http.server
import os
import pathlib
import socket
import ssl
import subprocess
import tempfile
import threading

NAMES = ("web.test", "other.test", "a.wild.test", "wild.test", "six.test")
# Where agents ask for their log-in, in certificates alone: names lead there only where a test says so.
ISSUERS = ("auth.openai.com", "platform.claude.com", "api.anthropic.com", "oauth2.googleapis.com")


class Certificates:
    """A CA of this test session, and one certificate for all names."""

    def __init__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="atolltest-ca-", dir="/tmp"))
        os.chmod(self.directory, 0o755)
        self.ca, self.key, self.chain = (self.directory / name for name in ("ca.pem", "key.pem", "chain.pem"))
        san = ",".join([*(f"DNS:{name}" for name in (*NAMES, *ISSUERS)), "DNS:localhost"])
        for words in (
                ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                 "-subj", "/CN=test CA", "-keyout", "ca.key", "-out", "ca.pem"],
                ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=web.test",
                 "-keyout", "key.pem", "-out", "request.pem"],
                ["x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                 "-days", "2", "-extfile", "san", "-out", "chain.pem"]):
            (self.directory / "san").write_text(f"subjectAltName={san}\n")
            subprocess.run(["openssl", *words], cwd=self.directory, check=True, capture_output=True)
        for path in self.directory.iterdir():
            path.chmod(0o644)

    def context(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain, self.key)
        return context


def serve_beside(server):
    """Runs a server of socketserver's kind until its shutdown(), which waits for the next look at whether it is wanted:
    half a second apart if nothing is said."""
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()


class Listener:
    """Accepts on a loopback address and calls serve(connection) for each; heard has what they returned."""

    def __init__(self, serve=None, address="127.0.0.1", port=0):
        self.serve, self.heard = serve, []
        self.socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((address, port))
        self.socket.listen(1024)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection):
        with connection:
            connection.settimeout(30)
            try:
                self.heard.append(self.serve(connection) if self.serve else connection.recv(4096))
            except OSError as error:
                self.heard.append(error)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.requests.append((self.headers.get("Host"), self.path))
        if self.server.directory:
            self.directory = self.server.directory
            super().do_GET()
            return
        body = f"hello from {self.path}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Web:
    """HTTP, with a context of Certificates HTTPS; requests has (Host, path) of each."""

    def __init__(self, context=None, address="127.0.0.1", directory=None, port=0):
        class Server(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
            request_queue_size = 1024

            def handle_error(self, request, client_address):
                pass

            def finish_request(self, request, client_address):
                if context:
                    request.settimeout(20)
                    request = context.wrap_socket(request, server_side=True)
                super().finish_request(request, client_address)

        self.server = Server((address, port), Handler)
        self.server.requests, self.server.directory = [], directory and str(directory)
        self.port = self.server.server_address[1]
        self.requests = self.server.requests
        serve_beside(self.server)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def policy_text(rules, more="", extends="medium"):
    """A policy whose network.allow is these lines of YAML; loopback of the host is listed so that names may lead
    there."""
    lines = "".join(f"    - {rule}\n" for rule in rules)
    allow = f"  allow:\n{lines}" if lines else "  allow: []\n"
    return f"atoll: 1\nextends: {extends}\nnetwork:\n{allow}{more}"


LOOPBACK = ("{cidr: 127.0.0.0/8}", "{cidr: \"::1/128\"}")


def test_hosts(address="127.0.0.1", names=NAMES):
    return {"ATOLL_TEST_HOSTS": ",".join(f"{name}={address}" for name in names)}


test_hosts.__test__ = False


def gate_of(box):
    """The pids of gates that run for this test."""
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{entry.name}/exe") == str(box.programs.program("atoll-egress")):
                found.append(int(entry.name))
    return found


def cpu_ticks(pid):
    """What a process has used so far, in hundredths of a second."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
