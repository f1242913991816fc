/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. A bind mount starts as a detached copy of the host's tree that gets all its attributes before
 * it is attached anywhere. As a user, the child makes it in its own mount namespace. As root the child
 * is nobody on the host and could not even reach the source, so the parent makes all trees before clone and the
 * child inherits the fds. Trees whose owner the sandbox's user shall be are idmapped: their owner's files appear as,
 * and what the sandbox writes is written as, one uid; every other uid of the tree is nobody there.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "jail/job.h"
#include "os/clone.h"
#include "os/mount.h"
#include "os/path.h"

static const char *rule_of(const struct jail_mount *mount)
{
	return mount->rule ? mount->rule : "?";
}

static uint64_t tree_attributes(const struct jail_mount *mount)
{
	uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

	if (mount->flags & (JAIL_RDONLY | JAIL_AGENT_APPEND))
		attributes |= MOUNT_ATTR_RDONLY;
	if (mount->flags & JAIL_NOEXEC)
		attributes |= MOUNT_ATTR_NOEXEC;
	return attributes;
}

static int seal_failed(const struct jail_mount *mount, int r, int idmap_fd, struct err *err)
{
	err_set(err, ERR_WALL, -r, wall_names[WALL_MOUNTS], "cannot restrict the mount of %s (%s): %s", mount->source,
		rule_of(mount), err_errno_name(-r));
	if (r == -ENOSYS)
		err_hint(err, "Linux 5.12 or newer is needed");
	else if (idmap_fd >= 0)
		err_hint(err, "its file system cannot be idmapped, which a sandbox of root needs for trees that are written: "
			      "move it to ext4, xfs, btrfs or tmpfs, or run atoll as the owner of the tree");
	return r;
}

int source_tree(const struct jail_mount *mount, int idmap_fd, struct err *err)
{
	cleanup_fd int source = path_open_anchor(mount->source);
	cleanup_fd int tree = FD_NONE;
	struct stat st;
	int r;

	if (source < 0) {
		if (mount->flags & JAIL_OPTIONAL && (source == -ENOENT || source == -ENOTDIR || source == -EACCES))
			return -ENOENT;
		return err_set(err, ERR_WALL, -source, wall_names[WALL_MOUNTS], "cannot open %s (%s): %s", mount->source,
			       rule_of(mount), err_errno_name(-source));
	}
	if (mount->kind == JAIL_DEVICE && (fstat(source, &st) < 0 || !S_ISCHR(st.st_mode)))
		return err_set(err, ERR_WALL, ENODEV, wall_names[WALL_MOUNTS], "%s (%s) is no character device", mount->source,
			       rule_of(mount));
	tree = mount_clone(source, "", mount->kind == JAIL_BIND);
	if (tree < 0)
		return err_set(err, ERR_WALL, -tree, wall_names[WALL_MOUNTS], "cannot take %s (%s): %s", mount->source,
			       rule_of(mount), err_errno_name(-tree));
	/* On a device node ro, nosuid and noexec mean nothing, and nodev would make it useless. */
	if (mount->kind == JAIL_DEVICE)
		return take_fd(&tree);
	r = mount_seal(tree, true, tree_attributes(mount) | (idmap_fd >= 0 ? MOUNT_ATTR_IDMAP : 0), idmap_fd);
	return r < 0 ? seal_failed(mount, r, idmap_fd, err) : take_fd(&tree);
}

/* User namespaces for idmaps: nearly always one, because nearly always one person owns all trees. */
struct idmaps {
	struct { uid_t uid; gid_t gid; int fd; } entries[8];
	size_t count;
};

static void idmaps_done(struct idmaps *idmaps)
{
	for (size_t i = 0; i < idmaps->count; i++)
		close(idmaps->entries[i].fd);
}

static int idmap_for(struct idmaps *idmaps, const struct jail_spec *spec, const struct jail_mount *mount,
		     struct err *err)
{
	struct clone_ids ids = { .host_uid = spec->host_uid, .host_gid = spec->host_gid };
	struct stat st;
	int fd;

	/* A source that does not exist is source_tree()'s to judge. */
	if (stat(mount->source, &st) < 0)
		return FD_NONE;
	for (size_t i = 0; i < idmaps->count; i++)
		if (idmaps->entries[i].uid == st.st_uid && idmaps->entries[i].gid == st.st_gid)
			return idmaps->entries[i].fd;
	if (idmaps->count == ARRAY_SIZE(idmaps->entries))
		return err_set(err, ERR_WALL, E2BIG, wall_names[WALL_MOUNTS], "the trees have more than %zu different owners",
			       ARRAY_SIZE(idmaps->entries));
	ids.uid = st.st_uid;
	ids.gid = st.st_gid;
	fd = clone_user_namespace(&ids);
	if (fd < 0)
		return err_set(err, ERR_WALL, -fd, wall_names[WALL_USERNS], "cannot make an id map for %s (%s): %s",
			       mount->source, rule_of(mount), err_errno_name(-fd));
	idmaps->entries[idmaps->count].uid = st.st_uid;
	idmaps->entries[idmaps->count].gid = st.st_gid;
	return idmaps->entries[idmaps->count++].fd = fd;
}

static int open_one(struct idmaps *idmaps, const struct jail_spec *spec, const struct jail_mount *mount, struct err *err)
{
	int idmap_fd = FD_NONE, tree;

	if (mount->kind != JAIL_BIND && mount->kind != JAIL_DEVICE)
		return FD_NONE;
	if (mount->flags & (JAIL_OWNED | JAIL_AGENT_APPEND)) {
		idmap_fd = idmap_for(idmaps, spec, mount, err);
		if (idmap_fd < 0 && idmap_fd != FD_NONE)
			return idmap_fd;
	}
	tree = source_tree(mount, idmap_fd, err);
	return tree == -ENOENT && mount->flags & JAIL_OPTIONAL ? FD_NONE : tree;
}

int sources_open(const struct jail_spec *spec, int **ret_trees, struct err *err)
{
	struct idmaps idmaps = { .count = 0 };
	int *trees = malloc((spec->mount_count + 1) * sizeof *trees);
	int r = 0;

	if (!trees)
		return err_set(err, ERR_INTERNAL, ENOMEM, "jail", "out of memory");
	for (size_t i = 0; i < spec->mount_count; i++)
		trees[i] = FD_NONE;
	for (size_t i = 0; r == 0 && i < spec->mount_count; i++) {
		trees[i] = open_one(&idmaps, spec, &spec->mounts[i], err);
		if (trees[i] < 0 && trees[i] != FD_NONE)
			r = trees[i];
	}
	idmaps_done(&idmaps);
	if (r < 0) {
		sources_free(trees, spec->mount_count);
		return r;
	}
	*ret_trees = trees;
	return 0;
}

void sources_free(int *trees, size_t count)
{
	for (size_t i = 0; trees && i < count; i++)
		if (trees[i] >= 0)
			close(trees[i]);
	free(trees);
}
