/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/layer/walk.h"

#include <fcntl.h>
#include <string.h>

#include "base/str.h"
#include "os/path.h"
#include "stage/record/names.h"
#include "stage/record/store.h"

/*
 * Theory of operation. A level is one directory that the walk is in: the layers that have it (top first, down to the
 * first that is opaque), the host's directory of that path, and the mask's. Levels form a stack on the heap. Only
 * the deepest ones hold fds: a level whose fds were taken away (parked) gets them back, when the walk returns to it, by
 * its path from the roots, and only if the same inodes are there. So neither a deep tree nor one that is moved
 * about while it is read makes the walk leave what it was given, or run out of fds or of C stack.
 */

enum { SIDES_MAX = STAGE_STACK_MAX + 2, PATH_SIZE_MAX = STAGE_WALK_DEPTH_MAX * 256 };

/* One directory of a level: a layer's, the host's or the mask's. */
struct side {
	int fd;          /* owned beyond level 0; FD_NONE while parked or where there is none */
	uint32_t source; /* index into the stack's layers, or SOURCE_HOST, SOURCE_MASK */
	dev_t device;
	ino_t inode;
};

enum { SOURCE_HOST = STAGE_STACK_MAX, SOURCE_MASK };

struct level {
	struct side *sides;        /* layers top first, then the host and the mask where they have it */
	size_t side_count;
	struct stage_names names;
	size_t at;                 /* the next name */
	size_t path_size;          /* of walk.path while in this level */
	bool is_opaque;            /* nothing of the host shows through */
	bool is_masked;            /* all of the host's names are hidden */
	bool is_parked;
	struct stage_entry entry;  /* of the directory itself, for leave() */
};

struct walk {
	const struct stage_stack *stack;
	const struct stage_visitor *visitor;
	struct level **levels;
	size_t depth, capacity;    /* levels in use */
	size_t first_open;         /* levels below it (but 0) are parked */
	size_t open_fds;
	uint64_t entries;
	char *path;
	size_t path_capacity;
};

static const struct side *find_side(const struct level *level, uint32_t source)
{
	for (size_t i = 0; i < level->side_count; i++)
		if (level->sides[i].source == source)
			return &level->sides[i];
	return NULL;
}

static int side_fd(const struct level *level, uint32_t source)
{
	const struct side *side = find_side(level, source);

	return side ? side->fd : FD_NONE;
}

static int root_fd(const struct walk *walk, uint32_t source)
{
	if (source == SOURCE_HOST)
		return walk->stack->host_fd;
	return source == SOURCE_MASK ? walk->stack->mask_fd : walk->stack->layers[source];
}

static void park(struct walk *walk, struct level *level)
{
	for (size_t i = 0; i < level->side_count; i++) {
		walk->open_fds -= level->sides[i].fd >= 0;
		close_fd(&level->sides[i].fd);
	}
	level->is_parked = true;
}

/* Makes room for the fds of one more level. */
static void park_oldest(struct walk *walk, size_t needed)
{
	while (walk->open_fds + needed > STAGE_WALK_FDS_MAX && walk->first_open + 1 < walk->depth)
		park(walk, walk->levels[walk->first_open++]);
}

/* -ESTALE: another directory is at that path now. */
static int unpark(struct walk *walk, struct level *level)
{
	char *end = walk->path + level->path_size, saved = *end;
	int r = 0;

	*end = 0;
	for (size_t i = 0; r == 0 && i < level->side_count; i++) {
		struct side *side = &level->sides[i];
		struct stat st;

		side->fd = stage_open_beneath(root_fd(walk, side->source), walk->path, O_RDONLY | O_DIRECTORY, 0);
		walk->open_fds += side->fd >= 0;
		if (side->fd < 0 || fstat(side->fd, &st) < 0 || st.st_dev != side->device ||
		    st.st_ino != side->inode)
			r = -ESTALE;
	}
	*end = saved;
	if (r < 0) {
		park(walk, level);
		return r;
	}
	level->is_parked = false;
	walk->first_open = walk->depth - 1;
	return 0;
}

static void level_free(struct walk *walk, struct level *level, bool is_root)
{
	if (!is_root)
		park(walk, level);
	free(level->sides);
	stage_names_done(&level->names);
	free(level);
}

