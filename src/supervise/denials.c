/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/denials.h"

#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "wire/desk.h"
#include "os/clock.h"
#include "os/fd.h"

static const uint64_t BURST_NS = UINT64_C(10000000000);

static void put_members(struct json *json, const struct denial *denial)
{
	json_string(json, "kind", action_kind_names[denial->kind]);
	json_string(json, "subject", denial->subject);
	json_string(json, "rule", denial->rule);
	json_string(json, "reason", denial->reason);
	json_string(json, "hint", denial->hint);
}

enum { METHOD_SHOWN = 24, ENDING_SIZE = 8 };

/* The agent's copy is bounded: a loop of refused calls must not fill the host's disk. */
static int append(struct denials *denials, const struct denial *denial)
{
	char memory[2048], time[CLOCK_RFC3339_SIZE];
	struct json json;
	struct buf line;
	int r;

	if (denials->file_bytes >= DENIALS_FILE_MAX)
		return 0;
	buf_init_fixed(&line, memory, sizeof memory);
	json_init(&json, &line);
	clock_format_rfc3339(clock_realtime_ns(), time);
	json_object_begin(&json, NULL);
	json_string(&json, "ts", time);
	put_members(&json, denial);
	json_object_end(&json);
	buf_put_char(&line, '\n');
	if (buf_error(&line))
		return 0; /* the record is in the log and in the report; only this copy is left out */
	r = fd_write_full(denials->fd, line.bytes, line.size);
	denials->file_bytes += line.size;
	return r;
}

static struct denial *find(struct denials *denials, const struct denial *like)
{
	for (size_t i = 0; i < denials->count; i++)
		if (denials->kept[i].kind == like->kind && denials->kept[i].episode == like->episode &&
		    str_equal(denials->kept[i].subject, like->subject) && str_equal(denials->kept[i].rule, like->rule))
			return &denials->kept[i];
	return NULL;
}

static void format_subject(struct denial *denial, const struct action *action)
{
	struct buf out;

	buf_init_fixed(&out, denial->subject, sizeof denial->subject);
	if (action->method && *action->method)
		buf_printf(&out, "%.*s ", METHOD_SHOWN, action->method);
	if (action->port)
		buf_put_text(&out, str_host_open(action->subject));
	buf_put_escaped(&out, action->subject, strlen(action->subject), sizeof denial->subject - 18 - METHOD_SHOWN);
	if (action->port)
		buf_printf(&out, "%s:%u", str_host_close(action->subject), action->port);
	if (action->path && sizeof denial->subject - out.size > ENDING_SIZE)
		buf_put_escaped(&out, action->path, strlen(action->path),
				sizeof denial->subject - out.size - ENDING_SIZE);
	(void)buf_text(&out);
}

static void copy_cut(char *out, size_t size, const char *text)
{
	if (str_format(out, size, "%.*s", (int)size - 1, text) < 0)
		out[0] = 0;
}

/* Where a person can be asked, and nobody was yet, that is the way out. */
static void format_hint(const struct denials *denials, struct denial *denial, const struct action *action,
			const struct decision *decision)
{
	bool can_ask = denials->policy && decision->verdict == VERDICT_DENY &&
		       policy_hears_requests(denials->policy) &&
		       policy_may_be_asked(denials->policy, action, decision);

	if (!can_ask || str_format(denial->hint, sizeof denial->hint, "ask a person: %s %s %s", DESK_CLIENT,
				   action_kind_names[action->kind], denial->subject) < 0)
		copy_cut(denial->hint, sizeof denial->hint,
			 can_ask ? "ask a person: " DESK_CLIENT : decision->hint);
}

static void count_burst(struct denials *denials)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (now_ns - denials->burst_ns > BURST_NS) {
		denials->burst_ns = now_ns;
		denials->burst = 0;
	}
	if (++denials->burst > denials->burst_max)
		denials->burst_max = denials->burst;
}

/* denial: what is known of it beside action and decision. */
static int add(struct denials *denials, const struct action *action, const struct decision *decision,
	       struct denial denial)
{
	struct denial *known;

	denial.kind = action->kind;
	denial.count = 1;
	format_subject(&denial, action);
	copy_cut(denial.rule, sizeof denial.rule, decision->rule.id);
	copy_cut(denial.reason, sizeof denial.reason, decision->reason);
	format_hint(denials, &denial, action, decision);
	denials->total++;
	denials->repeats += denial.repeats;
	if (!denial.repeats)
		count_burst(denials);
	if (!denial.repeats && denials->observer.refused)
		denials->observer.refused(denials->observer.context, &denial);
	known = find(denials, &denial);
	if (known) {
		known->count++;
		known->repeats += denial.repeats;
		return 0;
	}
	if (denials->count < DENIALS_KEPT)
		denials->kept[denials->count++] = denial;
	return append(denials, &denial);
}

int denials_add(struct denials *denials, const struct action *action, const struct decision *decision,
		uint32_t episode)
{
	return add(denials, action, decision, (struct denial){ .episode = episode });
}

int denials_add_repeat(struct denials *denials, const struct action *action, const struct decision *decision)
{
	return add(denials, action, decision, (struct denial){ .repeats = 1 });
}

void denials_to_json(const struct denials *denials, struct json *json)
{
	json_array_begin(json, "denials");
	for (size_t i = 0; i < denials->count; i++) {
		json_object_begin(json, NULL);
		put_members(json, &denials->kept[i]);
		json_u64(json, "count", denials->kept[i].count);
		json_object_end(json);
	}
	json_array_end(json);
}
