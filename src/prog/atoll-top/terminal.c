/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-top/terminal.h"

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"

enum { LINE_MAX = 4096, ESCAPE_MS = 25 };

static SCREEN *screen;
static bool has_colour;

static const struct {
	short colour;            /* COLOR_*, -1: none */
	attr_t with, without;    /* attributes with and without colours */
} styles[STYLE_COUNT] = {
	[STYLE_PLAIN] = { -1, A_NORMAL, A_NORMAL },
	[STYLE_FAINT] = { -1, A_DIM, A_DIM },
	[STYLE_WARNING] = { COLOR_YELLOW, A_NORMAL, A_BOLD },
	[STYLE_ALARM] = { COLOR_RED, A_BOLD, A_BOLD | A_UNDERLINE },
	[STYLE_TITLE] = { COLOR_CYAN, A_BOLD, A_BOLD },
	[STYLE_HEADING] = { -1, A_REVERSE, A_REVERSE },
	[STYLE_KEY] = { COLOR_CYAN, A_NORMAL, A_BOLD },
};

int terminal_open(struct err *err)
{
	const char *no_colour = getenv("NO_COLOR");

	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		err_set(err, ERR_USAGE, EINVAL, "top", "there is no description of this terminal (TERM)");
		err_hint(err, "`atoll top --once` needs none");
		return -EINVAL;
	}
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	has_colour = !(no_colour && *no_colour) && has_colors() && start_color() == OK && use_default_colors() == OK;
	for (short i = 0; has_colour && i < STYLE_COUNT; i++)
		if (styles[i].colour >= 0)
			init_pair((short)(i + 1), styles[i].colour, -1);
	return 0;
}

void terminal_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

size_t terminal_rows(void)
{
	return LINES > 0 ? (size_t)LINES : 1;
}

size_t terminal_columns(void)
{
	return COLS > 0 ? (size_t)COLS : 1;
}

int terminal_key(void)
{
	static const struct {
		wint_t code;
		int key;
	} keys[] = {
		{ KEY_UP, KEY_OF_UP }, { KEY_DOWN, KEY_OF_DOWN }, { KEY_PPAGE, KEY_OF_PAGE_UP },
		{ KEY_NPAGE, KEY_OF_PAGE_DOWN }, { KEY_HOME, KEY_OF_HOME }, { KEY_END, KEY_OF_END },
		{ KEY_BACKSPACE, KEY_OF_BACKSPACE }, { KEY_RESIZE, KEY_OF_RESIZE }, { KEY_LEFT, KEY_OF_LEFT },
		{ KEY_RIGHT, KEY_OF_RIGHT }, { KEY_ENTER, KEY_OF_ENTER },
	};
	wint_t typed;
	int r = get_wch(&typed);

	if (r == OK)
		return typed == '\r' ? KEY_OF_ENTER : typed == 0x7f || typed == '\b' ? KEY_OF_BACKSPACE : (int)typed;
	for (size_t i = 0; r == KEY_CODE_YES && i < ARRAY_SIZE(keys); i++)
		if (keys[i].code == typed)
			return keys[i].key;
	/* A key that means nothing here is still one: another may follow. */
	return r == KEY_CODE_YES ? terminal_key() : KEY_OF_NOTHING;
}

void terminal_begin(void)
{
	erase();
}

void terminal_show(void)
{
	refresh();
}

void terminal_repaint(void)
{
	clearok(curscr, TRUE);
}

void terminal_put(const struct terminal_text *text)
{
	char memory[LINE_MAX];
	wchar_t wide[LINE_MAX];
	struct buf line;
	size_t room = text->column < terminal_columns() ? terminal_columns() - text->column : 0;
	attr_t attributes = has_colour ? styles[text->style].with : styles[text->style].without;
	short pair = has_colour && styles[text->style].colour >= 0 ? (short)(text->style + 1) : 0;

	if (!room || text->row >= terminal_rows())
		return;
	buf_init_fixed(&line, memory, sizeof memory);
	text_put(&line, text->text, text->width < room ? text->width : room, text->side);
	text_to_wide(buf_text(&line), wide, LINE_MAX);
	attr_set(attributes | (text->is_selected ? A_REVERSE : 0), pair, NULL);
	mvaddwstr((int)text->row, (int)text->column, wide);
	attr_set(A_NORMAL, 0, NULL);
}
