/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The secrets that a policy names, on their way from the vault to the network gate: atoll-secret puts the values into a
 * socket that only the gate reads; what comes here is what stands inside in their place. Used by `atoll run`.
 */

#include "base/err.h"
#include "client/dirs.h"
#include "policy/policy.h"

struct secrets {
	int values_fd;       /* the end of the socket that the gate reads; FD_NONE where the policy names none */
	char **variables;    /* NAME=placeholder, NULL-terminated; owned */
};

/*
 * Runs atoll-secret, which may ask for a passphrase on the terminal. 1 when it has told the user why there is nothing
 * to be had (a secret is missing); 0 also where the policy names no secret. *ret_secrets is for secrets_done().
 */
int secrets_bring(const struct policy *policy, const struct dirs *dirs, struct secrets *ret_secrets,
		  struct err *err) MUST_USE;
/*
 * What signs for ask.webhook: *ret_fd (owned) is its file, or a socket that has its value (wire/secret.h); FD_NONE: the
 * policy names none. Results as above.
 */
int secrets_bring_key(const struct policy *policy, const struct dirs *dirs, int *ret_fd, struct err *err)
	MUST_USE;
/* The same for verify.external. */
int secrets_bring_verifier(const struct policy *policy, const struct dirs *dirs, int *ret_fd, struct err *err)
	MUST_USE;
void secrets_done(struct secrets *secrets);
#define cleanup_secrets __attribute__((cleanup(secrets_done)))
