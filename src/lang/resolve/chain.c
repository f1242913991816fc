/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/resolve/chain.h"
#include "lang/yaml/pattern.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "lang/bind/bind.h"

enum {
	CHAIN_DEPTH_MAX = 8,
	CHAIN_FILES_MAX = 32,
};

/* tests/unit/lang/compile holds this list and policies/ together. */
const char *const lang_shipped_names[] = {
	"none",	     "low",	  "medium",	 "high",  "full", "claude", "codex", "gemini", "opencode", "aider",
	"claude-key", "codex-key", "gemini-key", "opencode-key", "aider-key",
	"python",    "node",	  "rust",	 "go",	  "java", "c",	    NULL,
};

static const char *const shipped_folders[] = { "levels", "agents", "languages", "tasks", "tables" };

/* The files on the way from the policy down to the one being read, and all that were read. */
struct chain {
	struct lang *lang;
	const char *stack[CHAIN_DEPTH_MAX];
	size_t depth;
	const char *done[CHAIN_FILES_MAX];
	size_t done_count;
};

static void load_file(struct chain *chain, struct source_text *text, struct place from);

/*
 * Who says anew what findings lead to means it: a bound from below, for what that policy said, does not weaken it
 * unseen.
 */
static void forget_bound(struct draft *into, const struct draft *from)
{
	for (size_t row = 0; row < VERIFY_UNKNOWN; row++)
		if (from->scalars[SCALAR_VERIFY + row].is_set)
			into->scalars[SCALAR_VERIFY + VERIFY_CONTAINED].is_set = false;
}

