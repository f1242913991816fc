/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/script/text.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

enum { ITEMS_MAX = SCRIPT_REPEAT_MAX, PIECE_MAX = 5 };

#define LENGTH_MIN (1ll << 30)

static const struct value *plain_text(struct script *script, const char *text)
{
	return value_text(script->arena, text, strlen(text), 0);
}

static const struct value *same_text(struct script *script, const struct call *call)
{
	return text_first(call);
}

static const struct value *self_text(struct script *script, const struct call *call)
{
	return call->self;
}

static const struct value *code_of(struct script *script, const struct call *call)
{
	const struct value *of =
		call->method && call->self && call->self->kind == VALUE_TEXT ? call->self : text_first(call);
	const struct value *at = of == call->self ? text_argument(call, 0) : NULL;
	int64_t place = at && at->kind == VALUE_NUMBER ? at->number : 0;

	if (of->kind != VALUE_TEXT || place < 0 || place >= of->size || of->text[place] == WORD_UNKNOWN)
		return value_taint(script->arena, of);
	return value_number(script->arena, (uint8_t)of->text[place]);
}

static const struct value *to_number(struct script *script, const struct call *call)
{
	uint32_t size;
	const struct value *from = text_first(call), *base = text_argument(call, 1);
	const char *text = text_exact(script, from, &size);
	char *end;
	long long number;

	if (from->kind == VALUE_NUMBER)
		return from;
	if (!text || size > 20)
		return value_taint(script->arena, from);
	number = strtoll(text, &end,
			 base->kind == VALUE_NUMBER && base->number >= 0 && base->number <= 36
				 ? (int)base->number
				 : 10);
	return end != text ? value_number(script->arena, number) : &value_nothing;
}

/* ["e", "x", "e", "c"], or somewhat longer pieces with nothing between them. */
static bool is_cut_up(const struct value *list, const struct value *between)
{
	uint32_t size_max = between->kind == VALUE_TEXT && !between->size ? PIECE_MAX : 2;

	for (uint32_t i = 0; i < list->count; i++)
		if (!value_is_exact(list->items[i]) || list->items[i]->size > size_max)
			return false;
	return list->count > 2;
}

static const struct value *join(struct script *script, const struct call *call)
{
	bool is_python = call->self->kind == VALUE_TEXT;
	const struct value *list = is_python ? text_argument(call, 0) : call->self;
	const struct value *between = is_python ? call->self : text_argument(call, 0), *all = NULL;

	if (list->kind == VALUE_TEXT && between->kind == VALUE_TEXT && !between->size)
		return list;
	if (list->kind != VALUE_LIST)
		return value_taint(script->arena, value_also_from(script->arena, list, between));
	if (!is_python && !call->count)
		between = plain_text(script, ",");
	for (uint32_t i = 0; i < list->count; i++) {
		if (all)
			all = value_concat(script->arena, all, between);
		all = all ? value_concat(script->arena, all, list->items[i])
			  : value_concat(script->arena, plain_text(script, ""), list->items[i]);
	}
	if (all && list->is_cut)
		all = value_concat(script->arena, all, &value_nothing);
	if (all && is_cut_up(list, between))
		all = value_with_flags(script->arena, all, WORD_OBSCURED);
	return all ? all : plain_text(script, "");
}

static const struct value *map_case(struct script *script, const struct value *from, int (*change)(int))
{
	char *copy = from->kind == VALUE_TEXT ? arena_text_n(script->arena, from->text, from->size) : NULL;

	for (uint32_t i = 0; copy && i < from->size; i++)
		copy[i] = (char)change((unsigned char)copy[i]);
	return copy ? value_also_from(script->arena,
				      value_text_holes(script->arena, copy, from->size, from->flags), from)
		    : from;
}

static const struct value *lower(struct script *script, const struct call *call)
{
	return map_case(script, call->self, tolower);
}

static const struct value *upper(struct script *script, const struct call *call)
{
	return map_case(script, call->self, toupper);
}

