/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Handler of POST /files: bodies of any length go to files that the launcher opened, in constant memory. A body is
 * decompressed, then taken apart where it has several parts; both stop while the launcher is asked, and go on with what
 * is left. An answer can be given only behind the body: what comes after a failure is thrown away.
 */

#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/str.h"
#include "service/front/handlers.h"
#include "service/front/respond.h"
#include "service/protocol/filesystem.h"
#include "service/protocol/multipart.h"

enum {
	PLAIN_SIZE = 32 << 10, GZIP_WINDOW = 15 + 16, PATH_SIZE = 4097, METADATA_MAX = 32, METADATA_BYTES = 4096,
	METADATA_NAME_MAX = 246, RESULT_MAX = 8 << 20, MESSAGE_SIZE = 256,
};

struct upload {
	struct exchange *exchange;
	bool is_begun, is_multipart, is_gzip, is_body_done, is_gzip_done, is_file_open, is_waiting;
	struct multipart multipart;
	z_stream z;
	uint8_t plain[PLAIN_SIZE];   /* decompressed, of which from … to is to be taken still */
	size_t plain_from, plain_to;
	int fd;
	char path[PATH_SIZE], user[65]; /* path: of the query; "": each part has its own */
	char current[PATH_SIZE];     /* of the file that is open */
	const char *metadata[2 * METADATA_MAX + 1]; /* names owned, values borrowed from the request */
	size_t metadata_count, file_count;
	bool had_metadata;           /* the file had some */
	struct buf result, seen;     /* answers; paths so far, each with its NUL */
	unsigned status;             /* of what failed; 0: nothing */
	char message[MESSAGE_SIZE];
};

static void fail(struct upload *upload, unsigned status, const char *message)
{
	close_fd(&upload->fd);
	upload->is_file_open = false;
	if (upload->status)
		return;
	upload->status = status;
	if (str_copy(upload->message, sizeof upload->message, message) < 0)
		upload->message[0] = 0;
}

static void continue_upload(struct upload *upload);

/* The end of one file: what it is goes into the answer. */
static void put_result(struct upload *upload, struct service_message *values)
{
	if (upload->file_count++)
		buf_put_char(&upload->result, ',');
	filesystem_put_uploaded(&upload->result, values);
}

static void on_set(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct upload *upload = exchange->data;

	exchange->ticket = 0;
	upload->is_waiting = false;
	if (reply->status >= 300)
		fail(upload, reply->status, service_string(reply, "message") ? service_string(reply, "message") : "");
	else
		put_result(upload, reply);
	continue_upload(upload);
}

/* Asks; where that cannot be the exchange has been answered. */
static void ask(struct upload *upload, enum service_operation operation, const char *path, launcher_replied replied)
{
	struct buf *out = exchange_ask(upload->exchange, operation);

	if (!out) {
		fail(upload, 503, "the launcher cannot be asked");
		return;
	}
	field_put_string(out, "path", path);
	if (operation == SERVICE_OPEN)
		field_put_u64(out, "write", 1);
	else
		field_put_strings(out, "metadata", upload->metadata);
	if (upload->user[0])
		field_put_string(out, "user", upload->user);
	upload->is_waiting = true;
	exchange_send(upload->exchange, replied);
	if (!upload->exchange->ticket) {
		upload->is_waiting = false;
		fail(upload, 400, "the path cannot be one");
	}
}

/* The bytes of a file have come. Its metadata are replaced as a whole. */
static void finish_file(struct upload *upload)
{
	if (!upload->is_file_open)
		return;
	upload->is_file_open = false;
	close_fd(&upload->fd);
	if (upload->metadata_count || upload->had_metadata)
		ask(upload, SERVICE_SETATTR, upload->current, on_set);
}

static void on_open(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct upload *upload = exchange->data;

	exchange->ticket = 0;
	upload->is_waiting = false;
	upload->fd = reply->status < 300 ? service_take_fd(reply, "file") : FD_NONE;
	upload->is_file_open = upload->fd >= 0;
	upload->had_metadata = strv_count(service_strings(reply, "metadata")) > 0;
	if (reply->status >= 300)
		fail(upload, reply->status,
		     service_string(reply, "message") ? service_string(reply, "message") : "The sandbox was not found");
	else if (!upload->is_file_open)
		fail(upload, 500, "the file cannot be written");
	else if (!upload->metadata_count && !upload->had_metadata)
		put_result(upload, reply);
	continue_upload(upload);
}

static bool was_seen(struct upload *upload, const char *path)
{
	const char *at = (const char *)upload->seen.bytes, *end = at + upload->seen.size;

	for (; at < end; at += strlen(at) + 1)
		if (str_equal(at, path))
			return true;
	buf_put(&upload->seen, path, strlen(path) + 1);
	return false;
}

