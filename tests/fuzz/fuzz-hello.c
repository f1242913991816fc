/* SPDX-License-Identifier: Apache-2.0 */

/* A stream of arbitrary bytes: the verdict is the same in one piece and byte by byte, and a name is a string. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/tls/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct hello whole, pieces;

	hello_init(&whole, HELLO_FIRST);
	hello_init(&pieces, HELLO_FIRST);
	hello_feed(&whole, bytes, size);
	for (size_t i = 0; i < size; i++)
		hello_feed(&pieces, bytes + i, 1);
	if (whole.state != pieces.state || strcmp(whole.name, pieces.name) != 0)
		abort();
	if (whole.state == HELLO_NAMED && (!whole.name[0] || strlen(whole.name) >= HELLO_NAME_SIZE))
		abort();
	hello_done(&whole);
	hello_done(&pieces);
	return 0;
}
