/* SPDX-License-Identifier: Apache-2.0 */
#include "box/live.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/str.h"
#include "box/live-tree.h"
#include "box/state.h"
#include "build/enter-namespaces.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/path.h"

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

struct live_bound {
	char *path;          /* owned */
	int mount_fd;        /* of its mount inside; owned */
	bool is_writable, is_directory;
	uint32_t grant;      /* 0: not tied yet */
	uint64_t until_ns;
};

struct live_shown {
	char *path;          /* owned; NULL: free */
	int fd;
	uint64_t turn;
};

struct live {
	struct live_bound bound[LIVE_BOUND_MAX];
	size_t bound_count;
	struct live_shown shown[LIVE_SHOWN_MAX];
	uint64_t turn;
};

static int open_live(struct box *box)
{
	if (!box->live)
		box->live = calloc(1, sizeof *box->live);
	return box->live ? 0 : -ENOMEM;
}

void live_free(struct live *live)
{
	if (!live)
		return;
	for (size_t i = 0; i < live->bound_count; i++) {
		free(live->bound[i].path);
		close_fd(&live->bound[i].mount_fd);
	}
	for (size_t i = 0; i < LIVE_SHOWN_MAX; i++) {
		if (live->shown[i].path)
			close_fd(&live->shown[i].fd);
		free(live->shown[i].path);
	}
	free(live);
}

/* ---- what was shown ---- */

static struct live_shown *find_shown(struct live *live, const char *path)
{
	for (size_t i = 0; i < LIVE_SHOWN_MAX; i++)
		if (live->shown[i].path && str_equal(live->shown[i].path, path))
			return &live->shown[i];
	return NULL;
}

/* A free place, else that of the one which nobody has looked at for the longest, nor waits for. NULL: there is none. */
static struct live_shown *find_place(struct box *box)
{
	struct live_shown *oldest = NULL;

	for (size_t i = 0; i < LIVE_SHOWN_MAX; i++) {
		struct live_shown *shown = &box->live->shown[i];

		if (!shown->path)
			return shown;
		if ((!oldest || shown->turn < oldest->turn) && !asking_waits_for_path(box, shown->path))
			oldest = shown;
	}
	return oldest;
}

/* Takes fd. The first object that was shown under a path stays the one that is meant. */
static int remember(struct box *box, const char *path, int fd)
{
	struct live *live = box->live;
	struct live_shown *oldest = find_shown(live, path);
	char *kept;

	if (oldest) {
		oldest->turn = ++live->turn;
		close(fd);
		return 0;
	}
	oldest = find_place(box);
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
	*oldest = (struct live_shown){ kept, fd, ++live->turn };
	return 0;
}

static void forget_shown(struct live *live, const char *path)
{
	struct live_shown *shown = find_shown(live, path);

	if (!shown)
		return;
	close_fd(&shown->fd);
	free(shown->path);
	shown->path = NULL;
}

