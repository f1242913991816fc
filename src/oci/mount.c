/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/mount.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/path.h"
#include "oci/rooted.h"

enum { NAME_VALUE_SIZE = 1024 };

static int fail(int r, const char *what, const char *path, struct err *err)
{
	char quoted[ERR_QUOTE_SIZE];

	return err_set(err, ERR_WALL, -r, "mount", "error mounting %s: %s: %s", err_quote(quoted, path), what,
		       strerror(-r));
}

static int change(int fd, const struct oci_mount_options *options)
{
	const struct mount_change own = { .set = options->set, .clear = options->clear };
	const struct mount_change all = { .set = options->all_set, .clear = options->all_clear };
	int r = own.set || own.clear ? mount_change(fd, false, &own) : 0;

	return r == 0 && (all.set || all.clear) ? mount_change(fd, true, &all) : r;
}

/* Puts the mount there, and last its propagation, which a mount takes from where it is put. */
static int attach(int root_fd, const char *target, int fd, bool is_directory, const struct oci_mount_options *options)
{
	const struct mount_change spread = { .propagation = options->propagation };
	cleanup_fd int at = rooted_make(root_fd, target, is_directory);
	int r = at < 0 ? at : mount_attach(fd, at);

	return r == 0 && spread.propagation ? mount_change(fd, options->is_recursive_propagation, &spread) : r;
}

/* A mount of the host's for what is detached must not follow what the container does, nor show it. */
static int clone_source(const char *source, bool is_recursive, bool *ret_directory)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, source, O_PATH, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_directory = S_ISDIR(st.st_mode);
	return mount_clone(fd, "", is_recursive);
}

static int make_bind(int root_fd, const struct oci_mount *mount, const char *bundle,
		     const struct oci_mount_options *options, struct err *err)
{
	cleanup_fd int fd = FD_NONE;
	char source[PATH_MAX];
	bool is_directory;
	int r;

	if (!mount->source || !*mount->source)
		return fail(-EINVAL, "a bind mount needs a source", mount->destination, err);
	r = mount->source[0] == '/' ? str_copy(source, sizeof source, mount->source)
				    : str_format(source, sizeof source, "%s/%s", bundle, mount->source);
	if (r < 0)
		return fail(r, "source", mount->destination, err);
	fd = clone_source(source, options->is_recursive, &is_directory);
	if (fd < 0)
		return fail(fd, source, mount->destination, err);
	r = change(fd, options);
	if (r == 0)
		r = attach(root_fd, mount->destination, fd, is_directory, options);
	return r < 0 ? fail(r, source, mount->destination, err) : 0;
}

static int make_new(int root_fd, const struct oci_mount *mount, const char *type,
		    const struct oci_mount_options *options, struct err *err)
{
	struct mount_option given[ARRAY_SIZE(options->data) + 1];
	char texts[ARRAY_SIZE(options->data)][NAME_VALUE_SIZE];
	cleanup_fd int fd = FD_NONE;
	size_t count = 0;
	int r;

	for (size_t i = 0; i < options->data_count; i++) {
		char *equal;

		if (str_copy(texts[i], sizeof texts[i], options->data[i]) < 0)
			return fail(-ENAMETOOLONG, "an option", mount->destination, err);
		equal = strchr(texts[i], '=');
		if (equal)
			*equal = 0;
		given[count++] = (struct mount_option){ texts[i], equal ? equal + 1 : NULL };
	}
	if (mount->source && *mount->source)
		given[count++] = (struct mount_option){ "source", mount->source };
	fd = mount_new(type, given, count, (options->set | options->all_set) & ~(uint64_t)MOUNT_ATTR__ATIME);
	if (fd < 0)
		return fail(fd, type, mount->destination, err);
	r = change(fd, options);
	if (r == 0)
		r = attach(root_fd, mount->destination, fd, true, options);
	return r < 0 ? fail(r, type, mount->destination, err) : 0;
}

int oci_mount_bind(int root_fd, const char *source, const char *target, struct err *err)
{
	static const struct oci_mount_options none = { 0 };
	bool is_directory;
	cleanup_fd int fd = clone_source(source, false, &is_directory);
	int r = fd < 0 ? fd : attach(root_fd, target, fd, is_directory, &none);

	return r < 0 ? fail(r, source, target, err) : 0;
}

/* v1: a tmpfs with the container's group of each hierarchy in it; v2 alone: its group itself. */
static int make_cgroups(int root_fd, const struct oci_mount *mount, const struct oci_groups *groups,
			struct oci_mount_options *options, struct err *err)
{
	const struct oci_group *unified = oci_groups_find(groups, "");
	struct oci_mount place = { .destination = mount->destination, .source = "tmpfs" };
	struct oci_mount_options plain = { .data = { "mode=755" }, .data_count = 1 };
	int r = 0;

	options->data_count = 0;
	if (groups->count == 1 && unified) {
		place.source = unified->path;
		return make_bind(root_fd, &place, "/", options, err);
	}
	r = make_new(root_fd, &place, "tmpfs", &plain, err);
	for (size_t i = 0; r == 0 && i < groups->count; i++) {
		const char *name = groups->items[i].controllers;
		char target[PATH_MAX];

		r = str_format(target, sizeof target, "%s/%s", mount->destination,
			       !*name ? "unified" : str_has_prefix(name, "name=") ? name + 5 : name);
		place = (struct oci_mount){ .destination = target, .source = groups->items[i].path };
		if (r == 0)
			r = make_bind(root_fd, &place, "/", options, err);
	}
	if (r == 0 && options->set & MOUNT_ATTR_RDONLY) {
		cleanup_fd int fd = rooted_open(root_fd, mount->destination, O_PATH | O_DIRECTORY);
		const struct mount_change locked = { .set = MOUNT_ATTR_RDONLY };

		r = fd < 0 ? fd : mount_change(fd, false, &locked);
	}
	return r;
}

int oci_mount_make(int root_fd, const struct oci_mount *mount, const char *bundle, const struct oci_groups *groups,
		   struct err *err)
{
	struct oci_mount_options options;
	int r = oci_mount_options_parse(&options, &mount->options, err);

	if (r < 0)
		return r;
	if (mount->uid_maps.count || mount->gid_maps.count)
		return err_set(err, ERR_USAGE, EINVAL, "mount", "idmapped mounts are not supported");
	if (options.is_bind || str_equal(mount->type, "bind"))
		return make_bind(root_fd, mount, bundle, &options, err);
	if (!mount->type || !*mount->type)
		return fail(-EINVAL, "it has no type", mount->destination, err);
	if (str_equal(mount->type, "cgroup") || str_equal(mount->type, "cgroup2"))
		return make_cgroups(root_fd, mount, groups, &options, err);
	return make_new(root_fd, mount, mount->type, &options, err);
}
