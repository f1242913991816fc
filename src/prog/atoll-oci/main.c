/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-oci: an OCI runtime. Docker, containerd and Podman call it with a verb and a bundle; it makes, starts, looks at
 * and removes containers, and keeps no process of its own. Exit status: 0, that of the program for `run` and `exec`,
 * 255 where an exec's program is not there, else 1 with one line on stderr and, with --log, one in that file.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/names.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "prog/atoll-oci/job.h"

#define AT(member) offsetof(struct job, member)
static const struct option before[] = {
	{ 0, "root", "DIR", "where the state of containers is kept (/run/atoll-oci)", OPTION_TEXT, AT(root) },
	{ 0, "log", "FILE", "append errors to this file too", OPTION_TEXT, AT(log) },
	{ 0, "log-format", "FORMAT", "text or json", OPTION_TEXT, AT(log_format) },
	{ 0, "cgroup-manager", "NAME", "cgroupfs, the only one", OPTION_TEXT, AT(cgroup_manager) },
	{ 0, "systemd-cgroup", NULL, "refused: control groups are made directly", OPTION_FLAG, AT(is_systemd) },
	{ 0, "debug", NULL, "accepted, and changes nothing", OPTION_FLAG, AT(is_debug) },
	{ 'v', "version", NULL, "show the version", OPTION_FLAG, AT(is_version) },
};

static const struct option behind[] = {
	{ 'b', "bundle", "DIR", "the bundle (the working directory)", OPTION_TEXT, AT(bundle) },
	{ 0, "pid-file", "FILE", "write the process number there", OPTION_TEXT, AT(pid_file) },
	{ 0, "console-socket", "SOCKET", "who gets the terminal", OPTION_TEXT, AT(console_socket) },
	{ 0, "preserve-fds", "N", "pass so many descriptors behind 2", OPTION_TEXT, AT(preserve_fds) },
	{ 'f', "format", "FORMAT", "table or json", OPTION_TEXT, AT(format) },
	{ 'a', "all", NULL, "all of its processes", OPTION_FLAG, AT(is_all) },
	{ 'd', "detach", NULL, "do not wait for its end", OPTION_FLAG, AT(is_detached) },
	{ 0, "keep", NULL, "do not delete it in the end", OPTION_FLAG, AT(is_kept) },
	{ 0, "no-new-keyring", NULL, "keep the keyring of the caller", OPTION_FLAG, AT(keeps_keyring) },
	{ 0, "no-pivot", NULL, "accepted; the root is always entered by pivot_root(2)", OPTION_FLAG, AT(no_pivot) },
	{ 'q', "quiet", NULL, "names alone", OPTION_FLAG, AT(is_quiet) },
};

static const struct option of_delete[] = {
	{ 'f', "force", NULL, "kill it first, and be content where it is gone", OPTION_FLAG, AT(is_forced) },
};

static const struct option of_exec[] = {
	{ 'p', "process", "FILE", "the process as JSON", OPTION_TEXT, AT(process) },
	{ 't', "tty", NULL, "give it a terminal", OPTION_FLAG, AT(is_terminal) },
	{ 'd', "detach", NULL, "do not wait for its end", OPTION_FLAG, AT(is_detached) },
	{ 'e', "env", "NAME=VALUE", "add to its environment", OPTION_LIST, AT(exec.env) },
	{ 'u', "user", "UID[:GID]", "whose process it is", OPTION_TEXT, AT(exec.user) },
	{ 0, "cwd", "DIR", "its working directory", OPTION_TEXT, AT(exec.cwd) },
	{ 'c', "cap", "CAPABILITY", "add a capability", OPTION_LIST, AT(exec.caps) },
	{ 'g', "additional-gids", "GID", "add a group", OPTION_LIST, AT(exec.gids) },
	{ 0, "no-new-privs", NULL, "it gains no privilege by executing", OPTION_FLAG, AT(exec.no_new_privs) },
	{ 0, "pid-file", "FILE", "write the process number there", OPTION_TEXT, AT(pid_file) },
	{ 0, "console-socket", "SOCKET", "who gets the terminal", OPTION_TEXT, AT(console_socket) },
	{ 0, "preserve-fds", "N", "pass so many descriptors behind 2", OPTION_TEXT, AT(preserve_fds) },
};

static const struct verb {
	const char *name, *words;
	size_t min, max;
	bool is_copied; /* runs from a sealed copy */
	int (*run)(struct job *job);
} verbs[] = {
	{ "create", "[--bundle DIR] ID", 1, 1, true, cmd_create },
	{ "start", "ID", 1, 1, false, cmd_start },
	{ "state", "ID", 1, 1, false, cmd_state },
	{ "kill", "[--all] ID [SIGNAL]", 1, 2, false, cmd_kill },
	{ "delete", "[--force] ID", 1, 1, false, cmd_delete },
	{ "run", "[--bundle DIR] [--detach] ID", 1, 1, true, cmd_run },
	{ "exec", "[--process FILE] ID [PROGRAM [ARGUMENT …]]", 1, 4096, true, cmd_exec },
	{ "list", "", 0, 0, false, cmd_list },
	{ "ps", "ID", 1, 4096, false, cmd_ps },
	{ "pause", "ID", 1, 1, false, cmd_pause },
	{ "resume", "ID", 1, 1, false, cmd_resume },
	{ "spec", "[--bundle DIR]", 0, 0, false, cmd_spec },
	{ "features", "", 0, 0, false, cmd_features },
};

int job_open(const struct job *job, struct oci_state *ret_state)
{
	return oci_state_open(ret_state, job->root, job->words[0], job->err);
}

