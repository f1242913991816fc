/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The questions and grants of running sandboxes, as the verbs ask, approve, deny and grants get them from the boxes:
 * connections, one message and its answer, and which question a word on the command line means.
 */

#include "base/buf.h"
#include "base/err.h"
#include "session/record.h"
#include "wire/asking.h"

enum { QUESTION_BOXES_MAX = 256, QUESTION_NAME_SIZE = SESSION_ID_SIZE + 12 };

/* A connection to the box of a session. */
struct question_box {
	char session[SESSION_ID_SIZE];
	int fd;                  /* owned; FD_NONE: it is gone */
	uint64_t told;           /* what the box has told so far */
};

struct question_boxes {
	struct question_box list[QUESTION_BOXES_MAX];
	size_t count;
	struct buf scratch;      /* the last answer: what is borrowed from it lasts until the next */
};

/* Closes every connection, and frees the last answer. */
void question_boxes_done(struct question_boxes *boxes);
#define cleanup_question_boxes __attribute__((cleanup(question_boxes_done)))

/* To be done before anything else, so that question_boxes_done() finds nothing to close. */
void question_boxes_init(struct question_boxes *boxes);

/*
 * Connects to the session of that id or name; or with NULL to every running one of the user that is not connected yet,
 * and passes over those that do not answer.
 */
int question_boxes_open(struct question_boxes *boxes, const char *id_or_name, struct err *err) MUST_USE;

/* Sends the request for what changed since the last time; question_box_hear() has the answer. -errno with *err. */
int question_box_ask(struct question_box *box, enum asking_look how, struct err *err) MUST_USE;

/* Negative ends the walk with that. */
typedef int (*question_visit)(void *context, const struct question_box *box, const struct asking_question *question);
typedef int (*grant_visit)(void *context, const struct question_box *box, const struct asking_grant *grant);

/* Takes the answer to question_box_ask(), and hands each question to visit. How many, or -errno with *err. */
int question_box_hear(struct question_boxes *boxes, struct question_box *box, question_visit visit, void *context,
		      struct err *err) MUST_USE;

/* Every question, and every grant, that there is now. A box that ends meanwhile has none. */
int question_boxes_visit(struct question_boxes *boxes, enum asking_look how, question_visit visit, void *context,
			 struct err *err) MUST_USE;
int question_boxes_visit_grants(struct question_boxes *boxes, grant_visit visit, void *context, struct err *err)
	MUST_USE;

/*
 * "3" or "SESSION:3": the number in *ret_number, and connects as question_boxes_open() does. what: "question", "grant"
 * for errors.
 */
int question_open_named(struct question_boxes *boxes, const char *word, const char *what, uint32_t *ret_number,
			struct err *err) MUST_USE;

/* One message of the caller's, and its answer, which must be of this type: its first number. */
int question_box_tell(struct question_boxes *boxes, struct question_box *box, struct buf *message, uint16_t type,
		      uint32_t *ret_value, struct err *err) MUST_USE;

/* How a person names a question of any session, "SESSION:3": what question_open_named() takes. Returns out. */
const char *question_name(char out[QUESTION_NAME_SIZE], const char *session, uint32_t number);
