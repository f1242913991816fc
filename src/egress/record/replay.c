/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/record/replay.h"

#include <jansson.h>
#include <sodium/utils.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/str.h"
#include "egress/message/http1-head.h"
#include "egress/record/record.h"
#include "egress/record/redact.h"

enum { READ_SIZE = 64 << 10, KEY_MAX = 70 << 10, STATUS_FIRST = 200, STATUS_LAST = 599 };

struct exchange_read {
	char *key;                    /* owned: what a request is looked up by */
	size_t index;                 /* its place in the recording */
	struct hash sent;
	bool is_http2, was_given;
	const char *problem;          /* static: why it has no answer; NULL */
	struct answer answer;
	char *block;                  /* owned: all that the answer borrows */
};

struct replay {
	struct exchange_read *list;   /* sorted by key, then by index */
	size_t count, capacity;
	size_t answer_bytes;
	size_t line;                  /* from 1 */
};

/* --- Looking up. --- */

static const char *server_key(const struct target_server *server, char out[300])
{
	return str_format(out, 300, "%s:%u ", server->host, server->port) < 0 ? "" : out;
}

static char *make_key(const char *method, const struct target_server *server, const char *target)
{
	char prefix[300];
	struct buf key;

	buf_init(&key, KEY_MAX);
	buf_put_text(&key, server_key(server, prefix));
	buf_put_text(&key, method);
	buf_put_char(&key, ' ');
	redact_put_target(target, &key);
	buf_put_char(&key, 0);
	if (buf_error(&key) == 0)
		return (char *)key.bytes;
	buf_done(&key);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct exchange_read *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	return order ? order : (x->index > y->index) - (x->index < y->index);
}

