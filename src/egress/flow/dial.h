/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way out: a name is resolved through the host's resolver configuration, every answer is judged by the policy, and
 * the connection goes to one of those that were judged, so that no second look-up can lead elsewhere (rebinding).
 * Addresses are tried in turn with a head start for each (RFC 8305). Runs in atoll-egress.
 */

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/policy.h"
#include "wire/gate.h"

/* Descriptors that one dial has at most: addresses that are tried at once. */
enum { DIAL_ATTEMPTS_MAX = 5 };

struct dial;
struct dialer;

enum dial_outcome {
	DIAL_CONNECTED,
	DIAL_FAILED,          /* errnum; resolver errors as EAI_… negative */
	DIAL_REFUSED,         /* every address of the name is one that the policy does not allow */
};

struct dial_result {
	enum dial_outcome outcome;
	int errnum;
	int fd;                        /* DIAL_CONNECTED: owned by whoever is told, non-blocking */
	struct gate_address address;   /* connected to; DIAL_REFUSED: the first that was refused */
	bool is_proxied;               /* through the proxy, whose address it is, or who failed */
};

/*
 * Reads the resolver configuration (before the process confines itself) and keeps it. Borrows base and policy.
 * test_hosts: "name=address,…", names that lead there without being asked for, and are judged like answers; NULL.
 */
int dialer_new(struct dialer **ret_dialer, struct event_base *base, const struct policy *policy) MUST_USE;

/*
 * The host's own proxy for everything from now on (proxy.h); NULL: none. A name is still resolved here first, as far
 * as this machine can, and not asked of the proxy where it leads to addresses that are not allowed.
 */
int dialer_set_proxy(struct dialer *dialer, const char *url, const char *no_proxy) MUST_USE;
int dialer_set_test_hosts(struct dialer *dialer, const char *test_hosts) MUST_USE;
void dialer_free(struct dialer *dialer);

typedef void (*dial_told)(void *context, const struct dial_result *result);

/*
 * Connects to a host (a name, or the text of an address that the policy was asked about already). told is called once,
 * never from within dial_start; not after dial_cancel().
 */
int dial_start(struct dial **ret_dial, struct dialer *dialer, const char *host, uint16_t port, dial_told told,
	       void *context) MUST_USE;

/* The same to addresses of one port that were judged: the first that answers. Never by the host's proxy. */
int dial_start_at(struct dial **ret_dial, struct dialer *dialer, const struct gate_address *addresses, size_t count,
		  dial_told told, void *context) MUST_USE;
void dial_cancel(struct dial *dial);

/* "203.0.113.7", "2001:db8::1"; out[INET6_ADDRSTRLEN] always fits. */
void gate_address_format(const uint8_t bytes[16], char out[46]);
