/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/serve.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"
#include "service/front/extension.h"
#include "service/front/handlers.h"
#include "service/front/respond.h"
#include "service/front/state.h"

enum {
	POOL_BYTES = 32 << 10,   /* of one connection: its head, and what is under way */
	IDLE_S = 75,             /* a connection on which nothing happens */
	HEAD_MS = 60000,         /* from a connection's beginning, or the end of a request, to the next head */
	URI_MAX = 16 << 10,
	DISCARD_MAX = 256 << 20, /* bytes of a file behind a failure */
	WORDS_MAX = 256,         /* of a query */
	SPARE_PART = 16,         /* of the connections: kept free for who comes next */
	ACCEPTS_MAX = 256,       /* in one turn, beside those that libmicrohttpd accepts */
	EXCESS = 4,              /* bodies beyond the bound are read and thrown away, up to so many times it */
};

/* A connection: when the head of a request must have come. The newest is the first of the list. */
struct client {
	struct client *next, **link;
	int fd;
	bool has_head;
	bool is_known;             /* something that it asked for was granted */
	bool is_leaving;           /* it gave its place to somebody else */
	struct exchange *exchange; /* under way */
	uint64_t since_ms;
};

/*
 * libmicrohttpd takes each word of the query apart before anybody is asked, and where that is more than the memory of a
 * connection it neither answers nor closes: this does. It has not written anything of this answer yet.
 */
static void refuse_query(const struct front *front, struct MHD_Connection *connection)
{
	static const char answer[] = "HTTP/1.1 414 URI Too Long\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (!info)
		return;
	/* Below TLS nothing can be said past the library. */
	if (!front->certificate)
		(void)!send(info->connect_fd, answer, sizeof answer - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(info->connect_fd, SHUT_RDWR);
}

static bool has_too_many_words(const char *uri)
{
	size_t count = 0;

	for (const char *c = strchr(uri, '?'); c && count <= WORDS_MAX; c = strchr(c + 1, '&'))
		count++;
	return count > WORDS_MAX;
}

/* Called for each request as soon as its first line is there. What it returns is the exchange. */
static void *on_uri(void *context, const char *uri, struct MHD_Connection *connection)
{
	struct front *front = context;
	struct exchange *exchange = calloc(1, sizeof *exchange);

	if (!exchange)
		return NULL;
	exchange->is_too_long = strlen(uri) > URI_MAX;
	if (has_too_many_words(uri))
		refuse_query(front, connection);
	exchange->uri = str_dup(exchange->is_too_long ? "/" : uri);
	if (!exchange->uri) {
		free(exchange);
		return NULL;
	}
	exchange->front = front;
	exchange->connection = connection;
	exchange->query = strchr(exchange->uri, '?');
	if (exchange->query)
		*(char *)exchange->query++ = 0;
	buf_init(&exchange->body, 0);
	exchange->link = &front->exchanges;
	exchange->next = front->exchanges;
	if (exchange->next)
		exchange->next->link = &exchange->next;
	front->exchanges = exchange;
	return exchange;
}

static struct client *client_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **slot,
			 enum MHD_RequestTerminationCode why)
{
	struct exchange *exchange = *slot;
	struct client *client = client_of(connection);
	struct front *front = context;

	if (client) {
		client->has_head = false;
		client->exchange = NULL;
		client->since_ms = front->now_ms;
	}
	if (!exchange)
		return;
	*slot = NULL;
	loop_remove(&front->loop, &exchange->hangup);
	launcher_forget(front->launcher, exchange->ticket);
	if (exchange->handler && exchange->handler->done)
		exchange->handler->done(exchange);
	*exchange->link = exchange->next;
	if (exchange->next)
		exchange->next->link = exchange->link;
	buf_done(&exchange->body);
	free(exchange->uri);
	free(exchange);
}

/* Whoever waits for the launcher, or reads an answer, is served. */
static bool is_served(const struct client *client)
{
	return client->exchange && (client->exchange->is_suspended || client->exchange->is_answered);
}