/* The first that is not before key. */
static size_t find_first(const struct replay *replay, const char *key)
{
	size_t low = 0, high = replay->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(replay->list[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first of these that was not given yet, else the last. body: NULL for any. */
static struct exchange_read *choose(struct replay *replay, const char *key, const struct hash *body)
{
	struct exchange_read *last = NULL;

	for (size_t i = find_first(replay, key); i < replay->count && str_equal(replay->list[i].key, key); i++) {
		struct exchange_read *at = &replay->list[i];

		if (body && memcmp(at->sent.bytes, body->bytes, HASH_SIZE) != 0)
			continue;
		last = at;
		if (!at->was_given)
			break;
	}
	return last;
}

const struct answer *replay_find(struct replay *replay, const char *method, const struct target_server *server,
				 const char *target, const struct hash *body, const char **ret_problem)
{
	cleanup_free char *key = make_key(method, server, target);
	struct exchange_read *found = key ? choose(replay, key, body) : NULL;

	if (key && !found)
		found = choose(replay, key, NULL);
	if (!found) {
		*ret_problem = "the recording has no such request";
		return NULL;
	}
	found->was_given = true;
	*ret_problem = found->problem;
	return found->problem ? NULL : &found->answer;
}

bool replay_is_http2(const struct replay *replay, const struct target_server *server)
{
	const struct exchange_read *first = NULL;
	char prefix[300];

	server_key(server, prefix);
	for (size_t i = find_first(replay, prefix); i < replay->count; i++) {
		const struct exchange_read *at = &replay->list[i];

		if (!str_has_prefix(at->key, prefix))
			break;
		if (!first || at->index < first->index)
			first = at;
	}
	return !first || first->is_http2;
}

/* --- Reading. --- */

static const char *text_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	/* A NUL in a text would hide what follows it. */
	if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
		return NULL;
	return json_string_value(value);
}

/* A text, or {"b64": …}: the number of bytes it has at most; SIZE_MAX: neither. */
static size_t bytes_max(const json_t *value)
{
	const json_t *b64 = json_object_get(value, "b64");

	if (json_is_string(value))
		return json_string_length(value);
	return json_is_string(b64) ? json_string_length(b64) / 4 * 3 + 3 : SIZE_MAX;
}

/* The bytes into out, of which max are there, with a NUL behind them. SIZE_MAX: malformed. */
static size_t copy_bytes(const json_t *value, char *out, size_t max)
{
	const json_t *b64 = json_object_get(value, "b64");
	size_t size = 0;

	if (json_is_string(value)) {
		size = json_string_length(value);
		if (size >= max)
			return SIZE_MAX;
		memcpy(out, json_string_value(value), size);
	} else if (!b64 || sodium_base642bin((unsigned char *)out, max - 1, json_string_value(b64),
					     json_string_length(b64), NULL, &size, NULL,
					     sodium_base64_VARIANT_ORIGINAL) != 0) {
		return SIZE_MAX;
	}
	out[size] = 0;
	return size;
}

/* What one answer needs in memory; SIZE_MAX: it is malformed. */
struct block {
	char *at, *end;
};

static bool measure(size_t *size, const json_t *value)
{
	size_t more = value ? bytes_max(value) : SIZE_MAX;

	if (more > RECORD_LINE_MAX)
		return false;
	*size += more + 1;
	return true;
}

static bool measure_fields(size_t *size, const json_t *list)
{
	if (!json_is_array(list) || json_array_size(list) > HTTP1_FIELDS_MAX)
		return false;
	*size += (2 * json_array_size(list) + 1) * sizeof(char *);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *pair = json_array_get(list, i);

		if (json_array_size(pair) != 2 || !measure(size, json_array_get(pair, 0)) ||
		    !measure(size, json_array_get(pair, 1)))
			return false;
	}
	return true;
}

static const char *take_text(struct block *block, const json_t *value, size_t *ret_size)
{
	char *text = block->at;
	size_t size = copy_bytes(value, text, (size_t)(block->end - block->at));

	if (size == SIZE_MAX)
		return NULL;
	block->at += size + 1;
	*ret_size = size;
	return text;
}

/* Names of the list, which stands first in the block and is aligned. */
static const char *const *take_fields(struct block *block, const json_t *list, const char **out)
{
	size_t count = 0, size;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *pair = json_array_get(list, i);
		const char *name = take_text(block, json_array_get(pair, 0), &size);
		const char *value = name ? take_text(block, json_array_get(pair, 1), &size) : NULL;

		if (!value || strlen(value) != size || !http1_field_is_valid(name, value) ||
		    strlen(name) > HTTP1_NAME_MAX)
			return NULL;
		if (http1_name_is_of_hop(name) && !http1_name_is(name, "content-length"))
			continue;
		out[count++] = name;
		out[count++] = value;
	}
	out[count] = NULL;
	return out;
}

static bool measure_answer(const json_t *from, size_t *ret_size)
{
	*ret_size = 8;
	return measure_fields(ret_size, json_object_get(from, "headers")) &&
	       measure_fields(ret_size, json_object_get(from, "trailers")) &&
	       measure(ret_size, json_object_get(from, "reason")) && measure(ret_size, json_object_get(from, "body"));
}

/* Everything into one block of memory. */
static int keep_answer(struct replay *replay, const json_t *from, struct exchange_read *to)
{
	const json_t *headers = json_object_get(from, "headers"), *trailers = json_object_get(from, "trailers");
	struct answer *answer = &to->answer;
	const char **lists;
	struct block block;
	size_t size, reason_size;

	if (!measure_answer(from, &size))
		return -EBADMSG;
	if (size > RECORD_ANSWERS_MAX - replay->answer_bytes)
		return -EFBIG;
	replay->answer_bytes += size;
	to->block = malloc(size);
	if (!to->block)
		return -ENOMEM;
	lists = (const char **)to->block;
	block.at = (char *)(lists + 2 * (json_array_size(headers) + json_array_size(trailers) + 1));
	block.end = to->block + size;
	answer->fields = take_fields(&block, headers, lists);
	answer->trailers = take_fields(&block, trailers, lists + 2 * json_array_size(headers) + 1);
	answer->reason = take_text(&block, json_object_get(from, "reason"), &reason_size);
	answer->body = (const uint8_t *)take_text(&block, json_object_get(from, "body"), &answer->body_size);
	if (!answer->fields || !answer->trailers || !answer->reason || strlen(answer->reason) != reason_size ||
	    !answer->body || !http1_field_is_valid("reason", answer->reason))
		return -EBADMSG;
	return 0;
}

