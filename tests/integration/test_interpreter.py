# SPDX-License-Identifier: Apache-2.0
"""The code interpreter: atoll-front with drivers that run outside of any sandbox, and one case with all of it."""
import http.client
import json
import os
import pathlib
import shutil
import socket
import time

import pytest

from connect import request
from front import TOKEN, Front

BIN = pathlib.Path(os.environ.get("ATOLL_BIN", pathlib.Path(__file__).resolve().parents[2] / "build" / "bin"))
PORT = {"E2b-Sandbox-Id": "abc", "E2b-Sandbox-Port": "49999"}
SIGNED = {**PORT, "X-Access-Token": TOKEN}


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    one = Front(BIN / "atoll-front", tmp_path_factory.mktemp("front"))
    one.do_exec_before = one.do_exec
    # Contexts say the home of a sandbox, which is not there.
    one.do_exec = lambda fields: one.do_exec_before({**fields, "cwd": fields["cwd"].replace("/home/user", one.place)})
    yield one
    assert one.close() == 0


@pytest.fixture
def context(front):
    """A context of its own for one case, and how code runs in it."""
    made = contexts(front, "POST", "", {"language": "python"})[1]
    yield lambda code, **more: execute(front, code, context_id=made["id"], **more)
    assert contexts(front, "DELETE", "/" + made["id"])[0] in (200, 404)


def contexts(front, method, path, body=None, headers=None):
    status, _, data = request(front, method, "/contexts" + path, body and json.dumps(body), headers or SIGNED)
    return status, json.loads(data) if data[:1] in (b"[", b"{") else data.decode()


def open_execution(front, code, **more):
    link = http.client.HTTPConnection("127.0.0.1", front.port, timeout=120)
    link.request("POST", "/execute", json.dumps({"code": code, **more}), SIGNED)
    return link


def execute(front, code, **more):
    """All lines of an answer; of stdout and stderr, the text together."""
    link = open_execution(front, code, **more)
    answer = link.getresponse()
    data = answer.read()
    link.close()
    assert answer.status == 200 and data.isascii(), data
    lines = [json.loads(line) for line in data.splitlines()]
    assert lines[-1] == {"type": "end_of_execution"} and not any("id" in line for line in lines)
    return {"lines": lines, **{kind: "".join(line["text"] for line in lines if line["type"] == kind)
                               for kind in ("stdout", "stderr")},
            "results": [line for line in lines if line["type"] == "result"],
            "error": next((line for line in lines if line["type"] == "error"), None)}


def text(done):
    return next((one["text"] for one in done["results"] if one["is_main_result"]), None)


# What a cell gives.

def test_a_value_its_state_and_its_count(context):
    assert text(context("x = 20\nx + 1")) == "21"
    done = context("x += 1; x")
    assert text(done) == "21" and {"type": "number_of_executions", "execution_count": 2} in done["lines"]
    assert text(context("x;")) is None and text(context("None")) is None and text(context("'abc'")) == "abc"
    assert text(context("\n    y = 3\n    if y:\n        y += 1\n    y\n    ")) == "4"
    assert text(context("def f():\n    return x * 2\nf()")) == "42"


def test_output_in_order_and_in_ascii(context):
    done = context("import sys\nprint('é\\u20ac\\U0001f600')\nsys.stderr.write('no\\n')\ndisplay(1)\nprint(2)")
    assert done["stdout"] == "é€😀\n2\n" and done["stderr"] == "no\n"
    kinds = [line["type"] for line in done["lines"] if line["type"] in ("stdout", "result")]
    assert kinds == ["stdout", "result", "stdout"]
    assert context("import os; _ = [os.write(1, bytes([b])) for b in 'é€😀'.encode()]")["stdout"] == "é€😀"
    assert context("_ = os.write(1, b'a\\xff\\xc3')")["stdout"] == "a\ufffd\ufffd"


