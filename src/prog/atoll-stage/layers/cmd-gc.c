/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll-stage/verb/layer-gc.h"
#include "prog/atoll-stage/layers/size.h"
#include "prog/atoll-stage/layers/unreviewed.h"
#include "prog/atoll-stage/verb/verb.h"
#include "session/record.h"
#include "stage/record/names.h"
#include "stage/record/store.h"
#include "stage/snapshot/gc.h"

/*
 * Which sessions are old enough to go, and that they are not: alive, stood on by another session, about to be built on,
 * holding changes that nobody has looked at, or named by the service (STATE/held). Sessions that staged nothing go by
 * age as well. Newest first, for a fork is younger than what it stands on: when it goes, its origin may.
 */

enum { NS_PER_MS = 1000000, OUT_MAX = 64 << 20, SESSION_NAMES_MAX = 1 << 22, HELD_MAX = 16 << 20,
       RECORDLESS_AGE_MS = 24 * 3600 * 1000 };
static const uint64_t age_default_ms = 30ull * 24 * 3600 * 1000;

struct gc_options {
	struct verb_session session;
	const char *older_than, *keep, *max_size, *project;
	bool unreviewed, dry_run, json, terse;
};

static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct gc_options),
	{ 0, "older-than", "AGE", "ended so long ago", OPTION_TEXT, offsetof(struct gc_options, older_than) },
	{ 0, "keep", "N", "all but the newest", OPTION_TEXT, offsetof(struct gc_options, keep) },
	{ 0, "max-size", "SIZE", "until all take no more", OPTION_TEXT, offsetof(struct gc_options, max_size) },
	{ 0, "unreviewed", NULL, "also unreviewed ones", OPTION_FLAG, offsetof(struct gc_options, unreviewed) },
	{ 0, "project", "DIR", "of this project alone", OPTION_TEXT, offsetof(struct gc_options, project) },
	{ 0, "dry-run", NULL, "change nothing", OPTION_FLAG, offsetof(struct gc_options, dry_run) },
	{ 0, "json", NULL, "one JSON object", OPTION_FLAG, offsetof(struct gc_options, json) },
	{ 0, "terse", NULL, "one line, and only of what was removed", OPTION_FLAG,
	  offsetof(struct gc_options, terse) },
};

enum fate {
	FATE_YOUNG,
	FATE_LIVE,
	FATE_HELD,
	FATE_UNFINISHED,
	FATE_UNREVIEWED,
	FATE_UNREADABLE,
	FATE_USED,
	FATE_TOUCHED,
	FATE_FAILED,
	FATE_REMOVED,
	FATE_COUNT,
};

static const char *const fate_names[FATE_COUNT] = {
	[FATE_HELD] = "held",	    [FATE_UNFINISHED] = "unfinished", [FATE_UNREADABLE] = "unreadable",
	[FATE_YOUNG] = "young",	    [FATE_LIVE] = "live",	[FATE_UNREVIEWED] = "unreviewed",
	[FATE_USED] = "used",	    [FATE_TOUCHED] = "touched", [FATE_FAILED] = "failed",
	[FATE_REMOVED] = "removed",
};

/* What moves with everything that a verb does to a stage directory; all zeros: it has none. */
struct moment {
	struct timespec stage, applies;
};

struct candidate {
	char id[SESSION_ID_SIZE];
	struct moment looked;  /* before its changes were looked for */
	uint64_t ended_ns;     /* or started, where no end is known; 0: it has no record */
	uint64_t bytes;
	bool is_live, is_staged, is_unfinished, is_unreadable, is_held;
	enum fate fate;
	char user[SESSION_ID_SIZE]; /* FATE_USED: who stands on it */
};

struct gc {
	const struct gc_options *given;
	int sessions_fd;
	uint64_t older_than_ns, keep, max_size, now_ns;
	struct stage_references references;
	char *held;            /* owned: ids that stand in STATE/held, one a line; NULL: none */
	struct candidate *items;
	size_t count;
	uint64_t layers, freed, total;
	bool has_failed;       /* something could not be removed: the rest was */
};

static bool is_held(const struct gc *gc, const char *id)
{
	return gc->held && strstr(gc->held, id);
}

