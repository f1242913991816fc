/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/limit.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"

enum { VALUE_SIZE = 64 };

struct limits {
	const struct oci_groups *groups;
	struct err *err;
};

bool oci_limits_are_asked(const struct oci_resources *resources)
{
	const int64_t numbers[] = { resources->memory_limit, resources->memory_reservation, resources->memory_swap,
				    resources->memory_swappiness, resources->cpu_shares, resources->cpu_quota,
				    resources->cpu_period, resources->pids_limit };

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i] != FIELD_NONE && numbers[i] != 0)
			return true;
	return resources->memory_no_oom_kill || resources->cpu_cpus || resources->cpu_mems || resources->unified;
}

static int write_value(const struct limits *limits, const struct oci_group *group, const char *file, const char *value)
{
	char path[PATH_MAX];
	int r = str_format(path, sizeof path, "%s/%s", group->path, file);

	if (r == 0)
		r = fd_write_file_at(AT_FDCWD, path, value);
	return r < 0 ? err_set(limits->err, ERR_WALL, -r, "cgroup", "failed to write %s to %s: %s", value, path,
			       strerror(-r))
		     : 0;
}

/* In the hierarchy of v1 that has the controller, else in v2. file NULL: that version has no such limit. */
static int put(const struct limits *limits, const char *controller, const char *v1, const char *v2, const char *value)
{
	const struct oci_group *group = oci_groups_find(limits->groups, controller);
	const char *file = group ? v1 : v2;

	if (!group)
		group = oci_groups_find(limits->groups, "");
	if (!group || !file)
		return err_set(limits->err, ERR_WALL, EOPNOTSUPP, "cgroup",
			       "the limit %s cannot be set: there is no control group for it", v1 ? v1 : v2);
	return write_value(limits, group, file, value);
}

static bool is_v1(const struct limits *limits, const char *controller)
{
	return oci_groups_find(limits->groups, controller);
}

/* -1 and 2^63 - 1: no limit. */
static const char *format(char out[VALUE_SIZE], int64_t value, const char *unlimited)
{
	if (value < 0 || value == INT64_MAX)
		return unlimited;
	(void)!str_format(out, VALUE_SIZE, "%lld", (long long)value);
	return out;
}

static int put_memory(const struct limits *limits, const struct oci_resources *resources)
{
	const char *none = is_v1(limits, "memory") ? "-1" : "max";
	int64_t limit = resources->memory_limit, swap = resources->memory_swap;
	char value[VALUE_SIZE], whole[VALUE_SIZE];
	bool has_limit = limit != FIELD_NONE && limit, has_swap = swap != FIELD_NONE && swap;
	int r = 0;

	if (has_swap && swap > 0 && has_limit && swap < limit)
		return err_set(limits->err, ERR_USAGE, EINVAL, "cgroup",
			       "memory+swap limit should be >= memory limit");
	if (has_swap && !is_v1(limits, "memory") && swap > 0 && swap != INT64_MAX)
		swap -= has_limit && limit > 0 ? limit : 0;
	/* v1 wants the sum never below the limit: which of the two is first depends on what stands there. */
	if (has_limit)
		r = put(limits, "memory", "memory.limit_in_bytes", "memory.max", format(value, limit, none));
	if (r < 0 && has_swap && is_v1(limits, "memory"))
		r = put(limits, "memory", "memory.memsw.limit_in_bytes", NULL, format(whole, swap, none)) < 0
			    ? r : put(limits, "memory", "memory.limit_in_bytes", NULL, value);
	if (r == 0 && has_swap)
		r = put(limits, "memory", "memory.memsw.limit_in_bytes", "memory.swap.max", format(whole, swap, none));
	if (r == 0 && resources->memory_reservation != FIELD_NONE && resources->memory_reservation)
		r = put(limits, "memory", "memory.soft_limit_in_bytes", "memory.low",
			format(value, resources->memory_reservation, none));
	if (r == 0 && resources->memory_swappiness != FIELD_NONE && is_v1(limits, "memory"))
		r = put(limits, "memory", "memory.swappiness", NULL, format(value, resources->memory_swappiness, none));
	if (r == 0 && resources->memory_no_oom_kill)
		r = put(limits, "memory", "memory.oom_control", NULL, "1");
	return r;
}