/*
 * Connections are few, and who has no key can open all of them: when most are taken, whoever waited longest leaves.
 * First those to whom nothing was granted yet, whatever they have sent of a request; then those that ask for nothing.
 * False: all of them are served.
 */
static bool end_longest_idle(struct front *front)
{
	struct client *stranger = NULL, *idle = NULL, *leaving;

	for (struct client *client = front->clients; client; client = client->next) {
		if (client->is_leaving || is_served(client))
			continue;
		if (!client->is_known)
			stranger = client;
		else if (!client->has_head)
			idle = client;
	}
	leaving = stranger ? stranger : idle;
	if (!leaving)
		return false;
	leaving->is_leaving = true;
	shutdown(leaving->fd, SHUT_RDWR);
	return true;
}

static void make_room(struct front *front)
{
	if (front->client_count > front->connections_max - front->connections_max / SPARE_PART)
		(void)end_longest_idle(front);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **slot,
			  enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct front *front = context;
	struct client *client = *slot;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*slot = client = info ? calloc(1, sizeof *client) : NULL;
		if (!client)
			return;
		front->client_count++;
		make_room(front);
		client->fd = info->connect_fd;
		client->since_ms = front->now_ms;
		client->link = &front->clients;
		client->next = front->clients;
		if (client->next)
			client->next->link = &client->next;
		front->clients = client;
	} else if (client) {
		*client->link = client->next;
		if (client->next)
			client->next->link = client->link;
		free(client);
		front->client_count--;
		*slot = NULL;
	}
}

static bool find_target(struct exchange *exchange)
{
	const struct host_said said = {
		exchange_header(exchange, "Host"), exchange_header(exchange, "E2b-Sandbox-Id"),
		exchange_header(exchange, "E2b-Sandbox-Port"),
	};
	const char *why = NULL;
	int r = host_route(&said, (const char *const *)exchange->front->names, &exchange->target, &why);

	if (r == 0)
		return true;
	exchange_fail(exchange, r == -EPERM ? 403 : 400, CONNECT_UNKNOWN, why);
	return false;
}

/* A signed URL may name no sandbox: the launcher finds the one whose token signed it. */
static bool is_signed(const struct exchange *exchange, const struct route *route)
{
	struct query_signature signature;

	return route->credentials & SERVICE_BY_SIGNATURE &&
	       query_get_signature(exchange->query, &signature) == 0 && signature.is_there;
}

static enum route_side side_of(const struct exchange *exchange)
{
	if (exchange->target.kind != HOST_SANDBOX)
		return ROUTE_API;
	return exchange->target.port == HOST_INTERPRETER_PORT ? ROUTE_INTERPRETER : ROUTE_ENVD;
}

/* Whether it is for a server inside: also what no route of the interpreter's port is for. */
static bool is_for_port(const struct exchange *exchange)
{
	struct route_match match;

	if (exchange->target.kind != HOST_SANDBOX || exchange->target.port == HOST_ENVD_PORT)
		return false;
	return exchange->target.port != HOST_INTERPRETER_PORT || !exchange->front->extension ||
	       (route_find(ROUTE_INTERPRETER, exchange->method, exchange->uri, &match) == -ENOENT &&
		!str_equal(exchange->method, "OPTIONS"));
}

static bool find_route(struct exchange *exchange)
{
	enum route_side side = side_of(exchange);
	int r = route_find(side, exchange->method, exchange->uri, &exchange->match);
	struct route_match other;

	if (r == 0)
		return true;
	if (r == -ENOTSUP)
		exchange_fail(exchange, 405, CONNECT_UNKNOWN, "this path has other methods");
	else if (side == ROUTE_API && route_find(ROUTE_ENVD, exchange->method, exchange->uri, &other) == 0) {
		if (is_signed(exchange, other.route)) {
			exchange->match = other;
			return true;
		}
		exchange_fail(exchange, 404, CONNECT_UNKNOWN,
			      "this path is a sandbox's: name it as 49983-ID.DOMAIN, or by E2b-Sandbox-Id and -Port");
	} else
		exchange_fail(exchange, 404, CONNECT_UNKNOWN, "there is no such path");
	return false;
}

