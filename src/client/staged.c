/* SPDX-License-Identifier: Apache-2.0 */
#include "client/staged.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

#include "base/str.h"
#include "client/find.h"
#include "client/program.h"
#include "os/fd.h"
#include "session/control-socket.h"
#include "session/directories.h"
#include "stage/snapshot/snapshot.h"

enum { CONTROL_FD = 3 };

void staged_words(struct words *words, const char *verb, const char *state, const char *session)
{
	words_add(words, "atoll-stage");
	words_add(words, verb);
	words_add_option(words, "--state", state);
	words_add_option(words, "--session", session);
}

/* more_fd >= 0 becomes CONTROL_FD. */
static int start(const struct words *words, int stdout_fd, int more_fd, pid_t *ret_pid, struct err *err)
{
	struct program program = { .name = "atoll-stage", .stage = "stage", .argv = (const char *const *)words->list };
	int r = program_check_words(words, err);

	if (stdout_fd >= 0)
		program.fds[program.fd_count++] = (struct spawn_fd){ stdout_fd, 1 };
	if (more_fd >= 0)
		program.fds[program.fd_count++] = (struct spawn_fd){ more_fd, CONTROL_FD };
	return r < 0 ? r : program_start(&program, ret_pid, err);
}

static int wait_for(pid_t pid, struct err *err)
{
	int r = spawn_wait(pid, NULL);

	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "stage", "atoll-stage cannot be waited for: "
							       "%s", strerror(-r)) : r;
}

int staged_run(const struct words *words, struct err *err)
{
	pid_t pid;
	int r = start(words, FD_NONE, FD_NONE, &pid, err);

	return r < 0 ? r : wait_for(pid, err);
}

bool staged_is_session(const char *state, const char *text)
{
	struct session_record record;
	struct err err;

	if (session_id_is_valid(text))
		return true;
	if (session_find(state, NULL, text, NULL, &record, &err) < 0)
		return false;
	session_record_done(&record);
	return true;
}

int staged_find_newest(const char *state, struct session_record *ret_record, struct err *err)
{
	struct session_record *records;
	char project[PATH_MAX];
	bool is_found = false;
	size_t count;
	int r = find_project(project, err);

	if (r == 0)
		r = session_list(state, &records, &count, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		bool is_here = str_equal(project, records[i].project);

		if (!is_found && is_here && records[i].is_staged && !records[i].is_trial) {
			*ret_record = records[i];
			is_found = true;
		} else {
			session_record_done(&records[i]);
		}
	}
	free(records);
	if (is_found)
		return 0;
	err_set(err, ERR_NOT_FOUND, ENOENT, "session", "no session of this project holds staged changes");
	err_hint(err, "name one: `atoll ps -a` lists them");
	return -ENOENT;
}

int staged_find(const char *id_or_name, char state[PATH_MAX], struct session_record *ret_record, struct err *err)
{
	int r = session_state_dir(state, PATH_MAX, false, err);

	if (r < 0)
		return r;
	return id_or_name ? session_find(state, NULL, id_or_name, NULL, ret_record, err)
			  : staged_find_newest(state, ret_record, err);
}

int staged_mark(const char *state, const char *session, bool is_staged, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_fd int dir_fd = FD_NONE;
	char path[PATH_MAX];
	int r = session_path(state, session, "", path, sizeof path);

	if (r == 0)
		r = dir_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = session_load(dir_fd, &record);
	/* While it lives its box writes the record, in the end with what there is then. */
	if (r < 0 || record.is_live || record.is_staged == is_staged)
		return r < 0 ? err_set(err, ERR_STATE, -r, "session", "the record of session %s cannot be read: %s",
				       session, err_errno_name(-r))
			     : 0;
	record.is_staged = is_staged;
	r = session_store(dir_fd, &record);
	return r < 0 ? err_set(err, ERR_STATE, -r, "session", "the record of session %s cannot be written: %s", session,
			       err_errno_name(-r))
		     : 0;
}

void staged_flatten_later(const char *state, const struct stage_lock *lock)
{
	char program[PATH_MAX];
	const char *argv[] = { "atoll-stage", "flatten", "--state", state, "--session", lock->session, NULL };
	struct err err;

	if (lock->chain.count <= STAGE_CHAIN_FLATTEN || lock->is_live ||
	    program_path("stage", argv[0], program, &err) < 0 ||
	    spawn_background(&(struct spawn){ .program = program, .argv = argv }, 0) < 0)
		return;
}

int staged_log_begin(struct staged_log *telling, const struct stage_lock *lock, enum audit_type type,
		const char *subject, struct err *err)
{
	int r;

	/* A log that takes no more is an answer. */
	signal(SIGXFSZ, SIG_IGN);
	telling->entry = (struct review_entry){ .type = type, .phase = REVIEW_BEGUN, .subject = subject };
	r = review_log_open(&telling->log, lock->sessions_fd, lock->session, err);
	if (r < 0)
		return r;
	r = review_log_put(&telling->log, &telling->entry, err);
	if (r < 0)
		review_log_done(&telling->log);
	return r;
}

int staged_log_end(struct staged_log *telling, int r, struct err *err)
{
	struct err late = { 0 };
	int told;

	telling->entry.phase = r < 0 ? REVIEW_FAILED : REVIEW_DONE;
	told = review_log_put(&telling->log, &telling->entry, &late);
	review_log_done(&telling->log);
	if (r < 0 || told == 0)
		return r;
	*err = late;
	return told;
}

