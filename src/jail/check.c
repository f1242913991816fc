/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "jail/job.h"

static int refuse(const struct jail_mount *mount, struct err *err, const char *why)
{
	return err_set(err, ERR_INTERNAL, EINVAL, "spec", "mount %s (%s): %s", mount->target ? mount->target : "?",
		       mount->rule ? mount->rule : "?", why);
}

static bool is_normal(const char *path)
{
	char normal[PATH_MAX];

	return path && path_normalise(normal, sizeof normal, path) == 0 && str_equal(normal, path);
}

static int check_mount(const struct jail_mount *mount, struct err *err)
{
	bool has_source = mount->kind == JAIL_BIND || mount->kind == JAIL_DEVICE;

	if ((unsigned)mount->kind >= JAIL_MOUNT_KIND_COUNT)
		return refuse(mount, err, "no such kind of mount");
	if (!is_normal(mount->target))
		return refuse(mount, err, "the target is not an absolute, normalised path");
	if (str_equal(mount->target, "/"))
		return refuse(mount, err, "the root itself cannot be a mount");
	if (has_source && (!mount->source || mount->source[0] != '/'))
		return refuse(mount, err, "the source is not an absolute path");
	if (!has_source && mount->source)
		return refuse(mount, err, "only binds and devices have a source");
	if (mount->kind == JAIL_FILE && !mount->content && mount->content_size)
		return refuse(mount, err, "a file needs content");
	if (mount->kind == JAIL_SYMLINK &&
	    (!mount->content || !mount->content_size || mount->content_size >= PATH_MAX ||
	     memchr(mount->content, 0, mount->content_size)))
		return refuse(mount, err, "a link needs a text");
	if (mount->flags & JAIL_OWNED && mount->kind != JAIL_BIND)
		return refuse(mount, err, "only binds have an owner");
	return 0;
}

/* What lies inside a file, a link, a device, /proc or a mask cannot be mounted on. */
static bool can_have_children(enum jail_mount_kind kind)
{
	return kind == JAIL_BIND || kind == JAIL_TMPFS || kind == JAIL_DIRECTORY || kind == JAIL_DEV;
}

static int check_order(const struct jail_spec *spec, size_t index, struct err *err)
{
	const struct jail_mount *mount = &spec->mounts[index];

	for (size_t i = 0; i < spec->mount_count; i++) {
		const struct jail_mount *other = &spec->mounts[i];

		if (i == index || str_equal(mount->target, other->target) || !other->target ||
		    !path_is_below(mount->target, other->target))
			continue;
		/* A mask inside a mask hides nothing more, and costs nothing: it is skipped. */
		if (mount->kind == JAIL_MASK)
			continue;
		if (!can_have_children(other->kind))
			return refuse(mount, err, "it lies inside something that is no directory");
		if (i > index)
			return refuse(mount, err, "it would be covered by a mount that comes later");
	}
	return 0;
}

int jail_spec_check(const struct jail_spec *spec, struct err *err)
{
	if (!spec->hostname || !*spec->hostname || strlen(spec->hostname) > 64)
		return err_set(err, ERR_INTERNAL, EINVAL, "spec", "the host name must have 1 to 64 bytes");
	if ((unsigned)spec->seccomp >= JAIL_SECCOMP_COUNT || spec->init_fd < 0 || spec->wire_fd < 0)
		return err_set(err, ERR_INTERNAL, EINVAL, "spec", "profile, init or wire is missing");
	if (spec->run_as_root && (spec->host_uid == 0 || spec->host_gid == 0))
		return err_set(err, ERR_INTERNAL, EINVAL, "spec",
			       "the sandbox of root must not run as the host's root");
	for (size_t i = 0; i < spec->mount_count; i++) {
		int r = check_mount(&spec->mounts[i], err);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < spec->mount_count; i++) {
		int r = check_order(spec, i, err);

		if (r < 0)
			return r;
	}
	return 0;
}
