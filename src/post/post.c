/* SPDX-License-Identifier: Apache-2.0 */
#include "post/post.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"

enum { ADDRESSES_MAX = 8, RESOLVE_SIZE = 1024 };

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
}

int post_target_read_bundle(struct post_target *target, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > POST_BUNDLE_MAX)
		return -EFBIG;
	target->bundle = malloc((size_t)st.st_size);
	target->bundle_size = (size_t)st.st_size;
	return target->bundle ? fd_read_full(fd, target->bundle, (size_t)st.st_size) : -ENOMEM;
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

/* ---- what comes back ---- */

static size_t on_body(char *bytes, size_t one, size_t size, void *context)
{
	struct post *post = context;

	if (size > post->target->answer_max - post->answer.size) {
		post->problem = "its answer is too long";
		return 0;
	}
	buf_put(&post->answer, bytes, size);
	return size;
}

static void keep_header(struct post *post, const char *bytes, size_t size)
{
	const char *name = post->target->user_header, *at = bytes, *end = bytes + size;
	size_t length = name ? strlen(name) : 0;

	if (!name || size <= length || strncasecmp(bytes, name, length) != 0 || bytes[length] != ':')
		return;
	at += length + 1;
	while (at < end && *at == ' ')
		at++;
	while (end > at && (unsigned char)end[-1] <= ' ')
		end--;
	if ((size_t)(end - at) < sizeof post->user_header) {
		memcpy(post->user_header, at, (size_t)(end - at));
		post->user_header[end - at] = 0;
	}
}

static size_t on_header(char *bytes, size_t one, size_t size, void *context)
{
	struct post *post = context;

	post->header_bytes += size;
	if (post->header_bytes > POST_HEADERS_MAX) {
		post->problem = "its answer has too long headers";
		return 0;
	}
	keep_header(post, bytes, size);
	return size;
}

/* ---- what goes out ---- */

bool post_add_header(struct post *post, const char *text)
{
	struct curl_slist *longer = curl_slist_append(post->headers, text);

	if (longer)
		post->headers = longer;
	return longer;
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
	       SET(CURLOPT_CONNECTTIMEOUT_MS, (long)POST_CONNECT_MS) &&
	       SET(CURLOPT_TIMEOUT_MS, (long)target->timeout_ms) &&
	       SET(CURLOPT_HTTP_CONTENT_DECODING, 0L) && SET(CURLOPT_WRITEFUNCTION, on_body) &&
	       SET(CURLOPT_WRITEDATA, post) && SET(CURLOPT_HEADERFUNCTION, on_header) &&
	       SET(CURLOPT_HEADERDATA, post) && SET(CURLOPT_PRIVATE, context);
#undef SET
}

int post_begin(struct post *post, const struct post_target *target, CURLM *multi, void *context)
{
	int r;

	post->target = target;
	post->header_bytes = 0;
	post->problem = NULL;
	post->user_header[0] = 0;
	buf_init(&post->answer, target->answer_max);
	r = resolve(post, target);
	if (r == 0)
		post->easy = curl_easy_init();
	if (r == 0 && (!post->easy || !post_add_header(post, "Content-Type: application/json") ||
		       !post_add_header(post, "Accept: application/json") || !post_add_header(post, "Expect:") ||
		       !set_options(post, target, context) || curl_multi_add_handle(multi, post->easy) != CURLM_OK))
		r = -ENOMEM;
	if (r < 0)
		post_end(post, multi);
	return r;
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

unsigned post_status(const struct post *post, CURLcode result, const char **ret_why, bool *ret_may_retry)
{
	long status = 0;

	*ret_may_retry = !post->problem;
	*ret_why = post->problem ? post->problem : curl_easy_strerror(result);
	if (post->problem || result != CURLE_OK)
		return 0;
	curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &status);
	return status > 0 ? (unsigned)status : 0;
}
