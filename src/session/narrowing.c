/* SPDX-License-Identifier: Apache-2.0 */
#include "session/narrowing.h"

#include <string.h>

const char *const narrow_outcome_names[NARROW_OUTCOME_COUNT] = {
	[NARROW_TAKEN] = "taken", [NARROW_DECLINED] = "declined", [NARROW_EMPTY] = "empty", [NARROW_FAILED] = "failed",
};

const char narrowing_hint[] =
	"atoll: the policy was narrowed for this run, which may be why; --narrow=off runs with all of it\n";

bool narrowing_holds(const struct run_narrowing *narrowing)
{
	return narrowing && narrowing->outcome == NARROW_TAKEN;
}

void narrowing_to_json(const struct run_narrowing *narrowing, struct json *json)
{
	struct hash text_hash;

	if (!narrowing)
		return;
	json_object_begin(json, "narrowing");
	json_string(json, "outcome", narrow_outcome_names[narrowing->outcome]);
	json_string(json, "by", narrowing->by_person ? "person" : "policy");
	if (narrowing->text) {
		hash_bytes(&text_hash, narrowing->text, strlen(narrowing->text));
		json_hash(json, "hash", &text_hash);
	}
	json_hash(json, "from_hash", &narrowing->from_hash);
	json_bytes(json, "reason", narrowing->reason, strlen(narrowing->reason));
	json_object_end(json);
}
