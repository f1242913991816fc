/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/str.h"
#include "box/control/client.h"
#include "box/control/exec-snapshot.h"
#include "box/control/control.h"
#include "box/control/link.h"
#include "box/report/status.h"
#include "box/state/sandbox.h"
#include "os/fd.h"
#include "os/path.h"
#include "session/review-log.h"
#include "wire/control.h"
#include "wire/token.h"

/*
 * The control socket of a live sandbox: clients that speak of more than one thing at a time (control-link.h), and
 * atoll-stage, which has one thing to say on a connection. It lies in a directory of mode 0700
 * that is not in the sandbox's view, and every peer must be the owner or root by SO_PEERCRED. A command that
 * comes in this way is started by the same init under the same walls as any other: there is no weaker way in.
 */

enum { MS_NS = 1000000, BACKLOG = 16, MESSAGES_TOGETHER = 4 };

static void client_free(struct client *client)
{
	if (freeze_is_held_by(client->box->run.freeze, &client->freeze) && freeze_end(client->box->run.freeze) < 0)
		run_end(&client->box->run, ENDED_POLICY);
	link_free(client);
	policy_change_forget_asker(&client->box->gates.net, client);
	loop_remove(client->box->run.loop, &client->source);
	/* The one of who started the sandbox is open elsewhere, too: whoever is cut off has to see it. */
	shutdown(client->fd, SHUT_RDWR);
	close_fd(&client->fd);
	for (size_t i = 0; i < BOX_CLIENTS_MAX; i++)
		if (client->box->control.clients[i] == client)
			client->box->control.clients[i] = NULL;
	free(client);
}

void control_stop(struct box *box, uint32_t grace_ms)
{
	bool is_idle = true;

	/* Who is asked to end must be able to. */
	if (freeze_end(box->run.freeze) < 0)
		grace_ms = 0;
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++) {
		if (!box->commands[i] || box->commands[i]->has_exited)
			continue;
		is_idle = false;
		if (command_signal(box->commands[i], SIGTERM) < 0)
			grace_ms = 0;
	}
	box->run.is_stopping = true;
	box->control.stop_ns = is_idle ? 0 : clock_monotonic_ns() + (uint64_t)grace_ms * MS_NS;
}

void control_freeze_error(const struct box *box, int r, struct err *err)
{
	if (r == -EBUSY && agent_trust_holds_still(&box->detection.agent_trust)) {
		err_set(err, ERR_STATE, EBUSY, "freeze", "this sandbox is frozen since the trust level of its agent "
							 "dropped to %s",
			trust_level_names[box->detection.agent_trust.level]);
		err_hint(err, "`atoll trust` says why; raise the agent's level to let it go on, or stop the session");
	} else if (r == -EBUSY) {
		err_set(err, ERR_STATE, EBUSY, "freeze",
			"the sandbox is frozen already, for a snapshot or for another client");
		err_hint(err, "try again when it is done");
	} else if (r == -ETIMEDOUT) {
		err_set(err, ERR_STATE, EAGAIN, "freeze",
			"a process inside is in the middle of a system call and cannot be frozen now");
		err_hint(err, "try again, or stop the session first");
	} else {
		err_set(err, ERR_STATE, -r, "freeze", "the sandbox cannot be frozen: %s", err_errno_name(-r));
	}
}

static int on_freeze(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	const char *name = frame_get_string(frame);
	struct err err = { 0 };
	int r = frame_finish(frame);

	if (r < 0)
		return r;
	client->freeze = (struct freeze_holder){ .thawed = freeze_log };
	r = freeze_begin(client->box->run.freeze, &client->freeze, name);
	client->state = r < 0 ? CLIENT_DONE : CLIENT_FREEZING;
	if (r == 0) {
		client_reply_u32(client, CONTROL_DONE, 0);
		return 0;
	}
	control_freeze_error(client->box, r, &err);
	client_reply_error(client, &err);
	return 0;
}

static int on_thaw(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	bool was_held = freeze_is_held_by(client->box->run.freeze, &client->freeze) &&
			freeze_stood_still(client->box->run.freeze);

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	client->state = CLIENT_DONE;
	if (freeze_end(client->box->run.freeze) < 0)
		run_end(&client->box->run, ENDED_POLICY);
	client_reply_u32(client, CONTROL_DONE, was_held ? 0 : 1);
	return 0;
}

/* Where it is inside: the home may be another directory on the host. */
static const char *path_of_tree(const struct box *box, uint32_t number)
{
	const char *path = box->build.staging.record.trees[number].path;
	const struct run_starter *starter = box->run.request->starter;

	return starter && str_equal(path, starter->home_from) ? box->run.policy->policy->home : path;
}

