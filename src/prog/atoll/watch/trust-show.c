/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/watch/trust-show.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"

enum { NS_PER_S = 1000000000, MS_PER_S = 1000, CAUSE_SHOWN = 100, DATE_SHOWN = 19 };

/* Of which "so many more" can be said. */
static const enum trust_event asked[] = { TRUST_CLEAN, TRUST_DENIALS, TRUST_INJECTION, TRUST_CANARY,
					  TRUST_VERIFIER, TRUST_LIMIT, TRUST_ALERT, TRUST_KILLED };

static const char *const many_words[TRUST_EVENT_END] = {
	[TRUST_CLEAN] = "clean sessions",
	[TRUST_DENIALS] = "bursts of refusals",
	[TRUST_INJECTION] = "prompt injections",
	[TRUST_CANARY] = "canaries",
	[TRUST_VERIFIER] = "denials of a verifier",
	[TRUST_LIMIT] = "limits that are hit",
	[TRUST_ALERT] = "alerts",
	[TRUST_KILLED] = "sessions that are cut off",
};

static uint64_t now_s(void)
{
	return clock_realtime_ns() / NS_PER_S;
}

static enum trust_level level_of(const struct trust_book *book)
{
	struct trust_state state = trust_book_state(book);

	return trust_level_of(&state, &book->settings);
}

/* "2026-03-01 12:34:56". */
static void put_time(struct buf *out, uint64_t realtime_ns)
{
	char text[CLOCK_RFC3339_SIZE];

	clock_format_rfc3339(realtime_ns, text);
	text[10] = ' ';
	buf_printf(out, "%.*s", DATE_SHOWN, text);
}

/* 27500 -> "27.5". */
static void put_points(struct buf *out, uint32_t thousandths)
{
	buf_printf(out, "%u.%u", thousandths / TRUST_POINT, thousandths % TRUST_POINT / 100);
}

static bool is_unusable(const struct trust_book *book)
{
	return book->fault != TRUST_FINE;
}

/* ---- the list ---- */

void trust_put_heading(struct buf *out)
{
	buf_printf(out, "%-24s %-7s %-7s %-19s  %s\n", "AGENT", "LEVEL", "STRAIN", "LAST (UTC)", "WHAT");
}

void trust_put_line(const struct trust_book *book, struct buf *out)
{
	const struct trust_entry *last = book->count ? &book->entries[book->count - 1] : NULL;
	struct trust_state state = trust_book_state(book);
	size_t begun;

	if (is_unusable(book)) {
		buf_printf(out, "%-24s %-7s %-7s %-19s  not usable: %s\n", book->agent, "-", "-", "-",
			   trust_fault_texts[book->fault]);
		return;
	}
	if (!last)
		return;
	buf_printf(out, "%-24s %-7s ", book->agent, trust_level_names[level_of(book)]);
	begun = out->size;
	put_points(out, trust_strain_at(&state, &book->settings, now_s()));
	buf_printf(out, "%*s", begun + 8 > out->size ? (int)(begun + 8 - out->size) : 1, "");
	put_time(out, last->time_ns);
	buf_printf(out, "  %s\n", trust_rules[last->event].words);
}

/* A level beyond the policy's bounds is kept, and counts only where a policy has it. */
static void put_bound(const struct trust_book *book, const struct trust_news *news, struct buf *out)
{
	const struct trust_settings *settings = &book->settings;
	enum trust_level level = level_of(book);

	if (news->event == TRUST_RAISED && level < news->level)
		buf_printf(out, ", not %s: that is the ceiling of its last policy (trust: {ceiling: %s}); with a "
				"higher one it has more",
			   trust_level_names[news->level], trust_level_names[settings->ceiling]);
	if (news->event == TRUST_LOWERED && level > news->level)
		buf_printf(out, ", not %s: that is the floor of its last policy (trust: {floor: %s})",
			   trust_level_names[news->level], trust_level_names[settings->floor]);
}

void trust_put_short(const struct trust_book *book, const struct trust_news *news, struct buf *out)
{
	struct trust_state state = trust_book_state(book);

	buf_printf(out, "%s ", book->agent);
	if (state.has_grant) {
		buf_printf(out, "is at %s", trust_level_names[level_of(book)]);
		put_bound(book, news, out);
	} else {
		buf_put_text(out, "begins again where its policy says");
	}
	buf_put_char(out, '\n');
}

