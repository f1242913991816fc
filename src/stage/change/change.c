/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/change/change.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "os/clone.h"
#include "os/path.h"
#include "stage/layer/attributes.h"
#include "stage/change/compare.h"
#include "stage/layer/origins.h"

/*
 * Theory of operation. enter() of the walk judges what can be judged before what is below: files, and directories that
 * are added or keep being directories. leave() judges what depends on what is below: directories of the host that
 * go, alone or to make room for a file. Two rules tie paths together: a directory cannot go while something below it
 * stays (`stays` counts that), and nothing can be added below a directory that cannot be made (`left_at`).
 */

/* Bits of a mode that reach the host: set-id bits of a file never do, so they are no difference either. */
enum { MODE_MASK = 01777, DIRECTORY_MODE_MASK = 07777 };

/* What is known of a directory while the walk is below it. */
struct level_of_judge {
	uint64_t stays_before;    /* judge.stays when it was entered; SETTLED: leave() shall not judge it */
	bool has_changed;         /* entries of the host's may have come, gone or been renamed in it since the start */
};

/* stays_before of an entry that leave() shall not judge. */
#define SETTLED UINT64_MAX

struct judge {
	const struct stage_stack *stack;
	const struct stage_change_options *options;
	int (*on_change)(void *context, const struct stage_change *change);
	void *context;
	struct compare compare;
	struct origins *origins;  /* made when first needed */
	uint64_t stays;           /* paths of the host that cannot go, so far */
	struct level_of_judge *levels;     /* by depth */
	size_t moved_at;          /* 1 + depth of a directory that may not be the one of the start; 0: none */
	size_t left_at;           /* 1 + depth of a directory that cannot be made; 0: none */
};

enum wanted { WANTED_NO, WANTED_BELOW, WANTED_YES };

/* Whether the path was asked for, or something below it. */
static enum wanted wanted(const struct stage_change_options *options, const char *path)
{
	enum wanted result = options->path_count ? WANTED_NO : WANTED_YES;

	for (size_t i = 0; i < options->path_count && result != WANTED_YES; i++) {
		const char *given = options->paths[i];
		size_t given_length = strlen(given), length = strlen(path);

		if (!given_length || (strncmp(path, given, given_length) == 0 &&
				      (!path[given_length] || path[given_length] == '/')))
			result = WANTED_YES;
		else if (!length || (strncmp(given, path, length) == 0 && given[length] == '/'))
			result = WANTED_BELOW;
	}
	return result;
}

static uint64_t time_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * 1000000000ULL + (uint64_t)time->tv_nsec;
}

bool stage_is_since(const struct timespec *ctime, uint64_t start_ns)
{
	return time_ns(ctime) >= start_ns - (ctime->tv_nsec ? 0 : start_ns % 1000000000ULL);
}

/* ctime, which no user can set back; but what an earlier apply of ours wrote is no change of the host's. */
static bool host_has_changed(const struct judge *judge, const struct stage_entry *entry)
{
	const struct stage_change_options *options = judge->options;

	if (!judge->moved_at && (!stage_is_since(&entry->host.st_ctim, options->start_ns) ||
				 (options->is_restored && options->is_restored(options->context, entry->path,
									       &entry->host))))
		return false;
	return !options->is_own || !options->is_own(options->context, entry->path, &entry->host);
}

static bool is_masked(const struct judge *judge, const struct stage_entry *entry)
{
	const struct stage_change_options *options = judge->options;

	if (options->is_system)
		return false;
	/*
	 * Where the host lacks a directory above a masked name, the mask layer hides that one, lest the name comes up
	 * later with all of it. What the sandbox makes there itself is its own, but for what the policy names.
	 */
	return (entry->is_masked && entry->host_exists) ||
	       (options->is_masked && options->is_masked(options->context, entry->path));
}

static enum stage_reason reason_of_type(mode_t mode)
{
	if (S_ISREG(mode) || S_ISLNK(mode) || S_ISDIR(mode))
		return STAGE_REASON_NONE;
	if (S_ISFIFO(mode))
		return STAGE_FIFO;
	return S_ISSOCK(mode) ? STAGE_SOCKET : STAGE_DEVICE;
}

