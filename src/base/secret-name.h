/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the name of a secret may be: the vault keeps secrets under it, policies and the log say it. Knows nothing of
 * values. Pure; used by atoll-policy, atoll-secret and whoever reads a snapshot.
 */

#include <stdbool.h>

enum { SECRET_NAME_SIZE = 65 };   /* with the NUL */

/* 1 to 64 of [A-Za-z0-9._-], the first one a letter or digit. */
bool secret_name_is_valid(const char *name);
