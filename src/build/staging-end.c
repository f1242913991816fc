/* SPDX-License-Identifier: Apache-2.0 */

/* The end of a run that staged something: what changed, and what becomes of it. */

#include "build/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/str.h"
#include "build/stage-query.h"
#include "os/fd.h"
#include "policy/decide.h"
#include "session/directories.h"
#include "session/flagging.h"
#include "session/record.h"
#include "stage/layer/remove.h"
#include "stage/change/seen.h"
#include "stage/record/use.h"

#define TOLD_SUFFIX ".told"

enum {
	COMMAND_SHOWN_MAX = 200,
	COUNT_MAX = 50000, /* more changes than this are "at least": the end of a run must not take seconds */
	CLAIM_MS = 500,    /* who lists the snapshots is done by then; who applies is not */
};

struct counter {
	const struct policy *policy;
	struct flagging flagging;
	struct seen *seen;     /* borrowed; NULL: nothing is noted */
	struct stage_closed *closed; /* owned; NULL: as root */
	char root[PATH_MAX];   /* the system that the session has; "": the machine's */
	size_t tree;
};

static bool is_flagged(void *context, const struct stage_change *change)
{
	struct counter *counter = context;

	return flagging_has(&counter->flagging, change);
}

static bool is_masked(void *context, const char *path)
{
	struct counter *counter = context;
	const char *subject = flagging_path(&counter->flagging, path);

	return !subject || policy_classify(counter->policy, subject, &(size_t){ 0 }) == FILE_MASK;
}

static bool is_seen(void *context, const struct stage_entry *entry)
{
	const struct counter *counter = context;

	return seen_has(counter->seen, counter->tree, entry);
}

static bool was_seen(void *context, const char *path)
{
	const struct counter *counter = context;

	return seen_had(counter->seen, counter->tree, path);
}

/* As long as ctimes tell what is of the start. */
static void note_seen(void *context, const struct stage_entry *entry)
{
	struct counter *counter = context;

	if (counter->seen)
		seen_note(counter->seen, counter->tree, entry);
}

bool staging_is_system(const struct staging *staging, const struct run_request *request, size_t tree)
{
	const char *path = staging->record.trees[tree].path;
	char root[PATH_MAX];

	return session_root_of(request->state_dir, request->session, root, sizeof root) == 0 &&
	       session_root_inside(root, path) != path;
}

static int count_tree(struct staging *staging, int sessions_fd, struct counter *counter, size_t index)
{
	const struct stage_tree *tree = &staging->record.trees[index];
	cleanup_stage_stack struct stage_stack stack = STAGE_STACK_NONE;
	struct stage_change_options options = {
		.tree = index,
		.start_ns = stage_record_start_ns(&staging->record),
		.owner = (uid_t)-1,
		.is_system = session_root_inside(counter->root, tree->path) != tree->path,
		.is_flagged = is_flagged,
		.is_masked = is_masked,
		.is_seen = is_seen,
		.was_seen = was_seen,
		.note_seen = note_seen,
		.context = counter,
	};
	struct err err;
	int r;

	stack.closed = counter->closed;
	r = stage_stack_open(sessions_fd, staging->stage_fd, &staging->chain, index, true, &stack);
	counter->tree = index;
	stack.form = staging->record.form;
	if (r == 0)
		r = stage_stack_open_host(&stack, tree, &err);
	if (r == 0)
		r = flagging_begin(&counter->flagging, tree->path, &stack);
	return r < 0 ? r : stage_changes_count(&stack, &options, COUNT_MAX, &staging->counts);
}

/* Where nobody can tell, what was not read stays flagged. */
static void settle_unread(struct staging *staging, const struct run_request *request)
{
	uint64_t flagged;

	if (!staging->counts.is_cut &&
	    stage_query(request, "flagged", STAGE_QUERY_MS, &flagged, sizeof flagged) == 0 &&
	    flagged < staging->counts.flagged)
		staging->counts.flagged = flagged;
}

