/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The compression function of SHA-256 (FIPS 180-4, 6.2.2) by the processor's own instructions, where it has them: 10
 * times as fast as portable C, in which the hash of a policy is a twentieth of a start. Pure; for hash.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Whether hash_blocks_add() may be called. The first call asks the processor, which traps in a virtual machine: 13 µs,
 * so only who has much to hash asks. False on other architectures than x86-64.
 */
bool hash_blocks_are_fast(void);

/* Adds count blocks of 64 bytes to the state, eight words in the order of the standard. */
void hash_blocks_add(uint32_t state[8], const uint8_t *bytes, size_t count);
