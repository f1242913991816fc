/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DNS messages (RFC 1035) as the gate's own server needs them: one question in, one short answer out. It forwards
 * nothing and asks nobody; whose names exist is not known here. Pure, bounded. Runs in atoll-egress.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum {
	DNS_HEADER_SIZE = 12,
	DNS_QUERY_MAX = 4096,        /* a query that is longer is dropped */
	DNS_ANSWER_MAX = 1024,
	DNS_NAME_SIZE = 256,
};

enum dns_type { DNS_A = 1, DNS_PTR = 12, DNS_AAAA = 28, DNS_SVCB = 64, DNS_HTTPS = 65 };
enum dns_code { DNS_OK = 0, DNS_FORMERR = 1, DNS_SERVFAIL = 2, DNS_NXDOMAIN = 3, DNS_NOTIMP = 4, DNS_REFUSED = 5 };

struct dns_query {
	uint16_t id, type, flags;
	char name[DNS_NAME_SIZE];    /* lower case with dots, without the last; "" for the root */
	bool is_host_name;           /* false: a label holds bytes that no host name has; name shows them as '?' */
	const uint8_t *question;     /* borrowed: as it came, to be sent back */
	size_t question_size;
};

struct dns_answer {
	enum dns_code code;
	uint16_t type;               /* DNS_A, DNS_AAAA or DNS_PTR with data; 0: none */
	uint8_t address[16];         /* 4 bytes of it for DNS_A */
	const char *host;            /* DNS_PTR: borrowed */
};

/*
 * Reads a query. 0; a dns_code (DNS_FORMERR, DNS_NOTIMP) that is to be answered, with id and flags set; -EBADMSG for
 * what gets no answer at all: less than a header, too long, or itself an answer.
 */
int dns_query_parse(const uint8_t *message, size_t size, struct dns_query *ret_query) MUST_USE;

/* The answer in out (DNS_ANSWER_MAX bytes). Its size. */
size_t dns_answer_format(const struct dns_query *query, const struct dns_answer *answer, uint8_t *out);

/* The address that a name below in-addr.arpa or ip6.arpa stands for, as 16 bytes (IPv4 mapped). False: none. */
bool dns_reverse_parse(const char *name, uint8_t ret_address[16]);
