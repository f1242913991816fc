/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The journal of an apply from arbitrary bytes: what counts of it is within the rules, and reading that part alone
 * gives the same again. The checksums would keep a fuzzer out, so they are made right first for each whole record.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "stage/transaction/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

enum { HEAD_SIZE = 8 + HASH_SIZE };

static void mend_checksums(uint8_t *bytes, size_t size)
{
	struct hash chain = { { 0 } };

	for (size_t at = 0; size - at >= HEAD_SIZE;) {
		uint32_t length;

		memcpy(&length, bytes + at, sizeof length);
		if (length > size - at - HEAD_SIZE)
			return;
		hash_pieces(&chain, (struct hash_piece[]){ { &chain, sizeof chain }, { &length, sizeof length },
							   { bytes + at + HEAD_SIZE, length } }, 3);
		memcpy(bytes + at + 8, &chain, sizeof chain);
		at += HEAD_SIZE + length;
	}
}

static void check_path(const char *path)
{
	require(*path != '/' && strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 && !strstr(path, "/../"));
	require(strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
}

static void check(const struct journal *journal)
{
	require(journal->source.valid_size <= journal->source.size);
	require(journal->is_committed || !journal->is_done);
	require(journal->is_done || !journal->is_clean);
	for (size_t i = 0; i < journal->op_count; i++) {
		const struct journal_op *op = &journal->ops[i];

		check_path(op->path);
		require(op->action >= JOURNAL_ADD && op->action <= JOURNAL_KEEP && op->tree < STAGE_TREES_MAX);
		require(!journal->is_done || op->outcome != JOURNAL_PENDING);
	}
	for (size_t i = 0; i < journal->directory_count; i++)
		check_path(journal->directories[i].path);
}

static void parse(const uint8_t *bytes, size_t size, bool mended, struct journal *ret_journal)
{
	uint8_t *copy = malloc(size ? size : 1);

	require(copy != NULL);
	memcpy(copy, bytes, size);
	if (mended)
		mend_checksums(copy, size);
	require(journal_parse(copy, size, ret_journal) == 0);
	check(ret_journal);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	cleanup_journal struct journal raw, mended, again;

	parse(bytes, size, false, &raw);
	parse(bytes, size, true, &mended);
	parse(mended.source.bytes, mended.source.valid_size, false, &again);
	require(again.source.valid_size == mended.source.valid_size && again.op_count == mended.op_count &&
		again.is_committed == mended.is_committed && again.is_done == mended.is_done);
	return 0;
}
