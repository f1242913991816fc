/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

enum { TEXT_MAX = 4 << 20, PATIENCE_STEPS = 500, STEP_MS = 10 };

void oci_groups_done(struct oci_groups *groups)
{
	for (size_t i = 0; i < groups->count; i++) {
		free(groups->items[i].controllers);
		free(groups->items[i].path);
	}
	memset(groups, 0, sizeof *groups);
}

int oci_groups_add(struct oci_groups *groups, const char *controllers, const char *path, bool is_made)
{
	struct oci_group *group = &groups->items[groups->count];

	if (groups->count == OCI_GROUPS_MAX)
		return -E2BIG;
	*group = (struct oci_group){ str_dup(controllers), str_dup(path), is_made };
	groups->count++;
	return group->controllers && group->path ? 0 : -ENOMEM;
}

/* "rw,cpu,cpuacct": the controllers among the options of a superblock, which are what the kernel calls them. */
static void controllers_of(const char *options, char *out, size_t size)
{
	static const char *const plain[] = { "rw", "ro", "xattr", "noprefix", "clone_children", "nsdelegate", NULL };
	struct buf buf;
	const char *at = options;

	buf_init_fixed(&buf, out, size - 1);
	while (*at) {
		size_t length = strcspn(at, ",");
		char word[64];

		if (str_format(word, sizeof word, "%.*s", (int)length, at) == 0 && !strv_has(plain, word) &&
		    !str_has_prefix(word, "release_agent=")) {
			buf_put_text(&buf, buf.size ? "," : "");
			buf_put_text(&buf, word);
		}
		at += length + (at[length] == ',');
	}
	out[buf.size] = 0;
}

/* One line of mountinfo: "… root mountpoint options … - type source superoptions". */
static int plan_line(struct oci_groups *groups, char *line, const char *name)
{
	char *fields[6] = { 0 }, *rest, *type, *options, controllers[256] = "", path[PATH_MAX];
	char *at = line;

	for (size_t i = 0; i < ARRAY_SIZE(fields) && at; i++)
		fields[i] = strsep(&at, " ");
	rest = at ? strstr(at, "- ") : NULL;
	if (!rest || !fields[5])
		return 0;
	rest += 2;
	type = strsep(&rest, " ");
	(void)strsep(&rest, " ");
	options = rest ? rest : (char *)"";
	if (!str_equal(type, "cgroup") && !str_equal(type, "cgroup2"))
		return 0;
	if (str_equal(type, "cgroup"))
		controllers_of(options, controllers, sizeof controllers);
	for (size_t i = 0; i < groups->count; i++)
		if (str_equal(groups->items[i].controllers, controllers))
			return 0;
	if (str_format(path, sizeof path, "%s/%s", fields[4], name + strspn(name, "/")) < 0)
		return -ENAMETOOLONG;
	return oci_groups_add(groups, controllers, path, access(path, F_OK) < 0);
}

int oci_groups_plan(struct oci_groups *ret_groups, const char *cgroups_path, const char *id, struct err *err)
{
	cleanup_free char *text = NULL, *name = NULL;
	char *at, *line;
	size_t size;
	int r = fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", TEXT_MAX, &text, &size);

	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "cgroup", "/proc/self/mountinfo: %s", strerror(-r));
	name = cgroups_path && *cgroups_path ? str_dup(cgroups_path) : str_printf("/atoll-oci-%s", id);
	if (!name)
		return -ENOMEM;
	at = text;
	while (r == 0 && (line = strsep(&at, "\n")))
		r = plan_line(ret_groups, line, name);
	return r;
}

/* cpuset of v1 takes no process before it has processors and memory: those of the group above. */
static int fill_cpuset(const char *path)
{
	static const char *const files[] = { "cpuset.cpus", "cpuset.mems" };
	char above[PATH_MAX], own[PATH_MAX], value[4096];
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++) {
		cleanup_free char *text = NULL;
		size_t size;

		if (path_beside(above, sizeof above, path, files[i]) < 0 ||
		    str_format(own, sizeof own, "%s/%s", path, files[i]) < 0)
			return -ENAMETOOLONG;
		r = fd_read_file_at(AT_FDCWD, own, sizeof value, &text, &size);
		if (r < 0 || (size && *text != '\n'))
			continue;
		free(take_ptr(text));
		r = fd_read_file_at(AT_FDCWD, above, sizeof value, &text, &size);
		if (r == 0)
			r = fd_write_file_at(AT_FDCWD, own, text);
	}
	return r;
}

