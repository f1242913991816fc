/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The program of the agent itself (agent.command), where that is a script: Gemini CLI is ten megabytes of JavaScript.
 * Verification judges what an agent does. What a person installed on the host, and nothing inside can change, is not
 * its doing, and would be read at each start. Run by atoll-box.
 */

#include <stdbool.h>
#include <sys/stat.h>

struct run;

/* A file as it was at the start of the run. */
struct own_program {
	bool is_known;
	struct stat st;
};

/*
 * Looks it up on the host, before anything runs inside. Known only where the policy names a command, and shows the file
 * read-only (files.read) and outside of the project: a tree that is staged or written could hold what an agent made.
 */
struct own_program own_program_find(const struct run *run);

/*
 * Whether this is that file, unchanged: by device, inode, size and the time of its last change, which nobody can set.
 * By no name: a process with mounts of its own gives any file any name.
 */
bool own_program_is(const struct own_program *own, const struct stat *st);
