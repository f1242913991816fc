/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/function/instance.h"

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "service/launcher/function/functions.h"
#include "service/launcher/function/orphan.h"
#include "service/launcher/store/user.h"

enum { NS_PER_MS = 1000000, NS_PER_US = 1000, IDLE_MS = 600000, START_MS = 30000, MARGIN_MS = 60000, WHY_BYTES = 500 };

static const char *const stream_keys[] = { "stdin", "stdout", "stderr" };

/* ---- its end ---- */

static void release(struct instance *instance)
{
	struct daemon *daemon = instance->function->daemon;

	loop_remove(&daemon->loop, &instance->source);
	loop_remove(&daemon->loop, &instance->output);
	if (instance->handle && !instance->has_ended) {
		orphan_add(daemon, take_ptr(instance->handle), instance->id, instance->is_made);
		instance->id[0] = 0;
		return;
	}
	if (instance->id[0])
		orphan_forget(daemon, instance->id);
	instance->id[0] = 0;
	if (!instance->handle)
		return;
	atoll_sandbox_free(take_ptr(instance->handle));
	daemon->registry.functions->session_ended(daemon);
}

void instance_stop(struct instance *instance, const char *ended)
{
	if (instance->state == INSTANCE_OVER)
		return;
	instance->end.us = (clock_monotonic_ns() - instance->began_ns) / NS_PER_US;
	(void)!str_copy(instance->end.ended, sizeof instance->end.ended, ended);
	instance->state = INSTANCE_OVER;
	instance->until_ns = clock_monotonic_ns() + (uint64_t)START_MS * NS_PER_MS;
	release(instance);
}

void instance_free(struct instance *instance)
{
	struct instance **at = &instance->function->instances;

	while (*at != instance)
		at = &(*at)->next;
	*at = instance->next;
	release(instance);
	for (size_t i = 0; i < ARRAY_SIZE(instance->fds); i++)
		close_fd(&instance->fds[i]);
	free(instance);
}

size_t instance_count(const struct function *function, enum instance_state state)
{
	size_t count = 0;

	for (const struct instance *at = function->instances; at; at = at->next)
		count += at->state == state;
	return count;
}

/* ---- how one comes to be ---- */

/* Why it could not be loaded, in its own words: shown escaped, and only its end, where a trace has its reason. */
static void fail(struct instance *instance, const char *why)
{
	char bytes[2 * WHY_BYTES], text[INSTANCE_WHY_SIZE] = "";
	size_t size = 0, line = 0;
	cleanup_buf struct buf shown;
	ssize_t n;

	while (instance->fds[2] >= 0 && (n = read(instance->fds[2], bytes + size, WHY_BYTES)) > 0) {
		size += (size_t)n;
		if (size > WHY_BYTES)
			memmove(bytes, bytes + size - WHY_BYTES, WHY_BYTES);
		size = size > WHY_BYTES ? WHY_BYTES : size;
	}
	while (size && bytes[size - 1] == '\n')
		size--;
	buf_init_fixed(&shown, text, sizeof text - 1);
	for (size_t i = 0; i <= size; i++) {
		if (i < size && bytes[i] != '\n')
			continue;
		buf_put_escaped(&shown, bytes + line, i - line, 0);
		if (i < size)
			buf_put_char(&shown, '\n');
		line = i + 1;
	}
	text[shown.size < sizeof text ? shown.size : sizeof text - 1] = 0;
	instance->events->failed(instance, size ? text : why);
}

/* One byte says that the code is loaded; what else comes is its end's affair. */
static int on_output(void *context, uint32_t events)
{
	struct instance *instance = context;
	char byte = 0;

	loop_remove(&instance->function->daemon->loop, &instance->output);
	if (read(instance->output.fd, &byte, 1) != 1 || byte != 6)
		return 0;
	instance->state = INSTANCE_READY;
	instance->until_ns = clock_monotonic_ns() + (uint64_t)IDLE_MS * NS_PER_MS;
	instance->events->ready(instance);
	return 0;
}

static int set_environment(const struct function *function, atoll_record *record)
{
	const char *const *own = service_strings(function->made.message, "env");
	size_t count = strv_count(own);
	char name[DATABASE_NAME_SIZE + 24], timeout[48];
	const char **all = calloc(count + 3, sizeof *all);
	int r = all ? 0 : ATOLL_E_NO_MEMORY;

	if (r == 0 && (str_format(name, sizeof name, "ATOLL_FUNCTION=%s", function->name) < 0 ||
		       str_format(timeout, sizeof timeout, "ATOLL_TIMEOUT_MS=%llu",
				  (unsigned long long)function_timeout_ms(function)) < 0))
		r = ATOLL_E_LIMIT;
	for (size_t i = 0; r == 0 && i < count; i++)
		all[i] = own[i];
	if (r == 0) {
		all[count] = name;
		all[count + 1] = timeout;
		r = atoll_set_strings(record, "env_add", all, NULL);
	}
	free(all);
	return r;
}

static int start_command(struct instance *instance)
{
	const struct service_message *made = instance->function->made.message;
	const char *const argv[] = { "sh", USER_HOME "/.function/start.sh", service_string(made, "runtime"),
				     service_string(made, "entry"), NULL };
	atoll_record *record = atoll_record_new(ATOLL_COMMAND);
	uint64_t ticket;
	int r = record ? atoll_set_strings(record, "argv", argv, NULL) : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_set_string(record, "cwd", USER_HOME, NULL);
	if (r == 0)
		r = set_environment(instance->function, record);
	if (r == 0)
		r = atoll_set_string(record, "streams", "pipe", NULL);
	if (r == 0)
		r = atoll_exec(instance->handle, record, &ticket, NULL, NULL);
	atoll_record_free(record);
	return r;
}

