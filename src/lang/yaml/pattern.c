/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/yaml/pattern.h"

#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "policy/glob.h"

/* path with a backslash before each character that a glob would read; NULL when out of memory. */
static const char *quote(struct arena *arena, const char *path)
{
	char *quoted = arena_alloc(arena, strlen(path) * 2 + 1), *at = quoted;

	for (; quoted && *path; path++) {
		if (strchr("*?[]\\", *path))
			*at++ = '\\';
		*at++ = *path;
	}
	return quoted;
}

static bool has_parent_component(const char *text)
{
	for (;;) {
		size_t length = strcspn(text, "/");

		if (length == 2 && text[0] == '.' && text[1] == '.')
			return true;
		if (!text[length])
			return false;
		text += length + 1;
	}
}

static const char *join(struct arena *arena, const char *base, const char *text, struct pattern *ret_pattern)
{
	char out[2 * PATH_MAX];

	if (ret_pattern->is_glob && *text != '/')
		base = quote(arena, base);
	if (!base)
		return NULL;
	if (path_join(out, sizeof out, base, text) < 0 || strlen(out) >= PATH_MAX)
		return "the path is too long";
	ret_pattern->text = arena_text(arena, out);
	return ret_pattern->is_glob && ret_pattern->text ? glob_problem(ret_pattern->text) : NULL;
}

const char *pattern_below_home(const char *text)
{
	/* "~//x" is "~/x": what is left must not begin with a slash, or it would be taken from the root. */
	text += 1 + strspn(text + 1, "/");
	return *text ? text : ".";
}

const char *pattern_resolve(struct arena *arena, const struct pattern_scope *scope, enum pattern_kind kind,
			    const char *text, struct pattern *ret_pattern)
{
	*ret_pattern = (struct pattern){ .is_glob = glob_is_pattern(text) };
	if (!*text)
		return "the path is empty; \".\" is the project";
	if (ret_pattern->is_glob && has_parent_component(text))
		return "a pattern cannot hold \"..\"";
	if (*text == '/')
		return join(arena, "/", text, ret_pattern);
	if (*text == '~') {
		if (text[1] && text[1] != '/')
			return "only \"~\" and \"~/…\" are known; write another user's home as an absolute "
			       "path";
		if (!scope->home[0])
			return NULL;
		return join(arena, scope->home, pattern_below_home(text), ret_pattern);
	}
	if (kind == PATTERN_ANYWHERE && (str_has_prefix(text, "**/") || str_equal(text, "**")))
		return join(arena, "/", text, ret_pattern);
	if (!scope->project[0])
		return "a relative path, and there is no project that it could be relative to";
	ret_pattern->is_relative = true;
	return join(arena, scope->project, text, ret_pattern);
}
