/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/call/access.h"

#include <string.h>

#include "base/str.h"
#include "os/clock.h"

enum { NS_PER_S = 1000000000, SIGNERS_MAX = 1024 };

static const char no_token[] = "an access token is needed (header X-Access-Token), or for files a signed URL";

/* What a key must be for an operation; operations that are not here only look. */
static enum key_role role_for(uint32_t operation)
{
	static const enum service_operation changing[] = {
		SERVICE_CREATE, SERVICE_CONNECT, SERVICE_KILL, SERVICE_TIMEOUT, SERVICE_PAUSE, SERVICE_FORK,
		SERVICE_SNAPSHOT, SERVICE_TEMPLATE_DELETE, SERVICE_NETWORK, SERVICE_VOLUME_CREATE,
		SERVICE_VOLUME_DELETE, SERVICE_SECRET_CREATE, SERVICE_SECRET_UPDATE, SERVICE_SECRET_DELETE,
		SERVICE_FUNCTION_DEPLOY, SERVICE_FUNCTION_COMMIT, SERVICE_FUNCTION_DELETE, SERVICE_FUNCTION_INVOKE,
		SERVICE_BUILD_REQUEST, SERVICE_BUILD_FILE, SERVICE_BUILD_START, SERVICE_TAGS_ADD, SERVICE_TAGS_REMOVE,
	};

	for (size_t i = 0; i < ARRAY_SIZE(changing); i++)
		if (operation == changing[i])
			return KEY_USER;
	return KEY_READ_ONLY;
}

bool access_sees(const struct caller *caller, const char *owner)
{
	return caller->has_key && (caller->key.role == KEY_ADMIN || str_equal(caller->key.owner, owner));
}

bool access_means(const struct caller *caller, const struct template_row *row, const char *text)
{
	bool is_own = caller->has_key && str_equal(caller->key.owner, row->owner);

	return (str_equal(row->id, text) && access_sees(caller, row->owner)) ||
	       (row->name[0] && str_equal(row->name, text) && is_own);
}

static bool check_key(struct call *call)
{
	const char *key = call_string(call, "key");
	struct hash hash;
	int r = 0;

	if (key) {
		credential_hash(key, &hash);
		r = database_find_key(call->daemon->store, &hash, &call->caller.key);
	}
	if (r < 0) {
		call_fail(call, 500, NULL, "the keys cannot be read: %s", database_problem(call->daemon->store));
		return false;
	}
	if (r == 0) {
		call_fail(call, 401, NULL, "%s",
			  key ? "this API key is not known here; make one with `atoll serve key add`" :
				"an API key is needed: header X-API-KEY");
		return false;
	}
	call->caller.has_key = true;
	if (call->caller.key.role >= role_for(call->message->operation))
		return true;
	call_fail(call, 403, NULL, "the key %s is read-only", call->caller.key.name);
	return false;
}

/* What the URL of a request says that it is signed for. False: nothing that this request may be. */
static bool read_url(const struct call *call, struct credential_url *ret_url)
{
	struct credential_url url = {
		.path = call_string(call, "signed"), .user = call_string(call, "signed_user"),
		.writes = call_number(call, "write", 0) != 0,
		.has_expiry = service_get(call->message, "expires") != NULL,
		.expires_s = call_number(call, "expires", 0),
	};
	const char *path = call_string(call, "path");

	/* A URL that names no path is for any file to be written, one that names it for that alone. */
	if (!url.path || !path || (*url.path ? !str_equal(url.path, path) : !url.writes))
		return false;
	/* The attributes of a file that it was signed for come with it. */
	if (call->message->operation == SERVICE_SETATTR)
		url.writes = true;
	url.user = url.user ? url.user : "";
	/* "" stands for the default user, whom no field names. */
	if (!str_equal(*url.user ? url.user : NULL, call_string(call, "user")))
		return false;
	*ret_url = url;
	return true;
}

