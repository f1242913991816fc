/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/verb/opened.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "os/path.h"
#include "session/directories.h"

/* One for all that a process opens: two states may stand on the same layers. */
static struct stage_closed *closed;

static int fail(struct err *err, int r, const char *what)
{
	err_set(err, ERR_STATE, -r, "stage", "%s: %s", what, strerror(-r));
	return r;
}

static int open_directory(int dir_fd, const char *path)
{
	return fd_open_at(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static int open_directories(struct opened *opened, struct err *err)
{
	char path[PATH_MAX];
	int r;

	if (!opened->session->state || !opened->session->id)
		return err_set(err, ERR_USAGE, EINVAL, "stage", "--state and --session are needed; `atoll` gives them");
	r = str_format(path, sizeof path, "%s/sessions", opened->session->state);
	if (r == 0)
		opened->sessions_fd = r = open_directory(AT_FDCWD, path);
	if (r >= 0)
		opened->session_fd = r = open_directory(opened->sessions_fd, opened->session->id);
	if (r < 0)
		return fail(err, r, "the session's directory cannot be opened");
	opened->stage_fd = open_directory(opened->session_fd, STAGE_DIRECTORY);
	if (opened->stage_fd == -ENOENT) {
		err_set(err, ERR_NOT_FOUND, ENOENT, "stage", "session %s has no staged changes", opened->session->id);
		return -ENOENT;
	}
	return opened->stage_fd < 0 ? fail(err, opened->stage_fd, "the stage directory cannot be opened") : 0;
}

static int load_policy(struct opened *opened, struct err *err)
{
	size_t size;
	int r = fd_read_file_at(opened->session_fd, "policy.bin", SNAPSHOT_SIZE_MAX, &opened->policy_bytes, &size);

	/* Without it nothing would be flagged, which must not happen in silence. */
	if (r == 0)
		r = snapshot_load(&opened->snapshot, opened->policy_bytes, size);
	if (r == 0)
		return 0;
	fail(err, r, "the policy of the session cannot be read");
	err_hint(err, "atoll discard %s removes its staged changes", opened->session->id);
	return r;
}

int opened_open(struct opened *ret_opened, const struct verb_session *session, struct err *err)
{
	struct opened opened = OPENED_NONE;
	int r;

	opened.session = session;
	r = open_directories(&opened, err);
	if (r == 0) {
		r = stage_record_load(opened.stage_fd, &opened.record);
		if (r == 0)
			r = stage_chain_load(opened.stage_fd, STAGE_FILE_CHAIN, true, &opened.chain);
		if (r == -ENOENT)
			err_set(err, ERR_NOT_FOUND, ENOENT, "stage", "session %s has no staged changes", session->id);
		else if (r < 0)
			stage_record_explain(session->id, r, err);
	}
	if (r == 0) {
		opened.start_ns = stage_record_start_ns(&opened.record);
		/* Where that cannot be read, what changed in it is masked, as all of the state directory is. */
		if (session_root_of(session->state, session->id, opened.root, sizeof opened.root) < 0)
			*opened.root = 0;
		r = load_policy(&opened, err);
	}
	if (r < 0) {
		opened_done(&opened);
		return r;
	}
	*ret_opened = opened;
	return 0;
}

int opened_need_host(const struct opened *opened, const char *verb, struct err *err)
{
	const char *id = opened->session->id;
	char state[PATH_MAX], service[PATH_MAX];
	int r = path_real(opened->session->state, state, sizeof state);

	if (r == 0)
		r = path_join(service, sizeof service, state, "service");
	if (r < 0)
		return fail(err, r, "the state directory cannot be found");
	for (size_t i = 0; i < opened->record.tree_count; i++) {
		if (!path_is_below(opened->record.trees[i].path, service))
			continue;
		err_set(err, ERR_POLICY, EPERM, verb,
			"session %s is a sandbox of `atoll serve`: its files have no place on this machine, but for "
			"the directory that all new sandboxes begin with", id);
		err_hint(err, "copy files out: atoll cp %s:PATH .; keep its state: atoll snapshot %s", id, id);
		return -EPERM;
	}
	return 0;
}

const char *opened_tree(const struct opened *opened, size_t tree)
{
	return session_root_inside(opened->root, opened->record.trees[tree].path);
}

bool opened_is_system(const struct opened *opened, size_t tree)
{
	return opened_tree(opened, tree) != opened->record.trees[tree].path;
}

const char *opened_first_tree(const struct opened *opened)
{
	size_t tree = 0;

	while (tree + 1 < opened->record.tree_count && opened_is_system(opened, tree))
		tree++;
	return opened_tree(opened, tree);
}

int opened_at_snapshot(struct opened *opened, const char *name, struct err *err)
{
	char path[sizeof STAGE_DIRECTORY_SNAPSHOTS + 1 + STAGE_SNAPSHOT_NAME_MAX];
	int r = stage_snapshot_name_is_valid(name) ? 0 : -ENOENT;

	if (r == 0)
		r = str_format(path, sizeof path, STAGE_DIRECTORY_SNAPSHOTS "/%s", name);
	if (r == 0)
		r = stage_chain_load(opened->stage_fd, path, false, &opened->chain);
	opened->is_snapshot = true;
	return r < 0 ? err_set(err, ERR_NOT_FOUND, -r, "stage", "snapshot %.64s of session %s cannot be read: %s", name,
			       opened->record.session, strerror(-r))
		     : 0;
}

int opened_stacks(struct opened *opened, struct err *err)
{
	int r;

	opened->stacks = calloc(opened->record.tree_count, sizeof *opened->stacks);
	if (!opened->stacks || (!closed && stage_closed_new(&closed) < 0))
		return fail(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < opened->record.tree_count; i++) {
		opened->stacks[i] = STAGE_STACK_NONE;
		opened->stacks[i].closed = closed;
	}
	for (size_t i = 0; i < opened->record.tree_count; i++) {
		r = stage_stack_open(opened->sessions_fd, opened->stage_fd, &opened->chain, i,
					 !opened->is_snapshot, &opened->stacks[i]);

		if (r < 0) {
			fail(err, r, "a layer cannot be opened");
			err_hint(err, "atoll discard %s removes its staged changes", opened->session->id);
			return r;
		}
		opened->stacks[i].form = opened->record.form;
		r = stage_stack_open_host(&opened->stacks[i], &opened->record.trees[i], err);
		if (r < 0)
			return r;
	}
	r = stage_closed_lock(closed, opened->stage_fd);
	if (r < 0)
		return fail(err, r,
			    "another command reads directories that the sandbox closed; try again when it is done");
	r = seen_load(opened->sessions_fd, &opened->record, &opened->seen);
	if (r == 0)
		r = applied_load_restored(opened->sessions_fd, &opened->record, opened->start_ns, &opened->restored);
	return r < 0 ? fail(err, r, "what other sessions took back cannot be read") : 0;
}

enum {
	PLACES_MAX = STAGE_TREES_MAX * (STAGE_STACK_MAX + 2),
	READ = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR,
	WRITE = READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE |
		LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SYM | LANDLOCK_REFER,
};

static void add_places(const struct opened *opened, uint64_t rights, struct confine_place *places, size_t *count)
{
	places[(*count)++] = (struct confine_place){ opened->stage_fd, rights };
	for (size_t i = 0; opened->stacks && i < opened->record.tree_count; i++) {
		const struct stage_stack *stack = &opened->stacks[i];

		places[(*count)++] = (struct confine_place){ stack->host_fd,
							     opened_is_system(opened, i) ? READ : rights };
		for (size_t layer = 0; layer < stack->count; layer++)
			places[(*count)++] = (struct confine_place){ stack->layers[layer], READ };
	}
}

int opened_confine_both(const struct opened *a, const struct opened *b, enum confine_program program, struct err *err)
{
	uint64_t rights = program == CONFINE_STAGE_WRITING ? WRITE : READ;
	cleanup_free struct confine_place *places = calloc(2 * PLACES_MAX, sizeof *places);
	size_t count = 0;
	int r;

	r = stage_closed_keep(closed);
	if (r < 0)
		return fail(err, r, "what gives modes back cannot be started");
	if (!places)
		return err_set(err, ERR_INTERNAL, ENOMEM, "confine", "out of memory");
	add_places(a, rights, places, &count);
	if (b)
		add_places(b, rights, places, &count);
	return confine_self(program, places, count, err);
}

int opened_confine(const struct opened *opened, enum confine_program program, struct err *err)
{
	return opened_confine_both(opened, NULL, program, err);
}

void opened_done(struct opened *opened)
{
	stage_closed_free(closed);
	closed = NULL;
	for (size_t i = 0; opened->stacks && i < opened->record.tree_count; i++)
		stage_stack_done(&opened->stacks[i]);
	free(opened->stacks);
	applied_free(opened->restored);
	seen_free(opened->seen);
	snapshot_free(opened->snapshot);
	free(opened->policy_bytes);
	stage_record_done(&opened->record);
	close_fd(&opened->stage_fd);
	close_fd(&opened->session_fd);
	close_fd(&opened->sessions_fd);
	opened->stacks = NULL;
	opened->restored = NULL;
	opened->seen = NULL;
	opened->snapshot = NULL;
	opened->policy_bytes = NULL;
}
