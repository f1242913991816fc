/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/layer/layer.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/remove.h"
#include "stage/record/store.h"

enum { NAME_SIZE = 64 };

/* As much of path as one openat2(2) takes: whole components, below PATH_MAX. The length, 0 where one is too long. */
static size_t next_piece(const char *path)
{
	size_t length = strnlen(path, PATH_MAX - 1);

	if (!path[length])
		return length;
	while (length && path[length] != '/')
		length--;
	return length;
}

/* Opens the directories of path up to its last piece; *ret_rest is what is left, shorter than PATH_MAX. */
static int descend(int dir_fd, const char *path, const char **ret_rest)
{
	cleanup_fd int fd = FD_NONE;
	char piece[PATH_MAX];

	for (;;) {
		size_t length = next_piece(path);
		int next;

		if (!path[length]) {
			*ret_rest = path;
			return fd < 0 ? fd_duplicate(dir_fd) : take_fd(&fd);
		}
		if (!length)
			return -ENAMETOOLONG;
		memcpy(piece, path, length);
		piece[length] = 0;
		next = path_open2(fd < 0 ? dir_fd : fd, piece, O_PATH | O_DIRECTORY, 0, STAGE_RESOLVE_BENEATH);
		if (next < 0)
			return next;
		close_fd(&fd);
		fd = next;
		path += length + 1;
	}
}

int stage_open_beneath(int dir_fd, const char *path, uint64_t flags, mode_t mode)
{
	cleanup_fd int fd = FD_NONE;
	const char *rest = path;

	if (strlen(path) >= PATH_MAX) {
		fd = descend(dir_fd, path, &rest);
		if (fd < 0)
			return fd;
	}
	return path_open2(fd < 0 ? dir_fd : fd, *rest ? rest : ".", flags | O_NOFOLLOW, mode, STAGE_RESOLVE_BENEATH);
}

int stage_open_parent(int dir_fd, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	cleanup_free char *parent = NULL;
	int fd;

	parent = slash ? strndup(path, (size_t)(slash - path)) : str_dup("");
	if (!parent)
		return -ENOMEM;
	fd = stage_open_beneath(dir_fd, parent, O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0)
		*ret_name = slash ? slash + 1 : path;
	return fd;
}

static int tree_path(char out[NAME_SIZE], const char *folder, size_t tree_index, const char *rest)
{
	return str_format(out, NAME_SIZE, "%s/%zu%s", folder, tree_index, rest);
}

int stage_take_attributes(int fd, const struct stat *st, const struct stage_tree *tree)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (geteuid() == 0 && fchown(fd, tree->jail_uid, tree->jail_gid) < 0)
		return -errno;
	return fchmod(fd, st->st_mode & 03777) < 0 || futimens(fd, times) < 0 ? -errno : 0;
}

