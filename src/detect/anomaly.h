/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Counts what a session does, compares it with what was usual for this agent in this project (monitor/baseline.h),
 * tells what is not (detect/alerts.h) the moment that it is not, and learns from the session when it has ended. Who the
 * agent is: the name that the policy gives it (trust.agent), or the policy's own, and the program that was started.
 * Costs nothing where the policy has no baseline. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "monitor/feature.h"
#include "supervise/hub.h"
#include "supervise/module.h"

struct json;
struct anomaly_state;
struct alerts;
struct canaries;
struct run;
struct staged_count;
struct staging;

struct anomaly {
	struct run *run;
	struct alerts *alerts;
	const struct canaries *canaries;
	struct staging *staging;
	struct staged_count *staged_count;
	struct anomaly_state *state; /* owned; NULL: nothing is compared, or nothing happened yet */
	struct subscriber subscriber;
};

/* Listens to what the gates see, where the policy has a baseline; the five pointers are set. Before the jail is
 * made. */
void anomaly_prepare(struct anomaly *anomaly);

/* When nothing runs any more and what was staged has been counted, before any of it goes. */
int anomaly_look_at_staged(struct anomaly *anomaly) MUST_USE;

/* Learns from the session: what it was, but no more of what was told than a few times the limit; nothing at all from a
 * session that touched a canary, was ended by a limit, has_failed, or never started its command. */
int anomaly_learn(struct anomaly *anomaly, bool has_failed) MUST_USE;

/* The report's "monitor" object: what was counted, and against what. */
void anomaly_to_json(const struct anomaly *anomaly, struct json *json);

/* Its state is a struct anomaly: compares what has grown. What was learned is written by anomaly_learn(). */
extern const struct module anomaly_module;
