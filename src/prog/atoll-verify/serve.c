/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-verify/serve.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "confine/confine.h"
#include "os/fd.h"
#include "verify/verify.h"
#include "verify/worth.h"
#include "wire/verify.h"

enum { STATE_NEW, STATE_READY, PROBLEM_SIZE = 480, GLOBS_SIZE_MAX = 48 << 10 };

struct server {
	unsigned state;
	struct verify *verify;         /* NULL: the rules have errors, and everything is unknown */
	struct buf compiled;           /* what rules that were loaded are a view of */
	struct buf out;
	struct verify_result command, file;
	struct verify_answer answer;
	struct buf text;               /* of a file */
};

/* ---- rules ---- */

/* From an offset to the end. What the box gives is not hostile, but read with a bound like everything. */
static int read_fd_from(int fd, off_t at, struct buf *out, size_t max)
{
	struct stat st;

	/* Room for all of it at once: growing costs as much as reading. */
	if (fstat(fd, &st) == 0 && st.st_size > at && st.st_size - at < (off_t)max &&
	    buf_reserve(out, (size_t)(st.st_size - at) + (64 << 10)))
		out->size = 0;
	while (out->size <= max) {
		void *room = buf_reserve(out, 64 << 10);
		ssize_t n = room ? pread(fd, room, 64 << 10, at) : -1;

		if (!room)
			return -ENOMEM;
		out->size -= (64 << 10) - (n > 0 ? (size_t)n : 0);
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		at += n;
	}
	return 0;
}

static int read_fd(int fd, struct buf *out, size_t max)
{
	return read_fd_from(fd, 0, out, max);
}

static bool add_files(struct rules *rules, struct diags *diags, void *bytes, size_t size)
{
	struct frame frame;
	uint32_t count;

	if (frame_open(&frame, bytes, size) < 0 || frame.type != VERIFY_RULES)
		return false;
	count = frame_get_u32(&frame);
	for (uint32_t i = 0; i < count && i < VERIFY_RULE_FILES_MAX; i++) {
		const char *name = frame_get_string(&frame);
		size_t text_size = 0;
		const void *text = frame_get_bytes(&frame, &text_size);

		if (!name || !text)
			return false;
		(void)!rules_add(rules, diags, name, text, text_size);
	}
	return frame_finish(&frame) == 0;
}

/* A vector of globs as the frame takes it. What would be too many for it stands for everything. */
static void put_globs(struct buf *out, struct arena *arena, const struct vec *globs, const char *instead)
{
	const char *const all[] = { instead, NULL };
	size_t size = 0;

	for (size_t i = 0; i < globs->count; i++)
		size += strlen(((const char *const *)globs->items)[i]) + 8;
	if (globs->count > VERIFY_WORTH_MAX || size > GLOBS_SIZE_MAX)
		frame_put_strv(out, all);
	else
		frame_put_strv(out, vec_strings(arena, globs));
}

static int put_ready(struct server *server, const char *problem, const struct rules *rules)
{
	cleanup_arena struct arena arena = { 0 };
	struct worth worth = { 0 };

	if (rules)
		worth = worth_of(rules, &arena);
	frame_begin(&server->out, VERIFY_READY);
	frame_put_string(&server->out, problem);
	put_globs(&server->out, &arena, &worth.programs, "*");
	put_globs(&server->out, &arena, &worth.words, "*");
	return arena.has_failed ? -ENOMEM : frame_end(&server->out);
}

static int send_out(struct server *server, int r)
{
	return r < 0 ? r : frame_send(VERIFY_FD, &server->out, NULL, 0);
}

/* The rules of a frame VERIFY_RULES, or NULL with what is wrong with them. */
static struct rules *parse_rules(struct buf *bytes, char problem[PROBLEM_SIZE])
{
	cleanup_arena struct arena arena = { 0 };
	struct diags *diags = arena_alloc(&arena, sizeof *diags);
	struct rules *rules = rules_new();
	const struct diag *first;

	(void)!str_copy(problem, PROBLEM_SIZE, "the rules have errors");
	if (!diags || !rules) {
		rules_free(rules);
		return NULL;
	}
	diags->arena = &arena;
	if (add_files(rules, diags, bytes->bytes, bytes->size) && rules_finish(rules, diags) && !diags->count &&
	    rules_are_whole(rules)) {
		*problem = '\0';
		return rules;
	}
	first = &diags->items[0];
	if (str_format(problem, PROBLEM_SIZE, "%s:%u: %s", diags->count ? first->place.file : "rules",
		       diags->count ? first->place.line : 0, diags->count ? first->message : "malformed") < 0)
		(void)!str_copy(problem, PROBLEM_SIZE, "the rules have errors");
	rules_free(rules);
	return NULL;
}

