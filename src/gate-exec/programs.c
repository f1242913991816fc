/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/programs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/hash.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "policy/decide-exec.h"
#include "policy/glob.h"
#include "policy/order.h"

/*
 * A file is the named one when it is the same inode and has not changed since (an inode's change time cannot be set),
 * or when its content is. Only files of the same size are ever read. What the sandbox can write is hashed at once, so
 * that its copy is known even after the original was changed.
 *
 * Content that was read while somebody could write the file proves nothing afterwards. A file that is being executed
 * cannot be written and cannot have been open for writing when that began (ETXTBSY), so what is read then is what
 * runs; it is remembered by its change time, unless that is too young to tell two changes apart. A file system that
 * lies on another one does not promise that: a shared mapping belongs to the file below, so it stays writable after
 * its descriptor was closed, and does not move the time of a page that it has written before. Of these nothing is
 * remembered.
 */

enum { SETTLED_NS = 1000000000, CHUNK = 64 << 10 };

struct file_id {
	dev_t device;
	ino_t inode;
	nlink_t links;
	int64_t size, mtime_ns, ctime_ns;
};

struct program {
	char *name;                  /* owned: as the rule, or as found by its pattern */
	struct file_id id;
	bool is_host;                /* by that name outside, since the mounts took it away inside */
	bool is_writable;            /* inside, so that it was hashed when it was looked up */
	bool has_hash;
	struct hash hash;
};

struct hashed {
	struct file_id id;
	struct hash hash;
};

struct programs {
	int root_fd;                 /* borrowed: of the sandbox */
	struct program *list;        /* by size */
	size_t count, allocated;
	struct hashed hashed[PROGRAMS_HASHED_MAX];
	size_t hashed_count, hashed_next;
};

static int64_t to_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static struct file_id id_of(const struct stat *st)
{
	return (struct file_id){ st->st_dev, st->st_ino, st->st_nlink, st->st_size, to_ns(&st->st_mtim),
				 to_ns(&st->st_ctim) };
}

