/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/tls/alpn.h"

#include <string.h>

#include "base/cleanup.h"

static const struct {
	unsigned bit;
	unsigned char size;
	const char *name;
} known[] = { { ALPN_HTTP2, 2, "h2" }, { ALPN_HTTP1, 8, "http/1.1" } };

unsigned alpn_format(unsigned protocols, unsigned char out[ALPN_LIST_MAX])
{
	unsigned size = 0;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!(protocols & known[i].bit))
			continue;
		out[size++] = known[i].size;
		memcpy(out + size, known[i].name, known[i].size);
		size += known[i].size;
	}
	return size;
}

static unsigned find(const unsigned char *name, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (size == known[i].size && memcmp(name, known[i].name, size) == 0)
			return known[i].bit;
	return 0;
}

unsigned alpn_parse(const unsigned char *list, size_t size)
{
	unsigned protocols = size ? 0 : ALPN_HTTP1;

	while (size > 1) {
		size_t length = list[0];

		if (length > size - 1)
			return 0;
		protocols |= find(list + 1, length);
		list += 1 + length;
		size -= 1 + length;
	}
	return protocols;
}

enum alpn alpn_chosen(const SSL *ssl)
{
	const unsigned char *name;
	unsigned size;

	SSL_get0_alpn_selected(ssl, &name, &size);
	return size && find(name, size) == ALPN_HTTP2 ? ALPN_HTTP2 : ALPN_HTTP1;
}
