/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The functions that clients have deployed: where they are found, and what is said of them. They outlive the daemon;
 * the record of their invocations does not. Runs in atolld.
 */

#include "service/launcher/function/function.h"

enum { FUNCTIONS_MAX = 1000, FUNCTIONS_OWNER_MAX = 100 };

struct orphan;

struct functions {
	struct function *first;          /* owned */
	uint64_t last_number;            /* of an invocation */
	struct orphan *orphans;          /* owned, of orphan.h */
	void (*session_ended)(struct daemon *daemon);
};

/* The one that a call names, if its key may know of it; is_served: 0: one that is being deployed. NULL: none. */
struct function *functions_find(const struct call *call, bool is_served);

/* Counts those of an owner (NULL: of all), also those that are being deployed. */
size_t functions_count(const struct daemon *daemon, const char *owner);

/* Adds one, made from a request that is kept (taken over). NULL: out of memory. */
struct function *functions_add(struct daemon *daemon, struct kept *made, const char *id);

/* Takes it out, ends its instances, fails who waits, and removes what is on disk of it. */
void functions_remove(struct function *function);

/*
 * Another one takes its place: what runs ends as it would, by its own code; who waits for it waits for the other. It is
 * removed when its last invocation is over.
 */
void functions_retire(struct function *function, struct function *other);

/* The one of this owner and name that is served, or NULL. */
struct function *functions_named(const struct daemon *daemon, const char *owner, const char *name);

/* Answers a call with what is known of a function. */
void functions_reply(struct call *call, const struct function *function, uint32_t status);
