/* SPDX-License-Identifier: Apache-2.0 */
#include "approve/prompt.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <termios.h>

#include "approve/question-words.h"
#include "approve/queue-state.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/pty.h"
#include "session/run-request.h"
#include "supervise/console.h"
#include "supervise/run.h"
#include "supervise/stdio.h"

/*
 * Whoever can write to the terminal can draw a question, or draw over one: the person would answer another one than is
 * asked. So a prompt is drawn only where none of the command's streams is the terminal. What it writes into a pipe may
 * still come there by another program (cat, tee): its output is held first, until that program has taken what it was
 * given and had time to show it. It is released when the prompt is gone. Where a program has the terminal in a mode of
 * its own (a pager, an editor), or we are in the background, nothing is drawn: its keys would be our answers. Keys that
 * were typed before the question stood there are thrown away, and only then come the last words: who has read them is
 * never one of those.
 *
 * How long a question is, the agent chooses: what scrolled off the screen would leave room for another beginning. So it
 * stands there as a whole, or there is no answer to it here. And what the agent wrote before has set the terminal:
 * margins that leave two lines to scroll in, letters in the colour of what is behind them. That is taken back first.
 */

enum { NS_PER_MS = 1000000, SETTLE_MS = 200, GIVE_UP_MS = 2000, LOOK_MS = 50, RING_MS = 2000, TEXT_MAX = 64 << 10,
       LINE_SIZE = 64, ROWS_UNKNOWN = 24, COLUMNS_UNKNOWN = 80 };

void prompt_init(struct prompt *prompt, struct run *run, struct queue *queue, const struct prompt_owner *owner)
{
	*prompt = (struct prompt){ .run = run, .queue = queue, .owner = *owner, .tty_fd = FD_NONE };
}

/* ---- the terminal ---- */

static bool open_terminal(struct prompt *prompt)
{

	if (prompt->tty_fd >= 0 || prompt->is_tried)
		return prompt->tty_fd >= 0;
	prompt->is_tried = true;
	if (prompt->run->request->flags & (REQUEST_DETACH | REQUEST_CHECK))
		return false;
	prompt->tty_fd = fd_open_at(AT_FDCWD, "/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK, 0);
	return prompt->tty_fd >= 0;
}

static bool may_draw(struct prompt *prompt)
{
	struct termios modes;

	return prompt->run->policy->policy->ask.prompt && open_terminal(prompt) && !console_detect() &&
	       tcgetpgrp(prompt->tty_fd) == getpgrp() && tcgetattr(prompt->tty_fd, &modes) == 0 &&
	       modes.c_lflag & ICANON;
}

/* Asked about at every turn of the loop: it is looked at a few times a second. */
bool prompt_is_possible(struct prompt *prompt)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (prompt->is_tried && prompt->tty_fd < 0)
		return false;
	if (!prompt->looked_ns || now_ns - prompt->looked_ns > SETTLE_MS * (uint64_t)NS_PER_MS) {
		prompt->looked_ns = now_ns;
		prompt->was_possible = may_draw(prompt);
	}
	return prompt->was_possible;
}

/* False: it does not stand there as a whole. A terminal that takes nothing now is one that nobody looks at. */
static bool write_bytes(struct prompt *prompt, const void *bytes, size_t size)
{
	return write(prompt->tty_fd, bytes, size) == (ssize_t)size;
}

static bool write_text(struct prompt *prompt, const struct buf *text)
{
	return buf_error(text) == 0 && write_bytes(prompt, text->bytes, text->size);
}

void prompt_ring(struct prompt *prompt)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!prompt->run->policy->policy->ask.bell || !open_terminal(prompt) ||
	    tcgetpgrp(prompt->tty_fd) != getpgrp() ||
	    (prompt->rung_ns && now_ns - prompt->rung_ns < RING_MS * (uint64_t)NS_PER_MS))
		return;
	prompt->rung_ns = now_ns;
	(void)!write(prompt->tty_fd, "\a", 1);
}

/* ---- what the sandbox writes ---- */

static struct relay *output_of(const struct prompt *prompt, unsigned stream)
{
	return prompt->owner.main_output(prompt->owner.context, stream);
}

static void hold_output(struct prompt *prompt)
{
	for (unsigned i = STDIO_OUT; i <= STDIO_ERR; i++)
		if (output_of(prompt, i))
			relay_hold(output_of(prompt, i));
}

static int release_output(struct prompt *prompt)
{
	int first = 0;

	for (unsigned i = STDIO_OUT; i <= STDIO_ERR; i++) {
		int r = output_of(prompt, i) ? relay_release(output_of(prompt, i)) : 0;

		first = first < 0 ? first : r;
	}
	return first;
}

