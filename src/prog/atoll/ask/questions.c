/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/ask/questions.h"

#include <string.h>

#include "approve/question-words.h"
#include "base/names.h"
#include "base/num.h"
#include "base/str.h"
#include "policy/decide.h"

const char *question_name(char out[QUESTION_NAME_SIZE], const char *session, uint32_t number)
{
	return str_format(out, QUESTION_NAME_SIZE, "%s:%u", session, number) < 0 ? "" : out;
}

/* ---- sandboxes ---- */

void question_boxes_done(struct question_boxes *boxes)
{
	while (boxes->count)
		question_boxes_remove(boxes, boxes->count - 1);
	atoll_context_free(boxes->context);
}

void question_boxes_remove(struct question_boxes *boxes, size_t index)
{
	atoll_sandbox_free(boxes->list[index].sandbox);
	boxes->list[index] = boxes->list[--boxes->count];
}

static void add(struct question_boxes *boxes, atoll_sandbox *sandbox)
{
	boxes->list[boxes->count++] = (struct question_box){ .session = atoll_id(sandbox), .sandbox = sandbox };
}

static bool is_known(const struct question_boxes *boxes, const char *session)
{
	for (size_t i = 0; i < boxes->count; i++)
		if (str_equal(boxes->list[i].session, session))
			return true;
	return false;
}

static int open_all(struct question_boxes *boxes, struct err *err)
{
	cleanup_record atoll_record *filter = atoll_record_new(ATOLL_FILTER);
	struct atoll_error error = LIBRARY_ERROR, ignored = LIBRARY_ERROR;
	cleanup_cursor atoll_cursor *cursor = NULL;
	atoll_record *row;
	int r = atoll_set_u64(filter, "running", 1, &error);

	boxes->is_partial = false;
	if (r == 0)
		r = atoll_list(boxes->context, filter, &cursor, &error);
	if (r < 0)
		return library_fail(&error, err);
	while (boxes->count < QUESTION_BOXES_MAX && (r = library_next(cursor, &row, err)) == 1) {
		const char *session = library_text(row, "id");
		atoll_sandbox *sandbox;

		if (!is_known(boxes, session)) {
			if (atoll_find(boxes->context, session, &sandbox, &ignored) == 0)
				add(boxes, sandbox);
			else
				boxes->is_partial = true;
		}
		atoll_record_free(row);
	}
	return r < 0 ? r : 0;
}

int question_boxes_open(struct question_boxes *boxes, const char *id_or_name, struct err *err)
{
	atoll_sandbox *sandbox;
	int r = boxes->context ? 0 : library_context(0, &boxes->context, err);

	if (r < 0)
		return r;
	if (!id_or_name)
		return open_all(boxes, err);
	r = library_find(boxes->context, id_or_name, &sandbox, err);
	if (r == 0)
		add(boxes, sandbox);
	return r;
}

/* ---- rows ---- */

static uint32_t number32(const atoll_record *row, const char *key)
{
	return (uint32_t)library_number(row, key);
}

static uint64_t bounded(const atoll_record *row, const char *key)
{
	uint64_t number = UINT64_MAX;

	(void)atoll_get_u64(row, key, &number);
	return number;
}

static uint32_t find_name(const char *const *names, size_t count, const atoll_record *row, const char *key)
{
	const char *name = library_text(row, key);
	int found = name ? names_find(names, count, name) : -1;

	return found < 0 ? 0 : (uint32_t)found;
}

/* A library of another release may leave out what was never there before. */
static const char *text_or(const atoll_record *row, const char *key, const char *otherwise)
{
	const char *text = library_text(row, key);

	return text ? text : otherwise;
}

static struct asking_shown read_shown(const atoll_record *row)
{
	const char *const *argv = NULL;

	(void)atoll_get_strings(row, "argv", &argv);
	return (struct asking_shown){
		.kind = find_name(action_kind_names, ACTION_KIND_COUNT, row, "kind"),
		.flags = number32(row, "flags"),
		.subject = text_or(row, "subject", ""),
		.argv = (char **)argv,
		.method = library_text(row, "method"),
		.path = library_text(row, "path"),
		.program = library_text(row, "program"),
		.cwd = library_text(row, "cwd"),
		.port = number32(row, "port"),
		.rule = text_or(row, "rule", ""),
		.why = text_or(row, "why", ""),
		.words = library_text(row, "words"),
	};
}

/* Borrows from the row. */
static struct asking_question read_question(const atoll_record *row)
{
	static const char *const states[ASKING_STATE_COUNT] = { "waits", "listed", "answered" };
	static const uint8_t none[ASKING_HASH_SIZE];
	const void *hash = none;
	size_t size;

	if (!atoll_get_bytes(row, "hash", &hash, &size) || size != ASKING_HASH_SIZE)
		hash = none;
	return (struct asking_question){
		.number = number32(row, "number"),
		.hash = hash,
		.state = find_name(states, ASKING_STATE_COUNT, row, "state"),
		.waiting = number32(row, "waiting"),
		.times = number32(row, "times"),
		.pid = number32(row, "pid"),
		.asked_ns = library_number(row, "asked_ns"),
		.left_ms = bounded(row, "left_ms"),
		.is_allowed = number32(row, "allowed"),
		.shown = read_shown(row),
	};
}

