/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The compiled policy as every program reads it: immutable, validated, without pointers to free.
 * Text becomes a snapshot in lang/; this folder only loads snapshots (policy/snapshot/snapshot.h) and
 * decides (policy/decide.h). Nothing here touches the file system.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Order matters: deny is 0, so that zeroed memory denies; a smaller value wins over a larger one. */
enum verdict {
	VERDICT_DENY = 0,
	VERDICT_ASK,
	VERDICT_STAGE,
	VERDICT_SIMULATE,
	VERDICT_ALLOW,
	VERDICT_COUNT,
};

enum trust_level {
	TRUST_NONE,
	TRUST_LOW,
	TRUST_MEDIUM,
	TRUST_HIGH,
	TRUST_FULL,
	TRUST_COUNT,
};

/* What a fall of an agent's level does to the session that it happens in. Each does more than the one before. */
enum trust_on_fall { TRUST_FALL_NOTE, TRUST_FALL_ASK, TRUST_FALL_TIGHTEN, TRUST_FALL_FREEZE, TRUST_FALL_COUNT };

enum {
	TRUST_AGENT_MAX = 64,        /* characters of the name of an agent */
	TRUST_SESSIONS_MAX = 1000,
	TRUST_HALF_LIFE_MS = 86400000, TRUST_HALF_LIFE_MAX_MS = 2000000000,
};

/* `trust:`: whose record counts, and between what its level moves (trust/rules.h). */
struct trust_settings {
	const char *agent;           /* trust_agent_is_valid(); NULL: the policy names none */
	enum trust_level start, ceiling, floor; /* floor <= start <= ceiling */
	enum trust_level raise;      /* of a task: at least this for its run; TRUST_NONE: it raises nobody */
	uint32_t probation_sessions; /* clean ones at probation_at, and the level above is granted; 0: no probation */
	enum trust_level probation_at; /* below the ceiling */
	enum trust_on_fall on_fall;
	uint64_t half_life_ms;       /* in which what was counted against an agent becomes half */
	bool is_given;               /* the policy has the section */
	bool has_level;              /* the policy extends a level, so that a lower one can stand in its place */
};

/* Where a rule was written; carried into decisions, explanations and the audit log. */
struct rule_origin {
	const char *id;      /* "files.mask[3]", "network.default", "builtin.state" … */
	const char *file;    /* path of the policy file, or "" for built-in rules */
	uint32_t line;       /* from 1; 0 for built-in rules */
};

/* What the sandbox may do with a path and all below it; the most specific path decides. */
enum file_class {
	FILE_HIDDEN = 0,  /* not in the sandbox's view at all (the default) */
	FILE_MASK,        /* looks absent or is unreadable, wins over every other class */
	FILE_READ,
	FILE_SCRATCH,     /* private, thrown away */
	FILE_STAGE,       /* copy-on-write */
	FILE_WRITE,       /* straight to the host */
	FILE_CLASS_COUNT,
};

enum {
	FILE_GLOB = 1 << 0,      /* pattern is a glob (**, *, ?, [..]) and not a path */
	FILE_OPTIONAL = 1 << 1,  /* shipped rules: nothing is said when it does not exist */
	FILE_NOEXEC = 1 << 2,    /* no program below may be executed */
	FILE_NOFOLLOW = 1 << 3,  /* plan only: in a tree that the sandbox writes; no link in it may be followed */
	FILE_CONTENTS = 1 << 4,  /* plan only, of a mask in a staged tree: the directory stays and looks empty */
	FILE_GATED = 1 << 5,     /* a mask that no mount expresses: decided at access, in any case of letters */
	FILE_GUARDED = 1 << 6,   /* FILE_WRITE: what files.protect names is asked about before it is written */
	FILE_FLAGS_END = 1 << 7,
};

struct file_rule {
	const char *pattern;     /* absolute, normalised; or an absolute glob */
	enum file_class class;
	uint32_t flags;
	const char *const *except; /* patterns that the rule does not cover, NULL-terminated; NULL: none */
	struct rule_origin origin;
	unsigned ending;         /* of a glob: glob_ending(), or 0 */
};

