/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	char name[NAME_MAX_SIZE];
	uint32_t value;
} defines[DEFINES_MAX];
static unsigned define_count;
static const char *where_file;
static unsigned where_line;

void fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%u: ", where_file ? where_file : "seccomp-gen", where_line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void copy_name(char *out, const char *text)
{
	size_t length = strlen(text);

	if (length == 0 || length >= NAME_MAX_SIZE)
		fail("not a name: %s", text);
	memcpy(out, text, length + 1);
}

static uint32_t number(const char *text)
{
	char *end;
	unsigned long value;

	for (unsigned i = 0; i < define_count; i++)
		if (!strcmp(defines[i].name, text))
			return defines[i].value;
	errno = 0;
	value = strtoul(text, &end, 0);
	if (errno || *end || end == text || value > UINT32_MAX)
		fail("neither a number nor defined: %s", text);
	return (uint32_t)value;
}

static char *word(char **line)
{
	char *start = *line + strspn(*line, " \t");
	char *end = start + strcspn(start, " \t");

	*line = *end ? end + 1 : end;
	*end = 0;
	return *start ? start : NULL;
}

static char *needed_word(char **line)
{
	char *text = word(line);

	if (!text)
		fail("the line ends too early");
	return text;
}

static int errno_number(const char *name)
{
	static const struct {
		const char *name;
		int value;
	} known[] = { { "EPERM", EPERM }, { "EACCES", EACCES }, { "ENOSYS", ENOSYS }, { "EBUSY", EBUSY },
		      { "EINVAL", EINVAL }, { "EAFNOSUPPORT", EAFNOSUPPORT }, { "EPROTONOSUPPORT", EPROTONOSUPPORT },
		      { "EOPNOTSUPP", EOPNOTSUPP },
		      { "0", 0 } /* the call does nothing and says that it did */ };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].name, name))
			return known[i].value;
	fail("unknown errno: %s", name);
}

static void parse_action(struct rule *rule, const char *text)
{
	if (!strcmp(text, "allow"))
		rule->action = ACTION_ALLOW;
	else if (!strcmp(text, "watch"))
		rule->action = ACTION_WATCH;
	else if (!strncmp(text, "errno:", 6))
		rule->action = ACTION_ERRNO, rule->errnum = errno_number(text + 6);
	else if (!strncmp(text, "notify:", 7))
		rule->action = ACTION_NOTIFY, rule->errnum = errno_number(text + 7);
	else
		fail("unknown action: %s", text);
}

/* argN[.high] [& MASK] (== | != | in) VALUE[,VALUE…]; returns the word behind it. */
static char *parse_condition(struct condition *condition, char **line)
{
	char *text = needed_word(line), *save = NULL;

	memset(condition, 0, sizeof *condition);
	if (strncmp(text, "arg", 3) || text[3] < '0' || text[3] > '5' || (text[4] && strcmp(text + 4, ".high")))
		fail("expected arg0 to arg5 or one's .high, not %s", text);
	condition->word = 2 * (unsigned)(text[3] - '0') + !!text[4];
	condition->mask = UINT32_MAX;
	text = needed_word(line);
	if (!strcmp(text, "&")) {
		condition->mask = number(needed_word(line));
		text = needed_word(line);
	}
	condition->negate = !strcmp(text, "!=");
	if (!condition->negate && strcmp(text, "==") && strcmp(text, "in"))
		fail("expected ==, != or in, not %s", text);
	text = needed_word(line);
	for (char *value = strtok_r(text, ",", &save); value; value = strtok_r(NULL, ",", &save)) {
		if (condition->value_count == VALUES_MAX)
			fail("too many values");
		condition->values[condition->value_count++] = number(value);
	}
	return word(line);
}

static void add_rule(struct table *table, const struct rule *rule)
{
	for (unsigned i = 0; i < table->count; i++) {
		const struct rule *old = &table->rules[i];

		if (!strcmp(old->name, rule->name) && old->condition_count == 0 && old->depth == rule->depth)
			fail("%s was decided above; this line has no effect", rule->name);
	}
	if (table->count == RULES_MAX)
		fail("too many rules");
	table->rules[table->count++] = *rule;
}

static void parse_rule(struct table *table, const char *action, char *line, int depth)
{
	struct rule rule = { .depth = depth };
	char *names[64], *text;
	unsigned name_count = 0;

	parse_action(&rule, action);
	while ((text = word(&line)) && strcmp(text, "if")) {
		if (name_count == 64)
			fail("too many calls in one line");
		names[name_count++] = text;
	}
	while (text) {
		if (rule.condition_count == CONDITIONS_MAX)
			fail("too many conditions");
		text = parse_condition(&rule.conditions[rule.condition_count++], &line);
		if (text && strcmp(text, "and"))
			fail("expected and, not %s", text);
	}
	if (name_count == 0)
		fail("no call is named");
	for (unsigned i = 0; i < name_count; i++) {
		char *equals = strchr(names[i], '=');

		rule.number = equals ? (int)number(equals + 1) : -1;
		if (equals)
			*equals = 0;
		copy_name(rule.name, names[i]);
		add_rule(table, &rule);
	}
}

/* What another file has decided before is no mistake: each file begins at a depth of its own. */
enum { DEPTH_STEP = 8 };

static void parse_file(struct table *table, const char *path, int depth)
{
	char line[512], beside[1024];
	const char *slash = strrchr(path, '/');
	FILE *file = fopen(path, "re");

	if (!file || depth % DEPTH_STEP > 4)
		fail("cannot read %s", path);
	where_file = path;
	where_line = 0;
	while (fgets(line, sizeof line, file)) {
		char *rest = line, *text;
		unsigned saved_line = ++where_line;

		line[strcspn(line, "#\n")] = 0;
		text = word(&rest);
		if (!text)
			continue;
		if (!strcmp(text, "define")) {
			if (define_count == DEFINES_MAX)
				fail("too many definitions");
			copy_name(defines[define_count].name, needed_word(&rest));
			defines[define_count].value = number(needed_word(&rest));
			define_count++;
		} else if (!strcmp(text, "include")) {
			snprintf(beside, sizeof beside, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path,
				 needed_word(&rest));
			parse_file(table, beside, depth + 1);
			where_file = path;
			where_line = saved_line;
		} else {
			parse_rule(table, text, rest, depth);
		}
	}
	fclose(file);
}

void table_parse(struct table *ret_table, char *paths)
{
	memset(ret_table, 0, sizeof *ret_table);
	define_count = 0;
	for (int depth = 0; paths; depth += DEPTH_STEP) {
		char *path = paths;

		paths = strchr(paths, '+');
		if (paths)
			*paths++ = 0;
		parse_file(ret_table, path, depth);
	}
}