static struct stage_change change_of(const struct judge *judge, const struct stage_entry *entry)
{
	bool staged = entry->kind == STAGE_ENTRY_FILE || entry->kind == STAGE_ENTRY_DIRECTORY;
	struct stage_change change = {
		.tree = judge->options->tree, .path = entry->path,
		.is_copied_up = entry->marks.is_copied_up, .staged_exists = staged,
		.host_exists = entry->host_exists, .host = entry->host, .layer = entry->layer,
		.staged_dir_fd = entry->layer_dir_fd, .host_dir_fd = entry->host_dir_fd,
	};

	if (staged)
		change.staged = entry->staged;
	change.kind = !staged ? STAGE_DELETED : entry->host_exists ? STAGE_MODIFIED : STAGE_ADDED;
	if (change.kind == STAGE_MODIFIED && (entry->staged.st_mode & S_IFMT) != (entry->host.st_mode & S_IFMT))
		change.differs = STAGE_DIFFERS_TYPE;
	return change;
}

static void set_state(struct stage_change *change, enum stage_change_state state, enum stage_reason reason)
{
	change->state = state;
	change->reason = reason;
}

/* Nobody applies it: of why it could not be, only what hides a part of it from who looks is told. */
static void set_system(struct stage_change *change)
{
	enum stage_reason reason = change->reason;
	bool is_hidden = reason == STAGE_FORGED || reason == STAGE_TOO_DEEP || reason == STAGE_UNREADABLE ||
			 reason == STAGE_RACED;

	set_state(change, STAGE_SYSTEM, is_hidden ? reason : STAGE_REASON_NONE);
}

static int emit(struct judge *judge, struct stage_change *change)
{
	const struct stage_change_options *options = judge->options;

	if (options->is_system) {
		set_system(change);
		return judge->on_change(judge->context, change);
	}
	/* What is on the host and does not go keeps the directories above it. */
	judge->stays += change->state != STAGE_CLEAN && change->host_exists;
	if (change->state != STAGE_REFUSED && options->is_flagged)
		change->is_flagged = options->is_flagged(options->context, change);
	if (change->state == STAGE_CONFLICT && options->is_settled)
		change->is_settled = options->is_settled(options->context, change->path,
							 change->host_exists ? &change->host : NULL,
							 change->staged_exists ? &change->staged : NULL);
	return judge->on_change(judge->context, change);
}

static int refuse(struct judge *judge, const struct stage_entry *entry, enum stage_reason reason)
{
	struct stage_change change = change_of(judge, entry);

	set_state(&change, STAGE_REFUSED, reason);
	return emit(judge, &change);
}

/* What the sandbox made under a masked name is refused; what it deleted there was not to be seen by it. */
static int judge_masked(struct judge *judge, const struct stage_entry *entry)
{
	if (entry->kind != STAGE_ENTRY_WHITEOUT && (entry->kind != STAGE_ENTRY_HIDDEN || entry->host_exists))
		return refuse(judge, entry, STAGE_MASKED);
	judge->stays += entry->host_exists;
	return 0;
}

/* A name that is gone, and was no directory on the host. */
static int judge_deleted(struct judge *judge, const struct stage_entry *entry)
{
	struct stage_change change = change_of(judge, entry);
	enum stage_reason reason = reason_of_type(entry->host.st_mode);

	if (reason)
		set_state(&change, STAGE_REFUSED, reason);
	else if (host_has_changed(judge, entry))
		set_state(&change, STAGE_CONFLICT, STAGE_HOST_CHANGED);
	return emit(judge, &change);
}

/* Whether nothing but this session's own applies was deleted in the directory of an entry since the start. */
static bool host_directory_is_unchanged(const struct judge *judge, const struct stage_entry *entry)
{
	const struct stage_change_options *options = judge->options;
	const char *slash = strrchr(entry->path, '/');
	cleanup_free char *path = NULL;
	struct stat st;

	if (judge->moved_at || fstat(entry->host_dir_fd, &st) < 0)
		return false;
	if (!stage_is_since(&st.st_ctim, options->start_ns))
		return true;
	path = strndup(entry->path, slash ? (size_t)(slash - entry->path) : 0);
	return path && ((options->is_own && options->is_own(options->context, path, &st)) ||
			(options->is_restored && options->is_restored(options->context, path, &st)));
}