/* HTTP/2 has none: there the length that was announced decides. */
static int read_framing(const json_t *from, struct answer *to)
{
	const char *name = text_of(from, "framing");
	const json_t *closes = json_object_get(from, "closes");
	int framing = HTTP1_NO_BODY;

	while (name && framing <= HTTP1_UNTIL_END && !str_equal(record_framing_names[framing], name))
		framing++;
	if (!name || framing > HTTP1_UNTIL_END || !json_is_boolean(closes))
		return -EBADMSG;
	to->closes = json_is_true(closes);
	to->framing = framing == HTTP1_NO_BODY ? HTTP1_CHUNKED : (enum http1_framing)framing;
	for (size_t i = 0; framing == HTTP1_NO_BODY && to->fields[i]; i += 2)
		if (http1_name_is(to->fields[i], "content-length"))
			to->framing = HTTP1_LENGTH;
	return 0;
}

static int read_answer(struct replay *replay, const json_t *from, struct exchange_read *to)
{
	const json_t *status = json_object_get(from, "status"), *whole = json_object_get(from, "whole");
	int r;

	if (json_is_null(from)) {
		to->problem = "the server gave no answer when this was recorded";
		return 0;
	}
	if (!json_is_integer(status) || !json_is_boolean(whole))
		return -EBADMSG;
	if (json_integer_value(status) == 101) {
		to->problem = "what followed a switch of protocols was not recorded";
		return 0;
	}
	if (json_integer_value(status) < STATUS_FIRST || json_integer_value(status) > STATUS_LAST)
		return -EBADMSG;
	if (json_is_null(json_object_get(from, "body"))) {
		to->problem = "the answer was too large to be recorded";
		return 0;
	}
	to->answer.status = (unsigned)json_integer_value(status);
	to->answer.is_cut = json_is_false(whole);
	r = keep_answer(replay, from, to);
	return r < 0 ? r : read_framing(from, &to->answer);
}

static int read_request(const json_t *from, struct exchange_read *to)
{
	const char *method = text_of(from, "method"), *host = text_of(from, "host"), *target = text_of(from, "target"),
		   *hash = text_of(from, "body_sha256"), *version = text_of(from, "http");
	const json_t *port = json_object_get(from, "port");
	struct target_server server = { .host = host };
	size_t size;

	if (!method || !host || !target || !hash || !version || !json_is_integer(port) ||
	    json_integer_value(port) < 1 || json_integer_value(port) > UINT16_MAX || strlen(host) > 253 ||
	    strlen(method) >= HTTP1_METHOD_SIZE || strpbrk(method, " \r\n") || strpbrk(host, " \r\n"))
		return -EBADMSG;
	if (sodium_hex2bin(to->sent.bytes, HASH_SIZE, hash, strlen(hash), NULL, &size, NULL) != 0 || size != HASH_SIZE)
		return -EBADMSG;
	server.port = (uint16_t)json_integer_value(port);
	to->is_http2 = str_equal(version, "2");
	to->key = make_key(method, &server, target);
	return to->key ? 0 : -EBADMSG;
}

static int grow(struct replay *replay)
{
	size_t capacity = replay->capacity ? 2 * replay->capacity : 64;
	struct exchange_read *list;

	if (replay->count == RECORD_EXCHANGES_MAX)
		return -EFBIG;
	if (replay->count < replay->capacity)
		return 0;
	list = realloc(replay->list, capacity * sizeof *list);
	if (!list)
		return -ENOMEM;
	replay->list = list;
	replay->capacity = capacity;
	return 0;
}

static int read_exchange(struct replay *replay, const json_t *from)
{
	struct exchange_read *to;
	int r = grow(replay);

	if (r < 0)
		return r;
	to = &replay->list[replay->count];
	*to = (struct exchange_read){ .index = replay->count };
	replay->count++;
	r = read_request(json_object_get(from, "request"), to);
	return r < 0 ? r : read_answer(replay, json_object_get(from, "answer"), to);
}

