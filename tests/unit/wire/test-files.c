/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <limits.h>

#include "base/str.h"
#include "wire/files.h"

#define HAS(field) (1u << FILES_HAS_##field)

static struct buf out;

static int setup(void **state)
{
	buf_init(&out, FRAME_MESSAGE_MAX);
	frame_begin(&out, FILES_REQUEST);
	return 0;
}

static int teardown(void **state)
{
	buf_done(&out);
	return 0;
}

static int get(struct files_request *request)
{
	struct frame frame;

	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	return files_request_get(&frame, request);
}

static int put_and_get(const struct files_request *request)
{
	struct files_request got = { 0 };
	int r;

	frame_begin(&out, FILES_REQUEST);
	files_request_put(&out, request);
	r = get(&got);
	free(got.attributes);
	return r;
}

static void a_request_comes_back(void **state)
{
	char *attributes[] = { (char *)"a=1", (char *)"b=", NULL };
	const struct files_request request = {
		.operation = FILES_SETATTR, .path = "/a", .nofollow = 1, .mode = 07777, .uid = UINT32_MAX - 1,
		.gid = 0, .mtime_ns = INT64_MAX, .attributes = attributes,
		.set = HAS(PATH) | HAS(NOFOLLOW) | HAS(MODE) | HAS(UID) | HAS(GID) | HAS(MTIME) | HAS(ATTRIBUTES),
	};
	struct files_request got;

	files_request_put(&out, &request);
	assert_int_equal(get(&got), 0);
	assert_int_equal(got.operation, FILES_SETATTR);
	assert_int_equal(got.set, request.set);
	assert_string_equal(got.path, "/a");
	assert_int_equal(got.mode, 07777);
	assert_int_equal(got.uid, UINT32_MAX - 1);
	assert_int_equal(got.mtime_ns, INT64_MAX);
	assert_string_equal(got.attributes[1], "b=");
	assert_null(got.attributes[2]);
	free(got.attributes);
}

/* Each operation with nothing, with all that it must have, and with a field that is another's. */
static void each_operation_has_its_fields(void **state)
{
	static const struct {
		enum files_operation operation;
		uint32_t must, not_its;
	} cases[] = {
		{ FILES_OPEN, HAS(PATH) | HAS(FLAGS), HAS(DEPTH) },
		{ FILES_STAT, HAS(PATH), HAS(MODE) },
		{ FILES_READDIR, HAS(PATH), HAS(MODE) },
		{ FILES_MKDIR, HAS(PATH) | HAS(MODE), HAS(FLAGS) },
		{ FILES_MOVE, HAS(PATH) | HAS(TO), HAS(FLAGS) },
		{ FILES_REMOVE, HAS(PATH), HAS(TO) },
		{ FILES_SETATTR, HAS(PATH), HAS(FLAGS) },
		{ FILES_WATCH, HAS(PATH), HAS(WATCH) },
		{ FILES_UNWATCH, HAS(WATCH), HAS(PATH) },
		{ FILES_CONNECT, HAS(PORT), HAS(PATH) },
	};

	assert_int_equal(ARRAY_SIZE(cases), FILES_OPERATION_COUNT - 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct files_request request = { .operation = cases[i].operation, .path = "/a", .to = "/b",
						 .depth = 1, .port = 1, .watch = 1 };

		request.set = cases[i].must;
		assert_int_equal(put_and_get(&request), 0);
		request.set = cases[i].must | cases[i].not_its;
		assert_int_equal(put_and_get(&request), -EBADMSG);
		for (unsigned j = 0; j < FILES_FIELD_COUNT; j++) {
			request.set = cases[i].must & ~(1u << j);
			if (request.set != cases[i].must)
				assert_int_equal(put_and_get(&request), -EBADMSG);
		}
	}
}

static void an_unknown_operation_is_refused(void **state)
{
	static const uint32_t operations[] = { 0, FILES_OPERATION_COUNT, INT32_MAX, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		const struct files_request request = { .operation = (enum files_operation)operations[i],
						       .path = "/a", .set = HAS(PATH) };

		assert_int_equal(put_and_get(&request), -EBADMSG);
	}
}

