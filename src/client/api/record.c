/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/record.h"

#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "client/api/fault.h"
#include "os/fd.h"

struct value {
	char *key;               /* owned */
	uint32_t type;
	uint64_t number;
	void *bytes;             /* owned; with a NUL behind */
	size_t size;
	char **strings;          /* owned, with what they point to: one piece of memory */
	int fd;                  /* owned */
};

struct atoll_record {
	uint32_t kind;
	struct value *values;
	size_t count;
};

static void value_done(struct value *value)
{
	free(value->key);
	free(value->bytes);
	free(value->strings);
	close_fd(&value->fd);
}

struct atoll_record *record_new(uint32_t kind)
{
	struct atoll_record *record = calloc(1, sizeof *record);

	if (record)
		record->kind = kind;
	return record;
}

atoll_record *atoll_record_new(uint32_t kind)
{
	bool is_callers = (kind >= ATOLL_CONTEXT && kind <= ATOLL_SHAPE) || kind == ATOLL_QUESTION;

	return is_callers ? record_new(kind) : NULL;
}

void atoll_record_free(atoll_record *record)
{
	for (size_t i = 0; record && i < record->count; i++)
		value_done(&record->values[i]);
	if (record)
		free(record->values);
	free(record);
}

uint32_t atoll_record_kind(const atoll_record *record)
{
	return record ? record->kind : 0;
}

static struct value *find(const struct atoll_record *record, const char *key)
{
	for (size_t i = 0; record && i < record->count; i++)
		if (str_equal(record->values[i].key, key))
			return &record->values[i];
	return NULL;
}

/* Takes what the value has, in any case. */
static int put(struct atoll_record *record, const char *key, struct value value)
{
	struct value *known = find(record, key), *grown;

	value.key = str_dup(key);
	if (!value.key || !record)
		goto fail;
	if (known) {
		value_done(known);
		*known = value;
		return 0;
	}
	grown = realloc(record->values, (record->count + 1) * sizeof *grown);
	if (!grown)
		goto fail;
	record->values = grown;
	record->values[record->count++] = value;
	return 0;
fail:
	value_done(&value);
	return -ENOMEM;
}

int record_put_u64(struct atoll_record *record, const char *key, uint64_t number)
{
	return put(record, key, (struct value){ .type = ATOLL_TYPE_U64, .number = number, .fd = FD_NONE });
}

static int put_copy(struct atoll_record *record, const char *key, uint32_t type, const void *bytes, size_t size)
{
	char *copy = malloc(size + 1);

	if (!copy)
		return -ENOMEM;
	if (size)
		memcpy(copy, bytes, size);
	copy[size] = 0;
	return put(record, key, (struct value){ .type = type, .bytes = copy, .size = size, .fd = FD_NONE });
}

int record_put_bytes(struct atoll_record *record, const char *key, const void *bytes, size_t size)
{
	return put_copy(record, key, ATOLL_TYPE_BYTES, bytes, size);
}

int record_put_string(struct atoll_record *record, const char *key, const char *text)
{
	return text ? put_copy(record, key, ATOLL_TYPE_STRING, text, strlen(text)) : 0;
}

int record_put_fd(struct atoll_record *record, const char *key, int fd)
{
	return put(record, key, (struct value){ .type = ATOLL_TYPE_FD, .fd = fd });
}

/* An environment of fifty strings is one allocation, and not one for each. */
static char **pack_strings(const char *const *strings)
{
	size_t count = strv_count(strings), size = (count + 1) * sizeof(char *);
	char **copy, *at;

	for (size_t i = 0; i < count; i++)
		size += strlen(strings[i]) + 1;
	copy = malloc(size);
	if (!copy)
		return NULL;
	at = (char *)(copy + count + 1);
	for (size_t i = 0; i < count; i++) {
		size = strlen(strings[i]) + 1;
		copy[i] = memcpy(at, strings[i], size);
		at += size;
	}
	copy[count] = NULL;
	return copy;
}

