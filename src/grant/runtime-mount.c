/* SPDX-License-Identifier: Apache-2.0 */
#include "grant/runtime-mount.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/str.h"
#include "build/enter-namespaces.h"
#include "grant/mount-tree.h"
#include "jail/mediation.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/path.h"
#include "session/run-request.h"
#include "supervise/run.h"
#include "watch/watch.h"

/*
 * Theory of operation. What is granted is attached at its own path, on a name that is made in a file system of the
 * sandbox's own: its private home, /tmp, or the root directory. Landlock cannot be told of it any more, but it judges a
 * file by the directories above it, across mounts, the covered mount point alone left out. So a private directory above
 * lends its rights, which are all; and the root directory its own, which for policies that can grow are to read
 * (jail_spec.takes_grants): what lies there and not below something private can be granted for reading only.
 *
 * Who asked chose the path, and may write to some directories that it leads through. What the person was shown is
 * the path without links and the object behind it, which is held open until then; it is brought in only if the path, by
 * then with no link in it, still leads to that object.
 */

enum { NS_PER_MS = 1000000 };

struct runtime_mount {
	char *path;          /* owned */
	int mount_fd;        /* of its mount inside; owned */
	bool is_writable, is_directory;
	uint32_t grant;      /* 0: not tied yet */
	uint64_t until_ns;
};

struct shown_object {
	char *path;          /* owned; NULL: free */
	int fd;
	uint64_t turn;
};

struct runtime_mount_table {
	struct runtime_mount bound[RUNTIME_MOUNTS_MAX];
	size_t bound_count;
	struct shown_object shown[SHOWN_OBJECTS_MAX];
	uint64_t turn;
};

static int open_table(struct runtime_mounts *mounts)
{
	if (!mounts->table)
		mounts->table = calloc(1, sizeof *mounts->table);
	return mounts->table ? 0 : -ENOMEM;
}

static void runtime_mounts_done(void *context)
{
	struct runtime_mounts *mounts = context;
	struct runtime_mount_table *table = mounts->table;

	if (!table)
		return;
	for (size_t i = 0; i < table->bound_count; i++) {
		free(table->bound[i].path);
		close_fd(&table->bound[i].mount_fd);
	}
	for (size_t i = 0; i < SHOWN_OBJECTS_MAX; i++) {
		if (table->shown[i].path)
			close_fd(&table->shown[i].fd);
		free(table->shown[i].path);
	}
	free(table);
	mounts->table = NULL;
}

/* ---- what was shown ---- */

static struct shown_object *find_shown(struct runtime_mount_table *table, const char *path)
{
	for (size_t i = 0; i < SHOWN_OBJECTS_MAX; i++)
		if (table->shown[i].path && str_equal(table->shown[i].path, path))
			return &table->shown[i];
	return NULL;
}

/* A free place, else that of the one which nobody has looked at for the longest, nor waits for. NULL: there is none. */
static struct shown_object *find_place(struct runtime_mounts *mounts)
{
	struct shown_object *oldest = NULL;

	for (size_t i = 0; i < SHOWN_OBJECTS_MAX; i++) {
		struct shown_object *shown = &mounts->table->shown[i];

		if (!shown->path)
			return shown;
		if ((!oldest || shown->turn < oldest->turn) &&
		    !mounts->owner.is_awaited(mounts->owner.context, shown->path))
			oldest = shown;
	}
	return oldest;
}

/* Takes fd. The first object that was shown under a path stays the one that is meant. */
static int remember(struct runtime_mounts *mounts, const char *path, int fd)
{
	struct runtime_mount_table *table = mounts->table;
	struct shown_object *oldest = find_shown(table, path);
	char *kept;

	if (oldest) {
		oldest->turn = ++table->turn;
		close(fd);
		return 0;
	}
	oldest = find_place(mounts);
	if (!oldest) {
		close(fd);
		return -EMFILE;
	}
	kept = str_dup(path);
	if (!kept) {
		close(fd);
		return -ENOMEM;
	}
	if (oldest->path)
		close(oldest->fd);
	free(oldest->path);
	*oldest = (struct shown_object){ kept, fd, ++table->turn };
	return 0;
}

