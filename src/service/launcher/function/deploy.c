/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "service/launcher/function/function-runtimes.h"
#include "service/launcher/function/functions.h"
#include "service/launcher/function/invoke.h"
#include "service/launcher/function/operations.h"

enum { NS_PER_MS = 1000000, NAME_MAX_LETTERS = 63, ARCHIVE_MAX = 16 << 20 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

/* ---- what may be asked for ---- */

static bool is_runtime(const char *runtime)
{
	return str_equal(runtime, "python") || str_equal(runtime, "javascript") || str_equal(runtime, "exec");
}

/* A path within the archive. */
static bool is_entry(const char *entry)
{
	return entry[0] != '/' && entry[0] != '-' && entry[0] != ':' && !strstr(entry, "..");
}

/* False: the call was answered. */
static bool check_asked(struct call *call)
{
	const char *name = call_string(call, "name"), *runtime = call_string(call, "runtime");
	uint64_t concurrency = call_number(call, "concurrency", 1);

	if (name[0] == '-' || name[strspn(name, letters)] || strlen(name) > NAME_MAX_LETTERS)
		call_fail(call, 400, NULL, "\"name\": 1 to 63 letters, digits, '_' and '-'");
	else if (!is_runtime(runtime))
		call_fail(call, 400, NULL, "\"runtime\": python, javascript or exec");
	else if (!is_entry(call_string(call, "entry")))
		call_fail(call, 400, NULL, "\"entry\": a file of the archive, and its function after a colon");
	else if (call_number(call, "timeout_ms", 1) < 1 ||
		 call_number(call, "timeout_ms", 1) > FUNCTION_TIMEOUT_MAX_MS)
		call_fail(call, 400, NULL, "\"timeoutMs\": 1 to %d", FUNCTION_TIMEOUT_MAX_MS);
	else if (concurrency < 1 || concurrency > call->caller.key.sandboxes_max)
		call_fail(call, 400, NULL, "\"concurrency\": 1 to %llu, as many sandboxes as the key may have",
			  (unsigned long long)call->caller.key.sandboxes_max);
	else if (call_number(call, "memory_mb", 16) < 16)
		call_fail(call, 400, NULL, "\"memoryMB\": 16 or more");
	else
		return true;
	return false;
}

static bool check_quotas(struct call *call)
{
	const struct key_row *key = &call->caller.key;
	int wait_s = quotas_take(&call->daemon->quotas, key, 1, clock_monotonic_ns());

	if (wait_s) {
		call->retry_after_s = wait_s < 0 ? 1 : (uint32_t)wait_s;
		call_fail(call, 429, NULL, "%s has made as many sandboxes and functions as it may in a minute",
			  key->owner);
	} else if (functions_count(call->daemon, key->owner) >= FUNCTIONS_OWNER_MAX) {
		call_fail(call, 429, NULL, "%s has as many functions as it may have (%d); remove one", key->owner,
			  FUNCTIONS_OWNER_MAX);
	} else if (functions_count(call->daemon, NULL) >= FUNCTIONS_MAX) {
		call_fail(call, 429, NULL, "this service has as many functions as it takes (%d)", FUNCTIONS_MAX);
	} else {
		return true;
	}
	return false;
}

/* ---- the first step ---- */

/* What its home begins with: the drivers, and an archive that is still empty. Its descriptor; negative errno. */
static int make_directory(const struct daemon *daemon, const char *id)
{
	static const struct {
		const char *name;
		const unsigned char *bytes;
		size_t size;
	} files[] = {
		{ "start.sh", runtime_start, sizeof runtime_start },
		{ "python.py", runtime_python, sizeof runtime_python },
		{ "javascript.js", runtime_javascript, sizeof runtime_javascript },
	};
	char path[PATH_MAX], below[PATH_MAX];
	cleanup_fd int dir_fd = FD_NONE;
	int r = function_directory(daemon, id, path);

	if (r == 0)
		r = path_join(below, sizeof below, path, "function");
	if (r == 0)
		r = path_make_directories(AT_FDCWD, below, 0755);
	if (r == 0)
		r = path_join(below, sizeof below, path, ".function");
	if (r == 0)
		r = path_make_directories(AT_FDCWD, below, 0755);
	if (r == 0)
		r = dir_fd = fd_open_at(AT_FDCWD, below, O_DIRECTORY | O_RDONLY, 0);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(files); i++)
		r = fd_replace_file_at(dir_fd, files[i].name, files[i].bytes, files[i].size, 0644);
	return r < 0 ? r : fd_open_at(dir_fd, "archive", O_WRONLY | O_CREAT | O_EXCL, 0644);
}

