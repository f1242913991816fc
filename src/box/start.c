/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "base/num.h"
#include "base/str.h"
#include "box/report.h"
#include "box/state.h"
#include "build/mount-plan.h"
#include "gate-exec/gate.h"
#include "jail/filter.h"
#include "jail/mediation.h"
#include "os/fd.h"
#include "os/path.h"
#include "policy/decide.h"
#include "policy/describe/describe.h"
#include "supervise/peer.h"

/* How a sandbox comes to be: everything before the loop. The order is told in box.c. */

/*
 * As root the sandbox runs as a user that nobody is: inside uid 1000 ("agent"), on the host one of a range
 * that neither login users nor systemd's own ranges use (systemd.io/UIDS-GIDS).
 */
enum { AGENT_ID = 1000 };

enum { LIMITS_TEXT_MAX = 64 << 10 };

static int start_limits(struct box *box)
{
	const struct policy *policy = box->run.policy->policy;
	struct limit_request request = {
		.session = box->run.request->session,
		.memory_bytes = policy->limits[RESOURCE_MEMORY].value,
		.millicpus = policy->limits[RESOURCE_CPUS].value,
		.processes = policy->limits[RESOURCE_PROCESSES].value,
		.companion = jail_waiting(box->jail),
		.forced_backend = box->run.request->tests.limits,
	};

	int r = limit_group_new(&box->run.limits, &request, box->run.err);

	return r < 0 ? r : limit_group_prepare(box->run.limits, box->run.err);
}

