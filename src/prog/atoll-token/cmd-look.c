/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "os/clock.h"
#include "prog/atoll-token/job.h"
#include "wire/token.h"

/* show, verify, list: they change nothing. take: what `atoll` and the box have done where a token is presented. */

enum { OUT_MAX = 8 << 20, NS_PER_S = 1000000000 };

static int describe(struct job *job, const struct token *token, int fault)
{
	cleanup_buf struct buf out;
	struct json json;

	buf_init(&out, OUT_MAX);
	if (job->given.json) {
		json_init(&json, &out);
		json_object_begin(&json, NULL);
		job_describe_json(token, &json);
		json_string(&json, "state", token_fault_names[fault]);
		json_object_end(&json);
		buf_put_char(&out, '\n');
	} else {
		job_describe(token, &out);
		buf_printf(&out, "state    %s: %s\n", token_fault_names[fault], token_fault_texts[fault]);
	}
	return job_print(job, &out);
}

/* With what is known of its uses. */
static int judge_now(struct job *job, struct token *ret_token)
{
	int fault = job_judge(job, ret_token), r;
	struct ledger ledger;

	if (fault != TOKEN_FINE || job->store_fd < 0)
		return fault;
	r = ledger_open(&ledger, job->store_fd, job->err);
	if (r == 0)
		r = (int)ledger_judge(&ledger, ret_token);
	ledger_close(&ledger);
	return r;
}

int cmd_show(struct job *job)
{
	cleanup_token struct token token = { 0 };
	int fault = judge_now(job, &token);

	if (fault < 0)
		return fault;
	return fault == TOKEN_MALFORMED ? job_refuse(job, NULL, TOKEN_MALFORMED) : describe(job, &token, fault);
}

int cmd_verify(struct job *job)
{
	cleanup_token struct token token = { 0 };
	int fault = judge_now(job, &token);

	if (fault < 0)
		return fault;
	if (fault != TOKEN_FINE)
		return job_refuse(job, fault == TOKEN_MALFORMED ? NULL : &token, (enum token_fault)fault);
	return describe(job, &token, fault);
}

static void put_entry(const struct ledger_entry *entry, struct job *job, struct json *json)
{
	char id[TOKEN_ID_TEXT_SIZE];

	token_id_to_text(&entry->id, id);
	json_object_begin(json, NULL);
	json_string(json, "token", id);
	json_bool(json, "minted", entry->flags & LEDGER_MINTED);
	json_u64(json, "made_s", entry->made_s);
	if (entry->expires_s == UINT64_MAX)
		json_null(json, "expires_s");
	else
		json_u64(json, "expires_s", entry->expires_s);
	json_bool(json, "expired", entry->expires_s <= job->now_s);
	json_bool(json, "revoked", entry->flags & LEDGER_REVOKED);
	json_u64(json, "used", entry->used);
	json_object_end(json);
}

static void put_line(const struct ledger_entry *entry, struct job *job, struct buf *out)
{
	char id[TOKEN_ID_TEXT_SIZE], expires[CLOCK_RFC3339_SIZE] = "-";

	token_id_to_text(&entry->id, id);
	if (entry->expires_s < INT64_MAX / NS_PER_S)
		clock_format_rfc3339(entry->expires_s * NS_PER_S, expires);
	buf_printf(out, "%s  %-6s  %-19.19s  %4u  %s\n", id, entry->flags & LEDGER_MINTED ? "yes" : "no", expires,
		   entry->used, entry->flags & LEDGER_REVOKED ? "revoked" :
		   entry->expires_s <= job->now_s ? "expired" : "holds");
}

int cmd_list(struct job *job)
{
	struct ledger ledger = { 0 };
	cleanup_buf struct buf out = { 0 };
	struct json json;
	int r = job->store_fd < 0 ? 0 : ledger_open(&ledger, job->store_fd, job->err);

	if (r < 0)
		return r;
	buf_init(&out, OUT_MAX);
	json_init(&json, &out);
	if (job->given.json)
		json_array_begin(&json, NULL);
	else
		buf_printf(&out, "%-32s  %-6s  %-19s  %4s  %s\n", "TOKEN", "MINTED", "EXPIRES (UTC)", "USED", "STATE");
	for (size_t i = 0; i < ledger.count; i++)
		if (job->given.json)
			put_entry(&ledger.entries[i], job, &json);
		else
			put_line(&ledger.entries[i], job, &out);
	if (job->given.json) {
		json_array_end(&json);
		buf_put_char(&out, '\n');
	}
	ledger_close(&ledger);
	return job_print(job, &out);
}

