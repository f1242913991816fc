# SPDX-License-Identifier: Apache-2.0
"""What a review sees of what was staged, whole: attributes beside contents, times, what the host took away, what the
agent closed."""
import pytest

from stage import Staged

MOUNTED = """
import errno, os, sys
project = sys.argv[1]; above = os.path.dirname(project)
def attempt(what, *words):
    try: what(*words); return "done"
    except OSError as error: return errno.errorcode[error.errno]
os.mkdir(above + "/plain"); os.mkdir(above + "/other"); os.mkdir(above + "/empty")
print(attempt(os.rename, above + "/plain", above + "/renamed"), attempt(os.rmdir, above + "/other"))
print(attempt(os.rename, project, above + "/away"), attempt(os.rename, above + "/empty", project),
      attempt(os.rmdir, project), os.listdir(project))
"""


@pytest.mark.parametrize("lines", ["", "audit: {files: all}"])
def test_the_root_of_a_staged_tree_is_not_renamed_away(sandbox, lines):
    """The directory above it is writable inside. A mount point stays where it is, as it does without us."""
    staged = Staged(sandbox, lines=lines)
    sandbox.write(sandbox.project / "file", "host\n")
    done = staged.run(["/usr/bin/python3", "-c", MOUNTED, str(sandbox.project)])
    assert done.out == "done done\nEBUSY EBUSY EBUSY ['file']\n", done
