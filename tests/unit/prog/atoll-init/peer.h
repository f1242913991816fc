/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The box's side of the wire, for tests of the real atoll-init: starts it as PID 1 of a new PID namespace (with
 * no_new_privs and no root), supervises it, and decodes what it says.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "watch/watch.h"
#include "wire/init.h"

struct peer {
	pid_t pid;              /* of init, outside */
	int wire_fd;
	struct watch *watch;    /* NULL until INIT_READY */
	unsigned execs;
	char last_exe[256];
};

struct message {
	int type;               /* 0: the wire is closed */
	uint32_t id, value, failure;
	struct init_exit exit;
	char wall[32];
	int fd;                 /* owned by the test */
};

/* What init refuses: no no_new_privs; no second process of the jail, or one that failed. */
enum { PEER_WITH_PRIVILEGES = 1, PEER_WITHOUT_SECOND = 2, PEER_FAILED_SECOND = 4 };

/* Nothing was read from the wire yet. */
struct peer *peer_launch(const char *profile, unsigned oddities);

/* peer_launch, INIT_READY, and supervision. */
struct peer *peer_start(void);

/* Closes the wire and reaps init: its wait status. Frees peer. */
int peer_end(struct peer *peer);

/* The next message, serving the watch meanwhile; fails the test after 20 seconds. */
struct message peer_next(struct peer *peer);

/* peer_next() that must be of this type and id. */
struct message peer_expect(struct peer *peer, int type, uint32_t id);

void peer_send_raw(struct peer *peer, const void *bytes, size_t size, const int *fds, size_t fd_count);
void peer_send_numbers(struct peer *peer, uint16_t type, const uint32_t *numbers, size_t count);

/* INIT_SPAWN with 0, 1, 2 on /dev/null, or on output_fd where that is >= 0 (1 and 2). PATH is /usr/bin:/bin. */
void peer_spawn(struct peer *peer, uint32_t id, const char *const *argv, int output_fd);
void peer_spawn_some(struct peer *peer, const struct init_spawn *spawn, const int *fds, size_t fd_count);
/* With all three. */
void peer_spawn_full(struct peer *peer, const struct init_spawn *spawn, const int *fds);

/* Spawns, collects all output (at most size - 1 bytes, NUL-terminated), and returns the exit. */
struct init_exit peer_run(struct peer *peer, const struct init_spawn *spawn, char *output, size_t size);

/* A shell command with the default environment. */
struct init_exit peer_run_shell(struct peer *peer, const char *script, char *output, size_t size);

/* A spawn of argv at / with PATH=/usr/bin:/bin. */
struct init_spawn peer_plan(uint32_t id, const char *const *argv);
