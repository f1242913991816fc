/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/scalars.h"

#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "policy/limit-text.h"
#include "policy/snapshot-format.h"

/* For hosts and programs that no rule is about. */
static const char *const default_names[VERDICT_COUNT] = {
	[VERDICT_DENY] = "deny", [VERDICT_ASK] = "ask", [VERDICT_ALLOW] = "allow",
};

/* What programs may do, in comparisons. */
static const char *const permission_names[] = { "deny", "allow" };

#define IN(field) .offset = offsetof(struct policy, field), .size = sizeof(((struct policy *)0)->field)
#define STORED(field) IN(field), .stored = offsetof(struct snapshot_scalars, field)
#define STORED_AS(field, other) IN(field), .stored = offsetof(struct snapshot_scalars, other)
#define CHOICE(table) .unit = SCALAR_CHOICE, .names = table, .name_count = ARRAY_SIZE(table)
#define LESS(reason) .tighter = SCALAR_TIGHTER_LESS, .why = reason
#define MORE .tighter = SCALAR_TIGHTER_MORE, .why = "more is asked for there"

#define RESOURCE(kind, its_section, its_name, its_unit, said)                                                          \
	[SCALAR_RESOURCES + (kind)] = { its_section, its_name, its_unit, LESS("the limit is smaller there"),           \
		IN(limits[kind].value), .unsaid = NUM_UNLIMITED, .dimension = "limit", .subject = its_name,            \
		.meaning = said }

/* How much is looked at: less of it is no permission, but lets happen more unseen. */
#define WATCHED(its_section, its_name, field, table, without)                                                          \
	{ its_section, its_name, CHOICE(table), MORE, STORED(field), .unsaid = without, .dimension = "watching" }

#define LEVEL(its_name, field, reason)                                                                                 \
	{ "trust", its_name, CHOICE(trust_level_names), LESS(reason), STORED(trust.field) }

