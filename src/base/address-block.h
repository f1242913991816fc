/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which blocks of addresses are the public internet's, and which of the others a person can say yes to (IANA's
 * special-purpose registries, RFC 6890). Addresses are 16 bytes, IPv4 as ::ffff:a.b.c.d. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

/* Whether the first so many bits are the same; bits is at most 128. */
bool address_prefix_equal(const uint8_t a[16], const uint8_t b[16], unsigned bits);

/* Whether it has the form ::ffff:a.b.c.d, which stands for an IPv4 address. */
bool address_is_mapped(const uint8_t bytes[16]);

/* Whether any router of the public internet may lead to it: in no special-purpose block. */
bool address_is_public(const uint8_t bytes[16]);

/* The same of every address with this prefix; bits is at most 128, those of IPv4 behind the 96 of ::ffff:0:0. */
bool address_block_is_public(const uint8_t bytes[16], unsigned bits);

/*
 * Whether it is one that a company, a home or a VPN gives to its own machines: a person can tell what is there.
 * Loopback, link-local addresses and the metadata services of clouds are none.
 */
bool address_is_private_use(const uint8_t bytes[16]);

/* Whether it is a loopback address: 127.0.0.0/8 or ::1. */
bool address_is_loopback(const uint8_t bytes[16]);

/* The same of text: "localhost", 127.0.0.0/8 or ::1. Any other name is none, wherever it leads. */
bool address_host_is_loopback(const char *host);
