/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/exchange.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/str.h"
#include "os/clock.h"
#include "service/front/respond.h"
#include "service/front/state.h"
#include "service/protocol/basic-user.h"

enum { CREDENTIAL_MAX = 128, ADDRESS_SIZE = 64 };

const char *exchange_header(const struct exchange *exchange, const char *name)
{
	return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

void exchange_suspend(struct exchange *exchange)
{
	if (exchange->is_suspended || exchange->is_answered)
		return;
	exchange->is_suspended = true;
	MHD_suspend_connection(exchange->connection);
}

void exchange_resume(struct exchange *exchange)
{
	if (!exchange->is_suspended)
		return;
	exchange->is_suspended = false;
	loop_remove(&exchange->front->loop, &exchange->hangup);
	MHD_resume_connection(exchange->connection);
	exchange->front->has_resumed = true;
}

static int on_hangup(void *context, uint32_t events)
{
	struct exchange *exchange = context;

	exchange->is_gone = true;
	exchange_resume(exchange);
	return 0;
}

void exchange_suspend_watched(struct exchange *exchange)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (exchange->is_gone)
		return;
	if (!exchange->is_suspended) {
		exchange->is_suspended = true;
		MHD_suspend_connection(exchange->connection);
	}
	if (!info || exchange->hangup.is_added)
		return;
	exchange->hangup = (struct loop_source){
		.fd = info->connect_fd, .events = EPOLLRDHUP, .ready = on_hangup, .context = exchange,
	};
	/* Without it the loss is noticed by the next byte that is sent. */
	if (loop_add(&exchange->front->loop, &exchange->hangup) < 0)
		exchange->hangup.is_added = false;
}

/* Texts of credentials go into frames: what cannot be one is no credential. */
static bool put_credential(struct buf *out, const char *key, const char *text)
{
	if (!text)
		return true;
	if (!*text || strlen(text) > CREDENTIAL_MAX)
		return false;
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	field_put_string(out, key, text);
	return true;
}

static bool put_signature(const struct exchange *exchange, struct buf *out)
{
	struct query_signature signature;
	char path[4097], user[65];

	if (query_get_signature(exchange->query, &signature) < 0)
		return false;
	if (!signature.is_there || exchange_header(exchange, "X-Access-Token"))
		return true;
	path[0] = user[0] = 0;
	if (query_get(exchange->query, "path", path, sizeof path) < 0 ||
	    query_get(exchange->query, "username", user, sizeof user) < 0)
		return false;
	field_put_string(out, "signed", path);
	field_put_string(out, "signed_user", user);
	if (signature.expires_s)
		field_put_u64(out, "expires", signature.expires_s);
	return put_credential(out, "signature", signature.text);
}

static void put_client(const struct exchange *exchange, struct buf *out)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *address = info ? info->client_addr : NULL;
	char text[ADDRESS_SIZE] = "";

	if (address && address->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text, sizeof text);
	else if (address && address->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, text, sizeof text);
	if (text[0])
		field_put_string(out, "client", text);
}

static bool put_credentials(const struct exchange *exchange, struct buf *out)
{
	uint32_t kinds = exchange->match.route ? exchange->match.route->credentials : SERVICE_BY_NOTHING;

	put_client(exchange, out);
	if (kinds & SERVICE_BY_KEY && !put_credential(out, "key", exchange_header(exchange, "X-API-KEY")))
		return false;
	if (kinds & SERVICE_BY_TOKEN && !put_credential(out, "token", exchange_header(exchange, "X-Access-Token")))
		return false;
	return !(kinds & SERVICE_BY_SIGNATURE) || put_signature(exchange, out);
}

struct buf *exchange_ask(struct exchange *exchange, enum service_operation operation)
{
	struct buf *out = launcher_begin(exchange->front->launcher, operation, &exchange->ticket);

	if (!out) {
		exchange->ticket = 0;
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "too much is under way: try again in a moment");
		return NULL;
	}
	field_put_u64(out, "asked_ns", clock_monotonic_ns());
	if (exchange->target.kind == HOST_SANDBOX)
		field_put_string(out, "sandbox", exchange->target.sandbox);
	if (put_credentials(exchange, out))
		return out;
	exchange->ticket = 0;
	exchange_fail(exchange, 401, CONNECT_UNAUTHENTICATED, "the credential is none that there can be");
	return NULL;
}

static void on_reply(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	const struct route *route = exchange->match.route;

	if (exchange->is_known && route && route->credentials != SERVICE_BY_NOTHING && reply->status < 400)
		*exchange->is_known = true;
	exchange->replied(exchange, reply);
}

void exchange_send(struct exchange *exchange, launcher_replied replied)
{
	int r = launcher_send(exchange->front->launcher, exchange->ticket, on_reply, exchange);

	if (r == 0) {
		exchange->replied = replied;
		exchange_suspend(exchange);
		return;
	}
	exchange->ticket = 0;
	if (r == -EBADMSG)
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT,
			      "a value is too long, or has characters that it cannot have");
	else if (r == -EMSGSIZE || r == -ENOBUFS)
		exchange_fail(exchange, 413, CONNECT_RESOURCE_EXHAUSTED, "the request is too large");
	else
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "the service cannot be asked now");
}

int exchange_user(struct exchange *exchange, char out[65])
{
	int r = basic_user_read(exchange_header(exchange, "Authorization"), out);

	if (r < 0)
		exchange_fail(exchange, 401, CONNECT_UNAUTHENTICATED, "the Authorization header names no user");
	return r;
}

int exchange_file_user(struct exchange *exchange, char out[65])
{
	int r = query_get(exchange->query, "username", out, 65);

	if (r == 0 || (r > 0 && !out[0]))
		return exchange_user(exchange, out);
	for (const char *c = out; r > 0 && *c; c++)
		if (!(*c > ' ' && *c < 0x7f))
			r = -EINVAL;
	if (r < 0)
		exchange_fail(exchange, 401, CONNECT_UNAUTHENTICATED, "\"username\" of the query names no user");
	return r;
}

void exchange_put_path_values(const struct exchange *exchange, struct buf *out)
{
	for (size_t i = 0; i < exchange->match.value_count; i++)
		field_put_string(out, exchange->match.values[i].key, exchange->match.values[i].text);
}

bool exchange_message(struct exchange *exchange, struct connect_envelope *ret_envelope)
{
	size_t used = 0;
	int r = connect_envelope_read(exchange->body.bytes, exchange->body.size, exchange->body.size, ret_envelope,
				      &used);

	if (r == -ENOTSUP)
		exchange_fail(exchange, 501, CONNECT_UNIMPLEMENTED, "compressed messages are not read");
	else if (r != 1 || ret_envelope->flags || used != exchange->body.size)
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, "the body is not one whole message");
	else
		return true;
	return false;
}
