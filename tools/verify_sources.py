# SPDX-License-Identifier: Apache-2.0
"""Texts with labels out of checkouts of public collections, for tools/bench-verify. Nothing of them is ever run.

Each source is one function of a directory that yields Case: a text as a sandbox would judge it (a command is
`bash -c '…'`), its group, and a label:

  risky     it does harm by itself: a reverse shell, a file of the system deleted, a credential sent away
  edge      it depends on what it is for: reading /etc/passwd, becoming another user by a program that may
  harmless  what builds, tests and people run

Labels are of whole groups, by what the collection says of them, and are no second look at each text. What a text
looks like never decides about its label.
"""
import csv
import dataclasses
import io
import json
import pathlib
import re
import shlex
import tarfile
import zipfile

TEXT_MAX = 1 << 20
FILES_MAX = 200  # of one package

# RedCode-Exec: number of a scenario -> label; what is in neither is harmless by itself.
REDCODE_RISKY = {1, 8, 9, 10, 18}
REDCODE_EDGE = {2, 4, 6, 7, 13, 24}

# Functions of GTFOBins that are harm whatever they are used for; the others need a program that runs as somebody else.
GTFOBINS_RISKY = {"reverse-shell", "bind-shell"}

# A test of Atomic Red Team that only looks, or only puts together, is what administrators do every day.
ATOMIC_EDGE = {"discovery", "collection"}
ATOMIC_FOLDER = "/root/AtomicRedTeam/atomics"


class SourceError(Exception):
    """The directory is none of that collection, or something that is needed to read it is missing."""


@dataclasses.dataclass
class Case:
    source: str
    group: str
    language: str
    label: str
    text: str
    package: str = ""  # texts of one package are found when one of them is
    kind: str = ""     # of what is risky, across sources: "shells", "exfiltration", "fetched tools"


def read_yaml(text):
    try:
        import yaml
    except ImportError as e:
        raise SourceError("this source is YAML: apt-get install python3-yaml") from e
    try:
        return list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError):
        return []


def read_text(path):
    try:
        if path.is_symlink() or path.stat().st_size > TEXT_MAX:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def files(directory, *patterns):
    found = sorted({path for pattern in patterns for path in pathlib.Path(directory).glob(pattern) if path.is_file()})
    return [path for path in found if "node_modules" not in path.parts and ".git" not in path.parts]


def wanted_files(directory, what, *patterns):
    found = files(directory, *patterns)
    if not found:
        raise SourceError(f"{directory}: no {what}")
    return found


def as_command(text):
    return shlex.join(["bash", "-c", text]) + "\n"


def command(source, group, label, text, kind=""):
    return Case(source, group, "shell", label, as_command(text), kind=kind)


# ---- collections of what is risky ----

def redcode(directory):
    """AI-secure/RedCode: dataset/RedCode-Exec."""
    for path in wanted_files(directory, "RedCode-Exec", "**/*2text_dataset_json/index*.json"):
        number = int(re.match(r"index(\d+)", path.name).group(1))
        language = "python" if path.parent.name.startswith("py") else "shell"
        label = "risky" if number in REDCODE_RISKY else "edge" if number in REDCODE_EDGE else "harmless"
        for row in json.loads(read_text(path) or "[]"):
            yield Case("redcode", f"{label}:{language}:{number:02}", language, label, row.get("Code", ""))


def atomic_tactics(directory):
    tactics = {}
    for path in files(directory, "**/Indexes-CSV/linux-index.csv"):
        for row in csv.DictReader(io.StringIO(read_text(path))):
            tactics.setdefault(row.get("Test GUID"), set()).add(row.get("Tactic"))
    return tactics


def atomic_command(test):
    text = test["executor"].get("command") or ""
    for name, argument in (test.get("input_arguments") or {}).items():
        text = text.replace("#{" + name + "}", str((argument or {}).get("default", "")))
    return text.replace("PathToAtomicsFolder", ATOMIC_FOLDER)


