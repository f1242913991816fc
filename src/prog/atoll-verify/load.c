/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-verify/load.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

static int load_file(struct rules *rules, struct diags *diags, const char *path, struct err *err)
{
	cleanup_free char *bytes = NULL;
	size_t size = 0;
	const char *name = arena_text(diags->arena, path);
	int r = fd_read_file_at(AT_FDCWD, path, RULE_FILE_MAX, &bytes, &size);

	if (r < 0) {
		err_set(err, ERR_NOT_FOUND, -r, "verify", "the rules %s cannot be read: %s", path, strerror(-r));
		return r;
	}
	if (name && rules_add(rules, diags, name, bytes, size))
		return 0;
	return err_set(err, ERR_USAGE, EINVAL, "verify", "the rules %s have errors", path);
}

static int is_rule_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && str_has_suffix(entry->d_name, ".yaml");
}

/* All of a directory, by name; one that is not there is none. */
static int load_directory(struct rules *rules, struct diags *diags, const char *directory, struct err *err)
{
	struct dirent **entries = NULL;
	int count = scandir(directory, &entries, is_rule_file, alphasort), r = 0;

	for (int i = 0; i < count; i++) {
		char path[PATH_MAX];

		if (r == 0 && i >= RULE_FILES_MAX)
			r = err_set(err, ERR_USAGE, E2BIG, "verify", "%s has more than %d rule files", directory,
				    RULE_FILES_MAX);
		if (r == 0)
			r = path_join(path, sizeof path, directory, entries[i]->d_name);
		if (r == 0)
			r = load_file(rules, diags, path, err);
		free(entries[i]);
	}
	free(entries);
	return r;
}

static int load_shipped(struct rules *rules, struct diags *diags, struct err *err)
{
	char program[PATH_MAX], directory[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
	char *slash;
	int r;

	program[length > 0 ? length : 0] = '\0';
	slash = strrchr(program, '/');
	if (!slash)
		return err_set(err, ERR_STATE, ENOENT, "verify", "the directory of atoll-verify cannot be found");
	*slash = '\0';
	r = path_join(directory, sizeof directory, program, "policies/verify");
	if (r == 0)
		r = load_directory(rules, diags, directory, err);
	if (r == 0 && !rules_are_whole(rules)) {
		err_set(err, ERR_STATE, ENOENT, "verify", "there are no rules or no tables in %s", directory);
		err_hint(err, "atoll's programs and policies belong together; install atoll again");
		return -ENOENT;
	}
	return r;
}

static int load_own(struct rules *rules, struct diags *diags, struct err *err)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char directory[PATH_MAX];
	int r;

	if (config && config[0] == '/')
		r = path_join(directory, sizeof directory, config, "atoll/verify");
	else if (home && home[0] == '/')
		r = path_join(directory, sizeof directory, home, ".config/atoll/verify");
	else
		return 0;
	return r < 0 ? 0 : load_directory(rules, diags, directory, err);
}

struct rules *load_rules(const char *const *files, bool with_own, struct diags *diags, struct err *err)
{
	struct rules *rules = rules_new();
	int r = rules ? load_shipped(rules, diags, err)
		      : err_set(err, ERR_INTERNAL, ENOMEM, "verify", "out of memory");

	if (r == 0 && with_own)
		r = load_own(rules, diags, err);
	for (size_t i = 0; r == 0 && files && files[i]; i++)
		r = load_file(rules, diags, files[i], err);
	if (r == 0 && !rules_finish(rules, diags))
		r = err_set(err, ERR_USAGE, EINVAL, "verify", "the rules have errors");
	if (r == 0)
		return rules;
	rules_free(rules);
	return NULL;
}
