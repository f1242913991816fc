/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The values of the clients' secrets, which lie in a vault of the service's own (STATE/service/vault, in the form of
 * doc/format/vault.md). atoll-secret alone opens it; this runs it, for a few milliseconds, and never for longer than
 * some seconds. Runs in atolld.
 */

#include <stddef.h>

#include "base/err.h"
#include "wire/secret.h"

/*
 * Seals the value, a text of one line, under a name (base/secret-name.h). programs: the directory of atoll's programs;
 * directory: STATE/service. 0, or negative with *err.
 */
int sealed_set(const char *programs, const char *directory, const char *name, const char *value,
	       struct err *err) MUST_USE;

/* 0 also where there is none of this name. */
int sealed_remove(const char *programs, const char *directory, const char *name, struct err *err) MUST_USE;

/*
 * Opens up to SECRET_GIVE_MAX values: names is NULL-terminated, and each of the texts in ret_values, in the same order,
 * is the caller's to wipe and to free. 0, or negative with *err, and then there are none.
 */
int sealed_get(const char *programs, const char *directory, const char *const *names, char **ret_values,
	       struct err *err) MUST_USE;
