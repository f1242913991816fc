/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/git/git-ignored.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "policy/decide.h"
#include "policy/glob.h"
#include "prog/atoll-stage/review/text.h"

enum { RULES_MAX = 20000, TEXT_MAX = 1 << 20 };

struct rule {
	char *glob;                  /* owned; absolute, as if the work tree was the root */
	bool is_negated, is_for_directories;
};

struct directory {
	char *path;                  /* owned; "" is the work tree */
	size_t first, count;         /* its rules */
};

struct git_ignored {
	const struct opened *opened;
	const struct apply *apply;
	const char *root;
	size_t *lists;               /* owned: the items that are a .gitignore */
	size_t list_count;
	char **nested;               /* owned: directories in which the session made a repository */
	size_t nested_count;
	struct directory *directories; /* owned */
	size_t directory_count;
	struct rule *rules;          /* owned */
	size_t rule_count;
};

static const char *inner_path(const struct git_ignored *ignored, size_t item, char full[PATH_MAX])
{
	const struct stage_change *change = ignored->apply->items[item].change;
	const char *tree = ignored->opened->record.trees[change->tree].path;
	size_t length = str_equal(ignored->root, "/") ? 0 : strlen(ignored->root);

	if (str_format(full, PATH_MAX, "%s/%s", str_equal(tree, "/") ? "" : tree, change->path) < 0 ||
	    strncmp(full, ignored->root, length) != 0 || full[length] != '/')
		return NULL;
	return full + length + 1;
}

static int find_nested(struct git_ignored *ignored)
{
	char full[PATH_MAX];

	for (size_t i = 0; i < ignored->apply->count; i++) {
		const struct stage_change *change = ignored->apply->items[i].change;
		const char *path = str_equal(path_basename(change->path), ".git") && change->staged_exists
					   ? inner_path(ignored, i, full) : NULL;
		char **grown;

		if (!path || !strchr(path, '/'))
			continue;
		grown = realloc(ignored->nested, (ignored->nested_count + 1) * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		ignored->nested = grown;
		grown[ignored->nested_count] = strndup(path, strlen(path) - strlen(".git"));
		if (!grown[ignored->nested_count++])
			return -ENOMEM;
	}
	return 0;
}

int git_ignored_new(const struct opened *opened, const struct apply *apply, const char *root,
		    struct git_ignored **ret_ignored)
{
	struct git_ignored *ignored = calloc(1, sizeof *ignored);

	if (!ignored)
		return -ENOMEM;
	*ignored = (struct git_ignored){ .opened = opened, .apply = apply, .root = root };
	ignored->lists = calloc(apply->count + 1, sizeof *ignored->lists);
	ignored->rules = calloc(RULES_MAX, sizeof *ignored->rules);
	*ret_ignored = ignored;
	for (size_t i = 0; ignored->lists && i < apply->count; i++)
		if (str_equal(path_basename(apply->items[i].change->path), ".gitignore"))
			ignored->lists[ignored->list_count++] = i;
	return ignored->lists && ignored->rules ? find_nested(ignored) : -ENOMEM;
}

void git_ignored_free(struct git_ignored *ignored)
{
	if (!ignored)
		return;
	for (size_t i = 0; i < ignored->directory_count; i++)
		free(ignored->directories[i].path);
	for (size_t i = 0; i < ignored->rule_count; i++)
		free(ignored->rules[i].glob);
	for (size_t i = 0; i < ignored->nested_count; i++)
		free(ignored->nested[i]);
	free(ignored->nested);
	free(ignored->directories);
	free(ignored->rules);
	free(ignored->lists);
	free(ignored);
}

/* The rules. */

static void put_quoted(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("*?[\\", *text))
			buf_put_char(out, '\\');
		buf_put_char(out, *text);
	}
}

static void add_rule(struct git_ignored *ignored, const char *directory, char *line)
{
	struct rule rule = { .is_negated = *line == '!' };
	size_t length;
	cleanup_buf struct buf glob;

	buf_init(&glob, GLOB_SIZE_MAX);
	line += rule.is_negated;
	length = strlen(line);
	while (length && (line[length - 1] == ' ' || line[length - 1] == '\r') &&
	       !(length > 1 && line[length - 2] == '\\'))
		line[--length] = 0;
	if (length && line[length - 1] == '/') {
		rule.is_for_directories = true;
		line[--length] = 0;
	}
	if (!length || *line == '#' || ignored->rule_count == RULES_MAX)
		return;
	buf_put_char(&glob, '/');
	put_quoted(&glob, directory);
	buf_put_text(&glob, *directory ? "/" : "");
	if (*line == '/')
		line++;
	else if (!strchr(line, '/'))
		buf_put_text(&glob, "**/");
	buf_put_text(&glob, line);
	/* One that cannot be matched ignores nothing: what it meant is committed, and seen. */
	if (buf_error(&glob) || glob_problem(buf_text(&glob)) || !(rule.glob = str_dup(buf_text(&glob))))
		return;
	ignored->rules[ignored->rule_count++] = rule;
}

