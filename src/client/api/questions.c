/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "client/api/cursor.h"
#include "client/api/fault.h"
#include "client/api/sandbox.h"
#include "wire/asking.h"

/* Questions and grants come as one list in the form of wire/asking.h. What a question is about is from inside. */

static const char *const scopes[ASKING_SCOPE_COUNT] = { "once", "uses", "time", "session", "forever" };
static const char *const states[ASKING_STATE_COUNT] = { "waits", "listed", "answered" };

static int put_strings(struct atoll_record *record, const char *key, char **strings)
{
	const struct field field = { .key = key, .kind = FIELD_STRINGS, .strings = strings };

	return strings ? record_add_field(record, &field) : 0;
}

static int put_shown(struct atoll_record *record, const struct asking_shown *shown, const char *const *kinds)
{
	const char *const texts[][2] = {
		{ "method", shown->method }, { "path", shown->path }, { "program", shown->program },
		{ "rule", shown->rule },     { "kind", kinds[shown->kind] },
	};
	int r = record && shown->subject
			? record_put_bytes(record, "subject", shown->subject, strlen(shown->subject)) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++)
		r = record_put_string(record, texts[i][0], texts[i][1]);
	if (r == 0 && shown->port)
		r = record_put_u64(record, "port", shown->port);
	return r == 0 ? put_strings(record, "argv", shown->argv) : r;
}

static int put_numbers(struct atoll_record *record, const struct field *fields, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		if (fields[i].number != UINT64_MAX)
			r = record_put_u64(record, fields[i].key, fields[i].number);
	return r;
}

static struct atoll_record *make_question(const struct asking_question *question, const char *const *kinds)
{
	struct atoll_record *record = record_new(ATOLL_QUESTION);
	const struct field numbers[] = {
		{ .key = "number", .number = question->number },   { .key = "waiting", .number = question->waiting },
		{ .key = "times", .number = question->times },	   { .key = "asked_ns", .number = question->asked_ns },
		{ .key = "left_ms", .number = question->left_ms },
	};
	int r = put_shown(record, &question->shown, kinds);

	if (r == 0)
		r = put_numbers(record, numbers, ARRAY_SIZE(numbers));
	if (r == 0)
		r = record_put_bytes(record, "hash", question->hash, ASKING_HASH_SIZE);
	if (r == 0)
		r = record_put_string(record, "state", states[question->state]);
	if (r == 0)
		r = record_put_string(record, "why", question->shown.why);
	if (r == 0)
		r = record_put_string(record, "words", question->shown.words);
	if (r == 0)
		return record;
	atoll_record_free(record);
	return NULL;
}

static struct atoll_record *make_grant(const struct asking_grant *grant, const char *const *kinds)
{
	struct atoll_record *record = record_new(ATOLL_GRANT);
	const struct field numbers[] = {
		{ .key = "number", .number = grant->number },	{ .key = "refusal", .number = grant->is_refusal },
		{ .key = "used", .number = grant->used },	{ .key = "uses_left", .number = grant->uses_left },
		{ .key = "left_ms", .number = grant->left_ms },
	};
	int r = put_shown(record, &grant->shown, kinds);

	if (r == 0)
		r = put_numbers(record, numbers, ARRAY_SIZE(numbers));
	if (r == 0)
		r = record_put_string(record, "scope", scopes[grant->scope]);
	if (r == 0)
		r = record_put_string(record, "by", grant->by);
	if (r == 0)
		return record;
	atoll_record_free(record);
	return NULL;
}

/* The names of enum action_kind, as the box has them: those that this library knows. */
static const char *const action_names[] = {
	"file.read", "file.write", "file.apply", "exec", "net.connect", "net.listen", "net.dns", "http.request",
	"device", "env", "syscall", "alert",
};

static int read_questions(struct frame *frame, struct rows *rows)
{
	struct asking_question question;
	int r;

	(void)frame_get_u64(frame); /* how far this tells */
	while ((r = asking_question_get(frame, &question)) == 1) {
		bool is_known = question.shown.kind < ARRAY_SIZE(action_names) && question.state < ASKING_STATE_COUNT;

		r = is_known ? rows_add(rows, make_question(&question, action_names)) : 0;
		free(question.shown.argv);
		if (r < 0)
			return r;
	}
	return r;
}

static int read_grants(struct frame *frame, struct rows *rows)
{
	struct asking_grant grant;
	int r;

	while ((r = asking_grant_get(frame, &grant)) == 1) {
		bool is_known = grant.shown.kind < ARRAY_SIZE(action_names) && grant.scope < ASKING_SCOPE_COUNT;

		r = is_known ? rows_add(rows, make_grant(&grant, action_names)) : 0;
		free(grant.shown.argv);
		if (r < 0)
			return r;
	}
	return r;
}

struct list {
	enum link_message type;
	const char *key;
	uint32_t kind;
	int (*read)(struct frame *frame, struct rows *rows);
	bool has_start;          /* it begins behind a number */
};

static int fill(struct atoll_cursor *cursor, const struct list *list, const struct atoll_record *result)
{
	const void *bytes;
	struct frame frame;
	size_t size;
	int r = atoll_get_bytes(result, list->key, &bytes, &size) ? 0 : -EBADMSG;

	/* It is this library's own copy. */
	if (r == 0)
		r = frame_open(&frame, (void *)bytes, size);
	return r == 0 ? list->read(&frame, &cursor->rows) : r;
}

static int get_list(atoll_sandbox *sandbox, const struct list *list, atoll_cursor **ret, struct atoll_error *error)
{
	struct atoll_record *result = NULL;
	struct atoll_cursor *cursor;
	struct request request = { 0 };
	struct buf out;
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if (!ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "questions", "there is no place for a cursor");
	cursor = cursor_new(sandbox->context, list->kind, error);
	if (!cursor)
		return ATOLL_E_NO_MEMORY;
	request.ticket = sandbox_begin(sandbox, &out, list->type);
	request.out = &out;
	if (list->has_start)
		frame_put_u64(&out, 0);
	r = sandbox_request(sandbox, &request, NULL, &result, error);
	if (r == 0) {
		r = fill(cursor, list, result);
		r = r < 0 ? fault_errno(error, r, "questions") : 0;
	}
	atoll_record_free(result);
	if (r < 0)
		atoll_cursor_free(cursor);
	else
		*ret = cursor;
	return r;
}

int atoll_questions(atoll_sandbox *sandbox, atoll_cursor **ret, struct atoll_error *error)
{
	static const struct list list = { LINK_QUESTIONS, "questions", ATOLL_QUESTION, read_questions, false };

	return get_list(sandbox, &list, ret, error);
}

int atoll_grants(atoll_sandbox *sandbox, atoll_cursor **ret, struct atoll_error *error)
{
	static const struct list list = { LINK_GRANTS, "grants", ATOLL_GRANT, read_grants, true };

	return get_list(sandbox, &list, ret, error);
}
