/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/function/functions.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/path.h"
#include "service/launcher/call/access.h"
#include "service/launcher/function/instance.h"
#include "service/launcher/function/operations.h"
#include "service/launcher/function/orphan.h"

enum { PAGE_BYTES = 100 << 10 };

static const char no_function[] = "there is no function of this name";

/* ---- where they are ---- */

struct function *functions_add(struct daemon *daemon, struct kept *made, const char *id)
{
	struct function *function = function_new(daemon, made);

	if (!function)
		return NULL;
	(void)!str_copy(function->id, sizeof function->id, id);
	function->began_ns = clock_monotonic_ns();
	function->next = daemon->registry.functions->first;
	daemon->registry.functions->first = function;
	return function;
}

/* Who waits for it hears that it is gone. */
static void take_out(struct function *function)
{
	struct function **at = &function->daemon->registry.functions->first;

	while (*at != function)
		at = &(*at)->next;
	*at = function->next;
	while (function->instances) {
		struct instance *instance = function->instances;

		if (instance->ender)
			call_fail(take_ptr(instance->ender), 502, NULL, "the function was removed");
		instance_free(instance);
	}
	while (function->waiting) {
		struct call *call = function->waiting;

		function->waiting = call->next;
		call_fail(call, 502, NULL, "the function was removed");
	}
	if (function->deployer)
		call_fail(take_ptr(function->deployer), 503, NULL, "the service ends");
}

void functions_remove(struct function *function)
{
	char path[PATH_MAX];

	take_out(function);
	(void)!database_remove_function(function->daemon->store, function->id);
	daemon_note_change(function->daemon);
	if (function_directory(function->daemon, function->id, path) == 0)
		(void)!path_remove_tree(AT_FDCWD, path);
	function_free(function);
}

void functions_retire(struct function *function, struct function *other)
{
	struct instance *next;

	other->waiting = take_ptr(function->waiting);
	function->is_served = false;
	for (struct instance *at = function->instances; at; at = next) {
		next = at->next;
		if (at->state == INSTANCE_STARTING || at->state == INSTANCE_READY)
			instance_free(at);
	}
	if (!function->instances) {
		functions_remove(function);
		return;
	}
	(void)!database_remove_function(function->daemon->store, function->id);
	daemon_note_change(function->daemon);
}

void functions_done(struct daemon *daemon)
{
	struct functions *functions = daemon->registry.functions;

	while (functions && functions->first) {
		struct function *function = functions->first;

		take_out(function);
		function_free(function);
	}
	if (functions)
		orphans_done(daemon);
	free(functions);
	daemon->registry.functions = NULL;
}

static int load_row(void *context, const struct function_row *row)
{
	struct daemon *daemon = context;
	struct function *function;
	struct kept made;
	int r = kept_read(&made, row->made.bytes, row->made.size);

	/* What an earlier atoll wrote and this one cannot read cannot be invoked. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	function = functions_add(daemon, &made, row->id);
	if (!function)
		return -ENOMEM;
	(void)!str_copy(function->owner, sizeof function->owner, row->owner);
	function->key = row->key;
	function->created_ms = row->created_ms;
	function->is_served = true;
	return 0;
}

/* What was being deployed when the last daemon ended, or could not be removed. */
static void remove_strays(struct daemon *daemon)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *directory;

	if (path_join(path, sizeof path, daemon->places.directory, "functions") < 0)
		return;
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		struct function *at = daemon->registry.functions->first;

		while (at && !str_equal(at->id, entry->d_name))
			at = at->next;
		if (!at && entry->d_name[0] != '.' && function_directory(daemon, entry->d_name, path) == 0)
			(void)!path_remove_tree(AT_FDCWD, path);
	}
	if (directory)
		closedir(directory);
}

int functions_load(struct daemon *daemon, void (*session_ended)(struct daemon *daemon), struct err *err)
{
	struct functions *functions = calloc(1, sizeof *functions);
	int r;

	if (!functions)
		return err_set(err, ERR_INTERNAL, ENOMEM, "serve", "out of memory");
	functions->session_ended = session_ended;
	daemon->registry.functions = functions;
	r = database_each_function(daemon->store, load_row, daemon);
	if (r == 0)
		r = orphans_load(daemon);
	if (r == 0)
		remove_strays(daemon);
	return r < 0 ? err_set(err, ERR_STATE, -r, "serve", "the functions cannot be read: %s",
			       database_problem(daemon->store)) : 0;
}

bool functions_recover(struct daemon *daemon, bool is_over)
{
	return daemon->registry.functions && orphans_look(daemon, is_over);
}

