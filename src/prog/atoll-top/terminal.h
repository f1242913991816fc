/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The screen, through curses, which sends over the line only what has changed. Colours only where the terminal has them
 * and the user wants them; else bold, reverse and underline say the same. Nothing else includes curses.
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "prog/atoll-top/columns.h"

enum terminal_style {
	STYLE_PLAIN, STYLE_FAINT, STYLE_WARNING, STYLE_ALARM, STYLE_TITLE, STYLE_HEADING, STYLE_KEY, STYLE_COUNT,
};

/* Keys beyond characters. */
enum terminal_key {
	KEY_OF_NOTHING = 0, KEY_OF_UP = -1, KEY_OF_DOWN = -2, KEY_OF_PAGE_UP = -3, KEY_OF_PAGE_DOWN = -4,
	KEY_OF_HOME = -5, KEY_OF_END = -6, KEY_OF_BACKSPACE = -7, KEY_OF_RESIZE = -8, KEY_OF_LEFT = -9,
	KEY_OF_RIGHT = -10,
	KEY_OF_ESCAPE = 27, KEY_OF_ENTER = '\n',
};

/* Before confinement: reads the terminal's description. ERR_USAGE where there is none. */
int terminal_open(struct err *err) MUST_USE;
void terminal_close(void);

size_t terminal_rows(void);
size_t terminal_columns(void);

/* The next key that was typed: a character, or an enum terminal_key; KEY_OF_NOTHING: none. */
int terminal_key(void);

/* A picture is begun, written, and shown: only what differs from the one before goes out. */
void terminal_begin(void);
void terminal_show(void);

/* Everything once more, whatever others have written over it. */
void terminal_repaint(void);

/*
 * Text at a place, cut or filled to width, in a style. is_selected: on the bar of the selection. The text may be
 * hostile, but is escaped.
 */
struct terminal_text {
	size_t row, column, width;
	const char *text;
	enum terminal_style style;
	enum text_side side;
	bool is_selected;
};
void terminal_put(const struct terminal_text *text);
