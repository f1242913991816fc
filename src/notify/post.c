/* SPDX-License-Identifier: Apache-2.0 */
#include "notify/post.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

enum { ADDRESSES_MAX = 8, RESOLVE_SIZE = 1024, HEADER_SIZE = 160, OK = 200, REDIRECT = 300,
       CLIENT_ERROR = 400, TIMEOUT = 408, TOO_MANY = 429, SERVER_ERROR = 500 };

/* ---- where to ---- */

int post_target_init(struct post_target *target)
{
	CURLU *url = curl_url();
	char *host = NULL;
	struct in6_addr address;
	int r = url && curl_url_set(url, CURLUPART_URL, target->url, 0) == CURLUE_OK &&
		curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
		curl_url_get(url, CURLUPART_PORT, &target->port, CURLU_DEFAULT_PORT) == CURLUE_OK ? 0 : -EINVAL;

	if (r == 0 && host[0] != '[' && inet_pton(AF_INET, host, &address) != 1)
		target->host = host;
	else
		curl_free(host);
	curl_url_cleanup(url);
	return r;
}

void post_target_done(struct post_target *target)
{
	curl_free(target->host);
	curl_free(target->port);
	free(target->bundle);
	sodium_memzero(&target->key, sizeof target->key);
}

/* libcurl would look it up in a thread of its own, for which there is no room here. */
static int resolve(struct post *post, const struct post_target *target)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char entry[RESOLVE_SIZE], address[NI_MAXHOST];
	struct addrinfo *found = NULL;
	struct buf out;
	size_t count = 0;

	if (!target->host)
		return 0;
	if (getaddrinfo(target->host, target->port, &hints, &found) != 0)
		return -ENOENT;
	buf_init_fixed(&out, entry, sizeof entry);
	buf_printf(&out, "%s:%s:", target->host, target->port);
	for (const struct addrinfo *at = found; at && count < ADDRESSES_MAX; at = at->ai_next)
		if (getnameinfo(at->ai_addr, at->ai_addrlen, address, sizeof address, NULL, 0, NI_NUMERICHOST) == 0)
			buf_printf(&out, at->ai_family == AF_INET6 ? "%s[%s]" : "%s%s", count++ ? "," : "", address);
	freeaddrinfo(found);
	post->resolved = count && !buf_error(&out) ? curl_slist_append(NULL, buf_text(&out)) : NULL;
	return post->resolved ? 0 : -ENOENT;
}

/* ---- what it says ---- */

static void begin(struct json *json, struct buf *out, const struct post_target *target, const char *event)
{
	json_init(json, out);
	json_object_begin(json, NULL);
	json_u64(json, "v", 1);
	json_string(json, "event", event);
	json_string(json, "session", target->session);
}

static void put_hash(struct json *json, const uint8_t bytes[ASKING_HASH_SIZE])
{
	char text[HASH_HEX_SIZE + 8] = "sha256:";
	struct hash hash;

	memcpy(hash.bytes, bytes, sizeof hash.bytes);
	hash_to_hex(&hash, text + strlen(text));
	json_string(json, "hash", text);
}

void post_put_question(struct buf *out, const struct post_target *target, const struct notify_question *question)
{
	struct json json;

	begin(&json, out, target, "question");
	json_u64(&json, "question", question->number);
	put_hash(&json, question->hash);
	json_string(&json, "state", question->state == ASKING_WAITS ? "waiting" : "listed");
	json_u64(&json, "waiting", question->waiting);
	json_u64(&json, "left_ms", question->left_ms);
	json_bool(&json, "may_answer", target->may_answer);
	json_string(&json, "text", question->what);
	/* Written by the box, which wrote the members. */
	buf_put_text(out, ",\"what\":");
	buf_put_text(out, question->json);
	json_object_end(&json);
}

void post_put_closed(struct buf *out, const struct post_target *target, uint32_t number,
		     const uint8_t hash[ASKING_HASH_SIZE], enum notify_end end)
{
	struct json json;

	begin(&json, out, target, "closed");
	json_u64(&json, "question", number);
	put_hash(&json, hash);
	json_string(&json, "answer", notify_end_names[end]);
	json_object_end(&json);
}

/* ---- what comes back ---- */

static size_t on_body(char *bytes, size_t one, size_t size, void *context)
{
	struct post *post = context;

	if (size > ANSWER_MAX - post->answer.size) {
		post->problem = "its answer is too long";
		return 0;
	}
	buf_put(&post->answer, bytes, size);
	return size;
}

static size_t on_header(char *bytes, size_t one, size_t size, void *context)
{
	static const char name[] = "atoll-signature:", version[] = "v1=";
	struct post *post = context;
	const char *at = bytes + sizeof name - 1, *end = bytes + size;

	post->header_bytes += size;
	if (post->header_bytes > POST_HEADERS_MAX) {
		post->problem = "its answer has too long headers";
		return 0;
	}
	if (size < sizeof name || strncasecmp(bytes, name, sizeof name - 1) != 0)
		return size;
	while (at < end && *at == ' ')
		at++;
	if ((size_t)(end - at) >= sizeof version - 1 + SIGN_SIZE - 1 && memcmp(at, version, sizeof version - 1) == 0) {
		memcpy(post->answer_signature, at + sizeof version - 1, SIGN_SIZE - 1);
		post->answer_signature[SIGN_SIZE - 1] = 0;
	}
	return size;
}

static bool add_header(struct post *post, const char *text)
{
	struct curl_slist *longer = curl_slist_append(post->headers, text);

	if (longer)
		post->headers = longer;
	return longer;
}

