/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a verifier answers, command or model: always one of three opinions, with a reason that fits a frame; and always
 * a proposal, or why there is none, that fits one too.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "judge/opinion.h"
#include "judge/proposal.h"

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

static void check_proposal(struct proposal *proposal)
{
	const char *text, *reason;
	cleanup_buf struct buf out;
	struct frame frame;
	uint32_t id;

	buf_init(&out, FRAME_MESSAGE_MAX);
	if (judge_proposal_put(&out, 1, proposal->text, proposal->reason) < 0 ||
	    frame_open(&frame, out.bytes, out.size) < 0 || judge_proposal_get(&frame, &id, &text, &reason) < 0 ||
	    !text != !proposal->text || (text && strcmp(text, proposal->text) != 0) ||
	    strcmp(reason, proposal->reason) != 0)
		abort();
	proposal_done(proposal);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct proposal proposal;
	struct opinion opinion;

	opinion_parse(bytes, size, &opinion);
	check(&opinion);
	opinion_parse_completion(bytes, size, &opinion);
	check(&opinion);
	proposal_parse(bytes, size, &proposal);
	check_proposal(&proposal);
	proposal_parse_completion(bytes, size, &proposal);
	check_proposal(&proposal);
	return 0;
}
