/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include "base/num.h"
#include "base/str.h"
#include "box/building.h"
#include "box/control/control.h"
#include "box/report/report.h"
#include "box/steps.h"
#include "gate-exec/gate.h"
#include "jail/filter.h"
#include "jail/mediation.h"
#include "os/fd.h"
#include "policy/decide.h"
#include "supervise/peer-process.h"

/* How a sandbox comes to be: everything before the loop. The order is told in box.c. */

/*
 * As root the sandbox runs as a user that nobody is: inside uid 1000 ("agent"), on the host one of a range
 * that neither login users nor systemd's own ranges use (systemd.io/UIDS-GIDS).
 */
enum { AGENT_ID = 1000 };

static int child_limits(const void *context)
{
	return limit_group_enter(context);
}

/* As root: a host uid that nobody has, so that the sandbox owns nothing on this machine. */
static int choose_identity(const struct staging *staging, const struct policy *policy, bool has_root,
			   struct jail_spec *spec)
{
	int r;

	/*
	 * Package managers ask for uid 0, a number there: it has no capability, and on the host it is nobody, or the
	 * user who started it. With a root of its own all files of the system are of that one owner.
	 */
	spec->run_as_root = getuid() == 0;
	if (!spec->run_as_root) {
		spec->host_uid = getuid();
		spec->host_gid = getgid();
		spec->uid = has_root ? 0 : spec->host_uid;
		spec->gid = has_root ? 0 : spec->host_gid;
		return 0;
	}
	spec->uid = spec->gid = has_root || policy_stages_system(policy) ? 0 : AGENT_ID;
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
		run_stage_add(&box->run, jail_stage_names[i], box->build.enforcement.stage_ns[i]);
	run_stage_add(&box->run, "plan", box->build.plan_ns);
	run_stage_add(&box->run, "store", box->build.store_ns);
}

/* Above the numbers that init's own descriptors get. */
static int open_init(const char *path)
{
	int fd = fd_open_at(AT_FDCWD, path, O_PATH, 0);

	return fd < 0 ? fd : fd_move_above(fd, INIT_WIRE_FD + 1);
}

static void prepare_own_mounts(const struct box *box, struct watch_options *options)
{
	const struct resource_limit *limits = box->run.policy->policy->limits;
	uint64_t bytes = limits[RESOURCE_DISK].value, inodes = limits[RESOURCE_INODES].value;

	if (str_format(options->own_mount_source, sizeof options->own_mount_source, "atoll-%s",
		       box->run.request->session) < 0)
		options->own_mount_source[0] = 0;
	options->own_mount_bytes = bytes == NUM_UNLIMITED ? (uint64_t)PLAN_SCRATCH_DEFAULT_MIB << 20 : bytes;
	options->own_mount_inodes = inodes == NUM_UNLIMITED ? PLAN_OWN_MOUNT_INODES : inodes;
}

/* As whom, and to which sockets, the supervisor will connect. */
static void prepare_watch(struct box *box, const struct building *building)
{
	const struct jail_spec *spec = &building->spec;
	struct watch_options *options = &box->build.watch_options;
	const struct jail_enforcement *enforcement = &box->build.enforcement;

	options->network_is_empty = !spec->share_network;
	options->uid = spec->host_uid;
	options->gid = spec->host_gid;
	options->uid_inside = spec->uid;
	options->gid_inside = spec->gid;
	options->init_pid = box->run.init.pid;
	options->has_own_roots = jail_seccomp_is_nested(spec->seccomp);
	if (jail_seccomp_has_mounts(spec->seccomp))
		prepare_own_mounts(box, options);
	options->mediates_files = jail_mediation_of(box->run.policy->policy) >= JAIL_MEDIATE_WRITES;
	options->moves_directories = jail_mediation_of(box->run.policy->policy) != JAIL_MEDIATE_NOTHING;
	if (spec->gate_sockets)
		gate_fill_options(&box->gates.net, options);
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

	box->outcome.command_started_ns = clock_monotonic_ns();
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
				       : "a command of up to %u KiB cannot be passed on: %s",
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
	box->serving.signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	return box->serving.signal_fd < 0 ? -errno : 0;
}

static int start_guardian(struct box *box)
{
	struct guardian_task task = {
		.session = box->run.request->session,
		.group = box->run.request->group,
		.state_dir = box->run.request->state_dir,
		.runtime_dir = box->run.request->runtime_dir,
	};

	return guardian_start(&box->build.guardian, &task, box->run.err);
}

/* Where the jail is to put the sockets of the network gate; NULL: there is none. */
static int *gate_sockets(struct box *box)
{
	struct net_gate *gate = &box->gates.net;

	return box->run.policy->policy->network.mode == NETWORK_GATE || gate->publish.count ? gate->sockets : NULL;
}

