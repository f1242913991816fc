/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What intercepted connections need of certificates: the session's own authority, whose key is made here and goes
 * nowhere, and those that the host trusts. Files come as descriptors, so that none has to be opened by a process that
 * has confined itself. Runs in atoll-egress.
 */

#include "base/cleanup.h"

/* OpenSSL's headers and base/err.h do not go together. */
struct ssl_ctx_st;

struct ca;

/* All zero: there is none. */
struct authority {
	struct ca *ca;                 /* owned */
	char *bundle;                  /* owned: PEM, until somebody needs it */
	struct ssl_ctx_st *upstream;   /* owned */
};

/* The key; before the process confines itself, because OpenSSL looks around when it starts. -ENOMEM, -EIO. */
int authority_init(struct authority *authority) MUST_USE;
void authority_done(struct authority *authority);

/*
 * Takes the host's authorities from a bundle, and writes the files that make programs inside trust both into
 * files[CERTIFICATE_FILE_COUNT] (FD_NONE: not wanted); all fds are borrowed. -ENOENT: nothing in the bundle; -EFBIG,
 * -EINVAL, -ENOMEM and what read(2) and write(2) say.
 */
int authority_introduce(struct authority *authority, int bundle_fd, const int *files) MUST_USE;

/*
 * What upstream_connect() needs (upstream.h), borrowed; made when it is first asked for, because OpenSSL takes 20 ms to
 * read a bundle. NULL: it cannot be read, and no server can be trusted.
 */
struct ssl_ctx_st *authority_upstream(struct authority *authority);
