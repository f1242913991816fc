/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/credentials/sigv4.h"

#include <sodium.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "egress/message/http1-head.h"

enum {
	SHA_SIZE = crypto_hash_sha256_BYTES,
	SHA_HEX_SIZE = 2 * SHA_SIZE + 1,
	DATE_SIZE = 17,
	SCOPE_SIZE = 192,
	PARTS_MAX = 256,
};

static const char unsigned_payload[] = "UNSIGNED-PAYLOAD";

/* The three parts of "id:key:token"; an id has at most 128 bytes. */
struct keys {
	char id[129];
	const char *key, *token;     /* token: NULL */
	size_t key_size;
};

struct signing {
	const struct inject *inject;
	struct keys keys;
	const char *host;
	char date[DATE_SIZE];        /* 20150830T123600Z */
	char scope[SCOPE_SIZE];      /* 20150830/region/service/aws4_request */
	const char *payload;         /* its hash, or what stands for it */
};

static bool split(const char *secret, struct keys *out)
{
	size_t id = strcspn(secret, ":");
	const char *key = secret + id + 1;

	if (!secret[id] || !id || id >= sizeof out->id)
		return false;
	memcpy(out->id, secret, id);
	out->id[id] = 0;
	out->key = key;
	out->key_size = strcspn(key, ":");
	out->token = key[out->key_size] ? key + out->key_size + 1 : NULL;
	return out->key_size > 0 && out->key_size <= 256 && (!out->token || *out->token);
}

const char *sigv4_problem(const char *secret)
{
	struct keys keys;

	return split(secret, &keys) ? NULL : "a secret for AWS is \"id:key\" or \"id:key:token\"";
}

static void hash_hex(const void *bytes, size_t size, char out[SHA_HEX_SIZE])
{
	uint8_t hash[SHA_SIZE];

	crypto_hash_sha256(hash, bytes, size);
	sodium_bin2hex(out, SHA_HEX_SIZE, hash, sizeof hash);
}

static void hmac(const void *key, size_t key_size, const void *bytes, size_t size, uint8_t out[SHA_SIZE])
{
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, key, key_size);
	crypto_auth_hmacsha256_update(&state, bytes, size);
	crypto_auth_hmacsha256_final(&state, out);
	sodium_memzero(&state, sizeof state);
}

/* --- The canonical request. --- */

