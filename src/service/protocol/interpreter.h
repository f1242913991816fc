/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages of the code interpreter. On one side what its clients send and get: JSON, and a stream of JSON objects, one
 * a line, in ASCII alone, since clients decode each piece of the stream by itself. On the other side what a driver
 * (runtimes/) is told and says, also lines; what a driver says comes from inside a sandbox and may be anything. Pure.
 * Run by atoll-front.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct json_t;

enum {
	INTERPRETER_WHY_SIZE = 160,
	INTERPRETER_ID_SIZE = 40,
	INTERPRETER_PATH_SIZE = 4097,
	INTERPRETER_LINE_MAX = 8 << 20,     /* bytes that a driver says in one line */
};

enum interpreter_language {
	INTERPRETER_PYTHON,
	INTERPRETER_JAVASCRIPT,
	INTERPRETER_TYPESCRIPT,
	INTERPRETER_BASH,
	INTERPRETER_R,
	INTERPRETER_JAVA,
	INTERPRETER_LANGUAGE_COUNT,
};

/* "python"; and back, for names and short names in any case: -ENOENT for one that is none. */
const char *interpreter_language_name(enum interpreter_language language);
int interpreter_language_find(const char *name, enum interpreter_language *ret_language) MUST_USE;

/* What a client asks for. */
struct interpreter_request {
	struct json_t *value;               /* owned: interpreter_request_done() */
	const char *code;                   /* borrowed from it, as the rest; NULL: there is none */
	size_t code_size;
	const char *context;                /* NULL: the default one of the language */
	const char *cwd;                    /* NULL: the home */
	enum interpreter_language language;
	bool has_language;
	const struct json_t *env;           /* names and texts; NULL: none */
};

/*
 * Reads the body of POST /execute, and of POST /contexts. 0, and *ret_request is the caller's; -EINVAL with a sentence
 * in why; -ENOMEM.
 */
int interpreter_read_execute(const void *json, size_t size, struct interpreter_request *ret_request,
			     char why[INTERPRETER_WHY_SIZE]) MUST_USE;
int interpreter_read_create(const void *json, size_t size, struct interpreter_request *ret_request,
			    char why[INTERPRETER_WHY_SIZE]) MUST_USE;
void interpreter_request_done(struct interpreter_request *request);

/* The line that has a driver run what was asked for, under this number. */
void interpreter_put_run(struct buf *out, uint64_t number, const struct interpreter_request *request);

/* The same for the shell, which reads no JSON: quoted words. */
void interpreter_put_shell_run(struct buf *out, uint64_t number, const struct interpreter_request *request);

/* The same for languages without JSON: words behind a line with their sizes. */
void interpreter_put_counted_run(struct buf *out, uint64_t number, const struct interpreter_request *request);

/* What a line of a driver was. */
enum interpreter_line {
	INTERPRETER_IGNORED,                /* about nothing that runs */
	INTERPRETER_SAID,                   /* a line for the client was appended */
	INTERPRETER_ENDED,                  /* that is all of this run */
	INTERPRETER_MISSING,                /* there is no such language in the sandbox */
};

/* Reads one without its newline, and appends what the client gets. number: of what runs. -EBADMSG: it is none. */
int interpreter_read_line(const void *line, size_t size, uint64_t number, struct buf *out) MUST_USE;

/*
 * Appends a line with text that was written to standard output or error. Bytes that are not UTF-8 become U+FFFD.
 * Returns how many bytes were taken: an incomplete character at the end is left, unless is_last.
 */
size_t interpreter_put_output(struct buf *out, bool is_error, const void *bytes, size_t size, uint64_t time_us,
			      bool is_last);

/* Lines of our own: an error of the runtime, a sign of life, and the last one. */
void interpreter_put_error(struct buf *out, const char *name, const char *value);
void interpreter_put_keepalive(struct buf *out);
void interpreter_put_end(struct buf *out);

/* A context, as an object; lists of them are put together by the caller. */
void interpreter_put_context(struct buf *out, const char *id, enum interpreter_language language, const char *cwd);
