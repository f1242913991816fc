/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/store/settings.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "base/str.h"
#include "lang/yaml/node.h"
#include "os/fd.h"

enum { FILE_MAX = 64 << 10, PORT_MAX = 65535, SANDBOXES_MAX = 100000, CONNECTIONS_MAX = 65535, POOL_MAX = 256,
       KEPT_MAX = 1000000, READY_MAX_S = 3600 };

/* One setting: where its text goes, or who reads it. */
typedef int set_text(struct settings *settings, const char *text, struct err *err);

static int fail(struct err *err, const char *name, const char *text, const char *wanted)
{
	char shown[ERR_QUOTE_SIZE];

	return err_set(err, ERR_USAGE, EINVAL, "serve", "%s %s: %s", name, err_quote(shown, text), wanted);
}

bool settings_is_loopback(const char *address)
{
	uint8_t bytes[16];
	static const uint8_t last[16] = { [15] = 1 };

	if (inet_pton(AF_INET, address, bytes) == 1)
		return bytes[0] == 127;
	return inet_pton(AF_INET6, address, bytes) == 1 && memcmp(bytes, last, sizeof last) == 0;
}

/* "ADDRESS:PORT", "[ADDRESS]:PORT", "ADDRESS", ":PORT" or "PORT". */
static int set_listen(struct settings *settings, const char *text, struct err *err)
{
	static const char wanted[] = "write ADDRESS:PORT, such as 127.0.0.1:49982, or [::1]:49982";
	const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
	size_t size = colon ? (size_t)(colon - text) : 0;
	uint8_t bytes[16];
	uint64_t number;

	if (text[0] == '[' && size > 2 && text[size - 1] == ']') {
		text++;
		size -= 2;
	}
	if (num_parse_u64(port, &number) < 0 || number > PORT_MAX)
		return fail(err, "listen", text, wanted);
	settings->port = (uint16_t)number;
	if (!size)
		return 0;
	if (str_format(settings->address, sizeof settings->address, "%.*s", (int)size, text) < 0 ||
	    (inet_pton(AF_INET, settings->address, bytes) != 1 && inet_pton(AF_INET6, settings->address, bytes) != 1))
		return fail(err, "listen", text, wanted);
	return 0;
}

static int set_domain(struct settings *settings, const char *text, struct err *err)
{
	if (!*text || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.:") != strlen(text) ||
	    str_copy(settings->domain, sizeof settings->domain, text) < 0)
		return fail(err, "domain", text, "write a domain in small letters, with :PORT where clients need it");
	return 0;
}

static int set_path(char out[PATH_MAX], const char *name, const char *text, struct err *err)
{
	if (text[0] != '/' || str_copy(out, PATH_MAX, text) < 0)
		return fail(err, name, text, "write an absolute path");
	return 0;
}

static int set_certificate(struct settings *settings, const char *text, struct err *err)
{
	return set_path(settings->tls_cert, "tls-cert", text, err);
}

static int set_key(struct settings *settings, const char *text, struct err *err)
{
	return set_path(settings->tls_key, "tls-key", text, err);
}

static int set_policy(struct settings *settings, const char *text, struct err *err)
{
	if (!*text || (strchr(text, '/') && text[0] != '/') ||
	    str_copy(settings->policy, sizeof settings->policy, text) < 0)
		return fail(err, "policy", text, "write the name of a policy, or the absolute path of its file");
	return 0;
}

static int set_beyond(struct settings *settings, const char *text, struct err *err)
{
	if (!str_equal(text, "true") && !str_equal(text, "false"))
		return fail(err, "beyond_loopback", text, "write true or false");
	settings->beyond_loopback = str_equal(text, "true");
	return 0;
}

static int set_sandboxes(struct settings *settings, const char *text, struct err *err)
{
	if (num_parse_count(text, &settings->sandboxes_max) < 0 || !settings->sandboxes_max ||
	    settings->sandboxes_max > SANDBOXES_MAX)
		return fail(err, "sandboxes", text, "write a number from 1 to 100000");
	return 0;
}

static int set_connections(struct settings *settings, const char *text, struct err *err)
{
	uint64_t number;

	if (num_parse_count(text, &number) < 0 || !number || number > CONNECTIONS_MAX)
		return fail(err, "connections", text, "write a number from 1 to 65535");
	settings->connections_max = (uint32_t)number;
	return 0;
}

