/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a script does, in a form that no language shows in: the walkers make operations, the rules read them. `rm -rf
 * x`, shutil.rmtree("x") and fs.rmSync("x") are the same OP_REMOVE here. Everything is bounded; what went beyond a
 * bound, or could not be understood, is kept as a doubt, so that it is never taken for harmless.
 * Only in atoll-verify (and tests); pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lang/yaml/arena.h"

enum {
	OPERATIONS_MAX = 20000,
	WORDS_MAX = 4096,          /* of one operation; more is a doubt */
	WORD_SIZE_MAX = 256 << 10, /* bytes of one word that are kept; the rest is a doubt and the word not exact */
	FLOWS_MAX = 100000,
	ORIGINS_MAX = 6,
	DOUBTS_MAX = 64,           /* kept; more are counted */
};

/* No operation: what operations_add() returns beyond OPERATIONS_MAX. All functions take it and do nothing. */
#define OPERATION_NONE UINT32_MAX

enum operation_kind {
	OP_COMMAND,     /* words: argv, wrappers peeled; each wrapper is an OP_COMMAND of its own */
	OP_READ,        /* words[0]: path */
	OP_WRITE,       /* words[0]: path (also created, truncated, appended to, renamed to) */
	OP_REMOVE,      /* words[0]: path */
	OP_PERMISSION,  /* words[0]: path, words[1]: mode as written ("777", "+x", "u+s") or owner ("root:root") */
	OP_NETWORK,     /* words[0]: URL or host as far as known, maybe with ":port" */
	OP_EVALUATE,    /* code that is made at run time and could not be known; words[0]: what is known of it */
	OP_ENVIRONMENT, /* words[0]: name, words[1]: value, of a variable that what is started will see */
	OP_PROCESS,     /* words[0]: "fork", "kill" (words[1]: pid or name, words[2]: signal), "setuid", "trace", … */
	OP_LOOP,        /* a loop without an end */
	OP_ALLOCATE,    /* words[0]: bytes in decimal where known: memory or disk beyond what programs need */
	OP_FUNCTION,    /* words[0]: name; a definition. TRAIT_RECURSES: it calls itself */
	OP_CALL,        /* other calls of Python or JavaScript; words[0]: dotted name, imports resolved; arguments */
	OPERATION_KIND_COUNT,
};

/* Where an operation stands. */
enum operation_context {
	CONTEXT_PIPE = 1 << 0,         /* part of a pipeline */
	CONTEXT_SUBSTITUTION = 1 << 1, /* its output becomes text */
	CONTEXT_BACKGROUND = 1 << 2,
	CONTEXT_LOOP = 1 << 3,
	CONTEXT_ENDLESS = 1 << 4,      /* in a loop without an end */
	CONTEXT_FUNCTION = 1 << 5,     /* in a function's body */
	CONTEXT_CONDITION = 1 << 6,    /* happens only if something holds */
	CONTEXT_DECODED = 1 << 7,      /* its text was hidden: base64, hex, reversed, … */
	CONTEXT_ROOT = 1 << 8,         /* sudo, su, doas, pkexec */
	CONTEXT_REMOTE = 1 << 9,       /* on another machine: ssh HOST CMD */
	CONTEXT_CONTAINED = 1 << 10,   /* in a container that the command makes: docker run, chroot */
	CONTEXT_NESTED = 1 << 11,      /* in text that was given to an interpreter */
	CONTEXT_WRAPPER = 1 << 12,     /* a wrapper: the command that it starts is an operation too */
	CONTEXT_REPEATED = 1 << 13,    /* for each of many inputs: xargs, find -exec, parallel */
	CONTEXT_INSTALL = 1 << 14,     /* in a file that installs a package: setup.py */
};

/* What is particular about one. */
enum operation_trait {
	TRAIT_SENDS = 1 << 0,      /* OP_NETWORK: data leaves (a body, a form, an upload), beyond the request itself */
	TRAIT_FETCHES = 1 << 1,    /* OP_NETWORK: the answer is used or kept */
	TRAIT_LISTENS = 1 << 2,    /* OP_NETWORK: waits for connections */
	TRAIT_RECURSIVE = 1 << 3,  /* OP_REMOVE, OP_PERMISSION, OP_READ; OP_WRITE: a folder that is filled */
	TRAIT_FORCE = 1 << 4,      /* OP_REMOVE */
	TRAIT_APPENDS = 1 << 5,    /* OP_WRITE */
	TRAIT_TRUNCATES = 1 << 6,  /* OP_WRITE: what was there is lost */
	TRAIT_DEVICE = 1 << 7,     /* OP_WRITE: raw, block by block (dd, mkfs) */
	TRAIT_OWNER = 1 << 8,      /* OP_PERMISSION: chown */
	TRAIT_RECURSES = 1 << 9,   /* OP_FUNCTION calls itself */
	TRAIT_MULTIPLIES = 1 << 10,/* OP_FUNCTION, OP_PROCESS: more of itself each time: a fork bomb */
	TRAIT_LINK = 1 << 11,      /* OP_WRITE: a link is made; words[1]: where it leads */
	TRAIT_SHELL = 1 << 12,     /* OP_COMMAND: goes through a shell though the text is not a constant */
	TRAIT_INTERACTIVE = 1 << 13,/* OP_COMMAND: an interpreter that reads its program from its input */
	TRAIT_STARTS = 1 << 14,    /* OP_EVALUATE: what is evaluated came as a whole from its origins */
	TRAIT_SHOWN = 1 << 15,     /* it is only told what would be done: no rule is about it by itself */
};

