/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is compiled, and how its files are reached: through a reader that the caller gives, so that everything in lang/
 * is pure. Used by atoll-policy, which confines itself first.
 */

#include "policy/snapshot/snapshot.h"

struct lang_reader {
	/*
	 * The whole file (freed with free()) and how it looks, for freshness. -ENOENT when there is none:
	 * then only the path and exists = 0 are set in *ret_source.
	 */
	int (*read)(void *context, const char *path, char **ret_bytes, size_t *ret_size,
		    struct snapshot_source *ret_source);
	/* The real path of path (links resolved), -ENOENT and so on. */
	int (*real)(void *context, const char *path, char *out, size_t size);
	void *context;
};

struct lang_request {
	const char *level;		 /* -t, or NULL */
	/*
	 * level stands in the place of a higher one, for an agent that is trusted less now (trust/rules.h). What the
	 * policy and the project say of rules that this level does not have is passed over then, never the other way.
	 */
	bool is_lowered;
	const char *policy;		 /* -p: a name or a path, or NULL */
	const char *project;		 /* absolute, normalised; "" when there is none */
	const char *home;		 /* "" when there is none */
	const char *config_home;	 /* "" when there is none */
	const char *policies_dir;	 /* what atoll ships */
	const char *cwd;		 /* what a relative -p is relative to */
	const char *const *private_dirs; /* more directories of atoll's own, NULL-terminated; NULL: none */
	const char *const *unmask;	 /* paths whose own rule of files.mask shall not apply, absolute; NULL: none */
	bool without_project_file;	 /* for diff and show of a policy as such */
	const char *narrowing;		 /* what is to be taken away for this run, hostile; NULL: nothing */
	size_t narrowing_size;
	struct lang_reader reader;
};

/* The names of shipped policies, NULL-terminated. */
extern const char *const lang_shipped_names[];
