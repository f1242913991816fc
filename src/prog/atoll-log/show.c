/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-log/show.h"

#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "audit/reader.h"
#include "base/str.h"

enum { LINE_MAX_SHOWN = 1 << 20, BOX_CHECK_MS = 1000 };

struct walk {
	const struct show *show;
	struct audit_reader reader;
	struct buf out;
	uint64_t line, skip;   /* skip: matches that are not among the last ones */
	bool is_ended;
	struct err *err;
};

static int flush(struct walk *walk)
{
	if (fwrite(walk->out.bytes, 1, walk->out.size, stdout) != walk->out.size || fflush(stdout) != 0)
		return err_set(walk->err, ERR_STATE, errno, "log", "stdout: %s", strerror(errno));
	buf_reset(&walk->out);
	return 0;
}

static int print_entry(struct walk *walk, const json_t *entry, const char *line, size_t size)
{
	if (walk->show->json)
		entry_format_json(entry, line, size, &walk->out);
	else
		entry_format(entry, walk->show->colour, &walk->out);
	if (buf_error(&walk->out)) {
		int error = -buf_error(&walk->out);

		return err_set(walk->err, ERR_INTERNAL, error, "log", "record %zu: %s", (size_t)walk->line,
			       strerror(error));
	}
	return flush(walk);
}

/* 1 when the record was asked for. */
static int one_line(struct walk *walk, const char *line, size_t size, bool print)
{
	json_t *entry = entry_parse(line, size);
	int r = 0;

	walk->line++;
	if (!entry) {
		if (print)
			fprintf(stderr, "atoll: log: line %llu is no record; see atoll log verify\n",
				(unsigned long long)walk->line);
		return 0;
	}
	walk->is_ended = str_equal(json_string_value(json_object_get(entry, "type")), "session.end");
	if (entry_matches(entry, &walk->show->filter)) {
		r = 1;
		if (print && walk->skip)
			walk->skip--;
		else if (print && print_entry(walk, entry, line, size) < 0)
			r = -EIO;
	}
	json_decref(entry);
	return r;
}

/* Every line that is there; *ret_count counts those that match. */
static int walk_lines(struct walk *walk, bool print, uint64_t *ret_count)
{
	uint64_t count = 0;

	for (;;) {
		const char *line;
		size_t size;
		int r = audit_reader_next(&walk->reader, &line, &size);

		if (r < 0)
			return err_set(walk->err, ERR_STATE, -r, "log", "the log cannot be read: %s", strerror(-r));
		if (r == AUDIT_LINE_NONE || r == AUDIT_LINE_PARTIAL) {
			*ret_count = count;
			return r == AUDIT_LINE_PARTIAL;
		}
		r = one_line(walk, line, r == AUDIT_LINE_WHOLE ? size : 0, print);
		if (r < 0)
			return r;
		count += (uint64_t)r;
	}
}

static bool is_box_gone(const struct show *show)
{
	/* Shared: two who follow one log do not take each other for the box. */
	if (flock(show->log_fd, LOCK_SH | LOCK_NB) < 0)
		return false;
	flock(show->log_fd, LOCK_UN);
	return true;
}

static int follow(struct walk *walk)
{
	struct pollfd poll_fd = { .fd = walk->show->watch_fd, .events = POLLIN };
	uint64_t count;

	while (!walk->is_ended) {
		bool was_gone = is_box_gone(walk->show);
		char events[4096];
		int r = walk_lines(walk, true, &count);

		if (r < 0)
			return r;
		if (walk->is_ended || was_gone)
			break;
		if (poll(&poll_fd, 1, BOX_CHECK_MS) > 0 && read(poll_fd.fd, events, sizeof events) < 0 &&
		    errno != EAGAIN)
			return err_set(walk->err, ERR_INTERNAL, errno, "log", "inotify: %s", strerror(errno));
	}
	return 0;
}

static int show_all(struct walk *walk)
{
	uint64_t count;
	int r;

	if (walk->show->last != UINT64_MAX) {
		r = walk_lines(walk, false, &count);
		if (r >= 0)
			r = audit_reader_rewind(&walk->reader);
		if (r < 0)
			return r;
		walk->skip = count > walk->show->last ? count - walk->show->last : 0;
		walk->line = 0;
	}
	r = walk_lines(walk, true, &count);
	if (r < 0)
		return r;
	if (walk->show->follow)
		return follow(walk);
	/* While the box writes, half a line is only early; afterwards it is damage. */
	if (r == 1 && is_box_gone(walk->show))
		fprintf(stderr, "atoll: log: the last line is cut off; see atoll log verify\n");
	/* A person is told that there is nothing, a program sees it. */
	if (!count && !walk->show->json && isatty(STDOUT_FILENO))
		printf("nothing of that is in the log\n");
	return 0;
}

int show_log(const struct show *show, struct err *err)
{
	struct walk walk = { .show = show, .err = err };
	int r = audit_reader_init(&walk.reader, show->log_fd);

	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "log", "%s", strerror(-r));
	buf_init(&walk.out, LINE_MAX_SHOWN);
	r = show_all(&walk);
	buf_done(&walk.out);
	audit_reader_done(&walk.reader);
	return r;
}
