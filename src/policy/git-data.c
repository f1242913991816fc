/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/git-data.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "policy/decide.h"

/*
 * Sources: gitrepository-layout(5), git-worktree(1), and what git 2.39 to 2.49 leaves after each of its commands. Not
 * here, although harmless in themselves: objects/info/alternates (takes objects of another repository), info/grafts,
 * BISECT_* (git-bisect was a shell script that read them with eval), branches/ and remotes/ (URLs, ext:: among them),
 * rebase-*, sequencer (lists of commands).
 */
static const struct {
	const char *pattern;
	enum git_part part;
} parts[] = {
	{ "HEAD", GIT_HEAD },
	{ "commondir", GIT_COMMONDIR },
	{ "gitdir", GIT_GITDIR },
	{ "objects", GIT_DATA },
	{ "objects/[0-9a-f][0-9a-f]", GIT_DATA },
	{ "objects/[0-9a-f][0-9a-f]/*", GIT_OBJECT },
	{ "objects/pack", GIT_DATA },
	{ "objects/pack/*.pack", GIT_OBJECT },
	{ "objects/pack/*.idx", GIT_OBJECT },
	{ "objects/pack/*", GIT_DATA },
	{ "objects/pack/multi-pack-index.d/*", GIT_DATA },
	/* While objects come in, until they are checked; some write them together. */
	{ "objects/incoming-*/**", GIT_DATA },
	{ "objects/tmp_objdir-*/**", GIT_DATA },
	{ "objects/maintenance.lock", GIT_DATA },
	{ "objects/info", GIT_DATA },
	{ "objects/info/packs", GIT_DATA },
	{ "objects/info/packs_*", GIT_DATA },
	{ "objects/info/commit-graph", GIT_DATA },
	{ "objects/info/commit-graph.lock", GIT_DATA },
	{ "objects/info/commit-graphs", GIT_DATA },
	{ "objects/info/commit-graphs/*", GIT_DATA },
	{ "refs", GIT_DATA },
	{ "refs/**", GIT_DATA },
	{ "reftable", GIT_DATA },
	{ "reftable/*", GIT_DATA },
	{ "logs", GIT_DATA },
	{ "logs/**", GIT_DATA },
	{ "packed-refs", GIT_DATA },
	{ "index", GIT_INDEX },
	{ "index.lock", GIT_DATA },
	{ "index.stash.*", GIT_DATA },
	{ "next-index-*.lock", GIT_DATA },
	{ "HEAD.lock", GIT_DATA },
	{ "*_HEAD.lock", GIT_DATA },
	{ "AUTO_MERGE.lock", GIT_DATA },
	{ "MERGE_RR.lock", GIT_DATA },
	{ "shallow.lock", GIT_DATA },
	{ "packed-refs.lock", GIT_DATA },
	{ "packed-refs.new", GIT_DATA },
	{ "gc.pid", GIT_DATA },
	{ "gc.pid.lock", GIT_DATA },
	{ "gc.log.lock", GIT_DATA },
	{ "sharedindex.*", GIT_INDEX },
	{ "shallow", GIT_DATA },
	{ "ORIG_HEAD", GIT_DATA },
	{ "FETCH_HEAD", GIT_DATA },
	{ "MERGE_HEAD", GIT_DATA },
	{ "MERGE_MODE", GIT_DATA },
	{ "MERGE_MSG", GIT_DATA },
	{ "AUTO_MERGE", GIT_DATA },
	{ "SQUASH_MSG", GIT_DATA },
	{ "CHERRY_PICK_HEAD", GIT_DATA },
	{ "REVERT_HEAD", GIT_DATA },
	{ "REBASE_HEAD", GIT_DATA },
	{ "COMMIT_EDITMSG", GIT_DATA },
	{ "TAG_EDITMSG", GIT_DATA },
	{ "NOTES_EDITMSG", GIT_DATA },
	{ "EDIT_DESCRIPTION", GIT_DATA },
	{ "description", GIT_DATA },
	{ "gc.log", GIT_DATA },
	{ "rr-cache", GIT_DATA },
	{ "rr-cache/**", GIT_DATA },
	{ "info", GIT_DATA },
	{ "info/exclude", GIT_DATA },
	{ "info/refs", GIT_DATA },
	{ "info/refs_*", GIT_DATA },
	{ "info/sparse-checkout.lock", GIT_DATA },
	{ "info/sparse-checkout", GIT_DATA },
	/* Git runs none with this ending; each new repository has a dozen. */
	{ "hooks/*.sample", GIT_DATA },
	/* The directories; what is in one is a repository of its own. */
	{ "rebase-merge/**", GIT_UNDER_WAY },
	{ "rebase-apply/**", GIT_UNDER_WAY },
	{ "sequencer/**", GIT_UNDER_WAY },
	{ "worktrees", GIT_DATA },
	{ "worktrees/*", GIT_DATA },
	{ "modules", GIT_DATA },
	{ "lfs", GIT_DATA },
	{ "lfs/objects/**", GIT_DATA },
	{ "lfs/incomplete/**", GIT_DATA },
	{ "lfs/tmp/**", GIT_DATA },
};

