/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/model/operation-text.h"

#include "base/names.h"

static const char *const context_names[] = {
	"pipe", "substitution", "background", "loop", "endless", "function", "condition", "decoded", "root", "remote",
	"contained", "nested", "wrapper", "repeated", "install",
};

static const char *const trait_names[] = {
	"sends", "fetches", "listens", "recursive", "force", "appends", "truncates", "device", "owner", "recurses",
	"multiplies", "link", "shell", "interactive", "starts", "shown",
};

const char *const *operation_context_names(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(context_names);
	return context_names;
}

const char *const *operation_trait_names(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(trait_names);
	return trait_names;
}

static void put_bits(struct buf *out, char mark, uint32_t bits, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bits & (uint32_t)1 << i)
			buf_printf(out, " %c%s", mark, names[i]);
	}
}

static void put_word(struct buf *out, const struct word *word)
{
	buf_put_text(out, word->flags & WORD_EXACT ? " '" : " ~'");
	for (uint32_t i = 0; i < word->size; i++) {
		if (word->text[i] == WORD_UNKNOWN)
			buf_put_text(out, "?");
		else
			buf_put_escaped(out, &word->text[i], 1, 0);
	}
	buf_put_text(out, "'");
}

void operations_put(const struct operations *operations, struct buf *out)
{
	const struct flow *flows = operations->flows.items;

	for (uint32_t i = 0; i < operations_count(operations); i++) {
		const struct operation *operation = operations_get(operations, i);

		buf_printf(out, "%u %s", i, operation_kind_names[operation->kind]);
		for (size_t word = 0; word < operation_word_count(operation); word++)
			put_word(out, operation_word(operation, word));
		put_bits(out, '+', operation->traits, trait_names, ARRAY_SIZE(trait_names));
		put_bits(out, '@', operation->context, context_names, ARRAY_SIZE(context_names));
		for (uint32_t at = operation->first_flow; at; at = flows[at - 1].next)
			buf_printf(out, " <%u", flows[at - 1].from);
		buf_put_char(out, '\n');
	}
	for (size_t i = 0; i < operations->doubt_count && i < DOUBTS_MAX; i++)
		buf_printf(out, "doubt %s\n", doubt_names[operations->doubts[i].doubt]);
}
