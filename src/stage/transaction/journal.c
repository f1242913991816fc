/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A record is a size, a SHA-256 over the hash of the record before, the size and the frame, and the frame
 * (wire/frame.h). The chain of hashes makes sure that a record which survived from elsewhere (an old block of the disk)
 * never counts. The reader believes nothing: numbers are checked against the plan, paths against the rules of a path.
 */

#include "stage/transaction/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "stage/transaction/journal-format.h"
#include "wire/frame.h"

enum { PENDING_FLUSH = 1 << 20 };

void journal_init(struct journal *journal)
{
	*journal = (struct journal){ 0 };
}

void journal_done(struct journal *journal)
{
	free(journal->ops);
	free(journal->directories);
	free(journal->parted);
	free(journal->source.bytes);
	for (size_t i = 0; i < journal->text_count; i++)
		free(journal->texts[i]);
	free(journal->texts);
	journal_init(journal);
}

/* Room for one more of this size, zeroed. */
static void *grow(void **items, size_t *count, size_t *capacity, size_t size)
{
	char *at;

	if (*count >= JOURNAL_OPS_MAX)
		return NULL;
	if (*count == *capacity) {
		size_t wanted = *capacity ? *capacity * 2 : 16;
		void *grown = realloc(*items, wanted * size);

		if (!grown)
			return NULL;
		*items = grown;
		*capacity = wanted;
	}
	at = (char *)*items + (*count)++ * size;
	memset(at, 0, size);
	return at;
}

struct journal_op *journal_add_op(struct journal *journal)
{
	return grow((void **)&journal->ops, &journal->op_count, &journal->op_capacity, sizeof *journal->ops);
}

struct journal_directory *journal_add_directory(struct journal *journal)
{
	return grow((void **)&journal->directories, &journal->directory_count, &journal->directory_capacity,
		    sizeof *journal->directories);
}

struct journal_parted *journal_add_parted(struct journal *journal)
{
	return grow((void **)&journal->parted, &journal->parted_count, &journal->parted_capacity,
		    sizeof *journal->parted);
}

const char *journal_keep_text(struct journal *journal, char *text)
{
	char **kept = text ? grow((void **)&journal->texts, &journal->text_count, &journal->text_capacity,
				  sizeof *journal->texts) : NULL;

	if (!kept) {
		free(text);
		return NULL;
	}
	*kept = text;
	return text;
}

/* Writing. */

void journal_writer_done(struct journal_writer *writer)
{
	close_fd(&writer->fd);
	buf_done(&writer->pending);
	buf_done(&writer->scratch);
}

static void writer_start(struct journal_writer *writer, int fd)
{
	*writer = (struct journal_writer){ .fd = fd };
	buf_init(&writer->pending, PENDING_FLUSH + 2 * RECORD_SIZE_MAX);
	buf_init(&writer->scratch, RECORD_SIZE_MAX);
}

int journal_create(int dir_fd, struct journal_writer *ret_writer)
{
	int fd = fd_open_at(dir_fd, JOURNAL_FILE_DRAFT, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	if (fd < 0)
		return fd;
	writer_start(ret_writer, fd);
	return 0;
}

int journal_resume(int dir_fd, const struct journal *journal, struct journal_writer *ret_writer)
{
	const char *name = journal->source.is_published ? JOURNAL_FILE : JOURNAL_FILE_DRAFT;
	cleanup_fd int fd = fd_open_at(dir_fd, name, O_WRONLY | O_NOFOLLOW, 0);

	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)journal->source.valid_size) < 0 || lseek(fd, 0, SEEK_END) < 0)
		return -errno;
	writer_start(ret_writer, take_fd(&fd));
	ret_writer->chain = journal->source.chain;
	return 0;
}

static void write_pending(struct journal_writer *writer)
{
	int r = writer->error ? writer->error : buf_error(&writer->pending);

	if (r == 0)
		r = fd_write_full(writer->fd, writer->pending.bytes, writer->pending.size);
	writer->error = r;
	buf_reset(&writer->pending);
}

void journal_chain_hash(struct hash *hash, const struct hash *before, uint32_t size, const void *frame)
{
	struct hash_piece pieces[] = { { before, sizeof *before }, { &size, sizeof size }, { frame, size } };

	hash_pieces(hash, pieces, ARRAY_SIZE(pieces));
}

/* Ends the record in scratch. */
static void put_record(struct journal_writer *writer)
{
	struct record_head head = { 0 };
	int r = frame_end(&writer->scratch);

	if (r < 0) {
		writer->error = writer->error ? writer->error : r;
		return;
	}
	head.size = (uint32_t)writer->scratch.size;
	journal_chain_hash(&head.hash, &writer->chain, head.size, writer->scratch.bytes);
	writer->chain = head.hash;
	buf_put(&writer->pending, &head, sizeof head);
	buf_put(&writer->pending, writer->scratch.bytes, writer->scratch.size);
	if (writer->pending.size >= PENDING_FLUSH)
		write_pending(writer);
}