static int set_pool(struct settings *settings, const char *text, struct err *err)
{
	if (num_parse_count(text, &settings->pool_max) < 0 || settings->pool_max > POOL_MAX)
		return fail(err, "pool", text, "write a number from 0 to 256");
	return 0;
}

static int set_snapshots(struct settings *settings, const char *text, struct err *err)
{
	if (num_parse_count(text, &settings->snapshots_max) < 0 || settings->snapshots_max > KEPT_MAX)
		return fail(err, "snapshots", text, "write a number from 0 to 1000000");
	return 0;
}

static int set_ready(struct settings *settings, const char *text, struct err *err)
{
	if (num_parse_count(text, &settings->ready_s) < 0 || !settings->ready_s || settings->ready_s > READY_MAX_S)
		return fail(err, "ready", text, "write a number of seconds from 1 to 3600");
	return 0;
}

static int set_pressure(struct settings *settings, const char *text, struct err *err)
{
	if (num_parse_count(text, &settings->pressure_max) < 0 || settings->pressure_max > 100)
		return fail(err, "pressure", text, "write a percentage from 0 to 100");
	return 0;
}

static int set_kept(struct settings *settings, const char *text, struct err *err)
{
	if (num_parse_count(text, &settings->kept_max) < 0 || settings->kept_max > KEPT_MAX)
		return fail(err, "kept", text, "write a number from 0 to 1000000");
	return 0;
}

static int set_disk(struct settings *settings, const char *text, struct err *err)
{
	if (num_parse_size(text, &settings->disk_min) < 0 || settings->disk_min == UINT64_MAX)
		return fail(err, "disk", text, "write a size, such as 64MiB, or 0");
	return 0;
}

static int set_retain(struct settings *settings, const char *text, struct err *err)
{
	if (num_parse_duration(text, &settings->retain_ms) < 0)
		return fail(err, "retain", text, "write a duration, such as 1h or 7d, or unlimited");
	return 0;
}

static int set_host(struct settings *settings, const char *text, struct err *err)
{
	if (settings->host_count == SETTINGS_NAMES_MAX)
		return fail(err, "hosts", text, "that are too many names");
	if (!*text || strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(text) ||
	    str_copy(settings->hosts[settings->host_count], SETTINGS_HOST_MAX, text) < 0)
		return fail(err, "hosts", text, "write a name in small letters, without a port");
	settings->host_count++;
	return 0;
}

static int set_preload(struct settings *settings, const char *text, struct err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

	if (settings->preload_count == SETTINGS_MODULES_MAX)
		return fail(err, "preload", text, "that are too many modules");
	if (!*text || strspn(text, letters) != strlen(text) ||
	    str_copy(settings->preload[settings->preload_count], SETTINGS_MODULE_SIZE, text) < 0)
		return fail(err, "preload", text, "write the name of a module of Python");
	settings->preload_count++;
	return 0;
}

static const struct setting {
	const char *name;
	set_text *set;
	bool is_list;
} rows[] = {
	{ "listen", set_listen, false }, { "domain", set_domain, false }, { "policy", set_policy, false },
	{ "tls_cert", set_certificate, false }, { "tls_key", set_key, false }, { "hosts", set_host, true },
	{ "beyond_loopback", set_beyond, false }, { "sandboxes", set_sandboxes, false },
	{ "connections", set_connections, false }, { "pool", set_pool, false }, { "kept", set_kept, false },
	{ "preload", set_preload, true }, { "snapshots", set_snapshots, false }, { "pressure", set_pressure, false },
	{ "disk", set_disk, false }, { "retain", set_retain, false }, { "ready", set_ready, false },
};

/* ---- the file ---- */

static int at_line(const struct node *node, struct err *err)
{
	char message[ERR_MESSAGE_SIZE];

	if (str_format(message, sizeof message, "%s:%u: %s", node->place.file, node->place.line, err->message) == 0)
		(void)!str_copy(err->message, sizeof err->message, message);
	return -EINVAL;
}

static int set_from_node(struct settings *settings, const struct setting *row, const struct node *value,
			 struct err *err)
{
	const struct node *first = row->is_list ? value->first : value;
	bool is_right = row->is_list ? value->kind == NODE_LIST : value->kind == NODE_SCALAR;
	int r = 0;

	if (!is_right) {
		err_set(err, ERR_USAGE, EINVAL, "serve", "%s: write %s", row->name, row->is_list ? "a list" : "a text");
		return at_line(value, err);
	}
	for (const struct node *node = first; r == 0 && node; node = row->is_list ? node->next : NULL) {
		r = node->kind == NODE_SCALAR ? row->set(settings, node->text, err) :
						fail(err, row->name, "", "write a text");
		if (r < 0)
			return at_line(node, err);
	}
	return r;
}

