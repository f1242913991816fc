/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/owner-headers.h"

#include <string.h>

#include "audit/writer.h"
#include "base/str.h"
#include "gate-net/gate.h"
#include "gate-net/link.h"
#include "policy/decide.h"
#include "supervise/run.h"
#include "wire/headers.h"

enum { HTTPS = 443 };

struct noted {
	const char *const *triples;
	const struct owner_headers_asker *by;
};

static void write_headers(struct json *json, const void *context)
{
	const struct noted *noted = context;

	json_string(json, "change", "headers");
	json_u64(json, "uid", noted->by->uid);
	json_u64(json, "asked_by", (uint64_t)noted->by->pid);
	json_array_begin(json, "headers");
	for (const char *const *triple = noted->triples; triple && *triple; triple += 3) {
		json_object_begin(json, NULL);
		json_string(json, "host", triple[0]);
		json_string(json, "name", triple[1]);
		json_object_end(json);
	}
	json_array_end(json);
}

/* At the port of HTTPS, or at one that a rule for it names. */
static bool is_read(const struct policy *policy, const char *host)
{
	if (policy_intercepts(policy, host, HTTPS))
		return true;
	for (size_t i = 0; i < policy->network.count; i++)
		for (size_t k = 0; k < policy->network.rules[i].port_count; k++)
			if (policy_intercepts(policy, host, policy->network.rules[i].ports[k]))
				return true;
	return false;
}

static int check(const struct net_gate *gate, const char *const *triples, struct err *err)
{
	const char *why, *entry;
	char shown[ERR_QUOTE_SIZE];

	if (headers_check(triples, &why, &entry) < 0)
		return err_set(err, ERR_USAGE, EINVAL, "headers", *entry ? "%s: %s" : "%s%s",
			       *entry ? err_quote(shown, entry) : "", why);
	for (const char *const *triple = triples; triple && *triple; triple += 3)
		if (!is_read(gate->run->network_policy, triple[0])) {
			err_set(err, ERR_POLICY, EPERM, "headers",
				"headers cannot be set for %s, since the policy does not read its requests",
				err_quote(shown, triple[0]));
			err_hint(err, "a rule of network.allow for this host with http or inject has them read");
			return -EPERM;
		}
	return 0;
}

int owner_headers_change(struct net_gate *gate, const char *const *triples, const struct owner_headers_asker *by,
			 struct err *err)
{
	const struct noted noted = { triples, by };
	struct audit_event event = { .type = AUDIT_POLICY_CHANGE, .write_detail = write_headers, .context = &noted };
	int r = check(gate, triples, err);

	if (r < 0)
		return r;
	if (!gate_is_there(gate)) {
		if (!triples || !*triples)
			return 0;
		return err_set(err, ERR_STATE, ENETDOWN, "headers", "this sandbox has no network");
	}
	r = audit_write(gate->run->audit, &event);
	if (r >= 0)
		r = audit_flush(gate->run->audit);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "headers", "the log cannot be written: %s", err_errno_name(-r));
	gate_say_headers(gate, triples);
	return 0;
}
