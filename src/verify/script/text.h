/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Functions of Python and JavaScript that only make texts, lists and numbers of others: join, chr, base64,
 * split, replace, …. Done here as the language would, as far as what they are given is known, so that what
 * was taken apart or encoded is judged as what it becomes. Pure but for callbacks (map).
 */

#include "base/buf.h"
#include "verify/script/script.h"

struct text_function {
	const char *name;
	script_function function;
};
extern const struct text_function text_functions[];
extern const size_t text_function_count;

/* For these functions: the argument at a place (value_nothing); the first one, or what the method is called
 * on. */
const struct value *text_argument(const struct call *call, size_t at);
const struct value *text_first(const struct call *call);
/* The text's bytes when all of it is known, else NULL. */
const char *text_exact(struct script *script, const struct value *value, uint32_t *ret_size);

/* Those that decode (text-decode.c). What cannot be decoded is unknown, but known to have been hidden.
 */
const struct value *text_from_base64(struct script *script, const struct call *call);
const struct value *text_from_base32(struct script *script, const struct call *call);
const struct value *text_from_hex(struct script *script, const struct call *call);
const struct value *text_from_packed(struct script *script, const struct call *call); /* zlib and the like */
const struct value *text_from_codes(struct script *script,
				    const struct call *call); /* numbers of characters */
const struct value *text_from_codec(struct script *script,
				    const struct call *call); /* codecs.decode(x, name) */
const struct value *text_from_percent(struct script *script, const struct call *call);
const struct value *text_to_bytes(struct script *script, const struct call *call);
const struct value *text_decode(struct script *script, const struct call *call); /* x.decode(name) */

/* Paths (text-path.c): parts put together, with "~" for the home and "." for the folder that it is in. */
const struct value *text_join_paths(struct script *script, const struct call *call);
const struct value *text_make_path(struct script *script, const struct call *call); /* pathlib.Path(…) */
const struct value *text_home(struct script *script, const struct call *call);
const struct value *text_here(struct script *script, const struct call *call);
const struct value *text_expand(struct script *script, const struct call *call); /* "$HOME/x" */
const struct value *text_user_packages(struct script *script, const struct call *call);
/* The file of an installed module: below the folder, not known any further. */
const struct value *text_module_file(struct script *script, const char *folder, const struct value *name);
const struct value *text_file_of(struct script *script, const struct call *call); /* inspect.getfile(module) */

/* What such a call is worth; NULL where it is none of them. */
const struct value *text_call(struct script *script, struct call *call);

/* value[a:b:c], as far as the bounds are known. */
const struct value *text_slice(struct script *script, const struct value *value, uint32_t slice);

/* A literal's bytes from start to end: escapes resolved unless raw, and the NODE_PARTs among its children
 * filled in. */
const struct value *text_literal(struct script *script, uint32_t node, uint32_t start, uint32_t end,
				 bool is_raw);

/*
 * "…%s…" % arguments, "…{}…".format(arguments): what each place stands for put in, as far as both are known. What the
 * places have no argument for is a hole.
 */
const struct value *text_percent(struct script *script, const struct value *text,
				 const struct value *arguments);
const struct value *text_format(struct script *script, const struct value *text, const struct call *call);

/* A number as both languages write it: 12, 0x1f, 0b1, 0o7, 1_000, 1e9. Unknown for fractions. */
const struct value *text_number(struct script *script, const char *text);
