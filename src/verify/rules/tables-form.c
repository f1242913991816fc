/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "verify/rules/tables.h"

/*
 * Every row is its texts and one piece of bytes with its numbers. What does not fit is refused as a whole: a row that
 * stands in the wrong place would never be found.
 */

enum {
	ROW_TEXTS_MAX = 5,
	ROW_SIZE_MIN = 6, /* a name of no letters */
	TRAITS_ALL = (TRAIT_STARTS << 1) - 1,
	CONTEXT_ALL = (CONTEXT_INSTALL << 1) - 1,
};

/* How rows of one kind stand in a frame. */
struct row_form {
	size_t size;                    /* of the row's struct */
	size_t number_size;             /* of its numbers */
	bool is_unique;
	size_t texts[ROW_TEXTS_MAX];    /* offsets; the name is the first, which every row has at 0 */
	size_t text_count, needed;      /* the first so many are never NULL */
	void (*get_numbers)(const void *row, void *numbers);
	bool (*set_numbers)(void *row, const void *numbers); /* false: they mean nothing */
};

struct program_numbers {
	uint8_t kind, choice, like, recursive;
	uint32_t traits;
};

static void get_program(const void *from, void *to)
{
	const struct program_effect *row = from;

	*(struct program_numbers *)to = (struct program_numbers){
		(uint8_t)row->kind, (uint8_t)row->choice, (uint8_t)row->like, (uint8_t)row->recursive, row->traits,
	};
}

static bool set_program(void *to, const void *from)
{
	const struct program_numbers *numbers = from;
	struct program_effect *row = to;

	row->kind = (enum operation_kind)numbers->kind;
	row->choice = (enum operand_choice)numbers->choice;
	row->like = (enum program_like)numbers->like;
	row->recursive = (char)numbers->recursive;
	row->traits = numbers->traits;
	return numbers->kind < OPERATION_KIND_COUNT && numbers->choice < OPERAND_CHOICE_COUNT &&
	       numbers->like < PROGRAM_LIKE_COUNT && numbers->traits <= TRAITS_ALL;
}

static void get_transfer(const void *from, void *to)
{
	*(uint32_t *)to = ((const struct transfer_option *)from)->use;
}

static bool set_transfer(void *to, const void *from)
{
	uint32_t use = *(const uint32_t *)from;

	((struct transfer_option *)to)->use = (enum transfer_use)use;
	return use < TRANSFER_USE_COUNT;
}

struct wrapper_numbers {
	uint32_t context;
	uint8_t skips, is_shell, takes_input, has_assignments;
};

static void get_wrapper(const void *from, void *to)
{
	const struct wrapper *row = from;

	*(struct wrapper_numbers *)to = (struct wrapper_numbers){
		row->context, (uint8_t)row->skips, row->is_shell, row->takes_input, row->has_assignments,
	};
}

static bool set_wrapper(void *to, const void *from)
{
	const struct wrapper_numbers *numbers = from;
	struct wrapper *row = to;

	row->context = numbers->context;
	row->skips = numbers->skips;
	row->is_shell = numbers->is_shell == 1;
	row->takes_input = numbers->takes_input == 1;
	row->has_assignments = numbers->has_assignments == 1;
	return numbers->context <= CONTEXT_ALL && numbers->skips <= TABLE_SKIPS_MAX && numbers->is_shell <= 1 &&
	       numbers->takes_input <= 1 && numbers->has_assignments <= 1;
}

struct effect_numbers {
	uint8_t kind;
	int8_t target, second;
	uint8_t zero;
	uint32_t traits;
};

static void get_effect(const void *from, void *to)
{
	const struct effect *row = from;

	*(struct effect_numbers *)to = (struct effect_numbers){ (uint8_t)row->kind, row->target, row->second, 0,
								row->traits };
}

static bool is_place(int place)
{
	return place >= TARGET_LAST && place <= TABLE_PLACE_MAX;
}

static bool set_effect(void *to, const void *from)
{
	const struct effect_numbers *numbers = from;
	struct effect *row = to;

	row->kind = (enum effect_kind)numbers->kind;
	row->target = numbers->target;
	row->second = numbers->second;
	row->traits = numbers->traits;
	return numbers->kind < EFFECT_KIND_COUNT && is_place(numbers->target) && is_place(numbers->second) &&
	       numbers->traits <= TRAITS_ALL;
}

static bool set_language(uint32_t number, enum verify_language *language)
{
	*language = (enum verify_language)number;
	return number < LANGUAGE_COUNT;
}

static void get_code_option(const void *from, void *to)
{
	*(uint32_t *)to = ((const struct code_option *)from)->language;
}

static bool set_code_option(void *to, const void *from)
{
	return set_language(*(const uint32_t *)from, &((struct code_option *)to)->language);
}

static void get_editor_line(const void *from, void *to)
{
	*(uint32_t *)to = ((const struct editor_line *)from)->language;
}

static bool set_editor_line(void *to, const void *from)
{
	return set_language(*(const uint32_t *)from, &((struct editor_line *)to)->language);
}

