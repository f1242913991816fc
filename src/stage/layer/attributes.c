/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/layer/attributes.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/str.h"
#include "stage/layer/layer.h"

#ifndef XATTR_SIZE_MAX
#define XATTR_SIZE_MAX 65536
#endif
#ifndef XATTR_LIST_MAX
#define XATTR_LIST_MAX 65536
#endif

bool attributes_is_acl(const char *name)
{
	return str_equal(name, "system.posix_acl_access") || str_equal(name, "system.posix_acl_default");
}

bool attributes_is_user(const char *name)
{
	return str_has_prefix(name, "user.") && !stage_xattr_is_overlay(name);
}

bool attributes_is_content(const char *name)
{
	/* As root the layers hold the ids of the sandbox's own range: on the host they are nobody's. */
	if (attributes_is_acl(name))
		return geteuid() != 0;
	return attributes_is_user(name);
}

bool attributes_is_label(const char *name)
{
	static const char *const never[] = { "security.capability", "security.ima", "security.evm" };

	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (str_equal(name, never[i]))
			return false;
	return str_has_prefix(name, "security.");
}

/* One at a time: the program has no threads. */
static char source_names[XATTR_LIST_MAX], target_names[XATTR_LIST_MAX];
static char wanted[XATTR_SIZE_MAX], found[XATTR_SIZE_MAX];

static ssize_t list(int fd, char *out)
{
	ssize_t size = flistxattr(fd, out, XATTR_LIST_MAX);

	return size < 0 ? (errno == EOPNOTSUPP ? 0 : -errno) : size;
}

/* A user's own attributes must not be lost in silence; labels and the like belong to whoever may set them. */
static int tolerate(const char *name, int error)
{
	if (error == ENODATA || !(str_has_prefix(name, "user.") || attributes_is_acl(name)))
		return 0;
	return attributes_is_acl(name) && error == EOPNOTSUPP ? 0 : -error;
}

static bool can_be_removed(const char *name)
{
	return str_has_prefix(name, "user.") || attributes_is_acl(name);
}

static int match_one(int from, int to, const char *name)
{
	ssize_t size = fgetxattr(from, name, wanted, sizeof wanted), had;

	if (size < 0)
		return tolerate(name, errno);
	had = fgetxattr(to, name, found, sizeof found);
	if (had == size && memcmp(wanted, found, (size_t)size) == 0)
		return 0;
	return fsetxattr(to, name, wanted, (size_t)size, 0) < 0 ? tolerate(name, errno) : 0;
}

static bool has_name(const char *names, ssize_t size, const char *name)
{
	for (const char *at = names; at < names + size; at += strlen(at) + 1)
		if (str_equal(at, name))
			return true;
	return false;
}

int attributes_match(int from, int to, bool (*is_wanted)(const char *name))
{
	ssize_t size = from < 0 ? 0 : list(from, source_names), had = list(to, target_names);
	int r = size < 0 ? (int)size : had < 0 ? (int)had : 0;

	for (const char *name = target_names; r == 0 && name < target_names + had; name += strlen(name) + 1)
		if (is_wanted(name) && can_be_removed(name) && !has_name(source_names, size, name) &&
		    fremovexattr(to, name) < 0)
			r = tolerate(name, errno);
	for (const char *name = source_names; r == 0 && name < source_names + size; name += strlen(name) + 1)
		if (is_wanted(name))
			r = match_one(from, to, name);
	return r;
}

int attributes_has(int fd, bool (*is_wanted)(const char *name))
{
	ssize_t size = list(fd, source_names);

	for (const char *name = source_names; name < source_names + size; name += strlen(name) + 1)
		if (is_wanted(name))
			return 1;
	return size < 0 ? (int)size : 0;
}

static bool has_same_value(int a, int b, const char *name)
{
	ssize_t size = fgetxattr(a, name, wanted, sizeof wanted), other = fgetxattr(b, name, found, sizeof found);

	return size >= 0 && size == other && memcmp(wanted, found, (size_t)size) == 0;
}

int attributes_are_same(int a, int b, bool (*is_wanted)(const char *name))
{
	ssize_t size = list(a, source_names), other = list(b, target_names);

	if (size < 0 || other < 0)
		return size < 0 ? (int)size : (int)other;
	for (const char *name = source_names; name < source_names + size; name += strlen(name) + 1)
		if (is_wanted(name) && (!has_name(target_names, other, name) || !has_same_value(a, b, name)))
			return 0;
	for (const char *name = target_names; name < target_names + other; name += strlen(name) + 1)
		if (is_wanted(name) && !has_name(source_names, size, name))
			return 0;
	return 1;
}
