/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The readers of staged sessions on arbitrary bytes, and the judgement on arbitrary trees: the bytes are taken as
 * orders to make two layers and a host, which are then walked. What the changes make of the host must be what an
 * overlay of the layers would show, worked out by another algorithm.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/change/change.h"

enum {
	SIDES = 3,           /* the live upper, a sealed layer, the host */
	HOST = SIDES - 1,
	NAMES = 3, DEPTH = 4,
	PATHS = (NAMES + 1) * (NAMES + 1) * (NAMES + 1) * (NAMES + 1),
	ORDERS_MAX = 200,
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* A path of the small world: digits in base NAMES + 1, 0 ends it. The text in out; false for the root. */
static bool path_of(unsigned number, char out[2 * DEPTH])
{
	size_t at = 0;

	for (unsigned left = number; left; left /= NAMES + 1) {
		if (left % (NAMES + 1) == 0)
			return false;
		if (at)
			out[at++] = '/';
		out[at++] = (char)('a' + left % (NAMES + 1) - 1);
	}
	out[at] = 0;
	return at > 0;
}

static unsigned number_of(const char *path)
{
	unsigned number = 0, digit = 1;

	for (; *path; path++) {
		if (*path == '/')
			continue;
		require(*path >= 'a' && *path < 'a' + NAMES);
		number += digit * (unsigned)(*path - 'a' + 1);
		digit *= NAMES + 1;
	}
	return number;
}

static void make_file(int dir_fd, const char *name, char content)
{
	cleanup_fd int fd = fd_open_at(dir_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0644);

	if (fd >= 0 && write(fd, &content, 1) < 0)
		return;
}

static void make_opaque(int dir_fd, const char *name)
{
	cleanup_fd int fd = FD_NONE;

	if (mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
		return;
	fd = stage_open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0 && fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) < 0)
		require(errno == EOPNOTSUPP);
}

/* One order: a side, what to make there, and where. */
static void obey(const int fds[SIDES], uint8_t what, uint8_t where, uint8_t content)
{
	enum { FILE_HERE, DIRECTORY_HERE, LINK_HERE, WHITEOUT_HERE, OPAQUE_HERE, FIFO_HERE };
	unsigned side = what % SIDES, kind = what / SIDES % 6;
	cleanup_fd int dir_fd = FD_NONE;
	char path[2 * DEPTH];
	const char *name;

	/* Beneath the side, or the links that are made here would lead out of it. */
	if (path_of(where % PATHS, path))
		dir_fd = stage_open_parent(fds[side], path, &name);
	if (dir_fd < 0)
		return;
	if (kind == FILE_HERE)
		make_file(dir_fd, name, (char)content);
	else if (kind == DIRECTORY_HERE)
		kind = mkdirat(dir_fd, name, content & 1 ? 0755 : 0700) < 0;
	else if (kind == LINK_HERE)
		kind = symlinkat(content & 1 ? "/etc" : "a", dir_fd, name) < 0;
	else if (kind == WHITEOUT_HERE && side != HOST)
		kind = mknodat(dir_fd, name, S_IFCHR, makedev(0, 0)) < 0;
	else if (kind == OPAQUE_HERE && side != HOST)
		make_opaque(dir_fd, name);
	else if (kind == FIFO_HERE && content % 16 == 0)
		kind = mkfifoat(dir_fd, name, 0600) < 0;
}

static bool is_opaque(int dir_fd, const char *path)
{
	cleanup_fd int fd = stage_open_beneath(dir_fd, path, O_RDONLY | O_DIRECTORY, 0);
	char value;

	return fd >= 0 && fgetxattr(fd, "user.overlay.opaque", &value, 1) == 1;
}

/* The type that an overlay shows at this path, by the rules of overlayfs.rst; 0: nothing. from: the first side. */
static mode_t merged_type(const int fds[SIDES], const char *path)
{
	bool active[SIDES] = { true, true, true };
	mode_t type = 0;

	for (const char *end = strchrnul(path, '/');; end = strchrnul(end + 1, '/')) {
		char *part = strndup(path, (size_t)(end - path));
		bool is_below = false;

		type = 0;
		for (unsigned side = 0; part && side < SIDES; side++) {
			struct stat st;

			if (!active[side] || is_below) {
				active[side] = false;
				continue;
			}
			if (fstatat(fds[side], part, &st, AT_SYMLINK_NOFOLLOW) < 0) {
				active[side] = false;
				continue;
			}
			if (!type && !(side != HOST && stage_is_whiteout(&st)))
				type = st.st_mode & S_IFMT;
			active[side] = S_ISDIR(st.st_mode) && type == S_IFDIR;
			is_below = !active[side] || (side != HOST && is_opaque(fds[side], part));
		}
		free(part);
		if (!*end || type != S_IFDIR)
			return *end ? 0 : type;
	}
}

