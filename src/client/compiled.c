/* SPDX-License-Identifier: Apache-2.0 */
#include "client/compiled.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/str.h"
#include "client/program.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "os/seen.h"
#include "os/spawn.h"

enum {
	CACHE_ENTRIES_MAX = 512,
};

extern char **environ;

void compiled_done(struct compiled *compiled)
{
	snapshot_free(compiled->snapshot);
	free(compiled->bytes);
	*compiled = (struct compiled){ 0 };
}

/*
 * Everything that decides which policy this is, each with its NUL so that the pieces cannot run into each
 * other. The compiler counts too: another build of the same version may compile differently.
 */
static int cache_path(const struct compiled_request *request, char out[PATH_MAX])
{
	struct {
		uid_t uid;
		dev_t device;
		ino_t inode;
		off_t size;
		int64_t mtime_ns;
	} numbers;
	const char *texts[] = {
		ATOLL_VERSION,
		request->level ? request->level : "",
		request->is_lowered ? "lowered" : "",
		request->policy ? request->policy : "",
		request->project,
		request->home,
		request->config_home,
		request->programs_dir,
		request->state_dir,
		request->runtime_dir,
	};
	struct hash_piece pieces[ARRAY_SIZE(texts) + 1 + COMPILED_UNMASK_MAX];
	size_t count = ARRAY_SIZE(texts);
	char compiler[PATH_MAX], hex[HASH_HEX_SIZE];
	struct stat st = { 0 };
	struct hash key;
	int r = path_join(compiler, sizeof compiler, request->programs_dir, "atoll-policy");

	if (r < 0)
		return r;
	if (stat(compiler, &st) < 0)
		return -errno;
	memset(&numbers, 0, sizeof numbers);
	numbers.uid = geteuid();
	numbers.device = st.st_dev;
	numbers.inode = st.st_ino;
	numbers.size = st.st_size;
	numbers.mtime_ns = seen_time_ns(st.st_mtim);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		pieces[i] = (struct hash_piece){ texts[i], strlen(texts[i]) + 1 };
	pieces[count++] = (struct hash_piece){ &numbers, sizeof numbers };
	for (const char *const *path = request->unmask; path && *path; path++)
		pieces[count++] = (struct hash_piece){ *path, strlen(*path) + 1 };
	hash_pieces(&key, pieces, count);
	hash_to_hex(&key, hex);
	return str_format(out, PATH_MAX, "%s/policy/%s.bin", request->state_dir, hex);
}

static bool is_source_fresh(const struct snapshot_source *source, int64_t compiled_ns)
{
	struct seen then = { source->exists, source->device, source->inode, source->size, source->mtime_ns,
			     source->ctime_ns };

	return seen_is_fresh(source->path, &then, compiled_ns);
}

static bool is_fresh(const struct snapshot *snapshot, int64_t compiled_ns)
{
	size_t count;
	const struct snapshot_source *sources = snapshot_sources(snapshot, &count);

	for (size_t i = 0; i < count; i++)
		if (!is_source_fresh(&sources[i], compiled_ns))
			return false;
	return true;
}

/* Takes bytes in any case. */
static int view(char *bytes, size_t size, struct compiled *ret_compiled)
{
	struct snapshot *snapshot;
	int r = snapshot_load(&snapshot, bytes, size);

	if (r < 0) {
		free(bytes);
		return r;
	}
	*ret_compiled = (struct compiled){ .bytes = bytes, .size = size, .snapshot = snapshot };
	return 0;
}

/* 0 with a fresh snapshot; anything else means that there is none that may be used. */
static int cache_load(const char *path, const struct compiled_request *request, struct compiled *ret_compiled)
{
	cleanup_compiled struct compiled compiled = { 0 };
	cleanup_free char *bytes = NULL;
	const struct policy *policy;
	struct hash hash;
	struct stat st;
	cleanup_fd int fd = seen_open_kept(path, SNAPSHOT_SIZE_MAX, &st);
	size_t size;
	int r;

	if (fd < 0)
		return fd;
	if (st.st_size < (off_t)sizeof hash)
		return -EBADMSG;
	size = (size_t)st.st_size - sizeof hash;
	bytes = malloc((size_t)st.st_size);
	if (!bytes)
		return -ENOMEM;
	r = fd_read_full(fd, bytes, (size_t)st.st_size);
	if (r < 0)
		return r;
	memcpy(&hash, bytes + size, sizeof hash);
	r = view(take_ptr(bytes), size, &compiled);
	if (r < 0)
		return r;
	snapshot_set_hash(compiled.snapshot, &hash);
	policy = snapshot_policy(compiled.snapshot);
	if (!str_equal(policy->project, request->project) ||
	    !is_fresh(compiled.snapshot, seen_time_ns(st.st_mtim)))
		return -ESTALE;
	*ret_compiled = compiled;
	compiled = (struct compiled){ 0 };
	return 0;
}

