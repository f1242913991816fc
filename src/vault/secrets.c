/* SPDX-License-Identifier: Apache-2.0 */
#include "vault/secrets.h"

#include <sodium.h>
#include <string.h>

#include "base/str.h"

enum { HEAD_SIZE = 4, ITEM_SIZE = 1 + 8 + 8 + 4 };

struct secrets *secrets_new(void)
{
	struct secrets *secrets = sodium_malloc(sizeof *secrets);

	if (secrets)
		memset(secrets, 0, sizeof *secrets);
	return secrets;
}

void secrets_free(struct secrets *secrets)
{
	if (!secrets)
		return;
	for (size_t i = 0; i < secrets->count; i++)
		sodium_free(secrets->items[i].value);
	sodium_free(secrets);
}

/* Where name is, or where it would have to be; *ret_found tells. */
static size_t place_of(const struct secrets *secrets, const char *name, bool *ret_found)
{
	size_t at = 0;
	int order = -1;

	while (at < secrets->count && (order = strcmp(secrets->items[at].name, name)) < 0)
		at++;
	*ret_found = at < secrets->count && order == 0;
	return at;
}

const struct secret *secrets_find(const struct secrets *secrets, const char *name)
{
	bool found;
	size_t at = place_of(secrets, name, &found);

	return found ? &secrets->items[at] : NULL;
}

static size_t size_of(const struct secrets *secrets)
{
	size_t size = HEAD_SIZE;

	for (size_t i = 0; i < secrets->count; i++)
		size += ITEM_SIZE + strlen(secrets->items[i].name) + secrets->items[i].size;
	return size;
}

static void insert_at(struct secrets *secrets, size_t at, const struct secret *item)
{
	memmove(&secrets->items[at + 1], &secrets->items[at], (secrets->count - at) * sizeof *item);
	secrets->items[at] = *item;
	secrets->count++;
}

static void take_out(struct secrets *secrets, size_t at)
{
	secrets->count--;
	memmove(&secrets->items[at], &secrets->items[at + 1], (secrets->count - at) * sizeof secrets->items[0]);
	memset(&secrets->items[secrets->count], 0, sizeof secrets->items[0]);
}

int secrets_set(struct secrets *secrets, const char *name, const void *value, size_t size, uint64_t now_s)
{
	struct secret item = { .made_s = now_s, .changed_s = now_s, .size = (uint32_t)size };
	size_t at, others = size_of(secrets);
	bool found;

	if (!secret_name_is_valid(name) || str_copy(item.name, sizeof item.name, name) < 0 || size == 0 ||
	    size > SECRET_VALUE_MAX)
		return -EINVAL;
	at = place_of(secrets, name, &found);
	if (found)
		others -= ITEM_SIZE + strlen(name) + secrets->items[at].size;
	if ((!found && secrets->count == SECRETS_MAX) || others + ITEM_SIZE + strlen(name) + size > SECRETS_BYTES_MAX)
		return -EDQUOT;
	item.value = sodium_malloc(size);
	if (!item.value)
		return -ENOMEM;
	memcpy(item.value, value, size);
	if (!found) {
		insert_at(secrets, at, &item);
		return 0;
	}
	item.made_s = secrets->items[at].made_s;
	sodium_free(secrets->items[at].value);
	secrets->items[at] = item;
	return 1;
}

int secrets_remove(struct secrets *secrets, const char *name)
{
	bool found;
	size_t at = place_of(secrets, name, &found);

	if (!found)
		return -ENOENT;
	sodium_free(secrets->items[at].value);
	take_out(secrets, at);
	return 0;
}

int secrets_rename(struct secrets *secrets, const char *name, const char *new_name, uint64_t now_s)
{
	bool found, taken;
	size_t at = place_of(secrets, name, &found);
	struct secret item;
	int r;

	if (!secret_name_is_valid(new_name))
		return -EINVAL;
	place_of(secrets, new_name, &taken);
	if (!found)
		return -ENOENT;
	if (taken)
		return -EEXIST;
	/* A longer name can make the table too large. */
	if (size_of(secrets) - strlen(name) + strlen(new_name) > SECRETS_BYTES_MAX)
		return -EDQUOT;
	item = secrets->items[at];
	r = str_copy(item.name, sizeof item.name, new_name);
	if (r < 0)
		return r;
	item.changed_s = now_s;
	take_out(secrets, at);
	insert_at(secrets, place_of(secrets, new_name, &taken), &item);
	return 0;
}

