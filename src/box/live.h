/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files and directories of the host that come into the view of a running sandbox, and go again, because a person
 * granted them. Who may grant what is box/asking.h's; here stands what can be brought in at all. Run by atoll-box.
 */

#include <limits.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/decide.h"

struct box;
struct live;

enum { LIVE_BOUND_MAX = 64, LIVE_SHOWN_MAX = 128 };

/* What a path leads to on the host. */
struct live_object {
	char path[PATH_MAX]; /* without links */
	bool is_found, is_directory;
};

/*
 * Looks at a path that something inside asks for. The object is remembered, so that a later live_bind() of its path
 * brings in this one or nothing. 0, also where nothing is found, and then the path is the one that was asked for:
 * whether the host has a file is not for the sandbox to know. -EINVAL: not absolute and normalised; -ETIMEDOUT: its
 * file system does not answer; -EMFILE: all that can be remembered is waited for.
 */
int live_show(struct box *box, const char *path, struct live_object *ret_object) MUST_USE;

/*
 * Whether live_bind() could ever bring in host_path, by policy and place alone: without a look at the host. Negative
 * with *err where it could not: what a rule denies or masks, `/`, the home, what lies around something that is in the
 * view already, file systems of the kernel's own, atoll's own state.
 */
int live_may_bind(const struct box *box, const char *host_path, bool is_writable, struct err *err) MUST_USE;

/*
 * Brings in a file or directory at its own path, with what the host has mounted below it, without set-user-ID programs
 * and devices, and without the names that the policy masks. Running programs see it at once. host_path: as live_show()
 * gave it. 1, and *ret_object is what came in; 0: it is in the view already; negative with *err: nothing changed.
 */
int live_bind(struct box *box, const char *host_path, bool is_writable, struct live_object *ret_object,
	      struct err *err) MUST_USE;

/*
 * A yes to the path failed: what was shown under it is meant no more, unless somebody still waits for an answer about
 * it. The next question is about what stands there by then.
 */
void live_forget(struct box *box, const char *path);

/* Whether the view has the path, by the policy or because it was brought in: then live_bind() does nothing. */
bool live_has(const struct box *box, const char *path, bool is_writable);

/*
 * Takes it out again, with the empty name that it stood at. What is open in it inside stays open, as a working
 * directory too. 0 also where it is not there.
 */
int live_unbind(struct box *box, const char *host_path, struct err *err) MUST_USE;

/*
 * It goes again with this grant, and at this time (CLOCK_MONOTONIC; UINT64_MAX: never), unless another holds it for
 * longer.
 */
void live_tie(struct box *box, const char *host_path, uint32_t grant, uint64_t until_ns);

/* Takes out what came in by this grant; what is due. Negative with *err: something cannot be taken out. */
int live_revoke(struct box *box, uint32_t grant, struct err *err) MUST_USE;
int live_check(struct box *box, uint64_t now_ns, struct err *err) MUST_USE;

/* Whether path lies in what was brought in, for writing: a policy that knows nothing of it denies it still. */
bool live_covers(const struct box *box, const char *path, bool is_writable);

/* How long it stays, in ms; 0: it was not brought in; UINT64_MAX: nothing ends it but a person. */
uint64_t live_left_ms(const struct box *box, const char *path, uint64_t now_ns);

void live_free(struct live *live);
