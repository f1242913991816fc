/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <idn2.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "base/url-path.h"
#include "lang/bind/bind.h"
#include "policy/decide-net.h"
#include "policy/glob.h"

/* The lists of rules: files, network, exec. Each item is a text, or a mapping that says more. */

/* The path of a rule in *ret_pattern; NULL where the text means nothing or is wrong (then it is said). */
static const char *resolve(struct binder *binder, const struct node *node, enum pattern_kind kind,
			   struct pattern *ret_pattern)
{
	const char *problem = pattern_resolve(binder->arena, &binder->scope, kind, node->text, ret_pattern);

	if (!problem && !ret_pattern->text && node->text[0] == '~' && !binder->is_shipped)
		problem = "\"~\" means nothing here: there is no home directory (HOME is not set)";
	if (problem)
		diag_add(binder->diags, node->place, "\"%.80s\": %s", node->text, problem);
	return problem ? NULL : ret_pattern->text;
}

static void bind_except(struct binder *binder, const struct key *key, const struct node *node)
{
	struct pattern pattern;
	const char *text = resolve(binder, node, PATTERN_BELOW_PROJECT, &pattern);

	vec_add_text(binder->arena, &binder->rule->except, text);
}

/* Of a list whose patterns hold anywhere. */
static void bind_except_anywhere(struct binder *binder, const struct key *key, const struct node *node)
{
	struct pattern pattern;
	const char *text = resolve(binder, node, PATTERN_ANYWHERE, &pattern);

	vec_add_text(binder->arena, &binder->rule->except, text);
}

static void bind_flag(struct binder *binder, const struct node *node, uint32_t *flags, uint32_t flag, bool on)
{
	if (node->is_quoted || (!str_equal(node->text, "true") && !str_equal(node->text, "false")))
		bind_expected(binder, node, "true or false");
	else if ((node->text[0] == 't') == on)
		*flags |= flag;
	else
		*flags &= ~flag;
}

static void bind_file_path(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_file *file = (struct draft_file *)binder->rule;
	struct pattern pattern;

	file->from.text = node->text;
	file->from.place = node->place;
	file->pattern = resolve(
		binder, node, file->class == FILE_MASK ? PATTERN_ANYWHERE : PATTERN_BELOW_PROJECT, &pattern);
	file->from.is_relative = pattern.is_relative;
	file->flags |= pattern.is_glob ? FILE_GLOB : 0;
}

static void bind_optional(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_flag(binder, node, &((struct draft_file *)binder->rule)->flags, FILE_OPTIONAL, true);
}

static void bind_exec_flag(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_flag(binder, node, &((struct draft_file *)binder->rule)->flags, FILE_NOEXEC, false);
}

static void bind_guard(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_file *file = (struct draft_file *)binder->rule;

	if (file->class != FILE_WRITE)
		diag_add(binder->diags, node->place,
			 "\"%s\" is about what is written in place: it stands under write alone", key->name);
	else
		bind_flag(binder, node, &file->flags, FILE_GUARDED, true);
}

static const struct key file_item_keys[] = {
	{ "path", KEY_SCALAR, bind_file_path },
	{ "except", KEY_SCALARS, bind_except },
	{ "optional", KEY_SCALAR, bind_optional },
	{ "exec", KEY_SCALAR, bind_exec_flag },
	{ "protect", KEY_SCALAR, bind_guard },
};

/* A mapping without its main key says nothing. */
static void require(struct binder *binder, const struct node *node, const char *what)
{
	if (!binder->rule->text[0] && node->kind == NODE_MAP)
		diag_add(binder->diags, node->place, "this rule has no \"%s\"", what);
}

static void bind_file(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_file *file = bind_add(binder, &binder->draft->files, sizeof *file, node);

	if (!file)
		return;
	file->class = (enum file_class)key->value;
	/* A shipped policy lists what many machines have: what this one has not is left out. */
	file->flags = binder->is_shipped ? FILE_OPTIONAL : 0;
	binder->rule = &file->from;
	bind_item(binder, file_item_keys, ARRAY_SIZE(file_item_keys), node);
	require(binder, node, "path");
}

static void bind_list_path(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_path *rule = (struct draft_path *)binder->rule;
	struct pattern pattern;

	rule->from.text = node->text;
	rule->from.place = node->place;
	rule->pattern = resolve(binder, node, PATTERN_ANYWHERE, &pattern);
	rule->from.is_relative = pattern.is_relative;
	rule->flags |= pattern.is_glob ? FILE_GLOB : 0;
}

static const struct key path_item_keys[] = {
	{ "path", KEY_SCALAR, bind_list_path },
	{ "except", KEY_SCALARS, bind_except_anywhere },
};

