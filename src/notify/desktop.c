/* SPDX-License-Identifier: Apache-2.0 */
#include <grp.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signal.h>
#include <systemd/sd-bus.h>

#include "base/str.h"
#include "confine/confine.h"
#include "notify/desktop-text.h"
#include "notify/link.h"
#include "os/clock.h"

/*
 * Desktop Notifications Specification 1.2, as a client. The bus is reached and the server asked for what it can do
 * before this process gives up everything but its two sockets. An action counts where it comes from the very connection
 * that showed the notification; which question that was about is known here, and never changes for one notification.
 */

enum { CONNECT_MS = 3000, CALL_MS = 3000, ACTIVATE_MS = 10000, US_PER_MS = 1000, NS_PER_MS = 1000000, NAME_SIZE = 256,
       SUMMARY_SIZE = 128, URGENCY_CRITICAL = 2 };

#define SERVICE "org.freedesktop.Notifications"
#define OBJECT "/org/freedesktop/Notifications"

struct notice {
	uint32_t number;             /* of the question; 0: free */
	uint8_t hash[ASKING_HASH_SIZE];
	bool may_allow;              /* all of it is shown */
	bool is_gone;                /* a person took it from the screen */
	uint32_t id;                 /* 0: not on the screen */
	char *body;                  /* owned */
	char summary[SUMMARY_SIZE];
	const char *allow_label;
};

struct desktop {
	struct notify_link *link;
	const char *session;
	sd_bus *bus;
	bool has_actions;
	enum desktop_form form;
	char server[NAME_SIZE];      /* its unique name; "": it is not there */
	struct notice notices[NOTIFY_OPEN_MAX];
	int lost;                    /* negative: the box has gone, met in a callback */
};

/* ---- the bus ---- */

/* Nothing that starts a program, and no other machine. */
static bool is_local(const char *address)
{
	bool is_unix = *address != 0;

	for (const char *at = address; at && *at; at = strchr(at, ';') ? strchr(at, ';') + 1 : NULL)
		is_unix = is_unix && str_has_prefix(at, "unix:");
	return is_unix;
}

static int wait_until_ready(sd_bus *bus)
{
	uint64_t until_ns = clock_monotonic_ns() + CONNECT_MS * (uint64_t)NS_PER_MS;

	while (sd_bus_is_ready(bus) == 0) {
		uint64_t now_ns = clock_monotonic_ns();
		int r = sd_bus_process(bus, NULL);

		if (r == 0 && now_ns >= until_ns)
			return -ETIMEDOUT;
		if (r == 0)
			r = sd_bus_wait(bus, (until_ns - now_ns) / US_PER_MS);
		if (r < 0)
			return r;
	}
	return sd_bus_is_ready(bus);
}

static int connect_bus(struct desktop *desktop, const char *address)
{
	int r = is_local(address) ? sd_bus_new(&desktop->bus) : -EPROTONOSUPPORT;

	if (r >= 0)
		r = sd_bus_set_address(desktop->bus, address);
	if (r >= 0)
		r = sd_bus_set_bus_client(desktop->bus, true);
	if (r >= 0)
		r = sd_bus_start(desktop->bus);
	if (r >= 0)
		r = wait_until_ready(desktop->bus);
	return r < 0 ? r : 0;
}

/* Its answer says who it is, and that it is there: a server may have to be started for it. */
static int ask_server(struct desktop *desktop)
{
	sd_bus_message *call = NULL, *reply = NULL;
	const char *text;
	int r = sd_bus_message_new_method_call(desktop->bus, &call, SERVICE, OBJECT, SERVICE, "GetCapabilities");

	if (r >= 0)
		r = sd_bus_call(desktop->bus, call, ACTIVATE_MS * (uint64_t)US_PER_MS, NULL, &reply);
	if (r >= 0)
		r = sd_bus_message_enter_container(reply, 'a', "s");
	while (r > 0) {
		r = sd_bus_message_read(reply, "s", &text);
		if (r > 0) {
			desktop->has_actions |= str_equal(text, "actions");
			if (str_equal(text, "body-markup"))
				desktop->form = DESKTOP_MARKUP;
		}
	}
	if (r >= 0 && sd_bus_message_get_sender(reply))
		r = str_copy(desktop->server, sizeof desktop->server, sd_bus_message_get_sender(reply));
	sd_bus_message_unref(reply);
	sd_bus_message_unref(call);
	return r < 0 ? r : 0;
}

