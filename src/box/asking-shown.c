/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "box/asking-state.h"
#include "box/state.h"

/*
 * An answer is about what its person was shown, and the person is somewhere else: between the look and the answer more
 * may ask the same. So a question that was shown is sealed. Who comes later stands behind it, as long as those wait who
 * were shown, since a burst should not become as many questions; then, or when all are listed anew, they are a question
 * of their own, with another number.
 */

size_t asking_count_shown(const struct question *question)
{
	size_t count = 0;

	while (count < question->waiting_count && !question->waiting[count].is_late)
		count++;
	return count;
}

void asking_seal(struct question *question)
{
	question->is_sealed = true;
}

int asking_part(struct box *box, struct question *question, size_t first)
{
	size_t count = question->waiting_count - first;
	struct asking_waiting *waiting;
	struct asking_shown copy;
	struct question *rest;

	if (!count)
		return 0;
	waiting = malloc(count * sizeof *waiting);
	if (!waiting || asking_shown_copy(&question->shown, &copy) < 0) {
		free(waiting);
		return -ENOMEM;
	}
	/* Whoever has to make room, it is not this question, for which somebody waits. */
	rest = asking_question_new(box->asking, &copy, &question->hash);
	if (!rest) {
		asking_shown_done(&copy);
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
	box->asking->asked++;
	if (!first)
		asking_rest(box->asking, question, ASKING_LISTED);
	return asking_log_open(box, rest);
}

int asking_part_late(struct box *box)
{
	struct asking *asking = box->asking;
	int r = 0;

	/* Those that are added have none, and where there is no room for more, they stay where they are. */
	for (size_t i = asking ? asking->question_count : 0; r == 0 && i-- > 0;) {
		struct question *question = asking->questions[i];

		if (question->waiting_count && asking->question_count < ASKING_QUESTIONS_MAX)
			r = asking_part(box, question, asking_count_shown(question));
	}
	return r;
}
