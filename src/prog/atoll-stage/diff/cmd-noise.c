/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Run by the box at the end of a session whose policy has a baseline: how many of the files that it wrote became noise.
 * Writes struct noise_count to stdout, and nothing else.
 */

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor/noise.h"
#include "os/fd.h"
#include "prog/atoll-stage/verb/opened.h"

struct noise_options {
	struct verb_session session;
};

static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct noise_options),
};

struct counting {
	const struct stage_stack *stack;
	struct noise_count count;
};

/* From the beginning, or from the middle of a long file. The bytes that were read. */
static size_t sample(int fd, bool from_middle, uint8_t out[NOISE_SAMPLE])
{
	struct stat st;
	ssize_t size;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (from_middle && st.st_size < 4 * NOISE_SAMPLE))
		return 0;
	size = pread(fd, out, NOISE_SAMPLE, from_middle ? st.st_size / 2 : 0);
	return size < 0 ? 0 : (size_t)size;
}

static bool is_scrambled(int now_fd, int before_fd)
{
	uint8_t now[NOISE_SAMPLE], before[NOISE_SAMPLE];
	bool result = false;

	for (int from_middle = 0; from_middle < 2; from_middle++) {
		size_t now_size = sample(now_fd, from_middle, now), size = sample(before_fd, from_middle, before);

		result |= now_size && noise_is_scrambled(now, now_size, size ? before : NULL, size);
	}
	return result;
}

static int on_change(void *context, const struct stage_change *change)
{
	struct counting *counting = context;
	cleanup_fd int now_fd = FD_NONE, before_fd = FD_NONE;

	if (change->kind == STAGE_DELETED || !change->staged_exists || !S_ISREG(change->staged.st_mode))
		return 0;
	if (counting->count.sampled == NOISE_FILES_MAX)
		return -ECANCELED;
	now_fd = stage_change_open(counting->stack, change);
	if (change->host_exists && S_ISREG(change->host.st_mode))
		before_fd = stage_change_open_host(counting->stack, change);
	counting->count.sampled++;
	counting->count.scrambled += is_scrambled(now_fd, before_fd);
	return 0;
}

static int count(const struct noise_options *given, struct err *err)
{
	cleanup_opened struct opened opened = OPENED_NONE;
	struct counting counting = { 0 };
	int r = opened_open(&opened, &given->session, err);

	if (r == 0)
		r = opened_stacks(&opened, err);
	if (r == 0)
		r = opened_confine(&opened, CONFINE_STAGE_READING, err);
	for (size_t i = 0; r == 0 && i < opened.record.tree_count; i++) {
		struct stage_change_options walk = { .tree = i, .start_ns = opened.start_ns };

		counting.stack = &opened.stacks[i];
		r = stage_changes_walk(counting.stack, &walk, on_change, &counting);
		if (r == -ECANCELED || r == -E2BIG)
			r = 0;
	}
	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, &counting.count, sizeof counting.count);
	return r < 0 && err->code == ERR_NONE ? err_set(err, ERR_STATE, -r, "noise", "what was staged cannot be read")
					       : r;
}

int cmd_noise(int argc, char **argv, struct err *err)
{
	struct noise_options given = { 0 };
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r != 0)
		return r < 0 ? r : options_print(options, ARRAY_SIZE(options), STDOUT_FILENO);
	return count(&given, err);
}