/* ---- notifications ---- */

static struct notice *find_number(struct desktop *desktop, uint32_t number)
{
	for (size_t i = 0; i < NOTIFY_OPEN_MAX; i++)
		if (desktop->notices[i].number == number)
			return &desktop->notices[i];
	return NULL;
}

static struct notice *find_id(struct desktop *desktop, uint32_t id)
{
	for (size_t i = 0; id && i < NOTIFY_OPEN_MAX; i++)
		if (desktop->notices[i].number && desktop->notices[i].id == id)
			return &desktop->notices[i];
	return NULL;
}

static int put_actions(const struct desktop *desktop, const struct notice *notice, sd_bus_message *call)
{
	int r = sd_bus_message_open_container(call, 'a', "s");

	if (r >= 0 && desktop->has_actions && notice->may_allow)
		r = sd_bus_message_append(call, "ss", "allow", notice->allow_label);
	if (r >= 0 && desktop->has_actions)
		r = sd_bus_message_append(call, "ss", "deny", "Deny");
	return r < 0 ? r : sd_bus_message_close_container(call);
}

/* On the screen until somebody answers, here or elsewhere. */
static int show(struct desktop *desktop, struct notice *notice)
{
	sd_bus_message *call = NULL, *reply = NULL;
	int r = sd_bus_message_new_method_call(desktop->bus, &call, SERVICE, OBJECT, SERVICE, "Notify");

	if (r >= 0)
		r = sd_bus_message_append(call, "susss", "atoll", notice->id, "dialog-question", notice->summary,
					  notice->body);
	if (r >= 0)
		r = put_actions(desktop, notice, call);
	if (r >= 0)
		r = sd_bus_message_append(call, "a{sv}i", 1, "urgency", "y", URGENCY_CRITICAL, 0);
	if (r >= 0)
		r = sd_bus_call(desktop->bus, call, CALL_MS * (uint64_t)US_PER_MS, NULL, &reply);
	if (r >= 0)
		r = sd_bus_message_read(reply, "u", &notice->id);
	if (r >= 0 && sd_bus_message_get_sender(reply))
		r = str_copy(desktop->server, sizeof desktop->server, sd_bus_message_get_sender(reply));
	sd_bus_message_unref(reply);
	sd_bus_message_unref(call);
	notice->is_gone = false;
	return notify_tell_state(desktop->link, r >= 0,
				 r >= 0 ? NULL : desktop->link->is_heard || !desktop->link->is_told
						 ? "the notification service does not answer" : NULL);
}

static void take_away(struct desktop *desktop, struct notice *notice)
{
	sd_bus_message *call = NULL;

	if (notice->id && !notice->is_gone && desktop->server[0] &&
	    sd_bus_message_new_method_call(desktop->bus, &call, SERVICE, OBJECT, SERVICE, "CloseNotification") >= 0 &&
	    sd_bus_message_set_expect_reply(call, false) >= 0 && sd_bus_message_append(call, "u", notice->id) >= 0)
		(void)!sd_bus_send(desktop->bus, call, NULL);
	sd_bus_message_unref(call);
	free(notice->body);
	*notice = (struct notice){ 0 };
}

/* ---- what the server says ---- */

static bool is_from_server(const struct desktop *desktop, sd_bus_message *message)
{
	return desktop->server[0] && str_equal(sd_bus_message_get_sender(message), desktop->server);
}

static int on_action(sd_bus_message *message, void *context, sd_bus_error *ret_error)
{
	struct desktop *desktop = context;
	struct asking_reply reply = { .scope = ASKING_ONCE };
	const struct notice *notice;
	const char *key;
	uint32_t id;

	if (!is_from_server(desktop, message) || sd_bus_message_read(message, "us", &id, &key) < 0)
		return 0;
	notice = find_id(desktop, id);
	reply.is_allowed = str_equal(key, "allow");
	if (!notice || (reply.is_allowed && !notice->may_allow) || (!reply.is_allowed && !str_equal(key, "deny")))
		return 0;
	reply.number = notice->number;
	reply.hash = notice->hash;
	desktop->lost = notify_tell_answer(desktop->link, &reply);
	return 0;
}

