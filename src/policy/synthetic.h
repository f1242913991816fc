/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The addresses that exist inside a sandbox with a network gate and nowhere else: those of the gate itself, and one of
 * each family for every name that was looked up. 198.18.0.0/15 is for benchmarks (RFC 2544) and routed nowhere; the
 * IPv6 prefix is a unique local one (RFC 4193). Pure.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
	SYNTHETIC_BITS4 = 15, SYNTHETIC_BITS6 = 64,
	SYNTHETIC_GATE = 1,            /* the number of the gate's own address: DNS, and the door of all connections */
	SYNTHETIC_FIRST = 16,          /* the first number of a name */
	SYNTHETIC_END = 1 << 17,       /* as many as IPv4 has */
	SYNTHETIC_DOOR_PORT = 1,       /* privileged, so that nothing inside can take it, or be in its way */
};

/* "198.18.0.1", for resolv.conf. */
#define SYNTHETIC_GATE_TEXT "198.18.0.1"

/* The n-th address of both families; n < SYNTHETIC_END. */
void synthetic_make(uint32_t number, uint8_t ret_address4[4], uint8_t ret_address6[16]);

/* Whether an address (16 bytes, IPv4 as ::ffff:a.b.c.d) is one of these; its number in *ret_number. */
bool synthetic_find(const uint8_t address[16], uint32_t *ret_number);
