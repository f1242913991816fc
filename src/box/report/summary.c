/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "box/report/report.h"
#include "box/state/sandbox.h"
#include "gate-exec/gate.h"
#include "gate-exec/verifier.h"
#include "os/fd.h"
#include "os/path.h"
#include "policy/decide.h"
#include "session/host-program.h"
#include "session/narrowing.h"

/* The few lines that a person sees at the end of a run, on stderr, and only when there is something to say.
 */

enum { SUMMARY_MAX = 8192, SUMMARY_DENIALS = 5, SUMMARY_NAME_MAX = 256 };

static void put_ended(const struct box *box, struct buf *out)
{
	static const char *const texts[ENDED_COUNT] = {
		[ENDED_TIME] = "ended by a time limit",		[ENDED_MEMORY] = "ended by the memory limit",
		[ENDED_DISK] = "ended by the disk limit",	[ENDED_OUTPUT] = "ended by the output limit",
		[ENDED_POLICY] = "ended because a wall failed", [ENDED_STOPPED] = "stopped",
	};

	if (!texts[box->run.ended])
		return;
	buf_printf(out, "atoll: %s: %s", box->run.request->session, texts[box->run.ended]);
	for (size_t i = 0; i < box->run.course.hit_count; i++)
		buf_printf(out, "%s%s", i ? ", " : " (", box->run.course.hits[i]);
	buf_put_text(out, box->run.course.hit_count ? ")\n" : "\n");
}

static bool is_unseen(enum file_class class)
{
	return class == FILE_HIDDEN || class == FILE_SCRATCH;
}

/* The caller's shell finds it in a directory of which nothing is inside. False: it is in view. */
static bool put_unseen_directory(const struct box *box, const char *command, struct buf *out)
{
	char directory[PATH_MAX];
	size_t rule;

	host_program_directory(box->run.request, command, directory);
	if (!*directory || !is_unseen(policy_classify(box->run.policy->policy, directory, &rule)))
		return false;
	buf_put_text(out, ": ");
	buf_put_escaped(out, directory, strlen(directory), SUMMARY_NAME_MAX);
	buf_put_text(out, " is in PATH but not visible inside; add it to a policy of yours: files: {read: [");
	buf_put_escaped(out, directory, strlen(directory), SUMMARY_NAME_MAX);
	buf_put_text(out, "]}\n");
	return true;
}

/* There on the host and not inside: which of both reasons it is decides what is to be done. */
static void put_not_found(const struct box *box, const char *command, struct buf *out)
{
	char path[PATH_MAX];
	enum file_class class;
	size_t rule;

	host_program_find(box->run.request, command, path);
	buf_put_text(out, ": not found in the sandbox");
	if (!*path) {
		buf_put_text(out, strchr(command, '/') ? ", and not on this machine either\n"
						       : ", and not in a directory of your PATH either\n");
		return;
	}
	if (put_unseen_directory(box, command, out))
		return;
	class = policy_classify(box->run.policy->policy, path, &rule);
	buf_put_text(out, class == FILE_MASK			       ? ": the policy masks "
			  : is_unseen(class) ? ": the policy does not show "
									  : ": ");
	buf_put_escaped(out, path, strlen(path), SUMMARY_NAME_MAX);
	buf_put_text(out, class == FILE_MASK ? "\n"
			  : is_unseen(class)
				  ? "; a policy of yours can list it, and what it needs, under files.read\n"
				  : " is there, but what its first line or its loader names is not\n");
}

/* The refusal because of which the command itself did not start; NULL: it was another reason. */
static const struct denial *find_refusal(const struct box *box)
{
	char memory[DENIAL_SUBJECT_MAX];
	const char *command = box->run.request->command.argv[0];
	struct buf shown;
	size_t size;

	if (box->outcome.failure_errno != EACCES || box->outcome.has_no_cwd)
		return NULL;
	buf_init_fixed(&shown, memory, sizeof memory);
	buf_put_escaped(&shown, command, strlen(command), 0);
	if (buf_error(&shown))
		return NULL;
	size = shown.size;
	for (size_t i = box->run.refusals->denials.count; i-- > 0;) {
		const struct denial *denial = &box->run.refusals->denials.kept[i];
		size_t length = strlen(denial->subject);

		if (denial->kind != ACTION_EXEC || length < size ||
		    memcmp(denial->subject + length - size, shown.bytes, size) != 0)
			continue;
		/* A name without a slash was looked for in the directories of PATH. */
		if (length == size || (!strchr(command, '/') && denial->subject[length - size - 1] == '/'))
			return denial;
	}
	return NULL;
}