/*
 * Something that the host lacks: deleted there, or new? Where the directory has not changed since the start, nothing
 * was deleted in it; where the host lacks that, too, and it is no conflict, the sandbox made it. Of what the sandbox
 * made itself only a note tells that the host had something in its place. What was copied up may have been renamed or
 * linked in the sandbox: then the evidence decides.
 */
static int host_has_deleted(struct judge *judge, const struct stage_entry *entry)
{
	const struct stage_change_options *options = judge->options;

	if (entry->host_dir_fd < 0 || host_directory_is_unchanged(judge, entry))
		return 0;
	if (!entry->marks.is_copied_up)
		return options->was_seen && options->was_seen(options->context, entry->path);
	if (!judge->origins) {
		int r = origins_load(&judge->origins, judge->stack);

		if (r < 0)
			return r;
	}
	return !origins_explain(judge->origins, entry);
}

static int judge_added(struct judge *judge, const struct stage_entry *entry)
{
	struct stage_change change = change_of(judge, entry);
	int r = judge->left_at ? 0 : host_has_deleted(judge, entry);

	if (r < 0)
		return r;
	if (judge->left_at)
		set_state(&change, STAGE_CONFLICT, STAGE_ABOVE);
	else if (r)
		set_state(&change, STAGE_CONFLICT, STAGE_HOST_DELETED);
	if (S_ISDIR(entry->staged.st_mode) && change.state != STAGE_CLEAN && !judge->left_at)
		judge->left_at = 1 + entry->depth;
	return emit(judge, &change);
}

/* Whether the bytes (or the target) agree: 1, 0, or why that is not known. */
static int has_same_content(struct judge *judge, const struct stage_entry *entry)
{
	const struct compare_side staged = { entry->layer_dir_fd, entry->name, &entry->staged };
	const struct compare_side host = { entry->host_dir_fd, entry->name, &entry->host };

	if (S_ISLNK(entry->staged.st_mode))
		return compare_links(&staged, &host);
	return compare_files(&judge->compare, &staged, &host);
}

static int has_same_xattrs(const struct stage_entry *entry)
{
	const struct compare_side staged = { entry->layer_dir_fd, entry->name, &entry->staged };
	const struct compare_side host = { entry->host_dir_fd, entry->name, &entry->host };

	/* A file that the agent made anew keeps the ACL of the one that it replaces: that is no difference. */
	bool has_own_acl = S_ISDIR(entry->staged.st_mode) || entry->marks.is_copied_up;

	return S_ISLNK(entry->staged.st_mode) ? 1 :
	       compare_xattrs(&staged, &host, has_own_acl ? attributes_is_content : attributes_is_user);
}

/* What differs between two files or two links; fills change->differs. -ESTALE, … where that cannot be seen. */
static int find_differences(struct judge *judge, const struct stage_entry *entry, bool changed,
			    struct stage_change *change)
{
	const struct stat *staged = &entry->staged, *host = &entry->host;
	bool need_content = changed || judge->options->exact_content;
	int r = 1;

	if (!S_ISLNK(staged->st_mode) && (staged->st_mode & MODE_MASK) != (host->st_mode & MODE_MASK))
		change->differs |= STAGE_DIFFERS_MODE;
	if (time_ns(&staged->st_mtim) != time_ns(&host->st_mtim))
		change->differs |= STAGE_DIFFERS_MTIME;
	if (staged->st_size != host->st_size)
		r = 0;
	else if (need_content || !(change->differs & STAGE_DIFFERS_MTIME) || S_ISLNK(staged->st_mode))
		r = has_same_content(judge, entry);
	else
		r = 0;
	/*
	 * A file that its owner made unreadable (chmod 000), on either side: size and time say as much as they can, and
	 * what is applied is the staged file whatever they say. With a change of the host's it is a conflict.
	 */
	if (r == -EACCES)
		r = !changed && !(change->differs & STAGE_DIFFERS_MTIME);
	if (r == -EDQUOT)
		r = 0;
	if (r == 0)
		change->differs |= STAGE_DIFFERS_CONTENT;
	if (r >= 0)
		r = has_same_xattrs(entry);
	if (r == 0)
		change->differs |= STAGE_DIFFERS_XATTRS;
	return r < 0 ? r : 0;
}

