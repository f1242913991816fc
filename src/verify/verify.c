/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/verify.h"

#include <string.h>

#include "base/str.h"
#include "os/clock.h"
#include "verify/command/command.h"
#include "verify/model/words.h"
#include "verify/rules/compiled.h"
#include "verify/walkers.h"

struct verify {
	struct rules *rules;
};

static const struct {
	const char *id, *reason, *instead;
	enum severity severity;
} doubts[DOUBT_COUNT] = {
	[DOUBT_SYNTAX] = { "unknown.syntax", "the grammar does not understand this place, so what it does is not known",
			   "write it plainly", SEVERITY_LOW },
	[DOUBT_ENCODING] = { "unknown.encoding",
		"the text has NUL bytes or is no UTF-8, and programs read that differently",
			     "save it as UTF-8", SEVERITY_MEDIUM },
	[DOUBT_DEPTH] = { "unknown.depth", "this is nested deeper than is followed", "split it", SEVERITY_MEDIUM },
	[DOUBT_SIZE] = { "unknown.size", "there is more here than is looked at", "split it", SEVERITY_MEDIUM },
	[DOUBT_TIME] = { "unknown.time", "this took too long to judge", "split it", SEVERITY_MEDIUM },
	[DOUBT_MEMORY] = { "unknown.memory", "this took too much memory to judge", "split it", SEVERITY_MEDIUM },
	[DOUBT_LANGUAGE] = { "unknown.language", "this is code of a language that is not read",
			     "use shell, Python or JavaScript where it shall be judged", SEVERITY_LOW },
};

struct verify *verify_new(struct rules *rules)
{
	struct verify *verify = calloc(1, sizeof *verify);

	if (verify)
		verify->rules = rules;
	return verify;
}

void verify_free(struct verify *verify)
{
	if (!verify)
		return;
	rules_free(verify->rules);
	free(verify);
}

/*
 * What the shell itself makes of a file: NUL bytes are dropped, ends of lines of another system are none of the text.
 * Everything is judged and shown in this form.
 */
static char *clean_text(struct judgement *judgement, const struct verify_input *input, size_t *ret_size)
{
	size_t given = input->size < VERIFY_TEXT_MAX ? input->size : VERIFY_TEXT_MAX, size = 0;
	const char *bytes = input->bytes;
	char *text = arena_alloc(&judgement->arena, given + 1);

	if (!text)
		return NULL;
	if (input->size > given)
		operations_doubt(&judgement->operations, DOUBT_SIZE, (struct span){ (uint32_t)given, (uint32_t)given });
	for (size_t i = 0; i < given; i++) {
		if (!bytes[i])
			operations_doubt(&judgement->operations, DOUBT_ENCODING, (struct span){ (uint32_t)size,
				(uint32_t)size });
		else if (bytes[i] != '\r' || i + 1 >= given || bytes[i + 1] != '\n')
			text[size++] = bytes[i];
	}
	*ret_size = size;
	return text;
}

/* Words as a line that a person can read and a shell would take; spans are of this text. */
static char *quote_words(struct judgement *judgement, const struct verify_input *input, struct word *words,
	size_t count,
			 size_t *ret_size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%^~";
	cleanup_buf struct buf line;

	buf_init(&line, VERIFY_TEXT_MAX * 2);
	for (size_t i = 0; i < count; i++) {
		const char *text = input->arguments[i];
		bool is_plain = *text && strspn(text, plain) == strlen(text);
		uint32_t start;

		if (i)
			buf_put_char(&line, ' ');
		start = (uint32_t)line.size;
		if (is_plain) {
			buf_put_text(&line, text);
		} else {
			buf_put_char(&line, '\'');
			for (const char *at = text; *at; at++)
				buf_put_text(&line, *at == '\'' ? "'\\''" : (const char[]){ *at, 0 });
			buf_put_char(&line, '\'');
		}
		words[i] = word_of(&judgement->arena, (struct span){ start, (uint32_t)line.size }, text);
	}
	if (buf_error(&line) < 0)
		return NULL;
	*ret_size = line.size;
	return arena_text_n(&judgement->arena, buf_text(&line), line.size);
}

/* Counted by memchr(3): a text may be long, and have many findings at its end. */
static void place_of(const char *text, uint32_t at, uint32_t *ret_line, uint32_t *ret_column)
{
	const char *line = text, *newline;

	*ret_line = 1;
	while ((newline = memchr(line, '\n', (size_t)(text + at - line)))) {
		line = newline + 1;
		++*ret_line;
	}
	*ret_column = (uint32_t)(text + at - line) + 1;
}

static void place_finding(const char *text, size_t size, struct finding *finding)
{
	uint32_t end = finding->span.end < size ? finding->span.end : (uint32_t)size;
	uint32_t start = finding->span.start < end ? finding->span.start : end;

	place_of(text, start, &finding->line, &finding->column);
	place_of(text, end, &finding->end_line, &finding->end_column);
}

static int compare_findings(const void *a, const void *b)
{
	const struct finding *left = a, *right = b;

	if (left->severity != right->severity)
		return left->severity > right->severity ? -1 : 1;
	if (left->span.start != right->span.start)
		return left->span.start < right->span.start ? -1 : 1;
	return strcmp(left->id, right->id);
}

