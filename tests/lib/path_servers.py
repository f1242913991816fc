# SPDX-License-Identifier: Apache-2.0
"""Real servers of HTTP on loopback that tell which path they take a target for: nginx, apache2, and what people write
with node, Go, Python, Tomcat and Jetty; by themselves and behind one another."""
import base64
import contextlib
import http.server
import os
import pathlib
import posixpath
import shutil
import socket
import subprocess
import urllib.parse

from atoll import wait_until
from gate import serve_beside

SOURCES = pathlib.Path(__file__).with_name("path-servers")
JAVA = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx128m"]
JARS = {
    "JettyPaths": ["jetty9-server", "jetty9-util", "jetty9-http", "jetty9-io", "servlet-api"],
    "TomcatPaths": [f"tomcat10-{name}" for name in ("catalina", "coyote", "juli", "servlet-api", "util", "util-scan",
                                                    "annotations-api", "jni", "api", "el-api", "jsp-api",
                                                    "jaspic-api", "jasper")],
}
NGINX = """worker_processes 1; daemon off; pid {root}/pid; error_log {root}/error.log;
events {{ worker_connections 512; }}
http {{ access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fcgi;
uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi; keepalive_requests 10000000; default_type text/plain;
large_client_header_buffers 4 32k; {servers} }}
"""
APACHE = """ServerRoot {root}
PidFile {root}/apache.pid
ErrorLog {root}/apache.log
LogLevel crit
ServerName localhost
DocumentRoot {root}/empty
MaxKeepAliveRequests 0
KeepAliveTimeout 60
StartServers 1
ServerLimit 1
ThreadsPerChild 64
MaxRequestWorkers 64
{user}
{modules}
<Directory {root}/empty>
Require all granted
</Directory>
{hosts}
"""
MODULES = ("mpm_event", "authz_core", "headers", "proxy", "proxy_http")

# What stands behind others, by name: each undoes escapes once more, in a way of its own.
BEHIND = ("node: decoded, normalised", "node: URL, decoded", "node: parameters dropped", "node: express, routed",
          "go: Clean", "tomcat: decode", "jetty: path", "python: http.server")


def nginx_servers(behind):
    """Directives of a server, and its name; behind has the servers that others stand in front of."""
    yield "location / { return 200 $uri; }", "nginx"
    yield "merge_slashes off; location / { return 200 $uri; }", "nginx: merge_slashes off"
    yield "location /v1/ { return 200 $uri; } location / { return 200 $uri; }", "nginx: location"
    for server in behind:
        url = f"http://127.0.0.1:{server.port}"
        more = 'proxy_http_version 1.1; proxy_set_header Connection "";'
        yield f"location / {{ {more} proxy_pass {url}/; }}", f"nginx, {server.name}"
        yield f"merge_slashes off; location / {{ {more} proxy_pass {url}/; }}", \
            f"nginx: merge_slashes off, {server.name}"
        yield f"location / {{ {more} rewrite ^/(.*)$ /$1 break; proxy_pass {url}; }}", f"nginx: rewrite, {server.name}"
        yield f"location ~ ^/(.*)$ {{ {more} proxy_pass {url}/$1; }}", f"nginx: captured, {server.name}"


def apache_hosts(behind):
    for slashes in ("Off", "On", "NoDecode"):
        for merging in ("On", "Off"):
            yield f"AllowEncodedSlashes {slashes}\nMergeSlashes {merging}", f"apache: {slashes}, merging {merging}"
    for server in behind:
        url = f"http://127.0.0.1:{server.port}"
        yield f"AllowEncodedSlashes On\nProxyPass / {url}/", f"apache, {server.name}"
        yield f"AllowEncodedSlashes NoDecode\nProxyPass / {url}/ nocanon", f"apache: nocanon, {server.name}"
        yield f"AllowEncodedSlashes On\nProxyPass / {url}/ mapping=servlet", f"apache: servlet, {server.name}"


def free_ports(count):
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


