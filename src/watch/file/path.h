/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where a path of a caller leads, found once, in the caller's own root and directory; path.c has the theory. From
 * then on there are only descriptors. Runs in atoll-box, with the sandbox's rights.
 */

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "watch/file/caller.h"

/* How the last component is taken. */
enum {
	FILE_PATH_NOFOLLOW = 1 << 0,   /* a link there is the object */
	FILE_PATH_DIRECTORY = 1 << 1,  /* -ENOTDIR for anything else */
	FILE_PATH_PARENT = 1 << 2,     /* only where it would stand: dir_fd and name */
	FILE_PATH_MAKES = 1 << 3,      /* where it is missing, it is to be made: dir_fd is wanted */
	FILE_PATH_NEW = 1 << 4,        /* with MAKES: nothing may be there, and the kernel says so when it is made */
	FILE_PATH_READ = 1 << 5,       /* opened for reading at once, O_NONBLOCK, where nobody can notice it */
};

enum { FILE_PATH_NEEDS_STATUS = 4096, FILE_LINK_SIZE = 32 };

struct file_place {
	int fd;                      /* owned: O_PATH of the object; FD_NONE: there is none, or FILE_PATH_PARENT */
	bool is_open;                /* fd is not O_PATH, but as FILE_PATH_READ asks for */
	int dir_fd;                  /* owned: O_PATH of the directory; FD_NONE where only the object is known */
	char name[NAME_MAX + 2];     /* in dir_fd; with the slash that stood behind it */
	char path[PATH_MAX];         /* real, as seen inside; "": not a path (a pipe, …) */
	struct stat status;          /* of the object */
};

/* Nothing is known and no descriptor is there; done closes those that are. */
void file_place_init(struct file_place *place);
void file_place_done(struct file_place *place);

/*
 * Resolves text below base_fd (O_PATH; not looked at for an absolute path). 0; -ENOENT, with FILE_PATH_MAKES also with
 * place->dir_fd and name where only the last component is missing (else place->path may tell which path is); or as
 * open(2). The caller's pids must be known (file_caller_read_status()) only once -FILE_PATH_NEEDS_STATUS came back:
 * then it is called again. -EACCES also for what a descriptor of the caller leads to outside of the sandbox.
 */
int file_path_resolve(const struct file_caller *caller, int base_fd, const char *text, unsigned how,
		      struct file_place *place) MUST_USE;

/* The object behind a descriptor of the caller: fchmod(2) and its like. -EBADF. */
int file_path_of_fd(const struct file_caller *caller, int fd, struct file_place *place) MUST_USE;

/* Opens what fd (of ours) names again. As fd_open_at(). */
int file_open_again(const struct file_view *view, int fd, int flags, mode_t mode) MUST_USE;

/* "/proc/self/fd/N": a path that names what fd names, whatever happens to its names. */
const char *file_link(int fd, char out[FILE_LINK_SIZE]);
