/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One judgement while it is made: the parsers, the clock, what the parsers took of memory, and the operations so far.
 * Between verify.c, which begins and ends it and knows the walkers, and walk.c, which goes down into nested texts.
 */

#include "verify/model/tables.h"
#include "verify/parse/walk.h"

/*
 * What one judgement may take. Bytes and steps are counted, and no time: machines differ, and what is found must not.
 * Together they are at most 200 ms and 64 MiB: tests/lib/hostile.py measures it.
 */
enum {
	VERIFY_PARSERS_MAX = 22 << 20, /* bytes that the parsers hold at a time, */
	VERIFY_SPENT_MAX = 52 << 20,   /* and that they ask for in all */
	VERIFY_MEMORY_MAX = 17 << 20,  /* of operations and values */
	VERIFY_LOOKS_MAX = 1000000,    /* steps of walkers */
};

/* How texts of one language are read. */
struct walker {
	const TSLanguage *(*grammar)(void); /* NULL: they are not parsed, and the tree is none */
	/* Makes the operations of a tree. */
	void (*walk)(struct walk *walk, TSNode root);
	/* A fault of the grammar; may be NULL. True: walk->text says better now what it means, and is parsed again. */
	bool (*mend)(struct walk *walk, TSNode root);
};

struct judgement {
	struct arena arena;
	struct operations operations;
	const struct walker *walkers; /* LANGUAGE_COUNT of them */
	const struct tables *tables;  /* what is known of programs and functions */
	uint64_t deadline_ns;  /* of the time computed: what is said does not depend on who else is at work */
	size_t spent, spent_max; /* what parsers asked for, and may */
	size_t memory_max;     /* of the arena */
	unsigned looks, looks_max; /* steps of walkers */
	unsigned nested_count;
	size_t nested_size;    /* bytes of nested texts, repetitions included */
	size_t shell_steps;    /* statements of shells that were followed, repetitions included */
	bool is_over;          /* a bound was hit: nothing more is walked */
	bool is_bundle;        /* parts of a program that was put together of many: one name is many things in it */
};

/*
 * Begins one that may take time_ms from now on. walkers: LANGUAGE_COUNT of them; they and tables are borrowed. One at a
 * time in a process, ended by judgement_done(), which frees all of its operations and texts.
 */
void judgement_init(struct judgement *judgement, const struct walker *walkers, const struct tables *tables,
		    unsigned time_ms);
void judgement_done(struct judgement *judgement);

/* Walks a whole text: its operations and doubts are in the judgement. text is NUL-terminated and lives in its arena. */
void judge_text(struct judgement *judgement, enum verify_language language, const char *text, size_t size);

/* Parses what walk->text is and calls the walker of walk->language. */
void judge_walk(struct walk *walk);