/* A file that is replaced may become another's: whoever reviews it sees that beside what else differs. */
static void find_owner(const struct judge *judge, struct stage_change *change)
{
	uid_t other = clone_other_owner(change->staged.st_uid);
	uid_t owner = other != change->staged.st_uid ? other : judge->options->owner;

	if (judge->options->is_system || judge->options->owner == (uid_t)-1 || change->host.st_uid == owner)
		return;
	change->differs |= STAGE_DIFFERS_OWNER;
	change->owner = owner;
}

static enum stage_reason reason_of_errno(int r)
{
	if (r == -ESTALE)
		return STAGE_RACED;
	return r == -EACCES || r == -EPERM || r == -EIO ? STAGE_UNREADABLE : STAGE_REASON_NONE;
}

/* A file or link where the host has a file or link too. */
static int judge_file(struct judge *judge, const struct stage_entry *entry)
{
	struct stage_change change = change_of(judge, entry);
	bool changed = host_has_changed(judge, entry), is_alike;
	int r = 0;

	if (reason_of_type(entry->host.st_mode))
		return refuse(judge, entry, reason_of_type(entry->host.st_mode));
	if (!change.differs)
		r = find_differences(judge, entry, changed, &change);
	if (r < 0)
		return reason_of_errno(r) ? refuse(judge, entry, reason_of_errno(r)) : r;
	if (!changed && !entry->marks.is_copied_up && judge->options->note_seen)
		judge->options->note_seen(judge->options->context, entry);
	/* Both sides came to the same: nothing is to be done, whenever it was. */
	is_alike = !(change.differs & ~(unsigned)STAGE_DIFFERS_MTIME);
	if (!change.differs || (changed && is_alike))
		return 0;
	find_owner(judge, &change);
	if (changed)
		set_state(&change, STAGE_CONFLICT,
			  change.is_copied_up ? STAGE_HOST_CHANGED : STAGE_HOST_ADDED);
	return emit(judge, &change);
}

/*
 * A directory that is one on both sides. Of the root of a tree only the mode counts: its upper was made by us, and no
 * attribute of the host's was copied to it.
 */
static int find_directory_differences(const struct stage_entry *entry, struct stage_change *change)
{
	int r = *entry->path ? has_same_xattrs(entry) : 1;

	if ((entry->staged.st_mode & DIRECTORY_MODE_MASK) != (entry->host.st_mode & DIRECTORY_MODE_MASK))
		change->differs |= STAGE_DIFFERS_MODE;
	if (r == 0)
		change->differs |= STAGE_DIFFERS_XATTRS;
	return r < 0 ? r : 0;
}

/* A directory in a layer; what is below it comes next. */
static int judge_directory(struct judge *judge, const struct stage_entry *entry)
{
	struct stage_change change;

	if (!entry->host_exists)
		return judge_added(judge, entry);
	change = change_of(judge, entry);
	if (S_ISDIR(entry->host.st_mode)) {
		int r = find_directory_differences(entry, &change);

		if (r < 0)
			return reason_of_errno(r) ? refuse(judge, entry, reason_of_errno(r)) : r;
		if (!change.differs)
			return 0;
	} else if (reason_of_type(entry->host.st_mode)) {
		set_state(&change, STAGE_REFUSED, reason_of_type(entry->host.st_mode));
	}
	if (!change.state && host_has_changed(judge, entry))
		set_state(&change, STAGE_CONFLICT, STAGE_HOST_CHANGED);
	if (change.state && (change.differs & STAGE_DIFFERS_TYPE))
		judge->left_at = 1 + entry->depth;
	return emit(judge, &change);
}

static bool host_is_directory(const struct stage_entry *entry)
{
	return entry->host_exists && S_ISDIR(entry->host.st_mode);
}

/*
 * Whether the host's directory is the one that was there at the start. A rename to this name gives a new ctime to the
 * directory that is renamed and to the one above it, so where either is old it is the same; where both are new it is
 * only if somebody noted it in time. mtimes say nothing: a file that comes into a directory which was moved here sets
 * them, and so may anybody. What is in another directory has old ctimes of its own and is not what the sandbox saw. The
 * root of the tree was compared when it was opened.
 */
