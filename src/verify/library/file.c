/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/library/library.h"
#include "verify/script/text.h"

#define FILE_SIZE_MIN (1ll << 40)

/* One operation for each path that it may be; the last one's index. */
static uint32_t add_paths(struct script *script, const struct call *call, enum operation_kind kind,
			  const struct value *path, uint32_t traits)
{
	uint32_t index = OPERATION_NONE;

	if (path->kind == VALUE_UNKNOWN && path->subject)
		path = path->subject;
	for (const struct value *one = path; one; one = one->other) {
		for (uint32_t i = 0; one->kind == VALUE_LIST && i < one->count && i < SCRIPT_REPEAT_MAX; i++)
			index = script_add(script, call, kind, one->items[i], traits);
		if (one->kind != VALUE_LIST || one->is_cut)
			index = script_add(script, call, kind, one, traits);
	}
	return index;
}

static bool is_true(const struct value *value)
{
	return value && value->kind == VALUE_NUMBER && value->number;
}

/* fs.createReadStream("/dev/zero"): all of what has no end, where nothing says how much of it. */
static void tell_endless(struct script *script, const struct call *call, const struct value *path)
{
	static const char *const endless[] = { "/dev/full", "/dev/random", "/dev/urandom", "/dev/zero" };
	uint32_t size;

	if (!script->language->index_is_member || !value_is_exact(path) || call_argument(call, TARGET_NONE, "end"))
		return;
	if (names_find(endless, ARRAY_SIZE(endless), value_chars(script->arena, path, &size)) >= 0)
		script_add(script, call, OP_ALLOCATE, value_number(script->arena, INT64_MAX), 0);
}

/* if name in ("id_rsa", ".netrc"): a file of those that a search comes upon is read where it has one of these names. */
static void tell_sought(struct script *script, const struct call *call, const struct value *path, uint32_t index)
{
	if (!value_is_exact(path) && path->origins.count && script->context & CONTEXT_LOOP)
		library_add_conditions(script, call, index);
}

static const struct value *do_read(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *path = call->count || !effect->detail
					   ? library_target(call, effect)
					   : value_text(script->arena, effect->detail, strlen(effect->detail), 0);
	enum operation_kind kind = is_true(call_argument(call, TARGET_NONE, "inplace")) ? OP_WRITE : OP_READ;
	uint32_t index;

	tell_endless(script, call, path);
	index = add_paths(script, call, kind, path, effect->traits);
	tell_sought(script, call, path, index);
	return library_result(script, call, index, path);
}

static const struct value *do_write(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *path = library_target(call, effect);
	uint32_t index = add_paths(script, call, OP_WRITE, path, effect->traits);

	const struct value *size = strstr(effect->name, "runcate") ? call_argument(call, 1, NULL) : NULL;

	if (size && size->kind == VALUE_NUMBER && size->number >= FILE_SIZE_MIN)
		script_add(script, call, OP_ALLOCATE, size, 0);
	for (size_t i = 0; i < call->count; i++)
		if (call->arguments[i] != path)
			script_add_flow(script, call->arguments[i], index);
	library_keep_content(script, library_second(call, effect), index);
	return library_result(script, call, index, path);
}

/* os.O_WRONLY | os.O_CREAT: numbers that only their names tell. */
static bool names_what_writes(struct script *script, const struct call *call)
{
	static const char *const names[] = { "O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND" };
	const char *text = script_text(script, call->node);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strstr(text, names[i]))
			return true;
	return false;
}

/* Names in a directory: not known, but known to be below it. */
static const struct value *below(struct script *script, const struct value *directory)
{
	bool has_slash = directory->kind == VALUE_TEXT && directory->size &&
			 directory->text[directory->size - 1] == '/';
	const struct value *slash = value_text(script->arena, "/", has_slash ? 0 : 1, 0);

	return value_concat(script->arena, value_concat(script->arena, directory, slash), &value_nothing);
}

