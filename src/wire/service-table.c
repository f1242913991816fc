/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/service.h"

/* What each operation has. Keys mean the same wherever they stand. */

enum { REQUIRED = SERVICE_REQUIRED, LINE = SERVICE_IS_LINE, ID = SERVICE_IS_ID };
enum { PATH_BYTES = 4096, NAME_BYTES = 256, PORTS = 65535, TEXTS = 256, DAY_MS = 86400000 };
#define LONGEST UINT64_MAX

#define NUMBER(key, max, meaning) { key, FIELD_U64, 0, max, meaning }
#define SWITCH(key, meaning) { key, FIELD_U64, 0, 1, meaning }
#define NEEDED(key, max, meaning) { key, FIELD_U64, REQUIRED, max, meaning }
#define TEXT(key, flags, max, meaning) { key, FIELD_STRING, flags, max, meaning }
#define LIST(key, flags, max, meaning) { key, FIELD_STRINGS, flags, max, meaning }
#define HANDLE(key, meaning) { key, FIELD_FD, 0, 0, meaning }
#define ROWS { "row", FIELD_BYTES, SERVICE_REPEATED, FRAME_MESSAGE_MAX, "a frame of values of its own" }
#define END { NULL }

#define SANDBOX TEXT("sandbox", REQUIRED | ID, SERVICE_ID_MAX, "its id")
#define SIGNING_SANDBOX TEXT("sandbox", ID, SERVICE_ID_MAX, "its id; the one whose token signed the URL")
#define USER TEXT("user", LINE, 64, "who acts inside; the sandbox's default")
#define PAGE NUMBER("limit", SERVICE_ROWS_MAX, "rows at most"), \
	TEXT("next", LINE, NAME_BYTES, "what the page before said; the first")
#define NEXT TEXT("next", LINE, NAME_BYTES, "there is more: ask for it with this")
#define PATHNAME(key) TEXT(key, REQUIRED, PATH_BYTES, \
	"as the client wrote it: ~ and relative ones mean the user's home")
#define METADATA LIST("metadata", SERVICE_PAIRS, 64, "name, value, …")
#define NETWORK SWITCH("internet", "0: nothing but what is allowed"), \
	LIST("allow_out", LINE, TEXTS, "addresses, blocks, names, *.names"), \
	LIST("deny_out", LINE, TEXTS, "addresses, blocks"), \
	LIST("rules", SERVICE_TRIPLES, 3 * TEXTS, "host, header, value, …: headers of requests to it")
#define COMMAND NUMBER("command", UINT32_MAX, "its number"), \
	NUMBER("pid", UINT32_MAX, "its process, as it is inside"), \
	TEXT("tag", 0, NAME_BYTES, "the client's name for it")
#define STREAMS HANDLE("stdin", "to write to"), HANDLE("stdout", "to read from"), HANDLE("stderr", "to read from"), \
	HANDLE("terminal", "of a pty: both")
#define SIZE NUMBER("rows", 65535, "of the terminal"), NUMBER("columns", 65535, "of the terminal")
#define ENDED NUMBER("exit", 255, "its exit code"), NUMBER("signal", 128, "that ended it"), \
	NUMBER("errno", 4095, "why it could not be started"), \
	TEXT("ended", LINE, 32, "exit, signal, time, memory, …")

#define SANDBOX_VALUES \
	TEXT("sandbox", ID, SERVICE_ID_MAX, "its id"), \
	TEXT("template", LINE, NAME_BYTES, "what it was made from"), \
	TEXT("alias", LINE, NAME_BYTES, "its other name"), \
	TEXT("state", LINE, 16, "running or paused"), \
	NUMBER("started_ms", LONGEST, "since 1970"), NUMBER("end_ms", LONGEST, "since 1970: when its time is over"), \
	NUMBER("cpu_count", 65535, ""), NUMBER("memory_mb", LONGEST, ""), NUMBER("disk_mb", LONGEST, ""), METADATA, \
	TEXT("token", LINE, 128, "for what is inside"), TEXT("traffic_token", LINE, 128, "for its ports"), \
	TEXT("domain", LINE, NAME_BYTES, "of PORT-ID.DOMAIN"), NETWORK, \
	SWITCH("public_traffic", "0: ports want a token"), \
	TEXT("mask_host", LINE, NAME_BYTES, "the Host that servers inside see; ${PORT}"), \
	LIST("volumes", SERVICE_PAIRS, 32, "name, path, …"), \
	SWITCH("auto_pause", "1: it pauses when its time is over"), SWITCH("auto_resume", "1: what reaches it wakes it")

