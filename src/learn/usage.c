/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/usage.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

static uint64_t number_of(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

/* Whether the kernel counted it: what was only looked at now and then was higher in between. */
static bool is_counted(const json_t *report, const char *limit)
{
	const json_t *limits = json_object_get(json_object_get(report, "enforcement"), "limits");
	const char *holder = json_string_value(json_object_get(limits, limit));

	return holder && strcmp(holder, "cgroup") == 0;
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
		.memory_bytes = is_counted(report, "memory") ? number_of(usage, "memory_peak") : 0,
		.processes = is_counted(report, "processes") ? number_of(usage, "processes_peak") : 0,
		.cpu_ms = number_of(usage, "cpu_ms"),
		.wall_ms = number_of(report, "wall_ms"),
	};
	json_decref(report);
	return 0;
}
