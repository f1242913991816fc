/* SPDX-License-Identifier: Apache-2.0 */
#include "sample-log.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "os/fd.h"

int sample_log_fd(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	assert(fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) == 0);
	return fd;
}

static void write_detail(struct json *json, const void *context)
{
	json_u64(json, "number", *(const size_t *)context);
}

char *sample_log_read(int fd, size_t *ret_size)
{
	struct stat st;
	char *bytes;

	assert(fstat(fd, &st) == 0);
	bytes = calloc(1, (size_t)st.st_size + 1);
	assert(bytes && pread(fd, bytes, (size_t)st.st_size, 0) == st.st_size);
	*ret_size = (size_t)st.st_size;
	return bytes;
}

void sample_log_make(struct sample_log *log, size_t count)
{
	int fd = sample_log_fd(), copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), r;
	struct audit_writer writer;

	*log = (struct sample_log){ 0 };
	assert(copy >= 0 && count <= SAMPLE_LINES_MAX);
	r = audit_writer_init(&writer, fd, SAMPLE_SESSION);
	assert(r == 0);
	for (size_t i = 0; i < count; i++) {
		struct audit_event event = {
			.type = i == 0 ? AUDIT_SESSION_START : i + 1 == count ? AUDIT_SESSION_END : AUDIT_EXEC_START,
			.verdict = "allow", .pid = 100 + (pid_t)i, .exe = "/usr/bin/true",
			.subject = "true", .subject_size = 4, .write_detail = write_detail, .context = &i,
		};

		r = audit_write(&writer, &event);
		assert(r == 0);
	}
	r = audit_writer_done(&writer);
	assert(r == 0);
	log->head = writer.head;
	log->bytes = sample_log_read(copy, &log->size);
	close(copy);
	for (char *at = log->bytes; *at; at += strcspn(at, "\n") + 1)
		log->lines[log->count++] = strndup(at, strcspn(at, "\n"));
	assert(log->count == count);
}

void sample_log_done(struct sample_log *log)
{
	for (size_t i = 0; i < log->count; i++)
		free(log->lines[i]);
	free(log->bytes);
}

int sample_log_of_bytes(const void *bytes, size_t size)
{
	int fd = sample_log_fd(), r = fd_write_full(fd, bytes, size);

	assert(r == 0 && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

int sample_log_join(char *const *lines, size_t count)
{
	int fd = sample_log_fd();

	for (size_t i = 0; i < count; i++) {
		int r = fd_write_full(fd, lines[i], strlen(lines[i]));

		if (r == 0)
			r = fd_write_full(fd, "\n", 1);
		assert(r == 0);
	}
	assert(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}
