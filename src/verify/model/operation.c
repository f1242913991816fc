/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/model/operation.h"

#include <string.h>

#include "base/names.h"
#include "base/str.h"

const char *const operation_kind_names[OPERATION_KIND_COUNT] = {
	[OP_COMMAND] = "command", [OP_READ] = "read", [OP_WRITE] = "write", [OP_REMOVE] = "remove",
	[OP_PERMISSION] = "permission", [OP_NETWORK] = "network", [OP_EVALUATE] = "evaluate",
	[OP_ENVIRONMENT] = "environment", [OP_PROCESS] = "process", [OP_LOOP] = "loop", [OP_ALLOCATE] = "allocate",
	[OP_FUNCTION] = "function", [OP_CALL] = "call",
};

const char *const doubt_names[DOUBT_COUNT] = {
	[DOUBT_SYNTAX] = "syntax", [DOUBT_ENCODING] = "encoding", [DOUBT_DEPTH] = "depth", [DOUBT_SIZE] = "size",
	[DOUBT_TIME] = "time", [DOUBT_MEMORY] = "memory", [DOUBT_LANGUAGE] = "language",
};

void operations_init(struct operations *operations, struct arena *arena)
{
	*operations = (struct operations){ .arena = arena };
}

size_t operations_count(const struct operations *operations)
{
	return operations->items.count;
}

struct operation *operations_get(const struct operations *operations, uint32_t index)
{
	if (index >= operations->items.count)
		return NULL;
	return (struct operation *)operations->items.items + index;
}

uint32_t operations_add(struct operations *operations, enum operation_kind kind, struct span span, uint32_t context)
{
	struct operation *operation = NULL;

	if (operations->items.count < OPERATIONS_MAX)
		operation = vec_add(operations->arena, &operations->items, sizeof *operation);
	if (!operation) {
		operations_doubt(operations, DOUBT_SIZE, span);
		return OPERATION_NONE;
	}
	operations->has_writes |= kind == OP_WRITE;
	*operation = (struct operation){ .kind = kind, .span = span, .context = context, .parent = OPERATION_NONE };
	return (uint32_t)operations->items.count - 1;
}

void operations_add_word(struct operations *operations, uint32_t index, const struct word *word)
{
	struct operation *operation = operations_get(operations, index);
	struct word *copy = NULL;

	if (!operation)
		return;
	if (operation->words.count < WORDS_MAX)
		copy = vec_add(operations->arena, &operation->words, sizeof *copy);
	if (!copy) {
		operations_doubt(operations, DOUBT_SIZE, word->span);
		return;
	}
	*copy = *word;
	/* What was cut off may be all that counts: `eval "$long; rm -rf /"`. */
	if (word->flags & WORD_CUT)
		operations_doubt(operations, DOUBT_SIZE, word->span);
	operations_add_flows(operations, &word->origins, index);
}

void operations_add_text(struct operations *operations, uint32_t index, const char *text)
{
	struct operation *operation = operations_get(operations, index);
	struct word word = { .flags = WORD_EXACT, .size = (uint32_t)strlen(text) };

	if (!operation)
		return;
	word.span = operation->span;
	word.text = arena_text(operations->arena, text);
	if (word.text)
		operations_add_word(operations, index, &word);
}

void operations_add_traits(struct operations *operations, uint32_t index, uint32_t traits)
{
	struct operation *operation = operations_get(operations, index);

	if (operation)
		operation->traits |= traits;
}

static bool has_flow(const struct operations *operations, const struct operation *to, uint32_t from)
{
	const struct flow *flows = operations->flows.items;

	for (uint32_t at = to->first_flow, seen = 0; at && seen < 64; at = flows[at - 1].next, seen++) {
		if (flows[at - 1].from == from)
			return true;
	}
	return false;
}

void operations_add_flow(struct operations *operations, uint32_t from, uint32_t to)
{
	struct operation *sink = operations_get(operations, to);
	struct flow *flow = NULL;

	if (!sink || from == to || !operations_get(operations, from) || has_flow(operations, sink, from))
		return;
	if (operations->flows.count < FLOWS_MAX)
		flow = vec_add(operations->arena, &operations->flows, sizeof *flow);
	if (!flow) {
		operations_doubt(operations, DOUBT_SIZE, sink->span);
		return;
	}
	*flow = (struct flow){ .from = from, .next = sink->first_flow };
	sink->first_flow = (uint32_t)operations->flows.count;
}

