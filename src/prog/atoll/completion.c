/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/completion.h"

#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"

/* What an option's argument or a verb's words can be completed to. */
static bool is_path_argument(const char *argument)
{
	return argument &&
	       (str_equal(argument, "FILE") || str_equal(argument, "DIR") || str_equal(argument, "PATH"));
}

static bool is_policy_argument(const char *argument)
{
	return argument && str_equal(argument, "POLICY");
}

static const char *words_of_argument(const char *argument)
{
	if (argument && str_equal(argument, "LEVEL"))
		return "none low medium high full";
	if (argument && str_equal(argument, "MODE"))
		return "ask auto try off";
	if (argument && str_equal(argument, "SHELL"))
		return "bash zsh fish";
	return NULL;
}

static bool takes_session(const char *verb)
{
	static const char *const verbs[] = { "exec", "cp", "stop", "log", "snapshot", "restore", "fork", "discard",
					     "apply", "undo", "ask", "grants" };

	return names_find(verbs, ARRAY_SIZE(verbs), verb) >= 0;
}

/* Sessions that have ended are meant as often as others: the listing of all. */
static const char *listing_for(const char *verb)
{
	static const char *const live[] = { "exec", "cp", "stop", "ask", "grants" };

	return names_find(live, ARRAY_SIZE(live), verb) >= 0 ? "-q --names" : "-aq --names";
}

static bool takes_command(const char *verb)
{
	return str_equal(verb, "run") || str_equal(verb, "exec") || str_equal(verb, "fork");
}

static const char *words_of_verb(const char *verb)
{
	if (str_equal(verb, "policy"))
		return "list check show explain diff learn set test";
	if (str_equal(verb, "token"))
		return "mint narrow show verify list revoke trust key";
	if (str_equal(verb, "secret"))
		return "set list remove rename passphrase unlock lock";
	if (str_equal(verb, "serve"))
		return "key";
	if (str_equal(verb, "grants"))
		return "revoke";
	if (str_equal(verb, "function"))
		return "deploy invoke list logs remove show";
	return str_equal(verb, "log") ? "verify" : "";
}

static void put_verbs(struct buf *out, const char *before, const char *after)
{
	buf_put_text(out, before);
	for (size_t i = 0; i < cmd_count; i++)
		buf_printf(out, "%s%s", i ? " " : "", cmd_table[i]->name);
	buf_put_text(out, after);
}

static void bash_options(struct buf *out, const struct cmd *cmd)
{
	for (size_t i = 0; i < cmd->option_count; i++) {
		const struct option *option = &cmd->options[i];

		if (option->short_name)
			buf_printf(out, "-%c ", option->short_name);
		buf_printf(out, "--%s ", option->long_name);
	}
	buf_put_text(out, "--help");
}

/* The words that follow an option with a value. */
static void bash_values(struct buf *out, const struct cmd *cmd)
{
	for (size_t i = 0; i < cmd->option_count; i++) {
		const struct option *option = &cmd->options[i];
		const char *words = words_of_argument(option->argument);

		if (!option->argument || option->kind == OPTION_MAYBE)
			continue;
		buf_printf(out, "\t%s:--%s", cmd->name, option->long_name);
		if (option->short_name)
			buf_printf(out, "|%s:-%c", cmd->name, option->short_name);
		if (words)
			buf_printf(out, ") _atoll_reply -W '%s'; return ;;\n", words);
		else if (is_policy_argument(option->argument))
			buf_put_text(out, ") compopt -o filenames; _atoll_reply -f -W \"$(_atoll_policies)\"; "
					  "return ;;\n");
		else if (is_path_argument(option->argument))
			buf_put_text(out, ") compopt -o filenames; _atoll_reply -f; return ;;\n");
		else
			buf_put_text(out, ") return ;;\n");
	}
}

static void bash_verb(struct buf *out, const struct cmd *cmd)
{
	buf_printf(out, "\t%s)\n\t\tif [[ $cur == -* ]]; then\n\t\t\t_atoll_reply -W '", cmd->name);
	bash_options(out, cmd);
	buf_put_text(out, "'\n\t\telse\n\t\t\t");
	if (str_equal(cmd->name, "run"))
		buf_put_text(out, "_atoll_reply -c");
	else if (str_equal(cmd->name, "policy"))
		buf_printf(out, "compopt -o filenames\n\t\t\t_atoll_reply -f -W \"%s $(_atoll_policies)\"",
			   words_of_verb(cmd->name));
	else if (takes_session(cmd->name))
		buf_printf(out, "_atoll_reply -W \"$(atoll ps %s 2>/dev/null) %s\"", listing_for(cmd->name),
			   words_of_verb(cmd->name));
	else if (str_equal(cmd->name, "secret") || str_equal(cmd->name, "token") || str_equal(cmd->name, "serve"))
		buf_printf(out, "_atoll_reply -W '%s'", words_of_verb(cmd->name));
	else if (str_equal(cmd->name, "help"))
		put_verbs(out, "_atoll_reply -W '", "'");
	else
		buf_put_text(out, ":");
	buf_put_text(out, "\n\t\tfi ;;\n");
}

