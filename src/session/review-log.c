/* SPDX-License-Identifier: Apache-2.0 */
#include "session/review-log.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "audit/append.h"
#include "base/str.h"
#include "os/fd.h"
#include "session/control-socket.h"
#include "wire/control.h"

enum { PATIENCE_MS = 10000, FRAME_MAX = 4 * REVIEW_TEXT_MAX };

static const char *const phase_names[REVIEW_PHASE_COUNT] = {
	[REVIEW_BEGUN] = "begun", [REVIEW_DONE] = "done",
	[REVIEW_FAILED] = "failed", [REVIEW_RECOVERED] = "recovered",
};

static const char *const count_names[REVIEW_COUNT_COUNT] = {
	[REVIEW_ADDED] = "added",         [REVIEW_MODIFIED] = "modified",     [REVIEW_DELETED] = "deleted",
	[REVIEW_LEFT] = "left",           [REVIEW_BYTES] = "bytes",           [REVIEW_APPLY] = "apply",
	[REVIEW_UNDO] = "undo",           [REVIEW_FINISHED] = "finished",     [REVIEW_TAKEN_BACK] = "taken_back",
	[REVIEW_DROPPED] = "dropped",     [REVIEW_HASHED_BYTES] = "hashed_bytes",
};

static const struct {
	const char *items, *total;
} list_names[REVIEW_LIST_COUNT] = {
	[REVIEW_ASKED] = { "asked", "asked_total" },
	[REVIEW_EXCLUDED] = { "excluded", "excluded_total" },
	[REVIEW_FLAGGED] = { "flagged", "flagged_total" },
	[REVIEW_CONFLICTS] = { "conflicts", "conflicts_total" },
	[REVIEW_KEPT] = { "kept", "kept_total" },
	[REVIEW_TAKEN] = { "taken", "taken_total" },
	[REVIEW_MERGED] = { "merged", "merged_total" },
};

void review_list_add(struct review_entry *entry, enum review_list_kind kind, const char *item)
{
	struct review_list *list = &entry->lists[kind];
	size_t size = strlen(item) + 1;

	list->total++;
	/* The agent chooses names: long ones must not crowd the numbers out of the record. */
	if (list->count == REVIEW_ITEMS_MAX || size > sizeof entry->text - entry->text_size)
		return;
	memcpy(entry->text + entry->text_size, item, size);
	list->items[list->count++] = entry->text + entry->text_size;
	entry->text_size += size;
}

int review_entry_put(struct buf *out, const struct review_entry *entry)
{
	frame_begin(out, CONTROL_REVIEW);
	frame_put_u32(out, entry->type);
	frame_put_u32(out, entry->phase);
	frame_put_string(out, entry->subject);
	for (size_t i = 0; i < REVIEW_COUNT_COUNT; i++)
		frame_put_u64(out, entry->counts[i]);
	for (size_t i = 0; i < REVIEW_LIST_COUNT; i++) {
		frame_put_strv(out, entry->lists[i].items);
		frame_put_u64(out, entry->lists[i].total);
	}
	frame_put_bytes(out, &entry->list_hash, entry->has_list_hash ? sizeof entry->list_hash : 0);
	return frame_end(out);
}

static int get_list(struct frame *frame, struct review_list *list)
{
	cleanup_free char **items = frame_get_strv(frame);

	list->count = items ? strv_count((const char *const *)items) : 0;
	list->total = frame_get_u64(frame);
	if (!items || list->count > REVIEW_ITEMS_MAX || list->count > list->total)
		return -EBADMSG;
	memcpy(list->items, items, list->count * sizeof *items);
	return 0;
}

int review_entry_get(struct frame *frame, struct review_entry *ret_entry)
{
	struct review_entry entry = { .type = frame_get_u32(frame) };
	const void *hash;
	size_t size;
	int r = 0;

	entry.phase = frame_get_u32(frame);
	entry.subject = frame_get_string(frame);
	for (size_t i = 0; i < REVIEW_COUNT_COUNT; i++)
		entry.counts[i] = frame_get_u64(frame);
	for (size_t i = 0; r == 0 && i < REVIEW_LIST_COUNT; i++)
		r = get_list(frame, &entry.lists[i]);
	if (r < 0)
		return r;
	hash = frame_get_bytes(frame, &size);
	r = frame_finish(frame);
	if (r < 0 || !entry.subject || !audit_type_is_review(entry.type) || entry.phase >= REVIEW_PHASE_COUNT ||
	    (size && size != sizeof entry.list_hash))
		return -EBADMSG;
	entry.has_list_hash = size != 0;
	if (size)
		memcpy(&entry.list_hash, hash, sizeof entry.list_hash);
	*ret_entry = entry;
	return 0;
}

static void put_list(struct json *json, const struct review_entry *entry, enum review_list_kind kind)
{
	const struct review_list *list = &entry->lists[kind];

	if (!list->total)
		return;
	json_array_begin(json, list_names[kind].items);
	for (size_t i = 0; i < list->count; i++)
		json_bytes(json, NULL, list->items[i], strlen(list->items[i]));
	json_array_end(json);
	if (list->count < list->total)
		json_u64(json, list_names[kind].total, list->total);
}

