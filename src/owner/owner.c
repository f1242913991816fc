/* SPDX-License-Identifier: Apache-2.0 */
#include "owner/owner.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "audit/writer.h"
#include "base/str.h"
#include "gate-file/gate.h"
#include "os/clock.h"
#include "os/fd.h"
#include "owner/watches.h"
#include "supervise/run.h"
#include "watch/watch.h"

/*
 * Theory of operation. One request at a time is with the process. It says by descriptors where the paths of the request
 * lead, links followed; what the kernel calls them here is what the policy is asked about and what the log has; and
 * only that name goes back, to be opened without links. So what is done is what was judged, whatever is swapped
 * meanwhile.
 *
 * The process lives among hostile files. What it says is believed only as the answer to what it was asked: one place a
 * turn, then one reply, with a descriptor where one was to be opened. Anything else ends it.
 */

enum { MS_NS = 1000000, STUCK_MS = 50, FALLS_MAX = 1 << 20, ERRNO_END = 4096 };

struct owner_job {
	struct owner_job *next;
	struct owner_asker asker; /* done NULL: nobody wants to know any more */
	uint64_t ticket, own_ticket;
	enum files_operation operation;
	char *recorded;          /* owned: the path that its last record has; NULL: none */
	bool has_begun, was_tried; /* begun: something may have been done */
	bool is_placed, is_allowed; /* in this turn */
	unsigned turns;          /* that a remove has had and was not done */
	size_t size;
	uint8_t bytes[];         /* FILES_REQUEST */
};

static int next_job(struct owner *owner);
static void note_watch(struct owner *owner, const struct owner_job *job);
static void end_watch(struct owner *owner, struct owner_watch *watch);

/* ---- jobs ---- */

static void remove_first(struct owner *owner)
{
	struct owner_job *job = owner->first;

	owner->first = job->next;
	if (!owner->first)
		owner->last = &owner->first;
	owner->count--;
	owner->bytes -= job->size;
}

static void append(struct owner *owner, struct owner_job *job)
{
	job->next = NULL;
	*owner->last = job;
	owner->last = &job->next;
	owner->count++;
	owner->bytes += job->size;
}

/* The one in hand is over. */
static void finish(struct owner *owner, const struct owner_answer *answer)
{
	struct owner_job *job = owner->first;

	owner->is_asked = false;
	remove_first(owner);
	if (job->asker.done)
		job->asker.done(job->asker.context, job->ticket, job->operation, answer);
	free(job->recorded);
	free(job);
}

static void fail(struct owner *owner, int errnum)
{
	int none = FD_NONE;

	finish(owner, &(struct owner_answer){ .errnum = errnum, .fd = &none });
}

static void fail_all(struct owner *owner, int errnum)
{
	while (owner->first)
		fail(owner, errnum);
}

/* ---- judged and recorded ---- */

/* As the kernel calls what fd names, with what is missing below it. A positive errno. */
static int name_place(int fd, const char *rest, char out[PATH_MAX])
{
	char link[32];
	ssize_t size;

	if (str_format(link, sizeof link, "/proc/self/fd/%d", fd) < 0)
		return EINVAL;
	size = readlink(link, out, PATH_MAX - 1);
	if (size < 1 || size >= PATH_MAX - 1 || out[0] != '/')
		return size >= PATH_MAX - 1 ? ENAMETOOLONG : EACCES;
	out[size] = 0;
	if (!rest || !*rest)
		return 0;
	if (size == 1)
		size = 0;
	if (str_format(out + size, (size_t)(PATH_MAX - size), "/%s", rest) < 0)
		return ENAMETOOLONG;
	/* A ".." would be judged as another file than it is. */
	return path_is_normal(out) ? 0 : EACCES;
}