/* A file that is there and cannot be read may name anything. */
static int load_held(struct gc *gc, struct err *err)
{
	char path[PATH_MAX];
	size_t size;
	int r = str_format(path, sizeof path, "%s/" SESSION_HELD_FILE, gc->given->session.state);

	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, path, HELD_MAX, &gc->held, &size);
	return r < 0 && r != -ENOENT ? err_set(err, ERR_STATE, -r, "gc", "%s cannot be read: %s", path,
					       err_errno_name(-r)) : 0;
}

static int load_candidate(struct gc *gc, const char *id, struct candidate *candidate)
{
	cleanup_fd int dir_fd = fd_open_at(gc->sessions_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	cleanup_session_record struct session_record record = { 0 };
	struct stat st;

	*candidate = (struct candidate){ 0 };
	if (dir_fd < 0 || fstat(dir_fd, &st) < 0 || str_copy(candidate->id, sizeof candidate->id, id) < 0)
		return -ENOENT;
	candidate->is_held = is_held(gc, id);
	if (session_load(dir_fd, &record) == 0) {
		if (gc->given->project && !str_equal(gc->given->project, record.project))
			return -ENOENT;
		candidate->ended_ns = record.ended_ns ? record.ended_ns : record.started_ns;
		candidate->is_live = record.is_live;
		/* What was only tried waits for nobody. */
		candidate->is_staged = record.is_staged && !record.is_trial;
		return 0;
	}
	if (gc->given->project)
		return -ENOENT;
	/* A start that never came to its first record, or is coming to it now; or damage: the layers are asked. */
	candidate->is_staged = true;
	candidate->ended_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u;
	candidate->is_live = candidate->ended_ns + (uint64_t)RECORDLESS_AGE_MS * NS_PER_MS > gc->now_ns;
	return 0;
}

static int compare_newest_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->ended_ns != y->ended_ns)
		return x->ended_ns < y->ended_ns ? 1 : -1;
	return strcmp(x->id, y->id);
}

static int load_all(struct gc *gc)
{
	cleanup_fd int fd = fd_open_at(gc->sessions_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	struct stage_names names = { 0 };
	int r = fd < 0 ? fd : stage_names_read(&names, &(struct stage_names_source){ .dir_fd = fd }, SESSION_NAMES_MAX);

	gc->items = r == 0 ? calloc(names.count + 1, sizeof *gc->items) : NULL;
	if (r == 0 && !gc->items)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < names.count; i++) {
		const char *name = stage_names_get(&names, i);

		if (stage_session_is_valid(name) && load_candidate(gc, name, &gc->items[gc->count]) == 0)
			gc->count++;
	}
	stage_names_done(&names);
	if (r == 0 && gc->count)
		qsort(gc->items, gc->count, sizeof *gc->items, compare_newest_first);
	return r;
}

