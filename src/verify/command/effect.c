/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/effect.h"

#include <string.h>

#include "base/str.h"
#include "verify/model/words.h"

struct word effect_path(struct walk *walk, const struct word *word)
{
	const struct word *directory = walk->directory;
	struct word_draft draft;
	const char *text = word->text;

	if (!directory || *text == '/' || *text == '~' || *text == WORD_UNKNOWN || !*text)
		return *word;
	word_begin(&draft, walk->operations->arena, word->span);
	word_put_word(&draft, directory);
	if (!str_has_suffix(directory->text, "/"))
		word_put(&draft, "/", 1);
	while (strncmp(text, "./", 2) == 0)
		text += 2;
	if (!str_equal(text, ".") && text[0]) {
		struct word rest = *word;

		rest.text = text;
		rest.size = word->size - (uint32_t)(text - word->text);
		word_put_word(&draft, &rest);
	}
	return word_end(&draft);
}

uint32_t effect_add(struct walk *walk, uint32_t index, enum operation_kind kind, const struct word *word,
		    uint32_t traits)
{
	struct operation *command = operations_get(walk->operations, index);
	uint32_t context = command ? command->context & ~(uint32_t)CONTEXT_WRAPPER : walk->context;
	uint32_t effect = operations_add(walk->operations, kind, word->span, context);
	struct operation *operation = operations_get(walk->operations, effect);

	if (!operation)
		return effect;
	operation->parent = index;
	operation->traits = traits;
	operations_add_word(walk->operations, effect, word);
	return effect;
}

uint32_t effect_on(struct walk *walk, uint32_t index, enum operation_kind kind, const struct word *path,
		   uint32_t traits)
{
	struct word word = effect_path(walk, path);
	uint32_t effect = effect_add(walk, index, kind, &word, traits);

	if (kind == OP_READ)
		operations_add_flow(walk->operations, effect, index);
	else if (kind == OP_WRITE)
		operations_add_flow(walk->operations, index, effect);
	return effect;
}
