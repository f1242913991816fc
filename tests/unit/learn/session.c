/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"
#include "os/fd.h"
#include "policy/snapshot/snapshot.h"

static struct {
	struct buf bytes;
	struct snapshot *snapshot;
} sides[SESSION_SIDE_COUNT];
static int log_fd = FD_NONE;
static unsigned records;

const struct policy *session_policy(enum session_side side, const char *text)
{
	const struct policy *policy = fixture_text(text);

	if (!policy)
		fail_msg("%s", fixture_errors());
	snapshot_free(sides[side].snapshot);
	buf_done(&sides[side].bytes);
	buf_init(&sides[side].bytes, SNAPSHOT_SIZE_MAX);
	assert_int_equal(snapshot_store(&sides[side].bytes, policy, NULL, 0), 0);
	assert_int_equal(snapshot_load(&sides[side].snapshot, sides[side].bytes.bytes, sides[side].bytes.size), 0);
	return snapshot_policy(sides[side].snapshot);
}

void session_line(const char *text)
{
	if (log_fd < 0)
		log_fd = memfd_create("log", MFD_CLOEXEC);
	assert_true(log_fd >= 0);
	assert_int_equal(fd_write_full(log_fd, text, strlen(text)), 0);
	assert_int_equal(fd_write_full(log_fd, "\n", 1), 0);
	records++;
}

void session_record(const char *type, const char *subject, const char *verdict, const char *detail)
{
	char line[8192];
	int size = snprintf(line, sizeof line,
			    "{\"v\":1,\"seq\":%u,\"type\":\"%s\",\"verdict\":\"%s\",\"subject\":%s,"
			    "\"exe\":\"/usr/bin/sh\",\"detail\":{%s}}",
			    records + 1, type, verdict, subject, detail);

	assert_true(size > 0 && (size_t)size < sizeof line);
	session_line(line);
}

int session_log(void)
{
	if (log_fd < 0)
		log_fd = memfd_create("log", MFD_CLOEXEC);
	assert_int_equal(lseek(log_fd, 0, SEEK_SET), 0);
	return log_fd;
}

void session_end(void)
{
	for (size_t i = 0; i < SESSION_SIDE_COUNT; i++) {
		snapshot_free(sides[i].snapshot);
		sides[i].snapshot = NULL;
		buf_done(&sides[i].bytes);
	}
	close_fd(&log_fd);
	records = 0;
}
