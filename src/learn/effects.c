/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/effects.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "learn/action-text.h"
#include "learn/observed.h"
#include "policy/trial.h"

enum { LINE_MAX = 16 << 10, SHOWN_MAX = 300 };

static const struct {
	const char *name, *heading;
} groups[EFFECTS_GROUP_COUNT] = {
	[EFFECTS_OUTGOING] = { "outgoing", "would go out" },
	[EFFECTS_ASKED] = { "asked", "a person would be asked" },
	[EFFECTS_REFUSED] = { "refused", "refused by the policy" },
	[EFFECTS_FOUND] = { "found", "found" },
};

/* Why a line is not shown: another one says the same, and more. */
enum { IS_SHOWN, IS_SAID };

static int put(struct effects *effects, enum effects_group group, struct buf *line, uint64_t count, uint64_t record)
{
	struct tally_item *item;
	int r = buf_error(line);

	if (r == 0)
		r = tally_add(&effects->groups[group], buf_text(line), count, &item);
	return r == 1 ? tally_tell(item, record, "") : r;
}

static void put_rule(struct buf *line, const char *rule)
{
	buf_put_text(line, "  [");
	buf_put_escaped(line, rule, strlen(rule), SHOWN_MAX);
	buf_put_char(line, ']');
}

static bool has_rule(const struct observed *observed, const char *rule)
{
	return strcmp(observed->rule, rule) == 0;
}

/* Which group an action belongs to; EFFECTS_GROUP_COUNT: to none, it is what a trial may do. */
static enum effects_group group_of(const struct observed *observed)
{
	bool is_refused = strcmp(observed->verdict, "deny") == 0;
	enum action_kind kind = observed->action.kind;

	/* What is held back because this is a trial: the policy itself lets it out. */
	if (is_refused && (has_rule(observed, "builtin.replay") || has_rule(observed, POLICY_TRIAL_RULE)))
		return EFFECTS_OUTGOING;
	if (is_refused)
		return EFFECTS_REFUSED;
	return kind == ACTION_NET_CONNECT || kind == ACTION_HTTP_REQUEST ? EFFECTS_OUTGOING : EFFECTS_GROUP_COUNT;
}

/* The connection that a request goes over, in the words that its own line has. */
static int note_request(struct effects *effects, const struct observed *observed)
{
	struct action connection = { .kind = ACTION_NET_CONNECT, .subject = observed->action.subject,
				     .port = observed->action.port };
	struct tally_item *item;
	cleanup_buf struct buf line;
	int r;

	buf_init(&line, LINE_MAX);
	action_to_text(&connection, &line);
	r = buf_error(&line);
	if (r == 0)
		r = tally_add(&effects->requested, buf_text(&line), 1, &item);
	return r < 0 ? r : 0;
}

static int take_action(void *context, const struct observed *observed)
{
	enum effects_group group = group_of(observed);
	struct effects *effects = context;
	cleanup_buf struct buf line;
	int r = 0;

	buf_init(&line, LINE_MAX);
	if (group == EFFECTS_GROUP_COUNT)
		return 0;
	if (group == EFFECTS_OUTGOING && observed->action.kind == ACTION_HTTP_REQUEST)
		r = note_request(effects, observed);
	action_to_text(&observed->action, &line);
	if (group == EFFECTS_REFUSED)
		put_rule(&line, observed->rule);
	return r == 0 ? put(effects, group, &line, observed->count, observed->record) : r;
}

static int take_finding(void *context, const struct observed_finding *finding)
{
	struct effects *effects = context;
	cleanup_buf struct buf line;

	buf_init(&line, LINE_MAX);
	if (!*finding->action || strcmp(finding->action, "off") == 0)
		return 0;
	buf_put_escaped(&line, finding->severity, strlen(finding->severity), SHOWN_MAX);
	buf_put_text(&line, "  ");
	buf_put_escaped(&line, finding->id, strlen(finding->id), SHOWN_MAX);
	buf_put_text(&line, ": ");
	buf_put_escaped(&line, finding->reason, strlen(finding->reason), SHOWN_MAX);
	return put(effects, EFFECTS_FOUND, &line, 1, 0);
}

static int take_question(void *context, const char *subject, const char *rule)
{
	struct effects *effects = context;
	cleanup_buf struct buf line;

	buf_init(&line, LINE_MAX);
	buf_put_escaped(&line, subject, strlen(subject), SHOWN_MAX);
	put_rule(&line, rule);
	return put(effects, EFFECTS_ASKED, &line, 1, 0);
}

