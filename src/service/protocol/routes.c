/* SPDX-License-Identifier: Apache-2.0 */
#include "service/protocol/routes.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "base/url-path.h"

enum {
	SMALL = 64 << 10,        /* a few members */
	LARGE = 1 << 20,         /* environments, rules */
	INPUT = 4 << 20,         /* bytes for a process, in base64 */
	EVENT = 1 << 20,         /* of a function */
	ARCHIVE = 12 << 20,      /* of a function, in base64 */
};

#define KEY SERVICE_BY_KEY
#define TOKEN SERVICE_BY_TOKEN
#define SIGNED (SERVICE_BY_TOKEN | SERVICE_BY_SIGNATURE)
#define ANYONE SERVICE_BY_NOTHING

#define CONTROL(method, path, operation, body, form) \
	{ ROUTE_API, method, path, ROUTE_CONTROL, SERVICE_##operation, KEY, 0, body, form }
#define CONTROL_FLAG(method, path, operation, body, form, flags) \
	{ ROUTE_API, method, path, ROUTE_CONTROL, SERVICE_##operation, KEY, flags, body, form }
#define CONTROL_TIME(method, path, operation, body, form, flags, seconds) \
	{ ROUTE_API, method, path, ROUTE_CONTROL, SERVICE_##operation, KEY, flags, body, form, seconds }
#define UNSERVED(method, path) { ROUTE_API, method, path, ROUTE_UNSERVED, 0, KEY, 0, LARGE }
#define UNARY(path, handler, operation, body) \
	{ ROUTE_ENVD, "POST", path, handler, operation, TOKEN, ROUTE_UNARY, body }
#define STREAM(path, handler, operation, body) \
	{ ROUTE_ENVD, "POST", path, handler, operation, TOKEN, ROUTE_STREAMED, body }

#define FUNCTION(method, path, operation, body) \
	{ ROUTE_API, method, path, ROUTE_FUNCTION, SERVICE_FUNCTION_##operation, KEY, 0, body, ROUTE_FUNCTION_ONE }
#define CODE(method, path, body) \
	{ ROUTE_INTERPRETER, method, path, ROUTE_CODE, SERVICE_INTERPRET, TOKEN, ROUTE_TEXT, body }

static const struct route routes[] = {
	CONTROL_TIME("POST", "/v2/sandboxes", CREATE, LARGE, ROUTE_SANDBOX, 0, 300),
	CONTROL_TIME("POST", "/sandboxes", CREATE, LARGE, ROUTE_SANDBOX, 0, 15),
	CONTROL_TIME("POST", "/v2/sandboxes/{sandbox}/connect", CONNECT, SMALL, ROUTE_SANDBOX, 0, 300),
	CONTROL_TIME("POST", "/sandboxes/{sandbox}/connect", CONNECT, SMALL, ROUTE_SANDBOX, 0, 15),
	CONTROL_TIME("POST", "/sandboxes/{sandbox}/resume", CONNECT, SMALL, ROUTE_SANDBOX, 0, 15),
	CONTROL("GET", "/v2/sandboxes", LIST, 0, ROUTE_LISTED),
	CONTROL_FLAG("GET", "/sandboxes", LIST, 0, ROUTE_LISTED, ROUTE_ALL_PAGES | ROUTE_RUNNING_ONLY),
	CONTROL_FLAG("GET", "/sandboxes/metrics", METRICS, 0, ROUTE_METRICS_MAP, ROUTE_ALL_PAGES),
	CONTROL("GET", "/sandboxes/{sandbox}", GET, 0, ROUTE_DETAIL),
	CONTROL("DELETE", "/sandboxes/{sandbox}", KILL, SMALL, ROUTE_NOTHING),
	CONTROL("POST", "/sandboxes/{sandbox}/timeout", TIMEOUT, SMALL, ROUTE_NOTHING),
	CONTROL_TIME("POST", "/sandboxes/{sandbox}/refreshes", TIMEOUT, SMALL, ROUTE_NOTHING, ROUTE_EXTENDS, 60),
	CONTROL("POST", "/sandboxes/{sandbox}/pause", PAUSE, SMALL, ROUTE_NOTHING),
	CONTROL_TIME("POST", "/sandboxes/{sandbox}/fork", FORK, SMALL, ROUTE_FORKS, 0, 15),
	CONTROL("POST", "/sandboxes/{sandbox}/snapshots", SNAPSHOT, SMALL, ROUTE_SNAPSHOT),
	CONTROL("GET", "/snapshots", SNAPSHOTS, 0, ROUTE_SNAPSHOTS),
	CONTROL("PUT", "/sandboxes/{sandbox}/network", NETWORK, LARGE, ROUTE_NOTHING),
	CONTROL_FLAG("GET", "/sandboxes/{sandbox}/metrics", METRICS, 0, ROUTE_METRICS, ROUTE_ALL_PAGES),
	CONTROL_FLAG("GET", "/sandboxes/{sandbox}/logs", LOGS, 0, ROUTE_LOGS_OLD,
		     ROUTE_ALL_PAGES | ROUTE_UP_TO_LIMIT),
	CONTROL_FLAG("GET", "/v2/sandboxes/{sandbox}/logs", LOGS, 0, ROUTE_LOGS, ROUTE_ALL_PAGES | ROUTE_UP_TO_LIMIT),
	CONTROL("GET", "/teams", WHOAMI, 0, ROUTE_TEAMS),
	CONTROL_FLAG("GET", "/templates", TEMPLATES, 0, ROUTE_TEMPLATES, ROUTE_ALL_PAGES),
	CONTROL("GET", "/volumes", VOLUMES, 0, ROUTE_VOLUMES),
	CONTROL("POST", "/volumes", VOLUME_CREATE, SMALL, ROUTE_VOLUME),
	CONTROL("GET", "/volumes/{volume}", VOLUME_GET, 0, ROUTE_VOLUME),
	CONTROL("DELETE", "/volumes/{volume}", VOLUME_DELETE, SMALL, ROUTE_NOTHING),
	CONTROL("GET", "/secrets", SECRETS, 0, ROUTE_SECRETS),
	CONTROL("POST", "/secrets", SECRET_CREATE, SMALL, ROUTE_SECRET),
	CONTROL("GET", "/secrets/{secret}", SECRET_GET, 0, ROUTE_SECRET),
	CONTROL("POST", "/secrets/{secret}", SECRET_UPDATE, SMALL, ROUTE_SECRET),
	CONTROL("DELETE", "/secrets/{secret}", SECRET_DELETE, SMALL, ROUTE_NOTHING),
	CONTROL("POST", "/v3/templates", BUILD_REQUEST, SMALL, ROUTE_BUILD),
	UNSERVED("POST", "/v2/templates"),
	UNSERVED("POST", "/templates"),
	CONTROL("POST", "/templates/tags", TAGS_ADD, SMALL, ROUTE_TAGGED),
	CONTROL("DELETE", "/templates/tags", TAGS_REMOVE, SMALL, ROUTE_NOTHING),
	CONTROL("DELETE", "/templates/{template}", TEMPLATE_DELETE, SMALL, ROUTE_NOTHING),
	FUNCTION("POST", "/functions", DEPLOY, ARCHIVE),
	CONTROL_FLAG("GET", "/functions", FUNCTIONS, 0, ROUTE_FUNCTION_LIST, ROUTE_ALL_PAGES),
	CONTROL("GET", "/functions/{function}", FUNCTION_GET, 0, ROUTE_FUNCTION_ONE),
	CONTROL("DELETE", "/functions/{function}", FUNCTION_DELETE, SMALL, ROUTE_NOTHING),
	CONTROL("GET", "/functions/{function}/logs", FUNCTION_LOGS, 0, ROUTE_FUNCTION_LOG),
	FUNCTION("POST", "/functions/{function}/invoke", INVOKE, EVENT),
	CONTROL("GET", "/templates/aliases/{template}", ALIAS, 0, ROUTE_ALIAS),
	CONTROL("GET", "/templates/{template}/tags", TAGS, 0, ROUTE_TAGS),
	CONTROL("GET", "/templates/{template}/files/{file}", BUILD_FILE, 0, ROUTE_BUILD_FILE),
	{ ROUTE_API, "PUT", "/templates/{template}/files/{file}", ROUTE_ARCHIVE, SERVICE_BUILD_UPLOAD, ANYONE, 0,
	  UINT32_MAX },
	CONTROL("POST", "/v2/templates/{template}/builds/{build}", BUILD_START, LARGE, ROUTE_NOTHING),
	CONTROL("GET", "/templates/{template}/builds/{build}/status", BUILD_STATUS, 0, ROUTE_BUILD_STATUS),
	CONTROL("GET", "/templates/{template}/builds/{build}/logs", BUILD_STATUS, 0, ROUTE_BUILD_STATUS),
	UNSERVED("GET", "/events/sandboxes"),
	UNSERVED("GET", "/events/sandboxes/{sandbox}"),

	{ ROUTE_ENVD, "GET", "/health", ROUTE_HEALTH, SERVICE_HEALTH, ANYONE, 0, 0 },
	{ ROUTE_ENVD, "GET", "/files", ROUTE_DOWNLOAD, SERVICE_OPEN, SIGNED, 0, 0 },
	{ ROUTE_ENVD, "POST", "/files", ROUTE_UPLOAD, SERVICE_OPEN, SIGNED, 0, UINT32_MAX },
	{ ROUTE_ENVD, "POST", "/files/compose", ROUTE_UNSERVED, 0, TOKEN, 0, LARGE },
	{ ROUTE_ENVD, "GET", "/metrics", ROUTE_UNSERVED, 0, TOKEN, 0, 0 },
	{ ROUTE_ENVD, "GET", "/envs", ROUTE_ENVS, SERVICE_COMMANDS, TOKEN, 0, 0 },
	STREAM("/process.Process/Start", ROUTE_START, SERVICE_EXEC, LARGE),
	STREAM("/process.Process/Connect", ROUTE_ATTACH, SERVICE_ATTACH, SMALL),
	UNARY("/process.Process/List", ROUTE_PROCESS, SERVICE_COMMANDS, SMALL),
	UNARY("/process.Process/Update", ROUTE_PROCESS, SERVICE_RESIZE, SMALL),
	UNARY("/process.Process/SendSignal", ROUTE_PROCESS, SERVICE_SIGNAL, SMALL),
	UNARY("/process.Process/SendInput", ROUTE_INPUT, SERVICE_ATTACH, INPUT),
	UNARY("/process.Process/CloseStdin", ROUTE_PROCESS, SERVICE_CLOSE_INPUT, SMALL),
	STREAM("/process.Process/StreamInput", ROUTE_UNSERVED, 0, INPUT),
	UNARY("/filesystem.Filesystem/Stat", ROUTE_FILESYSTEM, SERVICE_STAT, SMALL),
	UNARY("/filesystem.Filesystem/MakeDir", ROUTE_FILESYSTEM, SERVICE_MKDIR, SMALL),
	UNARY("/filesystem.Filesystem/Move", ROUTE_FILESYSTEM, SERVICE_MOVE, SMALL),
	UNARY("/filesystem.Filesystem/ListDir", ROUTE_FILESYSTEM, SERVICE_READDIR, SMALL),
	UNARY("/filesystem.Filesystem/Remove", ROUTE_FILESYSTEM, SERVICE_REMOVE, SMALL),
	STREAM("/filesystem.Filesystem/WatchDir", ROUTE_WATCH, SERVICE_WATCH, SMALL),
	UNARY("/filesystem.Filesystem/CreateWatcher", ROUTE_WATCHER, SERVICE_WATCH, SMALL),
	UNARY("/filesystem.Filesystem/GetWatcherEvents", ROUTE_WATCHER, SERVICE_HEALTH, SMALL),
	UNARY("/filesystem.Filesystem/RemoveWatcher", ROUTE_WATCHER, SERVICE_UNWATCH, SMALL),

	CODE("POST", "/execute", INPUT),
	CODE("GET", "/contexts", 0),
	CODE("POST", "/contexts", SMALL),
	CODE("DELETE", "/contexts/{context}", SMALL),
	CODE("POST", "/contexts/{context}/restart", SMALL),
	{ ROUTE_INTERPRETER, "GET", "/health", ROUTE_CODE, SERVICE_HEALTH, ANYONE, ROUTE_TEXT, 0 },
};

const struct route *route_at(size_t index)
{
	return index < ARRAY_SIZE(routes) ? &routes[index] : NULL;
}

/* One segment with its escapes undone: an id has no slash, no control character and is no step in a path. */
static bool read_value(const char *at, size_t length, const char *key, char out[ROUTE_VALUE_SIZE])
{
	char text[3 * ROUTE_VALUE_SIZE + 1] = "/";

	if (length == 0 || length > sizeof text - 2)
		return false;
	memcpy(text + 1, at, length);
	text[length + 1] = 0;
	(void)url_path_decode(text, URL_ALL);
	for (const char *c = text + 1; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f || strchr("/\\%", *c))
			return false;
	if (str_equal(text + 1, ".") || str_equal(text + 1, ".."))
		return false;
	if (str_equal(key, "sandbox") && !host_id_is_valid(text + 1))
		return false;
	return str_copy(out, ROUTE_VALUE_SIZE, text + 1) == 0;
}

/* Segments of patterns and paths begin with a slash each. */
static bool is_match(const char *pattern, const char *path, struct route_match *match)
{
	match->value_count = 0;
	while (*pattern == '/' && *path == '/') {
		size_t a = strcspn(++pattern, "/"), b = strcspn(++path, "/");

		if (*pattern != '{') {
			if (a != b || memcmp(pattern, path, a) != 0)
				return false;
		} else {
			size_t i = match->value_count++;

			memcpy(match->values[i].key, pattern + 1, a - 2);
			match->values[i].key[a - 2] = 0;
			if (!read_value(path, b, match->values[i].key, match->values[i].text))
				return false;
		}
		pattern += a;
		path += b;
	}
	return !*pattern && !*path;
}

int route_find(enum route_side side, const char *method, const char *path, struct route_match *ret_match)
{
	struct route_match match;
	int r = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		if (routes[i].side != side || !is_match(routes[i].pattern, path, &match))
			continue;
		match.route = &routes[i];
		if (str_equal(routes[i].method, method)) {
			*ret_match = match;
			return 0;
		}
		r = -ENOTSUP;
	}
	return r;
}