void draft_merge(struct arena *arena, struct draft *into, const struct draft *from)
{
#define MERGE(field, type)                                                                                   \
	DRAFT_EACH(type, field##_item, &from->field)                                                         \
	{                                                                                                    \
		type *copy = vec_add(arena, &into->field, sizeof *copy);                                     \
		if (copy)                                                                                    \
			*copy = *field##_item;                                                               \
	}
	MERGE(files, struct draft_file)
	MERGE(asks, struct draft_path)
	MERGE(protects, struct draft_path)
	MERGE(network, struct draft_net)
	MERGE(publish, struct draft_publish)
	MERGE(host_ports, struct draft_host_port)
	MERGE(exec, struct draft_exec)
	MERGE(env_pass, struct draft_named)
	MERGE(env_set, struct draft_named)
	MERGE(devices, struct draft_named)
	MERGE(degrade, struct draft_named)
	MERGE(canaries, struct draft_named)
	MERGE(canary_files, struct draft_path)
	/* Another command, and not more words of it. */
	if (from->agent_command.count)
		into->agent_command.count = 0;
	MERGE(agent_command, struct draft_named)
	MERGE(agent_state, struct draft_agent_file)
	MERGE(agent_settings, struct draft_agent_file)
#undef MERGE
	if (from->external)
		into->external = from->external;
	forget_bound(into, from);
	for (size_t i = 0; i < SCALAR_COUNT; i++)
		if (from->scalars[i].is_set)
			into->scalars[i] = from->scalars[i];
}

/* Whether a `drop:` entry names the rule: by what it says, by its id, or by NAME:id where ids are alike. */
static bool drop_names(const struct draft_named *drop, const struct draft_rule *rule, const char *path,
		       const char *resolved)
{
	const char *colon = strchr(drop->name, ':');
	const char *base = path_basename(rule->place.file);
	size_t stem = strcspn(base, ".");

	if (str_equal(drop->name, rule->text) || str_equal(drop->name, rule->id) ||
	    (path && str_equal(resolved, path)))
		return true;
	return colon && stem == (size_t)(colon - drop->name) && strncmp(base, drop->name, stem) == 0 &&
	       str_equal(colon + 1, rule->id);
}

#define DROP_FROM(type, vec, path_field)                                                                     \
	do {                                                                                                 \
		type *out = (vec)->items;                                                                    \
		DRAFT_EACH(type, rule, vec)                                                                  \
		{                                                                                            \
			if (drop_names(drop, &rule->from, path_field, resolved))                             \
				dropped++;                                                                   \
			else                                                                                 \
				*out++ = *rule;                                                              \
		}                                                                                            \
		(vec)->count = (size_t)(out - (type *)(vec)->items);                                         \
	} while (0)

static void apply_drop(struct lang *lang, const struct draft_named *drop)
{
	struct pattern_scope scope = { lang->request.project, lang->request.home };
	struct draft *draft = &lang->draft;
	struct pattern pattern = { 0 };
	const char *resolved;
	size_t dropped = 0;

	/* "~/.npm" drops "/home/u/.npm" however it was written. */
	if (strpbrk(drop->name, "/~.") == NULL ||
	    pattern_resolve(&lang->arena, &scope, PATTERN_ANYWHERE, drop->name, &pattern))
		pattern.text = NULL;
	resolved = pattern.text;
	DROP_FROM(struct draft_file, &draft->files, rule->pattern);
	DROP_FROM(struct draft_path, &draft->asks, rule->pattern);
	DROP_FROM(struct draft_path, &draft->protects, rule->pattern);
	DROP_FROM(struct draft_net, &draft->network, NULL);
	DROP_FROM(struct draft_publish, &draft->publish, NULL);
	DROP_FROM(struct draft_host_port, &draft->host_ports, NULL);
	DROP_FROM(struct draft_exec, &draft->exec, rule->program);
	DROP_FROM(struct draft_named, &draft->env_pass, NULL);
	DROP_FROM(struct draft_named, &draft->env_set, NULL);
	DROP_FROM(struct draft_named, &draft->devices, NULL);
	DROP_FROM(struct draft_named, &draft->degrade, NULL);
	DROP_FROM(struct draft_named, &draft->canaries, NULL);
	DROP_FROM(struct draft_path, &draft->canary_files, rule->pattern);
	DROP_FROM(struct draft_agent_file, &draft->agent_state, rule->path);
	DROP_FROM(struct draft_agent_file, &draft->agent_settings, rule->path);
	if (!dropped && lang->request.is_lowered)
		return;
	if (!dropped)
		diag_add(&lang->diags, drop->from.place,
			 "\"%.80s\" drops nothing: no inherited rule has this id, path or name", drop->name);
	else if (dropped > 1 && str_equal(drop->name, "") == false && strchr(drop->name, '[') &&
		 !strchr(drop->name, ':'))
		diag_add(&lang->diags, drop->from.place,
			 "\"%.80s\" is the id of %zu inherited rules; write NAME:%s", drop->name, dropped,
			 drop->name);
}

static void keep_source(struct lang *lang, const char *path, const struct snapshot_source *source)
{
	struct snapshot_source *kept;

	DRAFT_EACH(struct snapshot_source, known, &lang->sources)
	if (str_equal(known->path, path))
		return;
	kept = vec_add(&lang->arena, &lang->sources, sizeof *kept);
	if (kept) {
		*kept = *source;
		kept->path = path;
	}
}

static int read_text(struct lang *lang, const char *path, struct source_text *ret_text,
		     struct snapshot_source *ret_source)
{
	*ret_source = (struct snapshot_source){ 0 };
	*ret_text = (struct source_text){ .path = arena_text(&lang->arena, path) };
	if (!ret_text->path)
		return -ENOMEM;
	return lang->request.reader.read(lang->request.reader.context, ret_text->path, &ret_text->bytes,
					 &ret_text->size, ret_source);
}

/* Reads one candidate: 0, or -errno; what was looked at becomes a source either way. */
static int read_candidate(struct lang *lang, const char *path, struct source_text *ret_text)
{
	struct snapshot_source source;
	int r = read_text(lang, path, ret_text, &source);

	if (ret_text->path)
		keep_source(lang, ret_text->path, &source);
	return r;
}

int chain_read_aside(struct lang *lang, const char *path, struct source_text *ret_text)
{
	struct snapshot_source source;
	int r = read_text(lang, path, ret_text, &source);

	/* What is there and no file has no bytes whose change would mean anything. */
	if (r == 0 || r == -ENOENT)
		keep_source(lang, ret_text->path, &source);
	return r;
}

static bool is_name(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

	return *text && *text != '.' && strspn(text, letters) == strlen(text);
}

static void unreadable(struct lang *lang, struct place from, const char *path, int r)
{
	diag_add(&lang->diags, from, "%s cannot be read: %s", path, strerror(-r));
}

static int try_path(struct chain *chain, struct place from, struct source_text *ret_text, const char *path)
{
	int r = read_candidate(chain->lang, path, ret_text);

	if (r < 0 && r != -ENOENT && r != -ENOTDIR)
		unreadable(chain->lang, from, path, r);
	return r == -ENOTDIR ? -ENOENT : r;
}

static void unknown_name(struct lang *lang, struct place from, const char *name)
{
	const char *nearest = names_nearest(lang_shipped_names, strv_count(lang_shipped_names), name);

	if (nearest && str_equal(nearest, name))
		diag_add(&lang->diags, from, "the shipped policy \"%.60s\" is missing below %s; install atoll again",
			 name, lang->request.policies_dir);
	else if (nearest)
		diag_add(&lang->diags, from, "there is no policy \"%.60s\"; did you mean \"%s\"?", name,
			 nearest);
	else
		diag_add(&lang->diags, from,
			 "there is no policy \"%.60s\": neither shipped nor %s/atoll/policies/%.60s.yaml; "
			 "`atoll policy list` has all names",
			 name, lang->request.config_home, name);
}

/* A name: what atoll ships first, so that a file of the user never stands in for a trust level. */
static int find_name(struct chain *chain, const char *name, struct place from, struct source_text *ret_text)
{
	struct lang *lang = chain->lang;
	char path[PATH_MAX];
	int level = names_find(trust_level_names, TRUST_COUNT, name);
	int r = -ENOENT;

	if (level >= 0 && !lang->has_level) {
		lang->has_level = true;
		lang->natural = (enum trust_level)level;
		if (lang->request.level)
			level = names_find(trust_level_names, TRUST_COUNT, lang->request.level);
		lang->level = (enum trust_level)level;
		name = trust_level_names[level];
	}
	for (size_t i = 0; i < ARRAY_SIZE(shipped_folders) && r == -ENOENT; i++) {
		if ((level >= 0) != (i == 0))
			continue;
		r = str_format(path, sizeof path, "%s/%s/%s.yaml", lang->request.policies_dir,
			       shipped_folders[i], name);
		if (r == 0)
			r = try_path(chain, from, ret_text, path);
	}
	if (r == -ENOENT && level < 0 && lang->request.config_home[0]) {
		r = str_format(path, sizeof path, "%s/atoll/policies/%s.yaml", lang->request.config_home,
			       name);
		if (r == 0)
			r = try_path(chain, from, ret_text, path);
	}
	if (r == -ENOENT)
		unknown_name(lang, from, name);
	return r;
}

/* text is ~/…, absolute, or relative to directory. */
static int resolve_path(struct lang *lang, const char *text, const char *directory, struct place from,
			char out[PATH_MAX])
{
	int r;

	if (str_has_prefix(text, "~/") && lang->request.home[0])
		r = path_join(out, PATH_MAX, lang->request.home, pattern_below_home(text));
	else
		r = path_join(out, PATH_MAX, directory, text);
	if (r < 0)
		diag_add(&lang->diags, from, "\"%.200s\" is no usable path", text);
	return r;
}

/* text is a name, or a path relative to directory. */
static int find_policy(struct chain *chain, const char *text, const char *directory, struct place from,
		       struct source_text *ret_text)
{
	struct lang *lang = chain->lang;
	char path[PATH_MAX];
	int r;

	if (!strchr(text, '/') && !str_has_suffix(text, ".yaml")) {
		if (is_name(text))
			return find_name(chain, text, from, ret_text);
		diag_add(&lang->diags, from, "\"%.60s\" is neither the name of a policy nor a path", text);
		return -EINVAL;
	}
	r = resolve_path(lang, text, directory, from, path);
	if (r < 0)
		return r;
	r = try_path(chain, from, ret_text, path);
	if (r == -ENOENT)
		diag_add(&lang->diags, from, "there is no file %s", path);
	return r;
}

static bool is_shipped(const struct lang *lang, const char *path)
{
	return lang->request.policies_dir[0] && path_is_below(path, lang->request.policies_dir);
}

static void bind_file_text(struct lang *lang, const struct source_text *text, struct draft *draft)
{
	struct binder binder = {
		.arena = &lang->arena,
		.diags = &lang->diags,
		.draft = draft,
		.scope = { lang->request.project, lang->request.home },
		.is_shipped = is_shipped(lang, text->path),
	};
	struct node *root = node_parse(&lang->diags, text->path, text->bytes, text->size);

	if (root)
		bind_policy(&binder, root);
}

static void load_parents(struct chain *chain, const struct draft *draft, const char *directory)
{
	DRAFT_EACH(struct draft_named, parent, &draft->extends)
	{
		struct source_text text = { 0 };

		if (find_policy(chain, parent->name, directory, parent->from.place, &text) == 0)
			load_file(chain, &text, parent->from.place);
		free(text.bytes);
	}
}

static void load_body(struct lang *lang, struct draft_answer *answer, const char *directory)
{
	struct source_text text = { 0 };
	char path[PATH_MAX];
	int r = resolve_path(lang, answer->body_file, directory, answer->body_place, path);

	if (r < 0)
		return;
	r = read_candidate(lang, path, &text);
	if (r < 0)
		unreadable(lang, answer->body_place, path, r);
	else if (text.size > NET_ANSWER_BODY_MAX)
		diag_add(&lang->diags, answer->body_place, "%s has %zu bytes; an answer has at most %d", path,
			 text.size, NET_ANSWER_BODY_MAX);
	else
		answer->body = arena_text_n(&lang->arena, text.bytes, text.size);
	answer->body_size = answer->body ? text.size : 0;
	answer->body_file = text.path;
	free(text.bytes);
}

/* Bodies that stand in files of their own, so that the snapshot has all that will be answered. */
static void load_bodies(struct lang *lang, const struct draft *draft, const char *directory)
{
	DRAFT_EACH(struct draft_net, net, &draft->network)
	if (net->answer && net->answer->body_file)
		load_body(lang, net->answer, directory);
}

static bool is_among(const char *const *paths, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal(paths[i], path))
			return true;
	return false;
}