#define FILE_VALUES \
	TEXT("name", 0, NAME_BYTES, "last component"), NUMBER("type", SERVICE_FILE_SYMLINK, "enum service_file_type"), \
	TEXT("path", 0, PATH_BYTES, "absolute, as it is inside"), NUMBER("size", LONGEST, "bytes"), \
	NUMBER("mode", 07777, "permissions"), TEXT("owner", 0, 64, "name or number"), \
	TEXT("group", 0, 64, "name or number"), \
	NUMBER("modified_ns", LONGEST, "since 1970"), TEXT("target", 0, PATH_BYTES, "of a link"), METADATA

const struct service_field service_credential_fields[] = {
	TEXT("key", LINE, 128, "of the API"),
	TEXT("sandbox", ID, SERVICE_ID_MAX, "its id"),
	TEXT("token", LINE, 128, "of the sandbox"),
	TEXT("signature", LINE, 128, "of a URL"),
	TEXT("signed", 0, PATH_BYTES, "the path that the URL has; \"\": none"),
	TEXT("signed_user", 0, 64, "the user that the URL has; \"\": none"),
	NUMBER("expires", LONGEST, "seconds since 1970 that the URL has"),
	TEXT("client", LINE, 64, "its address, for the log"),
	NUMBER("asked_ns", LONGEST, "CLOCK_MONOTONIC when the front asks, for the log"),
	END
};
const struct service_field service_error_fields[] = {
	TEXT("message", 0, 2048, "one sentence for people"),
	TEXT("connect", LINE, 32, "the code of the Connect protocol: not_found, …"),
	TEXT("error_code", LINE, 64, "of the control plane: sandbox_capacity_unavailable, …"),
	NUMBER("retry_after", 3600, "seconds"),
	END
};
const struct service_field service_setup_fields[] = {
	TEXT("domain", REQUIRED | LINE, NAME_BYTES, "of PORT-ID.DOMAIN"),
	{ "listen", FIELD_FD, REQUIRED, 0, "a socket that listens" },
	HANDLE("listen6", "another one"),
	HANDLE("certificate", "PEM, to be read; TLS is spoken then"),
	HANDLE("private_key", "PEM"),
	LIST("hosts", LINE, TEXTS, "further names that a client may call this machine"),
	NUMBER("connections_max", 65535, "of all clients at once"),
	NUMBER("body_max", LONGEST, "bytes of a request of the control plane"),
	END
};

static const struct service_field nothing[] = { END };
static const struct service_field only_sandbox[] = { SANDBOX, END };
static const struct service_field sandbox_values[] = { SANDBOX_VALUES, END };
static const struct service_field rows_only[] = { ROWS, END };
static const struct service_field rows_next[] = { ROWS, NEXT, END };
static const struct service_field file_values[] = { FILE_VALUES, END };

static const struct service_field whoami_reply[] = {
	TEXT("name", LINE, NAME_BYTES, "of the key"), TEXT("role", LINE, 16, "admin, user or read-only"), END };
static const struct service_field create_request[] = {
	TEXT("template", LINE, NAME_BYTES, "base"), NUMBER("timeout_ms", LONGEST, "how long it lives"), METADATA,
	LIST("env", 0, 1024, "NAME=value"), NETWORK, SWITCH("public_traffic", "0: ports want a token"),
	TEXT("mask_host", LINE, NAME_BYTES, "the Host that servers inside see; ${PORT}"),
	SWITCH("auto_pause", "1: at the end of its time it is paused"),
	SWITCH("auto_pause_memory", "0: of a paused one files alone are kept"), SWITCH("auto_resume", "1"),
	LIST("volumes", SERVICE_PAIRS, 32, "name, path, …"), SWITCH("secure",
	"0: an old client did not ask for a token"),
	TEXT("cwd", 0, PATH_BYTES, "of commands that name none"),
	TEXT("start_command", 0, SERVICE_TEXT_MAX, "runs from the beginning on; for a shell"),
	TEXT("ready_command", 0, SERVICE_TEXT_MAX, "ends with 0 once it is ready; for a shell"),
	END };
