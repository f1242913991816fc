/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "vault/store.h"

static char directory[] = "/tmp/atoll-unit-vault-XXXXXX", path[64];

static int setup(void **state)
{
	(void)state;
	if (sodium_init() < 0 || !mkdtemp(directory))
		return -1;
	return str_format(path, sizeof path, "%s/v", directory);
}

static int empty(void **state)
{
	(void)state;
	return path_remove_tree(AT_FDCWD, path);
}

static int teardown(void **state)
{
	(void)state;
	return path_remove_tree(AT_FDCWD, directory);
}

static const char *in_vault(const char *name)
{
	static char full[128];

	assert_int_equal(str_format(full, sizeof full, "%s/%s", path, name), 0);
	return full;
}

static void store_secret(const char *name, const char *value)
{
	cleanup_vault struct vault vault;
	struct err err = { 0 };

	assert_int_equal(vault_open(&vault, path, true, &err), 0);
	assert_int_equal(vault_begin_change(&vault, &err), 0);
	assert_true(secrets_set(vault.secrets, name, value, strlen(value), 1) >= 0);
	assert_int_equal(vault_store(&vault, &err), 0);
}

/* 0, or why the vault cannot be read. */
static int load(struct vault *vault, struct err *err)
{
	int r = vault_open(vault, path, false, err);

	if (r == 0)
		r = vault_read_key(vault, err);
	if (r == 0)
		r = vault_unlock(vault, NULL, 0, err);
	return r == 0 ? vault_load(vault, err) : r;
}

static void assert_kept(const char *name, const char *value)
{
	cleanup_vault struct vault vault;
	struct err err = { 0 };
	const struct secret *secret;

	assert_int_equal(load(&vault, &err), 0);
	secret = secrets_find(vault.secrets, name);
	assert_non_null(secret);
	assert_int_equal(secret->size, strlen(value));
	assert_memory_equal(secret->value, value, secret->size);
}

static void assert_refused(const char *text)
{
	cleanup_vault struct vault vault;
	struct err err = { 0 };

	assert_true(load(&vault, &err) < 0);
	if (!strstr(err.message, text))
		fail_msg("\"%s\" is not in \"%s\"", text, err.message);
}