const struct scalar_row scalar_rows[SCALAR_ROW_COUNT] = {
	[SCALAR_NETWORK_DEFAULT] = { "network", "default", CHOICE(default_names), LESS("the default is stricter there"),
		STORED(network.default_verdict), .unsaid = VERDICT_DENY },
	[SCALAR_NETWORK_HOST] = { "network", "host", SCALAR_SWITCH },
	[SCALAR_EXEC_DEFAULT] = { "exec", "default", CHOICE(default_names), LESS("the default is stricter there"),
		STORED(exec.default_verdict), .unsaid = VERDICT_ALLOW,
		.subject = "programs that no rule is about" },
	[SCALAR_NEW_BINARIES] = { "exec", "new_binaries", SCALAR_SWITCH, LESS("new programs may not be executed there"),
		STORED(exec.new_binaries), .names = permission_names,
		.subject = "programs made inside the sandbox" },
	[SCALAR_NAMESPACES] = { "exec", "namespaces", CHOICE(exec_namespaces_names),
		LESS("programs may make fewer there"), STORED(exec.namespaces), .subject = "programs' own namespaces" },

	RESOURCE(RESOURCE_MEMORY, "resources", "memory", SCALAR_BYTES, "memory of everything together"),
	RESOURCE(RESOURCE_CPUS, "resources", "cpus", SCALAR_CPUS, "CPUs"),
	RESOURCE(RESOURCE_PROCESSES, "resources", "processes", SCALAR_AMOUNT, "processes and threads"),
	RESOURCE(RESOURCE_DISK, "resources", "disk", SCALAR_BYTES, "private space"),
	RESOURCE(RESOURCE_INODES, "resources", "inodes", SCALAR_AMOUNT, "files in private space"),
	RESOURCE(RESOURCE_OPEN_FILES, "resources", "open_files", SCALAR_AMOUNT, "open files of one process"),
	RESOURCE(RESOURCE_OUTPUT, "resources", "output", SCALAR_BYTES, "output"),
	RESOURCE(RESOURCE_FILE_SIZE, "resources", "file_size", SCALAR_BYTES, "size of one file"),
	RESOURCE(RESOURCE_WALL_MS, "time", "wall", SCALAR_MS, "time from start to end"),
	RESOURCE(RESOURCE_CPU_MS, "time", "cpu", SCALAR_MS, "CPU time"),
	RESOURCE(RESOURCE_IDLE_MS, "time", "idle", SCALAR_MS, "time without any activity"),
	RESOURCE(RESOURCE_COMMAND_MS, "time", "command", SCALAR_MS, "time of one command"),

	[SCALAR_DATA_SECRETS] = WATCHED("data", "secrets", data.secrets, data_action_names, DATA_OFF),
	[SCALAR_DATA_PII] = WATCHED("data", "pii", data.pii, data_action_names, DATA_OFF),
	[SCALAR_DATA_INJECTION] = WATCHED("data", "injection", data.injection, data_action_names, DATA_OFF),
	[SCALAR_DATA_OUTGOING] = WATCHED("data", "outgoing", data.outgoing, data_action_names, DATA_OFF),
	[SCALAR_AUDIT_FILES] = WATCHED("audit", "files", audit.files, audit_depth_names, AUDIT_OFF),
	[SCALAR_AUDIT_EXEC] = WATCHED("audit", "exec", audit.exec, audit_depth_names, AUDIT_ALL),
	[SCALAR_AUDIT_NETWORK] = WATCHED("audit", "network", audit.network, audit_depth_names, AUDIT_ALL),
	[SCALAR_STAGE_AUTO] = WATCHED("stage", "auto", stage.snapshots, stage_auto_names, STAGE_AUTO_OFF),
	[SCALAR_STAGE_BACKEND] = { "stage", "backend", CHOICE(stage_backend_names),
		LESS("staged trees are made by the kernel alone there"), STORED(stage.backend),
		.unsaid = STAGE_BY_OVERLAY },

	/* Somebody waits for the whole of it: there is no "unlimited". */
	[SCALAR_ASK_TIMEOUT] = { "ask", "timeout", SCALAR_MS, LESS("the limit is smaller there"),
		STORED_AS(ask.timeout_ms, ask_timeout_ms), .unsaid = ASK_TIMEOUT_MS, .min = 1,
		.max = ASK_TIMEOUT_MAX_MS, .expected = "a time with its unit, 24h at most", .json = "timeout_ms" },
	[SCALAR_ASK_BELL] = { "ask", "bell", SCALAR_SWITCH, LESS("the bell is silent there"),
		STORED(ask.bell), .unsaid = true },
	[SCALAR_ASK_PROMPT] = { "ask", "prompt", SCALAR_SWITCH, LESS("nobody is asked on the terminal there"),
		STORED(ask.prompt), .unsaid = true },
	[SCALAR_ASK_REVIEW] = { "ask", "review", SCALAR_SWITCH, LESS("nobody is asked at the end of a run there"),
		STORED(ask.review), .unsaid = true },
	[SCALAR_ASK_DESKTOP] = { "ask", "desktop", SCALAR_SWITCH, LESS("nobody is asked on the desktop there"),
		STORED(ask.desktop) },
	/* One that is there can let happen more. Whom an answer is believed from: no change of it is a narrowing. */
	[SCALAR_ASK_WEBHOOK] = { "ask", "webhook", SCALAR_TEXT, SCALAR_TIGHTER_LESS, STORED(ask.webhook) },
	[SCALAR_ASK_WEBHOOK_KEY] = { "ask", "webhook.key", SCALAR_TEXT, SCALAR_TIGHTER_NONE,
		STORED(ask.webhook_key), .json = "webhook_key" },
	[SCALAR_ASK_WEBHOOK_KEY_FILE] = { "ask", "webhook.key_file", SCALAR_TEXT, SCALAR_TIGHTER_NONE,
		STORED(ask.webhook_key_file), .json = "webhook_key_file" },
	[SCALAR_ASK_WEBHOOK_ANSWERS] = { "ask", "webhook.may_answer", SCALAR_SWITCH, SCALAR_TIGHTER_LESS,
		STORED(ask.webhook_answers), .json = "webhook_may_answer" },

	[SCALAR_MONITOR_BASELINE] = { "monitor", "baseline", SCALAR_SWITCH, MORE,
		STORED(monitor.baseline), .dimension = "watching" },
	[SCALAR_MONITOR_BUDGET] = { "monitor", "budget", SCALAR_ONE_IN, LESS("the limit is smaller there"),
		STORED(monitor.sessions), .unsaid = MONITOR_SESSIONS, .min = MONITOR_SESSIONS_MIN,
		.max = MONITOR_SESSIONS_MAX, .json = "sessions",
		.expected = "one false alarm in so many sessions, such as 1/100 (1/10 to 1/10000)" },
	[SCALAR_MONITOR_LEARN] = { "monitor", "learn", SCALAR_NUMBER, LESS("the limit is smaller there"),
		STORED(monitor.learn), .unsaid = MONITOR_LEARN, .min = MONITOR_LEARN_MIN,
		.max = MONITOR_LEARN_MAX, .expected = "a number of sessions, 5 to 64" },
	[SCALAR_MONITOR_UNUSUAL] = { "monitor", "unusual", CHOICE(monitor_reaction_names), MORE,
		STORED(monitor.unusual), .unsaid = MONITOR_NOTE, .dimension = "watching" },
	[SCALAR_MONITOR_CANARY] = { "monitor", "canary", CHOICE(monitor_reaction_names), MORE,
		STORED(monitor.canary), .unsaid = MONITOR_NOTE, .dimension = "watching" },

	[SCALAR_TRUST_AGENT] = { "trust", "agent", SCALAR_TEXT, SCALAR_TIGHTER_MORE,
		STORED(trust.agent) },
	[SCALAR_TRUST_START] = LEVEL("start", start, "an agent that nobody knows starts lower there"),
	[SCALAR_TRUST_CEILING] = LEVEL("ceiling", ceiling, "the ceiling is lower there"),
	[SCALAR_TRUST_FLOOR] = LEVEL("floor", floor, "the floor is lower there"),
	[SCALAR_TRUST_RAISE] = LEVEL("raise", raise, "the run is not raised so far there"),
	[SCALAR_TRUST_ON_FALL] = { "trust", "on_fall", CHOICE(trust_on_fall_names), MORE,
		STORED(trust.on_fall) },
	[SCALAR_TRUST_HALF_LIFE] = { "trust", "half_life", SCALAR_MS, SCALAR_TIGHTER_MORE,
		STORED_AS(trust.half_life_ms, trust_half_life_ms), .min = 1000, .max = TRUST_HALF_LIFE_MAX_MS,
		.expected = "a time with its unit, from 1s to 23d", .why = "it takes longer there",
		.json = "half_life_ms" },
	[SCALAR_TRUST_SESSIONS] = { "trust.probation", "sessions", SCALAR_NUMBER, SCALAR_TIGHTER_NONE,
		STORED(trust.probation_sessions), .min = 1, .max = TRUST_SESSIONS_MAX,
		.expected = "a number of sessions, 1 to 1000" },
	[SCALAR_TRUST_AT] = { "trust.probation", "at", CHOICE(trust_level_names),
		STORED(trust.probation_at) },
};

