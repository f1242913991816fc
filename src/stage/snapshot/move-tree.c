/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/snapshot/move-tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"

/*
 * Theory of operation. ovl_rename() refuses directories that a lower layer has (without redirect_dir, which a mount
 * with userxattr cannot have), and takes everything else: files are copied up and renamed, with a whiteout at the old
 * name, and directories of the upper layer alone move whole. So a directory moves by a new one at the new place, to
 * which each entry is renamed; the old ones, empty by then, are removed last. What was done is taken back by the same
 * walk in the other direction, which therefore merges into what is there.
 *
 * A rename leaves a whiteout at the old name, for which file systems make an inode each time, and that is as dear as to
 * copy the file. To link it to the new name and to unlink the old one is ten times as fast, since the whiteouts of an
 * unlink are links of one inode; but the new name is looked up anew and is another inode to whoever has the file open.
 * So only those files are renamed.
 *
 * Names come from inside: each is opened as one component that is no link and no mount.
 */

enum {
	ONE_STEP = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	MODE_BITS = 07777,
	NAMES_SIZE = 64 << 10,
	VALUE_SIZE = 64 << 10,
	LATE_FILES_MAX = 3, /* how often the host may add files to what is removed */
	LINKS_MAX = 4096,
	LINK_BYTES_MAX = 1 << 20,
};

/* A file that was copied up alone though it had other names, which are to be names of the copy. */
struct linked {
	ino_t inode;                 /* before */
	char *path;                  /* owned: of the copy, below tree_fd */
};

struct mover {
	const struct stage_move *move;
	uint64_t deadline_ns;        /* 0: none */
	uint64_t entries;
	unsigned depth;
	int tree_fd;                 /* borrowed: where the new tree is; FD_NONE: links are not kept */
	char path[PATH_MAX];         /* below it: of the directory that is at work */
	struct linked *linked;       /* owned */
	size_t linked_count, linked_bytes;
};

static void mover_init(struct mover *mover, const struct stage_move *move, uint64_t deadline_ns)
{
	*mover = (struct mover){ .move = move, .deadline_ns = deadline_ns, .tree_fd = FD_NONE };
}

static void mover_done(struct mover *mover)
{
	for (size_t i = 0; i < mover->linked_count; i++)
		free(mover->linked[i].path);
	free(mover->linked);
	mover->linked = NULL;
	mover->linked_count = 0;
}

static int open_directory(int dir_fd, const char *name)
{
	return path_open2(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, ONE_STEP);
}

/* A stream of a directory; the descriptor stays the caller's, and its offset is at the start. NULL: errno. */
static DIR *list_directory(int fd)
{
	return path_list(fd_open_at(fd, ".", O_RDONLY | O_DIRECTORY, 0));
}

static bool is_dots(const char *name)
{
	return str_equal(name, ".") || str_equal(name, "..");
}

/* The next name; NULL at the end, with *ret_errnum of a failure. */
static const char *next_name(DIR *list, int *ret_errnum)
{
	const struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(list);
	} while (entry && is_dots(entry->d_name));
	*ret_errnum = entry ? 0 : errno;
	return entry ? entry->d_name : NULL;
}

/* Before each entry, and one level down for each directory. */
static int count(struct mover *mover)
{
	if (++mover->entries > STAGE_MOVE_ENTRIES_MAX || mover->depth > STAGE_MOVE_DEPTH_MAX)
		return -EXDEV;
	return mover->deadline_ns && mover->entries % 64 == 0 && clock_monotonic_ns() > mover->deadline_ns ? -EXDEV : 0;
}

static bool is_full(int error)
{
	return error == -ENOSPC || error == -EDQUOT;
}

