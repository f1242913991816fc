/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The shipped rules and tables, as atoll-verify reads them: RULES_DIR says where they are. For the unit tests of
 * verify/ and for fuzzing; what cannot happen ends the program.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/str.h"
#include "os/fd.h"
#include "verify/rules/rule.h"

/* Owned by the caller. */
static struct rules *shipped_rules(void)
{
	struct rules *rules = rules_new();
	struct arena arena = { 0 };
	struct diags diags = { .arena = &arena };
	DIR *directory = opendir(RULES_DIR);
	const struct dirent *entry;

	if (!rules || !directory)
		abort();
	while ((entry = readdir(directory))) {
		char path[512], *bytes;
		size_t size;

		if (!str_has_suffix(entry->d_name, ".yaml"))
			continue;
		if (str_format(path, sizeof path, "%s/%s", RULES_DIR, entry->d_name) < 0 ||
		    fd_read_file_at(AT_FDCWD, path, 1 << 20, &bytes, &size) < 0 ||
		    !rules_add(rules, &diags, path, bytes, size))
			abort();
		free(bytes);
	}
	closedir(directory);
	if (!rules_finish(rules, &diags) || !rules_are_whole(rules))
		abort();
	arena_done(&arena);
	return rules;
}
