/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What all walkers share: the text being walked and how its bytes map to the text that was given, the bounds, and the
 * ways down: a command (walk_command() of command.h) and code inside of the code (walk_nested()). A walker is one
 * function that turns a syntax tree into operations; walkers.c is the table of them.
 *
 * A walker keeps what it knows of variables itself. It must ask walk_enter() before it goes one level deeper and
 * walk_is_over() in long loops, and must not trust that the tree is well formed: a node may be missing, an error, or of
 * any kind.
 */

#include <tree_sitter/api.h>

#include "verify/model/language.h"
#include "verify/model/operation.h"

enum {
	WALK_DEPTH_MAX = 250, /* levels of one tree */
	NESTED_MAX = 12,      /* texts in texts */
	NESTED_TEXTS_MAX = 2000, /* of one judgement, */
	NESTED_SIZE_MAX = 2 << 20, /* and of how many bytes together */
};

struct judgement; /* of judge.c: parsers, clock, memory, counters */

struct walk {
	struct judgement *judgement;
	struct operations *operations;
	enum verify_language language;
	const char *text;       /* NUL-terminated */
	uint32_t size;
	struct span outer;      /* where the text stands in what was given */
	bool is_verbatim;       /* byte i of it stands at outer.start + i */
	uint32_t context;       /* CONTEXT_* that hold for all of it: new operations have them */
	uint32_t parent;        /* the operation that runs it, or OPERATION_NONE */
	struct origins input;   /* what comes in on its standard input */
	struct origins output;  /* set by the walker: the operations whose output goes to its standard output */
	const struct word *arguments; /* what follows sh -c CODE: $0, $1, … (sys.argv, process.argv) */
	size_t argument_count;
	const struct word *directory; /* the working directory where the text changed it ("/", "~/x"), or NULL */
	struct shell *shell;    /* of shell/statement.c: the shell around this text, or NULL */
	bool is_same_shell;     /* eval: the same shell runs this text, so its variables stay */
	unsigned depth;         /* of walk_enter() */
	unsigned nesting;       /* texts above this one */
};

/* False (and a doubt) when the tree is deeper than is followed. Each true wants one walk_leave(). */
bool walk_enter(struct walk *walk, TSNode node);
void walk_leave(struct walk *walk);

/* Whether time, memory or operations are used up: the walker returns at once. A doubt says so. */
bool walk_is_over(struct walk *walk);

/* Where the node stands in the text that was given. */
struct span walk_span(const struct walk *walk, TSNode node);
struct span walk_span_of(const struct walk *walk, uint32_t start, uint32_t end);

/* Its bytes, borrowed from the text (not terminated). */
const char *walk_text(const struct walk *walk, TSNode node, uint32_t *ret_size);

/* A copy in the arena, NUL-terminated; "" when out of memory. */
const char *walk_copy(const struct walk *walk, TSNode node);

/* Whether the node is there and of the grammar's type; its child in a field, a null node where none is. */
bool node_is(TSNode node, const char *type);
TSNode node_field(TSNode node, const char *field);

/*
 * The children of a node, in order: for (cleanup_each struct each each = each_child(walk, node); each_next(&each);).
 * Asking for one by its number would cost as much as there are before it, which whoever writes the text chooses. Ends
 * early where walk_is_over().
 */
struct each {
	struct walk *walk;
	TSTreeCursor cursor;
	TSNode node;     /* the child */
	uint32_t at;     /* its number, from 0 */
	bool is_begun;
};

/* done frees the cursor; cleanup_each has it called at the end of the block. */
struct each each_child(struct walk *walk, TSNode node);
bool each_next(struct each *each);
void each_done(struct each *each);
#define cleanup_each __attribute__((cleanup(each_done)))

/* operations_add() with the context of the walk, and its parent. */
uint32_t walk_add(struct walk *walk, enum operation_kind kind, struct span span, uint32_t context);

/* The same with one word as words[0]: OP_READ of a path, OP_NETWORK to a URL. */
uint32_t walk_add_word(struct walk *walk, enum operation_kind kind, struct span span, const struct word *word);

struct nested {
	enum verify_language language; /* LANGUAGE_OTHER: a doubt */
	const struct word *code;     /* not exact: what is known is walked, and OP_EVALUATE says that it is not all */
	uint32_t context;            /* beside the walk's: CONTEXT_DECODED, … */
	uint32_t parent;             /* who runs it, or OPERATION_NONE */
	bool is_verbatim;            /* the code stands in the source byte for byte at code->span */
	struct origins input;
	struct origins output;       /* returned */
	const struct word *arguments; /* see struct walk; may be NULL */
	size_t argument_count;
	bool is_same_shell;
};

/* Code inside of the code: os.system(text), eval(text), subprocess with shell=True, sh -c. */
void walk_nested(struct walk *walk, struct nested *nested);