/* A limit that the policy wants hard and that nothing here can hold is a missing wall. */
static int check_limit_walls(struct box *box)
{
	const struct {
		enum limit_holder holder;
		enum wall wall;
		enum resource resource;
	} walls[] = {
		{ limit_group_holder_memory(box->run.limits), WALL_CGROUP_MEMORY, RESOURCE_MEMORY },
		{ limit_group_holder_processes(box->run.limits), WALL_CGROUP_PIDS, RESOURCE_PROCESSES },
		{ limit_group_holder_cpus(box->run.limits), WALL_CGROUP_CPU, RESOURCE_CPUS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(walls); i++) {
		const struct resource_limit *limit = &box->run.policy->policy->limits[walls[i].resource];
		/* The process limit holds without a cgroup too: the user namespace counts (see limit/). */
		bool holds = walls[i].holder >= LIMIT_BY_CGROUP || walls[i].holder == LIMIT_NONE ||
			     (walls[i].holder == LIMIT_BY_RLIMIT && walls[i].wall == WALL_CGROUP_PIDS);

		if (str_equal(box->run.request->tests.broken_wall, wall_names[walls[i].wall]))
			holds = false;
		if (holds || limit->value == NUM_UNLIMITED)
			continue;
		if (box->run.policy->policy->degrade & 1u << walls[i].wall) {
			box->run.missing |= 1u << walls[i].wall;
			continue;
		}
		err_set(box->run.err, ERR_WALL, 0, wall_names[walls[i].wall],
			"no cgroup here can hold the %s limit (%s)", resource_name(walls[i].resource),
			limit->origin.id);
		err_hint(box->run.err, "run `atoll doctor` for the fix, or accept it with `degrade: [%s]`",
			 wall_names[walls[i].wall]);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Private trees are a tmpfs with a size; a tree that is written in place is as large as its disk lets it be.
 */
static int check_disk_wall(struct box *box)
{
	const struct policy *policy = box->run.policy->policy;
	const struct resource_limit *limit = &policy->limits[RESOURCE_DISK];
	const struct file_plan_entry *written = NULL;

	for (size_t i = 0; i < policy->files.plan_count && !written; i++)
		if (policy->files.plan[i].class == FILE_WRITE)
			written = &policy->files.plan[i];
	if (limit->value == NUM_UNLIMITED || !written)
		return 0;
	if (policy->degrade & 1u << WALL_DISK) {
		box->run.missing |= 1u << WALL_DISK;
		return 0;
	}
	err_set(box->run.err, ERR_WALL, 0, wall_names[WALL_DISK],
		"%s is written in place, where nothing can hold the disk limit (%s)", written->path,
		limit->origin.id);
	err_hint(box->run.err, "accept it with `degrade: [%s]`, or make the tree `read`", wall_names[WALL_DISK]);
	return -EOPNOTSUPP;
}

static int child_limits(const void *context)
{
	return limit_group_enter(context);
}

static size_t make_rlimits(const struct policy *policy, struct jail_rlimit rlimits[4])
{
	size_t count = 0;
	uint64_t files = policy->limits[RESOURCE_OPEN_FILES].value,
		 size = policy->limits[RESOURCE_FILE_SIZE].value;

	/* 1 and not 0: the only limit that a core_pattern with a pipe heeds, so no program of the host is
	 * started by a crash inside. A file of one byte is none either. The filter keeps it there. */
	rlimits[count++] = (struct jail_rlimit){ RLIMIT_CORE, { 1, 1 } };
	if (files != NUM_UNLIMITED) {
		struct rlimit now;

		/* A hard limit can only be lowered without privilege. */
		if (getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_max < files)
			files = now.rlim_max;
		rlimits[count++] = (struct jail_rlimit){ RLIMIT_NOFILE, { files, files } };
	}
	if (size != NUM_UNLIMITED)
		rlimits[count++] = (struct jail_rlimit){ RLIMIT_FSIZE, { size, size } };
	return count;
}

/* As root: a host uid that nobody has, so that the sandbox owns nothing on this machine. */
static int choose_identity(const struct staging *staging, const struct policy *policy,
			   struct jail_spec *spec)
{
	int r;

	spec->run_as_root = getuid() == 0;
	if (!spec->run_as_root) {
		spec->uid = spec->host_uid = getuid();
		spec->gid = spec->host_gid = getgid();
		return 0;
	}
	/* Package managers ask for uid 0, a number there: it has no capability, and on the host it is nobody. */
	spec->uid = spec->gid = policy_stages_system(policy) ? 0 : AGENT_ID;
	/* The layers that a fork stands on belong to the uid of those who made them. */
	if (staging_owner(staging, &spec->host_uid, &spec->host_gid))
		return spec->host_uid && spec->host_gid ? 0 : -EINVAL;
	r = peer_uid_choose(&spec->host_uid);
	spec->host_gid = spec->host_uid;
	return r;
}

/* Where the time of "jail" went; the last two are the parent's, beside the child's "namespaces" and "mounts". */
static void note_jail_stages(struct box *box)
{
	for (int i = 0; i < JAIL_STAGE_COUNT; i++)
		run_stage_add(&box->run, jail_stage_names[i], box->enforcement.stage_ns[i]);
	run_stage_add(&box->run, "plan", box->plan_ns);
	run_stage_add(&box->run, "store", box->store_ns);
}

/* Above the numbers that init's own descriptors get. */
static int open_init(const char *path)
{
	int fd = fd_open_at(AT_FDCWD, path, O_PATH, 0);

	return fd < 0 ? fd : fd_move_above(fd, INIT_WIRE_FD + 1);
}

struct plan_texts {
	char denials_path[PATH_MAX], client_path[PATH_MAX];
	char limits_memory[LIMITS_TEXT_MAX];
};

/* A jail on its way: what the steps beside it (jail/spec.h) need. */
struct building {
	struct box *box;
	struct jail_spec spec;
	struct plan *plan;
	struct plan_texts *texts;
	bool by_fuse; /* fuse-overlayfs makes the staged trees */
};

/* As whom, and to which sockets, the supervisor will connect. */
static void prepare_watch(struct box *box, const struct building *building)
{
	const struct jail_spec *spec = &building->spec;
	struct watch_options *options = &box->watch_options;
	const struct jail_enforcement *enforcement = &box->enforcement;

	options->network_is_empty = !spec->share_network;
	options->uid = spec->host_uid;
	options->gid = spec->host_gid;
	options->uid_inside = spec->uid;
	options->gid_inside = spec->gid;
	options->init_pid = box->run.init.pid;
	options->has_own_roots = jail_seccomp_is_nested(spec->seccomp);
	options->mediates_files = jail_mediation_of(box->run.policy->policy) >= JAIL_MEDIATE_WRITES;
	options->moves_directories = jail_mediation_of(box->run.policy->policy) != JAIL_MEDIATE_NOTHING;
	if (spec->gate_sockets)
		gate_fill_options(&box->gate, options);
	_Static_assert(sizeof options->private_devices == sizeof enforcement->own_devices, "of one size");
	memcpy(options->private_devices, enforcement->own_devices, sizeof options->private_devices);
	options->private_device_count = enforcement->own_device_count;
}

/* A detached run reads nothing, and what it says goes into its session's directory. */
static int start_main_command(struct box *box, struct err *err)
{
	const struct run_starter *starter = box->run.request->starter;
	bool is_detached = box->run.request->flags & REQUEST_DETACH;
	int fds[STDIO_COUNT] = { 0, 1, 2 };
	struct command_request request = {
		.argv = box->run.request->command.argv,
		.cwd = box->run.request->cwd,
		.fds = fds,
		.is_main = true,
	};
	struct command *command;
	int r;

	box->command_started_ns = clock_monotonic_ns();
	if (!box->run.request->command.argv[0])
		return 0;
	if (starter) {
		request.tty = starter->pty ? STDIO_ALL : 0;
		request.rows = (uint16_t)(starter->pty >> 16);
		request.columns = (uint16_t)starter->pty;
	}
	if (is_detached)
		fds[STDIO_OUT] = fds[STDIO_ERR] = box->store.output_fd;
	else if (!(box->run.request->flags & REQUEST_NO_TTY))
		request.tty = console_detect();
	for (int i = 0; starter && i < STDIO_COUNT; i++)
		fds[i] = starter->streams[i] < 0 ? fds[i] : starter->streams[i];
	if (request.tty && !starter)
		console_size(&request.rows, &request.columns);
	request.env = command_environment(box, NULL);
	r = request.env ? command_start(box, &request, &command) : -ENOMEM;
	strv_free(request.env);
	if (r < 0) {
		err_set(err, ERR_INTERNAL, -r, "command",
			r == -EMSGSIZE ? "the command's arguments and environment are larger than %u KiB (%s)"
				       : "cannot hand over a command of up to %u KiB: %s",
			FRAME_MESSAGE_MAX >> 10, err_errno_name(-r));
		err_hint(err, "put long arguments into a file");
	}
	return r;
}

int build_signals(struct box *box)
{
	static const int numbers[] = { SIGINT,	SIGTERM, SIGHUP,  SIGQUIT, SIGWINCH,
				       SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaddset(&set, numbers[i]);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	box->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	return box->signal_fd < 0 ? -errno : 0;
}

static int start_guardian(struct box *box)
{
	struct guardian_task task = {
		.session = box->run.request->session,
		.state_dir = box->run.request->state_dir,
		.runtime_dir = box->run.request->runtime_dir,
	};

	return guardian_start(&box->guardian, &task, box->run.err);
}

/* Where the jail is to put the sockets of the network gate; NULL: there is none. */
static int *gate_sockets(struct box *box)
{
	return box->run.policy->policy->network.mode == NETWORK_GATE || box->gate.publish.count ? box->gate.sockets
		: NULL;
}

/* The namespaces that need nothing of what comes below. */
static int begin_jail(struct box *box)
{
	int r = publish_open(&box->gate);
	const struct jail_spec spec = {
		.share_network = box->run.policy->policy->network.mode == NETWORK_HOST,
		.gate_sockets = gate_sockets(box),
		.run_as_root = getuid() == 0,
		.degrade = box->run.policy->policy->degrade,
		.broken_wall = box->run.request->tests.broken_wall,
	};

	return r < 0 ? r : jail_begin(&spec, &box->jail, box->run.err);
}

int build_ground(struct box *box)
{
	int r = start_guardian(box);

	/* Behind the guardian, which has only to fall asleep: the kernel puts the second new process on an idle CPU. */
	if (r == 0)
		r = begin_jail(box);
	if (r < 0)
		return r;
	/* The socket comes before the first cgroup: it is how a later guardian finds a session that lost its
	 * own. */
	r = control_bind(box);
	if (r < 0)
		return r;
	run_stage(&box->run, "guardian");
	r = start_limits(box);
	if (r == 0)
		r = check_limit_walls(box);
	if (r == 0)
		r = check_disk_wall(box);
	run_stage(&box->run, "limits");
	return r;
}

static int add_canaries(void *context, const struct policy *policy, struct plan *plan)
{
	return canaries_plan(context, policy, plan);
}

static int add_certificates(void *context, const struct policy *policy, struct plan *plan)
{
	return certificates_plan(context, plan);
}

/* The mounts of the policy; building->texts must live as long as the plan. */
static int make_plan(struct building *building, bool has_mounts_below, struct err *err)
{
	struct box *box = building->box;
	struct plan_texts *texts = building->texts;
	bool is_fork = box->staging.origin.tree_count;
	struct plan_input input = {
		.policy = box->run.policy->policy,
		.state_dir = box->run.request->state_dir,
		.session = box->run.request->session,
		.chain = is_fork ? &box->staging.chain : NULL,
		.origin = is_fork ? &box->staging.origin : NULL,
		.by_fuse = building->by_fuse,
		.has_mounts_below = has_mounts_below,
		.denials_path = texts->denials_path,
		.client_path = texts->client_path,
		.behind_masks = { add_canaries, &box->canaries },
		.last = { add_certificates, &box->gate.certificates },
		.run_as_root = building->spec.run_as_root,
		.uid = building->spec.uid,
		.gid = building->spec.gid,
	};
	struct buf limits_text;
	int r = session_path(box->run.request->state_dir, box->run.request->session, "denials.jsonl",
			     texts->denials_path, sizeof texts->denials_path);

	if (r == 0)
		r = path_beside(texts->client_path, sizeof texts->client_path, box->run.request->init_path,
				"atoll-request");
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "plan", "the path of the state directory is too long");
	buf_init_fixed(&limits_text, texts->limits_memory, sizeof texts->limits_memory);
	r = policy_describe(box->run.policy->policy, path_is_there, &limits_text);
	input.limits_text = buf_text(&limits_text);
	input.limits_size = limits_text.size;
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "plan", "cannot describe the policy: %s", err_errno_name(-r)) :
		       plan_new(&building->plan, &input, &box->run.missing, err);
}

/* As root a staged tree has what the host has mounted below it; nearly no host has anything there. */
static int plan_mounts_below(struct building *building, struct err *err)
{
	int r = building->spec.run_as_root ? plan_has_mounts_below(building->plan) : 0;

	if (r < 0)
		return err_set(err, ERR_STATE, -r, "stage", "the list of mounts cannot be read: %s",
			       err_errno_name(-r));
	if (r == 0)
		return 0;
	plan_free(building->plan);
	building->plan = NULL;
	return make_plan(building, true, err);
}

/* While the child makes its namespaces: the mounts. */
static int build_plan(void *context, const struct jail_mount **ret_mounts, size_t *ret_count, struct err *err)
{
	struct building *building = context;
	struct box *box = building->box;
	uint64_t start_ns = clock_monotonic_ns();
	int r = gate_introduce(&box->gate, err);

	if (r == 0)
		r = make_plan(building, false, err);
	if (r == 0)
		r = plan_mounts_below(building, err);
	if (r == 0)
		*ret_mounts = plan_mounts(building->plan, ret_count);
	box->plan_ns = clock_monotonic_ns() - start_ns;
	return r;
}

/* While the child mounts what is the host's: the session's directory, and what is staged. */
static int build_late(void *context, struct err *err)
{
	struct building *building = context;
	struct box *box = building->box;
	struct staging_input staging = {
		.plan = building->plan,
		.request = box->run.request,
		.run_as_root = building->spec.run_as_root,
		.by_fuse = building->by_fuse,
		.host_uid = building->spec.host_uid,
		.host_gid = building->spec.host_gid,
	};
	uint64_t start_ns = clock_monotonic_ns();
	int r = store_open(&box->store, box->run.request, err);

	if (r < 0)
		return r;
	box->run.refusals->denials.fd = box->store.denials_fd;
	box->run.refusals->denials.policy = box->run.policy->policy;
	staging.session_fd = box->store.dir_fd;
	r = staging_make(&box->staging, &staging, err);
	box->store_ns = clock_monotonic_ns() - start_ns;
	return r;
}

/* While the child mounts: what of the mounts it may wait for longest. */
static int build_masks(void *context, const struct jail_mount **ret_masks, size_t *ret_count, struct err *err)
{
	const struct building *building = context;
	int r = plan_refuse(building->plan, building->box->run.policy->policy, ret_masks, ret_count);

	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "plan", "cannot look for the programs that are taken away: %s",
			       err_errno_name(-r)) : 0;
}

/* Before anything is mounted: somebody answers for the trees that the kernel does not make. */
static int build_server(void *context, const struct jail_mount *mount, int device_fd, struct err *err)
{
	struct building *building = context;
	const struct fuse_tree tree = {
		.mount = mount,
		.device_fd = device_fd,
		.is_mapped = building->spec.run_as_root,
		.uid = building->spec.uid,
		.gid = building->spec.gid,
	};

	return fuse_serve(&building->box->servers, &tree, err);
}

/* While the child mounts: what nothing inside can do without, and hashes of what is enforced for the log. */
static int build_meanwhile(void *context, struct err *err)
{
	const struct building *building = context;
	struct box *box = building->box;
	uint64_t start_ns = clock_monotonic_ns();
	const struct exec_gate_input in = { &box->run, &box->queue, &box->reviewer, &box->processes, &box->store,
					    &box->staging };
	const uint32_t *taken;
	size_t taken_count;
	int r = store_begin(&box->store, box->run.request, box->run.policy, err);

	if (r < 0)
		return r;
	r = audit_writer_init(box->run.audit, take_fd(&box->store.audit_fd), box->run.request->session);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "audit", "cannot start the log: %s", err_errno_name(-r));
	taken = plan_refused(building->plan, &taken_count);
	r = exec_gate_prepare(&box->exec_gate, &in, taken, taken_count);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "exec", "cannot look up the programs of the rules: %s",
			       err_errno_name(-r));
	r = start_main_command(box, err);
	snapshot_hash(box->run.policy->snapshot, &box->run.policy_hash);
	jail_filter_hash(report_seccomp_profile(box), &box->filter_hash);
	/* The first exec would wait for it. */
	if (r == 0 && exec_gate_prepare_verifier(box->exec_gate) < 0)
		r = err_set(err, ERR_INTERNAL, ENOMEM, "verify", "there is no memory for what judges commands");
	box->store_ns += clock_monotonic_ns() - start_ns;
	return r;
}

