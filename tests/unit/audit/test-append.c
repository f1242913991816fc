/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/append.h"
#include "audit/verify.h"
#include "audit/writer.h"

#define SESSION "k3v9q2m4x7dt"

static char path[] = "/tmp/atoll-append-XXXXXX";

static int open_log(void)
{
	return open(path, O_RDWR | O_APPEND | O_CLOEXEC);
}

/* A log of count records of one type and its end; where it ends in *ret_anchor. */
static void make_log(size_t count, bool has_end, struct audit_anchor *ret_anchor)
{
	struct audit_event event = { .type = AUDIT_EXEC_END, .subject = "x", .subject_size = 1 };
	struct audit_event end = { .type = AUDIT_SESSION_END };
	struct audit_writer writer;

	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(audit_writer_init(&writer, open_log(), SESSION), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(audit_write(&writer, &event), 0);
	if (has_end)
		assert_int_equal(audit_write(&writer, &end), 0);
	assert_int_equal(audit_writer_done(&writer), 0);
	*ret_anchor = (struct audit_anchor){ .has_head = true, .has_records = true, .head = writer.head,
					     .records = count + has_end };
}

static int append(enum audit_type type, const char *subject)
{
	struct audit_event event = { .type = type, .subject = subject, .subject_size = strlen(subject) };
	int fd = open_log(), r = audit_append(fd, SESSION, &event, false);

	close(fd);
	return r;
}

static struct audit_result verify(const struct audit_anchor *anchor)
{
	struct audit_result result;
	int fd = open_log(), r = audit_verify(fd, SESSION, anchor, &result);

	close(fd);
	assert_int_equal(r, result.fault != AUDIT_FAULT_NONE);
	return result;
}

static void goes_on_with_the_chain(void **state)
{
	struct audit_anchor anchor;
	struct audit_result result;

	for (size_t records = 0; records < 4; records++) {
		make_log(records, true, &anchor);
		for (int i = 0; i < 3; i++)
			assert_int_equal(append(AUDIT_STAGE_APPLY, "x"), 0);
		result = verify(&anchor);
		assert_int_equal(result.fault, AUDIT_FAULT_NONE);
		assert_int_equal(result.records, records + 4);
		assert_int_equal(result.reviews, 3);
		assert_true(result.is_ended);
	}
}

static void an_empty_log_gets_its_first_record(void **state)
{
	struct audit_anchor anchor;

	make_log(0, false, &anchor);
	assert_int_equal(append(AUDIT_STAGE_UNDO, "x"), 0);
	assert_int_equal(verify(NULL).fault, AUDIT_FAULT_NONE);
	assert_int_equal(verify(NULL).records, 1);
}

static void a_record_of_the_longest_kind_is_found(void **state)
{
	char *subject = malloc(AUDIT_RECORD_MAX + 1);
	struct audit_anchor anchor;

	assert_non_null(subject);
	memset(subject, 'a', AUDIT_RECORD_MAX);
	subject[AUDIT_RECORD_MAX - 400] = 0;
	make_log(2, true, &anchor);
	for (int i = 0; i < 4; i++)
		assert_int_equal(append(AUDIT_STAGE_APPLY, subject), 0);
	assert_int_equal(verify(&anchor).fault, AUDIT_FAULT_NONE);
	assert_int_equal(verify(&anchor).records, 7);
	free(subject);
}

static void only_reviews_stand_behind_the_end(void **state)
{
	struct audit_anchor anchor;
	struct audit_result result;

	make_log(2, true, &anchor);
	assert_int_equal(append(AUDIT_EXEC_START, "forged"), 0);
	result = verify(NULL);
	assert_int_equal(result.fault, AUDIT_FAULT_AFTER_END);
	assert_int_equal(result.bad_record, 4);
	/* Without an end any type goes on, and the anchor of a killed session is none. */
	make_log(2, false, &anchor);
	assert_int_equal(append(AUDIT_EXEC_START, "x"), 0);
	assert_int_equal(verify(NULL).fault, AUDIT_FAULT_NONE);
	assert_int_equal(verify(&anchor).fault, AUDIT_FAULT_EXTRA);
}

static void another_anchor_is_not_taken(void **state)
{
	struct audit_anchor anchor, wrong;

	make_log(2, true, &anchor);
	assert_int_equal(append(AUDIT_STAGE_APPLY, "x"), 0);
	wrong = anchor;
	wrong.head.bytes[0] ^= 1;
	assert_int_not_equal(verify(&wrong).fault, AUDIT_FAULT_NONE);
	wrong = anchor;
	wrong.records--;
	assert_int_not_equal(verify(&wrong).fault, AUDIT_FAULT_NONE);
	/* The head of a record before the end vouches for no end. */
	make_log(1, false, &wrong);
	make_log(3, true, &anchor);
	assert_int_equal(append(AUDIT_STAGE_APPLY, "x"), 0);
	assert_int_not_equal(verify(&wrong).fault, AUDIT_FAULT_NONE);
}

static void another_sessions_log_is_refused(void **state)
{
	struct audit_event event = { .type = AUDIT_STAGE_APPLY };
	struct audit_anchor anchor;
	int fd;

	make_log(2, true, &anchor);
	fd = open_log();
	assert_int_equal(audit_append(fd, "aaaaaaaaaaaa", &event, false), -EBADMSG);
	close(fd);
	assert_int_equal(verify(&anchor).fault, AUDIT_FAULT_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on_with_the_chain),
		cmocka_unit_test(an_empty_log_gets_its_first_record),
		cmocka_unit_test(a_record_of_the_longest_kind_is_found),
		cmocka_unit_test(only_reviews_stand_behind_the_end),
		cmocka_unit_test(another_anchor_is_not_taken),
		cmocka_unit_test(another_sessions_log_is_refused),
	};
	int fd = mkstemp(path), r;

	if (fd < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	close(fd);
	unlink(path);
	return r;
}
