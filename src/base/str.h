/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bounded strings, string vectors and path text. Pure: nothing here asks the file system,
 * so a normalised path is still only a name (os/path.h resolves names).
 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* NULL equals NULL alone. Inline, as tables are searched with it: most of their rows begin otherwise. */
static inline bool str_equal(const char *a, const char *b)
{
	return a == b || (a && b && *a == *b && strcmp(a, b) == 0);
}

/* Compares bytes; neither may be NULL, and an empty one begins and ends every text. */
bool str_has_prefix(const char *text, const char *prefix);
bool str_has_suffix(const char *text, const char *suffix);

/* Copies text into out[size] with its NUL. -ENAMETOOLONG (out becomes "") if it does not fit. */
int str_copy(char *out, size_t size, const char *text) MUST_USE;

/* Formats into out[size]; -ENAMETOOLONG (out becomes "") if it does not fit, else 0. */
int str_format(char *out, size_t size, const char *format, ...) MUST_USE
	__attribute__((format(printf, 3, 4)));

/* The value of a variable in env (NULL: none is there), borrowed; NULL: it is not set. */
const char *env_find(char *const *env, const char *name);

/* strdup that returns NULL on NULL or out of memory. Freed with free(). */
char *str_dup(const char *text) MUST_USE;

/* printf into a new string; NULL when out of memory. Freed with free(). */
char *str_printf(const char *format, ...) MUST_USE __attribute__((format(printf, 1, 2)));

/* Number of entries before the NULL; NULL counts 0. */
size_t strv_count(const char *const *strv);

/* Whether the text is among them; strv NULL: among none. */
bool strv_has(const char *const *strv, const char *text);

/* Whether one of them, NAME=value each, has the name of this entry; strv NULL: none has. */
bool strv_has_name(const char *const *strv, const char *entry);

/* Every entry and the array anew (NULL: an empty one), for strv_free(). NULL: out of memory. */
char **strv_copy(const char *const *strv) MUST_USE;

/* Frees the entries and the array (NULL is fine). */
void strv_free(char **strv);

/*
 * Normalises an absolute path lexically, in out[size]: "//" and "/./" and the trailing slash go,
 * ".." removes the component before it and stops at the root. Symlinks are not looked at.
 * -EINVAL for a relative or empty path, -ENAMETOOLONG if it does not fit.
 */
int path_normalise(char *out, size_t size, const char *path) MUST_USE;

/* path_normalise(base + "/" + path) for a relative path, path_normalise(path) for an absolute. */
int path_join(char *out, size_t size, const char *base, const char *path) MUST_USE;

/*
 * Whether a path, absolute or relative, has no "." and no ".." in it, no two slashes side by side, and none at its end
 * but that of "/".
 */
bool path_is_normal(const char *path);

/*
 * Whether path is prefix itself or lies below it, on component boundaries ("/a" is a prefix of
 * "/a/b" but not of "/ab"). Both normalised and absolute.
 */
bool path_is_below(const char *path, const char *prefix);

/*
 * What stands before and behind a host where a port follows: brackets around an address of IPv6 (RFC 3986 3.2.2), else
 * nothing. Static. A host that has a port or brackets already gets none.
 */
const char *str_host_open(const char *host);
const char *str_host_close(const char *host);

/* The last component ("" for "/"); points into path. */
const char *path_basename(const char *path);

/* Another name in the directory that path names something in: "/a/b" and "c" make "/a/c". -ENAMETOOLONG. */
int path_beside(char *out, size_t size, const char *path, const char *name) MUST_USE;
