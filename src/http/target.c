/* SPDX-License-Identifier: Apache-2.0 */
#include "http/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/str.h"
#include "base/url-path.h"

static const char *check_path(const char *path, size_t size)
{
	if (size == 0 || path[0] != '/')
		return "the target is neither a path nor a URL of this server";
	for (size_t i = 0; i < size; i++) {
		if (path[i] == '%' && url_escape_at(path + i) < 0)
			return "the path has a % that begins no escape";
		if ((unsigned char)path[i] <= 0x20 || path[i] == 0x7f || path[i] == '#')
			return "the path has a character that no path has";
	}
	return NULL;
}

static int make_readings(const char *path, size_t size, struct target *target)
{
	int r;

	target->path = str_printf("%.*s", (int)size, path);
	if (!target->path)
		return -ENOMEM;
	(void)url_path_decode(target->path, URL_FREE);
	r = readings_make(target->path, target->climbs, &target->readings);
	if (r < 0)
		target_done(target);
	return r;
}

static bool is_name(const char *text, size_t size, const char *name)
{
	return name && size == strlen(name) && strncasecmp(text, name, size) == 0;
}

bool target_host_is(const char *authority, const struct target_server *server)
{
	const char *colon = strrchr(authority, ':'), *bracket = strchr(authority, ']');
	const char *host = authority;
	size_t size;
	uint64_t port = server->is_tls ? 443 : 80;

	if (colon && bracket && colon < bracket)
		colon = NULL;
	if (colon && (strlen(colon + 1) > 5 || num_parse_u64(colon + 1, &port) < 0))
		return false;
	size = colon ? (size_t)(colon - host) : strlen(host);
	if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
		host++;
		size -= 2;
	}
	/* "example.org." is the same host by DNS, but not to every server: refused rather than guessed. */
	return port == server->port && (is_name(host, size, server->host) || is_name(host, size, server->alias) ||
					(str_equal(server->host, "localhost") &&
					 (is_name(host, size, "127.0.0.1") || is_name(host, size, "::1"))));
}

/* The part of an absolute-form behind the authority, or NULL. */
static const char *skip_authority(const char *text, const struct target_server *server)
{
	const char *scheme = server->is_tls ? "https://" : "http://";
	char authority[300];
	size_t size;

	if (strncasecmp(text, scheme, strlen(scheme)) != 0)
		return NULL;
	text += strlen(scheme);
	size = strcspn(text, "/?#");
	if (size >= sizeof authority)
		return NULL;
	memcpy(authority, text, size);
	authority[size] = 0;
	return target_host_is(authority, server) ? text + size : NULL;
}

/* OPTIONS of the server as a whole: no path, which nobody reads in another way. */
static int set_asterisk(struct target *target)
{
	target->path = str_dup("*");
	target->readings.texts[0] = str_dup("*");
	target->readings.count = 1;
	if (target->path && target->readings.texts[0])
		return 0;
	target_done(target);
	return -ENOMEM;
}

int target_parse(const char *method, const char *text, const struct target_server *server, struct target *ret_target,
		 const char **ret_problem)
{
	struct target target = { .origin = text };
	size_t size;
	int r;

	if (str_equal(text, "*") && str_equal(method, "OPTIONS")) {
		r = set_asterisk(&target);
		*ret_target = target;
		return r;
	}
	if (text[0] != '/') {
		target.origin = skip_authority(text, server);
		if (target.origin && !*target.origin)
			target.origin = "/";
	}
	size = target.origin ? strcspn(target.origin, "?") : 0;
	if (size >= TARGET_PATH_SIZE) {
		*ret_problem = "the path is too long";
		return -ENAMETOOLONG;
	}
	*ret_problem = check_path(target.origin, size);
	if (!*ret_problem && strchr(target.origin + size, '#'))
		*ret_problem = "the target has a fragment";
	if (*ret_problem)
		return -EBADMSG;
	target.climbs = target.origin[size] ? readings_climbs_of(target.origin + size) : 0;
	r = make_readings(target.origin, size, &target);
	if (r == 0)
		*ret_target = target;
	return r;
}

int target_read(const char *path, uint32_t climbs, struct target *ret_target)
{
	struct target target = { .origin = path, .climbs = climbs };
	size_t size = strlen(path);
	int r;

	if (str_equal(path, "*"))
		r = set_asterisk(&target);
	else if (size >= TARGET_PATH_SIZE || path[0] != '/')
		r = -EBADMSG;
	else
		r = make_readings(path, size, &target);
	if (r == 0)
		*ret_target = target;
	return r;
}

void target_done(struct target *target)
{
	free(target->path);
	readings_done(&target->readings);
	*target = (struct target){ .origin = target->origin };
}

size_t target_reading_count(const struct target *target)
{
	return target->readings.count + (target->readings.certain != NULL);
}

void target_set_reading(const struct target *target, size_t i, struct action *request)
{
	bool is_told = i < target->readings.count;

	request->path = is_told ? target->readings.texts[i] : target->readings.certain;
	request->path_kind = !is_told ? REQUEST_PATH_BEGINS : i ? REQUEST_PATH_READ : REQUEST_PATH_SENT;
}

/* The words of a rule are about the path as it was sent, and would puzzle whoever sent another. */
static void explain_reading(const struct action *request, struct decision *decision)
{
	static const char reason[] =
		"a server can read this path as another one, which the policy does not let through";
	static const char hint[] =
		"send it without dot segments, double slashes and escapes of / \\ ; ? # . %; where it must have them, "
		"list it with them (such as /group%2F*) under http of the host's rule in network.allow of your policy";

	if (request->path_kind == REQUEST_PATH_SENT || decision->verdict >= VERDICT_SIMULATE)
		return;
	if (decision->verdict == VERDICT_ASK && request->path_kind != REQUEST_PATH_BEGINS)
		return;
	decision->verdict = VERDICT_DENY;
	decision->reason = reason;
	decision->hint = hint;
}

struct decision target_judge(const struct target *target, const struct policy *policy, struct action *request)
{
	struct decision strictest = { .verdict = VERDICT_COUNT };
	struct action reading = *request;

	for (size_t i = 0; i < target_reading_count(target); i++) {
		struct decision decision;

		target_set_reading(target, i, &reading);
		decision = policy_decide(policy, &reading);
		explain_reading(&reading, &decision);
		if (decision.verdict >= strictest.verdict)
			continue;
		strictest = decision;
		*request = reading;
	}
	return strictest;
}