/* ---- one agent ---- */

static void put_bounds(const struct trust_book *book, struct buf *out)
{
	const struct trust_settings *settings = &book->settings;
	char half_life[32];

	if (!settings->is_given) {
		buf_put_text(out, "  no run of it had a policy with `trust:`\n");
		return;
	}
	num_format_duration(settings->half_life_ms, half_life);
	buf_printf(out,
		   "  by its last policy: start %s, ceiling %s, floor %s, on a fall: %s; strain is halved every %s\n",
		   trust_level_names[settings->start], trust_level_names[settings->ceiling],
		   trust_level_names[settings->floor], trust_on_fall_names[settings->on_fall], half_life);
}

static void put_entry(const struct trust_book *book, const struct trust_entry *entry, struct buf *out)
{
	buf_put_text(out, "  ");
	put_time(out, entry->time_ns);
	if (entry->before == entry->after)
		buf_printf(out, "  %-16s", trust_level_names[entry->after]);
	else
		buf_printf(out, "  %-6s -> %-6s", trust_level_names[entry->before], trust_level_names[entry->after]);
	buf_printf(out, "  %-12s  %s", *entry->session ? entry->session : "-", trust_rules[entry->event].words);
	if (entry->event == TRUST_RAISED || entry->event == TRUST_LOWERED || entry->event == TRUST_LENT)
		buf_printf(out, " to %s", trust_level_names[entry->level]);
	if (trust_rules[entry->event].is_bad) {
		buf_put_text(out, ", strain ");
		put_points(out, trust_entry_strain(book, entry));
	}
	if (*entry->cause) {
		buf_put_text(out, ": ");
		buf_put_escaped(out, entry->cause, strlen(entry->cause), CAUSE_SHOWN);
	}
	buf_put_char(out, '\n');
}

static void put_change(const struct trust_book *book, enum trust_event event, struct buf *out)
{
	struct trust_state state = trust_book_state(book);
	enum trust_level to;
	unsigned count = trust_count_until(&state, &book->settings, event, now_s(), &to);

	if (!count)
		return;
	if (count == 1)
		buf_printf(out, "  %s: %s\n", trust_rules[event].words, trust_level_names[to]);
	else
		buf_printf(out, "  %u %s: %s\n", count, many_words[event], trust_level_names[to]);
}

static void put_changes(const struct trust_book *book, struct buf *out)
{
	struct trust_state state = trust_book_state(book);
	uint64_t back_s = trust_recovers_at(&state, &book->settings, now_s());

	buf_put_text(out, "\nwhat would change it\n");
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
		put_change(book, asked[i], out);
	if (back_s) {
		struct trust_state then = trust_step(&state, &book->settings, TRUST_BEGUN, TRUST_NONE, back_s);

		buf_put_text(out, "  a session that begins after ");
		put_time(out, back_s * NS_PER_S);
		buf_printf(out, " UTC: %s\n", trust_level_names[trust_level_of(&then, &book->settings)]);
	}
	buf_printf(out, "  a person: atoll trust %s --raise LEVEL --reason \"…\", or --lower LEVEL\n", book->agent);
	buf_put_text(out, "  for one run: a token (atoll token mint --allow trust=LEVEL), or a task's policy "
			  "(trust: {raise: LEVEL})\n");
}

void trust_put_all(const struct trust_book *book, const struct trust_home *home, struct buf *out)
{
	struct trust_state state = trust_book_state(book);

	if (is_unusable(book)) {
		buf_printf(out, "agent %s: the record cannot be used: %s\n", book->agent,
			   trust_fault_texts[book->fault]);
		buf_printf(out, "  without it runs get the lowest level that their policy names (none)\n"
				"  look at %s/trust and at whoever could write there; then begin it again:\n"
				"  atoll trust %s --reset --reason \"…\"\n",
			   home->state_dir, book->agent);
		return;
	}
	buf_printf(out, "agent %s: %s\n", book->agent,
		   state.has_grant ? trust_level_names[level_of(book)] : "unknown, it starts where its policy says");
	buf_put_text(out, "  strain ");
	put_points(out, trust_strain_at(&state, &book->settings, now_s()));
	buf_printf(out, " of %d for the next level, granted %s, %u clean session%s in a row\n",
		   (int)(TRUST_STEP / TRUST_POINT * (state.drop + 1)),
		   state.has_grant ? trust_level_names[state.granted] : "nothing", state.clean,
		   state.clean == 1 ? "" : "s");
	put_bounds(book, out);
	buf_put_text(out, "\nhistory (UTC)\n");
	if (book->base_seq)
		buf_printf(out, "  … %llu earlier\n", (unsigned long long)book->base_seq);
	for (size_t i = 0; i < book->count; i++)
		put_entry(book, &book->entries[i], out);
	put_changes(book, out);
}