static int put_strings(struct atoll_record *record, const char *key, const char *const *strings)
{
	char **copy = pack_strings(strings);

	return copy ? put(record, key, (struct value){ .type = ATOLL_TYPE_STRINGS, .strings = copy, .fd = FD_NONE })
		    : -ENOMEM;
}

int record_add_field(struct atoll_record *record, const struct field *field)
{
	switch (field->kind) {
	case FIELD_U64:
		return record_put_u64(record, field->key, field->number);
	case FIELD_STRINGS:
		return put_strings(record, field->key, (const char *const *)field->strings);
	case FIELD_STRING:
		return put_copy(record, field->key, ATOLL_TYPE_STRING, field->bytes, field->size);
	case FIELD_BYTES:
		return record_put_bytes(record, field->key, field->bytes, field->size);
	default:
		return 0;
	}
}

static bool is_among(const char *const *list, const char *key)
{
	for (; list && *list; list++)
		if (str_equal(*list, key))
			return true;
	return false;
}

static int put_field(const struct value *value, struct buf *out, int *fds, size_t fd_max, size_t *fd_count)
{
	switch (value->type) {
	case ATOLL_TYPE_U64:
		field_put_u64(out, value->key, value->number);
		return 0;
	case ATOLL_TYPE_STRING:
		field_put_string(out, value->key, value->bytes);
		return 0;
	case ATOLL_TYPE_BYTES:
		field_put_bytes(out, value->key, value->bytes, value->size);
		return 0;
	case ATOLL_TYPE_STRINGS:
		field_put_strings(out, value->key, (const char *const *)value->strings);
		return 0;
	default:
		if (*fd_count == fd_max)
			return -E2BIG;
		field_put_fd(out, value->key, *fd_count);
		fds[(*fd_count)++] = value->fd;
		return 0;
	}
}

int record_put_fields(const struct atoll_record *record, const char *const *skip, struct buf *out, int *fds,
		      size_t fd_max, size_t *fd_count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && record && i < record->count; i++)
		if (!is_among(skip, record->values[i].key))
			r = put_field(&record->values[i], out, fds, fd_max, fd_count);
	return r < 0 ? r : buf_error(out);
}

/* ---- the caller's side ---- */

static int refuse_key(const struct atoll_record *record, const char *key, struct atoll_error *error)
{
	const char *names[64], *nearest;
	size_t count = 0;

	while (count < ARRAY_SIZE(names) && atoll_keys(record->kind, count, &names[count], NULL, NULL) == 1)
		count++;
	nearest = names_nearest(names, count, key);
	fault_set(error, ATOLL_E_INVALID, 0, "record", "such a record has no key \"%s\"", key);
	if (nearest)
		fault_hint(error, "did you mean \"%s\"?", nearest);
	return ATOLL_E_INVALID;
}

static int check(const struct atoll_record *record, const char *key, uint32_t type, struct atoll_error *error)
{
	static const char *const types[] = { "?",     "a number",	      "a string",
					     "bytes", "a list of strings", "a descriptor" };
	const struct key *known;

	if (!record || !key)
		return fault_set(error, ATOLL_E_INVALID, 0, "record", "there is no record, or no key");
	known = key_find(record->kind, key);
	if (!known)
		return refuse_key(record, key, error);
	if (known->type != type)
		return fault_set(error, ATOLL_E_INVALID, 0, "record", "\"%s\" is %s", key, types[known->type]);
	return 0;
}

static int refuse_value(const char *key, struct atoll_error *error)
{
	return fault_set(error, ATOLL_E_INVALID, 0, "record", "the value of \"%s\" is missing or too large", key);
}

int atoll_set_string(atoll_record *record, const char *key, const char *text, struct atoll_error *error)
{
	int r = check(record, key, ATOLL_TYPE_STRING, error);

	if (r < 0)
		return r;
	if (!text || strnlen(text, RECORD_STRING_MAX) == RECORD_STRING_MAX)
		return refuse_value(key, error);
	r = record_put_string(record, key, text);
	return r < 0 ? fault_errno(error, r, "record") : 0;
}

