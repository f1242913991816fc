/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/review/package.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

/*
 * Members that run nothing by themselves. All others count, whether npm knows them or not: yarn, pnpm, husky,
 * lint-staged, volta, corepack and editors each read their own, and there will be more of them. What comes with a
 * dependency has scripts too; a registry's package is no change of this project, and its lock file is shown beside it.
 * (npm's package.json page; pnpm, yarn.)
 */
static const char *const harmless[] = {
	"author", "browserslist", "bugs", "bundleDependencies", "bundledDependencies", "contributors", "cpu",
	"dependencies", "description", "devDependencies", "engines", "exports", "files", "funding", "homepage",
	"keywords", "libc", "license", "main", "maintainers", "man", "module", "name", "optionalDependencies", "os",
	"peerDependencies", "peerDependenciesMeta", "private", "publishConfig", "repository", "sideEffects", "type",
	"types", "typesVersions", "typings", "version",
};

void package_prepare(void)
{
	json_object_seed(0);
}

static bool is_harmless(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (str_equal(name, harmless[i]))
			return true;
	return false;
}

static json_t *parse(const char *text, size_t size)
{
	json_t *root = text ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : json_object();

	if (!json_is_object(root)) {
		json_decref(root);
		return NULL;
	}
	return root;
}

/* Whether b has all that counts in a, and the same. */
static bool has_all(const json_t *a, const json_t *b)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)a, name, value)
		if (!is_harmless(name) && !json_equal(value, json_object_get(b, name)))
			return false;
	return true;
}

bool package_text_is_same(const char *staged, size_t staged_size, const char *host, size_t host_size)
{
	json_t *new = parse(staged, staged_size), *old = parse(host, host_size);
	bool is_same = new && old && has_all(new, old) && has_all(old, new);

	json_decref(new);
	json_decref(old);
	return is_same;
}

/* 0, or negative: it cannot be read, or is too large. */
static int read_text(int fd, char **ret_text, size_t *ret_size)
{
	char *text = malloc(PACKAGE_BYTES_MAX + 1);
	size_t size = 0;
	ssize_t n = 1;

	while (text && n > 0 && size <= PACKAGE_BYTES_MAX) {
		n = read(fd, text + size, PACKAGE_BYTES_MAX + 1 - size);
		size += n > 0 ? (size_t)n : 0;
	}
	if (!text || n < 0 || size > PACKAGE_BYTES_MAX) {
		free(text);
		return -1;
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}

static int read_side(bool exists, const struct stat *st, int fd, char **ret_text, size_t *ret_size)
{
	*ret_text = NULL;
	*ret_size = 0;
	if (!exists)
		return 0;
	return S_ISREG(st->st_mode) && fd >= 0 ? read_text(fd, ret_text, ret_size) : -1;
}

bool package_is_same(const struct stage_stack *stack, const struct stage_change *change)
{
	cleanup_fd int staged_fd = change->staged_exists ? stage_change_open(stack, change) : FD_NONE;
	cleanup_fd int host_fd = change->host_exists ? stage_change_open_host(stack, change) : FD_NONE;
	cleanup_free char *staged = NULL, *host = NULL;
	size_t staged_size, host_size;

	if (read_side(change->staged_exists, &change->staged, staged_fd, &staged, &staged_size) < 0 ||
	    read_side(change->host_exists, &change->host, host_fd, &host, &host_size) < 0)
		return false;
	/* One that goes runs nothing any more. */
	return !change->staged_exists || package_text_is_same(staged, staged_size, host, host_size);
}
