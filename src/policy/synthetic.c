/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/synthetic.h"

#include <string.h>

static const uint8_t prefix4[14] = { [10] = 0xff, [11] = 0xff, [12] = 198, [13] = 18 };
/* fd, then "atoll" in ASCII, then zeros up to the number. */
static const uint8_t prefix6[12] = { 0xfd, 0x61, 0x74, 0x6f, 0x6c, 0x6c };

void synthetic_make(uint32_t number, uint8_t ret_address4[4], uint8_t ret_address6[16])
{
	uint32_t address4 = (198u << 24 | 18u << 16) + number;

	memcpy(ret_address6, prefix6, sizeof prefix6);
	for (int i = 0; i < 4; i++) {
		ret_address4[i] = (uint8_t)(address4 >> (24 - 8 * i));
		ret_address6[12 + i] = (uint8_t)(number >> (24 - 8 * i));
	}
}

bool synthetic_find(const uint8_t address[16], uint32_t *ret_number)
{
	uint32_t low = (uint32_t)address[12] << 24 | (uint32_t)address[13] << 16 | (uint32_t)address[14] << 8 |
		       address[15];

	/* The last bit of a /15 is part of the number. */
	if (memcmp(address, prefix4, 13) == 0 && (address[13] & 0xfe) == prefix4[13])
		*ret_number = low & (SYNTHETIC_END - 1);
	else if (memcmp(address, prefix6, sizeof prefix6) == 0)
		*ret_number = low;
	else
		return false;
	return true;
}