static int start_jail(struct building *building)
{
	struct box *box = building->box;
	int r = jail_start(box->jail, &building->spec, &box->run.init, &box->enforcement, box->run.err);

	jail_free(box->jail);
	box->jail = NULL;
	if (r < 0 && building->plan)
		staging_explain(building->plan, building->spec.run_as_root, box->run.err);
	box->run.missing |= box->enforcement.missing;
	/*
	 * Processes of the same user may not trace or read the holder of the log. Not earlier: while
	 * the child is made, /proc/PID/uid_map of a process that is not dumpable belongs to root.
	 */
	prctl(PR_SET_DUMPABLE, 0);
	run_stage(&box->run, "jail");
	note_jail_stages(box);
	if (r == 0)
		prepare_watch(box, building);
	/* Programs start when we answer their exec: nothing but init has run yet. */
	return r == 0 ? canaries_watch(&box->canaries) : r;
}

static int plan_and_start(struct box *box, int init_wire_fd)
{
	cleanup_fd int init_fd = open_init(box->run.request->init_path);
	struct jail_rlimit rlimits[4];
	struct plan_texts texts; /* not cleared: it is large */
	struct building building = {
		.box = box,
		.texts = &texts,
		.spec = {
			.hostname = PLAN_HOSTNAME,
			.share_network = box->run.policy->policy->network.mode == NETWORK_HOST,
			.gate_sockets = gate_sockets(box),
			.takes_grants = policy_takes_grants(box->run.policy->policy),
			.seccomp = report_seccomp_profile(box),
			.rlimits = rlimits,
			.rlimit_count = make_rlimits(box->run.policy->policy, rlimits),
			.cgroup_fd = limit_group_clone_fd(box->run.limits),
			.child_limits = child_limits,
			.limits = box->run.limits,
			.calls = { .plan = build_plan, .late = build_late, .masks = build_masks, .serve = build_server,
				   .meanwhile = build_meanwhile, .context = &building },
			.init_fd = init_fd,
			.wire_fd = init_wire_fd,
			.degrade = box->run.policy->policy->degrade,
			.broken_wall = box->run.request->tests.broken_wall,
		},
	};
	int r;

	if (init_fd < 0) {
		err_set(box->run.err, ERR_INTERNAL, -init_fd, "init", "cannot open %s: %s", box->run.request->init_path,
			err_errno_name(-init_fd));
		err_hint(box->run.err, "atoll-init belongs beside atoll; install again");
		return init_fd;
	}
	r = staging_read_request(&box->staging, box->run.request, box->run.err);
	if (r == 0)
		r = choose_identity(&box->staging, box->run.policy->policy, &building.spec);
	if (r == 0)
		r = backend_choose(box->run.request, box->run.policy->policy, &box->staging.backend, box->run.err);
	building.by_fuse = backend_is_fuse(box->staging.backend);
	if (r == 0)
		r = canaries_make(&box->canaries);
	anomaly_prepare(&box->anomaly);
	alerts_prepare(&box->alerts);
	if (r == 0 && building.spec.gate_sockets)
		r = gate_prepare(&box->gate, building.spec.host_uid,
				 canaries_open_tokens(&box->canaries, &box->run.out));
	if (r == 0)
		r = start_jail(&building);
	plan_free(building.plan);
	return r;
}

int build_jail(struct box *box)
{
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(box->run.err, ERR_INTERNAL, errno, "wire", "socketpair: %s",
			       err_errno_name(errno));
	box->wire_fd = ends[0];
	r = plan_and_start(box, ends[1]);
	close(ends[1]);
	return r;
}