def test_an_error_in_the_manner_of_ipython(context):
    error = context("def f():\n    return 1 / 0\nf()")["error"]
    assert error["name"] == "ZeroDivisionError" and error["value"] == "division by zero"
    assert "Cell In[1], line 3\n" in error["traceback"] and "----> 2     return 1 / 0" in error["traceback"]
    assert "<driver>" not in error["traceback"]
    assert context("x = = 1")["error"]["name"] == "SyntaxError"
    assert context("raise SystemExit(3)")["error"]["name"] == "SystemExit"
    assert context("'\\ud800'.encode('utf-8')")["error"]["name"] == "UnicodeEncodeError"


def test_await_commands_of_the_shell_and_variables_of_one_cell(context):
    assert text(context("import asyncio\nawait asyncio.sleep(0.01)\n7")) == "7"
    assert context("!echo from the shell")["stdout"] == "from the shell\n"
    assert text(context("import os; os.environ.get('MINE')", env_vars={"MINE": "yes"})) == "yes"
    assert text(context("os.environ.get('MINE', 'gone')")) == "gone"


def test_formats_of_results(context):
    done = context("""
class Page:
    def _repr_html_(self): return '<b>x</b>'
    def _repr_png_(self): return b'png'
    def _repr_mimebundle_(self, **_): return {'text/latex': '$x$', 'x/y': 1}
class Data:
    def _repr_json_(self): return {'a': [1, float('nan'), 2**70, None], 3: '\\0'}
from IPython.display import HTML, display as shown
shown(HTML('<i>y</i>'))
display(Data(), Page)
Page()""")
    assert text(context("import IPython; repr(IPython.get_ipython())")) == "None"
    html, data, kind, page = done["results"]
    assert html["html"] == "<i>y</i>" and not html["is_main_result"] and page["is_main_result"]
    assert page["html"] == "<b>x</b>" and page["png"] == "cG5n" and page["latex"] == "$x$" and page["x/y"] == 1
    assert data["json"] == {"a": [1, None, str(2**70), None], "3": "\ufffd"} and "html" not in kind


@pytest.mark.skipif(not os.path.exists("/usr/lib/python3/dist-packages/matplotlib"), reason="needs python3-matplotlib")
def test_figures_are_images_and_data(context):
    done = context("import sys; sys.path.append('/usr/lib/python3/dist-packages')\nimport matplotlib.pyplot as plt\n"
                   "plt.plot([1, 2], [3, 4], label='a'); plt.title('t'); plt.show()")
    figure = done["results"][0]
    assert figure["png"].startswith("iVBOR") and figure["chart"]["type"] == "line", done["error"]
    box = context("_ = plt.boxplot([[1, 2, 3, 90], [2, 3]], labels=['p', 'q'])\nplt.show()")["results"][0]["chart"]
    assert [(one["label"], one["median"], one["outliers"]) for one in box["elements"]] == \
        [("p", 2.5, [90]), ("q", 2.5, [])]
    assert box["type"] == "box_and_whisker"
    assert figure["chart"]["title"] == "t" and figure["chart"]["elements"][0]["points"] == [[1, 3], [2, 4]]


# Other languages.

