/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/effects.h"

#include <ctype.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/command/effect.h"
#include "verify/command/unwrap.h"
#include "verify/model/argv.h"
#include "verify/model/words.h"

/* Which of the words that are no options an effect is on. */
enum which { ALL, FIRST, LAST, REST /* all but the first */, BUT_LAST, SECOND };

struct effect {
	const char *name;
	enum operation_kind kind;
	enum which which;
	const char *valued;     /* options with a value, see option_size() */
	uint32_t traits;
	char recursive;         /* the letter that makes it recursive; 0: none */
	const char *only_with;  /* an option without which it does not happen: "i", "--delete" */
};

enum { WIPE = TRAIT_DEVICE | TRAIT_TRUNCATES };

static const struct effect effects[] = {
	{ "ansible-vault", OP_READ, REST, "" },
	{ "awk", OP_READ, REST, "F v f" },
	{ "base32", OP_READ, ALL, "w" },
	{ "base64", OP_READ, ALL, "w" },
	{ "bat", OP_READ, ALL, "l" },
	{ "blkdiscard", OP_WRITE, ALL, "o l", WIPE },
	{ "bzip2", OP_READ, ALL, "" },
	{ "cat", OP_READ, ALL, "" },
	{ "chgrp", OP_PERMISSION, REST, "", TRAIT_OWNER, 'R' },
	{ "chmod", OP_PERMISSION, REST, "", 0, 'R' },
	{ "chown", OP_PERMISSION, REST, "", TRAIT_OWNER, 'R' },
	{ "cmp", OP_READ, ALL, "n i" },
	{ "comm", OP_READ, ALL, "" },
	{ "cp", OP_READ, BUT_LAST, "t S --target-directory", 0, 'r' },
	{ "cp", OP_WRITE, LAST, "t S" },
	{ "cut", OP_READ, ALL, "d f c b" },
	{ "cfdisk", OP_WRITE, ALL, "", WIPE },
	{ "diff", OP_READ, ALL, "U C" },
	{ "dpkg", OP_READ, ALL, "" },
	{ "fallocate", OP_WRITE, ALL, "l o" },
	{ "fdisk", OP_WRITE, FIRST, "", WIPE },
	{ "file", OP_READ, ALL, "m" },
	{ "grep", OP_READ, REST, "A B C m e f", 0, 'r' },
	{ "ed", OP_WRITE, ALL, "p" },
	{ "egrep", OP_READ, REST, "A B C m e f", 0, 'r' },
	{ "ex", OP_WRITE, ALL, "c w" },
	{ "fgrep", OP_READ, REST, "A B C m e f", 0, 'r' },
	{ "rg", OP_READ, REST, "A B C m e f g t", TRAIT_RECURSIVE },
	{ "gpg", OP_READ, ALL, "o r u" },
	{ "gunzip", OP_READ, ALL, "" },
	{ "gzip", OP_READ, ALL, "" },
	{ "head", OP_READ, ALL, "n c" },
	{ "hexdump", OP_READ, ALL, "n s e" },
	{ "install", OP_READ, BUT_LAST, "m o g t" },
	{ "install", OP_WRITE, LAST, "m o g t" },
	{ "jq", OP_READ, REST, "" },
	{ "less", OP_READ, ALL, "" },
	{ "ln", OP_WRITE, LAST, "t S", TRAIT_LINK },
	{ "md5sum", OP_READ, ALL, "" },
	{ "mkdir", OP_WRITE, ALL, "m" },
	{ "mkfs", OP_WRITE, LAST, "t L", WIPE },
	{ "mkswap", OP_WRITE, ALL, "L U", WIPE },
	{ "more", OP_READ, ALL, "" },
	{ "mv", OP_READ, BUT_LAST, "t S" },
	{ "mv", OP_REMOVE, BUT_LAST, "t S" },
	{ "mv", OP_WRITE, LAST, "t S" },
	{ "nl", OP_READ, ALL, "" },
	{ "od", OP_READ, ALL, "A t N j" },
	{ "parted", OP_WRITE, FIRST, "", WIPE },
	{ "paste", OP_READ, ALL, "d" },
	{ "rev", OP_READ, ALL, "" },
	{ "rm", OP_REMOVE, ALL, "", 0, 'r' },
	{ "rmdir", OP_REMOVE, ALL, "" },
	{ "rpm", OP_READ, ALL, "" },
	{ "sed", OP_READ, REST, "e f" },
	{ "sed", OP_WRITE, REST, "e f", .only_with = "i" },
	{ "sgdisk", OP_WRITE, LAST, "", WIPE },
	{ "sha256sum", OP_READ, ALL, "" },
	{ "shred", OP_REMOVE, ALL, "n s", TRAIT_FORCE },
	{ "shred", OP_WRITE, ALL, "n s", WIPE },
	{ "sort", OP_READ, ALL, "k t o S" },
	{ "source", OP_READ, FIRST, "", TRAIT_STARTS },
	{ ".", OP_READ, FIRST, "", TRAIT_STARTS },
	{ "split", OP_READ, FIRST, "b l n" },
	{ "srm", OP_REMOVE, ALL, "", TRAIT_FORCE, 'r' },
	{ "strings", OP_READ, ALL, "n" },
	{ "tac", OP_READ, ALL, "" },
	{ "tail", OP_READ, ALL, "n c" },
	{ "tee", OP_WRITE, ALL, "" },
	{ "touch", OP_WRITE, ALL, "d r t" },
	{ "trash", OP_REMOVE, ALL, "" },
	{ "truncate", OP_WRITE, ALL, "s r --size", TRAIT_TRUNCATES },
	{ "unlink", OP_REMOVE, ALL, "" },
	{ "unzip", OP_READ, FIRST, "d" },
	{ "vim", OP_READ, ALL, "c" },
	{ "wc", OP_READ, ALL, "" },
	{ "wipefs", OP_WRITE, ALL, "t", WIPE },
	{ "xxd", OP_READ, ALL, "l s c" },
	{ "xz", OP_READ, ALL, "" },
	{ "zcat", OP_READ, ALL, "" },
	{ "zip", OP_READ, REST, "P", 0, 'r' },
	{ "zip", OP_WRITE, FIRST, "P" },
	{ "7z", OP_READ, REST, "" },
	{ "zstd", OP_READ, ALL, "o" },
};

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

