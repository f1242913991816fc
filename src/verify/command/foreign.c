/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/foreign.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "verify/command/effect.h"
#include "verify/model/words.h"

enum { NAME_MAX_SIZE = 64, ARGUMENT_MAX = 4096, NESTED_CALL_MAX = 200 };

enum call_kind { CALL_SHELL, CALL_EVALUATE, CALL_CONNECT, CALL_LISTEN, CALL_FETCH, CALL_OPEN, CALL_READ, CALL_WRITE,
		 CALL_REMOVE, CALL_REMOVE_ALL, CALL_SEND };

/* By the whole name, or by what stands behind its last ".", ":" or "->"; in order. */
static const struct call_name {
	const char *name;
	enum call_kind kind;
} names[] = {
	{ "Dir.rmdir", CALL_REMOVE }, { "File.delete", CALL_REMOVE }, { "File.open", CALL_OPEN },
	{ "File.read", CALL_READ }, { "File.readlines", CALL_READ }, { "File.unlink", CALL_REMOVE },
	{ "File.write", CALL_WRITE }, { "IO.popen", CALL_SHELL }, { "IO.read", CALL_READ },
	{ "IO.write", CALL_WRITE }, { "Net::HTTP.get", CALL_FETCH }, { "PeerAddr", CALL_CONNECT },
	{ "PeerHost", CALL_CONNECT }, { "Process.new", CALL_SHELL }, { "Process.spawn", CALL_SHELL },
	{ "ProcessBuilder", CALL_SHELL }, { "Socket", CALL_CONNECT }, { "Socket.tcp", CALL_CONNECT },
	{ "Sockets.connect", CALL_CONNECT }, { "System.cmd", CALL_SHELL }, { "TCPServer", CALL_LISTEN },
	{ "TCPServer.new", CALL_LISTEN }, { "TCPServer.open", CALL_LISTEN }, { "TCPSocket.new", CALL_CONNECT },
	{ "TCPSocket.open", CALL_CONNECT }, { "URI.open", CALL_FETCH }, { "URI.parse", CALL_FETCH },
	{ "bind", CALL_LISTEN },
	{ "capture2", CALL_SHELL }, { "capture2e", CALL_SHELL }, { "capture3", CALL_SHELL },
	{ "class_eval", CALL_EVALUATE }, { "connect", CALL_CONNECT }, { "create_function", CALL_EVALUATE },
	{ "create_listener", CALL_LISTEN }, { "curl_init", CALL_FETCH }, { "eval", CALL_EVALUATE },
	{ "exec", CALL_SHELL }, { "execl", CALL_SHELL }, { "execlp", CALL_SHELL }, { "execute", CALL_SHELL },
	{ "execv", CALL_SHELL }, { "file_get_contents", CALL_READ }, { "file_put_contents", CALL_WRITE },
	{ "fopen", CALL_OPEN }, { "fsockopen", CALL_CONNECT }, { "fwrite", CALL_SEND },
	{ "gen_tcp.connect", CALL_CONNECT }, { "getstore", CALL_FETCH }, { "instance_eval", CALL_EVALUATE },
	{ "io.open", CALL_OPEN }, { "io.popen", CALL_SHELL }, { "loadstring", CALL_EVALUATE }, { "open", CALL_OPEN },
	{ "os.execute", CALL_SHELL }, { "os.remove", CALL_REMOVE }, { "passthru", CALL_SHELL },
	{ "pcntl_exec", CALL_SHELL }, { "pfsockopen", CALL_CONNECT }, { "popen", CALL_SHELL },
	{ "popen3", CALL_SHELL }, { "print", CALL_SEND }, { "printf", CALL_SEND }, { "proc_open", CALL_SHELL },
	{ "puts", CALL_SEND }, { "readfile", CALL_READ }, { "remove_tree", CALL_REMOVE_ALL },
	{ "rm_f", CALL_REMOVE }, { "rm_r", CALL_REMOVE_ALL }, { "rm_rf", CALL_REMOVE_ALL },
	{ "rmtree", CALL_REMOVE_ALL }, { "send", CALL_SEND }, { "shell_exec", CALL_SHELL },
	{ "socket", CALL_CONNECT }, { "socketConnection", CALL_CONNECT }, { "socket_accept", CALL_LISTEN },
	{ "socket_bind", CALL_LISTEN }, { "socket_connect", CALL_CONNECT }, { "socket_create", CALL_CONNECT },
	{ "socket_write", CALL_SEND }, { "spawn", CALL_SHELL }, { "stream_socket_client", CALL_CONNECT },
	{ "stream_socket_server", CALL_LISTEN }, { "system", CALL_SHELL }, { "system2", CALL_SHELL },
	{ "syswrite", CALL_SEND }, { "unlink", CALL_REMOVE }, { "write", CALL_SEND },
};

