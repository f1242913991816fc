/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The compiled policy of a run: taken from the cache while none of the files that it was made from has changed,
 * else made by atoll-policy. The cache lies in the state directory, which no sandbox ever sees: what is
 * cached there is enforced later.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "policy/snapshot/snapshot.h"

enum { COMPILED_UNMASK_MAX = 16 };

struct compiled_request {
	const char *level;          /* -t, or NULL */
	bool is_lowered;            /* level stands in the place of a higher one, for an agent that is trusted less */
	const char *policy;         /* -p: a name, or a path made absolute; or NULL */
	const char *project;
	const char *home;           /* "" when there is none */
	const char *config_home;    /* $XDG_CONFIG_HOME or HOME/.config; "" when there is none */
	const char *programs_dir;   /* where atoll-policy and policies/ are */
	const char *state_dir;      /* kept out of reach of every policy, as the next */
	const char *runtime_dir;
	const char *const *unmask;  /* absolute, NULL-terminated, at most COMPILED_UNMASK_MAX; NULL: none */
};

struct compiled {
	char *bytes;                /* owned */
	size_t size;
	struct snapshot *snapshot;  /* owned; a view of bytes */
};

/* Frees the bytes and the view of them, and zeroes it, so that it can be filled again. */
void compiled_done(struct compiled *compiled);
#define cleanup_compiled __attribute__((cleanup(compiled_done)))

/*
 * The same without what narrowing takes away: the text of somebody who is not trusted (lang/compile/narrow.h). Never
 * from the cache, and never put there. difference (initialised by the caller) gets what that is, for people: a few
 * lines, a NUL and all of it; nothing where it takes nothing. 1: it is no narrowing of the policy, and atoll-policy has
 * said why.
 */
int compiled_narrow(const struct compiled_request *request, const char *narrowing, struct compiled *ret_compiled,
		    struct buf *difference, struct err *err) MUST_USE;

/* Whether both were made of the same files. */
bool compiled_same_sources(const struct compiled *a, const struct compiled *b);

/* The policy that another session ran under: its policy.bin. */
int compiled_load(const char *path, struct compiled *ret_compiled, struct err *err) MUST_USE;

/* The same policy with what differs in this one, a copy of it; for limits that hold for one run. */
int compiled_change(struct compiled *compiled, const struct policy *changed, struct err *err) MUST_USE;

/* 0; 1 when the policy is wrong and atoll-policy has said why on stderr; -errno with *err. */
int compiled_get(const struct compiled_request *request, struct compiled *ret_compiled, struct err *err) MUST_USE;
