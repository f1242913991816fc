/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. A record is formatted straight into the queue of whole lines; its last member is the hash of
 * the line before, so one pass of SHA-256 over the new line makes the next link. Nothing is allocated per
 * record: the queue grows to the size of a batch and keeps its memory. write(2) takes many lines at once.
 * A record that would be longer than AUDIT_RECORD_MAX is taken back and formatted again with its parts cut,
 * since an agent must not be able to make its own events unloggable with a long name.
 */
#include "audit/writer.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"
#include "os/clock.h"

enum {
	/* Bytes kept of each part of a cut record: an escape takes up to 6 times as many, and all fit together. */
	CUT_SUBJECT = 4096,
	CUT_EXE = 4096,
	CUT_RULE = 512,
	QUEUE_FIRST = 16 << 10,
	/* The queue above which memory goes back to the system at a flush: an idle box stays small. */
	QUEUE_KEPT = 64 << 10,
};

static bool is_session_id(const char *session)
{
	size_t length = strspn(session, "abcdefghijklmnopqrstuvwxyz0123456789");

	return length == SESSION_ID_SIZE - 1 && !session[length];
}

static int check_log(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	return !(flags & O_APPEND) || (flags & O_ACCMODE) == O_RDONLY ? -EINVAL : 0;
}

static int check_empty(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? -errno : st.st_size ? -EEXIST : 0;
}

static int init(struct audit_writer *writer, int fd, const char *session, int r)
{
	if (r == 0)
		r = is_session_id(session) ? check_log(fd) : -EINVAL;

	*writer = (struct audit_writer){ .fd = fd, .next_seq = 1, .error = r };
	if (r < 0) {
		close_fd(&writer->fd);
		return r;
	}
	memcpy(writer->session, session, SESSION_ID_SIZE);
	buf_init(&writer->pending, AUDIT_BATCH_MAX + AUDIT_RECORD_MAX);
	/* What a short run writes; to grow there step by step is to copy and to map again and again. */
	if (!buf_reserve(&writer->pending, QUEUE_FIRST))
		return buf_error(&writer->pending);
	buf_reset(&writer->pending);
	return 0;
}

int audit_writer_init(struct audit_writer *writer, int fd, const char *session)
{
	return init(writer, fd, session, check_empty(fd));
}

int audit_writer_init_at(struct audit_writer *writer, int fd, const char *session)
{
	return init(writer, fd, session, 0);
}

/* Cuts text to at most max bytes, not inside a UTF-8 character. */
static size_t cut_size(const void *text, size_t size, size_t max)
{
	const uint8_t *bytes = text;

	if (size <= max)
		return size;
	for (size_t back = 0; back < 4; back++)
		if ((bytes[max - back] & 0xc0) != 0x80)
			return max - back;
	return max;
}

static void put_text(struct json *json, const char *key, const char *text, size_t max)
{
	if (text)
		json_bytes(json, key, text, cut_size(text, strlen(text), max));
}

static void put_detail(struct json *json, const struct audit_event *event, bool is_cut)
{
	if (!is_cut && !event->write_detail)
		return;
	json_object_begin(json, "detail");
	if (is_cut) {
		json_bool(json, "cut", true);
		json_u64(json, "subject_size", event->subject_size);
	} else {
		event->write_detail(json, event->context);
	}
	json_object_end(json);
}

/* The members that every record begins with. They hold nothing hostile, so they go out as they are. */
static void put_start(struct audit_writer *writer, const struct audit_event *event)
{
	struct buf *out = &writer->pending;
	char time[CLOCK_RFC3339_SIZE];

	clock_format_rfc3339(clock_realtime_ns(), time);
	buf_put_text(out, "{\"v\":1,\"seq\":");
	buf_put_u64_decimal(out, writer->next_seq);
	buf_put_text(out, ",\"ts\":\"");
	buf_put(out, time, sizeof time - 1);
	buf_put_text(out, "\",\"session\":\"");
	buf_put(out, writer->session, SESSION_ID_SIZE - 1);
	buf_put_text(out, "\",\"type\":\"");
	buf_put_text(out, audit_type_names[event->type]);
	buf_put_char(out, '"');
}

