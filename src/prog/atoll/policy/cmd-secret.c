/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "client/dirs.h"
#include "prog/atoll/verb/cmd.h"
#include "session/directories.h"
#include "session/record.h"

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

enum { WORDS_MAX = 300 };

static int find_vault(char out[PATH_MAX], struct err *err)
{
	char home[PATH_MAX], config[PATH_MAX];
	int r = session_home_dir(home, sizeof home);

	if (r == 0)
		r = dirs_config_home(home, config);
	if (r == 0 && !config[0]) {
		err_set(err, ERR_STATE, ENOENT, "secret", "there is no place for secrets: you have no home directory");
		err_hint(err, "set HOME or XDG_CONFIG_HOME to a directory that you can write");
		return -ENOENT;
	}
	if (r == 0)
		r = path_join(out, PATH_MAX, config, "atoll/vault");
	return r < 0 ? err_set(err, ERR_USAGE, -r, "secret", "a directory's path is too long") : 0;
}

static int become(const struct secret_options *given, char **words, size_t count, struct err *err)
{
	static char programs[PATH_MAX], program[PATH_MAX], vault[PATH_MAX];
	const char *argv[WORDS_MAX + 8] = { "atoll-secret", "--directory", vault };
	size_t argc = 3;
	int r = find_vault(vault, err);

	if (r == 0)
		r = dirs_programs(programs, err);
	if (r < 0)
		return r;
	if (path_join(program, sizeof program, programs, "atoll-secret") < 0)
		return err_set(err, ERR_STATE, ENAMETOOLONG, "secret", "the path of atoll's programs is too long");
	if (given->json)
		argv[argc++] = "--json";
	argv[argc++] = "--";
	for (size_t i = 0; i < count; i++)
		argv[argc++] = words[i];
	execve(program, (char **)argv, environ);
	return err_not_started("secret", program, errno, err);
}

static int run_verb(int argc, char **argv, struct err *err)
{
	struct secret_options given = { 0 };
	int rest, r = cmd_parse(&cmd_secret, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	if (argc - rest > WORDS_MAX)
		return err_set(err, ERR_USAGE, E2BIG, "secret", "too many words");
	return become(&given, argv + rest, (size_t)(argc - rest), err);
}

const struct cmd cmd_secret = {
	"secret", "set NAME | list | remove NAME… | rename NAME NEW | passphrase | unlock | lock",
	"keep keys and tokens, sealed, outside every sandbox",
	CMD_OPTIONS(options), .run = run_verb,
};