/*
 * For all who come later, so it is whole and sealed before READY, and nothing that a sandbox chose has been read by
 * then. Without it they parse as well.
 */
static void give_compiled(struct server *server, const struct rules *rules, int fd)
{
	buf_reset(&server->compiled);
	if (rules_store(rules, &server->compiled) < 0 ||
	    fd_write_full(fd, server->compiled.bytes, server->compiled.size) < 0 || fd_memfd_seal(fd) < 0)
		return;
}

static int become_ready(struct server *server, struct rules *rules, const char *problem, bool tells_worth)
{
	int r;

	if (rules) {
		server->verify = verify_new(rules);
		if (!server->verify)
			return -ENOMEM;
	}
	server->state = STATE_READY;
	r = put_ready(server, *problem ? problem : NULL, tells_worth ? rules : NULL);
	return send_out(server, r);
}

static int handle_start(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct server *server = context;
	struct rules *rules = NULL;
	struct buf bytes;
	char problem[PROBLEM_SIZE] = "the rules cannot be read";

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	buf_init(&bytes, VERIFY_RULES_MAX + (1 << 20));
	if (read_fd(fds[0], &bytes, VERIFY_RULES_MAX + (1 << 19)) == 0)
		rules = parse_rules(&bytes, problem);
	buf_done(&bytes);
	if (rules)
		give_compiled(server, rules, fds[1]);
	return become_ready(server, rules, problem, true);
}

static int handle_load(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct server *server = context;
	uint64_t offset = frame_get_u64(frame);
	struct rules *rules = NULL;

	if (frame_finish(frame) < 0 || offset > VERIFY_COMPILED_MAX)
		return -EBADMSG;
	if (read_fd_from(fds[0], (off_t)offset, &server->compiled, VERIFY_COMPILED_MAX) == 0)
		rules = rules_restore(server->compiled.bytes, server->compiled.size);
	return become_ready(server, rules, rules ? "" : "the compiled rules are damaged", false);
}

/* ---- judging ---- */

/* What the policy may tell apart: never all of one kind, so that none is hidden behind many of another. */
static bool is_alike(const struct verify_told *a, const struct verify_told *b)
{
	return a->confidence == b->confidence && a->is_unknown == b->is_unknown && a->held == b->held &&
	       (a->is_unknown || a->severity == b->severity);
}

/* A place for one more where all are taken: that of the least which is not the only one of its kind. NULL: none. */
static struct verify_told *find_spare(struct verify_answer *answer, const struct verify_told *fresh)
{
	struct verify_told *spare = NULL;

	for (uint32_t i = 0; i < answer->count; i++) {
		if (is_alike(&answer->told[i], fresh))
			return NULL;
		for (uint32_t before = 0; before < i; before++)
			if (is_alike(&answer->told[before], &answer->told[i]))
				spare = &answer->told[i];
	}
	return spare;
}

static void add_finding(struct server *server, const struct verify_told *fresh)
{
	struct verify_answer *answer = &server->answer;
	uint32_t at;

	answer->total++;
	if (answer->count == VERIFY_FINDINGS_MAX) {
		struct verify_told *spare = find_spare(answer, fresh);

		if (!spare)
			return;
		memmove(spare, spare + 1, (size_t)(answer->told + answer->count - (spare + 1)) * sizeof *spare);
		answer->count--;
	}
	/* The worst first: each result is sorted already. */
	for (at = answer->count++; at > 0 && answer->told[at - 1].severity < fresh->severity; at--)
		answer->told[at] = answer->told[at - 1];
	answer->told[at] = *fresh;
}

/* Hidden code, and what comes from elsewhere, may do anything. */
static const enum verify_held held_of[CLASS_COUNT] = {
	[CLASS_DESTRUCTIVE] = VERIFY_HELD_FILES, [CLASS_PERSIST] = VERIFY_HELD_FILES, [CLASS_EVADE] = VERIFY_HELD_FILES,
	[CLASS_PRIVILEGE] = VERIFY_HELD_RIGHTS, [CLASS_EXHAUST] = VERIFY_HELD_LIMITS,
};

static void add_findings(struct server *server, const struct verify_result *result, bool is_script)
{
	for (size_t i = 0; i < result->count; i++) {
		const struct finding *finding = &result->findings[i];

		add_finding(server, &(struct verify_told){
			.severity = finding->severity, .confidence = finding->confidence,
			.is_unknown = finding->class == CLASS_UNKNOWN && finding->severity > SEVERITY_LOW,
			.held = finding->leaves ? VERIFY_HELD_NOT : held_of[finding->class],
			.line = is_script ? finding->line : 0, .id = finding->id,
			.reason = finding->reason,
			.instead = finding->instead,
		});
	}
	server->answer.time_us += result->time_us;
}