void operations_add_flows(struct operations *operations, const struct origins *from, uint32_t to)
{
	for (uint32_t i = 0; i < from->count; i++)
		operations_add_flow(operations, from->at[i], to);
}

void operations_doubt(struct operations *operations, enum doubt doubt, struct span span)
{
	size_t kept = operations->doubt_count < DOUBTS_MAX ? operations->doubt_count : DOUBTS_MAX;

	/* One of a kind at one place; and a bound that is hit is hit again and again. */
	for (size_t i = 0; i < kept; i++) {
		const struct doubt_note *note = &operations->doubts[i];

		if (note->doubt == doubt && (note->span.start == span.start || doubt == DOUBT_SIZE))
			return;
	}
	if (kept < DOUBTS_MAX)
		operations->doubts[kept] = (struct doubt_note){ doubt, span };
	operations->doubt_count++;
}

const struct word *operation_word(const struct operation *operation, size_t at)
{
	return at < operation->words.count ? (const struct word *)operation->words.items + at : NULL;
}

size_t operation_word_count(const struct operation *operation)
{
	return operation->words.count;
}

void origins_add(struct origins *origins, uint32_t index)
{
	if (index == OPERATION_NONE)
		return;
	for (uint32_t i = 0; i < origins->count; i++) {
		if (origins->at[i] == index)
			return;
	}
	if (origins->count < ORIGINS_MAX)
		origins->at[origins->count++] = index;
	else
		origins->is_cut = true;
}

void origins_join(struct origins *origins, const struct origins *other)
{
	for (uint32_t i = 0; i < other->count; i++)
		origins_add(origins, other->at[i]);
	origins->is_cut |= other->is_cut;
}

/* A path that a later operation takes up: exact, and not one that everybody writes to. */
static const char *carried_path(const struct word *word)
{
	if (!word || !(word->flags & WORD_EXACT) || !word->size || (strncmp(word->text, "/dev/", 5) == 0 &&
		strncmp(word->text, "/dev/shm/", 9) != 0))
		return NULL;
	return strncmp(word->text, "./", 2) == 0 ? word->text + 2 : word->text;
}

enum { LINKS_MAX = 1024, NAMED_MAX = 512, GLOB_PREFIX_MIN = 4 };

/* A file that was written, and by what. */
struct written {
	const struct word *word;
	const char *path;
	uint32_t operation;
	bool is_named; /* only named by a command, which may have written it: `scrot x.png`, `gpg -o x y` */
	bool is_folder; /* all that lies below it: what was unpacked or cloned there */
};

struct links {
	struct written items[LINKS_MAX];
	size_t count, named;
};

/* The same that is not known: `f=$(mktemp)` is one name wherever it stands. */
static bool is_same_unknown(const struct word *one, const struct word *other)
{
	return one->size == other->size && memcmp(one->text, other->text, one->size) == 0 && one->origins.count &&
	       other->origins.count && one->origins.at[0] == other->origins.at[0];
}

/* What is read: one that is compared with all that was written. */
struct sought {
	const struct word *word;
	const char *path;
	size_t prefix_size; /* before a wildcard of the shell; 0: it is no glob that is looked at */
	size_t folder_size; /* of a folder that is gone through; else 0 */
};

static struct sought sought_of(const struct operation *reader, const struct word *word)
{
	struct sought sought = { .word = word, .path = carried_path(word) };
	size_t size = strcspn(word->text, "*?[");

	if (word->flags & WORD_GLOB && word->text[size] && size >= GLOB_PREFIX_MIN)
		sought.prefix_size = size;
	if (sought.path && reader->kind == OP_READ && reader->traits & TRAIT_RECURSIVE) {
		sought.folder_size = strlen(sought.path);
		while (sought.folder_size > 1 && sought.path[sought.folder_size - 1] == '/')
			sought.folder_size--;
	}
	return sought;
}

