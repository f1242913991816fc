# SPDX-License-Identifier: Apache-2.0
"""files.ask: the call waits for a person's answer, others go on, and an answer holds for what was shown."""
import json
import subprocess

from atoll import wait_until

POLICY = "atoll: 1\nextends: medium\nfiles: {ask: [data]}\nask: {timeout: 20s}\n"


class Session:
    def __init__(self, sandbox, policy=POLICY):
        self.sandbox = sandbox
        sandbox.write(sandbox.project / "data/one", "ONE\n")
        sandbox.write(sandbox.project / "data/two", "TWO\n")
        sandbox.write(sandbox.project / "free", "FREE\n")
        done = sandbox.run_outside(sandbox.command_line([], policy=sandbox.policy(policy), options=["-d"]),
                                   cwd=sandbox.project)
        assert done.code == 0, done
        self.id = done.out.strip()
        self.follower = self.atoll("ask", self.id, "--follow", "--json")

    def atoll(self, *words):
        child = subprocess.Popen([str(self.sandbox.programs.atoll), *words], stdout=-1, stderr=-1, stdin=-3,
                                 start_new_session=True, **self.sandbox.popen_keywords())
        self.sandbox.children.append(child)
        return child

    def popen(self, script):
        return self.atoll("exec", self.id, "--", "sh", "-c", script)

    def run(self, script):
        out, err = self.popen(script).communicate(timeout=60)
        return out.decode(), err.decode()

    def question(self, path):
        def find():
            done = self.sandbox.run_atoll("ask", self.id, "--once", "--json")
            return next((entry for entry in json.loads(done.out)
                         if entry["subject"].endswith(path) and entry["state"] == "waiting"), None)
        return wait_until(find, 30, f"a question about {path}")

    def answer(self, verb, path, *options):
        done = self.sandbox.run_atoll(verb, f"{self.id}:{self.question(path)['number']}", *options)
        assert done.code == 0, done

    def stop(self):
        self.sandbox.run_atoll("stop", "-t", "0s", self.id)


def test_a_person_decides(sandbox):
    session = Session(sandbox)
    try:
        waiting = session.popen("cat data/one && cat data/one")
        question = session.question("/data/one")
        assert question["kind"] == "file.read" and question["program"].endswith("/cat")
        # Others go on meanwhile, and so does what is not asked about.
        assert session.run("cat free")[0] == "FREE\n" and waiting.poll() is None
        session.answer("approve", "/data/one", "--session")
        assert waiting.communicate(timeout=30)[0] == b"ONE\nONE\n"
        # An answer is about one path and one way.
        waiting = session.popen("cat data/two || echo refused")
        session.answer("deny", "/data/two")
        assert waiting.communicate(timeout=30)[0] == b"refused\n"
        waiting = session.popen("echo more >>data/one || echo refused; mv data/one x || echo refused")
        session.answer("deny", "/data/one")
        assert waiting.communicate(timeout=30)[0] == b"refused\nrefused\n"
        # What contains it is asked about too: it cannot be moved away from under the question.
        waiting = session.popen("mkdir q; mv data q/data")
        session.answer("deny", "/data")
        assert b"denied" in waiting.communicate(timeout=30)[1] and (sandbox.project / "data/one").exists()
        log = [json.loads(line) for line in sandbox.audit_log(session.id).read_text().splitlines()]
        denied = {entry["subject"].rsplit("/", 1)[1] for entry in log
                  if entry["type"].startswith("file.") and entry["verdict"] == "deny"}
        assert {"one", "two"} <= denied
        # Who is killed while it waits leaves nothing behind.
        waiting = session.popen("echo y >data/three & sleep 0.5; kill -9 $!; wait $!; echo over")
        assert b"over" in waiting.communicate(timeout=30)[0]
    finally:
        session.stop()


def test_silence_is_a_no(sandbox):
    session = Session(sandbox, POLICY.replace("20s", "2s"))
    try:
        waiting = session.popen("cat data/one || echo refused")
        session.question("/data/one")
        assert waiting.communicate(timeout=30)[0] == b"refused\n"
        answers = [entry for entry in map(json.loads, sandbox.audit_log(session.id).read_text().splitlines())
                   if entry["type"] == "ask.answer"]
        assert [(entry["verdict"], entry["detail"]["by"]) for entry in answers] == [("deny", "timeout")]
    finally:
        session.stop()


def test_nobody_hears(sandbox):
    sandbox.write(sandbox.project / "data/one", "ONE\n")
    done = sandbox.run("cat data/one; echo x >data/new; cat /run/atoll/denials.jsonl", policy=sandbox.policy(POLICY))
    assert "ONE" not in done.out and "files.ask[0]" in done.out and "atoll approve" in done.out, done


def test_once_is_once_for_what_comes_into_the_view(sandbox):
    """The path is missing inside: a yes brings it in, each open is still asked about, and people see it there."""
    one = sandbox.write(sandbox.home / "data/one", "ONE\n")
    own = sandbox.write(sandbox.base / "own.yaml",
                        f"atoll: 1\nextends: medium\nfiles: {{ask: [{sandbox.home}/data]}}\nask: {{timeout: 20s}}\n")
    session = Session(sandbox, own.read_text())
    try:
        waiting = session.popen(f"cat {one}; cat {one} || echo refused")
        assert session.question("/data/one")["outside"]
        session.answer("approve", "/data/one")
        session.answer("deny", "/data/one")
        assert waiting.communicate(timeout=30)[0] == b"ONE\nrefused\n"
        grants = json.loads(sandbox.run_atoll("grants", session.id, "--json").out)
        view = [grant for grant in grants if grant["view"]]
        assert [(grant["subject"], grant["below"], grant["allows"]) for grant in view] == [(str(one), False, True)]
        assert session.run(f"stat -c %s {one}")[0] == "4\n"
        assert sandbox.run_atoll("grants", "revoke", view[0]["grant"]).code == 0
        assert "No such file" in session.run(f"stat -c %s {one}")[1]
        for grant in grants:
            if not grant["allows"]:
                assert sandbox.run_atoll("grants", "revoke", grant["grant"]).code == 0
        # A grant that holds on brings it in again without a question, as often as it is wanted.
        waiting = session.popen(f"cat {one}; cat {one}")
        session.answer("approve", "/data/one", "--session")
        assert waiting.communicate(timeout=30)[0] == b"ONE\nONE\n"
    finally:
        session.stop()


def test_a_person_lets_a_protected_file_be_written_in_place(sandbox):
    """Level high: what the host runs later is asked about before it is written; all else is not."""
    session = Session(sandbox, "atoll: 1\nextends: high\nask: {timeout: 20s}\n"
                      "degrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n")
    try:
        waiting = session.popen("echo new >sub.envrc; mv sub.envrc .mise.toml && echo made")
        question = session.question("/.mise.toml")
        assert question["kind"] == "file.write" and question["rule"].startswith("files.protect"), question
        assert not (sandbox.project / ".mise.toml").exists()
        session.answer("approve", "/.mise.toml")
        assert waiting.communicate(timeout=30)[0] == b"made\n"
        assert (sandbox.project / ".mise.toml").read_text() == "new\n"
    finally:
        session.stop()