/* Of calls by Connect: JSON alone is spoken. */
static bool is_type_read(const struct exchange *exchange)
{
	const char *type = exchange_header(exchange, "Content-Type");
	uint32_t flags = exchange->match.route->flags;
	const char *wanted = flags & ROUTE_STREAMED ? "application/connect+json" : "application/json";

	return !(flags & (ROUTE_STREAMED | ROUTE_UNARY)) || (type && strncasecmp(type, wanted, strlen(wanted)) == 0);
}

/* How much of a body is read, if only to be thrown away. */
static uint64_t body_bound(const struct exchange *exchange)
{
	return EXCESS * ((uint64_t)exchange->body.max + URI_MAX);
}

static bool is_body_bounded(const struct exchange *exchange, uint64_t max)
{
	const char *length = exchange_header(exchange, "Content-Length");
	uint64_t size;

	return !length || (num_parse_u64(length, &size) == 0 && size <= max);
}

/* What says where a request ends, and whom it is for. */
struct framing {
	const char *coding;
	unsigned hosts, lengths, codings;
};

static enum MHD_Result on_framing(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct framing *framing = context;

	framing->hosts += strcasecmp(name, "Host") == 0;
	framing->lengths += strcasecmp(name, "Content-Length") == 0;
	if (strcasecmp(name, "Transfer-Encoding") == 0) {
		framing->codings++;
		framing->coding = value;
	}
	return MHD_YES;
}

/*
 * Whether it can be read in one way alone (RFC 9112, 3.2, 6.1 and 6.3): a server inside, or whatever stands before us,
 * would take the rest of what two headers disagree about for a request of its own.
 */
static bool is_unambiguous(const struct exchange *exchange)
{
	struct framing framing = { 0 };

	MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, on_framing, &framing);
	return framing.hosts <= 1 && framing.lengths + framing.codings <= 1 &&
	       (!framing.codings || (framing.coding && strcasecmp(framing.coding, "chunked") == 0)) &&
	       (exchange->uri[0] == '/' || str_equal(exchange->uri, "*")) && !str_equal(exchange->method, "CONNECT");
}

/* What the program added, or the front's own. */
static const struct exchange_handler *find_handler(const struct front_extension *extension, enum route_handler handler)
{
	if (handler == ROUTE_CODE)
		return extension->handler;
	if (handler == ROUTE_ARCHIVE && extension && extension->archive)
		return extension->archive;
	return handler == ROUTE_FUNCTION && extension && extension->function ? extension->function :
									       handlers_find(handler);
}

/* The first look at a request, when its head is there. What is refused here reads no body. */
static void begin(struct exchange *exchange)
{
	const struct route *route;

	if (exchange->is_too_long) {
		exchange_fail(exchange, 414, CONNECT_UNKNOWN, "the path and the query are too long");
		return;
	}
	if (!is_unambiguous(exchange)) {
		exchange_fail(exchange, 400, CONNECT_UNKNOWN,
			      "the request can be read in two ways, or is for a proxy: one Host, one length, a path");
		return;
	}
	if (!find_target(exchange))
		return;
	if (is_for_port(exchange)) {
		exchange->handler = &port_handler;
		port_handler.begin(exchange);
		return;
	}
	if (!respond_is_page_ours(exchange)) {
		exchange_fail(exchange, 403, CONNECT_UNKNOWN, "pages of this origin may not use the service");
		return;
	}
	if (str_equal(exchange->method, "OPTIONS")) {
		respond_preflight(exchange);
		return;
	}
	if (!find_route(exchange))
		return;
	route = exchange->match.route;
	exchange->handler = find_handler(exchange->front->extension, route->handler);
	if (!is_type_read(exchange)) {
		exchange->match.route = NULL;
		exchange_fail(exchange, 415, CONNECT_UNKNOWN, "this call is made with JSON");
		return;
	}
	buf_done(&exchange->body);
	buf_init(&exchange->body, route->body_max);
	/* A little more is read and refused then: who has not said it all might not hear why. */
	if (route->body_max != UINT32_MAX && !is_body_bounded(exchange, body_bound(exchange))) {
		exchange_fail(exchange, 413, CONNECT_RESOURCE_EXHAUSTED, "the body is too large");
		return;
	}
	if (exchange->handler->begin)
		exchange->handler->begin(exchange);
}

