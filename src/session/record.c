/* SPDX-License-Identifier: Apache-2.0 */
#include "session/record.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "wire/frame.h"

enum {
	SESSION_FRAME = 48,
	SESSION_FILE_MAX = 256 << 10,
	SESSION_COUNT_MAX = 1 << 20,
	PREFIX_MIN = 4,
};

/* The record's last word. */
enum { IS_STAGED = 1 << 0, IS_KEPT_AT_EXEC = 1 << 1, IS_TRIAL = 1 << 2, WRITES_HOST = 1 << 3,
       IS_LOWERED = 1 << 4, IS_FROZEN = 1 << 5 };

static const char STARTED_FILE[] = "session.bin", ENDED_FILE[] = "ended.bin";

/* The string members in the order in which they are stored. */
static const size_t strings[] = {
#define FIELD(name) offsetof(struct session_record, name)
	FIELD(name),	FIELD(project), FIELD(policy), FIELD(level),
	FIELD(command), FIELD(cgroups), FIELD(ended),  FIELD(audit_head),
#undef FIELD
};

static char **string_at(struct session_record *record, size_t field)
{
	return (char **)((char *)record + strings[field]);
}

void session_record_done(struct session_record *record)
{
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		free(*string_at(record, i));
	free(record->labels);
	*record = (struct session_record){ 0 };
}

bool session_id_is_valid(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == SESSION_ID_SIZE - 1 &&
	       !text[SESSION_ID_SIZE - 1];
}

bool session_of_socket(const char *name, char out[SESSION_ID_SIZE])
{
	if (strlen(name) != SESSION_ID_SIZE - 1 + strlen(".sock") || !str_has_suffix(name, ".sock"))
		return false;
	memcpy(out, name, SESSION_ID_SIZE - 1);
	out[SESSION_ID_SIZE - 1] = 0;
	return true;
}

int session_path(const char *state_dir, const char *id, const char *file, char *out, size_t size)
{
	return str_format(out, size, "%s/sessions/%s/%s", state_dir, id, file);
}

/*
 * As a new file where it can: a rename over an old one makes ext4 write the new one to disk at once
 * (auto_da_alloc), which would be a tenth of a millisecond of every run. A reader that comes in the middle
 * finds half a frame, which is none.
 */
static int store_new(int dir_fd, const char *name, const struct buf *out)
{
	cleanup_fd int fd = fd_open_at(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	if (fd == -EEXIST)
		return fd_replace_file_at(dir_fd, name, out->bytes, out->size, 0600);
	return fd < 0 ? fd : fd_write_full(fd, out->bytes, out->size);
}

/* out is initialised. */
static int encode(const struct session_record *record, struct buf *out)
{
	struct session_record copy = *record;

	frame_begin(out, SESSION_FRAME);
	frame_put_string(out, record->id);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		frame_put_string(out, *string_at(&copy, i) ? *string_at(&copy, i) : "");
	frame_put_u32(out, (uint32_t)record->box_pid);
	frame_put_u64(out, record->started_ns);
	frame_put_u64(out, record->ended_ns);
	frame_put_u32(out, (uint32_t)record->exit);
	frame_put_u64(out, record->audit_records);
	frame_put_u32(out, (record->is_staged ? IS_STAGED : 0) | (record->is_kept_at_exec ? IS_KEPT_AT_EXEC : 0) |
				    (record->is_trial ? IS_TRIAL : 0) | (record->writes_host ? WRITES_HOST : 0) |
				    (record->is_lowered ? IS_LOWERED : 0) | (record->is_frozen ? IS_FROZEN : 0));
	/* Newer than all the rest: an atoll that does not know them reads the records of those that have none. */
	if (record->labels && *record->labels)
		frame_put_string(out, record->labels);
	return frame_end(out);
}

int session_store(int dir_fd, const struct session_record *record)
{
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, SESSION_FILE_MAX);
	r = encode(record, &out);
	return r < 0 ? r : store_new(dir_fd, record->ended_ns ? ENDED_FILE : STARTED_FILE, &out);
}

static const char *file_name(bool is_end)
{
	return is_end ? ENDED_FILE : STARTED_FILE;
}

