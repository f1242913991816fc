/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What atolld keeps of templates that are built: builds, the tags that lead to them, and which steps have a snapshot
 * (doc/format/service.md). Results as of database.h. Runs in atolld.
 */

#include "service/launcher/store/database.h"

enum { BUILD_STEP_SIZE = 16, BUILD_MESSAGE_SIZE = 1024, BUILD_TAGS_SIZE = 2048 };

enum build_state { BUILD_WAITING, BUILD_BUILDING, BUILD_READY, BUILD_ERROR, BUILD_STATE_COUNT };
extern const char *const build_state_names[BUILD_STATE_COUNT];

struct build_row {
	char id[DATABASE_NAME_SIZE], template[DATABASE_NAME_SIZE], owner[DATABASE_NAME_SIZE];
	enum build_state state;
	uint64_t created_ms;
	char session[SESSION_ID_SIZE], snapshot[DATABASE_NAME_SIZE]; /* what a sandbox of it begins with */
	char step[BUILD_STEP_SIZE], message[BUILD_MESSAGE_SIZE];     /* of one that failed */
	char tags[BUILD_TAGS_SIZE];                                  /* that it gets, each with a blank behind it */
	struct bytes settings;                                       /* a frame: how commands run in it */
};

struct build_tag {
	char tag[DATABASE_NAME_SIZE], build[DATABASE_NAME_SIZE];
	uint64_t created_ms;
};

/* A state of a sandbox that steps led to, by the hash of them all. */
struct build_cached {
	char owner[DATABASE_NAME_SIZE], hash[HASH_HEX_SIZE];
	char session[SESSION_ID_SIZE], snapshot[DATABASE_NAME_SIZE];
	uint64_t used_ms;
};

/* A row takes the place of one with the same id; its texts are copied. */
int builds_put(struct database *store, const struct build_row *build) MUST_USE;
/* What settings points to lives until the next call here. */
int builds_get(struct database *store, const char *id, struct build_row *ret_build) MUST_USE;
/* 0 also where no row has this id. */
int builds_remove(struct database *store, const char *id) MUST_USE;
/* The oldest first. */
int builds_each(struct database *store, int (*row)(void *context, const struct build_row *build),
		void *context) MUST_USE;

/* A tag leads to one build of its template: it moves where it is there already. */
int builds_put_tag(struct database *store, const char *template, const struct build_tag *tag) MUST_USE;
/* 1: it led to a build until now; 0: nobody had it. */
int builds_remove_tag(struct database *store, const char *template, const char *tag) MUST_USE;
/* 1, and which build it leads to; 0: nobody has it. */
int builds_get_tag(struct database *store, const char *template, const char *tag, struct build_tag *ret_tag) MUST_USE;
/* The newest first. */
int builds_each_tag(struct database *store, const char *template,
		    int (*row)(void *context, const struct build_tag *tag), void *context) MUST_USE;

/* The state takes the place of an older one that the same steps led to. */
int builds_put_cached(struct database *store, const struct build_cached *cached) MUST_USE;
/* 1, and where the state lies; 0: these steps were not done, or not for this owner. */
int builds_get_cached(struct database *store, const char *owner, const char *hash,
		      struct build_cached *ret_cached) MUST_USE;
/* 0 also where it is not there; the snapshot itself stays. */
int builds_remove_cached(struct database *store, const char *owner, const char *hash) MUST_USE;
/* What was not used for the longest first. */
int builds_each_cached(struct database *store, int (*row)(void *context, const struct build_cached *cached),
		       void *context) MUST_USE;
