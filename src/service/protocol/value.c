/* SPDX-License-Identifier: Apache-2.0 */
#include "service/protocol/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/num.h"
#include "base/str.h"

void value_prepare(void)
{
	json_object_seed(0);
}

static int refuse(char why[VALUE_WHY_SIZE], const char *name, const char *what)
{
	if (str_format(why, VALUE_WHY_SIZE, "\"%.60s\" %s", name, what) < 0)
		why[0] = 0;
	return -EINVAL;
}

/* jansson's own bound on depth is far beyond what its recursion should be trusted with. */
static bool is_flat(const char *text, size_t size)
{
	bool is_string = false;
	unsigned depth = 0;

	for (size_t i = 0; i < size; i++) {
		if (is_string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			is_string = !is_string;
		else if (!is_string && (text[i] == '{' || text[i] == '['))
			depth++;
		else if (!is_string && depth && (text[i] == '}' || text[i] == ']'))
			depth--;
		if (depth > VALUE_DEPTH_MAX)
			return false;
	}
	return true;
}

int value_parse(const void *bytes, size_t size, json_t **ret, char why[VALUE_WHY_SIZE])
{
	json_error_t error;
	json_t *value;

	if (size && !is_flat(bytes, size))
		return refuse(why, "body", "is nested too deep");
	value = size ? json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error) : json_object();
	if (!value && !size)
		return -ENOMEM;
	if (!value) {
		if (str_format(why, VALUE_WHY_SIZE, "the body is no JSON: line %d: %.80s", error.line, error.text) < 0)
			why[0] = 0;
		return -EINVAL;
	}
	if (!json_is_object(value)) {
		json_decref(value);
		return refuse(why, "body", "is no JSON object");
	}
	*ret = value;
	return 0;
}

/* envdVersion: envd_version; sandboxID: sandbox_id. */
static void snake_of(const char *camel, char out[VALUE_NAME_SIZE])
{
	size_t used = 0;
	bool was_capital = true;

	for (; *camel && used + 2 < VALUE_NAME_SIZE; camel++) {
		bool is_capital = *camel >= 'A' && *camel <= 'Z';

		if (is_capital && !was_capital)
			out[used++] = '_';
		out[used++] = is_capital ? (char)(*camel - 'A' + 'a') : *camel;
		was_capital = is_capital;
	}
	out[used] = 0;
}

bool value_is_name(const char *text, const char *name)
{
	char snake[VALUE_NAME_SIZE];

	snake_of(name, snake);
	return str_equal(text, name) || str_equal(text, snake);
}

const json_t *value_member(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	char snake[VALUE_NAME_SIZE];

	if (!value) {
		snake_of(name, snake);
		value = json_object_get(object, snake);
	}
	return json_is_null(value) ? NULL : value;
}

int value_string(const json_t *object, const char *name, const char **ret, char why[VALUE_WHY_SIZE])
{
	const json_t *value = value_member(object, name);

	if (!value)
		return 0;
	if (!json_is_string(value))
		return refuse(why, name, "is no string");
	*ret = json_string_value(value);
	return 1;
}

int value_bool(const json_t *object, const char *name, bool *ret, char why[VALUE_WHY_SIZE])
{
	const json_t *value = value_member(object, name);

	if (!value)
		return 0;
	if (!json_is_boolean(value))
		return refuse(why, name, "is neither true nor false");
	*ret = json_is_true(value);
	return 1;
}

static bool read_number(const json_t *value, uint64_t *ret)
{
	double real;

	if (json_is_string(value))
		return num_parse_u64(json_string_value(value), ret) == 0;
	if (json_is_integer(value)) {
		*ret = (uint64_t)json_integer_value(value);
		return json_integer_value(value) >= 0;
	}
	/* 300.0 is a whole number too; beyond 2^53 a double no longer says which. */
	real = json_real_value(value);
	if (!json_is_real(value) || !(real >= 0 && real <= 9007199254740992.0) || real != (double)(uint64_t)real)
		return false;
	*ret = (uint64_t)real;
	return true;
}