/* What was being removed when an earlier gc was killed. */
static int remove_leftovers(struct gc *gc)
{
	cleanup_fd int fd = fd_open_at(gc->sessions_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	struct stage_names names = { 0 };
	int r = fd < 0 ? fd : stage_names_read(&names, &(struct stage_names_source){ .dir_fd = fd }, SESSION_NAMES_MAX);

	for (size_t i = 0; r == 0 && i < names.count && !gc->given->dry_run; i++) {
		char name[SESSION_ID_SIZE + sizeof ".gone"];
		struct stat st;

		if (!str_has_suffix(stage_names_get(&names, i), ".gone") ||
		    str_copy(name, sizeof name, stage_names_get(&names, i)) < 0)
			continue;
		name[strlen(name) - strlen(".gone")] = 0;
		/* One that resists keeps nothing else. */
		if (stage_session_is_valid(name) && fstatat(gc->sessions_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			gc->has_failed |= stage_gc_session(gc->sessions_fd, name, &gc->freed) < 0;
	}
	stage_names_done(&names);
	return r;
}

static bool is_wanted(const struct gc *gc, const struct candidate *candidate, size_t rank)
{
	if (gc->older_than_ns != UINT64_MAX && candidate->ended_ns + gc->older_than_ns <= gc->now_ns)
		return true;
	return rank >= gc->keep;
}

static enum fate judge(const struct gc *gc, struct candidate *candidate)
{
	const char *user = stage_references_user(&gc->references, candidate->id);

	if (candidate->is_live)
		return FATE_LIVE;
	if (candidate->is_held)
		return FATE_HELD;
	if (candidate->is_unreadable && !gc->given->unreviewed)
		return FATE_UNREADABLE;
	if (candidate->is_unfinished)
		return FATE_UNFINISHED;
	if (candidate->is_staged && !gc->given->unreviewed)
		return FATE_UNREVIEWED;
	/* That one may stand on anything that was ever sealed. */
	if (*gc->references.unreadable && !str_equal(gc->references.unreadable, candidate->id) &&
	    stage_gc_has_layers(gc->sessions_fd, candidate->id))
		user = gc->references.unreadable;
	if (user)
		return str_copy(candidate->user, sizeof candidate->user, user) < 0 ? FATE_FAILED : FATE_USED;
	return stage_gc_is_touched(gc->sessions_fd, candidate->id) ? FATE_TOUCHED : FATE_REMOVED;
}

static struct timespec changed_at(const struct gc *gc, const char *id, const char *name)
{
	char path[SESSION_ID_SIZE + 32];
	struct stat st;

	if (str_format(path, sizeof path, "%s/%s", id, name) < 0 ||
	    fstatat(gc->sessions_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return (struct timespec){ 0 };
	return st.st_ctim;
}

static struct moment moment_of(const struct gc *gc, const char *id)
{
	return (struct moment){
		.stage = changed_at(gc, id, STAGE_DIRECTORY),
		.applies = changed_at(gc, id, STAGE_DIRECTORY "/" STAGE_DIRECTORY_APPLIES),
	};
}

static enum fate remove_session(struct gc *gc, struct candidate *candidate)
{
	cleanup_fd int box_fd = FD_NONE, stage_fd = FD_NONE;
	struct moment now;
	int r;

	if (gc->given->dry_run)
		return FATE_REMOVED;
	if (stage_gc_claim(gc->sessions_fd, candidate->id, &box_fd, &stage_fd) < 0)
		return FATE_LIVE;
	/* An undo since then brought back what nobody has reviewed; a fork stands on it by now. */
	now = moment_of(gc, candidate->id);
	if (memcmp(&now, &candidate->looked, sizeof now) != 0 ||
	    stage_gc_is_touched(gc->sessions_fd, candidate->id))
		return FATE_TOUCHED;
	candidate->bytes = 0;
	r = stage_gc_session(gc->sessions_fd, candidate->id, &candidate->bytes);
	return r < 0 ? FATE_FAILED : FATE_REMOVED;
}

static void take_session(struct gc *gc, struct candidate *candidate)
{
	candidate->fate = judge(gc, candidate);
	if (candidate->fate == FATE_REMOVED)
		candidate->fate = remove_session(gc, candidate);
	if (candidate->fate == FATE_REMOVED) {
		stage_references_forget(&gc->references, candidate->id);
		gc->freed += candidate->bytes;
	}
}

static void take_by_age(struct gc *gc)
{
	for (size_t i = 0; i < gc->count; i++)
		if (is_wanted(gc, &gc->items[i], i))
			take_session(gc, &gc->items[i]);
}

/* The layers that nobody names, of the sessions that stay. */
static int take_layers(struct gc *gc)
{
	for (size_t i = 0; i < gc->count; i++) {
		cleanup_fd int stage_fd = FD_NONE;
		int r;

		/* The service forgets snapshots of what runs; other sandboxes are tidied up when they have ended. */
		if (gc->items[i].fate == FATE_REMOVED || (gc->items[i].is_live && !gc->given->project))
			continue;
		if (stage_gc_claim(gc->sessions_fd, gc->items[i].id, NULL, &stage_fd) < 0)
			continue;
		r = stage_gc_layers(gc->sessions_fd, gc->items[i].id, &gc->references, gc->given->dry_run, &gc->layers,
				    &gc->freed);
		if (r == -ENOMEM)
			return r;
		gc->has_failed |= r < 0;
	}
	return 0;
}

/* Of one project the bound is of what has ended and is nobody's: what runs or is held has bounds of its own. */
static bool is_beside(const struct gc *gc, const struct candidate *candidate)
{
	return gc->given->project && (candidate->is_live || candidate->is_held);
}

/* Oldest first, until what stays is small enough. */
static int take_by_size(struct gc *gc)
{
	int r = 0;

	gc->total = 0;
	for (size_t i = 0; r == 0 && i < gc->count; i++)
		if (gc->items[i].fate != FATE_REMOVED && !is_beside(gc, &gc->items[i])) {
			gc->items[i].bytes = 0;
			gc->has_failed |= size_of_tree(gc->sessions_fd, gc->items[i].id, &gc->items[i].bytes) < 0;
			gc->total += gc->items[i].bytes;
		}
	for (size_t i = gc->count; r == 0 && i-- > 0 && gc->total > gc->max_size;) {
		struct candidate *candidate = &gc->items[i];
		uint64_t bytes = candidate->bytes;

		if (candidate->fate == FATE_REMOVED || is_beside(gc, candidate))
			continue;
		take_session(gc, candidate);
		if (candidate->fate == FATE_REMOVED)
			gc->total -= bytes;
	}
	return r;
}

static int parse(const struct gc_options *given, struct gc *gc, struct err *err)
{
	uint64_t age_ms = age_default_ms;
	int r = 0;

	gc->keep = gc->max_size = UINT64_MAX;
	if (given->older_than)
		r = num_parse_duration(given->older_than, &age_ms);
	if (r == 0 && given->keep)
		r = num_parse_u64(given->keep, &gc->keep);
	if (r == 0 && given->max_size)
		r = num_parse_size(given->max_size, &gc->max_size);
	if (r < 0)
		return err_set(err, ERR_USAGE, -r, "gc", "an age, a number or a size cannot be read");
	/* Whoever names another measure does not mean the age, too. */
	if ((!given->older_than && (given->keep || given->max_size)) || age_ms > UINT64_MAX / NS_PER_MS)
		gc->older_than_ns = UINT64_MAX;
	else
		gc->older_than_ns = age_ms * NS_PER_MS;
	gc->now_ns = clock_realtime_ns();
	return 0;
}

static int open_sessions(struct gc *gc, struct err *err)
{
	cleanup_fd int state_fd = fd_open_at(AT_FDCWD, gc->given->session.state, O_PATH | O_DIRECTORY, 0);

	gc->sessions_fd = state_fd < 0 ? state_fd
				       : fd_open_at(state_fd, "sessions", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return gc->sessions_fd == -ENOENT ? 1
	       : gc->sessions_fd < 0
		       ? err_set(err, ERR_STATE, -gc->sessions_fd, "gc", "the sessions below %s cannot be opened: %s",
				 gc->given->session.state, strerror(-gc->sessions_fd))
		       : 0;
}

/* The record says that a session may hold changes; they may all have been applied since. */
static void look_for_changes(struct gc *gc)
{
	for (size_t i = 0; i < gc->count; i++) {
		struct candidate *candidate = &gc->items[i];
		struct unreviewed found;

		if (candidate->is_live || (!is_wanted(gc, candidate, i) && gc->max_size == UINT64_MAX))
			continue;
		candidate->looked = moment_of(gc, candidate->id);
		/* It has no layers at all: there is nothing to look at. */
		if (!candidate->looked.stage.tv_sec) {
			candidate->is_staged = false;
			continue;
		}
		found = unreviewed_look(gc->given->session.state, candidate->id);
		candidate->is_unfinished = found.is_unfinished;
		candidate->is_unreadable = found.is_unreadable;
		candidate->is_staged = candidate->is_staged && found.has_changes;
	}
}

static int collect(struct gc *gc, struct err *err)
{
	int r = load_held(gc, err);

	if (r < 0)
		return r;
	r = load_all(gc);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "gc", "the sessions cannot be read: %s", strerror(-r));
	look_for_changes(gc);
	r = layer_gc_confine(gc->sessions_fd, NULL, err);
	if (r < 0)
		return r;
	r = remove_leftovers(gc);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "gc", "what an earlier gc left cannot be removed: %s", strerror(-r));
	r = stage_references_load(gc->sessions_fd, &gc->references, err);
	if (r < 0)
		return r;
	take_by_age(gc);
	r = take_layers(gc);
	if (r == 0 && gc->max_size != UINT64_MAX)
		r = take_by_size(gc);
	return r < 0 ? err_set(err, ERR_STATE, -r, "gc", "layers cannot be removed: %s", strerror(-r)) : 0;
}

static void put_json(const struct gc *gc, struct buf *out)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_bool(&json, "dry_run", gc->given->dry_run);
	json_u64(&json, "freed", gc->freed);
	json_u64(&json, "layers", gc->layers);
	json_array_begin(&json, "sessions");
	for (size_t i = 0; i < gc->count; i++) {
		const struct candidate *item = &gc->items[i];

		json_object_begin(&json, NULL);
		json_string(&json, "session", item->id);
		json_string(&json, "fate", fate_names[item->fate]);
		if (item->fate == FATE_USED)
			json_string(&json, "user", item->user);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	buf_put_char(out, '\n');
}

static void put_kept(const struct gc *gc, const struct candidate *item, struct buf *out)
{
	static const char *const texts[FATE_COUNT] = {
		[FATE_UNREVIEWED] = "has staged changes that nobody applied or dropped (atoll diff, or --unreviewed)",
		[FATE_UNFINISHED] = "has an apply that was cut off: any verb of it finishes that first",
		[FATE_UNREADABLE] =
			"cannot be read: another version of atoll wrote it, or it is damaged (--unreviewed)",
		[FATE_TOUCHED] = "is just being built on",
		[FATE_HELD] = "is needed by atoll serve: a template, or a sandbox that is paused without its memory",
		[FATE_FAILED] = "could not be removed",
	};

	if (item->fate == FATE_USED && str_equal(item->user, gc->references.unreadable))
		buf_printf(out, "%s stays: %s, which cannot be read, may stand on its layers (atoll discard %s)\n",
			   item->id, item->user, item->user);
	else if (item->fate == FATE_USED)
		buf_printf(out, "%s stays: %s stands on its layers\n", item->id, item->user);
	else if (texts[item->fate])
		buf_printf(out, "%s stays: it %s\n", item->id, texts[item->fate]);
}

static void put_people(const struct gc *gc, struct buf *out)
{
	char size[32];
	size_t removed = 0;

	for (size_t i = 0; i < gc->count; i++) {
		if (!gc->given->terse)
			put_kept(gc, &gc->items[i], out);
		removed += gc->items[i].fate == FATE_REMOVED;
	}
	if (gc->has_failed && !gc->given->terse)
		buf_put_text(out, "some of what nobody needs any more could not be removed\n");
	if (gc->given->terse && !removed && !gc->layers)
		return;
	num_format_size_human(gc->freed, size);
	if (gc->given->terse)
		buf_put_text(out, "tidied up by itself: ");
	buf_printf(out, "%zu %s and %llu %s %s", removed, removed == 1 ? "session" : "sessions",
		   (unsigned long long)gc->layers, gc->layers == 1 ? "layer" : "layers",
		   gc->given->dry_run ? "would go" : "removed");
	if (!gc->given->dry_run)
		buf_printf(out, ", %s freed", size);
	if (gc->given->terse)
		buf_put_text(out, " (ATOLL_GC=off keeps all of them; atoll gc --help)");
	buf_put_char(out, '\n');
}

static int report(const struct gc *gc, struct err *err)
{
	cleanup_buf struct buf out;

	buf_init(&out, OUT_MAX);
	if (gc->given->json)
		put_json(gc, &out);
	else
		put_people(gc, &out);
	if (buf_error(&out) || fwrite(out.bytes, 1, out.size, stdout) != out.size || fflush(stdout) != 0)
		return err_set(err, ERR_STATE, EIO, "gc", "stdout cannot be written");
	for (size_t i = 0; i < gc->count; i++)
		if (gc->items[i].fate == FATE_FAILED)
			return EXIT_LEFT;
	return gc->has_failed ? EXIT_LEFT : 0;
}

int cmd_gc(int argc, char **argv, struct err *err)
{
	struct gc_options given = { 0 };
	struct gc gc = { .given = &given, .sessions_fd = FD_NONE };
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r == 0 && !given.session.state)
		r = err_set(err, ERR_USAGE, EINVAL, "gc", "atoll-stage gc is run by atoll");
	if (r == 0)
		r = parse(&given, &gc, err);
	if (r == 0)
		r = open_sessions(&gc, err);
	if (r == 0)
		r = collect(&gc, err);
	if (r >= 0)
		r = report(&gc, err);
	free(gc.items);
	free(gc.held);
	stage_references_done(&gc.references);
	close_fd(&gc.sessions_fd);
	return r;
}
