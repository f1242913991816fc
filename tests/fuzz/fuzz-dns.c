/* SPDX-License-Identifier: Apache-2.0 */

/* A query of arbitrary bytes: it is dropped, or its answer has a bounded size, its id and one question at most. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "egress/dns/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const uint16_t types[] = { 0, DNS_A, DNS_AAAA, DNS_PTR };
	uint8_t out[DNS_ANSWER_MAX], address[16];
	struct dns_query query;
	int r = dns_query_parse(bytes, size, &query);

	if (r < 0)
		return 0;
	require(strlen(query.name) < DNS_NAME_SIZE - 1);
	(void)dns_reverse_parse(query.name, address);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct dns_answer answer = { .code = (enum dns_code)r, .type = types[i], .host = "host.example.org" };
		size_t length = dns_answer_format(&query, &answer, out);

		require(length >= DNS_HEADER_SIZE && length <= DNS_ANSWER_MAX);
		require(memcmp(out, bytes, 2) == 0 && out[2] & 0x80);
		/* What we send would never be taken for a query. */
		require(dns_query_parse(out, length, &query) == -EBADMSG);
		(void)!dns_query_parse(bytes, size, &query);
	}
	return 0;
}
