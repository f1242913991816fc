/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Seeds of the fuzz target "snapshot": what today's compiler makes of the shipped policies and of the files named, so
 * that they never lag behind the format. Each must load, or nothing behind the header would be tried.
 *
 *   seed-snapshot DIRECTORY POLICIES_DIR [FILE…]
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "lang/compile/lang.h"
#include "os/fd.h"
#include "os/path.h"

enum { POLICY_TEXT_MAX = 1 << 20 };

static int read_file(void *context, const char *path, char **ret_bytes, size_t *ret_size,
		     struct snapshot_source *ret_source)
{
	int r = fd_read_file_at(AT_FDCWD, path, POLICY_TEXT_MAX, ret_bytes, ret_size);

	ret_source->path = path;
	ret_source->exists = r == 0;
	return r;
}

static int real_path(void *context, const char *path, char *out, size_t size)
{
	return str_copy(out, size, path);
}

static int write_seed(const char *path, const struct lang *lang)
{
	cleanup_snapshot struct snapshot *snapshot = NULL;
	const struct snapshot_source *sources;
	cleanup_buf struct buf out;
	size_t count;
	int r;

	buf_init(&out, SNAPSHOT_SIZE_MAX);
	sources = lang_sources(lang, &count);
	r = snapshot_store(&out, lang_policy(lang), sources, count);
	if (r == 0)
		r = snapshot_load(&snapshot, out.bytes, out.size);
	return r < 0 ? r : fd_replace_file_at(AT_FDCWD, path, out.bytes, out.size, 0644);
}

static int seed(const char *directory, const char *policies_dir, const char *policy)
{
	struct lang_request request = {
		.policy = policy,
		.project = "/home/u/p",
		.home = "/home/u",
		.config_home = "/home/u/.config",
		.policies_dir = policies_dir,
		.cwd = "/",
		.without_project_file = true,
		.reader = { read_file, real_path, NULL },
	};
	cleanup_lang struct lang *lang = NULL;
	char path[PATH_MAX];
	int r = lang_compile(&request, &lang);

	if (r == 0)
		r = str_format(path, sizeof path, "%s/%s", directory, path_basename(policy));
	if (r == 0)
		r = write_seed(path, lang);
	if (r != 0)
		fprintf(stderr, "%s: %s\n", policy, r < 0 ? strerror(-r) : "it does not compile");
	return r;
}

int main(int argc, char **argv)
{
	if (argc < 3 || (mkdir(argv[1], 0755) < 0 && errno != EEXIST)) {
		fprintf(stderr, "usage: seed-snapshot DIRECTORY POLICIES_DIR [FILE…]\n");
		return 2;
	}
	for (size_t i = 0; lang_shipped_names[i]; i++)
		if (seed(argv[1], argv[2], lang_shipped_names[i]) != 0)
			return 1;
	for (int i = 3; i < argc; i++)
		if (seed(argv[1], argv[2], argv[i]) != 0)
			return 1;
	return 0;
}
