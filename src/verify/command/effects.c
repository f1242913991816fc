/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/effects.h"

#include <ctype.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/command/effect.h"
#include "verify/command/effects-archive.h"
#include "verify/command/trial.h"
#include "verify/command/unwrap.h"
#include "verify/model/argv.h"
#include "verify/model/words.h"
#include "verify/parse/judge.h"

/* Words that are no options, in order; at most max. */
static size_t operands(const struct command *command, const char *valued, const struct word **out, size_t max)
{
	size_t count = 0;
	bool is_over = false;

	for (size_t i = 1; i < command->count && count < max; i++) {
		size_t size = is_over ? 0 : option_size(command->words, command->count, i, valued);

		if (!is_over && word_is(&command->words[i], "--"))
			is_over = true;
		else if (size)
			i += size - 1;
		else
			out[count++] = &command->words[i];
	}
	return count;
}

static bool is_chosen(enum operand_choice choice, size_t at, size_t count)
{
	switch (choice) {
	case OPERANDS_FIRST: return at == 0;
	case OPERANDS_LAST: return at + 1 == count;
	case OPERANDS_BUT_FIRST: return at > 0;
	case OPERANDS_BUT_LAST: return at + 1 < count;
	default: return true;
	}
}

enum { OPERANDS_MAX = 512, NAMED_FILES_MAX = 8 };

static void add_row(struct walk *walk, const struct command *command, uint32_t index, const struct program_effect *row)
{
	const struct word *found[OPERANDS_MAX];
	size_t count = operands(command, row->valued, found, OPERANDS_MAX);
	uint32_t traits = row->traits;
	/* sed -e CODE FILE: the code is an option's, so that all operands are files. */
	bool has_code = (names_have(row->valued, "e", 1) && option_given(command->words, command->count, 'e', NULL)) ||
			(names_have(row->valued, "f", 1) && option_given(command->words, command->count, 'f', NULL));
	enum operand_choice choice = row->choice == OPERANDS_BUT_FIRST && has_code ? OPERANDS_ALL : row->choice;
	char upper = (char)toupper((unsigned char)row->recursive);

	if (row->recursive && (option_given(command->words, command->count, row->recursive, "--recursive") ||
			       option_given(command->words, command->count, upper, NULL)))
		traits |= TRAIT_RECURSIVE;
	if (row->kind == OP_REMOVE && option_given(command->words, command->count, 'f', "--force"))
		traits |= TRAIT_FORCE;
	if (row->kind == OP_WRITE && str_equal(row->name, "tee") &&
	    option_given(command->words, command->count, 'a', "--append"))
		traits |= TRAIT_APPENDS;
	for (size_t i = 0; i < count; i++) {
		uint32_t effect;

		if (!is_chosen(choice, i, count) || word_is(found[i], "-"))
			continue;
		effect = effect_on(walk, index, row->kind, found[i], traits);
		if (row->kind == OP_PERMISSION || (row->traits & TRAIT_LINK && count > 1))
			operations_add_word(walk->operations, effect, found[0]);
	}
}

/* dd if=A of=B */
static void add_dd(struct walk *walk, const struct command *command, uint32_t index)
{
	for (size_t i = 1; i < command->count; i++) {
		struct word word = command->words[i];
		bool is_in = strncmp(word.text, "if=", 3) == 0;

		if (!is_in && strncmp(word.text, "of=", 3) != 0)
			continue;
		word.text += 3;
		word.size -= 3;
		effect_on(walk, index, is_in ? OP_READ : OP_WRITE, &word, is_in ? 0 : TRAIT_DEVICE | TRAIT_TRUNCATES);
	}
}

/* find ROOT… -delete: what it removes is below the roots, all of it or what a test picks. */
static void add_find(struct walk *walk, const struct command *command, uint32_t index)
{
	static const char *const tests[] = { "-name", "-iname", "-path", "-ipath", "-regex", "-mtime", "-mmin", "-size",
					     "-empty", "-newer", "-atime", "-ctime", "-perm", "-user", "-maxdepth",
					     "-inum", "-xtype", "-lname", "-group", "-nouser", "-nogroup", "-links",
					     "-samefile", "-cmin", "-amin", "-newermt" };
	bool deletes = false, is_picky = false;

	for (size_t i = 1; i < command->count; i++) {
		deletes |= word_is(&command->words[i], "-delete");
		for (size_t test = 0; test < ARRAY_SIZE(tests); test++)
			is_picky |= word_is(&command->words[i], tests[test]);
	}
	for (size_t i = 1; i < command->count && command->words[i].text[0] != '-'; i++) {
		struct word path = command->words[i];

		if (!deletes)
			continue;
		if (is_picky) {
			struct word_draft draft;

			word_begin(&draft, walk->operations->arena, path.span);
			word_put_word(&draft, &path);
			word_put(&draft, "/", 1);
			word_put_unknown(&draft, NULL, 0);
			path = word_end(&draft);
		}
		effect_on(walk, index, OP_REMOVE, &path, TRAIT_RECURSIVE | TRAIT_FORCE);
	}
}

