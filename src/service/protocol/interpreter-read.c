/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "service/protocol/interpreter.h"
#include "service/protocol/value.h"

static const struct {
	const char *name, *short_name;
} languages[INTERPRETER_LANGUAGE_COUNT] = {
	[INTERPRETER_PYTHON] = { "python", "python3" },
	[INTERPRETER_JAVASCRIPT] = { "javascript", "js" },
	[INTERPRETER_TYPESCRIPT] = { "typescript", "ts" },
	[INTERPRETER_BASH] = { "bash", "sh" },
	[INTERPRETER_R] = { "r", "r" },
	[INTERPRETER_JAVA] = { "java", "java" },
};

const char *interpreter_language_name(enum interpreter_language language)
{
	return languages[language].name;
}

int interpreter_language_find(const char *name, enum interpreter_language *ret_language)
{
	for (size_t i = 0; i < ARRAY_SIZE(languages); i++) {
		if (strcasecmp(name, languages[i].name) != 0 && strcasecmp(name, languages[i].short_name) != 0)
			continue;
		*ret_language = (enum interpreter_language)i;
		return 0;
	}
	return -ENOENT;
}

static int refuse(char why[INTERPRETER_WHY_SIZE], const char *sentence)
{
	(void)!str_copy(why, INTERPRETER_WHY_SIZE, sentence);
	return -EINVAL;
}

static int read_language(struct interpreter_request *request, char why[INTERPRETER_WHY_SIZE])
{
	const char *name = NULL;
	int r = value_string(request->value, "language", &name, why);

	if (r <= 0)
		return r;
	request->has_language = true;
	if (interpreter_language_find(name, &request->language) == 0)
		return 0;
	return refuse(why, "the language is none of python, javascript, typescript, bash, r and java");
}

static bool is_environment(const json_t *env)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)env, name, value)
		if (!json_is_string(value) || !*name || strchr(name, '='))
			return false;
	return true;
}

static int read_execute(struct interpreter_request *request, char why[INTERPRETER_WHY_SIZE])
{
	const json_t *code = json_object_get(request->value, "code");
	const json_t *env = NULL;
	int r = read_language(request, why);

	if (r == 0)
		r = value_string(request->value, "contextId", &request->context, why);
	if (r >= 0)
		r = value_object(request->value, "envVars", &env, why);
	if (r < 0)
		return r;
	if (!json_is_string(code))
		return refuse(why, "\"code\" is no text");
	if (env && !is_environment(env))
		return refuse(why, "\"env_vars\" is not names with texts");
	if (request->context && request->has_language)
		return refuse(why, "\"context_id\" and \"language\" exclude each other");
	request->code = json_string_value(code);
	request->code_size = json_string_length(code);
	request->env = env;
	return 0;
}

static int read_create(struct interpreter_request *request, char why[INTERPRETER_WHY_SIZE])
{
	int r = read_language(request, why);

	if (r == 0)
		r = value_string(request->value, "cwd", &request->cwd, why);
	if (r < 0)
		return r;
	if (request->cwd && strlen(request->cwd) >= INTERPRETER_PATH_SIZE)
		return refuse(why, "\"cwd\" is longer than a path can be");
	return 0;
}

static int read_request(const void *json, size_t size, struct interpreter_request *ret_request,
			int (*read)(struct interpreter_request *request, char why[INTERPRETER_WHY_SIZE]),
			char why[INTERPRETER_WHY_SIZE])
{
	struct interpreter_request request = { 0 };
	int r = value_parse(json, size, &request.value, why);

	if (r < 0)
		return r;
	r = read(&request, why);
	if (r < 0) {
		json_decref(request.value);
		return r;
	}
	*ret_request = request;
	return 0;
}

int interpreter_read_execute(const void *json, size_t size, struct interpreter_request *ret_request,
			     char why[INTERPRETER_WHY_SIZE])
{
	return read_request(json, size, ret_request, read_execute, why);
}

int interpreter_read_create(const void *json, size_t size, struct interpreter_request *ret_request,
			    char why[INTERPRETER_WHY_SIZE])
{
	return read_request(json, size, ret_request, read_create, why);
}

void interpreter_request_done(struct interpreter_request *request)
{
	json_decref(request->value);
	*request = (struct interpreter_request){ 0 };
}
