/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "os/fd.h"

static struct {
	const char *path;
	const void *bytes;
	size_t size;
	const char *real;
} entries[FIXTURE_FILES_MAX];
static size_t entry_count;
static struct lang *lang;
static struct buf errors;

static int read_entry(void *context, const char *path, char **ret_bytes, size_t *ret_size,
		      struct snapshot_source *ret_source)
{
	ret_source->path = path;
	for (size_t i = 0; i < entry_count; i++) {
		if (entries[i].real || !str_equal(entries[i].path, path))
			continue;
		*ret_bytes = malloc(entries[i].size + 1);
		memcpy(*ret_bytes, entries[i].bytes, entries[i].size);
		*ret_size = entries[i].size;
		ret_source->exists = 1;
		return 0;
	}
	if (!path_is_below(path, POLICIES_DIR))
		return -ENOENT;
	ret_source->exists = 1;
	return fd_read_file_at(AT_FDCWD, path, 1 << 20, ret_bytes, ret_size);
}

static int real_entry(void *context, const char *path, char *out, size_t size)
{
	for (size_t i = 0; i < entry_count; i++)
		if (entries[i].real && path_is_below(path, entries[i].path)) {
			size_t length = strlen(entries[i].path);

			return path_join(out, size, entries[i].real, path[length] ? path + length + 1 : ".");
		}
	return str_copy(out, size, path);
}

struct lang_request fixture_request;

void fixture_reset(void)
{
	entry_count = 0;
	fixture_request = (struct lang_request){
		.project = "/home/u/p",
		.home = "/home/u",
		.config_home = "/home/u/.config",
		.policies_dir = POLICIES_DIR,
		.cwd = "/home/u/p",
		.reader = { read_entry, real_entry, NULL },
	};
}

void fixture_file_n(const char *path, const void *bytes, size_t size)
{
	entries[entry_count].path = path;
	entries[entry_count].bytes = bytes;
	entries[entry_count].real = NULL;
	entries[entry_count++].size = size;
}

void fixture_file(const char *path, const char *text)
{
	fixture_file_n(path, text, strlen(text));
}

void fixture_link(const char *path, const char *real)
{
	entries[entry_count].path = path;
	entries[entry_count++].real = real;
}

const struct policy *fixture_compile(void)
{
	int r;

	lang_free(lang);
	lang = NULL;
	buf_done(&errors);
	buf_init(&errors, 1 << 20);
	r = lang_compile(&fixture_request, &lang);
	if (r < 0)
		abort();
	lang_put_errors(lang, &errors);
	/* A result without a policy has errors, and one with errors has no policy. */
	if ((r == 0) != (lang_policy(lang) != NULL) || (r == 0) != (errors.size == 0))
		abort();
	return lang_policy(lang);
}

const struct policy *fixture_text(const char *text)
{
	fixture_reset();
	fixture_file("/t.yaml", text);
	fixture_request.policy = "/t.yaml";
	return fixture_compile();
}

const char *fixture_errors(void)
{
	return buf_text(&errors);
}

const struct lang *fixture_lang(void)
{
	return lang;
}

enum verdict fixture_ask(enum action_kind kind, const char *subject)
{
	return policy_decide(lang_policy(lang),
			     &(struct action){ .kind = kind, .subject = subject, .port = 443 })
		.verdict;
}

enum file_class fixture_class(const char *path)
{
	size_t rule;

	return policy_classify(lang_policy(lang), path, &rule);
}

const struct file_plan_entry *fixture_plan(const char *path)
{
	const struct policy *policy = lang_policy(lang);

	for (size_t i = 0; i < policy->files.plan_count; i++)
		if (str_equal(policy->files.plan[i].path, path))
			return &policy->files.plan[i];
	return NULL;
}