static void put_bash(struct buf *out)
{
	buf_put_text(out, "# bash completion for atoll; made by `atoll help --completion bash`\n"
			  "_atoll_reply()\n{\n\tmapfile -t COMPREPLY < <(compgen \"$@\" -- \"$cur\")\n}\n\n"
			  "_atoll_policies()\n{\n\tatoll policy list 2>/dev/null | cut -d' ' -f1\n}\n\n"
			  "_atoll()\n{\n"
			  "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} "
			  "verb=${COMP_WORDS[1]} i\n"
			  "\tCOMPREPLY=()\n\tif ((COMP_CWORD == 1)); then\n");
	put_verbs(out, "\t\t_atoll_reply -W '", "'\n");
	buf_put_text(out, "\t\treturn\n\tfi\n"
			  "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
			  "\t\tif [[ ${COMP_WORDS[i]} == -- ]]; then\n"
			  "\t\t\t_command_offset $((i + 1)) 2>/dev/null || _atoll_reply -c\n"
			  "\t\t\treturn\n\t\tfi\n\tdone\n\tcase $verb:$prev in\n");
	for (size_t i = 0; i < cmd_count; i++)
		bash_values(out, cmd_table[i]);
	buf_put_text(out, "\tesac\n\tcase $verb in\n");
	for (size_t i = 0; i < cmd_count; i++)
		bash_verb(out, cmd_table[i]);
	buf_put_text(out, "\tesac\n}\ncomplete -F _atoll atoll\n");
}

/* Within single quotes of both shells, and within the brackets of _arguments. */
static void put_quoted(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			buf_put_text(out, "'\\''");
		else if (*text == '[' || *text == ']' || *text == ':')
			buf_printf(out, "\\%c", *text);
		else
			buf_put_char(out, *text);
	}
}

static void zsh_option(struct buf *out, const struct option *option)
{
	const char *words = words_of_argument(option->argument);
	const char *repeat = option->kind == OPTION_LIST ? "*" : "";
	bool is_maybe = option->kind == OPTION_MAYBE;

	for (int is_long = !option->short_name; is_long < 2; is_long++) {
		buf_put_text(out, "\t\t\t\t'");
		if (is_long)
			buf_printf(out, "%s--%s%s[", repeat, option->long_name,
				   is_maybe ? "=-" : option->argument ? "=" : "");
		else
			buf_printf(out, "%s-%c%s[", repeat, option->short_name, option->argument ? "+" : "");
		put_quoted(out, option->help);
		buf_put_char(out, ']');
		if (option->argument) {
			buf_put_text(out, is_maybe ? "::" : ":");
			put_quoted(out, option->argument);
			buf_put_char(out, ':');
			if (words)
				buf_printf(out, "(%s)", words);
			else if (is_policy_argument(option->argument))
				buf_put_text(out, "_atoll_policies");
			else if (is_path_argument(option->argument))
				buf_put_text(out, "_files");
			else
				buf_put_char(out, ' ');
		}
		buf_put_text(out, "' \\\n");
	}
}

