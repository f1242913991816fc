/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is known of programs and of functions of libraries: data, read from policies/verify/ with the rules
 * (doc/format/verify-tables.md), made by rules/, looked at by who turns commands and calls into operations. All texts
 * and vectors live as long as the rules. Pure.
 */

#include "verify/model/language.h"
#include "verify/model/operation.h"

enum {
	TABLE_ROWS_MAX = 8000,   /* of one vector */
	TABLE_PLACE_MAX = 31,    /* of an argument */
	TABLE_SKIPS_MAX = 8,
	TABLE_OPTION_MAX = 63,   /* bytes of an option */
	TABLE_ROW_SIZE_MAX = 128,
};

/* Which of the words of a command that are no options an effect is on. */
enum operand_choice {
	OPERANDS_ALL, OPERANDS_FIRST, OPERANDS_LAST, OPERANDS_BUT_FIRST, OPERANDS_BUT_LAST,
	OPERAND_CHOICE_COUNT,
};

/* Programs whose words have a meaning of their own. */
enum program_like {
	LIKE_NONE, LIKE_DD, LIKE_FIND, LIKE_GIT, LIKE_KILL, LIKE_TAR, LIKE_UNPACKER,
	/* Of the network: one that makes no connection is any other command. */
	LIKE_CONNECTION, LIKE_COPY, LIKE_CURL, LIKE_HTTPIE, LIKE_LOOKUP, LIKE_MAIL, LIKE_OPENSSL, LIKE_SERVER,
	LIKE_SSH, LIKE_WGET,
	PROGRAM_LIKE_COUNT,
};

/* One thing that a program does to some of its operands. */
struct program_effect {
	const char *name;
	const char *valued;     /* options with a value, see option_size() */
	const char *only_with;  /* the letter of an option without which it does not happen; NULL: it does */
	enum operation_kind kind;
	enum operand_choice choice;
	enum program_like like; /* LIKE_NONE: what the fields say */
	uint32_t traits;
	char recursive;         /* the letter that makes it recursive; 0: none */
};

/* What an option of curl or wget does with its value. */
enum transfer_use {
	TRANSFER_OTHER, TRANSFER_SENT, TRANSFER_SENT_FILE, TRANSFER_HEADER, TRANSFER_WRITTEN, TRANSFER_TARGET,
	TRANSFER_FOLDER,
	TRANSFER_USE_COUNT,
};

struct transfer_option {
	const char *name; /* "-d" or "--data" */
	enum transfer_use use;
};

enum transfer_program { TRANSFER_CURL, TRANSFER_WGET, TRANSFER_PROGRAM_COUNT };

/* A program that starts another one. */
struct wrapper {
	const char *name;
	const char *valued;     /* see option_size() */
	const char *subcommand; /* must stand there first: "run"; NULL: none */
	uint32_t context;       /* CONTEXT_* of what it starts */
	uint32_t skips;         /* words between the options and the command: timeout's DURATION */
	bool is_shell;          /* the rest of the words is code for a shell, else a command */
	bool takes_input, has_assignments;
};

/* What says that a program is to show what it would do, and to do nothing. */
struct trial {
	const char *name;
	const char *letters; /* the first is the option, the others may stand beside it: -an; "": there is none */
	const char *options; /* others, separated by spaces */
	const char *valued;  /* those whose value is the next word, see option_size(): it is no option */
	const char *verbs;   /* the first word must be one of them; NULL: whichever */
};

/* What of a program's words is code. The first row that fits decides. */
struct code_option {
	const char *name;
	const char *begins; /* what the code begins with there, and is none of it */
	const char *option; /* the word before, or, with a "=" behind it, how the word itself begins; NULL: any */
	enum verify_language language;
};

/* A line of an editor that is code, by how it begins. */
struct editor_line {
	const char *name;
	enum verify_language language;
};

/* Editors of one family: what stands behind one of the options, or a +, is a line of theirs. */
struct editor_tables {
	struct vec names, options; /* of const char * */
	struct vec lines;          /* of struct editor_line */
};

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
	EFFECT_NETWORK,	  /* target: URL, second: body; keywords that carry data: see library/network.c */
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
	EFFECT_INSTALL,	/* the file is what installs a package: all of it runs then */
	EFFECT_KIND_COUNT,
};

enum {
	TARGET_NONE = -1,
	TARGET_SELF = -2, /* the object of the method: what it was made from, where that is known */
	TARGET_LAST = -3, /* the last argument */
};

/*
 * What a call of a library does. name is the qualified name with imports and aliases resolved: "open().read" is the
 * method of what open() returned, "*.unlink" a method of whatever object, where no other row fits.
 */
struct effect {
	const char *name;
	enum effect_kind kind;
	int8_t target, second;               /* places of arguments, or TARGET_* */
	const char *keyword, *second_keyword; /* their names; NULL: none */
	uint32_t traits;                     /* TRAIT_* */
	const char *detail;                  /* what the kind says; NULL: none */
};

/* One qualified name for another. */
struct name_alias {
	const char *name, *means;
};

struct language_tables {
	struct vec calls;   /* of struct effect */
	struct vec aliases; /* of struct name_alias */
	struct vec grave;   /* of const char *: modules that can do anything */
	struct vec quiet;   /* of const char *: prefixes of names whose calls are of no interest */
};

/* All vectors of rows are sorted by name. */
struct tables {
	struct vec programs;                              /* of struct program_effect; several may have one name */
	struct vec wrappers;                              /* of struct wrapper */
	struct vec trials;                                /* of struct trial */
	struct vec verbs_first;                           /* of const char *: programs that read all options first */
	struct vec code_options;                          /* of struct code_option; several may have one name */
	struct editor_tables editors;
	struct vec transfers[TRANSFER_PROGRAM_COUNT];     /* of struct transfer_option */
	struct language_tables languages[LANGUAGE_COUNT]; /* of Python and JavaScript */
};

/*
 * The first row of a name in a vector of rows (of size bytes each) that begin with their name and are sorted by it;
 * NULL: none.
 */
const void *tables_find(const struct vec *rows, size_t size, const char *name);
#define TABLES_FIND(type, rows, name) ((const type *)tables_find(rows, sizeof(type), name))

/* Sorts rows that begin with their name; those of one name stay in their order. */
void tables_sort(struct vec *rows, size_t size);

/* Whether each row's name comes behind that of the one before, or, where is_unique is false, is the same. */
bool tables_are_sorted(const struct vec *rows, size_t size, bool is_unique);
