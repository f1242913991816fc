/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "service/protocol/control.h"
#include "service/protocol/query.h"
#include "service/protocol/time.h"

enum argument_kind {
	ARGUMENT_TEXT,
	ARGUMENT_LIMIT,
	ARGUMENT_SECONDS,
	ARGUMENT_MS,
	ARGUMENT_TIME,
	ARGUMENT_WORDS,
	ARGUMENT_METADATA,
	ARGUMENT_IS,
};

enum {
	WORDS_MAX = 64,
	METADATA_MAX = 16,
	METADATA_BYTES = 16 << 10,
	MS_PER_S = 1000,
	DIRECT_ROWS = SERVICE_ROWS_MAX,
	LIMIT_DEFAULT = 1000, LIMIT_MAX = 1000 /* of ROUTE_UP_TO_LIMIT */
};

struct argument {
	const char *name; /* NULL ends a list */
	enum argument_kind kind;
	const char *key;
	const char *word; /* ARGUMENT_IS: the value that means 1 */
};

#define PAGE                                                                                                         \
	{ "limit", ARGUMENT_LIMIT, "limit" },                                                                        \
	{                                                                                                            \
		"nextToken", ARGUMENT_TEXT, "next"                                                                   \
	}

static const struct argument list_arguments[] = {
	{ "metadata", ARGUMENT_METADATA, "metadata" },
	{ "state", ARGUMENT_WORDS, "states" },
	{ "startedAfter", ARGUMENT_TIME, "started_after_ms" },
	{ "template", ARGUMENT_TEXT, "template" },
	{ "order", ARGUMENT_IS, "ascending", "asc" },
	PAGE,
	{ NULL },
};
static const struct argument snapshot_arguments[] = {
	{ "sandboxID", ARGUMENT_TEXT, "sandbox" }, { "name", ARGUMENT_TEXT, "name" }, PAGE, { NULL }
};
static const struct argument page_arguments[] = { PAGE, { NULL } };
static const struct argument metrics_arguments[] = { { "sandbox_ids", ARGUMENT_WORDS, "sandboxes" },
						     { "start", ARGUMENT_SECONDS, "start_ms" },
						     { "end", ARGUMENT_SECONDS, "end_ms" },
						     { NULL } };
static const struct argument log_arguments[] = { { "start", ARGUMENT_MS, "start_ms" },
						 { "cursor", ARGUMENT_MS, "start_ms" },
						 { "direction", ARGUMENT_IS, "backward", "backward" },
						 { "level", ARGUMENT_TEXT, "level" },
						 { "search", ARGUMENT_TEXT, "search" },
						 { "limit", ARGUMENT_LIMIT, "limit" },
						 { NULL } };

static const struct argument build_arguments[] = { { "logsOffset", ARGUMENT_MS, "offset" },
						   { "limit", ARGUMENT_LIMIT, "limit" },
						   { NULL } };

static const struct argument *const queries[SERVICE_OPERATION_COUNT] = {
	[SERVICE_LIST] = list_arguments,      [SERVICE_SNAPSHOTS] = snapshot_arguments,
	[SERVICE_TEMPLATES] = page_arguments, [SERVICE_METRICS] = metrics_arguments,
	[SERVICE_LOGS] = log_arguments,	      [SERVICE_VOLUMES] = page_arguments,
	[SERVICE_SECRETS] = page_arguments,   [SERVICE_BUILD_STATUS] = build_arguments,
};

static int put_text(const struct argument *argument, char *value, struct buf *out)
{
	if (*value)
		field_put_string(out, argument->key, value);
	return 0;
}

/* More than a page holds is not refused: the client is told that there is more. */
static int put_limit(const struct argument *argument, char *value, struct buf *out)
{
	uint64_t limit;

	if (num_parse_u64(value, &limit) < 0 || limit == 0)
		return -EINVAL;
	field_put_u64(out, argument->key, limit < DIRECT_ROWS ? limit : DIRECT_ROWS);
	return 0;
}

static int put_seconds(const struct argument *argument, char *value, struct buf *out)
{
	uint64_t seconds;

	if (num_parse_u64(value, &seconds) < 0 || seconds > INT64_MAX / MS_PER_S)
		return -EINVAL;
	field_put_u64(out, argument->key, seconds * MS_PER_S);
	return 0;
}