static const struct value *strip(struct script *script, const struct call *call)
{
	const struct value *from = call->self;
	uint32_t start = 0, end = from->size;

	if (from->kind != VALUE_TEXT || call->count)
		return from;
	while (start < end && isspace((unsigned char)from->text[start]))
		start++;
	while (end > start && isspace((unsigned char)from->text[end - 1]))
		end--;
	return value_also_from(script->arena,
			       value_text_holes(script->arena, from->text + start, end - start, from->flags),
			       from);
}

/* Every place (Python, replaceAll, a regular expression is not known) or the first one. */
static const struct value *replace(struct script *script, const struct call *call)
{
	uint32_t size, old_size;
	const char *text = text_exact(script, call->self, &size),
		   *old = text_exact(script, text_argument(call, 0), &old_size), *at;
	const struct value *all = plain_text(script, "");
	bool once = script->language->index_is_member && str_equal(call->method, "replace");

	if (!text || !old || !old_size) {
		if (text_argument(call, 0)->kind != VALUE_UNKNOWN)
			return call->self;
		all = value_taint(script->arena,
				  value_also_from(script->arena, call->self, text_argument(call, 1)));
		/* What is replaced in a text that stands there is known to whoever wrote it. */
		return text ? value_with_flags(script->arena, all, WORD_OBSCURED) : all;
	}
	while ((at = memmem(text, size, old, old_size))) {
		all = value_concat(script->arena, all,
				   value_text(script->arena, text, (size_t)(at - text), 0));
		all = value_concat(script->arena, all, text_argument(call, 1));
		size -= (uint32_t)(at - text) + old_size;
		text = at + old_size;
		if (once)
			break;
	}
	all = value_concat(script->arena, all, value_text(script->arena, text, size, call->self->flags));
	return value_also_from(script->arena, all, call->self);
}

static const struct value *split(struct script *script, const struct call *call)
{
	const struct value *items[ITEMS_MAX];
	uint32_t size, mark_size = 1, count = 0;
	const char *text = text_exact(script, call->self, &size),
		   *mark = text_exact(script, text_argument(call, 0), &mark_size), *at;
	const char *end = text ? text + size : NULL;

	if (!text || (call->count && !mark))
		return value_taint(script->arena, call->self);
	if (mark && !mark_size) {
		for (; count < size && count < ITEMS_MAX; count++)
			items[count] = value_text(script->arena, text + count, 1, call->self->flags);
		return value_list(script->arena, items, count);
	}
	while (count < ITEMS_MAX && text <= end) {
		if (!mark) {
			text += strspn(text, " \t\n\r");
			if (text >= end)
				break;
		}
		at = mark ? memmem(text, (size_t)(end - text), mark, mark_size)
			  : text + strcspn(text, " \t\n\r");
		at = at ? at : end;
		items[count++] = value_text(script->arena, text, (size_t)(at - text), call->self->flags);
		text = at + mark_size;
	}
	return value_list(script->arena, items, count);
}

/* Bytes or letters that something else stands for: 1234567.to_bytes(3, "big"), text.translate(table). */
static const struct value *hidden_text(struct script *script, const struct call *call)
{
	if (call->self->kind != VALUE_NUMBER && !value_is_exact(call->self))
		return NULL;
	return value_with_flags(script->arena, value_taint(script->arena, call->self), WORD_OBSCURED);
}

/* n.toString(36) */
static const struct value *to_string(struct script *script, const struct call *call)
{
	return call->self->kind == VALUE_NUMBER && call->count ? hidden_text(script, call) : call->self;
}

static const struct value *words_of(struct script *script, const struct call *call)
{
	struct call inner = { .node = call->node, .self = text_first(call), .callee = call->callee };

	return split(script, &inner);
}