static bool is_output_taken(struct prompt *prompt)
{
	for (unsigned i = STDIO_OUT; i <= STDIO_ERR; i++)
		if (output_of(prompt, i) && !relay_is_taken(output_of(prompt, i)))
			return false;
	return true;
}

/* ---- one question ---- */

static struct question *find(struct prompt *prompt, uint32_t number)
{
	struct queue_state *state = prompt->queue->state;

	for (size_t i = 0; state && i < state->question_count; i++)
		if (state->questions[i]->number == number && state->questions[i]->state == ASKING_WAITS)
			return state->questions[i];
	return NULL;
}

static struct question *find_next(struct prompt *prompt)
{
	struct queue_state *state = prompt->queue->state;
	struct question *next = NULL;

	for (size_t i = 0; state && i < state->question_count; i++) {
		struct question *question = state->questions[i];

		if (question->state == ASKING_WAITS && !question->is_prompted &&
		    (!next || question->number < next->number))
			next = question;
	}
	return next;
}

/* Takes the prompt away, with this as the last word. */
static int leave(struct prompt *prompt, const char *why)
{

	if (prompt->state == PROMPT_SHOWN && why)
		(void)!write(prompt->tty_fd, why, strlen(why));
	loop_remove(prompt->run->loop, &prompt->source);
	prompt->state = PROMPT_IDLE;
	return release_output(prompt);
}

static const char choices[] = "    [y] once  [s] for this session  [n] no  [?] more, ";
static const char last_words[] = "then Enter: ";

/*
 * Margins, origin, insertion, no wrapping, attributes, character sets, colours; then below all that stands there. The
 * soft reset (DECSTR) has most of it where it is known.
 */
static const char sane[] = "\033[!p\033[?69l\033[?6l\033[r\033[4l\033[?7h\033[0m\033(B\017"
			   "\033]104\a\033]110\a\033]111\a\033[999;1H";

static bool make_sane(const struct prompt *prompt)
{
	return !pty_is_able(env_find(prompt->run->request->command.env, "TERM")) ||
	       write(prompt->tty_fd, sane, sizeof sane - 1) == (ssize_t)sizeof sane - 1;
}

/* The rows that a line of so many bytes takes at most: no character is wider than it is long. */
static size_t rows_of(size_t length, size_t columns)
{
	return length ? (length - 1) / columns + 1 : 1;
}

/* With the line that the answer's Enter begins. */
static bool fits_on_screen(const struct prompt *prompt, const struct buf *text)
{
	const uint8_t *at = text->bytes, *end = at + text->size, *line_end;
	struct pty_size size = { 0 };
	size_t rows = 1;

	if (pty_get_size(prompt->tty_fd, &size) < 0 || !size.rows || !size.columns)
		size = (struct pty_size){ ROWS_UNKNOWN, COLUMNS_UNKNOWN };
	for (; at < end; at = line_end + 1) {
		line_end = memchr(at, '\n', (size_t)(end - at));
		line_end = line_end ? line_end : end;
		rows += rows_of((size_t)(line_end - at), size.columns);
	}
	return rows <= size.rows;
}

static void say_too_long(struct prompt *prompt, const struct question *question)
{
	cleanup_buf struct buf text;

	buf_init(&text, TEXT_MAX);
	buf_printf(&text, "\natoll asks, for %s: ", prompt->run->request->session);
	buf_printf(&text, "a question that is too long for this screen; see `atoll ask`, number %u\n",
		   question->number);
	(void)!write_text(prompt, &text);
}

/* With is_new no key that was typed before counts. False: it does not stand there as a whole. */
static bool draw(struct prompt *prompt, const struct question *question, bool is_new)
{
	const size_t last_size = strlen(last_words);
	struct asking_question told = queue_question_of(question, clock_monotonic_ns());
	cleanup_buf struct buf text = { 0 };

	if (!make_sane(prompt))
		return false;
	buf_init(&text, TEXT_MAX);
	buf_put_text(&text, prompt->run->policy->policy->ask.bell ? "\a\natoll asks, for " : "\natoll asks, for ");
	buf_printf(&text, "%s:\n", prompt->run->request->session);
	question_words_put_question(&text, &told, "", clock_realtime_ns());
	buf_put_text(&text, choices);
	buf_put_text(&text, last_words);
	if (buf_error(&text) == 0 && fits_on_screen(prompt, &text))
		return write_bytes(prompt, text.bytes, text.size - last_size) &&
		       (!is_new || (tcdrain(prompt->tty_fd) == 0 && tcflush(prompt->tty_fd, TCIFLUSH) == 0)) &&
		       write_bytes(prompt, last_words, last_size);
	say_too_long(prompt, question);
	return false;
}

