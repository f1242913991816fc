/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "fixture.h"

/* Each text has one defect; the line must begin with its place and hold what helps. */
static const struct {
	const char *text, *place, *says;
} defects[] = {
	{ "", "/t.yaml:1:1:", "empty" },
	{ "# nothing\n", "/t.yaml:1:1:", "empty" },
	{ "atoll: 2\n", "/t.yaml:1:8:", "schema" },
	{ "extends: medium\n", "/t.yaml:1:1:", "\"atoll\" is missing" },
	{ "atoll: 1\nfile: {}\n", "/t.yaml:2:1:", "did you mean \"files\"?" },
	{ "atoll: 1\nfiles: {reed: [/usr]}\n", "/t.yaml:2:9:", "did you mean \"read\"?" },
	{ "atoll: 1\nfiles: {read: /usr}\n", "/t.yaml:2:15:", "expected a list, found \"/usr\"" },
	{ "atoll: 1\nfiles: [a]\n", "/t.yaml:2:8:", "expected a mapping, found a list" },
	{ "atoll: 1\nfiles:\n", "/t.yaml:2:7:", "expected a mapping" },
	{ "atoll: 1\nfiles: {read: [/usr, /usr]}\n", "/t.yaml:2:22:", "twice" },
	{ "atoll: 1\nfiles: {read: [/usr], read: [/bin]}\n", "/t.yaml:2:23:", "twice" },
	{ "atoll: 1\natoll: 1\n", "/t.yaml:2:1:", "twice" },
	{ "atoll: 1\nfiles: {read: [/usr], write: [/usr/]}\n", "/t.yaml:2:31:", "is write here and read in" },
	{ "atoll: 1\nfiles: {read: [{except: [/a]}]}\n", "/t.yaml:2:16:", "no \"path\"" },
	{ "atoll: 1\nfiles: {read: [{path: /a, optional: maybe}]}\n", "/t.yaml:2:37:", "true or false" },
	{ "atoll: 1\nfiles: {read: [\"\"]}\n", "/t.yaml:2:16:", "empty" },
	{ "atoll: 1\nfiles: {read: [~other/x]}\n", "/t.yaml:2:16:", "another user's home" },
	{ "atoll: 1\nfiles: {mask: [\"/a/[b\"]}\n", "/t.yaml:2:16:", "\"[\" without \"]\"" },
	{ "atoll: 1\nfiles: {mask: [\"/a/**b\"]}\n", "/t.yaml:2:16:", "alone between slashes" },
	{ "atoll: 1\nfiles: {mask: [\"/a/*/../b\"]}\n", "/t.yaml:2:16:", "\"..\"" },
	{ "atoll: 1\nresources: {memory: 4GB5}\n", "/t.yaml:2:21:", "a size such as" },
	{ "atoll: 1\nresources: {memory: 99999999999TiB}\n", "/t.yaml:2:21:", "too large" },
	{ "atoll: 1\nresources: {memory: -1}\n", "/t.yaml:2:21:", "a size such as" },
	{ "atoll: 1\nresources: {memory: 0}\n", "/t.yaml:2:21:", "cannot be 0" },
	{ "atoll: 1\nresources: {memroy: 1GiB}\n", "/t.yaml:2:13:", "did you mean \"memory\"?" },
	{ "atoll: 1\ntime: {wall: 60}\n", "/t.yaml:2:14:", "a time with its unit" },
	{ "atoll: 1\nnetwork: {default: maybe}\n", "/t.yaml:2:20:", "expected one of deny, ask, allow" },
	{ "atoll: 1\nnetwork: {allow: [{host: a.org, ports: [70000]}]}\n", "/t.yaml:2:41:", "a port from 1" },
	{ "atoll: 1\nnetwork: {allow: [\"https://a.org/\"]}\n", "/t.yaml:2:19:", "URL" },
	{ "atoll: 1\nnetwork: {allow: [\"a.org.\"]}\n", "/t.yaml:2:19:", "without the dot" },
	{ "atoll: 1\nnetwork: {allow: [\"u@a.org\"]}\n", "/t.yaml:2:19:", "user name" },
	{ "atoll: 1\nnetwork: {allow: [\"10.0.0.1\"]}\n", "/t.yaml:2:19:", "cidr" },
	{ "atoll: 1\nnetwork: {allow: [\"a.*.org\"]}\n", "/t.yaml:2:19:", "star" },
	{ "atoll: 1\nnetwork: {allow: [\"b\xe2\x82\xac.de\"]}\n", "/t.yaml:2:19:", "xn--" },
	{ "atoll: 1\nnetwork: {allow: [\"a/\xc3\xbc.de\"]}\n", "/t.yaml:2:19:", "URL" },
	{ "atoll: 1\nnetwork: {allow: [\"\xc3\xbc@b.de\"]}\n", "/t.yaml:2:19:", "user name" },
	{ "atoll: 1\nnetwork: {allow: [\"\xc3\xbc .de\"]}\n", "/t.yaml:2:19:", "no international name" },
	{ "atoll: 1\nnetwork: {deny: [{cidr: 10.0.0.1/8}]}\n", "/t.yaml:2:25:", "without bits behind" },
	{ "atoll: 1\nnetwork: {host: true}\n", "/t.yaml:2:17:", "default: allow" },
	{ "atoll: 1\nnetwork: {limits: {hosts: 5000}}\n", "/t.yaml:2:27:", "at most 4096 hosts" },
	{ "atoll: 1\nnetwork: {limits: {conections: 5}}\n", "/t.yaml:2:20:", "connections" },
	{ "atoll: 1\nnetwork: {limits: {cooldown: {denials: 5}}}\n", "/t.yaml:2:30:", "\"within\" and \"pause\"" },
	{ "atoll: 1\nnetwork: {limits: {labels: 2MiB}}\n", "/t.yaml:2:28:", "at most 1MiB" },
	{ "atoll: 1\nnetwork: {limits: {cooldown: {denials: 0, within: 1s, pause: 1s}}}\n", "/t.yaml:2:40:",
	  "from 1 to 256" },
	{ "atoll: 1\ntime: {cooldown: {denials: 5, within: 1s}}\n", "/t.yaml:2:18:", "\"within\" and \"pause\"" },
	{ "atoll: 1\ntime: {rate: {file.wirte: 5/s}}\n", "/t.yaml:2:15:", "file.write" },
	{ "atoll: 1\ntime: {rate: {exec: 5}}\n", "/t.yaml:2:21:", "600/min" },
	{ "atoll: 1\nexec: {namespaces: mount}\n", "/t.yaml:2:20:", "false, true, mounts" },
	{ "atoll: 1\nexec: {namespaces: mounts}\n", "/t.yaml:2:20:", "exec.new_binaries: false" },
#define MOUNTS(more, rest) "atoll: 1\nexec: {namespaces: mounts, new_binaries: true" more "}\n" rest "\n"
	{ MOUNTS(", default: deny", ""), "/t.yaml:2:20:", "exec.default" },
	{ MOUNTS("", "files: {ask: [/data]}"), "/t.yaml:2:20:", "files.ask" },
	{ MOUNTS("", "files: {write: [{path: /data, protect: true}], protect: [/data/x]}"), "/t.yaml:2:20:",
	  "protect" },
	{ MOUNTS("", "files: {write: [/data], mask: [\"/data/**/.env\"]}"), "/t.yaml:2:20:", "files.mask" },
	{ MOUNTS("", "audit: {files: writes}"), "/t.yaml:2:20:", "audit.files" },
	{ MOUNTS("", "time: {rate: {file.read: 5/s}}"), "/t.yaml:2:20:", "time.rate" },
	{ "atoll: 1\nexec: {default: simulate}\n", "/t.yaml:2:17:", "deny, ask, allow" },
	{ "atoll: 1\nnetwork: {limits: {rate: unlimited}}\n", "/t.yaml:2:26:", "10MiB/s" },
	{ "atoll: 1\nnetwork: {deny: [{host: a.org, limits: {total: 1MiB}}]}\n", "/t.yaml:2:40:", "allows" },
	{ "atoll: 1\nnetwork: {publish: [\"0.0.0.0:80:80\"]}\n", "/t.yaml:2:21:", "loopback" },
	{ "atoll: 1\nnetwork: {publish: [0]}\n", "/t.yaml:2:21:", "a port" },
	{ "atoll: 1\nnetwork: {publish: [{host: \"127.0.0.1:80\"}]}\n", "/t.yaml:2:21:", "no \"port\"" },
	{ "atoll: 1\nnetwork: {allow: [{host: \"*.a.org\", ports: [443], inject: {header: x, secret: y}}]}\n",
	  "/t.yaml:2:26:", "one exact host" },
	{ "atoll: 1\nnetwork: {simulate: [a.org]}\n", "/t.yaml:2:22:", "needs an \"answer\"" },
	{ "atoll: 1\nnetwork: {simulate: [{host: a.org, ports: [443], answer: {}, inject: {header: x, secret: y}}]}\n",
	  "/t.yaml:2:70:", "network.allow only" },
	{ "atoll: 1\nnetwork: {simulate: [{cidr: 10.0.0.0/8, answer: {}}]}\n", "/t.yaml:2:49:", "host by its name" },
	{ "atoll: 1\nnetwork: {allow: [{host: a.org, answer: {status: 200}}]}\n", "/t.yaml:2:41:",
	  "goes with \"simulate\"" },
	{ "atoll: 1\nnetwork: {simulate: [{host: a.org, answer: {status: 101}}]}\n", "/t.yaml:2:53:",
	  "a status from 200" },
	{ "atoll: 1\nnetwork: {simulate: [{host: a.org, answer: {statu: 200}}]}\n", "/t.yaml:2:45:",
	  "did you mean \"status\"?" },
	{ "atoll: 1\nnetwork: {simulate: [{host: a.org, answer: {headers: {Content-Length: 3}}}]}\n",
	  "/t.yaml:2:55:", "sets this header itself" },
	{ "atoll: 1\nnetwork: {simulate: [{host: a.org, answer: {headers: {\"a b\": c}}}]}\n", "/t.yaml:2:55:",
	  "no name of a header" },
	{ "atoll: 1\nnetwork: {simulate: [{host: a.org, answer: {headers: {a: \"x\\r\\ny: z\"}}}]}\n",
	  "/t.yaml:2:55:", "control character" },
	{ "atoll: 1\nnetwork: {simulate: [{host: a.org, answer: {body: x, body_file: y}}]}\n", "/t.yaml:2:65:",
	  "not both" },
	{ "atoll: 1\nnetwork: {simulate: [{host: a.org, answer: {status: 204, body: x}}]}\n", "/t.yaml:2:64:",
	  "204 has no body" },
	{ "atoll: 1\nnetwork: {simulate: [{host: a.org, answer: {body_file: none.json}}]}\n", "/t.yaml:2:56:",
	  "/none.json cannot be read" },
#define ALLOW(text) "atoll: 1\nnetwork: {allow: [{host: a.org, " text "}]}\n"
	{ ALLOW("inject: {header: x, secret: y}"), "/t.yaml:2:41:", "ports: [443]" },
	{ ALLOW("ports: [443, 80], inject: {header: x, secret: y}"), "/t.yaml:2:26:", "port 80 has none" },
	{ ALLOW("ports: [8080], inject: {header: x, secret: y}"), "/t.yaml:2:26:", "without TLS" },
	{ ALLOW("ports: [443], inject: {header: x}"), "/t.yaml:2:55:", "needs the name of a secret" },
	{ ALLOW("ports: [443], inject: {secret: y}"), "/t.yaml:2:55:", "header" },
	{ ALLOW("ports: [443], inject: {header: x, query: z, secret: y}"), "/t.yaml:2:55:", "once" },
	{ ALLOW("ports: [443], inject: {header: x, kind: digest, secret: y}"), "/t.yaml:2:73:", "bearer" },
	{ ALLOW("ports: [443], inject: {query: x, kind: raw, secret: y}"), "/t.yaml:2:55:", "about a header" },
	{ ALLOW("ports: [443], inject: {header: Content-Length, secret: y}"), "/t.yaml:2:64:", "no secret goes" },
	{ ALLOW("ports: [443], inject: {header: \"a b\", secret: y}"), "/t.yaml:2:64:", "name of a header" },
	{ ALLOW("ports: [443], inject: {query: \"a&b\", secret: y}"), "/t.yaml:2:63:", "query parameter" },
	{ ALLOW("ports: [443], inject: {header: x, secret: ../y}"), "/t.yaml:2:75:", "name of a secret" },
	{ ALLOW("ports: [443], inject: {header: x, secret: y, env: 1A}"), "/t.yaml:2:83:", "variable" },
	{ ALLOW("ports: [443], inject: {header: x, secret: y, env: ATOLL_X}"), "/t.yaml:2:83:", "atoll's own" },
	{ ALLOW("ports: [443], inject: {aws: {service: s3}, secret: y}"), "/t.yaml:2:55:", "a region" },
	{ ALLOW("ports: [443], inject: {aws: {service: S/3, region: r}, secret: y}"), "/t.yaml:2:71:",
	  "small letters" },
	{ ALLOW("ports: [443], inject: {header: x, sekret: y}"), "/t.yaml:2:67:", "did you mean \"secret\"" },
	{ "atoll: 1\nnetwork: {deny: [{host: a.org, ports: [443], inject: {header: x, secret: y}}]}\n",
	  "/t.yaml:2:54:", "network.allow only" },
	{ ALLOW("ports: [443], inject: {header: x, secret: y}}, {host: a.org, ports: [443], inject: "
		"{header: X, secret: z}"),
	  "/t.yaml:2:116:", "another secret in the same place" },
	{ ALLOW("ports: [443], inject: {header: x, secret: y, env: K}}, {host: b.org, ports: [443], inject: "
		"{header: x, secret: z, env: K}"), "/t.yaml:2:124:", "stands for another secret" },
	{ "atoll: 1\ndata: {canaries: [a,b,c,d,e,f,g,h,i,j,k,l,m]}\n", "/t.yaml:2:43:", "at most 12" },
	{ "atoll: 1\nagent: {command: [\"\"]}\n", "/t.yaml:2:19:", "a program" },
	{ "atoll: 1\nagent: {state: [/etc/x]}\n", "/t.yaml:2:17:", "below ~" },
	{ "atoll: 1\nagent: {state: [~]}\n", "/t.yaml:2:17:", "below ~" },
	{ "atoll: 1\nagent: {state: [~/../x]}\n", "/t.yaml:2:17:", "below ~" },
	{ "atoll: 1\nagent: {state: [\"~/*\"]}\n", "/t.yaml:2:17:", "no glob" },
	{ "atoll: 1\nagent: {state: [{path: ~/x/, content: y}]}\n", "/t.yaml:2:17:", "a directory" },
	{ "atoll: 1\nagent: {settings: [{path: ~/x, content: y}]}\n", "/t.yaml:2:27:", "below /etc" },
	{ "atoll: 1\nagent: {settings: [{path: /etc/../usr/x, content: y}]}\n", "/t.yaml:2:27:", "below /etc" },
	{ "atoll: 1\nagent: {settings: [/etc/x]}\n", "/t.yaml:2:20:", "needs its \"content\"" },
	{ "atoll: 1\ndata: {canaries: [-a]}\n", "/t.yaml:2:19:", "name of a secret" },
#undef ALLOW
	{ "atoll: 1\nexec: {deny: [sudo]}\n", "/t.yaml:2:15:", "**/sudo" },
	{ "atoll: 1\nexec: {new_binaries: yes}\n", "/t.yaml:2:22:", "true or false" },
	{ "atoll: 1\nenv: {pass: [\"A B\"]}\n", "/t.yaml:2:14:", "name of a variable" },
	{ "atoll: 1\nenv: {set: {A: 1, A: 2}}\n", "/t.yaml:2:19:", "twice" },
	{ "atoll: 1\ndevices: [../sda]\n", "/t.yaml:2:11:", "device below /dev" },
	{ "atoll: 1\nstage: {auto: always}\n", "/t.yaml:2:15:", "off, exec" },
	{ "atoll: 1\nstage: {backend: kernel}\n", "/t.yaml:2:18:", "overlay, auto, fuse" },
	{ "atoll: 1\nask: {timeout: unlimited}\n", "/t.yaml:2:16:", "24h at most" },
	{ "atoll: 1\nask: {timeout: 25h}\n", "/t.yaml:2:16:", "24h at most" },
	{ "atoll: 1\nask: {timeout: 0s}\n", "/t.yaml:2:16:", "24h at most" },
	{ "atoll: 1\nask: {bell: loud}\n", "/t.yaml:2:13:", "true or false" },
	{ "atoll: 1\nask: {webhook: \"http://a.org/\"}\n", "/t.yaml:2:16:", "https:// URL" },
	{ "atoll: 1\nask: {webhook: \"http://127.0.0.1.a.org/\"}\n", "/t.yaml:2:16:", "https:// URL" },
	{ "atoll: 1\nask: {webhook: \"https://\"}\n", "/t.yaml:2:16:", "https:// URL" },
	{ "atoll: 1\nask: {webhook: \"https://a.org/ b\"}\n", "/t.yaml:2:16:", "https:// URL" },
	{ "atoll: 1\nverify: {external: {when: all}}\n", "/t.yaml:2:20:", "is a \"command\" or has a \"url\"" },
	{ "atoll: 1\nverify: {external: {command: [v]}}\n", "/t.yaml:2:31:", "absolute or below ~" },
	{ "atoll: 1\nverify: {external: {url: \"http://a\", model: m}}\n", "/t.yaml:2:26:", "https:// URL" },
	{ "atoll: 1\nverify: {external: {url: \"https://a\"}}\n", "/t.yaml:2:20:", "go together" },
	{ "atoll: 1\nverify: {external: {command: [/v], secret: s}}\n", "/t.yaml:2:20:", "goes with a \"url\"" },
	{ "atoll: 1\nverify: {external: {command: [/v], timeout: 3m}}\n", "/t.yaml:2:45:", "2m at most" },
	{ "atoll: 1\nverify: {external: {command: [/v], when: now}}\n", "/t.yaml:2:42:", "asked or all" },
	{ "atoll: 1\nverify: {external: {command: [/v], narrow: yes}}\n", "/t.yaml:2:44:", "off, ask, auto or try" },
	{ "atoll: 1\nfiles: {stage: [{path: ., protect: true}]}\n", "/t.yaml:2:36:", "written in place" },
	{ "atoll: 1\nfiles: {protect: [{path: x, data: hg}]}\n", "/t.yaml:2:35:", "expected git" },
	{ "atoll: 1\nfiles: {protect: [{path: x, when: \"a\\u202eb\"}]}\n", "/t.yaml:2:35:", "one line of ASCII" },
	{ "atoll: 1\nfiles: {ask: [{path: x, data: git}]}\n", "/t.yaml:2:25:", "unknown key" },
	{ "atoll: 1\nverify: {external: {command: [/v], breaker: {denials: 0}}}\n", "/t.yaml:2:55:", "1 to 256" },
	{ "atoll: 1\nverify: {external: {command: [/v], breaker: {action: no}}}\n", "/t.yaml:2:54:", "freeze or end" },
	{ "atoll: 1\nask: {webhook: {key: k}}\n", "/t.yaml:2:16:", "has a \"url\"" },
	{ "atoll: 1\nask: {webhook: [a]}\n", "/t.yaml:2:16:", "a URL or a mapping" },
	{ "atoll: 1\nask: {webhook: {url: \"https://a\", key: \"a b\"}}\n", "/t.yaml:2:40:", "name of a secret" },
	{ "atoll: 1\nask: {webhook: {url: \"https://a\", key_file: k}}\n", "/t.yaml:2:45:", "absolute or below ~" },
	{ "atoll: 1\nask: {webhook: {url: \"https://a\", key: k, key_file: /k}}\n", "/t.yaml:2:16:", "not both" },
	{ "atoll: 1\nask: {webhook: {url: \"http://[::1]:9\", may_answer: true}}\n", "/t.yaml:2:16:", "signed" },
	{ "atoll: 1\nask: {webhook: {url: \"https://a\", may_answr: true}}\n", "/t.yaml:2:35:", "may_answer" },
	{ "atoll: 1\nstage: {on: exec}\n", "/t.yaml:2:9:", "unknown key \"on\"" },
	{ "atoll: 1\naudit: {files: read}\n", "/t.yaml:2:16:", "off, writes, all" },
	{ "atoll: 1\ndegrade: [landlok]\n", "/t.yaml:2:11:", "did you mean \"landlock\"?" },
	{ "atoll: 1\ndrop: [/nothing]\n", "/t.yaml:2:8:", "drops nothing" },
	{ "atoll: 1\nextends: mediun\n", "/t.yaml:2:10:", "did you mean \"medium\"?" },
	{ "atoll: 1\nextends: /missing.yaml\n", "/t.yaml:2:10:", "no file /missing.yaml" },
	{ "atoll: 1\nextends: t.yaml\n", "/t.yaml:2:10:", "extends itself" },
	{ "atoll: 1\nfiles: {read: &a [/usr], mask: *a}\n", "/t.yaml:2:15:", "anchors" },
	{ "atoll: 1\nfiles: {read: [*x]}\n", "/t.yaml:2:16:", "aliases" },
	{ "atoll: !!str 1\n", "/t.yaml:1:8:", "tags" },
	{ "atoll: 1\n---\natoll: 1\n", "/t.yaml:2:1:", "one document" },
	{ "%YAML 1.1\n---\natoll: 1\n", "/t.yaml:1:1:", "directives" },
	{ "atoll: 1\nfiles: {read: [\"a\\0b\"]}\n", "/t.yaml:2:16:", "NUL" },
	{ "atoll: 1\nx: \"\xff\"\n", "/t.yaml:2:5:", "not valid UTF-8" },
	{ "atoll: [1\n", "/t.yaml:2:1:", "no valid YAML" },
	{ "atoll: 1\n\tfiles: {}\n", "/t.yaml:2:1:", "no valid YAML" },
	{ "atoll: 1\nfiles:\n\tread: []\n", "/t.yaml:3:1:", "indent with spaces" },
	{ "[[[[[[[[[[[[[[[[[[[[", "/t.yaml:1:13:", "nested too deeply" },
	{ "just text\n", "/t.yaml:1:1:", "expected a mapping" },
};