static int stat_entry(int dir_fd, const char *name, struct stat *status)
{
	return fstatat(dir_fd, name, status, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

/* ---- copying up ---- */

/*
 * Opened for writing a file is copied up. One with several names is not: what a link to it is must be seen when it is
 * moved. What cannot be opened in this way (a program that runs) is copied when it is renamed.
 */
static int copy_up(int dir_fd, const char *name, const struct stat *status)
{
	int fd;

	if (!S_ISREG(status->st_mode) || status->st_nlink != 1)
		return 0;
	fd = path_open2(dir_fd, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, ONE_STEP);
	if (fd >= 0)
		close(fd);
	return is_full(fd) || fd == -EXDEV ? fd : 0;
}

static int prepare_directory(struct mover *mover, int dir_fd, const char *name);

static int prepare_entry(struct mover *mover, int dir_fd, const char *name)
{
	struct stat status;
	int r = count(mover);

	if (r == 0 && stat_entry(dir_fd, name, &status) == 0)
		r = S_ISDIR(status.st_mode) ? prepare_directory(mover, dir_fd, name) : copy_up(dir_fd, name, &status);
	return r;
}

static int prepare_directory(struct mover *mover, int dir_fd, const char *name)
{
	cleanup_fd int fd = open_directory(dir_fd, name);
	DIR *list = fd < 0 ? NULL : list_directory(fd);
	const char *entry;
	int r = 0, errnum;

	if (!list)
		return fd == -ENOENT ? 0 : -EXDEV;
	mover->depth++;
	while (r == 0 && (entry = next_name(list, &errnum)))
		r = prepare_entry(mover, fd, entry);
	mover->depth--;
	closedir(list);
	return r;
}

static int check_target(const struct stage_move *move)
{
	cleanup_fd int fd = open_directory(move->to_fd, move->to);
	DIR *list = fd < 0 ? NULL : list_directory(fd);
	bool is_empty;
	int errnum;

	if (!list)
		return fd == -ENOENT ? 0 : -EXDEV;
	is_empty = !next_name(list, &errnum);
	closedir(list);
	return is_empty ? 0 : -ENOTEMPTY;
}

/*
 * Beside the first of both, where it stands between; nobody sees it. The second name says that it is whole, and so
 * what of the other one is in its place by then. It is of the upper layer alone, so that its renames are one step.
 * The third says that it may have left for its place: without it an exchange that is over looks like none.
 */
static const char part_name[] = ".atoll-exchange-part", whole_name[] = ".atoll-exchange",
		  over_name[] = ".atoll-exchange-over";

static int remove_mark(const struct stage_move *move)
{
	return unlinkat(move->from_fd, over_name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int stage_move_prepare(const struct stage_move *move)
{
	struct mover mover;
	int r;

	mover_init(&mover, move, 0);
	if (!move->is_exchange) {
		r = check_target(move);
		return r < 0 ? r : prepare_entry(&mover, move->from_fd, move->from);
	}
	/* One that was killed behind its report has left it. */
	if (remove_mark(move) < 0)
		return -EXDEV;
	r = prepare_entry(&mover, move->from_fd, move->from);
	return r < 0 ? r : prepare_entry(&mover, move->to_fd, move->to);
}

/* ---- attributes ---- */

static int copy_attribute(int from_fd, int to_fd, const char *name, char *value)
{
	ssize_t size = fgetxattr(from_fd, name, value, VALUE_SIZE);

	if (size < 0)
		return errno == ENODATA ? 0 : -errno;
	return fsetxattr(to_fd, name, value, (size_t)size, 0) < 0 ? -errno : 0;
}

/* user.* and ACLs: of labels and the like a new directory has its own, as after any mkdir(2). */
static bool is_copied(const char *name)
{
	return str_has_prefix(name, "user.") || str_has_prefix(name, "system.posix_acl_");
}

static bool has_no_attribute(int fd, const char *name)
{
	return fremovexattr(fd, name) == 0 || errno == ENODATA || errno == EOPNOTSUPP;
}

static int copy_extended(int from_fd, int to_fd)
{
	cleanup_free char *names = malloc(NAMES_SIZE), *value = malloc(VALUE_SIZE);
	ssize_t size = names && value ? flistxattr(from_fd, names, NAMES_SIZE) : -1;
	int r = 0;

	if (!names || !value)
		return -ENOMEM;
	/* What the directory above bequeathed to the new one. */
	if (!has_no_attribute(to_fd, "system.posix_acl_access") || !has_no_attribute(to_fd, "system.posix_acl_default"))
		return -errno;
	if (size < 0)
		return errno == EOPNOTSUPP ? 0 : -errno;
	for (const char *at = names; r == 0 && at < names + size; at += strlen(at) + 1)
		if (is_copied(at))
			r = copy_attribute(from_fd, to_fd, at, value);
	return r;
}

static int copy_attributes(int from_fd, int to_fd, const struct stat *status)
{
	struct stat made;
	int r = copy_extended(from_fd, to_fd);

	if (r < 0)
		return r;
	if (fstat(to_fd, &made) < 0)
		return -errno;
	if ((made.st_uid != status->st_uid || made.st_gid != status->st_gid) &&
	    fchown(to_fd, status->st_uid, status->st_gid) < 0)
		return -errno;
	/* An ACL's mask is in the group's bits, so that this changes no ACL that was just copied. */
	if (fchmod(to_fd, status->st_mode & MODE_BITS) < 0 || fstat(to_fd, &made) < 0)
		return -errno;
	/* The kernel drops a set-group-ID bit without a word where the group is none of ours. */
	return made.st_mode == status->st_mode && made.st_uid == status->st_uid && made.st_gid == status->st_gid ?
		       0 : -EPERM;
}

/* ---- files ---- */

static const char *find_linked(const struct mover *mover, ino_t inode)
{
	for (size_t i = 0; i < mover->linked_count; i++)
		if (mover->linked[i].inode == inode)
			return mover->linked[i].path;
	return NULL;
}

/* Those that are too many become files of their own. */
static void note_linked(struct mover *mover, ino_t inode, const char *name)
{
	char *path;

	if (!mover->linked)
		mover->linked = calloc(LINKS_MAX, sizeof *mover->linked);
	if (!mover->linked || mover->linked_count == LINKS_MAX || mover->linked_bytes > LINK_BYTES_MAX)
		return;
	path = str_printf("%s%s", mover->path, name);
	if (!path)
		return;
	mover->linked_bytes += strlen(path);
	mover->linked[mover->linked_count++] = (struct linked){ inode, path };
}

static int compare_inodes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool is_kept(const struct stage_move *move, ino_t inode)
{
	const uint64_t number = inode;

	return move->keeps_all || (move->kept_count && bsearch(&number, move->kept, move->kept_count, sizeof number,
							       compare_inodes));
}

static int rename_entry(int from_fd, const char *from, int to_fd, const char *to)
{
	return syscall(SYS_renameat2, from_fd, from, to_fd, to, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

/* What was killed between a link and its unlink left both names. */
static bool has_both_names(int to_fd, const char *to, const struct stat *status)
{
	struct stat other;

	return stat_entry(to_fd, to, &other) == 0 && status->st_nlink > 1 && other.st_nlink == status->st_nlink &&
	       other.st_mode == status->st_mode && other.st_size == status->st_size &&
	       other.st_mtim.tv_sec == status->st_mtim.tv_sec && other.st_mtim.tv_nsec == status->st_mtim.tv_nsec;
}

/* A file of several names has the copy of one of them linked to the others. */
static int link_entry(struct mover *mover, int from_fd, const char *from, int to_fd, const char *to,
		      const struct stat *status)
{
	bool is_linked = mover->tree_fd >= 0 && S_ISREG(status->st_mode) && status->st_nlink > 1;
	const char *copy = is_linked ? find_linked(mover, status->st_ino) : NULL;

	if (copy && linkat(mover->tree_fd, copy, to_fd, to, 0) == 0)
		return unlinkat(from_fd, from, 0) < 0 ? -errno : 0;
	if (is_kept(mover->move, status->st_ino) || linkat(from_fd, from, to_fd, to, 0) < 0) {
		int r = rename_entry(from_fd, from, to_fd, to);

		if (r < 0)
			return r == -EEXIST && has_both_names(to_fd, to, status) && unlinkat(from_fd, from, 0) == 0 ?
				       0 : r;
	} else if (unlinkat(from_fd, from, 0) < 0) {
		return -errno;
	}
	if (is_linked)
		note_linked(mover, status->st_ino, to);
	return 0;
}

/* The path of the directory at work gets a name more; where it ends without it. A path that is too long keeps none. */
static size_t enter(struct mover *mover, const char *name)
{
	size_t length = strlen(mover->path);

	if (mover->tree_fd >= 0 && str_format(mover->path + length, PATH_MAX - length, "%s/", name) < 0)
		mover->path[length] = 0;
	return length;
}

/* ---- moving ---- */

static int move_entry(struct mover *mover, int from_fd, const char *from, int to_fd, const char *to);

static int move_entries(struct mover *mover, int from_fd, int to_fd)
{
	DIR *list = list_directory(from_fd);
	const char *entry;
	int r = 0, errnum = 0;

	if (!list)
		return -errno;
	mover->depth++;
	while (r == 0 && (entry = next_name(list, &errnum))) {
		r = move_entry(mover, from_fd, entry, to_fd, entry);
		/* The host has removed it meanwhile. */
		if (r == -ENOENT)
			r = 0;
	}
	mover->depth--;
	closedir(list);
	return r == 0 ? -errnum : r;
}

/* Into a directory that is made, or was made by a move that is taken back. */
static int move_directory(struct mover *mover, int from_fd, const char *from, int to_fd, const char *to)
{
	cleanup_fd int old = open_directory(from_fd, from), new = FD_NONE;
	bool is_made = mkdirat(to_fd, to, 0700) == 0;
	size_t length = enter(mover, to);
	struct stat status;
	int r = 0;

	if (old < 0 || fstat(old, &status) < 0)
		return old < 0 ? old : -errno;
	if (!is_made && errno != EEXIST)
		return -errno;
	new = open_directory(to_fd, to);
	if (new < 0)
		return new;
	if (is_made)
		r = copy_attributes(old, new, &status);
	if (r == 0)
		r = move_entries(mover, old, new);
	mover->path[length] = 0;
	if (r == 0 && is_made && futimens(new, (struct timespec[]){ status.st_atim, status.st_mtim }) < 0)
		r = -errno;
	return r;
}

static int move_entry(struct mover *mover, int from_fd, const char *from, int to_fd, const char *to)
{
	struct stat status;
	int r = count(mover);

	if (r == 0)
		r = stat_entry(from_fd, from, &status);
	if (r < 0)
		return r;
	if (!S_ISDIR(status.st_mode))
		return link_entry(mover, from_fd, from, to_fd, to, &status);
	r = rename_entry(from_fd, from, to_fd, to);
	return r == -EXDEV || r == -EEXIST ? move_directory(mover, from_fd, from, to_fd, to) : r;
}

/* Removes directories that have nothing but directories in them. -ENOTEMPTY: something else is there. */
static int remove_directories(struct mover *mover, int dir_fd, const char *name)
{
	cleanup_fd int fd = open_directory(dir_fd, name);
	DIR *list = fd < 0 ? NULL : list_directory(fd);
	const char *entry;
	int r = 0, errnum = 0;

	if (!list)
		return fd == -ENOENT ? 0 : fd == -ENOTDIR || fd == -ELOOP ? -ENOTEMPTY : fd < 0 ? fd : -errno;
	mover->depth++;
	while (r == 0 && (entry = next_name(list, &errnum)))
		r = remove_directories(mover, fd, entry);
	mover->depth--;
	closedir(list);
	if (r == 0 && errnum)
		r = -errnum;
	return r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? -errno : r;
}

/* Of what is there by then; also of a part. */
static int move_back(const struct stage_move *move, int from_fd, const char *from, int to_fd, const char *to)
{
	struct mover mover;
	int r;

	mover_init(&mover, move, 0);
	r = move_entry(&mover, to_fd, to, from_fd, from);
	if (r == 0)
		return remove_directories(&mover, to_fd, to);
	return r == -ENOENT ? 0 : r;
}

/* A tree to a free name. Taken back where it fails. */
static int move_to_free(struct mover *mover, int from_fd, const char *from, int to_fd, const char *to)
{
	struct stat status;
	int r = -ENOTEMPTY;

	/* The host has made something there meanwhile. */
	if (stat_entry(to_fd, to, &status) == 0)
		return -EXDEV;
	for (unsigned i = 0; r == -ENOTEMPTY && i < LATE_FILES_MAX; i++) {
		r = move_entry(mover, from_fd, from, to_fd, to);
		if (r == 0)
			r = remove_directories(mover, from_fd, from);
	}
	if (r < 0 && move_back(mover->move, from_fd, from, to_fd, to) < 0)
		return -EIO;
	return r;
}

/* What a program can make something of; for all else it copies, as mv(1) does between file systems. */
static int told(int r)
{
	static const int plain[] = { 0, -ENOSPC, -EDQUOT, -ENOTEMPTY, -EIO, -EROFS, -ENOENT };

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (r == plain[i])
			return r;
	return -EXDEV;
}

/* The other one may be on its way to the place of the first. */
static int exchange_back(const struct stage_move *move)
{
	struct stat status;
	int r;

	if (stat_entry(move->from_fd, part_name, &status) == 0)
		return move_back(move, move->from_fd, move->from, move->from_fd, part_name);
	if (stat_entry(move->from_fd, whole_name, &status) < 0) {
		if (stat_entry(move->from_fd, over_name, &status) < 0)
			return 0;
		r = rename_entry(move->to_fd, move->to, move->from_fd, whole_name);
		if (r < 0)
			return r;
	}
	r = move_back(move, move->to_fd, move->to, move->from_fd, move->from);
	if (r == 0)
		r = move_back(move, move->from_fd, move->from, move->from_fd, whole_name);
	return r == 0 ? remove_mark(move) : r;
}

static int exchange(struct mover *mover, const struct stage_move *move)
{
	int r = move_to_free(mover, move->from_fd, move->from, move->from_fd, part_name);

	if (r < 0)
		return r;
	r = rename_entry(move->from_fd, part_name, move->from_fd, whole_name);
	if (r == 0)
		r = move_to_free(mover, move->to_fd, move->to, move->from_fd, move->from);
	if (r == 0 && mkdirat(move->from_fd, over_name, 0700) < 0)
		r = -errno;
	if (r == 0)
		r = rename_entry(move->from_fd, whole_name, move->to_fd, move->to);
	return r < 0 && exchange_back(move) < 0 ? -EIO : r;
}

/* The directory that was replaced: with its mode and owner. */
static int restore_target(const struct stage_move *move, const struct stat *target)
{
	if (mkdirat(move->to_fd, move->to, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	/* The owner first: its change takes set-id bits away. */
	if (fchownat(move->to_fd, move->to, target->st_uid, target->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(move->to_fd, move->to, target->st_mode & MODE_BITS, 0) < 0)
		return -errno;
	return 0;
}

static int replace(struct mover *mover, const struct stage_move *move)
{
	struct stat target;
	bool has_target = stat_entry(move->to_fd, move->to, &target) == 0;
	int r;

	if (has_target && unlinkat(move->to_fd, move->to, AT_REMOVEDIR) < 0)
		return -errno;
	r = move_to_free(mover, move->from_fd, move->from, move->to_fd, move->to);
	return r < 0 && has_target && restore_target(move, &target) < 0 ? -EIO : r;
}

int stage_move_run(const struct stage_move *move)
{
	struct mover mover;
	int r;

	mover_init(&mover, move, move->deadline_ns);
	/* Names that change places have none between them that could be linked to. */
	mover.tree_fd = move->is_exchange ? FD_NONE : move->to_fd;
	r = move->is_exchange ? exchange(&mover, move) : replace(&mover, move);
	mover_done(&mover);
	return told(r);
}

int stage_move_take_back(const struct stage_move *move)
{
	int r;

	if (move->is_exchange)
		return exchange_back(move);
	r = move_back(move, move->from_fd, move->from, move->to_fd, move->to);
	return r == 0 && move->target ? restore_target(move, move->target) : r;
}

int stage_move_settle(const struct stage_move *move)
{
	return move->is_exchange ? remove_mark(move) : 0;
}
