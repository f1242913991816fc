/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/record/answer.h"

#include <string.h>

#include "base/str.h"
#include "egress/message/http1-head.h"

enum { PIECE_SIZE = 16 << 10, NAMES_MAX = HTTP1_FIELDS_MAX * HTTP1_NAME_MAX };

struct answer answer_of_rule(const struct net_answer *rule)
{
	return (struct answer){
		.status = rule->status,
		.reason = "",
		.fields = rule->fields,
		.body = rule->body,
		.body_size = rule->body_size,
		.framing = HTTP1_LENGTH,
	};
}

static bool has_body(const struct answer_source *source)
{
	return !source->is_to_head && source->answer->status != 204 && source->answer->status != 304;
}

/* What came over HTTP/2 has no reason; HTTP/1.1 servers give the usual one. */
static const char *reason_of(const struct answer *answer)
{
	const char *usual = http_status_str((enum http_status)answer->status);

	return answer->reason[0] || usual[0] == '<' ? answer->reason : usual;
}

static void frame(struct answer_source *source, unsigned minor, struct http1_head *head)
{
	const struct answer *answer = source->answer;

	if (!has_body(source)) {
		head->framing = HTTP1_NO_BODY;
		return;
	}
	head->framing = answer->framing == HTTP1_CHUNKED && minor == 0 ? HTTP1_UNTIL_END : answer->framing;
	/* Of an answer that breaks off more was announced than ever comes. */
	head->length = answer->body_size + answer->is_cut;
	head->closes = head->closes || head->framing == HTTP1_UNTIL_END;
	source->is_chunked = head->framing == HTTP1_CHUNKED;
}

void answer_put_head(struct answer_source *source, unsigned minor, bool *closes, struct buf *out)
{
	const struct answer *answer = source->answer;
	struct http1_head head = {
		.kind = HTTP1_RESPONSE,
		.status = answer->status,
		.reason = reason_of(answer),
		.minor = 1,
		.closes = answer->closes,
	};

	for (size_t i = 0; answer->fields && answer->fields[i] && head.field_count < HTTP1_FIELDS_MAX; i += 2)
		head.fields[head.field_count++] = (struct http1_field){ .name = answer->fields[i],
									.value = answer->fields[i + 1] };
	frame(source, minor, &head);
	http1_put_head(&head, out);
	*closes = *closes || head.closes;
}

enum answer_state answer_put_body(struct answer_source *source, struct buf *out, size_t max)
{
	const struct answer *answer = source->answer;
	size_t size = has_body(source) ? answer->body_size : 0;

	while (source->done < size && out->size < max) {
		size_t piece = size - source->done < PIECE_SIZE ? size - source->done : PIECE_SIZE;

		if (source->is_chunked)
			buf_printf(out, "%zx\r\n", piece);
		buf_put(out, answer->body + source->done, piece);
		if (source->is_chunked)
			buf_put_text(out, "\r\n");
		source->done += piece;
	}
	if (source->done < size)
		return ANSWER_MORE;
	if (answer->is_cut && has_body(source))
		return ANSWER_CUT;
	if (source->is_chunked)
		buf_put_text(out, "0\r\n\r\n");
	return ANSWER_WHOLE;
}

/* --- HTTP/2. --- */

/* Names in small letters, as a rule of HTTP/2 wants them (RFC 9113 8.2); nghttp2 copies them. names is empty. */
static size_t put_nvs(const char *const *fields, nghttp2_nv *out, struct buf *names)
{
	size_t count = 0, size = 0;
	char *at;

	while (fields && fields[2 * count] && count < HTTP1_FIELDS_MAX)
		size += strlen(fields[2 * count++]);
	at = size ? buf_reserve(names, size) : NULL;
	for (size_t i = 0; at && i < count; i++) {
		const char *name = fields[2 * i], *value = fields[2 * i + 1];
		size_t length = strlen(name);

		out[i] = (nghttp2_nv){ (uint8_t *)at, (uint8_t *)value, length, strlen(value), NGHTTP2_NV_FLAG_NONE };
		for (; *name; name++)
			*at++ = (char)(*name >= 'A' && *name <= 'Z' ? *name | 0x20 : *name);
	}
	return at ? count : 0;
}

int answer_submit(const struct answer_source *source, nghttp2_session *session, int32_t stream_id,
		  const nghttp2_data_provider *provider)
{
	const struct answer *answer = source->answer;
	bool sends = has_body(source) &&
		     (answer->body_size || answer->is_cut || (answer->trailers && answer->trailers[0]));
	nghttp2_nv nvs[HTTP1_FIELDS_MAX + 1];
	cleanup_buf struct buf names = { 0 };
	char status[16];
	size_t count;

	if (str_format(status, sizeof status, "%u", answer->status) < 0)
		return NGHTTP2_ERR_INVALID_ARGUMENT;
	nvs[0] = (nghttp2_nv){ (uint8_t *)":status", (uint8_t *)status, strlen(":status"), strlen(status),
			       NGHTTP2_NV_FLAG_NONE };
	buf_init(&names, NAMES_MAX);
	count = 1 + put_nvs(answer->fields, nvs + 1, &names);
	if (buf_error(&names) < 0)
		return NGHTTP2_ERR_NOMEM;
	return nghttp2_submit_response(session, stream_id, nvs, count, sends ? provider : NULL);
}

size_t answer_read(struct answer_source *source, void *bytes, size_t max, enum answer_state *ret_state)
{
	const struct answer *answer = source->answer;
	size_t rest = answer->body_size - source->done, size = rest < max ? rest : max;

	if (size)
		memcpy(bytes, answer->body + source->done, size);
	source->done += size;
	*ret_state = size < rest || (size && answer->is_cut) ? ANSWER_MORE : answer->is_cut ? ANSWER_CUT : ANSWER_WHOLE;
	return size;
}

int answer_submit_trailers(const struct answer_source *source, nghttp2_session *session, int32_t stream_id)
{
	cleanup_buf struct buf names;
	nghttp2_nv nvs[HTTP1_FIELDS_MAX];
	size_t count;

	buf_init(&names, NAMES_MAX);
	count = put_nvs(source->answer->trailers, nvs, &names);
	return buf_error(&names) < 0 ? NGHTTP2_ERR_NOMEM : nghttp2_submit_trailer(session, stream_id, nvs, count);
}
