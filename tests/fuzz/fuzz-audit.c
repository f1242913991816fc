/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The reader and the verifier of the action log on arbitrary bytes. The same log goes through a file and,
 * line by line, through the chain: both must say the same, and what they say must make sense.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "audit/verify.h"
#include "base/cleanup.h"
#include "os/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void put_lines(struct audit_chain *chain, const char *at, size_t size)
{
	while (size) {
		const char *newline = memchr(at, '\n', size);
		size_t length = newline ? (size_t)(newline - at) : size;

		audit_chain_put(chain, at, length, newline != NULL);
		at += length + (newline != NULL);
		size -= length + (newline != NULL);
	}
}

static void check_result(const struct audit_result *result, const struct audit_anchor *anchor)
{
	struct buf text;

	if (result->fault == AUDIT_FAULT_NONE)
		require(result->records == result->lines && !result->bad_record);
	else
		require(result->bad_record >= 1 && result->fault < AUDIT_FAULT_COUNT);
	buf_init(&text, 1024);
	audit_result_format(result, anchor, &text);
	require(buf_error(&text) == 0 && text.size > 0);
	buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct audit_anchor anchor = { .has_records = size & 1, .has_head = size & 2, .records = 2 };
	struct audit_result from_file;
	cleanup_fd int fd = memfd_create("log", MFD_CLOEXEC);
	struct audit_chain chain;
	int r;

	if (fd < 0 || fd_write_full(fd, bytes, size) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return 0;
	audit_chain_init(&chain, NULL, &anchor);
	put_lines(&chain, (const char *)bytes, size);
	r = audit_chain_finish(&chain);
	check_result(&chain.result, &anchor);
	require(audit_verify(fd, NULL, &anchor, &from_file) == r);
	require(from_file.fault == chain.result.fault && from_file.bad_record == chain.result.bad_record);
	require(from_file.records == chain.result.records);
	return 0;
}
