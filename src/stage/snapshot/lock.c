/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/snapshot/lock.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/record/store.h"
#include "stage/record/use.h"

enum { PATIENCE_MS = 10000 };

static int open_directories(const char *state_dir, const char *session, struct stage_lock *lock)
{
	char path[SESSION_ID_SIZE + sizeof "/" STAGE_DIRECTORY];
	cleanup_fd int state_fd = fd_open_at(AT_FDCWD, state_dir, O_PATH | O_DIRECTORY, 0);
	int r = state_fd;

	if (r >= 0)
		r = lock->sessions_fd = fd_open_at(state_fd, "sessions", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = str_format(path, sizeof path, "%s/" STAGE_DIRECTORY, session);
	if (r >= 0)
		r = lock->stage_fd = path_open2(lock->sessions_fd, path, O_RDONLY | O_DIRECTORY, 0,
						STAGE_RESOLVE_BENEATH);
	return r < 0 ? r : 0;
}

/* Its time says when somebody was last about to build on the session; a new one says never. */
static int open_lock(struct stage_lock *lock)
{
	const struct timespec never[2] = { { 0 }, { 0 } };

	lock->lock_fd = fd_open_at(lock->stage_fd, STAGE_FILE_LOCK, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (lock->lock_fd >= 0)
		return futimens(lock->lock_fd, never) < 0 ? -errno : 0;
	if (lock->lock_fd == -EEXIST)
		lock->lock_fd = fd_open_at(lock->stage_fd, STAGE_FILE_LOCK, O_RDWR | O_NOFOLLOW, 0);
	return lock->lock_fd < 0 ? lock->lock_fd : 0;
}

static int take_lock(struct stage_lock *lock)
{
	int r = open_lock(lock);

	return r < 0 ? r : fd_lock_within(lock->lock_fd, LOCK_EX, PATIENCE_MS);
}

/* The box holds a lock of its log as long as it lives. What cannot be known is taken for alive. */
static bool is_box_alive(const struct stage_lock *lock)
{
	cleanup_fd int fd = fd_open_at(lock->stage_fd, "../" STAGE_BOX_LOCK, O_RDONLY | O_NOFOLLOW, 0);

	return fd < 0 ? fd != -ENOENT : flock(fd, LOCK_SH | LOCK_NB) < 0;
}

static int load(struct stage_lock *lock)
{
	int r = stage_record_load(lock->stage_fd, &lock->record);

	if (r == 0)
		r = stage_chain_load(lock->stage_fd, STAGE_FILE_CHAIN, true, &lock->chain);
	/* The file may be a snapshot's, too; what is sealed on top of it is another state. */
	lock->chain.taken_ns = 0;
	lock->chain.message[0] = 0;
	return r;
}

static int explain(const char *session, int r, struct err *err)
{
	if (r == -ENOENT || r == -ENOTDIR) {
		err_set(err, ERR_STATE, ENOENT, "stage", "session %s has no staged changes", session);
		err_hint(err, "its policy writes in place, or nothing was changed");
		return -ENOENT;
	}
	if (r == -EBUSY) {
		err_set(err, ERR_STATE, EBUSY, "stage", "the layers of session %s are being changed by another command",
			session);
		err_hint(err, "try again when it is done");
		return -EBUSY;
	}
	return stage_record_explain(session, r, err);
}

int stage_lock_open(const char *state_dir, const char *session, struct stage_lock *ret_lock, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	int r = stage_session_is_valid(session) ? 0 : -EINVAL;

	if (r == 0)
		r = open_directories(state_dir, session, &lock);
	if (r == 0)
		r = str_copy(lock.session, sizeof lock.session, session);
	if (r == 0)
		r = stage_use(lock.stage_fd, session);
	if (r == 0)
		r = take_lock(&lock);
	if (r == 0)
		r = load(&lock);
	if (r < 0)
		return explain(session, r, err);
	lock.is_live = is_box_alive(&lock);
	*ret_lock = lock;
	lock = STAGE_LOCK_NONE;
	return 0;
}

void stage_lock_done(struct stage_lock *lock)
{
	stage_record_done(&lock->record);
	close_fd(&lock->lock_fd);
	close_fd(&lock->stage_fd);
	close_fd(&lock->sessions_fd);
}

int stage_lock_need_idle(const struct stage_lock *lock, const char *what, struct err *err)
{
	if (!lock->is_live)
		return 0;
	err_set(err, ERR_STATE, EBUSY, "stage", "session %s is still running; %s is possible only after its "
						"end", lock->session,
		what);
	err_hint(err, "atoll stop %s", lock->session);
	return -EBUSY;
}

int stage_lock_need_layers(const struct stage_lock *lock, const char *what, struct err *err)
{
	if (lock->record.form == STAGE_FORM_OVERLAY)
		return 0;
	err_set(err, ERR_STATE, EOPNOTSUPP, "stage",
		"session %s was staged by fuse-overlayfs, whose changes can only be reviewed, applied and discarded; "
		"%s needs the kernel's overlay", lock->session, what);
	err_hint(err, "run with `stage: {backend: overlay}` and XDG_STATE_HOME on ext4, xfs, btrfs or tmpfs");
	return -EOPNOTSUPP;
}

int stage_lock_touch(const struct stage_lock *lock)
{
	return futimens(lock->lock_fd, NULL) < 0 ? -errno : 0;
}
