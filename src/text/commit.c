/* SPDX-License-Identifier: Apache-2.0 */
#include "text/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <git2.h>
#include <git2/sys/repository.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

#define OBJECTS "objects"
#define PACKED_REFS "packed-refs"
#define BRANCHES "refs/heads/"

enum { CHUNK = 64 << 10, PACKED_MAX = 64 << 20, HEX_DIGITS = 40 };

struct commit_maker {
	git_odb *odb;
	git_repository *repo;    /* an object database and nothing else */
	git_index *index;        /* in memory */
	git_commit *parent;      /* or NULL */
};

void commit_maker_free(struct commit_maker *maker)
{
	if (!maker)
		return;
	git_commit_free(maker->parent);
	git_index_free(maker->index);
	git_repository_free(maker->repo);
	git_odb_free(maker->odb);
	free(maker);
}

static int read_parent(struct commit_maker *maker, const char *hex)
{
	git_tree *tree = NULL;
	git_oid id;
	int r = git_oid_fromstr(&id, hex);

	if (r == 0)
		r = git_commit_lookup(&maker->parent, maker->repo, &id);
	if (r == 0)
		r = git_commit_tree(&tree, maker->parent);
	if (r == 0)
		r = git_index_read_tree(maker->index, tree);
	git_tree_free(tree);
	return r < 0 ? -ENOENT : 0;
}

int commit_maker_new(const char *parent, struct commit_maker **ret_maker)
{
	struct commit_maker *maker = calloc(1, sizeof *maker);
	int r;

	if (!maker)
		return -ENOMEM;
	/* What is written here is what the branch will name: it is synced. */
	r = git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
	if (r >= 0)
		r = git_odb_open(&maker->odb, OBJECTS);
	if (r >= 0)
		r = git_repository_wrap_odb(&maker->repo, maker->odb);
	if (r >= 0)
		r = git_index_new(&maker->index);
	r = r < 0 ? -EIO : parent ? read_parent(maker, parent) : 0;
	if (r < 0)
		commit_maker_free(maker);
	else
		*ret_maker = maker;
	return r;
}

bool commit_maker_find(const struct commit_maker *maker, const char *path, struct commit_file *ret_file)
{
	const git_index_entry *entry = git_index_get_bypath(maker->index, path, 0);

	if (!entry)
		return false;
	ret_file->mode = entry->mode;
	memcpy(ret_file->id, entry->id.id, sizeof ret_file->id);
	return true;
}

int commit_hash(int fd, uint8_t id[20])
{
	struct stat st;
	git_oid oid;
	void *bytes = NULL;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	/* Whoever makes the file shorter meanwhile ends this process, and with it the commit. */
	if (st.st_size) {
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes == MAP_FAILED)
			return -errno;
	}
	r = git_odb_hash(&oid, bytes ? bytes : "", (size_t)st.st_size, GIT_OBJECT_BLOB) < 0 ? -EIO : 0;
	if (bytes)
		munmap(bytes, (size_t)st.st_size);
	memcpy(id, oid.id, sizeof oid.id);
	return r;
}

/* A path in a submodule is another repository's. */
static int check_path(const struct commit_maker *maker, const char *path)
{
	char above[PATH_MAX];
	int r = str_copy(above, sizeof above, path);

	for (char *slash = r < 0 ? NULL : strrchr(above, '/'); slash; slash = strrchr(above, '/')) {
		const git_index_entry *entry;

		*slash = 0;
		entry = git_index_get_bypath(maker->index, above, 0);
		if (entry && entry->mode == GIT_FILEMODE_COMMIT)
			return -EXDEV;
	}
	return r < 0 ? -EINVAL : 0;
}

static int write_blob(struct commit_maker *maker, int fd, git_oid *ret_id)
{
	static char bytes[CHUNK];
	git_odb_stream *stream = NULL;
	struct stat st;
	off_t at = 0;
	int r = fstat(fd, &st) < 0 ? -errno : git_odb_open_wstream(&stream, maker->odb, (git_object_size_t)st.st_size,
								    GIT_OBJECT_BLOB);

	while (r == 0 && at < st.st_size) {
		size_t wanted = st.st_size - at < CHUNK ? (size_t)(st.st_size - at) : CHUNK;
		ssize_t n = pread(fd, bytes, wanted, at);

		if (n <= 0)
			r = -EIO;
		else
			r = git_odb_stream_write(stream, bytes, (size_t)n);
		at += n > 0 ? n : 0;
	}
	if (r == 0)
		r = git_odb_stream_finalize_write(ret_id, stream);
	git_odb_stream_free(stream);
	return r < 0 ? -EIO : 0;
}

int commit_maker_put(struct commit_maker *maker, const char *path, mode_t mode, int fd)
{
	git_index_entry entry = { .mode = mode, .path = path };
	int r = check_path(maker, path);

	if (r == 0)
		r = write_blob(maker, fd, &entry.id);
	if (r < 0)
		return r;
	return git_index_add(maker->index, &entry) < 0 ? -EINVAL : 0;
}

int commit_maker_remove(struct commit_maker *maker, const char *path)
{
	int r = check_path(maker, path);

	if (r < 0 || !git_index_get_bypath(maker->index, path, 0))
		return r;
	return git_index_remove(maker->index, path, 0) < 0 ? -EINVAL : 0;
}

static int write_commit(struct commit_maker *maker, const git_oid *tree_id, const char *message,
			const git_signature *who, git_oid *ret_id)
{
	const git_commit *parents[] = { maker->parent };
	git_tree *tree = NULL;
	int r = git_tree_lookup(&tree, maker->repo, tree_id);

	if (r == 0)
		r = git_commit_create(ret_id, maker->repo, NULL, who, who, NULL, message, tree, maker->parent != NULL,
				      parents);
	git_tree_free(tree);
	return r;
}

