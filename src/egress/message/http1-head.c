/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/message/http1-head.h"

#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/str.h"

bool http1_name_is(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		char x = *a == '_' ? '-' : *a, y = *b == '_' ? '-' : *b;

		if (x != y && !((x ^ y) == 0x20 && (x | 0x20) >= 'a' && (x | 0x20) <= 'z'))
			return false;
	}
	return !*a && !*b;
}

static void free_field(struct http1_field *field)
{
	if (field->owned)
		explicit_bzero(field->owned, strlen(field->owned));
	free(field->owned);
}

/* Room for 128 fields is not cleared for each head of three. */
static void begin_head(struct http1_head *head, enum http1_kind kind)
{
	memset(head, 0, offsetof(struct http1_head, fields));
	head->kind = kind;
}

void http1_head_reset(struct http1_head *head)
{
	for (size_t i = 0; i < head->field_count; i++)
		free_field(&head->fields[i]);
	begin_head(head, head->kind);
}

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static size_t token_length(const char *text, const char *end)
{
	const char *at = text;

	while (at < end && is_token_char(*at))
		at++;
	return (size_t)(at - text);
}

/* The end of the line at text, where its CRLF is; NULL when a control byte, a bare CR or LF stands in it. */
static char *line_end(char *text, const char *end)
{
	for (char *at = text; at + 1 < end; at++) {
		if (at[0] == '\r' && at[1] == '\n')
			return at;
		if (((unsigned char)*at < 0x20 && *at != '\t') || *at == 0x7f)
			return NULL;
	}
	return NULL;
}

static const char *parse_request_line(char *line, char *end, struct http1_head *head)
{
	size_t length = token_length(line, end);
	char *target = line + length + 1, *space;

	if (length == 0 || length >= sizeof head->method || line[length] != ' ')
		return "the request line is malformed";
	for (size_t i = 0; i < length; i++)
		if (!((line[i] >= 'A' && line[i] <= 'Z') || line[i] == '-'))
			return "the method is none";
	memcpy(head->method, line, length);
	head->method[length] = 0;
	space = memchr(target, ' ', (size_t)(end - target));
	if (!space || space == target || end - space != 9 || memcmp(space + 1, "HTTP/1.", 7) != 0 ||
	    (space[8] != '0' && space[8] != '1'))
		return "the request line is malformed";
	head->minor = (unsigned)(space[8] - '0');
	*space = 0;
	head->target = target;
	for (const char *at = target; *at; at++)
		if ((unsigned char)*at <= 0x20)
			return "the target has a blank in it";
	if (str_equal(head->method, "CONNECT") || str_equal(head->method, "TRACE"))
		return "this method makes no sense here";
	return NULL;
}