static void add_kill(struct walk *walk, const struct command *command, uint32_t index)
{
	struct operation *source = operations_get(walk->operations, index);
	uint32_t context = source ? source->context : 0, effect;
	const char *signal = command_signal(command->words, command->count);
	bool is_over = false, may_be_option = true;

	for (size_t i = 1; i < command->count; i++) {
		const struct word *word = &command->words[i];
		/* kill -1 alone has no signal: -9 -1 and -KILL -1 have one, and then everybody. */
		bool is_option = !is_over && may_be_option && word->text[0] == '-' && command->count > 2;

		if (is_option) {
			is_over = word_is(word, "--");
			i += word_is(word, "-s") || word_is(word, "-n") || word_is(word, "--signal");
			may_be_option = word->text[1] == '-';
			continue;
		}
		may_be_option = false;
		effect = operations_add(walk->operations, OP_PROCESS, word->span, context);
		operations_add_text(walk->operations, effect, "kill");
		operations_add_word(walk->operations, effect, word);
		operations_add_text(walk->operations, effect, signal);
	}
}

/* Files of a home or of the system that a program is told which no table knows: it most likely reads them. */
static void add_named_files(struct walk *walk, const struct command *command, uint32_t index)
{
	static const char *const silent[] = { "[", "[[", "alias", "basename", "cd", "dirname", "echo", "exec", "export",
					      "git", "local", "ls", "mktemp", "printf", "pushd", "readlink", "realpath",
					      "set", "stat", "test", "trap", "type", "which" };
	static const char *const places[] = { "~/", "/etc/", "/home/", "/proc/", "/root/", "/run/", "/var/" };
	const char *name = program_name(command->words, command->count);
	size_t added = 0;

	if (names_find(silent, ARRAY_SIZE(silent), name) >= 0 ||
	    unwrap_command(walk->judgement->tables, command->words, command->count).kind)
		return;
	for (size_t i = 1; i < command->count && added < NAMED_FILES_MAX; i++) {
		const char *text = command->words[i].text;
		bool is_one = text[0] == '.' && isalpha((unsigned char)text[1]);

		for (size_t place = 0; place < ARRAY_SIZE(places); place++)
			is_one |= str_has_prefix(text, places[place]);
		if (!is_one || strpbrk(text, ": \n"))
			continue;
		effect_on(walk, index, OP_READ, &command->words[i], 0);
		added++;
	}
}

/* False: it does nothing that these know of. */
static bool add_like(struct walk *walk, const struct command *command, uint32_t index, enum program_like like)
{
	static void (*const adders[PROGRAM_LIKE_COUNT])(struct walk *walk, const struct command *command,
							uint32_t index) = {
		[LIKE_DD] = add_dd, [LIKE_FIND] = add_find, [LIKE_GIT] = effects_add_git, [LIKE_KILL] = add_kill,
		[LIKE_TAR] = effects_add_tar, [LIKE_UNPACKER] = effects_add_unpacker,
	};

	if (!adders[like])
		return effects_add_network(walk, command, index, like);
	adders[like](walk, command, index);
	return true;
}

void effects_add(struct walk *walk, const struct command *command, uint32_t index)
{
	const struct vec *programs = &walk->judgement->tables->programs;
	const char *name = program_name(command->words, command->count);
	const struct program_effect *row, *end;

	if (!word_is_exact(&command->words[0]))
		return;
	if (strncmp(name, "mkfs.", 5) == 0)
		name = "mkfs";
	row = TABLES_FIND(struct program_effect, programs, name);
	if (!row || (row->like && !add_like(walk, command, index, row->like))) {
		add_named_files(walk, command, index);
		return;
	}
	end = (const struct program_effect *)programs->items + programs->count;
	for (; row < end && !row->like && str_equal(row->name, name); row++)
		if (!row->only_with || option_given(command->words, command->count, *row->only_with, "--in-place"))
			add_row(walk, command, index, row);
}
