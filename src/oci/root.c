/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/root.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "oci/device.h"
#include "oci/mount.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/path.h"
#include "os/pty.h"
#include "oci/rooted.h"

static int fail(int r, const char *what, const char *path, struct err *err)
{
	char quoted[ERR_QUOTE_SIZE];

	return err_set(err, ERR_WALL, -r, "root", "%s %s: %s", what, err_quote(quoted, path), strerror(-r));
}

/* Nothing that is mounted here may show on the host: of what is shared, only copies come in. */
static int cut_off(const struct oci_config *config, struct err *err)
{
	const char *name = config->linux_part.rootfs_propagation;
	cleanup_fd int fd = fd_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	struct mount_change change = { 0 };
	bool is_recursive = true;
	int r;

	change.propagation = oci_propagation_find(name && !strstr(name, "private") ? "rslave" : "rprivate",
						  &is_recursive);
	if (name && *name && !oci_propagation_find(name, &is_recursive))
		return fail(-EINVAL, "linux.rootfsPropagation", name, err);
	r = fd < 0 ? fd : mount_change(fd, true, &change);
	return r < 0 ? fail(r, "the mount namespace cannot be cut off", "/", err) : 0;
}

static int mount_rootfs(const struct oci_config *config, const char *bundle, int *ret_fd, struct err *err)
{
	cleanup_fd int place = FD_NONE, fd = FD_NONE;
	char path[PATH_MAX];
	int r = path_join(path, sizeof path, bundle, config->root_path);

	if (r < 0)
		return fail(r, "root.path", config->root_path, err);
	place = fd_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	if (place < 0)
		return fail(place, "the root directory", path, err);
	fd = mount_clone(place, "", true);
	r = fd < 0 ? fd : mount_attach(fd, place);
	if (r < 0)
		return fail(r, "the root directory cannot be mounted", path, err);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* A file becomes /dev/null, a directory an empty one that nobody writes. What is not there needs no mask. */
static int mask(int root_fd, const char *path, struct err *err)
{
	cleanup_fd int at = rooted_open(root_fd, path, O_PATH), cover = FD_NONE;
	const struct mount_option small[] = { { "size", "0k" }, { "nr_inodes", "2" } };
	struct stat st;
	int r;

	if (at == -ENOENT || at == -ENOTDIR)
		return 0;
	if (at < 0 || fstat(at, &st) < 0)
		return fail(at < 0 ? at : -errno, "cannot mask", path, err);
	cover = S_ISDIR(st.st_mode) ? mount_new("tmpfs", small, ARRAY_SIZE(small), MOUNT_ATTR_RDONLY)
				    : mount_clone(AT_FDCWD, "/dev/null", false);
	r = cover < 0 ? cover : mount_attach(cover, at);
	return r < 0 ? fail(r, "cannot mask", path, err) : 0;
}

static int lock(int root_fd, const char *path, struct err *err)
{
	cleanup_fd int at = rooted_open(root_fd, path, O_PATH), copy = FD_NONE;
	const struct mount_change change = { .set = MOUNT_ATTR_RDONLY };
	int r;

	if (at == -ENOENT || at == -ENOTDIR)
		return 0;
	copy = at < 0 ? at : mount_clone(at, "", true);
	r = copy < 0 ? copy : mount_change(copy, true, &change);
	if (r == 0)
		r = mount_attach(copy, at);
	return r < 0 ? fail(r, "cannot make read-only", path, err) : 0;
}

/* Of the container's namespaces, which the process is in; written by the host's own /proc, not by what is mounted. */
static int set_sysctls(json_t *sysctls, struct err *err)
{
	const char *key;
	json_t *value;

	json_object_foreach(sysctls, key, value) {
		char path[PATH_MAX];
		int r = str_format(path, sizeof path, "/proc/sys/%s", key);

		for (char *at = path + sizeof "/proc/sys"; r == 0 && *at; at++)
			*at = *at == '.' ? '/' : *at;
		if (r == 0)
			r = fd_write_file_at(AT_FDCWD, path, json_string_value(value));
		if (r < 0)
			return fail(r, "sysctl", key, err);
	}
	return 0;
}

int oci_root_build(const struct oci_config *config, const char *bundle, const struct oci_groups *groups,
		   int *ret_root_fd, struct err *err)
{
	const struct oci_linux *part = &config->linux_part;
	const struct oci_mount *mounts = config->mounts.items;
	cleanup_fd int root = FD_NONE;
	int r = set_sysctls(part->sysctl, err);

	if (r == 0)
		r = cut_off(config, err);
	if (r == 0)
		r = mount_rootfs(config, bundle, &root, err);
	for (size_t i = 0; r == 0 && i < config->mounts.count; i++)
		r = oci_mount_make(root, &mounts[i], bundle, groups, err);
	if (r == 0)
		r = oci_devices_make(root, config, err);
	if (r == 0) {
		/* While the root may be written. A file in the way is told by whoever goes there. */
		int cwd = rooted_make(root, config->process.cwd, true);

		if (cwd >= 0)
			close(cwd);
		*ret_root_fd = take_fd(&root);
	}
	return r;
}

int oci_root_console(int root_fd, int *ret_master, int *ret_slave, struct err *err)
{
	cleanup_fd int master = rooted_open(root_fd, "/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), slave = FD_NONE;
	cleanup_fd int console = FD_NONE, copy = FD_NONE;
	int r;

	if (master < 0)
		return fail(master, "a terminal needs the container's", "/dev/pts/ptmx", err);
	r = pty_open_slave(master, &slave);
	if (r < 0)
		return fail(r, "a terminal", "/dev/pts", err);
	copy = mount_clone(slave, "", false);
	console = copy < 0 ? copy : rooted_make(root_fd, "/dev/console", false);
	r = console < 0 ? console : mount_attach(copy, console);
	if (r < 0)
		return fail(r, "cannot mount", "/dev/console", err);
	*ret_master = take_fd(&master);
	*ret_slave = take_fd(&slave);
	return 0;
}

int oci_root_enter(const struct oci_config *config, int root_fd, struct err *err)
{
	const struct oci_linux *part = &config->linux_part;
	const struct mount_change locked = { .set = MOUNT_ATTR_RDONLY };
	struct mount_change spread = { 0 };
	bool is_recursive = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < part->readonly_paths.count; i++)
		r = lock(root_fd, part->readonly_paths.items[i], err);
	for (size_t i = 0; r == 0 && i < part->masked_paths.count; i++)
		r = mask(root_fd, part->masked_paths.items[i], err);
	if (r < 0)
		return r;
	r = mount_pivot(root_fd);
	if (r == 0)
		r = mount_detach_old_root();
	if (r == 0 && config->is_root_readonly)
		r = mount_change(root_fd, false, &locked);
	if (r == 0 && part->rootfs_propagation && *part->rootfs_propagation) {
		spread.propagation = oci_propagation_find(part->rootfs_propagation, &is_recursive);
		r = mount_change(root_fd, is_recursive, &spread);
	}
	return r < 0 ? fail(r, "cannot enter the root directory", config->root_path, err) : 0;
}
