/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "prog/atoll-verify/show.h"

static void put_finding(struct json *json, const struct finding *finding)
{
	json_object_begin(json, NULL);
	json_string(json, "id", finding->id);
	json_string(json, "class", class_names[finding->class]);
	json_string(json, "severity", severity_names[finding->severity]);
	json_string(json, "confidence", confidence_names[finding->confidence]);
	json_bool(json, "leaves", finding->leaves);
	json_u64(json, "line", finding->line);
	json_u64(json, "column", finding->column);
	json_u64(json, "end_line", finding->end_line);
	json_u64(json, "end_column", finding->end_column);
	json_u64(json, "start", finding->span.start);
	json_u64(json, "end", finding->span.end);
	json_string(json, "reason", finding->reason);
	json_string(json, "instead", finding->instead);
	json_object_end(json);
}

void show_json(const struct shown *shown, struct buf *out)
{
	const struct verify_result *result = shown->result;
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_bytes(&json, "file", shown->name, strlen(shown->name));
	json_string(&json, "language", language_name(result->language));
	json_u64(&json, "operations", operations_count(result->operations));
	json_u64(&json, "time_us", result->time_us);
	json_u64(&json, "computed_us", result->computed_us);
	json_array_begin(&json, "findings");
	for (size_t i = 0; i < result->count; i++)
		put_finding(&json, &result->findings[i]);
	json_array_end(&json);
	json_object_end(&json);
	buf_put_char(out, '\n');
}

static const char *sarif_level(enum severity severity)
{
	return severity >= SEVERITY_HIGH ? "error" : severity == SEVERITY_MEDIUM ? "warning" : "note";
}

static void put_message(struct json *json, const char *key, const char *text)
{
	json_object_begin(json, key);
	json_string(json, "text", text);
	json_object_end(json);
}

/* Every rule that found something, once. */
static void put_rules(struct json *json, const struct verify_result *result)
{
	json_array_begin(json, "rules");
	for (size_t i = 0; i < result->count; i++) {
		const struct finding *finding = &result->findings[i];
		bool is_known = false;

		for (size_t before = 0; before < i; before++)
			is_known |= strcmp(result->findings[before].id, finding->id) == 0;
		if (is_known)
			continue;
		json_object_begin(json, NULL);
		json_string(json, "id", finding->id);
		put_message(json, "shortDescription", finding->reason);
		if (*finding->instead)
			put_message(json, "help", finding->instead);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_result(struct json *json, const struct shown *shown, const struct finding *finding)
{
	json_object_begin(json, NULL);
	json_string(json, "ruleId", finding->id);
	json_string(json, "level", sarif_level(finding->severity));
	put_message(json, "message", finding->reason);
	json_array_begin(json, "locations");
	json_object_begin(json, NULL);
	json_object_begin(json, "physicalLocation");
	json_object_begin(json, "artifactLocation");
	json_string(json, "uri", strcmp(shown->name, "-") == 0 ? "stdin" : shown->name);
	json_object_end(json);
	json_object_begin(json, "region");
	json_u64(json, "startLine", finding->line);
	json_u64(json, "startColumn", finding->column);
	json_u64(json, "endLine", finding->end_line);
	json_u64(json, "endColumn", finding->end_column);
	json_object_end(json);
	json_object_end(json);
	json_object_end(json);
	json_array_end(json);
	json_object_begin(json, "properties");
	json_string(json, "severity", severity_names[finding->severity]);
	json_string(json, "confidence", confidence_names[finding->confidence]);
	json_string(json, "class", class_names[finding->class]);
	json_object_end(json);
	json_object_end(json);
}

void show_sarif(const struct shown *shown, struct buf *out)
{
	const struct verify_result *result = shown->result;
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_string(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	json_string(&json, "version", "2.1.0");
	json_array_begin(&json, "runs");
	json_object_begin(&json, NULL);
	json_object_begin(&json, "tool");
	json_object_begin(&json, "driver");
	json_string(&json, "name", "atoll-verify");
	json_string(&json, "version", ATOLL_VERSION);
	put_rules(&json, result);
	json_object_end(&json);
	json_object_end(&json);
	json_array_begin(&json, "results");
	for (size_t i = 0; i < result->count; i++)
		put_result(&json, shown, &result->findings[i]);
	json_array_end(&json);
	json_object_end(&json);
	json_array_end(&json);
	json_object_end(&json);
	buf_put_char(out, '\n');
}
