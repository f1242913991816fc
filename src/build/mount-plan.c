/* SPDX-License-Identifier: Apache-2.0 */
#include "build/mount-plan.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "build/mount-plan-parts.h"
#include "os/fd.h"
#include "os/mount-list.h"
#include "os/path.h"
#include "policy/decide.h"
#include "policy/decide-exec.h"
#include "wire/desk.h"

/*
 * The root starts empty. What every program needs comes first (proc, dev, the links of a merged
 * /usr, /run/atoll), then the policy's own plan, parents before children, then what covers something up:
 * masks and programs that may not run.
 */

int plan_grow(void *items, size_t count, size_t *capacity, size_t item_size)
{
	void **array = items;
	size_t grown = *capacity ? 2 * *capacity : 32;
	void *memory;

	if (count < *capacity)
		return 0;
	if (count >= PLAN_MOUNTS_MAX)
		return -E2BIG;
	memory = realloc(*array, grown * item_size);
	if (!memory)
		return -ENOMEM;
	*array = memory;
	*capacity = grown;
	return 0;
}

const char *plan_keep(struct plan *plan, char *text)
{
	if (!text || plan_grow(&plan->strings, plan->string_count, &plan->string_capacity, sizeof *plan->strings) < 0) {
		free(text);
		return NULL;
	}
	return plan->strings[plan->string_count++] = text;
}

bool plan_shows_file(const struct plan *plan, const char *path)
{
	size_t rule;
	enum file_class class = policy_classify(plan->input.policy, path, &rule);

	for (size_t i = 0; i < plan->count; i++)
		if (str_equal(plan->mounts[i].target, path))
			return false;
	return class != FILE_HIDDEN && class != FILE_MASK && class != FILE_SCRATCH;
}

int plan_add(struct plan *plan, struct jail_mount mount)
{
	if (!mount.target || plan_grow(&plan->mounts, plan->count, &plan->capacity, sizeof *plan->mounts) < 0)
		return -ENOMEM;
	plan->mounts[plan->count++] = mount;
	return 0;
}

int plan_points_below(struct plan *plan, const char *path, char *const **ret_points)
{
	int r = plan->points ? 0 : mount_points_below("/", &plan->points), count = 0;
	char **first;

	if (r < 0)
		return r;
	for (first = plan->points; *first && (str_equal(*first, path) || !path_is_below(*first, path)); first++)
		;
	while (first[count] && path_is_below(first[count], path))
		count++;
	*ret_points = first;
	return count;
}

static int add_tmpfs(struct plan *plan, const char *target, const char *rule)
{
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_TMPFS,
					      .target = target,
					      .rule = rule,
					      .flags = plan->new_binaries ? 0 : JAIL_NOEXEC,
					      .size_bytes = plan->scratch_bytes,
					      .inodes = plan->scratch_inodes });
}

const struct file_plan_entry *plan_entry_around(const struct policy *policy, size_t index)
{
	const char *path = policy->files.plan[index].path;

	for (size_t i = index; i-- > 0;)
		if (policy->files.plan[i].class != FILE_MASK && path_is_below(path, policy->files.plan[i].path))
			return &policy->files.plan[i];
	return NULL;
}

static uint32_t entry_flags(const struct plan *plan, const struct policy *policy, size_t index)
{
	const struct file_plan_entry *entry = &policy->files.plan[index], *around;
	uint32_t flags = (entry->flags & FILE_OPTIONAL ? JAIL_OPTIONAL : 0) |
			 (entry->flags & FILE_NOEXEC ? JAIL_NOEXEC : 0);

	if (entry->class == FILE_WRITE)
		return flags | JAIL_OWNED | (plan->new_binaries ? 0 : JAIL_NOEXEC);
	around = plan_entry_around(policy, index);
	/*
	 * What belongs to the project looks as if it belonged to whoever works on it, read-only or not; so do the files of a
	 * tree that is written, which its owner alone may read, as agents make their own. (What is around all is no tree:
	 * /sys lies in it, which cannot be mapped.)
	 */
	if ((policy->project[0] && path_is_below(entry->path, policy->project)) ||
	    (around && around->path[1] && (around->class == FILE_WRITE || around->class == FILE_STAGE)))
		flags |= JAIL_OWNED;
	return flags | JAIL_RDONLY;
}