/* A piece of the body. False: the connection ends. */
static bool take_body(struct exchange *exchange, const char *bytes, size_t *size)
{
	const struct exchange_handler *handler = exchange->handler;

	if (handler && handler->take) {
		*size -= handler->take(exchange, bytes, *size);
		return exchange->excess <= DISCARD_MAX;
	}
	/* Beyond its bound the buffer keeps nothing: capacity counts what is thrown away. */
	buf_put(&exchange->body, bytes, *size);
	if (buf_error(&exchange->body) < 0)
		exchange->excess += *size;
	*size = 0;
	return exchange->excess <= body_bound(exchange);
}

static void run(struct exchange *exchange)
{
	exchange->is_body_done = true;
	if (exchange->excess && !exchange->handler->take)
		exchange_fail(exchange, 413, CONNECT_RESOURCE_EXHAUSTED, "the body is too large");
	else
		exchange->handler->run(exchange);
}

/* MHD_AccessHandlerCallback: as many as it gives. The exchange has the URL as it came; this one was decoded. */
#define REQUEST \
	void *context, struct MHD_Connection *connection, const char *url, const char *method, const char *version, \
		const char *bytes, size_t *size, void **slot

static enum MHD_Result on_request(REQUEST)
{
	struct exchange *exchange = *slot;
	struct client *client = client_of(connection);

	if (!exchange || exchange->is_gone)
		return MHD_NO;
	if (!exchange->method) {
		exchange->method = method;
		if (client) {
			client->has_head = true;
			client->exchange = exchange;
			exchange->is_known = &client->is_known;
		}
		begin(exchange);
		return exchange->is_gone ? MHD_NO : MHD_YES;
	}
	if (*size)
		return exchange->is_answered || take_body(exchange, bytes, size) ? MHD_YES : MHD_NO;
	if (!exchange->is_body_done && !exchange->is_answered)
		run(exchange);
	return exchange->is_gone ? MHD_NO : MHD_YES;
}

static int on_epoll(void *context, uint32_t events)
{
	struct front_listener *listener = context;

	MHD_run(listener->daemon);
	return 0;
}

/* Its log goes nowhere: what it says of clients is of their making. */
static void say_nothing(void *context, const char *format, va_list args)
{
}

static struct MHD_Daemon *start(struct front *front, int fd)
{
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE | MHD_USE_ERROR_LOG |
			 (front->certificate ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, front->certificate },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, front->private_key },
		{ MHD_OPTION_END, 0, NULL },
	};

	return MHD_start_daemon(flags, 0, NULL, NULL, on_request, front,
				MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL,
				MHD_OPTION_LISTEN_SOCKET, fd,
				MHD_OPTION_URI_LOG_CALLBACK, on_uri, front,
				MHD_OPTION_NOTIFY_COMPLETED, on_completed, front,
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, front,
				MHD_OPTION_CONNECTION_LIMIT, front->connections_max,
				MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES,
				MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
				MHD_OPTION_STRICT_FOR_CLIENT, 1,
				/* It is ignored: without this word no file would go by sendfile(2), but by 4 KiB. */
				MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
				MHD_OPTION_ARRAY, front->certificate ? tls : &tls[2], MHD_OPTION_END);
}

int serve_begin(struct front *front)
{
	for (size_t i = 0; i < FRONT_LISTENERS_MAX; i++) {
		struct front_listener *listener = &front->listeners[front->listener_count];
		const union MHD_DaemonInfo *info;
		int r;

		if (front->listen_fds[i] < 0)
			continue;
		listener->fd = front->listen_fds[i];
		listener->daemon = start(front, listener->fd);
		info = listener->daemon ? MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
		if (!info)
			return -EINVAL;
		listener->source = (struct loop_source){
			.fd = info->epoll_fd, .events = EPOLLIN, .ready = on_epoll, .context = listener,
		};
		r = loop_add(&front->loop, &listener->source);
		if (r < 0)
			return r;
		front->listener_count++;
	}
	if (!front->listener_count)
		return -EINVAL;
	front->spare_fd = fd_duplicate(front->listeners[0].fd);
	return front->spare_fd < 0 ? front->spare_fd : 0;
}

