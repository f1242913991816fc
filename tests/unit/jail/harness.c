/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/path.h"
#include "policy/policy.h"

int cell_setup(void **state)
{
	struct cell *cell = calloc(1, sizeof *cell);
	int wires[2];

	if (!cell)
		return -1;
	cell->init = PIDREF_NONE;
	snprintf(cell->host, sizeof cell->host, "/tmp/atoll-jail-XXXXXX");
	if (!mkdtemp(cell->host) || chmod(cell->host, 0755) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, wires) < 0)
		return -1;
	cell->wire = wires[0];
	cell->wire_child = wires[1];
	cell->init_fd = fd_open_at(AT_FDCWD, getenv("ATOLL_INMATE"), O_PATH, 0);
	cell->spec = (struct jail_spec){
		.mounts = cell->mounts, .hostname = "cell", .run_as_root = geteuid() == 0,
		.uid = geteuid() ? geteuid() : 1000, .gid = getegid() ? getegid() : 1000,
		.host_uid = CELL_HOST_UID, .host_gid = CELL_HOST_GID, .cgroup_fd = -1,
		.init_fd = cell->init_fd, .wire_fd = cell->wire_child,
	};
	cell_mount(cell, JAIL_PROC, "/proc", NULL, 0);
	cell_mount(cell, JAIL_DEV, "/dev", NULL, 0)->size_bytes = 1 << 20;
	*state = cell;
	return cell->init_fd < 0 ? -1 : 0;
}

static void end_init(struct cell *cell)
{
	siginfo_t info;

	if (cell->init.fd < 0)
		return;
	(void)!pidref_signal(&cell->init, SIGKILL);
	(void)!pidref_wait(&cell->init, WEXITED, &info, NULL);
	pidref_done(&cell->init);
	cell->init = PIDREF_NONE;
}

int cell_teardown(void **state)
{
	struct cell *cell = *state;

	end_init(cell);
	close(cell->wire);
	close(cell->wire_child);
	close(cell->init_fd);
	if (path_remove_tree(AT_FDCWD, cell->host) < 0)
		return -1;
	free(cell);
	return 0;
}

struct jail_mount *cell_mount(struct cell *cell, enum jail_mount_kind kind, const char *target, const char *source,
			      uint32_t flags)
{
	struct jail_mount *mount = &cell->mounts[cell->spec.mount_count++];

	assert_true(cell->spec.mount_count <= CELL_MOUNTS);
	*mount = (struct jail_mount){
		.kind = kind, .target = target, .source = source, .flags = flags, .rule = "test",
	};
	return mount;
}

const char *cell_host_path(struct cell *cell, const char *name)
{
	static char path[8][PATH_MAX];
	static unsigned next;
	char *out = path[next++ % 8];

	snprintf(out, PATH_MAX, "%s/%s", cell->host, name);
	return out;
}

void cell_host_make(struct cell *cell, const char *name, const char *content)
{
	const char *path = cell_host_path(cell, name);
	int fd;

	if (!content) {
		assert_int_equal(mkdir(path, 0755), 0);
		return;
	}
	fd = fd_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, content, strlen(content)), 0);
	close(fd);
}

int cell_build(struct cell *cell, struct pidref *ret_init, struct err *err)
{
	struct jail *jail;
	int r = jail_begin(&cell->spec, &jail, err);

	if (r < 0)
		return r;
	r = jail_start(jail, &cell->spec, ret_init, &cell->enforcement, err);
	jail_free(jail);
	return r;
}

void cell_start(struct cell *cell)
{
	int r = cell_build(cell, &cell->init, &cell->err);

	if (r < 0 && !strcmp(cell->err.stage, "userns") && !getenv("ATOLL_TESTS_MUST_RUN")) {
		print_message("[  REASON  ] no user namespaces here: %s\n", cell->err.message);
		skip();
	}
	if (r < 0)
		fail_msg("%s: %s (%s)", cell->err.stage, cell->err.message, cell->err.hint);
}

void cell_refused(struct cell *cell, const char *stage)
{
	int r = cell_build(cell, &cell->init, &cell->err);

	assert_true(r < 0);
	assert_string_equal(cell->err.stage, stage);
	assert_true(cell->init.fd < 0);
}

const char *cell_ask(struct cell *cell, const char *request)
{
	ssize_t size;

	/* The child's end is the inmate's alone from now on, so that its death is an end of file. */
	if (cell->wire_child >= 0)
		close_fd(&cell->wire_child);
	assert_true(send(cell->wire, request, strlen(request), MSG_NOSIGNAL) >= 0);
	size = recv(cell->wire, cell->answer, sizeof cell->answer - 1, 0);
	if (size <= 0)
		fail_msg("the inmate is gone after '%s'", request);
	cell->answer[size] = 0;
	return cell->answer;
}

void cell_expect_ok(struct cell *cell, const char *request, const char *needle)
{
	const char *answer = cell_ask(cell, request);

	if (strncmp(answer, "ok", 2) || (needle && !strstr(answer, needle)))
		fail_msg("'%s' was answered by '%s', not by '%s'", request, answer, needle ? needle : "ok");
}

void cell_expect_errno(struct cell *cell, const char *request, int errnum)
{
	const char *answer = cell_ask(cell, request);

	if (strtol(answer, NULL, 10) != errnum)
		fail_msg("'%s' was answered by '%s', not by %s", request, answer, err_errno_name(errnum));
}