void live_forget(struct box *box, const char *path)
{
	if (box->live && !asking_waits_for_path(box, path))
		forget_shown(box->live, path);
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

int live_show(struct box *box, const char *path, struct live_object *ret_object)
{
	struct live_object *object = ret_object;
	int fd = FD_NONE, r = path_normalise(object->path, sizeof object->path, path);
	struct stat st;

	if (r < 0 || path[0] != '/' || !str_equal(object->path, path))
		return -EINVAL;
	object->is_found = object->is_directory = false;
	r = open_live(box);
	if (r < 0 || is_kernel_path(path))
		return r;
	r = namespaces_open_outside(path, &fd);
	if (r < 0)
		return r == -ETIMEDOUT ? r : 0;
	if (path_of_fd(fd, object->path, sizeof object->path) == 0 && fstat(fd, &st) == 0) {
		object->is_found = true;
		object->is_directory = S_ISDIR(st.st_mode);
		return remember(box, object->path, fd);
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
	for (size_t i = 0; i < policy->file_plan_count; i++)
		if (policy->file_plan[i].class != FILE_MASK && path_is_below(policy->file_plan[i].path, path))
			return true;
	return path_is_below("/run/atoll", path) || (policy->home[0] && path_is_below(policy->home, path)) ||
	       (policy->project[0] && path_is_below(policy->project, path));
}

static bool is_around_bound(const struct live *live, const char *path)
{
	for (size_t i = 0; live && i < live->bound_count; i++)
		if (path_is_below(live->bound[i].path, path))
			return true;
	return false;
}

/*
 * Whether something private stands above it, whose Landlock rights it gets; or the supervisor makes the calls that
 * write, which no Landlock domain binds: then the mount, and what the policy says of the path, are what holds.
 */
static bool has_rights_to_write(const struct box *box, const char *path)
{
	size_t rule;

	return !box->enforcement.landlock_abi ||
	       file_gate_mediation(box->run.policy->policy) >= JAIL_MEDIATE_WRITES ||
	       policy_classify(box->run.policy->policy, path, &rule) == FILE_SCRATCH;
}

int live_may_bind(const struct box *box, const char *host_path, bool is_writable, struct err *err)
{
	const struct policy *policy = box->run.policy->policy;
	struct action action = { .kind = is_writable ? ACTION_FILE_WRITE : ACTION_FILE_READ, .subject = host_path };
	struct decision decision = policy_decide(policy, &action);

	if (!policy_may_be_asked(policy, &action, &decision))
		return refuse(err, EPERM, host_path, decision.reason, decision.hint);
	if (is_kernel_path(host_path) || path_is_below(host_path, "/run/atoll"))
		return refuse(err, EPERM, host_path, "the sandbox has its own", "");
	if (is_around_view(policy, host_path))
		return refuse(err, EISDIR, host_path, "it lies around what the sandbox has already",
			      "ask for the directory or file that is needed, and for no more");
	if (is_around_bound(box->live, host_path))
		return refuse(err, EBUSY, host_path, "something in it, or it itself, was granted on its own",
			      "revoke that grant first (atoll grants)");
	if (is_writable && !has_rights_to_write(box, host_path))
		return refuse(err, EROFS, host_path, "a running sandbox cannot get the right to write there",
			      "list it under files.write of the policy, or have writes mediated (audit: {files: "
			      "writes}), and start again");
	return 0;
}

bool live_covers(const struct box *box, const char *path, bool is_writable)
{
	for (size_t i = 0; box->live && i < box->live->bound_count; i++)
		if (path_is_below(path, box->live->bound[i].path) &&
		    (box->live->bound[i].is_writable || !is_writable))
			return true;
	return false;
}

/* ---- in the child ---- */

struct binding {
	const struct box *box;
	struct live_wish wish;
	enum live_step *step; /* in memory that the box sees too */
	int tree;
	bool is_directory;
};

static int make_tree(void *context)
{
	struct binding *binding = context;

	binding->tree = live_tree_make(&binding->wish, &binding->is_directory, binding->step);
	return binding->tree < 0 ? binding->tree : 0;
}

static int attach_tree(void *context, int root_fd, int *ret_fd)
{
	struct binding *binding = context;
	cleanup_fd int target = FD_NONE;
	int r;

	*binding->step = LIVE_PLACE;
	target = namespaces_make_path(&binding->box->run, root_fd, binding->wish.path, binding->is_directory);
	if (target < 0)
		return target;
	r = mount_attach(binding->tree, target);
	if (r == 0)
		*ret_fd = binding->tree;
	return r;
}

struct removal {
	const struct box *box;
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
		namespaces_remove_path(&removal->box->run, root_fd, removal->path);
	return r;
}

/* ---- in the box ---- */

static int explain(struct err *err, int r, enum live_step step, const char *path)
{
	static const struct {
		const char *why, *hint;
	} steps[LIVE_STEP_COUNT] = {
		[LIVE_FINE] = { "the sandbox cannot be entered", "" },
		[LIVE_GONE] = { "it is not what was shown any more, or cannot be read",
				"look at what stands there, and let it be asked for again" },
		[LIVE_LINK] = { "a link stands on its way by now", "look at where it leads" },
		[LIVE_KIND] = { "only files and directories can be", "" },
		[LIVE_BELOW] = { "a file system of the kernel's own is mounted below it",
				 "grant a directory in it that has none" },
		[LIVE_MASK] = { "a name in it that the policy masks cannot be covered",
				"grant a directory in it that has no masked names, or grant it for reading" },
		[LIVE_TREE] = { "its file system does not let it be restricted",
				"list it in the policy, and start again" },
		[LIVE_PLACE] = { "something else is in its place inside, or no place can be made for it",
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
static int make_idmap(const struct box *box, const char *path, struct pidref *ret_holder)
{
	struct clone_ids ids = { .host_uid = box->run.identity->uid, .host_gid = box->run.identity->gid };
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

static int bring_in(const struct box *box, const char *path, bool is_writable, int *ret_fd, enum live_step *ret_step)
{
	const struct live_shown *shown = find_shown(box->live, path);
	struct pidref holder = PIDREF_NONE;
	cleanup_fd int idmap_fd = make_idmap(box, path, &holder);
	enum live_step *step = mmap(NULL, sizeof *step, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct binding binding = {
		.box = box,
		.wish = { .policy = box->run.policy->policy, .path = path, .shown_fd = shown ? shown->fd : FD_NONE,
			  .idmap_fd = idmap_fd, .is_writable = is_writable,
			  .is_noexec = is_writable && !box->run.policy->policy->exec_new_binaries },
		.step = step,
		.tree = FD_NONE,
	};
	const struct namespaces_task task = { make_tree, attach_tree, &binding };
	int r;

	if (step == MAP_FAILED) {
		reap(&holder);
		return -errno;
	}
	r = idmap_fd < 0 && idmap_fd != FD_NONE ? idmap_fd : namespaces_run(&box->run, &task, ret_fd);
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

bool live_has(const struct box *box, const char *path, bool is_writable)
{
	return is_in_view(box->run.policy->policy, path) || live_covers(box, path, is_writable);
}

int live_bind(struct box *box, const char *host_path, bool is_writable, struct live_object *ret_object,
	      struct err *err)
{
	struct live_bound bound = { .mount_fd = FD_NONE, .is_writable = is_writable, .until_ns = UINT64_MAX };
	enum live_step step = LIVE_FINE;
	int r = open_live(box);
	struct stat st;

	if (r < 0)
		return explain(err, r, step, host_path);
	if (live_has(box, host_path, is_writable))
		return 0;
	r = live_may_bind(box, host_path, is_writable, err);
	/* What nobody was shown, or was too long ago, nobody has allowed. */
	if (r == 0 && !find_shown(box->live, host_path))
		return explain(err, -ESTALE, LIVE_GONE, host_path);
	if (r < 0)
		return r;
	if (box->live->bound_count == LIVE_BOUND_MAX)
		return refuse(err, ENOSPC, host_path, "too much was granted already",
			      "revoke some of it (atoll grants)");
	bound.path = str_dup(host_path);
	r = bound.path ? bring_in(box, host_path, is_writable, &bound.mount_fd, &step) : -ENOMEM;
	if (r < 0) {
		free(bound.path);
		return explain(err, r, step, host_path);
	}
	forget_shown(box->live, host_path);
	bound.is_directory = fstat(bound.mount_fd, &st) == 0 && S_ISDIR(st.st_mode);
	box->live->bound[box->live->bound_count++] = bound;
	*ret_object = (struct live_object){ .is_found = true, .is_directory = bound.is_directory };
	return 1;
}

static int take_out(struct box *box, size_t at, struct err *err)
{
	struct live_bound *bound = &box->live->bound[at];
	struct removal removal = { .box = box, .path = bound->path, .mount_fd = bound->mount_fd,
				   .proc_fd = fd_open_at(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0) };
	const struct namespaces_task task = { NULL, detach_tree, &removal };
	cleanup_fd int proc_fd = removal.proc_fd;
	int unused = FD_NONE, r = proc_fd < 0 ? proc_fd : namespaces_run(&box->run, &task, &unused);

	if (r < 0 && r != -ESRCH) {
		err_set(err, ERR_STATE, -r, "grant", "%s cannot be taken out of the sandbox: %s", bound->path,
			err_errno_name(-r));
		err_hint(err, "end the sandbox (atoll stop)");
		return r;
	}
	free(bound->path);
	close_fd(&bound->mount_fd);
	*bound = box->live->bound[--box->live->bound_count];
	return 0;
}

int live_unbind(struct box *box, const char *host_path, struct err *err)
{
	for (size_t i = 0; box->live && i < box->live->bound_count; i++)
		if (str_equal(box->live->bound[i].path, host_path))
			return take_out(box, i, err);
	return 0;
}

void live_tie(struct box *box, const char *host_path, uint32_t grant, uint64_t until_ns)
{
	for (size_t i = 0; box->live && i < box->live->bound_count; i++) {
		struct live_bound *bound = &box->live->bound[i];

		if (!str_equal(bound->path, host_path) || (bound->grant && until_ns < bound->until_ns))
			continue;
		bound->grant = grant;
		bound->until_ns = until_ns;
	}
}

uint64_t live_left_ms(const struct box *box, const char *path, uint64_t now_ns)
{
	for (size_t i = 0; box->live && i < box->live->bound_count; i++) {
		const struct live_bound *bound = &box->live->bound[i];

		if (!path_is_below(path, bound->path))
			continue;
		if (bound->until_ns == UINT64_MAX)
			return UINT64_MAX;
		return bound->until_ns > now_ns ? (bound->until_ns - now_ns) / NS_PER_MS : 0;
	}
	return 0;
}

int live_revoke(struct box *box, uint32_t grant, struct err *err)
{
	int r = 0;

	/* Downwards: the last one takes the place of the removed. */
	for (size_t i = box->live && grant ? box->live->bound_count : 0; r == 0 && i-- > 0;)
		if (box->live->bound[i].grant == grant)
			r = take_out(box, i, err);
	return r;
}

int live_check(struct box *box, uint64_t now_ns, struct err *err)
{
	int r = 0;

	for (size_t i = box->live ? box->live->bound_count : 0; r == 0 && i-- > 0;)
		if (box->live->bound[i].until_ns <= now_ns)
			r = take_out(box, i, err);
	return r;
}
