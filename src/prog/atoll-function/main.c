/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-function: what `atoll function` runs. A client of the service, by HTTP and with a key like any other. Exit
 * status: 0; 1: the function failed; 127: there is no function or file of that name; 125: anything else.
 */

#include <curl/curl.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/options.h"
#include "base/program.h"
#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll-function/pack.h"
#include "prog/atoll-function/show.h"

struct function_options {
	const char *name, *entry, *runtime, *memory, *timeout, *concurrency, *data;
	struct option_list env, allow;
	bool internet, json;
};

#define AT(field) offsetof(struct function_options, field)
static const struct option options[] = {
	{ 'n', "name", "NAME", "deploy: what it is called", OPTION_TEXT, AT(name) },
	{ 0, "entry", "FILE:FUNCTION", "deploy: what is called", OPTION_TEXT, AT(entry) },
	{ 0, "runtime", "RUNTIME", "deploy: python, javascript or exec", OPTION_TEXT, AT(runtime) },
	{ 0, "memory", "SIZE", "deploy: of one invocation", OPTION_TEXT, AT(memory) },
	{ 0, "timeout", "TIME", "deploy: of one invocation (30s)", OPTION_TEXT, AT(timeout) },
	{ 0, "concurrency", "N", "deploy: as many at once (8)", OPTION_TEXT, AT(concurrency) },
	{ 'e', "env", "NAME=VALUE", "deploy: a variable", OPTION_LIST, AT(env) },
	{ 0, "allow", "HOST", "deploy: a host that it may reach", OPTION_LIST, AT(allow) },
	{ 0, "internet", NULL, "deploy: it may reach what the policy of the key allows", OPTION_FLAG, AT(internet) },
	{ 'd', "data", "JSON", "invoke: the event (standard input)", OPTION_TEXT, AT(data) },
	{ 0, "json", NULL, "what the service says, as JSON", OPTION_FLAG, AT(json) },
};
#undef AT

enum { WORDS_MAX = 64, PATH_SIZE = 256, EVENT_MAX = 1 << 20, FAILED = 1, PIECE = 64 << 10 };

/* ---- deploy ---- */

/* jansson's json_string() has the name of one of ours (base/json.h), which the linker would take. */
static json_t *new_text(const char *text)
{
	return json_stringn(text, strlen(text));
}

static const char *runtime_of(const struct function_options *given)
{
	static const struct {
		const char *ending, *runtime;
	} endings[] = {
		{ ".py", "python" }, { ".js", "javascript" }, { ".mjs", "javascript" }, { ".cjs", "javascript" },
	};
	const char *colon = strrchr(given->entry, ':');
	size_t length = colon ? (size_t)(colon - given->entry) : strlen(given->entry);

	if (given->runtime)
		return given->runtime;
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		size_t size = strlen(endings[i].ending);

		if (length > size && memcmp(given->entry + length - size, endings[i].ending, size) == 0)
			return endings[i].runtime;
	}
	return "exec";
}

static int put_numbers(const struct function_options *given, json_t *body, struct err *err)
{
	uint64_t memory = 0, timeout_ms = 0, concurrency = 0;

	if (given->memory && num_parse_size(given->memory, &memory) < 0)
		return err_set(err, ERR_USAGE, EINVAL, "deploy", "--memory: write a size, such as 256MiB");
	if (given->timeout && num_parse_duration(given->timeout, &timeout_ms) < 0)
		return err_set(err, ERR_USAGE, EINVAL, "deploy", "--timeout: write a time, such as 10s");
	if (given->concurrency && num_parse_u64(given->concurrency, &concurrency) < 0)
		return err_set(err, ERR_USAGE, EINVAL, "deploy", "--concurrency: write a number");
	if (given->memory)
		json_object_set_new(body, "memoryMB", json_integer((json_int_t)(memory >> 20)));
	if (given->timeout)
		json_object_set_new(body, "timeoutMs", json_integer((json_int_t)timeout_ms));
	if (given->concurrency)
		json_object_set_new(body, "concurrency", json_integer((json_int_t)concurrency));
	return 0;
}