/*
 * The snapshot, and behind it its hash, which takes longer to make than all the rest of a look at the policy. A cache
 * that cannot be written costs time and nothing else.
 */
static void cache_store(const char *path, const struct compiled *compiled)
{
	cleanup_free char *bytes = malloc(compiled->size + sizeof(struct hash));
	struct hash hash;

	if (!bytes)
		return;
	snapshot_hash(compiled->snapshot, &hash);
	memcpy(bytes, compiled->bytes, compiled->size);
	memcpy(bytes + compiled->size, &hash, sizeof hash);
	(void)!seen_keep(path, bytes, compiled->size + sizeof hash, CACHE_ENTRIES_MAX);
}

static int wait_compiler(pid_t pid, struct err *err)
{
	int signal, status = spawn_wait(pid, &signal);

	if (status < 0)
		return err_set(err, ERR_INTERNAL, -status, "policy", "atoll-policy cannot be waited for: %s",
			       strerror(-status));
	if (!signal && status <= 125) /* it has said why */
		return status ? 1 : 0;
	return err_set(err, ERR_INTERNAL, EIO, "policy", "atoll-policy ended with %s %d", signal ? "signal" : "status",
		       signal ? signal : status);
}

/*
 * What is compiled may depend on the arguments alone, since they are the key of the cache: of the environment
 * the compiler gets only what concerns its messages.
 */
static char **compiler_environment(char *out[8])
{
	static const char *const names[] = { "NO_COLOR=", "TERM=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=" };
	size_t count = 0;

	for (char **entry = environ; *entry; entry++)
		for (size_t i = 0; count < 7 && i < ARRAY_SIZE(names); i++)
			if (str_has_prefix(*entry, names[i]))
				out[count++] = *entry;
	out[count] = NULL;
	return out;
}

/* What atoll-policy is to do, and its descriptors, all borrowed: the snapshot's, and its stdin and stdout. */
struct compiler_job {
	const char *command;
	int output_fd;
	int in_fd, out_fd;           /* FD_NONE: ours */
};

static int start_compiler(const char *program, const struct compiler_job *job, const char *const *argv,
			  pid_t *ret_pid)
{
	const int streams[] = { job->in_fd, job->out_fd };
	char *environment[8];
	struct spawn spawn = { .program = program, .argv = argv,
			       .env = (const char *const *)compiler_environment(environment) };

	for (int i = 0; i < 2; i++)
		if (streams[i] >= 0)
			spawn.fds[spawn.fd_count++] = (struct spawn_fd){ streams[i], i };
	return spawn_start(&spawn, ret_pid);
}

static int run_compiler(const struct compiled_request *request, const struct compiler_job *job, struct err *err)
{
	char program[PATH_MAX], policies[PATH_MAX], number[16];
	const char *argv[24 + 2 * COMPILED_UNMASK_MAX] = { "atoll-policy", job->command };
	size_t argc = 2;
	pid_t pid;
	int r = path_join(program, sizeof program, request->programs_dir, "atoll-policy");

	if (r == 0)
		r = path_join(policies, sizeof policies, request->programs_dir, "policies");
	if (r == 0)
		r = str_format(number, sizeof number, "%d", job->output_fd);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "policy", "the path of atoll's programs is too long");
	if (request->is_lowered)
		argv[argc++] = "--lowered";
	const char *const pairs[][2] = {
		{ "--level", request->level },
		{ "--policy", request->policy },
		{ "--project", request->project },
		{ "--home", *request->home ? request->home : NULL },
		{ "--config-home", *request->config_home ? request->config_home : NULL },
		{ "--policies", policies },
		{ "--private", request->state_dir },
		{ "--private", request->runtime_dir },
		{ "--output-fd", number },
	};
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		if (!pairs[i][1])
			continue;
		argv[argc++] = pairs[i][0];
		argv[argc++] = pairs[i][1];
	}
	for (const char *const *path = request->unmask; path && *path; path++) {
		argv[argc++] = "--unmask";
		argv[argc++] = *path;
	}
	r = start_compiler(program, job, argv, &pid);
	if (r < 0)
		return err_not_started("policy", program, -r, err);
	return wait_compiler(pid, err);
}