static void forget_shown(struct runtime_mount_table *table, const char *path)
{
	struct shown_object *shown = find_shown(table, path);

	if (!shown)
		return;
	close_fd(&shown->fd);
	free(shown->path);
	shown->path = NULL;
}

void runtime_mount_forget(struct runtime_mounts *mounts, const char *path)
{
	if (mounts->table && !mounts->owner.is_awaited(mounts->owner.context, path))
		forget_shown(mounts->table, path);
}

static bool is_below_any(const char *path, const char *const *places, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (path_is_below(path, places[i]))
			return true;
	return false;
}

/* The kernel's own places: their names mean something else to everybody who looks. */
static bool is_kernel_path(const char *path)
{
	static const char *const places[] = { "/proc", "/sys", "/dev" };

	return is_below_any(path, places, ARRAY_SIZE(places));
}

int runtime_mount_show(struct runtime_mounts *mounts, const char *path, struct runtime_mount_object *ret_object)
{
	struct runtime_mount_object *object = ret_object;
	int fd = FD_NONE, r = path_normalise(object->path, sizeof object->path, path);
	struct stat st;

	if (r < 0 || path[0] != '/' || !str_equal(object->path, path))
		return -EINVAL;
	object->is_found = object->is_directory = false;
	r = open_table(mounts);
	if (r < 0 || is_kernel_path(path))
		return r;
	r = namespaces_open_outside(path, &fd);
	if (r < 0)
		return r == -ETIMEDOUT ? r : 0;
	if (path_of_fd(fd, object->path, sizeof object->path) == 0 && fstat(fd, &st) == 0) {
		object->is_found = true;
		object->is_directory = S_ISDIR(st.st_mode);
		return remember(mounts, object->path, fd);
	}
	close(fd);
	return str_copy(object->path, sizeof object->path, path);
}

/* ---- what may be brought in ---- */

static int refuse(struct err *err, int errnum, const char *path, const char *why, const char *hint)
{
	err_set(err, ERR_POLICY, errnum, "grant", "%s cannot be brought in: %s", path, why);
	err_hint(err, "%s", hint);
	return -errnum;
}

static bool is_around_view(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->files.plan_count; i++)
		if (policy->files.plan[i].class != FILE_MASK && path_is_below(policy->files.plan[i].path, path))
			return true;
	return path_is_below("/run/atoll", path) || (policy->home[0] && path_is_below(policy->home, path)) ||
	       (policy->project[0] && path_is_below(policy->project, path));
}

static bool is_around_bound(const struct runtime_mount_table *table, const char *path)
{
	for (size_t i = 0; table && i < table->bound_count; i++)
		if (path_is_below(table->bound[i].path, path))
			return true;
	return false;
}

/*
 * Whether something private stands above it, whose Landlock rights it gets; or the supervisor makes the calls that
 * write, which no Landlock domain binds: then the mount, and what the policy says of the path, are what holds.
 */
static bool has_rights_to_write(const struct runtime_mounts *mounts, const char *path)
{
	size_t rule;

	return !mounts->enforcement->landlock_abi ||
	       jail_mediation_of(mounts->run->policy->policy) >= JAIL_MEDIATE_WRITES ||
	       policy_classify(mounts->run->policy->policy, path, &rule) == FILE_SCRATCH;
}

int runtime_mount_may_bind(const struct runtime_mounts *mounts, const char *host_path, bool is_writable,
			   struct err *err)
{
	const struct policy *policy = mounts->run->policy->policy;
	struct action action = { .kind = is_writable ? ACTION_FILE_WRITE : ACTION_FILE_READ, .subject = host_path };
	struct decision decision = policy_decide(policy, &action);

