/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "monitor/noise.h"
#include "monitor/paths.h"

static uint64_t state_of_chance = 88172645463325252u;

static void fill_random(uint8_t *out, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		state_of_chance ^= state_of_chance << 13;
		state_of_chance ^= state_of_chance >> 7;
		state_of_chance ^= state_of_chance << 17;
		out[i] = (uint8_t)(state_of_chance >> 32);
	}
}

static void fill_text(uint8_t *out, size_t size)
{
	static const char text[] = "int main(void) { return printf(\"hello, world\\n\") < 0; } /* and so on */\n";

	for (size_t i = 0; i < size; i++)
		out[i] = (uint8_t)text[i % (sizeof text - 1)];
}

/* Addresses, small numbers and zeros, as in programs. */
static void fill_binary(uint8_t *out, size_t size)
{
	fill_random(out, size);
	for (size_t i = 0; i < size; i++)
		out[i] = i % 4 ? 0 : out[i] & 0x3f;
}

static void noise_is_told_from_text_and_programs_at_every_size(void **state)
{
	static const size_t sizes[] = { 16, 25, 64, 200, 256, 300, 1000, 4096 };
	uint8_t noise[NOISE_SAMPLE], text[NOISE_SAMPLE], binary[NOISE_SAMPLE];
	unsigned found = 0, all = 0;

	for (unsigned round = 0; round < 200; round++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			size_t size = sizes[i];

			fill_random(noise, size);
			fill_text(text, size);
			fill_binary(binary, size);
			assert_false(noise_is_scrambled(text, size, text, size));
			assert_false(noise_is_scrambled(binary, size, text, size));
			assert_false(noise_is_scrambled(noise, size, noise, size));
			all++;
			found += noise_is_scrambled(noise, size, text, size);
		}
	/* A few look like a known format by their first bytes, or are too even. */
	assert_true(found >= all * 95 / 100);
}

static void compressed_formats_say_so(void **state)
{
	static const char *const starts[] = { "\x1f\x8b", "PK\x03\x04", "\x89PNG", ("\xfd" "7zXZ"), "\x78\x9c" };
	uint8_t noise[NOISE_SAMPLE], text[NOISE_SAMPLE];

	fill_text(text, sizeof text);
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
		fill_random(noise, sizeof noise);
		noise[0] = 'a'; /* no known one */
		assert_true(noise_is_scrambled(noise, sizeof noise, text, sizeof text));
		memcpy(noise, starts[i], strlen(starts[i]));
		assert_false(noise_is_scrambled(noise, sizeof noise, text, sizeof text));
		assert_false(noise_is_scrambled(noise, sizeof noise, NULL, 0));
	}
}

static void nothing_is_said_of_what_is_too_small(void **state)
{
	uint8_t noise[NOISE_SAMPLE];

	fill_random(noise, sizeof noise);
	for (size_t size = 0; size < NOISE_MIN; size++)
		assert_false(noise_is_uniform(noise, size));
	noise[0] = 'a';
	assert_false(noise_is_scrambled(noise, 100, NULL, 0));
}

static void paths_are_known_by_their_names(void **state)
{
	assert_true(monitor_is_secret_path("/home/u/.ssh/id_ed25519"));
	assert_true(monitor_is_secret_path("/home/u/.aws/credentials"));
	assert_true(monitor_is_secret_path("/p/.env"));
	assert_true(monitor_is_secret_path("/p/server.key"));
	assert_false(monitor_is_secret_path("/etc/ssl/certs/x.pem"));
	assert_false(monitor_is_secret_path("/usr/lib/python3/cacert.pem"));
	assert_false(monitor_is_secret_path("/p/main.c"));
	assert_true(monitor_is_startup_path("/home/u/.bashrc"));
	assert_true(monitor_is_startup_path("/p/.git/hooks/pre-commit"));
	assert_true(monitor_is_startup_path("/etc/cron.d/x"));
	assert_false(monitor_is_startup_path("/p/src/bashrc.c"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noise_is_told_from_text_and_programs_at_every_size),
		cmocka_unit_test(compressed_formats_say_so),
		cmocka_unit_test(nothing_is_said_of_what_is_too_small),
		cmocka_unit_test(paths_are_known_by_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
