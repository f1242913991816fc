/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "learn/action-text.h"

enum { SLOTS = 4 * COMPARE_KEPT_MAX, ACTION_TEXT_MAX = 16 << 10, LISTED_RECORD_WIDTH = 8 };

static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;   /* FNV-1a; who crowds a slot makes only this report slow */

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
	return hash;
}

/* The one about the same action that comes out the same way, or the empty slot for it. */
static uint32_t *slot_of(const struct comparison *comparison, const struct difference *wanted)
{
	size_t at = hash_of(wanted->action) % SLOTS;

	for (;; at = (at + 1) % SLOTS) {
		uint32_t number = comparison->slots[at];
		const struct difference *kept = number ? &comparison->kept[number - 1] : NULL;

		if (!kept || (kept->before == wanted->before && kept->after == wanted->after &&
			      strcmp(kept->action, wanted->action) == 0))
			return &comparison->slots[at];
	}
}

/* Takes difference->action over. */
static void keep(struct comparison *comparison, const struct difference *difference)
{
	uint32_t *slot = slot_of(comparison, difference);

	if (*slot) {
		comparison->kept[*slot - 1].count += difference->count;
	} else if (comparison->count < COMPARE_KEPT_MAX) {
		comparison->kept[comparison->count++] = *difference;
		*slot = (uint32_t)comparison->count;
		return;
	} else {
		comparison->left_out++;
	}
	free(difference->action);
}

static int compare(void *context, const struct observed *observed)
{
	struct comparison *comparison = context;
	struct decision before = policy_decide(comparison->before, &observed->action);
	struct decision after = policy_decide(comparison->after, &observed->action);
	struct difference difference = {
		.before = before.verdict, .after = after.verdict, .rule = after.rule, .reason = after.reason,
		.record = observed->record, .count = observed->count,
	};
	cleanup_buf struct buf text;

	if (before.verdict == after.verdict) {
		comparison->same += observed->count;
		return 0;
	}
	comparison->different += observed->count;
	buf_init(&text, ACTION_TEXT_MAX);
	action_to_text(&observed->action, &text);
	difference.action = strdup(buf_text(&text));
	if (!difference.action)
		return -ENOMEM;
	keep(comparison, &difference);
	return 0;
}

int comparison_make(struct comparison *ret_comparison, const struct policy *before, const struct policy *after,
		    int log_fd)
{
	struct comparison comparison = { .before = before, .after = after };
	int r = 0;

	comparison.kept = calloc(COMPARE_KEPT_MAX, sizeof *comparison.kept);
	comparison.slots = calloc(SLOTS, sizeof *comparison.slots);
	if (!comparison.kept || !comparison.slots)
		r = -ENOMEM;
	if (r == 0)
		r = observed_read(log_fd, compare, &comparison, &comparison.log);
	if (r == 0)
		*ret_comparison = comparison;
	else
		comparison_done(&comparison);
	return r;
}

void comparison_done(struct comparison *comparison)
{
	for (size_t i = 0; i < comparison->count; i++)
		free(comparison->kept[i].action);
	free(comparison->kept);
	free(comparison->slots);
	*comparison = (struct comparison){ 0 };
}

/* ---- for people ---- */

static void put_rule(const struct rule_origin *rule, struct buf *out)
{
	buf_put_text(out, rule->id);
	if (!rule->line)
		return;
	buf_put_text(out, "  ");
	buf_put_escaped(out, rule->file, strlen(rule->file), 0);
	buf_printf(out, ":%u", rule->line);
}

static void put_head(const struct comparison *comparison, const struct comparison_names *names, struct buf *out)
{
	buf_printf(out, "%s: ", names->session);
	if (comparison->different)
		buf_printf(out, "%llu of %llu", (unsigned long long)comparison->different,
			   (unsigned long long)(comparison->different + comparison->same));
	else
		buf_printf(out, "none of %llu", (unsigned long long)comparison->same);
	buf_put_text(out, " decisions would differ under ");
	buf_put_escaped(out, names->policy, strlen(names->policy), 0);
	buf_put_char(out, '\n');
}

/* What the comparison cannot show, so that silence means something. */
static void put_limits(const struct comparison *comparison, struct buf *out)
{
	if (comparison->before->audit_files != AUDIT_ALL)
		buf_put_text(out, "  not seen: files that were read; the session did not record them "
				  "(audit: {files: all})\n");
	if (comparison->log.is_policy_changed)
		buf_put_text(out, "  its policy was changed while it ran; compared is with its first one\n");
	if (!comparison->log.has_end)
		buf_put_text(out, "  it has not ended, or was killed: the log may go on\n");
	if (comparison->log.unreadable)
		buf_printf(out, "  records that cannot be decided about: %llu\n",
			   (unsigned long long)comparison->log.unreadable);
}

void comparison_format(const struct comparison *comparison, const struct comparison_names *names, struct buf *out)
{
	put_head(comparison, names, out);
	for (size_t i = 0; i < comparison->count; i++) {
		const struct difference *difference = &comparison->kept[i];

		buf_printf(out, "  record %llu  %s → %s  ", (unsigned long long)difference->record,
			   verdict_names[difference->before], verdict_names[difference->after]);
		buf_put_text(out, difference->action);
		if (difference->count > 1)
			buf_printf(out, "  (%llu times)", (unsigned long long)difference->count);
		buf_put_text(out, "\n      ");
		put_rule(&difference->rule, out);
		buf_printf(out, "  %s\n", difference->reason);
	}
	if (comparison->left_out)
		buf_printf(out, "  and %zu more\n", comparison->left_out);
	put_limits(comparison, out);
}

static void put_difference(struct json *json, const struct difference *difference)
{
	json_object_begin(json, NULL);
	json_string(json, "action", difference->action);
	json_string(json, "before", verdict_names[difference->before]);
	json_string(json, "after", verdict_names[difference->after]);
	json_string(json, "rule", difference->rule.id);
	json_bytes(json, "file", difference->rule.file, strlen(difference->rule.file));
	json_u64(json, "line", difference->rule.line);
	json_string(json, "reason", difference->reason);
	json_u64(json, "record", difference->record);
	json_u64(json, "count", difference->count);
	json_object_end(json);
}

void comparison_format_json(const struct comparison *comparison, const struct comparison_names *names, struct buf *out)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_string(&json, "session", names->session);
	json_bytes(&json, "policy", names->policy, strlen(names->policy));
	json_u64(&json, "same", comparison->same);
	json_u64(&json, "different", comparison->different);
	json_array_begin(&json, "differences");
	for (size_t i = 0; i < comparison->count; i++)
		put_difference(&json, &comparison->kept[i]);
	json_array_end(&json);
	json_u64(&json, "left_out", comparison->left_out);
	json_bool(&json, "reads_recorded", comparison->before->audit_files == AUDIT_ALL);
	json_bool(&json, "policy_changed", comparison->log.is_policy_changed);
	json_bool(&json, "ended", comparison->log.has_end);
	json_u64(&json, "unreadable", comparison->log.unreadable);
	json_object_end(&json);
	buf_put_char(out, '\n');
}