@pytest.mark.needs("node")
def test_javascript(front):
    made = contexts(front, "POST", "", {"language": "js"})[1]

    def run(code, **more):
        return execute(front, code, context_id=made["id"], **more)
    assert text(run("const x = 20; x + 1")) == "21" and text(run("const x = 30; x")) == "30"
    assert text(run("await new Promise((done) => setTimeout(done, 5, 'late'))")) == "late"
    assert text(run("({ a: [1, { b: 2n }] })")) == "{ a: [ 1, { b: 2n } ] }" and text(run("let y = 1")) is None
    done = run("console.log('é'); console.error('no'); display({ _toMime: () => ({ 'text/html': '<b>' }) })")
    assert done["stdout"] == "é\n" and done["stderr"] == "no\n" and done["results"][0]["html"] == "<b>"
    error = run("function f() { throw new TypeError('bad') }\nf()")["error"]
    assert error["name"] == "TypeError" and error["value"] == "bad" and "at f" in error["traceback"]
    assert run("let = = 1")["error"]["name"] == "SyntaxError" and run("throw 5")["error"]["value"] == "5"
    # The driver's names are not those of the cells.
    assert text(run("const size = 1, fs = 2; function run() {}\nfunction say() {}\nvar read = 3; size + fs")) == "3"
    assert text(run("import { basename } from 'node:path'\nbasename('/a/b')")) == "b"
    assert text(run("require('fs').existsSync('/')")) == "true"
    assert text(run("process.env.MINE", env_vars={"MINE": "yes"})) == "yes"
    assert text(run("typeof process.env.MINE")) == "undefined"
    assert run("process.exit(3)")["error"]["name"] == "UnexpectedEndOfExecution"
    assert run("x")["error"]["name"] == "ReferenceError"
    link = open_execution(front, "console.log('begun'); var z = 6; await new Promise(() => setInterval(() => 0, 50))",
                          context_id=made["id"])
    answer = link.getresponse()
    while b"begun" not in answer.readline():
        pass
    link.sock.shutdown(socket.SHUT_RDWR)
    link.close()
    assert text(run("z")) == "6"
    done = run("'z'.repeat(9_000_000)")
    assert done["error"] is None and len(text(done)) < 1_000_000
    assert contexts(front, "DELETE", "/" + made["id"])[0] == 200


@pytest.mark.needs("node")
def test_typescript_where_node_has_it(front):
    done = execute(front, "const at: number = 5\nat + 1", language="typescript")
    assert text(done) == "6" or "TypeScript needs Node.js 22.13" in done["error"]["value"]


def test_bash(front):
    def run(code, **more):
        return execute(front, code, language="bash", **more)
    assert run("x='a  b'; cd /; f() { echo \"$x\" \"$PWD\"; }")["error"] is None
    assert run("f; echo no >&2; echo 'it'\"'\"'s é'") ["stdout"] == "a  b /\nit's é\n"
    done = run("echo out; (exit 3)")
    assert done["stdout"] == "out\n" and done["error"]["name"] == "ExitStatus" and done["error"]["value"] == "3"
    assert run("echo $MINE", env_vars={"MINE": "a 'b'"})["stdout"] == "a 'b'\n" and run("echo $MINE")["stdout"] == "\n"
    assert run("cat; echo end")["stdout"] == "end\n"
    assert run("if")["error"]["name"] == "ExitStatus"
    assert {"type": "number_of_executions", "execution_count": 8} in run("x=1")["lines"]
    assert run("exit 4")["error"]["name"] == "UnexpectedEndOfExecution"
    assert run("echo fresh $x")["stdout"] == "fresh\n"


@pytest.mark.needs("R")
def test_r(front):
    def run(code, **more):
        return execute(front, code, language="r", **more)
    assert text(run("x <- 13; x")) == "[1] 13" and text(run("x + 1; y <- 2")) is None
    done = run("cat('é\\n'); print(2); message('no'); warning('odd')\n1; 2")
    assert done["stdout"] == "é\n[1] 2\n" and "no\n" in done["stderr"] and "odd" in done["stderr"]
    assert [(one["text"], one["is_main_result"]) for one in done["results"]] == [("[1] 1", False), ("[1] 2", True)]
    error = run("f <- function(y) stop('bad é')\nf(1)")["error"]
    assert error["name"] == "Error" and error["value"] == "bad é" and "1: f(1)" in error["traceback"]
    assert run("1 +")["error"]["name"] == "ParseError" and run("nothing")["error"]["value"].startswith("object")
    shown = run("data.frame(a = c(1.5, NA), b = c('x<', 'é\U0001f600'), c = factor(c('p', 'q')))")["results"][0]
    assert shown["json"] == [{"a": 1.5, "b": "x<", "c": "p"}, {"a": None, "b": "é\U0001f600", "c": "q"}]
    assert shown["data"]["b"] == ["x<", "é\U0001f600"] and "<td>x&lt;</td>" in shown["html"] and "1.5" in shown["text"]
    image = run("plot(1:3); lines(3:1)\nhist(c(1, 1, 2))")["results"]
    assert [one["png"][:5] for one in image[-2:]] == ["iVBOR"] * 2 and not image[-1]["is_main_result"]
    assert "<svg" in run("options(jupyter.plot_mimetypes = 'image/svg+xml'); plot(1)")["results"][0]["svg"]
    assert text(run("Sys.getenv('MINE')", env_vars={"MINE": "a 'b' é"})) == "[1] \"a 'b' é\""
    assert text(run("Sys.getenv('MINE')")) == '[1] ""'
    assert text(run("sink('/dev/null'); sink(textConnection('kept', 'w'), type = 'message'); print(1); 7")) == "[1] 7"
    assert run("sink(); cat('x\\n')")["stdout"] == "x\n" and text(run("readLines(file('stdin'))")) == "character(0)"
    assert run("quit('no')")["error"]["name"] == "UnexpectedEndOfExecution" and "error" in run("x")
    assert run("x")["error"]["name"] == "Error"