static struct function *first_of(const struct daemon *daemon)
{
	return daemon->registry.functions ? daemon->registry.functions->first : NULL;
}

struct function *functions_named(const struct daemon *daemon, const char *owner, const char *name)
{
	struct function *at = first_of(daemon);

	while (at && !(at->is_served && str_equal(at->owner, owner) && str_equal(at->name, name)))
		at = at->next;
	return at;
}

/* Its own by name; one that it may see by id. */
struct function *functions_find(const struct call *call, bool is_served)
{
	const char *name = call_string(call, "function");
	struct function *at = is_served ? functions_named(call->daemon, call->caller.key.owner, name) : NULL;

	if (at)
		return at;
	for (at = first_of(call->daemon); at; at = at->next)
		if (at->is_served == is_served && str_equal(at->id, name) && access_sees(&call->caller, at->owner))
			break;
	return at;
}

size_t functions_count(const struct daemon *daemon, const char *owner)
{
	size_t count = 0;

	for (const struct function *at = first_of(daemon); at; at = at->next)
		count += !owner || str_equal(at->owner, owner);
	return count;
}

/* ---- what is said of them ---- */

static void describe(const struct function *function, struct buf *out)
{
	function_describe(function, out, instance_count(function, INSTANCE_BUSY),
			  instance_count(function, INSTANCE_READY));
}

void functions_reply(struct call *call, const struct function *function, uint32_t status)
{
	describe(function, call_begin_reply(call, status));
	call_end_reply(call, NULL, 0);
}

/* "next" is how many were shown: a list that changes meanwhile may lack one, or show it twice. */
void functions_list(struct call *call)
{
	struct buf *out = call_begin_reply(call, 200), *row = &call->daemon->row;
	uint64_t from = 0, seen = 0;
	size_t rows = 0;

	if (call_string(call, "next") && num_parse_u64(call_string(call, "next"), &from) < 0) {
		call_fail(call, 400, NULL, "nextToken is none that this service gave");
		return;
	}
	for (const struct function *at = first_of(call->daemon); at; at = at->next) {
		char next[24];

		if (!at->is_served || !access_sees(&call->caller, at->owner) || seen++ < from)
			continue;
		service_begin_row(row);
		describe(at, row);
		if (rows && (rows == SERVICE_ROWS_MAX || out->size + row->size > PAGE_BYTES)) {
			if (str_format(next, sizeof next, "%llu", (unsigned long long)(seen - 1)) == 0)
				field_put_string(out, "next", next);
			break;
		}
		service_put_row(out, row);
		rows++;
	}
	call_end_reply(call, NULL, 0);
}

void functions_get(struct call *call)
{
	const struct function *function = functions_find(call, true);

	if (function)
		functions_reply(call, function, 200);
	else
		call_fail(call, 404, NULL, "%s", no_function);
}

void functions_delete(struct call *call)
{
	struct function *function = functions_find(call, true);

	if (!function) {
		call_fail(call, 404, NULL, "%s", no_function);
		return;
	}
	functions_remove(function);
	call_reply(call, 204);
}

static void put_log(const struct function_log *log, struct buf *row)
{
	field_put_u64(row, "invocation", log->number);
	field_put_u64(row, "time_ms", log->time_ms);
	field_put_u64(row, "us", log->end.us);
	field_put_u64(row, "cold", log->is_cold);
	if (str_equal(log->end.ended, "exit"))
		field_put_u64(row, "exit", log->end.exit);
	if (str_equal(log->end.ended, "signal"))
		field_put_u64(row, "signal", log->end.signal);
	field_put_string(row, "ended", log->end.ended);
	if (log->text)
		field_put_string(row, "log", log->text);
	field_put_u64(row, "dropped", log->dropped);
}

/* The newest first, as many as one reply takes. */
void functions_logs(struct call *call)
{
	const struct function *function = functions_find(call, true);
	struct buf *out, *row = &call->daemon->row;

	if (!function) {
		call_fail(call, 404, NULL, "%s", no_function);
		return;
	}
	out = call_begin_reply(call, 200);
	for (uint64_t i = 0; i < FUNCTION_LOGS && i < function->record->invocations; i++) {
		service_begin_row(row);
		put_log(&function->record->logs[(function->record->invocations - 1 - i) % FUNCTION_LOGS], row);
		if (out->size + row->size > PAGE_BYTES)
			break;
		service_put_row(out, row);
	}
	call_end_reply(call, NULL, 0);
}