static bool is_chosen(enum which which, size_t at, size_t count)
{
	switch (which) {
	case ALL: return true;
	case FIRST: return at == 0;
	case SECOND: return at == 1;
	case LAST: return at + 1 == count;
	case REST: return at > 0;
	case BUT_LAST: return at + 1 < count;
	}
	return false;
}

enum { OPERANDS_MAX = 512, NAMED_FILES_MAX = 8 };

static void add_row(struct walk *walk, const struct command *command, uint32_t index, const struct effect *row)
{
	const struct word *found[OPERANDS_MAX];
	size_t count = operands(command, row->valued, found, OPERANDS_MAX);
	uint32_t traits = row->traits;
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

		if (!is_chosen(row->which, i, count) || word_is(found[i], "-"))
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
					     "-empty", "-newer", "-atime", "-ctime", "-perm", "-user", "-maxdepth" };
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

/* tar: the letter of what it does, -f ARCHIVE, and the files. */
static void add_tar(struct walk *walk, const struct command *command, uint32_t index)
{
	const char *bundle = command->count > 1 ? command->words[1].text : "";
	bool creates = strchr(bundle, 'c') && strncmp(bundle, "--", 2) != 0, has_file = false;
	bool old_style = *bundle && *bundle != '-';

	creates |= option_given(command->words, command->count, 'c', "--create");
	for (size_t i = old_style ? 2 : 1; i < command->count; i++) {
		const struct word *word = &command->words[i];
		const char *before = command->words[i - 1].text;
		bool is_file = !has_file && i > 1 && (old_style ? i == 2 && strchr(bundle, 'f')
							       : before[0] == '-' && before[1] != '-' &&
								strchr(before, 'f'));

		if (is_file) {
			has_file = true;
			if (!word_is(word, "-"))
				effect_on(walk, index, creates ? OP_WRITE : OP_READ, word, 0);
		} else if (str_equal(before, "-C")) {
			if (creates)
				effect_on(walk, index, OP_READ, word, TRAIT_RECURSIVE);
			else
				effect_on(walk, index, OP_WRITE, word, 0);
		} else if (creates && word->text[0] != '-') {
			effect_on(walk, index, OP_READ, word, TRAIT_RECURSIVE);
		}
	}
}

