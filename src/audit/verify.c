/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/verify.h"

#include <assert.h>
#include <string.h>

#include "audit/reader.h"
#include "audit/writer.h"
#include "base/str.h"
#include "os/clock.h"

const char *const audit_fault_names[AUDIT_FAULT_COUNT] = {
	[AUDIT_FAULT_NONE] = "none",
	[AUDIT_FAULT_TRUNCATED] = "truncated",
	[AUDIT_FAULT_SHAPE] = "shape",
	[AUDIT_FAULT_VERSION] = "version",
	[AUDIT_FAULT_SEQ] = "seq",
	[AUDIT_FAULT_SESSION] = "session",
	[AUDIT_FAULT_ALTERED] = "altered",
	[AUDIT_FAULT_LINK] = "link",
	[AUDIT_FAULT_MISSING] = "missing",
	[AUDIT_FAULT_EXTRA] = "extra",
	[AUDIT_FAULT_HEAD] = "head",
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hash_from_hex(struct hash *ret_hash, const char *hex)
{
	struct hash hash;

	for (int i = 0; i < HASH_SIZE; i++) {
		int high = hex_digit(hex[2 * i]), low = high < 0 ? -1 : hex_digit(hex[2 * i + 1]);

		if (low < 0)
			return false;
		hash.bytes[i] = (uint8_t)(high << 4 | low);
	}
	*ret_hash = hash;
	return true;
}

int audit_anchor_parse_head(struct audit_anchor *anchor, const char *text)
{
	if (!str_has_prefix(text, "sha256:") || strlen(text) != 7 + 2 * HASH_SIZE)
		return -EINVAL;
	if (!hash_from_hex(&anchor->head, text + 7))
		return -EINVAL;
	anchor->has_head = true;
	return 0;
}

/* What the chain needs to know of a record. */
struct record {
	uint64_t seq;
	const char *session;   /* SESSION_ID_SIZE - 1 bytes */
	const char *type;
	size_t type_size;
	struct hash prev, own;
};

struct cursor {
	const char *at, *end;
};

static bool take(struct cursor *cursor, const char *text)
{
	size_t size = strlen(text);

	if ((size_t)(cursor->end - cursor->at) < size || memcmp(cursor->at, text, size) != 0)
		return false;
	cursor->at += size;
	return true;
}

static bool take_number(struct cursor *cursor, uint64_t *ret_value)
{
	const char *start = cursor->at;
	uint64_t value = 0;

	for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*cursor->at - '0'), &value))
			return false;
	*ret_value = value;
	return cursor->at > start && (*start != '0' || cursor->at == start + 1);
}

/* One member's bytes: in a pattern '0' stands for a digit, '*' for one of [a-z0-9], all else for itself. */
static bool take_pattern(struct cursor *cursor, const char *pattern)
{
	size_t size = strlen(pattern);

	if ((size_t)(cursor->end - cursor->at) < size)
		return false;
	for (size_t i = 0; i < size; i++) {
		char c = cursor->at[i];
		bool is_digit = c >= '0' && c <= '9', is_letter = c >= 'a' && c <= 'z';

		if (pattern[i] == '0' ? !is_digit : pattern[i] == '*' ? !is_digit && !is_letter : c != pattern[i])
			return false;
	}
	cursor->at += size;
	return true;
}

static const char link_key[] = ",\"prev\":\"", link_end[] = "\"}";

/* Moves the end of the cursor before the last member, which holds the link. */
static bool take_link(struct cursor *cursor, struct hash *ret_prev)
{
	size_t size = strlen(link_key) + 2 * HASH_SIZE + strlen(link_end);
	struct cursor tail;

	if ((size_t)(cursor->end - cursor->at) < size)
		return false;
	tail = (struct cursor){ cursor->end - size, cursor->end };
	cursor->end = tail.at;
	if (!take(&tail, link_key) || !hash_from_hex(ret_prev, tail.at))
		return false;
	tail.at += 2 * HASH_SIZE;
	return take(&tail, link_end);
}

static bool has_control_bytes(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)bytes[i] < 0x20 || bytes[i] == 0x7f)
			return true;
	return false;
}

static enum audit_fault parse_record(struct record *ret_record, const char *line, size_t size)
{
	struct cursor cursor = { line, line + size };
	uint64_t version;