static void load_file(struct chain *chain, struct source_text *text, struct place from)
{
	struct lang *lang = chain->lang;
	char directory[PATH_MAX];
	struct draft *draft;

	if (is_among(chain->stack, chain->depth, text->path)) {
		diag_add(&lang->diags, from, "the policy extends itself by way of %s", text->path);
		return;
	}
	if (is_among(chain->done, chain->done_count, text->path))
		return;
	if (chain->depth == CHAIN_DEPTH_MAX || chain->done_count == CHAIN_FILES_MAX) {
		diag_add(&lang->diags, from,
			 "the chain of extends is too long (at most %d levels and %d files)", CHAIN_DEPTH_MAX,
			 CHAIN_FILES_MAX);
		return;
	}
	draft = arena_alloc(&lang->arena, sizeof *draft);
	if (!draft || path_join(directory, sizeof directory, text->path, "..") < 0)
		return;
	chain->stack[chain->depth++] = text->path;
	bind_file_text(lang, text, draft);
	load_bodies(lang, draft, directory);
	load_parents(chain, draft, directory);
	chain->depth--;
	if (chain->done_count < CHAIN_FILES_MAX)
		chain->done[chain->done_count++] = text->path;
	DRAFT_EACH(struct draft_named, drop, &draft->drop)
	apply_drop(lang, drop);
	draft_merge(&lang->arena, &lang->draft, draft);
}

