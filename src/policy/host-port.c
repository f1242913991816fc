/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/host-port.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "policy/decide-net.h"

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