	if (!policy_may_be_asked(policy, &action, &decision))
		return refuse(err, EPERM, host_path, decision.reason, decision.hint);
	if (is_kernel_path(host_path) || path_is_below(host_path, "/run/atoll"))
		return refuse(err, EPERM, host_path, "the sandbox has its own", "");
	if (is_around_view(policy, host_path))
		return refuse(err, EISDIR, host_path, "it contains something that the sandbox has already",
			      "ask for the directory or file that is needed, and for no more");
	if (is_around_bound(mounts->table, host_path))
		return refuse(err, EBUSY, host_path, "it, or something in it, was granted already",
			      "revoke that grant first (atoll grants)");
	if (is_writable && !has_rights_to_write(mounts, host_path))
		return refuse(err, EROFS, host_path, "a running sandbox cannot get the right to write there",
			      "list it under files.write of the policy, or have writes mediated (audit: {files: "
			      "writes}), and start again");
	return 0;
}

bool runtime_mount_covers(const struct runtime_mounts *mounts, const char *path, bool is_writable)
{
	for (size_t i = 0; mounts->table && i < mounts->table->bound_count; i++)
		if (path_is_below(path, mounts->table->bound[i].path) &&
		    (mounts->table->bound[i].is_writable || !is_writable))
			return true;
	return false;
}

/* ---- in the child ---- */

struct binding {
	const struct runtime_mounts *mounts;
	struct mount_tree_wish wish;
	enum mount_step *step; /* in memory that the box sees too */
	int tree;
	bool is_directory;
};

static int make_tree(void *context)
{
	struct binding *binding = context;

	binding->tree = mount_tree_make(&binding->wish, &binding->is_directory, binding->step);
	return binding->tree < 0 ? binding->tree : 0;
}

static int attach_tree(void *context, int root_fd, int *ret_fd)
{
	struct binding *binding = context;
	cleanup_fd int target = FD_NONE;
	int r;

	*binding->step = MOUNT_PLACE;
	target = namespaces_make_path(binding->mounts->run, root_fd, binding->wish.path, binding->is_directory);
	if (target < 0)
		return target;
	r = mount_attach(binding->tree, target);
	if (r == 0)
		*ret_fd = binding->tree;
	return r;
}

struct removal {
	const struct runtime_mounts *mounts;
	const char *path;
	int mount_fd;
	int proc_fd;
};

static int detach_tree(void *context, int root_fd, int *ret_fd)
{
	const struct removal *removal = context;
	int r = mount_detach(removal->mount_fd, removal->proc_fd);

	(void)ret_fd;
	if (r == 0)
		namespaces_remove_path(removal->mounts->run, root_fd, removal->path);
	return r;
}

/* ---- in the box ---- */

static int explain(struct err *err, int r, enum mount_step step, const char *path)
{
	static const struct {
		const char *why, *hint;
	} steps[MOUNT_STEP_COUNT] = {
		[MOUNT_FINE] = { "the sandbox cannot be entered", "" },
		[MOUNT_GONE] = { "it has changed since it was shown, or cannot be read",
				"look at what is there, and have the sandbox ask again" },
		[MOUNT_LINK] = { "its path has a symbolic link in it now", "look at where it leads" },
		[MOUNT_KIND] = { "only files and directories can be", "" },
		[MOUNT_BELOW] = { "a file system of the kernel's own is mounted below it",
				 "grant a directory in it that has none" },
		[MOUNT_MASK] = { "a name in it that the policy masks cannot be covered",
				"grant a directory in it that has no masked names, or grant it for reading" },
		[MOUNT_TREE] = { "its file system does not allow restrictions",
				"list it in the policy, and start again" },
		[MOUNT_PLACE] = { "something else is in its place inside, or no place can be made for it",
				 "list it in the policy, and start again" },
	};

	err_set(err, ERR_STATE, -r, "grant", "%s cannot be brought in: %s (%s)", path,
		r == -ETIMEDOUT ? "its file system does not answer" : steps[step].why, err_errno_name(-r));
	err_hint(err, "%s", steps[step].hint);
	return r;
}