static uint8_t *put_le(uint8_t *at, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * i));
	return at + bytes;
}

static uint64_t get_le(const uint8_t *at, size_t bytes)
{
	uint64_t value = 0;

	for (size_t i = bytes; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

int secrets_format(const struct secrets *secrets, uint8_t **ret_bytes, size_t *ret_size)
{
	size_t size = size_of(secrets);
	uint8_t *bytes = sodium_malloc(size), *at = bytes;

	if (!bytes)
		return -ENOMEM;
	at = put_le(at, secrets->count, HEAD_SIZE);
	for (size_t i = 0; i < secrets->count; i++) {
		const struct secret *item = &secrets->items[i];
		size_t length = strlen(item->name);

		at = put_le(at, length, 1);
		memcpy(at, item->name, length);
		at = put_le(at + length, item->made_s, 8);
		at = put_le(at, item->changed_s, 8);
		at = put_le(at, item->size, 4);
		memcpy(at, item->value, item->size);
		at += item->size;
	}
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}

/* One item at *at, which moves on; names must rise. */
static int parse_item(const uint8_t **at, const uint8_t *end, struct secrets *secrets)
{
	struct secret item = { 0 };
	size_t length, last = secrets->count - 1;

	if (end - *at < ITEM_SIZE)
		return -EBADMSG;
	length = **at;
	if (length == 0 || length >= SECRET_NAME_SIZE || (size_t)(end - *at) < ITEM_SIZE + length)
		return -EBADMSG;
	memcpy(item.name, *at + 1, length);
	*at += 1 + length;
	item.made_s = get_le(*at, 8);
	item.changed_s = get_le(*at + 8, 8);
	item.size = (uint32_t)get_le(*at + 16, 4);
	*at += ITEM_SIZE - 1;
	/* A NUL within the name would make it shorter than it says. */
	if (strlen(item.name) != length || !secret_name_is_valid(item.name) ||
	    (secrets->count && strcmp(secrets->items[last].name, item.name) >= 0))
		return -EBADMSG;
	if (item.size == 0 || item.size > SECRET_VALUE_MAX || (size_t)(end - *at) < item.size)
		return -EBADMSG;
	item.value = sodium_malloc(item.size);
	if (!item.value)
		return -ENOMEM;
	memcpy(item.value, *at, item.size);
	*at += item.size;
	secrets->items[secrets->count++] = item;
	return 0;
}

int secrets_parse(const uint8_t *bytes, size_t size, struct secrets **ret_secrets)
{
	const uint8_t *at = bytes + HEAD_SIZE, *end = bytes + size;
	struct secrets *secrets;
	uint64_t count;
	int r = 0;

	if (size < HEAD_SIZE || size > SECRETS_BYTES_MAX)
		return -EBADMSG;
	count = get_le(bytes, HEAD_SIZE);
	if (count > SECRETS_MAX)
		return -EBADMSG;
	secrets = secrets_new();
	if (!secrets)
		return -ENOMEM;
	while (r == 0 && secrets->count < count)
		r = parse_item(&at, end, secrets);
	if (r == 0 && at != end)
		r = -EBADMSG;
	if (r < 0) {
		secrets_free(secrets);
		return r;
	}
	*ret_secrets = secrets;
	return 0;
}

const char *secret_size_class(uint32_t size)
{
	static const struct {
		uint32_t max;
		const char *name;
	} classes[] = { { 16, "1-16" }, { 64, "17-64" }, { 256, "65-256" }, { 1024, "257-1024" } };

	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		if (size <= classes[i].max)
			return classes[i].name;
	return "1025-16384";
}