/* Whether a path lies below a folder; "." has all that is relative and does not lead out of it. */
static bool is_below(const char *path, const char *folder)
{
	size_t size = strlen(folder);

	if (str_equal(folder, "."))
		return *path != '/' && *path != '~' && strncmp(path, "..", 2) != 0 && strchr(path, '/');
	while (size > 1 && folder[size - 1] == '/')
		size--;
	return strncmp(path, folder, size) == 0 && path[size] == '/' && path[size + 1];
}

/* Whether who reads a path comes upon the file: by its name, in a folder that is gone through, by a pattern. */
static bool comes_upon(const struct sought *sought, const struct written *written)
{
	const struct word *word = sought->word;

	if (word->flags & WORD_GLOB)
		return written->path && sought->prefix_size &&
		       strncmp(written->path, word->text, sought->prefix_size) == 0;
	if (!sought->path || !written->path)
		return !sought->path && !written->path && is_same_unknown(word, written->word);
	if (str_equal(sought->path, written->path))
		return true;
	return sought->folder_size && strncmp(sought->path, written->path, sought->folder_size) == 0 &&
	       written->path[sought->folder_size] == '/';
}

static void link_reader(struct operations *operations, struct links *links, uint32_t index)
{
	const struct operation *reader = operations_get(operations, index);
	const struct word *word = operation_word(reader, 0);
	bool is_known = false;
	struct sought sought;

	if (!word)
		return;
	sought = sought_of(reader, word);
	for (size_t i = 0; i < links->count; i++) {
		struct written *written = &links->items[i];

		if (written->is_folder || !comes_upon(&sought, written) || written->operation == index)
			continue;
		is_known |= !written->is_named;
		if (!written->is_named)
			operations_add_flow(operations, written->operation, index);
		else if (reader->kind != OP_READ)
			continue;
		else if (reader->parent == written->operation)
			written->operation = index; /* It reads the file, so it did not make it. */
		else
			operations_add_flow(operations, written->operation, index);
	}
	/* A file that has a maker of its own is not from the archive that was unpacked around it. */
	for (size_t i = 0; i < links->count && !is_known && sought.path; i++) {
		if (reader->kind != OP_READ && *sought.path != '/' && *sought.path != '~')
			continue;
		if (links->items[i].is_folder && is_below(sought.path, links->items[i].path))
			operations_add_flow(operations, links->items[i].operation, index);
	}
}

static bool put_link(struct links *links, const struct word *word, uint32_t index, bool is_named)
{
	const char *path = word ? carried_path(word) : NULL;

	if (!word || (!path && !word->origins.count) || (is_named && !path))
		return true;
	if (links->count == LINKS_MAX)
		return false;
	links->items[links->count++] = (struct written){ word, path, index, is_named, false };
	links->named += is_named;
	return true;
}

/* Words of a command that may be files which it makes; what a table says of it says so better. */
static void put_named(struct operations *operations, struct links *links, uint32_t index)
{
	const struct operation *operation = operations_get(operations, index);

	for (size_t i = 1; i < operation_word_count(operation) && links->named < NAMED_MAX; i++) {
		const struct word *word = operation_word(operation, i);

		if (word->flags & WORD_EXACT && word->text[0] != '-' && strpbrk(word->text, "/.") &&
		    !strstr(word->text, "://") && !strpbrk(word->text, " \n"))
			put_link(links, word, index, true);
	}
}

void operations_link_files(struct operations *operations)
{
	struct links links;

	links.count = links.named = 0;
	for (uint32_t i = 0; i < operations_count(operations); i++) {
		const struct operation *operation = operations_get(operations, i);

		if (operation->kind == OP_WRITE) {
			size_t before = links.count;

			if (!put_link(&links, operation_word(operation, 0), i, false))
				operations_doubt(operations, DOUBT_SIZE, operation->span);
			else if (links.count > before && operation->traits & TRAIT_RECURSIVE)
				links.items[before].is_folder = links.items[before].path != NULL;
			continue;
		}
		if (links.count && (operation->kind == OP_READ || operation->kind == OP_COMMAND))
			link_reader(operations, &links, i);
		if (operation->kind == OP_COMMAND && !(operation->context & CONTEXT_WRAPPER))
			put_named(operations, &links, i);
	}
}
