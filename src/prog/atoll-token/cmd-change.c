/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "prog/atoll-token/job.h"

/* revoke, trust, key. */

static bool is_id(const char *text)
{
	return strlen(text) == TOKEN_ID_TEXT_SIZE - 1 && strspn(text, "0123456789abcdef") == strlen(text);
}

/* What is known here under this id. */
static struct ledger_entry *find_by_text(const struct ledger *ledger, const char *text)
{
	for (size_t i = 0; i < ledger->count; i++) {
		char id[TOKEN_ID_TEXT_SIZE];

		token_id_to_text(&ledger->entries[i].id, id);
		if (str_equal(id, text))
			return &ledger->entries[i];
	}
	return NULL;
}

/* The token itself, and with it all that were made from it. */
static int note_token(struct job *job, struct ledger *ledger, struct ledger_entry **ret_entry)
{
	cleanup_token struct token token = { 0 };
	struct token_id ids[TOKEN_BLOCKS_MAX];
	struct token_extent extent;
	int r = job_read_token(job, &token);

	if (r != TOKEN_FINE)
		return r < 0 ? r : job_refuse(job, NULL, TOKEN_MALFORMED);
	token_ids(&token, ids);
	token_extent(&token, &extent);
	*ret_entry = ledger_note(ledger, &ids[token.count - 1], extent.expires_s);
	return 0;
}

int cmd_revoke(struct job *job)
{
	bool by_id = job->word_count && is_id(job->words[0]);
	struct ledger_entry *entry = NULL;
	struct ledger ledger;
	int r = ledger_begin(&ledger, job->store_fd, job->err);

	if (r == 0 && by_id)
		entry = find_by_text(&ledger, job->words[0]);
	else if (r == 0)
		r = note_token(job, &ledger, &entry);
	if (r == 0 && !entry && by_id) {
		r = err_set(job->err, ERR_NOT_FOUND, ENOENT, "token", "no token %s is known here", job->words[0]);
		err_hint(job->err, "`atoll token list` shows the known ones; revoke a token from elsewhere by its "
				   "text: atoll token revoke FILE");
	} else if (r == 0 && !entry) {
		r = err_set(job->err, ERR_STATE, EDQUOT, "token", "too many tokens are remembered");
	}
	if (r == 0) {
		entry->flags |= LEDGER_REVOKED;
		r = ledger_store(&ledger, job->now_s, job->err);
	}
	ledger_close(&ledger);
	return r;
}

static int list_trusted(struct job *job)
{
	char key[TOKEN_KEY_TEXT_SIZE];
	cleanup_buf struct buf out;
	struct json json;

	buf_init(&out, 1 << 20);
	json_init(&json, &out);
	if (job->given.json)
		json_array_begin(&json, NULL);
	for (size_t i = 0; i < job->keys.trusted_count; i++) {
		const struct token_trusted *trusted = &job->keys.trusted[i];

		token_key_format(trusted->key, key);
		if (job->given.json) {
			json_object_begin(&json, NULL);
			json_string(&json, "key", key);
			json_string(&json, "note", trusted->note);
			json_object_end(&json);
		} else {
			buf_printf(&out, "%s  ", key);
			buf_put_escaped(&out, trusted->note, strlen(trusted->note), 0);
			buf_put_char(&out, '\n');
		}
	}
	if (job->given.json) {
		json_array_end(&json);
		buf_put_char(&out, '\n');
	}
	return job_print(job, &out);
}

int cmd_trust(struct job *job)
{
	uint8_t key[TOKEN_KEY_SIZE];
	int r;

	if (!job->word_count)
		return list_trusted(job);
	if (token_key_parse(job->words[0], key) < 0) {
		err_set(job->err, ERR_USAGE, EINVAL, "token", "that is no key");
		err_hint(job->err, "`atoll token key` of whoever mints the tokens prints it: atoll1-key.…");
		return -EINVAL;
	}
	r = job->given.remove ? token_keys_remove(&job->keys, key, job->err)
			      : token_keys_add(&job->keys, key, job->word_count > 1 ? job->words[1] : "", job->err);
	if (r == 1 && job->given.remove)
		return err_set(job->err, ERR_NOT_FOUND, ENOENT, "token", "that key is not trusted");
	return r < 0 ? r : 0;
}

int cmd_key(struct job *job)
{
	char key[TOKEN_KEY_TEXT_SIZE];
	cleanup_buf struct buf out = { 0 };
	int r = token_keys_need(&job->keys, job->err);

	if (r < 0)
		return r;
	token_key_format(job->keys.public, key);
	buf_init(&out, 256);
	buf_printf(&out, "%s\n", key);
	return job_print(job, &out);
}
