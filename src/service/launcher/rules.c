/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/rules.h"

#include <string.h>

#include "base/str.h"
#include "service/launcher/secrets.h"
#include "wire/headers.h"

/* What a client writes for a value that the service has: of secrets.h, or a token of an identity, which it has not. */
static const char identity[] = "${e2b.identity.";

bool rules_are_there(const struct service_message *said)
{
	const char *const *rules = service_strings(said, "rules");

	return rules && *rules;
}

/* host, name, value … with hosts in small letters, as the gate compares them. NULL: out of memory. */
static char **read_rules(const struct service_message *said)
{
	char **triples = strv_copy(service_strings(said, "rules"));

	for (char **triple = triples; triple && *triple; triple += 3)
		for (char *at = *triple; *at; at++)
			*at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
	return triples;
}

static void free_rules(char **triples)
{
	for (char **text = triples; text && *text; text++)
		explicit_bzero(*text, strlen(*text));
	strv_free(triples);
}

static uint32_t check(const char *const *triples, struct err *err)
{
	const char *why, *entry;
	char shown[ERR_QUOTE_SIZE];

	if (headers_check(triples, &why, &entry) < 0) {
		err_set(err, ERR_USAGE, EINVAL, "network", *entry ? "network.rules: %s: %s" : "network.rules%s: %s",
			*entry ? err_quote(shown, entry) : "", why);
		return 400;
	}
	for (; triples && *triples; triples += 3)
		if (strstr(triples[2], identity)) {
			err_set(err, ERR_USAGE, ENOSYS, "network",
				"network.rules: %s: identity tokens (%s…}) are not served here",
				err_quote(shown, triples[1]), identity);
			return 501;
		}
	return 0;
}

uint32_t rules_check(struct daemon *daemon, const char *owner, const struct service_message *said, struct err *err)
{
	int r;
	char **triples;
	uint32_t status;

	if (!rules_are_there(said))
		return 0;
	triples = read_rules(said);
	if (!triples) {
		err_set(err, ERR_INTERNAL, ENOMEM, "network", "out of memory");
		return 503;
	}
	status = check((const char *const *)triples, err);
	r = status ? 0 : secrets_fill(daemon, owner, triples, true, err);
	if (r < 0)
		status = r == -ENOENT || r == -EINVAL ? 400 : 500;
	free_rules(triples);
	return status;
}

void rules_set(struct sandbox *sandbox, const struct service_message *said, struct call *call, await_done *done)
{
	struct atoll_error error = { .size = sizeof error, .what = "out of memory" };
	char **triples = read_rules(said);
	struct err err = { 0 };
	uint64_t ticket = 0;
	int r = ATOLL_E_NO_MEMORY;

	if (triples && secrets_fill(sandbox->daemon, sandbox->owner, triples, false, &err) < 0) {
		r = ATOLL_E_INVALID;
		(void)!str_copy(error.what, sizeof error.what, err.message);
		(void)!str_copy(error.hint, sizeof error.hint, err.hint);
	} else if (triples) {
		r = atoll_set_headers(sandbox->handle, (const char *const *)triples, &ticket, NULL, &error);
	}

	free_rules(triples);
	await_answer(sandbox, call, r, ticket, &error, done);
}
