/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * atolld: what it consists of. One thread and one loop; whoever waits for libatoll or for the front stands in a list,
 * and nothing here blocks but the compilation of a policy that a sandbox has had and that is not kept any more.
 *
 * The folder: credential.h, narrowing.h and settings.h are pure; store.h is the database; kept.h and sandbox.h are what
 * is known of sandboxes; front.h is the other program; policies.h has compiled policies; call.h is one request of a
 * client; access.h says whether it may be; lifecycle.h moves sandboxes from state to state; operate.h has one handler
 * for each operation; recover.h is the start; service.h is the whole.
 */

#include "audit/writer.h"
#include "service/launcher/call/front.h"
#include "service/launcher/call/policies.h"
#include "service/launcher/call/quota.h"
#include "service/launcher/call/sandbox.h"
#include "service/launcher/store/settings.h"

struct pool;
struct warm;
struct readiness;

struct daemon_places {
	char state[PATH_MAX], programs[PATH_MAX];
	char directory[PATH_MAX];            /* STATE/service */
	char project[PATH_MAX];              /* an empty directory: that of every sandbox */
	char home[PATH_MAX];                 /* what every sandbox's home begins with: a directory in it */
};

/* What clients wait for. */
struct daemon_calls {
	size_t under_way;
	uint64_t last_ns;                    /* when the last one came or ended; 0: there was none */
};

struct daemon_due {
	uint64_t timer_ns;                   /* for when the timer is set; UINT64_MAX: it is not */
	uint64_t checkpoint_ns;              /* when the database is due; UINT64_MAX: nothing changed */
	struct daemon_calls calls;           /* other work is due when there are none */
	uint64_t recover_until_ns;           /* so long starts of the last daemon may come late; 0: none */
};

/* Of tidy.c. */
struct tidying {
	struct loop_source output;           /* of what is under way; FD_NONE: nothing */
	uint64_t ended;                      /* sessions since the last one began */
	uint64_t latest_ns;                  /* when it is due, however few they are */
	uint64_t again_ns;                   /* when what was too young to go is looked at again; 0: nothing was */
	uint64_t disk_ns;                    /* not before: once more because the disk is full */
	bool is_for_disk;                    /* that is why the one under way was started */
	char said[160];                      /* by that one, for the log */
};

/* Of lifecycle.h, control.h, snapshots.h and tidy.h, for what is built on them in folders that they include. */
struct daemon_verbs {
	void (*create)(struct call *call, struct kept *made, const struct origin *origin, uint64_t timeout_ms);
	void (*kill)(struct sandbox *sandbox, struct call *call);
	bool (*check)(struct call *call, void (*then)(struct call *call));
	bool (*has_room)(const struct call *call, uint64_t count);
	int (*find_snapshot)(struct call *call, const char *template, struct template_row *ret_row,
			     struct origin *ret_origin);
	void (*delete_snapshot)(struct call *call);
	int (*hold)(struct daemon *daemon);
	void (*forget)(struct daemon *daemon, const char *session, const char *snapshot);
};

/* Of events.h and operate.h, which know what follows. */
struct daemon_hooks {
	int (*heard)(void *context, uint32_t events);   /* of a sandbox's handle: the struct sandbox */
	void (*begun)(struct sandbox *sandbox);         /* one that was taken has been ready before */
	void (*again)(struct call *call);               /* a call begins from the beginning again */
	const struct daemon_verbs *verbs;
};

struct daemon {
	struct loop loop;
	const struct settings *settings;
	atoll_context *context;
	struct daemon_places places;
	uint8_t secret[CREDENTIAL_SECRET_SIZE];
	struct database *store;
	struct registry registry;
	struct policies policies;
	struct quotas quotas;
	struct pool *pool;                   /* owned, of pool.h; NULL: none yet */
	struct warm *warm;                   /* owned, of warm.h; NULL: none yet */
	struct front front;
	struct front_setup front_setup;
	struct audit_writer audit;
	struct tidying tidying;
	struct loop_source signals, timer;
	struct daemon_due due;
	struct buf reply, row;               /* scratch */
	char domain[SETTINGS_HOST_MAX];      /* as clients are told */
	uint16_t port;
	struct daemon_hooks hooks;
	struct readiness *readiness;         /* of service.c */
	bool is_stopping;
};

/* Has the timer go off at `ns` of CLOCK_MONOTONIC, or before. */
void daemon_wake_at(struct daemon *daemon, uint64_t ns);

/*
 * When that may be begun which no client waits for, and which would have the next one wait: 0: now, since no call came
 * or ended for a moment, or it has been due (since_ns) for long; else CLOCK_MONOTONIC when to ask again.
 */
uint64_t daemon_quiet_at(const struct daemon *daemon, uint64_t since_ns, uint64_t now_ns);

/* Something in the database changed: it is brought into its main file within half a minute. */
void daemon_note_change(struct daemon *daemon);