static const char *parse_status_line(char *line, char *end, struct http1_head *head)
{
	if (end - line < 12 || memcmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') || line[8] != ' ')
		return "the status line is malformed";
	head->minor = (unsigned)(line[7] - '0');
	head->status = 0;
	for (size_t i = 9; i < 12; i++) {
		if (line[i] < '0' || line[i] > '9')
			return "the status line is malformed";
		head->status = head->status * 10 + (unsigned)(line[i] - '0');
	}
	/* The blank before an empty reason is often left out. */
	if (head->status < 100 || (end > line + 12 && line[12] != ' '))
		return "the status line is malformed";
	*end = 0;
	head->reason = end > line + 12 ? line + 13 : "";
	return NULL;
}

static const char *parse_field(char *line, char *end, struct http1_head *head)
{
	size_t length = token_length(line, end);
	char *value = line + length + 1;

	/* A blank first is a folded line, a blank before the colon a name that some servers would trim. */
	if (length == 0 || length > HTTP1_NAME_MAX || line[length] != ':')
		return *line == ' ' || *line == '\t' ? "a field is folded over two lines" : "a field is malformed";
	if (head->field_count == HTTP1_FIELDS_MAX)
		return "there are too many fields";
	line[length] = 0;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = 0;
	head->fields[head->field_count++] = (struct http1_field){ .name = line, .value = value };
	return NULL;
}

static const char *parse_fields(char *at, char *end, struct http1_head *head)
{
	while (at < end) {
		char *line = at, *stop = line_end(line, end);
		const char *problem;

		if (!stop)
			return "a line has a control character or ends with only one of CR and LF";
		at = stop + 2;
		if (stop == line)
			return at == end ? NULL : "there is an empty line within the head";
		problem = parse_field(line, stop, head);
		if (problem)
			return problem;
	}
	return NULL;
}

/* The next of the names in a list field (RFC 9110 5.6.1), in lower case; false at the end. */
static bool next_token(const char **at, char out[32])
{
	size_t length = 0;

	*at += strspn(*at, " \t,");
	if (!**at)
		return false;
	for (; **at && **at != ','; ++*at)
		if (length < 31 && **at != ' ' && **at != '\t')
			out[length++] = (char)(**at >= 'A' && **at <= 'Z' ? **at | 0x20 : **at);
	out[length] = 0;
	return true;
}

/* What the fields say that matters between two hops. */
struct hop {
	const char *length, *encoding, *upgrade, *expect;
	size_t hosts;
	bool closes, keeps, upgrades, is_twice;
};

static void note_connection(struct hop *hop, const char *value)
{
	char token[32];

	while (next_token(&value, token)) {
		hop->closes = hop->closes || str_equal(token, "close");
		hop->keeps = hop->keeps || str_equal(token, "keep-alive");
		hop->upgrades = hop->upgrades || str_equal(token, "upgrade");
	}
}

static void note_once(struct hop *hop, const char **slot, const char *value)
{
	hop->is_twice = hop->is_twice || *slot;
	*slot = value;
}

static void note_field(struct hop *hop, const struct http1_field *field)
{
	if (http1_name_is(field->name, "content-length"))
		note_once(hop, &hop->length, field->value);
	else if (http1_name_is(field->name, "transfer-encoding"))
		note_once(hop, &hop->encoding, field->value);
	else if (http1_name_is(field->name, "upgrade"))
		note_once(hop, &hop->upgrade, field->value);
	else if (http1_name_is(field->name, "expect"))
		note_once(hop, &hop->expect, field->value);
	else if (http1_name_is(field->name, "connection"))
		note_connection(hop, field->value);
	else if (http1_name_is(field->name, "host"))
		hop->hosts++;
}

bool http1_name_is_masked(const char *name)
{
	static const char *const names[] = { "content-length", "transfer-encoding", "host", "connection", "upgrade",
					     "expect" };

	for (size_t i = 0; strchr(name, '_') && i < ARRAY_SIZE(names); i++)
		if (http1_name_is(name, names[i]))
			return true;
	return false;
}

static const char *decide_length(const struct hop *hop, struct http1_head *head)
{
	if (hop->encoding) {
		if (hop->length)
			return "it has both a length and a transfer encoding";
		if (head->minor == 0 || strcasecmp(hop->encoding, "chunked") != 0)
			return "the transfer encoding is not simply chunked";
		head->framing = HTTP1_CHUNKED;
	} else if (hop->length) {
		/* 19 digits cannot overflow; signs, lists and blanks are no digits. */
		if (strlen(hop->length) > 19 || num_parse_u64(hop->length, &head->length) < 0)
			return "the length is no number";
		head->framing = HTTP1_LENGTH;
	} else {
		head->framing = head->kind == HTTP1_REQUEST ? HTTP1_NO_BODY : HTTP1_UNTIL_END;
	}
	return NULL;
}

static const char *decide_request(const struct hop *hop, struct http1_head *head)
{
	if (hop->hosts != 1)
		return "it does not name its host exactly once";
	if (hop->expect && strcasecmp(hop->expect, "100-continue") != 0)
		return "it expects something unknown";
	head->wants_continue = hop->expect && head->minor == 1;
	head->is_upgrade = hop->upgrades && hop->upgrade && strcasecmp(hop->upgrade, "websocket") == 0;
	if (head->is_upgrade && (head->framing == HTTP1_CHUNKED || head->length))
		return "a request to switch protocols has a body";
	return NULL;
}

static const char *decide_response(const struct http1 *http, const struct hop *hop, struct http1_head *head)
{
	bool has_no_body = http->is_to_head || head->status < 200 || head->status == 204 || head->status == 304;

	if (head->status == 101) {
		if (!http->asked_upgrade || !hop->upgrade || strcasecmp(hop->upgrade, "websocket") != 0)
			return "it switches to a protocol that was not asked for";
		head->is_upgrade = true;
	}
	if (has_no_body)
		head->framing = HTTP1_NO_BODY;
	return NULL;
}

static const char *decide_framing(const struct http1 *http, struct http1_head *head)
{
	struct hop hop = { 0 };
	const char *problem;

	for (size_t i = 0; i < head->field_count; i++) {
		if (http1_name_is_masked(head->fields[i].name))
			return "a field has the name of another one in disguise";
		note_field(&hop, &head->fields[i]);
	}
	if (hop.is_twice)
		return "a field that there can be once is there twice";
	head->closes = hop.closes || (head->minor == 0 && !hop.keeps);
	problem = decide_length(&hop, head);
	if (!problem)
		problem = head->kind == HTTP1_REQUEST ? decide_request(&hop, head) : decide_response(http, &hop, head);
	if (head->framing == HTTP1_UNTIL_END)
		head->closes = true;
	return problem;
}

const char *http1_head_parse(const struct http1 *http, char *bytes, size_t size, struct http1_head *ret_head)
{
	char *end = line_end(bytes, bytes + size);
	const char *problem;

	begin_head(ret_head, http->kind);
	if (!end)
		return "a line has a control character or ends with only one of CR and LF";
	problem = http->kind == HTTP1_REQUEST ? parse_request_line(bytes, end, ret_head)
					      : parse_status_line(bytes, end, ret_head);
	if (!problem)
		problem = parse_fields(end + 2, bytes + size, ret_head);
	return problem ? problem : decide_framing(http, ret_head);
}

bool http1_name_is_of_hop(const char *name)
{
	static const char *const names[] = {
		"connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate",
		"te",	      "upgrade",    "http2-settings",	"transfer-encoding",   "content-length"
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (http1_name_is(name, names[i]))
			return true;
	return false;
}

static void put_length(struct buf *out, uint64_t length)
{
	buf_put_text(out, "Content-Length: ");
	buf_put_u64_decimal(out, length);
	buf_put_text(out, "\r\n");
}

static void put_framing(const struct http1_head *head, struct buf *out)
{
	/* An answer to HEAD and a 304 tell the length of a body that they do not have. */
	bool tells = head->framing == HTTP1_NO_BODY && head->kind == HTTP1_RESPONSE && head->status >= 200 &&
		     head->status != 204;
	const char *length = http1_find(head, "content-length");

	if (head->framing == HTTP1_LENGTH)
		put_length(out, head->length);
	else if (head->framing == HTTP1_CHUNKED)
		buf_put_text(out, "Transfer-Encoding: chunked\r\n");
	else if (tells && length)
		buf_printf(out, "Content-Length: %s\r\n", length);
	if (head->is_upgrade)
		buf_put_text(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
	else if (head->closes)
		buf_put_text(out, "Connection: close\r\n");
	else if (head->minor == 0)
		buf_put_text(out, "Connection: keep-alive\r\n");
}

/* Each head of each request: printf would cost a tenth of it. */
static void put_texts(struct buf *out, const char *a, const char *b, const char *c, const char *d)
{
	buf_put_text(out, a);
	buf_put_text(out, b);
	buf_put_text(out, c);
	buf_put_text(out, d);
}

void http1_put_head(const struct http1_head *head, struct buf *out)
{
	char status[] = { (char)('0' + head->status / 100 % 10), (char)('0' + head->status / 10 % 10),
			  (char)('0' + head->status % 10), 0 };

	if (head->kind == HTTP1_REQUEST)
		put_texts(out, head->method, " ", head->target, head->minor ? " HTTP/1.1" : " HTTP/1.0");
	else
		put_texts(out, head->minor ? "HTTP/1.1 " : "HTTP/1.0 ", status, " ", head->reason);
	buf_put_text(out, "\r\n");
	for (size_t i = 0; i < head->field_count; i++) {
		if (http1_name_is_of_hop(head->fields[i].name))
			continue;
		put_texts(out, head->fields[i].name, ": ", head->fields[i].value, "\r\n");
	}
	put_framing(head, out);
	buf_put_text(out, "\r\n");
}

bool http1_put_trailers(const struct http1 *http, char *bytes, size_t size, struct buf *out)
{
	static const char *const never[] = {
		"host",	 "trailer",	  "expect",	      "authorization", "cookie",	"set-cookie",
		"age",	 "cache-control", "content-encoding", "content-type",  "content-range", "location",
		"range", "vary",	  "www-authenticate", "date",	       "expires"
	};
	struct http1_head *read = calloc(1, sizeof *read);
	bool is_fine = read && !parse_fields(bytes, bytes + size, read);
	bool passes_any = is_fine && http->kind == HTTP1_RESPONSE;

	if (passes_any)
		read->reason = "";
	if (passes_any && http->trailer_filter)
		http->trailer_filter(http->filter_context, read);
	for (size_t i = 0; passes_any && i < read->field_count; i++) {
		const struct http1_field *field = &read->fields[i];
		bool passes = !http1_name_is_of_hop(field->name) && !http1_find(&http->head, field->name);

		for (size_t k = 0; passes && k < ARRAY_SIZE(never); k++)
			passes = !http1_name_is(field->name, never[k]);
		if (passes)
			buf_printf(out, "%s: %s\r\n", field->name, field->value);
	}
	free(read);
	return is_fine;
}

const char *http1_find(const struct http1_head *head, const char *name)
{
	for (size_t i = 0; i < head->field_count; i++)
		if (http1_name_is(head->fields[i].name, name))
			return head->fields[i].value;
	return NULL;
}

void http1_remove(struct http1_head *head, const char *name)
{
	size_t kept = 0;

	for (size_t i = 0; i < head->field_count; i++) {
		if (http1_name_is(head->fields[i].name, name))
			free_field(&head->fields[i]);
		else
			head->fields[kept++] = head->fields[i];
	}
	head->field_count = kept;
}

bool http1_field_is_valid(const char *name, const char *value)
{
	size_t length = strlen(name);

	for (const char *at = value; *at; at++)
		if (((unsigned char)*at < 0x20 && *at != '\t') || *at == 0x7f)
			return false;
	return length > 0 && token_length(name, name + length) == length;
}

int http1_add(struct http1_head *head, const char *name, const char *value)
{
	size_t name_size = strlen(name) + 1, value_size = strlen(value) + 1;
	char *owned;

	if (!http1_field_is_valid(name, value))
		return -EINVAL;
	if (head->field_count == HTTP1_FIELDS_MAX)
		return -E2BIG;
	owned = malloc(name_size + value_size);
	if (!owned)
		return -ENOMEM;
	/* The value first, so that wiping up to the first NUL wipes it. */
	memcpy(owned, value, value_size);
	memcpy(owned + value_size, name, name_size);
	head->fields[head->field_count++] =
		(struct http1_field){ .name = owned + value_size, .value = owned, .owned = owned };
	return 0;
}

int http1_set(struct http1_head *head, const char *name, const char *value)
{
	struct http1_field added;
	int r;

	/* Added first: what was there stays where the new one cannot be had. Only the last of them is kept. */
	r = http1_add(head, name, value);
	if (r < 0)
		return r;
	added = head->fields[--head->field_count];
	http1_remove(head, name);
	head->fields[head->field_count++] = added;
	return 0;
}