/* Flags of a path_rule, beside FILE_GLOB. */
enum {
	PATH_GIT = 1 << 8,       /* but for what git keeps there as data (policy/git-data.h) */
	PATH_PACKAGE = 1 << 9,   /* a package.json: at apply only where what it has npm run differs */
	PATH_BUILD = 1 << 10,    /* runs with the sources: not asked about where those are written in place */
	PATH_FILE = 1 << 11,     /* the name of a file: no directory that is called so, and nothing in one */
	PATH_FLAGS_END = 1 << 12,
};

/* A path list without a class: files.ask, files.protect. */
struct path_rule {
	const char *pattern;
	uint32_t flags;          /* FILE_GLOB, PATH_* */
	const char *const *except;
	struct rule_origin origin;
	unsigned ending;         /* glob_ending() of the pattern, also where it is a path; or 0 */
	const char *when;        /* which program runs it, and when; NULL: not said */
};

/* Rules of a snapshot that most programs never look at: they are read when one does. */
struct late_rules {
	const struct path_rule *rules;
	size_t count;
	void (*read)(struct late_rules *rules);  /* fills in the others; NULL: it has */
};

enum {
	NET_METHOD_ANY = 1u << 31, /* http.methods was not given */
};

struct http_rule {
	const char *const *methods;  /* upper case; NULL-terminated; empty: any */
	const char *const *paths;    /* globs; empty: any */
	struct rule_origin origin;
};

/* What a rule of network.simulate has a request told in the server's place. */
struct net_answer {
	uint32_t status;             /* 200 to 599 */
	const char *const *fields;   /* name, value, name, value, NULL; NULL: none */
	const void *body;
	size_t body_size;
	const char *body_file;       /* where the body came from, absolute; NULL: from the policy's text */
};

enum { NET_ANSWER_BODY_MAX = 1 << 20 };

/* How a secret is put into a request. */
enum inject_kind {
	INJECT_NONE,
	INJECT_RAW,                  /* "name: secret" */
	INJECT_BEARER,               /* "name: Bearer secret" */
	INJECT_BASIC,                /* "name: Basic base64(secret)"; the secret is "user:password" */
	INJECT_QUERY,                /* ?name=secret */
	INJECT_AWS,                  /* signed anew (SigV4); the secret is "id:key" or "id:key:token" */
	INJECT_KIND_COUNT,
};

enum {
	POLICY_SECRETS_MAX = 12,     /* that one policy names: injected ones and canaries together */
	POLICY_CANARY_FILES_MAX = 4, /* that one policy has planted */
	POLICY_CANARY_PATH_MAX = 512,
};

struct inject {
	enum inject_kind kind;       /* INJECT_NONE: no injection, and nothing below is set */
	const char *name;            /* of the header or query parameter; NULL for INJECT_AWS */
	const char *service, *region; /* INJECT_AWS; else NULL */
	const char *secret;          /* its name in the vault */
	const char *env;             /* the variable inside with a placeholder (INJECT_AWS: prefix of three); NULL */
};

/* What network.limits counts for the whole session, and the limits of a rule for what that rule covers. */
enum net_limit {
	NET_LIMIT_RATE,              /* bytes per time, both directions together */
	NET_LIMIT_TOTAL,             /* bytes, both directions together */
	NET_LIMIT_IN,                /* bytes to the sandbox */
	NET_LIMIT_OUT,               /* bytes from it */
	NET_LIMIT_REQUESTS,          /* HTTP requests per time, on hosts whose connections are intercepted */
	NET_LIMIT_NEW_CONNECTIONS,   /* connections that begin per time */
	NET_LIMIT_CONNECTIONS,       /* connections at one time */
	NET_LIMIT_HOSTS,             /* different hosts that were connected to */
	NET_LIMIT_LABELS,            /* bytes of different names, each without what its wildcard rule says of it */
	NET_LIMIT_COUNT,
};