static const struct service_field connect_request[] = {
	SANDBOX, NUMBER("timeout_ms", LONGEST, "from now"), SWITCH("memory", "0: begin anew from its files"), END };
static const struct service_field list_request[] = {
	METADATA, LIST("states", LINE, 8, "running, paused"), TEXT("template", LINE, NAME_BYTES, ""),
	NUMBER("started_after_ms", LONGEST, "since 1970"), SWITCH("ascending", "1: the oldest first"), PAGE, END };
static const struct service_field timeout_request[] = {
	SANDBOX, NEEDED("timeout_ms", LONGEST, "from now"), SWITCH("extend", "1: never earlier than it was"), END };
static const struct service_field pause_request[] = { SANDBOX, SWITCH("memory", "0: keep the files alone"), END };
static const struct service_field fork_request[] = {
	SANDBOX, NUMBER("timeout_ms", LONGEST, "of each"), NUMBER("count", 100, "1"), END };
static const struct service_field fork_row[] = {
	SANDBOX_VALUES, NUMBER("status", 599, "of one that failed"), TEXT("message", 0, 2048, "why"),
	SWITCH("files_only", "1: its processes were not carried"), END };
static const struct service_field snapshot_request[] = { SANDBOX, TEXT("name", LINE, NAME_BYTES, ""), END };
static const struct service_field snapshot_values[] = {
	TEXT("snapshot", LINE, NAME_BYTES, "its id, a template"), LIST("names", LINE, 16, ""),
	NUMBER("created_ms", LONGEST, "since 1970"), TEXT("sandbox", ID, SERVICE_ID_MAX, "of which"), END };
static const struct service_field snapshots_request[] = {
	TEXT("sandbox", ID, SERVICE_ID_MAX, "of this one alone"), TEXT("name", LINE, NAME_BYTES, "of this name alone"),
	PAGE, END };
static const struct service_field page_request[] = { PAGE, END };
static const struct service_field template_row[] = {
	TEXT("template", LINE, NAME_BYTES, "its id"), LIST("names", LINE, 16, ""), NUMBER("created_ms", LONGEST, ""),
	SWITCH("is_snapshot", ""), NUMBER("cpu_count", 65535, ""), NUMBER("memory_mb", LONGEST, ""),
	NUMBER("disk_mb", LONGEST, ""), END };
static const struct service_field template_request[] = {
	TEXT("template", REQUIRED | LINE, NAME_BYTES, "its id or name"), END };
#define TEMPLATE TEXT("template", REQUIRED | LINE, NAME_BYTES, "its id or name")
#define BUILD TEXT("build", REQUIRED | ID, SERVICE_ID_MAX, "its id")
#define TAGS LIST("tags", LINE, SERVICE_ROWS_MAX, "other names of one build of a template")
static const struct service_field build_request[] = { TEXT("name", REQUIRED | LINE, NAME_BYTES, "NAME or NAME:TAG"),
	TAGS, END };
static const struct service_field build_reply[] = {
	TEXT("template", LINE, NAME_BYTES, "its id"), TEXT("build", ID, SERVICE_ID_MAX, "its id"),
	LIST("names", LINE, 16, ""), TAGS, END };
static const struct service_field build_file[] = {
	TEMPLATE, TEXT("file", REQUIRED | LINE, 128, "the hash of what is in it"),
	TEXT("host", LINE, NAME_BYTES, "as the client calls this service"), SWITCH("secure", "1: by TLS"), END };
static const struct service_field build_file_reply[] = {
	SWITCH("present", "1: it is there"), TEXT("url", LINE, 1024, "where it is sent to"), END };
