# SPDX-License-Identifier: Apache-2.0
"""Sessions that stage their project, and what their verbs say."""
import json

POLICY = """
atoll: 1
extends: medium
drop: [.]
files: {{stage: [.]}}
{more}
"""


class Staged:
    """A sandbox whose project is staged. Every run makes a session; the newest is self.session."""

    def __init__(self, sandbox, more=""):
        self.sandbox = sandbox
        self.policy = sandbox.policy(POLICY.format(more=more), "staged.yaml")
        sandbox.git_project()
        sandbox.write(sandbox.project / "host", "host\n")
        sandbox.write(sandbox.project / "directory" / "file", "host file\n")
        self.session = None

    def run(self, script, options=(), **keywords):
        done = self.sandbox.run(script, policy=self.policy, options=options, **keywords)
        if done.report:
            self.session = done.report["session"]
        return done

    def detach(self):
        """A sandbox that stays; its id."""
        done = self.sandbox.run_atoll("run", "-d", "-p", self.policy)
        assert done.code == 0, done
        self.session = done.out.strip()
        return self.session

    def exec(self, session, script):
        done = self.sandbox.run_atoll("exec", session, "--", "bash", "-c", script)
        assert done.code == 0, done
        return done.out

    def atoll(self, *words, code=0, **keywords):
        done = self.sandbox.run_atoll(*words, **keywords)
        assert done.code == code, done
        return done

    def fork(self, words, script, options=()):
        """`atoll fork WORDS… -- bash -c SCRIPT`; its output, and its session in self.session."""
        report = self.sandbox.report_path()
        done = self.atoll("fork", *words, "-q", "--report", report, *options, "--", "bash", "-c", script)
        self.session = json.loads(report.read_text())["session"]
        return done.out

    def show(self, session):
        """{path: (kind, type, mode, size)} of what a session would change, without what time alone moves."""
        done = self.sandbox.run_atoll("diff", "--json", session)
        assert done.code in (0, 1), done
        shown = {}
        for change in json.loads(done.out)["changes"]:
            staged = change["staged"]
            path = change["path"] if isinstance(change["path"], str) else change["path"]["b64"]
            shown[path.removeprefix(str(self.sandbox.project) + "/")] = (
                change["kind"], change["state"], staged and (staged["type"], staged["mode"], staged["size"]))
        return shown

    def snapshots(self, session):
        return json.loads(self.atoll("snapshot", "--list", "--json", session).out)

    def stage(self, session):
        return self.sandbox.state / "atoll" / "sessions" / session / "stage"

    def layers(self, session):
        directory = self.stage(session) / "layers"
        return sorted(int(entry.name) for entry in directory.iterdir()) if directory.is_dir() else []
