/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-secret/job.h"

#include <sodium.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/keyring.h"
#include "prog/atoll-secret/prompt.h"

enum { CACHE_SECONDS = 15 * 60, TRIES_MAX = 3, DESCRIPTION_SIZE = 64 };

static void describe(const struct job *job, char out[DESCRIPTION_SIZE])
{
	char hex[2 * SEAL_ID_SIZE + 1];

	sodium_bin2hex(hex, sizeof hex, job->vault.id, SEAL_ID_SIZE);
	if (str_format(out, DESCRIPTION_SIZE, "atoll:vault:%s", hex) < 0)
		abort();
}

static void put_cache(const struct job *job)
{
	char description[DESCRIPTION_SIZE];

	describe(job, description);
	/* Where there is no keyring the passphrase is asked for each time, which is what happens anyway. */
	if (keyring_put(description, job->vault.key->bytes, SEAL_KEY_SIZE, CACHE_SECONDS) < 0)
		return;
}

void job_drop_cache(const struct job *job)
{
	char description[DESCRIPTION_SIZE];

	describe(job, description);
	if (keyring_drop(description) < 0)
		return;
}

/* 0 when the key was in the keyring. */
static int use_cache(struct job *job)
{
	uint8_t key[SEAL_KEY_SIZE];
	char description[DESCRIPTION_SIZE];
	int r;

	describe(job, description);
	r = keyring_get(description, key, sizeof key);
	if (r == 0)
		r = vault_use_key(&job->vault, key, job->err);
	sodium_memzero(key, sizeof key);
	return r;
}

static int ask_passphrase(struct job *job)
{
	char *line = sodium_malloc(PROMPT_LINE_MAX + 2);
	int r = VAULT_WRONG_PASSPHRASE;

	if (!line)
		return err_set(job->err, ERR_INTERNAL, ENOMEM, "secret", "no memory");
	for (unsigned tries = 0; r == VAULT_WRONG_PASSPHRASE && tries < TRIES_MAX; tries++) {
		const char *text = tries ? "Wrong. Passphrase of the vault" : "Passphrase of the vault";
		ssize_t size = prompt_line(job->tty_fd, text, line, job->err);

		r = size < 0 ? (int)size : vault_unlock(&job->vault, line, (size_t)size, job->err);
	}
	sodium_free(line);
	if (r != VAULT_WRONG_PASSPHRASE)
		return r;
	err_set(job->err, ERR_USAGE, EACCES, "secret", "this is not the passphrase, or %s/key is damaged",
		job->vault.path);
	err_hint(job->err, "without it the secrets cannot be read; remove %s and set them again", job->vault.path);
	return -EACCES;
}

int job_unlock(struct job *job)
{
	int r = job->exists ? vault_read_key(&job->vault, job->err) : VAULT_NO_KEY;

	if (r < 0 || r == VAULT_NO_KEY)
		return r < 0 ? r : 0;
	if (r == 0)
		return vault_unlock(&job->vault, NULL, 0, job->err);
	if (use_cache(job) == 0)
		return 0;
	r = ask_passphrase(job);
	if (r == 0)
		put_cache(job);
	return r;
}

int job_begin_change(struct job *job)
{
	int r = job_unlock(job);

	return r < 0 ? r : vault_begin_change(&job->vault, job->err);
}

int job_fail_unknown(struct job *job, const char *name)
{
	const char *names[SECRETS_MAX], *nearest;
	size_t count = job->vault.secrets ? job->vault.secrets->count : 0;

	for (size_t i = 0; i < count; i++)
		names[i] = job->vault.secrets->items[i].name;
	nearest = names_nearest(names, count, name);
	err_set(job->err, ERR_NOT_FOUND, ENOENT, "secret", "there is no secret %s", name);
	if (nearest)
		err_hint(job->err, "did you mean %s?", nearest);
	else
		err_hint(job->err, "`atoll secret list` shows the names");
	return -ENOENT;
}

int job_print(struct job *job, struct buf *text)
{
	int r = buf_error(text);

	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, text->bytes, text->size);
	return r < 0 ? err_set(job->err, ERR_STATE, -r, "secret", "stdout cannot be written: %s", strerror(-r)) : 0;
}
