/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll doctor --probe` has attacked: files and sockets of the host that this user can change and reach, so that
 * an attempt that is refused was refused by the boundary and not since there was nothing. They are made for one probe
 * and removed with it.
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { POSTURE_SOCKETS = 5 };

struct self_test_targets {
	char readonly[96], hidden[96];     /* directories with a victim for each attempt on them */
	char stream[112], datagram[112];   /* unix sockets in the project */
	char abstract_name[48];
	char shm_path[48];                 /* "" where there is no /dev/shm */
	char port[16];                     /* of a listener on 127.0.0.1, and on ::1 where there is one */
	int fds[POSTURE_SOCKETS];
};

/* Without any: self_test_targets_remove() may be called. */
void self_test_targets_init(struct self_test_targets *targets);

/* Makes them: the directories in directory, the unix sockets in project. names: what `atoll-probe --list` prints. */
int self_test_targets_make(struct self_test_targets *targets, const char *directory, const char *project,
			 const char *names, struct err *err) MUST_USE;

/* Closes the sockets and removes what lies outside of directory and project, which the caller removes. */
void self_test_targets_remove(struct self_test_targets *targets);
