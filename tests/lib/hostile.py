# SPDX-License-Identifier: Apache-2.0
"""Texts that repeat one thing: what somebody writes to make a judgement slow, or its memory run out.

Started as a program it judges all of them and prints what each took: hostile.py [BYTES OF A TEXT]
"""
import json
import os
import pathlib
import random
import sys
import tempfile

from peak import peak

ROOT = pathlib.Path(__file__).resolve().parents[2]
MS_MAX, MIB_MAX = 200, 64

# One of them as often as there is room for it.
SHELL = (
    "a|", "a | ", "case ", "case x in ", "case a in b) ", "if ", "if a; then ", "while ", "while a; do ", "for ",
    "for i in a; do ", "until a;do ", "select x in a; do ", "{ ", "{", "( ", "(", "((", "$((", "$(", "`", "`a ",
    "${", "${a:-", "${a", '"$(', '"${', '"', "'", "$'", '$"', "<", "<<", "<<E ", "<<E\n", "<<-E\n", "<<<", "<<<a ",
    "<(", ">(", "> a ", ">a ", ">", ">>", "2>&1 ", ">&", "&>a ", "&", "& ", "a & ", "&&", "a && ", "a || ", "||",
    "|&", "a |& ", "! ", "!", "[ ", "[[ ", "[[ a && ", "[[ ( ", "[[ a =~ ", "]] ", "} ", ") ", "))", "f() { ", "f()",
    "f(){ f; }; ", "function f { ", "function ", "a=(", "a=( ", "a=b ", "a+=b ", "a[", "a[1]=", "a=$a$a ",
    "x=$x$x\n", "a=`", "export ", "export a=", "local a=", "declare -a a=(", "eval ", "eval '", 'eval "', "sh -c '",
    'sh -c "', "bash -c ", "sudo ", "env ", "xargs ", "time ", "coproc ", "then ", "else ", "elif ", "elif a; then ",
    "fi; ", "do ", "done; ", "esac; ", "in ", ";;", ";", "; ", "a;", "a; ", "\n", "a\n", "#\n", "# x\n", "\\\n",
    '\\', "*", "**", "?", "[a", "[a]", "@(", "!(", "+(a|", "{a,b}", "{a,", "{1..9}", "{a..", "~", "~/", "$", "$$",
    "$a", "$a ", "$1", "$@ ", "$*", "$#", "$?", "$!", "=", "a=", "%", "%a", "^", ",", "\t", " ", "\r", "\x01",
    "\xe9", "rm x|", "rm x;", "rm -rf / | ", "cat a > b; ", "cat a >> a\n", "cat /etc/passwd | ", "curl a | ",
    "curl http://a/ | sh; ", "echo a | sh; ", "cd a; ", "cd a && ", "find . -exec ", "find . -exec sh -c '",
    "python -c '", 'python3 -c "', "echo $(", "echo `a` ", "a $(b) ", "a <(b) ", "exec 3<>/dev/tcp/a/1; ",
    "exec 3>a; ", "read a < b; ", "while read a; do ", "alias a=b; ", "alias a='a ", "trap '", "trap a EXIT; ",
    "unset a; ", "shift; ", "set -- a; ", "set -- $@ $@\n", "test a -a ", "let a=a+", "let a++; ", "a=$((a+",
    "$((a+", "$((a*(", "((a=", "for ((;;)) do ", "for((", "if [ a ]; then b; fi; ", "case a in a) b;; esac; ",
    "case $a in a|", "case a in (", "a() (", "a() case x in ", "cat <<E\na\nE\n", "cat <<E | ", "cat <<'E'\n",
    "cat <<E\n$(", "cat <<E\n`", 'cat <<"', "echo 'a' | base64 -d | sh; ", "base64 -d <<< a | sh; ", "tar xf a | ",
    "dd if=a of=b; ", "tee a | ", "a | tee b | ", "yes | ", "nc a 1 | ", "ssh a ", "ssh a '", "su -c '",
    "bash --rcfile <(", "bash <(", "source <(", ". a; ", "su -c 'bash --rcfile <(", "nohup ", "timeout 1 ", "nice ",
    "watch ", "if ! ", "[[ -f a ]] && ", '"a"\'b\'', "'a' ", '"a" ', '"a', "'a", '""', "''", 'a"', "a'", "-", "--",
    "- ", "-a ", "/", "/a", "../", "//", "0", "1 ", "a", "aa ", "\xff",
)
PYTHON = (
    "(", "[", "{", "[[", "{a:", "{1:", "((", "f(", "f(a)(", "f(a, ", "a(", "a.", "a.b", "a[", "a[0]", "a[0][",
    "a = ", "a = b = ", "a == ", "a + ", "a+", "a * ", "a ** ", "a if b else ", "lambda: ", "lambda a: ", "not ",
    "- ", "-", "~", "await ", "yield ", "*", "**", "@", "@a\n", "def f(", "def f():\n ", "def f(): pass\n", "class ",
    "class A:\n ", "class A(", "if a:\n ", "if a: b\n", "if a: ", "elif a:\n", "else:\n", "else: ", "for a in ",
    "for a in b:\n ", "for a in b: c\n", "[a for a in ", "[a for a in b ", "(a for a in ", "{a for a in ", "while ",
    "while a:\n ", "while a: b\n", "try:\n ", "try: a\n", "except:\n", "finally:\n", "with a:\n ", "with a as b, ",
    "with ", "match ", "match a:\n ", "match a:\n case ", "case ", "case a: ", "import ", "import a, ", "import a\n",
    "from a import ", "from a import b\n", "from ", "from . import ", "global ", "global a\n", "return ", "raise ",
    "del ", "assert ", "print ", "exec ", "exec '", "pass;", "pass\n", "a;", "a\n", "a, ", "a,", "a: ", "a:",
    "a := ", "(a := ", "...", '"', "'", '"""', "'''", '"a" ', "'a' + ", 'f"', "f'{", "f'{a}", "f'{a}' ", 'f\'{f"',
    'f"{', "b'", "r'", '\\', "\\\n", "#", "# a\n", "\n", " ", " \n", "\t", " a\n", "  a\n a\n", "0", "0x", "1.",
    "1 ", "1 + ", "1e", "a", "aa ", "\xe9", "\x01", "\xff", ":", "=", ",", ";", ")", "]", "}", "){", "<", ">", "!",
    "?", "$", "`", "|", "&", "%", "^", "a < b < ", "a and ", "a or ", "a is ", "a in ", "print(", "os.system(",
    "os.system('", "os.system('a')\n", "eval(", "eval('", 'eval("eval(\'', "exec(", "import os; os.system('a');",
    "a = a + a\n", "a += a\n", "a = [a, a]\n", "a = f(a)\n", "a = a.replace(a, a)\n", "a = {a: a}\n",
    "x = 'a' * 1000\n", "open('a').read()\n", "def f(): f()\n", "f = lambda: f\n", "print 'a'\n", "type ",
    "type a = ", "async ", "async def f(): ", "async for ", "nonlocal a\n", "a: int = ", "a -> ",
)
JAVASCRIPT = (
    "(", "[", "{", "((", "[[", "{a:", "({a:", "f(", "f(a)(", "f(a, ", "a(", "a.", "a.b", "a[", "a[0]", "a?.", "a?.[",
    "a = ", "a == ", "a + ", "a+", "a * ", "a ** ", "a ? b : ", "a ? ", "() => ", "a => ", "(a) => ", "a => { ",
    "async ", "async () => ", "await ", "yield ", "typeof ", "void ", "delete ", "new ", "new a(", "!", "- ", "-",
    "~", "++", "--", "...", "[...", "{...", "f(...", "function ", "function f(", "function f() { ", "function() { ",
    "(function(){", "class ", "class A { ", "class A extends ", "class { ", "if (", "if (a) ", "if (a) { ", "else ",
    "else if (a) ", "for (", "for (;;) ", "for (;;) { ", "for (a of ", "for (a in b) ", "while (", "while (a) ",
    "while (a) { ", "do ", "do { ", "do a; while (b) ", "switch (", "switch (a) { ", "switch (a) { case ", "case ",
    "case a: ", "default: ", "try { ", "try {} catch { ", "catch (", "finally { ", "with (a) ", "throw ", "return ",
    "break ", "import ", "import a from ", "import(", "import {", "import 'a';", "export ", "export default ",
    "export {", "var ", "var a = ", "var a, ", "let ", "let [", "let {", "let {a = ", "const ", "const a = ", "a: ",
    "a;", "a\n", "a, ", "a,", '"', "'", "`", "`${", "`${a", "`${a}", "`a` ", "`${`", '"a" ', "'a' + ", "/", "/a",
    "/a/", "/(", "/[", "/(a|", "//", "// a\n", "/*", "/* a */", "<", "<a", "<a>", "<a ", "<a b={", "<a>{", "<!--",
    "</a>", "<>", "#", "#a", "#!", "@", "@a ", '\\', "\\u", "\n", " ", "\t", "\r", "0", "0x", "0n", "1.", "1 ", "1e",
    "1 + ", "a", "aa ", "\xe9", "\x01", "\xff", ":", "=", ",", ";", ")", "]", "}", "){", "}{", "=>", "?", "??", "?.",
    "||", "a || ", "&&", "a && ", "|", "&", "%", "^", ">", "a < ", "a > ", "a instanceof ", "a in ", "require('",
    "require('a');", "require('a').b(", "eval(", "eval('", 'eval("eval(\'', "child_process.exec('", "a = a + a;",
    "a += a;", "a = [a, a];", "a = f(a);", "a = a.replace(a, a);", "a = {a: a};", "a.map(a => ", "a.then(a => { ",
    "new Promise((a) => ", "setTimeout(() => ", "$", "_", "$(", "`a${", "process.env.", "this.", "super.",
    "get a() { ", "static { ", "async function* f() { ", "label: ", "\u2028",
)
LANGUAGES = {"shell": SHELL, "python": PYTHON, "javascript": JAVASCRIPT}
RANDOM = 4


