/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/device.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/str.h"
#include "oci/mount.h"
#include "os/fd.h"
#include "oci/rooted.h"

static const struct oci_device usual[] = {
	{ "c", "/dev/null", NULL, 1, 3, 0666, 0, 0, true },    { "c", "/dev/zero", NULL, 1, 5, 0666, 0, 0, true },
	{ "c", "/dev/full", NULL, 1, 7, 0666, 0, 0, true },    { "c", "/dev/random", NULL, 1, 8, 0666, 0, 0, true },
	{ "c", "/dev/urandom", NULL, 1, 9, 0666, 0, 0, true }, { "c", "/dev/tty", NULL, 5, 0, 0666, 0, 0, true },
};

static const struct {
	const char *path, *target;
} links[] = {
	{ "/dev/fd", "/proc/self/fd" }, { "/dev/stdin", "/proc/self/fd/0" }, { "/dev/stdout", "/proc/self/fd/1" },
	{ "/dev/stderr", "/proc/self/fd/2" },
};

static int make_device(int root_fd, const struct oci_device *device, struct err *err)
{
	mode_t kind = *device->type == 'b' ? S_IFBLK : *device->type == 'p' ? S_IFIFO : S_IFCHR;
	int r = rooted_make_node(root_fd, device->path, kind | ((mode_t)device->mode & 07777),
				 makedev((unsigned)device->major, (unsigned)device->minor), (uid_t)device->uid,
				 (gid_t)device->gid);
	char quoted[ERR_QUOTE_SIZE];

	if (r == -EPERM)
		return oci_mount_bind(root_fd, device->path, device->path, err);
	if (r < 0 && r != -EEXIST)
		return err_set(err, ERR_WALL, -r, "device", "the device %s cannot be made: %s",
			       err_quote(quoted, device->path), strerror(-r));
	return 0;
}

/* A /dev that is the host's, or that an image brings, gets nothing of ours. */
static bool has_own_dev(const struct oci_config *config)
{
	const struct oci_mount *mounts = config->mounts.items;
	bool has = false;

	for (size_t i = 0; i < config->mounts.count; i++)
		if (str_equal(mounts[i].destination, "/dev") || str_equal(mounts[i].destination, "/dev/"))
			has = !strv_has(mounts[i].options.items, "bind") && !strv_has(mounts[i].options.items, "rbind");
	return has;
}

int oci_devices_make(int root_fd, const struct oci_config *config, struct err *err)
{
	const struct oci_device *devices = config->linux_part.devices.items;
	cleanup_fd int pts = FD_NONE;
	int r = 0;

	if (!has_own_dev(config))
		return 0;
	for (size_t i = 0; r == 0 && i < config->linux_part.devices.count; i++)
		r = make_device(root_fd, &devices[i], err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(usual); i++)
		r = make_device(root_fd, &usual[i], err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(links); i++)
		r = rooted_make_link(root_fd, links[i].path, links[i].target);
	pts = rooted_open(root_fd, "/dev/pts/ptmx", O_PATH);
	return r == 0 && pts >= 0 ? rooted_make_link(root_fd, "/dev/ptmx", "pts/ptmx") : r;
}
