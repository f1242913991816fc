/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll/run/attached.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/commands.h"
#include "prog/atoll/verb/library.h"

/* `atoll attach`: back to a command that lasts, wherever it was started: atoll exec --keep, libatoll, a service. */

struct attach_options {
	const char *command, *keys;
	bool no_stdin, no_signals;
};

static const struct option options[] = {
	{ 'c', "command", "NUMBER", "this command, by its number or its tag; the newest that lasts", OPTION_TEXT,
	  offsetof(struct attach_options, command) },
	{ 0, "no-stdin", NULL, "pass no input on", OPTION_FLAG, offsetof(struct attach_options, no_stdin) },
	{ 0, "no-signals", NULL, "pass no signal on: Ctrl-C leaves the command", OPTION_FLAG,
	  offsetof(struct attach_options, no_signals) },
	{ 0, "detach-keys", "KEYS", ATTACHED_KEYS_TEXT, OPTION_TEXT, offsetof(struct attach_options, keys) },
};

/* Who is looked for, and the one that was found. */
struct search {
	const char *wanted;      /* NULL: the newest that lasts */
	uint64_t number;         /* that wanted is; 0: it is a tag */
	uint64_t found;          /* 0: none */
	char name[PATH_MAX];     /* of its program */
};

static bool is_meant(const struct search *search, const atoll_record *row)
{
	const char *tag = library_text(row, "tag");

	if (!search->wanted)
		return library_number(row, "lasts") && !library_text(row, "ended");
	if (search->number)
		return library_number(row, "number") == search->number;
	return tag && str_equal(tag, search->wanted);
}

static int look_at(void *context, atoll_record *row)
{
	struct search *search = context;
	const char *const *argv = NULL;

	if (!is_meant(search, row))
		return 0;
	search->found = library_number(row, "number");
	if (atoll_get_strings(row, "argv", &argv) && argv[0])
		(void)!str_copy(search->name, sizeof search->name, argv[0]);
	return 0;
}

static int find_command(atoll_sandbox *sandbox, const char *wanted, struct search *search, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];
	int r;

	*search = (struct search){ .wanted = wanted };
	if (wanted && num_parse_u64(wanted, &search->number) < 0)
		search->number = 0;
	r = commands_visit(sandbox, look_at, search, err);
	if (r < 0 || search->found)
		return r;
	if (wanted)
		err_set(err, ERR_STATE, ESRCH, "attach", "sandbox %s has no command %s", atoll_id(sandbox),
			err_quote(shown, wanted));
	else
		err_set(err, ERR_STATE, ESRCH, "attach", "no command of sandbox %s lasts", atoll_id(sandbox));
	err_hint(err, wanted ? "atoll ps --commands %s lists them" : "start one with: atoll exec --keep %s -- CMD",
		 atoll_id(sandbox));
	return -ESRCH;
}

/* Of a command that ended meanwhile, or before, no event EXIT comes. */
static int note_end(void *context, atoll_record *row)
{
	struct attached_request *request = context;

	if (library_number(row, "number") != request->command || !library_text(row, "ended"))
		return 0;
	request->has_ended = true;
	request->status = (int)library_number(row, "status");
	return 0;
}

static int join(atoll_sandbox *sandbox, const struct attach_options *given, const struct search *found,
		struct err *err)
{
	cleanup_record atoll_record *how = atoll_record_new(ATOLL_ATTACH), *streams = NULL;
	struct attached_request request = {
		.sandbox = sandbox, .command = found->found, .name = found->name,
		.has_no_input = given->no_stdin, .keeps_signals = given->no_signals,
	};
	struct atoll_error error = LIBRARY_ERROR;
	int r = attached_keys(given->keys, &request.keys, err);

	if (r < 0)
		return r;
	r = atoll_set_u64(how, "output_only", given->no_stdin, &error);
	if (r == 0)
		r = atoll_attach(sandbox, found->found, how, NULL, &streams, &error);
	if (r < 0) {
		r = library_fail(&error, err);
		/* It is no program that was not found. */
		err->code = ERR_STATE;
		return r;
	}
	request.streams = streams;
	r = commands_visit(sandbox, note_end, &request, err);
	return r < 0 ? r : attached_follow(&request, err);
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_context atoll_context *context = NULL;
	cleanup_sandbox atoll_sandbox *sandbox = NULL;
	struct attach_options given = { 0 };
	struct search search;
	int rest, r = cmd_parse(&cmd_attach, &given, argc, argv, &rest, err);

	if (r == 0 && argc - rest > 1)
		r = err_set(err, ERR_USAGE, EINVAL, "attach", "one sandbox at a time; a command is named with -c");
	if (r == 0)
		r = fd_secure_standard();
	if (r == 0)
		r = library_context_of_all(LIBRARY_EVENT(EXIT) | LIBRARY_EVENT(END), &context, err);
	if (r == 0)
		r = library_find(context, rest < argc ? argv[rest] : NULL, &sandbox, err);
	if (r == 0)
		r = find_command(sandbox, given.command, &search, err);
	return r < 0 || r == CMD_HELP ? r : join(sandbox, &given, &search, err);
}

const struct cmd cmd_attach = {
	"attach", "[-c NUMBER] [ID]", "come back to a command that goes on in a sandbox",
	CMD_OPTIONS(options), .run = run_verb,
};
