/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/append.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/record.h"
#include "audit/writer.h"
#include "os/clock.h"

enum { TAIL_MAX = 2 * AUDIT_RECORD_MAX };

bool audit_type_is_review(enum audit_type type)
{
	return type == AUDIT_STAGE_SNAPSHOT || type == AUDIT_STAGE_RESTORE || type == AUDIT_STAGE_APPLY ||
	       type == AUDIT_STAGE_DISCARD || type == AUDIT_STAGE_UNDO || type == AUDIT_STAGE_FORGET ||
	       type == AUDIT_STAGE_ACCEPT;
}

/* The last bytes of the log, at most TAIL_MAX, and whether they are all of it. */
static ssize_t read_tail(int fd, char *out, bool *ret_is_all)
{
	struct stat st;
	size_t size, at = 0;
	off_t start;

	if (fstat(fd, &st) < 0)
		return -errno;
	start = st.st_size > TAIL_MAX ? st.st_size - TAIL_MAX : 0;
	*ret_is_all = start == 0;
	size = (size_t)(st.st_size - start);
	while (at < size) {
		ssize_t n = pread(fd, out + at, size - at, start + (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += (size_t)n;
	}
	return (ssize_t)at;
}

/* One line of the tail, from its end; size is cut down to what stands before it. false: none is whole in the tail. */
static bool take_last_line(const char *tail, size_t *size, bool is_all, const char **ret_line, size_t *ret_length)
{
	const char *newline;

	if (!*size)
		return false;
	newline = memrchr(tail, '\n', *size);
	if (!newline && !is_all)
		return false;
	*ret_line = newline ? newline + 1 : tail;
	*ret_length = (size_t)(tail + *size - *ret_line);
	*size = newline ? (size_t)(newline - tail) : 0;
	return true;
}

/*
 * Where the next record goes. Lines that are none (a torn tail) count as lines, so that a record's number is that of
 * its line, and the link is to the last line as it stands.
 */
static int find_end(struct audit_writer *writer, const char *tail, size_t size, bool is_all)
{
	struct audit_record record;
	const char *line;
	size_t length;
	uint64_t behind = 0;

	while (take_last_line(tail, &size, is_all, &line, &length)) {
		if (!behind)
			hash_bytes(&writer->head, line, length);
		behind++;
		if (audit_record_parse(&record, line, length) != AUDIT_FAULT_NONE)
			continue;
		if (memcmp(record.session, writer->session, SESSION_ID_SIZE - 1) != 0)
			return -EBADMSG;
		writer->next_seq = record.seq + behind;
		return 0;
	}
	/* Nothing whole: of an empty log the first record, and of damage that long nothing is known. */
	writer->next_seq = behind + 1;
	return is_all ? 0 : -EBADMSG;
}

static int begin(struct audit_writer *writer, int fd, const char *session)
{
	cleanup_free char *tail = malloc(TAIL_MAX);
	bool is_all = false;
	ssize_t size = tail ? read_tail(fd, tail, &is_all) : -ENOMEM;
	bool is_torn = size > 0 && tail[size - 1] != '\n';
	int r;

	if (size < 0)
		return (int)size;
	r = audit_writer_init_at(writer, fd, session);
	if (r == 0)
		r = find_end(writer, tail, (size_t)size - (size > 0 && !is_torn), is_all);
	writer->written_head = writer->head;
	return r == 0 && is_torn && write(fd, "\n", 1) != 1 ? -EIO : r;
}

int audit_append(int fd, const char *session, const struct audit_event *event, bool is_durable)
{
	struct audit_writer writer;
	int own_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), r;

	if (own_fd < 0)
		return -errno;
	r = begin(&writer, own_fd, session);
	if (r == 0)
		r = audit_write(&writer, event);
	if (r == 0)
		r = audit_flush(&writer);
	if (r == 0 && is_durable && fdatasync(fd) < 0)
		r = -errno;
	if (r < 0 && !writer.error)
		writer.error = r;
	return audit_writer_done(&writer);
}
