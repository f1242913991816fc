/* SPDX-License-Identifier: Apache-2.0 */
#include "build/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "build/stage-query.h"
#include "os/fd.h"
#include "os/identity.h"
#include "os/mount-list.h"
#include "os/path.h"
#include "policy/decide.h"
#include "session/record.h"
#include "stage/change/seen.h"

enum { RELINK_MS = 60000 };

void staging_init(struct staging *staging)
{
	*staging = (struct staging){ .stage_fd = FD_NONE };
}

void staging_done(struct staging *staging)
{
	close_fd(&staging->stage_fd);
	stage_record_done(&staging->record);
	stage_record_done(&staging->origin);
	seen_free(staging->seen);
}

/* "SESSION/NUMBER". */
static int push_layer(struct stage_chain *chain, const char *text)
{
	const char *slash = strchr(text, '/');
	char session[SESSION_ID_SIZE];
	uint64_t number;

	if (!slash || slash - text != SESSION_ID_SIZE - 1 || num_parse_count(slash + 1, &number) < 0 || !number ||
	    number > UINT32_MAX)
		return -EINVAL;
	memcpy(session, text, SESSION_ID_SIZE - 1);
	session[SESSION_ID_SIZE - 1] = 0;
	return session_id_is_valid(session) ? stage_chain_push(chain, session, (uint32_t)number) : -EINVAL;
}

int staging_read_request(struct staging *staging, const struct run_request *request, struct err *err)
{
	cleanup_fd int stage_fd = FD_NONE;
	char path[PATH_MAX];
	int r;

	if (!request->fork.origin)
		return 0;
	r = session_id_is_valid(request->fork.origin) ? 0 : -EINVAL;
	for (char *const *layer = request->fork.layers; r == 0 && *layer; layer++)
		r = push_layer(&staging->chain, *layer);
	if (r == 0)
		r = session_path(request->state_dir, request->fork.origin, STAGE_DIRECTORY, path, sizeof path);
	if (r == 0)
		r = stage_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = stage_record_load(stage_fd, &staging->origin);
	if (r == 0)
		return 0;
	err_set(err, ERR_STATE, -r, "stage", "the staged changes of session %s cannot be read: %s", request->fork.origin,
		err_errno_name(-r));
	err_hint(err, "atoll ps -a lists the sessions");
	return r;
}

bool staging_owner(const struct staging *staging, uid_t *ret_uid, gid_t *ret_gid)
{
	if (!staging->origin.tree_count)
		return false;
	*ret_uid = staging->origin.trees[0].jail_uid;
	*ret_gid = staging->origin.trees[0].jail_gid;
	return true;
}

static int add_masks(const struct staging *staging, const struct plan *plan, size_t index, int host_fd,
		     struct err *err)
{
	struct stage_mask mask = {
		.stage_fd = staging->stage_fd,
		.form = staging->record.form,
		.tree_index = index,
		.tree = &staging->record.trees[index],
		.host_fd = host_fd,
	};
	size_t count;
	const struct plan_mask *masks = plan_masks(plan, &count);

	for (size_t i = 0; i < count; i++) {
		int r;

		mask.content = masks[i].content;
		mask.content_size = masks[i].content_size;
		r = masks[i].tree == index ? stage_mask_add(&mask, masks[i].path, masks[i].kind, err) : 0;

		/*
		 * The path leads through a link, and the policy holds the real one as well (lang/resolve/finish.c), or
		 * through a file, below which nothing is.
		 */
		if (r < 0 && r != -ELOOP && r != -ENOTDIR)
			return r;
	}
	err->code = ERR_NONE;
	return 0;
}

