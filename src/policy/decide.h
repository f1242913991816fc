/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one decision function. Pure, total, without allocation, under 2 µs; every gate calls it, in every
 * program, so that what is explained is what is enforced.
 */

#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"

enum action_kind {
	ACTION_FILE_READ,
	ACTION_FILE_WRITE,
	ACTION_FILE_APPLY,       /* a staged change reaches the host: protect rules */
	ACTION_EXEC,             /* subject: real path of the program; argv */
	ACTION_NET_CONNECT,      /* subject: host or address; port */
	ACTION_NET_LISTEN,
	ACTION_NET_DNS,          /* subject: the name asked for */
	ACTION_HTTP_REQUEST,     /* subject: host; port, method, path */
	ACTION_DEVICE,           /* subject: name below /dev */
	ACTION_ENV,              /* subject: variable name */
	ACTION_SYSCALL,          /* subject: system call name; never allowed when it is asked about */
	ACTION_ALERT,            /* to go on after an alert; subject: its words. Only a person allows it */
	ACTION_KIND_COUNT,
};

extern const char *const action_kind_names[ACTION_KIND_COUNT]; /* "file.read", "net.connect", … */

/* How the path of a request is known (http/readings.h). */
enum request_path_kind {
	REQUEST_PATH_SENT,       /* as it was sent */
	REQUEST_PATH_READ,       /* as a server can read it: a rule's own path is read in the same way */
	REQUEST_PATH_BEGINS,     /* nothing but its beginning, a directory: it is that, or something below */
};

struct action {
	enum action_kind kind;
	const char *subject;             /* for files absolute and normalised by the caller */
	const char *const *argv;         /* NULL or NULL-terminated */
	const char *method, *path;       /* ACTION_HTTP_REQUEST */
	enum request_path_kind path_kind;
	uint16_t port;
	const char *const *names;        /* ACTION_EXEC: paths of rules whose program this is by its content; NULL-
					    terminated; NULL: nobody has looked, so the subject alone says what it is */
	bool is_cut;                     /* ACTION_EXEC: there are more arguments than argv has */
	bool is_outward;                 /* of the network: it leaves the sandbox, so that loopback means the host's */
	bool is_unnamed;                 /* ACTION_EXEC: an open file without a path; subject is what to call it */
};

struct decision {
	enum verdict verdict;
	struct rule_origin rule;         /* the rule that decided; borrowed from the policy */
	const char *reason;              /* static or borrowed text, one sentence, never NULL */
	const char *hint;                /* the way out, never NULL, may be "" */
	const struct net_answer *answer; /* ACTION_HTTP_REQUEST that is simulated; else NULL */
	bool is_masked;                  /* a file that looks absent inside */
};

/*
 * Decides. A connection is simulated where no request on it may ever reach the server; where only some requests are
 * answered by the policy, it is decided as if they were not. An unknown kind or a malformed subject (relative, not
 * normalised, empty) denies.
 */
struct decision policy_decide(const struct policy *policy, const struct action *action);

/*
 * Whether something inside may ask a person for what this decision about it does not give: where a rule says `ask`, and
 * files that no rule speaks of, or in whose place the sandbox has something private, unless the level is `none`. What a
 * rule denies or masks is not for a person who is asked in passing.
 */
bool policy_may_be_asked(const struct policy *policy, const struct action *action, const struct decision *decision);

/* Whether there can be any such file; and whether something inside may ask for anything at all. */
bool policy_takes_grants(const struct policy *policy);
bool policy_hears_requests(const struct policy *policy);

/*
 * Whether a directory may be renamed, for its own path is not all that changes: a mask or an ask that names something
 * below from by its path would not hold there any more. Only for rules that are decided at access time.
 */
struct decision policy_decide_move(const struct policy *policy, const char *from, const char *to);

/*
 * Whether an allowed host may be reached at this address (16 bytes, IPv4 mapped), to which its name was resolved: what
 * a cidr rule says, else public addresses only. Where the policy asks people about this host
 * (is_asked), or does not refuse what it does not list, people are asked about private addresses. They are never asked
 * about loopback, link-local addresses and metadata services.
 */
struct decision policy_decide_resolved(const struct policy *policy, const uint8_t address[16], uint16_t port,
				       bool is_asked);

/*
 * Whether a rule with a host is about this request (ACTION_HTTP_REQUEST): its host, port, method and path; or could be
 * about one of such a connection (ACTION_NET_CONNECT).
 */
bool policy_rule_covers(const struct net_rule *rule, const struct action *request);

/*
 * The rules of network.allow with a wildcard that cover a connection to this name, at most max of them; how many. What
 * the name is beyond them the sandbox may choose.
 */
size_t policy_wildcards(const struct policy *policy, const struct action *connection, const struct net_rule **rules,
			size_t max);

/* How many bytes of names such a rule lets out (NET_LIMIT_LABELS); UINT64_MAX: any. */
uint64_t policy_label_limit(const struct policy *policy, const struct net_rule *rule);

/*
 * The rules with limits of their own that cover a connection or request, as bits (bit i: network_limited[i]). All of
 * them count, so that the order of rules means nothing here either.
 */
uint64_t policy_limited_rules(const struct policy *policy, const struct action *action);

/* Whether a limit can keep an allowed connection from being made. */
bool policy_counts_connections(const struct policy *policy);

/*
 * Whether connections to this host (a name or the text of an address) and port are to be read, because a rule for them,
 * of any verdict, is about requests: http, inject, simulate.
 */
bool policy_intercepts(const struct policy *policy, const char *host, uint16_t port);

/* Whether a rule for them, of any verdict, has http. */
bool policy_judges_requests(const struct policy *policy, const char *host, uint16_t port);

/* Whether there is any such rule, and a gate to follow it. */
bool policy_intercepts_any(const struct policy *policy);

/*
 * Whether some files are masked, or asked about, at access alone: then whatever reads a file passes the supervisor, an
 * exec like an open.
 */
bool policy_gates_reads(const struct policy *policy);

/* Whether a tree is staged at all, and whether one is `/`: then root's sandbox is uid 0 inside, in name only. */
bool policy_stages_any(const struct policy *policy);
bool policy_stages_system(const struct policy *policy);

/*
 * The first rule of files.protect that covers path, whatever the path's class is; rules with one of the flags in
 * without (PATH_*) left aside. NULL: none.
 */
const struct path_rule *policy_find_protect(const struct policy *policy, const char *path, uint32_t without);

/* Whether files.protect is asked about in trees that are written in place: then what changes files is mediated. */
bool policy_gates_writes(const struct policy *policy);

/* The class that a path has by the file rules alone, and the index of the rule in *ret_rule (SIZE_MAX: none). */
enum file_class policy_classify(const struct policy *policy, const char *path, size_t *ret_rule);

/*
 * Whether text matches a glob: ** any components, * and ? within one, [a-z] sets, backslash quotes.
 * Bounded: nothing is ever tried again but the last star of a component.
 */
bool glob_match(const char *pattern, const char *text);