/* The text of a directory's .gitignore, as it will be; NULL: there is none. */
static char *load_list(const struct git_ignored *ignored, const char *directory)
{
	char wanted[PATH_MAX], full[PATH_MAX], *bytes;
	struct text text = { 0 };
	size_t size;

	if (str_format(wanted, sizeof wanted, "%s%s.gitignore", directory, *directory ? "/" : "") < 0)
		return NULL;
	for (size_t i = 0; i < ignored->list_count; i++) {
		size_t item = ignored->lists[i];
		const struct stage_change *change = ignored->apply->items[item].change;

		if (!str_equal(inner_path(ignored, item, full), wanted))
			continue;
		if (!S_ISREG(change->staged.st_mode) ||
		    text_load(ignored->opened, change, SIDE_STAGED, TEXT_MAX, &text) < 0 || text.kind != TEXT_LINES) {
			text_done(&text);
			return NULL;
		}
		bytes = strndup(text.bytes, text.size);
		text_done(&text);
		return bytes;
	}
	if (str_format(full, sizeof full, "%s/%s", ignored->root, wanted) < 0 ||
	    fd_read_regular_at(AT_FDCWD, full, TEXT_MAX, &bytes, &size) < 0)
		return NULL;
	return bytes;
}

static const struct directory *find_directory(struct git_ignored *ignored, const char *path)
{
	struct directory *grown, made = { .first = ignored->rule_count };
	char *text, *at, *line;

	for (size_t i = ignored->directory_count; i-- > 0;)
		if (str_equal(ignored->directories[i].path, path))
			return &ignored->directories[i];
	grown = realloc(ignored->directories, (ignored->directory_count + 1) * sizeof *grown);
	if (!grown)
		return NULL;
	ignored->directories = grown;
	made.path = str_dup(path);
	if (!made.path)
		return NULL;
	at = text = load_list(ignored, path);
	while (at && (line = strsep(&at, "\n")))
		add_rule(ignored, path, line);
	free(text);
	made.count = ignored->rule_count - made.first;
	grown[ignored->directory_count] = made;
	return &grown[ignored->directory_count++];
}

/* What one directory's list says of a path: 1 ignored, 0 not, -1 nothing. The last line that matches counts. */
static int judge(const struct git_ignored *ignored, const struct directory *directory, const char *absolute,
		 bool is_directory)
{
	for (size_t i = directory->first + directory->count; i-- > directory->first;) {
		const struct rule *rule = &ignored->rules[i];

		if ((!rule->is_for_directories || is_directory) && glob_match(rule->glob, absolute))
			return !rule->is_negated;
	}
	return -1;
}

static bool is_ignored_itself(struct git_ignored *ignored, const char *path, bool is_directory)
{
	char absolute[PATH_MAX], directory[PATH_MAX];
	int said = -1;

	if (str_format(absolute, sizeof absolute, "/%s", path) < 0 || str_copy(directory, sizeof directory, path) < 0)
		return false;
	/* From the innermost list outwards: the first that says something counts. */
	while (said < 0 && *directory) {
		char *slash = strrchr(directory, '/');
		const struct directory *list;

		*(slash ? slash : directory) = 0;
		list = find_directory(ignored, directory);
		said = list ? judge(ignored, list, absolute, is_directory) : 0;
	}
	return said > 0;
}

bool git_ignored_has(struct git_ignored *ignored, const char *path)
{
	char above[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		if (str_format(above, sizeof above, "%.*s", (int)(slash - path), path) == 0 &&
		    is_ignored_itself(ignored, above, true))
			return true;
	return is_ignored_itself(ignored, path, false);
}

bool git_ignored_is_own(const struct git_ignored *ignored, const char *path)
{
	char repository[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < ignored->nested_count; i++)
		if (str_has_prefix(path, ignored->nested[i]))
			return true;
	for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
		if (strncasecmp(at, ".git", 4) == 0 && (at[4] == '/' || !at[4]))
			return true;
		/* A repository in this one, on the host. */
		if (at > path && str_format(repository, sizeof repository, "%s/%.*s/.git", ignored->root,
					    (int)(at - path - 1), path) == 0 &&
		    lstat(repository, &st) == 0)
			return true;
	}
	return false;
}
