/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-token/job.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"

enum { LINE_MAX_SIZE = 4096, LOG_MAX = 1 << 20, NS_PER_S = 1000000000 };

static const char log_name[] = "log.jsonl", old_log_name[] = "log.jsonl.1";

static int read_text(struct job *job, char *text, size_t *ret_size)
{
	size_t size = 0;
	ssize_t n = 1;

	while (n > 0 && size < TOKEN_TEXT_MAX) {
		n = read(job->input_fd, text + size, TOKEN_TEXT_MAX - size);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			return err_set(job->err, ERR_STATE, errno, "token", "the token cannot be read: %s",
				       strerror(errno));
		else
			size += (size_t)n;
	}
	*ret_size = size;
	return 0;
}

int job_read_token(struct job *job, struct token *ret_token)
{
	char text[TOKEN_TEXT_MAX];
	size_t size = 0;
	int r = 0;

	if (job->input_text)
		r = token_parse_text(ret_token, job->input_text, strlen(job->input_text));
	else
		r = read_text(job, text, &size);
	if (r == 0 && !job->input_text) {
		r = size < sizeof text ? token_parse_text(ret_token, text, size) : -EBADMSG;
		sodium_memzero(text, sizeof text);
	}
	if (r == -ENOMEM)
		return err_set(job->err, ERR_INTERNAL, ENOMEM, "token", "out of memory");
	return r == -EBADMSG ? TOKEN_MALFORMED : r;
}

static struct token_place place_of(const struct job *job)
{
	struct token_place place = { .now_s = job->now_s, .project = job->given.project };

	for (size_t i = 0; i < job->given.agent.count && i < ARRAY_SIZE(place.agents); i++)
		place.agents[i] = job->given.agent.values[i];
	return place;
}

int job_judge(struct job *job, struct token *ret_token)
{
	struct token_place place = place_of(job);
	int r = job_read_token(job, ret_token);

	if (r != TOKEN_FINE)
		return r;
	if (!token_is_genuine(ret_token))
		return TOKEN_FORGED;
	if (!token_keys_trust(&job->keys, ret_token->issuer))
		return TOKEN_UNTRUSTED;
	return (int)token_check(ret_token, &place);
}

static int fail_log(struct job *job, int r)
{
	return err_set(job->err, ERR_STATE, -r, "token", "the log of tokens cannot be written: %s", strerror(-r));
}

/* The one before is kept. */
static void make_room(int dir_fd, int fd)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && st.st_size > LOG_MAX)
		(void)!renameat(dir_fd, log_name, dir_fd, old_log_name);
}

int job_log(struct job *job, const struct token *token, enum token_fault fault)
{
	char memory[LINE_MAX_SIZE], time[CLOCK_RFC3339_SIZE], text[TOKEN_ID_TEXT_SIZE];
	cleanup_fd int fd = FD_NONE;
	struct token_id ids[TOKEN_BLOCKS_MAX];
	struct json json;
	struct buf line;
	int r;

	buf_init_fixed(&line, memory, sizeof memory);
	json_init(&json, &line);
	clock_format_rfc3339(clock_realtime_ns(), time);
	json_object_begin(&json, NULL);
	json_string(&json, "ts", time);
	json_string(&json, "verdict", fault == TOKEN_FINE ? "allow" : "deny");
	json_string(&json, "fault", fault == TOKEN_FINE ? NULL : token_fault_names[fault]);
	if (token) {
		token_ids(token, ids);
		token_id_to_text(&ids[token->count - 1], text);
	}
	json_string(&json, "token", token ? text : NULL);
	json_string(&json, "project", job->given.project);
	json_object_end(&json);
	buf_put_char(&line, '\n');
	fd = fd_open_at(job->store_fd, log_name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
	r = fd < 0 ? fd : buf_error(&line);
	if (r == 0)
		r = fd_write_full(fd, line.bytes, line.size);
	if (r < 0)
		return fail_log(job, r);
	make_room(job->store_fd, fd);
	return 0;
}

int job_refuse(struct job *job, const struct token *token, enum token_fault fault)
{
	static const char *const hints[TOKEN_FAULT_COUNT] = {
		[TOKEN_UNTRUSTED] = "`atoll token trust KEY` takes the tokens of another; `atoll token show` has the "
				    "key",
		[TOKEN_EXPIRED] = "ask for another",
		[TOKEN_USED_UP] = "ask for another",
		[TOKEN_MALFORMED] = "it is one line that begins with atoll1.",
	};
	int r = job->store_fd < 0 ? 0 : job_log(job, token, fault);

	if (r < 0)
		return r;
	err_set(job->err, ERR_POLICY, EACCES, "token", "the token is refused: %s", token_fault_texts[fault]);
	if (hints[fault])
		err_hint(job->err, "%s", hints[fault]);
	return -EACCES;
}

int job_print(struct job *job, struct buf *out)
{
	int r = buf_error(out);

	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, out->bytes, out->size);
	return r < 0 ? err_set(job->err, ERR_STATE, -r, "token", "stdout cannot be written: %s", strerror(-r)) : 0;
}