static void begin_file(struct upload *upload, const char *path)
{
	if (!*path)
		fail(upload, 400, "a part has neither a file name nor \"path\" in the query");
	else if (str_copy(upload->current, sizeof upload->current, path) < 0)
		fail(upload, 400, "a path is too long");
	else if (was_seen(upload, path) || buf_error(&upload->seen) < 0)
		fail(upload, 400, "the same path comes twice, or there are too many");
	else
		ask(upload, SERVICE_OPEN, upload->current, on_open);
}

static void write_file(struct upload *upload, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	while (size && upload->fd >= 0) {
		ssize_t n = write(upload->fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			fail(upload, errno == ENOSPC || errno == EDQUOT ? 507 : errno == EFBIG ? 413 : 500,
			     errno == ENOSPC || errno == EDQUOT ? "not enough disk space is left"
								: "the file cannot be written");
			return;
		}
		at += n;
		size -= (size_t)n;
	}
}

/* Takes plain bytes; how many. Fewer: the launcher is asked. */
static size_t take_parts(struct upload *upload, const uint8_t *bytes, size_t size)
{
	size_t taken = 0;

	while (taken < size && !upload->is_waiting && !upload->status) {
		const void *data;
		size_t used, data_size;
		int piece = multipart_next(&upload->multipart, bytes + taken, size - taken, &used, &data, &data_size);

		taken += used;
		if (piece < 0)
			fail(upload, 400, "the body is no multipart/form-data, or beyond its bounds");
		else if (piece == MULTIPART_PART && str_equal(upload->multipart.name, "file"))
			begin_file(upload, upload->path[0] ? upload->path : upload->multipart.filename);
		else if (piece == MULTIPART_DATA)
			write_file(upload, data, data_size);
		else if (piece == MULTIPART_PART_END)
			finish_file(upload);
	}
	return upload->status ? size : taken;
}

static size_t take_plain(struct upload *upload, const uint8_t *bytes, size_t size)
{
	if (upload->status)
		return size;
	if (upload->is_waiting)
		return 0;
	if (upload->is_multipart)
		return take_parts(upload, bytes, size);
	write_file(upload, bytes, size);
	return size;
}

/* What was decompressed already. False: some is left. */
static bool take_left(struct upload *upload)
{
	if (upload->plain_from < upload->plain_to)
		upload->plain_from += take_plain(upload, upload->plain + upload->plain_from,
						 upload->plain_to - upload->plain_from);
	return upload->plain_from == upload->plain_to;
}

static size_t take_gzip(struct upload *upload, const uint8_t *bytes, size_t size)
{
	int r = Z_OK;

	upload->z.next_in = (uint8_t *)bytes;
	upload->z.avail_in = size < UINT32_MAX ? (unsigned)size : UINT32_MAX;
	while (take_left(upload) && r == Z_OK && !upload->is_gzip_done) {
		upload->z.next_out = upload->plain;
		upload->z.avail_out = PLAIN_SIZE;
		r = inflate(&upload->z, Z_NO_FLUSH);
		upload->plain_from = 0;
		upload->plain_to = PLAIN_SIZE - upload->z.avail_out;
		upload->is_gzip_done = r == Z_STREAM_END;
		/* All that there was is decompressed. */
		if (r == Z_BUF_ERROR || (r == Z_OK && !upload->z.avail_in && upload->z.avail_out))
			break;
		if (r != Z_OK && r != Z_STREAM_END)
			fail(upload, 400, "the body is not compressed by gzip");
	}
	(void)take_left(upload);
	return upload->status || upload->is_gzip_done ? size : size - upload->z.avail_in;
}

/* The one file of a body that is no form. At the head libmicrohttpd 0.9 would lose a chunked body by a suspension. */
static void begin_only_file(struct upload *upload)
{
	if (upload->is_begun)
		return;
	upload->is_begun = true;
	if (!upload->is_multipart && !upload->status)
		begin_file(upload, upload->path);
}

static size_t take_body(struct exchange *exchange, const char *bytes, size_t size)
{
	struct upload *upload = exchange->data;

	if (upload)
		begin_only_file(upload);
	if (!upload || upload->status) {
		exchange->excess += size;
		return size;
	}
	if (upload->is_waiting)
		return 0;
	return upload->is_gzip ? take_gzip(upload, (const uint8_t *)bytes, size)
			       : take_plain(upload, (const uint8_t *)bytes, size);
}

static void answer(struct upload *upload)
{
	struct exchange *exchange = upload->exchange;

	if (upload->status) {
		exchange_fail(exchange, upload->status, CONNECT_UNKNOWN, upload->message);
		return;
	}
	if ((upload->is_multipart && !multipart_is_whole(&upload->multipart)) ||
	    (upload->is_gzip && !upload->is_gzip_done)) {
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, "the body ends too early");
		return;
	}
	buf_put_char(&upload->result, ']');
	exchange_answer_bytes(exchange, 200, "application/json", &upload->result);
}

