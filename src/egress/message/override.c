/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/message/override.h"

#include <string.h>

#include "base/str.h"
#include "egress/message/http1-head.h"
#include "policy/decide.h"

/* Taken for the method or the path, or for the part of the path that a program does not get to see. */
static const char *const names[] = {
	"x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url",
	"x-override-url", "x-original-uri", "x-original-method", "x-forwarded-uri", "x-forwarded-method",
	"x-forwarded-path", "x-forwarded-prefix", "x-envoy-original-path", "x-waws-unencoded-url", "script-name",
	"x-script-name",
};

/* A second path of the same server, from or to which the request copies: judged as if it was asked for. */
static const struct {
	const char *name;
	const char *method;            /* NULL: that of the request */
} places[] = {
	{ "destination", NULL },           /* WebDAV */
	{ "x-amz-copy-source", "GET" },    { "x-amz-rename-source", "GET" }, { "x-goog-copy-source", "GET" },
	{ "x-ms-copy-source", "GET" },     { "x-ms-rename-source", "GET" },  { "x-copy-from", "GET" },
};

/* Programs behind CGI and its kin (RFC 3875 4.1.18) are told of - and _ alike: http1_name_is() takes both. */
static bool is_override(const char *field)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (http1_name_is(field, names[i]))
			return true;
	return false;
}

static bool may_name(const char *value, const char *method, const struct target_server *server,
		     const struct policy *policy)
{
	struct action action = { .kind = ACTION_HTTP_REQUEST, .is_outward = true, .subject = server->host,
				 .port = server->port, .method = method };
	bool is_whole = value[0] == '/' || strstr(value, "://");
	char path[TARGET_PATH_SIZE + 1];
	const char *problem = NULL;
	struct decision decision;
	struct target target;

	if (str_format(path, sizeof path, "%s%s", is_whole ? "" : "/", value) < 0 ||
	    target_parse(method, path, server, &target, &problem) < 0)
		return false;
	decision = target_judge(&target, policy, &action);
	target_done(&target);
	return decision.verdict == VERDICT_ALLOW;
}

const char *override_find(const struct http1_head *head, const char *method, const struct target_server *server,
			  const struct policy *policy)
{
	if (!policy_judges_requests(policy, server->host, server->port))
		return NULL;
	for (size_t i = 0; i < head->field_count; i++) {
		const struct http1_field *field = &head->fields[i];

		if (is_override(field->name))
			return "a header names another method or path than the one that was judged";
		for (size_t k = 0; k < ARRAY_SIZE(places); k++)
			if (http1_name_is(field->name, places[k].name) &&
			    !may_name(field->value, places[k].method ? places[k].method : method, server, policy))
				return "a header names a second path, which the policy does not let through";
	}
	return NULL;
}
