/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-verify: what `atoll verify` runs, and what a sandbox's box asks about commands before they run. Reads the
 * rules, which are trusted, opens what is to be judged, gives up everything else, and only then reads a byte of it.
 * Exit status: 0 nothing found at or above --fail-on, 1 something, 2 wrong use, 125 a failure.
 */

#include <fcntl.h>
#include <string.h>

#include "base/names.h"
#include "base/options.h"
#include "base/str.h"
#include "confine/confine.h"
#include "os/fd.h"
#include "prog/atoll-verify/load.h"
#include "prog/atoll-verify/serve.h"
#include "prog/atoll-verify/show.h"
#include "verify/model/operation-text.h"
#include "verify/model/verify-options.h"

enum { EXIT_FOUND = 1, EXIT_USAGE = 2, EXIT_INTERNAL = 125, OUTPUT_MAX = 64 << 20, FILES_MAX = 256 };

struct given {
	bool json, sarif, test_rules, operations, colour, no_own, command, served;
	const char *language, *fail_on;
	struct option_list rules;
};

#define AT(member) offsetof(struct given, member)
static const struct option options[] = {
	VERIFY_OPTIONS(AT),
	{ 0, "colour", NULL, "with colours", OPTION_FLAG, AT(colour) },
	{ 0, "served", NULL, "beside a sandbox (for its box)", OPTION_FLAG, AT(served) },
};

struct job {
	struct given given;
	struct arena arena;       /* of the errors in rules */
	struct diags diags;
	struct verify *verify;
	struct rules *rules;      /* borrowed from it */
	struct buf out;
	enum verify_language language;
	enum severity fail_on;
};

static int check_names(struct job *job, struct err *err)
{
	int language = LANGUAGE_UNKNOWN, severity = SEVERITY_HIGH;

	if (job->given.language) {
		language = language_from_name(job->given.language);
		if (language < 0) {
			err_set(err, ERR_USAGE, EINVAL, "verify", "\"%s\" is not a supported language",
				job->given.language);
			err_hint(err, "shell, python or javascript");
			return -EINVAL;
		}
	}
	if (job->given.fail_on) {
		severity = names_find(severity_names, SEVERITY_COUNT, job->given.fail_on);
		if (severity < 0) {
			err_set(err, ERR_USAGE, EINVAL, "verify", "\"%s\" is not a severity", job->given.fail_on);
			err_hint(err, "low, medium, high or critical");
			return -EINVAL;
		}
	}
	if (job->given.json + job->given.sarif + job->given.operations > 1)
		return err_set(err, ERR_USAGE, EINVAL, "verify", "only one of --json, --sarif and --operations can "
								 "be used");
	job->language = (enum verify_language)language;
	job->fail_on = (enum severity)severity;
	return 0;
}

static int open_input(const char *path, struct err *err)
{
	int fd = str_equal(path, "-") ? fd_duplicate(STDIN_FILENO) : fd_open_at(AT_FDCWD, path, O_RDONLY | O_NOCTTY, 0);

	if (fd < 0)
		err_set(err, ERR_NOT_FOUND, -fd, "verify", "%s cannot be read: %s", path, strerror(-fd));
	return fd;
}

/* As much as is judged and one byte more, so that what is too long is seen to be. */
static int read_input(int fd, struct buf *text, struct err *err)
{
	while (text->size <= VERIFY_TEXT_MAX) {
		void *room = buf_reserve(text, 64 << 10);
		ssize_t n;

		if (!room)
			return err_set(err, ERR_INTERNAL, ENOMEM, "verify", "out of memory");
		n = read(fd, room, 64 << 10);
		text->size -= (64 << 10) - (n > 0 ? (size_t)n : 0);
		if (n < 0)
			return err_set(err, ERR_STATE, errno, "verify", "the text cannot be read: %s", strerror(errno));
		if (n == 0)
			return 0;
	}
	return 0;
}

