/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/layers/size.h"

#include <fcntl.h>

#include "os/fd.h"
#include "stage/layer/walk.h"

/* The walk of one "layer" that is the directory itself: bounded as any other walk of hostile trees. */

static int add(void *context, const struct stage_entry *entry)
{
	uint64_t *bytes = context;

	*bytes += (uint64_t)entry->staged.st_blocks * 512;
	return 0;
}

int size_of_tree(int dir_fd, const char *name, uint64_t *bytes)
{
	struct stage_visitor visitor = { .enter = add, .context = bytes };
	struct stage_stack stack = STAGE_STACK_NONE;
	int r;

	stack.layers[0] = fd_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (stack.layers[0] < 0)
		return stack.layers[0] == -ENOENT ? 0 : stack.layers[0];
	stack.count = 1;
	r = stage_walk(&stack, &visitor);
	stage_stack_done(&stack);
	return r == -E2BIG ? 0 : r;
}
