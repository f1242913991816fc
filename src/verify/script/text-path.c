/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "verify/script/text.h"

static const struct value *plain_text(struct script *script, const char *text)
{
	return value_text(script->arena, text, strlen(text), 0);
}

const struct value *text_join_paths(struct script *script, const struct call *call)
{
	const struct value *all = call->self && call->self->kind == VALUE_TEXT ? call->self : NULL;
	const struct value *slash = plain_text(script, "/");

	for (size_t i = 0; i < call->count; i++) {
		const struct value *part = call->arguments[i];
		bool starts = part->kind == VALUE_TEXT && part->size &&
			      (part->text[0] == '/' || part->text[0] == '~');

		all = !all || starts
			      ? part
			      : value_concat(script->arena, value_concat(script->arena, all, slash), part);
	}
	return all ? all : plain_text(script, ".");
}

const struct value *text_make_path(struct script *script, const struct call *call)
{
	return value_with_name(script->arena, text_join_paths(script, call), "pathlib.Path()");
}

const struct value *text_home(struct script *script, const struct call *call)
{
	return value_with_name(script->arena, plain_text(script, "~"),
			       str_equal(call->callee->name, "os.homedir") ? NULL : "pathlib.Path()");
}

/* The folder that the program is in; what it is called nobody knows. */
const struct value *text_here(struct script *script, const struct call *call)
{
	bool is_path = str_has_prefix(call->callee->name, "pathlib.");

	return value_with_name(script->arena, plain_text(script, "."), is_path ? "pathlib.Path()" : NULL);
}

const struct value *text_user_packages(struct script *script, const struct call *call)
{
	return plain_text(script, "~/.local/lib/python3/site-packages");
}

const struct value *text_module_file(struct script *script, const char *folder, const struct value *name)
{
	const struct value *path = value_text(script->arena, folder, strlen(folder), 0);

	return value_concat(script->arena, value_concat(script->arena, path, name), &value_nothing);
}

/* inspect.getfile(json): where installed modules are. */
const struct value *text_file_of(struct script *script, const struct call *call)
{
	const struct value *module = text_first(call);

	return module->name ? text_module_file(script, "/usr/lib/python3/dist-packages/",
						  plain_text(script, module->name))
			    : NULL;
}

/* "$HOME/x", "${HOME}/x" */
const struct value *text_expand(struct script *script, const struct call *call)
{
	uint32_t size;
	const char *text = text_exact(script, text_first(call), &size);

	if (text && (str_has_prefix(text, "$HOME") || str_has_prefix(text, "${HOME}")))
		return value_concat(script->arena, plain_text(script, "~"),
				    plain_text(script, strchr(text, 'E') + (text[1] == '{' ? 2 : 1)));
	return text_first(call);
}
