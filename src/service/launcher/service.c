/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/service.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "service/launcher/store/journal.h"
#include "service/launcher/events.h"
#include "service/launcher/listen.h"
#include "service/launcher/lifecycle.h"
#include "service/launcher/operate.h"
#include "service/launcher/pause.h"
#include "service/launcher/recover.h"
#include "session/directories.h"

enum { NS_PER_S = 1000000000, BODY_MAX = 16 << 20 };

/* ---- places ---- */

static int make_directory(const char *path, mode_t mode, struct err *err)
{
	if (mkdir(path, mode) == 0 || errno == EEXIST)
		return 0;
	return err_set(err, ERR_STATE, errno, "serve", "%s cannot be made: %s", path, err_errno_name(errno));
}

static int find_programs(char out[PATH_MAX], struct err *err)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (n < 0)
		return err_set(err, ERR_STATE, errno, "serve",
		"the programs of atoll cannot be found: /proc is missing");
	self[n] = 0;
	return path_join(out, PATH_MAX, self, "..") < 0 ?
		       err_set(err, ERR_STATE, ENAMETOOLONG, "serve", "the path of atoll's programs is too long") : 0;
}

int service_find_places(struct service_places *ret_places, char **environment, struct err *err)
{
	struct service_places *places = ret_places;
	int r = session_state_dir(places->state, sizeof places->state, true, err);

	if (r == 0)
		r = find_programs(places->programs, err);
	if (r == 0 && (path_join(places->directory, PATH_MAX, places->state, "service") < 0 ||
		       path_join(places->store, PATH_MAX, places->directory, "service.db") < 0))
		r = err_set(err, ERR_STATE, ENAMETOOLONG, "serve", "the path of the state directory is too long");
	return r < 0 ? r : make_directory(places->directory, 0700, err);
}

/* Of clients it is made once: who could read it could make every sandbox's token. */
static int read_secret(struct daemon *daemon, struct err *err)
{
	cleanup_free char *bytes = NULL;
	char path[PATH_MAX];
	size_t size = 0;
	int r = path_join(path, sizeof path, daemon->directory, "secret");

	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, path, CREDENTIAL_SECRET_SIZE, &bytes, &size);
	if (r == 0 && size == CREDENTIAL_SECRET_SIZE) {
		memcpy(daemon->secret, bytes, size);
		explicit_bzero(bytes, size);
		return 0;
	}
	if (r == 0 || r == -EFBIG)
		return err_set(err, ERR_STATE, EBADMSG, "serve", "%s is no secret of the service: remove it", path);
	if (r == -ENOENT)
		r = random_bytes(daemon->secret, sizeof daemon->secret);
	if (r == 0)
		r = fd_replace_file_at(AT_FDCWD, path, daemon->secret, sizeof daemon->secret, 0600);
	return r < 0 ? err_set(err, ERR_STATE, -r, "serve", "%s cannot be written: %s", path, err_errno_name(-r)) : 0;
}

static int fail_atoll(const struct atoll_error *error, struct err *err)
{
	err_set(err, ERR_STATE, error->errnum > 0 ? error->errnum : EINVAL, "serve", "%s", error->what);
	err_hint(err, "%s", error->hint);
	return -EINVAL;
}

static int open_context(struct daemon *daemon, const struct service_places *places, char **environment, struct err *err)
{
	const uint64_t events = 1 << ATOLL_EVENT_READY | 1 << ATOLL_EVENT_STARTED | 1 << ATOLL_EVENT_EXIT;
	struct atoll_error error = { .size = sizeof error };
	atoll_record *record = atoll_record_new(ATOLL_CONTEXT);
	int r = record ? atoll_default_places(record, (const char *const *)environment, &error) : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_set_string(record, "state", places->state, &error);
	if (r == 0)
		r = atoll_set_string(record, "programs", places->programs, &error);
	/* Inside; of whoever runs this nothing is meant. */
	if (r == 0)
		r = atoll_set_string(record, "home", USER_HOME, &error);
	if (r == 0)
		r = atoll_set_u64(record, "events", events, &error);
	if (r == 0)
		r = atoll_context_new(record, &daemon->context, &error);
	atoll_record_free(record);
	return r < 0 ? fail_atoll(&error, err) : 0;
}

/* ---- time ---- */

/* The front is started again; where it cannot be, later once more. */
static uint64_t tend_front(struct daemon *daemon)
{
	uint64_t next_ns = front_next_start_ns(&daemon->front);
	struct err err = { 0 };

	if (next_ns == UINT64_MAX || next_ns > clock_monotonic_ns())
		return next_ns;
	if (front_start(&daemon->front, &err) < 0) {
		(void)!call_note(daemon, "front.start", NULL, err.message);
		return clock_monotonic_ns() + (uint64_t)NS_PER_S;
	}
	return UINT64_MAX;
}

static void wake_if(struct daemon *daemon, uint64_t ns)
{
	if (ns != UINT64_MAX)
		daemon_wake_at(daemon, ns);
}