static const struct service_field build_upload[] = {
	TEMPLATE, TEXT("file", REQUIRED | LINE, 128, "the hash of what is in it"),
	TEXT("upload", REQUIRED | LINE, 128, "what the URL is signed with"),
	TEXT("part", ID, SERVICE_ID_MAX, "what the launcher called it before it was whole"),
	NUMBER("commit", LONGEST, "so many bytes were written, and are all; missing: nobody will finish it"), END };
static const struct service_field build_upload_reply[] = {
	HANDLE("archive", "to write to"), TEXT("part", ID, SERVICE_ID_MAX, "to commit it by"),
	NUMBER("max", LONGEST, "bytes"), END };
static const struct service_field build_start[] = {
	TEMPLATE, BUILD, TEXT("from_image", LINE, NAME_BYTES, "an imported system"),
	TEXT("from_template", LINE, NAME_BYTES, "id or name"),
	LIST("steps", 0, 8192, "type, hash of files, 1 (do it in any case), number of arguments, arguments, …"),
	TEXT("start", 0, SERVICE_TEXT_MAX, "the start command"), TEXT("ready", 0, SERVICE_TEXT_MAX,
	"the ready command"),
	SWITCH("force", "1: nothing that was built before is taken"), END };
static const struct service_field build_status[] = {
	TEMPLATE, BUILD, NUMBER("offset", LONGEST, "of the first row"), PAGE, END };
static const struct service_field build_status_reply[] = {
	TEXT("template", LINE, NAME_BYTES, "its id"), TEXT("build", ID, SERVICE_ID_MAX, "its id"),
	TEXT("status", LINE, 16, "waiting, building, ready or error"), TEXT("message", 0, 2048, "why it failed"),
	TEXT("step", LINE, 16, "its number, base or finalize"), ROWS, END };
static const struct service_field build_status_row[] = {
	NUMBER("time_ms", LONGEST, "since 1970"), TEXT("level", LINE, 16, ""), TEXT("message", 0, 8192, ""),
	TEXT("step", LINE, 16, "its number, base or finalize"), END };
static const struct service_field tags_request[] = { TEXT("name", REQUIRED | LINE, NAME_BYTES, "NAME or NAME:TAG"),
	TAGS, END };
static const struct service_field tags_reply[] = { TEXT("build", ID, SERVICE_ID_MAX, "its id"), TAGS, END };
static const struct service_field tags_row[] = {
	TEXT("tag", LINE, NAME_BYTES, ""), TEXT("build", ID, SERVICE_ID_MAX, "its id"),
	NUMBER("created_ms", LONGEST, "since 1970"), END };
static const struct service_field alias_reply[] = { TEXT("template", LINE, NAME_BYTES, "its id"), SWITCH("public", ""),
	END };
static const struct service_field network_request[] = { SANDBOX, NETWORK, END };
static const struct service_field metrics_request[] = {
	TEXT("sandbox", ID, SERVICE_ID_MAX, "of this one"), LIST("sandboxes", LINE, SERVICE_ROWS_MAX,
	"the last of each"),
	NUMBER("start_ms", LONGEST, "since 1970"), NUMBER("end_ms", LONGEST, "since 1970"), PAGE, END };
static const struct service_field metrics_row[] = {
	TEXT("sandbox", ID, SERVICE_ID_MAX, ""), NUMBER("time_ms", LONGEST, "since 1970"), NUMBER("cpu_count",
	65535, ""),
	NUMBER("cpu_used_milli", LONGEST, "thousandths of a percent of one CPU"), NUMBER("mem_used", LONGEST, "bytes"),
	NUMBER("mem_total", LONGEST, "bytes"), NUMBER("mem_cache", LONGEST, "bytes"),
	NUMBER("disk_used", LONGEST, "bytes"), NUMBER("disk_total", LONGEST, "bytes"), END };
static const struct service_field logs_request[] = {
	SANDBOX, NUMBER("start_ms", LONGEST, "since 1970"), SWITCH("backward", "1: the newest first"),
	TEXT("level", LINE, 16, "debug, info, warn or error, and above"), TEXT("search", 0, NAME_BYTES,
	"in the message"),
	PAGE, END };
