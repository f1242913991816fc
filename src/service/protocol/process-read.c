/* SPDX-License-Identifier: Apache-2.0 */
#include "service/protocol/process.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "service/protocol/value.h"

enum { ARGV_MAX = 4095, ENV_MAX = 1024, SIDE_MAX = 65535 };

static int say(char why[PROCESS_WHY_SIZE], const char *text)
{
	if (str_copy(why, PROCESS_WHY_SIZE, text) < 0)
		why[0] = 0;
	return -EINVAL;
}

/* The program and its words. */
static int put_argv(struct buf *out, const json_t *config, char why[PROCESS_WHY_SIZE])
{
	const json_t *args = NULL;
	const char *cmd = NULL;
	const char **words, **argv;
	size_t count;
	int r = value_string(config, "cmd", &cmd, why);

	if (r >= 0)
		r = value_array(config, "args", &args, why);
	if (r < 0)
		return r;
	if (!cmd || !*cmd)
		return say(why, "\"process.cmd\" names no program");
	words = value_strings(args, ARGV_MAX, why);
	if (!words)
		return -EINVAL;
	count = strv_count(words);
	argv = calloc(count + 2, sizeof *argv);
	if (argv) {
		argv[0] = cmd;
		memcpy(argv + 1, words, count * sizeof *argv);
		field_put_strings(out, "argv", argv);
	}
	free(words);
	free(argv);
	return argv ? 0 : -ENOMEM;
}

static int put_config(struct buf *out, const json_t *config, char why[PROCESS_WHY_SIZE])
{
	const json_t *envs = NULL;
	const char *cwd = NULL;
	char **env;
	int r = put_argv(out, config, why);

	if (r == 0)
		r = value_object(config, "envs", &envs, why);
	if (r >= 0)
		r = value_string(config, "cwd", &cwd, why);
	if (r < 0)
		return r;
	if (cwd && *cwd)
		field_put_string(out, "cwd", cwd);
	env = value_environment(envs, ENV_MAX, why);
	if (!env)
		return -EINVAL;
	if (env[0])
		field_put_strings(out, "env", (const char *const *)env);
	strv_free(env);
	return 0;
}

/* {"size":{"cols":80,"rows":24}}: 1, or 0 where there is no pty. */
static int read_pty(const json_t *request, uint32_t *ret_rows, uint32_t *ret_columns, char why[PROCESS_WHY_SIZE])
{
	const json_t *pty = NULL, *size = NULL;
	uint64_t rows = 0, columns = 0;
	int r = value_object(request, "pty", &pty, why);

	if (r <= 0)
		return r;
	r = value_object(pty, "size", &size, why);
	if (r > 0)
		r = value_number(size, "rows", SIDE_MAX, &rows, why);
	if (r > 0)
		r = value_number(size, "cols", SIDE_MAX, &columns, why);
	if (r < 0)
		return r;
	*ret_rows = rows ? (uint32_t)rows : 24;
	*ret_columns = columns ? (uint32_t)columns : 80;
	return 1;
}

static int put_start(struct buf *out, const json_t *request, bool *ret_has_pty, char why[PROCESS_WHY_SIZE])
{
	const json_t *config = NULL;
	const char *tag = NULL;
	bool has_stdin = true;
	uint32_t rows, columns;
	int r = value_object(request, "process", &config, why);

	if (r == 0)
		return say(why, "\"process\" is missing");
	if (r > 0)
		r = put_config(out, config, why);
	if (r >= 0)
		r = value_string(request, "tag", &tag, why);
	if (r >= 0)
		r = value_bool(request, "stdin", &has_stdin, why);
	if (r >= 0)
		r = read_pty(request, &rows, &columns, why);
	if (r < 0)
		return r;
	*ret_has_pty = r > 0;
	if (r > 0) {
		field_put_u64(out, "pty", 1);
		field_put_u64(out, "rows", rows);
		field_put_u64(out, "columns", columns);
	}
	if (tag && *tag)
		field_put_string(out, "tag", tag);
	if (!has_stdin)
		field_put_u64(out, "stdin", 0);
	return buf_error(out);
}

