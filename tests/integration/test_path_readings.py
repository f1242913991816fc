# SPDX-License-Identifier: Apache-2.0
"""`http: paths` against real servers: whatever a target is written like, the path that a server takes it for is one of
those by which atoll judges it, so that no rule is passed by a spelling."""
import os
import pathlib
import posixpath
import random
import re
import shutil
import subprocess
import tempfile

import pytest

from gate import LOOPBACK, policy_text, test_hosts
from path_servers import Servers, free_ports, start_nginx
from seeds import seeds

pytestmark = pytest.mark.needs("nginx", "node")

TARGETS = 120       # of one seed
CHAINS = 6          # one server behind another: so many of them for each target
ALLOWED, DENIED = b"/v1", b"/admin"
# What reached /admin/ of nginx once.
KNOWN = [b"/v1/..%2fadmin/x%252f..%252f..%252f..%252f..%252fv1%252fy", b"/v1/..%2fadmin/;/..%2fv1/y"]
# Each was read in a way that nobody had thought of, by one server or behind one.
FOUND = [b"/v1/..;/admin/x/..;//v1", b"//admin/v1/x//v1/y", b"//admin/\\/v1/x", b"/v1/%20/admin/../%20",
         b"/%2fv1/%2E./admin/x/%2fv1/y", b"/v1/./../a%64min/x;a=b/../%EF%BC%9b%E2%88%95../v1/y",
         b"/./v1/admin/..?x=/v1/y", b"/V1/../Admin/x%3b%3b", b"/%2fv1%2F..%2Fadmin/x%2f..%2f..%2F..%2fa%2fv1/y",
         b"/v1%2fx%23/%C0%AE%C0%AE%2f%2e%2E%2fadmin%2f%78%3F%78=/v1%2Fy", b"/v1;a/..;/admin/x;/v1",
         b"/v1/x;/../../\\/admin/x\\..\\v1\\y", b"/v1/admin/../..;/v1/%20", b"///admin/v1/x?x=/v1//y"]


# --- Targets: a way out of the allowed directory, written so that another reader sees it stay there. ---

WAYS = [b"/v1/../admin/x", b"/v1/a/../../admin/x", b"/v1/../v1/../admin", b"/v1/./../admin/x", b"/v1//../../admin/x",
        b"/v1/x;/../../admin/x", b"/admin/x", b"/v1/..;/admin/x", b"//v1/../admin/x", b"/v1/x?/../../admin/x",
        b"/v1/x#/../../admin/x", b"/v1/a/b", b"/v1/a/../b", b"/V1/../Admin/x", b"/v1/admin/..", b"//admin/v1/x"]
TAILS = [b"", b"", b"/..", b"/../v1/y", b"/../../v1/y", b"/;/../v1/y", b"/../../../v1/y", b";/v1", b"?x=/v1/y",
         b"/..;/v1", b"//v1/y", b"\\..\\v1\\y"]
FILLERS = [b"/.", b"/", b"/a/..", b";a", b";a=b/..", b"/;", b"/%20", b"/a%252f..", b"%3b", b"/\\", b"/a%00",
           "/字".encode()]
LOOK_ALIKES = {b"/": [b"\\", "／".encode(), b"\xc0\xaf", b"\xe0\x80\xaf", b"%u002f", "∕".encode()],
               b".": ["．".encode(), b"\xc0\xae", b"%u002e", "․".encode()],
               b"%": ["％".encode()], b";": ["；".encode()], b"\\": [b"/"]}


def spelled(byte, random_, depth):
    """One byte of a path, escaped so many times, in one of the ways there are."""
    if depth and random_.random() < 0.12:
        return b"".join(spelled(bytes([one]), random_, depth) for one in random_.choice(LOOK_ALIKES.get(byte, [byte])))
    text = byte
    for _ in range(depth):
        part = random_.randrange(len(text)) if text.startswith(b"%") and random_.random() < 0.3 else 0
        escaped = b"%%%02x" % text[part]
        text = text[:part] + (escaped.upper() if random_.random() < 0.5 else escaped) + text[part + 1:]
    return text


