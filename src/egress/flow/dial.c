/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/dial.h"

#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/event_struct.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "egress/flow/proxy.h"
#include "policy/decide.h"

enum {
	ADDRESSES_MAX = 8, TEST_HOSTS_MAX = 64,
	HEAD_START_MS = 250, PATIENCE_MS = 5000, TIMEOUT_SECONDS = 30,
};

struct test_host {
	char name[254];
	uint8_t address[16];
};

struct dialer {
	struct event_base *base;
	struct evdns_base *dns;
	const struct policy *policy;
	struct proxy proxy;
	bool has_proxy;
	struct test_host test_hosts[TEST_HOSTS_MAX];
	size_t test_host_count;
};

/* One address that is being tried. */
struct attempt {
	struct dial *dial;
	struct gate_address address;
	int fd;
	struct event writable;
};

struct dial {
	struct dialer *dialer;
	uint16_t port;
	char host[254];
	bool has_proxy, is_at_proxy;    /* goes through one; the target is judged, and the attempts are the proxy's */
	struct tunnel *tunnel;
	int tunnel_fd;                  /* owned: connected to the proxy */
	struct gate_address tunnel_address;
	struct attempt attempts[ADDRESSES_MAX];
	size_t count, started, failed;
	struct gate_address refused;    /* the first, if any */
	bool has_refused, is_cancelled, is_starting;
	int errnum;                     /* of the last failure */
	struct evdns_getaddrinfo_request *request;
	struct event head_start, timeout, begin;
	void (*told)(void *context, const struct dial_result *result);
	void *context;
};

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

static bool is_mapped(const uint8_t bytes[16])
{
	return memcmp(bytes, mapped_prefix, sizeof mapped_prefix) == 0;
}

void gate_address_format(const uint8_t bytes[16], char out[46])
{
	if (is_mapped(bytes))
		inet_ntop(AF_INET, bytes + 12, out, 46);
	else
		inet_ntop(AF_INET6, bytes, out, 46);
}

int dialer_new(struct dialer **ret_dialer, struct event_base *base, const struct policy *policy)
{
	struct dialer *dialer = calloc(1, sizeof *dialer);

	if (!dialer)
		return -ENOMEM;
	dialer->base = base;
	dialer->policy = policy;
	dialer->dns = evdns_base_new(base, 0);
	if (!dialer->dns) {
		free(dialer);
		return -ENOMEM;
	}
	/* A file that is missing or empty leaves the resolver of this machine (127.0.0.1), as for every program. */
	(void)evdns_base_resolv_conf_parse(dialer->dns, DNS_OPTION_NAMESERVERS | DNS_OPTION_MISC, "/etc/resolv.conf");
	(void)evdns_base_load_hosts(dialer->dns, "/etc/hosts");
	/* The name that was allowed, and no other that the host's search list would make of it. */
	evdns_base_search_clear(dialer->dns);
	*ret_dialer = dialer;
	return 0;
}

int dialer_set_proxy(struct dialer *dialer, const char *url, const char *no_proxy)
{
	int r = url ? proxy_parse(&dialer->proxy, url, no_proxy) : 0;

	dialer->has_proxy = r == 0 && url;
	/* Where only the proxy knows the world, the resolver here often knows nothing: that must not take long. */
	if (dialer->has_proxy && (evdns_base_set_option(dialer->dns, "timeout:", "2") < 0 ||
				  evdns_base_set_option(dialer->dns, "attempts:", "1") < 0))
		r = -EINVAL;
	return r;
}

int dialer_set_test_hosts(struct dialer *dialer, const char *test_hosts)
{
	while (test_hosts && *test_hosts) {
		struct test_host *host = &dialer->test_hosts[dialer->test_host_count];
		size_t length = strcspn(test_hosts, ","), name = strcspn(test_hosts, "=");
		char address[64];

		if (dialer->test_host_count == TEST_HOSTS_MAX || name >= length ||
		    str_format(host->name, sizeof host->name, "%.*s", (int)name, test_hosts) < 0 ||
		    str_format(address, sizeof address, "%.*s", (int)(length - name - 1), test_hosts + name + 1) < 0 ||
		    !gate_address_parse(address, host->address))
			return -EINVAL;
		dialer->test_host_count++;
		test_hosts += length + (test_hosts[length] == ',');
	}
	return 0;
}

void dialer_free(struct dialer *dialer)
{
	if (!dialer)
		return;
	evdns_base_free(dialer->dns, 0);
	free(dialer);
}

static void free_dial(struct dial *dial)
{
	event_del(&dial->head_start);
	event_del(&dial->timeout);
	event_del(&dial->begin);
	tunnel_cancel(dial->tunnel);
	close_fd(&dial->tunnel_fd);
	for (size_t i = 0; i < dial->started; i++) {
		if (dial->attempts[i].fd >= 0)
			event_del(&dial->attempts[i].writable);
		close_fd(&dial->attempts[i].fd);
	}
	free(dial);
}

