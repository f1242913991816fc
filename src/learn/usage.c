/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/usage.h"

#include <errno.h>
#include <jansson.h>

static uint64_t number_of(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

int usage_parse(const char *bytes, size_t size, struct propose_usage *ret_usage)
{
	json_t *report = json_loadb(bytes, size, JSON_ALLOW_NUL, NULL);
	const json_t *usage = json_object_get(report, "usage");

	if (!usage) {
		json_decref(report);
		return -EBADMSG;
	}
	*ret_usage = (struct propose_usage){
		.memory_bytes = number_of(usage, "memory_peak"),
		.processes = number_of(usage, "processes_peak"),
		.cpu_ms = number_of(usage, "cpu_ms"),
		.wall_ms = number_of(report, "wall_ms"),
	};
	json_decref(report);
	return 0;
}
