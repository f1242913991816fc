/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Handler of GET /files: the bytes of a file that the launcher opened, sent by the kernel, or compressed where the
 * client wants nothing else. One range is served (RFC 9110 14), and whether the file changed.
 */

#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <zlib.h>

#include "base/num.h"
#include "base/str.h"
#include "service/front/handlers.h"
#include "service/front/respond.h"

enum { BLOCK_SIZE = 32 << 10, GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8 };
enum { DATE_SIZE = 40, RANGE_SIZE = 80, STALLED_S = 640 };

/* A file that is compressed on its way. */
struct gzip {
	int fd;
	z_stream z;
	bool is_read;
	uint8_t in[BLOCK_SIZE];
};

static ssize_t read_gzip(void *context, uint64_t position, char *to, size_t max)
{
	struct gzip *gzip = context;
	int r = Z_OK;

	gzip->z.next_out = (uint8_t *)to;
	gzip->z.avail_out = max < UINT32_MAX ? (unsigned)max : UINT32_MAX;
	while (gzip->z.avail_out == max && r == Z_OK) {
		if (!gzip->z.avail_in && !gzip->is_read) {
			ssize_t n = read(gzip->fd, gzip->in, sizeof gzip->in);

			if (n < 0)
				return MHD_CONTENT_READER_END_WITH_ERROR;
			gzip->is_read = n == 0;
			gzip->z.next_in = gzip->in;
			gzip->z.avail_in = (unsigned)n;
		}
		r = deflate(&gzip->z, gzip->is_read ? Z_FINISH : Z_NO_FLUSH);
	}
	if (gzip->z.avail_out != max)
		return (ssize_t)(max - gzip->z.avail_out);
	return r == Z_STREAM_END ? MHD_CONTENT_READER_END_OF_STREAM : MHD_CONTENT_READER_END_WITH_ERROR;
}

static void free_gzip(void *context)
{
	struct gzip *gzip = context;

	deflateEnd(&gzip->z);
	close_fd(&gzip->fd);
	free(gzip);
}

/* Takes the fd over. NULL: out of memory. */
static struct MHD_Response *respond_gzip(int fd)
{
	struct gzip *gzip = calloc(1, sizeof *gzip);
	struct MHD_Response *response;

	if (!gzip ||
	    deflateInit2(&gzip->z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(gzip);
		close_fd(&fd);
		return NULL;
	}
	gzip->fd = fd;
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, read_gzip, gzip, free_gzip);
	if (!response)
		free_gzip(gzip);
	else
		respond_header(response, "Content-Encoding", "gzip");
	return response;
}

/* The codings that Accept-Encoding takes (RFC 9110 12.5.3): browsers' and fetch()'s own list is no wish for gzip. */
struct accepted {
	bool gzip_alone, identity;
};

static struct accepted read_accepted(const char *header)
{
	struct accepted accepted = { .identity = true };

	if (!header || !*header)
		return accepted;
	accepted.gzip_alone = strncasecmp(header, "gzip", 4) == 0 && !strchr(header, ',') && !strstr(header, "q=0");
	for (const char *at = header; *at; at += strcspn(at, ","), at += *at == ',') {
		const char *name = at + strspn(at, " \t");
		size_t length = strcspn(name, " \t;,");
		const char *quality = name + length;

		quality += strspn(quality, " \t;");
		if ((strncasecmp(name, "identity", length) == 0 || (length == 1 && *name == '*')) && length &&
		    strncmp(quality, "q=0", 3) == 0 && strspn(quality + 3, ".0") == strcspn(quality + 3, ", \t"))
			accepted.identity = false;
	}
	return accepted;
}