static const struct value *reverse(struct script *script, const struct call *call)
{
	const struct value *from =
		call->method && call->self && call->self->kind == VALUE_LIST ? call->self : text_first(call);
	const struct value **items = arena_alloc(script->arena, (from->count + 1) * sizeof *items);
	char *copy;

	if (from->kind == VALUE_TEXT) {
		copy = arena_text_n(script->arena, from->text, from->size);
		for (uint32_t i = 0; copy && i < from->size; i++)
			copy[i] = from->text[from->size - 1 - i];
		return copy ? value_text_holes(script->arena, copy, from->size,
					       from->flags | WORD_FROM_DECODED)
			    : from;
	}
	if (from->kind != VALUE_LIST || !items)
		return value_taint(script->arena, from);
	for (uint32_t i = 0; i < from->count; i++)
		items[i] =
			value_with_flags(script->arena, from->items[from->count - 1 - i], WORD_FROM_DECODED);
	return value_list(script->arena, items, from->count);
}

static const struct value *concat(struct script *script, const struct call *call)
{
	const struct value *all = call->self;

	for (size_t i = 0; i < call->count; i++) {
		const struct value *more = call->arguments[i];

		if (all->kind == VALUE_LIST && more->kind != VALUE_LIST)
			more = value_list(script->arena, &more, 1);
		all = script_binary(script, "+", all, more, call->node);
	}
	return all;
}

static const struct value *format(struct script *script, const struct call *call)
{
	return call->self->kind == VALUE_TEXT ? text_format(script, call->self, call) : NULL;
}

/* A function for each item of a list. */
static const struct value *map_list(struct script *script, const struct call *call, const struct value *list,
				    const struct value *function)
{
	const struct value *items[ITEMS_MAX];
	uint32_t count = list->kind == VALUE_LIST ? list->count : value_is_exact(list) ? list->size : 0;
	struct script_place outer;
	const struct value *one;

	if (count && count <= ITEMS_MAX && !list->is_cut &&
	    (script->bounds.repeats += count) <= SCRIPT_REPEATS_MAX) {
		for (uint32_t i = 0; i < count; i++)
			items[i] = script_call_back(
				script, function,
				script_index(script, list, value_number(script->arena, i), call->node),
				call->node);
		return value_list(script->arena, items, count);
	}
	outer = script_enter_branch(script, CONTEXT_LOOP);
	one = script_call_back(script, function, script_index(script, list, &value_nothing, call->node),
			       call->node);
	script_leave_branch(script, outer);
	return value_taint(script->arena, value_also_from(script->arena, one, list));
}

static const struct value *map_function(struct script *script, const struct call *call)
{
	return map_list(script, call, text_argument(call, 1), text_argument(call, 0));
}

static const struct value *map_method(struct script *script, const struct call *call)
{
	const struct value *function = text_argument(call, 0);

	if (function->kind != VALUE_FUNCTION && !function->name)
		return NULL;
	return map_list(script, call, call->self, function);
}

/* range(1000000): how many there are is all that is kept. */
static const struct value *long_range(struct script *script, int64_t distance, int64_t by)
{
	struct value *made = value_new(script->arena, VALUE_UNKNOWN);

	if (!made)
		return &value_nothing;
	made->name = "range()";
	made->number = distance / (by > 0 ? by : -by);
	return made;
}

static const struct value *range(struct script *script, const struct call *call)
{
	const struct value *items[ITEMS_MAX], *last = text_argument(call, call->count > 1 ? 1 : 0),
					      *step = text_argument(call, 2);
	int64_t from = call->count > 1 && text_argument(call, 0)->kind == VALUE_NUMBER
			       ? text_argument(call, 0)->number
			       : 0,
		by = 1;
	uint32_t count = 0;

	if (step->kind == VALUE_NUMBER)
		by = step->number;
	if (last->kind != VALUE_NUMBER || !by ||
	    (call->count > 1 && text_argument(call, 0)->kind != VALUE_NUMBER))
		return &value_nothing;
	for (int64_t i = from; by > 0 ? i < last->number : i > last->number; i += by) {
		if (count == ITEMS_MAX)
			return long_range(script, by > 0 ? last->number - from : from - last->number, by);
		items[count++] = value_number(script->arena, i);
		if (i > INT32_MAX || i < INT32_MIN || by > INT32_MAX || by < INT32_MIN)
			break;
	}
	return value_list(script->arena, items, count);
}