static void put_zsh(struct buf *out)
{
	buf_put_text(out,
		     "#compdef atoll\n# zsh completion for atoll; made by `atoll help --completion zsh`\n"
		     "_atoll_sessions() {\n\tlocal -a ids\n\tids=(${(f)\"$(atoll ps ${@:--q} 2>/dev/null)\"})\n"
		     "\tcompadd -a ids\n}\n"
		     "_atoll_policies() {\n\tlocal -a names\n"
		     "\tnames=(${${(f)\"$(atoll policy list 2>/dev/null)\"}%% *})\n\tcompadd -a names\n\t_files\n}\n"
		     "_atoll() {\n\tlocal -a verbs\n\tverbs=(\n");
	for (size_t i = 0; i < cmd_count; i++) {
		buf_printf(out, "\t\t'%s:", cmd_table[i]->name);
		put_quoted(out, cmd_table[i]->summary);
		buf_put_text(out, "'\n");
	}
	buf_put_text(out, "\t)\n\tif ((CURRENT == 2)); then\n\t\t_describe verb verbs\n\t\treturn\n\tfi\n"
			  "\tlocal verb=$words[2]\n\tshift words\n\t((CURRENT--))\n\tcase $verb in\n");
	for (size_t i = 0; i < cmd_count; i++) {
		const struct cmd *cmd = cmd_table[i];

		buf_printf(out, "\t\t%s)\n\t\t\t_arguments -s \\\n", cmd->name);
		for (size_t k = 0; k < cmd->option_count; k++)
			zsh_option(out, &cmd->options[k]);
		buf_put_text(out, "\t\t\t\t'--help[explain this verb]'");
		if (takes_session(cmd->name))
			buf_printf(out, " \\\n\t\t\t\t'1:session: _atoll_sessions %s'", listing_for(cmd->name));
		else if (*words_of_verb(cmd->name))
			buf_printf(out, " \\\n\t\t\t\t'1:what:(%s)'", words_of_verb(cmd->name));
		if (str_equal(cmd->name, "policy"))
			buf_put_text(out, " \\\n\t\t\t\t'*:policy: _atoll_policies'");
		if (takes_command(cmd->name))
			buf_put_text(out, " \\\n\t\t\t\t'*::command:_normal'");
		buf_put_text(out, "\n\t\t\t;;\n");
	}
	buf_put_text(out, "\tesac\n}\n_atoll \"$@\"\n");
}

static void fish_quoted(struct buf *out, const char *text)
{
	buf_put_char(out, '\'');
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			buf_put_char(out, '\\');
		buf_put_char(out, *text);
	}
	buf_put_char(out, '\'');
}

static const char fish_policies[] = "(atoll policy list 2>/dev/null | string replace -r \" .*\" \"\")";

static void put_fish(struct buf *out)
{
	buf_put_text(out, "# fish completion for atoll; made by `atoll help --completion fish`\ncomplete -c "
			  "atoll -f\n");
	for (size_t i = 0; i < cmd_count; i++) {
		const struct cmd *cmd = cmd_table[i];

		buf_printf(out, "complete -c atoll -n __fish_use_subcommand -a %s -d ", cmd->name);
		fish_quoted(out, cmd->summary);
		buf_put_char(out, '\n');
		for (size_t k = 0; k < cmd->option_count; k++) {
			const struct option *option = &cmd->options[k];
			const char *words = words_of_argument(option->argument);

			buf_printf(out, "complete -c atoll -n '__fish_seen_subcommand_from %s' -l %s",
				   cmd->name, option->long_name);
			if (option->short_name)
				buf_printf(out, " -s %c", option->short_name);
			if (words)
				buf_printf(out, "%s -a '%s'", option->kind == OPTION_MAYBE ? "" : " -x", words);
			else if (is_policy_argument(option->argument))
				buf_printf(out, " -r -F -a '%s'", fish_policies);
			else if (option->argument)
				buf_put_text(out, is_path_argument(option->argument) ? " -r -F" : " -x");
			buf_put_text(out, " -d ");
			fish_quoted(out, option->help);
			buf_put_char(out, '\n');
		}
		if (*words_of_verb(cmd->name))
			buf_printf(out, "complete -c atoll -n '__fish_seen_subcommand_from %s' -a '%s'\n",
				   cmd->name, words_of_verb(cmd->name));
		if (str_equal(cmd->name, "policy"))
			buf_printf(out, "complete -c atoll -n '__fish_seen_subcommand_from policy' -F -a '%s'\n",
				   fish_policies);
		if (takes_session(cmd->name))
			buf_printf(out,
				   "complete -c atoll -n '__fish_seen_subcommand_from %s' -a '(atoll ps %s "
				   "2>/dev/null)'\n",
				   cmd->name, listing_for(cmd->name));
		if (takes_command(cmd->name))
			buf_printf(out,
				   "complete -c atoll -n '__fish_seen_subcommand_from %s' -a "
				   "'(__fish_complete_subcommand)'\n",
				   cmd->name);
	}
}

int completion_print(const char *shell, struct err *err)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };
	static void (*const put[])(struct buf *) = { put_bash, put_zsh, put_fish };
	int which = names_find(shells, ARRAY_SIZE(shells), shell);
	cleanup_buf struct buf text = { 0 };
	char shown[ERR_QUOTE_SIZE];

	if (which < 0) {
		err_set(err, ERR_USAGE, EINVAL, "help", "there is no completion for %s",
			err_quote(shown, shell));
		err_hint(err, "name bash, zsh or fish");
		return -EINVAL;
	}
	buf_init(&text, 256 << 10);
	put[which](&text);
	return say_out(&text, err);
}