static int open_tree(const struct client *client, uint32_t number)
{
	const struct stage_record *record = &client->box->build.staging.record;

	if (!freeze_is_held_by(client->box->run.freeze, &client->freeze))
		return -EAGAIN;
	if (number >= record->tree_count)
		return -ENOENT;
	/* Below the root of the sandbox, which the box has open: its mounts are crossed, and no link is followed. */
	return path_open2(client->box->build.watch_options.root_fd, path_of_tree(client->box, number) + 1,
			  O_PATH | O_DIRECTORY, 0,
			  RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

static int on_tree(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	uint32_t number = frame_get_u32(frame);
	cleanup_fd int fd = FD_NONE;
	struct err err = { 0 };

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	fd = open_tree(client, number);
	if (fd < 0) {
		err_set(&err, ERR_STATE, -fd, "freeze", fd == -EAGAIN ? "the sandbox went on before it was finished"
			: "a staged directory cannot be opened inside: %s", err_errno_name(-fd));
		client_reply_error(client, &err);
		return 0;
	}
	frame_begin(&client->box->run.out, CONTROL_DONE);
	frame_put_u32(&client->box->run.out, 0);
	client_reply(client, frame_end(&client->box->run.out), &fd, 1);
	return 0;
}

/* Who acts is whoever is connected, not who the message says. */
static int on_review(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct client *client = context;
	struct review_entry entry;
	struct audit_event event;
	struct err err;
	gid_t gid;
	pid_t pid;
	int r = review_entry_get(frame, &entry);

	if (r == 0)
		r = fd_peer_credentials(client->fd, &entry.uid, &gid, &pid);
	if (r < 0)
		return r;
	event = review_event(&entry);
	event.pid = pid;
	r = audit_write(client->box->run.audit, &event);
	if (r == 0)
		r = audit_flush(client->box->run.audit);
	if (r == 0) {
		client_reply_u32(client, CONTROL_DONE, 0);
		return 0;
	}
	err_set(&err, ERR_STATE, -r, "audit", "the log of the session cannot be written: %s", err_errno_name(-r));
	client_reply_error(client, &err);
	run_end(&client->box->run, ENDED_POLICY);
	return 0;
}

static const struct frame_rule client_rules[] = {
	{ LINK_HELLO, 1 << CLIENT_NEW, 64, 0, 0, link_on_hello },
	{ CONTROL_FREEZE, 1 << CLIENT_NEW, CONTROL_FREEZE_NAME_MAX, 0, 0, on_freeze },
	{ CONTROL_THAW, 1 << CLIENT_FREEZING, 64, 0, 0, on_thaw },
	{ CONTROL_TREE, 1 << CLIENT_FREEZING, 64, 0, 0, on_tree },
	{ CONTROL_REVIEW, 1 << CLIENT_NEW, FRAME_MESSAGE_MAX, 0, 0, on_review },
};

static bool is_spawning(const struct box *box)
{
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] && !box->commands[i]->has_begun)
			return true;
	return false;
}

/*
 * One command at a time is on its way to init, and none during a freeze. Its socket takes no more than two: the next
 * send would wait for init, which waits for its child's exec, which waits for our answer. Everything else is heard.
 * 1: the next message is heard now; 0: it is a command that waits; -EAGAIN: there is none yet, and what comes after
 * this look must be looked at as well before it is heard.
 */
static int may_hear(struct client *client)
{
	uint8_t header[FRAME_HEADER_SIZE];
	bool is_late = is_spawning(client->box);
	ssize_t size;
	uint16_t type;

	if (!client->link || !(is_late || exec_snapshot_is_wanted(client->box)))
		return 1;
	size = recv(client->fd, header, sizeof header, MSG_PEEK | MSG_DONTWAIT);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (size != (ssize_t)sizeof header)
		return 1; /* it hung up, or broke the protocol */
	type = frame_peek_type(header);
	return !link_must_wait(client, type, is_late) && !(type == LINK_RUN && exec_snapshot_must_wait(client));
}

/* One message. 1; 0: it hung up; -EAGAIN: there is none; else it broke the protocol. */
static int hear(struct client *client)
{
	return client->link ? link_dispatch(client)
			    : frame_dispatch(client->fd, &client->box->run.scratch, client->state, client_rules,
					     ARRAY_SIZE(client_rules), client);
}

