/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Debian's libsodium.a was compiled against glibc with _FORTIFY_SOURCE. The objects that atoll links
 * (SHA-256 and sodium_memzero) ask glibc for this one function that musl does not have.
 */

#include <string.h>

void __explicit_bzero_chk(void *bytes, size_t size, size_t object_size);

void __explicit_bzero_chk(void *bytes, size_t size, size_t object_size)
{
	if (size > object_size)
		__builtin_trap();
	explicit_bzero(bytes, size);
}
