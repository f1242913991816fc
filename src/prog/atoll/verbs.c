/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "prog/atoll/verb/cmd.h"

/* Sorted by name. */
static const struct cmd verbs[] = {
	{ "alerts", "[ID] [--json]", "show what was alarming in a session, with the evidence", &cmd_alerts_options,
	  cmd_alerts },
	{ "apply", "[ID] [-x GLOB] [--allow-flagged PATH] [--ours|--theirs|--merge] [PATH…]",
	  "bring what a session changed to the host", &cmd_apply_options, cmd_apply },
	{ "approve", "N [--uses N | --for TIME | --session | --forever]", "allow what a sandbox asks for",
	  &cmd_approve_options, cmd_approve },
	{ "ask", "[ID] [--once | --follow] [--json]", "list what sandboxes ask for, as they ask", &cmd_ask_options,
	  cmd_ask },
	{ "baseline", "[show | forget] [--all] [--json]", "show or forget what was learnt of agents in projects",
	  &cmd_baseline_options, cmd_baseline },
	{ "deny", "N", "refuse what a sandbox asks for", &cmd_deny_options, cmd_deny },
	{ "diff", "[ID] [-p] [--json] [--flagged] [PATH…]", "show what a session would change on the host",
	  &cmd_diff_options, cmd_diff },
	{ "discard", "[ID] [PATH…]", "drop what a session has staged", &cmd_discard_options, cmd_discard },
	{ "doctor", "[--probe [-p POLICY] [-t LEVEL]] [--json]",
	  "say what this machine can enforce, and how to get the rest", &cmd_doctor_options, cmd_doctor },
	{ "dry-run", "[ID] [-p POLICY] [-t LEVEL] [--if-clean] -- CMD… | --accept TRIAL",
	  "try a command, show what it would do, then do it for real", &cmd_dry_run_options, cmd_dry_run },
	{ "exec", "[ID] -- CMD…", "run a command in a running sandbox", &cmd_exec_options, cmd_exec },
	{ "fork", "[ID] [SNAPSHOT] [options of run] -- CMD…", "run a command on what a session has staged",
	  &cmd_fork_options, cmd_fork },
	{ "gc", "[--older-than AGE] [--keep N] [--max-size SIZE] [--dry-run]", "remove old sessions and layers",
	  &cmd_gc_options, cmd_gc },
	{ "grants", "[ID] [--json] | revoke G", "list what was allowed and refused, and take it back",
	  &cmd_grants_options, cmd_grants },
	{ "help", "[VERB] [--completion SHELL]", "explain atoll or one of its verbs", &cmd_help_options,
	  cmd_help },
	{ "log", "[ID] [-f] [--json] | verify [ID]", "show or verify the action log of a session",
	  &cmd_log_options, cmd_log },
	{ "policy", "check [POLICY] | show [POLICY] | explain KIND SUBJECT | explain trust [AGENT] | diff A B | "
		    "set [ID] POLICY | test POLICY [ID…] | learn -- CMD…",
	  "check, print, question, compare or change policies", &cmd_policy_options, cmd_policy },
	{ "ps", "[-a] [--json]", "list sandboxes", &cmd_ps_options, cmd_ps },
	{ "restore", "[ID] SNAPSHOT", "go back to a snapshot", &cmd_restore_options, cmd_restore },
	{ "run", "[-p POLICY] [-t LEVEL] [--] CMD…", "run a command in a sandbox", &cmd_run_options,
	  cmd_run },
	{ "secret", "set NAME | list | remove NAME… | rename NAME NEW | passphrase | unlock | lock",
	  "keep keys and tokens, sealed, outside every sandbox", &cmd_secret_options, cmd_secret },
	{ "snapshot", "[ID] [NAME] [-m TEXT] | [ID] --list | [ID] --remove NAME",
	  "name what a session has staged so far", &cmd_snapshot_options, cmd_snapshot },
	{ "stop", "ID… | --all", "stop running sandboxes", &cmd_stop_options, cmd_stop },
	{ "token", "mint --allow KIND=SUBJECT… | narrow | show | verify [FILE] | list | revoke ID | trust KEY | key",
	  "make, narrow and check capability tokens", &cmd_token_options, cmd_token },
	{ "top", "[-d TIME] [-s COLUMN] [-f TEXT] [--once | --json]",
	  "watch sandboxes: what they use, change and are denied", &cmd_top_options, cmd_top },
	{ "trust", "[AGENT] [--raise LEVEL --reason TEXT | --lower LEVEL | --reset] [--json]",
	  "show how far agents are trusted, and why; change it", &cmd_trust_options, cmd_trust },
	{ "undo", "[ID] [--list] [PATH…]", "take an apply back", &cmd_undo_options, cmd_undo },
	{ "verify", "[-l LANGUAGE] [--json | --sarif] FILE|-… | --command -- CMD… | --test-rules",
	  "judge a script or a command without running it", &cmd_verify_options, cmd_verify },
	{ "version", "", "print the version", &cmd_version_options, cmd_version },
};

const struct cmd *const cmd_table = verbs;
const size_t cmd_count = ARRAY_SIZE(verbs);

const struct cmd *cmd_find(const char *name)
{
	for (size_t i = 0; i < cmd_count; i++)
		if (str_equal(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}
