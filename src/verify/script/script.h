/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The interpreter that the walkers of Python and JavaScript share. It goes through a text in the order in
 * which it would run, without deciding anything: both sides of a condition, each handler, bodies of loops
 * once (over a list that is known: for each item), functions where they are called with what they are given,
 * and once more with nothing where nobody calls them. It keeps what variables may hold (value.h) and turns
 * calls into operations by tables (library.h).
 *
 * Bounds: steps, depth, calls in calls and values; what was not looked at becomes a doubt.
 */

#include "verify/model/tables.h"
#include "verify/model/value.h"
#include "verify/parse/syntax.h"
#include "verify/parse/walk.h"

enum {
	SCRIPT_STEPS_MAX = 4000000, /* nodes looked at, repetitions included */
	SCRIPT_INLINE_MAX = 400000, /* of them in functions that are called, */
	SCRIPT_INLINE_SIZE_MAX = 16 << 20, /* and the memory of a judgement, from which on calls are not followed */
	SCRIPT_DEPTH_MAX = 400,
	SCRIPT_CALLS_MAX = 12,	    /* functions in functions */
	SCRIPT_REPEAT_MAX = 256,    /* items of a list that a loop is gone through for */
	SCRIPT_REPEATS_MAX = 20000, /* of all loops together; later ones are gone through once */
	SCRIPT_REPEAT_STEPS_MAX = 150000,  /* nodes looked at in repetitions, */
	SCRIPT_REPEAT_SIZE_MAX = 10 << 20, /* and a judgement's memory, from which on loops are gone through once */
	SCRIPT_VARIABLES_MAX = 200000,
	SCRIPT_CONTEXTS_MAX = 400000,
	SCRIPT_FUNCTIONS_MAX = 50000,
	CALL_ARGUMENTS_MAX = 32, /* what is given beyond them is known by where it is from */
	CALL_CALLBACKS_MAX = 4,	 /* functions given to one call that are gone into */
};

struct script;

/* A call: what is called, on what, with what. */
struct call {
	uint32_t node;
	const struct value *callee;
	const struct value *self; /* the object of a method; NULL for none */
	const char *method;	  /* its name, where known */
	const struct value *arguments[CALL_ARGUMENTS_MAX];
	const char *keywords[CALL_ARGUMENTS_MAX]; /* NULL for those by place */
	size_t count;
	bool is_new;
	bool is_guess; /* the function was found by its name alone */
};

/* What a function is worth that only makes a value of values; see text.h. NULL: not known by this one.
 */
typedef const struct value *(*script_function)(struct script *script, const struct call *call);

/* What a kind of node means: runs it, and says what it is worth (NULL: nothing is known). */
typedef const struct value *(*script_handler)(struct script *script, uint32_t node);

/* What the interpreter asks of the libraries (library.h), which stand above it. key NULL: it is not known. */
struct library_ops {
	/* What the call is worth where a row is found for what it calls, and makes its operations. NULL: no row. */
	const struct value *(*call)(struct script *script, struct call *call);
	/* A call of a library that no row knows: OP_CALL, or OPERATION_NONE where it is of no interest. */
	uint32_t (*other_call)(struct script *script, const struct call *call);
	/* Whether calling the value does something. */
	bool (*is_callable)(struct script *script, const struct value *value);
	/* A method of an open connection that no row knows: what it is given that is from somewhere is sent. */
	void (*take_in)(struct script *script, const struct call *call);
	/* A value that goes somewhere as a whole: all of the environment is then read. */
	const struct value *(*used)(struct script *script, const struct value *value, uint32_t node);
	/* object.name and object[key] that do something, or are something particular; NULL: nothing. */
	const struct value *(*member)(struct script *script, const struct value *object, const char *name,
				      uint32_t node);
	const struct value *(*index)(struct script *script, const struct value *object, const struct value *index,
				     const char *key, uint32_t node);
	/* object[key] = value, object.key = value; true where that does something. */
	bool (*assign)(struct script *script, const struct value *object, const struct value *key,
		       const struct value *value, uint32_t node);
	/* scripts.postinstall = …, { postinstall: … }: OP_CALL of `how`, name and value, where packages run such. */
	void (*lifecycle)(struct script *script, const char *how, const char *name, const struct value *value,
			  uint32_t node);
};