const char *resource_name(enum resource resource)
{
	return scalar_rows[SCALAR_RESOURCES + resource].name;
}

uint64_t scalar_get(enum scalar_id id, const struct policy *policy)
{
	uint64_t value = 0;

	/* Little-endian (snapshot-format.h). */
	memcpy(&value, (const char *)policy + scalar_rows[id].offset, scalar_rows[id].size);
	return value;
}

void scalar_set(enum scalar_id id, struct policy *policy, uint64_t value)
{
	memcpy((char *)policy + scalar_rows[id].offset, &value, scalar_rows[id].size);
}

static const char *text_of(enum scalar_id id, const struct policy *policy)
{
	return (const char *)(uintptr_t)scalar_get(id, policy);
}

static void put_cpus(uint64_t value, char out[SCALAR_TEXT_SIZE])
{
	uint64_t rest = value % 1000;
	struct buf text;

	buf_init_fixed(&text, out, SCALAR_TEXT_SIZE);
	buf_put_u64_decimal(&text, value / 1000);
	if (rest)
		buf_put_char(&text, '.');
	for (uint64_t digit = 100; rest; rest %= digit, digit /= 10)
		buf_put_char(&text, (char)('0' + rest / digit));
	buf_put_char(&text, 0);
}

const char *scalar_value_to_text(enum scalar_id id, uint64_t value, char out[SCALAR_TEXT_SIZE])
{
	const struct scalar_row *row = &scalar_rows[id];

	switch (row->unit) {
	case SCALAR_SWITCH:
		return value ? "true" : "false";
	case SCALAR_CHOICE:
		return row->names[value];
	case SCALAR_BYTES:
		num_format_size(value, out);
		break;
	case SCALAR_MS:
		num_format_duration(value, out);
		break;
	case SCALAR_CPUS:
		if (value != NUM_UNLIMITED) {
			put_cpus(value, out);
			break;
		}
		__attribute__((fallthrough));
	case SCALAR_AMOUNT:
		num_format_count(value, out);
		break;
	default:
		(void)!str_format(out, SCALAR_TEXT_SIZE, "%s%llu", row->unit == SCALAR_ONE_IN ? "1/" : "",
				  (unsigned long long)value);
	}
	return out;
}