class Server:
    """One way to read a target; tells(status, headers, body) is the path that it took, None: it refused."""

    def __init__(self, port, name, tells=None):
        self.port, self.name = port, name
        self.tells = tells or take_body
        self.socket, self.rest = None, b""

    def connect(self):
        self.close()
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket, self.rest = None, b""

    def receive(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError
        self.rest += data

    def take_chunks(self):
        body = b""
        while True:
            while b"\r\n" not in self.rest:
                self.receive()
            line, _, rest = self.rest.partition(b"\r\n")
            size = int(line.split(b";")[0], 16)
            while len(rest) < size + 2:
                self.receive()
                rest = self.rest.partition(b"\r\n")[2]
            body += rest[:size]
            self.rest = rest[size + 2:]
            if not size:
                return body

    def take_body(self, status, headers):
        if status in (204, 304):
            return b""
        if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            return self.take_chunks()
        if b"content-length" not in headers:
            with contextlib.suppress(EOFError):
                while True:
                    self.receive()
            return self.rest
        size = int(headers[b"content-length"])
        while len(self.rest) < size:
            self.receive()
        body, self.rest = self.rest[:size], self.rest[size:]
        return body

    def exchange(self, target):
        self.socket.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while b"\r\n\r\n" not in self.rest:
            self.receive()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines[1:])}
        status = int(lines[0].split()[1])
        body = self.take_body(status, headers)
        if headers.get(b"connection", b"").lower() == b"close" or status >= 400:
            self.close()
        return status, headers, body

    def resolve(self, target):
        """The path that it takes the target (bytes) for; None: it refuses it, or sends the client elsewhere."""
        for attempt in range(2):
            try:
                if not self.socket:
                    self.connect()
                return self.tells(*self.exchange(target))
            except (EOFError, ConnectionError):
                self.close()   # it does so after an error, or answers none at all
                if attempt:
                    return None
        return None


def take_body(status, _, body):
    return body if status == 200 else None


def take_header(status, headers, _):
    """apache2 finds no file, but has told for which path it looked."""
    return base64.b64decode(headers[b"x-path"]) if status in (200, 404) and b"x-path" in headers else None


class PythonHandler(http.server.SimpleHTTPRequestHandler):
    disable_nagle_algorithm = True
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        # http.server has read it as Latin-1.
        self.path = self.path.encode("latin-1").decode("utf-8", "surrogateescape")
        body = self.server.resolve(self).encode("utf-8", "surrogateescape")
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def translated(handler):
    handler.directory = "/"
    return handler.translate_path(handler.path)


def path_info(handler):
    """As PEP 3333 has it, and a program that joins it to a directory."""
    path = urllib.parse.unquote(handler.path.partition("?")[0], "utf-8", "surrogateescape")
    return posixpath.normpath(path)


def split_url(handler):
    return posixpath.normpath(urllib.parse.unquote(urllib.parse.urlsplit(handler.path).path, "utf-8",
                                                   "surrogateescape"))


PYTHON = {"http.server": translated, "PATH_INFO": path_info, "urlsplit": split_url}


def start(words, port, log):
    """Runs a server until it listens there."""
    child = subprocess.Popen(words, stderr=subprocess.DEVNULL)

    def is_there():
        assert child.poll() is None, log.read_text() if log.exists() else words
        with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False
    wait_until(is_there, 20, words[0])
    return child


def start_nginx(root, text, port):
    conf, log = root / "nginx.conf", root / "error.log"
    conf.write_text(text)
    return start(["/usr/sbin/nginx", "-c", str(conf), "-e", str(log)], port, log)


