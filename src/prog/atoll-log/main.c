/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-log: what `atoll log` runs. Opens the one log that it is given, gives up everything else, and only
 * then looks into it. Exit status: 0; 1 when --verify found a fault; 125 when it could not do its work.
 */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "audit/event.h"
#include "audit/log-options.h"
#include "audit/verify.h"
#include "base/json.h"
#include "base/names.h"
#include "base/num.h"
#include "base/program.h"
#include "confine/confine.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/pty.h"
#include "prog/atoll-log/show.h"

enum { EXIT_FAULT = 1 };

struct log_options {
	bool verify, follow, json, denied;
	struct option_list types;
	const char *since, *lines, *head, *records, *session;
};

#define AT(member) offsetof(struct log_options, member)
static const struct option options[] = {
	LOG_OPTIONS(AT),
	{ 0, "verify", NULL, "check the chain instead of showing it", OPTION_FLAG, AT(verify) },
	{ 0, "records", "N", "verify: how many records there must be", OPTION_TEXT, AT(records) },
	{ 0, "session", "ID", "verify: the session that all records must carry", OPTION_TEXT, AT(session) },
};

static int check_types(const struct option_list *types, struct err *err)
{
	for (size_t i = 0; i < types->count; i++) {
		size_t length = strlen(types->values[i]);
		bool is_known = false;
		const char *nearest;

		for (size_t type = 0; type < AUDIT_TYPE_COUNT && !is_known; type++)
			is_known = length && strncmp(audit_type_names[type], types->values[i], length) == 0 &&
				   (!audit_type_names[type][length] || audit_type_names[type][length] == '.');
		if (is_known)
			continue;
		nearest = names_nearest(audit_type_names, AUDIT_TYPE_COUNT, types->values[i]);
		err_set(err, ERR_USAGE, EINVAL, "log", "there is no record type %s", types->values[i]);
		if (nearest)
			err_hint(err, "did you mean %s?", nearest);
		return -EINVAL;
	}
	return 0;
}

/* A duration back from now, or the beginning of a time in UTC, as text that compares like times. */
static int parse_since(const char *text, char out[CLOCK_RFC3339_SIZE], struct err *err)
{
	static const char form[] = "0000-00-00T00:00:00.000000000Z";
	size_t length = strlen(text);
	uint64_t ms;

	if (num_parse_duration(text, &ms) == 0 && ms <= clock_realtime_ns() / 1000000) {
		clock_format_rfc3339(clock_realtime_ns() - ms * 1000000, out);
		return 0;
	}
	for (size_t i = 0; i < length; i++) {
		bool is_digit = text[i] >= '0' && text[i] <= '9';
		/* A blank between date and time is how the table shows it. */
		char c = i == 10 && text[i] == ' ' ? 'T' : text[i];

		if (i >= sizeof form - 1 || (form[i] == '0' ? !is_digit : c != form[i])) {
			err_set(err, ERR_USAGE, EINVAL, "log", "--since %s is neither a duration nor a time", text);
			err_hint(err, "write 10m, 2h, 2026-03-01 or 2026-03-01T12:30 (UTC)");
			return -EINVAL;
		}
		out[i] = c;
	}
	out[length] = 0;
	return 0;
}

static int fail_usage(struct err *err, const char *option, const char *value, const char *form)
{
	err_set(err, ERR_USAGE, EINVAL, "log", "--%s %s is not %s", option, value, form);
	return -EINVAL;
}

static int parse_anchor(const struct log_options *given, struct audit_anchor *ret_anchor, struct err *err)
{
	if (given->head && audit_anchor_parse_head(ret_anchor, given->head) < 0)
		return fail_usage(err, "head", given->head, "sha256: and 64 hex digits");
	if (given->records && num_parse_u64(given->records, &ret_anchor->records) < 0)
		return fail_usage(err, "records", given->records, "a number");
	ret_anchor->has_records = given->records != NULL;
	return 0;
}

static int open_log(const char *path, struct err *err)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return err_set(err, fd == -ENOENT ? ERR_NOT_FOUND : ERR_STATE, -fd, "log", "%s: %s", path,
			       strerror(-fd));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_STATE, EINVAL, "log", "%s is not a regular file", path);
	return take_fd(&fd);
}

