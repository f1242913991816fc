# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that something inside asks for: taken, listed with what changed, gone back to while the session lives,
and no way to fill the disk or to remove what a person named."""
import json
import time

import pytest

from atoll import wait_until

REQUEST = "/run/atoll/bin/atoll-request"
# Until it is taken: another one right before makes it "skipped".
TURN = f"""turn() {{ until {REQUEST} checkpoint "$@" | grep 'was taken'; do sleep 0.3; done; }}; """


def checkpoints(sandbox, session):
    done = sandbox.run_atoll("checkpoints", "--json", session)
    assert done.code == 0, done
    return json.loads(done.out)


def test_each_turn_is_kept_and_listed_with_what_changed(sandbox):
    sandbox.write(sandbox.project / "kept", "k\n")
    done = sandbox.run(["sh", "-c", TURN + """echo 1 >one; turn 'first turn'
        rm one; echo 2 >two; echo x >>kept; turn '{"type": "agent-turn-complete"}'; echo 3 >three"""])
    assert done.code == 0 and done.out.count("was taken") == 2, done
    turns = checkpoints(sandbox, done.session)
    assert [turn["name"] for turn in turns] == ["turn-1", "turn-2"]
    assert [(turn["added"], turn["modified"], turn["deleted"]) for turn in turns] == [(1, 0, 0), (1, 1, 1)], turns
    assert turns[0]["message"] == "first turn" and "agent-turn-complete" in turns[1]["message"]
    assert any(change["path"] == str(sandbox.project / "two") for change in turns[1]["changes"])
    text = sandbox.run_atoll("checkpoints", done.session)
    assert "+1 ~1 -1" in text.out and "first turn" in text.out, text
    assert sandbox.run_atoll("restore", done.session, "turn-1").code == 0
    assert sandbox.run_atoll("apply", done.session).code == 0
    assert (sandbox.project / "one").exists() and not (sandbox.project / "two").exists()


def test_a_living_session_is_listed_and_forked_from_a_checkpoint(sandbox):
    started = sandbox.run_atoll("run", "-d", "-n", "alive")
    assert started.code == 0, started
    session = started.out.strip()
    try:
        taken = sandbox.run_atoll("exec", session, "--", "sh", "-c", TURN + "echo 1 >one; turn go; echo 2 >one")
        assert taken.code == 0 and "turn-1" in taken.out, taken
        assert [turn["name"] for turn in checkpoints(sandbox, session)] == ["turn-1"]
        forked = sandbox.run_atoll("fork", session, "turn-1", "-q", "--", "cat", "one")
        assert forked.code == 0 and forked.out == "1\n", forked
        assert sandbox.run_atoll("exec", session, "--", "cat", "one").out == "2\n"
    finally:
        sandbox.run_atoll("stop", session)


def test_hostile_words_are_kept_harmless(sandbox):
    done = sandbox.run(["sh", "-c", TURN + r"""echo 1 >one
        turn "$(printf 'x\033]0;owned\007\nline --remove snapshot-1')"; turn "$(printf '\377\376')"
        turn "$(head -c 5000 /dev/zero | tr '\0' e)" """])
    assert done.out.count("was taken") == 3, done
    text = sandbox.run_atoll("checkpoints", done.session)
    assert text.code == 0 and "\x1b" not in text.out and text.out.count("\n") == 4, text
    assert len(checkpoints(sandbox, done.session)[2]["message"]) <= 200


def test_asking_without_end_takes_few_and_removes_none_of_a_person(sandbox):
    started = sandbox.run_atoll("run", "-d")
    session = started.out.strip()
    try:
        assert sandbox.run_atoll("exec", session, "--", "sh", "-c", "echo mine >one").code == 0
        assert sandbox.run_atoll("snapshot", session, "mine").code == 0
        begin = time.monotonic()
        asked = sandbox.run_atoll("exec", session, "--", "sh", "-c",
                                  f"for i in $(seq 60); do {REQUEST} checkpoint $i; done; true", timeout=120)
        took = time.monotonic() - begin
        taken = asked.out.count("was taken")
        assert 1 <= taken <= took / 3 + 1 and asked.out.count("skipped") > 10, (took, asked)
        names = [item["name"] for item in json.loads(sandbox.run_atoll("snapshot", "--list", "--json", session).out)]
        assert "mine" in names, names
    finally:
        sandbox.run_atoll("stop", session)


def test_the_number_that_stays_is_bounded_and_the_oldest_go(sandbox):
    started = sandbox.run_atoll("run", "-d")
    session = started.out.strip()
    try:
        assert sandbox.run_atoll("snapshot", session, "mine").code == 0
        for number in range(32):
            assert sandbox.run_atoll("snapshot", "--turn", session).out == f"turn-{number + 1}\n"
        turns = [turn["name"] for turn in checkpoints(sandbox, session)]
        assert turns == [f"turn-{number}" for number in range(3, 33)], turns
        assert "mine" in sandbox.run_atoll("snapshot", "--list", session).out
        layers = sandbox.state / "atoll" / "sessions" / session / "stage" / "layers"
        assert len(list(layers.iterdir())) <= 32
    finally:
        sandbox.run_atoll("stop", session)


@pytest.mark.parametrize("script", ["head -c 270000000 /dev/urandom >big", "seq 70000 | xargs touch"])
def test_what_is_too_large_is_not_copied_at_each_turn(sandbox, script):
    done = sandbox.run(["sh", "-c", f"mkdir d; cd d; {script}; {REQUEST} checkpoint; echo $?"], timeout=120)
    assert done.out.endswith("3\n") and "too large" in done.out, done
    assert checkpoints(sandbox, done.session) == []


def test_where_nothing_is_staged_it_is_no_failure_of_the_sandbox(sandbox):
    done = sandbox.run(["sh", "-c", f"{REQUEST} checkpoint; echo $?; echo alive"], trust="high")
    assert "alive" in done.out and done.code == 0, done


def test_a_session_that_ends_meanwhile_ends(sandbox):
    started = sandbox.run_atoll("run", "-d")
    session = started.out.strip()
    sandbox.run_atoll("exec", session, "--", "sh", "-c",
                      f"head -c 50000000 /dev/urandom >f; {REQUEST} checkpoint -w 0 & exit 0")
    assert sandbox.run_atoll("stop", session).code == 0
    wait_until(lambda: session not in sandbox.run_atoll("ps").out, 30, "its end")
