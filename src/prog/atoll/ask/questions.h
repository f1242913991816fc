/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The questions and grants of running sandboxes, as the verbs ask, approve, deny and grants get them from libatoll:
 * which sandboxes, their rows in the form that question-words.h shows, and which one a word on the command line means.
 */

#include "base/err.h"
#include "prog/atoll/verb/library.h"
#include "wire/asking.h"

enum { QUESTION_BOXES_MAX = 256, QUESTION_NAME_SIZE = SESSION_ID_SIZE + 12 };

/* A running sandbox. */
struct question_box {
	const char *session;     /* its id */
	atoll_sandbox *sandbox;  /* owned */
	bool was_heard;          /* for whoever follows */
};

struct question_boxes {
	atoll_context *context;  /* owned */
	struct question_box list[QUESTION_BOXES_MAX];
	size_t count;
	bool is_partial;         /* one that runs did not answer the last time: it may do so later */
};

void question_boxes_done(struct question_boxes *boxes);
#define cleanup_question_boxes __attribute__((cleanup(question_boxes_done)))

/*
 * Finds the sandbox of that id or name; or with NULL every running one of the user that is not there yet, and passes
 * over those that do not answer. boxes is zero before the first time. Negative with *err.
 */
int question_boxes_open(struct question_boxes *boxes, const char *id_or_name, struct err *err) MUST_USE;

/* Closes it; the last one takes its place. */
void question_boxes_remove(struct question_boxes *boxes, size_t index);

/*
 * Negative ends the walk with that. *row: what it was made of; who sets it to NULL has it from then on.
 */
typedef int (*question_visit)(void *context, struct question_box *box, const struct asking_question *question,
			      atoll_record **row);
typedef int (*grant_visit)(void *context, struct question_box *box, const struct asking_grant *grant);

/* Every question that the sandboxes have; look: "list" or "find" of ATOLL_LOOK. One that ends meanwhile has none. */
int question_boxes_visit(struct question_boxes *boxes, const char *look, question_visit visit, void *context,
			 struct err *err) MUST_USE;
int question_boxes_visit_grants(struct question_boxes *boxes, grant_visit visit, void *context, struct err *err)
	MUST_USE;

/* Asks for what is new behind "after": one answer, ATOLL_EVENT_DONE, for questions_visit(). */
int question_box_follow(struct question_box *box, uint64_t after, struct err *err) MUST_USE;

/* Those of one result of atoll_look(): how many. */
int questions_visit(struct question_box *box, const atoll_record *result, question_visit visit, void *context,
		    struct err *err) MUST_USE;

/*
 * "3" or "SESSION:3": the number in *ret_number, and opens as question_boxes_open() does. what: "question", "grant"
 * for errors.
 */
int question_open_named(struct question_boxes *boxes, const char *word, const char *what, uint32_t *ret_number,
			struct err *err) MUST_USE;

/* How a person names a question of any session, "SESSION:3": what question_open_named() takes. Returns out. */
const char *question_name(char out[QUESTION_NAME_SIZE], const char *session, uint32_t number);
