/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "verify/script/text.h"

enum { PIECE_MAX = 8 };

enum { REPEATED_MAX = 4096, SHIFT_MAX = 62, POWER_MIN = 1 << 26 };

#define ALLOCATION_MIN (1ll << 30)

/* The result of one operator on two numbers; false where it has none that is known. */
typedef bool (*number_function)(int64_t a, int64_t b, int64_t *ret_result);

static bool add(int64_t a, int64_t b, int64_t *ret)
{
	return !__builtin_add_overflow(a, b, ret);
}
static bool subtract(int64_t a, int64_t b, int64_t *ret)
{
	return !__builtin_sub_overflow(a, b, ret);
}
static bool multiply(int64_t a, int64_t b, int64_t *ret)
{
	return !__builtin_mul_overflow(a, b, ret);
}
static bool and (int64_t a, int64_t b, int64_t *ret)
{
	return *ret = a & b, true;
}
static bool or (int64_t a, int64_t b, int64_t *ret)
{
	return *ret = a | b, true;
}
static bool xor (int64_t a, int64_t b, int64_t *ret) {
	return *ret = a ^ b, true;
} static bool less(int64_t a, int64_t b, int64_t *ret)
{
	return *ret = a < b, true;
}
static bool more(int64_t a, int64_t b, int64_t *ret)
{
	return *ret = a > b, true;
}
static bool most(int64_t a, int64_t b, int64_t *ret)
{
	return *ret = a <= b, true;
}
static bool least(int64_t a, int64_t b, int64_t *ret)
{
	return *ret = a >= b, true;
}
static bool same(int64_t a, int64_t b, int64_t *ret)
{
	return *ret = a == b, true;
}
static bool differ(int64_t a, int64_t b, int64_t *ret)
{
	return *ret = a != b, true;
}

static bool divide(int64_t a, int64_t b, int64_t *ret)
{
	return b > 0 && a >= 0 && (*ret = a / b, true);
}

static bool divide_exactly(int64_t a, int64_t b, int64_t *ret)
{
	return b > 0 && a >= 0 && a % b == 0 && (*ret = a / b, true);
}

static bool modulo(int64_t a, int64_t b, int64_t *ret)
{
	return b > 0 && a >= 0 && (*ret = a % b, true);
}

static bool shift_left(int64_t a, int64_t b, int64_t *ret)
{
	return a >= 0 && b >= 0 && b <= SHIFT_MAX && a <= INT64_MAX >> b && (*ret = a << b, true);
}

static bool shift_right(int64_t a, int64_t b, int64_t *ret)
{
	return a >= 0 && b >= 0 && b <= SHIFT_MAX && (*ret = a >> b, true);
}

static bool power(int64_t a, int64_t b, int64_t *ret)
{
	*ret = 1;
	for (int64_t i = 0; i < b; i++)
		if (i > SHIFT_MAX || __builtin_mul_overflow(*ret, a, ret))
			return false;
	return b >= 0;
}

static const struct {
	const char *operator;
	number_function function;
} operators[] = {
	{ "+", add },	       { "-", subtract },      { "*", multiply }, { "/", divide_exactly },
	{ "//", divide },      { "%", modulo },	       { "**", power },	  { "<<", shift_left },
	{ ">>", shift_right }, { ">>>", shift_right }, { "&", and},	  { "|", or },
	{ "^", xor},	       { "<", less },	       { ">", more },	  { "<=", most },
	{ ">=", least },       { "==", same },	       { "===", same },	  { "!=", differ },
	{ "!==", differ },
};

static const struct value *of_numbers(struct script *script, const char *operator, int64_t a, int64_t b)
{
	int64_t result;

	for (size_t i = 0; i < ARRAY_SIZE(operators); i++) {
		if (str_equal(operators[i].operator, operator))
			return operators[i].function(a, b, &result) ? value_number(script->arena, result)
								    : &value_nothing;
	}
	return &value_nothing;
}

/* Unknown, but for its size. */
static const struct value *of_size(struct script *script, const struct value *value, int64_t size)
{
	struct value *made = value_new(script->arena, VALUE_UNKNOWN);

	if (!made)
		return &value_nothing;
	*made = *value_taint(script->arena, value);
	made->number = size;
	return made;
}

/* A text or list many times; what would fill the memory is an operation. */
static const struct value *repeat(struct script *script, const struct value *value, int64_t times,
				  uint32_t node)
{
	struct call call = { .node = node };
	int64_t size = value->kind == VALUE_TEXT ? value->size : value->count, total;
	const struct value *all = value_text(script->arena, "", 0, 0);

	if (times < 0)
		times = 0;
	if (__builtin_mul_overflow(size, times, &total))
		total = INT64_MAX;
	total = script_kept_size(script, node, total);
	if (total >= ALLOCATION_MIN)
		script_add(script, &call, OP_ALLOCATE, value_number(script->arena, total), 0);
	if (value->kind != VALUE_TEXT || total > REPEATED_MAX || times > REPEATED_MAX)
		return of_size(script, value, total);
	for (int64_t i = 0; i < times; i++)
		all = value_concat(script->arena, all, value_alone(script->arena, value));
	return all;
}

