/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "verify/script/text.h"

const struct value *call_argument(const struct call *call, int at, const char *keyword)
{
	int place = 0;

	for (size_t i = 0; i < call->count; i++) {
		if (call->keywords[i]) {
			if (keyword && str_equal(call->keywords[i], keyword))
				return call->arguments[i];
		} else if (at >= 0 && place++ == at) {
			return call->arguments[i];
		}
	}
	for (size_t i = 0; keyword && i < call->count; i++) {
		const struct value *item = value_item(call->arguments[i], keyword);

		if (item)
			return item;
	}
	return NULL;
}

bool call_is_blank(const struct call *call)
{
	for (size_t i = 0; i < call->count; i++) {
		const struct value *value = call->arguments[i];

		if (value->kind != VALUE_UNKNOWN || value->name || value->origins.count || value->flags ||
		    value->other)
			return false;
	}
	return true;
}

const struct value *text_first(const struct call *call)
{
	return call->count ? call->arguments[0] : call->self ? call->self : &value_nothing;
}

const struct value *text_argument(const struct call *call, size_t at)
{
	const struct value *value = call_argument(call, (int)at, NULL);

	return value ? value : &value_nothing;
}

const char *text_exact(struct script *script, const struct value *value, uint32_t *ret_size)
{
	return value_is_exact(value) ? value_chars(script->arena, value, ret_size) : NULL;
}