/* What goes through a directory gives one item, which stands for all. */
static const struct value *one_item(struct script *script, const struct call *call, const struct value *item)
{
	const struct value *list = value_list(script->arena, &item, 1);

	return value_with_name(script->arena, list,
			       value_name_join(script->arena, call->callee->name, "()", ""));
}

static const struct value *do_list(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *path = library_target(call, effect), *items[3] = { 0 };
	uint32_t index = add_paths(script, call, OP_READ, path, effect->traits);
	const struct value *item = below(script, path);

	if (effect->detail && str_equal(effect->detail, "name"))
		item = value_text_holes(script->arena, (char[]){ WORD_UNKNOWN, 0 }, 1, 0);
	item = value_with_origin(script->arena, item, index);
	if (effect->detail && str_equal(effect->detail, "tuple")) {
		items[0] = item;
		items[1] = items[2] = one_item(
			script, call, value_text_holes(script->arena, (char[]){ WORD_UNKNOWN, 0 }, 1, 0));
		item = value_list(script->arena, items, 3);
	}
	return one_item(script, call, item);
}

static const struct value *do_glob(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *pattern = library_target(call, effect);

	if (effect->target == TARGET_SELF)
		pattern = value_with_name(script->arena, below(script, pattern), "pathlib.Path()");
	return one_item(script, call, value_with_flags(script->arena, pattern, WORD_GLOB));
}

/* A file that becomes part of an archive. */
static const struct value *do_archive(struct script *script, struct call *call, const struct effect *effect)
{
	uint32_t from = add_paths(script, call, OP_READ, library_target(call, effect), TRAIT_RECURSIVE);

	for (uint32_t i = 0; call->self && i < call->self->origins.count; i++) {
		const struct operation *to =
			operations_get(script->walk->operations, call->self->origins.at[i]);

		if (to && to->kind == OP_WRITE)
			operations_add_flow(script->walk->operations, from, call->self->origins.at[i]);
	}
	return &value_nothing;
}

/* "w", "a+", "rb", O_WRONLY: what a mode says. Python's default and that of fs.open() is to read. */
static const struct value *do_open(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *path = library_target(call, effect), *mode = library_second(call, effect);
	uint32_t size, traits = 0;
	const char *text = mode->kind == VALUE_TEXT ? value_chars(script->arena, mode, &size) : "r";
	bool writes = strpbrk(text, "wax+") || names_what_writes(script, call);

	if (!writes) {
		uint32_t index = add_paths(script, call, OP_READ, path, 0);

		tell_sought(script, call, path, index);
		return library_result(script, call, index, path);
	}
	if (strchr(text, 'a'))
		traits = TRAIT_APPENDS;
	else if (strchr(text, 'w'))
		traits = TRAIT_TRUNCATES;
	return library_result(script, call, add_paths(script, call, OP_WRITE, path, traits), path);
}

static const struct value *do_remove(struct script *script, struct call *call, const struct effect *effect)
{
	uint32_t traits = effect->traits;

	if (is_true(call_argument(call, TARGET_NONE, "recursive")))
		traits |= TRAIT_RECURSIVE;
	if (is_true(call_argument(call, TARGET_NONE, "force")) ||
	    is_true(call_argument(call, TARGET_NONE, "ignore_errors")))
		traits |= TRAIT_FORCE;
	return library_result(script, call,
			      add_paths(script, call, OP_REMOVE, library_target(call, effect), traits), NULL);
}

/* Modes are written in octal where people read them. */
static const struct value *mode_text(struct script *script, const struct value *mode)
{
	char *text;

	if (mode->kind != VALUE_NUMBER || mode->number < 0 || mode->number > 07777)
		return mode;
	text = arena_format(script->arena, "%o", (unsigned)mode->number);
	return text ? value_text(script->arena, text, strlen(text), 0) : mode;
}

static const struct value *owner_text(struct script *script, const struct call *call,
				      const struct effect *effect)
{
	const struct value *user = library_second(call, effect);
	const struct value *group = call_argument(call, effect->second + 1, "group");
	const struct value *text = value_concat(script->arena, user, value_text(script->arena, ":", 1, 0));

	return value_concat(script->arena, text, group ? group : &value_nothing);
}

