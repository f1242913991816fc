/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/verb/layer-gc.h"

#include <fcntl.h>

#include "confine/confine.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "session/record.h"
#include "stage/snapshot/gc.h"

int layer_gc_confine(int sessions_fd, const struct stage_record *record, struct err *err)
{
	struct confine_place places[STAGE_TREES_MAX + 1] = {
		{ sessions_fd, landlock_rights(landlock_abi()) & ~(uint64_t)LANDLOCK_EXECUTE },
	};
	size_t count = 1;
	int r;

	/*
	 * What lies in the layers is ours, but the sandbox may have closed it (chmod 0 on a directory): without this it
	 * could forbid its own snapshots. Where user namespaces are refused, such a directory is an error.
	 */
	r = geteuid() != 0 ? clone_enter_user_namespace() : 0;
	if (r < 0)
		return err_set(err, ERR_WALL, -r, "confine", "the user namespace has no ids: %s", err_errno_name(-r));
	for (size_t i = 0; record && i < record->tree_count; i++) {
		/* One that is gone is said by whoever needs it. */
		int fd = stage_tree_open(&record->trees[i], err);

		if (fd >= 0)
			places[count++] = (struct confine_place){ fd, LANDLOCK_READ_DIR };
	}
	r = confine_self(CONFINE_STAGE_WRITING, places, count, err);
	for (size_t i = 1; i < count; i++)
		close(places[i].fd);
	return r;
}

int layer_gc_layers(const struct stage_lock *lock, struct err *err)
{
	cleanup_stage_references struct stage_references references = { 0 };
	uint64_t layers = 0;
	int r = stage_references_load(lock->sessions_fd, &references, err);

	if (r < 0)
		return r;
	r = stage_gc_layers(lock->sessions_fd, lock->session, &references, false, &layers, NULL);
	return r < 0 ? err_set(err, ERR_STATE, -r, "stage", "layers of session %s cannot be removed: %s", lock->session,
			       err_errno_name(-r))
		     : 0;
}

int layer_gc_mark(const struct stage_lock *lock, bool is_staged, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_fd int dir_fd = fd_open_at(lock->sessions_fd, lock->session, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = dir_fd < 0 ? dir_fd : session_load(dir_fd, &record);

	/* A record that nobody can read says nothing. */
	if (r == -EBADMSG || r == -ENOENT)
		return 0;
	if (r == 0 && !record.is_live && record.is_staged != is_staged) {
		record.is_staged = is_staged;
		r = session_store(dir_fd, &record);
	}
	return r < 0 ? err_set(err, ERR_STATE, -r, "stage", "the record of session %s cannot be written: %s",
			       lock->session, err_errno_name(-r))
		     : 0;
}