/* A text that is gone through. */
struct scan {
	struct walk *walk;
	const char *at, *end;
	uint32_t connection; /* the last one, or OPERATION_NONE */
	uint32_t deed;       /* what was run last of what came from it */
	const char *waiting; /* where something is run that is not known yet: eval(file_get_contents(…)) */
	struct word shell;   /* a shell that was started before there was a connection; size 0: none */
};

static struct span span_at(const struct scan *scan, const char *from, const char *to)
{
	return walk_span_of(scan->walk, (uint32_t)(from - scan->walk->text), (uint32_t)(to - scan->walk->text));
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static const struct call_name *find_name(const char *name)
{
	size_t low = 0, high = ARRAY_SIZE(names);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, names[middle].name);

		if (!order)
			return &names[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/* The dotted name at the place: TCPSocket.new, tcp:connect, IO::Socket::INET->new. Goes behind it. */
static const struct call_name *read_name(struct scan *scan)
{
	char name[NAME_MAX_SIZE];
	size_t size = 0, last = 0;
	const struct call_name *found;

	while (scan->at < scan->end) {
		const char *at = scan->at;
		size_t joint = is_name(*at)					 ? 0
			       : strchr(".:", *at) && at[1] && is_name(at[1])	 ? 1
			       : strncmp(at, "::", 2) == 0 && is_name(at[2])	 ? 2
			       : strncmp(at, "->", 2) == 0 && is_name(at[2])	 ? 2
										 : SIZE_MAX;

		if (joint == SIZE_MAX || !*at)
			break;
		for (size_t i = 0; i < (joint ? joint : 1) && size < sizeof name - 1; i++)
			name[size++] = at[i];
		scan->at += joint ? joint : 1;
		last = joint ? size : last;
	}
	name[size] = '\0';
	found = find_name(name);
	return found || !last ? found : find_name(name + last);
}

static void skip_blanks(struct scan *scan, const char *also)
{
	while (scan->at < scan->end && *scan->at && (isspace((unsigned char)*scan->at) || strchr(also, *scan->at)))
		scan->at++;
}

/* What a text in quotes becomes: escapes taken out, "#{x}", "${x}" and "$x" as what is not known. */
static void put_quoted(struct scan *scan, struct word_draft *draft, char quote)
{
	for (; scan->at < scan->end && *scan->at != quote; scan->at++) {
		if (*scan->at == '\\' && scan->at + 1 < scan->end) {
			scan->at++;
			word_put(draft, *scan->at == 'n' ? "\n" : scan->at, 1);
		} else if (quote != '\'' && (*scan->at == '$' || (*scan->at == '#' && scan->at[1] == '{'))) {
			word_put_unknown(draft, NULL, 0);
			while (scan->at + 1 < scan->end && scan->at[1] != quote &&
			       (is_name(scan->at[1]) || strchr("{}", scan->at[1])))
				scan->at++;
		} else {
			word_put(draft, scan->at, 1);
		}
	}
	scan->at += scan->at < scan->end;
}

/* The first argument as far as it is known. */
static struct word read_argument(struct scan *scan)
{
	const char *begin = scan->at;
	struct word_draft draft;
	bool is_known = false;

	word_begin(&draft, scan->walk->operations->arena, span_at(scan, begin, begin));
	for (;;) {
		skip_blanks(scan, "(");
		if (scan->at >= scan->end || !strchr("\"'", *scan->at) || scan->at - begin > ARGUMENT_MAX)
			break;
		scan->at++;
		put_quoted(scan, &draft, scan->at[-1]);
		is_known = true;
		skip_blanks(scan, "");
		/* "a" . "b" */
		if (scan->at >= scan->end || !strchr(".+", *scan->at))
			return word_end(&draft);
		while (scan->at < scan->end && strchr(".+", *scan->at))
			scan->at++;
	}
	/* A name with dots or digits in it may be a host: socket h.test 80, as Tcl has it. */
	if (!is_known) {
		const char *word = scan->at;

		while (scan->at < scan->end && (is_name(*scan->at) || strchr(".-", *scan->at)))
			scan->at++;
		if (memchr(word, '.', (size_t)(scan->at - word)) && *scan->at == ' ' &&
		    isdigit((unsigned char)scan->at[1])) {
			word_put(&draft, word, (size_t)(scan->at - word));
			return word_end(&draft);
		}
		scan->at = word;
	}
	word_put_unknown(&draft, NULL, 0);
	return word_end(&draft);
}

static bool is_unknown(const struct word *word)
{
	return word->size == 1 && word->text[0] == WORD_UNKNOWN;
}

static bool is_address(const struct word *word)
{
	return strncmp(word->text, "http://", 7) == 0 || strncmp(word->text, "https://", 8) == 0;
}

/* What came over the connection is run, and what comes of it is sent back where something is sent. */
static void run_unknown(struct scan *scan, const struct word *code)
{
	if (scan->connection == OPERATION_NONE)
		return;
	scan->deed = walk_add_word(scan->walk, OP_EVALUATE, code->span, code);
	operations_add_flow(scan->walk->operations, scan->connection, scan->deed);
}

static void run_shell(struct scan *scan, const struct word *code);

static void connect_to(struct scan *scan, const struct word *host, uint32_t traits)
{
	struct word shell = scan->shell;

	scan->connection = walk_add_word(scan->walk, OP_NETWORK, host->span, host);
	operations_add_traits(scan->walk->operations, scan->connection, traits);
	if (scan->waiting && scan->at - scan->waiting < NESTED_CALL_MAX) {
		struct word code = word_unknown(scan->walk->operations->arena, host->span, 0);

		run_unknown(scan, &code);
	}
	scan->waiting = NULL;
	/* new ProcessBuilder("sh"), then new Socket(host, port): what joins them comes later. */
	scan->shell.size = 0;
	if (shell.size)
		run_shell(scan, &shell);
}

static bool is_shell_alone(const struct word *code)
{
	return word_is_exact(code) && !strchr(code->text, ' ') &&
	       language_of_interpreter(code->text) == LANGUAGE_SHELL;
}

static void run_shell(struct scan *scan, const struct word *code)
{
	struct nested nested = { .language = LANGUAGE_SHELL, .code = code, .parent = scan->walk->parent };

	/* Which program that is is not known. */
	if (code->text[0] == WORD_UNKNOWN) {
		run_unknown(scan, code);
		return;
	}
	if (scan->connection != OPERATION_NONE)
		origins_add(&nested.input, scan->connection);
	else if (is_shell_alone(code))
		scan->shell = *code;
	walk_nested(scan->walk, &nested);
}

static void touch_file(struct scan *scan, enum operation_kind kind, const struct word *path, uint32_t traits)
{
	struct word word = effect_path(scan->walk, path);

	if (!is_unknown(path))
		operations_add_traits(scan->walk->operations, walk_add_word(scan->walk, kind, path->span, &word),
				      traits);
}

/* open(F, ">x"), io.open("x", "w"), open("x", "r"), open("cmd |"): the mode stands in the path, or behind it. */
static void open_file(struct scan *scan, const struct word *path)
{
	const char *behind = scan->at, *text = path->text;
	bool writes = strchr("+>|", *text) && *text;
	struct word rest = *path;

	if (is_address(path)) {
		connect_to(scan, path, TRAIT_FETCHES);
		return;
	}
	while (behind < scan->end && (isspace((unsigned char)*behind) || strchr(",\"'", *behind)))
		behind++;
	writes |= behind < scan->end && behind > scan->at && strchr("wa>", *behind) && !is_name(behind[1]);
	text += strspn(text, "<>+| ");
	rest.size -= (uint32_t)(text - path->text);
	rest.text = text;
	/* ">&S" is a connection or another stream. */
	if (*text == '&')
		return;
	/* open(my $f, ">", "x") */
	if ((!rest.size || *text == ':') && path->size && strchr("<>+|-", path->text[0])) {
		skip_blanks(scan, ",");
		rest = read_argument(scan);
		touch_file(scan, writes ? OP_WRITE : OP_READ, &rest, writes ? TRAIT_TRUNCATES : 0);
		return;
	}
	if (path->text[0] == '|' || (path->size && path->text[path->size - 1] == '|'))
		run_shell(scan, &rest);
	else if (rest.size)
		touch_file(scan, writes ? OP_WRITE : OP_READ, &rest, writes ? TRAIT_TRUNCATES : 0);
}

static void send_back(struct scan *scan)
{
	if (scan->connection == OPERATION_NONE || scan->deed == OPERATION_NONE)
		return;
	operations_add_traits(scan->walk->operations, scan->connection, TRAIT_SENDS);
	operations_add_flow(scan->walk->operations, scan->deed, scan->connection);
}

static void do_call(struct scan *scan, enum call_kind kind, const struct word *argument)
{
	switch (kind) {
	case CALL_SHELL: run_shell(scan, argument); break;
	case CALL_EVALUATE:
		if (!word_is_exact(argument))
			run_unknown(scan, argument);
		break;
	case CALL_CONNECT: connect_to(scan, argument, 0); break;
	case CALL_LISTEN: connect_to(scan, argument, TRAIT_LISTENS); break;
	case CALL_FETCH:
		if (is_address(argument))
			connect_to(scan, argument, TRAIT_FETCHES);
		break;
	case CALL_OPEN: open_file(scan, argument); break;
	case CALL_READ:
		if (is_address(argument))
			connect_to(scan, argument, TRAIT_FETCHES);
		else
			touch_file(scan, OP_READ, argument, 0);
		break;
	case CALL_WRITE: touch_file(scan, OP_WRITE, argument, TRAIT_TRUNCATES); break;
	case CALL_REMOVE: touch_file(scan, OP_REMOVE, argument, 0); break;
	case CALL_REMOVE_ALL: touch_file(scan, OP_REMOVE, argument, TRAIT_RECURSIVE); break;
	case CALL_SEND: send_back(scan); break;
	}
}

static void read_call(struct scan *scan)
{
	const char *begin = scan->at;
	const struct call_name *name = read_name(scan);
	const char *behind = scan->at;
	/* f(x), (f x), [f x] */
	bool is_called = *behind == '(' || (begin > scan->walk->text && strchr("([", begin[-1]));
	bool is_opened = name && (name->kind == CALL_CONNECT || name->kind == CALL_LISTEN);
	struct word argument;

	/* "socket": a text that is a name calls nothing. */
	if (!name || (begin > scan->walk->text && strchr("\"'", begin[-1]) && begin[-1] == *behind))
		return;
	skip_blanks(scan, name->kind == CALL_SHELL || name->kind == CALL_OPEN ? "({[" : "({=>");
	/* open(my $f, "<", "x"), open(F, "x"): the handle stands first. */
	if (name->kind == CALL_OPEN && !strchr("\"'", *scan->at)) {
		size_t size = strcspn(scan->at, ",;\n)");

		if (scan->at + size < scan->end && scan->at[size] == ',')
			scan->at += size + 1;
	}
	argument = read_argument(scan);
	/* A method of something (x.exec(y)) and a word of a sentence have no text beside them: only what is certain. */
	if (is_unknown(&argument) && scan->connection == OPERATION_NONE &&
	    (name->kind == CALL_EVALUATE || name->kind == CALL_SHELL))
		scan->waiting = behind;
	if (is_unknown(&argument) && (is_opened ? !is_called : scan->connection == OPERATION_NONE))
		scan->at = behind;
	else
		do_call(scan, name->kind, &argument);
	if (scan->at < behind)
		scan->at = behind;
}

/* `command`, as perl, ruby, php and julia write it. */
static void read_backticks(struct scan *scan)
{
	const char *begin = ++scan->at;
	struct word_draft draft;
	struct word code;

	if (!memchr(begin, '`', (size_t)(scan->end - begin)))
		return;
	word_begin(&draft, scan->walk->operations->arena, span_at(scan, begin, begin));
	put_quoted(scan, &draft, '`');
	code = word_end(&draft);
	if (code.size)
		run_shell(scan, &code);
}

void walk_foreign(struct walk *walk, TSNode root)
{
	struct scan scan = { .walk = walk, .at = walk->text, .end = walk->text + walk->size,
			     .connection = OPERATION_NONE, .deed = OPERATION_NONE };

	while (scan.at < scan.end && !walk_is_over(walk)) {
		bool is_inside = scan.at > walk->text && (is_name(scan.at[-1]) || strchr("$@%", scan.at[-1]));

		if (is_name(*scan.at) && !is_inside)
			read_call(&scan);
		else if (*scan.at == '`')
			read_backticks(&scan);
		else
			scan.at++;
	}
}