/*
 * As root the owner of what is granted is the sandbox's user in it, as in every tree of the plan; of a name that leads
 * nowhere the child says so. FD_NONE: no map is needed.
 */
static int make_idmap(const struct runtime_mounts *mounts, const char *path, struct pidref *ret_holder)
{
	struct clone_ids ids = { .host_uid = mounts->run->identity->uid, .host_gid = mounts->run->identity->gid,
				 .others = CLONE_OTHERS_OF_FILES };
	cleanup_fd int fd = FD_NONE;
	struct stat st;

	if (getuid() || namespaces_open_outside(path, &fd) < 0 || fstat(fd, &st) < 0)
		return FD_NONE;
	ids.uid = st.st_uid;
	ids.gid = st.st_gid;
	return clone_user_namespace(&ids, ret_holder);
}

static void reap(struct pidref *holder)
{
	siginfo_t info;

	if (holder->pid > 0)
		(void)!pidref_wait(holder, WEXITED, &info, NULL);
	pidref_done(holder);
}

static int bring_in(const struct runtime_mounts *mounts, const char *path, bool is_writable, int *ret_fd,
		    enum mount_step *ret_step)
{
	const struct shown_object *shown = find_shown(mounts->table, path);
	struct pidref holder = PIDREF_NONE;
	cleanup_fd int idmap_fd = make_idmap(mounts, path, &holder);
	enum mount_step *step = mmap(NULL, sizeof *step, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct binding binding = {
		.mounts = mounts,
		.wish = { .policy = mounts->run->policy->policy, .path = path, .shown_fd = shown ? shown->fd : FD_NONE,
			  .idmap_fd = idmap_fd, .is_writable = is_writable,
			  .is_noexec = is_writable && !mounts->run->policy->policy->exec.new_binaries },
		.step = step,
		.tree = FD_NONE,
	};
	const struct namespaces_task task = { make_tree, attach_tree, &binding };
	int r;

	if (step == MAP_FAILED) {
		reap(&holder);
		return -errno;
	}
	r = idmap_fd < 0 && idmap_fd != FD_NONE ? idmap_fd : namespaces_run(mounts->run, &task, ret_fd);
	*ret_step = *step;
	munmap(step, sizeof *step);
	reap(&holder);
	return r;
}

/* A directory that the view has by the plan: nothing is to be brought in. */
static bool is_in_view(const struct policy *policy, const char *path)
{
	size_t rule;
	enum file_class class = policy_classify(policy, path, &rule);

	return class == FILE_READ || class == FILE_STAGE || class == FILE_WRITE;
}

bool runtime_mount_has(const struct runtime_mounts *mounts, const char *path, bool is_writable)
{
	return is_in_view(mounts->run->policy->policy, path) || runtime_mount_covers(mounts, path, is_writable);
}

int runtime_mount_bind(struct runtime_mounts *mounts, const char *host_path, bool is_writable,
		       struct runtime_mount_object *ret_object, struct err *err)
{
	struct runtime_mount bound = { .mount_fd = FD_NONE, .is_writable = is_writable, .until_ns = UINT64_MAX };
	enum mount_step step = MOUNT_FINE;
	int r = open_table(mounts);
	struct stat st;

