/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/verify.h"
#include "sample-log.h"

static struct sample_log sample;

enum { RECORDS = 8 };

static int setup(void **state)
{
	sample_log_make(&sample, RECORDS);
	return 0;
}

static int teardown(void **state)
{
	sample_log_done(&sample);
	return 0;
}

static struct audit_anchor full_anchor(void)
{
	return (struct audit_anchor){ .has_head = true, .has_records = true, .head = sample.head, .records = RECORDS };
}

static struct audit_result verify_fd(int fd, const struct audit_anchor *anchor)
{
	struct audit_result result;
	int r = audit_verify(fd, SAMPLE_SESSION, anchor, &result);

	close(fd);
	assert_int_equal(r, result.fault != AUDIT_FAULT_NONE);
	return result;
}

static struct audit_result verify_lines(char *const *lines, size_t count, const struct audit_anchor *anchor)
{
	return verify_fd(sample_log_join(lines, count), anchor);
}

static void assert_fault(struct audit_result result, enum audit_fault fault, uint64_t record)
{
	assert_string_equal(audit_fault_names[result.fault], audit_fault_names[fault]);
	assert_int_equal(result.bad_record, record);
}

static void whole_log(void **state)
{
	struct audit_anchor anchor = full_anchor();
	struct audit_result result = verify_lines(sample.lines, RECORDS, &anchor);

	assert_fault(result, AUDIT_FAULT_NONE, 0);
	assert_int_equal(result.records, RECORDS);
	assert_memory_equal(&result.head, &sample.head, sizeof result.head);
	assert_true(result.is_ended);
	assert_string_equal(result.session, SAMPLE_SESSION);
	assert_fault(verify_lines(sample.lines, RECORDS, NULL), AUDIT_FAULT_NONE, 0);
}

static void deleted_record(void **state)
{
	for (size_t gone = 0; gone + 1 < RECORDS; gone++) {
		char *lines[RECORDS];
		struct audit_result result;

		memcpy(lines, sample.lines, sizeof lines);
		memmove(lines + gone, lines + gone + 1, (RECORDS - 1 - gone) * sizeof *lines);
		result = verify_lines(lines, RECORDS - 1, NULL);
		assert_fault(result, AUDIT_FAULT_SEQ, gone + 1);
		assert_int_equal(result.found_seq, gone + 2);
	}
}

static void repeated_record(void **state)
{
	char *lines[RECORDS + 1];

	memcpy(lines, sample.lines, 4 * sizeof *lines);
	memcpy(lines + 4, sample.lines + 3, (RECORDS - 3) * sizeof *lines);
	assert_fault(verify_lines(lines, RECORDS + 1, NULL), AUDIT_FAULT_SEQ, 5);
}

static void reordered_records(void **state)
{
	for (size_t at = 0; at + 1 < RECORDS; at++) {
		char *lines[RECORDS];

		memcpy(lines, sample.lines, sizeof lines);
		lines[at] = sample.lines[at + 1];
		lines[at + 1] = sample.lines[at];
		assert_fault(verify_lines(lines, RECORDS, NULL), AUDIT_FAULT_SEQ, at + 1);
	}
}

/* Every byte of every record, turned into another: the record that holds it is the one that is named. */
static void any_altered_byte(void **state)
{
	struct audit_anchor anchor = full_anchor();
	size_t start = 0;

	for (size_t line = 0; line < RECORDS; line++) {
		size_t length = strlen(sample.lines[line]);

		for (size_t at = start; at < start + length; at++) {
			char original = sample.bytes[at];
			struct audit_result result;

			sample.bytes[at] ^= 1;
			result = verify_fd(sample_log_of_bytes(sample.bytes, sample.size), &anchor);
			sample.bytes[at] = original;
			assert_int_not_equal(result.fault, AUDIT_FAULT_NONE);
			assert_int_equal(result.bad_record, line + 1);
		}
		start += length + 1;
	}
}

/* Without an anchor nothing vouches for the last record's content, and that is all that goes unseen. */
static void altered_subject_without_anchor(void **state)
{
	for (size_t line = 0; line < RECORDS; line++) {
		char *lines[RECORDS], copy[1024];
		struct audit_result result;

		memcpy(lines, sample.lines, sizeof lines);
		snprintf(copy, sizeof copy, "%s", lines[line]);
		*strstr(copy, "true") = 'T';
		lines[line] = copy;
		result = verify_lines(lines, RECORDS, NULL);
		if (line + 1 == RECORDS)
			assert_fault(result, AUDIT_FAULT_NONE, 0);
		else
			assert_fault(result, AUDIT_FAULT_ALTERED, line + 1);
	}
}

