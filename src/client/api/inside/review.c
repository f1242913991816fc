/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "base/words.h"
#include "client/api/cursor.h"
#include "client/api/fault.h"
#include "client/api/sandbox.h"

/*
 * What a sandbox changed. Verbs of atoll do it, in processes of their own, for what a sandbox wrote is looked at by
 * atoll-stage alone; their rows come as JSON.
 */

static void add_list(struct words *words, const char *option, const struct atoll_record *record, const char *key)
{
	const char *const *list = NULL;

	if (!record || !atoll_get_strings(record, key, &list))
		return;
	for (; *list; list++) {
		if (option)
			words_add(words, option);
		words_add(words, *list);
	}
}

static int check_paths(const struct atoll_record *record, struct atoll_error *error)
{
	static const char *const keys[] = { "paths", "allow_flagged" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *const *list = NULL;

		if (record && atoll_get_strings(record, keys[i], &list))
			for (; *list; list++)
				if (**list != '/')
					return fault_set(error, ATOLL_E_INVALID, 0, "review",
							 "\"%s\" are absolute paths", keys[i]);
	}
	return 0;
}

static int add_conflicts(struct words *words, const struct atoll_record *record, struct atoll_error *error)
{
	static const char *const options[][2] = {
		{ "ours", "--ours" }, { "theirs", "--theirs" }, { "merge", "--merge" }
	};
	const char *how = record_string(record, "conflicts");

	for (size_t i = 0; how && i < ARRAY_SIZE(options); i++)
		if (str_equal(how, options[i][0])) {
			words_add(words, options[i][1]);
			return 0;
		}
	return how ? fault_set(error, ATOLL_E_INVALID, 0, "review", "\"conflicts\" is ours, theirs or merge") : 0;
}

/* Which of the keys a verb has. */
struct verb {
	const char *name;
	bool has_rows, has_choice, has_dry_run, has_paths, has_number;
};

static int refuse(const char *key, const struct verb *verb, struct atoll_error *error)
{
	return fault_set(error, ATOLL_E_INVALID, 0, "review", "\"%s\" is not for %s", key, verb->name);
}

static int check_keys(const struct verb *verb, const struct atoll_record *record, struct atoll_error *error)
{
	const char *const *list;
	uint64_t number;

	if (!verb->has_paths && atoll_get_strings(record, "paths", &list))
		return refuse("paths", verb, error);
	if (!verb->has_choice && atoll_get_strings(record, "exclude", &list))
		return refuse("exclude", verb, error);
	if (!verb->has_choice && atoll_get_strings(record, "allow_flagged", &list))
		return refuse("allow_flagged", verb, error);
	if (!verb->has_choice && record_string(record, "conflicts"))
		return refuse("conflicts", verb, error);
	if (!verb->has_dry_run && record_u64(record, "dry_run", &number))
		return refuse("dry_run", verb, error);
	return !verb->has_number && record_u64(record, "apply", &number) ? refuse("apply", verb, error)
									  : check_paths(record, error);
}

static int make_words(struct words *words, const struct verb *verb, const struct atoll_sandbox *sandbox,
		      const struct atoll_record *record, char number[24], struct atoll_error *error)
{
	uint64_t value = 0;
	int r = record ? check_keys(verb, record, error) : 0;

	words_add(words, verb->name);
	if (verb->has_rows)
		words_add(words, "--json");
	if (record && r == 0)
		r = add_conflicts(words, record, error);
	if (record_u64(record, "dry_run", &value) && value)
		words_add(words, "--dry-run");
	if (record_u64(record, "apply", &value) && str_format(number, 24, "%llu", (unsigned long long)value) == 0)
		words_add_option(words, "--apply", number);
	add_list(words, "--exclude", record, "exclude");
	add_list(words, "--allow-flagged", record, "allow_flagged");
	words_add(words, "--");
	words_add(words, sandbox->id);
	add_list(words, NULL, record, "paths");
	if (r == 0 && words_error(words) < 0)
		return fault_errno(error, words_error(words), "review");
	return r;
}

static int review(atoll_sandbox *sandbox, const struct verb *verb, const atoll_record *record, atoll_cursor **ret,
		  struct atoll_error *error)
{
	cleanup_words struct words words = { 0 };
	struct atoll_error own = { .size = sizeof own };
	atoll_cursor *cursor;
	char number[24];
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if ((record && atoll_record_kind(record) != ATOLL_REVIEW) || !ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "review", "the record is of another kind");
	error = error ? error : &own;
	r = make_words(&words, verb, sandbox, record, number, error);
	if (r < 0)
		return r;
	cursor = cursor_of_job(sandbox->context, ATOLL_CHANGE, (const char *const *)words.list, error);
	if (!cursor)
		return error->code;
	cursor->is_lax = !verb->has_rows;
	*ret = cursor;
	return 0;
}

