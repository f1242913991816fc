/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/service.h"

#include <string.h>

#include "base/str.h"

/* The type of a row's frame; never that of a message. */
enum { SERVICE_ROW = 191 };

/* The lists of values that a frame may have: its own, and what all of its kind may have. */
struct lists {
	const struct service_field *own, *further;
	const struct service_field *row;      /* of "row" */
};

static const struct service_field *find_field(const struct service_field *list, const char *key)
{
	for (; list && list->key; list++)
		if (str_equal(list->key, key))
			return list;
	return NULL;
}

static bool is_id(const char *text)
{
	return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789")];
}

static bool is_line(const char *text)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	return *text;
}

static bool is_text_allowed(const char *text, uint32_t flags)
{
	return (!(flags & SERVICE_IS_ID) || is_id(text)) && (!(flags & SERVICE_IS_LINE) || is_line(text));
}

static bool is_vector_allowed(const struct service_field *rule, char **strings)
{
	size_t count = strv_count((const char *const *)strings);
	size_t step = rule->flags & SERVICE_PAIRS ? 2 : rule->flags & SERVICE_TRIPLES ? 3 : 1;

	if (count > rule->max || count % step || (rule->flags & SERVICE_REQUIRED && !count))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_text_allowed(strings[i], rule->flags) || strlen(strings[i]) > SERVICE_TEXT_MAX)
			return false;
	return true;
}

static bool is_value_allowed(const struct service_field *rule, const struct field *field, size_t fd_count)
{
	switch (rule->kind) {
	case FIELD_U64:
		return field->number <= rule->max;
	case FIELD_STRING:
		return field->size <= rule->max && is_text_allowed(field->bytes, rule->flags);
	case FIELD_BYTES:
		return field->size <= rule->max;
	case FIELD_STRINGS:
		return is_vector_allowed(rule, field->strings);
	case FIELD_FD:
		return field->number < fd_count;
	default:
		return false;
	}
}

/* The frames' strings end within their bytes, so that a row can be read in place of its message's own. */
static int open_row(const struct field *field, struct frame *ret_frame)
{
	int r = frame_open(ret_frame, (void *)field->bytes, field->size);

	return r < 0 || ret_frame->type != SERVICE_ROW ? -EBADMSG : 0;
}

static int read_fields(struct frame *frame, const struct lists *lists, size_t fd_count, struct service_message *message,
		       const char **ret_problem);

/* An empty one. Its values are not touched: they are as many as it counts. */
static void begin_message(struct service_message *message)
{
	memset(message, 0, offsetof(struct service_message, fields));
	for (size_t i = 0; i < FRAME_FD_MAX; i++)
		message->fds[i] = FD_NONE;
}

/* Whether all rows are as the table has them: each is read, and read again by whom it is for. */
static int check_row(const struct field *field, const struct lists *lists, const char **ret_problem)
{
	const struct lists row = { lists->row };
	struct service_message *read;
	struct frame frame;
	int r = -EBADMSG;

	if (!lists->row || open_row(field, &frame) < 0)
		return r;
	read = malloc(sizeof *read);
	if (!read)
		return -ENOMEM;
	begin_message(read);
	r = read_fields(&frame, &row, 0, read, ret_problem);
	service_message_done(read);
	free(read);
	return r;
}

static int check_field(const struct lists *lists, const struct field *field, size_t fd_count,
		       const struct service_message *message, const char **ret_problem)
{
	const struct service_field *rule = find_field(lists->own, field->key);

	if (!rule)
		rule = find_field(lists->further, field->key);
	if (!rule)
		return -EBADMSG;
	*ret_problem = rule->key;
	if (rule->kind != field->kind || !is_value_allowed(rule, field, fd_count))
		return -EBADMSG;
	if (rule->flags & SERVICE_REPEATED)
		return check_row(field, lists, ret_problem);
	return service_get(message, field->key) ? -EBADMSG : 0;
}

static int check_required(const struct service_field *list, const struct service_message *message,
			  const char **ret_problem)
{
	for (; list && list->key; list++) {
		if (!(list->flags & SERVICE_REQUIRED) || service_get(message, list->key))
			continue;
		*ret_problem = list->key;
		return -EBADMSG;
	}
	return 0;
}

/* On failure the message holds what was read, for service_message_done(). */
static int read_fields(struct frame *frame, const struct lists *lists, size_t fd_count, struct service_message *message,
		       const char **ret_problem)
{
	struct field field;
	int r;

	for (;;) {
		*ret_problem = "form";
		r = field_get(frame, &field);
		if (r <= 0)
			break;
		*ret_problem = "unknown value";
		r = message->field_count == SERVICE_FIELDS_MAX ? -EBADMSG
			: check_field(lists, &field, fd_count, message, ret_problem);
		if (r < 0) {
			free(field.strings);
			return r;
		}
		message->fields[message->field_count++] = field;
	}
	if (r < 0)
		return r;
	return check_required(lists->own, message, ret_problem);
}

/* Each descriptor that came is meant by one value. */
static int check_descriptors(const struct service_message *message, size_t fd_count)
{
	unsigned meant = 0;

	for (size_t i = 0; i < message->field_count; i++) {
		const struct field *field = &message->fields[i];

		if (field->kind != FIELD_FD)
			continue;
		if (meant & 1u << field->number)
			return -EBADMSG;
		meant |= 1u << field->number;
	}
	return meant == (1u << fd_count) - 1 ? 0 : -EBADMSG;
}

