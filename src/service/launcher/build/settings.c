/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/settings.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/path.h"
#include "service/launcher/store/user.h"
#include "session/directories.h"

static int refuse(const char *what, struct err *err)
{
	return err_set(err, ERR_USAGE, EINVAL, "build", "%s", what);
}

int settings_begin(struct build_settings *ret_settings, const struct service_message *kept)
{
	const char *cwd = kept ? service_string(kept, "cwd") : NULL;

	*ret_settings = (struct build_settings){ .env = strv_copy(kept ? service_strings(kept, "env") : NULL) };
	if (!ret_settings->env)
		return -ENOMEM;
	return str_copy(ret_settings->cwd, sizeof ret_settings->cwd, cwd ? cwd : USER_HOME);
}

static int put_variables(struct buf *out, const char *env, size_t size)
{
	const char *strings[SETTINGS_VARIABLES_MAX + 1] = { NULL };
	size_t count = 0;

	for (size_t at = 0; at < size; at += strlen(env + at) + 1) {
		if (count == SETTINGS_VARIABLES_MAX)
			return -E2BIG;
		strings[count++] = env + at;
	}
	field_put_strings(out, "env", strings);
	return frame_end(out);
}

int settings_of_root(const char *state_dir, const char *name, struct kept *ret_kept)
{
	cleanup_free char *env = NULL;
	cleanup_buf struct buf out;
	char cwd[PATH_MAX];
	size_t size = 0;
	int r;

	buf_init(&out, FRAME_MESSAGE_MAX);
	r = session_root_config(state_dir, name, &env, &size, cwd);
	if (r < 0)
		return r;
	service_begin_request(&out, 1, SERVICE_CREATE);
	if (cwd[0])
		field_put_string(&out, "cwd", cwd);
	r = put_variables(&out, env ? env : "", size);
	return r < 0 ? r : kept_read(ret_kept, out.bytes, out.size);
}

void settings_done(struct build_settings *settings)
{
	strv_free(settings->env);
	settings->env = NULL;
}

int settings_path(const struct build_settings *settings, const char *path, char out[PATH_MAX], struct err *err)
{
	int r;

	if (path[0] == '~')
		return user_path(path, out, err);
	r = path_join(out, PATH_MAX, settings->cwd, *path ? path : ".");
	return r < 0 ? refuse("a path is too long", err) : 0;
}

/* The value of NAME, whose end is not its own; NULL: there is none. */
static const char *find(const struct build_settings *settings, const char *name, size_t length)
{
	for (char **at = settings->env; *at; at++)
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
			return *at + length + 1;
	return NULL;
}

static size_t name_length(const char *text)
{
	size_t length = 0;

	while (isalnum((unsigned char)text[length]) || text[length] == '_')
		length++;
	return isdigit((unsigned char)text[0]) ? 0 : length;
}

/* How much of the text a variable's name takes; 0: here is none. */
static size_t expand_one(const struct build_settings *settings, const char *text, struct buf *out)
{
	bool has_brace = text[1] == '{';
	const char *name = text + 1 + has_brace, *value;
	size_t length = name_length(name);

	if (!length || (has_brace && name[length] != '}'))
		return 0;
	value = find(settings, name, length);
	/* What every shell has, whoever set it. */
	if (!value && length == 4 && memcmp(name, "PATH", 4) == 0)
		value = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	if (!value && length == 4 && memcmp(name, "HOME", 4) == 0)
		value = USER_HOME;
	buf_put_text(out, value ? value : "");
	return 1 + length + 2 * (size_t)has_brace;
}

static void expand(const struct build_settings *settings, const char *text, struct buf *out)
{
	while (*text) {
		size_t used = *text == '$' ? expand_one(settings, text, out) : 0;

		if (!used)
			buf_put_char(out, *text++);
		text += used;
	}
}

static int set_variable(struct build_settings *settings, const char *name, const char *value, struct err *err)
{
	size_t count = strv_count((const char *const *)settings->env), length = strlen(name);
	cleanup_buf struct buf text;
	char **env, *entry;

	buf_init(&text, SETTINGS_VALUE_MAX);
	buf_printf(&text, "%s=", name);
	expand(settings, value, &text);
	if (buf_error(&text) < 0)
		return refuse("a variable is too long", err);
	entry = str_dup(buf_text(&text));
	if (!entry)
		return -ENOMEM;
	for (char **at = settings->env; *at; at++)
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=') {
			free(*at);
			*at = entry;
			return 0;
		}
	env = count < SETTINGS_VARIABLES_MAX ? realloc(settings->env, (count + 2) * sizeof *env) : NULL;
	if (!env) {
		free(entry);
		return refuse("there are too many variables", err);
	}
	env[count] = entry;
	env[count + 1] = NULL;
	settings->env = env;
	return 0;
}

int settings_apply(struct build_settings *settings, const struct build_step *step, struct err *err)
{
	char path[PATH_MAX];
	int r = 0;

	switch (step->type) {
	case STEP_ENV:
		for (size_t i = 0; r == 0 && i + 1 < step->argument_count; i += 2)
			r = set_variable(settings, step->arguments[i], step->arguments[i + 1], err);
		return r;
	case STEP_WORKDIR:
		r = settings_path(settings, step->arguments[0], path, err);
		return r < 0 ? r : str_copy(settings->cwd, sizeof settings->cwd, path);
	case STEP_USER:
		return str_copy(settings->user, sizeof settings->user, step->arguments[0]) < 0
			       ? refuse("the name of a user is too long", err) : 0;
	default:
		return 0;
	}
}
