/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-top/view.h"

#include <string.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll-top/terminal.h"

/* Who walks through the list does not want each log on the way. */
enum { SETTLE_MS = 150, READ_MS = 1000, NS_PER_MS = 1000000 };

struct row *view_selected(const struct view *view)
{
	return view->at < view->count ? view->shown[view->at] : NULL;
}

static void say(struct view *view, const char *text)
{
	if (str_copy(view->notice, sizeof view->notice, text) < 0)
		view->notice[0] = 0;
}

/* ---- what is selected ---- */

static void scroll(struct view *view)
{
	size_t room = draw_list_rows(view);

	if (view->at < view->first)
		view->first = view->at;
	if (room && view->at >= view->first + room)
		view->first = view->at - room + 1;
	if (view->first + room > view->count)
		view->first = view->count > room ? view->count - room : 0;
}

static void select_at(struct view *view, size_t at)
{
	struct row *row;

	view->at = at < view->count ? at : view->count ? view->count - 1 : 0;
	row = view_selected(view);
	memcpy(view->selected, row ? row->id : "", row ? SESSION_ID_SIZE : 1);
	if (view->has_details && !str_equal(view->selected, view->watched))
		view->watch_ns = clock_monotonic_ns() + SETTLE_MS * (uint64_t)NS_PER_MS;
	scroll(view);
}

/* Once a round, and only while somebody looks. */
static void ask_what_is_open(struct view *view)
{
	const struct row *row = view_selected(view);

	if (view->asked_round == view->inbox->rounds)
		return;
	view->asked_round = view->inbox->rounds;
	if (view->has_details && row && (row->now.questions || view->inbox->question.id[0]))
		(void)!inbox_ask(view->inbox, TOP_ASK, row->id);
}

void view_update(struct view *view)
{
	size_t at = view->has_chosen ? view->at : 0;

	view->count = columns_sort(&view->inbox->rows, &view->order, view->shown);
	for (size_t i = 0; view->has_chosen && i < view->count; i++)
		if (str_equal(view->shown[i]->id, view->selected))
			at = i;
	select_at(view, at);
	ask_what_is_open(view);
	if (view->mode == VIEW_STOP && !view_selected(view))
		view->mode = VIEW_LIST;
	if (!str_equal(view->logged, view->inbox->events_id)) {
		events_clear(&view->events);
		memcpy(view->logged, view->inbox->events_id, SESSION_ID_SIZE);
	}
	if (view->inbox->notice[0]) {
		say(view, view->inbox->notice);
		view->inbox->notice[0] = 0;
	}
}

int view_look(struct view *view, uint64_t now_ns)
{
	const char *wanted = view->has_details ? view->selected : "";

	if (!view->watch_ns)
		return -1;
	if (now_ns < view->watch_ns)
		return (int)((view->watch_ns - now_ns) / NS_PER_MS) + 1;
	view->watch_ns = 0;
	if (str_equal(wanted, view->watched))
		return -1;
	if (inbox_ask(view->inbox, TOP_WATCH, *wanted ? wanted : NULL) < 0) {
		view->watch_ns = now_ns + SETTLE_MS * (uint64_t)NS_PER_MS;
		return SETTLE_MS;
	}
	view->inbox->events_id[0] = 0;
	close_fd(&view->inbox->events_fd);
	memcpy(view->watched, wanted, strlen(wanted) + 1);
	return -1;
}

/* ---- keys ---- */

static void press_quit(struct view *view, int key)
{
	view->is_done = true;
}

static void press_help(struct view *view, int key)
{
	view->mode = VIEW_HELP;
	view->help_first = 0;
}

static void press_move(struct view *view, int key)
{
	size_t page = draw_list_rows(view), last = view->count ? view->count - 1 : 0;

	view->has_chosen = true;
	if (key == KEY_OF_UP || key == 'k')
		select_at(view, view->at ? view->at - 1 : 0);
	else if (key == KEY_OF_DOWN || key == 'j')
		select_at(view, view->at + 1);
	else if (key == KEY_OF_PAGE_UP)
		select_at(view, view->at > page ? view->at - page : 0);
	else if (key == KEY_OF_PAGE_DOWN)
		select_at(view, view->at + page);
	else
		select_at(view, key == KEY_OF_HOME || key == 'g' ? 0 : last);
}

static void press_details(struct view *view, int key)
{
	view->has_chosen = true;
	view->has_details = key != KEY_OF_ESCAPE && !view->has_details;
	view->watch_ns = clock_monotonic_ns();
	scroll(view);
}

static void sort_by(struct view *view, int column)
{
	view->order.column = (enum column)column;
	view_update(view);
	scroll(view);
}

static void press_next_column(struct view *view, int key)
{
	int step = key == '<' || key == KEY_OF_LEFT ? COLUMN_COUNT - 1 : 1;

	sort_by(view, ((int)view->order.column + step) % COLUMN_COUNT);
}

static void press_reverse(struct view *view, int key)
{
	view->order.is_reversed = !view->order.is_reversed;
	view_update(view);
}

static void press_filter(struct view *view, int key)
{
	view->mode = VIEW_FILTER;
}

static void press_stop(struct view *view, int key)
{
	view->has_chosen = true;
	if (view_selected(view))
		view->mode = VIEW_STOP;
}

/* Who presses a key answers what they have read, not what has just taken its place. */
static void press_answer(struct view *view, int key)
{
	const struct inbox_question *question = &view->inbox->question;
	struct row *row = view_selected(view);

	if (!view->has_details || !row || !str_equal(question->id, row->id))
		say(view, "open the details of a sandbox that asks");
	else if (!question->is_whole || !view->has_seen_question)
		say(view, "it is too long to be shown here: `atoll ask`");
	else if (clock_monotonic_ns() - question->since_ns < READ_MS * (uint64_t)NS_PER_MS)
		say(view, "read the question first");
	else if (inbox_answer(view->inbox, key == 'y') < 0)
		say(view, "busy; try again");
}

