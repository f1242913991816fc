/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The content of the files by which programs inside trust the session's authority (policy/certificate-files.h). Pure.
 * Runs in atoll-egress.
 */

#include "base/buf.h"
#include "policy/certificate-files.h"

/*
 * The content of one of the files. authority: the session's certificate as PEM; system: the host's bundle
 * ("" where there is none). For CERTIFICATE_JAVA now_s is the date of the entries. -EINVAL (a certificate that is
 * none), -EFBIG, -ENOMEM.
 */
int certificates_format(enum certificate_file file, const char *authority, const char *system, uint64_t now_s,
			struct buf *out) MUST_USE;