/* The rule, for "Permission denied" alone sends people to look at the modes of files. */
static void put_refusal(const struct box *box, const struct denial *denial, struct buf *out)
{
	buf_put_text(out, ": refused: ");
	buf_put_escaped(out, denial->reason, strlen(denial->reason), 0);
	buf_printf(out, " [%s]; more: atoll log --denied %s\n", denial->rule, box->run.request->session);
}

static void put_blame(const struct box *box, struct buf *out)
{
	char memory[512];
	struct buf blame;

	buf_init_fixed(&blame, memory, sizeof memory);
	if (agent_trust_put_blame(box->run.request->agent, &blame))
		buf_printf(out, "  %s\n", buf_text(&blame));
}

/* As a shell says it: the command itself could not be started. */
static void put_failure(const struct box *box, struct buf *out)
{
	const char *command = box->run.request->command.argv[0];
	const struct denial *refusal;

	if (!box->outcome.failure_status)
		return;
	refusal = find_refusal(box);
	buf_put_text(out, "atoll: ");
	if (box->outcome.has_no_cwd)
		command = box->run.request->cwd;
	buf_put_escaped(out, command, strlen(command), SUMMARY_NAME_MAX);
	if (box->outcome.has_no_cwd)
		buf_printf(out, ": cannot be the working directory in the sandbox: %s; name another one with -C\n",
			   strerror(box->outcome.failure_errno));
	else if (box->outcome.failure_status == 127 && !*command)
		buf_put_text(out, "the command is an empty word, which cannot be the name of a program\n");
	else if (box->outcome.failure_status == 127)
		put_not_found(box, command, out);
	else if (refusal)
		put_refusal(box, refusal, out);
	else
		buf_printf(out, ": cannot be run in the sandbox: %s\n", strerror(box->outcome.failure_errno));
	if (narrowing_holds(box->run.request->narrowing))
		buf_put_text(out, narrowing_hint);
	put_blame(box, out);
}

/* The streams' own file took no more: said also where only failures are. */
static void put_lost(const struct box *box, struct buf *out)
{
	if (box->outcome.lost_errno)
		buf_printf(out, "atoll: %s cannot be written: %s; the rest of what the command wrote there is lost\n",
			   box->outcome.lost_name, strerror(box->outcome.lost_errno));
}

static void put_hits(const struct box *box, struct buf *out)
{
	if (box->run.ended != ENDED_EXIT && box->run.ended != ENDED_SIGNAL)
		return;
	for (size_t i = 0; i < box->run.course.hit_count; i++)
		buf_printf(out, "atoll: %s: limit reached: %s\n", box->run.request->session, box->run.course.hits[i]);
}

static void put_tally(const struct box *box, const struct gate_tally *tally, const char *what, const char *fate,
		      struct buf *out)
{
	if (tally->count)
		buf_printf(out, "atoll: %s: %llu %s%s %s: %s%s; more: atoll log --net %s\n", box->run.request->session,
			   (unsigned long long)tally->count, what, tally->count == 1 ? "" : "s", fate, tally->first,
			   tally->differ ? ", …" : "", box->run.request->session);
}

static void put_network(const struct box *box, struct buf *out)
{
	const struct net_gate *gate = &box->gates.net;

	put_tally(box, &gate->counts.unreached, "connection", "connected, but no server answered", out);
	put_tally(box, &gate->counts.untrusted, "request", "not sent", out);
	if (!gate->failure[0])
		return;
	buf_printf(out, "atoll: %s: the network gate failed, so there is no network: ", box->run.request->session);
	buf_put_escaped(out, box->gates.net.failure, strlen(box->gates.net.failure), SUMMARY_NAME_MAX);
	buf_put_char(out, '\n');
}

/*
 * What stands in denials.jsonl for the agent helps the person as well: once where one follows the other. But not what
 * only something inside can do, or only while the sandbox lives: it has ended.
 */
