/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/effects.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "learn/action-text.h"
#include "learn/observed.h"

enum { LINE_MAX = 16 << 10, SHOWN_MAX = 300 };

static const struct {
	const char *name, *heading;
} groups[EFFECTS_GROUP_COUNT] = {
	[EFFECTS_OUTGOING] = { "outgoing", "would go out" },
	[EFFECTS_ASKED] = { "asked", "a person would be asked" },
	[EFFECTS_REFUSED] = { "refused", "refused by the policy" },
	[EFFECTS_FOUND] = { "found", "found in what it starts" },
};

static int put(struct effects *effects, enum effects_group group, const struct buf *line, uint64_t count,
	       uint64_t record)
{
	struct tally_item *item;
	int r = buf_error(line);

	if (r == 0)
		r = tally_add(&effects->groups[group], buf_text((struct buf *)line), count, &item);
	return r == 1 ? tally_tell(item, record, "") : r;
}

static bool is_network(enum action_kind kind)
{
	return kind == ACTION_NET_CONNECT || kind == ACTION_HTTP_REQUEST || kind == ACTION_NET_DNS;
}

/* What is held back because this is a trial; the policy itself lets it out. */
static bool is_held_back(const struct observed *observed)
{
	if (!is_network(observed->action.kind) || observed->action.kind == ACTION_NET_DNS)
		return false;
	return strcmp(observed->verdict, "deny") != 0 || strcmp(observed->rule, "builtin.replay") == 0;
}

static int take_action(void *context, const struct observed *observed)
{
	enum effects_group group = is_held_back(observed) ? EFFECTS_OUTGOING : EFFECTS_REFUSED;
	struct effects *effects = context;
	cleanup_buf struct buf line;

	buf_init(&line, LINE_MAX);
	if (group == EFFECTS_REFUSED && strcmp(observed->verdict, "deny") != 0)
		return 0;
	action_to_text(&observed->action, &line);
	if (group == EFFECTS_REFUSED) {
		buf_put_text(&line, "  [");
		buf_put_escaped(&line, observed->rule, strlen(observed->rule), SHOWN_MAX);
		buf_put_char(&line, ']');
	}
	return put(effects, group, &line, observed->count, observed->record);
}

static int take_finding(void *context, const struct observed_finding *finding)
{
	struct effects *effects = context;
	cleanup_buf struct buf line;
	uint64_t before = effects->groups[EFFECTS_FOUND].count;
	int r;

	buf_init(&line, LINE_MAX);
	if (!*finding->action || strcmp(finding->action, "off") == 0)
		return 0;
	buf_put_escaped(&line, finding->severity, strlen(finding->severity), SHOWN_MAX);
	buf_put_text(&line, "  ");
	buf_put_escaped(&line, finding->id, strlen(finding->id), SHOWN_MAX);
	buf_put_text(&line, ": ");
	buf_put_escaped(&line, finding->reason, strlen(finding->reason), SHOWN_MAX);
	r = put(effects, EFFECTS_FOUND, &line, 1, 0);
	if (r == 0 && effects->groups[EFFECTS_FOUND].count > before)
		effects->numbers.grave += strcmp(finding->severity, "high") == 0 ||
					  strcmp(finding->severity, "critical") == 0;
	return r;
}

static int take_question(void *context, const char *subject, const char *rule)
{
	struct effects *effects = context;
	cleanup_buf struct buf line;

	buf_init(&line, LINE_MAX);
	buf_put_escaped(&line, subject, strlen(subject), SHOWN_MAX);
	buf_put_text(&line, "  [");
	buf_put_escaped(&line, rule, strlen(rule), SHOWN_MAX);
	buf_put_char(&line, ']');
	return put(effects, EFFECTS_ASKED, &line, 1, 0);
}

int effects_read(struct effects *ret_effects, int log_fd)
{
	static const struct observed_visits visits = { take_action, take_finding, take_question };
	struct effects effects = { 0 };
	struct observed_log log;
	int r = 0;

	for (size_t i = 0; r == 0 && i < EFFECTS_GROUP_COUNT; i++)
		r = tally_init(&effects.groups[i], EFFECTS_KEPT_MAX);
	if (r == 0)
		r = observed_read_all(log_fd, &visits, &effects, &log);
	if (r < 0) {
		effects_done(&effects);
		return r;
	}
	for (size_t i = 0; i < EFFECTS_GROUP_COUNT; i++)
		effects.numbers.of[i] = effects.groups[i].count + effects.groups[i].left_out;
	effects.numbers.unreadable = log.unreadable;
	effects.numbers.has_end = log.has_end;
	*ret_effects = effects;
	return 0;
}

void effects_done(struct effects *effects)
{
	for (size_t i = 0; i < EFFECTS_GROUP_COUNT; i++)
		tally_done(&effects->groups[i]);
}

void effects_format(const struct effects *effects, uint64_t lines, struct buf *out)
{
	for (size_t i = 0; i < EFFECTS_GROUP_COUNT; i++) {
		const struct tally *tally = &effects->groups[i];

		if (!tally->count)
			continue;
		buf_printf(out, "  %s:\n", groups[i].heading);
		for (size_t j = 0; j < tally->count && j < lines; j++) {
			buf_printf(out, "    %s", tally->items[j].key);
			if (tally->items[j].count > 1)
				buf_printf(out, "  (%llu times)", (unsigned long long)tally->items[j].count);
			buf_put_char(out, '\n');
		}
		if (tally->count > lines)
			buf_printf(out, "    and %llu more\n",
				   (unsigned long long)(tally->count - lines + tally->left_out));
	}
}

void effects_format_json(const struct effects *effects, struct buf *out)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	for (size_t i = 0; i < EFFECTS_GROUP_COUNT; i++) {
		const struct tally *tally = &effects->groups[i];

		json_array_begin(&json, groups[i].name);
		for (size_t j = 0; j < tally->count; j++) {
			json_object_begin(&json, NULL);
			json_string(&json, "what", tally->items[j].key);
			json_u64(&json, "times", tally->items[j].count);
			json_object_end(&json);
		}
		json_array_end(&json);
	}
	json_object_end(&json);
}
