/* SPDX-License-Identifier: Apache-2.0 */
#include "service/protocol/multipart.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

/* The value of a parameter, "; NAME=value" or "; NAME=\"value\"", where text begins behind the main value. */
static int read_parameter(const char *text, const char *name, char *out, size_t size)
{
	size_t length = strlen(name);

	while (*text == ';' || *text == ' ' || *text == '\t') {
		bool is_wanted, is_quoted;
		size_t used = 0;

		text += strspn(text, "; \t");
		is_wanted = strncasecmp(text, name, length) == 0 && text[length] == '=';
		text += strcspn(text, "=;");
		if (*text != '=')
			continue;
		is_quoted = *++text == '"';
		text += is_quoted;
		for (; *text && (is_quoted ? *text != '"' : !strchr("; \t", *text)); text++) {
			/* A backslash is one of a path unless it stands before what it must escape. */
			if (is_quoted && *text == '\\' && (text[1] == '"' || text[1] == '\\'))
				text++;
			if (is_wanted && used + 1 >= size)
				return -EINVAL;
			if (is_wanted)
				out[used++] = *text;
		}
		if (is_quoted && *text++ != '"')
			return -EINVAL;
		if (!is_wanted)
			continue;
		out[used] = 0;
		return 1;
	}
	return *text ? -EINVAL : 0;
}

int multipart_init(struct multipart *multipart, const char *content_type)
{
	static const char type[] = "multipart/form-data";
	char boundary[MULTIPART_BOUNDARY_MAX + 1];
	size_t length;

	memset(multipart, 0, offsetof(struct multipart, head));
	multipart->parts = 0;
	multipart->head_size = 0;
	if (strncasecmp(content_type, type, sizeof type - 1) != 0 ||
	    read_parameter(content_type + sizeof type - 1, "boundary", boundary, sizeof boundary) <= 0)
		return -EINVAL;
	length = strlen(boundary);
	if (!length || boundary[length - 1] == ' ')
		return -EINVAL;
	for (const char *c = boundary; *c; c++)
		if (*c < ' ' || *c > '~')
			return -EINVAL;
	memcpy(multipart->delimiter, "\r\n--", 4);
	memcpy(multipart->delimiter + 4, boundary, length + 1);
	multipart->length = 4 + length;
	/* The first one may stand at the very beginning, without a line before it. */
	multipart->matched = 2;
	return 0;
}

static int fail(struct multipart *multipart)
{
	multipart->state = MULTIPART_FAILED;
	return -EINVAL;
}

/* How many bytes are content for certain: up to the delimiter, or to what it may begin with at the end. */
static size_t count_content(const struct multipart *multipart, const char *bytes, size_t size)
{
	const char *whole = memmem(bytes, size, multipart->delimiter, multipart->length);

	if (whole)
		return (size_t)(whole - bytes);
	for (size_t part = size < multipart->length ? size : multipart->length - 1; part; part--)
		if (memcmp(bytes + size - part, multipart->delimiter, part) == 0)
			return size - part;
	return size;
}

/*
 * Looks for the delimiter. True: it ends at *ret_used. Else all *ret_used bytes are content, but for those that the
 * delimiter may begin with, which are held back.
 */
static bool find_delimiter(struct multipart *multipart, const char *bytes, size_t size, size_t *ret_used)
{
	size_t at = 0;

	if (!multipart->matched) {
		*ret_used = count_content(multipart, bytes, size);
		/* Content before it goes out first. */
		if (*ret_used)
			return false;
	}
	while (at < size && multipart->matched < multipart->length &&
	       bytes[at] == multipart->delimiter[multipart->matched]) {
		at++;
		multipart->matched++;
	}
	*ret_used = at;
	return multipart->matched == multipart->length;
}

/* Content until the delimiter; in the preamble it is thrown away. */
static int read_content(struct multipart *multipart, const char *bytes, size_t size, size_t *ret_used,
			const void **ret_data, size_t *ret_size)
{
	bool is_body = multipart->state == MULTIPART_BODY;

	if (find_delimiter(multipart, bytes, size, ret_used)) {
		multipart->state = MULTIPART_DELIMITER;
		multipart->matched = 0;
		multipart->tail_size = 0;
		return is_body ? MULTIPART_PART_END : MULTIPART_MORE;
	}
	if (!multipart->matched) {
		*ret_data = bytes;
		*ret_size = *ret_used;
		return is_body && *ret_size ? MULTIPART_DATA : MULTIPART_MORE;
	}
	if (*ret_used == size)
		return MULTIPART_MORE;
	/* It was none after all: a carriage return stands nowhere else in it, so that none begins within. */
	*ret_data = multipart->delimiter;
	*ret_size = multipart->matched;
	multipart->matched = 0;
	return is_body ? MULTIPART_DATA : MULTIPART_MORE;
}