/* True: it is answered. */
static bool read_choice(const char *line, size_t size, struct asking_reply *reply)
{
	static const struct {
		const char *word;
		bool is_allowed;
		enum asking_scope scope;
	} words[] = { { "y\n", true, ASKING_ONCE }, { "yes\n", true, ASKING_ONCE }, { "s\n", true, ASKING_SESSION },
		      { "n\n", false, ASKING_ONCE }, { "no\n", false, ASKING_ONCE } };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strlen(words[i].word) == size && memcmp(words[i].word, line, size) == 0) {
			reply->is_allowed = words[i].is_allowed;
			reply->scope = words[i].scope;
			return true;
		}
	return false;
}

static int answer(struct prompt *prompt, struct asking_reply *reply)
{
	struct queue_answerer by = { "prompt", getuid(), 0 };
	struct err err = { 0 };
	uint32_t grant;
	int r;

	reply->number = prompt->number;
	reply->hash = prompt->hash.bytes;
	r = queue_answer(prompt->queue, reply, &by, &grant, &err);
	if (r < 0)
		return r;
	if (r)
		return leave(prompt, "    it was answered already, or is over\n");
	return leave(prompt, reply->is_allowed ? "    allowed\n" : "    denied\n");
}

static int terminal_ready(void *context, uint32_t events)
{
	static const char help[] =
		"    y lets through what waits now, s the same thing until the sandbox ends; n is remembered.\n"
		"    `atoll approve` in another terminal knows more ways; without an answer it is refused.\n";
	struct prompt *prompt = context;
	struct asking_reply reply = { 0 };
	const struct question *question;
	char line[LINE_SIZE];
	ssize_t n = read(prompt->tty_fd, line, sizeof line);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0 || events & ~(uint32_t)EPOLLIN)
		return leave(prompt, NULL);
	if (read_choice(line, (size_t)n, &reply))
		return answer(prompt, &reply);
	question = find(prompt, prompt->number);
	(void)!write(prompt->tty_fd, help, sizeof help - 1);
	/* Again, since the help may have moved its beginning off the screen. */
	return question && draw(prompt, question, false) ? 0 : leave(prompt, NULL);
}

static int show(struct prompt *prompt)
{
	struct question *question = find(prompt, prompt->number);

	if (!question || !may_draw(prompt))
		return leave(prompt, NULL);
	prompt->hash = question->hash;
	queue_seal(question);
	if (!draw(prompt, question, true))
		return leave(prompt, NULL);
	prompt->state = PROMPT_SHOWN;
	prompt->source = (struct loop_source){ .fd = prompt->tty_fd, .events = EPOLLIN, .ready = terminal_ready,
					       .context = prompt };
	return loop_add(prompt->run->loop, &prompt->source);
}

static int begin(struct prompt *prompt, uint64_t now_ns)
{
	struct question *question =
		prompt->queue->state && prompt->queue->state->waiting_count ? find_next(prompt) : NULL;

	if (!question)
		return 0;
	question->is_prompted = true;
	if (!prompt_is_possible(prompt))
		return 0;
	prompt->number = question->number;
	prompt->state = PROMPT_SETTLING;
	prompt->since_ns = now_ns;
	hold_output(prompt);
	return 0;
}

static int prompt_check(void *context, uint64_t now_ns)
{
	struct prompt *prompt = context;
	uint64_t held_ms = (now_ns - prompt->since_ns) / NS_PER_MS;

	if (prompt->state == PROMPT_IDLE)
		return begin(prompt, now_ns);
	if (!find(prompt, prompt->number))
		return leave(prompt, "\n    it was answered elsewhere, or is over\n");
	if (prompt->state == PROMPT_SHOWN)
		return 0;
	if (held_ms >= SETTLE_MS && is_output_taken(prompt))
		return show(prompt);
	return held_ms >= GIVE_UP_MS ? leave(prompt, NULL) : 0;
}

static int prompt_timeout_ms(const void *context, uint64_t now_ns)
{
	const struct prompt *prompt = context;

	return prompt->state == PROMPT_SETTLING ? LOOK_MS : -1;
}

void prompt_done(struct prompt *prompt)
{
	if (prompt->state != PROMPT_IDLE)
		(void)!leave(prompt, "\n");
	close_fd(&prompt->tty_fd);
}

const struct module prompt_module = {
	.name = "prompt",
	.check = prompt_check,
	.timeout_ms = prompt_timeout_ms,
};
