/* SPDX-License-Identifier: Apache-2.0 */
#include "session/run-ports.h"

#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "policy/host-port.h"
#include "policy/publish.h"

int run_ports_published(const struct option_list *given, struct publish_rule *rules, struct err *err)
{
	static const struct rule_origin origin = { "run.publish", "", 0 };
	char shown[ERR_QUOTE_SIZE];

	if (given->count > NET_PUBLISH_MAX)
		return err_set(err, ERR_USAGE, E2BIG, "options", "at most %d ports can be published",
			       NET_PUBLISH_MAX);
	for (size_t i = 0; i < given->count; i++) {
		int r = publish_parse(given->values[i], &rules[i]);

		rules[i].origin = origin;
		if (r == 0)
			continue;
		err_set(err, ERR_USAGE, EINVAL, "options", "--publish needs a port, not %s",
			err_quote(shown, given->values[i]));
		err_hint(err, r == -EADDRNOTAVAIL
				      ? "a port is published on loopback only, 127.0.0.1 or [::1]"
				      : "write PORT, HOSTPORT:PORT or 127.0.0.1:HOSTPORT:PORT; 0 is any host port");
		return -EINVAL;
	}
	return 0;
}

static int refuse(const char *text, const char *why, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	err_set(err, ERR_USAGE, EINVAL, "options", "--host-port needs a port of this machine, not %s",
		err_quote(shown, text));
	err_hint(err, "%s", why);
	return -EINVAL;
}

static int refuse_shared(struct err *err)
{
	err_set(err, ERR_USAGE, EINVAL, "options",
		"this policy shares the network of the machine: all of its ports are reached already");
	err_hint(err, "leave --host-port out");
	return -EINVAL;
}

int run_ports_add(const struct option_list *given, struct policy *policy, struct host_port ports[NET_HOST_PORTS_MAX],
		  struct err *err)
{
	static const struct rule_origin origin = { "run.host-port", "", 0 };

	if (given->count && policy->network.mode == NETWORK_HOST)
		return refuse_shared(err);
	for (size_t i = 0; i < policy->network.host_port_count; i++)
		ports[i] = policy->network.host_ports[i];
	policy->network.host_ports = ports;
	for (size_t i = 0; i < given->count; i++) {
		struct host_port port = { .origin = origin };
		int r = host_port_parse(given->values[i], &port);
		const struct host_port *has = policy_host_port(policy, port.port);

		if (r < 0)
			return refuse(given->values[i], host_port_problem(r), err);
		if (!has && policy->network.host_port_count == NET_HOST_PORTS_MAX)
			return err_set(err, ERR_USAGE, E2BIG, "options",
				       "at most %d ports of this machine can be reached", NET_HOST_PORTS_MAX);
		ports[has ? (size_t)(has - ports) : policy->network.host_port_count++] = port;
		policy->network.mode = NETWORK_GATE;
	}
	return 0;
}

static int refuse_wall(const char *name, size_t length, struct err *err)
{
	char text[64], shown[ERR_QUOTE_SIZE];
	const char *nearest;

	if (str_format(text, sizeof text, "%.*s", (int)(length < 60 ? length : 60), name) < 0)
		text[0] = 0;
	nearest = names_nearest(wall_names, WALL_COUNT, text);
	err_set(err, ERR_USAGE, EINVAL, "options", "--degrade: %s is not the name of a wall", err_quote(shown, text));
	if (nearest)
		err_hint(err, "did you mean %s?", nearest);
	else
		err_hint(err, "for example cgroup.memory; atoll-policy(5) lists all of them under degrade");
	return -EINVAL;
}

int run_walls_accept(const char *names, struct policy *policy, struct err *err)
{
	for (size_t length; names && *names; names += length + (names[length] == ',')) {
		unsigned wall = 0;

		length = strcspn(names, ",");
		while (wall < WALL_COUNT &&
		       (strncmp(wall_names[wall], names, length) != 0 || wall_names[wall][length]))
			wall++;
		if (wall == WALL_COUNT)
			return refuse_wall(names, length, err);
		policy->degrade |= 1u << wall;
	}
	return 0;
}