static int read_head(struct frame *frame, struct service_message *message, struct lists *ret_lists)
{
	const struct service_rule *rule;

	message->type = (enum service_message_type)frame->type;
	switch (frame->type) {
	case SERVICE_SETUP:
		ret_lists->own = service_setup_fields;
		return 0;
	case SERVICE_READY:
		return 0;
	case SERVICE_EVENT:
		message->event = frame_get_u32(frame);
		ret_lists->own = service_event_fields(message->event);
		return ret_lists->own ? 0 : -EBADMSG;
	case SERVICE_REQUEST:
	case SERVICE_REPLY:
		break;
	default:
		return -EBADMSG;
	}
	message->ticket = frame_get_u64(frame);
	message->operation = frame_get_u32(frame);
	rule = service_rule(message->operation);
	if (!rule || !message->ticket)
		return -EBADMSG;
	if (frame->type == SERVICE_REQUEST) {
		*ret_lists = (struct lists){ rule->request, service_credential_fields };
		return 0;
	}
	message->status = frame_get_u32(frame);
	*ret_lists = message->status < 300 ? (struct lists){ rule->reply, NULL, rule->row }
		: (struct lists){ service_error_fields };
	return service_is_status(message->status) ? 0 : -EBADMSG;
}

int service_read(struct frame *frame, const int *fds, size_t fd_count, struct service_message *ret_message,
		 const char **ret_problem)
{
	struct lists lists = { 0 };
	int r;

	begin_message(ret_message);
	*ret_problem = "head";
	if (fd_count > FRAME_FD_MAX)
		return -EBADMSG;
	r = read_head(frame, ret_message, &lists);
	if (r == 0)
		r = read_fields(frame, &lists, fd_count, ret_message, ret_problem);
	if (r == 0) {
		r = check_descriptors(ret_message, fd_count);
		*ret_problem = r < 0 ? "descriptors" : NULL;
	}
	for (size_t i = 0; r == 0 && i < fd_count; i++)
		ret_message->fds[i] = fds[i];
	if (r < 0)
		service_message_done(ret_message);
	return r;
}

void service_message_done(struct service_message *message)
{
	for (size_t i = 0; i < message->field_count; i++)
		free(message->fields[i].strings);
	message->field_count = 0;
	for (size_t i = 0; i < FRAME_FD_MAX; i++)
		close_fd(&message->fds[i]);
}

const struct field *service_get(const struct service_message *message, const char *key)
{
	for (size_t i = 0; i < message->field_count; i++)
		if (str_equal(message->fields[i].key, key))
			return &message->fields[i];
	return NULL;
}

uint64_t service_number(const struct service_message *message, const char *key, uint64_t missing)
{
	const struct field *field = service_get(message, key);

	return field && field->kind == FIELD_U64 ? field->number : missing;
}

const char *service_string(const struct service_message *message, const char *key)
{
	const struct field *field = service_get(message, key);

	return field && field->kind == FIELD_STRING ? field->bytes : NULL;
}

const char *const *service_strings(const struct service_message *message, const char *key)
{
	const struct field *field = service_get(message, key);

	return field && field->kind == FIELD_STRINGS ? (const char *const *)field->strings : NULL;
}

int service_take_fd(struct service_message *message, const char *key)
{
	const struct field *field = service_get(message, key);

	if (!field || field->kind != FIELD_FD || message->fds[field->number] < 0)
		return -ENOENT;
	return take_fd(&message->fds[field->number]);
}

int service_next_row(const struct service_message *message, size_t *at, struct service_message *ret_row)
{
	const struct service_rule *rule = service_rule(message->operation);
	const struct lists lists = { rule ? rule->row : NULL };
	const char *problem;
	struct frame frame;
	int r;

	while (*at < message->field_count && !str_equal(message->fields[*at].key, "row"))
		(*at)++;
	if (*at == message->field_count)
		return 0;
	begin_message(ret_row);
	r = open_row(&message->fields[(*at)++], &frame);
	if (r == 0)
		r = read_fields(&frame, &lists, 0, ret_row, &problem);
	if (r < 0)
		service_message_done(ret_row);
	return r < 0 ? r : 1;
}

void service_begin_setup(struct buf *out)
{
	frame_begin(out, SERVICE_SETUP);
}

void service_begin_ready(struct buf *out)
{
	frame_begin(out, SERVICE_READY);
}

void service_begin_request(struct buf *out, uint64_t ticket, enum service_operation operation)
{
	frame_begin(out, SERVICE_REQUEST);
	frame_put_u64(out, ticket);
	frame_put_u32(out, operation);
}

void service_begin_reply(struct buf *out, uint64_t ticket, enum service_operation operation, uint32_t status)
{
	frame_begin(out, SERVICE_REPLY);
	frame_put_u64(out, ticket);
	frame_put_u32(out, operation);
	frame_put_u32(out, status);
}

void service_begin_event(struct buf *out, enum service_event event)
{
	frame_begin(out, SERVICE_EVENT);
	frame_put_u32(out, event);
}

int service_end(struct buf *out, size_t fd_count)
{
	struct service_message *message;
	const char *problem;
	struct frame frame;
	int r = frame_end(out);

	if (r == 0 && out->size > FRAME_MESSAGE_MAX)
		r = -EMSGSIZE;
	if (r == 0)
		r = frame_open(&frame, out->bytes, out->size);
	if (r < 0)
		return r;
	message = malloc(sizeof *message);
	if (!message)
		return -ENOMEM;
	r = service_read(&frame, (const int[FRAME_FD_MAX]){ FD_NONE, FD_NONE, FD_NONE, FD_NONE }, fd_count, message,
			 &problem);
	if (r == 0)
		service_message_done(message);
	free(message);
	return r;
}

void service_begin_row(struct buf *row)
{
	frame_begin(row, SERVICE_ROW);
}

void service_put_row(struct buf *out, struct buf *row)
{
	int r = frame_end(row);

	if (r < 0)
		out->error = out->error ? out->error : r;
	else
		field_put_bytes(out, "row", row->bytes, row->size);
}