static int put_environment(const struct function_options *given, json_t *body, struct err *err)
{
	json_t *map = json_object();

	json_object_set_new(body, "envVars", map);
	for (size_t i = 0; i < given->env.count; i++) {
		const char *text = given->env.values[i], *equals = strchr(text, '=');
		char shown[ERR_QUOTE_SIZE], name[PATH_SIZE];

		if (!equals || str_format(name, sizeof name, "%.*s", (int)(equals - text), text) < 0 ||
		    json_object_set_new(map, name, new_text(equals + 1)) < 0)
			return err_set(err, ERR_USAGE, EINVAL, "deploy", "--env: %s is not NAME=VALUE",
				       err_quote(shown, text));
	}
	return 0;
}

static int put_archive(const char *path, json_t *body, struct err *err)
{
	cleanup_buf struct buf archive;
	size_t size;
	char *text;
	int r;

	buf_init(&archive, PACK_MAX);
	r = pack_read(path, &archive, err);
	if (r < 0)
		return r;
	size = sodium_base64_encoded_len(archive.size, sodium_base64_VARIANT_ORIGINAL);
	text = malloc(size);
	if (!text)
		return err_set(err, ERR_INTERNAL, ENOMEM, "deploy", "out of memory");
	sodium_bin2base64(text, size, archive.bytes, archive.size, sodium_base64_VARIANT_ORIGINAL);
	json_object_set_new(body, "archive", new_text(text));
	free(text);
	return 0;
}

static int put_all(const struct function_options *given, const char *path, json_t *body, struct err *err)
{
	json_t *allowed = json_array();
	int r;

	json_object_set_new(body, "name", new_text(given->name));
	json_object_set_new(body, "entry", new_text(given->entry));
	json_object_set_new(body, "runtime", new_text(runtime_of(given)));
	json_object_set_new(body, "allowOut", allowed);
	for (size_t i = 0; i < given->allow.count; i++)
		json_array_append_new(allowed, new_text(given->allow.values[i]));
	if (given->internet)
		json_object_set_new(body, "allowInternetAccess", json_true());
	r = put_numbers(given, body, err);
	if (r == 0)
		r = put_environment(given, body, err);
	return r == 0 ? put_archive(path, body, err) : r;
}

static int deploy(const struct function_options *given, char **words, size_t count, struct err *err)
{
	struct request request = { .method = "POST", .path = "/functions" };
	json_t *body = json_object();
	char *text = NULL;
	int r;

	if (!given->name || !given->entry) {
		json_decref(body);
		err_set(err, ERR_USAGE, EINVAL, "deploy", "a function needs --name and --entry");
		err_hint(err, "atoll function deploy --name NAME --entry main.py:handler PATH");
		return -EINVAL;
	}
	r = put_all(given, words[0], body, err);
	if (r == 0)
		text = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	if (r == 0 && !text)
		r = err_set(err, ERR_USAGE, EINVAL, "deploy", "an option is no text of UTF-8");
	if (r == 0) {
		request.body = text;
		request.body_size = strlen(text);
		r = request_send(&request, err);
		if (r == 0)
			r = request.status >= 300 ? show_failure(&request, err) : show_one(&request, given->json, err);
		buf_done(&request.answer);
	}
	free(text);
	return r;
}

/* ---- the others ---- */

/* A name in a path: the service refuses others, which could be another path. */
static int name_path(const char *name, const char *below, char out[PATH_SIZE], struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	if (*name && !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] &&
	    str_format(out, PATH_SIZE, "/functions/%s%s", name, below) == 0)
		return 0;
	return err_set(err, ERR_NOT_FOUND, ENOENT, "function", "%s cannot be the name of a function",
		       err_quote(shown, name));
}

static int send_named(struct request *request, const char *name, const char *below, struct err *err)
{
	char path[PATH_SIZE];
	int r = name_path(name, below, path, err);

	if (r < 0)
		return r;
	request->path = path;
	r = request_send(request, err);
	request->path = NULL;
	return r;
}

static int read_event(const struct function_options *given, struct buf *event, struct err *err)
{
	char bytes[PIECE];
	ssize_t n = 0;

	if (given->data)
		buf_put_text(event, given->data);
	while (!given->data && !isatty(STDIN_FILENO) && buf_error(event) == 0 &&
	       (n = read(STDIN_FILENO, bytes, sizeof bytes)) > 0)
		buf_put(event, bytes, (size_t)n);
	if (n < 0)
		return err_set(err, ERR_STATE, errno, "invoke", "standard input cannot be read: %s",
			       err_errno_name(errno));
	return buf_error(event) < 0 ? err_set(err, ERR_USAGE, EFBIG, "invoke", "the event is larger than 1 MiB") : 0;
}