static int put_result(struct job *job, const char *name, const struct verify_result *result)
{
	struct shown shown = { name, result, job->given.colour };
	bool fails = false;

	if (job->given.json)
		show_json(&shown, &job->out);
	else if (job->given.sarif)
		show_sarif(&shown, &job->out);
	else if (job->given.operations)
		operations_put(result->operations, &job->out);
	else
		show_findings(&shown, &job->out);
	for (size_t i = 0; i < result->count; i++)
		fails |= result->findings[i].severity >= job->fail_on;
	return fails ? EXIT_FOUND : 0;
}

static int judge(struct job *job, const char *name, const struct verify_input *input, struct err *err)
{
	struct verify_result *result = calloc(1, sizeof *result);
	int r;

	if (!result)
		return err_set(err, ERR_INTERNAL, ENOMEM, "verify", "out of memory");
	r = verify_judge(job->verify, input, result, err);
	if (r == 0)
		r = put_result(job, name, result);
	verify_result_done(result);
	free(result);
	return r;
}

static int judge_file(struct job *job, const char *path, int fd, struct err *err)
{
	cleanup_buf struct buf text;
	struct verify_input input = { .language = job->language, .name = path };
	int r;

	buf_init(&text, VERIFY_TEXT_MAX + (128 << 10));
	r = read_input(fd, &text, err);
	if (r < 0)
		return r;
	input.bytes = text.bytes ? text.bytes : (const uint8_t *)"";
	input.size = text.size;
	return judge(job, path, &input, err);
}

/* Whether the rule of an example finds it. */
static bool example_matches(struct job *job, const struct rule_example *example, struct verify_result *result)
{
	struct verify_input input = {
		.language = (enum verify_language)language_from_name(example->language), .bytes = example->text,
		.size = strlen(example->text),
	};
	struct err err = { 0 };
	bool found = false;

	if (verify_judge(job->verify, &input, result, &err) < 0)
		return example->is_harmless;
	for (size_t i = 0; i < result->count; i++)
		found |= str_equal(result->findings[i].id, example->rule);
	verify_result_done(result);
	return found;
}

static int test_rules(struct job *job, struct err *err)
{
	struct verify_result *result = calloc(1, sizeof *result);
	size_t count = rules_example_count(job->rules), wrong = 0;

	if (!result)
		return err_set(err, ERR_INTERNAL, ENOMEM, "verify", "out of memory");
	for (size_t i = 0; i < count; i++) {
		struct rule_example example = rules_example(job->rules, i);

		if (example_matches(job, &example, result) != example.is_harmless)
			continue;
		wrong++;
		buf_printf(&job->out, "%s:%u:%u: %s %s: ", example.place.file, example.place.line, example.place.column,
			   example.rule, example.is_harmless ? "finds a harmless example" :
				"does not find its example, or another rule says worse of it");
		buf_put_escaped(&job->out, example.text, strlen(example.text), 200);
		buf_put_char(&job->out, '\n');
	}
	free(result);
	buf_printf(&job->out, "%zu rules, %zu examples, %zu wrong\n", rules_count(job->rules), count, wrong);
	return wrong ? EXIT_FOUND : 0;
}

/* `--command -- 'rm -rf ~'`: nothing would be found in a program of that name. */
static bool is_quoted_whole(char **words, int count)
{
	return count == 1 && strpbrk(words[0], " \t\n") && access(words[0], X_OK) != 0;
}

static int check_words(const struct job *job, char **words, int count, struct err *err)
{
	const char *wrong = NULL;

	if (job->given.test_rules)
		wrong = count ? "--test-rules takes no file" : NULL;
	else if (job->given.command)
		wrong = count ? NULL : "--command needs a command";
	else if (!count)
		wrong = "name a file, or - for what comes in";
	else if (count > 1 && job->given.sarif)
		wrong = "--sarif takes one file";
	else if (count > FILES_MAX)
		wrong = "these are more files than are judged at a time";
	if (!wrong && job->given.command && is_quoted_whole(words, count)) {
		err_set(err, ERR_USAGE, EINVAL, "verify", "the whole command is in quotes, so it is one word: the "
							  "name of a program");
		err_hint(err, "leave out the quotes, or: atoll verify --command -- sh -c '…'");
		return -EINVAL;
	}
	if (!wrong)
		return 0;
	err_set(err, ERR_USAGE, EINVAL, "verify", "%s", wrong);
	err_hint(err, "atoll verify FILE…, atoll verify --command -- CMD…, atoll verify --test-rules");
	return -EINVAL;
}

