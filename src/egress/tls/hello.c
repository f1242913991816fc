/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/tls/hello.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/view.h"

enum {
	RECORD_FIRST = 20, RECORD_HANDSHAKE = 22, RECORD_LAST = 24, RECORD_MAX = 16384,
	/* What early data is encrypted to is longer (RFC 8446 5.2). */
	RECORD_SKIPPED_MAX = RECORD_MAX + 256,
	MESSAGE_CLIENT_HELLO = 1, MESSAGE_SERVER_HELLO = 2, MESSAGE_HEADER = 4,
	EXTENSION_SERVER_NAME = 0, NAME_HOST = 0,
	RANDOM_SIZE = 32,
};

void hello_init(struct hello *hello, enum hello_kind kind)
{
	memset(hello, 0, sizeof *hello);
	hello->kind = kind;
}

void hello_done(struct hello *hello)
{
	free(hello->body);
	hello->body = NULL;
}

static enum hello_state read_name(struct hello *hello, struct view extension)
{
	struct view list = view_take_vector(&extension, 2), name;
	size_t kind = (size_t)view_take_be(&list, 1);

	name = view_take_vector(&list, 2);
	/* One name of the one kind that exists: with two, the server could take the other. */
	if (name.is_bad || extension.left || list.left || kind != NAME_HOST || !name.left ||
	    name.left >= HELLO_NAME_SIZE || memchr(name.at, 0, name.left))
		return HELLO_MALFORMED;
	for (size_t i = 0; i < name.left; i++)
		hello->name[i] = name.at[i] >= 'A' && name.at[i] <= 'Z' ? (char)(name.at[i] | 0x20) : (char)name.at[i];
	hello->name[name.left] = 0;
	return HELLO_NAMED;
}

static enum hello_state read_extensions(struct hello *hello, struct view extensions)
{
	enum hello_state state = HELLO_UNNAMED;

	while (extensions.left && !extensions.is_bad) {
		size_t type = (size_t)view_take_be(&extensions, 2);
		struct view extension = view_take_vector(&extensions, 2);

		if (extension.is_bad)
			return HELLO_MALFORMED;
		if (type != EXTENSION_SERVER_NAME)
			continue;
		if (state != HELLO_UNNAMED)
			return HELLO_MALFORMED;
		state = read_name(hello, extension);
		if (state != HELLO_NAMED)
			return state;
	}
	return extensions.is_bad ? HELLO_MALFORMED : state;
}

static enum hello_state read_body(struct hello *hello, size_t size)
{
	struct view view = { .at = hello->body + MESSAGE_HEADER, .left = size };
	struct view extensions;

	(void)view_take(&view, 2 + RANDOM_SIZE);      /* version, random */
	(void)view_take_vector(&view, 1);             /* session id */
	(void)view_take_vector(&view, 2);             /* cipher suites */
	(void)view_take_vector(&view, 1);             /* compression methods */
	if (view.is_bad)
		return HELLO_MALFORMED;
	if (!view.left)
		return HELLO_UNNAMED;            /* before TLS 1.2 a hello could end here */
	extensions = view_take_vector(&view, 2);
	if (extensions.is_bad || view.left)
		return HELLO_MALFORMED;
	return read_extensions(hello, extensions);
}

static bool append(struct hello *hello, uint8_t byte)
{
	if (hello->body_size == hello->body_capacity) {
		size_t capacity = hello->body_capacity ? 2 * hello->body_capacity : 1024;
		uint8_t *grown = capacity > HELLO_BODY_MAX ? NULL : realloc(hello->body, capacity);

		if (!grown)
			return false;
		hello->body = grown;
		hello->body_capacity = capacity;
	}
	hello->body[hello->body_size++] = byte;
	return true;
}

/* The header as far as it is there: a client of another protocol shows itself by its first byte already. */
static enum hello_state check_header(struct hello *hello)
{
	bool is_second = hello->kind == HELLO_SECOND;
	enum hello_state wrong = hello->body_size || is_second ? HELLO_MALFORMED : HELLO_PLAIN;
	size_t size_max = RECORD_MAX;

	if (hello->header[0] < RECORD_FIRST || hello->header[0] > RECORD_LAST)
		return wrong;
	if (hello->header_size < 2)
		return HELLO_MORE;
	if (hello->header[1] != 3)
		return wrong;
	/* A server may skip an alert or the like in front of the hello; we would not have looked behind it. */
	hello->is_skipping = hello->header[0] != RECORD_HANDSHAKE;
	if (hello->is_skipping && (!is_second || hello->body_size))
		return hello->kind == HELLO_OF_SERVER ? HELLO_PLAIN : HELLO_MALFORMED;
	if (hello->header_size < sizeof hello->header)
		return HELLO_MORE;
	hello->record_left = (size_t)hello->header[3] << 8 | hello->header[4];
	if (hello->is_skipping)
		size_max = RECORD_SKIPPED_MAX;
	if (!hello->record_left || hello->record_left > size_max)
		return HELLO_MALFORMED;
	return HELLO_MORE;
}

/* Its random is a constant where it wants another hello: the hash of the words HelloRetryRequest. */
static enum hello_state check_server(const struct hello *hello)
{
	static const uint8_t retry[RANDOM_SIZE] = {
		0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
		0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
	};
	enum { RANDOM_AT = MESSAGE_HEADER + 2 };

	if (hello->body[0] != MESSAGE_SERVER_HELLO)
		return HELLO_PLAIN;
	if (hello->body_size < RANDOM_AT + RANDOM_SIZE)
		return HELLO_MORE;
	return memcmp(hello->body + RANDOM_AT, retry, RANDOM_SIZE) == 0 ? HELLO_RETRY : HELLO_PLAIN;
}

static enum hello_state check_body(struct hello *hello)
{
	size_t size;

	if (hello->kind == HELLO_OF_SERVER)
		return check_server(hello);
	if (hello->body[0] != MESSAGE_CLIENT_HELLO)
		return HELLO_MALFORMED;
	if (hello->body_size < MESSAGE_HEADER)
		return HELLO_MORE;
	size = (size_t)hello->body[1] << 16 | (size_t)hello->body[2] << 8 | hello->body[3];
	if (size > HELLO_BODY_MAX - MESSAGE_HEADER)
		return HELLO_MALFORMED;
	if (hello->body_size < MESSAGE_HEADER + size)
		return HELLO_MORE;
	/* A second message in its record: no client sends one, and we would not have looked at it. */
	return hello->record_left ? HELLO_MALFORMED : read_body(hello, size);
}

enum hello_state hello_feed(struct hello *hello, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size && hello->state == HELLO_MORE; i++) {
		hello->size++;
		if (!hello->record_left) {
			hello->header[hello->header_size++] = bytes[i];
			hello->state = check_header(hello);
			if (hello->header_size == sizeof hello->header)
				hello->header_size = 0;
			continue;
		}
		hello->record_left--;
		if (hello->is_skipping)
			continue;
		hello->state = append(hello, bytes[i]) ? check_body(hello) : HELLO_MALFORMED;
	}
	return hello->state;
}

bool hello_names(const struct hello *hello, const char *host)
{
	return hello->state == HELLO_NAMED && str_equal(hello->name, host);
}

bool hello_is_same(const struct hello *a, const struct hello *b)
{
	return a->state == b->state && (a->state == HELLO_UNNAMED || hello_names(a, b->name));
}