enum {
	NET_LIMITED_MAX = 64,        /* rules with limits of their own */
	NET_HOSTS_MAX = 4096,        /* of NET_LIMIT_HOSTS: they are remembered */
	NET_LABELS_DEFAULT = 4 << 10, /* of a rule that says nothing of NET_LIMIT_LABELS */
	NET_LABELS_MAX = 1 << 20,
	NET_PUBLISH_MAX = 16,
	NET_HOST_PORTS_MAX = 8,
};

struct net_amount {
	uint64_t amount;             /* 0: no limit; NET_LIMIT_LABELS of a rule: NET_LABELS_DEFAULT, UINT64_MAX none */
	uint64_t period_ms;          /* 0: not per time */
};

/* What time.rate counts beside what network.limits has a meter for. */
enum rate_kind {
	RATE_EXEC,                   /* programs started */
	RATE_FILE_READ,              /* files opened to be read, where reads are mediated */
	RATE_FILE_WRITE,             /* files opened to be written, made, renamed, removed, … */
	RATE_KIND_COUNT,
};

enum { COOLDOWN_DENIALS_MAX = 256 };

struct net_limits {
	struct net_amount of[NET_LIMIT_COUNT];
};

/* So many refusals within a time, and nothing new of the kind is let through for another. */
struct cooldown_rule {
	uint64_t denials;            /* 0: never */
	uint64_t within_ms, pause_ms;
};

/* A port inside that a loopback port of the host leads to. */
struct publish_rule {
	uint16_t port;
	uint16_t host_port;          /* 0: any that is free */
	bool is_inet6;               /* ::1 of the host, else 127.0.0.1 */
	bool is_on_demand;           /* opened once something inside listens on the port; taken elsewhere: said */
	struct rule_origin origin;
};

/* A loopback port of the host that a program inside reaches at the same port of its own loopback. */
struct host_port {
	uint16_t port;               /* never 0 and never 53 */
	const char *name;            /* what else leads to loopback in /etc/hosts; NULL: nothing */
	struct rule_origin origin;
};

struct net_rule {
	enum verdict verdict;        /* from the list it stands in: allow, ask, deny, simulate */
	const char *host;            /* lower case ASCII (IDN as xn--); "*.example.org"; NULL with cidr */
	const char *cidr;            /* "10.0.0.0/8", "fd00::/8"; NULL with host */
	const uint16_t *ports;       /* empty: any */
	size_t port_count;
	const struct http_rule *http;
	size_t http_count;
	struct inject inject;        /* only with host (no star), ports and VERDICT_ALLOW */
	const struct net_answer *answer; /* simulate: never NULL; all others: NULL */
	const char *const *except;   /* hosts ("*.example.org" too) that the rule does not cover; NULL: none */
	const struct net_limits *limits; /* NULL: none of its own; every rule that matches counts, not one of them */
	struct rule_origin origin;
};

struct exec_rule {
	enum verdict verdict;        /* deny, ask or allow, from the list it stands in */
	const char *program;         /* absolute path or glob; NULL with argv only */
	uint32_t program_flags;      /* FILE_GLOB; FILE_OPTIONAL: shipped, and what the mounts do for it is enough */
	const char *const *argv;     /* patterns, NULL-terminated; empty: any arguments */
	const char *const *except;   /* programs that the rule does not cover; NULL: none */
	struct rule_origin origin;
};

enum resource {
	RESOURCE_MEMORY,       /* bytes, the whole sandbox */
	RESOURCE_CPUS,         /* thousandths of a CPU */
	RESOURCE_PROCESSES,    /* tasks (threads count) */
	RESOURCE_DISK,         /* bytes in scratch and staged trees together */
	RESOURCE_INODES,
	RESOURCE_OPEN_FILES,   /* per process */
	RESOURCE_OUTPUT,       /* bytes through stdout and stderr together */
	RESOURCE_FILE_SIZE,    /* bytes, the largest single file */
	RESOURCE_WALL_MS,
	RESOURCE_CPU_MS,       /* CPU time of the whole sandbox */
	RESOURCE_IDLE_MS,      /* no output, no input and no CPU time used */
	RESOURCE_COMMAND_MS,   /* wall time of one command of a session */
	RESOURCE_COUNT,
};

