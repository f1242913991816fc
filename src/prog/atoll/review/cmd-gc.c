/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"
#include "base/str.h"
#include "client/program.h"
#include "client/staged.h"
#include "prog/atoll/verb/cmd.h"
#include "session/directories.h"

/* `atoll gc`: removes old sessions and layers that nothing names. atoll-stage does it. */

struct gc_options {
	const char *older_than, *keep, *max_size;
	bool unreviewed, dry_run, json;
};

static const struct option options[] = {
	{ 0, "older-than", "AGE", "sessions that ended this long ago (default: 30d)", OPTION_TEXT,
	  offsetof(struct gc_options, older_than) },
	{ 0, "keep", "N", "all but the newest N", OPTION_TEXT, offsetof(struct gc_options, keep) },
	{ 0, "max-size", "SIZE", "the oldest, until all of them take no more than this", OPTION_TEXT,
	  offsetof(struct gc_options, max_size) },
	{ 0, "unreviewed", NULL, "also those with staged changes that nobody has applied or dropped", OPTION_FLAG,
	  offsetof(struct gc_options, unreviewed) },
	{ 'n', "dry-run", NULL, "only say what would go", OPTION_FLAG, offsetof(struct gc_options, dry_run) },
	{ 0, "json", NULL, "print one JSON object", OPTION_FLAG, offsetof(struct gc_options, json) },
};

static int fail_value(const char *option, const char *value, const char *form, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	err_set(err, ERR_USAGE, EINVAL, "gc", "--%s %s cannot be read", option, err_quote(shown, value));
	err_hint(err, "for example: %s", form);
	return -EINVAL;
}

static int check_values(const struct gc_options *given, struct err *err)
{
	uint64_t value;

	if (given->older_than && num_parse_duration(given->older_than, &value) < 0)
		return fail_value("older-than", given->older_than, "30d, 12h or 0s", err);
	if (given->keep && num_parse_u64(given->keep, &value) < 0)
		return fail_value("keep", given->keep, "10", err);
	if (given->max_size && num_parse_size(given->max_size, &value) < 0)
		return fail_value("max-size", given->max_size, "500MiB or 10GiB", err);
	return 0;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	struct gc_options given = { 0 };
	cleanup_words struct words words = { 0 };
	char state[PATH_MAX];
	int rest, r = cmd_parse(&cmd_gc, &given, argc, argv, &rest, err);

	if (r == 0 && rest < argc)
		r = err_set(err, ERR_USAGE, EINVAL, "gc", "gc takes no names; it looks at all of your sessions");
	if (r == 0)
		r = check_values(&given, err);
	if (r == 0)
		r = session_state_dir(state, sizeof state, true, err);
	if (r < 0)
		return r;
	staged_words(&words, "gc", state, NULL);
	words_add_options(&words, options, ARRAY_SIZE(options), &given);
	return program_become("stage", &words, err);
}

const struct cmd cmd_gc = {
	"gc", "[--older-than AGE] [--keep N] [--max-size SIZE] [--dry-run]", "remove old sessions and layers",
	CMD_OPTIONS(options), .run = run_verb,
};