static void altered_link(void **state)
{
	struct audit_anchor anchor = full_anchor();

	for (size_t line = 0; line < RECORDS; line++) {
		char *lines[RECORDS], copy[1024];
		char *digit;

		memcpy(lines, sample.lines, sizeof lines);
		snprintf(copy, sizeof copy, "%s", lines[line]);
		digit = copy + strlen(copy) - 10;
		*digit = *digit == '0' ? '1' : '0';
		lines[line] = copy;
		assert_fault(verify_lines(lines, RECORDS, &anchor), AUDIT_FAULT_LINK, line + 1);
	}
}

static void deleted_and_renumbered(void **state)
{
	char *lines[RECORDS], copies[RECORDS][1024];

	memcpy(lines, sample.lines, sizeof lines);
	for (size_t i = 3; i + 1 < RECORDS; i++) {
		snprintf(copies[i], sizeof copies[i], "%s", sample.lines[i + 1]);
		copies[i][strlen("{\"v\":1,\"seq\":")]--;
		lines[i] = copies[i];
	}
	assert_fault(verify_lines(lines, RECORDS - 1, NULL), AUDIT_FAULT_LINK, 4);
}

static void cut_at_every_byte(void **state)
{
	size_t line = 0;

	for (size_t size = 1; size < sample.size; size++) {
		struct audit_result result = verify_fd(sample_log_of_bytes(sample.bytes, size), NULL);

		if (sample.bytes[size - 1] == '\n') {
			line++;
			assert_fault(result, AUDIT_FAULT_NONE, 0);
			assert_false(result.is_ended);
		} else {
			assert_fault(result, AUDIT_FAULT_TRUNCATED, line + 1);
		}
	}
}

static void dropped_tail_needs_the_anchor(void **state)
{
	struct audit_anchor anchor = full_anchor(), head_only = anchor;

	head_only.has_records = false;
	for (size_t kept = 0; kept < RECORDS; kept++) {
		assert_fault(verify_lines(sample.lines, kept, NULL), AUDIT_FAULT_NONE, 0);
		assert_fault(verify_lines(sample.lines, kept, &anchor), AUDIT_FAULT_MISSING, kept + 1);
		if (kept)
			assert_fault(verify_lines(sample.lines, kept, &head_only), AUDIT_FAULT_HEAD, kept);
		else
			assert_fault(verify_lines(sample.lines, kept, &head_only), AUDIT_FAULT_MISSING, 1);
	}
}

static void appended_records(void **state)
{
	struct audit_anchor anchor = full_anchor();
	struct sample_log shorter;

	anchor.records = 5;
	hash_bytes(&anchor.head, sample.lines[4], strlen(sample.lines[4]));
	assert_fault(verify_lines(sample.lines, 5, &anchor), AUDIT_FAULT_NONE, 0);
	assert_fault(verify_lines(sample.lines, RECORDS, &anchor), AUDIT_FAULT_EXTRA, 6);
	anchor.has_records = false;
	assert_int_equal(verify_lines(sample.lines, RECORDS, &anchor).fault, AUDIT_FAULT_EXTRA);
	/* An older log of the same session, coherent in itself, of the same length. */
	sample_log_make(&shorter, RECORDS);
	anchor = full_anchor();
	assert_fault(verify_lines(shorter.lines, RECORDS, &anchor), AUDIT_FAULT_HEAD, RECORDS);
	sample_log_done(&shorter);
}

static void other_session(void **state)
{
	struct audit_result result;
	int fd = sample_log_join(sample.lines, RECORDS);

	assert_int_equal(audit_verify(fd, "aaaaaaaaaaaa", NULL, &result), 1);
	assert_fault(result, AUDIT_FAULT_SESSION, 1);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(audit_verify(fd, "a session id that is far too long", NULL, &result), 1);
	assert_fault(result, AUDIT_FAULT_SESSION, 1);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(audit_verify(fd, NULL, NULL, &result), 0);
	close(fd);
}

