/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/effects-archive.h"

#include <string.h>

#include "base/str.h"
#include "verify/command/effect.h"
#include "verify/model/argv.h"
#include "verify/model/words.h"
#include "verify/parse/judge.h"

/*
 * What is unpacked lies below the folder from now on. A folder with files in it that come from elsewhere is one write:
 * nobody knows their names.
 */
static void fill_folder(struct walk *walk, const struct command *command, uint32_t index, const struct word *folder)
{
	struct word here = word_of(walk->operations->arena, command->span, ".");

	effect_on(walk, index, OP_WRITE, folder ? folder : &here, TRAIT_RECURSIVE);
}

/* tar: the letter of what it does, -f ARCHIVE, and the files. */
void effects_add_tar(struct walk *walk, const struct command *command, uint32_t index)
{
	const char *bundle = command->count > 1 ? command->words[1].text : "";
	bool creates = strchr(bundle, 'c') && strncmp(bundle, "--", 2) != 0, has_file = false;
	bool old_style = *bundle && *bundle != '-';
	bool extracts = strchr(bundle, 'x') && strncmp(bundle, "--", 2) != 0;
	const struct word *folder = NULL;

	extracts |= option_given(command->words, command->count, 'x', "--extract");
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
				folder = word;
		} else if (creates && word->text[0] != '-') {
			effect_on(walk, index, OP_READ, word, TRAIT_RECURSIVE);
		}
	}	if (extracts || folder)
		fill_folder(walk, command, index, folder);
}

/* The word behind the option, or the rest of its word: -d DIRECTORY, -oDIRECTORY. NULL: it is not given. */
static const struct word *folder_given(const struct command *command, const char *option, struct word *rest)
{
	for (size_t i = 1; i < command->count; i++) {
		const struct word *word = &command->words[i];

		if (word_is(word, option))
			return i + 1 < command->count ? &command->words[i + 1] : NULL;
		if (option[1] == 'o' && str_has_prefix(word->text, option)) {
			*rest = *word;
			rest->text += strlen(option);
			rest->size -= (uint32_t)strlen(option);
			return rest;
		}
	}
	return NULL;
}

void effects_add_unpacker(struct walk *walk, const struct command *command, uint32_t index)
{
	bool is_unzip = str_equal(program_name(command->words, command->count), "unzip");
	bool extracts = command->count > 1 && (word_is(&command->words[1], "x") || word_is(&command->words[1], "e"));
	size_t at = is_unzip ? 1 : 2;
	struct word rest;

	if (!is_unzip && !extracts) {
		for (size_t i = 3; i < command->count; i++)
			if (command->words[i].text[0] != '-')
				effect_on(walk, index, OP_READ, &command->words[i], 0);
		return;
	}
	for (; at < command->count; at++) {
		size_t size = option_size(command->words, command->count, at, is_unzip ? "P d x" : "");

		if (size) {
			at += size - 1;
			continue;
		}
		effect_on(walk, index, OP_READ, &command->words[at], 0);
		break;
	}
	if (at < command->count && !(is_unzip && option_given(command->words, command->count, 'l', NULL)))
		fill_folder(walk, command, index, folder_given(command, is_unzip ? "-d" : "-o", &rest));
}

/* The last part of the address without ".git", as git calls the folder. */
static struct word clone_name(struct walk *walk, const struct word *address)
{
	const char *end = address->text + strlen(address->text), *start;
	struct word name = *address;

	while (end > address->text && end[-1] == '/')
		end--;
	if (end - address->text > 4 && memcmp(end - 4, ".git", 4) == 0)
		end -= 4;
	for (start = end; start > address->text && start[-1] != '/' && start[-1] != ':'; start--)
		;
	name.text = arena_text_n(walk->operations->arena, start, (size_t)(end - start));
	name.size = name.text ? (uint32_t)(end - start) : 0;
	if (!name.text)
		name.text = "";
	return name;
}

void effects_add_git(struct walk *walk, const struct command *command, uint32_t index)
{
	const struct word *address = NULL, *folder = NULL;
	struct word name;
	uint32_t network;

	if (command->count < 3 || !word_is(&command->words[1], "clone"))
		return;
	for (size_t i = 2; i < command->count; i++) {
		size_t size = option_size(command->words, command->count, i,
					  "o b u c j --branch --depth --config --origin --reference --filter --jobs "
					  "--template --separate-git-dir --shallow-since --upload-pack");

		if (size)
			i += size - 1;
		else if (!address)
			address = &command->words[i];
		else if (!folder)
			folder = &command->words[i];
	}
	if (!address || !strchr(address->text, ':'))
		return;
	name = clone_name(walk, address);
	network = effect_add(walk, index, OP_NETWORK, address, TRAIT_FETCHES);
	operations_add_flow(walk->operations, network, index);
	if (folder || name.size)
		fill_folder(walk, command, index, folder ? folder : &name);
}
