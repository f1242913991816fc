/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "base/str.h"
#include "client/dirs.h"
#include "client/program.h"
#include "prog/atoll/verb/cmd.h"

/*
 * `atoll secret`: becomes atoll-secret, which has the ciphers that the static programs do without, with the directory
 * of the user's vault.
 */

struct secret_options {
	bool json;
};

static const struct option options[] = {
	{ 0, "json", NULL, "list: one JSON array", OPTION_FLAG, offsetof(struct secret_options, json) },
};

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_words struct words words = { 0 };
	struct secret_options given = { 0 };
	char vault[PATH_MAX];
	int rest, r = cmd_parse(&cmd_secret, &given, argc, argv, &rest, err);

	if (r == 0)
		r = dirs_config("secret", "secrets", "atoll/vault", vault, err);
	if (r < 0)
		return r;
	words_add(&words, "atoll-secret");
	words_add_option(&words, "--directory", vault);
	words_add_options(&words, options, ARRAY_SIZE(options), &given);
	words_add(&words, "--");
	words_add_all(&words, (const char *const *)argv + rest);
	return program_become("secret", &words, err);
}

const struct cmd cmd_secret = {
	"secret", "set NAME | list | remove NAME… | rename NAME NEW | passphrase | unlock | lock",
	"keep keys and tokens, sealed, outside every sandbox",
	CMD_OPTIONS(options), .run = run_verb,
};
