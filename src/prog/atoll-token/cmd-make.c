/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "base/str.h"
#include "prog/atoll-token/job.h"

/* mint and narrow: a block from the options, and the token with it on stdout. */

enum { EXPIRES_DEFAULT_S = 3600, EXPIRES_MAX_S = 366 * 24 * 3600, MS_PER_S = 1000 };

struct making {
	struct token_block block;
	struct token_right rights[TOKEN_RIGHTS_MAX];
	struct token_right_room rooms[TOKEN_RIGHTS_MAX];
};

static int fail(struct job *job, const char *option, const char *value, const char *problem)
{
	char memory[256];
	struct buf shown;

	buf_init_fixed(&shown, memory, sizeof memory);
	buf_put_escaped(&shown, value, strlen(value), 128);
	err_set(job->err, ERR_USAGE, EINVAL, "token", "--%s %s: %s", option, buf_text(&shown), problem);
	return -EINVAL;
}

static int parse_when(struct job *job, const char *option, const char *value, uint64_t *ret_s)
{
	uint64_t ms;

	if (num_parse_duration(value, &ms) < 0 || ms / MS_PER_S > EXPIRES_MAX_S)
		return fail(job, option, value, "write a time from now, up to 366d: 30m, 8h, 7d");
	*ret_s = job->now_s + ms / MS_PER_S;
	return 0;
}

static int parse_limit(struct job *job, const char *text, uint64_t limits[TOKEN_LIMIT_COUNT])
{
	const char *equals = strchr(text, '=');
	char name[32] = "";
	int found, r;

	if (equals)
		(void)!str_format(name, sizeof name, "%.*s", (int)(equals - text), text);
	found = names_find(token_limit_names, TOKEN_LIMIT_COUNT, name);
	if (found < 0)
		return fail(job, "limit", text, "write NAME=AMOUNT with memory, processes, disk, wall, cpu or network");
	if (found == TOKEN_PROCESSES)
		r = num_parse_count(equals + 1, &limits[found]);
	else if (found == TOKEN_WALL_MS || found == TOKEN_CPU_MS)
		r = num_parse_duration(equals + 1, &limits[found]);
	else
		r = num_parse_size(equals + 1, &limits[found]);
	return r < 0 ? fail(job, "limit", text, "the amount is written like in a policy: 2GiB, 100, 10m") : 0;
}

static int parse_rights(struct job *job, struct making *making)
{
	for (size_t i = 0; i < job->given.allow.count; i++) {
		const char *text = job->given.allow.values[i], *problem;

		if (token_right_parse(text, &making->rooms[i], &making->rights[i], &problem) < 0)
			return fail(job, "allow", text, problem);
	}
	making->block.rights = making->rights;
	making->block.right_count = job->given.allow.count;
	return 0;
}

static int parse_block(struct job *job, struct making *making)
{
	struct token_options *given = &job->given;
	struct token_block *block = &making->block;
	uint64_t uses = 0;
	int r = 0;

	*block = (struct token_block){ .project = given->project,
				       .agent = given->agent.count ? given->agent.values[0] : NULL };
	for (int i = 0; i < TOKEN_LIMIT_COUNT; i++)
		block->limits[i] = UINT64_MAX;
	if (given->agent.count > 1)
		return fail(job, "agent", given->agent.values[1], "a token is for one agent, or for any");
	if (given->uses && (num_parse_u64(given->uses, &uses) < 0 || !uses || uses > UINT32_MAX))
		return fail(job, "uses", given->uses, "write a number from 1 on");
	block->uses = (uint32_t)uses;
	if (given->expires)
		r = parse_when(job, "expires", given->expires, &block->expires_s);
	if (r == 0 && given->not_before)
		r = parse_when(job, "not-before", given->not_before, &block->not_before_s);
	for (size_t i = 0; r == 0 && i < given->limit.count; i++)
		r = parse_limit(job, given->limit.values[i], block->limits);
	return r < 0 ? r : parse_rights(job, making);
}

