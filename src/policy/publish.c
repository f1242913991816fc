/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/publish.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "policy/decide-net.h"
#include "policy/host-port.h"

static int parse_port(const char *text, uint64_t least, uint16_t *ret_port)
{
	uint64_t port;

	if (num_parse_u64(text, &port) < 0 || port < least || port > UINT16_MAX)
		return -EINVAL;
	*ret_port = (uint16_t)port;
	return 0;
}

int publish_parse_host(const char *text, struct publish_rule *rule)
{
	static const struct {
		const char *prefix;
		bool is_inet6;
	} addresses[] = { { "127.0.0.1:", false }, { "[::1]:", true } };

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		if (!str_has_prefix(text, addresses[i].prefix))
			continue;
		rule->is_inet6 = addresses[i].is_inet6;
		return parse_port(text + strlen(addresses[i].prefix), 0, &rule->host_port);
	}
	/* Another address would put the agent's server on a network: said, and not only "cannot be read". */
	return strchr(text, ':') ? -EADDRNOTAVAIL : parse_port(text, 0, &rule->host_port);
}

int publish_parse(const char *text, struct publish_rule *rule)
{
	const char *colon = strrchr(text, ':');
	char host[64];

	if (!colon)
		return parse_port(text, 1, &rule->port);
	if (str_format(host, sizeof host, "%.*s", (int)(colon - text), text) < 0 ||
	    parse_port(colon + 1, 1, &rule->port) < 0)
		return -EINVAL;
	return publish_parse_host(host, rule);
}

void publish_host_format(const struct publish_rule *rule, char out[PUBLISH_TEXT_SIZE])
{
	if (str_format(out, PUBLISH_TEXT_SIZE, "%s:%u", rule->is_inet6 ? "[::1]" : "127.0.0.1", rule->host_port) < 0)
		out[0] = 0;
}

enum { DNS_PORT = 53 };

int host_port_parse(const char *text, struct host_port *port)
{
	size_t digits = strcspn(text, "=");
	const char *name = text[digits] ? text + digits + 1 : NULL;
	char number[8];
	uint64_t value;

	if (str_format(number, sizeof number, "%.*s", (int)digits, text) < 0 || num_parse_u64(number, &value) < 0 ||
	    !value || value > UINT16_MAX)
		return -EINVAL;
	if (value == DNS_PORT)
		return -EPERM;
	if (name && (!net_host_is_valid(name) || *name == '*' || str_equal(name, "localhost")))
		return -EILSEQ;
	port->port = (uint16_t)value;
	port->name = name;
	return 0;
}

const char *host_port_problem(int error)
{
	if (error == -EPERM)
		return "port 53 answers for names, which would then be looked up past the rules";
	return error == -EILSEQ ? "the name behind \"=\" is no plain lower-case host name"
				: "write PORT or PORT=NAME, such as 11434 or 11434=ollama";
}
