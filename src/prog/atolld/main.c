/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atolld: what `atoll serve` becomes. Has the sandboxes of clients of the service, their keys, and its front,
	atoll-front,
 * which alone reads what clients send. Exit status: 0 when it was told to end; 125 when it could not do its work.
 */

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/program.h"
#include "base/str.h"
#include "os/fd.h"
#include "prog/atolld/serve.h"
#include "service/launcher/listen.h"

static const struct option options[] = {
#define AT(field) offsetof(struct serve_options, field)
	{ 'l', "listen", "ADDRESS:PORT", "where clients come in (127.0.0.1:49982)", OPTION_TEXT, AT(settings.listen) },
	{ 0, "domain", "DOMAIN", "of the names PORT-ID.DOMAIN of what listens inside (localhost:PORT)", OPTION_TEXT,
	  AT(settings.domain) },
	{ 0, "host", "NAME", "another name that clients may call this machine", OPTION_LIST, AT(settings.host) },
	{ 0, "tls-cert", "FILE", "speak TLS with this certificate (PEM)", OPTION_TEXT, AT(settings.tls_cert) },
	{ 0, "tls-key", "FILE", "and this key", OPTION_TEXT, AT(settings.tls_key) },
	{ 0, "beyond-loopback", NULL, "other machines may come in, without TLS, too", OPTION_FLAG,
	  AT(settings.beyond_loopback) },
	{ 'p', "policy", "POLICY", "of keys that name none (service-base)", OPTION_TEXT, AT(settings.policy) },
	{ 0, "sandboxes", "N", "as many at once, of all keys (4000)", OPTION_TEXT, AT(settings.sandboxes) },
	{ 0, "connections", "N", "as many clients at once (8192)", OPTION_TEXT, AT(settings.connections) },
	{ 0, "pool", "N", "as many sandboxes may wait behind their walls (8; 0: none)", OPTION_TEXT,
	  AT(settings.pool) },
	{ 0, "config", "FILE", "read settings from here first", OPTION_TEXT, AT(settings.config) },
	{ 0, "check", NULL, "say whether it could serve, and end", OPTION_FLAG, AT(check) },
	{ 0, "json", NULL, "say it as JSON", OPTION_FLAG, AT(json) },
	{ 0, "role", "ROLE", "key add: admin, user (the default) or read-only", OPTION_TEXT, AT(role) },
	{ 0, "owner", "NAME", "key add: whose sandboxes it sees (the key's own name)", OPTION_TEXT, AT(owner) },
	{ 0, "rate", "N", "key add: sandboxes a minute (600)", OPTION_TEXT, AT(rate) },
	{ 0, "memory", "SIZE", "key add: what all of its owner's sandboxes may use together", OPTION_TEXT, AT(memory) },
#undef AT
};

extern char **environ;

static void say_plain(const struct service_ready *ready, const char *key)
{
	printf("atoll: serving at %s\n", ready->url);
	if (key)
		printf("\n  export E2B_API_KEY=%s\n", key);
	else
		printf("\n  export E2B_API_KEY=…    # one that was made before, or: atoll serve key add NAME\n");
	printf("  export E2B_API_URL=%s\n  export E2B_SANDBOX_URL=%s\n\n", ready->url, ready->sandbox_url);
}

static void say_json(const struct service_ready *ready, const char *key)
{
	cleanup_buf struct buf out;
	struct json json;

	buf_init(&out, 4096);
	json_init(&json, &out);
	json_object_begin(&json, NULL);
	json_string(&json, "url", ready->url);
	json_string(&json, "sandbox_url", ready->sandbox_url);
	json_string(&json, "domain", ready->domain);
	if (key)
		json_string(&json, "key", key);
	json_object_end(&json);
	printf("%s\n", buf_text(&out));
}

static void say_ready(void *context, const struct service_ready *ready)
{
	struct serve_options *given = context;

	(given->json ? say_json : say_plain)(ready, given->first_key[0] ? given->first_key : NULL);
	explicit_bzero(given->first_key, sizeof given->first_key);
	fflush(stdout);
}

static int serve(struct serve_options *given, struct err *err)
{
	struct service_places places;
	struct settings settings;
	struct database *store = NULL;
	int listen_fds[LISTEN_MAX] = { FD_NONE, FD_NONE };
	struct service_given service = { .settings = &settings, .places = &places, .environment = environ,
					 .listen_fds = listen_fds };
	int r = settings_load(&settings, &given->settings, err);

	if (r == 0)
		r = listen_inherit(&settings, listen_fds, err);
	if (r >= 0)
		r = places_find(&places, environ, err);
	if (r == 0)
		r = database_open(places.store, &store, err);
	service.store = store;
	if (r == 0 && given->check) {
		r = service_check(&service, err);
		if (r == 0)
			printf(given->json ? "{\"ok\":true}\n" : "atoll: the service could begin\n");
	} else if (r == 0) {
		/* Not where it would stand in a journal. */
		r = given->json || isatty(STDOUT_FILENO) ?
			    key_make_first(store, settings.policy, given->first_key, err) : 0;
		if (r == 0)
			r = service_run(&service, say_ready, given, err);
	}
	database_close(store);
	return r;
}

static int run(int argc, char **argv, struct err *err)
{
	struct serve_options given = { 0 };
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r == 1)
		return options_print(options, ARRAY_SIZE(options), STDOUT_FILENO);
	if (r < 0)
		return r;
	if (rest == argc)
		return serve(&given, err);
	if (str_equal(argv[rest], "key"))
		return key_run(&given, argc - rest - 1, argv + rest + 1, err);
	err_set(err, ERR_USAGE, EINVAL, "serve", "there is no %s here", argv[rest]);
	err_hint(err, "write `atoll serve`, or `atoll serve key add|list|revoke`");
	return -EINVAL;
}

int main(int argc, char **argv)
{
	return program_main(argc, argv, fd_secure_standard, run);
}
