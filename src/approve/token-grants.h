/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a capability token lets happen in this sandbox, as grants (queue.h): they answer where the policy would ask,
 * and end when the token does. The token was read and counted outside (atoll-token); limits were narrowed before the
 * start (client/tokens.c). Run by atoll-box.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/token.h"

struct policy;
struct queue;

/* The policy with no more than what the token leaves of its limits. True: something in it is less now. */
bool token_grants_narrow(const struct token_held *held, struct policy *policy);

/* A frame of TOKEN_HOLDS. All of it or nothing. 0; 1: refused (*err); negative: the log failed. */
int token_grants_add(struct queue *queue, struct frame *frame, struct err *err) MUST_USE;

/* The same for what the run was started with, if it was with one. Negative with *err. */
int token_grants_add_first(struct queue *queue, struct err *err) MUST_USE;
