/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-secret: what `atoll secret` runs. Opens the directory of the vault and the terminal, gives up everything else,
 * and only then reads a byte. Exit status: 0; 127 when there is no secret of that name; 125 for every other failure.
 */

#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/options.h"
#include "base/names.h"
#include "base/program.h"
#include "base/str.h"
#include "confine/confine.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "prog/atoll-secret/job.h"
#include "prog/atoll-secret/prompt.h"
#include "wire/secret.h"

struct secret_options {
	const char *directory, *project;
	bool json;
};

static const struct option options[] = {
	{ 0, "directory", "DIR", "the directory of the vault", OPTION_TEXT,
	  offsetof(struct secret_options, directory) },
	{ 0, "project", "DIR", "give: the project of the run", OPTION_TEXT, offsetof(struct secret_options, project) },
	{ 0, "json", NULL, "list: one JSON array", OPTION_FLAG, offsetof(struct secret_options, json) },
};

static const struct verb {
	const char *name, *words;
	size_t words_min, words_max;
	bool makes_vault;
	int (*run)(struct job *job);
} verbs[] = {
	{ "set", "NAME", 1, 1, true, cmd_set },
	{ "list", "", 0, 0, false, cmd_list },
	{ "remove", "NAME…", 1, SECRETS_MAX, false, cmd_remove },
	{ "rename", "NAME NEW", 2, 2, false, cmd_rename },
	{ "passphrase", "", 0, 0, true, cmd_passphrase },
	{ "unlock", "", 0, 0, false, cmd_unlock },
	{ "lock", "", 0, 0, false, cmd_lock },
	{ "give", "NAME…", 1, SECRET_GIVE_MAX, false, cmd_give },
};

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(verbs); i++)
		if (str_equal(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

/* All words are names. What is none is not shown: whoever mixes up the order types the secret there. */
static int check_names(char **words, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (secret_name_is_valid(words[i]))
			continue;
		err_set(err, ERR_USAGE, EINVAL, "secret", "this cannot be the name of a secret");
		err_hint(err, "1 to %d letters, digits, dots, dashes and underscores; the first a letter or digit",
			 SECRET_NAME_SIZE - 1);
		return -EINVAL;
	}
	return 0;
}

/* The word is not shown either: it may be a secret. name NULL: there was none. */
static int set_unknown(const char *name, struct err *err)
{
	static const char *const all[] = { "set", "list", "remove", "rename", "passphrase", "unlock", "lock" };
	const char *nearest = name ? names_nearest(all, ARRAY_SIZE(all), name) : NULL;

	err_set(err, ERR_USAGE, EINVAL, "secret", "no verb for secrets was given");
	if (nearest)
		err_hint(err, "did you mean `atoll secret %s`?", nearest);
	else
		err_hint(err, "set, list, remove, rename, passphrase, unlock or lock; `atoll help secret`");
	return -EINVAL;
}

static int check_usage(const struct verb *verb, const struct secret_options *given, size_t words, struct err *err)
{
	if (words < verb->words_min || words > verb->words_max) {
		err_set(err, ERR_USAGE, EINVAL, "secret", "%s", words > verb->words_max && verb->words_max == 1
			? "give only the name: a value is never an argument, because others could read it"
			: "wrong number of words");
		err_hint(err, "atoll secret %s%s%s", verb->name, *verb->words ? " " : "", verb->words);
		return -EINVAL;
	}
	if (given->json && verb->run != cmd_list)
		return err_set(err, ERR_USAGE, EINVAL, "secret", "--json is for list");
	return 0;
}

/* To the directory of the vault, where there is one, and what is open (the terminal). */
static int confine(int dir_fd, struct err *err)
{
	struct confine_place vault = {
		dir_fd, LANDLOCK_READ_FILE | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_MAKE_REG |
				LANDLOCK_REMOVE_FILE | LANDLOCK_READ_DIR,
	};

	return confine_self(CONFINE_SECRET, &vault, dir_fd >= 0 ? 1 : 0, err);
}

static int open_all(struct job *job, const struct verb *verb, const char *directory)
{
	int r = vault_open(&job->vault, directory, verb->makes_vault, job->err);

	job->exists = r == 0;
	if (r < 0 && (job->err->code != ERR_NOT_FOUND || verb->makes_vault))
		return r;
	if (verb->run == cmd_give) {
		r = cmd_give_prepare(job->err);
		if (r < 0)
			return r;
	}
	job->tty_fd = prompt_open();
	tzset();
	/* A limit on file sizes is an error of write(2), not the end. */
	signal(SIGXFSZ, SIG_IGN);
	return confine(job->vault.dir_fd, job->err);
}

static int run(int argc, char **argv, struct err *err)
{
	struct secret_options given = { 0 };
	struct job job = { .vault = { .dir_fd = FD_NONE, .lock_fd = FD_NONE }, .tty_fd = FD_NONE, .err = err };
	const struct verb *verb;
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r < 0)
		return r;
	if (r == 1)
		return options_help("atoll-secret --directory DIR VERB …: keeps secrets; `atoll secret` runs it.\n\n",
				    options, ARRAY_SIZE(options));
	verb = find_verb(argv[rest]);
	job.words = argv + rest + 1;
	job.word_count = rest < argc ? (size_t)(argc - rest - 1) : 0;
	job.json = given.json;
	job.project = given.project ? given.project : "";
	r = verb ? check_usage(verb, &given, job.word_count, err) : set_unknown(argv[rest], err);
	if (r == 0)
		r = check_names(job.words, job.word_count, err);
	if (r == 0 && !given.directory)
		r = err_set(err, ERR_USAGE, EINVAL, "secret",
			    "atoll-secret needs --directory; `atoll secret` gives it");
	if (r == 0 && sodium_init() < 0)
		r = err_set(err, ERR_INTERNAL, EIO, "secret", "libsodium does not start");
	if (r < 0)
		return r;
	r = open_all(&job, verb, given.directory);
	if (r == 0)
		r = verb->run(&job);
	vault_done(&job.vault);
	close_fd(&job.tty_fd);
	return r;
}

int main(int argc, char **argv)
{
	return program_main(argc, argv, fd_secure_standard, run);
}