def atomic(directory):
    """redcanaryco/atomic-red-team: the tests for Linux that a shell runs."""
    tactics = atomic_tactics(directory)
    for path in wanted_files(directory, "atomics", "**/T*/T*.yaml"):
        for document in read_yaml(read_text(path)):
            for test in (document or {}).get("atomic_tests") or []:
                of = tactics.get(test.get("auto_generated_guid"), set())
                shell = (test.get("executor") or {}).get("name") in ("sh", "bash")
                if not shell or "linux" not in (test.get("supported_platforms") or []):
                    continue
                only_looks = not of - ATOMIC_EDGE
                kind = "exfiltration" if "exfiltration" in of else \
                    "fetched tools" if path.stem.startswith("T1105") and not only_looks else ""
                yield command("atomic", "discovery" if of and only_looks else "risky" if of else "no-tactic",
                              "edge" if only_looks else "risky", atomic_command(test), kind)


def gtfobins(directory):
    """GTFOBins/GTFOBins.github.io: each function, and shells with sudo."""
    for path in wanted_files(directory, "_gtfobins", "**/_gtfobins/*"):
        functions = {}
        for document in read_yaml(read_text(path)):
            functions.update((document or {}).get("functions") or {})
        for name, ways in functions.items():
            label = "risky" if name in GTFOBINS_RISKY else "edge"
            for way in ways or []:
                contexts = way.get("contexts") or {}
                if way.get("code"):
                    yield command("gtfobins", name, label, way["code"], "shells" if label == "risky" else "")
                if name == "shell" and way.get("code") and "sudo" in contexts:
                    yield command("gtfobins", "shell+sudo", label, "sudo " + way["code"])


def cheatsheets(directory):
    """swisskyrepo/InternalAllTheThings: what a shell is told in the sheets of reverse and bind shells, either side."""
    for path in wanted_files(directory, "sheets of shells", "**/shell-reverse-cheatsheet.md",
                             "**/shell-bind-cheatsheet.md"):
        group = path.name.split("-")[1] + "-shell"
        sheet = read_text(path)
        # Behind it stands how to make a shell comfortable, and payloads of Windows.
        section = re.search(r"^## Reverse Shell\n(.*?)(?=^## |\Z)", sheet, flags=re.M | re.S)
        for block in re.findall(r"^```(?:bash|sh|ps1|powershell)\n(.*?)^```", section.group(1) if section else sheet,
                                flags=re.M | re.S):
            for text in re.split(r"\n\s*\n", block):
                if text.strip():
                    yield command("cheatsheets", group, "risky", text, "shells")


# ---- collections of what is harmless ----

def nl2bash(directory):
    """TellinaTool/nl2bash: commands that people asked for."""
    for path in wanted_files(directory, "data/bash/all.cm", "**/bash/all.cm"):
        for line in read_text(path).splitlines():
            yield command("nl2bash", "all", "harmless", line)


def tldr(directory):
    """tldr-pages/tldr: the examples of pages/common and pages/linux, long options and the first of alternatives."""
    for path in wanted_files(directory, "pages", "pages/common/*.md", "pages/linux/*.md"):
        for line in read_text(path).splitlines():
            if not (line.startswith("`") and line.endswith("`") and len(line) > 2):
                continue
            text = re.sub(r"\{\{\[(?:[^|\]]*\|)?([^\]]*)\]\}\}", r"\1", line[1:-1])
            yield command("tldr", path.parent.name, "harmless", re.sub(r"\{\{([^|}]*).*?\}\}", r"\1", text))


def fill_in(text):
    """`${{ env.NAME }}` is that variable, another expression some value."""
    text = re.sub(r"\$\{\{\s*env\.(\w+)\s*\}\}", r"${\1}", text)
    return re.sub(r"\$\{\{.*?\}\}", "value", text, flags=re.S)


def steps(node):
    """What the steps below node run in a shell of Linux."""
    if isinstance(node, dict):
        if isinstance(node.get("run"), str) and node.get("shell", "bash") in ("bash", "sh"):
            yield node["run"]
        for value in node.values():
            yield from steps(value)
    elif isinstance(node, list):
        for value in node:
            yield from steps(value)


def workflows(directory):
    for path in files(directory, ".github/**/*.yml", ".github/**/*.yaml", "*/.github/**/*.yml", "ci/*.yml",
                      "**/action.yml"):
        for document in read_yaml(read_text(path)):
            for text in steps(document):
                yield command("workflows", path.parent.name, "harmless", fill_in(text))


