/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/dns/dns.h"

#include <string.h>

#include "base/str.h"

enum {
	FLAG_ANSWER = 0x8000, FLAG_OPCODE = 0x7800, FLAG_AUTHORITATIVE = 0x0400, FLAG_RECURSION = 0x0100,
	FLAG_AVAILABLE = 0x0080,
	CLASS_IN = 1, LABEL_MAX = 63, NAME_WIRE_MAX = 255,
	/* Short: a name keeps its address as long as it is in use, but may lose it to others afterwards. */
	TTL_SECONDS = 30,
};

static uint16_t get_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint8_t *put_u16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static char lower(uint8_t byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : (char)byte;
}

static bool is_host_byte(uint8_t byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
	       byte == '-' || byte == '_';
}

/*
 * The name at message[DNS_HEADER_SIZE]. A question has nothing before it that a compression pointer could mean, so a
 * pointer is an error, and with it every loop. Returns where the name ends, or 0.
 */
static size_t parse_name(const uint8_t *message, size_t size, struct dns_query *query)
{
	size_t at = DNS_HEADER_SIZE, used = 0;

	query->is_host_name = true;
	while (at < size && message[at]) {
		size_t length = message[at++];

		if (length > LABEL_MAX || length > size - at || at + length - DNS_HEADER_SIZE >= NAME_WIRE_MAX)
			return 0;
		if (used)
			query->name[used++] = '.';
		for (size_t i = 0; i < length; i++) {
			bool is_fine = is_host_byte(message[at + i]);

			/* A dot or a NUL inside a label would read as another name: "evil.com\0.allowed.com". */
			query->is_host_name = query->is_host_name && is_fine;
			query->name[used++] = is_fine ? lower(message[at + i]) : '?';
		}
		at += length;
	}
	query->name[used] = 0;
	return at < size ? at + 1 : 0;
}

int dns_query_parse(const uint8_t *message, size_t size, struct dns_query *ret_query)
{
	struct dns_query query = { 0 };
	size_t end;

	if (size < DNS_HEADER_SIZE || size > DNS_QUERY_MAX)
		return -EBADMSG;
	query.id = get_u16(message);
	query.flags = get_u16(message + 2);
	if (query.flags & FLAG_ANSWER)
		return -EBADMSG;
	*ret_query = query;
	if (query.flags & FLAG_OPCODE)
		return DNS_NOTIMP;
	/* One question, nothing that claims to be an answer; what stands behind the question (EDNS) is not read. */
	if (get_u16(message + 4) != 1 || get_u16(message + 6))
		return DNS_FORMERR;
	end = parse_name(message, size, &query);
	if (!end || size - end < 4)
		return DNS_FORMERR;
	query.type = get_u16(message + end);
	if (get_u16(message + end + 2) != CLASS_IN)
		return DNS_NOTIMP;
	query.question = message + DNS_HEADER_SIZE;
	query.question_size = end + 4 - DNS_HEADER_SIZE;
	*ret_query = query;
	return 0;
}

static size_t put_name(uint8_t *out, const char *host)
{
	size_t at = 0;

	while (*host) {
		size_t length = strcspn(host, ".");

		if (!length || length > LABEL_MAX || at + length + 2 > NAME_WIRE_MAX)
			return 0;
		out[at++] = (uint8_t)length;
		memcpy(out + at, host, length);
		at += length;
		host += length + (host[length] == '.');
	}
	out[at++] = 0;
	return at;
}

static size_t put_data(uint8_t *out, const struct dns_answer *answer)
{
	if (answer->type == DNS_PTR)
		return put_name(out, answer->host);
	memcpy(out, answer->address, answer->type == DNS_A ? 4 : 16);
	return answer->type == DNS_A ? 4 : 16;
}

/* One record for the name of the question, which stands at offset 12. */
static uint8_t *put_record(uint8_t *at, const struct dns_answer *answer)
{
	size_t size;

	at = put_u16(at, 0xc000 | DNS_HEADER_SIZE);
	at = put_u16(at, answer->type);
	at = put_u16(at, CLASS_IN);
	at = put_u16(at, 0);
	at = put_u16(at, TTL_SECONDS);
	size = put_data(at + 2, answer);
	return put_u16(at, (unsigned)size) + size;
}

size_t dns_answer_format(const struct dns_query *query, const struct dns_answer *answer, uint8_t *out)
{
	bool has_data = answer->type && answer->code == DNS_OK;
	uint8_t *at = put_u16(out, query->id);

	at = put_u16(at, FLAG_ANSWER | FLAG_AUTHORITATIVE | FLAG_AVAILABLE |
			 (query->flags & (FLAG_OPCODE | FLAG_RECURSION)) | (unsigned)answer->code);
	at = put_u16(at, query->question_size ? 1 : 0);
	at = put_u16(at, has_data);
	at = put_u16(at, 0);
	at = put_u16(at, 0);
	if (query->question_size)
		memcpy(at, query->question, query->question_size);
	at += query->question_size;
	if (has_data)
		at = put_record(at, answer);
	return (size_t)(at - out);
}

/* "4.3.2.1" in front of the suffix: the numbers from the last to the first. */
static bool parse_reverse4(const char *name, uint8_t out[4])
{
	for (int i = 3; i >= 0; i--) {
		unsigned value = 0, digits = 0;

		for (; *name >= '0' && *name <= '9' && digits < 3; name++, digits++)
			value = value * 10 + (unsigned)(*name - '0');
		if (!digits || value > 255 || *name++ != '.')
			return false;
		out[i] = (uint8_t)value;
	}
	return str_equal(name, "in-addr.arpa");
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_reverse6(const char *name, uint8_t out[16])
{
	for (int i = 31; i >= 0; i--) {
		int value = hex_value(name[0]);

		if (value < 0 || name[1] != '.')
			return false;
		out[i / 2] = (uint8_t)(i & 1 ? value : out[i / 2] | value << 4);
		name += 2;
	}
	return str_equal(name, "ip6.arpa");
}

bool dns_reverse_parse(const char *name, uint8_t ret_address[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (str_has_suffix(name, ".in-addr.arpa")) {
		memcpy(ret_address, mapped, sizeof mapped);
		return parse_reverse4(name, ret_address + 12);
	}
	return str_has_suffix(name, ".ip6.arpa") && parse_reverse6(name, ret_address);
}