static const struct setting *find_row(const struct node *key, struct err *err)
{
	const char *names[ARRAY_SIZE(rows)], *nearest;
	char shown[ERR_QUOTE_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		names[i] = rows[i].name;
		if (str_equal(rows[i].name, key->text))
			return &rows[i];
	}
	nearest = names_nearest(names, ARRAY_SIZE(rows), key->text);
	err_set(err, ERR_USAGE, EINVAL, "serve", "there is no setting %s", err_quote(shown, key->text));
	if (nearest)
		err_hint(err, "did you mean %s?", nearest);
	(void)!at_line(key, err);
	return NULL;
}

static int read_tree(struct settings *settings, const struct node *root, const char *path, struct err *err)
{
	int r = 0;

	if (root->kind != NODE_MAP)
		return err_set(err, ERR_USAGE, EINVAL, "serve", "%s: write one mapping: `listen: …`", path);
	for (const struct node *key = root->first; r == 0 && key; key = key->next) {
		const struct setting *row = find_row(key, err);

		r = row ? set_from_node(settings, row, key->value, err) : -EINVAL;
	}
	return r;
}

static int read_file(struct settings *settings, const char *path, struct err *err)
{
	cleanup_arena struct arena arena = { 0 };
	struct diags *diags = calloc(1, sizeof *diags);
	cleanup_free char *text = NULL;
	const struct node *root;
	size_t size;
	int r = diags ? fd_read_file_at(AT_FDCWD, path, FILE_MAX, &text, &size) : -ENOMEM;

	if (r < 0) {
		free(diags);
		return err_set(err, ERR_USAGE, -r, "serve", "%s cannot be read: %s", path, err_errno_name(-r));
	}
	diags->arena = &arena;
	root = node_parse(diags, path, text, size);
	if (root)
		r = read_tree(settings, root, path, err);
	else
		r = err_set(err, ERR_USAGE, EINVAL, "serve", "%s:%u: %s", path, diags->items[0].place.line,
			    diags->items[0].message ? diags->items[0].message : "it is empty");
	free(diags);
	return r;
}

/* ---- the whole ---- */

int settings_check(const struct settings *settings, struct err *err)
{
	if (!settings->tls_cert[0] != !settings->tls_key[0]) {
		err_set(err, ERR_USAGE, EINVAL, "serve", "TLS needs both a certificate and its key");
		err_hint(err, "name them with --tls-cert and --tls-key");
		return -EINVAL;
	}
	if (settings_is_loopback(settings->address) || settings->tls_cert[0] || settings->beyond_loopback)
		return 0;
	err_set(err, ERR_USAGE, EINVAL, "serve",
	"%s can be reached from other machines, and without TLS keys and data go "
		"in the clear", settings->address);
	err_hint(err, "name --tls-cert and --tls-key, or, behind a proxy that has TLS, add --beyond-loopback");
	return -EINVAL;
}

int settings_load(struct settings *ret_settings, const struct settings_options *options, struct err *err)
{
	const struct {
		const char *text;
		set_text *set;
	} given[] = {
		{ options->listen, set_listen }, { options->domain, set_domain }, { options->policy, set_policy },
		{ options->tls_cert, set_certificate }, { options->tls_key, set_key },
		{ options->sandboxes, set_sandboxes }, { options->connections, set_connections },
		{ options->pool, set_pool },
	};
	int r = 0;

	*ret_settings = (struct settings){
		.address = "127.0.0.1", .port = SETTINGS_PORT, .policy = "service-base", .sandboxes_max = 4000,
		.connections_max = 8192, .pool_max = 8, .kept_max = 1000,
		.disk_min = 64 << 20, .retain_ms = 3600000, .snapshots_max = 1000, .pressure_max = 20,
		.ready_s = 60,
	};
	if (options->config)
		r = read_file(ret_settings, options->config, err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(given); i++)
		if (given[i].text)
			r = given[i].set(ret_settings, given[i].text, err);
	for (size_t i = 0; r == 0 && i < options->host.count; i++)
		r = set_host(ret_settings, options->host.values[i], err);
	ret_settings->beyond_loopback |= options->beyond_loopback;
	return r < 0 ? r : settings_check(ret_settings, err);
}
