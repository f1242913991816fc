/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Policy text: whatever compiles must print as text that compiles to the same, and must survive its
 * snapshot. The input is a user's policy and, behind a line "=====", a project's file, and a narrowing behind another.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "lang/compile/lang.h"
#include "lang/print/print.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct input {
	const uint8_t *policy, *project;
	size_t policy_size, project_size;
	const struct buf *printed;
};

static int copy_bytes(const void *bytes, size_t size, char **ret_bytes, size_t *ret_size,
		struct snapshot_source *ret_source)
{
	*ret_bytes = malloc(size ? size : 1);
	if (!*ret_bytes)
		return -ENOMEM;
	memcpy(*ret_bytes, bytes, size);
	*ret_size = size;
	ret_source->exists = 1;
	return 0;
}

static int read_input(void *context, const char *path, char **ret_bytes, size_t *ret_size,
		      struct snapshot_source *ret_source)
{
	static const char nothing[] = "atoll: 1\n";
	const struct input *input = context;

	ret_source->path = path;
	/* The files that a policy is made of are protected by it: the printed one is made of the same. */
	if (str_equal(path, "/t.yaml") && input->printed)
		return copy_bytes(input->printed->bytes, input->printed->size, ret_bytes, ret_size, ret_source);
	if (str_equal(path, "/home/u/p/.atoll.yaml") && input->project && input->printed)
		return copy_bytes(nothing, sizeof nothing - 1, ret_bytes, ret_size, ret_source);
	if (str_equal(path, "/t.yaml"))
		return copy_bytes(input->policy, input->policy_size, ret_bytes, ret_size, ret_source);
	if (str_equal(path, "/home/u/p/.atoll.yaml") && input->project)
		return copy_bytes(input->project, input->project_size, ret_bytes, ret_size, ret_source);
	return -ENOENT;
}

static int real_input(void *context, const char *path, char *out, size_t size)
{
	return str_copy(out, size, path);
}

static void check_snapshot(const struct lang *lang)
{
	cleanup_snapshot struct snapshot *snapshot = NULL;
	const struct snapshot_source *sources;
	cleanup_buf struct buf bytes;
	size_t count;

	buf_init(&bytes, SNAPSHOT_SIZE_MAX);
	sources = lang_sources(lang, &count);
	if (snapshot_store(&bytes, lang_policy(lang), sources, count) == 0 &&
	    snapshot_load(&snapshot, bytes.bytes, bytes.size) < 0)
		abort();
}

static void check_printed(const struct lang_request *request, struct input *input, const struct lang *lang)
{
	cleanup_lang struct lang *again = NULL;
	struct lang_request second = *request;
	cleanup_buf struct buf printed, differences;

	buf_init(&printed, 4 << 20);
	buf_init(&differences, 4 << 20);
	print_policy(lang_policy(lang), &printed);
	if (buf_error(&printed))
		return;
	input->printed = &printed;
	second.narrowing = NULL;
	if (lang_compile(&second, &again) != 0)
		abort();
	if (print_diff(lang_policy(lang), lang_policy(again), &differences) && !buf_error(&differences))
		abort();
}

static const char separator[] = "\n=====\n";

/* What stands behind the separator, and *size without it; NULL: there is none. */
static const uint8_t *cut(const uint8_t *bytes, size_t *size, size_t *ret_rest)
{
	const uint8_t *at = memmem(bytes, *size, separator, sizeof separator - 1);

	if (!at)
		return NULL;
	*ret_rest = *size - (size_t)(at - bytes) - (sizeof separator - 1);
	*size = (size_t)(at - bytes);
	return at + sizeof separator - 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input input = { .policy = bytes, .policy_size = size };
	struct lang_request request = {
		.policy = "/t.yaml",
		.project = "/home/u/p",
		.home = "/home/u",
		.config_home = "/home/u/.config",
		.policies_dir = "/policies",
		.cwd = "/",
		.reader = { read_input, real_input, &input },
	};
	cleanup_lang struct lang *lang = NULL;
	cleanup_buf struct buf errors;
	int r;

	input.project = cut(bytes, &input.policy_size, &input.project_size);
	if (input.project)
		request.narrowing = (const char *)cut(input.project, &input.project_size, &request.narrowing_size);
	buf_init(&errors, 1 << 20);
	r = lang_compile(&request, &lang);
	if (r < 0)
		return 0;
	lang_put_errors(lang, &errors);
	if ((r == 0) != (errors.size == 0))
		abort();
	if (r != 0)
		return 0;
	if ((request.narrowing != NULL) != (lang_policy_before(lang) != NULL))
		abort();
	check_snapshot(lang);
	check_printed(&request, &input, lang);
	return 0;
}
