# SPDX-License-Identifier: Apache-2.0
"""What an agent needs before it starts (`agent:` of a policy), with programs that stand for one."""
import http.client
import json
import os
import re

import pytest

from atoll import ROOT, wait_until

AGENT = """atoll: 1
extends: medium
files:
  write: [~/.agent, ~/.agent.json]
  read: [~/.agent/settings.json, ~/.agent/hooks]
agent:
  command: [sh, -c, 'cat ~/.agent.json; echo login >~/.agent/login; echo x >~/.agent/settings.json || echo locked']
  state:
    - ~/.agent/
    - {path: ~/.agent.json, content: "{}\\n"}
    - {path: ~/.agent/settings.json, content: "{}\\n"}
    - ~/.agent/hooks/
"""


def test_the_policy_names_the_command(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: medium\nagent: {command: [sh, -c, 'echo \"$0 and $1\"', one, two]}\n")
    done = sandbox.run([], policy=policy)
    assert done.code == 0 and done.out == "one and two\n", done
    done = sandbox.run(["echo", "another"], policy=policy)
    assert done.out == "another\n", done
    done = sandbox.run([])
    assert done.code == 125 and "no command to run" in done.err and "-p claude" in done.err, done


def test_state_is_made_once_and_stays(sandbox):
    policy = sandbox.policy(AGENT)
    done = sandbox.run([], policy=policy)
    assert done.code == 0 and done.out == "{}\nlocked\n", done
    assert "made in your home" in done.err and "~/.agent, ~/.agent.json\n" in done.err, done
    home = sandbox.home
    assert (home / ".agent" / "login").read_text() == "login\n"
    # What the agent may only read was made as well: it could make it itself else.
    assert (home / ".agent" / "settings.json").read_text() == "{}\n" and (home / ".agent" / "hooks").is_dir()
    assert (home / ".agent").stat().st_mode & 0o777 == 0o700 and (home / ".agent.json").stat().st_mode & 0o777 == 0o600
    assert (home / ".agent").stat().st_uid == sandbox.identity.uid
    (home / ".agent.json").write_text("kept\n")
    done = sandbox.run([], policy=policy)
    assert done.out == "kept\nlocked\n" and "made in your home" not in done.err, done


def test_nothing_is_made_for_an_agent_that_is_not_there(sandbox):
    """Who only tries the policy of an agent has no directories of it in the home afterwards."""
    text = AGENT.replace("command: [sh, ", "command: [no-such-agent, ")
    for line in ("write: [~/.agent, ~/.agent.json]", "read: [~/.agent/settings.json, ~/.agent/hooks]"):
        text = text.replace(line, re.sub(r"~[^],]*", r"{path: \g<0>, optional: true}", line))
    policy = sandbox.policy(text)
    done = sandbox.run(["echo", "tried"], policy=policy)
    assert done.out == "tried\n" and "there is no no-such-agent in your PATH" in done.err, done
    done = sandbox.run([], policy=policy)
    assert done.code == 127 and "no-such-agent" in done.err and "made in your home" not in done.err, done
    assert not (sandbox.home / ".agent").exists() and not (sandbox.home / ".agent.json").exists()


def test_what_is_there_is_left_alone(sandbox):
    real = sandbox.write(sandbox.outside / "real.json", "mine\n")
    link = sandbox.home / ".agent.json"
    link.symlink_to(real)
    sandbox.own(link)
    dangling = sandbox.home / ".agent"
    dangling.symlink_to(sandbox.outside / "not there")
    sandbox.own(dangling)
    sandbox.run(["true"], policy=sandbox.policy(AGENT))
    assert real.read_text() == "mine\n" and link.is_symlink() and not (sandbox.outside / "not there").exists()


def test_what_cannot_be_made_is_said_with_its_command(sandbox):
    sandbox.write(sandbox.home / "file")
    text = "atoll: 1\nextends: medium\nfiles: {write: [~/file/state]}\nagent: {state: [~/file/state/]}\n"
    text = text.replace("[~/file/state]}", "[{path: ~/file/state, optional: true}]}")
    done = sandbox.run(["true"], policy=sandbox.policy(text))
    assert "~/file/state cannot be made (ENOTDIR)" in done.err and "mkdir -p ~/file/state" in done.err, done


def test_nothing_is_made_of_what_is_not_shown_in_place(sandbox):
    text = "atoll: 1\nextends: medium\nagent: {state: [~/.elsewhere/]}\n"
    done = sandbox.run(["true"], policy=sandbox.policy(text))
    assert done.code == 0 and not (sandbox.home / ".elsewhere").exists(), done
    done = sandbox.run_atoll("dry-run", "-p", sandbox.policy(AGENT), "--", "true")
    assert not (sandbox.home / ".agent").exists(), done


def test_a_project_cannot_have_state_made_or_commands_run(sandbox):
    for line in ("agent: {state: [~/.x/]}", "agent: {command: [sh]}",
                 "agent: {settings: [{path: /etc/x, content: y}]}"):
        sandbox.write(sandbox.project / ".atoll.yaml", f"atoll: 1\n{line}\n")
        done = sandbox.run(["true"])
        assert done.code == 125 and "widens" in done.err and ".atoll.yaml:2" in done.err, done


def test_settings_stand_inside_alone(sandbox):
    text = ("atoll: 1\nextends: medium\nagent:\n  settings:\n"
            "    - {path: /etc/some-agent/deep/x.toml, content: \"a = 1\\n\"}\n"
            "    - {path: /etc/hostname, content: \"replaced\\n\"}\n")
    done = sandbox.run("cat /etc/some-agent/deep/x.toml; echo b >>/etc/some-agent/deep/x.toml; "
                       "rm /etc/some-agent/deep/x.toml; cat /etc/hostname; ls /etc/some-agent", sandbox.policy(text))
    assert done.out.startswith("a = 1\n") and "replaced" not in done.out and done.out.endswith("deep\n"), done
    assert not os.path.exists("/etc/some-agent")


@pytest.mark.only("root")
@pytest.mark.needs("unshare", "mount")
def test_settings_stand_inside_where_something_is_mounted_in_etc(sandbox):
    """As in a container: root's view of /etc is no layer of an overlay there."""
    policy = sandbox.policy("atoll: 1\nextends: medium\nagent:\n  settings:\n"
                            "    - {path: /etc/some-agent/deep/x.toml, content: \"a = 1\\n\"}\n")
    name = sandbox.write(sandbox.outside / "hostname", "mounted\n")
    script = ("cat /etc/some-agent/deep/x.toml /etc/hostname; test -e /etc/passwd -a -d /etc/ssl && echo there; "
              "readlink /etc/mtab; touch /etc/x /etc/some-agent/y /etc/ssl/z || cat /etc/shadow || echo closed")
    inside = sandbox.command_line(["sh", "-c", script], policy=policy)
    mounted = 'mount --make-rprivate / && mount --bind "$0" /etc/hostname && exec "$@"'
    done = sandbox.run_outside(["unshare", "-m", "sh", "-c", mounted, name, *inside])
    assert done.out == f"a = 1\nmounted\nthere\n{os.readlink('/etc/mtab')}\nclosed\n", done
    assert not os.path.exists("/etc/some-agent") and not os.path.exists("/etc/x")


def test_settings_name_the_project_and_no_name_breaks_out(sandbox):
    project = sandbox.make_directory(sandbox.home / 'a "b" \\c')
    policy = sandbox.policy("atoll: 1\nextends: medium\nagent:\n  settings:\n    - path: /etc/some-agent/x.json\n"
                            "      content: '{\"at\": \"{project}\", \"and\": \"{project}\"}'\n")
    done = sandbox.run("cat /etc/some-agent/x.json", policy, cwd=project)
    assert json.loads(done.out) == {"at": str(project), "and": str(project)}, done


def test_nothing_that_is_thrown_away_is_called_real(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: node\n")
    sandbox.make_directory(sandbox.home / ".npm")
    done = sandbox.run("cat /run/atoll/limits.md", policy)
    real, private = done.out.split("Private space, thrown away at the end:")
    assert f"`{sandbox.home}/.npm`" in real and f"`{sandbox.home}/.cache/yarn`" not in real, done
    assert f"`{sandbox.home}/.cache/yarn`" in private.split("You may read")[0], done
    said = sandbox.run_atoll("policy", "-p", policy, "explain", "file.write", "~/.cache/yarn/x").out
    assert "is not there" in said and "mkdir -p" in said, said
    assert "is not there" not in sandbox.run_atoll("policy", "-p", policy, "explain", "file.write", "~/.npm/x").out


@pytest.mark.parametrize("agent", ["aider", "claude", "codex", "gemini", "opencode"])
@pytest.mark.only("root")
def test_the_shipped_policies_with_a_key_use_one_secret(sandbox, agent):
    text = (ROOT / "policies" / "agents" / f"{agent}-key.yaml").read_text()
    host = text.split("host: ")[1].split(",")[0]
    done = sandbox.run_atoll("policy", "-p", f"{agent}-key", "explain", "--json", "http.request", "POST",
                             f"https://{host}/v1/x")
    assert done.code == 0 and len(json.loads(done.out)["secrets"]) == 1, done


# As much of aider as its policy rests on, by its documentation and its sources (0.86): it looks for a free port, waits
# there for the browser, and keeps what it was given.
AIDER = r"""
import http.server, os, socketserver
with socketserver.TCPServer(("localhost", 8484), None):
    pass
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(os.path.expanduser("~/.aider/oauth-keys.env"), "a") as file:
            file.write(f'OPENROUTER_API_KEY="{self.path.split("code=")[1]}"\n')
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Success")
socketserver.TCPServer.allow_reuse_address = True
with socketserver.TCPServer(("localhost", 8484), Handler) as server:
    server.handle_request()
print(os.environ["AIDER_ANALYTICS"], os.environ["AIDER_CHECK_UPDATE"])
print(sorted(name for name in (".aider.conf.yml", ".env") if os.path.exists(os.path.expanduser("~/" + name))))
"""


@pytest.mark.only("user")
def test_what_aider_documents_works_under_its_policy(sandbox):
    """Its log-in at OpenRouter comes back, and is there at the next start; what may hold keys in the home is not."""
    program = sandbox.write(sandbox.home / ".local" / "bin" / "aider", f"#!/usr/bin/python3\n{AIDER}", 0o755)
    for name in (".aider.conf.yml", ".env"):
        sandbox.write(sandbox.home / name, "openai-api-key: sk-x\n")
    child = sandbox.popen([], policy="aider", env={"PATH": f"{program.parent}:/usr/local/bin:/usr/bin:/bin"})

    def visit():
        browser = http.client.HTTPConnection("127.0.0.1", 8484, timeout=5)
        try:
            browser.request("GET", "/callback/aider?code=sk-or-1")
            return browser.getresponse().read() == b"Success"
        except OSError:
            return False
        except http.client.HTTPException:
            return False
    wait_until(visit, 20, "the browser comes back")
    out, err = child.communicate(timeout=20)
    assert child.returncode == 0 and out == b"false false\n[]\n", (out, err)
    kept = sandbox.home / ".aider" / "oauth-keys.env"
    assert kept.read_text() == 'OPENROUTER_API_KEY="sk-or-1"\n'
    again = sandbox.run(["cat", kept], policy="aider")
    assert again.out == kept.read_text(), again


def test_a_key_that_stays_outside_is_named_once(sandbox):
    outside = {"ANTHROPIC_API_KEY": "sk-ant-very-secret", "OLLAMA_HOST": "127.0.0.1", "EMPTY_API_KEY": "", "OTHER": "x"}
    done = sandbox.run(["true"], policy="claude", env=outside)
    line, = [line for line in done.err.splitlines() if "ANTHROPIC_API_KEY" in line]
    assert "atoll secret set anthropic" in line and "-p claude-key" in line and "-e ANTHROPIC_API_KEY" in line, done
    assert "-e OLLAMA_HOST" in done.err and "EMPTY" not in done.err and "OTHER" not in done.err, done
    assert "very-secret" not in done.err
    done = sandbox.run(["true"], policy="claude", env=outside)
    assert "ANTHROPIC_API_KEY" not in done.err and "OLLAMA_HOST" not in done.err, done


def test_a_key_that_comes_in_is_not_named(sandbox):
    done = sandbox.run("echo $GH_TOKEN", env={"GH_TOKEN": "x"}, options=["-e", "GH_TOKEN"])
    assert done.out == "x\n" and "GH_TOKEN" not in done.err, done
    sandbox.run_atoll("secret", "set", "anthropic", stdin=b"sk-ant-api03-Zk3vQ9mB7xLpT2wRfYcD8hJn")
    done = sandbox.run("echo $ANTHROPIC_API_KEY", policy="claude-key", env={"ANTHROPIC_API_KEY": "outside"})
    assert done.out.startswith("sk-ant-api03-") and "ANTHROPIC_API_KEY" not in done.err, done


def test_a_placeholder_is_the_same_in_each_run_of_a_project(sandbox):
    secret = b"sk-ant-api03-Zk3vQ9mB7xLpT2wRfYcD8hJn"
    sandbox.run_atoll("secret", "set", "anthropic", stdin=secret)
    other = sandbox.make_directory(sandbox.home / "other")
    seen = [sandbox.run("echo $ANTHROPIC_API_KEY", policy="claude-key", cwd=cwd).out
            for cwd in (sandbox.project, sandbox.project, other)]
    assert seen[0] == seen[1] != seen[2] and secret.decode() not in seen[0], seen
    # Another value of the same shape tells nothing, and asks no agent again.
    sandbox.run_atoll("secret", "set", "anthropic", stdin=b"sk-ant-api03-aB1cD2eF3gH4iJ5kL6mN7oPq")
    assert sandbox.run("echo $ANTHROPIC_API_KEY", policy="claude-key").out == seen[0]


BAD = """#!/usr/bin/env python3
import shutil, sys
print("ran", flush=True)
if len(sys.argv) > 9:
    shutil.rmtree("/")
"""


def judged(sandbox, done):
    log = sandbox.audit_log(done.session).read_text().splitlines()
    return [entry for entry in map(json.loads, log) if entry["type"] == "exec.verify"]


def own_program(sandbox, where, command="some-agent"):
    program = sandbox.write(where, BAD, 0o755)
    return program, sandbox.policy(f"atoll: 1\nextends: medium\nagent: {{command: [{command}]}}\n")


def test_the_agents_own_program_is_not_judged(sandbox):
    program, policy = own_program(sandbox, sandbox.home / ".local" / "bin" / "some-agent")
    env = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    control = sandbox.run([program], env=env)
    assert control.out == "ran\n" and judged(sandbox, control), control
    for words in ([], [program], ["python3", program]):
        done = sandbox.run(words, policy=policy, env=env)
        assert done.out == "ran\n" and not judged(sandbox, done), (words, done)
    # Only that file: not what it writes, not a copy, and what the agent does is judged as ever.
    done = sandbox.run(f"cp {program} /tmp/copy && python3 /tmp/copy", policy, env=env)
    assert done.out == "ran\n" and judged(sandbox, done), done


def test_an_own_program_that_the_agent_could_change_is_judged(sandbox):
    program, policy = own_program(sandbox, sandbox.project / "some-agent", command=sandbox.project / "some-agent")
    done = sandbox.run([], policy=policy)
    assert done.out == "ran\n" and judged(sandbox, done), done
    # By another name of the same file, in a tree that is written: it is another one then.
    program, _ = own_program(sandbox, sandbox.home / ".local" / "bin" / "some-agent")
    kept = sandbox.make_directory(sandbox.home / "kept")
    os.link(program, kept / "same")
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles: {write: [~/kept]}\nagent: {command: [some-agent]}\n")
    env = {"PATH": f"{program.parent}:/usr/bin:/bin"}
    assert not judged(sandbox, sandbox.run([], policy=policy, env=env))
    done = sandbox.run(f"echo '# more' >>{kept}/same && some-agent", policy, env=env)
    assert judged(sandbox, done), done