static void add_doubts(struct judgement *judgement, struct verify_result *result)
{
	const struct operations *operations = &judgement->operations;

	for (size_t i = 0; i < operations->doubt_count && i < DOUBTS_MAX && result->count < FINDINGS_MAX; i++) {
		const struct doubt_note *note = &operations->doubts[i];

		result->findings[result->count++] = (struct finding){
			.id = doubts[note->doubt].id, .class = CLASS_UNKNOWN, .severity = doubts[note->doubt].severity,
			.confidence = CONFIDENCE_CERTAIN, .span = note->span, .reason = doubts[note->doubt].reason,
			.instead = doubts[note->doubt].instead,
		};
	}
}

/* A command that is words already; their spans are of a text that the caller made. */
static void judge_words(struct judgement *judgement, const struct word *words, size_t count, size_t text_size)
{
	struct span span = { 0, (uint32_t)text_size };
	struct walk walk = {
		.judgement = judgement, .operations = &judgement->operations, .language = LANGUAGE_SHELL, .text = "",
		.outer = span, .parent = OPERATION_NONE,
	};

	walk_command(&walk, &(struct command){ .words = words, .count = count, .span = span });
}

static bool judge_input(struct judgement *judgement, const struct verify_input *input, struct verify_result *result)
{
	size_t count = strv_count(input->arguments);
	struct word *words;

	if (!input->arguments) {
		char *text = clean_text(judgement, input, &result->text_size);

		if (!text)
			return false;
		result->text = text;
		result->language = input->language == LANGUAGE_UNKNOWN
					   ? language_guess(input->name, text, result->text_size) : input->language;
		judge_text(judgement, result->language, text, result->text_size);
		return true;
	}
	if (count > VERIFY_ARGUMENTS_MAX) {
		operations_doubt(&judgement->operations, DOUBT_SIZE, (struct span){ 0, 0 });
		count = VERIFY_ARGUMENTS_MAX;
	}
	words = arena_alloc(&judgement->arena, (count + 1) * sizeof *words);
	result->language = LANGUAGE_SHELL;
	result->text = words ? quote_words(judgement, input, words, count, &result->text_size) : NULL;
	if (result->text)
		judge_words(judgement, words, count, result->text_size);
	return result->text != NULL;
}

int verify_judge(struct verify *verify, const struct verify_input *input, struct verify_result *ret_result,
		 struct err *err)
{
	struct judgement *judgement = calloc(1, sizeof *judgement);
	uint64_t begun_ns = clock_monotonic_ns(), computed_ns = clock_computed_ns();
	bool is_cut = false;

	*ret_result = (struct verify_result){ .count = 0 };
	if (!judgement)
		return err_set(err, ERR_INTERNAL, ENOMEM, "verify", "out of memory");
	judgement_init(judgement, verify_walkers, rules_tables(verify->rules), VERIFY_TIME_MS);
	ret_result->judgement = judgement;
	if (!judge_input(judgement, input, ret_result)) {
		verify_result_done(ret_result);
		return err_set(err, ERR_INTERNAL, ENOMEM, "verify", "out of memory");
	}
	operations_link_files(&judgement->operations);
	ret_result->operations = &judgement->operations;
	/* Room for the doubts, which must not be lost among the findings. */
	ret_result->count = rules_match(verify->rules, &judgement->operations, ret_result->findings,
					FINDINGS_MAX - DOUBTS_MAX, &is_cut);
	if (is_cut)
		operations_doubt(&judgement->operations, DOUBT_SIZE, (struct span){ 0, 0 });
	for (size_t i = 0; i < ret_result->count && judgement->is_bundle; i++)
		if (ret_result->findings[i].confidence > CONFIDENCE_LIKELY)
			ret_result->findings[i].confidence = CONFIDENCE_LIKELY;
	add_doubts(judgement, ret_result);
	for (size_t i = 0; i < ret_result->count; i++)
		place_finding(ret_result->text, ret_result->text_size, &ret_result->findings[i]);
	qsort(ret_result->findings, ret_result->count, sizeof *ret_result->findings, compare_findings);
	ret_result->time_us = (clock_monotonic_ns() - begun_ns) / 1000;
	ret_result->computed_us = (clock_computed_ns() - computed_ns) / 1000;
	return 0;
}

void verify_result_done(struct verify_result *result)
{
	if (!result->judgement)
		return;
	judgement_done(result->judgement);
	free(result->judgement);
	*result = (struct verify_result){ .count = 0 };
}

const char *verify_script_of(const struct verify_result *result, enum verify_language *ret_language)
{
	*ret_language = LANGUAGE_UNKNOWN;
	for (uint32_t i = 0; result->operations && i < operations_count(result->operations); i++) {
		const struct operation *operation = operations_get(result->operations, i), *parent;
		const struct word *path = operation_word(operation, 0);

		if (operation->kind != OP_READ || !(operation->traits & TRAIT_STARTS) || !word_is_exact(path) ||
		    operation->context & (CONTEXT_NESTED | CONTEXT_REMOTE | CONTEXT_CONTAINED))
			continue;
		parent = operations_get(result->operations, operation->parent);
		if (parent && operation_word(parent, 0))
			*ret_language = language_of_interpreter(operation_word(parent, 0)->text);
		return path->text;
	}
	return NULL;
}
