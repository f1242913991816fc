/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/canaries.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "build/mount-plan-parts.h"
#include "detect/alerts.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "os/proc.h"
#include "policy/decide.h"
#include "supervise/run.h"
#include "watch/watch.h"
#include "wire/secret.h"

/*
 * Who opens a canary is known for sure where file calls are mediated. Elsewhere inotify tells that it was opened, at
 * once and by whatever way, and not by whom: then it is the process that has it open, or else the one that was started
 * with its path among its arguments.
 */

enum { EVENTS_SIZE = 4096, PATH_SIZE = 64, DESCRIPTORS_MAX = 4096, SHOWN_PATH = 200 };

void canaries_init(struct canaries *canaries, struct run *run, struct alerts *alerts)
{
	*canaries = (struct canaries){ .run = run, .alerts = alerts, .inotify_fd = FD_NONE };
}

static void canaries_done(void *context)
{
	struct canaries *canaries = context;

	loop_remove(canaries->run->loop, &canaries->source);
	close_fd(&canaries->inotify_fd);
	for (size_t i = 0; i < canaries->count; i++) {
		free(canaries->items[i].named_by);
		close_fd(&canaries->items[i].fd);
	}
	free(canaries->items);
	canaries->items = NULL;
	canaries->count = 0;
}

static int make_all(struct canaries *canaries, const struct policy *policy, struct err *err)
{
	size_t count = strv_count(policy->data.canary_files);
	int r = 0;

	canaries->items = calloc(count, sizeof *canaries->items);
	if (!canaries->items)
		return err_set(err, ERR_INTERNAL, ENOMEM, "canaries", "out of memory");
	for (; r == 0 && canaries->count < count; canaries->count++) {
		struct planted *planted = &canaries->items[canaries->count];
		uint8_t random[CANARY_RANDOM];

		planted->path = policy->data.canary_files[canaries->count];
		planted->watch = -1;
		planted->fd = FD_NONE;
		r = random_bytes(random, sizeof random);
		if (r == 0)
			r = canary_make(&planted->canary, planted->path, random);
	}
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "canaries", "a canary cannot be made: %s", err_errno_name(-r))
		     : 0;
}

int canaries_open_tokens(const struct canaries *canaries, struct buf *scratch)
{
	cleanup_fd int near_fd = FD_NONE, far_fd = FD_NONE;
	int ends[2], r = 0;

	if (!canaries->count)
		return FD_NONE;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	near_fd = ends[0];
	far_fd = ends[1];
	for (size_t i = 0; r == 0 && i < canaries->count; i++) {
		const struct planted *planted = &canaries->items[i];
		/* Nothing stands in its place: it stands for something itself. */
		const char *token = planted->canary.token;
		struct secret_value value = { planted->path, token, strlen(token), "-" };

		r = secret_put_value(scratch, &value);
		if (r == 0)
			r = frame_send(near_fd, scratch, NULL, 0);
	}
	return r < 0 ? r : take_fd(&far_fd);
}

/* ---- where they are shown ---- */

static const char taken[] = "something real is there", linked[] = "a symbolic link leads there",
		  no_directory[] = "there is no directory for it";

/* The nearest path above that has a class; NULL: none has. */
static const struct file_plan_entry *entry_around(const struct policy *policy, const char *path)
{
	const struct file_plan_entry *entry = NULL;

	/* In order, so that the last one that holds it is the nearest. */
	for (size_t i = 0; i < policy->files.plan_count; i++)
		if (policy->files.plan[i].class != FILE_MASK && path_is_below(path, policy->files.plan[i].path))
			entry = &policy->files.plan[i];
	return entry;
}

static bool is_masked(const struct policy *policy, const char *path)
{
	return policy_classify(policy, path, &(size_t){ 0 }) == FILE_MASK;
}

/*
 * In a staged tree there must be a directory for it, which the sandbox sees, and nothing else that it sees. No symbolic
 * link on the way from the tree's top: a layer that had a directory in its place would hide what it leads to.
 */
