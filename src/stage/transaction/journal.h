/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The journal of one apply or undo (doc/format/stage.md): what shall happen to which path, what was there before, and
 * what was left there. Written and synced before anything on the host is touched; read by recovery, undo and diff.
 * A record counts only if its checksum, which covers all records before it, is right.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "os/clock.h"
#include "stage/record/identity.h"
#include "stage/record/record.h"

/* Names in applies/N. The journal gets its second name when it is complete: from then on it is carried out. */
#define JOURNAL_FILE_DRAFT "journal.new"
#define JOURNAL_FILE "journal"

enum {
	JOURNAL_VERSION = 1,
	JOURNAL_OPS_MAX = 2 << 20,
	JOURNAL_PATH_MAX = 1 << 20,   /* bytes of a path: 4,096 levels of 255 bytes */
	JOURNAL_BYTES_MAX = 1 << 30,
};

enum journal_kind { JOURNAL_APPLY = 1, JOURNAL_UNDO };

enum journal_action {
	JOURNAL_ADD = 1,   /* nothing on the host; what lies in the slot goes there */
	JOURNAL_REPLACE,   /* the host's entry and the slot change places, whatever their types */
	JOURNAL_REMOVE,    /* the host's entry goes into the empty slot */
	JOURNAL_SET,       /* a directory takes mode (and mtime, where JOURNAL_SETS_MTIME says so) of `content` */
	JOURNAL_KEEP,      /* nothing happens: of two sides that differ, what the host has shall stay */
};

enum {
	JOURNAL_MERGED = 1 << 0,      /* neither side's content alone: a later diff must not take it for ours */
	JOURNAL_SETS_MTIME = 1 << 1,
	JOURNAL_LENT = 1 << 2,        /* of a directory that is made here: takes off what was lent to its owner */
	/* Of a directory that was there: it takes the attributes (attributes.h) of SLOT, and had those of SLOT + 1. */
	JOURNAL_SETS_XATTRS = 1 << 3,
	/* Both sides had changed it, and the session's was taken: what an undo brings back is the host's own. */
	JOURNAL_SETTLED = 1 << 4,
	JOURNAL_FLAGS = JOURNAL_MERGED | JOURNAL_SETS_MTIME | JOURNAL_LENT | JOURNAL_SETS_XATTRS | JOURNAL_SETTLED,
};

enum journal_outcome {
	JOURNAL_PENDING,
	JOURNAL_APPLIED,
	JOURNAL_SKIPPED,   /* the host had changed: nothing was done there */
	JOURNAL_FAILED,    /* the file system refused */
	JOURNAL_OUTCOME_COUNT,
};

struct journal_op {
	uint32_t action;          /* enum journal_action */
	uint32_t tree;
	uint32_t flags;
	uint32_t area;            /* the transaction in whose area the slot is: its own, or the one that it undoes */
	uint32_t slot;
	uint32_t directory;       /* index of the directory that holds it; where journal_op_moves() */
	const char *path;         /* relative to the tree; "" only with JOURNAL_SET and JOURNAL_KEEP */
	struct identity host;     /* what must be there before; mode 0: nothing */
	/* What lies in the slot before; mode 0: nothing. JOURNAL_SET: the attributes. JOURNAL_KEEP: what is staged. */
	struct identity content;
	/* What became of it. */
	uint32_t outcome;         /* enum journal_outcome */
	int errnum;               /* positive, with JOURNAL_FAILED */
	struct identity left;     /* what was there afterwards, as we left it */
};

/* A directory of the host whose mtime the ops change by the way. */
struct journal_directory {
	uint32_t tree;
	const char *path;         /* relative to the tree; "" is its root */
	struct identity before;
	bool has_wanted;          /* wanted_mtime shall be set in the end */
	struct stamp wanted_mtime;
	struct identity left;     /* mode 0: not known */
	bool is_incomplete;       /* in memory only: an op in it was not done */
};

/* Where the slots of a tree are: applies/N/slots, or a directory in the root of the tree (another file system). */
struct journal_area {
	bool is_used;
	char name[40];            /* "" : applies/N/slots; else the name in the root of the tree */
	struct identity root;     /* of the tree, before that name was made in it */
	struct identity left;     /* of the tree, once that name is gone again; mode 0: not known to be ours alone */
	struct identity made;     /* in memory only: of the tree, right after that name was made */
};

/* A file that lost one of its names when slots were tidied up: as it was then. Other names are on the host. */
struct journal_parted {
	uint32_t tree;
	struct identity left;
};

/* Where a journal was read from: of journal_parse() and journal_load(). */
struct journal_source {
	uint8_t *bytes;                  /* owned; paths point into it */
	size_t size, valid_size;         /* valid_size: of the records that count */
	struct hash chain;               /* over the valid records */
	bool is_published;               /* it has its second name */
};