static void every_defect_has_its_place(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(defects); i++) {
		const char *errors;

		assert_null(fixture_text(defects[i].text));
		errors = fixture_errors();
		if (!strstr(errors, defects[i].place) || !strstr(errors, defects[i].says))
			fail_msg("of \"%s\": expected %s … %s, got: %s", defects[i].text, defects[i].place,
				 defects[i].says, errors);
	}
}

static size_t count_lines(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

static void all_errors_are_said_at_once(void **state)
{
	assert_null(fixture_text("atoll: 1\nfiels: {}\nnetwork: {default: 1}\ntime: {wall: x, cpu: y}\n"));
	assert_int_equal(count_lines(fixture_errors()), 4);
	/* Paths that contradict one another as well; all in the order of the lines. */
	assert_null(fixture_text("atoll: 1\nextends: mediun\nfiles:\n  write: [/x]\n  read: [/x/]\n  reed: []\n"
				 "time: {wall: x}\n"));
	assert_string_equal(fixture_errors(), "/t.yaml:2:10: there is no policy \"mediun\"; did you mean \"medium\"?\n"
		"/t.yaml:5:10: \"/x/\" is read here and write in /t.yaml:4; drop one of them\n"
		"/t.yaml:6:3: unknown key \"reed\"; did you mean \"read\"?\n"
		"/t.yaml:7:14: expected a time with its unit such as 90s, 15m or 2h, or \"unlimited\", found \"x\"\n");
}

static void errors_are_bounded(void **state)
{
	cleanup_buf struct buf text;

	buf_init(&text, 1 << 20);
	buf_put_text(&text, "atoll: 1\nfiles:\n  read:\n");
	for (int i = 0; i < 1000; i++)
		buf_put_text(&text, "    - {pth: x}\n");
	assert_null(fixture_text(buf_text(&text)));
	assert_int_equal(count_lines(fixture_errors()), 51);
}

static void hostile_text_is_escaped(void **state)
{
	assert_null(fixture_text("atoll: 1\n\"\\e[2J\\n\\u202e\": {}\n"));
	assert_null(strchr(fixture_errors(), '\033'));
	assert_null(strstr(fixture_errors(), "\xe2\x80\xae"));
	assert_int_equal(count_lines(fixture_errors()), 1);
}

/* Nine lists of nine would become 9^9 entries in a reader that follows aliases. */
static void an_alias_bomb_is_refused(void **state)
{
	assert_null(fixture_text("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c "
				 "[*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"));
	assert_non_null(strstr(fixture_errors(), "anchors"));
}

static void large_files_are_refused(void **state)
{
	size_t size = (4 << 20) + 1;
	char *text = malloc(size);

	memset(text, '#', size);
	fixture_reset();
	fixture_file_n("/t.yaml", text, size);
	fixture_request.policy = "/t.yaml";
	assert_null(fixture_compile());
	assert_non_null(strstr(fixture_errors(), "at most"));
	free(text);
}

static void a_chain_that_is_too_long_is_refused(void **state)
{
	static const char *const names[] = { "/1.yaml", "/2.yaml", "/3.yaml", "/4.yaml",
					     "/5.yaml", "/6.yaml", "/7.yaml", "/8.yaml" };
	static char texts[8][64];

	fixture_reset();
	for (int i = 0; i < 8; i++) {
		snprintf(texts[i], sizeof texts[i], "atoll: 1\nextends: %s\n",
			 i < 7 ? names[i + 1] : "medium");
		fixture_file(names[i], texts[i]);
	}
	fixture_request.policy = "/1.yaml";
	assert_null(fixture_compile());
	assert_non_null(strstr(fixture_errors(), "too long"));
}

static void a_cycle_is_refused(void **state)
{
	fixture_reset();
	fixture_file("/1.yaml", "atoll: 1\nextends: ./2.yaml\n");
	fixture_file("/2.yaml", "atoll: 1\nextends: ./1.yaml\n");
	fixture_request.policy = "/1.yaml";
	assert_null(fixture_compile());
	assert_non_null(strstr(fixture_errors(), "/2.yaml:2:10:"));
	assert_non_null(strstr(fixture_errors(), "extends itself"));
}

static void too_many_patterns_are_refused(void **state)
{
	cleanup_buf struct buf text;

	buf_init(&text, 1 << 20);
	buf_put_text(&text, "atoll: 1\nfiles:\n  mask:\n");
	for (int i = 0; i < 300; i++)
		buf_printf(&text, "    - \"**/x%d*\"\n", i);
	assert_null(fixture_text(buf_text(&text)));
	assert_non_null(strstr(fixture_errors(), "300 patterns"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_defect_has_its_place),
		cmocka_unit_test(all_errors_are_said_at_once),
		cmocka_unit_test(errors_are_bounded),
		cmocka_unit_test(hostile_text_is_escaped),
		cmocka_unit_test(an_alias_bomb_is_refused),
		cmocka_unit_test(large_files_are_refused),
		cmocka_unit_test(a_chain_that_is_too_long_is_refused),
		cmocka_unit_test(a_cycle_is_refused),
		cmocka_unit_test(too_many_patterns_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
