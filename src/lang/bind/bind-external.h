/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * verify.external: who gives a second opinion. Read from a policy's text and finished. Like a webhook it
 * is set whole: what a child says of it replaces all that its parent says. Used by atoll-policy.
 */

#include "lang/bind/bind.h"

/* As one file has it. */
struct draft_external {
	struct place place;
	struct vec command;          /* const char * */
	struct external_verifier verifier; /* but for the command */
};

/* "external" of the section "verify": a new one in binder->draft, in the place of what stood there. */
void bind_external(struct binder *binder, const struct key *key, const struct node *node);

/* As the policy has it; the words of a command are in arena. draft NULL: all zero. */
struct external_verifier external_finish(struct arena *arena, const struct draft_external *draft);