static const struct value *do_permission(struct script *script, struct call *call,
					 const struct effect *effect)
{
	const struct value *path = library_target(call, effect);
	const struct value *mode = effect->traits & TRAIT_OWNER
					   ? owner_text(script, call, effect)
					   : mode_text(script, library_second(call, effect));

	if (path->kind == VALUE_UNKNOWN && path->subject)
		path = path->subject;
	for (const struct value *one = path; one; one = one->other)
		script_add_word(script, call, script_add(script, call, OP_PERMISSION, one, effect->traits),
				 mode);
	return &value_nothing;
}

static const struct value *do_copy(struct script *script, struct call *call, const struct effect *effect)
{
	uint32_t from = add_paths(script, call, OP_READ, library_target(call, effect),
				  effect->traits & TRAIT_RECURSIVE);
	const struct value *path = library_second(call, effect);
	uint32_t to;

	/* shutil.make_archive(NAME, FORMAT, ROOT) writes NAME.FORMAT. */
	if (effect->detail)
		path = value_concat(script->arena,
				    value_concat(script->arena, path, value_text(script->arena, ".", 1, 0)),
				    call_argument(call, 1, "format"));
	to = add_paths(script, call, OP_WRITE, path, TRAIT_TRUNCATES);
	operations_add_flow(script->walk->operations, from, to);
	return &value_nothing;
}

/* What is moved is gone where it was, but not lost. */
static const struct value *do_move(struct script *script, struct call *call, const struct effect *effect)
{
	uint32_t from = add_paths(script, call, OP_READ, library_target(call, effect), TRAIT_RECURSIVE);
	const struct value *path = library_second(call, effect);
	uint32_t to = add_paths(script, call, OP_WRITE, path, TRAIT_TRUNCATES);

	operations_add_flow(script->walk->operations, from, to);
	add_paths(script, call, OP_REMOVE, library_target(call, effect), 0);
	if (path->kind == VALUE_TEXT && path->size == strlen("/dev/null") &&
	    memcmp(path->text, "/dev/null", path->size) == 0)
		add_paths(script, call, OP_REMOVE, library_target(call, effect), TRAIT_RECURSIVE);
	return &value_nothing;
}

static const struct value *do_link(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *link = library_second(call, effect);

	for (const struct value *one = link; one; one = one->other)
		script_add_word(script, call, script_add(script, call, OP_WRITE, one, TRAIT_LINK),
				 library_target(call, effect));
	return &value_nothing;
}

/* os.chdir("/"), process.chdir(os.homedir()) */
static const struct value *do_enter(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *path = library_target(call, effect);
	struct word *directory;

	if (!value_is_exact(path) || !path->size || !strchr("/~", path->text[0]))
		return &value_nothing;
	directory = arena_alloc(script->arena, sizeof *directory);
	if (directory) {
		*directory = value_word(script->arena, path, script_span(script, call->node));
		script->walk->directory = directory;
	}
	return &value_nothing;
}

/* require.resolve("npm/x") */
static const struct value *do_module(struct script *script, struct call *call, const struct effect *effect)
{
	const struct value *name = library_target(call, effect);

	if (!value_is_exact(name) || !name->size || strchr("./", name->text[0]))
		return NULL;
	return text_module_file(script, effect->detail, name);
}

const library_handler library_file_handlers[EFFECT_KIND_COUNT] = {
	[EFFECT_READ] = do_read,
	[EFFECT_WRITE] = do_write,
	[EFFECT_OPEN] = do_open,
	[EFFECT_REMOVE] = do_remove,
	[EFFECT_PERMISSION] = do_permission,
	[EFFECT_COPY] = do_copy,
	[EFFECT_MOVE] = do_move,
	[EFFECT_LINK] = do_link,
	[EFFECT_LIST] = do_list,
	[EFFECT_GLOB] = do_glob,
	[EFFECT_ENTER] = do_enter,
	[EFFECT_MODULE] = do_module,
	[EFFECT_ARCHIVE] = do_archive,
};