static bool is_same_directory(const struct judge *judge, const struct stage_entry *entry, bool has_changed)
{
	const struct stage_change_options *options = judge->options;

	if (!entry->depth || !has_changed || !judge->levels[entry->depth - 1].has_changed)
		return true;
	return options->is_seen && options->is_seen(options->context, entry);
}

static void enter_directory(struct judge *judge, const struct stage_entry *entry)
{
	const struct stage_change_options *options = judge->options;
	bool has_changed = host_has_changed(judge, entry);

	judge->levels[entry->depth].has_changed = has_changed;
	if (judge->moved_at)
		return;
	if (!is_same_directory(judge, entry, has_changed))
		judge->moved_at = 1 + entry->depth;
	else if (options->note_seen && entry->depth)
		options->note_seen(options->context, entry);
}

/* The name of the next apply's own directory can be guessed: the session's name is known inside. */
static bool is_reserved(const struct judge *judge, const struct stage_entry *entry)
{
	bool staged = entry->kind == STAGE_ENTRY_FILE || entry->kind == STAGE_ENTRY_DIRECTORY;

	return !judge->options->is_system && !strchr(entry->path, '/') &&
	       str_has_prefix(entry->path, STAGE_RESERVED_PREFIX) &&
	       (staged || (entry->kind == STAGE_ENTRY_WHITEOUT && entry->host_exists));
}

/* The verdict on one entry before what is below it. STAGE_WALK_SKIP where that does not matter any more. */
static int judge_entry(struct judge *judge, const struct stage_entry *entry)
{
	bool staged = entry->kind == STAGE_ENTRY_FILE || entry->kind == STAGE_ENTRY_DIRECTORY;
	enum stage_reason reason = STAGE_REASON_NONE;
	int r;

	if (is_masked(judge, entry)) {
		r = judge_masked(judge, entry);
		return r < 0 ? r : STAGE_WALK_SKIP;
	}
	if (is_reserved(judge, entry))
		reason = STAGE_RESERVED;
	else if (staged)
		reason = entry->marks.is_forged ? STAGE_FORGED : reason_of_type(entry->staged.st_mode);
	if (reason) {
		r = refuse(judge, entry, reason);
		return r < 0 ? r : STAGE_WALK_SKIP;
	}
	if (entry->kind == STAGE_ENTRY_DIRECTORY)
		return judge_directory(judge, entry);
	/* What depends on what is below it is for leave(). */
	if (host_is_directory(entry))
		return 0;
	if (!staged)
		return entry->host_exists ? judge_deleted(judge, entry) : 0;
	return entry->host_exists ? judge_file(judge, entry) : judge_added(judge, entry);
}

static int enter(void *context, const struct stage_entry *entry)
{
	struct judge *judge = context;
	enum wanted want = wanted(judge->options, entry->path);
	int r;

	if (want != WANTED_NO && host_is_directory(entry))
		enter_directory(judge, entry);
	judge->levels[entry->depth].stays_before = want == WANTED_YES ? judge->stays : SETTLED;
	if (want != WANTED_YES)
		return want == WANTED_NO ? STAGE_WALK_SKIP : 0;
	r = judge_entry(judge, entry);
	if (r == STAGE_WALK_SKIP)
		judge->levels[entry->depth].stays_before = SETTLED;
	return r;
}

static enum stage_reason reason_of_trouble(enum stage_walk_trouble trouble)
{
	static const enum stage_reason reasons[] = {
		[STAGE_WALK_TOO_DEEP] = STAGE_TOO_DEEP, [STAGE_WALK_UNREADABLE] = STAGE_UNREADABLE,
		[STAGE_WALK_CHANGED] = STAGE_RACED,     [STAGE_WALK_MOUNT] = STAGE_MOUNT,
	};

	return reasons[trouble];
}