/* What differs between the languages, beside their tables. */
struct script_language {
	enum verify_language language;
	const struct library_ops *library;
	const script_handler *handlers; /* by enum syntax_kind; NULL: script_other() */
	/* The bytes of a string node without quotes, escapes resolved, holes and parts filled in. */
	const struct value *(*text)(struct script *script, uint32_t node);
	void (*import)(struct script *script, uint32_t node);
	/* What a name that no variable has is worth. */
	const struct value *(*unbound)(struct script *script, const char *name, uint32_t node);
	/* object.name where the object says nothing itself; NULL: nothing particular. */
	const struct value *(*member)(struct script *script, const struct value *object, const char *name);
	/* object[key] where the object says nothing itself (key NULL: not known); may be NULL, and return it.
	 */
	const struct value *(*index)(struct script *script, const struct value *object, const char *key);
	const char *arguments;	  /* what the list of arguments is called */
	const char *environment;  /* what the map of environment variables is called */
	bool index_is_member; /* object["name"] is object.name */
	bool assigns_outward; /* an assignment changes the variable of the scope around */
};

struct variable;
struct scope {
	uint32_t parent;
};

struct frame {
	struct frame *outer;
	uint32_t node; /* of the function */
	const struct value *result;
};

/* What was used up of the bounds. */
struct script_bounds {
	uint64_t steps, inline_steps, repeat_steps;
	unsigned depth, depth_max, calls, guesses, repeats, other_calls;
	unsigned repeating; /* loops around that are gone through again */
	bool is_over, was_deep, was_long;
};

struct variables {
	struct variable **table;
	size_t size, count;
};

struct script {
	struct walk *walk;
	const struct script_language *language;
	const struct language_tables *tables;
	struct arena *arena;
	struct syntax syntax;
	struct script_bounds bounds;
	unsigned hidden_names; /* variables called _0x… */
	unsigned self_starts; /* how often the file starts itself */
	uint32_t context; /* CONTEXT_* of where the interpreter is */
	unsigned tests;	  /* how many hooks and doubles of test runners are around: their databases are theirs */
	int64_t times;	  /* how often the loops around run, where they count to a number; 0: once, or not known */
	uint32_t branch;  /* which may-run part it is in; 0: none */
	uint32_t scope;
	struct frame *frame;
	struct vec scopes;    /* of struct scope */
	struct vec branches;  /* of uint32_t: the part around it */
	struct vec functions; /* of struct script_function_entry */
	struct variables variables;
	const struct value *resolved; /* what the promise that is being made becomes */
	uint32_t connection;	      /* the last connection that was opened, or OPERATION_NONE */
	bool is_wired;		      /* its own input and output became a connection (os.dup2) */
	bool installs;		      /* it is what installs a package */
};

struct script_function_entry {
	uint32_t node, scope;
	const char *name;
	bool was_called, has_operations;
	bool has_deeds;  /* operations beside calls that no row knows */
	uint32_t missed; /* a call that was not followed, or 0 */
	unsigned runs;
	const struct value *blank_result; /* of a call with nothing known */
};

/* Walks a whole text. */
void script_walk(struct walk *walk, TSNode root, const struct script_language *language,
		 const struct syntax_map *map);

/* What a node is worth; also runs it for what it does. Never NULL. */
const struct value *script_value(struct script *script, uint32_t node);

/* The children in order; unknown, but from where they are from. */
const struct value *script_other(struct script *script, uint32_t node);

/* All children in order; the last one's value. */
const struct value *script_children(struct script *script, uint32_t node);

/* Where the interpreter is, while it is in a part that may not run. */
struct script_place {
	uint32_t branch, context;
};
/* Begins a part that may not run, with more of CONTEXT_*, below the one that it stands in; leave goes back there. */
struct script_place script_enter_branch(struct script *script, uint32_t context);
void script_leave_branch(struct script *script, struct script_place outer);

/* Runs node as something that may not happen, in a part of its own; in loops with more context. */
const struct value *script_branch(struct script *script, uint32_t node, uint32_t context);

/* False when time, steps or memory are used up; a doubt says so. */
bool script_step(struct script *script);

/* Whether a loop may be gone through once more: what repetitions take is bounded, and what is left of it is gone
 * through as any of its items, so nothing of it goes unseen. */
bool script_may_repeat(struct script *script);

/* Where the node stands in the text that was given, which may be around the one that is interpreted. */
struct span script_span(const struct script *script, uint32_t node);

/* The node's bytes, NUL-terminated in the arena ("" without memory). */
const char *script_text(struct script *script, uint32_t node);

/* Whether the node's bytes are these. */
bool script_is(const struct script *script, uint32_t node, const char *text);

