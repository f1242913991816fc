/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "prog/atoll-secret/job.h"
#include "prog/atoll-secret/prompt.h"

/*
 * `atoll secret set NAME`: the value comes from standard input, or from a prompt where that is a terminal. Never from
 * an argument, which every process of the machine could read.
 */

enum { VALUE_BUFFER = SECRET_VALUE_MAX + 3 };
_Static_assert((int)VALUE_BUFFER >= (int)PROMPT_LINE_MAX + 2, "a typed line fits");

static int fail(struct job *job, const char *message, const char *hint)
{
	err_set(job->err, ERR_USAGE, EINVAL, "secret", "%s", message);
	err_hint(job->err, "%s", hint);
	return -EINVAL;
}

/* All of standard input; what `echo` puts behind a value is no part of it. */
static ssize_t read_input(struct job *job, char *value)
{
	size_t size = 0;

	while (size < VALUE_BUFFER) {
		ssize_t got = read(STDIN_FILENO, value + size, VALUE_BUFFER - size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(job->err, ERR_USAGE, errno, "secret", "standard input: %s", strerror(errno));
		if (got == 0)
			break;
		size += (size_t)got;
	}
	if (size && value[size - 1] == '\n')
		size--;
	if (size && value[size - 1] == '\r')
		size--;
	return (ssize_t)size;
}

static int check_value(struct job *job, const char *value, size_t size)
{
	if (size == 0)
		return fail(job, "the value is empty", "`atoll secret remove NAME` removes one");
	if (size > SECRET_VALUE_MAX)
		return fail(job, "the value is longer than 16384 bytes", "a secret is a key or a token");
	/* A line break in a header would be a second header. */
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
			return fail(job, "the value has a line break or another control character in it",
				    "a secret is one line");
	return 0;
}

static int change(struct job *job, const char *value, size_t size)
{
	bool is_first = !job->exists || !job->vault.has_key;
	int r = vault_begin_change(&job->vault, job->err);

	if (r < 0)
		return r;
	r = secrets_set(job->vault.secrets, job->words[0], value, size, clock_realtime_ns() / 1000000000);
	if (r == -EDQUOT)
		return fail(job, "the vault is full: 256 secrets, 1 MiB", "`atoll secret remove NAME` makes room");
	if (r < 0)
		return err_set(job->err, ERR_INTERNAL, -r, "secret", "%s", strerror(-r));
	r = vault_store(&job->vault, job->err);
	if (r == 0 && is_first && isatty(STDERR_FILENO))
		dprintf(STDERR_FILENO, "atoll: kept in %s, sealed with the key beside it; `atoll secret passphrase` "
				       "protects that key\n", job->vault.path);
	return r;
}

int cmd_set(struct job *job)
{
	char *value;
	ssize_t size;
	int r = job_unlock(job);

	if (r < 0)
		return r;
	value = sodium_malloc(VALUE_BUFFER);
	if (!value)
		return err_set(job->err, ERR_INTERNAL, ENOMEM, "secret", "no memory");
	size = isatty(STDIN_FILENO) ? prompt_line(job->tty_fd, "Value", value, job->err) : read_input(job, value);
	r = size < 0 ? (int)size : check_value(job, value, (size_t)size);
	if (r == 0)
		r = change(job, value, (size_t)size);
	sodium_free(value);
	return r;
}