static void numbers_have_bounds(void **state)
{
	static const struct {
		struct files_request request;
		int result;
	} cases[] = {
		{ { FILES_OPEN, HAS(PATH) | HAS(FLAGS), "/", .flags = 0xff }, 0 },
		{ { FILES_OPEN, HAS(PATH) | HAS(FLAGS), "/", .flags = 0x100 }, -EBADMSG },
		{ { FILES_MKDIR, HAS(PATH) | HAS(MODE), "/", .mode = 010000 }, -EBADMSG },
		{ { FILES_SETATTR, HAS(PATH) | HAS(UID), "/", .uid = UINT32_MAX }, -EBADMSG },
		{ { FILES_SETATTR, HAS(PATH) | HAS(GID), "/", .gid = UINT64_MAX }, -EBADMSG },
		{ { FILES_SETATTR, HAS(PATH) | HAS(MTIME), "/", .mtime_ns = (uint64_t)INT64_MAX + 1 }, -EBADMSG },
		{ { FILES_SETATTR, HAS(PATH) | HAS(NOFOLLOW), "/", .nofollow = 2 }, -EBADMSG },
		{ { FILES_READDIR, HAS(PATH) | HAS(DEPTH), "/", .depth = FILES_DEPTH_MAX }, 0 },
		{ { FILES_READDIR, HAS(PATH) | HAS(DEPTH), "/", .depth = FILES_DEPTH_MAX + 1 }, -EBADMSG },
		{ { FILES_READDIR, HAS(PATH) | HAS(DEPTH), "/", .depth = 0 }, -EBADMSG },
		{ { FILES_READDIR, HAS(PATH) | HAS(FROM), "/", .from = (uint64_t)UINT32_MAX + 1 }, -EBADMSG },
		{ { FILES_CONNECT, HAS(PORT), .port = UINT16_MAX }, 0 },
		{ { FILES_CONNECT, HAS(PORT), .port = UINT16_MAX + 1 }, -EBADMSG },
		{ { FILES_CONNECT, HAS(PORT), .port = 0 }, -EBADMSG },
		{ { FILES_CONNECT, HAS(PORT) | HAS(FAMILY), .port = 1, .family = 7 }, -EBADMSG },
		{ { FILES_UNWATCH, HAS(WATCH), .watch = 0 }, -EBADMSG },
		{ { FILES_UNWATCH, HAS(WATCH), .watch = UINT64_MAX }, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(put_and_get(&cases[i].request), cases[i].result);
}

static void paths_are_absolute_and_not_too_long(void **state)
{
	static char path[PATH_MAX + 1];
	struct files_request request = { .operation = FILES_STAT, .set = HAS(PATH), .path = path };

	assert_int_equal(put_and_get(&request), -EBADMSG); /* "" */
	memset(path, 'a', PATH_MAX);
	assert_int_equal(put_and_get(&request), -EBADMSG);
	path[0] = '/';
	assert_int_equal(put_and_get(&request), -EBADMSG);
	path[PATH_MAX - 1] = 0;
	assert_int_equal(put_and_get(&request), 0);
}

static int put_attributes(const char *first, const char *second)
{
	char *attributes[] = { (char *)first, (char *)second, NULL };
	const struct files_request request = { .operation = FILES_SETATTR, .set = HAS(PATH) | HAS(ATTRIBUTES),
					       .path = "/a", .attributes = attributes };

	return put_and_get(&request);
}

static void attributes_have_a_form_and_a_size(void **state)
{
	static char value[FILES_ATTRIBUTES_MAX + 1], name[NAME_MAX + 1];

	assert_int_equal(put_attributes("a=1", NULL), 0);
	assert_int_equal(put_attributes("a=1", "b"), -EBADMSG);
	assert_int_equal(put_attributes("=1", NULL), -EBADMSG);
	assert_int_equal(put_attributes("", NULL), -EBADMSG);
	/* "user." comes before it. */
	memset(name, 'n', NAME_MAX);
	name[NAME_MAX - 4] = '=';
	assert_int_equal(put_attributes(name, NULL), -EBADMSG);
	name[NAME_MAX - 5] = '=';
	assert_int_equal(put_attributes(name, NULL), 0);
	memset(value, 'v', sizeof value - 1);
	value[1] = '=';
	assert_int_equal(put_attributes(value, NULL), -EBADMSG);
	value[FILES_ATTRIBUTES_MAX - 1] = 0;
	assert_int_equal(put_attributes(value, NULL), 0);
	assert_int_equal(put_attributes(value, "a="), -EBADMSG);
}

static void put_head(uint32_t operation)
{
	frame_put_u32(&out, operation);
	field_put_string(&out, "path", "/a");
}

static void put_twice(void) { field_put_string(&out, "path", "/a"); }
static void put_kind(void) { field_put_string(&out, "flags", "1"); }
static void put_bytes(void) { field_put_bytes(&out, "flags", "1", 1); }
static void put_fd(void) { field_put_fd(&out, "flags", 0); }
static void put_unknown(void) { field_put_u64(&out, "volume", 1); }
static void put_no_key(void) { field_put_u64(&out, NULL, 1); }
static void put_half(void) { frame_put_string(&out, "flags"); }
static void put_no_kind(void) { frame_put_string(&out, "flags"); frame_put_u32(&out, FIELD_KIND_END); }

static void put_lists_twice(void)
{
	const char *const list[] = { "a=1", NULL };

	field_put_strings(&out, "attributes", list);
	field_put_strings(&out, "attributes", list);
}

static void what_is_no_field_is_refused(void **state)
{
	static void (*const puts[])(void) = {
		put_twice, put_kind, put_bytes, put_fd, put_unknown, put_no_key, put_half, put_no_kind, put_lists_twice,
	};
	struct files_request got = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(puts); i++) {
		frame_begin(&out, FILES_REQUEST);
		put_head(i == ARRAY_SIZE(puts) - 1 ? FILES_SETATTR : FILES_STAT);
		puts[i]();
		assert_int_equal(get(&got), -EBADMSG);
	}
	assert_null(got.attributes);
}

static void what_can_change_something_is_known(void **state)
{
	static const bool changes[FILES_OPERATION_COUNT] = {
		[FILES_MKDIR] = true, [FILES_MOVE] = true, [FILES_REMOVE] = true, [FILES_SETATTR] = true,
	};
	struct files_request request = { .operation = FILES_OPEN, .flags = FILES_OPEN_READ };

	assert_false(files_request_changes(&request));
	for (unsigned bit = 1; bit < 8; bit++) {
		request.flags = FILES_OPEN_READ | 1u << bit;
		assert_true(files_request_changes(&request));
	}
	for (unsigned i = FILES_STAT; i < FILES_OPERATION_COUNT; i++) {
		request.operation = (enum files_operation)i;
		assert_int_equal(files_request_changes(&request), changes[i]);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_request_comes_back),
		CASE(each_operation_has_its_fields),
		CASE(an_unknown_operation_is_refused),
		CASE(numbers_have_bounds),
		CASE(paths_are_absolute_and_not_too_long),
		CASE(attributes_have_a_form_and_a_size),
		CASE(what_is_no_field_is_refused),
		CASE(what_can_change_something_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
