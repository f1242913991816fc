/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is remembered of tokens: nobody uses one more often than it says, not many at once either; what is revoked
 * stays so for all that was made from it; what has expired is forgotten, and what is damaged takes nothing.
 */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <sodium.h>

#include "base/str.h"
#include "token/keys.h"
#include "token/ledger.h"

enum { NOW_S = 1000000 };

static char directory[] = "/tmp/atolltest-ledger-XXXXXX";
static int dir_fd;

static void make(struct token *token, uint32_t uses, uint64_t expires_s)
{
	static const uint8_t seed[TOKEN_KEY_SIZE] = "a key";
	struct token_right right = { .kind = TOKEN_FILE_READ, .subject = "/data" };
	struct token_block block = { .rights = &right, .right_count = 1, .uses = uses, .expires_s = expires_s };

	for (int i = 0; i < TOKEN_LIMIT_COUNT; i++)
		block.limits[i] = UINT64_MAX;
	assert_int_equal(token_mint(seed, &block, token), 0);
}

static void narrow(const struct token *token, uint32_t uses, struct token *ret_token)
{
	struct token_block block = { .uses = uses };

	for (int i = 0; i < TOKEN_LIMIT_COUNT; i++)
		block.limits[i] = UINT64_MAX;
	assert_int_equal(token_append(token, &block, ret_token), 0);
}

/* As atoll-token does it. */
static enum token_fault use(const struct token *token, uint64_t now_s)
{
	enum token_fault fault = TOKEN_MALFORMED;
	struct ledger ledger;
	struct err err;

	if (ledger_begin(&ledger, dir_fd, &err) == 0) {
		fault = ledger_judge(&ledger, token);
		if (fault == TOKEN_FINE &&
		    (ledger_count_use(&ledger, token) < 0 || ledger_store(&ledger, now_s, &err) < 0))
			fault = TOKEN_MALFORMED;
	}
	ledger_close(&ledger);
	return fault;
}

static void uses_count_for_all_that_was_made_from_it(void **state)
{
	cleanup_token struct token token = { 0 }, narrowed = { 0 }, again = { 0 };

	make(&token, 3, NOW_S + 60);
	narrow(&token, 1, &narrowed);
	narrow(&token, 0, &again);
	assert_int_equal(use(&narrowed, NOW_S), TOKEN_FINE);
	assert_int_equal(use(&narrowed, NOW_S), TOKEN_USED_UP);
	assert_int_equal(use(&again, NOW_S), TOKEN_FINE);
	assert_int_equal(use(&token, NOW_S), TOKEN_FINE);
	assert_int_equal(use(&again, NOW_S), TOKEN_USED_UP);
	assert_int_equal(use(&token, NOW_S), TOKEN_USED_UP);
}

static void many_at_once_do_not_cheat(void **state)
{
	enum { TRIERS = 12, USES = 3 };
	cleanup_token struct token token = { 0 };
	pid_t pids[TRIERS];
	int got = 0, refused = 0;

	make(&token, USES, NOW_S + 60);
	for (int i = 0; i < TRIERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit((int)use(&token, NOW_S));
	}
	for (int i = 0; i < TRIERS; i++) {
		int status;

		assert_true(waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status));
		got += WEXITSTATUS(status) == TOKEN_FINE;
		refused += WEXITSTATUS(status) == TOKEN_USED_UP;
	}
	assert_true(got == USES && refused == TRIERS - USES);
}

static void what_is_revoked_stays_so(void **state)
{
	cleanup_token struct token token = { 0 }, narrowed = { 0 };
	struct token_id ids[TOKEN_BLOCKS_MAX];
	struct ledger ledger;
	struct err err;

	make(&token, 0, NOW_S + 60);
	narrow(&token, 5, &narrowed);
	assert_int_equal(use(&narrowed, NOW_S), TOKEN_FINE);
	token_ids(&narrowed, ids);
	assert_int_equal(ledger_begin(&ledger, dir_fd, &err), 0);
	ledger_note(&ledger, &ids[1], NOW_S + 60)->flags |= LEDGER_REVOKED;
	assert_int_equal(ledger_store(&ledger, NOW_S, &err), 0);
	ledger_close(&ledger);
	assert_int_equal(use(&narrowed, NOW_S), TOKEN_REVOKED);
	assert_int_equal(use(&token, NOW_S), TOKEN_FINE); /* the wider one was not */
	assert_int_equal(ledger_begin(&ledger, dir_fd, &err), 0);
	ledger_note(&ledger, &ids[0], NOW_S + 60)->flags |= LEDGER_REVOKED;
	assert_int_equal(ledger_store(&ledger, NOW_S, &err), 0);
	ledger_close(&ledger);
	assert_int_equal(use(&token, NOW_S), TOKEN_REVOKED);
}