static bool id_is_same(const struct file_id *a, const struct file_id *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

/* fd may be O_PATH. -ESTALE: it has not the size that it is looked up by; who lets it grow must not hold us with it. */
static int hash_file(int fd, int64_t size, struct hash *ret_hash)
{
	static uint8_t bytes[CHUNK];
	cleanup_fd int readable = FD_NONE;
	struct hash_stream stream;
	int64_t left = size;
	char path[32];
	ssize_t n = 0;

	if (str_format(path, sizeof path, "/proc/self/fd/%d", fd) < 0)
		return -EINVAL;
	/* A lease that something inside holds on its file must not hold us. */
	readable = fd_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
	if (readable < 0)
		return readable;
	hash_stream_begin(&stream);
	while (left >= 0 && (n = read(readable, bytes, sizeof bytes)) > 0) {
		hash_stream_add(&stream, bytes, (size_t)n);
		left -= n;
	}
	hash_stream_end(&stream, ret_hash);
	return n < 0 ? -errno : left ? -ESTALE : 0;
}

/* ---- what the rules name ---- */

static int grow(struct programs *programs)
{
	size_t wanted = programs->allocated ? programs->allocated * 2 : 32;
	struct program *list;

	if (programs->count < programs->allocated)
		return 0;
	if (programs->count >= PROGRAMS_MAX)
		return -E2BIG;
	list = realloc(programs->list, wanted * sizeof *list);
	if (!list)
		return -ENOMEM;
	programs->list = list;
	programs->allocated = wanted;
	return 0;
}

static int open_named(const struct programs *programs, const char *name, bool is_host)
{
	return is_host ? fd_open_at(AT_FDCWD, name, O_PATH, 0)
		       : path_open2(programs->root_fd, name, O_PATH, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

/* A name that leads to no file names nothing. */
static int add_named(struct programs *programs, const struct policy *policy, const char *name, bool is_host)
{
	cleanup_fd int fd = open_named(programs, name, is_host);
	char real[PATH_MAX];
	struct program *program;
	struct stat st;
	size_t rule;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size)
		return 0;
	r = grow(programs);
	if (r < 0)
		return r;
	program = &programs->list[programs->count];
	*program = (struct program){ .name = str_dup(name), .id = id_of(&st), .is_host = is_host };
	if (!program->name)
		return -ENOMEM;
	programs->count++;
	program->is_writable = !is_host && (path_of_fd(fd, real, sizeof real) < 0 ||
					    policy_classify(policy, real, &rule) >= FILE_SCRATCH);
	if (program->is_writable)
		program->has_hash = hash_file(fd, program->id.size, &program->hash) == 0;
	return 0;
}

/* ---- patterns ---- */

static bool any_pattern_matches(const struct policy *policy, const char *path)
{
	for (size_t i = policy->exec.exact_count; i < policy->exec.count; i++) {
		const struct exec_rule *rule = &policy->exec.rules[i];

		/* What a pattern gives, it gives to places. */
		if (rule->verdict != VERDICT_ALLOW && rule->program && rule->program_flags & FILE_GLOB &&
		    glob_match(rule->program, path))
			return true;
	}
	return false;
}

static int add_matches(struct programs *programs, const struct policy *policy, const char *directory)
{
	DIR *entries = path_list(path_open2(programs->root_fd, directory, O_RDONLY | O_DIRECTORY, 0,
					    RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS));
	const struct dirent *entry;
	int r = 0;

	if (!entries)
		return 0;
	while (r == 0 && (entry = readdir(entries))) {
		char path[PATH_MAX];

		if (str_format(path, sizeof path, "%s/%s", directory, entry->d_name) == 0 &&
		    any_pattern_matches(policy, path))
			r = add_named(programs, policy, path, false);
	}
	closedir(entries);
	return r;
}

static bool has_patterns(const struct policy *policy)
{
	for (size_t i = policy->exec.exact_count; i < policy->exec.count; i++)
		if (policy->exec.rules[i].program && policy->exec.rules[i].program_flags & FILE_GLOB)
			return true;
	return false;
}

/* "/opt/x/bin" of a pattern such as /opt/x/bin/run-*; false where another component is a pattern. */
static bool directory_of(const char *pattern, char out[PATH_MAX])
{
	const char *slash = strrchr(pattern, '/');

	return slash > pattern && str_format(out, PATH_MAX, "%.*s", (int)(slash - pattern), pattern) == 0 &&
	       !glob_is_pattern(out);
}

/* Patterns name programs where those usually are, and in directories that they name. */
static int add_patterns(struct programs *programs, const struct policy *policy)
{
	static const char *const places[] = {
		"/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/games",
	};
	char directory[PATH_MAX];
	int r = 0;

	if (!has_patterns(policy))
		return 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(places); i++)
		r = add_matches(programs, policy, places[i]);
	if (r == 0 && policy->home[0] && str_format(directory, sizeof directory, "%s/.local/bin", policy->home) == 0)
		r = add_matches(programs, policy, directory);
	for (size_t i = policy->exec.exact_count; r == 0 && i < policy->exec.count; i++) {
		const struct exec_rule *rule = &policy->exec.rules[i];

		if (rule->program && rule->program_flags & FILE_GLOB && directory_of(rule->program, directory))
			r = add_matches(programs, policy, directory);
	}
	return r;
}

/* What the mounts take away inside is known by its name outside. */
static int add_taken(struct programs *programs, const struct policy *policy, const uint32_t *taken, size_t count)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_named(programs, policy, policy->exec.rules[taken[i]].program, true);
	return r;
}

static int add_rules(struct programs *programs, const struct policy *policy)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy->exec.count; i++) {
		const struct exec_rule *rule = &policy->exec.rules[i];

		if (rule->program && !(rule->program_flags & FILE_GLOB) && !exec_rule_is_mounted(rule))
			r = add_named(programs, policy, rule->program, false);
		for (const char *const *except = rule->except; r == 0 && except && *except; except++)
			if (!glob_is_pattern(*except))
				r = add_named(programs, policy, *except, false);
	}
	for (const char *const *loader = policy_loaders; r == 0 && *loader; loader++)
		r = add_named(programs, policy, *loader, false);
	return r == 0 ? add_patterns(programs, policy) : r;
}

static int compare_sizes(const void *a, const void *b)
{
	const struct program *x = a, *y = b;

	return (x->id.size > y->id.size) - (x->id.size < y->id.size);
}

static void sort(struct programs *programs)
{
	if (programs->count)
		qsort(programs->list, programs->count, sizeof *programs->list, compare_sizes);
}

int programs_new(struct programs **ret_programs, const struct policy *policy, const uint32_t *taken,
		 size_t taken_count)
{
	struct programs *programs = calloc(1, sizeof *programs);
	int r;

	if (!programs)
		return -ENOMEM;
	programs->root_fd = FD_NONE;
	r = add_taken(programs, policy, taken, taken_count);
	if (r < 0) {
		programs_free(programs);
		return r;
	}
	*ret_programs = programs;
	return 0;
}

int programs_enter(struct programs *programs, const struct policy *policy, int root_fd)
{
	int r;

	programs->root_fd = root_fd;
	r = add_rules(programs, policy);
	sort(programs);
	return r;
}

void programs_free(struct programs *programs)
{
	if (!programs)
		return;
	for (size_t i = 0; i < programs->count; i++)
		free(programs->list[i].name);
	free(programs->list);
	free(programs);
}

