/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/snapshot/gc.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/remove.h"
#include "stage/record/names.h"
#include "stage/record/store.h"
#include "stage/record/use.h"
#include "stage/snapshot/lock.h"

enum { NAMES_MAX = 1 << 22, REFERENCES_MAX = 1 << 24, NS_PER_S = 1000000000 };

static int add_chain(struct stage_references *references, const char *owner, const struct stage_chain *chain)
{
	for (size_t i = 0; i < chain->count; i++) {
		struct stage_reference *item;

		if (references->count == references->capacity) {
			size_t grown = references->capacity ? 2 * references->capacity : 256;
			void *items = grown > REFERENCES_MAX ? NULL : realloc(references->items, grown * sizeof *item);

			if (!items)
				return -ENOMEM;
			references->items = items;
			references->capacity = grown;
		}
		item = &references->items[references->count++];
		item->layer = chain->layers[i];
		if (str_copy(item->owner, sizeof item->owner, owner) < 0)
			return -EINVAL;
	}
	return 0;
}

static int add_snapshots(struct stage_references *references, const char *owner, int stage_fd)
{
	cleanup_fd int fd = fd_open_at(stage_fd, STAGE_DIRECTORY_SNAPSHOTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	struct stage_names names = { 0 };
	int r = fd;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = stage_names_read(&names, &(struct stage_names_source){ .dir_fd = fd }, NAMES_MAX);
	for (size_t i = 0; r == 0 && i < names.count; i++) {
		const char *name = stage_names_get(&names, i);
		struct stage_chain chain;

		/* Written by nobody to its end, and named by nobody. */
		if (strstr(name, ".tmp."))
			continue;
		r = stage_chain_load(fd, name, false, &chain);
		if (r == 0)
			r = add_chain(references, owner, &chain);
		else if (r == -ENOENT) /* thinned out meanwhile */
			r = 0;
	}
	stage_names_done(&names);
	return r;
}

static int open_stage(int sessions_fd, const char *session)
{
	char path[SESSION_ID_SIZE + sizeof "/" STAGE_DIRECTORY];
	int r = str_format(path, sizeof path, "%s/" STAGE_DIRECTORY, session);

	return r < 0 ? r : path_open2(sessions_fd, path, O_RDONLY | O_DIRECTORY, 0, STAGE_RESOLVE_BENEATH);
}

static int add_session(struct stage_references *references, int sessions_fd, const char *session)
{
	cleanup_fd int stage_fd = open_stage(sessions_fd, session);
	struct stage_chain chain;
	int r;

	if (stage_fd < 0)
		return stage_fd == -ENOENT || stage_fd == -ENOTDIR ? 0 : stage_fd;
	r = stage_chain_load(stage_fd, STAGE_FILE_CHAIN, true, &chain);
	if (r == 0)
		r = add_chain(references, session, &chain);
	return r < 0 ? r : add_snapshots(references, session, stage_fd);
}

int stage_references_load(int sessions_fd, struct stage_references *ret_references, struct err *err)
{
	struct stage_references references = { 0 };
	cleanup_fd int fd = fd_open_at(sessions_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	struct stage_names names = { 0 };
	const struct stage_names_source from = { .dir_fd = fd };
	int r = fd < 0 ? fd : stage_names_read(&names, &from, STAGE_GC_SESSIONS_MAX);

	for (size_t i = 0; r == 0 && i < names.count; i++) {
		const char *session = stage_names_get(&names, i);

		if (!stage_session_is_valid(session))
			continue;
		r = add_session(&references, sessions_fd, session);
		if (r == -ENOMEM)
			break;
		/* It may name anything. */
		if (r < 0)
			r = str_copy(references.unreadable, sizeof references.unreadable, session);
	}
	stage_names_done(&names);
	/* What is removed because of what was read now must not be named again after a power cut. */
	if (r == 0 && syncfs(sessions_fd) < 0)
		r = -errno;
	if (r < 0) {
		stage_references_done(&references);
		return err_set(err, ERR_STATE, -r, "gc", "the sessions cannot be read: %s", err_errno_name(-r));
	}
	*ret_references = references;
	return 0;
}

void stage_references_done(struct stage_references *references)
{
	free(references->items);
	*references = (struct stage_references){ 0 };
}

const char *stage_references_user(const struct stage_references *references, const char *session)
{
	for (size_t i = 0; i < references->count; i++)
		if (str_equal(references->items[i].layer.session, session) &&
		    !str_equal(references->items[i].owner, session))
			return references->items[i].owner;
	return NULL;
}

void stage_references_forget(struct stage_references *references, const char *session)
{
	size_t kept = 0;

	for (size_t i = 0; i < references->count; i++)
		if (!str_equal(references->items[i].owner, session))
			references->items[kept++] = references->items[i];
	references->count = kept;
}

static bool is_named(const struct stage_references *references, const char *session, uint64_t number)
{
	for (size_t i = 0; i < references->count; i++)
		if (references->items[i].layer.number == number &&
		    str_equal(references->items[i].layer.session, session))
			return true;
	return false;
}

bool stage_gc_is_touched(int sessions_fd, const char *session)
{
	cleanup_fd int stage_fd = open_stage(sessions_fd, session);
	uint64_t now_s = clock_realtime_ns() / NS_PER_S;
	struct stat st;

	if (stage_fd < 0 || fstatat(stage_fd, STAGE_FILE_LOCK, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	/* A clock that went back leaves it alone for longer. */
	return (uint64_t)st.st_mtime + STAGE_GC_GRACE_S > now_s;
}

static int remove_unnamed(int layers_fd, const char *name, bool dry_run, uint64_t *ret_layers, uint64_t *ret_bytes)
{
	int r = dry_run ? 0 : stage_remove_tree(layers_fd, name, ret_bytes);

	if (r == 0)
		++*ret_layers;
	return r;
}

int stage_gc_layers(int sessions_fd, const char *session, const struct stage_references *references, bool dry_run,
		    uint64_t *ret_layers, uint64_t *ret_bytes)
{
	cleanup_fd int stage_fd = open_stage(sessions_fd, session), layers_fd = FD_NONE;
	cleanup_stage_references struct stage_references own = { 0 };
	struct stage_names names = { 0 };
	int r = 0;

	if (stage_fd == -ENOENT || stage_fd == -ENOTDIR || *references->unreadable ||
	    stage_gc_is_touched(sessions_fd, session))
		return 0;
	if (stage_fd < 0)
		return stage_fd;
	/* Sealed or named between the reading of all and the caller's lock: another session says so by touching it. */
	r = add_session(&own, sessions_fd, session);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	layers_fd = fd_open_at(stage_fd, STAGE_DIRECTORY_LAYERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (layers_fd < 0)
		return layers_fd == -ENOENT ? 0 : layers_fd;
	r = stage_names_read(&names, &(struct stage_names_source){ .dir_fd = layers_fd }, NAMES_MAX);
	for (size_t i = 0; r == 0 && i < names.count; i++) {
		char name[32];
		uint64_t number;

		/* N, and N.gone of a removal that was cut off. */
		if (str_copy(name, sizeof name, stage_names_get(&names, i)) < 0)
			continue;
		if (str_has_suffix(name, ".gone"))
			name[strlen(name) - strlen(".gone")] = 0;
		if (num_parse_u64(name, &number) == 0 && !is_named(references, session, number) &&
		    !is_named(&own, session, number))
			r = remove_unnamed(layers_fd, name, dry_run, ret_layers, ret_bytes);
	}
	stage_names_done(&names);
	return r;
}

/* FD_NONE: there is none. */
static int open_of_session(int sessions_fd, const char *session, const char *name)
{
	char path[SESSION_ID_SIZE + 32];
	int r = str_format(path, sizeof path, "%s/%s", session, name);

	if (r == 0)
		r = fd_open_at(sessions_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	return r == -ENOENT || r == -ENOTDIR ? FD_NONE : r;
}

int stage_gc_claim(int sessions_fd, const char *session, int *ret_box_fd, int *ret_stage_fd)
{
	int r = FD_NONE;

	if (ret_box_fd)
		r = *ret_box_fd = open_of_session(sessions_fd, session, STAGE_BOX_LOCK);
	if (r >= 0)
		r = fd_lock_within(*ret_box_fd, LOCK_EX, 0);
	if (r < 0 && r != FD_NONE)
		return r;
	r = *ret_stage_fd = open_of_session(sessions_fd, session, STAGE_DIRECTORY);
	return r < 0 ? (r == FD_NONE ? 0 : r) : stage_claim(*ret_stage_fd, 0);
}

bool stage_gc_has_layers(int sessions_fd, const char *session)
{
	cleanup_fd int fd = open_of_session(sessions_fd, session, STAGE_DIRECTORY "/" STAGE_DIRECTORY_LAYERS);

	return fd != FD_NONE;
}

int stage_gc_session(int sessions_fd, const char *session, uint64_t *ret_bytes)
{
	return stage_session_is_valid(session) ? stage_remove_tree(sessions_fd, session, ret_bytes) : -EINVAL;
}
