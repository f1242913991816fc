/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What users and groups are called inside. The files that say so are the sandbox's own, so nothing rests on them.
 * Part of atoll-files.
 */

#include "inside.h"

/* What a uid or gid is called inside, or its number as text; valid until the next call. */
const char *accounts_user(const struct inside *inside, uint32_t uid);
const char *accounts_group(const struct inside *inside, uint32_t gid);