void deploy_begin(struct call *call)
{
	char id[CREDENTIAL_ID_SIZE];
	struct function *function;
	struct kept made;
	struct buf *out;
	int fd;

	if (!check_asked(call) || !check_quotas(call))
		return;
	if (credential_new_id(id) < 0 || kept_copy(&made, call->message, SERVICE_FUNCTION_DEPLOY) < 0) {
		call_fail(call, 503, NULL, "out of memory");
		return;
	}
	function = functions_add(call->daemon, &made, id);
	if (!function) {
		call_fail(call, 503, NULL, "out of memory");
		return;
	}
	(void)!str_copy(function->owner, sizeof function->owner, call->caller.key.owner);
	function->key = call->caller.key.number;
	daemon_wake_at(call->daemon, clock_monotonic_ns());
	fd = make_directory(call->daemon, id);
	if (fd < 0) {
		functions_remove(function);
		call_fail(call, call_unwritten_status(fd), NULL, "the function cannot be stored: %s",
			  err_errno_name(-fd));
		return;
	}
	out = call_begin_reply(call, 200);
	field_put_string(out, "function", id);
	field_put_fd(out, "file", 0);
	call_end_reply(call, &fd, 1);
}

/* ---- the trial ---- */

static int store(const struct function *function)
{
	const struct function_row row = {
		.key = function->key, .created_ms = function->created_ms,
		.made = { function->made.bytes, function->made.size },
	};
	struct function_row filled = row;

	(void)!str_copy(filled.id, sizeof filled.id, function->id);
	(void)!str_copy(filled.name, sizeof filled.name, function->name);
	(void)!str_copy(filled.owner, sizeof filled.owner, function->owner);
	daemon_note_change(function->daemon);
	return database_put_function(function->daemon->store, &filled);
}

/* It takes the place of the one before, and this instance waits for its first event. */
static void on_ready(struct instance *instance)
{
	struct function *function = instance->function, *before;
	struct call *call = take_ptr(function->deployer);
	int r;

	before = functions_named(function->daemon, function->owner, function->name);
	function->created_ms = clock_realtime_ns() / NS_PER_MS;
	r = store(function);
	if (r < 0) {
		functions_remove(function);
		call_fail(call, call_unwritten_status(r), NULL, "the database cannot be written");
		return;
	}
	if (before)
		functions_retire(before, function);
	function->is_served = true;
	function->wanted = 1;
	function->used_ns = clock_monotonic_ns();
	instance->events = &invoke_events;
	functions_reply(call, function, 201);
	if (function->waiting)
		invoke_events.ready(instance);
}

static void on_failed(struct instance *instance, const char *why)
{
	struct function *function = instance->function;
	struct call *call = take_ptr(function->deployer);

	call_fail(call, 400, NULL, "the function cannot be loaded: %s", why);
	functions_remove(function);
}

static const struct instance_events trial_events = { .ready = on_ready, .failed = on_failed };

/* Whether the archive came, and is no larger than it may be. */
static bool has_archive(const struct function *function)
{
	char directory[PATH_MAX], path[PATH_MAX];
	struct stat st;

	return function_directory(function->daemon, function->id, directory) == 0 &&
	       path_join(path, sizeof path, directory, ".function/archive") == 0 && stat(path, &st) == 0 &&
	       st.st_size > 0 && st.st_size <= ARCHIVE_MAX;
}

void deploy_commit(struct call *call)
{
	struct function *function = functions_find(call, false);
	struct err err = { 0 };

	if (!function || function->deployer) {
		call_fail(call, 404, NULL, "there is no function that waits for its archive");
		return;
	}
	if (!has_archive(function)) {
		call_fail(call, 400, NULL, "\"archive\": a tar archive, with or without compression, in base64");
		functions_remove(function);
		return;
	}
	function->deployer = call;
	if (instance_start(function, &trial_events, &err))
		return;
	function->deployer = NULL;
	call_fail_err(call, 400, &err);
	functions_remove(function);
}
