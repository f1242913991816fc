/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/layer/linked.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "stage/layer/walk.h"

#define NAME "linked"

enum { NS_PER_S = 1000000000, FOUND = -ECANCELED };

int stage_linked_note(int stage_fd)
{
	cleanup_fd int fd = fd_open_at(stage_fd, NAME, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);

	return fd < 0 ? fd : 0;
}

bool stage_linked_is_noted(int sessions_fd, const struct stage_chain *chain)
{
	char path[SESSION_ID_SIZE + sizeof "/" STAGE_DIRECTORY "/" NAME];
	const char *last = "";
	struct stat st;

	for (size_t i = 0; i < chain->count; i++) {
		const char *session = chain->layers[i].session;

		/* Its layers mostly lie upon one another. */
		if (str_equal(session, last))
			continue;
		last = session;
		if (str_format(path, sizeof path, "%s/" STAGE_DIRECTORY "/" NAME, session) == 0 &&
		    fstatat(sessions_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

/* What was put there is in the layers below as well: to remove it leaves a whiteout. */
static int find_newer(void *context, const struct stage_entry *entry)
{
	const struct timespec *ctime = &entry->staged.st_ctim;
	uint64_t since_ns = *(const uint64_t *)context;
	/* Where there are whole seconds alone it may be any moment of that one. */
	uint64_t rest_ns = ctime->tv_nsec ? (uint64_t)ctime->tv_nsec : NS_PER_S - 1;
	uint64_t ctime_ns = (uint64_t)ctime->tv_sec * NS_PER_S + rest_ns;

	return entry->depth && (entry->kind == STAGE_ENTRY_WHITEOUT || ctime_ns >= since_ns) ? FOUND : 0;
}

int stage_linked_is_used(int stage_fd, const struct stage_record *record, uint64_t done_ns)
{
	static const struct stage_chain none;
	struct stage_visitor visitor = { .enter = find_newer, .context = &done_ns };
	int r = 0;

	if (!done_ns)
		return stage_live_is_used(stage_fd, record);
	for (size_t i = 0; r == 0 && i < record->tree_count; i++) {
		cleanup_stage_stack struct stage_stack stack = STAGE_STACK_NONE;

		r = stage_stack_open(FD_NONE, stage_fd, &none, i, true, &stack);
		close_fd(&stack.mask_fd);
		if (r == 0)
			r = stage_walk(&stack, &visitor);
	}
	return r == FOUND ? 1 : r;
}