@pytest.mark.needs("jshell")
def test_java(front):
    def run(code, **more):
        return execute(front, code, language="java", **more)
    assert text(run("int x = 20; x + 1")) == "21" and text(run("int x = 30;")) is None and text(run("x")) == "30"
    assert text(run("String f(int a) {\n  return \"é\" + a;\n}\nf(3)")) == "é3"
    done = run("System.out.println(\"é€\"); System.err.println(\"no\");\n"
               "List.of(1, 2).stream().map(a -> a * 2).toList()")
    assert done["stdout"] == "é€\n" and done["stderr"] == "no\n" and text(done) == "[2, 4]"
    error = run("int g(int a) { return 1 / a; }\ng(0)")["error"]
    assert error["name"] == "java.lang.ArithmeticException" and error["value"] == "/ by zero"
    assert "at .g(" in error["traceback"] and "do_it$" not in error["traceback"]
    error = run("int y = \"s\";")["error"]
    assert error["name"] == "CompilationError" and "cannot be converted" in error["value"]
    assert run("if (x > 3) {")["error"]["name"] == "CompilationError"
    assert text(run("System.getenv(\"MINE\")", env_vars={"MINE": "a 'b' é"})) == "a 'b' é"
    assert text(run("System.getenv(\"MINE\")")) == "null" and text(run("System.in.read()")) == "-1"
    assert run("System.exit(3)")["error"]["name"] == "UnexpectedEndOfExecution"
    assert run("x")["error"]["name"] == "CompilationError"


@pytest.mark.parametrize("language, wanted", [
    ("r", "r-base-core"), ("java", "default-jdk-headless"), ("javascript", "nodejs"), ("typescript", "Node.js")])
def test_a_language_that_is_not_there_is_named(front, tmp_path, language, wanted):
    """In a sandbox that has nothing but a shell."""
    for name in ("sh", "cat"):
        (tmp_path / name).symlink_to(shutil.which(name))
    before = front.do_exec
    front.do_exec = lambda fields: before({**fields, "env": ["PATH=" + str(tmp_path)]})
    try:
        made = contexts(front, "POST", "", {"language": language})[1]
        error = execute(front, "1", context_id=made["id"])["error"]
        assert error["name"] == "InterpreterNotStarted" and wanted in error["value"]
        assert execute(front, "1", context_id=made["id"])["error"] == error
    finally:
        front.do_exec = before
    assert contexts(front, "DELETE", "/" + made["id"])[0] == 200


# Contexts.

