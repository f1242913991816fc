# SPDX-License-Identifier: Apache-2.0
"""How much memory a program takes."""
import json
import subprocess

# What a program's parent had in memory when it was started counts as the program's own (getrusage(2)): hundreds of
# megabytes in a run of all tests. So it has a small parent.
SMALL = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
out = process.stdout.read().decode()
print(json.dumps([out, os.wait4(process.pid, 0)[2].ru_maxrss]))
"""


def peak(command):
    """What a command prints, and its largest resident set in KiB."""
    done = subprocess.run(["/usr/bin/python3", "-c", SMALL, *map(str, command)], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)
