/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One mediated file call on its way, and the table of them. Inside watch/ only: files.c has the order in which a job
 * is done, calls.c the table, the others what each call does.
 */

#include <linux/seccomp.h>
#include <sys/resource.h>
#include <time.h>

#include "watch/call/remote.h"
#include "watch/file/path.h"

enum { FILE_PATHS_MAX = 2, FILE_VALUE_NAME_MAX = 256 };

/* How a call names a file. */
enum file_naming {
	FILE_NAMES_NOTHING,
	FILE_NAMES_OBJECT,           /* what a path leads to; AT_* flags may say otherwise */
	FILE_NAMES_LINK,             /* the same, but a link at its end is meant itself */
	FILE_NAMES_ENTRY,            /* a name in a directory: to be made, moved or removed */
	FILE_NAMES_FD,               /* an open file */
	FILE_NAMES_TEXT,             /* no file: what a new link says */
};

struct file_argument {
	enum file_naming naming;
	int8_t dir_fd, path;         /* positions; -1: none */
};

struct file_job;

struct file_call {
	int number;
	const char *name;
	enum watch_file_access access;
	struct file_argument arguments[FILE_PATHS_MAX];
	int8_t at_flags;             /* position; 0: none */
	bool makes;                  /* the caller's umask counts */
	bool may_have_no_path;       /* NULL for the path: the descriptor alone is meant */
	/* Copies from registers and memory what else it takes. 0, an errno, or FILE_JOB_REFUSED. NULL: nothing. */
	int (*prepare)(struct file_job *job);
	/* Looks at what was found, before it is judged. 0, an errno, or FILE_JOB_REFUSED. NULL: nothing. */
	int (*check)(const struct file_job *job);
	/* Makes it, with the sandbox's rights. 0, an errno, or FILE_JOB_BLOCKS. */
	int (*run)(struct file_job *job);
};

enum {
	FILE_JOB_REFUSED = 4097,     /* a call that the filter of every sandbox refuses */
	FILE_JOB_BLOCKS,             /* job->open_flags on the object would wait */
};

struct file_job {
	const struct file_call *call;
	const struct seccomp_notif *request;
	struct remote *remote;
	struct file_caller caller;
	unsigned how[FILE_PATHS_MAX];            /* FILE_PATH_* of each path */
	enum file_naming naming[FILE_PATHS_MAX]; /* as the flags of this call have it */
	int base_fd[FILE_PATHS_MAX];             /* owned */
	char (*text)[PATH_MAX + 1];              /* borrowed, as are the places: FILE_PATHS_MAX of each */
	struct file_place *places;
	enum watch_file_access access;
	int flags;                   /* as called: open(2), renameat2(2), unlinkat(2), setxattr(2) */
	mode_t mode;
	struct timespec times[2];
	bool has_times;
	bool moves_directory;        /* as it was judged */
	rlim_t size_max;             /* RLIMIT_FSIZE of the caller */
	char value_name[FILE_VALUE_NAME_MAX];
	void *value;                 /* owned */
	size_t value_size;
	int open_flags;              /* with which the object was, or is to be, opened */
	int result_fd;               /* owned: what open(2) gives */
};

/* The row of a system call by its number on this architecture, static; NULL: it is not mediated. calls.c */
const struct file_call *file_call_find(int number);

/*
 * What each row of the table does, named as its system call: prepare copies flags, mode and values from the caller,
 * check refuses what the filter refuses, run makes the call on what was found. All as struct file_call says.
 */

/* open.c: flags as of openat(2); what would wait is FILE_JOB_BLOCKS, and job->result_fd is what the caller gets. */
int file_prepare_open(struct file_job *job);
int file_prepare_creat(struct file_job *job);
int file_run_open(struct file_job *job);
/* Whether an open, whose path was resolved, makes a file: then the caller's umask counts. */
bool file_open_makes(const struct file_job *job);
/* truncate(2), of a file that is opened for writing: the length is bounded by the caller's RLIMIT_FSIZE. */
int file_prepare_truncate(struct file_job *job);
int file_run_truncate(struct file_job *job);

/* change.c: names in directories, by descriptors of the directories that were found. */
int file_prepare_node(struct file_job *job);
int file_prepare_rename(struct file_job *job);
int file_prepare_unlink(struct file_job *job);
int file_run_rename(struct file_job *job);
int file_run_link(struct file_job *job);
int file_run_symlink(struct file_job *job);
int file_run_unlink(struct file_job *job);
int file_run_rmdir(struct file_job *job);
int file_run_mkdir(struct file_job *job);
int file_run_mknod(struct file_job *job);

/* move.c */
/* Where no file calls are mediated: whether the kernel does all that this rename or link asks for. */
bool file_move_goes_on(struct file_job *job);
/* Of a rename that failed with EXDEV: whether it is one of a directory that an overlay does not rename. */
bool file_move_is_refused(const struct file_job *job);
/* Whether the link that was just made is not what git takes for one; then it is gone again. */
bool file_link_is_another(const struct file_job *job);

/*
 * Copies the path of an argument into job->text, from the caller's memory; it names a descriptor where there is none
 * and may be none. 0 or an errno. job.c
 */
int file_job_read_path(struct file_job *job, size_t index) MUST_USE;
/* The caller's descriptor of the directory that it is relative to, or AT_FDCWD. */
int file_job_dir_fd(const struct file_job *job, size_t index);

/* attribute.c: mode, owner, times and extended attributes of the object that was found, with the sandbox's ids. */
int file_prepare_mode(struct file_job *job);
int file_check_mode(const struct file_job *job);
int file_prepare_utime(struct file_job *job);
int file_prepare_utimes(struct file_job *job);
int file_prepare_utimens(struct file_job *job);
int file_prepare_set_value(struct file_job *job);
int file_prepare_remove_value(struct file_job *job);
int file_run_chmod(struct file_job *job);
int file_run_chown(struct file_job *job);
int file_run_times(struct file_job *job);
int file_run_set_value(struct file_job *job);
int file_run_remove_value(struct file_job *job);

/* The argument behind the last path or descriptor, which is where a call has its own. */
uint64_t file_job_own(const struct file_job *job, unsigned index);