static const struct service_field logs_row[] = {
	NUMBER("time_ms", LONGEST, "since 1970"), TEXT("level", LINE, 16, ""), TEXT("message", 0, 8192, ""),
	LIST("fields", SERVICE_PAIRS, 64, "name, value, …"), END };
static const struct service_field volume_request[] = { TEXT("name", REQUIRED | LINE, NAME_BYTES, ""), END };
static const struct service_field volume_named[] = { TEXT("volume", REQUIRED | LINE, NAME_BYTES, "its id"), END };
static const struct service_field volume_values[] = {
	TEXT("volume", LINE, NAME_BYTES, "its id"), TEXT("name", LINE, NAME_BYTES, ""), TEXT("token", LINE, 128,
	""), END };
static const struct service_field secret_create[] = {
	TEXT("name", REQUIRED | LINE, NAME_BYTES, ""), TEXT("value", REQUIRED, 16384, ""), METADATA, END };
static const struct service_field secret_update[] = {
	TEXT("secret", REQUIRED | LINE, NAME_BYTES, "its id"), TEXT("value", REQUIRED, 16384, ""), METADATA, END };
static const struct service_field secret_named[] = { TEXT("secret", REQUIRED | LINE, NAME_BYTES, "its id"), END };
static const struct service_field secret_values[] = {
	TEXT("secret", LINE, NAME_BYTES, "its id"), TEXT("name", LINE, NAME_BYTES, ""), NUMBER("version", LONGEST, ""),
	METADATA, NUMBER("created_ms", LONGEST, ""), NUMBER("updated_ms", LONGEST, ""), END };

static const struct service_field exec_request[] = {
	SANDBOX, LIST("argv", REQUIRED, 4096, "the program and its words"), LIST("env", 0, 1024, "NAME=value"),
	TEXT("cwd", 0, PATH_BYTES, "the user's home"), USER, SWITCH("pty", "1: with a terminal"), SIZE,
	TEXT("tag", 0, NAME_BYTES, "the client's name for it"), SWITCH("stdin", "0: it has none"),
	TEXT("warm", LINE, 32, "it may be the driver of this language that was started ahead"),
	SWITCH("bound", "1: it ends with the daemon, and keeps nothing for later readers"),
	NUMBER("timeout_ms", LONGEST, "it is killed then; 0: never"), END };
static const struct service_field exec_reply[] = {
	COMMAND, STREAMS, TEXT("mark", LINE, 32, "of a driver that was started ahead"), END };
static const struct service_field command_request[] = { SANDBOX, COMMAND, END };
static const struct service_field command_row[] = {
	COMMAND, LIST("argv", 0, 4096, ""), LIST("env", 0, 1024, "NAME=value"), TEXT("cwd", 0, PATH_BYTES, ""),
	SWITCH("pty", "1: with a terminal"), END };
static const struct service_field attach_reply[] = {
	COMMAND, STREAMS, SWITCH("pty", "1: with a terminal"), SWITCH("exited", "1: it has ended"), ENDED, END };
static const struct service_field signal_request[] = { SANDBOX, COMMAND, NEEDED("signal", 64, ""), END };
static const struct service_field resize_request[] = { SANDBOX, COMMAND, SIZE, END };
static const struct service_field open_request[] = {
	SIGNING_SANDBOX, PATHNAME("path"), USER, SWITCH("write", "1: it is made, emptied and written"),
	NUMBER("mode", 07777, "of a new one; 0644"), END };
static const struct service_field open_reply[] = { HANDLE("file", "at its beginning"), FILE_VALUES, END };
static const struct service_field path_request[] = { SANDBOX, PATHNAME("path"), USER, END };
static const struct service_field readdir_request[] = {
	SANDBOX, PATHNAME("path"), USER, NUMBER("depth", 1000, "1"), PAGE, END };
static const struct service_field move_request[] = { SANDBOX, PATHNAME("from"), PATHNAME("to"), USER, END };
static const struct service_field setattr_request[] = {
	SIGNING_SANDBOX, PATHNAME("path"), USER, METADATA, NUMBER("mode", 07777, "permissions"), END };