/* Lets the groups of v2 above this one give it their controllers; those that are not there are missed by limits. */
static void hand_down(const char *path)
{
	static const char *const all[] = { "+memory", "+pids", "+cpu", "+cpuset", "+io" };
	char file[PATH_MAX];

	if (path_beside(file, sizeof file, path, "cgroup.subtree_control") < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		(void)!fd_write_file_at(AT_FDCWD, file, all[i]);
}

/* Each missing directory, from the top: a group needs what the one above has before it is of use. */
static int make_group(struct oci_group *group)
{
	bool is_cpuset = strstr(group->controllers, "cpuset");
	char part[PATH_MAX];
	int r = str_copy(part, sizeof part, group->path);

	for (char *at = part + 1; r == 0; at++) {
		char end = *at;

		if (end != '/' && end != 0)
			continue;
		*at = 0;
		if (mkdir(part, 0755) == 0) {
			if (!*group->controllers)
				hand_down(part);
			r = is_cpuset ? fill_cpuset(part) : 0;
		} else if (errno == EEXIST) {
			group->is_made = group->is_made && end;
		} else {
			/* Above what the caller may change: it is there, or it was not this one's to make. */
			r = -errno;
			r = access(part, F_OK) == 0 ? 0 : r;
		}
		if (!end)
			return r;
		*at = end;
	}
	return r;
}

int oci_groups_make(struct oci_groups *groups, struct err *err)
{
	for (size_t i = 0; i < groups->count; i++) {
		int r = make_group(&groups->items[i]);

		if (r < 0)
			return err_set(err, ERR_WALL, -r, "cgroup", "the control group %s cannot be made: %s",
				       groups->items[i].path, strerror(-r));
	}
	return 0;
}

int oci_groups_enter(const struct oci_groups *groups, pid_t pid, struct err *err)
{
	char file[PATH_MAX], number[16];
	int r = str_format(number, sizeof number, "%d", (int)pid);

	for (size_t i = 0; r == 0 && i < groups->count; i++) {
		r = str_format(file, sizeof file, "%s/cgroup.procs", groups->items[i].path);
		if (r == 0)
			r = fd_write_file_at(AT_FDCWD, file, number);
		if (r < 0)
			return err_set(err, ERR_WALL, -r, "cgroup", "cannot enter the control group %s: %s",
				       groups->items[i].path, strerror(-r));
	}
	return r;
}

const struct oci_group *oci_groups_find(const struct oci_groups *groups, const char *controller)
{
	size_t length = strlen(controller);

	for (size_t i = 0; i < groups->count; i++) {
		const char *at = groups->items[i].controllers;

		if (!*at && !length)
			return &groups->items[i];
		while (*at && length) {
			size_t word = strcspn(at, ",");

			if (word == length && memcmp(at, controller, length) == 0)
				return &groups->items[i];
			at += word + (at[word] == ',');
		}
	}
	return NULL;
}

/* The file that freezes, and what it says or takes. False: there is none. */
static bool freezer_of(const struct oci_groups *groups, char file[PATH_MAX], bool *ret_is_v1)
{
	const struct oci_group *group = oci_groups_find(groups, "freezer");

	*ret_is_v1 = group;
	if (!group)
		group = oci_groups_find(groups, "");
	return group && str_format(file, PATH_MAX, "%s/%s", group->path, *ret_is_v1 ? "freezer.state"
				   : "cgroup.freeze") == 0;
}

static bool has_frozen(const char *file, bool is_v1, bool on)
{
	cleanup_free char *text = NULL;
	char events[PATH_MAX];
	size_t size;

	if (!is_v1 && path_beside(events, sizeof events, file, "cgroup.events") < 0)
		return false;
	if (fd_read_file_at(AT_FDCWD, is_v1 ? file : events, 4096, &text, &size) < 0)
		return false;
	if (is_v1)
		return str_has_prefix(text, on ? "FROZEN" : "THAWED");
	return strstr(text, on ? "frozen 1" : "frozen 0");
}

bool oci_groups_is_frozen(const struct oci_groups *groups)
{
	char file[PATH_MAX];
	bool is_v1;

	return freezer_of(groups, file, &is_v1) && has_frozen(file, is_v1, true);
}

int oci_groups_freeze(const struct oci_groups *groups, bool on, struct err *err)
{
	char file[PATH_MAX];
	bool is_v1;
	int r;

	if (!freezer_of(groups, file, &is_v1))
		return err_set(err, ERR_WALL, EOPNOTSUPP, "cgroup",
			       "the container has no control group that can freeze it");
	for (int i = 0; i < PATIENCE_STEPS; i++) {
		/* A v1 freezer must be asked again: new processes may have come while it froze the others. */
		r = fd_write_file_at(AT_FDCWD, file, is_v1 ? (on ? "FROZEN" : "THAWED") : on ? "1" : "0");
		if (r < 0)
			return err_set(err, ERR_INTERNAL, -r, "cgroup", "%s: %s", file, strerror(-r));
		if (has_frozen(file, is_v1, on))
			return 0;
		poll(NULL, 0, STEP_MS);
	}
	return err_set(err, ERR_STATE, ETIMEDOUT, "cgroup", "the container does not freeze");
}

/* Of a directory and those below: the text of its cgroup.procs. */
static int list_below(const char *path, struct buf *out, int depth)
{
	cleanup_free char *text = NULL;
	char part[PATH_MAX];
	struct dirent *entry;
	DIR *dir;
	size_t size;
	int r = str_format(part, sizeof part, "%s/cgroup.procs", path);

	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, part, TEXT_MAX, &text, &size);
	if (r < 0)
		return r == -ENOENT || r == -ENODEV ? 0 : r;
	buf_put(out, text, size);
	dir = opendir(path);
	while (dir && depth && r == 0 && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    str_format(part, sizeof part, "%s/%s", path, entry->d_name) == 0)
			r = list_below(part, out, depth - 1);
	if (dir)
		closedir(dir);
	return r;
}

