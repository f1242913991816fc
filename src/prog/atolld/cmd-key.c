/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/names.h"
#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "prog/atolld/serve.h"

extern char **environ;

enum { NS_PER_MS = 1000000, RATE_DEFAULT = 600, SANDBOXES_DEFAULT = 1000 };

static int fail_store(struct database *store, struct err *err)
{
	return err_set(err, ERR_STATE, EIO, "serve", "the database cannot be written: %s", database_problem(store));
}

/* Keeps the hash; the text is shown once. */
static int add(struct database *store, struct key_row *key, char out[CREDENTIAL_KEY_SIZE], struct err *err)
{
	struct hash hash;
	int r = credential_new_key(out);

	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "serve", "there is no randomness: %s", err_errno_name(-r));
	key->created_ms = clock_realtime_ns() / NS_PER_MS;
	(void)!str_format(key->shown, sizeof key->shown, "%.*s", CREDENTIAL_KEY_SHOWN, out);
	credential_hash(out, &hash);
	r = database_add_key(store, key, &hash);
	if (r == -EEXIST)
		err_set(err, ERR_USAGE, EEXIST, "serve", "there is a key %s already", key->name);
	else if (r < 0)
		fail_store(store, err);
	return r;
}

static int note_one(void *context, const struct key_row *key)
{
	*(bool *)context = true;
	return 0;
}

int key_make_first(struct database *store, const char *policy, char out[CREDENTIAL_KEY_SIZE], struct err *err)
{
	struct key_row key = { .name = "first", .owner = "first", .role = KEY_ADMIN,
			       .sandboxes_max = SANDBOXES_DEFAULT, .creates_per_minute = RATE_DEFAULT,
			       .memory_mb_max = UINT64_MAX };
	bool is_there = false;
	int r = database_each_key(store, note_one, &is_there);

	out[0] = 0;
	if (r < 0)
		return fail_store(store, err);
	if (is_there)
		return 0;
	r = str_copy(key.policy, sizeof key.policy, policy);
	return r < 0 ? err_set(err, ERR_USAGE, -r, "serve", "the path of the policy is too long") :
		       add(store, &key, out, err);
}

static bool is_name(const char *name)
{
	return *name && strlen(name) < DATABASE_NAME_SIZE && name[0] != '-' &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-")];
}

static int fill(const struct serve_options *given, const char *name, struct key_row *key, struct err *err)
{
	const char *owner = given->owner ? given->owner : name;
	const char *policy = given->settings.policy ? given->settings.policy : "service-base";
	int role = given->role ? names_find(key_role_names, KEY_ROLE_COUNT, given->role) : KEY_USER;
	char shown[ERR_QUOTE_SIZE];
	uint64_t bytes = UINT64_MAX;

	*key = (struct key_row){ .sandboxes_max = SANDBOXES_DEFAULT, .creates_per_minute = RATE_DEFAULT,
				 .memory_mb_max = UINT64_MAX };
	if (!is_name(name) || !is_name(owner)) {
		err_set(err, ERR_USAGE, EINVAL, "serve", "%s cannot be the name of a key or owner",
			err_quote(shown, is_name(name) ? owner : name));
		err_hint(err, "1 to 64 letters, digits, '.', '_', '@' and '-'");
		return -EINVAL;
	}
	if (role < 0)
		return err_set(err, ERR_USAGE, EINVAL, "serve", "--role: admin, user or read-only");
	key->role = (enum key_role)role;
	if (given->rate && (num_parse_count(given->rate, &key->creates_per_minute) < 0))
		return err_set(err, ERR_USAGE, EINVAL, "serve", "--rate: write a number of sandboxes a minute");
	if (given->memory && num_parse_size(given->memory, &bytes) < 0)
		return err_set(err, ERR_USAGE, EINVAL, "serve", "--memory: write a size, such as 16GiB");
	key->memory_mb_max = bytes == UINT64_MAX ? UINT64_MAX : bytes >> 20;
	if (given->settings.sandboxes && num_parse_count(given->settings.sandboxes, &key->sandboxes_max) < 0)
		return err_set(err, ERR_USAGE, EINVAL, "serve", "--sandboxes: write a number");
	if (strchr(policy, '/') && policy[0] != '/')
		return err_set(err, ERR_USAGE, EINVAL, "serve", "--policy: the name of a policy, or an absolute path");
	if (str_copy(key->name, sizeof key->name, name) < 0 || str_copy(key->owner, sizeof key->owner, owner) < 0 ||
	    str_copy(key->policy, sizeof key->policy, policy) < 0)
		return err_set(err, ERR_USAGE, ENAMETOOLONG, "serve", "the path of the policy is too long");
	return 0;
}