enum word_flag {
	WORD_EXACT = 1 << 0,        /* the text is all of it, for certain */
	WORD_GLOB = 1 << 1,         /* has *, ? or [ that the shell will expand */
	WORD_FROM_DECODED = 1 << 2, /* was hidden: base64, hex, escapes of every character, reversed */
	WORD_FROM_INPUT = 1 << 3,   /* has a part that whoever runs it gives: $1, sys.argv, input(), read */
	WORD_FROM_ENVIRONMENT = 1 << 4,
	WORD_OBSCURED = 1 << 5,     /* written so that nobody reads it: r''m, $'\x72m', ${IFS} */
	WORD_CUT = 1 << 6,          /* there was more than WORD_SIZE_MAX: a doubt as soon as an operation has it */
};

/* In a word's text: a part that is not known. Never in the source as it is (words_put() replaces it). */
#define WORD_UNKNOWN '\x01'

/* Bytes of the text that was given, [start, end). */
struct span {
	uint32_t start, end;
};

/* Operations whose output (or content, or answer) a value has in it. */
struct origins {
	uint32_t count;
	uint32_t at[ORIGINS_MAX];
	bool is_cut; /* there were more */
};

/* "~" stands for every home directory at the beginning of a path: $HOME, os.path.expanduser("~"), os.homedir(). */
struct word {
	const char *text; /* NUL-terminated, in the arena; unknown parts are WORD_UNKNOWN */
	uint32_t size;
	uint32_t flags;   /* WORD_* */
	struct span span;
	struct origins origins;
};

struct operation {
	enum operation_kind kind;
	uint32_t context; /* CONTEXT_* */
	uint32_t traits;  /* TRAIT_* */
	struct span span;
	struct vec words; /* of struct word */
	const struct word *document; /* OP_COMMAND: what is on its standard input, where that is known; or NULL */
	uint32_t own_words;  /* OP_COMMAND: those before the command that it starts; 0: all of them */
	uint32_t first_flow; /* flows into this one: index + 1 in the list, 0: none */
	uint32_t parent;     /* the wrapper or interpreter that started it, the command whose effect it is, or
			      * OPERATION_NONE */
};

/* Why something is not known; each is a finding `unknown.NAME`. */
enum doubt {
	DOUBT_SYNTAX,     /* the grammar did not understand it */
	DOUBT_ENCODING,   /* NUL bytes, no UTF-8 */
	DOUBT_DEPTH,      /* nested deeper than is followed */
	DOUBT_SIZE,       /* more text, operations, words or findings than are looked at */
	DOUBT_TIME,
	DOUBT_MEMORY,
	DOUBT_LANGUAGE,   /* code of a language that is not parsed: perl -e, ruby -e, a binary */
	DOUBT_COUNT,
};

struct doubt_note {
	enum doubt doubt;
	struct span span;
};

struct flow {
	uint32_t from;
	uint32_t next; /* the next flow into the same operation: index + 1, 0: none */
};

struct operations {
	struct arena *arena; /* borrowed: outlives this */
	struct vec items;    /* of struct operation */
	struct vec flows;    /* of struct flow */
	bool has_writes;     /* one of the items is an OP_WRITE */
	struct doubt_note doubts[DOUBTS_MAX];
	size_t doubt_count;
};

/* Nothing is done yet. All that is added lives in the arena, so that nothing is freed on its own. */
void operations_init(struct operations *operations, struct arena *arena);

/* A new operation, or OPERATION_NONE (and a doubt) beyond the bound. */
uint32_t operations_add(struct operations *operations, enum operation_kind kind, struct span span, uint32_t context);

/* The operation; NULL for OPERATION_NONE. Valid until the next operations_add(). */
struct operation *operations_get(const struct operations *operations, uint32_t index);
size_t operations_count(const struct operations *operations);

/* Adds a copy of the word (its text is borrowed and must live in the arena), and a flow from each of its origins. */
void operations_add_word(struct operations *operations, uint32_t index, const struct word *word);

/* The same for a constant: exact, where the operation stands. text is copied. */
void operations_add_text(struct operations *operations, uint32_t index, const char *text);

/* Sets TRAIT_* bits beside those that are set already. */
void operations_add_traits(struct operations *operations, uint32_t index, uint32_t traits);

/* What `from` puts out, `to` takes in. */
void operations_add_flow(struct operations *operations, uint32_t from, uint32_t to);
void operations_add_flows(struct operations *operations, const struct origins *from, uint32_t to);

/* Notes why something at span is not known: a finding in the end, also where more than DOUBTS_MAX are counted only. */
void operations_doubt(struct operations *operations, enum doubt doubt, struct span span);

/* Word `at` of an operation; NULL where there is none. Valid until the next word. */
const struct word *operation_word(const struct operation *operation, size_t at);
size_t operation_word_count(const struct operation *operation);

/*
 * To be called once when all is there: a file that was written and is read, run or sent later carries its flow on
 * (`curl -o x; sh x`, `cat secret >x; curl -d @x`).
 */
void operations_link_files(struct operations *operations);

/* One more operation, once; beyond ORIGINS_MAX is_cut says that there were others. OPERATION_NONE adds none. */
void origins_add(struct origins *origins, uint32_t index);
void origins_join(struct origins *origins, const struct origins *other);

/* "command", "read", …; "syntax", "encoding", …. */
extern const char *const operation_kind_names[OPERATION_KIND_COUNT];
extern const char *const doubt_names[DOUBT_COUNT];
