/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USER_ID 65534

int __real_mkdir(const char *path, mode_t mode);
int __real_rmdir(const char *path);
ssize_t __real_write(int fd, const void *bytes, size_t size);
int __real_openat64(int dir_fd, const char *path, int flags, mode_t mode);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_rmdir(const char *path);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
int __wrap_openat64(int dir_fd, const char *path, int flags, mode_t mode);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

char fake_root[64];
static unsigned fail_in;
static bool has_failed;

void fake_fail_at(unsigned n)
{
	fail_in = n;
	has_failed = false;
}

bool fake_has_failed(void)
{
	return has_failed;
}

static bool fails_now(void)
{
	if (!fail_in || --fail_in)
		return false;
	has_failed = true;
	return true;
}

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	abort();
}

static void write_at(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	must(fd >= 0, path);
	must(__real_write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

static void full(char out[PATH_MAX], const char *path)
{
	snprintf(out, PATH_MAX, "%s/%s", fake_root, path);
}

void fake_write(const char *path, const char *text)
{
	char at[PATH_MAX];

	full(at, path);
	write_at(at, text);
}

static const char *read_at(const char *path)
{
	static char text[4096];
	FILE *file = fopen(path, "re");
	size_t n;

	if (!file)
		return "";
	n = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[n] = 0;
	return text;
}

const char *fake_read(const char *path)
{
	char at[PATH_MAX];

	full(at, path);
	return read_at(at);
}

void fake_remove(const char *path)
{
	char at[PATH_MAX];

	full(at, path);
	must(unlink(at) == 0, at);
}

bool fake_exists(const char *path)
{
	char at[PATH_MAX];

	full(at, path);
	return access(at, F_OK) == 0;
}

static void populate(const char *dir, const char *file, const char *text)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof path, "%s/%s", dir, file);
	write_at(path, text);
}

struct file {
	const char *controller, *name, *text;
};

static const struct file v2_files[] = {
	{ "memory", "memory.max", "max\n" }, { "memory", "memory.swap.max", "max\n" },
	{ "memory", "memory.oom.group", "0\n" }, { "memory", "memory.current", "0\n" },
	{ "memory", "memory.peak", "0\n" }, { "memory", "memory.events", "low 0\noom 0\noom_kill 0\n" },
	{ "pids", "pids.max", "max\n" }, { "pids", "pids.current", "0\n" }, { "pids", "pids.peak", "0\n" },
	{ "pids", "pids.events", "max 0\n" }, { "cpu", "cpu.max", "max 100000\n" },
};

static const struct file v1_files[] = {
	{ "memory", "memory.limit_in_bytes", "9223372036854771712\n" },
	{ "memory", "memory.memsw.limit_in_bytes", "9223372036854771712\n" },
	{ "memory", "memory.usage_in_bytes", "0\n" }, { "memory", "memory.max_usage_in_bytes", "0\n" },
	{ "memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n" },
	{ "memory", "cgroup.event_control", "" }, { "pids", "pids.max", "max\n" }, { "pids", "pids.current", "0\n" },
	{ "pids", "pids.events", "max 0\n" }, { "cpu", "cpu.cfs_quota_us", "-1\n" },
	{ "cpu", "cpu.cfs_period_us", "100000\n" }, { "cpuacct", "cpuacct.usage", "0\n" },
	{ "freezer", "freezer.state", "FROZEN\n" },
};

/* What the kernel puts into a new group: by the parent's subtree_control (v2), by the hierarchy's name (v1). */
static void populate_group(const char *dir)
{
	char parent[PATH_MAX], path[PATH_MAX + 32], offered[4096];
	const struct file *files = v2_files;
	size_t count = sizeof v2_files / sizeof *v2_files;

	snprintf(parent, sizeof parent, "%s", dir);
	*strrchr(parent, '/') = 0;
	populate(dir, "cgroup.procs", "");
	populate(dir, "tasks", "");
	snprintf(path, sizeof path, "%s/cgroup.subtree_control", parent);
	if (access(path, F_OK) == 0) {
		snprintf(offered, sizeof offered, "%s", read_at(path));
		populate(dir, "cgroup.controllers", offered);
		populate(dir, "cgroup.subtree_control", "");
		populate(dir, "cgroup.type", "domain\n");
		populate(dir, "cgroup.freeze", "0\n");
		populate(dir, "cgroup.kill", "");
		populate(dir, "cgroup.events", "populated 0\nfrozen 1\n");
		populate(dir, "cpu.stat", "usage_usec 0\nuser_usec 0\n");
	} else {
		const char *name = dir + strlen(fake_root) + 1;

		snprintf(offered, sizeof offered, "%.*s", (int)strcspn(name, "/"), name);
		files = v1_files;
		count = sizeof v1_files / sizeof *v1_files;
	}
	for (size_t i = 0; i < count; i++) {
		const char *found = strstr(offered, files[i].controller);
		size_t length = strlen(files[i].controller);

		if (found && !strchr("abcdefghijklmnopqrstuvwxyz", found[length] ? found[length] : ' '))
			populate(dir, files[i].name, files[i].text);
	}
}

