/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/num.h"
#include "box/state.h"
#include "os/fd.h"

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

	if (!texts[box->ended])
		return;
	buf_printf(out, "atoll: %s: %s", box->request->session, texts[box->ended]);
	for (size_t i = 0; i < box->hit_count; i++)
		buf_printf(out, "%s%s", i ? ", " : " (", box->hits[i]);
	buf_put_text(out, box->hit_count ? ")\n" : "\n");
}

/* As a shell says it: the command itself could not be started. */
static void put_failure(const struct box *box, struct buf *out)
{
	const char *command = box->request->argv[0];

	if (!box->failure_status)
		return;
	buf_put_text(out, "atoll: ");
	buf_put_escaped(out, command, strlen(command), SUMMARY_NAME_MAX);
	if (box->failure_status == 127)
		buf_put_text(out, ": not found in the sandbox; see what is there with: atoll policy show\n");
	else
		buf_printf(out, ": cannot be run in the sandbox: %s\n", strerror(box->failure_errno));
}

static void put_hits(const struct box *box, struct buf *out)
{
	if (box->ended != ENDED_EXIT && box->ended != ENDED_SIGNAL)
		return;
	for (size_t i = 0; i < box->hit_count; i++)
		buf_printf(out, "atoll: %s: limit reached: %s\n", box->request->session, box->hits[i]);
}

static void put_denials(const struct box *box, struct buf *out)
{
	const struct denials *denials = &box->denials;

	if (!denials->total)
		return;
	buf_printf(out, "atoll: %s: %llu refused:\n", box->request->session,
		   (unsigned long long)denials->total);
	for (size_t i = 0; i < denials->count && i < SUMMARY_DENIALS; i++) {
		const struct denial *denial = &denials->kept[i];

		buf_printf(out, "  %-12s %s", action_kind_names[denial->kind], denial->subject);
		if (denial->count > 1)
			buf_printf(out, " (%llu times)", (unsigned long long)denial->count);
		buf_printf(out, "  [%s]\n", denial->rule);
	}
	if (denials->count > SUMMARY_DENIALS)
		buf_put_text(out, "  …\n");
	buf_printf(out, "  all of it: atoll log --denied %s\n", box->request->session);
}

/*
 * Walls that the policy lets be missing, said before anything runs. What no run has today (disk, late masks:
 * the note about a project in place stands for them) and what this hardware lacks for everyone is in the
 * report alone.
 */
void summary_print_missing(const struct box *box)
{
	const uint32_t known =
		1u << WALL_DISK | 1u << WALL_MASK_LATE | 1u << WALL_CORE_SCHED | 1u << WALL_SPECULATION;
	char memory[SUMMARY_NAME_MAX];
	struct buf out;

	if (box->request->flags & (REQUEST_QUIET | REQUEST_DETACH) || !(box->missing & ~known))
		return;
	buf_init_fixed(&out, memory, sizeof memory);
	buf_put_text(&out, "atoll: running without");
	for (int wall = 0; wall < WALL_COUNT; wall++)
		if (box->missing & ~known & 1u << wall)
			buf_printf(&out, " %s", wall_names[wall]);
	buf_put_text(&out, ", as the policy accepts (degrade)\n");
	if (fd_write_full(2, out.bytes, out.size) < 0)
		return; /* nobody reads */
}

void summary_print(const struct box *box)
{
	char memory[SUMMARY_MAX];
	struct buf out;

	if (box->request->flags & REQUEST_DETACH)
		return;
	buf_init_fixed(&out, memory, sizeof memory);
	put_failure(box, &out);
	if (!(box->request->flags & REQUEST_QUIET)) {
		put_ended(box, &out);
		put_hits(box, &out);
		put_denials(box, &out);
	}
	/* stderr may be closed or full: then there is nobody to tell. */
	if (out.size && fd_write_full(2, out.bytes, out.size) < 0)
		return;
}