int process_read_start(const void *json, size_t size, struct buf *out, bool *ret_has_pty, char why[PROCESS_WHY_SIZE])
{
	json_t *request;
	int r = value_parse(json, size, &request, why);

	if (r < 0)
		return r;
	r = put_start(out, request, ret_has_pty, why);
	json_decref(request);
	return r;
}

static int read_selector(const json_t *request, struct process_selector *selector, char why[PROCESS_WHY_SIZE])
{
	const json_t *object = NULL;
	const char *tag = NULL;
	uint64_t pid = 0;
	int r = value_object(request, "process", &object, why);

	*selector = (struct process_selector){ 0 };
	if (r > 0)
		r = value_number(object, "pid", UINT32_MAX, &pid, why);
	if (r >= 0 && object)
		r = value_string(object, "tag", &tag, why);
	if (r < 0)
		return r;
	selector->pid = (uint32_t)pid;
	if (!pid && (!tag || !*tag))
		return say(why, "\"process\" names neither a pid nor a tag");
	if (!pid && str_copy(selector->tag, sizeof selector->tag, tag) < 0)
		return say(why, "\"tag\" is too long");
	return 0;
}

int process_read_selector(const void *json, size_t size, struct process_selector *ret_selector,
			  char why[PROCESS_WHY_SIZE])
{
	json_t *request;
	int r = value_parse(json, size, &request, why);

	if (r < 0)
		return r;
	r = read_selector(request, ret_selector, why);
	json_decref(request);
	return r;
}

int process_read_update(const void *json, size_t size, struct process_selector *ret_selector, uint32_t *ret_rows,
			uint32_t *ret_columns, char why[PROCESS_WHY_SIZE])
{
	json_t *request;
	int r = value_parse(json, size, &request, why);

	if (r < 0)
		return r;
	*ret_rows = *ret_columns = 0;
	r = read_selector(request, ret_selector, why);
	if (r == 0)
		r = read_pty(request, ret_rows, ret_columns, why);
	json_decref(request);
	return r < 0 ? r : 0;
}

int process_read_signal(const void *json, size_t size, struct process_selector *ret_selector, uint32_t *ret_signal,
			char why[PROCESS_WHY_SIZE])
{
	static const struct value_word words[] = {
		{ "SIGNAL_UNSPECIFIED", 0 }, { "SIGNAL_SIGKILL", 9 }, { "SIGNAL_SIGTERM", 15 }, { NULL },
	};
	json_t *request;
	int r = value_parse(json, size, &request, why);

	if (r < 0)
		return r;
	*ret_signal = 0;
	r = read_selector(request, ret_selector, why);
	if (r == 0)
		r = value_enum(request, "signal", words, ret_signal, why);
	json_decref(request);
	return r < 0 ? r : 0;
}

static int read_input(const json_t *request, struct process_input *input, char why[PROCESS_WHY_SIZE])
{
	const json_t *object = NULL;
	int r = read_selector(request, &input->selector, why);

	if (r == 0)
		r = value_object(request, "input", &object, why);
	if (r <= 0)
		return r < 0 ? r : say(why, "\"input\" is missing");
	r = value_bytes(object, "pty", &input->bytes, why);
	input->is_for_pty = r > 0;
	return r == 0 ? value_bytes(object, "stdin", &input->bytes, why) : r;
}

int process_read_input(const void *json, size_t size, size_t max, struct process_input *ret_input,
		       char why[PROCESS_WHY_SIZE])
{
	struct process_input input = { .is_for_pty = false };
	json_t *request;
	int r = value_parse(json, size, &request, why);

	if (r < 0)
		return r;
	buf_init(&input.bytes, max);
	r = read_input(request, &input, why);
	json_decref(request);
	if (r < 0) {
		buf_done(&input.bytes);
		return r;
	}
	*ret_input = input;
	return 0;
}
