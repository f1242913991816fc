/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who reads which language: the one place that knows all walkers. What is below is given this table, so no walker needs
 * to know another.
 */

#include "verify/parse/judge.h"

/* By enum verify_language. */
extern const struct walker verify_walkers[LANGUAGE_COUNT];
