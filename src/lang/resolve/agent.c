/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "lang/resolve/chain.h"

/* `agent:` of all texts: what a later one says of a path replaces what the ones before said. */

static bool is_replaced(const struct draft_agent_file *file, const struct vec *all)
{
	const struct draft_agent_file *end = (const struct draft_agent_file *)all->items + all->count;

	for (const struct draft_agent_file *later = file + 1; later < end; later++)
		if (str_equal(later->path, file->path))
			return true;
	return false;
}

static void check_count(struct lang *lang, const struct vec *all)
{
	const struct draft_agent_file *files = all->items;

	if (all->count > AGENT_FILES_MAX)
		diag_add(&lang->diags, files[AGENT_FILES_MAX].from.place, "at most %d files or directories of an agent",
			 AGENT_FILES_MAX);
}

static void add_file(struct lang *lang, struct vec *out, const struct draft_agent_file *file)
{
	vec_add_text(&lang->arena, out, file->path);
	vec_add_text(&lang->arena, out, file->content ? file->content : "");
}

/* As JSON and TOML have it between double quotes: no name of a directory is anything but text there. */
static void put_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			buf_printf(out, "\\u%04x", (unsigned char)*text);
		else
			buf_printf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	}
}

/* With the project's path in the place of each {project}. */
static const char *fill_in(struct lang *lang, const struct draft_agent_file *file)
{
	static const char mark[] = "{project}";
	const char *at = file->content, *found;
	cleanup_buf struct buf out;

	buf_init(&out, AGENT_CONTENT_MAX + 1);
	for (; (found = strstr(at, mark)); at = found + strlen(mark)) {
		buf_put(&out, at, (size_t)(found - at));
		put_escaped(&out, lang->request.project);
	}
	buf_put_text(&out, at);
	if (!buf_error(&out))
		return arena_text_n(&lang->arena, out.bytes, out.size);
	diag_add(&lang->diags, file->from.place, "\"%.80s\" has more than %d bytes with the path of the project in it",
		 file->from.text, AGENT_CONTENT_MAX);
	return "";
}

struct agent_settings agent_finish(struct lang *lang)
{
	struct vec command = { 0 }, directories = { 0 }, files = { 0 }, settings = { 0 };

	check_count(lang, &lang->draft.agent_state);
	check_count(lang, &lang->draft.agent_settings);
	DRAFT_EACH(struct draft_named, word, &lang->draft.agent_command)
	vec_add_text(&lang->arena, &command, word->name);
	DRAFT_EACH(struct draft_agent_file, file, &lang->draft.agent_state)
	{
		if (!file->path || is_replaced(file, &lang->draft.agent_state))
			continue;
		if (file->is_directory)
			vec_add_text(&lang->arena, &directories, file->path);
		else
			add_file(lang, &files, file);
	}
	DRAFT_EACH(struct draft_agent_file, file, &lang->draft.agent_settings)
	if (file->path && file->content && !is_replaced(file, &lang->draft.agent_settings)) {
		vec_add_text(&lang->arena, &settings, file->path);
		vec_add_text(&lang->arena, &settings, fill_in(lang, file));
	}
	return (struct agent_settings){ vec_strings(&lang->arena, &command), vec_strings(&lang->arena, &directories),
					vec_strings(&lang->arena, &files), vec_strings(&lang->arena, &settings) };
}