/* A greeting comes with what is wanted behind it: not each of them costs a turn of the loop. */
static int client_ready(void *context, uint32_t events)
{
	struct client *client = context;
	int r = client->is_deferred ? 0 : 1; /* only that it hung up can be heard of one that waits */

	for (int i = 0; r > 0 && i < MESSAGES_TOGETHER && (i == 0 || client->link); i++) {
		r = may_hear(client);
		if (r == 0) {
			client->is_deferred = true;
			return loop_change(client->box->run.loop, &client->source, 0);
		}
		r = r < 0 ? r : hear(client);
	}
	/* A client that breaks the protocol is cut off; the sandbox goes on. */
	if (r <= 0 && r != -EAGAIN)
		client_free(client);
	return 0;
}

static bool may_control(int fd, struct client *ret_client)
{
	gid_t gid;

	return fd_peer_credentials(fd, &ret_client->uid, &gid, &ret_client->pid) == 0 &&
	       (ret_client->uid == 0 || ret_client->uid == getuid());
}

/* It waits for an answer: it gets this one, and is let go when it has asked. */
static void refuse_client(struct client *client)
{
	struct err err;

	client->state = CLIENT_REFUSED;
	err_set(&err, ERR_STATE, EAGAIN, "session", "%d programs are connected to this sandbox already, and more are "
						    "not possible",
		BOX_CLIENTS_SERVED);
	err_hint(&err, "end one of them (`atoll exec`, `atoll ask`, `atoll top`, …), and try again");
	client_reply_error(client, &err);
}

/* Takes fd, which does not block. NULL: it is none of ours, or there are too many. */
static struct client *add_client(struct box *box, int fd)
{
	struct client known = { .box = box, .fd = fd }, **slot = NULL, *client;

	for (size_t i = 0; i < BOX_CLIENTS_MAX && !slot; i++)
		if (!box->control.clients[i])
			slot = &box->control.clients[i];
	client = slot && may_control(fd, &known) ? calloc(1, sizeof *client) : NULL;
	if (!client) {
		close(fd);
		return NULL;
	}
	*client = known;
	client->source =
		(struct loop_source){ .fd = fd, .events = EPOLLIN, .ready = client_ready, .context = client };
	*slot = client;
	if (loop_add(box->run.loop, &client->source) < 0) {
		client_free(client);
		return NULL;
	}
	if (slot >= &box->control.clients[BOX_CLIENTS_SERVED])
		refuse_client(client);
	return client;
}

