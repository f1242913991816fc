/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/run/narrow-prompt.h"

#include <fcntl.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/fd.h"

enum { TEXT_MAX = 1 << 20, LINE_SIZE = 64 };

/* Each line behind two blanks. */
static void put_lines(struct buf *out, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		buf_put_text(out, "  ");
		buf_put_escaped(out, text, length, 0);
		buf_put_char(out, '\n');
		text += length + (text[length] == '\n');
	}
}

static void put_quoted(struct buf *out, const char *before, const char *text)
{
	if (!*text)
		return;
	buf_put_text(out, before);
	buf_put_escaped(out, text, strlen(text), 0);
	buf_put_text(out, "\n");
}

static void write_out(int fd, struct buf *out)
{
	if (buf_error(out) == 0 && fd_write_full(fd, out->bytes, out->size) < 0)
		return; /* nobody reads */
}

static void put_brief(struct buf *out, const struct narrow_shown *shown)
{
	put_quoted(out, "atoll: the verifier's reason: ", shown->reason);
	put_lines(out, shown->brief);
}

static void show(const struct narrow_shown *shown)
{
	cleanup_buf struct buf out;

	buf_init(&out, TEXT_MAX);
	put_quoted(&out, "atoll: the policy is narrowed for the task: ", shown->task);
	put_brief(&out, shown);
	write_out(STDERR_FILENO, &out);
}

static int open_terminal(void)
{
	int fd = fd_open_at(AT_FDCWD, "/dev/tty", O_RDWR | O_NOCTTY, 0);

	if (fd >= 0 && tcgetpgrp(fd) != getpgrp())
		close_fd(&fd);
	return fd;
}

static bool can_ask(void)
{
	cleanup_fd int fd = open_terminal();

	return fd >= 0;
}

/* 0: the terminal is gone, or the person has closed it. What does not fit into a line is no answer. */
static ssize_t read_line(int fd, char line[LINE_SIZE])
{
	ssize_t n;

	do
		n = read(fd, line, LINE_SIZE - 1);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return 0;
	line[n] = 0;
	if (line[n - 1] != '\n')
		(void)tcflush(fd, TCIFLUSH);
	line[strcspn(line, "\n")] = 0;
	return n;
}

static bool is_word(const char *line, const char *word)
{
	return *line && (str_equal(line, word) || (line[0] == word[0] && !line[1]));
}

/* One question and what was said. True: *ret_answer is the answer. */
static bool ask_once(int fd, const struct narrow_shown *shown, enum narrow_answer *ret_answer)
{
	static const char question[] =
		"atoll: use it for this run? [y]es, [n]o: run with the whole policy, [d]ifference in full, "
		"[t]ext of the proposal, [q]uit: ";
	static const struct {
		const char *word;
		enum narrow_answer answer;
	} answers[] = { { "yes", NARROW_YES }, { "no", NARROW_NO }, { "quit", NARROW_QUIT } };
	char line[LINE_SIZE];
	cleanup_buf struct buf out;

	buf_init(&out, TEXT_MAX);
	*ret_answer = NARROW_QUIT;
	if (fd_write_full(fd, question, sizeof question - 1) < 0 || !read_line(fd, line))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		if (is_word(line, answers[i].word)) {
			*ret_answer = answers[i].answer;
			return true;
		}
	if (is_word(line, "difference"))
		put_lines(&out, shown->whole);
	else if (is_word(line, "text"))
		put_lines(&out, shown->text);
	write_out(fd, &out);
	return false;
}

static int ask(const struct narrow_shown *shown, enum narrow_answer *ret_answer, struct err *err)
{
	cleanup_fd int fd = open_terminal();
	cleanup_buf struct buf out;

	buf_init(&out, TEXT_MAX);
	if (fd < 0)
		return err_set(err, ERR_STATE, ENOTTY, "narrow", "there is no terminal to ask on");
	put_quoted(&out, "atoll: the verifier proposes less for the task: ", shown->task);
	put_brief(&out, shown);
	write_out(fd, &out);
	/* What was typed before the question stood there is no answer to it. */
	(void)tcflush(fd, TCIFLUSH);
	while (!ask_once(fd, shown, ret_answer))
		;
	return 0;
}

const struct narrow_prompt narrow_prompt = { can_ask, show, ask };
