/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "client/api/cursor.h"
#include "client/api/fault.h"
#include "client/api/policy.h"
#include "client/api/start.h"
#include "os/fd.h"
#include "session/control-socket.h"
#include "session/labels.h"
#include "session/record.h"

/* How a handle comes to be: a sandbox that is started, or one that is there. */

static bool is_of_same_places(const struct atoll_policy *policy, const struct atoll_context *context)
{
	return str_equal(policy->context->state, context->state) &&
	       str_equal(policy->context->runtime, context->runtime) &&
	       str_equal(policy->context->program, context->program);
}

int start_check_policy(const struct atoll_policy *policy, const struct atoll_context *context,
		       struct atoll_error *error)
{
	int r = policy_check(policy, error);

	return r == 0 && !is_of_same_places(policy, context)
		       ? fault_set(error, ATOLL_E_INVALID, 0, "start", "the policy was loaded for other places") : r;
}

static int check_start(const struct atoll_context *context, const struct atoll_policy *policy, bool has_origin,
		       const struct atoll_record *record, struct atoll_error *error)
{
	const char *project = record_string(record, "project");
	int r = context_check(context, error);

	if (r < 0)
		return r;
	if (atoll_record_kind(record) != ATOLL_SANDBOX)
		return fault_set(error, ATOLL_E_INVALID, 0, "start", "there is no record of this kind");
	if (policy || !has_origin)
		r = start_check_policy(policy, context, error);
	if (r == 0 && !has_origin && record_string(record, "snapshot"))
		r = fault_set(error, ATOLL_E_INVALID, 0, "start", "\"snapshot\" is for atoll_fork()");
	if (r == 0 && (project ? project[0] != '/' : !has_origin))
		r = fault_set(error, ATOLL_E_INVALID, 0, "start", "\"project\" is no absolute path");
	return r;
}

int start_put(struct spawn_request *request, const struct atoll_record *record, const char *const *skip,
	      const struct stream_plan *plan)
{
	int r = record_put_fields(record, skip, &request->frame, request->fds, LINK_FDS_MAX, &request->fd_count);

	field_put_string(&request->frame, "id", request->id);
	if (plan->pty)
		field_put_u64(&request->frame, "pty", plan->pty);
	for (int i = 0; i < 3; i++) {
		if (plan->fds[i] < 0)
			continue;
		field_put_fd(&request->frame, stream_keys[i], request->fd_count);
		request->fds[request->fd_count++] = plan->fds[i];
	}
	return r;
}

void start_put_policy(struct spawn_request *request, const struct atoll_policy *policy)
{
	field_put_fd(&request->frame, "policy", request->fd_count);
	request->fds[request->fd_count++] = policy->fd;
}

void start_adopt_streams(struct atoll_sandbox *sandbox, struct stream_plan *plan)
{
	if (!plan->ours)
		return;
	sandbox->streams = plan->ours;
	sandbox->streams->command = MAIN_COMMAND;
	plan->ours = NULL;
}

static int adopt(struct atoll_context *context, const char *id, int socket_fd, struct stream_plan *plan,
		 atoll_sandbox **ret, struct atoll_error *error)
{
	struct atoll_sandbox *sandbox;
	int r = sandbox_new(context, id, socket_fd, &sandbox);

	if (r < 0)
		return fault_errno(error, r, "start");
	start_adopt_streams(sandbox, plan);
	*ret = sandbox;
	return 0;
}

static int start(struct atoll_context *context, const struct atoll_policy *policy, const char *origin,
		 const struct atoll_record *record, atoll_sandbox **ret, struct atoll_error *error)
{
	struct spawn_request request;
	char id[SESSION_ID_SIZE];
	struct stream_plan plan;
	int fd, r = random_session_id(id);

	if (r < 0)
		return fault_errno(error, r, "start");
	r = stream_plan_make(&plan, record, error);
	spawn_request_init(&request, context, LINK_BOX_NAME);
	request.id = id;
	request.greet = sandbox_greet;
	if (r == 0) {
		r = start_put(&request, record, stream_keys, &plan);
		field_put_string(&request.frame, "origin", origin);
		if (policy)
			start_put_policy(&request, policy);
		r = r < 0 ? fault_errno(error, r, "start") : 0;
	}
	if (r == 0)
		r = spawn_request_start(&request, context, &fd, error);
	if (r == 0)
		r = adopt(context, id, fd, &plan, ret, error);
	spawn_request_done(&request);
	stream_plan_done(&plan);
	return r;
}

int atoll_create(atoll_context *context, const atoll_policy *policy, const atoll_record *record, atoll_sandbox **ret,
		 struct atoll_error *error)
{
	int r = check_start(context, policy, false, record, error);

