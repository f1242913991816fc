/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-stage: what `atoll` runs to look at, and to act on, what a session has staged. Exit status: 0; 1 when some
 * paths were left (conflicts, flagged or refused ones); 125 when it could not do its work.
 */

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/program.h"
#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll-stage/review/package.h"
#include "prog/atoll-stage/verb/verb.h"

static const struct verb verbs[] = {
	{ "apply", cmd_apply },
	{ "compare", cmd_compare },
	{ "diff", cmd_diff },
	{ "discard", cmd_discard },
	{ "flagged", cmd_flagged },
	{ "flatten", cmd_flatten },
	{ "gc", cmd_gc },
	{ "noise", cmd_noise },
	{ "relink", cmd_relink },
	{ "restore", cmd_restore },
	{ "snapshot", cmd_snapshot },
	{ "undo", cmd_undo },
};

/* A walk of many layers holds hundreds of descriptors; select(2) is used by nobody here. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= 4096)
		return;
	limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
	/* Not fatal: the walk itself says so when they do not suffice. */
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
}

static int run(int argc, char **argv, struct err *err)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_SIZE(verbs); i++)
		if (str_equal(argv[1], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1, err);
	err_set(err, ERR_USAGE, EINVAL, "stage", "atoll-stage is run by atoll, as atoll-stage VERB --session ID …");
	err_hint(err, "`atoll help` lists the verbs");
	return -EINVAL;
}

static int begin(void)
{
	raise_descriptors();
	package_prepare();
	/* A log that takes no more is an answer, and no reason to die between two records. */
	signal(SIGXFSZ, SIG_IGN);
	return fd_secure_standard();
}

int main(int argc, char **argv)
{
	return program_main(argc, argv, begin, run);
}
