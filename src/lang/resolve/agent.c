/* SPDX-License-Identifier: Apache-2.0 */
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
	if (file->path && !is_replaced(file, &lang->draft.agent_settings))
		add_file(lang, &settings, file);
	return (struct agent_settings){ vec_strings(&lang->arena, &command), vec_strings(&lang->arena, &directories),
					vec_strings(&lang->arena, &files), vec_strings(&lang->arena, &settings) };
}
