/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <sys/syscall.h>

#include "watch/file/job.h"

/* Younger than the headers that this is built with; numbers above 423 are the same everywhere. */
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#define CALL(call) .number = SYS_##call, .name = #call
#define OBJECT(dir, path) { FILE_NAMES_OBJECT, dir, path }
#define LINK(dir, path) { FILE_NAMES_LINK, dir, path }
#define ENTRY(dir, path) { FILE_NAMES_ENTRY, dir, path }
#define OPEN_FILE(fd) { FILE_NAMES_FD, fd, -1 }
#define TEXT(path) { FILE_NAMES_TEXT, -1, path }
#define WRITES .access = WATCH_FILE_WRITE
#define REMOVES .access = WATCH_FILE_REMOVE
#define RENAMES .access = WATCH_FILE_RENAME
#define CHANGES_MODE .prepare = file_prepare_mode, .check = file_check_mode, .run = file_run_chmod

/* Every call of tools/seccomp/files-*.table; a test compares the two. */
static const struct file_call calls[] = {
	{ CALL(openat), WRITES, .arguments = { OBJECT(0, 1) }, .prepare = file_prepare_open, .run = file_run_open },
	{ CALL(truncate), WRITES, .arguments = { OBJECT(-1, 0) }, .prepare = file_prepare_truncate,
	  .run = file_run_truncate },
	{ CALL(mkdirat), WRITES, .arguments = { ENTRY(0, 1) }, .makes = true, .run = file_run_mkdir },
	{ CALL(mknodat), WRITES, .arguments = { ENTRY(0, 1) }, .makes = true, .prepare = file_prepare_node,
	  .run = file_run_mknod },
	{ CALL(symlinkat), WRITES, .arguments = { TEXT(0), ENTRY(1, 2) }, .run = file_run_symlink },
	{ CALL(renameat2), RENAMES, .arguments = { ENTRY(0, 1), ENTRY(2, 3) }, .prepare = file_prepare_rename,
	  .run = file_run_rename },
	{ CALL(linkat), WRITES, .arguments = { LINK(0, 1), ENTRY(2, 3) }, .at_flags = 4, .run = file_run_link },
	{ CALL(unlinkat), REMOVES, .arguments = { ENTRY(0, 1) }, .prepare = file_prepare_unlink,
	  .run = file_run_unlink },
	{ CALL(fchmod), WRITES, .arguments = { OPEN_FILE(0) }, CHANGES_MODE },
	{ CALL(fchmodat), WRITES, .arguments = { OBJECT(0, 1) }, CHANGES_MODE },
	{ CALL(fchmodat2), WRITES, .arguments = { OBJECT(0, 1) }, .at_flags = 3, CHANGES_MODE },
	{ CALL(fchown), WRITES, .arguments = { OPEN_FILE(0) }, .run = file_run_chown },
	{ CALL(fchownat), WRITES, .arguments = { OBJECT(0, 1) }, .at_flags = 4, .run = file_run_chown },
	{ CALL(utimensat), WRITES, .arguments = { OBJECT(0, 1) }, .may_have_no_path = true, .at_flags = 3,
	  .prepare = file_prepare_utimens, .run = file_run_times },
	{ CALL(setxattr), WRITES, .arguments = { OBJECT(-1, 0) }, .prepare = file_prepare_set_value,
	  .run = file_run_set_value },
	{ CALL(lsetxattr), WRITES, .arguments = { LINK(-1, 0) }, .prepare = file_prepare_set_value,
	  .run = file_run_set_value },
	{ CALL(fsetxattr), WRITES, .arguments = { OPEN_FILE(0) }, .prepare = file_prepare_set_value,
	  .run = file_run_set_value },
	{ CALL(removexattr), WRITES, .arguments = { OBJECT(-1, 0) }, .prepare = file_prepare_remove_value,
	  .run = file_run_remove_value },
	{ CALL(lremovexattr), WRITES, .arguments = { LINK(-1, 0) }, .prepare = file_prepare_remove_value,
	  .run = file_run_remove_value },
	{ CALL(fremovexattr), WRITES, .arguments = { OPEN_FILE(0) }, .prepare = file_prepare_remove_value,
	  .run = file_run_remove_value },
#ifdef SYS_renameat
	{ CALL(renameat), RENAMES, .arguments = { ENTRY(0, 1), ENTRY(2, 3) }, .run = file_run_rename },
#endif
#ifdef SYS_open
	{ CALL(open), WRITES, .arguments = { OBJECT(-1, 0) }, .prepare = file_prepare_open, .run = file_run_open },
	{ CALL(creat), WRITES, .arguments = { OBJECT(-1, 0) }, .prepare = file_prepare_creat, .run = file_run_open },
	{ CALL(mkdir), WRITES, .arguments = { ENTRY(-1, 0) }, .makes = true, .run = file_run_mkdir },
	{ CALL(mknod), WRITES, .arguments = { ENTRY(-1, 0) }, .makes = true, .prepare = file_prepare_node,
	  .run = file_run_mknod },
	{ CALL(symlink), WRITES, .arguments = { TEXT(0), ENTRY(-1, 1) }, .run = file_run_symlink },
	{ CALL(rename), RENAMES, .arguments = { ENTRY(-1, 0), ENTRY(-1, 1) }, .run = file_run_rename },
	{ CALL(link), WRITES, .arguments = { LINK(-1, 0), ENTRY(-1, 1) }, .run = file_run_link },
	{ CALL(unlink), REMOVES, .arguments = { ENTRY(-1, 0) }, .run = file_run_unlink },
	{ CALL(rmdir), REMOVES, .arguments = { ENTRY(-1, 0) }, .run = file_run_rmdir },
	{ CALL(chmod), WRITES, .arguments = { OBJECT(-1, 0) }, CHANGES_MODE },
	{ CALL(chown), WRITES, .arguments = { OBJECT(-1, 0) }, .run = file_run_chown },
	{ CALL(lchown), WRITES, .arguments = { LINK(-1, 0) }, .run = file_run_chown },
	{ CALL(utime), WRITES, .arguments = { OBJECT(-1, 0) }, .prepare = file_prepare_utime, .run = file_run_times },
	{ CALL(utimes), WRITES, .arguments = { OBJECT(-1, 0) }, .prepare = file_prepare_utimes,
	  .run = file_run_times },
	{ CALL(futimesat), WRITES, .arguments = { OBJECT(0, 1) }, .may_have_no_path = true,
	  .prepare = file_prepare_utimes, .run = file_run_times },
#endif
};

const struct file_call *file_call_find(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].number == number)
			return &calls[i];
	return NULL;
}

