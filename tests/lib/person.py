# SPDX-License-Identifier: Apache-2.0
"""A person who hears the questions of a session and answers them, over its control socket."""
import threading

import control
from control import Reader, blob, u32, u64

ONCE, USES, TIME, SESSION = range(4)
LIST, FOLLOW, GLANCE, FIND = range(4)


QUESTION = ("number", "hash", "state", "waiting", "times", "pid", "asked_ns", "left_ms", "is_allowed", "kind", "flags",
            "subject", "argv", "method", "path", "program", "cwd", "port", "rule", "why", "words")


def take_questions(values):
    """The questions that a reply holds."""
    reader = Reader(values["questions"][control.HEADER:])
    questions = []
    reader.field()
    while not reader.is_at_end:
        questions.append({name: reader.field() for name in QUESTION})
    return questions


def find_questions(sandbox, session):
    """What is asked, without anybody being shown it."""
    with control.Link(sandbox, session) as other:
        code, values = other.request(control.ASKS, u64(0), u32(FIND))
    assert code == 0, values
    return take_questions(values)


class Person:
    """Follows the questions of a session from a thread; seen has each as it was first told."""

    def __init__(self, sandbox, session, answer=None):
        """answer(question): (is_allowed, scope, amount), or None for silence."""
        self.sandbox, self.session, self.answer = sandbox, session, answer
        self.seen, self.errors = {}, []
        self.control = control.Link(sandbox, session, timeout=60)
        ticket = self.control.begin(control.ASKS, u64(0), u32(FOLLOW))
        # The box serves who spoke first: from this answer on it knows that somebody listens.
        with control.Link(sandbox, session) as other:
            other.status()
        self.thread = threading.Thread(target=self.follow, args=(ticket,), daemon=True)
        self.thread.start()

    def follow(self, ticket):
        while True:
            try:
                code, values = self.control.reply(ticket)
            except OSError:
                return
            if code:
                return
            for question in take_questions(values):
                if question["number"] in self.seen:
                    continue
                self.seen[question["number"]] = question
                said = self.answer(question) if self.answer else None
                if said:
                    self.say(question, *said)
            try:
                ticket = self.control.begin(control.ASKS, u64(values["after"]), u32(FOLLOW))
            except OSError:
                return

    def say(self, question, is_allowed, scope=ONCE, amount=0):
        """The box's answer: the number of the grant, or what it says against it."""
        with control.Link(self.sandbox, self.session) as other:
            code, values = other.request(control.ANSWER, u32(question["number"]), blob(question["hash"]),
                                         u32(is_allowed), u32(scope), u64(amount))
        if code == 0:
            return values["grant"]
        self.errors.append(values["what"])
        return None

    def revoke(self, grant):
        """0, or the code of what there is against it."""
        with control.Link(self.sandbox, self.session) as other:
            return other.request(control.REVOKE, u64(grant))[0]

    def close(self):
        self.control.socket.shutdown(2)
        self.thread.join(timeout=5)
        self.control.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