/* An operation with the value's text as its first word, where the call stands; returns its number. */
uint32_t script_add(struct script *script, const struct call *call, enum operation_kind kind,
		    const struct value *value, uint32_t traits);
/* One more word of an operation; what the value is from flows into an operation. */
void script_add_word(struct script *script, const struct call *call, uint32_t operation, const struct value *value);
void script_add_flow(struct script *script, const struct value *from, uint32_t operation);

/*
 * Variables (scope.c). A scope is a number, parent the one around it; without memory it is the parent. Both give the
 * name a value in the part that is interpreted: assign where some scope around has it, else as a global; declare in
 * this scope.
 */
uint32_t script_scope_new(struct script *script, uint32_t parent);
void script_assign(struct script *script, const char *name, const struct value *value);
void script_declare(struct script *script, const char *name, const struct value *value);
/* The outer variable of that name is meant by it in this scope from now on. */
void script_share(struct script *script, const char *name);
/* NULL where no scope has it. */
const struct value *script_lookup(struct script *script, const char *name);

/* What stands there (a name, "self.x") is something else from now on, and the object that has it is also from where
 * that is from. */
void script_replace(struct script *script, uint32_t place, const struct value *value);

/* Gives what stands at target (a name, member, index, pattern) the value. declare: in this scope. */
void script_bind(struct script *script, uint32_t target, const struct value *value, bool declare);

/* The dotted text of a chain of names ("self.x"), or NULL. */
const char *script_dotted(struct script *script, uint32_t node);

/* Functions (function.c). A VALUE_FUNCTION of the node, which sees the scope that it stands in; it is not run yet. */
const struct value *script_make_function(struct script *script, uint32_t node);
/* Runs it with these arguments. What is known of the result. */
const struct value *script_invoke(struct script *script, const struct value *function,
				  const struct call *call);
/* Any callable with one argument, as libraries call callbacks. */
const struct value *script_call_back(struct script *script, const struct value *function,
				     const struct value *argument, uint32_t node);
/* Those that nobody called. */
void script_run_uncalled(struct script *script);
/* The functions of the file with this name, whatever object or class they belong to; NULL: none. */
const struct value *script_method(struct script *script, const char *name);
void script_declare_method(struct script *script, const char *name, const struct value *function);

/* How often (repeat.c). */

/* The context of an operation of this kind: a loop that runs too often for it is one without an end. */
uint32_t script_context(const struct script *script, enum operation_kind kind);
/* What follows runs this often in what is around (0 or 1: nothing changes). Returns script->times as it was. */
int64_t script_repeat(struct script *script, int64_t times);
/* What a loop with this condition and increment counts to; 0: not known. */
int64_t script_loop_times(struct script *script, uint32_t condition, uint32_t increment);
/* So many bytes are asked for by the node: of all that is kept in the loops around, where that is very much. */
int64_t script_kept_size(struct script *script, uint32_t node, int64_t size);
/* So many bytes (0: not known) are written by the node, as often as the loops around run: OP_ALLOCATE where the disk
 * has no room for it. */
void script_note_written(struct script *script, uint32_t node, int64_t size);
/* TRAIT_RECURSES: the function of this name always has itself called again, TRAIT_MULTIPLIES: in something new. */
uint32_t script_recursion(struct script *script, uint32_t function, const char *name);

/* Calls (call.c). What a NODE_CALL or NODE_NEW is worth: callee and arguments first, then what it does. */
const struct value *script_call(struct script *script, uint32_t node);
/* A call that is already taken apart. */
const struct value *script_apply(struct script *script, struct call *call);
/* Functions among the arguments, which somebody will call with `given`. Given, and where what they return is
 * from. */
const struct value *script_run_callbacks(struct script *script, const struct call *call,
					 const struct value *given);
/* Whether nothing is known of any argument: then every such call is the same. */
bool call_is_blank(const struct call *call);
/* The argument at a place, or the one with the keyword (in JavaScript also a key of an argument that is a
 * map). NULL: none. */
const struct value *call_argument(const struct call *call, int at, const char *keyword);

/* object.name and object[index], of values. */
const struct value *script_member(struct script *script, const struct value *object, const char *name,
				  uint32_t node);
const struct value *script_index(struct script *script, const struct value *object, const struct value *index,
				 uint32_t node);
/* The value of a qualified name, through the aliases of the language. */
const struct value *script_named(struct script *script, const char *name);
const struct value *script_binary(struct script *script, const char *operator, const struct value * a,
				  const struct value *b, uint32_t node);