static const struct service_field watch_request[] = {
	SANDBOX, PATHNAME("path"), USER, SWITCH("recursive", "1: and all below it"), SWITCH("entries",
	"1: with its values"),
	SWITCH("network_mounts", "1: also there"), END };
static const struct service_field watch_reply[] = {
	{ "watch", FIELD_U64, 0, LONGEST, "its number" },
	TEXT("path", 0, PATH_BYTES, "of what is watched, absolute"), END };
static const struct service_field unwatch_request[] = { SANDBOX, NEEDED("watch", LONGEST, "its number"), END };
static const struct service_field dial_request[] = {
	SANDBOX, NEEDED("port", PORTS, "inside"), TEXT("traffic_token", LINE, 128, ""), END };
static const struct service_field interpret_request[] = {
	SANDBOX, TEXT("traffic_token", LINE, 128, "where there is no access token"), END };
static const struct service_field dial_reply[] = {
	HANDLE("socket", "connected"), TEXT("mask_host", LINE, NAME_BYTES, "the Host to say; ${PORT}"), END };

#define FUNCTION TEXT("function", REQUIRED | LINE, 64, "its name, or its id")
#define FUNCTION_SETTINGS \
	TEXT("name", REQUIRED | LINE, 64, ""), TEXT("runtime", REQUIRED | LINE, 16, "python, javascript or exec"), \
	TEXT("entry", REQUIRED | LINE, NAME_BYTES, "FILE:FUNCTION, or an executable file"), \
	NUMBER("memory_mb", 1 << 20, "of one invocation; what the policy says"), \
	NUMBER("timeout_ms", DAY_MS, "of one invocation"), \
	NUMBER("concurrency", 1000, "as many invocations at once"), NETWORK

static const struct service_field function_deploy[] = {
	FUNCTION_SETTINGS, LIST("env", 0, 256, "NAME=value"), END };
static const struct service_field function_file[] = {
	TEXT("function", ID, SERVICE_ID_MAX, "its id"), HANDLE("file", "to write the archive to"), END };
static const struct service_field function_named[] = { FUNCTION, END };
static const struct service_field function_values[] = {
	TEXT("function", LINE, 64, "its id"), FUNCTION_SETTINGS, LIST("env", LINE, 256, "names"),
	NUMBER("created_ms", LONGEST, "since 1970"), NUMBER("invocations", LONGEST, ""), NUMBER("errors", LONGEST, ""),
	NUMBER("cold", LONGEST, "that waited for a start"), NUMBER("p50_us", LONGEST, "of the last 256"),
	NUMBER("p95_us", LONGEST, "of them"), NUMBER("running", LONGEST, ""),
	NUMBER("warm", LONGEST, "that wait"), END };
static const struct service_field function_streams[] = {
	NEEDED("invocation", LONGEST, "its number"), STREAMS, SWITCH("cold", "1: it waited for a start"),
	SWITCH("json", "1: the result is JSON"), END };
static const struct service_field function_end[] = {
	NEEDED("invocation", LONGEST, "its number"), SWITCH("cancelled", "1: nobody wants its result"),
	SWITCH("failed", "1: it gave no result"),
	TEXT("log", 0, 8192, "the beginning of what it wrote to standard error"),
	NUMBER("dropped", LONGEST, "bytes of it that are not kept"), END };
static const struct service_field function_ended[] = {
	NUMBER("exit", 255, "its exit code"), NUMBER("signal", 128, "that ended it"),
	TEXT("ended", LINE, 32, "exit, signal, time, memory, cancelled, …"), NUMBER("us", LONGEST, "how long"), END };
static const struct service_field function_log[] = {
	NUMBER("invocation", LONGEST, ""), NUMBER("time_ms", LONGEST, "since 1970"), NUMBER("us", LONGEST, "how long"),
	SWITCH("cold", ""), NUMBER("exit", 255, ""), NUMBER("signal", 128, ""), TEXT("ended", LINE, 32, ""),
	TEXT("log", 0, 8192, ""), NUMBER("dropped", LONGEST, "bytes"), END };

