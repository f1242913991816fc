/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll/review/review.h"
#include "prog/atoll/verb/cmd.h"

struct apply_options {
	struct option_list excluded, allowed;
	const char *branch, *patch, *message;
	bool interactive, ours, theirs, merge, markers, commit, dry_run, quiet, json, resume;
};

static const struct option options[] = {
	{ 'i', "interactive", NULL, "ask about each change, and about each hunk of a text", OPTION_FLAG,
	  offsetof(struct apply_options, interactive) },
	{ 'x', "exclude", "GLOB", "leave what matches", OPTION_LIST, offsetof(struct apply_options, excluded) },
	{ 0, "allow-flagged", "PATH", "apply this protected path too", OPTION_LIST,
	  offsetof(struct apply_options, allowed) },
	{ 0, "ours", NULL, "in conflicts keep what the host has (yours), not the session's", OPTION_FLAG,
	  offsetof(struct apply_options, ours) },
	{ 0, "keep-host", NULL, "the same as --ours", OPTION_FLAG, offsetof(struct apply_options, ours) },
	{ 0, "theirs", NULL, "in conflicts take what the session made (the agent's), over the host's", OPTION_FLAG,
	  offsetof(struct apply_options, theirs) },
	{ 0, "take-session", NULL, "the same as --theirs", OPTION_FLAG, offsetof(struct apply_options, theirs) },
	{ 0, "merge", NULL, "in conflicts of texts take both, where they agree", OPTION_FLAG,
	  offsetof(struct apply_options, merge) },
	{ 0, "markers", NULL, "with --merge: where they do not agree, both between markers", OPTION_FLAG,
	  offsetof(struct apply_options, markers) },
	{ 0, "commit", NULL, "also commit it on the checked-out branch of git", OPTION_FLAG,
	  offsetof(struct apply_options, commit) },
	{ 0, "branch", "NAME", "make it a commit on a new branch of git instead, and leave the project as it is",
	  OPTION_TEXT, offsetof(struct apply_options, branch) },
	{ 'm', "message", "TEXT", "with --commit or --branch: what the commit says", OPTION_TEXT,
	  offsetof(struct apply_options, message) },
	{ 0, "patch", "FILE", "write it as a patch for git apply instead; - for stdout", OPTION_TEXT,
	  offsetof(struct apply_options, patch) },
	{ 0, "dry-run", NULL, "say what would be done, and do nothing", OPTION_FLAG,
	  offsetof(struct apply_options, dry_run) },
	{ 'q', "quiet", NULL, "say only what was left", OPTION_FLAG, offsetof(struct apply_options, quiet) },
	{ 0, "json", NULL, "one JSON object, with exact names", OPTION_FLAG, offsetof(struct apply_options, json) },
	{ 0, "resume", NULL, "only finish what a crash interrupted", OPTION_FLAG,
	  offsetof(struct apply_options, resume) },
};

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