static const char *why_not_staged(const struct policy *policy, const char *tree, const char *path)
{
	cleanup_fd int tree_fd = fd_open_at(AT_FDCWD, tree, O_PATH | O_DIRECTORY, 0), fd = FD_NONE;
	char parent[PATH_MAX], *below;
	struct stat st;

	if (lstat(path, &st) == 0 && !is_masked(policy, path))
		return taken;
	if (tree_fd < 0 || path_join(parent, sizeof parent, path, "..") < 0 || is_masked(policy, parent))
		return no_directory;
	below = parent + strlen(tree);
	below += strspn(below, "/");
	fd = path_open2(tree_fd, *below ? below : ".", O_PATH | O_DIRECTORY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	return fd >= 0 ? NULL : fd == -ELOOP ? linked : no_directory;
}

static int plan_one(struct planted *planted, const struct policy *policy, struct plan *plan)
{
	static const char rule[] = "data.canaries";
	const struct canary *canary = &planted->canary;
	const struct file_plan_entry *entry = entry_around(policy, planted->path);
	enum file_class class = entry ? entry->class : FILE_HIDDEN;

	if (class == FILE_STAGE)
		planted->why_not = why_not_staged(policy, entry->path, planted->path);
	else if (class != FILE_HIDDEN && class != FILE_SCRATCH)
		planted->why_not = taken;
	planted->is_planted = !planted->why_not;
	if (!planted->is_planted)
		return 0;
	if (class == FILE_STAGE)
		return plan_add_stage_file(plan, planted->path, canary->text, canary->text_size, rule);
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_FILE, .flags = JAIL_PLANTED, .target = planted->path,
						   .content = canary->text, .content_size = canary->text_size,
						   .rule = rule });
}

int canaries_plan(struct canaries *canaries, const struct policy *policy, struct plan *plan)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < canaries->count; i++)
		r = plan_one(&canaries->items[i], policy, plan);
	return r;
}

/* ---- who opens one ---- */

/* Whether this process has the file open. */
static bool holds(int proc_fd, pid_t pid, const struct planted *planted, unsigned *left)
{
	char path[PATH_SIZE];
	cleanup_fd int fd = FD_NONE;
	unsigned number = 0;
	struct stat st;

	if (str_format(path, sizeof path, "%d/fd", pid) == 0)
		fd = path_open2(proc_fd, path, O_PATH | O_DIRECTORY, 0, 0);
	/* Programs have their files at small numbers: no directory of thousands is read for it. */
	for (; fd >= 0 && number < 64 && *left; number++, --*left) {
		if (str_format(path, sizeof path, "%u", number) == 0 && fstatat(fd, path, &st, 0) == 0 &&
		    st.st_ino == planted->inode && st.st_dev == planted->device)
			return true;
	}
	return false;
}

static pid_t find_holder(struct canaries *canaries, const struct planted *planted, char program[PATH_MAX])
{
	cleanup_proc_list struct proc_list list = { .proc_fd = FD_NONE };
	unsigned left = DESCRIPTORS_MAX;
	char path[PATH_SIZE];
	ssize_t size;

	if (proc_list_namespace(canaries->run->init.pid, &list) < 0)
		return 0;
	for (size_t i = list.count; i-- > 0;) {
		if (!holds(list.proc_fd, list.stats[i].pid, planted, &left))
			continue;
		size = str_format(path, sizeof path, "%d/exe", list.stats[i].pid) == 0
			       ? readlinkat(list.proc_fd, path, program, PATH_MAX - 1) : -1;
		program[size > 0 ? size : 0] = 0;
		return list.stats[i].pid;
	}
	return 0;
}

static int tell_touched(struct canaries *canaries, struct planted *planted, const struct alert *how)
{
	struct alert alert = *how;

	alert.kind = ALERT_TOUCHED;
	alert.canary = planted->path;
	alert.where = alert.is_linked ? "the file was given another name" : "the file was opened";
	planted->is_touched = true;
	return alerts_raise(canaries->alerts, &alert);
}

static int tell_opened(struct canaries *canaries, struct planted *planted, pid_t pid, const char *program)
{
	return tell_touched(canaries, planted, &(struct alert){ .pid = pid, .program = program });
}

static int on_opened(struct canaries *canaries, struct planted *planted)
{
	char program[PATH_MAX];
	pid_t pid = find_holder(canaries, planted, program);

	/* The numbers of a procfs of its own are not those that the log has. */
	if (pid)
		return tell_opened(canaries, planted, 0, program);
	return tell_opened(canaries, planted, planted->named_by ? planted->named_pid : 0, planted->named_by);
}

/* Whether the name that it was planted under still leads to it. */
static bool is_in_place(const struct canaries *canaries, const struct planted *planted)
{
	cleanup_fd int fd = path_open2(canaries->run->identity->root_fd, planted->path, O_PATH, 0,
				       RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);

	return fd >= 0 && fd_is_same_file(fd, planted->fd);
}

