/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/git/git-attributes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "policy/decide.h"
#include "policy/glob.h"
#include "prog/atoll-stage/review/text.h"

/*
 * Where a line cannot be understood it counts as one that matches: a file is refused rather than stored in another
 * form than git would have stored it.
 */

enum { LIST_MAX = 1 << 20, CHUNK = 64 << 10, CACHED_MAX = 4096 };

/* A directory's list; text NULL: it has none. */
struct list {
	char *directory, *text;      /* owned */
};

struct git_attributes {
	char *system, *user, *info;  /* owned; NULL: there is none */
	struct list *lists;          /* owned */
	size_t count;
};

static char *load(int dir_fd, const char *path)
{
	char *text;
	size_t size;
	int r = fd_read_regular_at(dir_fd, path, LIST_MAX, &text, &size);

	/* What nobody can read through may say anything. */
	if (r == -EFBIG || r == -EACCES || r == -ENXIO)
		return str_dup("* filter=unreadable\n");
	return r < 0 ? NULL : text;
}

int git_attributes_new(int git_fd, struct git_attributes **ret_attributes)
{
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
	struct git_attributes *attributes = calloc(1, sizeof *attributes);
	char path[PATH_MAX];

	if (!attributes)
		return -ENOMEM;
	attributes->lists = calloc(CACHED_MAX, sizeof *attributes->lists);
	attributes->system = load(AT_FDCWD, "/etc/gitattributes");
	attributes->info = load(git_fd, "info/attributes");
	if ((config && *config == '/' && str_format(path, sizeof path, "%s/git/attributes", config) == 0) ||
	    (!config && home && *home == '/' && str_format(path, sizeof path, "%s/.config/git/attributes", home) == 0))
		attributes->user = load(AT_FDCWD, path);
	*ret_attributes = attributes;
	return attributes->lists ? 0 : -ENOMEM;
}

void git_attributes_free(struct git_attributes *attributes)
{
	if (!attributes)
		return;
	for (size_t i = 0; i < attributes->count; i++) {
		free(attributes->lists[i].directory);
		free(attributes->lists[i].text);
	}
	free(attributes->lists);
	free(attributes->system);
	free(attributes->user);
	free(attributes->info);
	free(attributes);
}

/* ---- a directory's list ---- */

static char *read_staged(const struct git_change_context *context, const struct stage_change *change)
{
	struct text text = { 0 };
	char *copy = NULL;

	if (text_load(context->opened, change, SIDE_STAGED, LIST_MAX, &text) == 0 && text.kind == TEXT_LINES)
		copy = strndup(text.bytes, text.size);
	text_done(&text);
	return copy ? copy : str_dup("* filter=unreadable\n");
}

/* As it will be once everything is applied. */
static char *load_list(const struct git_change_context *context, const char *wanted)
{
	char full[PATH_MAX];

	for (size_t i = 0; i < context->apply->count; i++) {
		const struct apply_item *item = &context->apply->items[i];
		const char *path = item->verdict == APPLY_TAKEN && git_change_is_file(item->change->staged_exists,
										      &item->change->staged)
					   ? git_change_path(context, item->change, full) : NULL;

		if (path && str_equal(path, wanted))
			return read_staged(context, item->change);
	}
	if (str_format(full, sizeof full, "%s/%s", context->root, wanted) < 0)
		return NULL;
	return load(AT_FDCWD, full);
}

static const char *find_list(struct git_attributes *attributes, const struct git_change_context *context,
			     const char *directory)
{
	char wanted[PATH_MAX];
	struct list *list;

	for (size_t i = attributes->count; i-- > 0;)
		if (str_equal(attributes->lists[i].directory, directory))
			return attributes->lists[i].text;
	if (attributes->count == CACHED_MAX ||
	    str_format(wanted, sizeof wanted, "%s%s.gitattributes", directory, *directory ? "/" : "") < 0)
		return "* filter=unreadable\n";
	list = &attributes->lists[attributes->count];
	list->directory = str_dup(directory);
	if (!list->directory)
		return "* filter=unreadable\n";
	attributes->count++;
	list->text = load_list(context, wanted);
	return list->text;
}

/* ---- what the lists say ---- */

struct state {
	char filter[64];             /* "": none */
	bool encodes, has_ident, has_text, is_auto, has_no_text;
};

static bool matches(const char *pattern, const char *directory, const char *path)
{
	char glob[PATH_MAX], absolute[PATH_MAX];
	size_t length = strlen(pattern);
	const char *slash = strchr(pattern, '/');

	if (*pattern == '"' || *pattern == '!')
		return true;
	if (length && pattern[length - 1] == '/')
		return false;
	if (str_format(absolute, sizeof absolute, "/%s", path) < 0 ||
	    str_format(glob, sizeof glob, "/%s%s%s%s", directory, *directory ? "/" : "", slash ? "" : "**/",
		       *pattern == '/' ? pattern + 1 : pattern) < 0 ||
	    strpbrk(directory, "*?[\\"))
		return true;
	return glob_problem(glob) || glob_match(glob, absolute);
}

