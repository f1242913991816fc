# SPDX-License-Identifier: Apache-2.0
"""tools/report-verify with the real `atoll verify`: the form of its answers is the one that the tool reads."""
import json
import os
import subprocess

import pytest
from atoll import ROOT

CASES = [("risky", "rm -rf ~"), ("risky", "x=/; rm -rf $x"), ("harmless", "ls -l"), ("harmless", "echo 'rm -rf /'")]
OTHER = {"risky": "harmless", "harmless": "risky"}


@pytest.fixture
def report(programs, tmp_path):
    """report([(label, text)], option…): the tool over these cases, with the rules of the programs under test."""
    atoll = os.path.join(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin"), "atoll")

    def report(cases, *options):
        file = tmp_path / "corpus.jsonl"
        file.write_text("".join(json.dumps({"label": label, "text": text, "language": "shell"}) + "\n"
                                for label, text in cases))
        return subprocess.run([ROOT / "tools" / "report-verify", "--atoll", atoll, *options, file], text=True,
                              capture_output=True, check=False)

    return report


def test_good_numbers(report):
    done = report(CASES, "--require", "detection=1,false-alarms=0")
    assert done.returncode == 0, done
    assert "could not be judged" not in done.stdout


def test_the_same_texts_with_the_other_labels_are_bad_numbers(report):
    done = report([(OTHER[label], text) for label, text in CASES], "--require", "detection=0.1,false-alarms=0.9")
    assert done.returncode == 1
    assert "detection is 0.0 % (0/2)" in done.stderr and "false alarms are 100.0 % (2/2)" in done.stderr


def test_the_users_own_rules_do_not_count(report, tmp_path, monkeypatch):
    own = tmp_path / "config" / "atoll" / "verify"
    own.mkdir(parents=True)
    (own / "broken.yaml").write_text("rules: [\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    done = report(CASES, "--require", "detection=1,false-alarms=0")
    assert done.returncode == 0 and "could not be judged" not in done.stdout