static void put_hint(const struct denials *denials, size_t at, struct buf *out)
{
	static const char *const of_the_living[] = { "`atoll approve ", "ask a person: ", "wait " };
	const struct denial *denial = &denials->kept[at];

	for (size_t i = 0; i < ARRAY_SIZE(of_the_living); i++)
		if (str_has_prefix(denial->hint, of_the_living[i]))
			return;
	if (!*denial->hint || (at && str_equal(denial->hint, denials->kept[at - 1].hint)))
		return;
	buf_put_text(out, "               ");
	buf_put_escaped(out, denial->hint, strlen(denial->hint), 0);
	buf_put_char(out, '\n');
}

static void put_denials(const struct box *box, struct buf *out)
{
	const struct denials *denials = &box->run.refusals->denials;
	size_t shown = 0;

	if (!denials->total)
		return;
	buf_printf(out, "atoll: %s: %llu refused:\n", box->run.request->session,
		   (unsigned long long)(denials->total - denials->repeats));
	for (size_t i = 0; i < denials->count && shown <= SUMMARY_DENIALS; i++) {
		const struct denial *denial = &denials->kept[i];
		uint64_t count = denial->count - denial->repeats;

		if (!count || shown++ == SUMMARY_DENIALS)
			continue;
		buf_printf(out, "  %-12s %s", action_kind_names[denial->kind], denial->subject);
		if (count > 1)
			buf_printf(out, " (%llu times)", (unsigned long long)count);
		buf_printf(out, "  [%s]\n", denial->rule);
		put_hint(denials, i, out);
	}
	if (shown > SUMMARY_DENIALS)
		buf_put_text(out, "  …\n");
	buf_printf(out, "  all of it: atoll log --denied %s\n", box->run.request->session);
	if (queue_unanswered(&box->approval.queue))
		buf_put_text(out, "  the policy asks a person about some of it, and nobody answered: keep `atoll ask` "
				  "open in another terminal, or list it in a policy of yours\n");
}

static void put_noted(const struct box *box, struct buf *out)
{
	const struct verifier_noted *noted = exec_gate_noted(box->gates.exec);

	if (!noted || !noted->count)
		return;
	buf_printf(
		out,
		"atoll: %s: %llu command%s ran that the rules warn of (%s%s): atoll log -t exec.verify %s\n",
		box->run.request->session, (unsigned long long)noted->count, noted->count == 1 ? "" : "s",
		noted->first, noted->count == 1 ? "" : ", …", box->run.request->session);
}

static void put_standing(const struct box *box, struct buf *out)
{
	static const char *const done[TRUST_FALL_COUNT] = {
		[TRUST_FALL_NOTE] = "nothing was taken from this session",
		[TRUST_FALL_ASK] = "hosts of higher levels were asked about from then on",
		[TRUST_FALL_TIGHTEN] = "hosts of higher levels were refused from then on",
		[TRUST_FALL_FREEZE] = "it was frozen",
	};
	const struct agent_trust *standing = &box->detection.agent_trust;

	if (!standing->agent || !*standing->cause)
		return;
	buf_printf(out, "atoll: %s: agent %s fell to %s (%s); %s\n  why, and what raises it again: atoll trust %s\n",
		   box->run.request->session, standing->agent, trust_level_names[standing->fell_to], standing->cause,
		   done[box->run.policy->policy->trust.on_fall], standing->agent);
}

/* "9 modified, 4 added, 1 deleted", without what there is none of. */
static void put_counts(const struct stage_counts *counts, struct buf *out)
{
	const struct {
		uint64_t count;
		const char *what;
	} parts[] = {
		{ counts->modified, "modified" },
		{ counts->added, "added" },
		{ counts->deleted, "deleted" },
	};
	const char *separator = "";

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!parts[i].count)
			continue;
		buf_printf(out, "%s%llu %s", separator, (unsigned long long)parts[i].count, parts[i].what);
		separator = ", ";
	}
}

static void put_number(struct buf *out, uint64_t count, const char *what)
{
	if (count)
		buf_printf(out, ", %llu %s", (unsigned long long)count, what);
}

