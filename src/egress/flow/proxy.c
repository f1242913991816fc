/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/proxy.h"

#include <event2/event_struct.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/base64.h"
#include "base/num.h"
#include "base/str.h"

enum { ANSWER_MAX = 8192, REQUEST_MAX = 2048, PORT_DEFAULT = 80 };

struct tunnel {
	struct event event;
	struct tunnel_target target;
	char request[REQUEST_MAX];
	size_t size, sent;
	size_t seen;                 /* bytes of the answer that were looked at already */
};

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "user:p%40ss" -> bytes. The length, or -EINVAL. */
static int decode(const char *text, size_t size, char *out)
{
	int length = 0;

	for (size_t i = 0; i < size; i++) {
		int value = (unsigned char)text[i];

		if (value == '%') {
			if (i + 2 >= size || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0)
				return -EINVAL;
			value = hex_value(text[i + 1]) << 4 | hex_value(text[i + 2]);
			i += 2;
		}
		out[length++] = (char)value;
	}
	return length;
}

static int parse_user(struct proxy *proxy, const char *text, size_t size)
{
	enum { USER_MAX = 300 };
	char user[USER_MAX];
	struct buf out;
	int length;

	if (size > USER_MAX)
		return -ENAMETOOLONG;
	length = decode(text, size, user);
	if (length < 0)
		return length;
	buf_init_fixed(&out, proxy->authorization, sizeof proxy->authorization);
	buf_put_text(&out, "Basic ");
	base64_put(&out, user, (size_t)length);
	buf_put(&out, "", 1);
	return buf_error(&out);
}

static int parse_place(struct proxy *proxy, const char *text, size_t size)
{
	const char *colon = memchr(text, ':', size);
	size_t length = colon ? (size_t)(colon - text) : size;
	uint64_t port = PORT_DEFAULT;
	char digits[8];

	if (text[0] == '[') {
		const char *bracket = memchr(text, ']', size);

		if (!bracket)
			return -EINVAL;
		length = (size_t)(bracket - text) + 1;
		colon = length < size && text[length] == ':' ? text + length : NULL;
		if (str_format(proxy->host, sizeof proxy->host, "%.*s", (int)length - 2, text + 1) < 0)
			return -ENAMETOOLONG;
	} else if (!length || str_format(proxy->host, sizeof proxy->host, "%.*s", (int)length, text) < 0) {
		return -EINVAL;
	}
	if (colon && (str_format(digits, sizeof digits, "%.*s", (int)(size - length - 1), colon + 1) < 0 ||
		      num_parse_u64(digits, &port) < 0 || !port || port > UINT16_MAX))
		return -EINVAL;
	proxy->port = (uint16_t)port;
	return 0;
}

