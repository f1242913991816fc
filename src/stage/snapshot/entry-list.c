/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/snapshot/entry-list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static int grow(struct entry_list *list)
{
	size_t capacity = list->capacity ? 2 * list->capacity : 64;
	struct list_entry *items;

	if (list->count >= ENTRY_LIST_MAX)
		return -E2BIG;
	items = reallocarray(list->items, capacity, sizeof *items);
	if (!items)
		return -ENOMEM;
	list->items = items;
	list->capacity = capacity;
	return 0;
}

static int enter(void *context, const struct stage_entry *entry)
{
	struct entry_list *list = context;
	struct list_entry *item;
	int r = list->count == list->capacity ? grow(list) : 0;

	if (r < 0)
		return r;
	item = &list->items[list->count];
	*item = (struct list_entry){ .path = str_dup(entry->path), .kind = entry->kind, .layer = entry->layer,
				     .is_masked = entry->is_masked, .staged = entry->staged };
	if (!item->path)
		return -ENOMEM;
	list->count++;
	return 0;
}

/* What could not be read cannot be compared. Another file system on the host is in no state of the session. */
static int leave(void *context, const struct stage_entry *entry)
{
	(void)context;
	if (entry->trouble == STAGE_WALK_FINE || entry->trouble == STAGE_WALK_MOUNT)
		return 0;
	return entry->trouble == STAGE_WALK_TOO_DEEP ? -E2BIG
	       : entry->trouble == STAGE_WALK_UNREADABLE ? -EACCES : -ESTALE;
}

int entry_list_load(const struct stage_stack *stack, struct entry_list *list)
{
	struct stage_visitor visitor = { .enter = enter, .leave = leave, .context = list };

	return stage_walk(stack, &visitor);
}

void entry_list_done(struct entry_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].path);
	free(list->items);
	*list = (struct entry_list){ 0 };
}

int entry_path_compare(const char *a, const char *b)
{
	size_t i = 0;
	int x, y;

	while (a[i] && a[i] == b[i])
		i++;
	/* The end of a path comes first, then the slash behind a directory: "a", "a/b", "a-b". */
	x = !a[i] ? 0 : a[i] == '/' ? 1 : (unsigned char)a[i] + 1;
	y = !b[i] ? 0 : b[i] == '/' ? 1 : (unsigned char)b[i] + 1;
	return x - y;
}

bool entry_path_is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 && path[length] == '/';
}
