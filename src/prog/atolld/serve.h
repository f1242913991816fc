/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What atolld is told on its command line, and its work on keys, which it also does while another atolld serves: the
 * database is theirs together.
 */

#include "service/launcher/store/credential.h"
#include "service/launcher/service.h"
#include "service/launcher/store/database.h"

struct serve_options {
	struct settings_options settings;
	bool check, json;
	const char *role, *owner, *rate, *memory;  /* of key add */
	char first_key[CREDENTIAL_KEY_SIZE];       /* that this start made; "": there was one */
};

/* The verbs of keys: add NAME, list, revoke NAME. An exit status, or negative with *err. */
int key_run(const struct serve_options *given, int argc, char **argv, struct err *err) MUST_USE;

/* Makes a key for who starts the service, where there is none yet; "" in out: there is one. Negative with *err. */
int key_make_first(struct database *store, const char *policy, char out[CREDENTIAL_KEY_SIZE], struct err *err) MUST_USE;
