/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/log.h"

#include <string.h>

#include "audit/writer.h"
#include "base/json.h"
#include "base/str.h"
#include "gate-exec/case.h"
#include "gate-exec/decide.h"
#include "gate-exec/image.h"
#include "session/store.h"
#include "supervise/hub.h"
#include "supervise/processes.h"
#include "supervise/refusals.h"
#include "supervise/run.h"

enum { CAUSE_SIZE = 1024 };

struct detail {
	const struct exec_entry *entry;
	const struct exec_image *image; /* NULL: nobody looked */
};

static void write_detail(struct json *json, const void *context)
{
	const struct detail *detail = context;
	const struct exec_entry *entry = detail->entry;

	json_array_begin(json, "argv");
	for (size_t i = 0; entry->argv && entry->argv[i]; i++)
		json_bytes(json, NULL, entry->argv[i], strlen(entry->argv[i]));
	json_array_end(json);
	if (entry->argv_left_out)
		json_u64(json, "left_out", entry->argv_left_out);
	if (detail->image)
		exec_image_to_json(detail->image, entry->subject, json);
}

/*
 * A path that depends on where its caller stands says nothing by itself. The others are looked at where every file that
 * is read is a record: the kernel reads what interprets a script, and no call shows it.
 */
static bool must_look(const struct exec_gate *gate, const struct exec_entry *entry)
{
	return entry->exec && (entry->subject[0] != '/' || gate->in.run->policy->policy->audit.files == AUDIT_ALL);
}

static int record(struct exec_gate *gate, const struct exec_entry *entry, const char *verdict, const char *rule)
{
	struct exec_image image;
	struct detail detail = { entry, must_look(gate, entry) ? &image : NULL };
	struct audit_event event = {
		.type = AUDIT_EXEC_START,
		.verdict = verdict,
		.rule = rule,
		.pid = entry->pid,
		.subject = entry->subject,
		.subject_size = strlen(entry->subject),
		.write_detail = write_detail,
		.context = &detail,
	};

	if (detail.image)
		exec_image_find(&image, entry->exec, gate->in.store->record.started_ns);
	return audit_write(gate->in.run->audit, &event);
}

static int publish(struct exec_gate *gate, const struct exec_entry *entry, bool is_refused)
{
	const struct event_exec event = { entry->pid, entry->subject, entry->argv, is_refused };

	return hub_publish(gate->in.run->hub, EVENT_EXEC, &event);
}

int exec_log_start(struct exec_gate *gate, const struct exec_entry *entry, const struct decision *decision)
{
	int r = 0;

	gate->in.run->refusals->allowed++;
	if (gate->in.run->policy->policy->audit.exec != AUDIT_OFF) {
		r = record(gate, entry, verdict_names[VERDICT_ALLOW], decision->rule.id);
		if (r == 0)
			r = processes_follow(gate->in.processes, entry->pid);
	}
	return r < 0 ? r : publish(gate, entry, false);
}

/*
 * Once for what one process starts: a shell tries the same words at each place of PATH, and is refused at each. What it
 * goes on with is refused as well, and many refusals are a burst.
 */
static int hold_against(struct exec_gate *gate, const struct exec_entry *entry, const struct decision *decision)
{
	static const char *const none[] = { NULL };
	struct exec_refused *last = &gate->refused;
	char cause[CAUSE_SIZE];
	struct hash hash;

	exec_hash_argv(entry->argv ? entry->argv : none, &hash);
	if (last->pid == entry->pid && memcmp(&last->argv_hash, &hash, sizeof hash) == 0)
		return 0;
	*last = (struct exec_refused){ entry->pid, hash };
	if (str_format(cause, sizeof cause, "%s: %s", decision->rule.id, decision->reason) < 0)
		return hub_publish(gate->in.run->hub, EVENT_VERIFIER_REFUSED, decision->rule.id);
	return hub_publish(gate->in.run->hub, EVENT_VERIFIER_REFUSED, cause);
}

/* Whether one process looks for one program at one more place, as execvp(3) does along PATH. */
static bool goes_on_searching(struct exec_gate *gate, const struct exec_entry *entry, const struct decision *decision)
{
	struct path_search now = path_search_of(entry->pid, entry->subject, entry->argv_left_out ? NULL : entry->argv,
						decision->rule.id);

	return path_search_goes_on(&gate->search, &now);
}

int exec_log_refusal(struct exec_gate *gate, const struct exec_entry *entry, const struct decision *decision)
{
	struct action action = { .kind = ACTION_EXEC, .subject = entry->subject };
	bool goes_on = goes_on_searching(gate, entry, decision);
	int r = record(gate, entry, verdict_names[VERDICT_DENY], decision->rule.id);

	gate->in.run->refusals->denied++;
	if (r == 0)
		r = publish(gate, entry, true);
	if (r == 0)
		r = goes_on ? denials_add_repeat(&gate->in.run->refusals->denials, &action, decision)
			    : denials_add(&gate->in.run->refusals->denials, &action, decision, 0);
	if (r == 0 && entry->is_verifier_refusal)
		r = hold_against(gate, entry, decision);
	/* One search is one refusal for the pause and for strain as well. */
	return r < 0 || goes_on ? r : rate_refused(gate->in.run);
}