int session_make(int dir_fd, bool is_end)
{
	cleanup_fd int fd = fd_open_at(dir_fd, file_name(is_end), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	return fd < 0 ? fd : 0;
}

int session_store_made(int dir_fd, const struct session_record *record)
{
	cleanup_fd int fd = fd_open_at(dir_fd, file_name(record->ended_ns), O_WRONLY | O_NOFOLLOW, 0);
	cleanup_buf struct buf out = { 0 };
	int r;

	if (fd < 0)
		return fd;
	buf_init(&out, SESSION_FILE_MAX);
	r = encode(record, &out);
	return r < 0 ? r : fd_write_full(fd, out.bytes, out.size);
}

static int decode(struct frame *frame, struct session_record *record)
{
	const char *id = frame_get_string(frame);
	uint32_t flags;

	if (!id || !session_id_is_valid(id))
		return -EBADMSG;
	memcpy(record->id, id, SESSION_ID_SIZE);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
		const char *text = frame_get_string(frame);

		if (!text)
			return -EBADMSG;
		*string_at(record, i) = str_dup(text);
		if (!*string_at(record, i))
			return -ENOMEM;
	}
	record->box_pid = (pid_t)frame_get_u32(frame);
	record->started_ns = frame_get_u64(frame);
	record->ended_ns = frame_get_u64(frame);
	record->exit = (int32_t)frame_get_u32(frame);
	record->audit_records = frame_get_u64(frame);
	flags = frame_get_u32(frame);
	record->is_staged = flags & IS_STAGED;
	record->is_kept_at_exec = flags & IS_KEPT_AT_EXEC;
	record->is_trial = flags & IS_TRIAL;
	record->writes_host = flags & WRITES_HOST;
	record->is_lowered = flags & IS_LOWERED;
	record->is_frozen = flags & IS_FROZEN;
	if (!frame->error && frame->at < frame->size) {
		const char *labels = frame_get_string(frame);

		record->labels = labels ? str_dup(labels) : NULL;
		if (labels && !record->labels)
			return -ENOMEM;
	}
	return frame->type == SESSION_FRAME ? frame_finish(frame) : -EBADMSG;
}

/* The box holds the log locked for its whole life; a shared lock can be had only when it is gone. */
static bool is_locked(int dir_fd)
{
	cleanup_fd int fd = fd_open_at(dir_fd, "audit.jsonl", O_RDONLY | O_NOFOLLOW, 0);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* It is there from the beginning, and empty until the end is recorded. */
static bool has_end(int dir_fd)
{
	struct stat st;

	return fstatat(dir_fd, ENDED_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0 && !(S_ISREG(st.st_mode) && st.st_size == 0);
}

static int load_file(int dir_fd, const char *name, struct session_record *ret_record)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_free char *bytes = NULL;
	struct frame frame;
	size_t size;
	int r = fd_read_file_at(dir_fd, name, SESSION_FILE_MAX, &bytes, &size);

	if (r < 0)
		return r;
	r = frame_open(&frame, bytes, size);
	if (r == 0)
		r = decode(&frame, &record);
	if (r < 0)
		return r;
	*ret_record = record;
	record = (struct session_record){ 0 };
	return 0;
}

/* The lock first: it may be let go while we read, and then the end has been recorded before. */
static int load_now(int dir_fd, struct session_record *ret_record)
{
	bool is_live = is_locked(dir_fd);
	int r = has_end(dir_fd) ? load_file(dir_fd, ENDED_FILE, ret_record) : -ENOENT;

	if (r < 0)
		r = load_file(dir_fd, STARTED_FILE, ret_record);
	if (r == 0)
		ret_record->is_live = is_live;
	return r;
}

/*
 * A session that comes to life just now is not locked at the first look and has a record at the second, as has one
 * whose box was killed. But who has written a record has the lock, so the next look tells them apart; it must: what is
 * taken for lost is killed.
 */
int session_load(int dir_fd, struct session_record *ret_record)
{
	cleanup_session_record struct session_record record = { 0 };
	int r = load_now(dir_fd, &record);

	if (r == 0 && !record.is_live && !record.ended_ns) {
		session_record_done(&record);
		r = load_now(dir_fd, &record);
	}
	if (r < 0)
		return r;
	*ret_record = record;
	record = (struct session_record){ 0 };
	return 0;
}

int session_load_id(const char *state_dir, const char *id, struct session_record *ret_record)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_fd int fd = FD_NONE;
	char path[PATH_MAX];
	int r = session_id_is_valid(id) ? str_format(path, sizeof path, "%s/sessions/%s", state_dir, id) : -ENOENT;

	if (r == 0)
		r = fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = session_load(fd, &record);
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	if (!str_equal(record.id, id))
		return -ENOENT;
	*ret_record = record;
	record = (struct session_record){ 0 };
	return 0;
}

