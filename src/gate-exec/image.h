/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an exec leads to, for its record: the real path, what interprets it, and which of them are no older than the
 * session. A relative path alone tells nobody which program it was. For the log only: what decides is gate.c's,
 * and the kernel reads the path again. Run by atoll-box.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate-exec/file.h"

struct json;
struct watch_exec;

struct exec_image {
	int errnum;                  /* why the exec would fail; 0: it would not, or nobody can tell */
	size_t count;                /* the program, and what interprets what is before it; 0: nobody can tell */
	struct exec_image_file {
		char path[PATH_MAX]; /* real, inside */
		bool is_new;         /* made or changed since the session began */
	} files[EXEC_FILES_MAX];
};

/* The caller of exec waits. begun_ns: CLOCK_REALTIME, when the session began. */
void exec_image_find(struct exec_image *ret_image, const struct watch_exec *exec, uint64_t begun_ns);

/* The members "path", "interpreters", "new" and "errno" of a record's detail, where they say something. */
void exec_image_to_json(const struct exec_image *image, const char *subject, struct json *json);