/* ---- take ---- */

static int hand_over(struct job *job, const struct token *token)
{
	struct token_id ids[TOKEN_BLOCKS_MAX];
	char id[TOKEN_ID_TEXT_SIZE];
	struct token_held held = { .id = id };
	struct token_extent extent;
	cleanup_buf struct buf out;
	int r;

	_Static_assert((int)TOKEN_HELD_LIMITS == (int)TOKEN_LIMIT_COUNT, "each limit has its place");
	token_ids(token, ids);
	token_id_to_text(&ids[token->count - 1], id);
	token_extent(token, &extent);
	held.expires_s = extent.expires_s;
	for (size_t i = 0; i < extent.right_count; i++) {
		enum trust_level level = token_right_level(&extent.rights[i]);

		held.count += token_right_is_grant(&extent.rights[i]);
		held.trust = level > held.trust ? level : held.trust;
	}
	memcpy(held.limits, extent.limits, sizeof held.limits);
	buf_init(&out, FRAME_MESSAGE_MAX);
	frame_begin(&out, TOKEN_HOLDS);
	token_held_put(&out, &held);
	for (size_t i = 0; i < extent.right_count; i++) {
		struct grant_terms terms = token_right_terms(&extent.rights[i]);

		if (!token_right_is_grant(&extent.rights[i]))
			continue;
		token_allowance_put(&out, &(struct token_allowance){
			.kind = terms.kind, .flags = terms.flags, .port = terms.port, .subject = terms.subject,
			.method = terms.method, .path = terms.path, .argv = (char **)terms.argv });
	}
	r = frame_end(&out);
	if (r == 0)
		r = frame_send(TOKEN_FD, &out, NULL, 0);
	return r < 0 ? err_set(job->err, ERR_INTERNAL, -r, "token", "the token cannot be passed on: %s", strerror(-r))
		     : 0;
}

/* For whoever cannot read what stands on stderr; the refusal stands, whether it is heard or not. */
static int refuse_taking(struct job *job, const struct token *token, enum token_fault fault)
{
	struct token_id ids[TOKEN_BLOCKS_MAX];
	char id[TOKEN_ID_TEXT_SIZE];
	struct token_refused refused = { .fault = token_fault_names[fault], .id = token ? id : NULL };
	int r = job_refuse(job, token, fault);
	cleanup_buf struct buf out;

	if (token) {
		token_ids(token, ids);
		token_id_to_text(&ids[token->count - 1], id);
	}
	refused.reason = job->err->message;
	buf_init(&out, FRAME_MESSAGE_MAX);
	if (token_refused_put(&out, &refused) == 0)
		(void)!frame_send(TOKEN_FD, &out, NULL, 0);
	return r;
}

/* Counted and written down before anybody acts on it. */
int cmd_take(struct job *job)
{
	cleanup_token struct token token = { 0 };
	struct ledger ledger;
	int fault = job_judge(job, &token), r;

	if (fault < 0)
		return fault;
	if (fault != TOKEN_FINE)
		return refuse_taking(job, fault == TOKEN_MALFORMED ? NULL : &token, (enum token_fault)fault);
	r = ledger_begin(&ledger, job->store_fd, job->err);
	if (r == 0)
		r = fault = (int)ledger_judge(&ledger, &token);
	if (r == 0 && ledger_count_use(&ledger, &token) < 0)
		r = err_set(job->err, ERR_STATE, EDQUOT, "token", "too many tokens are remembered, so no token is "
								  "accepted");
	if (r == 0)
		r = ledger_store(&ledger, job->now_s, job->err);
	ledger_close(&ledger);
	if (r > 0)
		return refuse_taking(job, &token, (enum token_fault)fault);
	if (r == 0)
		r = job_log(job, &token, TOKEN_FINE);
	return r < 0 ? r : hand_over(job, &token);
}
