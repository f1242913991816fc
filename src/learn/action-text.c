/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/action-text.h"

#include <string.h>

enum { SUBJECT_SHOWN = 512, ARGUMENT_SHOWN = 80, ARGUMENTS_SHOWN = 12 };

static void put(struct buf *out, const char *text, size_t max)
{
	buf_put_escaped(out, text, strlen(text), max);
}

static void put_arguments(const struct action *action, struct buf *out)
{
	size_t i = 1;

	if (!action->argv || !action->argv[0])
		return;
	for (; action->argv[i] && i <= ARGUMENTS_SHOWN; i++) {
		buf_put_char(out, ' ');
		put(out, action->argv[i], ARGUMENT_SHOWN);
	}
	if (action->argv[i] || action->is_cut)
		buf_put_text(out, " …");
}

void action_to_text(const struct action *action, struct buf *out)
{
	bool is_request = action->kind == ACTION_HTTP_REQUEST;

	buf_put_text(out, action_kind_names[action->kind]);
	buf_put_char(out, ' ');
	if (is_request) {
		put(out, action->method, ARGUMENT_SHOWN);
		buf_put_text(out, " https://");
	}
	put(out, action->subject, SUBJECT_SHOWN);
	if (action->port && !(is_request && action->port == 443))
		buf_printf(out, ":%u", (unsigned)action->port);
	if (is_request)
		put(out, action->path, SUBJECT_SHOWN);
	if (action->kind == ACTION_EXEC)
		put_arguments(action, out);
}