static const struct value *join_lists(struct script *script, const struct value *a, const struct value *b)
{
	const struct value **items =
		arena_alloc(script->arena, ((size_t)a->count + b->count + 1) * sizeof *items);

	if (!items)
		return &value_nothing;
	if (a->count)
		memcpy(items, a->items, a->count * sizeof *items);
	if (b->count)
		memcpy(items + a->count, b->items, b->count * sizeof *items);
	return value_list(script->arena, items, (size_t)a->count + b->count);
}

static bool is_text(const struct value *value)
{
	for (; value; value = value->other)
		if (value->kind == VALUE_TEXT)
			return true;
	return false;
}

/* pathlib: directory / name */
static const struct value *join_path(struct script *script, const struct value *a, const struct value *b)
{
	const struct value *path = value_concat(script->arena, a, value_text(script->arena, "/", 1, 0));

	if (b->kind == VALUE_TEXT && b->size && (b->text[0] == '/' || b->text[0] == '~'))
		return value_with_name(script->arena, b, a->name);
	return value_concat(script->arena, path, b);
}

static const struct value *add_values(struct script *script, const struct value *a, const struct value *b)
{
	if (is_text(a) || is_text(b))
		return value_concat(script->arena, a, b);
	if (a->kind == VALUE_LIST && b->kind == VALUE_LIST && !a->other && !b->other)
		return join_lists(script, a, b);
	return value_also_from(script->arena, value_taint(script->arena, a), b);
}

/* JavaScript reads a number out of a text where it needs one. */
static const struct value *as_number(struct script *script, const struct value *value)
{
	uint32_t size;

	if (!script->language->index_is_member || !value_is_exact(value) || value->other || value->size > 20)
		return value;
	return text_number(script, value_chars(script->arena, value, &size));
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* "__imp" + "ort__('os')": a word is cut in two. */
static bool cuts_word(const struct value *a, const struct value *b)
{
	return value_is_exact(a) && value_is_exact(b) && !a->name && !b->name && a->size && b->size &&
	       is_letter(a->text[a->size - 1]) && is_letter(b->text[0]);
}

static bool is_piece(const struct value *value)
{
	return value_is_exact(value) && !value->name && value->size && value->size <= PIECE_MAX &&
	       strspn(value->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") >= value->size;
}

/* "sys" + "tem": who cuts a name into pieces does not want it to be found. It tells where such a name is used. */
static const struct value *mark_assembled(struct script *script, const struct value *a, const struct value *b,
					  const struct value *sum)
{
	bool is_one = (is_piece(a) && is_piece(b)) || cuts_word(a, b);

	is_one |= value_is_exact(a) && a->flags & WORD_OBSCURED && is_piece(b);
	return is_one ? value_with_flags(script->arena, sum, WORD_OBSCURED) : sum;
}

const struct value *script_binary(struct script *script, const char *operator, const struct value * a,
				  const struct value *b, uint32_t node)
{
	static const char *const choosing[] = { "&&", "??", "and", "or", "||" };

	if (strchr("-/^", *operator) && a->kind + b->kind == VALUE_TEXT + VALUE_NUMBER) {
		a = as_number(script, a);
		b = as_number(script, b);
	}
	if (a->kind == VALUE_NUMBER && b->kind == VALUE_NUMBER && !a->other && !b->other &&
	    str_equal(operator, "**") && !script->language->index_is_member && a->number > 1 &&
	    b->number >= POWER_MIN)
		script_add(script, &(struct call){ .node = node }, OP_ALLOCATE,
			    value_number(script->arena, INT64_MAX), 0);
	if (a->kind == VALUE_NUMBER && b->kind == VALUE_NUMBER && !a->other && !b->other)
		return of_numbers(script, operator, a->number, b->number);
	/* st.st_mode | stat.S_ISUID */
	if (str_equal(operator, "|") && b->name && str_has_prefix(b->name, "stat.S_IS"))
		return b;
	if (str_equal(operator, "|") && a->name && str_has_prefix(a->name, "stat.S_IS"))
		return a;
	if (str_equal(operator, "+"))
		return mark_assembled(script, a, b, add_values(script, a, b));
	for (size_t i = 0; i < ARRAY_SIZE(choosing); i++)
		if (str_equal(choosing[i], operator))
			return value_either(script->arena, a, b);
	if (str_equal(operator, "%") && a->kind == VALUE_TEXT)
		return text_percent(script, a, b);
	if (str_equal(operator, "/") && a->name && is_text(a))
		return join_path(script, a, b);
	if (str_equal(operator, "*") && b->kind == VALUE_NUMBER &&
	    (a->kind == VALUE_TEXT || a->kind == VALUE_LIST))
		return repeat(script, a, b->number, node);
	if (str_equal(operator, "*") && a->kind == VALUE_NUMBER &&
	    (b->kind == VALUE_TEXT || b->kind == VALUE_LIST))
		return repeat(script, b, a->number, node);
	if (strchr("=!<>", *operator) || str_equal(operator, "in") || str_equal(operator, "instanceof"))
		return &value_nothing;
	return value_also_from(script->arena, value_taint(script->arena, a), b);
}