static void what_has_expired_is_forgotten_but_not_at_once(void **state)
{
	cleanup_token struct token token = { 0 }, later = { 0 };
	struct token_id ids[TOKEN_BLOCKS_MAX];
	struct ledger ledger;
	struct err err;

	make(&token, 1, NOW_S + 60);
	make(&later, 9, NOW_S + 100000);
	token_ids(&token, ids);
	assert_int_equal(use(&token, NOW_S), TOKEN_FINE);
	assert_int_equal(use(&later, NOW_S + 120), TOKEN_FINE);
	assert_int_equal(ledger_open(&ledger, dir_fd, &err), 0);
	assert_non_null(ledger_find(&ledger, &ids[0])); /* a clock may be set back a little */
	ledger_close(&ledger);
	assert_int_equal(use(&later, NOW_S + 9000), TOKEN_FINE);
	assert_int_equal(ledger_open(&ledger, dir_fd, &err), 0);
	assert_null(ledger_find(&ledger, &ids[0]));
	ledger_close(&ledger);
}

static void what_is_damaged_takes_nothing(void **state)
{
	cleanup_token struct token token = { 0 };
	int fd;

	make(&token, 1, NOW_S + 60);
	assert_int_equal(use(&token, NOW_S), TOKEN_FINE);
	fd = openat(dir_fd, "ledger", O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(use(&token, NOW_S), TOKEN_MALFORMED);
	assert_int_equal(ftruncate(fd, 4), 0);
	assert_int_equal(use(&token, NOW_S), TOKEN_MALFORMED);
	close(fd);
	unlinkat(dir_fd, "ledger", 0);
	assert_int_equal(symlinkat("lock", dir_fd, "ledger"), 0);
	assert_int_equal(use(&token, NOW_S), TOKEN_MALFORMED);
	unlinkat(dir_fd, "ledger", 0);
}

static void keys_are_made_once_and_trusted_ones_kept(void **state)
{
	char text[TOKEN_KEY_TEXT_SIZE];
	uint8_t key[TOKEN_KEY_SIZE] = "another's", again[TOKEN_KEY_SIZE], first[TOKEN_KEY_SIZE];
	struct token_keys keys;
	struct err err;

	assert_int_equal(token_keys_load(&keys, dup(dir_fd), directory, &err), 0);
	assert_false(keys.has_key);
	assert_int_equal(token_keys_need(&keys, &err), 0);
	memcpy(first, keys.public, sizeof first);
	assert_true(token_keys_trust(&keys, first) && !token_keys_trust(&keys, key));
	token_key_format(key, text);
	assert_int_equal(token_key_parse(text, again), 0);
	assert_memory_equal(key, again, sizeof key);
	assert_true(token_key_parse("atoll1-key.AA", again) < 0 && token_key_parse("x", again) < 0);
	assert_int_equal(token_keys_add(&keys, key, "the build server", &err), 0);
	assert_int_equal(token_keys_add(&keys, key, "", &err), 1);
	assert_true(token_keys_add(&keys, again + 0, "two\nlines", &err) != 0);
	token_keys_done(&keys);
	assert_int_equal(token_keys_load(&keys, dup(dir_fd), directory, &err), 0);
	assert_true(token_keys_trust(&keys, key) && memcmp(keys.public, first, sizeof first) == 0);
	assert_string_equal(keys.trusted[0].note, "the build server");
	assert_int_equal(token_keys_remove(&keys, key, &err), 0);
	assert_int_equal(token_keys_remove(&keys, key, &err), 1);
	token_keys_done(&keys);
	/* A key that others can read is none. */
	assert_int_equal(fchmodat(dir_fd, "key", 0644, 0), 0);
	assert_true(token_keys_load(&keys, dup(dir_fd), directory, &err) < 0);
	token_keys_done(&keys);
}

static int setup(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "ledger", "ledger.new", "lock", "key", "trusted" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unlinkat(dir_fd, names[i], 0);
	return rmdir(directory);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(uses_count_for_all_that_was_made_from_it),
		cmocka_unit_test(many_at_once_do_not_cheat),
		cmocka_unit_test(what_is_revoked_stays_so),
		cmocka_unit_test(what_has_expired_is_forgotten_but_not_at_once),
		cmocka_unit_test(what_is_damaged_takes_nothing),
		cmocka_unit_test(keys_are_made_once_and_trusted_ones_kept),
	};

	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, setup, teardown);
}
