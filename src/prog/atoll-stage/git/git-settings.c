/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/git/git-settings.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "os/fd.h"

/*
 * Files are read as git reads them (git-config(1), Syntax), one character after the other: whatever this reader takes
 * for something else than git does could hide a setting from it.
 */

enum { FILE_MAX = 1 << 20 };

#define UNREADABLE "[extensions]\n\ttooLarge\n"
#define MARK "\xef\xbb\xbf"

static char *load(int dir_fd, const char *path)
{
	char *text;
	size_t size;
	int r = fd_read_regular_at(dir_fd, path, FILE_MAX, &text, &size);

	/* What nobody can look through is refused for what it may have. */
	if (r == -EFBIG || r == -EACCES || r == -ENXIO)
		return str_dup(UNREADABLE);
	if (r < 0)
		return NULL;
	/* Git goes on behind a NUL in a comment, where a string ends. */
	if (memchr(text, 0, size)) {
		free(text);
		return str_dup(UNREADABLE);
	}
	return text;
}

static void take_variable(const char *name, char out[GIT_IDENTITY_SIZE])
{
	const char *value = getenv(name);

	if (!value || str_copy(out, GIT_IDENTITY_SIZE, value) < 0)
		out[0] = 0;
}

void git_settings_load(int git_fd, struct git_settings *ret_settings)
{
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
	char path[PATH_MAX];

	*ret_settings = (struct git_settings){ 0 };
	take_variable("GIT_AUTHOR_NAME", ret_settings->name);
	take_variable("GIT_AUTHOR_EMAIL", ret_settings->email);
	ret_settings->files[0] = load(git_fd, "config");
	if (home && *home == '/' && str_format(path, sizeof path, "%s/.gitconfig", home) == 0)
		ret_settings->files[1] = load(AT_FDCWD, path);
	if ((config && *config == '/' && str_format(path, sizeof path, "%s/git/config", config) == 0) ||
	    (!config && home && *home == '/' && str_format(path, sizeof path, "%s/.config/git/config", home) == 0))
		ret_settings->files[2] = load(AT_FDCWD, path);
	ret_settings->files[3] = load(AT_FDCWD, "/etc/gitconfig");
}

void git_settings_done(struct git_settings *settings)
{
	for (size_t i = 0; i < GIT_CONFIG_FILES; i++)
		free(settings->files[i]);
	memset(settings->files, 0, sizeof settings->files);
}

/* A value as git reads it: quotes and backslashes mean nothing, a comment ends it, and blanks at its end go. */
static void put_value(const char *at, char out[GIT_IDENTITY_SIZE])
{
	bool is_quoted = false;
	size_t size = 0, kept = 0;

	for (at += strspn(at, " \t"); *at && size < GIT_IDENTITY_SIZE - 1; at++) {
		if (*at == '"') {
			is_quoted = !is_quoted;
			continue;
		}
		if (!is_quoted && (*at == '#' || *at == ';'))
			break;
		if (*at == '\\' && at[1])
			at++;
		if ((unsigned char)*at < ' ')
			continue;
		out[size++] = *at;
		kept = is_quoted || !isblank((unsigned char)*at) ? size : kept;
	}
	out[kept] = 0;
}

/* One assignment of a file. section is in lower case and has no subsection; a value that is not there means "true". */
struct setting {
	char section[32], name[64], value[GIT_IDENTITY_SIZE];
};

/* Collects what the files say of one commit. */
struct reading {
	struct git_settings *settings;
	bool is_repository, for_commit;
	char name[GIT_IDENTITY_SIZE], email[GIT_IDENTITY_SIZE]; /* of the file */
	char *refused;
	size_t refused_size;
};

static void put_lower(const char *text, size_t length, char *out, size_t size)
{
	size_t at = 0;

	for (; at < length && at < size - 1; at++)
		out[at] = (char)tolower((unsigned char)text[at]);
	out[at] = 0;
}

static bool is_on(const char *value)
{
	static const char *const offs[] = { "false", "no", "off", "0", "" };

	for (size_t i = 0; i < ARRAY_SIZE(offs); i++)
		if (strcasecmp(value, offs[i]) == 0)
			return false;
	return true;
}

/* Settings that a commit of atoll's does not follow. name NULL: every one of the section. */
static const struct {
	const char *section, *name;
	bool of_repository_alone, is_switch;
} refusals[] = {
	{ "core", "hookspath", false, false },   { "core", "attributesfile", false, false },
	{ "commit", "gpgsign", false, true },    { "core", "splitindex", false, true },
	{ "index", "sparse", false, true },      { "core", "sparsecheckout", true, true },
	{ "core", "bare", true, true },          { "core", "worktree", true, false },
	{ "i18n", "commitencoding", false, false }, { "include", NULL, true, false },
	{ "includeif", NULL, true, false },      { "extensions", NULL, true, false },
};

static void refuse(struct reading *reading, const struct setting *setting)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (!str_equal(setting->section, refusals[i].section) ||
		    (refusals[i].name && !str_equal(setting->name, refusals[i].name)) ||
		    (refusals[i].of_repository_alone && !reading->is_repository) ||
		    (refusals[i].is_switch && !is_on(setting->value)) || *reading->refused)
			continue;
		if (str_format(reading->refused, reading->refused_size, "%s.%s", setting->section, setting->name) < 0)
			reading->refused[0] = '?';
	}
}

