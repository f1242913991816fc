/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-request: runs inside a sandbox and asks, at /run/atoll/ask.sock, for what the policy does not give. A line of
 * JSON out, lines back whose first word is the verdict: it needs no parser, no library and no privilege.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/num.h"
#include "base/options.h"
#include "base/str.h"
#include "base/utf8.h"
#include "os/fd.h"

enum { EXIT_ALLOWED = 0, EXIT_DENIED = 1, EXIT_USAGE = 2, EXIT_UNANSWERED = 3 };
enum { CHECKPOINT_TEXT_MAX = 200, LINE_MAX_OUT = 16 << 10, LINE_MAX_IN = 64 << 10 };

struct settings {
	const char *reason, *wait;
	bool json, version;
};

static const struct option options[] = {
	{ 'r', "reason", "TEXT", "why it is needed: the person who is asked reads it", OPTION_TEXT,
	  offsetof(struct settings, reason) },
	{ 'w', "wait", "SECONDS", "how long to wait for the answer; 0: not at all", OPTION_TEXT,
	  offsetof(struct settings, wait) },
	{ 0, "json", NULL, "print the answers as they come, one JSON object a line", OPTION_FLAG,
	  offsetof(struct settings, json) },
	{ 'V', "version", NULL, "print the version", OPTION_FLAG, offsetof(struct settings, version) },
};

static const char usage[] =
	"usage: atoll-request [OPTIONS] file.read|file.write PATH\n"
	"       atoll-request [OPTIONS] net.connect HOST:PORT\n"
	"       atoll-request [OPTIONS] exec PROGRAM [ARG...]\n"
	"       atoll-request [OPTIONS] explain KIND SUBJECT\n"
	"       atoll-request [OPTIONS] wait NUMBER\n"
	"       atoll-request [OPTIONS] token [FILE]\n"
	"       atoll-request [OPTIONS] checkpoint [TEXT]\n"
	"       atoll-request [OPTIONS] status\n\n"
	"ask the person outside of this sandbox for something, or ask what the policy says about it\n\n";

static const char after[] =
	"\nexit status: 0 allowed, 1 denied, 2 wrong usage, 3 nobody answered (explain: a person would be asked)\n";

/* What is to be asked: a line that is being written. */
struct request {
	const struct settings *settings;
	struct json json;
	struct buf line;
	bool waits;          /* for a person */
};

static int fail(int status, const char *what, const char *why)
{
	fprintf(stderr, "atoll-request: %s: %s\n", what, why);
	return status;
}

static int print_help(void)
{
	if (fd_write_full(1, usage, sizeof usage - 1) < 0 || options_print(options, ARRAY_SIZE(options), 1) < 0 ||
	    fd_write_full(1, after, sizeof after - 1) < 0)
		return EXIT_UNANSWERED;
	return EXIT_ALLOWED;
}

/* ---- subjects, as this process means them ---- */

static int make_absolute(const char *path, char out[PATH_MAX])
{
	char base[PATH_MAX];

	if (path[0] == '/')
		return path_normalise(out, PATH_MAX, path);
	return getcwd(base, sizeof base) ? path_join(out, PATH_MAX, base, path) : -errno;
}

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* As a shell finds it. A program that cannot be seen is still one that can be asked for, by its path. */
static int find_program(const char *name, char out[PATH_MAX])
{
	const char *at = getenv("PATH");
	char path[PATH_MAX];

	if (strchr(name, '/'))
		return make_absolute(name, out);
	while (at && *at) {
		size_t length = strcspn(at, ":");

		if (str_format(path, sizeof path, "%.*s/%s", (int)length, at, name) == 0 && is_program(path))
			return realpath(path, out) ? 0 : -errno;
		at += length + (at[length] == ':');
	}
	return -ENOENT;
}

static const struct {
	const char *name;
	int (*resolve)(const char *subject, char out[PATH_MAX]); /* NULL: as it is */
	bool has_arguments;
} kinds[] = {
	{ "file.read", make_absolute, false },
	{ "file.write", make_absolute, false },
	{ "net.connect", NULL, false },
	{ "exec", find_program, true },
};

/* The members "want", "subject" and "argv". An exit status; 0: all is well. */
static int put_subject(struct request *request, char **words, int count)
{
	char path[PATH_MAX];
	const char *subject = count > 1 ? words[1] : NULL;
	size_t kind = 0;
	int r = 0;

	while (kind < ARRAY_SIZE(kinds) && (!count || !str_equal(kinds[kind].name, words[0])))
		kind++;
	if (kind == ARRAY_SIZE(kinds))
		return fail(EXIT_USAGE, count ? words[0] : "nothing to ask for", "see atoll-request --help");
	if (!subject || !*subject || (count > 2 && !kinds[kind].has_arguments))
		return fail(EXIT_USAGE, words[0], "needs one thing to be asked for");
	if (kinds[kind].resolve) {
		r = kinds[kind].resolve(subject, path);
		subject = path;
	}
	if (r < 0)
		return fail(EXIT_USAGE, words[1], strerror(-r));
	if (!utf8_is_valid(subject, strlen(subject)))
		return fail(EXIT_USAGE, words[0], "only names in UTF-8 can be asked for");
	json_string(&request->json, "want", words[0]);
	json_string(&request->json, "subject", subject);
	if (count <= 2)
		return 0;
	json_array_begin(&request->json, "argv");
	for (int i = 1; i < count; i++)
		json_string(&request->json, NULL, words[i]);
	json_array_end(&request->json);
	return 0;
}