	if (has_control_bytes(line, size) || !take(&cursor, "{\"v\":") || !take_number(&cursor, &version))
		return AUDIT_FAULT_SHAPE;
	if (version != 1)
		return AUDIT_FAULT_VERSION;
	if (!take(&cursor, ",\"seq\":") || !take_number(&cursor, &ret_record->seq) || !take(&cursor, ",\"ts\":") ||
	    !take_pattern(&cursor, "\"0000-00-00T00:00:00.000000000Z\"") || !take(&cursor, ",\"session\":\""))
		return AUDIT_FAULT_SHAPE;
	ret_record->session = cursor.at;
	if (!take_pattern(&cursor, "************") || !take(&cursor, "\",\"type\":\""))
		return AUDIT_FAULT_SHAPE;
	ret_record->type = cursor.at;
	while (cursor.at < cursor.end && ((*cursor.at >= 'a' && *cursor.at <= 'z') || *cursor.at == '.'))
		cursor.at++;
	ret_record->type_size = (size_t)(cursor.at - ret_record->type);
	if (!ret_record->type_size || !take(&cursor, "\"") || !take_link(&cursor, &ret_record->prev))
		return AUDIT_FAULT_SHAPE;
	hash_bytes(&ret_record->own, line, size);
	return AUDIT_FAULT_NONE;
}

void audit_chain_init(struct audit_chain *chain, const char *session, const struct audit_anchor *anchor)
{
	*chain = (struct audit_chain){ 0 };
	if (anchor)
		chain->anchor = *anchor;
	if (session && str_copy(chain->result.session, sizeof chain->result.session, session) < 0)
		chain->result.session[0] = '?'; /* no record can match: refused as of another session */
}

static void set_fault(struct audit_chain *chain, enum audit_fault fault, uint64_t bad_record)
{
	chain->result.fault = fault;
	chain->result.bad_record = bad_record;
	chain->has_suspect = false;
	chain->is_done = true;
}

