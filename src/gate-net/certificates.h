/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How what is inside comes to trust the authority of the network gate, where rules are about requests: the gate is
 * asked before the jail is made for the files that policy/certificate-files.h names, writes them while the jail's
 * namespaces are made, and they are planned as mounts. The key stays in the gate. Run by atoll-box.
 */

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "policy/certificate-files.h"

struct plan;

struct trust_content {
	int fd;                  /* while the gate writes it */
	void *bytes;             /* mapped; NULL: not wanted, or not there yet */
	size_t size;
};

struct trust {
	struct trust_content files[CERTIFICATE_FILE_COUNT];
};

/* The conversation: a gate that has just been started, two buffers for frames, and the caller's environment. */
struct trust_input {
	int gate_fd;
	struct buf *out, *scratch;
	char *const *env;       /* SSL_CERT_FILE names the host's authorities, where they are not the system's */
};

/* There is nothing to trust. */
void trust_init(struct trust *trust);

/*
 * Asks for the files. The gate's program takes longer to start than all else that a jail needs beside it, so nobody
 * waits for it here. Negative with *err where this host trusts nobody, so that no server could be told from another.
 */
int trust_begin(struct trust *trust, const struct trust_input *input, struct err *err) MUST_USE;

/* Waits for the gate to have confined itself and to have written the files. Negative with *err where it does not. */
int trust_finish(struct trust *trust, const struct trust_input *input, struct err *err) MUST_USE;
void trust_done(struct trust *trust);

/* The files, and what of the system they are mounted over. 0, -E2BIG or -ENOMEM. */
int trust_plan(const struct trust *trust, struct plan *plan) MUST_USE;
