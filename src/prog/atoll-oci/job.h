/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One call of atoll-oci: its options and words, and the verbs that main() chooses from.
 * What they do to containers is oci/container.h's.
 */

#include "base/err.h"
#include "base/options.h"
#include "oci/container-state.h"

/* What `exec` takes beside its words; each of the process's own where it is not said. */
struct exec_words {
	const char *user, *cwd;
	struct option_list env, caps, gids;
	bool no_new_privs;
};

struct job {
	/* Before the verb. */
	const char *root, *log, *log_format, *cgroup_manager;
	bool is_systemd, is_debug, is_version;
	/* Behind it; each verb knows some. */
	const char *bundle, *pid_file, *console_socket, *preserve_fds, *process, *format;
	bool is_forced, is_all, is_detached, is_kept, keeps_keyring, no_pivot, is_quiet, is_terminal;
	struct exec_words exec;
	/* Not options. */
	char **words;
	size_t word_count;
	struct err *err;
};

/* Each returns 0, a positive exit status, or -errno with *job->err. */
int cmd_create(struct job *job);
int cmd_start(struct job *job);
int cmd_kill(struct job *job);
int cmd_delete(struct job *job);
int cmd_pause(struct job *job);
int cmd_resume(struct job *job);
int cmd_run(struct job *job);
int cmd_exec(struct job *job);
int cmd_state(struct job *job);
int cmd_list(struct job *job);
int cmd_ps(struct job *job);
int cmd_spec(struct job *job);
int cmd_features(struct job *job);

/*
 * Goes on as a sealed copy of this program in memory, which nothing that it starts can write to: a container that
 * executes /proc/self/exe runs the copy. 0: this is the copy already, or none can be made and *err says why.
 */
int copy_self(char **argv, struct err *err) MUST_USE;

/* Opens the container of the first word. */
int job_open(const struct job *job, struct oci_state *ret_state) MUST_USE;

/* All of text to the standard output. */
int job_print(const struct buf *text) MUST_USE;