static enum watch_file_access access_of(const struct files_request *request)
{
	static const uint8_t accesses[FILES_OPERATION_COUNT] = {
		[FILES_MKDIR] = WATCH_FILE_WRITE, [FILES_MOVE] = WATCH_FILE_RENAME,
		[FILES_REMOVE] = WATCH_FILE_REMOVE, [FILES_SETATTR] = WATCH_FILE_WRITE,
	};

	if (request->operation == FILES_OPEN && request->flags & ~(uint64_t)FILES_OPEN_READ)
		return WATCH_FILE_WRITE;
	return (enum watch_file_access)accesses[request->operation];
}

struct act {
	const struct files_request *request;
	const struct owner_asker *asker;
	const char *path, *to;
};

static void put_act(struct json *json, const void *context)
{
	const struct act *act = context;

	json_string(json, "act", files_operation_names[act->request->operation]);
	json_u64(json, "uid", act->asker->uid);
	if (act->request->path && !str_equal(act->request->path, act->path))
		json_bytes(json, "asked", act->request->path, strlen(act->request->path));
	if (act->to)
		json_bytes(json, "to", act->to, strlen(act->to));
	if (act->request->set & 1u << FILES_HAS_FLAGS)
		json_u64(json, "flags", act->request->flags);
	if (act->request->set & 1u << FILES_HAS_MODE)
		json_u64(json, "mode", act->request->mode);
}

/* Negative: the log failed. */
static int record(const struct owner *owner, const struct act *act, bool is_allowed)
{
	char port[16] = "";
	struct audit_event event = {
		.type = act->path ? AUDIT_OWNER_FILE : AUDIT_OWNER_CONNECT, .verdict = is_allowed ? "allow" : "deny",
		.pid = act->asker->pid, .subject = act->path ? act->path : port, .write_detail = put_act,
		.context = act,
	};

	if (!act->path && str_format(port, sizeof port, "%u", (unsigned)act->request->port) < 0)
		return -EINVAL;
	event.subject_size = strlen(event.subject);
	return audit_write(owner->run->audit, &event);
}

static int judge(struct owner *owner, const struct files_request *request, const char *path, const char *to)
{
	enum watch_file_access access = access_of(request);
	int r = file_gate_judge_owner(owner->gate, access, path);

	return r == 0 && to ? file_gate_judge_owner(owner->gate, WATCH_FILE_WRITE, to) : r;
}

static int send_go(struct owner *owner, int errnum, const char *path, const char *to)
{
	struct buf *out = &owner->run->out;
	int r;

	frame_begin(out, FILES_GO);
	frame_put_u64(out, owner->first->own_ticket);
	frame_put_u32(out, (uint32_t)errnum);
	frame_put_string(out, path);
	frame_put_string(out, to);
	r = frame_end(out);
	return r < 0 ? r : peer_send(&owner->peer, NULL, 0);
}

/* What was asked, once more: it lies in the job. */
static int get_request(struct owner_job *job, struct files_request *request)
{
	struct frame frame;
	int r = frame_open(&frame, job->bytes, job->size);

	(void)frame_get_u64(&frame);
	return r < 0 ? r : files_request_get(&frame, request);
}

/* Each turn of a long one is judged; its record is one, as long as its path is. */
static int record_turn(const struct owner *owner, const struct act *act, bool is_allowed)
{
	struct owner_job *job = owner->first;
	int r;

	if (is_allowed && job->recorded && str_equal(job->recorded, act->path))
		return 0;
	r = record(owner, act, is_allowed);
	free(job->recorded);
	job->recorded = is_allowed ? str_dup(act->path) : NULL;
	return r;
}

