/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>

#include "os/fd.h"
#include "prog/atoll-secret/job.h"
#include "vault/placeholder.h"
#include "wire/secret.h"

/*
 * `atoll-secret give NAME…`: for atoll's other programs alone, over sockets that they made: one for the values, which
 * ends at the network gate, and one for what stands inside in their place. There is no way to have a value written to a
 * terminal, a pipe or a file.
 */

enum { MESSAGE_MAX = SECRET_VALUE_MAX + SECRET_PLACEHOLDER_MAX + 1024, SEND_BUFFER = 1 << 20 };

_Static_assert((int)SECRET_PLACEHOLDER_MAX == (int)PLACEHOLDER_MAX, "placeholders fit into their message");
_Static_assert((int)PLACEHOLDER_KEY_SIZE == (int)SEAL_KEY_SIZE, "the vault's key is the placeholders'");

static int prepare_socket(int fd, struct err *err)
{
	int type = 0;
	socklen_t size = sizeof type;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_SEQPACKET) {
		err_set(err, ERR_USAGE, ENOTSOCK, "secret", "the value of a secret is never shown");
		err_hint(err, "`atoll secret list` shows the names");
		return -ENOTSOCK;
	}
	/* Who does not read must not hold us: it all fits, or it fails. The kernel gives as much as it gives. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ SEND_BUFFER }, sizeof(int)) < 0)
		return err_set(err, ERR_INTERNAL, errno, "secret", "SO_SNDBUF: %s", strerror(errno));
	return fd_set_nonblocking(fd, true);
}

int cmd_give_prepare(struct err *err)
{
	int r = prepare_socket(SECRET_FD, err);

	return r < 0 ? r : prepare_socket(SECRET_PLACEHOLDER_FD, err);
}

static int send_frame(struct job *job, int fd, const struct buf *out, int built)
{
	int r = built < 0 ? built : frame_send(fd, out, NULL, 0);

	return r < 0 ? err_set(job->err, ERR_INTERNAL, -r, "secret", "a secret cannot be passed on: %s",
			       strerror(-r))
		     : 0;
}

static int send_all(struct job *job, struct buf *out)
{
	char placeholder[PLACEHOLDER_MAX + 1];
	int r = 0;

	for (size_t i = 0; r == 0 && i < job->word_count; i++) {
		const struct secret *secret = secrets_find(job->vault.secrets, job->words[i]);
		struct secret_value value = { secret->name, (const char *)secret->value, secret->size, placeholder };

		placeholder_make(&(struct placeholder_of){ job->vault.key->bytes, job->project, secret->name },
				 secret->value, secret->size, placeholder);
		r = send_frame(job, SECRET_FD, out, secret_put_value(out, &value));
		if (r == 0)
			r = send_frame(job, SECRET_PLACEHOLDER_FD, out,
				       secret_put_placeholder(out, secret->name, placeholder));
	}
	if (r == 0)
		r = send_frame(job, SECRET_FD, out, secret_put_end(out));
	return r < 0 ? r : send_frame(job, SECRET_PLACEHOLDER_FD, out, secret_put_end(out));
}

/* A policy wants it: what is missing is the secret, and not its name. */
static int fail_missing(struct job *job, const char *name)
{
	err_set(job->err, ERR_NOT_FOUND, ENOENT, "secret", "the policy uses the secret %s, which does not exist", name);
	err_hint(job->err, "set it with: atoll secret set %s", name);
	return -ENOENT;
}

int cmd_give(struct job *job)
{
	struct buf out;
	char *memory;
	int r = job->exists ? job_unlock(job) : fail_missing(job, job->words[0]);

	if (r == 0 && !job->vault.key)
		return fail_missing(job, job->words[0]);
	if (r == 0)
		r = vault_load(&job->vault, job->err);
	for (size_t i = 0; r == 0 && i < job->word_count; i++)
		if (!secrets_find(job->vault.secrets, job->words[i]))
			r = fail_missing(job, job->words[i]);
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
