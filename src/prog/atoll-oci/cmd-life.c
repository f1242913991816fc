/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/num.h"
#include "base/str.h"
#include "oci/container.h"
#include "os/fd.h"
#include "os/path.h"
#include "prog/atoll-oci/job.h"
#include "prog/atoll-oci/life.h"

/* create, start, kill, delete, pause, resume. */

int life_connect(const char *path, int *ret_fd, struct err *err)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	cleanup_fd int fd = FD_NONE;
	int r = str_copy(name.sun_path, sizeof name.sun_path, path);

	if (r == 0) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof name) < 0 ? -errno : 0;
	}
	if (r < 0)
		return err_set(err, ERR_USAGE, -r, "console", "the console socket %s: %s", path, strerror(-r));
	*ret_fd = take_fd(&fd);
	return 0;
}

int life_create(struct job *job, int console_socket, struct oci_state *ret_state)
{
	struct oci_create create = { .root = job->root, .id = job->words[0], .pid_file = job->pid_file,
				     .console_socket = console_socket, .keeps_keyring = job->keeps_keyring };
	const char *bundle = job->bundle ? job->bundle : ".";
	uint64_t kept = 0;
	char path[PATH_MAX];
	int r;

	if (job->preserve_fds && (num_parse_u64(job->preserve_fds, &kept) < 0 || kept > 1000))
		return err_set(job->err, ERR_USAGE, EINVAL, "create", "--preserve-fds wants a number up to 1000");
	r = path_real(bundle, path, sizeof path);
	if (r < 0)
		return err_set(job->err, ERR_USAGE, -r, "create", "the bundle %s: %s", bundle, strerror(-r));
	create.bundle = path;
	create.kept_fds = (unsigned)kept;
	return oci_container_create(&create, ret_state, job->err);
}

int cmd_create(struct job *job)
{
	cleanup_oci_state struct oci_state state = OCI_STATE_NONE;
	cleanup_fd int socket_fd = FD_NONE;
	int r = job->console_socket ? life_connect(job->console_socket, &socket_fd, job->err) : 0;

	return r == 0 ? life_create(job, socket_fd, &state) : r;
}

int cmd_start(struct job *job)
{
	cleanup_oci_state struct oci_state state = OCI_STATE_NONE;
	int r = job_open(job, &state);

	return r == 0 ? oci_container_start(&state, job->err) : r;
}

/* "9", "KILL", "SIGKILL", in any case. -1: none of these. */
static int signal_of(const char *text)
{
	uint64_t number;

	if (num_parse_u64(text, &number) == 0)
		return number > 0 && number <= 64 ? (int)number : -1;
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	for (int i = 1; i < 32; i++) {
		const char *name = sigabbrev_np(i);

		if (name && strcasecmp(name, text) == 0)
			return i;
	}
	return -1;
}

int cmd_kill(struct job *job)
{
	cleanup_oci_state struct oci_state state = OCI_STATE_NONE;
	int number = job->word_count > 1 ? signal_of(job->words[1]) : SIGTERM;
	int r = job_open(job, &state);
	char quoted[ERR_QUOTE_SIZE];

	if (r == 0 && number < 0)
		return err_set(job->err, ERR_USAGE, EINVAL, "kill", "unknown signal \"%s\"", err_quote(quoted,
												       job->words[1]));
	return r == 0 ? oci_container_kill(&state, number, job->is_all, job->err) : r;
}

int cmd_delete(struct job *job)
{
	cleanup_oci_state struct oci_state state = OCI_STATE_NONE;
	int r = job_open(job, &state);

	/* What is gone is deleted: shims ask twice. */
	if (r == -ENOENT && job->is_forced) {
		*job->err = (struct err){ 0 };
		return 0;
	}
	r = r == 0 ? oci_container_delete(&state, job->root, job->is_forced, job->err) : r;
	return r > 0 ? 0 : r;
}

static int freeze(struct job *job, bool on)
{
	cleanup_oci_state struct oci_state state = OCI_STATE_NONE;
	struct pidref init = PIDREF_NONE;
	int r = job_open(job, &state);
	enum oci_status status = r == 0 ? oci_state_status(&state, &init) : OCI_STOPPED;

	pidref_done(&init);
	if (r < 0)
		return r;
	if (on && status != OCI_RUNNING && status != OCI_CREATED)
		return err_set(job->err, ERR_STATE, EBUSY, "pause", "container not running");
	if (!on && status != OCI_PAUSED)
		return err_set(job->err, ERR_STATE, EBUSY, "resume", "container not paused");
	return oci_groups_freeze(&state.groups, on, job->err);
}

int cmd_pause(struct job *job)
{
	return freeze(job, true);
}

int cmd_resume(struct job *job)
{
	return freeze(job, false);
}