/* A directory like the host's; one that is there is left as it is. */
static int make_like(int dir_fd, const char *name, const struct stat *st, const struct stage_tree *tree)
{
	cleanup_fd int fd = FD_NONE;

	if (mkdirat(dir_fd, name, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = fd_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return fd < 0 ? fd : stage_take_attributes(fd, st, tree);
}

static int make_live(int stage_fd, size_t tree_index, const struct stage_tree *tree, int host_fd)
{
	char path[NAME_SIZE];
	struct stat st;
	int r = tree_path(path, STAGE_DIRECTORY_LIVE, tree_index, "");

	if (r == 0)
		r = path_make_directories(stage_fd, path, 0700);
	/* As root the jail reaches the two in it by an fd of this one alone, as its own user. */
	if (r == 0 && geteuid() == 0 &&
	    fchownat(stage_fd, path, tree->jail_uid, tree->jail_gid, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	if (r == 0 && fstat(host_fd, &st) < 0)
		r = -errno;
	if (r == 0)
		r = tree_path(path, STAGE_DIRECTORY_LIVE, tree_index, "/upper");
	if (r == 0)
		r = make_like(stage_fd, path, &st, tree);
	if (r == 0)
		r = tree_path(path, STAGE_DIRECTORY_LIVE, tree_index, "/work");
	/* What a run left in it (a marker of `volatile`, names in the making) forbids another to use it. */
	if (r == 0 && faccessat(stage_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		r = stage_remove_tree(stage_fd, path, NULL);
	if (r < 0)
		return r;
	st.st_mode = S_IFDIR | 0700;
	return make_like(stage_fd, path, &st, tree);
}

int stage_live_make(int stage_fd, size_t tree_index, const struct stage_tree *tree, int host_fd, struct err *err)
{
	int r = make_live(stage_fd, tree_index, tree, host_fd);

	if (r < 0)
		err_set(err, ERR_STATE, -r, "stage", "the upper layer of %s cannot be made: %s", tree->path,
			err_errno_name(-r));
	return r;
}

static int open_sealed(int sessions_fd, const struct stage_layer *layer, size_t tree_index, uint64_t how)
{
	char path[NAME_SIZE];
	int r;

	if (!stage_session_is_valid(layer->session))
		return -EINVAL;
	r = str_format(path, sizeof path, "%s/" STAGE_DIRECTORY "/" STAGE_DIRECTORY_LAYERS "/%u/%zu", layer->session,
		       layer->number, tree_index);
	/* Not NO_XDEV: the state directory may have mounts of its own; nothing hostile made these names. */
	return r < 0 ? r : path_open2(sessions_fd, path, how | O_DIRECTORY, 0,
				      RESOLVE_BENEATH | STAGE_RESOLVE_NO_LINKS);
}

int stage_layer_open(int sessions_fd, const struct stage_layer *layer, size_t tree_index)
{
	return open_sealed(sessions_fd, layer, tree_index, O_RDONLY);
}

/* Takes fd, the root of a layer, or why there is none; path_fd, which it closes, is asked where that is EACCES. */
static int add_layer(struct stage_stack *stack, int fd, int path_fd)
{
	int r;

	if (fd == -EACCES && path_fd >= 0)
		fd = stage_closed_open(stack->closed, path_fd);
	close_fd(&path_fd);
	if (fd < 0)
		return fd;
	r = stage_closed_scan(stack->closed, fd);
	stack->layers[stack->count++] = fd;
	return r;
}

static int open_layers(int sessions_fd, int stage_fd, const struct stage_chain *chain, size_t tree_index,
		       struct stage_stack *stack)
{
	char path[NAME_SIZE];
	int fd, r = tree_path(path, STAGE_DIRECTORY_LIVE, tree_index, "/upper");

	if (r == 0 && stage_fd >= 0) {
		fd = fd_open_at(stage_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		r = add_layer(stack, fd,
			      fd == -EACCES ? fd_open_at(stage_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0)
				    : FD_NONE);
	}
	for (size_t i = chain->count; r == 0 && i-- > 0;) {
		fd = stage_layer_open(sessions_fd, &chain->layers[i], tree_index);
		r = add_layer(stack, fd,
			      fd == -EACCES ? open_sealed(sessions_fd, &chain->layers[i], tree_index, O_PATH)
				    : FD_NONE);
	}
	return r;
}

int stage_stack_open(int sessions_fd, int stage_fd, const struct stage_chain *chain, size_t tree_index, bool with_live,
		     struct stage_stack *ret_stack)
{
	cleanup_stage_stack struct stage_stack stack = STAGE_STACK_NONE;
	char path[NAME_SIZE];
	int r;

	stack.closed = ret_stack->closed;
	r = open_layers(sessions_fd, with_live ? stage_fd : FD_NONE, chain, tree_index, &stack);
	if (r == 0)
		r = tree_path(path, STAGE_DIRECTORY_MASK, tree_index, "");
	if (r < 0)
		return r;
	stack.mask_fd = fd_open_at(stage_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (stack.mask_fd < 0 && stack.mask_fd != -ENOENT)
		return stack.mask_fd;
	if (stack.mask_fd < 0)
		stack.mask_fd = FD_NONE;
	*ret_stack = stack;
	stack = STAGE_STACK_NONE;
	return 0;
}

int stage_stack_open_host(struct stage_stack *stack, const struct stage_tree *tree, struct err *err)
{
	int fd = stage_tree_open(tree, err);

	if (fd < 0)
		return fd;
	close_fd(&stack->host_fd);
	stack->host_fd = fd;
	return 0;
}

void stage_stack_done(struct stage_stack *stack)
{
	for (size_t i = 0; i < stack->count; i++)
		close_fd(&stack->layers[i]);
	stack->count = 0;
	close_fd(&stack->mask_fd);
	close_fd(&stack->host_fd);
}

bool stage_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}