/* /bin, /lib and their like are links on a merged /usr: a link costs less than a mount and is what programs
 * expect. */
static int add_top_link(struct plan *plan, const struct file_plan_entry *entry, const char *rule,
			bool *ret_is_link)
{
	char link[PATH_MAX];
	ssize_t length = readlink(entry->path, link, sizeof link - 1);
	const char *text;

	*ret_is_link = length > 0;
	if (length <= 0)
		return 0;
	text = plan_keep(plan, strndup(link, (size_t)length));
	if (!text)
		return -ENOMEM;
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_SYMLINK,
					      .target = entry->path,
					      .content = text,
					      .content_size = (size_t)length,
					      .rule = rule });
}

/*
 * Whether names below a read-only entry can be taken out of it, and put into it, by a layer. Root would lose sight of
 * what the host has mounted there; to a user the kernel gives no such layer.
 */
static bool takes_names(struct plan *plan, const struct policy *policy, size_t index)
{
	const struct file_plan_entry *entry = &policy->files.plan[index];
	bool found = str_equal(entry->path, "/etc");
	char *const *points;

	/* In order, what is below an entry comes next. */
	for (size_t i = index + 1; !found && i < policy->files.plan_count; i++) {
		if (!path_is_below(policy->files.plan[i].path, entry->path))
			break;
		found = policy->files.plan[i].class == FILE_MASK;
	}
	if (!found || entry->class != FILE_READ || entry->flags & FILE_NOFOLLOW)
		return false;
	return !plan->input.run_as_root || plan_points_below(plan, entry->path, &points) == 0;
}

/* How names are taken out of it, or put into it, or 0. */
static uint32_t names_flag(struct plan *plan, const struct policy *policy, size_t index)
{
	const struct file_plan_entry *entry = &policy->files.plan[index];

	if (takes_names(plan, policy, index))
		return JAIL_LAYERED;
	return policy->agent.settings && str_equal(entry->path, "/etc") && entry->class == FILE_READ &&
			       !(entry->flags & FILE_NOFOLLOW) ? JAIL_SPREAD : 0;
}

static int add_entry(struct plan *plan, const struct policy *policy, size_t index, struct err *err)
{
	const struct file_plan_entry *entry = &policy->files.plan[index];
	const char *rule = policy->files.rules[entry->rule].origin.id;
	const struct file_plan_entry *around;
	bool is_link = !strchr(entry->path + 1, '/');
	struct stat st;
	int r = 0;

	if (entry->class == FILE_SCRATCH)
		return add_tmpfs(plan, entry->path, rule);
	if (entry->class == FILE_MASK)
		return 0; /* comes last: add_masks() */
	if (entry->class == FILE_READ && plan_is_of_root(plan, entry->path))
		return 0; /* plan_add_root() has it */
	if (entry->class == FILE_STAGE)
		return plan_add_stage(plan, policy, index, err);
	/* Most optional entries name what this machine does not have: one look here saves the jail four. */
	if (entry->flags & FILE_OPTIONAL) {
		if (lstat(entry->path, &st) < 0)
			return 0;
		is_link = is_link && S_ISLNK(st.st_mode);
	}
	if (is_link)
		r = add_top_link(plan, entry, rule, &is_link);
	if (r < 0 || is_link)
		return r;
	around = entry->flags & FILE_NOFOLLOW ? plan_entry_around(policy, index) : NULL;
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_BIND,
					      .flags = entry_flags(plan, policy, index) |
						       names_flag(plan, policy, index),
					      .target = entry->path,
					      .source = entry->path,
					      .source_trusted = around ? strlen(around->path) : 0,
					      .rule = rule });
}

/* A file masked under one name is masked under its real one too (~/.ssh may be a link). */
static int add_real_mask(struct plan *plan, const char *path, const char *rule)
{
	char real[PATH_MAX];

	if (path_real(path, real, sizeof real) < 0)
		return 0;
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_MASK,
					      .target = plan_keep(plan, str_dup(real)),
					      .flags = JAIL_OPTIONAL,
					      .rule = rule });
}

/*
 * A masked name that is absent from a tree that is written in place: nothing can be mounted over it
 * without creating it on the host, so a file that the host puts there later would be seen.
 */