static int tell_named(struct canaries *canaries, struct planted *planted)
{
	return tell_touched(canaries, planted, &(struct alert){ .is_linked = true, .program = planted->named_by,
							   .pid = planted->named_by ? planted->named_pid : 0 });
}

/*
 * Its links or its mode changed. In a staged tree what is opened by a second name is another file to inotify, so that
 * to have one is the touch.
 */
static int on_changed(struct canaries *canaries, struct planted *planted)
{
	struct stat st;

	if (fstat(planted->fd, &st) < 0 || !st.st_nlink || (st.st_nlink == 1 && is_in_place(canaries, planted)))
		return 0;
	return tell_named(canaries, planted);
}

static int on_events(void *context, uint32_t events)
{
	struct canaries *canaries = context;
	_Alignas(struct inotify_event) char memory[EVENTS_SIZE];
	ssize_t size = read(canaries->inotify_fd, memory, sizeof memory), at = 0;
	int r = 0;

	while (r == 0 && at + (ssize_t)sizeof(struct inotify_event) <= size) {
		const struct inotify_event *event = (const void *)(memory + at);

		for (size_t i = 0; r == 0 && i < canaries->count; i++) {
			struct planted *planted = &canaries->items[i];

			if (planted->watch != event->wd || planted->is_touched)
				continue;
			if (event->mask & IN_OPEN)
				r = on_opened(canaries, planted);
			else if (event->mask & IN_MOVE_SELF)
				/* Also where it is back by now: it was kept for later, and may be read there. */
				r = tell_named(canaries, planted);
			else if (event->mask & IN_ATTRIB)
				r = on_changed(canaries, planted);
		}
		at += (ssize_t)(sizeof *event + event->len);
	}
	return r;
}

static int watch_one(struct canaries *canaries, struct planted *planted, int root_fd)
{
	int fd = planted->fd = path_open2(root_fd, planted->path, O_PATH, 0, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
	char path[PATH_SIZE];
	struct stat st;
	int r = fd;

	if (r >= 0)
		r = fstat(fd, &st) < 0 ? -errno : str_format(path, sizeof path, "/proc/self/fd/%d", fd);
	if (r < 0)
		return r;
	planted->device = st.st_dev;
	planted->inode = st.st_ino;
	planted->watch = inotify_add_watch(canaries->inotify_fd, path, IN_OPEN | IN_ATTRIB | IN_MOVE_SELF);
	return planted->watch < 0 ? -errno : 0;
}

/* *ret_path: which one it failed at; NULL: all. */
static int watch_all(struct canaries *canaries, const char **ret_path)
{
	cleanup_fd int root_fd = FD_NONE;
	char path[PATH_SIZE];
	int r = str_format(path, sizeof path, "/proc/%d/root", canaries->run->init.pid);

	if (r == 0)
		r = root_fd = fd_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	if (r >= 0)
		r = canaries->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (r < 0)
		return root_fd < 0 ? r : -errno;
	for (size_t i = 0; i < canaries->count; i++) {
		r = canaries->items[i].is_planted ? watch_one(canaries, &canaries->items[i], root_fd) : 0;
		*ret_path = canaries->items[i].path;
		if (r < 0)
			return r;
	}
	*ret_path = NULL;
	canaries->source = (struct loop_source){ .fd = canaries->inotify_fd, .events = EPOLLIN, .ready = on_events,
						 .context = canaries };
	return loop_add(canaries->run->loop, &canaries->source);
}

static const char *hint_for(int r)
{
	if (r == -EMFILE || r == -ENOSPC)
		return "raise fs.inotify.max_user_instances and max_user_watches";
	if (r == -ELOOP || r == -ENOENT || r == -ENOTDIR)
		return "something that was staged before is in its way: take it out of data.canaries, or name another";
	return "take data.canaries out of the policy";
}

int canaries_watch(struct canaries *canaries)
{
	const char *path = NULL;
	int r = canaries->count ? watch_all(canaries, &path) : 0;

	if (r == 0)
		return 0;
	err_set(canaries->run->err, ERR_STATE, -r, "canaries", "the canary %s cannot be watched: %s", path ? path
		: "files",
		err_errno_name(-r));
	err_hint(canaries->run->err, "%s", hint_for(r));
	return r;
}

bool canaries_have(const struct canaries *canaries, const char *path)
{
	for (size_t i = 0; i < canaries->count; i++)
		if (canaries->items[i].is_planted && str_equal(canaries->items[i].path, path))
			return true;
	return false;
}

/* ---- where a token turns up ---- */

static int see_argument(struct canaries *canaries, struct planted *planted, pid_t pid, const char *program,
			const char *argument)
{
	const char *spelling = canary_find(&planted->canary, argument);
	struct alert alert = {
		.kind = ALERT_SENT, .canary = planted->path, .where = "the arguments of a program",
		.spelling = spelling, .pid = pid, .program = program,
	};

	/* With the home before it, as "~", or relative: the last two names of it are what all have. */
	if (!spelling && !planted->is_touched && strstr(argument, path_basename(planted->path))) {
		free(planted->named_by);
		planted->named_by = str_dup(program);
		planted->named_pid = pid;
	}
	return spelling ? alerts_raise(canaries->alerts, &alert) : 0;
}

static int on_exec(struct canaries *canaries, const struct event_exec *event)
{
	const char *const *argv = event->argv;
	int r = 0;

	for (size_t i = 0; r == 0 && i < canaries->count; i++)
		for (size_t at = 1; r == 0 && argv && argv[0] && argv[at]; at++)
			r = see_argument(canaries, &canaries->items[i], event->pid, event->program, argv[at]);
	return r;
}

static int on_lookup(struct canaries *canaries, const struct event_lookup *event)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < canaries->count; i++) {
		const char *spelling = canary_find_in_name(&canaries->items[i].canary, event->name);
		struct alert alert = {
			.kind = ALERT_SENT, .canary = canaries->items[i].path, .where = "a name that was looked up",
			.spelling = spelling, .host = event->name, .is_refused = event->is_refused,
		};

		if (spelling)
			r = alerts_raise(canaries->alerts, &alert);
	}
	return r;
}

