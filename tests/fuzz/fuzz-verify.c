/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The walkers: the first byte names the language, the rest is the text. Whatever it is, the judgement ends,
 * its operations name only operations that are there, words say truly whether they are exact, and spans lie
 * in the text.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/verify/shipped.h"
#include "base/cleanup.h"
#include "verify/model/operation-text.h"
#include "verify/walkers.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { TIME_MS = 5000 };

static void check_word(const struct word *word, size_t count)
{
	if (strlen(word->text) != word->size)
		abort();
	if ((word->flags & WORD_EXACT) && memchr(word->text, WORD_UNKNOWN, word->size))
		abort();
	for (uint32_t i = 0; i < word->origins.count; i++)
		if (word->origins.at[i] >= count)
			abort();
}

static void check_operation(const struct operations *operations, const struct operation *operation,
			    size_t size)
{
	const struct flow *flows = operations->flows.items;
	size_t count = operations_count(operations);

	if (operation->kind >= OPERATION_KIND_COUNT || operation->span.start > operation->span.end ||
	    operation->span.end > size)
		abort();
	if (operation->parent != OPERATION_NONE && operation->parent >= count)
		abort();
	for (size_t i = 0; i < operation_word_count(operation); i++)
		check_word(operation_word(operation, i), count);
	for (uint32_t at = operation->first_flow; at; at = flows[at - 1].next)
		if (flows[at - 1].from >= count)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const enum verify_language languages[] = { LANGUAGE_SHELL, LANGUAGE_PYTHON,
							  LANGUAGE_JAVASCRIPT };
	static struct rules *rules;
	struct judgement judgement;
	cleanup_free char *text = NULL;
	cleanup_buf struct buf lines;

	buf_init(&lines, 64 << 20);
	if (!size)
		return 0;
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, bytes + 1, size - 1);
	text[size - 1] = '\0';
	if (!rules)
		rules = shipped_rules();
	judgement_init(&judgement, verify_walkers, rules_tables(rules), TIME_MS);
	judge_text(&judgement, languages[bytes[0] % ARRAY_SIZE(languages)], text, size - 1);
	operations_link_files(&judgement.operations);
	for (uint32_t i = 0; i < operations_count(&judgement.operations); i++)
		check_operation(&judgement.operations, operations_get(&judgement.operations, i), size - 1);
	operations_put(&judgement.operations, &lines);
	judgement_done(&judgement);
	return 0;
}