static void press_now(struct view *view, int key)
{
	if (inbox_ask(view->inbox, TOP_NOW, NULL) < 0)
		say(view, "busy");
}

static void press_pace(struct view *view, int key)
{
	uint32_t ms = key == '+' ? view->pace_ms / 2 : view->pace_ms * 2;
	char text[64];

	if (ms < TOP_PACE_MIN_MS || ms > TOP_PACE_MAX_MS || inbox_set_pace(view->inbox, ms) < 0)
		return;
	view->pace_ms = ms;
	if (str_format(text, sizeof text, "every %u ms", ms) == 0)
		say(view, text);
}

static void press_repaint(struct view *view, int key)
{
	terminal_repaint();
}

const struct view_key view_keys[] = {
	{ KEY_OF_UP, 'k', "up, k", "the sandbox above", press_move },
	{ KEY_OF_DOWN, 'j', "down, j", "the sandbox below", press_move },
	{ KEY_OF_PAGE_UP, 0, NULL, NULL, press_move },
	{ KEY_OF_PAGE_DOWN, 0, NULL, NULL, press_move },
	{ KEY_OF_HOME, 'g', "home, g", "the first", press_move },
	{ KEY_OF_END, 'G', "end, G", "the last", press_move },
	{ KEY_OF_ENTER, 'l', "enter, l", "its limits and its log; once more: back", press_details },
	{ KEY_OF_ESCAPE, 0, NULL, NULL, press_details },
	{ '>', KEY_OF_RIGHT, "<, >", "sort by the next column", press_next_column },
	{ '<', KEY_OF_LEFT, NULL, NULL, press_next_column },
	{ 'r', 0, "r", "the other way round", press_reverse },
	{ '/', 'f', "/, f", "only those with a text in them", press_filter },
	{ 'x', 0, "x", "stop it", press_stop },
	{ 'y', 0, "y, n", "in its details: allow what it asks, once, or refuse it", press_answer },
	{ 'n', 0, NULL, NULL, press_answer },
	{ ' ', 0, "space", "look now", press_now },
	{ '+', 0, "+, -", "look more often, less often", press_pace },
	{ '-', 0, NULL, NULL, press_pace },
	{ 'L' - '@', 0, "ctrl-l", "draw it all again", press_repaint },
	{ '?', 'h', "?, h", "this help", press_help },
	{ 'q', 0, "q", "quit", press_quit },
};
const size_t view_key_count = ARRAY_SIZE(view_keys);

static void press_in_list(struct view *view, int key)
{
	view->notice[0] = 0;
	for (size_t i = 0; i < view_key_count; i++)
		if (key == view_keys[i].key || (view_keys[i].other && key == view_keys[i].other)) {
			view_keys[i].press(view, key);
			return;
		}
	for (int i = 0; i < COLUMN_COUNT; i++)
		if (key == columns[i].key)
			sort_by(view, i);
}

/* Keys that move scroll where not all of it fits; every other one leaves it. */
static void press_in_help(struct view *view, int key)
{
	size_t rows = draw_help_rows(), last = draw_help_last(), at = view->help_first;

	if (key == KEY_OF_DOWN || key == 'j')
		at++;
	else if (key == KEY_OF_UP || key == 'k')
		at -= at > 0;
	else if (key == KEY_OF_PAGE_DOWN || key == ' ')
		at += rows;
	else if (key == KEY_OF_PAGE_UP)
		at -= at > rows ? rows : at;
	else if (key == KEY_OF_HOME || key == 'g')
		at = 0;
	else if (key == KEY_OF_END || key == 'G')
		at = last;
	else
		last = 0;
	if (!last)
		view->mode = VIEW_LIST;
	view->help_first = at < last ? at : last;
}

static void press_in_filter(struct view *view, int key)
{
	size_t length = strlen(view->filter);

	if (key == KEY_OF_ENTER || key == KEY_OF_ESCAPE)
		view->mode = VIEW_LIST;
	if (key == KEY_OF_ESCAPE)
		view->filter[0] = 0;
	else if (key == KEY_OF_BACKSPACE && length)
		view->filter[length - 1] = 0;
	else if (key >= ' ' && key < 0x7f && length + 1 < sizeof view->filter)
		view->filter[length] = (char)key, view->filter[length + 1] = 0;
	view_update(view);
}

static void press_in_stop(struct view *view, int key)
{
	struct row *row = view_selected(view);

	view->mode = VIEW_LIST;
	if ((key == 'y' || key == 'Y') && row && inbox_ask(view->inbox, TOP_STOP, row->id) < 0)
		say(view, "busy; try again");
}

void view_press(struct view *view, int key)
{
	static void (*const press[])(struct view *, int) = {
		[VIEW_LIST] = press_in_list, [VIEW_HELP] = press_in_help, [VIEW_FILTER] = press_in_filter,
		[VIEW_STOP] = press_in_stop,
	};

	if (key == KEY_OF_RESIZE)
		scroll(view);
	else
		press[view->mode](view, key);
}

void view_init(struct view *view, struct inbox *inbox, const struct columns_order *order, uint32_t pace_ms)
{
	*view = (struct view){ .inbox = inbox, .order = *order, .pace_ms = pace_ms };
	if (str_copy(view->filter, sizeof view->filter, order->filter) < 0)
		view->filter[0] = 0;
	view->order.filter = view->filter;
}
