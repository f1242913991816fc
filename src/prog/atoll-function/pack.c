/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-function/pack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

enum { PIECE = 64 << 10 };

static int fail(const char *path, const char *why, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	return err_set(err, ERR_USAGE, EINVAL, "deploy", "%s: %s", err_quote(shown, path), why);
}

static la_ssize_t on_bytes(struct archive *archive, void *context, const void *bytes, size_t size)
{
	struct buf *out = context;

	buf_put(out, bytes, size);
	return buf_error(out) < 0 ? -1 : (la_ssize_t)size;
}

/* The content of a file that was opened by the walk. */
static int copy_content(struct archive *from, struct archive *to)
{
	const void *bytes;
	la_int64_t at;
	size_t size;
	int r;

	while ((r = archive_read_data_block(from, &bytes, &size, &at)) == ARCHIVE_OK)
		if (archive_write_data(to, bytes, size) < 0)
			return -EIO;
	return r == ARCHIVE_EOF ? 0 : -EIO;
}

static int copy_entry(struct archive *from, struct archive *to, struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);

	if (!name || str_equal(name, "."))
		return 0;
	/* It is nobody's: inside, everything belongs to one user. */
	archive_entry_set_uid(entry, 0);
	archive_entry_set_gid(entry, 0);
	archive_entry_set_uname(entry, NULL);
	archive_entry_set_gname(entry, NULL);
	archive_entry_xattr_clear(entry);
	archive_entry_acl_clear(entry);
	if (archive_write_header(to, entry) != ARCHIVE_OK)
		return -EIO;
	return archive_entry_size(entry) > 0 ? copy_content(from, to) : 0;
}

static int walk(struct archive *from, struct archive *to, struct archive_entry *entry)
{
	int r = 0, step = ARCHIVE_OK;

	while (r == 0 && (step = archive_read_next_header2(from, entry)) == ARCHIVE_OK) {
		r = archive_read_disk_descend(from) < ARCHIVE_WARN ? -EIO : copy_entry(from, to, entry);
		archive_entry_clear(entry);
	}
	return r < 0 || step == ARCHIVE_EOF ? r : -EIO;
}

static int pack(const char *path, struct buf *out, struct err *err)
{
	struct archive *from = archive_read_disk_new(), *to = archive_write_new();
	struct archive_entry *entry = archive_entry_new();
	int r = -ENOMEM;

	if (chdir(path) < 0) {
		r = fail(path, err_errno_name(errno), err);
	} else if (from && to && entry && archive_read_disk_set_symlink_physical(from) == ARCHIVE_OK &&
		   archive_write_set_format_pax_restricted(to) == ARCHIVE_OK &&
		   archive_write_open(to, out, NULL, on_bytes, NULL) == ARCHIVE_OK &&
		   archive_read_disk_open(from, ".") == ARCHIVE_OK) {
		r = walk(from, to, entry);
		if (archive_write_close(to) != ARCHIVE_OK && r == 0)
			r = -EIO;
		if (buf_error(out) < 0)
			fail(path, "it is larger than 9 MB", err);
		else if (r < 0)
			fail(path, archive_error_string(from) ? archive_error_string(from) : "it cannot be read", err);
	} else {
		fail(path, "it cannot be read", err);
	}
	archive_entry_free(entry);
	archive_write_free(to);
	archive_read_free(from);
	return buf_error(out) < 0 ? -EFBIG : r;
}

static int copy(const char *path, int fd, struct buf *out, struct err *err)
{
	char bytes[PIECE];
	ssize_t n;

	while ((n = read(fd, bytes, sizeof bytes)) > 0 && buf_error(out) == 0)
		buf_put(out, bytes, (size_t)n);
	if (n < 0)
		return fail(path, err_errno_name(errno), err);
	return buf_error(out) < 0 ? fail(path, "it is larger than 9 MB", err) : 0;
}

int pack_read(const char *path, struct buf *out, struct err *err)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
	char shown[ERR_QUOTE_SIZE];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, fd == -ENOENT ? ERR_NOT_FOUND : ERR_USAGE, ENOENT, "deploy",
			       "%s cannot be opened: %s", err_quote(shown, path), err_errno_name(fd < 0 ? -fd : errno));
	if (S_ISDIR(st.st_mode))
		return pack(path, out, err);
	if (!S_ISREG(st.st_mode))
		return fail(path, "it is neither a directory nor an archive", err);
	return copy(path, fd, out, err);
}
