/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/store/narrowing.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

/* One entry of allow_out or deny_out. */
struct target {
	bool is_block;
	int family;
	uint8_t address[16];
	unsigned bits;               /* of the block's prefix */
	char text[INET6_ADDRSTRLEN + 5];
	const char *host;            /* where it is no block */
};

static int refuse(struct err *err, const char *key, const char *entry, const char *why)
{
	char shown[ERR_QUOTE_SIZE];

	err_set(err, ERR_USAGE, EINVAL, "network", "network.%s: %s %s", key, err_quote(shown, entry), why);
	return -EINVAL;
}

static bool parse_block(const char *entry, struct target *target)
{
	const char *slash = strchr(entry, '/');
	char address[INET6_ADDRSTRLEN], shown[INET6_ADDRSTRLEN];
	uint64_t bits;

	if (str_format(address, sizeof address, "%.*s", slash ? (int)(slash - entry) : (int)strlen(entry), entry) < 0)
		return false;
	target->family = strchr(address, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(target->family, address, target->address) != 1)
		return false;
	bits = target->family == AF_INET6 ? 128 : 32;
	if (slash && (num_parse_u64(slash + 1, &bits) < 0 ||
		      bits > (target->family == AF_INET6 ? 128 : 32)))
		return false;
	target->bits = (unsigned)bits;
	/* What lies behind the prefix says nothing, and a policy refuses it. */
	for (unsigned i = target->bits; i < (target->family == AF_INET6 ? 128u : 32u); i++)
		target->address[i / 8] &= (uint8_t)~(0x80 >> i % 8);
	target->is_block = true;
	return inet_ntop(target->family, target->address, shown, sizeof shown) &&
	       str_format(target->text, sizeof target->text, "%s/%u", shown, target->bits) == 0;
}

/* A name, or a wildcard for all below it. Its form alone: what it may be is the compiler's business. */
static bool is_host(const char *entry)
{
	const char *name = str_has_prefix(entry, "*.") ? entry + 2 : entry;

	return *name && strlen(name) < 254 &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] &&
	       strspn(name, "0123456789.") != strlen(name);
}

static int parse(const char *key, const char *entry, bool takes_hosts, struct target *ret_target, struct err *err)
{
	*ret_target = (struct target){ 0 };
	if (parse_block(entry, ret_target))
		return 0;
	if (!takes_hosts)
		return refuse(err, key, entry, "is no address and no block of addresses");
	ret_target->is_block = false;
	ret_target->host = entry;
	return is_host(entry) ? 0 : refuse(err, key, entry, "is no address, no block of addresses and no name");
}

static bool is_within(const struct target *inner, const struct target *outer)
{
	if (!inner->is_block || inner->family != outer->family || inner->bits < outer->bits)
		return false;
	for (unsigned i = 0; i < outer->bits; i++)
		if ((inner->address[i / 8] ^ outer->address[i / 8]) & 0x80 >> i % 8)
			return false;
	return true;
}

/* All of IPv4 stands for all there is, as clients mean it. */
static bool denies_all(const char *const *denied)
{
	struct target target;

	for (; denied && *denied; denied++)
		if (parse_block(*denied, &target) && !target.bits && target.family == AF_INET)
			return true;
	return false;
}

static int write_allowed(struct buf *out, const char *const *allowed, struct err *err)
{
	struct target target;
	int r = 0;

	buf_put_text(out, "  default: deny\n");
	/* Hosts that the policy lists stay listed by that: what they lead to is denied. */
	if (!allowed || !*allowed)
		buf_put_text(out, "  deny:\n    - {cidr: \"0.0.0.0/0\"}\n    - {cidr: \"::/0\"}\n");
	else
		buf_put_text(out, "  allow:\n");
	for (; r == 0 && allowed && *allowed; allowed++) {
		r = parse("allowOut", *allowed, true, &target, err);
		if (r == 0 && target.is_block)
			buf_printf(out, "    - {cidr: \"%s\"}\n", target.text);
		else if (r == 0)
			buf_printf(out, "    - {host: \"%s\", listed: true}\n", target.host);
	}
	return r;
}

/* What is allowed elsewhere is so anyway. */
static int write_denied(struct buf *out, const char *const *denied, const char *const *allowed, struct err *err)
{
	struct target outer, inner;
	int r = 0;

	buf_put_text(out, "  deny:\n");
	for (; r == 0 && *denied; denied++) {
		r = parse("denyOut", *denied, false, &outer, err);
		if (r == 0)
			buf_printf(out, "    - {cidr: \"%s\"}\n", outer.text);
		for (const char *const *one = allowed; r == 0 && one && *one; one++) {
			r = parse("allowOut", *one, true, &inner, err);
			if (r == 0 && is_within(&inner, &outer))
				r = refuse(err, "allowOut", *one,
					   "lies in what denyOut denies; deny all (0.0.0.0/0) and allow what shall be "
					   "reached");
		}
	}
	return r;
}

int narrowing_write(struct buf *out, const struct service_message *request, struct err *err)
{
	const char *const *allowed = service_strings(request, "allow_out");
	const char *const *denied = service_strings(request, "deny_out");
	uint64_t memory_mb = service_number(request, "memory_mb", 0);
	/* A function has what it says that it needs. */
	bool is_open = service_number(request, "internet", request->operation != SERVICE_FUNCTION_DEPLOY) != 0;
	bool is_closed = !is_open || denies_all(denied), has_network = is_closed || (denied && *denied);
	int r = 0;

	if (!has_network && !memory_mb)
		return 0;
	buf_put_text(out, "atoll: 1\n");
	if (memory_mb)
		buf_printf(out, "resources:\n  memory: %lluMiB\n", (unsigned long long)memory_mb);
	if (has_network)
		buf_put_text(out, "network:\n");
	if (has_network)
		r = is_closed ? write_allowed(out, allowed, err) : write_denied(out, denied, allowed, err);
	if (r == 0 && buf_error(out) < 0)
		r = err_set(err, ERR_INTERNAL, -buf_error(out), "network", "the rules are too long");
	return r < 0 ? r : 1;
}
