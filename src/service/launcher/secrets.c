/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/secrets.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "service/launcher/sealed.h"

/*
 * A row is written before its value is sealed, with version 0: whoever dies between the two leaves a secret that is not
 * there yet, and that the next creation under its name takes over. In the vault it has the name of its id.
 */

enum { NS_PER_MS = 1000000, OWNER_MAX = 64, ALL_MAX = 250, METADATA_BYTES = 8 << 10 };

static const char placeholder[] = "${e2b.secrets.";

static uint64_t now_ms(void)
{
	return clock_realtime_ns() / NS_PER_MS;
}

/* ---- rows ---- */

struct search {
	const char *owner, *wanted;   /* a name or an id */
	struct secret_row *found;
	size_t own, all;
	int r;
};

static int look_at(void *context, const struct secret_row *row)
{
	struct search *search = context;

	search->all++;
	if (!str_equal(row->owner, search->owner))
		return 0;
	search->own++;
	if (str_equal(row->name, search->wanted) || str_equal(row->id, search->wanted)) {
		*search->found = *row;
		search->r = 1;
	}
	return 0;
}

/* 1, and it is in *ret_row, whose metadata are not (they live for a call); 0: there is none; -EIO. */
static int find(struct daemon *daemon, const char *owner, const char *wanted, struct secret_row *ret_row,
		struct search *ret_counts)
{
	struct search search = { .owner = owner, .wanted = wanted, .found = ret_row };
	int r = database_each_secret(daemon->store, look_at, &search);

	if (ret_counts)
		*ret_counts = search;
	ret_row->metadata = (struct bytes){ 0 };
	return r < 0 ? r : search.r;
}

/* Small letters, as clients compare them. -EINVAL: it cannot be one. */
static int read_name(const char *given, char out[DATABASE_SECRET_NAME_SIZE])
{
	if (!given || !*given || strchr(given, '{') || strchr(given, '}') || strchr(given, '/') ||
	    str_copy(out, DATABASE_SECRET_NAME_SIZE, given) < 0)
		return -EINVAL;
	for (char *at = out; *at; at++)
		*at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
	return str_has_prefix(out, "sec_") ? -EINVAL : 0;
}

static bool is_one_line(const char *value)
{
	for (; *value; value++)
		if ((unsigned char)*value < 0x20 || *value == 0x7f)
			return false;
	return true;
}

/* ---- what is said of one ---- */

static void put(const struct secret_row *row, struct buf *out)
{
	const char *texts[2 * 32 + 1] = { NULL };
	const char *at = row->metadata.bytes, *end = at + row->metadata.size;
	size_t count = 0;

	/* Each ends with a NUL; the database is the service's own. */
	for (; at && at < end && count < ARRAY_SIZE(texts) - 1; at += strlen(at) + 1)
		texts[count++] = at;
	field_put_string(out, "secret", row->id);
	field_put_string(out, "name", row->name);
	field_put_u64(out, "version", row->version);
	if (count)
		field_put_strings(out, "metadata", texts);
	field_put_u64(out, "created_ms", row->created_ms);
	field_put_u64(out, "updated_ms", row->updated_ms);
}

struct listing {
	struct call *call;
	const char *wanted;           /* the id of one; NULL: a page of all */
	uint64_t seen, from, limit;
	bool has_more;
};

static int list_one(void *context, const struct secret_row *row)
{
	struct listing *listing = context;
	struct call *call = listing->call;
	struct buf *out = &call->daemon->row;

	if (!row->version || !str_equal(row->owner, call->caller.key.owner))
		return 0;
	if (listing->wanted) {
		if (str_equal(row->id, listing->wanted))
			put(row, &call->rows);
		return 0;
	}
	if (listing->seen++ < listing->from)
		return 0;
	listing->has_more = listing->seen > listing->from + listing->limit;
	if (!listing->has_more) {
		service_begin_row(out);
		put(row, out);
		service_put_row(&call->rows, out);
	}
	return listing->has_more ? -ECANCELED : 0;
}

static void answer(struct call *call, uint32_t status, const char *id)
{
	struct listing listing = { .call = call, .wanted = id };
	struct buf *out;

	if (database_each_secret(call->daemon->store, list_one, &listing) < 0) {
		call_fail(call, 500, NULL, "the database cannot be read");
		return;
	}
	out = call_begin_reply(call, status);
	buf_put(out, call->rows.bytes, call->rows.size);
	call_end_reply(call, NULL, 0);
}

void secrets_list(struct call *call)
{
	struct listing listing = { .call = call, .limit = call_number(call, "limit", SERVICE_ROWS_MAX) };
	const char *next = call_string(call, "next");
	char number[24];
	struct buf *out;
	int r;

	if (next && num_parse_u64(next, &listing.from) < 0) {
		call_fail(call, 400, NULL, "nextToken is none that this service gave");
		return;
	}
	r = database_each_secret(call->daemon->store, list_one, &listing);
	if (r < 0 && r != -ECANCELED) {
		call_fail(call, 500, NULL, "the database cannot be read");
		return;
	}
	out = call_begin_reply(call, 200);
	buf_put(out, call->rows.bytes, call->rows.size);
	if (listing.has_more &&
	    str_format(number, sizeof number, "%llu", (unsigned long long)(listing.from + listing.limit)) == 0)
		field_put_string(out, "next", number);
	call_end_reply(call, NULL, 0);
}