static int watch_log(const char *path, struct err *err)
{
	cleanup_fd int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY) < 0)
		return err_set(err, ERR_INTERNAL, errno, "log", "the log cannot be watched: %s", strerror(errno));
	return take_fd(&fd);
}

static int run_show(const struct log_options *given, const char *path, struct err *err)
{
	char since[CLOCK_RFC3339_SIZE];
	struct show show = {
		.filter = { .types = &given->types, .denied_only = given->denied },
		.json = given->json, .follow = given->follow, .last = UINT64_MAX,
		.colour = pty_has_colour(STDOUT_FILENO, getenv("TERM"), getenv("NO_COLOR")), .watch_fd = FD_NONE,
	};
	int r = check_types(&given->types, err);

	if (r == 0 && given->since) {
		r = parse_since(given->since, since, err);
		show.filter.since = since;
	}
	if (r == 0 && given->lines && num_parse_u64(given->lines, &show.last) < 0)
		r = fail_usage(err, "lines", given->lines, "a number");
	if (r < 0)
		return r;
	show.log_fd = open_log(path, err);
	if (show.log_fd < 0)
		return show.log_fd;
	if (show.follow)
		show.watch_fd = watch_log(path, err);
	if (show.follow && show.watch_fd < 0)
		return show.watch_fd;
	r = confine_self(CONFINE_LOG, NULL, 0, err);
	return r < 0 ? r : show_log(&show, err);
}

static void print_json(const struct audit_result *result, const char *text, struct buf *out)
{
	char head[HASH_HEX_SIZE + 8] = "sha256:";
	struct json json;

	hash_to_hex(&result->head, head + strlen(head));
	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_bool(&json, "whole", result->fault == AUDIT_FAULT_NONE);
	json_string(&json, "fault", result->fault ? audit_fault_names[result->fault] : NULL);
	if (result->fault)
		json_u64(&json, "bad_record", result->bad_record);
	else
		json_string(&json, "head", head);
	json_u64(&json, "records", result->records);
	json_bool(&json, "ended", result->is_ended);
	json_string(&json, "text", text);
	json_object_end(&json);
}

static int print_result(const struct log_options *given, const struct audit_anchor *anchor,
			const struct audit_result *result, struct err *err)
{
	cleanup_buf struct buf text, out;

	buf_init(&text, 4096);
	buf_init(&out, 16384);
	audit_result_format(result, anchor, &text);
	if (given->json) {
		print_json(result, buf_text(&text), &out);
	} else {
		buf_put(&out, text.bytes, text.size);
		if (!result->fault && !anchor->has_head)
			buf_put_text(&out, " (nothing vouches for the end: give --head from a report)");
		if (!result->fault && !result->is_ended)
			buf_put_text(&out, " (no session.end: it runs, or was killed)");
	}
	buf_put_char(&out, '\n');
	if (buf_error(&out) || fwrite(out.bytes, 1, out.size, stdout) != out.size || fflush(stdout) != 0)
		return err_set(err, ERR_STATE, EIO, "log", "stdout cannot be written");
	return result->fault ? EXIT_FAULT : 0;
}

static int run_verify(const struct log_options *given, const char *path, struct err *err)
{
	struct audit_anchor anchor = { 0 };
	struct audit_result result;
	int fd, r = parse_anchor(given, &anchor, err);

	if (r < 0)
		return r;
	fd = open_log(path, err);
	if (fd < 0)
		return fd;
	r = confine_self(CONFINE_LOG, NULL, 0, err);
	if (r < 0)
		return r;
	r = audit_verify(fd, given->session, &anchor, &result);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "log", "the log cannot be read: %s", strerror(-r));
	return print_result(given, &anchor, &result, err);
}

static int run(int argc, char **argv, struct err *err)
{
	struct log_options given = { 0 };
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r < 0)
		return r;
	if (r == 1)
		return options_help("atoll-log [OPTIONS] FILE: show or check an action log; "
				    "`atoll log` finds the file.\n\n",
				    options, ARRAY_SIZE(options));
	if (argc - rest != 1)
		return err_set(err, ERR_USAGE, EINVAL, "log", "atoll-log needs one file; `atoll log` finds it");
	entry_init();
	return given.verify ? run_verify(&given, argv[rest], err) : run_show(&given, argv[rest], err);
}

int main(int argc, char **argv)
{
	return program_main(argc, argv, fd_secure_standard, run);
}
