/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/compare.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "lang/print/print.h"
#include "learn/action-text.h"

enum { ACTION_TEXT_MAX = 16 << 10 };

/* Before an action's text in its key: equal actions that come out otherwise are another difference. */
enum { KEY_VERDICTS = 2 };

static int compare(void *context, const struct observed *observed)
{
	struct comparison *comparison = context;
	struct decision before = observed_decide(comparison->before, observed);
	struct decision after = observed_decide(comparison->after, observed);
	struct difference difference = { .before = before.verdict, .after = after.verdict, .rule = after.rule,
					 .reason = after.reason };
	cleanup_buf struct buf key;
	struct tally_item *item;
	int r;

	buf_init(&key, ACTION_TEXT_MAX);
	/* What was not there was started by nobody: no policy has a say in it. */
	if (observed->is_missing)
		return 0;
	comparison->relative += observed->is_relative;
	if (observed->is_relative || (observed->is_directory && comparison->is_without_listings))
		return 0;
	if (before.verdict == after.verdict) {
		comparison->same += observed->count;
		return 0;
	}
	comparison->different += observed->count;
	buf_printf(&key, "%d%d", (int)before.verdict, (int)after.verdict);
	action_to_text(&observed->action, &key);
	r = tally_add(&comparison->tally, buf_text(&key), observed->count, &item);
	if (r == 1) {
		comparison->kept[item - comparison->tally.items] = difference;
		r = tally_tell(item, observed->record, observed->exe);
	}
	return r;
}

/* Which records tell of it, and which dimensions of the policies decide about it. */
static const struct {
	const char *name, *what, *setting;
	size_t depth;                /* of the records: its offset in struct policy */
	enum audit_depth needed;
	const char *dimensions[2];   /* as print_diff_has() has them */
} gaps[COMPARISON_GAP_COUNT] = {
	[GAP_READS] = { "reads", "files that were read", "files: all", offsetof(struct policy, audit.files),
			AUDIT_ALL, { "file.read" } },
	[GAP_WRITES] = { "writes", "files that were written, removed or renamed", "files: writes",
			 offsetof(struct policy, audit.files), AUDIT_WRITES, { "file.write" } },
	[GAP_PROGRAMS] = { "programs", "programs that were started", "exec: all",
			   offsetof(struct policy, audit.exec), AUDIT_WRITES, { "exec" } },
	[GAP_NETWORK] = { "network", "names, connections and requests", "network: all",
			  offsetof(struct policy, audit.network), AUDIT_WRITES, { "net.", "http." } },
};

static void find_gaps(struct comparison *comparison, const struct comparison_sides *sides)
{
	for (size_t i = 0; i < COMPARISON_GAP_COUNT; i++) {
		enum audit_depth depth = *(const enum audit_depth *)((const char *)sides->before + gaps[i].depth);

		comparison->is_unrecorded[i] = depth < gaps[i].needed;
		for (size_t j = 0; comparison->is_unrecorded[i] && j < ARRAY_SIZE(gaps[i].dimensions); j++)
			comparison->may_differ[i] |= gaps[i].dimensions[j] &&
						     print_diff_has(sides->before, sides->after, gaps[i].dimensions[j]);
	}
}

bool comparison_is_incomplete(const struct comparison *comparison)
{
	for (size_t i = 0; i < COMPARISON_GAP_COUNT; i++)
		if (comparison->may_differ[i])
			return true;
	return comparison->relative || comparison->log.unreadable;
}

int comparison_make(struct comparison *ret_comparison, const struct comparison_sides *sides, int log_fd)
{
	struct comparison comparison = { .before = sides->before, .after = sides->after,
					 .is_without_listings = sides->is_without_listings };
	int r = tally_init(&comparison.tally, COMPARE_KEPT_MAX);

	comparison.kept = calloc(COMPARE_KEPT_MAX, sizeof *comparison.kept);
	if (r == 0 && !comparison.kept)
		r = -ENOMEM;
	if (r == 0)
		r = observed_read(log_fd, compare, &comparison, &comparison.log);
	find_gaps(&comparison, sides);
	if (r == 0)
		*ret_comparison = comparison;
	else
		comparison_done(&comparison);
	return r;
}

void comparison_done(struct comparison *comparison)
{
	tally_done(&comparison->tally);
	free(comparison->kept);
	*comparison = (struct comparison){ 0 };
}

