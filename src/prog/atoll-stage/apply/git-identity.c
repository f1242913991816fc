/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/apply/git-identity.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "os/fd.h"

enum { FILE_MAX = 1 << 20 };

static char *load(int dir_fd, const char *path)
{
	char *text;
	size_t size;

	return fd_read_file_at(dir_fd, path, FILE_MAX, &text, &size) < 0 ? NULL : text;
}

static void take_variable(const char *name, char out[IDENTITY_SIZE])
{
	const char *value = getenv(name);

	if (!value || str_copy(out, IDENTITY_SIZE, value) < 0)
		out[0] = 0;
}

void git_identity_load(int git_fd, struct git_identity *ret_identity)
{
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
	char path[PATH_MAX];

	*ret_identity = (struct git_identity){ 0 };
	take_variable("GIT_AUTHOR_NAME", ret_identity->name);
	take_variable("GIT_AUTHOR_EMAIL", ret_identity->email);
	ret_identity->files[0] = load(git_fd, "config");
	if (home && *home == '/' && str_format(path, sizeof path, "%s/.gitconfig", home) == 0)
		ret_identity->files[1] = load(AT_FDCWD, path);
	if ((config && *config == '/' && str_format(path, sizeof path, "%s/git/config", config) == 0) ||
	    (!config && home && *home == '/' && str_format(path, sizeof path, "%s/.config/git/config", home) == 0))
		ret_identity->files[2] = load(AT_FDCWD, path);
}

void git_identity_done(struct git_identity *identity)
{
	for (size_t i = 0; i < IDENTITY_FILES_MAX; i++)
		free(identity->files[i]);
	memset(identity->files, 0, sizeof identity->files);
}

/* A value as git reads it: quotes and backslashes mean nothing, a comment ends it, and blanks at its end go. */
static void put_value(const char *at, char out[IDENTITY_SIZE])
{
	bool is_quoted = false;
	size_t size = 0, kept = 0;

	for (at += strspn(at, " \t"); *at && size < IDENTITY_SIZE - 1; at++) {
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

/* "name = value" behind the blanks of a line; NULL: it is another variable. */
static const char *value_of(const char *line, const char *name)
{
	size_t length = strlen(name);

	line += strspn(line, " \t");
	if (strncasecmp(line, name, length) != 0)
		return NULL;
	line += length;
	line += strspn(line, " \t");
	return *line == '=' ? line + 1 : NULL;
}

static void parse_file(char *text, char name[IDENTITY_SIZE], char email[IDENTITY_SIZE])
{
	bool is_user = false;
	char *line;

	while ((line = strsep(&text, "\n"))) {
		const char *value;

		line += strspn(line, " \t");
		if (*line == '[') {
			is_user = strncasecmp(line, "[user]", 6) == 0;
			line += strcspn(line, "]");
			line += *line == ']';
		}
		if (!is_user)
			continue;
		value = value_of(line, "name");
		if (value)
			put_value(value, name);
		value = value_of(line, "email");
		if (value)
			put_value(value, email);
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

void git_identity_parse(struct git_identity *identity)
{
	for (size_t i = 0; i < IDENTITY_FILES_MAX; i++) {
		char name[IDENTITY_SIZE] = "", email[IDENTITY_SIZE] = "";

		if (!identity->files[i])
			continue;
		parse_file(identity->files[i], name, email);
		if (!*identity->name)
			memcpy(identity->name, name, sizeof name);
		if (!*identity->email)
			memcpy(identity->email, email, sizeof email);
	}
	drop_special(identity->name);
	drop_special(identity->email);
	/* A name without an address is none that git takes. */
	if (!*identity->email)
		identity->name[0] = 0;
}
