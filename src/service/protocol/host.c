/* SPDX-License-Identifier: Apache-2.0 */
#include "service/protocol/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/str.h"

enum { HOST_SIZE = 256, PORT_MAX = 65535 };

bool host_id_is_valid(const char *id)
{
	size_t length = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");

	return length > 0 && length < HOST_ID_SIZE && !id[length];
}

static bool read_port(const char *text, uint16_t *ret_port)
{
	uint64_t port;

	if (num_parse_u64(text, &port) < 0 || port == 0 || port > PORT_MAX)
		return false;
	*ret_port = (uint16_t)port;
	return true;
}

/* The host of an authority in lower case, without its port, its brackets and a dot at its end. */
static bool read_name(const char *authority, char out[HOST_SIZE])
{
	bool is_bracketed = *authority == '[';
	size_t length = is_bracketed ? strcspn(++authority, "]") : strcspn(authority, ":");
	const char *rest = authority + length;
	uint16_t port;

	if (length == 0 || length >= HOST_SIZE || (is_bracketed && *rest++ != ']'))
		return false;
	if (*rest && (*rest != ':' || !read_port(rest + 1, &port)))
		return false;
	for (size_t i = 0; i < length; i++) {
		char c = authority[i];

		if (c <= ' ' || c == 0x7f || strchr("/\\@?#[]%", c))
			return false;
		out[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	out[length] = 0;
	if (length > 1 && out[length - 1] == '.')
		out[length - 1] = 0;
	return true;
}

static bool is_address(const char *name)
{
	uint8_t address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* Whether it is one of our domains, or below one. */
static bool is_within(const char *name, const char *const *names)
{
	for (size_t i = 0; i < strv_count(names); i++) {
		size_t length = strlen(names[i]), all = strlen(name);

		if (all >= length && strcasecmp(name + all - length, names[i]) == 0 &&
		    (all == length || name[all - length - 1] == '.'))
			return true;
	}
	return false;
}

static bool is_ours(const char *name, const char *const *names)
{
	static const char *const loopback[] = { "localhost", NULL };

	return is_address(name) || is_within(name, loopback) || is_within(name, names);
}

static int by_headers(const struct host_said *said, struct host_target *target, const char **ret_why)
{
	target->kind = said->sandbox ? HOST_SANDBOX : HOST_API;
	if (!said->sandbox && !said->port)
		return 0;
	if (!said->sandbox || !said->port) {
		*ret_why = "E2b-Sandbox-Id and E2b-Sandbox-Port go together";
		return -EINVAL;
	}
	if (!host_id_is_valid(said->sandbox) || !read_port(said->port, &target->port)) {
		*ret_why = "E2b-Sandbox-Id or E2b-Sandbox-Port cannot be one";
		return -EINVAL;
	}
	memcpy(target->sandbox, said->sandbox, strlen(said->sandbox) + 1);
	return 0;
}

/* "8080-abc.localhost": 1; 0: the first label has no such form. */
static int by_label(const char *name, struct host_target *target)
{
	char label[HOST_SIZE];
	size_t length = strcspn(name, ".");
	char *dash;

	memcpy(label, name, length);
	label[length] = 0;
	dash = strchr(label, '-');
	if (!dash || !name[length])
		return 0;
	*dash++ = 0;
	if (!host_id_is_valid(dash) || !read_port(label, &target->port))
		return 0;
	memcpy(target->sandbox, dash, strlen(dash) + 1);
	target->kind = HOST_SANDBOX;
	target->is_by_name = true;
	return 1;
}

int host_route(const struct host_said *said, const char *const *names, struct host_target *ret_target,
	       const char **ret_why)
{
	struct host_target target = { 0 };
	char name[HOST_SIZE];
	int r = 0;

	if (!said->host || !read_name(said->host, name)) {
		*ret_why = "the Host is missing or malformed";
		return -EINVAL;
	}
	if (!is_ours(name, names)) {
		*ret_why = "the Host is none of this service: `domain:` of its configuration names others";
		return -EPERM;
	}
	if (str_equal(name, "localhost") || is_address(name) || str_has_prefix(name, "sandbox."))
		r = by_headers(said, &target, ret_why);
	else
		(void)by_label(name, &target);
	if (r == 0)
		*ret_target = target;
	return r;
}

static bool is_loopback(const char *name)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, name, &four) == 1)
		return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
	return inet_pton(AF_INET6, name, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

bool host_origin_is_ours(const char *origin, const char *host, const char *const *names)
{
	static const char *const schemes[] = { "http://", "https://" };
	char name[HOST_SIZE], own[HOST_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (str_has_prefix(origin, schemes[i]))
			return read_name(origin + strlen(schemes[i]), name) &&
			       (is_loopback(name) || str_equal(name, "localhost") || strv_has(names, name) ||
				(is_address(name) && host && read_name(host, own) && str_equal(name, own)));
	return false;
}

/* "http://localhost:3000/page" begins with an origin. */
static bool is_referer_ours(const char *referer, const char *host, const char *const *names)
{
	const char *authority = strstr(referer, "://");
	char origin[HOST_SIZE];
	size_t size;

	if (!authority)
		return false;
	size = (size_t)(authority + 3 - referer) + strcspn(authority + 3, "/");
	if (size >= sizeof origin)
		return false;
	memcpy(origin, referer, size);
	origin[size] = 0;
	return host_origin_is_ours(origin, host, names);
}

bool host_page_is_ours(const struct host_page *page, const char *host, const char *const *names)
{
	if (page->origin)
		return host_origin_is_ours(page->origin, host, names);
	return !page->site || str_equal(page->site, "same-origin") || str_equal(page->site, "none") ||
	       str_equal(page->mode, "navigate") || (page->referer && is_referer_ours(page->referer, host, names));
}