def target(random_):
    text = random_.choice(WAYS) + random_.choice(TAILS)
    for _ in range(random_.choice((0, 0, 1, 1, 2))):
        at = random_.choice([match.start() for match in re.finditer(b"/", text)] + [len(text)])
        text = text[:at] + random_.choice(FILLERS) + text[at:]
    rate = random_.choice((0, 0.1, 0.3, 0.6))
    depths = random_.choice(((1,), (1, 1, 2), (1, 2, 3)))
    out = b""
    for index in range(len(text)):
        byte = text[index:index + 1]
        is_special = byte in b"/.;\\?#%"
        hidden = index and random_.random() < (rate if is_special else rate / 8)
        out += spelled(byte, random_, random_.choice(depths)) if hidden else byte
    return out


# --- What atoll says. ---

class Judge:
    def __init__(self):
        default = pathlib.Path(__file__).parents[2] / "build" / "bin"
        built = pathlib.Path(os.environ.get("ATOLL_BIN", default)).resolve()
        program = built.parent / "host" / "tests" / "unit" / "http" / "judge-targets"
        if not program.exists():
            pytest.skip(f"{program} is not built")
        self.words = [str(program), f"{ALLOWED.decode()}/**", f"{DENIED.decode()}/**"]

    def judge(self, targets):
        """For each: None (malformed), or whether each of the two rules lets it through, and the readings."""
        lines = "".join(f"{one.hex()}\n" for one in targets)
        done = subprocess.run(self.words, input=lines, capture_output=True, text=True, check=True)
        for line in done.stdout.splitlines():
            words = line.split()
            yield None if words == ["malformed"] else Judgement(
                [word == "allow" for word in words[:2]], None if words[2] == "-" else bytes.fromhex(words[2]),
                [bytes.fromhex(word) for word in words[3:]])


class Judgement:
    def __init__(self, passes, certain, readings):
        self.passes, self.certain = passes, certain
        self.readings = {one.rstrip(b"/") for one in readings}

    def knows(self, path):
        """Whether it is a reading, a slash at the end apart, which is nothing to a rule that refuses."""
        for spelling in spellings(plain(path)):
            spelling = spelling.rstrip(b"/")
            if spelling in self.readings or (self.certain is not None and is_below(spelling, self.certain)):
                return True
        return False


FREE = frozenset(byte for byte in range(0x20, 256) if byte != 0x7f and byte not in b":/?#[]@!$&'()*+,;=%\\")


def plain(path):
    """As readings are: escapes of what means the same escaped and not are undone, others in capitals."""
    once = re.sub(b"%([0-9A-Fa-f]{2})", lambda match: bytes([int(match[1], 16)]) if int(match[1], 16) in FREE
                  else match[0].upper(), path)
    return re.sub(b"%[0-9A-Fa-f]{2}", lambda match: match[0].upper(), once)


def spellings(path):
    """What some servers tell in other words: as UTF-8 what came in Latin-1, escaped anew what came without escapes."""
    yield path
    yield path.replace(b"%5C", b"\\")
    yield re.sub(b"[\xc2\xc3][\x80-\xbf]", lambda match: match[0].decode().encode("latin-1"), path)


def is_below(path, directory):
    directory = directory.rstrip(b"/")
    return path == directory or path.startswith(directory + b"/")


def resolved(path):
    return posixpath.normpath(b"/" + plain(path).lstrip(b"/"))


# --- The two together. ---

@pytest.fixture(scope="module")
def servers():
    root = pathlib.Path(tempfile.mkdtemp(prefix="atolltest-paths-", dir="/tmp"))
    made = Servers(root)
    yield made
    made.close()
    shutil.rmtree(root)


