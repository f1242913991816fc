/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one entrance of verification: text or a command goes in, findings come out. It parses hostile bytes, so it runs
 * in atoll-verify alone, which confines itself first. It judges what is written, not what will happen: a guard rail.
 */

#include "base/err.h"
#include "verify/model/finding.h"
#include "verify/model/language.h"
#include "verify/rules/rule.h"

enum {
	VERIFY_TEXT_MAX = 10 << 20,
	VERIFY_ARGUMENTS_MAX = 4096,
	VERIFY_TIME_MS = 2000,         /* for one judgement, all languages and nested texts together */
};

struct verify;
struct judgement;

struct verify_input {
	enum verify_language language;
	const char *name;             /* a file's name, for guessing; may be NULL */
	const void *bytes;            /* the text, or */
	size_t size;
	const char *const *arguments; /* a command that is words already (NULL-terminated); then bytes is NULL */
};

struct verify_result {
	struct judgement *judgement;  /* holds everything below; until verify_result_done() */
	enum verify_language language;
	struct finding findings[FINDINGS_MAX]; /* by severity, worst first, then by place */
	size_t count;
	const char *text;             /* what the spans are of: the text, or the arguments joined and quoted */
	size_t text_size;
	const struct operations *operations; /* for tests and --operations */
	uint64_t time_us, computed_us; /* passed; of them computed */
};

/* Takes the rules over (they are freed with it). NULL when out of memory. */
struct verify *verify_new(struct rules *rules) MUST_USE;
void verify_free(struct verify *verify);

/*
 * 0 with a result, which may have doubts as findings; negative with *err only where nothing could be judged
 * (out of memory, a text beyond VERIFY_TEXT_MAX is not: it is cut, with a doubt).
 */
int verify_judge(struct verify *verify, const struct verify_input *input, struct verify_result *ret_result,
		 struct err *err) MUST_USE;
void verify_result_done(struct verify_result *result);

/*
 * The script that a judged command has its interpreter read, as it is named; NULL: none, or its name is not known.
 * *ret_language: what the interpreter takes it for. Borrowed from the result.
 */
const char *verify_script_of(const struct verify_result *result, enum verify_language *ret_language);
