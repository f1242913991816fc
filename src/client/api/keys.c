/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "client/api/record.h"

/* The one list of keys. A key is never used for anything else, and none is taken away. */

#define K(kind) (UINT64_C(1) << ATOLL_##kind)
#define STREAMS (K(SANDBOX) | K(COMMAND))

static const struct key keys[] = {
	/* places */
	{ K(CONTEXT), "home", ATOLL_TYPE_STRING, "the home directory, absolute; none where it is not set" },
	{ K(CONTEXT), "state", ATOLL_TYPE_STRING, "where sessions are, absolute; its last component is atoll" },
	{ K(CONTEXT), "runtime", ATOLL_TYPE_STRING, "where control sockets are: state/run, or ends in atoll" },
	{ K(CONTEXT), "config_home", ATOLL_TYPE_STRING, "where the directory atoll with the user's policies is" },
	{ K(CONTEXT), "programs", ATOLL_TYPE_STRING, "the directory of atoll's programs" },
	{ K(CONTEXT), "timeout_ms", ATOLL_TYPE_U64, "how long a request may block; 30000" },
	{ K(CONTEXT), "log_events", ATOLL_TYPE_U64, "1: every record of a log is an event, too" },
	/* what runs, and under what */
	{ K(POLICY), "policy", ATOLL_TYPE_STRING, "the name of a policy, or the absolute path of its file" },
	{ K(POLICY), "level", ATOLL_TYPE_STRING, "none, low, medium, high or full" },
	{ K(POLICY) | K(SANDBOX) | K(INFO) | K(FILTER), "project", ATOLL_TYPE_STRING,
	  "the project's directory, absolute" },
	{ K(SANDBOX) | K(INFO) | K(FILTER), "name", ATOLL_TYPE_STRING, "another name for the sandbox" },
	{ STREAMS, "argv", ATOLL_TYPE_STRINGS, "the command" },
	{ STREAMS, "cwd", ATOLL_TYPE_STRING, "where it starts, absolute; the project" },
	{ STREAMS, "env", ATOLL_TYPE_STRINGS, "NAME=value, of which the policy passes what it names" },
	{ STREAMS, "env_add", ATOLL_TYPE_STRINGS, "NAME=value, whatever the policy passes" },
	{ STREAMS, "stdin", ATOLL_TYPE_FD, "what the command reads; null" },
	{ STREAMS, "stdout", ATOLL_TYPE_FD, "where it writes; a sandbox: its session's directory, a command: null" },
	{ STREAMS, "stderr", ATOLL_TYPE_FD, "the same for errors" },
	{ STREAMS, "streams", ATOLL_TYPE_STRING, "pipe, capture or pty: streams that are not set; a pty is all three" },
	{ STREAMS, "rows", ATOLL_TYPE_U64, "of the pty; 24" },
	{ STREAMS, "columns", ATOLL_TYPE_U64, "of the pty; 80" },
	{ K(COMMAND), "keep", ATOLL_TYPE_U64, "1: it goes on when the handle is freed" },
	{ K(COMMAND), "timeout_ms", ATOLL_TYPE_U64, "how long it may run; no longer than the policy says" },
	{ K(SANDBOX), "env_exact", ATOLL_TYPE_STRINGS, "the whole environment of the command" },
	{ K(SANDBOX), "umask", ATOLL_TYPE_U64, "of the command; 022" },
	{ K(SANDBOX), "publish", ATOLL_TYPE_STRINGS, "[HOSTPORT:]PORT of the inside" },
	{ K(SANDBOX), "agent", ATOLL_TYPE_STRING, "whose record says how far it is trusted" },
	{ K(SANDBOX), "confidence", ATOLL_TYPE_STRING, "low, medium, high, or 0 to 1" },
	{ K(SANDBOX), "task", ATOLL_TYPE_STRING, "what the command is for" },
	{ K(SANDBOX), "token", ATOLL_TYPE_STRING, "the absolute path of a capability token" },
	{ K(SANDBOX), "report", ATOLL_TYPE_STRING, "the absolute path of a report to write at the end" },
	{ K(SANDBOX), "record", ATOLL_TYPE_STRING, "the absolute path of a file for the HTTP exchanges" },
	{ K(SANDBOX), "replay", ATOLL_TYPE_STRING, "the absolute path of such a file, from which they are answered" },
	{ K(SANDBOX), "deadline_ms", ATOLL_TYPE_U64, "it ends then; no later than the policy says" },
	{ K(SANDBOX), "at_end", ATOLL_TYPE_STRING, "what becomes of staged changes: keep, discard" },
	{ K(SANDBOX), "snapshot", ATOLL_TYPE_STRING, "of a fork: the snapshot that it begins with; the newest state" },
	/* what is asked for */
	{ K(FILTER), "running", ATOLL_TYPE_U64, "1: running ones only" },
	{ K(SNAPSHOT) | K(RESULT), "name", ATOLL_TYPE_STRING, "of the snapshot" },
	{ K(SNAPSHOT), "message", ATOLL_TYPE_STRING, "what it is for" },
	{ K(SNAPSHOT), "taken", ATOLL_TYPE_STRING, "when, RFC 3339" },
	{ K(SNAPSHOT), "layers", ATOLL_TYPE_U64, "how many it stands on" },
	{ K(REVIEW), "paths", ATOLL_TYPE_STRINGS, "these and what is below them, absolute; all" },
	{ K(REVIEW), "exclude", ATOLL_TYPE_STRINGS, "apply: globs of paths to leave" },
	{ K(REVIEW), "allow_flagged", ATOLL_TYPE_STRINGS, "apply: flagged paths to apply all the same" },
	{ K(REVIEW), "conflicts", ATOLL_TYPE_STRING, "apply: ours (the host's), theirs or merge; they are left" },
	{ K(REVIEW), "dry_run", ATOLL_TYPE_U64, "apply, undo: 1: say what would be done" },
	{ K(REVIEW), "apply", ATOLL_TYPE_U64, "undo: the number of the apply; the newest" },
	{ K(LOG), "from", ATOLL_TYPE_U64, "number of the first record; 1" },
	{ K(LOG), "follow", ATOLL_TYPE_U64, "1: wait for more while the sandbox runs" },
	{ K(ANSWER), "allow", ATOLL_TYPE_U64, "1 or 0" },
	{ K(ANSWER), "scope", ATOLL_TYPE_STRING, "once, uses, time or session" },
	{ K(ANSWER), "amount", ATOLL_TYPE_U64, "uses: how many; time: ms" },
	/* events and results */
	{ K(EVENT), "event", ATOLL_TYPE_U64, "ATOLL_EVENT_*" },
	{ K(EVENT), "number", ATOLL_TYPE_U64, "of the event; 0: made by the library" },
	{ K(EVENT) | K(RESULT), "command", ATOLL_TYPE_U64, "the number of a command" },
	{ K(EVENT), "main", ATOLL_TYPE_U64, "1: the sandbox ends with it" },
	{ K(EVENT), "terminal", ATOLL_TYPE_FD, "the master of its pty" },
	{ K(EVENT) | K(RESULT), "stdin", ATOLL_TYPE_FD, "of streams=pipe: to write to" },
	{ K(EVENT) | K(RESULT), "stdout", ATOLL_TYPE_FD, "of streams=pipe: to read from" },
	{ K(EVENT) | K(RESULT), "stderr", ATOLL_TYPE_FD, "of streams=pipe: to read from" },
	{ K(EVENT), "stream", ATOLL_TYPE_U64, "1: stdout, 2: stderr" },
	{ K(EVENT), "bytes", ATOLL_TYPE_BYTES, "from inside: what the command wrote" },
	{ K(EVENT) | K(INFO), "status", ATOLL_TYPE_U64, "exit status as a shell has it" },
	{ K(EVENT), "exit", ATOLL_TYPE_U64, "exit code" },
	{ K(EVENT), "signal", ATOLL_TYPE_U64, "that ended or stopped it" },
	{ K(EVENT), "errno", ATOLL_TYPE_U64, "why it could not be started, or its output or terminal not delivered" },
	{ K(EVENT) | K(INFO), "ended", ATOLL_TYPE_STRING,
	  "exit, signal, time, memory, disk, output, policy, stopped, lost, failed" },
	{ K(EVENT), "user_us", ATOLL_TYPE_U64, "CPU time of the command" },
	{ K(EVENT), "system_us", ATOLL_TYPE_U64, "CPU time in the kernel" },
	{ K(EVENT), "max_rss_bytes", ATOLL_TYPE_U64, "the most memory that it had" },
	{ K(EVENT) | K(QUESTION) | K(GRANT), "kind", ATOLL_TYPE_STRING, "an action: file.read, net.connect, exec, …" },
	{ K(EVENT), "subject", ATOLL_TYPE_BYTES, "from inside: what it was about" },
	{ K(QUESTION) | K(GRANT), "subject", ATOLL_TYPE_BYTES, "from inside: what it is about" },
	{ K(EVENT) | K(QUESTION) | K(GRANT), "rule", ATOLL_TYPE_STRING, "the rule of the policy, or the limit" },
	{ K(EVENT), "reason", ATOLL_TYPE_STRING, "one sentence" },
	{ K(EVENT), "hint", ATOLL_TYPE_STRING, "the way out" },
	{ K(EVENT), "verdict", ATOLL_TYPE_STRING, "deny, ask, stage, simulate, allow" },
	{ K(EVENT), "type", ATOLL_TYPE_STRING, "of the record in the log" },
	{ K(EVENT), "seq", ATOLL_TYPE_U64, "its number there" },
	{ K(EVENT), "record", ATOLL_TYPE_BYTES, "from inside: the record, a JSON object" },
	{ K(EVENT) | K(RESULT), "frozen", ATOLL_TYPE_U64, "1: everything inside stands still" },
	{ K(EVENT), "of", ATOLL_TYPE_U64, "LOST: the type of the events" },
	{ K(EVENT), "count", ATOLL_TYPE_U64, "LOST: how many" },
	{ K(EVENT), "from", ATOLL_TYPE_U64, "LOST: number of the first" },
	{ K(EVENT), "to", ATOLL_TYPE_U64, "LOST: number of the last" },
	{ K(EVENT), "ticket", ATOLL_TYPE_U64, "DONE: of which request" },
	{ K(EVENT), "code", ATOLL_TYPE_U64, "DONE, FAILED, STARTED: 0, or ATOLL_E_* without its sign" },
	{ K(EVENT), "where", ATOLL_TYPE_STRING, "the step that failed" },
	{ K(EVENT), "what", ATOLL_TYPE_STRING, "what failed" },
	{ K(RESULT), "connections", ATOLL_TYPE_U64, "change: those that it ended; sample: those that are open" },
	{ K(RESULT), "grant", ATOLL_TYPE_U64, "the number of the grant; 0: none" },
	{ K(RESULT), "policy", ATOLL_TYPE_STRING, "the name of the one in force" },
	{ K(RESULT), "uptime_ms", ATOLL_TYPE_U64, "how long it lives" },
	{ K(RESULT), "commands", ATOLL_TYPE_U64, "that run" },
	{ K(RESULT), "processes", ATOLL_TYPE_U64, "that there are" },
	{ K(RESULT), "memory_bytes", ATOLL_TYPE_U64, "in use" },
	{ K(RESULT), "memory_peak", ATOLL_TYPE_U64, "the most so far" },
	{ K(RESULT), "cpu_ms", ATOLL_TYPE_U64, "used so far" },
	{ K(RESULT), "output_bytes", ATOLL_TYPE_U64, "written so far" },
	{ K(RESULT), "denials", ATOLL_TYPE_U64, "so far" },
	{ K(RESULT), "alerts", ATOLL_TYPE_U64, "so far" },
	{ K(RESULT), "questions", ATOLL_TYPE_U64, "that wait" },
	{ K(RESULT), "net_in", ATOLL_TYPE_U64, "bytes" },
	{ K(RESULT), "net_out", ATOLL_TYPE_U64, "bytes" },
	{ K(RESULT), "changes", ATOLL_TYPE_U64, "paths that are staged" },
	/* rows */
	{ K(INFO), "id", ATOLL_TYPE_STRING, "12 characters" },
	{ K(INFO), "state", ATOLL_TYPE_STRING, "running, frozen, ended, lost" },
	{ K(INFO), "policy", ATOLL_TYPE_STRING, "its name" },
	{ K(INFO), "level", ATOLL_TYPE_STRING, "none, low, medium, high or full" },
	{ K(INFO), "command", ATOLL_TYPE_STRING, "from inside: its words, escaped, for people" },
	{ K(INFO), "started_ns", ATOLL_TYPE_U64, "since 1970" },
	{ K(INFO), "ended_ns", ATOLL_TYPE_U64, "since 1970" },
	{ K(INFO), "staged", ATOLL_TYPE_U64, "1: it may hold changes" },
	{ K(PROBLEM), "list", ATOLL_TYPE_STRING, "errors, warnings or unenforced" },
	{ K(PROBLEM), "file", ATOLL_TYPE_STRING, "of the policy" },
	{ K(PROBLEM), "line", ATOLL_TYPE_U64, "from 1" },
	{ K(PROBLEM), "column", ATOLL_TYPE_U64, "from 1" },
	{ K(PROBLEM), "message", ATOLL_TYPE_STRING, "what is wrong, with the nearest that is right" },
	{ K(CHANGE), "list", ATOLL_TYPE_STRING, "changes; applied, kept, left; undone" },
	{ K(CHANGE), "path", ATOLL_TYPE_BYTES, "from inside: absolute" },
	{ K(CHANGE), "tree", ATOLL_TYPE_BYTES, "the staged tree that it is in" },
	{ K(CHANGE), "kind", ATOLL_TYPE_STRING, "added, modified, deleted" },
	{ K(CHANGE), "state", ATOLL_TYPE_STRING, "clean, conflict, …" },
	{ K(CHANGE), "reason", ATOLL_TYPE_STRING, "of a flag, or why it was left" },
	{ K(CHANGE), "flagged", ATOLL_TYPE_U64, "1: apply wants it named" },
	{ K(CHANGE), "differs", ATOLL_TYPE_STRINGS, "in what" },
	{ K(QUESTION) | K(GRANT), "number", ATOLL_TYPE_U64, "unique in its session" },
	{ K(QUESTION), "hash", ATOLL_TYPE_BYTES, "of exactly what is asked" },
	{ K(QUESTION), "state", ATOLL_TYPE_STRING, "waits, listed, answered" },
	{ K(QUESTION), "waiting", ATOLL_TYPE_U64, "how many wait" },
	{ K(QUESTION), "times", ATOLL_TYPE_U64, "how often it was asked" },
	{ K(QUESTION), "asked_ns", ATOLL_TYPE_U64, "since 1970" },
	{ K(QUESTION) | K(GRANT), "left_ms", ATOLL_TYPE_U64, "until it is refused, or over" },
	{ K(QUESTION) | K(GRANT), "argv", ATOLL_TYPE_STRINGS, "from inside: of a program" },
	{ K(QUESTION) | K(GRANT), "method", ATOLL_TYPE_STRING, "from inside: of a request" },
	{ K(QUESTION) | K(GRANT), "path", ATOLL_TYPE_STRING, "from inside: of a request" },
	{ K(QUESTION) | K(GRANT), "program", ATOLL_TYPE_STRING, "from inside: who asks" },
	{ K(QUESTION) | K(GRANT), "port", ATOLL_TYPE_U64, "of a connection" },
	{ K(QUESTION), "why", ATOLL_TYPE_STRING, "the rule's reason" },
	{ K(QUESTION), "words", ATOLL_TYPE_STRING, "from inside: the agent's own reason, not to be believed" },
	{ K(GRANT), "refusal", ATOLL_TYPE_U64, "1: it refuses" },
	{ K(GRANT), "scope", ATOLL_TYPE_STRING, "once, uses, time, session or forever" },
	{ K(GRANT), "used", ATOLL_TYPE_U64, "how often" },
	{ K(GRANT), "uses_left", ATOLL_TYPE_U64, "none: no bound" },
	{ K(GRANT), "by", ATOLL_TYPE_STRING, "who gave it" },
	{ K(LINE), "line", ATOLL_TYPE_BYTES, "from inside: a record of the log, a JSON object, without its newline" },
};

const struct key *key_find(uint32_t kind, const char *name)
{
	for (size_t i = 0; kind < 64 && i < ARRAY_SIZE(keys); i++)
		if (keys[i].kinds & UINT64_C(1) << kind && str_equal(keys[i].name, name))
			return &keys[i];
	return NULL;
}

int atoll_keys(uint32_t kind, size_t index, const char **ret_key, uint32_t *ret_type, const char **ret_text)
{
	for (size_t i = 0; kind < 64 && i < ARRAY_SIZE(keys); i++) {
		if (!(keys[i].kinds & UINT64_C(1) << kind) || index--)
			continue;
		if (ret_key)
			*ret_key = keys[i].name;
		if (ret_type)
			*ret_type = keys[i].type;
		if (ret_text)
			*ret_text = keys[i].text;
		return 1;
	}
	return 0;
}