static void put_identity(struct buf *out, const struct identity *identity)
{
	struct identity_bytes bytes = {
		.mode = identity->mode, .uid = identity->uid, .gid = identity->gid, .links = identity->links,
		.inode = identity->inode, .size = identity->size, .mtime = identity->mtime.seconds,
		.ctime = identity->ctime.seconds, .atime = identity->atime.seconds, .mtime_ns = identity->mtime.ns,
		.ctime_ns = identity->ctime.ns, .atime_ns = identity->atime.ns,
	};

	/* Nothing there: nothing to say. */
	frame_put_bytes(out, &bytes, identity->mode ? sizeof bytes : 0);
}

void journal_put_begin(struct journal_writer *writer, const struct journal *journal)
{
	struct buf *out = &writer->scratch;

	frame_begin(out, RECORD_BEGIN);
	frame_put_u32(out, JOURNAL_VERSION);
	frame_put_u32(out, journal->number);
	frame_put_u32(out, journal->kind);
	frame_put_u32(out, journal->undoes);
	frame_put_string(out, journal->session);
	frame_put_u64(out, journal->time_ns);
	put_record(writer);
	for (uint32_t tree = 0; tree < STAGE_TREES_MAX; tree++) {
		if (!journal->areas[tree].is_used)
			continue;
		frame_begin(out, RECORD_AREA);
		frame_put_u32(out, tree);
		frame_put_string(out, journal->areas[tree].name);
		put_identity(out, &journal->areas[tree].root);
		put_record(writer);
	}
}

static void put_op(struct journal_writer *writer, const struct journal_op *op)
{
	struct buf *out = &writer->scratch;

	frame_begin(out, RECORD_OP);
	frame_put_u32(out, op->action);
	frame_put_u32(out, op->tree);
	frame_put_u32(out, op->flags);
	frame_put_u32(out, op->area);
	frame_put_u32(out, op->slot);
	frame_put_u32(out, op->directory);
	frame_put_string(out, op->path);
	put_identity(out, &op->host);
	put_identity(out, &op->content);
	put_record(writer);
}

static void put_directory(struct journal_writer *writer, const struct journal_directory *directory)
{
	struct buf *out = &writer->scratch;

	frame_begin(out, RECORD_DIRECTORY);
	frame_put_u32(out, directory->tree);
	frame_put_string(out, directory->path);
	put_identity(out, &directory->before);
	frame_put_u32(out, directory->has_wanted);
	frame_put_u64(out, (uint64_t)directory->wanted_mtime.seconds);
	frame_put_u32(out, directory->wanted_mtime.ns);
	put_record(writer);
}

void journal_put_plan(struct journal_writer *writer, const struct journal *journal)
{
	struct buf *out = &writer->scratch;

	for (size_t i = 0; i < journal->op_count; i++)
		put_op(writer, &journal->ops[i]);
	for (size_t i = 0; i < journal->directory_count; i++)
		put_directory(writer, &journal->directories[i]);
	frame_begin(out, RECORD_COMMIT);
	frame_put_u32(out, (uint32_t)journal->op_count);
	frame_put_u32(out, (uint32_t)journal->directory_count);
	put_record(writer);
}

void journal_put_outcome(struct journal_writer *writer, uint32_t index, const struct journal_op *op)
{
	struct buf *out = &writer->scratch;

	frame_begin(out, RECORD_OUTCOME);
	frame_put_u32(out, index);
	frame_put_u32(out, op->outcome);
	frame_put_u32(out, (uint32_t)op->errnum);
	put_identity(out, &op->left);
	put_record(writer);
}

void journal_put_directory_left(struct journal_writer *writer, uint32_t index, const struct identity *left)
{
	frame_begin(&writer->scratch, RECORD_DIRECTORY_LEFT);
	frame_put_u32(&writer->scratch, index);
	put_identity(&writer->scratch, left);
	put_record(writer);
}

void journal_put_root_left(struct journal_writer *writer, uint32_t tree, const struct identity *left)
{
	frame_begin(&writer->scratch, RECORD_ROOT_LEFT);
	frame_put_u32(&writer->scratch, tree);
	put_identity(&writer->scratch, left);
	put_record(writer);
}

void journal_put_parted(struct journal_writer *writer, uint32_t tree, const struct identity *left)
{
	frame_begin(&writer->scratch, RECORD_PARTED);
	frame_put_u32(&writer->scratch, tree);
	put_identity(&writer->scratch, left);
	put_record(writer);
}

void journal_put_done(struct journal_writer *writer)
{
	frame_begin(&writer->scratch, RECORD_DONE);
	put_record(writer);
}

void journal_put_clean(struct journal_writer *writer)
{
	frame_begin(&writer->scratch, RECORD_CLEAN);
	put_record(writer);
}

int journal_flush(struct journal_writer *writer)
{
	write_pending(writer);
	if (writer->error == 0 && fdatasync(writer->fd) < 0)
		writer->error = -errno;
	return writer->error;
}

int journal_publish(int dir_fd)
{
	if (renameat(dir_fd, JOURNAL_FILE_DRAFT, dir_fd, JOURNAL_FILE) < 0 || fsync(dir_fd) < 0)
		return -errno;
	return 0;
}
