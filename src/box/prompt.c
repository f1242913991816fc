/* SPDX-License-Identifier: Apache-2.0 */
#include "box/prompt.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <termios.h>

#include "box/asking-state.h"
#include "box/asking-words.h"
#include "box/console.h"
#include "box/state.h"
#include "os/clock.h"
#include "os/fd.h"

/*
 * Whoever can write to the terminal can draw a question, or draw over one: the person would answer another one than is
 * asked. So a prompt is drawn only where none of the command's streams is the terminal. What it writes into a pipe may
 * still come there by another program (cat, tee): its output is held first, until that program has taken what it was
 * given and had time to show it. It is released when the prompt is gone. Where a program has the terminal in a mode of
 * its own (a pager, an editor), or we are in the background, nothing is drawn: its keys would be our answers. Keys that
 * were typed before the question stood there are thrown away.
 */

enum { NS_PER_MS = 1000000, SETTLE_MS = 200, GIVE_UP_MS = 2000, LOOK_MS = 50, RING_MS = 2000, TEXT_MAX = 64 << 10,
       LINE_SIZE = 64 };

void prompt_init(struct prompt *prompt)
{
	*prompt = (struct prompt){ .tty_fd = FD_NONE };
}

/* ---- the terminal ---- */

static bool open_terminal(struct box *box)
{
	struct prompt *prompt = &box->prompt;

	if (prompt->tty_fd >= 0 || prompt->is_tried)
		return prompt->tty_fd >= 0;
	prompt->is_tried = true;
	if (box->request->flags & (REQUEST_DETACH | REQUEST_CHECK))
		return false;
	prompt->tty_fd = fd_open_at(AT_FDCWD, "/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK, 0);
	return prompt->tty_fd >= 0;
}

static bool may_draw(struct box *box)
{
	struct termios modes;

	return box->policy->policy->ask.prompt && open_terminal(box) && !console_detect() &&
	       tcgetpgrp(box->prompt.tty_fd) == getpgrp() && tcgetattr(box->prompt.tty_fd, &modes) == 0 &&
	       modes.c_lflag & ICANON;
}

/* Asked about at every turn of the loop: it is looked at a few times a second. */
bool prompt_is_possible(struct box *box)
{
	struct prompt *prompt = &box->prompt;
	uint64_t now_ns = clock_monotonic_ns();

	if (prompt->is_tried && prompt->tty_fd < 0)
		return false;
	if (!prompt->looked_ns || now_ns - prompt->looked_ns > SETTLE_MS * (uint64_t)NS_PER_MS) {
		prompt->looked_ns = now_ns;
		prompt->was_possible = may_draw(box);
	}
	return prompt->was_possible;
}

/* A terminal that takes nothing now is one that nobody looks at. */
static void write_text(struct box *box, struct buf *text)
{
	if (buf_error(text) == 0)
		(void)!write(box->prompt.tty_fd, text->bytes, text->size);
}

void prompt_ring(struct box *box)
{
	struct prompt *prompt = &box->prompt;
	uint64_t now_ns = clock_monotonic_ns();

	if (!box->policy->policy->ask.bell || !open_terminal(box) || tcgetpgrp(prompt->tty_fd) != getpgrp() ||
	    (prompt->rung_ns && now_ns - prompt->rung_ns < RING_MS * (uint64_t)NS_PER_MS))
		return;
	prompt->rung_ns = now_ns;
	(void)!write(prompt->tty_fd, "\a", 1);
}

/* ---- what the sandbox writes ---- */

static struct relay *output_of(struct box *box, size_t i)
{
	struct command *command = box->commands[i / 2];

	return command && command->is_main ? &command->stdio.relays[i % 2 ? STDIO_ERR : STDIO_OUT] : NULL;
}

static void hold_output(struct box *box)
{
	for (size_t i = 0; i < 2 * BOX_COMMANDS_MAX; i++)
		if (output_of(box, i))
			relay_hold(output_of(box, i));
}

static int release_output(struct box *box)
{
	int first = 0;

	for (size_t i = 0; i < 2 * BOX_COMMANDS_MAX; i++) {
		int r = output_of(box, i) ? relay_release(output_of(box, i)) : 0;

		first = first < 0 ? first : r;
	}
	return first;
}

static bool is_output_taken(struct box *box)
{
	for (size_t i = 0; i < 2 * BOX_COMMANDS_MAX; i++)
		if (output_of(box, i) && !relay_is_taken(output_of(box, i)))
			return false;
	return true;
}

/* ---- one question ---- */

static struct question *find(struct box *box, uint32_t number)
{
	struct asking *asking = box->asking;

	for (size_t i = 0; asking && i < asking->question_count; i++)
		if (asking->questions[i]->number == number && asking->questions[i]->state == ASKING_WAITS)
			return asking->questions[i];
	return NULL;
}

static struct question *find_next(struct box *box)
{
	struct asking *asking = box->asking;
	struct question *next = NULL;

	for (size_t i = 0; asking && i < asking->question_count; i++) {
		struct question *question = asking->questions[i];

		if (question->state == ASKING_WAITS && !question->is_prompted &&
		    (!next || question->number < next->number))
			next = question;
	}
	return next;
}

/* Takes the prompt away, with this as the last word. */
static int leave(struct box *box, const char *why)
{
	struct prompt *prompt = &box->prompt;

	if (prompt->state == PROMPT_SHOWN && why)
		(void)!write(prompt->tty_fd, why, strlen(why));
	loop_remove(&box->loop, &prompt->source);
	prompt->state = PROMPT_IDLE;
	return release_output(box);
}

static const char choices[] = "    [y] once  [s] for this session  [n] no  [?] more, then Enter: ";

static void draw(struct box *box, const struct question *question)
{
	struct asking_question told = asking_tell(question, clock_monotonic_ns());
	cleanup_buf struct buf text;

	buf_init(&text, TEXT_MAX);
	buf_put_text(&text, box->policy->policy->ask.bell ? "\a\natoll asks, for " : "\natoll asks, for ");
	buf_printf(&text, "%s:\n", box->request->session);
	asking_words_put_question(&text, &told, "", clock_realtime_ns());
	buf_put_text(&text, choices);
	write_text(box, &text);
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

static int answer(struct box *box, struct asking_reply *reply)
{
	struct prompt *prompt = &box->prompt;
	struct asking_answerer by = { "prompt", getuid(), 0 };
	struct err err = { 0 };
	uint32_t grant;
	int r;

	reply->number = prompt->number;
	reply->hash = prompt->hash.bytes;
	reply->waiting = prompt->waiting;
	r = asking_answer(box, reply, &by, &grant, &err);
	if (r < 0)
		return r;
	if (r)
		return leave(box, "    it was answered already, or is over\n");
	return leave(box, reply->is_allowed ? "    allowed\n" : "    denied\n");
}

static int terminal_ready(void *context, uint32_t events)
{
	static const char help[] =
		"    y lets through what waits now, s the same thing until the sandbox ends; n is remembered.\n"
		"    `atoll approve` in another terminal knows more ways; without an answer it is refused.\n";
	struct box *box = context;
	struct asking_reply reply = { 0 };
	char line[LINE_SIZE];
	ssize_t n = read(box->prompt.tty_fd, line, sizeof line);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0 || events & ~(uint32_t)EPOLLIN)
		return leave(box, NULL);
	if (read_choice(line, (size_t)n, &reply))
		return answer(box, &reply);
	(void)!write(box->prompt.tty_fd, help, sizeof help - 1);
	(void)!write(box->prompt.tty_fd, choices, sizeof choices - 1);
	return 0;
}

static int show(struct box *box)
{
	struct prompt *prompt = &box->prompt;
	const struct question *question = find(box, prompt->number);

	if (!question || !may_draw(box))
		return leave(box, NULL);
	prompt->hash = question->hash;
	prompt->waiting = (uint32_t)question->waiting_count;
	draw(box, question);
	if (tcdrain(prompt->tty_fd) < 0 || tcflush(prompt->tty_fd, TCIFLUSH) < 0)
		return leave(box, NULL);
	prompt->state = PROMPT_SHOWN;
	prompt->source = (struct loop_source){ .fd = prompt->tty_fd, .events = EPOLLIN, .ready = terminal_ready,
					       .context = box };
	return loop_add(&box->loop, &prompt->source);
}

static int begin(struct box *box, uint64_t now_ns)
{
	struct prompt *prompt = &box->prompt;
	struct question *question = box->asking && box->asking->waiting_count ? find_next(box) : NULL;

	if (!question)
		return 0;
	question->is_prompted = true;
	if (!prompt_is_possible(box))
		return 0;
	prompt->number = question->number;
	prompt->state = PROMPT_SETTLING;
	prompt->since_ns = now_ns;
	hold_output(box);
	return 0;
}

int prompt_check(struct box *box, uint64_t now_ns)
{
	struct prompt *prompt = &box->prompt;
	uint64_t held_ms = (now_ns - prompt->since_ns) / NS_PER_MS;

	if (prompt->state == PROMPT_IDLE)
		return begin(box, now_ns);
	if (!find(box, prompt->number))
		return leave(box, "\n    it was answered elsewhere, or is over\n");
	if (prompt->state == PROMPT_SHOWN)
		return 0;
	if (held_ms >= SETTLE_MS && is_output_taken(box))
		return show(box);
	return held_ms >= GIVE_UP_MS ? leave(box, NULL) : 0;
}

int prompt_timeout_ms(const struct box *box)
{
	return box->prompt.state == PROMPT_SETTLING ? LOOK_MS : -1;
}

void prompt_done(struct box *box)
{
	if (box->prompt.state != PROMPT_IDLE)
		(void)!leave(box, "\n");
	close_fd(&box->prompt.tty_fd);
}
