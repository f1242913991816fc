// SPDX-License-Identifier: Apache-2.0
// What programs for node take a target for: one port for each way, printed as "PORT NAME", and "ready" after the last; each answers with the path.
"use strict";
const http = require("http"), path = require("path"), url = require("url"), querystring = require("querystring");

const decoded = text => decodeURIComponent(text);
const before = (text, end) => text.split(end)[0];
const legacy = target => url.parse(target).pathname;
const modern = target => new URL(target, "http://localhost").pathname;

const ways = {
	"as it came": target => before(target, "?"),
	"decoded": target => decoded(before(target, "?")),
	"decoded, normalised": target => path.normalize(decoded(before(target, "?"))),
	"normalised, decoded": target => decoded(path.normalize(before(target, "?"))),
	"normalised, decoded, normalised": target => path.normalize(decoded(path.normalize(before(target, "?")))),
	"decoded before the query is cut": target => path.normalize(before(decoded(target), "?")),
	"joined with its query": target => before(path.join("/", target), "?"),
	"decoded and joined with its query": target => before(path.join("/", decoded(target)), "?"),
	"unescaped": target => path.normalize(querystring.unescape(before(target, "?"))),
	"twice decoded": target => path.normalize(decoded(decoded(before(target, "?")))),
	"URL": modern,
	"URL, decoded": target => path.normalize(decoded(modern(target))),
	"URL, decoded, URL": target => modern(decoded(modern(target))),
	"URL of a URL": target => new URL("http://localhost" + target).pathname,
	"url.parse": legacy,
	"url.parse, decoded": target => path.normalize(decoded(legacy(target))),
	"windows": target => path.win32.normalize("C:" + decoded(before(target, "?"))).slice(2).replaceAll("\\", "/"),
	"NFKC": target => path.normalize(decoded(before(target, "?")).normalize("NFKC")),
	"parameters dropped": target => path.normalize(decoded(before(target, "?").replace(/;[^/]*/g, ""))),
	"parameters dropped late": target => path.normalize(decoded(before(target, "?")).replace(/;[^/]*/g, "")),
	"cut at ;": target => path.normalize(decoded(before(before(target, "?"), ";"))),
};

const servers = [];
const serve = (name, answer) => {
	servers.push([name, http.createServer((request, response) => {
		let text;
		try {
			text = answer(Buffer.from(request.url, "latin1").toString("utf8"));
		} catch (error) {
			response.writeHead(400, { "Content-Length": 0 });
			return response.end();
		}
		const raw = Buffer.from(text, "utf8");
		response.writeHead(200, { "Content-Length": raw.length });
		response.end(raw);
	})]);
};

for (const [name, way] of Object.entries(ways))
	serve(name, way);

try {
	const express = require("express"), app = express(), routed = express();
	const tell = text => (request, response) => response.end(Buffer.from(text(request), "utf8"));
	app.use(tell(request => request.path));
	// What a router takes for the rest of a path, and what decodes and normalises that.
	routed.get("/:first/(.*)", tell(request => path.normalize(`/${request.params.first}/${request.params[0]}`)));
	servers.push(["express", http.createServer(app)], ["express, routed", http.createServer(routed)]);
} catch (error) {
	if (error.code !== "MODULE_NOT_FOUND")
		throw error;
}
let starting = servers.length;
for (const [name, server] of servers)
	server.listen(0, "127.0.0.1", () => {
		console.log(`${server.address().port} node: ${name}`);
		if (!--starting)
			console.log("ready");
	});
process.stdin.on("end", () => process.exit(0)).resume();
