/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One call of atoll-secret: the vault, the words of the command line, and what several verbs need to do with them.
 * What the verbs do is in the cmd-*.c files beside it.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "vault/store.h"

struct job {
	struct vault vault;
	bool exists;             /* the vault's directory does */
	int tty_fd;              /* FD_NONE where there is no terminal */
	char **words;            /* behind the verb: valid names; borrowed */
	size_t word_count;
	const char *project;     /* of give: whose placeholders; "": nobody said */
	bool json;
	struct err *err;
};

/* The exit status, or negative with *job->err. */
int cmd_set(struct job *job);
int cmd_list(struct job *job);
int cmd_remove(struct job *job);
int cmd_rename(struct job *job);
int cmd_passphrase(struct job *job);
int cmd_unlock(struct job *job);
int cmd_lock(struct job *job);
int cmd_give(struct job *job);

/* Before the program confines itself: is there the socket that give writes to? */
int cmd_give_prepare(struct err *err) MUST_USE;

/* The key: from the file, the keyring or a passphrase that is asked for. 0 where there is no vault yet, too. */
int job_unlock(struct job *job) MUST_USE;

/* job_unlock(), then the secrets under the lock, to be changed; then what was changed goes to disk. */
int job_begin_change(struct job *job) MUST_USE;

/* ERR_NOT_FOUND for a name that the vault does not have. */
int job_fail_unknown(struct job *job, const char *name);

/* Whether the key may be in the keyring is nobody's promise: forgets it if it is there. */
void job_drop_cache(const struct job *job);

/* Everything to stdout. */
int job_print(struct job *job, struct buf *text) MUST_USE;
