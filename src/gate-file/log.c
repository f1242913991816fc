/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-file/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/proc.h"
#include "watch/watch.h"

/*
 * Records are many: a build opens one header a thousand times. The first time is written at once, before the caller has
 * its answer; the same again by the same thread is counted, and the count is written when something else needs the
 * place, after a second, and at the end. Nothing is left out.
 */

enum { REPEATS = 512, REPEAT_PATH_MAX = 400, REPEAT_NS = 1000000000 };

struct file_repeat {
	uint64_t count;              /* since it was written last */
	uint64_t hash;               /* 0: empty */
	struct file_note note;
	bool has_target;
	char rule[64];               /* that of note */
	char path[REPEAT_PATH_MAX], target[REPEAT_PATH_MAX], exe[REPEAT_PATH_MAX];
};

struct file_detail {
	const char *call, *target;
	int flags, errnum;
	uint64_t count;              /* 0: this is the first */
	bool is_open, is_rename;
};

static void put_flags(struct json *json, int flags)
{
	static const struct {
		int mask, value;
		const char *name;
	} names[] = {
		{ O_ACCMODE, O_RDONLY, "O_RDONLY" }, { O_ACCMODE, O_WRONLY, "O_WRONLY" },
		{ O_ACCMODE, O_RDWR, "O_RDWR" }, { O_CREAT, O_CREAT, "O_CREAT" }, { O_EXCL, O_EXCL, "O_EXCL" },
		{ O_TRUNC, O_TRUNC, "O_TRUNC" }, { O_APPEND, O_APPEND, "O_APPEND" },
		{ O_DIRECTORY, O_DIRECTORY, "O_DIRECTORY" },
	};
	char text[128];
	struct buf out;

	buf_init_fixed(&out, text, sizeof text);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if ((flags & names[i].mask) == names[i].value) {
			if (out.size)
				buf_put_char(&out, '|');
			buf_put_text(&out, names[i].name);
		}
	json_string(json, "flags", buf_text(&out));
}

static void put_detail(struct json *json, const void *context)
{
	const struct file_detail *detail = context;

	json_string(json, "call", detail->call);
	if (detail->is_open)
		put_flags(json, detail->flags);
	if (detail->target)
		json_bytes(json, detail->is_rename ? "to" : "of", detail->target, strlen(detail->target));
	if (detail->errnum)
		json_string(json, "errno", err_errno_name(detail->errnum));
	if (detail->count)
		json_u64(json, "count", detail->count);
}

bool file_log_is_open(const char *call)
{
	return str_has_prefix(call, "open") || str_equal(call, "creat");
}

struct file_paths {
	const char *path, *target, *exe;
};

static int write_record(struct audit_writer *audit, const struct file_note *note, const struct file_paths *paths,
			uint64_t count)
{
	struct file_detail detail = {
		.call = note->call,
		.target = paths->target,
		.flags = note->flags,
		.errnum = note->errnum,
		.count = count,
		.is_open = file_log_is_open(note->call),
		.is_rename = note->type == AUDIT_FILE_RENAME,
	};
	struct audit_event event = {
		.type = note->type,
		.verdict = verdict_names[note->verdict],
		.rule = note->rule[0] ? note->rule : NULL,
		.pid = note->pid,
		.exe = paths->exe[0] ? paths->exe : NULL,
		.subject = paths->path,
		.subject_size = strlen(paths->path),
		.write_detail = put_detail,
		.context = &detail,
	};

	return audit_write(audit, &event);
}

/* The program, as the sandbox sees its path. */
void file_log_program(pid_t pid, char *out, size_t size)
{
	char link[32];
	ssize_t length = proc_path(pid, "exe", link, sizeof link) < 0 ? -1 : readlink(link, out, size - 1);

	out[length > 0 ? length : 0] = 0;
}

/* FNV-1a: a collision costs a record that is written instead of counted, after is_same() looked. */
static uint64_t add_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash * 0x100000001b3u;
}

static uint64_t hash_of(const struct file_note *like, const char *path, const char *target)
{
	uint64_t hash = add_text(add_text(0xcbf29ce484222325u ^ (uint64_t)like->pid << 8, path), target);

	return (hash ^ (uint64_t)(unsigned)like->flags ^ (uint64_t)like->type << 48) | 1;
}

static bool is_same(const struct file_repeat *repeat, const struct file_note *like, const char *path,
		    const char *target)
{
	const struct file_note *note = &repeat->note;

	return note->type == like->type && note->verdict == like->verdict && note->pid == like->pid &&
	       note->call == like->call && note->flags == like->flags && note->errnum == like->errnum &&
	       str_equal(repeat->path, path) && repeat->has_target == (target != NULL) &&
	       (!target || str_equal(repeat->target, target));
}

static int write_repeat(struct file_log *log, struct audit_writer *audit, struct file_repeat *repeat)
{
	struct file_paths paths = { repeat->path, repeat->has_target ? repeat->target : NULL, repeat->exe };
	int r;

	if (!repeat->hash || !repeat->count)
		return 0;
	r = write_record(audit, &repeat->note, &paths, repeat->count);
	repeat->count = 0;
	log->waiting--;
	return r;
}

/* What is too long to be kept is written each time. */
static void begin_repeat(struct file_repeat *repeat, uint64_t hash, const struct file_note *fresh,
		 const struct file_paths *paths)
{
	repeat->hash = 0;
	repeat->note = *fresh;
	repeat->note.rule = repeat->rule;
	repeat->has_target = paths->target;
	if (str_copy(repeat->rule, sizeof repeat->rule, fresh->rule) == 0 &&
	    str_copy(repeat->path, sizeof repeat->path, paths->path) == 0 &&
	    str_copy(repeat->target, sizeof repeat->target, paths->target ? paths->target : "") == 0 &&
	    str_copy(repeat->exe, sizeof repeat->exe, paths->exe) == 0)
		repeat->hash = hash;
}

/* Written now, or counted. */
int file_log_add(struct file_log *log, struct audit_writer *audit, const struct file_note *fresh,
		 const struct watch_file *event)
{
	uint64_t hash = hash_of(fresh, event->path, event->target);
	struct file_repeat *repeat;
	char exe[REPEAT_PATH_MAX];
	struct file_paths paths = { event->path, event->target, exe };
	int r;

	if (!log->repeats)
		log->repeats = calloc(REPEATS, sizeof *log->repeats);
	repeat = log->repeats ? &log->repeats[hash / 2 % REPEATS] : NULL;
	if (repeat && repeat->hash == hash && is_same(repeat, fresh, event->path, event->target)) {
		log->waiting += !repeat->count++;
		return 0;
	}
	r = repeat ? write_repeat(log, audit, repeat) : 0;
	file_log_program(fresh->pid, exe, sizeof exe);
	if (r == 0)
		r = write_record(audit, fresh, &paths, 0);
	if (repeat)
		begin_repeat(repeat, hash, fresh, &paths);
	return r;
}

int file_log_flush(struct file_log *log, struct audit_writer *audit, bool is_last)
{
	uint64_t now = clock_monotonic_ns();
	int r = 0;

	if (!log->waiting || (!is_last && now - log->told_ns < REPEAT_NS))
		return 0;
	log->told_ns = now;
	for (size_t i = 0; r == 0 && i < REPEATS; i++)
		r = write_repeat(log, audit, &log->repeats[i]);
	return r;
}

void file_log_done(struct file_log *log)
{
	free(log->repeats);
	log->repeats = NULL;
}