/* Ends the dial with this result. */
static void report_result(struct dial *dial, struct dial_result result)
{
	void (*told)(void *, const struct dial_result *) = dial->told;
	void *context = dial->context;

	result.is_proxied = dial->is_at_proxy;
	/* The resolver still has us: it will call once more, to find that nobody waits. */
	if (dial->request) {
		dial->is_cancelled = true;
		evdns_getaddrinfo_cancel(dial->request);
		event_del(&dial->timeout);
	} else {
		free_dial(dial);
	}
	told(context, &result);
}

static void report_failure(struct dial *dial)
{
	struct dial_result result = { .outcome = DIAL_FAILED, .errnum = dial->errnum, .fd = FD_NONE };

	if (!dial->count && dial->has_refused)
		result = (struct dial_result){ .outcome = DIAL_REFUSED, .fd = FD_NONE, .address = dial->refused };
	report_result(dial, result);
}

static void start_next(struct dial *dial);

static void fail_attempt(struct attempt *attempt, int errnum)
{
	struct dial *dial = attempt->dial;

	dial->errnum = errnum;
	dial->failed++;
	close_fd(&attempt->fd);
	start_next(dial);
}

static void on_tunnel(void *context, int errnum)
{
	struct dial *dial = context;
	struct dial_result result = { .outcome = DIAL_CONNECTED, .address = dial->tunnel_address };

	dial->tunnel = NULL;
	dial->errnum = errnum;
	result.fd = take_fd(&dial->tunnel_fd);
	if (!errnum) {
		report_result(dial, result);
		return;
	}
	close_fd(&result.fd);
	report_result(dial, (struct dial_result){ .outcome = DIAL_FAILED, .errnum = errnum, .fd = FD_NONE });
}

/* The first address of the proxy that answers is the one; the others are let go. */
static void start_tunnel(struct dial *dial, struct attempt *attempt)
{
	struct tunnel_target target = { dial->host, dial->port, on_tunnel, dial };

	dial->tunnel_fd = take_fd(&attempt->fd);
	dial->tunnel_address = attempt->address;
	for (size_t i = 0; i < dial->started; i++) {
		if (dial->attempts[i].fd >= 0)
			event_del(&dial->attempts[i].writable);
		close_fd(&dial->attempts[i].fd);
	}
	dial->started = dial->count = 0;
	event_del(&dial->head_start);
	if (tunnel_start(&dial->tunnel, dial->dialer->base, dial->tunnel_fd, &dial->dialer->proxy, &target) < 0)
		report_result(dial, (struct dial_result){ .outcome = DIAL_FAILED, .errnum = ENOMEM, .fd = FD_NONE });
}

/* It is connected. The dial may be gone afterwards. */
static void finish_attempt(struct attempt *attempt)
{
	struct dial_result result = { .outcome = DIAL_CONNECTED, .address = attempt->address };

	if (attempt->dial->is_at_proxy) {
		start_tunnel(attempt->dial, attempt);
		return;
	}
	result.fd = take_fd(&attempt->fd);
	report_result(attempt->dial, result);
}

static void on_writable(evutil_socket_t fd, short what, void *context)
{
	struct attempt *attempt = context;
	int errnum = 0;
	socklen_t size = sizeof errnum;

	(void)what;
	event_del(&attempt->writable);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size) < 0)
		errnum = errno;
	if (errnum)
		fail_attempt(attempt, errnum);
	else
		finish_attempt(attempt);
}

static socklen_t fill_sockaddr(const struct gate_address *address, struct sockaddr_storage *out)
{
	struct sockaddr_in *inet = (struct sockaddr_in *)out;
	struct sockaddr_in6 *inet6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof *out);
	if (is_mapped(address->bytes)) {
		inet->sin_family = AF_INET;
		inet->sin_port = htons(address->port);
		memcpy(&inet->sin_addr, address->bytes + 12, 4);
		return sizeof *inet;
	}
	inet6->sin6_family = AF_INET6;
	inet6->sin6_port = htons(address->port);
	memcpy(&inet6->sin6_addr, address->bytes, 16);
	return sizeof *inet6;
}

