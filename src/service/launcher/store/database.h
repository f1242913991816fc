/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What atolld keeps beside the sandboxes themselves, in SQLite: keys, what sandboxes were asked for with, and templates
 * (doc/format/service.md). A row is committed before what it speaks of is done, without waiting for the disk: the
 * death of this process loses nothing, and a power cut ends the sandboxes, too. Also opened by `atoll serve key`,
 * while atolld runs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/hash.h"
#include "os/clock.h"
#include "service/launcher/store/credential.h"

struct database;

enum { DATABASE_NAME_SIZE = 65, DATABASE_POLICY_SIZE = 1024, DATABASE_SECRET_NAME_SIZE = 129 };

enum key_role { KEY_READ_ONLY, KEY_USER, KEY_ADMIN, KEY_ROLE_COUNT };
extern const char *const key_role_names[KEY_ROLE_COUNT];

/* Who may do what. Keys of one owner see the same sandboxes. */
struct key_row {
	int64_t number;
	char name[DATABASE_NAME_SIZE], owner[DATABASE_NAME_SIZE];
	char shown[CREDENTIAL_KEY_SHOWN + 1];      /* how the key begins */
	enum key_role role;
	char policy[DATABASE_POLICY_SIZE];            /* a name, or an absolute path */
	uint64_t sandboxes_max, creates_per_minute, memory_mb_max;
	uint64_t created_ms;
	bool is_revoked;
};

/* What becomes of it at the next start of atolld stands behind each. */
enum sandbox_state {
	SANDBOX_CREATING,      /* nobody was told of it: ended */
	SANDBOX_RUNNING,
	SANDBOX_PAUSED,        /* it stands still, memory and all */
	SANDBOX_STORED,        /* it has ended; what it staged is kept, for the next connect */
	SANDBOX_KILLING,       /* ended */
	SANDBOX_STATE_COUNT,
};

struct bytes {
	const void *bytes;     /* borrowed */
	size_t size;
};

struct sandbox_row {
	char id[CREDENTIAL_ID_SIZE];
	char session[SESSION_ID_SIZE];             /* of atoll; "" */
	char owner[DATABASE_NAME_SIZE];
	int64_t key;
	enum sandbox_state state;
	uint64_t created_ms, end_ms, left_ms;      /* left_ms: of a paused one */
	struct bytes made, network;                /* frames (wire/service.h): as it was made, and set since */
};

struct template_row {
	char id[DATABASE_NAME_SIZE], name[DATABASE_NAME_SIZE], owner[DATABASE_NAME_SIZE];
	char session[SESSION_ID_SIZE], snapshot[DATABASE_NAME_SIZE]; /* what a sandbox made from it begins with */
	char sandbox[CREDENTIAL_ID_SIZE];          /* of which it was taken */
	uint64_t created_ms;
};

struct function_row {
	char id[CREDENTIAL_ID_SIZE], name[DATABASE_NAME_SIZE], owner[DATABASE_NAME_SIZE];
	int64_t key;
	uint64_t created_ms;
	struct bytes made;                         /* a frame: as it was deployed */
};

/* What is known of a secret of a client; its value is elsewhere. */
struct secret_row {
	char id[DATABASE_NAME_SIZE], name[DATABASE_SECRET_NAME_SIZE], owner[DATABASE_NAME_SIZE];
	uint64_t version;                          /* 0: it has no value yet, and nobody was told of it */
	uint64_t created_ms, updated_ms;
	struct bytes metadata;                     /* name NUL value NUL … */
};

/* Opens or makes it, and brings an older one up to date. -EPROTO with *err: it is of a later atoll. */
int database_open(const char *path, struct database **ret_store, struct err *err) MUST_USE;
void database_close(struct database *store);

struct sqlite3;

/* SQLite's own handle, borrowed, for statements of other files in this folder. */
struct sqlite3 *database_handle(struct database *store);

/* The last thing that failed, as SQLite says it; static until the next call. */
const char *database_problem(struct database *store);

/*
 * 0; -EEXIST: the name is taken; -ENOSPC: the disk is full; -EIO: database_problem() says why. What is asked for: 1,
 * and it is there; 0: it is not. What goes through all rows calls `row` for each until that is negative, and returns
 * this, or 0.
 */
int database_add_key(struct database *store, const struct key_row *key, const struct hash *hash) MUST_USE;
int database_find_key(struct database *store, const struct hash *hash, struct key_row *ret_key) MUST_USE;
int database_key_by_number(struct database *store, int64_t number, struct key_row *ret_key) MUST_USE;
int database_revoke_key(struct database *store, const char *name) MUST_USE;
int database_each_key(struct database *store,
		      int (*row)(void *context, const struct key_row *key), void *context) MUST_USE;

/* A row takes the place of one with the same id. */
int database_put_sandbox(struct database *store, const struct sandbox_row *sandbox) MUST_USE;
/* 0 also where there is no row of this id. */
int database_remove_sandbox(struct database *store, const char *id) MUST_USE;
/* The oldest first; what a row points to lives for the call. */
int database_each_sandbox(struct database *store,
			  int (*row)(void *context, const struct sandbox_row *sandbox), void *context) MUST_USE;

/* A row takes the place of one with the same id; removing one that is not there is no error. */
int database_put_template(struct database *store, const struct template_row *template) MUST_USE;
int database_remove_template(struct database *store, const char *id) MUST_USE;
int database_each_template(struct database *store, int (*row)(void *context, const struct template_row *template),
			void *context) MUST_USE;

/* The same for functions: a row takes the place of one with the same id; removing none is no error. */
int database_put_function(struct database *store, const struct function_row *function) MUST_USE;
int database_remove_function(struct database *store, const char *id) MUST_USE;
int database_each_function(struct database *store, int (*row)(void *context, const struct function_row *function),
			   void *context) MUST_USE;

/* A row takes the place of one with the same id; -EEXIST: another one of the owner has the name. As for templates. */
int database_put_secret(struct database *store, const struct secret_row *secret) MUST_USE;
int database_remove_secret(struct database *store, const char *id) MUST_USE;
int database_each_secret(struct database *store, int (*row)(void *context, const struct secret_row *secret),
			 void *context) MUST_USE;

/*
 * The names of sandboxes that run for functions: one is written down before its sandbox is made, and taken away when
 * that has ended, so that the next start of atolld finds what a killed one has left. No client has a right to one.
 */
int database_put_instance(struct database *store, const char *id) MUST_USE;
int database_remove_instance(struct database *store, const char *id) MUST_USE;
int database_each_instance(struct database *store, int (*row)(void *context, const char *id), void *context) MUST_USE;

/* Writes what is committed into the main file, and waits for the disk. Called when nothing else is to be done. */
void database_checkpoint(struct database *store);
