/* SPDX-License-Identifier: Apache-2.0 */
#include "text/git.h"

#include <errno.h>
#include <git2.h>
#include <string.h>

#include "base/str.h"

/* libgit2 wants a path beside each buffer. It is never opened, and cut off what is printed. */
static const char path[] = "x";

int text_begin(void)
{
	static const int levels[] = { GIT_CONFIG_LEVEL_PROGRAMDATA, GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_XDG,
				      GIT_CONFIG_LEVEL_GLOBAL };

	if (git_libgit2_init() < 0)
		return -EIO;
	/* Nothing below asks for configuration. If something did, it would find none. */
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "") < 0)
			return -EIO;
	return 0;
}

static int put(struct text_result *result, const void *bytes, size_t size)
{
	if (size > result->max - result->size)
		return -EFBIG;
	memcpy(result->bytes + result->size, bytes, size);
	result->size += size;
	return 0;
}

static int put_hunk(const git_diff_delta *delta, const git_diff_hunk *hunk, void *context)
{
	(void)delta;
	return put(context, hunk->header, hunk->header_len);
}

/* The lines "\ No newline at end of file" have marks of their own, which are not printed. */
static int put_line(const git_diff_delta *delta, const git_diff_hunk *hunk, const git_diff_line *line, void *context)
{
	bool is_text = line->origin == GIT_DIFF_LINE_CONTEXT || line->origin == GIT_DIFF_LINE_ADDITION ||
		       line->origin == GIT_DIFF_LINE_DELETION;
	int r = is_text ? put(context, &line->origin, 1) : 0;

	(void)delta;
	(void)hunk;
	return r < 0 ? r : put(context, line->content, line->content_len);
}

/* What a callback of ours returned comes out as it is; the library's own errors are -1 and below -2. */
static int error_of(int r)
{
	return r == 0 || r == -EFBIG ? r : -EIO;
}

/* An empty text is not the same as none: for the library NULL says that there is no file. */
static const void *bytes_of(const struct text_piece *piece)
{
	return piece->bytes ? piece->bytes : "";
}

int text_compare_lines(const struct text_piece *before, const struct text_piece *after, struct text_result *result)
{
	git_diff_options options = GIT_DIFF_OPTIONS_INIT;

	options.flags = GIT_DIFF_FORCE_TEXT | GIT_DIFF_INDENT_HEURISTIC;
	return error_of(git_diff_buffers(bytes_of(before), before->size, path, bytes_of(after), after->size, path,
					 &options, NULL, NULL, put_hunk, put_line, result));
}

/* The patch begins with a line of our path, and maybe lines of modes, before the one that counts. */
static int put_from_index(const char *text, size_t size, struct text_result *result)
{
	static const char index[] = "index ", mark[] = "GIT binary patch\n";
	enum { IDS_SIZE = 40 + 2 + 40 };
	const char *end = text + size, *found = memmem(text, size, index, sizeof index - 1);
	const char *patch = found ? memmem(found, (size_t)(end - found), mark, sizeof mark - 1) : NULL;
	int r;

	if (!patch || found[-1] != '\n' || (size_t)(patch - found) < sizeof index - 1 + IDS_SIZE)
		return size ? -EIO : 0;
	r = put(result, found, sizeof index - 1 + IDS_SIZE);
	if (r == 0)
		r = put(result, "\n", 1);
	return r == 0 ? put(result, patch, (size_t)(end - patch)) : r;
}

int text_compare_binary(const struct text_piece *before, const struct text_piece *after, struct text_result *result)
{
	git_diff_options options = GIT_DIFF_OPTIONS_INIT;
	git_patch *patch = NULL;
	git_buf text = GIT_BUF_INIT;
	int r;

	options.flags = GIT_DIFF_FORCE_BINARY | GIT_DIFF_SHOW_BINARY;
	r = git_patch_from_buffers(&patch, before->bytes, before->size, path, after->bytes, after->size, path,
				   &options);
	if (r == 0)
		r = git_patch_to_buf(&text, patch);
	r = r == 0 ? put_from_index(text.ptr, text.size, result) : -EIO;
	git_buf_dispose(&text);
	git_patch_free(patch);
	return r;
}

static git_merge_file_input input_of(const struct text_piece *piece)
{
	git_merge_file_input input = GIT_MERGE_FILE_INPUT_INIT;

	input.ptr = bytes_of(piece);
	input.size = piece->size;
	return input;
}

int text_merge(const struct text_piece *base, const struct text_piece *host, const struct text_piece *session,
	      struct text_result *result)
{
	git_merge_file_options options = GIT_MERGE_FILE_OPTIONS_INIT;
	git_merge_file_input inputs[] = { input_of(base), input_of(host), input_of(session) };
	git_merge_file_result merge = { 0 };
	int r;

	options.ancestor_label = "base";
	options.our_label = "host";
	options.their_label = "session";
	r = git_merge_file(&merge, &inputs[0], &inputs[1], &inputs[2], &options) < 0 ? -EIO : 0;
	if (r == 0)
		r = put(result, merge.ptr, merge.len);
	if (r == 0)
		r = merge.automergeable ? TEXT_MERGE_CLEAN : TEXT_MERGE_MARKED;
	git_merge_file_result_free(&merge);
	return r;
}