def compare(servers, random_, targets):
    """What of the rules was passed, and which paths were no readings; where the servers went."""
    wrong, strange, escaped = [], [], {}
    chains = [server for server in servers.all if ", " in server.name and not server.name.startswith("node")]
    singles = [server for server in servers.all if server not in chains]
    for one, judgement in zip(targets, Judge().judge(targets)):
        if not judgement:
            continue   # the gate answers with 400
        is_found = one in KNOWN or one in FOUND
        for server in singles + (chains if is_found else random_.sample(chains, min(CHAINS, len(chains)))):
            path = server.resolve(one)
            if path is None or b"\xef\xbf\xbd" in path:
                continue
            known = (server.name, one, path)
            if judgement.passes[0] and not is_below(resolved(path), ALLOWED):
                wrong.append(known)
            if judgement.passes[1] and is_below(resolved(path).lower(), DENIED):
                wrong.append(known)
            if not judgement.knows(path):
                strange.append(known)
            if one.startswith(ALLOWED + b"/") and is_below(resolved(path), DENIED):
                escaped.setdefault(server.name, []).append(one)
    return wrong, strange, escaped


@pytest.mark.parametrize("seed", seeds(1))
def test_no_server_leaves_the_readings(servers, seed):
    random_ = random.Random(seed)
    targets = KNOWN + FOUND + sorted({target(random_) for _ in range(TARGETS)})
    wrong, strange, escaped = compare(servers, random_, targets)
    assert not wrong, (len(wrong), wrong[:20])
    assert not strange, (len(strange), strange[:20])
    # Without a gate they do get there.
    assert set(KNOWN) <= set(escaped["nginx"]), escaped["nginx"][:5]
    assert all(escaped.get(name) for name in ("node: decoded, normalised", "python: http.server")), escaped.keys()
    assert sum(map(len, escaped.values())) > TARGETS


def test_all_servers_are_there(servers):
    """Those that are not were left out above."""
    if servers.missing:
        pytest.skip(f"not installed: {', '.join(servers.missing)}")


# --- The gate itself, between curl and nginx. ---

KEY = "sk-0123456789abcdefghijklmnop"
NGINX = """worker_processes 1; daemon off; pid {root}/pid; error_log {root}/error.log;
events {{ worker_connections 64; }}
http {{ log_format all "$host $server_protocol $http_x_api_key $uri"; access_log {root}/access.log all;
client_body_temp_path {root}/body; proxy_temp_path {root}/proxy; fastcgi_temp_path {root}/fcgi;
uwsgi_temp_path {root}/uwsgi; scgi_temp_path {root}/scgi; ssl_certificate {certificates}/chain.pem;
ssl_certificate_key {certificates}/key.pem;
server {{ listen 127.0.0.1:{port} ssl http2; listen 127.0.0.1:{other} ssl http2; location / {{ return 200; }} }} }}
"""


class Secure:
    """nginx with TLS on two ports; seen() has (host, protocol, key, path) of each request that came."""

    def __init__(self, certificates):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="atolltest-nginx-", dir="/tmp"))
        self.port, self.other = free_ports(2)
        self.root.chmod(0o755)
        conf = NGINX.format(root=self.root, certificates=certificates.directory, port=self.port, other=self.other)
        self.child = start_nginx(self.root, conf, self.port)

    def seen(self):
        return [tuple(line.split(" ", 3)) for line in (self.root / "access.log").read_text().splitlines()]

    def close(self):
        self.child.terminate()
        self.child.wait(timeout=30)
        shutil.rmtree(self.root)


@pytest.fixture
def secure(certificates):
    made = Secure(certificates)
    yield made
    made.close()


def curls(urls, options=""):
    """A script that prints the status of each, as a line."""
    return "\n".join(f"curl -s --path-as-is -m 30 {options} -o /dev/null -w '%{{http_code}}\\n' '{url}'"
                     for url in urls)


def explained(sandbox, policy, url):
    done = sandbox.run_atoll("policy", "explain", "-p", str(policy), "http.request", "GET", url, cwd=sandbox.project)
    return done.code == 0


