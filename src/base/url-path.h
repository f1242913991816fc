/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What servers do with the path of a URL before they use it, one step a function. Each works in place on a text that
 * begins with a slash and ends with NUL, never makes it longer, and says whether it changed anything. Pure.
 */

#include <stdbool.h>
#include <stddef.h>

/* What an escape stands for. */
enum {
	URL_FREE = 1 << 0,        /* means the same escaped and not (RFC 3986 6.2.2.2); not the dot */
	URL_DOT = 1 << 1,
	URL_SLASH = 1 << 2,
	URL_BACKSLASH = 1 << 3,
	URL_SEMICOLON = 1 << 4,
	URL_END = 1 << 5,         /* ? and # */
	URL_PERCENT = 1 << 6,
	URL_DELIMITER = 1 << 7,   /* the other delimiters of RFC 3986 2.2 */
	URL_CONTROL = 1 << 8,     /* 0 to 31 and 127 */
	URL_ALL = (1 << 9) - 1,
};

/* The byte of the escape (%41) at text, or -1. */
int url_escape_at(const char *text);

/* The one URL_* bit of a byte from 0 to 255, or of one that was escaped. */
unsigned url_class_of(int byte);

/*
 * Undoes escapes of these classes, each once: what comes out may be an escape again. Those that stay are written in
 * capitals. %00 always stays.
 */
bool url_path_decode(char *path, unsigned classes);

/* %uXXXX, as some servers of the past read it: becomes UTF-8. %u0000 stays. */
bool url_path_decode_u(char *path);

/* What stands from a ; to the next slash (RFC 3986 3.3: parameters). */
bool url_path_drop_parameters(char *path);

/* The same for the first segment that has any alone; and from the last ; of each segment. */
bool url_path_drop_first_parameters(char *path);
bool url_path_drop_last_parameter(char *path);

/* Ends it before the first byte of set. */
bool url_path_cut(char *path, const char *set);

/* Makes / of every \; one / of several in a row. */
bool url_path_turn_backslashes(char *path);
bool url_path_merge_slashes(char *path);

/* Those at its beginning alone; and all but two there, which POSIX lets mean something of their own. */
bool url_path_merge_first_slashes(char *path);
bool url_path_merge_later_slashes(char *path);

/* RFC 3986 5.2.4, empty segments counting as any other; a slash stays where a dot segment was last. */
bool url_path_remove_dots(char *path);

/* The same below two slashes at its beginning, which are the root to POSIX, or may be. */
bool url_path_remove_later_dots(char *path);

/* //host/path, which is /path to who resolves it against a URL; //host is /. To the other, more slashes are as two. */
bool url_path_drop_authority(char *path);
bool url_path_drop_far_authority(char *path);

/* Dots and spaces at the end of segments, which Windows leaves out of names; not of those that are dots alone. */
bool url_path_trim(char *path);

/* Spaces at its very end, which are none of a line that is taken apart at spaces. */
bool url_path_trim_end(char *path);

/*
 * Characters for those of ASCII that they are compatible with (NFKC), or that tables of best fit take them for; and
 * ASCII in more bytes than it needs (RFC 3629 10), of which a control character becomes \1.
 */
bool url_path_fold_compatible(char *path);
bool url_path_fold_similar(char *path);
bool url_path_fold_overlong(char *path);