static const struct value *length(struct script *script, const struct call *call)
{
	const struct value *of = text_first(call);

	if (value_is_exact(of))
		return value_number(script->arena, of->size);
	return of->kind == VALUE_LIST && !of->is_cut ? value_number(script->arena, of->count)
						     : &value_nothing;
}

/* slice(a, b), substring(a, b); substr(a, n) is so rare that its end is left open. */
static const struct value *slice(struct script *script, const struct call *call)
{
	const struct value *from = call->self, *a = text_argument(call, 0), *b = text_argument(call, 1);
	int64_t size = from->kind == VALUE_TEXT ? from->size : from->count, start, end = size;

	if ((from->kind != VALUE_TEXT && from->kind != VALUE_LIST) || a->kind != VALUE_NUMBER)
		return call->count ? value_taint(script->arena, from) : from;
	start = a->number < 0 ? a->number + size : a->number;
	if (b->kind == VALUE_NUMBER)
		end = str_equal(call->method, "substr") ? start + b->number
		      : b->number < 0			? b->number + size
							: b->number;
	start = start < 0 ? 0 : start > size ? size : start;
	end = end < start ? start : end > size ? size : end;
	if (from->kind == VALUE_LIST)
		return value_list(script->arena, from->items + start, (size_t)(end - start));
	return value_also_from(
		script->arena,
		value_text_holes(script->arena, from->text + start, (size_t)(end - start), from->flags),
		from);
}

static const struct value *at(struct script *script, const struct call *call)
{
	return script_index(script, call->self, text_argument(call, 0), call->node);
}

static const struct value *get(struct script *script, const struct call *call)
{
	const struct value *value = script_index(script, call->self, text_argument(call, 0), call->node);

	if (call->self->kind != VALUE_MAP &&
	    !(call->self->name && str_equal(call->self->name, script->language->environment)))
		return NULL;
	return call->count > 1 && value == &value_nothing ? text_argument(call, 1) : value;
}

static const struct value *to_list(struct script *script, const struct call *call)
{
	const struct value *from = text_first(call), *items[ITEMS_MAX];

	if (from->name && str_equal(from->name, "range()") && from->number >= LENGTH_MIN)
		script_add(script, call, OP_ALLOCATE, value_number(script->arena, from->number), 0);
	if (!value_is_exact(from) || from->size > ITEMS_MAX)
		return from;
	for (uint32_t i = 0; i < from->size; i++)
		items[i] = value_text(script->arena, from->text + i, 1, from->flags);
	return value_list(script->arena, items, from->size);
}

/* Array.from("abc"), Array.from(list, f), Array.from({length: 3}, f) */
static const struct value *array_from(struct script *script, const struct call *call)
{
	const struct value *list = to_list(script, call), *function = text_argument(call, 1), *made;
	const struct value *length = value_item(list, "length");
	int64_t outer;

	if (length && length->kind == VALUE_NUMBER && length->number >= LENGTH_MIN)
		script_add(script, call, OP_ALLOCATE, length, 0);
	if (function->kind != VALUE_FUNCTION)
		return list;
	outer = script_repeat(script, length && length->kind == VALUE_NUMBER ? length->number : 0);
	made = map_list(script, call, length ? &value_nothing : list, function);
	script->times = outer;
	return made;
}