struct resource_limit {
	uint64_t value;              /* NUM_UNLIMITED where there is none */
	struct rule_origin origin;
};

struct env_set {
	const char *name;
	const char *value;
	struct rule_origin origin;
};

struct env_pass {
	const char *pattern;         /* a name, or a prefix that ends in * ("LC_*") */
	struct rule_origin origin;
};

struct device_rule {
	const char *name;            /* below /dev: "fuse", "kvm", "dri/renderD128" */
	struct rule_origin origin;
};

enum audit_depth { AUDIT_OFF, AUDIT_WRITES, AUDIT_ALL, AUDIT_DEPTH_COUNT };
enum stage_auto { STAGE_AUTO_OFF, STAGE_AUTO_EXEC, STAGE_AUTO_COUNT }; /* when a snapshot is taken unasked */

/* Who makes staged trees: the kernel; where it cannot, fuse-overlayfs; fuse-overlayfs. Each lets the next be more. */
enum stage_backend { STAGE_BY_OVERLAY, STAGE_BY_AUTO, STAGE_BY_FUSE, STAGE_BACKEND_COUNT };

enum data_action { DATA_OFF, DATA_FLAG, DATA_MASK, DATA_DENY, DATA_ACTION_COUNT };

enum { ASK_TIMEOUT_MS = 60000, ASK_TIMEOUT_MAX_MS = 86400000, ASK_WEBHOOK_MAX = 2048 };

/* How people are asked, and for how long something inside waits for them. */
struct ask_settings {
	uint64_t timeout_ms;         /* 1 to ASK_TIMEOUT_MAX_MS; silence refuses */
	bool bell, prompt;           /* on the terminal that the run was started from */
	bool review;                 /* what becomes of the changes, at the end of an interactive run */
	bool desktop;                /* a notification of the desktop */
	const char *webhook;         /* URL: https, or http of this machine; NULL: none */
	const char *webhook_key;     /* the secret that signs, or NULL */
	const char *webhook_key_file; /* instead of it, absolute; NULL */
	bool webhook_answers;        /* it may answer; else it is told */
};

/* What a finding of atoll-verify about a command leads to before it runs; each is stricter than the one before. */
enum verify_action {
	VERIFY_OFF,         /* not looked at */
	VERIFY_NOTE,        /* it is written down, and runs */
	VERIFY_DRY_RUN,
	VERIFY_ASK,
	VERIFY_DENY,
	VERIFY_ACTION_COUNT,
};

/*
 * By severity, as rules have it; what could not be judged, for whatever reason; and what findings lead to at most whose
 * deed the sandbox itself holds (gate-exec/verifier.c), which is DENY, no bound, where the policy does not say it.
 */
enum verify_row {
	VERIFY_LOW, VERIFY_MEDIUM, VERIFY_HIGH, VERIFY_CRITICAL, VERIFY_UNKNOWN, VERIFY_CONTAINED, VERIFY_ROW_COUNT,
};
/* How sure a finding is. */
enum verify_sureness { VERIFY_POSSIBLE, VERIFY_LIKELY, VERIFY_CERTAIN, VERIFY_SURENESS_COUNT };

struct verify_settings {
	enum verify_action of[VERIFY_ROW_COUNT][VERIFY_SURENESS_COUNT];
};

/* What an alert has the box do; each is more than the one before. */
enum monitor_reaction {
	MONITOR_NOTE,       /* it is written down and said */
	MONITOR_TIGHTEN,    /* and nothing goes out to the network any more */
	MONITOR_FREEZE,     /* and everything stands still until a person has answered, or the time for that is over */
	MONITOR_REACTION_COUNT,
};

