/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A policy in the making: what one file says, or what several of them add up to. Made by bind.c,
 * merged by chain.c, checked by tighten.c, turned into a struct policy by finish.c.
 */

#include "lang/yaml/arena.h"
#include "lang/yaml/diag.h"
#include "policy/scalars.h"

enum {
	DRAFT_RULES_MAX = 50000, /* of one kind */
	DRAFT_GLOBS_MAX = 256,	 /* patterns of one kind: they are searched one by one */
	DRAFT_PROTECTS_MAX = 1024, /* of files.protect: most paths are none of theirs by how they end */
};

struct draft_rule {
	struct place place;
	const char *id;
	const char *text;  /* as written: the path, the host, the program */
	bool is_relative;  /* a path that was written relative to the project */
	bool is_shipped;   /* from a file that atoll ships */
	bool only_tightens; /* of a text that may not widen: it holds for the path itself, not for a link's target */
	struct vec except; /* const char *: resolved patterns */
};

struct draft_file {
	struct draft_rule from;
	enum file_class class;
	uint32_t flags;
	bool stands;         /* of a narrowing: also where the policy gives the same, for what is above gives less */
	const char *pattern; /* NULL: means nothing here (no home) */
};

struct draft_path {
	struct draft_rule from;
	uint32_t flags;
	const char *pattern;
	const char *when;        /* NULL: not said */
};

struct draft_http {
	struct draft_rule from;
	struct vec methods, paths; /* const char * */
};

struct draft_answer {
	struct place place;
	uint64_t status;
	struct vec fields;       /* const char *: names and values in turn */
	const char *body;        /* in the text, or of the file */
	size_t body_size;
	const char *body_file;   /* as written; NULL: none */
	struct place body_place;
};

struct draft_inject {
	struct place place;  /* of the mapping */
	bool is_given, has_kind;
	enum inject_kind kind; /* INJECT_RAW where "kind" is missing */
	const char *header, *query, *service, *region, *secret, *env;
	bool is_aws;
};

struct draft_net {
	struct draft_rule from;
	enum verdict verdict;
	const char *host, *cidr;
	struct vec ports; /* uint16_t */
	struct vec http;  /* struct draft_http */
	struct draft_inject inject;
	uint32_t is_listed;  /* 1, in a project's file: what the policy allows of the host, and no more */
	struct draft_answer *answer; /* simulate; NULL: none was given */
	struct draft_scalar *limits; /* NET_LIMIT_COUNT of them; NULL: none */
};

struct draft_publish {
	struct draft_rule from;
	struct publish_rule rule; /* port 0: wrong, and said so */
};

struct draft_agent_file { /* agent.state, agent.settings */
	struct draft_rule from;
	const char *path;        /* NULL: wrong, and said so, or it means nothing here */
	const char *content;     /* NULL: not said */
	bool is_directory;
};

struct draft_host_port {
	struct draft_rule from;
	struct host_port port; /* port 0: wrong, and said so */
};

struct draft_exec {
	struct draft_rule from;
	enum verdict verdict;
	const char *program;
	uint32_t flags;
	struct vec argv; /* const char * */
};

struct draft_named { /* env.pass, env.set, devices, degrade, drop, extends */
	struct draft_rule from;
	const char *name, *value;
};

/* A row of verify's settings as the value of one scalar. */
static inline enum verify_action verify_unpacked(uint64_t packed, enum verify_sureness sureness)
{
	return (enum verify_action)(packed >> 8 * sureness & 0xff);
}

struct draft_scalar {
	bool is_set;
	uint64_t value, value2; /* value2: the period of a rate */
	struct place place;
	const char *id;
	const char *text;
};

/* What is merged like the rows of scalars.h, behind them, and is no single value of a policy. */
enum {
	SCALAR_COOLDOWN_DENIALS = SCALAR_ROW_COUNT,
	SCALAR_COOLDOWN_WITHIN,
	SCALAR_COOLDOWN_PAUSE,
	SCALAR_TIME_COOLDOWN_DENIALS, /* in the order of the network's */
	SCALAR_TIME_COOLDOWN_WITHIN,
	SCALAR_TIME_COOLDOWN_PAUSE,
	SCALAR_VERIFY, /* VERIFY_ROW_COUNT of them, each of verify_packed() */
	SCALAR_NETWORK_LIMITS = SCALAR_VERIFY + VERIFY_ROW_COUNT, /* NET_LIMIT_COUNT of them */
	SCALAR_RATES = SCALAR_NETWORK_LIMITS + NET_LIMIT_COUNT, /* RATE_KIND_COUNT of them */
	SCALAR_COUNT = SCALAR_RATES + RATE_KIND_COUNT,
};

struct draft {
	struct vec files;					       /* struct draft_file */
	struct vec asks;					       /* struct draft_path */
	struct vec protects;					       /* struct draft_path */
	struct vec network;					       /* struct draft_net */
	struct vec publish;					       /* struct draft_publish */
	struct vec host_ports;					       /* struct draft_host_port */
	struct vec exec;					       /* struct draft_exec */
	struct vec env_pass, env_set, devices, degrade, drop, extends, canaries; /* struct draft_named */
	struct vec canary_files;				       /* struct draft_path */
	struct vec agent_command;				       /* struct draft_named: the last text's alone */
	struct vec agent_state, agent_settings;			       /* struct draft_agent_file */
	struct draft_scalar scalars[SCALAR_COUNT];
	struct draft_external *external; /* lang/bind/bind-external.h; NULL: not given */
};

/* For every item of a vector: NAME points to it. */
#define DRAFT_EACH(type, name, vec)                                                                          \
	for (__typeof__(type) *name = (vec)->items, *name##_end = (vec)->count ? name + (vec)->count : name; \
	     name < name##_end; name++)
