/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The syntax of a Python or JavaScript text in one form: an array of nodes in the order of the text, whose
 * kinds mean the same in both languages, so that one interpreter (script.h) reads both. It is made from a
 * tree of tree-sitter without recursion, keeps what the interpreter asks for, and is bounded: what goes
 * beyond is left out and said.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tree_sitter/api.h>

#include "base/cleanup.h"

enum { SYNTAX_NODE_MAX = 3 << 20, SYNTAX_SYMBOL_MAX = 512, SYNTAX_FIELD_MAX = 64 };

/* What a node is. Names of the grammars that stand in no table are NODE_OTHER: their children are looked at
 * in order. */
enum syntax_kind {
	NODE_OTHER,
	NODE_SKIP,  /* left out with all below it: comments, types, labels */
	NODE_ERROR, /* could not be parsed; what could be read in it is below */
	NODE_BLOCK, /* children one after the other */
	NODE_SAME,  /* worth what its last child is worth: parentheses, await, sequence */
	NODE_NAME,
	NODE_TEXT,  /* a string, its NODE_PARTs are what is computed in it */
	NODE_TEXTS, /* strings written one after the other */
	NODE_PART,
	NODE_NUMBER,
	NODE_TRUE,
	NODE_FALSE,
	NODE_NONE,
	NODE_LIST, /* also tuples, sets, and the patterns that look like them */
	NODE_MAP,  /* also object patterns */
	NODE_KEY,  /* a name that is itself: of a property */
	NODE_PAIR,
	NODE_SHORT, /* {name}, in a map or its pattern */
	NODE_SPREAD,
	NODE_SPREAD_MAP,
	NODE_KEYWORD, /* name=value of a call */
	NODE_ARGUMENTS,
	NODE_MEMBER, /* object.name */
	NODE_INDEX,  /* object[value] */
	NODE_SLICE,
	NODE_CALL,
	NODE_NEW,
	NODE_BINARY,
	NODE_UNARY,
	NODE_CHOICE, /* a ? b : c, a if b else c */
	NODE_COMPARE,
	NODE_ASSIGN,  /* to a variable that is there, or here */
	NODE_DECLARE, /* to a variable of this scope */
	NODE_AUGMENT,
	NODE_DEFAULT, /* a name or pattern with the value it has when nothing is given */
	NODE_AS,      /* value as target */
	NODE_FUNCTION,
	NODE_PARAMETERS,
	NODE_CLASS,
	NODE_RETURN, /* also yield */
	NODE_LEAVE,  /* break, raise, throw */
	NODE_GLOBAL, /* names that mean the variables outside */
	NODE_IF,
	NODE_BRANCH, /* a block that may not run: else, except, case */
	NODE_LOOP,
	NODE_EACH,
	NODE_COMPREHENSION,
	NODE_FOR_IN,
	NODE_IMPORT,
	NODE_IMPORT_FROM,
	NODE_WILDCARD,
	NODE_THIS,
	NODE_KIND_COUNT,
};

/* What a node is to its parent. Fields of one meaning have one name in both languages. */
enum syntax_field {
	FIELD_NONE,
	FIELD_TARGET, /* what is assigned to; the left side; the name of what is declared or imported */
	FIELD_VALUE,  /* what is assigned; the right side; the object of a member or an index */
	FIELD_KEY,
	FIELD_MEMBER,
	FIELD_INDEX,
	FIELD_FUNCTION,
	FIELD_ARGUMENTS,
	FIELD_OPERATOR,
	FIELD_CONDITION,
	FIELD_BODY,
	FIELD_ELSE,
	FIELD_PARAMETERS,
	FIELD_ALIAS,
	FIELD_SOURCE,
	FIELD_INITIALIZER,
	FIELD_INCREMENT,
	FIELD_COUNT,
};

/* Nodes are named by their place in the array; the root is 0, which is nobody's child, so 0 also means none.
 */
struct syntax_node {
	uint32_t start, end;  /* bytes of the text */
	uint32_t first, next; /* child, sibling */
	uint32_t parent;
	uint32_t note; /* of whoever works with the tree */
	uint8_t kind, field;
	uint16_t symbol; /* the grammar's own */
};

struct syntax {
	const char *text; /* borrowed */
	size_t size;
	struct syntax_node *nodes; /* in the order of the text: all that is below a node follows it */
	uint32_t count, capacity;
	uint32_t depth; /* of the deepest node */
	bool has_error; /* somewhere the text is not of its language */
	bool is_cut;	/* there was more than SYNTAX_NODE_MAX or the memory */
};

/* One row: a name of the grammar and what it means here. */
struct syntax_kind_name {
	const char *name;
	enum syntax_kind kind;
};

/* A grammar's symbols and fields, translated; made once for each grammar. */
struct syntax_map {
	uint8_t kinds[SYNTAX_SYMBOL_MAX];
	uint8_t fields[SYNTAX_FIELD_MAX];
	bool is_made;
};

/* Fills the map from rows; names that the grammar does not have are ignored (a test looks for them). */
void syntax_map_make(struct syntax_map *map, const TSLanguage *language, const struct syntax_kind_name *rows,
		     size_t count);

/* Copies the tree of text (which must outlive it). -ENOMEM when not even the root fits; freed with
 * syntax_done(). */
int syntax_build(struct syntax *syntax, TSNode root, const struct syntax_map *map, const char *text,
		 size_t size) MUST_USE;
void syntax_done(struct syntax *syntax);
#define cleanup_syntax __attribute__((cleanup(syntax_done)))

/* The first child with the field, or 0. */
uint32_t syntax_child(const struct syntax *syntax, uint32_t node, enum syntax_field field);

/* The first of its direct children that has the kind; 0 where none has. */
uint32_t syntax_child_kind(const struct syntax *syntax, uint32_t node, enum syntax_kind kind);

/* The direct child that nothing follows; 0 where there are no children. */
uint32_t syntax_last(const struct syntax *syntax, uint32_t node);

/* The node behind all that is below node (count for the last). */
uint32_t syntax_behind(const struct syntax *syntax, uint32_t node);