/* What was opened before we were confined, one after the other. The status is the worst. */
static int judge_files(struct job *job, char **words, const int *fds, int count, struct err *err)
{
	int worst = 0;

	for (int i = 0; i < count; i++) {
		int r = judge_file(job, words[i], fds[i], err);

		if (r < 0)
			return r;
		worst = r > worst ? r : worst;
	}
	return worst;
}

static int run(struct job *job, char **words, int count, struct err *err)
{
	const char *files[OPTION_LIST_MAX + 1] = { NULL };
	int fds[FILES_MAX], r = check_names(job, err);

	if (r == 0)
		r = check_words(job, words, count, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < job->given.rules.count; i++)
		files[i] = job->given.rules.values[i];
	job->rules = load_rules(files, !job->given.no_own, &job->diags, err);
	if (!job->rules)
		return -EINVAL;
	job->verify = verify_new(job->rules);
	if (!job->verify)
		return err_set(err, ERR_INTERNAL, ENOMEM, "verify", "out of memory");
	for (int i = 0; !job->given.test_rules && !job->given.command && i < count; i++) {
		fds[i] = open_input(words[i], err);
		if (fds[i] < 0)
			return fds[i];
	}
	r = confine_self(CONFINE_VERIFY, NULL, 0, err);
	if (r < 0)
		return r;
	if (job->given.test_rules)
		return test_rules(job, err);
	if (job->given.command)
		return judge(job, "command", &(struct verify_input){ .arguments = (const char *const *)words }, err);
	return judge_files(job, words, fds, count, err);
}

static int usage(void)
{
	static const char text[] = "usage: atoll-verify [OPTION…] FILE|-…\n"
				   "       atoll-verify --command [OPTION…] -- CMD…\n"
				   "       atoll-verify --test-rules [--rules FILE]\noptions:\n";
	int r = fd_write_full(STDOUT_FILENO, text, sizeof text - 1);

	if (r == 0)
		r = options_print(options, ARRAY_SIZE(options), STDOUT_FILENO);
	return r < 0 ? EXIT_INTERNAL : 0;
}

static int print_error(struct job *job, const struct err *err)
{
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, 1 << 20);
	diags_put(&job->diags, &out);
	buf_printf(&out, "atoll: verify: %s", err->message);
	if (err->hint[0])
		buf_printf(&out, "; %s", err->hint);
	buf_put_char(&out, '\n');
	r = fd_write_full(STDERR_FILENO, out.bytes, out.size);
	return r == 0 && err->code == ERR_USAGE ? EXIT_USAGE : EXIT_INTERNAL;
}

int main(int argc, char **argv)
{
	static struct job job;
	struct err err = { 0 };
	int rest, r;

	if (fd_secure_standard() < 0)
		return EXIT_INTERNAL;
	job.diags.arena = &job.arena;
	buf_init(&job.out, OUTPUT_MAX);
	r = options_parse(options, ARRAY_SIZE(options), &job.given, argc, argv, true, &rest, &err);
	if (r == 1)
		return usage();
	if (r == 0)
		r = job.given.served ? serve(&err) : run(&job, argv + rest, argc - rest, &err);
	if (r >= 0 && (buf_error(&job.out) < 0 || fd_write_full(STDOUT_FILENO, job.out.bytes, job.out.size) < 0))
		r = err_set(&err, ERR_STATE, EIO, "verify", "the result cannot be written");
	return r < 0 ? print_error(&job, &err) : r;
}
