/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Between atoll, which starts atoll-learn, and it: where it finds what it is handed, and how it ends. Says nothing
 * about what it does.
 */

enum {
	LEARN_POLICY_FD = 3,     /* the compiled policy that a log is compared with */
	LEARN_NUMBERS_FD = 4,    /* struct effects_numbers (learn/effects.h) is written there */
	LEARN_DIFFERS = 1,       /* exit status: a decision would differ */
	LEARN_UNKNOWN = 3,       /* exit status: none that is recorded would, and others may */
};