static int on_closed(sd_bus_message *message, void *context, sd_bus_error *ret_error)
{
	struct desktop *desktop = context;
	struct notice *notice;
	uint32_t id, why;

	if (!is_from_server(desktop, message) || sd_bus_message_read(message, "uu", &id, &why) < 0)
		return 0;
	notice = find_id(desktop, id);
	if (notice)
		notice->is_gone = true;
	return 0;
}

/* A server that was started again shows nothing of what the last one did. */
static int on_owner(sd_bus_message *message, void *context, sd_bus_error *ret_error)
{
	struct desktop *desktop = context;
	const char *name, *before, *after;

	if (!str_equal(sd_bus_message_get_sender(message), "org.freedesktop.DBus") ||
	    sd_bus_message_read(message, "sss", &name, &before, &after) < 0 || !str_equal(name, SERVICE) ||
	    str_equal(after, desktop->server) || str_copy(desktop->server, sizeof desktop->server, after) < 0)
		return 0;
	if (!*after) {
		desktop->lost = notify_tell_state(desktop->link, false, "the notification service has ended");
		return 0;
	}
	desktop->lost = notify_tell_state(desktop->link, true, NULL);
	for (size_t i = 0; desktop->lost == 0 && i < NOTIFY_OPEN_MAX; i++) {
		desktop->notices[i].id = 0;
		if (desktop->notices[i].number)
			desktop->lost = show(desktop, &desktop->notices[i]);
	}
	return 0;
}

static int listen_to_server(struct desktop *desktop)
{
	int r = sd_bus_match_signal(desktop->bus, NULL, NULL, OBJECT, SERVICE, "ActionInvoked", on_action, desktop);

	if (r >= 0)
		r = sd_bus_match_signal(desktop->bus, NULL, NULL, OBJECT, SERVICE, "NotificationClosed", on_closed,
					desktop);
	if (r >= 0)
		r = sd_bus_match_signal(desktop->bus, NULL, "org.freedesktop.DBus", "/org/freedesktop/DBus",
					"org.freedesktop.DBus", "NameOwnerChanged", on_owner, desktop);
	return r < 0 ? r : 0;
}

/* ---- what the box says ---- */

static int on_question(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct desktop *desktop = context;
	struct notify_question question;
	cleanup_buf struct buf body = { 0 };
	struct notice *notice;
	int r = notify_question_get(frame, &question);

	if (r < 0)
		return r;
	notice = find_number(desktop, question.number);
	if (!notice)
		notice = find_number(desktop, 0);
	if (!notice)
		return -EPROTO;
	buf_init(&body, DESKTOP_BODY_MAX);
	notice->may_allow = desktop_body_put(&body, &question, desktop->session, desktop->form);
	free(notice->body);
	notice->body = str_dup(buf_text(&body));
	if (buf_error(&body) || !notice->body)
		return -ENOMEM;
	notice->number = question.number;
	memcpy(notice->hash, question.hash, sizeof notice->hash);
	notice->allow_label = question.state == ASKING_WAITS ? "Allow once" : "Allow the next try";
	if (str_format(notice->summary, sizeof notice->summary, "atoll asks: question %u of %s", question.number,
		       desktop->session) < 0)
		return -EPROTO;
	/* Somebody who took it away does not want to see it again because nothing waits any more. */
	if (notice->is_gone && question.state != ASKING_WAITS)
		return 0;
	return show(desktop, notice);
}

static int on_close(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct desktop *desktop = context;
	enum notify_end end;
	uint32_t number;
	int r = notify_close_get(frame, &number, &end);
	struct notice *notice = r == 0 && number ? find_number(desktop, number) : NULL;

	if (notice)
		take_away(desktop, notice);
	return r;
}