/* Behind an answer of the launcher, and at the end of the body. */
static void continue_upload(struct upload *upload)
{
	bool is_done = take_left(upload);

	/* What zlib holds back still, where the body ended while the launcher was asked. */
	if (is_done && !upload->is_waiting && upload->is_gzip && upload->is_body_done && !upload->is_gzip_done &&
	    !upload->status) {
		(void)take_gzip(upload, (const uint8_t *)"", 0);
		is_done = upload->plain_from == upload->plain_to;
	}
	if (is_done && !upload->is_waiting && upload->is_body_done)
		finish_file(upload);
	if (upload->is_waiting)
		return;
	if (upload->is_body_done && is_done && !upload->exchange->is_answered)
		answer(upload);
	else
		exchange_resume(upload->exchange);
}

static void run(struct exchange *exchange)
{
	struct upload *upload = exchange->data;

	if (!upload)
		return;
	upload->is_body_done = true;
	begin_only_file(upload);
	if (!upload->is_waiting)
		continue_upload(upload);
}

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	static const char prefix[] = "X-Metadata-";
	struct upload *upload = context;
	char *key;

	if (strncasecmp(name, prefix, sizeof prefix - 1) != 0)
		return MHD_YES;
	name += sizeof prefix - 1;
	if (upload->metadata_count == METADATA_MAX || !*name || strlen(name) > METADATA_NAME_MAX || !value) {
		fail(upload, 400, "there is too much metadata, or a name cannot be one");
		return MHD_NO;
	}
	for (const char *c = value; *c; c++)
		if (*c < ' ' || *c > '~')
			fail(upload, 400, "metadata has characters that are not printable ASCII");
	key = str_dup(name);
	if (!key)
		return MHD_NO;
	/* Names of headers have no case. */
	for (char *c = key; *c; c++)
		*c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
	upload->metadata[2 * upload->metadata_count] = key;
	upload->metadata[2 * upload->metadata_count++ + 1] = value;
	return MHD_YES;
}

static void read_metadata(struct upload *upload)
{
	size_t size = 0;

	MHD_get_connection_values(upload->exchange->connection, MHD_HEADER_KIND, on_header, upload);
	for (size_t i = 0; i < 2 * upload->metadata_count; i++)
		size += strlen(upload->metadata[i]);
	if (size > METADATA_BYTES)
		fail(upload, 400, "there is too much metadata");
}

static bool read_head(struct upload *upload)
{
	struct exchange *exchange = upload->exchange;
	const char *type = exchange_header(exchange, "Content-Type");
	const char *encoding = exchange_header(exchange, "Content-Encoding");
	int r = query_get(exchange->query, "path", upload->path, sizeof upload->path);

	if (r < 0)
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, "\"path\" of the query cannot be one");
	if (r < 0 || exchange_file_user(exchange, upload->user) < 0)
		return false;
	upload->is_gzip = encoding && strcasecmp(encoding, "gzip") == 0;
	upload->is_multipart = type && multipart_init(&upload->multipart, type) == 0;
	if (encoding && !upload->is_gzip && strcasecmp(encoding, "identity") != 0)
		exchange_fail(exchange, 415, CONNECT_INVALID_ARGUMENT, "encodings are gzip and identity");
	else if (!upload->is_multipart && (!type || strncasecmp(type, "application/octet-stream", 24) != 0))
		exchange_fail(exchange, 415, CONNECT_INVALID_ARGUMENT,
			      "files are sent as multipart/form-data or application/octet-stream");
	else if (!upload->is_multipart && !upload->path[0])
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, "\"path\" is missing in the query");
	else if (upload->is_gzip && inflateInit2(&upload->z, GZIP_WINDOW) != Z_OK)
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
	else
		return true;
	return false;
}

static void begin(struct exchange *exchange)
{
	struct upload *upload = calloc(1, sizeof *upload);

	if (!upload) {
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	upload->exchange = exchange;
	upload->fd = FD_NONE;
	exchange->data = upload;
	buf_init(&upload->result, RESULT_MAX);
	buf_init(&upload->seen, RESULT_MAX);
	buf_put_char(&upload->result, '[');
	if (!read_head(upload))
		return;
	read_metadata(upload);
}

static void done(struct exchange *exchange)
{
	struct upload *upload = exchange->data;

	if (!upload)
		return;
	close_fd(&upload->fd);
	if (upload->is_gzip)
		inflateEnd(&upload->z);
	for (size_t i = 0; i < upload->metadata_count; i++)
		free((char *)upload->metadata[2 * i]);
	buf_done(&upload->result);
	buf_done(&upload->seen);
	free(upload);
}

const struct exchange_handler upload_handler = { .begin = begin, .take = take_body, .run = run, .done = done };