static void test_kept_and_private(void **state)
{
	static const char *const names[] = { "key", "secrets", "lock" };
	struct stat st;

	store_secret("a", "one");
	store_secret("b", "two");
	assert_kept("a", "one");
	assert_kept("b", "two");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(stat(in_vault(names[i]), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
}

static void test_nothing_yet(void **state)
{
	cleanup_vault struct vault vault;
	struct err err = { 0 };

	assert_int_equal(vault_open(&vault, path, false, &err), -ENOENT);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void test_permissions_too_wide(void **state)
{
	static const mode_t modes[] = { 0640, 0604, 0620, 0602, 0610 };

	store_secret("a", "one");
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		assert_int_equal(chmod(in_vault("key"), modes[i]), 0);
		assert_refused("is open to others");
	}
	assert_int_equal(chmod(in_vault("key"), 0600), 0);
	assert_int_equal(chmod(in_vault("secrets"), 0644), 0);
	assert_refused("is open to others");
	assert_int_equal(chmod(in_vault("secrets"), 0600), 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_refused("is open to others");
	assert_int_equal(chmod(path, 0700), 0);
	assert_kept("a", "one");
}

static void test_another_owner(void **state)
{
	if (geteuid() != 0) {
		print_message("only root can give files away\n");
		skip();
	}
	store_secret("a", "one");
	assert_int_equal(chown(in_vault("key"), 12345, 0), 0);
	assert_refused("belongs to uid 12345");
	assert_int_equal(chown(in_vault("key"), 0, 0), 0);
	assert_int_equal(chown(path, 12345, 0), 0);
	assert_refused("belongs to uid 12345");
}

static void test_links_and_other_kinds(void **state)
{
	char aside[128];

	store_secret("a", "one");
	assert_int_equal(str_format(aside, sizeof aside, "%s/aside", directory), 0);
	unlink(aside);
	assert_int_equal(rename(in_vault("key"), aside), 0);
	assert_int_equal(symlink(aside, in_vault("key")), 0);
	assert_refused("key");
	assert_int_equal(unlink(in_vault("key")), 0);
	assert_int_equal(link(aside, in_vault("key")), 0);
	assert_refused("not a regular file, or has other hard links");
	assert_int_equal(unlink(in_vault("key")), 0);
	assert_int_equal(mkfifo(in_vault("key"), 0600), 0);
	assert_refused("not a regular file, or has other hard links");
	assert_int_equal(unlink(in_vault("key")), 0);
	assert_int_equal(rename(aside, in_vault("key")), 0);
	assert_kept("a", "one");
}

/* A new key would make the secrets unreadable for ever. */
static void test_secrets_without_a_key(void **state)
{
	cleanup_vault struct vault vault;
	struct err err = { 0 };

	store_secret("a", "one");
	assert_int_equal(unlink(in_vault("key")), 0);
	assert_refused("is missing");
	assert_int_equal(vault_open(&vault, path, true, &err), 0);
	assert_true(vault_begin_change(&vault, &err) < 0);
	assert_int_equal(access(in_vault("key"), F_OK), -1);
}

static void test_damaged_at_every_byte(void **state)
{
	static const char *const names[] = { "key", "secrets" };

	store_secret("a", "one");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_free char *bytes = NULL;
		size_t size;

		assert_int_equal(fd_read_file_at(AT_FDCWD, in_vault(names[i]), 1 << 20, &bytes, &size), 0);
		for (size_t at = 0; at < size; at += i ? 7 : 1) {
			bytes[at] ^= 0x20;
			assert_int_equal(fd_replace_file_at(AT_FDCWD, in_vault(names[i]), bytes, size, 0600), 0);
			assert_refused(names[i]);
			bytes[at] ^= 0x20;
		}
		assert_int_equal(fd_replace_file_at(AT_FDCWD, in_vault(names[i]), bytes, size / 2, 0600), 0);
		assert_refused(names[i]);
		assert_int_equal(fd_replace_file_at(AT_FDCWD, in_vault(names[i]), bytes, size, 0600), 0);
	}
	assert_kept("a", "one");
}

static void test_passphrase(void **state)
{
	cleanup_vault struct vault vault, again;
	struct err err = { 0 };

	store_secret("a", "one");
	assert_int_equal(load(&vault, &err), 0);
	assert_int_equal(vault_begin_change(&vault, &err), 0);
	assert_int_equal(vault_store_key(&vault, "pass", 4, &err), 0);
	assert_int_equal(vault_open(&again, path, false, &err), 0);
	assert_int_equal(vault_read_key(&again, &err), VAULT_NEEDS_PASSPHRASE);
	assert_int_equal(vault_unlock(&again, "wrong", 5, &err), VAULT_WRONG_PASSPHRASE);
	assert_int_equal(vault_unlock(&again, NULL, 0, &err), VAULT_WRONG_PASSPHRASE);
	assert_int_equal(vault_unlock(&again, "pass", 4, &err), 0);
	assert_int_equal(vault_load(&again, &err), 0);
	assert_non_null(secrets_find(again.secrets, "a"));
	/* A cached key that is none of ours. */
	assert_int_equal(vault_use_key(&again, (const uint8_t[SEAL_KEY_SIZE]){ 1 }, &err), 0);
	assert_true(vault_load(&again, &err) < 0);
}

/* What a crash left under the temporary name neither hinders nor is read. */
static void test_leftovers(void **state)
{
	store_secret("a", "one");
	assert_int_equal(symlink("/etc/passwd", in_vault("secrets.new")), 0);
	store_secret("b", "two");
	assert_kept("b", "two");
	assert_int_equal(access(in_vault("secrets.new"), F_OK), -1);
}

static void test_changes_wait_for_one_another(void **state)
{
	enum { CHILDREN = 8, EACH = 4 };
	char name[16];

	for (int child = 0; child < CHILDREN; child++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			for (int i = 0; i < EACH; i++) {
				if (str_format(name, sizeof name, "n%d-%d", child, i) < 0)
					_exit(1);
				store_secret(name, name);
			}
			_exit(0);
		}
	}
	for (int child = 0; child < CHILDREN; child++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	for (int child = 0; child < CHILDREN; child++) {
		for (int i = 0; i < EACH; i++) {
			assert_int_equal(str_format(name, sizeof name, "n%d-%d", child, i), 0);
			assert_kept(name, name);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_kept_and_private, empty),
		cmocka_unit_test_teardown(test_nothing_yet, empty),
		cmocka_unit_test_teardown(test_permissions_too_wide, empty),
		cmocka_unit_test_teardown(test_another_owner, empty),
		cmocka_unit_test_teardown(test_links_and_other_kinds, empty),
		cmocka_unit_test_teardown(test_secrets_without_a_key, empty),
		cmocka_unit_test_teardown(test_damaged_at_every_byte, empty),
		cmocka_unit_test_teardown(test_passphrase, empty), cmocka_unit_test_teardown(test_leftovers, empty),
		cmocka_unit_test_teardown(test_changes_wait_for_one_another, empty),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
