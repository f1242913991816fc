/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/verb/dry-run-record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "session/record.h"
#include "wire/frame.h"

enum { TRIAL_FRAME = 49, WRITES_HOST = 1 << 0, READS_INPUT = 1 << 1, RECORD_MAX = FRAME_MESSAGE_MAX };

/* The name that it has until somebody has decided, and afterwards. */
static const char file_name[] = "trial.bin", decided_name[] = "trial.decided.bin";

/* In the order of the file. */
static const char **text_at(struct dry_run_record *record, size_t i)
{
	const char **const texts[] = { &record->policy, &record->trust, &record->project, &record->task,
				       &record->agent, &record->confidence, &record->cwd, &record->started_in };

	return i < ARRAY_SIZE(texts) ? texts[i] : NULL;
}

static int fail(struct err *err, int r, const char *session, const char *what)
{
	return err_set(err, ERR_STATE, -r, "dry-run", "the trial of session %s cannot be %s: %s", session, what,
		       strerror(-r));
}

static int open_session(const char *state, const char *session)
{
	char path[PATH_MAX];
	int r = session_path(state, session, "", path, sizeof path);

	return r < 0 ? r : fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

int dry_run_record_store(const char *state, const char *session, const struct dry_run_record *record, struct err *err)
{
	struct dry_run_record copy = *record;
	const char *env[OPTION_LIST_MAX + 1] = { NULL };
	cleanup_fd int dir_fd = open_session(state, session);
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, RECORD_MAX);
	for (size_t i = 0; i < record->env.count; i++)
		env[i] = record->env.values[i];
	frame_begin(&out, TRIAL_FRAME);
	frame_put_string(&out, record->origin);
	frame_put_string(&out, record->snapshot);
	frame_put_string(&out, record->shown);
	for (size_t i = 0; text_at(&copy, i); i++)
		frame_put_string(&out, *text_at(&copy, i));
	frame_put_u32(&out, (record->writes_host ? WRITES_HOST : 0) | (record->reads_input ? READS_INPUT : 0));
	frame_put_strv(&out, env);
	frame_put_strv(&out, (const char *const *)record->command);
	r = frame_end(&out);
	if (r == 0)
		r = dir_fd < 0 ? dir_fd : fd_replace_file_at(dir_fd, file_name, out.bytes, out.size, 0600);
	if (r != -ENOBUFS && r != -EMSGSIZE)
		return r < 0 ? fail(err, r, session, "kept") : 0;
	return err_set(err, ERR_USAGE, E2BIG, "dry-run", "the command and its variables are larger than %d bytes",
		       RECORD_MAX);
}

static int take_env(struct frame *frame, struct option_list *ret_env)
{
	char **env = frame_get_strv(frame);
	size_t count = env ? strv_count((const char *const *)env) : 0;
	int r = env && count <= OPTION_LIST_MAX ? 0 : -EBADMSG;

	for (size_t i = 0; r == 0 && i < count; i++)
		ret_env->values[ret_env->count++] = env[i];
	free(env);
	return r;
}

static int take_snapshot(struct frame *frame, char out[STAGE_SNAPSHOT_NAME_SIZE])
{
	const char *name = frame_get_string(frame);

	return name && (!*name || stage_snapshot_name_is_valid(name)) ? str_copy(out, STAGE_SNAPSHOT_NAME_SIZE, name)
								      : -EBADMSG;
}

static int decode(struct frame *frame, struct dry_run_record *record)
{
	const char *origin = frame_get_string(frame);
	int r = !origin || (*origin && !session_id_is_valid(origin)) ? -EBADMSG : 0;
	uint32_t flags;

	if (r == 0)
		r = str_copy(record->origin, sizeof record->origin, origin);
	if (r == 0)
		r = take_snapshot(frame, record->snapshot);
	if (r == 0)
		r = take_snapshot(frame, record->shown);
	/* A trial of a session has the state that it began with, one of the host has none. */
	if (r == 0 && !*record->origin != !*record->snapshot)
		r = -EBADMSG;
	for (size_t i = 0; text_at(record, i); i++)
		*text_at(record, i) = frame_get_string(frame);
	flags = frame_get_u32(frame);
	record->writes_host = flags & WRITES_HOST;
	record->reads_input = flags & READS_INPUT;
	if (r == 0)
		r = take_env(frame, &record->env);
	record->command = frame_get_strv(frame);
	if (r == 0)
		r = frame_finish(frame);
	return r == 0 && (!record->command || !record->command[0] || !record->started_in) ? -EBADMSG : r;
}

static int refuse_unknown(int dir_fd, const char *session, struct err *err)
{
	struct stat st;

	if (fstatat(dir_fd, decided_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		err_set(err, ERR_STATE, ENOENT, "dry-run",
			"trial %s was already done for real, or dropped", session);
		err_hint(err, "`atoll log %s` tells which; `atoll dry-run` tries it again", session);
	} else {
		err_set(err, ERR_NOT_FOUND, ENOENT, "dry-run", "session %s is not a finished trial", session);
		err_hint(err, "`atoll ps -a` lists them; `atoll dry-run -- CMD` makes one");
	}
	return -ENOENT;
}

int dry_run_record_load(const char *state, const char *session, struct dry_run_record *ret_record, struct err *err)
{
	struct dry_run_record record = { .bytes = NULL };
	cleanup_fd int dir_fd = open_session(state, session);
	struct frame frame;
	size_t size;
	int r = dir_fd < 0 ? dir_fd : fd_read_file_at(dir_fd, file_name, RECORD_MAX, &record.bytes, &size);

	if (r == -ENOENT)
		return refuse_unknown(dir_fd, session, err);
	if (r == 0)
		r = frame_open(&frame, record.bytes, size);
	if (r == 0)
		r = frame.type == TRIAL_FRAME ? decode(&frame, &record) : -EBADMSG;
	if (r < 0) {
		dry_run_record_done(&record);
		return fail(err, r, session, "read");
	}
	*ret_record = record;
	return 0;
}

static int rename_record(const char *state, const char *session, const char *from, const char *to, struct err *err)
{
	cleanup_fd int dir_fd = open_session(state, session);
	int r = dir_fd < 0 ? dir_fd : renameat(dir_fd, from, dir_fd, to) < 0 ? -errno : 0;

	if (r == -ENOENT) {
		err_set(err, ERR_STATE, EALREADY, "dry-run", "another command is deciding about trial %s", session);
		return -EALREADY;
	}
	return r < 0 ? fail(err, r, session, "claimed") : 0;
}

int dry_run_record_claim(const char *state, const char *session, struct err *err)
{
	return rename_record(state, session, file_name, decided_name, err);
}

int dry_run_record_release(const char *state, const char *session, struct err *err)
{
	return rename_record(state, session, decided_name, file_name, err);
}

void dry_run_record_done(struct dry_run_record *record)
{
	/* The command of the command line is not ours. */
	if (record->bytes)
		free(record->command);
	free(record->bytes);
	record->bytes = NULL;
}
