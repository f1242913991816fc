/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The bytes of a snapshot (doc/format/snapshot.md): a header, a table of sections, arrays of fixed
 * little-endian records. Private to snapshot/ and scalars.c, which says where each single value lies.
 */

#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "snapshots are read as they are in memory");

#define SNAPSHOT_MAGIC "ATOLLPOL"

enum {
	SNAPSHOT_VERSION = 20,
	SNAPSHOT_ALIGN = 8,
};

/* A string is its offset in SECTION_STRINGS; a vector of strings the index of its first entry in
 * SECTION_VECTORS. */
#define SNAPSHOT_NULL UINT32_MAX

enum snapshot_section {
	SECTION_STRINGS, /* bytes: NUL-terminated strings; the first and the last byte are NUL */
	SECTION_VECTORS, /* uint32_t: strings, each vector ends with SNAPSHOT_NULL */
	SECTION_POLICY,	 /* one struct snapshot_scalars */
	SECTION_LIMITS,	 /* RESOURCE_COUNT struct snapshot_limit */
	SECTION_FILES,
	SECTION_FILE_PLAN,
	SECTION_FILE_ASKS,
	SECTION_PROTECTS,
	SECTION_NETWORK,
	SECTION_PORTS, /* uint16_t */
	SECTION_HTTP,
	SECTION_EXEC,
	SECTION_ENV_PASS,
	SECTION_ENV_SET,
	SECTION_DEVICES,
	SECTION_UNENFORCED,
	SECTION_SOURCES,
	SECTION_ANSWERS,
	SECTION_BODIES, /* bytes of the answers */
	SECTION_NET_LIMITS, /* the session's first; those of rules, each once, in the order of the rules */
	SECTION_PUBLISH,
	SECTION_RATES, /* RATE_KIND_COUNT struct net_amount as they are */
	SECTION_HOST_PORTS,
	SECTION_COUNT,
};

struct snapshot_header {
	char magic[8];
	uint32_t version;
	uint32_t size; /* of the whole snapshot */
	struct {
		uint32_t offset; /* from the start, a multiple of SNAPSHOT_ALIGN */
		uint32_t count;	 /* records */
	} sections[SECTION_COUNT];
};

struct snapshot_origin {
	uint32_t id, file, line;
};

struct snapshot_cooldown {
	uint64_t denials, within_ms, pause_ms;
};

struct snapshot_exact_counts {
	uint32_t files, network, exec;
};

struct snapshot_network_settings {
	uint32_t mode, default_verdict;
	struct snapshot_origin default_origin;
};

struct snapshot_exec_settings {
	uint32_t default_verdict;
	struct snapshot_origin default_origin;
	uint32_t new_binaries, namespaces;
};

struct snapshot_data {
	uint32_t secrets, pii, injection, outgoing, canaries, canary_files;
};

struct snapshot_audit {
	uint32_t files, exec, network;
};

struct snapshot_stage {
	uint32_t snapshots, backend;
};

struct snapshot_ask {
	uint32_t bell, prompt, review, desktop, webhook, webhook_key, webhook_key_file, webhook_answers;
};

struct snapshot_monitor {
	uint32_t baseline, sessions, learn, unusual, canary;
};

struct snapshot_trust {
	uint32_t agent, start, ceiling, floor, raise, on_fall, probation_sessions, probation_at, is_given, has_level;
};

struct snapshot_external {
	uint32_t narrow, command, url, model, secret, when, breaker_action;
};

struct snapshot_agent { /* vectors */
	uint32_t command, directories, files, settings;
};

struct snapshot_scalars {
	uint32_t name, project, home;
	uint32_t level;
	struct snapshot_exact_counts exact;
	struct snapshot_network_settings network;
	struct snapshot_exec_settings exec;
	struct snapshot_data data;
	struct snapshot_audit audit;
	uint32_t degrade;
	struct snapshot_stage stage;
	struct snapshot_ask ask;
	uint32_t verify[VERIFY_ROW_COUNT * VERIFY_SURENESS_COUNT];
	struct snapshot_monitor monitor;
	struct snapshot_trust trust;
	struct snapshot_external external;
	struct snapshot_agent agent;
	uint64_t trust_half_life_ms;
	uint64_t ask_timeout_ms, external_timeout_ms;
	struct snapshot_cooldown network_cooldown, cooldown, breaker;
};

/* A hole would be written as whatever lay there: the same policy would have another hash each time. */
_Static_assert(offsetof(struct snapshot_scalars, trust_half_life_ms) ==
	       offsetof(struct snapshot_scalars, agent) + sizeof(struct snapshot_agent),
	       "no hole before the 64-bit numbers");

struct snapshot_net_limits { /* struct net_limits as it is */
	struct {
		uint64_t amount, period_ms;
	} of[NET_LIMIT_COUNT];
};

struct snapshot_publish {
	uint32_t port, host_port, is_inet6, is_on_demand;
	struct snapshot_origin origin;
};

struct snapshot_host_port {
	uint32_t port, name;
	struct snapshot_origin origin;
};

struct snapshot_limit {
	uint64_t value;
	struct snapshot_origin origin;
	uint32_t reserved; /* 0 */
};

struct snapshot_file {
	uint32_t pattern, class, flags, except;
	struct snapshot_origin origin;
};

struct snapshot_plan {
	uint32_t path, class, flags, rule;
};

struct snapshot_path { /* asks and protects */
	uint32_t pattern, flags, except;
	struct snapshot_origin origin;
	uint32_t when;
};

struct snapshot_net {
	uint32_t verdict, host, cidr, first_port, port_count, first_http, http_count;
	uint32_t inject_kind, inject_name, inject_service, inject_region, inject_secret, inject_env;
	uint32_t except;
	uint32_t answer; /* index; SNAPSHOT_NULL: none */
	uint32_t limits; /* index in SECTION_NET_LIMITS, SNAPSHOT_NULL: none */
	struct snapshot_origin origin;
};

struct snapshot_answer {
	uint32_t status, fields, body_offset, body_size, body_file;
};

struct snapshot_http {
	uint32_t methods, paths;
	struct snapshot_origin origin;
};

struct snapshot_exec {
	uint32_t verdict, program, program_flags, argv, except;
	struct snapshot_origin origin;
};

struct snapshot_named { /* env.pass, devices, unenforced; env.set with a value */
	uint32_t name, value;
	struct snapshot_origin origin;
};

struct snapshot_source_record {
	uint64_t device, inode, size;
	int64_t mtime_ns, ctime_ns;
	uint32_t path, exists;
};