struct journal {
	/* JOURNAL_BEGIN */
	uint32_t number, kind, undoes;   /* undoes: the number of the apply, with JOURNAL_UNDO */
	char session[SESSION_ID_SIZE];
	uint64_t time_ns;                /* CLOCK_REALTIME */
	struct journal_area areas[STAGE_TREES_MAX];
	struct journal_op *ops;          /* owned */
	size_t op_count, op_capacity;
	struct journal_directory *directories; /* owned */
	size_t directory_count, directory_capacity;
	struct journal_parted *parted;   /* owned */
	size_t parted_count, parted_capacity;
	char **texts;                    /* owned, and each of them: what journal_keep_text() was given */
	size_t text_count, text_capacity;
	bool has_begun, is_committed;
	bool is_done;                    /* every op has its outcome, and all is on the disk */
	bool is_clean;                   /* nothing of it is left to be tidied up */
	struct journal_source source;
};

/* Whether it is a rename between a slot and the path. */
static inline bool journal_op_moves(const struct journal_op *op)
{
	return op->action <= JOURNAL_REMOVE;
}

/* Whether people are told of it: false where another op of the same path says what happened. */
static inline bool journal_op_is_shown(const struct journal_op *op)
{
	return !(op->flags & JOURNAL_LENT) && !(op->action == JOURNAL_KEEP && op->flags & JOURNAL_MERGED);
}

/* An empty journal, which owns nothing. journal_done() frees all ops, directories and texts; pointers to them end. */
void journal_init(struct journal *journal);
void journal_done(struct journal *journal);
#define cleanup_journal __attribute__((cleanup(journal_done)))

/* Append to the plan in memory; path is borrowed until journal_done(). NULL when out of memory or bounds. */
struct journal_op *journal_add_op(struct journal *journal);
struct journal_directory *journal_add_directory(struct journal *journal);
struct journal_parted *journal_add_parted(struct journal *journal);

/* Makes the journal the owner of a text (malloc), for paths that nobody else holds. The text, or NULL (it is freed). */
const char *journal_keep_text(struct journal *journal, char *text);

/*
 * Reads records until the first that is cut, damaged or makes no sense; that and all behind it does not count
 * (valid_size). Takes bytes (malloc). 0, also for a journal without any record; -ENOMEM.
 */
int journal_parse(uint8_t *bytes, size_t size, struct journal *ret_journal) MUST_USE;

/*
 * Reads the journal in applies/N (dir_fd). -ENOENT: there is none. -EBADMSG: it has its second name, and yet is
 * not complete up to its commit: what was begun cannot be known, so nothing may be removed.
 */
int journal_load(int dir_fd, struct journal *ret_journal) MUST_USE;

/* Writes records. Errors are sticky and come out of journal_flush(). */
struct journal_writer {
	int fd;                /* owned */
	struct buf pending;    /* not yet written */
	struct buf scratch;
	struct hash chain;
	int error;
};

#define JOURNAL_WRITER_NONE ((struct journal_writer){ .fd = FD_NONE })

/* Closes the file without a flush: what is pending is lost, as in a crash. */
void journal_writer_done(struct journal_writer *writer);
#define cleanup_journal_writer __attribute__((cleanup(journal_writer_done)))

/* Makes the draft in dir_fd. -EEXIST. */
int journal_create(int dir_fd, struct journal_writer *ret_writer) MUST_USE;

/* Goes on behind the valid records of a journal that was loaded from dir_fd; what is behind them is cut off. */
int journal_resume(int dir_fd, const struct journal *journal, struct journal_writer *ret_writer) MUST_USE;

/* Kind, number, time and areas: the first record. */
void journal_put_begin(struct journal_writer *writer, const struct journal *journal);
/* All ops and directories, and the commit. */
void journal_put_plan(struct journal_writer *writer, const struct journal *journal);
/* What became of op or directory number index. */
void journal_put_outcome(struct journal_writer *writer, uint32_t index, const struct journal_op *op);
void journal_put_directory_left(struct journal_writer *writer, uint32_t index, const struct identity *left);
/* What the root of a tree was when the area in it was gone again. */
void journal_put_root_left(struct journal_writer *writer, uint32_t tree, const struct identity *left);
/* That a file of which a name was removed in an area has others, and what it is since. */
void journal_put_parted(struct journal_writer *writer, uint32_t tree, const struct identity *left);
void journal_put_done(struct journal_writer *writer);
void journal_put_clean(struct journal_writer *writer);

/* Writes what is pending and syncs it. 0, or the first error of this writer. */
int journal_flush(struct journal_writer *writer) MUST_USE;

/* Gives the flushed draft its second name, and syncs that: the point of no return. */
int journal_publish(int dir_fd) MUST_USE;
