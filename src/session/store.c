/* SPDX-License-Identifier: Apache-2.0 */
#include "session/labels.h"
#include "session/store.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "session/directories.h"
#include "session/run-request.h"

enum { COMMAND_TEXT_MAX = 512, LOCK_TRIES = 1000, LOCK_PAUSE_NS = 500000 };

static int fail(struct err *err, int r, const char *what, const char *path)
{
	err_set(err, ERR_STATE, -r, "state", "%s %s: %s", what, path, err_errno_name(-r));
	err_hint(err, r == -ENOSPC || r == -EDQUOT
			      ? "free some space there, or set XDG_STATE_HOME to another disk"
			      : "make it writable, or set XDG_STATE_HOME to a writable directory");
	return r;
}

static char *command_text(char *const *argv)
{
	struct buf out;
	char *text;

	buf_init(&out, 4 * COMMAND_TEXT_MAX);
	for (size_t i = 0; argv[i] && out.size < COMMAND_TEXT_MAX; i++) {
		if (i)
			buf_put_char(&out, ' ');
		buf_put_escaped(&out, argv[i], strlen(argv[i]), COMMAND_TEXT_MAX - out.size);
	}
	text = str_dup(buf_text(&out));
	buf_done(&out);
	return text;
}

static int fill_record(struct session_record *record, const struct run_request *request,
		       const struct policy *policy)
{
	if (str_copy(record->id, sizeof record->id, request->session) < 0)
		return -EINVAL;
	record->name = str_dup(request->name ? request->name : "");
	record->project = str_dup(request->project);
	record->policy = str_dup(policy->name);
	record->level = str_dup(trust_level_names[policy->level]);
	record->command = command_text(request->command.argv);
	record->cgroups = str_dup(str_equal(request->group, request->session) ? "" : request->group);
	record->ended = str_dup("");
	record->audit_head = str_dup("");
	record->box_pid = getpid();
	record->started_ns = clock_realtime_ns();
	record->exit = -1;
	record->is_live = true;
	record->is_trial = request->flags & REQUEST_TRIAL;
	record->writes_host = request->flags & REQUEST_WRITES_HOST;
	record->is_lowered = request->flags & REQUEST_LOWERED;
	if (request->starter && request->starter->labels) {
		int r = labels_join((const char *const *)request->starter->labels, &record->labels);

		if (r < 0)
			return r;
	}
	record->is_kept_at_exec = policy->stage.snapshots == STAGE_AUTO_EXEC;
	for (size_t i = 0; i < policy->files.plan_count; i++)
		record->is_staged |= policy->files.plan[i].class == FILE_STAGE;
	return record->name && record->project && record->policy && record->level && record->command &&
			       record->cgroups && record->ended && record->audit_head
		       ? 0
		       : -ENOMEM;
}

static int create(int dir_fd, const char *name, int flags, mode_t mode, int *ret_fd)
{
	int fd = fd_open_at(dir_fd, name, O_CREAT | O_EXCL | O_NOFOLLOW | flags, mode);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* Who looks whether a session lives holds it for a moment, too: a guardian that tidies behind another box. */
static int lock_log(int fd)
{
	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		nanosleep(&(struct timespec){ .tv_nsec = LOCK_PAUSE_NS }, NULL);
	}
	return -EBUSY;
}

static int create_files(struct store *store, const struct run_request *request)
{
	int r = create(store->dir_fd, "audit.jsonl", O_WRONLY | O_APPEND, 0600, &store->audit_fd);

	/* Held by a descriptor of its own, since the log is closed before the last trace of the sandbox is gone. */
	if (r == 0)
		r = lock_log(store->audit_fd);
	if (r == 0)
		r = store->lock_fd = fd_duplicate(store->audit_fd);
	r = r < 0 ? r : 0;
	/* The sandbox reads its denials, as root from another uid: 0644, whatever the umask, in a directory of 0700. */
	if (r == 0)
		r = create(store->dir_fd, "denials.jsonl", O_WRONLY | O_APPEND, 0644, &store->denials_fd);
	if (r == 0 && fchmod(store->denials_fd, 0644) < 0)
		r = -errno;
	if (r == 0 && request->flags & REQUEST_DETACH)
		r = create(store->dir_fd, "output.log", O_WRONLY | O_APPEND, 0600, &store->output_fd);
	return r;
}

/*
 * The first session of all. ext4 looks at each inode that was given back within the last minutes before it takes a new
 * one of the same block group, so after a large tree was removed each file beside it costs up to a millisecond: the
 * sessions get a group where nobody else removes any.
 */
