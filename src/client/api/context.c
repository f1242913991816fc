/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/context.h"

#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "client/api/fault.h"
#include "client/api/record.h"
#include "wire/link.h"

/*
 * atoll finds its places by a few variables (session/directories.c). A context has the places, and the variables that
 * lead to them and to no others: the process that is started has no other environment.
 */

enum { TIMEOUT_MS = 30000, TIMEOUT_MAX_MS = 24 * 3600 * 1000, VERSION = 0 << 16 | 1 << 8 | 0 };

static const char own_name[] = "/atoll";

uint32_t atoll_version(void)
{
	return VERSION;
}

size_t atoll_escape(const void *bytes, size_t size, char *out, size_t out_size)
{
	struct buf text;

	if (!out_size)
		return 0;
	buf_init_fixed(&text, out, out_size);
	buf_put_escaped(&text, bytes, size, out_size - 1);
	out[text.size < out_size ? text.size : out_size - 1] = 0;
	return text.size;
}

/* ---- the command line's places ---- */

static const char *absolute(const char *const *environment, const char *name)
{
	const char *value = env_find((char *const *)environment, name);

	return value && value[0] == '/' ? value : NULL;
}

static bool is_private(const char *path)
{
	struct stat st;

	return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

static int find_state(const char *const *environment, char out[PATH_MAX])
{
	const char *state_home = absolute(environment, "XDG_STATE_HOME"), *home = absolute(environment, "HOME");
	bool is_root = geteuid() == 0;

	if (state_home && (!is_root || is_private(state_home)))
		return path_join(out, PATH_MAX, state_home, "atoll");
	if (is_root)
		return str_copy(out, PATH_MAX, "/var/lib/atoll");
	return home ? path_join(out, PATH_MAX, home, ".local/state/atoll") : -ENOENT;
}

/* As session_runtime_dir() has it. */
static int find_runtime(const char *const *environment, const char *state, char out[PATH_MAX])
{
	const char *given = absolute(environment, "XDG_RUNTIME_DIR");
	bool is_root = geteuid() == 0;
	char login[64];
	int r = str_format(login, sizeof login, "/run/user/%u", (unsigned)geteuid());

	if (r < 0 || (is_root && str_equal(state, "/var/lib/atoll")))
		return r < 0 ? r : str_copy(out, PATH_MAX, "/run/atoll");
	if (!is_private(given))
		given = is_root && !given ? NULL : login;
	return is_private(given) ? path_join(out, PATH_MAX, given, "atoll") : path_join(out, PATH_MAX, state, "run");
}

/* Of the directory that this file really lies in: atoll alone, such as a script that starts it, is not enough. */
static bool is_program(const char *path, char out[PATH_MAX])
{
	char beside[PATH_MAX], *slash;

	if (access(path, X_OK) < 0 || !realpath(path, out))
		return false;
	slash = strrchr(out, '/');
	slash[slash == out] = 0;
	return path_join(beside, sizeof beside, out, "atoll-init") == 0 && access(beside, X_OK) == 0;
}

/* Where the `atoll` in PATH links to, or the libexec of a prefix whose bin is in PATH. */
static int find_programs(const char *const *environment, char out[PATH_MAX])
{
	static const char *const names[] = { "atoll", "../libexec/atoll/atoll" };
	const char *at = env_find((char *const *)environment, "PATH");
	char path[PATH_MAX];

	while (at && *at) {
		size_t length = strcspn(at, ":");

		for (size_t i = 0; *at == '/' && i < ARRAY_SIZE(names); i++)
			if (str_format(path, sizeof path, "%.*s/%s", (int)length, at, names[i]) == 0 &&
			    is_program(path, out))
				return 0;
		at += length + (at[length] == ':');
	}
	return -ENOENT;
}

int atoll_default_places(atoll_record *context, const char *const *environment, struct atoll_error *error)
{
	const char *home, *config_home;
	char path[PATH_MAX], state[PATH_MAX];
	int r;

	if (atoll_record_kind(context) != ATOLL_CONTEXT || !environment)
		return fault_set(error, ATOLL_E_INVALID, 0, "places", "there is no record of this kind");
	home = absolute(environment, "HOME");
	config_home = absolute(environment, "XDG_CONFIG_HOME");
	r = record_put_string(context, "home", home);
	if (r == 0)
		r = record_put_string(context, "config_home", config_home);
	if (r == 0 && find_programs(environment, path) == 0)
		r = record_put_string(context, "programs", path);
	if (r == 0 && find_state(environment, state) == 0) {
		r = record_put_string(context, "state", state);
		if (r == 0)
			r = find_runtime(environment, state, path);
		if (r == 0)
			r = record_put_string(context, "runtime", path);
	}
	return r < 0 ? fault_errno(error, r, "places") : 0;
}

/* ---- contexts ---- */

static int refuse(struct atoll_error *error, const char *key, const char *why)
{
	return fault_set(error, ATOLL_E_INVALID, 0, "context", "\"%s\" %s", key, why);
}

static const char programs_hint[] = "it is the directory of atoll's programs, such as /usr/libexec/atoll; "
				    "atoll_default_places() finds it by PATH: where atoll links to, or "
				    "../libexec/atoll beside a directory of it";
static const char state_hint[] = "it is where sessions are, such as /home/USER/.local/state/atoll; "
				 "atoll_default_places() makes it of HOME or XDG_STATE_HOME";

/* hint: what to do where it is not set. */
static int take_path(const atoll_record *record, const char *key, const char *hint, char **ret,
		     struct atoll_error *error)
{
	const char *text = record_string(record, key);
	char path[PATH_MAX];

	if (!text) {
		(void)refuse(error, key, "is not set");
		fault_hint(error, "%s", hint);
		return ATOLL_E_INVALID;
	}
	if (text[0] != '/' || path_normalise(path, PATH_MAX, text) < 0)
		return refuse(error, key, "is no absolute path");
	*ret = str_dup(path);
	return *ret ? 0 : fault_errno(error, -ENOMEM, "context");
}

/* NAME=the directory that the place is in, which must have the name that atoll gives it. */
static int put_parent(char **ret, const char *name, const char *key, const char *path, struct atoll_error *error)
{
	if (!str_has_suffix(path, own_name))
		return refuse(error, key, "must end in /atoll");
	*ret = str_printf("%s=%.*s", name, (int)(strlen(path) - strlen(own_name)), path);
	return *ret ? 0 : fault_errno(error, -ENOMEM, "context");
}

static int make_environment(struct atoll_context *context, const atoll_record *record, struct atoll_error *error)
{
	const char *home = record_string(record, "home"), *config_home = record_string(record, "config_home");
	char below[PATH_MAX];
	size_t count = 0;
	int r;

	context->environment = calloc(5, sizeof *context->environment);
	if (!context->environment)
		return fault_errno(error, -ENOMEM, "context");
	r = put_parent(&context->environment[count++], "XDG_STATE_HOME", "state", context->state, error);
	if (r == 0 && (path_join(below, sizeof below, context->state, "run") < 0 ||
		       !str_equal(below, context->runtime)))
		r = put_parent(&context->environment[count++], "XDG_RUNTIME_DIR", "runtime", context->runtime, error);
	/* Without one atoll takes that of the password file. */
	if (r == 0 && home && !(context->environment[count++] = str_printf("HOME=%s", home)))
		r = fault_errno(error, -ENOMEM, "context");
	if (r == 0 && config_home && !(context->environment[count++] = str_printf("XDG_CONFIG_HOME=%s", config_home)))
		r = fault_errno(error, -ENOMEM, "context");
	return r;
}

/* directory may be *path, which is replaced. */
static int add_name(char **path, const char *directory, const char *name, struct atoll_error *error)
{
	char joined[PATH_MAX], *made = NULL;
	int r = path_join(joined, sizeof joined, directory, name);

	if (r == 0 && !(made = str_dup(joined)))
		r = -ENOMEM;
	if (r < 0)
		return r == -ENOMEM ? fault_errno(error, r, "context") : refuse(error, name, "has too long a path");
	free(*path);
	*path = made;
	return 0;
}

/* END always comes, and FAILED where nothing began. */
static void take_events(struct atoll_context *context, const struct atoll_record *record)
{
	const uint64_t all = (UINT64_C(1) << (LINK_EVENT_END + 1)) - 1;
	uint64_t events = all & ~(UINT64_C(1) << LINK_EVENT_LOG), log_events = 0, own_commands = 0;

	(void)record_u64(record, "events", &events);
	(void)record_u64(record, "own_commands", &own_commands);
	if (record_u64(record, "log_events", &log_events) && log_events)
		events |= UINT64_C(1) << LINK_EVENT_LOG;
	context->events = (events & all) | 1u << LINK_EVENT_FAILED | 1u << LINK_EVENT_END;
	context->own_commands = own_commands;
}

/* Whether it can be executed is looked at now, where whoever said so hears of it. */
static int take_programs(struct atoll_context *context, const atoll_record *record, struct atoll_error *error)
{
	int r = take_path(record, "programs", programs_hint, &context->program, error);

	if (r == 0)
		r = add_name(&context->program, context->program, "atoll", error);
	if (r < 0 || access(context->program, X_OK) == 0)
		return r;
	fault_set(error, ATOLL_E_STATE, errno, "context", "%s cannot be executed", context->program);
	fault_hint(error, "\"programs\": %s", programs_hint);
	return ATOLL_E_STATE;
}

int context_need_programs(const struct atoll_context *context, struct atoll_error *error)
{
	if (context->program)
		return 0;
	(void)refuse(error, "programs", "is not set");
	fault_hint(error, "%s", programs_hint);
	return ATOLL_E_INVALID;
}

static int fill(struct atoll_context *context, const atoll_record *record, struct atoll_error *error)
{
	uint64_t timeout_ms = TIMEOUT_MS;
	int r = record_string(record, "programs") ? take_programs(context, record, error) : 0;

	if (r == 0)
		r = take_path(record, "state", state_hint, &context->state, error);
	if (r == 0 && record_string(record, "runtime"))
		r = take_path(record, "runtime", "", &context->runtime, error);
	else if (r == 0)
		r = add_name(&context->runtime, context->state, "run", error);
	if (r < 0)
		return r;
	record_u64(record, "timeout_ms", &timeout_ms);
	context->timeout_ms = timeout_ms > TIMEOUT_MAX_MS ? TIMEOUT_MAX_MS : (int)timeout_ms;
	take_events(context, record);
	return make_environment(context, record, error);
}

int atoll_context_new(const atoll_record *record, atoll_context **ret, struct atoll_error *error)
{
	struct atoll_context *context;
	int r;

	if (atoll_record_kind(record) != ATOLL_CONTEXT || !ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "context", "there is no record of this kind");
	if (getuid() != geteuid() || getgid() != getegid())
		return fault_set(error, ATOLL_E_IDENTITY, 0, "context", "real and effective ids differ");
	context = calloc(1, sizeof *context);
	if (!context)
		return fault_errno(error, -ENOMEM, "context");
	context->references = 1;
	context->pid = getpid();
	context->uid = getuid();
	r = fill(context, record, error);
	if (r < 0)
		atoll_context_free(context);
	else
		*ret = context;
	return r;
}

struct atoll_context *context_ref(struct atoll_context *context)
{
	__atomic_add_fetch(&context->references, 1, __ATOMIC_RELAXED);
	return context;
}

void atoll_context_free(atoll_context *context)
{
	if (!context || __atomic_sub_fetch(&context->references, 1, __ATOMIC_ACQ_REL))
		return;
	strv_free(context->environment);
	free(context->state);
	free(context->runtime);
	free(context->program);
	free(context);
}

int context_check_fork(const struct atoll_context *context, struct atoll_error *error)
{
	if (!context)
		return fault_set(error, ATOLL_E_INVALID, 0, "context", "there is no handle");
	if (context->pid != getpid())
		return fault_set(error, ATOLL_E_FORKED, 0, "context", "the handle belongs to this process's parent");
	return 0;
}

int context_check(const struct atoll_context *context, struct atoll_error *error)
{
	uid_t real, effective, saved;
	int r = context_check_fork(context, error);

	if (r < 0)
		return r;
	if (getresuid(&real, &effective, &saved) < 0 || context->uid != real || context->uid != effective)
		return fault_set(error, ATOLL_E_IDENTITY, 0, "context", "the user of this process has changed");
	return 0;
}