static int invoke(const struct function_options *given, char **words, size_t count, struct err *err)
{
	struct request request = { .method = "POST" };
	cleanup_buf struct buf event;
	int r;

	buf_init(&event, EVENT_MAX);
	r = read_event(given, &event, err);
	if (r < 0)
		return r;
	request.body = event.size ? event.bytes : (const void *)"";
	request.body_size = event.size;
	r = send_named(&request, words[0], "/invoke", err);
	if (r == 0 && request.status >= 300) {
		r = show_failure(&request, err);
		/* It ran, and failed: that is the function's own. */
		if (request.status == 502 || request.status == 504) {
			fprintf(stderr, "atoll: %s\n", err->message);
			r = FAILED;
		}
	} else if (r == 0) {
		r = show_result(&request, err);
	}
	buf_done(&request.answer);
	return r;
}

static int get(const char *name, const char *below,
	       int (*show)(const struct request *request, bool is_json, struct err *err), bool is_json, struct err *err)
{
	struct request request = { .method = "GET", .path = "/functions" };
	int r = name ? send_named(&request, name, below, err) : request_send(&request, err);

	if (r == 0)
		r = request.status >= 300 ? show_failure(&request, err) : show(&request, is_json, err);
	buf_done(&request.answer);
	return r;
}

static int list(const struct function_options *given, char **words, size_t count, struct err *err)
{
	return get(NULL, "", show_list, given->json, err);
}

static int show(const struct function_options *given, char **words, size_t count, struct err *err)
{
	return get(words[0], "", show_one, given->json, err);
}

static int logs(const struct function_options *given, char **words, size_t count, struct err *err)
{
	return get(words[0], "/logs", show_logs, given->json, err);
}

static int remove_all(const struct function_options *given, char **words, size_t count, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		struct request request = { .method = "DELETE" };

		r = send_named(&request, words[i], "", err);
		if (r == 0 && request.status >= 300)
			r = show_failure(&request, err);
		buf_done(&request.answer);
	}
	return r;
}

/* ---- its verbs ---- */

static const struct verb {
	const char *name, *words;
	size_t words_min, words_max;
	int (*run)(const struct function_options *given, char **words, size_t count, struct err *err);
} verbs[] = {
	{ "deploy", "PATH", 1, 1, deploy }, { "invoke", "NAME", 1, 1, invoke }, { "list", "", 0, 0, list },
	{ "logs", "NAME", 1, 1, logs }, { "remove", "NAME…", 1, WORDS_MAX, remove_all }, { "show", "NAME", 1, 1, show },
};

static const struct verb *find_verb(const char *name, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	for (size_t i = 0; name && i < ARRAY_SIZE(verbs); i++)
		if (str_equal(verbs[i].name, name))
			return &verbs[i];
	if (name)
		err_set(err, ERR_USAGE, EINVAL, "function", "%s is no verb for functions", err_quote(shown, name));
	else
		err_set(err, ERR_USAGE, EINVAL, "function", "no verb for functions was given");
	err_hint(err, "deploy, invoke, list, logs, remove or show; `atoll help function`");
	return NULL;
}

static int run(int argc, char **argv, struct err *err)
{
	struct function_options given = { 0 };
	const struct verb *verb;
	size_t count;
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r < 0)
		return r;
	if (r == 1) {
		printf("atoll-function VERB …: functions of the service; `atoll function` runs it.\n\n");
		fflush(stdout);
		return options_print(options, ARRAY_SIZE(options), STDOUT_FILENO);
	}
	verb = find_verb(argv[rest], err);
	if (!verb)
		return -EINVAL;
	count = (size_t)(argc - rest - 1);
	if (count >= verb->words_min && count <= verb->words_max)
		return verb->run(&given, argv + rest + 1, count, err);
	err_set(err, ERR_USAGE, EINVAL, "function", "wrong number of words");
	err_hint(err, "atoll function %s %s", verb->name, verb->words);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	struct err err = { 0 };
	int r = fd_secure_standard();

	if (r == 0 && (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK))
		r = err_set(&err, ERR_INTERNAL, ENOMEM, "function", "libcurl cannot begin");
	if (r == 0)
		r = run(argc, argv, &err);
	return program_status(r, &err);
}