/* What was staged, and the three ways on. */
static void put_changes(const struct box *box, struct buf *out)
{
	const struct staging *staging = &box->build.staging;
	const struct stage_counts *counts = &staging->counts;
	uint64_t files = counts->modified + counts->added + counts->deleted;
	uint64_t changed = files ? files : counts->directories;
	bool has_files = files || !counts->directories;
	const char *what = has_files ? "file" : "director", *many = has_files ? "s" : "ies";
	const char *one = has_files ? "" : "y";

	if (!staging->has_changes && !(box->run.request->flags & REQUEST_DISCARD && stage_counts_any(counts)))
		return;
	buf_printf(out, "atoll: %s: ", box->run.request->session);
	if (staging->is_as_origin) {
		buf_put_text(out, "nothing was changed; the layers below stay as they were\n");
	} else if (!staging->is_counted) {
		buf_put_text(out, "what changed could not be counted; it is kept, and nothing on disk has "
				  "changed yet\n");
	} else {
		buf_printf(out, "%s%llu %s%s changed", counts->is_cut ? "at least " : "", (unsigned long long)changed,
			   what, changed == 1 ? one : many);
		if (files) {
			buf_put_text(out, " (");
			put_counts(counts, out);
			buf_put_text(out, ")");
		}
		put_number(out, counts->flagged, "flagged");
		put_number(out, counts->conflicts, "in conflict");
		put_number(out, counts->refused, "refused");
		put_number(out, counts->system, "in the sandbox's own system");
		buf_put_text(out, staging->is_in_use ? "; not discarded, because another command uses it\n" :
				  staging->has_changes ? "; nothing on disk has changed yet\n" :
							 "; all of it thrown away\n");
	}
	if (staging->has_changes && !box_will_apply(box))
		buf_put_text(out, "  review  atoll diff        keep  atoll apply        drop  atoll discard\n");
}

/*
 * Whether the same was said since the machine was started: a line that comes at every run is read by nobody. What
 * cannot be remembered is said again.
 */
static bool was_said(const struct box *box, uint32_t missing)
{
	cleanup_free char *boot = NULL, *before = NULL;
	char path[PATH_MAX], now[96];
	size_t size;

	if (fd_read_file_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", sizeof now, &boot, &size) < 0 ||
	    str_format(now, sizeof now, "%.36s %x\n", boot, missing) < 0 ||
	    str_format(path, sizeof path, "%s/missing-said", box->run.request->state_dir) < 0)
		return false;
	if (fd_read_file_at(AT_FDCWD, path, sizeof now, &before, &size) == 0 && str_equal(before, now))
		return true;
	(void)!fd_replace_file_at(AT_FDCWD, path, now, strlen(now), 0600);
	return false;
}

static void put_missing(const struct box *box, struct buf *out)
{
	const uint32_t known =
		1u << WALL_DISK | 1u << WALL_MASK_LATE | 1u << WALL_CORE_SCHED | 1u << WALL_SPECULATION;

	if (!(box->run.missing & ~known) || was_said(box, box->run.missing & ~known))
		return;
	buf_put_text(out, "atoll: running without");
	for (int wall = 0; wall < WALL_COUNT; wall++)
		if (box->run.missing & ~known & 1u << wall)
			buf_printf(out, " %s", wall_names[wall]);
	buf_put_text(out, ", as the policy accepts (degrade); `atoll doctor` says how to get it. This is said once.\n");
}

/*
 * Walls that the policy lets be missing, said before anything runs. What comes with writing in place, which the policy
 * says in so many words (disk, late masks), and what this hardware lacks for everyone is in the report alone.
 */
void summary_print_missing(struct box *box)
{
	char memory[SUMMARY_NAME_MAX + 1536];
	struct buf out;

	if (box->run.request->flags & (REQUEST_QUIET | REQUEST_DETACH))
		return;
	buf_init_fixed(&out, memory, sizeof memory);
	put_missing(box, &out);
	staging_put_backend(&box->build.staging, &out);
	staging_put_unseen(&box->build.staging, box->run.request, &out);
	run_request_tell(box->run.request, &out);
}

void summary_print(const struct box *box)
{
	char memory[SUMMARY_MAX];
	struct buf out;

	if (box->run.request->flags & REQUEST_DETACH)
		return;
	buf_init_fixed(&out, memory, sizeof memory);
	put_failure(box, &out);
	put_lost(box, &out);
	if (!(box->run.request->flags & REQUEST_QUIET)) {
		put_ended(box, &out);
		put_hits(box, &out);
		put_network(box, &out);
		notifier_put_summary(&box->approval.notifier, &out);
		put_denials(box, &out);
		put_noted(box, &out);
		alerts_put_summary(&box->detection.alerts, &out);
		canaries_put_summary(&box->detection.canaries, &out);
		put_standing(box, &out);
		put_changes(box, &out);
		staging_put_earlier(&box->build.staging, &out);
	}
	run_request_tell(box->run.request, &out);
}
