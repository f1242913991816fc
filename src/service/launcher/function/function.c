/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/function/function.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

struct function *function_new(struct daemon *daemon, struct kept *made)
{
	struct function *function = calloc(1, sizeof *function);

	if (function)
		function->record = calloc(1, sizeof *function->record);
	if (!function || !function->record) {
		free(function);
		kept_done(made);
		return NULL;
	}
	function->daemon = daemon;
	function->made = *made;
	(void)!str_copy(function->name, sizeof function->name, service_string(made->message, "name"));
	return function;
}

void function_free(struct function *function)
{
	for (size_t i = 0; i < FUNCTION_LOGS; i++)
		free(function->record->logs[i].text);
	free(function->record);
	kept_done(&function->made);
	free(function);
}

uint64_t function_timeout_ms(const struct function *function)
{
	uint64_t ms = service_number(function->made.message, "timeout_ms", FUNCTION_TIMEOUT_DEFAULT_MS);

	return ms ? ms : FUNCTION_TIMEOUT_DEFAULT_MS;
}

uint64_t function_concurrency(const struct function *function)
{
	uint64_t count = service_number(function->made.message, "concurrency", FUNCTION_CONCURRENCY_DEFAULT);

	return count ? count : 1;
}

bool function_is_json(const struct function *function)
{
	return !str_equal(service_string(function->made.message, "runtime"), "exec");
}

int function_directory(const struct daemon *daemon, const char *id, char out[PATH_MAX])
{
	return str_format(out, PATH_MAX, "%s/functions/%s", daemon->places.directory, id);
}

int function_policy(const struct function *function, struct policy_found *ret_found, struct err *err)
{
	struct key_row key;
	int r = database_key_by_number(function->daemon->store, function->key, &key);

	if (r <= 0 || key.is_revoked)
		return err_set(err, ERR_STATE, ENOKEY, "function",
			       "the key that the function was deployed with is gone");
	return policies_find(&function->daemon->policies, key.policy, function->made.message, ret_found, err);
}

void function_note(struct function *function, const struct function_log *log, const char *text)
{
	struct function_record *record = function->record;
	struct function_log *slot = &record->logs[record->invocations % FUNCTION_LOGS];

	free(slot->text);
	*slot = *log;
	slot->text = text && *text ? str_dup(text) : NULL;
	record->times_us[record->invocations % FUNCTION_TIMES] = log->end.us > UINT32_MAX ? UINT32_MAX :
										 (uint32_t)log->end.us;
	record->invocations++;
	record->errors += !str_equal(log->end.ended, "exit") || log->end.exit;
	record->cold += log->is_cold;
}

static int compare(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

static void put_times(const struct function_record *record, struct buf *out)
{
	size_t count = record->invocations < FUNCTION_TIMES ? (size_t)record->invocations : FUNCTION_TIMES;
	uint32_t sorted[FUNCTION_TIMES];

	if (!count)
		return;
	memcpy(sorted, record->times_us, sizeof sorted);
	qsort(sorted, count, sizeof sorted[0], compare);
	field_put_u64(out, "p50_us", sorted[(count - 1) / 2]);
	field_put_u64(out, "p95_us", sorted[(count - 1) * 95 / 100]);
}

/* Names alone: a value may be a credential. */
static void put_names(const struct function *function, struct buf *out)
{
	const char *const *env = service_strings(function->made.message, "env");
	size_t count = strv_count(env), put = 0;
	char **names = calloc(count + 1, sizeof *names);

	for (size_t i = 0; names && i < count; i++) {
		names[put] = str_dup(env[i]);
		if (names[put])
			names[put++][strcspn(env[i], "=")] = 0;
	}
	if (put)
		field_put_strings(out, "env", (const char *const *)names);
	strv_free(names);
}

void function_describe(const struct function *function, struct buf *out, size_t running, size_t warm)
{
	static const char *const keys[] = { "name", "runtime", "entry", "memory_mb", "allow_out" };
	const struct service_message *made = function->made.message;

	field_put_string(out, "function", function->id);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		kept_put(out, made, keys[i]);
	field_put_u64(out, "internet", service_number(made, "internet", 0));
	field_put_u64(out, "timeout_ms", function_timeout_ms(function));
	field_put_u64(out, "concurrency", function_concurrency(function));
	put_names(function, out);
	field_put_u64(out, "created_ms", function->created_ms);
	field_put_u64(out, "invocations", function->record->invocations);
	field_put_u64(out, "errors", function->record->errors);
	field_put_u64(out, "cold", function->record->cold);
	put_times(function->record, out);
	field_put_u64(out, "running", running);
	field_put_u64(out, "warm", warm);
}