static int put_line(const struct commit_by *by, const git_signature *who)
{
	int offset = who->when.offset, minutes = offset < 0 ? -offset : offset;

	return str_format(by->line, by->line_size, "%s <%s> %lld %c%02d%02d", who->name, who->email,
			  (long long)who->when.time, offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

int commit_maker_write(struct commit_maker *maker, const char *message, const struct commit_by *by,
		       char hex[COMMIT_HEX_SIZE])
{
	git_signature *who = NULL;
	git_oid tree_id, id;
	int r = git_index_write_tree_to(&tree_id, maker->index, maker->repo);

	if (r == 0 && maker->parent && git_oid_equal(&tree_id, git_commit_tree_id(maker->parent)))
		return 1;
	if (r == 0)
		r = git_signature_now(&who, by->name, by->email);
	if (r == 0)
		r = put_line(by, who);
	if (r == 0)
		r = write_commit(maker, &tree_id, message, who, &id);
	git_signature_free(who);
	if (r == 0)
		git_oid_tostr(hex, COMMIT_HEX_SIZE, &id);
	return r < 0 ? -EIO : 0;
}

/* Refs, which are files. */

bool commit_branch_is_valid(const char *name)
{
	int valid = 0;

	return strlen(name) < COMMIT_NAME_MAX && name[0] != '-' && git_branch_name_is_valid(&valid, name) == 0 && valid;
}

static bool is_hex(const char *text, size_t size)
{
	return size == HEX_DIGITS && strspn(text, "0123456789abcdef") >= HEX_DIGITS;
}

/* What packed-refs has for a ref: its line is "HEX NAME". NULL: nothing. */
static const char *find_packed(const char *bytes, size_t size, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = bytes, *end = bytes + size, *newline; at < end; at = newline + 1) {
		newline = memchr(at, '\n', (size_t)(end - at));
		if (!newline)
			return NULL;
		if ((size_t)(newline - at) == HEX_DIGITS + 1 + length && at[HEX_DIGITS] == ' ' &&
		    memcmp(at + HEX_DIGITS + 1, name, length) == 0)
			return at;
	}
	return NULL;
}

static int resolve_ref(const char *name, char hex[COMMIT_HEX_SIZE])
{
	cleanup_free char *bytes = NULL;
	const char *found;
	size_t size;
	int r, valid = 0;

	if (git_reference_name_is_valid(&valid, name) < 0 || !valid || !str_has_prefix(name, "refs/"))
		return -EINVAL;
	r = fd_read_regular_at(AT_FDCWD, name, 256, &bytes, &size);
	if (r == 0 && size > HEX_DIGITS && is_hex(bytes, strcspn(bytes, "\n"))) {
		memcpy(hex, bytes, HEX_DIGITS);
		return 1;
	}
	if (r != -ENOENT)
		return r == 0 ? -ENOTSUP : r;
	r = fd_read_regular_at(AT_FDCWD, PACKED_REFS, PACKED_MAX, &bytes, &size);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	found = find_packed(bytes, size, name);
	if (found)
		memcpy(hex, found, HEX_DIGITS);
	return found != NULL;
}

int commit_resolve_head(const char *head, char hex[COMMIT_HEX_SIZE])
{
	static const char link[] = "ref: ";
	char text[COMMIT_NAME_MAX + 64];

	memset(hex, 0, COMMIT_HEX_SIZE);
	if (str_copy(text, sizeof text, head) < 0)
		return -EINVAL;
	text[strcspn(text, "\n")] = 0;
	/* What git writes there where refs are kept otherwise. */
	if (str_equal(text, "ref: refs/heads/.invalid"))
		return -ENOTSUP;
	if (str_has_prefix(text, link))
		return resolve_ref(text + sizeof link - 1, hex);
	if (!is_hex(text, strlen(text)))
		return -ENOTSUP;
	memcpy(hex, text, HEX_DIGITS);
	return 1;
}

void commit_head_ref(const char *head, char *out, size_t size)
{
	static const char link[] = "ref: ";

	out[0] = 0;
	if (str_has_prefix(head, link) && str_copy(out, size, head + sizeof link - 1) < 0)
		out[0] = 0;
	out[strcspn(out, "\n")] = 0;
}

static int make_above(char *path)
{
	for (char *slash = strchr(path + sizeof BRANCHES - 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int r;

		*slash = 0;
		r = mkdirat(AT_FDCWD, path, 0777) < 0 && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

static int write_lock(const char *path, const char *hex)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
	char line[COMMIT_HEX_SIZE + 1];
	int r = fd < 0 ? fd : str_format(line, sizeof line, "%s\n", hex);

	if (r == 0)
		r = fd_write_full(fd, line, strlen(line));
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

int commit_make_branch(const char *name, const char *hex)
{
	char path[sizeof BRANCHES + COMMIT_NAME_MAX], lock[sizeof path + 8], known[COMMIT_HEX_SIZE];
	int r = commit_branch_is_valid(name) ? str_format(path, sizeof path, BRANCHES "%s", name) : -EINVAL;

	if (r == 0)
		r = str_format(lock, sizeof lock, "%s.lock", path);
	if (r == 0) {
		r = resolve_ref(path, known);
		r = r > 0 || r == -ENOTSUP ? -EEXIST : r == -EISDIR ? -ENOTDIR : r;
	}
	if (r == 0)
		r = make_above(path);
	if (r == 0)
		r = write_lock(lock, hex);
	if (r < 0)
		return r;
	/* Never over another one that came meanwhile. */
	r = linkat(AT_FDCWD, lock, AT_FDCWD, path, 0) < 0 ? -errno : 0;
	unlinkat(AT_FDCWD, lock, 0);
	return r;
}
