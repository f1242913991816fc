/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/resolve/worktree.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "lang/resolve/chain.h"

/*
 * PROJECT/.git is a file there: "gitdir: X". Whoever can write the project could let it name any directory, which would
 * then come into the sandbox, so that alone counts for nothing: X must name the project too, as git made it. Of a
 * worktree X is REPOSITORY/worktrees/NAME, and X/gitdir names PROJECT/.git; of a submodule X is below
 * SUPERPROJECT/.git/modules/ and is the repository, and core.worktree in X/config names PROJECT. That directory must be
 * called .git, since only what lies in such a one are the patterns of files.protect about.
 */

/* The one line of a file, without what begins it. A line that is not text, or not alone, is none. */
static bool read_line(struct lang *lang, const char *path, const char *begin, char out[PATH_MAX])
{
	struct source_text text = { 0 };
	size_t length, skipped = strlen(begin);
	bool is_line;

	if (chain_read_aside(lang, path, &text) < 0)
		return false;
	length = text.size;
	while (length && (text.bytes[length - 1] == '\n' || text.bytes[length - 1] == '\r'))
		length--;
	is_line = length > skipped && length - skipped < PATH_MAX && memcmp(text.bytes, begin, skipped) == 0 &&
		  !memchr(text.bytes, 0, length) && !memchr(text.bytes, '\n', length);
	if (is_line) {
		memcpy(out, text.bytes + skipped, length - skipped);
		out[length - skipped] = 0;
	}
	free(text.bytes);
	return is_line;
}

/* The real path of what a file in this directory names; relative names are relative to the directory. */
static bool resolve(struct lang *lang, const char *directory, const char *name, char out[PATH_MAX])
{
	char path[PATH_MAX];

	return path_join(path, sizeof path, directory, name) == 0 &&
	       lang->request.reader.real(lang->request.reader.context, path, out, PATH_MAX) == 0;
}

/* "/x/.git" of "/x/.git/worktrees/NAME". */
static bool cut_worktree(const char *named, char out[PATH_MAX])
{
	char *slash;

	if (str_copy(out, PATH_MAX, named) < 0)
		return false;
	slash = strrchr(out, '/');
	if (slash)
		*slash = 0;
	slash = strrchr(out, '/');
	if (!slash || !str_equal(slash, "/worktrees"))
		return false;
	*slash = 0;
	return str_equal(path_basename(out), ".git");
}

static bool names_worktree(struct lang *lang, const char *named, const char *file)
{
	char path[PATH_MAX], line[PATH_MAX], real[PATH_MAX];

	return path_join(path, sizeof path, named, "gitdir") == 0 && read_line(lang, path, "", line) &&
	       resolve(lang, named, line, real) && str_equal(real, file) &&
	       path_join(path, sizeof path, named, "commondir") == 0 && read_line(lang, path, "", line) &&
	       str_equal(line, "../..");
}

/* The value of the only line "worktree = VALUE" of a git configuration, as git writes it where it need not quote. */
static bool read_worktree(char *text, char out[PATH_MAX])
{
	size_t found = 0;
	char *rest = text;

	for (char *line; (line = strsep(&rest, "\n"));) {
		line += strspn(line, " \t");
		if (!str_has_prefix(line, "worktree = "))
			continue;
		found++;
		if (str_copy(out, PATH_MAX, line + strlen("worktree = ")) < 0)
			return false;
	}
	return found == 1 && !strpbrk(out, "\"\\#;\r");
}

static bool names_submodule(struct lang *lang, const char *named, const char *project)
{
	char path[PATH_MAX], value[PATH_MAX], real[PATH_MAX];
	struct source_text text = { 0 };
	char *copy;

	if (!strstr(named, "/.git/modules/") || path_join(path, sizeof path, named, "config") < 0 ||
	    chain_read_aside(lang, path, &text) < 0)
		return false;
	copy = arena_alloc(&lang->arena, text.size + 1);
	if (copy)
		memcpy(copy, text.bytes, text.size);
	free(text.bytes);
	return copy && read_worktree(copy, value) && resolve(lang, named, value, real) && str_equal(real, project);
}

const char *worktree_repository(struct lang *lang)
{
	const char *project = lang->request.project, *home = lang->request.home;
	char file[PATH_MAX], line[PATH_MAX], named[PATH_MAX], repository[PATH_MAX];

	if (!project[0] || lang->request.without_project_file || path_join(file, sizeof file, project, ".git") < 0)
		return NULL;
	if (!read_line(lang, file, "gitdir: ", line) || !resolve(lang, project, line, named))
		return NULL;
	if (cut_worktree(named, repository)) {
		if (!names_worktree(lang, named, file))
			return NULL;
	} else if (!names_submodule(lang, named, project) || str_copy(repository, sizeof repository, named) < 0) {
		return NULL;
	}
	if (path_is_below(project, repository) || (home[0] && path_is_below(home, repository)))
		return NULL;
	return arena_text(&lang->arena, repository);
}
