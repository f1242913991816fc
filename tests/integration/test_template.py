# SPDX-License-Identifier: Apache-2.0
"""Systems in the place of the machine's: what is taken of archives and images, what is refused, what runs in them."""
import hashlib
import io
import json
import os
import tarfile

import pytest

from service import Service

BUSYBOX = "/bin/busybox"
APPLETS = ("sh", "cat", "id", "ls", "touch", "cp", "chown", "true", "env")
NEW_PROGRAMS = "atoll: 1\nextends: low\ndegrade: [cgroup.memory]\nexec: {new_binaries: true}\n"

pytestmark = pytest.mark.needs("busybox")


def add(archive, name, content=None, kind=None, mode=0o755):
    """content None: a directory; of a link where it leads."""
    item = tarfile.TarInfo(name)
    item.mode, item.mtime = mode, 1600000000
    if kind:
        item.type, item.linkname = kind, content or ""
        archive.addfile(item)
    elif content is None:
        item.type = tarfile.DIRTYPE
        archive.addfile(item)
    else:
        item.size = len(content)
        archive.addfile(item, io.BytesIO(content))


def tar(*entries, mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for entry in entries:
            add(archive, *entry)
    return out.getvalue()


def system():
    with open(BUSYBOX, "rb") as stream:
        programs = [("bin/busybox", stream.read())]
    programs += [(f"bin/{name}", "busybox", tarfile.SYMTYPE) for name in APPLETS]
    return [("./", None), ("bin", None), ("etc/passwd", b"root:x:0:0::/root:/bin/sh\n"), ("etc/mark", b"of the root\n"),
            *programs]


def put(sandbox, name, content):
    path = sandbox.base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    for part in (path, path.parent):
        sandbox.own(part)
    return str(path)


def template(sandbox, *words, code=0):
    done = sandbox.run_atoll("template", *words)
    assert done.code == code, done
    return done


def imported(sandbox, name):
    return json.loads(template(sandbox, "show", "--json", name).out)


def tree_of(sandbox, name):
    return sandbox.state / "atoll" / "roots" / "names" / name / "root"


def blobs(*blobs_):
    return {f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}": blob for blob in blobs_}


def oci(*layers, config=None):
    def descriptor(blob):
        return {"digest": "sha256:" + hashlib.sha256(blob).hexdigest(), "size": len(blob)}

    described = json.dumps({"architecture": "any", "config": config or {}}).encode()
    manifest = json.dumps({"schemaVersion": 2, "config": descriptor(described),
                           "layers": [descriptor(layer) for layer in layers]}).encode()
    index = {"manifests": [{"platform": {"os": "linux", "architecture": "s390x"}, "digest": "sha256:" + 64 * "0"},
                           descriptor(manifest)]}
    return {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": json.dumps(index).encode(),
            **blobs(*layers, manifest, described)}


def docker(*layers, config=None):
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    return {**dict(zip(names, layers)), "about.json": json.dumps({"config": config or {}}).encode(),
            "manifest.json": json.dumps([{"Config": "about.json", "Layers": names}]).encode()}


LAYERS = (tar(*system(), ("a/gone", b"1"), ("a/stays", b"2"), ("full/x", b"3"), ("usr/lib", None),
              ("lib", "usr/lib", tarfile.SYMTYPE), ("dev/sda", None, tarfile.BLKTYPE)),
          tar(("full/y", b"4"), ("a/.wh.gone", b""), ("full/.wh..wh..opq", b""), ("lib/through", b"5"), mode="w:gz"))


@pytest.mark.parametrize("form", ["oci directory", "oci tarball", "docker"])
def test_an_image_is_its_layers_one_upon_the_other(sandbox, form):
    parts = docker(*LAYERS) if form == "docker" else oci(*LAYERS)
    if form == "oci directory":
        for name, content in parts.items():
            put(sandbox, f"image/{name}", content)
        for directory in ("image/blobs", "image"):
            sandbox.own(sandbox.base / directory)
        source = str(sandbox.base / "image")
    else:
        source = put(sandbox, "image.tar", tar(*parts.items()))
    template(sandbox, "import", source, "layered")
    root = tree_of(sandbox, "layered")
    assert not (root / "a/gone").exists() and (root / "a/stays").read_bytes() == b"2"
    assert [entry.name for entry in (root / "full").iterdir()] == ["y"]
    assert (root / "usr/lib/through").read_bytes() == b"5" and (root / "lib").is_symlink()
    assert imported(sandbox, "layered")["layers"] == 2 and imported(sandbox, "layered")["left_out"] == 1
    assert not (root / "dev/sda").exists()


def test_the_same_content_is_kept_once_and_goes_with_its_last_name(sandbox):
    source = put(sandbox, "one.tar", tar(*system()))
    template(sandbox, "import", source)
    template(sandbox, "import", source, "two")
    assert imported(sandbox, "one")["id"] == imported(sandbox, "two")["id"]
    tree = tree_of(sandbox, "one").resolve()
    template(sandbox, "remove", "one")
    assert tree.exists()
    template(sandbox, "remove", "two")
    assert not tree.exists() and "two" not in template(sandbox, "list").out
    assert "no template" in template(sandbox, "remove", "two", code=127).err


HOSTILE = {
    "dots": (tar(("../../planted", b"x")), "../../planted"),
    "dots inside": (tar(("a/../../planted", b"x")), "planted"),
    "hard link": (tar(("h", "../../../../etc/passwd", tarfile.LNKTYPE)), "h"),
    "hard link to a link": (tar(("s", "/etc/passwd", tarfile.SYMTYPE), ("h", "s", tarfile.LNKTYPE)), "h"),
    "no archive": (b"not a tarball, " * 100, "no tarball"),
    "cut": (tar(("big", bytes(200000)))[:50000], "cannot be read|damaged"),
    "long name": (tar(("x" * 300, b"")), "ENAMETOOLONG"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_an_archive_that_leads_out_is_refused_whole(sandbox, case):
    content, said = HOSTILE[case]
    source = put(sandbox, "hostile.tar", content)
    done = template(sandbox, "import", source, "hostile", code=125)
    assert any(word in done.err for word in said.split("|")), done.err
    assert "hostile" not in template(sandbox, "list").out
    assert not list((sandbox.state / "atoll" / "roots" / "trees").iterdir())
    # The way itself works.
    template(sandbox, "import", put(sandbox, "good.tar", tar(("a", b"x"))), "good")


def test_links_of_an_archive_lead_nowhere_outside(sandbox):
    outside = sandbox.base / "outside"
    sandbox.make_directory(outside)
    target = str(outside)
    source = put(sandbox, "links.tar", tar(("out", target, tarfile.SYMTYPE), (target[1:], None), ("out/file", b"x"),
                                           ("/abs", b"y"), ("set", b"z", None, 0o6755)))
    template(sandbox, "import", source, "links")
    assert not list(outside.iterdir())
    root = tree_of(sandbox, "links")
    assert (root / target[1:] / "file").read_bytes() == b"x" and (root / "abs").read_bytes() == b"y"
    assert (root / "set").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize("what", ["digest", "missing", "json"])
def test_a_damaged_image_is_refused(sandbox, what):
    parts = oci(*LAYERS)
    blob = next(name for name in parts if parts[name] == LAYERS[0])
    if what == "digest":
        parts[blob] = tar(*system(), ("planted", b"x"))
    elif what == "missing":
        del parts[blob]
    else:
        parts["index.json"] = b"{"
    done = template(sandbox, "import", put(sandbox, "bad.tar", tar(*parts.items())), "bad", code=125)
    assert "damaged" in done.err and "bad" not in template(sandbox, "list").out


def test_a_sandbox_has_the_imported_system_and_not_the_machines(sandbox):
    directory = sandbox.base / "directory"
    sandbox.make_directory(directory)
    sandbox.run_outside(["tar", "-C", str(directory), "-xf", put(sandbox, "own.tar", tar(*system()))], check=True)
    template(sandbox, "import", str(directory), "own")
    sandbox.write(sandbox.project / "mine.txt", "of the project\n")
    policy = sandbox.policy(NEW_PROGRAMS)
    # Without it, the same command sees the machine.
    assert sandbox.run(["/bin/ls", "/usr/bin/python3"], policy=policy).code == 0
    done = sandbox.run(["/bin/sh", "-c", "id; cat /etc/mark mine.txt; ls /usr/bin; echo new >/etc/added; cat /etc/added"
                        "; cp /bin/busybox /etc/true && /etc/true && cp mine.txt made.txt; chown 5 /etc/added"],
                       policy=policy, options=["--root", "own"])
    assert "uid=0(root)" in done.out and "of the root\nof the project\nnew\n" in done.out, done
    assert "python3" not in done.out and done.code != 0
    # Nothing of it reaches the tree, and nobody but the project is changed by an apply.
    assert not (tree_of(sandbox, "own") / "etc/added").exists()
    again = sandbox.run(["/bin/sh", "-c", "cat /etc/added made.txt"], options=["--continue", done.session])
    assert again.out == "new\nof the project\n", again
    assert sandbox.run_atoll("apply", done.session).code in (0, 1)
    assert (sandbox.project / "made.txt").read_text() == "of the project\n"
    assert not (tree_of(sandbox, "own") / "etc/added").exists()
    # It stays for the session that stands on it.
    tree = tree_of(sandbox, "own").resolve()
    template(sandbox, "remove", "own")
    assert tree.exists()
    sandbox.run_atoll("discard", again.session)
    sandbox.run_atoll("discard", done.session)
    assert "no root" in sandbox.run(["/bin/true"], options=["--root", "own"]).err


def test_its_own_system_is_no_part_of_what_is_told_of_the_project(sandbox):
    """Which share of the files is gone, and which tree is full: of the project's, whatever lies in the system."""
    many = [(f"etc/many/{number}", b"x") for number in range(500)]
    template(sandbox, "import", put(sandbox, "own.tar", tar(*system(), ("usr", None), *many)), "own")
    for number in range(100):
        sandbox.write(sandbox.project / f"file{number}", "words\n")
    policy = sandbox.policy(NEW_PROGRAMS + "monitor: {baseline: true, budget: 1/100, learn: 10}\n"
                            "resources: {disk: 24MiB}\ntime: {wall: 60s}\n")
    done = sandbox.run(["/bin/sh", "-c", "busybox rm file[1-8]*; "
                        "busybox head -c 1000000000 /dev/zero >/usr/big || echo full; "
                        "until busybox test -s /run/atoll/denials.jsonl; do busybox sleep 0.1; done; "
                        "cat /run/atoll/denials.jsonl"], policy=policy,
                       options=["--root", "own", "--discard"], timeout=90)
    assert done.out.startswith("full\n"), done
    assert done.report["monitor"]["deletes"] == 88 and done.report["monitor"]["deleted-share"] == 88, done.report
    told = json.loads(done.out.splitlines()[1])
    assert told["rule"] == "resources.disk" and told["subject"] == str(sandbox.project), told
    assert "roots" not in done.out, "the agent hears of no place of the host"


def test_changes_of_its_own_system_are_shown_apart_and_stay(sandbox):
    template(sandbox, "import", put(sandbox, "own.tar", tar(*system(), ("usr", None), ("etc/gone", b"1"))), "own")
    done = sandbox.run(["/bin/sh", "-c", "touch /usr/x; echo new >/etc/mark; busybox rm /etc/gone; busybox mkfifo "
                        "/etc/pipe; echo mine >made"], policy=sandbox.policy(NEW_PROGRAMS), options=["--root", "own"])
    # The project's file is reviewed as ever; nothing is refused, and nothing that did not change is named.
    counts = {"added": 1, "modified": 0, "deleted": 0, "directories": 0, "flagged": 0, "conflicts": 0, "refused": 0,
              "system": 4}
    assert done.report["changes"].items() >= counts.items(), done.report["changes"]
    found = json.loads(sandbox.run_atoll("diff", "--json", done.session).out)
    assert found["counts"] == counts
    assert [(row["path"], row["kind"], row["state"], row["reason"]) for row in found["changes"]] == [
        (str(sandbox.project / "made"), "added", "clean", None), ("/etc/gone", "deleted", "system", None),
        ("/etc/mark", "modified", "system", None), ("/etc/pipe", "added", "system", None),
        ("/usr/x", "added", "system", None)]
    shown = sandbox.run_atoll("diff", done.session).out
    head, own = shown.split("of the sandbox's own system, never applied, stays with the session:\n")
    assert "A made" in head and "A /usr/x" in own and "4 in the sandbox's own system" in own and "roots" not in shown
    assert "/usr/x" in sandbox.run_atoll("diff", done.session, "/usr/x").out
    # A patch has the project's alone.
    assert "+++ b/made" in (patch := sandbox.run_atoll("diff", "-p", done.session).out) and "+++ b/etc" not in patch
    applied = sandbox.run_atoll("apply", done.session)
    assert applied.code == 0 and applied.out.count("own system") == 1 and "left" not in applied.out, applied
    assert (sandbox.project / "made").read_text() == "mine\n"
    assert (tree_of(sandbox, "own") / "etc/mark").read_bytes() == b"of the root\n"
    again = sandbox.run_atoll("apply", "--json", done.session, "/usr/x")
    assert again.code == 0 and json.loads(again.out)["system"] == 1 and not json.loads(again.out)["applied"], again
    assert sandbox.run_atoll("discard", done.session, "/usr/x").code == 0
    again = sandbox.run(["/bin/sh", "-c", "cat /etc/mark; ls /usr/x"], options=["--continue", done.session])
    assert again.out == "new\n", again
    assert sandbox.run_atoll("discard", done.session).code == 0


def test_without_new_programs_the_root_is_read_only(sandbox):
    template(sandbox, "import", put(sandbox, "own.tar", tar(*system())), "own")
    policy = sandbox.policy(NEW_PROGRAMS.replace("true", "false"))
    done = sandbox.run(["/bin/sh", "-c", "cat /etc/mark; echo x >/etc/added"], policy=policy, options=["--root", "own"])
    assert done.out == "of the root\n" and "Read-only" in done.err
    done = sandbox.run(["/bin/sh", "-c", "echo staged >here"], policy=policy, options=["--root", "own"])
    # It goes on with its system, of which it stages nothing.
    again = sandbox.run(["/bin/sh", "-c", "cat /etc/mark here"], options=["--continue", done.session])
    assert again.out == "of the root\nstaged\n", again


@pytest.mark.parametrize("words, said", [
    (["import"], "wrong number"), (["bake"], "no verb"),
    (["import", "/dev/null", "x"], "neither a file nor a directory"),
    (["import", "/usr", "Bad/Name"], "cannot be the name"), (["import", "/usr", "base"], "cannot be the name"),
])
def test_wrong_words_are_told(sandbox, words, said):
    assert said in template(sandbox, *words, code=125).err


@pytest.fixture
def service(sandbox):
    made = Service(sandbox)
    yield made.start()
    made.end()


def run_in(service, box, script, **values):
    """As Service.run(), by the shell that the system has."""
    reply = service.start_command(box, ["/bin/sh", "-c", script], **values)
    assert reply.status == 200, reply
    out = b""
    while some := os.read(reply.fds["stdout"], 65536):
        out += some
    reply.close()
    service.event("EXIT", command=reply["command"], sandbox=box["sandbox"])
    return out.decode()


def test_commands_run_as_the_image_says(sandbox, service):
    said = {"Env": ["PATH=/bin:/mine", "OF=image", "=no", "none"], "WorkingDir": "/a/", "Cmd": ["false"]}
    layers = (tar(*system(), ("a", None)),)
    for name, form in (("of-oci", oci), ("of-docker", docker)):
        template(sandbox, "import", put(sandbox, f"{name}.tar", tar(*form(*layers, config=said).items())), name)
        made = service.create(template=name, env=["MINE=1"])
        assert run_in(service, made, "echo $PATH $OF $MINE; pwd") == "/bin:/mine image 1\n/a\n", name
    # The client's own variable wins, and nothing of it is another system's with the same files.
    made = service.create(template="of-oci", env=["OF=client"])
    assert run_in(service, made, "echo $OF", cwd="/bin") == "client\n"
    template(sandbox, "import", put(sandbox, "plain.tar", tar(*oci(*layers).items())), "plain")
    assert run_in(service, service.create(template="plain"), "echo $OF; pwd") == "\n/home/user\n"
    assert imported(sandbox, "of-oci")["id"] == imported(sandbox, "of-docker")["id"] != imported(sandbox, "plain")["id"]
    many = {"Env": [f"NAME{at}={'x' * 1000}" for at in range(100)]}
    done = template(sandbox, "import", put(sandbox, "many.tar", tar(*oci(*layers, config=many).items())), code=125)
    assert "too many variables" in done.err


def test_the_service_gives_an_imported_system_by_its_name(sandbox, service):
    plain = service.create()
    refused = service.start_command(plain, ["/bin/true"], user="root")
    assert refused.status == 401 and "uid 0" in refused["message"], refused
    assert service.ask("CREATE", template="own").status == 404
    template(sandbox, "import", put(sandbox, "own.tar", tar(*system())), "own")
    assert [row["template"] for row in service.ask("TEMPLATES").rows] == ["own"]
    made = service.create(template="own")
    assert made["template"] == "own"
    script = "id; cat /etc/mark; pwd; echo added >/etc/added"
    assert run_in(service, made, script) == "uid=0(root) gid=0\nof the root\n/home/user\n"
    # Its one user is called root as well.
    assert run_in(service, made, "cat /etc/added", user="root") == "added\n"
    listed = service.ask("STAT", key=None, sandbox=made["sandbox"], token=made["token"], path="/etc/added", user="root")
    assert listed.status == 200, listed
    assert run_in(service, made, "sudo -E -u root MORE=it sh -c 'id -u; echo $MORE'; sudo -u other id 2>&1") == (
        "0\nit\nsudo: there is no user but root in this sandbox\n")
    # Another one from the same template has nothing of it; a fork and a snapshot have.
    assert "added" not in run_in(service, service.create(template="own"), "ls /etc")
    fork = service.ask("FORK", sandbox=made["sandbox"])
    assert run_in(service, fork.rows[0], "cat /etc/added /etc/mark", user="root") == "added\nof the root\n"
    taken = service.ask("SNAPSHOT", sandbox=made["sandbox"], name="more")
    assert taken.status == 201, taken
    again = service.create(template="more")
    assert run_in(service, again, "cat /etc/added; id -u", user="root") == "added\n0\n"
    # The files stay for those that stand on them.
    tree = tree_of(sandbox, "own").resolve()
    template(sandbox, "remove", "own")
    assert tree.exists() and service.ask("CREATE", template="own").status == 404
    assert run_in(service, again, "cat /etc/mark") == "of the root\n"
