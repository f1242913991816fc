/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/control.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "service/launcher/call/access.h"
#include "service/launcher/lifecycle.h"

enum { PAGE_BYTES = 96 << 10 };

/* Whether the sandbox's metadata has each pair that the client asks for. */
static bool has_metadata(const struct sandbox *sandbox, const char *const *wanted)
{
	const char *const *own = service_strings(sandbox->made.message, "metadata");

	for (; wanted && wanted[0]; wanted += 2) {
		const char *const *pair = own;

		while (pair && pair[0] && !(str_equal(pair[0], wanted[0]) && str_equal(pair[1], wanted[1])))
			pair += 2;
		if (!pair || !pair[0])
			return false;
	}
	return true;
}

static bool is_wanted(const struct call *call, const struct sandbox *sandbox)
{
	const char *const *states = service_strings(call->message, "states");
	const char *template = call_string(call, "template"), *own = service_string(sandbox->made.message, "template");
	const char *state = sandbox->state == SANDBOX_RUNNING ? "running" : "paused";

	if (sandbox->state == SANDBOX_CREATING || sandbox->state == SANDBOX_KILLING ||
	    !access_sees(&call->caller, sandbox->owner))
		return false;
	if (states && states[0] && !strv_has(states, state))
		return false;
	if (template && !str_equal(template, own ? own : "base"))
		return false;
	if (sandbox->created_ms < call_number(call, "started_after_ms", 0))
		return false;
	return has_metadata(sandbox, service_strings(call->message, "metadata"));
}

/* "MILLISECONDS.ID" of the last row of the page before. -EINVAL. */
static int parse_next(const char *text, uint64_t *ret_ms, const char **ret_id)
{
	const char *dot = strchr(text, '.');
	char number[24];

	if (!dot || str_format(number, sizeof number, "%.*s", (int)(dot - text), text) < 0)
		return -EINVAL;
	*ret_id = dot + 1;
	return num_parse_u64(number, ret_ms);
}

/* Whether a sandbox stands behind that row; of those of one millisecond the id decides. */
static bool is_behind(const struct sandbox *sandbox, uint64_t ms, const char *id, bool is_ascending)
{
	int order = sandbox->created_ms == ms ? strcmp(sandbox->id, id) : sandbox->created_ms < ms ? -1 : 1;

	return is_ascending ? order > 0 : order < 0;
}

static int compare(const void *a, const void *b)
{
	const struct sandbox *one = *(const struct sandbox *const *)a, *other = *(const struct sandbox *const *)b;

	if (one->created_ms != other->created_ms)
		return one->created_ms < other->created_ms ? -1 : 1;
	return strcmp(one->id, other->id);
}

/* All that are wanted and behind the page before, the oldest first. NULL: out of memory. */
static const struct sandbox **collect(const struct call *call, uint64_t ms, const char *id, size_t *ret_count)
{
	const struct registry *registry = &call->daemon->registry;
	const struct sandbox **list = calloc(registry->count + 1, sizeof *list);
	bool is_ascending = call_number(call, "ascending", 0) != 0;
	size_t count = 0;

	for (const struct sandbox *sandbox = registry->oldest; list && sandbox; sandbox = sandbox->newer)
		if (is_wanted(call, sandbox) && (!id || is_behind(sandbox, ms, id, is_ascending)))
			list[count++] = sandbox;
	if (list)
		qsort(list, count, sizeof *list, compare);
	*ret_count = count;
	return list;
}

static void put_page(struct call *call, const struct sandbox **list, size_t count)
{
	bool is_ascending = call_number(call, "ascending", 0) != 0;
	uint64_t limit = call_number(call, "limit", SERVICE_ROWS_MAX);
	struct buf *out = call_begin_reply(call, 200), *row = &call->daemon->row;
	const struct sandbox *last = NULL;
	char next[64];
	size_t i;

	for (i = 0; i < count && i < (limit ? limit : 1); i++) {
		const struct sandbox *sandbox = list[is_ascending ? i : count - 1 - i];

		service_begin_row(row);
		lifecycle_describe(sandbox, row, DETAIL_LISTED);
		if (last && out->size + row->size > PAGE_BYTES)
			break;
		service_put_row(out, row);
		last = sandbox;
	}
	if (last && i < count && str_format(next, sizeof next, "%llu.%s", (unsigned long long)last->created_ms,
					    last->id) == 0)
		field_put_string(out, "next", next);
	call_end_reply(call, NULL, 0);
}

void list_sandboxes(struct call *call)
{
	const char *next = call_string(call, "next"), *id = NULL;
	const struct sandbox **list;
	uint64_t ms = 0;
	size_t count;

	if (next && parse_next(next, &ms, &id) < 0) {
		call_fail(call, 400, NULL, "nextToken is none that this service gave");
		return;
	}
	list = collect(call, ms, id, &count);
	if (!list) {
		call_fail(call, 503, NULL, "out of memory");
		return;
	}
	put_page(call, list, count);
	free(list);
}