enum { MONITOR_SESSIONS_MIN = 10, MONITOR_SESSIONS_MAX = 10000, MONITOR_SESSIONS = 100,
       MONITOR_LEARN_MIN = 5, MONITOR_LEARN_MAX = 64, MONITOR_LEARN = 10 };

/* What is usual for this agent in this project is learnt, and what is not is told (detect/anomaly.h). */
struct monitor_settings {
	bool baseline;               /* learn, and compare */
	uint32_t sessions;           /* the budget: of so many clean sessions one may give a false alarm */
	uint32_t learn;              /* so many sessions only teach */
	enum monitor_reaction unusual, canary;
};

enum verify_when { VERIFY_ASKED, VERIFY_ALL, VERIFY_WHEN_COUNT };
enum breaker_action { BREAKER_FREEZE, BREAKER_END, BREAKER_ACTION_COUNT };
/* Whether a run with a task asks the verifier first what the task does not need, and what follows. */
enum narrow_mode {
	NARROW_OFF,
	NARROW_ASK,         /* a person says yes or no to the proposal */
	NARROW_AUTO,        /* it is taken */
	NARROW_TRY,         /* it is taken, and where there is none the run is as wide as the policy */
	NARROW_COUNT,
};
enum { VERIFY_TIMEOUT_MS = 20000, VERIFY_TIMEOUT_MAX_MS = 120000 };

/* Who gives a second opinion on the start of programs, a command or a model; it can only tighten. */
struct external_verifier {
	const char *const *command;  /* with its arguments; NULL: none */
	const char *url, *model;     /* instead of it; NULL: none */
	const char *secret;          /* that the URL wants, or NULL */
	enum narrow_mode narrow;
	enum verify_when when;       /* on what the rules ask about, or on all that they do not deny */
	uint64_t timeout_ms;
	struct cooldown_rule breaker; /* so many denials within a time, and the agent is stopped; pause_ms is 0 */
	enum breaker_action breaker_action;
};

static inline bool external_is_given(const struct external_verifier *verifier)
{
	return verifier->command || verifier->url;
}

/* What an agent needs to work, beside what it may do: `agent:`. Each list ends with NULL; NULL: it is empty. */
struct agent_settings {
	const char *const *command;     /* what runs where no command is given */
	const char *const *directories; /* its state, made on the host where it is missing: absolute, below the home */
	const char *const *files;       /* the same: a path, then what stands in it at first, and so on */
	const char *const *settings;    /* files below /etc that stand inside alone: path and content, and so on */
};

enum { AGENT_FILES_MAX = 64, AGENT_CONTENT_MAX = 4096 }; /* of each list; bytes of one file */

enum network_mode {
	NETWORK_NONE,       /* an empty namespace: the default verdict is deny and nothing is allowed */
	NETWORK_GATE,       /* rules that need the network gate */
	NETWORK_HOST,       /* `host: true`: shares the host's network, said in words */
	NETWORK_MODE_COUNT,
};

/* A wall that the policy allows to be missing (`degrade:`); the run says so and the report names it. */
enum wall {
	WALL_USERNS, WALL_MOUNTS, WALL_PIDNS, WALL_NETNS, WALL_IPC, WALL_UTS, WALL_CGROUPNS,
	WALL_LANDLOCK,         /* Landlock at all (ABI 1) */
	WALL_LANDLOCK_SCOPE,   /* abstract sockets and signals (ABI 6) */
	WALL_SECCOMP,
	WALL_CGROUP_MEMORY,    /* the memory limit as a hard limit of the whole sandbox */
	WALL_CGROUP_PIDS,
	WALL_CGROUP_CPU,
	WALL_MASK_LATE,        /* names in written trees that the host creates after the start */
	WALL_SPECULATION,      /* speculation controls by prctl */
	WALL_CORE_SCHED,       /* core-scheduling cookie */
	WALL_DISK,             /* the disk budget for trees that are not private */
	WALL_COUNT,
};

