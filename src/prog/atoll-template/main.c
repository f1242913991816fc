/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-template: what `atoll template` runs. Opens the store and the source, gives up everything else, and only then
 * reads a byte of the source, which is hostile. Exit status: 0; 127 when there is no template or source of that name;
 * 125 for every other failure.
 */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "base/program.h"
#include "base/str.h"
#include "confine/confine.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "prog/atoll-template/job.h"

struct template_options {
	const char *state;
	bool json, quiet;
};

static const struct option options[] = {
	{ 0, "state", "DIR", "the state directory", OPTION_TEXT, offsetof(struct template_options, state) },
	{ 0, "json", NULL, "one JSON object, or an array", OPTION_FLAG, offsetof(struct template_options, json) },
	{ 'q', "quiet", NULL, "no progress on a terminal", OPTION_FLAG, offsetof(struct template_options, quiet) },
};

enum { WORDS_MAX = 64 };

static const struct verb {
	const char *name, *words;
	size_t words_min, words_max;
	bool changes;
	int (*run)(struct job *job);
} verbs[] = {
	{ "import", "SOURCE [NAME]", 1, 2, true, cmd_import },
	{ "list", "", 0, 0, false, cmd_list },
	{ "remove", "NAME…", 1, WORDS_MAX, true, cmd_remove },
	{ "show", "NAME", 1, 1, false, cmd_show },
};

static const struct verb *find_verb(const char *name, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	for (size_t i = 0; name && i < ARRAY_SIZE(verbs); i++)
		if (str_equal(verbs[i].name, name))
			return &verbs[i];
	if (name)
		err_set(err, ERR_USAGE, EINVAL, "template", "%s is no verb for templates", err_quote(shown, name));
	else
		err_set(err, ERR_USAGE, EINVAL, "template", "no verb for templates was given");
	err_hint(err, "import, list, show or remove; `atoll help template`");
	return NULL;
}

static int check_words(const struct verb *verb, const struct job *job, struct err *err)
{
	if (job->word_count >= verb->words_min && job->word_count <= verb->words_max)
		return 0;
	err_set(err, ERR_USAGE, EINVAL, "template", "wrong number of words");
	err_hint(err, "atoll template %s %s", verb->name, verb->words);
	return -EINVAL;
}

static int open_source(struct job *job)
{
	char shown[ERR_QUOTE_SIZE];
	struct stat st;

	err_quote(shown, job->words[0]);
	job->source_fd = fd_open_at(AT_FDCWD, job->words[0], O_RDONLY | O_NONBLOCK, 0);
	if (job->source_fd < 0)
		return err_set(job->err, job->source_fd == -ENOENT ? ERR_NOT_FOUND : ERR_STATE, -job->source_fd,
			       "import", "%s cannot be opened: %s", shown, err_errno_name(-job->source_fd));
	if (fstat(job->source_fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
		err_set(job->err, ERR_USAGE, EINVAL, "import", "%s is neither a file nor a directory", shown);
		err_hint(job->err, "give a directory, a tarball, an OCI image layout or a file of `docker save`");
		return -EINVAL;
	}
	return 0;
}

/* To the store, the source, and the names of what sessions stand on. */
static int confine(const struct job *job)
{
	const uint64_t read = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR;
	struct confine_place places[3] = {
		{ job->store.fd, read | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_MAKE_REG |
				 LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_SYM | LANDLOCK_REMOVE_FILE | LANDLOCK_REMOVE_DIR |
				 LANDLOCK_REFER },
	};
	size_t count = 1;
	struct stat st;

	if (job->store.sessions_fd >= 0)
		places[count++] = (struct confine_place){ job->store.sessions_fd, read };
	if (job->source_fd >= 0 && fstat(job->source_fd, &st) == 0 && S_ISDIR(st.st_mode))
		places[count++] = (struct confine_place){ job->source_fd, read };
	return confine_self(CONFINE_TEMPLATE, places, count, job->err);
}

static int work(struct job *job, const struct verb *verb, const char *state)
{
	int r = verb->run == cmd_import ? open_source(job) : 0;

	if (r == 0)
		r = store_open(&job->store, state, verb->changes, job->err);
	/* Names of files are UTF-8, in archives as well. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	umask(022);
	signal(SIGXFSZ, SIG_IGN);
	if (r == 0)
		r = confine(job);
	return r < 0 ? r : verb->run(job);
}

static int run(int argc, char **argv, struct err *err)
{
	struct job job = { .store = { FD_NONE, FD_NONE, FD_NONE }, .source_fd = FD_NONE, .err = err };
	struct template_options given = { 0 };
	const struct verb *verb;
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r < 0)
		return r;
	if (r == 1)
		return options_help("atoll-template --state DIR VERB …: keeps systems for sandboxes; "
				    "`atoll template` runs it.\n\n",
				    options, ARRAY_SIZE(options));
	verb = find_verb(argv[rest], err);
	if (!verb)
		return -EINVAL;
	job.words = argv + rest + 1;
	job.word_count = (size_t)(argc - rest - 1);
	job.json = given.json;
	job.quiet = given.quiet;
	r = check_words(verb, &job, err);
	if (r == 0 && !given.state)
		r = err_set(err, ERR_USAGE, EINVAL, "template",
			    "atoll-template needs --state; `atoll template` gives it");
	if (r == 0)
		r = work(&job, verb, given.state);
	store_close(&job.store);
	close_fd(&job.source_fd);
	return r;
}

int main(int argc, char **argv)
{
	return program_main(argc, argv, fd_secure_standard, run);
}