static int count_changes(struct staging *staging, const struct run_request *request, const struct policy *policy)
{
	struct counter counter = { .policy = policy };
	cleanup_fd int sessions_fd = FD_NONE;
	char path[PATH_MAX];
	int r = flagging_init(&counter.flagging, policy);

	if (r == 0)
		r = stage_closed_new(&counter.closed);
	if (r == 0)
		r = str_format(path, sizeof path, "%s/sessions", request->state_dir);
	if (r == 0)
		r = sessions_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	/* Where that cannot be read, what changed in it is masked, as all of the state directory is. */
	if (session_root_of(request->state_dir, request->session, counter.root, sizeof counter.root) < 0)
		*counter.root = 0;
	if (r >= 0 && !staging->seen)
		r = seen_load(sessions_fd, &staging->record, &staging->seen);
	counter.seen = staging->seen;
	for (size_t i = 0; r >= 0 && i < staging->record.tree_count; i++)
		r = count_tree(staging, sessions_fd, &counter, i);
	if (r >= 0 && counter.flagging.unread)
		settle_unread(staging, request);
	/* What could not be noted is a conflict later where it need not be one. */
	if (r >= 0)
		(void)!seen_store(counter.seen, staging->stage_fd);
	stage_closed_free(counter.closed);
	flagging_done(&counter.flagging);
	return r < 0 ? r : 0;
}

static void hash_project(const struct run_request *request, char out[HASH_HEX_SIZE])
{
	struct hash hash;

	hash_bytes(&hash, request->project, strlen(request->project));
	hash_to_hex(&hash, out);
}

/*
 * STATE/projects/HASH: a link whose text is the newest session of that project with changes; with the suffix: the one
 * that a run has said at its start.
 */