static int on_timer(void *context, uint32_t events)
{
	struct daemon *daemon = context;
	uint64_t count, now_ns = clock_monotonic_ns();

	(void)!read(daemon->timer.fd, &count, sizeof count);
	daemon->timer_ns = UINT64_MAX;
	if (daemon->checkpoint_ns <= now_ns) {
		daemon->checkpoint_ns = UINT64_MAX;
		database_checkpoint(daemon->store);
		if (journal_turn(daemon->directory, &daemon->audit) < 0)
			(void)!call_note(daemon, "audit", NULL, "no new file could be begun");
	}
	wake_if(daemon, daemon->checkpoint_ns);
	wake_if(daemon, recover_late(daemon));
	wake_if(daemon, pause_ended(daemon));
	if (!daemon->is_stopping)
		wake_if(daemon, tend_front(daemon));
	return 0;
}

static int on_signal(void *context, uint32_t events)
{
	struct daemon *daemon = context;
	struct signalfd_siginfo info;

	if (read(daemon->signals.fd, &info, sizeof info) != sizeof info)
		return 0;
	if (info.ssi_signo == SIGHUP)
		policies_done(&daemon->policies);
	else
		daemon->is_stopping = true;
	return 0;
}

/* ---- the front ---- */

static int on_request(void *context, uint8_t *bytes, struct service_message *message)
{
	struct call *call = call_new(context, bytes, message);

	if (!call)
		return -ENOMEM;
	operate(call);
	return 0;
}

struct readiness {
	void (*ready)(void *context, const struct service_ready *ready);
	void *context;
	struct service_ready said;
	bool is_said;
};

static void on_front(void *context, bool is_ready)
{
	struct daemon *daemon = context;
	struct readiness *readiness = daemon->readiness;

	if (!is_ready) {
		(void)!call_note(daemon, "front.end", NULL, NULL);
		daemon_wake_at(daemon, clock_monotonic_ns());
	} else if (!readiness->is_said) {
		readiness->is_said = true;
		readiness->ready(readiness->context, &readiness->said);
	}
}

static int open_file(const char *path, struct err *err)
{
	int fd = *path ? fd_open_at(AT_FDCWD, path, O_RDONLY, 0) : FD_NONE;

	if (fd < 0 && *path)
		return err_set(err, ERR_USAGE, -fd, "serve", "%s cannot be read: %s", path, err_errno_name(-fd));
	return fd;
}

static int set_up_front(struct daemon *daemon, const char *program, const char *const *hosts, struct err *err)
{
	struct front_setup *setup = &daemon->front_setup;
	uint16_t port;
	int r;

	*setup = (struct front_setup){
		.program = program, .domain = daemon->domain, .hosts = hosts, .listen_fds = { FD_NONE, FD_NONE },
		.certificate_fd = FD_NONE, .private_key_fd = FD_NONE,
		.connections_max = daemon->settings->connections_max, .body_max = BODY_MAX,
	};
	r = setup->certificate_fd = open_file(daemon->settings->tls_cert, err);
	if (r >= 0 || r == FD_NONE)
		r = setup->private_key_fd = open_file(daemon->settings->tls_key, err);
	if (r >= 0 || r == FD_NONE)
		r = setup->listen_fds[0] = listen_open(daemon->settings, &port, err);
	if (r < 0)
		return r;
	daemon->port = port;
	if (daemon->settings->domain[0])
		return str_copy(daemon->domain, sizeof daemon->domain, daemon->settings->domain);
	return str_format(daemon->domain, sizeof daemon->domain, "localhost:%u", (unsigned)port);
}

/* ---- the loop ---- */

static int add_source(struct daemon *daemon, struct loop_source *source, int fd,
		      int (*ready)(void *context, uint32_t events))
{
	*source = (struct loop_source){ .fd = fd, .events = EPOLLIN, .ready = ready, .context = daemon };
	return fd < 0 ? -errno : loop_add(&daemon->loop, source);
}

static int open_loop(struct daemon *daemon, struct err *err)
{
	sigset_t signals;
	int r = loop_init(&daemon->loop);

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (r == 0)
		r = add_source(daemon, &daemon->signals, signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), on_signal);
	if (r == 0)
		r = add_source(daemon, &daemon->timer, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
			       on_timer);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "serve", "the loop cannot be made: %s", err_errno_name(-r)) : 0;
}

/* Each handle of a sandbox has three descriptors. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void done(struct daemon *daemon)
{
	front_done(&daemon->front);
	while (daemon->registry.oldest) {
		struct sandbox *sandbox = daemon->registry.oldest;

		/* It goes on; the next daemon finds it. */
		lifecycle_let_go(sandbox);
		registry_remove(&daemon->registry, sandbox);
	}
	policies_done(&daemon->policies);
	atoll_context_free(daemon->context);
	(void)!audit_writer_done(&daemon->audit);
	close_fd(&daemon->front_setup.listen_fds[0]);
	close_fd(&daemon->front_setup.certificate_fd);
	close_fd(&daemon->front_setup.private_key_fd);
	close_fd(&daemon->signals.fd);
	close_fd(&daemon->timer.fd);
	loop_done(&daemon->loop);
	buf_done(&daemon->reply);
	buf_done(&daemon->row);
	explicit_bzero(daemon->secret, sizeof daemon->secret);
	free(daemon);
}