/* ---- one function for each verb ---- */

static int put_want(struct request *request, char **words, int count)
{
	int status = put_subject(request, words, count);

	if (status == 0 && request->settings->reason)
		json_string(&request->json, "reason", request->settings->reason);
	request->waits = true;
	return status;
}

static int put_explain(struct request *request, char **words, int count)
{
	int status;

	json_object_begin(&request->json, "explain");
	status = put_subject(request, words + 1, count - 1);
	json_object_end(&request->json);
	return status;
}

static int put_wait(struct request *request, char **words, int count)
{
	uint64_t number;

	if (count != 2 || num_parse_u64(words[1], &number) < 0 || !number)
		return fail(EXIT_USAGE, words[0], "needs the number of a question");
	json_u64(&request->json, "wait", number);
	request->waits = true;
	return 0;
}

static int put_status(struct request *request, char **words, int count)
{
	if (count != 1)
		return fail(EXIT_USAGE, words[0], "takes nothing else");
	json_bool(&request->json, "status", true);
	return 0;
}

/* What it is for may be all that an agent's hook adds behind the command: as much of it as is text. */
static int put_checkpoint(struct request *request, char **words, int count)
{
	char text[CHECKPOINT_TEXT_MAX + 1] = "";
	size_t size = count > 1 ? strlen(words[1]) : 0;

	if (size > CHECKPOINT_TEXT_MAX)
		size = CHECKPOINT_TEXT_MAX;
	/* Cut between characters. */
	while (size && count > 1 && words[1][size] && ((unsigned char)words[1][size] & 0xc0) == 0x80)
		size--;
	if (size && utf8_is_valid(words[1], size)) {
		memcpy(text, words[1], size);
		text[size] = 0;
	}
	json_string(&request->json, "checkpoint", text);
	return 0;
}

