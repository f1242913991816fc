/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "oci/mount.h"

#ifndef MOUNT_ATTR_NOSYMFOLLOW
#define MOUNT_ATTR_NOSYMFOLLOW 0x00200000
#endif

/* <sys/mount.h> and <linux/mount.h> exclude each other in glibc 2.36. */
enum { SHARED = 1 << 20, PRIVATE = 1 << 18, SLAVE = 1 << 19, UNBINDABLE = 1 << 17 };

static const struct {
	const char *name;
	uint64_t set, clear;
} attributes[] = {
	{ "ro", MOUNT_ATTR_RDONLY, 0 }, { "rw", 0, MOUNT_ATTR_RDONLY },
	{ "nosuid", MOUNT_ATTR_NOSUID, 0 }, { "suid", 0, MOUNT_ATTR_NOSUID },
	{ "nodev", MOUNT_ATTR_NODEV, 0 }, { "dev", 0, MOUNT_ATTR_NODEV },
	{ "noexec", MOUNT_ATTR_NOEXEC, 0 }, { "exec", 0, MOUNT_ATTR_NOEXEC },
	{ "noatime", MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME }, { "atime", 0, MOUNT_ATTR__ATIME },
	{ "strictatime", MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME },
	{ "nostrictatime", 0, MOUNT_ATTR__ATIME }, { "norelatime", 0, MOUNT_ATTR__ATIME },
	{ "relatime", MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME },
	{ "nodiratime", MOUNT_ATTR_NODIRATIME, 0 }, { "diratime", 0, MOUNT_ATTR_NODIRATIME },
	{ "nosymfollow", MOUNT_ATTR_NOSYMFOLLOW, 0 }, { "symfollow", 0, MOUNT_ATTR_NOSYMFOLLOW },
};

static const struct {
	const char *name;
	uint64_t flag;
} propagations[] = {
	{ "private", PRIVATE }, { "shared", SHARED }, { "slave", SLAVE }, { "unbindable", UNBINDABLE },
};

const char *const *oci_mount_option_names(void)
{
	static const char *const names[] = {
		"async", "atime", "bind", "defaults", "dev", "diratime", "dirsync", "exec", "noatime", "nodev",
		"nodiratime", "noexec", "norelatime", "nostrictatime", "nosuid", "nosymfollow", "private", "ratime",
		"rbind", "rdev", "rdiratime", "relatime", "rexec", "rnoatime", "rnodev", "rnodiratime", "rnoexec",
		"rnorelatime", "rnostrictatime", "rnosuid", "rnosymfollow", "ro", "rprivate", "rrelatime", "rro", "rrw",
		"rshared", "rslave", "rstrictatime", "rsuid", "rsymfollow", "runbindable", "rw", "shared", "slave",
		"strictatime", "suid", "symfollow", "sync", "unbindable", NULL,
	};

	return names;
}

uint64_t oci_propagation_find(const char *name, bool *ret_recursive)
{
	for (size_t i = 0; i < ARRAY_SIZE(propagations); i++)
		if (str_equal(name, propagations[i].name) || (*name == 'r' && str_equal(name + 1,
											propagations[i].name))) {
			*ret_recursive = *name == 'r';
			return propagations[i].flag;
		}
	return 0;
}

/* A later word takes back what an earlier one said of the same bit. */
static bool put_attribute(struct oci_mount_options *options, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
		bool is_all = *name == 'r' && str_equal(name + 1, attributes[i].name);
		uint64_t *set = is_all ? &options->all_set : &options->set;
		uint64_t *clear = is_all ? &options->all_clear : &options->clear;

		if (!is_all && !str_equal(name, attributes[i].name))
			continue;
		*set = (*set & ~attributes[i].clear) | attributes[i].set;
		*clear = (*clear & ~attributes[i].set) | attributes[i].clear;
		return true;
	}
	return false;
}

int oci_mount_options_parse(struct oci_mount_options *ret_options, const struct field_texts *texts, struct err *err)
{
	static const char *const nothing[] = { "defaults", "async", "silent", "loud", "nomand", "remount", "", NULL };

	*ret_options = (struct oci_mount_options){ 0 };
	for (size_t i = 0; i < texts->count; i++) {
		const char *name = texts->items[i];
		bool is_recursive = false;
		uint64_t propagation = oci_propagation_find(name, &is_recursive);

		if (str_equal(name, "bind") || str_equal(name, "rbind")) {
			ret_options->is_bind = true;
			ret_options->is_recursive |= *name == 'r';
		} else if (propagation) {
			ret_options->propagation = propagation;
			ret_options->is_recursive_propagation = is_recursive;
		} else if (!put_attribute(ret_options, name) && !strv_has(nothing, name)) {
			if (str_equal(name, "idmap") || str_equal(name, "ridmap") || str_equal(name, "tmpcopyup"))
				return err_set(err, ERR_USAGE, EINVAL, "mount",
					       "the mount option %s is not supported", name);
			if (ret_options->data_count == ARRAY_SIZE(ret_options->data))
				return err_set(err, ERR_USAGE, E2BIG, "mount", "a mount has too many options");
			ret_options->data[ret_options->data_count++] = name;
		}
	}
	return 0;
}