void programs_refresh(struct programs *programs)
{
	for (size_t i = 0; i < programs->count; i++) {
		struct program *program = &programs->list[i];
		cleanup_fd int fd = program->is_writable ? FD_NONE : open_named(programs, program->name,
										program->is_host);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		program->id = id_of(&st);
		program->has_hash = false;
	}
	sort(programs);
}

/* ---- which one a file is ---- */

/* The content of a named file that has not changed; false: nobody knows it any more, or ever could. */
static bool know_content(struct programs *programs, struct program *program)
{
	cleanup_fd int fd = FD_NONE;
	struct file_id id;
	struct stat st;

	if (program->has_hash)
		return true;
	fd = open_named(programs, program->name, program->is_host);
	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	id = id_of(&st);
	program->has_hash = id_is_same(&id, &program->id) && hash_file(fd, program->id.size, &program->hash) == 0;
	return program->has_hash;
}

static const struct hashed *find_hashed(const struct programs *programs, const struct file_id *id)
{
	for (size_t i = 0; i < programs->hashed_count; i++)
		if (id_is_same(&programs->hashed[i].id, id))
			return &programs->hashed[i];
	return NULL;
}

/* Whether who maps a file is one who has it open to its file system; fd may be O_PATH. */
static bool knows_its_writers(int fd)
{
	struct statfs kind;

	return fstatfs(fd, &kind) == 0 && kind.f_type != OVERLAYFS_SUPER_MAGIC && kind.f_type != FUSE_SUPER_MAGIC &&
	       kind.f_type != ECRYPTFS_SUPER_MAGIC;
}

static void remember(struct programs *programs, int fd, const struct file_id *id, const struct hash *hash)
{
	if ((int64_t)clock_realtime_ns() - id->ctime_ns < SETTLED_NS || !knows_its_writers(fd))
		return;
	programs->hashed[programs->hashed_next] = (struct hashed){ *id, *hash };
	programs->hashed_next = (programs->hashed_next + 1) % PROGRAMS_HASHED_MAX;
	programs->hashed_count += programs->hashed_count < PROGRAMS_HASHED_MAX;
}

/* A file that is looked at; it is read at most once. */
struct looked {
	struct programs *programs;
	int fd;
	struct file_id id;
	bool is_held, has_hash;
	struct hash hash;
};

static int read_content(struct looked *looked)
{
	const struct hashed *known;
	int r;

	if (looked->has_hash)
		return 0;
	known = find_hashed(looked->programs, &looked->id);
	r = known ? 0 : hash_file(looked->fd, looked->id.size, &looked->hash);
	if (r < 0)
		return r;
	if (known)
		looked->hash = known->hash;
	else if (looked->is_held)
		remember(looked->programs, looked->fd, &looked->id, &looked->hash);
	looked->has_hash = true;
	return 0;
}

/* Linking changes the time of an inode too; where nothing inside can write it, that means nothing. */
static bool is_same_inode(const struct program *program, const struct file_id *id)
{
	struct file_id as_before = *id;

	if (!program->is_writable && id->links == 1 && program->id.links == 1)
		as_before.ctime_ns = program->id.ctime_ns;
	return id_is_same(&program->id, &as_before);
}

/* 1: it is; 0: it is not; negative: nobody can tell. */
static int is_program(struct looked *looked, struct program *program)
{
	int r;

	if (is_same_inode(program, &looked->id))
		return 1;
	if (!know_content(looked->programs, program))
		return 0;
	r = read_content(looked);
	return r < 0 ? r : memcmp(&looked->hash, &program->hash, sizeof looked->hash) == 0;
}

static int add_name(const char *names[PROGRAM_NAMES_MAX + 1], const char *name)
{
	size_t count = 0;

	for (; names[count]; count++)
		if (str_equal(names[count], name))
			return 0;
	if (count == PROGRAM_NAMES_MAX)
		return -ENOBUFS;
	names[count] = name;
	names[count + 1] = NULL;
	return 0;
}

int programs_identify(struct programs *programs, int fd, const struct stat *st, bool is_held,
		      const char *names[PROGRAM_NAMES_MAX + 1])
{
	struct looked looked = { .programs = programs, .fd = fd, .id = id_of(st), .is_held = is_held };
	size_t low = 0, high = programs->count;

	names[0] = NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (programs->list[middle].id.size < st->st_size)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < programs->count && programs->list[low].id.size == st->st_size; low++) {
		int r = is_program(&looked, &programs->list[low]);

		if (r > 0)
			r = add_name(names, programs->list[low].name);
		if (r < 0)
			return r;
	}
	return 0;
}