/* It stays until somebody takes it away: the run may be over by then. */
static int on_alert(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct desktop *desktop = context;
	cleanup_buf struct buf body = { 0 };
	sd_bus_message *call = NULL;
	const char *kind, *what;
	char summary[SUMMARY_SIZE];
	int r = notify_alert_get(frame, &kind, &what);

	if (r < 0)
		return r;
	buf_init(&body, DESKTOP_BODY_MAX);
	desktop_alert_put(&body, what, desktop->form);
	if (str_format(summary, sizeof summary, "atoll: alert in %s", desktop->session) < 0 || buf_error(&body))
		return -EPROTO;
	r = sd_bus_message_new_method_call(desktop->bus, &call, SERVICE, OBJECT, SERVICE, "Notify");
	if (r >= 0)
		r = sd_bus_message_append(call, "susssasa{sv}i", "atoll", 0, "dialog-warning", summary, buf_text(&body),
					  0, 1, "urgency", "y", URGENCY_CRITICAL, 0);
	if (r >= 0)
		r = sd_bus_message_set_expect_reply(call, false);
	if (r >= 0)
		r = sd_bus_send(desktop->bus, call, NULL);
	if (r >= 0)
		(void)!sd_bus_flush(desktop->bus);
	sd_bus_message_unref(call);
	return 0;
}

static const struct frame_rule rules[] = {
	{ NOTIFY_ALERT, 1, 4096, 0, 0, on_alert },
	{ NOTIFY_QUESTION, 1, FRAME_MESSAGE_MAX, 0, 0, on_question },
	{ NOTIFY_CLOSE, 1, 64, 0, 0, on_close },
};

/* ---- the loop ---- */

static int timeout_ms(sd_bus *bus)
{
	uint64_t until_us, now_us = clock_monotonic_ns() / US_PER_MS;

	if (sd_bus_get_timeout(bus, &until_us) < 0 || until_us == UINT64_MAX)
		return -1;
	return until_us > now_us ? (int)((until_us - now_us) / US_PER_MS) + 1 : 0;
}

/* 1: go on; 0: the box has gone; negative: what is wrong. */
static int step(struct desktop *desktop)
{
	struct pollfd polled[2] = { { .fd = desktop->link->fd, .events = POLLIN } };
	int r = sd_bus_process(desktop->bus, NULL);

	if (desktop->lost < 0)
		return desktop->lost;
	if (r != 0)
		return r < 0 ? -ENOTCONN : 1;
	polled[1] = (struct pollfd){ .fd = sd_bus_get_fd(desktop->bus),
				     .events = (short)sd_bus_get_events(desktop->bus) };
	r = poll(polled, ARRAY_SIZE(polled), timeout_ms(desktop->bus));
	if (r < 0)
		return errno == EINTR ? 1 : -errno;
	if (!polled[0].revents)
		return 1;
	return frame_dispatch(desktop->link->fd, &desktop->link->scratch, 0, rules, ARRAY_SIZE(rules), desktop);
}

static int give_up(struct notify_link *link, const char *what, int r)
{
	char trouble[NOTIFY_TROUBLE_MAX + 1];

	if (str_format(trouble, sizeof trouble, "%s: %s", what, strerror(-r)) < 0)
		return -EINVAL;
	return notify_tell_state(link, false, trouble);
}

/* For root the bus knows by now who came; from here on it is a user that has nothing. */
static int become(uint32_t uid)
{
	if (uid && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 ||
		    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0))
		return -errno;
	return 0;
}

static int serve(struct desktop *desktop)
{
	int r = 1;

	/* Where the box has gone already, what it said before is still there to be read: an alert. */
	(void)!notify_tell_state(desktop->link, true, NULL);
	while (r > 0)
		r = step(desktop);
	if (r == -ENOTCONN)
		r = notify_tell_state(desktop->link, false, "the session bus has gone");
	return r;
}

int desktop_run(struct notify_link *link, const struct notify_given *given, struct err *err)
{
	struct desktop desktop = { .link = link, .session = given->start.session };
	int r = connect_bus(&desktop, given->start.address);

	if (r < 0) {
		r = give_up(link, "the session bus cannot be reached", r);
		goto out;
	}
	r = listen_to_server(&desktop);
	if (r == 0)
		r = ask_server(&desktop);
	if (r < 0) {
		r = give_up(link, "there is no notification service on the session bus", r);
		goto out;
	}
	r = become(given->start.uid);
	if (r == 0)
		r = confine_self(CONFINE_NOTIFY_DESKTOP, NULL, 0, err);
	if (r == 0)
		r = serve(&desktop);
out:
	for (size_t i = 0; i < NOTIFY_OPEN_MAX; i++)
		if (desktop.notices[i].number)
			take_away(&desktop, &desktop.notices[i]);
	sd_bus_flush_close_unref(desktop.bus);
	return r;
}
