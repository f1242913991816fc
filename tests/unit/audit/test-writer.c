/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "audit/verify.h"
#include "os/clock.h"
#include "os/fd.h"
#include "sample-log.h"

static void assert_log_whole(int fd, const struct audit_writer *writer)
{
	struct audit_anchor anchor = {
		.has_head = true, .has_records = true, .head = writer->head, .records = writer->next_seq - 1,
	};
	struct audit_result result;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(audit_verify(fd, SAMPLE_SESSION, &anchor, &result), 0);
}

static int open_writer(struct audit_writer *writer)
{
	int fd = sample_log_fd(), copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	assert_int_equal(audit_writer_init(writer, fd, SAMPLE_SESSION), 0);
	return copy;
}

static struct audit_event subject_event(const void *subject, size_t size)
{
	return (struct audit_event){ .type = AUDIT_FILE_OPEN, .subject = subject, .subject_size = size };
}

static void put_two(struct json *json, const void *context)
{
	json_string(json, "text", context);
	json_array_begin(json, "list");
	json_u64(json, NULL, 7);
	json_array_end(json);
}

static void record_format(void **state)
{
	static const char expected_start[] = "{\"v\":1,\"seq\":1,\"ts\":\"";
	static const char expected_rest[] =
		"\",\"session\":\"k3v9q2m4x7dt\",\"type\":\"net.connect\",\"verdict\":\"deny\","
		"\"rule\":\"network.default\",\"pid\":42,\"exe\":\"/usr/bin/curl\",\"subject\":\"pastebin.com:443\","
		"\"detail\":{\"text\":\"a\\\"b\",\"list\":[7]},"
		"\"prev\":\"0000000000000000000000000000000000000000000000000000000000000000\"}\n";
	struct audit_event event = {
		.type = AUDIT_NET_CONNECT, .verdict = "deny", .rule = "network.default", .pid = 42,
		.exe = "/usr/bin/curl", .subject = "pastebin.com:443", .subject_size = 16,
		.write_detail = put_two, .context = "a\"b",
	};
	struct audit_writer writer;
	int copy = open_writer(&writer);
	size_t size;
	char *text;

	assert_int_equal(audit_write(&writer, &event), 0);
	assert_int_equal(audit_writer_done(&writer), 0);
	text = sample_log_read(copy, &size);
	assert_memory_equal(text, expected_start, strlen(expected_start));
	assert_string_equal(text + strlen(expected_start) + CLOCK_RFC3339_SIZE - 1, expected_rest);
	free(text);
	close(copy);
}

