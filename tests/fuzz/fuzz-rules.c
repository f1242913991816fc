/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rule files and what they are matched with: the input is a file of rules and, behind a line "=====", a shell
 * text. A file with errors adds nothing and says why; what it does not refuse can be matched.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "verify/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void match(struct rules *rules, const uint8_t *text, size_t size)
{
	struct verify_input input = { .language = LANGUAGE_SHELL, .bytes = text, .size = size };
	struct verify *verify = verify_new(rules);
	struct verify_result *result = malloc(sizeof *result);

	if (!verify)
		rules_free(rules);
	if (verify && result && verify_judge(verify, &input, result, NULL) == 0) {
		for (size_t i = 0; i < result->count; i++)
			if (!result->findings[i].id || result->findings[i].span.end > result->text_size)
				abort();
		verify_result_done(result);
	}
	free(result);
	verify_free(verify);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char separator[] = "\n=====\n";
	const uint8_t *text = memmem(bytes, size, separator, sizeof separator - 1);
	size_t rules_size = text ? (size_t)(text - bytes) : size;
	struct arena arena = { 0 };
	struct diags diags = { .arena = &arena };
	struct rules *rules = rules_new();
	bool is_good;

	if (!rules)
		return 0;
	is_good = rules_add(rules, &diags, "fuzz.yaml", bytes, rules_size);
	if (!is_good && rules_count(rules))
		abort();
	if (is_good && rules_finish(rules, &diags) && text)
		match(rules, text + sizeof separator - 1, size - rules_size - (sizeof separator - 1));
	else
		rules_free(rules);
	arena_done(&arena);
	return 0;
}
