/* SPDX-License-Identifier: Apache-2.0 */
#include "token/ledger.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "os/fd.h"
#include "os/path.h"

static const char ledger_name[] = "ledger", new_name[] = "ledger.new", lock_name[] = "lock", magic[8] = "atollTL1";

enum { PATIENCE_MS = 10000, KEPT_S = 3600 };

static int fail(const char *name, int r, struct err *err)
{
	err_set(err, ERR_STATE, -r, "token", "the record of tokens (%s) cannot be used: %s", name,
		r == -EBADMSG ? "it is damaged" : r == -EBUSY ? "somebody else holds it" : strerror(-r));
	err_hint(err, r == -EBADMSG ? "remove it, and the key: nobody knows any more which tokens were used or revoked"
				    : "until then no token is accepted");
	return r;
}

static int read_entries(struct ledger *ledger, int fd, size_t size)
{
	char begin[sizeof magic];
	size_t rest = size - sizeof begin;
	int r;

	if (size < sizeof begin || rest % sizeof *ledger->entries ||
	    rest / sizeof *ledger->entries > LEDGER_ENTRIES_MAX)
		return -EBADMSG;
	r = fd_read_full(fd, begin, sizeof begin);
	if (r == 0 && memcmp(begin, magic, sizeof begin) != 0)
		return -EBADMSG;
	if (r == 0 && rest)
		r = fd_read_full(fd, ledger->entries, rest);
	ledger->count = r < 0 ? 0 : rest / sizeof *ledger->entries;
	return r;
}

static int load(struct ledger *ledger, struct err *err)
{
	cleanup_fd int fd = path_open2(ledger->dir_fd, ledger_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
				       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	struct stat st;
	int r;

	ledger->entries = calloc(LEDGER_ENTRIES_MAX, sizeof *ledger->entries);
	if (!ledger->entries)
		return fail(ledger_name, -ENOMEM, err);
	if (fd == -ENOENT)
		return 0;
	r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0)
		r = S_ISREG(st.st_mode) && st.st_size >= 0 ? read_entries(ledger, fd, (size_t)st.st_size) : -EBADMSG;
	return r < 0 ? fail(ledger_name, r, err) : 0;
}

int ledger_open(struct ledger *ledger, int dir_fd, struct err *err)
{
	*ledger = (struct ledger){ .dir_fd = dir_fd, .lock_fd = FD_NONE };
	return load(ledger, err);
}

int ledger_begin(struct ledger *ledger, int dir_fd, struct err *err)
{
	int r;

	*ledger = (struct ledger){ .dir_fd = dir_fd, .lock_fd = FD_NONE };
	r = ledger->lock_fd = fd_open_at(dir_fd, lock_name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (r >= 0)
		r = fd_lock_within(ledger->lock_fd, LOCK_EX, PATIENCE_MS);
	return r < 0 ? fail(lock_name, r, err) : load(ledger, err);
}

void ledger_close(struct ledger *ledger)
{
	free(ledger->entries);
	ledger->entries = NULL;
	close_fd(&ledger->lock_fd);
}

/* A while longer, so that a clock that is set back a little brings nothing to life again. */
static void drop_expired(struct ledger *ledger, uint64_t now_s)
{
	size_t kept = 0;

	for (size_t i = 0; i < ledger->count; i++)
		if (ledger->entries[i].expires_s >= now_s || now_s - ledger->entries[i].expires_s < KEPT_S)
			ledger->entries[kept++] = ledger->entries[i];
	ledger->count = kept;
}

static int write_new(const struct ledger *ledger)
{
	cleanup_fd int fd = fd_open_at(ledger->dir_fd, new_name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : fd_write_full(fd, magic, sizeof magic);

	if (r >= 0)
		r = fd_write_full(fd, ledger->entries, ledger->count * sizeof *ledger->entries);
	return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

int ledger_store(struct ledger *ledger, uint64_t now_s, struct err *err)
{
	int r;

	drop_expired(ledger, now_s);
	r = write_new(ledger);
	if (r == 0 && (renameat(ledger->dir_fd, new_name, ledger->dir_fd, ledger_name) < 0 ||
		       fsync(ledger->dir_fd) < 0))
		r = -errno;
	return r < 0 ? fail(ledger_name, r, err) : 0;
}

struct ledger_entry *ledger_find(const struct ledger *ledger, const struct token_id *id)
{
	for (size_t i = 0; i < ledger->count; i++)
		if (memcmp(&ledger->entries[i].id, id, sizeof *id) == 0)
			return &ledger->entries[i];
	return NULL;
}

struct ledger_entry *ledger_note(struct ledger *ledger, const struct token_id *id, uint64_t expires_s)
{
	struct ledger_entry *entry = ledger_find(ledger, id);

	if (entry || ledger->count == LEDGER_ENTRIES_MAX)
		return entry;
	entry = &ledger->entries[ledger->count++];
	*entry = (struct ledger_entry){ .id = *id, .expires_s = expires_s };
	return entry;
}

enum token_fault ledger_judge(const struct ledger *ledger, const struct token *token)
{
	enum token_fault fault = TOKEN_FINE;
	struct token_id ids[TOKEN_BLOCKS_MAX];

	token_ids(token, ids);
	for (size_t i = 0; i < token->count; i++) {
		const struct ledger_entry *entry = ledger_find(ledger, &ids[i]);
		uint32_t uses = token->links[i].block.uses;

		if (entry && entry->flags & LEDGER_REVOKED)
			return TOKEN_REVOKED;
		if (entry && uses && entry->used >= uses)
			fault = TOKEN_USED_UP;
	}
	return fault;
}

int ledger_count_use(struct ledger *ledger, const struct token *token)
{
	struct token_id ids[TOKEN_BLOCKS_MAX];
	uint64_t expires_s = UINT64_MAX;

	token_ids(token, ids);
	for (size_t i = 0; i < token->count; i++) {
		const struct token_block *block = &token->links[i].block;
		struct ledger_entry *entry;

		/* As long as any token that begins with this block can live, however much shorter this one does. */
		if (block->expires_s && block->expires_s < expires_s)
			expires_s = block->expires_s;
		if (!block->uses)
			continue;
		entry = ledger_note(ledger, &ids[i], expires_s);
		if (!entry)
			return -EDQUOT;
		entry->used++;
	}
	return 0;
}
