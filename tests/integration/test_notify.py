# SPDX-License-Identifier: Apache-2.0
"""`ask.desktop` and `ask.webhook`: questions where people are, and what their answers do. The question is about a
program, whose start waits for the answer."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from atoll import wait_until
from desktop import Desktop
from webhook import KEY, Webhook, answer_to, sign

pytestmark = [pytest.mark.needs("dbus-daemon")]
WHO = "/usr/bin/who && echo done || echo refused"


def policy_of(box, ask, more="", seconds=20):
    return box.policy(f"atoll: 1\nextends: medium\n{more}exec: {{ask: [{{program: /usr/bin/who}}]}}\n"
                      f"ask: {{timeout: {seconds}s, {ask}}}\n")


def records(box, session, kind):
    entries = map(json.loads, box.audit_log(session).read_text().splitlines())
    return [entry for entry in entries if entry["type"] == kind]


class Run:
    """A run that asks, while the test answers."""

    def __init__(self, box, ask, script=WHO, env=None, more="", seconds=20):
        self.box, self.report = box, box.report_path()
        box.own_parent(self.report)
        self.begun = time.monotonic()
        self.child = box.popen(["sh", "-c", script], policy=policy_of(box, ask, more, seconds), env=env,
                               report=self.report)

    def end(self, timeout=40):
        out, err = self.child.communicate(timeout=timeout)
        self.took = time.monotonic() - self.begun
        self.out, self.err = out.decode(), err.decode()
        self.told = json.loads(self.report.read_text())
        self.session = self.told["session"]
        return self

    def answers(self):
        return [(entry["verdict"], entry["detail"]["by"]) for entry in records(self.box, self.session, "ask.answer")]

    def alerts(self):
        return [(entry["rule"], entry["subject"]) for entry in records(self.box, self.session, "alert")]


def notifier_of(box_pid):
    for pid in pathlib.Path(f"/proc/{box_pid}/task/{box_pid}/children").read_text().split():
        if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "atoll-notify":
            return int(pid)
    raise AssertionError("no atoll-notify")


@pytest.fixture
def desktop(sandbox):
    made = []

    def make(**keywords):
        made.append(Desktop(sandbox, **keywords))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def webhook():
    made = []

    def make(*words, **keywords):
        made.append(Webhook(*words, **keywords))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def key_file(sandbox):
    return sandbox.write(sandbox.base / "config" / "key", KEY + b"\n", mode=0o600)


# ---- the desktop ----


def test_a_person_allows_once_on_the_desktop(sandbox, desktop):
    screen = desktop()
    run = Run(sandbox, "desktop: true", f"{WHO}; {WHO}", screen.environment)
    first = screen.shown()
    assert first["actions"] == ["allow", "Allow once", "deny", "Deny"] and first["timeout"] == 0, first
    assert "question 1 of" in first["summary"] and first["urgency"] == 2
    assert "run /usr/bin/who as" in first["body"].splitlines()[0], first
    screen.tell(press=first["show"], key="allow")
    second = screen.shown(2)
    assert second["show"] != first["show"]
    screen.tell(press=second["show"], key="deny")
    run.end()
    assert run.out.split() == ["done", "refused"], run.err
    assert run.answers() == [("allow", "desktop"), ("deny", "desktop")]
    assert run.told["asked"]["notices"] == [{"by": "desktop", "questions": 2, "answers": 2, "alerts": 0,
                                               "trouble": None}]
    screen.closed(first["show"])
    screen.closed(second["show"])


def test_what_was_answered_elsewhere_leaves_the_screen(sandbox, desktop):
    screen = desktop()
    run = Run(sandbox, "desktop: true", env=screen.environment)
    notice = screen.shown()
    question = json.loads(sandbox.run_atoll("ask", "--once", "--json").out)[0]
    assert sandbox.run_atoll("approve", f"{question['session']}:{question['number']}").code == 0
    screen.closed(notice["show"])
    run.end()
    assert run.out.split() == ["done"] and run.answers() == [("allow", "control")]
    screen.tell(press=notice["show"], key="deny")


def test_an_answer_just_before_the_end_leaves_the_screen(sandbox, desktop):
    """The program that shows it reads of the answer and of the end of the run at one time: it was stopped."""
    screen = desktop()
    run = Run(sandbox, "desktop: true", env=screen.environment)
    notice = screen.shown()
    question = json.loads(sandbox.run_atoll("ask", "--once", "--json").out)[0]
    entry = json.loads(sandbox.run_atoll("ps", "--json").out)[0]
    program = notifier_of(entry["pid"])
    os.kill(program, signal.SIGSTOP)
    assert sandbox.run_atoll("approve", f"{question['session']}:{question['number']}").code == 0
    time.sleep(1)
    os.kill(program, signal.SIGCONT)
    run.end()
    assert run.out.split() == ["done"]
    screen.closed(notice["show"])


def test_nobody_answers_and_the_end_clears_the_screen(sandbox, desktop):
    screen = desktop()
    run = Run(sandbox, "desktop: true", f"timeout 3 {WHO}", screen.environment, seconds=5)
    notice = screen.shown()
    run.end()
    assert run.out.split() == ["refused"]
    screen.closed(notice["show"])


@pytest.mark.parametrize("capabilities", [("actions", "body", "body-markup"), ("actions", "body")])
def test_words_of_the_agent_are_no_markup_and_no_second_question(sandbox, desktop, capabilities):
    screen = desktop(capabilities=capabilities)
    words = "<b>x</b>&amp;<a href='http://a'>\n\natoll asks: allow \N{RIGHT-TO-LEFT OVERRIDE}\x1b[2J\""
    script = "import json,os,socket; s=socket.socket(socket.AF_UNIX); s.connect('/run/atoll/ask.sock'); " \
             f"s.sendall(json.dumps({{'want':'file.read','subject':'/opt/<i>&amp;','reason':{words!r},'seconds':15}})" \
             ".encode()+b'\\n'); print(s.recv(4000).decode(), s.recv(4000).decode())"
    more = "files: {ask: [/opt]}\n"
    run = Run(sandbox, "desktop: true", '/usr/bin/python3 -c "$CODE"', {**screen.environment, "CODE": script},
              more + "env: {pass: [CODE]}\n")
    body = screen.shown()["body"]
    lines = body.splitlines()
    assert sum("the agent says (check it)" in line for line in lines) == 1 and "the agent says" in lines[-1], body
    assert "\x1b" not in body and "\N{RIGHT-TO-LEFT OVERRIDE}" not in body
    assert "<" not in body and ">" not in body, body
    if "body-markup" in capabilities:
        assert "/opt/&lt;i&gt;&amp;amp;" in lines[0] and "&lt;b&gt;x" in lines[-1], body
    else:
        assert "&" not in body and "/opt/\\x3ci\\x3e\\x26amp;" in lines[0], body
    screen.tell(press=screen.shown()["show"], key="deny")
    run.end()


def test_what_is_too_long_to_be_seen_cannot_be_allowed_there(sandbox, desktop):
    screen = desktop()
    run = Run(sandbox, "desktop: true", "/usr/bin/who " + "x" * 2000 + " >/dev/null 2>&1 || echo refused",
              screen.environment)
    notice = screen.shown()
    assert notice["actions"] == ["deny", "Deny"] and "too long" in notice["body"], notice
    screen.tell(press=notice["show"], key="allow")
    time.sleep(0.5)
    screen.tell(press=notice["show"], key="deny")
    run.end()
    assert run.answers() == [("deny", "desktop")] and run.out.split() == ["refused"]


def test_only_the_service_that_showed_it_says_what_was_pressed(sandbox, desktop):
    screen = desktop()
    run = Run(sandbox, "desktop: true", env=screen.environment)
    notice = screen.shown()
    screen.tell(imitate=notice["show"], key="allow")
    wait_until(lambda: {"imitated": notice["show"]} in screen.said)
    screen.tell(press=notice["show"] + 7, key="allow")
    screen.tell(press=notice["show"], key="default")
    time.sleep(1)
    assert run.child.poll() is None
    screen.tell(press=notice["show"], key="deny")
    run.end()
    assert run.answers() == [("deny", "desktop")]


def test_a_service_that_begins_anew_shows_what_is_open(sandbox, desktop):
    screen = desktop()
    run = Run(sandbox, "desktop: true", WHO + "; sleep 4", screen.environment)
    screen.shown()
    screen.end_service()
    screen.serve()
    # Nobody could hear for a moment, so what waited was refused; it stands there for the next try.
    notice = screen.shown(2)
    run.end()
    assert "question 1" in notice["summary"]


@pytest.mark.parametrize("kind", ["no bus", "no service", "no such socket", "a program"])
def test_without_a_desktop_the_run_goes_on_and_says_so_once(sandbox, desktop, kind):
    environment = {"DBUS_SESSION_BUS_ADDRESS": None, "XDG_RUNTIME_DIR": str(sandbox.runtime)}
    if kind == "no service":
        environment = desktop(with_service=False).environment
    elif kind == "no such socket":
        environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={sandbox.base}/none"
    elif kind == "a program":
        environment["DBUS_SESSION_BUS_ADDRESS"] = f"unixexec:path=/usr/bin/touch,argv1={sandbox.base}/touched"
    run = Run(sandbox, "desktop: true", f"{WHO}; {WHO}", environment).end()
    assert run.out.split() == ["refused", "refused"] and run.took < 15
    assert [rule for rule, _ in run.alerts()] == ["ask.desktop"], run.alerts()
    assert "ask.desktop" in run.err and not (sandbox.base / "touched").exists()
    assert run.told["asked"]["unanswered"] == 2


def test_a_person_at_another_place_is_not_disturbed_by_a_missing_desktop(sandbox):
    run = Run(sandbox, "desktop: true", "sleep 1; " + WHO, {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={sandbox.base}/no"})
    child = subprocess.Popen([str(sandbox.programs.atoll), "ask", "--follow", "--json"], stdout=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, start_new_session=True, **sandbox.popen_keywords())
    sandbox.children.append(child)
    question = json.loads(child.stdout.readline())
    assert question["state"] == "waiting"
    assert sandbox.run_atoll("approve", f"{question['session']}:{question['number']}").code == 0
    run.end()
    assert run.out.split() == ["done"]


# ---- a webhook ----


def test_a_webhook_is_told_and_nothing_waits_for_it(sandbox, webhook):
    hook = webhook()
    run = Run(sandbox, f'webhook: "{hook.url}"', WHO + "; sleep 2").end()
    assert run.out.split() == ["refused"] and run.took < 15
    told = hook.told[0]
    assert told["event"] == "question" and told["state"] == "listed" and told["may_answer"] is False, told
    assert told["session"] == run.session and told["what"]["subject"] == "/usr/bin/who"
    assert told["what"]["kind"] == "exec" and told["text"].startswith("run /usr/bin/who as"), told
    opened = records(sandbox, run.session, "ask.open")[0]
    assert told["hash"] == opened["detail"]["hash"] and told["question"] == opened["detail"]["question"]
    assert set(hook.paths) == {"/hook"} and len(hook.questions()) == 1
    assert hook.signatures[0][0] == "" and run.alerts() == []


def test_a_webhook_is_told_of_what_a_run_asked_that_ended_at_once(sandbox, webhook):
    hook = webhook()
    run = Run(sandbox, f'webhook: "{hook.url}"', "exec /usr/bin/who").end()
    assert run.took < 15 and run.told["asked"]["notices"][0]["questions"] == 1, run.told["asked"]
    assert [(told["event"], told.get("answer")) for told in hook.told] == [("question", None), ("closed", "over")]
    assert hook.told[0]["what"]["subject"] == "/usr/bin/who" and hook.told[0]["hash"] == hook.told[1]["hash"]


def test_an_end_waits_no_longer_than_it_says_for_a_webhook_that_hangs(sandbox, webhook):
    hook = webhook(lambda handler, told: time.sleep(30))
    run = Run(sandbox, f'webhook: "{hook.url}"', "exec /usr/bin/who").end()
    assert len(hook.told) == 1 and run.took < 15, (hook.told, run.took)


def test_a_webhook_that_may_not_answer_is_not_heard(sandbox, webhook):
    hook = webhook(lambda handler, told: handler.send(200, answer_to(told)))
    run = Run(sandbox, f'webhook: "{hook.url}"', WHO + "; sleep 1; " + WHO).end()
    assert run.out.split() == ["refused", "refused"] and run.answers() == []


def test_a_webhook_answers_with_a_signature(sandbox, webhook, key_file):
    hook = webhook(lambda handler, told: handler.send(200, answer_to(told)))
    run = Run(sandbox, f'webhook: {{url: "{hook.url}", key_file: "{key_file}", may_answer: true}}').end()
    assert run.out.split() == ["done"] and run.answers() == [("allow", "webhook")], (run.err, run.alerts())
    header, body = hook.signatures[0]
    stamp, mark = header.split(",")
    assert stamp.startswith("t=") and abs(int(stamp[2:]) - time.time()) < 60
    assert mark == "v1=" + sign(stamp[2:].encode(), body)


def test_a_webhook_thinks_first_and_is_told_of_the_end(sandbox, webhook, key_file):
    def answer(handler, told):
        is_first = len(hook.questions()) < 2
        handler.send(202) if told["event"] == "closed" or is_first else handler.send(200, answer_to(told, "deny"))

    hook = webhook(answer)
    run = Run(sandbox, f'webhook: {{url: "{hook.url}", key_file: "{key_file}", may_answer: true}}',
              WHO + "; sleep 1").end()
    assert run.out.split() == ["refused"] and run.answers() == [("deny", "webhook")]
    closed = [told for told in hook.told if told["event"] == "closed"]
    assert [told["answer"] for told in closed] == ["denied"] and closed[0]["hash"] == hook.told[0]["hash"]


def test_a_webhook_allows_for_the_session(sandbox, webhook, key_file):
    hook = webhook(lambda handler, told: handler.send(200, answer_to(told, scope="session")))
    run = Run(sandbox, f'webhook: {{url: "{hook.url}", key_file: "{key_file}", may_answer: true}}', f"{WHO}; {WHO}")
    run.end()
    assert run.out.split() == ["done", "done"] and len(run.answers()) == 1 and len(hook.questions()) == 1


def test_the_key_may_come_from_the_vault(sandbox, webhook):
    done = sandbox.run_atoll("secret", "set", "hook", stdin=KEY)
    assert done.code == 0, done
    hook = webhook(lambda handler, told: handler.send(200, answer_to(told)))
    run = Run(sandbox, f'webhook: {{url: "{hook.url}", key: hook, may_answer: true}}').end()
    assert run.out.split() == ["done"], (run.err, run.alerts())


def remember(hook_list):
    """Answers the first question, and with that same answer all that come after it."""
    def answer(handler, told):
        if not hook_list:
            body = json.dumps(answer_to(told)).encode()
            mark = handler.request_signature.partition("v1=")[2].encode()
            hook_list.append((body, [("Atoll-Signature", "v1=" + sign(mark, body))]))
        body, headers = hook_list[0]
        handler.send(200, body, headers, signed=False)
    return answer


LIES = {
    "another question": lambda handler, told: handler.send(200, {**answer_to(told), "question": told["question"] + 1}),
    "another hash": lambda handler, told: handler.send(200, {**answer_to(told), "hash": "sha256:" + "0" * 64}),
    "unsigned": lambda handler, told: handler.send(200, answer_to(told), signed=False),
    "signed otherwise": lambda handler, told: handler.send(
        200, answer_to(told), [("Atoll-Signature", "v1=" + "0" * 64)], signed=False),
    "garbage": lambda handler, told: handler.send(200, b"\x00\xff{yes}"),
    "more": lambda handler, told: handler.send(200, {**answer_to(told), "more": 1}),
    "for ever": lambda handler, told: handler.send(200, answer_to(told, scope="forever")),
    "a redirection": lambda handler, told: handler.send(307, b"", [("Location", "/elsewhere")]),
    "not found": lambda handler, told: handler.send(404, answer_to(told)),
    "long headers": lambda handler, told: handler.send(
        200, answer_to(told), [(f"X-{i}", "x" * 4000) for i in range(9)]),
}


@pytest.mark.parametrize("lie", sorted(LIES))
def test_a_webhook_that_lies_allows_nothing(sandbox, webhook, key_file, lie):
    hook = webhook(LIES[lie])
    run = Run(sandbox, f'webhook: {{url: "{hook.url}", key_file: "{key_file}", may_answer: true}}',
              f"{WHO}; {WHO}").end()
    assert run.out.split() == ["refused", "refused"] and run.took < 15, run.err
    # Nobody can be asked once it is known, and that is said once.
    assert ("allow", "webhook") not in run.answers() and len(run.alerts()) == 1, (run.answers(), run.alerts())
    assert set(hook.paths) == {"/hook"}


def test_an_answer_is_not_for_another_time(sandbox, webhook, key_file):
    """The same question in two sessions has one number and one hash; the answer to the first is none to the second."""
    hook, kept = webhook(remember([])), f"key_file: {key_file}, may_answer: true"
    first = Run(sandbox, f'webhook: {{url: "{hook.url}", {kept}}}').end()
    second = Run(sandbox, f'webhook: {{url: "{hook.url}", {kept}}}').end()
    assert first.out.split() == ["done"] and second.out.split() == ["refused"], (first.err, second.err)
    assert hook.told[0]["hash"] == hook.told[-1]["hash"] and hook.told[0]["question"] == hook.told[-1]["question"]


def flood(handler, told):
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    try:
        for _ in range(100):
            handler.wfile.write(b" " * (1 << 20))
        handler.server.hook.is_flooded = True
    except OSError:
        pass
    handler.close_connection = True


def test_a_flood_is_cut_off(sandbox, webhook, key_file):
    hook = webhook(flood)
    run = Run(sandbox, f'webhook: {{url: "{hook.url}", key_file: "{key_file}", may_answer: true}}').end()
    assert run.out.split() == ["refused"] and not hasattr(hook, "is_flooded") and run.took < 15
    assert run.alerts() == [("ask.webhook", "its answer is too long")]


def test_a_webhook_that_hangs_slows_nobody(sandbox, webhook, key_file, desktop):
    """Positive control in one: the desktop answers meanwhile."""
    hook, screen = webhook(lambda handler, told: time.sleep(60)), desktop()
    run = Run(sandbox, f'desktop: true, webhook: {{url: "{hook.url}", key_file: "{key_file}", may_answer: true}}',
              WHO, screen.environment)
    screen.tell(press=screen.shown()["show"], key="allow")
    run.end()
    assert run.out.split() == ["done"] and run.took < 15


def test_a_webhook_that_is_not_there_is_tried_again_and_said_once(sandbox, webhook, key_file):
    gone = webhook()
    gone.close()
    run = Run(sandbox, f'webhook: {{url: "{gone.url}", key_file: "{key_file}", may_answer: true}}',
              f"{WHO}; {WHO}").end()
    assert run.out.split() == ["refused", "refused"] and 4 < run.took < 25
    assert len(run.alerts()) == 1, run.alerts()


def test_a_server_that_fails_at_first_is_asked_again(sandbox, webhook, key_file):
    hook = webhook(lambda handler, told: handler.send(*([200, answer_to(told)] if len(hook.told) > 1 else [503])))
    run = Run(sandbox, f'webhook: {{url: "{hook.url}", key_file: "{key_file}", may_answer: true}}').end()
    assert run.out.split() == ["done"] and run.alerts() == [] and len(hook.questions()) == 2


@pytest.mark.parametrize("is_trusted", [True, False])
def test_tls_is_checked_against_the_hosts_authorities(sandbox, certificates, webhook, is_trusted):
    hook = webhook(lambda handler, told: handler.send(200, answer_to(told)), context=certificates.context())
    url = hook.url.replace("127.0.0.1", "localhost")
    environment = {"SSL_CERT_FILE": str(certificates.ca)} if is_trusted else {}
    run = Run(sandbox, f'webhook: {{url: "{url}", may_answer: true}}', env=environment).end()
    assert run.out.split() == (["done"] if is_trusted else ["refused"]), (run.err, run.alerts())
    assert bool(run.alerts()) != is_trusted


def test_a_key_that_others_can_read_is_none(sandbox, webhook, key_file):
    key_file.chmod(0o644)
    policy = policy_of(sandbox, f'webhook: {{url: "{webhook().url}", key_file: "{key_file}"}}')
    done = sandbox.run("true", policy=policy)
    assert done.code == 125 and "chmod 600" in done.err, done


def test_the_program_falls_and_the_run_goes_on(sandbox, desktop):
    screen = desktop()
    run = Run(sandbox, "desktop: true", f"{WHO}; {WHO}", screen.environment)
    screen.shown()
    entry = wait_until(lambda: json.loads(sandbox.run_atoll("ps", "--json").out))[0]
    os.kill(notifier_of(entry["pid"]), signal.SIGKILL)
    run.end()
    assert run.out.split() == ["refused", "refused"] and run.alerts() == [("ask.desktop", "its program has ended")]
