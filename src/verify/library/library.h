/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What calls of libraries do: one row a function, and one handler a kind of effect, which makes the
 * operations. The rows are data (python-effects.c, javascript-effects.c); the handlers know no language.
 *
 * A row's name is the qualified name with imports and aliases resolved. "open().read" is the method of what
 * open() returned,
 * "*.unlink" a method of whatever object, where no other row fits.
 */

#include "verify/script/script.h"

enum effect_kind {
	EFFECT_NONE,	   /* of no interest; no OP_CALL for it */
	EFFECT_SHELL,	   /* target: a text for the shell */
	EFFECT_PROGRAM,	   /* target: a list of words, or a text (for the shell when shell=True) */
	EFFECT_SPAWN,	   /* target: a program, second: the list of its arguments, without its name */
	EFFECT_EXEC,	   /* target: a program, second: the list of its words */
	EFFECT_EXEC_WORDS, /* target: a program, and from second on its words one by one */
	EFFECT_SELF_AGAIN, /* target: a file of this language that is run */
	EFFECT_OPEN,	   /* target: path, second: mode */
	EFFECT_READ,	   /* target: path */
	EFFECT_WRITE,	   /* target: path, second: content */
	EFFECT_REMOVE,	   /* target: path */
	EFFECT_PERMISSION, /* target: path, second: mode or owner */
	EFFECT_COPY,	   /* target: from, second: to */
	EFFECT_MOVE,
	EFFECT_LINK,	  /* target: where it leads, second: the link */
	EFFECT_LIST,	  /* target: directory; detail: what its items are ("name", "tuple", else paths) */
	EFFECT_GLOB,	  /* target: pattern */
	EFFECT_ARCHIVE,	  /* target: a file that is put into the object */
	EFFECT_NETWORK,	  /* target: URL, second: body; keywords that carry data: see network.c */
	EFFECT_REQUEST,	  /* a request that is made and sent later; target: URL, second: body */
	EFFECT_DOWNLOAD,  /* target: URL, second: the file it becomes */
	EFFECT_UPLOAD,	  /* target: where to, second: the file that is sent */
	EFFECT_SENDTO,	  /* target: address */
	EFFECT_CONNECT,	  /* target: (host, port), {host, port}, or port and host */
	EFFECT_LISTEN,	  /* target: address or port */
	EFFECT_RECEIVE,	  /* from the last connection */
	EFFECT_FEED,	  /* arguments go into what the object is: a file, a connection, a program */
	EFFECT_FEED_LAST, /* into the last connection */
	EFFECT_PIPE,	  /* the object goes into target */
	EFFECT_PIPELINE,  /* each argument goes into the next */
	EFFECT_WIRE,	  /* the own input or output becomes target */
	EFFECT_RETURNED,  /* Function("return x")() */
	EFFECT_EVALUATE,  /* target: code of this language */
	EFFECT_LOAD,	  /* target: data that may bring code along (pickle) */
	EFFECT_IMPORT,	  /* target: name of a module */
	EFFECT_CALL,	  /* OP_CALL of detail, or of the method's name */
	EFFECT_ESCAPE,	  /* leads to what the text does not name */
	EFFECT_PARTIAL_CALL,
	EFFECT_PARTIAL,		/* target: function; what is given now comes before what is given later */
	EFFECT_ATTRIBUTE,	/* target: object, second: name */
	EFFECT_LATER,		/* target: function, second: its arguments (a list by keyword, or the rest) */
	EFFECT_PROMISE,		/* target: function of what resolves it */
	EFFECT_RESOLVE,		/* target: what it becomes */
	EFFECT_THEN,		/* target: function of what the object becomes */
	EFFECT_ENVIRONMENT,	/* target: name of a variable that is read; none: all of them */
	EFFECT_SET_ENVIRONMENT, /* target: name, second: value */
	EFFECT_PROCESS,		/* detail: what; target and second: more words */
	EFFECT_PRINT,		/* arguments go to the standard output */
	EFFECT_INPUT,		/* what whoever runs it types */
	EFFECT_ALLOCATE,	/* target: bytes */
	EFFECT_APPLY, /* target: function, second: where its arguments begin; detail: they are a list */
	EFFECT_BIND,  /* the function with what it is given first, and no call yet */
	EFFECT_SAME,  /* is what its target is */
	EFFECT_REMOTE,	/* target: a text for the shell of another machine */
	EFFECT_ENTER,	/* target: the directory that relative paths are below from now on */
	EFFECT_TOOL,	/* sh.git.push(x): the name is that of a program */
	EFFECT_VALUES,	/* the values of a map: target */
	EFFECT_JSON,	/* target as text */
	EFFECT_DUMP,	/* target as text into second */
	EFFECT_MODULE,	/* target: the name of a module; its file */
	EFFECT_KIND_COUNT,
};

enum {
	TARGET_NONE = -1,
	TARGET_SELF = -2, /* the object of the method: what it was made from, where that is known */
	TARGET_LAST = -3, /* the last argument */
};

struct effect {
	const char *name;
	enum effect_kind kind;
	int8_t target;
	const char *keyword;
	int8_t second;
	const char *second_keyword;
	uint32_t traits; /* TRAIT_* */
	const char *detail;
};

typedef const struct value *(*library_handler)(struct script *script, struct call *call,
					       const struct effect *effect);

/* What the interpreter is given. */
extern const struct library_ops library_ops;

/* A call of a library that no row knows: OP_CALL, or OPERATION_NONE where it is of no interest. */
uint32_t library_other_call(struct script *script, const struct call *call);

/* A variable of the environment that is read; "*": all of them. */
const struct value *library_environment(struct script *script, const char *name, uint32_t node);

/* A method of an open connection that no row knows: what it is given that is from somewhere is sent. */
void library_take_in(struct script *script, const struct call *call);

/* A module, an attribute or an item is asked for by a name that was put together so that nobody finds it. */
void library_hidden_name(struct script *script, const struct value *name, uint32_t node);

/* Paths among the arguments, which the operation reads. */
void library_named_files(struct script *script, const struct call *call, uint32_t operation);

/* For the handlers. */

/* The row of a qualified name in the language of the script; NULL: none. */
const struct effect *library_find(const struct script *script, const char *name);

/* The row's target, and its second; value_nothing where the call has none. */
const struct value *library_target(const struct call *call, const struct effect *effect);
const struct value *library_second(const struct call *call, const struct effect *effect);

/* OP_CALL of name with all that the call is given, from where its object is. */
uint32_t library_add_call(struct script *script, const struct call *call, const char *name, uint32_t traits);

/* What comes back from an operation: unknown, from there, known as "name()", made from subject. */
const struct value *library_result(struct script *script, const struct call *call, uint32_t operation,
				   const struct value *subject);

/* Code of a language that is run by the call. */
const struct value *library_nested(struct script *script, const struct call *call,
				   enum verify_language language, const struct value *code);

/* A list or a map as a text that rules can look at: keys and values one after the other, unknown ones as such. */
const struct value *library_flatten(struct script *script, const struct value *value);

/* What is written into a file, for rules that look at texts. */
void library_keep_content(struct script *script, const struct value *content, uint32_t operation);

/* file.c */
extern const library_handler library_file_handlers[EFFECT_KIND_COUNT];
/* code.c */
extern const library_handler library_code_handlers[EFFECT_KIND_COUNT];
/* process.c */
extern const library_handler library_process_handlers[EFFECT_KIND_COUNT];
/* network.c */
extern const library_handler library_network_handlers[EFFECT_KIND_COUNT];
