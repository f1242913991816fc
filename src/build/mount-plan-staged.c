/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The staged trees of a plan. A tree is one file system of the host: what is mounted below it there does not show in an
 * overlay, so as root each such mount becomes a tree of its own, right behind the tree around it. As a user the
 * kernel refuses the whole tree instead (its mounts are locked to one another); build/staging.c says so then.
 * Masked names become whiteouts of a layer between host and changes, whether they exist or not.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "build/mount-plan-parts.h"
#include "os/path.h"

static int layer_path(struct plan *plan, const char *session, const char *rest, size_t tree, const char **ret_path)
{
	*ret_path = plan_keep(plan, str_printf("%s/sessions/%s/" STAGE_DIRECTORY "/%s/%zu", plan->input.state_dir,
					       session, rest, tree));
	return *ret_path ? 0 : -ENOMEM;
}

/* The layers of one tree, top first: live, those of the chain; the mask comes with the first masked name. */
static int make_layers(struct plan *plan, size_t tree, struct jail_layers **ret_layers)
{
	const struct stage_chain *chain = plan->input.chain;
	size_t count = chain ? chain->count : 0;
	struct jail_layers *layers = calloc(1, sizeof *layers + (count + 1) * sizeof(char *));
	const char **between = layers ? (const char **)(layers + 1) : NULL;
	int r = layers ? layer_path(plan, plan->input.session, STAGE_DIRECTORY_LIVE, tree, &layers->live) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < count; i++) {
		const struct stage_layer *layer = &chain->layers[count - 1 - i];
		char rest[32];

		r = str_format(rest, sizeof rest, STAGE_DIRECTORY_LAYERS "/%u", layer->number);
		if (r == 0)
			r = layer_path(plan, layer->session, rest, tree, &between[i]);
	}
	if (r < 0) {
		free(layers);
		return r;
	}
	layers->between = between;
	layers->count = count;
	*ret_layers = layers;
	return 0;
}

int plan_add_tree(struct plan *plan, const struct plan_tree_request *request)
{
	size_t tree = plan->tree_count;
	struct jail_layers *layers = NULL;
	int r = plan_grow(&plan->trees, tree, &plan->tree_capacity, sizeof *plan->trees);

	if (r == 0)
		r = plan_grow(&plan->layers, tree, &plan->layers_capacity, sizeof *plan->layers);
	if (r == 0 && tree == STAGE_TREES_MAX)
		r = -E2BIG;
	if (r == 0)
		r = make_layers(plan, tree, &layers);
	if (r < 0)
		return r;
	plan->trees[tree] = (struct plan_tree){ .path = request->path, .rule = request->rule };
	plan->layers[tree] = layers;
	plan->tree_count++;
	return plan_add(plan, (struct jail_mount){ .kind = plan->input.by_fuse ? JAIL_FUSE : JAIL_OVERLAY,
						   .flags = request->flags | JAIL_OWNED | JAIL_LATE,
						   .target = request->target ? request->target :
									       request->path,
						   .source = request->path,
						   .source_trusted = request->source_trusted,
						   .layers = layers,
						   .rule = request->rule });
}

bool plan_has_own_entry(const struct policy *policy, size_t entry, const char *point)
{
	for (size_t i = entry + 1; i < policy->files.plan_count; i++)
		if (path_is_below(point, policy->files.plan[i].path))
			return true;
	return false;
}

int plan_add_mounts_below(struct plan *plan, const struct policy *policy, size_t index,
			    const struct plan_tree_request *around)
{
	char *const *points;
	int count = plan_points_below(plan, around->path, &points), r = count < 0 ? count : 0;

	for (int i = 0; r == 0 && i < count; i++) {
		struct plan_tree_request request = *around;
		struct stat st;

		if (plan_has_own_entry(policy, index, points[i]) || lstat(points[i], &st) < 0 ||
		    (around->is_system && !plan_can_stage(plan, points[i])))
			continue;
		request.path = points[i];
		request.target = NULL;
		request.source_trusted = 0;
		if (S_ISDIR(st.st_mode))
			r = plan_add_tree(plan, &request);
		else
			r = plan_add(plan, (struct jail_mount){ .kind = JAIL_BIND,
								.flags = JAIL_RDONLY | JAIL_OWNED | JAIL_OPTIONAL,
								.target = request.path,
								.source = request.path,
								.rule = request.rule });
	}
	return r;
}