/* "\r\n": a part; "--": the end. Blanks before them are allowed. */
static int read_delimiter_end(struct multipart *multipart, const char *bytes, size_t size, size_t *ret_used)
{
	for (*ret_used = 0; *ret_used < size;) {
		char c = bytes[(*ret_used)++];

		if (!multipart->tail_size && (c == ' ' || c == '\t'))
			continue;
		multipart->tail[multipart->tail_size++] = c;
		if (multipart->tail_size < 2)
			continue;
		if (memcmp(multipart->tail, "--", 2) == 0) {
			multipart->state = MULTIPART_EPILOGUE;
			return MULTIPART_END;
		}
		if (memcmp(multipart->tail, "\r\n", 2) != 0 || ++multipart->parts > MULTIPART_PARTS_MAX)
			return fail(multipart);
		multipart->state = MULTIPART_HEAD;
		multipart->head_size = 0;
		return MULTIPART_MORE;
	}
	return MULTIPART_MORE;
}

/* Lines of a head, of which one tells the names. */
static int parse_head(struct multipart *multipart)
{
	static const char disposition[] = "content-disposition:", form[] = "form-data";
	int has_name = 0;

	multipart->name[0] = multipart->filename[0] = 0;
	for (char *line = multipart->head, *end; *line; line = end + 2) {
		const char *value;

		end = strstr(line, "\r\n");
		if (!end)
			return -EINVAL;
		*end = 0;
		if (strncasecmp(line, disposition, sizeof disposition - 1) != 0)
			continue;
		value = line + sizeof disposition - 1;
		value += strspn(value, " \t");
		if (has_name || strncasecmp(value, form, sizeof form - 1) != 0)
			return -EINVAL;
		value += sizeof form - 1;
		has_name = read_parameter(value, "name", multipart->name, MULTIPART_NAME_SIZE);
		if (has_name <= 0 ||
		    read_parameter(value, "filename", multipart->filename, MULTIPART_NAME_SIZE) < 0)
			return -EINVAL;
	}
	return has_name > 0 ? 0 : -EINVAL;
}

static bool is_head_whole(const struct multipart *multipart)
{
	const char *head = multipart->head;
	size_t size = multipart->head_size;

	return (size == 2 && memcmp(head, "\r\n", 2) == 0) ||
	       (size >= 4 && memcmp(head + size - 4, "\r\n\r\n", 4) == 0);
}

static int read_head(struct multipart *multipart, const char *bytes, size_t size, size_t *ret_used)
{
	for (*ret_used = 0; *ret_used < size;) {
		char c = bytes[(*ret_used)++];

		if (!c || multipart->head_size == MULTIPART_HEAD_MAX)
			return fail(multipart);
		multipart->head[multipart->head_size++] = c;
		if (!is_head_whole(multipart))
			continue;
		/* Without the empty line. */
		multipart->head[multipart->head_size - 2] = 0;
		if (parse_head(multipart) < 0)
			return fail(multipart);
		multipart->state = MULTIPART_BODY;
		/* An empty part has its delimiter at once. */
		multipart->matched = 0;
		return MULTIPART_PART;
	}
	return MULTIPART_MORE;
}

int multipart_next(struct multipart *multipart, const void *bytes, size_t size, size_t *ret_used,
		   const void **ret_data, size_t *ret_size)
{
	const char *at = bytes;
	size_t used = 0;
	int r = MULTIPART_MORE;

	*ret_used = *ret_size = 0;
	*ret_data = NULL;
	while (r == MULTIPART_MORE && *ret_used < size) {
		const char *from = at + *ret_used;
		size_t left = size - *ret_used;

		switch (multipart->state) {
		case MULTIPART_PREAMBLE:
		case MULTIPART_BODY:
			r = read_content(multipart, from, left, &used, ret_data, ret_size);
			break;
		case MULTIPART_DELIMITER:
			r = read_delimiter_end(multipart, from, left, &used);
			break;
		case MULTIPART_HEAD:
			r = read_head(multipart, from, left, &used);
			break;
		case MULTIPART_EPILOGUE:
			used = left;
			break;
		case MULTIPART_FAILED:
			return -EINVAL;
		}
		*ret_used += used;
	}
	return r;
}

bool multipart_is_whole(const struct multipart *multipart)
{
	return multipart->state == MULTIPART_EPILOGUE;
}