static void bind_path_rule(struct binder *binder, const struct key *key, const struct node *node,
			   const struct key *keys, size_t count)
{
	struct vec *vec = (struct vec *)((char *)binder->draft + key->value);
	struct draft_path *rule = bind_add(binder, vec, sizeof *rule, node);

	if (!rule)
		return;
	binder->rule = &rule->from;
	bind_item(binder, keys, count, node);
	require(binder, node, "path");
}

static void bind_path(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_path_rule(binder, key, node, path_item_keys, ARRAY_SIZE(path_item_keys));
}

/* A key with one word that it can be: it sets the flag in key->value. */
static void bind_word(struct binder *binder, const struct key *key, const struct node *node)
{
	static const struct {
		const char *word;
		uint32_t flag;
	} words[] = { { "git", PATH_GIT }, { "package.json", PATH_PACKAGE }, { "build", PATH_BUILD },
		    { "file", PATH_FILE } };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if ((uint32_t)key->value == words[i].flag) {
			if (str_equal(node->text, words[i].word))
				((struct draft_path *)binder->rule)->flags |= words[i].flag;
			else
				bind_expected(binder, node, words[i].word);
		}
}

enum { WHEN_MAX = 120 };

static void bind_when(struct binder *binder, const struct key *key, const struct node *node)
{
	const char *at = node->text;

	/* It is shown to people, in questions too: no text of a project's own may look like one of ours. */
	while (*at >= ' ' && *at <= '~')
		at++;
	if (*at || at == node->text || at - node->text > WHEN_MAX)
		bind_expected(binder, node, "one line of ASCII, of at most 120 characters");
	else
		((struct draft_path *)binder->rule)->when = node->text;
}

/* Where that can be read, for whoever changes the table. */
static void bind_source(struct binder *binder, const struct key *key, const struct node *node)
{
}

static const struct key protect_item_keys[] = {
	{ "path", KEY_SCALAR, bind_list_path },
	{ "except", KEY_SCALARS, bind_except_anywhere },
	{ "data", KEY_SCALAR, bind_word, .value = PATH_GIT },
	{ "content", KEY_SCALAR, bind_word, .value = PATH_PACKAGE },
	{ "names", KEY_SCALAR, bind_word, .value = PATH_FILE },
	{ "runs", KEY_SCALAR, bind_word, .value = PATH_BUILD },
	{ "when", KEY_SCALAR, bind_when },
	{ "source", KEY_SCALAR, bind_source },
};

static void bind_protect(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_path_rule(binder, key, node, protect_item_keys, ARRAY_SIZE(protect_item_keys));
}

const struct key files_keys[] = {
	{ "read", KEY_LIST, bind_file, .value = FILE_READ },
	{ "stage", KEY_LIST, bind_file, .value = FILE_STAGE },
	{ "write", KEY_LIST, bind_file, .value = FILE_WRITE },
	{ "scratch", KEY_LIST, bind_file, .value = FILE_SCRATCH },
	{ "mask", KEY_LIST, bind_file, .value = FILE_MASK },
	{ "ask", KEY_LIST, bind_path, .value = (int)offsetof(struct draft, asks) },
	{ "protect", KEY_LIST, bind_protect, .value = (int)offsetof(struct draft, protects) },
};
const size_t files_key_count = ARRAY_SIZE(files_keys);

static const char *host_problem(const char *text)
{
	if (strstr(text, "://") || strchr(text, '/'))
		return "this is a URL or a path; write the host alone";
	if (strchr(text, '@'))
		return "a host has no user name";
	if (strchr(text, ':'))
		return "a port goes into \"ports\", an IPv6 address into \"cidr\"";
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c >= 0x80)
			return "this is no international name (IDNA 2008); its xn-- form can be written instead";
	if (*text && text[strlen(text) - 1] == '.')
		return "write the name without the dot at its end";
	if (strchr(text, '*') && (!str_has_prefix(text, "*.") || strchr(text + 1, '*')))
		return "a star stands alone as the first label: *.example.org";
	return "this is no host name; an address goes into \"cidr\", such as 10.0.0.1/32";
}

static bool is_ascii(const char *text)
{
	while (*text && (unsigned char)*text < 0x80)
		text++;
	return !*text;
}

/*
 * As resolvers and TLS have it: an international name in its xn-- form, whichever way its letters are composed or in
 * what case (UTS 46, as browsers do it). What is no such name stays as it is, and is no valid host then.
 */