static int fail_make(struct job *job, int r)
{
	static const struct {
		int error;
		const char *text;
	} causes[] = {
		{ -EPERM, "the token is sealed: it cannot be narrowed any more" },
		{ -ENOSPC, "the token was narrowed as often as it can be" },
		{ -EINVAL, "it says more than a token can hold" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		if (causes[i].error == r)
			return err_set(job->err, ERR_USAGE, -r, "token", "%s", causes[i].text);
	return err_set(job->err, ERR_INTERNAL, -r, "token", "no token can be made: %s", strerror(-r));
}

/* Sealed where that was asked for. */
static int print(struct job *job, struct token *token)
{
	cleanup_token struct token sealed = { 0 };
	cleanup_buf struct buf out = { 0 };
	int r = job->given.seal ? token_seal(token, &sealed) : 0;

	if (r < 0)
		return fail_make(job, r);
	buf_init(&out, TOKEN_TEXT_MAX + 2);
	r = token_format_text(job->given.seal ? &sealed : token, &out);
	buf_put_char(&out, '\n');
	return r < 0 ? fail_make(job, r) : job_print(job, &out);
}

/* So that it can be listed, and revoked by its id. */
static int remember(struct job *job, const struct token *token)
{
	struct token_id ids[TOKEN_BLOCKS_MAX];
	struct ledger_entry *entry;
	struct ledger ledger;
	int r = ledger_begin(&ledger, job->store_fd, job->err);

	token_ids(token, ids);
	if (r == 0) {
		entry = ledger_note(&ledger, &ids[0], token->links[0].block.expires_s);
		if (!entry)
			r = err_set(job->err, ERR_STATE, EDQUOT, "token", "%d tokens are remembered already",
				    LEDGER_ENTRIES_MAX);
		else
			*entry = (struct ledger_entry){ ids[0], job->now_s, token->links[0].block.expires_s, 0,
							LEDGER_MINTED };
	}
	if (r == 0)
		r = ledger_store(&ledger, job->now_s, job->err);
	ledger_close(&ledger);
	return r;
}

int cmd_mint(struct job *job)
{
	static struct making making;
	cleanup_token struct token token = { 0 };
	int r = parse_block(job, &making);

	if (r == 0 && !making.block.expires_s)
		making.block.expires_s = job->now_s + EXPIRES_DEFAULT_S;
	if (r == 0 && !making.block.right_count) {
		err_set(job->err, ERR_USAGE, EINVAL, "token", "what does the token allow?");
		err_hint(job->err, "--allow file.read=/data/**, --allow net.connect=example.org:443, …");
		r = -EINVAL;
	}
	if (r == 0)
		r = token_keys_need(&job->keys, job->err);
	if (r < 0)
		return r;
	r = token_mint(job->keys.seed, &making.block, &token);
	if (r < 0)
		return fail_make(job, r);
	r = remember(job, &token);
	return r < 0 ? r : print(job, &token);
}

int cmd_narrow(struct job *job)
{
	static struct making making;
	cleanup_token struct token token = { 0 }, narrowed = { 0 };
	bool says_nothing;
	int r = parse_block(job, &making);

	if (r == 0)
		r = job_read_token(job, &token);
	if (r < 0)
		return r;
	if (r == TOKEN_MALFORMED || !token_is_genuine(&token))
		return job_refuse(job, NULL, r == TOKEN_MALFORMED ? TOKEN_MALFORMED : TOKEN_FORGED);
	says_nothing = !job->given.allow.count && !job->given.limit.count && !job->given.agent.count &&
		       !job->given.expires && !job->given.not_before && !job->given.uses && !job->given.project;
	if (says_nothing && job->given.seal)
		return print(job, &token);
	if (says_nothing)
		return err_set(job->err, ERR_USAGE, EINVAL, "token", "how is it narrowed? Use --allow, --expires, …");
	r = token_append(&token, &making.block, &narrowed);
	if (r < 0)
		return fail_make(job, r);
	if (!token_narrows(&narrowed)) {
		err_set(job->err, ERR_USAGE, EACCES, "token", "the token does not allow that itself");
		err_hint(job->err, "`atoll token show` shows its rights; a narrower token can only have less");
		return -EACCES;
	}
	return print(job, &narrowed);
}
