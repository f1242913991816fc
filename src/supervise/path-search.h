/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A shell that looks for a program along PATH tries one name at many places, and is refused at each. Tells such a
 * search from as many commands: for whoever counts refusals. Pure. Run by atoll-box.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/hash.h"

/* The search that a refused exec belongs to. Zeroed: none, which nothing goes on with. */
struct path_search {
	pid_t pid;
	struct hash what;            /* the words, the name that was looked for, and why it was refused */
	struct hash first, last;     /* the places, of which one that comes again begins another search */
};

/* argv NULL: its words are not known as a whole, so that it belongs to no search. */
struct path_search path_search_of(pid_t pid, const char *path, const char *const *argv, const char *why);

/* Whether `now` goes on with the search of *last, which is `now`, or has gone on so far, afterwards. */
bool path_search_goes_on(struct path_search *last, const struct path_search *now);
