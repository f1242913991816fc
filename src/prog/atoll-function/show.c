/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-function/show.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

enum { US_PER_MS = 1000, LINE_MAX_BYTES = 1 << 20 };

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static unsigned long long number_of(const json_t *object, const char *name)
{
	json_int_t number = json_integer_value(json_object_get(object, name));

	return number > 0 ? (unsigned long long)number : 0;
}

/* The lines of a text of somebody else's, each safe on a terminal. */
static void put_lines(FILE *to, const char *text, const char *before)
{
	while (*text) {
		size_t length = strcspn(text, "\n");
		cleanup_buf struct buf line;

		buf_init(&line, LINE_MAX_BYTES);
		buf_put_escaped(&line, text, length, 0);
		fprintf(to, "%s%s\n", before, buf_text(&line));
		text += length + (text[length] == '\n');
	}
}

static int parse(const struct request *request, json_t **ret, struct err *err)
{
	*ret = json_loadb((const char *)request->answer.bytes, request->answer.size, JSON_REJECT_DUPLICATES, NULL);
	return *ret ? 0 : err_set(err, ERR_STATE, EBADMSG, "function", "the service's answer cannot be read");
}

static int put_bytes(const struct request *request, struct err *err)
{
	int r = fd_write_full(STDOUT_FILENO, request->answer.bytes, request->answer.size);

	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, "\n", 1);
	return r < 0 ? err_set(err, ERR_STATE, -r, "function", "the output cannot be written: %s",
			       err_errno_name(-r)) : 0;
}

static void print_row(const json_t *row)
{
	printf("%-24s  %-10s  %8llu  %6llu  %6llu  %8.1f  %8.1f  %s\n", text_of(row, "name"), text_of(row, "runtime"),
	       number_of(row, "invocations"), number_of(row, "errors"), number_of(row, "coldStarts"),
	       (double)number_of(row, "p50Us") / US_PER_MS, (double)number_of(row, "p95Us") / US_PER_MS,
	       text_of(row, "entry"));
}

int show_list(const struct request *request, bool is_json, struct err *err)
{
	json_t *list, *row;
	size_t i;
	int r;

	if (is_json)
		return put_bytes(request, err);
	r = parse(request, &list, err);
	if (r < 0)
		return r;
	printf("%-24s  %-10s  %8s  %6s  %6s  %8s  %8s  %s\n", "NAME", "RUNTIME", "CALLS", "ERRORS", "COLD", "P50 ms",
	       "P95 ms", "ENTRY");
	json_array_foreach(list, i, row)
		print_row(row);
	json_decref(list);
	return 0;
}

int show_one(const struct request *request, bool is_json, struct err *err)
{
	json_t *one;
	int r;

	if (is_json)
		return put_bytes(request, err);
	r = parse(request, &one, err);
	if (r < 0)
		return r;
	printf("%s: %s, %s; %llu MiB (0: what its policy says), %llu ms, %llu at once\n", text_of(one, "name"),
	       text_of(one, "runtime"), text_of(one, "entry"), number_of(one, "memoryMB"), number_of(one, "timeoutMs"),
	       number_of(one, "concurrency"));
	printf("%llu invocations, %llu errors, %llu cold; %llu run, %llu wait\n", number_of(one, "invocations"),
	       number_of(one, "errors"), number_of(one, "coldStarts"), number_of(one, "running"),
	       number_of(one, "warm"));
	json_decref(one);
	return 0;
}

int show_logs(const struct request *request, bool is_json, struct err *err)
{
	json_t *whole, *list;
	int r;

	if (is_json)
		return put_bytes(request, err);
	r = parse(request, &whole, err);
	if (r < 0)
		return r;
	/* The newest comes first, and is wanted last. */
	list = json_object_get(whole, "invocations");
	for (size_t i = json_array_size(list); i > 0; i--) {
		const json_t *row = json_array_get(list, i - 1);

		printf("%llu  %s  %.1f ms  %s %llu%s\n", number_of(row, "invocation"), text_of(row, "timestamp"),
		       (double)number_of(row, "durationUs") / US_PER_MS, text_of(row, "ended"),
		       number_of(row, "exit") + number_of(row, "signal"),
		       json_is_true(json_object_get(row, "cold")) ? "  cold" : "");
		put_lines(stdout, text_of(row, "log"), "    ");
	}
	json_decref(whole);
	return 0;
}

int show_result(const struct request *request, struct err *err)
{
	struct buf text = request->answer;

	if (!isatty(STDOUT_FILENO)) {
		int r = fd_write_full(STDOUT_FILENO, request->answer.bytes, request->answer.size);

		return r < 0 ? err_set(err, ERR_STATE, -r, "invoke", "the result cannot be written: %s",
				       err_errno_name(-r)) : 0;
	}
	put_lines(stdout, buf_text(&text), "");
	return 0;
}

int show_failure(const struct request *request, struct err *err)
{
	json_t *whole = NULL;
	const char *message, *cut;
	char first[ERR_MESSAGE_SIZE];
	bool is_missing = request->status == 404;

	if (parse(request, &whole, NULL) < 0)
		return err_set(err, ERR_STATE, EBADMSG, "function", "the service answered with status %u",
			       request->status);
	put_lines(stderr, text_of(whole, "log"), "");
	message = text_of(whole, "message");
	/* A trace has lines of its own. */
	cut = strchr(message, '\n') ? strstr(message, ": ") : NULL;
	if (cut)
		put_lines(stderr, cut + 2, "");
	if (str_format(first, sizeof first, "%.*s", cut ? (int)(cut - message) : ERR_MESSAGE_SIZE - 1, message) < 0)
		first[0] = 0;
	err_set(err, is_missing ? ERR_NOT_FOUND : ERR_STATE, is_missing ? ENOENT : EINVAL, "function", "%s", first);
	json_decref(whole);
	return is_missing ? -ENOENT : -EINVAL;
}