/* From a file, from standard input, or from ATOLL_TOKEN; never a word of the command, which others could read. */
static int read_token(const char *name, char memory[LINE_MAX_OUT], char **ret_text)
{
	const char *variable = getenv("ATOLL_TOKEN");
	bool is_input = !name || str_equal(name, "-");
	cleanup_fd int fd = FD_NONE;
	size_t size = 0;
	ssize_t n = 1;

	if (!name && variable && *variable)
		return str_copy(memory, LINE_MAX_OUT, variable) < 0 ? -E2BIG : (*ret_text = memory, 0);
	fd = is_input ? fd_duplicate(0) : fd_open_at(AT_FDCWD, name, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	while (n > 0 && size < LINE_MAX_OUT - 1) {
		n = read(fd, memory + size, LINE_MAX_OUT - 1 - size);
		size += n > 0 ? (size_t)n : 0;
	}
	memory[size] = 0;
	*ret_text = memory + strspn(memory, " \t\r\n");
	(*ret_text)[strcspn(*ret_text, " \t\r\n")] = 0;
	return n < 0 ? -errno : n > 0 ? -E2BIG : 0;
}

static int put_token(struct request *request, char **words, int count)
{
	static char memory[LINE_MAX_OUT];
	char *text = memory;
	int r;

	if (count > 2)
		return fail(EXIT_USAGE, words[0], "takes one file");
	if (count == 2 && str_has_prefix(words[1], "atoll1."))
		return fail(EXIT_USAGE, words[0], "a token cannot be an argument: others could read it");
	r = read_token(count == 2 ? words[1] : NULL, memory, &text);
	if (r < 0)
		return fail(EXIT_USAGE, count == 2 ? words[1] : "token", strerror(-r));
	if (!str_has_prefix(text, "atoll1."))
		return fail(EXIT_USAGE, words[0], "there is no token: it is one line that begins with atoll1.");
	json_string(&request->json, "token", text);
	return 0;
}

static const struct {
	const char *name;
	int (*put)(struct request *request, char **words, int count);
} verbs[] = {
	{ "checkpoint", put_checkpoint },
	{ "token", put_token },
	{ "explain", put_explain },
	{ "wait", put_wait },
	{ "status", put_status },
};

/* SECONDS, or a duration as policies have it. */
static int put_patience(struct request *request, bool *ret_is_impatient)
{
	const char *text = request->settings->wait;
	uint64_t seconds = 0, ms;

	if (!text)
		return 0;
	if (num_parse_u64(text, &seconds) < 0) {
		if (num_parse_duration(text, &ms) < 0)
			return fail(EXIT_USAGE, text, "is no number of seconds");
		seconds = ms / 1000;
	}
	*ret_is_impatient = seconds == 0;
	if (seconds && request->waits)
		json_u64(&request->json, "seconds", seconds > 86400 ? 86400 : seconds);
	return 0;
}

static int write_request(struct request *request, char **words, int count, bool *ret_is_impatient)
{
	int (*put)(struct request *, char **, int) = put_want;
	int status;

	for (size_t i = 0; count && i < ARRAY_SIZE(verbs); i++)
		if (str_equal(verbs[i].name, words[0]))
			put = verbs[i].put;
	json_init(&request->json, &request->line);
	json_object_begin(&request->json, NULL);
	if (!request->settings->json)
		json_string(&request->json, "reply", "text");
	status = put(request, words, count);
	if (status == 0)
		status = put_patience(request, ret_is_impatient);
	if (status)
		return status;
	json_object_end(&request->json);
	buf_put_char(&request->line, '\n');
	return buf_error(&request->line) ? fail(EXIT_USAGE, words[0], "is too long to be asked") : 0;
}

/* ---- answers ---- */

static const struct {
	const char *name;
	int status;
	bool is_last;
} verdicts[] = {
	{ "allowed", EXIT_ALLOWED, true },	 { "denied", EXIT_DENIED, true },
	{ "unanswered", EXIT_UNANSWERED, true }, { "waiting", EXIT_UNANSWERED, false },
	{ "asks", EXIT_UNANSWERED, true },	 { "invalid", EXIT_USAGE, true },
	{ "status", EXIT_ALLOWED, true },
};

/* The verdict is the first word of a line, and the first member of an object. */
static size_t find_verdict(const char *line)
{
	static const char member[] = "{\"verdict\":\"";
	size_t length;

	if (str_has_prefix(line, member))
		line += sizeof member - 1;
	length = strspn(line, "abcdefghijklmnopqrstuvwxyz");
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		if (strlen(verdicts[i].name) == length && strncmp(verdicts[i].name, line, length) == 0)
			return i;
	return ARRAY_SIZE(verdicts);
}

/* The exit status; -1: another line follows. */
static int take_line(const struct settings *settings, const char *line, bool is_impatient)
{
	size_t verdict = find_verdict(line);

	if (verdict == ARRAY_SIZE(verdicts))
		return fail(EXIT_UNANSWERED, "ask.sock", "gave an answer that is not known");
	/* Words that are no answer yet must not be taken for one. */
	fprintf(verdicts[verdict].is_last || settings->json ? stdout : stderr, "%s\n", line);
	fflush(stdout);
	return verdicts[verdict].is_last || is_impatient ? verdicts[verdict].status : -1;
}

static int read_answers(int fd, const struct settings *settings, bool is_impatient)
{
	static char memory[LINE_MAX_IN + 1];
	size_t size = 0;

	for (;;) {
		ssize_t n = read(fd, memory + size, LINE_MAX_IN - size);
		char *end;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail(EXIT_UNANSWERED, "ask.sock", "nobody is there any more");
		size += (size_t)n;
		memory[size] = 0;
		while ((end = memchr(memory, '\n', size)) != NULL) {
			int status;

			*end = 0;
			status = take_line(settings, memory, is_impatient);
			if (status >= 0)
				return status;
			size -= (size_t)(end + 1 - memory);
			memmove(memory, end + 1, size + 1);
		}
	}
}

static int connect_desk(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/atoll/ask.sock" };
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		return -errno;
	return take_fd(&fd);
}

static int run(const struct settings *settings, char **words, int count)
{
	static char memory[LINE_MAX_OUT];
	struct request request = { .settings = settings };
	bool is_impatient = false;
	cleanup_fd int fd = FD_NONE;
	int status;

	buf_init_fixed(&request.line, memory, sizeof memory);
	status = write_request(&request, words, count, &is_impatient);
	if (status)
		return status;
	fd = connect_desk();
	if (fd == -ENOENT)
		return fail(EXIT_DENIED, "/run/atoll/ask.sock", "this sandbox takes no requests");
	if (fd < 0)
		return fail(EXIT_UNANSWERED, "/run/atoll/ask.sock", strerror(-fd));
	if (send(fd, request.line.bytes, request.line.size, MSG_NOSIGNAL) != (ssize_t)request.line.size)
		return fail(EXIT_UNANSWERED, "/run/atoll/ask.sock", strerror(errno));
	return read_answers(fd, settings, is_impatient);
}

int main(int argc, char **argv)
{
	struct settings settings = { 0 };
	struct err err = { 0 };
	int rest = 0, r = options_parse(options, ARRAY_SIZE(options), &settings, argc, argv, false, &rest, &err);

	if (r > 0)
		return print_help();
	if (r < 0)
		return fail(EXIT_USAGE, err.message, err.hint);
	if (settings.version) {
		puts("atoll-request " ATOLL_VERSION);
		return EXIT_ALLOWED;
	}
	/* Options may stand behind what is asked for, but for a program's own arguments. */
	if (rest < argc && !str_equal(argv[rest], "exec")) {
		r = options_parse(options, ARRAY_SIZE(options), &settings, argc, argv, true, &rest, &err);
		if (r < 0)
			return fail(EXIT_USAGE, err.message, err.hint);
	}
	return run(&settings, argv + rest, argc - rest);
}
