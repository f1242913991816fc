/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-function/request.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { CONNECT_MS = 5000, URL_SIZE = 4096, KEY_HEADER_SIZE = 256 };

static size_t on_body(char *bytes, size_t one, size_t size, void *context)
{
	buf_put(context, bytes, size);
	return buf_error(context) < 0 ? 0 : size;
}

static const char *url_of_service(void)
{
	const char *url = getenv("E2B_API_URL");

	return url && *url ? url : "http://127.0.0.1:49982";
}

/* To that place and to no other. */
static bool set_options(CURL *easy, struct request *request, const char *url, const struct curl_slist *headers)
{
#define SET(option, value) (curl_easy_setopt(easy, option, value) == CURLE_OK)
	return SET(CURLOPT_URL, url) && SET(CURLOPT_PROTOCOLS_STR, "http,https") && SET(CURLOPT_PROXY, "") &&
	       SET(CURLOPT_NOSIGNAL, 1L) && SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) &&
	       SET(CURLOPT_CUSTOMREQUEST, request->method) && SET(CURLOPT_HTTPHEADER, headers) &&
	       SET(CURLOPT_WRITEFUNCTION, on_body) && SET(CURLOPT_WRITEDATA, &request->answer) &&
	       (!request->body || (SET(CURLOPT_POSTFIELDSIZE, (long)request->body_size) &&
				   SET(CURLOPT_POSTFIELDS, request->body)));
#undef SET
}

static int fail(CURLcode result, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	err_set(err, ERR_STATE, EIO, "function", "no service answers at %s: %s", err_quote(shown, url_of_service()),
		curl_easy_strerror(result));
	err_hint(err, "start it with `atoll serve`; E2B_API_URL says where it is");
	return -EIO;
}

static struct curl_slist *make_headers(const char *key)
{
	static const char *const fixed[] = { "Content-Type: application/json", "Expect:" };
	char header[KEY_HEADER_SIZE];
	struct curl_slist *list = NULL;

	if (str_format(header, sizeof header, "X-API-KEY: %s", key) == 0)
		list = curl_slist_append(NULL, header);
	explicit_bzero(header, sizeof header);
	for (size_t i = 0; list && i < ARRAY_SIZE(fixed); i++) {
		struct curl_slist *longer = curl_slist_append(list, fixed[i]);

		if (!longer)
			curl_slist_free_all(list);
		list = longer;
	}
	return list;
}

static int perform(struct request *request, const char *url, struct curl_slist *headers, struct err *err)
{
	CURL *easy = curl_easy_init();
	CURLcode result = CURLE_OUT_OF_MEMORY;
	long status = 0;

	if (easy && set_options(easy, request, url, headers))
		result = curl_easy_perform(easy);
	if (result == CURLE_OK)
		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(easy);
	request->status = status > 0 ? (unsigned)status : 0;
	return result == CURLE_OK ? 0 : fail(result, err);
}

int request_send(struct request *request, struct err *err)
{
	const char *key = getenv("E2B_API_KEY");
	struct curl_slist *headers;
	char url[URL_SIZE];
	int r;

	buf_init(&request->answer, REQUEST_ANSWER_MAX);
	if (!key || !*key || key[strcspn(key, "\r\n")]) {
		err_set(err, ERR_USAGE, ENOKEY, "function", "there is no key: E2B_API_KEY is not set");
		err_hint(err, "set it to the one that `atoll serve` or `atoll serve key add NAME` printed");
		return -ENOKEY;
	}
	if (str_format(url, sizeof url, "%s%s", url_of_service(), request->path) < 0)
		return err_set(err, ERR_USAGE, ENAMETOOLONG, "function", "E2B_API_URL is too long");
	headers = make_headers(key);
	r = headers ? perform(request, url, headers, err) :
		      err_set(err, ERR_USAGE, EINVAL, "function", "E2B_API_KEY is too long");
	curl_slist_free_all(headers);
	return r;
}