/* 0: it is under way; EISCONN: it is connected already; another errno: it failed. */
static int try(struct attempt *attempt)
{
	struct sockaddr_storage target;
	socklen_t size = fill_sockaddr(&attempt->address, &target);

	attempt->fd = socket(target.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (attempt->fd < 0)
		return errno;
	setsockopt(attempt->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	setsockopt(attempt->fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int));
	if (connect(attempt->fd, (struct sockaddr *)&target, size) < 0 && errno != EINPROGRESS)
		return errno;
	/* On this machine it stands as soon as the call has returned, which would be two turns of the loop. */
	if (connect(attempt->fd, (struct sockaddr *)&target, size) == 0)
		return EISCONN;
	if (errno != EALREADY)
		return errno;
	if (event_assign(&attempt->writable, attempt->dial->dialer->base, attempt->fd, EV_WRITE, on_writable,
			 attempt) < 0 ||
	    event_add(&attempt->writable, NULL) < 0)
		return ENOMEM;
	return 0;
}

static size_t count_attempts(const struct dial *dial)
{
	size_t count = 0;

	for (size_t i = 0; i < dial->started; i++)
		count += dial->attempts[i].fd >= 0;
	return count;
}

/* The one that has had the longest time to answer makes room for another. */
static void give_up_oldest(struct dial *dial)
{
	struct attempt *attempt = dial->attempts;

	while (attempt->fd < 0)
		attempt++;
	event_del(&attempt->writable);
	close_fd(&attempt->fd);
	dial->errnum = ETIMEDOUT;
	dial->failed++;
}

/* Many addresses that are silent must not use up the descriptors of other connections: no more of them than that. */
static void set_head_start(struct dial *dial)
{
	int ms = count_attempts(dial) < DIAL_ATTEMPTS_MAX ? HEAD_START_MS : PATIENCE_MS;

	event_add(&dial->head_start, &(struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 });
}

/* The next address that can be tried at all; the one after it gets its turn a moment later. */
static void start_next(struct dial *dial)
{
	while (dial->started < dial->count) {
		struct attempt *attempt = &dial->attempts[dial->started++];
		int errnum = try(attempt);

		if (errnum == EISCONN) {
			finish_attempt(attempt);
			return;
		}
		if (!errnum) {
			if (dial->started < dial->count)
				set_head_start(dial);
			return;
		}
		close_fd(&attempt->fd);
		dial->errnum = errnum;
		dial->failed++;
	}
	if (dial->failed == dial->count)
		report_failure(dial);
}

static void on_head_start(evutil_socket_t fd, short what, void *context)
{
	struct dial *dial = context;

	(void)fd;
	(void)what;
	if (dial->started < dial->count && count_attempts(dial) == DIAL_ATTEMPTS_MAX)
		give_up_oldest(dial);
	start_next(dial);
}

static void on_timeout(evutil_socket_t fd, short what, void *context)
{
	struct dial *dial = context;

	(void)fd;
	(void)what;
	report_result(dial, (struct dial_result){ .outcome = DIAL_FAILED, .errnum = ETIMEDOUT, .fd = FD_NONE });
}

/* Judges one answer; only those that are allowed are ever tried. */
static void add_address(struct dial *dial, const uint8_t bytes[16], bool is_judged)
{
	struct gate_address address = { .port = dial->is_at_proxy ? dial->dialer->proxy.port : dial->port };
	struct attempt *attempt;

	memcpy(address.bytes, bytes, sizeof address.bytes);
	if (!is_judged &&
	    policy_decide_resolved(dial->dialer->policy, bytes, dial->port, false).verdict != VERDICT_ALLOW) {
		if (!dial->has_refused)
			dial->refused = address;
		dial->has_refused = true;
		return;
	}
	if (dial->count == ADDRESSES_MAX)
		return;
	attempt = &dial->attempts[dial->count++];
	*attempt = (struct attempt){ .dial = dial, .address = address, .fd = FD_NONE };
}

/* The families take turns, the one that the resolver put first begins: no family that is broken holds up the other. */
static void interleave(struct dial *dial)
{
	struct attempt sorted[ADDRESSES_MAX];
	bool is_taken[ADDRESSES_MAX] = { 0 };
	bool wants_mapped = dial->count && is_mapped(dial->attempts[0].address.bytes);

	for (size_t i = 0; i < dial->count; i++, wants_mapped = !wants_mapped) {
		size_t found = SIZE_MAX;

		for (size_t j = 0; j < dial->count && found == SIZE_MAX; j++)
			if (!is_taken[j] && is_mapped(dial->attempts[j].address.bytes) == wants_mapped)
				found = j;
		for (size_t j = 0; j < dial->count && found == SIZE_MAX; j++)
			if (!is_taken[j])
				found = j;
		is_taken[found] = true;
		sorted[i] = dial->attempts[found];
	}
	memcpy(dial->attempts, sorted, dial->count * sizeof *sorted);
}

static void add_answer(struct dial *dial, const struct evutil_addrinfo *answer)
{
	uint8_t bytes[16];

	memcpy(bytes, mapped_prefix, sizeof mapped_prefix);
	if (answer->ai_family == AF_INET)
		memcpy(bytes + 12, &((struct sockaddr_in *)answer->ai_addr)->sin_addr, 4);
	else if (answer->ai_family == AF_INET6)
		memcpy(bytes, &((struct sockaddr_in6 *)answer->ai_addr)->sin6_addr, 16);
	else
		return;
	add_address(dial, bytes, dial->is_at_proxy);
}

static bool resolve(struct dial *dial, const char *host);

/* The target was judged as far as it is known here: now for the proxy, whose address is the user's own choice. */
static void go_to_proxy(struct dial *dial)
{
	const char *host = dial->dialer->proxy.host;
	uint8_t address[16];

	dial->is_at_proxy = true;
	dial->count = 0;
	if (gate_address_parse(host, address))
		add_address(dial, address, true);
	else if (!resolve(dial, host))
		return;
	event_active(&dial->begin, EV_TIMEOUT, 0);
}

static void go(struct dial *dial)
{
	if (dial->has_proxy && !dial->is_at_proxy && (dial->count || !dial->has_refused))
		go_to_proxy(dial);
	else if (dial->count)
		start_next(dial);
	else
		report_failure(dial);
}

static void on_resolved(int result, struct evutil_addrinfo *answers, void *context)
{
	struct dial *dial = context;

	dial->request = NULL;
	if (!dial->is_cancelled)
		for (const struct evutil_addrinfo *answer = answers; answer; answer = answer->ai_next)
			add_answer(dial, answer);
	if (answers)
		evutil_freeaddrinfo(answers);
	if (dial->is_cancelled) {
		free_dial(dial);
		return;
	}
	dial->errnum = result;
	interleave(dial);
	if (!dial->is_starting)
		go(dial);
}

static bool add_test_hosts(struct dial *dial, const char *host)
{
	const struct dialer *dialer = dial->dialer;
	bool found = false;

	for (size_t i = 0; i < dialer->test_host_count; i++)
		if (str_equal(dialer->test_hosts[i].name, host)) {
			add_address(dial, dialer->test_hosts[i].address, false);
			found = true;
		}
	return found;
}

static void on_begin(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	go(context);
}

/* True: the answer was known at once. */
static bool resolve(struct dial *dial, const char *host)
{
	struct evutil_addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP };

	dial->is_starting = true;
	dial->request = evdns_getaddrinfo(dial->dialer->dns, host, NULL, &hints, on_resolved, dial);
	dial->is_starting = false;
	return !dial->request;
}

