/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/command.h"

#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "verify/command/code-option.h"
#include "verify/command/effect.h"
#include "verify/command/effects.h"
#include "verify/command/trial.h"
#include "verify/command/unwrap.h"
#include "verify/model/argv.h"
#include "verify/model/decode.h"
#include "verify/model/words.h"
#include "verify/parse/judge.h"

enum { WRAPPERS_MAX = 32, ARGUMENTS_FROM_INPUT_MAX = 64 };

static struct word join_words(struct arena *arena, const struct word *words, size_t count)
{
	struct word_draft draft;

	word_begin(&draft, arena, (struct span){ words[0].span.start, words[count - 1].span.end });
	for (size_t i = 0; i < count; i++) {
		if (i)
			word_put(&draft, " ", 1);
		word_put_word(&draft, &words[i]);
	}
	return word_end(&draft);
}

static void run_code(struct walk *walk, struct command *command, uint32_t index, struct nested nested)
{
	struct operation *operation = operations_get(walk->operations, index);

	nested.context |= operation ? operation->context & ~(uint32_t)(CONTEXT_WRAPPER | CONTEXT_PIPE) : 0;
	nested.parent = index;
	nested.input = command->input;
	operations_add_traits(walk->operations, index, 0);
	walk_nested(walk, &nested);
	origins_join(&command->output, &nested.output);
}

/* What xargs -I calls the place of a name: "{}" where nothing else is said. */
static const char *place_of(const struct command *command, size_t end)
{
	for (size_t i = 1; i < end; i++) {
		const char *text = command->words[i].text;

		if (str_has_prefix(text, "-I"))
			return text[2] ? text + 2 : command->words[i + 1].text;
		if (str_has_prefix(text, "--replace="))
			return text + strlen("--replace=");
	}
	return "{}";
}

/* The places of `{}` become what find or xargs puts there. */
static void fill_places(struct walk *walk, struct command *inner, struct word *words, const struct word *filling,
			const char *mark)
{
	for (size_t i = 0; i < inner->count && *mark; i++) {
		const char *place = strstr(words[i].text, mark);
		struct word_draft draft;

		if (!place)
			continue;
		word_begin(&draft, walk->operations->arena, words[i].span);
		word_put(&draft, words[i].text, (size_t)(place - words[i].text));
		word_put_word(&draft, filling);
		word_put(&draft, place + strlen(mark), strlen(place + strlen(mark)));
		words[i] = word_end(&draft);
	}
}

/* Where find and fd look: the first operand, or for fd the one behind the pattern; 0: here. */
static size_t root_of(const struct command *command)
{
	size_t operands = 0;

	if (str_equal(program_name(command->words, command->count), "find"))
		return command->count > 1 && command->words[1].text[0] != '-' ? 1 : 0;
	for (size_t i = 1; i < command->count; i++) {
		size_t size = option_size(command->words, command->count, i, "d e E g j S t --type --extension");
		const char *text = command->words[i].text;

		if (str_equal(text, "-x") || str_equal(text, "-X") || str_equal(text, "--exec"))
			break;
		if (size)
			i += size - 1;
		else if (++operands == 2)
			return i;
	}
	return 0;
}

/* What find finds: below its first root, all or what a test picks. */
static struct word found_by(struct walk *walk, const struct command *command)
{
	struct word_draft draft;
	size_t root = root_of(command);
	bool is_picky = false;
	const char *name = NULL;

	for (size_t i = 1; i < command->count && !str_has_prefix(command->words[i].text, "-exec"); i++) {
		const char *text = command->words[i].text;

		/* All but some, how deep, files or folders: nearly all of it. */
		if (str_equal(text, "!") || str_equal(text, "-not") || str_equal(text, "-maxdepth") ||
		    str_equal(text, "-mindepth") || str_equal(text, "-mount") || str_equal(text, "-prune")) {
			i += *text == '!' || text[1] == 'n' ? 2 : 0;
			continue;
		}
		if ((str_equal(text, "-name") || str_equal(text, "-path")) && i + 1 < command->count)
			name = command->words[i + 1].text;
		is_picky |= text[0] == '-' && strchr("nimapsuercN", text[1]) && !str_has_prefix(text, "-print") &&
			    !str_has_prefix(text, "-xdev");
	}
	word_begin(&draft, walk->operations->arena, root ? command->words[root].span : command->span);
	if (root)
		word_put_word(&draft, &command->words[root]);
	else
		word_put(&draft, ".", 1);
	if (is_picky) {
		word_put(&draft, "/", 1);
		word_put_unknown(&draft, NULL, 0);
		if (name) {
			word_put(&draft, "/", 1);
			word_put(&draft, name, strlen(name));
		}
	}
	return word_end(&draft);
}