int atoll_set_bytes(atoll_record *record, const char *key, const void *bytes, size_t size, struct atoll_error *error)
{
	int r = check(record, key, ATOLL_TYPE_BYTES, error);

	if (r < 0)
		return r;
	if ((!bytes && size) || size > RECORD_STRING_MAX)
		return refuse_value(key, error);
	r = record_put_bytes(record, key, bytes, size);
	return r < 0 ? fault_errno(error, r, "record") : 0;
}

int atoll_set_u64(atoll_record *record, const char *key, uint64_t number, struct atoll_error *error)
{
	int r = check(record, key, ATOLL_TYPE_U64, error);

	if (r == 0)
		r = record_put_u64(record, key, number);
	return r == -ENOMEM ? fault_errno(error, r, "record") : r;
}

int atoll_set_fd(atoll_record *record, const char *key, int fd, struct atoll_error *error)
{
	int copy, r = check(record, key, ATOLL_TYPE_FD, error);

	if (r < 0)
		return r;
	copy = fd_duplicate(fd);
	r = copy < 0 ? copy : record_put_fd(record, key, copy);
	return r == -EBADF ? refuse_value(key, error) : r < 0 ? fault_errno(error, r, "record") : 0;
}

int atoll_set_strings(atoll_record *record, const char *key, const char *const *strings, struct atoll_error *error)
{
	int r = check(record, key, ATOLL_TYPE_STRINGS, error);

	if (r < 0)
		return r;
	if (!strings || strv_count(strings) > RECORD_STRINGS_MAX)
		return refuse_value(key, error);
	r = put_strings(record, key, strings);
	return r < 0 ? fault_errno(error, r, "record") : 0;
}

static const struct value *find_typed(const struct atoll_record *record, const char *key, uint32_t type)
{
	const struct value *value = key ? find(record, key) : NULL;

	return value && value->type == type ? value : NULL;
}

const char *record_string(const struct atoll_record *record, const char *key)
{
	const struct value *value = find_typed(record, key, ATOLL_TYPE_STRING);

	return value ? value->bytes : NULL;
}

bool record_u64(const struct atoll_record *record, const char *key, uint64_t *ret)
{
	const struct value *value = find_typed(record, key, ATOLL_TYPE_U64);

	if (value)
		*ret = value->number;
	return value != NULL;
}

bool record_has(const struct atoll_record *record, const char *key)
{
	return record && find(record, key);
}

int record_fd(const struct atoll_record *record, const char *key)
{
	const struct value *value = find_typed(record, key, ATOLL_TYPE_FD);

	return value ? value->fd : FD_NONE;
}

int atoll_get_string(const atoll_record *record, const char *key, const char **ret)
{
	const char *text = record_string(record, key);

	if (text)
		*ret = text;
	return text != NULL;
}

int atoll_get_bytes(const atoll_record *record, const char *key, const void **ret, size_t *ret_size)
{
	const struct value *value = find_typed(record, key, ATOLL_TYPE_BYTES);

	value = value ? value : find_typed(record, key, ATOLL_TYPE_STRING);
	if (!value)
		return 0;
	*ret = value->bytes;
	*ret_size = value->size;
	return 1;
}

int atoll_get_u64(const atoll_record *record, const char *key, uint64_t *ret)
{
	return record_u64(record, key, ret);
}

int atoll_get_strings(const atoll_record *record, const char *key, const char *const **ret)
{
	const struct value *value = find_typed(record, key, ATOLL_TYPE_STRINGS);

	if (value)
		*ret = (const char *const *)value->strings;
	return value != NULL;
}

int atoll_take_fd(atoll_record *record, const char *key)
{
	struct value *value = record && key ? find(record, key) : NULL;

	return value && value->type == ATOLL_TYPE_FD && value->fd >= 0 ? take_fd(&value->fd) : ATOLL_E_NOT_FOUND;
}
