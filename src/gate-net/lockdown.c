/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/lockdown.h"

#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "gate-net/gate.h"
#include "gate-net/policy-change.h"
#include "os/fd.h"
#include "policy/snapshot/snapshot.h"
#include "supervise/run.h"

/*
 * A rule that injects keeps its place, since those cannot change while a sandbox runs; one that denies the same stands
 * beside it, and wins. Copies keep the order of the rules.
 */
static struct net_rule *deny_all(const struct policy *policy, size_t *ret_count, size_t *ret_exact)
{
	struct net_rule *rules = calloc(2 * policy->network.count + 1, sizeof *rules);
	size_t count = 0, exact = 0;

	for (size_t i = 0; rules && i < policy->network.count; i++) {
		const struct net_rule *from = &policy->network.rules[i];
		bool is_exact = i < policy->network.exact_count;

		if (from->inject.kind != INJECT_NONE) {
			rules[count] = *from;
			rules[count++].limits = NULL;
			exact += is_exact;
		}
		rules[count++] = (struct net_rule){
			.verdict = VERDICT_DENY, .host = from->host, .cidr = from->cidr, .ports = from->ports,
			.port_count = from->port_count, .origin = { "monitor.tighten", "", 0 },
		};
		exact += is_exact;
	}
	*ret_count = count;
	*ret_exact = exact;
	return rules;
}

static int hand_over(struct net_gate *gate, const struct policy *policy)
{
	struct policy_change_asker asker = { .uid = getuid(), .pid = getpid() };
	cleanup_fd int fd = FD_NONE;
	cleanup_buf struct buf bytes;
	struct err err = { 0 };
	int r;

	buf_init(&bytes, SNAPSHOT_SIZE_MAX);
	r = snapshot_store(&bytes, policy, NULL, 0);
	if (r == 0)
		r = fd = fd_memfd_sealed("snapshot", bytes.bytes, bytes.size);
	return r < 0 ? r : policy_change_begin(gate, fd, &asker, &err);
}

int lockdown_begin(struct net_gate *gate)
{
	cleanup_free struct net_rule *rules = NULL;
	struct policy closed = *gate->run->network_policy;
	size_t name_size;
	cleanup_free char *name = NULL;

	if (!gate->is_used || gate->failure[0])
		return 0;
	if (gate->change.is_pending)
		return -EBUSY;
	rules = deny_all(&closed, &closed.network.count, &closed.network.exact_count);
	name_size = strlen(closed.name) + sizeof " (network closed)";
	name = malloc(name_size);
	if (!rules || !name)
		return -ENOMEM;
	if (str_format(name, name_size, "%s (network closed)", closed.name) < 0)
		return -EINVAL;
	closed.name = name;
	closed.network.rules = rules;
	closed.network.host_port_count = 0;
	closed.network.default_verdict = VERDICT_DENY;
	closed.network.default_origin = (struct rule_origin){ "monitor.tighten", "", 0 };
	closed.network.limited = NULL;
	closed.network.limited_count = 0;
	return hand_over(gate, &closed);
}
