/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Commands that a text would start, whatever its language is: what they start in turn, and what they do. Only in
 * atoll-verify; starts nothing.
 */

#include "verify/parse/walk.h"

struct command {
	const struct word *words;  /* argv */
	size_t count;
	struct span span;
	uint32_t context;          /* beside the walk's */
	const struct word *document; /* what is on its standard input (a here-document, input=), or NULL */
	struct origins input;
	struct origins output;     /* returned: whose output is its output */
	struct word produced;      /* returned: its output, where that is known (echo, printf, base64 -d, …) */
	bool is_produced;
	unsigned wrappers;         /* for walk_command() itself: wrappers around it */
};

/*
 * A command that would be started: becomes an OP_COMMAND, those that it starts in turn (env, sudo, xargs, find -exec,
 * sh -c, python -c, a here-document into an interpreter), and what it does to files and the network as operations
 * beside it (OP_READ, OP_WRITE, OP_REMOVE, OP_PERMISSION, OP_NETWORK, …). The one place for all languages:
 * subprocess.run(["rm", "-rf", x]) comes here too. Returns the OP_COMMAND of words[0].
 */
uint32_t walk_command(struct walk *walk, struct command *command);
