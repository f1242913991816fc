/* SPDX-License-Identifier: Apache-2.0 */
#include "client/program.h"
#include "prog/atoll/verb/cmd.h"

/* `atoll function`: becomes atoll-function, which speaks HTTP with the service and makes archives. */

struct function_options {
	const char *name, *entry, *runtime, *memory, *timeout, *concurrency, *data;
	struct option_list env, allow;
	bool internet, json;
};

static const struct option options[] = {
#define AT(field) offsetof(struct function_options, field)
	{ 'n', "name", "NAME", "deploy: what it is called", OPTION_TEXT, AT(name) },
	{ 0, "entry", "FILE:FUNCTION", "deploy: what is called", OPTION_TEXT, AT(entry) },
	{ 0, "runtime", "RUNTIME", "deploy: python, javascript or exec", OPTION_TEXT, AT(runtime) },
	{ 0, "memory", "SIZE", "deploy: of one invocation", OPTION_TEXT, AT(memory) },
	{ 0, "timeout", "TIME", "deploy: of one invocation (30s)", OPTION_TEXT, AT(timeout) },
	{ 0, "concurrency", "N", "deploy: as many at once (8)", OPTION_TEXT, AT(concurrency) },
	{ 'e', "env", "NAME=VALUE", "deploy: a variable", OPTION_LIST, AT(env) },
	{ 0, "allow", "HOST", "deploy: a host that it may reach", OPTION_LIST, AT(allow) },
	{ 0, "internet", NULL, "deploy: it may reach what the policy of the key allows", OPTION_FLAG, AT(internet) },
	{ 'd', "data", "JSON", "invoke: the event (standard input)", OPTION_TEXT, AT(data) },
	{ 0, "json", NULL, "what the service says, as JSON", OPTION_FLAG, AT(json) },
#undef AT
};

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_words struct words words = { 0 };
	struct function_options given = { 0 };
	int rest, r = cmd_parse(&cmd_function, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	words_add(&words, "atoll-function");
	words_add_options(&words, options, ARRAY_SIZE(options), &given);
	words_add(&words, "--");
	words_add_all(&words, (const char *const *)argv + rest);
	return program_become("function", &words, err);
}

const struct cmd cmd_function = {
	"function", "deploy PATH | invoke NAME | list | show NAME | logs NAME | remove NAME…",
	"run code for one event at a time, each in a sandbox of its own", CMD_OPTIONS(options), .run = run_verb,
};