/*
 * The words that come from standard input: known ones as they are, else one that is not known. end: where the wrapper's
 * own words end.
 */
static size_t words_of_input(struct walk *walk, const struct command *command, size_t end, struct word *out, size_t max)
{
	bool is_whole = option_given(command->words, end, '0', "--null");
	bool is_by_line = option_given(command->words, end, 'I', "--replace") ||
			  option_given(command->words, end, 'd', "--delimiter");
	const char *breaks = is_whole ? "" : is_by_line ? "\n" : " \t\n";
	const struct word *document = command->document;
	size_t count = 0;

	if (!document || !word_is_exact(document)) {
		out[0] = word_unknown(walk->operations->arena, command->span, 0);
		out[0].origins = command->input;
		return 1;
	}
	for (const char *at = document->text; *at && count < max;) {
		size_t size = strcspn(at, breaks);
		struct word_draft draft;

		if (size) {
			word_begin(&draft, walk->operations->arena, document->span);
			word_put(&draft, at, size);
			draft.flags |= document->flags & WORD_FROM_DECODED;
			draft.origins = document->origins;
			out[count++] = word_end(&draft);
		}
		at += size + (at[size] != '\0');
	}
	return count;
}

/* xargs -a FILE: the list comes from a file. */
static void take_list(struct walk *walk, struct command *command, uint32_t index, size_t end)
{
	for (size_t i = 1; i + 1 < end; i++) {
		if (word_is(&command->words[i], "-a") || word_is(&command->words[i], "--arg-file"))
			origins_add(&command->input, effect_on(walk, index, OP_READ, &command->words[i + 1], 0));
	}
}

/* The command behind a wrapper, as a command of its own. */
static void run_inner(struct walk *walk, struct command *command, uint32_t index, const struct wrapped *wrapped)
{
	size_t count = wrapped->end - wrapped->first, extra = 0;
	struct word added[ARGUMENTS_FROM_INPUT_MAX], found;
	struct command inner = *command;
	struct word *words;
	uint32_t parent = walk->parent;

	if (wrapped->takes_input) {
		take_list(walk, command, index, wrapped->first);
		extra = words_of_input(walk, command, wrapped->first, added, ARRAY_SIZE(added));
	}
	words = arena_alloc(walk->operations->arena, (count + extra + 1) * sizeof *words);
	if (!words)
		return;
	memcpy(words, command->words + wrapped->first, count * sizeof *words);
	inner.words = words;
	inner.count = count;
	if (wrapped->takes_input) {
		bool has_places = option_given(command->words, wrapped->first, 'I', "--replace");

		if (has_places && extra)
			fill_places(walk, &inner, words, &added[0], place_of(command, wrapped->first));
		else
			memcpy(words + count, added, extra * sizeof *added);
		inner.count += has_places ? 0 : extra;
	} else if (wrapped->context & CONTEXT_REPEATED) {
		found = found_by(walk, command);
		fill_places(walk, &inner, words, &found, "{}");
	}
	inner.span = (struct span){ words[0].span.start, command->span.end };
	inner.context |= wrapped->context;
	inner.wrappers++;
	if (wrapped->takes_input)
		inner.document = NULL;
	walk->parent = index;
	walk_command(walk, &inner);
	walk->parent = parent;
	origins_join(&command->output, &inner.output);
	command->is_produced = inner.is_produced;
	command->produced = inner.produced;
}

static void add_assignments(struct walk *walk, const struct command *command, size_t end)
{
	for (size_t i = 1; i < end; i++) {
		struct word name = command->words[i], value = name;
		const char *equals = strchr(name.text, '=');
		uint32_t index;

		if (!equals || name.text[0] == '-')
			continue;
		value.text = equals + 1;
		value.size = name.size - (uint32_t)(equals + 1 - name.text);
		name.text = arena_text_n(walk->operations->arena, name.text, (size_t)(equals - name.text));
		if (!name.text)
			return;
		name.size = (uint32_t)strlen(name.text);
		index = walk_add_word(walk, OP_ENVIRONMENT, value.span, &name);
		operations_add_word(walk->operations, index, &value);
	}
}

