/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one binder: tables of keys say which key takes what, and it walks a document along them. Unknown
 * keys, wrong types, repeated keys and bad values become errors with their place and the nearest valid name.
 */

#include "lang/bind/draft.h"
#include "lang/yaml/node.h"
#include "lang/yaml/pattern.h"

struct binder {
	struct arena *arena;
	struct diags *diags;
	struct draft *draft;
	struct draft_scalar *scalars; /* where single values go: the draft's, or those of one rule */
	struct pattern_scope scope;
	bool is_shipped;
	const char *section; /* the mapping that is being read: "files"; "" at the top */
	const char *list;    /* the list in it, and where in the list: for rule ids */
	size_t index;
	struct draft_rule *rule; /* the rule that is being read: the first member of its own type */
};

enum key_kind {
	KEY_SCALAR,	 /* bind() gets the scalar */
	KEY_LIST,	 /* bind() gets each item */
	KEY_SCALARS,	 /* bind() gets each item, all of them scalars */
	KEY_ONE_OR_MORE, /* a scalar, or a list of scalars */
	KEY_MAP,	 /* keys says what is in it; bind() is not used */
	KEY_ANY,	 /* bind() gets whatever it is */
	KEY_FREE,	 /* a mapping whose keys are the user's; bind() gets the mapping */
	KEY_ROWS,	 /* a key for each row of scalars.h from value to last; only as the first of a table */
};

struct key {
	const char *name;
	enum key_kind kind;
	void (*bind)(struct binder *binder, const struct key *key, const struct node *node);
	const struct key *keys;
	size_t key_count;
	int value;		  /* what bind() makes of it: a file class, a scalar, … */
	int last;		  /* of KEY_ROWS */
};

/* Reads a whole policy file into binder->draft. Errors go to binder->diags. */
void bind_policy(struct binder *binder, const struct node *root);

/* The engine, for the tables of the other files. */
void bind_map(struct binder *binder, const struct key *keys, size_t count, const struct node *node);

/* An item of a list: a scalar goes to the first key of the table, a mapping along the table. */
void bind_item(struct binder *binder, const struct key *keys, size_t count, const struct node *node);

/* "expected a size such as 4GiB, found …". */
void bind_expected(struct binder *binder, const struct node *node, const char *what);

/* A new rule at the end of vec with its place and id, or NULL. */
void *bind_add(struct binder *binder, struct vec *vec, size_t item_size, const struct node *node);

/* Answers are let in by it: the way there is TLS, or does not leave the machine. */
bool bind_url_is_safe(const char *url);
#define BIND_URL_EXPECTED "an https:// URL, or an http:// URL of this machine (127.0.0.1, [::1])"

/*
 * A host as rules hold it: in lower case, an international name in its xn-- form. What is no name stays one that no
 * rule has. In arena; NULL as arena_alloc().
 */
char *bind_host_name(struct arena *arena, const char *text);

/* Whether the first length bytes of text are the name of a variable. */
bool bind_variable_is_valid(const char *text, size_t length);

/* network.allow: inject (bind-inject.c), and what is wrong with it once its rule is whole; data.canaries. */
void bind_inject(struct binder *binder, const struct key *key, const struct node *node);
void inject_check(struct binder *binder, const struct draft_net *net);
void bind_canary(struct binder *binder, const struct key *key, const struct node *node);

/* The value of a key of KEY_ROWS into binder->scalars[key->value], read by the unit and bounds of its row. */
void bind_row(struct binder *binder, const struct key *key, const struct node *node);

/* Scalars into binder->scalars[key->value]. */
void bind_count(struct binder *binder, const struct key *key, const struct node *node);
void bind_duration(struct binder *binder, const struct key *key, const struct node *node);
void bind_size(struct binder *binder, const struct key *key, const struct node *node);
void bind_rate(struct binder *binder, const struct key *key, const struct node *node);

/* "answer" of a rule of network.simulate (bind-answer.c). */
void bind_answer(struct binder *binder, const struct key *key, const struct node *node);

/*
 * bind-limits.c: network.limits, time.rate, time.cooldown, the limits of the rule being read, network.publish,
 * network.host_ports.
 */
void bind_limits(struct binder *binder, const struct key *key, const struct node *node);
void bind_rule_limits(struct binder *binder, const struct key *key, const struct node *node);
void bind_time_rate(struct binder *binder, const struct key *key, const struct node *node);
void bind_time_cooldown(struct binder *binder, const struct key *key, const struct node *node);
void bind_host_port(struct binder *binder, const struct key *key, const struct node *node);
void bind_publish(struct binder *binder, const struct key *key, const struct node *node);

/* The sections of rules, each in its own file, and those of limits (bind-policy.c), which narrowings have too. */
extern const struct key files_keys[], network_keys[], exec_keys[], env_keys[], ask_keys[], verify_keys[],
	resources_keys[], time_keys[], agent_keys[];
extern const size_t files_key_count, network_key_count, exec_key_count, env_key_count, ask_key_count, verify_key_count,
	resources_key_count, time_key_count, agent_key_count;