static int seal_told(struct stage_lock *lock, const char *name, const char *message, struct err *err)
{
	struct staged_log telling;
	int r = stage_snapshot_check_name(lock, name, err);

	if (r == 0)
		r = staged_log_begin(&telling, lock, AUDIT_STAGE_SNAPSHOT, name, err);
	return r < 0 ? r : staged_log_end(&telling, stage_snapshot_seal(lock, name, message, err), err);
}

static int seal(const char *state, struct stage_lock *lock, const struct staged_snapshot *wanted, char *ret_name,
		struct err *err)
{
	int r = wanted->name ? str_copy(ret_name, STAGE_SNAPSHOT_NAME_SIZE, wanted->name)
			     : stage_snapshot_next_name(lock, wanted->prefix, ret_name, err);

	/* Too long: no name that could be taken; the check says so. */
	if (r == -ENAMETOOLONG)
		return stage_snapshot_check_name(lock, wanted->name, err);
	if (r == 0)
		r = seal_told(lock, ret_name, wanted->message, err);
	if (r == 0)
		staged_flatten_later(state, lock);
	return r;
}

/* The name, which atoll-stage prints. */
static int read_name(int fd, char *ret_name)
{
	ssize_t size = 0, n;

	while (size < STAGE_SNAPSHOT_NAME_SIZE &&
	       (n = read(fd, ret_name + size, (size_t)(STAGE_SNAPSHOT_NAME_SIZE - size))) != 0) {
		if (n < 0)
			return -errno;
		size += n;
	}
	if (size < 2 || size >= STAGE_SNAPSHOT_NAME_SIZE || ret_name[size - 1] != '\n')
		return -EPROTO;
	ret_name[size - 1] = 0;
	return 0;
}

/* atoll-stage holds the sandbox still by this socket, and lets go of it by whatever end it finds itself. */
static int copy_running(const char *state, const struct session_record *record, const struct staged_snapshot *wanted,
			char *ret_name, struct err *err)
{
	cleanup_fd int socket_fd = control_socket_connect(record->id, err), read_fd = FD_NONE, write_fd = FD_NONE;
	cleanup_words struct words words = { 0 };
	int ends[2], status, r;
	pid_t pid;

	if (socket_fd < 0)
		return socket_fd;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, ERR_INTERNAL, errno, "snapshot", "pipe: %s", strerror(errno));
	read_fd = ends[0];
	write_fd = fd_move_above(ends[1], CONTROL_FD + 1);
	socket_fd = fd_move_above(socket_fd, CONTROL_FD + 1);
	if (write_fd < 0 || socket_fd < 0)
		return err_set(err, ERR_INTERNAL, EMFILE, "snapshot", "no descriptors are left");
	staged_words(&words, "snapshot", state, record->id);
	words_add_option(&words, "--name", wanted->name);
	words_add_option(&words, "--prefix", wanted->name ? NULL : wanted->prefix);
	words_add_option(&words, "--message", wanted->message);
	r = start(&words, write_fd, socket_fd, &pid, err);
	if (r < 0)
		return r;
	close_fd(&write_fd);
	close_fd(&socket_fd);
	r = read_name(read_fd, ret_name);
	status = wait_for(pid, err);
	if (status < 0)
		return status;
	/* It has said why. */
	return status ? 125 : r < 0 ? err_set(err, ERR_INTERNAL, -r, "snapshot", "atoll-stage gave no name") : 0;
}

int staged_snapshot(const char *state, const struct session_record *record, const struct staged_snapshot *wanted,
		    char *ret_name, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	int r;

	if (!record->is_live) {
		r = stage_lock_open(state, record->id, &lock, err);
		if (r == 0)
			r = stage_lock_need_layers(&lock, "a snapshot", err);
		return r < 0 ? r : seal(state, &lock, wanted, ret_name, err);
	}
	return copy_running(state, record, wanted, ret_name, err);
}

int staged_restore_running(const char *state, const struct session_record *record, const char *name, bool is_quiet,
			   struct err *err)
{
	cleanup_fd int socket_fd = control_socket_connect(record->id, err);
	cleanup_words struct words words = { 0 };
	pid_t pid;
	int r;

	if (socket_fd < 0)
		return socket_fd;
	socket_fd = fd_move_above(socket_fd, CONTROL_FD + 1);
	if (socket_fd < 0)
		return err_set(err, ERR_INTERNAL, EMFILE, "restore", "no descriptors are left");
	staged_words(&words, "restore", state, record->id);
	words_add_option(&words, "--name", name);
	words_add_flag(&words, is_quiet, "--quiet");
	r = start(&words, FD_NONE, socket_fd, &pid, err);
	return r < 0 ? r : wait_for(pid, err);
}

int staged_forget(const char *state, const char *session, const char *name, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	struct staged_log telling;
	struct stage_chain chain;
	int r = stage_lock_open(state, session, &lock, err);

	if (r == 0)
		r = stage_snapshot_load(&lock, name, &chain, err);
	if (r == 0)
		r = staged_log_begin(&telling, &lock, AUDIT_STAGE_FORGET, name, err);
	return r < 0 ? r : staged_log_end(&telling, stage_snapshot_remove(&lock, name, err), err);
}
