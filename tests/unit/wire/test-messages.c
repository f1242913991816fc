/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/init.h"

static struct buf out;
static char *argv[] = { (char *)"sh", (char *)"-c", (char *)"", NULL };
static char *env[] = { (char *)"A=1", NULL };
static char *nothing[] = { NULL };

static int setup(void **state)
{
	buf_init(&out, FRAME_MESSAGE_MAX);
	return 0;
}

static int teardown(void **state)
{
	buf_done(&out);
	return 0;
}

static struct frame reopen(void)
{
	struct frame frame;

	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	return frame;
}

/*
 * Every shorter frame, and every single changed byte: the reader fails or gives something whole, and never touches
 * what is not there (which the address sanitizer sees, since each copy has its exact size).
 */
static void damage_everywhere(int (*get)(struct frame *frame))
{
	uint8_t *whole = malloc(out.size);
	size_t total = out.size;

	memcpy(whole, out.bytes, total);
	for (size_t size = 16; size < total; size++) {
		uint8_t *copy = malloc(size);
		struct frame frame;
		uint32_t claimed = (uint32_t)size;

		memcpy(copy, whole, size);
		memcpy(copy + 8, &claimed, sizeof claimed);
		assert_int_equal(frame_open(&frame, copy, size), 0);
		assert_int_not_equal(get(&frame), 0);
		free(copy);
	}
	for (size_t at = 16; at < total; at++) {
		uint8_t *copy = malloc(total);
		struct frame frame;

		memcpy(copy, whole, total);
		copy[at] ^= 0xff;
		assert_int_equal(frame_open(&frame, copy, total), 0);
		(void)!get(&frame);
		free(copy);
	}
	free(whole);
}

static int get_spawn(struct frame *frame)
{
	struct init_spawn spawn;
	int r = init_spawn_get(frame, &spawn);

	if (r == 0) {
		assert_non_null(spawn.cwd);
		assert_non_null(spawn.argv[0]);
		free(spawn.argv);
		free(spawn.env);
	}
	return r;
}

static void spawn_comes_back(void **state)
{
	struct init_spawn spawn = {
		.id = 7, .flags = INIT_SPAWN_TTY, .umask = 022, .rows = 65535, .columns = 1, .cwd = "/",
		.argv = argv, .env = env,
	}, back;
	struct frame frame;

	assert_int_equal(init_spawn_put(&out, &spawn), 0);
	frame = reopen();
	assert_int_equal(frame.type, INIT_SPAWN);
	assert_int_equal(init_spawn_get(&frame, &back), 0);
	assert_int_equal(back.id, 7);
	assert_int_equal(back.umask, 022);
	assert_int_equal(back.rows, 65535);
	assert_int_equal(back.columns, 1);
	assert_string_equal(back.argv[1], "-c");
	assert_string_equal(back.env[0], "A=1");
	free(back.argv);
	free(back.env);
	damage_everywhere(get_spawn);
}

static void spawn_needs_a_command_and_a_directory(void **state)
{
	struct init_spawn spawn = { .cwd = "/", .argv = nothing, .env = env }, back = { .id = 99 };
	struct frame frame;

	assert_int_equal(init_spawn_put(&out, &spawn), 0);
	frame = reopen();
	assert_int_equal(init_spawn_get(&frame, &back), -EBADMSG);
	spawn = (struct init_spawn){ .argv = argv, .env = env };
	assert_int_equal(init_spawn_put(&out, &spawn), 0);
	frame = reopen();
	assert_int_equal(init_spawn_get(&frame, &back), -EBADMSG);
	assert_int_equal(back.id, 99);
}

static int get_exit(struct frame *frame)
{
	struct init_exit event;

	return init_exit_get(frame, &event);
}

static void exit_comes_back_within_its_bounds(void **state)
{
	static const struct {
		int32_t code, signal;
		int result;
	} samples[] = {
		{ 0, 0, 0 }, { 255, 0, 0 }, { -1, 64, 0 }, { 256, 0, -EBADMSG }, { -2, 0, -EBADMSG },
		{ -1, 65, -EBADMSG },
		{ -1, -1, -EBADMSG }, { INT32_MIN, 0, -EBADMSG }, { 0, INT32_MAX, -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct init_exit event = { 1, samples[i].code, samples[i].signal, 2, 3, UINT64_MAX }, back = { 0 };
		struct frame frame;

		assert_int_equal(init_exit_put(&out, &event), 0);
		frame = reopen();
		assert_int_equal(init_exit_get(&frame, &back), samples[i].result);
		if (samples[i].result < 0) {
			assert_int_equal(back.id, 0);
			continue;
		}
		assert_int_equal(back.id, event.id);
		assert_int_equal(back.code, event.code);
		assert_int_equal(back.signal, event.signal);
		assert_true(back.user_us == event.user_us && back.system_us == event.system_us);
		assert_true(back.max_rss_bytes == event.max_rss_bytes);
	}
	assert_int_equal(init_exit_put(&out, &(struct init_exit){ .id = 1 }), 0);
	damage_everywhere(get_exit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spawn_comes_back),
		cmocka_unit_test(spawn_needs_a_command_and_a_directory),
		cmocka_unit_test(exit_comes_back_within_its_bounds),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