	if (r < 0)
		return explain(err, r, step, host_path);
	if (runtime_mount_has(mounts, host_path, is_writable))
		return 0;
	r = runtime_mount_may_bind(mounts, host_path, is_writable, err);
	/* What nobody was shown, or was too long ago, nobody has allowed. */
	if (r == 0 && !find_shown(mounts->table, host_path))
		return explain(err, -ESTALE, MOUNT_GONE, host_path);
	if (r < 0)
		return r;
	if (mounts->table->bound_count == RUNTIME_MOUNTS_MAX)
		return refuse(err, ENOSPC, host_path, "too much was granted already",
			      "revoke some of it (atoll grants)");
	bound.path = str_dup(host_path);
	r = bound.path ? bring_in(mounts, host_path, is_writable, &bound.mount_fd, &step) : -ENOMEM;
	if (r < 0) {
		free(bound.path);
		return explain(err, r, step, host_path);
	}
	forget_shown(mounts->table, host_path);
	bound.is_directory = fstat(bound.mount_fd, &st) == 0 && S_ISDIR(st.st_mode);
	mounts->table->bound[mounts->table->bound_count++] = bound;
	*ret_object = (struct runtime_mount_object){ .is_found = true, .is_directory = bound.is_directory };
	return 1;
}

static int take_out(struct runtime_mounts *mounts, size_t at, struct err *err)
{
	struct runtime_mount *bound = &mounts->table->bound[at];
	struct removal removal = { .mounts = mounts, .path = bound->path, .mount_fd = bound->mount_fd,
				   .proc_fd = fd_open_at(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0) };
	const struct namespaces_task task = { NULL, detach_tree, &removal };
	cleanup_fd int proc_fd = removal.proc_fd;
	int unused = FD_NONE, r = proc_fd < 0 ? proc_fd : namespaces_run(mounts->run, &task, &unused);

	if (r < 0 && r != -ESRCH) {
		err_set(err, ERR_STATE, -r, "grant", "%s cannot be taken out of the sandbox: %s", bound->path,
			err_errno_name(-r));
		err_hint(err, "end the sandbox (atoll stop)");
		return r;
	}
	free(bound->path);
	close_fd(&bound->mount_fd);
	*bound = mounts->table->bound[--mounts->table->bound_count];
	return 0;
}

int runtime_mount_unbind(struct runtime_mounts *mounts, const char *host_path, struct err *err)
{
	for (size_t i = 0; mounts->table && i < mounts->table->bound_count; i++)
		if (str_equal(mounts->table->bound[i].path, host_path))
			return take_out(mounts, i, err);
	return 0;
}

void runtime_mount_tie(struct runtime_mounts *mounts, const char *host_path, uint32_t grant, uint64_t until_ns)
{
	for (size_t i = 0; mounts->table && i < mounts->table->bound_count; i++) {
		struct runtime_mount *bound = &mounts->table->bound[i];

		if (!str_equal(bound->path, host_path) || (bound->grant && until_ns < bound->until_ns))
			continue;
		bound->grant = grant;
		bound->until_ns = until_ns;
	}
}

uint64_t runtime_mount_left_ms(const struct runtime_mounts *mounts, const char *path, uint64_t now_ns)
{
	for (size_t i = 0; mounts->table && i < mounts->table->bound_count; i++) {
		const struct runtime_mount *bound = &mounts->table->bound[i];

		if (!path_is_below(path, bound->path))
			continue;
		if (bound->until_ns == UINT64_MAX)
			return UINT64_MAX;
		return bound->until_ns > now_ns ? (bound->until_ns - now_ns) / NS_PER_MS : 0;
	}
	return 0;
}

int runtime_mount_revoke(struct runtime_mounts *mounts, uint32_t grant, struct err *err)
{
	int r = 0;

	/* Downwards: the last one takes the place of the removed. */
	for (size_t i = mounts->table && grant ? mounts->table->bound_count : 0; r == 0 && i-- > 0;)
		if (mounts->table->bound[i].grant == grant)
			r = take_out(mounts, i, err);
	return r;
}

static int runtime_mount_check(void *context, uint64_t now_ns)
{
	struct runtime_mounts *mounts = context;
	int r = 0;

	for (size_t i = mounts->table ? mounts->table->bound_count : 0; r == 0 && i-- > 0;)
		if (mounts->table->bound[i].until_ns <= now_ns)
			r = take_out(mounts, i, mounts->run->err);
	return r;
}

const struct module runtime_mounts_module = {
	.name = "runtime-mounts",
	.check = runtime_mount_check,
	.done = runtime_mounts_done,
};