def test_contexts_are_made_listed_restarted_and_removed(front, tmp_path):
    status, made = contexts(front, "POST", "", {"language": "Python", "cwd": str(tmp_path)})
    assert status == 200 and made["language"] == "python" and made["cwd"] == str(tmp_path)
    listed = contexts(front, "GET", "")[1]
    assert listed[-1] == made and {"python", "javascript"} <= {one["language"] for one in listed}
    first = {"context_id": made["id"]}
    assert text(execute(front, "import os; x = 1; os.getcwd()", **first)) == str(tmp_path)
    assert execute(front, "x", language="python")["error"]["name"] == "NameError"
    assert contexts(front, "POST", f"/{made['id']}/restart")[0] == 200
    assert execute(front, "x", **first)["error"]["name"] == "NameError"
    assert contexts(front, "DELETE", f"/{made['id']}")[0] == 200
    for method, path in (("DELETE", f"/{made['id']}"), ("POST", f"/{made['id']}/restart")):
        assert contexts(front, method, path)[0] == 404
    assert request(front, "POST", "/execute", json.dumps({"code": "1", **first}), SIGNED)[0] == 404


def test_contexts_are_bounded(front):
    made = []
    for _ in range(40):
        status, one = contexts(front, "POST", "", {})
        if status != 200:
            break
        made.append(one["id"])
    assert status == 429 and 20 <= len(made) <= 32
    assert all(contexts(front, "DELETE", "/" + one)[0] == 200 for one in made)


BAD = [
    ({"code": 1}, 400), ({}, 400), ({"code": "1", "language": "cobol"}, 400), ([], 400),
    ({"code": "1", "language": "python", "context_id": "x"}, 400), ({"code": "1", "context_id": "x"}, 404),
    ({"code": "1", "env_vars": {"A": 1}}, 400), ({"code": "1", "env_vars": {"A=B": "1"}}, 400),
]


@pytest.mark.parametrize("body, wanted", BAD)
def test_requests_that_cannot_be(front, body, wanted):
    status, _, data = request(front, "POST", "/execute", json.dumps(body), SIGNED)
    assert status == wanted and data and data[:1] != b"{"


def test_who_may(front):
    """Code runs by the access token alone; contexts also by the token of the ports, since clients send no other."""
    code = json.dumps({"code": "1"})
    for headers in (PORT, {**PORT, "X-Access-Token": "wrong"}, {**PORT, "E2b-Traffic-Access-Token": TOKEN}):
        assert request(front, "POST", "/execute", code, headers)[0] == 401
    assert contexts(front, "GET", "", headers=PORT)[0] == 401
    assert contexts(front, "GET", "", headers={**PORT, "E2b-Traffic-Access-Token": TOKEN})[0] == 200
    assert request(front, "GET", "/health", None, PORT)[2] == b'"OK"'


# Code that does not behave.

def test_a_client_that_leaves_interrupts_its_code(front, context):
    assert context("x = 5")["error"] is None
    made = contexts(front, "GET", "")[1][-1]["id"]
    link = open_execution(front, "import time\nprint('begun')\nwhile True: time.sleep(0.01)", context_id=made)
    answer = link.getresponse()
    while b"begun" not in answer.readline():
        pass
    link.sock.shutdown(socket.SHUT_RDWR)
    link.close()
    assert text(context("x")) == "5"


def test_code_that_ignores_interrupts_is_killed(front, context):
    made = contexts(front, "GET", "")[1][-1]["id"]
    link = open_execution(front, "import time\nprint('begun')\nwhile True:\n try:\n  while True: time.sleep(0.01)\n"
                          " except BaseException: pass", context_id=made)
    answer = link.getresponse()
    while b"begun" not in answer.readline():
        pass
    link.sock.shutdown(socket.SHUT_RDWR)
    link.close()
    assert text(context("1 + 1")) == "2"