int plan_has_mounts_below(struct plan *plan)
{
	char *const *points;
	int r = 0;

	for (size_t i = 0; i < plan->tree_count && r == 0; i++)
		r = plan_points_below(plan, plan->trees[i].path, &points);
	return r;
}

/*
 * A staged path that is a link: the rule holds for what it leads to as well (lang/resolve/finish.c); the name leads
 * there.
 */
static int add_link(struct plan *plan, const char *path, const char *real, const char *rule)
{
	const char *text = plan_keep(plan, str_dup(real));

	if (!text)
		return -ENOMEM;
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_SYMLINK,
						   .target = path,
						   .content = text,
						   .content_size = strlen(text),
						   .rule = rule });
}

/* The home may be another directory of the host, which the sandbox sees at the home's own path. */
static const char *source_of(const struct plan *plan, const char *path)
{
	const struct plan_input *input = &plan->input;

	return input->home_from && str_equal(path, input->policy->home) ? input->home_from : path;
}

static bool is_private(const struct file_plan_entry *around)
{
	return !around || around->class == FILE_SCRATCH;
}

int plan_add_stage(struct plan *plan, const struct policy *policy, size_t index, struct err *err)
{
	const struct file_plan_entry *entry = &policy->files.plan[index], *around = plan_entry_around(policy, index);
	struct plan_tree_request request = {
		.path = source_of(plan, entry->path),
		.rule = policy->files.rules[entry->rule].origin.id,
		.flags = plan->new_binaries && !(entry->flags & FILE_NOEXEC) ? 0 : JAIL_NOEXEC,
		.source_trusted = around && entry->flags & FILE_NOFOLLOW ? strlen(around->path) : 0,
	};
	char real[PATH_MAX];
	struct stat st;
	int r = path_real(request.path, real, sizeof real);

	/* What is below it is shown where it is. */
	if (request.path != entry->path)
		request.target = entry->path;
	if (r < 0 || stat(real, &st) < 0) {
		if (entry->flags & FILE_OPTIONAL)
			return 0;
		r = r < 0 ? r : -errno;
		return err_set(err, ERR_WALL, -r, wall_names[WALL_MOUNTS], "cannot open %s (%s): %s", entry->path,
			       request.rule, err_errno_name(-r));
	}
	if (str_equal(entry->path, "/"))
		return plan_add_system(plan, policy, index, &request, err);
	if (!str_equal(real, request.path))
		return is_private(around) ? add_link(plan, entry->path, real, request.rule) : 0;
	if (!S_ISDIR(st.st_mode)) {
		err_set(err, ERR_POLICY, ENOTDIR, "stage",
			"%s (%s) is not a directory, and only directories can be staged", entry->path, request.rule);
		err_hint(err, "stage the directory that holds it, or `write` it in place");
		return -ENOTDIR;
	}
	r = plan_add_tree(plan, &request);
	if (r == 0 && plan->input.has_mounts_below)
		r = plan_add_mounts_below(plan, policy, index, &request);
	if (r == -E2BIG)
		err_set(err, ERR_POLICY, E2BIG, "stage", "more than %d trees would be staged, with the mounts below %s",
			STAGE_TREES_MAX, entry->path);
	return r;
}

static int check_origin(const struct plan *plan, struct err *err)
{
	const struct stage_record *origin = plan->input.origin;
	size_t i = 0;

	if (!origin)
		return 0;
	if (plan->input.by_fuse) {
		err_set(err, ERR_POLICY, EOPNOTSUPP, "stage",
			"fuse-overlayfs (`stage.backend`) cannot use the layers of session %s", origin->session);
		err_hint(err, "take `stage: {backend: overlay}` for it");
		return -EOPNOTSUPP;
	}
	while (i < plan->tree_count && i < origin->tree_count && str_equal(plan->trees[i].path, origin->trees[i].path))
		i++;
	if (i == plan->tree_count && i == origin->tree_count)
		return 0;
	err_set(err, ERR_POLICY, EINVAL, "stage", "this policy stages other trees than session %s: %s", origin->session,
		i < plan->tree_count ? plan->trees[i].path : origin->trees[i].path);
	err_hint(err, "run it in the same project with the same policy");
	return -EINVAL;
}