int session_load_live(const char *state_dir, const char *id, struct session_record *ret_record)
{
	cleanup_session_record struct session_record record = { 0 };
	int r = session_load_id(state_dir, id, &record);

	if (r < 0)
		return r;
	if (!record.is_live)
		return -ENOENT;
	*ret_record = record;
	record = (struct session_record){ 0 };
	return 0;
}

static int compare_newest_first(const void *a, const void *b)
{
	const struct session_record *left = a, *right = b;

	if (left->started_ns != right->started_ns)
		return left->started_ns < right->started_ns ? 1 : -1;
	return strcmp(left->id, right->id);
}

struct list {
	struct session_record *records;
	size_t count, capacity;
};

static void list_free(struct list *list)
{
	for (size_t i = 0; i < list->count; i++)
		session_record_done(&list->records[i]);
	free(list->records);
	*list = (struct list){ 0 };
}

static int list_add(struct list *list, int sessions_fd, const char *name)
{
	cleanup_fd int fd = FD_NONE;
	int r;

	if (!session_id_is_valid(name))
		return 0;
	fd = fd_open_at(sessions_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd == -EMFILE || fd == -ENFILE ? fd : 0;
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 16;
		struct session_record *grown;

		if (capacity > SESSION_COUNT_MAX)
			return -EFBIG;
		grown = realloc(list->records, capacity * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		list->records = grown;
		list->capacity = capacity;
	}
	r = session_load(fd, &list->records[list->count]);
	/* A session in the making, or a damaged record, is not an error of the list. */
	if (r == -ENOMEM)
		return r;
	if (r == 0 && str_equal(list->records[list->count].id, name))
		list->count++;
	else if (r == 0)
		session_record_done(&list->records[list->count]);
	return 0;
}

static int list_fill(struct list *list, DIR *dir)
{
	struct dirent *entry;
	int r = 0;

	for (errno = 0; r == 0 && (entry = readdir(dir)); errno = 0)
		r = list_add(list, dirfd(dir), entry->d_name);
	return r == 0 ? -errno : r;
}

/* The directory of all sessions; -ENOENT where there never was one. */
static int open_sessions(const char *state_dir)
{
	char path[PATH_MAX];
	int r = str_format(path, sizeof path, "%s/sessions", state_dir);

	return r < 0 ? r : fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
}

static int set_unreadable(const char *state_dir, int r, struct err *err)
{
	return err_set(err, ERR_STATE, -r, "session", "the sessions in %s cannot be read: %s", state_dir,
		       strerror(-r));
}

int session_list(const char *state_dir, struct session_record **ret_records, size_t *ret_count,
		 struct err *err)
{
	struct list list = { 0 };
	DIR *dir = path_list(open_sessions(state_dir));
	int r = dir ? list_fill(&list, dir) : errno == ENOENT ? 0 : -errno;

	if (dir)
		closedir(dir);
	if (r < 0) {
		list_free(&list);
		return set_unreadable(state_dir, r, err);
	}
	if (list.count)
		qsort(list.records, list.count, sizeof *list.records, compare_newest_first);
	*ret_records = list.records;
	*ret_count = list.count;
	return 0;
}

struct question {
	const char *project, *text, *running_in;
};

static bool is_prefix_of(const struct question *question, const struct session_record *record)
{
	return strlen(question->text) >= PREFIX_MIN && str_has_prefix(record->id, question->text);
}

/* The index of the answer, SIZE_MAX for none, SIZE_MAX - 1 for more than one. */
static size_t search(const struct list *list, const struct question *question)
{
	size_t by_name = SIZE_MAX, by_prefix = SIZE_MAX;

	for (size_t i = 0; i < list->count; i++) {
		const struct session_record *record = &list->records[i];

		if (question->running_in && !record->is_live)
			continue;
		if (!question->text) {
			if (!record->is_trial &&
			    (!question->project || str_equal(record->project, question->project)))
				return i;
			continue;
		}
		if (str_equal(record->id, question->text))
			return i;
		if (by_name == SIZE_MAX && *record->name && str_equal(record->name, question->text))
			by_name = i;
		if (is_prefix_of(question, record))
			by_prefix = by_prefix == SIZE_MAX ? i : SIZE_MAX - 1;
	}
	return by_name != SIZE_MAX ? by_name : by_prefix;
}

static int set_not_found(const struct question *question, bool is_ambiguous, struct err *err)
{
	const char *kind = question->running_in ? "running session" : "session";

	if (is_ambiguous)
		err_set(err, ERR_NOT_FOUND, ENOENT, "session", "more than one %s begins with %s", kind,
			question->text);
	else if (question->text)
		err_set(err, ERR_NOT_FOUND, ENOENT, "session", "there is no %s %s", kind, question->text);
	else
		err_set(err, ERR_NOT_FOUND, ENOENT, "session", "there is no %s of the project %s", kind,
			question->project ? question->project : "");
	err_hint(err, question->running_in ? "`atoll ps` lists those that run, `atoll run -d` starts one"
					  : "`atoll ps -a` lists all of them");
	return -ENOENT;
}

/* Adds the sessions that have a control socket: those that run, without a look at the thousands that ran. */
static int list_fill_live(struct list *list, int sessions_fd, const char *runtime_dir)
{
	DIR *dir = opendir(runtime_dir);
	char id[SESSION_ID_SIZE];
	struct dirent *entry;
	int r = 0;

	while (dir && r == 0 && (entry = readdir(dir))) {
		if (session_of_socket(entry->d_name, id))
			r = list_add(list, sessions_fd, id);
	}
	if (dir)
		closedir(dir);
	if (list->count)
		qsort(list->records, list->count, sizeof *list->records, compare_newest_first);
	return r;
}

/* What answers most questions: the one session that is named by its whole id, or those that run. */
static int list_fill_likely(struct list *list, const char *state_dir, const struct question *question)
{
	cleanup_fd int fd = open_sessions(state_dir);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (question->text && session_id_is_valid(question->text))
		return list_add(list, fd, question->text);
	return question->running_in ? list_fill_live(list, fd, question->running_in) : 0;
}

/* Most questions of programs: a session that runs, by its whole id. Nothing comes before that, so no list is made. */
static int find_by_id(const char *state_dir, const struct question *question, struct session_record *ret_record)
{
	if (!question->running_in || !question->text || !session_id_is_valid(question->text))
		return -ENOENT;
	return session_load_live(state_dir, question->text, ret_record);
}

int session_find(const char *state_dir, const char *project, const char *id_or_name,
		 const char *running_in, struct session_record *ret_record, struct err *err)
{
	struct question question = { .project = project, .text = id_or_name, .running_in = running_in };
	struct list list = { 0 };
	size_t found;
	int r = find_by_id(state_dir, &question, ret_record);

	if (r == 0)
		return 0;
	if (r == -ENOENT)
		r = list_fill_likely(&list, state_dir, &question);
	if (r < 0) {
		list_free(&list);
		return set_unreadable(state_dir, r, err);
	}
	found = search(&list, &question);
	if (found == SIZE_MAX) {
		list_free(&list);
		r = session_list(state_dir, &list.records, &list.count, err);
		if (r < 0)
			return r;
		found = search(&list, &question);
	}
	if (found >= SIZE_MAX - 1) {
		r = set_not_found(&question, found == SIZE_MAX - 1, err);
	} else {
		*ret_record = list.records[found];
		list.records[found] = (struct session_record){ 0 };
	}
	list_free(&list);
	return r;
}
