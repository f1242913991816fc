/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "prog/atoll/completion.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"

struct help_options {
	const char *completion;
};

static const struct option options[] = {
	{ 0, "completion", "SHELL", "print the completion script for bash, zsh or fish", OPTION_TEXT,
	  offsetof(struct help_options, completion) },
};

static int show_overview(struct err *err)
{
	cleanup_buf struct buf text;

	buf_init(&text, 16 << 10);
	buf_put_text(&text, "atoll runs AI agents, and the code they write, inside a boundary that you can "
			    "see and audit.\n\n"
			    "usage: atoll VERB …\n\n");
	for (size_t i = 0; i < cmd_count; i++)
		buf_printf(&text, "  %-9s %s\n", cmd_table[i]->name, cmd_table[i]->summary);
	buf_put_text(&text, "\n`atoll VERB --help` explains a verb, `man atoll` the whole.\n"
			    "To begin: cd to a project and type `atoll run -- bash`.\n");
	return say_out(&text, err);
}

int cmd_set_unknown(const char *stage, const char *name, struct err *err)
{
	enum { VERBS_MAX = 64 };
	const char *names[VERBS_MAX], *nearest;
	size_t count = cmd_count < VERBS_MAX ? cmd_count : VERBS_MAX;
	char shown[ERR_QUOTE_SIZE];

	for (size_t i = 0; i < count; i++)
		names[i] = cmd_table[i]->name;
	/* `atoll --hlep` is near to help as well. */
	nearest = names_nearest(names, count, name + strspn(name, "-"));
	err_set(err, ERR_USAGE, EINVAL, stage, "%s is not a verb of atoll", err_quote(shown, name));
	if (nearest)
		err_hint(err, "did you mean `atoll %s%s`?", *stage ? "help " : "", nearest);
	else
		err_hint(err, "`atoll help` lists them");
	return -EINVAL;
}

int cmd_show_help(const struct cmd *cmd)
{
	cleanup_buf struct buf text;
	struct err err;

	buf_init(&text, 4 << 10);
	buf_printf(&text, "usage: atoll %s%s%s\n\n%s\n", cmd->name, *cmd->arguments ? " " : "",
		   cmd->arguments, cmd->summary);
	if (cmd->option_count)
		buf_put_text(&text, "\n");
	if (say_out(&text, &err) < 0 ||
	    (cmd->option_count &&
	     options_print(cmd->options, cmd->option_count, STDOUT_FILENO) < 0))
		return 125;
	return 0;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	struct help_options given = { 0 };
	const struct cmd *cmd;
	int rest, r = cmd_parse(&cmd_help, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	if (given.completion)
		return completion_print(given.completion, err);
	if (rest == argc)
		return show_overview(err);
	cmd = cmd_find(argv[rest]);
	return cmd ? cmd_show_help(cmd) : cmd_set_unknown("help", argv[rest], err);
}

const struct cmd cmd_help = {
	"help", "[VERB] [--completion SHELL]", "explain atoll or one of its verbs",
	CMD_OPTIONS(options), .run = run_verb,
};
