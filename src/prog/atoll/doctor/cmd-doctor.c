/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "client/dirs.h"
#include "os/fd.h"
#include "os/pty.h"
#include "prog/atoll/doctor/doctor.h"
#include "prog/atoll/doctor/self-test.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"

struct doctor_options {
	const char *policy, *trust;
	bool probe, json;
};

static const struct option options[] = {
	{ 0, "probe", NULL, "try to break out of a sandbox, and say what held", OPTION_FLAG,
	  offsetof(struct doctor_options, probe) },
	{ 'p', "policy", "POLICY", "the policy of the sandbox that is built (default: as `atoll run`)",
	  OPTION_TEXT, offsetof(struct doctor_options, policy) },
	{ 't', "trust", "LEVEL", "the trust level of the sandbox that is built", OPTION_TEXT,
	  offsetof(struct doctor_options, trust) },
	{ 0, "json", NULL, "print one JSON object", OPTION_FLAG, offsetof(struct doctor_options, json) },
};

enum { DOCTOR_TEXT_MAX = 1 << 20 };

static void put_finding_json(struct json *json, const struct finding *finding)
{
	json_object_begin(json, NULL);
	json_string(json, "what", finding->what);
	json_string(json, "state", finding_state_names[finding->state]);
	json_string(json, "detail", finding->detail);
	json_string(json, "consequence", *finding->consequence ? finding->consequence : NULL);
	json_string(json, "fix", *finding->fix ? finding->fix : NULL);
	json_object_end(json);
}

static void put_findings_json(struct buf *out, const struct findings *findings, bool is_enforceable)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_string(&json, "atoll", ATOLL_VERSION);
	json_bool(&json, "enforceable", is_enforceable);
	json_array_begin(&json, "checks");
	for (size_t i = 0; i < findings->count; i++)
		put_finding_json(&json, &findings->items[i]);
	json_array_end(&json);
	json_object_end(&json);
	buf_put_char(out, '\n');
}

static void put_indented(struct buf *out, const char *label, const char *text)
{
	if (!*text)
		return;
	buf_printf(out, "%28s%s", "", label);
	buf_put_escaped(out, text, strlen(text), 0);
	buf_put_char(out, '\n');
}

static void put_findings(struct buf *out, const struct findings *findings)
{
	static const char *const colours[FINDING_STATE_COUNT] = { "\033[32m", "", "\033[33m", "\033[1;31m" };
	bool has_colour = pty_has_colour(STDOUT_FILENO, getenv("TERM"), getenv("NO_COLOR"));

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];
		const char *colour = has_colour ? colours[finding->state] : "";

		buf_printf(out, "%-18s%s%-8s%s  ", finding->what, colour, finding_state_names[finding->state],
			   *colour ? "\033[0m" : "");
		buf_put_escaped(out, finding->detail, strlen(finding->detail), 0);
		buf_put_char(out, '\n');
		put_indented(out, "so: ", finding->consequence);
		put_indented(out, "fix: ", finding->fix);
	}
}

/* The whole boundary at once, by the program that builds it: what the single checks only suggest. */
static bool check_boundary(struct findings *findings, const struct doctor_options *given)
{
	struct self_test_request request = { .policy = given->policy, .trust = given->trust };
	char why[256];
	int r = self_test_check(&request, why, sizeof why);
	struct finding *finding;

	if (r == 0) {
		findings_add(findings, FINDING_OK, "boundary", "every wall of %s%s was built",
			     given->policy ? "policy " : "level ",
			     given->policy  ? given->policy
			     : given->trust ? given->trust
					    : "medium");
		return true;
	}
	finding = findings_add(findings, FINDING_MISSING, "boundary", "%s", why);
	snprintf(finding->consequence, sizeof finding->consequence, "`atoll run` refuses");
	return false;
}

static int examine(const struct doctor_options *given, struct err *err)
{
	cleanup_free struct findings *findings = calloc(1, sizeof *findings);
	cleanup_buf struct buf text = { 0 };
	char programs[PATH_MAX];
	bool is_enforceable;
	int r = findings ? dirs_programs(programs, err)
			 : err_set(err, ERR_INTERNAL, ENOMEM, "doctor", "out of memory");

	if (r < 0)
		return r;
	doctor_machine(findings);
	doctor_namespaces(findings, programs);
	doctor_kernel(findings);
	doctor_limits(findings);
	doctor_service(findings);
	doctor_undoable(findings);
	is_enforceable = check_boundary(findings, given);
	buf_init(&text, DOCTOR_TEXT_MAX);
	if (given->json)
		put_findings_json(&text, findings, is_enforceable);
	else
		put_findings(&text, findings);
	r = say_out(&text, err);
	return r < 0 ? r : !is_enforceable;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	struct doctor_options given = { 0 };
	int rest, r = cmd_parse(&cmd_doctor, &given, argc, argv, &rest, err);

	if (r == 0 && rest < argc)
		r = err_set(err, ERR_USAGE, EINVAL, "doctor", "it takes no arguments besides its options");
	if (r < 0)
		return r;
	r = fd_secure_standard();
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "doctor", "/dev/null cannot be opened: %s", strerror(-r));
	if (given.probe) {
		struct self_test_request request = { .policy = given.policy, .trust = given.trust };

		return self_test_probe(&request, given.json, err);
	}
	return examine(&given, err);
}

const struct cmd cmd_doctor = {
	"doctor", "[--probe [-p POLICY] [-t LEVEL]] [--json]",
	"say what this machine can enforce, and how to get the rest",
	CMD_OPTIONS(options), .run = run_verb,
};
