# SPDX-License-Identifier: Apache-2.0
"""`atoll dry-run` as the tests use it: what it says as JSON, and what is left of its trials."""
import json

from staged import Staged
from tree_state import tree_state


class Trials(Staged):
    """A project with two files, policies that stage it, and dry-runs in it."""

    def __init__(self, sandbox, more=""):
        super().__init__(sandbox, more)
        self.project = sandbox.project

    def words(self, script, *options, session=None, policy=None):
        place = [session] if session else ["-p", policy or self.policy]
        command = ["bash", "-c", script] if isinstance(script, str) else script
        return ["dry-run", *place, *options, "--", *command]

    def dry(self, script, *options, session=None, policy=None, code=None, **keywords):
        """As a person without a terminal sees it."""
        done = self.sandbox.run_atoll(*self.words(script, *options, session=session, policy=policy), **keywords)
        assert code is None or done.code == code, done
        return done

    def tell(self, script, *options, session=None, policy=None, code=None, **keywords):
        """What --json says, and that it is all that stdout has."""
        done = self.dry(script, "--json", *options, session=session, policy=policy, code=code, **keywords)
        assert done.bytes.count(b"\n") == 1, done
        return json.loads(done.bytes)

    def accept(self, trial, *options, code=0, **keywords):
        return self.atoll("dry-run", "--accept", trial, *options, code=code, **keywords)

    def host(self):
        """All of the project, byte by byte."""
        return tree_state(self.project)

    def record(self, session):
        return self.sandbox.state / "atoll" / "sessions" / session

    def log(self, session):
        return [json.loads(line) for line in self.sandbox.audit_log(session).read_text().splitlines()]

    def names(self, session):
        return [item["name"] for item in self.snapshots(session)]


def changes(told):
    """{path in the project: kind}."""
    listed = told["changes"] or []
    paths = [change["path"] if isinstance(change["path"], str) else change["path"]["b64"] for change in listed]
    return {path.split("/project/")[-1]: change["kind"] for path, change in zip(paths, listed)}


def effects(told, group):
    return [item["what"] for item in told["effects"][group]]