static int read_start(const json_t *from)
{
	const char *what = text_of(from, "atoll");
	const json_t *version = json_object_get(from, "v");

	if (!what || !str_equal(what, "recording"))
		return -EBADMSG;
	return json_integer_value(version) == RECORD_VERSION ? 0 : -EPROTONOSUPPORT;
}

static int read_line(struct replay *replay, const void *bytes, size_t size)
{
	json_t *line = json_loadb(bytes, size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
	int r = -EBADMSG;

	replay->line++;
	if (json_is_object(line))
		r = replay->line == 1 ? read_start(line) : read_exchange(replay, line);
	json_decref(line);
	return r;
}

/* All lines that are whole; the first of them ends at seen or behind it. */
static int read_lines(struct replay *replay, struct buf *buf, size_t seen)
{
	size_t done = 0;
	int r = 0;

	while (r == 0 && seen < buf->size) {
		const uint8_t *end = memchr(buf->bytes + seen, '\n', buf->size - seen);

		if (!end)
			break;
		r = read_line(replay, buf->bytes + done, (size_t)(end - buf->bytes) - done);
		seen = done = (size_t)(end - buf->bytes) + 1;
	}
	buf_consume(buf, done);
	return r;
}

static int read_all(struct replay *replay, int fd)
{
	cleanup_buf struct buf buf;
	size_t total = 0;
	int r = 0;

	buf_init(&buf, RECORD_LINE_MAX + READ_SIZE);
	while (r == 0) {
		uint8_t *at = buf_reserve(&buf, READ_SIZE);
		ssize_t n = at ? read(fd, at, READ_SIZE) : -1;

		if (!at)
			return buf_error(&buf) == -ENOBUFS ? -EFBIG : buf_error(&buf);
		buf.size -= READ_SIZE - (size_t)(n > 0 ? n : 0);
		if (n < 0 && errno != EINTR)
			return -errno;
		total += n > 0 ? (size_t)n : 0;
		if (total > RECORD_FILE_MAX)
			return -EFBIG;
		if (n == 0)
			break;
		r = read_lines(replay, &buf, buf.size - (size_t)(n > 0 ? n : 0));
	}
	/* What is left is a last line without its end: whoever recorded was killed in the middle of it. */
	return r == 0 && !replay->line ? -EBADMSG : r;
}

static void set_error(const struct replay *replay, int r, struct err *err)
{
	const char *problem = r == -EBADMSG           ? "it is malformed"
			      : r == -EPROTONOSUPPORT ? "another version of atoll wrote it"
			      : r == -EFBIG           ? "it is larger than a recording may be"
						      : err_errno_name(-r);

	err_set(err, ERR_USAGE, -r, "replay", "the recording cannot be replayed: %s (line %zu)", problem,
		replay->line ? replay->line : 1);
	err_hint(err, "record it again: atoll run --record FILE -- CMD");
}

int replay_new(struct replay **ret_replay, int fd, struct err *err)
{
	struct replay *replay = calloc(1, sizeof *replay);
	size_t seed = 0;
	int r;

	/* A file that knows the seed can make every key of an object collide. */
	if (!replay || getrandom(&seed, sizeof seed, 0) != sizeof seed) {
		free(replay);
		return err_set(err, ERR_INTERNAL, ENOMEM, "replay", "out of memory");
	}
	json_object_seed(seed ? seed : 1);
	r = read_all(replay, fd);
	if (r < 0) {
		set_error(replay, r, err);
		replay_free(replay);
		return r;
	}
	if (replay->count)
		qsort(replay->list, replay->count, sizeof *replay->list, compare);
	*ret_replay = replay;
	return 0;
}

void replay_free(struct replay *replay)
{
	for (size_t i = 0; replay && i < replay->count; i++) {
		free(replay->list[i].key);
		free(replay->list[i].block);
	}
	if (replay)
		free(replay->list);
	free(replay);
}