static void add_unknown(struct server *server, const char *id, const char *reason)
{
	add_finding(server, &(struct verify_told){
		.severity = SEVERITY_MEDIUM, .confidence = CONFIDENCE_CERTAIN, .is_unknown = true, .id = id,
		.reason = reason, .instead = "",
	});
}

/* 0 or 1: something is wanted first (the frame is in out); negative: out of memory. */
static int judge_command(struct server *server, const struct verify_question *question)
{
	struct verify_input input = { .arguments = (const char *const *)question->argv };
	enum verify_language language;
	const char *script;
	struct err err;
	int r = verify_judge(server->verify, &input, &server->command, &err);

	if (r < 0)
		return r;
	script = question->file == VERIFY_NO_FILE ? verify_script_of(&server->command, &language) : NULL;
	if (!script || !*script || strlen(script) >= 4096) {
		add_findings(server, &server->command, false);
		return 0;
	}
	frame_begin(&server->out, VERIFY_WANTS);
	frame_put_u32(&server->out, question->id);
	frame_put_string(&server->out, script);
	r = frame_end(&server->out);
	return r < 0 ? r : 1;
}

static int judge_file(struct server *server, const struct verify_question *question, int fd)
{
	struct verify_input input = { .name = question->path };
	enum verify_language language = LANGUAGE_UNKNOWN;
	struct err err;
	int r;

	buf_reset(&server->text);
	if (read_fd(fd, &server->text, VERIFY_TEXT_MAX) < 0) {
		add_unknown(server, "unknown.file", "the script cannot be read");
		return 0;
	}
	/* What the interpreter is says more than the text: `python3 x` reads x as Python whatever it looks like. */
	if (question->file == VERIFY_SCRIPT)
		(void)!verify_script_of(&server->command, &language);
	input.language = language;
	input.bytes = server->text.bytes ? server->text.bytes : (const uint8_t *)"";
	input.size = server->text.size;
	r = verify_judge(server->verify, &input, &server->file, &err);
	if (r == 0)
		add_findings(server, &server->file, true);
	return r;
}

static int handle_judge(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct server *server = context;
	struct verify_question question;
	int r = verify_question_get(frame, &question);

	if (r < 0)
		return r;
	server->answer = (struct verify_answer){ .id = question.id };
	if (!server->verify)
		add_unknown(server, "unknown.rules", "the rules have errors, so nothing can be judged");
	else
		r = judge_command(server, &question);
	if (r == 0 && server->verify && fd_count)
		r = judge_file(server, &question, fds[0]);
	if (r == 0 && server->verify && question.file == VERIFY_SCRIPT && !fd_count && *question.path)
		add_unknown(server, "unknown.file", "the script is no file that can be looked at");
	if (r == 0 && question.is_cut)
		add_unknown(server, "unknown.arguments", "it has more arguments than can be judged");
	if (r == 0)
		r = verify_answer_put(&server->out, &server->answer);
	free(question.argv);
	r = send_out(server, r);
	verify_result_done(&server->command);
	verify_result_done(&server->file);
	return r;
}

static const struct frame_rule rules[] = {
	{ VERIFY_START, 1u << STATE_NEW, FRAME_HEADER_SIZE, 2, 2, handle_start },
	{ VERIFY_LOAD, 1u << STATE_NEW, FRAME_HEADER_SIZE + 9, 1, 1, handle_load },
	{ VERIFY_JUDGE, 1u << STATE_READY, FRAME_MESSAGE_MAX, 0, 1, handle_judge },
};

int serve(struct err *err)
{
	static struct server server;
	struct buf scratch;
	int r = confine_self(CONFINE_VERIFY, NULL, 0, err);

	if (r < 0)
		return r;
	buf_init(&scratch, FRAME_MESSAGE_MAX);
	buf_init(&server.out, FRAME_MESSAGE_MAX);
	buf_init(&server.compiled, VERIFY_COMPILED_MAX + (128 << 10));
	buf_init(&server.text, VERIFY_TEXT_MAX + (128 << 10));
	do
		r = frame_dispatch(VERIFY_FD, &scratch, server.state, rules, ARRAY_SIZE(rules), &server);
	while (r == 1);
	buf_done(&scratch);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "verify", "the box sent what makes no sense") : 0;
}
