/* SPDX-License-Identifier: Apache-2.0 */
#include "session/flagging.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "policy/git-data.h"

enum { PATH_BYTES_MAX = 2 << 20 };

int flagging_init(struct flagging *flagging, const struct policy *policy)
{
	*flagging = (struct flagging){ .protects = protects_new(policy) };
	buf_init(&flagging->path, PATH_BYTES_MAX);
	return flagging->protects ? 0 : -ENOMEM;
}

void flagging_done(struct flagging *flagging)
{
	protects_free(flagging->protects);
	repositories_free(flagging->repositories);
	flagging->protects = NULL;
	flagging->repositories = NULL;
	buf_done(&flagging->path);
}

int flagging_begin(struct flagging *flagging, const char *tree, const struct stage_stack *stack)
{
	repositories_free(flagging->repositories);
	flagging->tree = tree;
	flagging->stack = stack;
	flagging->repositories = repositories_new(stack);
	return flagging->repositories ? 0 : -ENOMEM;
}

const char *flagging_path(struct flagging *flagging, const char *path)
{
	struct buf *out = &flagging->path;

	buf_reset(out);
	/* The tree "/" ends in the slash that others lack. */
	buf_put_text(out, flagging->tree[1] ? flagging->tree : "");
	if (*path || !flagging->tree[1])
		buf_put_char(out, '/');
	buf_put_text(out, path);
	return buf_error(out) ? NULL : buf_text(out);
}

static bool is_link(const struct stage_change *change)
{
	return change->staged_exists && S_ISLNK(change->staged.st_mode);
}

/* A link leads to another directory; so does a file `.git`, in which git reads the path of one. */
static bool can_stand_in(const struct stage_change *change)
{
	return is_link(change) || (change->staged_exists && S_ISREG(change->staged.st_mode) &&
				   str_equal(path_basename(change->path), ".git"));
}

/* By what a confined program finds in it. */
static bool is_harmless(struct flagging *flagging, const struct stage_change *change, flagging_look_fn *look)
{
	flagging->unread += !look;
	return look && look(flagging->stack, change);
}

/* Files whose text decides are small; what is not is not of the ordinary form. */
static bool is_ordinary(struct flagging *flagging, const struct stage_change *change, enum git_part part)
{
	char text[GIT_TEXT_MAX + 1];
	cleanup_fd int fd = FD_NONE;
	ssize_t size;

	if (part == GIT_DATA)
		return true;
	/* Git believes the name: another content under one is what nobody sees in a diff of two commits. */
	if (part == GIT_OBJECT)
		return change->kind != STAGE_MODIFIED ||
		       (change->staged.st_size == change->host.st_size &&
			is_harmless(flagging, change, flagging->is_same_object));
	/* One that goes names nothing any more. */
	if (part == GIT_INDEX)
		return change->kind == STAGE_DELETED || is_harmless(flagging, change, flagging->is_ordinary_index);
	if (part == GIT_OTHER || !change->staged_exists || !S_ISREG(change->staged.st_mode))
		return false;
	fd = stage_change_open(flagging->stack, change);
	size = fd < 0 ? -1 : read(fd, text, sizeof text);
	return size >= 0 && git_text_is_ordinary(part, text, (size_t)size);
}

static const char *inside_of(const char *path, const struct repository *repository)
{
	return path + repository->length + (repository->length && path[repository->length] ? 1 : 0);
}

/* A worktree's or a submodule's part is where git keeps such ones; another in a repository is somebody's trick. */
static bool is_where_git_keeps_it(const char *path, const struct repository *outer, const struct repository *inner)
{
	char inside[4096];
	size_t skipped = (size_t)(inside_of(path, outer) - path);

	return inner->length > skipped && inner->length - skipped < sizeof inside &&
	       str_format(inside, sizeof inside, "%.*s", (int)(inner->length - skipped), path + skipped) == 0 &&
	       git_can_hold_repository(inside);
}

/* Of a repository that the host has not yet: what makes a directory of the host's one. */
static bool completes(const struct repository *repository, const char *inside)
{
	static const char *const names[] = { "HEAD", "objects", "refs", "commondir" };

	if (repository->is_on_host || !repository->has_host_directory)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcasecmp(inside, names[i]) == 0)
			return true;
	return false;
}

/*
 * A worktree's part holds nothing that git runs but for its commondir, which is looked at itself; any other
 * repository that is new brings a configuration, or can be given one by what is applied later.
 */
static bool is_new_repository(const struct stage_change *change, const struct repository *repository, bool is_worktree)
{
	return !repository->is_on_host && change->kind != STAGE_DELETED && !is_worktree;
}

/* Whether the innermost of several repositories is a worktree's part of the one around it. */
static bool has_worktree(const char *path, const struct repository *repositories, int count)
{
	return count > 1 && str_has_prefix(inside_of(path, &repositories[count - 2]), "worktrees/");
}

/* A change in the directory of one or several repositories in one another. */
static bool is_flagged_inside(struct flagging *flagging, const struct stage_change *change,
			      const struct repository *repositories, int count)
{
	const struct repository *repository = &repositories[count - 1];
	const char *inside = inside_of(change->path, repository);
	bool is_worktree = has_worktree(change->path, repositories, count);
	enum git_part part = git_part_of(inside);

	for (int i = 0; i + 1 < count; i++)
		if (!is_where_git_keeps_it(change->path, &repositories[i], &repositories[i + 1]))
			return true;
	if (is_link(change))
		return true;
	if (!*inside)
		return is_new_repository(change, repository, is_worktree);
	if (completes(repository, inside))
		return true;
	/* An empty directory is nothing to git; what comes into it is judged by itself. */
	if (stage_change_is_directory(change))
		return false;
	/* `../..` is the repository of a worktree's part, and anything anywhere else. */
	if ((part == GIT_COMMONDIR || part == GIT_GITDIR) && !is_worktree)
		return true;
	return !is_ordinary(flagging, change, part);
}

bool flagging_has(struct flagging *flagging, const struct stage_change *change)
{
	struct repository repositories[REPOSITORIES_NESTED_MAX];
	const char *path = flagging_path(flagging, change->path);
	bool is_directory = stage_change_is_directory(change);
	enum protects_verdict verdict = path ? protects_judge(flagging->protects, path, is_directory) : PROTECTS_ALWAYS;
	int count;

	if (verdict == PROTECTS_ALWAYS)
		return true;
	if (can_stand_in(change) && protects_has_above(flagging->protects, path))
		return true;
	is_directory |= change->differs & STAGE_DIFFERS_TYPE;
	count = protects_knows_git(flagging->protects)
			? repositories_of(flagging->repositories, change->path, is_directory, repositories)
			: 0;
	if (count < 0)
		return true;
	if (count > 0)
		return is_flagged_inside(flagging, change, repositories, count);
	if (verdict != PROTECTS_PACKAGE)
		return verdict == PROTECTS_GIT;
	return !is_harmless(flagging, change, flagging->is_same_package);
}
