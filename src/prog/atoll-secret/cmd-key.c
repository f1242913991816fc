/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <string.h>

#include "prog/atoll-secret/job.h"
#include "prog/atoll-secret/prompt.h"

/* `atoll secret passphrase`, `unlock` and `lock`: what protects the key, and for how long it stays open. */

static int ask_new(struct job *job, char *line, char *again, size_t *ret_size)
{
	ssize_t size = prompt_line(job->tty_fd, "New passphrase (empty: none)", line, job->err), size_again;

	if (size < 0)
		return (int)size;
	if (size > SEAL_PASSPHRASE_MAX)
		return err_set(job->err, ERR_USAGE, EINVAL, "secret", "a passphrase has at most %d bytes",
			       SEAL_PASSPHRASE_MAX);
	size_again = prompt_line(job->tty_fd, "Once more", again, job->err);
	if (size_again < 0)
		return (int)size_again;
	if (size != size_again || (size && sodium_memcmp(line, again, (size_t)size) != 0))
		return err_set(job->err, ERR_USAGE, EINVAL, "secret", "the two are not the same; nothing was changed");
	*ret_size = (size_t)size;
	return 0;
}

static int store(struct job *job, const char *passphrase, size_t size)
{
	int r = vault_begin_change(&job->vault, job->err);

	/* The secrets have been read by now: the key that is wrapped anew is the one that opens them. */
	if (r == 0)
		r = vault_store_key(&job->vault, size ? passphrase : NULL, size, job->err);
	if (r == 0)
		job_drop_cache(job);
	return r;
}

int cmd_passphrase(struct job *job)
{
	char *line = sodium_malloc(PROMPT_LINE_MAX + 2), *again = sodium_malloc(PROMPT_LINE_MAX + 2);
	size_t size = 0;
	int r;

	if (line && again)
		r = job_unlock(job);
	else
		r = err_set(job->err, ERR_INTERNAL, ENOMEM, "secret", "no memory");
	if (r == 0)
		r = ask_new(job, line, again, &size);
	if (r == 0)
		r = store(job, line, size);
	sodium_free(line);
	sodium_free(again);
	return r;
}

int cmd_unlock(struct job *job)
{
	return job_unlock(job);
}

int cmd_lock(struct job *job)
{
	int r = job->exists ? vault_read_key(&job->vault, job->err) : 0;

	if (r >= 0 && r != VAULT_NO_KEY && job->exists)
		job_drop_cache(job);
	return r < 0 ? r : 0;
}