static int on_file(struct canaries *canaries, const struct event_file *event)
{
	char program[PATH_MAX];

	for (size_t i = 0; event->is_opened && i < canaries->count; i++) {
		struct planted *planted = &canaries->items[i];
		pid_t pid = event->call->pid;

		if (planted->is_planted && !planted->is_touched && str_equal(planted->path, event->call->path))
			return tell_opened(canaries, planted, pid,
					   proc_program(pid, program, sizeof program) < 0 ? NULL : program);
	}
	return 0;
}

static int note(void *context, enum event_type type, const void *detail)
{
	if (type == EVENT_FILE)
		return on_file(context, detail);
	return type == EVENT_EXEC ? on_exec(context, detail) : on_lookup(context, detail);
}

int canaries_make(struct canaries *canaries)
{
	const struct policy *policy = canaries->run->policy->policy;

	if (!strv_count(policy->data.canary_files))
		return 0;
	canaries->subscriber = (struct subscriber){
		1 << EVENT_EXEC | 1 << EVENT_FILE | 1 << EVENT_LOOKUP, note, canaries, NULL,
	};
	hub_subscribe(canaries->run->hub, &canaries->subscriber);
	return make_all(canaries, policy, canaries->run->err);
}

void canaries_to_json(const struct canaries *canaries, struct json *json)
{
	if (!canaries->count)
		return;
	json_array_begin(json, "canaries");
	for (size_t i = 0; i < canaries->count; i++) {
		const struct planted *planted = &canaries->items[i];

		json_object_begin(json, NULL);
		json_bytes(json, "path", planted->path, strlen(planted->path));
		json_bool(json, "planted", planted->is_planted);
		if (planted->why_not)
			json_string(json, "why", planted->why_not);
		json_object_end(json);
	}
	json_array_end(json);
}

void canaries_put_summary(const struct canaries *canaries, struct buf *out)
{
	for (size_t i = 0; i < canaries->count; i++) {
		const struct planted *planted = &canaries->items[i];

		/* What is there itself needs no canary. */
		if (!planted->why_not || planted->why_not == taken)
			continue;
		buf_printf(out, "atoll: %s: no canary was planted at ", canaries->run->request->session);
		buf_put_escaped(out, planted->path, strlen(planted->path), SHOWN_PATH);
		buf_printf(out, ": %s\n", planted->why_not);
	}
}

const struct module canaries_module = {
	.name = "canaries",
	.done = canaries_done,
};