static const char *action_of(const struct tally_item *item)
{
	return item->key + KEY_VERDICTS;
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
		buf_printf(out, "none of %llu%s", (unsigned long long)comparison->same,
			   comparison_is_incomplete(comparison) ? " recorded" : "");
	buf_put_text(out, " decisions would differ under ");
	buf_put_escaped(out, names->policy, strlen(names->policy), 0);
	if (!comparison->different && comparison_is_incomplete(comparison))
		buf_put_text(out, "; decisions that were not recorded cannot be compared");
	buf_put_char(out, '\n');
}

/* What the comparison cannot show, so that silence means something. */
static void put_limits(const struct comparison *comparison, struct buf *out)
{
	for (size_t i = 0; i < COMPARISON_GAP_COUNT; i++)
		if (comparison->is_unrecorded[i])
			buf_printf(out, "  not seen: %s; the session did not record them (audit: {%s})%s\n",
				   gaps[i].what, gaps[i].setting,
				   comparison->may_differ[i] ? "; the policies differ about some" : "");
	if (comparison->relative)
		buf_printf(out, "  not decided: programs started by a relative path: %llu\n",
			   (unsigned long long)comparison->relative);
	if (comparison->log.is_policy_changed)
		buf_put_text(out, "  the policy was changed while the session ran; its first policy is compared\n");
	if (!comparison->log.has_end)
		buf_put_text(out, "  the session has not ended, or was killed: the log may go on\n");
	if (comparison->log.unreadable)
		buf_printf(out, "  records that cannot be decided about: %llu\n",
			   (unsigned long long)comparison->log.unreadable);
}

void comparison_format(const struct comparison *comparison, const struct comparison_names *names, struct buf *out)
{
	put_head(comparison, names, out);
	for (size_t i = 0; i < comparison->tally.count; i++) {
		const struct difference *difference = &comparison->kept[i];
		const struct tally_item *item = &comparison->tally.items[i];

		buf_printf(out, "  record %llu  %s → %s  ", (unsigned long long)item->record,
			   verdict_names[difference->before], verdict_names[difference->after]);
		buf_put_text(out, action_of(item));
		if (item->count > 1)
			buf_printf(out, "  (%llu times)", (unsigned long long)item->count);
		buf_put_text(out, "\n      ");
		put_rule(&difference->rule, out);
		buf_printf(out, "  %s\n", difference->reason);
	}
	if (comparison->tally.left_out)
		buf_printf(out, "  and %llu more\n", (unsigned long long)comparison->tally.left_out);
	put_limits(comparison, out);
}

static void put_difference(struct json *json, const struct difference *difference, const struct tally_item *item)
{
	json_object_begin(json, NULL);
	json_string(json, "action", action_of(item));
	json_string(json, "before", verdict_names[difference->before]);
	json_string(json, "after", verdict_names[difference->after]);
	json_string(json, "rule", difference->rule.id);
	json_bytes(json, "file", difference->rule.file, strlen(difference->rule.file));
	json_u64(json, "line", difference->rule.line);
	json_string(json, "reason", difference->reason);
	json_u64(json, "record", item->record);
	json_u64(json, "count", item->count);
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
	for (size_t i = 0; i < comparison->tally.count; i++)
		put_difference(&json, &comparison->kept[i], &comparison->tally.items[i]);
	json_array_end(&json);
	json_u64(&json, "left_out", comparison->tally.left_out);
	json_bool(&json, "complete", !comparison_is_incomplete(comparison));
	json_bool(&json, "reads_recorded", !comparison->is_unrecorded[GAP_READS]);
	json_object_begin(&json, "unrecorded");
	for (size_t i = 0; i < COMPARISON_GAP_COUNT; i++)
		if (comparison->is_unrecorded[i])
			json_string(&json, gaps[i].name, comparison->may_differ[i] ? "may-differ" : "same-rules");
	json_object_end(&json);
	json_bool(&json, "policy_changed", comparison->log.is_policy_changed);
	json_bool(&json, "ended", comparison->log.has_end);
	json_u64(&json, "relative", comparison->relative);
	json_u64(&json, "unreadable", comparison->log.unreadable);
	json_object_end(&json);
	buf_put_char(out, '\n');
}
