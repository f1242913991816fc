/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many files a tree of the host has, as far as somebody wants to know: looks at no more of them than that. Links
 * are files and are not followed; what cannot be read has none. Run by atoll-box when nothing runs inside.
 */

#include <stdint.h>

/* At most bound; looks at twice as many entries of directories, and says bound where that is not all. */
uint64_t tree_count_files(const char *path, uint64_t bound);