static int on_place(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct owner *owner = context;
	uint64_t ticket = frame_get_u64(frame);
	const char *rest = frame_get_string(frame), *to_rest = frame_get_string(frame);
	char path[PATH_MAX], to[PATH_MAX];
	struct files_request request;
	struct act act = { .request = &request };
	struct owner_job *job = owner->first;
	int r = frame_finish(frame), errnum;

	if (r < 0 || !owner->is_asked || ticket != job->own_ticket || job->is_placed)
		return -EBADMSG;
	r = get_request(job, &request);
	if (r < 0)
		return r;
	job->is_placed = true;
	errnum = !request.path || (request.to != NULL) != (fd_count == 2) ? EINVAL : name_place(fds[0], rest, path);
	if (errnum == 0 && request.to)
		errnum = name_place(fds[1], to_rest, to);
	if (errnum == 0) {
		act = (struct act){ &request, &job->asker, path, request.to ? to : NULL };
		errnum = judge(owner, &request, path, act.to);
		r = record_turn(owner, &act, errnum == 0);
	}
	free(request.attributes);
	if (r < 0)
		return peer_fail(&owner->peer, r);
	job->is_allowed = errnum == 0;
	job->has_begun = job->has_begun || job->is_allowed;
	r = errnum ? send_go(owner, errnum, NULL, NULL) : send_go(owner, 0, path, act.to);
	if (r < 0)
		peer_break(&owner->peer, PEER_DEAF);
	return 0;
}

/* ---- its answers ---- */

static bool is_unfinished(const struct frame *frame)
{
	struct frame copy = *frame;
	struct field field = { 0 };
	bool is_found = false;

	while (!is_found && field_get(&copy, &field) == 1) {
		is_found = str_equal(field.key, "again");
		field_done(&field);
	}
	return is_found;
}

/* Whether this can be the answer: to what was allowed, if something was done, with a descriptor if it was opened. */
static bool is_plausible(struct owner *owner, const struct owner_job *job, int errnum, size_t fd_count)
{
	bool has_path = job->operation != FILES_UNWATCH && job->operation != FILES_CONNECT;
	bool opens = job->operation == FILES_OPEN || job->operation == FILES_CONNECT;

	if (errnum != 0)
		return errnum > 0 && errnum < ERRNO_END && fd_count == 0;
	/* It has no more places for watches than are here. */
	if (job->operation == FILES_WATCH && !watches_find(owner->watches, 0))
		return false;
	return (job->is_allowed || !has_path) && opens == (fd_count == 1);
}

/* It is not done, and others get their turn. Something inside may put in more than is removed: that has an end. */
static void begin_next_turn(struct owner *owner, struct owner_job *job)
{
	if (++job->turns >= OWNER_TURNS_MAX) {
		fail(owner, ENOTEMPTY);
		return;
	}
	remove_first(owner);
	append(owner, job);
	owner->is_asked = false;
}

static int on_reply(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct owner *owner = context;
	uint64_t ticket = frame_get_u64(frame);
	int errnum = (int)frame_get_u32(frame), none = FD_NONE;
	struct owner_job *job = owner->first;

	if (frame->error || !owner->is_asked || ticket != job->own_ticket ||
	    !is_plausible(owner, job, errnum, fd_count))
		return -EBADMSG;
	if (errnum == 0 && job->operation == FILES_REMOVE && is_unfinished(frame)) {
		begin_next_turn(owner, job);
	} else {
		if (errnum == 0)
			note_watch(owner, job);
		finish(owner, &(struct owner_answer){ .errnum = errnum, .fields = errnum ? NULL : frame,
						      .fd = fd_count ? &fds[0] : &none });
	}
	return next_job(owner);
}

static int on_ready(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct owner *owner = context;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	peer_serves(&owner->peer);
	return next_job(owner);
}

/* ---- the process ---- */

/* It may wait for a file system that never answers, and then neither dies nor may we wait for that. */
static void kill_process(struct owner *owner)
{
	struct pollfd polled = { .fd = owner->peer.process.fd, .events = POLLIN };

	if (polled.fd >= 0 && pidref_signal(&owner->peer.process, SIGKILL) == 0 && poll(&polled, 1, STUCK_MS) == 0) {
		owner->stuck++;
		peer_abandon(&owner->peer);
	} else {
		peer_close(&owner->peer, false);
	}
}