enum { KEY = SERVICE_BY_KEY, TOKEN = SERVICE_BY_TOKEN, SIGNED = SERVICE_BY_TOKEN | SERVICE_BY_SIGNATURE,
	ANYONE = SERVICE_BY_NOTHING };

static const struct service_rule rules[SERVICE_OPERATION_COUNT] = {
	[SERVICE_WHOAMI] = { "key.show", KEY, nothing, whoami_reply },
	[SERVICE_CREATE] = { "sandbox.create", KEY, create_request, sandbox_values },
	[SERVICE_CONNECT] = { "sandbox.connect", KEY, connect_request, sandbox_values },
	[SERVICE_GET] = { "sandbox.get", KEY, only_sandbox, sandbox_values },
	[SERVICE_LIST] = { "sandbox.list", KEY, list_request, rows_next, sandbox_values },
	[SERVICE_KILL] = { "sandbox.kill", KEY, only_sandbox, nothing },
	[SERVICE_TIMEOUT] = { "sandbox.timeout", KEY, timeout_request, nothing },
	[SERVICE_PAUSE] = { "sandbox.pause", KEY, pause_request, nothing },
	[SERVICE_FORK] = { "sandbox.fork", KEY, fork_request, rows_only, fork_row },
	[SERVICE_SNAPSHOT] = { "snapshot.create", KEY, snapshot_request, snapshot_values },
	[SERVICE_SNAPSHOTS] = { "snapshot.list", KEY, snapshots_request, rows_next, snapshot_values },
	[SERVICE_TEMPLATES] = { "template.list", KEY, page_request, rows_next, template_row },
	[SERVICE_TEMPLATE_DELETE] = { "template.delete", KEY, template_request, nothing },
	[SERVICE_NETWORK] = { "sandbox.network", KEY, network_request, nothing },
	[SERVICE_METRICS] = { "sandbox.metrics", KEY, metrics_request, rows_next, metrics_row },
	[SERVICE_LOGS] = { "sandbox.logs", KEY, logs_request, rows_next, logs_row },
	[SERVICE_VOLUME_CREATE] = { "volume.create", KEY, volume_request, volume_values },
	[SERVICE_VOLUMES] = { "volume.list", KEY, page_request, rows_next, volume_values },
	[SERVICE_VOLUME_GET] = { "volume.get", KEY, volume_named, volume_values },
	[SERVICE_VOLUME_DELETE] = { "volume.delete", KEY, volume_named, nothing },
	[SERVICE_SECRET_CREATE] = { "secret.create", KEY, secret_create, secret_values },
	[SERVICE_SECRETS] = { "secret.list", KEY, page_request, rows_next, secret_values },
	[SERVICE_SECRET_GET] = { "secret.get", KEY, secret_named, secret_values },
	[SERVICE_SECRET_UPDATE] = { "secret.update", KEY, secret_update, secret_values },
	[SERVICE_SECRET_DELETE] = { "secret.delete", KEY, secret_named, nothing },
	[SERVICE_HEALTH] = { "sandbox.health", ANYONE, only_sandbox, nothing },
	[SERVICE_EXEC] = { "command.start", TOKEN, exec_request, exec_reply },
	[SERVICE_COMMANDS] = { "command.list", TOKEN, only_sandbox, rows_next, command_row },
	[SERVICE_ATTACH] = { "command.connect", TOKEN, command_request, attach_reply },
	[SERVICE_SIGNAL] = { "command.signal", TOKEN, signal_request, nothing },
	[SERVICE_RESIZE] = { "command.resize", TOKEN, resize_request, nothing },
	[SERVICE_CLOSE] = { "command.close", TOKEN, command_request, nothing },
	[SERVICE_CLOSE_INPUT] = { "command.close_input", TOKEN, command_request, nothing },
	[SERVICE_OPEN] = { "file.open", SIGNED, open_request, open_reply },
	[SERVICE_STAT] = { "file.stat", TOKEN, path_request, file_values },
	[SERVICE_READDIR] = { "file.list", TOKEN, readdir_request, rows_next, file_values },
	[SERVICE_MKDIR] = { "file.mkdir", TOKEN, path_request, file_values },
	[SERVICE_MOVE] = { "file.move", TOKEN, move_request, file_values },
	[SERVICE_REMOVE] = { "file.remove", TOKEN, path_request, nothing },
	[SERVICE_SETATTR] = { "file.set", SIGNED, setattr_request, file_values },
	[SERVICE_WATCH] = { "file.watch", TOKEN, watch_request, watch_reply },
	[SERVICE_UNWATCH] = { "file.unwatch", TOKEN, unwatch_request, nothing },
	[SERVICE_DIAL] = { "port.connect", ANYONE, dial_request, dial_reply },
	[SERVICE_INTERPRET] = { "interpreter.use", ANYONE, interpret_request, nothing },
	[SERVICE_FUNCTION_DEPLOY] = { "function.deploy", KEY, function_deploy, function_file },
	[SERVICE_FUNCTION_COMMIT] = { "function.commit", KEY, function_named, function_values },
	[SERVICE_FUNCTIONS] = { "function.list", KEY, page_request, rows_next, function_values },
	[SERVICE_FUNCTION_GET] = { "function.get", KEY, function_named, function_values },
	[SERVICE_FUNCTION_DELETE] = { "function.delete", KEY, function_named, nothing },
	[SERVICE_FUNCTION_INVOKE] = { "function.invoke", KEY, function_named, function_streams },
	[SERVICE_FUNCTION_END] = { "function.end", ANYONE, function_end, function_ended },
	[SERVICE_FUNCTION_LOGS] = { "function.logs", KEY, function_named, rows_only, function_log },
	[SERVICE_BUILD_REQUEST] = { "template.request", KEY, build_request, build_reply },
	[SERVICE_BUILD_FILE] = { "template.file", KEY, build_file, build_file_reply },
	[SERVICE_BUILD_UPLOAD] = { "template.upload", ANYONE, build_upload, build_upload_reply },
	[SERVICE_BUILD_START] = { "template.build", KEY, build_start, nothing },
	[SERVICE_BUILD_STATUS] = { "template.status", KEY, build_status, build_status_reply, build_status_row },
	[SERVICE_ALIAS] = { "template.alias", KEY, template_request, alias_reply },
	[SERVICE_TAGS] = { "template.tags", KEY, template_request, rows_only, tags_row },
	[SERVICE_TAGS_ADD] = { "template.tag", KEY, tags_request, tags_reply },
	[SERVICE_TAGS_REMOVE] = { "template.untag", KEY, tags_request, nothing },
};

