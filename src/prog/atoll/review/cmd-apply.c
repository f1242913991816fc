/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll/review/review.h"
#include "prog/atoll/verb/cmd.h"
#include "stage/change/review-options.h"

#define AT(member) offsetof(struct apply_options, member)
static const struct option options[] = { APPLY_OPTIONS(AT) };

/* The patch is what atoll-stage writes to stdout. A file that is there stays. */
static int open_patch(const char *name, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];
	int fd, r;

	if (str_equal(name, "-"))
		return 0;
	fd = fd_open_at(AT_FDCWD, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
	r = fd < 0 ? fd : dup2(fd, STDOUT_FILENO) < 0 ? -errno : 0;
	close_fd(&fd);
	return r < 0 ? err_set(err, ERR_USAGE, -r, "apply", "the patch %s cannot be made: %s", err_quote(shown, name),
			       strerror(-r)) : 0;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_review struct review review = { 0 };
	struct apply_options given = { 0 };
	int rest, r = cmd_parse(&cmd_apply, &given, argc, argv, &rest, err);

	if (r == 0)
		r = review_find(&review, "apply", argv + rest, err);
	for (size_t i = 0; r == 0 && i < given.allowed.count; i++)
		r = review_add_path(&review, "--allow-flagged", given.allowed.values[i], err);
	given.allowed.count = 0;
	if (r == 0 && given.patch)
		r = open_patch(given.patch, err);
	return r < 0 ? r : review_exec(&review, &cmd_apply, &given, false, err);
}

const struct cmd cmd_apply = {
	"apply", "[-i] [--commit] [ID] [-x GLOB] [--allow-flagged PATH] [--ours|--theirs|--merge] [PATH…]",
	"bring what a session changed to the host",
	CMD_OPTIONS(options), .run = run_verb,
};
