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

struct certificate_content {
	int fd;                  /* while the gate writes it */
	void *bytes;             /* mapped; NULL: not wanted, or not there yet */
	size_t size;
};

struct certificates {
	struct certificate_content files[CERTIFICATE_FILE_COUNT];
};

/* The conversation: a gate that has just been started, two buffers for frames, and the caller's environment. */
struct certificates_input {
	int gate_fd;
	struct buf *out, *scratch;
	char *const *env;       /* SSL_CERT_FILE names the host's authorities, where they are not the system's */
};

/* Holds no files: there is nothing that the sandbox has to trust. */
void certificates_init(struct certificates *certificates);

/*
 * Asks for the files. The gate's program takes longer to start than all else that a jail needs beside it, so nobody
 * waits for it here. Negative with *err where this host trusts nobody, so that no server could be told from another.
 */
int certificates_begin(struct certificates *certificates, const struct certificates_input *input,
		       struct err *err) MUST_USE;

/* Waits for the gate to have confined itself and to have written the files. Negative with *err where it does not. */
int certificates_finish(struct certificates *certificates, const struct certificates_input *input,
			struct err *err) MUST_USE;

/* Closes the files. What was planned of them must have been mounted. */
void certificates_done(struct certificates *certificates);

/* The files, and what of the system they are mounted over. 0, -E2BIG or -ENOMEM. */
int certificates_plan(const struct certificates *certificates, struct plan *plan) MUST_USE;