int value_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret, char why[VALUE_WHY_SIZE])
{
	const json_t *value = value_member(object, name);
	uint64_t number;

	if (!value)
		return 0;
	if (!read_number(value, &number))
		return refuse(why, name, "is no whole number from 0 on");
	if (number > max)
		return refuse(why, name, "is too large");
	*ret = number;
	return 1;
}

int value_object(const json_t *object, const char *name, const json_t **ret, char why[VALUE_WHY_SIZE])
{
	const json_t *value = value_member(object, name);

	if (!value)
		return 0;
	if (!json_is_object(value))
		return refuse(why, name, "is no object");
	*ret = value;
	return 1;
}

int value_array(const json_t *object, const char *name, const json_t **ret, char why[VALUE_WHY_SIZE])
{
	const json_t *value = value_member(object, name);

	if (!value)
		return 0;
	if (!json_is_array(value))
		return refuse(why, name, "is no array");
	*ret = value;
	return 1;
}

int value_bytes(const json_t *object, const char *name, struct buf *out, char why[VALUE_WHY_SIZE])
{
	const json_t *value = value_member(object, name);
	int r;

	if (!value)
		return 0;
	r = json_is_string(value) ? base64_read(out, json_string_value(value), json_string_length(value)) : -EINVAL;
	return r == -EINVAL ? refuse(why, name, "is no base64") : r < 0 ? refuse(why, name, "is too long") : 1;
}

int value_enum(const json_t *object, const char *name, const struct value_word *words, uint32_t *ret,
	       char why[VALUE_WHY_SIZE])
{
	const json_t *value = value_member(object, name);
	uint64_t number;

	if (!value)
		return 0;
	for (size_t i = 0; json_is_string(value) && words[i].name; i++) {
		if (!str_equal(words[i].name, json_string_value(value)))
			continue;
		*ret = words[i].number;
		return 1;
	}
	if (!json_is_integer(value) || !read_number(value, &number) || number > INT32_MAX)
		return refuse(why, name, "has a value that is not known");
	*ret = (uint32_t)number;
	return 1;
}

const char **value_strings(const json_t *array, size_t max, char why[VALUE_WHY_SIZE])
{
	size_t count = json_array_size(array);
	const char **strings = count <= max ? calloc(count + 1, sizeof *strings) : NULL;

	if (!strings) {
		(void)refuse(why, "a list", "has too many entries");
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		strings[i] = json_string_value(json_array_get(array, i));
		if (strings[i])
			continue;
		(void)refuse(why, "a list", "has an entry that is no string");
		free(strings);
		return NULL;
	}
	return strings;
}

const char **value_pairs(const json_t *map, size_t max, char why[VALUE_WHY_SIZE])
{
	size_t count = json_object_size(map), used = 0;
	const char **strings = count <= max ? calloc(2 * count + 1, sizeof *strings) : NULL;
	const char *name;
	json_t *value;

	if (!strings) {
		(void)refuse(why, "a map", "has too many entries");
		return NULL;
	}
	json_object_foreach((json_t *)map, name, value) {
		strings[used++] = name;
		strings[used++] = json_string_value(value);
		if (json_is_string(value))
			continue;
		(void)refuse(why, name, "is no string");
		free(strings);
		return NULL;
	}
	return strings;
}

char **value_environment(const json_t *map, size_t max, char why[VALUE_WHY_SIZE])
{
	const char **pairs = value_pairs(map, max, why);
	char **strings = pairs ? calloc(json_object_size(map) + 1, sizeof *strings) : NULL;

	for (size_t i = 0; strings && pairs[2 * i]; i++) {
		const char *name = pairs[2 * i];
		bool is_name = *name && !strchr(name, '=');

		strings[i] = is_name ? str_printf("%s=%s", name, pairs[2 * i + 1]) : NULL;
		if (strings[i])
			continue;
		(void)refuse(why, name, "cannot be the name of a variable");
		strv_free(strings);
		strings = NULL;
	}
	free(pairs);
	return strings;
}