/* job: but for the output. */
static int compile(const struct compiled_request *request, struct compiler_job *job, struct compiled *ret_compiled,
		   struct err *err)
{
	cleanup_free char *bytes = NULL;
	cleanup_fd int fd = memfd_create("policy", 0); /* inherited by the compiler on purpose */
	struct stat st;
	int r;

	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "policy", "no memory file can be made: %s",
			       strerror(errno));
	job->output_fd = fd;
	r = run_compiler(request, job, err);
	if (r != 0)
		return r;
	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > SNAPSHOT_SIZE_MAX)
		return err_set(err, ERR_INTERNAL, EBADMSG, "policy", "atoll-policy wrote no snapshot");
	bytes = malloc((size_t)st.st_size);
	if (!bytes || lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, ERR_INTERNAL, ENOMEM, "policy", "no memory for the compiled policy");
	r = fd_read_full(fd, bytes, (size_t)st.st_size);
	if (r == 0)
		r = view(take_ptr(bytes), (size_t)st.st_size, ret_compiled);
	if (r < 0) {
		err_set(err, ERR_INTERNAL, -r, "policy",
			"atoll-policy wrote a snapshot that this atoll cannot read");
		err_hint(err, "the programs beside %s are of different versions; install atoll again",
			 request->programs_dir);
	}
	return r;
}

int compiled_get(const struct compiled_request *request, struct compiled *ret_compiled, struct err *err)
{
	struct compiler_job job = { .command = "compile", .in_fd = FD_NONE, .out_fd = FD_NONE };
	char path[PATH_MAX];
	int r = cache_path(request, path);

	if (r < 0) {
		err_set(err, ERR_STATE, -r, "policy", "atoll-policy is not usable in %s: %s",
			request->programs_dir, strerror(-r));
		err_hint(err, "atoll's programs must lie in one directory; install atoll again");
		return r;
	}
	if (cache_load(path, request, ret_compiled) == 0)
		return 0;
	r = compile(request, &job, ret_compiled, err);
	if (r == 0)
		cache_store(path, ret_compiled);
	return r;
}

int compiled_narrow(const struct compiled_request *request, const char *narrowing, struct compiled *ret_compiled,
		    struct buf *difference, struct err *err)
{
	cleanup_fd int in_fd = fd_memfd_sealed("narrowing", narrowing, strlen(narrowing));
	cleanup_fd int out_fd = fd_memfd_new("difference");
	struct compiler_job job = { .command = "narrow", .in_fd = in_fd, .out_fd = out_fd };
	int r = in_fd < 0 ? in_fd : out_fd < 0 ? out_fd : lseek(in_fd, 0, SEEK_SET) < 0 ? -errno : 0;

	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "policy", "no memory file can be made: %s", strerror(-r));
	r = compile(request, &job, ret_compiled, err);
	if (r != 0)
		return r;
	r = program_text(out_fd, difference);
	if (r < 0)
		compiled_done(ret_compiled);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "policy", "the narrowing of the policy cannot be read: %s",
			       strerror(-r))
		     : 0;
}

static bool is_same_source(const struct snapshot_source *a, const struct snapshot_source *b)
{
	return str_equal(a->path, b->path) && a->exists == b->exists && a->device == b->device &&
	       a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

bool compiled_same_sources(const struct compiled *a, const struct compiled *b)
{
	size_t count, other_count;
	const struct snapshot_source *sources = snapshot_sources(a->snapshot, &count);
	const struct snapshot_source *others = snapshot_sources(b->snapshot, &other_count);

	for (size_t i = 0; i < count && count == other_count; i++)
		if (!is_same_source(&sources[i], &others[i]))
			return false;
	return count == other_count;
}

int compiled_load(const char *path, struct compiled *ret_compiled, struct err *err)
{
	char *bytes;
	size_t size;
	int r = fd_read_file_at(AT_FDCWD, path, SNAPSHOT_SIZE_MAX, &bytes, &size);

	if (r == 0)
		r = view(bytes, size, ret_compiled);
	if (r < 0) {
		err_set(err, ERR_STATE, -r, "policy", "the policy that the other session ran under cannot be read: %s",
			strerror(-r));
		err_hint(err, "name one with -p or -t");
	}
	return r;
}

int compiled_change(struct compiled *compiled, const struct policy *changed, struct err *err)
{
	const struct snapshot_source *sources;
	struct compiled made = { 0 };
	struct buf out;
	size_t count;
	int r;

	buf_init(&out, SNAPSHOT_SIZE_MAX);
	sources = snapshot_sources(compiled->snapshot, &count);
	r = snapshot_store(&out, changed, sources, count);
	if (r == 0)
		r = view((char *)out.bytes, out.size, &made);
	else
		buf_done(&out);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "policy", "the policy cannot be changed for this run: %s",
			       strerror(-r));
	compiled_done(compiled);
	*compiled = made;
	return 0;
}