/* The place of the first word that is no option; 0: there is none. */
static size_t first_operand(const struct command *command, const char *valued)
{
	size_t at = 1;

	while (at < command->count && option_size(command->words, command->count, at, valued))
		at += option_size(command->words, command->count, at, valued);
	return at < command->count ? at : 0;
}

/* git -c alias.x='!COMMAND' x, git config alias.x '!COMMAND': what is behind "!" is for a shell. */
static void run_git_aliases(struct walk *walk, struct command *command, uint32_t index)
{
	for (size_t i = 1; i < command->count; i++) {
		const struct word *word = &command->words[i];
		const char *mark = str_has_prefix(word->text, "alias.") ? strstr(word->text, "=!") : NULL;
		struct word code = *word;

		if (mark)
			code.text = mark + 2;
		else if (word->text[0] == '!' && str_has_prefix(command->words[i - 1].text, "alias."))
			code.text = word->text + 1;
		else
			continue;
		code.size = (uint32_t)strlen(code.text);
		run_code(walk, command, index, (struct nested){ .language = LANGUAGE_SHELL, .code = &code });
	}
}

/* git rebase -x CODE, git submodule foreach CODE, git bisect run CODE, git filter-branch --tree-filter CODE. */
static void run_git_code(struct walk *walk, struct command *command, uint32_t index)
{
	static const char *const verbs[] = { "foreach", "run" };
	static const char *const options[] = { "-x", "--exec", "--tree-filter", "--index-filter", "--msg-filter" };

	for (size_t i = 2; i < command->count; i++) {
		const char *before = command->words[i - 1].text;
		bool is_rest = i > 2 && names_find(verbs, ARRAY_SIZE(verbs), before) >= 0;
		struct word code = command->words[i];

		if (!is_rest && names_find(options, ARRAY_SIZE(options), before) < 0)
			continue;
		if (is_rest)
			code = join_words(walk->operations->arena, command->words + i, command->count - i);
		run_code(walk, command, index, (struct nested){ .language = LANGUAGE_SHELL, .code = &code });
		if (is_rest)
			return;
	}
}

/* sed '1e COMMAND', sed 's/x/COMMAND/e': GNU sed starts a shell. */
static void run_sed(struct walk *walk, struct command *command, uint32_t index)
{
	for (size_t i = 1; i < command->count; i++) {
		struct word code = command->words[i];
		size_t address = strspn(code.text, "0123456789,$~+ ");

		if (code.text[address] != 'e' || code.text[address + 1] != ' ')
			continue;
		code.text += address + 2;
		code.size -= (uint32_t)address + 2;
		run_code(walk, command, index, (struct nested){ .language = LANGUAGE_SHELL, .code = &code });
	}
}

static void run_code_options(struct walk *walk, struct command *command, uint32_t index)
{
	for (size_t at = 1; at < command->count; at++) {
		struct nested nested = { .language = LANGUAGE_UNKNOWN };
		struct word code;

		if (!code_option(walk->judgement->tables, command->words, at, &code, &nested.language))
			continue;
		nested.code = &code;
		run_code(walk, command, index, nested);
	}
}

/* A makefile that comes in: its recipes are the shell's, but for "@", "-", $(NAME) and $$. */
static void run_recipes(struct walk *walk, struct command *command, uint32_t index)
{
	struct word_draft draft;
	struct word code;

	word_begin(&draft, walk->operations->arena, command->document->span);
	draft.flags |= command->document->flags & WORD_FROM_DECODED;
	for (const char *at = command->document->text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		const char *end = at + strcspn(at, "\n");

		if (*at != '\t')
			continue;
		at += strspn(at, "\t@-+ ");
		for (bool is_open = false; at < end; at++) {
			if (at[0] == '$' && at[1] == '$')
				at++;
			is_open |= at[0] == '$' && at[1] == '(';
			word_put(&draft, *at == '(' && at[-1] == '$' ? "{" : *at == ')' && is_open ? "}" : at, 1);
			is_open &= *at != ')';
		}
		word_put(&draft, "\n", 1);
	}
	code = word_end(&draft);
	if (code.size)
		run_code(walk, command, index, (struct nested){ .language = LANGUAGE_SHELL, .code = &code });
}