static bool hash_equal(const struct hash *a, const struct hash *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

/*
 * The record behind the last good one has a link that does not fit. If something later vouches for its bytes as they
 * stand, its link is what was written, and the one before it was altered; else it was altered itself.
 */
static void settle_suspect(struct audit_chain *chain, const struct hash *vouched)
{
	struct audit_result *result = &chain->result;
	uint64_t suspect = result->records + 1;

	if (vouched && !hash_equal(vouched, &chain->suspect)) {
		set_fault(chain, AUDIT_FAULT_LINK, suspect);
		return;
	}
	set_fault(chain, AUDIT_FAULT_ALTERED, suspect - 1);
	result->records--;
}

static void put_good(struct audit_chain *chain, const struct record *record)
{
	static const char end[] = "session.end";
	struct audit_result *result = &chain->result;

	result->records++;
	result->head = record->own;
	result->is_ended = record->type_size == strlen(end) && memcmp(record->type, end, strlen(end)) == 0;
	if (chain->anchor.has_head && hash_equal(&record->own, &chain->anchor.head))
		chain->is_anchor_passed = true;
}

static void put_record(struct audit_chain *chain, const struct record *record)
{
	struct audit_result *result = &chain->result;
	uint64_t expected = result->records + 1;

	if (!result->session[0])
		memcpy(result->session, record->session, SESSION_ID_SIZE - 1);
	if (strlen(result->session) != SESSION_ID_SIZE - 1 ||
	    memcmp(result->session, record->session, SESSION_ID_SIZE - 1) != 0) {
		set_fault(chain, AUDIT_FAULT_SESSION, expected);
	} else if (record->seq != expected) {
		result->found_seq = record->seq;
		set_fault(chain, AUDIT_FAULT_SEQ, expected);
	} else if (hash_equal(&record->prev, &result->head)) {
		put_good(chain, record);
	} else if (expected == 1) {
		set_fault(chain, AUDIT_FAULT_LINK, expected);
	} else {
		chain->suspect = record->own;
		chain->has_suspect = true;
	}
}

void audit_chain_put(struct audit_chain *chain, const char *line, size_t size, bool is_whole)
{
	struct record record;
	enum audit_fault fault;

	chain->result.lines++;
	if (chain->is_done)
		return;
	fault = size >= AUDIT_RECORD_MAX ? AUDIT_FAULT_SHAPE : parse_record(&record, line, size);
	if (chain->has_suspect) {
		bool can_vouch = fault == AUDIT_FAULT_NONE && is_whole && record.seq == chain->result.records + 2;

		settle_suspect(chain, can_vouch ? &record.prev : NULL);
	} else if (!is_whole && size < AUDIT_RECORD_MAX) {
		set_fault(chain, AUDIT_FAULT_TRUNCATED, chain->result.records + 1);
	} else if (fault) {
		set_fault(chain, fault, chain->result.records + 1);
	} else {
		put_record(chain, &record);
	}
}

static void check_anchor(struct audit_chain *chain)
{
	struct audit_result *result = &chain->result;
	const struct audit_anchor *anchor = &chain->anchor;
	bool is_other_head = anchor->has_head && !hash_equal(&result->head, &anchor->head);

	if ((anchor->has_records && result->records < anchor->records) || (is_other_head && !result->records))
		set_fault(chain, AUDIT_FAULT_MISSING, result->records + 1);
	else if (anchor->has_records && result->records > anchor->records)
		set_fault(chain, AUDIT_FAULT_EXTRA, anchor->records + 1);
	else if (is_other_head)
		set_fault(chain, chain->is_anchor_passed ? AUDIT_FAULT_EXTRA : AUDIT_FAULT_HEAD, result->records);
}

int audit_chain_finish(struct audit_chain *chain)
{
	if (chain->has_suspect)
		settle_suspect(chain, chain->anchor.has_head ? &chain->anchor.head : NULL);
	if (!chain->is_done)
		check_anchor(chain);
	chain->is_done = true;
	return chain->result.fault != AUDIT_FAULT_NONE;
}

int audit_verify(int fd, const char *session, const struct audit_anchor *anchor, struct audit_result *ret_result)
{
	cleanup_audit_reader struct audit_reader reader;
	struct audit_chain chain;
	int r = audit_reader_init(&reader, fd);

	if (r < 0)
		return r;
	audit_chain_init(&chain, session, anchor);
	for (;;) {
		const char *line;
		size_t size;

		r = audit_reader_next(&reader, &line, &size);
		if (r < 0)
			return r;
		if (r == AUDIT_LINE_NONE)
			break;
		audit_chain_put(&chain, line, size, r != AUDIT_LINE_PARTIAL);
		if (r == AUDIT_LINE_PARTIAL)
			break;
	}
	r = audit_chain_finish(&chain);
	*ret_result = chain.result;
	return r;
}

static void format_end_fault(const struct audit_result *result, const struct audit_anchor *anchor, struct buf *out)
{
	unsigned long long bad = result->bad_record, records = result->records;
	unsigned long long expected = anchor ? anchor->records : 0;

	if (result->fault == AUDIT_FAULT_MISSING && expected)
		buf_printf(out, "record %llu is missing: the log ends after %llu of %llu records", bad, records,
			   expected);
	else if (result->fault == AUDIT_FAULT_MISSING)
		buf_printf(out, "record %llu is missing: the log is empty", bad);
	else if (result->fault == AUDIT_FAULT_EXTRA)
		buf_printf(out, "record %llu stands behind the recorded end of the log", bad);
	else
		buf_printf(out, "record %llu, the last one, is not the recorded end: the tail was dropped, or the log "
			   "was rewritten or replaced", bad);
}

void audit_result_format(const struct audit_result *result, const struct audit_anchor *anchor, struct buf *out)
{
	static const char *const texts[AUDIT_FAULT_COUNT] = {
		[AUDIT_FAULT_TRUNCATED] = "is cut off: its line does not end",
		[AUDIT_FAULT_SHAPE] = "is not an audit record",
		[AUDIT_FAULT_VERSION] = "has a version that this program does not know",
		[AUDIT_FAULT_SESSION] = "belongs to another session",
		[AUDIT_FAULT_ALTERED] = "was altered: the record after it was chained to other bytes",
		[AUDIT_FAULT_LINK] = "was altered: it is not chained to the record before it",
	};
	char hex[HASH_HEX_SIZE];

	if (result->fault == AUDIT_FAULT_NONE) {
		hash_to_hex(&result->head, hex);
		buf_printf(out, "%llu records, whole, head sha256:%s", (unsigned long long)result->records, hex);
	} else if (result->fault == AUDIT_FAULT_SEQ) {
		buf_printf(out, "record %llu is missing or moved: record %llu stands in its place",
			   (unsigned long long)result->bad_record, (unsigned long long)result->found_seq);
	} else if (texts[result->fault]) {
		buf_printf(out, "record %llu %s", (unsigned long long)result->bad_record, texts[result->fault]);
	} else {
		format_end_fault(result, anchor, out);
	}
}