static int open_projects(const struct run_request *request, char name[HASH_HEX_SIZE])
{
	char path[PATH_MAX];
	int r = str_format(path, sizeof path, "%s/projects", request->state_dir);

	hash_project(request, name);
	if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	return r < 0 ? r : fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

/* Whether it holds changes, of which nobody has applied any yet. */
static bool is_unreviewed(const struct run_request *request, const char *session)
{
	cleanup_session_record struct session_record record = { 0 };
	char path[PATH_MAX];

	return session_load_id(request->state_dir, session, &record) == 0 && record.is_staged &&
	       session_path(request->state_dir, session, STAGE_DIRECTORY "/" STAGE_FILE_TREES, path,
			    sizeof path) == 0 &&
	       access(path, F_OK) == 0 &&
	       session_path(request->state_dir, session, STAGE_DIRECTORY "/" STAGE_DIRECTORY_APPLIES, path,
			    sizeof path) == 0 &&
	       access(path, F_OK) < 0;
}

/* What a link of this name beside the project's says: the id of a session, or "". */
static void read_link(const struct run_request *request, const char *suffix, char out[SESSION_ID_SIZE])
{
	char path[PATH_MAX], hash[HASH_HEX_SIZE], named[SESSION_ID_SIZE + 1];
	ssize_t size = -1;

	hash_project(request, hash);
	if (str_format(path, sizeof path, "%s/projects/%s%s", request->state_dir, hash, suffix) == 0)
		size = readlink(path, named, sizeof named);
	named[size == SESSION_ID_SIZE - 1 ? size : 0] = 0;
	memcpy(out, named, SESSION_ID_SIZE);
	if (!session_id_is_valid(out))
		*out = 0;
}

/* Whether there is one of which no run has said so yet; it counts as said. */
static bool take_unseen(struct staging *staging, const struct run_request *request)
{
	char told[SESSION_ID_SIZE], name[HASH_HEX_SIZE + sizeof TOLD_SUFFIX];
	cleanup_fd int fd = FD_NONE;

	if (request->flags & REQUEST_TRIAL)
		return false;
	read_link(request, "", staging->unseen);
	if (*staging->unseen)
		read_link(request, TOLD_SUFFIX, told);
	if (!*staging->unseen || str_equal(staging->unseen, told) || str_equal(staging->unseen, request->fork.origin) ||
	    str_equal(staging->unseen, staging->record.origin) || !is_unreviewed(request, staging->unseen)) {
		*staging->unseen = 0;
		return false;
	}
	fd = open_projects(request, name);
	memcpy(name + HASH_HEX_SIZE - 1, TOLD_SUFFIX, sizeof TOLD_SUFFIX);
	/* Where that cannot be noted it is said again. */
	if (fd >= 0 && (unlinkat(fd, name, 0) == 0 || errno == ENOENT))
		(void)!symlinkat(staging->unseen, fd, name);
	return true;
}

/* The command of this run as a person would type it again; "CMD…" where it is long or cannot be shown. */
static void put_command(const struct run_request *request, struct buf *out)
{
	char memory[COMMAND_SHOWN_MAX];
	struct buf words;
	bool is_shown = true;

	buf_init_fixed(&words, memory, sizeof memory);
	for (char **word = request->command.argv; word && *word && is_shown; word++) {
		buf_put_text(&words, words.size ? " " : "");
		is_shown = buf_put_shell_word(&words, *word);
	}
	buf_put_text(out, is_shown && !buf_error(&words) && words.size ? buf_text(&words) : "CMD…");
}

void staging_put_unseen(struct staging *staging, const struct run_request *request, struct buf *out)
{
	const char *unseen = staging->unseen;

	if (!take_unseen(staging, request))
		return;
	buf_printf(out, "atoll: the changes of session %s in this project are not applied, so this run does not see "
			"them\n  to continue with them: atoll run --continue %s -- ",
		   unseen, unseen);
	put_command(request, out);
	buf_printf(out, "\n  review it:     atoll diff %s\n", unseen);
}

void staging_put_backend(const struct staging *staging, struct buf *out)
{
	if (staging->backend == BACKEND_FUSE_FOR_OTHERS)
		buf_put_text(out, "atoll: staged with fuse-overlayfs, because files here belong to other users or to "
				  "another group (slower, no snapshots)\n");
	if (staging->backend == BACKEND_OVERLAY_NO_FUSE)
		buf_put_text(out, "atoll: files here that belong to other users or to another group cannot be "
				  "changed inside (EOVERFLOW): install fuse-overlayfs, or write `stage: {backend: "
				  "fuse}`\n");
}

void staging_put_earlier(const struct staging *staging, struct buf *out)
{
	if (*staging->earlier && !str_equal(staging->earlier, staging->unseen))
		buf_printf(out,
			   "atoll: an earlier session of this project holds changes that nobody applied or dropped: "
			   "atoll diff %s\n",
			   staging->earlier);
}

/* Another that holds some, since what the link names holds none any more: the newest that has ended. */
static void find_older(struct staging *staging, const struct run_request *request)
{
	struct session_record *records;
	struct err unheard;
	size_t count;

	if (session_list(request->state_dir, &records, &count, &unheard) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		const struct session_record *record = &records[i];

		if (!*staging->earlier && !record->is_live && record->ended_ns && !record->is_trial &&
		    str_equal(record->project, request->project) && !str_equal(record->id, staging->record.origin) &&
		    is_unreviewed(request, record->id))
			memcpy(staging->earlier, record->id, SESSION_ID_SIZE);
		session_record_done(&records[i]);
	}
	free(records);
}

static void find_earlier(struct staging *staging, const struct run_request *request, const char *named)
{
	if (is_unreviewed(request, named))
		memcpy(staging->earlier, named, SESSION_ID_SIZE);
	else
		find_older(staging, request);
}

/*
 * Finds the earlier session, and puts this one in its place where it has changes. Where the link names one that holds
 * none any more, it gets what was found instead, so that all sessions are looked through once. What fails here is
 * only not said.
 */
static void note_project(struct staging *staging, const struct run_request *request)
{
	char name[HASH_HEX_SIZE], named[SESSION_ID_SIZE];
	cleanup_fd int fd = FD_NONE;
	const char *newest;
	bool is_origin;

	/* A trial waits for an answer of its own, and must not stand before what nobody has looked at. */
	if (request->flags & REQUEST_TRIAL)
		return;
	fd = open_projects(request, name);
	read_link(request, "", named);
	is_origin = str_equal(named, staging->record.origin);
	if (*named && !is_origin)
		find_earlier(staging, request, named);
	newest = staging->has_changes ? request->session : is_origin ? named : staging->earlier;
	if (fd < 0 || str_equal(newest, named))
		return;
	unlinkat(fd, name, 0);
	if (*newest && symlinkat(newest, fd, name) < 0)
		return;
}

const char *staging_trash(const struct staging *staging, const struct run_request *request)
{
	static char path[PATH_MAX];

	if (!staging->has_trash ||
	    session_path(request->state_dir, request->session, STAGE_DIRECTORY, path, sizeof path) < 0)
		return NULL;
	return path;
}

/* What came in while it ran: an apply that can be undone, a snapshot that somebody named. */
static bool has_history(const struct staging *staging)
{
	static const char *const names[] = { STAGE_DIRECTORY_APPLIES, STAGE_DIRECTORY_SNAPSHOTS };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (faccessat(staging->stage_fd, names[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	return false;
}

/* As stage_remove_tree() names what is going. */
static int throw_away(struct staging *staging, int from_fd, const char *name, int session_fd)
{
	if (syscall(SYS_renameat2, from_fd, name, session_fd, STAGE_DIRECTORY ".gone", 0) < 0)
		return -errno;
	staging->has_trash = true;
	return 0;
}

/* Only what was written: names and applies that somebody made while it ran stay. */
static int drop_layers(struct staging *staging, int session_fd)
{
	struct stage_chain none = { 0 };
	char name[sizeof STAGE_DIRECTORY_LAYERS "/" + 16];
	struct err err;
	int number = stage_live_is_used(staging->stage_fd, &staging->record), r;

	if (number > 0)
		number = stage_seal(staging->stage_fd, &staging->record, &staging->chain, &err);
	r = number < 0 ? number : stage_chain_store(staging->stage_fd, STAGE_FILE_CHAIN, &none);
	/* A power cut must not bring back a chain that names what is gone. */
	if (r == 0 && fsync(staging->stage_fd) < 0)
		r = -errno;
	if (r == 0 && number)
		r = str_format(name, sizeof name, STAGE_DIRECTORY_LAYERS "/%d", number);
	return r == 0 && number ? throw_away(staging, staging->stage_fd, name, session_fd) : r;
}

static int let_go(struct staging *staging, bool is_dropped, int session_fd)
{
	int r;

	if (has_history(staging)) {
		staging->is_kept = true;
		r = is_dropped ? drop_layers(staging, session_fd) : 0;
		stage_release(staging->stage_fd);
		return r;
	}
	r = throw_away(staging, session_fd, STAGE_DIRECTORY, session_fd);
	/* Where that fails gc takes it later, unless there is something in it. */
	staging->is_kept = r < 0 && is_dropped;
	close_fd(&staging->stage_fd);
	return r;
}

void staging_count(struct staging *staging, const struct run_request *request, const struct policy *policy)
{
	bool is_unused;

	if (staging->stage_fd < 0)
		return;
	/* Most runs change nothing: then nothing has to be walked. What a fork stands on was counted at its own end. */
	is_unused = stage_linked_is_used(staging->stage_fd, &staging->record, staging->linked.done_ns) == 0;
	staging->is_unlike_origin = !is_unused && !str_equal(staging->record.origin, staging->record.session);
	staging->is_as_origin = is_unused && staging->chain.count;
	staging->is_counted = is_unused || count_changes(staging, request, policy) == 0;
	staging->has_changes = staging->is_as_origin || !staging->is_counted || stage_counts_any(&staging->counts);
}

int staging_conclude(struct staging *staging, const struct run_request *request, bool is_dropped, int session_fd)
{
	int r = 0;

	if (staging->stage_fd < 0)
		return 0;
	staging->is_kept = (staging->has_changes || staging->is_unlike_origin) && !is_dropped;
	if (!staging->is_kept) {
		r = stage_claim(staging->stage_fd, CLAIM_MS);
		staging->is_in_use = staging->is_kept = r < 0;
	}
	if (!staging->is_kept)
		r = let_go(staging, is_dropped, session_fd);
	if (is_dropped && r == 0)
		staging->has_changes = false;
	note_project(staging, request);
	return r;
}
