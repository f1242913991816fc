/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/apply/made-files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/attributes.h"

#define MADE_DIRECTORY "merged"

int made_files_open(struct made_files *ret_files, const struct opened *opened, struct err *err)
{
	int r = path_remove_tree(opened->stage_fd, MADE_DIRECTORY);

	if (r == 0 && mkdirat(opened->stage_fd, MADE_DIRECTORY, 0700) < 0)
		r = -errno;
	if (r == 0)
		r = ret_files->dir_fd = fd_open_at(opened->stage_fd, MADE_DIRECTORY,
						   O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return r < 0 ? err_set(err, ERR_STATE, -r, "apply", "the directory for merges cannot be made: "
							    "%s", strerror(-r)) : 0;
}

int made_files_begin(struct made_files *files, size_t count)
{
	files->count = count;
	files->names = calloc(count + 1, sizeof *files->names);
	return files->names ? 0 : -ENOMEM;
}

const char *made_files_put(struct made_files *files, size_t index, const struct stage_stack *stack,
			   const struct stage_change *change, const struct text_piece *content, mode_t mode)
{
	cleanup_fd int host_fd = stage_change_open_host(stack, change);
	cleanup_free char *name = str_printf("%zu-%.200s", index, path_basename(change->path));
	cleanup_fd int fd = FD_NONE;

	if (!name)
		return NULL;
	fd = fd_open_at(files->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0 || fd_write_full(fd, content->bytes, content->size) < 0 || host_fd < 0 ||
	    attributes_match(host_fd, fd, attributes_is_user) < 0 || fchmod(fd, mode) < 0)
		return NULL;
	files->names[index] = take_ptr(name);
	return files->names[index];
}

void made_files_done(struct made_files *files)
{
	for (size_t i = 0; files->names && i < files->count; i++) {
		if (files->names[i])
			unlinkat(files->dir_fd, files->names[i], 0);
		free(files->names[i]);
	}
	free(files->names);
	close_fd(&files->dir_fd);
	*files = MADE_FILES_NONE;
}