enum git_part git_part_of(const char *inside)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (glob_match(parts[i].pattern, inside))
			return parts[i].part;
	return GIT_OTHER;
}

static bool is_data(const char *inside, bool in_place)
{
	enum git_part part = git_part_of(inside);

	return part == GIT_DATA || part == GIT_OBJECT || part == GIT_HEAD || part == GIT_INDEX ||
	       (in_place && part == GIT_UNDER_WAY);
}

/*
 * A submodule's name may have slashes, so that its part of the path ends where something of a repository begins. Where
 * more than one place fits, nobody can tell by the name: the directories must be looked at for that.
 */
bool git_is_data_by_name(const char *inside, bool in_place)
{
	if (is_data(inside, in_place))
		return true;
	if (!str_has_prefix(inside, "modules/") && !str_has_prefix(inside, "worktrees/"))
		return false;
	for (const char *slash = strchr(strchr(inside, '/') + 1, '/'); slash; slash = strchr(slash + 1, '/'))
		if (is_data(slash + 1, in_place))
			return true;
	return false;
}

bool git_can_hold_repository(const char *inside)
{
	const char *name;

	if (str_has_prefix(inside, "modules/"))
		return true;
	if (!str_has_prefix(inside, "worktrees/"))
		return false;
	name = inside + strlen("worktrees/");
	return *name && !strchr(name, '/');
}

static bool is_object_name(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!strchr("0123456789abcdef", text[i]))
			return false;
	return size == 40 || size == 64;
}

/* As git-check-ref-format(1) has it, as far as it can matter. */
static bool is_branch(const char *text, size_t size)
{
	static const char begin[] = "ref: refs/";
	size_t length = strlen(begin);

	if (size <= length || memcmp(text, begin, length) != 0 || memmem(text, size, "..", 2))
		return false;
	for (size_t i = length; i < size; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == 127 || strchr("~^:?*[\\", text[i]))
			return false;
	return true;
}

static bool is_path_of_worktree(const char *text, size_t size)
{
	static const char end[] = "/.git";
	size_t length = strlen(end);

	return size > length && text[0] == '/' && memcmp(text + size - length, end, length) == 0;
}

bool git_text_is_ordinary(enum git_part part, const char *text, size_t size)
{
	if (part != GIT_HEAD && part != GIT_COMMONDIR && part != GIT_GITDIR)
		return part == GIT_DATA;
	if (size > GIT_TEXT_MAX)
		return false;
	if (size && text[size - 1] == '\n')
		size--;
	if (memchr(text, '\n', size) || memchr(text, 0, size))
		return false;
	if (part == GIT_HEAD)
		return is_object_name(text, size) || is_branch(text, size);
	if (part == GIT_COMMONDIR)
		return size == strlen("../..") && memcmp(text, "../..", size) == 0;
	return is_path_of_worktree(text, size);
}
