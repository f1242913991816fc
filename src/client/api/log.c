/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "client/api/cursor.h"
#include "client/api/fault.h"
#include "os/fd.h"
#include "session/record.h"

/*
 * A log is read as lines, of which nothing is believed but where they end: records have numbers from 1 on, one a line.
 * Who writes it holds a lock (session/record.h), so that its end is known without asking.
 */

enum { LINE_MAX_SIZE = 128 << 10, CHUNK = 64 << 10 };

struct log_reader {
	int fd, watch_fd;        /* owned */
	bool follows, is_over;   /* is_over: nobody writes any more */
	bool is_backward;        /* the newest first; pending ends with a whole line then */
	uint64_t skip;           /* records to pass over */
	uint64_t offset;         /* in the file: where pending begins */
	struct buf pending;
	size_t at;               /* in pending: what was handed out */
};

void log_reader_free(struct log_reader *log)
{
	if (!log)
		return;
	close_fd(&log->fd);
	close_fd(&log->watch_fd);
	buf_done(&log->pending);
	free(log);
}

int log_reader_fd(const struct log_reader *log)
{
	return log->follows ? log->watch_fd : ATOLL_E_NOT_FOUND;
}

/* Closing tells, too: the last record may come with the end. */
static int watch(struct log_reader *log, const char *path)
{
	log->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	log->watch_fd = log->watch_fd < 0 ? -errno : fd_move_above(log->watch_fd, 3);
	if (log->watch_fd < 0)
		return log->watch_fd;
	return inotify_add_watch(log->watch_fd, path, IN_MODIFY | IN_CLOSE_WRITE) < 0 ? -errno : 0;
}

/* Backward: what is read lies before `at` (0: the end), and what is no whole line yet is left out. */
static int seek(struct log_reader *log, uint64_t at)
{
	struct stat st;

	if (fstat(log->fd, &st) < 0)
		return -errno;
	if (!at && log->is_backward)
		at = (uint64_t)st.st_size;
	if (at > (uint64_t)st.st_size)
		return -ENOENT;
	log->offset = at;
	return lseek(log->fd, (off_t)at, SEEK_SET) < 0 ? -errno : 0;
}

int log_reader_new(const struct atoll_context *context, const char *id, const struct atoll_record *from,
		   struct log_reader **ret)
{
	struct log_reader *log = calloc(1, sizeof *log);
	uint64_t number = 1, follows = 0, at = 0, backward = 0;
	char path[PATH_MAX];
	int r;

	if (!log)
		return -ENOMEM;
	(void)record_u64(from, "from", &number);
	(void)record_u64(from, "follow", &follows);
	(void)record_u64(from, "at", &at);
	(void)record_u64(from, "backward", &backward);
	*log = (struct log_reader){ .fd = FD_NONE, .watch_fd = FD_NONE, .follows = follows, .is_backward = backward,
				    .skip = number ? number - 1 : 0 };
	buf_init(&log->pending, LINE_MAX_SIZE + CHUNK);
	r = backward && (follows || number > 1) ? -EINVAL : 0;
	if (r == 0)
		r = session_path(context->state, id, "audit.jsonl", path, sizeof path);
	if (r == 0)
		r = log->fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = seek(log, at);
	if (r >= 0 && follows)
		r = watch(log, path);
	if (r >= 0) {
		*ret = log;
		return 0;
	}
	log_reader_free(log);
	return r;
}

static bool is_written(const struct log_reader *log)
{
	if (flock(log->fd, LOCK_SH | LOCK_NB) < 0)
		return true;
	flock(log->fd, LOCK_UN);
	return false;
}

/* 1: more was read; 0: there is none now. */
static int read_more(struct log_reader *log)
{
	ssize_t n;
	void *room;

	buf_consume(&log->pending, log->at);
	log->offset += log->at;
	log->at = 0;
	if (log->pending.size > LINE_MAX_SIZE)
		return -EBADMSG;
	room = buf_reserve(&log->pending, CHUNK);
	if (!room)
		return buf_error(&log->pending);
	log->pending.size -= CHUNK;
	n = read(log->fd, room, CHUNK);
	if (n < 0)
		return errno == EINTR ? 1 : -errno;
	log->pending.size += (size_t)n;
	return n > 0;
}