int oci_groups_list(const struct oci_groups *groups, struct buf *out)
{
	static const char *const usual[] = { "freezer", "pids", "memory", "devices", "" };
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
		const struct oci_group *group = oci_groups_find(groups, usual[i]);

		if (!group)
			continue;
		r = list_below(group->path, out, 16);
		return r < 0 ? r : buf_error(out);
	}
	return 0;
}

int oci_groups_signal(const struct oci_groups *groups, int signal_number)
{
	cleanup_buf struct buf list;
	int sent = 0, r;
	char *at;

	buf_init(&list, TEXT_MAX);
	r = oci_groups_list(groups, &list);
	if (r < 0)
		return r;
	at = (char *)buf_text(&list);
	while (at && *at) {
		char *line = strsep(&at, "\n");
		long pid = strtol(line, NULL, 10);

		sent += pid > 0 && kill((pid_t)pid, signal_number) == 0;
	}
	return sent;
}

static int remove_below(const char *path, int depth)
{
	char part[PATH_MAX];
	struct dirent *entry;
	DIR *dir = opendir(path);

	while (dir && depth && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    str_format(part, sizeof part, "%s/%s", path, entry->d_name) == 0)
			(void)!remove_below(part, depth - 1);
	if (dir)
		closedir(dir);
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

int oci_groups_remove(const struct oci_groups *groups, struct err *err)
{
	for (size_t i = 0; i < groups->count; i++) {
		int r = -EBUSY;

		if (!groups->items[i].is_made)
			continue;
		/* A killed process leaves its group when it is gone, some time after the kill. */
		for (int step = 0; r == -EBUSY && step < PATIENCE_STEPS; step++) {
			r = remove_below(groups->items[i].path, 16);
			if (r == -EBUSY)
				poll(NULL, 0, STEP_MS);
		}
		if (r < 0)
			return err_set(err, ERR_STATE, -r, "cgroup", "the control group %s cannot be removed: %s",
				       groups->items[i].path, strerror(-r));
	}
	return 0;
}