@pytest.mark.parametrize("code", [
    "import os; os._exit(0)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "import os; os.closerange(0, 4096)"])
def test_a_driver_that_ends_is_an_error_and_the_next_one_is_fresh(context, code):
    assert context("x = 1")["error"] is None
    assert context(code)["error"]["name"] == "UnexpectedEndOfExecution"
    assert context("x")["error"]["name"] == "NameError"


# By language: what it needs; code that never ends, in a context where z is 6; what shows z; code that kills its driver;
# that closes its outputs; that writes a GB; that leaves a process behind.
WILD = {
    "javascript": ("node", "console.log('begun'); var z = 6; await new Promise(() => setInterval(() => 0, 50))", "z",
                   "process.kill(process.pid, 'SIGKILL')", "const fs = require('fs'); fs.closeSync(1); fs.closeSync(2)",
                   "const fs = require('fs')\nfor (let at = 0; at < 16384; at++) fs.writeSync(1, 'x'.repeat(65536))",
                   "require('child_process').spawn('sleep', ['3'], { stdio: 'inherit' }); 0"),
    "bash": ("bash", "z=6; (echo begun; exec sleep 1000)", "echo $z", "kill -9 $$", "exec 1>&- 2>&-",
             "head -c 1G /dev/zero | tr '\\0' x", "sleep 3 &"),
    "r": ("R", "z <- 6; cat('begun\\n'); repeat Sys.sleep(0.01)", "cat(z)", "tools::pskill(Sys.getpid(), 9)",
          "closeAllConnections()", "for (at in 1:16384) cat(strrep('x', 65536))", "system('sleep 3 &')"),
    "java": ("jshell", "int z = 6; System.out.println(\"begun\"); while (true) { Thread.sleep(10); }",
             "System.out.print(z)", "Runtime.getRuntime().halt(1)", "System.out.close(); System.err.close()",
             "for (int at = 0; at < 16384; at++) System.out.print(\"x\".repeat(65536));",
             "new ProcessBuilder(\"sleep\", \"3\").inheritIO().start()"),
}


def leave(link, word):
    """The client goes when this was written."""
    answer, seen = link.getresponse(), b""
    while word not in seen[-131072:]:
        piece = answer.read1(65536)
        assert piece, seen[-400:]
        seen += piece
    link.sock.shutdown(socket.SHUT_RDWR)
    link.close()


@pytest.mark.parametrize("language", WILD)
def test_code_of_any_language_that_does_not_behave(front, language):
    program, endless, shown, killing, closing, much, leaving = WILD[language]
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    made = contexts(front, "POST", "", {"language": language})[1]["id"]

    def run(code):
        return execute(front, code, context_id=made)

    def show():
        done = run(shown)
        return done["stdout"].strip() or text(done)
    before = memory(front)
    leave(open_execution(front, endless, context_id=made), b"begun")
    assert show() == "6", "an interrupt ends the cell alone"
    assert run(leaving)["error"] is None, "its end does not wait for a process that it left"
    leave(open_execution(front, much, context_id=made), b"xxx")
    run(shown)
    assert memory(front) - before < 32 << 20
    assert run(killing)["error"]["name"] == "UnexpectedEndOfExecution"
    assert show() != "6", "the next one is fresh"
    run(closing)
    run(shown)
    assert contexts(front, "DELETE", "/" + made)[0] == 200


def test_forks_threads_and_closed_outputs(context):
    assert context("import os\npid = os.fork()\nif not pid: print('child')\nelse: _ = os.waitpid(pid, 0)")["stdout"] \
        == "child\n"
    assert text(context("os.close(1); os.close(2); 3")) == "3"
    assert text(context("4")) == "4"


def test_forged_lines_spoil_their_own_results_alone(front, context):
    forge = ("import os\nmark = b'\\x1e' + open('/proc/self/cmdline','rb').read().split(b'\\0')[-2]\n"
             "def say(line): os.write(1, mark + b'%04x' % len(line) + line)\n")
    assert context(forge)["error"] is None
    for line in ("b'no json\\n'", "b'\\n'", "b'[]\\n'", "b'{\"id\":1}\\n'", "b'{\"type\":\"result\"}\\n'",
                 "b'{\"id\":999,\"type\":\"result\",\"is_main_result\":true}\\n'", "b'x' * 4000", "b'\\xff\\n'",
                 "b'{\"id\":99,\"type\":\"end\"}\\n'", "b'[' * 4000 + b'\\n'"):
        done = context(f"say({line})\n'own'")
        assert done["error"] is None or done["error"]["name"] == "ResultError"
    # A head that is none is what the code wrote.
    assert "zzzz" in context("_ = os.write(1, mark + b'zzzz')")["stdout"]
    # Lines beyond the bound are thrown away as they come.
    assert context("for _ in range(4000): say(b'y' * 4000)\nsay(b'\\n')")["error"]["name"] == "ResultError"
    assert text(context("1")) == "1" and text(execute(front, "2")) == "2"


def test_an_end_that_is_forged_before_a_driver_dies_ends_no_service(front, context):
    """The next run meets a driver that takes nothing any more, while its last lines are being read."""
    assert context("import os, sys\nmark = b'\\x1e' + open('/proc/self/cmdline','rb').read().split(b'\\0')[-2]\n"
                   "def say(fd, line): os.write(fd, mark + b'%04x' % len(line) + line)")["error"] is None
    made = contexts(front, "GET", "")[1][-1]["id"]
    code = ("import time; time.sleep(1)\nfor fd in range(3, 200):\n try: os.close(fd)\n except OSError: pass\n"
            "end = b'{\"id\":2,\"type\":\"end\"}\\n'\nsay(2, end)\ntime.sleep(0.3)\nsay(1, end)\ntime.sleep(1000)")
    links = [open_execution(front, one, context_id=made) for one in (code, "1", "2")]
    ends = [link.getresponse().read() for link in links]
    assert all(b"end_of_execution" in end for end in ends)
    assert text(context("3")) == "3"


def memory(front):
    status = pathlib.Path(f"/proc/{front.process.pid}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) << 10


def test_a_gigabyte_that_nobody_reads_waits_in_the_code(front, context):
    made = contexts(front, "GET", "")[1][-1]["id"]
    before = memory(front)
    link = open_execution(front, "line = 'x' * 65536\nfor _ in range(16384): print(line)", context_id=made)
    answer = link.getresponse()
    assert answer.read(1 << 20)
    time.sleep(1)
    assert memory(front) - before < 32 << 20
    assert text(execute(front, "3")) == "3"
    link.sock.shutdown(socket.SHUT_RDWR)
    link.close()
    assert text(context("4")) == "4"


def test_much_output_comes_whole(context):
    assert len(context("for at in range(400): print('x' * 65535)")["stdout"]) == 400 * 65536
    assert len(text(context("'y' * 3_000_000"))) == 3_000_000
    assert len(text(context("'z' * 9_000_000"))) < 1_000_000


def test_runs_of_one_context_wait_for_each_other(front, context):
    made = contexts(front, "GET", "")[1][-1]["id"]
    links = [open_execution(front, f"import time; time.sleep(0.05); print({at})", context_id=made) for at in range(40)]
    seen = [link.getresponse().read().decode() for link in links]
    assert sum("TooManyExecutions" in one for one in seen) == 8
    assert all(f'"{at}\\n"' in one for at, one in enumerate(seen) if "TooMany" not in one)


def test_the_end_of_a_sandbox_cuts_its_streams(front):
    front.sandboxes["gone1"] = {}
    link = http.client.HTTPConnection("127.0.0.1", front.port, timeout=60)
    link.request("POST", "/execute", json.dumps({"code": "print(1)\nimport time; time.sleep(1000)"}),
                 {**SIGNED, "E2b-Sandbox-Id": "gone1"})
    answer = link.getresponse()
    while b"stdout" not in answer.readline():
        pass
    front.do_kill({"sandbox": "gone1", "after": []})
    front.tell(4, sandbox="gone1", ended="killed")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        answer.read()
    link.close()
    gone = {**SIGNED, "E2b-Sandbox-Id": "gone1"}
    assert request(front, "POST", "/execute", json.dumps({"code": "1"}), gone)[0] == 502
