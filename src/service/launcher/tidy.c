/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/tidy.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/spawn.h"
#include "service/launcher/call/call.h"
#include "service/launcher/store/builds.h"
#include "session/record.h"

enum {
	EVERY = 256,
	LATEST_S = 3600,
	SOON_S = 2,
	YOUNG_S = 660, /* behind the grace of stage/snapshot/gc.h */
	CPU_MAX_S = 600,
	LOOK_S = 10,          /* at the disk, while something runs that may fill it */
	DISK_S = 60,          /* between two runs because of it */
	NS_PER_S = 1000000000,
	HELD_MAX = 16 << 20,
};

/* Of all sessions that ended, logs and all. */
#define KEPT_SIZE "1GiB"

/* ---- what is needed ---- */

static void put_session(struct buf *out, const char *session)
{
	if (!*session)
		return;
	buf_put_text(out, session);
	buf_put_char(out, '\n');
}

static int put_template(void *context, const struct template_row *row)
{
	put_session(context, row->session);
	return 0;
}

static int put_build(void *context, const struct build_row *row)
{
	put_session(context, row->session);
	return 0;
}

static int put_step(void *context, const struct build_cached *row)
{
	put_session(context, row->session);
	return 0;
}

int tidy_hold(struct daemon *daemon)
{
	cleanup_buf struct buf text;
	char path[PATH_MAX];
	int r = path_join(path, sizeof path, daemon->places.state, SESSION_HELD_FILE);

	buf_init(&text, HELD_MAX);
	if (r == 0)
		r = database_each_template(daemon->store, put_template, &text);
	if (r == 0)
		r = builds_each(daemon->store, put_build, &text);
	if (r == 0)
		r = builds_each_cached(daemon->store, put_step, &text);
	for (const struct sandbox *sandbox = daemon->registry.oldest; sandbox; sandbox = sandbox->newer) {
		if (sandbox->state == SANDBOX_STORED)
			put_session(&text, sandbox->session);
		put_session(&text, sandbox->beginning.stored);
	}
	if (r == 0)
		r = buf_error(&text);
	if (r == 0)
		r = fd_replace_file_at(AT_FDCWD, path, text.bytes, text.size, 0600);
	if (r < 0)
		(void)!call_note(daemon, "tidy", NULL, "the sessions that are needed cannot be written down");
	return r;
}

/* ---- what is not ---- */

static void finish(struct daemon *daemon)
{
	struct tidying *tidying = &daemon->tidying;

	loop_remove(&daemon->loop, &tidying->output);
	close_fd(&tidying->output.fd);
	if (tidying->is_for_disk)
		(void)!call_note(daemon, "tidy.disk", NULL,
				 tidying->said[0] ? tidying->said : "nothing could be removed");
	tidying->is_for_disk = false;
}

/* One line for people: the log has it where the disk was full. Else its end is all that counts. */
static int on_output(void *context, uint32_t events)
{
	struct daemon *daemon = context;
	char text[256];
	ssize_t n = read(daemon->tidying.output.fd, text, sizeof text - 1);

	if (n > 0 && !daemon->tidying.said[0]) {
		text[n] = 0;
		text[strcspn(text, "\n")] = 0;
		(void)!str_copy(daemon->tidying.said, sizeof daemon->tidying.said, text);
	}
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return 0;
	finish(daemon);
	if (daemon->tidying.ended || daemon->registry.count)
		daemon_wake_at(daemon, clock_monotonic_ns());
	return 0;
}

