/* SPDX-License-Identifier: Apache-2.0 */

/* What a webhook answers: what is taken is a sound answer, and comes out of the frame to the box as it went in. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "notify/answer.h"
#include "wire/notify.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	cleanup_buf struct buf out;
	const char *why = NULL;
	struct asking_reply reply, read;
	struct answer answer;
	struct frame frame;

	buf_init(&out, FRAME_MESSAGE_MAX);
	if (answer_parse(bytes, size, &answer, &why) < 0) {
		if (!why)
			abort();
		return 0;
	}
	if (size > ANSWER_MAX || answer.scope == ASKING_FOREVER || !answer.question)
		abort();
	reply = (struct asking_reply){ answer.question, answer.hash, answer.is_allowed,
				       answer.scope,	answer.amount };
	if (notify_answer_put(&out, &reply) < 0 || frame_open(&frame, out.bytes, out.size) < 0 ||
	    notify_answer_get(&frame, &read) < 0)
		abort();
	if (read.number != reply.number || read.amount != reply.amount || memcmp(read.hash, answer.hash, 32) != 0)
		abort();
	return 0;
}