static void add_kill(struct walk *walk, const struct command *command, uint32_t index)
{
	struct operation *source = operations_get(walk->operations, index);
	uint32_t context = source ? source->context : 0, effect;
	const char *signal = "";

	for (size_t i = 1; i < command->count; i++) {
		const char *text = command->words[i].text;

		if (text[0] == '-' && i == 1 && command->count > 2) {
			signal = text + 1;
			continue;
		}
		effect = operations_add(walk->operations, OP_PROCESS, command->words[i].span, context);
		operations_add_text(walk->operations, effect, "kill");
		operations_add_word(walk->operations, effect, &command->words[i]);
		operations_add_text(walk->operations, effect, signal);
	}
}

static const struct {
	const char *name;
	void (*add)(struct walk *walk, const struct command *command, uint32_t index);
} special[] = {
	{ "bsdtar", add_tar }, { "dd", add_dd }, { "find", add_find }, { "kill", add_kill }, { "killall", add_kill },
	{ "pkill", add_kill }, { "tar", add_tar },
};

/* Files of a home or of the system that a program is told which no table knows: it most likely reads them. */
static void add_named_files(struct walk *walk, const struct command *command, uint32_t index)
{
	static const char *const silent[] = { "[", "[[", "alias", "basename", "cd", "dirname", "echo", "exec", "export",
					      "git", "local", "ls", "mktemp", "printf", "pushd", "readlink", "realpath",
					      "set", "stat", "test", "trap", "type", "which" };
	static const char *const places[] = { "~/", "/etc/", "/home/", "/proc/", "/root/", "/run/", "/var/" };
	const char *name = program_name(command->words, command->count);
	size_t added = 0;

	if (names_find(silent, ARRAY_SIZE(silent), name) >= 0 || unwrap_command(command->words, command->count).kind)
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

void effects_add(struct walk *walk, const struct command *command, uint32_t index)
{
	const char *name = program_name(command->words, command->count);
	bool is_known = false;

	if (!word_is_exact(&command->words[0]) || effects_add_network(walk, command, index))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(special); i++) {
		if (str_equal(special[i].name, name)) {
			special[i].add(walk, command, index);
			return;
		}
	}
	if (strncmp(name, "mkfs.", 5) == 0)
		name = "mkfs";
	for (size_t i = 0; i < ARRAY_SIZE(effects); i++) {
		const char *needed = effects[i].only_with;

		is_known |= str_equal(effects[i].name, name);
		if (str_equal(effects[i].name, name) &&
		    (!needed || option_given(command->words, command->count, *needed, "--in-place")))
			add_row(walk, command, index, &effects[i]);
	}
	if (!is_known)
		add_named_files(walk, command, index);
}

/* Reading alone is never worth a look: what it leads to is another command. */
size_t effects_programs(const char **names, size_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(effects) && count < max; i++)
		if (effects[i].kind != OP_READ && (!count || !str_equal(names[count - 1], effects[i].name)))
			names[count++] = effects[i].name;
	for (size_t i = 0; i < ARRAY_SIZE(special) && count < max; i++)
		names[count++] = special[i].name;
	if (count < max)
		names[count++] = "mkfs.*";
	return count;
}