static int check_late_mask(const struct policy *policy, const struct file_plan_entry *entry,
			   uint32_t *ret_missing, struct err *err)
{
	if (policy->degrade & 1u << WALL_MASK_LATE) {
		*ret_missing |= 1u << WALL_MASK_LATE;
		return 0;
	}
	err_set(err, ERR_WALL, 0, wall_names[WALL_MASK_LATE],
		"%s (%s) does not exist, so it cannot be masked in a tree that is written in place",
		entry->path, policy->files.rules[entry->rule].origin.id);
	err_hint(err, "create it, drop the rule, or accept it with `degrade: [%s]`",
		 wall_names[WALL_MASK_LATE]);
	return -ENOENT;
}

/*
 * atoll's own directories are trusted by the next run: an agent that may write the home could make the one for policies
 * or for cached snapshots, were it not there. So it is made now; that one is never let go (`degrade:`).
 */
static int make_own_directory(const struct policy *policy, const struct file_plan_entry *entry, struct stat *st,
			      struct err *err)
{
	int r = path_make_directories(AT_FDCWD, entry->path, 0700);

	if (r == 0 && lstat(entry->path, st) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	err_set(err, ERR_WALL, -r, wall_names[WALL_MASK_LATE],
		"%s (%s) cannot be made, and a program inside could make it: %s", entry->path,
		policy->files.rules[entry->rule].origin.id, err_errno_name(-r));
	err_hint(err, "make it yourself, as a directory that only you can write to");
	return r;
}

/* One look at the host for each mask: most of them name what is not there. */
static int add_masks(struct plan *plan, const struct policy *policy, uint32_t *ret_missing, struct err *err)
{
	for (size_t i = 0; i < policy->files.plan_count; i++) {
		const struct file_plan_entry *entry = &policy->files.plan[i];
		const char *rule = policy->files.rules[entry->rule].origin.id;
		const struct file_plan_entry *above;
		enum file_class around;
		bool is_there;
		struct stat st;
		int r = 0;

		/* Of the root nothing is the host's. */
		if (entry->class != FILE_MASK || plan_is_of_root(plan, entry->path))
			continue;
		above = plan_entry_around(policy, i);
		if (above && above->class == FILE_STAGE) {
			r = plan_add_stage_mask(plan, entry, rule);
			if (r < 0)
				return r;
			continue;
		}
		around = above ? above->class : FILE_HIDDEN;
		is_there = lstat(entry->path, &st) == 0;
		if (!is_there && around == FILE_WRITE && str_equal(rule, "builtin.state")) {
			r = make_own_directory(policy, entry, &st, err);
			if (r < 0)
				return r;
			is_there = true;
		}
		if (!is_there)
			r = around == FILE_WRITE ? check_late_mask(policy, entry, ret_missing, err) : 0;
		else if (S_ISLNK(st.st_mode))
			r = add_real_mask(plan, entry->path, rule);
		else if (around != FILE_HIDDEN && around != FILE_SCRATCH)
			r = plan_add(plan, (struct jail_mount){ .kind = JAIL_MASK,
							   .target = entry->path,
							   .flags = JAIL_OPTIONAL,
							   .rule = rule });
		if (r < 0)
			return r;
	}
	return 0;
}

/* The directory that was looked into last: a long list of programs names few. */
struct looked_into {
	char path[PATH_MAX];
	int fd; /* owned */
};

/* Most names of a long list are not there, and to be told so in this way costs half an open. */
static bool is_there(struct looked_into *last, const char *path)
{
	const char *name = path_basename(path);
	size_t length = (size_t)(name - path);
	struct stat st;

	if (length >= sizeof last->path)
		return false;
	if (strncmp(last->path, path, length) != 0 || last->path[length]) {
		memcpy(last->path, path, length);
		last->path[length] = 0;
		close_fd(&last->fd);
		last->fd = fd_open_at(AT_FDCWD, last->path, O_PATH | O_DIRECTORY, 0);
	}
	return last->fd >= 0 && fstatat(last->fd, name, &st, 0) == 0;
}

static int add_refused_program(struct plan *plan, const struct policy *policy, size_t index)
{
	const struct exec_rule *rule = &policy->exec.rules[index];
	const char *target;
	char real[PATH_MAX];
	int r = plan_grow(&plan->refused, plan->refused_count, &plan->refused_capacity, sizeof *plan->refused);

	if (r < 0)
		return r;
	plan->refused[plan->refused_count++] = (uint32_t)index;
	/* The file itself is covered, so that no other name of it runs: links and aliases lead to the same place. */
	if (plan_real(plan, rule->program, real) < 0)
		return 0;
	r = plan_grow(&plan->covers, plan->cover_count, &plan->cover_capacity, sizeof *plan->covers);
	if (r < 0)
		return r;
	target = plan_keep(plan, str_dup(real));
	plan->covers[plan->cover_count++] = (struct jail_mount){
		.kind = JAIL_MASK, .flags = JAIL_OPTIONAL, .rule = rule->origin.id, .target = target,
	};
	return target ? 0 : -ENOMEM;
}

int plan_refuse(struct plan *plan, const struct policy *policy, const struct jail_mount **ret_masks, size_t *ret_count)
{
	struct looked_into last = { .path = "", .fd = FD_NONE };
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy->exec.count; i++) {
		const struct exec_rule *rule = &policy->exec.rules[i];

		if (exec_rule_is_mounted(rule) &&
		    (plan_is_of_root(plan, rule->program) || is_there(&last, rule->program)))
			r = add_refused_program(plan, policy, i);
	}
	close_fd(&last.fd);
	*ret_masks = plan->covers;
	*ret_count = plan->cover_count;
	return r;
}