static const struct row_form programs = {
	sizeof(struct program_effect), sizeof(struct program_numbers), false,
	{ 0, offsetof(struct program_effect, valued), offsetof(struct program_effect, only_with) }, 3, 2,
	get_program, set_program,
};
static const struct row_form transfers = {
	sizeof(struct transfer_option), sizeof(uint32_t), true, { 0 }, 1, 1, get_transfer, set_transfer,
};
static const struct row_form wrappers = {
	sizeof(struct wrapper), sizeof(struct wrapper_numbers), true,
	{ 0, offsetof(struct wrapper, valued), offsetof(struct wrapper, subcommand) }, 3, 2, get_wrapper, set_wrapper,
};
static const struct row_form trials = {
	sizeof(struct trial), 0, true,
	{ 0, offsetof(struct trial, letters), offsetof(struct trial, options), offsetof(struct trial, valued),
	  offsetof(struct trial, verbs) }, 5, 4,
};
static const struct row_form code_options = {
	sizeof(struct code_option), sizeof(uint32_t), false,
	{ 0, offsetof(struct code_option, begins), offsetof(struct code_option, option) }, 3, 2,
	get_code_option, set_code_option,
};
static const struct row_form editor_lines = {
	sizeof(struct editor_line), sizeof(uint32_t), true, { 0 }, 1, 1, get_editor_line, set_editor_line,
};
static const struct row_form calls = {
	sizeof(struct effect), sizeof(struct effect_numbers), true,
	{ 0, offsetof(struct effect, keyword), offsetof(struct effect, second_keyword),
	  offsetof(struct effect, detail) }, 4, 1, get_effect, set_effect,
};
static const struct row_form aliases = {
	sizeof(struct name_alias), 0, true, { 0, offsetof(struct name_alias, means) }, 2, 2,
};
static const struct row_form names = { sizeof(const char *), 0, false, { 0 }, 1, 1 };
static const struct row_form sorted_names = { sizeof(const char *), 0, true, { 0 }, 1, 1 };

static const char **text_of(void *row, size_t offset)
{
	return (const char **)((char *)row + offset);
}

static void put_rows(struct buf *out, const struct vec *rows, const struct row_form *form)
{
	frame_put_u32(out, (uint32_t)rows->count);
	for (size_t i = 0; i < rows->count; i++) {
		void *row = (char *)rows->items + i * form->size;
		_Alignas(uint64_t) uint8_t numbers[8];

		for (size_t text = 0; text < form->text_count; text++)
			frame_put_string(out, *text_of(row, form->texts[text]));
		if (!form->number_size)
			continue;
		form->get_numbers(row, numbers);
		frame_put_bytes(out, numbers, form->number_size);
	}
}

static bool get_row(struct frame *frame, void *row, const struct row_form *form)
{
	const void *numbers;
	_Alignas(uint64_t) uint8_t aligned[8];
	size_t size;

	for (size_t i = 0; i < form->text_count; i++) {
		*text_of(row, form->texts[i]) = frame_get_string(frame);
		if (i < form->needed && !*text_of(row, form->texts[i]))
			return false;
	}
	if (!form->number_size)
		return true;
	numbers = frame_get_bytes(frame, &size);
	if (!numbers || size != form->number_size)
		return false;
	memcpy(aligned, numbers, size);
	return form->set_numbers(row, aligned);
}

static bool get_rows(struct frame *frame, struct arena *arena, struct vec *rows, const struct row_form *form)
{
	uint32_t count = frame_get_u32(frame);
	char *items;

	/* More than there can be is refused before memory is taken for it. */
	if (frame->error || count > TABLE_ROWS_MAX || count > (frame->size - frame->at) / ROW_SIZE_MIN)
		return false;
	items = arena_alloc(arena, count * form->size + 1);
	if (!items)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!get_row(frame, items + i * form->size, form) || frame->error)
			return false;
	*rows = (struct vec){ items, count, count };
	return form == &names || tables_are_sorted(rows, form->size, form->is_unique);
}

/* What there is, in the order in which a frame has it. */
struct part {
	size_t offset;
	const struct row_form *form;
};

#define LANGUAGE_PARTS(language)                                                                                       \
	{ offsetof(struct tables, languages[language].calls), &calls },                                                \
	{ offsetof(struct tables, languages[language].aliases), &aliases },                                            \
	{ offsetof(struct tables, languages[language].grave), &names },                                                \
	{ offsetof(struct tables, languages[language].quiet), &names }

static const struct part parts[] = {
	{ offsetof(struct tables, programs), &programs },
	{ offsetof(struct tables, wrappers), &wrappers },
	{ offsetof(struct tables, trials), &trials },
	{ offsetof(struct tables, verbs_first), &sorted_names },
	{ offsetof(struct tables, code_options), &code_options },
	{ offsetof(struct tables, editors.names), &sorted_names },
	{ offsetof(struct tables, editors.options), &sorted_names },
	{ offsetof(struct tables, editors.lines), &editor_lines },
	{ offsetof(struct tables, transfers[TRANSFER_CURL]), &transfers },
	{ offsetof(struct tables, transfers[TRANSFER_WGET]), &transfers },
	LANGUAGE_PARTS(LANGUAGE_PYTHON),
	LANGUAGE_PARTS(LANGUAGE_JAVASCRIPT),
};

void tables_put(struct buf *out, const struct tables *tables)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		put_rows(out, (const struct vec *)((const char *)tables + parts[i].offset), parts[i].form);
}

bool tables_get(struct frame *frame, struct arena *arena, struct tables *tables)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct vec *rows = (struct vec *)((char *)tables + parts[i].offset);

		if (get_rows(frame, arena, rows, parts[i].form))
			continue;
		frame->error = frame->error ? frame->error : -EBADMSG;
		return false;
	}
	return true;
}

bool tables_are_whole(const struct tables *tables)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const struct vec *rows = (const struct vec *)((const char *)tables + parts[i].offset);

		if (!rows->count && parts[i].form != &names && parts[i].form != &sorted_names &&
		    parts[i].form != &aliases)
			return false;
	}
	return true;
}
