/* SPDX-License-Identifier: Apache-2.0 */
#include "base/address-block.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

struct block {
	uint8_t bytes[16];
	uint8_t bits;
};

#define V4(a, b, c, d, size) { { [10] = 0xff, 0xff, a, b, c, d }, 96 + (size) }

/* Blocks within IPv4, and within 2000::/3, that are not of the public internet. */
static const struct block special[] = {
	V4(0, 0, 0, 0, 8), V4(10, 0, 0, 0, 8), V4(100, 64, 0, 0, 10), V4(127, 0, 0, 0, 8), V4(169, 254, 0, 0, 16),
	V4(172, 16, 0, 0, 12), V4(192, 0, 0, 0, 24), V4(192, 0, 2, 0, 24), V4(192, 88, 99, 0, 24),
	V4(192, 168, 0, 0, 16), V4(198, 18, 0, 0, 15), V4(198, 51, 100, 0, 24), V4(203, 0, 113, 0, 24),
	V4(224, 0, 0, 0, 3),
	V4(168, 63, 129, 16, 32), /* Azure's own services to its machines: public by number only */
	{ { 0x20, 0x01, 0x00 }, 23 },             /* protocol assignments, Teredo among them */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32 },       /* documentation */
	{ { 0x20, 0x02 }, 16 },                   /* 6to4: an IPv4 address in other clothes */
	{ { 0x3f, 0xff }, 20 },                   /* documentation */
};

/* RFC 1918, RFC 6598 (carriers, and VPNs such as Tailscale), RFC 4193. */
static const struct block private_use[] = {
	V4(10, 0, 0, 0, 8), V4(172, 16, 0, 0, 12), V4(192, 168, 0, 0, 16), V4(100, 64, 0, 0, 10), { { 0xfc }, 7 },
};

/* Services within those blocks that hand out a machine's credentials to whoever asks: no yes opens them. */
static const struct block metadata[] = {
	V4(100, 100, 100, 200, 32),                           /* Alibaba */
	{ { 0xfd, 0x00, 0x0e, 0xc2 }, 32 },                   /* Amazon */
	{ { 0xfd, 0x20, 0x00, 0xce }, 32 },                   /* Google */
};

#undef V4

bool address_prefix_equal(const uint8_t a[16], const uint8_t b[16], unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return !rest || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

static bool is_in(const struct block *blocks, size_t count, const uint8_t bytes[16])
{
	for (size_t i = 0; i < count; i++)
		if (address_prefix_equal(blocks[i].bytes, bytes, blocks[i].bits))
			return true;
	return false;
}

bool address_is_mapped(const uint8_t bytes[16])
{
	return memcmp(bytes, mapped_prefix, sizeof mapped_prefix) == 0;
}

/* IPv6 is public in 2000::/3 alone, which leaves out NAT64, mapped, unique local and link-local addresses. */
bool address_is_public(const uint8_t bytes[16])
{
	if (!address_is_mapped(bytes) && bytes[0] >> 5 != 1)
		return false;
	return !is_in(special, ARRAY_SIZE(special), bytes);
}

bool address_block_is_public(const uint8_t bytes[16], unsigned bits)
{
	bool is_v4 = address_is_mapped(bytes);

	if (bits < (is_v4 ? 96u : 3u) || (!is_v4 && bytes[0] >> 5 != 1))
		return false;
	/* Two blocks have an address in common where the shorter prefix begins both. */
	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		if (address_prefix_equal(special[i].bytes, bytes, special[i].bits < bits ? special[i].bits : bits))
			return false;
	return true;
}

bool address_is_private_use(const uint8_t bytes[16])
{
	return is_in(private_use, ARRAY_SIZE(private_use), bytes) && !is_in(metadata, ARRAY_SIZE(metadata), bytes);
}

bool address_is_loopback(const uint8_t bytes[16])
{
	static const uint8_t v6[16] = { [15] = 1 };

	return memcmp(bytes, v6, sizeof v6) == 0 || (address_is_mapped(bytes) && bytes[12] == 127);
}

bool address_host_is_loopback(const char *host)
{
	uint8_t bytes[16] = { [10] = 0xff, [11] = 0xff };

	return str_equal(host, "localhost") ||
	       ((inet_pton(AF_INET, host, bytes + 12) == 1 || inet_pton(AF_INET6, host, bytes) == 1) &&
		address_is_loopback(bytes));
}