/* ---- changes ---- */

/* The row's metadata: those of the request, each text with its NUL. False: the call was answered. */
static bool read_metadata(struct call *call, struct buf *bytes)
{
	const char *const *texts = service_strings(call->message, "metadata");

	buf_init(bytes, METADATA_BYTES);
	for (; texts && *texts; texts++)
		buf_put(bytes, *texts, strlen(*texts) + 1);
	if (buf_error(bytes) == 0)
		return true;
	call_fail(call, 400, NULL, "metadata: more than %d bytes", METADATA_BYTES);
	return false;
}

/* Seals the value and makes the row one of a further version; the call is answered. */
static void seal(struct call *call, struct secret_row *row, uint32_t status)
{
	struct daemon *daemon = call->daemon;
	struct err err = { 0 };
	struct buf metadata;
	int r;

	if (!read_metadata(call, &metadata)) {
		buf_done(&metadata);
		return;
	}
	row->updated_ms = now_ms();
	row->metadata = (struct bytes){ metadata.bytes, metadata.size };
	r = row->version ? 0 : database_put_secret(daemon->store, row);
	if (r == 0 && sealed_set(daemon->places.programs, daemon->places.directory, row->id,
				 call_string(call, "value"), &err) < 0) {
		call_fail_err(call, 500, &err);
		buf_done(&metadata);
		return;
	}
	row->version++;
	if (r == 0)
		r = database_put_secret(daemon->store, row);
	buf_done(&metadata);
	if (r < 0) {
		call_fail(call, call_unwritten_status(r), NULL, "the database cannot be written");
		return;
	}
	daemon_note_change(daemon);
	answer(call, status, row->id);
}

static bool check_value(struct call *call)
{
	const char *value = call_string(call, "value");

	if (value && *value && is_one_line(value))
		return true;
	call_fail(call, 400, NULL, "value: a secret is one line, without control characters, and not empty");
	return false;
}

static bool check_room(struct call *call, const struct search *counts)
{
	if (counts->own >= OWNER_MAX || counts->all >= ALL_MAX) {
		call_fail(call, 429, NULL, "%s has as many secrets as it may have (%d); remove one",
			  counts->own >= OWNER_MAX ? call->caller.key.owner : "this service",
			  counts->own >= OWNER_MAX ? OWNER_MAX : ALL_MAX);
		return false;
	}
	return true;
}

static bool choose_id(struct call *call, struct secret_row *row)
{
	char id[CREDENTIAL_ID_SIZE];

	if (credential_new_id(id) == 0 && str_format(row->id, sizeof row->id, "sec_%s", id) == 0)
		return true;
	call_fail(call, 503, NULL, "there is no random number");
	return false;
}

void secrets_create(struct call *call)
{
	struct secret_row row = { .created_ms = now_ms() }, before = { 0 };
	struct search counts;
	int r;

	if (read_name(call_string(call, "name"), row.name) < 0) {
		call_fail(call, 400, NULL,
			  "name: up to %d bytes, without braces and slashes, and not beginning with sec_",
			  DATABASE_SECRET_NAME_SIZE - 1);
		return;
	}
	if (!check_value(call))
		return;
	r = find(call->daemon, call->caller.key.owner, row.name, &before, &counts);
	if (r < 0) {
		call_fail(call, 500, NULL, "the database cannot be read");
		return;
	}
	if (r == 1 && before.version) {
		call_fail(call, 409, NULL, "there is a secret of this name already");
		return;
	}
	(void)!str_copy(row.owner, sizeof row.owner, call->caller.key.owner);
	if (r == 1)
		(void)!str_copy(row.id, sizeof row.id, before.id);
	else if (!check_room(call, &counts) || !choose_id(call, &row))
		return;
	seal(call, &row, 201);
}

/* The one that the call names; false: the call was answered. */
static bool find_own(struct call *call, struct secret_row *ret_row)
{
	const char *wanted = call_string(call, "secret");
	char name[DATABASE_SECRET_NAME_SIZE];
	int r = find(call->daemon, call->caller.key.owner, read_name(wanted, name) < 0 ? wanted : name, ret_row, NULL);

	if (r < 0)
		call_fail(call, 500, NULL, "the database cannot be read");
	else if (r == 0 || !ret_row->version)
		call_fail(call, 404, NULL, "there is no such secret");
	return r == 1 && ret_row->version;
}

void secrets_get(struct call *call)
{
	struct secret_row row;

	if (find_own(call, &row))
		answer(call, 200, row.id);
}

void secrets_update(struct call *call)
{
	struct secret_row row;

	if (find_own(call, &row) && check_value(call))
		seal(call, &row, 200);
}

