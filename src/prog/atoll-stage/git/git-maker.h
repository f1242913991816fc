/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The child process that reads a repository and makes git's objects with libgit2 (text/commit.h). It stands in the git
 * directory and is handed one file after the other: a message with a path, and the bytes as a descriptor. It answers
 * with a number. It can start nothing, and write nothing but objects, and either refs (`apply --branch`) or a copy of
 * the index (`apply --commit`). Run by atoll-stage.
 */

#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "prog/atoll-stage/git/git-repository.h"
#include "text/commit.h"

enum git_step {
	GIT_BEGIN,
	GIT_HAS,                     /* 1: HEAD has the path */
	GIT_CHECK,                   /* a GIT_FILE_… of a path; the descriptor has the host's file, if any */
	GIT_RELOAD,                  /* HEAD is the same still, and the index is read anew: 0, or -ESTALE */
	GIT_PUT,
	GIT_REMOVE,
	GIT_COMMIT,                  /* text: the message; 1: nothing differs */
	GIT_STORE_INDEX,             /* the copy of the index is written */
};

/* What the person has of a path that shall be committed. */
enum {
	GIT_FILE_COMMITTED,          /* what HEAD has, or nothing */
	GIT_FILE_STAGED,             /* the index has something else than HEAD */
	GIT_FILE_CHANGED,            /* the project has something else than HEAD */
};

/* Settings that matter for a commit: bits of git_answer.settings. */
enum {
	GIT_CONVERTS_LINE_ENDS = 1,  /* core.autocrlf */
	GIT_IGNORES_MODES = 2,       /* core.fileMode is off */
};

struct git_answer {
	int32_t result;
	uint32_t settings;           /* GIT_BEGIN */
	char hex[COMMIT_HEX_SIZE];   /* GIT_BEGIN: the commit of HEAD, or ""; GIT_COMMIT: the new one */
	/* GIT_BEGIN: the ref of HEAD, "" where it is detached, or with -EOPNOTSUPP a setting. GIT_COMMIT: who and when,
	 * as a reflog has it. */
	char text[1024];
};

struct git_work {
	const char *branch;          /* a new one; NULL: it is for the index and the branch of HEAD */
	const char *index_path;      /* then: where the copy of the index is, absolute, in index_fd */
	int index_fd;                /* borrowed: the directory of the copy */
};

struct git_maker {
	int socket_fd;               /* owned; FD_NONE: there is none */
};

#define GIT_MAKER_NONE ((struct git_maker){ .socket_fd = FD_NONE })

/* Starts the child, which begins. Before confining. Its answer, or negative with *err. */
int git_maker_start(struct git_maker *ret_maker, const struct git_repository *repository, const struct git_work *work,
		    struct git_answer *ret_answer, struct err *err) MUST_USE;
void git_maker_done(struct git_maker *maker);

struct git_question {
	enum git_step step;
	mode_t mode;                 /* as git has it: 0100644, 0100755, 0120000; 0: there is no file */
	const char *text;            /* the path, or the message */
	int fd;                      /* borrowed: the bytes; FD_NONE */
	const struct stat *st;       /* of the file in the project, for the index; NULL */
};

/* The answer's result, or -EPIPE where the child is gone. */
int git_maker_ask(const struct git_maker *maker, const struct git_question *question, struct git_answer *ret_answer)
	MUST_USE;
