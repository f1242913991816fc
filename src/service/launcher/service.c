/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/service.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "service/launcher/store/journal.h"
#include "service/launcher/events.h"
#include "service/launcher/listen.h"
#include "service/launcher/lifecycle.h"
#include "service/launcher/operate.h"
#include "service/launcher/recover.h"
#include "service/launcher/timer.h"
#include "service/launcher/warm.h"

enum { NS_PER_S = 1000000000, BODY_MAX = 16 << 20 };

static int on_signal(void *context, uint32_t events)
{
	struct daemon *daemon = context;
	struct signalfd_siginfo info;

	if (read(daemon->signals.fd, &info, sizeof info) != sizeof info)
		return 0;
	if (info.ssi_signo == SIGHUP)
		policies_forget(&daemon->policies);
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
	bool is_said, is_failed;
};

static void on_front(void *context, bool is_ready)
{
	struct daemon *daemon = context;
	struct readiness *readiness = daemon->readiness;

	if (!is_ready) {
		(void)!call_note(daemon, "front.end", NULL, NULL);
		daemon_wake_at(daemon, clock_monotonic_ns());
		/* One that never served would not do so the next time: it is not started again and again. */
		readiness->is_failed = !readiness->is_said;
		daemon->is_stopping = daemon->is_stopping || readiness->is_failed;
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

static int set_up_front(struct daemon *daemon, const char *program, const char *const *hosts, const int *listen_fds,
			struct err *err)
{
	struct front_setup *setup = &daemon->front_setup;
	uint16_t port = daemon->settings->port;
	int r;

	*setup = (struct front_setup){
		.program = program, .domain = daemon->domain, .hosts = hosts,
		.listen_fds = { listen_fds[0], listen_fds[1] },
		.certificate_fd = FD_NONE, .private_key_fd = FD_NONE,
		.connections_max = daemon->settings->connections_max, .body_max = BODY_MAX,
	};
	r = setup->certificate_fd = open_file(daemon->settings->tls_cert, err);
	if (r >= 0 || r == FD_NONE)
		r = setup->private_key_fd = open_file(daemon->settings->tls_key, err);
	if ((r >= 0 || r == FD_NONE) && listen_fds[0] >= 0)
		r = 0;
	else if (r >= 0 || r == FD_NONE)
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
			       timer_ready);
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
	operate_done(daemon);
	while (daemon->registry.oldest) {
		struct sandbox *sandbox = daemon->registry.oldest;

		/* It goes on; the next daemon finds it. */
		lifecycle_let_go(sandbox);
		registry_remove(&daemon->registry, sandbox);
	}
	warm_done(daemon);
	policies_done(&daemon->policies);
	quotas_done(&daemon->quotas);
	atoll_context_free(daemon->context);
	(void)!audit_writer_done(&daemon->audit);
	for (size_t i = 0; i < LISTEN_MAX; i++)
		close_fd(&daemon->front_setup.listen_fds[i]);
	close_fd(&daemon->front_setup.certificate_fd);
	close_fd(&daemon->front_setup.private_key_fd);
	close_fd(&daemon->tidying.output.fd);
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
	daemon->due.timer_ns = daemon->due.checkpoint_ns = UINT64_MAX;
	daemon->signals.fd = daemon->timer.fd = daemon->loop.epoll_fd = daemon->audit.fd = FD_NONE;
	daemon->front_setup.listen_fds[0] = daemon->front_setup.listen_fds[1] = FD_NONE;
	daemon->front_setup.certificate_fd = daemon->front_setup.private_key_fd = daemon->tidying.output.fd = FD_NONE;
	(void)!str_copy(daemon->places.state, sizeof daemon->places.state, given->places->state);
	(void)!str_copy(daemon->places.programs, sizeof daemon->places.programs, given->places->programs);
	(void)!str_copy(daemon->places.directory, sizeof daemon->places.directory, given->places->directory);
	buf_init(&daemon->reply, FRAME_MESSAGE_MAX);
	buf_init(&daemon->row, FRAME_MESSAGE_MAX);
	front_init(&daemon->front, &daemon->loop, &daemon->front_setup);
	daemon->hooks = (struct daemon_hooks){ .heard = events_ready, .begun = events_begun,
					       .again = operate, .verbs = operate_verbs };
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
		r = places_read_secret(daemon, err);
	if (r == 0)
		r = journal_open(daemon->places.directory, &daemon->audit, err);
	if (r == 0)
		r = places_open_context(daemon, places, environment, err);
	daemon->policies = (struct policies){ .context = daemon->context, .project = daemon->places.project,
					     .loop = &daemon->loop };
	if (r == 0)
		r = places_make(daemon, err);
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
	if (r < 0 || !daemon->readiness->is_failed)
		return r;
	err_set(err, ERR_STATE, ECHILD, "serve", "atoll-front ended before it served anything");
	err_hint(err, "it said why on standard error");
	return -ECHILD;
}

int service_run(const struct service_given *given, void (*ready)(void *context, const struct service_ready *ready),
		void *context, struct err *err)
{
	const char *hosts[SETTINGS_NAMES_MAX + 1] = { NULL };
	struct daemon *daemon = new_daemon(given);
	struct readiness readiness = { .ready = ready, .context = context };
	struct listen_urls urls;
	char program[PATH_MAX];
	cleanup_fd int lock_fd = FD_NONE;
	int r;

	if (!daemon)
		return err_set(err, ERR_INTERNAL, ENOMEM, "serve", "out of memory");
	for (size_t i = 0; i < given->settings->host_count; i++)
		hosts[i] = given->settings->hosts[i];
	raise_descriptors();
	daemon->readiness = &readiness;
	r = path_join(program, sizeof program, given->places->programs, "atoll-front");
	if (r == 0)
		r = lock_fd = places_lock(given->places, err);
	if (r >= 0)
		r = open_all(daemon, given->places, given->environment, err);
	if (r == 0)
		r = set_up_front(daemon, program, hosts, given->listen_fds, err);
	if (r >= 0) {
		listen_get_urls(given->settings, daemon->port, &urls);
		readiness.said = (struct service_ready){ urls.api, urls.sandbox, daemon->domain };
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
		r = set_up_front(daemon, program, NULL, given->listen_fds, err);
	done(daemon);
	return r < 0 ? r : 0;
}