static void nothing_is_written_before_the_flush(void **state)
{
	struct audit_event event = { .type = AUDIT_ALERT };
	struct audit_writer writer;
	int copy = open_writer(&writer);
	struct stat st;

	assert_int_equal(audit_write(&writer, &event), 0);
	assert_int_equal(fstat(copy, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(audit_flush(&writer), 0);
	assert_int_equal(fstat(copy, &st), 0);
	assert_true(st.st_size > 0);
	assert_int_equal(audit_writer_done(&writer), 0);
	assert_log_whole(copy, &writer);
	close(copy);
}

static void batches_flush_themselves(void **state)
{
	struct audit_event event = { .type = AUDIT_EXEC_START, .verdict = "allow", .exe = "/bin/true" };
	struct audit_writer writer;
	int copy = open_writer(&writer);

	for (int i = 0; i < 5000; i++) {
		assert_int_equal(audit_write(&writer, &event), 0);
		assert_true(writer.pending.size < AUDIT_BATCH_MAX);
	}
	assert_int_equal(audit_writer_done(&writer), 0);
	assert_int_equal(writer.next_seq, 5001);
	assert_log_whole(copy, &writer);
	close(copy);
}

static void hostile_bytes_stay_in_their_line(void **state)
{
	static const char hostile[] = "\n{\"v\":1,\"seq\":2}\n\x1b[2J\x7f\xc2\x9b\xe2\x80\xae\\\"";
	static const char invalid[] = { '/', (char)0xff, '\n', 0, '"' };
	struct audit_event event = subject_event(hostile, sizeof hostile);
	struct audit_writer writer;
	int copy = open_writer(&writer);
	size_t size, lines = 0;
	char *text;

	event.exe = event.rule = event.verdict = hostile;
	assert_int_equal(audit_write(&writer, &event), 0);
	event = subject_event(invalid, sizeof invalid);
	event.exe = "/\xff\n";
	assert_int_equal(audit_write(&writer, &event), 0);
	assert_int_equal(audit_writer_done(&writer), 0);
	text = sample_log_read(copy, &size);
	assert_int_equal(strlen(text), size);
	for (size_t i = 0; i < size; i++) {
		lines += text[i] == '\n';
		assert_true(text[i] == '\n' || ((unsigned char)text[i] >= 0x20 && (unsigned char)text[i] < 0x7f));
	}
	assert_int_equal(lines, 2);
	assert_non_null(strstr(text, "\"subject\":{\"b64\":\"L/8KACI=\"}"));
	assert_non_null(strstr(text, "\"exe\":{\"b64\":\"L/8K\"}"));
	assert_log_whole(copy, &writer);
	free(text);
	close(copy);
}

static void put_too_much(struct json *json, const void *context)
{
	for (size_t i = 0; i < *(const size_t *)context; i++)
		json_string(json, "argument", "0123456789");
}

static void oversized_records_are_cut_and_say_so(void **state)
{
	static const size_t sizes[] = { 60000, 65000, 65100, 65200, 65300, 65536, 100000, 1 << 20 };
	char *subject = malloc(1 << 20);

	memset(subject, 'x', 1 << 20);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct audit_event event = subject_event(subject, sizes[i]);
		struct audit_writer writer;
		int copy = open_writer(&writer);
		size_t size;
		char *text;

		assert_int_equal(audit_write(&writer, &event), 0);
		event = (struct audit_event){ .type = AUDIT_EXEC_START };
		event.write_detail = put_too_much;
		event.context = &sizes[i];
		assert_int_equal(audit_write(&writer, &event), 0);
		assert_int_equal(audit_writer_done(&writer), 0);
		assert_log_whole(copy, &writer);
		text = sample_log_read(copy, &size);
		assert_int_equal(strstr(text, "\"cut\":true,\"subject_size\":") != NULL, true);
		assert_int_equal(strstr(text, "xxxx") != NULL, true);
		free(text);
		close(copy);
	}
	free(subject);
}

/* The worst expansion of each part at once: a cut record always fits. */
static void hostile_oversized_record(void **state)
{
	size_t size = 200000;
	char *bytes = malloc(size + 1);
	struct audit_event event = subject_event(bytes, size);
	struct audit_writer writer;
	int copy = open_writer(&writer);

	for (int c = 0; c < 2; c++) {
		memset(bytes, c ? 0xff : 0x01, size);
		bytes[size] = 0;
		event.exe = event.rule = event.verdict = bytes;
		assert_int_equal(audit_write(&writer, &event), 0);
	}
	assert_int_equal(audit_writer_done(&writer), 0);
	assert_log_whole(copy, &writer);
	close(copy);
	free(bytes);
}

static void cut_subjects_stay_text(void **state)
{
	for (size_t shift = 0; shift < 4; shift++) {
		size_t size = 80000 + shift, length;
		char *bytes = malloc(size);
		struct audit_event event = subject_event(bytes, size);
		struct audit_writer writer;
		int copy = open_writer(&writer);
		char *text;

		memset(bytes, 'a', size);
		for (size_t i = shift; i + 4 <= size; i += 4)
			memcpy(bytes + i, "\xf0\x9f\x8c\xb1", 4);
		assert_int_equal(audit_write(&writer, &event), 0);
		assert_int_equal(audit_writer_done(&writer), 0);
		text = sample_log_read(copy, &length);
		assert_null(strstr(text, "b64"));
		assert_non_null(strstr(text, "\xf0\x9f\x8c\xb1\","));
		free(text);
		close(copy);
		free(bytes);
	}
}

static void refuses_what_is_no_empty_log(void **state)
{
	struct audit_writer writer;
	int fd = sample_log_of_bytes("x", 1);

	assert_int_equal(audit_writer_init(&writer, fd, SAMPLE_SESSION), -EEXIST);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	assert_int_equal(audit_writer_done(&writer), -EEXIST);
	fd = sample_log_fd();
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_int_equal(audit_writer_init(&writer, fd, SAMPLE_SESSION), -EINVAL);
	assert_int_equal(audit_writer_init(&writer, sample_log_fd(), "short"), -EINVAL);
	assert_int_equal(audit_writer_init(&writer, sample_log_fd(), "k3v9q2m4x7dtx"), -EINVAL);
	assert_int_equal(audit_writer_init(&writer, sample_log_fd(), "K3V9Q2M4X7DT"), -EINVAL);
	assert_int_equal(audit_writer_init(&writer, -1, SAMPLE_SESSION), -EBADF);
}

static void full_device_is_sticky(void **state)
{
	struct audit_event event = { .type = AUDIT_ALERT };
	struct audit_writer writer;
	int fd = fd_open_at(AT_FDCWD, "/dev/full", O_WRONLY | O_APPEND, 0);

	assert_true(fd >= 0);
	assert_int_equal(audit_writer_init(&writer, fd, SAMPLE_SESSION), 0);
	assert_int_equal(audit_write(&writer, &event), 0);
	assert_int_equal(audit_flush(&writer), -ENOSPC);
	assert_int_equal(audit_write(&writer, &event), -ENOSPC);
	assert_int_equal(audit_flush(&writer), -ENOSPC);
	assert_int_equal(writer.next_seq, 1);
	assert_int_equal(audit_writer_done(&writer), -ENOSPC);
}

/* The file may grow to limit bytes only: the write(2) that crosses it is short, the next one fails. */
static void short_write_leaves_whole_lines(void **state)
{
	struct rlimit saved;
	struct audit_event event = { .type = AUDIT_EXEC_START, .subject = "0123456789", .subject_size = 10 };

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &saved), 0);
	for (size_t limit = 0; limit < 900; limit += 7) {
		char path[] = "/tmp/atoll-unit-XXXXXX";
		struct rlimit small = { limit, saved.rlim_max };
		struct audit_writer writer;
		int fd = mkostemp(path, O_APPEND | O_CLOEXEC), copy = fcntl(fd, F_DUPFD_CLOEXEC, 0), r;
		struct stat st;

		assert_int_equal(unlink(path), 0);
		assert_int_equal(audit_writer_init(&writer, fd, SAMPLE_SESSION), 0);
		for (int i = 0; i < 2; i++)
			assert_int_equal(audit_write(&writer, &event), 0);
		if (limit > 500)
			assert_int_equal(audit_flush(&writer), 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(audit_write(&writer, &event), 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		r = audit_flush(&writer);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &saved), 0);
		assert_int_equal(r, -EFBIG);
		assert_int_equal(audit_write(&writer, &event), -EFBIG);
		assert_int_equal(audit_writer_done(&writer), -EFBIG);
		assert_int_equal(fstat(copy, &st), 0);
		assert_true(limit > 500 || (size_t)st.st_size <= limit);
		assert_log_whole(copy, &writer);
		close(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_format),
		cmocka_unit_test(nothing_is_written_before_the_flush),
		cmocka_unit_test(batches_flush_themselves),
		cmocka_unit_test(hostile_bytes_stay_in_their_line),
		cmocka_unit_test(oversized_records_are_cut_and_say_so),
		cmocka_unit_test(hostile_oversized_record),
		cmocka_unit_test(cut_subjects_stay_text),
		cmocka_unit_test(refuses_what_is_no_empty_log),
		cmocka_unit_test(full_device_is_sticky),
		cmocka_unit_test(short_write_leaves_whole_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