void fake_group(const char *path, const char *subtree_control, const char *procs)
{
	char at[PATH_MAX];

	full(at, path);
	must(__real_mkdir(at, 0755) == 0, at);
	if (subtree_control && !strchr(path, '/')) { /* the top of a v2 tree has every controller */
		populate(at, "cgroup.procs", "");
		populate(at, "cgroup.controllers", "cpuset cpu io memory hugetlb pids rdma\n");
	} else {
		populate_group(at);
	}
	if (subtree_control)
		populate(at, "cgroup.subtree_control", subtree_control);
	populate(at, "cgroup.procs", procs);
}

void fake_begin(const char *self_cgroup, const char *mountinfo)
{
	fake_fail_at(0);
	snprintf(fake_root, sizeof fake_root, "/tmp/atoll-fake-XXXXXX");
	must(mkdtemp(fake_root) != NULL, fake_root);
	must(chmod(fake_root, 0755) == 0, fake_root);
	fake_write("self-cgroup", self_cgroup);
	fake_write("mountinfo", mountinfo);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return type == FTW_DP ? __real_rmdir(path) : unlink(path);
}

static int make_writable(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return type == FTW_D ? chmod(path, 0755) : 0;
}

void fake_end(void)
{
	fake_fail_at(0);
	if (!*fake_root)
		return;
	if (getuid() == USER_ID)
		must(setresuid(0, 0, 0) == 0 || geteuid() != 0, "setresuid");
	nftw(fake_root, make_writable, 16, FTW_PHYS);
	must(nftw(fake_root, remove_entry, 16, FTW_PHYS | FTW_DEPTH) == 0, fake_root);
	fake_root[0] = 0;
}

static int give_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return chmod(path, type == FTW_F ? 0644 : 0755) < 0 || (geteuid() == 0 && chown(path, USER_ID, USER_ID) < 0);
}

static int lock_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return chmod(path, type == FTW_F ? 0444 : 0555);
}

void fake_delegate(const char *path)
{
	char at[PATH_MAX];

	must(nftw(fake_root, lock_entry, 16, FTW_PHYS | FTW_DEPTH) == 0, fake_root);
	full(at, path);
	if (*path)
		must(nftw(at, give_entry, 16, FTW_PHYS) == 0, at);
}

void fake_as_user(void)
{
	if (getuid() == 0)
		must(setresuid(USER_ID, USER_ID, 0) == 0, "setresuid");
}

static char *listing;
static size_t listing_size;

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void list_below(FILE *out, const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, compare_names);

	for (int i = 0; i < count; i++) {
		char at[PATH_MAX];

		if (entries[i]->d_type == DT_DIR && entries[i]->d_name[0] != '.') {
			snprintf(at, sizeof at, "%s/%s", path, entries[i]->d_name);
			fprintf(out, "%s\n", at);
			list_below(out, at);
		}
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

char *fake_listing(void)
{
	FILE *out = open_memstream(&listing, &listing_size);

	must(out != NULL, "open_memstream");
	list_below(out, fake_root);
	fclose(out);
	return listing;
}

size_t count_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	must(dir != NULL, "/proc/self/fd");
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	if (fails_now()) {
		errno = ENOMEM;
		return -1;
	}
	if (__real_mkdir(path, mode) < 0)
		return -1;
	if (*fake_root && strncmp(path, fake_root, strlen(fake_root)) == 0)
		populate_group(path);
	return 0;
}

/* A group's files go with it; groups below it or processes keep it. */
int __wrap_rmdir(const char *path)
{
	char at[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	if (!*fake_root || strncmp(path, fake_root, strlen(fake_root)) != 0)
		return __real_rmdir(path);
	snprintf(at, sizeof at, "%s/cgroup.procs", path);
	if (*read_at(at)) {
		errno = EBUSY;
		return -1;
	}
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_REG)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	return __real_rmdir(path);
}

/*
 * No Internal Process Constraint: a group with processes refuses to hand memory down. Threaded controllers
 * it does hand down, but is a threaded domain from then on.
 */
static bool refuses_controllers(const char *file, const char *value)
{
	char path[PATH_MAX + 32], *slash;

	snprintf(path, sizeof path, "%s", file);
	slash = strrchr(path, '/');
	if (!slash || strcmp(slash, "/cgroup.subtree_control") != 0)
		return false;
	memcpy(slash, "/cgroup.procs", sizeof "/cgroup.procs");
	if (!*read_at(path))
		return false;
	if (strstr(value, "memory"))
		return true;
	*slash = 0;
	populate(path, "cgroup.type", "domain threaded\n");
	return false;
}

static bool is_fake_file(int fd, char path[PATH_MAX])
{
	char link[32];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX - 1);
	if (n < 0 || !*fake_root)
		return false;
	path[n] = 0;
	return strncmp(path, fake_root, strlen(fake_root)) == 0;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
	char path[PATH_MAX];

	if (fails_now()) {
		errno = EIO;
		return -1;
	}
	if (is_fake_file(fd, path)) {
		char value[128];

		snprintf(value, sizeof value, "%.*s", (int)size, (const char *)bytes);
		if (refuses_controllers(path, value)) {
			errno = EBUSY;
			return -1;
		}
		must(ftruncate(fd, 0) == 0, path); /* a value replaces the one before */
	}
	return __real_write(fd, bytes, size);
}

int __wrap_openat64(int dir_fd, const char *path, int flags, mode_t mode)
{
	if (fails_now()) {
		errno = EMFILE;
		return -1;
	}
	return __real_openat64(dir_fd, path, flags, mode);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails_now() ? NULL : __real_realloc(old, size);
}
