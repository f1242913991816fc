/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The text of a published port, as `network.publish` and `atoll run --publish` have it. Pure; what a policy may say
 * and what a command line may say are the same.
 */

#include "base/cleanup.h"
#include "policy/policy.h"

enum { PUBLISH_TEXT_SIZE = 32 };

/*
 * "[HOST:]PORT": the port inside, and behind which host port. HOST is a port (0: any that is free), or 127.0.0.1:PORT
 * or [::1]:PORT. The rule's origin is left alone. -EINVAL; -EADDRNOTAVAIL for an address that is not loopback.
 */
int publish_parse(const char *text, struct publish_rule *rule) MUST_USE;

/* HOST alone, into the host's side of rule. Errors as publish_parse(). */
int publish_parse_host(const char *text, struct publish_rule *rule) MUST_USE;

/* "127.0.0.1:8080", "[::1]:8080": the host's side; out[PUBLISH_TEXT_SIZE] always fits. */
void publish_host_format(const struct publish_rule *rule, char out[PUBLISH_TEXT_SIZE]);
