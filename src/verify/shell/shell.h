/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the parts of the shell's walker share: the state of the shell that is followed, and streams. It follows one way
 * through the script: every branch in turn, loops over known words once for each, functions where they are called.
 * Only in this folder.
 */

#include "verify/command/command.h"
#include "verify/model/words.h"

enum {
	SHELL_VARIABLES_MAX = 2000, SHELL_FUNCTIONS_MAX = 500, SHELL_ALIASES_MAX = 100,
	SHELL_CALLS_MAX = 6, /* functions in functions */
	/*
	 * Statements, and memory, beyond which loops are followed once, as any of their rounds; and beyond which
	 * a function that was followed before is a doubt. Steps, not time: machines differ, and what is found must not.
	 */
	SHELL_REPEAT_STEPS_MAX = 20000, SHELL_REPEAT_MEMORY_MAX = 8 << 20,
	SHELL_STEPS_MAX = 300000, SHELL_MEMORY_MAX = 16 << 20,
	/* In a word that is being expanded: a place where the shell splits it. */
	SHELL_SPLIT = '\x02',
	/* In the value of an array: between its items. */
	SHELL_ITEM = '\x03',
};

struct shell_variable {
	const char *name;
	uint32_t hash;        /* of the name */
	struct word value;    /* an array's items have SHELL_ITEM between them */
};

struct shell_function {
	const char *name;
	uint32_t hash;        /* of the name */
	TSNode body;
	uint32_t operation;   /* its OP_FUNCTION */
	bool is_active, is_called;
};

/* exec 5<>/dev/tcp/…: what <&5 and >&5 lead to later. */
struct shell_descriptor {
	unsigned number;
	uint32_t operation;
};

enum { SHELL_DESCRIPTORS_MAX = 32 };

struct stream;

struct shell {
	struct walk *walk;    /* of the text that is being followed */
	void (*statement)(struct shell *shell, TSNode node, struct stream *stream); /* shell_statement() */
	struct vec variables; /* of struct shell_variable; the newest of a name counts */
	struct vec functions; /* of struct shell_function */
	struct vec aliases;   /* of struct shell_variable */
	const struct word *arguments; /* $0, $1, … */
	size_t argument_count;
	bool has_arguments;   /* they are known */
	unsigned calls, loops, conditions;
	uint32_t context;     /* beside the walk's: CONTEXT_LOOP, … */
	struct shell_descriptor descriptors[SHELL_DESCRIPTORS_MAX]; /* the newest of a number counts */
	size_t descriptor_count;
	const struct word *process; /* what a <(…) of the command that is looked at puts out; NULL: not known */
	struct origins outgoing; /* what >(…) in the words that are looked at takes in */
	bool has_prompt;      /* the rest of the text was looked at as what a prompt reads; once is enough */
};

/* The memory of all that the walk keeps. */
static inline struct arena *arena_of(const struct shell *shell)
{
	return shell->walk->operations->arena;
}

/* What goes in and comes out of a statement. */
struct stream {
	struct origins input;
	const struct word *document; /* what comes in, where that is known; else NULL */
	struct origins output;
	struct vec pieces;           /* of struct word: what comes out, as long as that is known */
	bool is_unknown;             /* something came out that is not */
};

/* Whatever statement it is; the parts of the walker know one another by this alone. */
static inline void shell_statement(struct shell *shell, TSNode node, struct stream *stream)
{
	shell->statement(shell, node, stream);
}

/* state.c */
/* A hash of a name: what is compared first where one is looked for. */
uint32_t shell_hash(const char *name);
/* The named children in order; what "&" follows is in the background. */
void shell_statements(struct shell *shell, TSNode parent, struct stream *stream);
void shell_set(struct shell *shell, const char *name, const struct word *value);
const struct word *shell_get(const struct shell *shell, const char *name); /* NULL: not set by the text */
struct word shell_value(struct shell *shell, const char *name, struct span span); /* also of the environment */
struct shell_function *shell_function(const struct shell *shell, const char *name);
const struct word *shell_alias(const struct shell *shell, const char *name);
void stream_put(struct shell *shell, struct stream *stream, const struct word *piece);
/* What came out as one word: known as far as the pieces are. */
struct word stream_word(struct shell *shell, const struct stream *stream, struct span span);
/* A stream's output goes on to where another's goes. */
void stream_pass(struct shell *shell, struct stream *to, const struct stream *from);
/* What comes out of one becomes what goes into the next; span is where a text that is known stands. */
struct stream stream_next(struct shell *shell, const struct stream *before, struct span span);

/* word.c: adds what the node of a word becomes, with SHELL_SPLIT where unquoted results are split, to the draft. */
void shell_expand(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft);
struct word shell_word(struct shell *shell, TSNode node);                     /* unsplit: assignments, redirections */
/* split and brace-expanded, of struct word */
void shell_words(struct shell *shell, TSNode node, struct vec *words);
void shell_split_braces(struct shell *shell, const struct word *word, struct vec *words);
/* A text with $… in it that is no tree of its own: a here-document. */
struct word shell_document(struct shell *shell, TSNode body, bool is_raw);

/* parameter.c: adds what ${NAME…} or $NAME stands for to the draft, as shell_expand(). Assigns where := does. */
void shell_parameter(struct shell *shell, TSNode node, bool is_quoted, struct word_draft *draft);

/* builtin.c: what changes the state of the shell. True: it is no command beside that. */
bool shell_builtin(struct shell *shell, struct command *command);

/* Whether the node is one of file_redirect, heredoc_redirect and herestring_redirect. */
bool shell_is_redirection(TSNode node);

/* command.c: a command with its assignments; extra (of TSNode, or NULL): words behind a here-document's mark */
void shell_command(struct shell *shell, TSNode node, const struct vec *extra, struct stream *stream);
/* Words that are a command: a function, an alias, a builtin, or a program. */
void shell_run(struct shell *shell, struct command *command, struct stream *stream);
void shell_call(struct shell *shell, struct shell_function *function, const struct command *command,
		struct stream *stream);
void shell_assign(struct shell *shell, TSNode node, bool is_exported);

/* declare.c: export, declare, local, readonly, typeset, and what they assign. unset is a command, and nothing more. */
void shell_declaration(struct shell *shell, TSNode node, struct stream *stream);
void shell_unset(struct shell *shell, TSNode node, struct stream *stream);

/* redirect.c */
/* What a descriptor of this number was opened as: an operation, or OPERATION_NONE. */
uint32_t shell_descriptor(const struct shell *shell, const char *number);
/* holder has the redirections; body is what they are for: a child of it, or itself (a command that begins with one). */
void shell_redirected(struct shell *shell, TSNode holder, TSNode body, struct stream *stream);
/* $(<FILE): a redirection without a command puts out what it reads. */
void shell_lone_redirection(struct shell *shell, TSNode node, struct stream *stream);

/* loop.c: bodies once, or for each word that is known; what nothing ends is an OP_LOOP, its body CONTEXT_ENDLESS. */
void shell_while(struct shell *shell, TSNode node, struct stream *stream);
void shell_for(struct shell *shell, TSNode node, struct stream *stream);
void shell_c_for(struct shell *shell, TSNode node, struct stream *stream);

/* statement.c: the whole text; a struct walker has it. */
void walk_shell(struct walk *walk, TSNode root);