int atoll_diff(atoll_sandbox *sandbox, const atoll_record *record, atoll_cursor **ret, struct atoll_error *error)
{
	static const struct verb verb = { "diff", .has_rows = true, .has_paths = true };

	return review(sandbox, &verb, record, ret, error);
}

int atoll_apply(atoll_sandbox *sandbox, const atoll_record *record, atoll_cursor **ret, struct atoll_error *error)
{
	static const struct verb verb = { "apply", .has_rows = true, .has_choice = true, .has_dry_run = true,
					  .has_paths = true };

	return review(sandbox, &verb, record, ret, error);
}

int atoll_undo(atoll_sandbox *sandbox, const atoll_record *record, atoll_cursor **ret, struct atoll_error *error)
{
	static const struct verb verb = { "undo", .has_rows = true, .has_dry_run = true, .has_paths = true,
					  .has_number = true };

	return review(sandbox, &verb, record, ret, error);
}

int atoll_discard(atoll_sandbox *sandbox, const atoll_record *record, atoll_cursor **ret, struct atoll_error *error)
{
	static const struct verb verb = { "discard", .has_paths = true };

	return review(sandbox, &verb, record, ret, error);
}

/* ---- snapshots ---- */

static int request_job(atoll_sandbox *sandbox, const char *const *argv, const char *result_key, uint64_t *ticket,
		       atoll_record **result, struct atoll_error *error)
{
	struct atoll_error own = { .size = sizeof own };
	struct request request = { .ticket = ++sandbox->next_ticket };

	request.job = job_start(sandbox->context, &(struct job_work){ .argv = argv }, error ? error : &own);
	if (!request.job)
		return error ? error->code : own.code;
	request.job->result_key = result_key;
	return sandbox_request(sandbox, &request, ticket, result, error);
}

int atoll_snapshot(atoll_sandbox *sandbox, const atoll_record *record, uint64_t *ticket, atoll_record **result,
		   struct atoll_error *error)
{
	const char *name = record_string(record, "name"), *message = record_string(record, "message");
	const char *argv[8] = { "snapshot", "--json" };
	size_t count = 2;
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if (record && atoll_record_kind(record) != ATOLL_SNAPSHOT)
		return fault_set(error, ATOLL_E_INVALID, 0, "snapshot", "the record is of another kind");
	if (message) {
		argv[count++] = "--message";
		argv[count++] = message;
	}
	argv[count++] = "--";
	argv[count++] = sandbox->id;
	argv[count] = name;
	return request_job(sandbox, argv, "snapshot", ticket, result, error);
}

int atoll_snapshots(atoll_sandbox *sandbox, atoll_cursor **ret, struct atoll_error *error)
{
	const char *const argv[] = { "snapshot", "--list", "--json", "--", sandbox ? sandbox->id : NULL, NULL };
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if (!ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "snapshot", "there is no place for a cursor");
	*ret = cursor_of_job(sandbox->context, ATOLL_SNAPSHOT, argv, error);
	return *ret ? 0 : ATOLL_E_STATE;
}

int atoll_forget(atoll_sandbox *sandbox, const char *snapshot, atoll_cursor **ret, struct atoll_error *error)
{
	const char *const argv[] = { "snapshot", "--remove", "--", sandbox ? sandbox->id : NULL, snapshot, NULL };
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if (!snapshot || !ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "snapshot", "which snapshot?");
	*ret = cursor_of_job(sandbox->context, ATOLL_SNAPSHOT, argv, error);
	if (!*ret)
		return ATOLL_E_STATE;
	(*ret)->is_lax = true;
	return 0;
}

int atoll_restore(atoll_sandbox *sandbox, const char *snapshot, uint64_t *ticket, atoll_record **result,
		  struct atoll_error *error)
{
	const char *const argv[] = { "restore", "--quiet", "--", sandbox ? sandbox->id : NULL, snapshot, NULL };
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if (!snapshot)
		return fault_set(error, ATOLL_E_INVALID, 0, "restore", "which snapshot?");
	return request_job(sandbox, argv, NULL, ticket, result, error);
}