/* By name; methods of texts and lists begin with a dot. Sorted (a test sees to it). */
const struct text_function text_functions[] = {
	{ ".as_posix", self_text },
	{ ".at", at },
	{ ".charAt", at },
	{ ".charCodeAt", code_of },
	{ ".codePointAt", code_of },
	{ ".concat", concat },
	{ ".decode", text_decode },
	{ ".encode", self_text },
	{ ".forEach", map_method },
	{ ".format", format },
	{ ".get", get },
	{ ".join", join },
	{ ".joinpath", text_join_paths },
	{ ".lower", lower },
	{ ".lstrip", strip },
	{ ".map", map_method },
	{ ".replace", replace },
	{ ".replaceAll", replace },
	{ ".reverse", reverse },
	{ ".rstrip", strip },
	{ ".slice", slice },
	{ ".split", split },
	{ ".strip", strip },
	{ ".substr", slice },
	{ ".substring", slice },
	{ ".toLowerCase", lower },
	{ ".toString", to_string },
	{ ".toUpperCase", upper },
	{ ".to_bytes", hidden_text },
	{ ".translate", hidden_text },
	{ ".trim", strip },
	{ ".upper", upper },
	{ "Array.from", array_from },
	{ "Buffer", text_to_bytes },
	{ "Buffer.from", text_to_bytes },
	{ "Number", to_number },
	{ "Object.getPrototypeOf", same_text },
	{ "String", same_text },
	{ "String.fromCharCode", text_from_codes },
	{ "String.fromCodePoint", text_from_codes },
	{ "TextDecoder().decode", same_text },
	{ "URL", same_text },
	{ "Uint8Array", text_to_bytes },
	{ "Uint8Array.from", text_to_bytes },
	{ "ascii", same_text },
	{ "atob", text_from_base64 },
	{ "base64.a85decode", text_from_packed },
	{ "base64.b16decode", text_from_hex },
	{ "base64.b32decode", text_from_base32 },
	{ "base64.b64decode", text_from_base64 },
	{ "base64.b85decode", text_from_packed },
	{ "base64.decodebytes", text_from_base64 },
	{ "base64.standard_b64decode", text_from_base64 },
	{ "base64.urlsafe_b64decode", text_from_base64 },
	{ "binascii.a2b_base64", text_from_base64 },
	{ "binascii.a2b_hex", text_from_hex },
	{ "binascii.unhexlify", text_from_hex },
	{ "bytearray", text_to_bytes },
	{ "bytearray.fromhex", text_from_hex },
	{ "bytes", text_to_bytes },
	{ "bytes.fromhex", text_from_hex },
	{ "bz2.decompress", text_from_packed },
	{ "chr", text_from_codes },
	{ "codecs.decode", text_from_codec },
	{ "decodeURI", text_from_percent },
	{ "decodeURIComponent", text_from_percent },
	{ "glob.escape", same_text },
	{ "gzip.decompress", text_from_packed },
	{ "inspect.getfile", text_file_of },
	{ "inspect.getsourcefile", text_file_of },
	{ "int", to_number },
	{ "len", length },
	{ "list", to_list },
	{ "lzma.decompress", text_from_packed },
	{ "map", map_function },
	{ "ord", code_of },
	{ "os.fspath", same_text },
	{ "os.getcwd", text_here },
	{ "os.homedir", text_home },
	{ "os.path.abspath", same_text },
	{ "os.path.expanduser", same_text },
	{ "os.path.expandvars", text_expand },
	{ "os.path.join", text_join_paths },
	{ "os.path.normpath", same_text },
	{ "os.path.realpath", same_text },
	{ "parseInt", to_number },
	{ "path.join", text_join_paths },
	{ "path.normalize", same_text },
	{ "path.resolve", text_join_paths },
	{ "pathlib.Path", text_make_path },
	{ "pathlib.Path().absolute", self_text },
	{ "pathlib.Path().expanduser", self_text },
	{ "pathlib.Path().resolve", self_text },
	{ "pathlib.Path.cwd", text_here },
	{ "pathlib.Path.home", text_home },
	{ "process.cwd", text_here },
	{ "range", range },
	{ "reversed", reverse },
	{ "shlex.join", words_of },
	{ "shlex.quote", same_text },
	{ "shlex.split", words_of },
	{ "site.getusersitepackages", text_user_packages },
	{ "str", same_text },
	{ "tuple", to_list },
	{ "unescape", text_from_percent },
	{ "url.pathToFileURL", same_text },
	{ "urllib.parse.unquote", text_from_percent },
	{ "zlib.decompress", text_from_packed },
	{ "zlib.gunzipSync", text_from_packed },
	{ "zlib.inflateSync", text_from_packed },
	{ "zlib.unzipSync", text_from_packed },
};
const size_t text_function_count = ARRAY_SIZE(text_functions);