	return r < 0 ? r : start(context, policy, NULL, record, ret, error);
}

int atoll_fork(atoll_sandbox *origin, const atoll_policy *policy, const atoll_record *record, atoll_sandbox **ret,
	       struct atoll_error *error)
{
	int r = sandbox_check(origin, error);

	if (r == 0)
		r = check_start(origin->context, policy, true, record, error);
	return r < 0 ? r : start(origin->context, policy, origin->id, record, ret, error);
}

/* ---- those that are there ---- */

/* Out of the way of a closed 0, 1 or 2 of the caller. */
static int connect_box(const struct atoll_context *context, const char *id)
{
	int r, fd = control_socket_connect_in(context->runtime, id);

	if (fd < 0)
		return fd;
	r = fd_move_above(fd, 3);
	if (r < 0)
		return r;
	fd = r;
	r = fd_set_nonblocking(fd, true);
	if (r < 0)
		close_fd(&fd);
	return r < 0 ? r : fd;
}

static int queue_end(struct atoll_sandbox *sandbox, const struct session_record *session)
{
	struct atoll_record *event = record_new(ATOLL_EVENT);
	int r = record_put_u64(event, "event", ATOLL_EVENT_END);

	if (r == 0)
		r = record_put_string(event, "ended", session->ended && *session->ended ? session->ended : "lost");
	if (r == 0 && session->exit >= 0)
		r = record_put_u64(event, "status", (uint64_t)session->exit);
	sandbox->is_over = true;
	if (r == 0)
		return sandbox_queue(sandbox, event, false);
	atoll_record_free(event);
	return r;
}

/* FD_NONE: it ends at this moment, and its record is complete in the next. */
static int connect_found(const struct atoll_context *context, const char *id, int *ret_fd, struct atoll_error *error)
{
	int fd = connect_box(context, id);

	*ret_fd = fd == -ENOENT || fd == -ECONNREFUSED ? FD_NONE : fd;
	if (fd >= 0 || *ret_fd == FD_NONE)
		return 0;
	return fd == -EPERM ? fault_set(error, ATOLL_E_STATE, EPERM, "session",
					"the control socket of session %s belongs to somebody else", id)
			    : fault_set(error, ATOLL_E_STATE, -fd, "session", "session %s does not answer: %s", id,
					err_errno_name(-fd));
}

static int adopt_found(struct atoll_context *context, const struct session_record *session, int fd,
		       atoll_sandbox **ret, struct atoll_error *error)
{
	struct atoll_sandbox *sandbox;
	int r = sandbox_new(context, session->id, fd, &sandbox);

	if (r < 0)
		return fault_errno(error, r, "find");
	sandbox->is_found = true;
	if (fd >= 0)
		r = sandbox_greet(fd, context);
	else
		r = queue_end(sandbox, session);
	sandbox_wake(sandbox);
	if (r < 0)
		atoll_sandbox_free(sandbox);
	else
		*ret = sandbox;
	return r < 0 ? fault_errno(error, r, "session") : 0;
}

/* Most questions of programs: one that runs, by its whole id. Then its box is asked, and no record is read. */
static bool is_running_here(const struct atoll_context *context, const char *id)
{
	char path[PATH_MAX];

	return id && session_id_is_valid(id) &&
	       session_path(context->state, id, "audit.jsonl", path, sizeof path) == 0 && access(path, F_OK) == 0;
}

static int find(struct atoll_context *context, const struct atoll_record *filter, const char *id_or_name,
		atoll_sandbox **ret, struct atoll_error *error)
{
	cleanup_session_record struct session_record session = { 0 };
	struct err err = { 0 };
	uint64_t running = 0;
	int r, fd = FD_NONE;

	(void)record_u64(filter, "running", &running);
	if (is_running_here(context, id_or_name)) {
		fd = connect_box(context, id_or_name);
		memcpy(session.id, id_or_name, fd < 0 ? 0 : SESSION_ID_SIZE);
		if (fd >= 0)
			return adopt_found(context, &session, fd, ret, error);
	}
	if (session_find(context->state, record_string(filter, "project"), id_or_name,
			 running ? context->runtime : NULL, &session, &err) < 0)
		return fault_from_err(error, &err);
	r = session.is_live ? connect_found(context, session.id, &fd, error) : 0;
	return r < 0 ? r : adopt_found(context, &session, fd, ret, error);
}

int atoll_find(atoll_context *context, const char *id_or_name, atoll_sandbox **ret, struct atoll_error *error)
{
	int r = context_check(context, error);

	if (r < 0)
		return r;
	if (!id_or_name || !ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "find", "there is no name");
	return find(context, NULL, id_or_name, ret, error);
}