/* The user's own default, where neither -p nor -t says anything. */
static int find_default(struct chain *chain, struct source_text *ret_text)
{
	struct lang *lang = chain->lang;
	struct place nowhere = { "", 0, 0 };
	char path[PATH_MAX];
	int r = -ENOENT;

	if (lang->request.config_home[0]) {
		r = str_format(path, sizeof path, "%s/atoll/policy.yaml", lang->request.config_home);
		if (r == 0)
			r = try_path(chain, nowhere, ret_text, path);
	}
	if (r == 0)
		lang->name = ret_text->path;
	if (r != -ENOENT)
		return r;
	lang->name = "medium";
	return find_name(chain, "medium", nowhere, ret_text);
}

/*
 * What may be missing on this machine the policy accepted with its own level. It stays so at a lower one, which would
 * else not run where the higher does: trees that the policy has written in place, machines without cgroups.
 */
static void keep_degrade(struct lang *lang)
{
	struct place nowhere = { "", 0, 0 };
	struct chain chain = { .lang = lang };

	for (unsigned level = lang->level + 1; level <= lang->natural; level++) {
		struct draft *draft = arena_alloc(&lang->arena, sizeof *draft);
		struct source_text text = { 0 };
		char path[PATH_MAX];
		int r = str_format(path, sizeof path, "%s/levels/%s.yaml", lang->request.policies_dir,
				   trust_level_names[level]);

		if (!draft || r < 0 || try_path(&chain, nowhere, &text, path) < 0)
			return;
		bind_file_text(lang, &text, draft);
		free(text.bytes);
		DRAFT_EACH(struct draft_named, wall, &draft->degrade)
		{
			struct draft_named *copy = vec_add(&lang->arena, &lang->draft.degrade, sizeof *copy);

			if (copy)
				*copy = *wall;
		}
	}
}

