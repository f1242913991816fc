/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which trust level a run may have: what the record of its agent comes to, what a token or a task lends it, and how
 * confident its caller is. Only the record is read here, as bytes; who writes it is the box. Used by `atoll run`.
 */

#include "base/err.h"
#include "client/dirs.h"
#include "detect/agent-trust.h"
#include "policy/policy.h"

enum { AGENT_TRUST_NOTE_SIZE = 512, AGENT_TRUST_WHY_SIZE = 320 };

struct agent_trust_request {
	const char *agent;           /* --agent, or NULL */
	const char *confidence;      /* --confidence, or NULL */
	enum trust_level lent;       /* by a token */
	const char *lent_by;         /* for the log; NULL: nothing was lent */
};

/* What was looked at for an answer, for those who explain it. */
struct agent_trust_view {
	struct run_agent standing; /* level: of a run that begins now */
	struct trust_state state;    /* of the record as that run would find it */
	enum trust_level level;      /* that the record comes to under this policy */
	enum trust_fault fault;
	bool exists;
	char why[AGENT_TRUST_WHY_SIZE]; /* why the run has no more, for people; "": it has what the policy has */
};

/* The same as agent_trust_find() for an agent (in request or policy) and no confidence. Borrows likewise. */
int agent_trust_look(const struct agent_trust_request *request, const struct policy *policy, const struct dirs *dirs,
		  struct agent_trust_view *ret_view, struct err *err) MUST_USE;

/*
 * 1: nobody asked for any of it, and *ret_standing is not set. 0: *ret_standing borrows from request and policy; its
 * level is at most the policy's. ret_note: one line for people where the level is lower than the policy's, or the
 * record is not usable; else "". Negative with *err: the confidence is none, or the policy has no levels.
 */
int agent_trust_find(const struct agent_trust_request *request, const struct policy *policy, const struct dirs *dirs,
		  struct run_agent *ret_standing, char ret_note[AGENT_TRUST_NOTE_SIZE], struct err *err) MUST_USE;