static bool add_headers(struct post *post, const struct post_target *target)
{
	uint64_t time_s = (uint64_t)time(NULL);
	char header[HEADER_SIZE];

	if (!add_header(post, "Content-Type: application/json") || !add_header(post, "Accept: application/json") ||
	    !add_header(post, "Expect:"))
		return false;
	if (!target->key.size)
		return true;
	sign_request(&target->key, time_s, post->body.bytes, post->body.size, post->signature);
	return str_format(header, sizeof header, "Atoll-Signature: t=%llu,v1=%s", (unsigned long long)time_s,
			  post->signature) == 0 && add_header(post, header);
}

/* One request, to that place and to no other, with nothing that could make it another one. */
static bool set_options(struct post *post, const struct post_target *target, void *context)
{
	const char *protocol = str_has_prefix(target->url, "https:") ? "https" : "http";
	struct curl_blob bundle = { target->bundle, target->bundle_size, CURL_BLOB_NOCOPY };
	CURL *easy = post->easy;

#define SET(option, value) (curl_easy_setopt(easy, option, value) == CURLE_OK)
	return SET(CURLOPT_URL, target->url) && SET(CURLOPT_PROTOCOLS_STR, protocol) &&
	       SET(CURLOPT_FOLLOWLOCATION, 0L) && SET(CURLOPT_PROXY, "") && SET(CURLOPT_NOSIGNAL, 1L) &&
	       SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
	       SET(CURLOPT_USERAGENT, "atoll/" ATOLL_VERSION) &&
	       SET(CURLOPT_CAINFO, NULL) && SET(CURLOPT_CAPATH, NULL) &&
	       (!bundle.data || SET(CURLOPT_CAINFO_BLOB, &bundle)) && SET(CURLOPT_SSL_VERIFYPEER, 1L) &&
	       SET(CURLOPT_SSL_VERIFYHOST, 2L) && SET(CURLOPT_POST, 1L) &&
	       SET(CURLOPT_POSTFIELDSIZE, (long)post->body.size) && SET(CURLOPT_POSTFIELDS, post->body.bytes) &&
	       SET(CURLOPT_HTTPHEADER, post->headers) && SET(CURLOPT_RESOLVE, post->resolved) &&
	       SET(CURLOPT_CONNECTTIMEOUT_MS, (long)POST_CONNECT_MS) && SET(CURLOPT_TIMEOUT_MS, (long)POST_TOTAL_MS) &&
	       SET(CURLOPT_HTTP_CONTENT_DECODING, 0L) && SET(CURLOPT_WRITEFUNCTION, on_body) &&
	       SET(CURLOPT_WRITEDATA, post) && SET(CURLOPT_HEADERFUNCTION, on_header) &&
	       SET(CURLOPT_HEADERDATA, post) && SET(CURLOPT_PRIVATE, context);
#undef SET
}

int post_begin(struct post *post, const struct post_target *target, CURLM *multi, void *context)
{
	int r;

	post->header_bytes = 0;
	post->problem = NULL;
	post->signature[0] = post->answer_signature[0] = 0;
	buf_init(&post->answer, ANSWER_MAX);
	r = resolve(post, target);
	if (r < 0)
		return r;
	post->easy = curl_easy_init();
	if (!post->easy || !add_headers(post, target) || !set_options(post, target, context) ||
	    curl_multi_add_handle(multi, post->easy) != CURLM_OK) {
		post_end(post, multi);
		return -ENOMEM;
	}
	return 0;
}

void post_end(struct post *post, CURLM *multi)
{
	if (post->easy) {
		curl_multi_remove_handle(multi, post->easy);
		curl_easy_cleanup(post->easy);
	}
	curl_slist_free_all(post->headers);
	curl_slist_free_all(post->resolved);
	buf_done(&post->answer);
	post->easy = NULL;
	post->headers = post->resolved = NULL;
}

static enum post_outcome judge_answer(const struct post *post, const struct post_target *target,
				      struct answer *ret_answer, char why[NOTIFY_TROUBLE_MAX])
{
	char expected[SIGN_SIZE];
	const char *problem = NULL;

	if (target->key.size) {
		sign_answer(&target->key, post->signature, post->answer.bytes, post->answer.size, expected);
		if (strlen(post->answer_signature) != SIGN_SIZE - 1 ||
		    !sign_is_same(expected, post->answer_signature))
			problem = "it is not signed with the key";
	}
	if (!problem && answer_parse(post->answer.bytes, post->answer.size, ret_answer, &problem) == 0)
		return POST_ANSWERED;
	if (str_format(why, NOTIFY_TROUBLE_MAX, "its answer was not taken: %s", problem) < 0)
		why[0] = 0;
	return POST_REFUSED;
}

enum post_outcome post_judge(const struct post *post, const struct post_target *target, CURLcode result,
			     struct answer *ret_answer, char why[NOTIFY_TROUBLE_MAX])
{
	long status = 0;

	if (post->problem || result != CURLE_OK) {
		(void)!str_copy(why, NOTIFY_TROUBLE_MAX, post->problem ? post->problem : curl_easy_strerror(result));
		return post->problem ? POST_REFUSED : POST_FAILED;
	}
	curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= OK && status < REDIRECT) {
		if (!target->may_answer || status != OK || !post->answer.size)
			return POST_TAKEN;
		return judge_answer(post, target, ret_answer, why);
	}
	(void)!str_format(why, NOTIFY_TROUBLE_MAX, status >= REDIRECT && status < CLIENT_ERROR
			  ? "it answered with %ld, and redirections are not followed" : "it answered with %ld", status);
	return status >= SERVER_ERROR || status == TIMEOUT || status == TOO_MANY ? POST_FAILED : POST_REFUSED;
}
