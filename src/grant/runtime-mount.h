/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files and directories of the host that come into the view of a running sandbox, and go again, because a person
 * granted them. Who may grant what is approve/queue.h's; here stands what can be brought in at all. The other file of
 * the folder grant/ makes the tree that comes in (mount-tree.h). Run by atoll-box.
 */

#include <limits.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "policy/decide.h"
#include "supervise/module.h"

struct jail_enforcement;
struct run;
struct runtime_mount_table;

/* Whom box/ has asked. */
struct runtime_mounts_owner {
	/* Whether somebody waits to hear about this path: what was shown of it is still meant. */
	bool (*is_awaited)(void *context, const char *path);
	void *context;
};

struct runtime_mounts {
	struct run *run;                       /* both borrowed */
	const struct jail_enforcement *enforcement;
	struct runtime_mounts_owner owner;
	struct runtime_mount_table *table;     /* owned; NULL: nothing was asked for */
};

enum { RUNTIME_MOUNTS_MAX = 64, SHOWN_OBJECTS_MAX = 128 };

/* What a path leads to on the host. */
struct runtime_mount_object {
	char path[PATH_MAX]; /* without links */
	bool is_found, is_directory;
};

/*
 * Looks at a path that something inside asks for. The object is remembered, so that a later
 * runtime_mount_bind() of its path brings in this one or nothing. 0, also where nothing is found, and then
 * the path is the one that was asked for: whether the host has a file is not for the sandbox to know.
 * -EINVAL: not absolute and normalised; -ETIMEDOUT: its file system does not answer; -EMFILE: all that can be
 * remembered is waited for.
 */
int runtime_mount_show(struct runtime_mounts *mounts, const char *path,
		       struct runtime_mount_object *ret_object) MUST_USE;

/*
 * Whether runtime_mount_bind() could ever bring in host_path, by policy and place alone: without a look at
 * the host. Negative with *err where it could not: what a rule denies or masks, `/`, the home, what lies
 * around something that is in the view already, file systems of the kernel's own, atoll's own state.
 */
int runtime_mount_may_bind(const struct runtime_mounts *mounts, const char *host_path, bool is_writable,
			   struct err *err) MUST_USE;

/*
 * Brings in a file or directory at its own path, with what the host has mounted below it, without set-user-ID
 * programs and devices, and without the names that the policy masks. Running programs see it at once.
 * host_path: as runtime_mount_show() gave it. 1, and *ret_object is what came in; 0: it is in the view
 * already; negative with *err: nothing changed.
 */
int runtime_mount_bind(struct runtime_mounts *mounts, const char *host_path, bool is_writable,
		       struct runtime_mount_object *ret_object, struct err *err) MUST_USE;

/*
 * A yes to the path failed: what was shown under it is meant no more, unless somebody still waits for an answer about
 * it. The next question is about what stands there by then.
 */
void runtime_mount_forget(struct runtime_mounts *mounts, const char *path);

/* Whether the view has the path, by the policy or because it was brought in: then runtime_mount_bind() does nothing. */
bool runtime_mount_has(const struct runtime_mounts *mounts, const char *path, bool is_writable);

/*
 * Takes it out again, with the empty name that it stood at. What is open in it inside stays open, as a working
 * directory too. 0 also where it is not there.
 */
int runtime_mount_unbind(struct runtime_mounts *mounts, const char *host_path, struct err *err) MUST_USE;

/*
 * It goes again with this grant, and at this time (CLOCK_MONOTONIC; UINT64_MAX: never), unless another holds it for
 * longer.
 */
void runtime_mount_tie(struct runtime_mounts *mounts, const char *host_path, uint32_t grant, uint64_t until_ns);

/* Takes out what came in by this grant. Negative with *err: something cannot be taken out. */
int runtime_mount_revoke(struct runtime_mounts *mounts, uint32_t grant, struct err *err) MUST_USE;

/* Whether path lies in what was brought in, for writing: a policy that knows nothing of it denies it still. */
bool runtime_mount_covers(const struct runtime_mounts *mounts, const char *path, bool is_writable);

/* How long it stays, in ms; 0: it was not brought in; UINT64_MAX: nothing ends it but a person. */
uint64_t runtime_mount_left_ms(const struct runtime_mounts *mounts, const char *path, uint64_t now_ns);

/* Its state is a struct runtime_mounts: takes out what is due. What is in the view when it is done stays there. */
extern const struct module runtime_mounts_module;