int proxy_parse(struct proxy *ret_proxy, const char *url, const char *no_proxy)
{
	static const char scheme[] = "http://";
	const char *text = url + strlen(scheme), *at;
	struct proxy proxy = { 0 };
	size_t size;
	int r = 0;

	if (strncasecmp(url, scheme, strlen(scheme)) != 0)
		return -EINVAL;
	size = strcspn(text, "/?#");
	at = memrchr(text, '@', size);
	if (at) {
		r = parse_user(&proxy, text, (size_t)(at - text));
		size -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	if (r == 0)
		r = parse_place(&proxy, text, size);
	if (r == 0)
		r = str_copy(proxy.except, sizeof proxy.except, no_proxy ? no_proxy : "");
	if (r == 0)
		*ret_proxy = proxy;
	return r;
}

static bool entry_matches(const char *entry, size_t size, const char *host)
{
	size_t length = strlen(host);

	if (size == 1 && entry[0] == '*')
		return true;
	if (size && entry[0] == '.')
		entry++, size--;
	return size && size <= length && strncasecmp(host + length - size, entry, size) == 0 &&
	       (size == length || host[length - size - 1] == '.');
}

bool proxy_excepts(const struct proxy *proxy, const char *host)
{
	const char *at = proxy->except;

	while (*at) {
		size_t size = strcspn(at, ", ");

		if (entry_matches(at, size, host))
			return true;
		at += size + strspn(at + size, ", ");
	}
	return false;
}

/* ---- the tunnel ---- */

static void finish(struct tunnel *tunnel, int errnum)
{
	struct tunnel_target target = tunnel->target;

	tunnel_cancel(tunnel);
	target.told(target.context, errnum);
}

void tunnel_cancel(struct tunnel *tunnel)
{
	if (!tunnel)
		return;
	event_del(&tunnel->event);
	explicit_bzero(tunnel->request, sizeof tunnel->request);
	free(tunnel);
}

/* "HTTP/1.x 2.." opens the tunnel; anything else is the proxy's refusal. */
static int judge_answer(const char *answer, size_t size)
{
	return size >= 12 && memcmp(answer, "HTTP/1.", 7) == 0 && answer[8] == ' ' && answer[9] == '2' ? 0 : EACCES;
}

/* The answer's head is taken byte-exactly: what stands behind it belongs to the tunnel. */
static void on_answer(evutil_socket_t fd, short what, void *context)
{
	struct tunnel *tunnel = context;
	char answer[ANSWER_MAX];
	ssize_t n = recv(fd, answer, sizeof answer, MSG_PEEK | MSG_DONTWAIT);
	const char *end;
	int errnum;

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || (size_t)n <= tunnel->seen) {
		finish(tunnel, n < 0 ? errno : ECONNRESET);
		return;
	}
	tunnel->seen = (size_t)n;
	end = memmem(answer, (size_t)n, "\r\n\r\n", 4);
	if (!end && n == ANSWER_MAX) {
		finish(tunnel, EMSGSIZE);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &(int){ end ? 1 : (int)n + 1 }, sizeof(int));
	if (!end)
		return;
	n = recv(fd, answer, (size_t)(end + 4 - answer), MSG_DONTWAIT);
	errnum = n == end + 4 - answer ? judge_answer(answer, (size_t)n) : EIO;
	finish(tunnel, errnum);
}

static void on_writable(evutil_socket_t fd, short what, void *context)
{
	struct tunnel *tunnel = context;
	ssize_t n = send(fd, tunnel->request + tunnel->sent, tunnel->size - tunnel->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
	struct event_base *base = event_get_base(&tunnel->event);

	(void)what;
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		finish(tunnel, errno);
		return;
	}
	tunnel->sent += n > 0 ? (size_t)n : 0;
	if (tunnel->sent < tunnel->size)
		return;
	event_del(&tunnel->event);
	if (event_assign(&tunnel->event, base, fd, EV_READ | EV_PERSIST, on_answer, tunnel) < 0 ||
	    event_add(&tunnel->event, NULL) < 0)
		finish(tunnel, ENOMEM);
}

int tunnel_start(struct tunnel **ret_tunnel, struct event_base *base, int fd, const struct proxy *proxy,
		 const struct tunnel_target *target)
{
	const char *open = str_host_open(target->host), *close = str_host_close(target->host);
	struct tunnel *tunnel = calloc(1, sizeof *tunnel);
	int r;

	if (!tunnel)
		return -ENOMEM;
	tunnel->target = *target;
	r = str_format(tunnel->request, sizeof tunnel->request,
		       "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n%s%s%s\r\n", open, target->host, close,
		       target->port, open, target->host, close, target->port,
		       proxy->authorization[0] ? "Proxy-Authorization: " : "", proxy->authorization,
		       proxy->authorization[0] ? "\r\n" : "");
	tunnel->size = strlen(tunnel->request);
	if (r == 0 && (event_assign(&tunnel->event, base, fd, EV_WRITE | EV_PERSIST, on_writable, tunnel) < 0 ||
		       event_add(&tunnel->event, NULL) < 0))
		r = -ENOMEM;
	if (r < 0) {
		free(tunnel);
		return r;
	}
	*ret_tunnel = tunnel;
	return 0;
}
