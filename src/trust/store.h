/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The record of an agent (doc/format/trust.md): what moved its level, entry by entry, each with the state after it. One
 * file for each agent, replaced whole under a lock; a chain of hashes runs through it, and its end is kept in two other
 * places, so that a damaged, older or missing file is noticed. Then the agent has no trust at all until a person begins
 * the record again. Used by `atoll` and the box. A sandbox never sees any of it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "os/clock.h"
#include "trust/rules.h"

enum {
	TRUST_ENTRIES_MAX = 160,     /* then the oldest are forgotten, */
	TRUST_ENTRIES_KEPT = 80,     /* so that these are left */
	TRUST_OPEN_MAX = 64,         /* sessions of one agent at a time that are remembered */
	TRUST_RECALLED_MAX = 12,     /* of what moved the level, the newest, that are said again */
	TRUST_CAUSE_SIZE = 88,
	TRUST_AGENTS_MAX = 4096,     /* that are listed */
	TRUST_LOCK_MS = 2000,        /* for who can wait: the lock is held for a write at a time */
};

/* Where the record lies, and where else its end is kept. Borrowed. */
struct trust_home {
	const char *state_dir, *runtime_dir;
};

enum trust_fault {
	TRUST_FINE,
	TRUST_UNREADABLE,
	TRUST_FOREIGN,               /* somebody else's, or open to others */
	TRUST_DAMAGED,
	TRUST_ROLLED_BACK,           /* older than what is known of it */
	TRUST_LOST,                  /* it was there */
	TRUST_FAULT_COUNT,
};

/* "it is damaged", for a sentence about the record. */
extern const char *const trust_fault_texts[TRUST_FAULT_COUNT];

/* One entry, as it is in the file. */
struct trust_entry {
	uint64_t seq;                /* from 1 */
	uint64_t time_ns;            /* CLOCK_REALTIME; of TRUST_RECALLED when it first stood here */
	uint64_t strain_s;           /* when strain was that much */
	uint32_t event;              /* enum trust_event */
	uint32_t uid;                /* of who wrote it */
	uint32_t strain, drop, clean;
	uint8_t granted, before, after; /* levels; before and after: under the settings of then */
	uint8_t level;               /* that was named: TRUST_RAISED, TRUST_LOWERED, TRUST_LENT */
	uint8_t has_grant;
	uint8_t reserved[3];         /* 0 */
	char session[SESSION_ID_SIZE + 3]; /* "" where there was none */
	char cause[TRUST_CAUSE_SIZE]; /* any bytes, NUL-terminated */
	uint8_t unused[4];           /* 0; not looked at */
};

struct trust_book {
	char agent[TRUST_AGENT_MAX + 1];
	enum trust_fault fault;
	bool exists;
	struct trust_settings settings; /* of the last run, without agent; is_given false: there was none */
	struct trust_entry *entries; /* owned */
	size_t count;
	uint64_t base_seq;           /* of the last entry that was forgotten; 0: none was */
	struct hash base;            /* the chain up to there */
	struct hash head;            /* the chain up to the last entry */
	uint64_t known_seq;          /* the highest that any place knows */
	int lock_fd;                 /* FD_NONE: only looked at */
};

/* What happened, for a new entry. */
struct trust_news {
	enum trust_event event;
	enum trust_level level;      /* TRUST_RAISED, TRUST_LOWERED, TRUST_LENT */
	const char *session;         /* NULL: none */
	const char *cause;           /* cut where it is too long; NULL: none */
	uint64_t now_ns;             /* CLOCK_REALTIME */
};

/*
 * Reads the record of an agent (a valid name) without a lock. 0 also where there is none, and where it is not usable:
 * *ret_book says so. -ENOMEM. trust_book_done() in any case.
 */
int trust_book_read(const struct trust_home *place, const char *agent, struct trust_book *ret_book) MUST_USE;

/*
 * The same, and nobody else changes it until trust_book_done(). patience_ms: how long others are waited for. -EBUSY,
 * -ENOSPC, …: the lock cannot be had.
 */
int trust_book_lock(const struct trust_home *place, const char *agent, unsigned patience_ms,
		    struct trust_book *ret_book) MUST_USE;
void trust_book_done(struct trust_book *book);
#define cleanup_trust_book __attribute__((cleanup(trust_book_done)))

/* What it comes to; of one that is not usable: nothing is granted. */
struct trust_state trust_book_state(const struct trust_book *book);

/* The strain after an entry of the book, as it was at the entry's time. */
uint32_t trust_entry_strain(const struct trust_book *book, const struct trust_entry *entry);

/* Adds an entry under the book's settings. The entry, valid until the next; NULL: the book is not usable. */
const struct trust_entry *trust_book_add(struct trust_book *book, const struct trust_news *news);

/* Begins again, behind all that is known of it, with the book's settings; for a person, with a book that is locked. */
void trust_book_reset(struct trust_book *book);

/*
 * Writes a book that is locked. Negative errno: it is as before, or whole and new without what vouches for it; never a
 * part of one. is_durable: on the disk when it
 * returns (levels that fell); else a power cut may lose the end. What a killed writer of this record left beside it is
 * removed.
 */
int trust_book_write(const struct trust_home *place, const struct trust_book *book, bool is_durable) MUST_USE;

/* The sessions that began and did not end, oldest first. How many. */
size_t trust_book_open(const struct trust_book *book, char sessions[TRUST_OPEN_MAX][SESSION_ID_SIZE]);

/* Whether the chain leads from its base to its head; reading a book checks only that it is whole. */
bool trust_book_is_chained(const struct trust_book *book);

/* The chain's hash up to this entry. -ENOENT: it was forgotten, or is not there yet. */
int trust_book_head(const struct trust_book *book, uint64_t seq, struct hash *ret_hash) MUST_USE;

/* The agents that something is known of, sorted; *ret_names is for strv_free(). -errno. */
int trust_agents(const struct trust_home *place, char ***ret_names) MUST_USE;

/* Where records are: "STATE/trust". */
int trust_directory(const struct trust_home *place, char *out, size_t size) MUST_USE;