static struct level *level_new(void)
{
	struct level *level = calloc(1, sizeof *level);

	if (level)
		level->sides = calloc(SIDES_MAX, sizeof *level->sides);
	if (level && !level->sides) {
		free(level);
		return NULL;
	}
	return level;
}

/* Gives the level one more directory; takes fd. */
static int add_side(struct level *level, int fd, uint32_t source)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	level->sides[level->side_count++] = (struct side){ fd, source, st.st_dev, st.st_ino };
	return 0;
}

static enum stage_walk_trouble trouble_of(int r)
{
	static const struct {
		int errnum;
		enum stage_walk_trouble trouble;
	} troubles[] = {
		{ EACCES, STAGE_WALK_UNREADABLE }, { EPERM, STAGE_WALK_UNREADABLE }, { EIO, STAGE_WALK_UNREADABLE },
		{ EXDEV, STAGE_WALK_MOUNT },       { ELOOP, STAGE_WALK_CHANGED },    { ENOENT, STAGE_WALK_CHANGED },
		{ ENOTDIR, STAGE_WALK_CHANGED },   { ESTALE, STAGE_WALK_CHANGED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(troubles); i++)
		if (troubles[i].errnum == -r)
			return troubles[i].trouble;
	return STAGE_WALK_FINE;
}

static int open_child(const struct level *parent, uint32_t source, const char *name)
{
	return path_open2(side_fd(parent, source), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, STAGE_RESOLVE_BENEATH);
}

/*
 * The layers that make up a directory: from the deciding one down to one that is opaque, or has something else
 * there, which hides all that is below it. first and end: its names in the parent.
 */
static int open_layers(const struct level *parent, size_t first, size_t end, enum stage_form form, struct level *child)
{
	const char *name = stage_names_get(&parent->names, first);

	for (size_t i = first; i < end; i++) {
		uint32_t source = parent->names.items[i].source;
		struct stage_marks marks;
		struct stat st;
		int fd, r;

		if (source == SOURCE_HOST)
			break;
		if (parent->names.items[i].is_whiteout) {
			child->is_opaque = true;
			return i == first ? -ESTALE : 0;
		}
		if (fstatat(side_fd(parent, source), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -errno;
		/* It was a directory when it decided. Taken for anything else, all of the host's would seem deleted. */
		if (!S_ISDIR(st.st_mode) && i == first)
			return -ESTALE;
		if (!S_ISDIR(st.st_mode)) {
			child->is_opaque = true;
			return 0;
		}
		fd = open_child(parent, source, name);
		if (fd < 0)
			return fd;
		r = add_side(child, fd, source);
		if (r == 0)
			r = stage_marks_of_fd(fd, form, &marks);
		if (r < 0)
			return r;
		if (marks.is_opaque) {
			child->is_opaque = true;
			return 0;
		}
	}
	return 0;
}

static int open_mask(const struct level *parent, const char *name, enum stage_form form, struct level *child)
{
	struct stage_marks marks;
	int r, fd = side_fd(parent, SOURCE_MASK);

	if (child->is_masked || fd < 0)
		return 0;
	fd = open_child(parent, SOURCE_MASK, name);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	r = add_side(child, fd, SOURCE_MASK);
	if (r == 0)
		r = stage_marks_of_fd(fd, form, &marks);
	if (r == 0)
		child->is_masked = marks.is_opaque;
	return r;
}

/* The directories of the entry, on all sides. */
static int open_sides(struct level *parent, size_t first, size_t end, enum stage_form form, struct level *child)
{
	const struct stage_entry *entry = &child->entry;
	int r = 0;

	child->is_opaque = parent->is_opaque;
	child->is_masked = parent->is_masked || entry->is_masked;
	if (entry->kind == STAGE_ENTRY_DIRECTORY)
		r = open_layers(parent, first, end, form, child);
	else
		child->is_opaque = true;
	if (r == 0 && entry->host_exists && S_ISDIR(entry->host.st_mode)) {
		int fd = open_child(parent, SOURCE_HOST, entry->name);

		r = fd < 0 ? fd : add_side(child, fd, SOURCE_HOST);
	}
	return r < 0 ? r : open_mask(parent, entry->name, form, child);
}

static int read_names(struct walk *walk, struct level *level)
{
	for (size_t i = 0; i < level->side_count; i++) {
		const struct side *side = &level->sides[i];
		bool has_prefixes = walk->stack->form == STAGE_FORM_FUSE && side->source != SOURCE_HOST;
		int r;

		if (side->source == SOURCE_MASK || (side->source == SOURCE_HOST && !level->is_opaque))
			continue;
		r = stage_names_read(&level->names,
				     &(struct stage_names_source){
					     .dir_fd = side->fd,
					     .source = side->source,
					     .prefix = has_prefixes ? STAGE_WHITEOUT_PREFIX : NULL,
					     .ignored = has_prefixes ? STAGE_OPAQUE_NAME : NULL,
				     },
				     STAGE_WALK_DIRECTORY_MAX);
		if (r < 0)
			return r;
	}
	walk->entries += level->names.count;
	if (walk->entries > STAGE_WALK_ENTRIES_MAX)
		return -E2BIG;
	stage_names_sort(&level->names);
	return 0;
}

static int push(struct walk *walk, struct level *level)
{
	if (walk->depth == walk->capacity) {
		size_t capacity = walk->capacity ? 2 * walk->capacity : 32;
		struct level **levels = reallocarray(walk->levels, capacity, sizeof *levels);

		if (!levels)
			return -ENOMEM;
		walk->levels = levels;
		walk->capacity = capacity;
	}
	walk->levels[walk->depth++] = level;
	return 0;
}

/* Puts name behind the level's path in walk->path. */
static int set_path(struct walk *walk, size_t start, const char *name, size_t *ret_size)
{
	size_t length = strlen(name), slash = start ? 1 : 0, size = start + slash + length;

	if (size >= PATH_SIZE_MAX)
		return -E2BIG;
	if (size >= walk->path_capacity) {
		size_t capacity = 2 * walk->path_capacity > size ? 2 * walk->path_capacity : 2 * size + 64;
		char *path = realloc(walk->path, capacity);

		if (!path)
			return -ENOMEM;
		walk->path = path;
		walk->path_capacity = capacity;
	}
	if (slash)
		walk->path[start] = '/';
	memcpy(walk->path + start + slash, name, length + 1);
	*ret_size = size;
	return 0;
}

static int leave(struct walk *walk, struct stage_entry *entry)
{
	return walk->visitor->leave ? walk->visitor->leave(walk->visitor->context, entry) : 0;
}

/* Goes into the entry, or tells leave() why not. */
static int enter_below(struct walk *walk, size_t first, size_t end, struct stage_entry *entry, size_t path_size)
{
	struct level *parent = walk->levels[walk->depth - 1], *child;
	int r;

	if (walk->depth >= STAGE_WALK_DEPTH_MAX) {
		entry->trouble = STAGE_WALK_TOO_DEEP;
		return leave(walk, entry);
	}
	park_oldest(walk, parent->side_count);
	child = level_new();
	if (!child)
		return -ENOMEM;
	child->entry = *entry;
	child->path_size = path_size;
	r = open_sides(parent, first, end, walk->stack->form, child);
	walk->open_fds += child->side_count;
	if (r == 0)
		r = read_names(walk, child);
	if (r == 0)
		r = push(walk, child);
	if (r == 0)
		return 0;
	level_free(walk, child, false);
	entry->trouble = trouble_of(r);
	entry->errnum = -r;
	return entry->trouble ? leave(walk, entry) : r;
}

/* The file that stands for a whiteout. */
static int stat_prefixed(int dir_fd, const char *name, struct stat *ret_st)
{
	char prefixed[sizeof STAGE_WHITEOUT_PREFIX + NAME_MAX];
	int r = str_format(prefixed, sizeof prefixed, STAGE_WHITEOUT_PREFIX "%s", name);

	return r < 0 ? r : fstatat(dir_fd, prefixed, ret_st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/*
 * fuse-overlayfs writes an empty file, and a device `.wh..opq` beside an opaque mark, which says nothing more. It lets
 * links, directories and FIFOs be made inside that are called so.
 */
static int judge_prefixed(struct stage_entry *entry)
{
	int r = stat_prefixed(entry->layer_dir_fd, entry->name, &entry->staged);
	bool is_its_own = r == 0 && ((S_ISREG(entry->staged.st_mode) && !entry->staged.st_size) ||
				     stage_is_whiteout(&entry->staged));

	entry->kind = is_its_own ? STAGE_ENTRY_WHITEOUT : STAGE_ENTRY_FILE;
	entry->marks.is_forged = !is_its_own;
	return r;
}

/* What decides at this name. -ENOENT when it is gone since the directory was read. */
static int judge_staged(const struct level *level, size_t first, const struct stage_stack *stack,
			struct stage_entry *entry)
{
	const struct stage_closed *closed = stack->closed;
	uint32_t source = level->names.items[first].source;

	if (source == SOURCE_HOST) {
		entry->kind = STAGE_ENTRY_HIDDEN;
		entry->layer_dir_fd = FD_NONE;
		return 0;
	}
	entry->layer = source;
	entry->layer_dir_fd = side_fd(level, source);
	if (level->names.items[first].is_whiteout)
		return judge_prefixed(entry);
	if (fstatat(entry->layer_dir_fd, entry->name, &entry->staged, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (stage_is_whiteout(&entry->staged)) {
		entry->kind = STAGE_ENTRY_WHITEOUT;
		return 0;
	}
	entry->kind = S_ISDIR(entry->staged.st_mode) ? STAGE_ENTRY_DIRECTORY : STAGE_ENTRY_FILE;
	if (closed && entry->kind == STAGE_ENTRY_DIRECTORY)
		entry->staged.st_mode = stage_closed_mode(closed, &entry->staged);
	if (!S_ISDIR(entry->staged.st_mode) && !S_ISREG(entry->staged.st_mode))
		return 0;
	return stage_marks_at(entry->layer_dir_fd, entry->name, stack->form, &entry->marks);
}

static bool has_mask(int mask_fd, const char *name, enum stage_form form)
{
	struct stat st;

	if (mask_fd < 0)
		return false;
	if (fstatat(mask_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && stage_is_whiteout(&st))
		return true;
	return form == STAGE_FORM_FUSE && stat_prefixed(mask_fd, name, &st) == 0;
}

static int judge_host(const struct level *level, enum stage_form form, struct stage_entry *entry)
{
	entry->host_dir_fd = side_fd(level, SOURCE_HOST);
	if (entry->host_dir_fd >= 0) {
		if (fstatat(entry->host_dir_fd, entry->name, &entry->host, AT_SYMLINK_NOFOLLOW) == 0)
			entry->host_exists = true;
		else if (errno != ENOENT)
			return -errno;
	}
	entry->is_masked = level->is_masked || has_mask(side_fd(level, SOURCE_MASK), entry->name, form);
	/* fuse-overlayfs copies a directory up without these bits. */
	if (form == STAGE_FORM_FUSE && entry->host_exists && S_ISDIR(entry->host.st_mode) &&
	    entry->kind == STAGE_ENTRY_DIRECTORY)
		entry->staged.st_mode |= entry->host.st_mode & (S_ISUID | S_ISGID);
	return 0;
}

static bool has_below(const struct stage_entry *entry)
{
	return entry->kind == STAGE_ENTRY_DIRECTORY || (entry->host_exists && S_ISDIR(entry->host.st_mode));
}

/* No more of this directory: its own leave() will say so. */
static void give_up(struct level *level, int r)
{
	level->at = level->names.count;
	level->entry.trouble = trouble_of(r);
	level->entry.errnum = -r;
}

/* One name of the level, [first, end) in its list. */
static int visit(struct walk *walk, struct level *level, size_t first, size_t end)
{
	struct stage_entry entry = { .depth = walk->depth };
	const char *name = stage_names_get(&level->names, first);
	size_t path_size;
	int r = set_path(walk, level->path_size, name, &path_size);

	if (r < 0)
		return r;
	entry.path = walk->path;
	entry.name = name;
	r = judge_staged(level, first, walk->stack, &entry);
	if (r == 0)
		r = judge_host(level, walk->stack->form, &entry);
	/* Somebody took it away meanwhile: then it is no change, and the next walk sees the same. */
	if (r == -ENOENT)
		return 0;
	/* A directory that may be listed but not searched. */
	if (r == -EACCES) {
		give_up(level, r);
		return 0;
	}
	if (r < 0)
		return r;
	entry.is_opaque = level->is_opaque || entry.marks.is_opaque;
	r = walk->visitor->enter(walk->visitor->context, &entry);
	if (r < 0 || !has_below(&entry))
		return r < 0 ? r : 0;
	return r == STAGE_WALK_SKIP ? leave(walk, &entry) : enter_below(walk, first, end, &entry, path_size);
}

static int pop(struct walk *walk)
{
	struct level *level = walk->levels[walk->depth - 1];
	struct stage_entry entry = level->entry;
	int r;

	walk->depth--;
	walk->path[level->path_size] = 0;
	entry.path = walk->path;
	entry.is_opaque = level->is_opaque;
	if (walk->depth) {
		struct level *above = walk->levels[walk->depth - 1];

		/* leave() is promised the directories above. */
		if (above->is_parked && unpark(walk, above) < 0)
			give_up(above, -ESTALE);
		entry.host_dir_fd = side_fd(above, SOURCE_HOST);
		entry.layer_dir_fd = entry.kind == STAGE_ENTRY_HIDDEN ? FD_NONE : side_fd(above, (uint32_t)entry.layer);
	}
	r = leave(walk, &entry);
	level_free(walk, level, walk->depth == 0);
	return r;
}

static int step(struct walk *walk)
{
	struct level *level = walk->levels[walk->depth - 1];
	size_t first = level->at, end = first + 1;

	if (first >= level->names.count)
		return pop(walk);
	while (end < level->names.count &&
	       strcmp(stage_names_get(&level->names, first), stage_names_get(&level->names, end)) == 0)
		end++;
	level->at = end;
	return visit(walk, level, first, end);
}

static int start(struct walk *walk)
{
	const struct stage_stack *stack = walk->stack;
	struct level *root = level_new();
	struct stage_entry *entry;
	int r = root ? push(walk, root) : -ENOMEM;

	if (r < 0) {
		if (root)
			level_free(walk, root, true);
		return r;
	}
	r = set_path(walk, 0, "", &root->path_size);
	for (size_t i = 0; r == 0 && i < stack->count; i++)
		root->sides[root->side_count++] = (struct side){ .fd = stack->layers[i], .source = (uint32_t)i };
	if (stack->host_fd >= 0)
		root->sides[root->side_count++] = (struct side){ .fd = stack->host_fd, .source = SOURCE_HOST };
	if (stack->mask_fd >= 0)
		root->sides[root->side_count++] = (struct side){ .fd = stack->mask_fd, .source = SOURCE_MASK };
	entry = &root->entry;
	*entry = (struct stage_entry){ .path = walk->path, .name = "", .kind = STAGE_ENTRY_DIRECTORY,
				       .layer_dir_fd = FD_NONE, .host_dir_fd = FD_NONE };
	if (r == 0 && fstat(stack->layers[0], &entry->staged) < 0)
		r = -errno;
	if (r == 0)
		entry->staged.st_mode = stage_closed_mode(stack->closed, &entry->staged);
	if (r == 0)
		r = stage_marks_of_fd(stack->layers[0], stack->form, &entry->marks);
	if (r == 0 && stack->host_fd >= 0) {
		entry->host_exists = fstat(stack->host_fd, &entry->host) == 0;
		r = entry->host_exists ? 0 : -errno;
	}
	return r;
}

int stage_walk(const struct stage_stack *stack, const struct stage_visitor *visitor)
{
	struct walk walk = { .stack = stack, .visitor = visitor, .first_open = 1 };
	int r;

	if (!stack->count)
		return 0;
	r = start(&walk);
	if (r == 0) {
		r = visitor->enter(visitor->context, &walk.levels[0]->entry);
		if (r == STAGE_WALK_SKIP)
			r = 0;
		else if (r == 0)
			r = read_names(&walk, walk.levels[0]);
	}
	while (r == 0 && walk.depth)
		r = step(&walk);
	while (walk.depth) {
		walk.depth--;
		level_free(&walk, walk.levels[walk.depth], walk.depth == 0);
	}
	free(walk.levels);
	free(walk.path);
	return r;
}
