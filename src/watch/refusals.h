/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a refused call is called and what its caller gets, by system call number of this architecture. The
 * numbers that the filter refuses with a notification (tools/seccomp/base.table) all stand here, with the
 * same errno; a test compares the two. Pure.
 */

struct watch_refused_call {
	int number;
	int errnum;
	const char *name;
};

/* NULL: not in the table; such a call is refused too (EPERM). */
const struct watch_refused_call *watch_refused_call_find(int number);
