/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/names.h"
#include "base/str.h"

enum { OPTIONS_MAX = 64 };

/* One parse: what stands before front has been consumed, words that permute passed by follow it. */
struct parse {
	const struct option *options;
	size_t count;
	void *target;
	int argc, at, front;
	char **argv;
	bool is_help;
	struct err *err;
};

/* Moves the token at parse->at behind the options already consumed, over the words in between. */
static char *take_token(struct parse *parse)
{
	char *token = parse->argv[parse->at];

	memmove(parse->argv + parse->front + 1, parse->argv + parse->front,
		(size_t)(parse->at - parse->front) * sizeof *parse->argv);
	parse->argv[parse->front++] = token;
	parse->at++;
	return token;
}

static int store(struct parse *parse, const struct option *option, const char *value)
{
	char *field = (char *)parse->target + option->offset;

	if (option->kind == OPTION_FLAG) {
		*(bool *)field = true;
	} else if (option->kind == OPTION_TEXT || option->kind == OPTION_MAYBE) {
		*(const char **)field = value;
	} else {
		struct option_list *list = (struct option_list *)field;

		if (list->count == OPTION_LIST_MAX)
			return err_set(parse->err, ERR_USAGE, EINVAL, "options",
				       "--%s was given more than %d times", option->long_name,
				       OPTION_LIST_MAX);
		list->values[list->count++] = value;
	}
	return 0;
}

static int store_next(struct parse *parse, const struct option *option)
{
	if (parse->at >= parse->argc)
		return err_set(parse->err, ERR_USAGE, EINVAL, "options", "--%s needs a value: %s",
			       option->long_name, option->argument);
	return store(parse, option, take_token(parse));
}

static void hint_nearest(struct parse *parse, const char *name)
{
	const char *names[OPTIONS_MAX + 1], *nearest;
	size_t count = 0;

	for (; count < parse->count && count < OPTIONS_MAX; count++)
		names[count] = parse->options[count].long_name;
	names[count++] = "help";
	nearest = names_nearest(names, count, name);
	if (nearest)
		err_hint(parse->err, "did you mean --%s?", nearest);
	else
		err_hint(parse->err, "--help lists the options");
}

static int parse_long(struct parse *parse, const char *text)
{
	const char *equals = strchrnul(text, '=');
	char name[64];

	if (str_format(name, sizeof name, "%.*s", (int)(equals - text), text) < 0)
		return err_set(parse->err, ERR_USAGE, EINVAL, "options", "unknown option --%s", text);
	if (str_equal(name, "help") && !*equals) {
		parse->is_help = true;
		return 0;
	}
	for (size_t i = 0; i < parse->count; i++) {
		const struct option *option = &parse->options[i];

		if (!str_equal(option->long_name, name))
			continue;
		if (option->kind == OPTION_FLAG && *equals)
			return err_set(parse->err, ERR_USAGE, EINVAL, "options", "--%s takes no value", name);
		if (option->kind == OPTION_FLAG || option->kind == OPTION_MAYBE || *equals)
			return store(parse, option, *equals ? equals + 1 : "");
		return store_next(parse, option);
	}
	err_set(parse->err, ERR_USAGE, EINVAL, "options", "unknown option --%s", name);
	hint_nearest(parse, name);
	return -EINVAL;
}

static const struct option *find_short(const struct parse *parse, char c)
{
	for (size_t i = 0; i < parse->count; i++)
		if (parse->options[i].short_name == c)
			return &parse->options[i];
	return NULL;
}

static int parse_shorts(struct parse *parse, const char *text)
{
	for (; *text; text++) {
		const struct option *option = find_short(parse, *text);
		int r;

		if (!option && *text == 'h') {
			parse->is_help = true;
			continue;
		}
		if (!option) {
			err_set(parse->err, ERR_USAGE, EINVAL, "options", "unknown option -%c", *text);
			err_hint(parse->err, "--help lists the options");
			return -EINVAL;
		}
		if (option->kind != OPTION_FLAG)
			return text[1] ? store(parse, option, text + 1) : store_next(parse, option);
		r = store(parse, option, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

int options_parse(const struct option *options, size_t count, void *target, int argc, char **argv,
		  bool permute, int *ret_rest, struct err *err)
{
	struct parse parse = {
		.options = options,
		.count = count,
		.target = target,
		.argc = argc,
		.argv = argv,
		.at = 1,
		.front = 1,
		.err = err,
	};

	while (parse.at < argc) {
		const char *token = argv[parse.at];
		int r;

		if (token[0] != '-' || !token[1]) {
			if (!permute)
				break;
			parse.at++;
			continue;
		}
		take_token(&parse);
		if (str_equal(token, "--"))
			break;
		r = token[1] == '-' ? parse_long(&parse, token + 2) : parse_shorts(&parse, token + 1);
		if (r < 0)
			return r;
		if (parse.is_help)
			return 1;
	}
	*ret_rest = parse.front < argc ? parse.front : argc;
	return 0;
}

/* "-p, --policy POLICY", "    --cwd DIR" */
static void put_synopsis(struct buf *line, const struct option *option)
{
	if (option->short_name)
		buf_printf(line, "-%c, --%s", option->short_name, option->long_name);
	else
		buf_printf(line, "    --%s", option->long_name);
	if (option->argument && option->kind == OPTION_MAYBE)
		buf_printf(line, "[=%s]", option->argument);
	else if (option->argument)
		buf_printf(line, " %s", option->argument);
}

static size_t synopsis_width(const struct option *option)
{
	size_t around = option->kind == OPTION_MAYBE ? strlen("[=]") : strlen(" ");

	return 6 + strlen(option->long_name) + (option->argument ? around + strlen(option->argument) : 0);
}

static int print(const char *title, const struct option *options, size_t count, int fd)
{
	cleanup_buf struct buf text;
	size_t width = 0, written = 0;

	for (size_t i = 0; i < count; i++)
		if (synopsis_width(&options[i]) > width)
			width = synopsis_width(&options[i]);
	buf_init(&text, 64 << 10);
	buf_put_text(&text, title);
	for (size_t i = 0; i < count; i++) {
		buf_put_text(&text, "  ");
		put_synopsis(&text, &options[i]);
		buf_printf(&text, "%*s%s\n", (int)(width - synopsis_width(&options[i]) + 3), "",
			   options[i].help);
	}
	if (buf_error(&text) < 0)
		return buf_error(&text);
	/* base/ stands below os/, whose fd_write_full() this would be. */
	while (written < text.size) {
		ssize_t n = write(fd, text.bytes + written, text.size - written);

		if (n < 0 && errno != EINTR)
			return -errno;
		written += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int options_print(const struct option *options, size_t count, int fd)
{
	return print("", options, count, fd);
}

int options_help(const char *title, const struct option *options, size_t count)
{
	return print(title, options, count, STDOUT_FILENO);
}