/* The directory of atoll's own changes may lie in a tree, and is then no part of it; it cannot be one itself. */
static int hide_state(struct plan *plan, const char *state, size_t index, struct err *err)
{
	const struct plan_tree *tree = &plan->trees[index];
	const char *below = state + strlen(tree->path);

	if (!path_is_below(state, tree->path))
		return 0;
	if (*below) {
		plan->layers[index]->hidden = plan_keep(plan, str_dup(below + 1));
		return plan->layers[index]->hidden ? 0 : -ENOMEM;
	}
	err_set(err, ERR_STATE, ELOOP, "stage",
		"%s (%s) cannot be staged: its changes would be stored in this directory", tree->path,
		tree->rule);
	err_hint(err, "stage another directory, or set XDG_STATE_HOME to another place");
	return -ELOOP;
}

int plan_check_stage(struct plan *plan, struct err *err)
{
	char state[PATH_MAX];
	int r = check_origin(plan, err);

	/* One that has no real path cannot be made either, which says more. */
	if (r < 0 || !plan->tree_count || path_real(plan->input.state_dir, state, sizeof state) < 0)
		return r;
	for (size_t i = 0; r == 0 && i < plan->tree_count; i++)
		r = hide_state(plan, state, i, err);
	return r;
}

/* The innermost tree that path lies in, strictly; SIZE_MAX: none. */
static size_t tree_around(const struct plan *plan, const char *path)
{
	size_t found = SIZE_MAX;

	for (size_t i = 0; i < plan->tree_count; i++) {
		const char *tree = plan->trees[i].path;

		if (path_is_below(path, tree) && !str_equal(path, tree) &&
		    (found == SIZE_MAX || strlen(tree) > strlen(plan->trees[found].path)))
			found = i;
	}
	return found;
}

static int add_mask(struct plan *plan, const char *path, enum stage_mask_kind kind, const char *rule)
{
	size_t tree = tree_around(plan, path);
	struct jail_layers *layers;
	int r;

	if (tree == SIZE_MAX)
		return 0; /* the tree does not exist, or the name is a link's */
	r = plan_grow(&plan->masks, plan->mask_count, &plan->mask_capacity, sizeof *plan->masks);
	if (r < 0)
		return r;
	layers = plan->layers[tree];
	if (!plan->trees[tree].mask_count++) {
		const char **between = (const char **)(layers + 1);

		r = layer_path(plan, plan->input.session, STAGE_DIRECTORY_MASK, tree, &between[layers->count++]);
		if (r < 0)
			return r;
	}
	plan->masks[plan->mask_count++] = (struct plan_mask){
		.tree = tree,
		.path = path + strlen(plan->trees[tree].path) + 1,
		.kind = kind,
		.rule = rule,
	};
	return 0;
}

/* A masked directory that is a tree itself (a mount of the host's): its name cannot go, but nothing shows below it. */
static bool is_tree(const struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->tree_count; i++)
		if (str_equal(plan->trees[i].path, path))
			return true;
	return false;
}

int plan_add_stage_mask(struct plan *plan, const struct file_plan_entry *entry, const char *rule)
{
	enum stage_mask_kind kind = entry->flags & FILE_CONTENTS ? STAGE_MASK_CONTENT : STAGE_MASK_NAME;
	char real[PATH_MAX];
	struct stat st;
	int r;

	if (is_tree(plan, entry->path))
		return plan_add(plan, (struct jail_mount){ .kind = JAIL_MASK, .target = entry->path, .rule = rule });
	r = add_mask(plan, entry->path, kind, rule);
	if (r < 0 || lstat(entry->path, &st) < 0 || !S_ISLNK(st.st_mode) ||
	    path_real(entry->path, real, sizeof real) < 0)
		return r;
	/* What the name leads to must not be read by its own name either. */
	if (tree_around(plan, real) != SIZE_MAX) {
		const char *path = plan_keep(plan, str_dup(real));

		return path ? add_mask(plan, path, STAGE_MASK_NAME, rule) : -ENOMEM;
	}
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_MASK,
						   .target = plan_keep(plan, str_dup(real)),
						   .flags = JAIL_OPTIONAL,
						   .rule = rule });
}

int plan_add_stage_file(struct plan *plan, const char *path, const void *content, size_t size, const char *rule)
{
	size_t before = plan->mask_count;
	int r = add_mask(plan, path, STAGE_MASK_FILE, rule);

	if (r == 0 && plan->mask_count > before) {
		plan->masks[before].content = content;
		plan->masks[before].content_size = size;
	}
	return r;
}

const struct plan_tree *plan_trees(const struct plan *plan, size_t *ret_count)
{
	*ret_count = plan->tree_count;
	return plan->trees;
}

const struct plan_mask *plan_masks(const struct plan *plan, size_t *ret_count)
{
	*ret_count = plan->mask_count;
	return plan->masks;
}
