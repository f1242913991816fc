/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/inside/watches.h"

#include <string.h>

#include "base/str.h"
#include "service/launcher/call/await.h"
#include "service/launcher/inside/files.h"
#include "service/launcher/store/user.h"

static void added(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	char path[PATH_MAX];
	uint64_t watch = 0;
	struct buf *out;

	if (outcome->code) {
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
		return;
	}
	atoll_get_u64(outcome->result, "watch", &watch);
	out = call_begin_reply(call, 200);
	field_put_u64(out, "watch", watch);
	if (user_path(call_string(call, "path"), path, NULL) == 0)
		field_put_string(out, "path", path);
	call_end_reply(call, NULL, 0);
}

void watches_add(struct call *call)
{
	struct atoll_error error = { .size = sizeof error };
	uint32_t flags = (call_number(call, "recursive", 0) ? ATOLL_WATCH_RECURSIVE : 0) |
			 (call_number(call, "entries", 0) ? ATOLL_WATCH_ENTRIES : 0);
	struct err err = { 0 };
	char path[PATH_MAX];
	uint64_t ticket = 0;
	int r = call_check_user(call, &err);

	if (r == 0)
		r = user_path(call_string(call, "path"), path, &err);
	if (r < 0) {
		call_fail_err(call, 400, &err);
		return;
	}
	r = atoll_watch(call->sandbox->handle, path, flags, &ticket, NULL, &error);
	await_answer(call->sandbox, call, r, ticket, &error, added);
}

void watches_remove(struct call *call)
{
	struct atoll_error error = { .size = sizeof error };
	uint64_t ticket = 0;
	int r = atoll_unwatch(call->sandbox->handle, call_number(call, "watch", 0), &ticket, NULL, &error);

	await_answer(call->sandbox, call, r, ticket, &error, await_reply);
}

static uint64_t change_of(const char *name)
{
	static const char *const names[] = { "", "create", "write", "remove", "rename", "chmod" };

	for (uint64_t i = 1; i < ARRAY_SIZE(names); i++)
		if (str_equal(names[i], name))
			return i;
	return 0;
}

void watches_changed(struct sandbox *sandbox, const atoll_record *event)
{
	struct buf *out = &sandbox->daemon->reply;
	const char *change = "";
	char below[PATH_MAX] = "";
	const void *bytes;
	uint64_t watch = 0;
	size_t size;

	atoll_get_u64(event, "watch", &watch);
	atoll_get_string(event, "change", &change);
	if (atoll_get_bytes(event, "path", &bytes, &size) && !memchr(bytes, 0, size))
		(void)!str_format(below, sizeof below, "%.*s", (int)size, (const char *)bytes);
	/* "overflow" and "gone": what is not told one by one. */
	service_begin_event(out, change_of(change) ? SERVICE_CHANGED : SERVICE_LOST);
	field_put_string(out, "sandbox", sandbox->id);
	field_put_u64(out, "watch", watch);
	if (change_of(change)) {
		const char *type;

		field_put_u64(out, "change", change_of(change));
		field_put_string(out, "below", below);
		if (atoll_get_string(event, "file_type", &type))
			files_put_entry(out, event, below);
	}
	if (service_end(out, 0) == 0)
		front_send(&sandbox->daemon->front, out, NULL, 0);
}