static void take_setting(struct reading *reading, const struct setting *setting)
{
	struct git_settings *settings = reading->settings;
	bool is_core = str_equal(setting->section, "core");

	if (str_equal(setting->section, "user") && str_equal(setting->name, "name"))
		memcpy(reading->name, setting->value, sizeof reading->name);
	if (str_equal(setting->section, "user") && str_equal(setting->name, "email"))
		memcpy(reading->email, setting->value, sizeof reading->email);
	if (is_core && str_equal(setting->name, "autocrlf"))
		settings->converts_line_ends |= is_on(setting->value);
	if (is_core && str_equal(setting->name, "filemode"))
		settings->ignores_modes |= !is_on(setting->value);
	if (reading->for_commit)
		refuse(reading, setting);
}

/* Where a value ends: at the first newline that no backslash joins to the next line, as in a comment none does. */
static char *end_of_value(char *at)
{
	bool is_quoted = false, is_comment = false;

	for (; *at && *at != '\n'; at++) {
		if (is_comment)
			continue;
		if (*at == '\\' && at[1])
			at++;
		else if (*at == '"')
			is_quoted = !is_quoted;
		else
			is_comment = !is_quoted && strchr("#;", *at);
	}
	return at;
}

/* "name = value", or a name alone. Where it ends. */
static char *take_assignment(char *at, struct reading *reading, struct setting *setting)
{
	size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
	char *end;

	put_lower(at, length, setting->name, sizeof setting->name);
	at += length;
	at += strspn(at, " \t");
	end = end_of_value(at);
	if (*at == '=') {
		bool is_last = !*end;

		*end = 0;
		put_value(at + 1, setting->value);
		end += !is_last;
	} else {
		memcpy(setting->value, "true", sizeof "true");
		/* Git goes no further where anything else stands there; here no setting may be missed. */
		end = at;
	}
	take_setting(reading, setting);
	return end;
}

/* "[section]". Of those that matter only includeIf has a subsection. Where it ends. */
static char *take_section(char *at, struct setting *setting)
{
	size_t length = strcspn(at, " \t\r\n]\".");
	bool is_quoted = false;

	put_lower(at, length, setting->section, sizeof setting->section);
	if (at[length] != ']' && !str_equal(setting->section, "includeif"))
		setting->section[0] = 0;
	for (at += length; *at && *at != '\n' && (is_quoted || *at != ']'); at++) {
		if (is_quoted && *at == '\\' && at[1])
			at++;
		else if (*at == '"')
			is_quoted = !is_quoted;
	}
	return at + (*at == ']');
}

static void join_line_ends(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (*text != '\r' || text[1] != '\n')
			*to++ = *text;
	*to = 0;
}

static void parse_file(char *at, struct reading *reading)
{
	struct setting setting = { 0 };

	join_line_ends(at);
	at += str_has_prefix(at, MARK) ? strlen(MARK) : 0;
	while (*(at += strspn(at, " \t\r\n"))) {
		if (*at == '#' || *at == ';')
			at += strcspn(at, "\n");
		else if (*at == '[')
			at = take_section(at + 1, &setting);
		else if (isalnum((unsigned char)*at))
			at = take_assignment(at, reading, &setting);
		else
			at++;
	}
}

/* A commit has room for neither of these, and git leaves them out as well. */
static void drop_special(char *text)
{
	char *to = text;

	for (; *text; text++)
		if ((unsigned char)*text >= ' ' && !strchr("<>", *text))
			*to++ = *text;
	*to = 0;
}

static void take_identity(struct git_settings *settings, const struct reading *reading)
{
	if (!*settings->name)
		memcpy(settings->name, reading->name, sizeof settings->name);
	if (!*settings->email)
		memcpy(settings->email, reading->email, sizeof settings->email);
}

/* Whether git would sign with another name than atoll does: one that the repository alone has. */
static bool is_other(const char *own, const char *taken, bool was_given)
{
	return *own && !was_given && !str_equal(own, taken);
}

int git_settings_parse(struct git_settings *settings, bool for_commit, char *refused, size_t size)
{
	bool has_name = *settings->name, has_email = *settings->email;
	struct reading first = { 0 };

	for (size_t i = 0; i < GIT_CONFIG_FILES; i++) {
		struct reading reading = { .settings = settings, .is_repository = i == 0, .for_commit = for_commit };
		char found[128] = "";

		reading.refused = found;
		reading.refused_size = sizeof found;
		if (!settings->files[i])
			continue;
		parse_file(settings->files[i], &reading);
		if (*found)
			return str_copy(refused, size, found) < 0 ? -EINVAL : -EOPNOTSUPP;
		if (i == 0)
			first = reading;
		if (i > 0 || !for_commit)
			take_identity(settings, &reading);
	}
	if (for_commit && (is_other(first.name, settings->name, has_name) ||
			   is_other(first.email, settings->email, has_email)))
		return str_copy(refused, size, "user.name or user.email") < 0 ? -EINVAL : -EOPNOTSUPP;
	drop_special(settings->name);
	drop_special(settings->email);
	/* A name without an address is none that git takes. */
	if (!*settings->email)
		settings->name[0] = 0;
	return 0;
}
