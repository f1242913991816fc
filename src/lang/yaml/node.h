/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One YAML document as a tree with positions, made from libyaml's events. It refuses whatever a policy
 * has no use for and an attacker has: anchors and aliases, tags, directives, several documents, deep
 * nesting, NUL bytes, text that is not UTF-8.
 */

#include <stdbool.h>
#include <stdint.h>

#include "lang/yaml/diag.h"

enum {
	NODE_TEXT_MAX = 4 << 20, /* bytes of a policy file */
	NODE_DEPTH_MAX = 12,
	NODE_COUNT_MAX = 400000,
};

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	bool is_quoted; /* a quoted or block scalar: never null */
	struct place place;
	const char *text;   /* NODE_SCALAR */
	struct node *first; /* NODE_LIST: items; NODE_MAP: keys, each with its value */
	struct node *next;
	struct node *value; /* of a key */
};

/* The root of the document, or NULL with at least one error in diags. file is borrowed for the places. */
struct node *node_parse(struct diags *diags, const char *file, const void *bytes, size_t size);

/* "a list", "a mapping", "\"text\"" for messages. */
const char *node_describe(const struct node *node, char out[80]);