def repeated(pattern, size):
    text = pattern.encode()
    return (text * (size // len(text) + 1))[:size]


def mixed(language, seed, size):
    """Any of the patterns, one after the other."""
    choose = random.Random(seed)
    return b"".join(choose.choice(LANGUAGES[language]).encode() for _ in range(size))[:size]


def texts(size):
    """(language, what it is, bytes) of each."""
    for language, patterns in LANGUAGES.items():
        for pattern in patterns:
            yield language, repr(pattern), repeated(pattern, size)
        for seed in range(RANDOM):
            yield language, f"random bytes {seed}", random.Random(seed).randbytes(size)
            yield language, f"mixed {seed}", mixed(language, seed, min(size, 1 << 16))


def judge(verify, language, files):
    """The answers about the files, and the largest resident set in KiB."""
    out, peak_kib = peak([verify, "--json", "--no-own-rules", f"--language={language}", *files])
    return [json.loads(line) for line in out.splitlines()], peak_kib


def main(size):
    verify = os.path.join(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin"), "atoll-verify")
    took = []
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "text"
        for language, name, text in texts(size):
            file.write_bytes(text)
            answers, peak_kib = judge(verify, language, [file])
            took.append((answers[0]["computed_us"] / 1000, peak_kib / 1024, language, name))
    took.sort(reverse=True)
    over = sum(ms > MS_MAX or mib > MIB_MAX for ms, mib, _, _ in took)
    print(f"{len(took)} texts of {size} bytes, {over} over {MS_MAX} ms or {MIB_MAX} MiB")
    for ms, mib, language, name in took[:20]:
        print(f"{ms:8.1f} ms {mib:6.1f} MiB  {language:10} {name}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 16)