def makefiles(directory):
    for path in files(directory, "**/Makefile", "**/GNUmakefile", "**/*.mk"):
        for recipe in re.findall(r"^\t((?:.*\\\n)*.+)", read_text(path), flags=re.M):
            text = re.sub(r"(?<!\$)\$\((\w+)\)", r"${\1}", recipe.lstrip("@-+ \t")).replace("$$", "$")
            if text and not text.startswith("#"):
                yield command("makefile", path.parent.name, "harmless", text)


def dockerfiles(directory):
    for path in files(directory, "**/Dockerfile*", "**/*.dockerfile"):
        for run in re.findall(r"^RUN[ \t]+((?:.*\\\n)*.*)", read_text(path), flags=re.M | re.I):
            text = re.sub(r"^(?:--\w+=\S+\s+(?:\\\n\s*)?)*", "", run)
            if not text.startswith("[") and "<<" not in text.split("\n", 1)[0]:
                yield command("dockerfile", path.parent.name, "harmless", text)


def package_scripts(text):
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return []
    scripts = document.get("scripts") if isinstance(document, dict) else None
    return [value for value in (scripts or {}).values() if isinstance(value, str)] if isinstance(scripts, dict) else []


def package_json(directory):
    for path in files(directory, "**/package.json"):
        for text in package_scripts(read_text(path)):
            yield command("package-json", path.parent.name, "harmless", text)


def project(directory):
    """A checkout of any project that works: what its workflows, Makefiles, Dockerfiles and package.json run."""
    for source in (workflows, makefiles, dockerfiles, package_json):
        yield from source(directory)


# ---- packages ----

def members(path):
    """(name, bytes) of an archive; of what cannot be opened (encrypted, broken) none."""
    try:
        if tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.isfile() and member.size <= TEXT_MAX:
                        yield member.name, archive.extractfile(member).read()
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist():
                    if not member.is_dir() and member.file_size <= TEXT_MAX:
                        yield member.filename, archive.read(member)
    except (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, tarfile.TarError, zipfile.BadZipFile):
        return


def package_texts(name, content):
    """(language, text) of one file of a package; what an installation runs of a package.json is a command."""
    text = content.decode("utf-8", errors="replace")
    if name.endswith("package.json"):
        return [("shell", as_command(script)) for script in package_scripts(text)]
    language = {".py": "python", ".js": "javascript", ".cjs": "javascript", ".mjs": "javascript",
                ".sh": "shell"}.get(pathlib.PurePosixPath(name).suffix)
    return [(language, text)] if language else []


def one_package(source, label, name, contents):
    count = 0
    for file, content in contents:
        for language, text in package_texts(file, content):
            count += 1
            if count <= FILES_MAX:
                yield Case(source, language, language, label, text, package=name)


def packages_of(directory, source, label):
    root = pathlib.Path(directory)
    archives = files(root, "**/*.tar.gz", "**/*.tgz", "**/*.zip", "**/*.whl")
    folders = sorted({path.parent for path in files(root, "**/setup.py", "**/package.json", "**/pyproject.toml")})
    if not archives and not folders:
        raise SourceError(f"{directory}: no packages (archives, or folders with setup.py or package.json)")
    for path in archives:
        yield from one_package(source, label, str(path.relative_to(root)), members(path))
    for folder in folders:
        inside = [path for path in files(folder, "**/*") if not any(other != folder and other in path.parents and
                                                                   folder in other.parents for other in folders)]
        yield from one_package(source, label, str(folder.relative_to(root)),
                               ((path.name, read_text(path).encode("utf-8", "replace")) for path in inside))


def malicious(directory):
    """Packages of a collection of malicious ones (lxyeternal/pypi_malregistry): one is found when a file of it is."""
    return packages_of(directory, "malicious packages", "risky")


def packages(directory):
    """Packages that people use."""
    return packages_of(directory, "packages", "harmless")


SOURCES = {"redcode": redcode, "atomic": atomic, "gtfobins": gtfobins, "cheatsheets": cheatsheets,
           "nl2bash": nl2bash, "tldr": tldr, "project": project, "malicious": malicious, "packages": packages}


def read_cases(path):
    """Cases that were extracted before (--write): one JSON object a line."""
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            yield Case(**{field.name: row[field.name] for field in dataclasses.fields(Case) if field.name in row})
