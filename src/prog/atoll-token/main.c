/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-token: what `atoll token` runs, and what reads a token where one is presented. Opens its two directories and
 * the file with the token, gives up everything else, and only then reads a byte of it. Exit status: 0; 127 where
 * something that was named is not there; 125 for every other failure, also for a token that is refused.
 */

#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/program.h"
#include "base/str.h"
#include "confine/confine.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "prog/atoll-token/job.h"
#include "token/token-options.h"

#define AT(member) offsetof(struct token_options, member)
static const struct option options[] = {
	TOKEN_OPTIONS(AT),
	{ 0, "keys", "DIR", "the directory of the keys", OPTION_TEXT, AT(keys) },
	{ 0, "store", "DIR", "the directory of what is remembered", OPTION_TEXT, AT(store) },
};

enum { HAS_TOKEN = 1 << 0, MAKES_KEYS = 1 << 1, MAKES_STORE = 1 << 2, MAKES_BLOCK = 1 << 3, HAS_JSON = 1 << 4 };

static const struct verb {
	const char *name, *words;
	size_t words_max;
	unsigned does;
	int (*run)(struct job *job);
} verbs[] = {
	{ "mint", "", 0, MAKES_KEYS | MAKES_STORE | MAKES_BLOCK, cmd_mint },
	{ "narrow", "[FILE|-]", 1, HAS_TOKEN | MAKES_BLOCK, cmd_narrow },
	{ "show", "[FILE|-]", 1, HAS_TOKEN | HAS_JSON, cmd_show },
	{ "verify", "[FILE|-]", 1, HAS_TOKEN | HAS_JSON, cmd_verify },
	{ "list", "", 0, HAS_JSON, cmd_list },
	{ "revoke", "[ID|FILE|-]", 1, HAS_TOKEN | MAKES_STORE, cmd_revoke },
	{ "trust", "[KEY [NOTE]]", 2, MAKES_KEYS | HAS_JSON, cmd_trust },
	{ "key", "", 0, MAKES_KEYS, cmd_key },
	{ "take", "[FILE|-]", 1, HAS_TOKEN | MAKES_STORE, cmd_take },
};

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(verbs); i++)
		if (str_equal(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

/* The word is not shown: it may be a token. name NULL: there was none. */
static int set_unknown(const char *name, struct err *err)
{
	static const char *const all[] = { "mint", "show", "narrow", "verify", "list", "revoke", "trust", "key" };
	const char *nearest = name ? names_nearest(all, ARRAY_SIZE(all), name) : NULL;

	err_set(err, ERR_USAGE, EINVAL, "token", "no verb for tokens was given");
	if (nearest)
		err_hint(err, "did you mean `atoll token %s`?", nearest);
	else
		err_hint(err, "mint, show, narrow, verify, list, revoke, trust or key; `atoll help token`");
	return -EINVAL;
}

static int check_usage(const struct verb *verb, const struct job *job)
{
	const struct token_options *given = &job->given;
	bool has_block = given->allow.count || given->limit.count || given->expires || given->not_before ||
			 given->uses || given->seal;

	for (size_t i = 0; i < job->word_count; i++)
		if (token_is_text(job->words[i])) {
			err_set(job->err, ERR_USAGE, EINVAL, "token",
				"a token cannot be an argument: others could read it");
			err_hint(job->err, "use a file, stdin (-) or $ATOLL_TOKEN; and mint another token, because "
					   "this one may have been read");
			return -EINVAL;
		}
	if (job->word_count > verb->words_max || (has_block && !(verb->does & MAKES_BLOCK)) ||
	    (given->json && !(verb->does & HAS_JSON)) ||
	    (given->remove && (verb->run != cmd_trust || !job->word_count))) {
		err_set(job->err, ERR_USAGE, EINVAL, "token", "this option cannot be used with %s", verb->name);
		err_hint(job->err, "atoll token %s%s%s; `atoll help token` has the options", verb->name,
			 *verb->words ? " " : "", verb->words);
		return -EINVAL;
	}
	if (!given->keys || !given->store)
		return err_set(job->err, ERR_USAGE, EINVAL, "token",
			       "atoll-token needs --keys and --store; `atoll token` gives them");
	return 0;
}

/* The file that is named, stdin, or the variable. An id of a token that is revoked needs none of them. */
static int open_input(struct job *job)
{
	const char *word = job->word_count ? job->words[0] : NULL, *variable = getenv("ATOLL_TOKEN");

	if (!word && variable && *variable) {
		job->input_text = variable;
		return 0;
	}
	if (!word || str_equal(word, "-")) {
		if (!word && isatty(STDIN_FILENO)) {
			err_set(job->err, ERR_USAGE, EINVAL, "token", "which token?");
			err_hint(job->err, "name a file, give it by stdin, or set ATOLL_TOKEN");
			return -EINVAL;
		}
		job->input_fd = fd_duplicate(STDIN_FILENO);
	} else {
		job->input_fd = fd_open_at(AT_FDCWD, word, O_RDONLY, 0);
	}
	if (job->input_fd == -ENOENT && strlen(word) == TOKEN_ID_TEXT_SIZE - 1)
		return 0;
	if (job->input_fd < 0)
		return err_set(job->err, job->input_fd == -ENOENT ? ERR_NOT_FOUND : ERR_STATE, -job->input_fd, "token",
			       "the file with the token, %s: %s", word, strerror(-job->input_fd));
	return 0;
}

/* FD_NONE where it is missing and nothing makes it. */
static int open_directory(const char *path, bool make, int *ret_fd, struct err *err)
{
	int fd = token_directory_open(path, make, err);

	*ret_fd = fd == -ENOENT ? FD_NONE : fd;
	return fd < 0 && fd != -ENOENT ? fd : 0;
}

static int confine(const struct job *job, int keys_fd)
{
	enum { READ = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR,
	       WRITE = READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_MAKE_REG | LANDLOCK_REMOVE_FILE };
	struct confine_place places[2];
	size_t count = 0;

	if (keys_fd >= 0)
		places[count++] = (struct confine_place){ keys_fd, WRITE };
	if (job->store_fd >= 0)
		places[count++] = (struct confine_place){ job->store_fd, WRITE };
	return confine_self(CONFINE_TOKEN, places, count, job->err);
}

static int open_all(struct job *job, const struct verb *verb)
{
	int keys_fd = FD_NONE, r = 0;

	if (verb->does & HAS_TOKEN)
		r = open_input(job);
	if (r == 0)
		r = open_directory(job->given.keys, verb->does & MAKES_KEYS, &keys_fd, job->err);
	if (r == 0)
		r = open_directory(job->given.store, verb->does & MAKES_STORE, &job->store_fd, job->err);
	/* A limit on file sizes is an error of write(2), not the end. */
	signal(SIGXFSZ, SIG_IGN);
	if (r == 0)
		r = confine(job, keys_fd);
	if (r < 0) {
		close_fd(&keys_fd);
		return r;
	}
	return token_keys_load(&job->keys, keys_fd, job->given.keys, job->err);
}

static int run(int argc, char **argv, struct err *err)
{
	struct job job = { .keys = { .dir_fd = FD_NONE }, .store_fd = FD_NONE, .input_fd = FD_NONE, .err = err };
	const struct verb *verb;
	int rest, r = options_parse(options, ARRAY_SIZE(options), &job.given, argc, argv, true, &rest, err);

	if (r < 0)
		return r;
	if (r == 1)
		return options_help("atoll-token --keys DIR --store DIR VERB …: capability tokens; "
				    "`atoll token` runs it.\n\n",
				    options, ARRAY_SIZE(options));
	verb = find_verb(argv[rest]);
	job.words = argv + rest + 1;
	job.word_count = rest < argc ? (size_t)(argc - rest - 1) : 0;
	job.now_s = clock_realtime_ns() / 1000000000;
	r = verb ? check_usage(verb, &job) : set_unknown(argv[rest], err);
	if (r == 0 && sodium_init() < 0)
		r = err_set(err, ERR_INTERNAL, EIO, "token", "libsodium does not start");
	if (r < 0)
		return r;
	r = open_all(&job, verb);
	if (r == 0)
		r = verb->run(&job);
	token_keys_done(&job.keys);
	close_fd(&job.store_fd);
	close_fd(&job.input_fd);
	return r;
}

int main(int argc, char **argv)
{
	return program_main(argc, argv, fd_secure_standard, run);
}