/* A section that is valid but that this build cannot enforce yet; a run that has one is refused. */
struct unenforced {
	const char *what;            /* "network.allow", "files.mask glob", "exec.argv", "data.secrets" */
	struct rule_origin origin;
};

/*
 * The file rules reduced to what must be mounted: ordered by path (parents first), globs and
 * entries that repeat the class of the nearest entry above left out. Its size, not the number of
 * rules, decides the start time.
 */
struct file_plan_entry {
	const char *path;
	enum file_class class;       /* never FILE_HIDDEN */
	uint32_t flags;              /* FILE_OPTIONAL, FILE_NOEXEC, FILE_NOFOLLOW, FILE_CONTENTS */
	uint32_t rule;               /* index into files */
};

/*
 * `files:`. The first exact_count rules are paths (no globs) in path_compare() order, and parents[i] is the last of
 * them before i at or above whose path rule i lies (UINT32_MAX: none): one binary search answers for any number of
 * rules. The rest is searched one by one.
 */
struct policy_files {
	const struct file_rule *rules;
	size_t count, exact_count;
	const uint32_t *parents;
	const struct file_plan_entry *plan;
	size_t plan_count;
	const struct path_rule *asks;
	size_t ask_count;
	const struct path_rule *protects;    /* for those who make a policy; all others ask policy_protects() */
	size_t protect_count;
	struct late_rules *late_protects;    /* in their place, NULL: none */
};

/* `network:`. */
struct policy_network {
	enum network_mode mode;
	enum verdict default_verdict;
	struct rule_origin default_origin;
	const struct net_rule *rules;
	size_t count;
	size_t exact_count;                  /* the first ones: host rules in net_host_compare() order */
	const uint32_t *limited;             /* the rules with limits of their own, ascending */
	size_t limited_count;                /* at most NET_LIMITED_MAX */
	struct net_limits limits;            /* of the session */
	struct cooldown_rule cooldown;
	const struct publish_rule *publish;
	size_t publish_count;                /* at most NET_PUBLISH_MAX */
	const struct host_port *host_ports;  /* each port once */
	size_t host_port_count;              /* at most NET_HOST_PORTS_MAX */
};

/* Programs' own user namespaces: none; without mounts (browsers); with mounts (bwrap): no file rules of Landlock. */
enum exec_namespaces { EXEC_NAMESPACES_NONE, EXEC_NAMESPACES_PLAIN, EXEC_NAMESPACES_MOUNTS, EXEC_NAMESPACES_COUNT };
/* `exec:`. */
struct policy_exec {
	const struct exec_rule *rules;
	size_t count;
	size_t exact_count;          /* the first ones: programs without globs and argv, in strcmp() order */
	enum verdict default_verdict; /* for programs that no rule is about: deny, ask or allow */
	struct rule_origin default_origin;
	bool new_binaries;           /* false: what can be written cannot be executed (none, low) */
	enum exec_namespaces namespaces;
};

/* `env:`. */
struct policy_env {
	const struct env_pass *pass;
	size_t pass_count;
	const struct env_set *set;
	size_t set_count;
};

/* `data:`. */
struct policy_data {
	enum data_action secrets, pii, injection;
	enum data_action outgoing;   /* secrets and canaries in what intercepted requests carry out */
	const char *const *canaries; /* secrets of the vault that are looked for only; NULL-terminated; NULL: none */
	const char *const *canary_files; /* made up and shown at these absolute paths; NULL-terminated; NULL: none */
};

/* `audit:`. */
struct policy_audit {
	enum audit_depth files, exec, network;
};

/* `stage:`. */
struct policy_stage {
	enum stage_auto snapshots;
	enum stage_backend backend;
};

