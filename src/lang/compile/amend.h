/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One more rule in the text of a policy: a line of its own, at the place where it belongs, and not a byte of the rest
 * is changed. Whether the text means the right thing afterwards is for the compiler. Pure; runs in atoll-policy.
 */

#include "base/buf.h"
#include "lang/yaml/diag.h"
#include "policy/grants.h"

struct amendment {
	const char *section, *list;  /* "network", "allow" */
	const char *item;            /* YAML of one line, with its comment */
};

enum { AMEND_ITEM_SIZE = 16 << 10 };

/*
 * The rule that allows what is granted, in out (of ITEM_SIZE bytes), which *ret_amendment borrows. note: of the
 * comment, printable. -EOPNOTSUPP: no rule of a policy can say this.
 */
int amend_rule(const struct grant_terms *granted, const char *note, char out[AMEND_ITEM_SIZE],
	       struct amendment *ret_amendment) MUST_USE;

/*
 * Appends bytes to out with the rule in it. 1: it has no place there (the section is written in one line, or what is
 * there is no policy).
 */
int amend_text(const char *bytes, size_t size, const struct amendment *amendment, struct buf *out) MUST_USE;
