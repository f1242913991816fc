/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/inside/inside.h"

#include <string.h>

#include "base/str.h"
#include "client/api/cursor.h"
#include "client/api/fault.h"
#include "client/api/record.h"

/* Commands that last: who they are, and streams of those that run. Rows come as frames, one behind the other. */

int inside_request(struct atoll_sandbox *sandbox, const struct inside_request *made, uint64_t *ticket,
		   struct atoll_record **result, struct atoll_error *error)
{
	struct request request = { 0 };
	size_t unused = 0;
	struct buf out;
	int r = sandbox_check(sandbox, error);

	if (r == 0 && made->record && atoll_record_kind(made->record) != made->kind)
		r = fault_set(error, ATOLL_E_INVALID, 0, made->where, "the record is of another kind");
	if (r == 0)
		r = sandbox_need(sandbox, 3, error);
	if (r < 0)
		return r;
	request.ticket = sandbox_begin(sandbox, &out, made->type);
	request.out = &out;
	for (size_t i = 0; i < made->number_count; i++)
		frame_put_u64(&out, made->numbers[i]);
	for (size_t i = 0; i < made->field_count; i++)
		if (made->fields[i].kind == FIELD_U64)
			field_put_u64(&out, made->fields[i].key, made->fields[i].number);
		else
			field_put_string(&out, made->fields[i].key, made->fields[i].bytes);
	r = made->record ? record_put_fields(made->record, NULL, &out, NULL, 0, &unused) : 0;
	if (r == 0)
		return sandbox_request(sandbox, &request, ticket, result, error);
	buf_done(&out);
	return fault_errno(error, r, made->where);
}

int atoll_commands(atoll_sandbox *sandbox, uint64_t after, uint64_t *ticket, atoll_record **result,
		   struct atoll_error *error)
{
	const struct inside_request request = { .type = LINK_COMMANDS, .numbers = { after }, .number_count = 1 };

	return inside_request(sandbox, &request, ticket, result, error);
}

int atoll_attach(atoll_sandbox *sandbox, uint64_t command, const atoll_record *how, uint64_t *ticket,
		 atoll_record **result, struct atoll_error *error)
{
	const struct inside_request request = { .type = LINK_ATTACH, .numbers = { command }, .number_count = 1,
						.record = how, .kind = ATOLL_ATTACH, .where = "attach" };

	return inside_request(sandbox, &request, ticket, result, error);
}

int atoll_close_input(atoll_sandbox *sandbox, uint64_t command, uint64_t *ticket, atoll_record **result,
		      struct atoll_error *error)
{
	const struct inside_request request = { .type = LINK_CLOSE_INPUT, .numbers = { command }, .number_count = 1 };

	return inside_request(sandbox, &request, ticket, result, error);
}

int atoll_update(atoll_sandbox *sandbox, const atoll_record *update, uint64_t *ticket, atoll_record **result,
		 struct atoll_error *error)
{
	const struct inside_request request = { .type = LINK_LABELS, .record = update, .kind = ATOLL_UPDATE,
						.where = "labels" };
	const char *const *labels;

	if (!update || !atoll_get_strings(update, "labels", &labels))
		return fault_set(error, ATOLL_E_INVALID, 0, "labels", "there is nothing to change: \"labels\"");
	return inside_request(sandbox, &request, ticket, result, error);
}

/* ---- rows ---- */

static int read_row(struct rows *rows, uint32_t kind, void *bytes, size_t size)
{
	struct atoll_record *record = record_new(kind);
	struct field field = { 0 };
	struct frame frame;
	int r = record ? frame_open(&frame, bytes, size) : -ENOMEM;

	if (r == 0 && frame.type != LINK_ROW)
		r = -EBADMSG;
	while (r == 0 && (r = field_get(&frame, &field)) == 1) {
		r = record_add_field(record, &field);
		field_done(&field);
	}
	if (r == 0)
		return rows_add(rows, record);
	atoll_record_free(record);
	return r;
}

static int read_rows(struct rows *rows, uint32_t kind, uint8_t *bytes, size_t size)
{
	int r = 0;

	for (size_t at = 0, length; r == 0 && at < size; at += length) {
		length = size - at < FRAME_HEADER_SIZE ? 0 : frame_peek_size(bytes + at);
		if (length < FRAME_HEADER_SIZE || length > size - at)
			return -EBADMSG;
		r = read_row(rows, kind, bytes + at, length);
	}
	return r;
}

int atoll_rows(atoll_sandbox *sandbox, const atoll_record *result, atoll_cursor **ret, struct atoll_error *error)
{
	const char *kind = record_string(result, "kind");
	struct atoll_cursor *cursor;
	const void *bytes;
	uint8_t *copy;
	size_t size;
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if (!ret || !kind || !atoll_get_bytes(result, "rows", &bytes, &size))
		return fault_set(error, ATOLL_E_INVALID, 0, "rows", "this result has no rows");
	cursor = cursor_new(sandbox->context, str_equal(kind, "command") ? ATOLL_COMMAND_INFO : ATOLL_ENTRY, error);
	if (!cursor)
		return ATOLL_E_NO_MEMORY;
	/* Reading puts an end behind each string. */
	copy = malloc(size + 1);
	r = copy ? 0 : -ENOMEM;
	if (r == 0 && size)
		memcpy(copy, bytes, size);
	if (r == 0)
		r = read_rows(&cursor->rows, cursor->kind, copy, size);
	free(copy);
	if (r == 0)
		*ret = cursor;
	else
		atoll_cursor_free(cursor);
	return r < 0 ? fault_errno(error, r, "rows") : 0;
}