/* What of an interpreter's options is code; per language. */
static bool is_code_option(enum verify_language language, const char *program, const char *option)
{
	size_t size = strlen(option);
	char last = option[size - 1];

	if (str_equal(option, "eval"))
		return str_equal(program, "deno") || str_equal(program, "crystal");
	if (option[0] != '-' || size < 2)
		return false;
	switch (language) {
	case LANGUAGE_SHELL: return option[1] != '-' && strchr(option, 'c');
	case LANGUAGE_PYTHON: return option[1] != '-' && last == 'c';
	case LANGUAGE_JAVASCRIPT:
		return str_equal(option, "--eval") || str_equal(option, "--print") ||
		       (option[1] != '-' && (last == 'e' || last == 'p') && size <= 3);
	default:
		if (str_equal(program, "guile") || str_equal(program, "expect"))
			return last == 'c';
		return option[1] != '-' && (last == 'e' || last == 'E' || (*program == 'p' && last == 'r'));
	}
}

static void run_awk(struct walk *walk, struct command *command, uint32_t index)
{
	size_t at = first_operand(command, "F v f");

	if (at)
		run_code(walk, command, index, (struct nested){ .language = LANGUAGE_OTHER, .code = &command->words[at],
								.is_verbatim = true });
}

/* bash, python, node, perl …: -c CODE, a script's file, or what comes in. */
static void run_interpreter(struct walk *walk, struct command *command, uint32_t index, enum verify_language language)
{
	static const char *const valued[LANGUAGE_COUNT] = {
		[LANGUAGE_SHELL] = "O o --rcfile --init-file", [LANGUAGE_PYTHON] = "W X m",
		[LANGUAGE_JAVASCRIPT] = "r --require --import --loader", [LANGUAGE_OTHER] = "I",
	};
	const char *program = program_name(command->words, command->count);
	size_t at = 1;

	for (; at < command->count; at++) {
		const struct word *word = &command->words[at];
		size_t size = option_size(command->words, command->count, at, valued[language]);

		if (word_is(word, "--"))
			continue;
		if (is_code_option(language, program, word->text) && at + 1 < command->count) {
			struct nested nested = {
				.language = language, .code = &command->words[at + 1], .is_verbatim = true,
				.arguments = command->words + at + 2, .argument_count = command->count - at - 2,
			};

			run_code(walk, command, index, nested);
			return;
		}
		if (!size)
			break;
		/* -m MODULE is no script, -s reads one. */
		if (language == LANGUAGE_PYTHON && word_is(word, "-m"))
			return;
		at += size - 1;
	}
	if (at < command->count && !word_is(&command->words[at], "-") && !option_given(command->words, at, 's', NULL)) {
		effect_on(walk, index, OP_READ, &command->words[at], TRAIT_STARTS);
		return;
	}
	operations_add_traits(walk->operations, index, TRAIT_INTERACTIVE);
	/* python3 - ARGUMENT… <<END */
	if (command->document)
		run_code(walk, command, index, (struct nested){
			.language = language, .code = command->document,
			.arguments = at + 1 < command->count ? command->words + at + 1 : NULL,
			.argument_count = at + 1 < command->count ? command->count - at - 1 : 0 });
}

static void run(struct walk *walk, struct command *command, uint32_t index)
{
	enum verify_language language = LANGUAGE_UNKNOWN;
	struct wrapped wrapped = unwrap_command(walk->judgement->tables, command->words, command->count);
	struct operation *operation = operations_get(walk->operations, index);
	const char *name = program_name(command->words, command->count);

	run_code_options(walk, command, index);
	operation = operations_get(walk->operations, index);
	if (wrapped.kind != WRAPPED_NONE) {
		operation->context |= CONTEXT_WRAPPER;
		operation->own_words = wrapped.end == command->count ? (uint32_t)wrapped.first : 0;
		if (wrapped.has_assignments)
			add_assignments(walk, command, wrapped.first);
		if (wrapped.kind == WRAPPED_SHELL) {
			struct word code = join_words(walk->operations->arena, command->words + wrapped.first,
						      wrapped.end - wrapped.first);

			run_code(walk, command, index, (struct nested){ .language = LANGUAGE_SHELL, .code = &code,
				.context = wrapped.context, .is_verbatim = wrapped.end == wrapped.first + 1 });
		} else {
			run_inner(walk, command, index, &wrapped);
		}
	} else if (word_is_exact(&command->words[0])) {
		language = language_of_interpreter(name);
	}
	if (language != LANGUAGE_UNKNOWN)
		run_interpreter(walk, command, index, language);
	else if (str_equal(name, "ssh") && wrapped.kind == WRAPPED_NONE && command->document)
		run_code(walk, command, index, (struct nested){ .language = LANGUAGE_SHELL,
			.code = command->document, .context = CONTEXT_REMOTE });
	else if (str_equal(name, "git"))
		run_git_aliases(walk, command, index), run_git_code(walk, command, index);
	else if (str_equal(name, "sed") || str_equal(name, "gsed"))
		run_sed(walk, command, index);
	else if (str_equal(name, "cpan") && command->document)
		run_code(walk, command, index, (struct nested){ .language = LANGUAGE_OTHER,
			.code = command->document });
	else if ((str_equal(name, "make") || str_equal(name, "gmake")) && command->document)
		run_recipes(walk, command, index);
	else if (str_equal(name, "awk") || str_equal(name, "gawk") || str_equal(name, "mawk") ||
		 str_equal(name, "nawk"))
		run_awk(walk, command, index);
}