/* Nothing is started yet. */
static int new_dial(struct dial **ret_dial, struct dialer *dialer, const char *host, uint16_t port,
		    dial_told told, void *context)
{
	struct dial *dial = calloc(1, sizeof *dial);

	if (!dial)
		return -ENOMEM;
	*dial = (struct dial){ .dialer = dialer, .port = port, .told = told, .context = context,
			       .tunnel_fd = FD_NONE,
			       .has_proxy = dialer->has_proxy && !proxy_excepts(&dialer->proxy, host) };
	if (str_copy(dial->host, sizeof dial->host, host) < 0) {
		free(dial);
		return -ENAMETOOLONG;
	}
	evtimer_assign(&dial->head_start, dialer->base, on_head_start, dial);
	evtimer_assign(&dial->timeout, dialer->base, on_timeout, dial);
	evtimer_assign(&dial->begin, dialer->base, on_begin, dial);
	event_add(&dial->timeout, &(struct timeval){ .tv_sec = TIMEOUT_SECONDS });
	*ret_dial = dial;
	return 0;
}

int dial_start_at(struct dial **ret_dial, struct dialer *dialer, const struct gate_address *addresses, size_t count,
		  dial_told told, void *context)
{
	struct dial *dial;
	int r = new_dial(&dial, dialer, "", addresses[0].port, told, context);

	if (r < 0)
		return r;
	dial->has_proxy = false;
	for (size_t i = 0; i < count; i++)
		add_address(dial, addresses[i].bytes, true);
	event_active(&dial->begin, EV_TIMEOUT, 0);
	*ret_dial = dial;
	return 0;
}

int dial_start(struct dial **ret_dial, struct dialer *dialer, const char *host, uint16_t port, dial_told told,
	       void *context)
{
	struct dial *dial;
	uint8_t address[16];
	int r = new_dial(&dial, dialer, host, port, told, context);

	if (r < 0)
		return r;
	*ret_dial = dial;
	if (gate_address_parse(host, address))
		add_address(dial, address, true);
	else if (!add_test_hosts(dial, host) && !resolve(dial, host))
		return 0;
	event_active(&dial->begin, EV_TIMEOUT, 0);
	return 0;
}

void dial_cancel(struct dial *dial)
{
	if (!dial)
		return;
	if (!dial->request) {
		free_dial(dial);
		return;
	}
	dial->is_cancelled = true;
	event_del(&dial->timeout);
	evdns_getaddrinfo_cancel(dial->request);
}