struct policy {
	const char *name;            /* "medium", "claude", a path */
	enum trust_level level;      /* the level at the root of the extends chain */
	const char *project;         /* absolute, normalised: what "." meant; "" when none */
	const char *home;            /* what ~ meant; "" when none */
	struct policy_files files;
	struct policy_network network;
	struct policy_exec exec;
	struct resource_limit limits[RESOURCE_COUNT];
	struct net_amount rates[RATE_KIND_COUNT];
	struct cooldown_rule cooldown; /* of every gate, after refusals at any of them */
	struct policy_env env;
	const struct device_rule *devices;
	size_t device_count;
	struct policy_data data;
	struct monitor_settings monitor;
	struct verify_settings verify;
	struct external_verifier external; /* verify.external */
	struct policy_audit audit;
	struct policy_stage stage;
	struct ask_settings ask;
	struct trust_settings trust;
	struct agent_settings agent;
	uint32_t degrade;            /* bit 1u << enum wall */
	const struct unenforced *unenforced;
	size_t unenforced_count;
};

/* files.protect, borrowed. */
static inline const struct path_rule *policy_protects(const struct policy *policy, size_t *ret_count)
{
	struct late_rules *late = policy->files.late_protects;

	if (late && late->read)
		late->read(late);
	*ret_count = late ? late->count : policy->files.protect_count;
	return late ? late->rules : policy->files.protects;
}

/* Names in policy text, reports and the log. */
extern const char *const verdict_names[VERDICT_COUNT];
extern const char *const trust_level_names[TRUST_COUNT];
struct err;
/* Fills *err: the text names no trust level; the nearest one, and all. -EINVAL. */
int trust_level_set_unknown(const char *stage, const char *text, struct err *err);
extern const char *const trust_on_fall_names[TRUST_FALL_COUNT];
extern const char *const file_class_names[FILE_CLASS_COUNT];
extern const char *const verify_when_names[VERIFY_WHEN_COUNT];
extern const char *const narrow_names[NARROW_COUNT];
extern const char *const breaker_action_names[BREAKER_ACTION_COUNT];
extern const char *const audit_depth_names[AUDIT_DEPTH_COUNT];
extern const char *const stage_auto_names[STAGE_AUTO_COUNT];
extern const char *const stage_backend_names[STAGE_BACKEND_COUNT];
extern const char *const data_action_names[DATA_ACTION_COUNT];
extern const char *const monitor_reaction_names[MONITOR_REACTION_COUNT];
extern const char *const verify_action_names[VERIFY_ACTION_COUNT];
extern const char *const verify_row_names[VERIFY_ROW_COUNT];           /* "low", …, "contained" */
extern const char *const verify_sureness_names[VERIFY_SURENESS_COUNT]; /* "possible", … */

/* "memory", …, "wall", "cpu", "idle", "command". Borrowed for good. */
const char *resource_name(enum resource resource);

/* Whether commands are judged before they run. */
bool policy_verifies(const struct policy *policy);
extern const char *const inject_kind_names[INJECT_KIND_COUNT];
extern const char *const rate_kind_names[RATE_KIND_COUNT]; /* "exec", "file.read", … */
extern const char *const net_limit_names[NET_LIMIT_COUNT]; /* "rate", "total", … */
extern const bool net_limit_has_period[NET_LIMIT_COUNT];   /* it counts per time */
extern const bool net_limit_is_bytes[NET_LIMIT_COUNT];
/* "landlock", "landlock.scope", "cgroup.memory", "mask.late", … */
extern const char *const wall_names[WALL_COUNT];
extern const char *const exec_namespaces_names[EXEC_NAMESPACES_COUNT];

/* Whether this can be the name of an agent: 1 to TRUST_AGENT_MAX of [A-Za-z0-9._-], none of . and - at first. */
bool trust_agent_is_valid(const char *name);

/* The secrets that the policy names (injected ones, then canaries), each once, borrowed. How many. */
size_t policy_secrets(const struct policy *policy, const char *names[POLICY_SECRETS_MAX]);

/* The policy's rule for this port of the host's loopback; NULL: it is the sandbox's own. */
const struct host_port *policy_host_port(const struct policy *policy, uint16_t port);
