/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "egress/dns/dns.h"

static size_t make(uint8_t *out, const char *name, size_t name_size, unsigned type)
{
	static const uint8_t header[DNS_HEADER_SIZE] = { 0x12, 0x34, 0x01, 0x00, 0, 1 };

	memcpy(out, header, sizeof header);
	memcpy(out + DNS_HEADER_SIZE, name, name_size);
	out += DNS_HEADER_SIZE + name_size;
	memcpy(out, (uint8_t[]){ (uint8_t)(type >> 8), (uint8_t)type, 0, 1 }, 4);
	return DNS_HEADER_SIZE + name_size + 4;
}

#define MAKE(out, name, type) make(out, name, sizeof(name), type) /* with the NUL that ends a name */

static void a_question_and_its_answer(void **state)
{
	static const uint8_t expected[] = { 0x12, 0x34, 0x85, 0x80, 0, 1, 0, 1, 0, 0, 0, 0,
					    3, 'A', 'p', 'i', 7, 'e', 'x', 'a', 'm', 'p', 'l', 'e', 0, 0, 1, 0, 1,
					    0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 198, 18, 0, 16 };
	struct dns_answer answer = { .type = DNS_A, .address = { 198, 18, 0, 16 } };
	uint8_t message[512], out[DNS_ANSWER_MAX];
	size_t size = MAKE(message, "\3Api\7example", DNS_A);
	struct dns_query query;

	assert_int_equal(dns_query_parse(message, size, &query), 0);
	assert_string_equal(query.name, "api.example");
	assert_true(query.is_host_name);
	assert_int_equal(query.type, DNS_A);
	assert_int_equal(dns_answer_format(&query, &answer, out), sizeof expected);
	assert_memory_equal(out, expected, sizeof expected);
	answer = (struct dns_answer){ .code = DNS_NXDOMAIN, .type = DNS_A };
	assert_int_equal(dns_answer_format(&query, &answer, out), size);
	assert_int_equal(out[3] & 15, DNS_NXDOMAIN);
	assert_int_equal(out[7], 0);
}

static void names_that_read_as_others(void **state)
{
	uint8_t message[512];
	struct dns_query query;
	size_t size = MAKE(message, "\10evil\0com\7allowed\3com", DNS_A);

	assert_int_equal(dns_query_parse(message, size, &query), 0);
	assert_false(query.is_host_name);
	assert_string_equal(query.name, "evil?com.allowed.com");
	size = MAKE(message, "\13allowed.com", DNS_A);
	assert_int_equal(dns_query_parse(message, size, &query), 0);
	assert_false(query.is_host_name);
	size = MAKE(message, "\4us@r\3com", DNS_A);
	assert_int_equal(dns_query_parse(message, size, &query), 0);
	assert_false(query.is_host_name);
}

static void malformed(void **state)
{
	uint8_t message[DNS_QUERY_MAX + 1] = { 0 };
	size_t size = MAKE(message, "\3api\7example", DNS_A);
	struct dns_query query;

	for (size_t cut = 0; cut < size; cut++)
		assert_int_equal(dns_query_parse(message, cut, &query), cut < DNS_HEADER_SIZE ? -EBADMSG : DNS_FORMERR);
	assert_int_equal(dns_query_parse(message, sizeof message, &query), -EBADMSG);
	message[2] |= 0x80;
	assert_int_equal(dns_query_parse(message, size, &query), -EBADMSG);
	message[2] = 0x28; /* UPDATE */
	assert_int_equal(dns_query_parse(message, size, &query), DNS_NOTIMP);
	message[2] = 0x01;
	message[5] = 2;
	assert_int_equal(dns_query_parse(message, size, &query), DNS_FORMERR);
	message[5] = 1;
	message[7] = 1;
	assert_int_equal(dns_query_parse(message, size, &query), DNS_FORMERR);
	message[7] = 0;
	message[size - 1] = 3; /* CHAOS */
	assert_int_equal(dns_query_parse(message, size, &query), DNS_NOTIMP);
	/* A pointer to itself, and one to the header. */
	size = MAKE(message, "\300\14", DNS_A);
	assert_int_equal(dns_query_parse(message, size, &query), DNS_FORMERR);
	size = MAKE(message, "\3api\300\0", DNS_A);
	assert_int_equal(dns_query_parse(message, size, &query), DNS_FORMERR);
}

static void the_longest_name(void **state)
{
	uint8_t message[1024], out[DNS_ANSWER_MAX];
	struct dns_query query;
	char name[300];
	size_t at = 0;

	for (int i = 0; i < 3; i++, at += 64) {
		name[at] = 63;
		memset(name + at + 1, 'a', 63);
	}
	name[at] = 61;
	memset(name + at + 1, 'a', 61);
	name[at + 62] = 0;
	assert_int_equal(at + 63, 255);
	assert_int_equal(dns_query_parse(message, make(message, name, at + 63, DNS_AAAA), &query), 0);
	assert_int_equal(strlen(query.name), 253);
	assert_true(dns_answer_format(&query, &(struct dns_answer){ .type = DNS_AAAA }, out) < DNS_ANSWER_MAX);
	assert_true(dns_answer_format(&query, &(struct dns_answer){ .type = DNS_PTR, .host = query.name }, out) <
		    DNS_ANSWER_MAX);
	name[at]++;
	name[at + 62] = 'a';
	name[at + 63] = 0;
	assert_int_equal(dns_query_parse(message, make(message, name, at + 64, DNS_A), &query), DNS_FORMERR);
}

static void reverse(void **state)
{
	static const char six[] = "0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.c.6.c.6.f.6.4.7.1.6.d.f.ip6.arpa";
	static const uint8_t expected[16] = { 0xfd, 0x61, 0x74, 0x6f, 0x6c, 0x6c, [15] = 0x10 };
	uint8_t address[16];

	assert_true(dns_reverse_parse("16.0.18.198.in-addr.arpa", address));
	assert_memory_equal(address + 12, ((uint8_t[]){ 198, 18, 0, 16 }), 4);
	assert_true(dns_reverse_parse(six, address));
	assert_memory_equal(address, expected, 16);
	assert_false(dns_reverse_parse("16.0.18.in-addr.arpa", address));
	assert_false(dns_reverse_parse("16.0.18.1980.in-addr.arpa", address));
	assert_false(dns_reverse_parse("1.16.0.18.198.in-addr.arpa", address));
	assert_false(dns_reverse_parse("x.0.18.198.in-addr.arpa", address));
	assert_false(dns_reverse_parse(six + 2, address));
	assert_false(dns_reverse_parse("example.org", address));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_and_its_answer), cmocka_unit_test(names_that_read_as_others),
		cmocka_unit_test(malformed),                 cmocka_unit_test(the_longest_name),
		cmocka_unit_test(reverse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
