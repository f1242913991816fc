/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "approve/queue-state.h"

/*
 * An answer is about what its person was shown, and the person is somewhere else: between the look and the answer more
 * may ask the same. So a question that was shown is sealed. Who comes later stands behind it, as long as those wait who
 * were shown, since a burst should not become as many questions; then, or when all are listed anew, they are a question
 * of their own, with another number.
 */

size_t queue_count_shown(const struct question *question)
{
	size_t count = 0;

	while (count < question->waiting_count && !question->waiting[count].is_late)
		count++;
	return count;
}

void queue_seal(struct question *question)
{
	question->is_sealed = true;
}

int queue_split(struct queue *queue, struct question *question, size_t first)
{
	size_t count = question->waiting_count - first;
	struct queue_waiting *waiting;
	struct asking_shown copy;
	struct question *rest;

	if (!count)
		return 0;
	waiting = malloc(count * sizeof *waiting);
	if (!waiting || queue_shown_copy(&question->shown, &copy) < 0) {
		free(waiting);
		return -ENOMEM;
	}
	/* Whoever has to make room, it is not this question, for which somebody waits. */
	rest = queue_question_new(queue->state, &copy, &question->hash);
	if (!rest) {
		queue_shown_done(&copy);
		free(waiting);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		waiting[i] = question->waiting[first + i];
		waiting[i].is_late = false;
	}
	question->waiting_count = first;
	rest->waiting = waiting;
	rest->waiting_count = rest->waiting_size = count;
	rest->times = (uint32_t)count;
	rest->pid = question->pid;
	rest->until_ns = question->until_ns;
	queue->state->asked++;
	if (!first)
		queue_shelve(queue->state, question, ASKING_LISTED);
	return queue_log_open(queue, rest);
}

int queue_split_late(struct queue *queue)
{
	struct queue_state *state = queue->state;
	int r = 0;

	/* Those that are added have none, and where there is no room for more, they stay where they are. */
	for (size_t i = state ? state->question_count : 0; r == 0 && i-- > 0;) {
		struct question *question = state->questions[i];

		if (question->waiting_count && state->question_count < QUEUE_QUESTIONS_MAX)
			r = queue_split(queue, question, queue_count_shown(question));
	}
	return r;
}