static bool is_unreserved(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

static int digit_of(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c | 0x20 : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* decodes: what is escaped already is escaped anew, in the one spelling that signatures know. kept: stays as it is. */
static void put_encoded(struct buf *out, const char *text, size_t size, bool decodes, char kept)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (decodes && c == '%' && i + 2 < size && digit_of(text[i + 1]) >= 0 && digit_of(text[i + 2]) >= 0) {
			c = (unsigned char)(digit_of(text[i + 1]) << 4 | digit_of(text[i + 2]));
			i += 2;
		}
		if (is_unreserved(c) || (kept && c == (unsigned char)kept))
			buf_put_char(out, (char)c);
		else
			buf_printf(out, "%%%02X", c);
	}
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each "name=value", encoded, in the order of names and then of values. */
static int put_query(struct buf *out, const char *query)
{
	char *parts[PARTS_MAX];
	size_t count = 0;
	int r = 0;

	while (r == 0 && *query) {
		size_t size = strcspn(query, "&"), name = strcspn(query, "=&");
		cleanup_buf struct buf part;

		buf_init(&part, SIGV4_CANONICAL_MAX);
		put_encoded(&part, query, name, true, 0);
		/* Lower than any byte of a name, so that "a" comes before "a-b". */
		buf_put_char(&part, 1);
		if (name < size)
			put_encoded(&part, query + name + 1, size - name - 1, true, 0);
		if (size && count == PARTS_MAX)
			r = -E2BIG;
		else if (size && !(parts[count++] = str_dup(buf_text(&part))))
			r = -ENOMEM;
		query += size + (query[size] == '&');
	}
	if (r == 0)
		qsort(parts, count, sizeof *parts, compare_texts);
	for (size_t i = 0; i < count; i++) {
		char *joint = parts[i] ? strchr(parts[i], 1) : NULL;

		if (joint)
			*joint = '=';
		if (r == 0)
			buf_printf(out, "%s%s", i ? "&" : "", parts[i]);
		free(parts[i]);
	}
	return r;
}

static bool is_signed(const char *name)
{
	return strncasecmp(name, "x-amz-", 6) == 0 || strcasecmp(name, "content-type") == 0;
}

/* Runs of blanks count as one. */
static void put_value(struct buf *out, const char *value)
{
	for (; *value; value++)
		if (*value != ' ' || value[1] != ' ')
			buf_put_char(out, *value);
}

static int compare_fields(const void *a, const void *b)
{
	const struct http1_field *const *x = a, *const *y = b;
	int r = strcasecmp((*x)->name, (*y)->name);

	return r ? r : *x < *y ? -1 : 1;
}

/* The fields that are signed, as they are told of and as a list of names. */
static void put_fields(const struct http1_head *head, const char *host, struct buf *out, struct buf *names)
{
	const struct http1_field host_field = { .name = "host", .value = host };
	const struct http1_field *fields[HTTP1_FIELDS_MAX + 1] = { &host_field };
	size_t count = 1;

	for (size_t i = 0; i < head->field_count; i++)
		if (is_signed(head->fields[i].name))
			fields[count++] = &head->fields[i];
	qsort(fields, count, sizeof *fields, compare_fields);
	for (size_t i = 0; i < count; i++) {
		if (i && strcasecmp(fields[i - 1]->name, fields[i]->name) == 0) {
			buf_put_char(out, ',');
			put_value(out, fields[i]->value);
			continue;
		}
		if (i) {
			buf_put_char(out, '\n');
			buf_put_char(names, ';');
		}
		for (const char *at = fields[i]->name; *at; at++) {
			char c = (char)(*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at);

			buf_put_char(out, c);
			buf_put_char(names, c);
		}
		buf_put_char(out, ':');
		put_value(out, fields[i]->value);
	}
	buf_put_text(out, "\n\n");
}

static int put_request(const struct signing *signing, const struct http1_head *head, struct buf *out, struct buf *names)
{
	size_t path = strcspn(head->target, "?");
	int r;

	buf_printf(out, "%s\n", head->method);
	/* s3 knows names of objects, and escapes them once; for all others the path that is sent is escaped again. */
	put_encoded(out, head->target, path, str_equal(signing->inject->service, "s3"), '/');
	buf_put_char(out, '\n');
	r = put_query(out, head->target + path + (head->target[path] == '?'));
	buf_put_char(out, '\n');
	put_fields(head, signing->host, out, names);
	buf_put_text(out, buf_text(names));
	buf_printf(out, "\n%s", signing->payload);
	return r < 0 ? r : buf_error(out) < 0 ? buf_error(out) : buf_error(names);
}

/* --- The signature. --- */

static void sign(const struct signing *signing, const char *request_hash, char out[SHA_HEX_SIZE])
{
	const char *const steps[] = { signing->inject->region, signing->inject->service, "aws4_request" };
	char first[4 + 256], text[512];
	uint8_t key[SHA_SIZE];

	memcpy(first, "AWS4", 4);
	memcpy(first + 4, signing->keys.key, signing->keys.key_size);
	hmac(first, 4 + signing->keys.key_size, signing->date, 8, key);
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		hmac(key, sizeof key, steps[i], strlen(steps[i]), key);
	if (str_format(text, sizeof text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", signing->date, signing->scope,
		       request_hash) < 0)
		abort();
	hmac(key, sizeof key, text, strlen(text), key);
	sodium_bin2hex(out, SHA_HEX_SIZE, key, sizeof key);
	sodium_memzero(key, sizeof key);
	sodium_memzero(first, sizeof first);
}

/* Whether a body may come; over HTTP/2 the head alone does not tell. */
static bool may_have_body(const struct http1_head *head)
{
	static const char *const without[] = { "GET", "HEAD", "DELETE", "OPTIONS" };
	const char *length = http1_find(head, "content-length");

	if (length || head->framing == HTTP1_CHUNKED || head->framing == HTTP1_LENGTH)
		return !(head->framing == HTTP1_LENGTH && head->length == 0) && !(length && str_equal(length, "0"));
	for (size_t i = 0; i < ARRAY_SIZE(without); i++)
		if (str_equal(head->method, without[i]))
			return false;
	return true;
}

static int find_payload(struct signing *signing, struct http1_head *head, char empty[SHA_HEX_SIZE])
{
	const char *told = http1_find(head, "x-amz-content-sha256");

	hash_hex("", 0, empty);
	signing->payload = told;
	/* Else each chunk is signed as well. */
	if (told)
		return str_has_prefix(told, "STREAMING-") && !str_has_prefix(told, "STREAMING-UNSIGNED-")
			       ? -EOPNOTSUPP : 0;
	signing->payload = may_have_body(head) ? unsigned_payload : empty;
	if (!str_equal(signing->inject->service, "s3"))
		return signing->payload == empty ? 0 : -EOPNOTSUPP;
	return http1_set(head, "x-amz-content-sha256", signing->payload);
}

static int set_date(struct signing *signing, uint64_t now_s)
{
	time_t now = (time_t)now_s;
	struct tm tm;

	if (!gmtime_r(&now, &tm) ||
	    strftime(signing->date, sizeof signing->date, "%Y%m%dT%H%M%SZ", &tm) != DATE_SIZE - 1)
		return -EINVAL;
	return str_format(signing->scope, sizeof signing->scope, "%.8s/%s/%s/aws4_request", signing->date,
			  signing->inject->region, signing->inject->service);
}

static int prepare(struct signing *signing, struct http1_head *head, char empty[SHA_HEX_SIZE])
{
	int r;

	if (strcasestr(head->target, "x-amz-signature="))
		return -EOPNOTSUPP;
	r = find_payload(signing, head, empty);
	http1_remove(head, "authorization");
	http1_remove(head, "x-amz-security-token");
	if (r == 0)
		r = http1_set(head, "x-amz-date", signing->date);
	if (r == 0 && signing->keys.token) {
		r = http1_set(head, "x-amz-security-token", signing->keys.token);
		head->fields[head->field_count - 1].is_secret = r == 0;
	}
	return r;
}

int sigv4_sign(struct http1_head *head, const struct inject *inject, const char *secret, const char *host,
	       uint64_t now_s)
{
	char empty[SHA_HEX_SIZE], request_hash[SHA_HEX_SIZE], signature[SHA_HEX_SIZE];
	struct signing signing = { .inject = inject, .host = host };
	cleanup_buf struct buf request, names, field;
	int r = split(secret, &signing.keys) ? set_date(&signing, now_s) : -EINVAL;

	buf_init(&request, SIGV4_CANONICAL_MAX);
	buf_init(&names, SIGV4_CANONICAL_MAX);
	buf_init(&field, SIGV4_CANONICAL_MAX);
	if (r == 0)
		r = prepare(&signing, head, empty);
	if (r == 0)
		r = put_request(&signing, head, &request, &names);
	if (r < 0)
		return r;
	hash_hex(request.bytes, request.size, request_hash);
	sign(&signing, request_hash, signature);
	buf_printf(&field, "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s", signing.keys.id,
		   signing.scope, buf_text(&names), signature);
	r = buf_error(&field) < 0 ? buf_error(&field) : http1_set(head, "Authorization", buf_text(&field));
	/* The token lies in the canonical request as well. */
	explicit_bzero(request.bytes, request.capacity);
	return r;
}