/* "Mon, 23 Nov 2026 10:00:00 GMT" */
static void format_date(uint64_t ns, char out[DATE_SIZE])
{
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;

	if (!gmtime_r(&s, &tm) || !strftime(out, DATE_SIZE, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		out[0] = 0;
}

struct range {
	uint64_t from, size;         /* of what is sent */
};

static bool read_number(const char *text, size_t length, uint64_t *ret)
{
	char number[24];

	if (length >= sizeof number)
		return false;
	memcpy(number, text, length);
	number[length] = 0;
	return num_parse_u64(number, ret) == 0;
}

/* "bytes=A-B", "bytes=A-", "bytes=-N": 1; 0: none, or several, which need not be served; -ERANGE: beyond the end. */
static int read_range(const char *header, uint64_t size, struct range *ret_range)
{
	static const char unit[] = "bytes=";
	uint64_t from = 0, to = 0;
	size_t before, after;
	const char *text;

	if (!header || strncmp(header, unit, sizeof unit - 1) != 0 || strchr(header, ','))
		return 0;
	text = header + sizeof unit - 1;
	before = strcspn(text, "-");
	if (text[before] != '-')
		return 0;
	after = strlen(text + before + 1);
	if ((!before && !after) || (before && !read_number(text, before, &from)) ||
	    (after && !read_number(text + before + 1, after, &to)))
		return 0;
	if (!before) {
		from = to < size ? size - to : 0;
		to = to ? UINT64_MAX : 0;
	}
	if (before && after && to < from)
		return 0;
	if (from >= size || (!before && !to))
		return -ERANGE;
	if (!after || to >= size)
		to = size - 1;
	*ret_range = (struct range){ from, to - from + 1 };
	return 1;
}

static void fail_range(struct exchange *exchange, uint64_t size)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	char text[RANGE_SIZE];

	if (response && str_format(text, sizeof text, "bytes */%llu", (unsigned long long)size) == 0)
		respond_header(response, "Content-Range", text);
	exchange_answer(exchange, 416, response);
}

/* What all answers with a file's bytes say. Nothing that a browser would run. */
static void put_headers(struct MHD_Response *response, uint64_t modified_ns)
{
	char date[DATE_SIZE];

	format_date(modified_ns, date);
	respond_header(response, "Content-Type", "application/octet-stream");
	respond_header(response, "Content-Disposition", "inline");
	respond_header(response, "Content-Security-Policy", "sandbox; default-src 'none'");
	respond_header(response, "Vary", "Accept-Encoding");
	if (date[0])
		respond_header(response, "Last-Modified", date);
}

/* Sends the file; the fd is taken over. */
static void send_file(struct exchange *exchange, int fd, uint64_t size, uint64_t modified_ns)
{
	bool is_conditional = exchange_header(exchange, "Range") || exchange_header(exchange, "If-Modified-Since") ||
			      exchange_header(exchange, "If-None-Match") || exchange_header(exchange, "If-Range");
	struct accepted accepted = read_accepted(exchange_header(exchange, "Accept-Encoding"));
	struct MHD_Response *response;
	struct range range = { 0, size };
	char text[RANGE_SIZE] = "";
	const char *asked = exchange_header(exchange, "If-Range") ? NULL : exchange_header(exchange, "Range");
	int r = read_range(asked, size, &range);

	if (r < 0) {
		close_fd(&fd);
		fail_range(exchange, size);
		return;
	}
	if (accepted.gzip_alone && !is_conditional && size)
		response = respond_gzip(fd);
	else
		response = MHD_create_response_from_fd_at_offset64(range.size, fd, range.from);
	if (response) {
		put_headers(response, modified_ns);
		respond_header(response, "Accept-Ranges", "bytes");
	}
	if (response && r > 0 &&
	    str_format(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)range.from,
		       (unsigned long long)(range.from + range.size - 1), (unsigned long long)size) == 0)
		respond_header(response, "Content-Range", text);
	(void)MHD_set_connection_option(exchange->connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)STALLED_S);
	exchange_answer(exchange, r > 0 ? 206 : 200, response);
}

static void on_open(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	cleanup_fd int fd = service_take_fd(reply, "file");
	const char *since = exchange_header(exchange, "If-Modified-Since");
	uint64_t modified_ns = service_number(reply, "modified_ns", 0);
	char date[DATE_SIZE];
	struct stat st;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		exchange_fail(exchange, 500, CONNECT_INTERNAL, "the file cannot be read");
		return;
	}
	format_date(modified_ns, date);
	/* Clients send back what they were told. */
	if (since && date[0] && str_equal(since, date)) {
		exchange_answer(exchange, 304, MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
		return;
	}
	send_file(exchange, take_fd(&fd), (uint64_t)st.st_size, modified_ns);
}

static void run(struct exchange *exchange)
{
	char path[4097], user[65];
	int r = query_get(exchange->query, "path", path, sizeof path);
	struct buf *out;
	int has_user;

	if (r < 0 || (r > 0 && !path[0])) {
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, "\"path\" of the query cannot be one");
		return;
	}
	if (!read_accepted(exchange_header(exchange, "Accept-Encoding")).identity &&
	    !read_accepted(exchange_header(exchange, "Accept-Encoding")).gzip_alone) {
		exchange_fail(exchange, 406, CONNECT_INVALID_ARGUMENT, "encodings are gzip and identity");
		return;
	}
	has_user = exchange_file_user(exchange, user);
	if (has_user < 0)
		return;
	out = exchange_ask(exchange, SERVICE_OPEN);
	if (!out)
		return;
	field_put_string(out, "path", r ? path : "~");
	if (has_user)
		field_put_string(out, "user", user);
	exchange_send(exchange, on_open);
}

const struct exchange_handler download_handler = { .run = run };