class Servers:
    """All of those that are installed; missing has the names of those that are not."""

    def __init__(self, root):
        self.root, self.all, self.missing, self.children, self.own = root, [], [], [], []
        (root / "empty").mkdir()
        for directory in (root, root / "empty"):
            directory.chmod(0o755)
        started = [self.start_program(name, words) for name, words in (
            ("node", self.node), ("go", self.go), ("jetty", lambda: self.java("JettyPaths")),
            ("tomcat", lambda: self.java("TomcatPaths")))]
        for name, resolve in PYTHON.items():
            self.start_python(f"python: {name}", resolve)
        for child in filter(None, started):
            self.take_ports(child)
        behind = [server for server in self.all if server.name in BEHIND]
        self.start_nginx(list(nginx_servers(behind)))
        self.start_apache(list(apache_hosts(behind)))

    def close(self):
        for server in self.all:
            server.close()
        for server in self.own:
            server.shutdown()
            server.server_close()
        for child in self.children:
            if child.stdin:
                child.stdin.close()
            else:
                child.terminate()
        for child in self.children:
            child.wait(timeout=30)

    # --- Programs of their own: they print their ports, and end when their input does. ---

    def node(self):
        return ["node", str(SOURCES / "server.js")] if shutil.which("node") else None

    def go(self):
        if not shutil.which("go"):
            return None
        program = self.root / "go-server"
        environment = {**os.environ, "GO111MODULE": "off", "GOCACHE": str(self.root / "go"), "GOFLAGS": ""}
        subprocess.run(["go", "build", "-o", str(program), str(SOURCES / "server.go")], env=environment, check=True)
        return [str(program)]

    def java(self, name):
        jars = [f"/usr/share/java/{jar}.jar" for jar in JARS[name]]
        if not shutil.which("java") or not all(map(os.path.exists, jars)):
            return None
        return [*JAVA, "-cp", ":".join(jars), str(SOURCES / f"{name}.java"), str(self.root)]

    def start_program(self, name, words_of):
        words = words_of()
        if not words:
            self.missing.append(name)
            return None
        child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 text=True, env={**os.environ, "NODE_PATH": "/usr/share/nodejs"})
        self.children.append(child)
        return child

    def take_ports(self, child):
        for line in child.stdout:
            if line == "ready\n":
                return
            port, _, name = line.strip().partition(" ")
            self.all.append(Server(int(port), name))
        raise AssertionError(f"{child.args} ended: {child.wait()}")

    def start_python(self, name, resolve):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), PythonHandler)
        server.daemon_threads, server.resolve = True, resolve
        serve_beside(server)
        self.own.append(server)
        self.all.append(Server(server.server_address[1], name))

    # --- Servers with many ports. ---

    def start_nginx(self, rows):
        if not os.path.exists("/usr/sbin/nginx"):
            self.missing.append("nginx")
            return
        ports = free_ports(len(rows))
        servers = "".join(f"server {{ listen 127.0.0.1:{port}; {directives} }}\n"
                          for port, (directives, _) in zip(ports, rows))
        self.children.append(start_nginx(self.root, NGINX.format(root=self.root, servers=servers), ports[-1]))
        self.all += [Server(port, name) for port, (_, name) in zip(ports, rows)]

    def start_apache(self, rows):
        if not os.path.exists("/usr/sbin/apache2"):
            self.missing.append("apache2")
            return
        ports = free_ports(len(rows))
        hosts = "".join(f"Listen 127.0.0.1:{port}\n<VirtualHost 127.0.0.1:{port}>\n{directives}\n"
                        'Header always set X-Path "expr=%{base64:%{REQUEST_URI}}"\n</VirtualHost>\n'
                        for port, (directives, _) in zip(ports, rows))
        modules = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in MODULES)
        user = "User nobody\nGroup nogroup" if os.getuid() == 0 else ""
        conf = self.root / "apache.conf"
        conf.write_text(APACHE.format(root=self.root, hosts=hosts, modules=modules, user=user))
        self.children.append(start(["/usr/sbin/apache2", "-D", "FOREGROUND", "-f", str(conf)], ports[-1],
                                   self.root / "apache.log"))
        self.all += [Server(port, name, take_body if "ProxyPass" in directives else take_header)
                     for port, (directives, name) in zip(ports, rows)]