static int make_first(const char *state_dir, const char *path)
{
	int r = path_make_directories(AT_FDCWD, state_dir, 0700);

	if (r == 0)
		r = path_make_apart(state_dir, "sessions", 0700);
	return r == 0 || r == -EEXIST ? path_make_directories(AT_FDCWD, path, 0700) : r;
}

int store_open(struct store *ret_store, const struct run_request *request, struct err *err)
{
	struct store store = { .dir_fd = FD_NONE,
			       .lock_fd = FD_NONE,
			       .audit_fd = FD_NONE,
			       .denials_fd = FD_NONE,
			       .output_fd = FD_NONE };
	int r = str_format(store.path, sizeof store.path, "%s/sessions/%s", request->state_dir, request->session);

	if (r < 0)
		return fail(err, r, "cannot name a session below", request->state_dir);
	if (mkdirat(AT_FDCWD, store.path, 0700) < 0)
		r = errno == ENOENT ? make_first(request->state_dir, store.path) : -errno;
	if (r < 0)
		return fail(err, r, "cannot make", store.path);
	store.dir_fd = fd_open_at(AT_FDCWD, store.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	r = store.dir_fd < 0 ? store.dir_fd : create_files(&store, request);
	if (r < 0) {
		fail(err, r, "cannot write in", store.path);
		store_discard(&store);
		store_done(&store);
		return r;
	}
	*ret_store = store;
	return 0;
}

int store_keep_root(struct store *store, const char *root, struct err *err)
{
	return symlinkat(root, store->dir_fd, SESSION_ROOT) < 0 ? fail(err, -errno, "cannot write in", store->path) : 0;
}

/* What the log has the hash of. */
static int keep_narrowing(struct store *store, const struct run_narrowing *narrowing)
{
	cleanup_fd int fd = FD_NONE;
	int r = narrowing && narrowing->text ? create(store->dir_fd, "narrowing.json", O_WRONLY, 0600, &fd) : 0;

	return r < 0 || fd < 0 ? r : fd_write_full(fd, narrowing->text, strlen(narrowing->text));
}

int store_keep_policy(struct store *store, const struct run_policy *policy, struct err *err)
{
	cleanup_fd int policy_fd = FD_NONE;
	int r = create(store->dir_fd, "policy.bin", O_WRONLY, 0600, &policy_fd);

	if (r == 0)
		r = fd_write_full(policy_fd, policy->bytes, policy->size);
	return r < 0 ? fail(err, r, "cannot write in", store->path) : 0;
}

int store_rename(struct store *store, const struct run_request *request, struct err *err)
{
	char path[sizeof store->path];
	int r = str_format(path, sizeof path, "%s/sessions/%s", request->state_dir, request->session);

	if (r == 0)
		r = path_rename_new(store->path, path);
	if (r < 0)
		return fail(err, r, "cannot rename", store->path);
	memcpy(store->path, path, sizeof path);
	return 0;
}

int store_begin(struct store *store, const struct run_request *request, const struct run_policy *policy,
		struct err *err)
{
	int r = keep_narrowing(store, request->narrowing);

	if (r == 0)
		r = fill_record(&store->record, request, policy->policy);
	if (r == 0)
		r = request->parking ? session_store_made(store->dir_fd, &store->record)
				     : session_store(store->dir_fd, &store->record);
	return r < 0 ? fail(err, r, "cannot write in", store->path) : 0;
}

int store_expect_begin(struct store *store, struct err *err)
{
	int r = session_make(store->dir_fd, false);

	store_expect_end(store);
	return r < 0 ? fail(err, r, "cannot write in", store->path) : 0;
}

void store_expect_end(struct store *store)
{
	store->has_end = store->has_end || session_make(store->dir_fd, true) == 0;
}

int store_save(struct store *store, struct err *err)
{
	int r = store->has_end ? session_store_made(store->dir_fd, &store->record) :
				 session_store(store->dir_fd, &store->record);

	return r < 0 ? fail(err, r, "cannot write the record in", store->path) : 0;
}

void store_discard(struct store *store)
{
	if (path_remove_tree(AT_FDCWD, store->path) < 0)
		return; /* what is left has no record of a start; the sweep of old sessions takes it */
}

void store_done(struct store *store)
{
	close_fd(&store->audit_fd);
	close_fd(&store->denials_fd);
	close_fd(&store->output_fd);
	close_fd(&store->dir_fd);
	close_fd(&store->lock_fd);
	session_record_done(&store->record);
}