/* One line without its newline, at the end of the queue. */
static void format_record(struct audit_writer *writer, const struct audit_event *event, bool is_cut)
{
	size_t subject_max = is_cut ? CUT_SUBJECT : SIZE_MAX;
	/* Inside the object that put_start() has begun. */
	struct json json = { .out = &writer->pending, .depth = 1, .has_member = { [1] = true } };
	char prev[HASH_HEX_SIZE];

	put_start(writer, event);
	put_text(&json, "verdict", event->verdict, is_cut ? CUT_RULE : SIZE_MAX);
	put_text(&json, "rule", event->rule, is_cut ? CUT_RULE : SIZE_MAX);
	if (event->pid)
		json_i64(&json, "pid", event->pid);
	put_text(&json, "exe", event->exe, is_cut ? CUT_EXE : SIZE_MAX);
	if (event->subject)
		json_bytes(&json, "subject", event->subject,
			   cut_size(event->subject, event->subject_size, subject_max));
	put_detail(&json, event, is_cut);
	hash_to_hex(&writer->head, prev);
	buf_put_text(&writer->pending, ",\"prev\":\"");
	buf_put(&writer->pending, prev, HASH_HEX_SIZE - 1);
	buf_put_text(&writer->pending, "\"}");
}

int audit_write(struct audit_writer *writer, const struct audit_event *event)
{
	struct buf *pending = &writer->pending;
	size_t start = pending->size;

	assert(event->type < AUDIT_TYPE_COUNT);
	if (writer->error)
		return writer->error;
	format_record(writer, event, false);
	if (buf_error(pending) == -ENOBUFS || pending->size - start >= AUDIT_RECORD_MAX) {
		pending->size = start;
		pending->error = 0;
		format_record(writer, event, true);
	}
	buf_put_char(pending, '\n');
	if (buf_error(pending)) {
		/* Out of memory: what is queued before this record still goes out, then nothing any more. */
		int error = buf_error(pending), r;

		pending->size = start;
		pending->error = 0;
		r = audit_flush(writer);
		writer->error = r < 0 ? r : error;
		return writer->error;
	}
	hash_bytes(&writer->head, pending->bytes + start, pending->size - start - 1);
	writer->next_seq++;
	if (writer->observer.wrote)
		writer->observer.wrote(writer->observer.context, event, writer->next_seq - 1, pending->bytes + start,
				       pending->size - start - 1);
	return pending->size >= AUDIT_BATCH_MAX ? audit_flush(writer) : 0;
}

/* The size of the whole lines in the first size bytes; *ret_last is where the last of them begins. */
static size_t whole_lines(const uint8_t *bytes, size_t size, size_t *ret_last)
{
	const uint8_t *newline = memrchr(bytes, '\n', size);
	const uint8_t *before;

	*ret_last = 0;
	if (!newline)
		return 0;
	before = memrchr(bytes, '\n', (size_t)(newline - bytes));
	*ret_last = before ? (size_t)(before + 1 - bytes) : 0;
	return (size_t)(newline + 1 - bytes);
}

/*
 * The first `written` bytes of the queue are in the file, the rest never will be. Cuts the file back to a
 * whole line and sets head and next_seq to it. Where ftruncate(2) fails too, the half line stays; it has no newline,
 * and so no reader takes it for a record.
 */
static void take_back(struct audit_writer *writer, size_t written)
{
	const struct buf *pending = &writer->pending;
	size_t last, whole = whole_lines(pending->bytes, written, &last);
	struct stat st;
	int r;

	if (whole)
		hash_bytes(&writer->written_head, pending->bytes + last, whole - 1 - last);
	writer->head = writer->written_head;
	for (size_t i = whole; i < pending->size; i++)
		writer->next_seq -= pending->bytes[i] == '\n';
	if (whole == written || fstat(writer->fd, &st) < 0 || (uint64_t)st.st_size < written - whole)
		return;
	do
		r = ftruncate(writer->fd, st.st_size - (off_t)(written - whole));
	while (r < 0 && errno == EINTR);
}

int audit_flush(struct audit_writer *writer)
{
	struct buf *pending = &writer->pending;
	size_t written = 0;

	if (writer->error)
		return writer->error;
	while (written < pending->size) {
		ssize_t n = write(writer->fd, pending->bytes + written, pending->size - written);

		if (n > 0) {
			written += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			writer->error = n == 0 ? -EIO : -errno;
			take_back(writer, written);
			buf_done(pending);
			return writer->error;
		}
	}
	writer->written_head = writer->head;
	if (pending->capacity > QUEUE_KEPT && pending->size < AUDIT_BATCH_MAX) {
		size_t max = pending->max;

		buf_done(pending);
		buf_init(pending, max);
	}
	buf_reset(pending);
	return 0;
}

int audit_writer_done(struct audit_writer *writer)
{
	int r = audit_flush(writer);

	close_fd(&writer->fd);
	buf_done(&writer->pending);
	return r;
}
