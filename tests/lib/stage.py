# SPDX-License-Identifier: Apache-2.0
"""The review verbs as the tests use them, and what they put into an upper layer from outside."""
import base64
import json
import os
import pathlib
import stat

from tree_state import tree_state

POLICY = """atoll: 1
extends: none
verify: {{low: off, medium: off, high: off, critical: off, unknown: off}}
drop: [.]
files: {{stage: [.{more}]}}
exec: {{new_binaries: true}}
degrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]
{lines}"""


def staging_policy(sandbox, stage=(), lines="", name="stage.yaml"):
    """Level none with the project staged, and no command judged: what the walls hold is seen alone. stage: more staged
    paths; lines: more of the policy."""
    more = "".join(f", '{path}'" for path in stage)
    return sandbox.policy(POLICY.format(more=more, lines=lines), name)


def from_json(value):
    """A name of --json as str with surrogates, as Python has file names."""
    return os.fsdecode(base64.b64decode(value["b64"])) if isinstance(value, dict) else value


class Staged:
    """One sandbox whose project is staged, and what a person does with it afterwards."""

    def __init__(self, sandbox, policy=None, **keywords):
        self.sandbox, self.policy = sandbox, policy or staging_policy(sandbox, **keywords)
        self.project = sandbox.project

    def run(self, command, **keywords):
        """Runs it and keeps the session; fails where atoll itself failed."""
        done = self.sandbox.run(command, policy=self.policy, **keywords)
        assert done.code != 125 and done.report, done
        self.session = done.session
        return done

    def state(self, **keywords):
        return tree_state(self.project, **keywords)

    # --- Verbs. ---

    def verb(self, name, *words, code=0, **keywords):
        done = self.sandbox.run_atoll(name, *words, **keywords)
        assert code is None or done.code == code, (name, words, done)
        return done

    def diff(self, *words, **keywords):
        """{path relative to the project: change} of the session."""
        done = self.verb("diff", self.session, "--json", *words, **keywords)
        prefix = str(self.project) + "/"
        return {from_json(change["path"]).removeprefix(prefix): change for change in json.loads(done.out)["changes"]}

    def apply(self, *words, code=0, **keywords):
        return self.verb("apply", self.session, *words, code=code, **keywords)

    def undo(self, *words, code=0, **keywords):
        return self.verb("undo", self.session, *words, code=code, **keywords)

    # --- The layers, from outside. ---

    @property
    def directory(self):
        return self.sandbox.state / "atoll" / "sessions" / self.session / "stage"

    @property
    def upper(self):
        """Of the tree that is the project: the first one."""
        return self.directory / "live" / "0" / "upper"

    def own(self, path):
        """As what the agent makes is: the owner of the upper layer."""
        status = os.stat(self.upper)
        os.chown(path, status.st_uid, status.st_gid, follow_symlinks=False)
        return path

    def plant(self, name, content=b"planted\n", mode=0o644):
        path = os.path.join(os.fsencode(self.upper), os.fsencode(name))
        parent = os.path.dirname(path)
        if not os.path.isdir(parent):
            self.plant_directory(os.path.relpath(parent, os.fsencode(self.upper)))
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)
        return self.own(path)

    def plant_directory(self, name, is_opaque=False):
        path = os.fsencode(self.upper)
        for part in os.fsencode(name).split(b"/"):
            path = os.path.join(path, part)
            if not os.path.isdir(path):
                os.mkdir(path, 0o755)
                self.own(path)
        if is_opaque:
            os.setxattr(path, "user.overlay.opaque", b"y")
        return path

    def plant_whiteout(self, name):
        path = pathlib.Path(self.upper) / name
        if path.parent != self.upper:
            self.plant_directory(str(path.parent.relative_to(self.upper)))
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(0, 0))
        return self.own(path)


def is_refused(changes, path, reason=None):
    """The path itself is refused, or a directory above it, whole."""
    parts = path.split("/")
    found = [changes[above] for above in ("/".join(parts[:i]) for i in range(len(parts), 0, -1)) if above in changes]
    return bool(found) and found[0]["state"] == "refused" and (reason is None or found[0]["reason"] == reason)


def only(changes, kind):
    return sorted(path for path, change in changes.items() if change["kind"] == kind)


def attempts(**commands):
    """A script that tries each command in a shell of its own."""
    return "\n".join(f"( {command} ) >/dev/null 2>&1; echo {name}=$?" for name, command in commands.items())


def verdicts(result):
    """{name: it succeeded} of what that script printed."""
    return {line.split("=")[0]: line.endswith("=0") for line in result.out.splitlines() if "=" in line}