static void put_detail(struct json *json, const void *context)
{
	const struct review_entry *entry = context;
	char hash[HASH_HEX_SIZE + 8] = "sha256:";

	json_string(json, "phase", phase_names[entry->phase]);
	json_u64(json, "uid", entry->uid);
	for (size_t i = 0; i < REVIEW_COUNT_COUNT; i++)
		if (entry->counts[i])
			json_u64(json, count_names[i], entry->counts[i]);
	for (size_t i = 0; i < REVIEW_LIST_COUNT; i++)
		put_list(json, entry, (enum review_list_kind)i);
	if (entry->has_list_hash) {
		hash_to_hex(&entry->list_hash, hash + strlen(hash));
		json_string(json, "list_hash", hash);
	}
}

struct audit_event review_event(const struct review_entry *entry)
{
	return (struct audit_event){
		.type = entry->type, .subject = entry->subject, .subject_size = strlen(entry->subject),
		.write_detail = put_detail, .context = entry,
	};
}

static int fail(int r, const char *what, struct err *err)
{
	err_set(err, ERR_STATE, -r, "log", "%s: %s", what, strerror(-r));
	err_hint(err, "without a record in the session's log, nothing is done");
	return r;
}

int review_log_open(struct review_log *ret_log, int sessions_fd, const char *session, struct err *err)
{
	struct review_log log = REVIEW_LOG_NONE;
	struct err ignored;
	int r = str_copy(log.session, sizeof log.session, session);

	log.uid = getuid();
	if (r == 0)
		r = log.session_fd = fd_open_at(sessions_fd, session, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = log.log_fd = fd_open_at(log.session_fd, "audit.jsonl", O_RDWR | O_APPEND | O_NOFOLLOW, 0);
	if (r < 0) {
		review_log_done(&log);
		return fail(r, "the session's log cannot be opened", err);
	}
	/* Only the box holds it whole; where it is gone before it answers, review_log_put() sees that. */
	if (flock(log.log_fd, LOCK_SH | LOCK_NB) < 0)
		log.box_fd = control_socket_connect(session, &ignored);
	else
		flock(log.log_fd, LOCK_UN);
	*ret_log = log;
	return 0;
}

void review_log_done(struct review_log *log)
{
	close_fd(&log->session_fd);
	close_fd(&log->log_fd);
	close_fd(&log->box_fd);
}

/* 1: the box wrote it; 0: it is gone. -errno with *err. */
static int tell_box(struct review_log *log, const struct review_entry *entry, struct err *err)
{
	cleanup_buf struct buf scratch;
	struct frame frame;
	size_t fd_count, size;
	const void *sent;
	ssize_t n;
	int r;

	buf_init(&scratch, FRAME_MESSAGE_MAX);
	r = review_entry_put(&scratch, entry);
	if (r < 0)
		return fail(r, "the box cannot be told", err);
	if (frame_send(log->box_fd, &scratch, NULL, 0) < 0 || !(buf_reset(&scratch), buf_reserve(&scratch, FRAME_MAX)))
		return 0;
	n = fd_receive_message(log->box_fd, scratch.bytes, FRAME_MAX, NULL, 0, &fd_count);
	if (n <= 0 || frame_open(&frame, scratch.bytes, (size_t)n) < 0)
		return 0;
	if (frame.type == CONTROL_DONE)
		return 1;
	sent = frame_get_bytes(&frame, &size);
	if (frame.type != CONTROL_ERROR || frame_finish(&frame) < 0 || size != sizeof *err)
		return fail(-EPROTO, "the box gave no clear answer", err);
	memcpy(err, sent, sizeof *err);
	err->stage[sizeof err->stage - 1] = err->message[sizeof err->message - 1] = err->hint[sizeof err->hint - 1] = 0;
	return err->errnum > 0 ? -err->errnum : -EIO;
}

/*
 * Writers keep each other out by a lock of the session's directory. That of the log itself, which stands for the life
 * of the box, is only shared meanwhile: whoever asks whether the session lives is not told that it does.
 */
static int append(struct review_log *log, const struct review_entry *entry)
{
	bool is_durable = entry->type == AUDIT_STAGE_APPLY || entry->type == AUDIT_STAGE_UNDO;
	struct audit_event event = review_event(entry);
	int r = fd_lock_within(log->session_fd, LOCK_EX, PATIENCE_MS);

	if (r < 0)
		return r;
	r = fd_lock_within(log->log_fd, LOCK_SH, PATIENCE_MS);
	if (r == 0) {
		r = audit_append(log->log_fd, log->session, &event, is_durable);
		flock(log->log_fd, LOCK_UN);
	}
	flock(log->session_fd, LOCK_UN);
	return r;
}

int review_log_put(struct review_log *log, struct review_entry *entry, struct err *err)
{
	int r = log->box_fd >= 0 ? tell_box(log, entry, err) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	close_fd(&log->box_fd);
	entry->uid = log->uid;
	r = append(log, entry);
	return r < 0 ? fail(r, "the session's log cannot be written", err) : 0;
}