static struct daemon *new_daemon(const struct service_given *given)
{
	struct daemon *daemon = calloc(1, sizeof *daemon);

	if (!daemon)
		return NULL;
	daemon->settings = given->settings;
	daemon->store = given->store;
	daemon->timer_ns = daemon->checkpoint_ns = UINT64_MAX;
	daemon->signals.fd = daemon->timer.fd = daemon->loop.epoll_fd = daemon->audit.fd = FD_NONE;
	daemon->front_setup.listen_fds[0] = daemon->front_setup.certificate_fd = FD_NONE;
	daemon->front_setup.private_key_fd = FD_NONE;
	(void)!str_copy(daemon->directory, sizeof daemon->directory, given->places->directory);
	buf_init(&daemon->reply, FRAME_MESSAGE_MAX);
	buf_init(&daemon->row, FRAME_MESSAGE_MAX);
	front_init(&daemon->front, &daemon->loop, &daemon->front_setup);
	daemon->heard = events_ready;
	daemon->front.request = on_request;
	daemon->front.changed = on_front;
	daemon->front.context = daemon;
	return daemon;
}

static int open_all(struct daemon *daemon, const struct service_places *places, char **environment, struct err *err)
{
	struct policy_found found;
	int r = open_loop(daemon, err);

	if (r == 0)
		r = read_secret(daemon, err);
	if (r == 0)
		r = journal_open(daemon->directory, &daemon->audit, err);
	if (r == 0)
		r = open_context(daemon, places, environment, err);
	daemon->policies = (struct policies){ .context = daemon->context, .directory = daemon->directory };
	if (r == 0)
		r = path_join(daemon->home, PATH_MAX, daemon->directory, "home") < 0 ?
			    err_set(err, ERR_STATE, ENAMETOOLONG, "serve",
			"the path of the state directory is too long") :
			    make_directory(daemon->home, 0755, err);
	/* The first client need not wait for the compiler, and a policy that is wrong is told now. */
	return r < 0 ? r : policies_find(&daemon->policies, daemon->settings->policy, NULL, &found, err);
}

static int loop(struct daemon *daemon, struct err *err)
{
	int r = front_start(&daemon->front, err);

	while (r >= 0 && !daemon->is_stopping) {
		r = loop_step(&daemon->loop, -1);
		if (r < 0 && r != -EINTR)
			return err_set(err, ERR_INTERNAL, -r, "serve", "the loop failed: %s", err_errno_name(-r));
		r = 0;
	}
	return r;
}

int service_run(const struct service_given *given, void (*ready)(void *context, const struct service_ready *ready),
		void *context, struct err *err)
{
	const char *hosts[SETTINGS_NAMES_MAX + 1] = { NULL };
	struct daemon *daemon = new_daemon(given);
	struct readiness readiness = { .ready = ready, .context = context };
	char url[SETTINGS_HOST_MAX + 32], program[PATH_MAX];
	int r;

	if (!daemon)
		return err_set(err, ERR_INTERNAL, ENOMEM, "serve", "out of memory");
	for (size_t i = 0; i < given->settings->host_count; i++)
		hosts[i] = given->settings->hosts[i];
	raise_descriptors();
	daemon->readiness = &readiness;
	r = path_join(program, sizeof program, given->places->programs, "atoll-front");
	if (r == 0)
		r = open_all(daemon, given->places, given->environment, err);
	if (r == 0)
		r = set_up_front(daemon, program, hosts, err);
	if (r >= 0) {
		listen_url(given->settings, daemon->port, url, sizeof url);
		readiness.said = (struct service_ready){ url, daemon->domain };
		r = recover_all(daemon, err);
	}
	if (r == 0) {
		daemon_wake_at(daemon, clock_monotonic_ns());
		r = loop(daemon, err);
	}
	done(daemon);
	return r;
}

int service_check(const struct service_given *given, struct err *err)
{
	struct daemon *daemon = new_daemon(given);
	char program[PATH_MAX];
	int r;

	if (!daemon)
		return err_set(err, ERR_INTERNAL, ENOMEM, "serve", "out of memory");
	r = path_join(program, sizeof program, given->places->programs, "atoll-front");
	if (r == 0 && access(program, X_OK) < 0)
		r = err_not_started("serve", program, errno, err);
	if (r == 0)
		r = open_all(daemon, given->places, given->environment, err);
	if (r == 0)
		r = set_up_front(daemon, program, NULL, err);
	done(daemon);
	return r < 0 ? r : 0;
}