/* ---- what a token says ---- */

static void put_escaped(struct buf *out, const char *text)
{
	buf_put_escaped(out, text, strlen(text), 0);
}

static void put_time(struct buf *out, uint64_t s)
{
	char text[CLOCK_RFC3339_SIZE];

	if (s > INT64_MAX / NS_PER_S) {
		buf_put_text(out, "never");
		return;
	}
	clock_format_rfc3339(s * NS_PER_S, text);
	buf_printf(out, "%.19sZ", text);
}

static void put_amount(struct buf *out, enum token_limit limit, uint64_t amount)
{
	char text[32];

	if (limit == TOKEN_PROCESSES)
		num_format_count(amount, text);
	else if (limit == TOKEN_WALL_MS || limit == TOKEN_CPU_MS)
		num_format_duration(amount, text);
	else
		num_format_size(amount, text);
	buf_put_text(out, text);
}

static void put_right(struct buf *out, const struct token_right *right)
{
	cleanup_buf struct buf text;

	buf_init(&text, TOKEN_PAYLOAD_MAX * 2);
	token_right_format(right, &text);
	put_escaped(out, buf_text(&text));
}

void job_describe(const struct token *token, struct buf *out)
{
	char id[TOKEN_ID_TEXT_SIZE], key[TOKEN_KEY_TEXT_SIZE];
	struct token_id ids[TOKEN_BLOCKS_MAX];
	struct token_extent extent;

	token_ids(token, ids);
	token_extent(token, &extent);
	token_id_to_text(&ids[token->count - 1], id);
	token_key_format(token->issuer, key);
	buf_printf(out, "token    %s%s\nissuer   %s\nblocks   %zu\nexpires  ", id, token->is_sealed ? ", sealed" : "",
		   key, token->count);
	put_time(out, extent.expires_s);
	if (extent.not_before_s) {
		buf_put_text(out, "\nfrom     ");
		put_time(out, extent.not_before_s);
	}
	if (extent.uses)
		buf_printf(out, "\nuses     %u", extent.uses);
	if (extent.project) {
		buf_put_text(out, "\nproject  ");
		put_escaped(out, extent.project);
	}
	if (extent.agent) {
		buf_put_text(out, "\nagent    ");
		put_escaped(out, extent.agent);
	}
	for (int i = 0; i < TOKEN_LIMIT_COUNT; i++)
		if (extent.limits[i] != UINT64_MAX) {
			buf_printf(out, "\nlimit    %s=", token_limit_names[i]);
			put_amount(out, (enum token_limit)i, extent.limits[i]);
		}
	for (size_t i = 0; i < extent.right_count; i++) {
		buf_put_text(out, "\nallows   ");
		put_right(out, &extent.rights[i]);
	}
	buf_put_char(out, '\n');
}

void job_describe_json(const struct token *token, struct json *json)
{
	char id[TOKEN_ID_TEXT_SIZE], key[TOKEN_KEY_TEXT_SIZE];
	struct token_id ids[TOKEN_BLOCKS_MAX];
	struct token_extent extent;

	token_ids(token, ids);
	token_extent(token, &extent);
	token_id_to_text(&ids[token->count - 1], id);
	token_key_format(token->issuer, key);
	json_string(json, "token", id);
	json_string(json, "issuer", key);
	json_u64(json, "blocks", token->count);
	json_bool(json, "sealed", token->is_sealed);
	json_u64(json, "expires_s", extent.expires_s);
	json_u64(json, "not_before_s", extent.not_before_s);
	json_u64(json, "uses", extent.uses);
	json_string(json, "project", extent.project);
	json_string(json, "agent", extent.agent);
	json_object_begin(json, "limits");
	for (int i = 0; i < TOKEN_LIMIT_COUNT; i++)
		if (extent.limits[i] != UINT64_MAX)
			json_u64(json, token_limit_names[i], extent.limits[i]);
	json_object_end(json);
	json_array_begin(json, "allows");
	for (size_t i = 0; i < extent.right_count; i++) {
		cleanup_buf struct buf text;

		buf_init(&text, TOKEN_PAYLOAD_MAX * 2);
		token_right_format(&extent.rights[i], &text);
		json_string(json, NULL, buf_text(&text));
	}
	json_array_end(json);
}
