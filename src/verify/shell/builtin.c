/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/shell/shell.h"

#include <string.h>

#include "base/str.h"
#include "verify/model/argv.h"

/* eval: its words joined are code of this very shell. */
static bool run_eval(struct shell *shell, struct command *command)
{
	struct word_draft draft;
	struct word code;
	struct nested nested = { .language = LANGUAGE_SHELL, .code = &code, .is_same_shell = true };
	struct walk *walk = shell->walk;
	uint32_t index;

	if (command->count < 2)
		return true;
	word_begin(&draft, arena_of(shell), (struct span){ command->words[1].span.start,
							   command->words[command->count - 1].span.end });
	for (size_t i = 1; i < command->count; i++) {
		if (i > 1)
			word_put(&draft, " ", 1);
		word_put_word(&draft, &command->words[i]);
	}
	code = word_end(&draft);
	index = walk_command(walk, command);
	nested.parent = index;
	nested.input = command->input;
	nested.context = command->context;
	walk_nested(walk, &nested);
	shell->walk = walk;
	origins_join(&command->output, &nested.output);
	return true;
}

static bool run_trap(struct shell *shell, struct command *command)
{
	if (command->count > 2 && command->words[1].size && command->words[1].text[0] != '-') {
		struct nested nested = { .language = LANGUAGE_SHELL, .code = &command->words[1],
					 .parent = OPERATION_NONE, .context = command->context };
		struct walk *walk = shell->walk;

		walk_nested(walk, &nested);
	}
	return false;
}

static bool run_cd(struct shell *shell, struct command *command)
{
	const struct word *to = NULL;
	struct word *directory;

	for (size_t i = 1; i < command->count && !to; i++) {
		if (command->words[i].text[0] != '-' || command->words[i].size == 1)
			to = &command->words[i];
	}
	directory = arena_alloc(arena_of(shell), sizeof *directory);
	if (!directory)
		return false;
	if (!to) {
		*directory = word_of(arena_of(shell), command->span, "~");
	} else if (to->text[0] == '/' || to->text[0] == '~') {
		*directory = *to;
	} else if (to->text[0] == WORD_UNKNOWN || word_is(to, "-")) {
		*directory = word_unknown(arena_of(shell), to->span, 0);
	} else if (shell->walk->directory) {
		struct word_draft draft;

		word_begin(&draft, arena_of(shell), to->span);
		word_put_word(&draft, shell->walk->directory);
		word_put(&draft, "/", 1);
		word_put_word(&draft, to);
		*directory = word_end(&draft);
	} else {
		/* Somewhere below where it began: enough to tell `rm *` there from one here. */
		*directory = *to;
	}
	shell->walk->directory = directory;
	return false;
}

static bool run_alias(struct shell *shell, struct command *command)
{
	for (size_t i = 1; i < command->count; i++) {
		const char *equals = strchr(command->words[i].text, '=');
		struct shell_variable *alias;

		if (!equals || shell->aliases.count >= SHELL_ALIASES_MAX)
			continue;
		alias = vec_add(arena_of(shell), &shell->aliases, sizeof *alias);
		if (!alias)
			return false;
		*alias = (struct shell_variable){
			.name = arena_text_n(arena_of(shell), command->words[i].text,
					     (size_t)(equals - command->words[i].text)),
			.value = command->words[i],
		};
		alias->hash = shell_hash(alias->name ? alias->name : "");
		if (!alias->name)
			alias->name = "";
		alias->value.text = equals + 1;
		alias->value.size = (uint32_t)strlen(equals + 1);
	}
	return false;
}

/* mapfile -C CODE: what is called back is code of this shell. */
static void run_callback(struct shell *shell, const struct command *command)
{
	struct walk *walk = shell->walk;

	for (size_t i = 1; i + 1 < command->count; i++) {
		if (!word_is(&command->words[i], "-C"))
			continue;
		walk_nested(walk, &(struct nested){ .language = LANGUAGE_SHELL, .code = &command->words[i + 1],
						    .parent = OPERATION_NONE, .context = command->context });
		shell->walk = walk;
	}
}

/* read, mapfile: what comes in is not known unless a document is. */
static bool run_read(struct shell *shell, struct command *command)
{
	uint32_t index = walk_command(shell->walk, command);
	bool is_read = word_is(&command->words[0], "read");
	const char *valued = is_read ? "a d i n N p t u" : "d n O s u C c";

	if (!is_read)
		run_callback(shell, command);
	for (size_t i = 1; i < command->count; i++) {
		struct word value;
		size_t size = option_size(command->words, command->count, i, valued);

		if (size && !str_equal(command->words[i].text, "-a")) {
			if (str_equal(command->words[i].text, "-u") && i + 1 < command->count)
				origins_add(&command->input, shell_descriptor(shell, command->words[i + 1].text));
			i += size - 1;
			continue;
		}
		if (command->document && command->count == 2) {
			value = *command->document;
		} else {
			value = word_unknown(arena_of(shell), command->words[i].span, WORD_FROM_INPUT);
			value.origins = command->input;
			origins_add(&value.origins, index);
		}
		shell_set(shell, command->words[i].text, &value);
	}
	return true;
}

static bool run_set(struct shell *shell, struct command *command)
{
	for (size_t i = 1; i < command->count; i++) {
		if (!word_is(&command->words[i], "--"))
			continue;
		shell->arguments = command->words + i;
		shell->argument_count = command->count - i;
		shell->has_arguments = true;
	}
	return false;
}

static bool run_printf(struct shell *shell, struct command *command)
{
	struct command rest = *command;
	struct word *words;

	if (command->count < 4 || !word_is(&command->words[1], "-v"))
		return false;
	words = arena_alloc(arena_of(shell), command->count * sizeof *words);
	if (!words)
		return false;
	words[0] = command->words[0];
	memcpy(words + 1, command->words + 3, (command->count - 3) * sizeof *words);
	rest.words = words;
	rest.count = command->count - 2;
	walk_command(shell->walk, &rest);
	if (rest.is_produced)
		shell_set(shell, command->words[2].text, &rest.produced);
	return true;
}

static const struct {
	const char *name;
	bool (*run)(struct shell *shell, struct command *command);
} builtins[] = {
	{ "alias", run_alias }, { "cd", run_cd }, { "eval", run_eval }, { "mapfile", run_read }, { "printf",
		run_printf },
	{ "pushd", run_cd }, { "read", run_read }, { "readarray", run_read }, { "set", run_set }, { "trap", run_trap },
};

bool shell_builtin(struct shell *shell, struct command *command)
{
	for (size_t i = 0; command->count && i < ARRAY_SIZE(builtins); i++) {
		if (word_is(&command->words[0], builtins[i].name))
			return builtins[i].run(shell, command);
	}
	return false;
}