static int broke(void *context, enum peer_fault fault)
{
	struct owner *owner = context;

	watches_lose(owner->watches);
	/* One that was killed between two requests is replaced, and nobody notices. */
	if (owner->first && !owner->first->has_begun && !owner->first->was_tried) {
		owner->first->was_tried = true;
		owner->is_asked = false;
	} else if (owner->first) {
		fail(owner, EIO);
	}
	return next_job(owner);
}

static void prepare_peer(struct owner *owner);

static int late(void *context, uint64_t now_ns)
{
	struct owner *owner = context;
	bool was_busy = owner->first != NULL;

	(void)now_ns;
	watches_lose(owner->watches);
	kill_process(owner);
	prepare_peer(owner);
	if (was_busy)
		fail(owner, ETIMEDOUT);
	return next_job(owner);
}

/* ---- watches ---- */

static int on_change(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct owner *owner = context;

	return watches_pass_on(owner->watches, frame);
}

/* It was made, or ended; a watch has the number of its request. */
static void note_watch(struct owner *owner, const struct owner_job *job)
{
	struct files_request request;
	struct owner_watch *watch;

	if (job->operation == FILES_WATCH) {
		watch = watches_find(owner->watches, 0); /* there is one: is_plausible() */
		*watch = (struct owner_watch){ job->own_ticket, job->asker };
		/* Who asked for it has left meanwhile. */
		if (!job->asker.done)
			end_watch(owner, watch);
	} else if (job->operation == FILES_UNWATCH && get_request((struct owner_job *)job, &request) == 0) {
		watch = watches_find(owner->watches, request.watch);
		if (watch)
			watch->number = 0;
		free(request.attributes);
	}
}

static const struct frame_rule rules[] = {
	{ FILES_READY, PEER_BIT(STARTING), 64, 0, 0, on_ready },
	{ FILES_PLACE, PEER_BIT(SERVING), 3 * PATH_MAX, 1, 2, on_place },
	{ FILES_REPLY, PEER_BIT(SERVING), FILES_REPLY_MAX, 0, 1, on_reply },
	{ FILES_CHANGE, PEER_BIT(SERVING), 4 * PATH_MAX, 0, 0, on_change },
};

static const struct peer_kind kind = {
	.program = "atoll-files", .rules = rules, .rule_count = ARRAY_SIZE(rules), .must_greet = true,
	.broke = broke, .late = late, .batch = 16,
};

static void prepare_peer(struct owner *owner)
{
	peer_init(&owner->peer, owner->run, &kind, FALLS_MAX, owner);
}

static int start(struct owner *owner)
{
	const struct watch_options *identity = owner->run->identity;
	const int fds[] = { owner->run->init.fd, owner->rules_fd };
	struct buf *out = &owner->run->out;
	int r = peer_start(&owner->peer, NULL);

	if (r < 0)
		return r;
	frame_begin(out, FILES_BEGIN);
	frame_put_u32(out, identity->uid_inside);
	frame_put_u32(out, identity->gid_inside);
	frame_put_u32(out, getuid() == 0);
	return peer_greet(&owner->peer, frame_end(out), fds, owner->rules_fd >= 0 ? 2 : 1);
}

static int send_first(struct owner *owner)
{
	struct owner_job *job = owner->first;
	struct buf *out = &owner->run->out;

	job->is_placed = job->is_allowed = false;
	buf_reset(out);
	buf_put(out, job->bytes, job->size);
	return buf_error(out) < 0 ? buf_error(out) : peer_send(&owner->peer, NULL, 0);
}

