/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/verb/path-filter.h"

#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "policy/decide.h"
#include "policy/glob.h"

static const char *absolute(struct path_filter *filter, size_t tree, const char *path)
{
	const char *root = opened_tree(filter->opened, tree);

	buf_reset(&filter->path);
	buf_put_text(&filter->path, str_equal(root, "/") ? "" : root);
	if (*path || str_equal(root, "/"))
		buf_put_char(&filter->path, '/');
	buf_put_text(&filter->path, path);
	return buf_text(&filter->path);
}

/* At or above a staged tree, or in one. */
static bool is_staged(const struct opened *opened, const char *path)
{
	for (size_t i = 0; i < opened->record.tree_count; i++) {
		const char *root = opened_tree(opened, i);

		if (path_is_below(path, root) || path_is_below(root, path))
			return true;
	}
	return false;
}

static int add_path(const struct opened *opened, const char *word, char **ret_path, struct err *err)
{
	char path[PATH_MAX];

	if (path_normalise(path, sizeof path, word) < 0)
		return err_set(err, ERR_USAGE, EINVAL, "stage", "%s is not an absolute path", word);
	if (!is_staged(opened, path)) {
		err_set(err, ERR_USAGE, ENOENT, "stage", "%s is not in a staged tree", path);
		err_hint(err, "the first staged tree is %s", opened_first_tree(opened));
		return -ENOENT;
	}
	*ret_path = str_dup(path);
	return *ret_path ? 0 : err_set(err, ERR_INTERNAL, ENOMEM, "stage", "out of memory");
}

static int add_paths(const struct opened *opened, const char *const *words, size_t count, char ***ret_paths,
		     struct err *err)
{
	char **paths = calloc(count + 1, sizeof *paths);
	int r = 0;

	if (!paths)
		return err_set(err, ERR_INTERNAL, ENOMEM, "stage", "out of memory");
	*ret_paths = paths;
	for (size_t i = 0; i < count && r == 0; i++)
		r = add_path(opened, words[i], &paths[i], err);
	return r;
}

int path_filter_init(struct path_filter *ret_wanting, const struct opened *opened, char **words, int count,
		     struct err *err)
{
	*ret_wanting = (struct path_filter){ .opened = opened };
	buf_init(&ret_wanting->path, 2 << 20);
	return add_paths(opened, (const char *const *)words, (size_t)count, &ret_wanting->paths, err);
}

/* The base goes into a pattern as it is: what is special in it is quoted. */
static void put_quoted(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("*?[\\", *text))
			buf_put_char(out, '\\');
		buf_put_char(out, *text);
	}
}

static char *absolute_glob(const struct opened *opened, const char *glob)
{
	cleanup_buf struct buf out;

	buf_init(&out, GLOB_SIZE_MAX);
	if (glob[0] != '/' && strchr(glob, '/'))
		put_quoted(&out, opened->session->base ? opened->session->base : opened_first_tree(opened));
	else if (glob[0] != '/')
		buf_put_text(&out, "/**");
	if (glob[0] != '/')
		buf_put_char(&out, '/');
	buf_put_text(&out, glob);
	return buf_error(&out) ? NULL : str_dup(buf_text(&out));
}

int path_filter_exclude(struct path_filter *filter, const struct option_list *globs, struct err *err)
{
	filter->globs = calloc(globs->count + 1, sizeof *filter->globs);
	if (!filter->globs)
		return err_set(err, ERR_INTERNAL, ENOMEM, "stage", "out of memory");
	for (size_t i = 0; i < globs->count; i++) {
		const char *problem = glob_problem(globs->values[i]);

		if (!problem && !*globs->values[i])
			problem = "it is empty";
		if (!problem)
			filter->globs[i] = absolute_glob(filter->opened, globs->values[i]);
		if (problem || !filter->globs[i])
			return err_set(err, ERR_USAGE, EINVAL, "apply", "-x %s is not a pattern: %s", globs->values[i],
				       problem ? problem : "it is too long");
	}
	return 0;
}

int path_filter_allow(struct path_filter *filter, const struct option_list *paths, struct err *err)
{
	return add_paths(filter->opened, paths->values, paths->count, &filter->allowed, err);
}

void path_filter_done(struct path_filter *filter)
{
	strv_free(filter->paths);
	strv_free(filter->allowed);
	strv_free(filter->globs);
	buf_done(&filter->path);
}

static bool is_in(char *const *paths, const char *path)
{
	for (; paths && *paths; paths++)
		if (path_is_below(path, *paths))
			return true;
	return false;
}

bool path_filter_has(struct path_filter *filter, size_t tree, const char *path)
{
	const char *full = absolute(filter, tree, path);

	if (buf_error(&filter->path) || (*filter->paths && !is_in(filter->paths, full)))
		return false;
	for (char *const *glob = filter->globs; glob && *glob; glob++)
		if (glob_match_below(*glob, full) >= 0)
			return false;
	return true;
}

bool path_filter_allows(struct path_filter *filter, size_t tree, const char *path)
{
	const char *full = absolute(filter, tree, path);

	return !buf_error(&filter->path) && is_in(filter->allowed, full);
}