static int add_devices(struct plan *plan, const struct policy *policy)
{
	for (size_t i = 0; i < policy->device_count; i++) {
		const char *path = plan_keep(plan, str_printf("/dev/%s", policy->devices[i].name));
		int r = plan_add(plan, (struct jail_mount){ .kind = JAIL_DEVICE,
						       .target = path,
						       .source = path,
						       .rule = policy->devices[i].origin.id });

		if (r < 0)
			return r;
	}
	return 0;
}

bool plan_policy_names(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->files.plan_count; i++)
		if (str_equal(policy->files.plan[i].path, path))
			return true;
	return false;
}

/*
 * Where the kernel lists disks and devices there are none: lsblk, and whoever else looks for some, finds an empty
 * directory and no error. Processors are the policy's affair (files.read). Not in a /sys that the policy shows.
 */
static int add_devices_seen(struct plan *plan, const struct policy *policy)
{
	static const char *const lists[] = { "/sys/block", "/sys/class", "/sys/dev/block", "/sys/dev/char" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(lists); i++)
		if (!plan_policy_names(policy, "/sys") && !plan_policy_names(policy, "/sys/dev") &&
		    !plan_policy_names(policy, lists[i]))
			r = plan_add(plan, (struct jail_mount){ .kind = JAIL_DIRECTORY, .target = lists[i],
								.rule = "builtin.sys" });
	return r;
}

static int add_fixed(struct plan *plan, const struct plan_input *input)
{
	static const struct jail_mount first[] = {
		{ .kind = JAIL_PROC, .target = "/proc", .rule = "builtin.proc" },
		{ .kind = JAIL_DEV, .target = "/dev", .rule = "builtin.dev" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		struct jail_mount mount = first[i];
		int r;

		mount.size_bytes = plan->scratch_bytes; /* of /dev/shm */
		mount.inodes = plan->scratch_inodes;
		mount.flags = plan->new_binaries ? 0 : JAIL_NOEXEC;
		r = plan_add(plan, mount);
		if (r < 0)
			return r;
	}
	return add_devices_seen(plan, input->policy);
}

/* Whether programs at this path of the host run inside as well. */
static bool is_runnable_inside(const struct policy *policy, const char *path)
{
	struct action action = { .kind = ACTION_EXEC, .subject = path };
	size_t rule;

	return policy_decide(policy, &action).verdict == VERDICT_ALLOW &&
	       policy_classify(policy, path, &rule) == FILE_READ;
}

/* Where to ask, and the client for it: at the same place in every sandbox, wherever it was installed. */
static int add_desk(struct plan *plan, const struct plan_input *input)
{
	struct jail_mount client = { .kind = JAIL_BIND, .flags = JAIL_RDONLY | JAIL_OPTIONAL, .target = DESK_CLIENT,
				     .source = input->client_path, .rule = "builtin.ask" };
	int r;

	if (!policy_hears_requests(input->policy))
		return 0;
	r = plan_add(plan, (struct jail_mount){ .kind = JAIL_SOCKET, .target = DESK_SOCKET, .rule = "builtin.ask" });
	if (!input->root_from && is_runnable_inside(input->policy, input->client_path))
		client = (struct jail_mount){ .kind = JAIL_SYMLINK, .target = DESK_CLIENT,
					      .content = input->client_path,
					      .content_size = strlen(input->client_path), .rule = "builtin.ask" };
	return r < 0 ? r : plan_add(plan, client);
}

static int add_run_atoll(struct plan *plan, const struct plan_input *input)
{
	int r = plan_add(plan, (struct jail_mount){ .kind = JAIL_FILE,
					       .target = "/run/atoll/limits.md",
					       .content = input->limits_text,
					       .content_size = input->limits_size,
					       .rule = "builtin.limits" });

	if (r < 0)
		return r;
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_BIND,
					      .flags = JAIL_RDONLY | JAIL_NOEXEC | JAIL_AGENT_APPEND | JAIL_LATE,
					      .target = "/run/atoll/denials.jsonl",
					      .source = input->denials_path,
					      .rule = "builtin.denials" });
}