/* Always 0: what fails is told to who asked. */
static int next_job(struct owner *owner)
{
	uint64_t now_ns = clock_monotonic_ns();

	while (owner->first && !owner->is_asked && owner->peer.state != PEER_STARTING) {
		int r = owner->stuck >= OWNER_STUCK_MAX ? -EBUSY : 0;

		if (r == 0 && owner->peer.state == PEER_IDLE) {
			r = start(owner);
		} else if (r == 0) {
			owner->is_asked = true;
			r = send_first(owner);
			/* broke() comes. */
			if (r < 0 && owner->peer.state == PEER_BROKEN)
				return 0;
		}
		peer_expect(&owner->peer, now_ns + OWNER_MS * (uint64_t)MS_NS);
		if (r < 0)
			fail(owner, -r);
	}
	if (!owner->first && peer_is_there(&owner->peer))
		peer_expect(&owner->peer, watches_has_any(owner->watches)
						  ? UINT64_MAX : now_ns + OWNER_IDLE_MS * (uint64_t)MS_NS);
	return 0;
}

/* ---- who asks ---- */

void owner_init(struct owner *owner, struct run *run, struct file_gate *gate, int rules_fd)
{
	*owner = (struct owner){ .run = run, .gate = gate, .rules_fd = rules_fd, .last = &owner->first };
	prepare_peer(owner);
}

static struct owner_job *make_job(struct owner *owner, const struct files_request *request)
{
	struct owner_job *job = NULL;
	struct buf out;

	buf_init(&out, FRAME_MESSAGE_MAX);
	frame_begin(&out, FILES_REQUEST);
	frame_put_u64(&out, ++owner->next_ticket);
	files_request_put(&out, request);
	if (frame_end(&out) == 0)
		job = malloc(sizeof *job + out.size);
	if (job) {
		*job = (struct owner_job){ .own_ticket = owner->next_ticket, .operation = request->operation,
					   .size = out.size };
		memcpy(job->bytes, out.bytes, out.size);
	}
	buf_done(&out);
	return job;
}

static bool is_own_watch(struct owner *owner, uint64_t number, const struct owner_asker *asker)
{
	const struct owner_watch *watch = watches_find(owner->watches, number);

	return watch && watch->asker.context == asker->context;
}

int owner_ask(struct owner *owner, const struct files_request *request, uint64_t ticket,
	      const struct owner_asker *asker)
{
	const struct act act = { request, asker, NULL, NULL };
	struct owner_job *job;
	int r;

	if (!owner->run || owner->run->is_dead)
		return -ESHUTDOWN;
	if (owner->count >= OWNER_JOBS_MAX || owner->bytes >= OWNER_BYTES_MAX)
		return -EAGAIN;
	if (request->operation == FILES_UNWATCH && !is_own_watch(owner, request->watch, asker))
		return -ENOENT;
	/* What has no path is not judged on its way. */
	r = request->operation != FILES_CONNECT ? 0 : record(owner, &act, true);
	if (r < 0)
		return r;
	job = make_job(owner, request);
	if (!job)
		return -ENOMEM;
	job->asker = *asker;
	job->ticket = ticket;
	append(owner, job);
	return next_job(owner);
}

/* Of one that nobody wants any more. */
static void end_watch(struct owner *owner, struct owner_watch *watch)
{
	const struct files_request request = { .operation = FILES_UNWATCH, .watch = watch->number,
					       .set = 1u << FILES_HAS_WATCH };
	struct owner_asker nobody = { .context = owner };

	/* What cannot be ended now ends with the process. */
	watch->asker = nobody;
	if (owner_ask(owner, &request, 0, &nobody) < 0)
		watch->number = 0;
}

void owner_forget(struct owner *owner, const void *context)
{
	for (struct owner_job *job = owner->first; job; job = job->next)
		if (job->asker.context == context)
			job->asker = (struct owner_asker){ .uid = job->asker.uid, .pid = job->asker.pid };
	for (size_t i = 0; owner->run && i < FILES_WATCHES_MAX; i++)
		if (owner->watches[i].number && owner->watches[i].asker.context == context)
			end_watch(owner, &owner->watches[i]);
}

void owner_close(struct owner *owner)
{
	if (!owner->run)
		return;
	kill_process(owner);
	fail_all(owner, ESHUTDOWN);
	close_fd(&owner->rules_fd);
	owner->run = NULL;
}
