/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/str.h"
#include "client/launch-guardian.h"
#include "os/fd.h"
#include "prog/atoll/run/dry-run.h"
#include "prog/atoll/run/started.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"
#include "session/directories.h"
#include "wire/link.h"
#include "wire/trial.h"

static int run_verb(int argc, char **argv, struct err *err)
{
	const struct cmd *cmd = cmd_find(argv[0]);

	int r = cmd ? cmd->run(argc, argv, err) : cmd_set_unknown("", argv[0], err);

	return r == CMD_HELP ? cmd_show_help(cmd) : r;
}

/* 126 and 127 speak of the command in the sandbox: a session that is not there is a failure of atoll's. */
static int exit_status(const struct err *err)
{
	return str_equal(err->stage, "session") ? 125 : err_exit_status(err);
}

enum { STACK_MIN_KIB = 512 };

/*
 * What the caller's limits would end us for without a word. Beyond RLIMIT_FSIZE a write is an error that is told, and
 * no signal. A stack that is too small is seen before it ends: paths of full length lie on ours.
 */
static int meet_limits(struct err *err)
{
	struct rlimit stack;

	signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_STACK, &stack) < 0 || stack.rlim_cur >= (rlim_t)STACK_MIN_KIB << 10)
		return 0;
	err_set(err, ERR_USAGE, EINVAL, "", "a stack of %zu KiB (`ulimit -s`) is too small",
		(size_t)(stack.rlim_cur >> 10));
	err_hint(err, "allow at least %d: `ulimit -s %d`", STACK_MIN_KIB, STACK_MIN_KIB);
	return -EINVAL;
}

/* As another program starts it: 1, with the exit status. */
static int run_started(const char *name, int *ret_status)
{
	bool is_box = str_equal(name, LINK_BOX_NAME);
	struct err err = { 0 };

	if (!is_box && !str_equal(name, LINK_JOB_NAME))
		return 0;
	*ret_status = 125;
	if (fd_secure_standard() < 0)
		return 1;
	if (meet_limits(&err) < 0)
		link_send_failure(LINK_SOCKET_FD, &err);
	else
		*ret_status = is_box ? started_box_main() : started_job_main();
	return 1;
}

/* Else root looks for sessions where they are not. */
static void say_where(void)
{
	const char *ignored = session_ignored_state_home();
	char line[ERR_QUOTE_SIZE + 160], shown[ERR_QUOTE_SIZE];

	if (ignored && str_format(line, sizeof line, "atoll: XDG_STATE_HOME is not used: %s is no directory that root "
				  "owns and nobody else writes to; sessions are in /var/lib/atoll\n",
				  err_quote(shown, ignored)) == 0)
		say_notice(line);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *option, *verb;
	} aliases[] = {
		{ "--help", "help" }, { "-h", "help" }, { "--version", "version" }, { "-V", "version" }
	};
	struct err err = { 0 };
	char *help[] = { (char *)"help", NULL };
	int status;

	if (launch_guardian(argc, argv, &status))
		return status;
	if (argc > 0 && str_equal(argv[0], TRIAL_PROGRAM_NAME))
		return fd_secure_standard() < 0 ? 125 : dry_run_held_main();
	/* Ignored, as a caller may have left it, nobody could be waited for; what we start inherits it. */
	signal(SIGCHLD, SIG_DFL);
	if (argc > 0 && run_started(argv[0], &status))
		return status;
	status = meet_limits(&err);
	if (status < 0) {
		say_error(&err);
		return exit_status(&err);
	}
	say_where();
	if (argc < 2) {
		status = run_verb(1, help, &err);
	} else {
		for (size_t i = 0; i < ARRAY_SIZE(aliases); i++)
			if (str_equal(argv[1], aliases[i].option))
				argv[1] = (char *)aliases[i].verb;
		status = run_verb(argc - 1, argv + 1, &err);
	}
	if (status >= 0)
		return status;
	say_error(&err);
	return exit_status(&err);
}
