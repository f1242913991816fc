/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/verb/audit-step.h"

#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"

/* Contents beyond these are not hashed: hashing must not cost more than applying. */
enum { HASHED_FILE_MAX = 4 << 20, HASHED_TOTAL_MAX = 64 << 20, PATH_BYTES_MAX = 2 << 20, LINE_SIZE = 160 };

int audit_step_open(struct audit_step *step, int sessions_fd, const char *session, enum audit_type type,
		    struct err *err)
{
	step->entry.type = type;
	step->entry.subject = session;
	return review_log_open(&step->log, sessions_fd, session, err);
}

void audit_step_done(struct audit_step *step)
{
	review_log_done(&step->log);
}

void audit_step_add_words(struct audit_step *step, enum review_list_kind kind, const char *const *words)
{
	for (; words && *words; words++)
		review_list_add(&step->entry, kind, *words);
}

void audit_step_add_path(struct audit_step *step, enum review_list_kind kind, const struct opened *opened, size_t tree,
		   const char *path)
{
	const char *root = opened_tree(opened, tree);
	cleanup_buf struct buf full;

	buf_init(&full, PATH_BYTES_MAX);
	buf_put_text(&full, str_equal(root, "/") ? "" : root);
	if (*path || str_equal(root, "/"))
		buf_put_char(&full, '/');
	buf_put_text(&full, path);
	review_list_add(&step->entry, kind, buf_text(&full));
}

int audit_step_begin(struct audit_step *step, struct err *err)
{
	int r;

	step->entry.phase = REVIEW_BEGUN;
	r = review_log_put(&step->log, &step->entry, err);
	step->is_begun = r == 0;
	return r;
}

/* The hash of what lies in the slot of an op, in hex; "-" where it is none, too large, or not to be read. */
static void hash_content(const struct transaction *transaction, const struct journal_op *op, uint64_t *hashed,
			 char out[HASH_HEX_SIZE])
{
	int area_fd = transaction_area_of(transaction, op);
	char name[TRANSACTION_SLOT_SIZE];
	cleanup_free char *bytes = NULL;
	struct hash hash;
	size_t size;

	out[0] = '-';
	out[1] = 0;
	if (!S_ISREG(op->content.mode) || op->content.size > HASHED_FILE_MAX ||
	    *hashed + op->content.size > HASHED_TOTAL_MAX ||
	    fd_read_file_at(area_fd, transaction_slot_name(op->slot, name), HASHED_FILE_MAX, &bytes, &size) < 0)
		return;
	*hashed += size;
	hash_bytes(&hash, bytes, size);
	hash_to_hex(&hash, out);
}

/* The links of a chain: each op's line and path, behind the hash of those before it. */
static void chain_op(struct hash *chain, const struct transaction *transaction, const struct journal_op *op,
		     uint64_t *hashed)
{
	char content[HASH_HEX_SIZE], line[LINE_SIZE];

	hash_content(transaction, op, hashed, content);
	if (str_format(line, sizeof line, "%u %u %o %llu %s ", op->action, op->tree, op->content.mode,
		       (unsigned long long)op->content.size, content) < 0)
		line[0] = 0;
	hash_pieces(chain, (struct hash_piece[]){ { chain->bytes, sizeof chain->bytes }, { line, strlen(line) },
						  { op->path, strlen(op->path) } }, 3);
}

static void count_op(struct review_entry *entry, const struct journal_op *op)
{
	static const enum review_count counts[] = {
		[JOURNAL_ADD] = REVIEW_ADDED, [JOURNAL_REPLACE] = REVIEW_MODIFIED,
		[JOURNAL_REMOVE] = REVIEW_DELETED, [JOURNAL_SET] = REVIEW_MODIFIED,
	};

	if (!journal_op_is_shown(op) || op->action == JOURNAL_KEEP)
		return;
	entry->counts[counts[op->action]]++;
	entry->counts[REVIEW_BYTES] += S_ISREG(op->content.mode) ? op->content.size : 0;
}

static int announce(void *context, const struct transaction *transaction, struct err *err)
{
	struct audit_step *step = context;
	struct review_entry *entry = &step->entry;
	const struct journal *journal = &transaction->journal;

	entry->list_hash = (struct hash){ 0 };
	for (size_t i = 0; i < journal->op_count; i++) {
		count_op(entry, &journal->ops[i]);
		chain_op(&entry->list_hash, transaction, &journal->ops[i], &entry->counts[REVIEW_HASHED_BYTES]);
	}
	entry->has_list_hash = true;
	entry->counts[REVIEW_APPLY] = journal->kind == JOURNAL_UNDO ? journal->undoes : journal->number;
	entry->counts[REVIEW_UNDO] = journal->kind == JOURNAL_UNDO ? journal->number : 0;
	return audit_step_begin(step, err);
}

void audit_step_attach(struct audit_step *step, struct transaction_place *place)
{
	place->announce = announce;
	place->announce_context = step;
}

int audit_step_recovered(struct audit_step *step, const struct transaction_recovered *recovered, struct err *err)
{
	struct review_entry entry = {
		.type = step->entry.type, .subject = step->entry.subject, .phase = REVIEW_RECOVERED,
		.counts = { [REVIEW_FINISHED] = recovered->finished, [REVIEW_TAKEN_BACK] = recovered->taken_back },
	};

	return recovered->finished + recovered->taken_back ? review_log_put(&step->log, &entry, err) : 0;
}

int audit_step_end(struct audit_step *step, int r, struct err *err)
{
	struct err late = { 0 };
	int told;

	if (!step->is_begun)
		return r;
	step->is_begun = false;
	step->entry.phase = r < 0 ? REVIEW_FAILED : REVIEW_DONE;
	told = review_log_put(&step->log, &step->entry, &late);
	if (r < 0 || told == 0)
		return r;
	*err = late;
	err_hint(err, "it is done, but the log only says that it was begun");
	return told;
}
