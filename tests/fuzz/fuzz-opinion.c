/* SPDX-License-Identifier: Apache-2.0 */

/* What a verifier answers, command or model: always one of three opinions, with a reason that fits a frame. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "judge/opinion.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(const struct opinion *opinion)
{
	cleanup_buf struct buf out;
	enum judge_verdict verdict;
	struct frame frame;
	const char *reason;
	uint32_t id;

	buf_init(&out, FRAME_MESSAGE_MAX);
	if (judge_verdict_put(&out, 1, opinion->verdict, opinion->reason) < 0 ||
	    frame_open(&frame, out.bytes, out.size) < 0 || judge_verdict_get(&frame, &id, &verdict, &reason) < 0 ||
	    verdict != opinion->verdict || strcmp(reason, opinion->reason) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct opinion opinion;

	opinion_parse(bytes, size, &opinion);
	check(&opinion);
	opinion_parse_completion(bytes, size, &opinion);
	check(&opinion);
	return 0;
}
