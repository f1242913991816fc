/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/judge.h"

#include <string.h>

#include "judge/opinion.h"
#include "judge/proposal.h"
#include "os/fd.h"

static int on_start(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct judge *judge = context;
	struct judge_start *start = &judge->start;
	struct frame copy = { .size = frame->size, .at = frame->at, .type = frame->type };
	size_t at = 0;
	int r;

	/* What it says is needed for as long as we run, and the buffer is not. */
	copy.bytes = judge->frame = malloc(frame->size);
	if (!copy.bytes)
		return -ENOMEM;
	memcpy(copy.bytes, frame->bytes, frame->size);
	r = judge_start_get(&copy, start);
	if (r < 0)
		return r;
	if (fd_count != (size_t)((start->flags & JUDGE_HAS_BUNDLE) != 0) + ((start->flags & JUDGE_HAS_SECRET) != 0))
		return -EPROTO;
	if (start->flags & JUDGE_HAS_BUNDLE)
		judge->bundle_fd = take_fd(&fds[at++]);
	if (start->flags & JUDGE_HAS_SECRET)
		judge->secret_fd = take_fd(&fds[at++]);
	return 0;
}

static const struct frame_rule rules[] = {
	{ JUDGE_START, 1, FRAME_MESSAGE_MAX, 0, 2, on_start },
};

static int send_out(struct judge *judge, int r)
{
	return r < 0 ? r : frame_send(judge->box_fd, &judge->out, NULL, 0);
}

int judge_tell_unclear(struct judge *judge, uint32_t id, enum judge_question question, const char *why)
{
	if (question == QUESTION_NARROW)
		return send_out(judge, judge_proposal_put(&judge->out, id, NULL, why));
	return send_out(judge, judge_verdict_put(&judge->out, id, JUDGE_UNCLEAR, why));
}

static int tell_proposal(struct judge *judge, uint32_t id, const struct judge_answer *answer)
{
	struct proposal proposal;
	int r;

	if (answer->is_completion)
		proposal_parse_completion(answer->bytes, answer->size, &proposal);
	else
		proposal_parse(answer->bytes, answer->size, &proposal);
	r = send_out(judge, judge_proposal_put(&judge->out, id, proposal.text, proposal.reason));
	proposal_done(&proposal);
	return r;
}

int judge_tell_answer(struct judge *judge, uint32_t id, enum judge_question question,
		      const struct judge_answer *answer)
{
	struct opinion opinion;

	if (question == QUESTION_NARROW)
		return tell_proposal(judge, id, answer);
	if (answer->is_completion)
		opinion_parse_completion(answer->bytes, answer->size, &opinion);
	else
		opinion_parse(answer->bytes, answer->size, &opinion);
	return send_out(judge, judge_verdict_put(&judge->out, id, opinion.verdict, opinion.reason));
}

int judge_run(int box_fd, struct err *err)
{
	struct judge judge = { .box_fd = box_fd, .bundle_fd = FD_NONE, .secret_fd = FD_NONE };
	int r;

	buf_init(&judge.out, FRAME_MESSAGE_MAX);
	buf_init(&judge.scratch, FRAME_MESSAGE_MAX);
	opinion_prepare();
	r = frame_dispatch(box_fd, &judge.scratch, 0, rules, ARRAY_SIZE(rules), &judge);
	if (r > 0)
		r = judge.start.command[0] ? judge_by_command(&judge, err) : judge_by_model(&judge, err);
	free(judge.start.command);
	free(judge.start.environment);
	free(judge.frame);
	close_fd(&judge.bundle_fd);
	close_fd(&judge.secret_fd);
	buf_done(&judge.out);
	buf_done(&judge.scratch);
	return r;
}
