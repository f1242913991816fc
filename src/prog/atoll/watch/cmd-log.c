/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "audit/log-options.h"
#include "client/find.h"
#include "client/program.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/watch/log.h"
#include "session/directories.h"

struct log_options {
	bool follow, json, denied, net;
	struct option_list types;
	const char *since, *lines, *head;
};

#define AT(member) offsetof(struct log_options, member)
static const struct option options[] = {
	LOG_OPTIONS(AT),
	{ 0, "net", NULL, "only the network: look-ups and connections (as --type net)", OPTION_FLAG, AT(net) },
};

/* What the session's own record says about its end, unless the user brings a better witness. */
static void add_anchor(struct words *words, const struct log_options *given, const struct session_record *record)
{
	char records[32];

	words_add(words, "--verify");
	words_add_option(words, "--session", record->id);
	if (given->head || !*record->audit_head ||
	    str_format(records, sizeof records, "%llu", (unsigned long long)record->audit_records) < 0)
		return;
	words_add_option(words, "--head", record->audit_head);
	words_add_option(words, "--records", records);
}

static int check_usage(const struct log_options *given, bool verify, struct err *err)
{
	bool has_show = given->follow || given->denied || given->since || given->lines || given->types.count ||
			given->net;

	if (verify && has_show)
		return err_set(err, ERR_USAGE, EINVAL, "log",
			       "verify checks the whole log and takes only --head and --json");
	if (!verify && given->head) {
		err_set(err, ERR_USAGE, EINVAL, "log", "--head is for verify");
		err_hint(err, "atoll log verify [ID] --head HASH");
		return -EINVAL;
	}
	return 0;
}

static int find_log(const char *name, struct session_record *ret_record, char log[PATH_MAX], struct err *err)
{
	char state[PATH_MAX];
	int r = session_state_dir(state, sizeof state, false, err);

	if (r == 0)
		r = find_session(state, name, ret_record, err);
	if (r < 0)
		return r;
	r = session_path(state, ret_record->id, "audit.jsonl", log, PATH_MAX);
	return r < 0 ? err_set(err, ERR_STATE, -r, "log", "the path of the log is too long") : 0;
}

int log_show_type(const char *session, const char *type, bool json, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_words struct words words = { 0 };
	char log[PATH_MAX];
	int r = find_log(session, &record, log, err);

	if (r < 0)
		return r;
	words_add(&words, "atoll-log");
	words_add_option(&words, "--type", type);
	words_add_flag(&words, json, "--json");
	words_add(&words, log);
	return program_become("log", &words, err);
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_words struct words words = { 0 };
	struct log_options given = { 0 };
	char log[PATH_MAX];
	bool verify;
	int rest, r = cmd_parse(&cmd_log, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	verify = rest < argc && str_equal(argv[rest], "verify");
	rest += verify;
	if (argc - rest > 1) {
		err_set(err, ERR_USAGE, EINVAL, "log", "one session at a time");
		err_hint(err, "atoll log [verify] [ID]; `atoll ps -a` lists them");
		return -EINVAL;
	}
	r = check_usage(&given, verify, err);
	if (r == 0)
		r = find_log(argv[rest], &record, log, err);
	if (r < 0)
		return r;
	words_add(&words, "atoll-log");
	if (verify)
		add_anchor(&words, &given, &record);
	words_add_option(&words, "--type", given.net ? "net" : NULL);
	given.net = false;
	words_add_options(&words, options, ARRAY_SIZE(options), &given);
	words_add(&words, log);
	return program_become("log", &words, err);
}

const struct cmd cmd_log = {
	"log", "[ID] [-f] [--json] | verify [ID]", "show or verify the action log of a session",
	CMD_OPTIONS(options), .run = run_verb,
};
