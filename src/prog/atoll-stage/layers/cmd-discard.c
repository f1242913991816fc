/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll-stage/verb/audit-step.h"
#include "prog/atoll-stage/verb/layer-gc.h"
#include "prog/atoll-stage/verb/verb.h"
#include "session/directories.h"
#include "stage/change/review-options.h"
#include "stage/layer/remove.h"
#include "stage/record/use.h"
#include "stage/snapshot/flatten.h"
#include "stage/snapshot/gc.h"
#include "stage/snapshot/snapshot.h"

/* Drops what a session staged: all of it, or paths. What is dropped is removed, unless others stand on it. */

enum { PATHS_MAX = 4096 };

struct request {
	struct verb_session session;
	struct discard_options given;
};

#define AT(member) offsetof(struct request, given.member)
static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct request),
	DISCARD_OPTIONS(AT),
};

/* The tree nearest to an absolute path, and the path in it. */
static int find_tree(const struct stage_record *record, const char *root, const char *path,
		     struct stage_drop *ret_drop, struct err *err)
{
	cleanup_buf struct buf shown;
	size_t best = 0;
	bool is_found = false;

	buf_init(&shown, PATH_MAX);
	for (size_t i = 0; i < record->tree_count; i++) {
		const char *tree = session_root_inside(root, record->trees[i].path);

		if (!path_is_below(path, tree) || (is_found && best > strlen(tree)))
			continue;
		best = strlen(tree);
		is_found = true;
		ret_drop->tree = i;
		ret_drop->path = path + (str_equal(tree, "/") ? 1 : best);
		ret_drop->path += *ret_drop->path == '/';
	}
	if (is_found)
		return 0;
	buf_put_escaped(&shown, path, strlen(path), 200);
	err_set(err, ERR_USAGE, EINVAL, "discard", "%s is not in a staged tree", buf_text(&shown));
	err_hint(err, "atoll diff shows the paths");
	return -EINVAL;
}

static int discard_paths(struct stage_lock *lock, const char *root, char **paths, size_t count, uint64_t *ret_dropped,
			 struct err *err)
{
	cleanup_free struct stage_drop *drops = calloc(count, sizeof *drops);
	int r = 0;

	if (!drops || count > PATHS_MAX)
		return err_set(err, ERR_USAGE, E2BIG, "discard", "at most %d paths at a time", PATHS_MAX);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = find_tree(&lock->record, root, paths[i], &drops[i], err);
	return r < 0 ? r : stage_discard_paths(lock, drops, count, ret_dropped, err);
}

