/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * SHA-256 of whole blocks by the processor's own instructions, which are ten times as fast as code for any processor.
 * Private to hash.c, where everything else of a hash is libsodium's. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HASH_BLOCK_SIZE = 64 };

/* To ask is 10 us the first time, as each CPUID traps in a virtual machine. */
bool hash_blocks_can(void);

/*
 * The chaining value after count blocks (FIPS 180-4, 6.2.2). Only where hash_blocks_can(): elsewhere it is not defined
 * what happens.
 */
void hash_blocks_add(uint32_t state[8], const uint8_t *bytes, size_t count);
