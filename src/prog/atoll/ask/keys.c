/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/ask/keys.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "prog/atoll/ask/answer.h"
#include "prog/atoll/verb/say.h"

enum { TEXT_MAX = 64 << 10 };

void keys_remove(struct keys *keys, const char *name)
{
	for (size_t i = 0; i < keys->count; i++) {
		if (!str_equal(keys->open[i].name, name))
			continue;
		free(keys->open[i].text);
		keys->count--;
		memmove(&keys->open[i], &keys->open[i + 1], (keys->count - i) * sizeof keys->open[0]);
		return;
	}
}

void keys_add(struct keys *keys, const char *name, const char *text)
{
	struct keys_question *question = &keys->open[keys->count];

	keys_remove(keys, name);
	question = &keys->open[keys->count];
	if (keys->count == KEYS_OPEN_MAX || str_copy(question->name, sizeof question->name, name) < 0)
		return;
	question->text = str_dup(text);
	keys->count++;
	/* What was shown behind the line has pushed it away. */
	keys->asked[0] = 0;
}

static int say_text(const char *text, struct err *err)
{
	cleanup_buf struct buf out;

	buf_init(&out, TEXT_MAX);
	buf_put_text(&out, text);
	return say_out(&out, err);
}

int keys_prompt(struct keys *keys, struct err *err)
{
	cleanup_buf struct buf out = { 0 };

	if (!keys->is_on || !keys->count || str_equal(keys->asked, keys->open[0].name))
		return 0;
	buf_init(&out, TEXT_MAX);
	buf_printf(&out, "%s: y yes, s yes for this session, n no, d details", keys->open[0].name);
	if (keys->count > 1)
		buf_printf(&out, ", a yes to all %zu", keys->count);
	buf_put_text(&out, ", q quit [y/s/n/d/a/q] ");
	memcpy(keys->asked, keys->open[0].name, sizeof keys->asked);
	return say_out(&out, err);
}

/* A question that somebody else answered, or whose sandbox has ended, is no reason to end. */
static void answer_first(struct keys *keys, bool is_allowed, enum asking_scope scope)
{
	struct asking_reply reply = { .is_allowed = is_allowed, .scope = scope };
	char name[QUESTION_NAME_SIZE];
	struct err told = { 0 };

	memcpy(name, keys->open[0].name, sizeof name);
	if (answer_named(name, &reply, false, &told) < 0)
		say_error(&told);
	keys_remove(keys, name);
}

static void answer_all(struct keys *keys)
{
	while (keys->count)
		answer_first(keys, true, ASKING_ONCE);
}

static int show_details(const struct keys *keys, struct err *err)
{
	cleanup_buf struct buf out;
	const struct keys_question *question = &keys->open[0];

	buf_init(&out, TEXT_MAX);
	if (question->text)
		buf_put_text(&out, question->text);
	buf_printf(&out, "    atoll approve %s [--for 10m | --uses N | --session | --forever]\n    atoll deny %s\n\n",
		   question->name, question->name);
	return say_out(&out, err);
}

/* 1: the person is done. */
static int take_line(struct keys *keys, const char *line, struct err *err)
{
	static const char help[] = "y yes, once   s yes, for this session   n no   d details   a yes to all   q quit\n";
	char letter = line[strspn(line, " \t")];

	keys->asked[0] = 0;
	if (letter == 'q')
		return 1;
	if (!keys->count || !letter)
		return 0;
	switch (letter) {
	case 'y':
		answer_first(keys, true, ASKING_ONCE);
		return 0;
	case 's':
		answer_first(keys, true, ASKING_SESSION);
		return 0;
	case 'n':
		answer_first(keys, false, ASKING_ONCE);
		return 0;
	case 'a':
		answer_all(keys);
		return 0;
	case 'd':
		return show_details(keys, err);
	default:
		return say_text(help, err);
	}
}

int keys_read(struct keys *keys, struct err *err)
{
	ssize_t n = read(STDIN_FILENO, keys->line + keys->size, sizeof keys->line - 1 - keys->size);
	char *end;
	int r = 0;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : 1;
	if (n == 0)
		return 1;
	keys->size += (size_t)n;
	keys->line[keys->size] = 0;
	while (r == 0 && (end = strchr(keys->line, '\n'))) {
		*end = 0;
		r = take_line(keys, keys->line, err);
		keys->size -= (size_t)(end + 1 - keys->line);
		memmove(keys->line, end + 1, keys->size + 1);
	}
	/* Longer than any answer. */
	if (keys->size == sizeof keys->line - 1)
		keys->size = 0;
	return r;
}

void keys_done(struct keys *keys)
{
	while (keys->count)
		keys_remove(keys, keys->open[0].name);
}
