/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the person sees at the moment and has chosen: the list, the sandbox that is selected in it, its details, and
 * what is being typed. view.c has the keys, draw.c the picture.
 */

#include "prog/atoll-top/columns.h"
#include "prog/atoll-top/events.h"
#include "prog/atoll-top/inbox.h"

enum view_mode {
	VIEW_LIST,
	VIEW_HELP,
	VIEW_FILTER,             /* the filter is being typed */
	VIEW_STOP,               /* "stop …? y/n" */
};

enum { VIEW_FILTER_SIZE = 64 };

struct view {
	struct inbox *inbox;
	struct events events;
	char logged[SESSION_ID_SIZE];        /* whose they are */
	enum view_mode mode;
	size_t help_first;                   /* the first line of the help that is on the screen */
	bool has_details, is_done;
	bool has_chosen;                     /* a sandbox: else the first one is selected, whichever it is */
	struct columns_order order;          /* its filter is the one below */
	char filter[VIEW_FILTER_SIZE];
	uint32_t pace_ms;
	struct row *shown[TOP_SESSIONS_MAX]; /* sorted and filtered; NULL when a row may be gone */
	size_t count;
	size_t at, first;                    /* the selected one, and the first that is on the screen */
	char selected[SESSION_ID_SIZE];      /* "": none */
	char watched[SESSION_ID_SIZE];       /* whose log was asked for last; "": nobody's */
	bool has_seen_question;              /* the whole of it is on the screen */
	unsigned asked_round;                /* in which what is open was asked for */
	uint64_t watch_ns;                   /* when to ask for those of the selected one; 0: nothing to ask */
	char notice[INBOX_NOTICE_SIZE];      /* the last line; "": none */
};

/* A key and what it does; for the help too. */
struct view_key {
	int key, other;          /* other: does the same; 0: none */
	const char *label, *help; /* NULL: not in the help */
	void (*press)(struct view *view, int key);
};
extern const struct view_key view_keys[];
extern const size_t view_key_count;

void view_init(struct view *view, struct inbox *inbox, const struct columns_order *order, uint32_t pace_ms);

/* Something was told: sorts again, keeps what is selected, takes a notice over. */
void view_update(struct view *view);

/* A key of terminal_key(). */
void view_press(struct view *view, int key);

/* Asks for what the details need, where it is time to. How many ms until then; -1: nothing to do. */
int view_look(struct view *view, uint64_t now_ns);

/* The selected sandbox, or NULL. */
struct row *view_selected(const struct view *view);

/* Draws it all. */
void draw(struct view *view);

/* How many lines of the list there is room for. */
size_t draw_list_rows(const struct view *view);

/* How many lines of the help fit on the screen, and the first one from which the rest fits (0: all of it does). */
size_t draw_help_rows(void);
size_t draw_help_last(void);
