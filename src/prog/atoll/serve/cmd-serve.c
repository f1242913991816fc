/* SPDX-License-Identifier: Apache-2.0 */
#include "client/program.h"
#include "prog/atoll/verb/cmd.h"

/* `atoll serve`: becomes atolld, which has the database and the ciphers that the static programs do without. */

struct serve_options {
	const char *listen, *domain, *tls_cert, *tls_key, *policy, *sandboxes, *connections, *pool, *config;
	const char *role, *owner, *rate, *memory;
	struct option_list host;
	bool beyond_loopback, check, json;
};

static const struct option options[] = {
#define AT(field) offsetof(struct serve_options, field)
	{ 'l', "listen", "ADDRESS:PORT", "where clients come in (127.0.0.1:49982)", OPTION_TEXT, AT(listen) },
	{ 0, "domain", "DOMAIN", "of the names PORT-ID.DOMAIN of servers inside (localhost:PORT)", OPTION_TEXT,
	AT(domain) },
	{ 0, "host", "NAME", "another name that clients may call this machine", OPTION_LIST, AT(host) },
	{ 0, "tls-cert", "FILE", "speak TLS with this certificate (PEM)", OPTION_TEXT, AT(tls_cert) },
	{ 0, "tls-key", "FILE", "and this key", OPTION_TEXT, AT(tls_key) },
	{ 0, "beyond-loopback", NULL, "other machines may come in without TLS, too", OPTION_FLAG, AT(beyond_loopback) },
	{ 'p', "policy", "POLICY", "of keys that name none (service-base)", OPTION_TEXT, AT(policy) },
	{ 0, "sandboxes", "N", "as many at once (4000); key add: of this owner (1000)", OPTION_TEXT, AT(sandboxes) },
	{ 0, "connections", "N", "as many clients at once (8192)", OPTION_TEXT, AT(connections) },
	{ 0, "pool", "N", "as many sandboxes may wait behind their walls (8; 0: none)", OPTION_TEXT, AT(pool) },
	{ 0, "config", "FILE", "read settings from here first", OPTION_TEXT, AT(config) },
	{ 0, "check", NULL, "say whether it could serve, and end", OPTION_FLAG, AT(check) },
	{ 0, "json", NULL, "say it as JSON", OPTION_FLAG, AT(json) },
	{ 0, "role", "ROLE", "key add: admin, user (the default) or read-only", OPTION_TEXT, AT(role) },
	{ 0, "owner", "NAME", "key add: whose sandboxes it sees (the key's own name)", OPTION_TEXT, AT(owner) },
	{ 0, "rate", "N", "key add: sandboxes a minute (600)", OPTION_TEXT, AT(rate) },
	{ 0, "memory", "SIZE", "key add: what all of its owner's sandboxes may use together", OPTION_TEXT, AT(memory) },
#undef AT
};

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_words struct words words = { 0 };
	struct serve_options given = { 0 };
	int rest, r = cmd_parse(&cmd_serve, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	words_add(&words, "atolld");
	words_add_options(&words, options, ARRAY_SIZE(options), &given);
	words_add(&words, "--");
	words_add_all(&words, (const char *const *)argv + rest);
	return program_become("serve", &words, err);
}

const struct cmd cmd_serve = {
	"serve", "[key add NAME | key list | key revoke NAME]",
	"drive sandboxes for clients of the E2B protocol", CMD_OPTIONS(options), .run = run_verb,
};
