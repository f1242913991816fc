/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/policy/subverbs.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "client/dirs.h"
#include "client/program.h"
#include "os/fd.h"
#include "os/path.h"
#include "prog/atoll/verb/say.h"
#include "session/directories.h"

enum { TEXT_MAX = 1 << 20, POLICY_BYTES_MAX = 1 << 20, ABOUT_SIZE = 160, LISTED_MAX = 512, NAME_SIZE = 64 };

struct listing {
	struct buf *out;
	struct json *json;           /* NULL: for people */
	const char *kind, *directory;
};

/* The first sentence of the comment that a file begins with; "": it has none. */
static void read_about(const char *text, char out[ABOUT_SIZE])
{
	struct buf about;

	buf_init_fixed(&about, out, ABOUT_SIZE);
	for (; *text == '#'; text += strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n')) {
		const char *line = text + 1 + strspn(text + 1, " #");
		size_t length = strcspn(line, "\n");
		const char *end = memmem(line, length, ". ", 2);

		if (str_has_prefix(line, "SPDX-"))
			continue;
		if (!end && length && line[length - 1] == '.')
			end = line + length - 1;
		buf_put_text(&about, about.size ? " " : "");
		buf_put_escaped(&about, line, end ? (size_t)(end - line) : length, ABOUT_SIZE / 2);
		if (end)
			break;
	}
	if (buf_error(&about))
		out[0] = 0;
	else
		(void)buf_text(&about);
}

static int put_policy(const struct listing *listing, const char *name)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX], about[ABOUT_SIZE] = "";
	size_t size;
	int r = str_format(path, sizeof path, "%s/%s.yaml", listing->directory, name);

	if (r == 0 && fd_read_file_at(AT_FDCWD, path, POLICY_BYTES_MAX, &text, &size) == 0)
		read_about(text, about);
	if (!listing->json) {
		buf_printf(listing->out, "%-16s %-9s %s\n", name, listing->kind, about);
		return r;
	}
	json_object_begin(listing->json, NULL);
	json_string(listing->json, "name", name);
	json_string(listing->json, "kind", listing->kind);
	json_bytes(listing->json, "path", path, strlen(path));
	json_string(listing->json, "about", about);
	json_object_end(listing->json);
	return r;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

/* What no name on a command line can mean is left out. */
static size_t read_names(const char *directory, char names[LISTED_MAX][NAME_SIZE])
{
	DIR *opened = opendir(directory);
	const struct dirent *entry;
	size_t count = 0;

	while (opened && count < LISTED_MAX && (entry = readdir(opened))) {
		size_t length = strlen(entry->d_name);

		if (entry->d_name[0] == '.' || !str_has_suffix(entry->d_name, ".yaml") || length - 5 >= NAME_SIZE ||
		    strspn(entry->d_name, name_bytes) != length)
			continue;
		memcpy(names[count], entry->d_name, length - 5);
		names[count++][length - 5] = 0;
	}
	if (opened)
		closedir(opened);
	qsort(names, count, sizeof *names, compare_names);
	return count;
}

static int put_directory(const struct listing *listing)
{
	char(*names)[NAME_SIZE] = calloc(LISTED_MAX, sizeof *names);
	size_t count = names ? read_names(listing->directory, names) : 0;
	int r = names ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = put_policy(listing, names[i]);
	free(names);
	return r;
}

static int put_all(struct listing *listing, const char *policies, const char *config_home)
{
	static const struct {
		const char *folder, *kind;
	} shipped[] = { { "levels", "level" }, { "agents", "agent" }, { "languages", "language" },
			{ "tasks", "task" } };
	char directory[PATH_MAX];
	int r = 0;

	listing->directory = directory;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(shipped); i++) {
		listing->kind = shipped[i].kind;
		r = path_join(directory, sizeof directory, policies, shipped[i].folder);
		if (r == 0)
			r = put_directory(listing);
	}
	listing->kind = "own";
	if (r == 0 && *config_home)
		r = path_join(directory, sizeof directory, config_home, "atoll/policies");
	return r == 0 && *config_home ? put_directory(listing) : r;
}

int policy_list(char **words, bool json, struct err *err)
{
	char policies[PATH_MAX], home[PATH_MAX], config_home[PATH_MAX];
	cleanup_buf struct buf out;
	struct json writer;
	struct listing listing = { &out, json ? &writer : NULL, NULL, NULL };
	int r;

	buf_init(&out, TEXT_MAX);
	if (words[0])
		return err_set(err, ERR_USAGE, EINVAL, "policy", "list takes no arguments");
	r = program_path("policy", "policies", policies, err);
	if (r < 0)
		return r;
	r = session_home_dir(home, sizeof home);
	if (r == 0)
		r = dirs_config_home(home, config_home);
	json_init(&writer, &out);
	if (json)
		json_array_begin(&writer, NULL);
	if (r == 0)
		r = put_all(&listing, policies, config_home);
	if (json) {
		json_array_end(&writer);
		buf_put_char(&out, '\n');
	}
	return r < 0 ? err_set(err, ERR_STATE, -r, "policy", "the policies cannot be listed: %s", strerror(-r))
		     : say_out(&out, err);
}
