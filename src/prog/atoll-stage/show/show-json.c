/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "prog/atoll-stage/show/show.h"

enum { FLUSH_AT = 64 << 10, BUFFER_MAX = 16 << 20, PATH_BYTES_MAX = 2 << 20 };

struct json_show {
	const struct opened *opened;
	struct json json;
	struct buf path;    /* scratch */
};

static void put_side(struct json *json, const char *key, bool exists, const struct stat *st)
{
	char mode[8];

	if (!exists) {
		json_null(json, key);
		return;
	}
	json_object_begin(json, key);
	json_string(json, "type", show_type(st->st_mode));
	if (str_format(mode, sizeof mode, "%04o", (unsigned)st->st_mode & 07777) == 0)
		json_string(json, "mode", mode);
	json_u64(json, "size", (uint64_t)st->st_size);
	json_i64(json, "mtime_ns", (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec);
	json_object_end(json);
}

static void put_differs(struct json *json, unsigned differs)
{
	static const struct {
		unsigned bit;
		const char *name;
	} names[] = {
		{ STAGE_DIFFERS_TYPE, "type" },   { STAGE_DIFFERS_CONTENT, "content" },
		{ STAGE_DIFFERS_MODE, "mode" },   { STAGE_DIFFERS_MTIME, "mtime" },
		{ STAGE_DIFFERS_XATTRS, "xattrs" }, { STAGE_DIFFERS_OWNER, "owner" },
	};

	json_array_begin(json, "differs");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (differs & names[i].bit)
			json_string(json, NULL, names[i].name);
	json_array_end(json);
}

static void put_path(struct json_show *show, const char *key, const struct stage_change *change)
{
	const char *tree = opened_tree(show->opened, change->tree);

	buf_reset(&show->path);
	buf_put_text(&show->path, tree);
	if (*change->path && tree[1])
		buf_put_char(&show->path, '/');
	buf_put_text(&show->path, change->path);
	json_bytes(&show->json, key, show->path.bytes, show->path.size);
}

static void put_change(struct json_show *show, const struct listed *listed)
{
	const struct stage_change *change = listed->change;
	const char *tree = opened_tree(show->opened, change->tree);
	struct json *json = &show->json;

	json_object_begin(json, NULL);
	put_path(show, "path", change);
	json_bytes(json, "tree", tree, strlen(tree));
	json_string(json, "kind", stage_change_kind_names[change->kind]);
	json_string(json, "state", stage_change_state_names[change->state]);
	json_string(json, "reason", change->reason ? stage_reason_names[change->reason] : NULL);
	json_bool(json, "flagged", change->is_flagged);
	if (change->is_settled)
		json_bool(json, "settled", true);
	put_differs(json, change->differs);
	put_side(json, "staged", change->staged_exists, &change->staged);
	put_side(json, "host", change->host_exists, &change->host);
	if (listed->renamed_from)
		put_path(show, "renamed_from", listed->renamed_from);
	json_object_end(json);
}

static void put_counts(struct json *json, const struct stage_counts *counts)
{
	json_object_begin(json, "counts");
	stage_counts_put(counts, json);
	json_object_end(json);
}

int show_json(const struct show *show, struct err *err)
{
	const struct listing *listing = show->listing;
	struct json_show state = { .opened = listing->opened };
	struct buf out;
	int r = 0;

	buf_init(&out, BUFFER_MAX);
	buf_init(&state.path, PATH_BYTES_MAX);
	json_init(&state.json, &out);
	json_object_begin(&state.json, NULL);
	json_string(&state.json, "session", listing->opened->record.session);
	json_array_begin(&state.json, "changes");
	for (size_t i = 0; r == 0 && i < listing->count; i++) {
		if (show->flagged_only && !listing->items[i].change->is_flagged)
			continue;
		put_change(&state, &listing->items[i]);
		if (out.size >= FLUSH_AT)
			r = show_flush(&out, err);
	}
	json_array_end(&state.json);
	put_counts(&state.json, &listing->counts);
	json_object_end(&state.json);
	buf_put_char(&out, '\n');
	if (r == 0)
		r = show_flush(&out, err);
	buf_done(&out);
	buf_done(&state.path);
	return r;
}
