/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. A bind mount starts as a detached copy of the host's tree that gets all its attributes before
 * it is attached anywhere. As a user, the child makes it in its own mount namespace. As root the child is nobody on
 * the host and could not even reach the source, so the parent makes the trees, in the order of the spec, while the
 * child is still busy with what needs none, and the child gets the fds through the socket. Trees whose owner the
 * sandbox's user shall be are idmapped: their owner's files appear as, and what the sandbox writes is written as, one
 * uid; every other uid of the tree is nobody there.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "base/str.h"
#include "jail/job.h"
#include "os/clone.h"
#include "os/fd.h"
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
		err_hint(err,
			 "its file system cannot be idmapped, which a sandbox of root needs for what it writes: "
			      "move it to ext4, xfs or btrfs (tmpfs: from Linux 6.3 on), or run atoll as the owner of "
			      "the tree");
	return r;
}

/* A link behind the trusted part is -ELOOP. */
static int open_untrusted(const struct jail_mount *mount)
{
	const char *rest = mount->source + mount->source_trusted;
	cleanup_fd int anchor = FD_NONE;
	char prefix[PATH_MAX];

	if (str_format(prefix, sizeof prefix, "%.*s", (int)mount->source_trusted, mount->source) < 0)
		return -ENAMETOOLONG;
	anchor = path_open_anchor(prefix);
	if (anchor < 0)
		return anchor;
	rest += *rest == '/';
	return path_open2(anchor, rest, O_PATH, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

int source_open(const struct jail_mount *mount, struct err *err)
{
	int fd = mount->source_trusted ? open_untrusted(mount) : path_open_anchor(mount->source);

	if (fd >= 0)
		return fd;
	if (fd == -ELOOP && mount->source_trusted) {
		err_set(err, ERR_WALL, ELOOP, wall_names[WALL_MOUNTS],
			"%s (%s) is a symbolic link in a tree that the sandbox writes to, so it cannot be trusted",
			mount->source, rule_of(mount));
		err_hint(err, "look where it leads, then replace it by the real file or drop the rule");
		return -ELOOP;
	}
	if (mount->flags & JAIL_OPTIONAL && (fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES))
		return -ENOENT;
	err_set(err, ERR_WALL, -fd, wall_names[WALL_MOUNTS], "cannot open %s (%s): %s", mount->source, rule_of(mount),
		err_errno_name(-fd));
	if (fd == -ENOENT || fd == -ENOTDIR)
		err_hint(err, "make it, or write in the policy's rule that it is optional: {path: …, optional: true}");
	return fd == -ENOENT ? -ENXIO : fd;
}

/* The detached tree of an open source. */
static int take_tree(const struct jail_mount *mount, int source, int idmap_fd, struct err *err)
{
	cleanup_fd int tree = FD_NONE;
	struct stat st;
	int r;

	if (mount->kind == JAIL_DEVICE && (fstat(source, &st) < 0 || !S_ISCHR(st.st_mode)))
		return err_set(err, ERR_WALL, ENODEV, wall_names[WALL_MOUNTS], "%s (%s) is not a character device",
			       mount->source,
			       rule_of(mount));
	tree = mount_clone(source, "", mount->kind == JAIL_BIND);
	if (tree < 0)
		return err_set(err, ERR_WALL, -tree, wall_names[WALL_MOUNTS], "%s (%s) cannot be opened: "
									      "%s", mount->source,
			       rule_of(mount), err_errno_name(-tree));
	/* On a device node ro, nosuid and noexec mean nothing, and nodev would make it useless. */
	if (mount->kind == JAIL_DEVICE)
		return take_fd(&tree);
	r = mount_seal(tree, true, tree_attributes(mount) | (idmap_fd >= 0 ? MOUNT_ATTR_IDMAP : 0), idmap_fd);
	return r < 0 ? seal_failed(mount, r, idmap_fd, err) : take_fd(&tree);
}

int source_tree(const struct jail_mount *mount, struct err *err)
{
	cleanup_fd int source = source_open(mount, err);

	return source < 0 ? source : take_tree(mount, source, FD_NONE, err);
}

/* User namespaces for idmaps: nearly always one, because nearly always one person owns all trees. */
struct idmap {
	uid_t uid;
	gid_t gid;
	int fd;
	struct pidref holder; /* dead or dying, to be reaped */
};

struct idmaps {
	struct idmap entries[8];
	size_t count;
};

static void reap_holder(struct idmap *idmap)
{
	siginfo_t info;

	if (idmap->holder.fd >= 0)
		(void)!pidref_wait(&idmap->holder, WEXITED, &info, NULL);
	pidref_done(&idmap->holder);
}

static void idmaps_done(struct idmaps *idmaps)
{
	for (size_t i = 0; i < idmaps->count; i++) {
		close_fd(&idmaps->entries[i].fd);
		reap_holder(&idmaps->entries[i]);
	}
}

bool source_part(const struct jail_mount *mount, size_t index, struct jail_mount *ret_part)
{
	const struct jail_layers *layers = mount->layers;
	struct jail_mount part = { .kind = JAIL_OVERLAY, .target = mount->target, .rule = mount->rule };

	if (index == 0) {
		/* The host's own directory: no way leads from the overlay to writing it, and this is one more wall. */
		part.source = mount->source;
		part.source_trusted = mount->source_trusted;
		part.flags = mount->flags | JAIL_RDONLY;
	} else if (index == 1) {
		part.source = layers->live;
	} else if (index - 2 < layers->count) {
		part.source = layers->between[index - 2];
		part.flags = JAIL_RDONLY;
	} else {
		return false;
	}
	*ret_part = part;
	return true;
}

static int idmap_for(struct idmaps *idmaps, const struct jail_spec *spec, const struct jail_mount *mount, int source,
		     struct err *err)
{
	struct clone_ids ids = { .host_uid = spec->host_uid, .host_gid = spec->host_gid,
				 .others = CLONE_OTHERS_OF_FILES };
	struct idmap *entry;
	struct stat st;

	if (fstat(source, &st) < 0)
		return err_set(err, ERR_WALL, errno, wall_names[WALL_MOUNTS], "cannot look at %s: %s", mount->source,
			       err_errno_name(errno));
	for (size_t i = 0; i < idmaps->count; i++)
		if (idmaps->entries[i].uid == st.st_uid && idmaps->entries[i].gid == st.st_gid)
			return idmaps->entries[i].fd;
	if (idmaps->count == ARRAY_SIZE(idmaps->entries))
		return err_set(err, ERR_WALL, E2BIG, wall_names[WALL_MOUNTS],
			       "the trees have more than %zu different owners",
			       ARRAY_SIZE(idmaps->entries));
	ids.uid = st.st_uid;
	ids.gid = st.st_gid;
	if (idmaps->count)
		reap_holder(&idmaps->entries[idmaps->count - 1]);
	entry = &idmaps->entries[idmaps->count];
	*entry = (struct idmap){ .uid = st.st_uid, .gid = st.st_gid, .holder = PIDREF_NONE };
	entry->fd = clone_user_namespace(&ids, &entry->holder);
	/* Counted also where it failed: its process is to be reaped. */
	idmaps->count += entry->holder.pid > 0;
	return entry->fd >= 0 ? entry->fd :
				err_set(err, ERR_WALL, -entry->fd, wall_names[WALL_USERNS],
					"cannot make an id map for %s (%s): %s", mount->source, rule_of(mount),
					err_errno_name(-entry->fd));
}

/* Makes and sends one tree; a message without an fd says that an optional source is not there. */
static int send_one(const struct jail_job *job, struct idmaps *idmaps, const struct jail_mount *mount, struct err *err)
{
	cleanup_fd int source = source_open(mount, err);
	cleanup_fd int tree = FD_NONE;
	int idmap_fd = FD_NONE;
	ssize_t sent;

	if (source < 0 && source != -ENOENT)
		return source;
	if (source >= 0 && mount->flags & JAIL_OWNED) {
		idmap_fd = idmap_for(idmaps, job->spec, mount, source, err);
		if (idmap_fd < 0)
			return idmap_fd;
	}
	if (source >= 0) {
		tree = take_tree(mount, source, idmap_fd, err);
		if (tree < 0)
			return tree;
	}
	sent = fd_send_message(job->parent_socket, "t", 1, &tree, tree >= 0);
	if (sent == 1 || sent == -EPIPE || sent == -ECONNRESET)
		return sent == 1 ? 0 : 1; /* the child has closed its end: it has an error to tell */
	return err_set(err, ERR_INTERNAL, (int)-sent, "jail", "%s cannot be passed on: %s", mount->source,
		       err_errno_name((int)-sent));
}

static int send_parts(const struct jail_job *job, struct idmaps *idmaps, const struct jail_mount *mount,
		      struct err *err)
{
	struct jail_mount part;
	int r = 0;

	for (size_t i = 0; r == 0 && source_part(mount, i, &part); i++)
		r = send_one(job, idmaps, &part, err);
	return r;
}

int sources_make_late(struct jail_job *job, struct err *err)
{
	if (job->is_late_made || !job->spec->calls.late)
		return 0;
	job->is_late_made = true;
	return job->spec->calls.late(job->spec->calls.context, err);
}

int sources_send(struct jail_job *job, struct err *err)
{
	const struct jail_spec *spec = job->spec;
	struct idmaps idmaps = { .count = 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < spec->mount_count; i++) {
		if (spec->mounts[i].flags & JAIL_LATE)
			r = sources_make_late(job, err);
		if (r < 0)
			break;
		if (spec->mounts[i].kind == JAIL_BIND || spec->mounts[i].kind == JAIL_DEVICE)
			r = send_one(job, &idmaps, &spec->mounts[i], err);
		else if (spec->mounts[i].kind == JAIL_OVERLAY)
			r = send_parts(job, &idmaps, &spec->mounts[i], err);
	}
	idmaps_done(&idmaps);
	return r;
}

int source_receive(const struct jail_job *job, struct err *err)
{
	char byte;
	int fd = FD_NONE;
	size_t count;
	ssize_t size = fd_receive_message(job->child_socket, &byte, 1, &fd, 1, &count);

	if (size == 1)
		return count ? fd : -ENOENT;
	return err_set(err, ERR_INTERNAL, EPIPE, "jail", "the parent process has ended");
}