int serve_turn(struct front *front, int max_ms)
{
	bool has_resumed = front->has_resumed;

	front->has_resumed = false;
	for (size_t i = 0; i < front->listener_count; i++) {
		struct MHD_Daemon *daemon = front->listeners[i].daemon;
		MHD_UNSIGNED_LONG_LONG wait = 0;

		if (has_resumed || (MHD_get_timeout(daemon, &wait) == MHD_YES && wait == 0))
			MHD_run(daemon);
		if (MHD_get_timeout(daemon, &wait) == MHD_YES && wait < (unsigned)max_ms)
			max_ms = (int)wait;
	}
	return front->has_resumed ? 0 : max_ms;
}

/*
 * Whether a client that owes us something has closed. libmicrohttpd waits for edges and takes a short read for all that
 * there is: an end that came together with the last bytes it learns of by its timeout alone.
 */
static bool has_left(const struct client *client)
{
	const struct exchange *exchange = client->exchange;
	char byte;

	if (client->has_head &&
	    (!exchange || exchange->is_body_done || exchange->is_suspended || exchange->is_answered))
		return false;
	return recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A descriptor, or -errno; -EAGAIN: nobody waits. */
static int accept_one(int listen_fd, struct sockaddr_storage *ret_from, socklen_t *ret_size)
{
	struct pollfd waited = { .fd = listen_fd, .events = POLLIN };
	int fd;

	if (poll(&waited, 1, 0) <= 0)
		return -EAGAIN;
	*ret_size = sizeof *ret_from;
	fd = accept4(listen_fd, (struct sockaddr *)ret_from, ret_size, SOCK_CLOEXEC | SOCK_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Closes whoever waits first: it learns that it is not served. False: somebody else took the spare descriptor. */
static bool turn_away(struct front *front, int listen_fd)
{
	struct sockaddr_storage from;
	socklen_t size;
	int fd;

	close_fd(&front->spare_fd);
	fd = accept_one(listen_fd, &from, &size);
	if (fd >= 0)
		close(fd);
	front->spare_fd = fd_duplicate(listen_fd);
	return fd >= 0 && front->spare_fd >= 0;
}

/* Lets some leave whom nobody will miss. False: there are none. */
static bool end_some_idle(struct front *front)
{
	size_t count = front->client_count / SPARE_PART + 1, ended = 0;

	while (ended < count && end_longest_idle(front))
		ended++;
	return ended > 0;
}

/*
 * Where no descriptor is left libmicrohttpd accepts nobody until one of its connections ends, though commands may have
 * given theirs back before. So who still waits is accepted here, or those that ask for nothing leave, or it is closed.
 */
static void accept_waiting(struct front *front, const struct front_listener *listener)
{
	for (unsigned i = 0; i < ACCEPTS_MAX && front->client_count < front->connections_max; i++) {
		struct sockaddr_storage from;
		socklen_t size;
		int fd = accept_one(listener->fd, &from, &size);

		if (fd >= 0)
			(void)MHD_add_connection(listener->daemon, fd, (struct sockaddr *)&from, size);
		else if (fd != -EMFILE || end_some_idle(front) || !turn_away(front, listener->fd))
			return;
	}
}

void serve_tick(struct front *front)
{
	for (size_t i = 0; i < front->listener_count; i++)
		accept_waiting(front, &front->listeners[i]);
	/* Who sends a byte now and then is not idle, and is to be dropped all the same. */
	for (struct client *client = front->clients; client; client = client->next)
		if ((!client->has_head && front->now_ms - client->since_ms >= HEAD_MS) || has_left(client))
			shutdown(client->fd, SHUT_RDWR);
}