static char *host_to_ascii(struct arena *arena, const char *text)
{
	const char *prefix = str_has_prefix(text, "*.") ? "*." : "";
	/* Not IDN2_USE_STD3_ASCII_RULES: it drops what no host has, and "a/ü.org" would mean "aü.org". */
	int flags = IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL;
	char *ascii = NULL, *host;

	if (is_ascii(text) || idn2_to_ascii_8z(text + strlen(prefix), &ascii, flags) != IDN2_OK)
		return arena_text(arena, text);
	host = arena_format(arena, "%s%s", prefix, ascii);
	idn2_free(ascii);
	return host;
}

char *bind_host_name(struct arena *arena, const char *text)
{
	char *host = host_to_ascii(arena, text);

	for (char *c = host; c && *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return host;
}

static const char *resolve_host(struct binder *binder, const struct node *node)
{
	const char *host = bind_host_name(binder->arena, node->text);

	if (host && !net_host_is_valid(host)) {
		diag_add(binder->diags, node->place, "\"%.80s\": %s", node->text, host_problem(host));
		return NULL;
	}
	return host;
}

static void bind_host(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_net *net = (struct draft_net *)binder->rule;

	net->from.text = node->text;
	net->from.place = node->place;
	net->host = resolve_host(binder, node);
}

static void bind_cidr(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_net *net = (struct draft_net *)binder->rule;

	if (net->from.text[0])
		diag_add(binder->diags, node->place, "a rule has a \"host\" or a \"cidr\", not both");
	net->from.text = net->cidr = node->text;
	net->from.place = node->place;
	if (!net_cidr_is_valid(node->text))
		bind_expected(binder, node,
			      "addresses such as 10.0.0.0/8 or fd00::/8, without bits behind the prefix");
}

static void bind_port(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_net *net = (struct draft_net *)binder->rule;
	uint64_t value;
	uint16_t *port;

	if (num_parse_u64(node->text, &value) < 0 || value < 1 || value > 65535) {
		bind_expected(binder, node, "a port from 1 to 65535");
		return;
	}
	port = vec_add(binder->arena, &net->ports, sizeof *port);
	if (port)
		*port = (uint16_t)value;
}

static void bind_host_except(struct binder *binder, const struct key *key, const struct node *node)
{
	vec_add_text(binder->arena, &binder->rule->except, resolve_host(binder, node));
}

static void bind_method(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_http *http = (struct draft_http *)binder->rule;

	if (!node->text[0] || node->text[strspn(node->text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")])
		bind_expected(binder, node, "a method in capitals such as GET");
	else
		vec_add_text(binder->arena, &http->methods, node->text);
}

/* NULL, or what is wrong with a glob for paths of requests. */
static const char *http_path_problem(const char *text)
{
	if (text[0] != '/')
		return "a path of a request begins with /";
	for (const char *percent = strchr(text, '%'); percent; percent = strchr(percent + 1, '%'))
		if (url_escape_at(percent) < 0)
			return "a % begins an escape such as %2F; % itself is %25";
	return glob_problem(text);
}

/* Spelled as paths of requests are when they are judged. */
static void bind_http_path(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_http *http = (struct draft_http *)binder->rule;
	const char *problem = http_path_problem(node->text);
	char *path = arena_text_n(binder->arena, node->text, strlen(node->text));

	if (problem) {
		diag_add(binder->diags, node->place, "\"%.80s\": %s", node->text, problem);
	} else if (path) {
		(void)url_path_decode(path, URL_FREE | URL_DOT);
		vec_add_text(binder->arena, &http->paths, path);
	}
}

static const struct key http_keys[] = {
	{ "methods", KEY_SCALARS, bind_method },
	{ "paths", KEY_SCALARS, bind_http_path },
};

static void bind_http(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_net *net = (struct draft_net *)binder->rule;
	struct draft_http *http = vec_add(binder->arena, &net->http, sizeof *http);

	if (!http)
		return;
	http->from = (struct draft_rule){ .place = node->place, .text = "" };
	http->from.id = arena_format(binder->arena, "%s.http[%zu]", net->from.id, binder->index);
	binder->rule = &http->from;
	bind_map(binder, http_keys, ARRAY_SIZE(http_keys), node);
	binder->rule = &net->from;
}

static void bind_listed(struct binder *binder, const struct key *key, const struct node *node)
{
	bind_flag(binder, node, &((struct draft_net *)binder->rule)->is_listed, 1, true);
}

static const struct key net_item_keys[] = {
	{ "host", KEY_SCALAR, bind_host },
	{ "cidr", KEY_SCALAR, bind_cidr },
	{ "ports", KEY_SCALARS, bind_port },
	{ "http", KEY_LIST, bind_http },
	{ "inject", KEY_FREE, bind_inject },
	{ "answer", KEY_FREE, bind_answer },
	{ "except", KEY_SCALARS, bind_host_except },
	{ "limits", KEY_FREE, bind_rule_limits },
	{ "listed", KEY_SCALAR, bind_listed },
};

/* A simulated host needs a name, for TLS is answered by it, and something to say. */
static void check_simulate(struct binder *binder, const struct draft_net *net)
{
	const char *problem = NULL;

	if (net->verdict != VERDICT_SIMULATE)
		problem = net->answer ? "an \"answer\" goes with \"simulate\" only" : NULL;
	else if (net->cidr)
		problem = "what is simulated is a host by its name, not a \"cidr\"";
	else if (!net->answer)
		problem = "a rule that simulates needs an \"answer\", such as {status: 200, body: \"...\"}";
	if (problem)
		diag_add(binder->diags, net->answer ? net->answer->place : net->from.place, "\"%.80s\": %s",
			 net->from.text, problem);
}

static void bind_net(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_net *net = bind_add(binder, &binder->draft->network, sizeof *net, node);

	if (!net)
		return;
	net->verdict = (enum verdict)key->value;
	binder->rule = &net->from;
	bind_item(binder, net_item_keys, ARRAY_SIZE(net_item_keys), node);
	require(binder, node, "host");
	inject_check(binder, net);
	check_simulate(binder, net);
}

const struct key network_keys[] = {
	{ .kind = KEY_ROWS, .value = SCALAR_NETWORK_DEFAULT, .last = SCALAR_NETWORK_HOST },
	{ "allow", KEY_LIST, bind_net, .value = VERDICT_ALLOW },
	{ "simulate", KEY_LIST, bind_net, .value = VERDICT_SIMULATE },
	{ "ask", KEY_LIST, bind_net, .value = VERDICT_ASK },
	{ "deny", KEY_LIST, bind_net, .value = VERDICT_DENY },
	{ "limits", KEY_FREE, bind_limits },
	{ "publish", KEY_LIST, bind_publish },
	{ "host_ports", KEY_LIST, bind_host_port },
};
const size_t network_key_count = ARRAY_SIZE(network_keys);

static void bind_program(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_exec *exec = (struct draft_exec *)binder->rule;
	struct pattern pattern;

	exec->from.text = node->text;
	exec->from.place = node->place;
	if (!strchr(node->text, '/')) {
		diag_add(binder->diags, node->place,
			 "\"%.60s\": a program is named by its path, or by \"**/%.60s\" wherever it is",
			 node->text, node->text);
		return;
	}
	exec->program = resolve(binder, node, PATTERN_ANYWHERE, &pattern);
	exec->from.is_relative = pattern.is_relative;
	exec->flags = (pattern.is_glob ? FILE_GLOB : 0) | (binder->is_shipped ? FILE_OPTIONAL : 0);
}

static void bind_argument(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_exec *exec = (struct draft_exec *)binder->rule;
	const char *problem = glob_problem(node->text);

	if (problem)
		diag_add(binder->diags, node->place, "\"%.80s\": %s", node->text, problem);
	if (!exec->from.text[0])
		exec->from.text = node->text;
	vec_add_text(binder->arena, &exec->argv, node->text);
}

static void bind_program_except(struct binder *binder, const struct key *key, const struct node *node)
{
	struct pattern pattern;

	vec_add_text(binder->arena, &binder->rule->except, resolve(binder, node, PATTERN_ANYWHERE, &pattern));
}

static const struct key exec_item_keys[] = {
	{ "program", KEY_SCALAR, bind_program },
	{ "argv", KEY_SCALARS, bind_argument },
	{ "except", KEY_SCALARS, bind_program_except },
};

static void bind_exec(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_exec *exec = bind_add(binder, &binder->draft->exec, sizeof *exec, node);

	if (!exec)
		return;
	exec->verdict = (enum verdict)key->value;
	binder->rule = &exec->from;
	bind_item(binder, exec_item_keys, ARRAY_SIZE(exec_item_keys), node);
	require(binder, node, "program");
}

const struct key exec_keys[] = {
	{ .kind = KEY_ROWS, .value = SCALAR_EXEC_DEFAULT, .last = SCALAR_NAMESPACES },
	{ "deny", KEY_LIST, bind_exec, .value = VERDICT_DENY },
	{ "ask", KEY_LIST, bind_exec, .value = VERDICT_ASK },
	{ "allow", KEY_LIST, bind_exec, .value = VERDICT_ALLOW },
};
const size_t exec_key_count = ARRAY_SIZE(exec_keys);
