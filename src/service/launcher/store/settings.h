/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What atolld is told at its start: options of `atoll serve`, and the file of --config (doc/format/service.md). Pure
 * but for reading that file. Runs in atolld.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/options.h"

enum {
	SETTINGS_PORT = 49982, SETTINGS_HOST_MAX = 256, SETTINGS_NAMES_MAX = 16,
	SETTINGS_MODULES_MAX = 8, SETTINGS_MODULE_SIZE = 64,
};

/* As they stand on the command line; NULL or 0: not said. The file has the same names, with "_" for "-". */
struct settings_options {
	const char *listen, *domain, *config, *policy, *tls_cert, *tls_key, *sandboxes, *connections, *pool;
	struct option_list host;
	bool beyond_loopback;
};

struct settings {
	char address[SETTINGS_HOST_MAX];     /* to listen at: an address without its port */
	uint16_t port;                       /* 0: any that is free */
	char domain[SETTINGS_HOST_MAX];      /* of PORT-ID.DOMAIN; "": localhost with the port */
	char policy[PATH_MAX];               /* of keys that name none */
	char tls_cert[PATH_MAX], tls_key[PATH_MAX];   /* "": none */
	char hosts[SETTINGS_NAMES_MAX][SETTINGS_HOST_MAX];
	size_t host_count;
	bool beyond_loopback;                /* without TLS, too */
	uint64_t sandboxes_max;              /* of all keys together */
	uint32_t connections_max;
	uint64_t kept_max;                   /* so many that ended last keep their logs */
	uint64_t disk_min;                   /* bytes that stay free on the disk of the state; 0: nobody looks */
	uint64_t retain_ms;                  /* so long what has ended stays, also where less is free */
	uint64_t snapshots_max;              /* of one owner */
	uint64_t ready_s;                    /* so long a template may take to become ready */
	uint64_t pressure_max;               /* percent of time waited for memory at which nothing more is made */
	char preload[SETTINGS_MODULES_MAX][SETTINGS_MODULE_SIZE];   /* modules of Pythons that are started ahead */
	size_t preload_count;
	uint64_t pool_max;                   /* so many sandboxes may wait behind their walls; 0: none */
};

/* The defaults, then the file, then the options. Negative with *err: what is wrong, and in which line. */
int settings_load(struct settings *ret_settings, const struct settings_options *options, struct err *err) MUST_USE;

/* Whether the whole may be served with: TLS and its key, and an address that they need. Negative with *err. */
int settings_check(const struct settings *settings, struct err *err) MUST_USE;

/* Whether an address is one of loopback; a name is none. */
bool settings_is_loopback(const char *address);
