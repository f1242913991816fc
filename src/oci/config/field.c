/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/config/field.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { NAME_SIZE = 160 };

static const char *const kind_words[] = {
	[FIELD_TEXT] = "a string", [FIELD_BOOL] = "true or false", [FIELD_NUMBER] = "a whole number",
	[FIELD_TEXTS] = "an array of strings", [FIELD_NUMBERS] = "an array of whole numbers",
	[FIELD_MAP] = "an object whose values are strings",
	[FIELD_OBJECT] = "an object", [FIELD_LIST] = "an array of objects",
};

static int refuse(const char *name, const char *wanted, struct err *err)
{
	return err_set(err, ERR_USAGE, EINVAL, "config", "config.json: %s must be %s", name, wanted);
}

static int read_number(const struct field *field, const json_t *value, void *at, const char *name, struct err *err)
{
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value))
		return refuse(name, kind_words[FIELD_NUMBER], err);
	if (number < field->min || number > field->max) {
		char wanted[96];

		(void)!str_format(wanted, sizeof wanted, "a whole number from %lld to %lld", (long long)field->min,
				  (long long)field->max);
		return refuse(name, wanted, err);
	}
	*(int64_t *)at = number;
	return 0;
}

static bool has_nul(const json_t *text)
{
	return strlen(json_string_value(text)) != json_string_length(text);
}

static int read_texts(const json_t *value, struct field_texts *texts, const char *name, struct err *err)
{
	size_t count = json_array_size(value);

	if (!json_is_array(value))
		return refuse(name, kind_words[FIELD_TEXTS], err);
	texts->items = calloc(count + 1, sizeof *texts->items);
	if (!texts->items)
		return -ENOMEM;
	texts->count = count;
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(value, i);

		if (!json_is_string(item) || has_nul(item))
			return refuse(name, kind_words[FIELD_TEXTS], err);
		texts->items[i] = json_string_value(item);
	}
	return 0;
}

static int read_numbers(const struct field *field, json_t *value, json_t **ret, const char *name, struct err *err)
{
	size_t count = json_array_size(value);

	if (!json_is_array(value))
		return refuse(name, kind_words[FIELD_NUMBERS], err);
	for (size_t i = 0; i < count; i++) {
		int64_t number = 0;
		int r = read_number(field, json_array_get(value, i), &number, name, err);

		if (r < 0)
			return r;
	}
	*ret = value;
	return 0;
}

static int read_map(json_t *value, json_t **ret_map, const char *name, struct err *err)
{
	const char *key;
	json_t *item;

	if (!json_is_object(value))
		return refuse(name, kind_words[FIELD_MAP], err);
	json_object_foreach(value, key, item)
		if (!json_is_string(item) || has_nul(item))
			return refuse(name, kind_words[FIELD_MAP], err);
	*ret_map = value;
	return 0;
}

static int read_list(const struct field *field, const json_t *value, struct field_list *list, const char *name,
		     struct err *err)
{
	size_t count = json_array_size(value);
	int r = 0;

	if (!json_is_array(value))
		return refuse(name, kind_words[FIELD_LIST], err);
	list->items = calloc(count + 1, field->table->size);
	if (!list->items)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++) {
		const json_t *item = json_array_get(value, i);
		char part[NAME_SIZE];

		if (str_format(part, sizeof part, "%s[%zu]", name, i) < 0 || !json_is_object(item))
			return refuse(name, kind_words[FIELD_LIST], err);
		list->count = i + 1;
		r = field_read(field->table, item, (char *)list->items + i * field->table->size, part, err);
	}
	return r;
}

static int read_value(const struct field *field, json_t *value, void *at, const char *name, struct err *err)
{
	switch (field->kind) {
	case FIELD_TEXT:
		if (!json_is_string(value) || has_nul(value))
			return refuse(name, kind_words[FIELD_TEXT], err);
		*(const char **)at = json_string_value(value);
		return 0;
	case FIELD_BOOL:
		if (!json_is_boolean(value))
			return refuse(name, kind_words[FIELD_BOOL], err);
		*(bool *)at = json_is_true(value);
		return 0;
	case FIELD_NUMBER:
		return read_number(field, value, at, name, err);
	case FIELD_TEXTS:
		return read_texts(value, at, name, err);
	case FIELD_NUMBERS:
		return read_numbers(field, value, at, name, err);
	case FIELD_MAP:
		return read_map(value, at, name, err);
	case FIELD_LIST:
		return read_list(field, value, at, name, err);
	case FIELD_REFUSED:
		if (json_object_size(value) || json_array_size(value) || json_is_number(value) ||
		    json_is_true(value) || json_string_length(value))
			return err_set(err, ERR_USAGE, EINVAL, "config", "config.json: %s is not supported", name);
		return 0;
	case FIELD_OBJECT:
		break;
	}
	if (!json_is_object(value))
		return refuse(name, kind_words[FIELD_OBJECT], err);
	return field_read(field->table, value, at, name, err);
}

int field_read(const struct field_table *table, const json_t *object, void *target, const char *name,
	       struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < table->count; i++) {
		const struct field *field = &table->fields[i];
		json_t *value = json_object_get(object, field->name);
		void *at = (char *)target + field->offset;
		char whole[NAME_SIZE];

		if (str_format(whole, sizeof whole, "%s%s%s", name, *name ? "." : "", field->name) < 0)
			return -EINVAL;
		if (field->kind == FIELD_NUMBER)
			*(int64_t *)at = field->fallback;
		if (value && !json_is_null(value))
			r = read_value(field, value, at, whole, err);
		else if (field->is_required && object)
			r = err_set(err, ERR_USAGE, EINVAL, "config", "config.json: %s is missing", whole);
		else if (field->kind == FIELD_OBJECT)
			r = field_read(field->table, NULL, at, whole, err);
	}
	return r;
}

void field_done(const struct field_table *table, void *target)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct field *field = &table->fields[i];
		void *at = (char *)target + field->offset;
		struct field_list *list = at;

		if (field->kind == FIELD_OBJECT)
			field_done(field->table, at);
		else if (field->kind == FIELD_TEXTS)
			free(((struct field_texts *)at)->items);
		if (field->kind != FIELD_LIST)
			continue;
		for (size_t j = 0; j < list->count; j++)
			field_done(field->table, (char *)list->items + j * field->table->size);
		free(list->items);
	}
	memset(target, 0, table->size);
}