static int put_ms(const struct argument *argument, char *value, struct buf *out)
{
	uint64_t ms;

	if (num_parse_u64(value, &ms) < 0)
		return -EINVAL;
	field_put_u64(out, argument->key, ms);
	return 0;
}

static int put_time(const struct argument *argument, char *value, struct buf *out)
{
	uint64_t ms;

	if (time_parse(value, &ms) < 0)
		return -EINVAL;
	field_put_u64(out, argument->key, ms);
	return 0;
}

static int put_words(const struct argument *argument, char *value, struct buf *out)
{
	const char *words[WORDS_MAX + 1] = { NULL };
	size_t count = 0;

	for (char *at = value; *at;) {
		size_t length = strcspn(at, ",");
		bool is_last = !at[length];

		if (count == WORDS_MAX || length == 0)
			return -EINVAL;
		at[length] = 0;
		words[count++] = at;
		at += length + !is_last;
	}
	if (count)
		field_put_strings(out, argument->key, words);
	return 0;
}

static int put_metadata(const struct argument *argument, char *value, struct buf *out)
{
	const char *strings[2 * METADATA_MAX + 1] = { NULL };
	cleanup_buf struct buf pairs;
	const char *at;
	int count;

	buf_init(&pairs, METADATA_BYTES);
	count = query_read_metadata(value, &pairs, METADATA_MAX);
	if (count < 0)
		return count;
	at = (const char *)pairs.bytes;
	for (int i = 0; i < 2 * count; i++, at += strlen(at) + 1)
		strings[i] = at;
	if (count)
		field_put_strings(out, argument->key, strings);
	return 0;
}

static int put_is(const struct argument *argument, char *value, struct buf *out)
{
	field_put_u64(out, argument->key, str_equal(value, argument->word));
	return 0;
}

static const struct argument *find(const struct argument *arguments, const char *name)
{
	for (; arguments && arguments->name; arguments++)
		if (str_equal(arguments->name, name))
			return arguments;
	return NULL;
}

int control_read_limit(const struct route *route, const char *query, size_t *ret_limit, char why[CONTROL_WHY_SIZE])
{
	uint64_t limit = LIMIT_DEFAULT;

	*ret_limit = 0;
	if (!(route->flags & ROUTE_UP_TO_LIMIT))
		return 0;
	if (query_get_number(query, "limit", UINT32_MAX, &limit) < 0 || limit == 0) {
		if (str_copy(why, CONTROL_WHY_SIZE, "\"limit\" of the query cannot be one") < 0)
			why[0] = 0;
		return -EINVAL;
	}
	*ret_limit = limit < LIMIT_MAX ? limit : LIMIT_MAX;
	return 0;
}

int control_read_query(const struct route *route, const char *query, struct buf *out, char why[CONTROL_WHY_SIZE])
{
	static int (*const put[])(const struct argument *argument, char *value, struct buf *out) = {
		[ARGUMENT_TEXT] = put_text,	    [ARGUMENT_LIMIT] = put_limit,
		[ARGUMENT_SECONDS] = put_seconds,   [ARGUMENT_MS] = put_ms,
		[ARGUMENT_TIME] = put_time,	    [ARGUMENT_WORDS] = put_words,
		[ARGUMENT_METADATA] = put_metadata, [ARGUMENT_IS] = put_is,
	};
	const struct argument *argument;
	struct query_pair pair;
	int r;

	while ((r = query_next(&query, &pair)) > 0) {
		argument = find(queries[route->operation], pair.name);
		/* Paging is the front's own where the clients know none. */
		if (!argument || (route->flags & ROUTE_ALL_PAGES &&
				  (argument->kind == ARGUMENT_LIMIT || str_equal(argument->key, "next"))))
			continue;
		if (put[argument->kind](argument, pair.value, out) < 0) {
			if (str_format(why, CONTROL_WHY_SIZE, "\"%s\" of the query cannot be one", pair.name) < 0)
				why[0] = 0;
			return -EINVAL;
		}
	}
	if (r < 0 && str_copy(why, CONTROL_WHY_SIZE, "the query is malformed or too long") == 0)
		return -EINVAL;
	if (route->flags & ROUTE_RUNNING_ONLY)
		field_put_strings(out, "states", (const char *const[]){ "running", NULL });
	return buf_error(out);
}