static const struct service_field exit_event[] = { SANDBOX, COMMAND, ENDED, END };
static const struct service_field changed_event[] = {
	SANDBOX, NEEDED("watch", LONGEST, "its number"), NEEDED("change", SERVICE_CHANGE_CHMOD, "enum service_change"),
	TEXT("below", REQUIRED, PATH_BYTES, "what changed, relative to what is watched"), FILE_VALUES, END };
static const struct service_field lost_event[] = { SANDBOX, NEEDED("watch", LONGEST, "its number"), END };
static const struct service_field gone_event[] = {
	SANDBOX, TEXT("ended", LINE, 32, "killed, time, stopped, memory, lost, …"), END };

const struct service_rule *service_rule(uint32_t operation)
{
	return operation && operation < SERVICE_OPERATION_COUNT ? &rules[operation] : NULL;
}

const struct service_field *service_event_fields(uint32_t event)
{
	static const struct service_field *const events[SERVICE_EVENT_COUNT] = {
		[SERVICE_EXIT] = exit_event, [SERVICE_CHANGED] = changed_event, [SERVICE_LOST] = lost_event,
		[SERVICE_GONE] = gone_event, [SERVICE_PAUSED] = only_sandbox, [SERVICE_RESUMED] = only_sandbox,
	};

	return event < SERVICE_EVENT_COUNT ? events[event] : NULL;
}

bool service_is_status(uint32_t status)
{
	static const uint32_t known[] = { 200, 201, 202, 204, 400, 401, 403, 404, 409, 413, 429, 500, 501, 502, 503,
	504,
		507 };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i] == status)
			return true;
	return false;
}