static int add_policy(struct plan *plan, const struct policy *policy, struct err *err)
{
	/* First: the project may lie below it. */
	int r = plan_policy_names(policy, "/tmp") ? 0 : add_tmpfs(plan, "/tmp", "builtin.tmp");

	if (r == 0 && plan->input.root_from)
		r = plan_add_root(plan, err);
	for (size_t i = 0; r == 0 && i < policy->files.plan_count; i++)
		r = add_entry(plan, policy, i, err);
	return r;
}

static int contribute(struct plan *plan, const struct plan_contributor *by)
{
	return by->add ? by->add(by->context, plan->input.policy, plan) : 0;
}

int plan_new(struct plan **ret_plan, const struct plan_input *input, uint32_t *ret_missing, struct err *err)
{
	const struct policy *policy = input->policy;
	uint64_t disk = policy->limits[RESOURCE_DISK].value, inodes = policy->limits[RESOURCE_INODES].value;
	struct plan *plan;
	int r;

	plan = calloc(1, sizeof *plan);
	if (!plan)
		return err_set(err, ERR_INTERNAL, ENOMEM, "plan", "out of memory");
	err->code = ERR_NONE;
	plan->input = *input;
	plan->new_binaries = policy->exec.new_binaries;
	plan->scratch_bytes = disk == NUM_UNLIMITED ? (uint64_t)PLAN_SCRATCH_DEFAULT_MIB << 20 : disk;
	plan->scratch_inodes = inodes == NUM_UNLIMITED ? 0 : inodes;
	r = add_fixed(plan, input);
	if (r == 0)
		r = add_policy(plan, policy, err);
	if (r == 0)
		r = plan_check_stage(plan, err);
	if (r == 0)
		r = add_masks(plan, policy, ret_missing, err);
	if (r == 0)
		r = contribute(plan, &input->behind_masks);
	if (r == 0)
		r = add_devices(plan, policy);
	if (r == 0)
		r = plan_add_etc(plan);
	if (r == 0)
		r = add_run_atoll(plan, input);
	if (r == 0)
		r = add_desk(plan, input);
	if (r == 0)
		r = contribute(plan, &input->last);
	if (r < 0) {
		plan_free(plan);
		if (err->code == ERR_NONE)
			err_set(err, ERR_INTERNAL, -r, "plan", "cannot plan the mounts: %s",
				err_errno_name(-r));
		return r;
	}
	*ret_plan = plan;
	return 0;
}

void plan_free(struct plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; i < plan->string_count; i++)
		free(plan->strings[i]);
	for (size_t i = 0; i < plan->tree_count; i++)
		free(plan->layers[i]);
	strv_free(plan->points);
	free(plan->strings);
	free(plan->trees);
	free(plan->layers);
	free(plan->masks);
	free(plan->refused);
	free(plan->covers);
	free(plan->mounts);
	free(plan);
}

const uint32_t *plan_refused(const struct plan *plan, size_t *ret_count)
{
	*ret_count = plan->refused_count;
	return plan->refused;
}

const struct jail_mount *plan_mounts(const struct plan *plan, size_t *ret_count)
{
	*ret_count = plan->count;
	return plan->mounts;
}
