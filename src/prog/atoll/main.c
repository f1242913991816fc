/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/names.h"
#include "base/str.h"
#include "box/exec-trial.h"
#include "box/guardian.h"
#include "os/fd.h"
#include "prog/atoll/cmd.h"
#include "prog/atoll/dry-run.h"
#include "prog/atoll/say.h"

static int run_verb(int argc, char **argv, struct err *err)
{
	enum { VERBS_MAX = 64 };
	const char *names[VERBS_MAX], *nearest;
	const struct cmd *cmd = cmd_find(argv[0]);
	char shown[SAY_PATH_SIZE];

	if (cmd)
		return cmd->run(argc, argv, err);
	for (size_t i = 0; i < cmd_count && i < VERBS_MAX; i++)
		names[i] = cmd_table[i].name;
	nearest = names_nearest(names, cmd_count < VERBS_MAX ? cmd_count : VERBS_MAX, argv[0]);
	err_set(err, ERR_USAGE, EINVAL, "", "%s is no verb of atoll", say_path(shown, argv[0]));
	if (nearest)
		err_hint(err, "did you mean `atoll %s`?", nearest);
	else
		err_hint(err, "`atoll help` lists them");
	return -EINVAL;
}

/* 126 and 127 speak of the command in the sandbox: a session that is not there is a failure of atoll's. */
static int exit_status(const struct err *err)
{
	return str_equal(err->stage, "session") ? 125 : err_exit_status(err);
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

	if (argc > 0 && str_equal(argv[0], guardian_name))
		return fd_secure_standard() < 0 ? 125 : guardian_work(argc, argv);
	if (argc > 0 && str_equal(argv[0], EXEC_TRIAL_NAME))
		return fd_secure_standard() < 0 ? 125 : dry_run_held_main();
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