void secrets_delete(struct call *call)
{
	struct daemon *daemon = call->daemon;
	struct err err = { 0 };
	struct secret_row row;
	int r;

	if (!find_own(call, &row))
		return;
	if (sealed_remove(daemon->places.programs, daemon->places.directory, row.id, &err) < 0) {
		call_fail_err(call, 500, &err);
		return;
	}
	r = database_remove_secret(daemon->store, row.id);
	if (r < 0) {
		call_fail(call, call_unwritten_status(r), NULL, "the database cannot be written");
		return;
	}
	daemon_note_change(daemon);
	call_reply(call, 204);
}

/* ---- their use ---- */

struct filling {
	const char *ids[SECRET_GIVE_MAX + 1];
	struct secret_row rows[SECRET_GIVE_MAX];
	char *values[SECRET_GIVE_MAX];  /* owned; NULL while it is only looked whether they are there */
	size_t count;
};

static int fail(struct err *err, int r, const char *name, const char *why)
{
	char shown[ERR_QUOTE_SIZE];

	err_set(err, ERR_USAGE, -r, "network", "network.rules: ${e2b.secrets.…}: %s %s", err_quote(shown, name), why);
	return r;
}

/* The index of the secret that a placeholder's name means, which is added where it is new; negative with *err. */
static int meant(struct filling *filling, struct daemon *daemon, const char *owner, const char *name, struct err *err)
{
	char small[DATABASE_SECRET_NAME_SIZE];
	const char *wanted = read_name(name, small) < 0 ? name : small;
	struct secret_row *row = &filling->rows[filling->count];
	int r;

	for (size_t i = 0; i < filling->count; i++)
		if (str_equal(filling->rows[i].name, wanted) || str_equal(filling->rows[i].id, wanted))
			return (int)i;
	if (filling->count == SECRET_GIVE_MAX)
		return fail(err, -EINVAL, name, "is one more than the 12 that a sandbox may use");
	r = find(daemon, owner, wanted, row, NULL);
	if (r < 0)
		return fail(err, r, name, "cannot be looked up: the database cannot be read");
	if (r == 0 || !row->version)
		return fail(err, -ENOENT, name, "is no secret of this key's owner");
	filling->ids[filling->count] = row->id;
	return (int)filling->count++;
}

/* Goes through a value: appends it to out with what stands in `values`, or only collects whom it names (out NULL). */
static int walk(struct filling *filling, struct daemon *daemon, const char *owner, const char *value, struct buf *out,
		struct err *err)
{
	for (;;) {
		const char *at = strstr(value, placeholder), *name = at ? at + strlen(placeholder) : NULL;
		const char *end = name ? strchr(name, '}') : NULL;
		char text[DATABASE_SECRET_NAME_SIZE];
		int i;

		if (!end) {
			if (out)
				buf_put_text(out, value);
			return at ? fail(err, -EINVAL, "", "has no end") : 0;
		}
		if (str_format(text, sizeof text, "%.*s", (int)(end - name), name) < 0)
			return fail(err, -EINVAL, "", "is too long to be a name");
		i = meant(filling, daemon, owner, text, err);
		if (i < 0)
			return i;
		if (out) {
			buf_put(out, value, (size_t)(at - value));
			buf_put_text(out, filling->values[i]);
		}
		value = end + 1;
	}
}

static int replace(struct filling *filling, struct daemon *daemon, const char *owner, char **triples, struct err *err)
{
	int r = 0;

	for (char **triple = triples; r == 0 && *triple; triple += 3) {
		struct buf text;

		if (!strstr(triple[2], placeholder))
			continue;
		buf_init(&text, 64 << 10);
		r = walk(filling, daemon, owner, triple[2], &text, err);
		buf_put_char(&text, 0);
		if (r == 0 && buf_error(&text) < 0)
			r = fail(err, -EINVAL, triple[1], "is too long with its secrets");
		if (r == 0) {
			char *whole = strdup((const char *)text.bytes);

			free(triple[2]);
			triple[2] = whole ? whole : strdup("");
			r = whole ? 0 : -ENOMEM;
		}
		if (text.bytes)
			explicit_bzero(text.bytes, text.capacity);
		buf_done(&text);
	}
	return r;
}

int secrets_fill(struct daemon *daemon, const char *owner, char **triples, bool is_check, struct err *err)
{
	struct filling *filling = calloc(1, sizeof *filling);
	int r = filling ? 0 : -ENOMEM;

	for (char **triple = triples; r == 0 && *triple; triple += 3)
		r = walk(filling, daemon, owner, triple[2], NULL, err);
	if (r == 0 && filling->count && !is_check) {
		r = sealed_get(daemon->places.programs, daemon->places.directory, filling->ids, filling->values, err);
		if (r == 0)
			r = replace(filling, daemon, owner, triples, err);
		for (size_t i = 0; i < filling->count; i++) {
			if (filling->values[i])
				explicit_bzero(filling->values[i], strlen(filling->values[i]));
			free(filling->values[i]);
		}
	}
	if (r == -ENOMEM)
		err_set(err, ERR_INTERNAL, ENOMEM, "network", "out of memory");
	free(filling);
	return r;
}