static void rubbish_lines(void **state)
{
	static const char *const rubbish[] = {
		"", "{}", "null", "{\"v\":1}", "{\"v\":01,\"seq\":1",
		"{\"v\":1,\"seq\":18446744073709551616,\"ts\":",
		"{\"v\":99999999999999999999", "\x1b[2J",
		"{\"v\":1,\"seq\":1,\"ts\":\"2026-01-01T00:00:00.000000000Z\"}",
	};
	char *lines[RECORDS], *longest = calloc(1, AUDIT_RECORD_MAX + 1);

	for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
		memcpy(lines, sample.lines, sizeof lines);
		lines[2] = (char *)rubbish[i];
		assert_fault(verify_lines(lines, RECORDS, NULL), AUDIT_FAULT_SHAPE, 3);
	}
	memset(longest, 'x', AUDIT_RECORD_MAX);
	lines[2] = longest;
	assert_fault(verify_lines(lines, RECORDS, NULL), AUDIT_FAULT_SHAPE, 3);
	free(longest);
}

static void newer_version(void **state)
{
	char *lines[RECORDS], copy[1024];

	memcpy(lines, sample.lines, sizeof lines);
	snprintf(copy, sizeof copy, "%s", lines[0]);
	copy[5] = '2';
	lines[0] = copy;
	assert_fault(verify_lines(lines, RECORDS, NULL), AUDIT_FAULT_VERSION, 1);
}

static void nul_bytes(void **state)
{
	struct audit_result result;
	char original = sample.bytes[60];

	sample.bytes[60] = 0;
	result = verify_fd(sample_log_of_bytes(sample.bytes, sample.size), NULL);
	sample.bytes[60] = original;
	assert_fault(result, AUDIT_FAULT_SHAPE, 1);
}

static void anchor_text(void **state)
{
	struct audit_anchor anchor = { 0 };
	char text[80], hex[HASH_HEX_SIZE];

	hash_to_hex(&sample.head, hex);
	snprintf(text, sizeof text, "sha256:%s", hex);
	assert_int_equal(audit_anchor_parse_head(&anchor, text), 0);
	assert_true(anchor.has_head);
	assert_memory_equal(&anchor.head, &sample.head, sizeof anchor.head);
	text[70] = 'G';
	assert_int_equal(audit_anchor_parse_head(&anchor, text), -EINVAL);
	text[70] = 0;
	assert_int_equal(audit_anchor_parse_head(&anchor, text), -EINVAL);
	assert_int_equal(audit_anchor_parse_head(&anchor, hex), -EINVAL);
	assert_int_equal(audit_anchor_parse_head(&anchor, ""), -EINVAL);
}

static void texts_name_the_record(void **state)
{
	struct audit_anchor anchor = full_anchor();
	struct audit_result result = verify_lines(sample.lines, 5, &anchor);
	struct buf out;

	buf_init(&out, 4096);
	audit_result_format(&result, &anchor, &out);
	assert_string_equal(buf_text(&out), "record 6 is missing: the log ends after 5 of 8 records");
	for (int fault = AUDIT_FAULT_NONE + 1; fault < AUDIT_FAULT_COUNT; fault++) {
		result = (struct audit_result){ .fault = fault, .bad_record = 7, .records = 6, .found_seq = 9 };
		buf_reset(&out);
		audit_result_format(&result, &anchor, &out);
		assert_non_null(strstr(buf_text(&out), "record 7"));
	}
	buf_done(&out);
}

static void unreadable_log(void **state)
{
	struct audit_result result;

	assert_int_equal(audit_verify(-1, NULL, NULL, &result), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_log),
		cmocka_unit_test(deleted_record),
		cmocka_unit_test(repeated_record),
		cmocka_unit_test(reordered_records),
		cmocka_unit_test(any_altered_byte),
		cmocka_unit_test(altered_subject_without_anchor),
		cmocka_unit_test(altered_link),
		cmocka_unit_test(deleted_and_renumbered),
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(dropped_tail_needs_the_anchor),
		cmocka_unit_test(appended_records),
		cmocka_unit_test(other_session),
		cmocka_unit_test(rubbish_lines),
		cmocka_unit_test(newer_version),
		cmocka_unit_test(nul_bytes),
		cmocka_unit_test(anchor_text),
		cmocka_unit_test(texts_name_the_record),
		cmocka_unit_test(unreadable_log),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