/* The token of a sandbox, which is kept once it was needed: whoever tries signatures would pay with our time for it. */
static const char *token_of(struct sandbox *sandbox)
{
	if (!sandbox->token[0])
		credential_token(sandbox->daemon->secret, "envd", sandbox->id, sandbox->token);
	return sandbox->token;
}

/* The sandbox whose token signed a URL that names none: of the newest, so that a wrong one costs a bounded time. */
static const char *find_signer(const struct call *call)
{
	const char *given = call_string(call, "signature");
	struct credential_signing signing;
	struct credential_url url;
	struct hash signature;
	size_t left = SIGNERS_MAX;

	if (!given || call_string(call, "token") || credential_read_signature(given, &signature) < 0 ||
	    !read_url(call, &url))
		return NULL;
	credential_sign_begin(&signing, &url);
	for (struct sandbox *at = call->daemon->registry.newest; at && left; at = at->older) {
		if (!sandbox_is_there(at))
			continue;
		if (credential_is_signed(&signing, token_of(at), &signature))
			return at->id;
		left--;
	}
	return NULL;
}

static bool check_signature(struct call *call, const char *sandbox)
{
	const char *given = call_string(call, "signature");
	char token[CREDENTIAL_TOKEN_SIZE];
	struct credential_signing signing;
	struct credential_url url;
	struct hash signature;
	bool is_read = given && credential_read_signature(given, &signature) == 0 && read_url(call, &url);

	credential_token(call->daemon->secret, "envd", sandbox, token);
	if (is_read)
		credential_sign_begin(&signing, &url);
	if (!is_read || !credential_is_signed(&signing, token, &signature)) {
		call_fail(call, 401, NULL, "%s", no_token);
		return false;
	}
	/* The words of the clients' own server, which their users know. */
	if (url.has_expiry && url.expires_s < clock_realtime_ns() / NS_PER_S) {
		call_fail(call, 401, NULL, "signature is already expired");
		return false;
	}
	return true;
}

/* A token that is there must be right, whatever else is. */
static bool check_token(struct call *call, const char *sandbox)
{
	uint32_t credentials = service_rule(call->message->operation)->credentials;
	const char *given = call_string(call, "token");
	char token[CREDENTIAL_TOKEN_SIZE];

	if (!given && sandbox && credentials & SERVICE_BY_SIGNATURE)
		return check_signature(call, sandbox);
	if (sandbox)
		credential_token(call->daemon->secret, "envd", sandbox, token);
	if (sandbox && credential_is_equal(given, token))
		return true;
	call_fail(call, 401, NULL, "%s",
		  given ? "the access token is not that of this sandbox" :
		  !sandbox && call_string(call, "signature") ? "no sandbox that is here signed this URL" :
		  no_token);
	return false;
}

static bool find_sandbox(struct call *call, const char *id)
{
	uint32_t credentials = service_rule(call->message->operation)->credentials;
	struct sandbox *sandbox = id ? registry_find(&call->daemon->registry, id) : NULL;

	if (!id)
		return true;
	if (sandbox && !sandbox_is_there(sandbox))
		sandbox = NULL;
	if (credentials & SERVICE_BY_KEY) {
		if (!sandbox || !access_sees(&call->caller, sandbox->owner)) {
			call_fail_unknown(call);
			return false;
		}
	} else if (!sandbox) {
		call_fail(call, 502, NULL, "The sandbox was not found");
		return false;
	}
	call->sandbox = sandbox;
	return true;
}

bool access_check(struct call *call)
{
	uint32_t credentials = service_rule(call->message->operation)->credentials;
	const char *id = call_string(call, "sandbox");

	if (credentials & SERVICE_BY_KEY)
		return check_key(call) && find_sandbox(call, id);
	if (!id && credentials & SERVICE_BY_SIGNATURE)
		id = find_signer(call);
	/* Who has no token learns nothing of which sandboxes there are. */
	if (!(credentials & SERVICE_BY_NOTHING) && !check_token(call, id))
		return false;
	return find_sandbox(call, id);
}