/* Takes the rule of files.mask that names exactly this path away; a pattern that covers it stays, and masks it. */
static void unmask(struct lang *lang, const char *path)
{
	struct draft_file *out = lang->draft.files.items;
	size_t count = 0, dropped = 0;

	DRAFT_EACH(struct draft_file, rule, &lang->draft.files)
	{
		if (rule->class == FILE_MASK && str_equal(rule->pattern, path))
			dropped++;
		else
			out[count++] = *rule;
	}
	lang->draft.files.count = count;
	/* At a lower level there may be no such mask. */
	if (!dropped && !lang->request.is_lowered)
		diag_add(&lang->diags, (struct place){ "", 0, 0 },
			 "--unmask %.200s: no rule of files.mask names exactly this path", path);
}

void chain_load(struct lang *lang)
{
	struct chain chain = { .lang = lang };
	struct place nowhere = { "", 0, 0 };
	struct source_text text = { 0 };
	const char *level = lang->request.level, *nearest;
	int r;

	if (level && names_find(trust_level_names, TRUST_COUNT, level) < 0) {
		nearest = names_nearest(trust_level_names, TRUST_COUNT, level);
		diag_add(&lang->diags, nowhere, "there is no trust level \"%.60s\"%s%s%s", level,
			 nearest ? "; did you mean \"" : ": none, low, medium, high, full",
			 nearest ? nearest : "", nearest ? "\"?" : "");
		return;
	}
	lang->name = lang->request.policy ? lang->request.policy : level;
	if (lang->request.is_lowered && !lang->request.policy)
		level = NULL; /* it stands in the place of the default's */
	if (lang->request.policy)
		r = find_policy(&chain, lang->request.policy, lang->request.cwd, nowhere, &text);
	else if (level)
		r = find_name(&chain, level, nowhere, &text);
	else
		r = find_default(&chain, &text);
	if (r == 0)
		load_file(&chain, &text, nowhere);
	free(text.bytes);
	/* Before the project's file: what that masks stays masked. */
	for (const char *const *path = lang->request.unmask; r == 0 && path && *path; path++)
		unmask(lang, *path);
	if (lang->request.is_lowered && lang->has_level)
		keep_degrade(lang);
	if (level && !lang->has_level && !lang->diags.count)
		diag_add(&lang->diags, nowhere, "-t %s cannot be set: the policy %s extends no trust level",
			 level, lang->name);
}

void chain_load_project(struct lang *lang)
{
	struct source_text text = { 0 };
	char path[PATH_MAX];
	int r;

	if (!lang->request.project[0] || lang->request.without_project_file)
		return;
	r = path_join(path, sizeof path, lang->request.project, ".atoll.yaml");
	if (r == 0)
		r = read_candidate(lang, path, &text);
	if (r == 0) {
		lang->has_project = true;
		bind_file_text(lang, &text, &lang->project);
	} else if (r != -ENOENT && r != -ENOTDIR) {
		/* A file that cannot be read might tighten: it is not passed over. */
		unreadable(lang, (struct place){ "", 0, 0 }, path, r);
	}
	free(text.bytes);
}