/* Its command begins: its streams are there. */
static bool take_command(struct instance *instance, atoll_record *event)
{
	uint64_t code = 0;

	atoll_get_u64(event, "code", &code);
	if (code || !atoll_get_u64(event, "command", &instance->command))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(stream_keys); i++) {
		instance->fds[i] = atoll_take_fd(event, stream_keys[i]);
		if (instance->fds[i] < 0 || fd_set_nonblocking(instance->fds[i], true) < 0)
			return false;
	}
	instance->output = (struct loop_source){ .fd = instance->fds[1], .events = EPOLLIN, .ready = on_output,
						 .context = instance };
	return loop_add(&instance->function->daemon->loop, &instance->output) == 0;
}

/* ---- what is heard of it ---- */

/* Of its command, or of all. */
static void hear_end(struct instance *instance, const atoll_record *event)
{
	const char *ended = "lost", *what = "its sandbox has ended";

	if (atoll_get_u64(event, "exit", &instance->end.exit))
		ended = "exit";
	if (atoll_get_u64(event, "signal", &instance->end.signal))
		ended = "signal";
	atoll_get_string(event, "ended", &ended);
	atoll_get_string(event, "what", &what);
	if (instance->state == INSTANCE_BUSY) {
		instance_stop(instance, ended);
		instance->events->over(instance);
	} else if (instance->state != INSTANCE_OVER) {
		fail(instance, what);
	}
}

/* False: nothing more is to be heard: the instance may be gone. */
static bool hear(struct instance *instance, atoll_record *event)
{
	uint64_t type = 0, command = 0;

	atoll_get_u64(event, "event", &type);
	atoll_get_u64(event, "command", &command);
	instance->is_made = instance->is_made || type == ATOLL_EVENT_READY;
	instance->has_ended = type == ATOLL_EVENT_END;
	if (type == ATOLL_EVENT_READY ? start_command(instance) == 0 :
	    type == ATOLL_EVENT_DONE ? instance->command || take_command(instance, event) :
	    type == ATOLL_EVENT_EXIT ? command != instance->command :
	    type != ATOLL_EVENT_FAILED && type != ATOLL_EVENT_LOST && type != ATOLL_EVENT_END)
		return true;
	hear_end(instance, event);
	return false;
}

static int on_event(void *context, uint32_t events)
{
	struct instance *instance = context;
	bool goes_on = true;
	atoll_record *event;

	while (goes_on && atoll_next(instance->handle, &event, NULL) == 1) {
		goes_on = hear(instance, event);
		atoll_record_free(event);
	}
	return 0;
}

/* ---- its start ---- */

/* Its name is written down before there is anything of it. */
static int note_name(struct instance *instance, struct err *err)
{
	int r = credential_new_id(instance->id);

	if (r == 0)
		r = database_put_instance(instance->function->daemon->store, instance->id);
	if (r < 0)
		instance->id[0] = 0;
	return r < 0 ? err_set(err, ERR_STATE, -r, "function", "no sandbox can be made: %s",
			       r == -ENOSPC ? "the disk is full" : "the database cannot be written") : 0;
}

static int create(struct instance *instance, const struct policy_found *found, struct atoll_error *error)
{
	const struct function *function = instance->function;
	atoll_record *record = atoll_record_new(ATOLL_SANDBOX);
	char home[PATH_MAX];
	int r = record && function_directory(function->daemon, function->id, home) == 0 ? 0 : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_set_string(record, "project", found->project, error);
	if (r == 0)
		r = atoll_set_string(record, "name", instance->id, error);
	if (r == 0)
		r = atoll_set_u64(record, "deadline_ms", IDLE_MS + MARGIN_MS + function_timeout_ms(function), error);
	if (r == 0)
		r = atoll_set_string(record, "at_end", "discard", error);
	if (r == 0)
		r = atoll_set_string(record, "home_from", home, error);
	if (r == 0)
		r = atoll_set_string(record, "user_name", USER_NAME, error);
	if (r == 0)
		r = atoll_create(function->daemon->context, found->policy, record, &instance->handle, error);
	atoll_record_free(record);
	return r;
}

struct instance *instance_start(struct function *function, const struct instance_events *events, struct err *err)
{
	struct instance *instance = calloc(1, sizeof *instance);
	struct atoll_error error = { .size = sizeof error };
	struct policy_found found;
	int r;

	if (!instance) {
		err_set(err, ERR_INTERNAL, ENOMEM, "function", "out of memory");
		return NULL;
	}
	instance->function = function;
	instance->events = events;
	instance->source.fd = instance->output.fd = FD_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(instance->fds); i++)
		instance->fds[i] = FD_NONE;
	instance->born_ns = clock_monotonic_ns();
	instance->until_ns = instance->born_ns + (uint64_t)START_MS * NS_PER_MS;
	instance->next = function->instances;
	function->instances = instance;
	r = function_policy(function, &found, err);
	if (r == 0)
		r = note_name(instance, err);
	if (r == 0 && create(instance, &found, &error) < 0)
		r = err_set(err, ERR_STATE, EIO, "function", "%s",
			    error.what[0] ? error.what : "no sandbox can be made");
	if (r == 0) {
		instance->source = (struct loop_source){ .fd = atoll_fd(instance->handle), .events = EPOLLIN,
							 .ready = on_event, .context = instance };
		r = loop_add(&function->daemon->loop, &instance->source);
		if (r < 0)
			err_set(err, ERR_INTERNAL, -r, "function", "the loop takes no more");
	}
	if (r == 0) {
		daemon_wake_at(function->daemon, instance->until_ns);
		return instance;
	}
	instance_free(instance);
	return NULL;
}
