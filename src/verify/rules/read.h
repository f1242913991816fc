/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How files of rules and tables are read: nodes of YAML into fields of structs, with a message for whatever does not
 * fit. What is read is copied into the arena of the rules. Only for load.c and tables-load.c.
 */

#include "lang/yaml/node.h"
#include "verify/rules/compiled.h"

enum { READ_TEXT_MAX = 255 };

/* One file while it is read. */
struct loader {
	struct rules *rules;
	struct diags *diags;
	enum finding_class class; /* of the file: what rules without one have */
	unsigned depth;      /* of conditions in conditions */
};

/* A key of a mapping: what reads its value into the field of a struct. */
struct key {
	const char *name;
	size_t offset;
	void (*read)(struct loader *loader, const struct node *node, void *target);
};

/* Whether the node is of the kind; else a message, "WHAT is wanted here, not …". NULL: false without one. */
bool read_want(struct loader *loader, const struct node *node, enum node_kind kind, const char *what);

/* The message that the node's text is none of the names, with the nearest of them. */
void read_unknown(struct loader *loader, const struct node *node, const char *what, const char *const *names,
		  size_t count);

/* A copy in the arena of the rules; "" without memory, which the arena remembers. */
const char *read_copy(struct loader *loader, const char *text);

/* Calls take for a text, or for each one of a list of texts. */
void read_each(struct loader *loader, const struct node *node, void *target,
	       void (*take)(struct loader *loader, const struct node *item, void *target));

/* Sets the bit of a name in bits[0]; "!name" sets it in bits[1]. */
void read_bit(struct loader *loader, const struct node *item, uint32_t *bits, const char *what,
	      const char *const *names, size_t count);

/* CONTEXT_*, TRAIT_*: target is a uint32_t and the one behind it, see read_bit(). */
void read_context(struct loader *loader, const struct node *node, void *target);
void read_traits(struct loader *loader, const struct node *node, void *target);

/* target: a bool, set to what the text true or false says. */
void read_bool(struct loader *loader, const struct node *node, void *target);

/* Which of the names the text is; -1 and a message: none. */
int read_choice(struct loader *loader, const struct node *node, const char *what, const char *const *names,
		size_t count);

/* target: a const char *, which becomes a copy of at most READ_TEXT_MAX bytes. */
void read_text(struct loader *loader, const struct node *node, void *target);

/* Calls what reads each key of a mapping; keys that are unknown or stand twice are errors. At most 24 keys. */
void read_map(struct loader *loader, const struct node *node, const struct key *keys, size_t count, void *target);
