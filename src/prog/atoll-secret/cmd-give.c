/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>

#include "os/fd.h"
#include "prog/atoll-secret/job.h"
#include "wire/secret.h"

/*
 * `atoll-secret give NAME…`: for atoll's other programs alone, over a socket that they made. There is no way to have a
 * value written to a terminal, a pipe or a file.
 */

enum { MESSAGE_MAX = SECRET_VALUE_MAX + 1024, SEND_BUFFER = 1 << 20 };

int cmd_give_prepare(struct err *err)
{
	int type = 0;
	socklen_t size = sizeof type;

	if (getsockopt(SECRET_FD, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_SEQPACKET) {
		err_set(err, ERR_USAGE, ENOTSOCK, "secret", "the value of a secret is never shown");
		err_hint(err, "`atoll secret list` shows the names");
		return -ENOTSOCK;
	}
	/* Who does not read must not hold us: it all fits, or it fails. The kernel gives as much as it gives. */
	if (setsockopt(SECRET_FD, SOL_SOCKET, SO_SNDBUF, &(int){ SEND_BUFFER }, sizeof(int)) < 0)
		return err_set(err, ERR_INTERNAL, errno, "secret", "SO_SNDBUF: %s", strerror(errno));
	return fd_set_nonblocking(SECRET_FD, true);
}

static int send_frame(struct job *job, const struct buf *out)
{
	int r = frame_send(SECRET_FD, out, NULL, 0);

	return r < 0 ? err_set(job->err, ERR_INTERNAL, -r, "secret", "a secret cannot be handed on: %s",
			       strerror(-r))
		     : 0;
}

static int send_all(struct job *job, struct buf *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < job->word_count; i++) {
		const struct secret *secret = secrets_find(job->vault.secrets, job->words[i]);

		r = secret_put_value(out, secret->name, secret->value, secret->size);
		r = r < 0 ? err_set(job->err, ERR_INTERNAL, -r, "secret", "%s", strerror(-r)) : send_frame(job, out);
	}
	if (r == 0 && secret_put_end(out) == 0)
		r = send_frame(job, out);
	return r;
}

int cmd_give(struct job *job)
{
	struct buf out;
	char *memory;
	int r = job->exists ? job_unlock(job) : job_fail_unknown(job, job->words[0]);

	if (r == 0 && !job->vault.key)
		return job_fail_unknown(job, job->words[0]);
	if (r == 0)
		r = vault_load(&job->vault, job->err);
	for (size_t i = 0; r == 0 && i < job->word_count; i++)
		if (!secrets_find(job->vault.secrets, job->words[i]))
			r = job_fail_unknown(job, job->words[i]);
	if (r < 0)
		return r;
	memory = sodium_malloc(MESSAGE_MAX);
	if (!memory)
		return err_set(job->err, ERR_INTERNAL, ENOMEM, "secret", "no memory");
	buf_init_fixed(&out, memory, MESSAGE_MAX);
	r = send_all(job, &out);
	sodium_free(memory);
	return r;
}