static int take_alert(void *context, const struct observed_alert *alert)
{
	const struct {
		const char *before, *text;
	} parts[] = { { "alert  ", alert->what }, { ": ", alert->subject }, { " to ", alert->host },
		      { " by ", alert->exe } };
	struct effects *effects = context;
	cleanup_buf struct buf line;

	buf_init(&line, LINE_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (i && !*parts[i].text)
			continue;
		buf_put_text(&line, parts[i].before);
		buf_put_escaped(&line, parts[i].text, strlen(parts[i].text), SHOWN_MAX);
	}
	return put(effects, EFFECTS_FOUND, &line, 1, 0);
}

static bool is_in(const struct tally *tally, const char *key)
{
	for (size_t i = 0; i < tally->count; i++)
		if (strcmp(tally->items[i].key, key) == 0)
			return true;
	return false;
}

static void leave_out(struct effects *effects, enum effects_group group, size_t i)
{
	effects->groups[group].items[i].value = IS_SAID;
	effects->numbers.of[group]--;
}

/* A connection and a request over it are one thing that goes out; what is asked about is refused by nobody yet. */
static void leave_out_said(struct effects *effects)
{
	const struct tally *outgoing = &effects->groups[EFFECTS_OUTGOING], *refused = &effects->groups[EFFECTS_REFUSED];

	for (size_t i = 0; i < outgoing->count; i++)
		if (is_in(&effects->requested, outgoing->items[i].key))
			leave_out(effects, EFFECTS_OUTGOING, i);
	for (size_t i = 0; i < refused->count; i++) {
		const char *subject = strchr(refused->items[i].key, ' ');

		if (subject && is_in(&effects->groups[EFFECTS_ASKED], subject + 1))
			leave_out(effects, EFFECTS_REFUSED, i);
	}
}

static int init(struct effects *effects)
{
	int r = tally_init(&effects->requested, EFFECTS_KEPT_MAX);

	for (size_t i = 0; r == 0 && i < EFFECTS_GROUP_COUNT; i++)
		r = tally_init(&effects->groups[i], EFFECTS_KEPT_MAX);
	return r;
}

int effects_read(struct effects *ret_effects, int log_fd)
{
	static const struct observed_visits visits = { take_action, take_finding, take_question, take_alert };
	struct effects effects = { 0 };
	struct observed_log log;
	int r = init(&effects);

	if (r == 0)
		r = observed_read_all(log_fd, &visits, &effects, &log);
	if (r < 0) {
		effects_done(&effects);
		return r;
	}
	for (size_t i = 0; i < EFFECTS_GROUP_COUNT; i++)
		effects.numbers.of[i] = effects.groups[i].count + effects.groups[i].left_out;
	leave_out_said(&effects);
	effects.numbers.unreadable = log.unreadable;
	effects.numbers.has_end = log.has_end;
	*ret_effects = effects;
	return 0;
}

void effects_done(struct effects *effects)
{
	tally_done(&effects->requested);
	for (size_t i = 0; i < EFFECTS_GROUP_COUNT; i++)
		tally_done(&effects->groups[i]);
}

static void put_item(struct buf *out, const struct tally_item *item)
{
	buf_printf(out, "    %s", item->key);
	if (item->count > 1)
		buf_printf(out, "  (%llu times)", (unsigned long long)item->count);
	buf_put_char(out, '\n');
}

void effects_format(const struct effects *effects, uint64_t lines, struct buf *out)
{
	for (size_t i = 0; i < EFFECTS_GROUP_COUNT; i++) {
		const struct tally *tally = &effects->groups[i];
		uint64_t total = effects->numbers.of[i], left = lines;

		if (!total)
			continue;
		buf_printf(out, "  %s:\n", groups[i].heading);
		for (size_t j = 0; j < tally->count && left; j++) {
			if (tally->items[j].value == IS_SAID)
				continue;
			put_item(out, &tally->items[j]);
			left--;
		}
		if (total > lines)
			buf_printf(out, "    and %llu more\n", (unsigned long long)(total - lines));
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
			if (tally->items[j].value == IS_SAID)
				continue;
			json_object_begin(&json, NULL);
			json_string(&json, "what", tally->items[j].key);
			json_u64(&json, "times", tally->items[j].count);
			json_object_end(&json);
		}
		json_array_end(&json);
	}
	json_object_end(&json);
}
