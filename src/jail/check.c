/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "jail/job.h"

static int refuse(const struct jail_mount *mount, struct err *err, const char *why)
{
	return err_set(err, ERR_INTERNAL, EINVAL, "spec", "mount %s (%s): %s",
		       mount->target ? mount->target : "?", mount->rule ? mount->rule : "?", why);
}

static bool is_normal(const char *path)
{
	char normal[PATH_MAX];

	return path && path_normalise(normal, sizeof normal, path) == 0 && str_equal(normal, path);
}

/* Below a directory, and not that directory itself. */
static bool is_normal_below(const char *path)
{
	char absolute[PATH_MAX];

	return *path && str_format(absolute, sizeof absolute, "/%s", path) == 0 && is_normal(absolute);
}

static int check_layers(const struct jail_mount *mount, struct err *err)
{
	const struct jail_layers *layers = mount->layers;

	if ((mount->kind == JAIL_OVERLAY || mount->kind == JAIL_FUSE) != (layers != NULL))
		return refuse(mount, err, "a staged tree, and nothing else, has layers");
	if (!layers)
		return 0;
	if (mount->flags & (JAIL_RDONLY | JAIL_OPTIONAL | JAIL_AGENT_APPEND))
		return refuse(mount, err, "a staged tree is there and can be written");
	if (layers->count > JAIL_LAYERS_MAX)
		return refuse(mount, err, "a staged tree has too many layers");
	if (!is_normal(layers->live))
		return refuse(mount, err, "the live layer is not an absolute, normalised path");
	for (size_t i = 0; i < layers->count; i++)
		if (!is_normal(layers->between[i]))
			return refuse(mount, err, "a layer is not an absolute, normalised path");
	if (layers->hidden && !is_normal_below(layers->hidden))
		return refuse(mount, err, "what is hidden of a staged tree is not a relative, normalised path");
	return 0;
}

static int check_mount(const struct jail_mount *mount, struct err *err)
{
	bool has_source = mount->kind == JAIL_BIND || mount->kind == JAIL_DEVICE || mount->layers;

	if ((unsigned)mount->kind >= JAIL_MOUNT_KIND_COUNT)
		return refuse(mount, err, "no such kind of mount");
	if (!is_normal(mount->target))
		return refuse(mount, err, "the target is not an absolute, normalised path");
	if (str_equal(mount->target, "/"))
		return refuse(mount, err, "the root itself cannot be a mount");
	if (has_source && (!mount->source || mount->source[0] != '/'))
		return refuse(mount, err, "the source is not an absolute path");
	if (!has_source && mount->source)
		return refuse(mount, err, "only binds, staged trees and devices have a source");
	if (mount->kind == JAIL_FILE && !mount->content && mount->content_size)
		return refuse(mount, err, "a file needs content");
	if (mount->kind == JAIL_SYMLINK &&
	    (!mount->content || !mount->content_size || mount->content_size >= PATH_MAX ||
	     memchr(mount->content, 0, mount->content_size)))
		return refuse(mount, err, "a link needs a text");
	if (mount->flags & JAIL_OWNED && mount->kind != JAIL_BIND && !mount->layers)
		return refuse(mount, err, "only binds and staged trees have an owner");
	if (mount->flags & (JAIL_LAYERED | JAIL_SPREAD) && (mount->kind != JAIL_BIND || !(mount->flags & JAIL_RDONLY)))
		return refuse(mount, err, "only a read-only bind takes names into a layer");
	return check_layers(mount, err);
}

/* What lies inside a file, a link, a device, /proc or a mask cannot be mounted on. */
static bool can_have_children(enum jail_mount_kind kind)
{
	return kind == JAIL_BIND || kind == JAIL_TMPFS || kind == JAIL_DIRECTORY || kind == JAIL_DEV ||
	       kind == JAIL_OVERLAY || kind == JAIL_FUSE;
}

/*
 * Whether another target is a directory above this one. Every pair is asked at every start, so the answer is
 * nearly always found by one byte.
 */
static bool is_inside(const struct jail_mount *mount, size_t length, const struct jail_mount *other,
		      size_t other_length)
{
	return other_length < length && mount->target[other_length] == '/' &&
	       memcmp(mount->target, other->target, other_length) == 0;
}

static int check_order(const struct jail_spec *spec, const size_t *lengths, size_t index, struct err *err)
{
	const struct jail_mount *mount = &spec->mounts[index];

	/* A mask inside a mask hides nothing more, and costs nothing: it is skipped. */
	if (mount->kind == JAIL_MASK)
		return 0;
	for (size_t i = 0; i < spec->mount_count; i++) {
		const struct jail_mount *other = &spec->mounts[i];

		if (!is_inside(mount, lengths[index], other, lengths[i]))
			continue;
		if (!can_have_children(other->kind))
			return refuse(mount, err, "it lies inside something that is no directory");
		if (i > index)
			return refuse(mount, err, "it would be covered by a mount that comes later");
	}
	return 0;
}

static int check_mounts(const struct jail_spec *spec, struct err *err)
{
	cleanup_free size_t *lengths = calloc(spec->mount_count + 1, sizeof *lengths);
	size_t served = 0;
	int r = 0;

	if (!lengths)
		return err_set(err, ERR_INTERNAL, ENOMEM, "spec", "out of memory");
	for (size_t i = 0; r == 0 && i < spec->mount_count; i++) {
		r = check_mount(&spec->mounts[i], err);
		lengths[i] = r == 0 ? strlen(spec->mounts[i].target) : 0;
		served += spec->mounts[i].kind == JAIL_FUSE;
	}
	if (r == 0 && served && (!spec->calls.serve || served > JAIL_FUSE_MAX))
		return err_set(err, ERR_INTERNAL, EINVAL, "spec",
			       "no process serves the staged trees, or there are too many of them");
	for (size_t i = 0; r == 0 && i < spec->mount_count; i++)
		r = check_order(spec, lengths, i, err);
	return r;
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
	return check_mounts(spec, err);
}