def outside(certificates, names):
    return {**test_hosts("127.0.0.1", names), "SSL_CERT_FILE": str(certificates.ca)}


def test_no_spelling_takes_a_key_to_another_path(sandbox, certificates, secure):
    """Both versions of HTTP; where no rule is about paths, all of it goes through, with the key."""
    assert sandbox.run_atoll("secret", "set", "model", stdin=KEY.encode()).code == 0
    inject = "inject: {header: x-api-key, secret: model}"
    policy = sandbox.policy(policy_text([
        f'{{host: web.test, ports: [{secure.port}], http: [{{paths: ["/v1/**"]}}], {inject}}}',
        f"{{host: other.test, ports: [{secure.port}], {inject}}}", *LOOPBACK]))
    bad = [known.decode() for known in KNOWN] + ["/v1/..%2fadmin", "/v1/..%5Cadmin/x", "/v1/x?/../../admin"]
    good = ["/v1/x", "/v1/a%2Fb", "/v1/a;b=1//c"]
    urls = [f"https://{host}:{secure.port}{path}" for host in ("web.test", "other.test") for path in bad + good]
    done = sandbox.run("\n".join((curls(urls, "--http1.1"), curls(urls, "--http2"))), policy=policy,
                       env=outside(certificates, ("web.test", "other.test")))
    answers = ["403"] * len(bad) + ["200"] * (len(good) + len(bad) + len(good))
    assert done.out.split() == answers * 2, done
    assert [explained(sandbox, policy, url) for url in urls] == [answer == "200" for answer in answers]
    seen = secure.seen()
    assert {key for _, _, key, _ in seen} == {KEY}
    assert {protocol for _, protocol, _, _ in seen} == {"HTTP/1.1", "HTTP/2.0"}
    assert all(path.startswith("/v1/") for host, _, _, path in seen if host == "web.test"), seen
    # What they lead to without the rule.
    assert sum(path.startswith("/admin/") for host, _, _, path in seen if host == "other.test") >= 2 * len(KNOWN), seen


def test_listed_requests_hold_where_the_network_is_open(sandbox, certificates, secure):
    """`http:` of an allow rule did nothing under default: allow: the host got every request, on every port."""
    listed = 'http: [{methods: [GET], paths: ["/v1/**"]}]'
    policy = sandbox.policy(policy_text([f"{{host: web.test, ports: [{secure.port}], {listed}}}",
                                         f'{{host: "*.wild.test", {listed}}}', *LOOPBACK], "  default: allow\n"))
    assert sandbox.run_atoll("policy", "check", str(policy), cwd=sandbox.project).code == 0
    rows = [("web.test", secure.port, "/v1/x", "200"), ("web.test", secure.port, "/admin", "403"),
            ("web.test", secure.port, "/v1/..%2fadmin/", "403"), ("web.test", secure.other, "/v1/x", "000"),
            ("a.wild.test", secure.other, "/v1/x", "200"), ("a.wild.test", secure.port, "/x", "403"),
            ("other.test", secure.other, "/any", "200")]
    urls = [f"https://{host}:{port}{path}" for host, port, path, _ in rows]
    by_address = curls([urls[1]], f"--connect-to web.test:{secure.port}:127.0.0.1:{secure.port}")
    done = sandbox.run(f"{curls(urls)}\n{by_address}", policy=policy,
                       env=outside(certificates, ("web.test", "a.wild.test", "other.test")))
    assert done.out.split() == [answer for *_, answer in rows] + ["000"], done
    assert [explained(sandbox, policy, url) for url in urls] == [answer == "200" for *_, answer in rows]
    assert sorted((host, path) for host, _, _, path in secure.seen()) == \
        [("a.wild.test", "/v1/x"), ("other.test", "/any"), ("web.test", "/v1/x")]
    refused = {denial["rule"] for denial in done.report["denials"]}
    assert {"network.allow[0]", "network.allow[1]"} <= refused, refused