const char *scalar_to_text(enum scalar_id id, const struct policy *policy, char out[SCALAR_TEXT_SIZE])
{
	return scalar_rows[id].unit == SCALAR_TEXT ? text_of(id, policy)
						   : scalar_value_to_text(id, scalar_get(id, policy), out);
}

bool scalars_equal(enum scalar_id first, enum scalar_id last, const struct policy *a, const struct policy *b)
{
	for (enum scalar_id id = first; id <= last; id++)
		if (scalar_rows[id].unit == SCALAR_TEXT ? !str_equal(text_of(id, a), text_of(id, b))
							: scalar_get(id, a) != scalar_get(id, b))
			return false;
	return true;
}

void net_limit_to_text(enum net_limit kind, const struct net_amount *amount, char out[NET_LIMIT_TEXT_SIZE])
{
	char number[32];
	struct buf text;

	if (net_limit_is_bytes[kind])
		num_format_size(amount->amount ? amount->amount : NUM_UNLIMITED, number);
	else
		num_format_count(amount->amount ? amount->amount : NUM_UNLIMITED, number);
	buf_init_fixed(&text, out, NET_LIMIT_TEXT_SIZE);
	buf_put_text(&text, number);
	if (amount->amount && net_limit_has_period[kind])
		buf_put_text(&text, amount->period_ms == 1000 ? "/s" : amount->period_ms == 60000 ? "/min" : "/h");
	(void)buf_text(&text);
}

void net_limit_key(const char *rule, enum net_limit kind, char out[NET_LIMIT_KEY_SIZE])
{
	if (kind >= NET_LIMIT_COUNT || str_format(out, NET_LIMIT_KEY_SIZE, "%s.limits.%s", rule ? rule : "network",
						  net_limit_names[kind]) < 0)
		memcpy(out, "network.limits", sizeof "network.limits");
}

void rate_to_text(const struct net_amount *rate, char out[NET_LIMIT_TEXT_SIZE])
{
	net_limit_to_text(NET_LIMIT_REQUESTS, rate, out);
}

void cooldown_to_text(const struct cooldown_rule *rule, char out[COOLDOWN_TEXT_SIZE])
{
	char within[32], pause[32];

	num_format_duration(rule->within_ms, within);
	num_format_duration(rule->pause_ms, pause);
	if (!rule->denials || str_format(out, COOLDOWN_TEXT_SIZE, "%llu in %s: %s",
					 (unsigned long long)rule->denials, within, pause) < 0)
		memcpy(out, "none", sizeof "none");
}