/* What nobody can read, whole and with its snapshots, unless a session that can be read stands on it. */
static int remove_stage(const char *id, const struct stage_lock *lock, struct err *err)
{
	cleanup_stage_references struct stage_references references = { 0 };
	cleanup_fd int session_fd = fd_open_at(lock->sessions_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = session_fd < 0 ? session_fd : stage_references_load(lock->sessions_fd, &references, err);
	const char *user = r == 0 ? stage_references_user(&references, id) : NULL;

	if (user) {
		err_set(err, ERR_STATE, EBUSY, "discard", "session %s uses the layers of %s", user, id);
		err_hint(err, "first run: atoll discard %s", user);
		return -EBUSY;
	}
	if (r == 0)
		r = stage_remove_tree(session_fd, STAGE_DIRECTORY, NULL);
	return r < 0 ? err_set(err, ERR_STATE, -r, "discard", "the staged changes of session %s cannot be removed: "
							      "%s", id,
			       err_errno_name(-r))
		     : layer_gc_mark(lock, false, err);
}

static int drop(struct stage_lock *lock, const char *root, char **paths, size_t count, uint64_t *ret_dropped,
		struct err *err)
{
	int r;

	if (count && stage_lock_need_layers(lock, "dropping some paths", err) < 0)
		return -EOPNOTSUPP;
	if (count)
		return discard_paths(lock, root, paths, count, ret_dropped, err);
	r = stage_discard_all(lock, err);
	/* Half of it is gone: so goes the rest. */
	if ((r == -ENOENT || r == -ENOTDIR) && stage_claim(lock->stage_fd, 0) == 0)
		return remove_stage(lock->session, lock, err);
	return r < 0 ? r : layer_gc_mark(lock, false, err);
}

static int discard(struct stage_lock *lock, const char *state, char **paths, size_t count, uint64_t *ret_dropped,
		   struct err *err)
{
	char root[PATH_MAX];
	cleanup_audit_step struct audit_step step = AUDIT_STEP_INIT;
	int r = audit_step_open(&step, lock->sessions_fd, lock->session, AUDIT_STAGE_DISCARD, err);

	/* Without it the paths of its own system are in no tree. */
	if (session_root_of(state, lock->session, root, sizeof root) < 0)
		*root = 0;
	if (r == 0)
		r = layer_gc_confine(lock->sessions_fd, &lock->record, err);
	audit_step_add_words(&step, REVIEW_ASKED, (const char *const *)paths);
	if (r == 0)
		r = audit_step_begin(&step, err);
	if (r == 0)
		r = drop(lock, root, paths, count, ret_dropped, err);
	step.entry.counts[REVIEW_DROPPED] = *ret_dropped;
	return audit_step_end(&step, r, err);
}

static int discard_unreadable(const struct verb_session *session, struct err *err)
{
	cleanup_audit_step struct audit_step step = AUDIT_STEP_INIT;
	cleanup_fd int state_fd = fd_open_at(AT_FDCWD, session->state, O_PATH | O_DIRECTORY, 0);
	cleanup_fd int box_fd = FD_NONE, stage_fd = FD_NONE;
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	int r = state_fd < 0 ? state_fd : str_copy(lock.session, sizeof lock.session, session->id);

	if (r == 0)
		r = lock.sessions_fd = fd_open_at(state_fd, "sessions", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = stage_gc_claim(lock.sessions_fd, session->id, &box_fd, &stage_fd);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "discard", "session %s is in use, or cannot be opened: %s",
			       session->id, err_errno_name(-r));
	/* The log is written by its own lock. */
	close_fd(&box_fd);
	r = audit_step_open(&step, lock.sessions_fd, session->id, AUDIT_STAGE_DISCARD, err);
	if (r == 0)
		r = layer_gc_confine(lock.sessions_fd, NULL, err);
	if (r == 0)
		r = audit_step_begin(&step, err);
	if (r == 0)
		r = remove_stage(session->id, &lock, err);
	return audit_step_end(&step, r, err);
}

static void say(const struct stage_lock *lock, bool is_all, uint64_t dropped)
{
	struct stage_snapshot *list = NULL;
	size_t count = 0;
	struct err ignored;

	if (is_all)
		printf("%s holds no staged changes any more", lock->session);
	else
		printf("%llu staged %s dropped", (unsigned long long)dropped,
		       dropped == 1 ? "entry was" : "entries were");
	if (is_all && stage_snapshot_list(lock, &list, &count, &ignored) == 0 && count)
		printf("; its %zu %s stay", count, count == 1 ? "snapshot" : "snapshots");
	free(list);
	printf("\n");
}

/* Not what somebody else is at, nor what a system's failure may be. */
static bool is_unreadable(int r)
{
	return r == -EBADMSG || r == -EISDIR || r == -ELOOP || r == -EINVAL;
}

int cmd_discard(int argc, char **argv, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	struct request request = { 0 };
	uint64_t dropped = 0;
	int rest, r = options_parse(options, ARRAY_SIZE(options), &request, argc, argv, true, &rest, err);

	if (r == 0 && (!request.session.state || !request.session.id))
		r = err_set(err, ERR_USAGE, EINVAL, "discard", "atoll-stage discard is run by atoll");
	if (r == 0)
		r = stage_lock_open(request.session.state, request.session.id, &lock, err);
	if (rest == argc && is_unreadable(r)) {
		r = discard_unreadable(&request.session, err);
		if (r == 0 && !request.given.quiet)
			printf("%s holds no staged changes any more\n", request.session.id);
		return r;
	}
	if (r == 0)
		r = stage_lock_need_idle(&lock, "dropping changes", err);
	if (r == 0)
		r = discard(&lock, request.session.state, argv + rest, (size_t)(argc - rest), &dropped, err);
	if (r == 0)
		r = layer_gc_layers(&lock, err);
	if (r < 0)
		return r;
	if (!request.given.quiet)
		say(&lock, rest == argc, dropped);
	if (fflush(stdout) != 0)
		return err_set(err, ERR_STATE, EIO, "discard", "stdout cannot be written");
	/* A path that held nothing is worth a word to a script, too. */
	return rest < argc && !dropped ? EXIT_LEFT : 0;
}