int job_print(const struct buf *text)
{
	return buf_error(text) < 0 ? buf_error(text) : fd_write_full(STDOUT_FILENO, text->bytes, text->size);
}

/* One line for the person, and one for whoever reads the log: containerd shows its msg. */
static void show_error(const struct job *job, int r)
{
	char time[48], message[ERR_MESSAGE_SIZE + ERR_HINT_SIZE];
	cleanup_buf struct buf line;
	cleanup_fd int fd = FD_NONE;
	struct json json;

	buf_init(&line, 1 << 14);
	if (!job->err->code)
		err_set(job->err, ERR_INTERNAL, -r, "start", "%s", strerror(-r));
	(void)!str_format(message, sizeof message, "%s%s%s", job->err->message, err_joint(job->err),
			  err_advice(job->err));
	dprintf(STDERR_FILENO, "atoll-oci: %s\n", message);
	if (!job->log)
		return;
	clock_format_rfc3339(clock_realtime_ns(), time);
	if (str_equal(job->log_format, "json")) {
		json_init(&json, &line);
		json_object_begin(&json, NULL);
		json_string(&json, "level", "error");
		json_string(&json, "msg", message);
		json_string(&json, "time", time);
		json_object_end(&json);
	} else {
		buf_printf(&line, "time=\"%s\" level=error msg=\"", time);
		buf_put_escaped(&line, message, strlen(message), 0);
		buf_put_char(&line, '"');
	}
	buf_put_char(&line, '\n');
	/* A log may be a pipe that nobody reads: nobody waits for that. */
	fd = fd_open_at(AT_FDCWD, job->log, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0644);
	if (fd >= 0)
		(void)!fd_write_full(fd, line.bytes, line.size);
}

static const struct verb *find_verb(const char *name, struct err *err)
{
	const char *names[ARRAY_SIZE(verbs)], *nearest;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		names[i] = verbs[i].name;
		if (str_equal(verbs[i].name, name))
			return &verbs[i];
	}
	nearest = names_nearest(names, ARRAY_SIZE(names), name);
	err_set(err, ERR_USAGE, EINVAL, "usage", "there is no verb %s", name);
	err_hint(err, nearest ? "did you mean %s?" : "atoll-oci --help shows them%s", nearest ? nearest : "");
	return NULL;
}

static int show_help(void)
{
	dprintf(STDOUT_FILENO, "atoll-oci [OPTION …] VERB …: an OCI runtime\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		dprintf(STDOUT_FILENO, "  %-10s %s\n", verbs[i].name, verbs[i].words);
	return options_help("\nBefore the verb:\n\n", before, ARRAY_SIZE(before));
}

static int show_version(void)
{
	dprintf(STDOUT_FILENO, "atoll-oci version %s\nspec: %s\n", ATOLL_VERSION, OCI_VERSION);
	return 0;
}

static int run_verb(struct job *job, const struct verb *verb, int argc, char **argv, char **whole)
{
	const struct option *options = verb->run == cmd_exec ? of_exec : verb->run == cmd_delete ? of_delete : behind;
	size_t count = verb->run == cmd_exec ? ARRAY_SIZE(of_exec) : ARRAY_SIZE(of_delete);
	/* The arguments of a program are its own, so options of exec stand before the container's name. */
	bool permute = verb->run != cmd_exec && verb->run != cmd_ps;
	int rest, r;

	count = options == behind ? ARRAY_SIZE(behind) : count;
	r = options_parse(options, count, job, argc, argv, permute, &rest, job->err);
	if (r == 1)
		return options_help("Options behind the verb:\n\n", options, count);
	if (r < 0)
		return r;
	job->words = argv + rest;
	job->word_count = (size_t)(argc - rest);
	if (job->word_count < verb->min || job->word_count > verb->max)
		return err_set(job->err, ERR_USAGE, EINVAL, "usage", "atoll-oci %s %s", verb->name, verb->words);
	r = verb->is_copied ? copy_self(whole, job->err) : 0;
	return r == 0 ? verb->run(job) : r;
}

static int run(struct job *job, int argc, char **argv, char **whole)
{
	const struct verb *verb;
	int rest, r = options_parse(before, ARRAY_SIZE(before), job, argc, argv, false, &rest, job->err);

	if (r == 1)
		return show_help();
	if (r < 0)
		return r;
	job->root = job->root ? job->root : "/run/atoll-oci";
	if (job->is_version)
		return show_version();
	if (job->is_systemd || (job->cgroup_manager && !str_equal(job->cgroup_manager, "cgroupfs")))
		return err_set(job->err, ERR_USAGE, EOPNOTSUPP, "usage",
			       "only the cgroup manager cgroupfs is supported");
	if (rest == argc)
		return err_set(job->err, ERR_USAGE, EINVAL, "usage", "a verb is missing; atoll-oci --help shows them");
	verb = find_verb(argv[rest], job->err);
	return verb ? run_verb(job, verb, argc - rest, argv + rest, whole) : -EINVAL;
}

int main(int argc, char **argv)
{
	struct err err = { 0 };
	struct job job = { .err = &err };
	cleanup_free char **whole = calloc((size_t)argc + 1, sizeof *whole);
	int r = whole ? fd_secure_standard() : -ENOMEM;

	/* Parsing puts options first: the copy of this program is given them as they came. */
	for (int i = 0; whole && i < argc; i++)
		whole[i] = argv[i];
	if (r == 0)
		r = run(&job, argc, argv, whole);
	if (r >= 0)
		return r;
	show_error(&job, r);
	return r == -255 ? 255 : 1;
}
