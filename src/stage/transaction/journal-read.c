/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The reader of journals. It believes nothing: numbers are checked against the plan, paths against the rules of a
 * path.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"
#include "stage/transaction/journal-format.h"
#include "wire/frame.h"

static void get_identity(struct frame *frame, struct identity *ret_identity)
{
	struct identity_bytes bytes;
	size_t size;
	const void *at = frame_get_bytes(frame, &size);

	*ret_identity = (struct identity){ 0 };
	if (frame->error || size == 0)
		return;
	if (size != sizeof bytes) {
		frame->error = -EBADMSG;
		return;
	}
	memcpy(&bytes, at, sizeof bytes);
	if (!bytes.mode || bytes.mtime_ns > 999999999 || bytes.ctime_ns > 999999999 || bytes.atime_ns > 999999999 ||
	    bytes.zero)
		frame->error = -EBADMSG;
	*ret_identity = (struct identity){
		.mode = bytes.mode, .uid = bytes.uid, .gid = bytes.gid, .links = bytes.links, .inode = bytes.inode,
		.size = bytes.size, .mtime = { bytes.mtime, bytes.mtime_ns }, .ctime = { bytes.ctime, bytes.ctime_ns },
		.atime = { bytes.atime, bytes.atime_ns },
	};
}

/* Relative, no empty, "." or ".." component, no slash at an end; "" where the root is allowed. */
static bool is_path(const char *path, bool root_allowed)
{
	if (!path || strlen(path) >= JOURNAL_PATH_MAX)
		return false;
	if (!*path)
		return root_allowed;
	for (;;) {
		size_t length = strcspn(path, "/");

		if (length == 0 || length > 255 || (length == 1 && path[0] == '.') ||
		    (length == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[length])
			return true;
		path += length + 1;
	}
}

/* Each reader: 0, or -EBADMSG where the record makes no sense here. */

static int read_begin(struct journal *journal, struct frame *frame)
{
	uint32_t version = frame_get_u32(frame);
	const char *session;

	journal->number = frame_get_u32(frame);
	journal->kind = frame_get_u32(frame);
	journal->undoes = frame_get_u32(frame);
	session = frame_get_string(frame);
	journal->time_ns = frame_get_u64(frame);
	if (journal->has_begun || version != JOURNAL_VERSION || !session || !journal->number ||
	    strlen(session) != SESSION_ID_SIZE - 1 || str_copy(journal->session, SESSION_ID_SIZE, session) < 0 ||
	    (journal->kind != JOURNAL_APPLY && journal->kind != JOURNAL_UNDO) ||
	    (journal->kind == JOURNAL_UNDO) != (journal->undoes != 0))
		return -EBADMSG;
	journal->has_begun = true;
	return 0;
}

static int read_area(struct journal *journal, struct frame *frame)
{
	uint32_t tree = frame_get_u32(frame);
	const char *name = frame_get_string(frame);
	struct journal_area *area;
	struct identity root;

	get_identity(frame, &root);
	if (frame->error || tree >= STAGE_TREES_MAX || !name || journal->is_committed || journal->op_count)
		return -EBADMSG;
	area = &journal->areas[tree];
	/* A directory of ours in the tree has a name of ours: recovery removes it. */
	if (area->is_used || (*name && (!str_has_prefix(name, STAGE_RESERVED_PREFIX) || strchr(name, '/'))) ||
	    str_copy(area->name, sizeof area->name, name) < 0)
		return -EBADMSG;
	area->root = root;
	area->is_used = true;
	return 0;
}

static int read_op(struct journal *journal, struct frame *frame)
{
	struct journal_op op = { 0 };
	struct journal_op *added;

	op.action = frame_get_u32(frame);
	op.tree = frame_get_u32(frame);
	op.flags = frame_get_u32(frame);
	op.area = frame_get_u32(frame);
	op.slot = frame_get_u32(frame);
	op.directory = frame_get_u32(frame);
	op.path = frame_get_string(frame);
	get_identity(frame, &op.host);
	get_identity(frame, &op.content);
	if (journal->is_committed || op.action < JOURNAL_ADD || op.action > JOURNAL_KEEP ||
	    op.tree >= STAGE_TREES_MAX || op.flags & ~(uint32_t)JOURNAL_FLAGS ||
	    !is_path(op.path, !journal_op_moves(&op)) || frame->error)
		return -EBADMSG;
	if (journal_op_moves(&op) && op.area != journal->number && op.area != journal->undoes)
		return -EBADMSG;
	if (op.action != JOURNAL_KEEP &&
	    ((op.action == JOURNAL_ADD) != !op.host.mode || (op.action == JOURNAL_REMOVE) != !op.content.mode))
		return -EBADMSG;
	added = journal_add_op(journal);
	if (!added)
		return -ENOMEM;
	*added = op;
	return 0;
}

static int read_directory(struct journal *journal, struct frame *frame)
{
	struct journal_directory directory = { 0 };
	struct journal_directory *added;
	uint32_t has_wanted;

	directory.tree = frame_get_u32(frame);
	directory.path = frame_get_string(frame);
	get_identity(frame, &directory.before);
	has_wanted = frame_get_u32(frame);
	directory.wanted_mtime.seconds = (int64_t)frame_get_u64(frame);
	directory.wanted_mtime.ns = frame_get_u32(frame);
	directory.has_wanted = has_wanted == 1;
	if (journal->is_committed || directory.tree >= STAGE_TREES_MAX || !is_path(directory.path, true) ||
	    !S_ISDIR(directory.before.mode) || has_wanted > 1 || directory.wanted_mtime.ns > 999999999 || frame->error)
		return -EBADMSG;
	added = journal_add_directory(journal);
	if (!added)
		return -ENOMEM;
	*added = directory;
	return 0;
}

static int read_commit(struct journal *journal, struct frame *frame)
{
	uint32_t ops = frame_get_u32(frame), directories = frame_get_u32(frame);

	if (journal->is_committed || ops != journal->op_count || directories != journal->directory_count)
		return -EBADMSG;
	for (size_t i = 0; i < journal->op_count; i++)
		if (journal_op_moves(&journal->ops[i]) && journal->ops[i].directory >= directories)
			return -EBADMSG;
	journal->is_committed = true;
	return 0;
}

static int read_outcome(struct journal *journal, struct frame *frame)
{
	uint32_t index = frame_get_u32(frame), outcome = frame_get_u32(frame), errnum = frame_get_u32(frame);
	struct identity left;

	get_identity(frame, &left);
	if (!journal->is_committed || journal->is_done || index >= journal->op_count || errnum > 4095 ||
	    outcome <= JOURNAL_PENDING || outcome >= JOURNAL_OUTCOME_COUNT || frame->error)
		return -EBADMSG;
	journal->ops[index].outcome = outcome;
	journal->ops[index].errnum = (int)errnum;
	journal->ops[index].left = left;
	return 0;
}

static int read_directory_left(struct journal *journal, struct frame *frame)
{
	uint32_t index = frame_get_u32(frame);
	struct identity left;

	get_identity(frame, &left);
	if (!journal->is_committed || journal->is_done || index >= journal->directory_count || frame->error)
		return -EBADMSG;
	journal->directories[index].left = left;
	return 0;
}

static int read_done(struct journal *journal, struct frame *frame)
{
	(void)frame;
	for (size_t i = 0; i < journal->op_count; i++)
		if (journal->ops[i].outcome == JOURNAL_PENDING)
			return -EBADMSG;
	if (!journal->is_committed || journal->is_done)
		return -EBADMSG;
	journal->is_done = true;
	return 0;
}

static int read_clean(struct journal *journal, struct frame *frame)
{
	(void)frame;
	if (!journal->is_done || journal->is_clean)
		return -EBADMSG;
	journal->is_clean = true;
	return 0;
}

static int read_root_left(struct journal *journal, struct frame *frame)
{
	uint32_t tree = frame_get_u32(frame);
	struct identity left;

	get_identity(frame, &left);
	if (!journal->is_done || journal->is_clean || tree >= STAGE_TREES_MAX || !*journal->areas[tree].name ||
	    frame->error)
		return -EBADMSG;
	journal->areas[tree].left = left;
	return 0;
}

static int read_parted(struct journal *journal, struct frame *frame)
{
	struct journal_parted parted = { .tree = frame_get_u32(frame) }, *added;

	get_identity(frame, &parted.left);
	if (!journal->is_done || journal->is_clean || parted.tree >= STAGE_TREES_MAX || frame->error)
		return -EBADMSG;
	added = journal_add_parted(journal);
	if (!added)
		return -ENOMEM;
	*added = parted;
	return 0;
}

static int read_record(struct journal *journal, struct frame *frame)
{
	static int (*const readers[RECORD_COUNT])(struct journal *journal, struct frame *frame) = {
		[RECORD_BEGIN] = read_begin, [RECORD_AREA] = read_area, [RECORD_OP] = read_op,
		[RECORD_DIRECTORY] = read_directory, [RECORD_COMMIT] = read_commit, [RECORD_OUTCOME] = read_outcome,
		[RECORD_DIRECTORY_LEFT] = read_directory_left, [RECORD_DONE] = read_done,
		[RECORD_CLEAN] = read_clean, [RECORD_ROOT_LEFT] = read_root_left,
		[RECORD_PARTED] = read_parted,
	};
	int r;

	if (frame->type >= RECORD_COUNT || !readers[frame->type] ||
	    (!journal->has_begun && frame->type != RECORD_BEGIN))
		return -EBADMSG;
	r = readers[frame->type](journal, frame);
	return r == 0 ? frame_finish(frame) : r;
}

/*
 * One record at the offset. Its size, 0 when nothing that counts is there, or -ENOMEM. What a bad record already
 * changed is undone by the caller, who parses the valid part once more.
 */
static ssize_t next_record(struct journal *journal, size_t at)
{
	struct record_head head;
	struct frame frame;
	struct hash hash;
	int r;

	if (journal->source.size - at < sizeof head)
		return 0;
	memcpy(&head, journal->source.bytes + at, sizeof head);
	if (head.zero || head.size > RECORD_SIZE_MAX || head.size > journal->source.size - at - sizeof head)
		return 0;
	journal_chain_hash(&hash, &journal->source.chain, head.size, journal->source.bytes + at + sizeof head);
	if (memcmp(&hash, &head.hash, sizeof hash) != 0 ||
	    frame_open(&frame, journal->source.bytes + at + sizeof head, head.size) < 0)
		return 0;
	r = read_record(journal, &frame);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return -EBADMSG;
	journal->source.chain = hash;
	return (ssize_t)(sizeof head + head.size);
}

/* Reads from the start again; size is where to stop. */
static ssize_t read_records(struct journal *journal)
{
	uint8_t *bytes = take_ptr(journal->source.bytes);
	size_t size = journal->source.size;
	ssize_t n = 0;

	journal_done(journal);
	journal->source.bytes = bytes;
	journal->source.size = size;
	for (; journal->source.valid_size < size; journal->source.valid_size += (size_t)n) {
		n = next_record(journal, journal->source.valid_size);
		if (n <= 0)
			return n;
	}
	return 0;
}

int journal_parse(uint8_t *bytes, size_t size, struct journal *ret_journal)
{
	struct journal journal = { .source = { .bytes = bytes, .size = size } };
	ssize_t n = read_records(&journal);

	/* A record with a right checksum that makes no sense (another version of this program): none of it counts. */
	if (n == -EBADMSG) {
		journal.source.size = journal.source.valid_size;
		n = read_records(&journal);
		journal.source.size = size;
	}
	if (n < 0) {
		journal_done(&journal);
		return (int)n;
	}
	*ret_journal = journal;
	return 0;
}

int journal_load(int dir_fd, struct journal *ret_journal)
{
	bool is_published = true;
	cleanup_free char *bytes = NULL;
	size_t size;
	int r = fd_read_file_at(dir_fd, JOURNAL_FILE, JOURNAL_BYTES_MAX, &bytes, &size);

	if (r == -ENOENT) {
		is_published = false;
		r = fd_read_file_at(dir_fd, JOURNAL_FILE_DRAFT, JOURNAL_BYTES_MAX, &bytes, &size);
	}
	if (r < 0)
		return r;
	r = journal_parse((uint8_t *)take_ptr(bytes), size, ret_journal);
	if (r < 0)
		return r;
	ret_journal->source.is_published = is_published;
	if (!is_published || ret_journal->is_committed)
		return 0;
	journal_done(ret_journal);
	return -EBADMSG;
}
