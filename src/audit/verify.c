/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/verify.h"

#include <assert.h>
#include <string.h>

#include "audit/append.h"
#include "audit/reader.h"
#include "audit/record.h"
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
	[AUDIT_FAULT_AFTER_END] = "after-end",
	[AUDIT_FAULT_HEAD] = "head",
};

int audit_anchor_parse_head(struct audit_anchor *anchor, const char *text)
{
	if (!str_has_prefix(text, "sha256:") || strlen(text) != 7 + 2 * HASH_SIZE)
		return -EINVAL;
	if (!audit_hash_from_hex(&anchor->head, text + 7))
		return -EINVAL;
	anchor->has_head = true;
	return 0;
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

static bool is_type(const struct audit_record *record, enum audit_type type)
{
	const char *name = audit_type_names[type];

	return record->type_size == strlen(name) && memcmp(record->type, name, record->type_size) == 0;
}

static bool is_review(const struct audit_record *record)
{
	for (enum audit_type type = 0; type < AUDIT_TYPE_COUNT; type++)
		if (audit_type_is_review(type) && is_type(record, type))
			return true;
	return false;
}

static void put_good(struct audit_chain *chain, const struct audit_record *record)
{
	struct audit_result *result = &chain->result;

	if (result->is_ended && !is_review(record)) {
		set_fault(chain, AUDIT_FAULT_AFTER_END, result->records + 1);
		return;
	}
	result->records++;
	result->head = record->own;
	result->reviews += result->is_ended;
	result->is_ended |= is_type(record, AUDIT_SESSION_END);
	if (chain->anchor.has_head && hash_equal(&record->own, &chain->anchor.head))
		chain->anchor_record = result->records;
}

static void put_record(struct audit_chain *chain, const struct audit_record *record)
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
	struct audit_record record;
	enum audit_fault fault;

	chain->result.lines++;
	if (chain->is_done)
		return;
	fault = size >= AUDIT_RECORD_MAX ? AUDIT_FAULT_SHAPE : audit_record_parse(&record, line, size);
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

/* Whether all that stands behind the anchor may come when a session has ended, and the anchor is in its place. */
static bool has_only_reviews_since(const struct audit_chain *chain)
{
	const struct audit_result *result = &chain->result;
	uint64_t at = chain->anchor.has_head ? chain->anchor_record : chain->anchor.records;

	return result->is_ended && at >= result->records - result->reviews &&
	       (!chain->anchor.has_records || chain->anchor.records == at);
}

static void check_anchor(struct audit_chain *chain)
{
	struct audit_result *result = &chain->result;
	const struct audit_anchor *anchor = &chain->anchor;
	bool is_other_head = anchor->has_head && !hash_equal(&result->head, &anchor->head);

	if ((anchor->has_records && result->records < anchor->records) || (is_other_head && !result->records))
		set_fault(chain, AUDIT_FAULT_MISSING, result->records + 1);
	else if (has_only_reviews_since(chain))
		return;
	else if (anchor->has_records && result->records > anchor->records)
		set_fault(chain, AUDIT_FAULT_EXTRA, anchor->records + 1);
	else if (is_other_head)
		set_fault(chain, chain->anchor_record ? AUDIT_FAULT_EXTRA : AUDIT_FAULT_HEAD, result->records);
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
		buf_printf(out, "record %llu comes after the recorded end of the log", bad);
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
		[AUDIT_FAULT_AFTER_END] = "cannot stand behind session.end",
		[AUDIT_FAULT_ALTERED] = "was altered: the record after it was chained to other bytes",
		[AUDIT_FAULT_LINK] = "was altered: it is not chained to the record before it",
	};
	char hex[HASH_HEX_SIZE];

	if (result->fault == AUDIT_FAULT_NONE) {
		hash_to_hex(&result->head, hex);
		buf_printf(out, "%llu records, whole, head sha256:%s", (unsigned long long)result->records, hex);
		if (result->reviews)
			buf_printf(out, " (%llu of them since the session ended)",
				   (unsigned long long)result->reviews);
	} else if (result->fault == AUDIT_FAULT_SEQ) {
		buf_printf(out, "record %llu is missing or moved: record %llu stands in its place",
			   (unsigned long long)result->bad_record, (unsigned long long)result->found_seq);
	} else if (texts[result->fault]) {
		buf_printf(out, "record %llu %s", (unsigned long long)result->bad_record, texts[result->fault]);
	} else {
		format_end_fault(result, anchor, out);
	}
}
