/* SPDX-License-Identifier: Apache-2.0 */
#include "box/verify-program.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "box/state.h"
#include "os/fd.h"
#include "wire/verify.h"

enum { ABOVE_STANDARD = VERIFY_FD + 1, UID_BITS = 3 };

static int open_program(const char *init_path)
{
	char path[PATH_MAX];
	int fd, r = str_format(path, sizeof path, "%.*satoll-verify", (int)(path_basename(init_path) - init_path),
			       init_path);

	if (r < 0)
		return r;
	fd = fd_open_at(AT_FDCWD, path, O_PATH, 0);
	return fd < 0 ? fd : fd_move_above(fd, ABOVE_STANDARD);
}

/* In the child made by vfork(): raw calls only, as for the desk. */
static void become_verify(int program_fd, int link_fd, uid_t uid)
{
	char *argv[] = { (char *)"atoll-verify", (char *)"--served", NULL }, *environment[] = { NULL };
	int null_fd = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	sigset_t none;

	sigemptyset(&none);
	syscall(SYS_setsid);
	if (null_fd < 0 || dup2(link_fd, VERIFY_FD) < 0)
		return;
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null_fd, fd) < 0)
			return;
	if (uid && (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, uid, uid, uid) < 0 ||
		    syscall(SYS_setresuid, uid, uid, uid) < 0))
		return;
	/* After the change of ids, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return;
	syscall(SYS_execveat, program_fd, "", argv, environment, AT_EMPTY_PATH);
}

static int spawn(const struct box *box, int link_fd, struct pidref *process)
{
	cleanup_fd int program_fd = open_program(box->request->init_path);
	/* As root a uid in the range of the sandbox's that nobody else has: not the gate's, and not the desk's. */
	uid_t uid = getuid() == 0 ? box->watch_options.uid ^ UID_BITS : 0;
	volatile int failed = 0;
	pid_t pid;
	int r;

	if (program_fd < 0)
		return program_fd;
	pid = vfork();
	if (pid == 0) {
		become_verify(program_fd, link_fd, uid);
		failed = errno;
		_exit(125);
	}
	if (pid < 0)
		return -errno;
	r = pidref_open(process, pid);
	return r == 0 && failed ? -failed : r;
}

int verify_program_start(const struct box *box, struct pidref *process, int *ret_fd)
{
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	r = ends[1] = fd_move_above(ends[1], ABOVE_STANDARD);
	if (r >= 0)
		r = spawn(box, ends[1], process);
	close_fd(&ends[1]);
	if (r < 0) {
		close(ends[0]);
		return r;
	}
	*ret_fd = ends[0];
	return 0;
}

/* ---- rules ---- */

struct gathered {
	struct buf files;            /* fields of the frame, without the count */
	uint32_t count;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_file(struct gathered *gathered, int directory_fd, const char *directory, const char *name)
{
	cleanup_free char *bytes = NULL;
	char path[PATH_MAX];
	size_t size = 0;
	int r = fd_read_file_at(directory_fd, name, VERIFY_RULES_MAX, &bytes, &size);

	if (r == 0)
		r = str_format(path, sizeof path, "%s/%s", directory, name);
	if (r < 0)
		return r;
	frame_put_string(&gathered->files, path);
	frame_put_bytes(&gathered->files, bytes, size);
	gathered->count++;
	return 0;
}

/* By name, so that errors are the same each time. */
static int add_directory(struct gathered *gathered, const char *directory)
{
	char *names[VERIFY_RULE_FILES_MAX];
	const struct dirent *entry;
	size_t count = 0;
	DIR *stream = opendir(directory);
	int r = 0;

	if (!stream)
		return errno == ENOENT ? 0 : -errno;
	while (r == 0 && (entry = readdir(stream))) {
		if (entry->d_name[0] == '.' || !str_has_suffix(entry->d_name, ".yaml"))
			continue;
		r = count == VERIFY_RULE_FILES_MAX ? -E2BIG : 0;
		if (r == 0 && !(names[count++] = str_dup(entry->d_name)))
			r = -ENOMEM;
	}
	qsort(names, count, sizeof *names, compare_names);
	for (size_t i = 0; i < count; i++) {
		if (r == 0 && names[i])
			r = add_file(gathered, dirfd(stream), directory, names[i]);
		free(names[i]);
	}
	closedir(stream);
	return r;
}

static int add_own(const struct box *box, struct gathered *gathered)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = box->request->home;
	char directory[PATH_MAX];
	int r = 1;

	if (config && *config == '/')
		r = str_format(directory, sizeof directory, "%s/atoll/verify", config);
	else if (home && *home)
		r = str_format(directory, sizeof directory, "%s/.config/atoll/verify", home);
	return r ? (r < 0 ? r : 0) : add_directory(gathered, directory);
}

int verify_program_rules(const struct box *box, int *ret_fd)
{
	const char *init_path = box->request->init_path;
	struct gathered gathered = { .count = 0 };
	cleanup_buf struct buf frame;
	char shipped[PATH_MAX];
	int r = str_format(shipped, sizeof shipped, "%.*spolicies/verify", (int)(path_basename(init_path) - init_path),
			   init_path);

	buf_init(&gathered.files, VERIFY_RULES_MAX);
	buf_init(&frame, VERIFY_RULES_MAX + FRAME_MESSAGE_MAX);
	if (r == 0)
		r = add_directory(&gathered, shipped);
	if (r == 0 && !gathered.count)
		r = -ENOENT;
	if (r == 0)
		r = add_own(box, &gathered);
	if (r == 0)
		r = buf_error(&gathered.files);
	if (r == 0) {
		frame_begin(&frame, VERIFY_RULES);
		frame_put_u32(&frame, gathered.count);
		buf_put(&frame, gathered.files.bytes, gathered.files.size);
		r = frame_end(&frame);
	}
	buf_done(&gathered.files);
	if (r == 0)
		r = *ret_fd = fd_memfd_sealed("atoll-rules", frame.bytes, frame.size);
	return r < 0 ? r : 0;
}
