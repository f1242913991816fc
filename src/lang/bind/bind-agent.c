/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "lang/bind/bind.h"

/* `agent:`: what it is started by, where it keeps its state, and which settings it has inside alone. */

enum { WORDS_MAX = 64 };

static void bind_word(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_named *word;

	if (!node->text[0] && !binder->draft->agent_command.count) {
		bind_expected(binder, node, "a program");
		return;
	}
	if (binder->draft->agent_command.count == WORDS_MAX) {
		bind_expected(binder, node, "at most 64 words");
		return;
	}
	word = bind_add(binder, &binder->draft->agent_command, sizeof *word, node);
	if (word)
		word->name = word->from.text = node->text;
}

static struct draft_agent_file *file_of(struct binder *binder)
{
	return (struct draft_agent_file *)binder->rule;
}

/* An absolute path; NULL where it means nothing here, or is wrong, and then that is said. */
static const char *resolve(struct binder *binder, const struct node *node)
{
	struct pattern pattern;
	const char *problem = pattern_resolve(binder->arena, &binder->scope, PATTERN_ANYWHERE, node->text, &pattern);

	if (!problem && pattern.is_glob)
		problem = "this is one file or directory, and no glob";
	if (problem)
		diag_add(binder->diags, node->place, "\"%.80s\": %s", node->text, problem);
	return problem ? NULL : pattern.text;
}

/* What is made on the host is made in the home and nowhere else. */
static void bind_state_path(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_agent_file *file = file_of(binder);
	const char *home = binder->scope.home, *path = resolve(binder, node);

	file->from.text = node->text;
	file->from.place = node->place;
	file->is_directory = str_has_suffix(node->text, "/");
	if (!path)
		return;
	if (!home[0] || str_equal(path, home) || !path_is_below(path, home))
		bind_expected(binder, node, "a path below ~, which ends in / where it is a directory");
	else
		file->path = path;
}

static void bind_settings_path(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_agent_file *file = file_of(binder);
	const char *path = resolve(binder, node);

	file->from.text = node->text;
	file->from.place = node->place;
	if (path && (str_equal(path, "/etc") || !path_is_below(path, "/etc") || str_has_suffix(node->text, "/")))
		bind_expected(binder, node, "a file below /etc");
	else
		file->path = path;
}

static void bind_content(struct binder *binder, const struct key *key, const struct node *node)
{
	if (strlen(node->text) > AGENT_CONTENT_MAX)
		bind_expected(binder, node, "a text of at most 4096 bytes");
	else
		file_of(binder)->content = node->text;
}

static const struct key state_item_keys[] = {
	{ "path", KEY_SCALAR, bind_state_path },
	{ "content", KEY_SCALAR, bind_content },
};

static const struct key settings_item_keys[] = {
	{ "path", KEY_SCALAR, bind_settings_path },
	{ "content", KEY_SCALAR, bind_content },
};

static struct draft_agent_file *add_file(struct binder *binder, struct vec *vec, const struct key *keys,
					 const struct node *node)
{
	struct draft_agent_file *file = bind_add(binder, vec, sizeof *file, node);

	if (!file)
		return NULL;
	binder->rule = &file->from;
	bind_item(binder, keys, 2, node);
	if (!file->from.text[0] && node->kind == NODE_MAP)
		diag_add(binder->diags, node->place, "this has no \"path\"");
	return file;
}

static void bind_state(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_agent_file *file = add_file(binder, &binder->draft->agent_state, state_item_keys, node);

	if (file && file->is_directory && file->content)
		diag_add(binder->diags, node->place, "\"%.80s\" is a directory, and has no content", file->from.text);
}

static void bind_settings(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_agent_file *file = add_file(binder, &binder->draft->agent_settings, settings_item_keys, node);

	if (file && file->path && !file->content)
		diag_add(binder->diags, node->place, "\"%.80s\" needs its \"content\"", file->from.text);
}

const struct key agent_keys[] = {
	{ "command", KEY_SCALARS, bind_word },
	{ "state", KEY_LIST, bind_state },
	{ "settings", KEY_LIST, bind_settings },
};
const size_t agent_key_count = ARRAY_SIZE(agent_keys);
