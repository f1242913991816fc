/* SPDX-License-Identifier: Apache-2.0 */
#include "service/protocol/query.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "base/url-path.h"

/* Undoes the escapes of text[length] into out[size]. */
static int decode(const char *text, size_t length, char *out, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		int byte = text[i] == '+' ? ' ' : (unsigned char)text[i];

		if (text[i] == '%') {
			byte = length - i > 2 ? url_escape_at(text + i) : -1;
			i += 2;
		}
		if (byte <= 0 || used + 1 >= size)
			return -EINVAL;
		out[used++] = (char)byte;
	}
	out[used] = 0;
	return 0;
}

int query_next(const char **at, struct query_pair *pair)
{
	const char *text = *at;
	size_t length, name;
	int r;

	while (text && *text == '&')
		text++;
	if (!text || !*text)
		return 0;
	length = strcspn(text, "&");
	name = strcspn(text, "=&");
	*at = text + length;
	r = decode(text, name, pair->name, sizeof pair->name);
	if (r == 0)
		r = decode(text + name + (name < length), length - name - (name < length), pair->value,
			   sizeof pair->value);
	return r < 0 ? r : 1;
}

int query_get(const char *query, const char *name, char *out, size_t size)
{
	struct query_pair pair;
	int r;

	while ((r = query_next(&query, &pair)) > 0)
		if (str_equal(pair.name, name))
			return str_copy(out, size, pair.value) < 0 ? -EINVAL : 1;
	return r;
}

int query_get_number(const char *query, const char *name, uint64_t max, uint64_t *ret_number)
{
	uint64_t number;
	char text[32];
	int r = query_get(query, name, text, sizeof text);

	if (r <= 0)
		return r;
	if (num_parse_u64(text, &number) < 0 || number > max)
		return -EINVAL;
	*ret_number = number;
	return 1;
}

int query_get_signature(const char *query, struct query_signature *ret_signature)
{
	struct query_signature signature = { 0 };
	int r = query_get(query, "signature", signature.text, sizeof signature.text);

	signature.is_there = r > 0;
	if (r >= 0)
		r = query_get_number(query, "signature_expiration", INT64_MAX, &signature.expires_s);
	if (r < 0)
		return r;
	/* One that ended in 1970 is not one without an end. */
	if (r > 0 && signature.expires_s == 0)
		return -EINVAL;
	*ret_signature = signature;
	return 0;
}

int query_read_metadata(const char *text, struct buf *out, size_t max)
{
	struct query_pair pair, once;
	size_t count = 0;
	int r;

	while ((r = query_next(&text, &once)) > 0) {
		if (++count > max || decode(once.name, strlen(once.name), pair.name, sizeof pair.name) < 0 ||
		    decode(once.value, strlen(once.value), pair.value, sizeof pair.value) < 0)
			return -EINVAL;
		buf_put(out, pair.name, strlen(pair.name) + 1);
		buf_put(out, pair.value, strlen(pair.value) + 1);
	}
	return r < 0 ? r : buf_error(out) < 0 ? -EINVAL : (int)count;
}

bool query_list_has(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (strncmp(at, word, length) == 0 && (at[length] == ',' || !at[length]))
			return true;
	return false;
}
