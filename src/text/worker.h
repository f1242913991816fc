/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The process that compares and merges texts of a sandbox (git.h). It is made before its parent confines itself, and
 * can do nothing but compute: no file, no program, no socket but the one to its parent. Texts and results pass through
 * memory that both have, so that ten thousand small files cost ten thousand messages of eight bytes.
 *
 * Whoever writes the texts can try to make it die or run for long. Each piece of work has a bound on its CPU time. A
 * keeper, which reads nothing, makes a new worker when one dies: a hostile file spoils its own difference alone. Run by
 * atoll-stage.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "os/fd.h"
#include "text/git.h"

enum {
	TEXT_SIZE_MAX = 8 << 20,     /* bytes of one text */
	TEXT_RESULT_MAX = 32 << 20,
	TEXT_CPU_SECONDS = 10,       /* for one piece of work */
};

struct text_worker {
	int socket_fd;               /* owned; FD_NONE: none runs */
	struct text_shared *shared;  /* owned mapping */
	uint32_t number;             /* of the last request */
};

#define TEXT_WORKER_NONE ((struct text_worker){ .socket_fd = FD_NONE })

/* Before confine_self(). Negative with *err. Sets SIGPIPE to be ignored. */
int text_worker_start(struct text_worker *ret_worker, struct err *err) MUST_USE;
void text_worker_stop(struct text_worker *worker);
#define cleanup_text_worker __attribute__((cleanup(text_worker_stop)))

/*
 * Each appends its result to out, whose bound is the caller's. Negative: -EFBIG where a text or the result is too
 * large, -ETIME where it took too long, -EIO where the worker failed or died of it, -EPIPE where there is none left.
 */

/* Differences of lines between two texts, as text_compare_lines() writes them. */
int text_worker_lines(struct text_worker *worker, const struct text_piece *before, const struct text_piece *after,
		      struct buf *out) MUST_USE;
/* What made one file of bytes the other, as text_compare_binary() writes it. */
int text_worker_binary(struct text_worker *worker, const struct text_piece *before, const struct text_piece *after,
		       struct buf *out) MUST_USE;
/* Both sides' changes of base in one text, as text_merge(); its positive result says that they met in places. */
int text_worker_merge(struct text_worker *worker, const struct text_piece *base, const struct text_piece *host,
		      const struct text_piece *session, struct buf *out) MUST_USE;