static struct asking_grant read_grant(const atoll_record *row)
{
	return (struct asking_grant){
		.number = number32(row, "number"),
		.is_refusal = number32(row, "refusal"),
		.question = number32(row, "question"),
		.scope = find_name(asking_scope_names, ASKING_SCOPE_COUNT, row, "scope"),
		.used = library_number(row, "used"),
		.uses_left = bounded(row, "uses_left"),
		.left_ms = bounded(row, "left_ms"),
		.given_ns = library_number(row, "given_ns"),
		.by = text_or(row, "by", ""),
		.shown = read_shown(row),
	};
}

/* ---- all of them ---- */

int questions_visit(struct question_box *box, const atoll_record *result, question_visit visit, void *context,
		    struct err *err)
{
	struct atoll_error error = LIBRARY_ERROR;
	cleanup_cursor atoll_cursor *cursor = NULL;
	atoll_record *row;
	int count = 0, r = atoll_looked(box->sandbox, result, &cursor, &error);

	if (r < 0)
		return library_fail(&error, err);
	while ((r = library_next(cursor, &row, err)) == 1) {
		const struct asking_question question = read_question(row);

		count++;
		r = visit(context, box, &question, &row);
		atoll_record_free(row);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : count;
}

/* A sandbox that ends while it is asked has nothing to say any more. */
static int fail_unless_gone(const struct atoll_error *error, struct err *err)
{
	return library_is_gone(error) ? 0 : library_fail(error, err);
}

/* In as many messages as it takes. */
static int visit_box(struct question_box *box, atoll_record *look, question_visit visit, void *context,
		     struct err *err)
{
	struct atoll_error error = LIBRARY_ERROR;
	int r = atoll_set_u64(look, "after", 0, &error) < 0 ? library_fail(&error, err) : 1;

	while (r > 0) {
		cleanup_record atoll_record *result = NULL;

		if (atoll_look(box->sandbox, look, NULL, &result, &error) < 0)
			return fail_unless_gone(&error, err);
		r = questions_visit(box, result, visit, context, err);
		if (r >= 0 && atoll_set_u64(look, "after", library_number(result, "after"), &error) < 0)
			r = library_fail(&error, err);
	}
	return r;
}

int question_boxes_visit(struct question_boxes *boxes, const char *look, question_visit visit, void *context,
			 struct err *err)
{
	cleanup_record atoll_record *how = atoll_record_new(ATOLL_LOOK);
	struct atoll_error error = LIBRARY_ERROR;
	int r = atoll_set_string(how, "look", look, &error) < 0 ? library_fail(&error, err) : 0;

	for (size_t i = 0; r == 0 && i < boxes->count; i++)
		r = visit_box(&boxes->list[i], how, visit, context, err);
	return r;
}

int question_box_follow(struct question_box *box, uint64_t after, struct err *err)
{
	cleanup_record atoll_record *look = atoll_record_new(ATOLL_LOOK);
	struct atoll_error error = LIBRARY_ERROR;
	uint64_t ticket;
	int r = atoll_set_string(look, "look", "follow", &error);

	if (r == 0)
		r = atoll_set_u64(look, "after", after, &error);
	if (r == 0)
		r = atoll_look(box->sandbox, look, &ticket, NULL, &error);
	return r < 0 ? library_fail(&error, err) : 0;
}

static int visit_grants(struct question_box *box, atoll_cursor *cursor, grant_visit visit, void *context,
			struct err *err)
{
	atoll_record *row;
	int r;

	while ((r = library_next(cursor, &row, err)) == 1) {
		const struct asking_grant grant = read_grant(row);

		r = visit(context, box, &grant);
		atoll_record_free(row);
		if (r < 0)
			break;
	}
	atoll_cursor_free(cursor);
	return r;
}

int question_boxes_visit_grants(struct question_boxes *boxes, grant_visit visit, void *context, struct err *err)
{
	struct atoll_error error = LIBRARY_ERROR;
	int r = 0;

	for (size_t i = 0; r == 0 && i < boxes->count; i++) {
		atoll_cursor *cursor;

		r = atoll_grants(boxes->list[i].sandbox, &cursor, &error) < 0
			    ? fail_unless_gone(&error, err)
			    : visit_grants(&boxes->list[i], cursor, visit, context, err);
	}
	return r;
}

int question_open_named(struct question_boxes *boxes, const char *word, const char *what, uint32_t *ret_number,
			struct err *err)
{
	const char *colon = strrchr(word, ':');
	char session[256], shown[ERR_QUOTE_SIZE];
	uint64_t number;

	if (num_parse_u64(colon ? colon + 1 : word, &number) < 0 || !number || number > UINT32_MAX ||
	    str_format(session, sizeof session, "%.*s", colon ? (int)(colon - word) : 0, word) < 0) {
		err_set(err, ERR_USAGE, EINVAL, "ask", "%s is not the number of a %s", err_quote(shown, word), what);
		err_hint(err, "write it as 3, or as SESSION:3");
		return -EINVAL;
	}
	*ret_number = (uint32_t)number;
	return question_boxes_open(boxes, colon ? session : NULL, err);
}