static int make_tree(struct staging *staging, const struct staging_input *input, const struct plan_tree *tree,
		     struct err *err)
{
	cleanup_fd int host_fd = path_open2(AT_FDCWD, tree->path, O_RDONLY | O_DIRECTORY, 0,
					    RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	struct stage_tree ids = { .jail_uid = input->host_uid, .jail_gid = input->host_gid };
	struct stat st;
	int index, r;

	if (host_fd < 0 || fstat(host_fd, &st) < 0) {
		r = host_fd < 0 ? host_fd : -errno;
		return err_set(err, ERR_STATE, -r, "stage", "cannot open %s (%s): %s", tree->path, tree->rule,
			       err_errno_name(-r));
	}
	/* As a user the sandbox is who the user is; as root it stands for the owner of the tree. */
	ids.owner_uid = input->run_as_root ? st.st_uid : input->host_uid;
	ids.owner_gid = input->run_as_root ? st.st_gid : input->host_gid;
	/* fuse-overlayfs works as the owner: what it leaves in the layers is his. */
	if (input->by_fuse) {
		ids.jail_uid = ids.owner_uid;
		ids.jail_gid = ids.owner_gid;
	}
	index = stage_record_add_tree(&staging->record, host_fd, tree->path, &ids);
	if (index < 0)
		return err_set(err, ERR_STATE, -index, "stage", "cannot record %s: %s", tree->path,
			       err_errno_name(-index));
	if (staging->origin.tree_count) {
		const struct stage_tree *origin = &staging->origin.trees[index];

		if (!stage_tree_is(origin, &staging->record.trees[index])) {
			err_set(err, ERR_STATE, ESTALE, "stage", "%s is another directory than session %s staged",
				tree->path, staging->origin.session);
			err_hint(err, "move the staged directory back to its place");
			return -ESTALE;
		}
	}
	r = stage_live_make(staging->stage_fd, (size_t)index, &staging->record.trees[index], host_fd, err);
	return r < 0 || !tree->mask_count ? r : add_masks(staging, input->plan, (size_t)index, host_fd, err);
}

static void tell_parted(const struct run_request *request, uint64_t parted)
{
	char memory[200];
	struct buf out;

	buf_init_fixed(&out, memory, sizeof memory);
	buf_printf(&out, "atoll: the hard links of %llu staged file%s cannot be kept: too much to copy\n",
		   (unsigned long long)parted, parted == 1 ? "" : "s");
	run_request_tell(request, &out);
}

/* Before the overlays are mounted: afterwards nobody but the kernel writes to an upper. */
static int keep_linked(struct staging *staging, const struct staging_input *input, struct err *err)
{
	cleanup_fd int sessions_fd = fd_open_at(input->session_fd, "..", O_RDONLY | O_DIRECTORY, 0);
	int r = sessions_fd;

	if (r >= 0 && !stage_linked_is_noted(sessions_fd, &staging->chain))
		return 0;
	if (r >= 0)
		r = stage_query(input->request, "relink", RELINK_MS, &staging->linked, sizeof staging->linked);
	if (r == 0 && staging->linked.parted)
		tell_parted(input->request, staging->linked.parted);
	if (r == 0)
		return 0;
	err_set(err, ERR_STATE, -r, "stage", "hard links that session %s made cannot be kept: %s",
		staging->origin.session, err_errno_name(-r));
	err_hint(err, "free some space below %s", input->request->state_dir);
	return r;
}

void staging_note_link(struct staging *staging)
{
	if (staging->stage_fd < 0 || staging->is_linked)
		return;
	/* Of the file call before this one. */
	identity_return();
	staging->is_linked = stage_linked_note(staging->stage_fd) == 0;
}

static int fail_to_make(const struct run_request *request, int r, struct err *err)
{
	err_set(err, ERR_STATE, -r, "stage", "the stage directory cannot be made: %s", err_errno_name(-r));
	if (r == -ENOSPC || r == -EDQUOT)
		err_hint(err, "free some space below %s", request->state_dir);
	return r;
}

int staging_make(struct staging *staging, const struct staging_input *input, struct err *err)
{
	size_t count;
	const struct plan_tree *trees = plan_trees(input->plan, &count);
	int r;

	if (!count)
		return 0;
	r = mkdirat(input->session_fd, STAGE_DIRECTORY, 0700) < 0 ? -errno : 0;
	if (r == 0)
		r = staging->stage_fd = fd_open_at(input->session_fd, STAGE_DIRECTORY,
						   O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r < 0)
		return fail_to_make(input->request, r, err);
	staging->record.form = input->by_fuse ? STAGE_FORM_FUSE : STAGE_FORM_OVERLAY;
	for (size_t i = 0; i < count; i++) {
		r = make_tree(staging, input, &trees[i], err);
		if (r < 0)
			return r;
	}
	r = input->request->parking ? stage_record_prepare(staging->stage_fd) : 0;
	return r < 0 ? fail_to_make(input->request, r, err) : 0;
}

/* T0 and the name of whose start counts. */
static int begin_record(struct staging *staging, const char *session)
{
	const struct stage_record *origin = &staging->origin;
	struct stage_record *record = &staging->record;
	int r = str_copy(record->session, sizeof record->session, session);

	if (r < 0 || !origin->tree_count) {
		if (r == 0)
			r = str_copy(record->origin, sizeof record->origin, session);
		return r < 0 ? r : stage_record_set_start(record, staging->stage_fd);
	}
	memcpy(record->origin, origin->origin, sizeof record->origin);
	memcpy(record->boot_id, origin->boot_id, sizeof record->boot_id);
	record->started_realtime_ns = origin->started_realtime_ns;
	record->started_boottime_ns = origin->started_boottime_ns;
	return 0;
}

int staging_begin(struct staging *staging, const struct staging_input *input, struct err *err)
{
	int r;

	if (staging->stage_fd < 0)
		return 0;
	r = begin_record(staging, input->request->session);
	if (r < 0)
		return fail_to_make(input->request, r, err);
	r = stage_record_create(staging->stage_fd, &staging->record);
	if (r == 0 && staging->chain.count)
		r = stage_chain_store(staging->stage_fd, STAGE_FILE_CHAIN, &staging->chain);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "stage", "the record of what is staged cannot be written: %s",
			       err_errno_name(-r));
	return staging->chain.count ? keep_linked(staging, input, err) : 0;
}

void staging_explain(const struct plan *plan, bool run_as_root, struct err *err)
{
	size_t count;
	const struct plan_tree *trees = plan_trees(plan, &count);

	for (size_t i = 0; !run_as_root && i < count && err->errnum == EINVAL; i++) {
		char **points;

		if (mount_points_below(trees[i].path, &points) < 0)
			return;
		if (points[0]) {
			err_set(err, ERR_WALL, EINVAL, wall_names[WALL_MOUNTS],
				"%s (%s) cannot be staged by a user, because %s is mounted in it", trees[i].path,
				trees[i].rule, points[0]);
			err_hint(err,
				 "unmount it, stage only directories beside it, write the tree in place "
				 "(`files.write`), have fuse-overlayfs stage it (`stage: {backend: auto}`), or run "
				 "atoll as root, which stages what is mounted there too");
		}
		strv_free(points);
	}
}