struct model {
	mode_t types[PATHS];     /* of the host, and then as the changes leave it */
	bool all_clean;
	uint64_t changes;
};

static int note(void *context, const struct stage_change *change)
{
	struct model *model = context;
	unsigned number = number_of(change->path);

	model->changes++;
	require(number < PATHS);
	require(change->staged_exists == (change->kind != STAGE_DELETED));
	require((change->state == STAGE_CLEAN) == (change->reason == STAGE_REASON_NONE));
	require(change->kind != STAGE_MODIFIED || change->state == STAGE_REFUSED || change->differs);
	if (change->state != STAGE_CLEAN) {
		model->all_clean = false;
		return 0;
	}
	/* What is deleted or replaced must be empty by then, what is added must have a directory. */
	for (unsigned below = 1; below < PATHS && change->kind != STAGE_ADDED; below++) {
		char path[2 * DEPTH];
		size_t length = strlen(change->path);

		if (length && path_of(below, path) && strncmp(path, change->path, length) == 0 && path[length] == '/')
			require(!model->types[below] || S_ISDIR(change->staged.st_mode) || !model->all_clean);
	}
	model->types[number] = change->staged_exists ? change->staged.st_mode & S_IFMT : 0;
	return 0;
}

/* What is there, without following any link; 0: nothing. */
static mode_t type_at(int dir_fd, const char *path)
{
	const char *name;
	cleanup_fd int parent_fd = stage_open_parent(dir_fd, path, &name);
	struct stat st;

	return parent_fd >= 0 && fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode & S_IFMT : 0;
}

static void judge(const int fds[SIDES])
{
	struct stage_stack stack = STAGE_STACK_NONE;
	struct stage_change_options options = { .start_ns = UINT64_MAX, .exact_content = true };
	struct model model = { .all_clean = true };
	struct stage_counts counts = { 0 };
	char path[2 * DEPTH];

	for (unsigned side = 0; side < HOST; side++)
		stack.layers[stack.count++] = fds[side];
	stack.host_fd = fds[HOST];
	for (unsigned number = 1; number < PATHS; number++)
		if (path_of(number, path))
			model.types[number] = type_at(fds[HOST], path);
	require(stage_changes_walk(&stack, &options, note, &model) == 0);
	for (unsigned number = 1; model.all_clean && number < PATHS; number++)
		if (path_of(number, path))
			require(model.types[number] == merged_type(fds, path));
	require(stage_changes_count(&stack, &options, UINT64_MAX, &counts) == 0);
	require(counts.added + counts.modified + counts.deleted + counts.directories + counts.refused == model.changes);
	require(!counts.is_cut && counts.flagged == 0);
}

static void try_trees(const uint8_t *bytes, size_t size)
{
	static const char *const names[SIDES] = { "live", "sealed", "host" };
	char directory[] = "/var/tmp/atoll-fuzz-stage-XXXXXX";
	int fds[SIDES] = { FD_NONE, FD_NONE, FD_NONE };
	cleanup_fd int root_fd = FD_NONE;

	require(mkdtemp(directory) != NULL);
	root_fd = fd_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
	for (unsigned side = 0; side < SIDES; side++) {
		require(mkdirat(root_fd, names[side], 0755) == 0);
		fds[side] = fd_open_at(root_fd, names[side], O_RDONLY | O_DIRECTORY, 0);
		require(fds[side] >= 0);
	}
	for (size_t at = 0; at + 3 <= size && at < 3 * ORDERS_MAX; at += 3)
		obey(fds, bytes[at], bytes[at + 1], bytes[at + 2]);
	judge(fds);
	for (unsigned side = 0; side < SIDES; side++)
		close_fd(&fds[side]);
	require(path_remove_tree(AT_FDCWD, directory) == 0);
}

static void try_records(const uint8_t *bytes, size_t size)
{
	struct stage_record record;
	struct stage_chain chain;
	cleanup_free uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		return;
	memcpy(copy, bytes, size);
	if (stage_record_parse(copy, size, &record) == 0) {
		require(record.tree_count >= 1 && record.tree_count <= STAGE_TREES_MAX);
		for (size_t i = 0; i < record.tree_count; i++)
			require(record.trees[i].path[0] == '/' && !strstr(record.trees[i].path, "/../"));
		stage_record_done(&record);
	}
	memcpy(copy, bytes, size);
	if (stage_chain_parse(copy, size, &chain) == 0)
		for (size_t i = 0; i < chain.count; i++)
			require(strlen(chain.layers[i].session) == 12 && chain.layers[i].number > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	/* Frames begin with their magic. */
	if (size >= 4 && memcmp(bytes, "atol", 4) == 0)
		try_records(bytes, size);
	else
		try_trees(bytes, size);
	return 0;
}