/* The namespaces that need nothing of what comes below. */
static int begin_jail(struct box *box)
{
	int r = publish_open(&box->gates.net);
	const struct jail_spec spec = {
		.share_network = box->run.policy->policy->network.mode == NETWORK_HOST,
		.gate_sockets = gate_sockets(box),
		.run_as_root = getuid() == 0,
		.degrade = box->run.policy->policy->degrade,
		.broken_wall = box->run.request->tests.broken_wall,
	};

	return r < 0 ? r : jail_begin(&spec, &box->build.jail, box->run.err);
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
	r = build_limits(box);
	run_stage(&box->run, "limits");
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
	r = building->texts->root[0] ? store_keep_root(&box->store, building->texts->root, err) : 0;
	if (r == 0)
		r = staging_make(&box->build.staging, &staging, err);
	/* Where it waits, it is told later what it is for. */
	if (r == 0 && !box->run.request->parking)
		r = staging_begin(&box->build.staging, &staging, err);
	box->build.store_ns = clock_monotonic_ns() - start_ns;
	return r;
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

	return fuse_serve(&building->box->build.servers, &tree, err);
}

/* The record, the log and the first command: from here on it is somebody's. */
int build_session(struct box *box, struct err *err)
{
	int r = store_begin(&box->store, box->run.request, box->run.policy, err);

	if (r < 0)
		return r;
	r = audit_writer_init(box->run.audit, take_fd(&box->store.audit_fd), box->run.request->session);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "audit", "cannot start the log: %s", err_errno_name(-r));
	return start_main_command(box, err);
}

/* While the child mounts: what nothing inside can do without, and hashes of what is enforced for the log. */
static int build_meanwhile(void *context, struct err *err)
{
	const struct building *building = context;
	struct box *box = building->box;
	uint64_t start_ns = clock_monotonic_ns();
	const struct exec_gate_input in = { &box->run, &box->approval.queue, &box->approval.reviewer,
					    &box->supervision.processes, &box->store, &box->build.staging };
	const uint32_t *taken;
	size_t taken_count;
	int r = store_keep_policy(&box->store, box->run.policy, err);

	if (r < 0)
		return r;
	taken = plan_refused(building->plan, &taken_count);
	r = exec_gate_prepare(&box->gates.exec, &in, taken, taken_count);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "exec", "cannot look up the programs of the rules: %s",
			       err_errno_name(-r));
	r = box->run.request->parking ? store_expect_begin(&box->store, err) : build_session(box, err);
	snapshot_hash(box->run.policy->snapshot, &box->run.policy_hash);
	jail_filter_hash(report_seccomp_profile(box), &box->build.filter_hash);
	/* The first exec would wait for it. */
	if (r == 0 && exec_gate_prepare_verifier(box->gates.exec) < 0)
		r = err_set(err, ERR_INTERNAL, ENOMEM, "verify", "there is no memory for the check of commands");
	box->build.store_ns += clock_monotonic_ns() - start_ns;
	return r;
}

static int start_jail(struct building *building)
{
	struct box *box = building->box;
	int r = jail_start(box->build.jail, &building->spec, &box->run.init, &box->build.enforcement, box->run.err);

	jail_free(box->build.jail);
	box->build.jail = NULL;
	if (r < 0 && building->plan)
		staging_explain(building->plan, building->spec.run_as_root, box->run.err);
	box->run.missing |= box->build.enforcement.missing;
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
	r = r == 0 ? host_ports_hold(&box->gates.net) : r;
	return r == 0 ? canaries_watch(&box->detection.canaries) : r;
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
			.rlimit_count = build_rlimits(box->run.policy->policy, rlimits),
			.cgroup_fd = limit_group_clone_fd(box->run.limits),
			.child_limits = child_limits,
			.limits = box->run.limits,
			.calls = { .plan = build_mounts, .late = build_late, .masks = build_masks,
				   .serve = build_server, .meanwhile = build_meanwhile, .context = &building },
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
		err_hint(box->run.err, "atoll-init must lie beside atoll; install atoll again");
		return init_fd;
	}
	r = staging_read_request(&box->build.staging, box->run.request, box->run.err);
	if (r == 0)
		r = building_find_root(&building, box->run.err);
	if (r == 0)
		r = choose_identity(&box->build.staging, box->run.policy->policy, texts.root[0], &building.spec);
	if (r == 0)
		r = backend_choose(box->run.request, box->run.policy->policy, &box->build.staging.backend,
				   box->run.err);
	building.by_fuse = backend_is_fuse(box->build.staging.backend);
	if (r == 0)
		r = canaries_make(&box->detection.canaries);
	anomaly_prepare(&box->detection.anomaly);
	alerts_prepare(&box->detection.alerts);
	if (r == 0 && building.spec.gate_sockets)
		r = gate_prepare(&box->gates.net, building.spec.host_uid,
				 canaries_open_tokens(&box->detection.canaries, &box->run.out));
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
	box->serving.wire_fd = ends[0];
	r = plan_and_start(box, ends[1]);
	close(ends[1]);
	return r;
}
