/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/image.h"

#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "watch/watch.h"

enum { NS_PER_S = 1000000000, TICK_NS = 10000000 };

/*
 * Nothing inside can set it back: what was there before has an older one, unless the host changes it meanwhile. Files
 * get the time of the last tick.
 */
static bool is_since(const struct stat *st, uint64_t begun_ns)
{
	return (uint64_t)st->st_ctim.tv_sec * NS_PER_S + (uint64_t)st->st_ctim.tv_nsec >= begun_ns - TICK_NS;
}

static bool would_fail(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -EACCES;
}

/* 0: it is the next one. */
static int add(struct exec_image *image, const struct exec_file *file, uint64_t begun_ns)
{
	struct exec_image_file *out = &image->files[image->count];

	/* What has no name here cannot be told from what had it. */
	if (file->is_unnamed || str_copy(out->path, sizeof out->path, file->path) < 0)
		return -ENOENT;
	out->is_new = is_since(&file->st, begun_ns);
	image->count++;
	return 0;
}

void exec_image_find(struct exec_image *ret_image, const struct watch_exec *exec, uint64_t begun_ns)
{
	struct exec_file file = EXEC_FILE_NONE, interpreter;
	int r = *exec->exe ? exec_file_open(&file, exec) : -EINVAL;

	ret_image->errnum = would_fail(r) ? -r : 0;
	ret_image->count = 0;
	if (r == 0)
		r = add(ret_image, &file, begun_ns);
	while (r == 0 && file.line[0] && ret_image->count < EXEC_FILES_MAX) {
		interpreter = (struct exec_file)EXEC_FILE_NONE;
		r = exec_file_open_interpreter(&interpreter, &file, exec->pid);
		if (would_fail(r))
			ret_image->errnum = -r;
		if (r == 0)
			r = add(ret_image, &interpreter, begun_ns);
		exec_file_done(&file);
		file = interpreter;
	}
	exec_file_done(&file);
}

void exec_image_to_json(const struct exec_image *image, const char *subject, struct json *json)
{
	bool is_any_new = false;

	if (image->errnum)
		json_string(json, "errno", err_errno_name(image->errnum));
	if (image->count && !str_equal(image->files[0].path, subject))
		json_bytes(json, "path", image->files[0].path, strlen(image->files[0].path));
	if (image->count > 1)
		json_array_begin(json, "interpreters");
	for (size_t i = 1; i < image->count; i++)
		json_bytes(json, NULL, image->files[i].path, strlen(image->files[i].path));
	if (image->count > 1)
		json_array_end(json);
	for (size_t i = 0; i < image->count; i++)
		is_any_new |= image->files[i].is_new;
	if (!is_any_new)
		return;
	json_array_begin(json, "new");
	for (size_t i = 0; i < image->count; i++)
		if (image->files[i].is_new)
			json_bytes(json, NULL, image->files[i].path, strlen(image->files[i].path));
	json_array_end(json);
}