static int leave(void *context, const struct stage_entry *entry)
{
	struct judge *judge = context;
	uint64_t before = judge->levels[entry->depth].stays_before;
	bool is_other = judge->moved_at == 1 + entry->depth;
	struct stage_change change;

	if (judge->left_at == 1 + entry->depth)
		judge->left_at = 0;
	if (is_other)
		judge->moved_at = 0;
	if (entry->trouble)
		return refuse(judge, entry, reason_of_trouble(entry->trouble));
	if (before == SETTLED || entry->kind == STAGE_ENTRY_DIRECTORY || !host_is_directory(entry))
		return 0;
	change = change_of(judge, entry);
	if (judge->stays > before)
		set_state(&change, STAGE_CONFLICT, STAGE_BELOW);
	else if (judge->levels[entry->depth].has_changed)
		set_state(&change, STAGE_CONFLICT, is_other ? STAGE_HOST_ADDED : STAGE_HOST_CHANGED);
	return emit(judge, &change);
}

static int walk_judged(struct judge *judge)
{
	struct stage_visitor visitor = { .enter = enter, .leave = leave, .context = judge };
	int r;

	judge->levels = calloc(STAGE_WALK_DEPTH_MAX + 1, sizeof *judge->levels);
	if (!judge->levels)
		return -ENOMEM;
	r = stage_walk(judge->stack, &visitor);
	free(judge->levels);
	compare_done(&judge->compare);
	origins_free(judge->origins);
	return r;
}

int stage_changes_walk(const struct stage_stack *stack, const struct stage_change_options *options,
		       int (*on_change)(void *context, const struct stage_change *change), void *context)
{
	struct judge judge = {
		.stack = stack, .options = options, .on_change = on_change, .context = context,
		.compare = { .budget_bytes = UINT64_MAX },
	};

	return walk_judged(&judge);
}

enum { COUNT_COMPARE_MAX = 1 << 20 };

struct counter {
	struct stage_counts *counts;
	uint64_t seen, bound;
};

bool stage_change_is_directory(const struct stage_change *change)
{
	return S_ISDIR(change->staged_exists ? change->staged.st_mode : change->host.st_mode) &&
	       !(change->differs & STAGE_DIFFERS_TYPE);
}

void stage_counts_add(struct stage_counts *counts, const struct stage_change *change)
{
	uint64_t *const kinds[] = {
		[STAGE_ADDED] = &counts->added, [STAGE_MODIFIED] = &counts->modified,
		[STAGE_DELETED] = &counts->deleted,
	};

	if (change->state == STAGE_REFUSED || change->state == STAGE_SYSTEM) {
		++*(change->state == STAGE_REFUSED ? &counts->refused : &counts->system);
		return;
	}
	if (stage_change_is_directory(change))
		counts->directories++;
	else
		++*kinds[change->kind];
	counts->flagged += change->is_flagged;
	counts->conflicts += change->state == STAGE_CONFLICT && !change->is_settled;
}

bool stage_counts_any(const struct stage_counts *counts)
{
	return counts->added || counts->modified || counts->deleted || counts->directories || counts->refused ||
	       counts->system;
}

static int count_one(void *context, const struct stage_change *change)
{
	struct counter *counter = context;

	if (counter->seen >= counter->bound) {
		counter->counts->is_cut = true;
		/* An end of the walk that is no failure: no system call of it gives this. */
		return -ECANCELED;
	}
	counter->seen++;
	stage_counts_add(counter->counts, change);
	return 0;
}

void stage_counts_put(const struct stage_counts *counts, struct json *json)
{
	json_u64(json, "added", counts->added);
	json_u64(json, "modified", counts->modified);
	json_u64(json, "deleted", counts->deleted);
	json_u64(json, "directories", counts->directories);
	json_u64(json, "flagged", counts->flagged);
	json_u64(json, "conflicts", counts->conflicts);
	json_u64(json, "refused", counts->refused);
	json_u64(json, "system", counts->system);
}

int stage_changes_count(const struct stage_stack *stack, const struct stage_change_options *options, uint64_t bound,
			struct stage_counts *counts)
{
	struct counter counter = { .counts = counts, .bound = bound };
	struct judge judge = {
		.stack = stack, .options = options, .on_change = count_one, .context = &counter,
		.compare = { .budget_bytes = COUNT_COMPARE_MAX },
	};
	int r = walk_judged(&judge);

	return r == -ECANCELED ? 0 : r;
}
