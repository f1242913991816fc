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
	if (r == 0)
		r = record_put_string(record, "cwd", shown->cwd);
	if (r == 0)
		r = record_put_u64(record, "flags", shown->flags);
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
		{ .key = "left_ms", .number = question->left_ms }, { .key = "pid", .number = question->pid },
		{ .key = "allowed", .number = question->is_allowed },
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
		{ .key = "left_ms", .number = grant->left_ms },	{ .key = "given_ns", .number = grant->given_ns },
		{ .key = "question", .number = grant->question },
	};
	int r = put_shown(record, &grant->shown, kinds);

	if (r == 0)
		r = put_numbers(record, numbers, ARRAY_SIZE(numbers));
	if (r == 0)
		r = record_put_string(record, "scope", scopes[grant->scope]);
	if (r == 0)
		r = record_put_string(record, "why", grant->shown.why);
	if (r == 0)
		r = record_put_string(record, "words", grant->shown.words);
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

/* What one answer of the box is made of. */
struct list {
	const char *key;
	uint32_t kind;
	int (*read)(struct frame *frame, struct rows *rows);
};

static const struct list questions_list = { "questions", ATOLL_QUESTION, read_questions };
static const struct list grants_list = { "grants", ATOLL_GRANT, read_grants };

static int fill(struct rows *rows, const struct list *list, const struct atoll_record *result)
{
	const void *bytes;
	struct frame frame;
	size_t size;
	int r = atoll_get_bytes(result, list->key, &bytes, &size) ? 0 : -EBADMSG;

	/* It is this library's own copy. */
	if (r == 0)
		r = frame_open(&frame, (void *)bytes, size);
	return r == 0 ? list->read(&frame, rows) : r;
}

/* What is asked for, and how: a message of numbers. */
struct page {
	enum link_message type;
	size_t count;
	uint64_t after;
	uint32_t look;           /* LINK_ASKS */
};

static void put_page(atoll_sandbox *sandbox, const struct page *page, struct request *request, struct buf *out)
{
	request->ticket = sandbox_begin(sandbox, out, page->type);
	request->out = out;
	if (page->count > 0)
		frame_put_u64(out, page->after);
	if (page->count > 1)
		frame_put_u32(out, page->look);
}

/* *ret_after: behind which the next one begins. */
static int get_page(atoll_sandbox *sandbox, const struct list *list, const struct page *page, struct rows *rows,
		    uint64_t *ret_after, struct atoll_error *error)
{
	struct atoll_record *result = NULL;
	struct request request = { 0 };
	struct buf out;
	int r;

	put_page(sandbox, page, &request, &out);
	r = sandbox_request(sandbox, &request, NULL, &result, error);
	if (r == 0) {
		r = fill(rows, list, result);
		r = r < 0 ? fault_errno(error, r, "questions") : 0;
	}
	if (r == 0 && !record_u64(result, "after", ret_after) && rows->count)
		(void)record_u64(rows->list[rows->count - 1], "number", ret_after);
	atoll_record_free(result);
	return r;
}

/* More than fits into one message comes in several; a box that knows of no "after" has one. */
static int get_list(atoll_sandbox *sandbox, const struct list *list, struct page page, atoll_cursor **ret,
		    struct atoll_error *error)
{
	struct atoll_cursor *cursor = cursor_new(sandbox->context, list->kind, error);
	size_t before;
	int r;

	if (!cursor)
		return ATOLL_E_NO_MEMORY;
	do {
		before = cursor->rows.count;
		r = get_page(sandbox, list, &page, &cursor->rows, &page.after, error);
	} while (r == 0 && page.count && cursor->rows.count > before);
	if (r < 0)
		atoll_cursor_free(cursor);
	else
		*ret = cursor;
	return r;
}

static int check(const atoll_sandbox *sandbox, const void *ret, struct atoll_error *error)
{
	int r = sandbox_check(sandbox, error);

	return r == 0 && !ret ? fault_set(error, ATOLL_E_INVALID, 0, "questions", "there is no place for a cursor")
			      : r;
}

int atoll_questions(atoll_sandbox *sandbox, atoll_cursor **ret, struct atoll_error *error)
{
	int r = check(sandbox, ret, error);

	if (r == 0)
		r = sandbox_need(sandbox, 2, error);
	if (r == ATOLL_E_PROTOCOL && !sandbox->refusal)
		return get_list(sandbox, &questions_list, (struct page){ LINK_QUESTIONS }, ret, error);
	return r < 0 ? r
		     : get_list(sandbox, &questions_list, (struct page){ LINK_ASKS, 2, 0, ASKING_LIST }, ret, error);
}

int atoll_look(atoll_sandbox *sandbox, const atoll_record *look, uint64_t *ticket, atoll_record **result,
	       struct atoll_error *error)
{
	static const char *const ways[ASKING_LOOK_COUNT] = { "list", "follow", "glance", "find" };
	const char *way = record_string(look, "look");
	struct page page = { LINK_ASKS, 2 };
	struct request request = { 0 };
	struct buf out;
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	while (page.look < ARRAY_SIZE(ways) && (!way || !str_equal(way, ways[page.look])))
		page.look++;
	if (atoll_record_kind(look) != ATOLL_LOOK || page.look == ARRAY_SIZE(ways))
		return fault_set(error, ATOLL_E_INVALID, 0, "questions", "\"look\" is list, follow, glance or find");
	(void)record_u64(look, "after", &page.after);
	r = sandbox_need(sandbox, 2, error);
	if (r < 0)
		return r;
	put_page(sandbox, &page, &request, &out);
	return sandbox_request(sandbox, &request, ticket, result, error);
}

int atoll_looked(atoll_sandbox *sandbox, const atoll_record *result, atoll_cursor **ret, struct atoll_error *error)
{
	struct atoll_cursor *cursor;
	int r = check(sandbox, ret, error);

	if (r < 0)
		return r;
	cursor = cursor_new(sandbox->context, ATOLL_QUESTION, error);
	if (!cursor)
		return ATOLL_E_NO_MEMORY;
	r = fill(&cursor->rows, &questions_list, result);
	if (r == 0) {
		*ret = cursor;
		return 0;
	}
	atoll_cursor_free(cursor);
	return r == -EBADMSG ? fault_set(error, ATOLL_E_INVALID, 0, "questions", "it is no result of atoll_look()")
			     : fault_errno(error, r, "questions");
}

int atoll_grants(atoll_sandbox *sandbox, atoll_cursor **ret, struct atoll_error *error)
{
	int r = check(sandbox, ret, error);

	return r < 0 ? r : get_list(sandbox, &grants_list, (struct page){ LINK_GRANTS, 1 }, ret, error);
}
