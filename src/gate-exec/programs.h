/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which of the programs that a policy names a file is, by what it is and not by what it is called: the same file, or
 * one with the same content. The named ones are looked up once, before anything inside has run, so that what is put
 * into the place of one later is another. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "policy/policy.h"

enum {
	PROGRAMS_MAX = 65536,        /* that are looked up; a policy has at most 50,000 rules of a kind */
	PROGRAM_NAMES_MAX = 256,     /* that one file can be known by; beyond that it is refused */
	PROGRAMS_HASHED_MAX = 128,   /* files whose content is remembered */
};

struct programs;

/*
 * Looks up by their names on the host what the mounts take away inside: a start need not wait for it. taken are the
 * indices of those rules of exec whose program was seen there when the mounts were planned. -ENOMEM, -E2BIG.
 * policy is borrowed by each of these.
 */
int programs_new(struct programs **ret_programs, const struct policy *policy, const uint32_t *taken,
		 size_t taken_count) MUST_USE;
/*
 * Once, before anything is identified: looks up the rest of what the rules name, below the sandbox's root (root_fd,
 * O_PATH, borrowed as long as the programs are there); patterns are looked for where programs are. As above.
 */
int programs_enter(struct programs *programs, const struct policy *policy, int root_fd) MUST_USE;
/* Looks those up again that nothing inside can write: whoever changed one of them may (an upgrade of the system). */
void programs_refresh(struct programs *programs);
void programs_free(struct programs *programs);

/*
 * Fills names (NULL-terminated, borrowed) with the paths that name this file. fd may be O_PATH. is_held: it is being
 * executed, so that nobody can write it now and what its content is can be remembered. Negative: nobody can tell
 * (-EACCES: it cannot be read; -ENOBUFS: too many names), so that it must not run.
 */
int programs_identify(struct programs *programs, int fd, const struct stat *st, bool is_held,
		      const char *names[PROGRAM_NAMES_MAX + 1]) MUST_USE;