static void set_text(struct state *state, const char *value)
{
	state->has_no_text = false;
	state->has_text = !str_equal(value, "auto");
	state->is_auto = !state->has_text;
}

static void unset_text(struct state *state, bool is_said)
{
	state->has_text = state->is_auto = false;
	state->has_no_text = is_said;
}

/* One word behind a pattern: "name", "-name", "!name" or "name=value". */
static void take_attribute(struct state *state, const char *word)
{
	bool is_off = *word == '-' || *word == '!';
	const char *name = word + is_off, *equals = strchr(name, '='), *value = equals ? equals + 1 : "";
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	const struct {
		const char *name;
		bool *flag;
	} flags[] = { { "working-tree-encoding", &state->encodes }, { "ident", &state->has_ident } };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (strlen(flags[i].name) == length && strncmp(name, flags[i].name, length) == 0)
			*flags[i].flag = !is_off;
	if (length == 6 && strncmp(name, "filter", length) == 0)
		(void)!str_format(state->filter, sizeof state->filter, "%.60s", is_off ? "" : *value ? value : "?");
	if (length == 6 && strncmp(name, "binary", length) == 0 && !is_off)
		unset_text(state, true);
	if (length == 4 && (strncmp(name, "text", length) == 0 || strncmp(name, "crlf", length) == 0)) {
		if (is_off)
			unset_text(state, *word == '-');
		else
			set_text(state, value);
	}
	if (length == 3 && strncmp(name, "eol", length) == 0 && !is_off && !state->has_no_text && !state->is_auto)
		state->has_text = true;
}

/* A macro gives a name to attributes: what has such a name is not known, so every file may have it. */
static void take_macro(struct state *state, const char *line)
{
	static const char *const names[] = { "filter", "text", "eol", "crlf", "ident", "working-tree-encoding" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strstr(line, names[i]))
			(void)!str_format(state->filter, sizeof state->filter, "of a macro");
}

static void take_list(struct state *state, const char *text, const char *directory, const char *path)
{
	static const char blanks[] = " \t\r";
	char *copy = text ? str_dup(text) : NULL, *at = copy, *line, *word;

	if (text && !copy)
		(void)!str_format(state->filter, sizeof state->filter, "unreadable");
	while (at && (line = strsep(&at, "\n"))) {
		line += strspn(line, blanks);
		if (!*line || *line == '#')
			continue;
		if (str_has_prefix(line, "[attr]")) {
			take_macro(state, line);
			continue;
		}
		word = strsep(&line, blanks);
		if (!matches(word, directory, path))
			continue;
		while ((word = strsep(&line, blanks)))
			if (*word)
				take_attribute(state, word);
	}
	free(copy);
}

static void take_lists(struct git_attributes *attributes, const struct git_change_context *context, const char *path,
		       struct state *state)
{
	char directory[PATH_MAX];

	take_list(state, attributes->system, "", path);
	take_list(state, attributes->user, "", path);
	take_list(state, find_list(attributes, context, ""), "", path);
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		if (str_format(directory, sizeof directory, "%.*s", (int)(slash - path), path) == 0)
			take_list(state, find_list(attributes, context, directory), directory, path);
	take_list(state, attributes->info, "", path);
}

/* ---- the bytes ---- */

struct content {
	bool has_crlf, has_nul, has_id;
};

static int look(int fd, struct content *content)
{
	static char bytes[CHUNK + 4];
	size_t kept = 0;
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(fd, bytes + kept, CHUNK, at);
		size_t size = kept + (n > 0 ? (size_t)n : 0);

		if (n < 0)
			return -errno;
		content->has_crlf |= memmem(bytes, size, "\r\n", 2) != NULL;
		content->has_nul |= memchr(bytes, 0, size) != NULL;
		content->has_id |= memmem(bytes, size, "$Id", 3) != NULL;
		if (n == 0)
			return 0;
		at += n;
		kept = size < 2 ? size : 2;
		memmove(bytes, bytes + size - kept, kept);
	}
}

static const char *conversion(const struct state *state, const struct content *content, bool converts_line_ends)
{
	bool may_be_auto = !content->has_nul && (state->is_auto || (converts_line_ends && !state->has_no_text));

	if (state->encodes)
		return "another encoding (working-tree-encoding)";
	if (state->has_ident && content->has_id)
		return "$Id$ (ident)";
	return content->has_crlf && (state->has_text || may_be_auto) ? "other line ends (text, eol or core.autocrlf)"
								     : NULL;
}

int git_attributes_judge(struct git_attributes *attributes, const struct git_change_context *context, const char *path,
			 int fd, bool converts_line_ends, char out[128])
{
	struct content content = { 0 };
	struct state state = { 0 };
	const char *what;
	int r;

	out[0] = 0;
	take_lists(attributes, context, path, &state);
	if (*state.filter)
		return str_format(out, 128, "the filter %s", state.filter);
	if (!state.encodes && !state.has_ident && !state.has_text && !state.is_auto && !converts_line_ends)
		return 0;
	r = look(fd, &content);
	what = r == 0 ? conversion(&state, &content, converts_line_ends) : NULL;
	return what ? str_format(out, 128, "%s", what) : r;
}