/* ---- JSON ---- */

static void put_entry_json(const struct trust_book *book, const struct trust_entry *entry, struct json *json)
{
	const struct trust_rule *rule = &trust_rules[entry->event];
	char time[CLOCK_RFC3339_SIZE];

	clock_format_rfc3339(entry->time_ns, time);
	json_object_begin(json, NULL);
	json_u64(json, "number", entry->seq);
	json_string(json, "ts", time);
	json_string(json, "event", rule->name);
	json_string(json, "session", *entry->session ? entry->session : NULL);
	if (*entry->cause)
		json_bytes(json, "cause", entry->cause, strlen(entry->cause));
	else
		json_null(json, "cause");
	json_string(json, "from", trust_level_names[entry->before]);
	json_string(json, "to", trust_level_names[entry->after]);
	json_fixed(json, "strain", trust_entry_strain(book, entry));
	json_u64(json, "clean", entry->clean);
	json_u64(json, "uid", entry->uid);
	if (entry->event == TRUST_RAISED || entry->event == TRUST_LOWERED || entry->event == TRUST_LENT)
		json_string(json, "level", trust_level_names[entry->level]);
	json_object_end(json);
}

static void put_settings_json(const struct trust_book *book, struct json *json)
{
	const struct trust_settings *settings = &book->settings;

	json_object_begin(json, "policy");
	json_string(json, "start", trust_level_names[settings->start]);
	json_string(json, "ceiling", trust_level_names[settings->ceiling]);
	json_string(json, "floor", trust_level_names[settings->floor]);
	json_string(json, "on_fall", trust_on_fall_names[settings->on_fall]);
	json_u64(json, "half_life_ms", settings->half_life_ms);
	json_u64(json, "probation_sessions", settings->probation_sessions);
	json_string(json, "probation_at", trust_level_names[settings->probation_at]);
	json_object_end(json);
}

static void put_changes_json(const struct trust_book *book, struct json *json)
{
	struct trust_state state = trust_book_state(book);
	uint64_t back_s = trust_recovers_at(&state, &book->settings, now_s());
	char time[CLOCK_RFC3339_SIZE];
	enum trust_level to;

	json_array_begin(json, "changes");
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		unsigned count = trust_count_until(&state, &book->settings, asked[i], now_s(), &to);

		if (!count)
			continue;
		json_object_begin(json, NULL);
		json_string(json, "event", trust_rules[asked[i]].name);
		json_u64(json, "count", count);
		json_string(json, "to", trust_level_names[to]);
		json_object_end(json);
	}
	json_array_end(json);
	if (back_s)
		clock_format_rfc3339(back_s * NS_PER_S, time);
	json_string(json, "recovers", back_s ? time : NULL);
}

void trust_put_json(const struct trust_book *book, struct json *json, bool has_history)
{
	struct trust_state state = trust_book_state(book);

	json_object_begin(json, NULL);
	json_string(json, "agent", book->agent);
	json_bool(json, "usable", !is_unusable(book));
	json_string(json, "fault", is_unusable(book) ? trust_fault_texts[book->fault] : NULL);
	json_string(json, "level", state.has_grant && !is_unusable(book) ? trust_level_names[level_of(book)] : NULL);
	json_string(json, "granted", state.has_grant ? trust_level_names[state.granted] : NULL);
	json_fixed(json, "strain", trust_strain_at(&state, &book->settings, now_s()));
	json_u64(json, "dropped", state.drop);
	json_u64(json, "clean", state.clean);
	put_settings_json(book, json);
	if (has_history && !is_unusable(book)) {
		json_array_begin(json, "history");
		for (size_t i = 0; i < book->count; i++)
			put_entry_json(book, &book->entries[i], json);
		json_array_end(json);
		json_u64(json, "forgotten", book->base_seq);
		put_changes_json(book, json);
	}
	json_object_end(json);
}
