/* SPDX-License-Identifier: Apache-2.0 */
#include "trust/store-format.h"

#include <string.h>

#include "base/str.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are read as they are in memory");
_Static_assert(sizeof(struct trust_entry) == 160 && offsetof(struct trust_entry, unused) == 156, "no holes");

#define FILE_MAGIC "ATOLLTRU"
#define WITNESS_MAGIC "ATOLLSEE"

enum { FILE_VERSION = 1 };

struct file_header {
	char magic[8];
	uint32_t version, count;
	uint64_t base_seq;
	struct hash base, head;
	uint64_t half_life_ms;
	uint32_t probation_sessions;
	uint8_t start, ceiling, floor, raise, probation_at, on_fall, is_given, has_level;
	char agent[TRUST_AGENT_MAX + 4];
};

_Static_assert(sizeof(struct file_header) == 176, "the header has no holes");

void trust_chain_begin(struct hash *chain, const char *agent)
{
	struct hash_piece pieces[] = { { FILE_MAGIC, 8 }, { agent, strlen(agent) + 1 } };

	hash_pieces(chain, pieces, ARRAY_SIZE(pieces));
}

void trust_chain(struct hash *chain, const struct trust_entry *entry)
{
	struct hash before = *chain;
	struct hash_piece pieces[] = { { &before, sizeof before }, { entry, sizeof *entry } };

	hash_pieces(chain, pieces, ARRAY_SIZE(pieces));
}

/* ---- the record ---- */

void trust_file_format(const struct trust_book *book, struct buf *out)
{
	const struct trust_settings *settings = &book->settings;
	struct file_header header = {
		.magic = FILE_MAGIC,
		.version = FILE_VERSION,
		.count = (uint32_t)book->count,
		.base_seq = book->base_seq,
		.base = book->base,
		.head = book->head,
		.half_life_ms = settings->half_life_ms,
		.probation_sessions = settings->probation_sessions,
		.start = settings->start,
		.ceiling = settings->ceiling,
		.floor = settings->floor,
		.raise = settings->raise,
		.probation_at = settings->probation_at,
		.on_fall = settings->on_fall,
		.is_given = settings->is_given,
		.has_level = settings->has_level,
	};
	struct hash check;

	memcpy(header.agent, book->agent, strlen(book->agent));
	buf_put(out, &header, sizeof header);
	buf_put(out, book->entries, book->count * sizeof *book->entries);
	if (buf_error(out))
		return;
	hash_bytes(&check, out->bytes, out->size);
	buf_put(out, &check, sizeof check);
}

static bool settings_are_good(const struct trust_settings *settings)
{
	return (unsigned)settings->ceiling < TRUST_COUNT && settings->start <= settings->ceiling &&
	       settings->floor <= settings->start && (unsigned)settings->raise < TRUST_COUNT &&
	       (unsigned)settings->probation_at < TRUST_COUNT && (unsigned)settings->on_fall < TRUST_FALL_COUNT &&
	       settings->probation_sessions <= TRUST_SESSIONS_MAX && settings->half_life_ms &&
	       settings->half_life_ms <= TRUST_HALF_LIFE_MAX_MS;
}

static bool is_name_of(const struct file_header *header, const char *agent)
{
	char padded[sizeof header->agent] = { 0 };

	return str_copy(padded, sizeof padded, agent) == 0 && memcmp(header->agent, padded, sizeof padded) == 0;
}

static bool header_is_good(const struct file_header *header, size_t size, const char *agent)
{
	return memcmp(header->magic, FILE_MAGIC, sizeof header->magic) == 0 && header->version == FILE_VERSION &&
	       header->count && header->count <= TRUST_ENTRIES_MAX && is_name_of(header, agent) &&
	       header->is_given <= 1 && header->has_level <= 1 &&
	       header->base_seq < UINT64_MAX - TRUST_ENTRIES_MAX &&
	       size == sizeof *header + header->count * sizeof(struct trust_entry) + sizeof(struct hash);
}

/* It becomes part of a path. */
static bool session_is_good(const char session[SESSION_ID_SIZE])
{
	size_t length = strnlen(session, SESSION_ID_SIZE);

	return !length || (length == SESSION_ID_SIZE - 1 &&
			   strspn(session, "0123456789abcdefghijklmnopqrstuvwxyz") == length);
}

static bool entry_is_good(const struct trust_entry *entry, uint64_t seq)
{
	return entry->seq == seq && entry->event && entry->event < TRUST_EVENT_END && entry->granted < TRUST_COUNT &&
	       entry->before < TRUST_COUNT && entry->after < TRUST_COUNT && entry->level < TRUST_COUNT &&
	       entry->drop < TRUST_COUNT && entry->strain <= TRUST_STRAIN_MAX && entry->clean <= TRUST_SESSIONS_MAX &&
	       entry->has_grant <= 1 && session_is_good(entry->session) && !entry->cause[TRUST_CAUSE_SIZE - 1];
}

int trust_file_parse(const char *bytes, size_t size, struct trust_book *book)
{
	struct trust_settings settings;
	struct file_header header;
	struct hash check;

	if (size < sizeof header + sizeof check)
		return -EBADMSG;
	memcpy(&header, bytes, sizeof header);
	hash_bytes(&check, bytes, size - sizeof check);
	if (!header_is_good(&header, size, book->agent) ||
	    memcmp(&check, bytes + size - sizeof check, sizeof check) != 0)
		return -EBADMSG;
	settings = (struct trust_settings){
		.start = header.start, .ceiling = header.ceiling, .floor = header.floor, .raise = header.raise,
		.probation_sessions = header.probation_sessions, .probation_at = header.probation_at,
		.on_fall = header.on_fall, .half_life_ms = header.half_life_ms, .is_given = header.is_given,
		.has_level = header.has_level,
	};
	if (!settings_are_good(&settings))
		return -EBADMSG;
	book->settings = settings;
	book->base_seq = header.base_seq;
	book->base = header.base;
	book->head = header.head;
	book->entries = calloc(TRUST_ENTRIES_MAX, sizeof *book->entries);
	if (!book->entries)
		return -ENOMEM;
	memcpy(book->entries, bytes + sizeof header, header.count * sizeof *book->entries);
	book->count = header.count;
	for (size_t i = 0; i < book->count; i++)
		if (!entry_is_good(&book->entries[i], book->base_seq + i + 1))
			return -EBADMSG;
	return 0;
}

/* ---- what vouches for it ---- */

static void witness_check_of(const struct trust_witness *witness, const char *agent, struct hash *ret_check)
{
	struct hash_piece pieces[] = {
		{ witness, offsetof(struct trust_witness, check) },
		{ agent, strlen(agent) + 1 },
	};

	hash_pieces(ret_check, pieces, ARRAY_SIZE(pieces));
}

void trust_witness_make(struct trust_witness *witness, const char *agent, uint64_t seq, const struct hash *head)
{
	*witness = (struct trust_witness){ .magic = WITNESS_MAGIC, .seq = seq, .head = *head };
	witness_check_of(witness, agent, &witness->check);
}

int trust_witness_check(const char *bytes, size_t size, const char *agent, struct trust_witness *ret_witness)
{
	struct trust_witness witness;
	struct hash check;

	if (size != sizeof witness)
		return -EBADMSG;
	memcpy(&witness, bytes, sizeof witness);
	witness_check_of(&witness, agent, &check);
	if (memcmp(witness.magic, WITNESS_MAGIC, sizeof witness.magic) != 0 ||
	    memcmp(&check, &witness.check, sizeof check) != 0)
		return -EBADMSG;
	*ret_witness = witness;
	return 0;
}