static int add_key(const struct serve_options *given, struct database *store, const char *name, struct err *err)
{
	char text[CREDENTIAL_KEY_SIZE];
	struct key_row key;
	int r = name ? fill(given, name, &key, err) :
		       err_set(err, ERR_USAGE, EINVAL, "serve", "name the key: atoll serve key add NAME");

	if (r == 0)
		r = add(store, &key, text, err);
	if (r < 0)
		return r;
	if (given->json)
		printf("{\"name\":\"%s\",\"key\":\"%s\"}\n", key.name, text);
	else
		printf("%s\n", text);
	explicit_bzero(text, sizeof text);
	return 0;
}

static int revoke_key(struct database *store, const char *name, struct err *err)
{
	int r = name ? database_revoke_key(store, name) :
		       err_set(err, ERR_USAGE, EINVAL, "serve", "name the key: atoll serve key revoke NAME");

	if (r == 0 || (r < 0 && !name)) {
		if (name)
			err_set(err, ERR_USAGE, ENOENT, "serve", "there is no key %s that holds", name);
		return -ENOENT;
	}
	return r < 0 ? fail_store(store, err) : 0;
}

static int print_plain(void *context, const struct key_row *key)
{
	char when[CLOCK_RFC3339_SIZE];

	clock_format_rfc3339(key->created_ms * NS_PER_MS, when);
	printf("%-20s  %-20s  %-9s  %s…  %.19sZ  %s%s\n", key->name, key->owner, key_role_names[key->role], key->shown,
	       when, key->policy, key->is_revoked ? "  revoked" : "");
	return 0;
}

static int print_json(void *context, const struct key_row *key)
{
	struct json *json = context;

	json_object_begin(json, NULL);
	json_string(json, "name", key->name);
	json_string(json, "owner", key->owner);
	json_string(json, "role", key_role_names[key->role]);
	json_string(json, "shown", key->shown);
	json_string(json, "policy", key->policy);
	json_u64(json, "sandboxes", key->sandboxes_max);
	json_u64(json, "creates_per_minute", key->creates_per_minute);
	json_u64(json, "created_ms", key->created_ms);
	json_bool(json, "revoked", key->is_revoked);
	json_object_end(json);
	return 0;
}

static int list_keys(const struct serve_options *given, struct database *store, struct err *err)
{
	cleanup_buf struct buf out;
	struct json json;
	int r;

	buf_init(&out, 16 << 20);
	json_init(&json, &out);
	json_array_begin(&json, NULL);
	r = given->json ? database_each_key(store, print_json, &json) : database_each_key(store, print_plain, NULL);
	json_array_end(&json);
	if (r == 0 && given->json)
		printf("%s\n", buf_text(&out));
	return r < 0 ? fail_store(store, err) : 0;
}

int key_run(const struct serve_options *given, int argc, char **argv, struct err *err)
{
	const char *verb = argc > 0 ? argv[0] : "", *name = argc > 1 ? argv[1] : NULL;
	struct service_places places;
	struct database *store = NULL;
	int r = places_find(&places, environ, err);

	if (r == 0)
		r = database_open(places.store, &store, err);
	if (r == 0 && str_equal(verb, "add"))
		r = add_key(given, store, name, err);
	else if (r == 0 && str_equal(verb, "list"))
		r = list_keys(given, store, err);
	else if (r == 0 && str_equal(verb, "revoke"))
		r = revoke_key(store, name, err);
	else if (r == 0) {
		r = err_set(err, ERR_USAGE, EINVAL, "serve", "there is no key verb \"%s\"", verb);
		err_hint(err, "add NAME, list or revoke NAME");
	}
	database_close(store);
	return r;
}
