/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Staged trees that a program outside of the sandbox makes, for where the kernel's overlay cannot be had. The file
 * system is mounted here, in the sandbox's own namespaces, since fuse takes its device only from the user namespace
 * that mounts it: so ids outside of the sandbox's mean nothing in it, whatever the server says. The device goes to the
 * parent before anything is mounted, because what is mounted below such a tree needs answers. The child keeps none:
 * when the server ends, its descriptor is the last, and whoever waits for it gets ENOTCONN.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "jail/root.h"
#include "os/fd.h"
#include "os/mount.h"

enum { NUMBER_SIZE = 24 };

static int new_fuse(const struct jail_job *job, const struct jail_mount *mount, int device)
{
	char fd[NUMBER_SIZE], uid[NUMBER_SIZE], gid[NUMBER_SIZE];
	/* The kernel judges by mode and owner, as in any tree; without allow_other no other uid gets an answer. */
	const struct mount_option options[] = {
		{ "fd", fd }, { "rootmode", "40000" }, { "user_id", uid }, { "group_id", gid },
		{ "default_permissions", NULL },
	};
	uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			      (mount->flags & JAIL_NOEXEC ? MOUNT_ATTR_NOEXEC : 0);
	int r = root_format_number(fd, sizeof fd, (uint64_t)device);

	if (r == 0)
		r = root_format_number(uid, sizeof uid, job->spec->uid);
	if (r == 0)
		r = root_format_number(gid, sizeof gid, job->spec->gid);
	return r < 0 ? r : mount_new("fuse", options, ARRAY_SIZE(options), attributes);
}

static int fail(const struct jail_mount *mount, int r, const char *what, struct err *err)
{
	err_set(err, ERR_WALL, -r, wall_names[WALL_MOUNTS], "cannot stage %s (%s) with fuse-overlayfs: %s: %s",
		mount->source, mount->rule ? mount->rule : "?", what, err_errno_name(-r));
	err_hint(err,
		 "it needs /dev/fuse, open to every user (mode 0666, in a container `--device /dev/fuse`); or point "
		 "XDG_STATE_HOME at ext4, xfs, btrfs or tmpfs and take `stage: {backend: overlay}`");
	return r;
}

static int make_one(struct jail_job *job, const struct jail_mount *mount, struct err *err)
{
	cleanup_fd int device = fd_open_at(AT_FDCWD, "/dev/fuse", O_RDWR, 0);
	cleanup_fd int tree = FD_NONE;
	ssize_t size;

	if (device < 0)
		return fail(mount, device, "/dev/fuse", err);
	tree = new_fuse(job, mount, device);
	if (tree < 0)
		return fail(mount, tree, "mount", err);
	size = fd_send_message(job->child_socket, "f", 1, &device, 1);
	if (size < 0)
		return fail(mount, (int)size, "the device", err);
	job->served[job->served_count++] = take_fd(&tree);
	return 0;
}

int child_fuse(struct jail_job *job, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < job->spec->mount_count; i++)
		if (job->spec->mounts[i].kind == JAIL_FUSE)
			r = make_one(job, &job->spec->mounts[i], err);
	return r;
}

static int receive_one(struct jail_job *job, const struct jail_mount *mount, struct err *err)
{
	cleanup_fd int device = FD_NONE;
	struct err told;
	size_t count = 0;
	ssize_t size = fd_receive_message(job->parent_socket, &told, sizeof told, &device, 1, &count);

	if (size == sizeof told && !count)
		return child_error(&told, err);
	if (size != 1 || count != 1)
		return err_set(err, ERR_INTERNAL, size < 0 ? (int)-size : ECHILD, "jail",
			       "the sandbox's first process died while the jail was built");
	return job->spec->calls.serve(job->spec->calls.context, mount, device, err);
}

int fuse_receive(struct jail_job *job, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < job->spec->mount_count; i++)
		if (job->spec->mounts[i].kind == JAIL_FUSE)
			r = receive_one(job, &job->spec->mounts[i], err);
	return r;
}

int root_mount_fuse(struct root *root, const struct jail_mount *mount)
{
	struct jail_job *job = root->job;
	cleanup_fd int tree = job->served[job->served_next++];

	/* The first question to the server: it is asked where its silence can still be told. */
	if (root_is_directory(tree) != 1)
		return fail(mount, -ENOTCONN, "fuse-overlayfs has ended at its start", root->err);
	return root_attach(root, mount, tree,
			   ROOT_READ | ROOT_WRITE | (mount->flags & JAIL_NOEXEC ? 0 : LANDLOCK_EXECUTE));
}