int atoll_find_newest(atoll_context *context, const atoll_record *filter, atoll_sandbox **ret,
		      struct atoll_error *error)
{
	int r = context_check(context, error);

	if (r < 0)
		return r;
	if ((filter && atoll_record_kind(filter) != ATOLL_FILTER) || !ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "find", "the record is of another kind");
	return find(context, filter, record_string(filter, "name"), ret, error);
}

/* ---- what is on record ---- */

static const char *state_name(const struct session_record *session)
{
	if (session->is_live)
		return session->is_frozen ? "frozen" : "running";
	return session->ended_ns && !str_equal(session->ended, "lost") ? "ended" : "lost";
}

/* Texts that are "" are not there. */
static int put_texts(struct atoll_record *info, const struct session_record *session)
{
	const char *const texts[][2] = {
		{ "id", session->id },		 { "name", session->name },	  { "project", session->project },
		{ "policy", session->policy },	 { "level", session->level },	  { "command", session->command },
		{ "ended", session->ended },	 { "state", state_name(session) },
	};
	int r = info ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++)
		if (texts[i][1] && *texts[i][1])
			r = record_put_string(info, texts[i][0], texts[i][1]);
	return r;
}

static int put_labels(struct atoll_record *info, const char *text)
{
	char *list[LABELS_MAX + 1];
	cleanup_free char *copy = labels_split(text, list);

	if (!text || !*text)
		return 0;
	return copy ? record_add_field(info, &(struct field){ .key = "labels", .kind = FIELD_STRINGS, .strings = list })
		    : -ENOMEM;
}

/* NULL: no memory. */
static struct atoll_record *make_info(const struct session_record *session)
{
	struct atoll_record *info = record_new(ATOLL_INFO);
	int r = put_texts(info, session);

	if (r == 0)
		r = put_labels(info, session->labels);
	if (r == 0)
		r = record_put_u64(info, "started_ns", session->started_ns);
	if (r == 0 && session->ended_ns)
		r = record_put_u64(info, "ended_ns", session->ended_ns);
	if (r == 0 && session->exit >= 0)
		r = record_put_u64(info, "status", (uint64_t)session->exit);
	if (r == 0)
		r = record_put_u64(info, "staged", session->is_staged);
	if (r == 0)
		return info;
	atoll_record_free(info);
	return NULL;
}

int atoll_info(atoll_sandbox *sandbox, atoll_record **ret, struct atoll_error *error)
{
	cleanup_session_record struct session_record session = { 0 };
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if (!ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "info", "there is no place for a record");
	r = session_load_id(sandbox->context->state, sandbox->id, &session);
	if (r < 0)
		return fault_set(error, ATOLL_E_NOT_FOUND, -r, "info", "session %s is not on record", sandbox->id);
	*ret = make_info(&session);
	return *ret ? 0 : fault_errno(error, -ENOMEM, "info");
}

static bool is_meant(const struct session_record *session, const struct atoll_record *filter)
{
	const char *project = record_string(filter, "project"), *name = record_string(filter, "name");
	const char *const *labels = NULL;
	uint64_t running = 0;

	(void)record_u64(filter, "running", &running);
	if (filter && atoll_get_strings(filter, "labels", &labels) && !labels_have(session->labels, labels))
		return false;
	return (!project || str_equal(project, session->project)) && (!name || str_equal(name, session->name)) &&
	       (!running || session->is_live);
}

int atoll_list(atoll_context *context, const atoll_record *filter, atoll_cursor **ret, struct atoll_error *error)
{
	struct session_record *sessions;
	struct atoll_cursor *cursor;
	struct err err = { 0 };
	size_t count;
	int r = context_check(context, error);

	if (r < 0)
		return r;
	if ((filter && atoll_record_kind(filter) != ATOLL_FILTER) || !ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "list", "the record is of another kind");
	cursor = cursor_new(context, ATOLL_INFO, error);
	if (!cursor)
		return ATOLL_E_NO_MEMORY;
	if (session_list(context->state, &sessions, &count, &err) < 0) {
		atoll_cursor_free(cursor);
		return fault_from_err(error, &err);
	}
	for (size_t i = 0; i < count; i++) {
		if (r == 0 && is_meant(&sessions[i], filter))
			r = rows_add(&cursor->rows, make_info(&sessions[i]));
		session_record_done(&sessions[i]);
	}
	free(sessions);
	if (r < 0)
		atoll_cursor_free(cursor);
	else
		*ret = cursor;
	return r < 0 ? fault_errno(error, r, "list") : 0;
}
