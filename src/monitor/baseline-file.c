/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/str.h"
#include "monitor/baseline.h"
#include "os/fd.h"
#include "os/path.h"

/* The bytes of a baseline: doc/format/baseline.md. A user's own file, but nobody vouches for it: all is checked. */

enum { VERSION = 1 };

static const char magic[8] = "ATOLLBAS";

struct cursor {
	const uint8_t *at;
	size_t left;
	bool is_bad;
};

static const void *read_bytes(struct cursor *cursor, size_t size)
{
	const void *bytes = cursor->at;

	if (cursor->is_bad || size > cursor->left) {
		cursor->is_bad = true;
		return NULL;
	}
	cursor->at += size;
	cursor->left -= size;
	return bytes;
}

static uint64_t take_number(struct cursor *cursor, size_t size)
{
	const uint8_t *bytes = read_bytes(cursor, size);
	uint64_t value = 0;

	for (size_t i = size; bytes && i-- > 0;)
		value = value << 8 | bytes[i];
	return value;
}

static void put_number(struct buf *out, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf_put_char(out, (char)(value >> 8 * i));
}

static char *take_label(struct cursor *cursor)
{
	size_t size = (size_t)take_number(cursor, 2);
	const char *bytes = size <= BASELINE_LABEL_MAX ? read_bytes(cursor, size) : NULL;

	cursor->is_bad |= !bytes || memchr(bytes, 0, size);
	return cursor->is_bad ? NULL : strndup(bytes, size);
}

static int parse_sets(struct cursor *cursor, struct baseline *baseline)
{
	for (size_t kind = 0; kind < MONITOR_SET_COUNT; kind++) {
		size_t count = (size_t)take_number(cursor, 4);

		cursor->is_bad |= count > monitor_features[kind].set_max;
		for (size_t i = 0; i < count && !cursor->is_bad; i++) {
			uint64_t hash = take_number(cursor, 8);
			uint32_t seen = (uint32_t)take_number(cursor, 4);
			int r = hash ? baseline_set_add(&baseline->sets[kind], hash, seen, count) : -EBADMSG;

			if (r == -ENOMEM)
				return r;
			cursor->is_bad |= r != 1;
		}
	}
	return 0;
}

static int parse_body(struct cursor *cursor, struct baseline *baseline)
{
	const void *key;
	size_t features;
	int r;

	cursor->is_bad |= take_number(cursor, 4) != VERSION;
	/* Features that came later are 0 in the sessions of before. */
	features = (size_t)take_number(cursor, 4);
	cursor->is_bad |= features < MONITOR_FEATURES_FIRST || features > MONITOR_FEATURE_COUNT;
	key = read_bytes(cursor, BASELINE_KEY_SIZE);
	if (key)
		memcpy(baseline->key, key, BASELINE_KEY_SIZE);
	baseline->agent = take_label(cursor);
	baseline->project = take_label(cursor);
	baseline->sessions = (uint32_t)take_number(cursor, 4);
	baseline->count = (uint32_t)take_number(cursor, 4);
	cursor->is_bad |= baseline->count > BASELINE_SESSIONS || baseline->count > baseline->sessions;
	for (size_t i = 0; i < baseline->count && !cursor->is_bad; i++)
		for (size_t feature = 0; feature < features; feature++)
			baseline->values[i][feature] = take_number(cursor, 8);
	r = parse_sets(cursor, baseline);
	if (r == 0 && !cursor->is_bad && (!baseline->agent || !baseline->project))
		r = -ENOMEM;
	return r == 0 && (cursor->is_bad || cursor->left) ? -EBADMSG : r;
}

int baseline_parse(struct baseline *ret_baseline, const void *bytes, size_t size)
{
	struct cursor cursor = { .at = bytes };
	struct hash hash;
	int r;

	memset(ret_baseline, 0, sizeof *ret_baseline);
	if (size < sizeof magic + HASH_SIZE || size > BASELINE_SIZE_MAX || memcmp(bytes, magic, sizeof magic) != 0)
		return -EBADMSG;
	hash_bytes(&hash, bytes, size - HASH_SIZE);
	if (memcmp(hash.bytes, cursor.at + size - HASH_SIZE, HASH_SIZE) != 0)
		return -EBADMSG;
	cursor.at += sizeof magic;
	cursor.left = size - sizeof magic - HASH_SIZE;
	r = parse_body(&cursor, ret_baseline);
	if (r < 0)
		baseline_done(ret_baseline);
	return r;
}

static void put_label(struct buf *out, const char *text)
{
	put_number(out, strlen(text), 2);
	buf_put_text(out, text);
}

int baseline_format(const struct baseline *baseline, struct buf *out)
{
	struct hash hash;

	buf_reset(out);
	buf_put(out, magic, sizeof magic);
	put_number(out, VERSION, 4);
	put_number(out, MONITOR_FEATURE_COUNT, 4);
	buf_put(out, baseline->key, sizeof baseline->key);
	put_label(out, baseline->agent);
	put_label(out, baseline->project);
	put_number(out, baseline->sessions, 4);
	put_number(out, baseline->count, 4);
	for (size_t i = 0; i < baseline->count; i++)
		for (size_t feature = 0; feature < MONITOR_FEATURE_COUNT; feature++)
			put_number(out, baseline->values[i][feature], 8);
	for (size_t kind = 0; kind < MONITOR_SET_COUNT; kind++) {
		const struct baseline_set *set = &baseline->sets[kind];

		put_number(out, set->count, 4);
		for (size_t i = 0; i < set->capacity; i++) {
			if (!set->items[i].hash)
				continue;
			put_number(out, set->items[i].hash, 8);
			put_number(out, set->items[i].seen, 4);
		}
	}
	if (buf_error(out) < 0)
		return buf_error(out);
	hash_bytes(&hash, out->bytes, out->size);
	buf_put(out, hash.bytes, sizeof hash.bytes);
	return buf_error(out);
}

int baseline_path(char *out, size_t size, const char *state_dir, const char *agent, const char *project)
{
	/* With the NUL behind each, so that no two pairs are one text. */
	const struct hash_piece pieces[] = {
		{ agent, strnlen(agent, BASELINE_LABEL_MAX) }, { "", 1 }, { project, strlen(project) },
	};
	char name[HASH_HEX_SIZE];
	struct hash hash;

	hash_pieces(&hash, pieces, ARRAY_SIZE(pieces));
	hash_to_hex(&hash, name);
	return str_format(out, size, "%s/baselines/%s", state_dir, name);
}

int baseline_load(struct baseline *ret_baseline, const char *path)
{
	cleanup_free char *bytes = NULL;
	size_t size;
	int r = fd_read_file_at(AT_FDCWD, path, BASELINE_SIZE_MAX, &bytes, &size);

	if (r == -EFBIG)
		r = -EBADMSG;
	return r < 0 ? r : baseline_parse(ret_baseline, bytes, size);
}

int baseline_store(const struct baseline *baseline, const char *path)
{
	cleanup_fd int dir_fd = FD_NONE;
	const char *name = path_basename(path);
	cleanup_buf struct buf out;
	char directory[PATH_MAX];
	int r = str_format(directory, sizeof directory, "%.*s", (int)(name - path), path);

	buf_init(&out, BASELINE_SIZE_MAX);
	if (r == 0)
		r = path_make_directories(AT_FDCWD, directory, 0700);
	if (r == 0)
		r = dir_fd = fd_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = baseline_format(baseline, &out);
	return r < 0 ? r : fd_replace_file_at(dir_fd, name, out.bytes, out.size, 0600);
}