/* is_late: more end than are removed at the lowest priority, or there is no room for more. */
static int start(struct daemon *daemon, bool is_late, bool is_for_disk)
{
	const struct daemon_places *places = &daemon->places;
	char program[PATH_MAX], keep[24], age[32];
	const char *argv[] = { "atoll-stage", "gc", "--state", places->state, "--project", places->project,
			       "--keep", keep, "--max-size", KEPT_SIZE, "--unreviewed", "--terse",
			       is_for_disk && daemon->settings->retain_ms != UINT64_MAX ? "--older-than" : NULL,
			       age, NULL };
	struct spawn gc = { .program = program, .argv = argv, .fd_count = 1, .keeps_priority = is_late };
	cleanup_fd int theirs = FD_NONE;
	int pair[2], r = path_join(program, sizeof program, places->programs, "atoll-stage");

	/* Those that run are no part of it, but stand in the same list. */
	if (r == 0)
		r = str_format(keep, sizeof keep, "%llu",
			       (unsigned long long)(daemon->settings->kept_max + daemon->registry.count));
	if (r == 0)
		r = str_format(age, sizeof age, "%llums", (unsigned long long)daemon->settings->retain_ms);
	if (r == 0 && pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		r = -errno;
	if (r < 0)
		return r;
	theirs = pair[1];
	daemon->tidying.said[0] = 0;
	daemon->tidying.is_for_disk = is_for_disk;
	daemon->tidying.output = (struct loop_source){ .fd = pair[0], .events = EPOLLIN, .ready = on_output,
						       .context = daemon };
	gc.fds[0] = (struct spawn_fd){ theirs, STDOUT_FILENO };
	r = loop_add(&daemon->loop, &daemon->tidying.output);
	if (r == 0)
		r = spawn_background(&gc, CPU_MAX_S);
	if (r < 0)
		finish(daemon);
	return r;
}

void tidy_note_end(struct daemon *daemon)
{
	struct tidying *tidying = &daemon->tidying;
	uint64_t now_ns = clock_monotonic_ns();

	if (!tidying->ended++)
		tidying->latest_ns = now_ns + LATEST_S * (uint64_t)NS_PER_S;
	daemon_wake_at(daemon, tidying->ended >= EVERY ? now_ns : tidying->latest_ns);
}

void tidy_soon(struct daemon *daemon)
{
	uint64_t soon_ns = clock_monotonic_ns() + SOON_S * (uint64_t)NS_PER_S;

	tidy_note_end(daemon);
	if (daemon->tidying.latest_ns > soon_ns)
		daemon->tidying.latest_ns = soon_ns;
	daemon_wake_at(daemon, daemon->tidying.latest_ns);
}

void tidy_forget(struct daemon *daemon, const char *session, const char *snapshot)
{
	struct tidying *tidying = &daemon->tidying;
	atoll_sandbox *handle = NULL;
	atoll_cursor *cursor = NULL;

	if (atoll_find(daemon->context, session, &handle, NULL) == 0 &&
	    atoll_forget(handle, snapshot, &cursor, NULL) == 0)
		atoll_cursor_free(cursor);
	atoll_sandbox_free(handle);
	/* Not at once: the name goes in a process of its own, and more of them may follow. */
	tidy_soon(daemon);
	tidying->again_ns = clock_monotonic_ns() + YOUNG_S * (uint64_t)NS_PER_S;
}

/* Whether the disk is to be made free now, and when to look again. */
static bool is_disk_due(struct daemon *daemon, uint64_t now_ns, uint64_t *ret_next_ns)
{
	struct tidying *tidying = &daemon->tidying;

	*ret_next_ns = daemon->registry.count && daemon->settings->disk_min ? now_ns + LOOK_S * (uint64_t)NS_PER_S
									    : UINT64_MAX;
	if (!quotas_is_disk_short(&daemon->quotas, daemon->places.state, daemon->settings->disk_min, now_ns))
		return false;
	if (now_ns < tidying->disk_ns) {
		*ret_next_ns = tidying->disk_ns;
		return false;
	}
	return true;
}

static void tidy_for_disk(struct daemon *daemon, uint64_t now_ns)
{
	daemon->tidying.disk_ns = now_ns + DISK_S * (uint64_t)NS_PER_S;
	(void)!call_note(daemon, "tidy.disk", NULL,
			 "the disk is nearly full: what ended longer ago than is retained goes, with its log");
	if (start(daemon, true, true) < 0)
		(void)!call_note(daemon, "tidy.disk", NULL, "what has ended cannot be removed");
}

static uint64_t tidy_ended(struct daemon *daemon, uint64_t now_ns)
{
	struct tidying *tidying = &daemon->tidying;
	bool is_late;

	if (!tidying->ended)
		return UINT64_MAX;
	if (tidying->ended < EVERY && now_ns < tidying->latest_ns)
		return tidying->latest_ns;
	is_late = tidying->ended > 2 * EVERY;
	tidying->ended = 0;
	/* Layers that somebody may be about to build on are left alone for ten minutes. */
	if (tidying->again_ns > now_ns) {
		tidying->ended = 1;
		tidying->latest_ns = tidying->again_ns;
	}
	if (start(daemon, is_late, false) < 0) {
		(void)!call_note(daemon, "tidy", NULL, "what has ended cannot be removed");
		tidy_note_end(daemon);
		return tidying->latest_ns;
	}
	return UINT64_MAX;
}

uint64_t tidy_turn(struct daemon *daemon)
{
	uint64_t now_ns = clock_monotonic_ns(), look_ns, next_ns = UINT64_MAX;

	/* Its end wakes us. */
	if (daemon->tidying.output.fd >= 0)
		return UINT64_MAX;
	if (is_disk_due(daemon, now_ns, &look_ns))
		tidy_for_disk(daemon, now_ns);
	else
		next_ns = tidy_ended(daemon, now_ns);
	return next_ns < look_ns ? next_ns : look_ns;
}