static int accept_client(void *context, uint32_t events)
{
	struct box *box = context;
	int fd = accept4(box->control.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		(void)add_client(box, fd);
	return 0;
}

static int bind_socket(struct box *box)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup_fd int dir_fd = fd_open_at(AT_FDCWD, box->run.request->runtime_dir, O_PATH | O_DIRECTORY, 0);
	int r;

	if (dir_fd < 0)
		return dir_fd;
	/* Through the directory's fd: sun_path holds 108 bytes, and a home may lie deeper than that. */
	r = str_format(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s.sock", dir_fd,
		       box->run.request->session);
	if (r < 0)
		return r;
	box->control.listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (box->control.listen_fd < 0)
		return -errno;
	r = str_copy(box->control.name, sizeof box->control.name, box->run.request->session);
	if (r < 0)
		return r;
	if (bind(box->control.listen_fd, (struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(box->control.listen_fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

int control_bind(struct box *box)
{
	int r = bind_socket(box);

	if (r < 0) {
		err_set(box->run.err, ERR_STATE, -r, "control", "cannot make the control socket in %s: %s",
			box->run.request->runtime_dir, err_errno_name(-r));
		err_hint(box->run.err, "make it writable, or set XDG_RUNTIME_DIR to a writable directory");
	}
	return r;
}

static int socket_path(const struct box *box, const char *session, char out[PATH_MAX])
{
	return str_format(out, PATH_MAX, "%s/%s.sock", box->run.request->runtime_dir, session);
}

int control_rename(struct box *box)
{
	char from[PATH_MAX], to[PATH_MAX];
	int r = socket_path(box, box->control.name, from), fd;

	if (r == 0)
		r = socket_path(box, box->run.request->session, to);
	if (r == 0)
		r = path_rename_new(from, to);
	if (r == 0)
		r = str_copy(box->control.name, sizeof box->control.name, box->run.request->session);
	while (r == 0 && (fd = accept4(box->control.listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(fd);
	return r;
}

/*
 * The client that came with the request has said already what it wants to hear: it is heard before anything happens.
 * The run's own command is its, and does not end with it.
 */
static int adopt_starter(struct box *box)
{
	const struct run_greeting *greeting = &box->run.request->starter->greeting;
	int fd = fd_duplicate(box->run.request->starter->socket_fd);
	int r = fd < 0 ? fd : fd_set_nonblocking(fd, true);
	struct client *client = r < 0 ? NULL : add_client(box, fd);

	if (!client)
		return r < 0 ? r : -EPROTO;
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++) {
		if (!box->commands[i] || !box->commands[i]->is_main)
			continue;
		box->commands[i]->client = client;
		box->commands[i]->outlives_client = true;
	}
	/* Then it will not say that again; it may have no time to. */
	if (greeting->highest) {
		r = link_greet(client, (uint32_t)greeting->lowest, (uint32_t)greeting->highest);
		return r == 0 ? link_subscribe(client, greeting->events) : r;
	}
	while (recv(fd, &(char){ 0 }, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) {
		if (client_ready(client, EPOLLIN) < 0 || box->control.clients[0] != client || client->is_deferred)
			break;
	}
	return 0;
}

int control_start(struct box *box)
{
	int r = box->run.request->starter ? adopt_starter(box) : 0;

	if (r < 0)
		return r;
	box->control.source = (struct loop_source){
		.fd = box->control.listen_fd, .events = EPOLLIN, .ready = accept_client, .context = box
	};
	return loop_add(box->run.loop, &box->control.source);
}

bool control_is_followed(const struct box *box)
{
	for (size_t i = 0; i < BOX_CLIENTS_MAX; i++)
		if (box->control.clients[i] && box->control.clients[i]->is_follower)
			return true;
	return false;
}

static void tell_followers(struct box *box)
{
	for (size_t i = 0; box->approval.queue.state && i < BOX_CLIENTS_MAX; i++)
		if (box->control.clients[i] && box->control.clients[i]->link)
			link_tell_questions(box->control.clients[i]);
}

int control_check(struct box *box)
{
	tell_followers(box);
	link_check(box);
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] && box->commands[i]->lasting)
			lasting_check(box->commands[i]->lasting);
	if (box->control.stop_ns == UINT64_MAX || box->run.ended != ENDED_NOT)
		return 0;
	if (clock_monotonic_ns() >= box->control.stop_ns)
		run_end(&box->run, ENDED_STOPPED);
	for (size_t i = 0; i < BOX_COMMANDS_MAX; i++)
		if (box->commands[i] && !box->commands[i]->has_exited)
			return 0;
	run_end(&box->run, ENDED_STOPPED);
	return 0;
}

void control_resume(struct box *box)
{
	for (size_t i = 0; i < BOX_CLIENTS_MAX; i++) {
		struct client *client = box->control.clients[i];

		if (!client || !client->is_deferred)
			continue;
		client->is_deferred = false;
		if (loop_change(box->run.loop, &client->source, EPOLLIN) < 0)
			shutdown(client->fd, SHUT_RDWR); /* it sees that it was not heard */
	}
}

/* For people and programs: why there is no more of it. */
static const char *command_end_name(const struct box *box, const struct command *command, const char *lost)
{
	if (lost)
		return lost;
	if (command->is_overdue)
		return "time";
	return ended_names[!command->has_exited ? box->run.ended : command->result.signal ? ENDED_SIGNAL : ENDED_EXIT];
}

void control_command_ended(struct box *box, struct command *command)
{
	const char *lost = NULL;
	int lost_errno = command->has_stdio ? stdio_lost(&command->stdio, &lost) : 0;

	command->name.ended = command_end_name(box, command, lost_errno ? lost : NULL);
	if (!command->is_told)
		link_command_ended(box, command, command->name.ended, lost_errno);
	command->is_told = true;
	command->client = NULL;
}

void control_close(struct box *box)
{
	exec_snapshot_done(box);
	if (box->control.listen_fd < 0)
		return;
	loop_remove(box->run.loop, &box->control.source);
	close_fd(&box->control.listen_fd);
	box->control.has_name = true;
}

void control_unlink(struct box *box)
{
	char path[PATH_MAX];

	if (box->control.has_name && socket_path(box, box->control.name, path) == 0)
		unlink(path);
	box->control.has_name = false;
}

void control_dismiss_clients(struct box *box)
{
	for (size_t i = 0; i < BOX_CLIENTS_MAX; i++) {
		struct client *client = box->control.clients[i];

		if (!client)
			continue;
		if (client->link)
			link_conclude(client);
		client_free(client);
	}
}