/* at, size: of a line in pending, without its newline. */
static int hand_out(const struct log_reader *log, size_t at, size_t size, struct atoll_record **ret)
{
	struct atoll_record *record = record_new(ATOLL_LINE);

	if (record_put_bytes(record, "line", log->pending.bytes + at, size) < 0 ||
	    record_put_u64(record, "at", log->offset + at) < 0) {
		atoll_record_free(record);
		return -ENOMEM;
	}
	*ret = record;
	return 1;
}

static int take_line(struct log_reader *log, const uint8_t *newline, struct atoll_record **ret)
{
	size_t at = log->at, size = (size_t)(newline - log->pending.bytes) - at;

	log->at += size + 1;
	if (log->skip) {
		log->skip--;
		return 0;
	}
	return hand_out(log, at, size, ret);
}

/* Puts what lies before pending in front of it. 1: more was read; 0: there is none. */
static int read_before(struct log_reader *log)
{
	size_t wanted = log->offset < CHUNK ? (size_t)log->offset : CHUNK, had = log->pending.size;
	ssize_t n;

	if (!wanted)
		return 0;
	if (had > LINE_MAX_SIZE)
		return -EBADMSG;
	if (!buf_reserve(&log->pending, wanted))
		return buf_error(&log->pending);
	memmove(log->pending.bytes + wanted, log->pending.bytes, had);
	n = pread(log->fd, log->pending.bytes, wanted, (off_t)(log->offset - wanted));
	if (n < 0 || (size_t)n != wanted)
		return n < 0 ? -errno : -EBADMSG;
	log->offset -= wanted;
	return 1;
}

static int next_before(struct log_reader *log, struct atoll_record **ret)
{
	struct buf *pending = &log->pending;

	for (;;) {
		size_t left = pending->size - (pending->size > 0);
		const uint8_t *newline = left ? memrchr(pending->bytes, '\n', left) : NULL;
		size_t at = newline ? (size_t)(newline + 1 - pending->bytes) : 0;
		bool is_whole = pending->size && pending->bytes[pending->size - 1] == '\n';
		int r = newline ? 1 : read_before(log);

		if (r < 0)
			return r;
		if (!newline && r)
			continue;
		if (!pending->size)
			return 0;
		pending->size = at;
		if (is_whole)
			return hand_out(log, at, left - at, ret);
	}
}

static void forget_notices(struct log_reader *log)
{
	uint8_t bytes[4096];

	while (log->watch_fd >= 0 && read(log->watch_fd, bytes, sizeof bytes) > 0)
		continue;
}

int log_reader_next(struct log_reader *log, struct atoll_record **ret)
{
	if (log->is_backward)
		return next_before(log, ret);
	for (;;) {
		size_t left = log->pending.size - log->at;
		const uint8_t *newline = left ? memchr(log->pending.bytes + log->at, '\n', left) : NULL;
		bool was_over = log->is_over;
		int r;

		if (newline) {
			r = take_line(log, newline, ret);
			if (r != 0)
				return r;
			continue;
		}
		forget_notices(log);
		/* In this order: what was written before the lock went is read after it was seen gone. */
		log->is_over = !log->follows || !is_written(log);
		r = read_more(log);
		if (r < 0)
			return r;
		if (r == 0 && was_over)
			return 0;
		if (r == 0 && !log->is_over)
			return -EAGAIN;
	}
}

int atoll_log(atoll_sandbox *sandbox, const atoll_record *record, atoll_cursor **ret, struct atoll_error *error)
{
	struct atoll_cursor *cursor;
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if ((record && atoll_record_kind(record) != ATOLL_LOG) || !ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "log", "the record is of another kind");
	cursor = cursor_new(sandbox->context, ATOLL_LINE, error);
	if (!cursor)
		return ATOLL_E_NO_MEMORY;
	r = log_reader_new(sandbox->context, sandbox->id, record, &cursor->log);
	if (r == 0) {
		*ret = cursor;
		return 0;
	}
	atoll_cursor_free(cursor);
	return r == -ENOMEM ? fault_errno(error, r, "log")
			    : fault_set(error, ATOLL_E_NOT_FOUND, -r, "log", "the log of %s cannot be read: %s",
					sandbox->id, err_errno_name(-r));
}