static int put_cpu(const struct limits *limits, const struct oci_resources *resources)
{
	int64_t shares = resources->cpu_shares, quota = resources->cpu_quota, period = resources->cpu_period;
	bool has_quota = quota != FIELD_NONE && quota, has_period = period != FIELD_NONE && period;
	char value[VALUE_SIZE], other[VALUE_SIZE];
	int r = 0;

	if (shares != FIELD_NONE && shares) {
		/* The kernel's own range of shares, 2 to 262144, onto that of weights, 1 to 10000. */
		if (!is_v1(limits, "cpu"))
			shares = shares < 2 ? 1 : shares > 262144 ? 10000 : 1 + (shares - 2) * 9999 / 262142;
		r = put(limits, "cpu", "cpu.shares", "cpu.weight", format(value, shares, "0"));
	}
	if (r == 0 && is_v1(limits, "cpu")) {
		if (has_period)
			r = put(limits, "cpu", "cpu.cfs_period_us", NULL, format(value, period, "0"));
		if (r == 0 && has_quota)
			r = put(limits, "cpu", "cpu.cfs_quota_us", NULL, format(value, quota, "-1"));
	} else if (r == 0 && (has_quota || has_period)) {
		r = str_format(other, sizeof other, "%s %lld", has_quota ? format(value, quota, "max") : "max",
			       has_period ? (long long)period : 100000LL);
		if (r == 0)
			r = put(limits, "cpu", NULL, "cpu.max", other);
	}
	if (r == 0 && resources->cpu_cpus && *resources->cpu_cpus)
		r = put(limits, "cpuset", "cpuset.cpus", "cpuset.cpus", resources->cpu_cpus);
	if (r == 0 && resources->cpu_mems && *resources->cpu_mems)
		r = put(limits, "cpuset", "cpuset.mems", "cpuset.mems", resources->cpu_mems);
	return r;
}

static int put_unified(const struct limits *limits, json_t *unified)
{
	const struct oci_group *group = oci_groups_find(limits->groups, "");
	const char *key;
	json_t *value;
	int r = 0;

	json_object_foreach(unified, key, value) {
		if (strchr(key, '/') || !group)
			return err_set(limits->err, ERR_USAGE, EINVAL, "cgroup", "linux.resources.unified: %s: %s", key,
				       group ? "is no file of a control group" : "there is no cgroup v2 here");
		r = write_value(limits, group, key, json_string_value(value));
		if (r < 0)
			return r;
	}
	return r;
}

static int put_device(const struct limits *limits, bool is_allowed, const char *rule)
{
	return put(limits, "devices", is_allowed ? "devices.allow" : "devices.deny", NULL, rule);
}

/* What every container has, whatever its rules say: making nodes of any kind, and the devices of its /dev. */
static int put_usual_devices(const struct limits *limits)
{
	static const char *const usual[] = { "c *:* m", "b *:* m", "c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm",
					     "c 1:9 rwm", "c 5:0 rwm", "c 5:1 rwm", "c 5:2 rwm", "c 136:* rwm" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(usual); i++)
		r = put_device(limits, true, usual[i]);
	return r;
}

static int put_devices(const struct limits *limits, const struct field_list *list)
{
	const struct oci_device *rules = list->items;
	char rule[VALUE_SIZE], major[16], minor[16];
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->count; i++) {
		const char *type = rules[i].type ? rules[i].type : "a";
		bool is_all = str_equal(type, "a") || !*type;

		if (!strchr("abc", *type) || strlen(type) > 1 ||
		    (rules[i].access && strspn(rules[i].access, "rwm") != strlen(rules[i].access)))
			return err_set(limits->err, ERR_USAGE, EINVAL, "cgroup",
				       "linux.resources.devices: a rule has type a, b or c, and access of r, w, m");
		(void)!str_format(major, sizeof major, rules[i].major < 0 ? "*" : "%d", (int)rules[i].major);
		(void)!str_format(minor, sizeof minor, rules[i].minor < 0 ? "*" : "%d", (int)rules[i].minor);
		r = is_all ? str_copy(rule, sizeof rule, "a")
			   : str_format(rule, sizeof rule, "%s %s:%s %s", type, major, minor,
					rules[i].access && *rules[i].access ? rules[i].access : "rwm");
		if (r == 0)
			r = put_device(limits, rules[i].is_allowed, rule);
	}
	return r < 0 || !list->count ? r : put_usual_devices(limits);
}

int oci_limits_apply(const struct oci_groups *groups, const struct oci_resources *resources, bool has_devices,
		     struct err *err)
{
	const struct limits limits = { groups, err };
	char value[VALUE_SIZE];
	int r = put_memory(&limits, resources);

	if (r == 0)
		r = put_cpu(&limits, resources);
	if (r == 0 && resources->pids_limit != FIELD_NONE && resources->pids_limit)
		r = put(&limits, "pids", "pids.max", "pids.max", format(value, resources->pids_limit, "max"));
	if (r == 0)
		r = put_unified(&limits, resources->unified);
	return r == 0 && has_devices ? put_devices(&limits, &resources->devices) : r;
}