static void keep_document(struct walk *walk, uint32_t index, const struct word *document)
{
	struct word *kept = arena_alloc(walk->operations->arena, sizeof *kept);

	if (kept) {
		*kept = *document;
		operations_get(walk->operations, index)->document = kept;
	}
}

/*
 * A program that is named by what something put out is code of it: $(curl …), while read -r c; do $c; done; and so is
 * a name that nobody can read: ${SHELL:0:5}. One that lies here is what may have been written here:
 * curl -o x …; ./x.
 */
static void add_program(struct walk *walk, const struct command *command, uint32_t index)
{
	const struct word *program = &command->words[0];
	uint32_t evaluated;

	if (program->size == 1 && program->text[0] == WORD_UNKNOWN && program->origins.count) {
		evaluated = walk_add(walk, OP_EVALUATE, program->span, command->context);
		operations_add_word(walk->operations, evaluated, program);
		operations_add_flows(walk->operations, &program->origins, evaluated);
		operations_add_traits(walk->operations, evaluated, TRAIT_STARTS);
		/* f=$(mktemp); curl -o "$f" …; "$f" */
		if (walk->operations->has_writes)
			effect_on(walk, index, OP_READ, program, TRAIT_STARTS);
	} else if (program->flags & WORD_OBSCURED) {
		evaluated = walk_add(walk, OP_EVALUATE, program->span, command->context);
		operations_add_word(walk->operations, evaluated, program);
	} else if ((walk->directory || walk->operations->has_writes) && str_has_prefix(program->text, "./")) {
		effect_on(walk, index, OP_READ, program, TRAIT_STARTS);
	}
}

/* What a trial would change is not changed; whom it asks is asked. */
static void mark_shown(struct walk *walk, uint32_t index)
{
	for (uint32_t i = index; i < operations_count(walk->operations); i++) {
		struct operation *operation = operations_get(walk->operations, i);
		bool is_change = operation->kind == OP_WRITE || operation->kind == OP_REMOVE ||
				 operation->kind == OP_PERMISSION || operation->kind == OP_PROCESS;

		if (i == index || (is_change && operation->parent == index))
			operation->traits |= TRAIT_SHOWN;
	}
}

static void do_what_it_says(struct walk *walk, struct command *command, uint32_t index)
{
	enum shown shown = command_shown(walk->judgement->tables, command->words, command->count);

	if (shown != SHOWN_USAGE) {
		effects_add(walk, command, index);
		if (command->wrappers >= WRAPPERS_MAX)
			operations_doubt(walk->operations, DOUBT_DEPTH, command->span);
		else
			run(walk, command, index);
	}
	if (shown != SHOWN_NOTHING)
		mark_shown(walk, index);
}

uint32_t walk_command(struct walk *walk, struct command *command)
{
	/* A wrapper in a wrapper has all the words again. */
	uint32_t index = walk_is_over(walk) ? OPERATION_NONE
					    : walk_add(walk, OP_COMMAND, command->span, command->context);

	command->output = (struct origins){ 0 };
	command->is_produced = false;
	if (index == OPERATION_NONE || !command->count)
		return index;
	for (size_t i = 0; i < command->count; i++)
		operations_add_word(walk->operations, index, &command->words[i]);
	operations_add_flows(walk->operations, &command->input, index);
	if (command->document) {
		operations_add_flows(walk->operations, &command->document->origins, index);
		keep_document(walk, index, command->document);
	}
	origins_add(&command->output, index);
	add_program(walk, command, index);
	do_what_it_says(walk, command, index);
	if (!command->is_produced)
		command->is_produced = decode_output(walk->operations->arena, command->words, command->count,
						     command->document, &command->produced);
	if (command->is_produced)
		origins_join(&command->produced.origins, &command->output);
	return index;
}
